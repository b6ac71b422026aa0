"""Tables at levels from the schema to the model: defaults, shares, errors, intervals, and the pull on the nation."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from scipy.optimize import nnls

from pgmpy_dp import Levels, Schema
from pgmpy_dp.estimators import CollectiveEM, CollectiveMAP, NaiveMLE
from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.learning.level_engine import at_levels, level_cells
from pgmpy_dp.learning.level_plan import at_every_level, coarser_tables, levels_in
from pgmpy_dp.learning.maximum_a_posteriori import collective_map
from pgmpy_dp.learning.noisy_marginals import NoisyMarginals
from pgmpy_dp.models.posterior.posterior_sampling import sample_posterior

TRACTS = [f"t{k}" for k in range(12)]
COUNTY = {tract: f"c{k // 3}" for k, tract in enumerate(TRACTS)}
STATE = {"c0": "S", "c1": "S", "c2": "T", "c3": "T"}
SCHEMA = Schema({"tract": Levels(TRACTS, county=COUNTY, state=STATE), "sex": ["F", "M"], "age": [0, 1, 2]})
GRAPH = nx.Graph([("tract", "sex"), ("sex", "age")])


def records(seed: int = 0, n: int = 20_000) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    tract = rng.integers(12, size=n)
    sex = np.where(rng.random(n) < 0.2 + 0.05 * tract, "M", "F")
    return pd.DataFrame({"tract": np.array(TRACTS)[tract], "sex": sex, "age": rng.integers(3, size=n)})


def test_scopes_are_measured_at_every_level_and_leaves_get_a_tenth() -> None:
    scopes, weights = at_every_level([("tract", "sex"), ("sex", "age")], SCHEMA)
    chain = [("sex",), ("state", "sex"), ("county", "sex"), ("tract", "sex")]
    assert scopes == [*chain, ("sex", "age"), ("tract",)]
    assert weights is not None
    np.testing.assert_allclose(np.array(weights) / sum(weights), 0.45 * np.array([0.1, 0.2, 0.3, 0.4, 1, 2 / 9]))
    assert at_every_level([("sex", "age")], SCHEMA) == ([("sex", "age")], None)


def test_coarser_tables_of_chosen_ones_have_all_levels_but_the_finest_and_none_lies_in_another() -> None:
    levels = levels_in(SCHEMA, [SCHEMA.levels])
    chosen = [("tract",), ("sex", "age"), ("tract", "sex"), ("state", "sex", "age"), ("county", "age")]
    weights = {("sex", "age"): 2, ("state", "sex", "age"): 3, ("county", "sex"): 4, ("county", "age"): 4}
    assert coarser_tables(chosen, levels) == weights
    assert coarser_tables([("sex", "age"), ("tract",)], levels) == {}
    both = Schema(
        {"tract": SCHEMA["tract"], "code": Levels.from_prefix(["a1", "a2", "b1"], {"chapter": 1}, rest=False)}
    )
    levels = levels_in(both, [both.levels])
    assert coarser_tables([("tract", "code")], levels) == {("state", "chapter"): 2, ("county", "chapter"): 3}
    assert coarser_tables([("county", "chapter")], levels) == {("state", "chapter"): 2, ("county", "chapter"): 3}


def test_two_variables_with_levels_go_down_together() -> None:
    codes = Levels.from_prefix(["a11", "a12", "b21", "b22"], {"chapter": 1}, rest=False)
    schema = Schema({"tract": SCHEMA["tract"], "code": codes})
    scopes, _ = at_every_level([("tract", "code")], schema)
    assert scopes == [("state", "chapter"), ("county", "chapter"), ("tract", "code"), ("tract",), ("code",)]


@pytest.mark.parametrize("rho", [0.005, 0.05])
def test_two_variables_with_levels_are_as_near_as_least_squares_of_their_tables(rho: float) -> None:
    codes = [f"{chapter}{k}" for chapter in "abc" for k in (1, 2)]
    schema = Schema({"tract": SCHEMA["tract"], "code": Levels.from_prefix(codes, {"chapter": 1}, rest=False)})
    errors = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        shares = np.outer(rng.dirichlet(np.full(12, 2)), rng.dirichlet(np.full(6, 2))) * np.exp(
            0.3 * rng.normal(size=(12, 6))
        )
        exact = rng.multinomial(20_000, shares.ravel() / shares.sum())
        tract, code = np.divmod(np.repeat(np.arange(72), exact), 6)
        data = pd.DataFrame({"tract": np.array(TRACTS)[tract], "code": np.array(codes)[code]})
        fitted = CollectiveMAP(rho=rho, state_names=schema, random_state=seed).fit(nx.Graph([("tract", "code")]), data)
        release, inside = fitted.release_, Cliques(("tract", "code"), (12, 6), (("tract", "code"),))
        cells = [level_cells(s, ("tract", "code"), inside, levels_in(schema, release.scopes)) for s in release.scopes]
        sums = [np.eye(value.size)[:, to] for value, to in zip(release.values, cells, strict=True)]
        scales = [noise.scale for noise in release.noise]
        rows = np.concatenate([one / scale for one, scale in zip(sums, scales, strict=True)])
        counts = np.concatenate([np.ravel(v) / scale for v, scale in zip(release.values, scales, strict=True)])
        fit = fitted.n_records_ * fitted.model_.marginal(["tract", "code"]).values.ravel()
        errors.append(
            [[np.abs(one @ (table - exact)).mean() for one in sums] for table in (fit, nnls(rows, counts)[0])]
        )
    fit, squares = np.mean(errors, axis=0)
    assert (fit < 1.1 * squares).all() and fit[2] < squares[2]


@pytest.mark.parametrize("estimator", [CollectiveMAP, CollectiveEM, NaiveMLE])
def test_an_estimator_measures_levels_and_its_model_has_the_variables(estimator: type) -> None:
    data = records()
    fitted = estimator(rho=1.0, state_names=SCHEMA).fit(GRAPH, data)
    assert ("county", "sex") in fitted.release_.scopes
    assert set(fitted.model_.nodes) == {"tract", "sex", "age"}
    exact = pd.crosstab(data["tract"], data["sex"]).loc[TRACTS].to_numpy()
    table = fitted.n_records_ * fitted.model_.marginal(["tract", "sex"]).values
    assert np.abs(table - exact).mean() < 5  # noise of a cell of the tracts' table has a deviation of 2.6
    again = estimator(state_names=SCHEMA).fit_release(GRAPH, fitted.release_)
    np.testing.assert_allclose(again.model_.marginal(["tract"]).values, fitted.model_.marginal(["tract"]).values)


def test_named_levels_are_the_tables_and_draws_are_of_the_variables() -> None:
    scopes = [("state", "sex"), ("sex", "tract"), ("sex", "age")]
    fitted = CollectiveMAP(rho=1.0, state_names=SCHEMA, cliques=scopes).fit(GRAPH, records())
    assert fitted.release_.scopes == tuple(scopes)
    interval = fitted.posterior(40, random_state=0).interval(["tract", "sex"])
    estimate = fitted.model_.marginal(["tract", "sex"]).values
    assert np.mean((interval["lower"] < estimate) & (estimate < interval["upper"])) > 0.8


@pytest.mark.parametrize(
    ("scopes", "message"),
    [
        ([("state", "tract"), ("tract", "sex"), ("sex", "age")], "'tract' twice"),
        ([("state", "age"), ("tract", "sex"), ("sex", "age")], "no edges .*'tract', 'age'"),
        ([("state",), ("sex", "age")], "no table covers .*'tract', 'sex'"),
    ],
)
def test_tables_that_are_no_part_of_the_model_are_refused(scopes: list, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CollectiveMAP(rho=1.0, state_names=SCHEMA, cliques=scopes).fit(GRAPH, records(n=50))


def test_a_prior_is_refused_before_anything_is_spent() -> None:
    prior = CollectiveMAP(rho=1.0, state_names=SCHEMA).fit(GRAPH, records()).model_
    with pytest.raises(ValueError, match="prior=None"):
        CollectiveMAP(rho=1.0, state_names=SCHEMA, prior=prior).fit(GRAPH, records(n=50))


@pytest.mark.parametrize("exact", [False, True])
def test_a_nation_is_as_near_as_its_noise_and_tracts_nearer(exact: bool) -> None:
    """With one weight of the entropy term for all levels, of the tracts' size, the nation was off by several noises."""
    rng, deviation = np.random.default_rng(1), np.array([60.0, 42.0, 35.0, 30.0])
    shares = rng.dirichlet(0.5 * np.ones(40))
    tracts = np.array([rng.multinomial(400, rng.dirichlet(100 * shares)) for _ in range(500)])
    states = np.arange(500) // 100
    levels = {"state": ("tract", states), "county": ("tract", np.arange(500) // 20)}
    cliques = Cliques(
        ("state", "county", "tract", "group"),
        (5, 25, 500, 40),
        (("group",), ("state", "group"), ("county", "group"), ("tract", "group"), ("tract",)),
    )
    tables = [tracts.sum(0), *(np.add.reduceat(tracts, np.arange(0, 500, k)) for k in (100, 20)), tracts, tracts.sum(1)]
    scale = np.array([*deviation, 1.0 if exact else 60.0])
    noisy = NoisyMarginals(
        cliques,
        cliques.join(
            [np.asarray(table) + rng.normal(0, s, np.shape(table)) for table, s in zip(tables, scale, strict=True)]
        ),
        "gaussian",
        scale,
        levels=levels,
    )
    fitted = noisy.n_records * collective_map(noisy).model.marginal(["tract", "group"])
    assert np.abs(fitted.sum(axis=0) - tables[0]).mean() < 0.8 * 1.3 * deviation[0]
    assert np.abs(fitted - tracts).mean() < 0.5 * 0.8 * deviation[3]


def test_intervals_hold_at_every_level_where_many_cells_are_next_to_empty() -> None:
    """Equal tails of the draws held .82 of the counties' cells and .75 of the tracts'."""
    county, names = np.arange(40) // 4, ("state", "county", "tract", "group")
    levels = {"state": ("tract", np.arange(40) // 20), "county": ("tract", county)}
    scopes = (("group",), ("state", "group"), ("county", "group"), ("tract", "group"), ("tract",))
    cliques, inside = Cliques(names, (2, 10, 40, 8), scopes), []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        shares = rng.dirichlet(np.full(8, 0.7))
        counties = [rng.dirichlet(30 * shares + 1e-3) for _ in range(10)]
        tracts = rng.lognormal(0, 0.7, 40)[:, None] * [rng.dirichlet(20 * counties[k] + 1e-3) for k in county]
        tracts /= tracts.sum()
        exact = rng.multinomial(20_000, tracts.ravel()).reshape(40, 8)
        tables = [exact.sum(axis=0), *at_levels([exact] * 3, scopes[1:4], levels), exact.sum(axis=1)]
        noisy_tables = [table + rng.normal(0, 30, table.shape) for table in tables]
        noisy = NoisyMarginals(cliques, cliques.join(noisy_tables), "gaussian", np.full(5, 30.0), levels=levels)
        posterior = sample_posterior(noisy, collective_map(noisy), rng, n_draws=39)
        drawn = posterior.query(["tract", "group"])
        of_level = [np.array([at_levels([one], [scope], levels)[0] for one in drawn]) for scope in scopes[2:4]]
        truth = at_levels([tracts] * 2, scopes[2:4], levels)
        ends = [posterior.interval_of(one) for one in of_level]
        inside.append([np.mean((e.lower <= one) & (one <= e.upper)) for e, one in zip(ends, truth, strict=True)])
    assert (np.abs(np.mean(inside, axis=0) - 0.9) < 0.04).all()
