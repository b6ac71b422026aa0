"""The release of a tree's tables: what it costs, what it chooses, what it does with awkward data."""

from __future__ import annotations

from fractions import Fraction
from functools import partial

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from pgmpy_dp.estimators import PrivateChowLiu
from pgmpy_dp.private.accounting import approx_to_zcdp
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.curator import mechanism
from pgmpy_dp.private.data.table import PrivateTable
from pgmpy_dp.private.filter import BudgetExceeded
from pgmpy_dp.private.guarantee import ZCDP, PureDP
from pgmpy_dp.private.ledger import Ledger
from pgmpy_dp.private.noise.samplers import ReproducibleNoiseWarning
from pgmpy_dp.private.operators import tables as table_operator
from pgmpy_dp.tables.networks import spanning_tree
from pgmpy_dp.tables.networks.spanning_tree import run
from tests.settings import settings

tree_settings = partial(settings, PrivateChowLiu)

STATES = {"a": [0, 1], "b": [0, 1, 2], "c": [0, 1], "d": [0, 1]}
BUDGETS = [Budget(epsilon=1.0), Budget(rho=0.3), Budget(epsilon=1.0, delta=1e-6)]


def frame(n=3000, seed=0):
    """A chain a - c - d, and b closer to a than all else."""
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 2, n)
    c = np.where(rng.random(n) < 0.8, a, 1 - a)
    return pd.DataFrame(
        {"a": a, "b": np.where(rng.random(n) < 0.9, a, 2), "c": c, "d": np.where(rng.random(n) < 0.8, c, 1 - c)}
    )


def private(data=None, adjacency="add_remove", ledger=None, states=STATES):
    n_records = 3000 if adjacency == "replace_one" else None
    ledger = Budget(epsilon=1e6, delta=0.5) if ledger is None else ledger
    return PrivateTable(
        frame() if data is None else data, states, adjacency=adjacency, ledger=ledger, n_records=n_records
    )


@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize("settings", [{}, {"n_edges": 1, "selection_share": 0.5}, {"n_edges": 0}], ids=str)
def test_tables_and_selections_cost_the_budget_and_no_more(adjacency, budget, settings, monkeypatch):
    used = []
    true = mechanism.noisy_argmax
    monkeypatch.setattr(mechanism, "noisy_argmax", lambda rows, scale, *a: used.append(scale) or true(rows, scale, *a))
    table = private(adjacency=adjacency)
    release = run(table, tree_settings(**settings), budget)
    limit = 1.0 if budget.rho is None else budget.rho
    if budget.delta:
        limit = approx_to_zcdp(budget.epsilon, budget.delta)
    gaussian = budget.rho is not None or budget.delta > 0
    assert release.guarantee == table.ledger.entries[0].cost == (ZCDP(limit) if gaussian else PureDP(limit))
    factor = 1 if adjacency == "add_remove" else 2
    cost = Fraction(0)
    for noise in release.noise:
        scale = Fraction(noise.scale)
        cost += Fraction(factor) / (2 * scale**2) if gaussian else factor / scale
    for scale in used:
        ratio = 2 * factor / Fraction(scale)
        cost += ratio**2 / 8 if gaussian else ratio
    assert len(used) == settings.get("n_edges", 3)
    assert cost <= Fraction(limit)
    assert float(cost) > (1 - 1e-9) * limit


def test_check_charge_count_in_this_order(monkeypatch):
    events = []
    for module, name in ((spanning_tree, "_plan"), (table_operator, "contingency_tables")):
        true = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *a, n=name, f=true, **k: events.append(n) or f(*a, **k))
    charge = Ledger.charge
    monkeypatch.setattr(Ledger, "charge", lambda *a, **k: events.append("charge") or charge(*a, **k))
    run(private(), tree_settings(), Budget(epsilon=1.0))
    assert events[:3] == ["_plan", "charge", "contingency_tables"]
    assert events.count("charge") == 1


@pytest.mark.parametrize(
    ("settings", "budget", "message"),
    [
        ({}, Budget(epsilon=1.1), "asked"),
        ({}, Budget(epsilon=1e-14), "bury"),
        ({"n_edges": 4}, Budget(epsilon=0.1), "n_edges=4 is more than the 3 edges"),
    ],
)
def test_a_refusal_changes_nothing(settings, budget, message):
    table = private(ledger=Budget(epsilon=1.0))
    with pytest.raises(ValueError, match=message) as caught:
        run(table, tree_settings(**settings), budget)
    assert isinstance(caught.value, BudgetExceeded) == (message == "asked")
    assert table.ledger.entries == ()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_edges": -1}, "n_edges=-1"),
        ({"one_way_share": 0.5, "selection_share": 0.5}, "leave nothing"),
        ({"selection_share": 0.0}, "selection_share=0"),
        ({"random_state": -2}, "random_state=-2"),
    ],
)
def test_settings(settings, message):
    with pytest.raises(ValueError, match=message):
        tree_settings(**settings)


@pytest.mark.parametrize("budget", [Budget(epsilon=50.0), Budget(rho=50.0)], ids=str)
def test_much_budget_finds_the_tree(budget):
    release = run(private(), tree_settings(), budget)
    assert release.scopes[4] == ("a", "b")
    assert set(release.scopes[4:]) == {("a", "b"), ("a", "c"), ("c", "d")}
    assert run(private(), tree_settings(n_edges=1), budget).scopes[4:] == (("a", "b"),)


@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
@pytest.mark.parametrize(
    "data", [frame(0), frame(1), frame(50).assign(a="outside")], ids=["empty", "one record", "all outside"]
)
def test_awkward_data_give_a_tree_like_any_other(data, adjacency, recwarn):
    for budget in (Budget(rho=0.01), Budget(epsilon=0.1)):
        release = run(private(data, adjacency), tree_settings(), budget)
        assert nx.is_tree(nx.Graph(release.scopes[4:]))
        assert len(release.scopes) == 7
    assert not recwarn


def test_one_variable_has_no_edges():
    release = run(private(states={"b": [0, 1, 2]}), tree_settings(), Budget(epsilon=2.0))
    assert release.scopes == (("b",),)
    assert release.noise[0].scale == 0.5


def test_seeded_noise_is_repeatable_marked_and_warns():
    table = private()
    with pytest.warns(ReproducibleNoiseWarning):
        first = run(table, tree_settings(random_state=5), Budget(rho=0.1))
    with pytest.warns(ReproducibleNoiseWarning):
        assert first == run(table, tree_settings(random_state=5), Budget(rho=0.1))
    assert first.reproducible
    assert not table.ledger.private
