"""How far a model, and synthetic records, are from real ones: the scores of `benchmarks.compare`."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.compare_tables import Table
from pgmpy_dp.inference.belief_propagation import SumProduct
from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.inference.scope_marginals import ScopeMarginals

__all__ = [
    "CLASSIFIERS",
    "classifier_auc",
    "counting_error",
    "mixture_scores",
    "model_of",
    "model_scores",
    "mutual_scopes",
    "record_scores",
    "workload_error",
]

TRIPLES = 300
"""Random triples of variables; all of them where there are fewer."""
CLASSIFIERS = ("boosting", "logistic", "forest")
QUERIES = 500
"""Of :func:`counting_error`."""
_RARE = 0.01
_RECORDS = 20_000
"""Classifiers learn from so many records at most."""

Scopes = tuple[list[tuple[int, int]], list[tuple[int, int, int]]]


def mutual_scopes(cardinalities: Sequence[int], largest: int = 200_000) -> Scopes:
    """All pairs, and random triples (the same for every method) of which each has `largest` cells at most."""
    d = len(cardinalities)
    triples = [t for t in itertools.combinations(range(d), 3) if math.prod(cardinalities[i] for i in t) <= largest]
    if len(triples) > TRIPLES:
        chosen = np.random.default_rng(3).choice(len(triples), TRIPLES, replace=False)
        triples = [triples[k] for k in np.sort(chosen)]
    return list(itertools.combinations(range(d), 2)), triples


def record_scores(synthetic: np.ndarray, real: np.ndarray, cardinalities: Sequence[int], scopes: Scopes) -> dict:
    """Mean total variation between the tables of two sets of records."""
    return {
        f"records_{name}": float(
            np.mean(
                [
                    _distance(_table(synthetic, scope, cardinalities), _table(real, scope, cardinalities))
                    for scope in found
                ]
            )
        )
        for name, found in zip(("pairs", "triples"), scopes, strict=True)
    }


def model_scores(model: LogLinearModel, real: np.ndarray, unseen: np.ndarray, scopes: Scopes) -> dict:
    """Mean total variation of a model's tables to those of records, and its log-likelihood of unseen ones.

    The median beside the mean log-likelihood: a model without smoothing has next to no probability for a few records.
    """
    own = model.cliques
    engine = SumProduct(own, memory_limit=model.memory_limit)
    marginals = ScopeMarginals(own, model.theta, engine)
    nats = model.log_probability(unseen)
    found = {"nats": float(nats.mean()), "median_nats": float(np.median(nats))}
    for name, wanted in zip(("pairs", "triples"), scopes, strict=True):
        tables = zip(marginals.tables(wanted), wanted, strict=True)
        found[name] = float(np.mean([_distance(table, _table(real, s, own.cardinalities)) for table, s in tables]))
    return found


def model_of(cardinalities: Sequence[int], scopes: Sequence[Sequence[int]], theta: np.ndarray) -> LogLinearModel:
    """A model from what a method wrote: its tables' variables by number, and all their log-potentials."""
    cliques = Cliques(tuple(range(len(cardinalities))), tuple(cardinalities), tuple(tuple(s) for s in scopes))
    return LogLinearModel(cliques, theta, memory_limit=2**32)


def mixture_scores(
    log_shares: np.ndarray, cardinalities: Sequence[int], real: np.ndarray, unseen: np.ndarray, scopes: Scopes
) -> dict:
    """The scores of :func:`model_scores`, of an even mixture of products.

    Parameters
    ----------
    log_shares : ndarray, shape (products, sum of cardinalities)
        Of each product the log-probabilities of the states of all variables, one variable after the other.
    """
    parts = np.split(log_shares, np.cumsum(cardinalities)[:-1], axis=1)
    nats = np.logaddexp.reduce(sum(part[:, unseen[:, i]] for i, part in enumerate(parts))) - math.log(len(log_shares))
    found = {"nats": float(nats.mean()), "median_nats": float(np.median(nats))}
    shares = [np.exp(part) for part in parts]
    for name, wanted in zip(("pairs", "triples"), scopes, strict=True):
        distances = []
        for scope in wanted:
            joint = shares[scope[0]]
            for i in scope[1:-1]:
                joint = (joint[:, :, None] * shares[i][:, None]).reshape(len(joint), -1)
            table = (joint.T @ shares[scope[-1]]).reshape([cardinalities[i] for i in scope]) / len(joint)
            distances.append(_distance(table, _table(real, scope, cardinalities)))
        found[name] = float(np.mean(distances))
    return found


def workload_error(
    synthetic: np.ndarray, real: np.ndarray, cardinalities: Sequence[int], largest: int = 10_000
) -> float:
    """AIM's: mean absolute distance between the tables of all triples of variables with at most `largest` cells."""
    triples = itertools.combinations(range(len(cardinalities)), 3)
    scopes = [t for t in triples if math.prod(cardinalities[i] for i in t) <= largest]
    tables = ((_table(codes, scope, cardinalities) for codes in (synthetic, real)) for scope in scopes)
    return float(np.mean([2.0 * _distance(*pair) for pair in tables]))


def counting_error(synthetic: np.ndarray, real: np.ndarray, seed: int) -> float:
    """Mean relative error of counts of records that meet three or four conditions."""
    rng, errors = np.random.default_rng([seed, 5]), []
    for query in range(QUERIES):
        columns = rng.choice(real.shape[1], 3 + query % 2, replace=False)
        values = real[rng.integers(len(real))][columns]
        true, said = ((codes[:, columns] == values).all(axis=1).mean() for codes in (real, synthetic))
        errors.append(abs(true - said) / max(true, _RARE))
    return float(np.mean(errors))


def classifier_auc(
    synthetic: np.ndarray, unseen: np.ndarray, table: Table, seed: int = 0, kind: str = "boosting"
) -> float:
    """Area under the ROC curve of one of `CLASSIFIERS` that learned from synthetic records, on real ones.

    Mean over the target's states, each against all others, of those that are among `unseen`; a state that the synthetic
    records lack cannot be told, and counts .5.
    """
    from sklearn.metrics import roc_auc_score

    target = table.names.index(table.target)
    others = [i for i in range(len(table.names)) if i != target]
    # A stream of its own: the sampler's own permutation of as many records, at the same seed, would choose by stratum.
    chosen = np.random.default_rng([seed, _RECORDS]).permutation(len(synthetic))[:_RECORDS]
    x, y = synthetic[chosen][:, others], synthetic[chosen, target]
    states = [k for k in np.unique(unseen[:, target]) if (unseen[:, target] != k).any()]
    if len(np.unique(y)) == 1 or not states:
        return 0.5
    classifier = _classifier(kind, [table.cardinalities[i] for i in others], seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        classifier.fit(x, y)
        told = classifier.predict_proba(unseen[:, others])
    columns = {state: told[:, k] for k, state in enumerate(classifier.classes_)}
    found = [roc_auc_score(unseen[:, target] == k, columns[k]) if k in columns else 0.5 for k in states]
    return float(np.mean(found))


def _classifier(kind: str, cardinalities: Sequence[int], seed: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    if kind == "forest":
        return RandomForestClassifier(min_samples_leaf=5, random_state=seed)
    if kind == "logistic":
        encoder = OneHotEncoder(categories=[range(k) for k in cardinalities], drop="if_binary")
        return make_pipeline(encoder, LogisticRegression(max_iter=500))
    return HistGradientBoostingClassifier(
        max_iter=40,
        learning_rate=0.2,
        early_stopping=False,
        categorical_features=[2 < k <= 255 for k in cardinalities],
        random_state=seed,
    )


def _table(codes: np.ndarray, scope: Sequence[int], cardinalities: Sequence[int]) -> np.ndarray:
    sizes = [cardinalities[i] for i in scope]
    flat = np.ravel_multi_index(tuple(codes[:, i] for i in scope), sizes)
    return np.bincount(flat, minlength=math.prod(sizes)).reshape(sizes) / len(codes)


def _distance(p: np.ndarray, q: np.ndarray) -> float:
    return float(0.5 * np.abs(p - q).sum())
