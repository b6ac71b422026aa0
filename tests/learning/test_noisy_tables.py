"""The marginals learner from end to end: scales, order of events, refusals without cost, and what it keeps silent."""

from __future__ import annotations

import logging
import math
import pickle
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pgmpy_dp.learning import noisy_tables
from pgmpy_dp.learning.noisy_tables import run
from pgmpy_dp.private.accounting import approx_to_zcdp
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.data.table import PrivateTable
from pgmpy_dp.private.filter import BudgetExceeded
from pgmpy_dp.private.guarantee import ZCDP, ApproxDP, PureDP
from pgmpy_dp.private.ledger import Ledger
from pgmpy_dp.private.noise import samplers
from pgmpy_dp.private.noise.samplers import ReproducibleNoiseWarning
from pgmpy_dp.private.operators import tables
from pgmpy_dp.private.sensitive import Release
from pgmpy_dp.schema import Schema
from tests.private.distribution import accepts
from tests.settings import table_settings

SCHEMA = Schema({"a": ["x", "y"], "b": [0, 1, 2], ("c", 0): [True, False]})
SCOPES = [("a", "b"), ("b", ("c", 0)), ("a",)]
FRAME = pd.DataFrame(
    [["x", 0, True], ["y", 2, False], ["y", 2, False], ["x", 1, None], ["z", 0, True]],
    columns=pd.Index(["a", "b", ("c", 0)], tupleize_cols=False),
)
EXACT = [[[1, 0, 0], [0, 0, 2]], [[1, 0], [0, 0], [0, 2]], [1, 2]]
LARGE = Budget(epsilon=1e6, delta=0.5)


def table(adjacency="add_remove", ledger=LARGE, data=FRAME, **changes) -> PrivateTable:
    n_records = changes.pop("n_records", 5 if adjacency == "replace_one" else None)
    return PrivateTable(data, SCHEMA, adjacency=adjacency, ledger=ledger, n_records=n_records)


class TestScalesAndGuarantees:
    @pytest.mark.parametrize(("adjacency", "changed"), [("add_remove", 1), ("replace_one", 2)])
    @pytest.mark.parametrize("weights", [None, [1, 2, 5]])
    def test_textbook(self, adjacency, changed, weights):
        shares = [1 / 3] * 3 if weights is None else [w / 8 for w in weights]
        cases = [
            (Budget(epsilon=0.5), PureDP(0.5), [changed / (s * 0.5) for s in shares]),
            (Budget(rho=0.5), ZCDP(0.5), [math.sqrt(changed / (2 * s * 0.5)) for s in shares]),
        ]
        for budget, guarantee, scales in cases:
            release = run(table(adjacency), table_settings(SCOPES, weights=weights), budget)
            assert release.guarantee == guarantee and release.adjacency == adjacency
            assert [n.scale for n in release.noise] == pytest.approx(scales, rel=1e-12)
            assert {n.distribution for n in release.noise} == {release.mechanism}

    def test_equal_shares_are_cliques_over_epsilon(self):
        settings = table_settings([("a",)] * 7)
        assert run(table(), settings, Budget(epsilon=0.5)).noise[0].scale == pytest.approx(14.0)
        assert run(table("replace_one"), settings, Budget(epsilon=0.5)).noise[0].scale == pytest.approx(28.0)
        assert run(table(), settings, Budget(rho=0.5)).noise[0].scale == pytest.approx(math.sqrt(7))
        assert run(table("replace_one"), settings, Budget(rho=0.5)).noise[0].scale == pytest.approx(math.sqrt(14))

    def test_gaussian_for_epsilon_and_delta_fits_the_budget(self):
        budget = Budget(epsilon=1.0, delta=1e-6)
        release = run(table(ledger=budget), table_settings(SCOPES, noise="gaussian"), budget)
        assert release.guarantee == ZCDP(approx_to_zcdp(1.0, 1e-6))
        assert release.guarantee.implies(ApproxDP(1.0, 1e-6))

    @pytest.mark.parametrize(
        ("budget", "cliques", "noise"),
        [
            (Budget(epsilon=1.0), 100, "discrete_laplace"),
            (Budget(rho=0.1), 1, "discrete_gaussian"),
            # Variances 2 |C|^2/epsilon^2 and |C|/(2 rho): the choice turns at epsilon^2/(4 rho) = 10.3 tables.
            (Budget(epsilon=1.0, delta=1e-6), 10, "discrete_laplace"),
            (Budget(epsilon=1.0, delta=1e-6), 11, "discrete_gaussian"),
        ],
    )
    def test_automatic_noise(self, budget, cliques, noise):
        assert run(table(), table_settings([("a",)] * cliques), budget).mechanism == noise

    @pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
    @pytest.mark.parametrize(("noise", "budget"), [("laplace", Budget(epsilon=0.5)), ("gaussian", Budget(rho=0.1))])
    def test_noise_of_a_whole_release(self, adjacency, noise, budget):
        """No records: every cell is noise. False alarm 1e-6 a table; 30 % off is rejected."""
        schema = Schema({name: range(120) for name in "ab"})
        data = pd.DataFrame({"a": [], "b": []})
        subject = PrivateTable(data, schema, adjacency=adjacency, ledger=LARGE, n_records=0)
        release = run(subject, table_settings([("a", "b"), ("b", "a")], noise=noise, weights=[1, 3]), budget)
        for value, item in zip(release.values, release.noise, strict=True):
            assert accepts(value, item.distribution, item.scale)
            assert not accepts(value, item.distribution, item.scale * 1.3)
            assert not accepts(value, item.distribution, item.scale / 1.3)

    def test_counts_are_the_exact_ones_plus_noise(self):
        release = run(table(), table_settings(SCOPES), Budget(epsilon=1e5))
        assert [v.tolist() for v in release.values] == EXACT  # scale 3e-5: noise has a chance below exp(-30000)


class TestWhatIsReleased:
    def test_contents(self, tmp_path):
        release = run(table(n_records=5), table_settings(SCOPES, weights=[1, 1, 2]), Budget(epsilon=1.0))
        assert release.kind == "marginals" and not release.reproducible
        assert release.schema == SCHEMA and release.scopes == tuple(SCOPES) and release.n_records == 5
        assert [v.shape for v in release.values] == [(2, 3), (3, 2), (2,)]
        assert release.public["settings"]["weights"] == [1.0, 1.0, 2.0]
        release.save(tmp_path / "r.npz")
        assert Release.load(tmp_path / "r.npz") == release

    def test_ledger_entry(self):
        subject = table()
        run(subject, table_settings([("b", "a")]), Budget(epsilon=0.5))
        (entry,) = subject.ledger.entries
        assert (entry.cost, entry.columns, entry.mechanism) == (PureDP(0.5), ("a", "b"), "discrete_laplace")
        assert entry.adjacency == "add_remove" and not entry.reproducible and entry.what == "1 marginal table"

    def test_pickle_holds_neither_records_nor_exact_counts(self):
        schema = Schema({"a": ["x", "y"]})
        data = pd.DataFrame({"a": ["x"] * 777_123 + ["outside secret"]})
        subject = PrivateTable(data, schema, ledger=LARGE)
        release = run(subject, table_settings([("a",)]), Budget(epsilon=1e-4))
        content = pickle.dumps(release)
        assert b"secret" not in content and (777_123).to_bytes(8, "little") not in content


class TestOrder:
    """Check, charge, count, noise."""

    def test_of_events(self, monkeypatch):
        events = []
        subject = table()

        def recording(name, function):
            def wrapper(*args, **kwargs):
                events.append(name)
                return function(*args, **kwargs)

            return wrapper

        monkeypatch.setattr(Ledger, "charge", recording("charge", Ledger.charge))
        for owner, name in (
            (noisy_tables, "_table_sizes"),
            (noisy_tables, "_cost"),
            (tables, "contingency_tables"),
            (samplers, "discrete_laplace"),
        ):
            monkeypatch.setattr(owner, name, recording(name, getattr(owner, name)))
        run(subject, table_settings([("a",)]), Budget(epsilon=1.0))
        assert events == ["_cost", "_table_sizes", "charge", "contingency_tables", "discrete_laplace"]

    @pytest.mark.parametrize(("owner", "step"), [(tables, "contingency_tables"), (samplers, "discrete_laplace")])
    def test_a_failure_after_the_charge_stays_charged(self, owner, step, monkeypatch):
        subject = table()

        def fail(*args, **kwargs):
            raise MemoryError

        monkeypatch.setattr(owner, step, fail)
        with pytest.raises(MemoryError):
            run(subject, table_settings(SCOPES), Budget(epsilon=1.0))
        assert len(subject.ledger.entries) == 1

    def test_a_spent_budget_refuses_before_counting(self, monkeypatch):
        subject = table(ledger=Budget(epsilon=1.0))
        run(subject, table_settings(SCOPES), Budget(epsilon=0.75))
        before = subject.ledger.entries

        def fail(*args, **kwargs):
            raise AssertionError("counted after a refusal")

        monkeypatch.setattr(tables, "contingency_tables", fail)
        with pytest.raises(
            BudgetExceeded, match=r"0.5-DP was asked, 0.75-DP of the budget 1-DP is spent, 0.25-DP is left"
        ):
            run(subject, table_settings(SCOPES), Budget(epsilon=0.5))
        assert subject.ledger.entries == before

    def test_several_releases_share_a_ledger(self):
        ledger = Ledger(Budget(epsilon=1.0, delta=1e-6))
        for noise in ("laplace", "gaussian"):
            run(table(ledger=ledger), table_settings(SCOPES, noise=noise), Budget(epsilon=0.1, delta=1e-7))
        assert [type(e.cost) for e in ledger.entries] == [PureDP, ZCDP]
        assert ledger.spent.implies(ApproxDP(1.0, 1e-6))


class TestRefusals:
    @pytest.mark.parametrize(
        ("settings", "budget", "text"),
        [
            (
                {"scopes": [("a", "q"), ("r",)]},
                {},
                r"unknown variables 'q', 'r'; the schema declares \['a', 'b', .*add",
            ),
            ({"max_cells": 13}, {}, r"14 cells together, more than 13; the largest is \('a', 'b'\) with 6"),
            ({"noise": "gaussian"}, {}, r"noise='gaussian' cannot give 1-DP.*pass rho, or a delta"),
            ({"noise": "laplace"}, {"rho": 0.1}, r"noise='laplace' is for an epsilon, but the budget is 0.1-zCDP"),
            ({}, {"epsilon": 1e-20}, r"epsilon=1e-20 needs noise of scale 3e\+20.*raise the budget"),
            ({"weights": [1, 1, 1e-200]}, {}, r"needs noise of scale .*less uneven weights"),
            ({}, {"epsilon": 2e6}, r"refused: 2e\+06-DP was asked"),
        ],
    )
    def test_leave_the_ledger_alone(self, settings, budget, text):
        subject = table()
        with pytest.raises(ValueError, match=text):
            run(subject, table_settings(**{"scopes": SCOPES, **settings}), Budget(**(budget or {"epsilon": 1.0})))
        assert subject.ledger.entries == () and subject.ledger.left == LARGE.guarantee

    def test_an_over_large_clique_is_refused_by_arithmetic(self):
        schema = Schema({f"x{k}": range(100) for k in range(40)})
        subject = PrivateTable(pd.DataFrame({name: [0] for name in schema}), schema, ledger=LARGE)
        with pytest.raises(ValueError, match=r"use smaller cliques, or merge states"):
            run(subject, table_settings([tuple(schema)]), Budget(epsilon=1.0))

    @pytest.mark.parametrize(
        ("settings", "error", "text"),
        [
            ({"scopes": []}, ValueError, "scopes is empty"),
            ({"scopes": "ab"}, TypeError, "scopes='ab' is a str; pass a list of tuples"),
            ({"scopes": None}, TypeError, "scopes=None is a NoneType"),
            ({"scopes": ["ab"]}, TypeError, r"scopes holds 'ab', a str; .*for a single variable \('name',\)"),
            ({"scopes": [3]}, TypeError, "scopes holds 3, a int"),
            ({"scopes": [()]}, ValueError, r"scopes holds \(\); a scope names at least one"),
            ({"scopes": [("a", "a")]}, ValueError, "none of them twice"),
            ({"noise": "normal"}, ValueError, "noise='normal' is not supported; pass one of"),
            ({"weights": [1.0]}, ValueError, "weights has 1 entries for 3 scopes"),
            ({"weights": [1, 0, 1]}, ValueError, r"weights\[1\]=0 is out of range; pass a positive"),
            ({"weights": [1, math.nan, 1]}, ValueError, r"weights\[1\]=nan"),
            ({"weights": [1, math.inf, 1]}, ValueError, r"weights\[1\]=inf"),
            ({"weights": [1, "1", 1]}, TypeError, r"weights\[1\]='1' is a str"),
            ({"weights": 3}, TypeError, "weights=3 is a int"),
            ({"random_state": -1}, ValueError, "random_state=-1 is out of range"),
            ({"random_state": 1.0}, TypeError, "random_state=1.0 is a float"),
            ({"random_state": True}, TypeError, "random_state=True is a bool"),
        ],
    )
    def test_settings(self, settings, error, text):
        with pytest.raises(error, match=text):
            table_settings(**{"scopes": SCOPES, **settings})

    def test_wrong_kinds(self):
        with pytest.raises(TypeError, match="table is a DataFrame; pass a PrivateTable"):
            run(FRAME, table_settings(SCOPES), Budget(epsilon=1.0))
        with pytest.raises(TypeError, match=r"budget=1.0 is a float; pass a Budget"):
            run(table(), table_settings(SCOPES), 1.0)


class TestSeeds:
    settings = table_settings(SCOPES, random_state=3)

    @pytest.mark.parametrize("budget", [Budget(epsilon=1.0), Budget(rho=0.1)])
    def test_repeat_warn_and_are_marked(self, budget):
        releases, ledgers = [], []
        for _ in range(2):
            subject = table()
            with pytest.warns(
                ReproducibleNoiseWarning, match="random_state=3 makes the noise reproducible.*NOT private"
            ):
                releases.append(run(subject, self.settings, budget))
            ledgers.append(subject.ledger)
        assert releases[0] == releases[1] and releases[0].reproducible
        assert not ledgers[0].private and "NOT PRIVATE" in ledgers[0].summary()

    def test_without_a_seed_releases_differ_and_are_private(self):
        subject = table()
        first, second = (run(subject, table_settings(SCOPES), Budget(epsilon=0.01)) for _ in range(2))
        assert first != second and not first.reproducible and subject.ledger.private

    def test_a_warning_turned_into_an_error_spends_nothing(self):
        subject = table()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(ReproducibleNoiseWarning):
                run(subject, self.settings, Budget(epsilon=1.0))
        assert subject.ledger.entries == ()


class Hostile:
    """A value on which everything fails."""

    def __str__(self):
        raise RuntimeError("a secret")

    __repr__ = __eq__ = __hash__ = __bool__ = __float__ = __str__


def observe(data: pd.DataFrame, adjacency: str, settings: Any, budget: Budget, caplog, capfd) -> tuple:
    """Everything but the noisy numbers that one use of these records shows."""
    caplog.clear()
    outcome: list = []
    with warnings.catch_warnings(record=True) as caught, caplog.at_level(logging.DEBUG):
        warnings.simplefilter("always")
        try:
            subject = table(adjacency, ledger=Budget(epsilon=2.0), data=data)
            outcome.append(repr(subject))
            release = run(subject, settings, budget)
            public = {name: said for name, said in release.public.items() if name != "paid"}  # names drawn at random
            outcome += [repr(release), public, [v.shape for v in release.values], release.noise]
            outcome += [subject.ledger.spent, [(e.what, e.columns, e.cost) for e in subject.ledger.entries]]
        except Exception as error:
            outcome += [type(error), str(error)]
    outcome += [[(w.category, str(w.message)) for w in caught], [r.getMessage() for r in caplog.records]]
    return (*map(repr, outcome), capfd.readouterr())


BASE = [["x", 0, True], ["y", 2, False]]
EXTRA = [
    *(["y", 1, True], [None, None, None], ["z", 9, "maybe"], [math.nan, math.inf, pd.NA], [1, "1", 1.0]),
    *([[1], {}, (1,)], [Hostile(), Hostile(), Hostile()], [10**400, b"\xff", 1j], ["x" * 10_000, -1, np.arange(3)]),
]


@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
@pytest.mark.parametrize(
    ("settings", "budget"),
    [
        (table_settings(SCOPES), Budget(epsilon=1.0)),
        (table_settings(SCOPES, random_state=1), Budget(epsilon=1.0)),
        (table_settings(SCOPES), Budget(epsilon=3.0)),
        (table_settings([("a", "q")]), Budget(epsilon=1.0)),
        (table_settings(SCOPES, max_cells=3), Budget(epsilon=1.0)),
        (table_settings(SCOPES), Budget(rho=1.0)),
    ],
)
def test_neighbours_look_the_same(adjacency, settings, budget, caplog, capfd):
    """Same exception class and text, warnings, logs, shapes and ledger, whatever one record holds."""

    def frame(rows):
        columns = {name: pd.Series([row[k] for row in rows]) for k, name in enumerate(SCHEMA)}
        return pd.DataFrame(columns).set_axis(pd.Index(list(SCHEMA), tupleize_cols=False), axis=1)

    if adjacency == "add_remove":
        tables = [frame(BASE), frame(BASE[:0]), *(frame([*BASE, extra]) for extra in EXTRA)]
    else:
        tables = [frame([*BASE, extra]) for extra in EXTRA]
    seen = {observe(data, adjacency, settings, budget, caplog, capfd) for data in tables}
    assert len(seen) == 1
