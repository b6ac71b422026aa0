"""Many parameter vectors at a time against one by one."""

from __future__ import annotations

import numpy as np
import pytest

from pgmpy_dp.inference import batch as module
from pgmpy_dp.inference.batch import SumProductBatch
from pgmpy_dp.inference.belief_propagation import SumProduct
from pgmpy_dp.inference.junction_tree import InferenceTooLarge
from tests.small_models import BruteForce, chain


@pytest.mark.parametrize("most", [1, 3])
def test_each_is_what_it_is_alone(cliques, most):
    """Whatever the scale of its neighbours' potentials, and with structural zeros in one of them."""
    rng = np.random.default_rng(0)
    theta = rng.normal(size=(most, cliques.n_cells)) * 10.0 ** np.arange(most)[:, None]
    theta[0, 0] = -np.inf
    theta[-1] += 700.0
    n, extra = len(cliques.variables), [(len(cliques.variables) - 1, 0)[: len(cliques.variables)]]
    engine, alone = SumProductBatch(cliques, most, extra), SumProduct(cliques, extra)
    marginals, log_partition = engine.calibrate(theta)
    direction = rng.normal(size=theta.shape)
    derivative = engine.derivative(direction)
    assert marginals.shape == derivative.shape == (most, cliques.n_cells + np.prod(_sizes(cliques, extra[0])))
    assert n >= 1
    for k in range(most):
        expected, log_z = alone.calibrate(theta[k])
        np.testing.assert_allclose(marginals[k], expected, atol=1e-12)
        np.testing.assert_allclose(log_partition[k], log_z, rtol=1e-12)
        np.testing.assert_allclose(derivative[k], alone.derivative(direction[k]), atol=1e-10)
    np.testing.assert_allclose(
        marginals[0, : cliques.n_cells], BruteForce.of(cliques, theta[0]).marginals(), atol=1e-12
    )


def test_sampling_errors_have_the_covariance_of_a_record_and_are_consistent(cliques):
    """All second moments of many draws, in standard errors of each; margins that tables share agree in each draw."""
    theta, most, rounds = np.random.default_rng(3).normal(size=cliques.n_cells), 200, 20
    engine = SumProductBatch(cliques, most)
    engine.calibrate(np.tile(theta, (engine.n, 1)))
    rng = np.random.default_rng(4)
    drawn = np.concatenate([engine.sampling_errors(rng) for _ in range(rounds)])
    alone = SumProduct(cliques)
    alone.calibrate(theta)
    covariance = np.array([alone.derivative(row) for row in np.eye(cliques.n_cells)])
    sd = np.sqrt(covariance.diagonal())
    moments, error = drawn.T @ drawn / len(drawn), np.sqrt(covariance**2 + np.outer(sd, sd) ** 2) / np.sqrt(len(drawn))
    assert (np.abs(moments - covariance) < 5.5 * error + 1e-12).all()
    inverse = np.linalg.pinv(covariance, rcond=1e-9)
    assert np.abs(drawn - drawn @ inverse @ covariance).max() < 1e-7  # no error where a record has none


def _sizes(cliques, scope):
    return [cliques.cardinalities[i] for i in scope]


@pytest.mark.parametrize(("cells", "n"), [(45, 1), (90, 2), (10**6, 5)])
def test_batches_hold_what_fits(monkeypatch, cells, n):
    """A chain of three states has a tree of 4 cliques and 36 cells; the last vector fills up the last batch."""
    cliques = chain(1, 5, 3)
    monkeypatch.setattr(module, "_CELLS", cells)
    engine = SumProductBatch(cliques, 5)
    assert engine.n == n
    assert [part.tolist() for part in engine.batches()] == {
        1: [[0], [1], [2], [3], [4]],
        2: [[0, 1], [2, 3], [4, 4]],
        5: [[0, 1, 2, 3, 4]],
    }[n]
    theta = np.random.default_rng(1).normal(size=(5, cliques.n_cells))
    alone = SumProduct(cliques)
    np.testing.assert_allclose(engine.marginals(theta), [alone.calibrate(one)[0] for one in theta], atol=1e-13)


def test_memory_bounds_a_batch_and_refuses_one():
    cliques = chain(1, 5, 3)
    alone = SumProduct(cliques).size.memory_bytes
    assert SumProductBatch(cliques, 16, memory_limit=4 * alone).n == 4
    assert SumProductBatch(cliques, 16, memory_limit=alone).n == 1
    with pytest.raises(InferenceTooLarge, match=r"memory_limit=100 .*largest clique \(4, 3\)"):
        SumProductBatch(cliques, 5, memory_limit=100)
