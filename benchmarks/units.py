"""What protecting persons with all their rows costs in accuracy: at most m rows of each, drawn, or rows by shares.

::

    python -m benchmarks.units --out benchmarks/results

Error: total variation between the one- and two-way tables of the model that `learn` makes and two sorts of tables of
the records: those of all rows, and those in which each person counts 1 in all. Mean over tables, then over draws of
noise and rows, in brackets the standard deviation over draws; budgets are (epsilon, 1e-6)-DP under add_remove. The
first choice protects single rows, and no person: it is what there was before. "No noise" has the same choices without
noise: what is left is what they do to the tables.

Data: hospital stays (Diabetes 130-US, not shipped: 4,999 rows of 4,259 patients, 3,753 of them with one, up to 9), 13
columns, one of them of 374 codes; and visits of the first 10,000 msnbc.com users (45,931 rows, half of the users with
one or two). States are read off the records here, which are public; so the noise is seeded.
"""

from __future__ import annotations

import argparse
import itertools
import shlex
import sys
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.machine import describe_machine, single_thread

if __name__ == "__main__":
    single_thread()  # before numpy is imported

import numpy as np
import pandas as pd
from pgmpy import config

from benchmarks.data import find
from benchmarks.mobility import read_msnbc
from benchmarks.report import markdown_table
from pgmpy_dp import Budget, PrivateTable
from pgmpy_dp.estimators import PrivateNetwork
from pgmpy_dp.private.data.contributions import GRID
from pgmpy_dp.private.data.units import fixed_key
from pgmpy_dp.private.noise.samplers import ReproducibleNoiseWarning

CHOICES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("single rows protected", {}),
    ("m = 1", {"unit": "person", "rows_per_unit": 1}),
    ("m = 2", {"unit": "person", "rows_per_unit": 2}),
    ("m = 4", {"unit": "person", "rows_per_unit": 4}),
    ("m = 16", {"unit": "person", "rows_per_unit": 16}),
    ("shares", {"unit": "person", "rows_per_unit": "shares"}),
)
EPSILONS = (0.5, 2.0)
DELTA = 1e-6
STAYS = (
    *("race", "gender", "age", "admission_type_id", "discharge_disposition_id", "admission_source_id"),
    *("time_in_hospital", "num_procedures", "number_diagnoses", "number_inpatient", "insulin", "readmitted", "diag_1"),
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line; see ``--help``."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.units", description=__doc__.split("\n")[0])
    parser.add_argument("--out", default="benchmarks/results", help="folder of the results (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=20261122, help="default: %(default)s")
    parser.add_argument("--draws", type=int, default=5, help="of rows and noise (default: %(default)s)")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore", ReproducibleNoiseWarning)
    config.set_show_progress(False)
    rows = [
        {"data": name, "choice": choice, "epsilon": epsilon, "draw": draw, **found}
        for name, frame in data_sets()
        for (choice, whose), epsilon, draw in itertools.product(CHOICES, (None, *EPSILONS), range(options.draws))
        for found in [errors(frame, whose, epsilon, [options.seed, draw])]
    ]
    out = Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    command = shlex.join(["python", "-m", "benchmarks.units", *(arguments or sys.argv[1:])])
    (out / "units.md").write_text(report(pd.DataFrame(rows), command))
    print(f"wrote {out / 'units.md'}")


def data_sets() -> Iterator[tuple[str, pd.DataFrame]]:
    """Records with a column "person"; those that are absent are left out."""
    try:
        path = find("diabetes_130_5k.csv.gz") / "diabetes_130_5k.csv.gz"
    except FileNotFoundError as missing:
        print(missing)
    else:
        stays = pd.read_csv(path, dtype=str, keep_default_na=False)
        yield "hospital stays", stays[list(STAYS)].assign(person=stays["patient_nbr"])
    yield "visits", visits()


def visits() -> pd.DataFrame:
    """A row for each visit of a user: the page, the page before it, and how many visits came before it."""
    users, _ = read_msnbc()
    users = users.iloc[:10_000]
    pages = users["sequence"].astype(str).str.split()
    frame = pd.DataFrame({"person": users["user"], "page": pages}).explode("page", ignore_index=True)
    place = frame.groupby("person").cumcount()
    frame["before"] = frame.groupby("person")["page"].shift().fillna("none")
    frame["place"] = pd.cut(place, [-1, 0, 1, 3, 7, 15, np.inf], labels=["1", "2", "3-4", "5-8", "9-16", "17-"]).astype(
        str
    )
    return frame


def errors(frame: pd.DataFrame, whose: dict[str, Any], epsilon: float | None, seed: list[int]) -> dict[str, float]:
    """Total variation of one- and two-way tables, against those of all rows and of persons."""
    names = [name for name in frame if name != "person"]
    codes = np.column_stack([pd.factorize(frame[name], sort=True)[0] for name in names])
    states = {name: sorted(frame[name].unique()) for name in names}
    sizes = [len(part) for part in states.values()]
    scopes = [scope for k in (1, 2) for scope in itertools.combinations(range(len(names)), k)]
    share = 1.0 / frame.groupby("person")["person"].transform("size").to_numpy()
    draw = int(np.random.default_rng(seed).integers(2**31))
    with fixed_key(draw.to_bytes(8, "little")):
        table = PrivateTable(frame, states, ledger=Budget(epsilon=epsilon or 1.0, delta=DELTA), **whose)
        if epsilon is None:
            tables = [count / count.sum() for count in _exact(table, scopes)]
        else:
            options = {"epsilon": epsilon, "delta": DELTA, "random_state": draw}
            model = PrivateNetwork(**options).fit(table).model_.to_log_linear()
            tables = model.marginals_of([tuple(names[j] for j in scope) for scope in scopes])
    found: dict[str, float] = {}
    for target, weights in (("rows", np.ones(len(codes))), ("persons", share)):
        far = [
            0.5 * np.abs(np.asarray(got) - _weighted(codes, weights, scope, sizes)).sum()
            for got, scope in zip(tables, scopes, strict=True)
        ]
        for k in (1, 2):
            found[f"{target}, {k}-way"] = float(np.mean([f for f, s in zip(far, scopes, strict=True) if len(s) == k]))
    return found


def _weighted(codes: np.ndarray, weights: np.ndarray, scope: tuple[int, ...], sizes: list[int]) -> np.ndarray:
    shape = tuple(sizes[j] for j in scope)
    index = np.ravel_multi_index(tuple(codes[:, j] for j in scope), shape)
    counts = np.bincount(index, weights, minlength=int(np.prod(shape))).reshape(shape)
    return counts / counts.sum()


def _exact(table: PrivateTable, scopes: list[tuple[int, ...]]) -> list[np.ndarray]:
    """The exact tables, of public records."""
    records: Any = table._records
    if not isinstance(records, np.ndarray):
        return [np.asarray(count, dtype=float) / GRID for count in records.counts(scopes)]
    sizes = list(table.schema.cardinalities.values())
    return [_weighted(records, np.ones(len(records)), scope, sizes) for scope in scopes]


def report(rows: pd.DataFrame, command: str) -> str:
    """Markdown."""
    columns = [name for name in rows if name not in ("data", "choice", "epsilon", "draw")]
    parts = [f"# Persons with several rows\n\n{__doc__.split('::')[0].strip()}\n\n`{command}`\n\n{describe_machine()}"]
    parts.append("\n\n".join(__doc__.split("benchmarks/results\n")[1].strip().split("\n\n")))
    for (name, epsilon), part in rows.groupby(["data", "epsilon"], sort=False, dropna=False):
        body = []
        for choice, group in part.groupby("choice", sort=False):
            cells = [f"{group[c].mean():.4f} ({group[c].std(ddof=1):.4f})" for c in columns]
            body.append([str(choice), *cells])
        kind = "no noise" if pd.isna(epsilon) else f"epsilon = {epsilon:g}"
        parts.append(f"## {name}, {kind}\n\n" + markdown_table(["choice", *columns], body))
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    main()
