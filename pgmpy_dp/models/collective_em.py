"""Expectation-maximisation for collective graphical models from noisy tables.

The exact tables n are latent. The E-step is approximate MAP inference of n (Proposition 5 of the paper,
Stirling's approximation of the number of data sets with tables n)::

    n* = argmax over N times the marginal polytope of  theta_t . n + H(n) + log p(y | n)

and the M-step is maximum likelihood of theta given n*. Two facts shape what is here (proofs in
docs/papers-and-corrections.md). The E-step's optimum has the form n* = N mu(theta') with theta' within the
subgradient of log p(y | n) of theta_t, so theta' is at once the M-step's answer, and both steps are one convex
problem in theta'. And the limit of the iterations is the projection of y on the marginal polytope, which
overfits: stopping early is the only regulariser.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pgmpy_dp.models.inference import Inference, InferenceEngine
from pgmpy_dp.models.junction_tree import DEFAULT_MEMORY_LIMIT
from pgmpy_dp.models.maximum_likelihood import STALLED, Fit, finished_fit, first_sound_fit, maximize_likelihood
from pgmpy_dp.models.noisy_marginals import NoisyMarginals
from pgmpy_dp.solvers.lbfgs import Solution, minimize_lbfgs

__all__ = ["collective_em", "discrepancy"]

_DUAL_ITERATIONS, _M_ITERATIONS = 30, 50
"""Iterations of L-BFGS in one "dual" step, and in the M-step after "nlbp", at most."""

_REACH = 4.0
"""How far, in log-potential, the default step lets a parameter move over all iterations together."""


def collective_em(
    noisy: NoisyMarginals,
    *,
    e_step: str = "dual",
    n_iter: int = 40,
    step: float | None = None,
    stop: str | None = "discrepancy",
    damping: float = 0.1,
    n_propagations: int = 100,
    keep_path: bool = False,
    memory_limit: int = DEFAULT_MEMORY_LIMIT,
    inference: Inference = "exact",
    callback: Callable[[], None] | None = None,
) -> Fit:
    """Fit a log-linear model to noisy tables by expectation-maximisation.

    Parameters
    ----------
    noisy : NoisyMarginals
        Released tables with their noise.
    e_step : {"dual", "nlbp"}
        "dual" solves E- and M-step exactly as one convex problem. "nlbp" is the paper's algorithm: damped
        non-linear belief propagation, then maximum likelihood; it oscillates where N is large.
    n_iter : int
        Iterations of EM at most.
    step : float, optional
        How many of the paper's E-steps one "dual" iteration takes together (1 is the paper's). The default
        is 1, or more where 1 could not move a log-potential by 4 within `n_iter` iterations.
    stop : {"discrepancy", None}
        With "discrepancy" stop once the fitted tables are as far from y as the noise itself is on average
        (`discrepancy` at most 1); with None run all iterations.
    damping : float in (0, 1]
        NLBP's alpha, the weight of the new tables.
    n_propagations : int
        NLBP's number of propagations in each E-step.
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
        ``converged`` tells whether the stopping rule was met; ``details["discrepancies"]`` has one entry
        for the start and one per iteration.

    Raises
    ------
    ValueError
        If an argument is out of range or the tables carry no noise.

    Notes
    -----
    Bernstein et al. (2017), algorithms 1 and 2. Under Laplace noise of scale b a "dual" iteration is

        theta_{t+1} = argmax  theta . y / N - A(theta)   subject to  |theta - theta_t|_inf <= step / b

    and under Gaussian noise the box is replaced by the penalty (sigma^2 / (2 N step)) |theta - theta_t|^2.

    Examples
    --------
    >>> import numpy as np
    >>> from pgmpy_dp.models.cliques import Cliques
    >>> cliques = Cliques(("a",), (2,), (("a",),))
    >>> noisy = NoisyMarginals(cliques, np.array([300.0, 700.0]), "laplace", np.array([2.0]), total=1000)
    >>> collective_em(noisy).model.marginals().round(2)
    array([0.3, 0.7])
    """
    if noisy.noise == "none":
        raise ValueError('noisy must carry noise, got noise="none": use maximum_likelihood for exact tables')
    if e_step not in ("dual", "nlbp"):
        raise ValueError(f'e_step must be "dual" or "nlbp", got {e_step!r}')
    if stop not in ("discrepancy", None):
        raise ValueError(f'stop must be "discrepancy" or None, got {stop!r}')
    if n_iter < 1 or n_propagations < 1:
        raise ValueError(f"n_iter and n_propagations must be at least 1, got {n_iter!r} and {n_propagations!r}")
    if not 0 < damping <= 1:
        raise ValueError(f"damping must be in (0, 1], got {damping!r}")
    if step is not None and not (np.isfinite(step) and step > 0):
        raise ValueError(f"step must be positive and finite, got {step!r}")
    if step is None:
        largest = float(noisy.scale.max())
        step = max(1.0, _REACH * largest / n_iter) if noisy.noise == "laplace" else 1.0

    def fit(engine: InferenceEngine) -> Fit:
        theta = np.zeros(noisy.cliques.n_cells)
        discrepancies = [discrepancy(noisy, noisy.n_records * engine.calibrate(theta)[0])]
        path = [theta]
        stalled, limit = False, _DUAL_ITERATIONS if e_step == "dual" else _M_ITERATIONS
        while len(discrepancies) <= n_iter and not (stop and discrepancies[-1] <= 1):
            if e_step == "dual":
                solution = _dual_step(engine, noisy, theta, step)
            else:
                tables = _nonlinear_belief_propagation(engine, noisy, theta, damping, n_propagations)
                proportions = tables / noisy.n_records
                solution = maximize_likelihood(
                    engine, proportions, l2=0.0, start=theta, max_iter=_M_ITERATIONS, tol=1e-7
                )
            theta = solution.x
            stalled = solution.n_iter < limit and solution.gradient_norm > STALLED
            discrepancies.append(discrepancy(noisy, noisy.n_records * engine.calibrate(theta)[0]))
            if keep_path:
                path.append(theta)
            if callback is not None:
                callback()
        met = stop is not None and discrepancies[-1] <= 1
        return finished_fit(
            engine,
            theta,
            memory_limit,
            converged=met,
            status="stopped: the fit is as far from the release as the noise" if met else f"all {n_iter} iterations",
            n_iter=len(discrepancies) - 1,
            objective=discrepancies[-1],
            details={"discrepancies": np.array(discrepancies), "step": step} | ({"path": path} if keep_path else {}),
            stalled=stalled,
        )

    return first_sound_fit(noisy.cliques, inference, memory_limit, fit)


def discrepancy(noisy: NoisyMarginals, tables: np.ndarray) -> float:
    """Average distance of tables from the release in units of the noise; 1 in expectation for the exact tables.

    mean |y - n| / b for Laplace noise, the root of mean (y - n)^2 / sigma^2 for Gaussian noise.
    """
    standard = (noisy.counts - tables) / noisy.cell_scale
    if noisy.noise == "laplace":
        return float(np.abs(standard).mean())
    return float(np.sqrt(np.mean(standard**2)))


def _dual_step(engine: InferenceEngine, noisy: NoisyMarginals, theta: np.ndarray, step: float) -> Solution:
    """E- and M-step in one; see the notes of `collective_em`."""
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


def _nonlinear_belief_propagation(
    engine: InferenceEngine, noisy: NoisyMarginals, theta: np.ndarray, damping: float, n_propagations: int
) -> np.ndarray:
    """Algorithm 1: n <- (1 - alpha) n + alpha BP(theta + grad log p(y | n)), tables summing to N."""
    tables = noisy.n_records * engine.calibrate(theta)[0]
    for _ in range(n_propagations):
        error = noisy.counts - tables
        slope = np.sign(error) / noisy.cell_scale if noisy.noise == "laplace" else error / noisy.cell_scale**2
        tables += damping * (noisy.n_records * engine.calibrate(theta + slope)[0] - tables)
    return tables
