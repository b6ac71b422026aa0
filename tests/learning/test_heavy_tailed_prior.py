"""The split of parameters and the evidence of their scales, against slow twins."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.learning.heavy_tailed_prior import (
    VARIANCE_GRID,
    draw_variances,
    pooled_variance,
    posterior_variances,
    pseudo_huber,
    pseudo_huber_curvature,
    pseudo_huber_variance,
)
from pgmpy_dp.learning.interaction_split import InteractionSplit


def slow_split(cliques: Cliques, theta: np.ndarray):
    """Interactions and main effects, table by table."""
    used = sorted({i for scope in cliques.indices for i in scope})
    main = {i: np.zeros(cliques.cardinalities[i]) for i in used}
    interactions = []
    for scope, table in zip(cliques.indices, cliques.split(theta), strict=True):
        rest = table - table.mean()
        for axis, i in enumerate(scope):
            others = tuple(a for a in range(len(scope)) if a != axis)
            centred = table.mean(axis=others) - table.mean()
            main[i] = main[i] + centred
            rest = rest - centred.reshape([-1 if a == axis else 1 for a in range(len(scope))])
        interactions.append(rest)
    return cliques.join(interactions), np.concatenate([main[i] for i in used])


def test_split_equals_its_slow_twin(cliques):
    theta = np.random.default_rng(0).normal(size=cliques.n_cells)
    split = InteractionSplit(cliques)
    interaction, main = slow_split(cliques, theta)
    np.testing.assert_allclose(split.interaction(theta), interaction, atol=1e-12)
    np.testing.assert_allclose(split.main_effect(theta), main, atol=1e-12)
    for part, expected in zip(split.decompose(theta), (interaction, main), strict=True):
        np.testing.assert_allclose(part, expected, atol=1e-12)


def test_split_leaves_the_model_alone(cliques):
    """Interactions and main effects say all there is to say: only the constant and what cancels is lost."""
    theta = np.random.default_rng(1).normal(size=cliques.n_cells)
    split = InteractionSplit(cliques)
    main = split.main_effect(theta)
    rebuilt = split.interaction(theta) + split.spread_to_cells(main)
    np.testing.assert_allclose(
        LogLinearModel(cliques, rebuilt).marginals(), LogLinearModel(cliques, theta).marginals(), atol=1e-12
    )


def test_adjoints(cliques):
    rng = np.random.default_rng(2)
    split = InteractionSplit(cliques)
    x, y = rng.normal(size=(2, cliques.n_cells))
    effects = rng.normal(size=len(split.node_of_state))
    assert split.interaction(x) @ y == pytest.approx(x @ split.interaction(y), abs=1e-10)
    assert split.main_effect(x) @ effects == pytest.approx(x @ split.main_effect_adjoint(effects), abs=1e-10)
    assert split.node_marginals(x) @ effects == pytest.approx(x @ split.spread_to_cells(effects), abs=1e-10)
    np.testing.assert_allclose(split.interaction(split.interaction(x)), split.interaction(x), atol=1e-12)
    parts = split.decompose(x)
    both = parts[0] @ y + parts[1] @ effects
    assert both == pytest.approx(x @ split.decompose_adjoint(y, effects), abs=1e-10)


def test_combined_margins_are_the_best_linear_combination(cliques):
    rng = np.random.default_rng(3)
    counts, variance = rng.normal(size=cliques.n_cells), rng.uniform(0.5, 4.0, size=cliques.n_cliques)
    split = InteractionSplit(cliques)
    mean, mean_variance = split.combined_margins(counts, cliques.spread(variance))
    expected_mean, expected_variance = [], []
    for i in sorted({i for scope in cliques.indices for i in scope}):
        margins, variances = [], []
        for scope, table, v in zip(cliques.indices, cliques.split(counts), variance, strict=True):
            if i in scope:
                margins.append(table.sum(axis=tuple(a for a, j in enumerate(scope) if j != i)))
                variances.append(v * table.size / cliques.cardinalities[i])
        precision = 1 / np.array(variances)
        expected_mean.append(precision @ np.array(margins) / precision.sum())
        expected_variance.append(np.full(cliques.cardinalities[i], 1 / precision.sum()))
    np.testing.assert_allclose(mean, np.concatenate(expected_mean), atol=1e-12)
    np.testing.assert_allclose(mean_variance, np.concatenate(expected_variance), rtol=1e-12)


def evidence_of(samples: list[np.ndarray], noise: float) -> np.ndarray:
    """log p of parameters seen through normal noise, for each variance on the grid."""
    return np.array([[norm.logpdf(x, scale=np.sqrt(s + noise)).sum() for s in VARIANCE_GRID] for x in samples])


def slow_posterior(evidence: np.ndarray, shape: float) -> np.ndarray:
    log_s, centres = np.log(VARIANCE_GRID), np.log(np.geomspace(1e-5, 9.0, 55))
    total, moments = 0.0, np.zeros(len(evidence))
    for m in centres:
        for tau in (0.25, 0.5, 1.0, 2.0):
            prior = np.exp(-0.5 * ((log_s - m) / tau) ** 2)
            prior /= prior.sum()
            likelihood = np.exp(evidence - evidence.max(axis=1, keepdims=True)) * prior
            weight = np.exp(shape * m - np.exp(m)) * likelihood.sum(axis=1).prod()
            total += weight
            moments += weight * (likelihood @ log_s) / likelihood.sum(axis=1)
    return np.exp(moments / total)


@pytest.mark.parametrize("shape", [0.1, 0.5, 2.0])
def test_posterior_variances_equal_their_slow_twin(shape):
    rng = np.random.default_rng(4)
    evidence = evidence_of([rng.normal(scale=s, size=20) for s in (0.1, 0.7, 2.0)], noise=0.5)
    np.testing.assert_allclose(posterior_variances(evidence, shape), slow_posterior(evidence, shape), rtol=1e-9)


def test_variances_are_recovered_where_the_signal_is_strong():
    rng = np.random.default_rng(5)
    true = np.array([0.02, 0.3, 3.0])
    evidence = evidence_of([rng.normal(scale=np.sqrt(s), size=4000) for s in true], noise=1e-6)
    # The grid steps by a factor of 1.65, so the posterior may sit on the neighbouring point.
    assert (np.abs(np.log(posterior_variances(evidence) / true)) < np.log(1.65)).all()


def test_without_signal_the_variance_is_the_prior_one_and_groups_share_strength():
    flat = np.zeros((4, len(VARIANCE_GRID)))
    blind = posterior_variances(flat)
    np.testing.assert_allclose(blind, blind[0])
    assert 0.01 < blind[0] < 0.5
    rng = np.random.default_rng(6)
    informative = evidence_of([rng.normal(scale=1.5, size=400)] * 5, noise=1e-6)
    pooled = posterior_variances(np.vstack([informative, np.zeros((1, len(VARIANCE_GRID)))]))
    assert pooled[-1] > 3 * blind[0]  # the silent group follows the others


def test_very_different_groups_stay_finite():
    """Each group rules out every variance that the other one can have."""
    evidence = np.full((2, len(VARIANCE_GRID)), -1e6)
    evidence[0, 0] = evidence[1, -1] = 0.0
    np.testing.assert_allclose(posterior_variances(evidence), VARIANCE_GRID[[0, -1]], rtol=1e-9)


def test_pooled_variance():
    rng = np.random.default_rng(7)
    evidence = evidence_of([rng.normal(scale=1.0, size=2000)], noise=0.1)
    assert pooled_variance(evidence) == pytest.approx(1.0, rel=0.65)


def test_without_signal_the_shape_decides():
    flat, rng = np.zeros((2, len(VARIANCE_GRID))), np.random.default_rng(8)
    learned = [posterior_variances(flat, shape)[0] for shape in (0.1, 0.5, 2.0)]
    pooled = [pooled_variance(flat, shape) for shape in (0.1, 0.5, 2.0)]
    drawn = [np.exp(np.log(draw_variances(flat, 4000, rng, shape)).mean()) for shape in (0.1, 0.5, 2.0)]
    assert learned == sorted(learned) and pooled == sorted(pooled)
    assert learned[-1] > 5 * learned[0]
    np.testing.assert_allclose(drawn, learned, rtol=0.2)  # 4,000 draws of two independent-given-m groups


@pytest.mark.parametrize("tail", [0.25, 1.0, 7.0])
def test_pseudo_huber_by_quadrature_and_finite_differences(tail):
    x, s, step = np.array([-6.0, -0.3, 0.0, 1.0, 9.0]), np.array([0.5, 2.0, 1.0, 0.1, 3.0]), 1e-6
    value, gradient = pseudo_huber(x, s, tail)
    assert value == pytest.approx(float(np.sum(tail * (np.sqrt(1 + x**2 / (tail * s)) - 1))))
    slopes = [
        (pseudo_huber(x[i] + step, s[i], tail)[0] - pseudo_huber(x[i] - step, s[i], tail)[0]) / (2 * step)
        for i in range(5)
    ]
    np.testing.assert_allclose(gradient, slopes, atol=1e-7)
    np.testing.assert_allclose(gradient, x * pseudo_huber_curvature(x, s, tail))
    moments = [
        quad(
            lambda t, k=k: t**k * np.exp(-pseudo_huber(np.array([t]), np.array([1.0]), tail)[0]),
            0,
            400,
            points=[1, 10],
            limit=200,
        )[0]
        for k in (0, 2)
    ]
    assert pseudo_huber_variance(tail) == pytest.approx(moments[1] / moments[0], rel=1e-6)


def test_the_infinite_tail_is_the_normal_prior():
    x, s = np.array([0.0, 3.0]), np.array([1.0, 2.0])
    value, gradient = pseudo_huber(x, s, np.inf)
    assert value == 9 / 4 and pseudo_huber_variance(np.inf) == 1
    np.testing.assert_array_equal(gradient, x / s)
    assert pseudo_huber(x, s, 1e14)[0] == pytest.approx(value, rel=1e-12)  # no cancellation on the way there
    assert pseudo_huber_variance(1e14) == pytest.approx(1)


def test_at_a_given_variance_a_heavier_tail_penalises_less():
    x, s = np.array([0.1, 1.0, 8.0]), np.full(3, 0.7)
    penalties = [[pseudo_huber(x[[i]], s[[i]], tail)[0] for i in range(3)] for tail in (0.1, 1.0, 4.0, np.inf)]
    assert (np.diff(penalties, axis=0) > 0).all()
    # Near 0 the tail hardly matters, far away it decides.
    assert penalties[0][0] > 0.9 * penalties[-1][0] and penalties[0][2] < 0.1 * penalties[-1][2]
