"""Settings of a method for its tests: what an estimator hands to it."""

from __future__ import annotations

from collections import deque
from typing import Any

from pgmpy_dp.estimators import CollectiveMAP, EdgeVoting, PrivateBinaryMRF, PrivateIsing, PrivatePairwise
from pgmpy_dp.fields import noisy_parities
from pgmpy_dp.learning.options import rules_of
from pgmpy_dp.private.data.table_facts import checked_scopes

__all__ = ["ask_parities", "field_settings", "interaction_settings", "parity_settings", "settings", "table_settings"]
__all__ += ["vote_settings"]

FIELDS = {"ising": PrivateIsing, "pairwise": PrivatePairwise, "binary": PrivateBinaryMRF}


def settings(estimator: type, /, *given: Any, **options: Any) -> Any:
    """The checked options of an estimator with these arguments, and as they are those that only a method takes."""
    taken = estimator(*given, **{name: options.pop(name) for name in [*options] if name in rules_of(estimator)})
    taken = taken._as_checked()
    taken._check()
    return taken._options.but(**options)


def field_settings(width: float = 2.0, family: str = "ising", order: int = 2, **options: Any) -> Any:
    """What an estimator of random fields hands to the methods for its model."""
    return settings(FIELDS[family], width=width, **options).but(family=family, order=order)


def parity_settings(order: int = 2, *, method: str = "noise", **options: Any) -> Any:
    """What is handed to the method of noisy parities."""
    return field_settings(family="binary", order=order, **options).but(method=method)


def ask_parities(curator: Any, plan: noisy_parities.ParityPlan) -> noisy_parities.Sums:
    """The arrays that a release keeps, and how they were found, from a curator of a part of a table too."""
    (last,) = deque(noisy_parities._steps(curator, plan), maxlen=1)
    return last


def interaction_settings(noise: str = "auto", **options: Any) -> Any:
    """What is handed to the method of noisy interactions."""
    return field_settings(family="pairwise", noise=noise, **options)


def vote_settings(width: float = 1.5, min_edge_weight: float = 0.6, learner: str = "auto", **options: Any) -> Any:
    """What the estimators of blocks' votes hand to their methods."""
    return settings(EdgeVoting, width=width, min_edge_weight=min_edge_weight, learner=learner, **options)


def table_settings(scopes: Any, estimator: type = CollectiveMAP, **options: Any) -> Any:
    """What an estimator of a given graph's parameters hands to its method for these tables."""
    own = {name: options.pop(name) for name in [*options] if name in rules_of(estimator)}
    return estimator(**own)._as_checked()._settings(checked_scopes(scopes)).but(**options)
