"""The membership program: its sets, its certificate, an outside solver, and what it says about clusters."""

from __future__ import annotations

import math

import cvxpy
import numpy as np
import pytest

from pgmpy_dp.mixtures.operators import batched_membership
from pgmpy_dp.mixtures.published.membership_program import membership_clusters, membership_program
from tests.torch_device import DEVICE


def clusters(rng, sizes, separation, d, shift=0.0):
    """Records of clusters at the corners of a simplex, their labels, and the centres."""
    centres = np.eye(d)[: len(sizes)] * separation / math.sqrt(2) + shift
    labels = np.repeat(np.arange(len(sizes)), sizes)
    return centres[labels] + rng.normal(size=(len(labels), d)), labels, centres


def violations(w, points, k, n, scale, slack, reach=math.inf):
    """Of every set, from its definition."""
    differences = points[:, None, :] - points[None, :, :]
    moments = np.einsum("ij,ija,ijb->ab", w, differences, differences)
    limit = 2 * (1 + slack) * n * n / k * scale**2
    return {
        "symmetric": np.abs(w - w.T).max(),
        "semidefinite": -np.linalg.eigvalsh(w)[0],
        "box": max(-w.min(), w.max() - 1),
        "rows": w.sum(1).max() - n / k,
        "moments": np.linalg.eigvalsh(moments)[-1] / limit - 1,
        "reach": np.abs(w[np.linalg.norm(differences, axis=2) > reach]).max(initial=0.0),
    }


CASES = {
    "separated": ([8, 8, 8], 12.0, 4),
    "near": ([10, 10], 3.0, 2),
    "uneven": ([20, 4], 8.0, 3),
    "one cluster": ([12], 1.0, 2),
}


@pytest.mark.parametrize("name", CASES)
def test_solutions_are_in_every_set_and_stay_when_a_record_is_zeroed(name):
    sizes, separation, d = CASES[name]
    points, _, _ = clusters(np.random.default_rng(0), sizes, separation, d)
    k, n = len(sizes), len(points)
    found = membership_program(points, k, 1.0, tolerance=0.05, reach=20.0)
    assert found.converged and found.distance <= 0.05
    assert max(violations(found.weights, points, k, n, 1.0, 0.5, 20.0).values()) <= 1e-9
    assert max(found.residuals.values()) <= 1e-9
    assert found.objective == pytest.approx(((1 - found.weights) ** 2).sum())
    for i in range(0, n, 5):
        without = found.weights.copy()
        without[i, :] = without[:, i] = 0
        moved = points.copy()
        moved[i] = np.random.default_rng(i).normal(size=d) * 1e3
        # In the set of the neighbour, wherever the record went: the sensitivity rests on this.
        assert max(violations(without, moved, k, n, 1.0, 0.5, 20.0).values()) <= 1e-9


def test_the_certificate_holds_against_a_far_better_solution():
    points, _, _ = clusters(np.random.default_rng(1), [7, 7, 7], 6.0, 3)
    best = membership_program(points, 3, 1.0, tolerance=2e-3, max_iter=40_000)
    assert best.converged
    bounds = []
    for steps in (10, 30, 100, 300):
        crude = membership_program(points, 3, 1.0, tolerance=1e-9, max_iter=steps)
        assert not crude.converged
        assert np.linalg.norm(crude.weights - best.weights) <= crude.distance + best.distance
        bounds.append(crude.distance)
    assert bounds[0] > 1.0 > bounds[-1]  # neither always large nor always small


@pytest.mark.parametrize("name", CASES)
def test_against_cvxpy(name):
    sizes, separation, d = CASES[name]
    points, _, _ = clusters(np.random.default_rng(2), sizes, separation, d)
    k, n = len(sizes), len(points)
    w = cvxpy.Variable((n, n), symmetric=True)
    limit = 2 * 1.5 * n * n / k
    # Moments: 2 Y'(diag(W 1) - W) Y, linear in W.
    moments = 2 * (points.T @ (cvxpy.diag(cvxpy.sum(w, axis=1)) - w) @ points)
    constraints = [w >> 0, w >= 0, w <= 1, cvxpy.sum(w, axis=1) <= n / k, limit * np.eye(d) - moments >> 0]
    problem = cvxpy.Problem(cvxpy.Minimize(cvxpy.sum_squares(1 - w)), constraints)
    problem.solve(solver="SCS", eps=1e-7, max_iters=100_000)
    found = membership_program(points, k, 1.0, tolerance=0.02, max_iter=40_000)
    assert np.linalg.norm(found.weights - w.value) <= 0.02 + 1e-3 * n
    assert found.objective == pytest.approx(problem.value, rel=1e-2, abs=1e-3)


def sensitivity(first, second, k, **arguments):
    a, b = (membership_program(p, k, 1.0, tolerance=0.01, max_iter=40_000, **arguments) for p in (first, second))
    assert a.converged and b.converged
    size = max(len(first), len(second))
    padded = [np.pad(m.weights, (0, size - len(m.weights))) for m in (a, b)]
    return float(np.linalg.norm(padded[0] - padded[1])) - 0.02


@pytest.mark.parametrize("place", ["other cluster", "far", "between", "absent"])
def test_one_record_moves_the_optimum_by_at_most_the_proved_bound(place):
    points, _, centres = clusters(np.random.default_rng(3), [8, 8, 8], 6.0, 3)
    other = points[1:] if place == "absent" else points.copy()
    if place == "absent":
        points = points[[*range(1, 24), 0]]  # the record that is missing comes last
    else:
        other[0] = {"other cluster": centres[1], "far": np.full(3, 1e6), "between": centres.mean(axis=0)}[place]
    moved = sensitivity(points, other, 3, count=24, reach=200.0)
    assert 0.1 < moved <= 2 * math.sqrt(2 * 24 / 3)


@pytest.mark.parametrize("separation", [20.0, 2e4])
def test_clusters_are_recovered_wherever_they_are(separation):
    points, labels, _ = clusters(np.random.default_rng(4), [20, 20, 20], separation, 3, shift=1e6)
    found = membership_program(points, 3, 1.0, reach=200.0)
    same = labels[:, None] == labels[None, :]
    assert found.converged
    assert np.quantile(found.weights[same], 0.01) > 0.8
    assert found.weights[~same].max() < 0.2


@pytest.mark.parametrize(
    "points",
    [
        np.zeros((0, 2)),
        np.zeros((1, 2)),
        np.zeros((9, 2)),
        np.array([[0.0, 0.0]] * 5 + [[1e150, 0.0]]),
        np.array([[0.0, 0.0]] * 5 + [[199.0, 0.0]]),
        np.arange(40.0).reshape(20, 2) * 60.0,
    ],
    ids=["none", "one", "identical", "outlier", "at the reach", "chain"],
)
def test_odd_records_have_a_certified_solution(points):
    found = membership_program(points, 2, 1.0, reach=200.0, count=max(2, len(points)), max_iter=None)
    assert found.converged and found.weights.shape == (len(points),) * 2
    assert np.isfinite(found.weights).all()
    centres = membership_clusters(points, 2, 1.0)
    assert centres.shape == (2, 2) and np.isfinite(centres).all()


def test_centres_of_blocks():
    errors = []
    for seed in range(10):
        points, _, centres = clusters(np.random.default_rng(seed), [20, 20, 20], 8.0, 8, shift=1e4)
        found = membership_clusters(points, 3, 1.0)
        distances = np.linalg.norm(found[:, None] - centres[None], axis=2)
        assert sorted(distances.argmin(axis=1)) == [0, 1, 2]
        errors.append(distances.min(axis=1).max())
    assert np.median(errors) < 1.0  # of 20 records each: sqrt(8/20) = .63 for a single centre


def test_blocks_do_not_see_each_other_and_never_fail():
    rng = np.random.default_rng(6)
    points, used = rng.normal(size=(6, 8, 2)) * 5, np.ones((6, 8))
    points[1] = points[0]
    points[2], used[3], used[4, 1:] = 1e308, 0, 0
    points[5, ::2], points[5, 1::2] = 1e308, -1e308
    found = batched_membership.batched_membership(points, used, 3, 1.0)
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[:1], batched_membership.batched_membership(points[:1], used[:1], 3, 1.0))
    assert np.isnan(found[3]).all() and np.isfinite(np.delete(found, 3, axis=0)).all()
    assert np.array_equal(found[4], np.repeat(points[4, :1], 3, axis=0))


def test_a_block_that_lapack_gives_up_on_is_noticed_by_no_other(monkeypatch):
    points = np.random.default_rng(7).normal(size=(5, 9, 2)) * 4
    alone, solve = batched_membership.batched_membership(points, np.ones((5, 9)), 2, 1.0), np.linalg.eigh
    calls = []

    def failing(a):
        calls.append(len(a))
        if a.ndim == 3 or len(calls) % 6 == 4:  # all five at once; then, one by one, the third
            raise np.linalg.LinAlgError
        return solve(a)

    monkeypatch.setattr(batched_membership.np.linalg, "eigh", failing)
    found = batched_membership.batched_membership(points, np.ones((5, 9)), 2, 1.0)
    assert np.array_equal(np.delete(found, 2, axis=0), np.delete(alone, 2, axis=0))
    assert not np.array_equal(found[2], alone[2]) and np.isfinite(found).all()


def test_torch_has_the_same_weights_and_centres_in_blocks():
    pytest.importorskip("torch")
    points = np.array([clusters(np.random.default_rng(s), [7, 7, 7], 6.0, 4)[0] for s in range(8)])
    used = (np.random.default_rng(8).random((8, 21)) < 0.9).astype(float)
    arrays = []
    for device in (None, DEVICE):
        with pytest.MonkeyPatch.context() as patch:
            kept = batched_membership._weights
            patch.setattr(batched_membership, "_weights", lambda *a, kept=kept: arrays.append(kept(*a)) or arrays[-1])
            centres = batched_membership.batched_membership(points, used, 3, 1.0, device=device)
        arrays.append(centres)
    assert np.abs(arrays[0] - arrays[2].cpu().numpy()).max() < 1e-6
    assert np.abs(arrays[1] - arrays[3]).max() < 1e-9


def test_the_steps_of_blocks_lead_to_the_certified_solution():
    points, _, _ = clusters(np.random.default_rng(1), [7, 7, 7], 6.0, 3)
    best = membership_program(points, 3, 1.0, tolerance=1e-2, max_iter=40_000)
    apart = []
    for steps in (10, 100, 2000):
        y = points / math.sqrt(2 * 1.5 * 21**2 / 3)
        w = batched_membership._weights((y - y.mean(0))[None], np.ones((1, 21, 21)), np.array([7.0]), steps, np)[0]
        apart.append(float(np.linalg.norm(w - best.weights)))
    assert apart[0] > apart[1] > apart[2] and apart[2] < 0.05


def test_bad_counts():
    with pytest.raises(ValueError, match="count=1"):
        membership_program(np.zeros((3, 1)), 2, 1.0, count=1)
    assert "hidden" in repr(membership_program(np.ones((3, 1)), 2, 1.0))
