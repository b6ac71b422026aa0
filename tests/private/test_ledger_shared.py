"""What `noise="auto"` takes in a ledger that others spend from."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import pytest

from pgmpy_dp import PrivateSequences, PrivateTable, preview
from pgmpy_dp.estimators import PrivateMarkovChain
from pgmpy_dp.fields import noisy_interactions, noisy_parities
from pgmpy_dp.learning import noisy_tables
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.guarantee import ZCDP, PureDP
from pgmpy_dp.private.ledger import Ledger
from pgmpy_dp.sequences import chain_counts
from tests.settings import interaction_settings, parity_settings, settings, table_settings

chain_settings = partial(settings, PrivateMarkovChain)

ONE, THREE = Budget(epsilon=1.0, delta=1e-6), Budget(epsilon=3.0, delta=1e-6)
BITS = pd.DataFrame(np.random.default_rng(0).integers(0, 2, (200, 3)), columns=list("abc"))
SCHEMA = {name: [0, 1] for name in "abc"}
VISITS = pd.DataFrame({"user": range(50), "sequence": ["x y x"] * 50})


def spend(plan: str, ledger: Ledger, noise: str = "auto") -> None:
    if plan == "chain":
        users = PrivateSequences(VISITS, {"page": ["x", "y"]}, ledger=ledger)
        chain_counts.run(users, chain_settings(noise=noise), ONE)
        return
    table = PrivateTable(BITS, SCHEMA, ledger=ledger)
    if plan == "marginals":
        noisy_tables.run(table, table_settings([("a",)], noise=noise), ONE)
    elif plan == "parities":
        noisy_parities.run(table, parity_settings(method="noise" if noise == "auto" else noise), ONE)
    else:
        noisy_interactions.run(table, interaction_settings(noise), ONE)


@pytest.mark.parametrize("plan", ["marginals", "chain", "parities", "interactions"])
def test_what_is_added_up_as_zcdp_has_gaussian_noise(plan):
    """Pure noise is the smaller here, and was refused by a ledger that had Gaussian noise in it."""
    alone = Ledger(ONE)
    spend(plan, alone)
    assert isinstance(alone.entries[0].cost, PureDP)
    shared, of_rho = Ledger(THREE), Ledger(Budget(rho=0.1))
    spend(plan, shared, "gaussian")
    for _ in range(2):
        spend(plan, shared)
        spend(plan, of_rho)
    assert all(isinstance(entry.cost, ZCDP) for entry in (*shared.entries, *of_rho.entries))


def test_what_is_added_up_as_pure_stays_pure():
    ledger = Ledger(THREE)
    for _ in range(3):
        spend("marginals", ledger)
    assert [entry.cost for entry in ledger.entries] == [PureDP(1.0)] * 3


def test_a_preview_says_what_either_costs():
    text = str(preview(SCHEMA, [("a", "b")], ONE, 1000, n_simulations=0))
    assert "counts this as 0.5-zCDP, and noise='gaussian' as 0.0243552-zCDP" in text
    for budget in (Budget(epsilon=1.0), Budget(rho=0.1)):
        assert "zCDP, and noise" not in str(preview(SCHEMA, [("a", "b")], budget, 1000, n_simulations=0))
