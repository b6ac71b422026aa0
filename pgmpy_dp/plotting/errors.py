"""Plots of errors: marginals cell by cell against a public reference, and errors against the privacy budget."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.plotting.style import BLUE, COLOURS, GREY, MARKERS, legend, styled_axes
from pgmpy_dp.private.reading.frames import encode
from pgmpy_dp.private.sensitive import Release
from pgmpy_dp.schema import Schema
from pgmpy_dp.shown import quantity

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_marginals(
    model: Any,
    reference: Any,
    ax: Axes | None = None,
    *,
    scopes: Sequence[Sequence[Hashable]] | None = None,
    floor: float | None = None,
) -> Axes:
    """Plot each cell of the tables of pairs: its share under a private model against that of a public reference.

    Parameters
    ----------
    model : MarkovNetwork, LogLinearModel or Release
        What was learned, or released: of a `Release` of marginals the noisy tables themselves, over their mean total.
    reference : MarkovNetwork, LogLinearModel or dataframe
        *Public*: another model, or public records (values outside the schema's states leave a record out). A reference
        made of the private records is an exact statistic of them, and makes the picture as private as they are.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.
    scopes : sequence of sequence of variables, optional
        Tables to compare. Default: all pairs of the model's variables; of a `Release`, its own tables of pairs.
    floor : float, optional
        Smaller shares (also those noise made negative) are drawn at it, for the axes are logarithmic. Default: half of
        the smallest positive share of the reference, at least 1e-8.

    Returns
    -------
    matplotlib.axes.Axes
        One collection of points, cells in the order of the scopes; the corner has the mean over the tables of their
        total variation distance.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    InferenceUnavailable
        For pairs that no table of a model with loopy inference has; pass `scopes`.
    TypeError, ValueError
        If `model` or `reference` is something else, or they differ in variables or states.

    Examples
    --------
    >>> from pgmpy.factors.discrete import DiscreteFactor
    >>> from pgmpy_dp import MarkovNetwork
    >>> models = [MarkovNetwork([("rain", "wet")]) for _ in range(2)]
    >>> for model, both in zip(models, (2.0, 2.1)):
    ...     model.add_factors(DiscreteFactor(["rain", "wet"], [2, 2], [6, 1, 1, both]))
    >>> plot_marginals(*models)
    <Axes: ...>
    """
    states = _states(model)
    if scopes is None:
        available = getattr(model, "scopes", None) if isinstance(model, Release) else itertools.combinations(states, 2)
        scopes = [scope for scope in available if len(scope) == 2]  # type: ignore[union-attr]
    tables = list(dict.fromkeys(tuple(scope) for scope in scopes))
    if not tables:
        raise ValueError("there is no table to compare: the model has no pair of variables; pass scopes")
    unknown = [name for scope in tables for name in scope if name not in states]
    if unknown:
        raise ValueError(f"scopes has {unknown[:3]}, which are not variables of the model; it has {list(states)}")
    ours, theirs = _tables(model, tables, states), _tables(reference, tables, states, getattr(model, "schema", None))
    if [table.shape for table in ours] != [table.shape for table in theirs]:
        raise ValueError("model and reference give a variable different states; use the same schema for both")
    distance = np.mean([0.5 * np.abs(a - b).sum() for a, b in zip(ours, theirs, strict=True)])
    y, x = (np.concatenate([table.ravel() for table in t]) for t in (ours, theirs))
    if floor is None:
        floor = max(0.5 * float(x[x > 0].min(initial=1.0)), 1e-8)
    ax = styled_axes(ax, (5.2, 5.0))
    ax.plot([floor, 1], [floor, 1], color=GREY, linewidth=0.8, zorder=1)
    ax.scatter(np.maximum(x, floor), np.maximum(y, floor), s=9, color=BLUE, alpha=0.35, linewidth=0, zorder=2)
    limits = (floor * 0.8, 1.25)
    ax.set(xscale="log", yscale="log", xlim=limits, ylim=limits, aspect="equal")
    ax.set(xlabel="share of the records, reference", ylabel="share of the records, private")
    ax.text(0.97, 0.04, f"{quantity(tables, 'table')}, {quantity(x.size, 'cell')}\nmean total variation {distance:.4f}",
            transform=ax.transAxes, ha="right", fontsize=9)  # fmt: skip
    return ax


def plot_error(errors: pd.DataFrame, ax: Axes | None = None, *, ylabel: str = "error") -> Axes:
    """Plot errors against epsilon, one line for each estimator, both axes logarithmic.

    Parameters
    ----------
    errors : pandas.DataFrame
        One column for each estimator; the index is epsilon, or another measure of the budget, whose name it may carry.
        Rows with the same index are repetitions: the line is their median, the band goes from the least to the largest.
        Missing values are left out.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.
    ylabel : str
        What the errors are.

    Returns
    -------
    matplotlib.axes.Axes
        One line for each column, in their order; a band for each with repetitions.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    TypeError, ValueError
        If `errors` is no dataframe, or has values or an index that are not positive: they have no logarithm.

    Examples
    --------
    >>> plot_error(pd.DataFrame({"CollectiveMAP": [0.2, 0.02]}, index=[0.1, 1.0]))
    <Axes: ...>
    """
    if not isinstance(errors, pd.DataFrame):
        raise TypeError(
            f"errors is a {type(errors).__name__}; pass a DataFrame, epsilon its index, a column for each line"
        )
    values, budgets = errors.to_numpy(dtype=float), np.asarray(errors.index, dtype=float)
    for name, numbers in (("errors", values), ("the index of errors", budgets)):
        if (numbers <= 0).any() or np.isinf(numbers).any():
            raise ValueError(f"{name} must be positive and finite, for the axes are logarithmic; remove the other rows")
    ax = styled_axes(ax)
    for k, column in enumerate(errors.columns):
        groups = pd.Series(values[:, k]).dropna().groupby(budgets[~np.isnan(values[:, k])])
        median, colour = groups.median(), COLOURS[k % len(COLOURS)]
        ax.plot(median.index, median, color=colour, marker=MARKERS[k % len(MARKERS)], markersize=5, label=str(column))
        if (groups.size() > 1).any():
            ax.fill_between(median.index, groups.min(), groups.max(), color=colour, alpha=0.15, linewidth=0)
    ax.set(xscale="log", yscale="log", xlabel=str(errors.index.name or "epsilon"), ylabel=ylabel)
    legend(ax)
    return ax


def _states(model: Any) -> dict[Hashable, list]:
    """States of each variable; their numbers where the model knows only how many."""
    if isinstance(model, Release):
        return {name: list(states) for name, states in model.schema.states.items()}
    if isinstance(model, LogLinearModel):
        return {
            name: list(range(size))
            for name, size in zip(model.cliques.variables, model.cliques.cardinalities, strict=True)
        }
    if hasattr(model, "to_log_linear"):
        return {name: list(states) for name, states in model.states.items()}
    raise TypeError(
        f"model is a {type(model).__name__}; pass a MarkovNetwork, a LogLinearModel or a Release of marginals"
    )


def _tables(source: Any, scopes: list[tuple], states: dict[Hashable, list], schema: Any = None) -> list[np.ndarray]:
    """Probabilities of each scope's cells."""
    if isinstance(source, Release):
        released = {
            scope: np.asarray(value, dtype=float) for scope, value in zip(source.scopes, source.values, strict=True)
        }
        missing = [scope for scope in scopes if scope not in released]
        if missing:
            raise ValueError(f"the release has no table of {missing[:3]}; it has {list(released)[:5]}")
        # One total for all: dividing each noisy table by its own would hide a part of the noise.
        total = source.n_records or max(float(np.mean([table.sum() for table in released.values()])), 1.0)
        return [released[scope] / total for scope in scopes]
    if isinstance(source, LogLinearModel):
        return source.marginals_of(scopes)
    if hasattr(source, "to_log_linear"):
        for name in dict.fromkeys(itertools.chain.from_iterable(scopes)):
            if name not in source.states or list(source.states[name]) != states[name]:
                raise ValueError(f"reference has not the model's states {states[name]} for variable {name!r}")
        return source.to_log_linear().marginals_of(scopes)
    names = list(dict.fromkeys(itertools.chain.from_iterable(scopes)))
    compared = [name for name in names if schema is not None and name in schema and schema.reading(name).codes]
    codes = encode(source, Schema({name: states[name] for name in names}, texts=names, codes=compared))
    tables = []
    for scope in scopes:
        shape = tuple(len(states[name]) for name in scope)
        places = np.ravel_multi_index([codes[:, names.index(name)] for name in scope], shape)
        counts = np.bincount(places, minlength=int(np.prod(shape))).reshape(shape)
        tables.append(counts / max(len(codes), 1))
    return tables
