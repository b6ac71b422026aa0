"""Rules that released tables make probable: found where they hold, in the schema's notation; none in dense tables."""

import itertools

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from pgmpy_dp import Budget, Number, Schema, learn
from pgmpy_dp.estimators import CollectiveMAP, PrivateChowLiu, PrivateNetwork
from pgmpy_dp.learning.noisy_tables import rehearse
from pgmpy_dp.learning.options import Settings
from pgmpy_dp.learning.suggested_rules import suggested_rules
from pgmpy_dp.private.sensitive import Release

CLEAR = Budget(rho=0.02)
LEVELS = [f"level {k}" for k in range(8)]


def released(tables, schema, budget=CLEAR, seed=0):
    """Tables of made-up records, with the noise of a seed."""
    settings = Settings(scopes=tuple(tables), noise="auto", weights=None, max_cells=10**6, fine_share=0.1)
    return rehearse(list(tables.values()), schema, settings, budget, np.random.default_rng(seed))


@pytest.mark.parametrize("budget", [CLEAR, Budget(epsilon=0.2)])
def test_a_functional_dependency_is_said_as_implications(budget):
    schema = Schema({"level": LEVELS, "years": Number(0, 7, bins=8, resolution=1, missing="drop")})
    counts = np.diag(np.linspace(300, 1500, 8)).astype(int)
    found = suggested_rules(released({("level", "years"): counts}, schema, budget))
    rules = [one.rule for one in found]
    assert 'level = "level 5" -> years = 5' in rules and len(rules) <= 16
    assert sum(" -> " in rule for rule in rules) >= 6
    obeys = schema.replaced({}, rules)
    forbidden = {(i, j) for box in obeys.zeros for i, j in itertools.product(box["level"], box["years"])}
    assert forbidden <= {(i, j) for i in range(8) for j in range(8) if i != j} and len(forbidden) > 40


def test_few_empty_cells_are_suggested_where_noise_allows_it_and_their_bound_holds():
    schema = Schema({"relationship": ["Husband", "Wife", "Other"], "sex": ["Female", "Male"]})
    counts = np.array([[1, 9000], [3000, 3], [6000, 5500]])
    (first, second) = suggested_rules(released({("relationship", "sex"): counts}, schema))
    assert first.rule == "relationship = Husband & sex = Female" and second.rule == "relationship = Wife & sex = Male"
    for one in (first, second):
        assert one.probability > 0.95 and one.at_most < 60 and one.independent > 1000
    weak = released({("relationship", "sex"): counts}, schema, Budget(rho=1e-7))
    assert suggested_rules(weak) == []


def test_dense_tables_get_no_rule_about_a_cell_with_many_in_it():
    schema = Schema({"a": list(range(6)), "b": list(range(6))})
    for seed in range(30):
        shares = np.random.default_rng(seed).dirichlet(np.full(36, 1.0)).reshape(6, 6)
        counts = (shares * 20_000).astype(int)
        independent = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / counts.sum()
        for one in suggested_rules(released({("a", "b"): counts}, schema, seed=seed)):
            at = list(one.cells)
            assert (counts.ravel()[at] < independent.ravel()[at] / 16).all()
            assert counts.ravel()[at].sum() < 1.5 * one.at_most


def test_what_a_rule_already_forbids_is_not_suggested_again():
    schema = Schema({"sex": ["F", "M"], "job": ["a", "b"], "x": [0, 1]}, impossible=["sex = M & job = b"])
    tables = {("sex", "job"): np.array([[500, 500], [1000, 0]]), ("job", "x"): np.array([[750, 750], [250, 250]])}
    assert suggested_rules(released(tables, schema)) == []


def test_rules_about_numbers_are_read_by_the_schema_whose_numbers_are_undivided():
    rng = np.random.default_rng(0)
    age = rng.integers(0, 100, 20_000)
    frame = pd.DataFrame({"age": age, "married": np.where((age >= 20) & (rng.random(20_000) < 0.7), "yes", "no")})
    declared = {"age": Number(0, 99, resolution=1, missing="drop"), "married": ["no", "yes"]}
    learned = learn(frame, Budget(rho=0.1), declared)
    found = learned.suggest_impossible()
    assert list(found) == ["rule", "probability", "at_most", "independent"]
    (rule,) = [rule for rule in found["rule"] if rule.startswith("married = yes & age < ")]
    schema = Schema(declared, impossible=found["rule"])
    again = PrivateNetwork(state_names=schema).fit_release(learned.release_)
    assert again.model_.query("married", {"age": "3"}).values[1] == 0.0
    assert rule in again.model_.schema.impossible and again.suggest_impossible().empty
    assert again.privacy_.guarantee == learned.privacy_.guarantee


def test_confirmed_rules_are_obeyed_by_every_learner_and_kept_in_files(tmp_path):
    rng = np.random.default_rng(1)
    sex = rng.choice(["F", "M"], 4000)
    frame = pd.DataFrame({"sex": sex, "pregnant": np.where((sex == "F") & (rng.random(4000) < 0.5), "yes", "no")})
    states = {"sex": ["F", "M"], "pregnant": ["yes", "no"]}
    rule = "sex = M & pregnant = yes"
    learned = learn(frame, Budget(rho=0.1), states)
    assert learned.suggest_impossible()["rule"].tolist() == [rule]
    schema = Schema(states, impossible=[rule])
    tree = PrivateChowLiu(rho=0.1, state_names=states).fit(frame)
    again = [
        PrivateNetwork(state_names=schema).fit_release(learned.release_),
        PrivateChowLiu(state_names=schema).fit_release(tree.release_),
        CollectiveMAP(state_names=schema).fit_release(nx.Graph([("sex", "pregnant")]), learned.release_),
    ]
    for one in again:
        assert one.model_.marginal(["sex", "pregnant"]).values[1, 0] == 0.0 and one.suggest_impossible().empty
    assert (again[0].posterior(5, 0).draws.query(["sex", "pregnant"])[:, 1, 0] == 0).all()
    again[0].release_.save(tmp_path / "release.npz")
    kept = PrivateNetwork().fit_release(Release.load(tmp_path / "release.npz"))
    assert kept.model_.schema.impossible == (rule,)
    assert learned.release_.schema.impossible == ()
