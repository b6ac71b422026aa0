"""The command line as its users have it: what it prints, writes, refuses and gives away."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from pgmpy_dp import Date, Ledger, MarkovNetwork, Number, Release, Schema, __version__
from pgmpy_dp.cli import app, application
from pgmpy_dp.cli.application import _InOrder
from pgmpy_dp.learning.privacy_record import Privacy
from pgmpy_dp.linked import LinkedModel, LinkedSchema
from pgmpy_dp.models.answers import SavedModel
from pgmpy_dp.models.model_file import read_model_file
from pgmpy_dp.private.filter import BudgetExceeded
from pgmpy_dp.private.guarantee import PureDP
from pgmpy_dp.private.noise import additive
from pgmpy_dp.private.operators import record_matches
from pgmpy_dp.private.operators import tables as table_operator
from pgmpy_dp.reporting import comparison_page, explorer_page, report_page
from pgmpy_dp.reporting.words import DIGESTS
from pgmpy_dp.tables import discovery

ROOT = Path(__file__).parents[1]
NEEDLE = "needle-9d1f"
COMMANDS = (
    *("start", "schema", "discover", "plan", "check", "fit", "refit", "suggest", "from-tables"),
    *("info", "query", "sample", "score", "regress", "report", "explore", "evidence", "ledger", "audit"),
)


def run(command: str, code: int = 0):
    """Result of one command line in this process."""
    result = CliRunner().invoke(app, shlex.split(command))
    assert result.exit_code == code, result.output + repr(result.exception)
    return result


@pytest.fixture(scope="module")
def prepared_folder(tmp_path_factory) -> Path:
    """A folder with records.csv and its schema.json; among the records are values that no schema knows."""
    made = tmp_path_factory.mktemp("records")
    rng = np.random.default_rng(0)
    n = 2000
    age = rng.integers(16, 90, n)
    frame = pd.DataFrame({
        "diary": [f"{NEEDLE}-{k}" for k in range(n)],
        "age": age,
        "job": rng.choice(["office", "field"], n),
        "income": np.where(age + rng.normal(0, 15, n) > 50, "high", "low"),
    })  # fmt: skip
    frame["job"] = frame["job"].where(frame.index != 7, NEEDLE)
    frame.to_csv(made / "records.csv", index=False)
    with open(made / "records.csv", "ab") as stream:
        stream.write(f'{NEEDLE},"{NEEDLE}\n{NEEDLE}\n{NEEDLE},30,office,high,{NEEDLE}\n\xff{NEEDLE},'.encode("latin-1"))
    with contextlib.chdir(made):
        run('schema --variable "job=office,field" --variable "income=low,high" --cuts "age=25,45,65" --out schema.json')
    return made


@pytest.fixture
def folder(prepared_folder, tmp_path, monkeypatch):
    """A copy of that folder, in which the test is."""
    monkeypatch.chdir(shutil.copytree(prepared_folder, tmp_path, dirs_exist_ok=True))
    return tmp_path


FIT = "fit records.csv --schema schema.json --epsilon 2 --out model.npz"


def test_a_session(folder):
    assert json.loads(run('schema --cuts "age=25"').stdout)["variables"] == [{"name": "age", "states": ["<25", ">=25"]}]
    assert Schema.from_json("schema.json")["age"] == ("<25", "[25,45)", "[45,65)", ">=65")
    assert "expected error" in run("plan --schema schema.json --epsilon 2 --n 2000").stdout
    fit = run(f"{FIT} --structure learn")
    assert "2-DP under add_remove" in fit.stdout
    assert "Records inside the schema: about" in fit.stdout
    assert "--ledger" in fit.stderr
    assert "2-DP under add_remove" in run("info model.npz").stdout
    table = run("query model.npz --variables income --evidence age=70").stdout.splitlines()
    assert table[0].split() == ["income", "P(income", "|", "age=>=65)"]
    assert float(table[2].split()[1]) > 0.8
    run("sample model.npz --n 50 --out synthetic.csv --random-state 1")
    synthetic = pd.read_csv("synthetic.csv")
    assert len(synthetic) == 50
    assert set(synthetic["age"]) <= {"<25", "[25,45)", "[45,65)", ">=65"}
    run("sample model.npz --n 50 --out synthetic.parquet --random-state 1")
    run("sample model.npz --n 50 --out synthetic.tsv.gz --random-state 1")
    for name in ("synthetic.parquet", "synthetic.tsv.gz"):
        read = pd.read_parquet(name) if name.endswith("parquet") else pd.read_csv(name, sep="\t")
        pd.testing.assert_frame_equal(read.astype(str), synthetic.astype(str))
    run("sample model.npz --n 50 --out old.csv --evidence age=70 --evidence income=low --method independent")
    assert pd.read_csv("old.csv")[["age", "income"]].drop_duplicates().to_numpy().tolist() == [[">=65", "low"]]


def test_scores_are_paid_from_the_ledger_and_reported(folder):
    run(f"{FIT} --ledger ledger.json --budget-epsilon 3")
    fit = "score model.npz records.csv --epsilon 0.5 --ledger ledger.json"
    told = run(f"{fit} --release score.npz")
    assert "pairs, 3 tables" in told.stdout and "sampling alone" in told.stdout and "left 0.5-DP" in told.stdout
    found = json.loads(run(f'{fit} --json --each --no-worst --workload "age; job,income=2" -q').stdout)
    assert [row["variables"] for row in found["each"]] == [["age"], ["job", "income"]]
    assert [row["score"] for row in found["scores"]] == ["workload"] and found["worst"] is None
    for row in found["scores"] + found["each"]:
        assert 0 <= row["lower"] <= row["distance"] <= row["upper"] <= 1
    assert run(fit, code=3).stderr.count("refused") == 1
    assert len(Ledger.load("ledger.json").entries) == 3
    planned = json.loads(run("score model.npz --epsilon 0.5 --n 2000 --json").stdout)["scores"]
    unknown = "discover records.csv --categories job --unit nobody --epsilon 1 --delta 1e-9 --out d.json"
    assert "nobody" in run(unknown, code=2).stderr
    one, three = (
        [table["scale"] for table in json.loads(run(f"plan {plan} --rows-per-unit {rows}").stdout)["tables"]]
        for plan in ("--schema schema.json --epsilon 1 --n 2000 --edges age-job --simulations 0 --json",)
        for rows in (1, 3)
    )
    assert three == [pytest.approx(3 * scale) for scale in one]
    assert [row["score"] for row in planned] == ["pairs", "triples", "worst"]
    assert all(0 < row["half_width"] < 0.05 for row in planned)
    run("report model.npz --score score.npz --out report.html")
    assert "How far the model is from the records" in Path("report.html").read_text(encoding="utf-8")
    run(f"{FIT} --structure independent --overwrite -q")
    assert "of another model" in run("report model.npz --score score.npz --out other.html", code=2).stderr


def test_evidence_of_a_model(folder):
    run(f"{FIT} --release release.npz")
    Path("about.md").write_text("# Made up\n\nBy *nobody*.", encoding="utf-8")
    told = run(
        'evidence model.npz --release release.npz --title "A <name>" --about about.md --out folder --json'
    ).stdout
    assert [Path(name).name for name in json.loads(told)["out"]] == ["registry.yaml", "evidence.html", "evidence.json"]
    page = Path("folder/evidence.html").read_text(encoding="utf-8")
    assert "Evidence: A &lt;name&gt;" in page and "<h3>Made up</h3>" in page
    found = json.loads(Path("folder/evidence.json").read_text(encoding="utf-8"))
    assert found["sha256"]["release.npz"] == hashlib.sha256(Path("release.npz").read_bytes()).hexdigest()
    assert found["attacks"]["at_one_percent_false_alarms"] == pytest.approx(np.exp(2) * 0.01)
    assert found["privacy"]["guarantee"] == {"measure": "pure", "epsilon": 2.0}
    again = run("evidence model.npz --out folder", 2)
    assert "the file exists; pass another name, or --overwrite" in again.stderr
    run("evidence model.npz --out folder --overwrite")
    assert "that is a file; pass the name of a folder" in run("evidence model.npz --out model.npz", 2).stderr
    assert "there is no folder" in run("evidence model.npz --out no/folder", 2).stderr
    assert "not a saved model" in run("evidence records.csv --out other", 2).stderr
    run(f"{FIT} --out seeded.npz".replace("--out model.npz", ""))
    network = MarkovNetwork.load("seeded.npz")
    network.privacy = replace(network.privacy, reproducible=True)
    network.save("seeded.npz")
    assert "its noise came from a seed: it is NOT PRIVATE" in run("evidence seeded.npz --out other", 2).stderr
    Path("about.md").write_bytes(b"\xff\xfe")
    assert "it is not UTF-8" in run("evidence model.npz --about about.md --out other", 2).stderr
    assert not Path("other").exists()
    run("report model.npz --title Stays --out titled.html")
    assert "<h1>Stays</h1>" in Path("titled.html").read_text(encoding="utf-8")
    assert "leave one out" in run("report model.npz --compare seeded.npz --title x --out c.html", 2).stderr


def test_one_of_a_kind_is_said_in_the_singular(folder):
    Path("one.csv").write_text("sex\n" + "F\n" * 150 + "M\n" * 250)
    LinkedSchema({"place": ["n", "s"]}, {"sex": ["F", "M"]}, "house", 2).to_json("linked.json")
    Path("p.csv").write_text("house,place\n" + "".join(f"{k},{'ns'[k % 2]}\n" for k in range(300)))
    Path("c.csv").write_text("house,sex\n" + "".join(f"{k},F\n{k},M\n" for k in range(300)))
    both = "--parents p.csv --children c.csv --schema linked.json --epsilon 3"
    said = [
        run(command).stdout
        for command in (
            'schema --variable "sex=F,M" --out one.json',
            "plan --schema one.json --epsilon 1 --n 1",
            "check one.csv --schema one.json --epsilon 3 --ledger l.json --budget-epsilon 9 --budget-delta 1e-6",
            "ledger export l.json --out l.csv",
            "fit one.csv --schema one.json --epsilon 3 --ledger l.json --draws 20 --release r.npz --out one.npz",
            "refit r.npz --out again.npz",
            "info one.npz",
            "ledger show l.json",
            "score one.npz --epsilon 0.1 --n 400",
            "sample one.npz --n 1 --out drawn.csv",
            "discover one.csv --categories sex --epsilon 3 --delta 1e-6 --out found.json",
            "report one.npz --release r.npz --out -",
            "report one.npz --compare one.npz --out -",
            "explore one.npz --out -",
            "evidence one.npz --release r.npz --out evidence",
            "plan --schema linked.json --epsilon 1 --n 1",
            f"check {both}",
            f"fit {both} --draws 20 --release l.npz --ledger linked.ledger.json --budget-epsilon 9 --out linked.npz",
            "info linked.npz",
            "ledger show linked.ledger.json",
            "sample linked.npz --n 1 --out-parents dp.csv --out-children dc.csv",
            "report linked.npz --out -",
            "explore linked.npz --out -",
            "evidence linked.npz --release l.npz --out linked",
        )
    ]
    said += [
        Path("evidence/evidence.html").read_text(),
        Path("linked/evidence.html").read_text(),
        repr(MarkovNetwork.load("one.npz")),
        repr(LinkedModel.load("linked.npz")),
        repr(Schema({"a": [0, 1]})),
    ]
    assert any("1 variable" in text for text in said) and "1 charge" in said[3] and "1 synthetic record of" in said[9]
    for text in said:
        text = re.sub(r"<(style|script|svg).*?</\1>|<[^>]*>", " ", text, flags=re.DOTALL)
        assert not re.search(r"(?<![\d.,-])1 (?!is\b|was\b|has\b|s\b)[a-z]+s\b", text), text


def test_suggested_rules_are_confirmed_by_refit_at_no_cost(folder):
    pd.DataFrame({"sex": ["M", "F"] * 1000, "pregnant": ["no", "yes", "no", "no"] * 500}).to_csv("two.csv", index=False)
    fitted = "fit two.csv --variable sex=F,M --variable pregnant=yes,no --rho 1 --out two.npz --release two.release.npz"
    run(fitted)
    told = run("suggest two.release.npz").stdout
    assert "sex = M & pregnant = yes" in told and "only if you know from public reasons" in told
    (rule,) = json.loads(run("suggest two.release.npz --json --level 0.9").stdout)["rules"]
    assert rule["probability"] > 0.95 and rule["at_most"] < 30 and rule["independent"] > 200
    run(f"refit two.release.npz --impossible '{rule['rule']}' --out again.npz")
    assert rule["rule"] in run("info again.npz").stdout
    assert "0.0000" in run("query again.npz --variables pregnant --evidence sex=M").stdout
    assert "--impossible" in run("refit two.release.npz --impossible 'sex = X & pregnant = yes' --out no.npz", 2).stderr
    assert "--level" in run("suggest two.release.npz --level 2", 2).stderr


def test_draws_give_intervals_counts_and_copies(folder):
    run(f"{FIT} --release release.npz")
    told = run("query model.npz --variables income --counts", code=2)
    assert "--draws 30" in told.stderr
    run("sample model.npz --n 5 --out few.csv --copies 2", code=2)
    run("refit release.npz --draws 2 --estimator naive-mle --out other.npz", code=2)
    run("refit release.npz --draws 20 --out drawn.npz")
    table = run("query drawn.npz --variables income --evidence age=70 --counts --level 0.8").stdout.splitlines()
    assert "80 % interval" in table[0]
    assert table[0].split()[-1] == "records"
    document = json.loads(run("query drawn.npz --variables income --evidence age=70 --counts --json").stdout)
    assert document["outside"] is None
    rows = document["table"]
    assert list(rows[0]) == ["income", "probability", "lower", "upper", "count", "count_lower", "count_upper"]
    for row in rows:
        assert row["lower"] <= row["probability"] <= row["upper"]
        assert row["count_lower"] <= row["count"] <= row["count_upper"]
    # The interval of the file is that of the estimator, up to draws being kept as float32.
    kept = MarkovNetwork.load("drawn.npz").posterior
    assert kept.discrepancy is not None
    again = kept.interval(["income"], {"age": 70})
    assert (again["lower"] < again["estimate"]).all()
    run("report drawn.npz --release release.npz --out report.html --level 0.8")
    assert "80 % interval" in Path("report.html").read_text()
    digest = hashlib.sha256(Path("release.npz").read_bytes()).hexdigest()
    assert digest in Path("report.html").read_text() and DIGESTS in Path("report.html").read_text()
    run("report drawn.npz --rule 0.1 --printable list.csv --out marked.html")
    assert pd.read_csv("list.csv")["may_be_printed"].value_counts()["yes"] == Path("marked.html").read_text().count(
        "✓<"
    )
    run("fit records.csv --schema schema.json --edges age-income --rho 1 --draws 20 --out edges.npz")
    told = run("report edges.npz --rule 0.1 --printable none.csv --out edges.html")
    assert "No number is marked for printing. The model was fitted without probes" in " ".join(told.stderr.split())
    assert set(pd.read_csv("none.csv")["may_be_printed"]) == {"no"}
    assert "pass --rule too" in run("report drawn.npz --printable new.csv --out c.html", code=2).stderr
    assert "--draws" in run("report model.npz --rule 0.1 --out c.html", code=2).stderr
    run("report drawn.npz --compare model.npz --out both.html")
    assert "drawn and model: 3 variables" in Path("both.html").read_text()
    told = json.loads(run("explore drawn.npz --draws 9 --out explore.html --json").stdout)
    assert told == {"out": "explore.html", "bytes": Path("explore.html").stat().st_size}
    assert "✓ may be printed" in run("explore drawn.npz --rule 0.1 --out -").stdout
    assert "the file exists" in run("report drawn.npz --out report.html", code=2).stderr
    assert (
        "leave one out" in run("report drawn.npz --compare model.npz --release release.npz --out c.html", code=2).stderr
    )
    assert "from 2 to the number of draws" in run("explore drawn.npz --draws 99 --out c.html", code=2).stderr
    assert "no posterior" in run("explore model.npz --draws 9 --out c.html", code=2).stderr
    run("sample drawn.npz --n 40 --out few.csv --copies 3 --random-state 1")
    copies = [pd.read_csv(f"few.{k}.csv") for k in (1, 2, 3)]
    assert [len(copy) for copy in copies] == [40, 40, 40]
    assert not copies[0].equals(copies[1])
    assert run("query drawn.npz --variables income --level 1.5", code=2).stderr


@pytest.fixture(scope="module")
def survey(tmp_path_factory):
    """A model of numbers and days, learned from a file."""
    rng = np.random.default_rng(0)
    n = 3000
    age = rng.integers(16, 90, n)
    frame = pd.DataFrame({
        "born": [f"{d:%d.%m.%Y}" for d in pd.Timestamp("2020-12-31") - pd.to_timedelta(age * 365, "D")],
        "age": pd.Series(age).astype("Int64").mask(rng.random(n) < 0.1),
        "sex": rng.choice(["F", "M"], n),
        "height": np.round(rng.normal(1.7, 0.1, n), 2),
    })  # fmt: skip
    folder = tmp_path_factory.mktemp("survey")
    frame.to_csv(folder / "records.csv", index=False)
    schema = Schema({
        "born": Date("1900-01-01", "2020-12-31", cuts=["1950-01-01", "1970-01-01"], format="%d.%m.%Y"),
        "age": Number(0, 120, cuts=[30, 50, 70], resolution=1),
        "sex": ["F", "M"],
        "height": Number(1, 2.5, bins=6, resolution=0.01, missing="drop"),
    })  # fmt: skip
    schema.to_json(folder / "schema.json")
    run(f"fit {folder}/records.csv --schema {folder}/schema.json --edges height-sex,born-age --epsilon 5 "
        f"--out {folder}/model.npz")  # fmt: skip
    return folder


def test_a_session_with_numbers(survey, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = f"{survey}/model.npz"
    told = run(f"info {model}").stdout
    assert "age (numbers 0 to 120, 5 states): born" in told
    assert "born (dates 1900-01-01 to 2020-12-31, 4 states): age" in told
    numbers = json.loads(run(f"info {model} --json").stdout)["numbers"]
    assert numbers["age"] == {"kind": "number", "lower": 0, "upper": 120, "cuts": [30, 50, 70], "resolution": 1}

    told = json.loads(run(f"query {model} --variables born --evidence age=37 --json").stdout)
    assert told["evidence"] == {"age": "[30,50)"}
    assert max(told["table"], key=lambda row: row["probability"])["born"] == "[1970-01-01,2020-12-31]"
    for asked, shown in (("30:49", "[30,50)"), ("30:60", "30:60"), ("30:", "30:")):
        told_range = json.loads(run(f"query {model} --variables born --evidence age={asked} --json").stdout)
        assert told_range["evidence"] == {"age": shown}
    assert list(told["summary"]) == ["mean", "0.25", "0.5", "0.75"]
    assert told["summary"]["mean"][:2] == "19"
    told = json.loads(run(f'query {model} --variables age --evidence "born=01.01.1955:31.12.1964" --json').stdout)
    assert told["evidence"] == {"born": "01.01.1955:31.12.1964"}
    assert 40 < told["summary"]["0.5"] < 80
    lines = run(f"query {model} --variables age --evidence born=1955-01-01:1964-12-31").stdout.splitlines()
    assert lines[0].split("|")[1] == " born=1955-01-01:1964-12-31)"
    assert lines[-3].startswith("Where it is not missing: mean ") and lines[-2].startswith("What is known holds for ")
    assert json.loads(run(f"query {model} --variables born --evidence age= --json").stdout)["evidence"] == {"age": None}
    told = json.loads(run(f"query {model} --variables born --evidence age=30:59 --json").stdout)
    assert told["counted"] == {"age": [["[30,50)", 1.0], ["[50,70)", 0.5]]}
    lines = run(f"query {model} --variables born --evidence age=30:59").stdout.splitlines()
    assert lines[-4] == "age=30:59 counts as [30,50), 50% of [50,70)"
    whole = run(f"query {model} --variables born --evidence age=30:69").stdout
    assert "counts as" not in whole
    several = run(f'query {model} --variables born --evidence "age=[30,50)|50:69"').stdout
    assert several.replace("[30,50)|50:69", "30:69").split() == whole.split()

    run(f"sample {model} --n 400 --out synthetic.csv --random-state 1")
    drawn = pd.read_csv("synthetic.csv", dtype=str)
    assert list(drawn) == ["born", "age", "sex", "height"]
    assert pd.to_datetime(drawn["born"].dropna(), format="%d.%m.%Y").dt.year.between(1900, 2020).all()
    assert drawn["age"].dropna().str.fullmatch("[0-9]+").all()
    assert 0.02 < drawn["age"].isna().mean() < 0.25
    assert drawn["height"].str.fullmatch(r"[12](\.[0-9]{1,2})?").all()
    assert drawn["height"].nunique() > 30
    run(f"sample {model} --n 400 --out synthetic.parquet --random-state 1")
    read = pd.read_parquet("synthetic.parquet")
    assert [str(kind)[:8] for kind in read.dtypes] == ["datetime", "Int64", str(read["sex"].dtype)[:8], "float64"]
    assert read["height"].astype(str).tolist() == drawn["height"].astype(float).astype(str).tolist()
    run(f"sample {model} --n 90 --out given.csv --evidence age=33:44 --evidence born=01.01.1955:31.12.1964")
    given = pd.read_csv("given.csv", dtype=str)
    assert given["age"].astype(int).between(33, 44).all()
    assert pd.to_datetime(given["born"], format="%d.%m.%Y").dt.year.between(1955, 1964).all()
    run(f"sample {model} --n 400 --out labels.csv --random-state 1 --labels")
    labels = pd.read_csv("labels.csv")
    assert set(labels["age"].dropna()) == {"[0,30)", "[30,50)", "[50,70)", "[70,120]"}
    assert (labels["age"].isna() == drawn["age"].isna()).all()


@pytest.mark.parametrize(
    ("evidence", "message"),
    [
        ("age=130", "outside the bounds 0 to 120"),
        ("age=50:40", "ends before it begins"),
        ("age=30.2:30.8", "has no value"),
        ("age=30:130", "beyond the bounds"),
        ("age=young", "no number, range or state"),
        ("born=1:2", "is not a date"),
        ("sex=30:40", "one of the states F, M"),
        ('"sex=F|X"', "'X', which is not a state of it"),
        ("height=", "no state in the model"),
    ],
)
def test_evidence_that_is_none(survey, evidence, message):
    told = run(
        f"query {survey}/model.npz --variables {'sex' if evidence[0] != 's' else 'age'} --evidence {evidence}", 2
    )
    assert "--evidence is" in told.stderr
    assert message in told.stderr


@pytest.mark.parametrize(
    ("how", "edges"),
    [
        ("--structure chow-liu", 2),
        ("--structure independent", 0),
        ('--edges "age-income"', 1),
        ("--edges-file edges.csv --estimator naive-mle", 2),
        ("--edges age-income,job-income --estimator collective-em", 2),
        ("--edges age-income --adjacency replace_one --n-records 2000", 1),
        ('--max-order 2 --workload "age,income"', 1),
        ('--workload "age, income, job = 2.5; age,job"', 3),
        ("--target income --max-order 2", 3),
        ("--optimise pairs --max-order 2", 3),
    ],
)
def test_where_a_graph_may_come_from(folder, how, edges):
    Path("edges.csv").write_text("first,second\nage,income\n\njob,income\n")
    told = json.loads(run(f"{FIT} {how} --json").stdout)
    assert len(told["edges"]) == edges
    model = MarkovNetwork.load("model.npz")
    assert set(model.nodes) == {"age", "job", "income"}
    assert model.number_of_edges() == edges
    assert model.privacy.guarantee.epsilon == 2.0
    assert told["n_records"] == 2000 if "--n-records" in how else 1900 < told["n_records"] < 2100


def test_public_tables_are_files_of_counts(folder):
    """In the model, its draws and a sample; nothing is spent, and no cell quoted, where a file cannot be used."""
    (folder / "jobs.csv").write_text("job,people\nfield,900\noffice,1100\n")
    (folder / "both.csv").write_text(
        "income,job,count\nlow,office,600\nlow,field,500\nhigh,office,500\nhigh,field,400\n"
    )
    known = "--public jobs.csv --public both.csv --public-from elsewhere"
    told = json.loads(run(f"{FIT} {known} --draws 20 --release tables.npz --ledger ledger.json --json").stdout)
    assert "given tables of job; income, job that the caller says" in told["condition"]
    for said in (run("info model.npz"), run("ledger show ledger.json")):
        assert "given tables of job; income, job that the caller says were not computed" in " ".join(
            said.stdout.split()
        )
    run("sample model.npz --n 2000 --out sample.csv --method agreeing --random-state 0")
    counted = pd.read_csv("sample.csv").value_counts(["income", "job"]).to_dict()
    assert counted == {("low", "office"): 600, ("low", "field"): 500, ("high", "office"): 500, ("high", "field"): 400}
    run("sample model.npz --n 2000 --out copy.csv --method agreeing --copies 2")
    assert pd.read_csv("copy.2.csv").value_counts(["income", "job"]).to_dict() == counted
    assert "count 2000; pass --n=2000" in run("sample model.npz --n 5 --out x.csv --method agreeing", 2).output
    run(f"refit tables.npz {known} --out again.npz")
    assert MarkovNetwork.load("again.npz").probability({"job": "field"}) == pytest.approx(0.45, abs=1e-9)
    of_these = "--public jobs.csv --public-from 'these records' --adjacency replace_one --n-records 2000"
    run(f"fit records.csv --schema schema.json --rho 1 --out own.npz --ledger own.json {of_these}")
    said = [run("info own.npz"), run("ledger show own.json"), run("ledger export own.json --out -")]
    said += [run("ledger show own.json --json")]
    assert all("neighbours that agree on these records' tables of job" in " ".join(one.stdout.split()) for one in said)
    (folder / "ragged.csv").write_text(f"job,people\nfield,900,{NEEDLE}\n")
    (folder / "words.csv").write_text(f"job,people\nfield,900\noffice,{NEEDLE}\n")
    (folder / "sums.csv").write_text("income,people\nlow,900\nhigh,900\n")
    for how, message in [
        ("--public jobs.csv", "--public-from=None says not where"),
        ("--public jobs.csv --public-from 'these records'", "adjacency='add_remove', unit=None, and exact tables"),
        ("--public-from elsewhere", "public is a NoneType"),
        ("--public records.csv --public-from elsewhere", "--public is 'records.csv': write the names of variables"),
        ("--public ragged.csv --public-from elsewhere", "each line needs 2 fields"),
        ("--public words.csv --public-from elsewhere", "row 2 of the public table of job has no number"),
        ("--public jobs.csv --public sums.csv --public-from elsewhere", "have the sums"),
        (f"{known} --structure chow-liu", "--public is"),
        (f"{known} --estimator naive-mle --edges age-job", "takes no public tables"),
        (f"{known} --publish-if sums.csv --ledger new.json", "a model that is tested takes none"),
    ]:
        output = " ".join(run(f"fit records.csv --schema schema.json --rho 1 --out new.npz {how}", 2).output.split())
        assert message in output and NEEDLE not in output, output
        assert not (folder / "new.npz").exists() and not (folder / "new.json").exists()


def test_a_prior_is_a_file_of_an_earlier_fit(folder):
    run(f"{FIT} --release tables.npz --edges age-income,job-income")
    for arguments in ("--structure learn", "--edges age-job,age-income"):
        how = f"--epsilon 0.05 {arguments} --prior tables.npz --out now.npz --overwrite"
        run(f"fit records.csv --schema schema.json {how}")
        assert MarkovNetwork.load("now.npz").privacy.prior.guarantee == PureDP(2.0)
    assert "2.05-DP together, for whoever is in both" in run("info now.npz").stdout
    told = run("refit tables.npz --prior now.npz --out again.npz").stdout
    assert "with a prior that is 0.05-DP" in told


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("--workload age", "--workload is 'age': write two variables or more"),
        ('--workload "age,pay"', "the schema has "),
        ('--workload "age,job=much"', "a positive weight"),
        ('--workload "age,job=-1"', "a positive weight"),
        ("--max-order 2 --structure chow-liu", "--max-order is '2': it is for a graph that learn is to find"),
        ("--workload age,job --edges age-job", "it is for a graph that learn is to find"),
        ("--target pay", "--target is 'pay': write the name of a variable; the schema has age"),
        ("--target income --structure chow-liu", "it is for a graph that learn is to find"),
        ("--optimise pairs --structure chow-liu", "it is for a graph that learn is to find"),
        ("--target income --workload age,job", "--target='income' and a workload were both passed"),
        ("--max-order 1", "--max-order=1 is out of range"),
        ("--optimise triples", "--optimise='triples' is not supported; pass one of ('likelihood', 'pairs')"),
        ("--missing-at-random age", "--missing-at-random is 'age': write variable=driver,driver"),
        ("--missing-at-random age=pay", "each variable once; the schema has age"),
        ("--missing-at-random age=age", "some variable drives itself"),
        ("--missing-at-random age=job", "names ['age'], which have no state for what is missing"),
        ("--missing-at-random age=job --edges age-job", "it is for a graph that learn is to find"),
    ],
)
def test_what_a_search_may_be_told(folder, how, message):
    told = run(f"{FIT} {how}", 2)
    assert message in " ".join(told.stderr.split())
    assert not Path("model.npz").exists()


def test_missing_values_are_filled_in(folder):
    frame = pd.read_csv("records.csv", encoding="latin-1", nrows=2000)
    frame.loc[(frame["income"] == "high") & (frame.index % 4 != 0), "age"] = np.nan  # of the old, mostly
    frame.to_csv("holes.csv", index=False)
    run('schema --variable "job=office,field" --variable "income=low,high" --number "age=16:90 cuts 50" --out h.json')
    fit = "fit holes.csv --schema h.json --epsilon 20 --out model.npz --overwrite --release tables.npz"
    run(f'{fit} --missing-at-random "age=income, job" --draws 20')
    model = MarkovNetwork.load("model.npz")
    assert model.states["age"] == ["[16,50)", "[50,90]"]
    assert "Missing values of age were filled in, as if income and job alone" in run("info model.npz").stdout
    assert 0.45 < model.query("age").values[1] < 0.65  # 40 of 74 years
    assert run("sample model.npz --n 50 --out drawn.csv").exit_code == 0
    assert pd.read_csv("drawn.csv")["age"].notna().all()
    run("refit tables.npz --out again.npz --missing-at-random age=income")
    assert MarkovNetwork.load("again.npz").states["age"] == ["[16,50)", "[50,90]"]
    run("refit tables.npz --out with.npz")
    assert None in MarkovNetwork.load("with.npz").states["age"]
    told = run("refit tables.npz --out again.npz --overwrite --estimator naive-mle --missing-at-random age=income", 2)
    assert "it is for a network that learn found" in told.stderr


def test_dashes_in_names(tmp_path, monkeypatch):
    from pgmpy_dp.cli.arguments import parsed_graph

    schema = Schema({name: [0, 1] for name in ("a", "b", "a-b", "b-a", "marital-status")})
    found = parsed_graph(schema, "a-marital-status, a-b-b ,a-b", None)
    assert set(map(frozenset, found.edges)) == {
        *map(frozenset, [("a", "b"), ("a", "marital-status"), ("b", "a-b")]),
    }
    with pytest.raises(ValueError, match="several ways"):
        parsed_graph(schema, "a-b-a", None)


def test_questions_are_answered_as_by_the_model(folder):
    run(f"{FIT} --edges age-income,job-income")
    told = json.loads(run('query model.npz --variables "job,income" --evidence "age=<25" --json').stdout)
    assert told["evidence"] == {"age": "<25"}
    joint = MarkovNetwork.load("model.npz").marginal(["job", "income", "age"]).values[:, :, 0]
    np.testing.assert_allclose([row["probability"] for row in told["table"]], (joint / joint.sum()).ravel())
    assert [(row["job"], row["income"]) for row in told["table"]][:2] == [("office", "low"), ("office", "high")]


def test_a_budget_is_told_in_the_words_that_were_asked_for(folder):
    asked = "(1, 1e-09)-DP (by 0.0149705-zCDP) under add_remove"
    ledger = "--ledger l.json --budget-epsilon 3 --budget-delta 1e-8"
    fit = run(f"fit records.csv --schema schema.json --epsilon 1 --delta 1e-9 --out m.npz --release r.npz {ledger}")
    assert asked in fit.stdout
    total = "costs add up to 0.0149705-zCDP of the budget (3, 1e-08)-DP (0.135736-zCDP), left 0.120766-zCDP"
    assert f"l.json: {total}" in fit.stdout
    assert asked in run("info m.npz").stdout
    told = json.loads(run("info m.npz --json").stdout)["privacy"]
    assert told["guarantee"]["measure"] == "zcdp"
    assert told["asked"] == {"measure": "approximate", "epsilon": 1.0, "delta": 1e-9}
    assert asked in run("refit r.npz --out again.npz").stdout and asked in str(MarkovNetwork.load("again.npz").privacy)
    shown = run("ledger show l.json").stdout
    assert total in shown and "a release of (2.808, 1e-08)-DP is left" in shown
    told = json.loads(run("ledger show l.json --json").stdout)
    assert [told[name]["measure"] for name in ("spent", "left", "allowed")] == ["zcdp"] * 3
    assert told["spent"]["rho"] + told["left"]["rho"] == pytest.approx(told["allowed"]["rho"])
    check = "check records.csv --schema schema.json --epsilon 0.1 --delta 1e-9"
    assert "Spent (0.1, 1e-09)-DP (by " in run(check).stdout


def test_a_ledger_counts(folder):
    run("ledger new ledger.json --epsilon 3")
    told = json.loads(run(f"{FIT} --structure independent --ledger ledger.json --json").stdout)
    assert told["ledger"] == {"file": "ledger.json", "spent": "2-DP", "left": "1-DP"}
    refused = run("fit records.csv --schema schema.json --epsilon 2 --out second.npz --ledger ledger.json", 3)
    assert "2-DP was asked" in refused.stderr
    assert refused.stdout == ""
    assert not Path("second.npz").exists()
    shown = json.loads(run("ledger show ledger.json --json").stdout)
    assert (shown["spent"], len(shown["entries"])) == ({"measure": "pure", "epsilon": 2.0}, 1)
    assert shown["guarantee"] == shown["budget"] == {"measure": "pure", "epsilon": 3.0}
    text = run("ledger show ledger.json").stdout
    assert "costs add up to 2-DP of the budget 3-DP, left 1-DP" in text
    assert "guarantee, also if costs were chosen by results: 3-DP" in text
    run("ledger export ledger.json --out ledger.csv")
    exported = pd.read_csv("ledger.csv")
    assert exported["epsilon"].tolist() == [2.0]
    assert exported["columns"].tolist() == ["age;job;income"]
    # Never replaced, also not by an output of another command.
    assert "forget what was spent" in run("ledger new ledger.json --rho 9", 2).stderr
    before = Path("ledger.json").read_bytes()
    run("fit records.csv --schema schema.json --epsilon 1 --ledger ledger.json --out ledger.json --overwrite", 2)
    run("ledger export ledger.json --out ledger.json --overwrite", 2)
    assert Path("ledger.json").read_bytes() == before


def test_a_new_ledger_has_the_budget_it_is_given(folder):
    told = run(f"{FIT} --structure independent --ledger a.json")
    assert "a budget of 2-DP that this fit spends" in told.stderr
    assert str(Ledger.open("a.json").left) == "0-DP"
    run("fit records.csv --schema schema.json --epsilon 1 --structure independent --out b.npz --ledger b.json "
        "--budget-epsilon 4 --budget-delta 1e-6")  # fmt: skip
    assert str(Ledger.open("b.json").budget) == "(4, 1e-06)-DP"
    differs = run("fit records.csv --schema schema.json --epsilon 1 --out c.npz --ledger b.json --budget-epsilon 9", 2)
    assert "differs from" in differs.stderr
    nowhere = run("fit records.csv --schema schema.json --epsilon 1 --out c.npz --budget-epsilon 4", 2)
    assert "pass its file" in nowhere.stderr


def test_a_check_counts_what_matches_and_is_paid_for(folder):
    # With epsilon 20 and 5 counts the noise is below 20 but for a chance of exp(-80).
    told = run("check records.csv --schema schema.json --epsilon 20 --ledger ledger.json --budget-epsilon 30")
    assert "Records: about 2,00" in told.stdout or "Records: about 1,9" in told.stdout
    assert all(f"  {name}" in told.stdout for name in ("age", "job", "income"))
    assert told.stdout.count("its states match") == 3 and "next to nothing" not in told.stdout
    assert "ledger.json: costs add up to 20-DP of the budget 30-DP, left 10-DP" in told.stdout
    assert "--ledger" not in told.stderr
    (entry,) = Ledger.open("ledger.json").entries
    assert (entry.columns, entry.what) == (("job", "income", "age"), "how many records match the states of 3 columns")
    assert "refused" in run("check records.csv --schema schema.json --epsilon 20 --ledger ledger.json", 3).stderr
    assert "adds up" in run("check records.csv --schema schema.json --epsilon 20").stderr
    assert NEEDLE not in told.output


def test_a_check_fails_where_states_match_nothing(folder):
    run('schema --variable "job=Office,Field" --variable "age=16-39,40-90" --cuts "income=10" --out other.json')
    told = run("check records.csv --schema other.json --epsilon 20 --json", 1)
    document = json.loads(told.stdout)
    assert [(row["variable"], row["verdict"]) for row in document["columns"]] == [
        *(("job", "nothing"), ("age", "nothing"), ("income", "nothing"))
    ]
    assert document["failed"] and document["verdict"] == "nothing"
    assert abs(document["n_records"] - 2000) < 20 and document["guarantee"] == {"measure": "pure", "epsilon": 20.0}
    public = run("check records.csv --schema other.json --rho 20 --n-records 2000 --adjacency replace_one -q", 1)
    assert "Records: 2,000, as declared" in public.stdout and public.stderr == ""
    assert public.stdout.count("match next to nothing") == 3


def test_what_is_impossible(folder):
    young, office = "age < 25 -> income = low", 'age >= 65 & job in {"office"}'
    rules = f"--impossible '{young}' --impossible '{office}'"
    columns = '--variable "job=office,field" --variable "income=low,high" --cuts "age=25,45,65"'
    run(f"schema {columns} {rules} --out rules.json")
    assert Schema.from_json("rules.json").impossible == (young, "age >= 65 & job in {office}")
    run("fit records.csv --schema rules.json --epsilon 2 --out model.npz")
    assert young in run("info model.npz").stdout
    assert json.loads(run("info model.npz --json").stdout)["impossible"][0] == young
    run("sample model.npz --n 5000 --out synthetic.csv")
    drawn = pd.read_csv("synthetic.csv")
    assert not ((drawn["age"] == "<25") & (drawn["income"] == "high")).any()
    assert not ((drawn["age"] == ">=65") & (drawn["job"] == "office")).any()
    told = json.loads(run("query model.npz --variables income --evidence age=20 --json").stdout)
    assert [row["probability"] for row in told["table"]] == [pytest.approx(1.0), 0.0]
    refused = run("query model.npz --variables job --evidence age=20 --evidence income=high", 2).stderr
    assert "--evidence is 'age=20, income=high': the model gives it the probability 0" in " ".join(refused.split())
    refused = run("sample model.npz --n 3 --out no.csv --evidence age=20 --evidence income=high", 2).stderr
    assert "--evidence is 'age=20, income=high': the model gives it the probability 0" in " ".join(refused.split())
    refused = run(f'schema {columns} --impossible "age < 20 -> income = low"', 2).stderr
    assert "cut at 20" in " ".join(refused.split())


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("--epsilon 0", "--epsilon=0.0"),
        ("", "--epsilon is missing"),
        ("--epsilon 1 --ledger new.json", "--ledger is 'new.json': it is new; pass what everything may spend"),
        ("--epsilon 1 --budget-epsilon 3", "pass its file too"),
        ("--epsilon 1 --adjacency replace_one", "--n-records=None"),
        ("--epsilon 1 --schema records.csv", "--schema is 'records.csv': that is not a schema"),
    ],
)
def test_a_check_that_cannot_be_made_costs_nothing(folder, arguments, told):
    schema = "" if "--schema" in arguments else "--schema schema.json"
    result = run(f"check records.csv {schema} {arguments}", 2)
    assert told in " ".join(result.stderr.split())
    assert result.stdout == "" and NEEDLE not in result.stderr and not Path("new.json").exists()
    assert "no such file" in run("check nothing.csv --schema schema.json --epsilon 1", 2).stderr


def test_what_fails_in_a_check_after_the_charge_says_so(folder, monkeypatch):
    def fails(*_):
        raise OSError("the files could not be read to their end")

    monkeypatch.setattr(record_matches, "matched_records", fails)
    assert "after the budget was spent" in run("check records.csv --schema schema.json --epsilon 1", 4).stderr


COST = "--epsilon 1 --delta 1e-6"
DISCOVER = 'discover records.csv --categories job,income --number "age=0:120:1" --bins 16 --out found.json'


def test_what_is_discovered_is_a_schema_that_says_what_it_cost(folder):
    # A count is 30 deviations of noise above the threshold; the needle is as far below.
    told = run(f"{DISCOVER} --epsilon 1 --delta 1e-6 --ledger l.json --budget-epsilon 3 --budget-delta 1e-5")
    assert "Records: about" in told.stdout and "  job     2 categories: " in told.stdout
    assert "l.json: costs add up to" in told.stdout and "--ledger" not in told.stderr
    found = Schema.from_json("found.json")
    assert list(found) == ["age", "job", "income"]  # as in the file
    assert found["job"] == ("field", "office", "other") and found["income"] == ("high", "low", "other")
    assert 12 <= len(found.numbers["age"].cells) <= 20
    (entry,) = Ledger.open("l.json").entries
    written = json.loads(Path("found.json").read_text(encoding="utf-8"))["discovered"][0]
    assert written["guarantee"] == entry.cost.to_dict() and NEEDLE not in told.output
    assert NEEDLE not in Path("found.json").read_text(encoding="utf-8")
    run("discover records.csv --categories job,income --epsilon 1 --delta 1e-6 --ledger l.json --out two.json")
    run("fit records.csv --schema two.json --epsilon 1 --delta 1e-6 --out m.npz --ledger l.json")
    assert len(Ledger.open("l.json").entries) == 3
    document = json.loads(run(f"{DISCOVER} --overwrite --epsilon 1 --delta 1e-6 --json").stdout)
    assert [column["variable"] for column in document["columns"]] == ["job", "income", "age"]
    assert document["columns"][0]["labels"] == ["field", "office"] and document["adjacency"] == "add_remove"


def test_what_is_refused_leaves_no_new_ledger(folder):
    run("discover records.csv --categories job,income --epsilon 1 --delta 1e-6 --out found.json")
    fit = "fit records.csv --epsilon 1 --delta 1e-9 --out model.npz --ledger new.json"
    told = " ".join(run(f"{fit} --schema found.json --budget-epsilon 3 --budget-delta 1e-6", 2).stderr.split())
    assert "which this ledger did not pay" in told and "pgmpy-dp schema --as-public FILE" in told
    assert "refused" in run(f"{fit} --schema schema.json --budget-epsilon 0.5", 3).stderr
    assert not list(Path().glob("new.json*"))
    run("schema --as-public found.json --out public.json")
    assert "discovered" not in Path("public.json").read_text(encoding="utf-8")
    run(f"{fit} --schema public.json --budget-epsilon 3 --budget-delta 1e-6")
    assert len(Ledger.load("new.json").entries) == 1


def test_what_is_declared_public_is_a_schema(folder):
    Path("no.json").write_text("{}", encoding="utf-8")
    assert "--as-public" in run("schema --as-public no.json", 2).stderr
    assert "a schema was passed too" in run('schema --as-public schema.json --variable "a=b,c"', 2).stderr
    assert "--as-public was passed too" in run("schema --as-public schema.json --from-header records.csv", 2).stderr


def test_what_is_discovered_is_learned_and_sampled_as_numbers(folder):
    """Found cuts, and a number that nobody has cut, from one ledger."""
    frame = pd.read_csv("records.csv", nrows=1500, encoding_errors="replace")[["age", "job"]]
    frame.assign(pay=1000 * frame["age"] + 7).to_csv("people.csv", index=False)
    ask = 'discover people.csv --categories job --number "age=0:120:1" --bins 16 --ledger l.json'
    run(f'{ask} --number "pay=0:200000:1 bins 8" {COST} --budget-epsilon 9 --budget-delta 1e-4 --out s.json')
    content = json.loads(Path("s.json").read_text(encoding="utf-8"))
    assert Schema.from_dict(content).numbers["pay"] == Number(0, 200_000, resolution=1, bins=8)
    run('schema --number "pay=0:200000:1" --number "age=0:120:1" --variable "job=field,office" --out whole.json')
    for schema in ("s", "whole"):
        run(f"fit people.csv --schema {schema}.json --epsilon 3 --delta 1e-6 --ledger l.json --out {schema}.npz")
        run(f"sample {schema}.npz --n 400 --out {schema}.csv")
        drawn = pd.read_csv(f"{schema}.csv")
        assert list(drawn) == ["age", "job", "pay"]  # as in the file
        for name, top in (("age", 120), ("pay", 200_000)):
            values = drawn[name].dropna()
            assert len(values) > 300 and (values % 1 == 0).all() and values.between(0, top).all()
        assert abs(drawn["age"].median() - frame["age"].median()) < 15
    assert len(Ledger.open("l.json").entries) == 3


def test_a_discovery_that_cannot_be_written_is_kept(folder, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device", "found.json")

    monkeypatch.setattr(discovery, "write_atomically", full)
    told = run(f"{DISCOVER} --epsilon 1 --delta 1e-6 --ledger l.json --budget-epsilon 3 --budget-delta 1e-5", 4)
    assert "what it bought is in found.release.npz" in told.stderr and NEEDLE not in told.output
    assert not Path("found.json").exists() and len(Ledger.open("l.json").entries) == 1
    found = Release.load("found.release.npz").schema
    assert found["job"] == ("field", "office", "other") and "age" in found.numbers


def test_options_of_discover(folder):
    rows = ["sex;day;code;more", *(f"{'F' if k % 2 else 'm '};2020-0{1 + k % 9}-01;{k % 3 - 1};1" for k in range(1500))]
    Path("odd.csv").write_text("\n".join(rows), encoding="utf-8")
    options = '--variable "sex=f,m" --strip --casefold --missing "code=-1" --other "" --bins 4 --delimiter ";"'
    options += ' --cuts more=0 --impossible "more < 0 -> sex = f"'
    dates = "--date day=2019-01-01:2021-12-31"
    run(f"discover odd.csv --categories code {options} {dates} --epsilon 2 --delta 1e-6 --out odd.json")
    found = Schema.from_json("odd.json")
    assert found["sex"] == ("f", "m") and not found.other
    assert found["code"] == ("0", "1", None) and found.reading("code").codes  # as it is written
    assert found["more"] == ("<0", ">=0") and found.impossible == ("more < 0 -> sex = f",)
    assert found.numbers["day"].text(found.numbers["day"].lower) == "2019-01-01"
    assert 3 <= len(found.numbers["day"].cells) <= 8 and found.reading("sex").casefold


CODES = {
    "zip": ("02116", "00501", "00501", "00501"),
    "snomed": ("999000011000000103", "999000011000000104"),
    "card": ("40000000000000000001", "40000000000000000002"),
    "version": ("3.10", "3.1"),
    "lot": ("12E3", "12000"),
    "sign": ("+123", "0123", "123"),
    "flag": ("TRUE", "true", "True"),
    "jab": ("inf", "nan", "Infinity", "NaN"),
    "blank": (" 7", "7"),
    "odd": ("٣١", "31"),
}


@pytest.fixture
def coded(folder):
    """A file of columns in which each cell is another code."""
    rows = [[states[k % len(states)] for states in CODES.values()] for k in range(1200)]
    Path("codes.csv").write_text("\n".join(map(",".join, [list(CODES), *rows])), encoding="utf-8")
    return "--epsilon 100 --delta 1e-9"


def test_codes_come_out_as_they_went_in(coded):
    """Noise is next to none; each code has at least 300 records."""
    run(f"discover codes.csv --categories {','.join(CODES)} {coded} --out s.json")
    found, written = Schema.from_json("s.json"), json.loads(Path("s.json").read_text(encoding="utf-8"))
    assert {name: set(found[name]) - {"other"} for name in CODES} == {name: {*texts} for name, texts in CODES.items()}
    assert all(entry["codes"] is True for entry in written["variables"])
    run(f"fit codes.csv --schema s.json {coded} --out m.npz")
    run("sample m.npz --n 500 --out drawn.csv")
    drawn = pd.read_csv("drawn.csv", dtype=str, keep_default_na=False)
    assert all({*drawn[name]} - {"other"} == {*texts} for name, texts in CODES.items())


def test_codes_are_declared_or_not(coded):
    """In a list of states, and away from discover's default."""
    run('schema --variable "zip=02116,2116,00501" --variable "n=1,2" --codes zip --out s.json')
    assert Schema.from_json("s.json").reading("zip").codes and not Schema.from_json("s.json").reading("n").codes
    told = run(f'check codes.csv --variable "zip=02116,2116,00501" --codes zip {coded}')
    assert "1,200" in told.stdout
    assert "if these are codes" in run('schema --variable "zip=02116,2116" --out t.json', 2).stderr
    assert "b is not a column that was described" in run('schema --variable "a=01,1" --codes b --out t.json', 2).stderr
    run(f"discover codes.csv --codes zip,lot {coded} --out two.json")
    assert list(Schema.from_json("two.json")) == ["zip", "lot"]
    run(f"discover codes.csv --categories version,flag --no-codes {coded} --out meant.json", 0)
    meant = Schema.from_json("meant.json")
    assert meant["version"] == (3.1, "other") and meant["flag"] == (1, "other") and not meant.reading("flag").codes
    assert (
        "leave it out with --no-codes"
        in run(f"discover codes.csv --codes zip --no-codes {coded} --out x.json", 2).stderr
    )


def test_discover_leaves_out_what_it_could_not_fill(folder):
    lines = "".join(f"k{k},{'xy'[k % 2]}\n" for k in range(2_000))
    (folder / "keys.csv").write_text("key,c\n" + lines)
    told = run("discover keys.csv --categories key,c --epsilon 1 --delta 1e-6 --out c.json", 0)
    assert list(Schema.from_json("c.json")) == ["c"] and "left out of the schema: to keep such a column" in told.stdout


def test_blank_is_the_state_of_empty_cells(folder):
    (folder / "q.csv").write_text("q,r\n" + "1,a\n,a\n2,b\n" * 400)
    run('schema --variable "q=1,2,blank" --variable "r=a,b" --missing "q=" --out q.json')
    assert Schema.from_json("q.json")["q"] == ("1", "2", None)
    assert "about 400 are blank" in run("check q.csv --schema q.json --epsilon 100").stdout
    assert Schema.from_dict(json.loads(run("""schema --variable 'q=1,"blank"'""").stdout))["q"] == ("1", "blank")
    said = run('check q.csv --variable "q=1,2,missing" --epsilon 100').stderr
    assert "'missing' is a text like any other; empty cells are blank: q=...,blank" in said
    refused = run('schema --variable q=1,2 --missing ""', 2).stderr
    assert 'missing by "age="' in refused and "all=" not in refused


def test_numbers_with_signs_are_declared_on_the_command_line(folder):
    lines = '"$1,000.50",8.9%,2020-01\n"$5k",0.5%,31.12.2020\n' * 300
    (folder / "m.csv").write_text("pay,rate,m\n" + lines)
    options = '--number "pay=0:9000 cuts 3000 units $,k=1000 thousands ," --number "rate=0:10 cuts 5 units %"'
    options += ' --date "m=2020-01-01:2020-12-31 cuts 2020-07-01 format %Y-%m format %d.%m.%Y"'
    found = json.loads(run(f"check m.csv {options} --epsilon 100 --json").stdout)
    assert [column["verdict"] for column in found["columns"]] == ["all"] * 3
    run(f"fit m.csv {options} --epsilon 100 --delta 1e-9 --out m.npz --overwrite")
    drawn = run("sample m.npz --n 20 --out - --id number").stdout.splitlines()
    assert drawn[0] == "number,pay,rate,m" and [line.split(",")[0] for line in drawn[1:]] == list(
        map(str, range(1, 21))
    )
    assert all(len(line.split(",")[2]) < 8 for line in drawn[1:]) and re.fullmatch(r"2020-\d\d", drawn[1].split(",")[3])
    assert "--id is 'pay'" in run("sample m.npz --n 2 --out - --id pay", 2).stderr
    assert "once at most" in run('schema --number "pay=0:9 units $ units %"', 2).stderr


def test_files_without_names_and_headers_with_too_many_commas(folder):
    (folder / "bare.csv").write_text("F,20,\nM,30,\n" * 300)
    declared = '--variable "sex=F,M" --number "age=0:99" --epsilon 100'
    assert "about 600 (100%" in run(f"check bare.csv --columns sex,age, {declared}").stdout
    (folder / "h.csv").write_text("a,b,,\n1,2,,\n")
    template = json.loads(run("schema --from-header h.csv").stdout)
    assert [entry["name"] for entry in template["variables"]] == ["a", "b"]


def test_the_kind_of_a_key_and_a_schema_of_linked_tables_from_options(folder):
    (folder / "p.csv").write_text("cust,seg\n" + "".join(f"{k},{'ab'[k % 2]}\n" for k in range(400)))
    (folder / "c.csv").write_text("cust,score\n" + "".join(f"{k}.0,{'hl'[k % 2]}\n" for k in range(400)))
    tables = "--parents p.csv --children c.csv"
    linked = f'{tables} --key cust --most 2 --variable seg=a,b --variable "score=h,l"'
    run(f"schema {linked} --out l.json")
    told = run(f"check {tables} --schema l.json --epsilon 100", 1).stdout
    assert "Hardly any of parent has child" in told and "--key-kind integer" in told
    assert "about       400" in run(f"check {tables} --schema l.json --key-kind integer --epsilon 100").stdout
    assert "--key-kind" in run("check p.csv --variable seg=a,b --epsilon 1 --key-kind text", 2).stderr
    run(f"schema {tables} --key cust --most 2 --variable seg=a,b --out t.json")
    template = json.loads((folder / "t.json").read_text())
    assert template["child"]["variables"] == [{"name": "score", "states": []}]
    budget = "--epsilon 2 --delta 1e-6 --ledger lk.ledger --budget-epsilon 9 --budget-delta 1e-5"
    run(f"discover {tables} --key cust --most 2 --categories seg,score --key-kind integer {budget} --out d.json")
    assert "Inside the schema" in run(f"check {tables} --schema d.json --epsilon 0.5 --ledger lk.ledger").stdout
    refused = run(f"check {tables} --schema d.json --key-kind text --epsilon 0.5 --ledger lk.ledger", 2).stderr
    assert "was discovered under unit" in refused


def test_columns_of_one_state_cost_nothing_and_are_in_samples(folder):
    (folder / "k.csv").write_text("a,c\n" + "x,NL\ny,NL\n" * 300)
    run("fit k.csv --variable a=x,y --variable c=NL --epsilon 9 --delta 1e-9 --out k.npz")
    assert set(run("sample k.npz --n 6 --out -").stdout.split()) == {"a,c", "x,NL", "y,NL"}


def test_discover_ends_with_1_where_it_found_nothing(folder):
    told = run("discover records.csv --categories diary --epsilon 1 --delta 1e-6 --out found.json", 1)
    assert "no category has so many records" in told.stdout and NEEDLE not in told.output
    assert Schema.from_json("found.json")["diary"] == (None, "other")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("--categories job --epsilon 1", "has no delta"),
        ("--categories job", "no budget was given"),
        ("--epsilon 1", "--categories is missing: say which columns"),
        ("--categories job,job --epsilon 1 --delta 1e-6", "job was described before"),
        ("--number age=0 --epsilon 1", "write lower and upper bound"),
        ("--number age=a:b --epsilon 1", "write numbers with decimal points"),
        ("--number age=9:0 --epsilon 1", "is not below upper"),
        ("--date age=2020:now --epsilon 1", "is not a day"),
        ("--categories town --epsilon 1 --delta 1e-6", "no column"),
        ("--categories job --missing a=b --epsilon 1 --delta 1e-6", "a is not a column that was described"),
        ("--categories job --variable job=a,b --epsilon 1 --delta 1e-6", "job was described before"),
        ("--categories job --recode job --epsilon 1 --delta 1e-6", "write the column, a colon"),
        ("--categories job --rho 1", "has no delta"),
        ("--categories job --epsilon 1 --delta 1e-6 --ledger new.json", "it is new"),
    ],
)
def test_a_discovery_that_cannot_be_made_costs_nothing(folder, arguments, told):
    result = run(f"discover records.csv {arguments} --out found.json", 2)
    assert told in " ".join(result.stderr.split())
    assert result.stdout == "" and NEEDLE not in result.stderr
    assert not Path("new.json").exists() and not Path("found.json").exists()
    assert "no such file" in run("discover no.csv --categories a --epsilon 1 --delta 1e-6 --out x.json", 2).stderr


def test_a_fit_to_next_to_nothing_says_so(folder):
    run('schema --variable "job=Office,Field" --variable "income=low,high" --out other.json')
    # An estimate of no records is 5 standard deviations above 0 with a chance below exp(-7), thrice below exp(-21).
    command = "fit records.csv --schema other.json --epsilon 1 --structure independent --overwrite --release r.npz"
    said = [CliRunner().invoke(app, shlex.split(f"{command} --out m.npz")) for _ in range(3)]
    assert all(told.exit_code == ("next to nothing" in told.stderr) for told in said)
    assert (
        MarkovNetwork.load("m.npz").privacy.guarantee == Privacy.of(Release.load("r.npz")).guarantee
    )  # what was paid for is there
    notes = [told.stderr for told in said if "next to nothing" in told.stderr]
    assert notes and "pgmpy-dp check tells" in notes[0]
    told = [json.loads(CliRunner().invoke(app, shlex.split(f"{command} --out m.npz --json -q")).stdout)["warnings"]
            for _ in range(3)]  # fmt: skip
    assert any("next to nothing" in warning for warnings in told for warning in warnings)
    right = run(f"{FIT} --structure independent --json")
    assert json.loads(right.stdout)["warnings"] == [] and "next to nothing" not in right.stderr
    # Of a public number, a released number far below it ends with 1 too: of 2,000 records 20 are inside.
    frame = pd.read_csv("records.csv", encoding="latin-1", nrows=2000)
    frame.loc[20:, "income"] = "none of them"
    frame.to_csv("few.csv", index=False)
    public = "fit few.csv --schema schema.json --epsilon 50 --structure independent --n-records 2000 --out public.npz"
    assert "are left out" in run(public, 1).stderr and Path("public.npz").exists()


def test_intervals_that_would_be_texts_are_refused(folder):
    Path("codebook.csv").write_text('variable,state\nage,"[30, 60)"\nage,"[60, 90)"\n')
    refused = " ".join(run("schema --codebook codebook.csv", 2).stderr.split())
    assert '--cuts "age=30,60,90"' in refused and "--texts age" in refused
    run("schema --codebook codebook.csv --texts age --out own.json")
    assert Schema.from_json("own.json")["age"] == ("[30, 60)", "[60, 90)")
    assert '--cuts "age=30,60,90"' in run('schema --variable "age=[30,60),[60,90)"', 2).stderr
    assert "age: '30-59' is a text" in run('schema --variable "age=30-59,60-89"').stderr
    assert run('schema --variable "age=30-59,60-89" --texts age').stderr == ""
    # A schema that was written is read, whatever is in it.
    run("plan --schema own.json --epsilon 1 --n 2000 --simulations 0")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("--epsilon 0", "--epsilon=0.0"),
        ("--delta 1e-6", "no budget was given"),
        ("--epsilon 1 --rho 1", "not both"),
        ("--epsilon 1 --out model.npz", "--out is 'model.npz': the file exists"),
        ("--epsilon 1 --release model.npz", "--release is 'model.npz': the file exists"),
        ("--epsilon 1 --out nowhere/m.npz", "--out is 'nowhere/m.npz': there is no folder"),
        ("--epsilon 1 --out .", "that is a folder"),
        ("--epsilon 1 --out records.csv --overwrite", "an input is the same file"),
        ("--epsilon 1 --release new.npz", "--out is the same file"),
        ("--epsilon 1 --schema nothing.json", "'nothing.json': No such file"),
        ("--epsilon 1 --schema records.csv", "--schema is 'records.csv': that is not a schema"),
        ("--epsilon 1 --edges age-wealth", "--edges is 'age-wealth'"),
        ("--epsilon 1 --edges-file records.csv", "--edges-file is 'records.csv': line 1"),
        ("--epsilon 1 --edges age-job --structure learn", "--structure is 'learn'"),
        ("--epsilon 1 --edges age-job --edges-file records.csv", "--edges-file is 'records.csv'"),
        ("--epsilon 1 --estimator naive-mle", "--estimator is 'naive-mle'"),
        ("--epsilon 1 --prior records.csv", "--prior='records.csv' is neither a model's file"),
        ("--epsilon 1 --prior model.npz --structure chow-liu", "--prior is 'model.npz': PrivateChowLiu takes none"),
        ("--epsilon 1 --adjacency replace_one", "--n-records=None"),
        ("--epsilon 1 --adjacency edge", "edge"),
        ("--epsilon 1 --ledger model.npz", "not a ledger"),
        ("--epsilon 1 --data nothing.csv", "DATA is 'nothing.csv'"),
        ("--epsilon 1 --data names.csv", "no column for the variables ['job', 'income', 'age']"),
    ],
)
def test_bad_arguments_are_refused_before_anything_is_spent(folder, arguments, told):
    Path("model.npz").write_text("")
    Path("names.csv").write_text(f"{NEEDLE},{NEEDLE}\n")
    data = "records.csv"
    words = shlex.split(arguments)
    if "--data" in words:
        data = words.pop(words.index("--data") + 1)
        words.remove("--data")
    for name, value in (("--schema", "schema.json"), ("--out", "new.npz"), ("--ledger", "ledger.json")):
        words += [] if name in words else [name, value]
    before = sorted(os.listdir())
    result = run(shlex.join(["fit", data, *words]), 2)
    assert told in " ".join(result.stderr.split())
    assert result.stdout == ""
    assert NEEDLE not in result.stderr
    assert "Traceback" not in result.output
    spent = Path("ledger.json").exists() and json.loads(Path("ledger.json").read_text())["entries"]
    assert not spent
    assert [name for name in sorted(os.listdir()) if not name.startswith("ledger.json")] == before


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("schema", "--variable"),
        ('schema --variable "a=1"', "has columns of one state alone"),
        ('schema --variable "a"', "write name=value"),
        ('schema --cuts "a=3,2"', "ascending"),
        ('schema --cuts "a=x"', "no other signs, ascending"),
        ('schema --cuts "a=1" --variable "a=1,2"', "described before"),
        ("schema --codebook records.csv", "not the file of the records"),
        ('schema --number "a=0"', "write lower and upper bound with a colon between"),
        (
            'schema --number "a=0:9 cut 3"',
            "each of cuts, bins, spikes, missing, outside, units, thousands, decimal once at most",
        ),
        ('schema --number "a=0:9 cuts 3, 4"', "without blanks in it"),
        ('schema --number "a=0:9 bins 2 bins 3"', "once at most"),
        ('schema --number "a=0:9 format %Y"', "once at most"),
        ('schema --number "a=0:200,000"', "write numbers with decimal points and no other signs"),
        ('schema --number "a=0:1_0"', "write numbers with decimal points"),
        ('schema --number "a=9:0"', "--number is 'a=9:0': Number lower=9 is not below upper=0"),
        ('schema --number "a=0:9 bins x"', "bins is not a whole number"),
        ('schema --number "a= "', "write lower and upper bound"),
        ('schema --date "a=1.1.2000:2.2.2001"', "'1.1.2000' is not a day; write it as 2020-01-31"),
        ('schema --date "a=2000-01-01:2001-01-01 format \'%d"', "a quotation mark is not closed"),
        ('schema --number "a=0:9" --date "a=2000-01-01:2001-01-01"', "described before"),
        ('schema --variable "s=F,M" --missing "age=3"', "age is not a column that was described; these are s"),
        ('schema --variable "s=F,M" --recode "s=F"', "write the column, a colon"),
        ('schema --variable "s=F,M" --recode "s:x="', "write cell=state with commas between"),
        ('schema --variable "s=F,M" --recode "s:x=F,"', "write cell=state with commas between"),
        ('schema --variable "s=F,M" --recode "s:x=F,x=M"', "'x' is there twice"),
        ('schema --variable "s=F,M" --recode "t:x=F"', "t is not a column that was described"),
        ('schema --variable "s=F,M" --recode "s:x=G"', "none of its states"),
        ("check records.csv --schema schema.json --strip --epsilon 1", "--strip is True: a schema was passed too"),
        ("check records.csv --epsilon 1", "describe columns by options"),
        ("plan --schema schema.json --epsilon 1 --n 0", "--n"),
        ("plan --schema schema.json --epsilon 1 --n 9 --alpha 0.1", "--width"),
        ("query schema.json --variables age", "not a saved model"),
        ("query model.npz --variables wealth", "--variables is 'wealth'"),
        ("query model.npz --variables age --evidence age=30", "--evidence"),
        ("query model.npz --variables age --evidence job=none", "one of the states office, field"),
        ("query model.npz --variables age,age", "each variable once"),
        ("sample model.npz --n 3 --out a.xlsx", "--out is 'a.xlsx'"),
        ("sample model.npz --n 3 --out schema.json", "--out"),
        ("sample model.npz --n -3 --out a.csv", "--n"),
        ("sample model.npz --n 3 --out a.csv --method exact", "--method"),
        ("sample model.npz --n 3 --out a.csv --evidence wealth=1", "--evidence"),
        ("info nothing.npz", "'nothing.npz': No such file"),
        ("query nothing.npz --variables age --of pair", "'nothing.npz': No such file"),
        ("ledger show schema.json", "not a ledger"),
        ("ledger show nothing.json", "'nothing.json': No such file"),
        ("ledger new a.json", "no budget was given"),
        ("refit schema.json --out a.npz", "holds no noisy tables"),
        ("suggest schema.json", "holds no noisy tables"),
        ("audit --estimator nothing", "--estimator is 'nothing': use one of NaiveMLE"),
        ("audit --estimator PrivateIsing --epsilon 1", "with a budget, use one of"),
        ("nonsense", "nonsense"),
    ],
)
def test_every_command_says_what_is_wrong(folder, command, told):
    if "model.npz" in command:
        run(f"{FIT} --structure independent")
    result = run(command, 2)
    assert told in " ".join(result.stderr.split())
    assert result.stdout == ""


def test_columns_are_described_by_options(folder):
    """The same for every command, in a file and without one."""
    options = (
        "--number 'age=0:120:1 cuts 18,65 missing drop' --variable sex=F,M --other sex=M --strip --casefold "
        "--date \"born=2001-01-01:2020-12-31 bins 2 format '%d %m %Y'\" "
        "--missing '?,NA' --missing 'age=-9,999' --recode 'sex:Male=M,\"F, or f\"=F' --recode sex:W=F"
    )
    run(f"schema {options} --out own.json")
    assert Schema.from_json("own.json") == Schema(
        {
            "sex": ["F", "M"],
            "age": Number(0, 120, cuts=[18, 65], resolution=1, missing="drop"),
            "born": Date("2001-01-01", "2020-12-31", bins=2, format="%d %m %Y"),
        },
        other={"sex": "M"},
        missing={"sex": ["?", "NA"], "age": ["?", "NA", "-9", "999"], "born": ["?", "NA"]},
        strip=True,
        casefold=True,
        recode={"sex": {"Male": "M", "F, or f": "F", "W": "F"}},
    )
    born = [f"{day:02d} 03 2004" for day in range(1, 29)] * 50
    frame = pd.DataFrame({"age": [30, -9, 999, 130] * 350, "sex": [" f", "MALE", "w", "?"] * 350, "born": born})
    frame.to_csv("people.csv", index=False)
    for how in (options, "--schema own.json"):
        columns = json.loads(run(f"check people.csv {how} --epsilon 1 --json").stdout)["columns"]
        assert {c["variable"]: round(c["matched"] / 350) for c in columns} == {"age": 1, "sex": 3, "born": 4}
    few = "--variable sex=F,M --strip --casefold --recode sex:W=F,Male=M --cuts age=25"
    run(f"fit people.csv {few} --epsilon 2 --structure independent --out people.npz")
    shares = [float(line.split()[1]) for line in run("query people.npz --variables sex").stdout.splitlines()[1:-1]]
    assert shares == pytest.approx([2 / 3, 1 / 3], abs=0.1)


def test_a_codebook(folder):
    Path("codebook.csv").write_text("variable,state\njob,office\njob,field\njob,none\nage,young\nage,old\n")
    run('schema --codebook codebook.csv --cuts "income=10,20" --other job=none --out own.json')
    schema = Schema.from_json("own.json")
    assert (schema["job"], schema.other["job"]) == (("office", "field", "none"), "none")
    assert schema["income"] == ("<10", "[10,20)", ">=20")


def test_a_survey_from_excel(folder):
    """Semicolons, decimal commas, Windows' letters: each message says the next option, then the counts are right."""
    rows = [f"{k};{18 + k % 60};{('klein', 'groß')[k % 2]};1.{k % 2}00,5" for k in range(600)]
    text = "\r\n".join(["Nr;age;größe;einkommen", *rows, f"{NEEDLE};1;2", f"{NEEDLE}"])
    Path("survey.txt").write_bytes(text.encode("cp1252"))
    Path("survey.csv").write_bytes(text.encode("cp1252"))
    run('schema --cuts "age=30,60" --cuts "einkommen=1050" --variable "größe=klein,groß" --out de.json')
    fit = "--schema de.json --epsilon 200 --structure independent --out de.npz --release de.release.npz --json"
    told = run(f"fit survey.txt {fit}", 2).stderr
    assert "--delimiter on the command line" in told
    told = run(f"fit survey.csv {fit}", 2).stderr
    assert "is not utf-8 at its byte 10." in told
    assert "--encoding 'cp1252' --delimiter ';'" in told
    told = run(f"fit survey.csv {fit} --encoding cp1252", 2).stderr
    assert "('Nr;age;größe;einkommen')" in told
    assert "--delimiter ';' on the command line (decimal=',' or --decimal , too" in told
    for options, said in (
        ("--delimiter ab", "delimiter='ab' is not a single sign"),
        ("--encoding utf-16", "encoding='utf-16' cannot be read by lines"),
        ("--decimal x", "decimal='x'"),
        ("--decimal , --thousands ,", "thousands=',' is decimal too"),
    ):
        assert said in run(f"fit survey.csv {fit} {options}", 2).stderr
    assert not list(Path().glob("de.*npz"))
    excel = "--delimiter ';' --encoding cp1252 --decimal , --thousands ."
    assert json.loads(run(f"fit survey.txt {fit} {excel}").stdout)["n_records"] == pytest.approx(600, abs=2)
    release = Release.load("de.release.npz")
    table = dict(zip(release.scopes, release.values, strict=True))
    np.testing.assert_allclose(table["einkommen",], [300, 300], atol=3)
    np.testing.assert_allclose(table["größe",], [300, 300], atol=3)
    Path("survey.tab").write_bytes(text.replace(";", "\t").encode())
    for tab in ("tab", "'\\t'"):
        run(f"fit survey.tab {fit} --delimiter {tab} --overwrite")


@pytest.mark.parametrize(
    ("text", "states"),
    [
        ("<18,[18,65),>=65", ("<18", "[18,65)", ">=65")),
        ('"a,b", c', ("a,b", "c")),
        ('Office (HQ, Berlin),"say ""hi""", "]x["', ("Office (HQ, Berlin)", 'say "hi"', "]x[")),
        ("a) yes,b) no", ("a) yes", "b) no")),
        ("a,,b", ("a", "", "b")),
        ("a;b,c", ("a;b", "c")),
    ],
)
def test_states_that_have_commas(tmp_path, text, states):
    run(f"schema --variable {shlex.quote(f'age={text}')} --out {tmp_path}/s.json")
    assert Schema.from_json(tmp_path / "s.json")["age"] == states


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('age=[0,18);"65+"', '[0,18);"65+" has quotation marks that are not double ones around a whole state'),
        ("age='a','b'", "'a' has quotation marks"),
        ('age=5" pipe,b', '5" pipe has quotation marks'),
        ("age=[0,18", "[0 has a bracket that is not closed"),
        ("age=a;b", "a;b is one state; write commas"),
        ('"age"=a,b', '"age" begins with a quotation mark'),
        ("'age=a,b'", "'age begins with a quotation mark"),
    ],
)
def test_states_that_are_not_read_as_they_look(text, told):
    stderr = run(f"schema --variable {shlex.quote(text)}", 2).stderr
    assert f"--variable is {text!r}: {told}" in " ".join(stderr.split())


def test_codebooks_from_elsewhere(folder):
    for sign in ";\t":
        Path("codebook.csv").write_text(f"\ufeffvariable{sign}state\njob{sign}office, remote\njob{sign}groß\n", "utf-8")
        run("schema --codebook codebook.csv --out own.json --overwrite")
        assert Schema.from_json("own.json")["job"] == ("office, remote", "groß")
    Path("codebook.csv").write_bytes(f"variable,state\njob,{NEEDLE}\njob,gro\xdf\n".encode("latin-1"))
    told = run("schema --codebook codebook.csv", 2).stderr
    assert "line 3 is not UTF-8; save the file as UTF-8" in told
    assert NEEDLE not in told


def written() -> list[bytes]:
    """Everything in all files of this folder but the records, archives unpacked."""
    contents = []
    for path in Path().rglob("*"):
        if path.is_file() and path.name not in ("records.csv", "records.parquet", "names.csv"):
            contents.append(path.read_bytes())
            if path.suffix == ".npz":
                contents += [array.tobytes() for array in np.load(path).values()]
    return contents


def test_no_value_of_a_record_gets_out(folder):
    frame = pd.read_csv("records.csv", on_bad_lines="skip", encoding_errors="replace", nrows=2000)
    frame.to_parquet("records.parquet")
    Path("names.csv").write_text("\n".join(Path("records.csv").read_text("latin-1").splitlines()[1:]))
    outputs = []
    for k, (data, options, code) in enumerate([
        ("records.csv", "--epsilon 1", 0),
        ("records.csv", "--epsilon 1 --structure chow-liu --json", 0),
        ("records.csv", "--epsilon 1 --edges age-income", 0),
        ("records.csv", "--epsilon 100", 3),
        ("records.csv", "--epsilon 1 --edges-file names.csv", 2),
        ("records.parquet", "--epsilon 1 --structure independent", 0),
        ("names.csv", "--epsilon 1", 2),
    ]):  # fmt: skip
        files = f"--schema schema.json --ledger ledger.json --out model{k}.npz --release release{k}.npz"
        budget = "" if Path("ledger.json").exists() else "--budget-epsilon 9"
        outputs.append(run(f"fit {data} {files} {options} {budget}", code).output)
    outputs.append(run("plan --schema names.csv --epsilon 1 --n 10", 2).output)
    outputs.append(run("schema --codebook names.csv", 2).output)
    assert not any(NEEDLE in output for output in outputs)
    assert len(written()) > 10
    assert not any(NEEDLE.encode() in content for content in written())


def test_a_librarys_message_is_not_shown(folder, monkeypatch):
    def read(path):
        return float(NEEDLE)

    monkeypatch.setattr("pgmpy_dp.private.data.table.open_source", read)
    result = run(FIT, 4)
    assert "ValueError" in result.stderr
    assert NEEDLE not in result.output


@pytest.mark.parametrize(
    "error",
    [
        OSError("the files could not be read to their end"),
        FileNotFoundError(2, "No such file or directory", "records.csv"),
        ValueError("an argument"),
        BudgetExceeded("more than what is left", spent=PureDP(1.0), asked=PureDP(1.0), left=PureDP(0.0)),
    ],
)
def test_no_exit_code_says_that_nothing_was_spent_when_something_was(folder, monkeypatch, error):
    """What is raised after the charge, whatever it is, does not end like a mistaken argument or an empty budget."""

    def fails(*_):
        raise error

    monkeypatch.setattr(table_operator, "contingency_tables", fails)
    result = run(f"{FIT} --edges age-income --ledger ledger.json", 4)
    assert str(Ledger.open("ledger.json").spent) == "2-DP"
    assert "after the budget was spent" in result.stderr
    assert NEEDLE not in result.output


def test_what_fails_while_it_is_told_was_spent_too(folder, monkeypatch):
    def fails(*_):
        raise ValueError("a summary")

    monkeypatch.setattr("pgmpy_dp.estimators.CollectiveMAP.to_dict", fails)
    assert "after the budget was spent" in run(f"{FIT} --edges age-income", 4).stderr


@pytest.mark.parametrize("suffix", [".csv.gz", ".parquet"])
def test_a_damaged_file_costs_nothing(folder, suffix):
    """It is read to its end before anything is spent."""
    frame = pd.read_csv("records.csv", encoding="latin-1", on_bad_lines="skip", nrows=1900)
    rows = pd.concat([frame[["age", "job", "income"]]] * 40)
    rows.to_csv("damaged.csv.gz", index=False) if suffix == ".csv.gz" else rows.to_parquet("damaged.parquet")
    content = bytearray(Path(f"damaged{suffix}").read_bytes())
    place = len(content) // 2 if suffix == ".csv.gz" else 4  # where the first column begins
    content[place : place + 200] = bytes(200)
    Path(f"damaged{suffix}").write_bytes(content)
    command = FIT.replace("records.csv", f"damaged{suffix}") + " --edges age-income --ledger ledger.json"
    assert NEEDLE not in run(command, 2).output
    assert not Path("ledger.json").exists()


def test_what_was_paid_for_is_kept(folder, monkeypatch):
    from pgmpy_dp.estimators import CollectiveMAP

    real = CollectiveMAP._learn

    def fails(self, noisy, progress):
        return real(self, noisy, progress) if noisy.cliques.variables == ("coin",) else 1 / 0

    monkeypatch.setattr(CollectiveMAP, "_learn", fails)
    result = run(f"{FIT} --edges age-income --ledger ledger.json", 4)
    assert "model.release.npz" in result.stderr
    assert not Path("model.npz").exists()
    assert str(Ledger.open("ledger.json").spent) == "2-DP"
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    run("refit model.release.npz --out again.npz")
    assert MarkovNetwork.load("again.npz").privacy.guarantee == Release.load("model.release.npz").guarantee


def test_a_fit_keeps_what_its_help_says(folder, monkeypatch):
    """Noisy tables only with --release, or if it fails once it has them; nothing between the charge and the tables."""
    told = " ".join(run("fit --help").stdout.split())
    assert "A fit that succeeds keeps the noisy tables only with --release" in told
    assert "fails between the charge and the tables, keeps nothing" in told
    run(f"{FIT} --edges age-income")
    monkeypatch.setattr("pgmpy_dp.private.noise.samplers.discrete_laplace", lambda *_, **__: 1 / 0)
    other = "fit records.csv --schema schema.json --epsilon 2 --edges age-income --out other.npz --ledger ledger.json"
    assert "refit" not in run(other, 4).stderr
    assert str(Ledger.open("ledger.json").spent) == "2-DP"
    assert sorted(path.name for path in Path().glob("*.npz")) == ["model.npz"]


def test_a_model_that_cannot_be_written_is_not_lost(folder, monkeypatch):
    def fails(self, path):
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(MarkovNetwork, "save", fails)
    Path("model.release.npz").write_text("another one")
    result = run(f"{FIT} --structure learn", 4)
    assert "model.release-1.npz" in result.stderr
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    assert Path("model.release.npz").read_text() == "another one"
    run("refit model.release-1.npz --out again.npz")


def test_an_audit_refutes_what_is_broken(monkeypatch):
    """Claims that hold survive but for 1e-6 each; noise of a fiftieth escapes with a probability below 1e-6."""
    told = run("audit --epsilon 1 --trials 10 --confidence 0.999999").stdout
    again = "audit --estimator CollectiveMAP --epsilon 1.0 --adjacency add_remove --trials 10 --confidence 0.999999"
    assert "holds so far" in told and f"Do it again: pgmpy-dp {again}\n" in told
    assert "holds so far" in run(again).stdout
    assert "CollectiveEM(epsilon, replace_one, n_iter=2)" in run("audit --list").stdout
    real = additive.laplace_scales
    monkeypatch.setattr(additive, "laplace_scales", lambda *a: tuple(scale / 50 for scale in real(*a)))
    result = run("audit --estimator NaiveMLE --epsilon 1 --trials 40 --json", 1)
    told = json.loads(result.stdout)
    assert (told["holds"], told["reports"][0]["lower_bound"] > 1) == (False, True)
    told = run("audit --estimator NaiveMLE --epsilon 1 --trials 40", 1).stdout
    assert re.search(
        r"^NaiveMLE +a record, or a person +epsilon 1 +epsilon \S+ +\d+ % +IS BROKEN +2 x 40 releases", told, re.M
    )
    assert "1 claim attacked, 1 is BROKEN." in told


def test_an_audit_is_a_table_for_a_stranger(tmp_path, monkeypatch):
    """Each row: what, what is promised, what was shown; and the command that does it again."""
    monkeypatch.chdir(tmp_path)
    name = "NaiveMLE(epsilon, add_remove, one run)"
    chosen = f"audit --estimator '{name}' --confidence 0.999999"
    printed = run(f"{chosen} --out audit.md -q").stdout
    heading, row, *rest = printed.split("\n")
    assert heading.split() == [
        "attacked",
        "protected",
        "promised",
        "at",
        "most",
        "shown",
        "at",
        "least",
        "of",
        "it",
        "verdict",
        "tried",
        "on",
    ]
    pattern = (
        rf"{re.escape(name)} +a record, or a person +epsilon 2 +epsilon \S+ +\d+ % +holds so far +1 release, [\d,]+ rec"
    )
    assert re.match(pattern, row)
    assert f"Do it again: pgmpy-dp {chosen}" in rest and "1 claim attacked, none is broken." in rest
    written = Path("audit.md").read_text(encoding="utf-8")
    assert "| attacked | protected |" in written and "\n".join(rest).strip() in written
    assert "exists" in run(f"{chosen} --out audit.md", 2).stderr
    assert ".md or .json" in run("audit --out audit.txt", 2).stderr
    told = run("audit --estimator distance_test --confidence 0.999999 --out audit.json").stdout
    assert "epsilon 1, delta 0.01" in told
    document = json.loads(Path("audit.json").read_text(encoding="utf-8"))
    assert document["holds"] and document["command"] in told and document["reports"][0]["delta"] == 0.01


@pytest.mark.parametrize("umask", [0o022, 0o027])
def test_others_may_read_what_is_for_them(folder, umask):
    """Models, pages, samples and schemas have the user's umask; releases and ledgers are their owner's alone."""
    before = os.umask(umask)
    try:
        run(f"{FIT} --release release.npz --ledger ledger.json --draws 5")
        run("report model.npz --out report.html --level 0.5")
        run("evidence model.npz --out evidence")
        run("sample model.npz --n 5 --out synthetic.csv")
        run("schema --variable a=b,c --out other.json")
        run("schema --from-header records.csv --out template.json")
    finally:
        os.umask(before)
    public = "model.npz", "report.html", "evidence/evidence.html", "synthetic.csv", "other.json", "template.json"
    assert {name: Path(name).stat().st_mode & 0o777 for name in public} == dict.fromkeys(public, 0o666 & ~umask)
    assert [Path(name).stat().st_mode & 0o777 for name in ("release.npz", "ledger.json")] == [0o600, 0o600]


def test_shells_complete():
    """Of typer: a command, and its options. The shell is told by itself, so it is not asked for here."""
    told = []
    for words, place in (("pgmpy-dp fi", 1), ("pgmpy-dp fit --publis", 2), ("pgmpy-dp ledger e", 2)):
        asked = {"_PGMPY_DP_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(place)}
        told.append(CliRunner().invoke(app, [], env=asked, prog_name="pgmpy-dp").stdout.split())
    assert told == [["fit"], ["--publish-if"], ["export"]]
    assert "--show-completion" in run("--help").stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_examples(command):
    told = run(f"{command} --help").stdout
    if command != "ledger":
        assert f"  pgmpy-dp {command} " in told
    assert _InOrder.order == COMMANDS


def test_plan_takes_every_structure(folder):
    for how in ("learn", "chow-liu", "independent"):
        for budget in ("--epsilon 1", "--rho 0.1", "--epsilon 1 --delta 1e-6 --adjacency replace_one"):
            told = json.loads(run(f"plan --schema schema.json --n 1000 {budget} --structure {how} --json").stdout)
            assert all(0 < table["expected_error"] <= 1 for table in told["tables"])
    told = json.loads(run("plan --schema schema.json --n 100000 --epsilon 2 --edges age-income,age-job --json").stdout)
    assert sorted((table["cells"], table["scale"]) for table in told["tables"]) == [(8, 1.0), (8, 1.0)]
    assert all(0 < table["expected_error_learned"] < 1 for table in told["tables"])
    assert "close to the records" in told["verdict"]
    theory = run("plan --schema schema.json --n 1000 --rho 1 --width 1 --min-weight 0.3 --alpha 0.01").stdout
    assert "every learner, n = Omega" in theory


def test_a_graph_with_hardly_an_edge_is_foreseen_and_said(folder):
    """Before by plan, afterwards as a note; not where a workload asks for more."""
    names = [f"c{k}" for k in range(20)]
    codes = np.random.default_rng(0).integers(0, 5, (150, 20))
    pd.DataFrame(codes, columns=names).to_csv("codes.csv", index=False)
    Schema({name: range(5) for name in names}).to_json("codes.json")
    budget = "--schema codes.json --epsilon 1 --delta 1e-9"
    assert "A graph without an edge is expected: nearly all of" in run(f"plan {budget} --n 150").stdout
    told = json.loads(run(f"plan {budget} --n 150 --json").stdout)
    assert told["few_edges"]
    assert not json.loads(run(f"plan {budget} --n 1000000 --json").stdout)["few_edges"]
    said = run("fit codes.csv --schema codes.json --epsilon 0.3 --delta 1e-9 --out codes.npz")
    assert said.stdout.startswith("Learned ") and "pass --workload with" in said.stderr
    assert "of the 19 pairs with it, which get 17% of what is left" in run(f"plan {budget} --n 9000 --target c3").stdout
    # A star stops where it does not pay, whatever it may have at most: rounds follow.
    assert "then up to 0 tables" not in run(f"plan {budget} --n 9000 --target c3").stdout
    told = json.loads(run(f"plan {budget} --n 1000000 --target c3 --json").stdout)
    assert told["rounds"] and not told["few_edges"]
    assert "it is for a graph that learn" in run(f"plan {budget} --n 9 --target c3 --structure chow-liu", 2).stderr
    # Of 150 records the noise may leave so few that a note says that.
    codes = np.random.default_rng(0).integers(0, 5, (2000, 20))
    pd.DataFrame(codes, columns=names).to_csv("more.csv", index=False)
    said = run(f"fit more.csv {budget} --workload c0,c1,c2 --out codes.npz --overwrite --json")
    assert json.loads(said.stdout)["edges"] and not json.loads(said.stdout)["warnings"]


def test_columns_that_are_not_read_are_said_and_have_no_mean(folder):
    """Money with its sign is a text: from released numbers alone, by the fit and by a query."""
    pays = [f'{"FM"[k % 2]},"$1,{k % 90 + 10:03d}.00",2020-{k % 12 + 1:02d},{k % 9}' for k in range(4000)]
    Path("money.csv").write_text("\n".join(["sex,pay,month,age", *pays]))
    columns = '--variable sex=F,M --number "pay=0:100000" --number age=0:8 --date "month=2020-01-01:2020-12-31"'
    fit = f"fit money.csv {columns} --epsilon 1 --delta 1e-9 --out money.npz --overwrite"
    said = run(fit).stderr
    assert all(f"{name} has a value within its bounds in 0." in said for name in ("pay", "month")) and "age" not in said
    assert len(json.loads(run(f"{fit} --json").stdout)["warnings"]) == 2
    told = run("query money.npz --variables pay").stdout
    assert "so that a mean would be noise" in told and "Where it is not missing" not in told
    assert "summary" not in json.loads(run("query money.npz --variables month --json").stdout)
    assert re.search(r"Where it is not missing: mean (3\.[89]|4)", run("query money.npz --variables age").stdout)


def process(*words: str, cwd: Path) -> subprocess.CompletedProcess:
    """The command in a process of its own, in which warnings are shown."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "default"}
    command = [sys.executable, "-m", "pgmpy_dp", *words]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=environment)


def test_in_a_process_of_its_own(folder):
    done = process(*shlex.split(f"{FIT} --json"), cwd=folder)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["model"] == "model.npz"
    loading, reading, account = done.stderr.splitlines()  # no progress bars, no warnings
    assert "loading" in loading and "costs of further fits" in account
    assert reading == "pgmpy-dp: reading records.csv"
    again = run(FIT, 2)
    assert again.stdout == ""
    assert again.stderr == "pgmpy-dp: --out is 'model.npz': the file exists; pass another name, or --overwrite\n"


class BeforeLoading:
    """`sys` where pgmpy has not been imported yet, as in a process that begins."""

    modules = frozenset(sys.modules) - {"pgmpy"}

    def __getattr__(self, name):
        return getattr(sys, name)


def test_quiet_is_quiet(folder, monkeypatch):
    monkeypatch.setattr(application, "sys", BeforeLoading())
    loading, *others = run(f"{FIT} --json").stderr.splitlines()
    assert "loading" in loading and len(others) == 2
    assert run(f"{FIT} --json --quiet --overwrite").stderr == ""


HEAVY = ("pgmpy.models", "torch", "pandas", "sklearn", "networkx", "matplotlib")


def waits_for_none(words: list[str], heavy: tuple[str, ...]) -> str:
    """What a command prints in a process of its own, in which none of these modules may have been imported."""
    code = (
        "import sys; from pgmpy_dp.cli import app\n"
        f"try: app({words})\n"  # it ends the process, as the program does
        f"except SystemExit as end: sys.exit(end.code or ', '.join(n for n in {heavy} if n in sys.modules) or 0)\n"
        "sys.exit('it went on')"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "") and done.stdout, done.stderr
    return done.stdout


def test_the_version_is_quick(folder):
    assert waits_for_none(["--version"], ("pandas", "pgmpy")) == f"pgmpy-dp {__version__}\n"


@pytest.fixture(scope="module")
def jobs(tmp_path_factory) -> Path:
    """A folder with a schema, a model with draws and a ledger, which nobody writes to."""
    made = tmp_path_factory.mktemp("jobs")
    with contextlib.chdir(made):
        Path("job.json").write_text(json.dumps(Schema({"job": ["a", "b"], "sex": ["F", "M"]}).to_dict()))
        frame = pd.DataFrame({"job": ["a", "b"] * 50, "sex": ["F", "M", "M", "F"] * 25})
        frame.to_csv("jobs.csv", index=False)
        # What rho converts to is dp-accounting's, which has SciPy.
        budget = "--epsilon 1 --delta 1e-9 --ledger jobs.json"
        run(f"fit jobs.csv --schema job.json {budget} --edges job-sex --draws 10 --out jobs.npz")
    return made


@pytest.mark.parametrize(
    "arguments",
    [
        *("info {jobs}/jobs.npz", "info {jobs}/jobs.npz --json"),
        "query {jobs}/jobs.npz --variables sex --evidence job=a --counts --level 0.8",
        "sample {jobs}/jobs.npz --n 5 --out drawn.csv",
        *(f"{kind} {{jobs}}/jobs.npz --level 0.8 --out page.html" for kind in ("report", "explore")),
        "evidence {jobs}/jobs.npz --out evidence",
    ],
)
def test_what_needs_no_learner_waits_for_none(jobs, folder, arguments):
    waits_for_none(arguments.format(jobs=jobs).split(), (*HEAVY, "scipy"))


def test_a_ledger_waits_for_the_accountant_alone(jobs):
    """What was spent is converted by dp-accounting, which imports SciPy."""
    waits_for_none(["ledger", "show", str(jobs / "jobs.json")], HEAVY)


def test_a_report_draws_no_density_that_the_file_has(folder):
    """SciPy is what draws them, twice as long as all else that a report does."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"pay": rng.lognormal(5, 1, 2000).round(), "sex": rng.choice(["F", "M"], 2000)})
    frame.to_csv("pay.csv", index=False)
    run(
        "fit pay.csv --number pay=0:5000:1 --variable sex=F,M --epsilon 3 --delta 1e-9 --draws 20 --out pay.npz "
        "--ledger pay.json"
    )
    network = MarkovNetwork.load("pay.npz")
    assert network.within["pay"].density.kept is None and len(network.posterior.within["pay"].density.kept) == 20
    page = report_page(SavedModel(read_model_file("pay.npz")), files=["pay.npz"])
    waits_for_none(["report", "pay.npz", "--out", "page.html"], ("pgmpy.models", "pandas", "scipy"))
    assert Path("page.html").read_text() == page
    # A file of before has no draws, and the page is the same.
    posterior = network.posterior
    network.posterior = replace(posterior, within=network.within)
    assert report_page(network, files=["pay.npz"]) == page


def test_a_saved_model_answers_as_pgmpy_s(folder):
    """Pages, answers and intervals from a file without pgmpy are those of the model that pgmpy loads."""
    run(f"{FIT} --draws 20 --structure learn")
    saved, network = SavedModel(read_model_file("model.npz")), MarkovNetwork.load("model.npz")
    assert explorer_page(saved) == explorer_page(network)
    assert comparison_page(saved, saved) == comparison_page(network, network)
    assert report_page(saved, level=0.8) == report_page(network, level=0.8)
    told = json.loads(run("query model.npz --variables income --evidence age=30 --counts --json").stdout)["table"]
    frame = network.ask(["income"], {"age": "30"}, counts=True).to_frame()
    assert [row["upper"] for row in told] == pytest.approx(frame["upper"].tolist(), rel=1e-12)
    assert [row["count_lower"] for row in told] == pytest.approx(frame["count_lower"].tolist(), rel=1e-9)


@pytest.mark.parametrize("rows", ["1", "3", "shares"])
def test_persons_with_several_rows_are_protected_with_all_of_them(folder, rows):
    frame = pd.DataFrame({"who": np.repeat(np.arange(500), 4), "job": ["office", "field", "field", "field"] * 500})
    frame.to_csv("stays.csv", index=False)
    run('schema --variable "job=office,field" --out job.json')
    how = f"--schema job.json --unit who --rows-per-unit {rows}"
    told = json.loads(
        run(f"fit stays.csv {how} --rho 1 --out stays.npz --ledger stays.json --budget-rho 3 --json").stdout
    )
    assert abs(told["n_records"] - 500 * (1 if rows == "shares" else int(rows))) < 40
    assert "all rows of one 'who'" in str(MarkovNetwork.load("stays.npz").privacy)
    checked = json.loads(run(f"check stays.csv {how} --rho 1 --ledger stays.json --json").stdout)
    assert abs(checked["n_records"] - told["n_records"]) < 40
    assert [entry.unit for entry in Ledger.load("stays.json").entries] == ["who", "who"]
    refused = run("fit stays.csv --schema job.json --rho 1 --out again.npz --ledger stays.json", 2)
    assert "who" in refused.output and not Path("again.npz").exists()


@pytest.mark.parametrize("rows", ["0", "all", "-1"])
def test_numbers_of_rows_that_are_none(folder, rows):
    assert "--rows-per-unit=" in run(f"{FIT} --unit diary --rows-per-unit {rows}", 2).output
    assert "pass unit" in run(f"{FIT} --rows-per-unit 2", 2).output


def test_numbers_without_cells_are_fitted_and_samples_are_in_the_order_of_the_file(folder):
    run('schema --variable "income=low,high" --variable "job=office,field" --number "age=0:120:1" --out fine.json')
    assert "age: cells of a fine grid" in run("plan --schema fine.json --epsilon 2 --delta 1e-9 --n 2000").output
    run("plan --schema fine.json --epsilon 2 --n 2000 --structure chow-liu", code=2)
    assert run("check records.csv --schema fine.json --epsilon 1").output.count("its states match") == 3
    run("fit records.csv --schema fine.json --epsilon 2 --delta 1e-9 --out fine.npz")
    run("sample fine.npz --n 200 --out fine.csv")
    drawn = pd.read_csv("fine.csv")
    assert list(drawn) == ["age", "job", "income"]
    assert drawn["age"].between(0, 120).mean() > 0.8
    assert drawn["age"].nunique() > 20


def test_levels_of_a_file_of_the_tree_and_of_prefixes(folder):
    tracts = [f"060{k:02d}" for k in range(20)]
    (folder / "tree.csv").write_text(
        "tract,county,state\n" + "".join(f"{t},c{k // 4},{'CA' if k < 12 else 'NV'}\n" for k, t in enumerate(tracts))
    )
    rows = [
        f"{tracts[k % 20] if k % 10 else '?'},{'ab'[k % 2]},{('E11', 'E12', 'I10')[k % 3]},Ohio" for k in range(3000)
    ]
    (folder / "areas.csv").write_text("\n".join(["tract,race,icd,state", *rows, ""]))
    described = "--variable race=a,b --variable icd=E11,E12,I10,I11 --levels icd=chapter:1,block:2"
    rule = '--impossible "state = NV & race = b -> chapter = I"'
    run(f"schema --levels tract=tree.csv {described} {rule} --other tract=unknown --out areas.json")
    schema = Schema.from_json("areas.json")
    assert [*schema.levels] == ["block", "chapter", "county", "state"]
    assert schema.cardinality("state") == 3
    told = run("check areas.csv --schema areas.json --epsilon 100").stdout
    assert "about 300 cells have no place in the tree of its levels" in told
    run("fit areas.csv --schema areas.json --rho 100 --edges tract-race,race-icd --out areas.npz")
    assert "state, a level of tract (3 states)" in run("info areas.npz").stdout
    answer = json.loads(run("query areas.npz --variables state,chapter --evidence race=a --json").stdout)
    assert answer["variables"] == ["state", "chapter"]
    assert run("query areas.npz --variables race --evidence county=c1").exit_code == 0
    assert (
        "use one of the states CA, NV, unknown" in run("query areas.npz --variables race --evidence state=XX", 2).stderr
    )
    assert "has 'tract' twice" in run("query areas.npz --variables state,county", 2).stderr
    drawn = run("sample areas.npz --n 50 --out - --evidence county=c1").stdout.splitlines()
    assert drawn[0] == "tract,county,state,race,icd,block,chapter"
    assert {line.split(",")[1] for line in drawn[1:]} == {"c1"}
    assert "it is a column of the model" in run("sample areas.npz --n 5 --out a.csv --id state", 2).stderr
    counts = [(f"c{k}", race, 100 + k) for k in range(5) for race in "ab"] + [("unknown", race, 7) for race in "ab"]
    (folder / "county.csv").write_text("county,race,n\n" + "".join(f"{c},{race},{n}\n" for c, race, n in counts))
    known = "--public county.csv --public-from elsewhere"
    run(f"fit areas.csv --schema areas.json --rho 100 --edges tract-race,race-icd --out known.npz {known}")
    run("sample known.npz --method agreeing --n 1034 --out known.csv")
    sample = pd.read_csv("known.csv").groupby(["county", "race"]).size()
    assert sample.to_dict() == {(county, race): n for county, race, n in counts}


@pytest.mark.parametrize(
    ("levels", "message"),
    [
        ("tract=none.csv", "No such file"),
        ("tract=records.csv", "no tree"),
        ("icd=chapter:1", "list the codes before"),
        ("age", "--levels"),
    ],
)
def test_trees_that_cannot_be_read(folder, levels, message):
    (folder / "records.csv").write_text("tract\n1\n")
    assert message in run(f"schema --variable race=a,b --levels {levels}", 2).stderr
