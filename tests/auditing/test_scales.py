"""The noise that every operator plans is that of the formulas that are written down a second time, by hand."""

from __future__ import annotations

import itertools
from fractions import Fraction

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from pgmpy_dp import Budget, Number, PrivateGraph, PrivateSequences, PrivateTable, PrivateVectors, Schema
from pgmpy_dp.auditing.operator_list import every_operator
from pgmpy_dp.auditing.scales import stated_scales
from pgmpy_dp.communities.operators.graph_operators import CommunityLabels, EdgeAnswers, EdgeCount, NeighbourSums
from pgmpy_dp.fields.operators.feature_matrices import InteractionMatrixSums, ParityMatrixSums
from pgmpy_dp.fields.operators.interactions import InteractionSums
from pgmpy_dp.fields.operators.parities import ParitySums, WorstParity
from pgmpy_dp.fields.operators.vote_operators import AgreedGraph, EdgeVotes
from pgmpy_dp.gaussian.operators.precision import PrecisionProgram
from pgmpy_dp.gaussian.published.output_perturbation import lasso_solvers
from pgmpy_dp.mixtures.operators.block_operators import BlockCells, BlockClusters, BlockScales, MeanLogScale
from pgmpy_dp.mixtures.operators.cluster_operators import MOMENT_KINDS, ClusterMoments, ClusterSums
from pgmpy_dp.private.curator.curator_base import Curator
from pgmpy_dp.private.curator.observer import Request
from pgmpy_dp.private.curator.outside_functions import outside_function
from pgmpy_dp.private.curator.table_curator import TableCurator
from pgmpy_dp.private.data.columns import PrivateColumns
from pgmpy_dp.private.guarantee import ZCDP, PureDP
from pgmpy_dp.private.noise.matrix import WITH_ETA
from pgmpy_dp.private.operators.column_operators import NumberTables, StableCategories
from pgmpy_dp.private.operators.distances import Distances
from pgmpy_dp.private.operators.model_errors import ModelErrors
from pgmpy_dp.private.operators.record_count import RecordCount
from pgmpy_dp.private.operators.record_matches import MatchedCounts
from pgmpy_dp.private.operators.score_sums import ScoreSums
from pgmpy_dp.private.operators.solutions import Solution
from pgmpy_dp.private.operators.tables import GroupedTables, Tables
from pgmpy_dp.private.operators.vector_operators import (
    MECHANISMS,
    Box,
    ClippedSum,
    Magnitudes,
    PairSigns,
    SecondMoments,
    StrongestPairs,
    UnitCount,
)
from pgmpy_dp.private.operators.worst_fit import WorstFit
from pgmpy_dp.sequences.operators.sequence_operators import NgramTables, OrderDeparture

STATES = {"a": [0, 1], "b": [0, 1, 2], "c": [0, 1]}
FRAME = pd.DataFrame({"a": [0, 1, 1, 0], "b": [0, 1, 2, 2], "c": [0, 0, 1, 1], "who": ["u", "u", "v", "w"]})
BITS = {"a": [0, 1], "c": [0, 1]}
BUDGETS = (Budget(epsilon=0.7), Budget(rho=0.1), Budget(epsilon=1.0, delta=1e-6))


def of_tables(budget, adjacency, rows, states=STATES, pure=False):
    """A curator of a table whose records count singly, in units of several, or by shares."""
    unit = {} if rows is None else {"unit": "who", "rows_per_unit": rows}
    public = 4 if adjacency == "replace_one" else None
    table = PrivateTable(FRAME, states, ledger=budget, adjacency=adjacency, n_records=public, **unit)
    return TableCurator(table, budget, what="scales", pure=pure and budget.rho is None)


TABLES = [
    (of_tables, adjacency, rows)
    for adjacency, rows in itertools.product(("add_remove", "replace_one"), (None, 3, "shares"))
]
OF_BITS = [(*how, BITS) for how in TABLES]
PURE_BITS, PURE = [(*how, True) for how in OF_BITS], [(*how, STATES, True) for how in TABLES]
ROWS = np.arange(8.0).reshape(4, 2)


def of_graph(budget):
    return Curator(PrivateGraph(nx.path_graph(5), ledger=budget), budget, what="scales")


def of_numbers(budget, adjacency, known=False, pure=False):
    """A curator of numbers; with pure shares all of a delta is a reserve."""
    public = 4 if known or adjacency == "replace_one" else None
    data = PrivateVectors(ROWS, ledger=budget, adjacency=adjacency, n_records=public)
    how = {"pure": True, "reserve": budget.delta} if pure and budget.delta else {}
    return Curator(data, budget, what="scales", **how)


GRAPH, UNKNOWN = [(of_graph,)], [(of_numbers, "add_remove")]
NUMBERS = [(of_numbers, "add_remove"), (of_numbers, "replace_one")]
WITH_PURE = [(*how, True, pure) for how in NUMBERS for pure in (False, True)]
BOX = Box((0.0, 0.0), (8.0, 8.0), (1.0, 2.0))


def moments(curator):
    """Of every noise that the curator's cost pays."""
    asked = [(SecondMoments((0.0, 1.0), 2.5, noise), 0) for noise in MECHANISMS if noise not in ("auto", *WITH_ETA)]
    if curator._reserve and isinstance(curator.cost, PureDP):
        asked.append((SecondMoments((0.0, 1.0), 2.5, "analytic-goe", BOX), Fraction(10) ** -6))
    kinds = {"goe", "gaussian"} if isinstance(curator.cost, ZCDP) else {*MECHANISMS} - {"goe", "gaussian"}
    return [(one, eta) for one, eta in asked if one.noise in kinds]


def solutions(curator):
    program = PrecisionProgram(2, curator.adjacency, 4, 1.0, 0.5)
    solvers = lasso_solvers(program)
    if isinstance(curator.cost, ZCDP):
        return [Solution(program, solvers), Solution(program, solvers, "goe")]
    asked = [(Solution(program, solvers, "frobenius"), 0)]
    if curator._reserve:
        asked.append((Solution(program, solvers), Fraction(10) ** -6))
    return asked


def of_columns(budget, adjacency, n_columns=1):
    public = 4 if adjacency == "replace_one" else None
    schema = Schema({name: ["x", "y"] for name in ("b", "c")[:n_columns]})
    data = PrivateColumns(FRAME, schema, ledger=budget, adjacency=adjacency, n_records=public)
    reserve = budget.delta / 2 if n_columns == 2 else 0.0
    return Curator(data, budget, what="scales", reserve=reserve)


COLUMNS = [(of_columns, adjacency) for adjacency in ("add_remove", "replace_one")]
HALVES = Number(0, 2, cuts=[1])


def categories(curator):
    return [(StableCategories(["c", "b"], 5), Fraction(10) ** -7)] if curator._reserve else []


def of_users(budget, adjacency):
    frame = pd.DataFrame({"user": [1, 1, 2], "sequence": ["a b b", "a", "b a"]})
    public = 2 if adjacency == "replace_one" else None
    data = PrivateSequences(frame, {"page": ["a", "b"]}, ledger=budget, adjacency=adjacency, n_users=public)
    return Curator(data, budget, what="scales")


USERS = [(of_users, adjacency) for adjacency in ("add_remove", "replace_one")]


@outside_function
def no_edges(codes, rng, weights):
    return ()


def of_voters(budget, adjacency, rows):
    public = 4 if adjacency == "replace_one" else None
    table = PrivateTable(
        FRAME, STATES, ledger=budget, adjacency=adjacency, n_records=public, unit="who", rows_per_unit=rows
    )
    return TableCurator(table, budget, what="scales", reserve=budget.delta, pure=budget.delta > 0)


VOTERS = [(of_voters, *how) for how in itertools.product(("add_remove", "replace_one"), (1, 3, "shares"))]
VOTES = (f"{__name__}.no_edges", {}, 5)


def agreed(curator):
    return [(AgreedGraph(*VOTES, 2), Fraction(10) ** -7)] if curator._reserve else []


MEANS = [BlockClusters(2, 6, 4)]


def cells(curator):
    return [(BlockCells.turned(MEANS[0], 2.0, 2, np.random.default_rng(0)), Fraction(10) ** -7)]


def of_blocks(budget, adjacency):
    """A curator of numbers with half of a delta in reserve; a rho has none."""
    public = 4 if adjacency == "replace_one" else None
    data = PrivateVectors(ROWS, ledger=budget, adjacency=adjacency, n_records=public)
    return Curator(data, budget, what="scales", reserve=budget.delta / 2)


BLOCKS = [(of_blocks, adjacency) for adjacency in ("add_remove", "replace_one")]
CENTRES = np.zeros((3, 2))


def where(paid, asked):
    """Questions for the curators of which `paid` is true."""
    return lambda curator: asked(curator) if paid(curator) else []


def of_rho(curator):
    return isinstance(curator.cost, ZCDP)


EVEN = np.zeros(3)
THIRDS = np.full(3, 1 / 3)

# Of each operator: who can be asked, and questions.
ASKED = {
    "tables": (TABLES, [Tables([("a",)]), Tables([("a", "b"), ("c",)], [1, 2.5])]),
    "grouped_tables": (TABLES, [GroupedTables([("b",), ("b", "a")], [0, 1, 1])]),
    "record_count": (TABLES, [RecordCount()]),
    "matched_counts": (TABLES, [MatchedCounts()]),
    "distances": (
        TABLES,
        [Distances([("b",), ("a",)], [THIRDS, THIRDS[:2] * 1.5]), Distances([("b",)] * 3, [THIRDS] * 3, [[1, 0, 2]])],
    ),
    "model_errors": (
        TABLES,
        [
            ModelErrors([("b",)], [THIRDS], [("ranked", [0], 2)]),
            ModelErrors(
                [("b",), ("a",)], [THIRDS, EVEN[:2]], [("largest", [0], 0), ("gap", [1], 0.5), ("gap", [1], 1)]
            ),
        ],
    ),
    "parity_sums": (OF_BITS, [ParitySums(2), ParitySums([(0,), (0, 1)], with_count=True)]),
    "worst_parity": (OF_BITS, [WorstParity(2, EVEN), WorstParity(2, EVEN, signed=True)]),
    "interaction_sums": (TABLES, [InteractionSums(), InteractionSums([(0, 2)], with_count=True)]),
    "parity_matrix": (PURE_BITS, [ParityMatrixSums([(), (0,), (1,)], [2, 1, 1], 2, with_count=True)]),
    "interaction_matrix": (PURE, [InteractionMatrixSums(), InteractionMatrixSums([(0, 2)], with_count=True)]),
    "stable_categories": ([(*how, 2) for how in COLUMNS], categories),
    "number_tables": (
        COLUMNS,
        lambda curator: [
            NumberTables([("b", HALVES)] * 2, curator.facts.n_records is None),
            NumberTables([("b", HALVES)]),
        ],
    ),
    "stable_cells": (BLOCKS, where(lambda curator: curator._reserve, cells)),
    "stable_scales": (
        BLOCKS,
        where(lambda curator: curator._reserve, lambda _: [(BlockScales(MEANS[0], 0.3), Fraction(10) ** -7)]),
    ),
    "mean_log_scale": (BLOCKS, [MeanLogScale(MEANS[0], 0.5)]),
    "cluster_sums": (BLOCKS, where(of_rho, lambda _: [ClusterSums(CENTRES, 3.0)])),
    "cluster_moments": (
        BLOCKS,
        where(of_rho, lambda _: [ClusterMoments(CENTRES[:k], 3.0, kind) for k in (1, 3) for kind in MOMENT_KINDS]),
    ),
    "ngram_tables": (USERS, [NgramTables(), NgramTables((1, 2.5, 2), 4, 3, (1, 2, 3))]),
    "order_departure": (USERS, [OrderDeparture(np.eye(2))]),
    "edge_votes": (VOTERS, [EdgeVotes(*VOTES, 1), EdgeVotes(*VOTES, 9)]),
    "agreed_graph": (VOTERS, agreed),
    "edge_count": (GRAPH, [EdgeCount()]),
    "neighbour_sums": (GRAPH, [NeighbourSums(np.ones((5, 1), int)), NeighbourSums(np.eye(5, dtype=int))]),
    "randomised_response": (GRAPH, [EdgeAnswers()]),
    "community_choice": (GRAPH, [CommunityLabels(0.0), CommunityLabels(2.5)]),
    "unit_count": (UNKNOWN, [UnitCount()]),
    "clipped_sum": (NUMBERS, [ClippedSum((0.0, 1.0), 3.0), ClippedSum((0.0, 1.0), 3.0, BOX)]),
    "magnitudes": (NUMBERS, [Magnitudes((0.0, 1.0), BOX)]),
    "strongest_pairs": (NUMBERS, [StrongestPairs((0.0, 1.0), np.zeros((2, 2), int), np.tri(2, dtype=bool))]),
    "pair_signs": (NUMBERS, [PairSigns((0.0, 1.0), [(0, 1)])]),
    "second_moments": (WITH_PURE, moments),
    "solution": (WITH_PURE, solutions),
    "score_sums": (
        TABLES,
        [
            ScoreSums([[]], ("a", [0, 1 << 16]), [("a", [1, 1])], [0], np.array([[1 << 14]]), 1 << 15, "logit"),
            ScoreSums(
                [[], [("b", [-(1 << 16), 0, 1 << 16])]], ("c", [0, 100]), [], [0, 5], np.eye(2, dtype=int), 99, "linear"
            ),
        ],
    ),
    "worst_fit": (TABLES, [WorstFit([("a",), ("b",)], np.zeros(5), weights=[1.0, 0.2])]),
}


def test_every_operator_is_asked():
    assert set(ASKED) == set(every_operator())
    for name, (openings, questions) in ASKED.items():
        opened, *how = openings[0]
        of = questions(opened(BUDGETS[-1], *how)) if callable(questions) else questions
        asked = [one[0] if isinstance(one, tuple) else one for one in of]
        assert asked and {type(one) for one in asked} == {every_operator()[name]}


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize("name", ASKED)
def test_noise_is_that_of_the_formulas(name, budget):
    openings, questions = ASKED[name]
    for opened, *how in openings:
        curator = opened(budget, *how)
        for asked in questions(curator) if callable(questions) else questions:
            check(curator, name, budget, *(asked if isinstance(asked, tuple) else (asked, 0)))
        assert curator.left == 1


def check(curator, name, budget, asked, eta):
    if "matrix" in name and budget.rho is not None:
        with pytest.raises(ValueError, match="Wishart noise is for a pure cost"):
            curator.noise(asked)
        return
    request, facts, planned, share, eta = curator._planned(asked, Fraction(1, 3), eta)
    rows = 1 if request.of_units else curator._data._rows_of_unit
    made = Request(curator, name, request.arguments(facts), share, eta, curator.unit_cost, planned, rows)
    assert stated_scales(made) == [], asked
