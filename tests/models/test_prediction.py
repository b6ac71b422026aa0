"""What a Markov network predicts is what pgmpy's Bayesian network of its distribution does."""

import itertools

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pytest

from pgmpy_dp import MarkovNetwork, Number, Schema
from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.models import prediction
from tests.models.test_answers_by_levels import COUNTY, joint, made_up

STATES = {"a": ["x", "y"], "b": ["1", "2", "3"], "c": ["no", "yes"], "d": ["p", "q"]}
SCOPES = (("a", "b"), ("b", "c"), ("c", "d"), ("a", "d"))


def network(schema, scopes=SCOPES, seed=1):
    cliques = Cliques(tuple(schema), tuple(schema.cardinalities.values()), scopes)
    model = LogLinearModel(cliques, np.random.default_rng(seed).normal(size=cliques.n_cells))
    return MarkovNetwork.from_log_linear(model, nx.Graph(scopes), schema)


@pytest.fixture(scope="module")
def model():
    return network(Schema(STATES))


@pytest.fixture(scope="module")
def rows():
    rows = pd.DataFrame(list(itertools.product(*STATES.values())), columns=list(STATES))
    return rows.sample(frac=1, random_state=0)


@pytest.mark.parametrize("few", [1, 4096], ids=["eliminated", "each tried"])
@pytest.mark.parametrize("lacking", [["b"], ["a", "c"], ["a", "b", "d"]], ids="".join)
def test_as_pgmpy_does(model, rows, lacking, few, monkeypatch):
    monkeypatch.setattr(prediction, "_FEW", few)
    monkeypatch.setattr(prediction, "_CELLS", 9)  # some records at a time
    given = rows.drop(columns=lacking).drop_duplicates()
    directed = model.to_bayesian_network()
    expected = directed.predict(given, n_jobs=1)
    found = model.predict(given)
    pd.testing.assert_frame_equal(
        found[sorted(found)].astype(object), expected.loc[given.index, sorted(found)].astype(object)
    )
    shares = model.predict_probability(given)
    theirs = directed.predict_probability(given)
    assert set(shares) == set(theirs) and shares.index.equals(given.index)
    np.testing.assert_allclose(shares[theirs.columns], theirs, atol=1e-9)


def test_missing_cells_are_predicted_with_what_lacks(model, rows):
    given = rows.drop(columns="d").head(5).copy()
    given.iloc[2, given.columns.get_loc("a")] = None
    found = model.predict(given)
    joint = model.query(["a", "d"], given.iloc[2].drop("a").to_dict())
    a, d = np.unravel_index(joint.values.argmax(), (2, 2))
    assert found.iloc[2][["a", "d"]].tolist() == [STATES["a"][a], STATES["d"][d]]
    known = given.drop(index=given.index[2])
    pd.testing.assert_frame_equal(found.loc[known.index, list(given)], known)
    assert pd.isna(given.iloc[2]["a"])


@pytest.mark.parametrize("ask", ["predict", "predict_probability"])
def test_frames_of_polars_are_predicted_too(model, rows, ask):
    given = rows.drop(columns=["a", "d"]).reset_index(drop=True)
    given.iloc[2, given.columns.get_loc("b")] = None
    pd.testing.assert_frame_equal(getattr(model, ask)(pl.from_pandas(given)), getattr(model, ask)(given))


def test_numbers_are_read_and_predicted_as_cells():
    found = network(Schema({"age": Number(0, 90, cuts=[30, 60], missing="drop"), "c": ["no", "yes"]}), (("age", "c"),))
    data = pd.DataFrame({"age": [12, 45.0, 88]}, index=[7, 8, 9])
    chosen = found.predict(data)
    assert chosen.index.tolist() == [7, 8, 9] and chosen["age"].tolist() == [12, 45, 88]
    assert chosen["c"].tolist() == found.predict_proba(data, "c").idxmax(axis=1).tolist()
    assert set(found.predict(pd.DataFrame({"c": ["no", "yes"]}))["age"]) <= set(found.states["age"])


def test_what_cannot_be_stays_missing():
    cliques = Cliques(("a", "c", "d"), (2, 2, 2), (("a", "c"), ("c", "d")))
    theta = np.zeros(8)
    theta[:2] = -np.inf  # a = x has no c
    schema = Schema({name: STATES[name] for name in ("a", "c", "d")})
    found = MarkovNetwork.from_log_linear(LogLinearModel(cliques, theta), nx.Graph([("a", "c"), ("c", "d")]), schema)
    data = pd.DataFrame({"a": ["x", "y"], "d": ["p", "q"]})
    told = found.predict(data)["c"].tolist()
    assert told[0] is None and told[1] in STATES["c"]
    assert found.predict(data[1:])["c"].dtype == pd.Series(STATES["c"]).dtype
    assert found.predict_probability(data).isna().all(axis=1).tolist() == [True, False]


@pytest.mark.parametrize("ask", ["predict", "predict_probability"])
@pytest.mark.parametrize(
    ("data", "error", "told"),
    [
        (pd.DataFrame({name: [] for name in STATES}), ValueError, "data has all variables"),
        (pd.DataFrame({"a": ["x"], "e": ["x"]}), ValueError, "data has the column 'e'"),
        (pd.DataFrame({"a": ["z"]}), ValueError, "data has 'z' in the column 'a'"),
        ({"a": ["x"]}, TypeError, "data is a dict"),
    ],
    ids=["nothing lacks", "column", "state", "no frame"],
)
def test_refusals(model, ask, data, error, told):
    with pytest.raises(error, match=told):
        getattr(model, ask)(data)


@pytest.fixture(scope="module")
def asked():
    model = made_up()
    return model, joint(model)


class TestLevels:
    """Columns of levels are known, and levels predicted: by sums over all leaves."""

    def test_a_level_is_known_and_a_target(self, asked):
        model, rows = asked
        frame = pd.DataFrame(
            {"state": ["CA", "NV", None, "CA"], "chapter": ["E", "I", "I", None], "race": list("aabb")}
        )
        for target in ("tract", "county", "icd"):
            found = model.predict_proba(frame, target)
            for k, record in enumerate(frame.to_dict("records")):
                same = np.logical_and.reduce([rows[n] == v for n, v in record.items() if isinstance(v, str)])
                expected = rows["p"][same].groupby(rows[target][same]).sum()
                np.testing.assert_allclose(found.loc[k, expected.index], expected / expected.sum(), atol=1e-9)
        with pytest.raises(ValueError, match=r"pass one of .*'county'"):
            model.predict_proba(frame, "nation")

    def test_lacking_leaves_are_the_most_likely_of_their_level(self, asked, monkeypatch):
        model, rows = asked
        frame = pd.DataFrame({"county": ["c1", "c4", "unknown", "c2"], "icd": ["E11", "I10", "I11", None]})
        filled = model.predict(frame)
        for _, record in filled.iterrows():
            known = (
                {"county": record["county"]} if record.name == 3 else {"county": record["county"], "icd": record["icd"]}
            )
            same = rows[np.logical_and.reduce([rows[name] == value for name, value in known.items()])]
            best = same.loc[same["p"].idxmax()]
            assert (record["tract"], record["race"], record["icd"]) == (best["tract"], best["race"], best["icd"])
        several = pd.DataFrame({"county": [None, "c1"], "state": ["CA", None], "icd": ["I10", None]})
        tried = model.predict(several)
        assert tried["county"][0] == COUNTY[tried["tract"][0]] and tried["state"].tolist() == ["CA", "NV"]
        monkeypatch.setattr("pgmpy_dp.models.prediction._FEW", 0)
        pd.testing.assert_frame_equal(model.predict(several), tried)
        pd.testing.assert_frame_equal(model.predict(frame), filled)
        told = model.predict_probability(frame[["county"]])
        assert told.filter(like="tract_").shape == (4, 13) and told["tract_t1"][0] == pytest.approx(
            rows["p"][rows["tract"] == "t1"].sum() / rows["p"][rows["county"] == "c1"].sum()
        )

    def test_the_leaf_counts_where_both_are_there(self, asked):
        model, _ = asked
        frame = pd.DataFrame({"icd": ["E11", "E11", None], "chapter": ["E", "I", "E"], "tract": ["t1"] * 3})
        filled = model.predict(frame)
        assert filled["race"][0] == filled["race"][1] == model.predict(frame[["tract", "icd"]])["race"][0]
        assert filled["icd"][2] in ("E11", "E12")
        with pytest.raises(ValueError, match="'XX' in the column 'chapter', which is not a state of it"):
            model.predict(frame.assign(chapter="XX"))
        with pytest.raises(ValueError, match="column 'nation', which is not a variable"):
            model.predict(frame.assign(nation="US"))
