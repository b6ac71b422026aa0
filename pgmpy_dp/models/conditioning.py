"""What a model says about the other variables once some are known."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace

import numpy as np

from pgmpy_dp.models.cliques import Cliques
from pgmpy_dp.models.log_linear import LogLinearModel

__all__ = ["ImpossibleEvidence", "conditioned"]


class ImpossibleEvidence(ValueError):
    """What is known cannot be, under the model."""


def conditioned(model: LogLinearModel, evidence: Mapping[Hashable, int]) -> LogLinearModel:
    """The distribution of the other variables, given the states of some.

    Every table is sliced at the evidence, so inference on the result is never harder than on the model.

    Parameters
    ----------
    model : LogLinearModel
    evidence : mapping of variable to int
        Number of the state that each of them has; not of all variables.

    Returns
    -------
    LogLinearModel
        Over the other variables, in their order.

    Raises
    ------
    ValueError
        For unknown variables or states, and if no variable is left.
    ImpossibleEvidence
        If the model gives the evidence the probability 0 (under loopy inference: if one of its tables does).

    Examples
    --------
    >>> cliques = Cliques(("a", "b"), (2, 2), (("a", "b"),))
    >>> model = LogLinearModel(cliques, np.log([0.1, 0.2, 0.3, 0.4]))
    >>> conditioned(model, {"b": 1}).marginal(["a"]).round(4)
    array([0.3333, 0.6667])
    """
    cliques = model.cliques
    for name, state in evidence.items():
        if name not in cliques.variables or not 0 <= state < cliques.cardinalities[cliques.variables.index(name)]:
            raise ValueError(f"evidence has {name!r}: {state!r}, which is no variable and state number of the model")
    left = [(name, k) for name, k in zip(cliques.variables, cliques.cardinalities, strict=True) if name not in evidence]
    if not left:
        raise ValueError("evidence has the states of all variables; leave out those that are asked about")
    scopes, tables, possible = [], [], True
    for scope, table in zip(cliques.scopes, cliques.split(model.theta), strict=True):
        kept = tuple(name for name in scope if name not in evidence)
        part = table[tuple(evidence.get(name, slice(None)) for name in scope)]
        possible &= bool(np.any(part > -np.inf))
        if kept:  # a table of evidence alone is a constant
            scopes.append(kept)
            tables.append(part)
    names, cardinalities = zip(*left, strict=True)
    smaller = Cliques(names, cardinalities, tuple(scopes))
    found = replace(model, cliques=smaller, theta=smaller.join(tables) if tables else np.zeros(0))
    if not possible or (found.inference == "exact" and not found.is_possible):
        raise ImpossibleEvidence(f"evidence has the states {dict(evidence)!r}, which the model gives the probability 0")
    return found
