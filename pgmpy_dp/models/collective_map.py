"""CollectiveMAP: penalised, smoothed marginal likelihood of noisy tables.

The released tables are y = n + noise with n the unknown exact tables, so the likelihood of the
parameters is p(y; theta) = sum_n p(n; theta) p(y | n). Here n is approximated by independent normals
around N mu(theta), the parameters get heavy-tailed priors whose variances are learned from the release
itself (one per interaction and one per variable), and an entropy term guards models that the release
says little about. Why each part is there is told, with measurements, in docs/papers-and-corrections.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pgmpy_dp.models.belief_propagation import SumProduct
from pgmpy_dp.models.inference import Inference, InferenceEngine
from pgmpy_dp.models.interactions import InteractionSplit
from pgmpy_dp.models.junction_tree import DEFAULT_MEMORY_LIMIT
from pgmpy_dp.models.maximum_likelihood import (
    Fit,
    finished_fit,
    first_sound_fit,
    maximize_likelihood,
    noise_aware_penalty,
)
from pgmpy_dp.models.noise_likelihood import negative_log_density
from pgmpy_dp.models.noisy_marginals import NoisyMarginals
from pgmpy_dp.models.scale_evidence import VARIANCE_GRID, pooled_variance, posterior_variances
from pgmpy_dp.models.tilted import TiltedEngine
from pgmpy_dp.solvers.lbfgs import Solution, minimize_lbfgs

__all__ = ["CollectiveObjective", "collective_map"]

TAIL = 1.0
"""Tail parameter a of the pseudo-Huber prior; results are flat between 1/2 and 4."""

_CERTAIN = 20.0
"""Nats of evidence above the uniform model from which on a fit needs no second opinion."""

_CEILINGS = (1.0, 0.3)
"""Ceilings of the variances that are tried otherwise, as shares of what the uniform model's evidence speaks for."""

_PARSIMONY = 1.0
"""Nats by which a variance e times as large must be better: too large costs more than too small."""

_STALLED = 5.0
"""Preconditioned gradient with which no round should end: about 12 nats could still be gained along it."""


def collective_map(
    noisy: NoisyMarginals,
    *,
    entropy_share: float = 0.3,
    margin_share: float = 0.5,
    n_rounds: int = 3,
    max_iter: int = 100,
    tol: float = 1e-5,
    memory_limit: int = DEFAULT_MEMORY_LIMIT,
    inference: Inference = "exact",
    base: np.ndarray | None = None,
    callback: Callable[[], None] | None = None,
) -> Fit:
    """Fit a log-linear model to noisy tables by maximum a posteriori.

    Parameters
    ----------
    noisy : NoisyMarginals
        Released tables with their noise.
    entropy_share : float in [0, 1)
        rho: how much of the prior on interactions is replaced by the entropy term.
    margin_share : float in [0, 1]
        w: with 1 the entropy term pulls to the product of the margins, with 0 to the uniform model.
    n_rounds : int
        Alternations between estimating the prior variances and fitting the parameters.
    max_iter : int
        Iterations of L-BFGS in each round at most.
    tol : float
        A round ends when an iteration lowers the objective by less than this share of it.
    memory_limit : int
        Bytes that inference may allocate.
    inference : {"exact", "loopy", "auto"} or LoopySettings
        Loopy belief propagation replaces the marginals, their derivative and the entropy by approximations; "auto"
        takes it where exact inference does not fit in `memory_limit`.
    base : ndarray of shape (n_cells,), optional
        Log-potentials that the priors shrink to; default 0, the uniform model. With an `entropy_share` above 0 the
        entropy term is then the divergence from the base model, which goes with ``margin_share=0`` only.
    callback : callable, optional
        Called after each iteration.

    Returns
    -------
    Fit
        ``details`` holds "interaction_variances" (n_cliques,) and "node_variances" (n_nodes,).

    Raises
    ------
    ValueError
        If an argument is out of range or the tables carry no noise (see `maximum_likelihood` then).

    Examples
    --------
    >>> import numpy as np
    >>> from pgmpy_dp.models.cliques import Cliques
    >>> cliques = Cliques(("a", "b"), (2, 2), (("a", "b"),))
    >>> noisy = NoisyMarginals(cliques, np.array([400.0, 110.0, 95.0, 405.0]), "laplace", np.array([5.0]), total=1000)
    >>> collective_map(noisy).model.marginal(["a"]).round(1)
    array([0.5, 0.5])
    """
    if noisy.noise == "none":
        raise ValueError('noisy must carry noise, got noise="none": use maximum_likelihood for exact tables')
    if not 0 <= entropy_share < 1:
        raise ValueError(f"entropy_share must be in [0, 1), got {entropy_share!r}")
    if not 0 <= margin_share <= 1:
        raise ValueError(f"margin_share must be in [0, 1], got {margin_share!r}")
    if not 0 <= tol < 1:
        raise ValueError(f"tol must be in [0, 1), got {tol!r}")
    if n_rounds < 1 or max_iter < 1:
        raise ValueError(f"n_rounds and max_iter must be at least 1, got {n_rounds!r} and {max_iter!r}")
    if base is not None:
        if entropy_share > 0 and margin_share > 0:
            raise ValueError(
                f"base needs entropy_share=0 or margin_share=0, got {entropy_share!r} and {margin_share!r}"
            )
        base = np.asarray(base, dtype=np.float64)
        if base.shape != (noisy.cliques.n_cells,) or not np.isfinite(base).all():
            raise ValueError(f"base must be {noisy.cliques.n_cells} finite numbers, got shape {base.shape}")

    def fit(engine: InferenceEngine) -> Fit:
        tilted = engine if base is None else TiltedEngine(engine, base)
        problem = CollectiveObjective(noisy, entropy_share, margin_share, memory_limit, tilted)

        def fit_round(start: np.ndarray) -> Solution:
            problem.adapt(start)
            return minimize_lbfgs(
                problem.value_and_gradient,
                start,
                max_iter=max_iter,
                gradient_tol=1e-8,
                decrease_tol=tol,
                memory=20,
                scale=problem.preconditioner,
                callback=callback,
            )

        solutions = [_first_round(problem, fit_round, problem.start(callback))]
        for _ in range(n_rounds - 1):
            solutions.append(fit_round(solutions[-1].x))
        solution, n_iter = solutions[-1], sum(solution.n_iter for solution in solutions)
        return finished_fit(
            engine,
            solution.x if base is None else solution.x + base,
            memory_limit,
            converged=solution.converged,
            status=f"{n_rounds} rounds, {n_iter} iterations; the last round: {solution.status}",
            n_iter=n_iter,
            objective=solution.objective,
            details={
                "interaction_variances": problem.interaction_variances,
                "node_variances": problem.node_variances,
                "gradient_norm": solution.gradient_norm,
            },
            stalled=solution.n_iter < max_iter and solution.gradient_norm > _STALLED,
        )

    return first_sound_fit(noisy.cliques, inference, memory_limit, fit)


def _first_round(
    problem: CollectiveObjective, fit_round: Callable[[np.ndarray], Solution], start: np.ndarray
) -> Solution:
    """The first round, which also settles how large the prior variances of interactions may become.

    A fit makes the cells that the noise happened to raise more sensitive than the others, so the evidence at a
    fitted point is for too large variances, and where the signal is weak the rounds would drive one another up:
    on one of 300 weak releases, to six times the divergence of the uniform model. Where the fit does not have
    far more evidence than the uniform model, it is compared with fits under a ceiling: the variance that the
    evidence at the uniform model speaks for, or a fraction of it.
    """
    solution = fit_round(start)
    if problem.log_evidence(solution.x) > problem.uniform_evidence + _CERTAIN:
        return solution
    candidates = []
    for share in (np.inf, *_CEILINGS):
        problem.ceiling = share * problem.uniform_variance
        if share < np.inf:
            solution = fit_round(start)
        size = float(np.log(problem.interaction_variances).mean())
        candidates.append((problem.log_evidence(solution.x) - _PARSIMONY * size, problem.ceiling, solution))
    _, problem.ceiling, solution = max(candidates, key=lambda candidate: candidate[0])
    return solution


@dataclass(frozen=True)
class _State:
    """What depends on the point at which the objective was adapted."""

    t_cell: np.ndarray  # prior variance of each cell's interaction
    t_state: np.ndarray  # prior variance of each state's main effect
    variance: np.ndarray  # variance of the normal part of each cell
    entropy_weight: float


class CollectiveObjective:
    """The penalised negative log-likelihood F(theta), its gradient, and its adaptive scales.

    F = sum NL(N mu - y; v, b) + (1 - rho) hub(I; t_C) + (1 - rho (1 - w)) hub(phi; t_i)
        + k (-H(theta) + w sum_i H(mu_i))

    with I and phi the interactions and main effects of theta (`InteractionSplit`), hub the pseudo-Huber
    function, H entropies, and b, N, y those of the release.
    """

    def __init__(
        self,
        noisy: NoisyMarginals,
        entropy_share: float,
        margin_share: float,
        memory_limit: int,
        engine: InferenceEngine | None = None,
    ) -> None:
        self.noisy = noisy
        self.engine = SumProduct(noisy.cliques, memory_limit=memory_limit) if engine is None else engine
        self.split = InteractionSplit(noisy.cliques)
        self.rho, self.w = entropy_share, margin_share
        self.n = noisy.n_records
        self.y = noisy.counts
        # Fisher information of the location of the noise is 1/b^2 for Laplace and 1/sigma^2 for Gaussian noise.
        self.scale = noisy.cell_scale
        self.starts = np.array([part.start for part in noisy.cliques.slices])
        # A table of one variable has no interaction: its main effect's variance stands in for one.
        scopes = noisy.cliques.indices
        self.single = [c for c, scope in enumerate(scopes) if len(scope) == 1]
        self.single_node = [self.split.nodes.index(scopes[c][0]) for c in self.single]
        self.interacting = noisy.cliques.spread(np.array([len(scope) > 1 for scope in scopes]))
        cell_variance = noisy.cliques.spread(noisy.table_variance)
        self.node_counts, self.node_noise = self.split.combined_margins(self.y, cell_variance)
        self.interaction_variances = np.ones(noisy.cliques.n_cliques)
        self.node_variances = np.ones(self.split.n_nodes)
        self.ceiling = np.inf
        self.uniform_variance = np.nan
        self.uniform_evidence = np.nan
        self.preconditioner = np.ones(noisy.cliques.n_cells)
        self.state: _State | None = None

    def start(self, callback: Callable[[], None] | None) -> np.ndarray:
        """The better of two short naive fits whose penalties come from the evidence at the uniform model."""
        noisy = self.noisy
        zero = np.zeros(noisy.cliques.n_cells)
        mu, _ = self.engine.calibrate(zero)
        self.uniform_variance = pooled_variance(self._interaction_evidence(mu, zero))
        t0 = float(np.log1p(self.uniform_variance))
        penalty = noise_aware_penalty(noisy) / t0
        floor = float(self.scale.mean()) / self.n
        first = maximize_likelihood(
            self.engine, noisy.proportions, l2=penalty, start=zero, max_iter=15, tol=1e-5, callback=callback
        ).x
        second = maximize_likelihood(
            self.engine,
            noisy.projected_proportions(),
            l2=max(penalty, floor),
            start=first,
            max_iter=15,
            tol=1e-5,
            callback=callback,
        ).x
        self._set_scales(zero, mu, np.full(noisy.cliques.n_cliques, t0), np.full(self.split.n_nodes, t0))
        self.uniform_evidence = -self._misfit(mu)
        return min((first, second), key=lambda theta: self.value_and_gradient(theta)[0])

    def adapt(self, theta: np.ndarray) -> None:
        """Learn the prior variances at theta, and set the cells' variances and the preconditioner."""
        mu, _ = self.engine.calibrate(theta)
        t_clique = np.minimum(posterior_variances(self._interaction_evidence(mu, theta)), self.ceiling)
        t_node = posterior_variances(self._node_evidence(mu, theta))
        t_clique[self.single] = t_node[self.single_node]
        self._set_scales(theta, mu, t_clique, t_node)

    def value_and_gradient(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """F(theta) and its gradient, shape (n_cells,), at the scales of the last `adapt`."""
        state = self.state
        assert state is not None
        mu, log_partition = self.engine.calibrate(theta)
        nl, nl_slope = negative_log_density(self.n * mu - self.y, state.variance, self.noisy.noise, self.scale)
        node = self.split.node_marginals(mu)
        log_node = np.log(np.maximum(node, np.finfo(float).tiny))
        interaction, main = self.split.interaction(theta), self.split.main_effect(theta)
        interaction_value, interaction_slope = _pseudo_huber(interaction, state.t_cell)
        main_value, main_slope = _pseudo_huber(main, state.t_state)
        interaction_weight, main_weight = 1 - self.rho, 1 - self.rho * (1 - self.w)
        entropy = theta @ mu - log_partition - self.w * float(node @ log_node)
        value = (
            float(nl.sum())
            + interaction_weight * interaction_value
            + main_weight * main_value
            + state.entropy_weight * entropy
        )
        pull = self.n * nl_slope + state.entropy_weight * (theta - self.w * self.split.spread_to_cells(log_node))
        gradient = (
            self.engine.derivative(pull)
            + interaction_weight * self.split.interaction(interaction_slope)
            + main_weight * self.split.main_effect_adjoint(main_slope)
        )
        return value, gradient

    def log_evidence(self, theta: np.ndarray) -> float:
        """Laplace approximation of log p(y) at a fit under the current prior variances.

        log p(y | theta) + log p(theta) + (1/2) log det(2 pi / curvature), with the curvature of cells and states
        taken as diagonal. The determinant is Occam's factor: a variance t that is large against what the data
        determine costs (1/2) log(1 + t h) for each cell of data curvature h.
        """
        state = self.state
        assert state is not None
        mu, _ = self.engine.calibrate(theta)
        information, sampling = self._sampling(mu)
        node = self.split.node_marginals(mu)
        node_information = self.n * node * (1 - node)
        cell_curvature = information**2 / (self.scale**2 + sampling)
        node_curvature = node_information**2 / (self.node_noise + node_information)
        interaction, _ = _pseudo_huber(self.split.interaction(theta), state.t_cell)
        main, _ = _pseudo_huber(self.split.main_effect(theta), state.t_state)
        occam = self.interacting @ np.log1p(state.t_cell * cell_curvature)
        occam += np.log1p(state.t_state * node_curvature).sum()
        return -self._misfit(mu) - interaction - main - 0.5 * float(occam)

    def scale_evidence(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Evidence of each interaction's and each node's prior variance at theta; (n_cliques, 17), (n_nodes, 17)."""
        mu, _ = self.engine.calibrate(theta)
        return self._interaction_evidence(mu, theta), self._node_evidence(mu, theta)

    def _misfit(self, mu: np.ndarray) -> float:
        """-log p(y | mu) with the sampling variance of the model itself."""
        _, sampling = self._sampling(mu)
        nl, _ = negative_log_density(self.n * mu - self.y, sampling, self.noisy.noise, self.scale)
        return float(nl.sum())

    def _set_scales(self, theta: np.ndarray, mu: np.ndarray, t_clique: np.ndarray, t_node: np.ndarray) -> None:
        cliques = self.noisy.cliques
        self.interaction_variances, self.node_variances = t_clique, t_node
        t_cell = cliques.spread(t_clique)
        entropy_weight = self.rho * (cliques.n_cells / cliques.n_cliques) / float(t_cell.mean())
        information, sampling = self._sampling(mu)
        interaction = self.split.interaction(theta)
        prior_curvature = 1.0 / (t_cell * np.sqrt(1 + interaction**2 / (TAIL * t_cell)))
        data_curvature = information**2 / (self.scale**2 + sampling)
        curvature = data_curvature + prior_curvature
        self.state = _State(
            t_cell=t_cell,
            t_state=t_node[self.split.node_of_state],
            variance=sampling + 0.5 * information**2 / curvature,
            entropy_weight=entropy_weight,
        )
        self.preconditioner = curvature**-0.5

    def _sampling(self, mu: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """J = N mu (1 - mu), and J plus a floor that keeps the density smooth, in each cell."""
        information = self.n * mu * (1 - mu)
        return information, information + 1e-4 * self.scale**2

    def _interaction_evidence(self, mu: np.ndarray, theta: np.ndarray) -> np.ndarray:
        """log p(y_C | s) of each table for each s on the grid, linearised in the interactions; (n_cliques, 17)."""
        information, sampling = self._sampling(mu)
        residual = self.y - self.n * mu + information * self.split.interaction(theta)
        nl, _ = negative_log_density(
            residual, sampling + information**2 * VARIANCE_GRID[:, None], self.noisy.noise, self.scale
        )
        evidence = -np.add.reduceat(nl, self.starts, axis=1).T
        evidence[self.single] = 0.0  # says nothing about interactions
        return evidence

    def _node_evidence(self, mu: np.ndarray, theta: np.ndarray) -> np.ndarray:
        """The same for the main effects, from the combined margins; (n_nodes, 17)."""
        node = self.split.node_marginals(mu)
        information = self.n * node * (1 - node)
        residual = self.node_counts - self.n * node + information * self.split.main_effect(theta)
        variance = self.node_noise + information + information**2 * VARIANCE_GRID[:, None]
        log_density = -0.5 * (residual**2 / variance + np.log(variance))
        starts = np.flatnonzero(np.diff(self.split.node_of_state, prepend=-1))
        return np.add.reduceat(log_density, starts, axis=1).T


def _pseudo_huber(x: np.ndarray, variance: np.ndarray) -> tuple[float, np.ndarray]:
    """a sum(sqrt(1 + x^2/(a s)) - 1) and its gradient; quadratic with variance s near 0, linear far away."""
    root = np.sqrt(1 + x**2 / (TAIL * variance))
    return TAIL * float(np.sum(root - 1)), x / (variance * root)
