"""Find cells of released tables that are probably empty by the law of the noise, and make a prior that knows them.

Noise raises half of the empty cells, and a fit cannot lower the others below nothing. So in a table whose cells are
mostly empty a fit finds people where nobody can be. A prior centred on independence makes it worse: it expects people
in each of these cells.

Here a cell of a pair's table holds R times the records that independence of the two variables would give. R is 0 with
the spike's probability, which is learned from the table itself. Otherwise R is log-normal, with a part of a quarter
that is uniform in log R between 1/32 and 1: dense tables have some nearly empty cells too, which without that part
were taken for empty. (R below 1/32 counts as 0.) Centre and deviation of the log-normal are averaged over their
posterior, as is the share of spikes. A table has empty cells at all if they are a tenth or more with a probability
of .95. A cell of it is believed empty if the posterior probability of its spike, the local false discovery rate of
"somebody is there", exceeds one half.

The model is then learned with a prior centred on quasi-independence: independence of the two variables in all other
cells, and in those believed empty the posterior mean, which is never zero. Their noise is replaced by that mean and by
its posterior deviation, in larger tables too.

Efron (2008), Microarrays, empirical Bayes and the two-groups model, Statistical Science 23; Goodman (1968), The
analysis of cross-classified data: independence, quasi-independence, and interactions, JASA 63.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np

from pgmpy_dp.learning.interaction_split import InteractionSplit
from pgmpy_dp.learning.noise_likelihood import log_density
from pgmpy_dp.learning.noisy_marginals import NoisyMarginals

_BELIEVED = 0.5
_SOME, _TABLE = 0.1, 0.95
"""A table has empty cells at all if its release says with this probability that they are a tenth or more."""
_SEEN = 3.0  # standard deviations of the noise, from which on a cell is not empty
_RATIOS = np.geomspace(1 / 32, 1024, 46)
_STEP = 0.5 * np.log(_RATIOS[1] / _RATIOS[0])
_SHARES = np.array([0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98])
"""Shares of empty cells; their prior is Beta(1, 2)."""
_LEFT = 0.25
"""Part of the cells with somebody in them whose R is anything below 1."""
_SWEEPS, _LEAST = 100, 1e-3  # of proportional fitting; the share of a margin that is left for cells not believed empty
_NOTHING = 1e-24  # probability of a share that makes no difference


def _alternatives() -> np.ndarray:
    """p(R | centre, deviation) on the grid, shape (n_ratios, n_centres * n_deviations)."""
    centres, deviations = np.log(2.0) * np.arange(-2, 9), np.array([0.5, 1.0, 1.5, 2.0, 3.0])
    density = np.exp(-0.5 * ((np.log(_RATIOS)[:, None, None] - centres[:, None]) / deviations) ** 2)
    density = density.reshape(len(_RATIOS), -1)
    left = (_RATIOS <= 1)[:, None]
    return (1 - _LEFT) * density / density.sum(axis=0) + _LEFT * left / left.sum()


_ALTERNATIVES = _alternatives()


@dataclass(frozen=True, eq=False)
class PairTable:
    """The released table of two variables, with its probably empty cells.

    Attributes
    ----------
    scope : tuple of int
        Positions of the variables, ascending: the axes of the arrays.
    counts : ndarray
        Sums of all tables that have both, averaged by precision.
    variance : ndarray
        Of the noise in them; 0 where the schema says that a cell is impossible.
    independent : ndarray
        Records that independence would give.
    empty : ndarray
        Probability that nobody is there.
    mean, deviation : ndarray
        Posterior mean and standard deviation of the number of records, in cells that may be empty.
    """

    scope: tuple[int, int]
    counts: np.ndarray
    variance: np.ndarray
    independent: np.ndarray
    empty: np.ndarray
    mean: np.ndarray
    deviation: np.ndarray

    @property
    def believed(self) -> np.ndarray:
        """Cells that are believed empty."""
        return self.empty > _BELIEVED


def pair_tables(noisy: NoisyMarginals, some: float = _SOME) -> list[PairTable]:
    """The pooled table of each pair of variables that some table has, with its probably empty cells.

    Parameters
    ----------
    noisy : NoisyMarginals
        With noise.
    some : float
        The share of empty cells that a table must be known to have, for any of its cells to count as one.

    Returns
    -------
    list of PairTable

    Examples
    --------
    >>> from pgmpy_dp.inference.cliques import Cliques
    >>> cliques = Cliques(("a", "b"), (9, 9), (("a", "b"),))
    >>> counts = 500 * np.eye(9) + np.random.default_rng(0).normal(0, 20, (9, 9))
    >>> (table,) = pair_tables(NoisyMarginals(cliques, counts.ravel(), "gaussian", np.array([20.0])))
    >>> bool((table.believed == ~np.eye(9, dtype=bool)).all())
    True
    """
    margins = _margins(noisy)
    tables = []
    for scope, (counts, variance, noise) in _pooled(noisy).items():
        independent = noisy.n_records * np.outer(margins[scope[0]], margins[scope[1]])
        seen = variance > 0
        empty, mean, deviation = np.zeros((3, *counts.shape))
        if seen.any():
            empty[seen], mean[seen], deviation[seen] = _two_groups(
                counts[seen], variance[seen], independent[seen], noise, some
            )
        tables.append(PairTable(scope, counts, variance, independent, empty, mean, deviation))
    return tables


@dataclass(frozen=True, eq=False)
class Floor:
    """The records that the noise may hide in the cells of a pair that are believed empty, taken together.

    Attributes
    ----------
    cells, of : ndarray of int
        Their places in the cells of all tables that have the pair, and which of them each is.
    in_base : ndarray of bool
        Whether it is in the table that the base has them in.
    expected : ndarray
        Records in each of them, as the prior has it.
    total, deviation : float
        Their sum as released, and the standard deviation of the noise in it.
    """

    cells: np.ndarray
    of: np.ndarray
    in_base: np.ndarray
    expected: np.ndarray
    total: float
    deviation: float

    def factors(self, rng: np.random.Generator) -> np.ndarray:
        """Draw the factor by which the records in each of `cells` exceed the prior's.

        The law of the noise says how many records all cells may hold together, where their sum is above nothing. Their
        division among the cells is unknown: half of it is as the prior has it and half is equal, and a cell's part
        varies as the square of a normal variable.
        """
        none = NormalDist().cdf(-self.total / self.deviation)
        above = NormalDist().inv_cdf(min(none + (1 - none) * rng.uniform(1e-6, 1), 1 - 1e-12))
        total = max(self.total + self.deviation * above, 1e-6)
        parts = np.maximum(rng.normal(size=len(self.expected)) ** 2, _LEAST)
        alike = 0.5 / self.expected.sum() + 0.5 / (len(self.expected) * self.expected)
        return (total * alike * parts)[self.of]


def with_empty_cells(noisy: NoisyMarginals) -> tuple[NoisyMarginals, np.ndarray | None, list[Floor]]:
    """Replace the noise of empty cells in tables, and give log-potentials for a prior to be centred on.

    Parameters
    ----------
    noisy : NoisyMarginals

    Returns
    -------
    noisy : NoisyMarginals
    base : ndarray of shape (n_cells,), optional
        None, and the tables as they were, where no cell is believed empty.
    floors : list of Floor
        For draws of a posterior: of each pair with such cells.

    Examples
    --------
    >>> from pgmpy_dp.inference.cliques import Cliques
    >>> cliques = Cliques(("a", "b"), (2, 2), (("a", "b"),))
    >>> dense = NoisyMarginals(cliques, np.array([30.0, 20.0, 20.0, 30.0]), "laplace", np.array([1.0]))
    >>> with_empty_cells(dense)[1] is None
    True
    """
    tables = [table for table in pair_tables(noisy) if table.believed.any()]
    if not tables:
        return noisy, None, []
    cliques, margins = noisy.cliques, _margins(noisy)
    counts = [table.copy() for table in cliques.split(noisy.counts)]
    merged = np.ones(cliques.n_cells) if noisy.merged_cells is None else noisy.merged_cells
    cells = [table.copy() for table in cliques.split(merged)]
    base, floors = [np.zeros(shape) for shape in cliques.shapes], list[Floor]()
    one = (2.0 if noisy.noise == "laplace" else 1.0) * noisy.scale**2  # variance of the noise of one released cell
    for table in tables:
        hosts = [c for c, scope in enumerate(cliques.indices) if set(table.scope) <= set(scope)]
        smallest = min(hosts, key=lambda c: cliques.sizes[c])
        numbers = np.cumsum(table.believed).reshape(table.believed.shape) - 1
        cells_of, of, in_base = [], [], []
        for c in hosts:
            scope = cliques.indices[c]
            # What else the table has is independent of a cell's emptiness, as far as anybody knows.
            likely = np.ones(())
            for i in scope:
                likely = np.multiply.outer(
                    likely, np.ones(cliques.cardinalities[i]) if i in table.scope else margins[i]
                )
            believed = np.broadcast_to(_within(table.believed, table.scope, scope), counts[c].shape)
            mean = likely * _within(table.mean, table.scope, scope)
            released = likely * _within(table.deviation, table.scope, scope) ** 2 / one[c]
            counts[c] = np.where(believed, mean, counts[c])
            cells[c] = np.where(believed, np.clip(released, 1e-4 * cells[c], cells[c]), cells[c])
            cells_of.append(cliques.slices[c].start + np.flatnonzero(believed))
            of.append(np.broadcast_to(_within(numbers, table.scope, scope), believed.shape)[believed])
            in_base.append(np.full(len(of[-1]), c == smallest))
            if c == smallest:
                base[c] += _within(_quasi_independence(table), table.scope, scope)
        total, variance = (float(part[table.believed].sum()) for part in (table.counts, table.variance))
        likely_there = np.maximum(table.mean[table.believed], 1e-6)
        places, part, here = (np.concatenate(parts) for parts in (cells_of, of, in_base))
        floors.append(Floor(places, part, here, likely_there, total, math.sqrt(variance)))
    return replace(noisy, counts=cliques.join(counts), merged_cells=cliques.join(cells)), cliques.join(base), floors


def _within(array: np.ndarray, pair: tuple[int, int], scope: tuple[int, ...]) -> np.ndarray:
    """An array of a pair with the axes of a larger table; of length 1 where that has others."""
    turned = array if scope.index(pair[0]) < scope.index(pair[1]) else array.T
    return np.expand_dims(turned, [axis for axis, i in enumerate(scope) if i not in pair])


def _margins(noisy: NoisyMarginals) -> dict[int, np.ndarray]:
    """Proportions of the states of each variable; a count below half its noise counts as half of it."""
    split = InteractionSplit(noisy.cliques)
    counts, variance = split.combined_margins(noisy.counts, noisy.cell_variance)
    likely = np.maximum(counts, 0.5 * np.sqrt(variance))
    parts = [likely[split.node_of_state == k] for k in range(split.n_nodes)]
    return {i: part / part.sum() for i, part in zip(split.nodes, parts, strict=True)}


def _pooled(noisy: NoisyMarginals) -> dict[tuple[int, int], tuple[np.ndarray, np.ndarray, str]]:
    """The pooled counts of each pair, with the variance and the law of their noise."""
    cliques = noisy.cliques
    held: dict[tuple[int, int], list[tuple[np.ndarray, np.ndarray, bool]]] = {}
    variances = cliques.split(noisy.cell_variance * noisy.possible)
    for scope, table, variance in zip(cliques.indices, cliques.split(noisy.counts), variances, strict=True):
        for pair in itertools.combinations(sorted(scope), 2):
            others = tuple(axis for axis, i in enumerate(scope) if i not in pair)
            turned = scope.index(pair[0]) > scope.index(pair[1])
            counts, noise = ((x.sum(axis=others).T if turned else x.sum(axis=others)) for x in (table, variance))
            held.setdefault(pair, []).append((counts, noise, len(scope) == 2))
    pooled: dict[tuple[int, int], tuple[np.ndarray, np.ndarray, str]] = {}
    for pair, tables in held.items():
        # A cell that is impossible in one table is so in all, and 0.
        weights = [1 / np.where(noise > 0, noise, 1.0) for _, noise, _ in tables]
        total = sum(weights)
        mean = sum(weight * counts for weight, (counts, _, _) in zip(weights, tables, strict=True)) / total
        variance = np.where(tables[0][1] > 0, 1 / total, 0.0)
        pooled[pair] = mean, variance, noisy.noise if len(tables) == 1 and tables[0][2] else "gaussian"
    return pooled


def _two_groups(
    counts: np.ndarray, variance: np.ndarray, independent: np.ndarray, noise: str, some: float
) -> np.ndarray:
    """Probability of the spike, posterior mean and deviation of each cell of a table; 0 in one that cannot be empty."""
    moments, unseen = np.zeros((3, len(counts))), counts <= _SEEN * np.sqrt(variance)
    if not unseen.any():
        return moments
    scale = np.sqrt(variance / 2 if noise == "laplace" else variance)[:, None]
    expected = independent[:, None] * np.concatenate([[0.0], _RATIOS])
    # A ratio of the grid stands for those near it.
    spread_variance = expected + (_STEP * expected) ** 2 + 1e-4 * scale**2
    log_p = log_density(expected - counts[:, None], spread_variance, noise, scale)
    p = np.maximum(np.exp(log_p - log_p.max(axis=1, keepdims=True)), 1e-300)
    spike, alternative = p[:, :1], p[:, 1:] @ _ALTERNATIVES
    log_posterior = np.array([np.log(s * spike + (1 - s) * alternative).sum(axis=0) + np.log(1 - s) for s in _SHARES])
    weights = np.exp(log_posterior - log_posterior.max())
    weights /= weights.sum()
    if weights[some <= _SHARES].sum() < _TABLE:
        return moments
    spike, alternative, p = spike[unseen], alternative[unseen], p[unseen, 1:]
    first, second = ((p * _RATIOS**k) @ _ALTERNATIVES for k in (1, 2))
    for share, weight in zip(_SHARES, weights, strict=True):
        if weight.max() > _NOTHING:
            likely = weight / (share * spike + (1 - share) * alternative)
            sums = [np.einsum("ij,ij->i", part, likely) for part in (first, second)]
            moments[:, unseen] += share * spike[:, 0] * likely.sum(axis=1), *((1 - share) * part for part in sums)
    _, mean, square = moments
    moments[1:] = independent * mean, independent * np.sqrt(np.maximum(square - mean**2, 0.0))
    return moments


def _quasi_independence(table: PairTable) -> np.ndarray:
    """Log-ratio to independence of the model with the table's margins and independence in cells not believed empty."""
    likely, possible = table.independent, table.variance > 0
    held = np.where(table.believed, table.mean, 0.0)
    free = np.where(table.believed | ~possible, 0.0, likely)
    rows, columns = (np.maximum(likely.sum(axis=k) - held.sum(axis=k), _LEAST * likely.sum(axis=k)) for k in (1, 0))
    for _ in range(_SWEEPS):
        free *= (rows / np.maximum(free.sum(axis=1), 1e-12))[:, None]
        free *= columns / np.maximum(free.sum(axis=0), 1e-12)
    ratio = np.where(possible, (held + free) / likely, 1.0)
    return np.log(np.clip(ratio, 1e-6, 1e6))
