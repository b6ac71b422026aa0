"""``pgmpy-dp start``: questions about a file whose first line alone is read, and the commands that they lead to."""

from __future__ import annotations

import datetime
import json
import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from pgmpy_dp import Date, Ledger, MarkovNetwork, Number, Schema
from pgmpy_dp.cli import app

NEEDLE = "needle-9d1f"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A folder with a plain file, and one with days, numbers and several rows a person."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    n = 2000
    plain = {"name": [f"{NEEDLE}-{k}" for k in range(n)], "sex": rng.choice(["F", "M"], n)}
    plain |= {"smoker": rng.choice(["no", "yes", ""], n), "job": rng.choice(["office", "field", NEEDLE], n)}
    pd.DataFrame(plain).to_csv("plain.csv", index=False)
    days = [datetime.date(2020, 1, 1) + datetime.timedelta(int(day)) for day in rng.integers(0, 1500, n)]
    visits = {"patient": np.repeat(np.arange(n // 2), 2), "admitted": [day.strftime("%d.%m.%Y") for day in days]}
    visits |= {"sex": plain["sex"], "pay, gross": [f"{pay:.1f}".replace(".", ",") for pay in rng.gamma(2, 900, n)]}
    pd.DataFrame(visits).to_csv("visits 2024.csv", index=False, sep=";")
    return tmp_path


def start(command: str, answers: list[str], code: int = 0):
    """Result of ``start`` with these answers, of which it may not ask for more."""
    result = CliRunner().invoke(app, shlex.split(f"start {command}"), input="".join(f"{line}\n" for line in answers))
    assert result.exit_code == code, result.output + repr(result.exception)
    assert NEEDLE not in result.output
    return result


def run_all(told: str) -> list[str]:
    """The three commands that were printed, run; and what they print."""
    commands = re.findall(r"^  pgmpy-dp (.*)$", told, re.M)
    assert [command.split()[0] for command in commands] == ["check", "fit", "report"]
    results = [CliRunner().invoke(app, shlex.split(command)) for command in commands]
    assert [result.exit_code for result in results] == [0, 0, 0], [result.output for result in results]
    return [result.stdout for result in results]


PLAIN = ["", "skip", "category", "F,M", "-", "c", "no,yes", "", "C", "office,field", "other job"]


@pytest.mark.parametrize("budget", [("1", "1e-9"), ("0.1", "1e-5"), ("50", "1e-9"), ("2", "0")])
def test_a_plain_file_leads_to_a_report(budget):
    """Whatever the budget is, the parts of check and fit are within it."""
    told = start("plain.csv", [*PLAIN, *budget]).stdout
    assert "Wrote plain.schema.json: 3 of 4 columns" in told
    states = {"sex": ["F", "M"], "smoker": ["no", "yes", "other"], "job": ["office", "field", "other job"]}
    expected = Schema(states, other={"smoker": "other", "job": "other job"}, strip=True)
    assert Schema.from_json("plain.schema.json").to_dict() == expected.to_dict()
    if budget[0] == "0.1":
        # 2,000 records are next to nothing for it: the commands are allowed, and end as what they find is worth.
        for command in re.findall(r"^  pgmpy-dp (.*)$", told, re.M):
            assert CliRunner().invoke(app, shlex.split(command)).exit_code in (0, 1)
    else:
        check, fit, _ = run_all(told)
        assert "its states match" in check and "between 3 variables" in fit
        assert NEEDLE not in Path("plain.html").read_text(encoding="utf-8")
    ledger = Ledger.load("plain.ledger.json")
    assert len(ledger.entries) == 2 and ledger.budget.epsilon == float(budget[0])
    assert MarkovNetwork.load("plain.npz").posterior.draws.n_draws == 50


def test_days_numbers_and_persons():
    first, last = "2020-01-01", "2024-12-31"
    answers = ["patient", "2", "d", f"{first}:{last} format %d.%m.%Y", "c", "F,M", "-", "n", "0:20000", "", ""]
    told = start("'visits 2024.csv' --delimiter ';' --decimal , --out s.json", answers).stdout
    schema = Schema.from_json("s.json")
    assert schema["admitted"] == Date(first, last, format="%d.%m.%Y") and schema["pay, gross"] == Number(0, 20000)
    _, fit, _ = run_all(told)
    assert "add_remove of all rows of one 'patient'" in fit
    assert abs(MarkovNetwork.load("visits 2024.npz").posterior.n_records - 2000) < 500


def test_an_answer_that_is_none_is_asked_for_again():
    answers = ["nobody", "", "sip", "skip", "c", "F", "F,M", "-", "n", "0-120", "120:0", "0:120:1", "skip"]
    told = start("plain.csv", [*answers, "-1", "much", "1", "2", "0"]).stdout
    assert told.count("Error: ") == 8
    assert "that is no column; write one of name, sex, smoker, job, or nothing" in told
    assert 'Error: write lower and upper bound with a colon between: "age=0:120:1 cuts 18,65"' in told
    assert Schema.from_json("plain.schema.json")["smoker"] == Number(0, 120, resolution=1)
    assert "--budget-epsilon 1 --budget-delta 0" in told


def test_nothing_but_the_first_line_is_read():
    """The same questions and answers for files of other records, and for none."""
    told = []
    for records in (Path("plain.csv").read_bytes(), b"name,sex,smoker,job\n", b"name,sex,smoker,job\n\xff,\n\x00"):
        Path("plain.csv").write_bytes(records)
        told.append((start("plain.csv --overwrite", [*PLAIN, "", ""]).output, Path("plain.schema.json").read_bytes()))
    assert told[0] == told[1] == told[2]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (f"31,F\n4,{NEEDLE}\n", "has numbers for names, not quoted here in case it is a record; put a line of names"),
        ("", "the first line of 'records.csv' has no names"),
        (",,\n1,2,3\n", "its first line does not name each column once"),
        ("a,b,a\n1,2,3\n", "its first line does not name each column once"),
        ("a;b\n1;2\n", "its first line is a single name; pass --delimiter ';'"),
    ],
)
def test_a_file_without_usable_names_is_refused(content, message):
    Path("records.csv").write_text(content)
    result = start("records.csv", [], 2)
    assert message in result.stderr and result.stderr.count("\n") == 1 and not Path("records.schema.json").exists()


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        (PLAIN, "the answers ended before the questions did; nothing was written"),
        (["", "s", "s", "s", "s", "1", "0"], "every column was skipped"),
    ],
)
def test_answers_that_lead_nowhere_write_nothing(answers, message):
    assert message in start("plain.csv", answers, 2).stderr
    assert not Path("plain.schema.json").exists()


def test_what_exists_stays():
    Path("plain.schema.json").write_text(json.dumps({}))
    assert "the file exists; pass another name, or --overwrite" in start("plain.csv", [], 2).stderr
