"""Twenty questions, of one table, of persons with several rows and of linked tables: every surface says the same.

The answer in Python is compared with terminal, JSON, notebook, report, and the explorer's page in JavaScript.
"""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import pgmpy_dp.reporting.explorer as explorer_module
from pgmpy_dp import Budget, MarkovNetwork, Number, Schema, learn, learn_linked
from pgmpy_dp.cli import app
from pgmpy_dp.inference.conditioning import ImpossibleEvidence
from pgmpy_dp.linked import LinkedModel, LinkedSchema, made_up_families
from pgmpy_dp.reporting import report_page
from pgmpy_dp.reporting.explorer import explorer_data
from pgmpy_dp.reporting.linked_report import linked_report_page
from tests.reporting.models import fitted

HARNESS = Path(__file__).parents[1] / "reporting" / "explorer_answers.cjs"
SCRIPT = Path(explorer_module.__file__).parent / "templates" / "inference.js"
NODE = shutil.which("node")


def of_persons() -> MarkovNetwork:
    """Visits of 800 persons, all of one's rows together; nobody's pay was read."""
    rng = np.random.default_rng(3)
    ill, n = rng.random(800) < 0.4, 1600
    who = np.arange(n) // 2
    pay = ["$1,010.00"] * n
    visits = pd.DataFrame({"who": who, "ill": np.where(ill[who], "yes", "no"), "day": np.arange(n) % 30, "pay": pay})
    schema = Schema({
        "ill": ["no", "yes"],
        "day": Number(0, 29, cuts=[10, 20], resolution=1, missing="drop"),
        "pay": Number(0, 9999, cuts=[1000]),
    })  # fmt: skip
    schema = Schema(dict(schema.items()), impossible=["day >= 20 -> ill = no"])
    found = learn(visits, Budget(rho=1.0), schema, unit="who", rows_per_unit="shares", random_state=0, probe_share=0.0)
    found.model_.posterior = found.posterior(25, random_state=0)
    return found.model_


def of_families(siblings: int) -> LinkedModel:
    households, persons, schema = made_up_families(1_000, 3, random_state=0)
    child = Schema({name: schema.child[name] for name in ("age", "status", "speaks")})
    parent = {"tenure": schema.parent["tenure"]}
    linked = LinkedSchema(parent, child, "household", 3, counts=["age >= 16"], names=("household", "person"))
    options = {"random_state": 1, "n_rounds": 3, "max_clique_cells": 1_000}
    if not siblings:
        options |= {"n_rounds": 1, "probe_share": 0.0}  # probes alone take twenty draws more
    found = learn_linked(households, persons, Budget(rho=1.0), linked, siblings=siblings, **options)
    found.model_.posterior = found.posterior(5 if siblings else 20, random_state=0)
    return found.model_


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """The models, as they are read from files, and the folder of these."""
    folder = tmp_path_factory.mktemp("models")
    with warnings.catch_warnings(action="ignore"):
        made = {"patients": fitted(), "persons": of_persons(), "families": of_families(1), "apart": of_families(0)}
        made["bare"] = fitted()
    made["bare"].posterior = None
    found = {}
    for name, model in made.items():
        model.save(folder / f"{name}.npz")
        found[name] = type(model).load(folder / f"{name}.npz")
    return found, folder


# Model, what is asked about and known, as a command says it; of whom.
QUESTIONS = [
    ("patients", "age", {}, None),
    ("patients", "ill", {"age": "35:50"}, None),  # a range that cuts two cells
    ("patients", "age", {"ill": "yes"}, None),
    ("patients", "region,school", {}, None),  # of which no table was measured
    ("patients", "smoker", {"school": "primary|tertiary"}, None),
    ("patients", "region", {"age": "[30,45)", "ill": "yes"}, None),
    ("patients", "age,ill,smoker,region", {}, None),
    ("patients", "ill", {"age": ""}, None),  # who has no age
    ("bare", "age", {"smoker": "yes"}, None),
    ("persons", "day", {"ill": "yes"}, None),
    ("persons", "pay", {}, None),  # hardly ever there
    ("persons", "ill", {"day": "5:12"}, None),
    ("families", "person.status", {}, None),
    ("families", "age", {"tenure": "owns", "n": "2:3"}, None),
    ("families", "speaks", {"age": "10:20"}, None),
    ("families", "n", {"status": "retired"}, None),
    ("families", "age >= 16,n", {}, None),
    ("families", "status", {"tenure": "rents"}, "family"),
    ("families", "speaks", {"status": "retired"}, "pair"),
    ("apart", "speaks", {}, "pair"),
]


def asked(models, name, variables, evidence, of):
    """The answer in Python, to the words of the command line."""
    found, _ = models
    known = {variable: given or None for variable, given in evidence.items()}
    return found[name].ask(variables.split(","), known, of=of)


@pytest.mark.parametrize(("name", "variables", "evidence", "of"), QUESTIONS)
class TestEverySurface:
    def test_terminal_json_and_notebook(self, models, name, variables, evidence, of):
        answer = asked(models, name, variables, evidence, of)
        command = ["query", str(models[1] / f"{name}.npz"), "--variables", variables]
        command += [part for key, given in evidence.items() for part in ("--evidence", f"{key}={given}")]
        command += [] if of is None else ["--of", of]
        text, document = (CliRunner().invoke(app, [*command, *more]).stdout for more in ([], ["--json"]))
        assert text == f"{answer}\n"
        assert json.loads(document) == json.loads(json.dumps(answer.to_dict()))
        assert html.unescape(re.sub("</?pre>", "", answer._repr_html_())) == str(answer)
        frame = answer.to_frame()
        np.testing.assert_array_equal(frame["probability"], answer.shares.ravel())
        assert all(line in text for line in answer.worth.sentences)
        for one in answer.numbers.values():
            assert one.lower is None or one.lower <= one.value <= one.upper

    @pytest.mark.skipif(NODE is None, reason="no node")
    def test_the_explorer(self, models, name, variables, evidence, of):
        """Of questions that it asks: of one variable, about whole states."""
        answer, model = asked(models, name, variables, evidence, of), models[0][name]
        linked = isinstance(model, LinkedModel)
        view = model.view("child") if linked else model
        cut = any(one.is_cut for one in answer.evidence.values())
        if answer.shares.ndim > 1 or answer.of not in (None, "child") or cut:
            pytest.skip("not a question of the page")
        place = {str(node).removeprefix("person."): v for v, node in enumerate(view)}
        weights = [(place[key], one.likely.tolist()) for key, one in answer.evidence.items()]
        (found,) = explored(view, [weights])
        v = place[variables.removeprefix("person.")]
        np.testing.assert_allclose(found["marginals"][v], answer.shares, atol=1e-9)
        if answer.interval:
            ends = np.array([answer.interval["lower"], answer.interval["upper"]]).T
            np.testing.assert_allclose(found["intervals"][v], ends, atol=1e-5)  # draws are float32
        if answer.evidence:
            assert found["held"] == answer.worth.held
        missing = [answer.worth.missing] if answer.worth.missing else []  # of a mean, which the page does not have
        assert [*missing, *found["worth"][v]] == answer.worth.sentences


def explored(view, weights) -> list[dict]:
    """What the script of the page answers."""
    task = json.dumps({"data": explorer_data(view, None, 0.9) | {"level": 0.9}, "asked": weights})
    command = [NODE, str(HARNESS), str(SCRIPT)]
    done = subprocess.run(command, input=task, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_questions_are_twenty():
    assert len(QUESTIONS) == 20


def text_of(page: str) -> str:
    body = re.sub(r"<(style|script|svg).*?</\1>", " ", page, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", body.replace("</span><wbr><span", "</span><span"))).split())


@pytest.mark.parametrize("name", ["patients", "persons", "families", "apart"])
def test_reports_have_the_same_shares_intervals_and_pairs(models, name):
    model = models[0][name]
    linked = isinstance(model, LinkedModel)
    page = text_of(linked_report_page(model) if linked else report_page(model))
    for view in [model.view("family"), model.view("child")] if linked else [model]:
        for node, answer in view.marginal_answers().items():
            if (linked and (view.of == "child") != str(node).startswith("person.")) or str(node).startswith("other "):
                continue
            for _, p in answer.rows:
                ends = f"{100 * p['lower']:.1f} to {100 * p['upper']:.1f} %"
                assert f"{100 * p['probability']:.1f} % {ends}" in page
            assert answer.worth.missing is None or answer.worth.missing in page
    if linked:
        pairs = [model.ask(f"person.{column}", of="pair") for column in model.linked.child]
        hardly = all(answer.worth.strangers for answer in pairs)
        assert ("By no column" in page) == hardly
        lines = [line for answer in pairs for line in answer.worth.sentences if not hardly or "strangers" not in line]
        assert lines or hardly if name == "apart" else True
        assert all(line in page for line in lines)
    elif model.posterior.discrepancy is not None:
        pairs = model.ask(list(model.nodes)).worth.unmeasured
        assert pairs and all(f"{p.one} – {p.other} {100 * p.error:.2f} % no" in page for p in pairs)


def test_a_soft_likelihood_is_said_with_its_shares(models):
    model = models[0]["patients"]
    answer = model.ask("ill", {"smoker": {"yes": 0.8, "no": 0.2}})
    assert answer.evidence["smoker"].cells == {"no": 0.2, "yes": 0.8}
    assert answer.to_dict()["counted"] == {"smoker": [["no", 0.2], ["yes", 0.8]]}
    assert answer.worth.share == pytest.approx(model.query("smoker").values @ [0.2, 0.8])
    if NODE is not None:
        names = list(model)
        (found,) = explored(model, [[(names.index("smoker"), [0.2, 0.8])]])
        np.testing.assert_allclose(found["marginals"][names.index("ill")], answer.shares, atol=1e-9)


def test_what_cannot_be_is_refused_alike(models):
    found, folder = models
    with pytest.raises(ImpossibleEvidence):
        found["persons"].ask("pay", {"ill": "yes", "day": "20:29"})
    command = ["query", str(folder / "persons.npz"), "--variables", "pay", "--evidence", "ill=yes"]
    told = CliRunner().invoke(app, [*command, "--evidence", "day=20:29"])
    assert told.exit_code == 2 and "the model gives it the probability 0" in told.output
    if NODE is not None:
        (answer,) = explored(found["persons"], [[(0, [0.0, 1.0]), (1, [0.0, 0.0, 1.0])]])
        assert answer == {"probability": 0}


def test_an_interval_of_a_mean_is_wider_where_nothing_was_measured(models):
    """With what is known, by what its own interval is wider than a share's of which the table was measured."""
    model = models[0]["patients"]
    (pair,) = model.ask("age", {"region": "N"}).worth.unmeasured
    assert {pair.one, pair.other} == {"age", "region"}
    free, tied = (model.ask("age", known).numbers for known in ({"region": "N"}, {}))
    assert free["mean"].upper - free["mean"].lower > tied["mean"].upper - tied["mean"].lower
    assert free[0.25].upper - free[0.25].lower >= tied[0.25].upper - tied[0.25].lower


def test_a_mean_reaches_from_the_least_to_the_most_of_what_a_range_cuts(models):
    model = models[0]["patients"]
    answer = model.ask("age", {"age": "35:50"})
    assert 35 <= answer.numbers["mean"].lower < answer.numbers["mean"].value < answer.numbers["mean"].upper <= 50
    # All that is cut of the first cell and nothing of the other, and the other way round.
    assert answer.numbers["mean"].lower < 39 and answer.numbers["mean"].upper > 46
