"""Replay of linked tables: with the same answers, every operator on a neighbour keeps to the bound of one unit."""

from __future__ import annotations

import itertools
import warnings
from fractions import Fraction

import numpy as np
import pytest

from pgmpy_dp import Budget
from pgmpy_dp.auditing.replay import replay
from pgmpy_dp.linked.family_check import check_linked
from pgmpy_dp.linked.operators import unit_kinds, unit_rows
from pgmpy_dp.linked.operators.linked_schema import LinkedSchema
from pgmpy_dp.linked.operators.linked_tables import PrivateLinkedTables
from pgmpy_dp.linked.operators.wide_table import wide_table
from pgmpy_dp.private.curator.table_curator import TableCurator
from pgmpy_dp.private.operators.distances import Distances
from pgmpy_dp.private.operators.tables import GroupedTables, Tables
from pgmpy_dp.private.operators.worst_fit import WorstFit
from pgmpy_dp.schema import Number
from tests.auditing.replay_units import ODD_UNITS
from tests.linked.families import CHILD, PARENT, SCHEMA, frames

pytestmark = pytest.mark.filterwarnings("ignore::pgmpy_dp.GuessedTypesWarning")

SCHEMA_PATTERNS = wide_table(SCHEMA).schema["n"]
CHAIN = LinkedSchema(PARENT, CHILD, key="house", most=4, order=["age"])


def asked(data, schema=SCHEMA, budget=None):
    """Every kind of question that a table of counts is asked for."""
    budget = budget or Budget(rho=0.5)
    curator = TableCurator(PrivateLinkedTables(*data, schema, ledger=budget), budget, what="families")
    scopes = [("n", "a.age"), ("a.sex", "b.age"), ("region", "a.sex"), ("n",)]
    share = Fraction(1, 8)
    curator.ask(Tables(scopes), share)
    shapes = [[len(curator.facts.schema[v]) for v in s] for s in scopes]
    curator.ask(WorstFit(scopes, [np.zeros(shape) for shape in shapes]), share)
    uniform = [
        np.full(shape, 1 / np.prod(shape)) for s in scopes for shape in [[len(curator.facts.schema[v]) for v in s]]
    ]
    curator.ask(Distances(scopes, uniform), share)
    halves = np.arange(len(curator.facts.schema["n"])) > 2
    curator.ask(GroupedTables([("n", "a.age"), ("n", "a.sex")], halves.astype(int).tolist()), share)
    with curator.split(2) as parts:
        for part in parts:
            part.ask(Tables(scopes[:2]), Fraction(1, 8))
    return [array.tolist() for array in curator.arrays]


def family(key, size, region="n"):
    return [(key, region)], [(key, [3, 30, 70, None][k % 4], "fm?"[k % 3]) for k in range(size)]


OTHERS = [family(f"h{k}", k % 9, "ns"[k % 2]) for k in range(20)]
ODD_ONES = {
    "an only child": family("odd", 1),
    "no child": family("odd", 0),
    "two children": family("odd", 2),
    "seven": family("odd", 7),
    "a huge family": family("odd", 10_000),
    "equal children": ([("odd", "n")], [("odd", 3, "f")] * 9),
    "orphans": ([], [("odd", 3, "f")] * 3),
    "orphans of nobody": ([], [(None, 3, "f")] * 3),
    "a parent twice": ([("odd", "n"), ("odd", "s")], [("odd", 3, "f")] * 3),
    "the same parent twice": ([("odd", "n")] * 2, []),
    "a parent outside": ([("odd", "?")], [("odd", 3, "f")]),
    "children outside": ([("odd", "n")], [("odd", "?", "?"), ("odd", None, "f")]),
    **{f"the key {key!r:.20}": family(key, 3) for key in ODD_UNITS},
}


def joined(families):
    return frames([row for parents, _ in families for row in parents], [row for _, own in families for row in own])


@pytest.mark.parametrize("schema", [SCHEMA, CHAIN], ids=["pairs", "chain"])
def test_every_operator_holds_and_attains_the_bound_of_a_unit(schema):
    best: dict[str, float] = {}
    for name, odd in ODD_ONES.items():
        for first, second in ((joined([*OTHERS, odd]), joined(OTHERS)), (joined([odd]), joined([]))):
            report = replay(lambda data: asked(data, schema), first, second)
            assert report.holds, (name, report)
            for operator, ratio in report.movement.items():
                best[operator] = max(best.get(operator, 0.0), ratio)
    assert set(best) == {"tables", "worst_fit", "distances", "grouped_tables"}
    assert min(best["tables"], best["grouped_tables"]) > 0.99 and best["worst_fit"] > 0.5, best


def checked(data, schema=SCHEMA, **options):
    """A whole check of linked tables: what is released, and what is said of it."""
    with warnings.catch_warnings(action="ignore"):
        found = check_linked(*data, Budget(rho=0.5), schema, **options)
    return [value.tolist() for value in found.release_.values], str(found), found.failed


def most_moved(adjacency, tables, *rules, others=(OTHERS,)):
    """The largest movement of a check's tables in units of its bound, which holds, over odd families among others."""
    best = 0.0
    options = {} if adjacency == "add_remove" else {"n_records": 21, "adjacency": adjacency}
    for among, (name, odd) in itertools.product(others, ODD_ONES.items()):
        other = [family("other", 2, "s")] if options else []
        first, second = tables([*among, odd]), tables([*among, *other])
        report = replay(lambda data: checked(data, *rules, **options), first, second)
        assert report.holds, (name, report)
        best = max(best, report.movement["tables"])
    return best


@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
def test_a_check_holds_and_attains_the_bound_of_a_unit(adjacency):
    assert most_moved(adjacency, joined) > 0.99


def test_units_that_count_once_for_each_child_are_found(monkeypatch):
    true = unit_kinds.unit_kinds

    def heavier(*arguments):
        rows = true(*arguments)
        rows.weights[:] = rows.weights.max(initial=0)
        return rows

    monkeypatch.setattr("pgmpy_dp.linked.operators.linked_tables.unit_kinds", heavier)
    assert not replay(checked, joined([*OTHERS, family("odd", 3)]), joined(OTHERS)).holds


def test_kinds_that_depend_on_others_are_found(monkeypatch):
    true = unit_kinds.unit_kinds

    def coupled(*arguments):
        rows = true(*arguments)
        rows.codes[:, 0] = (rows.codes[:, 0] + rows.n_units) % len(unit_kinds.KINDS)
        return rows

    monkeypatch.setattr("pgmpy_dp.linked.operators.linked_tables.unit_kinds", coupled)
    assert not replay(checked, joined([*OTHERS, family("zz", 0)]), joined(OTHERS)).holds


@pytest.mark.parametrize(("cost", "tables", "choice"), [("rho", 2**0.5, 2.0), ("epsilon", 2.0, 2.0)])
def test_one_child_costs_what_is_said_and_no_less(cost, tables, choice):
    """Families that differ in a child are no neighbours: tables move by 2 in l1, sqrt(2) in l2, a misfit by 2."""
    parents, children = family("odd", 4)
    data = [joined([(parents, children)]), joined([(parents, children[:3])])]
    budget = Budget(**{cost: 0.5})

    def fit(some):
        curator = TableCurator(PrivateLinkedTables(*some, SCHEMA, ledger=budget), budget, what="families")
        curator.ask(Tables([("n",)]), Fraction(1, 2))
        expected = np.zeros(len(SCHEMA_PATTERNS))
        expected[SCHEMA_PATTERNS.index("4")] = 1.0  # as one of the two has it
        curator.ask(WorstFit([("n",), ("a.sex",)], [expected, np.zeros(4)]), Fraction(1, 2))
        return [array.tolist() for array in curator.arrays]

    report = replay(fit, *data)
    assert not report.holds
    assert report.movement["tables"] == pytest.approx(tables, rel=1e-4)
    assert 1.0 < report.movement["worst_fit"] <= choice + 1e-4


def test_a_draw_that_depends_on_others_is_found(monkeypatch):
    """The mutant numbers children by their place among all, not among their own."""
    true = unit_rows._in_order

    def coupled(codes, by, owner, seeds):
        return true(codes, by, owner, seeds + np.uint64(len(owner)))

    monkeypatch.setattr(unit_rows, "_in_order", coupled)
    large = [family(f"h{k}", 12) for k in range(5)]
    report = replay(asked, joined([*large, family("odd", 1)]), joined(large))
    assert not report.holds


def test_a_unit_that_counts_once_for_each_row_is_found(monkeypatch):
    true = unit_rows.unit_rows

    def heavier(*arguments):
        rows = true(*arguments)
        rows.weights[:] *= 2
        return rows

    monkeypatch.setattr("pgmpy_dp.linked.operators.linked_tables.unit_rows", heavier)
    assert not replay(asked, joined([*OTHERS, family("odd", 3)]), joined(OTHERS)).holds


RULES = LinkedSchema(
    {"region": Number(0, 99, cuts=[18, 65], missing="drop")},
    CHILD,
    key="house",
    most=7,
    impossible=["count(sex = f) = 1", "count(age >= 65) >= 1", "age <= region"],
)


def numbered(*families):
    """Families whose region is a number."""
    numbers = {"n": 20, "s": 80}
    return joined([([(key, numbers.get(cell, cell)) for key, cell in above], below) for above, below in families])


@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
def test_a_check_of_rules_holds_and_attains_the_bound_of_a_unit(adjacency):
    assert most_moved(adjacency, lambda families: numbered(*families), RULES, others=(OTHERS, OTHERS[:2])) > 0.99


def test_rules_that_a_unit_breaks_by_the_children_of_others_are_found(monkeypatch):
    true = unit_kinds.broken_rules

    def coupled(*arguments):
        broken = true(*arguments)
        return broken ^ (len(broken) % 2 == 1)

    monkeypatch.setattr("pgmpy_dp.linked.operators.linked_tables.broken_rules", coupled)
    assert not replay(lambda data: checked(data, RULES), numbered(*OTHERS, family("zz", 0)), numbered(*OTHERS)).holds
