"""Bars of tqdm: by pgmpy's switch, and in lines where there is no terminal."""

from __future__ import annotations

import pytest

from pgmpy_dp import pgmpy_config
from pgmpy_dp.cli.application import progress
from pgmpy_dp.learning.collective_base import budget_bar, progress_bar
from pgmpy_dp.pgmpy_config import bar_options, bars, bars_shown


@pytest.fixture
def shown():
    with bars(True):
        yield


@pytest.mark.usefixtures("shown")
def test_where_there_is_no_terminal_bars_are_lines(monkeypatch, capsys):
    monkeypatch.setattr(pgmpy_config, "SECONDS", 0.0)
    with progress(quiet=False), progress_bar("a fit", 2, "draws") as step, budget_bar("a search") as spend:
        step()
        spend(0.5)
        step()
    lines = capsys.readouterr().err.split("\n")
    assert any(line.startswith("a fit:  50%") and "1 of at most 2 draws" in line for line in lines)
    assert any(line.startswith("a search:  50%") and "of the budget" in line for line in lines)
    assert not any(sign in line for line in lines for sign in "\r\x1b")


@pytest.mark.usefixtures("shown")
def test_a_short_fit_says_nothing_and_a_quiet_one_never_does(monkeypatch, capsys):
    with progress(quiet=False), progress_bar("a fit", 2) as step:
        step()
    monkeypatch.setattr(pgmpy_config, "SECONDS", 0.0)
    with progress(quiet=True), progress_bar("a fit", 2) as step:
        assert not bars_shown()
        step()
    assert capsys.readouterr().err == "" and bars_shown()


def test_a_terminal_has_bars():
    assert bar_options() == {"delay": 1.0}
    with bars(False, in_lines=True):
        assert {bar_options()[name] for name in ("delay", "mininterval", "maxinterval")} == {10.0}
    assert bar_options() == {"delay": 1.0}
