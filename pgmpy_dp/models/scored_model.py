"""A model that is compared with records: its tables, in the states in which the records are counted."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from pgmpy.models import DiscreteBayesianNetwork, DiscreteMarkovNetwork

from pgmpy_dp.checks import checked_weight
from pgmpy_dp.inference.belief_propagation import SumProduct
from pgmpy_dp.inference.junction_tree import DEFAULT_MEMORY_LIMIT
from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.inference.scope_marginals import ScopeMarginals
from pgmpy_dp.learning.level_engine import at_levels
from pgmpy_dp.learning.level_plan import levels_in
from pgmpy_dp.learning.public_graph import checked_graph
from pgmpy_dp.models.conversion import factors_to_log_linear
from pgmpy_dp.models.markov_network import MarkovNetwork
from pgmpy_dp.models.placed_model import PlacedModel
from pgmpy_dp.schema import Schema

_DRAWN = 500
"""Sets of one size at most, of those that nobody has named."""

_MOST_VARIABLES = 8
_CELLS_OF_DRAWN, _CELLS_OF_ONE, _CELLS_OF_ALL = 50_000, 1_000_000, 20_000_000

Scope = tuple[Hashable, ...]


@dataclass(frozen=True)
class Mean:
    """The tables that one score is a mean over.

    Parameters
    ----------
    weights : mapping of int to float
        Of tables, by their places: positive.
    """

    name: str
    weights: Mapping[int, float]


@dataclass(frozen=True, eq=False)
class ModelTables:
    """A model on a workload, in the states in which the records are counted.

    Parameters
    ----------
    scopes : sequence of tuples of variables
    tables : sequence of ndarray
        Probabilities.
    means : sequence of Mean
    digest : str
        The digest of the model.
    merged : (Schema, mapping of variable to places), optional
        States to count in, where they are not the records' own; see
        :meth:`~pgmpy_dp.private.curator.curator_base.Curator.merge`.
    discovered : sequence of mapping
        The cost of finding the model's states (`Schema.discovered`), which is part of the model's cost.
    """

    scopes: Sequence[tuple[Hashable, ...]]
    tables: Sequence[np.ndarray]
    means: Sequence[Mean]
    digest: str
    merged: tuple[Schema, Mapping[Hashable, Sequence[int]]] | None = None
    discovered: Sequence[Mapping[str, Any]] = ()

    @property
    def weights(self) -> np.ndarray:
        """Weights of the tables in each mean, shape (n_means, n_tables)."""
        weights = np.zeros((len(self.means), len(self.scopes)))
        for row, mean in zip(weights, self.means, strict=True):
            row[list(mean.weights)] = list(mean.weights.values())
        return weights


def schema_of_model(model: Any, schema: Schema | None = None) -> Schema:
    """The schema that reads records in a model's states; ValueError where rare states were merged, which none can read.

    Parameters
    ----------
    model : as `pgmpy_dp.score_model` takes it
    schema : Schema, optional
        Another one to read them by.

    Returns
    -------
    Schema
        Without the costs that the model's own contains (`Schema.discovered`). Its states may have been found in other
        people's records: to count records in these states tells no more of those people than the model does.

    Examples
    --------
    >>> from pgmpy.factors.discrete import DiscreteFactor
    >>> model = MarkovNetwork()
    >>> model.add_node("a")
    >>> model.add_factors(DiscreteFactor(["a"], [2], [1, 3], state_names={"a": ["no", "yes"]}))
    >>> schema_of_model(model)["a"]
    ('no', 'yes')
    """
    return ScoredModel.of(model).reading(schema)


@dataclass(frozen=True, eq=False)
class ScoredModel(PlacedModel):
    """The model that the argument ``model`` stands for."""

    @classmethod
    def of(cls, model: Any) -> ScoredModel:
        """Read the argument ``model``; TypeError or ValueError for what is no model of discrete variables."""
        if isinstance(model, str | os.PathLike):
            model = _read(model)
        model = getattr(model, "model_", model)  # of an estimator
        if not isinstance(model, DiscreteMarkovNetwork | DiscreteBayesianNetwork):
            raise TypeError(
                f"model is a {type(model).__name__}; pass a MarkovNetwork, pgmpy's Markov or Bayesian network, a "
                "fitted estimator that has one, or the path of a model's file"
            )
        if not (model.factors if isinstance(model, DiscreteMarkovNetwork) else model.cpds):
            raise ValueError("model has no parameters; fit it first")
        if isinstance(model, MarkovNetwork):
            scored = cls.of_network(model)
        else:
            model.check_model()
            network = model.to_markov_model() if isinstance(model, DiscreteBayesianNetwork) else model
            plain = factors_to_log_linear(network.factors, network.nodes, DEFAULT_MEMORY_LIMIT, "auto")
            scored = cls(plain, {v: tuple(f.state_names[v]) for f in network.factors for v in f.variables})
        if scored.model.inference == "exact" and not scored.model.is_possible:
            raise ValueError("model gives every record the probability 0; correct its factors")
        return scored

    def tables(self, schema: Schema | None, workload: Any) -> ModelTables:
        """The model's tables of a workload, in the states and by the levels in which a schema counts records."""
        sizes = {name: len(states) for name, states in self.states.items()}
        orders: dict[Hashable, list[int]] = {}
        merged = None
        if schema is not None:
            orders, merged = self.placed(schema.fine())
        counted = schema or self.read_schema or Schema(dict(self.states)) if merged is None else merged[0]
        levels = levels_in(counted, [counted.levels])
        if workload is not None:
            sizes |= {name: counted.cardinality(name) for name, (variable, _) in levels.items() if variable in sizes}
        scopes, means = _workload(self.model, sizes, workload)
        leaves = [tuple(counted.leaf_scope(scope, "workload")) for scope in scopes]
        _require_size(leaves, sizes)
        tables = _marginals(self.model, leaves)
        for k, scope in enumerate(leaves):
            table = np.maximum(tables[k], 0.0)
            for axis, name in enumerate(scope):
                table = np.take(table, orders[name], axis=axis) if name in orders else table
            tables[k] = table / table.sum()
        return ModelTables(scopes, at_levels(tables, scopes, levels), means, self.digest, merged, self.discovered)


def _marginals(model: LogLinearModel, scopes: Sequence[Scope]) -> list[np.ndarray]:
    """Tables of any sets, many of them, axes in the order of each: from one junction tree, the model's own."""
    if model.inference != "exact":
        return model.marginals_of(scopes)
    places = [[model.cliques.position[name] for name in scope] for scope in scopes]
    orders = [np.argsort(place) for place in places]
    source = ScopeMarginals(model.cliques, model.theta, SumProduct(model.cliques, memory_limit=model.memory_limit))
    tables = source.tables([tuple(sorted(place)) for place in places])
    return [np.transpose(table, np.argsort(order)) for table, order in zip(tables, orders, strict=True)]


def _read(path: str | os.PathLike) -> MarkovNetwork:
    if not os.path.isfile(path):
        raise ValueError(f"model={os.fspath(path)!r} is no file; pass that of a model")
    try:
        return MarkovNetwork.load(path)
    except ValueError:
        raise ValueError(f"model={os.fspath(path)!r} is no model's file; pass one that fit or save wrote") from None


def _workload(model: LogLinearModel, sizes: Mapping[Hashable, int], workload: Any) -> tuple[list[Scope], list[Mean]]:
    """The workload's sets of variables, each once, and the means over them."""
    if workload is not None:
        return _requested(sizes, workload)
    names = list(sizes)
    groups: dict[str, list[Scope]] = {}
    if model.inference != "exact":
        measured = dict.fromkeys(model.cliques.scopes)
        groups = {what: [s for s in measured if len(s) == k] for k, what in ((2, "pairs"), (3, "triples"))}
    else:
        for k, what in ((2, "pairs"), (3, "triples")):
            some = (tuple(names[j] for j in places) for places in _drawn(len(names), k))
            groups[what] = [scope for scope in some if math.prod(sizes[v] for v in scope) <= _CELLS_OF_DRAWN]
    groups = {what: group for what, group in groups.items() if group} or {"variables": [(name,) for name in names]}
    scopes: list[Scope] = []
    means = []
    for what, group in groups.items():
        means.append(Mean(what, dict.fromkeys(range(len(scopes), len(scopes) + len(group)), 1.0)))
        scopes += group
    _require_size(scopes, sizes)
    return scopes, means


def _requested(sizes: Mapping[Hashable, int], workload: Any) -> tuple[list[Scope], list[Mean]]:
    weights = list(workload.values()) if isinstance(workload, Mapping) else None
    named = checked_graph(workload, "workload", sizes=tuple(range(1, _MOST_VARIABLES + 1)))
    unknown = sorted({repr(name) for scope in named for name in scope if name not in sizes})
    if unknown:
        raise ValueError(f"workload has the unknown variables {', '.join(unknown)}; the model has {list(sizes)}")
    if not named:
        raise ValueError("workload is empty; pass sets of variables, or None for pairs and triples")
    merged: dict[frozenset, tuple[Scope, float]] = {}
    for k, scope in enumerate(named):
        weight = 1.0 if weights is None else checked_weight(f"workload[{scope!r}]", weights[k])
        first, before = merged.get(frozenset(scope), (scope, 0.0))
        merged[frozenset(scope)] = first, before + weight
    scopes = [scope for scope, _ in merged.values()]
    _require_size(scopes, sizes)
    return scopes, [Mean("workload", {k: weight for k, (_, weight) in enumerate(merged.values())})]


def _require_size(scopes: Iterable[Scope], sizes: Mapping[Hashable, int]) -> None:
    cells = {scope: math.prod(sizes[name] for name in scope) for scope in scopes}
    largest = max(cells, key=lambda scope: cells[scope])
    if cells[largest] > _CELLS_OF_ONE or sum(cells.values()) > _CELLS_OF_ALL:
        raise ValueError(
            f"workload has tables of {sum(cells.values()):,} cells, {largest!r} alone {cells[largest]:,}; ask for at "
            f"most {_CELLS_OF_ONE:,} in one and {_CELLS_OF_ALL:,} in all: for fewer sets, or for smaller ones"
        )


def _drawn(n: int, order: int) -> Iterator[tuple[int, ...]]:
    """All sets of so many places, or `_DRAWN` of them: drawn by a fixed public generator, in its order."""
    total = math.comb(n, order)
    if total <= _DRAWN:
        yield from itertools.combinations(range(n), order)
        return
    rng = np.random.default_rng(order)
    seen: set[tuple[int, ...]] = set()
    while len(seen) < _DRAWN:
        places = tuple(sorted(rng.choice(n, size=order, replace=False).tolist()))
        if places not in seen:
            seen.add(places)
            yield places
