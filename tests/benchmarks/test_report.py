"""The report's derived columns and ratios, on rows made up so that the answers are known."""

import json
from pathlib import Path

import pytest

from benchmarks.report import read_rows, wide_table, write_report

DIVERGENCES = {  # per draw: (first, second)
    "uniform": (4.0, 4.0),
    "naive": (2.0, 2.0),
    "em": (2.0, 8.0),
    "map": (1.0, 2.0),
    "mbi_l1_100": (4.0, 4.0),
    "mbi_l1_1000": (2.0, 9.0),
    "mbi_l2_100": (3.0, 0.5),
    "mbi_l2_1000": (float("inf"), 8.0),
}


@pytest.fixture
def rows_path(tmp_path: Path) -> Path:
    lines = [{"run": {"seed": 1, "n_states": 10}, "command": "python -m something", "machine": "a machine"}]
    for method, values in DIVERGENCES.items():
        for draw, kl in enumerate(values):
            place = {"kind": "er", "n_records": 1000, "epsilon": 1.0, "population": 0, "draw": draw}
            fit = {"method": method, "kl": kl, "seconds": 1.0, "first_call": False, "gap": 0.0, "note": ""}
            lines.append(place | fit)
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_best_mbi_is_chosen_on_each_draw(rows_path: Path) -> None:
    wide = wide_table(read_rows(rows_path)[1])
    assert wide["mbi_best"].tolist() == [2.0, 0.5]
    assert wide["mbi_1000"].tolist() == [2.0, 8.0]
    assert "mbi_every" not in wide  # L-BFGS was not run


def test_report_states_geometric_means_of_per_draw_ratios(rows_path: Path, tmp_path: Path) -> None:
    report = write_report(rows_path, tmp_path / "rows.md").read_text()
    assert report.splitlines()[2] == "Made by `python -m something`"
    # map / best mbi is 1/2 and 4 on the two draws, so sqrt 2; over 1000 iterations 1/2 and 1/4; over uniform 1/4, 1/2.
    assert "| geometric mean over best mbi, per-draw oracle of four | 0.75 | 1.414 | **not met** |" in report
    assert "| geometric mean over mbi at 1000 iterations | 0.65 | 0.354 | met |" in report
    assert "| worst setting over the uniform model | 1.02 | 0.354 | met |" in report
    assert "| time over NaiveMLE, worst setting (0 of 1 above) | 2.5 | 1.000 | met |" in report
