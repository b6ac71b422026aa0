"""The board: what it divides by what, in which order it tells, and that large tables are drawn from."""

from __future__ import annotations

import json
import signal
from concurrent.futures import Future

import numpy as np
import pytest

from benchmarks import compare, compare_board
from benchmarks.compare import Job
from benchmarks.compare_board import board, page, write
from benchmarks.compare_tables import TABLES, Source, Table


def row(table, method, epsilon, pairs, nats, **more):
    scores = {"pairs": pairs, "triples": 2 * pairs, "counts": 3 * pairs, "nats": nats, "median_nats": nats + 1.0}
    return {"table": table, "method": method, "epsilon": epsilon, "seconds": 1.0, **scores, **more}


ROWS = [
    row("bank", "learn", 1.0, 0.02, -9.0, auc=0.6),
    row("bank", "learn-target", 1.0, 0.03, -9.5, auc=0.7),
    row("bank", "chow-liu", 1.0, 0.04, -8.9, auc=0.65),
    row("bank", "independent", 1.0, 0.025, -9.6),
    row("german", "learn", 1.0, 0.05, -22.0, auc=0.55, median_nats=-20.0),
    row("german", "independent", 1.0, 0.04, -22.5),
    row("german", "mst", 1.0, 0.1, -30.0, auc=0.5),
    {"table": "pages", "method": "learn", "epsilon": 1.0, "status": "more than 3 min"},
]


def test_learn_is_divided_by_its_rivals_worst_first():
    german, bank = board(ROWS)
    assert (german["table"], bank["table"]) == ("german", "bank")
    assert german["pairs"] == pytest.approx({"independent": 1.25, "mst": 0.5})
    assert bank["pairs"] == pytest.approx({"independent": 0.8, "chow-liu": 0.5})
    assert bank["nats"] == pytest.approx({"independent": 0.6, "chow-liu": -0.1})
    assert bank["auc"] == {"learn": 0.6, "learn-target": 0.7, "chow-liu": 0.65}
    assert bank["target_pairs"] == pytest.approx(1.2)


def test_the_page_tells_the_worst_first_and_where_learn_is_behind():
    lines = page(board(ROWS), "a machine").splitlines()
    told = [line for line in lines if line.startswith(("| German", "| bank"))]
    assert told[0].startswith("| German credit | 1 | 1.250 /  / 0.500 |") and "(+1.500 /  / +9.000)" in told[0]
    assert "+0.600 / -0.100 / " in told[1] and "0.600 / 0.700 / 0.650 / " in told[1]
    (summary,) = [line for line in lines if line.startswith("| 1 | 2 |")]
    assert (
        summary == "| 1 | 2 | 1.000 (1.250) | 0.500 (0.500) | 0.500 (0.500) | 1 bank customers | 0 | 1 bank customers |"
    )


def test_the_page_has_the_kept_rows_of_mst(tmp_path, capsys):
    (tmp_path / "compare.json").write_text(json.dumps(ROWS[-2:-1] + ROWS[:1]))
    own = [{"seed": 0, "status": "done", **one} for one in ROWS[4:6]]
    write(own, tmp_path, "a machine")
    assert "1.250 /  / 0.500" in (tmp_path / "board.md").read_text()
    assert "board.md" in capsys.readouterr().out


@pytest.fixture
def large(monkeypatch):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, (400, 5)).astype(np.int32)
    monkeypatch.setitem(
        TABLES, "large", Source(lambda: Table(tuple("abcde"), (2,) * 5, codes, "b"), "large", "made up")
    )
    monkeypatch.setattr(compare_board, "MOST_RECORDS", 300)
    compare_board.drawn.cache_clear()
    compare.load.cache_clear()


def test_of_large_tables_the_same_records_are_drawn(large):
    first = compare_board.drawn("large")
    compare_board.drawn.cache_clear()
    assert len(first.codes) == 300 and (compare_board.drawn("large").codes == first.codes).all()


def test_a_run_is_scored_and_ends_at_its_limit(large):
    made = compare_board.run(Job("large", "independent", 1.0, 0), 1.0)
    assert made["status"] == "done" and {"pairs", "triples", "nats", "median_nats", "counts", "auc", "seconds"} <= set(
        made
    )
    assert not {"auc_forest", "auc_logistic"} & set(made)
    before = signal.signal(signal.SIGPROF, compare_board._out_of_time)
    try:
        assert compare_board.run(Job("large", "learn", 1.0, 0), 1e-4)["status"] == "time"
    finally:
        signal.signal(signal.SIGPROF, before)
    assert signal.getitimer(signal.ITIMER_PROF) == (0.0, 0.0)


def test_quick_goes_on_where_it_stopped(large, tmp_path, monkeypatch):
    made, seconds = [], {1.0: 1.0, 10.0: 1.0 + compare_board.LONG}

    class Pool:
        def __init__(self, workers, initializer):
            assert workers == 2

        __enter__, __exit__ = lambda self: self, lambda *_: None

        def submit(self, function, job, minutes):
            made.append(job)
            future = Future()
            told = {"version": compare.version(), "minutes": minutes, "status": "time", "seconds": seconds[job.epsilon]}
            future.set_result({**vars(job), **told})
            return future

    monkeypatch.setattr(compare_board, "ProcessPoolExecutor", Pool)
    (tmp_path / "compare.json").write_text("[]")
    asked = [
        "--quick",
        "--tables",
        "large",
        "--epsilons",
        "1",
        "10",
        "--work",
        str(tmp_path / "w"),
        "--out",
        str(tmp_path),
    ]
    compare.main(asked)
    # What takes long at 10 has one seed.
    wanted = [(1.0, 0), (10.0, 0), (1.0, 1)]
    assert made == [Job("large", method, *run) for run in wanted for method in compare_board.METHODS]
    compare.main(asked)
    assert len(made) == 12 and "| 1 |" not in (tmp_path / "board.md").read_text()
