"""A spanning tree or forest, edge by edge: noisy selections of the pair furthest from independence, then its tables."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import networkx as nx
import numpy as np

from pgmpy_dp.private.data.pair_scores import misfit_scores
from pgmpy_dp.private.data.table import PrivateTable, contingency_tables
from pgmpy_dp.private.guarantee import ZCDP, PureDP, checked_number
from pgmpy_dp.private.learners.marginals import checked_integer, require_table_and_budget
from pgmpy_dp.private.learners.network_plan import one_way_weights, sequential_cost
from pgmpy_dp.private.ledger import Budget
from pgmpy_dp.private.noise.additive import additive_release, gaussian_scales, laplace_scales
from pgmpy_dp.private.noise.samplers import seeded_generator
from pgmpy_dp.private.noise.selection import noisy_argmax, selection_scale
from pgmpy_dp.private.sensitive import Noise, Release
from pgmpy_dp.schema import Schema, encode_label

__all__ = ["TreeSettings", "run"]

_MOST_CELLS = 10**8


@dataclass(frozen=True)
class TreeSettings:
    """How to look for a tree, fixed before the records are looked at.

    Parameters
    ----------
    n_edges : int, optional
        Edges of the forest. Default: one less than variables, a spanning tree.
    one_way_share : float in (0, 1), default 0.1
        Share of the budget for the tables of single variables.
    selection_share : float in (0, 1), default 0.1
        Share of the budget for selecting the edges, in equal parts; what is left measures their tables.
    random_state : int, optional
        For tests and benchmarks only: repeatable noise. **Not private**; a `ReproducibleNoiseWarning` says so.

    Raises
    ------
    TypeError, ValueError
        For arguments that are wrong whatever the schema.
    """

    n_edges: int | None = None
    one_way_share: float = 0.1
    selection_share: float = 0.1
    random_state: int | None = None

    def __post_init__(self) -> None:
        if self.n_edges is not None:
            object.__setattr__(self, "n_edges", checked_integer("n_edges", self.n_edges, 0))
        for name in ("one_way_share", "selection_share"):
            share = checked_number(name, getattr(self, name), positive=True, below_one=True)
            object.__setattr__(self, name, share)
        if Fraction(self.one_way_share) + Fraction(self.selection_share) >= 1:
            raise ValueError(
                f"one_way_share={self.one_way_share!r} and selection_share={self.selection_share!r} leave nothing of "
                "the budget for the tables of edges; pass shares that sum to less than 1"
            )
        if self.random_state is not None:
            object.__setattr__(self, "random_state", checked_integer("random_state", self.random_state, 0))


def run(table: PrivateTable, settings: TreeSettings, budget: Budget) -> Release:
    """Release noisy tables of all variables and of the edges of a forest.

    Parameters
    ----------
    table : PrivateTable
    settings : TreeSettings
    budget : Budget
        What this release spends. It is charged to the table's ledger, whole, before anything is counted.

    Returns
    -------
    Release
        ``kind="marginals"``: one table per variable, in the order of the schema, then one per edge, in the order in
        which they were selected.

    Raises
    ------
    BudgetExceeded
        If the ledger does not have the budget left; it stays as it was.
    TypeError, ValueError
        For more edges than a tree has, tables that are too large, or a budget too small for any selection. All depend
        on public arguments only and come before the charge.

    Notes
    -----
    Privacy
        *Sensitivity.* One table: 1 in l1 and l2 norm under ``add_remove``; 2 and sqrt(2) under ``replace_one``. The
        score of a pair, ``norm1(n_ij - round(N q_i q_j))``, moves by at most 1 or 2: N, q_i and q_j come from the noisy
        tables of single variables (and a public number of records), and the score is computed in integers
        (:func:`~pgmpy_dp.private.data.pair_scores.misfit_scores`). Mutual information would not do: times n it can move
        by about log n.

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
    >>> run(table, TreeSettings(n_edges=1), Budget(rho=1.0)).scopes
    (('a',), ('b',), ('c',), ('a', 'b'))
    """
    require_table_and_budget(table, budget)
    n_edges, shares, cost = _plan(table, settings, budget)
    one_way, selection, measuring = shares
    gaussian = isinstance(cost, ZCDP)
    mechanism = "gumbel_noisy_max+discrete_gaussian" if gaussian else "exponential_noisy_max+discrete_laplace"
    seed = seeded_generator(settings.random_state)
    names = table.schema.variables
    table.ledger.charge(
        cost,
        what=f"tables of {len(names)} variables and of {n_edges} chosen pairs",
        columns=list(names),
        mechanism=mechanism,
        adjacency=table.adjacency,
        reproducible=seed is not None,
    )
    sizes = [table.schema.cardinality(name) for name in names]
    values, noise = additive_release(
        contingency_tables(table, [(name,) for name in names]), cost, one_way, one_way_weights(sizes, cost), seed
    )
    edges: list[tuple[int, int]] = []
    if n_edges:
        pairs = list(itertools.combinations(range(len(names)), 2))
        exact = contingency_tables(table, [(names[i], names[j]) for i, j in pairs])
        independent = _independent(values, noise, table.n_records)
        scores = misfit_scores(exact, [independent(*pair) for pair in pairs])
        scale = selection_scale(scores.linf, cost, selection / n_edges)
        forest = nx.utils.UnionFind(range(len(names)))
        for _ in range(n_edges):
            open_pairs = [k for k, (i, j) in enumerate(pairs) if forest[i] != forest[j]]
            best = open_pairs[int(noisy_argmax([scores.value[open_pairs]], scale, cost, seed)[0])]
            edges.append(pairs[best])
            forest.union(*pairs[best])
        chosen = [exact[pairs.index(edge)] for edge in edges]
        more, more_noise = additive_release(chosen, cost, measuring, seed=seed)
        values, noise = values + more, noise + more_noise
    return Release(
        kind="marginals",
        values=tuple(values),
        noise=tuple(noise),
        public={
            "schema": table.schema.to_dict(),
            "scopes": [
                [encode_label(names[i]) for i in scope] for scope in [*((i,) for i in range(len(names))), *edges]
            ],
            "n_records": table.n_records,
            "settings": {
                "n_edges": settings.n_edges,
                "one_way_share": settings.one_way_share,
                "selection_share": settings.selection_share,
                "budget": budget.guarantee.to_dict(),
            },
        },
        adjacency=table.adjacency,
        guarantee=cost,
        mechanism=mechanism,
        reproducible=seed is not None,
    )


def _plan(
    table: PrivateTable, settings: TreeSettings, budget: Budget
) -> tuple[int, tuple[Fraction, Fraction, Fraction], PureDP | ZCDP]:
    """Number of edges, shares (single variables, all selections, tables of edges) and cost, from public numbers."""
    schema: Schema = table.schema
    sizes = [schema.cardinality(name) for name in schema.variables]
    most = len(sizes) - 1
    n_edges = most if settings.n_edges is None else settings.n_edges
    if n_edges > most:
        raise ValueError(f"n_edges={n_edges!r} is more than the {most} edges of a tree of {len(sizes)} variables")
    cells = (sum(sizes) ** 2 - sum(k * k for k in sizes)) // 2
    if cells > _MOST_CELLS:
        raise ValueError(
            f"the tables of all pairs have {cells} cells together, more than {_MOST_CELLS}; use fewer "
            "variables or states"
        )
    cost = sequential_cost(budget)
    one_way = Fraction(settings.one_way_share) if n_edges else Fraction(1)
    selection = Fraction(settings.selection_share) if n_edges else Fraction(0)
    measuring = 1 - one_way - selection
    # Refuses scales that would bury any count, before the charge.
    weights = one_way_weights(sizes, cost)
    for count, share, parts in ((len(sizes), one_way, weights), (n_edges, measuring, None)):
        if not count:
            continue
        if isinstance(cost, ZCDP):
            gaussian_scales([2.0] * count, share * Fraction(cost.rho), parts)
        else:
            laplace_scales([2.0] * count, share * Fraction(cost.epsilon), parts)
    if n_edges:
        selection_scale(2.0, cost, selection / n_edges)
    return n_edges, (one_way, selection, measuring), cost


def _independent(
    values: list[np.ndarray], noise: list[Noise], n_records: int | None
) -> Callable[[int, int], np.ndarray]:
    """Expected counts of a pair, were its variables independent, from noisy tables of single variables."""
    shares = []
    for value in values:
        positive = np.maximum(value.astype(np.float64), 0.0)
        total = positive.sum()
        shares.append(positive / total if total > 0 else np.full(len(value), 1.0 / len(value)))
    precision = np.array([1.0 / (item.variance * len(value)) for item, value in zip(noise, values, strict=True)])
    total = float(precision @ [float(value.sum()) for value in values] / precision.sum())
    n = max(total if n_records is None else float(n_records), 1.0)
    return lambda i, j: n * np.outer(shares[i], shares[j])
