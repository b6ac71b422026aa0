"""Synthetic populations with known parameters, their records' tables, and noisy copies of these.

The populations of Bernstein et al. (2017), section 4.1: pairwise models on 10 nodes whose edge
potentials are Dirichlet(1) draws over all cells of the edge. Trials are nested as there: a
population is a model and its N records; each population gets several noise draws.

Everything here is made up and public, so the noise comes from a seeded numpy generator and
not from the exact samplers of ``pgmpy_dp.private``.
"""

from __future__ import annotations

from dataclasses import dataclass

import networkx as nx
import numpy as np

from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.learning.noisy_marginals import NoisyMarginals

__all__ = [
    "KINDS",
    "MAIN_KINDS",
    "Population",
    "make_graph",
    "make_population",
    "noisy_tables",
    "sample_counts",
    "sample_records",
]

KINDS: dict[str, str] = {
    "chain1": "first-order chain",
    "er": "Erdos-Renyi p = .3",
    "chain3": "third-order chain",
    "er_weak": "Erdos-Renyi, log-potentials x .3",
    "er_half": "Erdos-Renyi, half of the edges without interaction",
    "er_unequal": "Erdos-Renyi, 2 to 15 states",
}
"""The kinds of population and what the tables call them."""

MAIN_KINDS = ("chain1", "er", "chain3")
"""The graphs of the paper and the first-order chain; the others are variants."""

_BATCH = 200_000  # records drawn at a time: sampling holds a few int64 columns per record


@dataclass(frozen=True)
class Population:
    """A known model, and where it came from.

    Attributes
    ----------
    kind : str
        One of `KINDS`.
    seed, index : int
        What it was drawn from.
    model : LogLinearModel
        Edge potentials in ``model.theta``.
    """

    kind: str
    seed: int
    index: int
    model: LogLinearModel

    def rng(self, purpose: str, *numbers: int) -> np.random.Generator:
        """An independent generator for one purpose, the same in every run."""
        return _generator(self.seed, self.index, self.kind, purpose, *numbers)


def make_graph(kind: str, n_nodes: int, rng: np.random.Generator) -> nx.Graph:
    """The graph of a kind of population on nodes "x0", "x1", ...

    Parameters
    ----------
    kind : str
        One of `KINDS`.
    n_nodes : int
        Number of nodes.
    rng : numpy.random.Generator
        For the random graphs, which are drawn again until connected; chains ignore it.

    Raises
    ------
    ValueError
        If the kind is unknown.

    Examples
    --------
    >>> import numpy as np
    >>> make_graph("chain3", 10, np.random.default_rng(0)).number_of_edges()
    24
    """
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {tuple(KINDS)}, got {kind!r}")
    names = [f"x{i}" for i in range(n_nodes)]
    graph = nx.Graph()
    graph.add_nodes_from(names)
    pairs = [(i, j) for i in range(n_nodes) for j in range(i + 1, n_nodes)]
    if kind in ("chain1", "chain3"):
        order = int(kind[-1])
        graph.add_edges_from((names[i], names[j]) for i, j in pairs if j - i <= order)
        return graph
    while True:
        kept = rng.random(len(pairs)) < 0.3
        graph.remove_edges_from(list(graph.edges))
        graph.add_edges_from((names[i], names[j]) for (i, j), keep in zip(pairs, kept, strict=True) if keep)
        if nx.is_connected(graph):
            return graph


def make_population(kind: str, *, seed: int, index: int, n_nodes: int = 10, n_states: int = 10) -> Population:
    """Draw the parameters of one population.

    The log-potentials of an edge are the logarithms of a Dirichlet(1) draw over its cells. The
    Erdos-Renyi kinds of one index share their graph, so that they differ in one respect each.

    Parameters
    ----------
    kind : str
        One of `KINDS`. "er_weak" multiplies the log-potentials by .3; "er_half" sets them to zero on
        a random half of the edges, which stay in the graph; "er_unequal" draws each node's
        cardinality uniformly from 2 to 15.
    seed, index : int
        Populations are independent between seeds and between indices.
    n_nodes, n_states : int
        Size; "er_unequal" ignores n_states.

    Examples
    --------
    >>> make_population("er_half", seed=1, index=0).model.cliques.n_cells % 100
    0
    """
    family = "er" if kind.startswith("er") else kind
    graph = make_graph(kind, n_nodes, _generator(seed, index, family, "graph"))
    rng = _generator(seed, index, kind, "potentials")
    states = rng.integers(2, 16, n_nodes) if kind == "er_unequal" else np.full(n_nodes, n_states)
    cliques = Cliques.from_graph(graph, dict(zip(graph.nodes, states.tolist(), strict=True)))
    tables = [np.log(rng.dirichlet(np.ones(size))).reshape(s) for size, s in _sizes_and_shapes(cliques)]
    if kind == "er_weak":
        tables = [0.3 * table for table in tables]
    if kind == "er_half":
        for k in rng.permutation(len(tables))[: len(tables) // 2]:
            tables[k] = np.zeros_like(tables[k])
    return Population(kind, seed, index, LogLinearModel(cliques, cliques.join(tables)))


def sample_counts(model: LogLinearModel, n_records: int, rng: np.random.Generator) -> np.ndarray:
    """Exact contingency tables of `n_records` records drawn from a model.

    Returns
    -------
    ndarray of shape (n_cells,), int64
        Each table sums to `n_records`.
    """
    cliques = model.cliques
    tables = [np.zeros(size, dtype=np.int64) for size in cliques.sizes]
    for start in range(0, n_records, _BATCH):
        codes = model.sample(min(_BATCH, n_records - start), rng)
        for table, scope, shape in zip(tables, cliques.indices, cliques.shapes, strict=True):
            cells = np.ravel_multi_index(tuple(codes[:, i] for i in scope), shape)
            table += np.bincount(cells, minlength=len(table))
    return np.concatenate(tables)


def sample_records(model: LogLinearModel, n_records: int, rng: np.random.Generator) -> np.ndarray:
    """The records, shape (n_records, n_variables), whose tables :func:`sample_counts` gives for the same generator."""
    return np.concatenate([model.sample(min(_BATCH, n_records - k), rng) for k in range(0, n_records, _BATCH)])


def noisy_tables(
    cliques: Cliques, counts: np.ndarray, epsilon: float, rng: np.random.Generator, *, total: float | None = None
) -> NoisyMarginals:
    """Counts plus discrete Laplace noise of scale b = n_cliques / epsilon, as the marginals release adds it.

    Parameters
    ----------
    cliques : Cliques
        The tables.
    counts : ndarray of shape (n_cells,)
        Exact counts.
    epsilon : float
        Pure privacy parameter under add_remove adjacency: one record is in one cell of each table.
    rng : numpy.random.Generator
        Source of the noise.
    total : float, optional
        The record count, where it is taken as public.
    """
    scale = cliques.n_cliques / epsilon
    # The difference of two geometric variables is the discrete Laplace distribution of ratio exp(-1/scale).
    success = -np.expm1(-1.0 / scale)
    noise = rng.geometric(success, len(counts)) - rng.geometric(success, len(counts))
    return NoisyMarginals(cliques, counts + noise, "laplace", np.full(cliques.n_cliques, scale), total)


def _sizes_and_shapes(cliques: Cliques) -> list[tuple[int, tuple[int, ...]]]:
    return list(zip(cliques.sizes, cliques.shapes, strict=True))


def _generator(*keys: int | str) -> np.random.Generator:
    # Strings become their bytes: unlike hash(), the same number in every process.
    return np.random.default_rng([int.from_bytes(k.encode()) if isinstance(k, str) else k for k in keys])
