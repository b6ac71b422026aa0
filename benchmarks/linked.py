"""Linked tables: households with their persons, by what is wrong in families drawn from a model.

    python -m benchmarks.linked --data ../shared/data            # EU-SILC, flat and three layouts, one seed
    python -m benchmarks.linked --data ../shared/data --seeds 3
    python -m benchmarks.linked --made-up 50000                  # families of a known law
    python -m benchmarks.linked --made-up 3000 --coverage 40     # how often intervals of so many fits hold
    python -m benchmarks.linked --made-up 1000000 --most 9 --scale      # time and memory, in one process
    python -m benchmarks.linked --made-up 10000 --attenuation    # what families of 2 to 20 have in common
    python -m benchmarks.linked --large 2975 --seeds 4 --epsilon 1      # the same of households of up to 14 with roles
    python -m benchmarks.linked --ratings InstEval.csv --seeds 2 --epsilon 1   # the same of students with their ratings
    python -m benchmarks.linked --shares --seeds 4 --epsilon 1  # shares of EU-SILC, of which households are drawn anew
    python -m benchmarks.linked --made-up 3000 --most 6 --shares        # and of made-up families
    python -m benchmarks.linked --numbers 0 0.05 --seeds 8      # shares of second tables, EU-SILC without cuts
    python -m benchmarks.linked --classify --seeds 3             # trained on synthetic persons, tested on real ones

EU-SILC (`eusilc.csv.gz` of the data folder; synthetic, of the R package laeken, GPL) is read from there and not part of
the repository: without it the benchmark says so. As many households are drawn as there are, and compared with them:

pairs       pairs of columns of one person
parent      a column of a person with one of the household, its number of persons included
same        one column of two persons of a household (households of two and more, each of weight 1)
across      different columns of two persons of a household
large       as `same`, of households of three and more
queries     "a household has a person who is so, and another who is so": mean absolute error over those above 1 %
adults      the number of persons with the number of adults

All but `queries` are means of total variation distances. The floor is a bootstrap of households.
"""

from __future__ import annotations

import argparse
import itertools
import time
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.report import markdown_table
from pgmpy_dp import Budget, Number, Schema, learn
from pgmpy_dp.linked.made_up import made_up_families
from pgmpy_dp.linked.operators.linked_schema import LinkedSchema
from pgmpy_dp.linked.private_linked_network import learn_linked

Families = tuple[pd.DataFrame, pd.DataFrame]

MEASURES = ("pairs", "parent", "same", "across", "large", "queries", "adults")
TARGETS = {"same": 0.035, "across": 0.028, "adults": 0.03}
"""At epsilon 3.2, delta 1e-9 on EU-SILC."""

_AGES = [16, 25, 35, 45, 55, 65, 75]


def eusilc(folder: Path) -> tuple[pd.DataFrame, pd.DataFrame, LinkedSchema]:
    """Households (region, equivalised income) and persons (age, sex, status, citizenship, earnings)."""
    found = pd.read_csv(folder / "eusilc.csv.gz")
    households = found.groupby("db030", as_index=False).first()[["db030", "db040", "eqIncome"]]
    households.columns = ["household", "region", "income"]
    persons = found[["db030", "age", "rb090", "pl030", "pb220a", "py010n"]].copy()
    persons.columns = ["household", "age", "sex", "status", "citizenship", "earnings"]
    persons["status"] = persons["status"].map({float(k): str(k) for k in range(1, 8)}).fillna("none")
    persons["citizenship"] = persons["citizenship"].fillna("none")
    regions = ["Burgenland", "Carinthia", "Lower Austria", "Salzburg", "Styria", "Tyrol", "Upper Austria", "Vienna"]
    parent = {
        "region": [*regions, "Vorarlberg"],
        "income": Number(0, 200_000, cuts=[10_000, 15_000, 20_000, 30_000], missing="drop"),
    }
    child = Schema(
        {
            "age": Number(-1, 99, cuts=_AGES, resolution=1, missing="drop"),
            "sex": ["female", "male"],
            "status": [*"1234567", "none"],
            "citizenship": ["AT", "EU", "Other", "none"],
            "earnings": Number(0, 200_000, cuts=[1, 10_000, 20_000]),
        },
        impossible=["age < 16 -> status = none"],
    )
    schema = LinkedSchema(
        parent,
        child,
        "household",
        7,
        least=1,
        counts=["age >= 16"],
        names=("household", "person"),
    )
    return households, persons, schema


def ratings(path: Path) -> tuple[pd.DataFrame, pd.DataFrame, LinkedSchema]:
    """Students of ETH Zurich, and the courses of other departments that they rated (`InstEval` of R's lme4)."""
    rated = pd.read_csv(path, dtype=str).query("service == '1'")
    students = rated.groupby("s", as_index=False).first()[["s", "studage"]]
    child = {
        "y": list("12345"),
        "lectage": list("123456"),
        "dept": [str(k) for k in range(1, 16) if k != 13],
    }
    schema = LinkedSchema({"studage": list("2468")}, child, "s", 20, least=1, names=("student", "rating"))
    return students, rated[["s", *child]], schema


def coded(families: Families, schema: LinkedSchema) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Codes of the parents, of the children, and the place of each child's parent; what is outside is dropped."""
    from pgmpy_dp.private.reading.frames import encode

    households, persons = families
    places = pd.Series(np.arange(len(households)), index=households[schema.key])
    assert schema.parent is not None
    parents = encode(households, schema.parent).astype(int)
    children = encode(persons, schema.child).astype(int)
    return parents, children, places.reindex(persons[schema.key]).to_numpy()


def tables(families: Families, schema: LinkedSchema) -> dict[str, list[np.ndarray]]:
    """What is compared, as lists of tables; those of `queries` are shares of households."""
    parents, children, owner = coded(families, schema)
    assert schema.parent is not None
    sizes = [schema.parent.cardinality(x) for x in schema.parent] + [schema.most + 1]
    own = [schema.child.cardinality(x) for x in schema.child]
    size = np.bincount(owner, minlength=len(parents))
    parents = np.column_stack([parents, np.minimum(size, schema.most)])
    adults = np.zeros(len(parents), dtype=int)
    if schema.counts:
        flags = schema.count_flags(schema.child)[0]
        met = np.logical_and.reduce([np.array(f)[children[:, list(schema.child).index(x)]] for x, f in flags])
        adults = np.bincount(owner, met, minlength=len(parents)).astype(int)
    order = np.argsort(owner, kind="stable")
    first = np.searchsorted(owner[order], np.arange(len(parents)))
    pairs = [
        (h, order[first[h] + i], order[first[h] + j])
        for h in np.flatnonzero(size > 1).tolist()
        for i, j in itertools.permutations(range(min(size[h], 12)), 2)
    ]
    home, one, other = np.array(pairs).T
    weight = 1.0 / np.bincount(home, minlength=len(parents))[home]

    def table(a: np.ndarray, k: int, b: np.ndarray, m: int, w: np.ndarray | None = None) -> np.ndarray:
        found = np.bincount(a * m + b, w, minlength=k * m)
        return found / found.sum()

    p = range(len(own))
    large = size[home] > 2
    found: dict[str, list[np.ndarray]] = {
        "pairs": [table(children[:, i], own[i], children[:, j], own[j]) for i, j in itertools.combinations(p, 2)],
        "parent": [table(parents[owner, i], sizes[i], children[:, j], own[j]) for i in range(len(sizes)) for j in p],
        "same": [table(children[one, j], own[j], children[other, j], own[j], weight) for j in p],
        "across": [
            table(children[one, i], own[i], children[other, j], own[j], weight) for i, j in itertools.combinations(p, 2)
        ],
        "large": [table(children[one, j][large], own[j], children[other, j][large], own[j], weight[large]) for j in p],
        "adults": [table(parents[:, -1], sizes[-1], np.minimum(adults, schema.most), sizes[-1])],
        "queries": [],
    }
    for i, j in itertools.combinations_with_replacement(p, 2):
        cells = np.unique(np.stack([home, children[one, i] * own[j] + children[other, j]]), axis=1)[1]
        found["queries"].append(np.bincount(cells, minlength=own[i] * own[j]) / len(parents))
    return found


def errors(true: dict[str, list[np.ndarray]], made: dict[str, list[np.ndarray]]) -> dict[str, float]:
    """Each measure, of a dataset against the true one."""
    result = {}
    for name in MEASURES:
        if name == "queries":
            both = [(a[a > 0.01], b[a > 0.01]) for a, b in zip(true[name], made[name], strict=True)]
            result[name] = float(np.abs(np.concatenate([a - b for a, b in both])).mean())
        else:
            distances = [0.5 * np.abs(a - b).sum() for a, b in zip(true[name], made[name], strict=True)]
            result[name] = float(np.mean(distances))
    return result


def flat(families: Families, schema: LinkedSchema, budget: Budget, seed: int) -> Families:
    """Persons with the columns of their household, learned as one table of shares, and put together again.

    Of each number of persons as many rows are drawn as there are persons; those of like households share one.
    """
    households, persons = families
    assert schema.parent is not None
    size = persons.groupby(schema.key).size().clip(upper=schema.most).astype(str)
    joined = persons.merge(households, on=schema.key)
    joined["n"] = joined[schema.key].map(size)
    states = {**schema.parent, "n": [str(k) for k in range(1, schema.most + 1)], **schema.child}
    described = Schema(states, impossible=schema.child.impossible)
    found = learn(joined, budget, described, unit=schema.key, rows_per_unit="shares", random_state=seed)
    shares = found.model_.query("n").values
    made, start = [], 0
    for n, share in zip(range(1, schema.most + 1), shares, strict=True):
        number = round(share * len(households))
        if number:
            rows = found.sample(n * number, seed, evidence={"n": str(n)}).sort_values(list(schema.parent))
            made.append(rows.assign(**{schema.key: start + np.arange(n * number) // n}))
            start += number
    rows = pd.concat(made, ignore_index=True)
    homes = rows.groupby(schema.key, as_index=False)[list(schema.parent)].first()
    return homes, rows[[schema.key, *schema.child]]


def linked(siblings: int | str) -> Callable[..., Families]:
    """Families of a model that is learned with so many siblings."""

    def made(families: Families, schema: LinkedSchema, budget: Budget, seed: int) -> Families:
        found = learn_linked(*families, budget, schema, siblings=siblings, random_state=seed)
        return found.model_.sample(len(families[0]), seed)

    return made


def numbers_told(
    families: Families, schema: LinkedSchema, budget: Budget, shares: Iterable[float], seeds: Iterable[int]
) -> pd.DataFrame:
    """Measures of families with numbers without cuts, and how far a number's mean and five quantiles are off.

    In standard deviations of the number, for each share of second tables; means over seeds.
    """
    from pgmpy_dp.linked import private_linked_network

    assert schema.parent is not None
    both = [s.replaced({n: one.whole_range for n, one in s.numbers.items()}) for s in (schema.parent, schema.child)]
    whole = LinkedSchema(*both, schema.key, schema.most, least=schema.least, counts=schema.counts, names=schema.names)
    true, rows = tables(families, schema), []
    for seed, share in itertools.product(seeds, shares):
        private_linked_network.SECOND = share
        made = linked("auto")(families, whole, budget, seed)
        row = {"share": share, **errors(true, tables(made, schema))}
        for part, real, drawn in zip(both, families, made, strict=True):
            for name, number in part.numbers.items():
                x, y = (one[name].dropna().astype(float).clip(number.lower, number.upper) for one in (real, drawn))
                levels = [0.05, 0.25, 0.5, 0.75, 0.95]
                row[f"{name}: mean"] = abs(y.mean() - x.mean()) / x.std()
                row[f"{name}: quantiles"] = np.abs(np.quantile(y, levels) - np.quantile(x, levels)).mean() / x.std()
        rows.append(row)
    return pd.DataFrame(rows).groupby("share").mean()


def bootstrap(families: Families, schema: LinkedSchema, budget: Budget | None, seed: int) -> Families:
    """Households drawn from the data, with replacement: not private."""
    households, persons = families
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, len(households), len(households))
    drawn = households.iloc[rows].assign(copy=np.arange(len(rows)))
    both = drawn[[schema.key, "copy"]].merge(persons, on=schema.key)
    both[schema.key] = both["copy"]
    return drawn.assign(**{schema.key: drawn["copy"]}), both


METHODS: dict[str, Callable[..., Families]] = {
    "flat": flat,
    "siblings=0": linked(0),
    "siblings=1": linked(1),
    "auto": linked("auto"),
    "floor": bootstrap,
}


def compared(
    families: Families, schema: LinkedSchema, budget: Budget, methods: Iterable[str], seeds: Iterable[int]
) -> pd.DataFrame:
    """The measures of each method, means over seeds, with its processor time."""
    true, rows = tables(families, schema), []
    for method, seed in itertools.product(methods, seeds):
        start = time.process_time()
        made = METHODS[method](families, schema, budget, seed)
        spent = time.process_time() - start
        rows.append({"method": method, **errors(true, tables(made, schema)), "seconds": spent})
        print(pd.DataFrame(rows[-1:]).round(4).to_string(index=False, header=len(rows) == 1), flush=True)
    return pd.DataFrame(rows).groupby("method", sort=False).mean()


_POPULATION = 200_000  # families of the law, which intervals are about
_SMALL = 3_000  # cells of cliques, for many fits
_SEEN = 0.01  # shares of cells that count: below it nearly every interval begins at 0

QUESTIONS: tuple[tuple[str, str, list[str], dict], ...] = (
    *(("person", "child", [x], {}) for x in ("age", "status", "speaks")),
    *(("person of a family", "family", [x], {}) for x in ("age", "status", "speaks")),
    *(("person and household", "child", [x, "tenure"], {}) for x in ("age", "status", "speaks")),
    *(("person and n", "child", [x, "n"], {}) for x in ("age", "status", "speaks")),
    ("person, given another column", "child", ["status"], {"speaks": "second"}),
    ("person, given another column", "child", ["age"], {"speaks": "second"}),
    ("person, given household", "child", ["status"], {"tenure": "owns"}),
    ("person, given household and n", "child", ["status"], {"tenure": "owns", "n": 2}),
    *(("two, same column", "pair", [x], {}) for x in ("age", "status", "speaks")),
    *(("two of a family, same column", "pair of a family", [x], {}) for x in ("age", "status", "speaks")),
    ("two, across", "pair", ["status", "speaks"], {}),
    ("one given the other", "pair", ["status"], {"speaks": "second"}),
    ("two, given household", "pair", ["speaks"], {"tenure": "owns"}),
    ("counts", "counts", ["age >= 16"], {}),
    ("counts and n", "counts", ["age >= 16", "n"], {}),
    ("counts and household", "counts", ["age >= 16", "tenure"], {}),
)
"""Kind, of whom, what is asked and what is known: of each fit and of the population."""


def true_shares(families: Families, schema: LinkedSchema) -> list[pd.Series]:
    """What intervals of the questions are about."""
    parents, children, owner = coded(families, schema)
    assert schema.parent is not None
    size = np.bincount(owner, minlength=len(parents))
    adults = np.bincount(owner, families[1]["age"] >= 16, minlength=len(parents)).astype(int)
    states = {x: np.array(schema.parent.states[x], dtype=object)[parents[:, j]] for j, x in enumerate(schema.parent)}
    homes = pd.DataFrame({**states, "n": size, "age >= 16": adults, "w": 1.0})
    own = pd.DataFrame({x: np.array(schema.child.states[x])[children[:, j]] for j, x in enumerate(schema.child)})
    own["home"] = owner
    persons = own.join(homes, on="home")
    both = own.assign(one=range(len(own))).merge(own.assign(one=range(len(own))), on="home", suffixes=("", " other"))
    pairs = both[both["one"] != both["one other"]].join(homes, on="home")
    tables = {
        "child": persons,
        "family": persons.assign(w=1.0 / size[persons["home"]]),
        "pair": pairs,
        "pair of a family": pairs.assign(w=1.0 / (size * (size - 1.0))[pairs["home"]]),
        "counts": homes,
    }
    found = []
    for _, whom, names, known in QUESTIONS:
        table = tables[whom]
        for name, state in known.items():
            table = table[table[name] == state]
        by = [*names, *(f"{x} other" for x in names)] if whom.startswith("pair") else names
        shares = table.groupby(by, observed=True)["w"].sum()
        found.append(shares / shares.sum())
    return found


def covered(n: int, most: int, budget: Budget, fits: int, draws: int, level: float = 0.9) -> pd.DataFrame:
    """How often intervals of several fits hold what they are about, by kinds of questions, and how wide they are."""
    households, persons, known = made_up_families(_POPULATION, most, random_state=99)
    age = Number(0, 99, cuts=[16, 35, 50, 65], resolution=1, missing="drop")
    child = Schema(
        {"age": age, "status": known.child["status"], "speaks": known.child["speaks"]},
        impossible=known.child.impossible,
    )
    schema = LinkedSchema({"tenure": ["owns", "rents"]}, child, "household", most, least=1, counts=known.counts)
    truth, rows = true_shares((households, persons), schema), []
    for k in range(fits):
        families = made_up_families(n, most, random_state=1_000 + k)[:2]
        fitted = learn_linked(*families, budget, schema, siblings=1, random_state=k, max_clique_cells=_SMALL)
        model, named = fitted.model_, {"pair": "pair", "pair of a family": "family pair", "counts": "family"}
        model.posterior = fitted.posterior(draws, k)
        for (kind, whom, names, given), shares in zip(QUESTIONS, truth, strict=True):
            frame = model.ask(names, given, of=named.get(whom, whom), level=level).to_frame()
            columns = list(frame.columns[:-3])
            own = shares.reindex(frame.set_index(columns).index, fill_value=0.0).to_numpy()
            inside = (frame["lower"] <= own) & (own <= frame["upper"])
            for seen, hit, width in zip(own >= _SEEN, inside, frame["upper"] - frame["lower"], strict=True):
                rows.append((k, kind, bool(seen), bool(hit), float(width)))
        if k % 5 == 4 or k == fits - 1:
            print(f"{k + 1} fits, {time.process_time():.0f} s", flush=True)
            print(_by_kind(rows).round(3).to_string(), flush=True)
    return _by_kind(rows)


def _by_kind(rows: list[tuple]) -> pd.DataFrame:
    frame = pd.DataFrame(rows, columns=["fit", "kind", "seen", "hit", "width"])
    large = frame[frame["seen"]].groupby("kind", sort=False)
    worst = frame[frame["seen"]].groupby(["kind", "fit"], sort=False)["hit"].mean().groupby("kind", sort=False)
    return pd.DataFrame(
        {
            "covered": large["hit"].mean(),
            "worst fit": worst.min(),
            "cells": large.size() // frame["fit"].nunique(),
            "width": large["width"].mean(),
            "all cells": frame.groupby("kind", sort=False)["hit"].mean(),
        }
    )


def shares_measured(asked: argparse.Namespace, budget: Budget) -> pd.DataFrame:
    """Shares, and what two of a household have in common: of households of a law, or drawn from those of EU-SILC."""
    from benchmarks.linked_law import large_families, measured

    if asked.large:
        *truth, schema = large_families(100_000, 10**6)
    elif asked.ratings:
        *truth, schema = ratings(asked.ratings)
    elif asked.made_up:
        *truth, schema = made_up_families(_POPULATION, asked.most, random_state=99)
    else:
        *truth, schema = eusilc(asked.data)
    schema = schema.with_rules(asked.rules)

    def families(seed: int) -> Families:
        if asked.large:
            return large_families(asked.large, seed)[:2]
        if asked.made_up:
            return made_up_families(asked.made_up, asked.most, random_state=seed)[:2]
        return bootstrap((truth[0], truth[1]), schema, None, seed)

    seeds = range(asked.first_seed, asked.first_seed + asked.seeds)
    return measured(families, (truth[0], truth[1]), schema, budget, seeds, asked.draws)


def main() -> None:
    """Print a table as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--made-up", type=int, default=0, help="so many households of a known law instead")
    parser.add_argument("--most", type=int, default=20, help="persons of these at most")
    parser.add_argument("--epsilon", type=float, default=3.2)
    parser.add_argument("--delta", type=float, default=1e-9)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--coverage", type=int, default=0, help="fits whose intervals are compared with the law")
    parser.add_argument("--large", type=int, default=0, help="so many made-up households of up to 14 with roles")
    parser.add_argument("--ratings", type=Path, help="the same of students and courses: lme4's InstEval as CSV")
    parser.add_argument("--shares", action="store_true", help="of persons and of households: intervals, bias")
    parser.add_argument("--rules", nargs="*", default=[], help="of --large and --shares, as 'count(role = head) = 1'")
    parser.add_argument("--numbers", type=float, nargs="+", help="shares of the budget for second tables of numbers")
    parser.add_argument("--scale", action="store_true", help="time and memory of so many made-up households")
    parser.add_argument("--attenuation", action="store_true", help="what made-up families of each size have in common")
    parser.add_argument("--classify", action="store_true", help="trained on synthetic persons, tested on real ones")
    parser.add_argument("--columns", type=int, default=0, help="further columns of persons, with --scale")
    parser.add_argument("--draws", type=int, default=30, help="of each posterior")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    budget = Budget(epsilon=asked.epsilon, delta=asked.delta)
    if asked.shares or asked.large or asked.ratings:
        fits = shares_measured(asked, budget)
        print(
            markdown_table(
                ["fits", *fits.columns],
                [[str(len(fits)), *(f"{v:.3f}" for v in fits.mean())], ["error", *(f"{v:.3f}" for v in fits.sem())]],
            )
        )
        return
    if asked.scale or asked.attenuation:
        from benchmarks.linked_law import attenuated, scaled

        if not asked.made_up:
            raise SystemExit("this is of families of a known law; pass --made-up N too")
        if asked.scale:
            taken = scaled(asked.made_up, asked.most, asked.columns, budget)
        else:
            taken = attenuated(asked.made_up, budget, range(asked.seeds))
        print(
            markdown_table(
                ["what", *taken.columns], [[w, *(f"{v:.2f}" for v in row)] for w, *row in taken.itertuples()]
            )
        )
        return
    if asked.coverage:
        if not asked.made_up:
            raise SystemExit("--coverage is of families of a known law; pass --made-up N too")
        rates = covered(asked.made_up, asked.most, budget, asked.coverage, asked.draws)
        rows = [[str(name), *(f"{v:.3f}" for v in row)] for name, *row in rates.itertuples()]
        print(markdown_table(["questions", *rates.columns], rows))
        return
    if asked.made_up:
        households, persons, schema = made_up_families(asked.made_up, asked.most, random_state=0)
    elif (asked.data / "eusilc.csv.gz").exists():
        households, persons, schema = eusilc(asked.data)
    else:
        raise SystemExit(f"{asked.data / 'eusilc.csv.gz'} is not there; pass --data, or --made-up N")
    seeds = range(asked.first_seed, asked.first_seed + asked.seeds)
    if asked.classify:
        from benchmarks.linked_classifiers import classified

        scores = classified((households, persons), schema, budget, asked.methods, seeds)
        print(
            markdown_table(
                ["trained on", *scores.columns], [[w, *(f"{v:.3f}" for v in r)] for w, *r in scores.itertuples()]
            )
        )
        return
    if asked.numbers:
        told = numbers_told((households, persons), schema, budget, asked.numbers, seeds)
        print(
            markdown_table(
                ["share", *told.columns], [[f"{k:g}", *(f"{v:.4f}" for v in r)] for k, *r in told.itertuples()]
            )
        )
        return
    found = compared((households, persons), schema, budget, asked.methods, seeds)
    print(
        markdown_table(
            ["method", *found.columns], [[name, *(f"{v:.4f}" for v in row)] for name, *row in found.itertuples()]
        )
    )


if __name__ == "__main__":
    main()
