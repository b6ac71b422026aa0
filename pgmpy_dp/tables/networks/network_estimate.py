"""The distribution that a growing set of noisy tables speaks for, refitted after each new one.

Learning a structure asks again and again what small sets of variables look like under the tables measured so far. The
answers here are quick and good enough to choose by; what is learned in the end is fitted anew by `collective_map`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from pgmpy_dp.inference.belief_propagation import SumProduct
from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.growing_tree import GrowingTree
from pgmpy_dp.inference.lbfgs import Curvature, minimize_lbfgs, minimize_lbfgs_batch
from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.inference.scope_marginals import Scope, ScopeMarginals
from pgmpy_dp.learning.level_engine import at_levels, leaf_scope, leaf_tables
from pgmpy_dp.learning.noisy_marginals import NoisyMarginals
from pgmpy_dp.learning.prior_model import with_unmeasured
from pgmpy_dp.learning.structural_zeros import ObeyingEngine, engine_within, with_zeros
from pgmpy_dp.learning.tilted_family import TiltedEngine
from pgmpy_dp.tables.networks.nested_tables import (
    MOST_DENSE,
    AxisMap,
    AxisMaps,
    Helmert,
    NestedTables,
    maximal,
    moved,
    orthonormal,
)


class Marginals(Protocol):
    """Probabilities of any sets of variables."""

    def tables(self, scopes: Sequence[Scope]) -> list[np.ndarray]:
        """The table of each set, with axes in its order."""

    def flat(self, scopes: Sequence[Scope]) -> tuple[np.ndarray, np.ndarray]:
        """The same in one vector, each table in C order, and the cells of each."""


_MAX_EVALUATIONS = 100
_MEMORY_LIMIT = 2**33  # cliques are bounded by their number of cells; this only stops what no machine could do
_GRADIENT_TOL = 3e-4  # where 1 is the standard deviation of a coordinate in one record; or, where that is more,
_OF_NOISE = 1 / 100  # of the noise that half of the coordinates have at least
_LEAST_MEMORY, _MOST_MEMORY = 60, 300  # steps that tell the curvature, of this fit and of those before it
_REMEMBERED = 2**20  # numbers of steps up to which there are more than the least


@dataclass(frozen=True, eq=False)
class NetworkEstimate:
    """A fit to noisy tables.

    Attributes
    ----------
    noisy : NoisyMarginals
        The tables, repeated ones merged.
    theta : ndarray of shape (n_cells,)
        Log-potentials of the tables of `noisy`, 0 of those inside others; without those of a prior.
    marginals : ScopeMarginals
        Of the fitted model.
    tree : GrowingTree
        The junction tree that it was fitted on.
    steps : _Steps, optional
        What the next fit starts from.
    """

    noisy: NoisyMarginals
    theta: np.ndarray
    marginals: Marginals
    tree: GrowingTree
    steps: _Steps | None = None

    @cached_property
    def one_way(self) -> list[np.ndarray]:
        """Probabilities of the states of each variable."""
        return self.marginals.tables([(place,) for place in range(len(self.tree.tree.cardinalities))])

    def expected_tables(self, scopes: Sequence[Scope]) -> list[np.ndarray]:
        """Expected records in each cell of the tables of some variables, axes in their order."""
        return [self.noisy.n_records * table for table in self.marginals.tables(scopes)]

    def expected_cells(self, scopes: Sequence[Scope]) -> tuple[np.ndarray, np.ndarray]:
        """The same in one vector, each table in C order, and the cells of each."""
        flat, sizes = self.marginals.flat(scopes)
        flat *= self.noisy.n_records
        return flat, sizes


def estimate_network(
    noisy: NoisyMarginals,
    previous: NetworkEstimate | None = None,
    tree: GrowingTree | None = None,
    base: LogLinearModel | None = None,
) -> NetworkEstimate:
    """Fit by penalised maximum entropy to noisy tables, among them one of each variable.

    Parameters
    ----------
    noisy : NoisyMarginals
        Repeated tables are merged. Cells that they call impossible are so in the fit.
    previous : NetworkEstimate, optional
        The fit to some of the tables that this one starts from.
    tree : GrowingTree, optional
        The tree to compute on; the tables' cliques are added to it. Default: that of the previous fit.
    base : LogLinearModel, optional
        A prior, of the same variables, that takes the place of the uniform model. The fit has its tables too, and
        follows it where the noisy ones say nothing.

    Returns
    -------
    NetworkEstimate

    Notes
    -----
    Minimises ``A(theta) - theta . y/N + (1/2) sum_c l_c |theta_c|^2`` with ``l_c = V_c k_c/N^2`` (V_c the variance of
    the noise in a cell of table c, k_c its number of cells). The dual is least squares of the tables, each weighted by
    its precision, with the entropy of the model as penalty: tables that contradict one another are reconciled, and what
    they do not say stays independent.
    Tables speak of the same numbers where they overlap: margins, and interactions of what they share. Orthonormal
    contrasts tell these numbers apart, of which each table then gives an independent measurement, and the dual is the
    same as that of one measurement of each, their mean by precision. So there is one parameter for each, and none in
    which only the noise of tables that contradict one another decides (:mod:`pgmpy_dp.tables.networks.nested_tables`).
    L-BFGS needs 5 to 30 iterations for binary variables; it is stopped after 100, which zeros in large tables may take,
    and where the gradient is small beside the noise of the tables. Contrasts of a level are not contrasts of its
    variable, so tables of levels keep a parameter for each of their cells, with the penalty of their table.

    Examples
    --------
    >>> cliques = Cliques(("a", "b"), (2, 2), (("a",), ("b",)))
    >>> noisy = NoisyMarginals(cliques, np.array([30.0, 70.0, 50.0, 50.0]), "gaussian", np.array([0.1, 0.1]))
    >>> estimate_network(noisy).expected_tables([(0, 1)])[0].round()
    array([[15., 15.],
           [35., 35.]])
    """
    noisy = noisy.merged()
    if base is not None:
        noisy = _grown(noisy, base)
    cliques, n = noisy.cliques, noisy.n_records
    whole = with_zeros(leaf_tables(cliques, noisy.levels), noisy.impossible)
    if tree is None:
        tree = GrowingTree(whole) if previous is None else previous.tree
    if noisy.levels:
        return _estimate_at_levels(noisy, previous, tree, whole)
    tables = maximal(cliques)
    layout = with_zeros(tables, noisy.impossible)
    sum_product = SumProduct(layout, memory_limit=_MEMORY_LIMIT, tree=tree.grow(whole))
    obeying = ObeyingEngine(sum_product, tables, noisy.impossible)
    engine = TiltedEngine(obeying, np.zeros(tables.n_cells) if base is None else _potentials(base, tables))
    nested = NestedTables(tables)
    measured = NestedTables(cliques, nested)
    # The floor keeps the penalty from vanishing beside rounding where there is hardly any noise.
    weight = measured.share / cliques.spread(noisy.sum_variance / n**2 + 1e-2 / n)
    penalty = 1 / measured.collected(weight * measured.share)
    mean = penalty * measured.collected(weight * measured.effects(noisy.proportions))
    # A prior is itself where to start.
    theta = np.zeros(cliques.n_cells) if base is not None and previous is None else _start(noisy, previous)
    start = measured.collected(measured.share * measured.effects(theta))
    share = nested.share[nested.home]
    steps = _Steps(noisy, tables, nested, penalty)
    if previous is not None and previous.steps is not None:
        steps.follow(previous.steps)

    def potentials(x: np.ndarray) -> np.ndarray:
        return nested.tables(nested.at_home(x / share))

    def objective(step: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        x = start + steps.of(step[0])
        mu, log_partition = engine.calibrate(potentials(x))
        pull = penalty * x
        gradient = nested.effects(mu)[nested.home] / share - mean + pull
        return np.array([log_partition - x @ mean + 0.5 * (x @ pull)]), steps.back(gradient)[None]

    tol = max(_GRADIENT_TOL, _OF_NOISE * float(np.median(steps.noise)))
    (step,), _ = minimize_lbfgs_batch(
        objective,
        np.zeros((1, len(start))),
        max_evaluations=_MAX_EVALUATIONS,
        gradient_tol=tol,
        decrease_tol=0.0,
        curvatures=[steps.curvature],
    )
    fitted = potentials(start + steps.of(step))
    marginals = ScopeMarginals(layout, obeying.potentials(fitted + engine.base), sum_product)
    return NetworkEstimate(noisy, moved(fitted, tables, cliques), marginals, tree, steps)


def _estimate_at_levels(
    noisy: NoisyMarginals, previous: NetworkEstimate | None, tree: GrowingTree, layout: Cliques
) -> NetworkEstimate:
    """The same fit of tables at levels, on a tree and a layout of the variables themselves."""
    cliques, n = noisy.cliques, noisy.n_records
    sum_product = SumProduct(layout, memory_limit=_MEMORY_LIMIT, tree=tree.grow(layout))
    engine: Any = engine_within(cliques, noisy.impossible, make=lambda _: sum_product, levels=noisy.levels)
    start, said = _start(noisy, previous), noisy.proportions
    penalty = cliques.spread(noisy.sum_variance / n**2 + 1e-2 / n)
    unit = (engine.calibrate(start)[0] + penalty) ** -0.5

    def objective(theta: np.ndarray) -> tuple[float, np.ndarray]:
        mu, log_partition = engine.calibrate(theta)
        pull = penalty * theta
        return float(log_partition - theta @ said + 0.5 * (theta @ pull)), mu - said + pull

    tol = max(_GRADIENT_TOL, _OF_NOISE * float(np.median(unit * np.sqrt(penalty))))
    theta = minimize_lbfgs(objective, start, max_iter=_MAX_EVALUATIONS, gradient_tol=tol, scale=unit).x
    marginals = ScopeMarginals(layout, engine.model(theta, _MEMORY_LIMIT).theta, sum_product)
    return NetworkEstimate(noisy, theta, marginals, tree)


class _Steps:
    """Steps of the coordinates in units in which the curvature of a model of independent variables is 1.

    That model's are products of one contrast of each variable, uncorrelated with one another and with constants under
    the variable's distribution. Each set of variables has its own products, in the first table that holds it.
    """

    def __init__(self, noisy: NoisyMarginals, tables: Cliques, nested: NestedTables, penalty: np.ndarray) -> None:
        cliques, self._nested = noisy.cliques, nested
        likely = [np.full(k, 1.0 / k) for k in cliques.cardinalities]
        one_way = zip(cliques.indices, cliques.split(noisy.projected_proportions()), noisy.table_variance, strict=True)
        for scope, table, variance in one_way:
            if len(scope) == 1:  # what is below the noise may be as large as it
                likely[scope[0]] = table + math.sqrt(variance) / noisy.n_records + 1e-2 / noisy.n_records
        contrasts, squared = zip(*(_contrasts(p / p.sum()) for p in likely), strict=True)
        self._maps = AxisMaps(tables, contrasts)
        squares = AxisMaps(tables, squared)
        held = squares.transposed(nested.share**2 * nested.spread(penalty))[nested.home]
        self._unit = (1 + held) ** -0.5
        self._memory = min(max(_LEAST_MEMORY, _REMEMBERED // max(nested.n_coordinates, 1)), _MOST_MEMORY)
        self.curvature = Curvature(nested.n_coordinates, self._memory)

    def follow(self, previous: _Steps) -> None:
        """Take over what steps of a fit to some of the tables told of the curvature."""
        known, starts = previous._nested.starts, self._nested.starts
        if known.keys() <= starts.keys():
            lengths = np.diff([*known.values()], append=len(previous._unit))
            shift = np.array([starts[block] - start for block, start in known.items()])
            place = np.arange(len(previous._unit)) + np.repeat(shift, lengths)
            ratio = self._unit[place] / previous._unit
            self.curvature = previous.curvature.moved(place, ratio, len(self._unit), self._memory)

    @property
    def noise(self) -> np.ndarray:
        """The standard deviation of the noise of each coordinate, in these units."""
        return np.sqrt(1 - self._unit**2)

    def of(self, step: np.ndarray) -> np.ndarray:
        """The change of the coordinates."""
        effects = self._maps.forward(self._nested.at_home(self._unit * step))
        return self._nested.collected(self._nested.share * effects)

    def back(self, gradient: np.ndarray) -> np.ndarray:
        """The transposed map: of gradients."""
        effects = self._maps.transposed(self._nested.share * self._nested.spread(gradient))
        return self._unit * effects[self._nested.home]


def _contrasts(p: np.ndarray) -> tuple[np.ndarray, np.ndarray] | tuple[AxisMap, AxisMap]:
    """A constant and contrasts that are orthonormal under p, themselves in orthonormal contrasts, and their squares."""
    if len(p) <= MOST_DENSE:
        basis, root = orthonormal(len(p)), np.sqrt(p)[:, None]
        matrix = basis.T @ (np.linalg.qr(root * basis)[0] / root)
        return matrix, matrix**2
    flat, uneven = Helmert(np.ones(len(p))), Helmert(p)
    maps = AxisMap(lambda x: flat.transposed_times(uneven.times(x)), lambda x: uneven.transposed_times(flat.times(x)))
    # Penalties are the same for all contrasts of a variable, so that of their squares only the sums of columns matter.
    first = (uneven.sums**2 / len(p))[:, None]
    others = uneven.squares[:, None] - first

    def squared(x: np.ndarray) -> np.ndarray:
        return first * x[..., :1, :] + others * x[..., 1:2, :]

    return maps, AxisMap(squared, squared)


def _grown(noisy: NoisyMarginals, base: LogLinearModel) -> NoisyMarginals:
    """Noisy tables, with those tables of a prior that were not measured."""
    measured = set(map(frozenset, noisy.cliques.scopes))
    tables = zip(base.cliques.scopes, base.cliques.split(base.marginals()), strict=True)
    return with_unmeasured(noisy, {scope: table for scope, table in tables if frozenset(scope) not in measured})[0]


def _potentials(base: LogLinearModel, tables: Cliques) -> np.ndarray:
    """The log-potentials of a prior on tables that hold all of the prior's; both layouts name variables alike."""
    cliques = Cliques(tables.variables, tables.cardinalities, base.cliques.scopes)
    return moved(base.theta, cliques, tables)


def _start(noisy: NoisyMarginals, previous: NetworkEstimate | None) -> np.ndarray:
    """The parameters to start from: those of the last fit, and one step of proportional fitting for new tables.

    Without a fit before it is independence: steps for many tables at once would count several times what they share.
    """
    cliques = noisy.cliques
    if previous is None:
        known = {scope: np.zeros(cliques.shapes[c]) for c, scope in enumerate(cliques.scopes) if len(scope) > 1}
    else:
        last = previous.noisy.cliques
        known = dict(zip(last.scopes, last.split(previous.theta), strict=True))
    new = [c for c, scope in enumerate(cliques.scopes) if scope not in known]
    if previous is None:
        expected = [np.full(cliques.shapes[c], 1.0 / cliques.sizes[c]) for c in new]
    else:
        place, levels, scopes = cliques.position, noisy.levels, [cliques.scopes[c] for c in new]
        leaves = [tuple(place[name] for name in leaf_scope(scope, levels)) for scope in scopes]
        expected = at_levels(previous.marginals.tables(leaves), scopes, levels)
    said = cliques.split(noisy.projected_proportions())
    for c, model in zip(new, expected, strict=True):
        # What is below the noise says nothing about a ratio.
        least = np.sqrt(noisy.table_variance[c]) / noisy.n_records + 1e-9
        known[cliques.scopes[c]] = np.log((said[c] + least) / (model + least))
    return cliques.join(known[scope] for scope in cliques.scopes)
