"""Centres of a mixture of spherical Gaussians by the membership program: Chen et al. (2023), Algorithm 6.5, degree 2.

The program says which records belong together; each record then has an estimate of its cluster's mean, which one other
record can hardly move, wherever the clusters are. A truncated Laplace test finds out whether the program linked nearly
all records; if it did, some of the estimates are drawn, noise is added, and cells of a randomly shifted grid in which
many of them fall are looked for. Proof and constants: ``mixture_sdp.md``; their sizes:
:func:`~pgmpy_dp.private.learners.mixture_sdp_plan.required_records`.

It is here to be compared with. Its noise lets it find anything from some 10^21 records on, a program over n records has
n^2 unknowns, and so :func:`run` refuses. ``learners/mixture.py`` has the same skeleton and works from thousands.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

from pgmpy_dp.private.data.subject import require_data_and_budget
from pgmpy_dp.private.data.vector_sums import require_single_records
from pgmpy_dp.private.data.vectors import PrivateVectors, vector_rows
from pgmpy_dp.private.guarantee import ApproxDP, checked_number
from pgmpy_dp.private.learners.certificates import CertifiedPoint
from pgmpy_dp.private.learners.convex_program import certified_solution
from pgmpy_dp.private.learners.mixture_plan import MixtureSettings
from pgmpy_dp.private.learners.mixture_sdp_plan import (
    CentrePlan,
    ProgramPlan,
    budget_parts,
    plan_program,
    required_records,
    unit_of,
)
from pgmpy_dp.private.ledger import Budget
from pgmpy_dp.private.mathematics.membership import MembershipProblem, linked_means, public_reach
from pgmpy_dp.private.noise import samplers
from pgmpy_dp.private.noise.additive import LARGEST_SCALE
from pgmpy_dp.private.noise.histogram import marked_cells
from pgmpy_dp.private.noise.subsampling import poisson_sample
from pgmpy_dp.private.noise.truncated_laplace import add_truncated_laplace, truncated_laplace
from pgmpy_dp.private.sensitive import Noise, Release
from pgmpy_dp.schema import encode_label
from pgmpy_dp.solvers.membership_program import membership_program

__all__ = ["MAX_RECORDS", "PROGRAM_STATUSES", "MembershipProgram", "ProgramSettings", "required_records", "run"]

PROGRAM_STATUSES = (
    "found",
    "number of records outside what the program can do",
    "the program does not link enough records",
    "no bound on the means at this number of records",
    "fewer stable cells than components",
)
"""Outcomes by their number in a release."""

MAX_RECORDS = 4096
"""Of the program: 134 MB a matrix, some minutes a hundred steps."""

_LARGEST = 2.0**30  # records are clipped to so many scales
_MAX_COLUMNS = 256
_SOLVED = 0.99  # of the tolerance: what the solver's own arithmetic may differ by from that of the certificate


@dataclass(frozen=True)
class ProgramSettings:
    """What to learn, fixed before the records are looked at.

    Parameters
    ----------
    n_components : int
        k, at least 1; about equally large ones.
    separation : float
        Smallest distance of two centres, public.
    scale : float
        sigma, the standard deviation of a component's coordinates, public.
    slack : float
        alpha: how much more than sigma^2 the records of a cluster may vary, on average over the clusters.
    demonstration : bool
        Run although the guarantee leaves no accuracy. What is released is as private as ever, and next to nothing.
    device : str, optional
        A device of torch for the program. Default: NumPy.
    random_state : int, optional
        For tests and benchmarks only: repeatable noise. The release **is not private**.

    Raises
    ------
    TypeError, ValueError
        For arguments that are wrong whatever the data.
    """

    n_components: int
    separation: float
    scale: float
    slack: float = 0.5
    demonstration: bool = False
    device: str | None = None
    random_state: int | None = None

    def __post_init__(self) -> None:
        # The same arguments, checked in one place.
        shared = MixtureSettings(
            self.n_components, self.separation, self.scale, device=self.device, random_state=self.random_state
        )
        for name in ("n_components", "separation", "scale", "random_state"):
            object.__setattr__(self, name, getattr(shared, name))
        if self.separation is None or self.scale is None:
            raise TypeError("separation and scale must be public numbers for method 'sdp'; pass both")
        slack = checked_number("slack", self.slack, positive=False)
        if slack > 100.0:
            raise ValueError(f"slack={slack!r} is too large; pass at most 100")
        object.__setattr__(self, "slack", slack)
        if not isinstance(self.demonstration, bool):
            raise TypeError(f"demonstration={self.demonstration!r} is not True or False")


def run(data: PrivateVectors, settings: ProgramSettings, budget: Budget) -> Release:
    """Release k centres, or that they were not found; refuse where noise would bury them.

    Parameters
    ----------
    data : PrivateVectors
        Of single records.
    settings : ProgramSettings
    budget : Budget
        Of (epsilon, delta). A fiftieth of epsilon and a tenth of delta pay for a noisy number of records where none is
        public; the rest is charged only if the program is then run.

    Returns
    -------
    Release
        ``kind="mixture"``, as :func:`pgmpy_dp.private.learners.mixture.run` makes them and ``mixture_estimate`` reads
        them; the outcomes are `PROGRAM_STATUSES`. What else was released is named in ``public["values"]``:
        "n_records", never below the number of records; "unlinked", what the test looked at, never below the sum over
        the records of the part of n/k that they are not linked to.

    Raises
    ------
    BudgetExceeded
        If the ledger does not have the whole budget left; it stays as it was.
    TypeError, ValueError
        For a budget without a delta, data with a `unit`, too many columns; for a public number of records that is too
        large for the program or, without ``demonstration``, too small for the noise. All depend on public arguments
        only and come before the charge.

    Notes
    -----
    Privacy
        *Adjacency.* ``add_remove`` and ``replace_one``. A public number of records must be true, as elsewhere.

        *Sensitivity.* ``2 sqrt(2) sqrt(n/k)`` of the program's optimum in Frobenius norm, and twice the certified
        distance at which the solver stops. It stops nowhere else.

        *Guarantee.* (epsilon, delta)-DP: the parts of the plan add up to the budget, ``mixture_sdp.md`` has the proof.

        *Source.* Chen, Cohen-Addad, d'Orsi, Epasto, Imola, Steurer and Tiegel 2023, Algorithm 6.5 and Lemma 6.8, with
        constants of its own.

        *Side channels.* Running time depends on the records, that of the solver above all: it goes on until its
        distance from the optimum is certified, so that no failure can be seen. The projection, the shift of the grid
        and nothing else are drawn in floating point; they are public and independent of the records.

    Examples
    --------
    >>> data = PrivateVectors(np.zeros((100, 2)), adjacency="replace_one", n_records=100, ledger=Budget(1.0, 1e-6))
    >>> run(data, ProgramSettings(2, separation=32.0, scale=1.0), Budget(1.0, 1e-6))
    Traceback (most recent call last):
        ...
    ValueError: n_records=100 is too few for method 'sdp': with 2 components in 2 columns at a separation of 32 scales
    and (1, 1e-06)-DP its noise buries the centres below about ... records, and the program has room for 4096. ...
    """
    require_data_and_budget(data, PrivateVectors, budget, example="Budget(epsilon=..., delta=...)")
    _require_possible(data, settings, budget)
    assert budget.epsilon is not None
    seed = samplers.seeded_generator(settings.random_state)
    adjacency = data.adjacency
    data.ledger.check(ApproxDP(budget.epsilon, budget.delta), adjacency=adjacency)

    def charge(epsilon: float, delta: float, what: str) -> ApproxDP:
        cost = ApproxDP(epsilon, delta)
        data.ledger.charge(
            cost,
            what=what,
            columns=data.columns,
            mechanism="mixture_sdp",
            adjacency=adjacency,
            reproducible=seed is not None,
        )
        return cost

    rows, _ = vector_rows(data)
    extra: dict[str, tuple[np.ndarray, Noise | None]] = {}
    count, guarantee = data.n_records, ApproxDP(budget.epsilon, budget.delta)
    if count is None:
        parts = budget_parts(budget.epsilon, budget.delta)
        guarantee = charge(parts.epsilon["count"], parts.delta, "a number of records")
        noise = truncated_laplace(1, guarantee.epsilon, guarantee.delta)
        noisy = add_truncated_laplace(np.array([len(rows)]), noise, seed=seed)
        extra["n_records"] = (noisy, None)
        count = int(noisy[0])
    plan = _plan(count, data, settings, budget)
    found = _Found(1)
    if settings.n_components <= count <= MAX_RECORDS and (plan.accurate or settings.demonstration):
        first = guarantee if extra else None
        guarantee = ApproxDP(budget.epsilon, budget.delta)
        charge(
            budget.epsilon - (first.epsilon if first else 0.0),
            budget.delta - (first.delta if first else 0.0),
            f"centres of {settings.n_components} components by a program over the records",
        )
        unlinked, estimates = _linked(rows, settings, plan)
        noisy = add_truncated_laplace(np.array([unlinked]), plan.test, seed=seed)
        extra["unlinked"] = (noisy, None)
        found = _Found(2) if int(noisy[0]) > plan.limit else _centres(estimates, settings, plan, seed)
    empty = (np.zeros((0, len(data.columns)), dtype=np.int64), None)
    values = {
        "means": found.means or empty,
        "counts": found.counts or (np.zeros(0, dtype=np.int64), None),
        "status": (np.array([found.status]), None),
        **extra,
    }
    return Release(
        kind="mixture",
        values=tuple(value for value, _ in values.values()),
        noise=tuple(noise for _, noise in values.values()),
        public={
            "values": list(values),
            "columns": [encode_label(name) for name in data.columns],
            "n_records": data.n_records,
            "n_components": settings.n_components,
            "granularity": unit_of(settings.scale),
            "separation": settings.separation,
            "scale": settings.scale,
            "status": PROGRAM_STATUSES[found.status],
            "settings": {
                "method": "sdp",
                "slack": settings.slack,
                "demonstration": settings.demonstration,
                "plan": plan.to_dict(),
                "budget": budget.guarantee.to_dict(),
            },
        },
        adjacency=adjacency,
        guarantee=guarantee,
        mechanism="mixture_sdp",
        reproducible=seed is not None,
    )


@dataclass(frozen=True)
class _Found:
    """An outcome: its number, and centres and counts with their noise where they were found."""

    status: int
    means: tuple[np.ndarray, Noise] | None = None
    counts: tuple[np.ndarray, Noise] | None = None


def _require_possible(data: PrivateVectors, settings: ProgramSettings, budget: Budget) -> None:
    """Refuse what public numbers refuse."""
    if budget.epsilon is None or not budget.delta:
        raise ValueError(
            f"the budget is {budget}: a truncated test and a histogram of infinitely many cells need an epsilon and a "
            "delta above 0; pass both"
        )
    require_single_records(data)
    d, k, n = len(data.columns), settings.n_components, data.n_records
    if d > _MAX_COLUMNS:
        raise ValueError(f"data has {d} columns; method 'sdp' takes at most {_MAX_COLUMNS}")
    if n is not None and n > MAX_RECORDS:
        raise ValueError(
            f"n_records={n!r} is too large for method 'sdp': its program has n_records**2 unknowns, and room for "
            f"{MAX_RECORDS} records; use method 'blocks'"
        )
    largest = _plan(MAX_RECORDS if n is None else max(n, k), data, settings, budget).test.scale
    if max(largest, 1.0 / budget_parts(budget.epsilon, budget.delta).epsilon["count"]) > LARGEST_SCALE:
        raise ValueError(f"the budget {budget} needs noise beyond {LARGEST_SCALE:.3g}; raise epsilon")
    if n is None:
        return
    if n < k:
        raise ValueError(f"n_records={n!r} is below n_components={k!r}; method 'sdp' needs a record for each")
    if not settings.demonstration and not _plan(n, data, settings, budget).accurate:
        ratio = settings.separation / settings.scale
        least = required_records(k, d, ratio, budget.epsilon, budget.delta, slack=settings.slack)
        raise ValueError(
            f"n_records={n!r} is too few for method 'sdp': with {k} components in {d} columns at a separation of "
            f"{ratio:g} scales and {budget.guarantee} its noise buries the centres below about {least:.3g} records, "
            f"and the program has room for {MAX_RECORDS}. Use method 'blocks', or demonstration=True to see it find "
            "nothing"
        )


def _plan(count: int, data: PrivateVectors, settings: ProgramSettings, budget: Budget) -> ProgramPlan:
    assert budget.epsilon is not None
    return plan_program(
        max(count, settings.n_components),
        settings.n_components,
        len(data.columns),
        settings.separation / settings.scale,
        settings.slack,
        (budget.epsilon, budget.delta),
        noisy_count=data.n_records is None,
        unit=unit_of(settings.scale) / settings.scale,
    )


@dataclass(frozen=True)
class MembershipProgram:
    """The membership program as a certified one, for :mod:`pgmpy_dp.private.learners.convex_program`.

    Its records are the points, shape (n, d); its solution is W, row by row. Between neighbours W is padded with zeros
    to one size, and moves by at most `sensitivity` in Frobenius norm (``mixture_sdp.md``). W is not released itself.

    Parameters
    ----------
    settings : ProgramSettings
    plan : ProgramPlan
        From public or noisy numbers.
    """

    settings: ProgramSettings
    plan: ProgramPlan

    @property
    def sensitivity(self) -> float:
        """Of the exact optimum."""
        return self.plan.sensitivity - 2.0 * self.plan.tolerance

    @property
    def distance(self) -> float:
        """Within which a solution is used."""
        return self.plan.tolerance

    def solve(self, records: np.ndarray) -> CertifiedPoint:
        """Dual ascent, with the solver's usual limit on iterations."""
        return self._solved(records, 5000)

    def fallback(self, records: np.ndarray) -> CertifiedPoint:
        """Dual ascent until the certificate is there: an end by a limit would be an outcome of the records."""
        for k in itertools.count(1):
            point = self._solved(records, 5000 << min(k, 10))
            if point.distance <= self.distance:
                break
        return point

    def _solved(self, points: np.ndarray, max_iter: int) -> CertifiedPoint:
        """The solver's multipliers, certified here: what else it says of them is not looked at."""
        settings, plan = self.settings, self.plan
        if not len(points):
            return CertifiedPoint(np.zeros(0), 0.0)
        reach = public_reach(points.shape[1], plan.count, settings.scale)
        problem = MembershipProblem.of(points, settings.n_components, settings.scale, settings.slack, plan.count, reach)
        try:
            multipliers = membership_program(
                points.copy(),
                settings.n_components,
                settings.scale,
                slack=settings.slack,
                count=plan.count,
                reach=reach,
                tolerance=_SOLVED * plan.tolerance,
                max_iter=max_iter,
                device=settings.device,
            ).multipliers
        except Exception:  # it would tell of the records
            multipliers = None
        found = problem.certified(multipliers)
        return CertifiedPoint(found.weights.ravel(), found.distance)


def _linked(rows: np.ndarray, settings: ProgramSettings, plan: ProgramPlan) -> tuple[int, np.ndarray]:
    """How many records' worth of links are missing, rounded up, and each record's mean of those it is linked to."""
    largest = _LARGEST * settings.scale
    points = np.clip(rows, -largest, largest)
    weights = certified_solution(MembershipProgram(settings, plan), points).reshape(len(points), len(points))
    estimates, sizes = linked_means(weights, points)
    full = plan.count / settings.n_components
    return math.ceil(math.fsum(1.0 - np.minimum(sizes / full, 1.0))), estimates


def _centres(
    estimates: np.ndarray, settings: ProgramSettings, plan: ProgramPlan, seed: np.random.Generator | None
) -> _Found:
    """The steps after the test."""
    if plan.centres is None:
        return _Found(3)
    drawn = poisson_sample(len(estimates), plan.centres.rate, seed=seed)
    return noisy_centres(estimates[drawn] / unit_of(settings.scale), settings.n_components, plan.centres, seed)


def noisy_centres(
    estimates: np.ndarray, n_components: int, plan: CentrePlan, seed: np.random.Generator | None = None
) -> _Found:
    """Centres of the cells that hold most estimates, from estimates that were drawn already.

    Parameters
    ----------
    estimates : ndarray, shape (r, d)
        In grid units.
    n_components : int
        k.
    plan : CentrePlan
    seed : numpy.random.Generator, optional
        For tests and benchmarks only: the result is then not private.
    """
    noisy = samplers.discrete_gaussian(np.rint(estimates).astype(np.int64), plan.row_scale, seed=seed)
    public = np.random.default_rng() if seed is None else seed
    d = estimates.shape[1]
    shift = public.integers(plan.width, size=plan.dimension)
    if plan.dimension == d:
        keys = (noisy + shift) // plan.width
    else:
        # Row by row, so that a row's cell is a function of that row alone; see "Projection" in the proof.
        projection = public.normal(size=(d, plan.dimension)) / math.sqrt(plan.dimension)
        places = [np.floor((row @ projection + shift) / plan.width) for row in noisy.astype(np.float64)]
        keys = np.array(places).reshape(len(noisy), plan.dimension).astype(np.int64)
    cells, counts = marked_cells(keys, np.arange(len(keys)))
    weights = samplers.discrete_laplace(counts, plan.cell_scale, seed=seed)
    stable = np.flatnonzero(weights >= plan.threshold)
    if len(stable) < n_components:
        return _Found(4)
    chosen = stable[np.argsort(-weights[stable], kind="stable")[:n_components]]
    means = np.empty((n_components, d), dtype=np.int64)
    for row, cell in zip(means, cells[chosen], strict=True):
        inside = noisy[(keys == cell).all(axis=1)]
        # The mean of integers, rounded, in integers: from the first of them, so that the sum does not overflow.
        row[:] = inside[0] + (2 * (inside - inside[0]).sum(axis=0) + len(inside)) // (2 * len(inside))
    means = samplers.discrete_gaussian(means, plan.mean_scale, seed=seed)
    return _Found(
        0,
        (means, Noise("discrete_gaussian", plan.mean_scale)),
        (weights[chosen], Noise("discrete_laplace", plan.cell_scale)),
    )
