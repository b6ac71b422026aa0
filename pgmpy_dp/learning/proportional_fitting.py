"""Iterative proportional fitting of a model on its junction tree: some margins become exact, all else follows."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

import numpy as np

from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.exact_or_loopy import make_engine
from pgmpy_dp.inference.junction_tree import DEFAULT_MEMORY_LIMIT
from pgmpy_dp.learning.level_engine import NO_LEVELS, Levels, leaf_scope, level_cells
from pgmpy_dp.learning.structural_zeros import with_zeros

_EXACT = 1e-10
"""The largest relative error of a cell that ends the sweeps."""

_MOST_SWEEPS = 500


class ProportionalFit:
    """Gives models over some tables exact margins; one object serves all draws of a posterior.

    Parameters
    ----------
    cliques : Cliques
        Of the models.
    margins : mapping of tuple of variables to ndarray
        The probabilities that each scope shall have, axes in its order. Those of scopes that overlap must agree.
    memory_limit : int
    levels : mapping of level to (variable, ndarray of int), optional
        Levels of variables, which scopes may name.

    Attributes
    ----------
    cliques : Cliques
        With a table for each scope that no table holds.

    Raises
    ------
    InferenceTooLarge
        If inference with these tables would exceed `memory_limit`.

    Notes
    -----
    Each step multiplies a table's potentials by the margin that it shall have over the one that it has. The limit is,
    of all distributions with these margins, the one of least divergence from the model (Csiszár 1975). Where the scopes
    decompose, that takes one sweep, and else some. Cells of probability 0 become structural zeros.

    Examples
    --------
    >>> pair = Cliques(("a", "b"), (2, 2), (("a", "b"),))
    >>> fit = ProportionalFit(pair, {("a",): np.array([0.5, 0.5])})
    >>> theta, errors = fit(np.log([0.4, 0.2, 0.2, 0.2]))
    >>> np.exp(theta).round(3).tolist(), errors[("a",)] < 1e-9
    ([0.333, 0.167, 0.25, 0.25], True)
    """

    def __init__(
        self,
        cliques: Cliques,
        margins: Mapping[tuple[Hashable, ...], np.ndarray],
        memory_limit: int = DEFAULT_MEMORY_LIMIT,
        levels: Levels = NO_LEVELS,
    ) -> None:
        self._levels = levels
        self.cliques = with_zeros(cliques, [dict.fromkeys(leaf_scope(scope, levels), frozenset()) for scope in margins])
        self._engine = make_engine(self.cliques, "exact", memory_limit)
        self._margins = {scope: self._placed(scope, margin) for scope, margin in margins.items()}

    def _placed(self, scope: tuple[Hashable, ...], margin: np.ndarray) -> tuple[slice, np.ndarray, np.ndarray]:
        """The place of a table that holds the scope, the margin's cell for each of its cells, and the margin."""
        variables = set(leaf_scope(scope, self._levels))
        c = next(c for c, held in enumerate(self.cliques.scopes) if variables <= set(held))
        cells = level_cells(scope, self.cliques.scopes[c], self.cliques, self._levels)
        return self.cliques.slices[c], cells, margin.ravel()

    def __call__(self, theta: np.ndarray) -> tuple[np.ndarray, dict[tuple[Hashable, ...], float]]:
        """Log-potentials on `cliques` from those of a model, and the largest relative error in each margin."""
        theta, errors = np.pad(theta, (0, self.cliques.n_cells - len(theta))), dict[tuple[Hashable, ...], float]()
        for _ in range(_MOST_SWEEPS):
            for scope, (part, cells, margin) in self._margins.items():
                now = np.bincount(cells, self._engine.calibrate(theta)[0][part], len(margin))
                possible = margin > 0
                errors[scope] = float((np.abs(now - margin) / np.where(possible, margin, 1.0)).max())
                ratio = np.divide(margin, now, out=np.ones_like(now), where=possible & (now > 0))
                theta[part] += np.where(possible, np.log(ratio), -np.inf)[cells]
            if max(errors.values()) <= _EXACT:
                break
        return theta, errors
