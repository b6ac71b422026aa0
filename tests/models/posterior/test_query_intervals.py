"""Intervals of conditional probabilities against the whole table's covariance."""

import numpy as np
import pytest

from pgmpy_dp.inference.conditioning import ImpossibleEvidence
from pgmpy_dp.models.posterior.discrepancy import Discrepancy, learn_discrepancy, unmeasured_covariance
from pgmpy_dp.models.posterior.query_intervals import query_intervals

rng = np.random.default_rng(5)
TABLE = rng.dirichlet(np.ones(8)).reshape(2, 2, 2)
DRAWS = TABLE + 1e-9 * rng.normal(size=(30, 2, 2, 2))


def certain(tau: float, kind: str, measured: tuple = ()) -> Discrepancy:
    """A discrepancy whose tau is known: the value of the grid next to it."""
    from pgmpy_dp.models.posterior.discrepancy import TAU_GRID

    weights = np.zeros(len(TAU_GRID))
    weights[np.abs(TAU_GRID - tau).argmin()] = 1.0
    return Discrepancy(measured, {"pair": weights, kind: weights})


def test_width_is_that_of_the_gradient_over_all_cells():
    learned = certain(0.05, "triple")
    tau = 0.05 * (np.abs(learned.weights["triple"]).sum())
    weights = [np.array([0.0, 1.0]), np.array([1.0, 0.0])]
    found = query_intervals(TABLE, DRAWS, weights, (0, 1, 2), learned, 0.9)
    column = TABLE[:, 1, 0]
    ratio = column / column.sum()
    np.testing.assert_allclose(found.estimate, ratio)
    for cell in range(2):
        g = np.zeros((2, 2, 2))
        g[:, 1, 0] = -ratio[cell] / column.sum()
        g[cell, 1, 0] += 1 / column.sum()
        spread = g.ravel() @ unmeasured_covariance(TABLE, [(0,), (1,), (2,)]) @ g.ravel()
        expected = 1.6449 * tau * np.sqrt(spread)
        assert found.upper[cell] - found.estimate[cell] == pytest.approx(min(expected, 1 - ratio[cell]), rel=0.05)


def test_what_is_measured_has_the_posteriors_width_alone():
    learned = certain(0.1, "triple", (frozenset({0, 1, 2}),))
    found = query_intervals(TABLE, DRAWS, [np.array([1.0, 0.0])], (0, 1, 2), learned, 0.9)
    assert (found.upper - found.lower < 1e-7).all()


def test_a_range_that_cuts_a_state_counts_its_share():
    learned = learn_discrepancy([], [])
    found = query_intervals(TABLE[0], DRAWS[:, 0], [np.array([0.5, 1.0])], (0, 1), learned, 0.9)
    expected = TABLE[0] @ [0.5, 1.0]
    np.testing.assert_allclose(found.estimate, expected / expected.sum())
    assert ((found.lower >= 0) & (found.upper <= 1)).all()
    with pytest.raises(ImpossibleEvidence):
        query_intervals(np.array([[0.5, 0.0], [0.5, 0.0]]), DRAWS[:, 0], [np.array([0.0, 1.0])], (0, 1), learned, 0.9)
