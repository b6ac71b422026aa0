"""pgmpy's own model learned in place by every learner of such models; what look-ups find, and which bases there are."""

from __future__ import annotations

import copy
import pickle

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from pgmpy.causal_discovery._base import _BaseCausalDiscovery
from pgmpy.ci_tests import get_ci_test
from pgmpy.factors.discrete import TabularCPD
from pgmpy.inference import VariableElimination
from pgmpy.metrics import _BaseSupervisedMetric, get_metrics
from pgmpy.models import DiscreteBayesianNetwork, DiscreteMarkovNetwork
from pgmpy.parameter_estimator import BaseParameterEstimator, DiscreteMLE
from skbase.lookup import all_objects

from pgmpy_dp import Budget, MarkovNetwork, PrivateTable, Schema, fit_in_place, list_estimators, list_metrics
from pgmpy_dp import estimators as E

STATES = {name: [0, 1] for name in "abc"}
RNG = np.random.default_rng(0)
_A = RNG.integers(0, 2, 3000)
DATA = pd.DataFrame({"a": _A, "b": np.where(RNG.random(3000) < 0.9, _A, 1 - _A), "c": RNG.integers(0, 2, 3000)})
BUDGET = {"epsilon": 5.0, "delta": 1e-4}
GIVEN = [E.CollectiveEM, E.CollectiveMAP, E.NaiveMLE, E.PrivateSGD]
FINDING = [E.PrivateBinaryMRF, E.PrivateIsing, E.PrivatePairwise, E.PrivateNetwork, E.PrivateChowLiu]
WIDTH = {kind: {"width": 3.0} for kind in FINDING[:3]} | {E.PrivateSGD: {"n_steps": 60}, E.CollectiveEM: {"n_iter": 5}}
KINDS = [DiscreteMarkovNetwork, MarkovNetwork]


def made(kind: type, **options):
    return kind(**BUDGET, **WIDTH.get(kind, {}), **{"state_names": STATES, **options})


def given(kind: type = DiscreteMarkovNetwork, *edges: str) -> DiscreteMarkovNetwork:
    model = kind([tuple(edge) for edge in edges])
    model.add_nodes_from("abc")
    return model


LEARNERS = [(learner, DiscreteMarkovNetwork) for learner in [*GIVEN, *FINDING]]
LEARNERS += [(learner, MarkovNetwork) for learner in (E.NaiveMLE, E.PrivateNetwork)]


@pytest.mark.parametrize(("learner", "kind"), LEARNERS, ids=lambda kind: kind.__name__)
def test_the_users_own_object_is_learned(learner, kind):
    model = given(kind, *(["ab"] if learner in GIVEN else []))
    estimator = made(learner)
    assert fit_in_place(model, DATA, estimator) is model and type(model) is kind
    assert model.check_model() and {*map(frozenset, model.edges)} == {*map(frozenset, estimator.model_.edges)}
    for own, learned in zip(model.factors, estimator.model_.factors, strict=True):
        assert own is not learned and own == learned
    answer = VariableElimination(model).query(["a", "b"], show_progress=False)
    np.testing.assert_allclose(answer.values, pd.crosstab(DATA["a"], DATA["b"], normalize=True), atol=0.03)
    privacy = model.privacy if kind is MarkovNetwork else model.graph["privacy"]
    assert privacy == estimator.privacy_


@pytest.mark.parametrize("learner", GIVEN, ids=lambda kind: kind.__name__)
def test_a_bayesian_network_gets_cpds_on_its_own_edges(learner):
    model = DiscreteBayesianNetwork(["ab", "cb"])
    model.add_cpds(TabularCPD("a", 2, [[0.5], [0.5]]))  # of earlier: replaced, and nothing is printed
    estimator = made(learner)
    assert fit_in_place(model, DATA, estimator) is model and model.check_model()
    assert list(model.edges) == [("a", "b"), ("c", "b")] and model.graph["privacy"] == estimator.privacy_
    for own, learned in zip(model.get_cpds(), estimator.parameters_, strict=True):
        assert own is not learned and own == learned
    np.testing.assert_allclose(model.get_cpds("b").values[:, :, 0], [[0.9, 0.1], [0.1, 0.9]], atol=0.05)


@pytest.mark.parametrize("learner", GIVEN, ids=lambda kind: kind.__name__)
def test_pgmpys_own_fit_of_a_bayesian_network_takes_our_estimators(learner):
    """Shape and types are pgmpy's: what is learned is what its own estimators would have put there, but for noise."""
    estimator, model = made(learner), DiscreteBayesianNetwork(["ab", "cb"])
    assert model.fit(DATA, estimator=estimator) is model and model.check_model()
    assert estimator.state_names == STATES and model.get_cpds() == estimator.parameters_
    plain = DiscreteBayesianNetwork(["ab", "cb"]).fit(DATA, estimator=DiscreteMLE(state_names=STATES))
    for name in "abc":
        ours, theirs = model.get_cpds(name), plain.get_cpds(name)
        assert type(ours) is type(theirs) and ours.state_names == theirs.state_names
        assert ours.variables == theirs.variables and ours.values.dtype == theirs.values.dtype
        np.testing.assert_allclose(ours.values, theirs.values, atol=0.05)
    drawn = model.simulate(200, seed=0, show_progress=False)
    assert {*drawn.columns} == {*"abc"} and {*np.unique(drawn)} <= {0, 1}
    assert model.predict(DATA[["a", "c"]].head(20), n_jobs=1)["b"].tolist() == DATA["a"].head(20).tolist()
    assert model.predict_probability(DATA[["a", "c"]].head(3)).shape == (3, 2)


def test_a_markov_network_simulates_as_pgmpys_models_do():
    model = made(E.NaiveMLE).fit(given(MarkovNetwork, "ab"), DATA).model_
    drawn = model.simulate(n_samples=300, evidence={"a": 1}, seed=0)
    assert drawn.shape == (300, 3) and set(drawn["a"]) == {1} and 0.8 < drawn["b"].mean() < 1
    pd.testing.assert_frame_equal(drawn, model.simulate(300, evidence={"a": 1}, seed=0))
    assert len(model.simulate()) == 10


def test_these_are_all_learners_of_such_models():
    learners = {
        *list_estimators(task="parameters", data_kind="discrete"),
        *list_estimators(task="parameters and graph"),
    }
    assert learners | {E.PrivateNetwork, E.PrivateChowLiu} == {*GIVEN, *FINDING}


def test_the_edges_that_rules_need_come_with_the_factors():
    schema = Schema(STATES, impossible=["b = 0 -> c = 0"])
    for kind in KINDS:
        model = fit_in_place(given(kind, "ab"), DATA, E.NaiveMLE(epsilon=5.0, state_names=schema))
        assert model.has_edge("b", "c") and model.check_model()


def table() -> PrivateTable:
    return PrivateTable(DATA, STATES, ledger=Budget(**BUDGET))


@pytest.mark.parametrize(
    ("model", "estimator", "error", "message"),
    [
        (nx.Graph(["ab"]), E.NaiveMLE(epsilon=1.0), TypeError, "has no factors; pass a DiscreteMarkovNetwork"),
        (given(), E.NaiveMLE, TypeError, "must be an instance"),
        (given(), made(E.EdgeVoting, width=1.0, min_edge_weight=0.4), TypeError, "learns no parameters"),
        (given(), made(E.PrivateChowLiu, fit_parameters=False), TypeError, "learns no parameters"),
        (given(), E.PrivateGraphicalLasso(row_norm=1.0, **BUDGET), TypeError, "learns no parameters"),
        (given(DiscreteMarkovNetwork, "ab"), made(E.PrivateNetwork), ValueError, r"edges \[\('a', 'b'\)\].*finds"),
        (DiscreteBayesianNetwork(["ab"]), made(E.PrivateNetwork), TypeError, r"model is directed; use.*given graph"),
        (DiscreteBayesianNetwork(["ax"]), made(E.NaiveMLE, state_names=None), ValueError, r"variables \['x'\]"),
        (DiscreteMarkovNetwork(["ax"]), made(E.PrivateIsing), ValueError, r"nodes \['x'\], which the schema"),
    ],
)
def test_what_does_not_go_together_is_refused_before_anything_is_spent(model, estimator, error, message):
    private, before = table(), (list(model.nodes), list(model.edges))
    with pytest.raises(error, match=message):
        fit_in_place(model, private, estimator)
    assert private.ledger.entries == () and before == (list(model.nodes), list(model.edges))
    with pytest.raises(ValueError, match="sample_weight"):
        fit_in_place(given(), private, made(E.PrivateIsing, state_names=None), sample_weight=np.ones(3000))


def test_edges_that_the_estimator_was_told_stay():
    model = given(DiscreteMarkovNetwork, "ab", "bc")
    fit_in_place(model, DATA, made(E.PrivateIsing, graph=model))
    assert model.has_edge("a", "b") and model.check_model()
    model = given(DiscreteMarkovNetwork, "bc")
    fit_in_place(model, DATA, made(E.PrivateNetwork, required_edges=[("b", "c")]))
    assert model.has_edge("b", "c")


CHANGED = {
    "fit": lambda model: model.fit(DATA, estimator=DiscreteMLE(state_names=STATES)),
    "fit_update": lambda model: model.fit_update(DATA),
    "ours": lambda model: model.fit(DATA, estimator=E.NaiveMLE(epsilon=0.01, state_names=STATES)),
    "add_cpds": lambda model: model.add_cpds(TabularCPD("a", 2, [[0.5], [0.5]], state_names={"a": [0, 1]})),
    "remove_node": lambda model: model.remove_node("c"),
    "values": lambda model: model.get_cpds("a").values.__setitem__(0, 0.5),
    "states": lambda model: model.get_cpds("a").state_names.update(a=[1, 0]),
}


@pytest.mark.parametrize("change", CHANGED.values(), ids=CHANGED)
def test_the_record_says_that_pgmpy_changed_the_model(change):
    """And a copy has its own record; the next fit in place sets the new one."""
    model, estimator = DiscreteBayesianNetwork(["ab", "cb"]), made(E.NaiveMLE)
    fit_in_place(model, DATA, estimator)
    copies = copy.deepcopy(model), pickle.loads(pickle.dumps(model))
    assert str(model.graph["privacy"]) == str(estimator.privacy_)
    change(model)
    changed = f"NO GUARANTEE: the model was changed after it was learned with {estimator.privacy_}"
    assert str(model.graph["privacy"]) == changed
    for own in copies:
        assert str(own.graph["privacy"]) == str(estimator.privacy_)
        own.remove_cpds("a")
        assert str(own.graph["privacy"]) == changed
    if "c" in model:
        fit_in_place(model, DATA, E.NaiveMLE(epsilon=0.5, state_names=STATES))
        assert str(model.graph["privacy"]).startswith("0.5-DP")


@pytest.mark.parametrize("change", ["add_factors", "remove_factors"])
def test_so_does_that_of_pgmpys_markov_network(change):
    model = fit_in_place(given(DiscreteMarkovNetwork, "ab"), DATA, made(E.NaiveMLE))
    getattr(model, change)(model.factors[0])
    assert str(model.graph["privacy"]).startswith("NO GUARANTEE")
    assert model.graph["privacy"].told()["guarantee"] is None and "was changed" in model.graph["privacy"].unprotected


def test_a_prior_that_was_learned_in_place_is_counted_and_a_changed_one_refused():
    first = E.NaiveMLE(epsilon=0.5, state_names=STATES)
    prior, ours = (fit_in_place(kind(["ab", "cb"]), DATA, first) for kind in (DiscreteBayesianNetwork, MarkovNetwork))
    learner, private = E.CollectiveMAP(epsilon=1.0, state_names=STATES, prior=prior), table()
    assert str(learner.fit(given(MarkovNetwork, "ab"), DATA).privacy_.total) == "1.5-DP"
    prior.fit_update(DATA)
    with pytest.raises(ValueError, match=r"the model was changed after it was learned with 0\.5-DP under add_remove"):
        learner.set_params(state_names=None).fit(given(MarkovNetwork, "ab"), private)
    ours.factors[0].values *= 2
    with pytest.raises(ValueError, match=r"the model was changed.*fit it again, or set its privacy"):
        learner.set_params(prior=ours).fit(given(MarkovNetwork, "ab"), private)
    assert private.ledger.entries == ()


def test_a_failed_fit_leaves_the_model_as_it_was(monkeypatch):
    model = fit_in_place(given(), DATA, made(E.PrivateIsing))
    before = (list(model.edges), [factor.values.tobytes() for factor in model.factors], model.graph["privacy"])
    monkeypatch.setattr(E.PrivateNetwork, "_learned", lambda *_, **__: 1 / 0)
    model.remove_edges_from(list(model.edges))
    with pytest.raises(ZeroDivisionError):
        fit_in_place(model, DATA, made(E.PrivateNetwork))
    assert before[1:] == ([factor.values.tobytes() for factor in model.factors], model.graph["privacy"])


def test_a_fit_of_pgmpys_own_class_does_not_get_in_the_way(monkeypatch):
    """PR #3571 adds one by maximum likelihood; one that takes estimators, as Bayesian networks do, takes ours."""

    def fit(self, data, estimator=None, sample_weight=None):
        if estimator is None:
            raise AssertionError("exact tables of the records")
        estimator.fit(self, data, sample_weight=sample_weight)
        self.add_factors(*estimator.parameters_)
        return self

    monkeypatch.setattr(DiscreteMarkovNetwork, "fit", fit, raising=False)
    for learner in (E.NaiveMLE, E.PrivateSGD):
        own = given(DiscreteMarkovNetwork, "ab").fit(DATA, made(learner))
        assert own.check_model() and len(own.factors) == 2
    assert fit_in_place(given(), DATA, made(E.PrivateIsing)).check_model()
    assert MarkovNetwork(["ab"]).fit(DATA, made(E.NaiveMLE)).privacy is not None
    with pytest.raises(TypeError):  # there is no default budget, so no fit without an estimator
        MarkovNetwork(["ab"]).fit(DATA)


# -- look-ups --------------------------------------------------------------------------------------


def found(kind: type | None, package: str) -> set[type]:
    return set(all_objects(object_types=kind, package_name=package, return_names=False, suppress_import_stdout=False))


def test_what_all_objects_finds_here():
    assert found(BaseParameterEstimator, "pgmpy_dp") == {*GIVEN, E.PrivateLinearGaussian}
    learners = {*FINDING, E.EdgeVoting, E.StableStructure}
    assert {kind for kind in found(None, "pgmpy_dp") if issubclass(kind, _BaseCausalDiscovery)} == learners
    assert found(_BaseSupervisedMetric, "pgmpy_dp") == {*list_metrics()}


def test_estimators_that_pgmpy_has_no_base_for():
    without = {
        kind.__name__: kind.get_class_tag("task")
        for kind in list_estimators()
        if not issubclass(kind, BaseParameterEstimator | _BaseCausalDiscovery)
    }
    assert without == {
        "PrivateBlockModel": "communities",
        "PrivateGaussianMixture": "clusters",
        "PrivateGraphicalLasso": "covariance",
        "PrivateLogisticRegression": "classes",
        "PrivateMarkovChain": "sequences",
    }


def test_pgmpys_look_ups_see_its_own_packages_only():
    """Where this fails, pgmpy has a hook: use it, and change docs/pgmpy.md."""
    assert not {*list_metrics()} & {*get_metrics()}
    assert not any(kind.__module__.startswith("pgmpy_dp") for kind in found(None, "pgmpy.parameter_estimator"))
    with pytest.raises(ValueError, match="Unknown CI test"):
        get_ci_test("edge_f1", data=DATA)
