"""Columns whose values nobody has listed: marks, their sensitivity, thresholds in closed form, what is refused.

False alarms: a test that draws real noise says how rare they are; the others draw none, or from a seed.
"""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from pgmpy_dp import Budget, Ledger, Number, Schema, TextFile
from pgmpy_dp.private.accounting import approx_to_zcdp
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.curator.curator_base import Curator
from pgmpy_dp.private.data.columns import (
    PrivateColumns,
    column_marks,
    drawn_counts,
    in_their_order,
    mark_key,
    mark_label,
    mark_row,
    number_counts,
    record_count,
    text_columns,
)
from pgmpy_dp.private.guarantee import ZCDP, PureDP
from pgmpy_dp.private.noise.histogram import stability_histogram, tail_quantile
from pgmpy_dp.private.operators.column_operators import (
    NumberTables,
    StableCategories,
    StableMarks,
    category_histogram,
    category_labels,
)
from pgmpy_dp.private.reading.owners import identity
from pgmpy_dp.private.reading.sources import open_source
from pgmpy_dp.schema import match_key
from tests.auditing.replay_tables import object_frame
from tests.auditing.replay_units import ODD_UNITS
from tests.private.test_engines import LAZY, arrow, many_rows
from tests.strategies import OUTSIDE, labels, texts

BUDGET = Budget(epsilon=1.0, delta=1e-6)
TWO = [("categories", 0), ("categories", 1)]
ADJACENCIES = [Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE]


def columns(data, names=None, budget=BUDGET, reading=None, **options) -> PrivateColumns:
    names = list(data.columns) if names is None else names
    return PrivateColumns(data, Schema(dict.fromkeys(names, TWO), **(reading or {})), ledger=budget, **options)


def columns_of(frame: pd.DataFrame) -> list:
    """A small frame in one batch."""
    [batch] = open_source(frame).batches(["job", "town", "who"])
    return batch


def marks(cells, length=100, **reading) -> dict:
    data = columns(pd.DataFrame({"c": pd.Series(cells, dtype=object)}), reading=reading)
    found, counts = column_marks(data, ["c"], length)
    return {mark_label(key): n for (_, key), n in zip(found, counts.tolist(), strict=True)}


class TestMarks:
    def test_spellings_of_one_key_are_one_mark_with_one_label(self):
        assert marks([7, "7", " 7.0", 7.0, "7e0", np.int8(7)]) == {7: 6}
        assert marks([True, "TRUE", 1, "1"]) == {1: 4}
        assert marks(["a", "a ", "A"], strip=True) == {"a": 2, "A": 1}
        assert marks(["7", "7.0", 7, True, "TRUE", 7.0, 7.5, b"07"], codes=True) == {
            **{"7": 3, "7.0": 1, "True": 1, "TRUE": 1, "07": 1}  # a float that is no integer is no code
        }
        assert marks(["nan", "inf", "12E3", None], codes=True) == {None: 1, "12E3": 1, "inf": 1, "nan": 1}

    def test_each_spelling_that_casefold_makes_one_is_a_mark(self):
        """The label is then chosen by noisy counts. What is missing or recoded has one mark."""
        read = {"casefold": True, "missing": ["na"], "recode": {"c": {"rn": ("categories", 0)}}}
        assert marks(["Nurse", "nurse", "NA", "na", "RN"], **read) == {None: 2, "Nurse": 1, "nurse": 1}
        assert marks(["Nurse ", "nurse"], **read, strip=True, codes=True) == {"Nurse": 1, "nurse": 1}
        assert marks(["?", None, float("nan"), "NA"], missing=["?", "NA"]) == {None: 4}
        assert marks(["no", "No"], recode={"c": {"No": ("categories", 0)}}) == {"no": 1}  # a tuple is no category

    @pytest.mark.parametrize(
        "cell",
        [
            *("a\0", "a\tb", "a\nb", "\x1b[31m", "\ud800", "\u200b", "\u202ex", "\ufdd0", "x" * 101),
            *(b"\xff", ("a", "b"), [1], float("inf"), "1e999", 10**400, ()),
        ],
    )
    def test_what_is_no_category(self, cell):
        assert marks([cell]) == marks([cell], codes=cell not in ("1e999", 10**400)) == {}

    @pytest.mark.parametrize(
        "cell", ["", " ", "ß", "a\xa0b", "x" * 100, "🎈", "[0,9)", "None", "other", 0.5, -0.0, 1e300]
    )
    def test_what_is_one(self, cell):
        assert list(marks([cell])) == [mark_label(match_key(cell))]

    def test_order_is_that_of_the_keys(self):
        assert list(marks(["b", 10, 9, None, "a", "a", -1])) == [None, -1, 9, 10, "a", "b"]

    @settings(max_examples=25)
    @given(
        cell=st.one_of(labels, texts, st.sampled_from(OUTSIDE)),
        read=st.fixed_dictionaries(dict.fromkeys(("strip", "casefold", "codes"), st.booleans())),
    )
    def test_a_label_is_read_back_as_its_mark(self, cell, read):
        """So a schema of these labels counts a cell where its mark was counted."""
        reading = Schema({"c": TWO}, **read).reading("c")
        for label in marks([cell], **read):
            schema = Schema({"c": [label, *TWO]}, texts=["c"], **read)
            assert schema.coder("c")(reading.key(cell)) == 0
            mark = (3, reading.listed(reading.key(cell)))
            assert mark_key(mark_row(mark, 400)) == mark
            str(label).encode()

    @settings(max_examples=25)
    @given(
        rows=st.lists(st.tuples(labels, st.sampled_from(OUTSIDE)), max_size=6),
        odd=st.tuples(st.one_of(labels, st.sampled_from(OUTSIDE)), labels),
    )
    def test_a_record_more_moves_one_count_a_column_by_one(self, rows, odd):
        exact = []
        for each in (rows, [*rows, odd]):
            frame = pd.DataFrame({name: pd.Series([r[k] for r in each], dtype=object) for k, name in enumerate("ab")})
            found, counts = column_marks(columns(frame), ["a", "b"], 20)
            exact.append(Counter(dict(zip(found, counts.tolist(), strict=True))))
        gained = exact[1] - exact[0]
        assert not exact[0] - exact[1]
        assert max(gained.values(), default=0) <= 1
        assert len({place for place, _ in gained}) == len(gained)


class TestReaders:
    ROWS = many_rows(400)
    NAMES = tuple(ROWS[0])

    def wanted(self, name):
        found = Counter(match_key(row[name]) for row in self.ROWS)
        return {key: n for key, n in found.items() if key[0] != "unreadable"}

    def check(self, data):
        made = columns(data, self.NAMES)
        for name in self.NAMES:
            found, counts = column_marks(made, [name], 400)
            got = {key: n for (_, key), n in zip(found, counts.tolist(), strict=True)}
            wanted = self.wanted(name)
            assert {key: wanted[key] for key in got} == got, name
            assert sum(got.values()) > 50, name
            number = Number(0, 3, cuts=[1, 2])
            code, own = number.coder(), np.zeros(len(number.states), dtype=int)
            for row in self.ROWS:
                own[code(match_key(row[name]))] += 1
            assert number_counts(made, name, number).tolist() == own.tolist()
        assert record_count(made).tolist() == [len(self.ROWS)]

    def test_in_memory(self):
        table = arrow(self.ROWS)
        for data in (table, pl.from_arrow(table), pd.DataFrame(self.ROWS, dtype=object)):
            self.check(data)

    @pytest.mark.parametrize("engine", LAZY)
    def test_engines(self, engine):
        self.check(engine(arrow(self.ROWS)))

    def test_parquet(self, tmp_path):
        pq.write_table(arrow(self.ROWS), tmp_path / "records.parquet")
        self.check(tmp_path / "records.parquet")

    def test_text(self, tmp_path):
        (tmp_path / "records.csv").write_bytes(b'b,a\nx,1\n"x",1.0\n,\nx\nx,2,3\n\xff,7\n')
        made = columns(tmp_path / "records.csv", ["a", "b"])
        found, counts = column_marks(made, ["a", "b"], 9)
        labels = [mark_label(key) for _, key in found]
        assert (labels, counts.tolist()) == ([None, 1, 7, None, "x"], [1, 2, 1, 1, 2])
        written = TextFile(tmp_path / "written.txt", delimiter=";", decimal=",", thousands=".")
        (tmp_path / "written.txt").write_bytes(b"a;b\n1.500;1,5\n1500;007\n")
        found, _ = column_marks(columns(written, ["a", "b"], reading={"codes": True}), ["a", "b"], 9)
        assert [mark_label(key) for _, key in found] == ["1.500", "1500", "007", "1,5"]
        assert text_columns(written, ["a"]) == ["a"] and text_columns(pd.DataFrame({"a": ["x"]}), ["a"]) == []
        assert in_their_order(tmp_path / "records.csv", ["a", "b"]) == ["b", "a"]
        assert in_their_order(pd.DataFrame({"b": [1], "a": [2]}), ["a", "b"]) == ["b", "a"]


class TestThreshold:
    @pytest.mark.parametrize("adjacency", ADJACENCIES)
    @pytest.mark.parametrize("d", [1, 2, 9])
    def test_scale_and_threshold_in_closed_form(self, adjacency, d):
        eta, rho = 1e-8, Fraction(1, 100)
        made = category_histogram(d, adjacency, ZCDP(0.02), Fraction(1, 2), eta)
        moved = d if adjacency == "add_remove" else 2 * d
        assert Fraction(moved) / (2 * Fraction(made.scale) ** 2) <= rho * (1 + Fraction(1, 10**9))
        assert math.isclose(made.scale, math.sqrt(moved / (2 * rho)), rel_tol=1e-12)
        assert made.threshold == 1 + tail_quantile(made.scale, eta / moved)

    def test_a_lone_key_is_released_with_at_most_its_part_of_eta(self):
        """By sums over all integers: P(1 + Z >= T) <= eta/d, and d of them together <= eta."""
        for d in (1, 3, 9):
            made = category_histogram(d, Adjacency.ADD_REMOVE, ZCDP(0.05), 1, 1e-6)
            z = np.arange(-600, 601)
            weight = np.exp(-(z.astype(float) ** 2) / (2 * made.scale**2))
            assert weight[z >= made.threshold - 1].sum() / weight.sum() <= 1e-6 / d
            assert weight[z >= made.threshold - 2].sum() / weight.sum() > 1e-6 / d * 0.5  # it is not wasted

    @pytest.mark.parametrize("k", [1, 2])
    def test_the_whole_law_of_lone_and_shared_keys(self, k):
        """Exact: neighbours of k columns, where a record more has k keys of its own, or lifts k keys of 6 records."""
        epsilon, delta, eta = 1.0, 0.02, 0.01
        made = stability_histogram(k, approx_to_zcdp(epsilon, delta - eta), eta, 1)
        for count in (0, 6):
            laws = [_released(made, n) for n in (count, count + 1)]
            for one, other in (laws, laws[::-1]):
                assert _hockey_stick(one, other, k, epsilon) <= delta
        lone = _released(made, 1)[None]
        assert 1 - lone**k > eta / 4  # a threshold one lower would be too low; this one is near

    def test_what_is_released_follows_the_noise(self):
        """False alarms: 2e-6. Marks with T - sigma records pass with P(Z >= sigma), about .16; 30 % off is rejected."""
        made = category_histogram(1, Adjacency.ADD_REMOVE, ZCDP(0.005), 1, 1e-6)
        assert made.scale == 10.0
        n = 4000
        mechanism = StableMarks(
            [(0, ("number", float(k))) for k in range(n)], np.full(n, made.threshold - 10), 1, 1, made, 1
        )
        rows, counts = mechanism.draw(None)
        assert (counts >= made.threshold).all() and len(rows) == len(counts)
        assert rows[:, 2].tolist() == sorted(rows[:, 2].tolist())
        passed = {scale: _tail(10, scale) for scale in (10.0, 13.0, 7.0)}
        accepted = {
            scale: min(binom.cdf(len(rows), n, p), binom.sf(len(rows) - 1, n, p)) > 1e-6 for scale, p in passed.items()
        }
        assert accepted == {10.0: True, 13.0: False, 7.0: False}


def _tail(t: float, scale: float) -> float:
    z = np.arange(-400, 401)
    weight = np.exp(-(z.astype(float) ** 2) / (2 * scale**2))
    return float(weight[z >= t].sum() / weight.sum())


def _released(made, count: int) -> dict:
    """The law of one key's answer: None, or a noisy count from the threshold on."""
    z = np.arange(-400, 401)
    weight = np.exp(-(z.astype(float) ** 2) / (2 * made.scale**2))
    weight /= weight.sum()
    if count == 0:
        return {None: 1.0}
    law = {int(v) + count: float(w) for v, w in zip(z, weight, strict=True) if v + count >= made.threshold}
    return {None: 1.0 - math.fsum(law.values()), **law}


def _hockey_stick(one: dict, other: dict, k: int, epsilon: float) -> float:
    """Of k independent answers of these laws."""
    p, q = [1.0], [1.0]
    for _ in range(k):
        p = [a * b for a in p for b in one.values()]
        q = [a * other.get(value, 0.0) for a in q for value in one]
    return math.fsum(max(0.0, a - math.exp(epsilon) * b) for a, b in zip(p, q, strict=True))


class TestOperators:
    FRAME = pd.DataFrame({"job": ["nurse"] * 500 + ["baker"] * 300 + ["poet"], "age": [30] * 400 + [70] * 401})

    def curator(self, budget=BUDGET, reserve=1e-7, **options) -> Curator:
        data = PrivateColumns(self.FRAME, Schema({"job": TWO, "age": Number(0, 120)}), ledger=budget, **options)
        return Curator(data, budget, what="test", reserve=reserve)

    def test_answers(self):
        """False alarms: below 1e-9, that 300 records do not reach the threshold, or a lone one does."""
        curator = self.curator()
        rows, _ = curator.ask(StableCategories(["job"], 20), Fraction(1, 2), 1e-7)
        assert category_labels(rows) == [(0, "baker"), (0, "nurse")] and rows.shape == (2, 22)
        divided = [("age", Number(0, 120, cuts=[65])), ("job", Number(0, 1, bins=2, missing="drop"))]
        n, ages, jobs = curator.ask(NumberTables(divided, with_count=True), 0.5)
        assert (n.shape, ages.shape, jobs.shape) == ((1,), (3,), (2,))
        assert abs(int(n[0]) - 801) < 150 and abs(int(ages[0]) - 400) < 150
        release = curator.release("test", {})
        assert [noise is None for noise in release.noise] == [True, False, False, False, False]
        assert str(release.guarantee).endswith("-zCDP + 1e-07")

    @pytest.mark.parametrize(
        ("ask", "told"),
        [
            (lambda c: c.ask(StableCategories(["town"]), 1, 1e-7), "unknown columns"),
            (lambda c: c.ask(StableCategories("job"), 1, 1e-7), "is a str"),
            (lambda c: c.ask(StableCategories([]), 1, 1e-7), "at least one column"),
            (lambda c: c.ask(StableCategories(["job", "job"]), 1, 1e-7), "each once"),
            (lambda c: c.ask(StableCategories(["job"]), 1, 1e-6), "was asked of a reserve"),
            (lambda c: c.ask(StableCategories(["job"]), 1, 0.0), "is not between 0 and 1"),
            (lambda c: c.ask(StableCategories(["job"]), 1e-300, 1e-7), "bury any count"),
            (lambda c: c.ask(StableCategories(["job"], 0), 1, 1e-7), "max_length"),
            (lambda c: c.ask(NumberTables([("age", Number(0, 1))]), 1), "not divided Numbers"),
            (lambda c: c.ask(NumberTables([("age", type("Mine", (Number,), {})(0, 1, bins=2))]), 1), "not divided"),
            (lambda c: c.ask(NumberTables([("town", Number(0, 1, bins=2))]), 1), "unknown columns"),
            (lambda c: c.ask(NumberTables([]), 1), "asks nothing"),
            (lambda c: c.ask(NumberTables([("age", Number(0, 1, bins=2))]), 1e-300), "bury any count"),
        ],
    )
    def test_refusals_cost_nothing(self, ask, told):
        curator = self.curator()
        with pytest.raises((TypeError, ValueError), match=told):
            ask(curator)
        assert curator.left == 1 and not curator.answers

    def test_pure_and_public(self):
        pure = self.curator(Budget(epsilon=1.0), 0.0)
        with pytest.raises(ValueError, match="a threshold takes a delta"):
            pure.ask(StableCategories(["job"]), 1, 1e-7)
        pure.ask(NumberTables([("age", Number(0, 120, bins=2))]), 1)
        public = self.curator(adjacency="replace_one", n_records=801)
        with pytest.raises(ValueError, match="is public"):
            public.ask(NumberTables([], True), 1)

    @pytest.mark.parametrize(("adjacency", "moved"), [("add_remove", 1), ("replace_one", 2)])
    def test_noise_of_tables_in_closed_form(self, adjacency, moved):
        parsed = Adjacency.parse(adjacency)
        assert [n.scale for n in NumberTables.planned(2, False, parsed, PureDP(0.5), 1).noise] == [4.0 * moved] * 2
        scales = [n.scale for n in NumberTables.planned(2, False, parsed, ZCDP(0.01), Fraction(1, 2)).noise]
        assert scales == pytest.approx([math.sqrt(2 * moved / (2 * 0.005))] * 2)
        assert len(NumberTables.planned(0, True, parsed, ZCDP(0.01), 1).noise) == 1

    def test_a_ledger_of_users_is_refused(self):
        ledger = Ledger(BUDGET)
        ledger.charge(ZCDP(1e-6), what="visits", columns=(), mechanism="m", adjacency="add_remove", unit="user")
        data = PrivateColumns(self.FRAME, Schema({"job": TWO}), ledger=ledger)
        with pytest.raises(ValueError, match="unit"):
            Curator(data, BUDGET, what="test", reserve=1e-7)

    def test_data_show_nothing(self):
        data = columns(self.FRAME)
        assert "nurse" not in repr(data)
        with pytest.raises(TypeError, match="cannot be copied"):
            data.__reduce_ex__(2)


class TestUnits:
    """Of each unit one record counts, drawn by its own records alone."""

    KEY = b"a secret"
    KEYS = (match_key, partial(match_key, identity="code"))
    CELLS = (
        *ODD_UNITS,
        "7.0",
        " 7 ",
        7,
        True,
        2.0**53,
        "x" * 300,
        ("a", ("b", None)),
        ("a",),
        {"a": 1},
        1 + 2j,
        "-0.0",
    )

    def frame(self, rng, n, units):
        cell = lambda: self.CELLS[rng.integers(len(self.CELLS))]  # noqa: E731
        rows = [[cell(), cell(), units[rng.integers(len(units))]] for _ in range(n)]
        return object_frame(rows, ["job", "town", "who"])

    def counts(self, frame):
        return drawn_counts([columns_of(frame)], self.KEY, self.KEYS)

    @pytest.mark.parametrize("seed", range(10))
    def test_one_unit_moves_one_count_of_each_column_whatever_the_others_hold(self, seed):
        rng = np.random.default_rng(seed)
        units = [*"pqrstuv", *ODD_UNITS]
        frame = self.frame(rng, 120, units)
        before = self.counts(frame)
        keys = [identity(unit) for unit in frame["who"]]
        for unit in dict.fromkeys(keys):
            rest = frame[[key != unit for key in keys]]
            more = 0 if unit is None else 1  # without an identifier records are nobody's
            for whole, part in zip(before, self.counts(rest), strict=True):
                assert not part - whole and (whole - part).total() == more

    @pytest.mark.parametrize("seed", range(5))
    def test_neither_the_order_of_rows_nor_their_parts_matter(self, seed):
        rng = np.random.default_rng(seed)
        frame = self.frame(rng, 80, list("pqrs"))
        before = self.counts(frame)
        assert before == self.counts(frame.sample(frac=1.0, random_state=seed))
        parts = [columns_of(frame[frame["who"] == own]) for own in "srqp"]
        assert before == drawn_counts(parts, self.KEY, self.KEYS)
        assert sum(before[0].values()) == frame["who"].nunique()

    def test_each_record_is_drawn_as_often(self):
        """By the key: of one's own ten records nine are the same. False alarms below 1e-6."""
        frame = object_frame([["a", 1, "p"]] * 9 + [["b", 2, "p"]], ["job", "town", "who"])
        cells = columns_of(frame)
        drawn = [drawn_counts([cells], bytes([k, n]), self.KEYS)[0] for k in range(100) for n in range(20)]
        rare = sum(found[match_key("b")] for found in drawn)
        assert abs(rare - 200) < 5 * np.sqrt(2000 * 0.1 * 0.9)
