"""The attacks have teeth: copies of this package with one line broken are caught by the audits that the package passes.

An audit at 99 % confidence misses a mutant with a probability below 1e-6: bounds lie at least five standard deviations
of repeated audits above the claims, or are those of outputs that cannot be of one dataset (benchmarks/mutants.py).
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import audits
from benchmarks.audited_code import code_hash, files_that_run
from benchmarks.mutants import KINDS, MUTANTS
from pgmpy_dp.auditing import catalogue, replay
from pgmpy_dp.private.guarantee import PureDP

ROOT = Path(__file__).parents[2]


# What replay finds on one pair of neighbours, where the attack may need hundreds of releases. The others are of the law
# of the noise, which replay does not test, or ask no curator. Of what scales the noise the scale has to be found: the
# attack does not see a copy that is wrong elsewhere only.
BY_REPLAY = {
    "half the noise: NaiveMLE(epsilon, replace_one)": "tables: noise of scale",
    "half the noise: NaiveMLE(rho, add_remove)": "tables: noise of scale",
    "sensitivity of the other adjacency: NaiveMLE(epsilon, replace_one)": "tables: noise of scale [1.0]",
    "unclipped rows: PrivateGraphicalLasso(epsilon, add_remove, d=2)": "second_moments: exact statistics moved by 100",
    "inferred domain: NaiveMLE(epsilon, replace_one)": "error differs",
    "spends more than it charges: NaiveMLE(epsilon, add_remove, two tables)": "tables: noise of scale",
    "forgotten threshold: StableStructure(delta, add_remove)": "agreed_graph: the same noisy numbers make",
    "spends more than it charges: NaiveMLE(epsilon, add_remove)": "the ledger was charged 0.25-DP for a curator of 1",
}


def _slow(mutant):
    """Those that take hundreds of releases, and those that take seconds where replay takes none (`BY_REPLAY`)."""
    # Thousands of noisy maxima take less than a second.
    slow = (mutant.trials > 200 and "noisy_argmax" not in mutant.case) or mutant.name in BY_REPLAY
    return pytest.param(mutant, marks=pytest.mark.slow) if slow else mutant


@pytest.mark.parametrize("mutant", [_slow(mutant) for mutant in MUTANTS], ids=lambda mutant: mutant.name)
def test_mutants_are_caught(mutant):
    report = mutant.run(confidence=0.99)
    assert not report.holds and report.bound > 0


@pytest.mark.slow  # as tests/auditing/test_all_cases.py attacks it
@pytest.mark.parametrize(
    "mutant", [m for m in MUTANTS if m.neighbours or m.trials <= 200], ids=lambda mutant: mutant.name
)
def test_the_whole_package_passes_the_same_attack(mutant):
    """Of the quick ones; above the claim with probability at most 1e-7."""
    assert mutant.run(confidence=1 - 1e-7, broken=False).holds


@pytest.mark.parametrize("name", BY_REPLAY)
def test_mutants_that_replay_finds_too(name):
    (mutant,) = [mutant for mutant in MUTANTS if mutant.name == name]
    case = catalogue()[mutant.case]
    neighbours = (mutant.neighbours or case.neighbours)()

    def problems() -> str:
        return "; ".join(replay(case.mechanism, neighbours.first, neighbours.second).problems)

    assert problems() == ""
    with mutant.patch():
        assert BY_REPLAY[name] in problems()


def test_there_is_a_mutant_of_every_kind():
    assert {mutant.kind for mutant in MUTANTS} == set(KINDS)
    assert {mutant.case for mutant in MUTANTS} <= set(catalogue())
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)


def test_what_the_ledger_was_charged_is_the_claim():
    [mutant] = [m for m in MUTANTS if m.what.startswith("a quarter is charged")]
    with mutant.patch():
        case = catalogue()[mutant.case]
        assert case.mechanism(case.neighbours().first).privacy_.entries[-1].cost == PureDP(0.25)


class TestCode:
    """Rows of the table are kept by what ran, not by where it lies."""

    SOURCE = 'import math\n\nLIMIT = 3\n\n\ndef f(x):\n    """Docs."""\n    return x + LIMIT\n'

    @pytest.mark.parametrize(
        "sources",
        [
            [SOURCE],
            ["LIMIT = 3  # the most\n", "from elsewhere import LIMIT\n\ndef f(x): return (x +\n    LIMIT)\n"],
            ['"""A module."""\n' + SOURCE.replace("Docs", "Other docs").replace("import math", "import numpy as np")],
        ],
    )
    def test_moved_and_laid_out_anew_it_is_the_same(self, sources):
        assert code_hash(sources) == code_hash([self.SOURCE])

    @pytest.mark.parametrize(("old", "new"), [("3", "4"), ("x +", "x -"), ("def f", "def g"), ("f(x)", "f(x, *y)")])
    def test_another_line_is_other_code(self, old, new):
        assert code_hash([self.SOURCE.replace(old, new)]) != code_hash([self.SOURCE])

    def test_the_discrete_wishart_is_not_the_floating_one(self):
        """Each row's code has the sampler that its noise comes from."""
        noise = {}
        for name in ("d=1", "d=2, mechanism=frobenius"):
            case = catalogue()[f"PrivateGraphicalLasso(epsilon, add_remove, {name})"]
            data = case.neighbours().first
            noise[name] = {path.name for path in files_that_run(lambda c=case, d=data: c.mechanism(d))}
        assert "integer_wishart.py" in noise["d=1"] and "matrix.py" in noise["d=1"]
        assert "integer_wishart.py" not in noise["d=2, mechanism=frobenius"]

    def test_marks_of_floating_noise_are_those_of_the_catalogue(self):
        """Of rows that say by which code they were made; the others are measured again by the next run."""
        rows = map(json.loads, (ROOT / "benchmarks" / "results" / "audits.jsonl").read_text().splitlines())
        marked = {row["name"]: row["floating_point"] for row in rows if row["kind"] == "case" and "code" in row}
        known = marked.keys() & catalogue().keys()
        assert known and all(marked[name] == catalogue()[name].floating_point for name in known)


class TestCommandLine:
    @pytest.mark.slow
    def test_writes_a_report_and_says_that_all_is_well(self, tmp_path, capsys):
        """Claims at 1 - 1e-6 together."""
        arguments = ["--only", "stability_histogram", "--workers", "1", "--out", str(tmp_path)]
        assert audits.main([*arguments, "--confidence", "0.999999"]) == 0
        text = (tmp_path / "audits.md").read_text()
        assert text in capsys.readouterr().out
        assert "1 claims, 0 broken. 1 mutants, 0 not caught." in text and "forgotten threshold" in text
        rows = [json.loads(line) for line in (tmp_path / "audits.jsonl").read_text().splitlines()]
        assert {row["kind"] for row in rows} == {"case", "mutant"}
        marked = [{**row, "bound": 7.0} for row in rows]
        (tmp_path / "audits.jsonl").write_text("".join(json.dumps(row) + "\n" for row in marked))
        assert audits.main([*arguments, "--confidence", "0.999999", "--resume"]) == 0
        assert "≥ 7 " in (tmp_path / "audits.md").read_text()

    @pytest.mark.slow
    def test_a_row_of_other_code_is_measured_again(self, tmp_path, capsys):
        arguments = ["--only", "stability_histogram", "--workers", "1", "--cost", "20", "--out", str(tmp_path)]
        assert audits.main(arguments) == 0
        rows = [json.loads(line) for line in (tmp_path / "audits.jsonl").read_text().splitlines()]
        gone = [{**row, "bound": 7.0, "code": "of a line that is gone"} for row in rows]
        (tmp_path / "audits.jsonl").write_text("".join(json.dumps(row) + "\n" for row in gone))
        assert audits.main([*arguments, "--resume"]) == 0
        again = [json.loads(line) for line in (tmp_path / "audits.jsonl").read_text().splitlines()]
        assert [row["code"] for row in again] == [row["code"] for row in rows]
        assert all(row["bound"] != 7.0 for row in again)

    @pytest.mark.slow
    def test_rows_that_are_named_are_measured_again_and_no_others(self, tmp_path, capsys):
        arguments = ["--only", "stability_histogram", "--workers", "1", "--cost", "20", "--out", str(tmp_path)]
        assert audits.main(arguments) == 0
        rows = [json.loads(line) for line in (tmp_path / "audits.jsonl").read_text().splitlines()]
        day = rows[0].pop("date")
        old = [{**{k: v for k, v in row.items() if k not in ("date", "code")}, "bound": 7.0} for row in rows]
        (tmp_path / "audits.jsonl").write_text("".join(json.dumps(row) + "\n" for row in old))
        audits.main([*arguments, "--again", "forgotten threshold"])
        again = [json.loads(line) for line in (tmp_path / "audits.jsonl").read_text().splitlines()]
        assert [row["bound"] == 7.0 for row in again] == [row["kind"] == "case" for row in again]
        assert [row["name"] for row in again] == [row["name"] for row in rows]
        text = (tmp_path / "audits.md").read_text()
        assert f"on {day}: the others; before rows had dates, by code that is not known: 1 rows" in text

    def test_the_results_have_every_case_and_every_mutant(self):
        """The page of guarantees leads to them."""
        assert "](../benchmarks/results/audits.md)" in (ROOT / "docs" / "guarantees.md").read_text()
        report = (ROOT / "benchmarks" / "results" / "audits.md").read_text()
        rows = [line for line in report.splitlines() if line.startswith("| ")]
        names = {line.split(" | ")[0].removeprefix("| ").removesuffix(" *f*") for line in rows}
        assert names >= set(catalogue()) and names >= {mutant.name for mutant in MUTANTS}
        assert " 0 broken. " in report and " 0 not caught." in report

    def test_a_broken_claim_and_a_mutant_that_escapes_are_errors(self):
        row = audits.measure("case", "distance_test", "small", 0.99)
        text = audits.summary([{**row, "wrong": True}, {**row, "kind": "mutant", "wrong": True}], "c", 0.99, 2)
        assert "1 claims, 1 broken. 1 mutants, 1 not caught." in text
        assert "**BROKEN**" in text and "**NOT CAUGHT**" in text
