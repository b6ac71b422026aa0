"""Odd files, names and arguments on the command line: one sentence each, before anything is spent, and nothing lost."""

from __future__ import annotations

import itertools
import json
import os
import re
import shlex
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from pgmpy_dp import Budget, Ledger, MarkovNetwork, Number, Schema
from pgmpy_dp.cli import app
from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.private.atomic_file import write_atomically
from pgmpy_dp.private.guarantee import PureDP
from pgmpy_dp.private.reading import records
from pgmpy_dp.private.reading.source_base import Source

ODD = "ho\x1b[31mt\x07 \u202eab\nforged: line"
FORMULA = '=HYPERLINK("x")'


def run(command: str | list[str], code: int = 0):
    words = shlex.split(command) if isinstance(command, str) else command
    result = CliRunner().invoke(app, words)
    assert result.exit_code == code, result.output + repr(result.exception)
    return result


def model(states: dict) -> MarkovNetwork:
    schema = Schema(states)
    scope, sizes = tuple(schema.variables), tuple(map(schema.cardinality, schema.variables))
    table = np.log(np.arange(1.0, np.prod(sizes) + 1))
    joint = LogLinearModel(Cliques(scope, sizes, (scope,)), table)
    return MarkovNetwork.from_log_linear(joint, nx.complete_graph(scope), schema)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model({"job": ["a", FORMULA, "-5"], "sex": ["F", "M"]}).save("model.npz")
    frame = pd.DataFrame({"job": ["a", "-5"] * 100, "sex": ["F", "M"] * 100})
    frame.to_csv("records.csv", index=False)
    Schema({"job": ["a", "-5"], "sex": ["F", "M"]}).to_json("schema.json")
    return tmp_path


class TestOutputs:
    def test_only_regular_files_are_replaced(self, folder):
        os.mkfifo("pipe.csv")
        for flags in ("", "--overwrite"):
            told = run(f"sample model.npz --n 3 --out pipe.csv {flags}", 2).stderr
            assert "'pipe.csv': that is a device or a pipe" in told
        with pytest.raises(OSError, match="no regular file"):
            write_atomically("pipe.csv", b"")
        assert Path("pipe.csv").is_fifo()

    def test_a_link_stays_and_what_it_leads_to_is_written(self, folder):
        Path("elsewhere").mkdir()
        Path("link.csv").symlink_to("elsewhere/true.csv")
        run("sample model.npz --n 3 --out link.csv")
        assert Path("link.csv").is_symlink() and len(pd.read_csv("elsewhere/true.csv")) == 3
        assert "the file exists" in run("sample model.npz --n 4 --out link.csv", 2).stderr
        run("sample model.npz --n 4 --out link.csv --overwrite")
        assert Path("link.csv").is_symlink() and len(pd.read_csv("elsewhere/true.csv")) == 4
        Path("model-link.npz").symlink_to("model.npz")
        assert "an input is the same file" in run("report model.npz --out model-link.npz --overwrite", 2).stderr

    @pytest.mark.parametrize(
        ("command", "begins"),
        [
            ("sample model.npz --n 3 -q", "job,sex\n"),
            ("report model.npz", "<!DOCTYPE html>"),
            ("explore model.npz", "<!DOCTYPE html>"),
            ("ledger export ledger.json", "what,columns"),
            ("schema --variable sex=F,M", "{"),
        ],
    )
    def test_a_dash_is_standard_output_where_text_is_written(self, folder, command, begins):
        run("ledger new ledger.json --epsilon 1")
        result = run(f"{command} --out -")
        assert result.stdout.lower().startswith(begins.lower()) and result.stderr == ""
        assert not Path("-").exists()

    @pytest.mark.parametrize(
        "command",
        [
            "fit records.csv --schema schema.json --epsilon 1 --out - --ledger new.json",
            "fit records.csv --schema schema.json --epsilon 1 --out model2.npz --release - --ledger new.json",
            "discover records.csv --categories job --epsilon 1 --delta 1e-9 --out -",
            "check records.csv --schema schema.json --epsilon 1 --ledger - --budget-epsilon 3",
            "ledger new - --epsilon 1",
            "sample model.npz --n 3 --out - --json",
        ],
    )
    def test_a_dash_is_refused_elsewhere(self, folder, command):
        assert "is '-': standard output is not for this" in run(command, 2).stderr
        assert not Path("-").exists() and not Path("new.json").exists()

    def test_nobody_who_reads_is_no_mistake(self, folder):
        read, write = os.pipe()
        os.close(read)
        command = [sys.executable, "-m", "pgmpy_dp", "sample", "model.npz", "--n", "9", "--out", "-", "-q"]
        done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE)
        os.close(write)
        assert (done.returncode, done.stderr) == (141, b"")


class TestNames:
    @pytest.fixture
    def odd(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        model({ODD: ["a", "b\x9b31m"], "sex": ["F\r\x1b]0;title\x07", "M"]}).save("model.npz")

    @staticmethod
    def is_clean(text: str) -> bool:
        return all(sign == "\n" or sign.isprintable() for sign in text) and "\nforged" not in text

    @pytest.mark.parametrize(
        "command",
        [
            ["info", "model.npz"],
            ["info", "model.npz", "--json"],
            ["query", "model.npz", "--variables", ODD],
            ["query", "model.npz", "--variables", "sex", "--evidence", f"{ODD}=a"],
            ["query", "model.npz", "--variables", "sex", "--evidence", f"{ODD}=a", "--json"],
            ["report", "model.npz", "--out", "-"],
            ["score", "model.npz", "--epsilon", "1", "--n", "100"],
        ],
    )
    def test_they_control_nothing(self, odd, command):
        result = run(command)
        assert self.is_clean(result.stdout) and self.is_clean(result.stderr)
        if "--json" in command:
            document = json.loads(result.stdout)
            assert ODD in document.get("variables", ()) or ODD in document["evidence"]

    def test_errors_and_records_of_releases_too(self, odd):
        for command in (["query", "model.npz", "--variables", "\x1b[31m\nx"], ["\x1b[31m"], ["info", "\x1b\n\u202e"]):
            told = run(command, 2).stderr
            assert self.is_clean(told) and told.count("\n") == 1
        ledger = Ledger(Budget(epsilon=1.0))
        ledger.charge(PureDP(0.5), what=ODD, columns=[ODD], mechanism="x", adjacency="add_remove")
        assert self.is_clean(ledger.summary())

    def test_discovered_categories_come_from_records(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        Path("records.csv").write_text(
            "job\n" + f'"{FORMULA.replace(chr(34), chr(34) * 2)}"\n' * 300 + "\x1b[31m\n" * 300
        )
        result = run("discover records.csv --categories job --epsilon 1 --delta 1e-6 --out schema.json")
        assert self.is_clean(result.stdout) and "\x1b" not in Path("schema.json").read_text()
        run("fit records.csv --schema schema.json --epsilon 1 --out model.npz -q")
        told = run("sample model.npz --n 400 --out plain.csv").stderr
        assert "a spreadsheet would compute '=HYPERLINK" in told and "--spreadsheet-safe" in told
        assert run("sample model.npz --n 400 --out safe.csv --spreadsheet-safe").stderr == ""
        assert set(pd.read_csv("plain.csv")["job"]) & {FORMULA}
        assert {text[0] for text in pd.read_csv("safe.csv")["job"]} <= {"'", "o"}

    def test_signs_that_the_terminal_lacks_end_nothing(self, tmp_path):
        model({"größe": ["ä", "€"]}).save(tmp_path / "model.npz")
        told = subprocess.run(
            [sys.executable, "-m", "pgmpy_dp", "query", "model.npz", "--variables", "größe"],
            cwd=tmp_path,
            env=os.environ | {"PYTHONIOENCODING": "ascii"},
            capture_output=True,
            check=True,
        )
        assert b"gr\\xf6\\xdfe" in told.stdout


def test_a_ledger_in_a_spreadsheet_computes_nothing(folder):
    ledger = Ledger.open("ledger.json", Budget(epsilon=1.0))
    ledger.charge(PureDP(0.5), what="=1+1", columns=["@x"], mechanism="-x", adjacency="add_remove")
    row = run("ledger export ledger.json --out -").stdout.splitlines()[1]
    assert row.startswith("'=1+1,'@x,'-x,pure,0.5")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("--epsilon 1e308 --delta 1e-9", "epsilon=1e+308 protects nothing; pass 1e+15 or less"),
        ("--rho 1e308", "rho=1e+308 protects nothing"),
        ('--epsilon 1 --workload "job,sex=1e308; sex,job=1e308"', "=1e+308 is out of range; weights count"),
        ('--epsilon 1 --workload "job,sex=1e-300"', "=1e-300 is out of range; weights count"),
        ('--epsilon 1 --workload " ; "', "--workload is ' ; ': it names nothing"),
        ("--delta 1e-9", "--epsilon is missing"),
        ("--epsilon abc", "--epsilon is 'abc': "),
        ("--epsilon=abc", "--epsilon is 'abc': "),
        ("--epsilon 1 --draws -3", "--draws is '-3': "),
        ("--epsilon 1 --structure tree", "--structure is 'tree': "),
        ("--nosuch 1", "--nosuch"),
    ],
)
def test_a_mistake_is_one_line_and_costs_nothing(folder, arguments, told):
    run("ledger new ledger.json --epsilon 1e10")
    result = run(f"fit records.csv --schema schema.json --out new.npz --ledger ledger.json {arguments}", 2)
    # Of two, which the learner finds, it had been said which file would be read.
    mistake = result.stderr.removeprefix("pgmpy-dp: reading records.csv\n")
    assert result.stdout == "" and mistake.count("\n") == 1
    assert told in mistake and mistake.startswith("pgmpy-dp: ")
    assert Ledger.load("ledger.json").entries == () and not Path("new.npz").exists()


@pytest.mark.parametrize("command", ["fit", "ledger show", "nosuch", "fit records.csv --epsilon 1 --out new.npz"])
def test_what_is_missing_is_said_in_one_line(folder, command):
    result = run(command, 2)
    assert result.stderr.count("\n") == 1 and "None" not in result.stderr
    assert re.match("pgmpy-dp: (Missing|No such|--variable is missing)", result.stderr)


def test_every_command_takes_q(folder):
    run("ledger new ledger.json --epsilon 1 -q")
    for command in (
        *("report model.npz --out a.html", "explore model.npz --out b.html", "info model.npz"),
        *("query model.npz --variables sex", "ledger show ledger.json", "schema --variable a=b,c"),
    ):
        assert run(f"{command} -q").stderr == ""


@pytest.mark.parametrize(
    "ask",
    [
        lambda m: m.query(5),
        lambda m: m.query(None),
        lambda m: m.query([["sex"]]),
        lambda m: m.query("sex", 5),
        lambda m: m.query("sex", ["job"]),
        lambda m: m.probability(5),
        lambda m: m.probability("sex"),
        lambda m: m.ask("sex", quantiles=0.5),
        lambda m: m.sample("3"),
        lambda m: m.sample(3, evidence=["job"]),
        lambda m: m.report("a.html", level=None),
        lambda m: m.explorer("a.html", level="0.9"),
    ],
)
def test_arguments_of_models_are_named(folder, ask):
    with pytest.raises(
        (TypeError, ValueError), match=r"(variables|evidence|event|variable|quantiles|n|level)=.*(pass|must|use)"
    ):
        ask(MarkovNetwork.load("model.npz"))


def test_arguments_of_posteriors_are_named():
    from pgmpy_dp.estimators import CollectiveMAP, PrivateNetwork

    frame = pd.DataFrame(np.random.default_rng(0).integers(2, size=(500, 3)), columns=list("abc"))
    states = {name: [0, 1] for name in frame}
    network = PrivateNetwork(rho=1.0, state_names=states).fit(frame)
    mapped = CollectiveMAP(rho=1.0, state_names=states).fit(MarkovNetwork([("a", "b"), ("b", "c")]), frame)
    for estimator in (network, mapped):
        for wrong in ("1", 2.5, None, 0):
            with pytest.raises((TypeError, ValueError), match=r"n_draws=.*pass a whole number"):
                estimator.posterior(wrong)
    posterior = mapped.posterior(20)
    for ask, told in (
        (lambda: posterior.interval(["a"], level=None), "level=None is a NoneType; pass a number between 0 and 1"),
        (lambda: posterior.interval(["a"], level=2), "level=2 is out of range; pass a number between 0 and 1"),
        (lambda: posterior.interval(5), "variables=5 is a int"),
        (lambda: posterior.interval(["a"], 5), "evidence=5 is a int"),
        (lambda: posterior.models("1"), "n='1' is a str"),
        (lambda: posterior.sample(5, "1"), "n_sets='1' is a str"),
    ):
        with pytest.raises((TypeError, ValueError), match=re.escape(told)):
            ask()


class TestTemplates:
    def test_the_columns_of_a_file_and_nothing_else_of_it(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        Path("records.txt").write_bytes("Größe;sex;Job\n180;needle;x\n\xff".encode("cp1252"))
        told = run("schema --from-header records.txt --delimiter ; --encoding cp1252 --variable sex=F,M --out s.json")
        assert "3 columns, 2 of which lack their states: Größe, Job" in told.stdout
        document = json.loads(Path("s.json").read_text())
        assert document["variables"] == [
            {"name": "Größe", "states": []},
            {"name": "sex", "states": ["F", "M"]},
            {"name": "Job", "states": []},
        ]
        unfilled = run("fit records.txt --delimiter ; --encoding cp1252 --schema s.json --epsilon 1 --out m.npz", 2)
        assert "variable 'Größe' has 0 state(s)" in unfilled.stderr
        document["variables"][0] = {"name": "Größe", "number": {"lower": 0, "upper": 250}}
        document["variables"].pop()
        Path("s.json").write_text(json.dumps(document))
        assert set(Schema.from_json("s.json")) == {"Größe", "sex"}

    def test_no_column_has_to_be_described(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        Path("records.csv").write_text("age,sex\n31,needle\n")
        told = run("schema --from-header records.csv --missing ?,NA --strip --out s.json")
        assert "2 columns, 2 of which lack their states: age, sex" in told.stdout
        document = json.loads(Path("s.json").read_text())
        assert document["variables"] == [{"name": "age", "states": []}, {"name": "sex", "states": []}]
        document["variables"] = [{"name": "sex", "states": ["F", "M"]}]
        Path("s.json").write_text(json.dumps(document))
        expected = Schema({"sex": ["F", "M"]}, missing=["?", "NA"], strip=True)
        assert Schema.from_json("s.json").to_dict() == expected.to_dict()

    @pytest.mark.parametrize(
        ("content", "arguments", "told"),
        [
            ("age;sex\n31;needle\n", "", "its first line is a single name; pass --delimiter ';'"),
            ("31,needle\n30,x\n", "", "has numbers for names, not quoted here"),
            ("a,b\n", "--variable c=x,y", "it has no column 'c'; it has a, b"),
            ("", "", "records.csv"),
        ],
    )
    def test_a_first_line_that_may_be_a_record_is_not_quoted(self, tmp_path, monkeypatch, content, arguments, told):
        monkeypatch.chdir(tmp_path)
        Path("records.csv").write_text(content)
        result = run(f"schema --from-header records.csv {arguments} --out s.json", 2)
        assert told in result.stderr and "needle" not in result.output and not Path("s.json").exists()


def damaged(kind: str) -> str:
    """A file with two columns and needles in it, of which something is wrong; its name."""
    frame = pd.DataFrame({"job": ["a", "b", "needle"] * 20_000, "sex": ["F", "M", "needle"] * 20_000})
    suffix = kind.split()[-1]
    path = Path(f"records.{suffix}")
    if "lacks" in kind:
        frame = frame.drop(columns="sex")
    frame.to_parquet(path, row_group_size=20_000) if suffix == "parquet" else frame.to_csv(path, index=False)
    content = bytearray(path.read_bytes())
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    if "cut" in kind:
        content = content[: len(content) // 2]
    elif "overwritten" in kind:
        content[4:200] = bytes(196)
    elif "empty" in kind:
        content = bytearray()
    elif "type" in kind:  # the physical type of a text, in the footer, becomes one that nobody knows
        place = content.index(b"\x15\x0c", footer)
        content[place + 1] = 0x1E
    elif "packed" in kind:
        content = bytearray(b"job,sex\nneedle,needle\n")
    path.write_bytes(content)
    return str(path)


DAMAGED = "is damaged and could not be read to its end; check that it is complete and not being written to"
NOT_PARQUET = "is not a Parquet file that pyarrow can open"
CHANGED = "was changed while it was in use; what is learned has to be of one and the same file"
LACKS = "has no column for"


class TestFilesThatCannotBeRead:
    @pytest.mark.parametrize("command", ["fit --out m.npz", "check", "discover --bins 2"])
    @pytest.mark.parametrize(
        ("kind", "told"),
        [
            ("cut parquet", NOT_PARQUET),
            ("empty parquet", NOT_PARQUET),
            ("type parquet", NOT_PARQUET),
            ("overwritten parquet", DAMAGED),
            ("cut csv.gz", DAMAGED),
            ("never packed csv.gz", DAMAGED),
            ("empty csv", "has no names; it must name the columns"),
            ("lacks a column parquet", LACKS),
            ("lacks a column csv", LACKS),
            ("growing parquet", CHANGED),
            ("growing csv", CHANGED),
            ("growing csv.gz", DAMAGED),  # what is added is not packed
        ],
    )
    def test_one_sentence_before_the_charge(self, tmp_path, monkeypatch, command, kind, told):
        monkeypatch.chdir(tmp_path)
        name = damaged(kind)
        run("ledger new ledger.json --epsilon 1 --delta 1e-6")
        before, names = Path("ledger.json").read_bytes(), sorted(os.listdir())
        if "growing" in kind:
            true = Source.one_pass

            @contextmanager
            def growing(self, *arguments):
                with true(self, *arguments) as batches:
                    first = next(batches)
                    with open(name, "ab") as file:
                        file.write(b"needle,needle\n")
                    yield itertools.chain([first], batches)

            monkeypatch.setattr(Source, "one_pass", growing)
        asked = "--variable sex=F,M --variable job=a,b"
        if "discover" in command:
            asked = "--categories sex,job --delta 1e-9 --out s.json"
        first, *rest = command.split()
        result = run([first, name, *rest[:2], *f"{asked} --epsilon 0.5 --ledger ledger.json --quiet".split()], 2)
        (line,) = result.stderr.splitlines()
        assert line.startswith("pgmpy-dp: ") and told in line and "needle" not in result.output
        assert Path("ledger.json").read_bytes() == before and sorted(os.listdir()) == names

    @pytest.mark.parametrize("suffix", ["parquet", "csv"])
    def test_a_large_one_that_changes_after_the_charge_ends_as_anything_that_fails_then(
        self, tmp_path, monkeypatch, suffix
    ):
        """A limit: a file of more cells than are kept is read again for each request."""
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(records, "MOST_KEPT", 0)
        name, true, passes = damaged(f"whole {suffix}"), Source.one_pass, []

        def changed(self, *arguments):
            if passes:
                with open(name, "ab") as file:
                    file.write(b"needle,needle\n")
            passes.append(arguments)
            return true(self, *arguments)

        monkeypatch.setattr(Source, "one_pass", changed)
        run("ledger new ledger.json --epsilon 1 --delta 1e-6")
        asked = "--variable sex=F,M --variable job=a,b --epsilon 0.5 --ledger ledger.json"
        result = run(f"fit {name} --out m.npz {asked}", 4)
        assert "OSError after the budget was spent" in result.stderr and "needle" not in result.output
        assert len(passes) == 2 and len(Ledger.open("ledger.json").entries) == 1 and not Path("m.npz").exists()


def test_samples_are_written_as_the_records_were(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    schema = Schema({"Größe": Number(-2e6, 2e6, bins=2, missing="drop"), "Beruf": ["Ärztin; leitend", "Koch"]})
    joint = LogLinearModel(Cliques(tuple(schema), (2, 2), (tuple(schema),)), np.zeros(4))
    MarkovNetwork.from_log_linear(joint, nx.complete_graph(list(schema)), schema).save("model.npz")
    style = "--delimiter ; --encoding cp1252 --decimal , --thousands ."
    run(f"sample model.npz --n 200 --out synthetic.csv {style} --random-state 1")
    texts = pd.read_csv("synthetic.csv", sep=";", encoding="cp1252", dtype=str)["Größe"]
    assert texts.str.fullmatch(r"-?[0-9]{1,3}(\.[0-9]{3})*(,[0-9]+)?").all()
    run("sample model.npz --n 200 --out plain.csv --random-state 1")
    found = pd.read_csv("synthetic.csv", sep=";", encoding="cp1252", decimal=",", thousands=".")
    np.testing.assert_allclose(found["Größe"], pd.read_csv("plain.csv")["Größe"], rtol=1e-12)
    assert set(found["Beruf"]) == {"Ärztin; leitend", "Koch"}
    schema.to_json("schema.json")
    told = run(f"check synthetic.csv {style} --schema schema.json --epsilon 1e4 --json").stdout
    assert json.loads(told)["n_matching"] == pytest.approx(200, abs=1)
    assert "it has no sign for 'ö'" in run("sample model.npz --n 5 --out other.csv --encoding ascii", 2).stderr


@pytest.mark.parametrize(
    "command",
    [
        "info model.npz",
        "query model.npz --variables job --evidence sex=F",
        "sample model.npz --n 9 --out a.csv --evidence sex=F",
        "schema --variable a=b,c",
    ],
)
def test_a_model_is_asked_without_heavy_libraries(folder, command):
    heavy = {
        "pgmpy",
        "pandas",
        "networkx",
        "scipy",
        "narwhals",
        "polars",
        "pyarrow",
        "opendp",
        "dp_accounting",
        "jinja2",
    }
    code = (
        "import sys; from pgmpy_dp.cli import app\n"
        f"try: app({shlex.split(command)!r})\n"
        f"except SystemExit as end: assert end.code == 0; print(sorted({heavy!r} & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr.splitlines()[-1:]) == (0, ["[]"])


def test_records_are_the_same_without_pgmpy(folder):
    run("sample model.npz --n 50 --out a.csv --random-state 3")
    whole = MarkovNetwork.load("model.npz")
    pd.testing.assert_frame_equal(pd.read_csv("a.csv", dtype=str), whole.sample(50, 3))
    table = json.loads(run("query model.npz --variables sex --evidence job=a --json").stdout)["table"]
    assert [row["probability"] for row in table] == whole.query("sex", {"job": "a"}).values.tolist()
