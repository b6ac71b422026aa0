"""Condition a model on what is known of some variables."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace

import numpy as np

from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.log_linear import LogLinearModel


class ImpossibleEvidence(ValueError):
    """The evidence has the probability 0 under the model."""


def conditioned(model: LogLinearModel, evidence: Mapping[Hashable, int | np.ndarray]) -> LogLinearModel:
    """The distribution of the other variables, given states of some, or likelihoods of their states.

    Every table is sliced at the states that are known, so inference on the result is never harder than on the model.
    A variable with several possible states stays in the model, with a table of its own ("virtual evidence").

    Parameters
    ----------
    model : LogLinearModel
    evidence : mapping of variable to int or array
        The number of each variable's state; not of all variables. Or the likelihood of the evidence in each of its
        states: not negative, up to a factor; where one of them alone is positive, that is the state.

    Returns
    -------
    LogLinearModel
        Over the variables whose state is not known, in their order.

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
    >>> conditioned(model, {"b": np.array([0.5, 1.0])}).marginal(["a"]).round(4)
    array([0.3125, 0.6875])
    """
    cliques = model.cliques
    known, likely = {}, {}
    for name, value in evidence.items():
        size = cliques.cardinalities[cliques.variables.index(name)] if name in cliques.variables else 0
        weights = np.asarray(value, dtype=np.float64)
        if weights.ndim == 0 and 0 <= value < size:
            known[name] = int(value)
        elif weights.shape == (size,) and size and np.isfinite(weights).all() and weights.min() >= 0 < weights.max():
            if np.count_nonzero(weights) == 1:
                known[name] = int(np.flatnonzero(weights)[0])
            elif len(set(weights)) > 1:  # else it says nothing
                likely[name] = weights
        else:
            raise ValueError(f"evidence has {name!r}: {value!r}, which is not a variable and state number of the model")
    left = [(name, k) for name, k in zip(cliques.variables, cliques.cardinalities, strict=True) if name not in known]
    if not left:
        raise ValueError("evidence has the states of all variables; leave out those that are asked about")
    scopes, tables, possible = [], [], True
    for scope, table in zip(cliques.scopes, cliques.split(model.theta), strict=True):
        kept = tuple(name for name in scope if name not in known)
        part = table[tuple(known.get(name, slice(None)) for name in scope)]
        possible &= bool(np.any(part > -np.inf))
        if kept:  # a table of evidence alone is a constant
            scopes.append(kept)
            tables.append(part)
    with np.errstate(divide="ignore"):
        scopes += [(name,) for name in likely]
        tables += [np.log(weights / weights.max()) for weights in likely.values()]
    names, cardinalities = zip(*left, strict=True)
    smaller = Cliques(names, cardinalities, tuple(scopes))
    conditional = replace(model, cliques=smaller, theta=smaller.join(tables) if tables else np.zeros(0))
    if not possible or (conditional.inference == "exact" and not conditional.is_possible):
        raise ImpossibleEvidence(f"evidence has the states {dict(evidence)!r}, which the model gives the probability 0")
    return conditional
