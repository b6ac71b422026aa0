"""How many records match: the same counts from every reader and engine, their sensitivity, and no answer for parts."""

from __future__ import annotations

import functools
import gzip
import itertools
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow.parquet as pq
import pytest

from pgmpy_dp import Budget, Ledger, Number, PrivateTable, Schema
from pgmpy_dp.auditing import replay
from pgmpy_dp.private.curator.table_curator import TableCurator
from pgmpy_dp.private.data.coding import DROPPED, OutsideCounted, coding, key_coder
from pgmpy_dp.private.data.table import matched_records
from pgmpy_dp.private.guarantee import PureDP
from pgmpy_dp.private.operators.record_matches import MatchedCounts
from pgmpy_dp.private.reading import records as reading_records
from pgmpy_dp.schema import MISSING, interval_cuts, match_key
from pgmpy_dp.tables import schema_check
from tests.private.test_engines import LAZY, SCHEMA, TEXTS, arrow, ibis_sqlite, many_rows

AGES = Schema({"age": ["<25", "[25,45)", ">=45"], "sex": ["F", "M", None]}, other={"sex": None})


def exact(data, schema=SCHEMA, n_records=None, **options) -> list[int]:
    table = PrivateTable(data, schema, ledger=Budget(epsilon=1.0), n_records=n_records, **options)
    return matched_records(table).value.tolist()


def by_hand(rows: list[dict], schema: Schema) -> list[int]:
    """Cell by cell, from `match_key` alone: what matches is not blank, blank cells are in counts of their own."""
    own, blank = [], []
    for name, states in schema.states.items():
        keys, cuts = {match_key(state) for state in states}, interval_cuts(states)
        cells = [match_key(row[name]) for row in rows]
        own.append([key in keys or bool(cuts and key[0] == "number") for key in cells])
        blank.append([key == MISSING for key in cells])
    kept = [column for name, column in zip(schema.states, own, strict=True) if name not in schema.other]
    declared = [
        sum(match and not empty for match, empty in zip(*both, strict=True)) for both in zip(own, blank, strict=True)
    ]
    whole = [all(cells) for cells in zip(*kept, strict=True)] if kept else [True] * len(rows)
    return [len(rows), sum(whole), *declared, *map(sum, blank)]


class TestReaders:
    ROWS = many_rows(600)
    WANTED = by_hand(ROWS, SCHEMA)

    def test_some_of_everything(self):
        assert self.WANTED[0] == 600 and 100 < self.WANTED[1] < 590
        assert sum(0 < n < 600 for n in self.WANTED[2:11]) >= 7 and sum(0 < n < 600 for n in self.WANTED[11:]) >= 5

    def test_in_memory(self):
        table = arrow(self.ROWS)
        for data in (table, pl.from_arrow(table), pd.DataFrame(self.ROWS, dtype=object)):
            assert exact(data) == self.WANTED

    @pytest.mark.parametrize("outside", ["clip", "drop", "state"])
    def test_numbers_outside_match_in_no_reader(self, outside):
        schema = Schema({"x": Number(0, 9, cuts=[5], outside=outside, missing="drop")})
        frame = pd.DataFrame({"x": [1, 7, 9, 10, -1]})
        for data in (frame, pl.from_pandas(frame).lazy()):
            assert exact(data, schema) == [5, 3 if outside == "drop" else 5, 3, 0]

    @pytest.mark.parametrize("engine", LAZY)
    def test_engines(self, engine):
        assert exact(engine(arrow(self.ROWS))) == self.WANTED

    def test_sqlite(self, tmp_path):
        kept = SCHEMA.subset(["word", "whole", "real"])
        data = ibis_sqlite(arrow(self.ROWS).select(["word", "whole", "real"]), tmp_path)
        assert exact(data, kept) == by_hand(self.ROWS, kept)

    @pytest.mark.parametrize("most_kept", [0, math.inf])
    def test_parquet(self, tmp_path, most_kept, monkeypatch):
        monkeypatch.setattr(reading_records, "MOST_KEPT", most_kept)
        pq.write_table(arrow(self.ROWS), tmp_path / "records.parquet")
        assert exact(tmp_path / "records.parquet") == self.WANTED

    @pytest.mark.parametrize("most_kept", [0, math.inf])
    def test_text(self, tmp_path, most_kept, monkeypatch):
        monkeypatch.setattr(reading_records, "MOST_KEPT", most_kept)
        texts = [text for text in TEXTS if text not in (",", '"', "", " true", "TRUE\n")]
        rows = [{"text": text, "n": str(k % 5)} for k, text in enumerate(texts * 3)]
        schema = Schema({"text": ["a", 7, True, "ß"], "n": [0, 1, 2]}, other={"n": 2})
        lines = ["text,n", *(f"{row['text']},{row['n']}" for row in rows), "a", "a,1,2"]
        (tmp_path / "records.csv").write_text("\n".join(lines), encoding="utf-8")
        table = PrivateTable(tmp_path / "records.csv", schema, ledger=Budget(epsilon=1.0))
        # Lines of another number of fields are no records, whatever they hold; there are two.
        assert matched_records(table).value.tolist() == [*by_hand(rows, schema), 1, 1]

    def test_intervals(self):
        rows = [{"age": a, "sex": s} for a in (24, 25.0, "30", "old", None, "[25,45)") for s in ("F", "f", None)]
        wanted = by_hand(rows, AGES)
        assert wanted == [18, 12, 12, 6, 3, 6]
        frame = pd.DataFrame(rows, dtype=object)
        texts = frame.astype("string")
        for data in (frame, pl.from_pandas(texts).lazy(), LAZY[0](pl.from_pandas(texts).to_arrow())):
            assert exact(data, AGES) == wanted

    def test_a_public_number_is_not_counted(self):
        assert exact(arrow(self.ROWS), n_records=600) == self.WANTED[1:]
        assert exact(arrow(self.ROWS), n_records=600, adjacency="replace_one") == self.WANTED[1:]
        assert exact(arrow([]), n_records=None) == [0] * 20


@pytest.mark.parametrize("name", list(SCHEMA) + list(AGES))
def test_the_outside_has_a_code_of_its_own(name):
    schema = SCHEMA if name in SCHEMA else AGES
    alone = Schema({name: schema[name]}, texts=[name])
    counted, size = OutsideCounted(schema), schema.cardinality(name)
    for cell in [*TEXTS, *schema[name], None, 1.5, ("outside", *schema[name]), object]:
        own = key_coder(alone, name)(match_key(cell))
        assert key_coder(counted, name)(match_key(cell)) == (size if own == DROPPED else own)
    assert coding(counted, name).cuts == coding(alone, name).cuts
    assert key_coder(counted, name)(("unreadable",)) == size and counted.cardinality(name) == size + 1


class TestSensitivity:
    CELLS = (*itertools.product(["a", "?", None], [0, None, "?"]),)
    STATES = Schema({"x": ["a", "b"], "y": [0, 1]}, other={"y": 0})

    @classmethod
    @functools.cache
    def counts(cls, rows, adjacency, n_records):
        frame = pd.DataFrame([*rows], columns=["x", "y"], dtype=object)
        options = {"adjacency": adjacency, "n_records": n_records, "ledger": Budget(epsilon=1.0)}
        return matched_records(PrivateTable(frame, cls.STATES, **options))

    def moved(self, one, other, adjacency="add_remove", n_records=None):
        first, second = (self.counts(tuple(rows), adjacency, n_records) for rows in (one, other))
        change = np.abs(first.value - second.value)
        assert change.sum() <= first.l1 and np.sqrt((change**2).sum()) <= first.l2 and change.max() <= first.linf
        return change.sum() / first.l1

    def test_exhaustive_neighbours(self):
        tables = [list(rows) for n in range(3) for rows in itertools.combinations_with_replacement(self.CELLS, n)]
        added = [
            self.moved(rows, [*rows, row], n_records=n) for rows in tables for row in self.CELLS for n in (None, 2)
        ]
        replaced = [
            self.moved([*rows, one], [*rows, other], "replace_one", 3)
            for rows in tables
            for one, other in itertools.combinations(self.CELLS, 2)
        ]
        assert max(added) == 1.0
        # A column with an other-state never keeps a record out; a blank one is out by another column.
        assert max(replaced) == 1.0


class TestLines:
    """Lines of a text file that are no record: counted, and only they."""

    HEAD = "x,y,text"
    LINES = ("a,0,t", "b,?,t", "?,1,t", 'a,0,"u, v"', "a,0", 'a,0,"half', "a,0,t,1", "", "   ")
    SCHEMA = Schema({"x": ["a", "b"], "y": [0, 1]})

    @pytest.fixture
    def table(self, tmp_path):
        def made(lines, name="records.csv", **options) -> PrivateTable:
            path = tmp_path / name
            path.write_text("\n".join([self.HEAD, *lines]) + "\n")
            return PrivateTable(path, self.SCHEMA, ledger=Budget(epsilon=1.0), **options)

        return made

    def test_what_is_no_record(self, table, tmp_path):
        # A half of a quoted field has as many fields as it should, here; one line has one too many, two too few.
        wanted = [5, 3, 4, 4, 0, 0, 1, 2]
        assert matched_records(table(self.LINES)).value.tolist() == wanted
        assert matched_records(table(self.LINES, n_records=9)).value.tolist() == wanted[1:]
        packed = tmp_path / "packed.csv.gz"
        packed.write_bytes(gzip.compress((tmp_path / "records.csv").read_bytes()))
        both = PrivateTable([tmp_path / "records.csv", packed], self.SCHEMA, ledger=Budget(epsilon=1.0))
        assert matched_records(both).value.tolist() == [2 * count for count in wanted]
        owned = table(self.LINES, unit="text")
        assert matched_records(owned).value.shape == (6,)  # a line that is no record is nobody's

    def test_exhaustive_neighbours(self, table):
        attained = {}
        for adjacency, n in (("add_remove", None), ("add_remove", 4), ("replace_one", 4)):
            moved, options = [], {"adjacency": adjacency, "n_records": n}
            counts = functools.cache(lambda lines, options=options: matched_records(table(lines, **options)))
            for rows in itertools.combinations_with_replacement(self.LINES[::2], 2):
                sides = [(rows, (*rows, line)) for line in self.LINES]
                if adjacency == "replace_one":
                    sides = [
                        ((*rows, one), (*rows, two)) for one, two in itertools.combinations((*self.LINES, ",,t"), 2)
                    ]
                for one, other in sides:
                    first, second = counts(one), counts(other)
                    change = np.abs(first.value - second.value)
                    assert change.sum() <= first.l1 and np.sqrt((change**2).sum()) <= first.l2 and change.max() <= 1
                    moved.append(change.sum() / first.l1)
            attained[adjacency, n] = max(moved)
        assert set(attained.values()) == {1.0}

    def test_scales(self, table):
        for (adjacency, n), m in {("add_remove", None): 4, ("add_remove", 9): 3, ("replace_one", 9): 5}.items():
            lines = table(self.LINES, adjacency=adjacency, n_records=n)
            release = schema_check.run(lines, Budget(epsilon=1.0))
            assert release.noise[0].scale == m and release.values[0].shape == (8 if n is None else 7,)

    @pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
    def test_replay(self, table, adjacency):
        rows, number = self.LINES[:3], itertools.count()
        for one, other in itertools.permutations(self.LINES, 2):
            first = (*rows, one) if adjacency == "replace_one" else rows
            n = len(first) if adjacency == "replace_one" else None

            def fit(lines, n=n):
                asked = table(lines, f"{next(number)}.csv", adjacency=adjacency, n_records=n)
                return schema_check.run(asked, Budget(epsilon=1.0))

            assert replay(fit, first, (*rows, other)).holds


class TestOperator:
    def curator(self, budget, **options) -> TableCurator:
        frame = pd.DataFrame({"x": ["a", "?"] * 50, "y": [0, 1] * 50})
        table = PrivateTable(frame, {"x": ["a", "b"], "y": [0, 1]}, ledger=budget, **options)
        return TableCurator(table, budget, what="check", columns=["x", "y"])

    def test_scales(self):
        for options, m in (({}, 4), ({"n_records": 100}, 3), ({"n_records": 100, "adjacency": "replace_one"}, 5)):
            size = 5 + (not options)
            pure, gauss = self.curator(Budget(epsilon=1.0), **options), self.curator(Budget(rho=0.5), **options)
            assert pure.ask(MatchedCounts(), Fraction(1, 2)).shape == (size,)
            assert gauss.ask(MatchedCounts(), 1).shape == (size,)
            assert pure.answers[0].noise[0].scale == 2.0 * m and pure.left == Fraction(1, 2)
            assert gauss.answers[0].noise[0].scale == pytest.approx(m**0.5, rel=1e-12)

    def test_little_noise_is_the_counts(self):
        # P(any noise is not 0) < 4 exp(-1000/4).
        assert self.curator(Budget(epsilon=1000.0)).ask(MatchedCounts(), 1).tolist() == [100, 50, 50, 100, 0, 0]

    @pytest.mark.parametrize("budget", [Budget(rho=0.5), Budget(epsilon=1.0)])
    def test_a_part_is_refused_before_it_is_debited(self, budget):
        curator = self.curator(budget)
        with curator.split(2) as parts:
            with pytest.raises(ValueError, match="ask before the table is split"):
                parts[0].ask(MatchedCounts(), Fraction(1, 2))
            assert parts[0].left == 1
        assert curator.left == 1

    def test_noise_that_buries_all_is_refused_before_the_charge(self):
        table = PrivateTable(pd.DataFrame({"x": ["a"]}), {"x": ["a", "b"]}, ledger=Ledger(Budget(epsilon=1.0)))
        with pytest.raises(ValueError, match="1e-300"):
            schema_check.run(table, Budget(epsilon=1e-300))
        assert table.ledger.entries == ()

    def test_the_ledger_says_what_was_asked(self):
        table = PrivateTable(pd.DataFrame({"x": ["a"]}), {"x": ["a", "b"]}, ledger=Budget(epsilon=1.0))
        release = schema_check.run(table, Budget(epsilon=0.25))
        (entry,) = table.ledger.entries
        assert entry.cost == PureDP(0.25) == release.guarantee and entry.columns == ("x",)
        assert release.kind == "schema_check" and release.values[0].shape == (4,)
        assert str(table.ledger.left) == "0.75-DP"

    @pytest.mark.parametrize(("delta", "noise"), [(1e-12, "discrete_laplace"), (1e-2, "discrete_gaussian")])
    def test_an_approximate_budget_takes_the_smaller_noise(self, delta, noise):
        names = [f"x{k}" for k in range(40 if delta > 1e-3 else 1)]
        frame = pd.DataFrame({name: ["a"] for name in names})
        table = PrivateTable(frame, {name: ["a", "b"] for name in names}, ledger=Budget(epsilon=1.0, delta=delta))
        release = schema_check.run(table, Budget(epsilon=1.0, delta=delta))
        assert release.noise[0].distribution == noise == release.mechanism
