"""Write a log-linear model as a product of tables whose numbers all lie in the range of floats.

The tables of a model say the same when a function of shared variables is added to one and taken from another,
so potentials may be in the thousands where the distribution is harmless. exp of such a table overflows, or
loses as 0 what another table would have made up for. Three forms, the first that fits:

1. *Even*: each table has mean 1 before the log-partition function is spread evenly over all. Kept where each
   cell is in [exp(-400), exp(300)].
2. *Conditionals*, where the junction tree's cliques are the tables (on chordal graphs): p(clique minus separator |
   separator). No number exceeds 1, and what falls below the smallest positive float has a probability below it.
3. *Balanced*: functions of shared variables are moved until neighbouring tables agree about the largest value
   that each state of what they share allows (max-sum diffusion; Werner 2007). Where one record has the maxima
   of all tables, no cell exceeds about 1 and cells that fall below the smallest float have probabilities below it.
4. *Learned again*: where none has them, because interactions in the hundreds contradict one another around a cycle,
   no such product of floats is the distribution. Maximum likelihood from its marginals finds a model with the same ones
   (to 1e-7), hence nearly the same distribution, whose potentials are as small as logarithms of probabilities.
5. Under loopy inference, whose marginals need not be of any distribution: the balanced tables, cells below exp(-600)
   of their table's maximum raised to that.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from pgmpy_dp.inference.belief_propagation import SumProduct
from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.learning.maximum_likelihood import maximum_likelihood

LARGEST_LOG, SMALLEST_LOG = 300.0, -400.0
"""Cells of the even form: quotients of any two, and products of two, are floats."""

SPREAD = 600.0
"""Logarithm of the largest quotient within a balanced table: with the log-partition function too it is a float."""

ROUNDING = 30.0
"""Balanced cells may be larger than 1 by what the sweeps left over: exp of this."""

MAX_SWEEPS = 300

_REFIT_TOL = 1e-7

_SMALLEST = float(np.finfo(np.float64).tiny)


def bounded_tables(model: LogLinearModel) -> list[np.ndarray]:
    """Finite non-negative tables on the scopes of `model`, whose product is its distribution, normalised.

    Parameters
    ----------
    model : LogLinearModel
        Its scopes should be connected: the log-partition function is spread over all of them.

    Returns
    -------
    list of ndarray
        One for each scope, with its shape. Cells are 0 where the table has a structural zero and only there. Under
        loopy inference the product sums to 1 as far as the estimate of the log-partition function is right, and
        to another constant where that estimate does not fit in floats.

    Examples
    --------
    >>> chain = Cliques(("a", "b", "c"), (2, 2, 2), (("a", "b"), ("b", "c")))
    >>> large = np.array([0.0, 2000.0, 0.0, 2000.0])  # taken back by the other table
    >>> first, second = bounded_tables(LogLinearModel(chain, np.concatenate([large, [0.0, 0.0, -2000.0, -2000.0]])))
    >>> np.einsum("ab,bc->abc", first, second).ravel().round(3).tolist()
    [0.125, 0.125, 0.125, 0.125, 0.125, 0.125, 0.125, 0.125]
    """
    tables = [table - _log_mean_exp(table) for table in model.cliques.split(model.theta)]
    shifted = _normalised(model, tables)
    if _between(shifted, SMALLEST_LOG, LARGEST_LOG):
        return [np.exp(table) for table in shifted]
    if model.inference == "exact":
        conditionals = _conditionals(model)
        if conditionals is not None:
            return conditionals
    tables = balanced(model.cliques, tables)
    shifted = _normalised(model, tables)
    if model.inference == "exact" and not _between(shifted, -math.inf, ROUNDING):
        tables = balanced(model.cliques, _learned_again(model))
        shifted = _normalised(model, tables)
    if not _between(shifted, -math.inf, LARGEST_LOG):
        tables = [np.where(np.isneginf(table), table, np.maximum(table, -SPREAD)) for table in tables]
        shifted = _normalised(model, tables)
    # Only an estimate of the log-partition function (loopy inference) can make them larger now.
    constant = max(0.0, max(float(table.max()) for table in shifted) - SPREAD)
    return [_exp(table - constant) for table in shifted]


def balanced(cliques: Cliques, tables: list[np.ndarray], max_sweeps: int = MAX_SWEEPS) -> list[np.ndarray]:
    """Tables with the same sum whose maxima for what they share agree, the largest value of each table being 0.

    Parameters
    ----------
    cliques : Cliques
    tables : list of ndarray
        Log-potentials, one for each scope; -inf marks a structural zero.
    max_sweeps : int
        Fewer where nothing moves by more than 1 any longer: the tables are for the range of floats.

    Returns
    -------
    list of ndarray
        Their sum differs from that of `tables` by a constant.
    """
    tables = [np.array(table, dtype=np.float64) for table in tables]
    holders: dict[frozenset[int], list[int]] = {}
    scopes = [frozenset(scope) for scope in cliques.indices]
    for first, second in itertools.combinations(range(len(scopes)), 2):
        if shared := scopes[first] & scopes[second]:
            holders.setdefault(shared, [])
    for shared, members in holders.items():
        members.extend(k for k, scope in enumerate(scopes) if shared <= scope)
    order = sorted(holders, key=lambda shared: (len(shared), sorted(shared)))
    for _ in range(max_sweeps):
        moved = 0.0
        for shared in order:
            maxima = [_maxima(tables[k], cliques.indices[k], shared) for k in holders[shared]]
            mean = np.mean(maxima, axis=0)
            # A state that a table forbids stays forbidden there: there is nothing to move.
            allowed = np.isfinite(mean)
            for k, largest in zip(holders[shared], maxima, strict=True):
                change = np.zeros_like(mean)
                np.subtract(mean, largest, out=change, where=allowed)
                moved = max(moved, float(np.abs(change).max()))
                tables[k] += _along(change, cliques.indices[k], shared)
        for table in tables:
            top = float(table.max())
            table -= top if math.isfinite(top) else 0.0
        if moved <= 1.0:
            break
    return tables


def _maxima(table: np.ndarray, scope: tuple[int, ...], shared: frozenset[int]) -> np.ndarray:
    """Largest value for each state of the shared variables, axes in the order of their numbers."""
    axes = [i for i in scope if i in shared]
    largest = table.max(axis=tuple(axis for axis, i in enumerate(scope) if i not in shared))
    return np.asarray(largest).transpose([axes.index(i) for i in sorted(shared)])


def _along(change: np.ndarray, scope: tuple[int, ...], shared: frozenset[int]) -> np.ndarray:
    """`change`, with axes in the order of the shared variables' numbers, ready to be added to a table."""
    numbers = sorted(shared)
    aligned = change.transpose([numbers.index(i) for i in scope if i in shared])
    sizes = iter(aligned.shape)
    return aligned.reshape([next(sizes) if i in shared else 1 for i in scope])


def _normalised(model: LogLinearModel, tables: list[np.ndarray]) -> list[np.ndarray]:
    """Log tables less equal parts of the log-partition function."""
    cliques = model.cliques
    made = LogLinearModel(cliques, cliques.join(tables), model.memory_limit, model.inference)
    shift = made.approximate_log_partition / len(tables)
    return [table - shift for table in tables]


def _between(tables: list[np.ndarray], lowest: float, highest: float) -> bool:
    """Whether all cells but structural zeros are in the range."""
    for table in tables:
        cells = table[~np.isneginf(table)]
        if cells.size and not (lowest <= float(cells.min()) and float(cells.max()) <= highest):
            return False
    return True


def _conditionals(model: LogLinearModel) -> list[np.ndarray] | None:
    """p(residual | separator) on each scope; None where the junction tree's cliques are not the scopes."""
    cliques = model.cliques
    engine = SumProduct(cliques, memory_limit=model.memory_limit)
    at = {frozenset(scope): k for k, scope in enumerate(cliques.indices)}
    if len(at) != cliques.n_cliques or {frozenset(clique) for clique in engine.plan.tree.cliques} != set(at):
        return None
    engine.calibrate(model.theta)
    potentials = cliques.split(model.theta)
    tables: list[np.ndarray] = [np.empty(0)] * cliques.n_cliques
    for residual, separator, conditional in engine.conditionals():
        axes = (*residual, *separator)
        k = at[frozenset(axes)]
        values = conditional.reshape([cliques.cardinalities[i] for i in axes])
        values = values.transpose([axes.index(i) for i in cliques.indices[k]])
        # What underflowed stays possible, so that no record is refused that the model allows.
        tables[k] = np.where(np.isneginf(potentials[k]), 0.0, np.maximum(values, _SMALLEST))
    return tables


def _learned_again(model: LogLinearModel) -> list[np.ndarray]:
    """Log-potentials of moderate size with the same marginals, structural zeros kept."""
    marginals = np.maximum(model.marginals(), 0.0)
    fit = maximum_likelihood(model.cliques, marginals, tol=_REFIT_TOL, memory_limit=model.memory_limit)
    return model.cliques.split(np.where(np.isneginf(model.theta), -np.inf, fit.model.theta))


def _exp(table: np.ndarray) -> np.ndarray:
    """exp, 0 at structural zeros only."""
    return np.where(np.isneginf(table), 0.0, np.exp(np.maximum(table, math.log(_SMALLEST))))


def _log_mean_exp(table: np.ndarray) -> float:
    top = float(table.max())
    if top == -math.inf:
        return 0.0
    return top + math.log(float(np.exp(table - top).mean()))
