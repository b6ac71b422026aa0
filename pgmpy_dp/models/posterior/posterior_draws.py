"""Draws of a model's parameters, the answers under each of them, and intervals.

`pgmpy_dp.models.posterior.posterior_sampling` makes them. This needs neither SciPy nor pandas, so that a file's draws
are read quickly.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from pgmpy_dp.inference.batch import SumProductBatch
from pgmpy_dp.inference.belief_propagation import SumProduct
from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.inference.scope_marginals import Scope, ScopeMarginals
from pgmpy_dp.learning.structural_zeros import log_weights, with_zeros
from pgmpy_dp.shown import quantity


class Interval(NamedTuple):
    """Posterior mean and interval, arrays of one shape."""

    estimate: np.ndarray
    lower: np.ndarray
    upper: np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class Posterior:
    """Draws of the parameters, and the answers about the population under each.

    Attributes
    ----------
    cliques : Cliques
    theta : ndarray of shape (n_draws, n_cells)
        One row of log-potentials per draw.
    method : str
    status : str
        How the draws were made and how that ended.
    memory_limit : int
        Bytes that exact inference may allocate.

    Notes
    -----
    An interval of level L is meant to contain the *population's* value with probability L, over repeated samples of
    records and repeated noise, on average over cells. A single cell can be covered less: estimates are shrunk, and
    cells that the release says nothing about are covered as far as the prior is right about them.
    """

    cliques: Cliques
    theta: np.ndarray
    method: str
    status: str
    memory_limit: int

    def __repr__(self) -> str:
        size = quantity(self.cliques.n_cells, "log-potential")
        return f"Posterior({quantity(self.n_draws, 'draw')} of {size} by {self.method!r})"

    @property
    def n_draws(self) -> int:
        """Number of draws."""
        return len(self.theta)

    def model(self, k: int) -> LogLinearModel:
        """The model of draw k."""
        return LogLinearModel(self.cliques, self.theta[k], self.memory_limit)

    def obeying(self, boxes: Sequence[Mapping[Hashable, frozenset[int]]]) -> Posterior:
        """Each draw conditioned on what boxes leave possible; see `pgmpy_dp.learning.structural_zeros`."""
        cliques = with_zeros(self.cliques, boxes)
        theta = np.pad(self.theta, ((0, 0), (0, cliques.n_cells - self.cliques.n_cells)))
        return replace(self, cliques=cliques, theta=theta + log_weights(cliques, boxes, theta[0]))

    @cached_property
    def marginals(self) -> np.ndarray:
        """Marginals of all tables under each draw, shape (n_draws, n_cells)."""
        return self._engine().marginals(self.theta)

    def _engine(self, extra: Sequence[Scope] = ()) -> SumProductBatch:
        return SumProductBatch(self.cliques, self.n_draws, extra, self.memory_limit)

    def tables(self, scopes: Sequence[Scope]) -> list[np.ndarray]:
        """Tables of many small sets of variables, each of the shape (n_draws, cardinalities of the set...)."""
        engine = SumProduct(self.cliques, memory_limit=self.memory_limit)
        source = ScopeMarginals(self.cliques, self.theta[0], engine)
        draws = [source.at(theta).tables(scopes) for theta in self.theta]
        return [np.array(tables) for tables in zip(*draws, strict=True)]

    def query(self, variables: Sequence[Hashable]) -> np.ndarray:
        """Joint distribution of some variables, in any tables or none together, under each draw.

        Parameters
        ----------
        variables : sequence of variables

        Returns
        -------
        ndarray of shape (n_draws, cardinalities of `variables`...)
            Each draw's table sums to 1. A `Question` has answers to it, given what is known of some of them.

        Raises
        ------
        ValueError
            If there is none, or one is unknown or repeated.
        """
        scope = Cliques(self.cliques.variables, self.cliques.cardinalities, (tuple(variables),))
        marginals = self._engine(scope.indices).marginals(self.theta)
        tables = marginals[:, self.cliques.n_cells :].reshape(-1, *scope.shapes[0])
        return tables / tables.sum(axis=tuple(range(1, tables.ndim)), keepdims=True)

    def interval_of(self, draws: np.ndarray, level: float = 0.9) -> Interval:
        """Mean and interval of a quantity from its value under each draw.

        The ends are order statistics at (n_draws + 1) (1 -+ level)/2, interpolated: another draw falls between them
        with probability `level`, however few draws there are. The lower end is that of a normal interval where this is
        lower, and not beyond 0 where no draw is. Draws of a share that noise hides are log-normal, as their prior is,
        and never come near 0; log-probabilities of populations are skewed to the left, and many are next to 0.

        Raises
        ------
        ValueError
            If level is not between 0 and 1, or so near 1 that the draws do not reach it.
        """
        if not 0 < level < 1:
            raise ValueError(f"level must be between 0 and 1, got {level!r}")
        if (len(draws) + 1) * (1 - level) < 2 * (1 - 1e-12):
            needed = math.ceil(2 / (1 - level)) - 1
            raise ValueError(f"level={level} needs at least {needed} draws, there are {len(draws)}: raise n_draws")
        lower, upper = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2], axis=0, method="weibull")
        mean = np.mean(draws, axis=0)
        normal = mean - NormalDist().inv_cdf((1 + level) / 2) * np.std(draws, axis=0, ddof=1)
        normal = np.where(np.min(draws, axis=0) < 0, normal, np.maximum(normal, 0.0))
        return Interval(mean, np.minimum(lower, normal), upper)
