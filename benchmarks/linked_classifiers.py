"""Classifiers of one column of persons, trained on synthetic households and tested on real ones.

A part of :mod:`benchmarks.linked`. What is known of a person is the household's columns, its own other columns, and
what its siblings are like: their number, and the share of them in each state of each column.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import balanced_accuracy_score, log_loss

from benchmarks.linked import METHODS, Families, coded
from pgmpy_dp import Budget
from pgmpy_dp.linked.operators.linked_schema import LinkedSchema

TARGETS = ("age", "status", "sex", "citizenship")
_TRAINED = 0.75  # of households, for methods and classifiers; others are tested on


def features(families: Families, schema: LinkedSchema, target: str, siblings: bool) -> tuple[np.ndarray, np.ndarray]:
    """What is known of each person, and the target's codes."""
    parents, children, owner = coded(families, schema)
    names, sizes = list(schema.child), [schema.child.cardinality(x) for x in schema.child]
    place = names.index(target)
    flags = [(children[:, [j]] == np.arange(size)).astype(float) for j, size in enumerate(sizes)]
    known = [parents[owner], *(flag for j, flag in enumerate(flags) if j != place)]
    if siblings:
        everything = np.hstack(flags)
        total = np.zeros((len(parents), everything.shape[1]))
        np.add.at(total, owner, everything)
        number = np.bincount(owner, minlength=len(parents))[owner, None] - 1
        known += [np.minimum(number, schema.most - 1), (total[owner] - everything) / np.maximum(number, 1)]
    return np.hstack(known), children[:, place]


def scores(
    train: Families, test: Families, schema: LinkedSchema, target: str, siblings: bool, seed: int
) -> list[float]:
    """Balanced accuracy, accuracy and bits per person of a forest."""
    states = np.arange(schema.child.cardinality(target))
    x, y = features(train, schema, target, siblings)
    forest = RandomForestClassifier(100, min_samples_leaf=10, random_state=seed).fit(x, y)
    x, y = features(test, schema, target, siblings)
    likely = np.full((len(x), len(states)), 1e-3)
    likely[:, forest.classes_] += forest.predict_proba(x)
    likely /= likely.sum(axis=1, keepdims=True)
    said = likely.argmax(axis=1)
    bits = log_loss(y, likely, labels=states) / np.log(2)
    return [balanced_accuracy_score(y, said), float(np.mean(said == y)), bits]


def classified(
    families: Families, schema: LinkedSchema, budget: Budget, methods: Iterable[str], seeds: Iterable[int]
) -> pd.DataFrame:
    """Means over seeds, which are other households for tests too; "floor" is the households themselves."""
    households, persons = families
    rows = []
    for seed in seeds:
        taken = np.random.default_rng(seed).random(len(households)) < _TRAINED
        parts = []
        for own in (taken, ~taken):
            homes = households[own]
            parts.append((homes, persons[persons[schema.key].isin(homes[schema.key])]))
        for method in methods:
            made = parts[0] if method == "floor" else METHODS[method](parts[0], schema, budget, seed)
            for target in TARGETS:
                found = scores(made, parts[1], schema, target, True, seed)
                rows.append({"what": f"{target}, {method}", **dict(zip(MEASURES, found, strict=True))})
                if method == "floor":
                    alone = scores(made, parts[1], schema, target, False, seed)
                    rows.append({"what": f"{target}, floor, no siblings", **dict(zip(MEASURES, alone, strict=True))})
            print(pd.DataFrame(rows).round(3).tail(8).to_string(header=False), flush=True)
    return pd.DataFrame(rows).groupby("what").mean()


MEASURES = ("balanced accuracy", "accuracy", "bits")
