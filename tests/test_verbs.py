"""The five verbs: what each takes of one table and of linked ones, and that the command line says what they say."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import re
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import pgmpy_dp
from pgmpy_dp import (
    Budget,
    Ledger,
    PrivateLinkedTables,
    PrivateTable,
    Schema,
    check,
    discover,
    learn,
    learn_linked,
    plan,
    publish_if,
    verbs,
)
from pgmpy_dp.estimators import CollectiveMAP, NaiveMLE, PrivateChowLiu, PrivateNetwork
from pgmpy_dp.learning.graph_base import graph_on
from pgmpy_dp.linked import made_up_families
from pgmpy_dp.models.model_score import preview_score
from pgmpy_dp.tables.preview import preview
from pgmpy_dp.tables.publishing.publish_if import preview_publish_if
from tests.code_lines import parsed
from tests.test_cli import run

ROOT = Path(__file__).parents[1]
VERBS = (check, discover, learn, plan, publish_if)
BUDGET = Budget(epsilon=2.0, delta=1e-8)
SPENT = "--epsilon 2 --delta 1e-8"
STATES = {"a": ["x", "y"], "b": ["u", "v", "w"], "c": ["no", "yes"]}
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame({"a": RNG.choice(["x", "y"], 900), "b": RNG.choice(["u", "v", "w"], 900)})
FRAME["c"] = np.where((FRAME["a"] == "x") ^ (RNG.random(900) < 0.1), "no", "yes")
HOMES, PERSONS, FAMILIES = made_up_families(300, most=3, random_state=0)
SEEDED = {"random_state": 0}
pytestmark = [
    pytest.mark.filterwarnings("ignore::pgmpy_dp.GuessedTypesWarning"),
    pytest.mark.filterwarnings("ignore::pgmpy_dp.FewRecordsWarning"),
    pytest.mark.filterwarnings("ignore::pgmpy_dp.NoEdgeWarning"),
]


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Schema(STATES).to_json("s.json")
    FAMILIES.to_json("linked.json")
    FRAME.to_csv("r.csv", index=False)
    HOMES.to_csv("h.csv", index=False)
    PERSONS.to_csv("p.csv", index=False)
    Path("yes.json").write_text(json.dumps([{"test": "distance", "at_most": 0.9}]))


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.__name__)
def test_a_signature_says_all_that_a_verb_takes(verb):
    kinds = {parameter.kind for parameter in inspect.signature(verb).parameters.values()}
    assert not kinds & {inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL}
    with pytest.raises(TypeError, match="unexpected keyword argument 'optimize'"):
        verb(FRAME, BUDGET, STATES, optimize="pairs")


def test_plan_and_publish_if_take_what_learn_takes():
    learned, planned, tested = (set(inspect.signature(verb).parameters) for verb in (learn, plan, publish_if))
    of_the_data = {"df", "children", "n_records", "unit", "draws"}
    known = {"public", "public_from"}  # they move no noise, which a plan tells; models that are tested take none
    assert learned - of_the_data - known <= planned
    assert learned - {"children", "key", "siblings"} - known <= tested


@pytest.mark.parametrize(
    ("options", "how"),
    [
        ("", {}),
        ("--target c", {"target": "c"}),
        ("--workload a,c=2 --max-order 2", {"workload": {("a", "c"): 2.0}, "max_order": 2}),
        ("--structure chow-liu", {"structure": "chow-liu"}),
        ("--structure independent --simulations 0", {"structure": "independent", "simulations": 0}),
        ("--edges a-c,b-c --simulations 0", {"graph": graph_on("abc", ["ac", "bc"]), "simulations": 0}),
        (
            "--edges a-c --estimator naive-mle --simulations 0",
            {"graph": graph_on("abc", ["ac"]), "estimator": "naive-mle", "simulations": 0},
        ),
        ("--rows-per-unit 3 --adjacency replace_one", {"rows_per_unit": 3, "adjacency": "replace_one"}),
        ("--publish-if yes.json --test-share 0.2", {"criteria": "yes.json", "test_share": 0.2}),
        ("--width 1 --alpha 0.1", {"width": 1.0, "alpha": 0.1}),
    ],
)
def test_the_command_line_says_what_a_plan_says(files, options, how):
    found = plan(Schema(STATES), BUDGET, 900, **how)
    told = json.loads(run(f"plan --schema s.json {SPENT} --n 900 {options} --json").stdout)
    assert told == json.loads(json.dumps(found.to_dict())) and len(told["tables"]) == len(found.table)
    assert run(f"plan --schema s.json {SPENT} --n 900 {options}").stdout == f"{found}\n"
    assert found._repr_html_().startswith("<pre>") and "expected error" in str(found)


def test_a_plan_of_linked_tables_and_of_scores(files):
    found = plan(FAMILIES, BUDGET, 300)
    told = json.loads(run(f"plan --schema linked.json {SPENT} --n 300 --json").stdout)
    assert told == json.loads(json.dumps(found.to_dict())) and found.details.siblings == told["siblings"]
    run(f"fit r.csv --schema s.json {SPENT} --out m.npz")
    found = plan("m.npz", BUDGET, 900, each=True, level=0.5)
    told = json.loads(run(f"score m.npz {SPENT} --n 900 --each --level 0.5 --json").stdout)
    assert told == json.loads(json.dumps(found.to_dict())) and "interval about" in str(found)


def test_a_plan_has_the_numbers_of_what_it_is_made_of():
    graph, criteria = [("a", "c"), ("b",)], [{"test": "distance", "at_most": 0.1}]
    alone = preview(STATES, graph, BUDGET, 900, n_simulations=2, random_state=1)
    found = plan(STATES, BUDGET, 900, graph=graph, simulations=2, random_state=1)
    assert found.table["learned"].tolist() == alone.table["fitted"].tolist() and str(found.details) == str(alone)
    margins = preview_publish_if(criteria, 900, BUDGET, STATES, test_share=0.3)
    assert plan(STATES, BUDGET, 900, criteria=criteria, test_share=0.3).facts["publish_if"] == margins.to_dict(
        "records"
    )
    model = learn(FRAME, BUDGET, STATES, **SEEDED).model_
    pd.testing.assert_frame_equal(
        plan(model, BUDGET, 900, workload=[("a", "b")]).table, preview_score(model, 900, BUDGET, workload=[("a", "b")])
    )
    # Tables that are measured in any case are in the plan of a graph that is learned.
    assert "a - b" in plan(STATES, BUDGET, 900, required_edges=[("a", "b")]).table.index


@pytest.mark.parametrize(
    ("how", "alone"),
    [
        ({}, lambda: PrivateNetwork(2.0, 1e-8, None, STATES, **SEEDED).fit(FRAME)),
        ({"target": "c"}, lambda: PrivateNetwork(2.0, 1e-8, None, STATES, target="c", **SEEDED).fit(FRAME)),
        ({"structure": "chow-liu"}, lambda: PrivateChowLiu(2.0, 1e-8, None, STATES, **SEEDED).fit(FRAME)),
        (
            {"graph": nx.Graph([("a", "c")]), "estimator": "naive-mle"},
            lambda: NaiveMLE(2.0, 1e-8, None, STATES, **SEEDED).fit(nx.Graph([("a", "c")]), FRAME),
        ),
        (
            {"graph": [("a", "b", "c")], "estimator": CollectiveMAP(noise="laplace")},
            lambda: CollectiveMAP(2.0, 1e-8, None, STATES, noise="laplace", cliques=[("a", "b", "c")], **SEEDED).fit(
                nx.complete_graph(["a", "b", "c"]), FRAME
            ),
        ),
        (
            {"structure": "independent"},
            lambda: CollectiveMAP(2.0, 1e-8, None, STATES, **SEEDED).fit(nx.empty_graph(["a", "b", "c"]), FRAME),
        ),
    ],
)
def test_learn_is_the_estimator_of_what_was_asked(how, alone):
    found, expected = learn(FRAME, BUDGET, STATES, **how, **SEEDED), alone()
    assert type(found) is type(expected) and set(found.model_.edges) == set(expected.model_.edges)
    for value, other in zip(found.release_.values, expected.release_.values, strict=True):
        np.testing.assert_array_equal(value, other)
    again = verbs.refit(found.release_, estimator=how.get("estimator"))
    assert again.release_.values[0].tolist() == found.release_.values[0].tolist()


def test_linked_tables_are_learned_and_checked_by_the_same_verbs():
    options = {"n_rounds": 2, "siblings": 0, **SEEDED}
    found = learn(HOMES, BUDGET, FAMILIES, children=PERSONS, draws=2, **options)
    expected = learn_linked(HOMES, PERSONS, BUDGET, FAMILIES, **options)
    for value, other in zip(found.release_.values, expected.release_.values, strict=True):
        np.testing.assert_array_equal(value, other)
    assert found.model_.posterior is not None
    private = PrivateLinkedTables(HOMES, PERSONS, FAMILIES, ledger=Ledger(BUDGET, adjacency="add_remove"))
    one, two = check(private, Budget(epsilon=0.5), **{}), check(HOMES, BUDGET, FAMILIES, children=PERSONS, **SEEDED)
    assert one.linked == two.linked == FAMILIES and len(private.ledger.entries) == 1
    visits = PERSONS[["household", "sex"]]
    of_one_file = {"sex": list(FAMILIES.child["sex"])}
    assert plan(of_one_file, BUDGET, 300, key="household").details.linked.most == 8
    assert learn(visits, BUDGET, of_one_file, key="household", n_rounds=1, **SEEDED).privacy_.unit == "household"


def test_whatever_is_found_shows_itself(tmp_path):
    variables = {"parent": {"tenure": "categories"}, "child": {"sex": "categories"}, "key": "household", "most": 3}
    ledger = Ledger.open(tmp_path / "l.json", Budget(epsilon=9.0, delta=1e-6), adjacency="add_remove")
    table = PrivateTable(FRAME, STATES, ledger=ledger)
    shown = [
        check(table, Budget(epsilon=1.0)),
        check(HOMES, BUDGET, FAMILIES, children=PERSONS),
        discover(FRAME, {"a": "categories"}, BUDGET),
        discover(HOMES, variables, BUDGET, children=PERSONS),
        plan(STATES, BUDGET, 900),
        plan(FAMILIES, BUDGET, 300),
        learn(table, Budget(epsilon=1.0)),
        learn(table, Budget(epsilon=1.0), graph=[("a", "c"), ("b",)]),
        learn(HOMES, BUDGET, FAMILIES, children=PERSONS, n_rounds=1),
        publish_if(table, Budget(epsilon=1.0), [{"test": "distance", "at_most": 0.9}]),
        publish_if(table, Budget(epsilon=1.0), [{"test": "distance", "at_most": 1e-9}] * 40, again=True),
    ]
    for found in shown:
        document = json.loads(json.dumps(found.to_dict()))
        assert document and str(found) != repr(found) and found._repr_html_().startswith("<pre>"), type(found)
        assert not str(found).startswith("<") and len(str(found).splitlines()) >= 1
    assert [len(json.loads(json.dumps(found.to_dict()))) for found in shown[-1:]] == [1]
    fitted = shown[6]
    assert fitted._repr_mimebundle_()["text/plain"] == str(fitted) and "between 3 variables" in str(fitted)
    assert str(PrivateNetwork()) == repr(PrivateNetwork())  # nothing was learned


KINDS = {
    verbs.LINKED: lambda how: learn(HOMES, BUDGET, FAMILIES, children=PERSONS, **how),
    verbs.LEARNED: lambda how: learn(FRAME, BUDGET, STATES, **how),
    verbs.TREE: lambda how: learn(FRAME, BUDGET, STATES, structure="chow-liu", **how),
    verbs.GIVEN: lambda how: learn(FRAME, BUDGET, STATES, structure="independent", **how),
}
TAKEN = set(inspect.signature(learn).parameters)
REFUSED = [
    (kind, name) for kind in KINDS for name, (kinds, _) in verbs.FOR.items() if kind not in kinds and name in TAKEN
]


@pytest.mark.parametrize(("kind", "name"), REFUSED)
def test_what_an_argument_is_not_for_is_refused_before_anything_is_spent(monkeypatch, kind, name):
    if name in ("children", "key"):
        return  # they say that tables are linked
    monkeypatch.setattr(Ledger, "charge", lambda *_args, **_given: pytest.fail("charged"))
    with pytest.raises(TypeError, match=f"^{name}='zz': ") as refused:
        KINDS[kind]({name: "zz"})
    assert refused.value.name == name and refused.value.remedy in str(refused.value)


def test_the_table_has_every_argument_of_the_verbs():
    """What is for all kinds, or of the data, is not in it: it is refused by what it is."""
    for_all = {"adjacency", "n_records", "random_state", "draws", "df", "schema", "budget", "n", "test_share"}
    for_all |= {"ledger", "again"}
    taken = {name for verb in (learn, plan, publish_if) for name in inspect.signature(verb).parameters}
    assert taken - for_all == set(verbs.FOR) - {"impossible"}
    assert set(verbs._OF_LINKED) <= set(verbs.FOR)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("fit r.csv --schema s.json --epsilon 1 --max-order 1", "--max-order=1 is out of range; pass"),
        ("fit r.csv --schema s.json --epsilon 1 --draws 1", "--draws is '1': use 2 or more"),
        ("fit r.csv --schema s.json --epsilon 0", "--epsilon=0.0 is out of range"),
        ("plan --schema s.json --epsilon 1 --n 9 --edges a-c --target b", "--target is 'b': it is for a graph that"),
        (
            "plan --schema s.json --epsilon 1 --n 9 --edges a-c --structure learn",
            "--structure is 'learn': the graph was",
        ),
        (
            "plan --schema linked.json --epsilon 1 --n 9 --edges a-c",
            "--edges is 'a-c': linked tables are learned in one",
        ),
        (
            "plan --schema linked.json --epsilon 1 --n 9 --edges-file r.csv",
            "--edges-file is 'r.csv': linked tables are",
        ),
        ("plan --schema linked.json --epsilon 1 --n 9 --publish-if yes.json", "--publish-if is 'yes.json': models of"),
        (
            "fit r.csv --schema s.json --epsilon 1 --publish-if yes.json --ledger l.json --missing-at-random b=a",
            "drives",
        ),
    ],
)
def test_an_error_names_the_option(files, command, message):
    told = run(command + (" --out m.npz" if command.startswith("fit") else ""), 2).stderr
    if message != "drives":
        assert message in told and "_" not in told.replace("'replace_one'", "")
    assert not Path("m.npz").exists()


def test_the_command_line_plans_and_chooses_nothing():
    """Of what learns, plans and tests it takes the verbs, and what it may show or read."""
    own = {
        "pgmpy_dp.tables",
        "pgmpy_dp.estimators",
        "pgmpy_dp.private.operators",
        "pgmpy_dp.private.curator",
        "pgmpy_dp.theory",
    }
    found = {}
    for path in (ROOT / "pgmpy_dp" / "cli").glob("*.py"):
        nodes = [node for node in ast.walk(parsed(path)) if isinstance(node, ast.ImportFrom)]
        taken = {node.module for node in nodes if any(f"{node.module}.".startswith(f"{part}.") for part in own)}
        found |= {path.stem: sorted(taken)} if taken else {}
    assert found == {"discover": ["pgmpy_dp.tables.category_search"]}  # the word for categories


OLD = (
    "ApproxDP Budget BudgetExceeded Date DroppedRecordsWarning FewRecordsWarning GuessedTypesWarning "
    "LargeDeltaWarning NoEdgeWarning Ledger LinkedModel LinkedSchema MarkovNetwork Number PrivateGraph "
    "PrivateLinkedTables PrivateSequences PrivateTable PrivateVectors PureDP Release Schema TextFile "
    "VariableElimination ZCDP __version__ check_linked check_schema combine_synthetic discover discover_linked "
    "fit_in_place learn learn_linked list_estimators list_metrics plan_linked preview preview_publish_if "
    "preview_score publish_if score_model write_evidence "
)


def test_a_name_of_0_3_is_there_or_in_the_table():
    page = (ROOT / "docs" / "upgrading.md").read_text()
    section = page[page.index("## From 0.3") : page.index("## From 0.2")]
    rows = re.findall(r"^\| `(\w+)[^`]*`(\*?) \| `(\w+)", section[: section.index("**Ask by")], flags=re.MULTILINE)
    stays = {name for name, star, _ in rows if star}
    gone = set(OLD.split()) - set(pgmpy_dp.__all__)
    assert gone == {name for name, _, _ in rows} and len(OLD.split()) == 43
    assert stays == set(pgmpy_dp._OLD) and all(callable(getattr(pgmpy_dp, name)) for name in stays)
    assert all(hasattr(pgmpy_dp, name) == (name in stays) for name, _, _ in rows)
    assert {now for _, _, now in rows} == {"check", "discover", "learn", "plan"}
    linked = importlib.import_module("pgmpy_dp.linked")
    of_linked = {"LinkedModel", "LinkedSchema", "PrivateLinkedNetwork", "PrivateLinkedTables", "made_up_families"}
    assert set(linked.__all__) == of_linked
