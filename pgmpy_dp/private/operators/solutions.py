"""Solutions of convex programs, by solvers from outside, with noise: what no checker certifies is never released.

The general tool of Chen, Cohen-Addad, d'Orsi, Epasto, Imola, Steurer and Tiegel (2023, section 4): records define a
convex program; if its optimum moves by at most S in l2 norm between neighbours, the optimum plus Gaussian noise is
private, and everything made from it is post-processing. A way to S is in
:mod:`~pgmpy_dp.communities.operators.block_projection`.

No solver returns the optimum. A program therefore states a `distance` in advance, from public numbers, and what is
released has a **certificate**, a proven bound on its distance from the optimum. Points within that distance of their
optima move by at most S + 2 distance between neighbours, and that is what the noise is for. The distance that a
certificate proves depends on the records; it is compared with the one stated and used for nothing else. If one solver
does not reach it, the next one is called, and nobody is told.
"""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np

from pgmpy_dp.checks import checked_integer, checked_number, exact_fraction, fresh_copy, require_choice
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.budget import Budget, require_budget
from pgmpy_dp.private.curator.mechanism import AdditiveNoise, Mechanism
from pgmpy_dp.private.curator.observer import Coins
from pgmpy_dp.private.curator.outside_functions import (
    ended_without_text,
    named_function,
    none_for_errors,
    plain_arguments,
    silent_warnings,
)
from pgmpy_dp.private.data.data_base import Facts, PrivateData
from pgmpy_dp.private.data.moments import TraceSensitivity
from pgmpy_dp.private.guarantee import ZCDP, PureDP
from pgmpy_dp.private.mathematics.certificates import CertifiedPoint
from pgmpy_dp.private.noise.fine_grid import FineGrid, fine_grid, on_grid
from pgmpy_dp.private.noise.matrix import MECHANISMS, MatrixNoise, add_matrix_noise, plan_matrix_noise
from pgmpy_dp.private.noise.measures import noise_budget
from pgmpy_dp.private.operators.operator_base import Operator
from pgmpy_dp.private.sensitive import Noise, Sensitive
from pgmpy_dp.private.trusted_types import is_trusted

Records = TypeVar("Records", contravariant=True)
Solver = tuple[str, Mapping[str, Any]]
"""Name of a registered function, and public arguments."""

_UP = 1.0 + 2.0**-50  # more than the rounding of a few operations


class Program(Protocol):
    """The public description of a program, which is there before records are seen."""

    @property
    def name(self) -> str: ...
    @property
    def size(self) -> int: ...
    @property
    def adjacency(self) -> Adjacency: ...
    @property
    def sensitivity(self) -> float: ...
    @property
    def distance(self) -> float: ...
    @property
    def bound(self) -> float: ...
    @property
    def failure(self) -> float: ...

    def public(self) -> dict[str, Any]:
        """JSON-able description for the release: everything that a reader of it needs."""

    def check(self, facts: Any) -> None:
        """Raise ValueError where the public facts of the data, such as `n` vertices, do not suit the program."""


@runtime_checkable
class StableProgram(Program, Protocol[Records]):
    """A program of a user's own, who vouches for what it says about itself and for its certificates.

    Attributes
    ----------
    name : str
        Of the release, its ``kind``.
    size : int
        m, numbers in the solution as it is released.
    adjacency : Adjacency
        For which `sensitivity` holds.
    sensitivity : float
        S: the exact optimum, as released, moves by at most this in l2 norm between neighbours. Rounded up.
    distance : float
        From the optimum, in the same norm, within which a point may be released.
    bound : float
        No number of a solution exceeds this in absolute value.
    failure : float
        Probability, over the coins of the solvers alone and for every dataset, that neither certifies `distance`; 0
        for solvers without coins.
    """

    def solve(self, records: Records) -> CertifiedPoint:
        """A point of shape (m,) and its certificate. Warns and logs nothing that depends on the records."""

    def fallback(self, records: Records) -> CertifiedPoint:
        """The same by a solver that is proved to reach `distance` on every dataset."""


class CheckedProgram(ABC):
    """A program of the boundary: statistics and checker are in here, its solvers outside. Attributes: `StableProgram`.

    Attributes
    ----------
    symmetric : bool
        Whether the solution is the upper triangle, row by row, of a symmetric matrix, and `sensitivity` and `distance`
        bound Frobenius norms of the whole matrix. It may have matrix noise then.
    """

    symmetric = False

    @abstractmethod
    def exact(self, records: Any) -> Any:
        """Return the exact statistics of the records that the program is made of; solvers get copies of them."""

    @abstractmethod
    def certified(self, exact: Any, answer: Mapping[str, Any]) -> CertifiedPoint:
        """The point that is released and its certificate, from whatever a solver found; it raises nothing."""


class UncertifiedSolution(RuntimeError):
    """No solver of a program certified its distance: the proof that one always does, or what it assumes, is wrong."""

    def __init__(self) -> None:
        super().__init__(
            "no solver certified its solution, so nothing was released; the budget is spent, as the outcome itself may "
            "tell of the records. It is a fault of the package or of the machine's linear algebra: please report it, "
            "with the settings and without the records"
        )


@dataclass(frozen=True)
class MatrixGrid:
    """Grid and matrix noise of one symmetric solution, from public numbers.

    Attributes
    ----------
    unit : float
        Of the released integers, a power of two.
    frobenius : float
        How far the integers move, in Frobenius norm.
    noise : MatrixNoise
    """

    unit: float
    frobenius: float
    noise: MatrixNoise


def noise_plan(program: Any, budget: Budget) -> FineGrid:
    """Grid and Gaussian noise with which a solution would spend `budget`, from public numbers.

    Raises
    ------
    TypeError, ValueError
        For a budget that Gaussian noise cannot spend, or a program whose numbers are out of range.
    """
    require_budget(budget, "Budget(epsilon=..., delta=...) or rho")
    size = checked_integer("program.size", program.size, 1)
    return fine_grid(size, _moved(program), program.bound, budget, failure=program.failure)


def matrix_plan(program: Any, mechanism: str, budget: Budget) -> MatrixGrid:
    """Grid and matrix noise for a symmetric solution, from public numbers; arguments as in `noise_plan`.

    Parameters
    ----------
    program : CheckedProgram
    mechanism : {"frobenius", "goe"}
    budget : Budget
    """
    if not getattr(program, "symmetric", False) or program.failure:
        raise ValueError(
            f"noise={mechanism!r} is for symmetric matrices whose solvers do not fail; use 'gaussian' for "
            f"{program.name!r}"
        )
    if mechanism not in ("frobenius", "goe"):
        raise ValueError(f"noise={mechanism!r} has no proof for a solution; use 'frobenius', 'goe' or 'gaussian'")
    moved, d = _moved(program), math.isqrt(2 * program.size)
    unit = math.ldexp(1.0, math.floor(math.log2(max(moved * 2.0**-30 / d, program.bound * 2.0**-50))))
    frobenius = (moved + d * unit) / unit * (1.0 + 1e-9)  # rounding moves each of d**2 entries by at most unit/2
    sensitivity = TraceSensitivity(math.inf, frobenius, math.inf)
    noise = plan_matrix_noise(mechanism, d, program.adjacency, budget, sensitivity=sensitivity)
    return MatrixGrid(unit, frobenius, noise)


def part_of(cost: PureDP | ZCDP, share: Fraction | float, eta: Fraction | float = 0) -> Budget:
    """Return what a share of a cost and eta of a reserve are worth, rounded down.

    Examples
    --------
    >>> print(part_of(ZCDP(0.5), Fraction(1, 2)), part_of(PureDP(1.0), 1, 1e-6))
    0.25-zCDP (1, 1e-06)-DP
    """
    return noise_budget(cost, share).budget(exact_fraction(eta))


def certified_solution(program: Any, records: Any, solvers: Sequence[Solver] = ()) -> np.ndarray:
    """A point within ``program.distance`` of the optimum, exact and **to be noised**, shape (m,).

    The point is that of the first solver that is certified; of a `StableProgram`, of its `solve` or its `fallback`.

    Raises
    ------
    MemoryError, KeyboardInterrupt, SystemExit
        Of a solver, without their texts.
    UncertifiedSolution
        If none is.
    """
    with silent_warnings():
        for point in _points(program, records, [(named_function(name), arguments) for name, arguments in solvers]):
            value = _called(_released, point, program.size, program.distance)
            if value is not None:
                return value
    raise UncertifiedSolution


@dataclass(frozen=True, eq=False, repr=False)
class SolutionNoise(AdditiveNoise):
    """Gaussian noise on a solution in integers of a fine grid."""

    fine: FineGrid | None = None

    @property
    def step(self) -> float:
        """The step of the grid."""
        assert self.fine is not None
        return self.fine.step


@dataclass(frozen=True, eq=False, repr=False)
class SymmetricNoise(Mechanism):
    """The upper triangle of a symmetric matrix of integers, with matrix noise.

    Notes
    -----
    Privacy: :mod:`pgmpy_dp.private.noise.matrix` has the proofs. With a plan that was made for a share and the
    statistic's own sensitivity, `draw` costs the share.
    """

    exact: Sensitive
    plan: MatrixNoise

    @property
    def name(self) -> str:  # type: ignore[override]
        """The name of the noise."""
        return self.plan.name

    @property
    def noise(self) -> tuple[Noise, ...]:  # type: ignore[override]
        """The noise of the diagonal, and of the rest."""
        return self.plan.diagonal, self.plan.off_diagonal

    def draw(self, rng: np.random.Generator | None) -> list[np.ndarray]:
        """The diagonal, shape (d,), and the rest of the triangle, row by row."""
        return list(add_matrix_noise(self.exact, self.plan, rng))


@dataclass(frozen=True, eq=False, repr=False)
class SolutionMatrixNoise(SymmetricNoise):
    """Matrix noise on a symmetric solution in integers of a grid."""

    step: float = 1.0
    frobenius: float = math.inf


@dataclass(frozen=True, slots=True, eq=False)
class Solution(Operator[list[np.ndarray]]):
    """The optimum of a program with noise: of a point near it that a checker certified.

    Parameters
    ----------
    program : CheckedProgram or StableProgram
    solvers : sequence of (str, mapping)
        Of a checked program: names of registered functions
        (:func:`~pgmpy_dp.private.curator.outside_functions.outside_function`), each with plain public arguments. One is
        called as ``function(exact, **arguments)``, with a copy of the program's statistics, and returns a dict of
        arrays. The first whose numbers are certified ends the search. Limits are in steps, never in time; the last
        solver should be proved to reach the distance on all data.
    noise : {"gaussian", "frobenius", "goe"}
        On the fine grid of :func:`noise_plan`, or matrix noise of :func:`matrix_plan`. Gaussian noise where shares are
        of epsilon takes an eta: all of delta.
    vouched_for : bool, default False
        Whether the program may be one that is not part of the boundary. Its caller then vouches for what it says of
        itself and for its certificates, and the release says so (``public["vouched_for"]``).

    Returns
    -------
    list of ndarray of int64
        The solution, shape (m,), in steps of the grid; of matrix noise its diagonal and the rest of its triangle.

    Raises
    ------
    MemoryError, UncertifiedSolution
        Where a solver runs out of memory, or none is certified; nothing is released, and the share is spent.
    TypeError, ValueError
        For public arguments that are wrong.

    Notes
    -----
    Privacy
        *Sensitivity.* S bounds how far the exact optimum moves, for the program's own adjacency and unit, which are
        those of the data. What is released is within `distance` of it on each side, whichever solver computed it and
        whatever the solver did: S + 2 distance, and the rounding to the grid.

        *Guarantee.* The share of rho, exactly, or (s epsilon, eta)-DP by the exact formula for Gaussian noise
        (:mod:`pgmpy_dp.private.noise.fine_grid`); of matrix noise the share (:mod:`pgmpy_dp.private.noise.matrix`).

        *Source.* Chen et al. 2023, Lemma 4.1 and Lemma 3.12; ``proof.md``, section 8.

        *Side channels.* Nothing shows how the solve went: a solver that raises counts as one without a point, its
        warnings are ignored, and no curator of the same data answers meanwhile. Running time depends on the records. A
        run in which no point is certified would tell of the records too: the last solver's proof has to exclude it.
    """

    program: Any
    solvers: Sequence[Solver] = ()
    noise: str = "gaussian"
    vouched_for: bool = False

    name = "solution"
    asks = Facts
    can_fail = True

    def checked(self, facts: Facts) -> Solution:
        calls = tuple([(str(name), plain_arguments(arguments)) for name, arguments in self.solvers])
        program = self.program
        cls = type(program)
        ours = isinstance(program, CheckedProgram) and is_trusted(cls)
        if not ours and not self.vouched_for:
            raise TypeError(
                f"program is a {cls.__name__}, which is not part of the boundary; vouch for what it says of itself "
                "with vouched_for=True, which the release then says"
            )
        if not ours and not isinstance(program, StableProgram):
            raise TypeError(f"program is a {cls.__name__}; pass a StableProgram: see its attributes and methods")
        if ours != bool(calls):
            raise ValueError(f"solvers={calls!r} are for programs of the boundary, which need some; others have theirs")
        for name, _ in calls:
            named_function(name)
        if ours:  # checked once more: whoever made it may have changed it
            program = cls(**{each.name: getattr(program, each.name) for each in fields(program)})
        if facts.adjacency != program.adjacency:
            raise ValueError(
                f"the program's sensitivity is for adjacency={str(program.adjacency)!r}, and the records have "
                f"{str(facts.adjacency)!r}; pass others, or derive it for theirs"
            )
        program.check(facts)
        require_choice("noise", self.noise, MECHANISMS)
        return Solution(program, calls, self.noise, not ours)

    def mechanism(
        self, facts: Facts, cost: PureDP | ZCDP, share: Fraction, eta: Fraction
    ) -> SolutionNoise | SolutionMatrixNoise:
        budget = part_of(cost, share, eta)
        if self.noise == "gaussian":
            grid = noise_plan(self.program, budget)
            return SolutionNoise((), (grid.noise,), norms=((math.inf, grid.l2),), fine=grid)
        plan = matrix_plan(self.program, self.noise, budget)
        return SolutionMatrixNoise(None, plan.noise, plan.unit, plan.frobenius)  # type: ignore[arg-type]

    def _exact(
        self, data: PrivateData, facts: Facts, mechanism: SolutionNoise | SolutionMatrixNoise, coins: Coins
    ) -> Any:
        with data._handed_out():
            point = certified_solution(self.program, data, self.solvers)
        if isinstance(mechanism, SolutionNoise):
            assert mechanism.fine is not None
            return [on_grid(point, mechanism.fine, facts.adjacency)]
        within = np.clip(np.nan_to_num(point, nan=0.0), -self.program.bound, self.program.bound)
        exact, moved = np.rint(within / mechanism.step).astype(np.int64), mechanism.frobenius
        return Sensitive(exact, facts.adjacency, moved * math.sqrt(len(exact)), moved, moved)

    def arguments(self, facts: Facts) -> dict[str, Any]:
        program, cls = self.program, type(self.program)
        said = {key: getattr(program, key) for key in ("size", "sensitivity", "distance", "failure")}
        question = {"program": program.public(), "solvers": self.solvers, "noise": self.noise, **said}
        return {"function": f"{cls.__module__}.{cls.__qualname__}", "vouched_for": self.vouched_for, **question}


def _points(program: Any, records: Any, solvers: Sequence[tuple[Callable, Mapping[str, Any]]]) -> Iterator[Any]:
    if not solvers:  # a user's program has its own
        yield _called(program.solve, records)
        yield _called(program.fallback, records)
        return
    exact = program.exact(records)
    for function, arguments in solvers:
        answer = _called(function, copy.deepcopy(exact), **arguments)  # what is certified is not a solver's to change
        if isinstance(answer, dict):
            yield _called(program.certified, exact, answer)  # reading a solver's objects may run code of theirs


def _released(point: Any, size: int, distance: float) -> np.ndarray | None:
    """A copy of a certified value, which a solver cannot change: `size` numbers in one row, as noise is added to."""
    if not isinstance(point, CertifiedPoint) or not point.distance <= distance:  # NaN is no distance
        return None
    value = fresh_copy(point.value).ravel()
    return value if value.size == size else None


def _called(solver: Callable, *arguments: Any, **options: Any) -> Any:
    """Return a solver's answer; None where it fails, which may depend on the records."""
    return ended_without_text("a solver", lambda: none_for_errors(lambda: solver(*arguments, **options)))


def _moved(program: Any) -> float:
    """Return how far points within the distance of their optima move."""
    for name in ("sensitivity", "bound", "distance"):
        value = getattr(program, name)
        if not (isinstance(value, int | float) and math.isfinite(value) and value > 0):
            raise ValueError(f"program.{name}={value!r} is not a positive finite number")
    checked_number("program.failure", program.failure, positive=False, below_one=True)
    return float(program.sensitivity + 2.0 * program.distance) * _UP
