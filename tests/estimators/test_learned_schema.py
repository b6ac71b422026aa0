"""Cells that a fit merged, and variables taken out of schemas, say what it cost to find them, wherever they go."""

from __future__ import annotations

import copy
import json
import pickle

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from pgmpy.models import DiscreteMarkovNetwork

from pgmpy_dp import (
    Budget,
    Ledger,
    MarkovNetwork,
    Number,
    PrivateTable,
    Release,
    Schema,
    discover,
    fit_in_place,
    learn,
    score_model,
)
from pgmpy_dp.estimators import NaiveMLE, PrivateMarkovChain
from pgmpy_dp.learning.privacy_record import composed
from pgmpy_dp.models.scored_model import schema_of_model
from pgmpy_dp.schema.provenance import costs_of
from pgmpy_dp.sequences.operators.sequences import PrivateSequences

FIRST, SECOND = Budget(epsilon=1.0, delta=1e-9), Budget(epsilon=0.5, delta=1e-9)
WHOLE = Budget(epsilon=9.0, delta=1e-6)
PUBLIC = Schema({"age": Number(0, 120, resolution=1), "sex": ["F", "M"]})
FOUND = Budget(epsilon=0.5, delta=1e-9)


def people(seed: int = 0, n: int = 3_000) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    sex = rng.integers(2, size=n)
    jobs = np.array(["nurse", "baker"])[rng.integers(2, size=n)]
    age = rng.integers(0, 100, n) // (1 + sex)
    return pd.DataFrame({"age": age, "sex": np.array(["F", "M"])[sex], "job": jobs, "town": jobs, "who": np.arange(n)})


@pytest.fixture(scope="module")
def ledger() -> Ledger:
    return Ledger(WHOLE)


@pytest.fixture(scope="module")
def first(ledger):
    return learn(PrivateTable(people(), PUBLIC, ledger=ledger), FIRST)


@pytest.fixture(scope="module")
def jobs(ledger):
    return discover(people(), {"job": "categories", "sex": ["F", "M"]}, FOUND, ledger=ledger)


@pytest.fixture(scope="module")
def towns(ledger):
    return discover(people(), {"town": "categories"}, FOUND, ledger=ledger)


class TestMergedCells:
    def test_they_say_what_the_fit_cost(self, first, ledger):
        (said,) = first.model_.schema.discovered
        assert said["guarantee"] == first.release_.guarantee.to_dict() and said["ledger"] == ledger.id
        assert said["asked"] == FIRST.guarantee.to_dict() and said["unit"] is None
        assert "discovered" not in first.release_.public["schema"] and first.privacy_.schema is None

    def test_what_is_learned_in_them_has_the_sum(self, first):
        second = learn(people(), SECOND, first.model_.schema)
        assert second.privacy_.guarantee == composed(second.release_.guarantee, first.release_.guarantee)
        assert f"found under {first.privacy_.words}" in str(second.privacy_)
        assert first.model_.schema.discovered[0] in second.model_.schema.discovered

    def test_copies_files_pickles_and_parts_say_it(self, first, tmp_path):
        model, release = first.model_, first.release_
        model.save(tmp_path / "model.npz")
        release.save(tmp_path / "release.npz")
        model.schema.to_json(tmp_path / "schema.json")
        loaded = MarkovNetwork.load(tmp_path / "model.npz")
        kept = Release.load(tmp_path / "release.npz")
        in_place = fit_in_place(DiscreteMarkovNetwork(), people(), _learner())
        assert costs_of(in_place.states["age"])
        said = model.schema.discovered
        number = pickle.loads(pickle.dumps(model.numbers["age"]))
        for schema in (
            *(loaded.schema, kept.schema, Schema.from_json(tmp_path / "schema.json"), model.copy().schema),
            *(copy.copy(model.schema), copy.deepcopy(model.schema), model.schema.fine(), model.schema.subset(["sex"])),
            *(pickle.loads(pickle.dumps(model)).schema, pickle.loads(pickle.dumps(release)).schema),
            *(NaiveMLE().fit_release(model, release).model_.schema, Schema(dict(model.schema))),
            *(Schema({**model.numbers, "sex": ["F", "M"]}), Schema({"age": number}), Schema({"age": number.fine()})),
        ):
            assert schema.discovered == said
        for states in (
            *(model.states, loaded.states, dict(model.schema.states), model.copy().states),
            *(model.to_bayesian_network().states, pickle.loads(pickle.dumps(model)).states),
            model.marginal(["age"]).state_names,
        ):
            assert Schema(states, texts=["age"]).discovered == said

    def test_a_ledger_that_did_not_pay_and_another_unit_are_refused(self, first, ledger):
        PrivateTable(people(), first.model_.schema, ledger=ledger)
        with pytest.raises(ValueError, match="which this ledger did not pay"):
            PrivateTable(people(), first.model_.schema, ledger=Ledger(WHOLE))
        with pytest.raises(ValueError, match="unit='who' was passed"):
            PrivateTable(people(), first.model_.schema, ledger=WHOLE, unit="who")

    def test_nothing_is_charged_twice(self, first, ledger):
        before = len(ledger.entries)
        second = learn(PrivateTable(people(), first.model_.schema, ledger=ledger), SECOND)
        assert [entry.cost for entry in ledger.entries[before:]] == [second.release_.guarantee]


def _learner():
    from pgmpy_dp.estimators import PrivateNetwork

    return PrivateNetwork(epsilon=1.0, delta=1e-9, state_names=PUBLIC)


class TestScores:
    def test_other_people_have_any_ledger_and_unit(self, first):
        others, held_out = Ledger(WHOLE), people(1)
        score = score_model(first, held_out, Budget(epsilon=0.2))
        assert score.privacy_.schema is None and score.privacy_.guarantee == score.release_.guarantee
        score_model(first, held_out, Budget(epsilon=0.2), unit="who")
        table = PrivateTable(held_out, schema_of_model(first), ledger=others)
        assert score_model(first, table, Budget(epsilon=0.2)).privacy_.schema is None
        assert len(others.entries) == 1

    def test_the_same_people_pay_for_each_once(self, first, ledger):
        table = PrivateTable(people(), first.model_.schema, ledger=ledger)
        score = score_model(first, table, Budget(epsilon=0.2))
        assert score.privacy_.guarantee == score.release_.guarantee
        assert "beside what the model cost" in str(score)

    def test_a_schema_that_is_not_the_model_s_is_paid_for(self, first, jobs):
        data = people()
        model = MarkovNetwork.from_log_linear(_coins(data), nx.Graph([("job", "sex")]), _jobs_public(jobs), None)
        score = score_model(model, data, Budget(epsilon=0.2), schema=jobs.schema)
        assert score.privacy_.schema.guarantee == jobs.guarantee

    def test_the_schema_of_a_score_says_what_the_model_s_cost(self, first, tmp_path):
        score = score_model(first, people(1), Budget(epsilon=0.2))
        score.release_.save(tmp_path / "score.npz")
        for release in (score.release_, Release.load(tmp_path / "score.npz")):
            assert first.model_.schema.discovered[0] in release.schema.discovered


def _jobs_public(jobs) -> Schema:
    return jobs.schema.as_public()


def _coins(data):
    from pgmpy_dp.inference.cliques import Cliques
    from pgmpy_dp.inference.log_linear import LogLinearModel

    return LogLinearModel(Cliques(("job", "sex"), (3, 2), (("job", "sex"),)), np.zeros(6))


class TestVariables:
    def test_they_are_taken_out_with_what_they_cost(self, jobs):
        said = jobs.schema.discovered
        for made in (
            *(Schema({**jobs.schema}), Schema({"job": jobs.schema["job"]}), Schema(dict(jobs.schema.items()))),
            *(Schema({"job": jobs.schema.states["job"], "x": [0, 1]}), PUBLIC.replaced({"sex": jobs.schema["sex"]})),
            *(Schema({"job": jobs.schema.get("job")}), Schema({"job": copy.deepcopy(jobs.schema["job"])})),
            *(Schema({"job": pickle.loads(pickle.dumps(jobs.schema["job"]))}), Schema.coerce({**jobs.schema})),
        ):
            assert made.discovered == said
        assert Schema({**jobs.schema.as_public()}).discovered == ()
        assert jobs.schema.as_public().numbers == jobs.schema.numbers
        assert type(jobs.schema.as_public()["job"]) is tuple

    def test_numbers_too(self):
        cut = discover(people(), {"age": Number(0, 120, resolution=1)}, Budget(epsilon=1.0), bins=4)
        number = cut.schema["age"]
        for made in (number, cut.schema.numbers["age"], number.with_cuts([50]), copy.copy(number)):
            assert Schema({"age": made, "sex": ["F", "M"]}).discovered == cut.schema.discovered
        assert number == cut.schema.as_public()["age"] and "discovered" not in repr(number)
        assert "discovered" not in json.dumps(number.to_dict())

    def test_several_discoveries_add_up(self, jobs, towns):
        both = jobs.schema.replaced({"sex": towns.schema["town"]})
        assert both.discovered == (*jobs.schema.discovered, *towns.schema.discovered)
        both = Schema({**jobs.schema, **towns.schema})
        assert both.discovered == (*jobs.schema.discovered, *towns.schema.discovered)
        assert Schema.from_dict(both.to_dict()).discovered == both.discovered
        model = learn(people(), SECOND, both)
        assert model.privacy_.schema.guarantee == composed(jobs.guarantee, towns.guarantee)
        assert model.privacy_.guarantee == composed(model.release_.guarantee, composed(jobs.guarantee, towns.guarantee))

    def test_one_discovery_counts_once(self, jobs):
        again = Schema({**jobs.schema, "other": jobs.schema["job"]})
        assert again.discovered == jobs.schema.discovered

    def test_a_ledger_has_to_have_paid_for_each(self, jobs, towns, ledger):
        both = Schema({**jobs.schema, **towns.schema})
        PrivateTable(people(), both, ledger=ledger)
        one = Ledger(WHOLE)
        again = discover(people(), {"job": "categories"}, FOUND, ledger=one)
        twice = again.schema.discovered_under([*again.schema.discovered, {**again.schema.discovered[0], "charge": "?"}])
        PrivateTable(people(), again.schema, ledger=one)
        with pytest.raises(ValueError, match="did not pay"):
            PrivateTable(people(), twice, ledger=one)

    def test_what_is_found_beside_a_discovered_schema_has_both(self, jobs, tmp_path):
        found = discover(people(), {**jobs.schema, "town": "categories"}, FOUND)
        assert found.schema.discovered[:1] == jobs.schema.discovered and len(found.schema.discovered) == 2
        assert found.privacy_.guarantee == composed(found.guarantee, jobs.guarantee)
        found.release_.save(tmp_path / "found.npz")
        assert Release.load(tmp_path / "found.npz").schema.discovered == found.schema.discovered
        with pytest.raises(ValueError, match="did not pay"):
            discover(people(), {**jobs.schema, "town": "categories"}, FOUND, ledger=Ledger(WHOLE))


class TestPublicTables:
    """Private data of a schema that claims to be public are not described by one that was found."""

    def test_states_that_were_found_are_refused(self, jobs, first):
        table = PrivateTable(people(), jobs.schema.as_public(), ledger=WHOLE)
        graph = nx.Graph([("job", "sex")])
        for given in (jobs.schema, Schema({**jobs.schema}, other=jobs.schema.other)):
            with pytest.raises(ValueError, match=r"state_names was found in records.*state_names=None"):
                NaiveMLE(epsilon=0.1, state_names=given).fit(graph, table)
        merged = PrivateTable(people(), first.model_.schema.as_public(), ledger=WHOLE)
        with pytest.raises(ValueError, match="state_names was found in records"):
            NaiveMLE(epsilon=0.1, state_names=first.model_.schema).fit(first.model_, merged)
        assert not table.ledger.entries and not merged.ledger.entries
        NaiveMLE(epsilon=0.1).fit(graph, table)

    def test_states_of_sequences_too(self, jobs):
        said = Schema({"page": ["a", "b"]}).discovered_under([{**jobs.schema.discovered[0], "unit": "user"}])
        visits = pd.DataFrame({"user": [1, 2], "sequence": ["a b", "b"]})
        data = PrivateSequences(visits, {"page": ["a", "b"]}, ledger=WHOLE)
        with pytest.raises(ValueError, match="state_names was found in records"):
            PrivateMarkovChain(epsilon=0.1, state_names=said).fit(data)

    def test_a_model_s_states_have_the_sum(self, jobs):
        model = NaiveMLE(epsilon=1.0, state_names=jobs.schema).fit(nx.Graph([("job", "sex")]), people()).model_
        again = NaiveMLE(epsilon=1.0, state_names=model.states).fit(nx.Graph([("job", "sex")]), people())
        assert again.privacy_.schema.guarantee == jobs.guarantee and again.privacy_.guarantee.epsilon == 1.5
