"""Tables at levels of a variable, from the nation to the tract: errors and coverage, beside least squares on the tree.

    python -m benchmarks.areas --out benchmarks/results

geography   1,000 tracts in 50 counties in 5 states, 400,000 persons, sex x age x race (80 cells)
codes       200,000 establishments in the 238 groups of ISIC Rev. 4 in 88 divisions in 21 sections, 24 cells; ragged
size        20,000 tracts in 500 counties in 20 states, 8 million persons, 80 cells: time and memory of one fit

Records are made up; the tree of codes is the United Nations' (ISIC Rev. 4, 2008). "Least squares" is non-negative:
two passes over the tree (Hay, Rastogi, Miklau and Suciu 2010), then each node's parts projected on non-negative numbers
of its sum, from the top; it has the tenth of the budget that the fit spends on leaves' own tables. Intervals are of the
population that records were drawn from. A run that was stopped goes on where it stopped.
"""

from __future__ import annotations

import argparse
import itertools
import json
import resource
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.machine import describe_machine, single_thread

if __name__ == "__main__":
    single_thread(pinned=False)  # before numpy is imported

import networkx as nx
import numpy as np
import pandas as pd

from benchmarks.folders import raw_folder
from benchmarks.report import markdown_table
from pgmpy_dp import Budget, Levels, Schema, learn
from pgmpy_dp.estimators import CollectiveMAP
from pgmpy_dp.learning.level_plan import at_every_level
from pgmpy_dp.learning.noisy_tables import rehearse
from pgmpy_dp.learning.options import Settings

DELTA = 1e-9
SEEDS = {"geography": range(21, 24), "codes": range(21, 27), "size": range(21, 22)}
DRAWS = {"geography": 39, "codes": 99}
"""Of each posterior; draws of the geography take a minute, and are of the first population alone."""
SEARCH_SEEDS = (34, 35, 36)
EPSILONS = (0.1, 1.0, 10.0)
SEARCH = {"max_order": 4, "max_clique_cells": 100_000}
GROUPS = {
    "A": (7, 4, 2), "B": (2, 2, 2, 2, 2), "D": (3,), "E": (1, 1, 3, 1), "F": (1, 3, 4), "G": (4, 7, 9),
    "C": (8, 1, 1, 2, 3, 2, 2, 1, 2, 2, 3, 1, 2, 2, 3, 3, 8, 6, 2, 3, 5, 1, 6, 2),
    "H": (3, 2, 2, 2, 2), "I": (3, 3), "J": (2, 2, 2, 4, 1, 2), "K": (4, 3, 3), "L": (2,),
    "M": (2, 2, 2, 2, 2, 3, 1), "N": (4, 3, 2, 3, 3, 4), "O": (3,), "P": (5,), "Q": (3, 4, 2),
    "R": (1, 1, 1, 2), "S": (3, 2, 1), "T": (1, 2), "U": (1,),
}  # fmt: skip
"""Groups in each division of each section of ISIC Rev. 4, as in the file of its structure of the United Nations."""
Row = dict[str, Any]


class Law(NamedTuple):
    """A population with its tree: `places` are each leaf's states at the levels, the coarsest first."""

    names: tuple[str, ...]
    places: tuple[np.ndarray, ...]
    shape: tuple[int, ...]
    population: np.ndarray
    n: int

    @property
    def parents(self) -> list[np.ndarray]:
        """Of each level but the first, the nation, each node's parent."""
        levels = [np.zeros_like(self.places[0]), *self.places, np.arange(len(self.places[0]))]
        return [above[np.unique(below, return_index=True)[1]] for above, below in itertools.pairwise(levels)]

    def at_levels(self, leaves: np.ndarray) -> list[np.ndarray]:
        """A table of leaves, of shape (..., leaves, cells), at every level, the nation first."""
        tables = [leaves]
        for parent in self.parents[::-1]:
            sums = np.zeros((*leaves.shape[:-2], parent.max() + 1, leaves.shape[-1]))
            np.add.at(sums, (..., parent, slice(None)), tables[0])
            tables.insert(0, sums)
        return tables


def geography(seed: int, states: int = 5, counties: int = 10, tracts: int = 20, n: int = 400_000) -> Law:
    """Log-normal sizes of tracts; each tract's cells near its county's, and these near its state's."""
    rng = np.random.default_rng(seed)
    sizes = rng.lognormal(0, 0.7, states * counties * tracts)
    base, cells = rng.dirichlet(np.full(80, 2.0)), []
    for _ in range(states):
        of_state = rng.dirichlet(400 * base)
        for _ in range(counties):
            of_county = rng.dirichlet(200 * of_state + 1e-3)
            cells += [rng.dirichlet(100 * of_county + 1e-3) for _ in range(tracts)]
    leaf = np.arange(len(sizes))
    population = (sizes / sizes.sum())[:, None] * np.array(cells)
    return Law(("state", "county", "tract"), (leaf // (counties * tracts), leaf // tracts), (2, 8, 5), population, n)


def codes(seed: int, n: int = 200_000) -> Law:
    """Skewed shares of the groups of a public classification, whose sections and divisions have one part to many."""
    rng = np.random.default_rng(seed)
    division = np.repeat(np.arange(88), [k for of in GROUPS.values() for k in of])
    section = np.repeat(np.arange(21), [len(of) for of in GROUPS.values()])[division]
    shares = np.exp(rng.normal(0, 1, 21)[section] + rng.normal(0, 0.7, 88)[division] + rng.normal(0, 0.7, 238))
    base = rng.dirichlet(np.full(24, 2.0))
    of_section = [rng.dirichlet(100 * base + 1e-2) for _ in range(21)]
    of_division = [
        rng.dirichlet(150 * of_section[s] + 1e-2) for s in section[np.unique(division, return_index=True)[1]]
    ]
    cells = np.array([rng.dirichlet(150 * of_division[d] + 1e-2) for d in division])
    return Law(
        ("section", "division", "group"), (section, division), (2, 3, 4), (shares / shares.sum())[:, None] * cells, n
    )


LAWS = {"geography": geography, "codes": codes}


def trial(law: Law, epsilon: float, seed: int, n_draws: int = 0, searched: bool = False) -> Row:
    """Mean absolute errors of a cell at each level and of a leaf's total, of the fit and of least squares; coverage.

    The fit is of the tables that least squares has too, or of those that `learn` selects with the same budget.
    """
    *coarse, leaf = law.names
    maps = {name: dict(enumerate(places.tolist())) for name, places in zip(coarse[::-1], law.places[::-1], strict=True)}
    parent = dict(zip(law.places[1].tolist(), law.places[0].tolist(), strict=True))
    maps[coarse[0]] = {f"d{division}": f"s{section}" for division, section in parent.items()}
    maps[coarse[1]] = {place: f"d{division}" for place, division in maps[coarse[1]].items()}
    others = {f"v{k}": list(range(size)) for k, size in enumerate(law.shape)}
    schema = Schema({leaf: Levels(range(len(law.population)), **maps), **others})
    scopes, weights = at_every_level([(leaf, *others)], schema)
    rng = np.random.default_rng([seed, round(1000 * epsilon)])
    exact = rng.multinomial(law.n, law.population.ravel()).reshape(law.population.shape)
    tables = law.at_levels(exact)
    states = {name: schema.levels[name].states for name in coarse}
    back = [np.arange(1), *([int(s[1:]) for s in states[name]] for name in coarse), np.arange(len(exact))]
    made = [table[order].astype(int) for table, order in zip(tables, back, strict=True)]
    counts = [table.reshape(*table.shape[: k > 0], *law.shape) for k, table in enumerate(made)]
    counts[0] = counts[0].reshape(law.shape)
    settings = Settings(scopes=tuple(scopes), weights=tuple(weights or ()), random_state=None, noise="gaussian")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        release = rehearse([*counts, exact.sum(axis=1)], schema, settings, Budget(epsilon, DELTA), rng)
        frame, start = _records(law, exact) if searched else None, time.process_time()
        fitted: Any = CollectiveMAP(state_names=schema, memory_limit=2**33)
        if frame is None:
            fitted.fit_release(nx.complete_graph(schema), release)
        else:
            fitted = learn(frame, Budget(epsilon, DELTA), schema, random_state=seed, **SEARCH)
        seconds = time.process_time() - start
    estimate = fitted.n_records_ * fitted.model_.marginal(list(schema)).values.reshape(exact.shape)
    row: Row = {"seconds": seconds}
    if not searched:
        row |= {"iterations": fitted.n_iter_, "converged": fitted.converged_}
    noisy = [
        value.reshape(table.shape)[np.argsort(order)]
        for value, table, order in zip(release.values[:-1], made, back, strict=True)
    ]
    scales = [0.0 if noise is None else noise.scale for noise in release.noise[:-1]]
    alike = [(value, np.full(value.shape, scale**2)) for value, scale in zip(noisy, scales, strict=True)]
    squares = non_negative(least_squares(alike, law.parents), law.parents)
    for label, result in (("fit", law.at_levels(estimate)), ("tree", squares)):
        row[label] = [float(np.abs(one - table).mean()) for one, table in zip(result, tables, strict=True)]
        row[label].append(float(np.abs(result[-1].sum(axis=1) - exact.sum(axis=1)).mean()))
    if n_draws:
        posterior = fitted.posterior(n_draws, random_state=seed)
        row["coverage"] = []
        places = zip(law.at_levels(law.population), [[], *([name] for name in law.names)], back, strict=True)
        for truth, level, order in places:
            ends = posterior.interval([*level, *others])
            lower, upper = (ends[end].reshape(truth.shape)[np.argsort(order)] for end in ("lower", "upper"))
            row["coverage"].append(float(np.mean((lower <= truth) & (truth <= upper))))
    return row


def _records(law: Law, exact: np.ndarray) -> pd.DataFrame:
    """Records with these counts, of leaves and cells."""
    leaf, cell = np.divmod(np.repeat(np.arange(exact.size), exact.ravel()), exact.shape[1])
    columns = np.unravel_index(cell, law.shape)
    return pd.DataFrame({law.names[-1]: leaf, **{f"v{k}": column for k, column in enumerate(columns)}})


def least_squares(tables: Sequence[tuple[np.ndarray, np.ndarray]], parents: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The consistent tables nearest to measured ones, by the variances of their noise.

    Parameters
    ----------
    tables : sequence of (counts, variances)
        Of each level, the coarsest first: shapes (n_nodes, n_cells).
    parents : sequence of ndarray of int
        Of each level but the first: the node of the level before that each node is a part of. Every node has parts.

    Returns
    -------
    list of ndarray of shape (n_nodes, n_cells)

    """
    means, variances = [tables[-1][0]], [tables[-1][1]]
    for (count, variance), parent in zip(tables[-2::-1], parents[::-1], strict=True):
        below, spread = (_sums(part[0], parent, len(count)) for part in (means, variances))
        precision = 1 / variance + 1 / spread
        means.insert(0, (np.where(np.isinf(variance), 0.0, count) / variance + below / spread) / precision)
        variances.insert(0, 1 / precision)
    result = [means[0]]
    for mean, variance, parent in zip(means[1:], variances[1:], parents, strict=True):
        missing = result[-1] - _sums(mean, parent, len(result[-1]))
        result.append(mean + variance * (missing / _sums(variance, parent, len(missing)))[parent])
    return result


def non_negative(tables: Sequence[np.ndarray], parents: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Consistent tables made non-negative from the first down, each node's parts on {x >= 0, sum x = the node's}.

    The first table keeps its sum, if that is positive; arguments and result as of `least_squares`.

    """
    whole = np.array([max(float(tables[0].sum()), 0.0)])
    result = [_projected(tables[0].ravel(), np.zeros(tables[0].size, dtype=int), whole).reshape(tables[0].shape)]
    for table, parent in zip(tables[1:], parents, strict=True):
        group = parent[:, None] * table.shape[1] + np.arange(table.shape[1])
        result.append(_projected(table.ravel(), group.ravel(), result[-1].ravel()).reshape(table.shape))
    return result


def _sums(values: np.ndarray, parent: np.ndarray, n: int) -> np.ndarray:
    sums = np.zeros((n, values.shape[1]))
    np.add.at(sums, parent, values)
    return sums


def _projected(values: np.ndarray, group: np.ndarray, totals: np.ndarray) -> np.ndarray:
    """The values of each group projected on {x >= 0, sum x = its total}; see `project_on_simplex`."""
    order = np.lexsort((-values, group))
    ordered, groups = values[order], group[order]
    starts = np.flatnonzero(np.diff(groups, prepend=-1))
    rank = np.arange(len(groups)) - np.repeat(starts, np.diff(starts, append=len(groups))) + 1
    sums = np.cumsum(ordered)
    before = np.repeat(sums[starts] - ordered[starts], np.diff(starts, append=len(groups)))
    thresholds = (sums - before - totals[groups]) / rank
    last = starts + np.maximum(np.add.reduceat((ordered > thresholds).astype(int), starts), 1) - 1
    of_group = np.zeros(len(totals))
    of_group[groups[starts]] = thresholds[last]
    return np.maximum(values - of_group[group], 0.0)


def rows(kinds: Sequence[str]) -> Iterator[tuple[Row, Any]]:
    """What is to be done: the key of each row, and what computes it."""
    for kind in kinds:
        if kind == "size":
            yield {"law": kind, "epsilon": 1.0, "seed": SEEDS[kind][0]}, lambda: _size()
            continue
        for epsilon, seed in itertools.product(EPSILONS, SEEDS[kind]):
            key = {"law": kind, "epsilon": epsilon, "seed": seed}
            n_draws = DRAWS[kind] if kind == "codes" or seed == SEEDS[kind][0] else 0
            yield key, lambda k=kind, e=epsilon, s=seed, n=n_draws: trial(LAWS[k](s), e, s, n)
        for epsilon, seed in itertools.product(EPSILONS, SEARCH_SEEDS):
            key = {"law": kind, "method": "learn", "epsilon": epsilon, "seed": seed}
            yield key, lambda k=kind, e=epsilon, s=seed: trial(LAWS[k](s), e, s, searched=True)


def _size() -> Row:
    row = trial(geography(SEEDS["size"][0], 20, 25, 40, 8_000_000), 1.0, SEEDS["size"][0])
    return {**row, "gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20}


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line; see ``--help``."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.areas", description="Levels of a variable.")
    parser.add_argument("--out", default="benchmarks/results", help="folder of the results (default: %(default)s)")
    parser.add_argument("--laws", nargs="+", default=[*LAWS, "size"], choices=[*LAWS, "size"])
    options = parser.parse_args(arguments)
    path = raw_folder(Path(options.out)) / "areas.jsonl"
    done = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    for key, compute in rows(options.laws):
        if not any(key.items() <= row.items() for row in done):
            done.append(key | compute())
            with path.open("a") as stream:
                stream.write(json.dumps(done[-1]) + "\n")
    (Path(options.out) / "areas.md").write_text(_report(done))


def _report(done: list[Row]) -> str:
    lines = ["# Levels of a variable", "", "Made by `python -m benchmarks.areas`", "", f"on {describe_machine()}.", ""]
    lines += [
        "Mean absolute error of a cell at each level; in brackets over the non-negative least squares of the same",
        f"tables on the tree; delta {DELTA:g}. Coverage is of intervals of level .9 for the population, over all cells",
        "of a level, and after ± its standard error over populations. `learn` selects tables by itself, with the same",
        f"budget, seeds {SEARCH_SEEDS[0]} to {SEARCH_SEEDS[-1]}, with room for the whole table ({_options(SEARCH)}).",
    ]
    for kind in LAWS:
        some = [row for row in done if row["law"] == kind]
        if not some:
            continue
        names, only = ["nation", *LAWS[kind](0).names], "" if kind == "codes" else ", of the first population alone"
        table = []
        for method, epsilon in sorted({(row.get("method", "error"), row["epsilon"]) for row in some}):
            these = [row for row in some if (row.get("method", "error"), row["epsilon"]) == (method, epsilon)]
            fit, tree = (np.mean([row[label] for row in these], axis=0) for label in ("fit", "tree"))
            table.append(
                [f"{epsilon:g}, {method}", *(f"{a:.3g} ({a / b:.2f})" for a, b in zip(fit, tree, strict=True))]
            )
            covered = [row["coverage"] for row in these if "coverage" in row]
            if covered:
                error = np.std(covered, axis=0) / max(len(covered) - 1, 1) ** 0.5
                ends = [f"{c:.3f} ± {e:.3f}" for c, e in zip(np.mean(covered, axis=0), error, strict=True)]
                if len(covered) == 1:
                    ends = [f"{c:.3f}" for c in covered[0]]
                table.append([f"{epsilon:g}, coverage", *ends, ""])
        lines += [
            "",
            f"## {kind.capitalize()}",
            "",
            f"{len(SEEDS[kind])} populations; {DRAWS[kind]} draws of each posterior{only}.",
            "",
            markdown_table(["epsilon", *names, f"total of a {names[-1]}"], table),
        ]
    for row in done:
        if row["law"] == "size":
            lines += [
                "",
                "## Size",
                "",
                f"20,000 tracts with 80 cells at epsilon 1: {row['seconds']:.0f} processor seconds for the",
                f"fit, at most {row['gib']:.1f} GiB with population and records. Errors over least squares:",
            ]
            lines += [" ".join(f"{a / b:.2f}" for a, b in zip(row["fit"], row["tree"], strict=True)) + "."]
    return "\n".join(lines) + "\n"


def _options(options: Row) -> str:
    return ", ".join(f"`{name}={value}`" for name, value in options.items())


if __name__ == "__main__":
    main()
