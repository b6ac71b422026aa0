"""One command a paper: its rows have the paper's numbers and ours, and tracked results stay as they are."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from benchmarks import gaussian, membership_program, mobility, paper

ROOT = Path(__file__).parents[2]


def test_the_quickest_paper_has_a_page_of_rows(tmp_path, capsys):
    paper.main(["blocks", "--quick", "--out", str(tmp_path)])
    text = (tmp_path / "blocks-quick.md").read_text(encoding="utf-8")
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| ")][2:]
    assert {len(row) for row in rows} == {len(paper.HEAD)} and len(rows) == 4
    assert "n = 500, d = 200, gamma = 0.8, epsilon = 0.25, delta = 1e-06" in rows[0][0]
    shares = [float(word) for word in rows[0][3].replace(",", "").split() if word.startswith(("0.", "1."))]
    assert float(rows[0][2].split()[0]) < max(shares) and max(shares) > 0.9
    assert float(rows[1][2]) > 2 * float(rows[1][3])  # the published sensitivity beside ours
    assert f"wrote {tmp_path / 'blocks-quick.md'}" in capsys.readouterr().out


def test_the_paper_on_mixtures_has_its_algorithm_at_every_factor_on_the_noise(tmp_path):
    paper.main(["mixtures", "--quick", "--out", str(tmp_path)])
    text = (tmp_path / "mixtures-quick.md").read_text(encoding="utf-8")
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    head = membership_program.FACTOR_HEAD
    factors = {tuple(row[:2]): dict(zip(head, row, strict=True)) for row in rows if len(row) == len(head)}
    right = {noise: int(factors["32", noise][head[-1]].split("/")[0]) for noise in ("1", "0.001", "1e-06")}
    assert right["1"] == 0 and right["1e-06"] > 0
    assert factors["8", "1"]["refused"] == "0/5" and factors["8", "1e-06"]["refused"] == "5/5"
    assert "nothing of it is private" in text and "2.6e+26" in text


OURS = ("benchmarks", "matplotlib")


def test_tracked_results_are_refused(capsys):
    with pytest.raises(SystemExit):
        paper.main(["blocks", "--out", str(ROOT / "benchmarks" / "results")])
    assert "has tracked results; pass another folder" in capsys.readouterr().err


def test_every_published_number_has_its_method_here():
    """And a column for each data set that the slides have."""
    assert {key[::2] for key in paper.PUBLISHED} == set(paper.GAUSSIAN_METHODS)
    assert {len(numbers) for numbers in paper.PUBLISHED.values()} == {len(paper.COLUMNS)}
    for (kind, _), (method, why) in paper.GAUSSIAN_METHODS.items():
        assert why and method in {"pure": gaussian.PURE, "delta": gaussian.APPROXIMATE}[kind]
    assert paper.OURS["pure"] in gaussian.PURE and paper.OURS["delta"] in gaussian.APPROXIMATE
    assert [gaussian.synthetic(r, 30, 100).name for r in (0.5, 1.0, 1.5)] == list(paper.COLUMNS[:3])


def test_the_methods_of_figure_3_are_run():
    assert set(paper.FIGURE_3) <= set(mobility.FROM_TABLES)


def test_it_starts_without_matplotlib(capsys):
    """Its own modules are imported anew; those of the package are tried so in tests/test_package.py."""
    before = {name: module for name, module in sys.modules.items() if name.partition(".")[0] in OURS}
    try:
        for name in before:
            del sys.modules[name]
        sys.modules["matplotlib"] = None
        with pytest.raises(SystemExit) as end:
            importlib.import_module("benchmarks.paper").main(["--help"])
        assert not end.value.code and "cgm,mrf,blocks,mixtures,gaussian" in capsys.readouterr().out
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] in OURS]:
            del sys.modules[name]
        sys.modules.update(before)


def test_a_run_that_was_stopped_goes_on_and_one_that_ended_begins_anew(tmp_path, monkeypatch):
    def write(quick, out):
        rows = paper._unfinished("cgm", quick, out)
        before = rows.read_text() if rows.exists() else ""
        rows.write_text(before + "row\n")
        if not quick and not before:
            raise KeyboardInterrupt
        return [f"{len(before)} characters were there"]

    monkeypatch.setitem(paper.PAPERS, "cgm", write)
    with pytest.raises(KeyboardInterrupt):
        paper.main(["cgm", "--out", str(tmp_path)])
    paper.main(["cgm", "--out", str(tmp_path)])
    assert "4 characters were there" in (tmp_path / "cgm.md").read_text()
    assert (tmp_path / "cgm.jsonl").read_text() == "row\nrow\n"
    with pytest.raises(KeyboardInterrupt):  # it begins anew
        paper.main(["cgm", "--out", str(tmp_path)])
    (tmp_path / "cgm-quick-unfinished.jsonl").write_text("of other settings\n")
    paper.main(["cgm", "--quick", "--out", str(tmp_path)])
    assert "0 characters were there" in (tmp_path / "cgm-quick.md").read_text()
