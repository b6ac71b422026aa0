"""The distribution of one variable in each of many records, given what each record has of the others."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence

import numpy as np

from pgmpy_dp.inference.junction_tree import InferenceTooLarge
from pgmpy_dp.inference.log_linear import LogLinearModel

_CHUNK = 4_000_000
"""Cells of intermediate tables, of all records that are looked at together."""

Factor = tuple[tuple[int, ...], np.ndarray]
"""Positions of variables, and logarithms of shape (records, states of each...)."""


def row_conditionals(model: LogLinearModel, codes: np.ndarray, target: int) -> np.ndarray:
    """P(target | what is known) of each record, exactly: what is not known is summed over.

    Parameters
    ----------
    model : LogLinearModel
        Its constant does not matter, so nothing is calibrated.
    codes : ndarray of int, shape (n, n_variables)
        States, columns in the order of ``model.cliques.variables``; negative: not known. That of the target is not
        looked at.
    target : int
        Position of the variable.

    Returns
    -------
    ndarray of shape (n, states)
        Rows sum to 1; nan where no state is possible with the evidence.

    Raises
    ------
    InferenceTooLarge
        If summing over what is not known takes a table beyond the model's memory limit.

    Notes
    -----
    Records are taken together that lack the same variables. Given the others, the target depends on no more than the
    tables that hold it or an unknown variable that is connected with it by such tables.

    Examples
    --------
    >>> from pgmpy_dp.inference.cliques import Cliques
    >>> cliques = Cliques(("a", "b"), (2, 2), (("a", "b"),))
    >>> model = LogLinearModel(cliques, np.log([0.1, 0.2, 0.3, 0.4]))
    >>> row_conditionals(model, np.array([[0, 0], [0, -1]]), 0).round(3)
    array([[0.25, 0.75],
           [0.3 , 0.7 ]])
    """
    codes = np.asarray(codes)
    unknown = codes < 0
    unknown[:, target] = True
    conditionals = np.empty((len(codes), model.cliques.cardinalities[target]))
    none = (target,), np.zeros((1, conditionals.shape[1]))  # what no table says
    patterns, which = np.unique(unknown, axis=0, return_inverse=True)
    for number, pattern in enumerate(patterns):
        rows = np.flatnonzero(which.ravel() == number)
        open_ = _connected(model, set(np.flatnonzero(pattern).tolist()), target)
        tables = [c for c, scope in enumerate(model.cliques.indices) if open_.intersection(scope)]
        scopes = [open_.intersection(model.cliques.indices[c]) for c in tables]
        steps, largest = elimination_order(model.cliques.cardinalities, [*scopes, {target}], open_ - {target})
        if 8 * largest > model.memory_limit:
            raise InferenceTooLarge(
                f"summing over {len(open_) - 1} variables that are not known takes a table of {largest} cells; give "
                "more of the variables, or raise the model's memory_limit"
            )
        for part in np.array_split(rows, max(1, -(-len(rows) * largest // _CHUNK))):
            if len(part):
                conditionals[part] = _normalised(_summed(_factors(model, tables, codes[part], open_), steps, none))
    return conditionals


def _connected(model: LogLinearModel, unknown: set[int], target: int) -> set[int]:
    """The target, and the unknown variables that tables connect with it."""
    reached, new = {target}, {target}
    while new:
        beside = {i for scope in model.cliques.indices if new.intersection(scope) for i in scope}
        new = beside.intersection(unknown) - reached
        reached |= new
    return reached


def elimination_order(
    sizes: Sequence[int], scopes: Iterable[Collection[int]], variables: Collection[int]
) -> tuple[list[int], int]:
    """The order in which to sum over variables, the smallest table first, and the cells of the largest.

    Parameters
    ----------
    sizes : sequence of int
        Of each variable the number of its states.
    scopes : iterable of collections of int
        Variables of each table.
    variables : collection of int
        Those to sum over.
    """
    left, order, waiting = [set(scope) for scope in scopes], list[int](), set(variables)

    def cells(variable: int) -> int:
        return math.prod(sizes[i] for i in {variable}.union(*(scope for scope in left if variable in scope)))

    largest = max((math.prod(sizes[i] for i in scope) for scope in left), default=1)
    while waiting:
        best = min(waiting, key=lambda variable: (cells(variable), variable))
        largest = max(largest, cells(best))
        joined = set().union(*(scope for scope in left if best in scope)) - {best}
        left = [scope for scope in left if best not in scope] + [joined]
        waiting.remove(best)
        order.append(best)
    return order, largest


def _factors(model: LogLinearModel, tables: Sequence[int], codes: np.ndarray, open_: set[int]) -> Iterator[Factor]:
    """The tables at each record's known states."""
    split = model.cliques.split(model.theta)
    for c in tables:
        scope = model.cliques.indices[c]
        known = [axis for axis, i in enumerate(scope) if i not in open_]
        kept = [axis for axis, i in enumerate(scope) if i in open_]
        table = np.transpose(split[c], [*known, *kept])
        # A table of nothing known is the same for all records.
        rows = table[tuple(codes[:, scope[axis]] for axis in known)] if known else table[None]
        yield tuple(scope[axis] for axis in kept), rows


def _summed(factors: Iterator[Factor], order: Sequence[int], none: Factor) -> np.ndarray:
    """The logarithm of the product of factors, summed over variables one after the other."""
    left = list(factors)
    for variable in order:
        axes, joined = _product([factor for factor in left if variable in factor[0]])
        at = 1 + axes.index(variable)
        most = joined.max(axis=at, keepdims=True)
        most = np.where(np.isfinite(most), most, 0.0)
        with np.errstate(divide="ignore"):
            total = np.log(np.exp(joined - most).sum(axis=at)) + most.squeeze(at)
        left = [factor for factor in left if variable not in factor[0]]
        left.append((tuple(i for i in axes if i != variable), total))
    return _product([none, *left])[1]


def _product(factors: Sequence[Factor]) -> Factor:
    """The product of tables, as sums of logarithms over the union of their variables."""
    axes = tuple(sorted({i for scope, _ in factors for i in scope}))
    total: np.ndarray | float = 0.0
    for scope, table in factors:
        order = sorted(range(len(scope)), key=lambda axis: scope[axis])
        moved = table.transpose([0, *(1 + axis for axis in order)])
        shape = iter(moved.shape[1:])
        total = total + moved.reshape(len(moved), *(next(shape) if i in scope else 1 for i in axes))
    return axes, np.asarray(total)


def _normalised(logarithms: np.ndarray) -> np.ndarray:
    most = logarithms.max(axis=1, keepdims=True)
    weights = np.exp(logarithms - np.where(np.isfinite(most), most, 0.0))
    with np.errstate(invalid="ignore"):
        return weights / weights.sum(axis=1, keepdims=True)
