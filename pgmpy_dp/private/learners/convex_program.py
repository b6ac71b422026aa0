"""Private release of the optimum of a strongly convex program whose optimum is stable.

The general tool of Chen, Cohen-Addad, d'Orsi, Epasto, Imola, Steurer and Tiegel (2023, section 4): records define a
convex program; if its optimum moves by at most S in l2 norm between neighbours, the optimum plus Gaussian noise is
private, and everything made from it, rounding to labels included, is post-processing. Three ways to S:

* :func:`stable_set_sensitivity` (their Lemma 4.1): objectives and feasible sets may both move.
* :func:`stable_objective_sensitivity`: the feasible set is fixed.
* :func:`projection_sensitivity`: the program is a projection on a fixed set.

No solver returns the optimum. A program therefore states a `distance` in advance, from public numbers, and its solver
returns a point with a **certificate**, a proven bound on its distance from the optimum. Points within that distance of
their optima move by at most S + 2 distance between neighbours, and that is what the noise is for. The distance that a
certificate proves depends on the records; it is compared with the one stated and used for nothing else.

What if it is not reached
-------------------------
A refusal, a flag or another scale of noise would tell the adversary something about the records. So nothing shows: the
program's `fallback`, slow and exact, takes over, and what it returns is released with the same noise. What neither
certifies is never released: :func:`certified_solution` raises :class:`UncertifiedSolution`, with the same text for all
records. That this happened would itself tell of the records, and so would a call that never returns. That neither can
happen, on any dataset, is for the program's author to prove: a deterministic solver either reaches its distance or does
not, and no delta pays for that. A solver that draws random numbers can state a probability, `failure`, for which delta
pays.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np

from pgmpy_dp.checks import checked_integer
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.data.subject import PrivateData
from pgmpy_dp.private.learners.certificates import CertifiedPoint
from pgmpy_dp.private.ledger import Budget
from pgmpy_dp.private.noise.fine_grid import FineGrid, fine_grid, on_grid, with_noise
from pgmpy_dp.private.noise.samplers import seeded_generator
from pgmpy_dp.private.sensitive import Release

__all__ = [
    "CertifiedProgram",
    "StableProgram",
    "UncertifiedSolution",
    "certified_solution",
    "noise_plan",
    "projection_sensitivity",
    "release",
    "released_solution",
    "stable_objective_sensitivity",
    "stable_set_sensitivity",
]

Records = TypeVar("Records", contravariant=True)
_UP = 1.0 + 2.0**-50  # more than the rounding of a few operations


class CertifiedProgram(Protocol[Records]):
    """A program with a stable optimum, and two solvers that prove how near to it they came.

    Attributes
    ----------
    sensitivity, distance : float
        As in :class:`StableProgram`.
    """

    @property
    def sensitivity(self) -> float: ...
    @property
    def distance(self) -> float: ...

    def solve(self, records: Records) -> CertifiedPoint:
        """A point of shape (m,) and its certificate. Raises, warns and logs nothing that depends on the records."""
        ...

    def fallback(self, records: Records) -> CertifiedPoint:
        """The same by a solver that is proved to reach `distance` on every dataset."""
        ...


@runtime_checkable
class StableProgram(CertifiedProgram[Records], Protocol[Records]):
    """What a program has to say about itself; all but the two solvers is public and fixed before records are seen.

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

    @property
    def name(self) -> str: ...
    @property
    def size(self) -> int: ...
    @property
    def adjacency(self) -> Adjacency: ...
    @property
    def bound(self) -> float: ...
    @property
    def failure(self) -> float: ...

    def public(self) -> dict[str, Any]:
        """JSON-able description for the release: everything that a reader of it needs."""
        ...

    def check(self, records: Records) -> None:
        """Raise ValueError where *public* facts of the data, such as a number of vertices, do not suit the program."""
        ...


def noise_plan(program: StableProgram, budget: Budget) -> FineGrid:
    """Grid and noise with which `release` would spend `budget`, from public numbers: a function without records.

    Raises
    ------
    TypeError, ValueError
        For a budget that Gaussian noise cannot spend, or a program whose numbers are out of range.
    """
    if not isinstance(budget, Budget):
        raise TypeError(f"budget={budget!r} is a {type(budget).__name__}; pass Budget(epsilon=..., delta=...) or rho")
    size = checked_integer("program.size", program.size, 1)
    for name in ("sensitivity", "bound", "distance"):
        value = getattr(program, name)
        if not (isinstance(value, int | float) and math.isfinite(value) and value > 0):
            raise ValueError(f"program.{name}={value!r} is not a positive finite number")
    moved = (program.sensitivity + 2.0 * program.distance) * _UP
    return fine_grid(size, moved, program.bound, budget, failure=program.failure)


class UncertifiedSolution(RuntimeError):
    """No solver of a program certified its distance: the proof that one always does, or what it assumes, is wrong."""

    def __init__(self) -> None:
        super().__init__(
            "no solver certified its solution, so nothing was released; the budget is spent, as the outcome itself may "
            "tell of the records. It is a fault of the package or of the machine's linear algebra: please report it, "
            "with the settings and without the records"
        )


def certified_solution(program: CertifiedProgram[Records], records: Records) -> np.ndarray:
    """A point within ``program.distance`` of the optimum, exact and **to be noised**, shape (m,).

    The solver's where it certifies that; else the fallback's. For mechanisms with noise of their own; :func:`release`
    adds Gaussian noise.

    Raises
    ------
    UncertifiedSolution
        If neither certifies it.
    """
    # A warning about a division would be about the records.
    with np.errstate(all="ignore"):
        for solver in (program.solve, program.fallback):
            point = solver(records)
            if point.distance <= program.distance:  # false for NaN
                return point.value
    raise UncertifiedSolution


def release(
    program: StableProgram,
    records: PrivateData,
    budget: Budget,
    *,
    columns: Iterable[Hashable] = (),
    random_state: int | None = None,
) -> Release:
    """Release the optimum of a stable program with Gaussian noise.

    Parameters
    ----------
    program : StableProgram
    records : PrivateData
        Of the kind that the program reads; their ledger pays.
    budget : Budget
        What this release spends: rho, or epsilon with a delta. Charged before the records are looked at.
    columns : iterable, optional
        Names for the ledger's entry.
    random_state : int, optional
        For tests and benchmarks only: repeatable noise. The release **is not private**.

    Returns
    -------
    Release
        ``kind=program.name``: ``values[0]`` holds m integers; :func:`released_solution` reads them.

    Raises
    ------
    BudgetExceeded
        If the ledger does not have the budget left; it stays as it was.
    TypeError, ValueError
        As :func:`noise_plan`; before the charge.

    Notes
    -----
    Privacy
        *Sensitivity.* ``program.sensitivity + 2 program.distance``, in l2 norm, and the rounding to the grid, for
        ``program.adjacency``.

        *Guarantee.* The budget's: rho-zCDP, or (epsilon, delta)-DP by the exact formula for Gaussian noise.
        :mod:`pgmpy_dp.private.noise.fine_grid` has the proof. It holds if the program's attributes are true.

        *Source.* Chen et al. 2023, Lemma 4.1 and Lemma 3.12.

        *Side channels.* Nothing of how the solve went is shown. Its running time depends on the records.
    """
    if not isinstance(program, StableProgram):
        raise TypeError(f"program is a {type(program).__name__}; pass a StableProgram: see its attributes and methods")
    if not isinstance(records, PrivateData):
        raise TypeError(f"records is a {type(records).__name__}; pass private data, e.g. a PrivateGraph")
    if records.adjacency != program.adjacency:
        raise ValueError(
            f"the program's sensitivity is for adjacency={str(program.adjacency)!r}, and the records have "
            f"{str(records.adjacency)!r}; pass others, or derive it for theirs"
        )
    program.check(records)
    plan = noise_plan(program, budget)
    seed = seeded_generator(random_state)
    records.ledger.charge(
        plan.cost,
        what=f"the optimum of a convex program ({program.name}, {plan.size} numbers)",
        columns=columns,
        mechanism="discrete_gaussian",
        adjacency=program.adjacency,
        reproducible=seed is not None,
        unit=getattr(records, "unit", None),  # tables and graphs have none
    )
    exact = on_grid(certified_solution(program, records), plan, program.adjacency)
    return Release(
        kind=program.name,
        values=(with_noise(exact, plan, seed),),
        noise=(plan.noise,),
        public={
            **program.public(),
            "grid_exponent": plan.exponent,
            "sensitivity": program.sensitivity,
            "distance": program.distance,
            "budget": budget.guarantee.to_dict(),
        },
        adjacency=program.adjacency,
        guarantee=plan.cost,
        mechanism="discrete_gaussian",
        reproducible=seed is not None,
    )


def released_solution(release: Release) -> np.ndarray:
    """The noisy optimum, shape (m,), of a release of this learner; ValueError for another kind. Post-processing."""
    if "grid_exponent" not in release.public:
        raise ValueError(f"release has kind {release.kind!r}; pass one of a convex program")
    return np.ldexp(release.values[0].astype(float), int(release.public["grid_exponent"]))


def stable_set_sensitivity(alpha: float, kappa: float) -> float:
    """Bound on how far the optima x, x' of two programs are apart: ``||x - x'||^2 <= 12 alpha/kappa``.

    Parameters
    ----------
    alpha : float
        For neighbours with objectives f, f' and feasible sets K, K': every z in K has a z' in K', and every z' in K' a
        z in K, with ``abs(f(z) - f'(z')) <= alpha`` and ``||z - z'||^2 <= 4 alpha/kappa``.
    kappa : float
        Both objectives are kappa-strongly convex.

    Notes
    -----
    Chen et al. 2023, Lemma 4.1. With optima x of f and x' of f', let f'(x') <= f(x) (else exchange the two), and take
    the z in K for x'. Then ``kappa/2 ||z - x||^2 <= f(z) - f(x) <= f'(x') + alpha - f(x) <= alpha``, and
    ``||x - x'||^2 <= 2 ||x - z||^2 + 2 ||z - x'||^2 <= 4 alpha/kappa + 8 alpha/kappa``.

    Examples
    --------
    >>> stable_set_sensitivity(1.0, 12.0)
    1.0000000000000009
    """
    return math.sqrt(12.0 * alpha / kappa) * _UP


def stable_objective_sensitivity(gradient: float, kappa: float) -> float:
    """Bound ``gradient/kappa`` on the distance of the optima of two objectives on one convex feasible set.

    Parameters
    ----------
    gradient : float
        ``||grad f - grad f'||`` is at most this at every feasible point, in l2 norm.
    kappa : float
        One of the two objectives, at least, is kappa-strongly convex.

    Notes
    -----
    With optima x of f and x' of f', strong convexity of f gives
    ``kappa ||x - x'||^2 <= <grad f(x') - grad f(x), x' - x>``; optimality gives ``<grad f(x), x' - x> >= 0`` and
    ``<grad f'(x'), x - x'> >= 0``. Added up: ``kappa ||x - x'||^2 <= <grad f(x') - grad f'(x'), x' - x>``
    (Chaudhuri, Monteleoni and Sarwate 2011, Lemma 7).

    Examples
    --------
    >>> stable_objective_sensitivity(1.0, 2.0)
    0.5000000000000004
    """
    return gradient / kappa * _UP


def projection_sensitivity(moved: float, along: float | None = None) -> float:
    """Bound on how far the projections x, x' of two points y, y' on one closed convex set are apart.

    Parameters
    ----------
    moved : float
        ``||y - y'||`` is at most this.
    along : float, optional
        ``<x - x', y - y'>`` is at most this, for any x, x' in the set.

    Notes
    -----
    Projections are firmly nonexpansive: ``||x - x'||^2 <= <x - x', y - y'>``, hence ``||x - x'|| <= min(moved,
    sqrt(along))`` (Moreau 1965; Bauschke and Combettes 2017, Proposition 4.16).

    Examples
    --------
    >>> projection_sensitivity(1.0, along=0.25)
    0.5000000000000004
    """
    return (moved if along is None else min(moved, math.sqrt(along))) * _UP
