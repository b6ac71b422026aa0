"""One sweep of Gibbs sampling over all variables of a random field, for many chains at once.

Binary fields are updated a colour class at a time: variables no two of which are in a monomial together are
conditionally independent given the rest, so a class is one sparse matrix product over all chains. States are stored
as z = 2 code - 1 with one more value, 0, for "not known": then the same product bounds a conditional probability from
below and above whatever the unknown variables are, which is what coupling from the past needs.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import networkx as nx
import numpy as np
from scipy import sparse

from pgmpy_dp.fields.random_fields import BinaryField, Pairwise, RandomField

__all__ = ["BinaryGlauber", "PairwiseGlauber", "half_logistic"]


@dataclass(frozen=True, eq=False)
class _Block:
    """The variables of one colour: their fields, and the products of others that their conditionals depend on."""

    nodes: np.ndarray  # (c,)
    fields: np.ndarray  # (c, 1)
    factors: np.ndarray  # (m, t - 1): rows of the state whose product is a feature; padded with the row of ones
    weights: sparse.csr_array  # (c, m)
    magnitudes: sparse.csr_array  # (c, m)


class BinaryGlauber:
    """Systematic-scan heat bath of a binary field, with bounds for variables that are not known.

    Parameters
    ----------
    field : BinaryField
        By Lemma 4.1 of Zhang et al. (2020) Pr(z_i = 1 | the others) = sigma(2 d_i h(z)).
    """

    def __init__(self, field: BinaryField) -> None:
        self.n_variables = p = field.n_variables
        graph = nx.empty_graph(p)
        graph.add_edges_from(field.edges())
        colour = nx.greedy_color(graph, strategy="largest_first")
        linear = np.zeros(p)
        rests: list[list[tuple[tuple[int, ...], float]]] = [[] for _ in range(p)]
        for subset, value in field.coefficients.items():
            for i in subset:
                if len(subset) == 1:
                    linear[i] = value
                else:
                    rests[i].append((tuple(j for j in subset if j != i), value))
        classes = [[i for i in range(p) if colour[i] == c] for c in range(max(colour.values(), default=-1) + 1)]
        self._blocks = [self._block(nodes, linear, rests, max(field.order - 1, 1)) for nodes in classes]

    def _block(self, nodes: list[int], linear: np.ndarray, rests: list, width: int) -> _Block:
        features = {rest: k for k, rest in enumerate(dict.fromkeys(rest for i in nodes for rest, _ in rests[i]))}
        factors = np.full((len(features), width), self.n_variables, dtype=np.intp)
        for rest, k in features.items():
            factors[k, : len(rest)] = rest
        entries = [(row, features[rest], value) for row, i in enumerate(nodes) for rest, value in rests[i]]
        places = np.array([entry[:2] for entry in entries], dtype=np.intp).reshape(-1, 2)
        values = np.array([value for *_, value in entries], dtype=np.float32)
        weights = sparse.csr_array((values, tuple(places.T)), shape=(len(nodes), len(features)))
        fields = linear[nodes].astype(np.float32)[:, None]
        return _Block(np.array(nodes), fields, factors, weights, abs(weights))

    def unknown(self, n: int) -> np.ndarray:
        """State of n chains of which nothing is known: shape (p + 1, n); the last row, of ones, is not a variable."""
        state = np.zeros((self.n_variables + 1, n), dtype=np.float32)
        state[-1] = 1
        return state

    def start(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Independent uniform states for n chains, as `unknown` lays them out."""
        state = self.unknown(n)
        state[:-1] = np.where(rng.random((self.n_variables, n)) < 0.5, np.float32(-1), np.float32(1))
        return state

    def sweep(self, state: np.ndarray, threshold: np.ndarray, bounded: bool) -> None:
        """Update every variable once, in place.

        Variable i becomes +1 where threshold_i < d_i h: for half-logistic thresholds, with the conditional probability.

        Parameters
        ----------
        state : ndarray of shape (p + 1, n), float32
            -1, +1, or 0 where not known.
        threshold : ndarray of shape (p, n), float32
            Of `half_logistic`.
        bounded : bool
            Whether some of the state may be 0: then a variable is 0 afterwards unless all values of the unknown
            ones lead to the same update. Feature by feature d_i h is within |c_I| of what the known ones give.
        """
        for block in self._blocks:
            features = state[block.factors[:, 0]]
            for column in block.factors.T[1:]:
                features *= state[column]
            centre = block.weights @ features + block.fields
            drawn = threshold[block.nodes]
            if bounded:
                radius = block.magnitudes @ (1 - np.abs(features))
                up, down = drawn < centre - radius, drawn >= centre + radius
                state[block.nodes] = up.astype(np.float32) - down.astype(np.float32)
            else:
                state[block.nodes] = np.where(drawn < centre, np.float32(1), np.float32(-1))


def half_logistic(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Half of standard logistic variables, float32: Pr(value < x) = sigma(2 x) up to the 24 bits of the draw."""
    # 1 - u is in (0, 1]: never log(0) in the denominator; u = 0 gives -inf, below any field, as it should.
    uniform = rng.random(shape, dtype=np.float32)
    with np.errstate(divide="ignore"):
        return np.log(uniform / (1 - uniform)) / 2


class PairwiseGlauber:
    """Systematic-scan heat bath of a pairwise field: each variable in turn, all chains at once.

    Parameters
    ----------
    field : Pairwise
    """

    def __init__(self, field: Pairwise) -> None:
        self.cardinalities = field.cardinalities
        ends = np.cumsum([0, *field.cardinalities])
        self._slots = [slice(int(a), int(b)) for a, b in itertools.pairwise(ends)]
        columns: list[list[np.ndarray]] = [[] for _ in field.fields]
        tables: list[list[np.ndarray]] = [[] for _ in field.fields]
        for (i, j), table in field.weights.items():
            for here, there, values in ((i, j, table), (j, i, table.T)):
                columns[here].append(np.arange(self._slots[there].start, self._slots[there].stop))
                tables[here].append(values.astype(np.float32))
        self._fields = [theta.astype(np.float32)[:, None] for theta in field.fields]
        self._columns = [np.concatenate([np.zeros(0, dtype=np.intp), *found]) for found in columns]
        self._tables = [
            np.hstack([np.zeros((k, 0), dtype=np.float32), *found])
            for k, found in zip(field.cardinalities, tables, strict=True)
        ]

    def start(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Independent uniform states for n chains, one-hot: shape (sum of k_i, n), float32."""
        state = np.zeros((sum(self.cardinalities), n), dtype=np.float32)
        for slot, k in zip(self._slots, self.cardinalities, strict=True):
            state[slot.start + rng.integers(k, size=n), np.arange(n)] = 1
        return state

    def sweep(self, state: np.ndarray, uniform: np.ndarray) -> None:
        """Draw every variable once from its conditional distribution, in place, inverting it at uniform[i]."""
        for i, (slot, theta, columns, table) in enumerate(
            zip(self._slots, self._fields, self._columns, self._tables, strict=True)
        ):
            logits = theta + table @ state[columns]
            cumulative = np.cumsum(np.exp(logits - logits.max(axis=0)), axis=0)
            # The first state whose cumulative weight exceeds the draw.
            below = uniform[i] * cumulative[-1] < cumulative
            below[-1] = True  # the product may round up to the sum itself
            state[slot] = below
            state[slot][1:] -= below[:-1]

    def codes(self, state: np.ndarray) -> np.ndarray:
        """State numbers of a one-hot state, shape (p, n)."""
        return np.stack([state[slot].argmax(axis=0) for slot in self._slots])


def as_polynomial(field: RandomField) -> BinaryField | None:
    """The field as a polynomial; None where not all variables are binary."""
    if isinstance(field, BinaryField):
        return field
    if isinstance(field, Pairwise):
        return as_polynomial(field.to_ising()) if set(field.cardinalities) <= {2} else None
    return field.to_binary_field()
