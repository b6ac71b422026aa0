"""Evidence: an entry that the registry takes, answers that are the model's own, digests, and what it refuses."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import yaml

import pgmpy_dp
from pgmpy_dp import (
    Budget,
    Ledger,
    MarkovNetwork,
    PrivateTable,
    Schema,
    learn,
    learn_linked,
    score_model,
    verbs,
    write_evidence,
)
from pgmpy_dp.estimators import CollectiveMAP, NaiveMLE
from pgmpy_dp.fields import PrivateIsing
from pgmpy_dp.learning.privacy_record import Privacy
from pgmpy_dp.linked import made_up_families
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.entry import Entry
from pgmpy_dp.private.guarantee import ZCDP, ApproxDP, PureDP, ReservedZCDP
from pgmpy_dp.reporting import explorer_page, report_page
from pgmpy_dp.reporting.linked_report import linked_report_page
from pgmpy_dp.reporting.words import DIGESTS, ledger_words
from pgmpy_dp.reporting.written_evidence import EVIDENCE_FILES
from pgmpy_dp.theory.attack_rates import attack_success
from pgmpy_dp.verbs import discover
from tests.reporting.models import fitted, release
from tests.reporting.test_model_report import text_of

# The registry's fields and values, of the schema of 2026-07-15 (opendp/deployments-registry-data, 3e9c812a). A list is
# of the values that are allowed; a type is of any value.
FIELDS = {
    "url_slug": str,
    "status": ["Converted", "Draft", "Pending", "Changes Required", "Approved"],
    "tier": [1, 2, 3],
    "deployment": {
        "basic": {
            "name": str,
            "data_curators": list,
            "intended_use": str,
            "data_product_type": ["Summary statistics", "Machine learning model", "Dataset", "Synthetic data"],
            "data_product_region": str,
            "description": str,
            "publication_date": str,
        },
        "dp_variant": {
            "variant_name": ["Pure DP", "Approximate DP", "Zero-concentrated DP", "Renyi DP", "Custom"],
            "data_domain": str,
            "unprotected_quantities": str,
        },
        "privacy_loss": {
            "privacy_unit": str,
            "privacy_unit_details": str,
            "privacy_parameters": {"epsilon": float, "delta": float, "rho": float},
            "privacy_parameters_details": str,
        },
        "deployment_model": {
            "model_name": ["Local", "Central", "Shuffle", "Federated", "Varies"],
            "model_name_details": str,
            "actors": str,
            "release_type": ["One release", "Many releases"],
            "release_type_details": str,
            "data_source_type": ["Static", "Dynamic"],
            "data_source_type_details": str,
            "access_type": ["Interactive", "Non-interactive"],
            "access_type_details": str,
        },
        "accounting": {"post_processing": str, "composition": str},
        "implementation": {"preprocessing_and_hyperparameter_tuning": str, "mechanisms": str, "justification": str},
        "administrative": {"sources": str, "notes": str, "registry_authors": list},
    },
}
BY_A_PERSON = {  # nothing in a model tells these
    *("name", "data_curators", "intended_use", "data_product_region", "description", "actors", "release_type_details"),
    *("preprocessing_and_hyperparameter_tuning", "justification", "sources", "registry_authors", "url_slug"),
    "publication_date",
}


def check(entry: object, fields: object, name: str = "") -> set[str]:
    """The names of fields that the registry refuses, of an entry that has its fields and no others."""
    if isinstance(fields, dict):
        assert isinstance(entry, dict) and not entry.keys() - fields.keys(), name
        assert name == "privacy_parameters" or entry.keys() == fields.keys(), name
        return set().union(*(check(value, fields[key], key) for key, value in entry.items()))
    right = entry in fields if isinstance(fields, list) else isinstance(entry, fields)
    if right:
        assert entry and "todo" not in str(entry).lower(), (name, entry)
        return set()
    assert entry.keys() <= {"TODO", "beside"} and entry["TODO"], (name, entry)
    return {name}


def filled_in(entry: dict, fields: object) -> object:
    """The entry with a person's words in the place of what is to do."""
    if isinstance(fields, dict):
        return {key: filled_in(value, fields[key]) for key, value in entry.items()}
    if not isinstance(entry, dict):
        return entry
    return ["words"] if fields is list else f"words {entry.get('beside', '')}"


def read(folder) -> tuple[dict, str, dict]:
    registry, page, numbers = ((folder / name).read_text(encoding="utf-8") for name in EVIDENCE_FILES)
    return yaml.safe_load(registry), page, json.loads(numbers)


def private(guarantee, **facts) -> MarkovNetwork:
    """A model with a record of its own."""
    network = fitted()
    network.privacy = Privacy(guarantee, Adjacency.ADD_REMOVE, "noise", **facts)
    return network


@pytest.mark.parametrize(
    ("guarantee", "asked", "variant", "parameters"),
    [
        (PureDP(0.5), None, "Pure DP", {"epsilon": 0.5}),
        (ApproxDP(1.0, 1e-9), None, "Approximate DP", {"epsilon": 1.0, "delta": 1e-9}),
        (ZCDP(0.0149), ApproxDP(1.0, 1e-9), "Zero-concentrated DP", {"rho": 0.0149}),
        (ReservedZCDP(1e-7, 1e-9), ApproxDP(1.0, 1e-6), "Approximate DP", {"epsilon": 1.0, "delta": 1e-6}),
    ],
)
def test_an_entry_is_one_of_the_registry(tmp_path, guarantee, asked, variant, parameters):
    write_evidence(tmp_path, private(guarantee, requested=asked))
    entry, page, numbers = read(tmp_path)
    assert check(entry, FIELDS) == BY_A_PERSON and check(filled_in(entry, FIELDS), FIELDS) == set()
    deployment = entry["deployment"]
    assert deployment["dp_variant"]["variant_name"] == variant
    assert deployment["privacy_loss"]["privacy_parameters"] == parameters
    success = numbers["attacks"]["at_one_percent_false_alarms"]
    assert success == float(attack_success(guarantee, 0.01))
    assert Privacy.from_dict(numbers["privacy"]).guarantee == guarantee
    rates, most = (np.array(numbers["attacks"][key]) for key in ("false_alarms", "success_at_most"))
    assert most == pytest.approx(attack_success(guarantee, rates), rel=1e-12) and (most >= rates).all()
    assert f"recognises at most {np.ceil(1000 * success - 1e-9) / 10:.1f} % of those who are." in text_of(page)


def test_names_are_anybodys_text(tmp_path):
    write_evidence(
        tmp_path, private(PureDP(1.0)), title='Stays: "2024" #1\u202e', about='Line\n- "a": <b>b</b> \\ \x1b[31m'
    )
    entry, page, _ = read(tmp_path)
    basic = entry["deployment"]["basic"]
    assert basic["name"] == 'Stays: "2024" #1\\u202e' and basic["description"] == 'Line\n- "a": <b>b</b> \\ \\x1b[31m'
    assert (tmp_path / "registry.yaml").read_text().startswith("url_slug: {TODO")  # where its script looks for it
    assert check(entry, FIELDS) == BY_A_PERSON - {"name", "description"}
    assert "<b>" not in page and "<script" not in page and "\x1b" not in page


def test_the_page_answers_and_marks_what_a_person_has_to_write(tmp_path):
    network = private(ZCDP(0.0149), requested=ApproxDP(1.0, 1e-9), unit="patient", rows_per_unit="shares")
    file = tmp_path / "m.npz"
    network.save(file)
    write_evidence(tmp_path / "made", network, files=[file])
    entry, page, numbers = read(tmp_path / "made")
    text = text_of(page)
    assert "One 'patient' with all of its rows is protected" in text and "its rows count as one together" in text
    assert "(1, 1e-09)-DP (by 0.0149-zCDP)" in text
    assert "patients, give or take" in text
    assert page.count('class="todo"') == 5 and "TODO: say who" in text
    assert entry["deployment"]["privacy_loss"]["privacy_unit"] == "patient-level"
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    assert (
        numbers["sha256"] == {"m.npz": digest}
        and digest in page
        and digest in entry["deployment"]["administrative"]["notes"]
    )
    assert "identifiers are believed" in entry["deployment"]["dp_variant"]["unprotected_quantities"]
    assert "The number of records: it is public" not in text
    network.privacy = replace(network.privacy, adjacency=Adjacency.REPLACE_ONE)
    write_evidence(tmp_path / "made", network)
    assert "The number of records: it is public, and exact." in text_of(read(tmp_path / "made")[1])


def test_the_guesses_are_bounds_for_stated_priors(tmp_path):
    write_evidence(tmp_path, private(PureDP(1.0)))
    assert "one of 10 values, all equally likely 10 % 27.2 %" in text_of(read(tmp_path)[1])


def test_what_discovery_cost_is_in_it(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"job": rng.choice(["clerk", "nurse"], 4000), "sex": rng.choice(["F", "M"], 4000)})
    found = discover(frame, {"job": "categories", "sex": ["F", "M"]}, Budget(epsilon=0.5, delta=1e-6))
    graph = nx.Graph([("job", "sex")])
    model = NaiveMLE(epsilon=1.0, state_names=found.schema).fit(graph, frame).model_
    write_evidence(tmp_path, model)
    entry, page, numbers = read(tmp_path)
    cost = model.privacy.schema.words
    assert cost in entry["deployment"]["accounting"]["composition"] and cost in page
    assert "found in the records" in entry["deployment"]["dp_variant"]["unprotected_quantities"]
    assert numbers["attacks"]["at_one_percent_false_alarms"] > float(attack_success(PureDP(1.0), 0.01))
    assert check(entry, FIELDS) == BY_A_PERSON


def test_linked_tables_and_fields_have_evidence_too(tmp_path):
    households, persons, schema = made_up_families(400, most=3, random_state=0)
    linked = learn_linked(households, persons, Budget(epsilon=3.0, delta=1e-9), schema, n_rounds=2).model_
    write_evidence(tmp_path / "linked", linked)
    entry, page, numbers = read(tmp_path / "linked")
    assert check(entry, FIELDS) == BY_A_PERSON
    assert "households, give or take" in text_of(page) and "One person alone is" in text_of(page)
    own, child = (numbers[name]["guarantee"]["rho"] for name in ("attacks", "attacks_on_a_child"))
    assert child == 4 * own
    assert "up to 3 rows of person each" in entry["deployment"]["dp_variant"]["data_domain"]
    bits = pd.DataFrame(np.random.default_rng(0).integers(0, 2, (300, 3)), columns=list("abc"))
    field = PrivateIsing(epsilon=1.0, width=1.0, state_names={name: [0, 1] for name in "abc"}).fit(bits)
    for model in (field, field.model_):
        write_evidence(tmp_path / "field", model)
        assert check(read(tmp_path / "field")[0], FIELDS) == BY_A_PERSON
        assert ("Learned from about" in read(tmp_path / "field")[1]) == (model is field)
    learned = learn(bits, Budget(rho=0.1), {name: [0, 1] for name in "abc"})
    write_evidence(tmp_path / "learned", learned.model_, learned.release_)
    assert "of kind 'marginals'" in text_of(read(tmp_path / "learned")[1])


def test_what_promises_nothing_is_refused(tmp_path):
    with pytest.raises(ValueError, match="came from a seed: it is NOT PRIVATE"):
        write_evidence(tmp_path / "new", fitted(), release())
    network = fitted()
    network.privacy = None
    with pytest.raises(ValueError, match="has no guarantee"):
        write_evidence(tmp_path / "new", network)
    with pytest.raises(ValueError, match="pass its own"):
        write_evidence(tmp_path / "new", private(ZCDP(0.5)), release())
    assert not (tmp_path / "new").exists()


GUESSES = pd.DataFrame({"a": [0, 1] * 60, "b": [0, 0, 1, 1] * 30})
BITS = {"a": [0, 1], "b": [0, 1]}


def with_a_prior(random_state=None, unit=None):
    """A model at epsilon .1 whose prior is of the same records, at epsilon 30."""
    graph, last = nx.Graph([("a", "b")]), CollectiveMAP(epsilon=30.0, state_names=BITS, random_state=random_state)
    prior = last.fit(graph, GUESSES).model_
    prior.privacy = replace(prior.privacy, unit=unit)
    return CollectiveMAP(epsilon=0.1, state_names=BITS, prior=prior).fit(graph, GUESSES)


def test_everything_speaks_of_the_total(tmp_path):
    fit = with_a_prior()
    assert str(fit.privacy_).startswith("30.1-DP together, for whoever is in both with epsilon above 20: NOT PRIVATE")
    assert fit.privacy_.told() == {"guarantee": PureDP(30.1).to_dict(), "adjacency": "add_remove"}
    write_evidence(tmp_path, fit.model_, fit.release_)
    entry, page, numbers = read(tmp_path)
    loss = entry["deployment"]["privacy_loss"]
    assert loss["privacy_parameters"] == {"epsilon": 30.1} and check(entry, FIELDS) == BY_A_PERSON
    assert numbers["attacks"]["at_one_percent_false_alarms"] > 0.99
    assert numbers["attacks"]["guarantee"] == numbers["privacy"]["total"] == PureDP(30.1).to_dict()
    for told in (page, report_page(fit.model_, fit.release_), explorer_page(fit.model_)):
        text = text_of(told)
        assert (
            "Epsilon is above 20" in text
            and "recognises at most 100 % of those who are" in text
            and "1.2 %" not in text
        )
    assert "in at most 100 %" in text_of(page) and "in both" in entry["deployment"]["accounting"]["composition"]
    small = replace(fit.privacy_, prior=Privacy(PureDP(0.9), Adjacency.ADD_REMOVE, "noise"))
    fit.model_.privacy = small
    write_evidence(tmp_path, fit.model_)
    found = read(tmp_path)[2]["attacks"]["at_one_percent_false_alarms"]
    assert found == pytest.approx(float(attack_success(PureDP(1.0), 0.01)), rel=1e-12)
    assert small.delta == 0 and replace(small, prior=replace(small.prior, guarantee=ApproxDP(1.0, 1e-5))).delta == 1e-5


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"random_state": 0}, "the noise of its prior came from a seed: it is NOT PRIVATE"),
        ({"unit": "user"}, "its guarantee and that of its prior cannot be added up: NOT PRIVATE"),
    ],
)
def test_where_no_total_is_promised_pages_begin_with_that(tmp_path, asked, why):
    fit = with_a_prior(**asked)
    assert fit.privacy_.told()["guarantee"] is fit.privacy_.to_dict()["total"] is None and why in str(fit.privacy_)
    with pytest.raises(ValueError, match=why):
        write_evidence(tmp_path / "new", fit.model_)
    for page in (report_page(fit.model_), explorer_page(fit.model_)):
        text = text_of(page)
        assert f"Warning. Nothing is promised for this model: {fit.privacy_.unprotected}." in text
        assert "at most" not in text and "within a factor" not in text
    third = CollectiveMAP(epsilon=0.1, state_names=BITS, prior=fit.model_).fit(nx.Graph([("a", "b")]), GUESSES)
    assert third.privacy_.total is None and why in third.privacy_.unprotected


def test_one_number_for_one_child(tmp_path):
    households, persons, schema = made_up_families(200, most=3, random_state=0)
    model = learn_linked(households, persons, Budget(rho=1.0), schema, n_rounds=1).model_
    reserved = ReservedZCDP(0.05, 1e-9)
    for privacy, words in [
        (Privacy(reserved, "add_remove", "m", requested=ApproxDP(2.1, 2e-9)), "(4.2, 1.83323e-08)-DP"),
        (Privacy(ZCDP(0.05), "add_remove", "m", requested=ApproxDP(2.1, 1e-9)), "(3.93375, 1e-09)-DP (by 0.2-zCDP)"),
    ]:
        model.privacy = replace(privacy, adjacency=Adjacency.ADD_REMOVE, unit=schema.key)
        said = str(model.privacy_of_a_child)
        assert words.startswith(said) and f"one person alone: {words}" in repr(model)
        write_evidence(tmp_path, model)
        _, page, numbers = read(tmp_path)
        assert words in text_of(page) and said in text_of(linked_report_page(model))
        assert numbers["attacks_on_a_child"]["said"] == model.privacy_of_a_child.to_dict()
    model.privacy = replace(model.privacy, reproducible=True)
    assert model.privacy_of_a_child is None and "one person alone: nothing is promised" in repr(model)
    assert "is promised" not in text_of(linked_report_page(model)).replace("Nothing is promised", "")


def epsilon_of(rho: float, delta: float) -> float:
    """The epsilon that rho implies, by Canonne, Kamath and Steinke (2020), Corollary 13, over a grid of orders."""
    order = 1 + np.geomspace(1e-4, 1e7, 400_000)
    slack = np.log1p(-1 / order) - (np.log(delta) + np.log(order)) / (order - 1)
    return float((rho * order + slack).min())


def test_everything_that_the_ledger_paid_for_is_added_up(tmp_path):
    ledger = Ledger.open(tmp_path / "ledger.json", Budget(epsilon=3.0, delta=1e-8))
    bits = pd.DataFrame(np.random.default_rng(0).integers(0, 2, (300, 2)), columns=["a", "b"])
    table = PrivateTable(bits, Schema(BITS), ledger=ledger)
    verbs.check(table, Budget(epsilon=0.05))
    model = learn(table, Budget(epsilon=1.0, delta=1e-9)).model_
    alone = float(attack_success(model.privacy.guarantee, 0.01))
    score_model(model, table, Budget(epsilon=0.1))
    write_evidence(tmp_path / "then", model)
    write_evidence(tmp_path / "now", model, ledger=ledger)
    rho = model.privacy.guarantee.rho
    told = {}
    for name, epsilons, budget in (("then", (0.05,), ""), ("now", (0.05, 0.1), ", (3, 1e-08)-DP")):
        entry, page, numbers = read(tmp_path / name)
        found = numbers["attacks_on_all_that_the_ledger_paid"]
        total = rho + sum(epsilon**2 / 2 for epsilon in epsilons)
        assert found["guarantee"]["rho"] == pytest.approx(total, rel=1e-12)
        assert found["said"]["delta"] == 1e-9
        assert found["said"]["epsilon"] == pytest.approx(epsilon_of(total, 1e-9), rel=1e-4)
        assert found["at_one_percent_false_alarms"] > alone == numbers["attacks"]["at_one_percent_false_alarms"]
        said = f"{1 + len(epsilons)} charges together, this is ({found['said']['epsilon']:.6g}, 1e-09)-DP"
        for text in (text_of(page), entry["deployment"]["accounting"]["composition"]):
            assert said in text and f"the promise is the ledger's budget{budget}." in text
        told[name] = found["guarantee"]["rho"]
    assert told["now"] == pytest.approx(ledger.account.spent.rho, rel=1e-12) and told["then"] < told["now"]
    assert said.split(",")[1] not in text_of(report_page(model)) and "2 charges together" in text_of(report_page(model))
    with pytest.raises(ValueError, match="ledger is not the one that paid"):
        write_evidence(tmp_path / "new", model, ledger=Ledger(Budget(epsilon=3.0, delta=1e-8)))
    model.privacy = replace(model.privacy, entries=(*ledger.entries, ledger.entries[0]))
    with pytest.raises(ValueError, match="ledger is not the one that paid"):
        write_evidence(tmp_path / "new", model, ledger=ledger)


def charge(cost, reproducible=False) -> Entry:
    return Entry("what", (), "noise", cost, Adjacency.ADD_REMOVE, reproducible)


def test_what_another_ledger_paid_for_counts_beside_the_ledger():
    def record(guarantee, ledger="a", **facts):
        return Privacy(guarantee, Adjacency.ADD_REMOVE, "noise", ledger=ledger, **facts)

    own = (charge(PureDP(0.25)), charge(PureDP(1.0)))
    paid = {
        name: record(PureDP(1.0), entries=own, **facts).paid.guarantee.epsilon
        for name, facts in {
            "alone": {},
            "a prior of this ledger": {"prior": record(PureDP(0.25))},
            "a prior of another": {"prior": record(PureDP(0.25), "b")},
            "a prior that does not say": {"prior": record(PureDP(0.25), None)},
            "a schema of this ledger": {"schema": record(PureDP(0.25))},
            "a schema of another": {"schema": record(PureDP(0.25), "b")},
            "a prior's prior of another": {"prior": record(PureDP(0.25), prior=record(PureDP(0.5), "b"))},
        }.items()
    }
    assert list(paid.values()) == [1.25, 1.25, 1.5, 1.5, 1.25, 1.5, 1.75]
    assert record(PureDP(1.0)).paid is None
    seeded = record(PureDP(1.0), entries=(*own, charge(PureDP(0.1), True)))
    assert seeded.paid is None and ledger_words(seeded)[0].endswith("for all of it together there is no promise.")
    assert ledger_words(record(PureDP(1.0), entries=own[1:])) == (
        "Its ledger paid for nothing else up to this release.",
    )


@pytest.mark.parametrize(
    ("costs", "guarantee", "said"),
    [
        ([ReservedZCDP(0.01, 4e-10), PureDP(0.1)], ReservedZCDP(0.015, 4e-10), (epsilon_of(0.015, 6e-10), 1e-9)),
        ([ReservedZCDP(0.01, 4e-10)] * 3, ReservedZCDP(0.03, 1.2e-9), (epsilon_of(0.03, 1e-9), 2.2e-9)),
        ([ApproxDP(1.0, 1e-9), PureDP(0.5), ApproxDP(0.25, 1e-9)], ApproxDP(1.75, 2e-9), (1.75, 2e-9)),
    ],
)
def test_deltas_of_all_charges_add_up(costs, guarantee, said):
    paid = Privacy(
        costs[0],
        Adjacency.ADD_REMOVE,
        "noise",
        entries=tuple(map(charge, costs)),
        requested=None if isinstance(costs[0], ApproxDP) else ApproxDP(1.0, 1e-9),
    ).paid
    for name, value in guarantee.to_dict().items():
        assert paid.guarantee.to_dict()[name] == (value if isinstance(value, str) else pytest.approx(value, rel=1e-12))
    assert (paid.said.epsilon, paid.said.delta) == pytest.approx(said, rel=1e-4)
    assert paid.guarantee.implies(paid.said)


def test_the_version_that_learned_and_the_one_that_writes_are_told(tmp_path):
    model = NaiveMLE(epsilon=1.0, state_names=BITS).fit(nx.Graph([("a", "b")]), GUESSES).model_
    model.save(tmp_path / "m.npz")
    loaded = MarkovNetwork.load(tmp_path / "m.npz")
    loaded.privacy = replace(loaded.privacy, learned_by="0.2.9")
    write_evidence(tmp_path / "made", loaded, files=[tmp_path / "m.npz"])
    _, page, numbers = read(tmp_path / "made")
    said = f"The model was learned by pgmpy_dp 0.2.9. This was written by pgmpy_dp {pgmpy_dp.__version__}, Python"
    assert said in text_of(page) and numbers["versions"]["learned_by"] == "0.2.9" and DIGESTS in text_of(page)
    assert Privacy.from_dict(model.privacy.to_dict()).learned_by == pgmpy_dp.__version__
