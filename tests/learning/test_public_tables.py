"""Public tables: exact in the model and its draws, refused before anything is spent, and said with every guarantee."""

from __future__ import annotations

import html
import json
import re
import warnings
from itertools import product

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pgmpy_dp import (
    Budget,
    BudgetExceeded,
    ContradictedTablesWarning,
    Ledger,
    Levels,
    MarkovNetwork,
    Number,
    PrivateTable,
    Release,
    Schema,
    learn,
    write_evidence,
)
from pgmpy_dp.estimators import CollectiveMAP, NaiveMLE, PrivateNetwork
from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.learning.maximum_a_posteriori import collective_map
from pgmpy_dp.learning.noisy_marginals import NoisyMarginals
from pgmpy_dp.learning.privacy_record import Privacy
from pgmpy_dp.learning.proportional_fitting import ProportionalFit
from pgmpy_dp.learning.public_tables import PublicTables
from pgmpy_dp.private.accounting import zcdp_to_approx
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.guarantee import ZCDP, ApproxDP, PureDP, ReservedZCDP
from pgmpy_dp.private.sensitive import Noise
from pgmpy_dp.verbs import refit

STATES = {"sex": ["F", "M"], "age": ["young", "middle", "old"], "ill": [False, True], "job": ["a", "b", None]}
GRAPH = nx.Graph([("sex", "ill"), ("ill", "age"), ("age", "job")])
SAID = "that the caller says were not computed from these records"


def codes(n: int, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 3, n)
    ill = (rng.random(n) < (0.1 + 0.2 * age)).astype(int)
    return {"sex": rng.integers(0, 2, n), "age": age, "ill": ill, "job": rng.integers(0, 3, n)}


def records(n: int = 3000, seed: int = 0) -> pd.DataFrame:
    return pd.DataFrame({name: [STATES[name][k] for k in code] for name, code in codes(n, seed).items()})


def table(*names: str) -> np.ndarray:
    made, drawn = np.zeros([len(STATES[name]) for name in names], dtype=int), codes(3000, 0)
    np.add.at(made, tuple(drawn[name] for name in names), 1)
    return made


PUBLIC = {("sex", "age"): table("sex", "age"), "job": table("job")}
ELSEWHERE = {"public": PUBLIC, "public_from": "elsewhere"}


# -- proportional fitting ------------------------------------------------------------------------------------


def brute_force(joint: np.ndarray, margins: dict[str, np.ndarray]) -> np.ndarray:
    for _ in range(2000):
        for scope, wanted in margins.items():
            axes = ["abcd".index(name) for name in scope]
            now = np.einsum(joint, range(4), axes)
            ratio = np.divide(wanted, now, out=np.zeros_like(now), where=now > 0)
            joint = np.einsum(joint, range(4), ratio, axes, range(4))
    return joint


@given(st.integers(0, 2**32 - 1), st.sampled_from(["ab", "ab cd", "ab bd", "a b c d", "ab bc cd", "ac bd ab", "abd"]))
@settings(max_examples=25, deadline=None)
def test_the_fit_is_that_of_the_whole_joint_table(seed, named):
    rng, scopes = np.random.default_rng(seed), named.split()
    cliques = Cliques(tuple("abcd"), (2, 3, 2, 2), (("a", "b"), ("b", "c"), ("c", "d")))
    theta = rng.normal(size=cliques.n_cells)
    population = rng.dirichlet(np.full(24, 0.5)).reshape(2, 3, 2, 2)
    population[rng.random(population.shape) < 0.1] = 0
    population /= population.sum()
    margins = {scope: np.einsum(population, range(4), ["abcd".index(name) for name in scope]) for scope in scopes}
    (joint,) = LogLinearModel(cliques, theta).marginals_of([tuple("abcd")])
    fit = ProportionalFit(cliques, {tuple(scope): wanted for scope, wanted in margins.items()})
    made, errors = fit(theta)
    (fitted,) = LogLinearModel(fit.cliques, made).marginals_of([tuple("abcd")])
    assert max(errors.values()) < 1e-6
    np.testing.assert_allclose(fitted, brute_force(joint, margins), atol=1e-6)
    for scope, wanted in margins.items():
        now = np.einsum(fitted, range(4), ["abcd".index(name) for name in scope])
        assert (now[wanted == 0] == 0).all()  # structural


def test_tables_that_decompose_take_three_sweeps(monkeypatch):
    monkeypatch.setattr("pgmpy_dp.learning.proportional_fitting._MOST_SWEEPS", 3)
    cliques = Cliques(tuple("abcd"), (2, 3, 2, 2), (("a", "b"), ("b", "c"), ("c", "d")))
    population = np.random.default_rng(0).dirichlet(np.ones(24)).reshape(2, 3, 2, 2)
    margins = {tuple(s): np.einsum(population, range(4), ["abcd".index(v) for v in s]) for s in ("ab", "bc", "cd")}
    assert max(ProportionalFit(cliques, margins)(np.zeros(cliques.n_cells))[1].values()) < 1e-9


# -- what is passed ------------------------------------------------------------------------------------------


def test_each_form_of_a_table_is_the_same():
    counts, schema = PUBLIC["sex", "age"], Schema(STATES)
    cells = [(s, a, int(counts[i, j])) for i, s in enumerate(STATES["sex"]) for j, a in enumerate(STATES["age"])]
    shuffled = [cells[k] for k in np.random.default_rng(0).permutation(len(cells))]
    frame = pd.DataFrame(shuffled, columns=["sex", "age", "count"])
    jobs = {"a": 5, "b": 7, None: 2}
    forms = [counts, counts.tolist(), {(s, a): n for s, a, n in shuffled}, frame, frame[["age", "count", "sex"]]]
    forms += [frame.set_index(["sex", "age"])["count"], pl.from_pandas(frame), frame.astype(str)]
    for form in forms:
        read = PublicTables.read({("sex", "age"): form}, "elsewhere", schema)
        assert (read.counts["sex", "age"] == counts).all() and read.total == 3000
    turned = PublicTables.read({("age", "sex"): {(a, s): n for s, a, n in cells}}, "elsewhere", schema)
    assert (turned.counts["age", "sex"] == counts.T).all()
    of_jobs = [
        jobs,
        pd.Series([5, 7, 2], index=["a", "b", np.nan]),
        pd.DataFrame({"job": ["b", "", "a"], "n": ["7", "2", "5"]}),
        pd.DataFrame({"job": pd.array(["a", "b", None], dtype="string"), "n": [5, 7, 2]}),
    ]
    for form in of_jobs:
        assert PublicTables.read({"job": form}, "elsewhere", schema).counts["job",].tolist() == [5, 7, 2]


BAD = [
    ({"public": PUBLIC}, "public_from=None says not where the public tables are from; pass public_from='elsewhere'"),
    ({"public_from": "elsewhere"}, "public is a NoneType; pass"),
    ({**ELSEWHERE, "public_from": "these records"}, "adjacency='add_remove', unit=None, and exact tables of these rec"),
    ({**ELSEWHERE, "public_from": "there"}, "public_from='there' is no origin"),
    ({**ELSEWHERE, "public": {}}, "public is a dict; pass"),
    ({**ELSEWHERE, "public": [1, 2]}, "public is a list; pass"),
    ({**ELSEWHERE, "public": {"town": [1, 2]}}, "public has 'town'; name different variables of the model"),
    ({**ELSEWHERE, "public": {("sex", "sex"): [[1, 2], [3, 4]]}}, "name different variables"),
    ({**ELSEWHERE, "public": {"sex": [1, 2, 3]}}, r"has shape \(3,\); pass \(2,\)"),
    ({**ELSEWHERE, "public": {"sex": [1, -2]}}, "the public table of sex has negative or broken counts"),
    ({**ELSEWHERE, "public": {"sex": [1, 2.5]}}, "negative or broken"),
    ({**ELSEWHERE, "public": {"sex": [1, np.inf]}}, "negative or broken"),
    ({**ELSEWHERE, "public": {"sex": [1, np.nan]}}, "public lacks 1 of the 2 counts of sex"),
    ({**ELSEWHERE, "public": {"sex": {"F": 3}}}, "public lacks 1 of the 2 counts of sex; write 0 where nobody can be"),
    ({**ELSEWHERE, "public": {"sex": {"F": 3, "X": 1}}}, "row 2 of the public table of sex has no state of each"),
    ({**ELSEWHERE, "public": {"sex": {"F": 3, "M": "many"}}}, "row 2 of the public table of sex has no number"),
    ({**ELSEWHERE, "public": {"sex": pd.DataFrame({"sex": list("FMF"), "n": [1, 2, 3]})}}, "row 3 .* an earlier one"),
    ({**ELSEWHERE, "public": {"sex": pd.DataFrame({"sex": list("FM")})}}, "needs a column for each, and one of counts"),
    ({**ELSEWHERE, "public": {"sex": [0, 0]}}, r"sums \{'sex': 0\}; pass one positive sum"),
    ({**ELSEWHERE, "public": {"sex": [1, 2], "ill": [2, 2]}}, r"sums \{'sex': 3, 'ill': 4\}"),
    ({**ELSEWHERE, "public": {("sex", "ill"): [[1, 2], [3, 4]], "ill": [5, 5]}}, "no model has all public tables"),
]


@pytest.mark.parametrize(("options", "message"), BAD, ids=[message[:40] for _, message in BAD])
@pytest.mark.parametrize("graph", [None, GRAPH], ids=["learned", "given"])
def test_what_cannot_be_is_refused_before_anything_is_spent(options, message, graph):
    private = PrivateTable(records(50), STATES, ledger=Budget(epsilon=1.0, delta=1e-9))
    with pytest.raises((TypeError, ValueError), match=message):
        learn(private, Budget(epsilon=0.5, delta=1e-9), graph=graph, **options)
    assert private.ledger.entries == ()


def test_no_cell_of_what_was_passed_is_quoted():
    """It might be the records, by mistake."""
    frame = records(20).assign(diary="NEEDLE")
    for public in ({"sex": frame[["sex", "diary"]]}, {("sex", "age"): {("NEEDLE", "x"): "NEEDLE"}}):
        with pytest.raises(ValueError) as caught:
            CollectiveMAP(epsilon=1.0, state_names=STATES, public=public, public_from="elsewhere").fit(GRAPH, frame)
        assert "NEEDLE" not in str(caught.value)


def test_rules_and_tables_must_agree():
    schema = Schema(STATES, impossible=["sex = M -> age != old"])
    fits = {("sex", "age"): [[5, 5, 5], [5, 5, 0]]}
    assert PublicTables.read(fits, "elsewhere", schema).total == 25
    with pytest.raises(ValueError, match=r"that of sex, age is off by 100 %.*rule of the schema"):
        PublicTables.read({("sex", "age"): [[5, 5, 5], [5, 5, 1]]}, "elsewhere", schema)
    with pytest.warns(ContradictedTablesWarning):
        learned = learn(records(), Budget(epsilon=5.0), schema, graph=GRAPH, public=fits, public_from="elsewhere")
    np.testing.assert_allclose(learned.model_.marginal(["sex", "age"]).values * 25, fits["sex", "age"], rtol=1e-9)


def test_what_a_fit_cannot_do_with_them_is_refused():
    numbers = Schema.coerce({**STATES, "pay": Number(0, 100)})
    with pytest.raises(ValueError, match=r"numbers without public cells"):
        PublicTables.read({"pay": [1, 2]}, "elsewhere", numbers)
    how = {"epsilon": 1.0, "delta": 1e-9, "state_names": STATES, **ELSEWHERE}
    with pytest.raises(ValueError, match="merge_rare and missing_at_random"):
        PrivateNetwork(**how, merge_rare=True).fit(records(50))
    with pytest.raises(ValueError, match=r"max_clique_cells=5"):
        PrivateNetwork(**how, max_clique_cells=5).fit(records(50))
    with pytest.raises(ValueError, match=r"needs? exact inference"):
        CollectiveMAP(**how, inference="loopy").fit(GRAPH, records(50))
    for options in ({"structure": "chow-liu"}, {"graph": GRAPH, "estimator": "naive-mle"}):
        with pytest.raises(TypeError, match="public"):
            learn(records(50), Budget(epsilon=1.0), STATES, **options, **ELSEWHERE)
    with pytest.raises(TypeError, match="NaiveMLE takes no public tables"):
        learn(records(50), Budget(epsilon=1.0), STATES, graph=GRAPH, estimator=NaiveMLE(), **ELSEWHERE)


# -- what is learned -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("graph", [None, GRAPH], ids=["learned", "given"])
def test_model_draws_and_samples_have_the_tables(graph, tmp_path):
    budget = Budget(epsilon=1.0, delta=1e-9)
    learned = learn(records(), budget, STATES, graph=graph, draws=20, **ELSEWHERE)
    model = learned.model_
    np.testing.assert_allclose(model.marginal(["sex", "age"]).values * 3000, PUBLIC["sex", "age"], rtol=1e-9)
    np.testing.assert_allclose(model.marginal(["job"]).values * 3000, PUBLIC["job"], rtol=1e-9)
    assert model.has_edge("sex", "age")
    for one in (model.posterior, MarkovNetwork.load(saved(model, tmp_path)).posterior):
        interval = one.interval(["sex", "age"])
        for end in ("lower", "estimate", "upper"):
            np.testing.assert_allclose(interval[end] * 3000, PUBLIC["sex", "age"], rtol=1e-5)
        wide = one.interval(["ill"])
        assert (wide["upper"] - wide["lower"] > 1e-3).all()
    for network in (model, MarkovNetwork.load(tmp_path / "model.npz"), model.posterior.models(2)[1]):
        sample = network.sample(3000, random_state=0, method="agreeing")
        counted = pd.crosstab(sample["sex"], sample["age"]).loc[STATES["sex"], STATES["age"]].to_numpy()
        assert (counted == PUBLIC["sex", "age"]).all()
    with pytest.raises(ValueError, match="count 3000; pass n=3000"):
        model.sample(10, method="agreeing")
    with pytest.raises(ValueError, match="evidence leaves out"):
        model.sample(3000, method="agreeing", evidence={"sex": "F"})
    model.factors[0].values = model.factors[0].values * np.linspace(1, 2, model.factors[0].values.size).reshape(
        model.factors[0].values.shape
    )
    with pytest.raises(ValueError, match="no public tables"):
        model.sample(3000, method="agreeing")


def saved(model, folder):
    model.save(folder / "model.npz")
    return folder / "model.npz"


def test_the_fit_follows_tables_of_the_same_people_and_allows_for_a_sample_of_others():
    """520 records for 500: of the same people noise explains that, in all cells alike; of others chance, by shares."""
    schema = Schema({"area": ["a", "b"], "ill": [False, True]})
    tables = Cliques(schema.variables, (2, 2), (schema.variables,))
    noisy = NoisyMarginals(tables, np.array([416.0, 104.0, 384.0, 96.0]), "gaussian", np.array([5.0]), total=1000)
    ill = []
    for total in (1000, 3000):
        public = PublicTables.read({"area": [total // 2] * 2}, "elsewhere", schema)
        p = collective_map(public.beside(noisy)).model.marginal(["area", "ill"])
        ill.append(p[0, 1] / p[0].sum())
    assert ill[0] == pytest.approx(94 / 500, abs=0.002) and ill[1] == pytest.approx(0.2, abs=0.003)


def test_public_zeros_are_structural():
    counts = np.array([[900, 600, 0], [300, 200, 1000]])
    public = {"public": {("sex", "age"): counts}, "public_from": "elsewhere"}
    with pytest.warns(ContradictedTablesWarning):
        model = learn(records(), Budget(epsilon=1.0), STATES, graph=GRAPH, draws=20, **public).model_
    assert model.probability({"sex": "F", "age": "old"}) == 0.0
    assert model.posterior.interval(["sex", "age"])["upper"][0, 2] == 0.0


def test_a_refit_has_them_at_no_cost():
    learned = learn(records(), Budget(epsilon=1.0, delta=1e-9), STATES)
    for estimator in (None, "collective-map"):
        again = refit(learned.release_, estimator=estimator, **ELSEWHERE)
        np.testing.assert_allclose(again.model_.marginal("job").values * 3000, PUBLIC["job"], rtol=1e-9)
        assert SAID in str(again.privacy_) and again.privacy_.guarantee == learned.privacy_.guarantee
    assert SAID not in str(refit(again.release_).privacy_)


# -- levels --------------------------------------------------------------------------------------------------

TRACTS = [f"t{k}" for k in range(6)]
COUNTY = dict(zip(TRACTS, ["Kern", "Kern", "Clark", "Clark", "Nye", "Nye"], strict=True))
STATE = {"Kern": "CA", "Clark": "NV", "Nye": "NV"}
AREAS = Schema({"tract": Levels(TRACTS, county=COUNTY, state=STATE), "sex": ["F", "M"], "ill": ["no", "yes"]})


def people(n: int = 3000, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    tract = rng.choice(6, n, p=[0.3, 0.1, 0.1, 0.2, 0.25, 0.05])
    sex, ill = rng.random(n) < 0.4 + 0.03 * tract, rng.random(n) < 0.1 + 0.08 * tract
    return at_levels(pd.DataFrame({"tract": np.array(TRACTS)[tract], "sex": np.where(sex, "M", "F"), "ill": ill}))


def at_levels(frame: pd.DataFrame) -> pd.DataFrame:
    county = frame["tract"].map(COUNTY)
    return frame.assign(ill=np.where(frame["ill"], "yes", "no"), county=county, state=county.map(STATE))


BY_LEVEL = [
    ["county"],
    ["county,sex"],
    ["tract", "county,sex"],
    ["county,sex", "state,ill"],
    ["state,sex,ill", "tract", "county,sex"],
]


def of_level(frame: pd.DataFrame, scopes: list[str]) -> dict[tuple, pd.Series]:
    return {tuple(s.split(",")): frame.groupby(s.split(",")).size() for s in scopes}


@pytest.mark.parametrize("scopes", BY_LEVEL, ids=" ".join)
def test_tables_by_levels_are_exact_in_model_draws_and_samples(scopes, tmp_path):
    frame = people()
    public = {"public": of_level(frame, scopes), "public_from": "elsewhere"}
    estimator = CollectiveMAP(epsilon=1.0, state_names=AREAS, **public)
    model = estimator.fit(nx.complete_graph(["tract", "sex", "ill"]), frame).model_
    model.posterior = estimator.posterior(20, random_state=0)
    read = MarkovNetwork.load(saved(model, tmp_path))
    for network in (model, read, model.posterior.models(2)[1]):
        sample = network.sample(3000, random_state=0, method="agreeing")
        for scope, counts in public["public"].items():
            order = [list(AREAS.column(name).states) for name in scope]
            wanted = counts.reindex(pd.MultiIndex.from_product(order) if len(order) > 1 else order[0])
            answer = network.query(list(scope)).values.ravel()
            np.testing.assert_allclose(answer * 3000, wanted.to_numpy(), rtol=1e-8)
            assert (sample.groupby(list(scope)).size() == counts).all()
        assert (sample["tract"].map(COUNTY) == sample["county"]).all()
    assert "; ".join(s.replace(",", ", ") for s in scopes) in str(read.privacy)


def test_a_table_by_a_level_is_the_fit_of_the_whole_joint_table():
    """Every leaf of a county gets the same factor, and nothing else changes."""
    rng, places = np.random.default_rng(1), np.array([0, 1, 0, 1, 1])
    joint, wanted = rng.dirichlet(np.ones(10)).reshape(5, 2), rng.dirichlet(np.ones(4)).reshape(2, 2)
    cliques, levels = Cliques(("leaf", "sex"), (5, 2), (("leaf", "sex"),)), {"county": ("leaf", places)}
    made, _ = ProportionalFit(cliques, {("sex", "county"): wanted.T}, levels=levels)(np.log(joint).ravel())
    now = np.array([joint[places == k].sum(axis=0) for k in (0, 1)])
    np.testing.assert_allclose(np.exp(made).reshape(5, 2) / np.exp(made).sum(), joint * (wanted / now)[places])


def test_tables_by_levels_that_cannot_be_are_refused_and_wrong_ones_warned_of():
    frame, graph = people(), nx.complete_graph(["tract", "sex", "ill"])
    wrong = of_level(frame, ["county"])["county",].set_axis(["Nye", "Clark", "Kern"])
    of_tracts = frame.groupby("tract").size()
    for public, message in (
        ({"tract": of_tracts, "county": wrong}, "no model has all public tables"),
        ({("tract", "county"): [[1]]}, "'tract' twice, by itself or by levels"),
        ({"county": {"Kern": 1, "Clark": 1, "Orange": 1}}, "row 3 of the public table of county has no state"),
        ({"town": [1]}, r"name different variables of the model, \['tract', 'sex', 'ill', 'county', 'state'\]"),
    ):
        with pytest.raises(ValueError, match=message):
            CollectiveMAP(epsilon=1.0, state_names=AREAS, public=public, public_from="elsewhere").fit(graph, frame)
    # Released are tables of tracts alone, or of every level: the county's are compared with what they say of it.
    for names in (None, graph):
        with pytest.warns(ContradictedTablesWarning, match="public counts of county"):
            learn(frame, Budget(epsilon=2.0), AREAS, graph=names, public={"county": wrong}, public_from="elsewhere")


# -- what is said --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("graph", [None, GRAPH], ids=["learned", "given"])
def test_every_statement_says_where_the_tables_are_from(graph, tmp_path):
    private = PrivateTable(records(), STATES, ledger=Budget(epsilon=2.0, delta=1e-9))
    learned = learn(private, Budget(epsilon=1.0, delta=1e-9), graph=graph, draws=20, **ELSEWHERE)
    model, condition = learned.model_, f"given tables of sex, age; job {SAID}"
    assert learned.privacy_.condition == condition
    read = MarkovNetwork.load(saved(model, tmp_path))
    assert read.privacy == model.privacy
    said = [str(learned.privacy_), str(learned), str(model), str(read), repr(model.posterior), str(private.ledger)]
    for page in ("report", "explorer"):
        getattr(model, page)(tmp_path / "page.html")
        said.append((tmp_path / "page.html").read_text())
    write_evidence(tmp_path / "evidence", model, ledger=private.ledger)
    for file in (tmp_path / "evidence").iterdir():
        text = file.read_text()
        said.append(str(Privacy.from_dict(json.loads(text)["privacy"])) if file.suffix == ".json" else text)
    said.append(learned.to_dict()["condition"])
    for text in said:
        assert condition in " ".join(text.split()), text[:300]
    # And of a model that is learned from it as a prior.
    later = CollectiveMAP(epsilon=1.0, state_names=STATES, prior=model).fit(GRAPH, records(seed=1))
    assert condition in str(later.privacy_) and later.privacy_.together.condition == condition
    assert SAID not in str(learn(records(), Budget(epsilon=1.0), STATES, graph=GRAPH).privacy_)


# -- contradiction -------------------------------------------------------------------------------------------


def released(noise: str, n: int, rng, truth: np.ndarray) -> NoisyMarginals:
    cliques = Cliques(("sex", "age", "ill"), (2, 3, 2), (("sex", "ill"), ("ill", "age"), ("age",)))
    joint = rng.multinomial(n, truth.ravel()).reshape(2, 3, 2)
    tables = [joint.sum(axis=1), joint.sum(axis=0).T, joint.sum(axis=(0, 2))]
    scale = np.array([6.0, 12.0, 3.0])
    draw = rng.laplace if noise == "laplace" else rng.normal
    counts = [t + draw(0, s, t.shape) for t, s in zip(tables, scale, strict=True)]
    return NoisyMarginals(cliques, cliques.join(counts), noise, scale)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_right_tables_are_hardly_ever_warned_of_and_wrong_ones_are(noise):
    rng, alarms, power, repeats = np.random.default_rng(7), 0, 0, 300
    truth = np.random.default_rng(0).dirichlet(np.full(12, 3.0)).reshape(2, 3, 2)
    counts = np.rint(1e6 * truth.sum(axis=2)).astype(int)
    right = PublicTables({("sex", "age"): counts}, int(counts.sum()))
    wrong = PublicTables({("sex", "age"): counts[::-1]}, int(counts.sum()))
    for _ in range(repeats):
        noisy = released(noise, 2000, rng, truth)
        alarms += right.contradiction(noisy, None) is not None
        power += wrong.contradiction(noisy, None) is not None
    assert alarms <= 4 and power == repeats
    # Sampling counts: without it, as for tables of these very people, the same release is far off.
    as_of_the_records = PublicTables({("sex", "age"): counts}, 2000)
    missed = sum(as_of_the_records.contradiction(released(noise, 2000, rng, truth), 2000) is None for _ in range(50))
    assert missed < 45


def test_the_warning_is_a_function_of_the_release():
    wrong = {"public": {"sex": [2500, 500]}, "public_from": "elsewhere"}
    with pytest.warns(ContradictedTablesWarning, match=r"public counts of sex, as of a population .* 3\d\.\d %"):
        learned = learn(records(), Budget(epsilon=1.0), STATES, graph=GRAPH, **wrong)
    with pytest.warns(ContradictedTablesWarning) as told:
        CollectiveMAP(state_names=STATES, **wrong).fit_release(GRAPH, learned.release_)
    messages = [str(one.message) for one in told if one.category is ContradictedTablesWarning]
    assert len(messages) == 1 and messages[0] in learned.to_dict()["warnings"]
    with warnings.catch_warnings():
        warnings.simplefilter("error", ContradictedTablesWarning)
        learn(records(), Budget(epsilon=1.0), STATES, graph=GRAPH, n_records=3000, **ELSEWHERE)


# -- tables of the records themselves ------------------------------------------------------------------------

AGREE = "between neighbours that agree on these records' tables of sex, age; job"
OF_THESE = {"public": PUBLIC, "public_from": "these records"}


def of_these(ledger: Ledger | Budget) -> PrivateTable:
    return PrivateTable(records(), STATES, adjacency="replace_one", n_records=3000, ledger=ledger)


def plain(text: str) -> list[str]:
    """The lines and sentences that say a guarantee for neighbours of every kind; costs are none."""
    text = html.unescape(re.sub(r"<[^>]*>", "\n", text)) if "<p" in text else text
    text = text.replace("age; job", "age, job").replace("\\n", "\n")
    said = [
        s for s in re.split(r"\n|(?<=[.;:])\s", text) if re.search(r"\d\)?-(DP|zCDP)", s) and "that agree on" not in s
    ]
    costs = r"private$|^(\d+ )?[^.]*tables?( of [^.]*)?: ?\S+$|^\S+-(DP|zCDP)[;.]?$"
    exchange = "that exchange all of these columns|in these columns is not protected by"
    return [s for s in said if not re.search(f"{costs}|{exchange}", s.strip())]


def test_plain_statements_are_recognised():
    earlier = CollectiveMAP(epsilon=1.0, adjacency="replace_one").fit(GRAPH, private := of_these(Budget(epsilon=2.0)))
    assert all(map(plain, [str(earlier.privacy_), private.ledger.summary(), repr(private.ledger)]))
    assert plain("It is met by 0.02-zCDP, the measure in which costs add up.") and not plain(f"1-DP {AGREE}, under x")


@pytest.mark.parametrize("budget", [Budget(epsilon=1.0), Budget(epsilon=1.0, delta=1e-7)], ids=str)
@pytest.mark.parametrize("graph", [None, GRAPH], ids=["learned", "given"])
def test_all_that_is_said_is_for_neighbours_that_agree(graph, budget, tmp_path):
    ledger = Ledger.open(tmp_path / "ledger.json", Budget(epsilon=3.0, delta=1e-6))
    earlier = CollectiveMAP(epsilon=0.1, adjacency="replace_one").fit(GRAPH, private := of_these(ledger))
    assert AGREE not in ledger.summary()
    learned = learn(private, budget, graph=graph, draws=20, **OF_THESE)
    model, release = learned.model_, learned.release_
    assert [model.probability({"job": job}) for job in ("a", "b")] == pytest.approx(PUBLIC["job"][:2] / 3000, abs=1e-9)
    assert ledger.public_tables == (("sex", "age"), ("job",)) == Ledger.open(ledger.path).public_tables
    later = CollectiveMAP(epsilon=0.1, adjacency="replace_one", prior=model).fit(GRAPH, private)
    model.save(tmp_path / "model.npz")
    release.save(tmp_path / "tables.npz")
    ledger.save(tmp_path / "copy.json")
    again = refit(Release.load(tmp_path / "tables.npz"), **OF_THESE)
    models = [model, MarkovNetwork.load(tmp_path / "model.npz"), again.model_, refit(release).model_, later.model_]
    said = [str(one.privacy) for one in models]
    said += [
        repr(release),
        repr(later.release_),
        repr(Release.load(tmp_path / "tables.npz")),
        str(learned),
        repr(learned),
    ]
    said += [ledger.summary(), repr(ledger), repr(Ledger.load(tmp_path / "copy.json")), repr(model.posterior)]
    assert all(AGREE in text for text in said if "DP" in text)
    assert all(AGREE in json.dumps(told) for told in (learned.to_dict(), again.to_dict(), model.privacy.told()))
    model.report(tmp_path / "report.html")
    model.explorer(tmp_path / "explorer.html")
    for of, with_ledger in [(model, {}), (model, {"ledger": ledger}), (earlier.model_, {"ledger": ledger})]:
        write_evidence(folder := tmp_path / f"evidence {len(said)}", of, **with_ledger)
        said += [path.read_text(encoding="utf-8") for path in folder.iterdir()]
    said += [(tmp_path / page).read_text(encoding="utf-8") for page in ("report.html", "explorer.html")]
    assert [plain(text) for text in said] == [[]] * len(said)
    pages = [text for text in said if "exchange" in text]
    assert len(pages) >= 8 and all("with the same public tables" in text for text in pages if "even an attack" in text)


def test_two_records_that_exchange_the_columns_pay_for_two_replacements():
    """Over all tables of three records: 2 epsilon at the worst, where one record that changes pays one."""
    states = {"region": ["n", "s"], "ill": [0, 1]}
    frame = pd.DataFrame(list(product(states["region"], states["ill"]))[:3], columns=["region", "ill"])
    options = {"public": {"region": [2, 1]}, "public_from": "these records"}

    def noise(**budget) -> Noise:
        private = PrivateTable(frame, states, adjacency="replace_one", n_records=3, ledger=Budget(**budget))
        estimator = CollectiveMAP(**budget, adjacency="replace_one", **options)
        fitted = estimator.fit(nx.Graph([("region", "ill")]), private)
        assert fitted.privacy_.agreed == (("region",),)
        twice = fitted.privacy_.twice.guarantee
        assert twice == (PureDP(2.0) if "epsilon" in budget else ZCDP(2.0))
        (law,) = fitted.release_.noise
        return law

    laplace, gaussian = noise(epsilon=1.0), noise(rho=0.5)
    outputs = np.stack(np.meshgrid(*[np.arange(-1, 5)] * 4), axis=-1).reshape(-1, 4)

    def cells(rows) -> np.ndarray:
        return np.bincount([2 * region + ill for region, ill in rows], minlength=4)

    exchanged, replaced, divergences = [], [], []
    for rows in product(list(product(range(2), range(2))), repeat=3):
        (a, b), (c, d) = rows[:2]
        first, second = cells(rows), cells([(c, b), (a, d), rows[2]])
        off = (np.abs(outputs - second).sum(axis=1) - np.abs(outputs - first).sum(axis=1)) / laplace.scale
        exchanged.append(off.max())
        divergences.append(((first - second) ** 2).sum() / (2 * gaussian.scale**2))
        other = cells([(a, 1 - b), *rows[1:]])  # one record, of which the table of regions keeps what it counts
        replaced.append(
            (np.abs(outputs - other).sum(axis=1) - np.abs(outputs - first).sum(axis=1)).max() / laplace.scale
        )
    assert max(replaced) == pytest.approx(1.0) and 1.5 < max(exchanged) == pytest.approx(2.0)
    assert max(divergences) == pytest.approx(2 * 0.5, rel=0.01)  # 2 rho of a Gaussian table alone, of 4 that are said


def test_twice_is_what_two_steps_between_neighbours_cost():
    def twice(guarantee, requested=None) -> Privacy:
        return Privacy(guarantee, Adjacency.REPLACE_ONE, "", requested=requested).twice

    whole = twice(ZCDP(0.1), ApproxDP(2.2, 1e-6))
    assert (whole.guarantee, whole.said) == (ZCDP(0.4), ApproxDP(zcdp_to_approx(0.4, 1e-6), 1e-6))
    assert twice(ApproxDP(1.0, 1e-6)).said == ApproxDP(2.0, (1 + np.e) * 1e-6)
    assert twice(ReservedZCDP(0.1, 1e-9), ApproxDP(1.0, 1e-6)).said == ApproxDP(2.0, (1 + np.e) * 1e-6)


def test_tables_that_the_ledger_has_not_entered_are_refused_at_no_cost():
    private = of_these(Budget(epsilon=2.0))
    release = CollectiveMAP(epsilon=1.0, adjacency="replace_one").fit(GRAPH, private).release_
    with pytest.raises(ValueError, match="the ledger had not entered these tables when it paid"):
        refit(release, **OF_THESE)
    assert private.ledger.public_tables == ()
    with pytest.raises(BudgetExceeded):
        learn(private, Budget(epsilon=1.5), graph=GRAPH, **OF_THESE)
    assert private.ledger.public_tables == () and AGREE not in private.ledger.summary()
    failing = CollectiveMAP(epsilon=0.5, adjacency="replace_one", **OF_THESE)
    failing._learned = None  # what fails once the noise is drawn leaves the tables where they are: they are public
    with pytest.raises(TypeError) as caught:
        failing.fit(GRAPH, private)
    assert AGREE in private.ledger.summary() and AGREE in repr(caught.value.release)


def test_each_fit_adds_its_tables_and_wrong_ones_change_nothing_that_is_told():
    """Nothing compares them with the records: what is charged, noted and warned of is the same for right and wrong."""
    entries = []
    for counts in (PUBLIC["job"], PUBLIC["job"][::-1]):
        private = of_these(Budget(epsilon=2.0))
        for public in ({"job": counts}, {("age", "sex"): PUBLIC["sex", "age"].T}):
            fit = CollectiveMAP(epsilon=0.5, adjacency="replace_one", public=public, public_from="these records")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ContradictedTablesWarning)  # of released numbers
                fit.fit(GRAPH, private)
        assert "tables of age, sex; job" in fit.privacy_.words
        assert {*fit.model_.privacy.agreed} == {*fit.release_.public_tables} == {("job",), ("age", "sex")}
        entries.append(private.ledger.entries)
    assert entries[0] == entries[1]
