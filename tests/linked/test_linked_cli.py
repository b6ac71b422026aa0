"""The command line of linked tables: two files in, a model, two files out, and what is refused before the charge."""

from __future__ import annotations

import html
import json
import os
import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from pgmpy_dp import Ledger, Number, Schema
from pgmpy_dp.cli import app
from pgmpy_dp.linked import LinkedModel, LinkedSchema, made_up_families
from pgmpy_dp.reporting.words import share_text, size_words
from tests.linked.families import HOUSEHOLDS, PART, PERSONS

NEEDLE = "needle-9d1f"
FIT = "fit --parents households.csv --children persons.csv --schema linked.json --epsilon 20 --delta 1e-9"

STATUS = ["child", "employed", "retired", "other"]
RULES = ["age < 16 -> status = child", "age >= 16 -> status != child"]


def run(command: str, code: int = 0):
    """Result of one command line in this process; what it prints never has a record's cell."""
    result = CliRunner().invoke(app, shlex.split(command))
    assert result.exit_code == code, result.output + repr(result.exception)
    assert NEEDLE not in result.output
    return result


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two files, their schema, one file of visits, and models of both; among the records are cells of no schema."""
    place = tmp_path_factory.mktemp("linked")
    before = Path.cwd()
    households, persons, _ = made_up_families(400, most=3, random_state=0)
    age = Number(0, 99, cuts=[16, 50], resolution=1, missing="drop")
    child = Schema({"age": age, "status": STATUS, "speaks": ["first", "second"]}, impossible=RULES)
    names = ("household", "person")
    schema = LinkedSchema({"tenure": ["owns", "rents"]}, child, "household", 3, counts=["age >= 16"], names=names)
    persons.loc[[3, 5], "status"] = NEEDLE
    households.to_csv(place / "households.csv", index=False)
    persons.to_csv(place / "persons.csv", index=False)
    schema.to_json(place / "linked.json")
    rng = np.random.default_rng(0)
    visits = pd.DataFrame({"patient": rng.integers(0, 200, 500), "ill": rng.choice(["no", "yes"], 500)})
    visits.to_csv(place / "visits.csv", index=False)
    os.chdir(place)
    try:
        run('schema --variable "ill=no,yes" --out visits.json')
        told = run(f"{FIT} --out model.npz --release tables.npz --ledger ledger.json --json")
        (place / "told.json").write_text(told.stdout)
        run("fit --children visits.csv --unit patient --schema visits.json --epsilon 20 --out visits.npz")
    finally:
        os.chdir(before)
    return place


@pytest.fixture(autouse=True)
def there(folder, monkeypatch):
    monkeypatch.chdir(folder)


def test_a_fit_is_charged_once_and_says_what_is_promised_to_whom():
    document = json.loads(Path("told.json").read_text())
    assert document["columns"] == {
        "household": ["tenure", "age >= 16", "n"],
        "person": ["age", "status", "speaks"],
    }
    assert abs(document["n_records"] - 400) < 40 and document["key"] == "household"
    entries = Ledger.load("ledger.json").entries
    assert len(entries) == 1 and entries[0].unit == "household"
    assert document["guarantee_of_a_child"]["epsilon"] > 20 == document["budget"]["epsilon"]


def test_the_ledger_refuses_a_second_fit(tmp_path):
    refused = run(f"{FIT} --ledger ledger.json --out {tmp_path}/second.npz", 3)
    assert refused.stdout == "" and not (tmp_path / "second.npz").exists()
    assert len(Ledger.load("ledger.json").entries) == 1


def test_two_files_are_drawn_whose_keys_match(tmp_path):
    told = run(f"sample model.npz --n 300 --out-parents {tmp_path}/p.csv --out-children {tmp_path}/c.tsv.gz")
    assert "300 of household with" in told.stdout
    parents, children = pd.read_csv(tmp_path / "p.csv"), pd.read_csv(tmp_path / "c.tsv.gz", sep="\t")
    assert list(parents) == ["household", "tenure", "n", "age >= 16"]
    assert list(children) == ["household", "age", "status", "speaks"]
    assert parents["household"].tolist() == list(range(300)) and parents["n"].sum() == len(children)
    assert (children.groupby("household").size().reindex(range(300), fill_value=0) == parents["n"].to_numpy()).all()
    assert ((children["age"] < 16) == (children["status"] == "child")).all()


def test_files_hold_what_the_model_draws(tmp_path):
    run(f"sample model.npz --n 50 --out-parents {tmp_path}/p.csv --out-children {tmp_path}/c.csv --random-state 3")
    for frame, file in zip(LinkedModel.load("model.npz").sample(50, 3), ("p.csv", "c.csv"), strict=True):
        pd.testing.assert_frame_equal(frame, pd.read_csv(tmp_path / file), check_dtype=False)


def test_one_file_with_several_rows_a_person(tmp_path):
    run(f"sample visits.npz --n 40 --out-children {tmp_path}/v.csv")
    drawn = pd.read_csv(tmp_path / "v.csv")
    assert list(drawn) == ["patient", "ill"] and set(drawn["patient"]) == set(range(40))
    assert "linked by patient" in run("info visits.npz").stdout


@pytest.mark.parametrize(
    ("how", "ask"),
    [
        (
            "--variables person.status --evidence household.tenure=owns --evidence n=2:3",
            lambda m: m.query("status", {"tenure": "owns", "n": (2, 3)}),
        ),
        (
            "--variables speaks --evidence age=20:40 --of family",
            lambda m: m.query("speaks", {"age": "20:40"}, of="family"),
        ),
        ("--variables speaks --of pair", lambda m: m.query("speaks", of="pair")),
        ("--variables 'age >= 16' --evidence 'n=2'", lambda m: m.query("age >= 16", {"n": 2})),
        ("--variables n --evidence 'age >= 16=1'", lambda m: m.query("n", {"age >= 16": 1})),
    ],
)
def test_questions_are_answered_as_by_the_model(how, ask):
    told = json.loads(run(f"query model.npz {how} --json").stdout)
    np.testing.assert_allclose(
        [row["probability"] for row in told["table"]], ask(LinkedModel.load("model.npz")).values.ravel()
    )


def test_rules_on_counts_and_of_one_table(tmp_path):
    tables = "--parents households.csv --children persons.csv --key household --most 3 --names household,person"
    columns = f'--variable tenure=owns,rents --variable "status={",".join(STATUS)}" --number "age=0:99:1 missing drop"'
    rules = '--impossible "count(status = child) < n" --impossible "age < 16 -> status = child"'
    told = run(f"schema {tables} {columns} {rules} --out {tmp_path}/s.json").stdout
    assert "lack their states: region, sex, speaks" in told
    content = json.loads((tmp_path / "s.json").read_text())
    assert content["impossible"] == ["count(status = child) < n"] and content["version"] == 2
    assert content["child"]["impossible"] == ["age < 16 -> status = child"] and "impossible" not in content["parent"]
    found = f"{tables} {columns} --categories speaks {rules} --epsilon 5 --delta 1e-6 --out {tmp_path}/d.json"
    run(f"discover {found}")
    linked = LinkedSchema.from_json(tmp_path / "d.json")
    assert linked.impossible == ("count(status = child) < n",) and len(linked.child.impossible) == 1
    learned = f"fit --parents households.csv --children persons.csv --schema {tmp_path}/d.json --epsilon 1 --quiet"
    run(f"{learned} --out {tmp_path}/m.npz")
    assert "  count(status = child) < n" in run(f"info {tmp_path}/m.npz").stdout
    run(f"sample {tmp_path}/m.npz --n 200 --out-parents {tmp_path}/p.csv --out-children {tmp_path}/c.csv")
    persons = pd.read_csv(tmp_path / "c.csv")
    minors = (persons["status"] == "child").groupby(persons["household"]).agg(["sum", "size"])
    assert (minors["sum"] < minors["size"])[minors["size"] < 3].all()
    run(f"report {tmp_path}/m.npz --out {tmp_path}/r.html")
    assert "By rule: count(status = child) &lt; n" in (tmp_path / "r.html").read_text()


def test_rules_on_a_child_and_its_parent(tmp_path):
    """In a schema by options, and in what was released before: families that are drawn obey."""
    rng = np.random.default_rng(0)
    built = rng.integers(1900, 2000, 300)
    homes = pd.DataFrame({"home": np.arange(300), "built": built})
    owner = rng.integers(0, 300, 700)
    persons = pd.DataFrame({"home": owner, "moved": np.minimum(built[owner] + rng.integers(0, 60, 700), 2020)})
    homes.to_csv(tmp_path / "homes.csv", index=False)
    persons.to_csv(tmp_path / "persons.csv", index=False)
    files = f"--parents {tmp_path}/homes.csv --children {tmp_path}/persons.csv"
    numbers = " ".join(f'--number "{name}=1900:2020:1 cuts 1920,1950,1980"' for name in ("built", "moved"))
    columns = f"--key home --most 3 {numbers}"
    run(f'schema {files} {columns} --impossible "built <= moved" --out {tmp_path}/ruled.json')
    assert LinkedSchema.from_json(tmp_path / "ruled.json").impossible == ("built <= moved",)
    run(f"schema {files} {columns} --out {tmp_path}/s.json")
    fit = f"fit {files} --schema {tmp_path}/s.json --epsilon 0.5 --delta 1e-6 --quiet"
    run(f"{fit} --out {tmp_path}/m.npz --release {tmp_path}/t.npz")
    run(f'refit {tmp_path}/t.npz --impossible "built <= moved" --out {tmp_path}/again.npz')
    broken = {}
    for model in ("m", "again"):
        run(f"sample {tmp_path}/{model}.npz --n 300 --out-parents {tmp_path}/p.csv --out-children {tmp_path}/c.csv")
        drawn = pd.read_csv(tmp_path / "c.csv").merge(pd.read_csv(tmp_path / "p.csv"), on="home")
        broken[model] = (drawn["built"] > drawn["moved"]).mean()
        (tmp_path / "p.csv").unlink(), (tmp_path / "c.csv").unlink()
    assert broken["m"] > 0.05 and broken["again"] == 0.0
    assert "  built <= moved" in run(f"info {tmp_path}/again.npz").stdout
    told = run(f'refit {tmp_path}/t.npz --impossible "built > moved" --out {tmp_path}/no.npz', 2).stderr
    assert "--impossible" in told and "has > between two variables" in told


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("count(status = baby) = 1", "has baby, which is not a state of 'status'"),
        ("tenure = owns -> status = child", "nor compares a number of a child with one of its parent"),
        ("speaks = first -> status = child", "speaks"),
        ("count(tenure = owns) = 1", "names 'tenure', which is not a variable"),
    ],
)
def test_rules_that_cannot_be_kept_are_refused(rule, words, tmp_path):
    tables = "--parents households.csv --children persons.csv --key household --most 3"
    columns = f'--variable tenure=owns,rents --variable "status={",".join(STATUS)}"'
    refused = run(f'schema {tables} {columns} --impossible "{rule}" --out {tmp_path}/s.json', 2)
    assert words in refused.stderr
    assert not (tmp_path / "s.json").exists()


def test_what_a_model_is(tmp_path):
    told = run("info model.npz").stdout
    assert "One person alone" in told and "all rows of one 'household'" in told and "age >= 16 -> status" in told
    document = json.loads(run("info model.npz --json").stdout)
    assert document["linked"]["most"] == 3 and document["guarantee_of_a_child"]["epsilon"] > 20
    assert "P(speaks)" in run("query model.npz --variables speaks").stdout


def test_a_page_says_what_is_promised_to_whom_first(tmp_path):
    run(f"report model.npz --out {tmp_path}/r.html --title Homes")
    page, model = (tmp_path / "r.html").read_text(), LinkedModel.load("model.npz")
    first = page.index("is promised (20, 1e-09)-DP; one person alone")
    sections = [page.index(f'<section id="{part}"') for part in ("guarantee", "parents", "children", "pairs", "trust")]
    assert sections == sorted(sections) and sections[0] < first < sections[1]
    assert page.index("A random household</h2>") < page.index("A random person</h2>")
    assert f"while the others stay, is promised {model.privacy_of_a_child}." in page
    assert f'<td class="n">{share_text(model.query("speaks", of="pair").values.trace())}</td>' in page
    assert "By rule: age &lt; 16 -&gt; status = child" in page and "http://" not in page.replace(
        "http://www.w3.org", ""
    )
    assert "Homes" in page and page.count("<script") == 2  # what depends on what, and what is done with it
    # Whose a column is, shares in one way, and how many were learned from.
    of_parents, of_children = model.columns
    names = [f"household.{name}" + " (number of person rows)" * (name == "n") for name in of_parents]
    titles = [html.unescape(title) for title in re.findall(r"<h3 [^>]*>(.*?)</h3>", page)]
    assert titles == [*names, *(f"person.{name}" for name in of_children)] and "n" in of_parents
    assert not re.search(r"\d\.\d{3,} %", page)
    assert size_words(model.view("family")) in page
    run(f"explore model.npz --out {tmp_path}/e.html")
    explorer, size = (
        (tmp_path / "e.html").read_text(),
        "household.n (number of person rows in the household of a random person)",
    )
    assert size in explorer and f"{len(model.explored())} variables. {size_words(model.explored())}" in explorer
    assert (
        "All is of a random person: a household counts for each of its person rows." in explorer
        and "--draws" not in size_words(model.explored())
    )


def test_it_is_learned_again_from_its_noisy_tables(tmp_path):
    run(f"refit tables.npz --out {tmp_path}/again.npz")
    again, model = LinkedModel.load(tmp_path / "again.npz"), LinkedModel.load("model.npz")
    np.testing.assert_allclose(again.query("status").values, model.query("status").values)
    assert "leave it out" in run(f"refit tables.npz --out {tmp_path}/b.npz --estimator naive-mle", 2).stderr


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("fit --epsilon 1 --schema linked.json", "DATA is missing"),
        ("fit persons.csv --epsilon 1 --schema linked.json", "fit and check take it with --parents and --children"),
        (f"{FIT} --structure learn", "--structure is 'learn'"),
        (f"{FIT} --draws 1", "use 2 or more"),
        (f"{FIT} --unit household", "--unit is 'household'"),
        (f"{FIT} --rows-per-unit 2", "--rows-per-unit is '2'"),
        (f"{FIT} --strip", "write it into that file"),
        ("fit --parents households.csv --epsilon 1 --schema linked.json", "--children is missing"),
        ("fit --children persons.csv --epsilon 1 --schema linked.json", "--parents is missing"),
        ("fit --children visits.csv --epsilon 1 --schema visits.json", "pass --unit too"),
        ("fit --children visits.csv --epsilon 1 --schema visits.csv", "not a schema of linked tables"),
        ("fit --children visits.csv --epsilon 1", "--schema is missing"),
        ("fit --children nothing.csv --unit patient --epsilon 1 --schema visits.json", "--children is 'nothing.csv'"),
        ("fit --children households.csv --unit patient --epsilon 1 --schema visits.json", "child: "),
        ("fit --parents visits.csv --children persons.csv --epsilon 1 --schema linked.json", "household: "),
        (f"{FIT} --adjacency replace_one", "n_records"),
    ],
)
def test_what_is_refused_before_the_charge(tmp_path, command, message):
    told = run(
        f"{command} --out {tmp_path}/m.npz --ledger {tmp_path}/l.json --budget-epsilon 30 --budget-delta 1e-8", 2
    )
    assert message in " ".join(told.stderr.split()), told.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("sample model.npz --n 9 --out {0}/s.csv", "pass --out-parents and --out-children"),
        ("sample model.npz --n 9 --out-children {0}/c.csv", "--out-parents is missing"),
        ("sample model.npz --n 9 --out-parents {0}/c.csv", "--out-children is missing"),
        ("sample model.npz --n 9 --out-parents {0}/c.csv --out-children {0}/c.csv", "the same file"),
        ("sample model.npz --n 9 --out-parents {0}/p.csv --out-children {0}/c.doc", "--out-children is"),
        ("sample model.npz --n 9 --out-parents {0}/p.csv --out-children {0}/c.csv --copies 3", "--copies is '3'"),
        ("sample model.npz --n 9 --out-parents {0}/p.csv --out-children {0}/c.csv --method independent", "--method"),
        ("query model.npz --variables height", "--variables is 'height': name one of"),
        ("query model.npz --variables tenure --of pair", "not columns of children"),
        (
            "query model.npz --variables speaks --evidence n=9",
            "--evidence is 'n=9': variable 'n' is given as '9', which is not a state of it; use one of the states "
            "0 to 3, or a range",
        ),
        (
            "query model.npz --variables speaks --evidence n=many",
            "one of the states 0 to 3, or a range of them, low:high",
        ),
        (
            "query model.npz --variables speaks --evidence height=9",
            "--evidence is 'height': name one of the variables tenure,",
        ),
        ("query model.npz --variables speaks --counts", "shares alone"),
        ("score model.npz persons.csv --epsilon 1", "scores compare single rows with records; fit or refit it with"),
        ("refit model.npz --out {0}/m.npz", "it is a model"),
        ("report model.npz --compare model.npz --out {0}/r.html", "tells nothing of it"),
    ],
)
def test_what_a_model_refuses(tmp_path, command, message):
    told = run(command.format(tmp_path), 2)
    assert message in " ".join(told.stderr.split()), told.stderr
    assert not list(tmp_path.iterdir())


def test_damage_is_said(tmp_path):
    content = bytearray(Path("model.npz").read_bytes())
    content[-len(content) // 4] ^= 1
    (tmp_path / "m.npz").write_bytes(bytes(content))
    assert "saved LinkedModel" in run(f"info {tmp_path}/m.npz", 2).stderr


def test_intervals_are_those_of_the_model_s_draws(tmp_path):
    child = Schema({"age": Number(0, 99, cuts=[16, 50], missing="drop"), "speaks": ["first", "second"]})
    few = LinkedSchema({"tenure": ["owns", "rents"]}, child, "household", 3, names=("household", "person"))
    few.to_json(tmp_path / "few.json")
    fit = f"fit --parents households.csv --children persons.csv --schema {tmp_path}/few.json --rho 1"
    run(f"{fit} --release {tmp_path}/t.npz --out {tmp_path}/f.npz")
    run(f"refit {tmp_path}/t.npz --out {tmp_path}/m.npz --draws 3")
    of_pairs = json.loads(run(f"query {tmp_path}/m.npz --variables speaks --of pair --level 0.5 --json").stdout)
    frame = LinkedModel.load(tmp_path / "m.npz").ask("speaks", of="pair", level=0.5).to_frame()
    assert np.allclose([[row["lower"], row["upper"]] for row in of_pairs["table"]], frame[["lower", "upper"]])
    told = run(f"query {tmp_path}/m.npz --variables speaks,tenure,n --evidence age=30").stdout
    assert "90 % interval" in told and "Nothing vouches for these intervals: it is about 4 variables" in told
    run(f"report {tmp_path}/m.npz --level 0.5 --out {tmp_path}/r.html")
    assert "about 50 % of the intervals" in (tmp_path / "r.html").read_text()
    run(f"explore {tmp_path}/m.npz --draws 2 --level 0.5 --out {tmp_path}/x.html")
    assert "other person.speaks" in (tmp_path / "x.html").read_text()


class TestBeforeAFit:
    @pytest.fixture(autouse=True)
    def there(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        HOUSEHOLDS.to_csv("h.csv", index=False)
        PERSONS.to_csv("p.csv", index=False)
        PART.to_json("linked.json")

    def test_check(self):
        told = json.loads(run("check --parents h.csv --children p.csv --schema linked.json --epsilon 9 --json").stdout)
        assert told["kinds"]["more children"] > 100 and told["verdict"] == "all" and told["key"] == "household"
        assert told["guarantee_of_a_child"]["epsilon"] == 18.0
        assert [column["table"] for column in told["columns"]] == ["household"] * 2 + ["person"] * 4
        assert "up to" not in run("check --children p.csv --unit household --variable sex=f,m --epsilon 9").stdout
        assert (
            "match next to nothing"
            in run("check --children p.csv --unit household --variable sex=a,b --rho 9", 1).stdout
        )

    def test_plan(self):
        told = json.loads(run("plan --schema linked.json --epsilon 3.2 --delta 1e-9 --n 6000 --json").stdout)
        assert told["siblings"] == 1 and told["guarantee_of_a_child"]["epsilon"] > 6.7 and told["most"] == 3
        assert "top-coded" in run("plan --schema linked.json --rho 0.1 --n 6000").stdout

    def test_discover_and_fit_in_one_ledger(self):
        account = "--ledger l.json --budget-epsilon 9 --budget-delta 1e-7"
        told = run(
            "discover --parents h.csv --children p.csv --key household --most 4 --names household,person "
            '--categories household.tenure,status --number "age=0:99:1 missing drop" --count "age >= 16" '
            f'--missing "?" --missing person.age=-1 --epsilon 2 --delta 1e-8 {account} --out found.json'
        )
        assert "of each household one row" in told.stdout and "Wrote found.json" in told.stdout
        schema = LinkedSchema.from_json("found.json")
        assert list(schema.parent) == ["tenure"] and list(schema.child) == ["age", "status"] and schema.most == 4
        assert len(Ledger.load("l.json").entries) == 2
        fit = "fit --parents h.csv --children p.csv --schema found.json --epsilon 3 --delta 1e-8 --ledger l.json"
        assert "its schema included" in run(f"{fit} --out m.npz").stdout
        assert "did not pay" in run(f"{fit.replace('l.json', 'other.json')} --out other.npz", 2).stderr

    @pytest.mark.parametrize(
        ("command", "message"),
        [
            ("check --epsilon 1 --schema linked.json", "DATA is missing"),
            ("check p.csv --children p.csv --epsilon 1 --schema linked.json", "leave it out"),
            ("check --parents h.csv --epsilon 1 --schema linked.json", "--children is missing"),
            ("check --parents h.csv --children p.csv --schema linked.json --epsilon 1 --rows-per-unit 2", "--rows-per"),
            ("plan --schema linked.json --epsilon 1 --n 9 --target age", "learned in one way"),
            ("plan --schema linked.json --epsilon 1 --n 9 --edges age-sex", "learned in one way"),
            ("discover --children p.csv --categories sex --epsilon 1 --delta 1e-9", "--key is missing"),
            ("discover --children p.csv --key household --categories sex --rho 1", "--most is missing"),
            ("discover p.csv --children p.csv --key household --most 3 --categories sex --rho 1", "leave it out"),
            (
                "discover --parents h.csv --children p.csv --key household --most 3 --categories sex --rho 1",
                "--parents",
            ),
            ("discover --children p.csv --key household --most 3 --categories job --rho 1", "neither"),
            ("discover --children p.csv --key household --most 3 --categories sex --rho 1", "no delta"),
            (
                "discover --children p.csv --key household --most 3 --categories sex --missing job=9 --rho 1",
                "job is not",
            ),
            ("discover --children p.csv --key h --most 3 --categories sex --epsilon 1 --delta 1e-9", "no column"),
        ],
    )
    def test_what_is_refused(self, command, message):
        out = " --out found.json" if command.startswith("discover") else ""
        account = "" if command.startswith("plan") else " --ledger l.json --budget-epsilon 9 --budget-delta 1e-7"
        told = run(command + out + account, 2)
        assert message in " ".join(told.stderr.split()), told.stderr
        assert not Path("found.json").exists() and not Path("l.json").exists()
