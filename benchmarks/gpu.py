"""What torch's device is good for: the same computation on a GPU and on two threads of the same machine's processor.

::

    python -m benchmarks.gpu --out benchmarks/results

Where there is no GPU, torch's own CPU device stands in for it, and the table says so. Every result is compared: the
device must not change it beyond what the solver promises. Data are made here, and nothing in it is private. Seconds are
those of a second call; the first one starts the device, and compiles. Each row runs in a process of its own, and one
that takes too long is listed as such (``--limit`` seconds). On a machine of many cores ``--at-once 6`` measures the
processor on so many rows at a time, two threads each, while the device works on one.

``python -m benchmarks.gpu --in-turns`` asks whether torch on the processor is worth being the default where it is
installed: it and NumPy in one process in turns, one thread, processor time, so that others on the machine hardly count.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.machine import describe_machine, peak_rss
from benchmarks.report import markdown_table

Call = Callable[[], Any]

ROWS = {
    "counting 1e6": "45 tables of pairs, 1,000,000 coded records in memory",
    "counting 1e7": "45 tables of pairs, 10,000,000 coded records in memory",
    "counting 1e8": "45 tables of pairs, 100,000,000 coded records in memory",
    "lasso 300": "graphical lasso, d = 300, to a gap of 1e-7 d",
    "lasso 1000": "graphical lasso, d = 1000",
    "lasso 2000": "graphical lasso, d = 2000",
    "lasso 5000": "graphical lasso, d = 5000",
    "newton 300": "projection on correlation matrices, Newton's method, n = 300, to 1e-6",
    "newton 4000": "the same, n = 4000",
    "projection 300": "the projection as learners call it, n = 300, degree 40, to half of its distance",
    "projection 1000": "the same, n = 1000",
    "projection 4000": "the same, n = 4000",
    "projection 20000": "the same, n = 20,000",
    "blocks 300": "membership program in 300 blocks of 27 records, k = 3, d = 8",
    "blocks 2000": "the same, 2,000 blocks of 96 records",
    "calibration": "CollectiveMAP's calibration: 20 trees of 60 variables with 12 states (it has no torch path)",
    "k-means": "k-means of 1,000 blocks of 500 records, d = 32, k = 5, 5 starts",
}
"""Rows of the table, in order."""

SMALL = ("counting 1e6", "lasso 300", "newton 300", "projection 300", "blocks 300", "calibration")
"""For a machine without a GPU: some minutes."""

QUICK = ("counting 1e6", "projection 300", "blocks 300")
"""For a look: half a minute."""

IN_TURNS = {
    "counting 1e4": "45 tables of pairs, 10,000 records",
    "counting 1e5": "45 tables of pairs, 100,000 records",
    "counting 1e6": "45 tables of pairs, 1,000,000 records",
    "lasso 30": "graphical lasso, d = 30",
    "lasso 100": "graphical lasso, d = 100",
    "lasso 300": "graphical lasso, d = 300",
    "blocks 60": "membership program in 60 blocks of 27 records",
    "blocks 300": "membership program in 300 blocks of 27 records",
    "k-means 30 200 8": "k-means of 30 blocks of 200 records, d = 8",
    "k-means 300 200 8": "k-means of 300 blocks of 200 records, d = 8",
    "k-means 100 500 32": "k-means of 100 blocks of 500 records, d = 32",
}
"""What has NumPy for its default, two or three sizes each."""

_LONG = 15.0  # seconds of calls after which no other one is timed


def on_backend(device: str | None) -> None:
    """Let pgmpy, and with it this package, compute on a device of torch, or on NumPy."""
    from pgmpy.global_vars import config

    config.set_backend("numpy" if device is None else "torch", device=device)


def counting(n: int) -> Callable[[str | None], Call]:
    """All tables of pairs of ten columns of 2 to 20 states."""
    from benchmarks.scale import PAIRS, SIZES
    from pgmpy_dp.private.data.contingency import count

    codes = np.random.default_rng(0).integers(0, SIZES, (n, len(SIZES)), dtype=np.uint8)

    def prepare(device: str | None) -> Call:
        on_backend(device)
        return lambda: np.concatenate([count(codes, SIZES, [i, j]).ravel() for i, j in PAIRS])

    return prepare


def lasso(d: int) -> Callable[[str | None], Call]:
    """Moments of records from a chain of d variables, twice as many records."""
    from pgmpy_dp.gaussian.graphical_lasso import graphical_lasso

    rng = np.random.default_rng(d)
    x = rng.normal(size=(2 * d, d))
    for j in range(1, d):
        x[:, j] = 0.5 * x[:, j - 1] + math.sqrt(0.75) * x[:, j]
    moments = x.T @ x / len(x)
    penalty = math.sqrt(math.log(d) / len(x))

    def prepare(device: str | None) -> Call:
        on_backend(device)
        return lambda: graphical_lasso(moments, penalty, tolerance=1e-7).precision

    return prepare


def newton(n: int) -> Callable[[str | None], Call]:
    """The centred graph of two communities, degree 40, scaled as the learner of block models scales it."""
    from pgmpy_dp.communities.published.correlation_newton import project_correlation

    target = centred(n)[0].toarray()

    def prepare(device: str | None) -> Call:
        return lambda: project_correlation(target, tolerance=1e-6, device=device).matrix

    return prepare


def centred(n: int, degree: float = 40.0, bias: float = 0.8) -> tuple[Any, float]:
    """What the learner of block models projects, and to which distance."""
    from pgmpy_dp.communities.operators.sparse_minus_constant import SparseMinusConstant
    from pgmpy_dp.communities.planted_graphs import planted_labels, sample_block_model
    from pgmpy_dp.communities.published.projection_solvers import projection as program_of

    rng, program = np.random.default_rng(n), program_of(n, degree, bias)
    graph = sample_block_model(planted_labels(n, 2, rng), degree, bias, rng)
    target = SparseMinusConstant(graph, program.scale, program.scale * degree / n)
    return target, 0.5 * math.sqrt(2.0) * program.distance


def projection(n: int) -> Callable[[str | None], Call]:
    """The same graph, sparse; the factor's products with fixed vectors, as 20,000 x 20,000 numbers are 3 GB."""
    from pgmpy_dp.communities.published.correlation_newton import feasible_factor, project_correlation

    target, tolerance = centred(n)
    probes = np.random.default_rng(2).normal(size=(n, 3))

    def prepare(device: str | None) -> Call:
        def call() -> np.ndarray:
            rows = feasible_factor(project_correlation(target, tolerance=tolerance, device=device).factor)
            return rows @ (rows.T @ probes)

        return call

    return prepare


def blocks(m: int) -> Callable[[str | None], Call]:
    """Blocks of three clusters, as the learner of mixtures clusters them with ``block_solver="sdp"``."""
    from pgmpy_dp.mixtures.operators.batched_membership import batched_membership

    rng, b = np.random.default_rng(0), 27 if m <= 300 else 96
    points = 6.0 * np.eye(3, 8)[rng.integers(3, size=(m, b))] + rng.normal(size=(m, b, 8))

    def prepare(device: str | None) -> Call:
        return lambda: np.nan_to_num(batched_membership(points, np.ones((m, b)), 3, 1.0, device=device))

    return prepare


def calibration(p: int = 60, states: int = 12) -> Callable[[str | None], Call]:
    """A tree's marginals from its potentials, as every step of CollectiveMAP computes them."""
    from pgmpy_dp.inference.belief_propagation import SumProduct
    from pgmpy_dp.inference.cliques import Cliques

    names = tuple(f"x{j}" for j in range(p))
    edges = tuple((names[(j - 1) // 2], names[j]) for j in range(1, p))
    cliques = Cliques(names, (states,) * p, edges)
    engine, thetas = SumProduct(cliques), np.random.default_rng(0).normal(size=(20, cliques.n_cells))

    def prepare(device: str | None) -> Call:
        on_backend(device)
        return lambda: np.concatenate([engine.calibrate(theta)[0] for theta in thetas])

    return prepare


def k_means(m: int = 1000, b: int = 500, d: int = 32, k: int = 5) -> Callable[[str | None], Call]:
    """Blocks of records, as the learner of mixtures clusters them."""
    from pgmpy_dp.mixtures.operators.kmeans import batched_kmeans

    rng = np.random.default_rng(0)
    points = rng.normal(size=(m, b, d)) + 20.0 * rng.normal(size=(k, d))[rng.integers(k, size=(m, b))]
    weights, uniforms = np.ones((m, b)), rng.random((5, m, k))

    def prepare(device: str | None) -> Call:
        return lambda: batched_kmeans(points, weights, uniforms, device=device)[1]

    return prepare


def problem(row: str) -> Callable[[str | None], Call]:
    """What a row computes, its data made."""
    kind, _, size = row.partition(" ")
    if kind == "k-means":
        return k_means(*map(int, size.split()))
    if kind == "calibration":
        return calibration()
    makers = {"counting": counting, "lasso": lasso, "newton": newton, "projection": projection, "blocks": blocks}
    return makers[kind](int(float(size)))


def measure(row: str, device: str | None, repeats: int) -> dict[str, Any]:
    """Median seconds of calls after a first one, memory, and what tells results apart."""
    import torch

    torch.set_num_threads(2)
    call = problem(row)(device)
    call()
    seconds = []
    for _ in range(repeats):
        started = time.perf_counter()
        result = np.asarray(call(), dtype=float)
        seconds.append(time.perf_counter() - started)
        if sum(seconds) > _LONG:
            break
    on_device = torch.cuda.max_memory_allocated() / 2**20 if device == "cuda" else 0.0
    # Moments of the result, not the result: 5000 x 5000 numbers do not fit into a line.
    probes = np.random.default_rng(1).normal(size=(result.size, 3)) if result.size < 10**6 else None
    marks = (result.ravel() @ probes).tolist() if probes is not None else []
    marks += [float(np.linalg.norm(result)), float(result.sum())]
    return {
        "seconds": float(np.median(seconds)),
        "host": peak_rss() / 2**20,
        "device": on_device,
        "norm": float(np.linalg.norm(result)),
        "marks": marks,
    }


def in_turns(row: str, rounds: int) -> list[str]:
    """Seconds of the processor for torch and for NumPy, their ratio, its range, and how far results are apart."""
    prepare, spent, results = problem(row), ([], []), [np.empty(0), np.empty(0)]
    for turn in range(-1, rounds):  # the first one is not counted
        for which, device in enumerate(("cpu", None)):
            call = prepare(device)
            started = time.process_time()
            results[which] = np.asarray(call(), dtype=float)
            if turn >= 0:
                spent[which].append(time.process_time() - started)
    on_backend(None)
    ratios = [slow / fast for fast, slow in zip(*spent, strict=True)]
    apart = float(np.linalg.norm(results[0] - results[1]) / max(1.0, np.linalg.norm(results[1])))
    medians = [f"{np.median(times):.3g}" for times in spent]
    between = f"{np.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
    return [IN_TURNS[row], *medians, between, f"{apart:.0e}" if apart else "equal"]


def compare_in_turns(rounds: int, folder: Path) -> None:
    """The page of torch and NumPy on the processor."""
    from benchmarks.machine import single_thread

    single_thread(pinned=False)
    import torch

    torch.set_num_threads(1)
    with threadpool_limits(1):
        body = [in_turns(row, rounds) for row in IN_TURNS]
    head = ["", "torch, s", "NumPy, s", "times as fast as NumPy (all rounds)", "results apart"]
    text = [
        "# Torch and NumPy on the processor",
        "Made by `python -m benchmarks.gpu --in-turns`",
        f"on {describe_machine()}, torch {torch.__version__}. Processor time of one thread, in turns in one process: "
        f"medians of {rounds} rounds after a first one. Results apart: norm of the difference over the norm.",
        markdown_table(head, body),
    ]
    (folder / "torch-on-cpu.md").write_text("\n\n".join(text) + "\n", encoding="utf-8")
    print(*text, sep="\n\n")


def contender(row: str, device: str, options: argparse.Namespace) -> dict[str, Any] | str:
    """The same in a process of its own; why there is no number, if there is none."""
    command = [sys.executable, "-m", "benchmarks.gpu", "--run", row, device, "--repeats", str(options.repeats)]
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "2")
    try:
        done = subprocess.run(
            command, check=True, capture_output=True, text=True, timeout=options.limit, env=os.environ | threads
        )
    except subprocess.TimeoutExpired:
        return f"more than {options.limit:g} (with its first call)"
    except subprocess.CalledProcessError as failed:
        return (failed.stderr.splitlines() or ["failed"])[-1]
    return json.loads(done.stdout.splitlines()[-1])


def table_row(row: str, fast: dict[str, Any] | str, slow: dict[str, Any] | str) -> list[str]:
    """Both contenders, the device's first, and how far their results are apart."""
    cells = [f"{f['seconds']:.3g}" if isinstance(f, dict) else f for f in (fast, slow)]
    if isinstance(fast, dict) and isinstance(slow, dict):
        apart = max(abs(a - b) for a, b in zip(fast["marks"], slow["marks"], strict=True)) / max(1.0, slow["norm"])
        cells += [f"{slow['seconds'] / fast['seconds']:.1f}", f"{apart:.0e}" if apart else "equal"]
    else:
        cells += ["", ""]
    memory = f"{fast['device']:.0f}" if isinstance(fast, dict) and fast["device"] else ""
    return [ROWS[row], *cells, memory]


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line; see ``--help``."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="benchmarks/results", help="folder of the results (default: %(default)s)")
    parser.add_argument("--rows", nargs="*", choices=tuple(ROWS), help="(default: all; without a GPU the small ones)")
    parser.add_argument("--quick", action="store_true", help="a few small rows, for a look")
    parser.add_argument("--repeats", type=int, default=3, help="timed calls of each (default: %(default)s)")
    parser.add_argument("--at-once", type=int, default=0, help="rows of the processor beside each other and the device")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds for a contender (default: %(default)s)")
    parser.add_argument("--in-turns", action="store_true", help="torch and NumPy on the processor, in one process")
    parser.add_argument("--run", nargs=2, metavar=("ROW", "DEVICE"), help="run one here, and print it as JSON")
    options = parser.parse_args(arguments)
    if options.run:
        row, device = options.run
        print(json.dumps(measure(row, None if device == "processor" else device, options.repeats)))
        return
    if options.in_turns:
        compare_in_turns(max(5, options.repeats), Path(options.out))
        return
    import torch

    there = torch.cuda.is_available()
    device, name = ("cuda", torch.cuda.get_device_name()) if there else ("cpu", "torch's CPU device")
    rows = options.rows or (QUICK if options.quick else tuple(ROWS) if there else SMALL)
    missing = "" if there else " **No GPU was at hand: torch's CPU device stands in for it.**"
    beside = f", {options.at_once} rows at a time beside the device" if options.at_once else ""
    body = []
    path = Path(options.out) / ("gpu.md" if there else "gpu-none.md")
    path.parent.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        devices = ThreadPoolExecutor(1)
        processors = ThreadPoolExecutor(options.at_once) if options.at_once else devices  # in turns
        for pool in (devices, processors):
            stack.callback(pool.shutdown, cancel_futures=True)  # Ctrl-C starts no further rows
        pairs = [
            (
                row,
                devices.submit(contender, row, device, options),
                processors.submit(contender, row, "processor", options),
            )
            for row in rows
        ]
        for row, fast, slow in pairs:
            body.append(table_row(row, fast.result(), slow.result()))
            print(body[-1], flush=True)
            head = ["", f"{name}, s", "two threads, s", "times as fast", "results apart", "memory on the device, MiB"]
            text = [
                "# Torch's device against the processor",
                "Made by `python -m benchmarks.gpu`",
                f"on {describe_machine()}, torch {torch.__version__}.{missing} Medians of {options.repeats} "
                f"calls after a first one (fewer if above {_LONG:g} s), on the clock, with all that moves to "
                "the device and back; processor: the default there, NumPy or, for Newton's method, torch, with two "
                f"threads{beside}. Results apart: random projections of the two, over the norm.",
                markdown_table(head, body),
            ]
            path.write_text("\n\n".join(text) + "\n", encoding="utf-8")
    print(path)


if __name__ == "__main__":
    main()
