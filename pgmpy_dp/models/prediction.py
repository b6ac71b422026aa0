"""Predictions of the columns that many records lack: pgmpy's ``predict`` and ``predict_probability``."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from pgmpy_dp.inference.conditioning import conditioned
from pgmpy_dp.inference.row_conditionals import row_conditionals
from pgmpy_dp.inference.whole_margins import with_functions
from pgmpy_dp.learning.display import states_text
from pgmpy_dp.learning.level_plan import levels_in
from pgmpy_dp.models.evidence import level_schema
from pgmpy_dp.private.reading.frames import column_names, n_rows, read_keys
from pgmpy_dp.schema import MISSING

if TYPE_CHECKING:
    from pgmpy_dp.inference.log_linear import LogLinearModel
    from pgmpy_dp.models.markov_network import MarkovNetwork
    from pgmpy_dp.schema import Schema

_FEW = 4096
"""Joint states up to which each is tried; more are eliminated, record by record."""
_CELLS = 1 << 20  # records with their joint states that are looked at together


def known_rows(
    network: MarkovNetwork, frame: Any, names: Sequence[Hashable], argument: str = "data", target: Hashable = None
) -> tuple[LogLinearModel, np.ndarray]:
    """State numbers of public records, -1 where nothing is known, in a model that has levels as variables.

    Parameters
    ----------
    network : MarkovNetwork
    frame : dataframe
    names : sequence of nodes and levels
        Columns that are read; the others count as unknown.
    argument : str
        What the user calls the records.
    target : node or level, optional
        Another variable that the model is to have.

    Returns
    -------
    model : LogLinearModel
        Of the nodes, then of the levels that are named.
    codes : ndarray of shape (records, variables)

    Raises
    ------
    ValueError
        If a cell is no state of its variable.
    """
    schema, levels = network._readable(), network.levels
    coarse = [name for name in dict.fromkeys([*names, target]) if name in levels]
    model = with_functions(network.to_log_linear(), levels_in(schema, [coarse]))
    codes = np.full((n_rows(frame), len(model.cliques.variables)), -1)
    for name in names:
        read = level_schema(schema, name) if name in levels else schema
        codes[:, model.cliques.position[name]] = state_codes(read, frame, [name], argument)[:, 0]
    return model, codes


def state_codes(schema: Schema, frame: Any, names: Sequence[Hashable], argument: str) -> np.ndarray:
    """State numbers of some columns of public records, in this order; -1 where nothing is known.

    Parameters
    ----------
    schema : Schema
    frame, names, argument
        As of :func:`known_rows`.

    Raises
    ------
    ValueError
        If a cell is no state of its variable.
    """
    codes = np.full((n_rows(frame), len(names)), -1)
    for column, name, (positions, keys) in zip(codes.T, names, read_keys(frame, names), strict=True):
        code = schema.coder(name)
        coded = np.array([code(key) for key in keys], dtype=np.int64)
        if wrong := [key[-1] for key, k in zip(keys, coded.tolist(), strict=True) if k < 0 and key != MISSING]:
            raise ValueError(
                f"{argument} has {wrong[0]!r} in the column {name!r}, which is not a state of it; use one of "
                f"{states_text(schema.states[name])}, or leave the cell empty where it is not known"
            )
        column[:] = coded[positions]
    return codes


def public_numbers(frame: Any, names: Sequence[Hashable]) -> list[np.ndarray]:
    """Some columns of public records as numbers; NaN where a cell is none."""
    columns = read_keys(frame, names)
    return [np.array([key[1] if key[0] == "number" else np.nan for key in keys])[places] for places, keys in columns]


def predicted(network: MarkovNetwork, data: Any) -> pd.DataFrame:
    """Fill in the most likely states of the variables that `data` lacks; see `MarkovNetwork.predict`."""
    data = _as_pandas(data)
    lacking, model, codes = _opened(network, data)
    rows, place = np.unique(codes, axis=0, return_inverse=True)
    names, filled = model.cliques.variables, rows.copy()
    states = network._listed_states(names, network.states)
    patterns, pattern = np.unique(rows < 0, axis=0, return_inverse=True)
    for k, unknown in enumerate(patterns):
        these, targets = np.flatnonzero(pattern.ravel() == k), np.flatnonzero(unknown).tolist()
        if not targets:
            continue
        conditional = row_conditionals(model, rows[these], targets[0])
        possible = ~np.isnan(conditional).any(axis=1)
        if len(targets) == 1:
            filled[these[possible], targets[0]] = conditional[possible].argmax(axis=1)
            continue
        if math.prod(model.cliques.cardinalities[i] for i in targets) <= _FEW:
            chosen = these[possible]
            filled[np.ix_(chosen, targets)] = _most_likely(model, rows[chosen], targets)
            continue
        for row in these[possible].tolist():
            evidence = {names[i]: rows[row, i] for i in np.flatnonzero(~unknown).tolist()}
            table = (conditioned(model, evidence) if evidence else model).marginal([names[i] for i in targets])
            filled[row, targets] = np.unravel_index(table.argmax(), table.shape)
    filled = filled[place.ravel()]
    result = data.copy()
    for i, name in enumerate(names):
        fresh = (codes[:, i] < 0) & (filled[:, i] >= 0)
        column = np.array([None, *states[name]], dtype=object)[filled[:, i] + 1]
        if name in lacking:
            predictions = pd.Series(column, index=data.index, dtype=object)
            result[name] = predictions.infer_objects() if fresh.all() else predictions  # bool of bools, as pgmpy's
        elif fresh.any():
            result[name] = pd.Series(np.where(fresh, column, data[name].to_numpy(object)), index=data.index)
    return result


def _most_likely(model: LogLinearModel, rows: np.ndarray, targets: list[int]) -> np.ndarray:
    """The most likely states of some variables together where all others are known, shape (rows, targets)."""
    cliques = model.cliques
    joint = np.indices([cliques.cardinalities[i] for i in targets]).reshape(len(targets), -1).T
    tables = [
        (table, scope)
        for table, scope in zip(cliques.split(model.theta), cliques.indices, strict=True)
        if not set(targets).isdisjoint(scope)
    ]
    best = np.empty((len(rows), len(targets)), dtype=np.int64)
    at_once = max(1, _CELLS // len(joint))
    for start in range(0, len(rows), at_once):
        part = rows[start : start + at_once]
        every = np.repeat(part, len(joint), axis=0)
        every[:, targets] = np.tile(joint, (len(part), 1))
        score = np.zeros(len(every))
        for table, scope in tables:
            score += table[tuple(every[:, i] for i in scope)]
        best[start : start + len(part)] = joint[score.reshape(len(part), -1).argmax(axis=1)]
    return best


def predicted_probability(network: MarkovNetwork, data: Any) -> pd.DataFrame:
    """The distribution of each variable that `data` lacks; see `MarkovNetwork.predict_probability`."""
    data = _as_pandas(data)
    lacking, model, codes = _opened(network, data)
    columns: dict[str, np.ndarray] = {}
    for name in lacking:
        table = row_conditionals(model, codes, model.cliques.position[name])
        columns |= {f"{name}_{state}": table[:, k] for k, state in enumerate(network.states[name])}
    return pd.DataFrame(columns, index=data.index)


def _as_pandas(data: Any) -> pd.DataFrame:
    """A frame of pandas, or of what gives one, as frames of polars do."""
    if not isinstance(data, pd.DataFrame) and not hasattr(data, "to_pandas"):
        raise TypeError(f"data is a {type(data).__name__}; pass a DataFrame of pandas or polars")
    return data if isinstance(data, pd.DataFrame) else data.to_pandas()


def _opened(network: MarkovNetwork, data: pd.DataFrame) -> tuple[list[Hashable], LogLinearModel, np.ndarray]:
    """The variables that records have no column for, and `known_rows` of the others, as pgmpy has it."""
    there = column_names(data)
    if strange := [name for name in there if name not in network and name not in network.levels]:
        raise ValueError(f"data has the column {strange[0]!r}, which is not a variable of the model; leave it out")
    if not (lacking := [name for name in network.nodes if name not in there]):
        raise ValueError("data has all variables of the model; leave out the columns that are to be predicted")
    return lacking, *known_rows(network, data, there)
