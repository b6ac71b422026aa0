"""Chains of first and second order, and the private test between them: page visits, and made-up chains.

::

    python -m benchmarks.chain_order --out benchmarks/results      # five minutes of one core
    python -m benchmarks.chain_order --part made-up                # one part: printed, without a page

MSNBC's users as in :mod:`benchmarks.mobility`, a quarter held out, on splits that no default was chosen on. Made-up
chains say how often the test takes a first-order chain for one of second order, and from when on it finds one. Records
are public or made here, so the noise is seeded.
"""

from __future__ import annotations

import argparse
import shlex
import sys
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.machine import describe_machine, single_thread

if __name__ == "__main__":
    single_thread()  # before numpy is imported

import numpy as np
import pandas as pd

from benchmarks.mobility import read_msnbc
from benchmarks.report import markdown_table
from pgmpy_dp.estimators import PrivateMarkovChain
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.noise.samplers import ReproducibleNoiseWarning
from pgmpy_dp.schema import Schema
from pgmpy_dp.sequences.chain_model import MarkovChain
from pgmpy_dp.sequences.operators.sequences import PrivateSequences, read_sequences

__all__ = ["departures", "made_up", "on_visits", "trigram_error"]

ORDERS = (1, 2, "auto")
EPSILONS = (0.03, 0.1, 0.3, 1.0, 3.0)
SETTINGS = (
    # states, users, share of the second order in the next state's probabilities
    *((k, n, 0.0) for k, n in ((3, 2000), (3, 20_000), (10, 2000), (10, 20_000), (25, 5000))),
    *((3, 20_000, 0.1), (3, 20_000, 0.3), (10, 20_000, 0.3), (25, 20_000, 0.8)),
)
_LONGEST = 40


def made_up(states: int, users: int, second: float, rng: np.random.Generator) -> list[np.ndarray]:
    """Sequences of 7 states on average, of a chain that depends on the state before the last by a share `second`."""
    first = 0.5 * np.eye(states) + 0.5 * rng.dirichlet(np.full(states, 0.3), size=states)
    other = rng.dirichlet(np.full(states, 0.2), size=(states, states))
    next_state = (1 - second) * first[None] + second * other
    with np.errstate(divide="ignore"):
        chain = MarkovChain(np.log(rng.dirichlet(np.ones(states))), np.log(first), np.log(next_state))
    lengths = np.minimum(1 + rng.geometric(1 / 6, size=users), _LONGEST)
    return [row[:length] for row, length in zip(chain.sample(users, _LONGEST, rng), lengths, strict=True)]


def departures(seeds: int) -> Iterator[list[str]]:
    """Rows: of how many chains the test says second order, by epsilon."""
    for states, users, second in SETTINGS:
        said = []
        for epsilon in EPSILONS:
            found = 0
            for seed in range(seeds):
                sequences = made_up(states, users, second, np.random.default_rng([777, seed, states, users]))
                data = pd.DataFrame({"user": range(users), "sequence": [x.tolist() for x in sequences]})
                chain = PrivateMarkovChain(
                    epsilon, state_names={"x": list(range(states))}, chain_order="auto", random_state=seed
                )
                found += chain.fit(data).order_ == 2
            said.append(f"{found} of {seeds}")
        yield [str(states), f"{users:,}", f"{second:g}", *said]


def trigram_error(chain: MarkovChain, sequences: Sequence[np.ndarray], rng: np.random.Generator) -> float:
    """Total variation between the triples of sequences and those of as many drawn ones of the same lengths."""
    k = chain.n_states
    lengths = np.array([min(len(x), _LONGEST) for x in sequences])
    drawn = chain.sample(len(lengths), _LONGEST, rng)

    def table(rows: Sequence[np.ndarray]) -> np.ndarray:
        cells = [((x[:-2] * k + x[1:-1]) * k + x[2:]) for x in rows if len(x) > 2]
        counts = np.bincount(np.concatenate(cells), minlength=k**3)
        return counts / counts.sum()

    ours = table([row[:n] for row, n in zip(drawn, lengths, strict=True)])
    return 0.5 * float(np.abs(ours - table([x[:_LONGEST].astype(np.int64) for x in sequences])).sum())


def on_visits(splits: int) -> pd.DataFrame:
    """Held-out log-likelihood per visit, per user, and errors of triples, a row for each fit."""
    frame, schema = read_msnbc()
    rows = []
    for split in range(splits):
        rng = np.random.default_rng([20261122, split])
        held_out = rng.random(len(frame)) < 0.25
        test = _sequences(frame[held_out], schema)
        lengths = np.array([len(x) for x in test])
        users = PrivateSequences(frame[~held_out], schema, ledger=Budget(epsilon=1e6))
        for epsilon in EPSILONS:
            for order in ORDERS:
                chain = PrivateMarkovChain(epsilon, chain_order=order, random_state=split).fit(users)
                log_p = chain.chain_.log_probability(test)
                rows.append(
                    {
                        "split": split,
                        "epsilon": epsilon,
                        "order": order,
                        "second": chain.order_ == 2,
                        "visit": log_p.sum() / lengths.sum(),
                        "user": (log_p / lengths).mean(),
                        "triples": trigram_error(chain.chain_, test, rng),
                    }
                )
    return pd.DataFrame(rows)


def _sequences(frame: pd.DataFrame, schema: Schema) -> list[np.ndarray]:
    _, lengths, codes = read_sequences(frame, schema, unit="user")
    return np.split(codes, np.cumsum(lengths)[:-1])


def _grid(rows: pd.DataFrame, score: str) -> str:
    body = []
    for order, of_order in rows.groupby("order", sort=False):
        by = of_order.groupby("epsilon")[score]
        body.append([str(order), *(f"{m:.4f} ({s:.4f})" for m, s in zip(by.mean(), by.std(), strict=True))])
    return markdown_table(["order", *(f"{e:g}" for e in sorted(rows["epsilon"].unique()))], body)


def visits(splits: int, _: int) -> str:
    """The part on MSNBC."""
    rows = on_visits(splits)
    auto = rows[rows["order"] == "auto"].groupby("epsilon")["second"].sum()
    picked = ", ".join(f"{int(n)} at {e:g}" for e, n in auto.items())
    return "\n\n".join(
        [
            f"50,000 users of msnbc.com, a quarter held out, {splits} splits; pure epsilon, add_remove, by shares; "
            'method "map". Means, in brackets standard deviations over splits. "auto" took the second order on so many '
            f"splits of {splits}: {picked}.",
            "## Log-likelihood per visit",
            _grid(rows, "visit"),
            "## Log-likelihood per visit, averaged over users",
            _grid(rows, "user"),
            "## Total variation of the triples of drawn sequences from the held-out ones",
            _grid(rows, "triples"),
        ]
    )


def made_up_part(_: int, seeds: int) -> str:
    """The part on made-up chains."""
    return "\n\n".join(
        [
            "## Made-up chains: how often the test says second order",
            "The next state is drawn by the last one alone, or, with the probability in the third column, by the last "
            "two. Where it is 0 every answer of second order is a false alarm.",
            markdown_table(["states", "users", "second", *(f"{e:g}" for e in EPSILONS)], list(departures(seeds))),
        ]
    )


PARTS = {"visits": visits, "made-up": made_up_part}


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line; see ``--help``."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.chain_order", description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="build/benchmarks", help="folder of the results (default: %(default)s)")
    parser.add_argument("--splits", type=int, default=3, help="of the users of MSNBC (default: %(default)s)")
    parser.add_argument("--seeds", type=int, default=10, help="made-up chains of each setting (default: %(default)s)")
    parser.add_argument("--part", choices=tuple(PARTS), help="print one part, without writing the page")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore", ReproducibleNoiseWarning)
    if options.part:
        print(PARTS[options.part](options.splits, options.seeds))
        return
    command = shlex.join(
        ["python", "-m", "benchmarks.chain_order", *(sys.argv[1:] if arguments is None else arguments)]
    )
    parts = [part(options.splits, options.seeds) for part in PARTS.values()]
    out = Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    head = f"# The order of a chain\n\nMade by `{command}` on {describe_machine()}, one thread."
    (out / "chain-order.md").write_text("\n\n".join([head, *parts]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
