"""How many records the membership program would take: its constants against what they bound, and its refusals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from pgmpy_dp import theory
from pgmpy_dp.mixtures.published.membership_program import membership_program
from pgmpy_dp.mixtures.published.pipeline_study import linked_means, soft_threshold
from pgmpy_dp.theory import required_records
from pgmpy_dp.theory.membership_records import (
    _FULL,
    _OVERLAP,
    _SLOPE,
    LOW,
    _above,
    _noise_with,
    _proved_noise,
    _Release,
    _separates,
    _test,
    _width,
    program_noise,
)


def mixture(n, separation, k=3, d=3, shift=0.0, seed=0):
    rng = np.random.default_rng(seed)
    centres = np.eye(d)[:k] * separation / math.sqrt(2) + shift
    return centres[np.arange(n) % k] + rng.normal(size=(n, d)), centres


# Constants of the proof (pgmpy_dp/theory/membership_records.md)


def test_overlap_is_the_largest_ratio_of_weights_to_the_membership_of_a_pair():
    w = np.linspace(LOW, 1.0, 401)
    a, b = np.meshgrid(w, w)
    shared = a * b - np.sqrt((1 - a * a) * (1 - b * b))
    ratio = soft_threshold(a) * soft_threshold(b) / shared
    assert shared.min() > 0.27
    assert ratio.max() == pytest.approx(_OVERLAP, rel=1e-9)


@pytest.mark.parametrize(("n", "rate"), [(50, 0.3), (1000, 0.002), (100_000, 0.0005)])
@pytest.mark.parametrize("probability", [1e-2, 1e-7])
def test_chernoff_is_above_the_exact_binomial(n, rate, probability):
    limit = _above(n * rate, probability)
    assert binom.sf(math.ceil(limit) - 1, n, rate) <= probability
    assert binom.sf(math.floor(n * rate) - 1, n, rate) > probability


@pytest.mark.parametrize("place", ["other cluster", "far", "between"])
def test_the_bounds_of_the_proof_on_neighbours(place):
    n, k = 60, 3
    c, h = n / k, _SLOPE * math.sqrt(2 * k / (LOW * n)) / _FULL
    points, centres = mixture(n, 30.0)
    other = points.copy()
    other[0] = {"other cluster": centres[1], "far": np.full(3, 1e5), "between": centres.mean(axis=0)}[place]
    solved = [membership_program(p, k, 1.0, tolerance=0.1, max_iter=20_000, reach=500.0) for p in (points, other)]
    assert all(s.converged for s in solved)
    (nu, sizes), (nu2, sizes2) = (linked_means(s.weights, p) for s, p in zip(solved, (points, other), strict=True))
    moved = np.linalg.norm(solved[0].weights - solved[1].weights, axis=1)
    sensitivity = 2 * math.sqrt(2 * c) + 0.2
    assert np.linalg.norm(moved) <= sensitivity
    unlinked = [np.sum(1 - np.minimum(s / c, 1)) for s in (sizes, sizes2)]
    assert abs(unlinked[0] - unlinked[1]) <= _SLOPE * math.sqrt(2 * k / LOW) * sensitivity + 1
    eta = h * moved + 2 / (_FULL * c)
    spread = math.sqrt(_OVERLAP * 1.5 * k) / _FULL
    good = [i for i in range(1, n) if min(sizes[i], sizes2[i]) >= _FULL * c and eta[i] < 1]
    assert len(good) >= n / 4
    for i in good:
        assert np.linalg.norm(nu[i] - nu2[i]) <= 2 * spread * math.sqrt(eta[i] / (1 - eta[i]))


def test_linked_means_and_their_covariance():
    points, _ = mixture(20, 20.0, k=2, d=2, shift=1e7, seed=5)
    w = membership_program(points, 2, 1.0).weights
    means, sizes = linked_means(w, points)
    weights = soft_threshold(w)
    assert sizes == pytest.approx(weights.sum(1))
    naive = np.array([np.average(points, axis=0, weights=row) for row in weights])
    assert means == pytest.approx(naive, abs=1e-6)
    # Proved for every row, whatever the records: covariance at most kappa (1 + alpha) (n^2/k) sigma^2 / size^2.
    for row, mean, size in zip(weights, naive, sizes, strict=True):
        covariance = (row * (points - mean).T) @ (points - mean) / size
        assert np.linalg.eigvalsh(covariance)[-1] <= _OVERLAP * 1.5 * 20**2 / 2 / size**2


# The number


def test_it_is_the_number_of_the_release_that_was_built():
    """Of the private pipeline that stood here before, at the same constants; it never ran at such a number."""
    built = {
        (3, 8, 32.0, 1.0): 2.6399917585834465e26,
        (3, 8, 32.0, 10.0): 1.393882099069678e21,
        (5, 8, 32.0, 1.0): 1.874318590730521e28,
        (2, 1, 1000.0, 100.0): 4685037568.0,
        (2, 30, 1000.0, 50.0): 2.480498232262656e16,
    }
    for (k, d, separation, epsilon), n in built.items():
        assert required_records(k, d, separation, epsilon, 1e-6) == pytest.approx(n, rel=2e-3)
    assert theory.required_records is required_records


@pytest.mark.parametrize("d", [2, 30])
def test_noise_at_that_number_leaves_the_centres_in_their_cells(d):
    """Simulated: estimates at the centres, the noise of that n, a grid at random offsets."""
    epsilon, separation, k = (1.0, 100.0, 2) if d == 2 else (50.0, 1000.0, 2)
    n = int(required_records(k, d, separation, epsilon, 1e-6))
    noise = program_noise(n, k, d, separation, epsilon, 1e-6)
    error = noise.row_error
    assert noise.proved
    assert _separates(error, k, d, separation)
    assert not _separates(4 * error, k, d, separation)
    dimension, width = min(d, 24), _width(d, separation)
    rng = np.random.default_rng(0)
    kept, trials = 0, 200
    for _ in range(trials):
        places = rng.uniform(size=(k, dimension)) * width  # of the centres within their cells
        noisy = places[:, None, :] + rng.normal(scale=error, size=(k, 300, dimension))
        inside = ((noisy >= 0) & (noisy < width)).all(axis=2).mean(axis=1)
        kept += inside.min() >= 0.6
    assert kept >= 0.4 * trials


def test_a_draw_counts_on_few_of_the_rows_that_may_be_anything():
    """At the number of the first row of the page's table."""
    n = int(required_records(3, 8, 32.0, 1.0, 1e-6))
    release = _Release(n, 3, 8, 32.0, 0.5, 1.0, 1e-6)
    eta, rows, b = 1e-6, n // 10**9, 200
    test = _test(release)
    noise = _noise_with(release, test, b, rows, eta, 1e3)
    assert noise is not None and noise.proved and noise.bad == b < noise.threshold
    # The rows that are drawn move together by less than if each moved by eta.
    assert noise.row_error < _noise_with(release, test, b, rows, eta, 1e30).row_error
    assert _noise_with(release, test, b, n // 10, eta, 1e3) is None  # too many of the rows may be bad


@settings(max_examples=40, deadline=None)
@given(
    n=st.integers(1, 38_721),
    k=st.integers(1, 20),
    d=st.integers(1, 300),
    separation=st.floats(1e-3, 1e9),
    slack=st.floats(0.0, 100.0),
    epsilon=st.floats(1e-3, 1e3),
    delta=st.floats(1e-100, 0.999),
)
def test_nothing_bounds_an_estimate_below_38721_records(n, k, d, separation, slack, epsilon, delta):
    """So no number of records that a computer can do is enough, whatever the settings: proved in the page."""
    assert _proved_noise(_Release(n, k, d, separation, slack, epsilon, delta)) is None


def test_it_falls_with_epsilon_delta_and_separation_and_grows_with_k():
    base = required_records(2, 2, 100.0, 1.0, 1e-6)
    assert required_records(2, 2, 100.0, 0.5, 1e-6) > base > required_records(2, 2, 100.0, 2.0, 1e-6)
    assert required_records(2, 2, 100.0, 1.0, 1e-9) > base > required_records(2, 2, 1000.0, 1.0, 1e-6)
    assert required_records(3, 2, 100.0, 1.0, 1e-6) > base
    assert (
        required_records(2, 2, 100.0, 1.0, 1e-6, slack=2.0) > base > required_records(2, 2, 100.0, 1.0, 1e-6, slack=0)
    )


def test_extremes():
    """An epsilon of 10,000 divided by zero before: the delta of the later steps was not a float any more."""
    assert required_records(1, 1, 1e4, 1e4, 1e-6) == required_records(1, 1, 1e4, 1e3, 1e-6) < math.inf
    assert required_records(1, 1, 1e300, 1e300, 0.5) > 38_721
    for arguments in ((3, 8, 32.0, 1e-9, 1e-6), (3, 8, 32.0, 1e-300, 1e-6), (3, 8, 1e-300, 1.0, 1e-100)):
        assert math.isinf(required_records(*arguments))
    assert math.isinf(required_records(10**400, 8, 32.0, 1.0, 1e-6))
    assert math.isinf(required_records(3, 10**400, 32.0, 1.0, 1e-6))


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"n_clusters": 0}, ValueError),
        ({"n_features": 1.5}, TypeError),
        ({"separation": -1.0}, ValueError),
        ({"epsilon": math.nan}, ValueError),
        ({"epsilon": "1"}, TypeError),
        ({"delta": 0.0}, ValueError),
        ({"delta": 2.0}, ValueError),
        ({"delta": 1e-200}, ValueError),
        ({"slack": -0.1}, ValueError),
        ({"slack": 1e9}, ValueError),
    ],
)
def test_arguments_are_checked(change, error):
    given = {"n_clusters": 3, "n_features": 8, "separation": 32.0, "epsilon": 1.0, "delta": 1e-6}
    with pytest.raises(error, match=next(iter(change))):
        required_records(**{**given, **change})
