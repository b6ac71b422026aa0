"""The benchmark on the lower bounds' models: records, decoding, transitions, and one real setting."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks import lower_bounds
from benchmarks.hard_instances import coded_blocks, hard_pairwise, hard_parameters, matching
from benchmarks.lower_bounds import Setting, decoded, matched_records, run, settings, transition
from pgmpy_dp.fields.random_fields import Pairwise
from pgmpy_dp.theory.order import Order

N = 200_000


def test_records_of_matchings_have_their_correlations() -> None:
    model = hard_parameters(6, np.random.default_rng(1))
    signs = 2.0 * matched_records(model, N, np.random.default_rng(2)) - 1
    found, expected = signs.T @ signs / N, np.eye(6) + np.tanh(model.weights)
    np.testing.assert_allclose(found, expected, atol=5 / math.sqrt(N))


def test_records_of_tables_have_their_cells() -> None:
    model = coded_blocks([[[1, 0, 0], [0, 0, 1], [0, 1, 1]], np.ones((3, 3), dtype=int)], 0.8)
    codes = matched_records(model, N, np.random.default_rng(3)).astype(int)
    for i in (0, 2):
        table = np.exp(model.weights.get((i, i + 1), np.zeros((3, 3))))
        found = np.bincount(3 * codes[:, i] + codes[:, i + 1], minlength=9).reshape(3, 3) / N
        np.testing.assert_allclose(found, table / table.sum(), atol=5 * 0.4 / math.sqrt(N))


@pytest.mark.parametrize("k", [2, 3])
def test_codes_are_decoded_also_centred_and_with_errors(k: int) -> None:
    rng = np.random.default_rng(4)
    model = hard_pairwise(40, k, 1.0, rng)
    codes = decoded(model, 1.0)
    assert len(codes) == 20 and len(set(codes)) > 3
    assert decoded(model.centred(), 1.0) == codes
    noisy = {pair: table + rng.normal(scale=0.02, size=table.shape) for pair, table in model.weights.items()}
    assert decoded(Pairwise(model.fields, noisy), 1.0) == codes
    constant = coded_blocks(np.stack([np.zeros((k, k)), np.ones((k, k))]).astype(int), 1.0)
    assert decoded(constant, 1.0) == [0, 0]


def test_a_transition_is_where_half_succeed() -> None:
    assert transition({-1: 0.0, 0: 0.0, 1: 1.0, 2: 1.0}) == pytest.approx(2**0.5)
    assert transition({3: 0.25, 5: 0.75}) == pytest.approx(16.0)
    assert transition({0: 0.0, 1: 0.6, 2: 0.4, 3: 0.9}) == pytest.approx(2**2.2)  # the last time
    assert math.isnan(transition({0: 0.0, 1: 0.4}))
    assert math.isnan(transition({0: 1.0, 1: 1.0}))


def test_a_run_goes_up_until_success_is_sure() -> None:
    seen = []

    def succeeds(model, data, common) -> bool:
        seen.append(len(data))
        assert common["n_records"] == len(data) and list(common["state_names"]) == ["v0", "v1"]
        return len(data) >= 800

    bound = Order(100.0, "p", "a theorem", "lower", "p")
    row = run(Setting("g", "p = 2", bound, 2, lambda rng: matching([0.5]), succeeds, {"rho": 1.0}), repeats=3)
    assert sorted(set(seen)) == [2, 3, 6, 12, 25, 50, 100, 200, 400, 800, 1600]
    assert row["shares"]["2"] == 0 and row["shares"]["3"] == row["shares"]["4"] == 1
    assert row["transition"] == pytest.approx(2**2.5)
    text = lower_bounds.report([row])
    assert "| p = 2 | 100 | 0 | 0 | 0 | 0 | 0 | 1 | 1 | 1 | 1 | 5.66 |" in text


def test_settings_vary_p_three_times_within_the_theorems() -> None:
    groups: dict[str, list[Setting]] = {}
    for setting in settings():
        groups.setdefault(setting.group, []).append(setting)
        assert setting.bound.value > 1
        if "parameters" in setting.group and "delta" in setting.budget:
            assert setting.budget["delta"] <= 3 / (64 * lower_bounds.LARGEST)
    assert all(len({setting.p for setting in members}) >= 3 for members in groups.values())
    assert {group.split(",")[0] for group in groups} == {"parameters", "structure", "tables"}


@pytest.mark.parametrize(
    "group",
    [
        "structure, zCDP, matching known",
        "structure, pure, matching known",
        "tables, zCDP, matching known",
        "parameters, zCDP, matching known",
    ],
)
def test_learners_fail_at_a_quarter_of_the_bound_and_succeed_at_64_times_it(group: str, monkeypatch) -> None:
    setting = next(setting for setting in settings() if setting.group == group)
    for power, least, most in ((-2, 0, 0), (6, 1, 1)):
        monkeypatch.setattr(lower_bounds, "FIRST", power)
        monkeypatch.setattr(lower_bounds, "LAST", power)
        assert least <= run(setting, repeats=3)["shares"][str(power)] <= most
