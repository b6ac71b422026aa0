"""Seconds and memory of PrivateIsing on many records and many variables, with all cores.

::

    python -m benchmarks.random_field_speed --out benchmarks/results

Noise is the operating system's, as in use. Each case runs in a process of its own; its peak memory includes the records
(one byte a value) and everything imported.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.field_sampling import sample_field
from benchmarks.machine import describe_machine, peak_rss, reset_peak_rss
from benchmarks.report import markdown_table
from pgmpy_dp.estimators import PrivateIsing
from pgmpy_dp.fields.random_fields import Ising
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.data.table import PrivateTable

CASES: dict[str, tuple[int, int, dict]] = {
    "auto, p = 100, n = 1e6": (100, 1_000_000, {}),
    "Frank-Wolfe, T = 200, p = 100, n = 1e6": (100, 1_000_000, {"method": "frank-wolfe", "n_iter": 200}),
    "auto, p = 1000, n = 1e5": (1000, 100_000, {}),
    "Frank-Wolfe, T = 10, p = 1000, n = 1e5": (1000, 100_000, {"method": "frank-wolfe", "n_iter": 10}),
}
"""Variables, records and options of the estimator. The graph is a random tree, rho = 1."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line; see ``--help``."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.random_field_speed", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--out", default="benchmarks/results", help="folder of the results (default: %(default)s)")
    parser.add_argument("--case", choices=tuple(CASES), help="run one case here, and print it as JSON")
    options = parser.parse_args(arguments)
    if options.case:
        print(json.dumps(measure(options.case)))
        return
    body = []
    for case in CASES:
        command = [sys.executable, "-m", "benchmarks.random_field_speed", "--case", case]
        row = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1])
        body.append([case, *(f"{row[name]:.1f}" for name in ("encode", "fit")), f"{row['gigabytes']:.2f}", row["note"]])
        print(body[-1], flush=True)
    out = Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    head = ["case", "encoding, s", "fit, s", "peak memory, GB", "largest error, and how it ended"]
    text = [
        "# Seconds and memory of PrivateIsing",
        "Made by `python -m benchmarks.random_field_speed`",
        f"on {describe_machine()}, all cores. Random trees of edges of strength 0.4, rho = 1, add_remove, private "
        "number of records; the records are a pandas frame of one byte a value.",
        markdown_table(head, body),
    ]
    (out / "random-field-speed.md").write_text("\n\n".join(text) + "\n")


def measure(case: str) -> dict:
    """Seconds to encode the frame and to fit, peak memory, and what came out."""
    p, n, options = CASES[case]
    rng = np.random.default_rng(20261203)
    weights = np.zeros((p, p))
    for j in range(1, p):
        i = int(rng.integers(max(0, j - 3), j))
        weights[i, j] = weights[j, i] = 0.4 * rng.choice([-1, 1])
    field = Ising(weights, np.zeros(p))
    names = [f"x{j}" for j in range(p)]
    # By parts, so that sampling is not what the memory is measured of.
    parts = [sample_field(field, n // 10, rng) for _ in range(10)]
    frame = pd.DataFrame(np.asfortranarray(np.concatenate(parts)), columns=names)
    del parts
    reset_peak_rss()
    start = time.perf_counter()
    table = PrivateTable(frame, {name: [0, 1] for name in names}, ledger=Budget(rho=1.0))
    encoded = time.perf_counter()
    estimator = PrivateIsing(width=field.width, rho=1.0, **options).fit(table)
    done = time.perf_counter()
    return {
        "encode": encoded - start,
        "fit": done - encoded,
        "gigabytes": peak_rss() / 1e9,
        "note": f"{np.abs(estimator.weights_ - weights).max():.3f}; {estimator.status_}",
    }


if __name__ == "__main__":
    main()
