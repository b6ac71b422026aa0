"""Mobility: chains learned from page visits of MSNBC users under user-level privacy, by hold-out log-likelihood.

::

    python -m benchmarks.mobility --out benchmarks/results

The paper's section 4.2 on public data: its wifi traces are not published. 50,000 users of msnbc.com on one day, 17
page categories, 1 to 2,001 visits each. For each split a quarter of the users is held out. From the others one table
of first pages and one of transitions is released per epsilon, each user counted as a share of 1 in both, and every
method learns a time-homogeneous first-order chain from the same two noisy tables. The records are public, so the
noise is seeded.

A method that reads records and not tables goes into `FROM_RECORDS`. It has no pure guarantee and gets (epsilon, delta =
1/number of training users). So that it can be compared at equal privacy, some methods also learn from tables with
Gaussian noise of that budget (`BOTH_NOISES`). Private gradient descent was one, up to version 0.3.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import shlex
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

if __name__ == "__main__":  # before numpy is imported
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import numpy as np
import pandas as pd

from benchmarks.data import find
from benchmarks.folders import raw_folder
from pgmpy_dp.estimators import PrivateMarkovChain
from pgmpy_dp.learning.expectation_maximisation import collective_em
from pgmpy_dp.learning.maximum_likelihood import naive_mle
from pgmpy_dp.learning.noisy_marginals import NoisyMarginals
from pgmpy_dp.learning.options import settings_of
from pgmpy_dp.private import accounting
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.noise.samplers import ReproducibleNoiseWarning
from pgmpy_dp.private.sensitive import Release
from pgmpy_dp.schema import Schema
from pgmpy_dp.sequences.chain_counts import run
from pgmpy_dp.sequences.chain_model import (
    MarkovChain,
    fit_chain,
    map_chain,
    noisy_chain_tables,
    segment_units,
)
from pgmpy_dp.sequences.operators.sequences import PrivateSequences, read_sequences
from pgmpy_dp.tables.collective.published.published_em import published_em

EPSILONS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
_PSEUDOCOUNT = 0.01

Tables = tuple[NoisyMarginals, NoisyMarginals]


def chain_maximum_likelihood(initial: object, transition: object, pseudocount: float = 0.0) -> MarkovChain:
    """Maximum likelihood from exact tables (not private by itself): the proportions, row by row.

    Parameters
    ----------
    initial : array of shape (K,)
    transition : array of shape (K, K)
        Counts or weights, not negative.
    pseudocount : float
        Added to every cell; a positive one keeps transitions that were not seen possible. Rows without any
        transition are uniform.

    Returns
    -------
    MarkovChain
    """
    first, pairs = np.asarray(initial, dtype=np.float64), np.asarray(transition, dtype=np.float64)
    if min(first.min(initial=0), pairs.min(initial=0), pseudocount) < 0:
        raise ValueError("initial, transition and pseudocount must not be negative")
    return MarkovChain(_log_proportions(first[None] + pseudocount)[0], _log_proportions(pairs + pseudocount))


def _log_proportions(rows: np.ndarray) -> np.ndarray:
    rows = np.where(rows.sum(axis=1, keepdims=True) > 0, rows, 1.0)
    with np.errstate(divide="ignore"):
        return np.log(rows / rows.sum(axis=1, keepdims=True))


FROM_TABLES: dict[str, Callable[[Tables], MarkovChain]] = {
    "CollectiveMAP": lambda tables: map_chain(*tables).chain,
    "CollectiveMAP, stay=False": lambda tables: map_chain(*tables, stay=False).chain,
    "CollectiveEM": lambda tables: fit_chain(*tables, collective_em).chain,
    "CollectiveEM, as published (exact steps)": lambda tables: fit_chain(*tables, published_em).chain,
    "CollectiveEM, as published (NLBP)": lambda tables: fit_chain(*tables, partial(published_em, e_step="nlbp")).chain,
    "NaiveMLE": lambda tables: fit_chain(*tables, naive_mle).chain,
    "NaiveMLE, lambda = 1e-3": lambda tables: fit_chain(*tables, partial(naive_mle, l2=1e-3)).chain,
}
"""Methods that learn from the release."""

BOTH_NOISES = {f"{method}, Gaussian": method for method in ("CollectiveMAP", "CollectiveMAP, stay=False", "NaiveMLE")}
"""Rows of methods that also learn from tables with Gaussian noise, under (epsilon, delta)."""


FROM_RECORDS: dict[str, Callable[[PrivateSequences, Budget, int], MarkovChain]] = {}
"""Methods that read the training sequences themselves: (sequences, (epsilon, delta), seed) -> chain."""

RULES = {
    "shares": {},
    "1 segment of 6": {"segment_length": 6, "max_segments": 1},
    "2 segments of 6": {"segment_length": 6, "max_segments": 2},
}
"""How users are bounded; the main table is for the first."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line; see ``--help``."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mobility", description="Hold-out likelihood on MSNBC.")
    parser.add_argument("--out", default="benchmarks/results", help="folder of the results (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=20261121, help="default: %(default)s")
    parser.add_argument("--splits", type=int, default=5, help="splits, each with its own noise (default: %(default)s)")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore", ReproducibleNoiseWarning)
    start, cpu = time.perf_counter(), time.process_time()
    rows = [row for split in range(options.splits) for row in run_split(options.seed, split)]
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    out = Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    command = shlex.join(["python", "-m", "benchmarks.mobility", *(sys.argv[1:] if arguments is None else arguments)])
    (raw_folder(out) / "mobility.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (out / "mobility.md").write_text(report(pd.DataFrame(rows), command, seconds, cpu))
    print(f"{len(rows)} fits in {seconds:.0f} s: {out / 'mobility.md'}")


def read_msnbc() -> tuple[pd.DataFrame, Schema]:
    """The users and the public schema that goes with them."""
    folder = find("msnbc_50k.csv.gz", "msnbc.domain.json")
    with gzip.open(folder / "msnbc_50k.csv.gz", "rt") as stream:
        frame = pd.read_csv(stream)
    return frame, Schema.from_dict(json.loads((folder / "msnbc.domain.json").read_text()))


def run_split(seed: int, split: int) -> list[dict]:
    """All methods on one split of the users."""
    frame, schema = read_msnbc()
    held_out = np.random.default_rng([seed, split]).random(len(frame)) < 0.25
    _, lengths, codes = read_sequences(frame[held_out], schema, unit="user")
    test = np.split(codes, np.cumsum(lengths)[:-1])
    _, train_lengths, train_codes = read_sequences(frame[~held_out], schema, unit="user")
    train = np.split(train_codes, np.cumsum(train_lengths)[:-1])
    k = schema.cardinality(schema.variables[0])
    rows: list[dict] = []

    def add(method: str, rule: str, epsilon: float, learn: Callable[[], MarkovChain], before: float = 0.0) -> None:
        start = time.process_time()
        chain = learn()
        seconds = time.process_time() - start
        log_p = chain.log_probability(test)
        scores = {"per_visit": log_p.sum() / lengths.sum(), "per_user": (log_p / lengths).mean()}
        known = {"split": split, "method": method, "rule": rule, "epsilon": epsilon, "seconds": seconds}
        known["whole"] = before + seconds
        rows.append(known | {name: float(value) for name, value in scores.items()})

    uniform = MarkovChain(np.full(k, -np.log(k)), np.full((k, k), -np.log(k)))
    add("uniform", "-", 0.0, lambda: uniform)
    add("non-private, visits", "-", np.inf, lambda: chain_maximum_likelihood(*counts(train, k), _PSEUDOCOUNT))
    add("non-private, shares", "-", np.inf, lambda: chain_maximum_likelihood(*shares(train, k), _PSEUDOCOUNT))
    for rule, bounds in RULES.items():
        for number, epsilon in enumerate(EPSILONS):
            data = PrivateSequences(frame[~held_out], schema, ledger=Budget(epsilon=epsilon))
            noise_seed = int(np.random.default_rng([seed, split, number]).integers(1 << 31))
            chosen = settings_of(PrivateMarkovChain(random_state=noise_seed, **bounds))
            start = time.process_time()
            release = run(data, chosen, Budget(epsilon=epsilon))
            before = time.process_time() - start
            for method, learn in FROM_TABLES.items():
                add(method, rule, epsilon, lambda f=learn, r=release: f(tables_of(r)), before)
    # The number of training users is public, as it is for the delta.
    users = int((~held_out).sum())
    for number, epsilon in enumerate(EPSILONS):
        budget = Budget(epsilon=epsilon, delta=1.0 / users)
        noise_seed = seed + 100 * split + number
        data = PrivateSequences(frame[~held_out], schema, ledger=budget, n_users=users)
        # The search for the scale of the noise is done once per budget and then remembered: not timed.
        chosen = settings_of(PrivateMarkovChain(noise="gaussian", random_state=noise_seed))
        accounting.approx_to_zcdp(epsilon, budget.delta)
        start = time.process_time()
        release = run(data, chosen, budget)
        before = time.process_time() - start
        for method, same in BOTH_NOISES.items():
            add(method, "-", epsilon, lambda f=FROM_TABLES[same], r=release: f(tables_of(r)), before)
        for method, learn_records in FROM_RECORDS.items():
            data = PrivateSequences(frame[~held_out], schema, ledger=budget, n_users=users)
            learn_records(PrivateSequences(frame[:1], schema, ledger=budget, n_users=users), budget, noise_seed)
            add(method, "-", epsilon, lambda f=learn_records, d=data, b=budget, s=noise_seed: f(d, b, s))
    return rows


def tables_of(release: Release) -> Tables:
    """The two tables of a release as the learning functions take them."""
    noise = "laplace" if release.mechanism == "discrete_laplace" else "gaussian"
    scales = [each.scale for each in release.noise]
    units = release.public["units"]
    if release.public["settings"]["max_segments"] is not None:
        units = segment_units(*release.values, longest=units[1] / units[0])
    return noisy_chain_tables(*release.values, noise=noise, scales=scales, units=units)


def counts(sequences: Sequence[np.ndarray], k: int) -> tuple[np.ndarray, np.ndarray]:
    """First states and transitions of all sequences, every visit alike."""
    initial, transition = np.zeros(k), np.zeros((k, k))
    for x in sequences:
        initial[x[0]] += 1
        np.add.at(transition, (x[:-1], x[1:]), 1)
    return initial, transition


def shares(sequences: Sequence[np.ndarray], k: int) -> tuple[np.ndarray, np.ndarray]:
    """First states and transitions, every user alike: a transition of a user of n + 1 visits counts 1/n."""
    initial, transition = np.zeros(k), np.zeros((k, k))
    for x in sequences:
        initial[x[0]] += 1
        np.add.at(transition, (x[:-1], x[1:]), 1 / max(len(x) - 1, 1))
    return initial, transition


def report(rows: pd.DataFrame, command: str, seconds: float, cpu: float) -> str:
    """The Markdown report."""
    tables = list(FROM_TABLES)
    approximate = [*BOTH_NOISES, *FROM_RECORDS]
    main_rows = rows[rows["rule"].isin(["shares", "-"])]
    parts = [
        "# Mobility: chains from users' page visits",
        f"Made by `{command}` in {seconds:.0f} s on one thread, {cpu:.0f} s of processor "
        f"time; {rows['split'].nunique()} splits, each with its own noise.",
        "50,000 users of msnbc.com (UCI), 17 states, a quarter of them held out. One noisy table of first pages and "
        "one of transitions, epsilon-DP for *all visits of a user* under add_remove (discrete Laplace); every method "
        "gets the same two tables. Mean hold-out log-likelihood in nats, the larger the better; in brackets the "
        "standard deviation over splits. Users differ in length, so it is averaged in two ways.",
        'The rows "Gaussian" learn from tables with discrete Gaussian noise of (epsilon, delta), by zCDP, with delta = '
        "1/number of training users. A pure guarantee implies the other, and for these tables Laplace noise is the "
        "smaller one, so the first rows are what tables give at either guarantee and the Gaussian rows show what the "
        "kind of noise costs.",
        "## Per visit: log p of all held-out sequences over their visits\n\n"
        + _grid(main_rows, "per_visit", tables, approximate),
        "## Per user: each user's log p over its visits, averaged over users\n\n"
        + _grid(main_rows, "per_user", tables, approximate),
        "## How users are bounded: CollectiveMAP, per visit\n\n"
        "By shares a user adds 1 in all to each table; by segments at most 1 or 2 segments of 6 visits, chosen at "
        "random per user, in full (noise 5 or 10 times as large in pairs).\n\n" + _rules(rows),
        "## Over NaiveMLE\n\nWhat a method loses per visit against the non-private chain of shares, over what NaiveMLE "
        "loses: geometric mean over splits; the worst epsilon first.\n\n" + _over_naive(main_rows),
        "## In which order\n\n" + _order(main_rows),
        "CollectiveMAP's base model of staying was written, and its entropy term left out, after first runs "
        "on these data; `stay=False` is the fit without the former. Both use the release alone, but the gain "
        "of the base model here is that of a prior that suits the data: most visits keep their category. "
        "Nothing else was chosen on these data.",
        "## Seconds a fit, and ratio to NaiveMLE\n\n"
        "Processor time, from the users' sequences, as numbers, to the chain: for methods on tables, the release and "
        "learning from it, in brackets the latter alone. With seeded noise, and without "
        "the search for the scale of Gaussian noise, which is remembered per budget.\n\n"
        + _seconds(main_rows, [*tables, *approximate]),
    ]
    return "\n\n".join(parts) + "\n"


def _table(head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, ["---"] * len(head), *body))


def _grid(rows: pd.DataFrame, score: str, pure: Sequence[str], approximate: Sequence[str]) -> str:
    cell = rows.groupby(["method", "epsilon"])[score].agg(["mean", "std"])
    body = [
        [m, guarantee, *(f"{cell.loc[(m, e), 'mean']:.4f} ({cell.loc[(m, e), 'std']:.4f})" for e in EPSILONS)]
        for guarantee, methods in (("epsilon", pure), ("epsilon, delta", approximate))
        for m in methods
    ]
    for method, epsilon in (("non-private, visits", np.inf), ("non-private, shares", np.inf), ("uniform", 0.0)):
        body.append([method, "", f"{cell.loc[(method, epsilon), 'mean']:.4f}", *[""] * (len(EPSILONS) - 1)])
    return _table(["epsilon", "guarantee", *(f"{e:g}" for e in EPSILONS)], body)


def _rules(rows: pd.DataFrame) -> str:
    cell = rows[rows["method"] == "CollectiveMAP"].groupby(["rule", "epsilon"])["per_visit"].mean()
    body = [[rule, *(f"{cell.loc[(rule, e)]:.4f}" for e in EPSILONS)] for rule in RULES]
    return _table(["epsilon", *(f"{e:g}" for e in EPSILONS)], body)


def _over_naive(rows: pd.DataFrame) -> str:
    wide = rows.pivot_table(index=["split", "epsilon"], columns="method", values="per_visit")
    best = rows[rows["method"] == "non-private, shares"].set_index("split")["per_visit"]
    losses = -wide.sub(wide.index.get_level_values("split").map(best), axis=0)
    methods = ("CollectiveEM", "CollectiveEM, as published (exact steps)", "CollectiveMAP, stay=False", "CollectiveMAP")
    ratios = {method: (losses[method] / losses["NaiveMLE"]).dropna() for method in methods}
    means = {method: np.exp(np.log(ratio).groupby("epsilon").mean()) for method, ratio in ratios.items()}
    order = means["CollectiveEM"].loc[list(EPSILONS)].sort_values(ascending=False).index
    body = [
        [
            method,
            f"{np.exp(np.log(ratios[method]).mean()):.3f}",
            f"{(ratios[method] < 1).sum()} of {len(ratios[method])}",
        ]
        + [f"{mean.loc[e]:.3f}" for e in order]
        for method, mean in means.items()
    ]
    return _table(["", "all", "below 1", *(f"epsilon = {e:g}" for e in order)], body)


def _order(rows: pd.DataFrame) -> str:
    """On how many splits one method is above another, per epsilon."""
    wide = rows.pivot_table(index=["split", "epsilon"], columns="method", values="per_visit")
    pairs = [
        ("CollectiveMAP", "CollectiveEM"),
        ("CollectiveMAP", "NaiveMLE"),
        ("CollectiveMAP, stay=False", "NaiveMLE"),
        ("CollectiveMAP, stay=False", "CollectiveEM"),
        ("CollectiveEM", "NaiveMLE"),
        ("CollectiveEM, as published (exact steps)", "NaiveMLE"),
        *((table, method) for method in FROM_RECORDS for table in (*BOTH_NOISES, "CollectiveMAP", "NaiveMLE")),
    ]
    body = []
    for better, worse in pairs:
        above = (wide[better] > wide[worse]).groupby("epsilon").agg(["sum", "count"])
        cells = [f"{above.loc[e, 'sum']} of {above.loc[e, 'count']}" for e in EPSILONS]
        body.append([f"{better} above {worse}", *cells])
    return _table(["splits, at epsilon", *(f"{e:g}" for e in EPSILONS)], body)


def _seconds(rows: pd.DataFrame, methods: Sequence[str]) -> str:
    alone, whole = (rows.groupby("method")[column].median() for column in ("seconds", "whole"))

    def line(name: str) -> list[str]:
        less = name not in FROM_RECORDS
        seconds = f"{whole[name]:.3f} ({alone[name]:.3f})" if less else f"{whole[name]:.3f}"
        ratio = f"{whole[name] / whole['NaiveMLE']:.1f}"
        return [name, seconds, f"{ratio} ({alone[name] / alone['NaiveMLE']:.1f})" if less else ratio]

    return _table(["method", "seconds", "ratio"], [line(name) for name in methods])


if __name__ == "__main__":
    main()
