"""Models of a survey reweighted to its population, beside unweighted ones and weighted tables without noise.

::

    python -m benchmarks.weights --out benchmarks/results

The population is Adult, drawn ten times over. A sample of about 10,000 takes persons with unequal probabilities: those
with high incomes, who are not White, or who are young or old more often, and a part that is chance. The weight is one
over the probability; the steepness is such that all but one in a thousand of the sample's weights are below 5 or 20
times their mean, and those above are cut off there. It is one of the variables that `learn` learns from, an undivided
number, and the model is reweighted by it. Errors are to the population: half the sum of absolute differences, on
average over the 28 tables of two variables; and of the share of high incomes. Intervals are of 90 %, of all shares of
one variable, and of the cells of 7 pairs: of the reweighted model for the population, and of the unweighted one for the
records that samples like this one have. "two-way" and "one-way" coverage are means over cells.
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
from pgmpy import config

from benchmarks.compare_tables import TABLES
from benchmarks.report import markdown_table
from pgmpy_dp import Budget, Number, learn
from pgmpy_dp.private.noise.samplers import ReproducibleNoiseWarning

NAMES = ("age", "education", "marital-status", "occupation", "race", "sex", "hours-per-week", "income")
RATIOS = (5, 20)
DELTA, LEVEL, N_DRAWS, N_RECORDS = 1e-9, 0.9, 50, 10_000
_WHITE, _ENDS = 0, (0, 5)  # the codes of a race and of the first and the last age


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line; see ``--help``."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.weights", description=__doc__.split("\n")[0])
    parser.add_argument("--out", default="benchmarks/results", help="folder of the results (default: %(default)s)")
    parser.add_argument("--epsilons", nargs="+", type=float, default=[1.0])
    parser.add_argument("--seeds", nargs="+", type=int, default=list(range(1, 15)))
    options = parser.parse_args(arguments)
    config.set_show_progress(False)
    warnings.simplefilter("ignore", ReproducibleNoiseWarning)  # the records are public
    command = shlex.join(["python", "-m", "benchmarks.weights", *(arguments or sys.argv[1:])])
    rows: list[dict] = []
    for k, seed in enumerate(options.seeds, 1):
        rows += [row for ratio in RATIOS for row in run(ratio, seed, options.epsilons)]
        (Path(options.out) / "weights.md").write_text(page(rows, options.seeds[:k], command))


def page(rows: Sequence[dict], seeds: Sequence[int], command: str) -> str:
    """The means over seeds, as a page of results."""
    columns = ["pairs", "income", "design effect", "one-way", "of income", "width", "two-way"]
    table = [
        [f"{ratio}", f"{epsilon:g}", answers, *("–" if np.isnan(one) else f"{one:.3f}" for one in part[columns].mean())]
        for (ratio, epsilon, answers), part in pd.DataFrame(rows).groupby(["ratio", "epsilon", "answers"])
    ]
    told = f"Seeds {list(seeds)}; nothing was chosen on them."
    text = ["# Weights of a survey", "", f"`{command}`", "", describe_machine(), "", told, ""]
    return "\n".join([*text, markdown_table(("ratio", "epsilon", "answers", *columns), table), ""])


def run(ratio: int, seed: int, epsilons: Sequence[float]) -> list[dict]:
    """Errors and coverage of the answers from one sample."""
    rng = np.random.default_rng([63, ratio, seed])
    people, weights = population(ratio, rng)
    sizes = people.max(axis=0) + 1
    taken = rng.random(len(people)) < 1 / weights
    sample, weight = people[taken], weights[taken]
    pairs = list(itertools.combinations(range(len(NAMES)), 2))

    def tables(codes: np.ndarray, by: np.ndarray | None, scopes: Sequence[tuple[int, ...]]) -> list[np.ndarray]:
        counts = [np.zeros(sizes[list(scope)]) for scope in scopes]
        for table, scope in zip(counts, scopes, strict=True):
            np.add.at(table, tuple(codes[:, list(scope)].T), 1.0 if by is None else by)
        return [table / table.sum() for table in counts]

    def errors(found: Sequence[np.ndarray]) -> dict[str, float]:
        high = [dict(zip(pairs, some, strict=True))[0, 7].sum(axis=0)[1] for some in (found, truth)]
        distance = np.mean([np.abs(a - b).sum() / 2 for a, b in zip(found, truth, strict=True)])
        return {"pairs": float(distance), "income": float(abs(high[0] - high[1]))}

    truth = tables(people, None, pairs)
    effect = float(len(weight) * (weight**2).sum() / weight.sum() ** 2)
    rows = [
        {"epsilon": 0.0, "answers": "weighted, no privacy", "design effect": effect}
        | errors(tables(sample, weight, pairs)),
        {"epsilon": 0.0, "answers": "unweighted, no privacy"} | errors(tables(sample, None, pairs)),
    ]
    frame = pd.DataFrame(sample, columns=list(NAMES)).assign(weight=weight)
    schema = {name: list(range(size)) for name, size in zip(NAMES, sizes, strict=True)}
    schema["weight"] = Number(1, float(weights.max()), missing="drop")
    asked = [*((k,) for k in range(len(NAMES))), *((k, 7) for k in range(7))]
    for epsilon in epsilons:
        estimator = learn(frame, Budget(epsilon=epsilon, delta=DELTA), schema, random_state=seed)
        model = estimator.model_
        model.posterior = estimator.posterior(N_DRAWS, random_state=seed)
        weighted = model.reweighted("weight")
        for answers, network, by in (
            ("learned, unweighted", model, 1 / weights),
            ("learned, reweighted", weighted, None),
        ):
            found = network.to_log_linear().marginals_of([tuple(NAMES[k] for k in pair) for pair in pairs])
            row = {"epsilon": epsilon, "answers": answers} | errors(found)
            inside = []
            for scope, expected in zip(asked, tables(people, by, asked), strict=True):
                ends = network.ask([NAMES[k] for k in scope], level=LEVEL).interval
                right = (ends["lower"] <= expected) & (expected <= ends["upper"])
                inside.append((right, ends["upper"] - ends["lower"]))
            one, two = inside[: len(NAMES)], inside[len(NAMES) :]
            row["one-way"], row["two-way"] = (
                float(np.concatenate([a.ravel() for a, _ in some]).mean()) for some in (one, two)
            )
            row["of income"] = float(one[-1][0].mean())
            row["width"] = float(np.concatenate([a.ravel() for _, a in one]).mean())
            if network is weighted:
                row["design effect"] = weighted.weighting.design_effect
            rows.append(row)
    return [{"ratio": ratio} | row for row in rows]


def population(ratio: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """The codes of a population, and the weight that each person has if sampled."""
    table = TABLES["adult"].read()
    codes = table.codes[:, [table.names.index(name) for name in NAMES]]
    people = codes[rng.integers(len(codes), size=10 * len(codes))]
    score = people[:, 7] + 0.8 * (people[:, 4] != _WHITE) + 0.5 * np.isin(people[:, 0], _ENDS)
    score = score + 0.3 * rng.normal(size=len(people))
    mean, (flat, steep) = len(people) / N_RECORDS, (0.0, 4.0)
    for _ in range(40):
        middle = (flat + steep) / 2
        odds = np.exp(middle * score)
        probability = np.minimum(odds * N_RECORDS / odds.sum(), 1.0)
        taken = rng.random(len(people)) < probability
        far = np.quantile(1 / probability[taken], 0.999) >= ratio * mean
        flat, steep = (flat, middle) if far else (middle, steep)
    return people, np.minimum(1 / probability, ratio * mean)


if __name__ == "__main__":
    main()
