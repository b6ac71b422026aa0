"""The peer dp-recorder beside replay: what is written of rows, and, where it is installed, what it finds."""

from __future__ import annotations

import importlib.util
import json
from unittest import mock

import networkx as nx
import pandas as pd
import pytest

from benchmarks import recorder
from benchmarks.source_mutants import SOURCE_MUTANTS
from pgmpy_dp.estimators import NaiveMLE
from pgmpy_dp.private.curator.mechanism import AdditiveNoise

INSTALLED = importlib.util.find_spec("dp_recorder") is not None
FRAME = pd.DataFrame({"a": [0, 1, 1], "b": [0, 1, 0]})
STATES = {"a": [0, 1], "b": [0, 1]}


def fit(frame):
    return NaiveMLE(epsilon=1.0, state_names=STATES).fit(nx.Graph([("a", "b")]), frame)


def test_a_report_says_what_was_served_and_who_found_what(tmp_path):
    rows = [
        {"case": "NaiveMLE, add_remove", "served": True, "pairs": 2, "calls": 4, "problems": []},
        {"case": "persons, 2: NaiveMLE, add_remove", "served": True, "pairs": 2, "calls": 2, "problems": ["too far"]},
        {"case": "sgd, add_remove", "served": False, "pairs": 0, "calls": 0, "problems": []},
    ]
    found = [("a", "", True), ("a", "b", True), ("", "", False)]
    for mutant, (replay, peer, served) in zip(SOURCE_MUTANTS, found, strict=False):
        who = {"replay": replay, "recorder": peer, "served": served}
        rows.append({"mutant": mutant.what, "place": mutant.symbol, "cases": 3, "ended": True, **who})
    (tmp_path / "rows").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert recorder.main(["--rows", str(tmp_path / "rows"), "--report", str(tmp_path / "report.md")]) == 0
    text = (tmp_path / "report.md").read_text()
    assert "| NaiveMLE | 2 | 2 | 4 | 6 | 1 |" in text and "| all | 3 | 2 | 4 | 6 | 1 |" in text
    assert "* persons, 2: NaiveMLE, add_remove: too far" in text
    assert "1 found by both, 1 by replay alone, 0 by the recorder alone, 1 by neither." in text
    assert f"| {SOURCE_MUTANTS[2].what} | `{SOURCE_MUTANTS[2].symbol}` | 3 |  | not served |" in text


@pytest.mark.skipif(INSTALLED, reason="dp-recorder is installed")
def test_without_the_peer_it_says_where_to_get_it(tmp_path):
    with pytest.raises(SystemExit, match=r"benchmarks/README.* says how to install it"):
        recorder.main(["--rows", str(tmp_path / "rows")])


@pytest.mark.skipif(not INSTALLED, reason="dp-recorder is not installed")
def test_the_peer_finds_nothing_in_what_is_right_and_half_of_the_noise():
    assert recorder.recorded(fit, FRAME, FRAME[1:]) == ([], 1)
    true = AdditiveNoise.draw

    def beside(self, rng):
        return [array + item.value for array, item in zip(true(self, rng), self.exact, strict=True)]

    with mock.patch.object(AdditiveNoise, "draw", beside):
        (problem,), _ = recorder.recorded(fit, FRAME, FRAME[1:])
    assert "Equality Failure" in problem
