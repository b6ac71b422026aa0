"""The preview says beforehand what a fit does: the same sizes and noise, and its error as often as not."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace

import matplotlib as mpl
import networkx as nx
import numpy as np
import pandas as pd
import pytest

from pgmpy_dp import Budget, Levels, MarkovNetwork, Number, PrivateTable, Schema, preview
from pgmpy_dp.estimators import CollectiveMAP, NaiveMLE, PrivateSGD
from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.junction_tree import InferenceTooLarge
from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.learning.noisy_tables import planned_noise, rehearse, run
from pgmpy_dp.private.guarantee import ZCDP, PureDP
from pgmpy_dp.private.sensitive import Noise
from pgmpy_dp.tables.preview import drawn_tables, mean_absolute, random_log_linear

mpl.use("Agg")
import matplotlib.pyplot as plt

from tests.settings import table_settings

SCHEMA = Schema({"a": ["x", "y"], "b": [0, 1, 2], "c": ["p", "q", "r", "s"], "alone": [False, True]})
GRAPH = nx.Graph([("a", "b"), ("b", "c")])
BUDGETS = [Budget(epsilon=0.5), Budget(rho=0.01), Budget(epsilon=0.5, delta=1e-6)]


@pytest.fixture(scope="module")
def population():
    cliques = Cliques.from_graph(GRAPH, SCHEMA.cardinalities)
    model = random_log_linear(cliques, np.random.default_rng(3))
    return MarkovNetwork.from_log_linear(model, GRAPH, SCHEMA.subset(GRAPH.nodes))


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
def test_sizes_and_noise_are_those_of_the_fit(budget, adjacency, population):
    n = 500
    estimator = CollectiveMAP(
        budget.epsilon, budget.delta, budget.rho, SCHEMA, adjacency, n if adjacency == "replace_one" else None
    )
    estimator.set_params(n_rounds=1, max_iter=5).fit(GRAPH, population.sample(n, random_state=0))
    found = preview(SCHEMA, GRAPH, budget, n, adjacency=adjacency, n_simulations=0)
    assert list(found.table.index) == list(estimator.release_.scopes)
    assert found.table["cells"].tolist() == [value.size for value in estimator.release_.values]
    assert found.table["scale"].tolist() == [noise.scale for noise in estimator.release_.noise]
    assert found.table["noise"].tolist() == [noise.distribution for noise in estimator.release_.noise]
    assert found.guarantee == estimator.release_.guarantee
    assert found.n_records_sd == pytest.approx(estimator.n_records_sd_)
    assert (found.n_records_sd == 0) == (adjacency == "replace_one")
    assert found.simulations.empty and math.isnan(found.expected_total_variation)
    assert "the noisy tables, before learning" in found.verdict and "total variation" in str(found)


def test_the_released_error_is_the_expected_one():
    for noise, draws in (
        (Noise("discrete_laplace", 0.7), np.random.default_rng(0).geometric(-np.expm1(-1 / 0.7), (2, 10**6))),
        (Noise("discrete_laplace", 40.0), np.random.default_rng(1).geometric(-np.expm1(-1 / 40.0), (2, 10**6))),
    ):
        # Twelve standard errors of a mean of 10^6 draws, whose deviation is below 1.1 times the scale plus 1.
        assert mean_absolute(noise) == pytest.approx(np.abs(draws[0] - draws[1]).mean(), abs=0.012 * (1 + noise.scale))
    z = np.arange(-400, 401)
    for scale in (0.1, 0.6, 3.0, 49.0):
        weights = np.exp(-0.5 * (z / scale) ** 2)
        assert mean_absolute(Noise("discrete_gaussian", scale)) == pytest.approx(np.abs(z) @ weights / weights.sum())
    assert mean_absolute(Noise("discrete_gaussian", 60.0)) == pytest.approx(60.0 * math.sqrt(2 / math.pi))
    assert mean_absolute(Noise("discrete_laplace", 1e-3)) == 0.0
    found = preview(SCHEMA, GRAPH, Budget(epsilon=1.0), 100, n_simulations=0)
    expected = np.array([6, 12]) / math.sinh(0.5) / 200
    np.testing.assert_allclose(found.table["released"], expected)


@pytest.mark.parametrize(
    ("public", "estimator"),
    [
        (True, CollectiveMAP()),
        (False, NaiveMLE()),
        pytest.param(True, NaiveMLE(), marks=pytest.mark.slow),
        pytest.param(False, CollectiveMAP(), marks=pytest.mark.slow),
    ],
    ids=lambda value: str(value) if isinstance(value, bool) else type(value).__name__,
)
def test_it_predicts_what_a_fit_then_measures(estimator, public, population):
    """Over twelve fits, with fixed seeds: within a fifth for the right model, within a factor of two for the family."""
    budget, n = Budget(epsilon=0.2), 2000
    found = preview(
        SCHEMA, GRAPH, budget, n, estimator=estimator, model=population if public else None, n_simulations=20,
        random_state=5,
    )  # fmt: skip
    measured = []
    for seed in range(12):
        records = population.sample(n, random_state=100 + seed, method="independent")
        fit = type(estimator)(epsilon=0.2, state_names=SCHEMA, random_state=seed).fit(GRAPH, records)
        truth = [pd.crosstab(records[u], records[v]).reindex(index=SCHEMA[u], columns=SCHEMA[v], fill_value=0)
                 for u, v in fit.release_.scopes]  # fmt: skip
        measured.append(
            [
                0.5 * np.abs(fit.model_.marginal(list(scope)).values - table.to_numpy() / n).sum()
                for scope, table in zip(fit.release_.scopes, truth, strict=True)
            ]
        )
    ratios = found.table["fitted"] / np.mean(measured, axis=0)
    assert np.all(np.abs(np.log(ratios)) < np.log(1.25 if public else 2.0)), ratios
    least, most = found.total_variation_range
    assert least < found.expected_total_variation < most
    assert (found.table["fitted_least"] < found.table["fitted"]).all()


def test_it_can_be_repeated_and_spends_and_says_nothing(population):
    before = [factor.values.copy() for factor in population.factors]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # also not that its noise protects nobody: there is nobody
        first, again = (
            preview(SCHEMA, population, Budget(rho=0.1), 300, model=population, n_simulations=2, random_state=7)
            for _ in range(2)
        )
    pd.testing.assert_frame_equal(first.table, again.table)
    pd.testing.assert_frame_equal(first.simulations, again.simulations)
    assert all((a == f.values).all() for a, f in zip(before, population.factors, strict=True))
    estimator = CollectiveMAP(n_rounds=1)
    preview(SCHEMA, GRAPH, Budget(rho=0.1), 300, estimator=estimator, n_simulations=1, random_state=7)
    assert estimator.get_params() == CollectiveMAP(n_rounds=1).get_params() and not hasattr(estimator, "model_")


def test_more_records_and_budget_are_better():
    def error(epsilon, n):
        budget = Budget(epsilon=epsilon)
        return preview(SCHEMA, GRAPH, budget, n, n_simulations=4, random_state=0).expected_total_variation

    # 2,000,000 is beyond the sampled sizes: expected counts.
    assert error(0.1, 500) > 2 * error(0.1, 5000) > 100 * error(0.1, 2_000_000)
    assert error(0.1, 5000) > 3 * error(1.0, 5000)


def test_scopes_and_an_estimators_options():
    scopes = [("c", "b", "a"), ("alone",)]
    found = preview(SCHEMA, scopes, Budget(epsilon=1.0), 100, estimator=NaiveMLE(weights=[3, 1]), n_simulations=1)
    assert list(found.table.index) == scopes and found.table["cells"].tolist() == [24, 2]
    np.testing.assert_allclose(found.table["scale"], [4 / 3, 4.0])
    assert found.n_parameters == 23 + 1 and found.method == "NaiveMLE"
    chosen = [("a", "b"), ("b", "c"), ("b",)]
    own = preview(SCHEMA, GRAPH, Budget(epsilon=1.0), 100, estimator=CollectiveMAP(cliques=chosen), n_simulations=0)
    assert list(own.table.index) == chosen
    assert own.n_parameters == 1 + 2 + 3 + 2 + 6
    gaussian = preview(SCHEMA, GRAPH, Budget(epsilon=1.0, delta=1e-6), 100, noise="gaussian", n_simulations=0)
    assert isinstance(gaussian.guarantee, ZCDP) and set(gaussian.table["noise"]) == {"discrete_gaussian"}
    auto = preview(SCHEMA, GRAPH, Budget(epsilon=1.0, delta=1e-6), 100, n_simulations=0)
    assert auto.guarantee == PureDP(1.0)


def test_other_variables_of_the_schema_do_not_matter():
    wide = Schema({**SCHEMA.states, "height": Number(0.0, 3.0)})
    first, second = (
        preview(schema, GRAPH, Budget(epsilon=1.0), 100, n_simulations=1, random_state=0) for schema in (SCHEMA, wide)
    )
    pd.testing.assert_frame_equal(first.table, second.table)


def test_the_verdict_in_words():
    def words(epsilon, n):
        return preview(SCHEMA, GRAPH, Budget(epsilon=epsilon), n, n_simulations=2, random_state=0).verdict

    assert words(1.0, 10_000).startswith("close to the records; the model's tables are wrong by 0.00")
    assert words(0.001, 100).startswith("mostly noise") and "b - c" in words(0.001, 100)


def test_a_model_that_is_too_large_is_said_not_run():
    small = CollectiveMAP(memory_limit=100)
    found = preview(SCHEMA, GRAPH, Budget(epsilon=1.0), 100, estimator=small)
    assert "exact inference does not fit" in found.verdict and found.simulations.empty
    assert found.inference.memory_bytes > 100
    with pytest.raises(InferenceTooLarge):
        CollectiveMAP(epsilon=1.0, state_names=SCHEMA, memory_limit=100).fit(GRAPH, pd.DataFrame())


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"schema": None}, ValueError, "schema"),
        ({"budget": 1.0}, TypeError, "budget=1.0 is a float"),
        ({"n": 0}, ValueError, "n=0 is out of range"),
        ({"n": 10.0}, TypeError, "n=10.0 is a float"),
        ({"n_simulations": -1}, ValueError, "n_simulations=-1"),
        ({"cliques": "ab"}, TypeError, "cliques='ab' is a str"),
        ({"cliques": ["ab"]}, TypeError, "scopes holds 'ab'"),
        ({"cliques": [("a", "z")]}, ValueError, r"cliques has the variables \['z'\]"),
        ({"cliques": nx.DiGraph([("a", "b"), ("b", "a")])}, TypeError, "undirected"),
        ({"adjacency": "both"}, ValueError, "adjacency"),
        ({"noise": "gaussian"}, ValueError, "noise='gaussian' cannot give"),
        ({"estimator": PrivateSGD()}, TypeError, "does not learn from noisy tables"),
        ({"estimator": CollectiveMAP}, TypeError, "does not learn from noisy tables"),
        ({"model": 3}, TypeError, "model is a int"),
        ({"model": LogLinearModel(Cliques(("a",), (2,), (("a",),)), np.zeros(2))}, ValueError, "variable 'b'"),
        ({"budget": Budget(epsilon=1e-300)}, ValueError, "needs noise of scale"),
    ],
)
def test_bad_arguments(changed, error, message):
    arguments = {"schema": SCHEMA, "cliques": GRAPH, "budget": Budget(epsilon=1.0), "n": 10, "n_simulations": 0}
    with pytest.raises(error, match=message):
        preview(**(arguments | changed))


def test_a_public_model_may_be_larger_but_not_different(population):
    wide = nx.Graph([("c", "b"), ("b", "a"), ("a", "alone")])
    model = MarkovNetwork.from_log_linear(
        random_log_linear(Cliques.from_graph(wide, SCHEMA.cardinalities), np.random.default_rng(0)), wide, SCHEMA
    )
    assert preview(SCHEMA, GRAPH, Budget(rho=1.0), 50, model=model, n_simulations=1).simulations.shape == (1, 2)
    other = Schema({**SCHEMA.states, "a": ["y", "x"]})
    with pytest.raises(ValueError, match="model has not the states"):
        preview(other, GRAPH, Budget(rho=1.0), 50, model=model)


def test_the_picture():
    found = preview(SCHEMA, GRAPH, Budget(epsilon=0.5), 500, n_simulations=3, random_state=0)
    figure, given = plt.subplots()
    ax = found.plot(given)
    assert ax is given
    lines = {line.get_label(): line for line in ax.get_lines()}
    ordered = found.table.sort_values("released")
    np.testing.assert_array_equal(lines["noisy table"].get_xdata(), ordered["released"])
    np.testing.assert_array_equal(lines["learned model"].get_xdata(), ordered["fitted"])
    assert [label.get_text() for label in ax.get_yticklabels()] == [" - ".join(scope) for scope in ordered.index]
    plt.close(figure)


# -- its parts -----------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_a_rehearsal_is_the_release_but_for_its_noise(budget, population):
    records = population.sample(200, random_state=0)
    settings = table_settings([("a", "b"), ("c",)], weights=[1, 2], random_state=0)
    schema = SCHEMA.subset(["a", "b", "c"])
    release = run(PrivateTable(records, schema, ledger=budget), settings, budget)
    pairs = pd.MultiIndex.from_product([SCHEMA["a"], SCHEMA["b"]])
    exact = [
        records.groupby(["a", "b"]).size().reindex(pairs, fill_value=0),
        records.groupby("c").size().reindex(SCHEMA["c"], fill_value=0),
    ]  # fmt: skip
    counts = [table.to_numpy().reshape(value.shape) for table, value in zip(exact, release.values, strict=True)]
    # The same generator, and so the same noise: everything is equal.
    rehearsed = rehearse(counts, schema, settings, budget, np.random.default_rng(0))
    assert set(rehearsed.questions) == {None} and None not in release.questions  # nobody was asked
    public = {name: fact for name, fact in rehearsed.public.items() if name not in rehearsed.facts}
    assert replace(rehearsed, questions=release.questions, public=public) == release
    cost, noises = planned_noise(schema, settings, budget)
    assert cost == release.guarantee and tuple(noises) == release.noise


def test_drawn_tables_are_of_the_same_records(population):
    model = population.to_log_linear()
    cliques = Cliques(model.cliques.variables, model.cliques.cardinalities, (("a", "b"), ("c", "b"), ("b",)))
    first, second, single = drawn_tables(model, cliques, 250_000, np.random.default_rng(0))
    assert single.sum() == 250_000
    np.testing.assert_array_equal(first.sum(axis=0), single)
    np.testing.assert_array_equal(second.sum(axis=0), single)
    expected = 250_000 * model.marginal(["c", "b"])
    assert (np.abs(second - expected) < 7 * np.sqrt(expected)).all()
    large = drawn_tables(model, cliques, 10**8, np.random.default_rng(0))
    np.testing.assert_allclose(large[1], 10**8 * model.marginal(["c", "b"]), atol=0.5)


def test_the_family_has_uneven_variables_and_some_strong_interactions():
    graph = nx.path_graph(6)
    cliques = Cliques.from_graph(graph, dict.fromkeys(graph, 4))
    information, uneven = [], []
    for seed in range(20):
        model = random_log_linear(cliques, np.random.default_rng(seed))
        for table in cliques.split(model.marginals()):
            product = np.outer(table.sum(axis=1), table.sum(axis=0))
            information.append((table * np.log(table / product)).sum())
            uneven.append(table.sum(axis=1).max())
    weak, middle, strong = np.quantile(information, [0.1, 0.5, 0.9])
    assert weak < 0.01 < middle < 0.05 < strong < 0.5
    assert np.median(uneven) > 0.4


@pytest.mark.parametrize("budget", [Budget(epsilon=1.0), Budget(epsilon=1.0, delta=1e-6), Budget(rho=0.1)])
def test_the_noise_of_persons_is_that_of_a_fit_to_them(budget):
    states, cliques = {"a": [0, 1], "b": [0, 1]}, [("a", "b")]
    frame = pd.DataFrame({"a": [0, 1] * 300, "b": [0, 1] * 300, "person": np.arange(600) // 3})
    for rows in (1, 3, "shares"):
        found = preview(states, cliques, budget, 600, n_simulations=0, rows_per_unit=rows)
        options = {"epsilon": budget.epsilon, "delta": budget.delta, "rho": budget.rho, "state_names": states}
        fit = CollectiveMAP(**options).fit(nx.Graph(cliques), frame, unit="person", rows_per_unit=rows)
        assert found.table["scale"].tolist() == [noise.scale for noise in fit.release_.noise]
        assert found.guarantee == fit.release_.guarantee
    for wrong in (0, 2.5, "all"):
        with pytest.raises((TypeError, ValueError), match="rows_per_unit"):
            preview(states, cliques, budget, 600, rows_per_unit=wrong)


class TestLevels:
    """Where variables have levels the tables of each are planned, with the noise that a fit gives them."""

    SCHEMA = Schema(
        {
            "tract": Levels(
                range(12), county={k: "abcd"[k // 3] for k in range(12)}, state=dict(zip("abcd", "SSTT", strict=True))
            ),
            "sex": ["F", "M"],
            "age": [0, 1, 2],
        },
        impossible=["county = a & sex = M -> age = 2"],
    )

    def test_noise_is_that_of_the_fit_and_simulations_run(self):
        graph = nx.complete_graph(list(self.SCHEMA))
        rng = np.random.default_rng(0)
        columns = {"tract": rng.integers(12, size=3000), "age": rng.integers(3, size=3000)}
        data = pd.DataFrame(columns).assign(sex=rng.choice(["F", "M"], 3000))
        expected = preview(self.SCHEMA, graph, Budget(epsilon=1.0), 3000, n_simulations=2, random_state=0)
        fit = CollectiveMAP(epsilon=1.0, state_names=self.SCHEMA).fit(graph, data)
        assert [*expected.table.index] == [*fit.release_.scopes]
        assert expected.table["scale"].tolist() == [noise.scale for noise in fit.release_.noise]
        assert {("state", "age"), ("county", "sex"), ("tract",)} <= {*expected.table.index}
        assert np.isfinite(expected.simulations.to_numpy()).all()
        assert expected.inference.largest_clique == ("tract", "sex", "age")

    def test_tables_that_are_named_are_those_and_a_model_too_large_says_so(self):
        scopes = [("sex", "age"), ("county", "sex", "age"), ("tract", "sex", "age")]
        learner = CollectiveMAP(cliques=scopes, weights=[1.0, 2.0, 3.0])
        graph = nx.complete_graph(list(self.SCHEMA))
        told = preview(self.SCHEMA, graph, Budget(epsilon=1.0), 3000, estimator=learner, n_simulations=1)
        scales = told.table["scale"].tolist()
        assert len(scales) == 3
        assert scales[0] > scales[1] > scales[2]
        small = CollectiveMAP(memory_limit=100)
        told = preview(self.SCHEMA, graph, Budget(epsilon=1.0), 3000, estimator=small, n_simulations=1)
        assert len(told.table) == 10
        assert "too large" in str(told) or "memory" in str(told)
