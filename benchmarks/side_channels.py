"""What a stopwatch sees: running time and memory of reading and fitting, by the number of records and by one odd cell.

    python -m benchmarks.side_channels

docs/known-limits.md leads to them. They are there to show the size of what is *not* protected, not to be compared.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable

import networkx as nx
import numpy as np
import pandas as pd

from benchmarks.machine import describe_machine
from benchmarks.report import markdown_table
from pgmpy_dp import Budget, MarkovNetwork, PrivateTable
from pgmpy_dp.estimators import NaiveMLE, PrivateBlockModel

STATES = {"a": ["x", "y"], "b": ["u", "v", "w"]}


def median_ms(work: Callable[[], object], repeats: int = 5) -> float:
    """Median wall time of `work` in milliseconds."""
    took = []
    for _ in range(repeats):
        begin = time.perf_counter()
        work()
        took.append(1e3 * (time.perf_counter() - begin))
    return float(np.median(took))


def records(n: int) -> pd.DataFrame:
    """Records inside the schema, as Python objects."""
    rng = np.random.default_rng(0)
    return pd.DataFrame({name: rng.choice(states, n) for name, states in STATES.items()}).astype(object)


def with_one(frame: pd.DataFrame, cell: object) -> pd.DataFrame:
    """The same with one more record, whose first cell is `cell`."""
    last = pd.DataFrame([[cell, "u"]], columns=frame.columns, dtype=object)
    return pd.concat([frame, last], ignore_index=True).astype(object)


def main() -> None:
    """Print the table."""
    rows = []

    def row(what: str, work: Callable[[], object]) -> None:
        work()
        tracemalloc.start()
        work()
        peak = tracemalloc.get_traced_memory()[1] / 2**20
        tracemalloc.stop()
        rows.append((what, median_ms(work), peak))

    def read(frame: pd.DataFrame) -> Callable[[], object]:
        return lambda: PrivateTable(frame, STATES, ledger=Budget(epsilon=1.0))

    for n in (1_000, 10_000, 100_000):
        row(f"reading {n:,} records", read(records(n)))
    row("reading 100,000 records and one more with the text '?'", read(with_one(records(100_000), "?")))
    row("reading 100,000 records and one more with a tuple", read(with_one(records(100_000), (1, 2))))
    for n in (1_000, 100_000):
        table = PrivateTable(records(n), STATES, ledger=Budget(epsilon=1e6))
        row(
            f"a fit on {n:,} records read before",
            lambda t=table: NaiveMLE(epsilon=1.0).fit(MarkovNetwork([("a", "b")]), t),
        )
    for name, graph in (("a path", nx.path_graph(24)), ("a ring with chords", nx.circulant_graph(24, [1, 2]))):
        row(
            f"exponential mechanism on {name} of 24 vertices",
            lambda g=graph: PrivateBlockModel(method="exponential", epsilon=1.0).fit(g),
        )
    print(f"{describe_machine()}\n")
    print(
        markdown_table(
            ["what", "median time (ms)", "peak memory (MiB)"], [[w, f"{t:.3g}", f"{m:.2g}"] for w, t, m in rows]
        )
    )


if __name__ == "__main__":
    main()
