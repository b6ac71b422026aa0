"""What `make nightly` replays: a line for each case, and 1 where anything was found."""

from __future__ import annotations

import pytest

from benchmarks import replays
from pgmpy_dp.private.noise import additive

ONE = ["--only", "persons, 2: NaiveMLE, add_remove, 1-DP", "--pairs", "2"]


# A process takes seconds to import.
@pytest.mark.parametrize("workers", ["1", pytest.param("2", marks=pytest.mark.slow)])
def test_right_noise_is_found_right(workers, capsys):
    assert replays.main([*ONE, "--workers", workers]) == 0
    line, moved, told = capsys.readouterr().out.splitlines()
    assert line == "persons, 2: NaiveMLE, add_remove, 1-DP: 2 pairs, 0 with problems"
    assert moved.startswith("largest movement, of what scaled the noise: tables ")
    assert told.startswith("2 pairs of 1 cases in ") and told.endswith(", 0 with problems")


def test_half_the_noise_is_found(monkeypatch, capsys):
    true = additive.laplace_scales
    monkeypatch.setattr(additive, "laplace_scales", lambda *a: tuple(scale / 2 for scale in true(*a)))
    assert replays.main([*ONE, "--workers", "1"]) == 1
    told = capsys.readouterr().out
    assert "2 pairs, 2 with problems" in told and "noise of scale" in told
