"""CollectiveMAP where interactions are weak or absent, and around a prior model."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from benchmarks.divergence import kl_divergence
from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.learning.interaction_split import InteractionSplit, free_share
from pgmpy_dp.learning.maximum_a_posteriori import collective_map
from pgmpy_dp.learning.maximum_likelihood import naive_mle
from pgmpy_dp.learning.noisy_marginals import NoisyMarginals
from pgmpy_dp.learning.prior_model import collective_map_with_prior, prior_potentials, tables_of_prior
from pgmpy_dp.models.posterior.posterior_sampling import sample_posterior


def drawn(graph: nx.Graph, states: int, seed: int, n: int, scale: float, alpha: float = 1.0, strength: float = 1.0):
    """A model with Dirichlet(alpha) potentials on the edges of a graph, and noisy tables of records from it."""
    rng = np.random.default_rng(seed)
    cliques = Cliques.from_graph(graph, dict.fromkeys(graph, states))
    truth = LogLinearModel(
        cliques, strength * np.log(rng.dirichlet(np.full(states**2, alpha), cliques.n_cliques)).ravel()
    )
    codes = truth.sample(n, rng)
    cells = [codes[:, i] * states + codes[:, j] for i, j in cliques.indices]
    counts = np.concatenate([np.bincount(cell, minlength=states**2) for cell in cells])
    noise = np.rint(rng.laplace(0, scale, len(counts)))
    return truth, NoisyMarginals(cliques, counts + noise, "laplace", np.full(cliques.n_cliques, scale), total=n)


def geometric_mean(values):
    return float(np.exp(np.mean(np.log(values))))


class TestWeakInteractions:
    def test_free_shares_are_dimensions_of_interactions(self):
        assert free_share((2, 2)) == 1 / 4
        assert free_share((3, 4)) == 6 / 12
        assert free_share((2, 2, 2)) == 4 / 8  # three pairs and the triple
        assert free_share((5,)) == 4 / 5
        for shape in ((2, 2), (3, 4), (2, 3, 2)):
            names = tuple("abc"[: len(shape)])
            split = InteractionSplit(Cliques(names, shape, (names,)))
            projector = np.array([split.interaction(row) for row in np.eye(np.prod(shape))])
            assert np.trace(projector) / np.prod(shape) == pytest.approx(free_share(shape))

    def test_the_variance_is_that_of_a_free_direction(self):
        """Effects of +-x in all four cells are one direction of length 2x; they were taken for four of variance x^2."""
        chain, x = nx.path_graph(16), 0.5
        cliques = Cliques.from_graph(chain, dict.fromkeys(chain, 2))
        truth = LogLinearModel(cliques, np.tile([x, -x, -x, x], cliques.n_cliques))
        n = 100_000
        noisy = NoisyMarginals(
            cliques, np.rint(n * truth.marginals()), "laplace", np.full(cliques.n_cliques, 5.0), total=n
        )
        variances = collective_map(noisy).details["interaction_variances"]
        assert (np.abs(variances / (4 * x**2) - 0.8) < 0.2).all()

    def test_binary_grids_are_not_shrunk_too_much(self):
        grid = nx.convert_node_labels_to_integers(nx.grid_2d_graph(4, 4))
        ratios = []
        for seed in range(6):
            truth, noisy = drawn(grid, 2, seed, 20_000, 120.0, alpha=4.0)
            ratios.append(
                kl_divergence(truth, collective_map(noisy).model) / kl_divergence(truth, naive_mle(noisy).model)
            )
        assert geometric_mean(ratios) < 1.1  # 1.24 with four times too strong a prior

    def test_contradictions_between_tables_are_the_noise_and_not_the_sampling(self):
        """Two tables contradict one another about a; what has equal noise has an equal say, however large the cells."""
        cliques = Cliques(("a", "b", "c"), (2, 2, 2), (("a", "b"), ("a", "c")))
        even = np.array([250_000.0, 250_000, 250_000, 250_000])
        uneven = np.array([507_000.0, 1_000, 491_000, 1_000])
        noisy = NoisyMarginals(cliques, np.append(even, uneven), "gaussian", np.full(2, 100.0), total=1_000_000)
        fitted = collective_map(noisy).model.marginal(["a"])[0]
        assert (
            0.504 < fitted < 0.5047
        )  # halfway is .504; .5048 with the sampling variance of large cells in the weights

    def test_absent_interactions_shrink_to_nothing_where_there_are_many_records(self):
        chain = nx.path_graph(9)
        cliques = Cliques.from_graph(chain, dict.fromkeys(chain, 8))
        rng = np.random.default_rng(0)
        potentials = np.log(rng.dirichlet(np.ones(64), 8))
        potentials[::2] = 0.0
        truth, n = LogLinearModel(cliques, potentials.ravel()), 1_000_000
        counts = rng.multinomial(n, np.full(64, 1 / 64), 8).ravel() - n / 64 + n * truth.marginals()  # about as sampled
        noisy = NoisyMarginals(
            cliques, counts + np.rint(rng.laplace(0, 200, 512)), "laplace", np.full(8, 200.0), total=n
        )
        fit = collective_map(noisy)
        split = InteractionSplit(cliques)
        absent = split.interaction(fit.model.theta).reshape(8, -1)[::2]
        naive = split.interaction(naive_mle(noisy).model.theta).reshape(8, -1)[::2]
        assert np.square(absent).mean() < 0.5 * np.square(naive).mean()
        assert (fit.details["interaction_variances"][::2] < 0.003).all()


@pytest.fixture(scope="module")
def settings():
    """Graphs, records and noise from nothing to learn to hardly any noise."""
    graph = nx.convert_node_labels_to_integers(nx.grid_2d_graph(2, 3))
    cases = [(1_000, 300.0), (1_000, 30.0), (10_000, 100.0), (100_000, 30.0)]
    found = [(*drawn(graph, 3, seed, n, scale), seed) for n, scale in cases for seed in (1, 2)]
    return [(truth, noisy, seed, kl_divergence(truth, collective_map(noisy).model)) for truth, noisy, seed in found]


def ratios(settings, prior_of):
    """Divergence with a prior over that without."""
    found = []
    for truth, noisy, seed, alone in settings:
        theta = prior_of(truth.theta, np.random.default_rng(100 + seed))
        tables = truth.cliques.split(LogLinearModel(truth.cliques, theta).marginals())
        fit = collective_map_with_prior(noisy, tables)
        found.append(kl_divergence(truth, fit.model) / alone)
    return np.array(found)


class TestPriors:
    def test_a_right_prior_is_worth_a_lot_where_there_are_few_records(self, settings):
        found = ratios(settings, lambda theta, rng: theta + 0.05 * rng.normal(size=len(theta)))
        assert geometric_mean(found) < 0.25
        assert found.max() < 1.0 + 1e-9

    @pytest.mark.parametrize(
        "prior_of",
        [
            lambda theta, rng: -theta,
            pytest.param(lambda theta, rng: 3 * rng.permutation(theta), marks=pytest.mark.slow),
            lambda theta, rng: rng.permutation(theta),
            lambda theta, rng: np.where(rng.random(len(theta)) < 0.2, 0.0, -1e3),  # nearly everything is impossible
        ],
        ids=["opposite", "strong", "other", "impossible"],
    )
    def test_a_wrong_one_costs_at_most_two_hundredths(self, settings, prior_of):
        assert geometric_mean(ratios(settings, prior_of)) <= 1.02

    def test_the_fit_says_what_the_evidence_was(self, settings):
        truth, noisy, *_ = settings[4]
        for sign, used in ((1, True), (-1, False)):
            tables = truth.cliques.split(LogLinearModel(truth.cliques, sign * truth.theta).marginals())
            fit = collective_map_with_prior(noisy, tables)
            assert ("base" in fit.details) == used == (fit.details["prior_gain"] > 3)
            assert ("with the prior" in fit.status) == used
        assert "prior_gain" not in collective_map_with_prior(noisy, None).details

    def test_potentials_of_tables_that_a_model_of_the_graph_has(self):
        cliques = Cliques(("a", "b", "c"), (2, 3, 2), (("a", "b"), ("b", "c")))
        model = LogLinearModel(cliques, np.random.default_rng(0).normal(size=12))
        again = prior_potentials(cliques, cliques.split(model.marginals()))
        np.testing.assert_allclose(LogLinearModel(cliques, again).marginals(), model.marginals(), atol=2e-5)

    def test_tables_of_a_prior_with_other_cliques_and_other_variables(self):
        prior = LogLinearModel(
            Cliques(("a", "b", "c"), (2, 2, 2), (("a", "b"), ("b", "c"))), np.random.default_rng(1).normal(size=8)
        )
        across, beside, none = tables_of_prior(prior, [("c", "a"), ("d", "b"), ("d",)], {"d": 3})
        np.testing.assert_allclose(across, prior.marginal(["c", "a"]))
        np.testing.assert_allclose(beside, np.outer(np.full(3, 1 / 3), prior.marginal(["b"])))
        np.testing.assert_allclose(none, np.full(3, 1 / 3))

    def test_draws_from_the_posterior_are_around_the_prior(self):
        """With noise that hides everything, what is left is the prior, and not the uniform model."""
        cliques = Cliques(("a", "b"), (2, 2), (("a", "b"),))
        base = np.log([0.6, 0.1, 0.1, 0.2])
        noisy = NoisyMarginals(cliques, np.array([600.0, 100, 100, 200]), "laplace", np.array([1e4]), total=1000)
        fit = collective_map(noisy, base=base, margin_share=0.0)
        posterior = sample_posterior(noisy, fit, np.random.default_rng(0), n_draws=200)
        centre = np.median(posterior.theta, axis=0)
        split = InteractionSplit(cliques)
        np.testing.assert_allclose(split.interaction(centre), split.interaction(base), atol=0.15)
        assert abs(split.interaction(base)[0]) > 0.3
