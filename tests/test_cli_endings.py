"""How commands end early: what was paid for is kept and told, and no exit code says that nothing was spent."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
from dataclasses import is_dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from pgmpy_dp import Ledger, MarkovNetwork, Release
from pgmpy_dp.cli import app, application, named_data
from pgmpy_dp.cli import ledger as ledger_command
from pgmpy_dp.cli.files import free_name
from pgmpy_dp.models.answers import Answers
from pgmpy_dp.private.curator.charged_base import ChargedCurator

COLUMNS = '--variable "job=office,field" --variable "income=low,high" --variable "sex=F,M"'
# In the words of Typer of today, and of Click 8.2.
TOO_LARGE = "Input should be less than or equal to|is not in the range .*x<="
FIT = f"fit records.csv {COLUMNS} --epsilon 2 --delta 1e-9 --ledger ledger.json --out model.npz"


def run(command: str, code: int = 0):
    result = CliRunner().invoke(app, shlex.split(command))
    assert result.exit_code == code, result.output + repr(result.exception)
    return result


def write_records(path: Path) -> None:
    rng = np.random.default_rng(0)
    states = {"job": ["office", "field"], "income": ["low", "high"], "sex": ["F", "M"]}
    frame = pd.DataFrame({name: rng.choice(labels, 900) for name, labels in states.items()})
    frame.to_csv(path / "records.csv", index=False)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    write_records(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def end_at(monkeypatch, number: int, how) -> None:
    """In the place of the `number`-th request of any curator, `how` is called."""
    asked, true = [], ChargedCurator._answer_now  # steps and paths take their turns themselves

    def answer(self, *arguments, **options):
        asked.append(1)
        if len(asked) == number:
            how()
        return true(self, *arguments, **options)

    monkeypatch.setattr(ChargedCurator, "_answer_now", answer)


def press() -> None:
    raise KeyboardInterrupt


def terminate() -> None:
    os.kill(os.getpid(), signal.SIGTERM)


@pytest.mark.parametrize("how", [press, terminate])
class TestInterrupted:
    def test_what_was_released_is_kept_and_learned_from(self, folder, monkeypatch, how):
        before = signal.getsignal(signal.SIGTERM)
        with monkeypatch.context() as patch:
            end_at(patch, 3, how)
            told = " ".join(run(FIT, 4).stderr.split())
        assert signal.getsignal(signal.SIGTERM) is before
        assert "interrupted after the budget was spent" in told
        cost = Ledger.open("ledger.json").entries[0].cost
        assert f"{cost} was spent before this ended; costs add up to {cost} of the budget (2, 1e-09)-DP" in told
        assert "what it bought is in model.release.npz: use pgmpy-dp refit" in told
        assert not Path("model.npz").exists()
        run("refit model.release.npz --out again.npz")
        assert MarkovNetwork.load("again.npz").privacy.guarantee == cost

    def test_before_anything_was_released(self, folder, monkeypatch, how):
        with monkeypatch.context() as patch:
            end_at(patch, 1, how)
            told = " ".join(run(FIT, 4).stderr.split())
        assert "was spent before this ended" in told and "interrupted after the budget was spent" in told
        assert "refit" not in told and len(Ledger.open("ledger.json").entries) == 1

    def test_before_anything_was_spent(self, folder, monkeypatch, how):
        monkeypatch.setattr(named_data, "open_account", lambda *_, **__: how())
        number = signal.SIGINT if how is press else signal.SIGTERM
        assert run(FIT, 128 + number).stderr == "pgmpy-dp: interrupted; nothing was spent\n"
        assert not Path("ledger.json").exists()

    def test_what_is_too_little_for_a_model(self, folder, monkeypatch, how):
        find = 'discover records.csv --categories job --number "age=0:9:1" --bins 2 --rho 1 --out s.json'
        Path("records.csv").write_text("job,age\n" + "a,3\n" * 500)
        with monkeypatch.context() as patch:
            end_at(patch, 2, how)
            told = " ".join(run(find.replace("--rho 1", "--epsilon 1 --delta 1e-6"), 4).stderr.split())
        assert Release.load("s.release.npz").kind == "interrupted"
        assert "it is too little for a model" in told
        assert "was interrupted before it had" in " ".join(run("refit s.release.npz --out m.npz", 2).stderr.split())


class TestInterruptedAgain:
    """Signals after the first are ignored until what was paid for is kept: 6 in 37 said that nothing was spent."""

    @pytest.fixture(autouse=True)
    def heard(self):
        """Processes that run tests side by side ignore Ctrl-C, and what is ignored stays so."""
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        yield
        signal.signal(signal.SIGINT, before)

    @pytest.mark.parametrize("again", [signal.SIGINT, signal.SIGTERM])
    @pytest.mark.parametrize("what", ["free_name", "marked"])
    def test_while_it_is_kept_and_told(self, folder, monkeypatch, what, again):
        true = free_name if what == "free_name" else Ledger.account.fget

        def told(*arguments):
            os.kill(os.getpid(), again)
            return true(*arguments)

        before = signal.getsignal(signal.SIGINT)
        with monkeypatch.context() as patch:
            end_at(patch, 3, lambda: os.kill(os.getpid(), signal.SIGINT))
            if what == "free_name":
                patch.setattr(ledger_command, what, told)
            else:
                patch.setattr(Ledger, "account", property(told))
            said = " ".join(run(FIT, 4).stderr.split())
        assert "interrupted after the budget was spent" in said and "refit" in said
        assert signal.getsignal(signal.SIGINT) is before
        run("refit model.release.npz --out again.npz")

    def test_when_something_else_failed(self, folder, monkeypatch):
        true = Release.save

        def save(self, path):
            os.kill(os.getpid(), signal.SIGINT)
            true(self, path)

        with monkeypatch.context() as patch:
            patch.setattr(Release, "save", save)
            patch.setattr(MarkovNetwork, "save", full)
            said = " ".join(run(FIT, 4).stderr.split())
        assert "No space left on device after the budget was spent" in said and Path("model.release.npz").exists()

    def test_after_the_last_word(self, folder, monkeypatch):
        true = application.call_with_groups

        def called(function, values):
            found = true(function, values)
            if not is_dataclass(function):  # the command itself, and not one of its groups of options
                os.kill(os.getpid(), signal.SIGINT)
            return found

        monkeypatch.setattr(application, "call_with_groups", called)
        run(FIT)
        assert Path("model.npz").exists() and len(Ledger.open("ledger.json").entries) == 1

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_before_the_command_line_is_built(self, folder, number):
        """The import of it takes half a second."""
        code = f"""
import os, sys
from pgmpy_dp.__main__ import main

class Pressing:
    def find_spec(self, name, *_):
        if name == "pgmpy_dp.cli.application":
            os.kill(os.getpid(), {int(number)})

sys.meta_path.insert(0, Pressing())
main()
"""
        ended = subprocess.run([sys.executable, "-c", code, *shlex.split(FIT)], capture_output=True, text=True)
        assert (ended.returncode, ended.stderr) == (128 + number, "pgmpy-dp: interrupted; nothing was spent\n")
        assert not Path("ledger.json").exists()


def full(*_, **__):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class TestFullDisks:
    def test_is_found_before_anything_is_spent(self, folder, monkeypatch):
        monkeypatch.setattr(tempfile, "TemporaryFile", full)
        told = " ".join(run(FIT, 2).stderr.split())
        assert "--out is 'model.npz': nothing can be written in the folder" in told and "No space left" in told
        assert not Path("ledger.json").exists()

    def test_at_the_charge_nothing_is_spent(self, folder, monkeypatch):
        run("ledger new ledger.json --epsilon 3 --delta 1e-8")
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", full)
            told = run(FIT, 2).stderr
        assert f"{str(folder / 'ledger.json')!r}: No space left on device" in " ".join(told.split())
        assert Ledger.open("ledger.json").entries == ()

    def test_of_the_model_the_tables_are_kept_elsewhere(self, folder, monkeypatch, tmp_path_factory):
        elsewhere = tmp_path_factory.mktemp("elsewhere")
        true = tempfile.mkstemp

        def here_full(*arguments, **options):
            full() if Path(options["dir"]).resolve() == folder and "npz" in options["prefix"] else None
            return true(*arguments, **options)

        with monkeypatch.context() as patch:
            patch.setattr(tempfile, "gettempdir", lambda: str(elsewhere))
            patch.setattr(tempfile, "mkstemp", here_full)
            told = " ".join(run(FIT, 4).stderr.split())
        assert "'model.npz': No space left on device after the budget was spent" in told
        assert f"what it bought is in {elsewhere}/model.release.npz" in told
        run(f"refit {elsewhere}/model.release.npz --out again.npz")

    def test_everywhere_says_that_it_is_lost(self, folder, monkeypatch):
        with monkeypatch.context() as patch:
            patch.setattr(Release, "save", full)
            patch.setattr(MarkovNetwork, "save", full)
            told = " ".join(run(FIT, 4).stderr.split())
        assert "could not be written anywhere, and is lost" in told and "No space left on device after" in told

    def test_memory(self, folder, monkeypatch):
        run(FIT)
        monkeypatch.setattr(Answers, "_sampled", lambda *_, **__: bytearray(1 << 62))
        assert "not enough memory" in run("sample model.npz --n 9 --out s.csv", 2).stderr


class TestInputsThatAreNone:
    """None of them is a mistake in the program."""

    @pytest.fixture(scope="class")
    @classmethod
    def made(cls, tmp_path_factory):
        folder = tmp_path_factory.mktemp("made")
        with contextlib.chdir(folder):
            write_records(folder)
            cls.make()
        return folder

    @pytest.fixture
    def files(self, made, monkeypatch):
        monkeypatch.chdir(made)

    @staticmethod
    def make():
        run(f"{FIT} --release tables.npz")
        run(f"schema {COLUMNS} --out schema.json")
        os.mkdir("folder.npz")
        Path("deep.json").write_text("[" * 100_000)
        Path("records.json").write_text('{"format": "people", "rows": ["needle"]}')
        np.savez("other.npz", a=np.arange(3))
        with open("header.npz", "wb") as stream:
            np.savez(stream, header=np.frombuffer(b"[" * 100_000, dtype=np.uint8))
        Path("named.npz").write_bytes(b"PK\x05\x06" + bytes(18))
        Path("text.npz").write_text("needle")

    @pytest.mark.parametrize(
        ("command", "told"),
        [
            ("plan --schema deep.json --epsilon 1 --n 9", "--schema is 'deep.json': that is not a schema"),
            ("plan --schema records.json --epsilon 1 --n 9", "--schema is 'records.json': that is not a schema"),
            ("plan --schema ledger.json --epsilon 1 --n 9", "--schema is 'ledger.json': that is not a schema"),
            ("ledger show deep.json", "not a ledger"),
            (f"{FIT} --ledger deep.json --overwrite", "not a ledger"),
            (f"fit folder.npz {COLUMNS} --epsilon 1 --out m.npz", "DATA is 'folder.npz': that is a folder"),
            ("refit model.npz --out m.npz", "RELEASE is 'model.npz': it is a model, without the noisy tables"),
            ("refit other.npz --out m.npz", "RELEASE is 'other.npz': it is damaged, or holds no noisy tables"),
            ("refit header.npz --out m.npz", "RELEASE is 'header.npz': it is damaged"),
            ("refit named.npz --out m.npz", "RELEASE is 'named.npz': it is damaged"),
            ("refit text.npz --out m.npz", "RELEASE is 'text.npz': it is damaged"),
            ("refit folder.npz --out m.npz", "'folder.npz': Is a directory"),
            ("info folder.npz", "'folder.npz': Is a directory"),
            ("info tables.npz", "MODEL is 'tables.npz', which holds noisy tables and no model; pgmpy-dp refit"),
            ("info header.npz", "which is not a saved model"),
            (f"sample model.npz --n {9**99} --out s.csv", TOO_LARGE),
            (f"sample model.npz --n 9 --out s.csv --copies {9**99}", TOO_LARGE),
            (f"{FIT} --n-records {9**99} --overwrite", TOO_LARGE),
            (f"{FIT} --draws {9**99} --overwrite", TOO_LARGE),
        ],
    )
    def test_is_told(self, files, command, told):
        ledger = Path("ledger.json").read_bytes()
        result = run(command, 2)
        shown = " ".join(result.stderr.replace("│", "").split())
        assert re.search(told, shown) if told == TOO_LARGE else told in shown
        assert "needle" not in result.output and "pickle" not in result.output
        assert Path("ledger.json").read_bytes() == ledger and len(json.loads(ledger)["entries"]) == 1
