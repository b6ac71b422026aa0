"""Maximum likelihood of a log-linear model from the marginals of its tables; naive MLE from noisy ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.exact_or_loopy import (
    Inference,
    InferenceEngine,
    choose_inference,
    engine_status,
    inference_of,
)
from pgmpy_dp.inference.junction_tree import DEFAULT_MEMORY_LIMIT
from pgmpy_dp.inference.lbfgs import Solution, minimize_lbfgs
from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.inference.loopy_belief_propagation import LoopyBeliefPropagation, LoopyFailed, LoopySettings
from pgmpy_dp.learning.heavy_tailed_prior import posterior_variances, table_evidence
from pgmpy_dp.learning.interaction_split import InteractionSplit, free_share
from pgmpy_dp.learning.level_engine import NO_LEVELS, LevelEngine, Levels, leaf_tables
from pgmpy_dp.learning.noisy_marginals import NoisyMarginals
from pgmpy_dp.learning.structural_zeros import Box, ObeyingEngine, engine_within

_LADDER = (0.0, 0.5, 1.0)
"""Counting numbers that are tried in turn, from Bethe's to tree-reweighting."""

_GIVE_UP_AFTER = 10
"""Failed calibrations after which the next counting numbers are tried."""

MOST_TO_CHOOSE_L2 = 15
"""Iterations after which a fit says enough of its cells to choose the penalty."""

_HARDLY = 1e-8
"""A penalty below this one over the number of records hardly is one: the optimum may be as good as at infinity, where
steps in units of a record's deviation lead sooner."""

STALLED = 0.05
"""Gradient of the mean log-likelihood, a difference of probabilities, with which no optimiser should be content."""


@dataclass(frozen=True)
class Fit:
    """A fitted model and how the fit ended.

    Attributes
    ----------
    model : LogLinearModel
    converged : bool
        Whether the optimiser reached its tolerance, and loopy inference its own; an early-stopped method says so in
        `status`.
    status : str
    n_iter : int
    objective : float
        Final value of what was minimised.
    details : dict
        The choices of the method on the way (penalty, scales, path), by name. "inference" is an
        `InferenceStatus`: which inference was used and how it ended. Of a model that obeys rules, or whose tables name
        levels, "theta" has finite log-potentials of the released tables, without the rules.
    """

    model: LogLinearModel
    converged: bool
    status: str
    n_iter: int
    objective: float
    details: dict[str, Any] = field(default_factory=dict)


def maximize_likelihood(
    engine: InferenceEngine,
    marginals: np.ndarray,
    *,
    l2: float | np.ndarray,
    start: np.ndarray,
    max_iter: int,
    tol: float,
    callback: Callable[[], None] | None = None,
    **options: Any,
) -> Solution:
    """Minimise A(theta) - theta . marginals + (l2/2) |theta|^2 on a given inference engine, l2 of each cell or of all.

    The gradient is mu(theta) - marginals + l2 theta. `marginals` need not be consistent or
    non-negative when l2 > 0. Further `options` are those of `minimize_lbfgs`.
    """

    def objective(theta: np.ndarray) -> tuple[float, np.ndarray]:
        mu, log_partition = engine.calibrate(theta)
        penalised = l2 * theta
        return log_partition - theta @ marginals + 0.5 * (theta @ penalised), mu - marginals + penalised

    return minimize_lbfgs(objective, start, max_iter=max_iter, gradient_tol=tol, callback=callback, **options)


def maximum_likelihood(
    cliques: Cliques,
    counts: np.ndarray,
    *,
    l2: float = 0.0,
    tol: float = 1e-6,
    memory_limit: int = DEFAULT_MEMORY_LIMIT,
    inference: Inference = "exact",
) -> Fit:
    """Maximum-likelihood parameters from exact counts or proportions (not private by itself).

    Parameters
    ----------
    cliques : Cliques
        The model.
    counts : ndarray of shape (n_cells,)
        Sufficient statistics; each table is divided by its own sum.
    l2 : float
        Penalty (l2/2)|theta|^2 on the mean log-likelihood. With 0 and empty cells the maximum lies at
        infinity and is approached until `tol` is met.
    tol : float
        Largest difference between fitted and given marginal probabilities (plus penalty gradient).
    memory_limit : int
        Bytes that inference may allocate.
    inference : {"exact", "loopy", "auto"} or LoopySettings
        Loopy belief propagation replaces A and its gradient by an approximation; "auto" takes it where exact
        inference does not fit in `memory_limit`. Settings are used as they are; "loopy" and "auto" try counting
        numbers from Bethe's to tree-reweighting until a fit is sound, see `first_sound_fit`.

    Returns
    -------
    Fit

    Raises
    ------
    ValueError
        If a table is negative or sums to 0.

    Examples
    --------
    >>> import numpy as np
    >>> cliques = Cliques(("a", "b"), (2, 2), (("a", "b"),))
    >>> fit = maximum_likelihood(cliques, np.array([1.0, 2.0, 3.0, 4.0]), tol=1e-8)
    >>> fit.model.marginals().round(4)
    array([0.1, 0.2, 0.3, 0.4])
    """
    tables = cliques.split(np.asarray(counts, dtype=np.float64))
    if any(table.min() < 0 or table.sum() <= 0 for table in tables):
        raise ValueError("counts must be non-negative with a positive sum in each table; for noisy ones see naive_mle")
    marginals = np.concatenate([(table / table.sum()).ravel() for table in tables])
    return _penalised(
        cliques,
        marginals,
        l2,
        max_iter=1000,
        tol=tol,
        memory_limit=memory_limit,
        inference=inference,
    )


def noise_aware_penalty(noisy: NoisyMarginals) -> float:
    """The penalty at which prior and noise balance: lambda* = (V + N m) / (N^2 m).

    V is the noise variance of a cell (2 b^2 for Laplace noise, averaged over cells), N the
    number of records, m the mean cell probability (#tables / #cells): N m is the sampling
    variance of a mean cell.
    """
    n = noisy.n_records
    mean_cell = noisy.cliques.n_cliques / noisy.cliques.n_cells
    variance = float(noisy.cell_variance.mean())
    return (variance + n * mean_cell) / (n**2 * mean_cell)


def least_risk_penalty(noisy: NoisyMarginals, theta: np.ndarray, mu: np.ndarray) -> float:
    """The penalty with the least expected divergence, estimated at a first fit.

    To second order a cell of probability p is fitted by itself: its parameter theta comes out as (p theta + error)/(p +
    lambda), where the error has the variance s = V/N^2 + p/N, in the free directions of its table. That costs p
    (lambda^2 theta^2 + s)/(p + lambda)^2, and the sum over all cells is least where lambda is sum(p s w)/sum(p^2
    theta^2 w) with w = (p + lambda)^-3. If p = m and theta^2 = 1 everywhere, that is `noise_aware_penalty`. Where
    variables depend on one another most records are in few cells, and it is more: the other cells bear less noise.

    For theta^2 stands its posterior mean. The prior variances t of interactions (of the main effect, in a table of one
    variable) are learned from the noisy tables as those of `CollectiveMAP`, by `posterior_variances`.

    Parameters
    ----------
    noisy : NoisyMarginals
        With noise.
    theta, mu : ndarray of shape (n_cells,)
        A first fit and its marginals.
    """
    cliques, n = noisy.cliques, noisy.n_records
    centred = np.concatenate([table.ravel() - table.mean() for table in cliques.split(theta)])
    single = cliques.spread(np.array([len(scope) == 1 for scope in cliques.indices]))
    effect = np.where(single, centred, InteractionSplit(cliques).interaction(theta))
    t = cliques.spread(posterior_variances(table_evidence(noisy, mu, effect)))
    free = cliques.spread(np.array([free_share(shape) for shape in cliques.shapes]))
    s = noisy.cell_variance / n**2 + mu / n
    square = centred**2 + free / (1 / t + mu**2 / s)
    noise = s * (1 - 1 / cliques.spread(np.array(cliques.sizes, dtype=float)))
    penalty = noise_aware_penalty(noisy)
    for _ in range(50):  # the right side falls as the penalty grows: half of the way, or it could go to and fro
        weight = mu / (mu + penalty) ** 3
        penalty = math.sqrt(penalty * float(weight @ noise) / float(weight @ (mu * square)))
    return penalty


def table_penalties(noisy: NoisyMarginals) -> np.ndarray:
    """`noise_aware_penalty` of each table by itself, for each of its cells; shape (n_cells,)."""
    n, sizes = noisy.n_records, noisy.cliques.spread(np.array(noisy.cliques.sizes, dtype=float))
    return noisy.cell_variance * sizes / n**2 + 1 / n


def record_deviation(noisy: NoisyMarginals, proportions: np.ndarray, l2: float | np.ndarray) -> np.ndarray:
    """About the square root of the curvature of a penalised likelihood of one record, shape (n_cells,).

    Of a cell of probability p it is sqrt(p (1 - p) + l2), where p may be as large as the noise if it is below that.
    `proportions` are the probabilities, projected.
    """
    return np.sqrt(proportions * (1 - proportions) + np.sqrt(noisy.cell_variance) / noisy.n_records + l2)


def naive_mle(
    noisy: NoisyMarginals,
    *,
    l2: float | None = None,
    project: bool = True,
    max_iter: int = 1000,
    tol: float = 1e-5,
    memory_limit: int = DEFAULT_MEMORY_LIMIT,
    inference: Inference = "exact",
    callback: Callable[[], None] | None = None,
) -> Fit:
    """Maximum likelihood with the noisy tables taken as if they were exact.

    Parameters
    ----------
    noisy : NoisyMarginals
        Released tables.
    l2 : float, optional
        Penalty (l2/2)|theta|^2 on the mean log-likelihood. Default: `least_risk_penalty`, by a short fit with
        `noise_aware_penalty`; the latter where the tables carry no noise.
    project : bool
        Whether to project each table on the simplex first, as the paper does.
    tol : float
        Largest difference between fitted and given marginal probabilities (plus penalty gradient), each over its
        standard deviation in one record, penalty and noise included (`record_deviation`); with hardly a penalty the
        largest difference itself.
    max_iter, memory_limit, inference, callback
        As for `maximum_likelihood`.

    Returns
    -------
    Fit
        ``details["l2"]`` is the penalty that was used.

    Notes
    -----
    Bernstein, McKenna, Sun, Sheldon, Hay and Miklau (2017), section 3.1. The paper tunes the
    penalty by hand; the default needs no tuning and depends on public numbers and the release alone.

    Examples
    --------
    >>> import numpy as np
    >>> cliques = Cliques(("a",), (2,), (("a",),))
    >>> noisy = NoisyMarginals(cliques, np.array([31.0, 72.0]), "laplace", np.array([1.0]), total=100)
    >>> naive_mle(noisy).model.marginals().round(1)
    array([0.3, 0.7])
    """
    if l2 is not None and (not np.isfinite(l2) or l2 < 0 or (l2 == 0 and not project)):
        raise ValueError(f"l2 must be non-negative, and positive without projection, got {l2!r}")
    return _penalised(
        noisy.cliques,
        noisy.projected_proportions() if project else noisy.proportions,
        l2,
        noisy=noisy,
        max_iter=max_iter,
        tol=tol,
        memory_limit=memory_limit,
        inference=inference,
        callback=callback,
    )


def _penalised(
    cliques: Cliques,
    marginals: np.ndarray,
    l2: float | None,
    *,
    max_iter: int,
    tol: float,
    memory_limit: int,
    inference: Inference,
    callback: Callable[[], None] | None = None,
    noisy: NoisyMarginals | None = None,
) -> Fit:
    """The fit with the penalty `l2`; None chooses one for noisy tables."""
    impossible, levels = ((), NO_LEVELS) if noisy is None else (noisy.impossible, noisy.levels)

    def fit(engine: InferenceEngine) -> Fit:
        target = _on_what_is_possible(engine, marginals) if impossible else marginals

        def solve(l2: float, start: np.ndarray, max_iter: int) -> Solution:
            options: dict[str, Any] = {"start": start, "max_iter": max_iter, "tol": tol, "callback": callback}
            if noisy is not None and l2 > _HARDLY / noisy.n_records:
                options |= {"memory": 20, "scale": 1 / record_deviation(noisy, noisy.projected_proportions(), l2)}
            return maximize_likelihood(engine, target, l2=l2, **options)

        start, n_first = np.zeros(cliques.n_cells), 0
        penalty = noise_aware_penalty(noisy) if l2 is None and noisy is not None else l2 or 0.0
        if l2 is None and noisy is not None and noisy.noise != "none":
            first = solve(penalty, start, MOST_TO_CHOOSE_L2)
            start, n_first = first.x, first.n_iter
            penalty = least_risk_penalty(noisy, start, engine.calibrate(start)[0])
        solution = solve(penalty, start, max_iter)
        norm = float(np.abs(engine.calibrate(solution.x)[0] - target + penalty * solution.x).max(initial=0.0))
        return finished_fit(
            engine,
            solution.x,
            memory_limit,
            converged=solution.converged,
            status=solution.status,
            n_iter=n_first + solution.n_iter,
            objective=solution.objective,
            details={"l2": penalty, "gradient_norm": norm},
            stalled=solution.n_iter < max_iter and norm > max(STALLED, tol) and solution.gradient_norm > tol,
        )

    return first_sound_fit(cliques, inference, memory_limit, fit, impossible, levels)


def _on_what_is_possible(engine: InferenceEngine, marginals: np.ndarray) -> np.ndarray:
    """Set marginals to 0 where rules leave no record: they may imply more than the cells of their boxes.

    No parameter says anything of such a cell, and without a penalty its share would pull the others' without end.
    """
    cliques = engine.cliques
    possible = engine.calibrate(np.zeros(cliques.n_cells))[0] > 0
    if np.all(possible | (marginals == 0)):
        return marginals
    tables = cliques.split(np.where(possible, marginals, 0.0))
    sums = [
        float(old.sum()) / max(float(new.sum()), 1e-9)
        for old, new in zip(cliques.split(marginals), tables, strict=True)
    ]
    return cliques.join([table * ratio for table, ratio in zip(tables, sums, strict=True)])


def first_sound_fit(
    cliques: Cliques,
    inference: Inference,
    memory_limit: int,
    fit: Callable[[InferenceEngine], Fit],
    impossible: Sequence[Box] = (),
    levels: Levels = NO_LEVELS,
) -> Fit:
    """Fit with the requested inference; where the counting numbers are left open, with the first sound ones.

    Bethe's counting numbers are the most accurate where interactions are weak or the graph is sparse. Elsewhere the
    maximum of their likelihood may lie where no fixed point of belief propagation is stable (Pitkow, Ahmadian and
    Miller, 2011): calibrations fail, or the optimiser stops in a kink. Then half-way to tree-reweighting is tried, and
    last tree-reweighting itself, which is convex; its fit is returned however it ended.

    Parameters
    ----------
    cliques : Cliques
    inference : {"exact", "loopy", "auto"} or LoopySettings
    memory_limit : int
    fit : callable
        Takes an engine, returns a fit made by `finished_fit`.
    impossible : sequence of mapping of variable to set of int
        Boxes that the model obeys while it is fitted; see `pgmpy_dp.learning.structural_zeros`.
    levels : mapping of level to (variable, ndarray of int), optional
        The levels of variables that the tables name.

    Raises
    ------
    InferenceTooLarge
        If inference would need more than `memory_limit` bytes.
    """
    chosen = choose_inference(leaf_tables(cliques, levels), inference, memory_limit)
    if chosen == "exact" or isinstance(inference, LoopySettings):
        return fit(engine_within(cliques, impossible, chosen, memory_limit, levels=levels))

    def loopy(counting: float, give_up_after: int | None) -> InferenceEngine:
        settings = replace(chosen, counting=counting)
        return engine_within(
            cliques,
            impossible,
            make=lambda layout: LoopyBeliefPropagation(layout, settings, memory_limit, give_up_after),
            levels=levels,
        )

    for counting in _LADDER[:-1]:
        engine = loopy(counting, _GIVE_UP_AFTER)
        try:
            result = fit(engine)
        except LoopyFailed:
            continue
        if result.details["inference"].sound:
            return result
    return fit(loopy(_LADDER[-1], None))


def finished_fit(
    engine: InferenceEngine,
    theta: np.ndarray,
    memory_limit: int,
    *,
    converged: bool,
    status: str,
    n_iter: int,
    objective: float,
    details: dict[str, Any],
    stalled: bool = False,
) -> Fit:
    """The fit at theta, with how inference ended.

    A calibration within a fit starts from the one before; the status is that of the returned model, which starts from
    nothing, with the counts of the whole fit. `stalled` says that an optimiser stopped where its gradient is large, and
    is heeded for loopy inference only.
    """
    if isinstance(engine, ObeyingEngine | LevelEngine):
        model, engine, details = engine.model(theta, memory_limit), engine.engine, details | {"theta": theta}
    else:
        model = LogLinearModel(engine.cliques, theta, memory_limit, inference_of(engine))
    inference, counts = model.inference_status, engine_status(engine)
    if inference.method == "loopy":
        inference = replace(
            inference,
            n_calibrations=counts.n_calibrations,
            n_failures=counts.n_failures,
            n_response_failures=counts.n_response_failures,
            stalled=stalled,
        )
        status = f"{status}; {inference}"
        converged = converged and inference.converged and not stalled
    return Fit(model, converged, status, n_iter, objective, details | {"inference": inference})
