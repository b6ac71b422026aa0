"""Intervals of conditional probabilities against the whole table's covariance."""

from dataclasses import replace

import numpy as np
import pytest

from pgmpy_dp.inference.conditioning import ImpossibleEvidence
from pgmpy_dp.models.posterior.discrepancy import Discrepancy, learn_discrepancy, unmeasured_covariance
from pgmpy_dp.models.posterior.posterior_draws import Interval
from pgmpy_dp.models.posterior.query_intervals import Question, between, query_intervals, widened

rng = np.random.default_rng(5)


def intervals(table, draws, weights, scope, learned, level=0.9):
    """Of the first variable of a table, given how likely the states of the others are."""
    asked = question(table, [np.array([weight] * 3) for weight in weights])
    return query_intervals(table, asked.answers([draws]), asked, scope, learned, level)


def question(table, shares) -> Question:
    names = list("abc"[: table.ndim])
    return Question.about({"a": len(table)}, dict(zip(names[1:], shares, strict=True)))


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
    found = intervals(TABLE, DRAWS, weights, (0, 1, 2), learned)
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
    found = intervals(TABLE, DRAWS, [[1.0, 0.0], [1.0, 1.0]], (0, 1, 2), learned)
    assert (found.upper - found.lower < 1e-7).all()


def test_a_range_that_cuts_a_state_counts_its_share():
    learned = learn_discrepancy([], [])
    found = intervals(TABLE[0], DRAWS[:, 0], [[0.5, 1.0]], (0, 1), learned)
    expected = TABLE[0] @ [0.5, 1.0]
    np.testing.assert_allclose(found.estimate, expected / expected.sum())
    assert ((found.lower >= 0) & (found.upper <= 1)).all()
    with pytest.raises(ImpossibleEvidence):
        intervals(np.array([[0.5, 0.0], [0.5, 0.0]]), DRAWS[:, 0], [[0.0, 1.0]], (0, 1), learned)


def test_an_interval_around_the_model_is_as_wide_as_draws_are_from_it():
    """Of families: their draws have another mean than the model where noise hides what the prior draws to the even."""
    table, learned = np.array([0.3, 0.7]), certain(0.05, "pair")
    draws = np.array([0.34, 0.7 - 0.04])[None] + 0.01 * np.random.default_rng(0).normal(size=(400, 1)) * [1, -1]
    own = question(table, [])
    around = replace(own, around_model=True)
    width, wider = (
        np.ptp(query_intervals(table, one.answers([draws]), one, (0,), learned, 0.9)[1:], axis=0) / 2
        for one in (own, around)
    )
    np.testing.assert_allclose(width, 1.645 * 0.01, rtol=0.1)
    np.testing.assert_allclose(wider, 1.645 * np.hypot(0.01, 0.04), rtol=0.03)


@pytest.mark.parametrize("joint", [False, True])
def test_extremes_hold_wherever_the_values_of_cut_states_lie_and_are_reached(joint):
    generator = np.random.default_rng(3)
    table = generator.dirichlet(np.ones(36)).reshape(3, 4, 3)
    one = np.array([[0.4, 1.0, 0.7, 0.0], [0.0, 1.0, 0.0, 0.0], [1.0, 1.0, 1.0, 0.0]])
    other = np.array([[1.0, 0.2, 0.0], [1.0, 0.0, 0.0], [1.0, 1.0, 0.0]])
    least, most = (table * one[k][:, None] * other[k] for k in (1, 2))
    low, high = question(table, [one, other]).extremes(table, joint=joint)
    for _ in range(300):
        inside = (least + generator.random(table.shape).round() * (most - least)).sum(axis=(1, 2))
        share = inside if joint else inside / inside.sum()
        assert (low <= share + 1e-12).all() and (share <= high + 1e-12).all()
    for cell in range(3):
        for end, own, others in ((low, least, most), (high, most, least)):
            inside = np.where(np.arange(3)[:, None, None] == cell, own, others).sum(axis=(1, 2))
            assert end[cell] == pytest.approx(inside[cell] / (1.0 if joint else inside.sum()))


def test_where_all_or_nothing_is_left_extremes_are_shares():
    low, high = between(np.array([0.0, 0.0]), np.array([0.3, 0.0]))
    assert low.tolist() == [1.0, 0.0] and high.tolist() == [1.0, 0.0]
    found = widened(Interval(*np.array([[0.5], [0.4], [0.7]])), np.array([0.05]), np.array([0.6]))
    np.testing.assert_allclose(found, [[0.5], [0.0], [0.8]], atol=1e-12)
