"""The graphical lasso against closed forms, optimality conditions, scikit-learn, and a plain second solver."""

import warnings

import cvxpy
import numpy as np
import pytest
import scipy.linalg
import sklearn.covariance
from hypothesis import given, settings
from hypothesis import strategies as st
from pgmpy import config
from scipy.optimize import minimize

from pgmpy_dp.gaussian.graphical_lasso import graphical_lasso
from pgmpy_dp.gaussian.operators.log_determinant import distance_bound, duality_gap
from tests.torch_device import DEVICE

problems = st.builds(
    lambda seed, d, n, share: problem(seed, d, n, share),
    st.integers(0, 2**31),
    st.integers(1, 8),
    st.integers(3, 40),
    st.floats(0.03, 1.1),
)


def problem(seed, d, n, share):
    """Moments of n records, of rank n if that is less than d, and a penalty as a share of the largest entry."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) * rng.uniform(0.3, 3, size=d)
    S = x.T @ x / n
    return S, share * np.abs(S[~np.eye(d, dtype=bool)]).max(initial=0.1)


def objective(theta, S, R):
    nonzero = theta != 0
    return float((S * theta).sum() + (R[nonzero] * np.abs(theta[nonzero])).sum() - np.linalg.slogdet(theta)[1])


def off_diagonal(d, rho):
    return rho * (1 - np.eye(d))


def by_search(S, R, tau):
    """A second solver that shares nothing, for d = 2: Theta is an angle and two eigenvalues in (0, tau]."""

    def value(p):
        c, s = np.cos(p[0]), np.sin(p[0])
        v = np.array([[c, -s], [s, c]])
        return objective(v @ np.diag(p[1:]) @ v.T, S, R)

    # Bounds keep the eigenvalues in the cap; Nelder-Mead does not mind the kink of the penalty.
    bounds = [(-2.0, 2.0), (1e-4, tau), (1e-4, tau)]
    runs = [
        minimize(
            value,
            [angle, low * tau, high * tau],
            bounds=bounds,
            method="Nelder-Mead",
            options={"xatol": 1e-10, "fatol": 1e-13, "maxiter": 4000, "maxfev": 4000},
        )
        for angle in np.linspace(-1.5, 1.5, 7)
        for low, high in ((0.3, 0.9), (0.95, 0.5))
    ]
    return min(run.fun for run in runs)


@settings(max_examples=60, deadline=None)
@given(problems)
def test_optimality_conditions(case):
    """W = Theta^-1 has W_ii = S_ii, W_ij = S_ij + rho sign(Theta_ij) at nonzeros, |W_ij - S_ij| <= rho elsewhere."""
    S, rho = case
    scale = np.sqrt(np.outer(np.diagonal(S), np.diagonal(S)))
    solution = graphical_lasso(S, rho, tolerance=1e-13, max_iter=20_000)
    theta, w = solution.precision, np.linalg.inv(solution.precision)
    assert solution.converged
    np.testing.assert_array_equal(theta, theta.T)
    off = ~np.eye(len(S), dtype=bool)
    excess = w - S - rho * np.sign(theta) * off
    nonzero = theta != 0
    assert (np.abs(excess[nonzero]) <= 1e-4 * scale[nonzero]).all()
    assert (np.abs(w - S)[~nonzero] <= rho + 1e-4 * scale[~nonzero]).all()
    np.testing.assert_allclose(solution.covariance @ theta, np.eye(len(S)), atol=1e-6)


def uncapped_distance_bound(gap: float, largest: float) -> float:
    """Upper bound on ||Theta - Theta*||_F from a duality gap, where no cap bounds eigenvalues.

    F(Theta) - F* is at least the Bregman divergence of -log det, sum_k x_k - log(1 + x_k) for the
    eigenvalues x_k of Theta*^-1/2 (Theta - Theta*) Theta*^-1/2. With r = ||x||_2 this is at least v(r) = r - log(1 +
    r): v(|x|) <= x - log(1 + x), and v(sqrt(.)) is concave and 0 at 0, so subadditive. v(s + s^2/2) >= s^2/2, as
    1 + s + s^2/2 <= e^s, hence r <= sqrt(2 gap) + gap. If that is below 1, (1 - r) Theta* <= Theta, and the distance
    is at most r lambda_max(Theta*) <= r / (1 - r) lambda_max(Theta).
    """
    r = np.sqrt(2 * gap) + gap
    return float(largest * r / (1 - r)) if r < 1 else np.inf


def distance(found, tau: float | None) -> float:
    """How far a solution is from the optimum, at most."""
    bound = uncapped_distance_bound(found.duality_gap, np.linalg.eigvalsh(found.precision)[-1])
    return bound if tau is None else min(bound, distance_bound(found.duality_gap, max_eigenvalue=tau))


@settings(max_examples=60, deadline=None)
@given(problems, st.integers(1, 12), st.sampled_from([None, 0.1, 0.5, 2.0]))
def test_the_gap_and_the_distance_hold_after_any_number_of_iterations(case, n_iter, cap):
    S, rho = case
    R = off_diagonal(len(S), rho)
    tau = None if cap is None else cap / np.diagonal(S).mean()
    rough = graphical_lasso(S, rho, max_eigenvalue=tau, max_iter=n_iter, tolerance=1e-12)
    best = graphical_lasso(S, rho, max_eigenvalue=tau, max_iter=5_000, tolerance=1e-12)
    eigenvalues = np.linalg.eigvalsh(rough.precision)
    assert eigenvalues[0] > 0 and (tau is None or eigenvalues[-1] <= tau * (1 + 1e-12))
    assert rough.objective == pytest.approx(objective(rough.precision, S, R))
    slack = 1e-12 * len(S) * (1 + abs(best.objective))
    suboptimality = rough.objective - best.objective
    assert suboptimality >= -best.duality_gap - slack
    assert suboptimality <= rough.duality_gap + slack
    assert (np.abs(rough.dual - S) <= R * (1 + 1e-12) + 1e-12 * np.abs(S).max()).all()
    bound = distance(rough, tau) + distance(best, tau)
    assert np.linalg.norm(rough.precision - best.precision) <= bound + 1e-9 * eigenvalues[-1]


def test_the_bounds_are_not_vacuous():
    """Without penalty W = S is the dual optimum: the gap is the suboptimality, and moving along Theta* costs least."""
    S = problem(3, 5, 40, 0.0)[0]
    theta = np.linalg.inv(S)
    near = 1.001 * theta
    R = np.zeros_like(S)
    true = objective(near, S, R) - objective(theta, S, R)
    gap = duality_gap(near, S, S, R)
    assert gap == pytest.approx(true, rel=1e-6)
    bound = uncapped_distance_bound(gap, np.linalg.eigvalsh(near)[-1])
    assert 1 < bound / np.linalg.norm(near - theta) < 1.01 * np.sqrt(5)


def test_the_constants_of_the_distance_bound():
    """d = 1, Theta* = tau on the cap's inside: F(theta) - F* = t - 1 - log t at theta = t tau, curvature 1/tau^2."""
    tau, t = 4.0, 0.999
    gap = t - 1 - np.log(t)
    assert 1 < distance_bound(gap, max_eigenvalue=tau) / ((1 - t) * tau) < 1.001
    assert distance_bound(0.0, max_eigenvalue=tau) == 0.0
    assert uncapped_distance_bound(2.0, 1.0) == np.inf
    with pytest.raises(ValueError, match="gap"):
        distance_bound(-1.0, max_eigenvalue=1.0)


@pytest.mark.parametrize(("d", "n", "share"), [(5, 50, 0.1), (30, 200, 0.3), (60, 30, 0.4), (100, 400, 0.5)])
def test_objective_equals_scikit_learns(d, n, share):
    S, rho = problem(1, d, n, 0.0)[0], None
    size = np.sqrt(np.diagonal(S))
    S = S / np.outer(size, size)
    rho = share * np.abs(S - np.eye(d)).max()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it does not reach gaps much smaller than this
        _, theirs = sklearn.covariance.graphical_lasso(S, rho, tol=1e-5, enet_tol=1e-6, max_iter=400)
    ours = graphical_lasso(S, rho)
    R = off_diagonal(d, rho)
    there = objective((theirs + theirs.T) / 2, S, R)
    assert ours.converged
    assert ours.objective == pytest.approx(there, rel=1e-6)
    assert there >= ours.objective - ours.duality_gap - 1e-10  # nobody is below the certified minimum


def test_a_penalised_diagonal_is_the_penalty_added_to_it():
    S, rho = problem(2, 6, 30, 0.3)
    penalised = graphical_lasso(S, rho, penalize_diagonal=True)
    shifted = graphical_lasso(S + rho * np.eye(6), rho)
    np.testing.assert_array_equal(penalised.precision, shifted.precision)
    assert penalised.objective == pytest.approx(objective(penalised.precision, S, np.full((6, 6), rho)))


@pytest.mark.parametrize(
    ("variance", "rho", "cap", "expected"), [(2.0, 0.5, None, 0.4), (2.0, 0.5, 0.3, 0.3), (-1.0, 0.0, 3.0, 3.0)]
)
def test_one_variable(variance, rho, cap, expected):
    solution = graphical_lasso([[variance]], rho, penalize_diagonal=True, max_eigenvalue=cap)
    assert solution.precision == pytest.approx(np.array([[expected]]))
    assert solution.converged and solution.duality_gap < 1e-10


@pytest.mark.parametrize("correlation", [-0.7, 0.2, 0.7])
def test_two_variables(correlation):
    """The covariance is S with its entry off the diagonal moved towards 0 by rho."""
    S = np.array([[2.0, correlation * 2], [correlation * 2, 2.0]])
    shrunk = np.sign(correlation) * max(abs(correlation * 2) - 0.5, 0)
    expected = np.linalg.inv([[2.0, shrunk], [shrunk, 2.0]])
    np.testing.assert_allclose(graphical_lasso(S, 0.5, tolerance=1e-14).precision, expected, atol=1e-6)


@pytest.mark.parametrize("tau", [0.4, 0.8, 1.5])
def test_a_capped_pair_against_a_search_over_eigenvalues_and_angle(tau):
    S, rho = np.array([[1.0, 0.7], [0.7, 1.4]]), 0.1
    solution = graphical_lasso(S, rho, max_eigenvalue=tau, tolerance=1e-12, max_iter=10_000)
    assert solution.converged
    assert solution.objective == pytest.approx(by_search(S, off_diagonal(2, rho), tau), abs=1e-8)


@pytest.mark.parametrize("share", [0.1, 0.4])
def test_a_capped_program_against_cvxpy(share):
    S, rho = problem(4, 6, 30, share)
    tau = 0.5 * np.linalg.eigvalsh(graphical_lasso(S, rho).precision)[-1]
    theta = cvxpy.Variable((6, 6), PSD=True)
    penalty = cvxpy.sum(cvxpy.multiply(off_diagonal(6, rho), cvxpy.abs(theta)))
    program = cvxpy.Problem(
        cvxpy.Minimize(-cvxpy.log_det(theta) + cvxpy.trace(S @ theta) + penalty), [theta << tau * np.eye(6)]
    )
    program.solve()
    assert graphical_lasso(S, rho, max_eigenvalue=tau).objective == pytest.approx(program.value, rel=1e-4)


def test_a_cap_that_does_not_bind_changes_nothing_and_one_that_does_is_reached():
    S, rho = problem(5, 8, 40, 0.2)
    free = graphical_lasso(S, rho, tolerance=1e-12)
    largest = np.linalg.eigvalsh(free.precision)[-1]
    loose = graphical_lasso(S, rho, max_eigenvalue=2 * largest, tolerance=1e-12)
    np.testing.assert_allclose(loose.precision, free.precision, atol=1e-4 * largest)
    tight = graphical_lasso(S, rho, max_eigenvalue=largest / 2, max_iter=5_000)
    assert tight.converged and tight.objective > free.objective
    assert np.linalg.eigvalsh(tight.precision)[-1] == pytest.approx(largest / 2, rel=1e-6)


def test_without_penalty():
    S = problem(6, 5, 40, 0.0)[0]
    np.testing.assert_allclose(graphical_lasso(S, 0.0).precision, np.linalg.inv(S), rtol=1e-8)
    w, v = np.linalg.eigh(S - 1.1 * np.linalg.eigvalsh(S)[0] * np.eye(5))  # one eigenvalue below 0
    tau = 3 / w[-1]
    capped = graphical_lasso((v * w) @ v.T, 0.0, max_eigenvalue=tau)
    expected = (v * np.where(w * tau > 1, 1 / w, tau)) @ v.T
    np.testing.assert_allclose(capped.precision, expected, atol=1e-9 * tau)
    assert capped.duality_gap < 1e-9


@pytest.mark.parametrize("cap", [None, 0.6])
def test_screening_is_exact(cap):
    """Two components, in mixed order: each is solved apart, and together they satisfy the whole program's gap."""
    rng = np.random.default_rng(7)
    blocks = [problem(seed, 4, 30, 0.0)[0] for seed in (1, 2)]
    S = scipy.linalg.block_diag(*(b / np.sqrt(np.outer(np.diagonal(b), np.diagonal(b))) for b in blocks))
    S[:4, 4:] = S[4:, :4].T
    noise = rng.uniform(-0.1, 0.1, size=(4, 4))
    S[:4, 4:], S[4:, :4] = noise, noise.T
    order = rng.permutation(8)
    mixed = S[np.ix_(order, order)]
    whole = graphical_lasso(mixed, 0.1, max_eigenvalue=cap, tolerance=1e-12, max_iter=20_000)
    parts = [
        graphical_lasso(S[b, b], 0.1, max_eigenvalue=cap, tolerance=1e-12, max_iter=20_000)
        for b in (slice(4), slice(4, 8))
    ]
    assert whole.n_components == 2
    expected = scipy.linalg.block_diag(*(part.precision for part in parts))[np.ix_(order, order)]
    np.testing.assert_allclose(whole.precision, expected, atol=1e-5)
    gap = duality_gap(whole.precision, whole.dual, mixed, off_diagonal(8, 0.1), cap)
    assert gap == pytest.approx(whole.duality_gap, abs=1e-12) and gap <= 8e-12 + 1e-13
    # Nothing near it is better: entries between the components included.
    R = off_diagonal(8, 0.1)
    for _ in range(50):
        move = rng.normal(size=(8, 8)) * 1e-3
        other = whole.precision + move + move.T
        if cap is not None:
            other = other * min(1, cap / np.linalg.eigvalsh(other)[-1])
        assert objective(other, mixed, R) >= whole.objective - 1e-11


def test_duplicated_columns_and_few_records():
    rng = np.random.default_rng(8)
    x = rng.normal(size=(4, 6))
    x = np.concatenate([x, x[:, :2]], axis=1)
    S = x.T @ x / 4
    solution = graphical_lasso(S, 0.05, max_iter=20_000, tolerance=1e-8)
    assert solution.converged and np.linalg.eigvalsh(solution.precision)[0] > 0
    np.testing.assert_allclose(np.diagonal(solution.covariance), np.diagonal(S), rtol=1e-2)


def test_a_warm_start_ends_at_the_same_place_sooner():
    S, rho = problem(9, 20, 60, 0.1)
    first = graphical_lasso(S, rho)
    again = graphical_lasso(S, rho, start=first.precision)
    assert again.converged and again.n_iter <= 5 < first.n_iter
    assert again.objective == pytest.approx(first.objective, abs=3e-8)
    capped = graphical_lasso(
        S, rho, start=first.precision, max_eigenvalue=0.9 * np.linalg.eigvalsh(first.precision)[-1]
    )
    assert capped.duality_gap < 1e-3


def test_infinite_weights_are_exact_zeros():
    S = problem(10, 6, 40, 0.0)[0]
    R = off_diagonal(6, 0.02)
    R[0, 3] = R[3, 0] = R[1, 2] = R[2, 1] = np.inf
    solution = graphical_lasso(S, R, max_iter=5_000)
    assert solution.converged
    assert solution.precision[0, 3] == solution.precision[1, 2] == 0.0


def test_variables_of_very_different_scales():
    S, rho = problem(11, 5, 40, 0.3)
    size = 10.0 ** np.arange(-3, 2)
    R = rho * np.outer(size, size)
    plain = graphical_lasso(S, rho, tolerance=1e-12)
    scaled = graphical_lasso(S * np.outer(size, size), R, tolerance=1e-12)
    np.testing.assert_allclose(scaled.precision * np.outer(size, size), plain.precision, rtol=1e-6, atol=1e-9)


def test_no_variables():
    solution = graphical_lasso(np.zeros((0, 0)), 0.1)
    assert solution.precision.shape == (0, 0) and solution.objective == 0.0 and solution.converged


def test_ending_early_is_said():
    S, rho = problem(12, 10, 8, 0.05)
    solution = graphical_lasso(S, rho, max_iter=1)
    assert not solution.converged and "max_iter=1" in solution.status
    assert np.linalg.eigvalsh(solution.precision)[0] > 0


def test_torch_gives_the_same():
    pytest.importorskip("torch")
    S, rho = problem(13, 12, 40, 0.2)
    tau = 0.8 * np.linalg.eigvalsh(graphical_lasso(S, rho).precision)[-1]
    ours = [graphical_lasso(S, rho, max_eigenvalue=cap, max_iter=5_000) for cap in (None, tau)]
    config.set_backend("torch", device=DEVICE)
    try:
        theirs = [graphical_lasso(S, rho, max_eigenvalue=cap, max_iter=5_000) for cap in (None, tau)]
    finally:
        config.set_backend("numpy")
    for a, b in zip(ours, theirs, strict=True):
        assert a.n_iter == b.n_iter and type(b.precision) is np.ndarray
        np.testing.assert_allclose(a.precision, b.precision, atol=1e-8)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[1.0, 0.0]], 0.1), "S must be a square"),
        (([[1.0, 0.3], [0.0, 1.0]], 0.1), "S must be symmetric"),
        (([[1.0, np.nan], [np.nan, 1.0]], 0.1), "S must be a square matrix of finite"),
        ((np.eye(2), -0.1), "penalty"),
        ((np.eye(2), np.array([[0, 1.0], [2.0, 0]])), "penalty"),
        ((np.eye(2), np.ones(2)), "penalty"),
        (([[1.0, 1.0], [1.0, 1.0]], 0.0), "max_eigenvalue"),
        (([[1.0, 2.0], [2.0, 1.0]], 0.5), "eigenvalue -1"),
        (([[0.0]], 0.0), "max_eigenvalue"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        graphical_lasso(*arguments)


@pytest.mark.parametrize(
    "option", [{"max_eigenvalue": 0.0}, {"max_eigenvalue": np.inf}, {"tolerance": 0.0}, {"max_iter": 0}]
)
def test_bad_options(option):
    with pytest.raises(ValueError, match=next(iter(option))):
        graphical_lasso(np.eye(2), 0.1, **option)


def test_bad_starts():
    for start in (np.eye(3), -np.eye(2)):
        with pytest.raises(ValueError, match="start"):
            graphical_lasso(np.eye(2), 0.1, start=start)
