"""Previews of what a budget will buy, from public numbers and made-up records: no record is read.

Random public models are there to try things on before there are records, and give tables of made-up ones.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import networkx as nx
import numpy as np
import pandas as pd

from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.junction_tree import DEFAULT_MEMORY_LIMIT, InferenceSize, InferenceTooLarge
from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.inference.sum_product import inference_size
from pgmpy_dp.inference.whole_margins import with_functions
from pgmpy_dp.learning import noisy_tables
from pgmpy_dp.learning.collective_base import BaseMarginalsEstimator, checked_model_graph, progress_bar
from pgmpy_dp.learning.display import Shown
from pgmpy_dp.learning.least_noise import NOISES
from pgmpy_dp.learning.level_engine import leaf_tables
from pgmpy_dp.learning.level_plan import levels_in
from pgmpy_dp.learning.noisy_marginals import NoisyMarginals
from pgmpy_dp.learning.options import adjacencies, arguments_of, declares, one_of, whole
from pgmpy_dp.learning.structural_zeros import obeying, with_zeros
from pgmpy_dp.private import accounting
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.budget import Budget, require_budget, unit_budget
from pgmpy_dp.private.curator.curator_base import cost_of
from pgmpy_dp.private.data.table_facts import checked_scopes
from pgmpy_dp.private.guarantee import Guarantee, PureDP
from pgmpy_dp.private.sensitive import Noise
from pgmpy_dp.schema import Schema
from pgmpy_dp.shown import quantity, shown
from pgmpy_dp.tables.collective.collective_map import CollectiveMAP

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False, repr=False)
class Preview(Shown):
    """The result of `preview`; ``str`` of it is a summary to read.

    Attributes
    ----------
    table : pandas.DataFrame
        One row for each table that would be released, by its variables: ``cells``; ``noise``, ``scale`` and ``sd`` of
        each cell, in records; ``records_per_cell``, n over cells; ``released``, the expected total variation of the
        noisy table, in closed form; ``fitted``, ``fitted_least``, ``fitted_most``, that of the learned model's table,
        mean and range over the simulations (nan without any); ``uniform``, that of the table with equal cells, which
        needs no records.
    guarantee : Guarantee
        Of the release: a budget of (epsilon, delta) becomes pure or zCDP, whichever needs less noise.
    n : int
        The assumed number of records.
    n_records_sd : float
        Standard deviation of the estimated number of records; 0 where it is public.
    n_parameters : int
        Free parameters of the model.
    inference : InferenceSize
        Width, cells and bytes of exact inference.
    simulations : pandas.DataFrame
        Total variation of each simulation's model, a column for each table.
    verdict : str
        What to expect, in words.

    Notes
    -----
    Total variation is against the records' own tables, half the l1 distance of proportions. Of the noisy table it is
    E abs(noise) cells / (2 n): above 1 where noise exceeds the counts, for a noisy table is no distribution.
    """

    table: pd.DataFrame
    guarantee: Guarantee
    n: int
    n_records_sd: float
    n_parameters: int
    inference: InferenceSize
    simulations: pd.DataFrame
    verdict: str
    budget: Budget
    adjacency: str
    method: str
    source: str

    @property
    def expected_total_variation(self) -> float:
        """Total variation of the learned model, mean over tables and simulations; nan without simulations."""
        return float(self.table["fitted"].mean())

    @property
    def total_variation_range(self) -> tuple[float, float]:
        """Least and largest, over the simulations, of the mean over tables."""
        means = self.simulations.mean(axis=1)
        return float(means.min()), float(means.max())

    @property
    def shared_cost(self) -> str:
        """A sentence on the cost of pure noise, where a delta allows a ledger to hold Gaussian noise too; or empty.

        See :func:`pgmpy_dp.learning.least_noise.noise_for_ledger`.
        """
        if not (isinstance(self.guarantee, PureDP) and self.budget.delta):
            return ""
        whole = Budget.of(self.budget.guarantee)
        pure, gaussian = accounting.pure_to_zcdp(self.guarantee.epsilon), cost_of(whole)
        return (
            f"a ledger with Gaussian noise too counts this as {pure:.3g}-zCDP, and noise='gaussian' as {gaussian}; "
            "pass it where this fit is not the only one"
        )

    def __repr__(self) -> str:
        return f"Preview({self.method} on {quantity(self.table, 'table')} under {self.budget}, n={self.n:,}; print it)"

    def __str__(self) -> str:
        table, cells = self.table, self.table["cells"].sum()
        least, most = self.total_variation_range
        count = "the number of records is public" if not self.n_records_sd else f"estimated +- {self.n_records_sd:,.0f}"
        lines = [
            f"{self.method} on {quantity(table, 'table')}, {quantity(cells, 'cell')}, "
            f"{quantity(self.n_parameters, 'parameter')}",
            f"budget     {self.budget}, spent as {self.guarantee} under {self.adjacency}",
            *([f"ledger     {self.shared_cost}"] if self.shared_cost else []),
            f"noise      {_noise_text(table)}",
            f"records    {self.n:,} assumed, {count}",
            f"inference  {self.inference}",
            f"released   total variation {table['released'].mean():.3g} of the noisy tables, mean",
        ]
        if len(self.simulations):
            lines.append(
                f"learned    total variation {self.expected_total_variation:.3g} ({least:.3g} to {most:.3g}) in "
                f"{quantity(self.simulations, 'simulation')} from {self.source}; "
                f"without records {table['uniform'].mean():.3g}"
            )
        lines.append(f"verdict    {self.verdict}")
        return "\n".join(lines)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Plot the expected total variation of each table: noisy, and of the learned model with its range."""
        from pgmpy_dp.plotting.style import BLUE, GREY, VERMILLION, legend, styled_axes

        ordered = self.table.sort_values("released", kind="stable")
        rows = np.arange(len(ordered))
        ax = styled_axes(ax, (6.4, 1.4 + 0.26 * max(3, len(ordered))))
        ax.plot(ordered["released"], rows, "s", color=VERMILLION, markersize=5, label="noisy table")
        if len(self.simulations):
            ax.hlines(rows, ordered["fitted_least"], ordered["fitted_most"], color=BLUE, linewidth=2, alpha=0.5)
            ax.plot(ordered["fitted"], rows, "o", color=BLUE, markersize=5, label="learned model")
            ax.plot(ordered["uniform"], rows, "|", color=GREY, markersize=8, label="without records")
        ax.set_yticks(rows, [" - ".join(map(str, scope)) for scope in ordered.index], fontsize=8.5)
        ax.set(xscale="log", xlabel="expected total variation")
        legend(ax, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)
        return ax


@declares(
    n=whole(1),
    adjacency=adjacencies(),
    noise=one_of(NOISES),
    n_simulations=whole(0),
    random_state=whole(0),
)
def preview(
    schema: Schema | dict,
    cliques: nx.Graph | Sequence[Sequence[Hashable]],
    budget: Budget,
    n: int,
    *,
    adjacency: str = "add_remove",
    noise: str = "auto",
    estimator: BaseMarginalsEstimator | None = None,
    model: Any = None,
    n_simulations: int = 10,
    random_state: int | None = None,
    rows_per_unit: int | str = 1,
) -> Preview:
    """Sizes, noise and expected error of learning a given graph's parameters, before anything is spent.

    Parameters
    ----------
    schema : Schema or dict of variable to list of states
        Public description of the data.
    cliques : networkx.Graph, MarkovNetwork or list of tuple of variables
        The graph, with a table for each edge and isolated node; or the tables.
    budget : Budget
        What the fit would spend.
    n : int
        The assumed number of records: a public guess. Counting the private records to pass their number makes what is
        decided by the preview depend on it.
    adjacency : {"add_remove", "replace_one"}
    noise : {"auto", "laplace", "gaussian"}
        "auto" is the estimator's own.
    estimator : CollectiveMAP, CollectiveEM or NaiveMLE, optional
        Its options are used, apart from the budget, state names, adjacency and random state. Default: `CollectiveMAP`.
    model : MarkovNetwork or LogLinearModel, optional
        *Public*: what the records might be like, such as a model of public records or an earlier private release. It
        may have further variables and any graph. Default: each simulation draws another one from
        `pgmpy_dp.tables.preview.random_log_linear` on the tables.
    n_simulations : int
        How many times made-up records are drawn and learned from; 0 for sizes and noise alone.
    random_state : int, optional
        For repeatable simulations; there is no privacy at stake.
    rows_per_unit : int or "shares"
        How many records of a person count, in a fit that protects persons. The noise is that of so many; by "shares" it
        is that of one record.

    Returns
    -------
    Preview

    Raises
    ------
    TypeError, ValueError
        For arguments that a fit would refuse, or a `model` that lacks variables or has other states.

    Notes
    -----
    Privacy: it takes no records and no ledger, and costs nothing; the verdict is as public as its arguments.

    A simulation draws n records from the public model, conditioned on what the schema's rules leave possible (above
    10^6, their expected counts: the error is against the records' own tables, into which their sampling does not
    enter), adds noise to their tables by the code of the release, learns by the estimator's ``fit_release``, and
    compares its tables with the drawn records' own. Where exact inference does not fit the estimator's memory limit
    there are no simulations, and the verdict says so.

    docs/preview.md has predictions against measurements.

    Examples
    --------
    >>> schema = {"rain": ["no", "yes"], "wet": ["no", "yes"]}
    >>> expected = preview(schema, [("rain", "wet")], Budget(epsilon=1.0), 1000, n_simulations=3, random_state=0)
    >>> expected.table["sd"].round(2).tolist(), expected.expected_total_variation < 0.01
    ([1.36], True)
    """
    schema = Schema.coerce(schema, "schema")
    require_budget(budget)
    budget = unit_budget(budget, rows_per_unit)
    seeded = arguments_of(preview, n_simulations=n_simulations, random_state=random_state)
    checked = arguments_of(preview, n=n, adjacency=adjacency, noise=noise)
    n, adjacency, noise = checked.n, checked.adjacency, checked.noise
    is_public = str(Adjacency.parse(adjacency)) == "replace_one"
    learner = _learner(estimator, schema, budget, adjacency, noise, n if is_public else None)
    graph, tables, weights = _graph_and_tables(schema, cliques, learner)
    schema = schema.subset(graph.nodes)
    learner.set_params(cliques=list(tables.scopes), weights=weights, state_names=schema)
    settings = learner._as_checked()._settings(tables.scopes)
    cost, noises = noisy_tables.planned_noise(schema, settings, budget, adjacency)
    leaves = leaf_tables(tables, levels_in(schema, tables.scopes))
    source = None if model is None else _public_model(model, schema, leaves)
    size = inference_size(with_zeros(leaves, schema.zeros))
    simulated = _Simulation(graph, tables, schema, n, learner, budget, adjacency, source)
    rng = np.random.default_rng(seeded.random_state)
    fits = size.memory_bytes <= learner.memory_limit
    errors = []
    with progress_bar("preview", seeded.n_simulations, "simulations") as progress:
        for _ in range(seeded.n_simulations if fits else 0):
            errors.append(simulated.run(rng))
            if progress is not None:
                progress()
    distances = np.array(errors).reshape(len(errors), tables.n_cliques, 2)
    simulations = pd.DataFrame(distances[:, :, 0], columns=_index(tables))
    frame = _table(tables, noises, n, distances)
    return Preview(
        table=frame,
        guarantee=cost if budget.rows == 1 else cost_of(Budget.of(budget.guarantee), pure=isinstance(cost, PureDP)),
        n=n,
        n_records_sd=_count_sd(tables, noises, learner.n_records),
        n_parameters=_n_parameters(leaves),
        inference=size,
        simulations=simulations,
        verdict=_verdict(frame, fits, n_simulations),
        budget=budget,
        adjacency=str(Adjacency.parse(adjacency)),
        method=type(learner).__name__,
        source="random public models" if model is None else "the public model",
    )


def _learner(
    estimator: Any, schema: Schema, budget: Budget, adjacency: str, noise: str, n_records: int | None
) -> BaseMarginalsEstimator:
    """A copy of the estimator for this budget."""
    estimator = CollectiveMAP() if estimator is None else estimator
    if not isinstance(estimator, BaseMarginalsEstimator) or estimator._release_kinds != ("marginals",):
        raise TypeError(
            f"estimator={estimator!r} does not learn from noisy tables; pass an instance of CollectiveMAP, "
            "CollectiveEM or NaiveMLE"
        )
    options = {
        "epsilon": budget.epsilon,
        "delta": budget.delta,
        "rho": budget.rho,
        "state_names": schema,
        "adjacency": adjacency,
        "noise": estimator.noise if noise == "auto" else noise,
        "n_records": n_records,
        "random_state": None,
    }
    return type(estimator)(**{**estimator.get_params(deep=False), **options})


def _graph_and_tables(
    schema: Schema, cliques: Any, learner: BaseMarginalsEstimator
) -> tuple[nx.Graph, Cliques, Sequence[float] | None]:
    """The graph, its tables as the learner would release them, and their weights."""
    weights = learner.weights
    if isinstance(cliques, nx.Graph):
        graph = checked_model_graph(cliques)
        scopes, usual = learner._tables(cliques, graph, schema)
        weights = usual if weights is None else weights
    else:
        if isinstance(cliques, str) or not isinstance(cliques, Iterable):
            raise TypeError(
                f"cliques={cliques!r} is a {type(cliques).__name__}; pass a graph, or a list of tuples of variables"
            )
        scopes = list(checked_scopes(list(cliques)))
        named = set(itertools.chain.from_iterable(scopes))
        graph = nx.Graph()
        graph.add_nodes_from([*(name for name in schema if name in named), *(s for t in scopes for s in t)])
        graph.add_edges_from(pair for scope in scopes for pair in itertools.combinations(scope, 2))
    unknown = [name for name in graph if name not in schema]
    if unknown:
        raise ValueError(f"cliques has the variables {unknown}, which are not in schema; add their states")
    try:
        tables = learner._checked_cliques(graph, schema, scopes)
    except InferenceTooLarge:  # the last thing that is checked, and the preview itself says it
        names = (*graph, *levels_in(schema, scopes or ()))
        scopes = scopes or Cliques.from_graph(graph, schema.cardinalities).scopes
        tables = Cliques(names, tuple(map(schema.cardinality, names)), tuple(scopes))
    return graph, tables, weights


def _public_model(model: Any, schema: Schema, tables: Cliques) -> LogLinearModel:
    if not isinstance(model, LogLinearModel) and not hasattr(model, "to_log_linear"):
        raise TypeError(f"model is a {type(model).__name__}; pass a public MarkovNetwork or LogLinearModel, or None")
    plain = model if isinstance(model, LogLinearModel) else model.to_log_linear()
    sizes = dict(zip(plain.cliques.variables, plain.cliques.cardinalities, strict=True))
    for name in tables.variables:
        states = None if isinstance(model, LogLinearModel) else model.states.get(name)
        if sizes.get(name) != schema.cardinality(name) or (states is not None and tuple(states) != schema[name]):
            raise ValueError(
                f"model has not the states {schema[name]} of the variable {name!r}; make it with the same schema"
            )
    return plain


@dataclass(frozen=True)
class _Simulation:
    """Made-up records of a public model, learned from as the learner would.

    Attributes
    ----------
    graph, tables, schema, n
        What is learned, and of how many records.
    learner, budget, adjacency
        How, and what it would spend.
    source : LogLinearModel or None
        Where the records are drawn from; None for another random model each time.
    """

    graph: nx.Graph
    tables: Cliques
    schema: Schema
    n: int
    learner: BaseMarginalsEstimator
    budget: Budget
    adjacency: str
    source: LogLinearModel | None

    def run(self, rng: np.random.Generator) -> list[tuple[float, float]]:
        """Total variations of each table from the learned and from the uniform one."""
        tables, learner, truth = self.tables, self.learner, self.source
        levels = levels_in(self.schema, tables.scopes)
        if truth is None:
            truth = random_log_linear(leaf_tables(tables, levels), rng, memory_limit=learner.memory_limit)
        counts = drawn_tables(with_functions(obeying(truth, self.schema.zeros), levels), tables, self.n, rng)
        release = noisy_tables.rehearse(
            counts,
            self.schema,
            learner._as_checked()._settings(tables.scopes),
            self.budget,
            rng,
            adjacency=self.adjacency,
            n_records=learner.n_records,
        )
        model = with_functions(learner.fit_release(self.graph, release).model_.to_log_linear(), levels)
        fitted = model.marginals_of(tables.scopes)
        return [_distances(count, table, self.n) for count, table in zip(counts, fitted, strict=True)]


def _count_sd(tables: Cliques, noises: Sequence[Noise], n_records: int | None) -> float:
    """Standard deviation of the number of records that such tables tell; 0 where it is public."""
    empty = NoisyMarginals(
        tables,
        np.zeros(tables.n_cells),
        "laplace" if noises[0].distribution == "discrete_laplace" else "gaussian",
        np.array([item.scale for item in noises]),
        None if n_records is None else float(n_records),
    )
    return empty.n_records_sd


def _index(tables: Cliques) -> pd.Index:
    return pd.Index(list(tables.scopes), name="variables", tupleize_cols=False)


def _distances(count: np.ndarray, fitted: np.ndarray, n: int) -> tuple[float, float]:
    """Total variation of a table from the fitted and from the uniform one."""
    share = count / n
    return 0.5 * float(np.abs(share - fitted).sum()), 0.5 * float(np.abs(share - 1.0 / share.size).sum())


def _table(tables: Cliques, noises: Sequence[Noise], n: int, distances: np.ndarray) -> pd.DataFrame:
    cells = np.array(tables.sizes)
    least, most = (
        (distances[..., 0].min(axis=0), distances[..., 0].max(axis=0)) if len(distances) else (math.nan, math.nan)
    )
    mean = distances.mean(axis=0) if len(distances) else np.full((len(cells), 2), math.nan)
    return pd.DataFrame(
        {
            "cells": cells,
            "noise": [item.distribution for item in noises],
            "scale": [item.scale for item in noises],
            "sd": [math.sqrt(item.variance) for item in noises],
            "records_per_cell": n / cells,
            "released": cells * [mean_absolute(item) for item in noises] / (2.0 * n),
            "fitted": mean[:, 0],
            "fitted_least": least,
            "fitted_most": most,
            "uniform": mean[:, 1],
        },
        index=_index(tables),
    )


def mean_absolute(noise: Noise) -> float:
    """E abs(Z) of one cell's noise: ``1/sinh(1/scale)`` of the Laplace; of the Gaussian by its sum, or the normal's.

    Examples
    --------
    >>> [round(mean_absolute(Noise(kind, 2.0)), 3) for kind in ("discrete_laplace", "discrete_gaussian")]
    [1.919, 1.562]
    """
    if noise.distribution == "discrete_laplace":
        return 1.0 / math.sinh(1.0 / noise.scale) if noise.scale > 2e-3 else 0.0
    if noise.scale > 50.0:  # where the two differ by less than 1 in 30,000
        return noise.scale * math.sqrt(2.0 / math.pi)
    z = np.arange(1.0, 12.0 * noise.scale + 12.0)
    weights = np.exp(-0.5 * (z / noise.scale) ** 2)
    return float(2.0 * (z @ weights) / (1.0 + 2.0 * weights.sum()))


def _n_parameters(tables: Cliques) -> int:
    """Free parameters of the hierarchical log-linear model: one for each choice of non-first states of a subset."""
    subsets = {
        subset
        for scope in tables.indices
        for size in range(1, len(scope) + 1)
        for subset in itertools.combinations(sorted(scope), size)
    }
    return sum(math.prod(tables.cardinalities[i] - 1 for i in subset) for subset in subsets)


def _noise_text(table: pd.DataFrame) -> str:
    least, most = table["sd"].min(), table["sd"].max()
    sd = f"{least:,.3g}" if least == most else f"{least:,.3g} to {most:,.3g}"
    law = str(table["noise"].iloc[0]).replace("_", " ")
    return f"{law}, standard deviation {sd} in each cell; {table['records_per_cell'].median():,.3g} records a cell"


def _verdict(table: pd.DataFrame, fits: bool, n_simulations: int) -> str:
    if n_simulations and not fits:
        return (
            "exact inference does not fit the estimator's memory_limit, so nothing was simulated: use fewer edges, "
            'merge states, raise memory_limit, or learn with inference="loopy"'
        )
    error = table["fitted"] if fits and n_simulations else table["released"]
    worst = " - ".join(map(shown, error.idxmax()))
    mean, nothing = float(error.mean()), float(table["uniform"].mean())
    what = "the model's tables" if fits and n_simulations else "the noisy tables, before learning,"
    if mean > 0.5 * nothing or mean > 0.3:
        words = "mostly noise: ask for fewer or smaller tables, more budget or more records"
    elif mean > 0.1:
        words = "large cells can be trusted, small ones cannot"
    elif mean > 0.02:
        words = "usable: the large cells are right, rare ones are uncertain"
    else:
        words = "close to the records"
    return f"{words}; {what} are wrong by {mean:.2g} on average, {worst} by {error.max():.2g}"


LARGEST_SAMPLE = 1_000_000
_BATCH = 200_000  # records drawn at a time: sampling holds a few int64 columns for each


def random_log_linear(
    cliques: Cliques, rng: np.random.Generator, *, memory_limit: int = DEFAULT_MEMORY_LIMIT
) -> LogLinearModel:
    """A model with uneven variables and interactions from weak to strong, as survey data have them.

    The log-potential of a table is normal, independent over its cells, with a standard deviation that is uniform on
    [0, 1] for each table, over the root of the mean number of other variables that a variable is in tables with (if
    that is above 1), so that variables in many tables do not freeze. Each variable adds the logarithm of a
    Dirichlet(1) draw over its states.

    Parameters
    ----------
    cliques : Cliques
        The model's tables.
    rng : numpy.random.Generator
    memory_limit : int
        Of the model's inference.

    Examples
    --------
    >>> model = random_log_linear(Cliques(("a", "b"), (2, 3), (("a", "b"),)), np.random.default_rng(0))
    >>> model.marginals().shape
    (6,)
    """
    neighbours = {frozenset((i, j)) for scope in cliques.indices for i in scope for j in scope if i != j}
    degree = max(2.0 * len(neighbours) / max(len(cliques.variables), 1), 1.0)
    tables = [rng.normal(size=shape) * rng.uniform(0.0, 1.0) / np.sqrt(degree) for shape in cliques.shapes]
    for i, size in enumerate(cliques.cardinalities):
        effect = np.log(np.maximum(rng.dirichlet(np.ones(size)), 1e-12))
        home = next((c for c, scope in enumerate(cliques.indices) if i in scope), None)
        if home is not None:
            shape = [1] * tables[home].ndim
            shape[cliques.indices[home].index(i)] = size
            tables[home] = tables[home] + effect.reshape(shape)
    return LogLinearModel(cliques, cliques.join(tables), memory_limit)


def drawn_tables(model: LogLinearModel, cliques: Cliques, n: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Contingency tables of n records drawn from a model; above `LARGEST_SAMPLE`, of the expected counts, rounded.

    With so many records the deviation of a drawn count, at most the root of the count, is one thousandth of n or less.

    Parameters
    ----------
    model : LogLinearModel
        Has all variables of `cliques`, with their numbers of states.
    cliques : Cliques
        The tables.
    n : int
    rng : numpy.random.Generator

    Returns
    -------
    list of ndarray of int64
        Up to `LARGEST_SAMPLE` each sums to n and all are of the same records.

    Examples
    --------
    >>> cliques = Cliques(("a",), (2,), (("a",),))
    >>> drawn_tables(LogLinearModel(cliques, np.zeros(2)), cliques, 2_000_000, np.random.default_rng(0))
    [array([1000000, 1000000])]
    """
    if n > LARGEST_SAMPLE:
        return [np.rint(n * table).astype(np.int64) for table in model.marginals_of(cliques.scopes)]
    flat = [np.zeros(size, dtype=np.int64) for size in cliques.sizes]
    columns = [[model.cliques.position[name] for name in scope] for scope in cliques.scopes]
    for start in range(0, n, _BATCH):
        codes = model.sample(min(_BATCH, n - start), rng)
        for table, scope, shape in zip(flat, columns, cliques.shapes, strict=True):
            table += np.bincount(np.ravel_multi_index([codes[:, i] for i in scope], shape), minlength=len(table))
    return [table.reshape(shape) for table, shape in zip(flat, cliques.shapes, strict=True)]
