"""The benchmark's populations are what they are said to be; mbi is not needed."""

import networkx as nx
import numpy as np
import pytest

from benchmarks.divergence import kl_divergence
from benchmarks.populations import KINDS, make_graph, make_population, noisy_tables, sample_counts
from benchmarks.settings import full_settings, quick_settings
from pgmpy_dp.inference.log_linear import LogLinearModel


def test_third_order_chain_has_the_edges_of_the_paper() -> None:
    graph = make_graph("chain3", 10, np.random.default_rng(0))
    expected = {(f"x{i}", f"x{j}") for i in range(10) for j in range(10) if 1 <= j - i <= 3}
    assert {tuple(sorted(edge)) for edge in graph.edges} == expected


@pytest.mark.parametrize("seed", range(5))
def test_random_graphs_are_connected_and_as_dense_as_said(seed: int) -> None:
    graph = make_graph("er", 30, np.random.default_rng(seed))
    assert nx.is_connected(graph)
    # 435 pairs at .3: four standard deviations of the binomial are 38.
    assert abs(graph.number_of_edges() - 130.5) < 38


def test_unknown_kind_is_named() -> None:
    with pytest.raises(ValueError, match="'ring'"):
        make_graph("ring", 10, np.random.default_rng(0))


@pytest.mark.parametrize("kind", KINDS)
def test_a_population_is_the_same_in_every_run_and_another_for_another_index(kind: str) -> None:
    first, again, other = (make_population(kind, seed=3, index=index, n_states=4) for index in (0, 0, 1))
    np.testing.assert_array_equal(first.model.theta, again.model.theta)
    assert first.model.theta.shape != other.model.theta.shape or np.any(first.model.theta != other.model.theta)
    assert first.rng("noise", 1).random() == again.rng("noise", 1).random() != first.rng("noise", 2).random()


def test_potentials_are_dirichlet_draws() -> None:
    model = make_population("chain3", seed=1, index=0).model
    tables = np.exp(model.theta).reshape(24, 100)
    np.testing.assert_allclose(tables.sum(axis=1), 1.0)
    # A cell of Dirichlet(1) over 100 cells is Beta(1, 99), whose mean square is 2 / (100 * 101).
    assert np.mean(tables**2) == pytest.approx(2 / 10100, rel=0.15)


def test_variants_differ_from_the_plain_graph_in_what_they_say() -> None:
    plain, weak, half, unequal = (
        make_population(k, seed=1, index=0).model for k in ("er", "er_weak", "er_half", "er_unequal")
    )
    assert plain.cliques == weak.cliques == half.cliques
    assert plain.cliques.scopes == unequal.cliques.scopes
    silent = [not np.any(table) for table in half.cliques.split(half.theta)]
    assert sum(silent) == half.cliques.n_cliques // 2
    assert len(set(unequal.cliques.cardinalities)) > 1
    assert min(unequal.cliques.cardinalities) >= 2
    assert max(unequal.cliques.cardinalities) <= 15
    uniform = LogLinearModel(plain.cliques, np.zeros(plain.cliques.n_cells))
    assert kl_divergence(weak, uniform) < 0.3 * kl_divergence(plain, uniform)


def test_sampled_tables_follow_the_model() -> None:
    population = make_population("er", seed=2, index=0, n_states=3)
    n = 450_000  # three batches
    counts = sample_counts(population.model, n, population.rng("records"))
    assert all(table.sum() == n for table in population.model.cliques.split(counts))
    expected = n * population.model.marginals()
    z = (counts - expected) / np.sqrt(expected * (1 - expected / n))
    assert np.abs(z).max() < 5
    assert 0.6 < np.std(z) < 1.4


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 20.0])
def test_noise_has_the_scale_of_the_release(epsilon: float) -> None:
    cliques = make_population("chain1", seed=1, index=0, n_states=60).model.cliques
    noisy = noisy_tables(cliques, np.zeros(cliques.n_cells), epsilon, np.random.default_rng(5), total=1000)
    assert noisy.scale.tolist() == [9 / epsilon] * 9
    # Mean size of the discrete Laplace distribution with ratio q = exp(-epsilon / 9).
    q = np.exp(-epsilon / 9)
    expected = 2 * q / (1 - q**2)
    assert np.abs(noisy.counts).mean() == pytest.approx(expected, rel=0.05)
    assert np.abs(noisy.counts.mean()) < 5 * np.sqrt(2) * (9 / epsilon) / np.sqrt(cliques.n_cells)
    np.testing.assert_array_equal(noisy.counts, np.rint(noisy.counts))


def test_the_full_mode_has_ninety_settings_and_the_quick_one_samples_them() -> None:
    assert len(set(full_settings())) == 90
    assert set(quick_settings()) < set(full_settings())
    assert {setting.kind for setting in quick_settings()} == set(KINDS)
