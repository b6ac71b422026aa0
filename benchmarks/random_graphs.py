"""Random fields on given graphs, with a width, a smallest edge weight or a weight that is met exactly.

For tests and benchmarks: the guarantees of the learners are stated in the width and the smallest weight.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import networkx as nx
import numpy as np

from pgmpy_dp.fields.random_fields import BinaryField, Ising, Pairwise

__all__ = ["named_graph", "random_binary_field", "random_hyperedges", "random_ising", "random_pairwise"]


def named_graph(kind: str, p: int, rng: np.random.Generator, degree: int = 3) -> nx.Graph:
    """A graph on the nodes 0 .. p-1.

    Parameters
    ----------
    kind : {"tree", "grid", "regular", "star", "complete"}
        "tree": uniform over labelled trees. "grid": a by b with a the largest divisor of p up to its root. "regular":
        random, each node with `degree` neighbours. "star": node 0 in the middle.
    p : int
        Number of nodes.
    rng : numpy.random.Generator
    degree : int
        Of "regular"; p * degree must be even.

    Examples
    --------
    >>> sorted(dict(named_graph("star", 4, np.random.default_rng(0)).degree).values())
    [1, 1, 1, 3]
    """
    if kind == "tree":
        return nx.from_prufer_sequence(rng.integers(p, size=p - 2).tolist()) if p > 2 else nx.path_graph(p)
    if kind == "grid":
        rows = max(a for a in range(1, math.isqrt(p) + 1) if p % a == 0)
        return nx.convert_node_labels_to_integers(nx.grid_2d_graph(rows, p // rows), ordering="sorted")
    if kind == "regular":
        graph = nx.random_regular_graph(degree, p, seed=int(rng.integers(2**31)))
        if list(graph) != list(range(p)):  # before NetworkX 3.3 its vertices stand in the order of its draws
            drawn, graph = graph, nx.empty_graph(p)
            graph.add_edges_from(drawn.edges)
        return graph
    if kind == "star":
        return nx.star_graph(p - 1)
    if kind == "complete":
        return nx.complete_graph(p)
    raise ValueError(f'kind={kind!r} must be "tree", "grid", "regular", "star" or "complete"')


def random_hyperedges(p: int, size: int, n: int, rng: np.random.Generator) -> list[tuple[int, ...]]:
    """n distinct sets of `size` of the positions 0 .. p-1, uniform over such collections, in order.

    Examples
    --------
    >>> len(set(random_hyperedges(10, 3, 20, np.random.default_rng(0))))
    20
    """
    if not 0 <= n <= math.comb(p, size):
        raise ValueError(f"n={n} must be at most the {math.comb(p, size)} sets of {size} of {p} positions")
    chosen: set[tuple[int, ...]] = set()
    while len(chosen) < n:
        chosen.add(tuple(sorted(rng.choice(p, size=size, replace=False).tolist())))
    return sorted(chosen)


def random_ising(
    graph: nx.Graph,
    rng: np.random.Generator,
    *,
    weight: float | None = None,
    width: float | None = None,
    min_weight: float | None = None,
    field: float = 0.0,
    attractive: bool = False,
) -> Ising:
    """Ising model on a graph, whose nodes become positions in their order.

    Fields are uniform on [-field, field]. Weights have random signs, and one of

    * ``weight``: this size each;
    * ``width``: sizes uniform on [1/2, 1], all scaled so that the width is the given one;
    * ``width`` and ``min_weight``: the smallest size is `min_weight`, and what the others have above it is scaled so
      that the width is the given one.

    Parameters
    ----------
    graph : networkx.Graph
    rng : numpy.random.Generator
    weight, width, min_weight : float, optional
    field : float
        Largest size of a field.
    attractive : bool
        All weights positive.

    Raises
    ------
    ValueError
        If neither or both of `weight` and `width` are given, or the width cannot be met: the fields alone, or together
        with weights of `min_weight`, exceed it, or (with `min_weight`) there is only one edge.

    Examples
    --------
    >>> model = random_ising(nx.cycle_graph(6), np.random.default_rng(0), width=1.2, min_weight=0.3)
    >>> round(model.width, 12), model.min_edge_weight, len(model.edges())
    (1.2, 0.3, 6)
    """
    p, pairs = _pairs(graph)
    fields = rng.uniform(-1, 1, p) * field
    sizes = _sizes(_incidence(p, pairs), np.abs(fields), rng, weight, width, min_weight)
    weights = np.zeros((p, p))
    for (i, j), value in zip(pairs, sizes * _signs(len(pairs), rng, attractive), strict=True):
        weights[i, j] = weights[j, i] = value
    return Ising(weights, fields)


def random_pairwise(
    graph: nx.Graph,
    cardinalities: int | Sequence[int],
    rng: np.random.Generator,
    *,
    weight: float | None = None,
    width: float | None = None,
    min_weight: float | None = None,
    field: float = 0.0,
) -> Pairwise:
    """Centred pairwise model on a graph: tables are Gaussian, centred, and scaled by sizes as in `random_ising`.

    The size of a table is its largest absolute entry, so that `min_weight` and `width` have the meaning they have in
    :class:`~pgmpy_dp.fields.random_fields.Pairwise`. Fields are uniform on [-field, field], then centred.

    Parameters
    ----------
    graph : networkx.Graph
    cardinalities : int or sequence of int
        Numbers of states, 2 or more, of all nodes or of each.
    rng, weight, width, min_weight, field
        As in `random_ising`.

    Raises
    ------
    ValueError
        As in `random_ising`.

    Examples
    --------
    >>> model = random_pairwise(nx.path_graph(4), 3, np.random.default_rng(0), width=1.5)
    >>> round(model.width, 12)
    1.5
    """
    p, pairs = _pairs(graph)
    states = [cardinalities] * p if isinstance(cardinalities, int) else [int(k) for k in cardinalities]
    if len(states) != p or min(states, default=2) < 2:
        raise ValueError(f"cardinalities must be 2 or more for each of the {p} nodes, got {cardinalities!r}")
    fields = [theta - theta.mean() for theta in (rng.uniform(-1, 1, k) * field for k in states)]
    ends = np.cumsum([0, *states])
    loads = np.zeros((sum(states), len(pairs)))  # how much of a table's size the width of (variable, state) has
    shapes = []
    for e, (i, j) in enumerate(pairs):
        table = rng.normal(size=(states[i], states[j]))
        table = table - table.mean(axis=1, keepdims=True) - table.mean(axis=0) + table.mean()
        table /= np.abs(table).max()
        shapes.append(table)
        loads[ends[i] : ends[i + 1], e] = np.abs(table).max(axis=1)
        loads[ends[j] : ends[j + 1], e] = np.abs(table).max(axis=0)
    fixed = np.abs(np.concatenate([np.zeros(0), *fields]))
    sizes = _sizes(loads, fixed, rng, weight, width, min_weight)
    tables = {pair: size * shape for pair, size, shape in zip(pairs, sizes, shapes, strict=True)}
    return Pairwise(tuple(fields), tables)


def random_binary_field(
    p: int,
    hyperedges: Iterable[Sequence[int]],
    rng: np.random.Generator,
    *,
    weight: float | None = None,
    width: float | None = None,
    min_weight: float | None = None,
    field: float = 0.0,
    attractive: bool = False,
) -> BinaryField:
    """Binary t-wise field with one monomial for each hyperedge, sizes and signs as in `random_ising`.

    Parameters
    ----------
    p : int
        Number of variables.
    hyperedges : iterable of sequence of int
        Sets of two or more positions.
    rng, weight, width, min_weight, field, attractive
        As in `random_ising`.

    Raises
    ------
    ValueError
        As in `random_ising`; or if a hyperedge has fewer than two positions.

    Examples
    --------
    >>> model = random_binary_field(5, [(0, 1, 2), (2, 3, 4)], np.random.default_rng(0), weight=0.4)
    >>> model.width, model.order
    (0.8, 3)
    """
    subsets = [tuple(sorted(int(i) for i in edge)) for edge in hyperedges]
    if any(len(subset) < 2 for subset in subsets):
        raise ValueError("hyperedges must have two or more positions each; `field` is for single variables")
    fields = rng.uniform(-1, 1, p) * field
    sizes = _sizes(_incidence(p, subsets), np.abs(fields), rng, weight, width, min_weight)
    values = sizes * _signs(len(subsets), rng, attractive)
    linear = {(i,): float(value) for i, value in enumerate(fields)}
    return BinaryField(p, linear | dict(zip(subsets, values.tolist(), strict=True)))


def _pairs(graph: nx.Graph) -> tuple[int, list[tuple[int, int]]]:
    position = {node: i for i, node in enumerate(graph)}
    pairs = sorted((min(position[u], position[v]), max(position[u], position[v])) for u, v in graph.edges)
    return len(position), pairs


def _incidence(p: int, subsets: Sequence[tuple[int, ...]]) -> np.ndarray:
    incidence = np.zeros((p, len(subsets)))
    for e, subset in enumerate(subsets):
        incidence[list(subset), e] = 1
    return incidence


def _signs(n: int, rng: np.random.Generator, attractive: bool) -> np.ndarray:
    return np.ones(n) if attractive else rng.choice([-1.0, 1.0], size=n)


def _sizes(
    loads: np.ndarray,
    fixed: np.ndarray,
    rng: np.random.Generator,
    weight: float | None,
    width: float | None,
    min_weight: float | None,
) -> np.ndarray:
    """Sizes m with max(loads @ m + fixed) equal to the width: m = base + scale * shape, the largest possible scale."""
    if (weight is None) == (width is None):
        raise ValueError(f"give either weight or width, got weight={weight!r} and width={width!r}")
    n = loads.shape[1]
    if width is None:
        if min_weight is not None:
            raise ValueError(f"min_weight={min_weight!r} goes with width; weight={weight!r} sets all sizes")
        return np.full(n, float(weight or 0.0))
    shape: np.ndarray = rng.uniform(0.5, 1.0, size=(n,))
    base = np.zeros(n)
    if min_weight is not None:
        shape = shape - shape.min(initial=1.0)
        base = np.full(n, float(min_weight))
    needed, slope = fixed + loads @ base, loads @ shape
    if needed.max(initial=0.0) > width * (1 + 1e-12) or not slope.any():
        raise ValueError(
            f"width={width!r} cannot be met: fields"
            + ("" if min_weight is None else f" and weights of min_weight={min_weight!r}")
            + f" have a width of {needed.max(initial=0.0):.6g}, and {np.count_nonzero(shape)} weights can be scaled"
        )
    scalable = slope > 0
    return base + shape * max(float(((width - needed[scalable]) / slope[scalable]).min()), 0.0)
