"""Exact sum-product in log space on a junction tree, and its directional derivative.

Upward, each clique's log table is reduced over its residual variables R for each state of
its separator S, with the maximum *of that state* taken out first::

    m(s) = max_r t(r, s),   z(s) = sum_r exp(t(r, s) - m(s)),   message(s) = log z(s) + m(s)

so that what is kept, exp(t - m)/z = p(r | s), is a proper conditional distribution whatever
the scale of the potentials. Downward, belief(r, s) = p(r | s) p(s). Nothing is divided by a
message and no range of messages is lost, on chains of any length.

The derivative of the marginals in a direction w (a product with the covariance of the
sufficient statistics, i.e. the Fisher information) is one more pass over the same beliefs,
without exponentials: u = E[w.T | clique] is collected upward as conditional means and
distributed downward.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np

from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.junction_tree import DEFAULT_MEMORY_LIMIT, JunctionTree
from pgmpy_dp.inference.sum_product import CliquePlan, Plan, make_plan, size_of_plan

LOG_ZERO = -1e30
"""Stands for log 0: sums of many stay finite, and exp of its difference to any real potential is 0."""

_SMALLEST = np.finfo(np.float64).tiny
"""Below it a number is subnormal, and its reciprocal may be infinite."""

_LONG, _APART = 64, 4
"""Cells from which on numpy's inner loop is quick, and how many loops may take the place of one that is not."""

Operation = tuple[Callable, tuple]


class SumProduct:
    """Calibrate a log-linear model: from parameters to marginals and log-partition function.

    The arrays are allocated once and used again by each call, so one object must not be
    used by two threads at a time.

    Parameters
    ----------
    cliques : Cliques
        The model; the parameter vector theta has shape (n_cells,).
    extra : sequence of sequence of int, optional
        Further sets of variable indices whose marginals are wanted.
    memory_limit : int
        Bytes that may be allocated; see `inference_size`.
    tree : JunctionTree, optional
        One that covers the model and `extra`. Default: the one that `build_junction_tree` makes.

    Raises
    ------
    InferenceTooLarge
        Before anything is allocated, if the limit would be exceeded.

    Examples
    --------
    >>> import numpy as np
    >>> chain = Cliques(("a", "b", "c"), (2, 2, 2), (("a", "b"), ("b", "c")))
    >>> engine = SumProduct(chain)
    >>> marginals, log_partition = engine.calibrate(np.zeros(8))
    >>> float(marginals[0]), round(float(np.exp(log_partition)), 12)
    (0.25, 8.0)
    """

    def __init__(
        self,
        cliques: Cliques,
        extra: Sequence[Sequence[int]] = (),
        memory_limit: int = DEFAULT_MEMORY_LIMIT,
        tree: JunctionTree | None = None,
    ) -> None:
        self.cliques = cliques
        self.plan = make_plan(cliques, extra, tree)
        self.size = size_of_plan(cliques, self.plan)
        self.size.require(memory_limit)
        self._beliefs = _Tables(self.plan, cliques)
        self._directions: _Tables | None = None
        self._calibration = self._compile_calibration()
        self._derivative: list[Operation] = []
        self._log_partition: float | None = None  # of the last calibration, which is not done twice

    def calibrate(self, theta: np.ndarray) -> tuple[np.ndarray, float]:
        """Marginals of all scopes, the model's and then the extra ones, and log Z.

        Parameters
        ----------
        theta : ndarray of shape (n_cells,)
            Log-potentials; -inf marks a structural zero.

        Returns
        -------
        marginals : ndarray of shape (n_cells + cells of the extra scopes,)
        log_partition : float
        """
        tables = self._beliefs
        values = np.maximum(theta, LOG_ZERO)
        if self._log_partition is None or not np.array_equal(values, tables.input):
            self._log_partition = None
            tables.input[:] = values
            for function, arguments in self._calibration:
                function(*arguments)
            self._log_partition = float(tables.maxima[-1][0] + math.log(tables.sums[-1][0]))
        return tables.output.copy(), self._log_partition

    def derivative(self, direction: np.ndarray) -> np.ndarray:
        """Derivative of the marginals at the last calibrated theta along `direction`.

        Parameters
        ----------
        direction : ndarray of shape (n_cells,)
            w; the result is Cov(T) w, where T are the indicators of all cells.

        Returns
        -------
        ndarray of shape (n_cells + cells of the extra scopes,)
        """
        if self._directions is None:
            self._directions = _Tables(self.plan, self.cliques)
            self._derivative = self._compile_derivative(self._directions)
        tables = self._directions
        tables.input[:] = direction
        for function, arguments in self._derivative:
            function(*arguments)
        return tables.output.copy()

    def sampling_error(self, rng: np.random.Generator) -> np.ndarray:
        """Draw from Normal(0, Cov(T)), T the indicators of all cells, at the last calibrated theta.

        A table of one record has such an error, over its normal limit. Within each state of a separator cells have
        independent errors of their probabilities' size, less what these sum to; beyond that the separator's own.

        Returns
        -------
        ndarray of shape (n_cells + cells of the extra scopes,)
        """
        tables = _Tables(self.plan, self.cliques)
        for function, arguments in self._compile_derivative(tables, rng):
            function(*arguments)
        return tables.output

    def conditionals(self) -> list[tuple[tuple[int, ...], tuple[int, ...], np.ndarray]]:
        """p(residual | separator) of each clique at the last calibrated theta, parents first.

        Returns
        -------
        list of (residual axes, separator axes, ndarray of shape (n_residual, n_separator))
            Columns whose separator state has probability 0 are 0.
        """
        result = []
        for k in reversed(range(len(self.plan.cliques))):
            clique = self.plan.cliques[k]
            residual = clique.axes[: self.plan.tree.n_residual[k]]
            weight = self._beliefs.separators[k]
            table = self._beliefs.tables[k] / np.where(weight > 0, weight, 1.0)
            result.append((residual, clique.separator, table))
        return result

    def beliefs(self) -> list[np.ndarray]:
        """Marginal table of each clique of the junction tree at the last calibrated theta.

        Returns
        -------
        list of ndarray
            Axes as the tree's cliques have them. They are the engine's own arrays: read them before it is calibrated
            again, and write nothing.
        """
        tables = zip(self._beliefs.tables, self.plan.cliques, strict=True)
        return [table.reshape(self._beliefs.shape(clique.axes)) for table, clique in tables]

    def _compile_calibration(self) -> list[Operation]:
        tables = self._beliefs
        operations: list[Operation] = []
        for k, clique in enumerate(self.plan.cliques):
            operations += tables.addition_operations(k, clique)
            table, maxima, sums = tables.tables[k], tables.maxima[k], tables.sums[k]
            operations += [
                (np.maximum.reduce, (table, 0, None, maxima)),
                (np.subtract, (table, maxima, table)),
                (np.exp, (table, table)),
                _sum_rows(table, sums),
            ]
            if self.plan.tree.parents[k] >= 0:
                message = tables.messages[k]
                operations += [(np.log, (sums, message)), (np.add, (message, maxima, message))]
        for k in reversed(range(len(self.plan.cliques))):
            table, sums = tables.tables[k], tables.sums[k]
            weights = tables.weights[k]
            operations += [
                (np.divide, (tables.separators[k], sums, weights)),
                (np.multiply, (table, weights, table)),
            ]
            operations += tables.marginalisation_operations(k, self.plan.cliques[k])
        return operations

    def _compile_derivative(self, tables: _Tables, rng: np.random.Generator | None = None) -> list[Operation]:
        """The derivative; with `rng` of a direction of its own for each cell of the tree, of variance 1/belief."""
        beliefs = self._beliefs
        operations: list[Operation] = []
        for k, clique in enumerate(self.plan.cliques):
            table, belief = tables.tables[k], beliefs.tables[k]
            inverse, mean, scratch = tables.weights[k], tables.maxima[k], tables.scratch(k)
            if rng is None:
                operations += tables.addition_operations(k, clique)
            else:
                operations += [
                    (rng.standard_normal, (None, np.float64, table)),
                    (np.add, (belief, _SMALLEST, scratch)),
                    (np.sqrt, (scratch, scratch)),
                    (np.divide, (table, scratch, table)),
                ]
            operations += [
                (_reciprocal, (beliefs.separators[k], inverse)),
                (np.multiply, (belief, table, scratch)),
                _sum_rows(scratch, mean),
                (np.multiply, (mean, inverse, mean)),
            ]
            if self.plan.tree.parents[k] >= 0:
                operations.append((np.copyto, (tables.messages[k], mean)))
        tables.separators[-1][:] = 0.0
        for k in reversed(range(len(self.plan.cliques))):
            table, belief = tables.tables[k], beliefs.tables[k]
            inverse, mean, shift = tables.weights[k], tables.maxima[k], tables.sums[k]
            operations += [
                (np.multiply, (tables.separators[k], inverse, shift)),
                (np.subtract, (shift, mean, shift)),
                (np.add, (table, shift, table)),
                (np.multiply, (table, belief, table)),
            ]
            operations += tables.marginalisation_operations(k, self.plan.cliques[k])
        return operations


def _reciprocal(values: np.ndarray, out: np.ndarray) -> None:
    """1/values, finite where a value is 0: it is multiplied by sums over what is impossible, which are 0 then."""
    np.maximum(values, _SMALLEST, out=out)
    np.divide(1.0, out, out=out)


class _Tables:
    """The arrays of one pass, with the plan's sums bound to them.

    A clique's table has shape (residual cells, separator cells): every reduction over the
    residual runs over the leading axis, on contiguous memory.
    """

    def __init__(self, plan: Plan, cliques: Cliques) -> None:
        tree = plan.tree
        self.plan = plan
        self.input = np.empty(cliques.n_cells)
        sizes = [tree.n_cells(scope) for scope in plan.scopes]
        ends = np.cumsum(sizes, dtype=np.int64).tolist()
        self.output = np.empty(sum(sizes))
        self.outputs = [self.output[end - size : end] for end, size in zip(ends, sizes, strict=True)]
        self.potentials = [
            self.input[part].reshape(shape) for part, shape in zip(cliques.slices, cliques.shapes, strict=True)
        ]
        n_separator = [tree.n_cells(clique.separator) for clique in plan.cliques]
        self.tables = [
            np.empty((tree.n_cells(clique.axes) // n, n)) for clique, n in zip(plan.cliques, n_separator, strict=True)
        ]
        self.maxima, self.sums, self.messages, self.weights = ([np.empty(n) for n in n_separator] for _ in range(4))
        # p(separator), filled from the parent's belief; the root's separator is empty and has probability 1.
        self.separators = [np.empty(n) for n in n_separator]
        self.separators[-1][:] = 1.0
        self._scratch = np.empty(0)

    def scratch(self, k: int) -> np.ndarray:
        """A work array of the shape of table k; its content does not outlive the next operation."""
        if self._scratch.size == 0:
            self._scratch = np.empty(max(table.size for table in self.tables))
        return self._scratch[: self.tables[k].size].reshape(self.tables[k].shape)

    def shape(self, axes: Sequence[int]) -> tuple[int, ...]:
        return tuple(self.plan.tree.cardinalities[i] for i in axes)

    def addition_operations(self, k: int, clique: CliquePlan) -> list[Operation]:
        """Fill table k with the broadcast sum of its potentials and its children's messages."""
        full = self.tables[k].reshape(self.shape(clique.axes))
        buffers: list[np.ndarray] = []

        def view(term: tuple[str, int], axes: Sequence[int]) -> np.ndarray:
            """The term's array with length-1 axes where it lacks a variable of `axes`."""
            source, index = term
            if source == "sum":
                term_axes, array = clique.additions[index].axes, buffers[index]
            elif source == "message":
                term_axes, array = self.plan.cliques[index].separator, self.messages[index]
            else:
                scope = self.plan.scopes[index]
                term_axes = tuple(i for i in axes if i in scope)
                array = self.potentials[index].transpose([scope.index(i) for i in term_axes])
            return array.reshape(tuple(self.plan.tree.cardinalities[i] if i in term_axes else 1 for i in axes))

        operations: list[Operation] = []
        for addition in clique.additions:
            left, right = view(addition.left, addition.axes), view(addition.right, addition.axes)
            if addition.in_place:
                out = left
            else:
                out = full if addition.axes == clique.axes else np.empty(self.shape(addition.axes))
            buffers.append(out)
            operations += _broadcast_sum(left, right, out)
        if clique.total is None:
            operations.append((full.fill, (0.0,)))
        elif clique.total[0] != "sum" or clique.additions[clique.total[1]].axes != clique.axes:
            operations.append((np.copyto, (full, view(clique.total, clique.axes))))
        return operations

    def marginalisation_operations(self, k: int, clique: CliquePlan) -> list[Operation]:
        """Take table k down to its children's separators and to the scopes at home in it."""
        operations: list[Operation] = []
        arrays = {-1: self.tables[k].reshape(-1)}
        axes_of = {-1: clique.axes} | {i: step.axes for i, step in enumerate(clique.marginalisations)}
        # A table that is exactly one separator or one scope is written straight to its place.
        places: dict[int, np.ndarray] = {table: self.separators[child] for child, table in reversed(clique.separators)}
        for scope, table in clique.scopes:
            if axes_of[table] == self.plan.scopes[scope]:
                places.setdefault(table, self.outputs[scope])
        for i, step in enumerate(clique.marginalisations):
            out = places[i] if i in places else np.empty(self.plan.tree.n_cells(step.axes))
            arrays[i] = out
            operations.append(_sum_out(arrays[step.source], step.source_axes, step.axes, out, self.shape))
        for child, table in clique.separators:
            if arrays[table] is not self.separators[child]:
                operations.append((np.copyto, (self.separators[child], arrays[table])))
        for scope, table in clique.scopes:
            if arrays[table] is not self.outputs[scope]:
                axes = self.plan.scopes[scope]
                source = arrays[table].reshape(self.shape(axes_of[table]))
                source = source.transpose([axes_of[table].index(i) for i in axes])
                operations.append((np.copyto, (self.outputs[scope].reshape(self.shape(axes)), source)))
        return operations


def _broadcast_sum(left: np.ndarray, right: np.ndarray, out: np.ndarray) -> list[Operation]:
    """The sum of two tables that have axes of length 1 for what they lack.

    Numpy's inner loop goes over the last axes that both have or one lacks. That may be two cells, and then each takes
    six times as long. So the states of such axes are added one by one, where those before them make a long loop.
    """
    axes = [axis for axis, size in enumerate(out.shape) if size > 1]
    runs = [next(run) for _, run in itertools.groupby(axes, lambda axis: (left.shape[axis] > 1, right.shape[axis] > 1))]
    long = [end for run, end in itertools.pairwise([*runs, out.ndim]) if math.prod(out.shape[run:end]) >= _LONG]
    cut = long[-1] if long and math.prod(out.shape[long[-1] :]) <= _APART else out.ndim
    whole = np.broadcast_to(left, out.shape), np.broadcast_to(right, out.shape), out
    return [(np.add, tuple(array[(..., *states)] for array in whole)) for states in np.ndindex(out.shape[cut:])]


def _sum_rows(table: np.ndarray, out: np.ndarray) -> Operation:
    """Sum a (residual, separator) table over its residual."""
    if table.shape[1] == 1:  # a vector of ones would be as large as the table
        return np.add.reduce, (table, 0, None, out)
    return np.matmul, (np.ones(table.shape[0]), table, out)


def _sum_out(
    source: np.ndarray,
    source_axes: Sequence[int],
    axes: Sequence[int],
    out: np.ndarray,
    shape: Callable[[Sequence[int]], tuple[int, ...]],
) -> Operation:
    """Sum the contiguous run of `source_axes` that `axes` lacks, as a product with a vector of ones.

    A matrix product is several times quicker than numpy's reduction over inner axes.
    """
    removed = [i for i, name in enumerate(source_axes) if name not in axes]
    sizes = shape(source_axes)
    before = math.prod(sizes[: removed[0]])
    run = math.prod(sizes[removed[0] : removed[-1] + 1])
    after = math.prod(sizes[removed[-1] + 1 :])
    ones = np.ones(run)
    if after == 1:
        return np.matmul, (source.reshape(before, run), ones, out)
    if before == 1:
        return np.matmul, (ones, source.reshape(run, after), out)
    return np.matmul, (ones, source.reshape(before, run, after), out.reshape(before, after))
