"""Limits and bounds on communities, against measurement."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.sparse.linalg import eigsh

from pgmpy_dp import Budget, PrivateGraph
from pgmpy_dp.communities.operators.block_projection import BlockProjection
from pgmpy_dp.communities.planted_graphs import planted_labels, sample_block_model
from pgmpy_dp.communities.published.projection_solvers import projection, solvers
from pgmpy_dp.private.accounting import gaussian_multiplier
from pgmpy_dp.private.curator.outside_functions import named_function
from pgmpy_dp.theory import block_models as blocks


def drawn(n: int, degree: float, gamma: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels in {-1, 1} and an adjacency matrix."""
    rng = np.random.default_rng(seed)
    labels = planted_labels(n, 2, rng)
    return 2.0 * labels - 1.0, sample_block_model(labels, degree, gamma, rng).toarray().astype(float)


def right(found: np.ndarray, x: np.ndarray) -> float:
    share = float(np.mean(np.sign(found) == x))
    return max(share, 1.0 - share)


def leading(matrix: np.ndarray) -> np.ndarray:
    return eigsh(matrix, 1, which="LA", v0=np.ones(len(matrix)))[1][:, 0]


@pytest.mark.parametrize(("epsilon", "degree"), [(0.25, 200.0), (1.0, 60.0), (1.0, 25.0), (2.0, 30.0)])
def test_randomised_response_sees_what_the_limit_says(epsilon, degree):
    n, gamma, shares = 500, 0.8, []
    for seed in range(3):
        x, graph = drawn(n, degree, gamma, seed)
        rng = np.random.default_rng(100 + seed)
        flip = np.triu(rng.random((n, n)) < 1.0 / (1.0 + math.exp(epsilon)), 1)
        noisy = np.where(flip | flip.T, 1.0 - graph, graph)
        np.fill_diagonal(noisy, 0.0)
        shares.append(right(leading(noisy - noisy.mean()), x))
    assert np.mean(shares) == pytest.approx(blocks.response_accuracy(n, degree, gamma, epsilon), abs=0.08)


def test_noise_on_the_projection_has_its_threshold():
    epsilon, delta, n = 1.0, 1e-6, 500
    x = 2.0 * planted_labels(n, 2, np.random.default_rng(0)) - 1.0
    multiplier = gaussian_multiplier(epsilon, delta)
    for analysis, times in (("published", 24.0), ("tight", 3.0)):
        for factor in (0.7, 1.5, 4.0):  # of the threshold's degree
            degree = factor * times * multiplier**2
            program = BlockProjection(10**6, degree, 1.0, analysis=analysis)  # large: the sensitivity's own limit
            sigma = program.sensitivity * math.sqrt(1e6 / n) * multiplier
            noise = np.triu(np.random.default_rng(1).normal(0, sigma, (n, n)))
            found = right(leading(np.outer(x, x) / n + noise + np.triu(noise, 1).T), x)
            told = blocks.projection_accuracy(degree, 1.0, epsilon, delta, analysis=analysis)
            assert found == pytest.approx(told, abs=0.06) and (told == 0.5) == (factor < 1)


def test_a_cut_of_noise_is_below_its_bound_and_near_it():
    for seed in range(20):  # by every sign vector
        _, graph = drawn(10, 4.0, 0.6, seed)
        x, _ = drawn(10, 4.0, 0.6, seed)
        noise = graph - (1.0 + 0.6 * np.outer(x, x)) * 0.4
        np.fill_diagonal(noise, 0.0)
        signs = np.array(list(itertools.product((-1.0, 1.0), repeat=9)))
        signs = np.hstack([np.ones((len(signs), 1)), signs])
        assert np.abs(signs @ noise).sum(axis=1).max() <= blocks.cut_deviation(10, 4.0, 0.01)
    x, graph = drawn(400, 100.0, 0.6, 0)
    noise = graph - (1.0 + 0.6 * np.outer(x, x)) * 0.25
    np.fill_diagonal(noise, 0.0)
    t = np.sign(leading(noise))
    for _ in range(30):  # a local maximum: from below
        t = np.sign(noise @ np.sign(noise @ t))
    assert 0.4 < np.abs(noise @ t).sum() / blocks.cut_deviation(400, 100.0, 0.01) < 1.0


def test_the_projection_is_as_near_as_the_lemma_says():
    n, degree, gamma = 60, 30.0, 1.0
    program = projection(n, degree, gamma, theta=1.0)
    (name, arguments), *_ = solvers(program)
    for seed in range(3):
        x, graph = drawn(n, degree, gamma, seed)
        exact = program.exact(PrivateGraph(graph, ledger=Budget(rho=1.0)))
        point = program.certified(exact, named_function(name)(exact, **arguments))
        assert point.distance <= program.distance
        off = np.outer(x, x)[np.triu_indices(n, 1)] / n
        assert 2.0 * np.sum((point.value - off) ** 2) <= blocks.projection_distance(n, degree, gamma, 0.01)
    # A rate: gamma sqrt(d) times it tends to a constant.
    limit = [blocks.projection_distance(10**4, d, 0.5, 0.5) * 0.5 * math.sqrt(d) for d in (1e2, 1e4, 1e6)]
    assert limit[0] > limit[1] > limit[2] == pytest.approx(6.55, rel=0.01)


def test_the_exponential_mechanism_by_its_law():
    """P(error > zeta) of the mechanism, summed over all labels, on graphs where the bound is not yet below 1/2."""
    n, degree, gamma, epsilon = 14, 7.0, 1.0, 2.0
    x, graph = drawn(n, degree, gamma, 3)
    every = np.array(list(itertools.product((-1.0, 1.0), repeat=n)))
    scores = 0.5 * (np.einsum("si,ij,sj->s", every, graph - degree / n, every) + degree)
    wrong = np.minimum((every != x).mean(axis=1), (every != -x).mean(axis=1))
    weights = np.exp(epsilon / 2.0 * (scores - scores.max()))
    cut = float(
        np.abs(every @ (graph - (1.0 + gamma * np.outer(x, x)) * degree / n * (1.0 - np.eye(n)))).sum(axis=1).max()
    )
    for zeta in (1 / 14, 3 / 14, 5 / 14):  # the proof's inequality, with this graph's own cut in the place of its bound
        beyond = weights[wrong > zeta].sum() / weights.sum()
        assert beyond <= 2.0**n * math.exp(-epsilon / 2.0 * (gamma * degree * n * zeta - cut))
    told = [blocks.exponential_error(10**4, d, 0.8, 1.0, 0.01) for d in (100.0, 1000.0)]
    assert told[1] < told[0] / 2.5 and told[0] < 0.5


@pytest.mark.parametrize(("rough", "degree"), [(0.0, 30.0), (0.1, 50.0)])
def test_votes_err_less_often_than_the_bound_and_not_much_less(rough, degree):
    n, gamma, epsilon, errors = 400, 0.8, 1.0, []
    for seed in range(10):
        x, graph = drawn(n, degree, gamma, seed)
        rng = np.random.default_rng(200 + seed)
        told = x.copy()
        for side in (-1.0, 1.0):
            told[rng.choice(np.flatnonzero(x == side), round(rough * n / 2), replace=False)] *= -1.0
        errors.append(np.sum(x * (graph @ told + rng.laplace(0, 2.0 / epsilon, n)) <= 0))
    bound = blocks.vote_failure(n, degree, gamma, epsilon, rough)
    assert np.mean(errors) <= bound <= 12 * np.mean(errors) + 1.0


def test_thresholds_stand_in_their_order():
    for n, gamma in ((100, 0.3), (10**6, 0.9)):
        assert blocks.weak_recovery_degree(gamma) < blocks.exact_recovery_degree(n, gamma)
        assert blocks.exact_recovery_degree(n, gamma) < 2 * blocks.exact_recovery(n, gamma, 1.0, 1e-6).value
    assert blocks.exact_recovery_degree(1000, 1.0) == pytest.approx(math.log(1000))
    assert blocks.weak_recovery(400.0, 1.0, 0.5, math.exp(-1)).value == pytest.approx(0.05 + 0.01)
    assert blocks.exact_recovery(100, 0.5, 0.5, math.exp(-1)).value == pytest.approx(8 * math.log(100) + 8)
    for call in (
        lambda: blocks.vote_failure(10, 8.0, 0.5, 1.0),
        lambda: blocks.cut_deviation(10, 4.0, 1.0),
        lambda: blocks.projection_accuracy(10.0, 0.5, 1.0, 1e-6, analysis="loose"),
        lambda: blocks.vote_failure(10, 2.0, 0.5, 1.0, -0.1),
    ):
        with pytest.raises(ValueError, match=r"degree=|failure=|analysis=|rough_error="):
            call()
