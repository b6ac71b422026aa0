"""Tables of units with several records: which of them count, for how much, and what readers make of identifiers."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import networkx as nx
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pgmpy_dp import Budget, Date, Ledger, MarkovNetwork, Number, PrivateTable, Schema, check_schema, learn
from pgmpy_dp.auditing.replay import replay
from pgmpy_dp.estimators import (
    CollectiveMAP,
    EdgeVoting,
    NaiveMLE,
    PrivateBinaryMRF,
    PrivateIsing,
    PrivateNetwork,
    PrivatePairwise,
    PrivateSGD,
    StableStructure,
)
from pgmpy_dp.fields.operators.interactions import InteractionSums, InteractionUnits
from pgmpy_dp.fields.operators.parities import ParitySums, WorstParity
from pgmpy_dp.fields.operators.vote_operators import EdgeVotes
from pgmpy_dp.fields.published.regression_layout import regression_layout
from pgmpy_dp.fields.votes.block_graphs import plan_blocks
from pgmpy_dp.learning.merging import merged_cells
from pgmpy_dp.private.budget import UnitBudget
from pgmpy_dp.private.curator.schedule import GradientCurator
from pgmpy_dp.private.curator.table_curator import TableCurator
from pgmpy_dp.private.data import units
from pgmpy_dp.private.data.contributions import GRID
from pgmpy_dp.private.data.table import contingency_tables, matched_records, shared_codes, table_units
from pgmpy_dp.private.data.units import fixed_key
from pgmpy_dp.private.guarantee import ZCDP, PureDP, part_for_each
from pgmpy_dp.private.operators.record_count import RecordCount
from pgmpy_dp.private.operators.record_matches import MatchedCounts
from pgmpy_dp.private.operators.regression_path import RegressionPath
from pgmpy_dp.private.operators.tables import Tables
from pgmpy_dp.private.operators.worst_fit import WorstFit
from tests.auditing.replay_units import ODD_UNITS
from tests.settings import vote_settings

STATES = {"a": [0, 1, 2], "b": ["no", "yes"]}
KEY = bytes(range(16))


def frame(people: dict, extra: list | None = None) -> pd.DataFrame:
    rows = [[a, b, who] for who, records in people.items() for a, b in records] + (extra or [])
    return pd.DataFrame(rows, columns=["a", "b", "who"], dtype=object)


def table(data, rows=1, schema=STATES, key=KEY, **options) -> PrivateTable:
    with fixed_key(key):
        options = {"ledger": Budget(epsilon=1.0), **options}
        return PrivateTable(data, schema, unit="who", rows_per_unit=rows, **options)


def counted(data, rows=1, **options) -> list:
    """The records that count, without an order."""
    return sorted(map(tuple, shared_codes(table(data, rows, **options))[0].tolist()))


PEOPLE = {"u": [(0, "no"), (1, "no"), (2, "yes")], "v": [(1, "yes")], "w": [(2, "no")] * 5}


class TestWhichRecordsCount:
    def test_at_most_m_of_each(self):
        for rows in (1, 2, 3, 7):
            private = table(frame(PEOPLE), rows)
            owner = table_units(private)[2]
            assert np.bincount(owner).tolist() == [min(rows, len(own)) for own in PEOPLE.values()]
        assert counted(frame(PEOPLE), 7) == sorted(
            (a, ["no", "yes"].index(b)) for own in PEOPLE.values() for a, b in own
        )

    def test_they_are_the_same_whatever_the_order_and_whoever_else_is_there(self):
        alone = counted(frame({"u": PEOPLE["u"]}), 2)
        rng = np.random.default_rng(0)
        for _ in range(20):
            data = frame(PEOPLE | {f"x{k}": [(0, "yes")] * int(rng.integers(1, 6)) for k in range(9)})
            data = data.iloc[rng.permutation(len(data))]
            private = table(data, 2)
            _, count, owner = table_units(private)
            codes = shared_codes(private)[0]
            mine = [sorted(map(tuple, codes[owner == k].tolist())) for k in range(count)]
            assert alone in mine

    def test_the_key_decides_and_is_fresh_for_each_table(self):
        data = frame({f"p{k}": [(0, "no"), (2, "yes")] for k in range(64)})
        assert counted(data) == counted(data)
        assert counted(data) != counted(data, key=b"another")
        keys = {units.fresh_key() for _ in range(8)}
        assert len(keys) == 8 and {len(key) for key in keys} == {32}
        one = PrivateTable(data, STATES, ledger=Budget(epsilon=1.0), unit="who")
        assert shared_codes(one)[0] is shared_codes(one)[0]  # drawn once

    def test_draws_are_uniform(self):
        data = frame({f"p{k}": [(0, "no"), (1, "no"), (2, "yes")] for k in range(6000)})
        for rows in (1, 2):
            found = np.bincount(shared_codes(table(data, rows))[0][:, 0], minlength=3)
            # Five standard deviations: a false alarm below one in a million.
            assert np.abs(found - 2000 * rows).max() < 5 * math.sqrt(6000 * rows / 3 * (1 - rows / 3))

    def test_shares_are_a_whole_record_of_each(self):
        private = table(frame(PEOPLE), "shares")
        (counts,) = contingency_tables(private, [("a",)])
        third, fifth = GRID // 3, GRID // 5
        assert counts.value.tolist() == [third, third + GRID, third + 5 * fifth]
        assert (counts.l1, counts.l2, counts.linf) == (GRID, GRID, GRID)
        replaced = table(frame(PEOPLE), "shares", adjacency="replace_one", n_records=3)
        (counts,) = contingency_tables(replaced, [("a",)])
        assert counts.l1 == 2 * GRID and counts.l2**2 >= 2 * GRID**2 and counts.linf == GRID

    def test_records_outside_the_schema_are_drawn_and_then_dropped(self):
        data = frame({"u": [(9, "no")] * 3, "v": [(0, "no")]})
        assert counted(data) == [(0, 0)]
        assert matched_records(table(data, 2)).value.tolist() == [3, 1, 1, 3, 0, 0]
        assert matched_records(table(data, "shares")).value.tolist() == [
            *(3 * (GRID // 3) + GRID, GRID),
            *(GRID, 3 * (GRID // 3) + GRID, 0, 0),
        ]
        other = Schema(STATES, other={"a": 2})
        assert counted(data, 2, schema=other) == [(0, 0), (2, 0), (2, 0)]
        assert matched_records(table(data, 2, schema=other)).value.tolist() == [3, 3, 1, 3, 0, 0]

    def test_a_table_without_records_and_one_of_nobody_s_are_like_others(self):
        for data in (frame({}), frame({None: [(0, "no")], math.nan: [(1, "no")]})):
            for rows in (1, 3, "shares"):
                (counts,) = contingency_tables(table(data, rows), [("a", "b")])
                assert counts.value.tolist() == [[0, 0]] * 3


@settings(max_examples=60, deadline=None)
@given(
    people=st.dictionaries(
        st.sampled_from("pqrstu"),
        st.lists(st.tuples(st.sampled_from([0, 1, 2, 9, None]), st.sampled_from(["no", "yes", "?"])), max_size=6),
    ),
    one=st.lists(st.tuples(st.sampled_from([0, 1, 2, 9]), st.sampled_from(["no", "yes"])), max_size=8),
    other=st.lists(st.tuples(st.sampled_from([0, 1, 2, 9]), st.sampled_from(["no", "yes"])), max_size=8),
    rows=st.sampled_from([1, 2, 3, "shares"]),
    seed=st.integers(0, 99),
)
def test_a_person_moves_tables_by_its_bound_alone(people, one, other, rows, seed):
    """Between any neighbours: under add_remove by at most m in every norm, under replace_one (2m, sqrt(2) m, m)."""
    rng = np.random.default_rng(seed)

    def tables(own):
        data = frame(people | {"odd": own})
        private = table(data.iloc[rng.permutation(len(data))], rows)
        made = contingency_tables(private, [("a",), ("a", "b")])
        return [made[0].value, made[1].value], matched_records(private).value

    m = GRID if rows == "shares" else rows
    (first, matched), (second, also), (neither, none) = tables(one), tables(other), tables([])
    for x, y, zero in zip(first, second, neither, strict=True):
        added = (x - zero).ravel()
        assert (added >= 0).all() and added.sum() <= m
        moved = (x - y).ravel()
        assert np.abs(moved).sum() <= 2 * m and moved @ moved <= 2 * m * m and np.abs(moved).max() <= m
    assert np.abs(matched - also).max() <= m and np.abs(matched - none).max() <= m


class TestIdentifiers:
    SPELLED = (
        ([1, 1.0, "1", np.int8(1), np.float32(1), Decimal("1.0"), b"1"], 1),
        ([0, -0.0, 0.0, "0"], 1),
        ([1, "1.0", "01", " 1", "1 ", True, "true", 1.5], 8),
        (["1234e567", "99e99999", math.inf, 10**400, 10**400 + 1, 2**53, 2**53 + 1, "\xff", b"\xff", b"\xfe"], 10),
        ([True, "True", np.True_], 1),
        (["a", "a\0", "a\0\0", "A", b"b"], 5),
        ([None, math.nan, pd.NaT, pd.NA], 0),
        ([pd.Timestamp("2020-01-01"), "2020-01-02", pd.Timestamp("2020-01-03", tz="UTC")], 3),
        (["\ud800", object(), 10**400, ("x",), ("1",), (b"\xff",), "", "nan", "nan "], 9),
        ([np.timedelta64(1, "M"), np.datetime64(2**62, "s"), Decimal("sNaN")], 0),
    )

    @pytest.mark.parametrize(("names", "n"), SPELLED, ids=range(len(SPELLED)))
    def test_are_told_apart_by_their_own_content(self, names, n):
        data = frame({}, [[0, "no", name] for name in names])
        private = table(data, 1)
        assert table_units(private)[1] == n == len(shared_codes(private)[0])

    @pytest.mark.parametrize("odd", ODD_UNITS, ids=repr)
    def test_an_odd_one_changes_nobody_else(self, odd):
        people = {f"p{k}": [(0, "no"), (1, "yes"), (2, "no")] for k in range(9)}
        people.pop(odd.decode() if isinstance(odd, bytes) else odd if isinstance(odd, str) else None, None)
        before, after = (counted(frame(people, extra), 2) for extra in ([], [[2, "yes", odd]] * 3))
        nobody = odd is None or odd != odd
        assert len(after) - len(before) == (0 if nobody else 2)
        for row in set(before):
            assert after.count(row) - before.count(row) == (2 if row == (2, 1) and not nobody else 0)


class TestReaders:
    PEOPLE = {f"p{k}": [(k % 3, "no"), ((k + 1) % 3, "yes"), (0, "yes")][: 1 + k % 3] for k in range(40)}

    def read(self, kind, data, tmp_path):
        if kind == "csv":
            data.to_csv(tmp_path / "records.csv", index=False)
            return tmp_path / "records.csv"
        if kind == "parquet":
            data.astype({"a": "int64"}).to_parquet(tmp_path / "records.parquet")
            return str(tmp_path / "records.parquet")
        if kind == "polars":
            return pytest.importorskip("polars").from_pandas(data.astype({"a": "int64"})).lazy()
        if kind == "duckdb":
            return _relation(data.astype({"a": "int64"}))
        return data

    @pytest.mark.parametrize("kind", ["csv", "parquet", "polars", "duckdb"])
    @pytest.mark.parametrize("rows", [1, 2, "shares"])
    @pytest.mark.parametrize("whole", [False, True])
    def test_all_give_the_same_records(self, kind, rows, whole, tmp_path):
        people = {int(name[1:]) if whole else name: own for name, own in self.PEOPLE.items()}
        data = frame(people, [[0, "no", None]])
        if whole:
            data["who"] = data["who"].astype("Int64")
        ours, theirs = table(data, rows), table(self.read(kind, data, tmp_path), rows)
        if whole and kind == "csv":
            assert table_units(ours)[1] == table_units(theirs)[1]
        for scope in (("a",), ("a", "b")):
            (one,), (other,) = (contingency_tables(each, [scope]) for each in (ours, theirs))
            assert one.value.tolist() == other.value.tolist()
        assert matched_records(ours).value.tolist() == matched_records(theirs).value.tolist()

    ODD_COLUMNS = (
        ["1", " 1", "1.0", "+1e0", "true", "0", "-0.0", "a", "A", "a\0", "a\0b", "nan", " ", "\u0130", "p" * 500],
        [1.0, -0.0, 0.0, math.nan, math.inf, -math.inf, 2.0**53, 2.0**53 + 2, 0.1, 1e300],
        [1, 0, -1, 2**53, 2**53 + 1, 2**62, 7],
        [True, False, None],
        [*map(pd.Timestamp, ("2020-01-01", "2020-01-01 00:00:00.000001", "1969-12-31", "2020-01-02")), pd.NaT],
        [None, None, "x"],
    )

    @pytest.mark.parametrize("kind", ["csv", "parquet", "polars", "duckdb"])
    @pytest.mark.parametrize("names", ODD_COLUMNS, ids=range(len(ODD_COLUMNS)))
    def test_odd_identifiers_are_the_same_units_in_all(self, kind, names, tmp_path):
        rows = [[(k + j) % 3, ["no", "yes"][j % 2], name] for k, name in enumerate(names) for j in range(4)]
        data = pd.DataFrame(rows, columns=["a", "b", "who"])
        found = [table(each, 2) for each in (data, self.read(kind, data, tmp_path))]
        if kind == "csv" and any(isinstance(name, pd.Timestamp) for name in names):
            return  # a time of a column and the text that pandas writes for it are spelled otherwise
        if kind == "csv" and any(isinstance(name, float) for name in names):
            return  # texts there, "1.0" and "-0.0", whose draws are others
        assert table_units(found[0])[1] == table_units(found[1])[1]
        one, other = (contingency_tables(each, [("a", "b")])[0].value.tolist() for each in found)
        assert one == other
        one, other = (matched_records(each).value.tolist() for each in found)
        assert one == other

    def test_a_text_that_is_a_state_is_one_although_it_is_empty(self, tmp_path):
        data = pd.DataFrame({"a": ["", "x", ""], "who": ["u", "u", "v"]})
        data.to_csv(tmp_path / "records.csv", index=False)
        schema = {"a": ["", "x"]}
        private = table(tmp_path / "records.csv", 3, schema)
        assert np.bincount(shared_codes(private)[0][:, 0]).tolist() == [2, 1]


def _relation(records):
    duckdb = pytest.importorskip("duckdb")
    # On the default connection: older versions close one that nobody holds.
    return duckdb.from_arrow(pa.Table.from_pandas(records, preserve_index=False))


class TestPromises:
    def test_a_part_for_each_is_rounded_down(self):
        for m in range(1, 60):
            for whole in (1.0, 0.1, 1e-7, 3.0):
                assert Fraction(part_for_each(PureDP(whole), m).epsilon) * m <= Fraction(whole)
                assert Fraction(part_for_each(ZCDP(whole), m).rho) * m * m <= Fraction(whole)
                assert part_for_each(PureDP(whole), m).epsilon == pytest.approx(whole / m, rel=1e-15)

    def test_the_ledger_is_charged_for_persons_and_says_so(self):
        private = table(frame(PEOPLE), 2, ledger=Budget(rho=1.0))
        curator = TableCurator(private, Budget(rho=0.5), what="tables")
        assert (curator.unit_cost, curator.cost) == (ZCDP(0.5), ZCDP(0.125))
        curator.ask(Tables([("a",)]), 1)
        (entry,) = private.ledger.entries
        assert entry.cost == ZCDP(0.5) and entry.unit == "who"
        release = curator.release("marginals", {})
        assert release.guarantee == ZCDP(0.5) and release.noise[0].scale == pytest.approx(2.0)
        assert release.public["unit"] == "who" and release.public["rows_per_unit"] == 2
        assert release.n_records is None

    def test_a_ledger_takes_persons_or_single_records(self):
        ledger = Ledger(Budget(epsilon=2.0))
        check_schema(table(frame(PEOPLE), 1, ledger=ledger), Budget(epsilon=0.5))
        with pytest.raises(ValueError, match="unit"):
            check_schema(PrivateTable(frame(PEOPLE), STATES, ledger=ledger), Budget(epsilon=0.5))

    def test_one_record_of_each_has_the_noise_and_public_number_of_single_records(self):
        private = table(frame(PEOPLE), 1, adjacency="replace_one", n_records=3)
        assert private.n_records == private.n_units == 3
        assert table(frame(PEOPLE), "shares", adjacency="replace_one", n_records=3).n_records == 3
        several = table(frame(PEOPLE), 2, adjacency="replace_one", n_records=3)
        assert (several.n_records, several.n_units) == (None, 3)

    def test_parts_are_of_whole_persons(self):
        data = frame({f"p{k}": [(k % 3, "no")] * 3 for k in range(60)})
        private = table(data, 3, ledger=Budget(rho=1.0))
        with TableCurator(private, Budget(rho=1.0), what="").split(2) as parts:
            owners = [table_units(part._data)[2] for part in parts]
            assert [set(np.bincount(owner).tolist()) for owner in owners] == [{3}, {3}]
            assert sum(table_units(part._data)[1] for part in parts) == 60
            with pytest.raises(ValueError, match="random part"):
                parts[0].ask(MatchedCounts(), 1)

    def test_samples_are_of_whole_persons(self):
        data = frame({f"p{k}": [(k % 3, "no")] * 4 for k in range(200)})
        curator = GradientCurator(
            table(data, 4, ledger=Budget(epsilon=1.0, delta=1e-3)),
            Budget(epsilon=1.0, delta=1e-3),
            [("a",)],
            n_steps=2,
            batch_rate=0.5,
        )
        taken = table_units(curator._data)[2][curator._taking_part(shared_codes(curator._data)[0])]
        assert set(np.bincount(taken).tolist()) <= {0, 4} and 20 < len(set(taken.tolist())) < 180
        assert curator.bound == 4 * curator._grid.bound

    @pytest.mark.parametrize("epsilon", [0.5, 2.0])
    def test_noise_of_shares_is_that_of_counts(self, epsilon):
        data = frame({f"p{k}": [(0, "no"), (1, "no")] for k in range(100)})
        private = table(data, "shares", {"a": [0, 1]}, ledger=Budget(epsilon=epsilon * 400))
        found = []
        for _ in range(400):
            curator = TableCurator(private, Budget(epsilon=epsilon), what="", random_state=len(found))
            found += (curator.ask(Tables([("a",)]), 1)[0] - 100).tolist()
        sd = math.sqrt(2.0) / epsilon
        # Kurtosis 6: the standard error of a variance is sqrt(5/800) of it; five of them. Halves are rounded.
        assert abs(np.var(found) / (sd**2 + 1 / 12) - 1) < 5 * math.sqrt(5 / 800) + 0.05

    def test_what_can_fail_needs_a_proof_for_units(self):
        private = table(frame(PEOPLE), 2, ledger=Budget(epsilon=1.0, delta=1e-3))
        curator = TableCurator(private, Budget(epsilon=1.0, delta=1e-3), what="", reserve=1e-4)
        with pytest.raises(ValueError, match="rows_per_unit=1"):
            curator.ask(Tables([("a",)]), 1, 1e-5)
        assert curator.left == 1

    def test_what_is_shown_is_public(self):
        assert repr(table(frame(PEOPLE), 2)) == (
            "PrivateTable(2 variables, unit='who', rows_per_unit=2, adjacency='add_remove', n_records=None, "
            "spent 0-DP of 1-DP)"
        )
        assert "1-DP" in repr(TableCurator(table(frame(PEOPLE), 2), Budget(epsilon=1.0), what=""))
        assert repr(UnitBudget(epsilon=1.0, rows=2)).startswith("UnitBudget")


class TestArguments:
    @pytest.mark.parametrize("rows", [0, -1, 1.5, "all", None, True, 1 << 21, [2]])
    def test_numbers_of_rows_that_are_none(self, rows):
        with pytest.raises(ValueError, match="rows_per_unit"):
            table(frame(PEOPLE), rows)

    def test_rows_without_a_unit_and_a_unit_that_is_a_variable(self):
        with pytest.raises(ValueError, match="pass unit"):
            PrivateTable(frame(PEOPLE), STATES, ledger=Budget(epsilon=1.0), rows_per_unit=2)
        with pytest.raises(ValueError, match="variable of the schema"):
            PrivateTable(frame(PEOPLE), STATES, ledger=Budget(epsilon=1.0), unit="a")
        with pytest.raises(ValueError, match="no column"):
            PrivateTable(frame(PEOPLE), STATES, ledger=Budget(epsilon=1.0), unit="nobody")

    def test_gradients_of_samples_refuse_replaced_persons_of_several_rows(self):
        graph = nx.Graph([("a", "b")])
        private = table(frame(PEOPLE), 2, ledger=Budget(rho=1.0), adjacency="replace_one", n_records=3)
        with pytest.raises(ValueError, match="rows_per_unit"):
            PrivateSGD(rho=1.0, adjacency="replace_one").fit(graph, private)
        assert not private.ledger.entries

    def test_a_block_function_that_takes_no_weights_is_refused_before_the_debit(self):
        def without(codes, rng):
            return ()

        curator = TableCurator(table(frame(PEOPLE), "shares"), Budget(epsilon=1.0), what="")
        for arguments, function in (({}, without), ({"weights": 1}, lambda codes, rng, weights: ())):
            with pytest.raises(ValueError, match="rows_per_unit=m"):
                curator.ask(EdgeVotes(function, arguments, 2, 1, vouched_for=True), 1)
        assert curator.left == 1

    def test_noise_beyond_the_parts_of_a_record_makes_them_larger(self):
        """Scales of 2**28 and more: no refusal after the ledger was charged."""
        data = frame(PEOPLE)
        curator = TableCurator(table(data, "shares", ledger=Budget(epsilon=1.0)), Budget(epsilon=1.0), what="")
        wide, narrow = [contingency_tables(curator._data, [("a",)], curator.facts.parts(2.0**k))[0] for k in (30, 0)]
        assert wide.value.tolist() == [2**18 // 3, 2**18 // 3 + 2**18, 2**18 // 3 + 5 * (2**18 // 5)]
        assert (wide.l1, narrow.l1) == (2**18, 2**20)
        asked = (
            lambda: curator.ask(Tables([("a",)]), 1e-9),
            lambda: curator.ask(MatchedCounts(), 1e-9),
            lambda: curator.ask(WorstFit([("a",)], [np.zeros(3)]), 1e-9),
            lambda: curator.ask(RecordCount(), 1e-9),
        )
        for ask in asked:
            ask()
        assert len(curator.answers) == 4 and max(answer.noise[0].scale for answer in curator.answers[:2]) > 2**29
        fit = NaiveMLE(epsilon=1e-9, state_names=STATES, random_state=0)
        assert fit.fit(nx.Graph([("a", "b")]), data, unit="who", rows_per_unit="shares").privacy_.unit == "who"


BINARY = {"b": ["no", "yes"], "c": [0, 1], "d": [0, 1]}


def binary_people(n: int = 40, seed: int = 0) -> pd.DataFrame:
    """Persons of one to nine rows, one of 3000, some rows nobody's, some outside the schema."""
    rng = np.random.default_rng(seed)
    who = np.concatenate([np.repeat(np.arange(n), rng.integers(1, 10, n)), np.full(3000, n)]).astype(object)
    who[rng.random(len(who)) < 0.02] = None
    columns = {"b": rng.choice(["no", "yes", "?"], len(who), p=[0.3, 0.65, 0.05])}
    columns |= {name: rng.integers(0, 2, len(who)) for name in "cd"}
    return pd.DataFrame(columns | {"who": who})


class TestShares:
    """What operators of records count by shares, against sums that are made person by person."""

    DATA = binary_people()

    def curator(self, rho=1e12, adjacency="add_remove", schema=BINARY):
        private = table(self.DATA, "shares", schema, ledger=Budget(rho=rho), adjacency=adjacency, n_records=None)
        return TableCurator(private, Budget(rho=rho), what="shares")

    def by_person(self, value):
        """The sum over persons of the mean over their rows, with 0 for those outside the schema, of an array a row."""
        total = 0.0
        for _, own in self.DATA[self.DATA["who"].notna()].groupby("who"):
            inside = own[own["b"] != "?"]
            codes = np.column_stack([(inside["b"] == "yes"), inside["c"], inside["d"]]).astype(int)
            total = total + sum((value(code) for code in codes), np.zeros(np.shape(value(np.zeros(3, int))))) / len(own)
        return total

    def test_parities_and_counts(self):
        def parities(code):
            z = 2 * code - 1
            return np.array([*z, z[0] * z[1], z[0] * z[2], z[1] * z[2], 1])

        expected = self.by_person(parities)
        sums, number = self.curator().ask(ParitySums(2, with_count=True), 1)
        assert np.abs(np.append(sums, number) - expected).max() < 0.6
        family = [(0,), (0, 2)]
        found = self.curator().ask(ParitySums(family), 1)[0]
        assert np.abs(found - expected[[0, 4]]).max() < 0.6
        assert abs(self.curator().ask(RecordCount(), 1) - expected[-1]) < 0.6
        far = expected[:-1].copy()
        far[3] += 30
        assert self.curator().ask(WorstParity(2, far), 1) == 3
        assert self.curator().ask(WorstParity(2, far, signed=True), 1) == 3 + 6

    def test_interactions(self):
        def products(code):
            u = 2 * np.eye(2)[code] - 1
            return np.concatenate(
                [u.ravel(), *(np.outer(u[i], u[j]).ravel() for i, j in [(0, 1), (0, 2), (1, 2)]), [1]]
            )

        found = np.concatenate(self.curator().ask(InteractionSums(with_count=True), 1))
        assert np.abs(found - self.by_person(products)).max() < 0.6

    def test_interactions_of_many_states_fit_64_bits(self):
        schema = {"b": ["no", "yes"], "c": list(range(7)), "d": list(range(13)), "e": list(range(23))}
        data = self.DATA.assign(e=0)
        private = table(data, "shares", schema, ledger=Budget(rho=1e12))
        fields, pairs = TableCurator(private, Budget(rho=1e12), what="").ask(InteractionSums(), 1)
        (counts,) = contingency_tables(private, [("b", "c")])
        k = np.array([2, 7])
        shares = counts.value / GRID
        wanted = k.prod() * shares - 7 * shares.sum(0) - 2 * shares.sum(1)[:, None] + shares.sum()
        unit = math.prod(InteractionUnits((2, 7, 13, 23)).multipliers[:2])
        assert unit == 2048 * 585  # L is 4096
        # Of the person of 3000 rows 4096 parts leave three quarters of a record.
        assert np.abs(pairs[:14].reshape(2, 7) / unit - wanted).max() < 4.0 and np.abs(fields).max() < 2**40

    def test_regressions(self):
        curator = self.curator(rho=1e14)
        layout = regression_layout("ising", [2, 2, 2])
        path = RegressionPath(curator, layout, 10)
        zero = np.zeros(layout.n_regressions, dtype=int)
        rows = np.array([columns[columns >= 0][0] for columns in layout.columns])
        found = path.vertices(rows, zero, 1.0, Fraction(1, 2))

        def gradients(code):
            x, z = np.append(2 * code - 1, 1), 2 * code - 1
            return np.array([[-z[i] / 2 * x[f] for f in range(4)] for i in range(3)])

        total = self.by_person(gradients)
        q = layout.columns.shape[1]
        for r, (node, columns) in enumerate(zip(layout.nodes, layout.columns, strict=True)):
            best = columns[found[r] % q]
            own = np.abs(total[node][columns[columns >= 0]])
            assert own.max() - abs(total[node][best]) < 1e-3
            assert np.sign(total[node][best]) == (-1 if found[r] < q else 1)
        assert path._sums is not None and path._sums._engine._repeats.sum() <= 41 * 2**16

    def test_steps_and_counts_of_samples(self):
        private = table(self.DATA, "shares", BINARY, ledger=Budget(rho=1e10))
        curator = GradientCurator(private, Budget(rho=1e10), [("b", "c"), ("d",)], clip_norm=10.0, n_steps=2)
        marginals = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.5])

        def gradient(code):
            e = np.zeros(6)
            e[2 * code[0] + code[1]], e[4 + code[2]] = 1, 1
            return e - marginals

        assert np.abs(curator.step(marginals) * curator.unit_size - self.by_person(gradient)).max() < 0.1
        assert abs(curator.count() - self.by_person(lambda code: 1.0)) < 0.6
        sampled = GradientCurator(
            table(self.DATA, "shares", BINARY, ledger=Budget(epsilon=1.0, delta=1e-3)),
            Budget(epsilon=1.0, delta=1e-3),
            [("b",)],
            n_steps=2,
            batch_rate=0.5,
        )
        owner = table_units(sampled._data)[2]
        taken = np.isin(np.arange(len(owner)), sampled._taking_part(sampled._data._records.codes()))
        assert all(len(set(taken[owner == k])) <= 1 for k in range(41)) and 5 < len(set(owner[taken])) < 36

    def test_parts_are_of_whole_persons_and_keep_their_shares(self):
        curator = self.curator(rho=1e14)
        with curator.split(3) as parts:
            sums = sum(part.ask(Tables([("b", "c")]), Fraction(1, 4))[0] for part in parts)
            halves = sum(part.ask(ParitySums(1), Fraction(1, 4))[0] for part in parts)
            assert sum(table_units(part._data)[1] for part in parts) == 40
        assert np.abs(sums - curator.ask(Tables([("b", "c")]), Fraction(1, 4))[0]).max() <= 2
        assert np.abs(halves - curator.ask(ParitySums(1), Fraction(1, 4))[0]).max() <= 2

    def test_blocks_get_the_weights_of_their_records(self):
        seen = []

        def graph(codes, rng, weights):
            seen.append((codes, weights))
            return (0,) if weights.sum() > 1 else ()

        curator = self.curator(rho=1e12)
        votes = curator.ask(EdgeVotes(graph, {}, 5, 1, vouched_for=True), 1)
        assert votes.tolist() == [sum(weights.sum() > 1 for _, weights in seen), 0, 0]
        assert all(len(codes) == len(weights) for codes, weights in seen)
        assert abs(sum(weights.sum() for _, weights in seen) - self.by_person(lambda code: 1.0)) < 0.01
        heavy = [codes for codes, weights in seen if len(codes) > 2500]
        assert len(heavy) == 1  # the person of 3000 rows is in one block

    @pytest.mark.parametrize("learner", ["chow-liu", "inverse-covariance", "logistic"])
    def test_learners_of_blocks_take_weights(self, learner):
        rng = np.random.default_rng(3)
        codes = rng.integers(0, 2, (60, 3))
        times = rng.integers(1, 5, 60)
        found = plan_blocks(Schema(BINARY), vote_settings(1.5, 0.1, learner))
        repeated, weighted = found.scores(np.repeat(codes, times, axis=0)), found.scores(codes, times.astype(float))
        assert np.abs(repeated - weighted).max() < 1e-6 and repeated.max() > 0.01

    @pytest.mark.parametrize(
        "estimator",
        [
            EdgeVoting(1.5, 0.5, epsilon=1.0, state_names=BINARY),
            PrivateIsing(2.0, epsilon=1.0, delta=1e-6, state_names=BINARY),
            PrivateBinaryMRF(2.0, rho=1.0, state_names=BINARY),
            PrivatePairwise(2.0, epsilon=1.0, state_names=BINARY),
            StableStructure(1.5, 0.5, epsilon=1.0, delta=1e-3, state_names=BINARY),
        ],
        ids=lambda e: type(e).__name__,
    )
    def test_estimators_of_records_take_shares(self, estimator):
        fit = estimator.fit(self.DATA, unit="who", rows_per_unit="shares")
        assert fit.privacy_.unit == "who"

    def test_gradient_learners_take_shares_under_both_adjacencies(self):
        for adjacency, n in (("add_remove", None), ("replace_one", 41)):
            estimator = PrivateSGD(rho=1.0, state_names=BINARY, adjacency=adjacency, n_records=n, n_steps=3)
            fit = estimator.fit(nx.Graph([("b", "c"), ("c", "d")]), self.DATA, unit="who", rows_per_unit="shares")
            assert fit.privacy_.unit == "who"


class TestEstimators:
    DATA = frame({f"p{k}": [(k % 3, "yes" if k % 3 else "no")] * (1 + k % 4) for k in range(900)})
    GRAPH = nx.Graph([("a", "b")])

    @pytest.mark.parametrize("rows", [None, 2, "shares"])
    def test_fit_takes_a_unit(self, rows):
        for estimator in (NaiveMLE, CollectiveMAP):
            fit = estimator(rho=1.0, state_names=STATES).fit(self.GRAPH, self.DATA, unit="who", rows_per_unit=rows)
            assert fit.privacy_.unit == "who" and "all rows of one 'who'" in str(fit.privacy_)
            expected = {None: 900, 2: 900 + 675, "shares": 900}[rows]
            assert abs(fit.n_records_ - expected) < 60
        fit = PrivateNetwork(rho=1.0, state_names=STATES).fit(self.DATA, unit="who", rows_per_unit=rows)
        assert fit.privacy_.unit == "who" and fit.graph_.has_edge("a", "b")

    def test_seeded_fits_are_repeatable(self):
        fits = [
            NaiveMLE(rho=1.0, state_names=STATES, random_state=3).fit(self.GRAPH, self.DATA, unit="who")
            for _ in range(2)
        ]
        assert fits[0].release_.values[0].tolist() == fits[1].release_.values[0].tolist()

    def test_short_forms_take_a_unit(self):
        assert learn(self.DATA, Budget(rho=1.0), STATES, unit="who").privacy_.unit == "who"
        found = check_schema(self.DATA, Budget(rho=1.0), STATES, unit="who", rows_per_unit="shares")
        assert found.privacy_.unit == "who" and abs(found.n_records - 900) < 30
        model = MarkovNetwork([("a", "b")]).fit(self.DATA, NaiveMLE(rho=1.0, state_names=STATES), unit="who")
        assert model.privacy.unit == "who"

    def test_a_table_that_is_passed_must_agree(self):
        private = table(self.DATA, 2, ledger=Budget(rho=2.0))
        for other in ({"unit": "b"}, {"rows_per_unit": 1}):
            with pytest.raises(ValueError, match="differs from the PrivateTable's"):
                PrivateNetwork(rho=1.0).fit(private, **other)
        assert PrivateNetwork(rho=1.0).fit(private, unit="who", rows_per_unit=2).privacy_.unit == "who"

    def test_more_rows_need_more_noise(self):
        scales = [
            NaiveMLE(epsilon=1.0, state_names=STATES)
            .fit(self.GRAPH, self.DATA, unit="who", rows_per_unit=rows)
            .release_.noise[0]
            .scale
            for rows in (1, 2, 4, "shares")
        ]
        assert scales == [1.0, 2.0, 4.0, 1.0]


FINE = Schema(
    {"x": Number(0, 60), "b": ["no", "yes"], "z": Number(0, 9, resolution=1, missing="drop")},
    impossible=["x < 30 -> b = no"],
)
_OF_X = FINE.fine().numbers["x"].cuts
PLACES = {"x": [*(int(low >= 30) for low in (0, *_OF_X)), 2], "z": [0, 0, 0, 1, 1, 1, 1, 2, 2, 2]}
MERGED = FINE.replaced({"x": Number(0, 60, bins=2), "z": FINE.numbers["z"].with_cuts([3, 7])})


def ages(n: int = 60, seed: int = 0) -> pd.DataFrame:
    """About `n` persons of one to four rows; some break the rule, and some are dropped."""
    rng = np.random.default_rng(seed)
    who = np.repeat(np.arange(n), rng.integers(1, 5, n))
    x, z = rng.integers(0, 61, len(who)), rng.integers(0, 11, len(who)).astype(float)
    return pd.DataFrame({"x": x, "b": rng.choice(["no", "yes"], len(who)), "z": np.where(z > 9, np.nan, z), "who": who})


class TestNumbersThatAreNotDivided:
    """Fine grids, rules and persons together: who counts is drawn on the grid, and cells merge after that."""

    @staticmethod
    def exact(data, rows, scope):
        (found,) = contingency_tables(table(data, rows, FINE), [scope])
        return found.value / (GRID if rows == "shares" else 1)

    @pytest.mark.parametrize("rows", [2, "shares"])
    @pytest.mark.parametrize("kind", ["memory", "duckdb", "csv"])
    def test_merged_tables_are_sums_of_fine_ones(self, rows, kind, tmp_path):
        data = ages()
        if kind == "csv":
            data.to_csv(tmp_path / "ages.csv", index=False)
        records = tmp_path / "ages.csv" if kind == "csv" else _relation(data) if kind == "duckdb" else data
        curator = TableCurator(
            table(records, rows, FINE, ledger=Budget(rho=1e7)), Budget(rho=1e7), what="ages", fine=True
        )
        exact = {scope: self.exact(data, rows, scope) for scope in [("x", "z"), ("b", "x")]}
        fine = curator.ask(Tables(list(exact)), Fraction(1, 4))
        matched = curator.ask(MatchedCounts(), Fraction(1, 8))
        curator.merge(MERGED, PLACES)
        merged = curator.ask(Tables(list(exact)), Fraction(1, 4))
        # There is next to no noise; a half of a record, by shares, is rounded either way.
        for (scope, true), one, other in zip(exact.items(), fine, merged, strict=True):
            assert true.sum() > 40 and np.abs(one - true).max() < 0.51
            assert np.abs(other - merged_cells(true, [PLACES.get(name) for name in scope])).max() < 0.51
        assert np.abs(curator.ask(MatchedCounts(), Fraction(1, 8)) - matched).max() <= 1
        release = curator.release("marginals", {})
        assert release.public["unit"] == "who" and release.public["rows_per_unit"] == rows

    def test_parts_of_merged_persons_are_of_whole_persons(self):
        curator = TableCurator(table(ages(), 2, FINE, ledger=Budget(rho=1e6)), Budget(rho=1e6), what="x", fine=True)
        curator.merge(MERGED, PLACES)
        with curator.split(3) as parts:
            owners = [table_units(part._data) for part in parts]
            sums = sum(part.ask(Tables([("x", "z")]), Fraction(1, 2))[0] for part in parts)
            assert all(part._data._rows_of_unit == 2 and part.cost == curator.cost for part in parts)
        assert sum(count for _, count, _ in owners) == 60
        assert sums.tolist() == curator.ask(Tables([("x", "z")]), Fraction(1, 2))[0].tolist()

    @pytest.mark.parametrize("rows", [pytest.param(2, marks=pytest.mark.slow), "shares"])
    def test_fits_have_merged_cells_and_obey_the_rules(self, rows):
        fit = PrivateNetwork(rho=4.0, state_names=FINE, random_state=0).fit(ages(3000), unit="who", rows_per_unit=rows)
        assert fit.privacy_.unit == "who" and 3 < len(fit.model_.states["x"]) <= 34
        drawn = fit.model_.sample(2000, random_state=0)
        young = drawn[drawn.x.astype(float) < 30]
        assert len(young) > 100 and set(young.b) == {"no"} and drawn.x.astype(float).max() <= 60

    def test_dates_and_spellings(self, tmp_path):
        days = pd.DataFrame(
            {"day": ["2020-01-02", "?", " 2020-01-03", "2020-01-03"] * 5, "who": np.repeat(range(5), 4)}
        )
        schema = Schema({"day": Date("2020-01-01", "2020-01-04")}, missing=["?"], strip=True)
        days.to_csv(tmp_path / "days.csv", index=False)
        for records in (days, tmp_path / "days.csv", _relation(days)):
            (found,) = contingency_tables(table(records, 4, schema), [("day",)])
            assert found.value.tolist() == [0, 5, 10, 0, 5]

    @pytest.mark.parametrize(
        ("rows", "adjacency"),
        [
            (2, "add_remove"),
            ("shares", "replace_one"),
            pytest.param(2, "replace_one", marks=pytest.mark.slow),
            pytest.param("shares", "add_remove", marks=pytest.mark.slow),
        ],
    )
    def test_replay_finds_nothing(self, rows, adjacency):
        reports = self.replayed(rows, adjacency)
        assert all(report.holds for report in reports), reports
        ratios = [report.movement["tables"] for report in reports]
        assert 0.99 <= min(ratios) <= max(ratios) <= 1.0 + 1e-9

    @pytest.mark.parametrize("rows", [2])  # who forgets that they are shares counts persons of several rows nowhere
    def test_replay_sees_merged_tables_that_forget_their_persons(self, rows, monkeypatch):
        true = PrivateTable._merged

        def forgetting(self, schema, places):
            made = true(self, schema, places)
            made._rows_per_unit = 1
            return made

        monkeypatch.setattr(PrivateTable, "_merged", forgetting)
        assert not any(report.holds for report in self.replayed(rows, "add_remove"))

    @staticmethod
    def replayed(rows, adjacency):
        one, other = (
            {"x": [x] * 4, "b": [b] * 4, "z": [z] * 4, "who": ["odd"] * 4} for x, b, z in [(3, "no", 0), (59, "yes", 9)]
        )
        people, n = ages(20), None
        data = pd.concat([people, pd.DataFrame(one)], ignore_index=True)
        if adjacency == "replace_one":
            people, n = pd.concat([people, pd.DataFrame(other)], ignore_index=True), 21

        def learned(frame):
            estimator = PrivateNetwork(rho=0.5, state_names=FINE, adjacency=adjacency, n_records=n, n_rounds=2)
            return estimator.fit(frame, unit="who", rows_per_unit=rows)

        def known(frame):
            estimator = NaiveMLE(rho=0.5, state_names=FINE, adjacency=adjacency, n_records=n)
            return estimator.fit(nx.Graph([("x", "b"), ("b", "z")]), frame, unit="who", rows_per_unit=rows)

        return [replay(fit, data, people) for fit in (learned, known)]
