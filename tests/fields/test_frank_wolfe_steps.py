"""The Frank-Wolfe learner from end to end: scales, defaults, order of events, refusals, convergence, odd tables."""

from __future__ import annotations

import itertools
import logging
import math
import pickle
from fractions import Fraction

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize

from pgmpy_dp.fields import frank_wolfe
from pgmpy_dp.fields.published.frank_wolfe_steps import frank_wolfe_plan, regression_weights, regressions_of, run
from pgmpy_dp.private.accounting import approx_to_zcdp
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.data.table import PrivateTable
from pgmpy_dp.private.filter import BudgetExceeded
from pgmpy_dp.private.guarantee import ZCDP, ApproxDP, PureDP
from pgmpy_dp.private.noise.samplers import ReproducibleNoiseWarning
from pgmpy_dp.private.operators.regressions import RESIDUAL_UNIT
from pgmpy_dp.private.sensitive import Release
from pgmpy_dp.schema import Schema
from tests.settings import field_settings, table_settings

BINARY = Schema({"a": ["no", "yes"], "b": [0, 1], ("c", 0): [False, True]})
MIXED = Schema({"a": ["no", "yes"], "b": [0, 1, 2], "c": [0, 1, 2, 3]})
LARGE = Budget(rho=1e15)


def frame(schema: Schema, n: int, seed: int = 0) -> pd.DataFrame:
    """Dependent columns: each follows the first one two times in three."""
    rng = np.random.default_rng(seed)
    first = rng.integers(0, 2, n)
    columns = {}
    for name in schema.variables:
        states = schema.states[name]
        own = np.where(rng.random(n) < 2 / 3, first, rng.integers(0, len(states), n))
        columns[name] = [states[k] for k in own]
    return pd.DataFrame(columns) if n else pd.DataFrame({name: [] for name in schema.variables})


def table(schema=BINARY, adjacency="add_remove", ledger=LARGE, data=None, n_records="default") -> PrivateTable:
    if n_records == "default":
        n_records = 60 if adjacency == "replace_one" else None
    return PrivateTable(
        frame(schema, 60) if data is None else data, schema, adjacency=adjacency, ledger=ledger, n_records=n_records
    )


class TestScalesAndGuarantees:
    @pytest.mark.parametrize(
        ("family", "schema", "order"), [("ising", BINARY, 2), ("binary", BINARY, 3), ("pairwise", MIXED, 2)]
    )
    @pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
    def test_textbook(self, family, schema, order, adjacency):
        # Sums over variables of what one record touches; for k states k - 1, 2 k (rho) and 2 (k - 1) (epsilon).
        one, rho_two, pure_two = (6, 18, 12) if family == "pairwise" else (3, 12, 6)
        settings = field_settings(1.0, family, order, n_iter=11)
        gumbel = run(table(schema, adjacency), settings, Budget(rho=0.5))
        weight = one if adjacency == "add_remove" else rho_two
        assert gumbel.public["scale"] == pytest.approx(math.sqrt(weight * 10 / (2 * 0.5)), rel=1e-12)
        assert gumbel.guarantee == ZCDP(0.5) and gumbel.mechanism == "gumbel_noisy_max"
        pure = run(table(schema, adjacency, Budget(epsilon=1.0)), settings, Budget(epsilon=0.5))
        weight = one if adjacency == "add_remove" else pure_two
        assert pure.public["scale"] == pytest.approx(2 * weight * 10 / 0.5, rel=1e-12)
        assert pure.guarantee == PureDP(0.5) and pure.mechanism == "exponential_noisy_max"
        assert gumbel.adjacency == pure.adjacency == adjacency

    def test_epsilon_and_delta_take_the_largest_rho(self):
        budget = Budget(epsilon=1.0, delta=1e-6)
        release = run(table(ledger=budget), field_settings(1.0, n_iter=5), budget)
        assert release.guarantee == ZCDP(approx_to_zcdp(1.0, 1e-6)) and release.guarantee.implies(ApproxDP(1.0, 1e-6))

    @pytest.mark.parametrize("budget", [Budget(rho=0.3), Budget(epsilon=0.7)])
    @pytest.mark.parametrize("n_records", [None, 5000])
    def test_count_and_selections_together_spend_no_more(self, budget, n_records):
        """The budget added up again, exactly, from the scales that were used."""
        release = run(table(ledger=budget, n_records=n_records), field_settings(1.0, count_share=0.1), budget)
        selections = 3 * (release.public["n_iter"] - 1)
        scale = Fraction(release.public["scale"])
        counts = [noise.scale for noise in release.noise if noise is not None]
        assert len(counts) == (n_records is None) and len(release.values) == 1 + len(counts)
        if budget.rho:
            spent = sum(1 / (2 * Fraction(s) ** 2) for s in counts) + selections * (2 / scale) ** 2 / 8
            total = budget.rho
        else:
            spent = sum(1 / Fraction(s) for s in counts) + selections * 2 / scale
            total = budget.epsilon
        assert spent <= Fraction(total) and float(spent) >= total * (1 - 1e-12)

    @pytest.mark.parametrize(("family", "radius"), [("ising", 3.0), ("binary", 3.0), ("pairwise", 3.0 * 4)])
    def test_radius(self, family, radius):
        schema = MIXED if family == "pairwise" else BINARY
        release = run(table(schema), field_settings(1.5, family, n_iter=30), Budget(rho=1.0))
        assert release.public["radius"] == radius
        assert (np.abs(regression_weights(release)).sum(axis=1) <= radius).all()

    def test_default_iterations(self):
        def iterations(n, budget, adjacency="add_remove", family="ising", schema=BINARY, **changes):
            settings = field_settings(1.5, family, **changes)
            return frank_wolfe_plan(schema, adjacency, n, settings, budget).iterations(n)

        # (2 R n sqrt(2 rho/p)/ln 2p)^(2/3)/8, with R = 3, p = 3.
        bound = (2 * 3 * 1e5 * math.sqrt(2 / 3) / math.log(6)) ** (2 / 3)
        assert iterations(10**5, Budget(rho=1.0)) == round(bound / 8)
        assert iterations(10**5, Budget(rho=4.0), "replace_one") == round(bound / 8)
        pure = math.sqrt(3 * 1e5 / (2 * 3 * math.log(6)))
        assert iterations(10**5, Budget(epsilon=1.0)) == round(pure / 4)
        pairwise = (2 * 12 * (1e5 * 6 / 10) * math.sqrt(2 / 6) / math.log(16)) ** (2 / 3)
        assert iterations(10**5, Budget(rho=1.0), family="pairwise", schema=MIXED) == round(pairwise / 8)
        assert iterations(0, Budget(rho=1.0)) == 10
        assert iterations(10**15, Budget(rho=1.0)) == 10_000
        assert iterations(5, Budget(rho=1.0), n_iter=77) == 77

    def test_iterations_follow_the_noisy_count(self):
        data = frame(BINARY, 3_000)
        release = run(table(data=data), field_settings(1.0), Budget(rho=1.0))
        plan = frank_wolfe_plan(BINARY, "add_remove", None, field_settings(1.0), Budget(rho=1.0))
        assert release.public["n_iter"] == plan.iterations(float(release.values[1][0])) > 10
        assert abs(release.values[1][0] - 3_000) < 200  # 28 standard deviations
        assert release.noise[0] is None and release.noise[1].distribution == "discrete_gaussian"
        tiny = run(table(data=data), field_settings(1.0, count_share=1e-7), Budget(rho=1.0))
        assert tiny.public["n_iter"] >= 10  # even where the noise of the count is thousands, of either sign


class TestWhatIsReleased:
    def test_contents(self, tmp_path):
        settings = field_settings(1.0, "pairwise", graph=[("a", "b"), ("b", "c")], n_iter=12)
        release = run(table(MIXED, n_records=60), settings, Budget(rho=1.0))
        assert release.kind == "regressions" and not release.reproducible and release.n_records == 60
        assert release.schema == MIXED and release.public["family"] == "pairwise"
        assert [v.shape for v in release.values] == [(11, 10)] and release.public["grid"] == RESIDUAL_UNIT
        layout = regressions_of(release)
        assert layout.nodes.tolist() == [0, 1, 1, 1] + [2] * 6 and layout.n_columns == 10
        weights = regression_weights(release)
        assert weights.shape == (10, 10) and not weights[layout.columns < 0].any() and weights.any()
        release.save(tmp_path / "r.npz")
        loaded = Release.load(tmp_path / "r.npz")
        assert loaded == release and np.array_equal(regression_weights(loaded), weights)

    def test_names_that_are_not_text_survive(self):
        settings = field_settings(1.0, graph=[("a", ("c", 0))], n_iter=3)
        assert settings.graph == (("a", ("c", 0)),)
        layout = regressions_of(run(table(), settings, Budget(rho=1.0)))
        assert layout.active_nodes == (0, 1, 2) and (layout.columns >= 0).sum(axis=1).tolist() == [2, 1, 2]

    @pytest.mark.parametrize(
        ("family", "schema", "budget"),
        [
            pytest.param(family, schema, budget, marks=[pytest.mark.slow] * ((j + k) % 2))
            for j, (family, schema) in enumerate([("ising", BINARY), ("binary", BINARY), ("pairwise", MIXED)])
            for k, budget in enumerate([Budget(rho=1e4), Budget(epsilon=1e4)])
        ],
    )
    def test_without_neighbours_the_constant_is_learned(self, family, schema, budget):
        data = pd.DataFrame({name: [states[0]] + [states[1]] * 3 for name, states in schema.states.items()})
        subject = table(schema, data=pd.concat([data] * 500), ledger=budget)
        release = run(subject, field_settings(1.5, family, graph=[], n_iter=200), budget)
        layout, weights = regressions_of(release), regression_weights(release)
        constants = [int(np.flatnonzero(row >= 0).item()) for row in layout.columns]
        for weight, column, (u, v) in zip(weights, constants, layout.pairs, strict=True):
            if {u, v} == {0, 1}:  # three of four records are in the second state
                assert weight[column] == pytest.approx(math.log(3) if u == 1 else -math.log(3), abs=0.1)
            assert not np.delete(weight, column).any()

    @pytest.mark.parametrize("graph", [[("a", "b")], []])
    @pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
    @pytest.mark.parametrize("budget", [Budget(rho=0.5), Budget(epsilon=0.5)])
    def test_constants_take_their_part_of_the_budget(self, graph, adjacency, budget):
        alone = 3 - 2 * len(graph)
        two = 4 if budget.rho else 2
        weight = 3 if adjacency == "add_remove" else two * (3 - alone) + alone
        release = run(table(adjacency=adjacency, ledger=budget), field_settings(1.0, graph=graph, n_iter=11), budget)
        scale = math.sqrt(weight * 10 / (2 * 0.5)) if budget.rho else 2 * weight * 10 / 0.5
        assert release.public["scale"] == pytest.approx(scale, rel=1e-12)
        assert regressions_of(release).n_regressions == 3

    def test_a_networkx_graph_keeps_its_isolated_nodes(self):
        graph = nx.Graph([("a", "b")])
        graph.add_node("alone")
        assert field_settings(1.0, graph=graph).graph == (("a", "b"), ("alone",))

    def test_ledger_entry_and_progress(self):
        subject, calls = table(), []
        settings = field_settings(1.0, graph=[("a", "b")], n_iter=8)
        run(subject, settings, Budget(rho=0.5), progress=lambda: calls.append(1))
        (entry,) = subject.ledger.entries
        assert (entry.cost, entry.columns, entry.mechanism) == (ZCDP(0.5), ("a", "b", ("c", 0)), "gumbel_noisy_max")
        assert entry.adjacency == "add_remove" and not entry.reproducible and len(calls) == 7
        assert entry.what == "Frank-Wolfe steps of 3 logistic regressions"

    def test_pickle_holds_no_records(self):
        data = pd.DataFrame({"a": ["yes"] * 77_123 + ["outside secret"], "b": [1] * 77_124})
        subject = PrivateTable(data, Schema({"a": ["no", "yes"], "b": [0, 1]}), ledger=LARGE)
        release = run(subject, field_settings(1.0), Budget(rho=1e-3))
        text = pickle.dumps(release)
        assert b"secret" not in text and b"77123" not in text and len(text) < 20_000

    def test_seeds_repeat_and_say_so(self):
        def once(seed):
            return run(table(), field_settings(1.0, n_iter=40, random_state=seed), Budget(rho=0.1))

        with pytest.warns(ReproducibleNoiseWarning, match="NOT private"):
            first = once(3)
        assert first.reproducible and first == once(3) and first != once(4)
        plain = [run(table(), field_settings(1.0, n_iter=40), Budget(rho=0.1)) for _ in range(2)]
        assert plain[0] != plain[1]

    def test_other_kinds_are_refused(self):
        from pgmpy_dp.learning import noisy_tables

        release = noisy_tables.run(table(), table_settings([("a",)]), Budget(rho=1.0))
        with pytest.raises(ValueError, match="kind 'marginals'; pass one of kind 'regressions'"):
            regression_weights(release)


class TestOrderOfEvents:
    def test_charged_before_noise_and_sums(self, monkeypatch):
        subject = table()
        seen = []
        true = frank_wolfe.descend
        monkeypatch.setattr(frank_wolfe, "descend", lambda *a: seen.append(len(subject.ledger.entries)) or true(*a))
        run(subject, field_settings(1.0, n_iter=3), Budget(rho=1.0))
        assert seen == [1]

    def test_a_refusal_leaves_everything_as_it_was(self, monkeypatch):
        subject = table(ledger=Budget(rho=0.1))

        def never(*args):
            raise AssertionError("summed or drawn after a refusal")

        monkeypatch.setattr(frank_wolfe, "descend", never)
        with pytest.raises(BudgetExceeded):
            run(subject, field_settings(1.0), Budget(rho=0.2))
        assert not subject.ledger.entries

    @pytest.mark.parametrize(
        ("schema", "settings", "budget", "match"),
        [
            (
                MIXED,
                field_settings(1.0),
                Budget(rho=1.0),
                r"family='ising' is for variables of two states.*\['b', 'c'\] have \[3, 4\]",
            ),
            (MIXED, field_settings(1.0, "binary", 3), Budget(rho=1.0), "family='binary' is for variables of two"),
            (BINARY, field_settings(1.0, "binary", 4), Budget(rho=1.0), "order=4 is more than the 3 variables"),
            (
                BINARY,
                field_settings(1.0, graph=[("a", "z")]),
                Budget(rho=1.0),
                "graph has the unknown variables 'z'",
            ),
            (BINARY, field_settings(1.0), Budget(rho=1e-40), "needs noise of scale"),
            (BINARY, field_settings(1.0, n_iter=10**7), Budget(rho=1.0), "n_iter=10000000 is more than 1048576"),
            (BINARY, field_settings(1.0, n_iter=5), Budget(epsilon=1e-30), "needs noise of scale"),
            (
                Schema({j: [0, 1] for j in range(300)}),
                field_settings(1.0, "binary", 4),
                Budget(rho=1.0),
                "weights, more than",
            ),
        ],
    )
    def test_bad_plans_cost_nothing(self, schema, settings, budget, match):
        subject = table(schema, data=frame(schema, 3), ledger=Budget(rho=1.0) if budget.rho else Budget(epsilon=1.0))
        with pytest.raises(ValueError, match=match):
            run(subject, settings, budget)
        assert not subject.ledger.entries

    def test_wrong_types(self):
        with pytest.raises(TypeError, match="table is a DataFrame; pass a PrivateTable"):
            run(frame(BINARY, 3), field_settings(1.0), Budget(rho=1.0))
        with pytest.raises(TypeError, match=r"budget=1\.0 is a float"):
            run(table(), field_settings(1.0), 1.0)
        with pytest.raises(ValueError, match="n_records=None with adjacency='replace_one'"):
            frank_wolfe_plan(BINARY, "replace_one", None, field_settings(1.0), Budget(rho=1.0))


def risk(weights: np.ndarray, codes: np.ndarray, layout) -> np.ndarray:
    """Mean logistic loss of each regression over the records that take part in it, from the definition."""
    losses = []
    for row, node, (u, v), columns in zip(weights, layout.nodes, layout.pairs, layout.columns, strict=True):
        x, y = design(codes, layout, node, u, v, columns)
        losses.append(np.logaddexp(0.0, -y * (x @ row)).mean())
    return np.array(losses)


def design(codes, layout, node, u, v, columns):
    part = codes[np.isin(codes[:, node], (u, v))]
    z = 2.0 * part - 1.0
    x = np.zeros((len(part), len(columns)))
    for f, feature in enumerate(columns):
        if feature >= 0:
            name = layout.features[feature]
            if layout.family == "pairwise":
                x[:, f] = part[:, name[0]] == name[1] if name else 1.0
            else:
                x[:, f] = z[:, list(name)].prod(axis=1)
    return x, np.where(part[:, node] == u, 1.0, -1.0)


MINIMA: dict[tuple, float] = {}


def constrained_minimum(codes, layout, row: int, radius: float) -> float:
    """The same for every method that looks for it: found once."""
    parts = codes, layout.nodes, layout.pairs, layout.columns
    key = *((p.shape, p.tobytes()) for p in map(np.asarray, parts)), row, radius
    if key not in MINIMA:
        MINIMA[key] = _constrained_minimum(codes, layout, row, radius)
    return MINIMA[key]


def _constrained_minimum(codes, layout, row: int, radius: float) -> float:
    """Smallest mean loss over the l1 ball, by SLSQP on the positive and the negative parts of the weights."""
    x, y = design(codes, layout, layout.nodes[row], *layout.pairs[row], layout.columns[row])
    both = np.concatenate([x, -x], axis=1) * y[:, np.newaxis]

    def loss(w):
        return np.logaddexp(0.0, -both @ w).mean()

    def gradient(w):
        return -both.T @ (1 / (1 + np.exp(both @ w))) / len(both)

    ball = {"type": "ineq", "fun": lambda w: radius - w.sum(), "jac": lambda w: -np.ones_like(w)}
    options = {"maxiter": 500, "ftol": 1e-12}
    found = minimize(
        loss,
        np.zeros(both.shape[1]),
        jac=gradient,
        bounds=[(0, None)] * both.shape[1],
        constraints=ball,
        method="SLSQP",
        options=options,
    )
    return float(found.fun)


class TestConvergence:
    @pytest.mark.parametrize(
        ("family", "schema", "order", "width", "n_iter"),
        [
            pytest.param(*family, *how, marks=[pytest.mark.slow] * (j != k))  # one of each in the quick part
            for j, family in enumerate([("ising", BINARY, 2), ("binary", BINARY, 3), ("pairwise", MIXED, 2)])
            for k, how in enumerate(  # the constraint binds, or does not
                [(1.5, 200), (0.15, 200), (0.15, 800), (1.5, 800)]
            )
        ],
    )
    def test_without_noise_it_reaches_the_constrained_minimum(self, family, schema, order, width, n_iter):
        subject = table(schema, data=frame(schema, 400, seed=5), n_records=400)
        release = run(subject, field_settings(width, family, order, n_iter=n_iter), Budget(rho=1e14))
        layout, radius = regressions_of(release), release.public["radius"]
        ours = risk(regression_weights(release), subject._codes, layout)
        for row in range(layout.n_regressions):
            best = constrained_minimum(subject._codes, layout, row, radius)
            # The bound of Frank-Wolfe's method without noise is 2 R^2/T log T; the grid adds less than 1e-4.
            assert best - 1e-6 <= ours[row] <= best + 5e-3

    @pytest.mark.slow  # a rate; errors are held above
    def test_excess_risk_falls_with_records_and_budget(self):
        """Slope in n sqrt(rho) of at least the paper's 2/3, at most what the noise alone would give."""
        excess = []
        for n, rho in ((1_000, 0.01), (10_000, 0.01), (10_000, 1.0), (100_000, 1.0)):
            data = frame(BINARY, n, seed=8)
            subject = table(data=data, n_records=n)
            best = [constrained_minimum(subject._codes, FULL, row, 2.0) for row in range(3)]
            runs = [
                risk(
                    regression_weights(run(subject, field_settings(1.0, random_state=s), Budget(rho=rho))),
                    subject._codes,
                    FULL,
                )
                for s in range(4)
            ]
            excess.append(np.mean(np.array(runs) - best))
        steps = np.diff(np.log(excess)) / np.log(10)
        assert (steps < -0.3).all() and np.log10(excess[-1] / excess[0]) / 3 < -2 / 3

    @pytest.mark.slow  # PrivateIsing recovers a model by the same steps in its own tests
    def test_nearly_all_of_a_strong_model_is_found(self):
        rng = np.random.default_rng(11)
        z = np.array(list(itertools.product([-1, 1], repeat=3)))
        law = np.exp(0.5 * z[:, 0] * z[:, 1] - 0.4 * z[:, 1] * z[:, 2] + 0.2 * z[:, 0])
        codes = (z[rng.choice(8, 200_000, p=law / law.sum())] + 1) // 2
        data = pd.DataFrame(
            {
                name: np.array(BINARY.states[name], dtype=object)[c]
                for name, c in zip(BINARY.variables, codes.T, strict=True)
            }
        )
        release = run(table(data=data), field_settings(1.2, random_state=1), Budget(rho=1.0))
        half = regression_weights(release) / 2
        truth = [[0.2, 0.5, 0.0], [0.5, 0.0, -0.4], [0.0, -0.4, 0.0]]  # fields on the diagonal
        assert np.abs(half - truth).max() < 0.04


FULL = regressions_of(run(table(), field_settings(1.0, n_iter=2), Budget(rho=1.0)))


class TestDefinedResults:
    """Nothing about the records shows in whether there is a result, or in what is said on the way."""

    @pytest.mark.parametrize(
        ("family", "adjacency", "budget"),
        [
            pytest.param(family, adjacency, budget, marks=[pytest.mark.slow] * ((i + j + k) % 2))
            for i, family in enumerate(["ising", "binary", "pairwise"])
            for j, adjacency in enumerate(["add_remove", "replace_one"])
            for k, budget in enumerate([Budget(rho=1.0), Budget(epsilon=1.0)])
        ],
    )
    def test_in_silence(self, family, adjacency, budget, caplog, capsys):
        caplog.set_level(logging.DEBUG)
        outside = pd.DataFrame({"a": ["?"] * 5, "b": [9] * 5, ("c", 0): [None] * 5})
        constant = pd.DataFrame({"a": ["no"] * 5, "b": [1] * 5, ("c", 0): [True] * 5})
        for data in (frame(BINARY, 0), frame(BINARY, 1), outside, constant):
            ledger = Budget(rho=1.0) if budget.rho else Budget(epsilon=1.0)
            subject = table(BINARY, adjacency, ledger, data)
            release = run(subject, field_settings(1.0, family), budget)
            weights = regression_weights(release)
            assert np.isfinite(weights).all() and np.abs(weights).sum(axis=1).max() <= release.public["radius"]
        assert not caplog.records and capsys.readouterr() == ("", "")

    def test_no_records_are_pure_noise(self):
        """Every vertex of every regression is equally likely. False alarm below 1e-6."""
        release = run(table(data=frame(BINARY, 0)), field_settings(1.0, n_iter=301), Budget(rho=1.0))
        hits = np.stack([np.bincount(column, minlength=6) for column in release.values[0].T])
        assert np.abs(hits - 300 / 6).max() < 6 * math.sqrt(300 * 5 / 36)

    def test_a_constant_column_is_learned_as_such(self):
        data = frame(BINARY, 500).assign(b=1)
        weights = regression_weights(run(table(data=data), field_settings(2.0, n_iter=400), Budget(rho=1e6)))
        assert weights[1, 1] > 1.5  # the constant of the regression of b

    def test_more_variables_than_records(self):
        schema = Schema({j: [0, 1] for j in range(30)})
        release = run(table(schema, data=frame(schema, 4)), field_settings(1.0, n_iter=12), Budget(rho=1.0))
        assert regression_weights(release).shape == (30, 30)

    def test_one_variable(self):
        schema = Schema({"a": [0, 1]})
        data = pd.DataFrame({"a": [1] * 900 + [0] * 100})
        release = run(table(schema, data=data), field_settings(2.0, n_iter=200), Budget(rho=1e6))
        assert regression_weights(release)[0, 0] == pytest.approx(math.log(9), abs=0.05)

    def test_a_graph_leaves_only_the_constant_to_others(self):
        data = frame(BINARY, 100)
        # Nine steps of one unit up or down, an odd number: a node's weights cannot all be zero again.
        one = run(table(data=data), field_settings(1.0, n_iter=10, graph=[("a", "b")]), Budget(rho=1.0))
        assert one.values[0].shape == (9, 3)
        assert one.public["scale"] == pytest.approx(math.sqrt(3 * 9 / 2), rel=1e-12)
        weights = regression_weights(one)
        assert not weights[:2, 2].any() and weights[:2, :2].any()
        assert not weights[2, :2].any() and weights[2, 2]
