"""Models that are asked about levels of their variables: sums over leaves, by brute force, on all ways to ask."""

from __future__ import annotations

import dataclasses

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from pgmpy_dp import Budget, Levels, MarkovNetwork, Schema, VariableElimination, learn, score_model
from pgmpy_dp.estimators import CollectiveMAP
from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.models.answers import SavedModel
from pgmpy_dp.models.model_file import read_model_file
from pgmpy_dp.models.model_score import preview_score

COUNTY = {f"t{k}": f"c{k % 5}" for k in range(12)}
STATE = {f"c{k}": ("CA", "NV")[k % 2] for k in range(5)}
SCHEMA = Schema(
    {
        "race": ["a", "b", "c"],
        "tract": Levels(list(COUNTY), county=COUNTY, state=STATE),
        "icd": Levels.from_prefix(["E11", "E12", "I10", "I11"], {"chapter": 1}, rest=False),
    },
    other={"tract": "unknown"},
    impossible=["state = NV & chapter = E -> race != c"],
)
LEAVES = {name: pd.Series(range(len(SCHEMA.states[name])), index=list(SCHEMA.states[name])) for name in SCHEMA}


def made_up():
    rng = np.random.default_rng(0)
    shape = tuple(SCHEMA.cardinalities.values())
    model = LogLinearModel(Cliques(SCHEMA.variables, shape, (SCHEMA.variables,)), rng.normal(size=np.prod(shape)))
    return MarkovNetwork.from_log_linear(model, nx.complete_graph(SCHEMA.variables), SCHEMA)


def joint(model):
    """Every record with its probability, and its levels by the maps."""
    table = model.query(list(SCHEMA)).values
    rows = pd.DataFrame(
        [
            dict(zip(SCHEMA, (SCHEMA.states[n][k] for n, k in zip(SCHEMA, at, strict=True)), strict=True))
            for at in np.ndindex(table.shape)
        ]
    )
    rows["county"] = rows["tract"].map(COUNTY).fillna("unknown")
    rows["state"] = rows["county"].map(STATE).fillna("unknown")
    rows["chapter"] = rows["icd"].str[0]
    return rows.assign(p=table.ravel())


@pytest.fixture(scope="module")
def model():
    return made_up()


@pytest.mark.parametrize(
    ("names", "evidence", "holds"),
    [
        (["state", "race"], {}, lambda rows: rows["p"]),
        (["chapter", "county", "race"], {}, lambda rows: rows["p"]),
        (["race"], {"state": "CA"}, lambda rows: rows["p"] * (rows["state"] == "CA")),
        (
            ["county"],
            {"state": "NV", "chapter": "E"},
            lambda rows: rows["p"] * ((rows.state == "NV") & (rows.chapter == "E")),
        ),
        (["tract"], {"county": {"c1", "c2"}}, lambda rows: rows["p"] * rows["county"].isin(["c1", "c2"])),
        (["state"], {"tract": "t0|t1|t3"}, lambda rows: rows["p"] * rows["tract"].isin(["t0", "t1", "t3"])),
        (
            ["chapter"],
            {"state": {"CA": 0.2, "unknown": 0.8}},
            lambda rows: rows["p"] * rows["state"].map({"CA": 0.2, "NV": 0, "unknown": 0.8}),
        ),
    ],
)
def test_queries_are_sums_over_leaves(model, tmp_path, names, evidence, holds):
    rows = joint(model)
    weights = holds(rows)
    expected = (weights / weights.sum()).groupby([rows[name] for name in names]).sum()
    answer = model.query(names, evidence)
    found = {
        tuple(answer.state_names[name][k] for name, k in zip(names, at, strict=True)): answer.values[at]
        for at in np.ndindex(answer.values.shape)
    }
    for key, share in expected.items():
        assert found.pop(key if isinstance(key, tuple) else (key,)) == pytest.approx(share, abs=1e-12)
    assert not found
    assert model.ask(names, evidence).shares.tolist() == answer.values.tolist()
    assert model.ask(names, evidence).worth.share == pytest.approx(weights.sum())
    model.save(tmp_path / "model.npz")
    saved = SavedModel(read_model_file(tmp_path / "model.npz"))
    assert saved.ask(names, evidence).to_dict() == model.ask(names, evidence).to_dict()


def test_answers_name_the_level(model):
    told = model.ask(["county"], {"state": "CA"})
    assert "P(county | state=CA)" in str(told)
    assert told.to_dict()["evidence"] == {"state": "CA"}
    assert {row["county"] for row in told.to_dict()["table"]} == {*COUNTY.values(), "unknown"}


def test_events_and_elimination(model):
    rows = joint(model)
    inside = (rows["state"] == "CA") & rows["race"].isin(["a", "c"])
    assert model.probability({"state": "CA", "race": {"a", "c"}}) == pytest.approx(rows["p"][inside].sum())
    given = rows[rows["chapter"] == "I"]
    assert model.probability({"state": "CA"}, {"chapter": "I"}) == pytest.approx(
        given["p"][given["state"] == "CA"].sum() / given["p"].sum()
    )
    found = VariableElimination(model).query(["race"], {"state": "CA"}, show_progress=False)
    assert found.values == pytest.approx(model.query("race", {"state": "CA"}).values)


@pytest.mark.parametrize(
    ("names", "evidence", "message"),
    [
        (["state", "county"], {}, "has 'tract' twice"),
        (["race", "race"], {}, "variables has 'race' twice"),
        (["race"], {"state": "CA", "tract": "t0"}, "evidence has 'tract' twice"),
        (["state"], {"county": "c1"}, "variables and evidence both have"),
        (["state"], {"state": "CA"}, "variables and evidence both have"),
        (["race"], {"state": "XX"}, "variable 'state' is given as 'XX'.*use one of the states CA, NV, unknown"),
        (["nation"], {}, "must name nodes"),
        (["race"], {"nation": "US"}, "must name nodes"),
    ],
)
def test_what_is_no_question(model, names, evidence, message):
    with pytest.raises(ValueError, match=message):
        model.query(names, evidence)
    with pytest.raises(ValueError, match=message):
        model.ask(names, evidence)


def test_rules_about_levels_hold(model):
    rows = joint(model)
    assert rows["p"][(rows["state"] == "NV") & (rows["chapter"] == "E") & (rows["race"] == "c")].sum() == 0
    assert model.impossible == SCHEMA.impossible


@pytest.mark.parametrize("labels", [False, True])
def test_samples_have_levels_behind_their_leaf(model, labels):
    drawn = model.sample(500, random_state=0, labels=labels)
    assert list(drawn.columns) == ["race", "tract", "county", "state", "icd", "chapter"]
    assert (drawn["county"] == drawn["tract"].map(COUNTY).fillna("unknown")).all()
    assert (drawn["state"] == drawn["county"].map(STATE).fillna("unknown")).all()
    assert (drawn["chapter"] == drawn["icd"].str[0]).all()
    some = model.sample(200, random_state=0, evidence={"county": "c1"}, ids="id")
    assert set(some["county"]) == {"c1"}
    with pytest.raises(ValueError, match="ids='state' is a column"):
        model.sample(3, ids="state")


def records(n=4000):
    rng = np.random.default_rng(1)
    tracts = rng.choice([*COUNTY, "?"], n, p=[0.14, *[0.07] * 11, 0.09])
    return pd.DataFrame(
        {
            "tract": tracts,
            "state": "Ohio",  # which is not read: the tract counts
            "race": np.where(rng.random(n) < 0.5, "a", rng.choice(["b", "c"], n)),
            "icd": rng.choice(["I10", "I11"], n),
        }
    )


def test_intervals_of_levels_are_those_of_sums(tmp_path):
    estimator = CollectiveMAP(rho=0.5, state_names=SCHEMA).fit(
        nx.Graph([("tract", "race"), ("race", "icd")]), records()
    )
    model = estimator.model_
    model.posterior = estimator.posterior(n_draws=60, random_state=0)
    answer = model.ask(["state"], {"race": "a"})
    draws = [one.query("state", {"race": "a"}).values for one in model.posterior.models(60)]
    low, high = answer.interval["lower"], answer.interval["upper"]
    spread = np.std(draws, axis=0)
    assert (low < answer.shares).all()
    assert (answer.shares < high).all()
    assert ((high - low) / (2 * 1.645 * spread)).tolist() == pytest.approx([1.0] * 3, rel=0.35)
    truth = records().pipe(lambda f: f[f["race"] == "a"])["tract"].map(COUNTY).map(STATE).fillna("unknown")
    shares = truth.value_counts(normalize=True)[["CA", "NV", "unknown"]]
    assert abs(answer.shares - shares.to_numpy()).max() < 0.05


def test_rare_leaves_merge_within_their_state():
    """Many tracts of two counties, most of them nearly empty: every level stays a function of what is counted."""
    county = {f"t{k}": f"c{k % 3}" for k in range(30)}
    schema = Schema({"tract": Levels(list(county), county=county), "sex": ["F", "M"]})
    rng = np.random.default_rng(0)
    tracts = rng.choice(["t0", "t1", "t2", *(f"t{k}" for k in range(3, 30))], 5000, p=[0.3, 0.3, 0.3, *[0.1 / 27] * 27])
    frame = pd.DataFrame({"tract": tracts, "sex": rng.choice(["F", "M"], 5000)})
    fitted = learn(frame, Budget(rho=0.02), schema, random_state=0, merge_rare=True)
    model = fitted.model_
    assert len(model.states["tract"]) < 30
    assert "rest of c1" in model.states["tract"]
    truth = frame["tract"].map(county).value_counts(normalize=True)
    found = dict(zip(model.levels["county"].states, model.query("county").values, strict=True))
    assert all(abs(found[name] - truth[name]) < 0.04 for name in truth.index)
    drawn = model.sample(1000, random_state=0)
    assert (drawn["county"] == drawn["tract"].map(county)).all()
    assert len(set(drawn["tract"])) > len(model.states["tract"])


def test_complete_records_keep_the_tree():
    schema = Schema({"tract": Levels([*COUNTY, None], county=COUNTY), "sex": ["F", "M"]})
    shape = tuple(schema.cardinalities.values())
    table = LogLinearModel(Cliques(schema.variables, shape, (schema.variables,)), np.zeros(np.prod(shape)))
    model = MarkovNetwork.from_log_linear(table, nx.complete_graph(schema.variables), schema)
    whole = model.complete({"tract": ["sex"]})
    assert None not in whole.levels["county"].states
    assert whole.query("county").values.sum() == pytest.approx(1)


def test_scores_of_a_workload_of_levels(model):
    frame = model.sample(4000, random_state=1)[list(SCHEMA)]
    frame.loc[frame["tract"].isin(["t0", "t6"]), "race"] = "a"
    score = score_model(model, frame, Budget(epsilon=1e5), workload=[("state", "race")], worst=False, random_state=0)
    rows = joint(model).groupby(["state", "race"])["p"].sum()
    state = frame["tract"].map(COUNTY).map(STATE).fillna("unknown")
    own = frame.groupby([state, "race"]).size() / len(frame)
    expected = np.abs(own.reindex(rows.index, fill_value=0) - rows).sum() / 2
    assert score.table["distance"].iloc[0] == pytest.approx(expected, abs=1e-3)
    preview = preview_score(model, 4000, Budget(epsilon=1.0), workload=[("state", "race")], worst=False)
    assert len(preview) == 1
    with pytest.raises(ValueError, match="workload has 'tract' twice"):
        score_model(model, frame, Budget(epsilon=1.0), workload=[("state", "tract")])
    with pytest.raises(ValueError, match="unknown variables 'nation'"):
        score_model(model, frame, Budget(epsilon=1.0), workload=[("nation", "race")])


def test_intervals_of_a_posterior_by_levels():
    frame = pd.DataFrame({"tract": ["t1", "t2", "t3", "t4"] * 500, "race": ["a", "b", "b", "c"] * 500, "icd": "E11"})
    estimator = learn(frame, Budget(epsilon=2.0, delta=1e-6), SCHEMA, random_state=0)
    model, posterior = estimator.model_, estimator.posterior(30, random_state=0)
    model.posterior = posterior
    for names, evidence in ((["county", "race"], None), (["race"], {"state": "CA"}), (["state"], {"chapter": "E"})):
        found, answer = posterior.interval(names, evidence), model.ask(names, evidence)
        np.testing.assert_allclose(found["lower"], answer.interval["lower"])
        np.testing.assert_allclose(found["estimate"], answer.shares)
    with pytest.raises(ValueError, match="has 'tract' twice"):
        posterior.interval(["state"], {"tract": "t1"})
    with pytest.raises(ValueError, match=r"name \['nation'\], which are not in the model"):
        posterior.interval(["nation"])


def test_an_answer_says_which_tables_it_does_not_rest_on(tmp_path):
    """A table of a level counts for this level and coarser ones, and for no finer one."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"tract": rng.choice(list(COUNTY), 3000), "icd": rng.choice(["E11", "I10"], 3000)})
    state = frame["tract"].map(COUNTY).map(STATE)
    frame["race"] = np.where((state == "CA") & (rng.random(3000) < 0.9), "a", rng.choice(["a", "b"], 3000))
    estimator = learn(frame, Budget(epsilon=2.0, delta=1e-6), SCHEMA, random_state=0, workload=[("state", "race")])
    model, posterior = estimator.model_, estimator.posterior(20, random_state=0)
    measured = estimator.release_.scopes[: -estimator.release_.public.get("probes", 0) or None]
    coarse = {frozenset(scope) for scope in measured if not {*scope} <= {*SCHEMA}}
    assert {frozenset(scope) for scope in posterior.discrepancy.levels} == coarse
    assert frozenset({"state", "race"}) in coarse
    known = dataclasses.replace(posterior.discrepancy, measured=(), levels=(("county", "race"), ("icd", "state")))
    model.posterior = dataclasses.replace(posterior, discrepancy=known)
    model.save(tmp_path / "m.npz")
    for asked in (model, SavedModel(read_model_file(tmp_path / "m.npz"))):

        def unmeasured(names, evidence=None, asked=asked):
            return [{one, other} for one, other, _ in asked.ask(names, evidence).worth.unmeasured]

        assert unmeasured(["county", "race"]) == unmeasured(["state", "race"]) == unmeasured(["state", "chapter"]) == []
        assert unmeasured(["race"], {"county": {"c1", "c2"}}) == unmeasured(["icd"], {"state": "CA"}) == []
        assert unmeasured(["tract", "race"]) == unmeasured(["race"], {"tract": "t0|t1"}) == [{"tract", "race"}]
        assert unmeasured(["county", "chapter"]) == [{"county", "chapter"}]
        assert unmeasured(["county"], {"state": "CA", "icd": "E11"}) == [{"county", "icd"}]  # the finer name counts
    (pair,) = model.ask(["county", "chapter"]).worth.unmeasured
    finer = model.ask(["tract", "icd"]).worth.unmeasured[0]
    assert 0 < pair.error < finer.error and "Tables of these pairs were not measured" in str(
        model.ask(["tract", "icd"])
    )
