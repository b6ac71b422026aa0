"""Stratified and independent synthetic records of Adult: how far they are from the records and from the model.

::

    python -m benchmarks.synthetic_records --out benchmarks/results

For each seed `learn` has nine tenths of the records and epsilon 1, delta 1e-9. Scores: total variation distance, mean
over all 78 pairs of variables and over 60 triples, to the learning records and to the model. The records are public
(UCI Adult), so the noise is seeded.
"""

from __future__ import annotations

import argparse
import itertools
import shlex
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

from benchmarks.machine import describe_machine, single_thread

if __name__ == "__main__":
    single_thread()  # before numpy is imported

import numpy as np
import pandas as pd

from benchmarks.adult import load_adult
from benchmarks.report import markdown_table
from pgmpy_dp.estimators import PrivateNetwork
from pgmpy_dp.private.noise.samplers import ReproducibleNoiseWarning

METHODS = ("independent", "stratified")
SIZES = (1000, 5000, 43957)


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line; see ``--help``."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.synthetic_records", description=__doc__.split("\n")[0])
    parser.add_argument("--out", default="benchmarks/results", help="folder of the results (default: %(default)s)")
    parser.add_argument("--seeds", type=int, nargs="+", default=[201, 202, 203, 204, 205])
    parser.add_argument("--sets", type=int, default=4, help="synthetic sets of each model (default: %(default)s)")
    options = parser.parse_args(arguments)
    rows = pd.DataFrame([row for seed in options.seeds for row in _scores(seed, options.sets)])
    scores = rows.groupby(["records", "method"], sort=False).mean()
    lines = [[f"{n:,}" if n else "the model itself", m, *(f"{x:.4f}" for x in v)] for (n, m), v in
             zip(scores.index, scores.to_numpy(), strict=True)]  # fmt: skip
    command = shlex.join(["python", "-m", "benchmarks.synthetic_records", *(arguments or sys.argv[1:])])
    header = ["Synthetic records", "method", "pairs, to records", "triples, to records", "pairs, to model"]
    out = Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    (out / "synthetic-records.md").write_text(
        f"# Stratified and independent synthetic records\n\n    {command}\n\n{__doc__.split('::')[0].strip()} "
        f"Mean total variation, {len(options.seeds)} seeds, {options.sets} sets each. {describe_machine()}\n\n"
        + markdown_table(header, lines) + "\n"
    )  # fmt: skip
    print(scores.round(4).to_string())


def _scores(seed: int, sets: int) -> list[dict]:
    cliques, codes = load_adult()
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(codes[rng.permutation(len(codes))[: SIZES[-1]]], columns=list(cliques.variables))
    states = {name: list(range(k)) for name, k in zip(cliques.variables, cliques.cardinalities, strict=True)}
    triples = list(itertools.combinations(cliques.variables, 3))
    scopes = [*itertools.combinations(cliques.variables, 2)]
    n_pairs = len(scopes)
    scopes += [triples[i] for i in rng.choice(len(triples), 60, replace=False)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReproducibleNoiseWarning)
        network = PrivateNetwork(1.0, 1e-9, state_names=states, random_state=seed).fit(frame).model_
    fitted = network.to_log_linear().marginals_of(scopes)

    def tables(records: pd.DataFrame) -> list[np.ndarray]:
        found = []
        for scope in scopes:
            shape = tuple(len(states[name]) for name in scope)
            cells = np.ravel_multi_index([records[name].to_numpy() for name in scope], shape)
            found.append(np.bincount(cells, minlength=int(np.prod(shape))).reshape(shape) / len(records))
        return found

    truth = tables(frame)

    def row(n: int, method: str, own: list[np.ndarray]) -> dict:
        far = [0.5 * np.abs(a - b).sum() for a, b in zip(own, truth, strict=True)]
        missed = [0.5 * np.abs(a - b).sum() for a, b in zip(own[:n_pairs], fitted, strict=False)]
        means = {"pairs": np.mean(far[:n_pairs]), "triples": np.mean(far[n_pairs:]), "model": np.mean(missed)}
        return {"records": n, "method": method, **means}

    rows = [row(0, "", fitted)]
    for n, method, _ in itertools.product(SIZES, METHODS, range(sets)):
        rows.append(row(n, method, tables(network.sample(n, rng, method=method))))
    return rows


if __name__ == "__main__":
    main()
