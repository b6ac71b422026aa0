"""Attacks on whole releases with worst-case neighbours: below the claim, and sharp enough to catch broken copies.

False alarms: each audit is above the claim with probability at most 1e-6 if the claim holds.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from pgmpy_dp.learning import noisy_tables
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.curator.curator_base import cost_of
from pgmpy_dp.private.data.table import PrivateTable, contingency_tables
from pgmpy_dp.private.ledger import Ledger
from pgmpy_dp.private.noise import additive
from pgmpy_dp.private.sensitive import Noise, Sensitive
from tests.private import audit
from tests.private.mechanisms import with_noise
from tests.settings import table_settings

STATES = {"a": [0, 1], "b": [0, 1]}
SCOPES = [("a",), ("b",)]
NEIGHBOURS = {
    # One record against none; a record against its opposite, which moves every table by two cells.
    "add_remove": (pd.DataFrame({"a": [0], "b": [0]}), pd.DataFrame({"a": [], "b": []})),
    "replace_one": (pd.DataFrame({"a": [0], "b": [0]}), pd.DataFrame({"a": [1], "b": [1]})),
}
CLAIMS = {
    "laplace": Budget(epsilon=1.0),
    "gaussian": Budget(rho=1.0),
    "gaussian with delta": Budget(epsilon=2.0, delta=0.05),
}


def limit(budget: Budget) -> float:
    return budget.epsilon if budget.rho is None else budget.rho


def bound_of(budget: Budget):
    return audit.rho_bound if budget.rho else lambda p, q: audit.epsilon_bound(p, q, budget.delta)


def table(adjacency: str, dataset: int, ledger: Ledger | Budget) -> PrivateTable:
    n_records = 1 if adjacency == "replace_one" else None
    return PrivateTable(NEIGHBOURS[adjacency][dataset], STATES, adjacency=adjacency, ledger=ledger, n_records=n_records)


def exact(adjacency: str, scopes=SCOPES) -> list[list[Sensitive]]:
    return [contingency_tables(table(adjacency, dataset, Budget(epsilon=1.0)), scopes) for dataset in (0, 1)]


def flat(tables) -> np.ndarray:
    return np.concatenate([np.asarray(t).ravel() for t in tables])


def audit_learner(adjacency: str, noise: str, budget: Budget, releases: int) -> float:
    """Audit of `marginals.run` itself, ledger and all, through its public face."""
    settings = table_settings([("a", "b")], noise=noise)
    seen = []

    def draw(dataset: int, count: int) -> np.ndarray:
        outputs = []
        for start in range(0, count, 100):  # a ledger of its own for each hundred keeps the sums short
            hundred = table(adjacency, dataset, Budget(epsilon=1e6, delta=0.5))
            for _ in range(min(100, count - start)):
                release = noisy_tables.run(hundred, settings, budget)
                seen.append(release)
                outputs.append(flat(release.values))
        return np.array(outputs)

    def score(outputs: np.ndarray) -> np.ndarray:
        counts = tuple(flat([t.value for t in exact(adjacency, settings.scopes)[dataset]]) for dataset in (0, 1))
        return audit.log_ratio(outputs, counts, np.full(4, seen[0].noise[0].scale), seen[0].mechanism)

    return audit.audit(draw, score, releases=releases, bound=bound_of(budget))


def audit_noise(adjacency: str, budget: Budget, releases: int, sensitivity_of: str | None = None) -> float:
    """Audit of scales and samplers: many releases drawn at once, as copies of the tables side by side.

    `sensitivity_of` replaces the sensitivities by those of another adjacency, as a mistaken author would.
    """
    truth = exact(adjacency)
    claimed = truth if sensitivity_of is None else exact(sensitivity_of)
    used: list[Noise] = []

    def draw(dataset: int, count: int) -> np.ndarray:
        copies = [
            Sensitive(np.tile(t.value, (count, 1)), t.adjacency, c.l1, c.l2, c.linf)
            for t, c in zip(truth[dataset], claimed[dataset], strict=True)
        ]
        made = with_noise(copies, cost_of(budget), Fraction(1))
        used[:] = made.noise
        return np.concatenate(made.draw(None), axis=1)

    def score(outputs: np.ndarray) -> np.ndarray:
        counts = tuple(flat([t.value for t in tables]) for tables in truth)
        return audit.log_ratio(outputs, counts, np.repeat([u.scale for u in used], 2), used[0].distribution)

    return audit.audit(draw, score, releases=releases, bound=bound_of(budget))


def halve_the_noise(monkeypatch) -> None:
    for name in ("laplace_scales", "gaussian_scales"):
        true = getattr(additive, name)
        monkeypatch.setattr(additive, name, lambda *a, true=true: tuple(scale / 2 for scale in true(*a)))


# A delta is converted to rho before there is noise: test_accounting.py.
@pytest.mark.parametrize("adjacency", ["add_remove", pytest.param("replace_one", marks=pytest.mark.slow)])
@pytest.mark.parametrize("claim", [pytest.param(c, marks=[pytest.mark.slow] * ("delta" in c)) for c in CLAIMS])
class TestNoise:
    def test_stays_below_the_claim_and_comes_near_it(self, adjacency, claim):
        bound = audit_noise(adjacency, CLAIMS[claim], 20_000)  # six standard deviations above the limit below
        assert bound <= limit(CLAIMS[claim])
        # An attack without teeth would prove nothing. One event cannot show all of rho (2/pi of it at the middle), and
        # the conversion to (epsilon, delta) gives some away.
        teeth = {"laplace": 0.3, "gaussian": 0.4, "gaussian with delta": 0.4}[claim]
        assert bound >= teeth * limit(CLAIMS[claim])

    def test_catches_half_the_noise(self, adjacency, claim, monkeypatch):
        halve_the_noise(monkeypatch)
        assert audit_noise(adjacency, CLAIMS[claim], 6_000) > limit(CLAIMS[claim])


@pytest.mark.parametrize("claim", ["laplace", pytest.param("gaussian", marks=pytest.mark.slow)])
def test_catches_the_sensitivity_of_the_other_adjacency(claim):
    assert audit_noise("replace_one", CLAIMS[claim], 20_000, sensitivity_of="add_remove") > limit(CLAIMS[claim])


@pytest.mark.slow  # whole releases of tables are attacked in tests/auditing/test_all_cases.py
@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
@pytest.mark.parametrize(("noise", "budget"), [("laplace", Budget(epsilon=2.0)), ("gaussian", Budget(rho=1.0))])
class TestLearner:
    def test_stays_below_the_claim(self, adjacency, noise, budget):
        assert audit_learner(adjacency, noise, budget, 400) <= limit(budget)

    def test_with_half_the_noise_is_caught(self, adjacency, noise, budget, monkeypatch):
        halve_the_noise(monkeypatch)
        assert audit_learner(adjacency, noise, budget, 800) > limit(budget)


class TestAuditor:
    def test_exact_on_randomised_response(self):
        rng = np.random.default_rng(1)
        truthful = math.exp(1.5) / (1 + math.exp(1.5))

        def draw(dataset, count):
            return np.where(rng.random((count, 1)) < truthful, dataset, 1 - dataset)

        bound = audit.audit(draw, lambda outputs: -outputs[:, 0], releases=40_000)
        assert 1.3 <= bound <= 1.5

    def test_sees_nothing_where_there_is_nothing(self):
        rng = np.random.default_rng(2)
        bound = audit.audit(lambda _, n: rng.normal(size=(n, 1)), lambda outputs: outputs[:, 0], releases=5_000)
        assert bound <= 0.05

    def test_rho_bound_is_the_largest_divergence_over_order(self):
        from scipy.stats import norm

        # Gaussians at distance 1 are exactly 1/2-zCDP: no event may show more, the middle one shows about 2/pi of it.
        for threshold in np.linspace(-3, 3, 25):
            assert audit.rho_bound(norm.sf(threshold - 1), norm.sf(threshold)) <= 0.5
        assert audit.rho_bound(norm.sf(-0.5), norm.sf(0.5)) >= 0.58 * 0.5

    @pytest.mark.parametrize(("hits", "trials"), [(0, 20), (3, 20), (20, 20)])
    def test_limits_have_their_coverage(self, hits, trials):
        from scipy.stats import binom

        low, high = audit.lower_limit(hits, trials, 0.01), audit.upper_limit(hits, trials, 0.01)
        assert low == 0 or binom.sf(hits - 1, trials, low) == pytest.approx(0.01)
        assert high == 1 or binom.cdf(hits, trials, high) == pytest.approx(0.01)
        assert low <= hits / trials <= high
