"""The attacks have teeth: copies of this package with one line broken are caught by the audits that the package passes.

An audit at 99 % confidence misses a mutant with a probability below 1e-6: bounds lie at least five standard deviations
of repeated audits above the claims, or are those of outputs that cannot be of one dataset (benchmarks/mutants.py).
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import audits
from benchmarks.mutants import KINDS, MUTANTS
from pgmpy_dp.auditing import catalogue, replay
from pgmpy_dp.private.guarantee import PureDP

ROOT = Path(__file__).parents[2]


def _slow(mutant):
    """Those that take hundreds of releases, and one that takes seconds where replay takes none."""
    slow = mutant.trials > 200 or mutant.name.startswith("unclipped rows: PrivateGraphicalLasso")
    return pytest.param(mutant, marks=pytest.mark.slow) if slow else mutant


@pytest.mark.parametrize("mutant", [_slow(mutant) for mutant in MUTANTS], ids=lambda mutant: mutant.name)
def test_mutants_are_caught(mutant):
    report = mutant.run(confidence=0.99)
    assert not report.holds and report.bound > 0


@pytest.mark.slow  # as tests/auditing/test_catalogue.py attacks it
@pytest.mark.parametrize(
    "mutant", [m for m in MUTANTS if m.neighbours or m.trials <= 200], ids=lambda mutant: mutant.name
)
def test_the_whole_package_passes_the_same_attack(mutant):
    """Of the quick ones; above the claim with probability at most 1e-7."""
    assert mutant.run(confidence=1 - 1e-7, broken=False).holds


# What replay finds on one pair of neighbours, where the attack may need hundreds of releases. The others are of the law
# of the noise, which replay does not draw.
BY_REPLAY = {
    "half the noise: NaiveMLE(epsilon, replace_one)": "tables: noise of scale",
    "half the noise: NaiveMLE(rho, add_remove)": "tables: noise of scale",
    "sensitivity of the other adjacency: NaiveMLE(epsilon, replace_one)": "tables: exact statistics moved by 2",
    "unclipped rows: PrivateGraphicalLasso(epsilon, add_remove, d=2)": "second_moments: exact statistics moved by 100",
    "inferred domain: NaiveMLE(epsilon, replace_one)": "error differs",
    "spends more than it charges: NaiveMLE(epsilon, add_remove, two tables)": "tables: noise of scale",
    "spends more than it charges: NaiveMLE(epsilon, add_remove)": "the ledger was charged 0.25-DP for a curator of 1",
}


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

    def test_the_page_of_guarantees_has_the_table_of_the_last_run(self):
        page = (ROOT / "docs" / "guarantees.md").read_text()
        report = (ROOT / "benchmarks" / "results" / "audits.md").read_text()
        assert audits.with_table(page, report) == page
        rows = [line for line in report.splitlines() if line.startswith("| ")]
        names = {line.split(" | ")[0].removeprefix("| ").removesuffix(" *f*") for line in rows}
        assert names >= set(catalogue()) and names >= {mutant.name for mutant in MUTANTS}
        assert " 0 broken. " in report and " 0 not caught." in report

    def test_a_broken_claim_and_a_mutant_that_escapes_are_errors(self):
        row = audits.measure("case", "distance_test", "small", 0.99)
        text = audits.summary([{**row, "wrong": True}, {**row, "kind": "mutant", "wrong": True}], "c", 0.99, 2)
        assert "1 claims, 1 broken. 1 mutants, 1 not caught." in text
        assert "**BROKEN**" in text and "**NOT CAUGHT**" in text
