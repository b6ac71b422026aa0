"""Expectation-maximisation for collective graphical models, with the mean of the exact tables and a prior.

The exact tables n are latent: of N records of the model p_theta, with y = n + noise released. By Fisher's identity

    d/dtheta log p(y; theta) = E[n | y; theta] - N mu(theta),

and log p(y; theta) is at least -N KL(p_x || p_theta) + E log p(y | n) for tables n of N records of any other model
p_x, since the divergence of N records bounds that of their tables (Neal and Hinton, 1998). With R_c(y - N mu(x)) for
the last term's negative, cell by cell, and P the negative log-prior, EM descends on one function,

    F(theta, x) = N KL(p_x || p_theta) + sum_c R_c(y_c - N mu_c(x)) + P(theta).

The E-step minimises it in x. There d/dx F = N mu'(x) (x - theta - R') vanishes, so that up to what changes no
probability

    E[n | y] = N mu(theta + R'(y - E[n | y])),

with R' the mean slope of the noise's log-density. The M-step minimises it in theta, where d/dtheta F is
N mu(theta) - E[n | y] + P'(theta): Fisher's identity again. Here L-BFGS moves both at once.

For Gaussian noise of variance V the slope is (y - E[n | y]) / V, whatever the variance of n. For Laplace noise of scale
b it is sign(y - n) / b averaged over n, which taken as normal of variance s gives

    R'(r) = erf(r / sqrt(2 s)) / b,   R(r) = (r erf(r / sqrt(2 s)) + sqrt(2 s / pi) exp(-r^2 / (2 s))) / b.

Given theta, n has the variance J = N mu (1 - mu) before y is known, and s = J V / (J + V) after. Since theta is
not given, s is the larger variance that `CollectiveObjective` takes, with theta's own uncertainty in it. With s -> 0 it
is the mode's slope, sign(r) / b: what `published_em` does.

What is approximate: that n is normal, that s is a cell's own and does not depend on how far y is, and V = 2 b^2.
Discrete Laplace and Gaussian noise have exactly these log-densities at whole numbers, with a smaller variance
(2 b^2 - 1/6 for large b); that n takes whole numbers alone matters where b and sigma are below about 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.special import erf

from pgmpy_dp.inference.exact_or_loopy import Inference, InferenceEngine
from pgmpy_dp.inference.junction_tree import DEFAULT_MEMORY_LIMIT
from pgmpy_dp.inference.lbfgs import minimize_lbfgs
from pgmpy_dp.learning.maximum_a_posteriori import STALLED_ROUND, fit_rounds
from pgmpy_dp.learning.maximum_likelihood import Fit, finished_fit, first_sound_fit
from pgmpy_dp.learning.noisy_marginals import NoisyMarginals
from pgmpy_dp.learning.objective import ENTROPY_SHARE, MARGIN_SHARE, CollectiveObjective
from pgmpy_dp.shown import quantity

MAX_ITER = 100
"""Iterations of L-BFGS by default, in EM and in each round before it."""


def collective_em(
    noisy: NoisyMarginals,
    *,
    n_iter: int | None = None,
    tol: float = 1e-5,
    memory_limit: int = DEFAULT_MEMORY_LIMIT,
    inference: Inference = "exact",
    callback: Callable[[], None] | None = None,
) -> Fit:
    """Fit a log-linear model to noisy tables by expectation-maximisation, with the prior that `collective_map` learns.

    Parameters
    ----------
    noisy : NoisyMarginals
        Released tables with their noise.
    n_iter : int, optional
        Iterations of L-BFGS at most, in EM and in each round of `collective_map` before it. The default is 100.
    tol : float
        Either ends when an iteration lowers its objective by less than this share of it.
    memory_limit : int
        Bytes that inference may allocate.
    inference : {"exact", "loopy", "auto"} or LoopySettings
        With loopy inference both steps are of the approximate model; "auto" takes it where exact inference does not
        fit in `memory_limit`.
    callback : callable, optional
        Called after each iteration.

    Returns
    -------
    Fit
        ``objective`` is F of the module's docstring, and ``n_iter`` counts all iterations. ``details`` holds
        "interaction_variances" (n_cliques,) and "node_variances" (n_nodes,), the prior's, "expected_counts" (n_cells,),
        the mean of the exact tables given the release, in records, and "slopes" (n_cells,), the R' there.

    Raises
    ------
    ValueError
        If an argument is out of range or the tables carry no noise (see `maximum_likelihood` then).

    Notes
    -----
    The model of the tables is that of Bernstein et al. (2017), whose own algorithm is
    :func:`pgmpy_dp.tables.collective.published.published_em.published_em`. The fit of `collective_map` is where this
    one starts. EM differs in that all tables come from the same records: an error that one table shows, others share.

    Examples
    --------
    >>> import numpy as np
    >>> from pgmpy_dp.inference.cliques import Cliques
    >>> cliques = Cliques(("a",), (2,), (("a",),))
    >>> noisy = NoisyMarginals(cliques, np.array([300.0, 700.0]), "laplace", np.array([2.0]), total=1000)
    >>> collective_em(noisy).model.marginals().round(2)
    array([0.3, 0.7])
    """
    if noisy.noise == "none":
        raise ValueError('noisy must carry noise, got noise="none": use maximum_likelihood for exact tables')
    most = MAX_ITER if n_iter is None else n_iter
    if most < 1:
        raise ValueError(f"n_iter must be at least 1, got {n_iter!r}")
    if not 0 <= tol < 1:
        raise ValueError(f"tol must be in [0, 1), got {tol!r}")

    def fit(engine: InferenceEngine) -> Fit:
        problem = CollectiveObjective(noisy, ENTROPY_SHARE, MARGIN_SHARE, memory_limit, engine)
        rounds = fit_rounds(problem, max_iter=most, tol=tol, callback=callback)
        problem.adapt(rounds[-1].x)
        energy = FreeEnergy(problem, rounds[-1].x)
        solution = minimize_lbfgs(
            energy.value_and_gradient,
            energy.start,
            max_iter=most,
            gradient_tol=1e-8,
            decrease_tol=tol,
            memory=20,
            scale=energy.scale,
            expect_decrease=True,
            callback=callback,
        )
        theta, x = energy.split(solution.x)
        expected = problem.n * engine.calibrate(x)[0]
        total = solution.n_iter + sum(each.n_iter for each in rounds)
        return finished_fit(
            engine,
            theta,
            memory_limit,
            converged=solution.converged,
            status=f"EM: {quantity(solution.n_iter, 'iteration')} from CollectiveMAP's fit; {solution.status}",
            n_iter=total,
            objective=solution.objective,
            details={
                "interaction_variances": problem.interaction_variances,
                "node_variances": problem.node_variances,
                "gradient_norm": solution.gradient_norm,
                "expected_counts": expected,
                "slopes": mean_slope(problem.y - expected, energy.variance, noisy.noise, problem.scale)[1],
            },
            stalled=solution.n_iter < most and solution.gradient_norm > STALLED_ROUND,
        )

    return first_sound_fit(noisy.cliques, inference, memory_limit, fit, noisy.impossible, noisy.levels)


def mean_slope(residual: np.ndarray, variance: np.ndarray, noise: str, scale: np.ndarray) -> tuple[float, np.ndarray]:
    """sum(R) and R' of the noise's negative log-density, averaged over a normal exact count; constants left out.

    Parameters
    ----------
    residual : ndarray
        Released less expected exact counts.
    variance : ndarray, broadcastable
        Variance s of the exact counts, positive.
    noise : {"laplace", "gaussian"}
    scale : ndarray, broadcastable
        Laplace scale b or Gaussian standard deviation.

    Returns
    -------
    value : float
    slope : ndarray of the shape of `residual`

    Examples
    --------
    >>> value, slope = mean_slope(np.array([0.0, 30.0]), np.array([1.0, 1.0]), "laplace", np.array([5.0, 5.0]))
    >>> round(value, 4), slope.tolist()
    (6.1596, [0.0, 0.2])
    """
    if noise == "gaussian":
        slope = residual / scale**2
        return 0.5 * float(residual @ slope), slope
    width = np.sqrt(2 * variance)
    u = residual / width
    sign = erf(u)
    return float(np.sum((residual * sign + width / math.sqrt(math.pi) * np.exp(-(u**2))) / scale)), sign / scale


class FreeEnergy:
    """F(theta, x) of the module's docstring at the scales of a `CollectiveObjective`, as a function of one vector.

    The vector is (theta, u) with x = k theta + u. Where F is close to a parabola, cell by cell
    J (x - theta)^2 / 2 + (J^2 / W) (x - a)^2 / 2 with W the squared scale of the noise, its minimum in x is at
    x = (W theta + J a) / (W + J). So with k = W / (W + J) theta and u do not get into each other's way: where noise
    dominates, the tables are moved with the model, and where it is small, they stay at y.

    Parameters
    ----------
    problem : CollectiveObjective
        Adapted at `theta`.
    theta : ndarray of shape (n_cells,)
        Where to start; x starts at one E-step from there, as far as a parabola says. A whole one oversteps where noise
        is small: the slope of Laplace noise stays near 1/b, however small a residual is.

    Attributes
    ----------
    start, scale : ndarray of shape (2 n_cells,)
        Of the vector; scales are for `minimize_lbfgs`.
    variance : ndarray of shape (n_cells,)
        s, the variance of the exact counts given the release.
    """

    def __init__(self, problem: CollectiveObjective, theta: np.ndarray) -> None:
        state = problem.state
        assert state is not None
        self._problem, self.variance = problem, state.variance
        mu, _ = problem.engine.calibrate(theta)
        information = problem.n * mu * (1 - mu)
        noise = problem.scale**2
        self._follow = noise / (noise + information)
        x = theta + self._follow * self._misfit(mu)[1]
        self.start = np.concatenate([theta, x - self._follow * theta])
        curvature = problem.preconditioner**-2
        self.scale = np.concatenate([curvature, information + curvature]) ** -0.5

    def split(self, vector: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Log-potentials of the model, and of the expected tables."""
        theta, u = np.split(vector, 2)
        return theta, self._follow * theta + u

    def value_and_gradient(self, vector: np.ndarray) -> tuple[float, np.ndarray]:
        """F and its gradient, shape (2 n_cells,)."""
        problem, (theta, x) = self._problem, self.split(vector)
        n, engine = problem.n, problem.engine
        mu, log_partition = engine.calibrate(theta)
        value, gradient = problem.prior_value_and_gradient(theta, mu, log_partition)
        mean, log_partition_x = engine.calibrate(x)
        misfit, slope = self._misfit(mean)
        value += n * (log_partition - log_partition_x + float((x - theta) @ mean)) + misfit
        by_x = engine.derivative(n * (x - theta - slope))
        return value, np.concatenate([gradient + n * (mu - mean) + self._follow * by_x, by_x])

    def _misfit(self, marginals: np.ndarray) -> tuple[float, np.ndarray]:
        problem = self._problem
        return mean_slope(problem.y - problem.n * marginals, self.variance, problem.noisy.noise, problem.scale)
