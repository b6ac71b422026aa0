"""The perturbed objectives of `posterior`, and its covariance and curvature, dense or by products.

Why c is not 1: the evidence for t_g comes from the cells above the noise, and the log-probabilities of populations are
skewed to the left, so what hides in the noise spreads further than what shows. On tuning populations of weak signal
t_g came out a third of the true variance of interactions and an eighth of that of main effects, and with c = 1 nearly
three in ten intervals miss. The sampler is not what falls short: Gibbs sampling of the same symmetric model, t_g given
theta and theta given t_g by HMC, covers .83 to .84. Draws (x_k, f_k) of a skewed shape and the same variance change
nothing. c was chosen on tuning seeds, not derived; it matters only where the release says little.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple, cast

import numpy as np
from scipy.linalg import cho_solve, solve_triangular

from pgmpy_dp.inference.batch import SumProductBatch
from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.learning.heavy_tailed_prior import PRIOR_TAIL, VARIANCE_SHAPE, draw_variances, pseudo_huber_variance
from pgmpy_dp.learning.interaction_split import InteractionSplit
from pgmpy_dp.learning.maximum_likelihood import Fit
from pgmpy_dp.learning.noisy_marginals import NoisyMarginals
from pgmpy_dp.learning.objective import CollectiveObjective
from pgmpy_dp.learning.structural_zeros import engine_within

_HIDDEN_SPREAD = 4 / 3
"""Prior variances of the draws over those that visible cells speak for, of a free direction. With .8 (c = 2.2) models
of Erdos-Renyi graphs and third-order chains at 1e4 records and epsilon .1 cover .84, with 4/3 (c = 3.6) .88 to .90;
with 1.8 (c = 4.8) weak interactions get 14 % wider intervals. (Ten states: .81 of a table's cells are free.)"""

_SHARED = 10.0
"""Weight of the counts in the diagonal whitening, where ten tables have each variable. Tables of the same variables
speak for the same directions, of which the diagonal counts each once; so weighed, draws are as near to their optima
after 30 evaluations as else after 40. With the same weight for a variable that one table alone has, its draws have
.5 to .65 of their deviation after 40, and with the number of tables 1.2 to 1.3; with the root of both .9 to 1.1."""

_RESOLUTION = 1e-10
"""Smallest part of a matrix's largest diagonal entry that its Cholesky factor resolves safely."""


class Case(NamedTuple):
    """One objective: perturbed data and prior means, and the prior variances of the draw; or arrays of several."""

    counts: np.ndarray
    total: float | np.ndarray
    t_cell: np.ndarray
    t_state: np.ndarray
    interaction: np.ndarray
    main: np.ndarray


class Target:
    """The (perturbed) negative log posterior in theta, at prior variances drawn beforehand."""

    def __init__(self, noisy: NoisyMarginals, fit: Fit, n_draws: int, rng: np.random.Generator) -> None:
        model = fit.model
        # The centre of the fit's prior: 0, the uniform model, unless cells are believed empty or another was passed.
        base = fit.details.get("base", np.zeros(noisy.cliques.n_cells))
        noisy, base, floors = fit.details.get("empty_cells", (noisy, base, []))
        centre = base if "empty_cells" in fit.details else None
        engine = engine_within(
            noisy.cliques,
            noisy.impossible,
            make=lambda layout: SumProductBatch(layout, n_draws, memory_limit=model.memory_limit),
            levels=noisy.levels,
        )
        self.batch = cast(SumProductBatch, engine)  # or what obeys boxes around one
        # The shares and the engine only matter to CollectiveMAP's own objective, which is not used here.
        objective = CollectiveObjective(noisy, 0.0, 0.0, model.memory_limit, engine, centre=centre)
        self.noisy, self.model, self.split = noisy, model, objective.split
        self._splits = InteractionSplit(_side_by_side(noisy.cliques, self.batch.n))
        self.centre = self.identified(fit.details.get("theta", model.theta))
        self.base_interaction, self.base_main = self.split.decompose(base)
        self.floors = floors
        self.mu = self.batch.calibrate(np.tile(self.centre, (self.batch.n, 1)))[0][0]
        evidence = objective.scale_evidence(self.mu, self.centre - self.identified(base))
        # The fit's own prior; other methods' fits have none, and get the default one.
        ratio = _HIDDEN_SPREAD * pseudo_huber_variance(fit.details.get("prior_tail", PRIOR_TAIL))
        shape = fit.details.get("variance_shape", VARIANCE_SHAPE)
        self.t_clique, self.t_node = (ratio * draw_variances(part, n_draws, rng, shape) for part in evidence)
        self.noise_variance = noisy.cell_variance

    def identified(self, theta: np.ndarray) -> np.ndarray:
        """Another theta of the same model, without the directions that no model depends on."""
        return self.split.interaction(theta) + self.split.spread_to_cells(self.split.main_effect(theta))

    def typical_variances(self) -> tuple[np.ndarray, np.ndarray]:
        """Geometric means over the draws of each table's and each node's prior variance."""
        return np.exp(np.log(self.t_clique).mean(axis=0)), np.exp(np.log(self.t_node).mean(axis=0))

    def perturbed(self, metric: Metric, k: int, rng: np.random.Generator) -> Case:
        """Objective k: noise on the counts, and prior means drawn from the prior."""
        noisy = self.noisy
        t_cell, t_state = noisy.cliques.spread(self.t_clique[k]), self.t_node[k][self.split.node_of_state]
        counts = noisy.counts + metric.error(rng)
        interaction = self.split.interaction(rng.normal(size=len(t_cell)) * np.sqrt(t_cell))
        main = self.split.main_effect(self.split.spread_to_cells(rng.normal(size=len(t_state)) * np.sqrt(t_state)))
        interaction, main = self.base_interaction + interaction, self.base_main + main
        if self.floors:
            # Whether cells that are believed empty are so is one question for all of a pair, which each draw answers.
            moved = np.zeros(len(counts))
            for floor in self.floors:
                factors = floor.factors(rng)
                counts[floor.cells] = noisy.counts[floor.cells] * factors
                moved[floor.cells[floor.in_base]] += np.log(factors[floor.in_base])
            further = self.split.decompose(moved)
            interaction, main = interaction + further[0], main + further[1]
        return Case(counts, replace(noisy, counts=counts).n_records, t_cell, t_state, interaction, main)

    def value_and_gradient(self, metric: Metric, case: Case, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """F of each case of a batch at its row of theta, and gradients; infinite where these leave floats' range."""
        total, shape = np.asarray(case.total)[:, None], theta.shape
        mu, _ = self.batch.calibrate(theta)
        residual = total * mu - case.counts
        pull = metric.solve(residual)
        # A separator's probability can be a subnormal number, far from any fit, and its reciprocal infinite.
        with np.errstate(over="ignore", invalid="ignore"):
            gradient = total * self.batch.derivative(pull)
        sound = np.isfinite(gradient).all(axis=1)
        interaction, main = self.decompose(theta)
        interaction, main = interaction - case.interaction, main - case.main
        scaled_interaction, scaled_main = interaction / case.t_cell, main / case.t_state
        value = (residual * pull).sum(axis=1) + (interaction * scaled_interaction).sum(axis=1)
        value = np.where(sound, 0.5 * (value + (main * scaled_main).sum(axis=1)), np.inf)
        gradient += self._splits.decompose_adjoint(scaled_interaction.ravel(), scaled_main.ravel()).reshape(shape)
        return value, np.where(sound[:, None], gradient, 0.0)

    def decompose(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Interactions and main effects of a batch, in rows."""
        interaction, main = self._splits.decompose(theta.ravel())
        return interaction.reshape(theta.shape), main.reshape(len(theta), -1)

    def whitened(self, metric: Metric, case: Case, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Compute F and its gradient as a function of z, theta = centre + whiten(z)."""
        value, gradient = self.value_and_gradient(metric, case, self.centre + metric.whiten(z))
        return value, metric.whiten_adjoint(gradient)


def _side_by_side(cliques: Cliques, n: int) -> Cliques:
    """As many models at once, of variables that are in one of them each."""
    return Cliques(
        tuple((k, name) for k in range(n) for name in cliques.variables),
        cliques.cardinalities * n,
        tuple(tuple((k, name) for name in scope) for k in range(n) for scope in cliques.scopes),
    )


class DenseMetric:
    """C and the curvature at the fit as dense matrices."""

    def __init__(self, target: Target) -> None:
        noisy, n = target.noisy, target.batch.n
        identity = np.eye(noisy.cliques.n_cells)

        def matrix(product: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
            """The matrix of a linear map of n vectors, from its products with the unit vectors."""
            d = len(identity)
            return np.concatenate([product(np.resize(identity[k : k + n], (n, d))) for k in range(0, d, n)])[:d]

        a = noisy.n_records * matrix(target.batch.derivative)
        a = (a + a.T) / 2
        # A is singular: where it exceeds the noise by ten orders of magnitude, C needs help to stay positive definite.
        noise_variance = np.maximum(target.noise_variance, _RESOLUTION * a.diagonal().max())
        self._error_factor = np.linalg.cholesky(a + np.diag(noise_variance))
        self._inverse = cho_solve((self._error_factor, True), identity)
        half = solve_triangular(self._error_factor, a, lower=True)
        t_clique, t_node = target.typical_variances()
        curvature = half.T @ half
        curvature += matrix(lambda rows: target.decompose(rows)[0]) / noisy.cliques.spread(t_clique)
        effects = matrix(lambda rows: target.decompose(rows)[1])
        curvature += effects / t_node[target.split.node_of_state] @ effects.T
        # Directions that no model depends on have no curvature; any will do, they are projected out of the draws.
        curvature += max(1e-3 / float(t_clique.max()), _RESOLUTION * curvature.diagonal().max()) * identity
        self._factor = np.linalg.cholesky((curvature + curvature.T) / 2)

    def error(self, rng: np.random.Generator) -> np.ndarray:
        return self._error_factor @ rng.normal(size=len(self._error_factor))

    def solve(self, vectors: np.ndarray) -> np.ndarray:
        return vectors @ self._inverse

    def whiten(self, z: np.ndarray) -> np.ndarray:
        return solve_triangular(self._factor, z.T, lower=True, trans=1).T

    def whiten_adjoint(self, gradients: np.ndarray) -> np.ndarray:
        return solve_triangular(self._factor, gradients.T, lower=True).T


class DiagonalMetric:
    """1/C for its diagonal alone, as `CollectiveMAP` itself has it, and a diagonal whitening.

    Errors are drawn from all of C. So a draw is the estimate that the weighted objective gives from other records and
    other noise. On fits where both metrics can be had, its standard deviations are those of the dense one within 2 %.
    """

    def __init__(self, target: Target) -> None:
        noisy = target.noisy
        self._batch, self._errors = target.batch, list[np.ndarray]()
        self._n, self._noise_variance, self._mu = noisy.n_records, target.noise_variance, target.mu
        information = self._n * self._mu * (1 - self._mu)
        self._total = information + self._noise_variance
        tables_of = np.bincount(np.concatenate(noisy.cliques.indices))
        weight = np.array([(_SHARED * tables_of[list(scope)].mean()) ** 0.5 for scope in noisy.cliques.indices])
        prior = noisy.cliques.spread(target.typical_variances()[0])
        self._scale = (noisy.cliques.spread(weight) * information**2 / self._total + 1 / prior) ** -0.5

    def error(self, rng: np.random.Generator) -> np.ndarray:
        if not self._errors:  # before anything else is calibrated
            self._errors = list(self._batch.sampling_errors(rng)[:, : len(self._mu)])
        sampling = math.sqrt(self._n) * self._errors.pop()
        return sampling + np.sqrt(self._noise_variance) * rng.normal(size=len(sampling))

    def solve(self, vector: np.ndarray) -> np.ndarray:
        return vector / self._total

    def whiten(self, z: np.ndarray) -> np.ndarray:
        return self._scale * z

    def whiten_adjoint(self, gradient: np.ndarray) -> np.ndarray:
        return self._scale * gradient


Metric = DenseMetric | DiagonalMetric
