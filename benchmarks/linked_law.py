"""Made-up families of a known law: time, memory, and what large families have in common in what a model draws.

Parts of :mod:`benchmarks.linked`.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Sequence

import numpy as np
import pandas as pd

from pgmpy_dp import Budget, Schema
from pgmpy_dp.linked.linked_plan import plan_linked
from pgmpy_dp.linked.made_up import made_up_families
from pgmpy_dp.linked.operators.linked_schema import LinkedSchema
from pgmpy_dp.linked.operators.linked_tables import PrivateLinkedTables
from pgmpy_dp.linked.private_linked_network import learn_linked

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
