"""A spanning tree or forest, edge by edge: noisy selections of the pair furthest from independence, then its tables."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable
from fractions import Fraction

import networkx as nx
import numpy as np

from pgmpy_dp.learning.noisy_tables import noisy_marginals
from pgmpy_dp.learning.options import Settings
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.curator.curator_base import cost_of
from pgmpy_dp.private.curator.table_curator import TableCurator
from pgmpy_dp.private.data.table import PrivateTable, require_table_and_budget
from pgmpy_dp.private.guarantee import ZCDP, PureDP
from pgmpy_dp.private.operators.tables import Tables
from pgmpy_dp.private.operators.worst_fit import WorstFit
from pgmpy_dp.private.sensitive import Release
from pgmpy_dp.schema import Schema, encode_label
from pgmpy_dp.shown import quantity
from pgmpy_dp.tables.networks.budget_shares import one_way_weights, require_room, select_and_measure


def run(table: PrivateTable, settings: Settings, budget: Budget) -> Release:
    """Release noisy tables of all variables and of the edges of a forest.

    Refuses more edges than a tree has, tables that are too large, or a budget too small for any selection.

    Parameters
    ----------
    settings : Settings
        Of :class:`~pgmpy_dp.estimators.PrivateChowLiu`. Each edge is selected by an equal part of `selection_share`.

    Returns
    -------
    Release
        ``kind="marginals"``: one table per variable, in the order of the schema, then one per edge, in the order in
        which they were selected.

    Notes
    -----
    Privacy
        *Sensitivity.* One table: 1 in l1 and l2 norm under ``add_remove``; 2 and sqrt(2) under ``replace_one``. The
        score of a pair, ``norm1(n_ij - round(N q_i q_j))``, moves by at most 1 or 2: N, q_i and q_j come from the noisy
        tables of single variables (and a public number of records), and the score is computed in integers
        (:func:`~pgmpy_dp.private.operators.worst_fit.misfit_scores`). Mutual information would not do: times n it can
        move by about log n.

        *Guarantee.* Under the table's adjacency: rho-zCDP, or epsilon-DP for a pure budget; an (epsilon, delta) budget
        has the largest rho that dp-accounting converts to it. The tables of single variables, each selection, and the
        tables of edges get exact rational shares of the budget that sum to 1.

        *Source.* McKenna, Miklau and Sheldon 2021 ("MST"); Cesar and Rogers 2021 for the cost of a selection.

        *Side channels.* Which arguments are refused, and every number and shape but which pairs are the edges, depend
        on public arguments only. Running time depends on the number of records.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"a": [0, 1] * 500, "b": [0, 1] * 500, "c": [0, 0, 1, 1] * 250})
    >>> table = PrivateTable(frame, {name: [0, 1] for name in "abc"}, ledger=Budget(rho=1.0))
    >>> from pgmpy_dp.estimators import PrivateChowLiu
    >>> from pgmpy_dp.learning.options import settings_of
    >>> run(table, settings_of(PrivateChowLiu(n_edges=1)), Budget(rho=1.0)).scopes
    (('a',), ('b',), ('c',), ('a', 'b'))
    """
    budget = require_table_and_budget(table, budget)
    n_edges, (one_way, selection, measuring), cost = _plan(table.schema, table.adjacency, settings, budget)
    names = table.schema.variables
    curator = TableCurator(
        table,
        budget,
        what=f"tables of {quantity(names, 'variable')} and of {quantity(n_edges, 'chosen pair')}",
        mechanism=select_and_measure(cost),
        random_state=settings.random_state,
    )
    sizes = [table.schema.cardinality(name) for name in names]
    shares = settings.public(budget, "n_edges", "one_way_share", "selection_share")
    edges: list[tuple[Hashable, Hashable]] = []

    def release() -> Release:
        tables = curator.answers[-1].operator == "tables"  # else of edges that were selected, none has a table yet
        selected = {} if tables else {"selected": [[encode_label(name) for name in edge] for edge in edges]}
        return curator.release("marginals", {"settings": shares, **selected})

    with curator.keeping(release):
        curator.ask(Tables([(name,) for name in names], one_way_weights(sizes, cost)), one_way)
        expected = _independent(curator, itertools.combinations(names, 2) if n_edges else ())
        forest = nx.utils.UnionFind(names)
        for _ in range(n_edges):
            pairs = [(u, v) for u, v in expected if forest[u] != forest[v]]
            edge = pairs[curator.ask(WorstFit(pairs, [expected[pair] for pair in pairs]), selection / n_edges)]
            edges.append(edge)
            forest.union(*edge)
        if edges:
            curator.ask(Tables(edges), measuring)
    return release()


def number_of_edges(n_variables: int, wanted: int | None) -> int:
    """The edges of a forest: as many as are wanted, or those of a tree; ValueError for more."""
    if wanted is not None and wanted >= n_variables:
        raise ValueError(
            f"n_edges={wanted!r} is more than the {n_variables - 1} edges of a tree of {n_variables} variables"
        )
    return n_variables - 1 if wanted is None else wanted


def _plan(
    schema: Schema, adjacency: Adjacency, settings: Settings, budget: Budget
) -> tuple[int, tuple[Fraction, Fraction, Fraction], PureDP | ZCDP]:
    """Number of edges, shares (single variables, all selections, tables of edges) and cost, from public numbers."""
    sizes = [schema.cardinality(name) for name in schema.variables]
    n_edges = number_of_edges(len(sizes), settings.n_edges)
    require_room((sum(sizes) ** 2 - sum(k * k for k in sizes)) // 2)
    cost = cost_of(budget)
    one_way = Fraction(settings.one_way_share) if n_edges else Fraction(1)
    selection = Fraction(settings.selection_share) if n_edges else Fraction(0)
    measuring = 1 - one_way - selection
    # Refuses scales that would bury any count, before the charge.
    Tables.planned(len(sizes), adjacency, cost, one_way, one_way_weights(sizes, cost))
    if n_edges:
        Tables.planned(n_edges, adjacency, cost, measuring)
        WorstFit.planned(adjacency, cost, selection / n_edges)
    return n_edges, (one_way, selection, measuring), cost


def _independent(curator: TableCurator, pairs: Iterable[tuple[Hashable, Hashable]]) -> dict[tuple, np.ndarray]:
    """Expected counts of each pair, were its variables independent, from the noisy tables of single variables."""
    noisy = noisy_marginals(curator.release("marginals", {}), curator.facts.schema.variables)
    parts = noisy.cliques.split(noisy.projected_proportions())
    shares = {name: part for (name,), part in zip(noisy.cliques.scopes, parts, strict=True)}
    return {(u, v): noisy.n_records * np.outer(shares[u], shares[v]) for u, v in pairs}
