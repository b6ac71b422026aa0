"""Scores of what users do with a model: which there are, from which seed on, and what is told first."""

from __future__ import annotations

import json
import sys

import numpy as np

from benchmarks import uses
from benchmarks.compare_tables import TABLES, Source, Table


def test_a_quick_run_has_the_models_own_predictions_and_no_synthetic_records(tmp_path, monkeypatch, capsys):
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 900)
    codes = np.column_stack([truth, *((rng.random(900) < 0.2 + 0.6 * truth) * 1 for _ in range(4))]).astype(np.int32)
    table = Table(("truth", "a", "b", "c", "d"), (2,) * 5, codes, "truth")
    monkeypatch.setitem(TABLES, "tiny", Source(lambda: table, "tiny", "made up"))
    asked = ["--tables=tiny", "--epsilons", "0.001", "1", "--modes", "independent", "target"]
    asked += ["--seeds=2", "--first=7", "--quick", f"--lines={tmp_path / 'lines.jsonl'}"]
    monkeypatch.setattr(sys, "argv", ["uses", *asked])
    uses.main()
    rows = [json.loads(line) for line in (tmp_path / "lines.jsonl").read_text().splitlines()]
    assert len(rows) == 8 and {row["seed"] for row in rows} == {7, 8}
    found = {(row["mode"], row["epsilon"], row["seed"]): row for row in rows}
    assert not {"auc", "counts"} & set(rows[0])
    assert all(found["target", 1, seed]["own_auc"] > 0.8 for seed in (7, 8))
    assert all(found["independent", 1, seed]["own_auc"] == 0.5 for seed in (7, 8))
    told = [line.split(" | ") for line in capsys.readouterr().out.splitlines() if line.startswith("| tiny")]
    assert [line[1:3] for line in told] == [[e, mode] for e in ("0.001", "1") for mode in ("independent", "target")]
