"""Made-up families of a known law: time, memory, and what large families have in common in what a model draws.

Parts of :mod:`benchmarks.linked`.
"""

from __future__ import annotations

import itertools
import resource
import sys
import time
from collections.abc import Callable, Hashable, Iterable, Sequence

import numpy as np
import pandas as pd

from pgmpy_dp import Budget, Number, Schema
from pgmpy_dp.linked.linked_model import LinkedModel
from pgmpy_dp.linked.linked_plan import plan_linked
from pgmpy_dp.linked.made_up import made_up_families
from pgmpy_dp.linked.operators.linked_schema import LinkedSchema
from pgmpy_dp.linked.operators.linked_tables import PrivateLinkedTables
from pgmpy_dp.linked.private_linked_network import learn_linked
from pgmpy_dp.private.reading.frames import encode

SIZES, SHARES = [1, 2, 3, 4, 7, 20], [0.2, 0.25, 0.2, 0.15, 0.15, 0.05]
"""Members of families, and how many families have so many."""


def widened(persons: pd.DataFrame, schema: LinkedSchema, columns: int) -> tuple[pd.DataFrame, LinkedSchema]:
    """Further columns of three states, each in four of five cells that of another column."""
    rng, child = np.random.default_rng(1), dict(schema.child)
    likes = (persons["status"] == "employed", persons["speaks"] == "second", persons["sex"] == "f")
    found = {}
    for k in range(columns):
        like = likes[k % 3].to_numpy().astype(int) + k // 3 % 2
        codes = np.where(rng.random(len(persons)) < 0.8, like, rng.integers(0, 3, len(persons)))
        found[f"x{k}"], child[f"x{k}"] = np.array(["a", "b", "c"])[codes], ["a", "b", "c"]
    kept = {"least": schema.least, "counts": schema.counts, "names": schema.names}
    described = Schema(child, impossible=schema.child.impossible)
    return persons.assign(**found), LinkedSchema(schema.parent, described, schema.key, schema.most, **kept)


def scaled(n: int, most: int, columns: int, budget: Budget, siblings: int | str = "auto") -> pd.DataFrame:
    """Processor time and memory of reading, learning and drawing as many, in this process."""
    households, persons, schema = made_up_families(n, most, random_state=0)
    persons, schema = widened(persons, schema, columns)

    def peak() -> float:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**30 if sys.platform == "darwin" else 2**20)

    print(f"{n:,} households, {len(persons):,} persons; plan: {plan_linked(schema, budget, n).size}", flush=True)
    rows, now = [("the frames alone", 0.0, peak())], time.process_time()

    def done(what: str) -> None:
        nonlocal now
        rows.append((what, time.process_time() - now, peak()))
        print(*rows[-1], flush=True)
        now = time.process_time()

    data = PrivateLinkedTables(households, persons, schema, ledger=budget)
    done("reading, rows of units")
    fitted = learn_linked(data, None, budget, siblings=siblings, random_state=0)
    done(f"learning, {len(fitted.release_.scopes)} tables")
    model = fitted.model_
    del fitted, data
    model.sample(n, 0)
    done("drawing as many")
    return pd.DataFrame(rows, columns=["what", "seconds", "GiB at most"]).set_index("what")


def alike(
    n: int, sizes: Sequence[int], shares: Sequence[float], seed: int
) -> tuple[pd.DataFrame, pd.DataFrame, LinkedSchema]:
    """Families whose members have two traits in common, with a correlation of .64 and of .25, whatever their number.

    A trait of the family is 0 or 1, by a fair coin; each member has it with .9, or .75, else the other one. A third
    column of four states depends on the first trait of the same member.
    """
    rng = np.random.default_rng(seed)
    size = rng.choice(sizes, n, p=shares)
    owner = np.repeat(np.arange(n), size)
    own = {}
    for name, likely in (("strong", 0.9), ("weak", 0.75)):
        own[name] = np.where(rng.random(len(owner)) < likely, 1, 0) == rng.integers(0, 2, n)[owner]
    columns = {name: np.where(values, "yes", "no") for name, values in own.items()}
    other = np.where(rng.random(len(owner)) < 0.6, own["strong"] * 2, rng.integers(0, 4, len(owner)))
    columns["other"] = np.array([*"abcd"])[other]
    persons = pd.DataFrame({"family": owner, **columns}).iloc[rng.permutation(len(owner))].reset_index(drop=True)
    families = pd.DataFrame({"family": np.arange(n), "region": rng.choice(["north", "south"], n)})
    child = {"strong": ["no", "yes"], "weak": ["no", "yes"], "other": [*"abcd"]}
    schema = LinkedSchema({"region": ["north", "south"]}, child, "family", max(sizes), least=1)
    return families, persons, schema


def correlations(persons: pd.DataFrame, key: str) -> dict[tuple[str, int], float]:
    """Of two members of a family, by column and number of members: of all pairs of each."""
    found = {}
    size = persons.groupby(key)[key].transform("size")
    for name in ("strong", "weak"):
        value = (persons[name] == "yes").astype(float)
        for n in sorted(set(size) - {1}):
            x = value[size == n]
            total = x.groupby(persons[key]).sum()
            mean, pairs = x.mean(), len(total) * n * (n - 1)
            both = (total * (total - 1)).sum() / pairs
            if 0 < mean < 1:
                found[name, n] = float((both - mean**2) / (mean * (1 - mean)))
    return found


def attenuated(n: int, budget: Budget, seeds: Sequence[int]) -> pd.DataFrame:
    """Correlation of two members in what is drawn, by their number: sizes mixed, and each size alone."""
    rows: dict[str, dict[str, float]] = {}
    mixed = [("all sizes together", SIZES, SHARES)]
    alone = [("each size alone", [size], [1.0]) for size in SIZES if size > 1]
    for siblings in (1, 0):
        for what, sizes, shares in [*mixed, *alone]:
            if siblings == 0 and what != mixed[0][0]:
                continue
            for seed in seeds:
                families, persons, schema = alike(n, sizes, shares, seed)
                fitted = learn_linked(families, persons, budget, schema, siblings=siblings, random_state=seed)
                made = fitted.model_.sample(n, seed)[1]
                found = {place: r for place, r in correlations(made, "family").items() if place[1] in sizes}
                for (name, size), value in found.items():
                    row = rows.setdefault(f"{name}, siblings={siblings}, {what}", {})
                    row[str(size)] = row.get(str(size), 0.0) + value / len(seeds)
                print(what, siblings, seed, {place: round(r, 3) for place, r in found.items()}, flush=True)
    sizes = [str(size) for size in SIZES if size > 1]
    return pd.DataFrame(rows).T.reindex(columns=sizes)


ROLES = ["head", "spouse", "child", "grandchild", "sibling", "parent", "relative", "lodger"]
WORK = ["none", "school", "farm", "wage", "retired"]
_LARGE_MOST, _KEPT = 14, 10  # persons of a household at most, and how many of them a schema counts


def large_families(n: int, seed: int) -> tuple[pd.DataFrame, pd.DataFrame, LinkedSchema]:
    """Households of one to fourteen persons, six on average, of whom exactly one is the head.

    Of two and more, three in four have a spouse, four years younger give or take four (the correlation of their ages is
    .96). Of the others .6 are children of the head, born when the head was 18 to 42; grandchildren are as much younger
    again, siblings as old as the head, parents 25 years older, give or take six; relatives and lodgers are of any age.
    Ages reach from 0 to 100, and are declared without cuts. One in two households lives on a farm that most work on.
    """
    rng = np.random.default_rng(seed)
    size = 1 + np.minimum(rng.poisson(rng.gamma(3.0, 1.75, n)), _LARGE_MOST - 1)
    owner = np.repeat(np.arange(n), size)
    place = np.arange(len(owner)) - (np.cumsum(size) - size)[owner]
    married = (size > 1) & (rng.random(n) < 0.75)
    is_head, is_spouse = place == 0, (place == 1) & married[owner]
    role = rng.choice(np.arange(2, len(ROLES)), len(owner), p=[0.6, 0.1, 0.1, 0.06, 0.1, 0.04])
    role = np.select([is_head, is_spouse], [0, 1], role)
    head, m = np.clip(rng.normal(46.0, 14.0, n), 18.0, 100.0)[owner], len(owner)
    child, older = head - rng.uniform(18.0, 42.0, m), head + rng.normal(25.0, 6.0, m)
    ages = [head, np.maximum(head + rng.normal(-4.0, 4.0, m), 16.0), child, child - rng.uniform(18.0, 42.0, m)]
    ages += [head + rng.normal(0.0, 6.0, m), older, rng.normal(25.0, 15.0, m), rng.normal(30.0, 12.0, m)]
    age = np.clip(np.round(np.choose(role, ages)), 0, 100).astype(int)
    male = rng.random(n)[owner] < 0.7
    sex = np.select([is_head, is_spouse], [male, ~male], rng.random(len(owner)) < 0.5)
    works = np.where((rng.random(n) < 0.5)[owner] == (rng.random(m) < 0.9), 2, 3)
    works = np.where(rng.random(m) < 0.6 + 0.3 * is_head, works, 0)
    work = np.select([age < 6, age < 18, age > 68], [0, 1, 4], works)
    persons = pd.DataFrame(
        {
            "household": owner,
            "role": np.array(ROLES, dtype=object)[role],
            "age": age,
            "sex": np.where(sex, "m", "f"),
            "work": np.array(WORK, dtype=object)[work],
        }
    ).iloc[rng.permutation(len(owner))]
    homes = pd.DataFrame(
        {
            "household": np.arange(n),
            "region": rng.choice(["north", "south", "east", "west"], n),
            "tenure": np.where(rng.random(n) < 0.3 + 0.03 * size, "owns", "rents"),
        }
    )
    number = Number(0, 110, resolution=1, missing="drop")
    children = Schema({"role": ROLES, "age": number, "sex": ["f", "m"], "work": WORK})
    parent = Schema({"region": ["north", "south", "east", "west"], "tenure": ["owns", "rents"]})
    schema = LinkedSchema(parent, children, "household", _KEPT, least=1, names=("household", "person"))
    return homes, persons.reset_index(drop=True), schema


def measured(
    families: Callable[[int], tuple[pd.DataFrame, pd.DataFrame]],
    truth: tuple[pd.DataFrame, pd.DataFrame],
    schema: LinkedSchema,
    budget: Budget,
    seeds: Iterable[int],
    draws: int,
    level: float = 0.9,
) -> pd.DataFrame:
    """What is wrong in models of families, a row a fit; `families` draws those of a seed from the law of `truth`.

    ``covered``: of the shares of persons, one column after the other, in intervals of `level`, and ``households`` of
    the shares of parents (nan without draws); ``slope``: how far shares of persons lie towards those of a random person
    of a random household (1: all the way); ``same`` and ``across``: a column, and two columns, of two persons of a
    household, in total variation; seconds of processor time of learning, of the choice among families, which files
    keep, and of drawing as many. Where persons have roles: the same for ``roles`` and ``ages``, the parts of households
    drawn without a head and with several, of heads drawn below 15, and the oldest drawn.
    """
    rows, truth_size = [], truth[1].groupby(schema.key)[schema.key].transform("size").to_numpy()
    for seed in seeds:
        homes, persons = families(seed)
        start = time.process_time()
        fitted = learn_linked(homes, persons, budget, schema, random_state=seed)
        model = fitted.model_
        spent = time.process_time() - start
        model.posterior = fitted.posterior(draws, seed) if draws else None
        hits: dict[bool, list[bool]] = {True: [], False: []}
        off, away, child = [], [], model._wide.child
        codes, weights = encode(truth[1], child).astype(int), 1 / truth_size
        for k, name in enumerate(child):
            told, states = codes[:, k] >= 0, len(child.states[name])
            of_persons, of_homes = (
                np.bincount(codes[told, k], w, states) / w.sum() for w in (0 * weights[told] + 1, weights[told])
            )
            hits[True] += _held(model, name, of_persons, level)[of_persons >= 0.01].tolist() if draws else []
            off += (model.query(name).values - of_persons).tolist()
            away += (of_homes - of_persons).tolist()
        if draws and schema.parent is not None:
            codes = encode(truth[0], schema.parent).astype(int)
            for k, name in enumerate(schema.parent):
                shares = np.bincount(codes[:, k], minlength=schema.parent.cardinality(name)) / len(codes)
                hits[False] += _held(model, name, shares, level).tolist()
        start = time.process_time()
        model.sample(1, seed)
        choice = time.process_time() - start
        drawn = model.sample(len(homes), seed)
        drawing = time.process_time() - start - choice
        ages = {"age": Number(0, 110, cuts=[5, 15, 25, 35, 45, 60], missing="drop")}
        cuts = schema.child.replaced(ages) if "role" in schema.child else schema.child
        real, made = of_two(persons, cuts, schema.key), of_two(drawn[1], cuts, schema.key)
        wrong = {place: 0.5 * np.abs(real[place] - made[place]).sum() for place in real}
        row = {
            "covered": np.mean(hits[True]),
            "households": np.mean(hits[False]),
            "slope": float(np.dot(off, away) / np.dot(away, away)),
            "same": np.mean([d for (x, y), d in wrong.items() if x == y]),
            "across": np.mean([d for (x, y), d in wrong.items() if x != y]),
        }
        if "role" in schema.child:
            is_head = drawn[1]["role"] == "head"
            heads = is_head.groupby(drawn[1][schema.key]).sum()
            row |= {"roles": wrong["role", "role"], "ages": wrong["age", "age"]}
            row |= {"no head": (heads == 0).mean(), "several": (heads > 1).mean()}
            row |= {"young heads": (drawn[1]["age"][is_head] < 15).mean(), "oldest": drawn[1]["age"].max()}
        rows.append({**row, "seconds": spent, "choice": choice, "drawing": drawing})
        print(pd.DataFrame(rows[-1:]).round(3).to_string(index=False, header=len(rows) == 1), flush=True)
    return pd.DataFrame(rows)


def _held(model: LinkedModel, name: Hashable, shares: np.ndarray, level: float) -> np.ndarray:
    answer = model.ask(name, level=level).to_frame()
    return ((answer["lower"] <= shares) & (shares <= answer["upper"])).to_numpy()


def of_two(persons: pd.DataFrame, schema: Schema, key: Hashable) -> dict[tuple[Hashable, Hashable], np.ndarray]:
    """Of each two columns, and each column twice, the table of two persons of a household; households count once."""
    codes, tables = encode(persons, schema).astype(int), {}
    owner = np.unique(persons[key], return_inverse=True)[1]
    size, ones = np.bincount(owner), []
    for k, name in enumerate(schema):
        ones.append(np.eye(len(schema.states[name]))[codes[:, k]])
    weight = np.where(size > 1, 1 / np.maximum(size * (size - 1.0), 1), 0.0) / (size > 1).sum()
    sums = [np.stack([np.bincount(owner, one, len(size)) for one in table.T], axis=1) for table in ones]
    for (i, x), (j, y) in itertools.combinations_with_replacement(enumerate(schema), 2):
        tables[x, y] = (sums[i] * weight[:, None]).T @ sums[j] - (ones[i] * weight[owner, None]).T @ ones[j]
    return tables
