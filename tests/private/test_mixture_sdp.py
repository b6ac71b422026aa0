"""The membership pipeline: its constants against what they bound, its refusals, its steps, and audits with mutants."""

from __future__ import annotations

import dataclasses
import math
import pickle

import numpy as np
import pytest
from scipy.stats import binom

from pgmpy_dp.estimators import PrivateGaussianMixture
from pgmpy_dp.private.data.vectors import PrivateVectors
from pgmpy_dp.private.guarantee import ApproxDP
from pgmpy_dp.private.learners import mixture_sdp
from pgmpy_dp.private.learners.mixture import mixture_estimate
from pgmpy_dp.private.learners.mixture_sdp import (
    MAX_RECORDS,
    PROGRAM_STATUSES,
    ProgramSettings,
    noisy_centres,
    required_records,
    run,
)
from pgmpy_dp.private.learners.mixture_sdp_plan import (
    FULL,
    OVERLAP,
    CentrePlan,
    _above,
    budget_parts,
    plan_program,
    unit_of,
)
from pgmpy_dp.private.ledger import Budget, BudgetExceeded
from pgmpy_dp.private.mathematics.membership import HIGH, LOW, linked_means, soft_threshold
from pgmpy_dp.private.noise.truncated_laplace import TruncatedLaplace
from pgmpy_dp.private.sensitive import Release
from pgmpy_dp.solvers.membership_program import membership_program
from tests.private.audit import audit, epsilon_bound

BUDGET = Budget(epsilon=1.0, delta=1e-6)
SETTINGS = ProgramSettings(3, separation=32.0, scale=1.0, demonstration=True, random_state=0)


def vectors(records, *, public=True, budget=BUDGET):
    n = {"adjacency": "replace_one", "n_records": len(records)} if public else {}
    return PrivateVectors(records, ledger=budget, **n)


def mixture(n, separation=32.0, k=3, d=3, seed=0, shift=0.0):
    rng = np.random.default_rng(seed)
    centres = np.eye(d)[:k] * separation / math.sqrt(2) + shift
    return centres[np.arange(n) % k] + rng.normal(size=(n, d)), centres


# Constants


def test_overlap_is_the_largest_ratio_of_weights_to_the_membership_of_a_pair():
    w = np.linspace(LOW, 1.0, 401)
    a, b = np.meshgrid(w, w)
    shared = a * b - np.sqrt((1 - a * a) * (1 - b * b))
    ratio = soft_threshold(a) * soft_threshold(b) / shared
    assert shared.min() > 0.27
    assert ratio.max() == pytest.approx(OVERLAP, rel=1e-9)


@pytest.mark.parametrize(("n", "rate"), [(50, 0.3), (1000, 0.002), (100_000, 0.0005)])
@pytest.mark.parametrize("probability", [1e-2, 1e-7])
def test_chernoff_is_above_the_exact_binomial(n, rate, probability):
    limit = _above(n * rate, probability)
    assert binom.sf(math.ceil(limit) - 1, n, rate) <= probability
    assert binom.sf(math.floor(n * rate) - 1, n, rate) > probability


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_the_parts_add_up_to_the_budget(epsilon):
    parts = budget_parts(epsilon, 1e-5)
    assert sum(parts.epsilon.values()) <= epsilon
    # Number of records, test, three events of the draw, noise on rows; then, after that noise, four more.
    assert 6 * parts.delta + math.exp(parts.epsilon["rows"]) * 4 * parts.later_delta <= 1e-5
    assert sum(parts.epsilon.values()) > 0.999 * epsilon


def test_steps_of_a_plan_cost_what_the_parts_say():
    epsilon, delta = 1.0, 1e-6
    n = int(required_records(3, 8, 32.0, epsilon, delta))
    plan, parts = plan_program(n, 3, 8, 32.0, 0.5, (epsilon, delta)), budget_parts(epsilon, delta)
    centres = plan.centres
    assert plan.accurate and centres is not None
    b, a = centres.bad_rows, math.exp(-1 / centres.cell_scale)
    assert 2 * b / centres.cell_scale <= parts.epsilon["cells"]
    # A cell that a neighbour lacks: counts of b in all, in at most b cells, on both sides.
    assert 2 * b * a ** (centres.threshold - b) / (1 + a) <= parts.later_delta
    # More than b bad rows among those drawn: a binomial tail, here its Poisson limit.
    mean = plan.moved_rows * centres.rate
    assert sum(math.exp(-mean) * mean**j / math.factorial(j) for j in range(b + 1, b + 60)) <= parts.delta
    assert plan.limit >= plan.test.largest
    # Twice as many records are not worse, half as many not accurate.
    assert plan_program(2 * n, 3, 8, 32.0, 0.5, (epsilon, delta)).accurate
    assert not plan_program(n // 2, 3, 8, 32.0, 0.5, (epsilon, delta)).accurate


@pytest.mark.parametrize("place", ["other cluster", "far", "between"])
def test_the_bounds_of_the_proof_on_neighbours(place):
    n, k = 60, 3
    c, h0 = n / k, 1 / (HIGH - LOW) * math.sqrt(2 * k / (LOW * n)) / FULL
    points, centres = mixture(n, 30.0)
    other = points.copy()
    other[0] = {"other cluster": centres[1], "far": np.full(3, 1e5), "between": centres.mean(axis=0)}[place]
    solved = [membership_program(p, k, 1.0, tolerance=0.1, max_iter=20_000, reach=500.0) for p in (points, other)]
    assert all(s.converged for s in solved)
    (nu, sizes), (nu2, sizes2) = (linked_means(s.weights, p) for s, p in zip(solved, (points, other), strict=True))
    moved = np.linalg.norm(solved[0].weights - solved[1].weights, axis=1)
    plan = plan_program(n, k, 3, 30.0, 0.5, (1.0, 1e-6))
    assert np.linalg.norm(moved) <= plan.sensitivity
    unlinked = [np.sum(1 - np.minimum(s / c, 1)) for s in (sizes, sizes2)]
    assert abs(unlinked[0] - unlinked[1]) <= plan.test.scale * budget_parts(1.0, 1e-6).epsilon["test"]
    eta = h0 * moved + 2 / (FULL * c)
    spread = math.sqrt(OVERLAP * 1.5 * k) / FULL
    good = [i for i in range(1, n) if min(sizes[i], sizes2[i]) >= FULL * c and eta[i] < 1]
    assert len(good) >= n / 4
    for i in good:
        assert np.linalg.norm(nu[i] - nu2[i]) <= 2 * spread * math.sqrt(eta[i] / (1 - eta[i]))


# Refusals and outcomes


def test_a_public_number_of_records_is_refused_before_any_cost():
    records, _ = mixture(90)
    data = vectors(records)
    strict = dataclasses.replace(SETTINGS, demonstration=False)
    with pytest.raises(ValueError, match=r"n_records=90 is too few .* below about \d\.?\d*e\+2\d records"):
        run(data, strict, BUDGET)
    big = PrivateVectors(records, adjacency="replace_one", n_records=10**25, ledger=BUDGET)
    with pytest.raises(ValueError, match="too large for method 'sdp'"):
        run(big, strict, BUDGET)
    few = PrivateVectors(records, adjacency="replace_one", n_records=2, ledger=BUDGET)
    with pytest.raises(ValueError, match="below n_components=3"):
        run(few, SETTINGS, BUDGET)
    assert not data.ledger.entries and not big.ledger.entries and not few.ledger.entries


def test_other_refusals_before_any_cost():
    records, _ = mixture(30)
    data = vectors(records)
    for budget in (Budget(epsilon=1.0), Budget(rho=0.1)):
        with pytest.raises(ValueError, match="delta above 0"):
            run(data, SETTINGS, budget)
    with pytest.raises(BudgetExceeded):
        run(data, SETTINGS, Budget(epsilon=2.0, delta=1e-6))
    with pytest.raises(ValueError, match="raise epsilon"):
        run(data, SETTINGS, Budget(epsilon=1e-14, delta=1e-6))
    with pytest.raises(TypeError, match="PrivateVectors"):
        run(records, SETTINGS, BUDGET)
    with pytest.raises(ValueError, match="257 columns"):
        run(vectors(np.zeros((30, 257))), SETTINGS, BUDGET)
    assert not data.ledger.entries


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"n_components": 0}, ValueError),
        ({"separation": -1.0}, ValueError),
        ({"separation": None}, TypeError),
        ({"scale": 1e-9}, ValueError),
        ({"slack": -0.1}, ValueError),
        ({"slack": 1e9}, ValueError),
        ({"demonstration": 1}, TypeError),
        ({"random_state": -1}, ValueError),
    ],
)
def test_settings_are_checked(change, error):
    with pytest.raises(error, match=next(iter(change))):
        dataclasses.replace(SETTINGS, **change)


@pytest.mark.parametrize("public", [True, False])
def test_a_demonstration_spends_the_budget_and_finds_nothing(public):
    records, _ = mixture(45)
    data = vectors(records, public=public)
    release = run(data, SETTINGS, BUDGET)
    assert mixture_estimate(release).status == PROGRAM_STATUSES[3]
    assert mixture_estimate(release).means is None
    assert release.guarantee == ApproxDP(1.0, 1e-6) and str(data.ledger.spent) == "(1, 1e-06)-DP"
    assert len(data.ledger.entries) == (1 if public else 2)
    extra = dict(zip(release.public["values"], release.values, strict=True))
    assert ("n_records" in extra) == (not public)
    assert public or extra["n_records"][0] >= 45
    assert Release.load is not None and pickle.loads(pickle.dumps(release)) == release


def test_a_private_number_of_records_is_paid_for_alone_where_the_program_is_not_run():
    records, _ = mixture(45)
    data = vectors(records, public=False)
    release = run(data, dataclasses.replace(SETTINGS, demonstration=False), BUDGET)
    assert mixture_estimate(release).status == PROGRAM_STATUSES[1]
    assert release.guarantee.epsilon == pytest.approx(0.02) and release.guarantee.delta == pytest.approx(1e-7)
    assert data.ledger.spent == release.guarantee


@pytest.mark.parametrize(
    "records",
    [np.zeros((0, 2)), np.full((5, 2), np.nan), np.zeros((40, 2)), np.full((9, 2), 1e300), [[1e300, -1e300]] * 3],
    ids=["none", "not finite", "identical", "huge", "opposite"],
)
def test_no_records_raise(records):
    release = run(vectors(np.asarray(records, dtype=float), public=False), SETTINGS, BUDGET)
    assert release.public["status"] in PROGRAM_STATUSES[1:]


def test_the_estimator_hands_over_to_it():
    records, _ = mixture(45)
    model = PrivateGaussianMixture(3, 32.0, 1.0, method="sdp", epsilon=1.0, delta=1e-6)
    assert model.fit(records).status_ == PROGRAM_STATUSES[1] and not model.converged_
    assert PrivateGaussianMixture(3).fit_release(model.release_).status_ == model.status_
    with pytest.raises(ValueError, match="too few for method 'sdp'"):
        model.set_params(adjacency="replace_one", n_records=45).fit(records)
    with pytest.raises(TypeError, match="separation and scale must be public"):
        model.set_params(scale=None).fit(records)


# The steps together, with constants that protect nobody


def loose(plan, **centres):
    noise = CentrePlan(1.0, 1, 2.0**16, 3, 16 * 2**20, 1.0, 6, 2.0**12, 0.0, 0.0)
    return dataclasses.replace(
        plan, test=TruncatedLaplace(0.5, 2), limit=10, centres=dataclasses.replace(noise, **centres), accurate=True
    )


@pytest.mark.parametrize("shift", [0.0, 1e4])
def test_the_whole_pipeline_finds_centres_where_noise_is_small(monkeypatch, shift):
    monkeypatch.setattr(mixture_sdp, "plan_program", lambda *a, **k: loose(plan_program(*a, **k)))
    records, centres = mixture(60, shift=shift)
    found = 0
    for seed in range(10):
        settings = dataclasses.replace(SETTINGS, demonstration=False, random_state=seed)
        estimate = mixture_estimate(run(vectors(records), settings, BUDGET))
        if estimate.means is not None:
            distances = np.linalg.norm(estimate.means[:, None] - centres[None], axis=2)
            found += sorted(distances.argmin(axis=1)) == [0, 1, 2] and distances.min(axis=1).max() < 1.0
            assert estimate.weights == pytest.approx(np.full(3, 1 / 3), abs=0.2)
    assert found >= 6  # the shift of the grid puts a wall through a cluster now and then


def test_the_test_refuses_clusters_that_are_not_there(monkeypatch):
    monkeypatch.setattr(mixture_sdp, "plan_program", lambda *a, **k: loose(plan_program(*a, **k)))
    records, _ = mixture(60, separation=3.0)
    release = run(vectors(records), dataclasses.replace(SETTINGS, demonstration=False), BUDGET)
    assert release.public["status"] == PROGRAM_STATUSES[2]
    unlinked = dict(zip(release.public["values"], release.values, strict=True))["unlinked"]
    assert 10 < unlinked[0] <= 60 + 4


@pytest.mark.parametrize("d", [2, 30])
def test_required_records_are_enough_for_the_steps_after_the_test(d):
    """At the n that is said to be required, estimates at the centres survive the noise of that n."""
    epsilon, separation, k = (1.0, 100.0, 2) if d == 2 else (50.0, 1000.0, 2)
    n = required_records(k, d, separation, epsilon, 1e-6)
    assert MAX_RECORDS < n < math.inf
    plan = plan_program(int(n), k, d, separation, 0.5, (epsilon, 1e-6)).centres
    assert plan is not None
    unit = unit_of(1.0)
    centres = np.eye(d)[:k] * separation / math.sqrt(2) * 1.001 + 1e4
    found, trials = 0, 20
    for seed in range(trials):
        rng = np.random.default_rng(seed)
        labels = rng.integers(k, size=rng.poisson(plan.rate * n))
        result = noisy_centres(centres[labels] / unit, k, plan, rng)
        if result.means is not None:
            distances = np.linalg.norm(result.means[0][:, None] * unit - centres[None], axis=2)
            found += sorted(distances.argmin(axis=1)) == list(range(k)) and distances.min(axis=1).max() < separation / 2
    assert found >= trials / 2


def test_noisy_centres_of_no_estimates_and_of_identical_ones():
    plan = CentrePlan(1.0, 1, 1.0, 2, 1000, 1.0, 5, 1.0, 0.0, 0.0)
    assert noisy_centres(np.zeros((0, 2)), 1, plan).means is None
    result = noisy_centres(np.full((40, 2), 2.0**50), 1, plan, np.random.default_rng(1))
    assert result.status == 0
    assert np.abs(result.means[0] - 2**50).max() < 20  # type: ignore[index]


# Audits


def released(count, plan, draws, seed):
    """Whether the cell of `count` estimates is released, in many runs."""
    rng, rows = np.random.default_rng(seed), np.zeros((count, 1))
    return np.array([noisy_centres(rows, 1, plan, rng).status == 0 for _ in range(draws)], dtype=float)


def test_audit_of_a_cell_that_a_neighbour_lacks_with_mutants():
    b, epsilon, delta = 3, 1.0, 0.05
    scale = 2 * b / epsilon
    threshold = b + math.ceil(scale * math.log(2 * b / delta))
    right = CentrePlan(1.0, b, 1e-3, 1, 1 << 30, scale, threshold, 1.0, 0.0, 0.0)

    def bound(plan):
        def draw(dataset, count):
            # b bad rows are one cell here, and nothing in the neighbour.
            return released(b if dataset == 0 else 0, plan, count, [dataset, count])

        return audit(draw, lambda outputs: outputs, releases=3_000, bound=lambda p, q: epsilon_bound(p, q, delta))

    assert bound(right) <= epsilon
    assert bound(dataclasses.replace(right, threshold=b)) > epsilon  # forgets the threshold's noise
    single = CentrePlan(1.0, 1, 1e-3, 1, 1 << 30, 2.0, 1 + math.ceil(2 * math.log(2 / delta)), 1.0, 0.0, 0.0)
    assert bound(dataclasses.replace(right, threshold=single.threshold - 6, cell_scale=scale)) > epsilon


def test_audit_of_the_noise_on_rows_with_a_mutant():
    epsilon, delta, l2 = 1.0, 1e-3, 4096.0
    from pgmpy_dp.private import accounting

    scale = l2 / math.sqrt(2 * accounting.approx_to_zcdp(epsilon, delta))
    right = CentrePlan(1.0, 1, scale, 1, 1 << 40, 1e-3, 1, 1e-3, 0.0, 0.0)

    def bound(plan):
        def draw(dataset, count):
            rng = np.random.default_rng([dataset, count])
            rows = np.full((1, 1), l2 * dataset)
            return np.array([noisy_centres(rows, 1, plan, rng).means[0][0, 0] for _ in range(count)], dtype=float)

        return audit(draw, lambda outputs: -outputs, releases=2_500, bound=lambda p, q: epsilon_bound(p, q, delta))

    assert bound(right) <= epsilon
    assert bound(dataclasses.replace(right, row_scale=scale / 8)) > epsilon
