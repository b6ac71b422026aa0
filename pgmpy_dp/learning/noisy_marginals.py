"""Released tables as a value: the noisy counts, the noise that is in them, and the total."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import numpy as np

from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.learning.level_engine import NO_LEVELS, Levels, leaf_scope
from pgmpy_dp.learning.structural_zeros import forbidden_cells


@dataclass(frozen=True, eq=False)
class NoisyMarginals:
    """Contingency tables plus noise of a known distribution.

    Parameters
    ----------
    cliques : Cliques
        The tables' scopes.
    counts : ndarray of shape (n_cells,)
        y = n + noise, in records.
    noise : {"laplace", "gaussian", "none"}
        Distribution of the noise.
    scale : ndarray of shape (n_cliques,)
        Laplace scale b or Gaussian standard deviation sigma of each table's cells, in records; 0 for "none".
    total : float, optional
        The public record count. Without it the total is estimated from the tables, see `n_records`.
    total_sd : float
        The standard deviation of `total`, where that is an estimate already.
    merged_cells : ndarray of shape (n_cells,), optional
        How many released cells, each with noise of its table's scale, were added up to each cell. Default: one.
    impossible : tuple of mapping of variable to set of int
        Boxes of states that cannot be together (`pgmpy_dp.learning.structural_zeros`), for reasons that are public:
        fits are of models that obey them. What was released of their cells is noise, and counts as 0.
    levels : mapping of level to (variable, ndarray of int), optional
        The variables of `cliques` that are levels of others, counties and states of tracts: of each its variable and,
        for each of that variable's states, its own (:mod:`pgmpy_dp.learning.level_engine`).

    Examples
    --------
    >>> import numpy as np
    >>> cliques = Cliques(("a",), (2,), (("a",),))
    >>> noisy = NoisyMarginals(cliques, np.array([31.0, 72.0]), "laplace", np.array([1.0]))
    >>> noisy.n_records, noisy.n_records_sd
    (103.0, 2.0)
    """

    cliques: Cliques
    counts: np.ndarray
    noise: Literal["laplace", "gaussian", "none"]
    scale: np.ndarray
    total: float | None = None
    merged_cells: np.ndarray | None = None
    impossible: tuple[Mapping[Hashable, frozenset[int]], ...] = ()
    levels: Levels = field(default_factory=dict)
    total_sd: float = 0.0

    def __post_init__(self) -> None:
        counts = np.array(self.counts, dtype=np.float64)
        scale = np.array(self.scale, dtype=np.float64)
        if counts.shape != (self.cliques.n_cells,):
            raise ValueError(f"counts must have shape ({self.cliques.n_cells},), got {counts.shape}")
        if scale.shape != (self.cliques.n_cliques,):
            raise ValueError(f"scale must have one entry per table ({self.cliques.n_cliques}), got shape {scale.shape}")
        if self.noise not in ("laplace", "gaussian", "none"):
            raise ValueError(f'noise must be "laplace", "gaussian" or "none", got {self.noise!r}')
        if not np.isfinite(counts).all():
            raise ValueError("counts must be finite")
        if self.noise == "none" and np.any(scale != 0):
            raise ValueError('scale must be 0 where noise is "none"')
        if self.noise != "none" and not (np.isfinite(scale).all() and np.all(scale > 0)):
            raise ValueError(f"scale must be positive and finite, got {scale}")
        if self.total is not None and not (math.isfinite(self.total) and self.total > 0):
            raise ValueError(f"total must be a positive number of records, got {self.total!r}")
        if self.cliques.n_cliques == 0:
            raise ValueError("cliques must have at least one table")
        self._require_levels()
        if self.merged_cells is not None:
            merged = np.array(self.merged_cells, dtype=np.float64)
            if merged.shape != counts.shape or not (merged > 0).all():
                raise ValueError(f"merged_cells must be {len(counts)} positive numbers, got {self.merged_cells!r}")
            object.__setattr__(self, "merged_cells", merged)
        object.__setattr__(self, "counts", np.where(self.possible, counts, 0.0))
        object.__setattr__(self, "scale", scale)

    def _require_levels(self) -> None:
        cardinality = dict(zip(self.cliques.variables, self.cliques.cardinalities, strict=True))
        sizes: dict[Hashable, int] = {}
        for name, (variable, places) in self.levels.items():
            size = sizes.setdefault(variable, cardinality.get(variable, len(places)))
            states = np.asarray(places)
            if name not in cardinality or variable in self.levels:
                raise ValueError(f"levels[{name!r}] must be one of cliques.variables, and a level of no other level")
            if states.shape != (size,) or not np.isin(states, np.arange(cardinality[name])).all():
                raise ValueError(
                    f"levels[{name!r}] must have one of the states 0 to {cardinality[name] - 1} for each of the {size} "
                    f"states of {variable!r}, got {places!r}"
                )
        for scope in self.cliques.scopes:
            if len(set(leaf_scope(scope, self.levels))) < len(scope):
                raise ValueError(f"scope {scope!r} has a variable twice, at two levels; the finer one tells both")

    @cached_property
    def possible(self) -> np.ndarray:
        """The possible cells, shape (n_cells,): those in no box of `impossible` whose variables their table has."""
        return ~forbidden_cells(self.cliques, self.impossible)

    @cached_property
    def cell_scale(self) -> np.ndarray:
        """Scale of the noise in each cell, shape (n_cells,): of the same variance, where cells were added up."""
        scale = self.cliques.spread(self.scale)
        return scale if self.merged_cells is None else scale * np.sqrt(self.merged_cells)

    @cached_property
    def cell_variance(self) -> np.ndarray:
        """Variance of the noise in each cell, shape (n_cells,)."""
        return (2.0 if self.noise == "laplace" else 1.0) * self.cell_scale**2

    @cached_property
    def table_variance(self) -> np.ndarray:
        """Mean variance of the noise in the cells of each table, shape (n_cliques,)."""
        return self.sum_variance / np.array(self.cliques.sizes)

    @cached_property
    def sum_variance(self) -> np.ndarray:
        """Variance of the sum of each table, shape (n_cliques,)."""
        if self.merged_cells is None and not self.impossible:
            return (2.0 if self.noise == "laplace" else 1.0) * self.scale**2 * np.array(self.cliques.sizes)
        return np.array([float(table.sum()) for table in self.cliques.split(self.cell_variance * self.possible)])

    @cached_property
    def _total_estimate(self) -> tuple[float, float]:
        if self.total is not None:
            return float(self.total), self.total_sd
        sums = np.array([table.sum() for table in self.cliques.split(self.counts)])
        if self.noise == "none":
            return max(float(sums.mean()), 1.0), 0.0
        precision = 1.0 / self.sum_variance
        return max(float(precision @ sums / precision.sum()), 1.0), float(precision.sum() ** -0.5)

    @property
    def n_records(self) -> float:
        """The public total, or the inverse-variance mean of the tables' sums, floored at 1."""
        return self._total_estimate[0]

    @property
    def n_records_sd(self) -> float:
        """Standard deviation of the estimated total before the floor; 0 where it is public.

        Where it is of the order of `n_records` the total is mostly noise.
        """
        return self._total_estimate[1]

    @cached_property
    def proportions(self) -> np.ndarray:
        """counts / n_records, shape (n_cells,); neither non-negative nor summing to one."""
        return self.counts / self.n_records

    def beside(
        self, tables: Mapping[tuple[Hashable, ...], np.ndarray], scale: float, levels: Levels = NO_LEVELS
    ) -> NoisyMarginals:
        """These tables, and after them further ones of probabilities, as if of as many records with noise of a scale.

        The further ones tell nothing of the number of records. `levels` are those that they name.

        Examples
        --------
        >>> noisy = NoisyMarginals(Cliques(("a",), (2,), (("a",),)), np.array([31.0, 69.0]), "laplace", np.array([1.0]))
        >>> grown = noisy.beside({("a",): np.array([0.3, 0.7])}, 0.5)
        >>> grown.counts.tolist(), grown.scale.tolist(), grown.n_records_sd
        ([31.0, 69.0, 30.0, 70.0], [1.0, 0.5], 2.0)
        """
        if not tables:
            return self
        sizes = dict(zip(self.cliques.variables, self.cliques.cardinalities, strict=True))
        for scope, table in tables.items():
            sizes |= dict(zip(scope, table.shape, strict=True))
        cliques = Cliques(tuple(sizes), tuple(sizes.values()), (*self.cliques.scopes, *tables))
        merged = self.merged_cells
        return replace(
            self,
            cliques=cliques,
            counts=np.concatenate([self.counts, *(self.n_records * np.ravel(table) for table in tables.values())]),
            scale=np.append(self.scale, np.full(len(tables), scale)),
            merged_cells=None if merged is None else np.append(merged, np.ones(cliques.n_cells - len(merged))),
            levels={**self.levels, **levels},
            total=self.n_records,
            total_sd=self.n_records_sd,
        )

    def merged(self) -> NoisyMarginals:
        """Tables of the same variables made one, by inverse variance; this object itself where no two are.

        Repeated measurements of a table, each with its own noise of variance v_k, become their mean with weights
        proportional to 1/v_k, whose noise has variance ``1/sum(1/v_k)``. For Gaussian noise that loses nothing: the
        mean is a sufficient statistic. A mean of Laplace variables is no Laplace variable; it is described by the one
        of the same variance, nearly exact where one measurement outweighs the others.

        Examples
        --------
        >>> cliques = Cliques(("a",), (2,), (("a",), ("a",)))
        >>> twice = NoisyMarginals(cliques, np.array([10.0, 20.0, 14.0, 24.0]), "gaussian", np.array([1.0, 1.0]))
        >>> twice.merged().counts.tolist(), twice.merged().scale.round(3).tolist()
        ([12.0, 22.0], [0.707])
        """
        tables: dict[frozenset, list[int]] = {}
        for c, scope in enumerate(self.cliques.scopes):
            tables.setdefault(frozenset(scope), []).append(c)
        if len(tables) == self.cliques.n_cliques:
            return self
        counts_of = self.cliques.split(self.counts)
        cells = self.cliques.split(np.ones(len(self.counts)) if self.merged_cells is None else self.merged_cells)
        scopes, counts, scale, merged_cells = [], [], [], []
        for same in tables.values():
            scope = self.cliques.scopes[same[0]]
            aligned = [counts_of[c].transpose([self.cliques.scopes[c].index(name) for name in scope]) for c in same]
            # Without noise all are equally exact. Ratios of scales: their squares could leave the floats.
            weights = (self.scale[same].min() / self.scale[same]) ** 2 if self.noise != "none" else np.ones(len(same))
            scopes.append(scope)
            merged_cells.append(cells[same[0]])  # what is measured again is merged as it was before
            counts.append(np.tensordot(weights / weights.sum(), np.stack(aligned), axes=1))
            scale.append(self.scale[same].min() / math.sqrt(weights.sum()))
        cliques = Cliques(self.cliques.variables, self.cliques.cardinalities, tuple(scopes))
        joined = None if self.merged_cells is None else cliques.join(merged_cells)
        return replace(self, cliques=cliques, counts=cliques.join(counts), scale=np.array(scale), merged_cells=joined)

    def projected_proportions(self) -> np.ndarray:
        """Each table of `proportions` projected on the probability simplex, shape (n_cells,)."""
        projected = np.zeros(self.cliques.n_cells)
        for part in self.cliques.slices:
            inside = part.start + np.flatnonzero(self.possible[part])
            projected[inside] = project_on_simplex(self.proportions[inside])
        return projected


def project_on_simplex(values: np.ndarray) -> np.ndarray:
    """Euclidean projection: minimise |x - values|^2 subject to x >= 0, sum(x) = 1.

    Parameters
    ----------
    values : ndarray of shape (k,)

    Returns
    -------
    ndarray of shape (k,)

    Notes
    -----
    Duchi, Shalev-Shwartz, Singer and Chandra (2008), figure 1: x = max(values - t, 0) with the
    threshold t read off the sorted values.

    Examples
    --------
    >>> import numpy as np
    >>> project_on_simplex(np.array([0.9, 0.3, -0.2])).round(6)
    array([0.8, 0.2, 0. ])
    """
    descending = np.sort(values)[::-1]
    thresholds = (np.cumsum(descending) - 1.0) / np.arange(1, len(values) + 1)
    # The largest value is always above its threshold, up to rounding where values are huge.
    last = max(int(np.count_nonzero(descending > thresholds)), 1) - 1
    return np.maximum(values - thresholds[last], 0.0)
