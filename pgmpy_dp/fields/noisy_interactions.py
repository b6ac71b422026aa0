"""Noisy centred interactions of all pairs or a public graph's: moments of a pairwise random field, without margins."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from pgmpy_dp.fields.operators.feature_matrices import InteractionMatrixSums
from pgmpy_dp.fields.operators.interactions import InteractionSums, InteractionUnits
from pgmpy_dp.fields.parity_features import MOST_FEATURES
from pgmpy_dp.learning.least_noise import least_noise, noise_for_ledger
from pgmpy_dp.learning.options import Settings
from pgmpy_dp.learning.privacy_record import require_kind
from pgmpy_dp.learning.public_graph import edge_positions, encoded_graph, released_edges
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.curator.curator_base import cost_of
from pgmpy_dp.private.curator.table_curator import TableCurator
from pgmpy_dp.private.data.table import PrivateTable, require_table_and_budget
from pgmpy_dp.private.guarantee import ZCDP, PureDP
from pgmpy_dp.private.sensitive import Noise, Release
from pgmpy_dp.schema import Schema

Pairs = tuple[tuple[int, int], ...]


def run(table: PrivateTable, settings: Settings, budget: Budget) -> Release:
    """Release noisy sums of centred indicators and of their products over all pairs, or a public graph's edges.

    Refuses a table of one variable, a graph of other variables, too many cells, noise that does not fit the budget's
    measure.

    Parameters
    ----------
    table : PrivateTable
        Of at least two variables, with any numbers of states.
    settings : Settings
        `graph` and `random_state`: only interactions of a public graph's edges are released, with less noise as they
        are fewer. No estimator has these as options: `noise`, "laplace" or "wishart" for an epsilon, "gaussian" for rho
        or a delta (default: "auto", the one with the smallest variances in all, which public numbers decide; Gaussian
        in a ledger that counts zCDP already, :func:`~pgmpy_dp.learning.least_noise.noise_for_ledger`); `max_cells`,
        the largest number of cells of all pairs together (default: 10**8).

    Returns
    -------
    Release
        ``kind="interactions"``. With u_i = c_i (k_i e_a - 1) for state a of variable i: ``values[0]`` the noisy sums of
        all u_i, flat; ``values[1]`` those of u_i u_j^T for the pairs i < j in lexicographic order, each in C order,
        flat; ``values[2]``, where the number of records is not public, a noisy count of them, shape (1,).
        ``public["multipliers"]`` are the c_i, all 1 where all k_i are equal. :func:`noisy_interactions` reads it.

    Notes
    -----
    Privacy
        *Sensitivity.* That of
        :class:`~pgmpy_dp.fields.operators.interactions.InteractionSums` or
        :class:`~pgmpy_dp.fields.operators.feature_matrices.InteractionMatrixSums`, which is all that
        sees the records.

        *Guarantee.* Under the table's adjacency, epsilon-DP with discrete Laplace or rho-zCDP with discrete Gaussian
        noise, added to integers, or epsilon-DP by Wishart noise on a matrix of them. Without a matrix the p fields,
        p(p-1)/2 pairs, or as many as the graph has edges, and the count get equal shares of the budget; within
        fields and within pairs the scale is common to all cells. For an (epsilon,
        delta) budget Gaussian noise has the largest rho that dp-accounting converts to it.

        *Source.* Dwork, McSherry, Nissim and Smith 2006; Canonne, Kamath and Steinke 2020.

        *Side channels.* As :func:`pgmpy_dp.learning.noisy_tables.run`.

    Accuracy
        Centring takes the margins out of a pair, so its squared sensitivity is (1 - 1/k_i)(1 - 1/k_j) of that of a
        plain table. Two states: the noise of z_i and of z_i z_j is the same as from
        :mod:`pgmpy_dp.fields.noisy_parities`.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"a": [0, 1, 1], "b": ["x", "y", "z"]})
    >>> table = PrivateTable(frame, {"a": [0, 1], "b": ["x", "y", "z"]}, ledger=Budget(rho=1.0))
    >>> from pgmpy_dp.learning.options import Settings
    >>> release = run(table, Settings(graph=None, random_state=None), Budget(rho=0.5))
    >>> release.names, str(release.guarantee), str(table.ledger.left)
    (('fields', 'pairs', 'n_records'), '0.5-zCDP', '0.5-zCDP')
    """
    budget = require_table_and_budget(table, budget)
    settings = settings.filled(noise="auto", max_cells=10**8)
    schema, with_count = table.schema, table.n_records is None
    pairs, cells = _pairs(schema, settings)
    sizes = [schema.cardinality(name) for name in schema.variables]
    noise = noise_for_ledger(settings.noise, budget, table)
    cost, matrix = _least(schema, pairs, cells, table.adjacency, with_count, noise, budget)
    curator = TableCurator(
        table,
        budget,
        what=f"interactions of {'all pairs' if pairs is None else 'a graph'} of {len(schema)} variables",
        mechanism="discrete_wishart" if matrix else None,
        pure=isinstance(cost, PureDP),
        random_state=settings.random_state,
    )
    curator.ask((InteractionMatrixSums if matrix else InteractionSums)(pairs, with_count), 1)
    public = {
        "multipliers": list(InteractionUnits(tuple(sizes)).multipliers),
        "graph": encoded_graph(settings.graph),
        "settings": settings.public(budget, "noise"),
    }
    return curator.release("interactions", public, curator.called("fields", "pairs", "n_records"))


def _least(
    schema: Schema,
    pairs: Pairs | None,
    cells: int,
    adjacency: Adjacency,
    with_count: bool,
    noise: str,
    budget: Budget,
) -> tuple[PureDP | ZCDP, bool]:
    """The cost of the smallest noise, and whether it is that of a matrix."""
    sizes = [schema.cardinality(name) for name in schema.variables]
    numbers = [sum(sizes), cells, 1][: 2 + with_count]
    layout = (sizes, adjacency, pairs, with_count)
    rows = 1 + sum(sizes) - len(sizes)
    possible = budget.epsilon is not None and noise in ("auto", "wishart") and 1 < rows <= MOST_FEATURES
    if noise == "wishart" and not possible:
        raise ValueError(
            f"noise='wishart' is for an epsilon and matrices of at most {MOST_FEATURES} rows, but the budget is "
            f"{budget} and the matrix has {rows} rows; use noise='auto'"
        )
    if noise == "wishart":
        cost = cost_of(budget, pure=True)
    else:
        cost = least_noise(
            lambda cost: InteractionSums.planned(*layout, cost, Fraction(1)).noise, numbers, budget, noise
        )
    if not possible:
        return cost, False
    pure = cost_of(budget, pure=True)
    assert isinstance(pure, PureDP)

    def total(noises: Sequence[Noise]) -> float:
        return math.fsum(number * one.variance for number, one in zip(numbers, noises, strict=True))

    better = total(InteractionMatrixSums.planned(*layout, pure, Fraction(1)).noise) < total(
        InteractionSums.planned(*layout, cost, Fraction(1)).noise
    )
    return (pure, True) if noise == "wishart" or better else (cost, False)


def _pairs(schema: Schema, settings: Settings) -> tuple[Pairs | None, int]:
    """The edges of the public graph, None for all pairs, and their cells; ValueError for one variable, and too many."""
    sizes = [schema.cardinality(name) for name in schema.variables]
    if len(sizes) < 2:
        raise ValueError(f"schema declares the variables {list(schema.variables)}; interactions need at least two")
    pairs, cells = None, (sum(sizes) ** 2 - sum(k * k for k in sizes)) // 2
    if settings.graph is not None:
        pairs = _edges(edge_positions(schema, settings.graph))
        cells = sum(sizes[i] * sizes[j] for i, j in pairs)
    if cells > settings.max_cells:
        raise ValueError(
            f"all {'pairs' if pairs is None else 'edges'} have {cells} cells together, more than "
            f"{settings.max_cells}; merge states, or drop variables"
        )
    return pairs, cells


def _edges(edges: list[tuple[int, int]]) -> Pairs:
    """Each pair once, i < j, in lexicographic order."""
    return tuple(sorted({(min(edge), max(edge)) for edge in edges}))


@dataclass(frozen=True)
class NoisyInteractions:
    """A release of kind "interactions", per variable and per pair.

    Attributes
    ----------
    fields : tuple of ndarray, shapes (k_i,)
        Noisy sums over records of ``k_i e_a - 1``; each adds up to 0.
    pairs : dict of tuple (i, j) to ndarray of shape (k_i, k_j)
        Noisy sums of ``(k_i e_a - 1)(k_j e_b - 1)^T`` of all pairs, or of the edges of the public graph; rows and
        columns add up to 0.
    field_sd, pair_sd : float
        Standard deviation of the noise of a cell before centring, divided by k_i, by k_i k_j: the same for all where
        the multipliers are exact. Centring leaves ``1 - 1/k_i`` and ``(1 - 1/k_i)(1 - 1/k_j)`` of its variance.
    n_records : float
        The public number of records, or the noisy count.
    """

    fields: tuple[np.ndarray, ...]
    pairs: dict[tuple[int, int], np.ndarray]
    field_sd: float
    pair_sd: float
    n_records: float


def noisy_interactions(release: Release) -> NoisyInteractions:
    """Read a release of this learner; ValueError for another kind. Post-processing.

    The true sums are centred, so centring the noise takes part of it away and nothing else.
    """
    require_kind(release, "interactions")
    sizes = [release.schema.cardinality(name) for name in release.schema.variables]
    c = release.public["multipliers"]
    flat = np.split(release["fields"].array.astype(float), np.cumsum(sizes)[:-1])
    fields = tuple((part - part.mean()) / m for part, m in zip(flat, c, strict=True))
    pairs, start = {}, 0
    edges = released_edges(release)
    for i, j in itertools.combinations(range(len(sizes)), 2) if edges is None else _edges(edges):
        stop = start + sizes[i] * sizes[j]
        table = release["pairs"].array[start:stop].reshape(sizes[i], sizes[j]).astype(float)
        table = table - table.mean(axis=0) - table.mean(axis=1, keepdims=True) + table.mean()
        pairs[i, j], start = table / (c[i] * c[j]), stop
    unit = max(m * k for m, k in zip(c, sizes, strict=True))
    noises = (release[name].noise for name in ("fields", "pairs"))
    deviations = [math.sqrt(noise.variance) for noise in noises if noise is not None]
    n = release.n_records if release.n_records is not None else float(release["n_records"].array[0])
    return NoisyInteractions(fields, pairs, deviations[0] / unit, deviations[1] / unit**2, float(n))
