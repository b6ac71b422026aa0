"""Records in public boxes: their sizes and signs are what plain numpy says, and move as little as was proved."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

from pgmpy_dp import Budget, PrivateVectors
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.curator.curator_base import Curator
from pgmpy_dp.private.data.boxes import MAGNITUDES, Box, magnitude_sensitivity, magnitudes, sign_products
from pgmpy_dp.private.data.moments import TRACE, centered_sums, second_moments
from pgmpy_dp.private.operators.vector_operators import Magnitudes, PairSigns, StrongestPairs

BOX = Box((-1.0, -4.0), (3.0, 2.0), (0.5, 2.0))
CENTER = np.array([0.5, -1.0])
ODD = [
    [0.0, 0.0],
    [0.5, -1.0],
    [1e308, -1e308],
    [5e-324, 2.0],
    [3.0, -4.0],
    [np.nan, 1.0],
    [np.inf, 0.0],
    [0.5, 1e308],
    [3.0, 2.0],
]
ROWS = np.concatenate([np.random.default_rng(0).normal(size=(40, 2)) * 3, ODD])


def private(rows, **options) -> PrivateVectors:
    return PrivateVectors(rows, ledger=Budget(rho=1.0), **options)


def plain(rows):
    rows = rows[np.isfinite(rows).all(axis=1)]
    return (np.clip(rows, BOX.lower, BOX.upper) - CENTER) / BOX.scales, np.sign(rows - CENTER)


def test_they_are_what_numpy_counts():
    z, signs = plain(ROWS)
    edges = 2.0 ** (np.arange(1 - MAGNITUDES, 1) / 2)
    counts = magnitudes(private(ROWS), BOX, CENTER).value.reshape(2, -1)
    assert counts.shape == (2, MAGNITUDES + 1) and (counts.sum(axis=1) == len(z)).all()
    for j in range(2):
        below = [(np.abs(z[:, j]) <= edge * (1 + 1e-12)).sum() for edge in edges]
        np.testing.assert_array_equal(counts[j].cumsum()[:-1], below)
    np.testing.assert_array_equal(sign_products(private(ROWS), CENTER), signs.T @ signs)
    wide = second_moments(private(ROWS), CENTER, 10.0, BOX).value * (10.0 / 2**15) ** 2
    np.testing.assert_allclose(wide, (z.T @ z)[np.triu_indices(2)], rtol=1e-2, atol=0.05)
    np.testing.assert_allclose(
        centered_sums(private(ROWS), CENTER, 10.0, BOX).value * 10 / 2**15, z.sum(axis=0), atol=0.1
    )


def test_a_person_counts_once_with_all_its_records():
    frame = pd.DataFrame(ROWS, columns=["a", "b"]).assign(who=[f"p{k % 7}" for k in range(len(ROWS))])
    data = private(frame, unit="who")
    assert magnitudes(data, BOX, CENTER).value.sum() == 14
    assert np.abs(sign_products(data, CENTER)).max() <= 7
    alone = private(frame.assign(who="p"), unit="who")
    assert magnitudes(alone, BOX, CENTER).value.sum() == 2 and np.abs(sign_products(alone, CENTER)).max() <= 1
    nobody = private(frame.assign(who=None), unit="who")
    assert not magnitudes(nobody, BOX, CENTER).value.any() and not sign_products(nobody, CENTER).any()


@pytest.mark.parametrize("adjacency", [Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE])
def test_no_record_moves_them_further_wherever_it_stands(adjacency):
    """All pairs of odd records, at the front and at the end of others."""
    l1, l2, linf = magnitude_sensitivity(2, adjacency)
    once = adjacency == Adjacency.ADD_REMOVE
    farthest = np.zeros(3)
    for (one, two), front in itertools.product(itertools.product(ODD, ODD), (True, False)):
        some = ROWS[:9] if front else ROWS[:0]
        with_one = np.concatenate([[one], some]) if front else np.concatenate([some, [one]])
        other = some if once else np.concatenate([some, [two]])
        data = [private(rows, adjacency=str(adjacency), n_records=None if once else 5) for rows in (with_one, other)]
        sizes, others = (magnitudes(item, BOX, CENTER).value for item in data)
        gap = (sizes - others).astype(float)
        products = np.abs(sign_products(data[0], CENTER) - sign_products(data[1], CENTER)).max()
        assert products <= linf * (1 if once else 2)
        farthest = np.maximum(farthest, [np.abs(gap).sum(), np.linalg.norm(gap), products])
        change = second_moments(data[0], CENTER, 1.0, BOX).value - second_moments(data[1], CENTER, 1.0, BOX).value
        matrix = np.array([[change[0], change[1]], [change[1], change[2]]], dtype=float)
        assert np.abs(np.linalg.eigvalsh(matrix)).sum() <= TRACE * (1 if once else 2) * (1 + 1e-12)
    np.testing.assert_allclose(farthest, [l1, l2, 1 if once else 2])


class TestBadArgumentsComeBeforeTheDebit:
    @pytest.mark.parametrize(
        ("ask", "match"),
        [
            (lambda c: c.ask(Magnitudes(CENTER, Box((0.0, 1.0), (0.0, 2.0), (1.0, 1.0))), 0.1), "side 0 of the box"),
            (lambda c: c.ask(Magnitudes(CENTER, Box((0.0,), (1.0,), (1.0,))), 0.1), "1 entries for 2 columns"),
            (lambda c: c.ask(Magnitudes(CENTER, None), 0.1), "box=None is a NoneType"),
            (lambda c: c.ask(PairSigns(CENTER, [(1, 0)]), 0.1), "must be positions"),
            (lambda c: c.ask(PairSigns(CENTER, []), 0.1), "must be positions"),
            (lambda c: c.ask(PairSigns(CENTER, [(0, 1), (0, 1)]), 0.1), "must be positions"),
            (lambda c: c.ask(StrongestPairs(CENTER, np.zeros((2, 2)), np.ones((2, 2), bool)), 0.1), "pass integer"),
            (lambda c: c.ask(StrongestPairs(CENTER, np.full((2, 2), 2**51), np.ones((2, 2), bool)), 0.1), "beyond 2"),
            (lambda c: c.ask(StrongestPairs(CENTER, np.zeros((2, 2), int), np.eye(2, dtype=bool)), 0.1), "has no pair"),
            (
                lambda c: c.ask(StrongestPairs(CENTER, np.zeros((2, 2), int), np.ones((2, 2), bool)), 1e-40),
                "needs noise",
            ),
        ],
    )
    def test_nothing_is_spent(self, ask, match):
        curator = Curator(private(ROWS), Budget(rho=1.0), what="")
        with pytest.raises((TypeError, ValueError), match=match):
            ask(curator)
        assert curator.left == 1 and not curator.answers

    def test_a_column_without_a_candidate_gets_none(self):
        rows = np.random.default_rng(0).normal(size=(2000, 1)) @ np.ones((1, 3))
        curator = Curator(private(rows), Budget(rho=1.0), what="")
        allowed = np.array([[1, 1, 0], [1, 1, 1], [0, 0, 1]], dtype=bool)
        found = curator.ask(StrongestPairs([0.0] * 3, np.zeros((3, 3), dtype=np.int64), allowed), 0.5)
        assert found[0] == 1 and found[1] in (0, 2) and found[2] == -1
        expected = np.zeros((3, 3), dtype=np.int64)
        expected[1, 0] = 2000  # what the model knows is no news
        assert curator.ask(StrongestPairs([0.0] * 3, expected, np.ones((3, 3), dtype=bool)), 0.5)[1] == 2
