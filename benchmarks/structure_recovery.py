"""Exact recovery of graphs: the smallest number of records with which each private structure learner finds the graph.

::

    python -m benchmarks.structure_recovery                                      # quick: about a minute on one core
    python -m benchmarks.structure_recovery --mode full --out benchmarks/results
    python -m benchmarks.structure_recovery --mode full --out benchmarks/results --resume    # what is not there yet

Ising models without fields, of equal sizes of the weights with random signs, on uniform trees (.5), grids and random
3-regular graphs (.4), add_remove with a public number of records. Methods are told the width and the size of the
weights; EdgeVoting also a bound on the number of edges. Numbers of records are 128 times powers of the root of 2; the
records of fewer are the first of those of more. Noise comes from seeds: nothing here is private.
"""

from __future__ import annotations

import argparse
import json
import math
import shlex
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.machine import describe_machine, single_thread

if __name__ == "__main__":
    single_thread()  # before numpy is imported

import numpy as np
import pandas as pd
from tqdm import tqdm

from benchmarks.field_sampling import sample_field
from benchmarks.folders import raw_folder
from benchmarks.random_graphs import named_graph, random_ising
from benchmarks.report import markdown_table
from pgmpy_dp.estimators import EdgeVoting, PrivateChowLiu, PrivateIsing, StableStructure
from pgmpy_dp.fields.random_fields import Ising
from pgmpy_dp.fields.votes.block_graphs import plan_blocks
from pgmpy_dp.learning.options import settings_of
from pgmpy_dp.private.noise.samplers import ReproducibleNoiseWarning
from pgmpy_dp.schema import Schema

__all__ = ["Learner", "Population", "grid", "growth", "learners", "measure", "report", "smallest_index"]

WEIGHTS = {"tree": 0.5, "grid": 0.4, "regular": 0.4}
MOST_EDGES: dict[str, Callable[[int], int]] = {
    "tree": lambda p: p - 1,
    "grid": lambda p: 2 * p,
    "regular": lambda p: 3 * p // 2,
}
BUDGETS: dict[str, dict[str, float]] = {
    "none": {},
    "(1, 1e-6)": {"epsilon": 1.0, "delta": 1e-6},
    "rho = 0.1": {"rho": 0.1},
    "epsilon = 1": {"epsilon": 1.0},
}
MODES: dict[str, tuple[tuple[str, ...], tuple[int, ...], int, int]] = {
    # kinds, numbers of variables, populations, how many of them must be exact
    "quick": (("tree", "regular"), (10, 20), 4, 3),
    "full": (("tree", "regular", "grid"), (10, 20, 50, 100, 200), 10, 8),
}
LAST = 24
"""Index of the largest number of records: 524,288."""
_CHUNK = 1 << 14

Edges = set[tuple[int, int]] | None


@dataclass(frozen=True)
class Learner:
    """One row of the table.

    Attributes
    ----------
    name : str
    guarantee : str
        A key of `BUDGETS`.
    find : callable
        (population, n) to the edges found among the first n records, None where no graph is stable.
    most : int
        Largest number of variables that it is run on.
    """

    name: str
    guarantee: str
    find: Callable[[Population, int], Edges]
    most: int


class Population:
    """A random model and as many records as are asked for."""

    def __init__(self, kind: str, p: int, seed: int) -> None:
        self.kind, self.p, self.seed = kind, p, seed
        self._key = [seed, p, sorted(WEIGHTS).index(kind)]
        rng = np.random.default_rng(self._key)
        self.field: Ising = random_ising(named_graph(kind, p, rng), rng, weight=WEIGHTS[kind])
        self.edges = set(self.field.edges())
        self.states = {f"v{i}": [0, 1] for i in range(p)}
        self._chunks: list[np.ndarray] = []

    def codes(self, n: int) -> np.ndarray:
        """The first n records, shape (n, p)."""
        while len(self._chunks) * _CHUNK < n:
            rng = np.random.default_rng([*self._key, 1 + len(self._chunks)])
            self._chunks.append(sample_field(self.field, _CHUNK, rng))
        return np.concatenate(self._chunks[: -(-n // _CHUNK)])[:n]


def learners(kind: str) -> list[Learner]:
    """All rows for a kind of graph."""
    # Blocks: fewer than the default of StableStructure (56), as these models are easy enough for nearly all to agree.
    block, n_blocks = ("chow-liu", 40) if kind == "tree" else ("inverse-covariance", 50)

    def voting(population: Population, **common: Any) -> EdgeVoting:
        bound = MOST_EDGES[kind](population.p)
        return EdgeVoting(population.field.width, WEIGHTS[kind], learner=block, max_edges=bound, **common)

    def stable(population: Population, **common: Any) -> StableStructure:
        return StableStructure(population.field.width, WEIGHTS[kind], learner=block, n_blocks=n_blocks, **common)

    def ising(method: str) -> Callable[..., PrivateIsing]:
        return lambda population, **common: PrivateIsing(
            population.field.width, method=method, min_edge_weight=WEIGHTS[kind], memory_limit=2**22, **common
        )

    def tables(population: Population, **common: Any) -> PrivateChowLiu:
        return PrivateChowLiu(method="tables", fit_parameters=False, **common)

    def kruskal(population: Population, **common: Any) -> PrivateChowLiu:
        # The tables that follow the selection say nothing about the graph: they get a tenth.
        return PrivateChowLiu(selection_share=0.8, fit_parameters=False, **common)

    approximate, zcdp, pure = list(BUDGETS)[1:]
    tree = kind == "tree"
    found = [Learner(f"{block}, not private", "none", _plain(block), 200 if tree else 100)]
    # Numbers of variables end where a row would take more than about a minute.
    chosen: list[tuple[str, Callable[..., Any], str, int]] = [
        (f"StableStructure, {block}, {n_blocks} blocks", stable, approximate, 200 if tree else 100),
        (f"EdgeVoting, {block}", voting, approximate, 50),
        (f"EdgeVoting, {block}", voting, zcdp, 50 if tree else 20),
        (f"EdgeVoting, {block}", voting, pure, 20),
        ("PrivateIsing, moments", ising("moments"), approximate, 100),
        ("PrivateIsing, moments", ising("moments"), zcdp, 100 if tree else 50),
        ("PrivateIsing, moments", ising("moments"), pure, 100 if tree else 50),
        ("PrivateIsing, Frank-Wolfe", ising("frank-wolfe"), zcdp, 100),
    ]
    if tree:
        chosen += [
            ("PrivateChowLiu, tables", tables, approximate, 100),
            ("PrivateChowLiu, tables", tables, zcdp, 100),
            ("PrivateChowLiu, tables", tables, pure, 50),
            ("PrivateChowLiu, selection", kruskal, approximate, 200),
            ("PrivateChowLiu, selection", kruskal, zcdp, 100),
            ("PrivateChowLiu, selection", kruskal, pure, 100),
        ]
    return found + [Learner(name, budget, _fitted(make, budget), most) for name, make, budget, most in chosen]


def _plain(block: str) -> Callable[[Population, int], Edges]:
    """The learner of a block, without noise, on all records."""

    def find(population: Population, n: int) -> Edges:
        settings = settings_of(EdgeVoting(population.field.width, WEIGHTS[population.kind], learner=block))
        pairs = np.transpose(np.triu_indices(population.p, 1))
        chosen = plan_blocks(Schema(population.states), settings).graph(population.codes(n))
        return {(int(i), int(j)) for i, j in pairs[list(chosen)]}

    return find


def _fitted(make: Callable[..., Any], budget: str) -> Callable[[Population, int], Edges]:
    def find(population: Population, n: int) -> Edges:
        data = pd.DataFrame(population.codes(n), columns=list(population.states))
        common = {**BUDGETS[budget], "state_names": population.states, "n_records": n, "random_state": population.seed}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ReproducibleNoiseWarning)
            graph = make(population, **common).fit(data).graph_
        if graph is None:
            return None
        position = {name: i for i, name in enumerate(population.states)}
        return {tuple(sorted((position[u], position[v]))) for u, v in graph.edges}  # type: ignore[misc]

    return find


def grid(index: int) -> int:
    """128 times the root of 2 to the power of the index, rounded up."""
    return math.ceil(128 * 2 ** (index / 2) - 1e-9)


def smallest_index(succeeds: Callable[[int], bool], start: int, last: int) -> int | None:
    """The smallest index in 0 .. last that succeeds, if success once reached is kept; None if `last` fails.

    Steps that double lead from `start` to an index of the other outcome, bisection back.
    """
    start = min(max(start, 0), last)
    if succeeds(start):
        high, low, step = start, start - 1, 1
        while low >= 0 and succeeds(low):
            high, step = low, 2 * step
            low = max(low - step, -1)
    else:
        low, high, step = start, start + 1, 1
        while high <= last and not succeeds(high):
            if high == last:
                return None
            low, step = high, 2 * step
            high = min(high + step, last)
        if high > last:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if succeeds(middle) else (middle, high)
    return high


def measure(
    learner: Learner, populations: Sequence[Population], needed: int, start: int, last: int = LAST
) -> dict[str, Any]:
    """The smallest number of records with `needed` exact graphs, and all that was tried on the way.

    Populations are tried until enough are exact, or too many are not.
    """
    tried: dict[int, dict[str, Any]] = {}

    def succeeds(index: int) -> bool:
        n = grid(index)
        counts = tried[n] = {"exact": 0, "wrong": 0, "none": 0, "seconds": 0.0}
        for population in populations:
            population.codes(n)  # sampling is not what is timed
            started = time.process_time()  # other work on the machine does not count
            edges = learner.find(population, n)
            counts["seconds"] += time.process_time() - started
            counts["none" if edges is None else "exact" if edges == population.edges else "wrong"] += 1
            if counts["exact"] >= needed or counts["wrong"] + counts["none"] > len(populations) - needed:
                break
        counts["seconds"] /= counts["exact"] + counts["wrong"] + counts["none"]
        return bool(counts["exact"] >= needed)

    index = smallest_index(succeeds, start, last)
    return {
        "kind": populations[0].kind,
        "p": populations[0].p,
        "learner": learner.name,
        "guarantee": learner.guarantee,
        "smallest": None if index is None else grid(index),
        "largest": grid(last),
        "tried": {str(n): tried[n] for n in sorted(tried)},
    }


def run(mode: str, most: float = math.inf, earlier: Sequence[dict[str, Any]] = ()) -> Iterator[dict[str, Any]]:
    """Rows of a mode, as they come; those of an earlier run are not measured again."""
    kinds, variables, count, needed = MODES[mode]
    known = {(row["kind"], row["p"], row["learner"], row["guarantee"]): row for row in earlier}
    for kind in kinds:
        found: dict[tuple[str, str], list[tuple[int, int]]] = {}
        for p in (p for p in variables if p <= most):
            populations = [Population(kind, p, 1000 + seed) for seed in range(count)]
            for learner in learners(kind):
                if p > learner.most:
                    continue
                key = learner.name, learner.guarantee
                row = known.get((kind, p, *key))
                if row is None:
                    started = time.process_time()
                    row = measure(learner, populations, needed, _expected(found.get(key, []), p))
                    yield {**row, "cpu": time.process_time() - started}
                if row["smallest"] is not None:
                    index = round(2 * math.log2(row["smallest"] / 128))
                    found.setdefault(key, []).append((p, index))


def _expected(found: Sequence[tuple[int, int]], p: int) -> int:
    """Index at which to start, going on as the last two numbers of variables did."""
    if len(found) < 2:
        return found[0][1] + 1 if found else 8
    (p1, index1), (p2, index2) = found[-2:]
    return round(index2 + (index2 - index1) * math.log(p / p2) / math.log(p2 / p1))


def growth(variables: Sequence[int], smallest: Sequence[int]) -> tuple[float, float]:
    """b of n ~ p^b by least squares on the logarithms, and its standard error (nan of two points).

    The standard error is at least what rounding up to the grid of numbers of records makes.
    """
    x, y = np.log(variables), np.log(smallest)
    centred = x - x.mean()
    slope = float(centred @ y / (centred @ centred))
    rest = y - y.mean() - slope * centred
    rounding = math.log(2) / 2 / math.sqrt(12)
    spread = max(math.sqrt(rest @ rest / (len(x) - 2)), rounding) if len(x) > 2 else math.nan
    return slope, spread / math.sqrt(centred @ centred)


def report(rows: pd.DataFrame) -> str:
    """Smallest numbers of records by graph, learner and guarantee; growth; seconds."""
    sections = []
    for kind, of_kind in rows.groupby("kind", sort=False):
        variables = sorted(of_kind["p"].unique())
        body = []
        for (name, guarantee), group in of_kind.groupby(["learner", "guarantee"], sort=False):
            by_p = {row["p"]: row for _, row in group.iterrows()}
            cells = [_cell(by_p.get(p)) for p in variables]
            known = [(p, row["smallest"]) for p, row in by_p.items() if pd.notna(row["smallest"]) and p <= 100]
            exponent = "-"
            if len(known) > 2:
                slope, error = growth(*zip(*known, strict=True))
                exponent = f"{slope:.2f} +- {error:.2f}"
            largest = by_p[max(by_p)]
            n = str(int(largest["smallest"])) if pd.notna(largest["smallest"]) else max(largest["tried"], key=int)
            body.append([name, guarantee, *cells, exponent, f"{largest['tried'][n]['seconds']:.2g}"])
        head = ["learner", "guarantee", *(f"p = {p}" for p in variables), "power of p", "seconds"]
        sections.append(f"## {kind}, weights of {WEIGHTS[kind]}\n\n{markdown_table(head, body)}")
    outcomes = [
        (row["learner"], counts["wrong"], counts["exact"] + counts["wrong"] + counts["none"])
        for _, row in rows.iterrows()
        if row["learner"].startswith("StableStructure")
        for counts in row["tried"].values()
    ]
    wrong, fits = sum(o[1] for o in outcomes), sum(o[2] for o in outcomes)
    sections.append(f"`StableStructure` released {wrong} wrong graphs in {fits} fits, at all numbers of records tried.")
    return "\n\n".join(sections)


def _cell(row: Any) -> str:
    if row is None:
        return "-"
    return f"{int(row['smallest']):,}" if pd.notna(row["smallest"]) else f"> {row['largest']:,}"


def draw(rows: pd.DataFrame, path: Path) -> None:
    """Smallest number of records against the number of variables, one panel for each kind of graph."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    kinds = list(dict.fromkeys(rows["kind"]))
    figure, axes = plt.subplots(
        1, len(kinds), figsize=(4.5 * len(kinds) + 3, 5), sharey=True, squeeze=False, layout="constrained"
    )
    styles = dict(zip(BUDGETS, (":", "-", "--", "-."), strict=True))
    names = dict.fromkeys(map(_series, rows["learner"]))
    palette = ("#000000", "#0072B2", "#E69F00", "#D55E00", "#CC79A7", "#009E73", "#56B4E9")  # Okabe and Ito's
    colours = dict(zip(names, palette, strict=False))
    for axis, kind in zip(axes[0], kinds, strict=True):
        for (name, guarantee), group in rows[rows["kind"] == kind].groupby(["learner", "guarantee"], sort=False):
            known = group.dropna(subset="smallest").sort_values("p")
            label = f"{_series(name)}, {guarantee}"
            axis.plot(
                known["p"],
                known["smallest"],
                styles[guarantee],
                color=colours[_series(name)],
                marker="o",
                markersize=3,
                label=label,
            )
        axis.set(xscale="log", yscale="log", xlabel="variables p", title=kind)
    axes[0][0].set_ylabel("smallest number of records")
    handles = {
        label: handle for axis in axes[0] for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)
    }
    figure.legend(handles.values(), handles.keys(), loc="outside right center", fontsize=8, handlelength=4)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def _series(name: str) -> str:
    """The learner without its settings."""
    if "not private" in name:
        return "not private"
    return name if name.startswith(("PrivateIsing", "PrivateChowLiu")) else name.split(",")[0]


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line; see ``--help``."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.structure_recovery", description="Exact recovery.")
    parser.add_argument("--mode", choices=sorted(MODES), default="quick", help="default: %(default)s")
    parser.add_argument("--out", default="build/benchmarks", help="folder of the results (default: %(default)s)")
    parser.add_argument("--most", type=int, default=math.inf, help="largest number of variables (default: the mode's)")
    parser.add_argument("--resume", action="store_true", help="keep the rows of an earlier run, and go on")
    options = parser.parse_args(arguments)
    folder = Path(options.out)
    folder.mkdir(parents=True, exist_ok=True)
    stem = "structure-recovery" if options.mode == "full" else f"structure-recovery-{options.mode}"
    rows_path = raw_folder(folder) / f"{stem}.jsonl"
    if options.resume:
        header, *found = map(json.loads, rows_path.read_text().splitlines())
    else:
        given = [item for item in (arguments or sys.argv[1:]) if item != "--resume"]
        command = shlex.join(["python", "-m", "benchmarks.structure_recovery", *given])
        header, found = {"command": command, "machine": describe_machine()}, []
        rows_path.write_text(json.dumps(header) + "\n")
    with rows_path.open("a") as file:
        for row in tqdm(run(options.mode, options.most, found)):
            file.write(json.dumps(row) + "\n")
            file.flush()
    found = [json.loads(line) for line in rows_path.read_text().splitlines()[1:]]
    rows = pd.DataFrame(found)
    _, _, count, needed = MODES[options.mode]
    text = f"# Exact recovery of graphs\n\n`{header['command']}`, {header['machine']}, one thread, "
    text += f"{rows['cpu'].sum() / 60:.0f} minutes of processor time.\n\n"
    text += f"Smallest number of records, of 128 times powers of the root of 2, with which {needed} of {count} random "
    text += "models have their exact graph. (1, 1e-6) allows a rho of .024, so that rho = 0.1 is half the noise of "
    text += "it, not another growth. Power of p: b of n ~ p^b from p = 10 to 100, with a "
    text += "standard error; over this range log p is a power of .30. Seconds: of processor time, of "
    text += "one fit at the largest p of the row and its number of records.\n\n"
    picture = rows_path.with_suffix(".png")
    draw(rows, picture)
    text += f"{report(rows)}\n\nThe command draws this as `{picture}`.\n"
    path = folder / f"{stem}.md"
    path.write_text(text)
    print(f"wrote {path}")


if __name__ == "__main__":
    main()
