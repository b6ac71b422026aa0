"""Two releases on disjoint random halves: what they see, what they cost, and that they are charged once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from pgmpy_dp.fields import random_halves
from pgmpy_dp.fields.frank_wolfe_steps import regression_weights
from pgmpy_dp.fields.random_halves import parities_part, regressions_part, run
from pgmpy_dp.private.accounting import approx_to_zcdp
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.data.table import PrivateTable, shared_codes
from pgmpy_dp.private.filter import BudgetExceeded
from pgmpy_dp.private.guarantee import ZCDP, PureDP
from pgmpy_dp.private.ledger import Ledger
from pgmpy_dp.private.noise.samplers import ReproducibleNoiseWarning
from pgmpy_dp.private.sensitive import Release
from tests.settings import field_settings

STATES = {name: [0, 1] for name in "abc"}
CODES = np.random.default_rng(0).integers(0, 2, (300, 3))
COSTS = {
    "pure": (Budget(epsilon=1.0), PureDP(1.0)),
    "rho": (Budget(rho=0.3), ZCDP(0.3)),
    "delta": (Budget(epsilon=1.0, delta=1e-5), ZCDP(approx_to_zcdp(1.0, 1e-5))),
}


def private(adjacency="add_remove", ledger=None, codes=CODES) -> PrivateTable:
    n_records = 300 if adjacency == "replace_one" else None
    ledger = Budget(rho=1e6) if ledger is None else ledger
    return PrivateTable(
        pd.DataFrame(codes, columns=list(STATES)), STATES, adjacency=adjacency, ledger=ledger, n_records=n_records
    )


def settings(method="noise", **options):
    return field_settings(1.0, "binary", **options).but(queries=method)


def test_halves_of_different_costs_are_refused_also_where_assertions_are_off(monkeypatch):
    true = random_halves.plan_parities
    monkeypatch.setattr(random_halves, "plan_parities", lambda *a: replace(true(*a), cost=ZCDP(2.0)))
    table = private()
    # Not an AssertionError: `python -O` has none.
    with pytest.raises(RuntimeError, match=r"the two halves cost 0\.3-zCDP and 2-zCDP"):
        run(table, settings(), Budget(rho=0.3))
    assert table.ledger.entries == ()


def codes_of(half) -> np.ndarray:
    """Of a curator of one half."""
    return half._data._codes


@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
@pytest.mark.parametrize("budget", COSTS)
@pytest.mark.parametrize("method", ["noise", "pmw"])
def test_each_half_is_released_at_the_cost_that_is_charged_once(adjacency, budget, method, monkeypatch):
    plans, seen, events = [], [], []
    for name in ("descend", "ask_parities"):
        true = getattr(random_halves, name)
        monkeypatch.setattr(
            random_halves,
            name,
            lambda half, plan, *rest, f=true: (
                events.append("count") or seen.append(codes_of(half)) or plans.append(plan) or f(half, plan, *rest)
            ),
        )
    charge = Ledger.charge
    monkeypatch.setattr(Ledger, "charge", lambda *a, **k: events.append("charge") or charge(*a, **k))
    asked, cost = COSTS[budget]
    table = private(adjacency)
    release = run(table, settings(method), asked)
    assert events == ["charge", "count", "count"]
    assert [plan.cost for plan in plans] == [cost, cost]
    assert release.guarantee == cost and [entry.cost for entry in table.ledger.entries] == [cost]
    # Disjoint, and all of the records; sizes of halves are private, so the parities come with a noisy count.
    together = np.concatenate(seen)
    assert len(together) == 300 and min(map(len, seen)) > 90
    np.testing.assert_array_equal(np.sort(together @ [1, 2, 4]), np.sort(shared_codes(table)[0] @ [1, 2, 4]))
    assert plans[1].n_records is None and parities_part(release).values[1].shape == (1,)
    assert plans[0].n_records == (150 if adjacency == "replace_one" else None)


def test_halves_are_new_coins_each_time(monkeypatch):
    seen = []
    true = random_halves.descend
    monkeypatch.setattr(
        random_halves, "descend", lambda half, plan, *rest: seen.append(len(codes_of(half))) or true(half, plan, *rest)
    )
    for _ in range(8):
        run(private(), settings(n_iter=3), Budget(rho=1.0))
    assert len(set(seen)) > 1


def test_the_parts_are_releases_of_their_learners(tmp_path):
    release = run(private(), settings(n_iter=30), Budget(rho=1e5))
    release.save(tmp_path / "release.npz")
    assert Release.load(tmp_path / "release.npz") == release
    assert regression_weights(regressions_part(release)).shape == (3, 4)
    parities = parities_part(release)
    assert parities.kind == "parities" and 90 < parities.values[1][0] < 210
    counted = run(private(), settings(), Budget(rho=1e5))
    assert 90 < regressions_part(counted).values[1][0] < 210
    with pytest.raises(ValueError, match="kind 'parities'"):
        regressions_part(parities)


@pytest.mark.parametrize("codes", [CODES[:0], CODES[:1], np.ones_like(CODES)], ids=["none", "one", "constant"])
@pytest.mark.parametrize("method", ["noise", "pmw", "sepfem"])
def test_odd_records_have_a_defined_result(codes, method):
    release = run(private(codes=codes), settings(method, n_iter=5), Budget(rho=0.1))
    assert release.values[0].shape == (4, 3) and release.values[1].shape == (6,)


def test_refusals_change_nothing():
    table = private(ledger=Budget(rho=0.1))
    with pytest.raises(BudgetExceeded):
        run(table, settings(), Budget(rho=0.2))
    with pytest.raises(ValueError, match="gaussian"):
        run(table, settings("gaussian"), Budget(epsilon=1.0))
    with pytest.raises(ValueError, match="zzz"):
        run(table, settings(graph=[("a", "zzz")]), Budget(rho=0.1))
    assert table.ledger.entries == ()


def test_seeded_releases_are_repeatable_and_marked():
    table = private()
    with pytest.warns(ReproducibleNoiseWarning, match="NOT private"):
        releases = [run(table, settings(random_state=4), Budget(rho=1.0)) for _ in range(2)]
    assert releases[0] == releases[1] and releases[0].reproducible and not table.ledger.private
