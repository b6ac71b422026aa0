"""The paper's expectation-maximisation for collective graphical models: the mode of the exact tables, and no prior.

The exact tables n are latent. The E-step is approximate MAP inference of n (Proposition 5 of the paper,
Stirling's approximation of the number of data sets with tables n)::

    n* = argmax over N times the marginal polytope of  theta_t . n + H(n) + log p(y | n)

and the M-step is maximum likelihood of theta given n*. Two facts shape what is here (proofs in
published_em.md). The E-step's optimum has the form n* = N mu(theta') with theta' within the
subgradient of log p(y | n) of theta_t, so theta' is at once the M-step's answer, and both steps are one convex
problem in theta'. And the limit of the iterations is the projection of y on the marginal polytope, which
overfits: stopping early is the only regulariser. Where to stop is read off an estimate of the divergence from the
truth, which the release alone gives (`_RiskEstimate`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pgmpy_dp.inference.exact_or_loopy import Inference, InferenceEngine
from pgmpy_dp.inference.junction_tree import DEFAULT_MEMORY_LIMIT
from pgmpy_dp.inference.lbfgs import Solution, minimize_lbfgs
from pgmpy_dp.learning.interaction_split import InteractionSplit
from pgmpy_dp.learning.maximum_likelihood import (
    STALLED,
    Fit,
    finished_fit,
    first_sound_fit,
    maximize_likelihood,
)
from pgmpy_dp.learning.noisy_marginals import NoisyMarginals
from pgmpy_dp.shown import quantity

_DUAL_ITERATIONS, _M_ITERATIONS = 30, 50
"""Iterations of L-BFGS in one "dual" step, and in the M-step after "nlbp", at most."""

_FIRST, _REACH = 0.015, 6.0
"""How far the default steps let a log-potential move in the first iteration, and in all together."""

_CAUTION = 4.0
"""Standard deviations by which a step into pure noise would have to look better than none."""

_PATIENCE = (1.5, 0.1)
"""The estimated risk has turned when theta has moved this many times as far as at the minimum, and this much more."""

_AT_BOUND = 0.99
"""Share of the largest move from which on a cell counts as still pulled by its whole slope."""

_N_ITER, _MAX_ITER = 40, 10_000
"""Iterations of "dual" by default, and of "nlbp" at most."""

_DAMPING, _LEAST_DAMPING, _TINY = 0.1, 0.02, 1e-6
"""NLBP's alpha over b^2 / n, and at least: signs of errors bound each step, and so need no smaller one."""

_SETTLED, _STILL, _MAX_PROPAGATIONS = 0.02, 1e-9, 2000
"""Share of an E-step's first change at which NLBP ends, by default and with a fixed number of propagations; at most."""


def published_em(
    noisy: NoisyMarginals,
    *,
    e_step: str = "dual",
    n_iter: int | None = None,
    step: float | None = None,
    stop: str | None = "risk",
    damping: float | None = None,
    n_propagations: int | None = None,
    keep_path: bool = False,
    memory_limit: int = DEFAULT_MEMORY_LIMIT,
    inference: Inference = "exact",
    callback: Callable[[], None] | None = None,
) -> Fit:
    """Fit a log-linear model to noisy tables by the expectation-maximisation of Bernstein et al. (2017).

    For comparison with the paper: :func:`pgmpy_dp.learning.expectation_maximisation.collective_em` is more
    accurate.

    Parameters
    ----------
    noisy : NoisyMarginals
        Released tables with their noise.
    e_step : {"dual", "nlbp"}
        "dual" solves E- and M-step exactly as one convex problem. "nlbp" is the paper's algorithm: damped
        non-linear belief propagation, then maximum likelihood. It ends at the same models and takes hundreds of
        times as long.
    n_iter : int, optional
        Iterations of EM at most. The default is 40 for "dual"; for "nlbp", under noise of scale b, 6 b and at most
        10,000: as many as let a log-potential move by 6, as far as with "dual".
    step : float, optional
        How many of the paper's E-steps one "dual" iteration takes together (1 is the paper's). By default the
        iterations lengthen: a log-potential may move by .015 in the first one, and by 6 in all `n_iter` together.
    stop : {"risk", None}
        With "risk" return the iterate with the smallest estimated divergence from the truth (Notes), and stop when
        the estimate has turned; with None run all iterations and return the last.
    damping : float in (0, 1], optional
        NLBP's alpha, the weight of the new tables. The default is b^2 / 10 over the largest released count, but at
        most 1 and, under Laplace noise, at least .02.
    n_propagations : int, optional
        NLBP's number of propagations in each E-step, at most: it ends when the tables stand still. The default is
        4 / `damping`, after which a fiftieth of the tables from before is left, and at most 2000; the next E-step
        goes on from there.
    keep_path : bool
        Keep theta after each iteration in ``details["path"]``.
    memory_limit : int
        Bytes that inference may allocate.
    inference : {"exact", "loopy", "auto"} or LoopySettings
        With loopy inference both steps are of the approximate model; "auto" takes it where exact inference does not
        fit in `memory_limit`.
    callback : callable, optional
        Called after each iteration of EM.

    Returns
    -------
    Fit
        ``n_iter`` counts the iterations that were run and ``details["iteration"]`` says which one is returned, 0 for
        the uniform model. ``converged`` tells whether the stopping rule was met. ``details["risks"]`` has one entry
        for the start and one per iteration: the estimated divergence from the truth less the uniform model's, in
        nats, and ``objective`` is that of the returned model.

    Raises
    ------
    ValueError
        If an argument is out of range or the tables carry no noise.

    Notes
    -----
    Bernstein et al. (2017), algorithms 1 and 2. Under Laplace noise of scale b a "dual" iteration is

        theta_{t+1} = argmax  theta . y / N - A(theta)   subject to  |theta - theta_t|_inf <= step / b

    and under Gaussian noise the box is replaced by the penalty (sigma^2 / (2 N step)) |theta - theta_t|^2.

    *The paper's algorithm* runs "while not converged" and states no damping. It moves a log-potential by 1/b in an
    iteration, so that it needs about 4 b iterations where the release speaks for strong interactions. A propagation
    moves the tables by up to N mu/b, which has to be damped to stay near the noise: with ``damping=0.1,
    n_propagations=100, n_iter=40`` it oscillates or ends long before its limit where there are many records.

    *The stopping rule.* The divergence of theta from the truth is, up to a constant, A(theta) - theta . mu_true. With
    y / N in the place of mu_true it is too small by the covariance of theta and the noise z. Under Laplace noise each
    iteration adds (step / b) sign(y - n) to theta in the cells that it does not fit, and for d fixed

        E[z sign(d + z)] = (|d| + b) exp(-|d| / b) = E[2 b exp(-|d + z| / b)],

    so that the release itself estimates the covariance: 2 step / N times the sum of exp(-|y - n| / b) over these cells.
    That n depends on y is neglected. Under Gaussian noise the covariance is sigma^2 / N times the trace of the
    derivative of theta in y (Stein), of which the diagonal is followed from one iteration to the next. The estimate is
    enlarged by 4 of its standard deviations for a release without signal, so that noise alone is not followed.

    Examples
    --------
    >>> import numpy as np
    >>> from pgmpy_dp.inference.cliques import Cliques
    >>> cliques = Cliques(("a",), (2,), (("a",),))
    >>> noisy = NoisyMarginals(cliques, np.array([300.0, 700.0]), "laplace", np.array([2.0]), total=1000)
    >>> published_em(noisy).model.marginals().round(2)
    array([0.3, 0.7])
    """
    _require_settings(noisy, e_step=e_step, stop=stop, n_iter=n_iter, step=step)
    propagation = _Propagation.of(noisy, damping, n_propagations)
    steps = _steps(noisy, e_step, n_iter, step)
    limit = _DUAL_ITERATIONS if e_step == "dual" else _M_ITERATIONS

    def fit(engine: InferenceEngine) -> Fit:
        theta = np.zeros(noisy.cliques.n_cells)
        mu, log_partition = engine.calibrate(theta)
        estimate = _RiskEstimate(noisy, mu, log_partition)
        path, risks, reaches = [theta], [0.0], [0.0]
        best, chosen, stalled = 0, theta, False
        for size in steps:
            if e_step == "dual":
                solution = _dual_step(engine, noisy, theta, size)
                moves = (solution.x - theta) * noisy.cell_scale / size
            else:
                solution, moves = _paper_step(engine, noisy, theta, propagation)
            reaches.append(reaches[-1] + float(np.abs(solution.x - theta).max()))
            theta = solution.x
            stalled = solution.n_iter < limit and solution.gradient_norm > STALLED
            mu, log_partition = engine.calibrate(theta)
            risks.append(estimate.after(theta, mu, log_partition, moves, size))
            if keep_path:
                path.append(theta)
            if callback is not None:
                callback()
            if stop is None or risks[-1] < risks[best]:
                best, chosen = len(risks) - 1, theta
            elif reaches[-1] >= _PATIENCE[0] * reaches[best] + _PATIENCE[1]:
                break
        met = stop is not None and len(risks) - 1 > best
        end = (
            f"stopped: iteration {best} has the smallest estimated risk"
            if met
            else f"all {quantity(steps, 'iteration')}"
        )
        return finished_fit(
            engine,
            chosen,
            memory_limit,
            converged=met,
            status=end,
            n_iter=len(risks) - 1,
            objective=risks[best],
            details={"risks": np.array(risks), "iteration": best, "steps": steps[: len(risks) - 1]}
            | ({"path": path} if keep_path else {}),
            stalled=stalled,
        )

    return first_sound_fit(noisy.cliques, inference, memory_limit, fit, noisy.impossible, noisy.levels)


def _require_settings(
    noisy: NoisyMarginals, *, e_step: str, stop: str | None, n_iter: int | None, step: float | None
) -> None:
    if noisy.noise == "none":
        raise ValueError('noisy must carry noise, got noise="none": use maximum_likelihood for exact tables')
    if e_step not in ("dual", "nlbp"):
        raise ValueError(f'e_step must be "dual" or "nlbp", got {e_step!r}')
    if stop not in ("risk", None):
        raise ValueError(f'stop must be "risk" or None, got {stop!r}')
    if n_iter is not None and n_iter < 1:
        raise ValueError(f"n_iter must be at least 1, got {n_iter!r}")
    if step is not None and not (np.isfinite(step) and step > 0):
        raise ValueError(f"step must be positive and finite, got {step!r}")


def _steps(noisy: NoisyMarginals, e_step: str, n_iter: int | None, step: float | None) -> np.ndarray:
    """The number of the paper's E-steps that each iteration takes together."""
    largest = float(noisy.cell_scale.max())
    if n_iter is None:
        n_iter = _N_ITER if e_step == "dual" else math.ceil(min(max(_REACH * largest, _N_ITER), _MAX_ITER))
    if step is not None or e_step == "nlbp":
        return np.full(n_iter, 1.0 if step is None else step)
    # Equal ratios of what has been moved so far: a fit of a weak release ends after little, of a strong one after much.
    reach = np.geomspace(_REACH, _FIRST, n_iter)[::-1]
    return np.diff(reach, prepend=0.0) * largest


class _RiskEstimate:
    """Divergence from the truth along the iterations, less the uniform model's, estimated from the release.

    See the notes of `published_em`. Parameters are the tables and the start's marginals and log-partition.
    """

    def __init__(self, noisy: NoisyMarginals, marginals: np.ndarray, log_partition: float) -> None:
        self._noisy, self._start = noisy, log_partition
        self._proportions, self._share = _consistent_proportions(noisy)
        self._residual = self._standard(marginals)
        # For cells without signal: variance of z sign(z) - 2 b exp(-|z| / b) over b^2, and of z^2 over sigma^4.
        variance = 7.0 / 3.0 if noisy.noise == "laplace" else 2.0
        self._caution = 1.0 + _CAUTION * np.sqrt(variance / noisy.cliques.n_cells)
        self._pulled = np.ones(noisy.cliques.n_cells, dtype=bool)
        self._derivative = np.zeros(noisy.cliques.n_cells)
        self._covariance = 0.0

    def after(
        self, theta: np.ndarray, marginals: np.ndarray, log_partition: float, moves: np.ndarray, step: float
    ) -> float:
        """The estimate after an iteration that added ``step * moves / scale`` to theta."""
        n, scale = self._noisy.n_records, self._noisy.cell_scale
        residual = self._standard(marginals)
        if self._noisy.noise == "laplace":
            # A cell that is fitted is held by small moves, which are the others' doing: only the one that reached it
            # counts.
            size = np.minimum(np.abs(moves), 1.0)
            pulled = size >= _AT_BOUND
            weight = np.where(pulled, 1.0, np.where(self._pulled, size, 0.0))
            self._pulled = pulled
            half_way = 0.5 * np.abs(residual + self._residual)
            self._covariance += 2.0 * step * float(weight @ np.exp(-half_way)) / n
        else:
            pace = step / scale**2
            self._derivative = (self._derivative + pace) / (1.0 + pace * n * marginals)
            self._covariance = float(scale**2 @ self._derivative) / n
        self._residual = residual
        gain = float(theta @ self._proportions) - log_partition + self._start
        return self._caution * self._share * self._covariance - gain

    def _standard(self, marginals: np.ndarray) -> np.ndarray:
        return (self._noisy.counts - self._noisy.n_records * marginals) / self._noisy.cell_scale


def _consistent_proportions(noisy: NoisyMarginals) -> tuple[np.ndarray, float]:
    """The release projected on proportions with sums of 1 and, for each variable, one margin in all tables.

    Log-potentials that change no probability, as a constant added to a table, are pulled by what the tables disagree
    in for as long as the iterations go on. With these proportions that is no gain. Also returns the share of the
    noise that the projection keeps: its trace per cell.
    """
    split, cliques = InteractionSplit(noisy.cliques), noisy.cliques
    margins, _ = split.combined_margins(noisy.counts, noisy.cell_variance)
    centred = split.interaction(noisy.counts) + split.main_effect_adjoint(margins)
    proportions = centred / noisy.n_records + cliques.spread(1.0 / np.array(cliques.sizes))
    effects = [1 + sum(k - 1 for k in shape) for shape in cliques.shapes]
    kept = cliques.n_cells - sum(effects) + split.n_states - split.n_nodes
    return proportions, kept / cliques.n_cells


def _dual_step(engine: InferenceEngine, noisy: NoisyMarginals, theta: np.ndarray, step: float) -> Solution:
    """E- and M-step in one; see the notes of `published_em`."""
    if noisy.noise == "laplace":
        radius = step / noisy.cell_scale
        bounds, weight = (theta - radius, theta + radius), np.zeros_like(theta)
    else:
        bounds, weight = None, noisy.cell_scale**2 / (noisy.n_records * step)

    def objective(x: np.ndarray) -> tuple[float, np.ndarray]:
        mu, log_partition = engine.calibrate(x)
        pull = weight * (x - theta)
        value = log_partition - x @ noisy.proportions + 0.5 * float(pull @ (x - theta))
        return value, mu - noisy.proportions + pull

    return minimize_lbfgs(objective, theta, max_iter=_DUAL_ITERATIONS, gradient_tol=1e-6, bounds=bounds)


@dataclass(frozen=True)
class _Propagation:
    """The settings of the paper's E-step.

    Attributes
    ----------
    damping : float
        The weight of the new tables.
    most : int
        How many propagations at most.
    settled : float
        It ends before when the tables change by less than this part of the first change.
    """

    damping: float
    most: int
    settled: float

    @classmethod
    def of(cls, noisy: NoisyMarginals, damping: float | None, n_propagations: int | None) -> _Propagation:
        """Check the options; None stands for the default that `published_em` names."""
        if n_propagations is not None and n_propagations < 1:
            raise ValueError(f"n_propagations must be at least 1, got {n_propagations!r}")
        if damping is not None and not 0 < damping <= 1:
            raise ValueError(f"damping must be in (0, 1], got {damping!r}")
        if damping is None:
            largest = float(noisy.cell_scale.max())
            damping = min(1.0, _DAMPING * largest**2 / max(float(noisy.counts.max()), 1.0))
            damping = max(damping, _LEAST_DAMPING if noisy.noise == "laplace" else _TINY)
        if n_propagations is not None:
            return cls(damping, n_propagations, _STILL)
        return cls(damping, math.ceil(min(-math.log(_SETTLED) / damping, _MAX_PROPAGATIONS)), _SETTLED)


def _paper_step(
    engine: InferenceEngine, noisy: NoisyMarginals, theta: np.ndarray, how: _Propagation
) -> tuple[Solution, np.ndarray]:
    """E-step by propagations, then M-step; also the mean gradient of the first, in units of 1 / scale."""
    tables, moves = _nonlinear_belief_propagation(engine, noisy, theta, how)
    start = theta + moves / noisy.cell_scale
    solution = maximize_likelihood(
        engine, tables / noisy.n_records, l2=0.0, start=start, max_iter=_M_ITERATIONS, tol=1e-7
    )
    return solution, moves


def _nonlinear_belief_propagation(
    engine: InferenceEngine, noisy: NoisyMarginals, theta: np.ndarray, how: _Propagation
) -> tuple[np.ndarray, np.ndarray]:
    """Algorithm 1: n <- (1 - alpha) n + alpha BP(theta + grad log p(y | n)), tables summing to N.

    Also returns the mean gradient, in units of 1 / scale.
    """
    tables, moves, first = noisy.n_records * engine.calibrate(theta)[0], np.zeros_like(theta), 0.0
    for k in range(how.most):
        error = (noisy.counts - tables) / noisy.cell_scale
        slope = np.sign(error) if noisy.noise == "laplace" else error
        change = noisy.n_records * engine.calibrate(theta + slope / noisy.cell_scale)[0] - tables
        tables += how.damping * change
        moves += (slope - moves) / (k + 1)
        largest = float(np.abs(change).max())
        first = largest if k == 0 else first
        if largest <= how.settled * first:
            break
    return tables, moves
