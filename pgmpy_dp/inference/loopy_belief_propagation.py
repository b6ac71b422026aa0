"""Loopy belief propagation in log space, with counting numbers, and its linear response.

On the region graph of tables C and variables i the entropy is approximated by

    H_c(b) = sum_C c_C H(b_C) + sum_i c_i H(b_i),    c_i = 1 - sum of c_C over the tables that hold i

(so that each variable is counted once), and the log-partition function by

    A_c(theta) = max  theta . b + H_c(b)   over tables b_C that agree with b_i on each of their variables.

Its gradient is the maximiser b, the *pseudo-marginals*, and its Hessian is their derivative: a fit that uses both is
gradient descent on one well-defined function. Three facts decide what the counting numbers are good for.

* c_C = 1 is Bethe's approximation, ordinary belief propagation: exact on trees, exact to first order in weak
  interactions, but H_c is not concave on loopy graphs, so there may be several fixed points and none may be found.
* c_C = P(C is in a random acyclic subset of the tables) is tree-reweighting. The entropy of each acyclic subset bounds
  that of every distribution with these marginals and is concave, so the mean over subsets is: one maximum, which bounds
  A(theta) from above. Interactions count too much in it: near independence b_C has 1/c_C times the correlation it
  should have.
* In between lie the fractional c_C = 1 - k + k P(C); k trades accuracy at weak interactions for concavity.

The stationary points are those where, with messages n from the variables to the tables,

    b_C = exp((theta_C + sum_i n_iC) / c_C) / Z_C   and   log b_i = sum_C m_Ci + constant,   n_iC = c_C log b_i - m_Ci
    m_Ci(x_i) = c_C log sum over the other variables of exp((theta_C + sum_{j != i} n_jC) / c_C)

which is iterated, all tables of one shape at a time. The step from n to the next n is c_C (log b_i - log b_C|i): how
far the tables are from agreeing is at once the residual of the iteration and the only condition not yet met.

Measured against the junction tree on 8 x 8 grids of 2 and 3 states, potentials standard normal times .2, .5 and 1: the
largest error of a pair's probability is .0013, .014 and .054 with Bethe's counting numbers, and .05, .11 and .20
tree-reweighted. Fits on noisy tables, by divergence from the truth: within 8 % of exact inference where noise is what
limits the fit and interactions are weak (logarithms of exponential draws times .3). As noise vanishes the approximation
limits: at 100,000 records and epsilon 1, .0026 against .0011 on a 6 x 6 grid of 3 states, .016 against .0003 on 10
variables with 30 % of the edges, .059 against .0003 on a third-order chain. With strong interactions (times 1) it is
.2 to .6 against .015 on the grid (uniform: 17), .6 against .007 on the chain (uniform: 6.8); Bethe's numbers often fail
there, and the fit goes on to more convex ones. Two tables that share two or more variables, neither holding the other,
tell one another about single variables only. Deciding "auto" runs min-fill on the graph: a quarter of a second for 400
variables, more than linear in them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.junction_tree import DEFAULT_MEMORY_LIMIT, InferenceTooLarge

if TYPE_CHECKING:
    from scipy import sparse

LOG_ZERO = -1e4
"""The distance of a structural zero below the largest entry of its table: exp of it is 0, and sums keep 12 digits."""

_TINY = 1e-300
_PATIENCE = 20
"""Iterations after which the step is halved if the residual has not fallen by a tenth."""

_SMALLEST_STEP = 0.05
_DENSE_LIMIT = 3000
"""Variables up to which the Laplacian of the graph is inverted as a dense matrix."""


class LoopyFailed(RuntimeError):
    """More calibrations failed than the engine was told to put up with."""


@dataclass(frozen=True)
class LoopySettings:
    """Settings of loopy belief propagation.

    Parameters
    ----------
    counting : {"bethe", "trw"} or float in [0, 1]
        Counting numbers of the tables: "bethe" is 0, ordinary belief propagation; "trw" is 1, tree-reweighting,
        which is convex and bounds the log-partition function; a number k lies in between, 1 - k + k P(C).
    damping : float in [0, 1)
        Weight of the old messages. It is raised where the iteration stops making progress.
    tol : float
        Largest difference, in probability, between a table's margin and its variable's belief.
    max_iter : int
        Iterations of one calibration at most.

    Raises
    ------
    ValueError, TypeError
        If a value is out of range.

    Examples
    --------
    >>> LoopySettings(counting="trw").convexity
    1.0
    """

    counting: str | float = "bethe"
    damping: float = 0.1
    tol: float = 1e-8
    max_iter: int = 500

    def __post_init__(self) -> None:
        if isinstance(self.counting, str):
            if self.counting not in ("bethe", "trw"):
                raise ValueError(f'counting must be "bethe", "trw" or a number in [0, 1], got {self.counting!r}')
        elif isinstance(self.counting, bool) or not isinstance(self.counting, int | float | np.number):
            raise TypeError(f'counting must be "bethe", "trw" or a number in [0, 1], got {self.counting!r}')
        elif not 0 <= self.counting <= 1:
            raise ValueError(f'counting must be "bethe", "trw" or a number in [0, 1], got {self.counting!r}')
        if not 0 <= self.damping < 1:
            raise ValueError(f"damping must be in [0, 1), got {self.damping!r}")
        if not 0 < self.tol < 1:
            raise ValueError(f"tol must be in (0, 1), got {self.tol!r}")
        if isinstance(self.max_iter, bool) or not isinstance(self.max_iter, int | np.integer) or self.max_iter < 1:
            raise ValueError(f"max_iter must be a whole number of iterations, 1 or more, got {self.max_iter!r}")

    @property
    def convexity(self) -> float:
        """`counting` as a number: 0 is Bethe's, 1 is tree-reweighting."""
        return {"bethe": 0.0, "trw": 1.0}[self.counting] if isinstance(self.counting, str) else float(self.counting)


def appearance_probabilities(cliques: Cliques) -> np.ndarray:
    """Probability of each table in a random maximal acyclic subset of the tables.

    A set of tables is acyclic where the bipartite graph of tables and variables is. For tables of one and two
    variables the distribution is uniform over the spanning forests of the graph, and an edge's probability is its
    effective resistance (Kirchhoff). With larger tables it is the frequency in a fixed sequence of subsets, each
    grown by Kruskal's rule from the tables that were used least; every table is used.

    Parameters
    ----------
    cliques : Cliques

    Returns
    -------
    ndarray of shape (n_cliques,)
        In (0, 1]; 1 for every table if all of them together are acyclic.

    Examples
    --------
    >>> triangle = Cliques(("a", "b", "c"), (2, 2, 2), (("a", "b"), ("b", "c"), ("a", "c")))
    >>> appearance_probabilities(triangle).round(6)
    array([0.666667, 0.666667, 0.666667])
    """
    n = len(cliques.variables)
    if max((len(scope) for scope in cliques.indices), default=0) <= 2 and n <= _DENSE_LIMIT:
        laplacian = np.zeros((n, n))
        edges = [scope for scope in cliques.indices if len(scope) == 2]
        for i, j in edges:
            laplacian[[i, j], [i, j]] += 1.0
            laplacian[[i, j], [j, i]] -= 1.0
        inverse = np.linalg.pinv(laplacian, hermitian=True)
        probability = np.ones(cliques.n_cliques)
        for c, scope in enumerate(cliques.indices):
            if len(scope) == 2:
                i, j = scope
                probability[c] = min(inverse[i, i] + inverse[j, j] - 2 * inverse[i, j], 1.0)
        return probability
    return _forest_frequencies(cliques)


def _forest_frequencies(cliques: Cliques) -> np.ndarray:
    """Frequencies in at least 64 acyclic subsets, until each table has been in one."""
    rng = np.random.default_rng(0)  # a fixed sequence: the answer depends on the layout alone
    used = np.zeros(cliques.n_cliques, dtype=np.int64)
    n_subsets = 0
    # The table used least comes first and is always taken, so n_cliques subsets are enough.
    while n_subsets < 64 or used.min(initial=1) == 0:
        root = list(range(len(cliques.variables)))

        def find(i: int, root: list[int] = root) -> int:
            while root[i] != i:
                root[i] = root[root[i]]
                i = root[i]
            return i

        for c in np.lexsort((rng.random(len(used)), used)):
            parts = {find(i) for i in cliques.indices[c]}
            if len(parts) == len(cliques.indices[c]):
                used[c] += 1
                first = parts.pop()
                for other in parts:
                    root[other] = first
        n_subsets += 1
    return used / n_subsets


def loopy_memory_bytes(cliques: Cliques) -> int:
    """Bytes of all arrays of one calibration and one directional derivative, without allocating any."""
    slots = sum(sum(shape) for shape in cliques.shapes)
    states = sum(cliques.cardinalities)
    # Per cell: place, potential, work table, belief, direction, a second work table, two results. Per message entry:
    # place, weights, messages and the 40 vectors of the Krylov method.
    return 8 * (10 * cliques.n_cells + 60 * slots + 10 * states)


def require_loopy_memory(cliques: Cliques, memory_limit: int) -> None:
    """Raise InferenceTooLarge where loopy inference would need more than `memory_limit` bytes."""
    needed = loopy_memory_bytes(cliques)
    if needed > memory_limit:
        largest = max(range(cliques.n_cliques), key=lambda c: cliques.sizes[c])
        raise InferenceTooLarge(
            f"loopy inference takes {needed:,} B, over memory_limit={memory_limit:,}, for {cliques.n_cells:,} cells "
            f"(largest {cliques.scopes[largest]!r}). Merge states of its variables, drop tables, or pass a larger "
            "memory_limit"
        )


@dataclass(frozen=True)
class _Group:
    """Tables of one shape, as arrays with an axis for each variable and the tables last."""

    shape: tuple[int, ...]
    cells: np.ndarray  # places in the flat vector, (*shape, n_tables)
    counting: np.ndarray  # c_C, (n_tables,)
    slots: tuple[slice, ...]  # for each axis, where its messages (shape[axis], n_tables) lie among all messages

    def block(self, messages: np.ndarray, axis: int) -> np.ndarray:
        """The messages of one axis, (shape[axis], n_tables), as a view."""
        return messages[self.slots[axis]].reshape(self.shape[axis], -1)

    def add(self, messages: np.ndarray, out: np.ndarray) -> None:
        """Add the messages of all axes to tables."""
        for axis, size in enumerate(self.shape):
            aligned = [1] * len(self.shape) + [len(self.counting)]
            aligned[axis] = size
            out += self.block(messages, axis).reshape(aligned)

    def margins(self, tables: np.ndarray, out: np.ndarray) -> None:
        """Sum tables over all axes but one, for each axis."""
        for axis in range(len(self.shape)):
            others = tuple(a for a in range(len(self.shape)) if a != axis)
            self.block(out, axis)[...] = tables.sum(axis=others) if others else tables


def _absorb(cliques: Cliques) -> tuple[Cliques, sparse.csr_array | None]:
    """The tables that lie in no other one, and the matrix that adds the others' cells to theirs (None: the identity).

    Its transpose takes the marginals of the former to those of all tables.
    """
    variables = [frozenset(scope) for scope in cliques.indices]
    holding: dict[int, list[int]] = {}
    for c in sorted(range(cliques.n_cliques), key=lambda c: -len(variables[c])):  # larger first; sorted() is stable
        if not any(variables[c] <= variables[other] for other in holding.get(cliques.indices[c][0], ())):
            for i in cliques.indices[c]:
                holding.setdefault(i, []).append(c)
    kept = sorted({c for tables in holding.values() for c in tables})
    if len(kept) == cliques.n_cliques:
        return cliques, None
    regions = Cliques(cliques.variables, cliques.cardinalities, tuple(cliques.scopes[c] for c in kept))
    rows, columns = [], []
    for c, scope in enumerate(cliques.indices):
        home = next(other for other in holding[scope[0]] if variables[c] <= variables[other])
        k = kept.index(home)
        grid = np.indices(regions.shapes[k]).reshape(len(regions.shapes[k]), -1)
        coordinates = [grid[regions.indices[k].index(i)] for i in scope]
        rows.append(np.arange(regions.slices[k].start, regions.slices[k].stop))
        columns.append(cliques.slices[c].start + np.ravel_multi_index(coordinates, cliques.shapes[c]))
    from scipy import sparse

    row, column = np.concatenate(rows), np.concatenate(columns)
    return regions, sparse.csr_array((np.ones(len(row)), (row, column)), shape=(regions.n_cells, cliques.n_cells))


class LoopyBeliefPropagation:
    """Calibrate a log-linear model approximately: pseudo-marginals and approximate log-partition function.

    Exact where the tables are acyclic. One object must not be used by two threads at a time.

    Parameters
    ----------
    cliques : Cliques
        The model; the parameter vector theta has shape (n_cells,).
    settings : LoopySettings
    memory_limit : int
        Bytes that may be allocated; see `loopy_memory_bytes`.
    give_up_after : int, optional
        Raise `LoopyFailed` where more calibrations than this have failed. Default: never.

    Attributes
    ----------
    converged : bool
        Whether the last calibration met its tolerance.
    residual : float
        Largest disagreement, in probability, of a table with a variable after the last calibration.
    n_iter : int
        Iterations of the last calibration.
    n_calibrations, n_failures : int
        Calibrations so far, and how many of them missed the tolerance.
    n_response_failures : int
        Directional derivatives so far whose linear system was not solved to its tolerance.
    table_counting, node_counting : ndarray of shape (n_regions,), (n_variables,)
        The counting numbers. The regions are the tables that are in no other one, in order.

    Raises
    ------
    InferenceTooLarge
        Before anything is allocated, if the limit would be exceeded.

    Notes
    -----
    Bethe's approximation: Yedidia, Freeman and Weiss (2005). Tree-reweighting: Wainwright, Jaakkola and Willsky
    (2005). Counting numbers and concavity: Heskes (2006); Meltzer, Globerson and Weiss (2009). Fractional counting
    numbers: Wiegerinck and Heskes (2003). Linear response: Welling and Teh (2004).

    A table whose variables another table has, too, is part of that one: side by side they would tell one another
    about single variables only. The same is true of tables that share two variables without one holding the other; that
    stays an error of first order in their interactions.

    A calibration starts from the messages of the one before if that converged, and from none otherwise or if it fails;
    where there are several fixed points (`counting` below 1) the answer may depend on that. A convergent calibration is
    a stationary point of the stated objective, not a bound on the distance to the exact marginals.

    Examples
    --------
    >>> import numpy as np
    >>> cycle = Cliques(("a", "b", "c"), (2, 2, 2), (("a", "b"), ("b", "c"), ("a", "c")))
    >>> engine = LoopyBeliefPropagation(cycle)
    >>> marginals, log_partition = engine.calibrate(np.zeros(12))
    >>> float(marginals[0]), round(float(np.exp(log_partition)), 9), engine.converged
    (0.25, 8.0, True)
    """

    def __init__(
        self,
        cliques: Cliques,
        settings: LoopySettings | None = None,
        memory_limit: int = DEFAULT_MEMORY_LIMIT,
        give_up_after: int | None = None,
    ) -> None:
        require_loopy_memory(cliques, memory_limit)
        self.cliques = cliques
        self.settings = LoopySettings() if settings is None else settings
        self.give_up_after = give_up_after
        convexity = self.settings.convexity
        self._regions, self._spread = _absorb(cliques)
        regions = self._regions
        appearance = appearance_probabilities(regions) if convexity > 0 else np.ones(regions.n_cliques)
        self.table_counting = 1.0 - convexity + convexity * appearance
        self.node_counting = np.ones(len(cliques.variables))
        for scope, counting in zip(regions.indices, self.table_counting, strict=True):
            self.node_counting[list(scope)] -= counting
        self.converged, self.residual, self.n_iter = False, math.inf, 0
        self.n_calibrations = self.n_failures = self.n_response_failures = 0
        self._lay_out()
        self._messages = np.zeros(self._n_slots)
        self._response: np.ndarray | None = None

    def _lay_out(self) -> None:
        cliques = self._regions
        starts = np.cumsum([0, *cliques.cardinalities])
        self._n_states = int(starts[-1])
        self._node_starts = starts[:-1]
        self._node_of_state = np.repeat(np.arange(len(cliques.variables)), cliques.cardinalities)
        self._state_counting = self.node_counting[self._node_of_state]
        members: dict[tuple[int, ...], list[int]] = {}
        for c, shape in enumerate(cliques.shapes):
            members.setdefault(shape, []).append(c)
        self._groups: list[_Group] = []
        states, counting = [], []
        from scipy import sparse

        n_slots = 0
        for shape, tables in members.items():
            first = np.array([cliques.slices[c].start for c in tables])
            cells = np.arange(math.prod(shape)).reshape((*shape, 1)) + first
            slots = []
            for axis, size in enumerate(shape):
                variables = [cliques.indices[c][axis] for c in tables]
                slots.append(slice(n_slots, n_slots + size * len(tables)))
                states.append((np.arange(size)[:, None] + starts[variables]).ravel())
                counting.append(np.tile(self.table_counting[tables], size))
                n_slots += size * len(tables)
            self._groups.append(_Group(shape, cells, self.table_counting[tables], tuple(slots)))
        self._n_slots = n_slots
        self._state_of_slot = np.concatenate(states) if states else np.empty(0, dtype=np.int64)
        self._slot_counting = np.concatenate(counting) if counting else np.empty(0)
        self._collect = sparse.csr_array(
            (np.ones(n_slots), (self._state_of_slot, np.arange(n_slots))), shape=(self._n_states, n_slots)
        )
        self._tables = [np.empty(group.cells.shape) for group in self._groups]
        self._work = [np.empty(group.cells.shape) for group in self._groups]
        self._margins = np.empty(n_slots)

    def calibrate(self, theta: np.ndarray) -> tuple[np.ndarray, float]:
        """Pseudo-marginals of all tables and the approximate log-partition function.

        Whether they are a fixed point is told by `converged` and `residual`; they are finite and each table sums to 1
        either way.

        Parameters
        ----------
        theta : ndarray of shape (n_cells,)
            Log-potentials; -inf marks a structural zero.

        Returns
        -------
        marginals : ndarray of shape (n_cells,)
        log_partition : float
        """
        spread = theta if self._spread is None else self._spread @ theta
        potentials = [self._without_infinities(spread[group.cells]) for group in self._groups]
        warm = self.converged
        if not warm:
            self._messages[:] = 0.0
        log_partition = self._iterate(potentials)
        if warm and not self.converged:
            self._messages[:] = 0.0
            log_partition = self._iterate(potentials)
        self.n_calibrations += 1
        self.n_failures += not self.converged
        if self.give_up_after is not None and self.n_failures > self.give_up_after:
            raise LoopyFailed(f"{self.n_failures} of {self.n_calibrations} calibrations did not converge")
        marginals = np.empty(self._regions.n_cells)
        for group, tables in zip(self._groups, self._tables, strict=True):
            marginals[group.cells] = tables
        return marginals if self._spread is None else self._spread.T @ marginals, log_partition

    def derivative(self, direction: np.ndarray) -> np.ndarray:
        """Derivative of the pseudo-marginals at the last calibrated theta along `direction`, by linear response.

        The fixed-point equations are differentiated, and the linear system for the messages' derivative is solved
        by GMRES to a relative residual of 1e-9. Where the last calibration did not converge this is the derivative of
        no function.

        Parameters
        ----------
        direction : ndarray of shape (n_cells,)
            w; the result is the Hessian of A_c times w.

        Returns
        -------
        ndarray of shape (n_cells,)
        """
        spread = direction if self._spread is None else self._spread @ direction
        tables = [np.take(spread, group.cells) for group in self._groups]
        derivative = np.empty(self._regions.n_cells)
        right = self._linear_step(tables, None)
        shift = self._solve(right)
        for group, belief, work, table in zip(self._groups, self._tables, self._work, tables, strict=True):
            np.copyto(work, table)
            group.add(shift, work)
            axes = tuple(range(len(group.shape)))
            work -= (belief * work).sum(axis=axes)
            work *= belief
            work /= group.counting
            derivative[group.cells] = work
        return derivative if self._spread is None else self._spread.T @ derivative

    def node_marginals(self) -> list[np.ndarray]:
        """Beliefs of all variables at the last calibration, in their order; uniform for one that is in no table."""
        return np.split(self._node_beliefs.copy(), self._node_starts[1:])

    @staticmethod
    def _without_infinities(table: np.ndarray) -> np.ndarray:
        impossible = np.isneginf(table)
        if not impossible.any():
            return table
        possible = np.where(impossible, -np.finfo(float).max, table)
        top = possible.max(axis=tuple(range(table.ndim - 1)))
        return np.where(impossible, np.where(top > -np.finfo(float).max, top, 0.0) + LOG_ZERO, table)

    def _iterate(self, potentials: Sequence[np.ndarray]) -> float:
        """Run to a fixed point from the messages as they are; sets messages, tables, margins and the status."""
        settings = self.settings
        step, best = 1.0 - settings.damping, math.inf
        since = 0
        for iteration in range(1, settings.max_iter + 1):
            target, residual, log_partition = self._step(potentials)
            self.converged, self.residual, self.n_iter = residual <= settings.tol, residual, iteration
            if self.converged or iteration == settings.max_iter:
                break
            if residual < 0.9 * best:
                best, since = residual, 0
            else:
                since += 1
                if since >= _PATIENCE and step > _SMALLEST_STEP:
                    step, since = max(0.5 * step, _SMALLEST_STEP), 0
            target -= self._messages
            target *= step
            self._messages += target
        for tables in self._tables:
            tables /= tables.sum(axis=tuple(range(tables.ndim - 1)))
        return log_partition

    def _step(self, potentials: Sequence[np.ndarray]) -> tuple[np.ndarray, float, float]:
        """The next messages, the residual, and the Lagrangian, which is A_c at a fixed point.

        The Lagrangian is stationary in beliefs and messages, so its error is of second order in the residual.
        """
        messages, margins = self._messages, self._margins
        log_partition = 0.0
        upward = np.empty(self._n_slots)
        for group, potential, tables in zip(self._groups, potentials, self._tables, strict=True):
            axes = tuple(range(len(group.shape)))
            np.copyto(tables, potential)
            group.add(messages, tables)
            tables /= group.counting
            top = tables.max(axis=axes)
            tables -= top
            np.exp(tables, out=tables)
            group.margins(tables, margins)
            total = group.block(margins, 0).sum(axis=0)
            log_partition += float(group.counting @ (top + np.log(total)))
            for axis in axes:
                margin = group.block(margins, axis)
                group.block(upward, axis)[...] = np.log(np.maximum(margin, _TINY)) + top
                margin /= total
        upward *= self._slot_counting
        upward -= messages
        log_belief = self._collect @ upward
        log_belief -= np.maximum.reduceat(log_belief, self._node_starts)[self._node_of_state]
        log_belief -= np.log(np.add.reduceat(np.exp(log_belief), self._node_starts))[self._node_of_state]
        belief = np.exp(log_belief)
        self._node_beliefs = belief
        residual = float(np.abs(belief[self._state_of_slot] - margins).max(initial=0.0))
        entropy = -belief * np.maximum(log_belief, LOG_ZERO)
        log_partition += float(self._state_counting @ entropy - belief @ (self._collect @ messages))
        target = self._slot_counting * log_belief[self._state_of_slot] - upward
        self._centre(target)
        return target, residual, log_partition

    def _centre(self, messages: np.ndarray) -> None:
        """Fix the constant that each message is free up to."""
        for group in self._groups:
            for axis in range(len(group.shape)):
                block = group.block(messages, axis)
                block -= block.mean(axis=0)

    def _linear_step(self, tables: Sequence[np.ndarray] | None, shift: np.ndarray | None) -> np.ndarray:
        """Derivative of the messages' next value along a change of potentials or of messages."""
        upward = np.empty(self._n_slots)
        for k, (group, belief, work) in enumerate(zip(self._groups, self._tables, self._work, strict=True)):
            if tables is not None:
                np.copyto(work, tables[k])
            else:
                work.fill(0.0)
            if shift is not None:
                group.add(shift, work)
            work *= belief
            group.margins(work, upward)
        upward /= np.maximum(self._margins, _TINY)
        if shift is not None:
            upward -= shift
        change = self._slot_counting * (self._collect @ upward)[self._state_of_slot] - upward
        self._centre(change)
        return change

    def _solve(self, right: np.ndarray) -> np.ndarray:
        """Solve x - L x = right, with L the derivative of one step along messages."""
        if not right.any():
            return np.zeros_like(right)
        from scipy.sparse.linalg import LinearOperator, gmres  # most models never come here

        operator = LinearOperator(
            (self._n_slots, self._n_slots), matvec=lambda x: x - self._linear_step(None, x), dtype=np.float64
        )
        solution, info = gmres(operator, right, rtol=1e-9, atol=0.0, restart=30, maxiter=20)
        self.n_response_failures += info != 0
        return solution
