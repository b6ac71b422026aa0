"""Private multiplicative weights and the perturbed leader: accuracy, exact spending, attacks on their transcripts."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from pgmpy_dp.fields.field_scopes import field_scopes
from pgmpy_dp.fields.noisy_parities import plan_parities, run
from pgmpy_dp.fields.operators import parities as parity_data
from pgmpy_dp.fields.operators.parities import parity_sums
from pgmpy_dp.fields.parity_rounds import MultiplicativeWeights, default_rounds, pmw_answers
from pgmpy_dp.fields.published.perturbed_leader import _Objective, sepfem_answers
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.curator import mechanism
from pgmpy_dp.private.curator.table_curator import TableCurator
from pgmpy_dp.private.data.table import PrivateTable
from pgmpy_dp.private.guarantee import ZCDP, PureDP
from pgmpy_dp.private.mathematics.walsh_hadamard import masks_of
from pgmpy_dp.private.noise.samplers import ReproducibleNoiseWarning
from pgmpy_dp.schema import Schema
from tests.private import audit
from tests.settings import ask_parities, parity_settings


def schema(p: int) -> Schema:
    return Schema({f"x{j}": [0, 1] for j in range(p)})


def chain_records(p: int, n: int, seed: int = 0) -> np.ndarray:
    """A Markov chain of agreeing neighbours: many large parities."""
    rng = np.random.default_rng(seed)
    flips = rng.random((n, p)) < np.r_[0.35, np.full(p - 1, 0.15)]
    return (np.cumsum(flips, axis=1) % 2).astype(np.uint8)


def curator(codes: np.ndarray, budget: Budget, adjacency: str = "add_remove", **facts) -> TableCurator:
    """Of these records, with a budget of its own; their number is private."""
    p = codes.shape[1]
    ledger = Budget(rho=1e9) if budget.rho else Budget(epsilon=1e9, delta=0.9 if budget.delta else 0.0)
    n_records = len(codes) if adjacency == "replace_one" else None
    data = PrivateTable(
        pd.DataFrame(codes, columns=schema(p).variables),
        schema(p),
        adjacency=adjacency,
        ledger=ledger,
        n_records=n_records,
    )
    return TableCurator(data._part(np.ones(len(codes), dtype=bool)), budget, what="parities", columns=[], **facts)


def spent(asked: TableCurator, plan, monkeypatch) -> tuple[list, list]:
    """Scales of all selections and of all draws of one release."""
    selections, draws = [], []
    true = mechanism.noisy_argmax
    monkeypatch.setattr(
        mechanism,
        "noisy_argmax",
        lambda rows, scale, *rest: (selections.append(scale), true(rows, scale, *rest))[1],
    )
    for name in ("discrete_laplace", "discrete_gaussian"):
        sampler = getattr(mechanism.samplers, name)
        monkeypatch.setattr(
            mechanism.samplers,
            name,
            lambda value, scale, sampler=sampler, **rest: (draws.append(scale), sampler(value, scale, **rest))[1],
        )
    ask_parities(asked, plan)
    return selections, draws


class TestWeights:
    def test_answers_are_those_of_a_distribution_that_agrees_with_what_it_was_told(self):
        p = 4
        subsets = field_scopes(p, 3)
        truth = np.random.default_rng(0).dirichlet(np.ones(1 << p))
        z = 2 * ((np.arange(1 << p)[:, None] >> np.arange(p)) & 1) - 1
        features = np.stack([z[:, list(s)].prod(axis=1) for s in subsets], axis=1)
        weights = MultiplicativeWeights(p, masks_of(subsets))
        for k in range(len(subsets)):
            weights.measure(k, float(truth @ features[:, k]))
        for _ in range(2_000):
            weights.update(steps=len(subsets))
        assert weights.answers() == pytest.approx(truth @ features, abs=1e-3)

    def test_one_step_is_the_published_one(self):
        weights = MultiplicativeWeights(3, masks_of([(0,), (0, 1), (2,)]))
        weights.measure(1, 0.8)
        weights.measure(1, 0.4)  # the mean of two counts
        weights.update(steps=1)
        z = 2 * ((np.arange(8)[:, None] >> np.arange(3)) & 1) - 1
        expected = np.exp(z[:, 0] * z[:, 1] * 0.6 / 2)
        expected /= expected.sum()
        assert weights.answers() == pytest.approx(
            [expected @ z[:, 0], expected @ (z[:, 0] * z[:, 1]), expected @ z[:, 2]]
        )

    def test_impossible_measurements_are_clipped(self):
        weights = MultiplicativeWeights(2, masks_of([(0,), (1,)]))
        weights.measure(0, 1e300)
        weights.measure(1, -50.0)
        for _ in range(200):
            weights.update(steps=2)
        assert weights.answers() == pytest.approx([1.0, -1.0], abs=0.05)


class TestAccuracy:
    @pytest.mark.parametrize(
        ("p", "order", "budget"),
        [
            pytest.param(p, order, budget, marks=[pytest.mark.slow] * ((j + k) % 2))
            for j, (p, order) in enumerate([(3, 3), (6, 2), (8, 3)])
            for k, budget in enumerate([Budget(rho=1e6), Budget(epsilon=1e6)])
        ],
    )
    def test_pmw_with_a_large_budget_answers_everything(self, budget, p, order):
        codes = chain_records(p, 4_000)
        *_, answers = pmw_answers(curator(codes, budget), order, 4_000.0, 300, Fraction(1))
        assert np.abs(answers - parity_sums(codes, order) / 4_000).max() <= 0.02
        assert np.abs(answers).max() <= 1.0

    def test_pmw_error_is_below_its_bound(self):
        """MWEM's bound for the average of rounds, 2 sqrt(log|X|/T) + noise, is far above what the last one reaches."""
        codes, rounds, rho = chain_records(8, 2_000), 40, 0.5
        exact = parity_sums(codes, 2)
        with pytest.warns(ReproducibleNoiseWarning):
            asked = curator(codes, Budget(rho=rho), random_state=1)
        *_, answers = pmw_answers(asked, 2, 2_000.0, rounds, Fraction(1))
        noise = math.sqrt(rounds / rho) * math.log(2 * exact.size) / 2_000
        assert np.abs(answers - exact / 2_000).max() <= (2 * math.sqrt(8 * math.log(2) / rounds) + 10 * noise) / 3

    def test_sepfem_approaches_the_data(self):
        codes = chain_records(6, 3_000)
        exact = parity_sums(codes, 2)
        with pytest.warns(ReproducibleNoiseWarning):
            asked = curator(codes, Budget(rho=1e6), random_state=0)
        *_, answers = sepfem_answers(asked, 2, 3_000.0, 150, Fraction(1))
        error = np.abs(answers - exact / 3_000)
        assert error.max() <= 0.2
        assert error.mean() <= 0.5 * np.abs(exact / 3_000).mean()

    def test_the_leader_is_where_the_perturbed_objective_is_largest(self):
        rng = np.random.default_rng(2)
        objective = _Objective(7)
        terms = [
            (subset, float(rng.choice([-1, 1])))
            for subset in rng.permutation(np.array(field_scopes(7, 3), object))[:20]
        ]
        for subset, sign in terms:
            objective.add(subset, sign)
        for noise in rng.laplace(scale=2.0, size=(10, 7)):
            x = objective.leader(noise)
            value = sum(sign * np.prod(2.0 * x[list(subset)] - 1) for subset, sign in terms) + noise @ (2.0 * x - 1)
            every = np.array(list(itertools.product([0, 1], repeat=7)))
            best = max(
                sum(sign * np.prod(2.0 * x[list(subset)] - 1) for subset, sign in terms) + noise @ (2.0 * x - 1)
                for x in every
            )
            assert value == pytest.approx(best)


class TestSpending:
    @pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
    @pytest.mark.parametrize("method", ["pmw", "sepfem"])
    @pytest.mark.parametrize("n_records", [None, 30])
    @pytest.mark.parametrize("budget", [Budget(rho=0.3), Budget(epsilon=0.7), Budget(epsilon=1.0, delta=1e-6)])
    def test_scales_add_up_to_the_budget(self, adjacency, method, n_records, budget, monkeypatch):
        settings = parity_settings(method=method, n_rounds=7)
        plan = plan_parities(schema(4), Adjacency(adjacency), n_records, settings, budget)
        assert isinstance(plan.cost, PureDP) == (budget.rho is None and not budget.delta)
        asked = curator(chain_records(4, 30), budget, adjacency)
        selections, draws = spent(asked, plan, monkeypatch)
        assert asked.left == 0
        moved = 2 if adjacency == "replace_one" else 1
        counts = draws[:1] if n_records is None else []
        measured = draws[len(counts) :]
        assert len(selections) == 7 and len(measured) == (7 if method == "pmw" else 0)
        if isinstance(plan.cost, PureDP):
            total = sum(2 * moved / Fraction(s) for s in selections) + sum(moved / Fraction(s) for s in measured)
            total += sum(1 / Fraction(s) for s in counts)
            claimed = plan.cost.epsilon
        else:
            total = sum(moved**2 / (2 * Fraction(s) ** 2) for s in [*selections, *measured])
            total += sum(1 / (2 * Fraction(s) ** 2) for s in counts)
            claimed = plan.cost.rho
        assert total <= Fraction(claimed) and float(total) == pytest.approx(claimed)

    def test_default_rounds_depend_on_public_numbers(self):
        assert default_rounds("pmw", 8, 92, ZCDP(0.1), 100.0) == 14
        assert default_rounds("pmw", 8, 92, ZCDP(1e-9), 1.0) == 1
        assert default_rounds("pmw", 8, 92, PureDP(1.0), 1e9) == 100
        assert default_rounds("sepfem", 8, 92, ZCDP(1.0), 1e9) == 200


class TestAuto:
    @pytest.mark.parametrize(("n_records", "method"), [(100, "pmw"), (699, "pmw"), (716, "noise"), (10_000, "noise")])
    def test_turns_where_noise_of_a_mean_is_three_percent(self, n_records, method):
        # 90 + 2 sums: sqrt(92/(2*.1))/n = .03 at n = 715
        settings = parity_settings(order=3, method="auto")
        plan = plan_parities(schema(8), Adjacency.ADD_REMOVE, n_records, settings, Budget(rho=0.1))
        assert plan.method == method

    @pytest.mark.parametrize(("n_records", "method"), [(450, "pmw"), (460, "noise")])
    def test_wishart_noise_is_worth_it_until_three_tenths(self, n_records, method):
        # The matrix's noise of a sum, in root mean square, is 136.4 = .3 * 455; Laplace noise would be 260.
        settings = parity_settings(order=3, method="auto")
        plan = plan_parities(schema(8), Adjacency.ADD_REMOVE, n_records, settings, Budget(epsilon=0.5))
        assert plan.method == method

    @pytest.mark.parametrize(("rows", "method"), [(0, "pmw"), (100, "pmw"), (20_000, "noise")])
    def test_decides_by_the_noisy_count(self, rows, method):
        frame = pd.DataFrame(chain_records(8, rows), columns=schema(8).variables)
        data = PrivateTable(frame, schema(8), ledger=Budget(rho=1.0))
        release = run(data, parity_settings(order=3, method="auto", n_rounds=3), Budget(rho=0.1))
        assert release.public["method"] == method and (release.noise[0] is None) == (method == "pmw")
        if method == "noise":
            assert release.noise[0].scale == pytest.approx(math.sqrt(92 / (2 * 0.095)))
            assert release.noise[1].scale == pytest.approx(math.sqrt(1 / (2 * 0.005)))


# Records a, b: sums of a, b, ab. The record that is added moves |ab| down and the others up.
SMALL = np.array([[1, 1], [0, 0]], dtype=np.uint8)
LARGER = np.array([[1, 1], [0, 0], [0, 1]], dtype=np.uint8)
SUMS = [parity_sums(codes, 2).astype(float) for codes in (SMALL, LARGER)]


MANY = 10**5


def many_times(data, cost: ZCDP | PureDP, linf: float, monkeypatch) -> list[TableCurator]:
    """Curators of which each share of 1/MANY is the cost, and which believe that a sum moves by `linf` at most."""
    monkeypatch.setattr(parity_data, "parity_sensitivity", lambda *a: (linf, linf, linf))
    true = mechanism.selection_scale
    monkeypatch.setattr(mechanism, "selection_scale", lambda moves, *asked: true(linf * moves, *asked))
    budget = Budget(rho=MANY * cost.rho) if isinstance(cost, ZCDP) else Budget(epsilon=MANY * cost.epsilon)
    return [curator(codes, budget) for codes in data]


def audit_pmw(cost: ZCDP | PureDP, releases: int, linf: float, monkeypatch) -> float:
    """Attack on the whole transcript of one round, by its likelihood ratio under the claimed scales."""
    scale = math.sqrt(1 / cost.rho) if isinstance(cost, ZCDP) else 4.0 / cost.epsilon
    asked = many_times((SMALL, LARGER), cost, linf, monkeypatch)
    transcript = []
    true = MultiplicativeWeights.measure
    monkeypatch.setattr(
        MultiplicativeWeights,
        "measure",
        lambda self, position, value: (transcript.append((position, value)), true(self, position, value))[1],
    )

    def draw(dataset: int, count: int) -> np.ndarray:
        transcript.clear()
        for _ in range(count):
            list(pmw_answers(asked[dataset], 2, 1.0, 1, Fraction(1, MANY)))
        return np.array(transcript)

    def score(outputs: np.ndarray) -> np.ndarray:
        position, value = outputs[:, 0].astype(int), outputs[:, 1]
        chosen = [np.abs(s) / scale - np.log(np.exp(np.abs(s) / scale).sum()) for s in SUMS]
        gaps = [np.abs(value - s[position]) for s in SUMS]
        if isinstance(cost, ZCDP):
            measured = (gaps[1] ** 2 - gaps[0] ** 2) / (2 * scale**2)
        else:
            measured = (gaps[1] - gaps[0]) / (scale / 2)
        return chosen[0][position] - chosen[1][position] + measured

    bound = audit.rho_bound if isinstance(cost, ZCDP) else audit.epsilon_bound
    return audit.audit(draw, score, releases=releases, bound=bound)


def audit_sepfem(cost: ZCDP | PureDP, releases: int, linf: float, monkeypatch) -> float:
    """Attack on the selection of one round: a signed parity is too low more often where there is one record."""
    transcript = []
    asked = many_times((LARGER[:0], SMALL[:1])[::-1], cost, linf, monkeypatch)  # all three sums are 1, or 0
    true = mechanism.noisy_argmax
    monkeypatch.setattr(
        mechanism, "noisy_argmax", lambda *arguments: (transcript.append(true(*arguments)), transcript[-1])[1]
    )

    def draw(dataset: int, count: int) -> np.ndarray:
        transcript.clear()
        for _ in range(count):
            list(sepfem_answers(asked[dataset], 2, 1.0, 1, Fraction(1, MANY)))
        return np.array(transcript)

    bound = audit.rho_bound if isinstance(cost, ZCDP) else audit.epsilon_bound
    return audit.audit(draw, lambda outputs: -(outputs[:, 0] >= 3).astype(float), releases=releases, bound=bound)


@pytest.mark.slow  # replay holds sensitivities, scales and shares
@pytest.mark.parametrize("cost", [ZCDP(1.0), PureDP(2.0)])
@pytest.mark.parametrize("attack", [audit_pmw, audit_sepfem])
class TestAudit:
    def test_stays_below_the_claim(self, attack, cost, monkeypatch):
        claim = cost.rho if isinstance(cost, ZCDP) else cost.epsilon
        assert 0.1 * claim <= attack(cost, 1_600, 1.0, monkeypatch) <= claim

    def test_catches_a_sensitivity_that_is_too_small(self, attack, cost, monkeypatch):
        claim = cost.rho if isinstance(cost, ZCDP) else cost.epsilon
        assert attack(cost, 1_600, 0.25, monkeypatch) > claim
