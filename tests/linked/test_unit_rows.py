"""The rows of a parent with all its children: what they are, and that no other parent's rows ever move them."""

from __future__ import annotations

import math
import time
import warnings
from collections import Counter
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pgmpy_dp import Budget, Date, Ledger, Number, PrivateTable, Schema, check_schema
from pgmpy_dp.linked.operators.linked_schema import LinkedSchema
from pgmpy_dp.linked.operators.linked_tables import PrivateLinkedTables, table_of_kinds
from pgmpy_dp.linked.operators.unit_kinds import KIND, KINDS, kinds_schema
from pgmpy_dp.linked.operators.wide_table import wide_table
from pgmpy_dp.private.data.contributions import GRID
from pgmpy_dp.private.data.table import contingency_tables
from tests.linked.families import CHILD, KEY, PARENT, SCHEMA, frames, measure, naive_rows, tables

pytestmark = pytest.mark.filterwarnings("ignore::pgmpy_dp.GuessedTypesWarning")

CHAIN = LinkedSchema(
    PARENT,
    {"day": Date("2020-01-01", "2020-12-31", bins=3), "sex": ["f", "m"]},
    key="house",
    most=4,
    order=["day"],
)


def difference(first, second) -> dict:
    return {row: d for row in {*first, *second} if (d := first.get(row, 0) - second.get(row, 0))}


class TestRowsAreThoseOfTheDefinition:
    @pytest.mark.parametrize("n", range(7))
    def test_up_to_six_children(self, n):
        rng = np.random.default_rng(n)
        children = [(int(rng.integers(3)), int(rng.integers(2))) for _ in range(n)]
        raw = [("h", [5, 30, 80][age], "fm"[sex]) for age, sex in children]
        found = measure(tables(*frames([("h", "s")], raw)))
        adults = sum(age > 0 for age, _ in children)
        assert dict(found) == dict(naive_rows(1, children, 7, adults))
        assert GRID - 120 <= sum(found.values()) <= GRID

    @pytest.mark.parametrize("n", [7, 8, 30, 10_000])
    def test_of_more_there_are_15_pairs_in_both_orders(self, n):
        # Every child is another one, by a column of its own.
        schema = LinkedSchema(PARENT, {"who": [*range(7)]}, key="house", most=7)
        children = pd.DataFrame({"house": ["h"] * n, "who": [k % 7 for k in range(n)]}, dtype=object)
        parents, _ = frames([("h", "n")], [])
        start = time.process_time()
        rows = tables(parents, children, schema)._records.codes()
        assert len(rows) == 30 and time.process_time() - start < 5.0
        own = Counter(map(tuple, rows[:, -2:].tolist()))
        assert all(own[row[::-1]] == own[row] for row in own)
        assert set(rows[:, 1].tolist()) == {min(n, 7) + 1}  # the pattern of so many

    def test_these_are_of_nearly_all_children_and_others_with_another_key(self, monkeypatch):
        schema = LinkedSchema({"house": [f"h{k}" for k in range(20)]}, {"who": [*range(12)]}, key="house ", most=12)
        homes = [f"h{k}" for k in range(20)]
        children = pd.DataFrame([(h, j) for h in homes for j in range(12)], columns=["house ", "who"], dtype=object)
        parents = pd.DataFrame({"house": homes, "house ": homes}, dtype=object)
        found = []
        for key in (KEY, KEY[::-1]):
            monkeypatch.setattr("tests.linked.families.KEY", key)
            rows = tables(parents, children, schema)._records.codes()
            found.append(measure(tables(parents, children, schema)))
            for k in range(20):
                assert len(set(rows[rows[:, 0] == k][:, -1].tolist())) >= 10  # 15 pairs beside one another: as few as 6
        assert len(found[0].keys() & found[1].keys()) < 0.4 * len(found[0])  # of 132 pairs each draws 30

    def test_more_children_that_meet_a_condition_than_count_are_as_many_as_count(self):
        adults = [("h", 30, "f")] * 9
        assert set(tables(*frames([("h", "n")], adults))._records.codes()[:, 1].tolist()) == {SCHEMA.most}

    def test_slots_are_exchangeable_to_the_last_part(self):
        rng = np.random.default_rng(0)
        sizes = rng.integers(0, 10, 300)
        parents = [(f"h{k}", "ns"[k % 2]) for k in range(300)]
        children = [(f"h{k}", rng.integers(99), "fm?"[rng.integers(3)]) for k in range(300) for _ in range(sizes[k])]
        private = tables(*frames(parents, children))
        scopes = [("a.age", "b.sex"), ("b.age", "a.sex"), ("region", "a.age"), ("region", "b.age")]
        one, two, three, four = (t.value for t in contingency_tables(private, scopes))
        assert (one == two).all() and (three == four).all()

    @pytest.mark.parametrize(("n", "most"), [(9, 7), (5, 3), (4, 1)])
    def test_each_child_is_as_likely_in_a_slot(self, n, most):
        schema = LinkedSchema(PARENT, {"who": [*range(n)]}, key="house", most=most)
        homes = [f"h{k}" for k in range(2_000)]
        children = pd.DataFrame([(h, j) for h in homes for j in range(n)], columns=["house", "who"], dtype=object)
        (counts,) = contingency_tables(tables(frames([(h, "n") for h in homes], [])[0], children, schema), [("a.who",)])
        shares = counts.value[:n] / GRID / 2_000
        shares /= shares.sum()  # of one child each row has a slot without
        # A child's share of a family is between 0 and 1, so its variance is at most this: five deviations.
        assert np.abs(shares - 1 / n).max() < 5 * math.sqrt((1 - 1 / n) / n / 2_000)
        assert most < 2 or counts.value[n:].sum() == 0

    def test_a_chain_has_a_row_for_each_child_with_the_one_before(self):
        days = ["2020-01-05", "2020-11-05", "2020-06-05"]
        children = pd.DataFrame({"house": ["h"] * 3, "day": days, "sex": ["f", "m", "m"]}, dtype=object)
        private = tables(frames([("h", "n"), ("i", "s")], [])[0], children, CHAIN)
        assert private._declared.variables == ("region", "n", "rank", "a.day", "a.sex", "b.day", "b.sex")
        third, absent = GRID // 3, (4, 2)
        assert dict(measure(private)) == {
            (0, 3, 1, 0, 0, *absent): third,
            (0, 3, 2, 1, 1, 0, 0): third,
            (0, 3, 3, 2, 1, 1, 1): third,
            (1, 0, 0, *absent, *absent): GRID,
        }

    def test_a_child_outside_the_schema_costs_nothing_and_a_parent_outside_its_family(self):
        children = [("h", "?", "f"), ("h", 3, "x"), ("i", 3, "f")]
        rows = tables(*frames([("h", "n"), ("i", "?")], children))._records
        assert rows.rows().n_units == 1 and rows.codes()[:, 2].tolist() == [3, 3]
        assert {tuple(cell) for row in rows.codes().tolist() for cell in (row[3:5], row[5:7])} == {(4, 0), (0, 3)}

    def test_without_parents_each_key_is_one(self):
        schema = LinkedSchema(None, CHILD, key="house", most=3)
        _, children = frames([], [("h", 3, "f"), ("h", 70, "m"), (None, 3, "f"), (7, 3, "f"), ("7", 4, "m")])
        private = tables(None, children, schema)
        assert private._records.rows().n_units == 2
        assert Counter(private._records.codes()[:, 0].tolist()) == {2: 4}


KEYS = st.sampled_from(["h", "i", "j", "", " ", 1, "1", 1.0, "1.0", True, None, math.nan, 10**30, b"h", ("h",)])
AGES = st.sampled_from([0, 17, 18, 18.0, "18", 64.9, 65, 99, 120, -1, None, math.nan, "?", "", math.inf, 10**400])
SEXES = st.sampled_from(["f", "m", "F", None, 1, "?"])
OWN_AGES, OWN_SEXES = st.sampled_from([3, 30, 70, None]), st.sampled_from(["f", "m", "?"])


@settings(max_examples=60, deadline=None)
@given(
    parents=st.lists(st.tuples(KEYS, st.sampled_from(["n", "s", "?"])), max_size=6),
    children=st.lists(st.tuples(KEYS, AGES, SEXES), max_size=14),
    own=st.lists(st.sampled_from(["n", "s", "?"]), max_size=2),
    own_children=st.lists(st.tuples(OWN_AGES, OWN_SEXES), max_size=12),
    seed=st.integers(0, 9),
    chain=st.booleans(),
)
@example([("h", "n")], [], ["n"], [(3, "f")] * 12, 0, False)  # equal children
@example([("h", "n")], [("h", 3, "f")] * 9, [], [(3, "f")] * 3, 0, False)  # orphans
@example([("h", "n")], [("h", 3, "f")], ["n", "s"], [(3, "f")] * 3, 0, False)  # a parent twice
def test_a_unit_moves_its_own_rows_alone(parents, children, own, own_children, seed, chain):
    """Whoever else is there, in whatever order: what a unit adds is what it has alone, of sum at most 1."""
    rng = np.random.default_rng(seed)
    schema = SCHEMA if not chain else LinkedSchema(PARENT, CHILD, key="house", most=4, order=["age"])

    def made(parents, children):
        shuffled = [frame.iloc[rng.permutation(len(frame))] for frame in frames(parents, children)]
        return tables(*shuffled, schema)

    unit = [("odd", region) for region in own], [("odd", age, sex) for age, sex in own_children]
    without, alone = made(parents, children), made(*unit)
    both = made([*unit[0], *parents], [*children, *unit[1]])
    added = difference(measure(both), measure(without))
    assert added == dict(measure(alone)) and sum(added.values()) <= GRID
    assert all(weight > 0 for weight in added.values())
    assert both._records.rows().n_units == without._records.rows().n_units + alone._records.rows().n_units
    kinds = [measure(table_of_kinds(private)) for private in (both, without, alone)]
    moved = difference(*kinds[:2])
    assert moved == dict(kinds[2]) and sum(moved.values()) <= GRID and all(weight > 0 for weight in moved.values())


@pytest.mark.parametrize("order", [(), ["who"], ["sort"]], ids=["pairs", "chain", "ties"])
@pytest.mark.parametrize("most", [7, 12])
def test_a_large_family_moves_no_pairs_of_the_others(order, most):
    """The others draw, too: who of them is in a slot, and beside whom, is the same wherever the one more comes."""
    child = {"who": [*range(12)], "sort": ["x", "y"]}
    schema = LinkedSchema(PARENT, child, key="house", most=most, order=order)
    sizes = {"odd": 9} | {f"h{k}": 7 + k % 6 for k in range(12)}

    def made(homes):
        rows = [(home, k, "xy"[k % 2]) for home in homes for k in range(sizes[home])]
        parents = frames([(home, "ns"[sizes[home] % 2]) for home in homes], [])[0]
        return tables(parents, pd.DataFrame(rows, columns=["house", "who", "sort"], dtype=object), schema)

    others = [home for home in sizes if home != "odd"]
    without, alone = measure(made(others)), dict(measure(made(["odd"])))
    for homes in (["odd", *others], [*others[:6], "odd", *others[6:]], [*others, "odd"]):
        assert difference(measure(made(homes)), without) == alone and sum(alone.values()) <= GRID


@settings(max_examples=60, deadline=None)
@given(
    others=st.lists(st.tuples(st.sampled_from("hij"), OWN_AGES, OWN_SEXES), max_size=9),
    family=st.lists(st.tuples(OWN_AGES, OWN_SEXES), max_size=11),
    before=st.tuples(OWN_AGES, OWN_SEXES) | st.none(),
    after=st.tuples(OWN_AGES, OWN_SEXES) | st.none(),
)
def test_one_child_moves_a_table_by_two_in_l1_and_the_root_of_two_in_l2(others, family, before, after):
    parents = [(h, "n") for h in ("h", "i", "odd")]
    found = []
    for child in (before, after):
        own = [("odd", *cell) for cell in [*family, *([] if child is None else [child])]]
        found.append(tables(*frames(parents, [*others, *own])))
    for rows in (found, [table_of_kinds(private) for private in found]):
        moved = difference(*map(measure, rows)).values()
        assert sum(map(abs, moved)) <= 2 * GRID and sum(d * d for d in moved) <= 2 * GRID**2


def test_a_child_that_moves_to_another_parent_moves_a_table_by_four_in_l1_and_two_in_l2():
    parents = [("x", "n"), ("y", "s")]
    first, second = ([("x", 3, "f"), (home, 3, "f")] for home in "xy")
    moved = difference(*(measure(tables(*frames(parents, some))) for some in (first, second))).values()
    assert 3.99 * GRID < sum(map(abs, moved)) <= 4 * GRID and sum(d * d for d in moved) <= 4 * GRID**2


@pytest.mark.parametrize("number", [False, True])
def test_what_it_cost_to_find_a_schema_stays_with_the_wide_table(number):
    cost = {"guarantee": {"kind": "pure", "epsilon": 5.0}}
    plain = {"age": Number(0, 99, cuts=[18])} if number else {"sex": ["f", "m"]}
    for parent in (None, PARENT, Schema(PARENT).discovered_under([{**cost, "whose": "parents"}])):
        for child in (Schema(plain), Schema(plain).discovered_under([cost])):
            linked = LinkedSchema(parent, child, key="house", most=3)
            of_parent = () if linked.parent is None else linked.parent.discovered
            found = [str(cost) for cost in wide_table(linked).schema.discovered]
            assert sorted(found) == sorted(map(str, [*of_parent, *child.discovered]))


class TestWhatUnitsAre:
    """By hand: kinds, and cells that are declared, each of which counts for the unit's own share."""

    PARENTS = [("h", "n"), ("i", "n"), ("i", "s"), ("j", "?"), ("k", "s"), ("l", "n"), (None, "n")]
    CHILDREN = [
        *[("h", 3, "f"), ("h", "?", "m"), ("h", 30, "?"), ("h", 31, "f"), ("i", 3, "f"), ("j", 3, "f")],
        *[("orphan", 3, "?"), (None, 3, "f"), ("l", 3, "f")],
        *[("l", 3, "f")] * 7,
    ]

    def counts(self, private):
        asked = table_of_kinds(private)
        names = asked.schema.variables
        tables_ = contingency_tables(asked, [(name,) for name in names])
        return {name: (table.value / GRID).round(4).tolist() for name, table in zip(names, tables_, strict=True)}

    def test_by_hand(self):
        found = self.counts(tables(*frames(self.PARENTS, self.CHILDREN)))
        assert dict(zip(KINDS, found[KIND], strict=True)) == {
            **{"no parent": 1, "several parents": 1, "outside": 1, "no child": 1, "children": 1, "more children": 1},
        }
        assert found["parent", "region"] == [3, 1, 2]  # of the orphan, and of who occurs twice: none
        assert found["child", "age"] == [4.75, 0.25, 1] and found["child", "sex"] == [3.75, 1.25, 1]

    def test_without_parents_each_key_is_one(self):
        schema = LinkedSchema(None, CHILD, key="house", most=7)
        found = self.counts(tables(None, frames([], self.CHILDREN)[1], schema))
        assert found[KIND] == [0, 0, 0, 0, 4, 1] and set(found) == set(kinds_schema(schema).variables)

    @pytest.mark.parametrize(("n", "kind"), [(0, "no child"), (1, "children"), (7, "children"), (8, "more children")])
    def test_as_many_children_as_count_are_not_more(self, n, kind):
        found = self.counts(tables(*frames([("h", "n")], [("h", 3, "f")] * n)))
        assert found[KIND].index(1) == KINDS.index(kind)

    def test_nothing_and_nobody(self):
        for rows in (([], []), ([(None, "n")], [(None, 3, "f")])):
            assert not any(map(sum, self.counts(tables(*frames(*rows))).values()))

    def test_ten_thousand_children_of_one_parent_count_one(self):
        found = self.counts(tables(*frames([("h", "n")], [("h", 3, "f")] * 10_000)))
        assert found[KIND][5] == found["child", "sex"][0] and 0.99 < found[KIND][5] <= 1

    def test_of_other_data_nobody_asks(self):
        with pytest.raises(TypeError, match="pass PrivateLinkedTables"):
            table_of_kinds(PrivateTable(pd.DataFrame({"a": [0]}), {"a": [0, 1]}, ledger=Budget(rho=1.0)))
        private = tables(*frames(self.PARENTS, self.CHILDREN))
        with pytest.raises(ValueError, match="check_linked"):
            check_schema(private, Budget(epsilon=0.1))
        assert not private.ledger.entries


class TestReadersAndKeys:
    PARENTS = pd.DataFrame({"house": [1, 2, 3], "region": ["n", "s", "n"]})
    CHILDREN = pd.DataFrame({"house": [1, 1, 3, 9], "age": [3, 30, 70, 5], "sex": ["f", "m", "m", "f"]})

    def sources(self, kind, tmp_path):
        texts = [frame.astype({"house": str}) for frame in (self.PARENTS, self.CHILDREN)]
        if kind == "csv":
            for name, frame in zip("pc", texts, strict=True):
                frame.to_csv(tmp_path / f"{name}.csv", index=False)
            return str(tmp_path / "p.csv"), tmp_path / "c.csv"
        if kind == "parquet":
            for name, frame in zip("pc", (self.PARENTS, self.CHILDREN), strict=True):
                frame.to_parquet(tmp_path / f"{name}.parquet")
            return str(tmp_path / "p.parquet"), str(tmp_path / "c.parquet")
        if kind == "polars":
            polars = pytest.importorskip("polars")
            return polars.from_pandas(self.PARENTS), polars.from_pandas(self.CHILDREN).lazy()
        if kind == "duckdb":
            duckdb = pytest.importorskip("duckdb")
            return tuple(duckdb.from_df(frame) for frame in (self.PARENTS, self.CHILDREN))
        return texts if kind == "texts" else (self.PARENTS, self.CHILDREN)

    @pytest.mark.parametrize("kind", ["csv", "parquet", "polars", "duckdb", "texts", "pandas"])
    def test_all_give_the_same_rows(self, kind, tmp_path):
        found = dict(measure(tables(*self.sources(kind, tmp_path))))
        assert found == dict(measure(tables(self.PARENTS, self.CHILDREN))) and len(found) == 5

    @pytest.mark.parametrize("kind", ["csv", "texts", "parquet", "polars", "duckdb"])
    def test_whole_numbers_and_texts_are_one_by_their_digits(self, kind, tmp_path):
        ours, theirs = self.sources(kind, tmp_path)
        other = self.CHILDREN.astype({"house": str if kind in ("parquet", "polars", "duckdb") else int})
        other["house"] = other["house"].astype("string" if kind in ("parquet", "polars", "duckdb") else "int64")
        for key_kind in ("text", "integer"):
            schema = LinkedSchema(PARENT, CHILD, key="house", most=7, counts=["age >= 18"], key_kind=key_kind)
            assert len(measure(tables(ours, other, schema))) == 5
        del theirs

    def test_whole_numbers_are_read_from_texts_where_that_is_said(self):
        parents, children = frames(
            [(1, "n"), ("02", "s"), (" 3.0 ", "n"), ("x", "n"), (2**70, "n"), (None, "n"), (True, "s"), ("4e2", "n")],
            [("001", 3, "f"), (2.0, 3, "f"), ("+3", 3, "f"), ("x", 3, "f"), (str(2**70), 3, "f"), ("4e2", 3, "f")],
        )
        schema = LinkedSchema(PARENT, CHILD, key="house", most=7, key_kind="integer")
        rows = tables(parents, children, schema)._records
        assert rows.rows().n_units == 4 and set(rows.codes()[:, 1].tolist()) == {1, 2}  # each has a child

    @pytest.mark.parametrize("library", ["duckdb", "pandas", "polars", "pyarrow"])
    def test_an_odd_key_of_a_file_whose_types_were_guessed_raises_nothing(self, library, tmp_path):
        """One made a column of texts, beside a column of whole numbers: that was refused in words about the types."""
        read = {
            "duckdb": lambda path: duckdb.read_csv(path),
            "pandas": lambda path: pd.read_csv(path),
            "polars": lambda path: polars.read_csv(path),
            "pyarrow": lambda path: csv.read_csv(path),
        }[library]
        duckdb, polars = (pytest.importorskip(name) for name in ("duckdb", "polars"))
        from pyarrow import csv

        (tmp_path / "p.csv").write_text("house,region\n1,n\n2,s\n")
        found = []
        for odd in ("", "x9,3,f\n"):
            (tmp_path / "c.csv").write_text("house,age,sex\n1,3,f\n1,30,m\n2,70,f\n" + odd)
            found.append(measure(tables(*(read(str(tmp_path / name)) for name in ("p.csv", "c.csv")))))
        assert found[0] == found[1] and len(found[0]) > 0

    @pytest.mark.parametrize(("above", "below"), [("int64", "string"), ("string", "int32"), ("category", "int64")])
    def test_keys_that_files_declare_of_two_kinds_are_refused_unless_said_how_they_compare(
        self, above, below, tmp_path
    ):
        paths = [str(tmp_path / name) for name in ("p.parquet", "c.parquet")]
        ledger = Ledger(Budget(rho=1.0), adjacency="add_remove")
        for path, frame, kind in zip(paths, (self.PARENTS, self.CHILDREN), (above, below), strict=True):
            house = frame["house"].astype(str) if kind == "category" else frame["house"]
            frame.assign(house=house.astype(kind)).to_parquet(path)
        schemas = [LinkedSchema(PARENT, CHILD, key="house", most=7, key_kind=k) for k in (None, "text", "integer")]
        with pytest.raises(ValueError, match=r"declared as .* in the files of parent and as .* in those of child"):
            PrivateLinkedTables(*paths, schemas[0], ledger=ledger)
        assert not ledger.entries
        for schema in schemas[1:]:
            assert len(measure(PrivateLinkedTables(*paths, schema, ledger=ledger))) == 5
        assert len(measure(tables(paths[0], self.CHILDREN, schemas[0]))) == 5  # a frame declares nothing

    def test_large_whole_numbers_are_read_from_floats(self):
        schema = LinkedSchema(PARENT, CHILD, key="house", most=7, key_kind="integer")
        homes = [1e15, 1e16, 1e22]
        parents, children = frames([(home, "n") for home in homes], [(str(int(home)), 3, "f") for home in homes])
        rows = tables(parents, children, schema)._records
        assert rows.rows().n_units == 3 and set(rows.codes()[:, 1].tolist()) == {1, 2}
        odd, _ = frames([(home, "n") for home in (math.inf, math.nan, 0.5, -math.inf)], [])
        assert tables(odd, children, schema)._records.rows().n_units == 0

    def test_a_number_of_many_digits_takes_no_time(self):
        start = time.process_time()
        parents, children = frames([(Decimal("1E+999999"), "n"), (Decimal("-1E+99999999"), "n")], [])
        for key_kind in ("text", "integer"):
            tables(parents, children, LinkedSchema(PARENT, CHILD, key="house", most=7, key_kind=key_kind))
        assert time.process_time() - start < 5.0


class TestWhatIsRefusedBeforeTheCharge:
    PARENTS, CHILDREN = frames([("h", "n")], [("h", 3, "f")])

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"key": "region"}, "key='region' is a column of the schema of parent"),
            ({"key": "age"}, "key='age' is a column of the schema of child"),
            ({"key": ["house", "clinic"]}, "parents of two kinds"),
            ({"most": 0}, "most=0"),
            ({"most": 65}, "more than 64"),
            ({"least": 2}, "least=2"),
            ({"counts": ["region = n"]}, "'region = n' names a column of the parent table"),
            ({"counts": ["age >= 20"]}, r"inside its state '\[18,65\)'; cut at 20"),
            ({"counts": ["age < 18 -> sex = f"]}, "implication"),
            ({"counts": "age >= 18"}, "pass a list"),
            ({"order": ["when"]}, "order names \\['when'\\]"),
            ({"size": "region"}, "could not be told apart"),
            ({"names": ["a", "a"]}, "two different"),
            ({"key_kind": "number"}, "key_kind='number'; pass one of 'text', 'integer', or None"),
            ({"key": None}, "key=None"),
        ],
    )
    def test_schemas(self, change, message):
        with pytest.raises((TypeError, ValueError), match=message):
            LinkedSchema(PARENT, CHILD, **{"key": "house", "most": 7, **change})

    def test_a_rule_of_children_that_names_a_column_of_the_parents(self):
        said = SCHEMA.to_dict()
        said["child"] = {**said["child"], "impossible": ["region = n -> sex = f"]}
        with pytest.raises(ValueError, match="'region' is a column of the parents: rules of children are about one"):
            LinkedSchema.from_dict(said)

    @pytest.mark.parametrize(
        ("parents", "children", "message"),
        [
            (None, CHILDREN, "parents=None, and the schema has columns of parents"),
            (PARENTS[["region"]], CHILDREN, "parent: data has no column for \\['house'\\]"),
            (PARENTS, CHILDREN[["house"]], "child: data has no column for"),
            (PARENTS, [1, 2], "data is a list"),
        ],
    )
    def test_data(self, parents, children, message):
        budget = Budget(epsilon=1.0)
        with pytest.raises((TypeError, ValueError), match=message):
            PrivateLinkedTables(parents, children, SCHEMA, ledger=budget)

    def test_other_classes_of_schemas(self):
        class Lying(LinkedSchema):
            pass

        with pytest.raises(TypeError, match="Lying"):
            PrivateLinkedTables(self.PARENTS, self.CHILDREN, Lying(PARENT, CHILD, "house", 7), ledger=Budget(rho=1.0))

    def test_files_of_schemas_are_lossless_and_show_damage(self, tmp_path):
        schemas = (SCHEMA, CHAIN, LinkedSchema(None, Schema(CHILD, other={"sex": "m"}), "house", 3, names=("p", "c")))
        for schema in schemas:
            schema.to_json(tmp_path / "linked.json")
            assert LinkedSchema.from_json(tmp_path / "linked.json") == schema
        text = (tmp_path / "linked.json").read_text()
        (tmp_path / "linked.json").write_text(text.replace('"most": 3', '"most": 4'))
        with pytest.raises(ValueError, match="damaged or edited"):
            LinkedSchema.from_json(tmp_path / "linked.json")
        (tmp_path / "linked.json").write_text('{"child": {"domain": {"sex": ["f", "m"]}}, "key": "h", "most": 2}')
        assert LinkedSchema.from_json(tmp_path / "linked.json").least == 1


def test_nothing_is_raised_or_said_because_of_a_record():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message="unit=")
        for parents, children in (([], []), ([("h", "n")] * 2, [("x", 3, "f")]), ([(None, "n")], [(None, 3, "f")])):
            private = tables(*frames(parents, children))
            assert measure(private) == {} and "h" not in repr(private).replace("house", "").replace("child", "")


def test_one_stream_is_not_two_tables_and_what_is_handed_out_is_a_copy():
    frame = pd.DataFrame({"house": [1, 1], "sex": ["f", "m"], "region": ["n", "n"]})
    linked = LinkedSchema({"region": ["n", "s"]}, {"sex": ["f", "m"]}, key="house", most=4)
    with pytest.raises(ValueError, match="the same object"):
        PrivateLinkedTables(frame, frame, linked, ledger=Budget(epsilon=1.0))
    tables = PrivateLinkedTables(frame, frame.copy(), linked, ledger=Budget(epsilon=1.0))
    tables.linked.most = 64
    assert tables.linked.most == 4
