"""Matrix noise: closed forms, quadrature, calibration, refusals, and audits that pass and that catch broken copies.

False alarms: each audit is above the claim with probability at most 1e-6 if the claim holds; seeds are fixed.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from fractions import Fraction
from unittest import mock

import numpy as np
import pytest
from scipy import stats

from pgmpy_dp.private import accounting
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.data.moments import TRACE, TraceSensitivity, second_moments, trace_sensitivity
from pgmpy_dp.private.data.vectors import PrivateVectors
from pgmpy_dp.private.guarantee import ZCDP, ApproxDP, PureDP
from pgmpy_dp.private.noise import matrix
from pgmpy_dp.private.noise.matrix import (
    MECHANISMS,
    add_matrix_noise,
    plan_matrix_noise,
    standard_normals,
    wishart_scale,
)
from pgmpy_dp.private.noise.wishart import shifted_chi2_delta, smallest_degrees
from pgmpy_dp.private.sensitive import Noise, Sensitive
from tests.private import audit

ADD, REPLACE = Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE
PURE, RHO, BOTH = Budget(epsilon=1.0), Budget(rho=0.5), Budget(epsilon=1.0, delta=1e-6)
BUDGETS = {
    "double-wishart": PURE,
    "laplace": PURE,
    "published-laplace": PURE,
    "frobenius": PURE,
    "goe": RHO,
    "gaussian": RHO,
    "one-sided-wishart": BOTH,
    "analytic-goe": BOTH,
}


def draws(noise, count, seed=0, value=None):
    """Noisy upper triangles, shape (count, d, d), whatever the sampler."""
    d = noise.n_columns
    upper = np.zeros(d * (d + 1) // 2, dtype=np.int64) if value is None else value
    moments = Sensitive(upper, ADD, 1.0, 1.0, 1.0)
    rng = np.random.default_rng(seed)
    with mock.patch.object(np, "triu_indices", functools.cache(np.triu_indices)):  # half of the time otherwise
        found = [add_matrix_noise(moments, noise, rng) for _ in range(count)]
    diagonal, rest = map(np.array, zip(*found, strict=True))
    out = np.zeros((count, d, d))
    out[:, *np.triu_indices(d, 1)] = rest
    out += out.transpose(0, 2, 1).copy()
    out[:, range(d), range(d)] = diagonal
    return out


class TestPlan:
    @pytest.mark.parametrize("mechanism", MECHANISMS[1:])
    def test_standard_deviations_are_those_of_the_samples(self, mechanism):
        noise = plan_matrix_noise(mechanism, 3, ADD, BUDGETS[mechanism])
        sample = draws(noise, 4000)
        on, off = sample[:, range(3), range(3)], sample[:, [0, 0, 1], [1, 2, 2]]
        for values, cell in ((on, noise.diagonal), (off, noise.off_diagonal)):
            assert values.std() == pytest.approx(math.sqrt(cell.variance), rel=0.06)
            assert abs(values.mean()) < 5 * math.sqrt(cell.variance / values.size)
        assert np.sqrt((sample**2).sum(axis=(1, 2)).mean()) == pytest.approx(noise.frobenius, rel=0.06)

    def test_errors_of_the_table(self):
        """Frobenius errors at epsilon = 1, delta = 1e-6 for d = 5, 20, 100, in units of the squared norm."""
        table = {
            "double-wishart": (9, 66, 714),
            "laplace": (21, 297, 7142),
            "published-laplace": (71, 1131, 28284),
            "goe": (17, 66, 322),
            "gaussian": (23, 91, 453),
        }
        for mechanism, errors in table.items():
            for d, error in zip((5, 20, 100), errors, strict=True):
                assert plan_matrix_noise(mechanism, d, ADD, BOTH).frobenius / TRACE == pytest.approx(error, abs=0.6)
        closed = math.sqrt(2 * 20) * 21 / 2.0
        assert plan_matrix_noise("double-wishart", 20, ADD, BOTH).frobenius / TRACE == pytest.approx(closed)

    @pytest.mark.parametrize("adjacency", [ADD, REPLACE])
    def test_scales_spend_the_budget_and_no_more(self, adjacency):
        share = Fraction(3, 4)
        for d in (1, 2, 7):
            size = trace_sensitivity(d, adjacency)
            for budget in (Budget(epsilon=0.3), Budget(epsilon=7.0)):
                epsilon = share * Fraction(budget.epsilon)
                for mechanism, limit in (
                    ("laplace", Fraction(size.l1)),
                    ("frobenius", Fraction(size.frobenius)),
                    ("double-wishart", Fraction(size.nuclear) / 2),
                ):
                    noise = plan_matrix_noise(mechanism, d, adjacency, budget, share=share)
                    spent = limit / Fraction(noise.scale)
                    # The double Wishart's scale is a whole number.
                    slack = Fraction(1, 10**7 if mechanism == "double-wishart" else 10**12)
                    assert spent <= epsilon <= spent * (1 + slack)
                    assert noise.cost == PureDP(budget.epsilon)
            noise = plan_matrix_noise("goe", d, adjacency, RHO, share=share)
            # The costliest shifts: one diagonal entry; one off-diagonal entry, which has Frobenius norm sqrt(2).
            on = Fraction(size.frobenius) ** 2 / (2 * Fraction(noise.diagonal.scale) ** 2)
            off = Fraction(size.frobenius) ** 2 / 2 / (2 * Fraction(noise.off_diagonal.scale) ** 2)
            for spent in (on, off):
                assert spent <= share * Fraction(RHO.rho) <= spent * (1 + Fraction(1, 10**12))

    @pytest.mark.parametrize("d", [1, 4, 30])
    @pytest.mark.parametrize("epsilon", [0.5, 3.0])
    def test_analytic_noise_pays_for_its_grid_and_is_refused_where_that_is_too_much(self, d, epsilon):
        """The smallest sensitivity that is taken: all cells together, (1 + exp(epsilon)) tau is 2**-10 of delta."""
        budget = Budget(epsilon=epsilon, delta=1e-6)

        def sigma(frobenius):
            size = TraceSensitivity(math.inf, frobenius, math.inf)
            try:
                return plan_matrix_noise("analytic-goe", d, ADD, budget, sensitivity=size).scale
            except ValueError:
                return None

        low, high = 1e-3, 1e9
        while high / low > 1 + 1e-9:
            middle = math.sqrt(low * high)
            low, high = (middle, high) if sigma(middle) is None else (low, middle)
        # d (d + 1)/2 cells; off the diagonal the variance is half of sigma**2, so that 24 s**2 is 12 sigma**2.
        tau = Fraction(d * (d + 1), 2) / (12 * Fraction(sigma(high)) ** 2 - 1)
        paid = (1 + math.exp(epsilon)) * float(tau) / budget.delta
        assert 2**-10 * 0.99 < paid <= 2**-10
        # What is left of delta is what the Gaussian is for.
        mu = high / sigma(high)
        left = stats.norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * stats.norm.cdf(-mu / 2 - epsilon / mu)
        assert 1 - 1e-5 < left / (budget.delta * (1 - 2**-10)) <= 1 + 1e-8

    def test_the_whole_number_of_a_wishart_is_not_below_what_it_has_to_be(self):
        for trace in (1000, 1001, 999_999):
            assert wishart_scale(1, Fraction(trace), Fraction(1, 2)) == trace
            assert wishart_scale(1, Fraction(trace), Fraction(1)) == -(-trace // 2)
            assert wishart_scale(1, Fraction(trace), Fraction(1, 3) + Fraction(1, 10**9)) == -(-3 * trace // 2)

    def test_auto_takes_the_better_of_what_the_budget_allows(self):
        assert plan_matrix_noise("auto", 30, ADD, PURE).mechanism == "double-wishart"
        assert plan_matrix_noise("auto", 3, ADD, RHO).mechanism == "goe"
        assert [plan_matrix_noise("auto", d, ADD, BOTH).mechanism for d in (5, 50)] == ["double-wishart", "goe"]
        assert plan_matrix_noise("auto", 50, ADD, BOTH).cost == ZCDP(accounting.approx_to_zcdp(1.0, 1e-6))
        assert plan_matrix_noise("one-sided-wishart", 50, ADD, BOTH).cost == ApproxDP(1.0, 1e-6)

    @pytest.mark.parametrize(
        ("mechanism", "adjacency", "budget", "single", "match"),
        [
            ("nonsense", ADD, PURE, True, "mechanism='nonsense'"),
            ("wishart", ADD, PURE, True, "mechanism='wishart'"),
            ("goe", ADD, PURE, True, "no pure guarantee"),
            ("double-wishart", ADD, RHO, True, "is for an epsilon"),
            ("one-sided-wishart", ADD, PURE, True, "private only with a delta"),
            ("one-sided-wishart", ADD, RHO, True, "private only with a delta"),
            ("one-sided-wishart", REPLACE, BOTH, True, "single records under"),
            ("one-sided-wishart", ADD, BOTH, False, "single records under"),
            ("double-wishart", ADD, Budget(epsilon=1e-9), True, "64-bit"),
            ("laplace", ADD, Budget(epsilon=1e-9), True, "noise of scale"),
            ("goe", ADD, Budget(rho=1e-15), True, "noise of scale"),
            ("one-sided-wishart", ADD, Budget(epsilon=1e-5, delta=1e-12), True, "degrees of freedom"),
        ],
    )
    def test_what_has_no_proof_is_refused(self, mechanism, adjacency, budget, single, match):
        with pytest.raises(ValueError, match=match):
            plan_matrix_noise(mechanism, 30, adjacency, budget, single_records=single)


class TestDoubleWishart:
    def test_a_release_calls_it_by_its_law(self):
        """What was called "double_wishart" was made in floating point."""
        noise = plan_matrix_noise("double-wishart", 3, ADD, PURE)
        assert noise.name == noise.diagonal.distribution == "discrete_wishart"
        assert not noise.diagonal.floating_point and Noise("double_wishart", 1.0).floating_point
        assert plan_matrix_noise("one-sided-wishart", 3, ADD, BOTH).name == "one_sided_wishart"

    def test_one_column_is_the_laplace_distribution(self):
        noise = plan_matrix_noise("double-wishart", 1, ADD, PURE)
        assert noise.scale == TRACE / 2
        sample = draws(noise, 8_000)[:, 0, 0]
        assert stats.kstest(sample, stats.laplace(scale=2 * noise.scale).cdf).pvalue > 1e-3

    def test_log_density_of_two_columns_is_lipschitz_in_the_nuclear_norm(self):
        """Quadrature. By rotation, M = diag(a, b) up to shifts; the density is a volume under exp(-tr B/c)."""
        nodes, weights = np.polynomial.legendre.leggauss(60)

        def log_density(m):
            low, high = np.linalg.eigvalsh(m)
            if high <= 0:
                low, high = -high, -low  # symmetric in M
            if low >= 0:  # const exp(-tr M/2), c = 1, with the integral of exp(-tr B) over B >= 0
                low, high = 0.0, high + low  # the same value: only the trace counts
            a, b = high, -low
            # B = [[x, z], [z, b + t]] with z**2 <= min(x (b + t), (x + a) t); the kink is at x b = a t, so that in
            # (x, t) = r (u, 1 - u) each side of u = a/(a + b) is smooth.
            kink, total = a / (a + b), 0.0
            r = -np.log((nodes + 1) / 2)  # exp(-r) dr = dw, w uniform on (0, 1)
            for start, end in ((0.0, kink), (kink, 1.0)):
                u = start + (end - start) * np.sin(np.pi * (nodes + 1) / 4) ** 2  # flattens the roots at both ends
                du = (end - start) * np.sin(np.pi * (nodes + 1) / 2) * np.pi / 4 * weights
                x, t = np.outer(r, u), np.outer(r, 1 - u)
                height = 2 * np.sqrt(np.minimum(x * (b + t), (x + a) * t))
                total += float((weights / 2 * r) @ height @ du)
            return math.log(total) - b - (a - b) / 2

        rng, c, largest = np.random.default_rng(0), 1.0, 0.0
        for _ in range(300):
            m, shift = (x + x.T for x in rng.normal(size=(2, 2, 2)))
            if rng.random() < 0.5:
                z = rng.normal(size=2)
                shift = np.outer(z, z)
            bound = np.linalg.norm(shift, "nuc") / (2 * c)
            ratio = abs(log_density(m + shift) - log_density(m)) / bound
            assert ratio <= 1 + 2e-3
            largest = max(largest, ratio)
        assert largest > 0.999  # and it is attained: c could not be smaller

    def test_the_quadrature_knows_too_few_degrees_of_freedom(self):
        """With d = 1 degree of freedom in d = 1 the log-density, of a K0, has no bounded slope."""
        from scipy.special import k0

        slopes = [math.log(k0(x / 2) / k0((x + 1e-4) / 2)) / 1e-4 for x in (1e-4, 1e-2, 1.0)]
        assert slopes[0] > 100 and slopes[1] > 2 * 0.5

    def test_the_spectral_norm_has_a_root_of_d_less_than_laplace(self):
        d = 40
        double, laplace = (plan_matrix_noise(name, d, ADD, PURE) for name in ("double-wishart", "laplace"))
        norms = [np.linalg.norm(x, 2) for x in draws(double, 20)]
        assert np.mean(norms) / (double.scale * d) == pytest.approx(3.33, abs=0.25)
        assert np.mean([np.linalg.norm(x, 2) for x in draws(laplace, 20)]) > 5 * np.mean(norms)


class TestOneSidedWishart:
    @pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.5])
    @pytest.mark.parametrize("degrees", [3, 8, 43])
    def test_the_closed_form_is_the_hockey_stick_divergence(self, epsilon, degrees):
        for shift in (0.5, 1.0, 3.0):
            y, weights = np.polynomial.legendre.leggauss(400)
            grid = np.linspace(0.0, degrees + 80.0, 401) ** 2 / (degrees + 80.0)  # finer near 0
            grid = np.unique(np.append(grid, shift))
            low, high = grid[:-1, None], grid[1:, None]
            y = low + (high - low) * (y + 1) / 2
            p, q = stats.chi2(degrees).pdf(y), stats.chi2(degrees).pdf(y - shift)
            volume = (high - low) / 2 * weights
            largest = max(
                (np.maximum(one - math.exp(epsilon) * other, 0.0) * volume).sum() for one, other in ((p, q), (q, p))
            )
            assert shifted_chi2_delta(degrees, shift, epsilon) == pytest.approx(largest, abs=1e-6)

    def test_the_calibration_is_smallest_and_the_published_one_is_not_safe_beyond_its_range(self):
        assert smallest_degrees(1, 1.0, 1e-6) == 43
        assert math.ceil(14 * math.log(4 / 1e-6)) == 213
        for epsilon in (0.5, 1.0, 3.0):
            k = smallest_degrees(1, epsilon, 1e-6)
            assert shifted_chi2_delta(k, 1.0, epsilon) <= 1e-6 < shifted_chi2_delta(k - 1, 1.0, epsilon)
        published = math.ceil(14 / 25 * math.log(4 / 1e-6))
        assert shifted_chi2_delta(published, 1.0, 5.0) > 1e-3
        assert shifted_chi2_delta(5, 1.0, 1e4) == pytest.approx(stats.chi2(5).cdf(1.0))  # below 1, where only P is

    def test_it_never_beats_goe(self):
        for d in (1, 5, 50, 300):
            for epsilon in (0.1, 1.0, 4.0):
                budget = Budget(epsilon=epsilon, delta=1e-6)
                one, goe = (plan_matrix_noise(name, d, ADD, budget) for name in ("one-sided-wishart", "goe"))
                assert one.frobenius > goe.frobenius


def test_normal_variables_of_the_operating_system():
    # Kolmogorov-Smirnov below 1e-7: the false-alarm rate.
    assert stats.kstest(standard_normals(200_001), "norm").pvalue > 1e-7
    assert standard_normals(3).shape == (3,)


# -- audits: a record on an axis, or a replacement of one axis by another, against its neighbour ---------------------


def value_of(adjacency, dataset, d):
    rows = [np.eye(d)[0], np.eye(d)[-1] if adjacency == REPLACE else np.zeros(d)][dataset] * 5.0
    n_records = 1 if adjacency == REPLACE else None
    data = PrivateVectors(rows[None], adjacency=adjacency, n_records=n_records, ledger=PURE)
    return second_moments(data, np.zeros(d), 1.0).value


def audited(noise, adjacency, bound, releases=3000, seed=1):
    """Lower bound on what a release spends, by the projection on the direction in which the neighbours differ."""
    d = noise.n_columns
    counter = iter(range(10**6))

    def draw(dataset, count):
        return draws(noise, count, seed=[seed, next(counter)], value=value_of(adjacency, dataset, d))

    def score(outputs):
        last = outputs[:, -1, -1] if adjacency == REPLACE else 0.0
        return outputs[:, 0, 0] - last

    return audit.audit(draw, score, releases=releases, bound=bound)


AUDITED = ["double-wishart", "laplace", "frobenius", "goe", "gaussian"]
IN_TWO_CELLS = ["double-wishart", "goe"]
CASES = [(mechanism, 1, ADD) for mechanism in AUDITED] + [(mechanism, 2, REPLACE) for mechanism in IN_TWO_CELLS]


@pytest.mark.parametrize(
    ("mechanism", "d", "adjacency"),
    [
        pytest.param(*case, marks=[pytest.mark.slow] * (case not in CASES))
        for case in itertools.product(AUDITED, (1, 2), (ADD, REPLACE))
    ],
)
def test_audits_stay_below_the_claim(mechanism, d, adjacency):
    budget = Budget(rho=0.5) if BUDGETS[mechanism] == RHO else Budget(epsilon=1.0)
    bound = audit.rho_bound if budget.rho else audit.epsilon_bound
    claim = budget.rho or budget.epsilon
    noise = plan_matrix_noise(mechanism, d, adjacency, budget)
    measured = audited(noise, adjacency, bound)
    assert measured <= claim
    if d == 1 and adjacency == ADD:  # sharp enough to mean something: .35 to .7 of it, deviations of .035 of it
        assert measured > 0.15 * claim


@pytest.mark.parametrize(
    "mechanism",
    [pytest.param(name, marks=[pytest.mark.slow] * (name in ("frobenius", "gaussian"))) for name in AUDITED],
)
def test_audits_catch_half_the_noise(mechanism):
    budget = Budget(rho=0.5) if BUDGETS[mechanism] == RHO else Budget(epsilon=1.0)
    bound = audit.rho_bound if budget.rho else audit.epsilon_bound
    noise = plan_matrix_noise(mechanism, 1, ADD, budget)
    cells = [dataclasses.replace(cell, scale=cell.scale / 2) for cell in (noise.diagonal, noise.off_diagonal)]
    half = dataclasses.replace(noise, scale=noise.scale / 2, diagonal=cells[0], off_diagonal=cells[1])
    assert audited(half, ADD, bound) > (budget.rho or budget.epsilon)


@pytest.mark.parametrize("epsilon", [1.0, pytest.param(3.0, marks=pytest.mark.slow)])
@pytest.mark.parametrize("d", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_the_published_one_sided_wishart_is_not_private(epsilon, d, monkeypatch):
    """S + W_d(d + 1, 3/(2 n epsilon) I) is claimed to be epsilon-DP: an event of positive probability is impossible."""
    noise = plan_matrix_noise("double-wishart", d, ADD, Budget(epsilon=epsilon))

    def one_sided(noise, rng):
        factor = standard_normals(d * (d + 1), rng).reshape(d, d + 1)
        return 1.5 * TRACE / epsilon * factor @ factor.T

    monkeypatch.setitem(matrix._MATRICES, "double-wishart", one_sided)
    low = value_of(ADD, 1, d)
    with_record, without = (draws(noise, 8_000, seed=k, value=value_of(ADD, k, d)) for k in (0, 1))
    below = [(x[:, 0, 0] < TRACE * (1 - 2e-4) + low[0]).mean() for x in (with_record, without)]
    if d == 1:  # the event {M < G + B**2}
        assert below[0] == 0.0
        assert below[1] == pytest.approx(1 - math.exp(-epsilon / 3), abs=0.02)
    # For any d: {M - G' is not positive semidefinite}, whose probability only grows with d.
    shift = np.zeros((d, d))
    shift[0, 0] = TRACE * (1 - 2e-4)
    impossible = [(np.linalg.eigvalsh(x - shift)[:, 0] < -2.0).mean() for x in (with_record, without)]
    assert impossible[0] == 0.0
    delta = audit.lower_limit(round(impossible[1] * 8_000), 8_000, 1e-6)
    delta -= math.exp(epsilon) * audit.upper_limit(0, 8_000, 1e-6)
    assert delta > 0.9 * (1 - math.exp(-epsilon / 3)) - 0.04
    # The audit that the double Wishart passes.
    assert audited(noise, ADD, audit.epsilon_bound) > epsilon


def test_an_unclipped_record_is_caught(monkeypatch):
    from pgmpy_dp.private.data import moments

    noise = plan_matrix_noise("double-wishart", 1, ADD, PURE)
    monkeypatch.setattr(moments, "clipped_integers", lambda rows, *_: np.trunc(rows * moments.GRID))
    monkeypatch.setattr(moments, "TRACE", 1 << 62)
    assert audited(noise, ADD, audit.epsilon_bound) > 1.0
