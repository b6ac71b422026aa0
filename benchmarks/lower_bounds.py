"""The lower bounds of Zhang et al. (2020) on the models of their proofs: where learners begin to succeed.

::

    python -m benchmarks.lower_bounds --out benchmarks/results

For each setting, n0 is the order of the theorem with constant 1, and learners run on fresh models with n = n0 times
powers of 2 records, from n0/64 until they always succeed. A bound that is a learner's true order has its transition
at a constant multiple of n0. add_remove with a public number of records. Learners are told the width, the smallest
weight and, where it says so, the perfect matching that the edges are among, which the proofs' learners may know too.
Noise comes from seeds: nothing here is private.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import shlex
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.machine import describe_machine, single_thread

if __name__ == "__main__":
    single_thread()  # before numpy is imported

import numpy as np
import pandas as pd
from tqdm import tqdm

from benchmarks.folders import raw_folder
from benchmarks.hard_instances import hard_pairwise, hard_parameters, hard_structure
from benchmarks.report import markdown_table
from pgmpy_dp.estimators import PrivateIsing, PrivatePairwise, StableStructure
from pgmpy_dp.fields.random_fields import Ising, Pairwise
from pgmpy_dp.private.noise.samplers import ReproducibleNoiseWarning
from pgmpy_dp.theory import lower_bounds
from pgmpy_dp.theory.order import Order

__all__ = ["Setting", "decoded", "matched_records", "run", "settings", "transition"]

ALPHA = 0.02
"""Largest error of the parameters: the largest that Theorem 5.1 is about."""
REPEATS = 10
FIRST, LAST = -6, 20  # powers of 2 of n/n0
LARGEST = 365_000  # records: more take too long
Model = Ising | Pairwise


@dataclass(frozen=True)
class Setting:
    """One row: models, a budget and a learner, a bound, and when the learner has succeeded.

    Attributes
    ----------
    group : str
        Rows of a group differ in what `varies` says.
    varies : str
    bound : Order
    p : int
    draw : callable
        A generator to a model.
    succeeds : callable
        (model, records, what all estimators have in common) to whether the learner succeeds.
    budget : dict
    """

    group: str
    varies: str
    bound: Order
    p: int
    draw: Callable[[np.random.Generator], Model]
    succeeds: Callable[[Model, pd.DataFrame, dict[str, Any]], bool]
    budget: dict[str, float] = field(default_factory=dict)


def settings() -> list[Setting]:
    """All rows."""
    delta = 1e-8  # at most 3/(64 n) of Theorem 5.1 for all n here
    rows = [
        _parameters("parameters, (eps, delta), matching known", f"p = {p}, eps = {epsilon}", p, epsilon=epsilon)
        for p, epsilon in [(8, 0.05), (32, 0.05), (128, 0.05), (32, 0.0125), (32, 0.2)]
    ]
    rows = [_with_delta(row, delta) for row in rows]
    rows += [_parameters("parameters, zCDP, matching known", f"p = {p}", p, rho=1e-4) for p in (8, 32, 128)]
    for known, variables in ((True, (8, 32, 128)), (False, (8, 16, 32, 64))):
        name = "matching known" if known else "any graph"
        rows += [_structure(f"structure, zCDP, {name}", f"p = {p}", p, 0.5, known, rho=1e-3) for p in variables]
    rows += [
        _structure("structure, zCDP, matching known", f"p = 32, eta = {eta}", 32, eta, True, rho=1e-3)
        for eta in (0.25, 1.0)
    ]
    rows += [
        _structure("structure, pure, matching known", f"p = {p}, eta = {eta}", p, eta, True, epsilon=0.1)
        for p, eta in [(8, 0.5), (32, 0.5), (128, 0.5), (32, 0.25), (32, 1.0)]
    ]
    rows += [_stable(f"p = {p}", p) for p in (8, 32, 128)]
    for measure, budget in (("zCDP", {"rho": 1e-3}), ("pure", {"epsilon": 0.2})):
        rows += [
            _pairwise(f"tables, {measure}, matching known", f"p = {p}, k = {k}", p, k, **budget)
            for p, k in [(8, 3), (32, 3), (128, 3), (32, 2), (32, 4)]
        ]
    return rows


def _parameters(group: str, varies: str, p: int, **budget: float) -> Setting:
    """Theorem 5.1: all weights to within alpha."""

    def succeeds(model: Model, data: pd.DataFrame, common: dict[str, Any]) -> bool:
        assert isinstance(model, Ising)
        estimator = PrivateIsing(math.log(2), graph=_matching(list(data)), **common).fit(data)
        return bool(np.abs(estimator.weights_ - model.weights).max() <= ALPHA)

    bound = lower_bounds.ising_parameters(p, ALPHA, **budget)
    return Setting(group, varies, bound, p, lambda rng: hard_parameters(p, rng), succeeds, budget)


def _with_delta(row: Setting, delta: float) -> Setting:
    return Setting(**{**vars(row), "budget": {**row.budget, "delta": delta}})


def _structure(group: str, varies: str, p: int, eta: float, known: bool, **budget: float) -> Setting:
    """Theorem 7.1: the exact graph, by a threshold at eta/2."""

    def succeeds(model: Model, data: pd.DataFrame, common: dict[str, Any]) -> bool:
        graph = _matching(list(data)) if known else None
        estimator = PrivateIsing(eta, graph=graph, min_edge_weight=eta, memory_limit=2**22, **common).fit(data)
        return _edges(estimator, data) == set(model.edges())

    bound = lower_bounds.ising_structure(p, eta, **budget)
    return Setting(group, varies, bound, p, lambda rng: hard_structure(p, eta, rng), succeeds, budget)


def _stable(varies: str, p: int) -> Setting:
    """The logarithm of Table 1."""
    eta = 0.5

    def succeeds(model: Model, data: pd.DataFrame, common: dict[str, Any]) -> bool:
        estimator = StableStructure(eta, eta, learner="inverse-covariance", **common).fit(data)
        return estimator.stable_ and _edges(estimator, data) == set(model.edges())

    budget = {"epsilon": 1.0, "delta": 1e-6}
    group = "structure, (eps, delta), any graph"
    return Setting(
        group, varies, lower_bounds.not_private(p), p, lambda rng: hard_structure(p, eta, rng), succeeds, budget
    )


def _pairwise(group: str, varies: str, p: int, k: int, **budget: float) -> Setting:
    """Theorem 7.4: which of the models of the proof it is, for that is what the proof shows (see `theory`)."""
    eta = 1.0

    def succeeds(model: Model, data: pd.DataFrame, common: dict[str, Any]) -> bool:
        assert isinstance(model, Pairwise)
        estimator = PrivatePairwise(2 * eta, graph=_matching(list(data)), **common).fit(data)
        return decoded(estimator.field_, eta) == decoded(model, eta)

    bound = lower_bounds.pairwise_structure(p, k, eta, **budget)
    return Setting(group, varies, bound, p, lambda rng: hard_pairwise(p, k, eta, rng), succeeds, budget)


def decoded(model: Pairwise, eta: float) -> list[int]:
    """For each matched pair, the number of the table eta * code, of all symmetric codes, that is nearest to its own.

    Distance is the largest of any state's probability, by the pairs' interactions and fields alone: nothing else
    interacts. The constant codes are one, number 0.
    """
    k = len(model.fields[0])
    upper = np.triu_indices(k)
    codes = np.zeros((2 ** len(upper[0]) - 1, k, k))  # without the last, all ones, which is no interaction either
    bits = np.array(list(itertools.product((0, 1), repeat=len(upper[0]))))[:-1]
    codes[:, upper[0], upper[1]] = codes[:, upper[1], upper[0]] = bits
    candidates = _normalised(eta * codes)
    found = []
    for i in range(0, len(model.fields), 2):
        logits = model.fields[i][:, None] + model.fields[i + 1] + model.weights.get((i, i + 1), np.zeros((k, k)))
        found.append(int(np.abs(candidates - _normalised(logits)).max(axis=(1, 2)).argmin()))
    return found


def _normalised(logits: np.ndarray) -> np.ndarray:
    table = np.exp(logits - logits.max(axis=(-2, -1), keepdims=True))
    return table / table.sum(axis=(-2, -1), keepdims=True)


def _matching(names: list[str]) -> list[tuple[str, str]]:
    return list(zip(names[::2], names[1::2], strict=True))


def _edges(estimator: Any, data: pd.DataFrame) -> set[tuple[int, int]]:
    position = {name: i for i, name in enumerate(data)}
    return {tuple(sorted((position[u], position[v]))) for u, v in estimator.graph_.edges}  # type: ignore[misc]


def matched_records(model: Model, n: int, rng: np.random.Generator) -> np.ndarray:
    """n records, shape (n, p), of a model in which only nodes 2i and 2i + 1 interact: pairs are independent."""
    if isinstance(model, Ising):
        sign = np.array([-1.0, 1.0])
        logits = [model.weights[i, i + 1] * np.outer(sign, sign) for i in range(0, len(model.fields), 2)]
    else:
        none = np.zeros((len(model.fields[0]),) * 2)
        logits = [model.weights.get((i, i + 1), none) for i in range(0, len(model.fields), 2)]
    k = len(logits[0])
    columns: list[np.ndarray] = []
    for table in logits:
        ends = np.cumsum(_normalised(table))
        cells = np.minimum(np.searchsorted(ends, rng.random(n), side="right"), k * k - 1)
        columns += [cells // k, cells % k]
    return np.column_stack(columns).astype(np.uint8)


def run(setting: Setting, repeats: int = REPEATS, earlier: dict[int, float] | None = None) -> dict[str, Any]:
    """Shares of success at n0 times powers of 2, until two of them are 1 or the records too many.

    `earlier` has shares that are known from an earlier run.
    """
    shares: dict[int, float] = {}
    for power in range(FIRST, LAST + 1):
        n = max(round(setting.bound.value * 2.0**power), 1)
        if n > LARGEST or list(shares.values())[-2:] == [1.0, 1.0]:
            break
        if earlier and power in earlier:
            shares[power] = earlier[power]
            continue
        won = 0
        for seed in range(repeats):
            rng = np.random.default_rng([seed, setting.p, power - FIRST])
            model = setting.draw(rng)
            names = [f"v{i}" for i in range(setting.p)]
            data = pd.DataFrame(matched_records(model, n, rng), columns=names)
            states = list(range(2 if isinstance(model, Ising) else len(model.fields[0])))
            common = {
                **setting.budget,
                "state_names": dict.fromkeys(names, states),
                "n_records": n,
                "random_state": seed,
            }
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ReproducibleNoiseWarning)
                won += setting.succeeds(model, data, common)
        shares[power] = won / repeats
    return {
        "group": setting.group,
        "varies": setting.varies,
        "p": setting.p,
        "budget": setting.budget,
        "n0": setting.bound.value,
        "formula": setting.bound.formula,
        "theorem": setting.bound.theorem,
        "shares": {str(power): share for power, share in shares.items()},
        "transition": transition(shares),
    }


def transition(shares: dict[int, float]) -> float:
    """n/n0 at which the share of success last passes 1/2, between powers of 2 on a logarithmic scale; nan if never."""
    powers = sorted(shares)
    for low, high in reversed(list(itertools.pairwise(powers))):
        if shares[low] < 0.5 <= shares[high]:
            return float(2.0 ** (low + (high - low) * (0.5 - shares[low]) / (shares[high] - shares[low])))
    return math.nan


def report(rows: Sequence[dict[str, Any]]) -> str:
    """A table for each group: n0, shares of success, and where they pass 1/2."""
    sections = []
    shown = (-6, -4, -2, 0, 2, 3, 4, 5, 6)
    for group, members in itertools.groupby(sorted(rows, key=lambda row: _place(rows, row)), lambda row: row["group"]):
        found = list(members)
        body = []
        for row in found:
            last = max(map(int, row["shares"]))
            # Beyond the last that was run it had succeeded twice in all, or the records were too many.
            end = "1" if row["shares"][str(last)] == 1 else "-"
            cells = [f"{row['shares'][str(power)]:g}" if power <= last else end for power in shown]
            ratio = row["transition"]
            body.append([row["varies"], f"{row['n0']:,.0f}", *cells, "-" if math.isnan(ratio) else f"{ratio:.3g}"])
        head = ["", "n0", *(f"n0 x {2.0**power:g}" if power >= 0 else f"n0/{2**-power}" for power in shown)]
        text = f"n0 = {found[0]['formula']} ({found[0]['theorem']}); budget of the first row: {found[0]['budget']}."
        sections.append(f"## {group}\n\n{text}\n\n{markdown_table([*head, 'transition/n0'], body)}")
    return "\n\n".join(sections)


def _place(rows: Sequence[dict[str, Any]], row: dict[str, Any]) -> int:
    return [other["group"] for other in rows].index(row["group"])


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line; see ``--help``."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.lower_bounds", description="Where learners begin to succeed."
    )
    parser.add_argument("--out", default="build/benchmarks", help="folder of the results (default: %(default)s)")
    parser.add_argument("--resume", action="store_true", help="keep the shares of an earlier run, and go on")
    options = parser.parse_args(arguments)
    folder = Path(options.out)
    folder.mkdir(parents=True, exist_ok=True)
    path = raw_folder(folder) / "lower-bounds.jsonl"
    known = {}
    if options.resume and path.exists():
        known = {(row["group"], row["varies"]): row for row in map(json.loads, path.read_text().splitlines())}
    rows = []
    for setting in tqdm(settings()):
        started, earlier = time.process_time(), known.get((setting.group, setting.varies), {})
        row = run(setting, earlier={int(power): share for power, share in earlier.get("shares", {}).items()})
        rows.append({**row, "cpu": earlier.get("cpu", 0.0) + time.process_time() - started})
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    given = [item for item in (arguments or sys.argv[1:]) if item != "--resume"]
    command = shlex.join(["python", "-m", "benchmarks.lower_bounds", *given])
    minutes = sum(row["cpu"] for row in rows) / 60
    text = f"# Lower bounds and learners\n\n`{command}`, {describe_machine()}, one thread, {minutes:.0f} minutes of "
    text += f"processor time.\n\nShare of {REPEATS} fresh models of the lower bounds' proofs on which the learner "
    text += "succeeds, by the number of records over n0, the bound with constant 1; transition: where the share passes "
    text += f"1/2. Runs end after two shares of 1, or above {LARGEST:,} records (then -). Parameters: all weights to "
    text += f"within {ALPHA}. Structure: the exact graph. Tables: all pairs' codes.\n\n"
    report_path = folder / "lower-bounds.md"
    report_path.write_text(text + report(rows) + "\n")
    print(f"wrote {report_path}")


if __name__ == "__main__":
    main()
