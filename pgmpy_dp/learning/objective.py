"""The objective of CollectiveMAP: negative log-likelihood of noisy tables, priors and entropy, with adaptive scales."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pgmpy_dp.inference.exact_or_loopy import InferenceEngine
from pgmpy_dp.learning.heavy_tailed_prior import (
    PRIOR_TAIL,
    VARIANCE_GRID,
    VARIANCE_SHAPE,
    pooled_variance,
    posterior_variances,
    pseudo_huber,
    pseudo_huber_curvature,
    table_evidence,
)
from pgmpy_dp.learning.interaction_split import InteractionSplit, free_share
from pgmpy_dp.learning.level_engine import leaf_scope
from pgmpy_dp.learning.maximum_likelihood import (
    maximize_likelihood,
    noise_aware_penalty,
    record_deviation,
    table_penalties,
)
from pgmpy_dp.learning.noise_likelihood import log_density, negative_log_density
from pgmpy_dp.learning.noisy_marginals import NoisyMarginals
from pgmpy_dp.learning.structural_zeros import engine_within

ENTROPY_SHARE, MARGIN_SHARE = 0.3, 0.5
"""Defaults of what shapes the prior."""

MAIN_TAIL = 0.1
"""Tail parameter of main effects, as a share of that of interactions: most variables of real tables have one or two
frequent states and rare ones, and noise must not even them out."""

_NAIVE, _WITHIN_NOISE = 15, 300
MOST_TO_START = 2 * _NAIVE + _WITHIN_NOISE
"""Iterations that a start takes at most."""

_UNEQUAL = 10.0
"""Noise of tables over one another from which on the entropy term is as weak as any table's own prior."""

_CAUTION = 0.8, 0.9
"""Parts of the learned variances of interactions and of main effects: too large costs more than too small."""


@dataclass(frozen=True)
class _State:
    """The quantities that depend on the point at which the objective was adapted."""

    t_cell: np.ndarray  # prior variance of each cell's interaction
    t_state: np.ndarray  # prior variance of each state's main effect
    variance: np.ndarray  # variance of the normal part of each cell
    entropy_weight: float


@dataclass(frozen=True)
class _Learned:
    """The variances that the evidence at theta speaks for, whatever the ceiling."""

    theta: np.ndarray
    mu: np.ndarray
    t_clique: np.ndarray
    t_node: np.ndarray


class CollectiveObjective:
    """The penalised negative log-likelihood F(theta), its gradient, and its adaptive scales.

    F = sum NL(N mu - y; v, b) + (1 - q) hub(I; t_C, a) + (1 - q (1 - w)) hub(phi; t_i, a/10)
        + k (-H(theta) + w sum_i H(mu_i))

    with I and phi the interactions and main effects of theta (`InteractionSplit`), hub the pseudo-Huber
    function, a its `prior_tail`, H entropies, b, N, y those of the release, q the `entropy_share` and w the
    `margin_share`.

    Interactions and main effects lie in subspaces: of the K x K cells of an interaction only (K - 1)^2 are free. So a
    prior of variance t per free direction leaves a cell the variance f t, with f the free share, 1/4 in a table of two
    binary variables, and K x K cells hold the evidence of f K^2 independent ones. Without that, t came out four times
    too small there, and as much too strong a prior.

    Sampling makes y uncertain too, but never contradictory: the tables of the records agree with one another. Where
    the released tables do not, it is the noise's doing, equal in all cells of a table, and a likelihood with the
    sampling variance N mu (1 - mu) in it would blame the large cells. So v has at most as much sampling variance as
    the cell has noise, by the harmonic sum of the two. Above that the prior hardly matters.
    """

    def __init__(
        self,
        noisy: NoisyMarginals,
        entropy_share: float,
        margin_share: float,
        memory_limit: int,
        engine: InferenceEngine | None = None,
        prior_tail: float = PRIOR_TAIL,
        variance_shape: float = VARIANCE_SHAPE,
        centre: np.ndarray | None = None,
    ) -> None:
        self.noisy = noisy
        self.centre = 0.0 if centre is None else centre
        within = noisy.impossible
        self.engine = engine or engine_within(noisy.cliques, within, memory_limit=memory_limit, levels=noisy.levels)
        self.split = InteractionSplit(noisy.cliques)
        self.q, self.w = entropy_share, margin_share
        self.tail, self.main_tail, self.shape = prior_tail, MAIN_TAIL * prior_tail, variance_shape
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
        # Of each cell, each variable and each state: the share of its table that is free.
        self.free_cell = noisy.cliques.spread(np.array([free_share(shape) for shape in noisy.cliques.shapes]))
        self.free_node = 1 - 1 / np.bincount(self.split.node_of_state)
        self.free_state = self.free_node[self.split.node_of_state]
        self.state_starts = np.flatnonzero(np.diff(self.split.node_of_state, prepend=-1))
        # Coarser levels' margins say nothing that the finest does not.
        self.finest = self._finest()[self.split.node_of_state]
        cell_variance = noisy.cell_variance
        self.node_counts, self.node_noise = self.split.combined_margins(self.y, cell_variance)
        self.interaction_variances = np.ones(noisy.cliques.n_cliques)
        self.node_variances = np.ones(self.split.n_nodes)
        self.ceiling, self.most = np.inf, np.full(noisy.cliques.n_cliques, np.inf)
        self.uniform_variance = np.nan
        self.uniform_evidence = np.nan
        self.preconditioner = np.ones(noisy.cliques.n_cells)
        self.state: _State | None = None
        self._learned: _Learned | None = None
        self._known: tuple[np.ndarray, np.ndarray] | None = None

    def start(self, callback: Callable[[], None] | None) -> np.ndarray:
        """The best of independence and naive fits, with penalties from the evidence at the uniform model.

        Tables that overlap and contradict one another drive a naive fit to cells of no probability, from which the
        likelihood does not lead back: a fit to page visits at epsilon .1 that started there had 500 nats less evidence.
        Where noise is small beside counts, a short naive fit is many times the noise away from them, where the noise's
        density is too straight to lead on. The last fit therefore goes on, with a penalty of each table's own.
        """
        noisy = self.noisy
        zero = np.zeros(noisy.cliques.n_cells)
        mu, log_cells = self.engine.calibrate(zero)
        self.uniform_variance = pooled_variance(self._interaction_evidence(mu, zero), self.shape)
        t0 = float(np.log1p(self.uniform_variance))
        penalty = noise_aware_penalty(noisy) / t0
        floor = float(self.scale.mean()) / self.n
        first = maximize_likelihood(
            self.engine, noisy.proportions, l2=penalty, start=zero, max_iter=_NAIVE, tol=1e-5, callback=callback
        ).x
        projected = noisy.projected_proportions()
        second = maximize_likelihood(
            self.engine, projected, l2=max(penalty, floor), start=first, max_iter=_NAIVE, tol=1e-5, callback=callback
        ).x
        third = self._within_noise(second, projected, t0, log_cells, callback)
        self._set_scales(zero, mu, np.full(noisy.cliques.n_cliques, t0), np.full(self.split.n_nodes, t0))
        self.uniform_evidence = -self._misfit(mu)
        return min((first, second, third, self._independent(mu)), key=lambda theta: self._terms(theta)[0])

    def _within_noise(
        self, start: np.ndarray, projected: np.ndarray, t0: float, log_cells: float, callback: Callable[[], None] | None
    ) -> np.ndarray:
        """The naive fit from `start` on, until a step gains less than a tenth of what noise costs.

        Noise of variance V makes V / (2 N mu) nats in a cell, by the divergence's second order; the table with the
        least of it decides. A decrease is told relative to the value, which without a base is at most `log_cells`.
        """
        variance = self.noisy.cell_variance
        costs = 0.5 * np.add.reduceat(variance / (self.n * projected + np.sqrt(variance)), self.starts)
        nats = max(float(costs.min()) * len(costs), 0.1)
        l2 = np.maximum(table_penalties(self.noisy) / t0, self.scale / self.n)
        return maximize_likelihood(
            self.engine,
            projected,
            l2=l2,
            start=start,
            max_iter=_WITHIN_NOISE,
            tol=0.0,
            decrease_tol=0.1 * nats / (self.n * max(abs(log_cells), 1.0)),
            expect_decrease=True,
            memory=20,
            scale=1 / record_deviation(self.noisy, projected, l2),
            callback=callback,
        ).x

    def _independent(self, mu: np.ndarray) -> np.ndarray:
        """The model at 0, of the marginals `mu`, with the main effects that the tables' margins speak for."""
        noise = np.sqrt(self.node_noise)  # what is below it may be as large as it
        ratio = (np.maximum(self.node_counts, 0.0) + noise) / (self.n * self.split.node_marginals(mu) + noise)
        return self.split.spread_to_cells(self.finest * np.log(ratio))

    def _finest(self) -> np.ndarray:
        """1 for each variable that the tables have, and of one at several levels for the one with the most states."""
        cliques, levels = self.noisy.cliques, self.noisy.levels
        by_size = sorted(self.split.nodes, key=lambda i: cliques.cardinalities[i])
        best = {leaf_scope((cliques.variables[i],), levels): i for i in by_size}
        return np.isin(self.split.nodes, list(best.values())).astype(float)

    def adapt(self, theta: np.ndarray) -> None:
        """Learn the prior variances at theta, and set the cells' variances and the preconditioner."""
        learned = self._learn(theta)
        t_clique = np.minimum(learned.t_clique, np.minimum(self.ceiling, self.most))
        if self.noisy.levels:  # evidence of well-known coarse tables lets no ceiling be tried, and the finest runs away
            self.most = t_clique
        t_clique[self.single] = learned.t_node[self.single_node]
        self._set_scales(theta, learned.mu, t_clique, learned.t_node)

    def ceiling_binds(self, theta: np.ndarray) -> bool:
        """Whether `adapt` at theta would learn other variances without the ceiling."""
        return bool((self._learn(theta).t_clique > self.ceiling).any())

    def value_and_gradient(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """F(theta) and its gradient, shape (n_cells,), at the scales of the last `adapt`."""
        value, pull, interaction_slope, main_slope = self._terms(theta)
        gradient = self.engine.derivative(pull)
        gradient += self.split.decompose_adjoint(interaction_slope, main_slope)
        return value, gradient

    def prior_value_and_gradient(
        self, theta: np.ndarray, mu: np.ndarray, log_partition: float
    ) -> tuple[float, np.ndarray]:
        """F(theta) without the likelihood, at the engine's last calibration, which gave the other arguments."""
        value, pull, interaction_slope, main_slope = self._with_priors(theta, mu, log_partition, 0.0, np.zeros_like(mu))
        return value, self.engine.derivative(pull) + self.split.decompose_adjoint(interaction_slope, main_slope)

    def _terms(self, theta: np.ndarray) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
        """F(theta), and its derivatives with respect to marginals, interactions and main effects."""
        state = self.state
        assert state is not None
        mu, log_partition = self.engine.calibrate(theta)
        nl, nl_slope = negative_log_density(self.n * mu - self.y, state.variance, self.noisy.noise, self.scale)
        return self._with_priors(theta, mu, log_partition, float(nl.sum()), self.n * nl_slope)

    def _with_priors(
        self, theta: np.ndarray, mu: np.ndarray, log_partition: float, value: float, pull: np.ndarray
    ) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
        """`_terms`, from the likelihood's value and its derivative with respect to marginals, which is added to."""
        state = self.state
        assert state is not None
        interaction, main = self.split.decompose(theta)
        interaction_value, interaction_slope = pseudo_huber(interaction, state.t_cell, self.tail)
        main_value, main_slope = pseudo_huber(main, state.t_state, self.main_tail)
        interaction_weight, main_weight = 1 - self.q, 1 - self.q * (1 - self.w)
        value = value + interaction_weight * interaction_value + main_weight * main_value
        if state.entropy_weight > 0:
            node = self.split.node_marginals(mu)
            log_node = self.finest * np.log(np.maximum(node, np.finfo(float).tiny))
            value += state.entropy_weight * (theta @ mu - log_partition - self.w * float(node @ log_node))
            pull += state.entropy_weight * (theta - self.w * self.split.spread_to_cells(log_node))
        return value, pull, interaction_weight * interaction_slope, main_weight * main_slope

    def log_evidence(self, theta: np.ndarray) -> float:
        """Laplace approximation of log p(y) at a fit under the current prior variances.

        log p(y | theta) + log p(theta) + (1/2) log det(2 pi / curvature), with the curvature of cells and states
        taken as diagonal. The determinant is Occam's factor: a variance t that is large against what the data
        determine costs (1/2) log(1 + t h) for each cell of data curvature h.
        """
        state = self.state
        assert state is not None
        mu = self._marginals(theta)
        information, sampling = self._sampling(mu)
        node = self.split.node_marginals(mu)
        node_information = self.n * node * (1 - node)
        cell_curvature = information**2 / (self.scale**2 + sampling)
        node_curvature = node_information**2 / (self.node_noise + node_information)
        effects = self.split.decompose(theta)
        interaction, _ = pseudo_huber(effects[0], state.t_cell, self.tail)
        main, _ = pseudo_huber(effects[1], state.t_state, self.main_tail)
        occam = (self.interacting * self.free_cell) @ np.log1p(state.t_cell * cell_curvature)
        occam += self.free_state @ np.log1p(state.t_state * node_curvature)
        return -self._misfit(mu) - interaction - main - 0.5 * float(occam)

    def scale_evidence(self, mu: np.ndarray, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Evidence of each interaction's and each node's prior variance, at theta and the marginals that it gives.

        Shapes (n_cliques, 28), (n_nodes, 28).
        """
        return self._interaction_evidence(mu, theta), self._node_evidence(mu, theta)

    def _misfit(self, mu: np.ndarray) -> float:
        """-log p(y | mu) with the sampling variance of the model itself."""
        _, sampling = self._sampling(mu)
        return -float(log_density(self.n * mu - self.y, sampling, self.noisy.noise, self.scale).sum())

    def _marginals(self, theta: np.ndarray) -> np.ndarray:
        """mu(theta), kept for the next question about the same array; nothing here changes one in place."""
        if self._known is None or self._known[0] is not theta:
            self._known = theta, self.engine.calibrate(theta)[0]
        return self._known[1]

    def _learn(self, theta: np.ndarray) -> _Learned:
        """The variances that the evidence at theta speaks for; the last answer is kept for the next ceiling."""
        if self._learned is None or self._learned.theta is not theta:
            mu = self._marginals(theta)
            cautious_clique, cautious_node = _CAUTION
            t_clique = cautious_clique * posterior_variances(self._interaction_evidence(mu, theta), self.shape)
            t_node = cautious_node * posterior_variances(self._node_evidence(mu, theta), self.shape)
            self._learned = _Learned(theta, mu, t_clique, t_node)
        return self._learned

    def _set_scales(self, theta: np.ndarray, mu: np.ndarray, t_clique: np.ndarray, t_node: np.ndarray) -> None:
        cliques = self.noisy.cliques
        self.interaction_variances, self.node_variances = t_clique, t_node
        t_cell = cliques.spread(t_clique)
        entropy_weight = self.q * (cliques.n_cells / cliques.n_cliques) / float(t_cell.mean())
        scale = self.noisy.scale
        if self.noisy.levels or scale.max() > _UNEQUAL * scale.min():
            # One weight for the nation and its tracts, or for what is known exactly and what is not: no more than the
            # prior of any of the tables has by itself, or all margins would be pulled as hard as the finest cells are.
            entropy_weight = self.q * float((np.array(cliques.sizes) / t_clique).min())
        information, sampling = self._sampling(mu)
        interaction = self.split.interaction(theta)
        data_curvature = information**2 / (self.scale**2 + sampling)
        curvature = data_curvature + pseudo_huber_curvature(interaction, t_cell, self.tail)
        self.state = _State(
            t_cell=t_cell,
            t_state=t_node[self.split.node_of_state],
            variance=sampling + 0.5 * self.free_cell * information**2 / curvature,
            entropy_weight=entropy_weight,
        )
        self.preconditioner = curvature**-0.5

    def _sampling(self, mu: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """J = N mu (1 - mu), and the normal variance of each cell: J or less, plus a floor that keeps it smooth."""
        information = self.n * mu * (1 - mu)
        noise = self.noisy.cell_variance
        return information, information * noise / (information + noise) + 1e-4 * self.scale**2

    def _interaction_evidence(self, mu: np.ndarray, theta: np.ndarray) -> np.ndarray:
        """log p(y_C | s) of each table for each s on the grid, linearised in the interactions; (n_cliques, 28)."""
        # How strong interactions are is learned from all of them: those that are because cells are empty count too.
        evidence = table_evidence(self.noisy, mu, self.split.interaction(theta + self.centre))
        evidence[self.single] = 0.0  # says nothing about interactions
        return evidence

    def _node_evidence(self, mu: np.ndarray, theta: np.ndarray) -> np.ndarray:
        """log p(y | s) of each node's main effects for each s on the grid, from the combined margins; (n_nodes, 28)."""
        node = self.split.node_marginals(mu)
        information = self.n * node * (1 - node)
        residual = self.node_counts - self.n * node + information * self.split.main_effect(theta)
        variance = self.node_noise + information + information**2 * self.free_state * VARIANCE_GRID[:, None]
        log_p = -0.5 * (residual**2 / variance + np.log(variance))
        return self.free_node[:, None] * np.add.reduceat(log_p, self.state_starts, axis=1).T
