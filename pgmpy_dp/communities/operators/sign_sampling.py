"""Exact draws of signs for the vertices of a small graph, with a weight for each edge and for the number of signs.

A labelling x of the n vertices by 0 and 1 has the weight

    W(x) = f(c) B**(edges whose ends agree) D**(edges whose ends do not),        c = number of ones,

with positive integers B, D and f(0), ..., f(n). A draw has probability exactly ``W(x) / sum of all W``: everything is
done in integers of any size, and the random bits are the operating system's.

Up to 22 vertices all labellings are listed. Larger graphs are summed by eliminating one vertex after another (Dechter
1999). An eliminated part leaves, for each labelling of its neighbours, a polynomial whose coefficient c belongs to c
ones, written as one long integer. Vertices in excess of a small elimination width are enumerated. So memory stays
small, and time doubles for each of them. Whatever the width, the law is the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product
from math import prod

import numpy as np

from pgmpy_dp.communities.operators.choice import integer_below, weighted_choice

ENUMERATED = 22
_WIDTH = 10

Edges = Sequence[tuple[int, int]]


@dataclass(frozen=True)
class SignLaw:
    """Weights of the law.

    Parameters
    ----------
    agree, disagree : int
        B and D, positive.
    sizes : tuple of int
        f(0), ..., f(n): positive and symmetric, f(c) = f(n - c).
    """

    agree: int
    disagree: int
    sizes: tuple[int, ...]

    def __post_init__(self) -> None:
        if min(self.agree, self.disagree, *self.sizes) < 1 or self.sizes != self.sizes[::-1]:
            raise ValueError("agree, disagree and sizes must be positive, and sizes symmetric")

    def edge(self, first: int, second: int) -> int:
        """Weight of an edge with these labels."""
        return self.agree if first == second else self.disagree


def sample_signs(edges: Edges, law: SignLaw, rng: np.random.Generator | None = None) -> np.ndarray:
    """One draw of the labels of n vertices, exactly from the law.

    Parameters
    ----------
    edges : sequence of pairs of int
        Of distinct vertices 0 .. n-1, each edge once.
    law : SignLaw
        n + 1 sizes tell n.
    rng : numpy.random.Generator, optional
        For tests and benchmarks only: draw from this generator, **not privately**.

    Returns
    -------
    ndarray of int64, shape (n,)
        0 or 1.

    Examples
    --------
    >>> law = SignLaw(10**30, 1, (1, 1, 1, 1))
    >>> len(set(sample_signs([(0, 1), (1, 2)], law).tolist()))
    1
    """
    n = len(law.sizes) - 1
    draw = _enumerate if n <= ENUMERATED else _eliminate
    return draw(edges, law, rng)


def _enumerate(edges: Edges, law: SignLaw, rng: np.random.Generator | None) -> np.ndarray:
    """Draw by listing the labellings with label 0 for vertex 0, by the number of ones and of edges that disagree."""
    n = len(law.sizes) - 1
    earlier = [0] * n  # as bits, the neighbours of each vertex that come before it
    for u, v in edges:
        earlier[max(u, v)] |= 1 << min(u, v)
    cut = np.zeros(1, dtype=np.int64)
    for v in range(1, n):
        # Bit u of a state is the label of vertex u.
        states = np.arange(1 << v, dtype=np.uint32)[::2] if v > 1 else np.zeros(1, dtype=np.uint32)
        ones = np.bitwise_count(states & np.uint32(earlier[v])).astype(np.int64)
        cut = np.concatenate([cut + ones, cut + earlier[v].bit_count() - ones])
    states = np.arange(1 << n, dtype=np.uint32)[::2]
    cell = cut * (n + 1) + np.bitwise_count(states)
    counts = np.bincount(cell)
    cells = np.flatnonzero(counts)
    m = len(edges)
    weights = [
        int(counts[key])
        * law.agree ** (m - int(key) // (n + 1))
        * law.disagree ** (int(key) // (n + 1))
        * law.sizes[int(key) % (n + 1)]
        for key in cells
    ]
    chosen = cells[weighted_choice(weights, rng)]
    members = np.flatnonzero(cell == chosen)
    state = int(states[members[integer_below(members.size, rng)]])
    # A labelling and its opposite have one weight.
    turned = integer_below(2, rng)
    return np.array([(state >> v & 1) ^ turned for v in range(n)], dtype=np.int64)


@dataclass
class _Bucket:
    """A vertex at its elimination: what its label is weighed with, given those of the neighbours that are left."""

    vertex: int
    scope: tuple[int, ...]
    linked: tuple[int, ...]
    """Neighbours in the graph among the scope."""
    inner: list[_Bucket] = field(default_factory=list)
    """Buckets whose message names this vertex."""
    message: dict[tuple[int, ...], int] = field(default_factory=dict)
    """For each labelling of the scope the packed polynomial of this vertex and all below it."""


class _Elimination:
    """The sum over all labellings of some vertices, given labels of the others; exact."""

    def __init__(self, n: int, edges: Edges, law: SignLaw, given: Sequence[int]) -> None:
        self._law = law
        self._neighbours = _linked(n, edges)
        # No coefficient exceeds the sum of all weights without f.
        self._bits = n + len(edges) * max(law.agree, law.disagree).bit_length() + 1
        self._roots, self._buckets = _buckets(self._neighbours, set(given))

    def total(self, labels: dict[int, int]) -> list[int]:
        """Weight of all labellings that agree with `labels` on the given vertices, by their number of ones."""
        for bucket in self._buckets:
            bucket.message = {
                assignment: sum(
                    prod(self._factors(bucket, b, {**labels, **dict(zip(bucket.scope, assignment, strict=True))}))
                    << (self._bits * b)
                    for b in (0, 1)
                )
                for assignment in product((0, 1), repeat=len(bucket.scope))
            }
        fixed = prod(
            self._law.edge(labels[u], labels[v]) for u in labels for v in self._neighbours[u] if v in labels and u < v
        )
        product_of_roots = prod((bucket.message[()] for bucket in self._roots), start=fixed)
        shift = sum(labels.values())
        coefficients = [self._coefficient(product_of_roots, c) for c in range(len(self._law.sizes) - shift)]
        return [f * weight for f, weight in zip(self._law.sizes, [0] * shift + coefficients, strict=True)]

    def sample(self, labels: dict[int, int], n_ones: int, rng: np.random.Generator | None) -> dict[int, int]:
        """Labels of all vertices given those, and given the number of ones; after `total` of the same labels."""
        labels = dict(labels)
        pending: list[tuple[list[_Bucket], int]] = [(self._roots, n_ones - sum(labels.values()))]
        while pending:
            group, ones = pending.pop()
            for position, bucket in enumerate(group):
                here = bucket.message[self._places(bucket, labels)]
                rest = prod(other.message[self._places(other, labels)] for other in group[position + 1 :])
                of_it = weighted_choice(
                    [self._coefficient(here, c) * self._coefficient(rest, ones - c) for c in range(ones + 1)], rng
                )
                ones -= of_it
                weights = [self._coefficient(prod(self._factors(bucket, b, labels)), of_it - b) for b in (0, 1)]
                labels[bucket.vertex] = weighted_choice(weights, rng)
                pending.append((bucket.inner, of_it - labels[bucket.vertex]))
        return labels

    def _factors(self, bucket: _Bucket, b: int, labels: dict[int, int]) -> list[int]:
        """What label b of a bucket's vertex is multiplied with, given labels of its scope and of the given vertices."""
        known = {**labels, bucket.vertex: b}
        edges = [self._law.edge(b, known[u]) for u in bucket.linked]
        return edges + [inner.message[self._places(inner, known)] for inner in bucket.inner]

    @staticmethod
    def _places(bucket: _Bucket, labels: dict[int, int]) -> tuple[int, ...]:
        return tuple(labels[u] for u in bucket.scope)

    def _coefficient(self, polynomial: int, power: int) -> int:
        return 0 if power < 0 else (polynomial >> (self._bits * power)) & ((1 << self._bits) - 1)


def _linked(n: int, edges: Edges) -> list[set[int]]:
    """The neighbours of each vertex."""
    neighbours: list[set[int]] = [set() for _ in range(n)]
    for u, v in edges:
        neighbours[u].add(v)
        neighbours[v].add(u)
    return neighbours


def _min_fill(neighbours: list[set[int]], given: Iterable[int]) -> Iterator[tuple[int, dict[int, set[int]]]]:
    """Each vertex that is not given, in the order of elimination, with the graph that is left before it goes."""
    out = set(given)
    left = {v: neighbours[v] - out for v in range(len(neighbours)) if v not in out}

    def cost(v: int) -> tuple[int, int, int]:
        return sum(b not in left[a] for a, b in combinations(left[v], 2)), len(left[v]), v  # pairs that it would join

    while left:
        v = min(left, key=cost)
        yield v, left
        scope = left.pop(v)
        for u in scope:
            left[u] |= scope
            left[u] -= {u, v}


def _buckets(neighbours: list[set[int]], given: set[int]) -> tuple[list[_Bucket], list[_Bucket]]:
    """The roots, and all buckets in the order of elimination, for the vertices that are not given."""
    waiting: list[_Bucket] = []
    order: list[_Bucket] = []
    for v, left in _min_fill(neighbours, given):
        scope = left[v]
        bucket = _Bucket(v, tuple(sorted(scope)), tuple(u for u in neighbours[v] if u in scope or u in given))
        bucket.inner = [other for other in waiting if v in other.scope]
        waiting = [other for other in waiting if v not in other.scope] + [bucket]
        order.append(bucket)
    return waiting, order


def _excess(neighbours: list[set[int]], width: int) -> list[int]:
    """Vertices without which an elimination by min-fill has at most this width: those of largest degree on the way."""
    given: list[int] = []
    while True:
        for v, left in _min_fill(neighbours, given):
            if len(left[v]) > width:
                given.append(max(left, key=lambda u: (len(left[u]), -u)))
                break
        else:
            return given


def _eliminate(edges: Edges, law: SignLaw, rng: np.random.Generator | None, width: int = _WIDTH) -> np.ndarray:
    """Draw by elimination, for each labelling of the vertices in excess of the width; one is drawn on the way."""
    n = len(law.sizes) - 1
    given = _excess(_linked(n, edges), width)
    elimination = _Elimination(n, edges, law, given)
    seen, kept = 0, None
    for values in product((0, 1), repeat=len(given)):
        labels = dict(zip(given, values, strict=True))
        weights = elimination.total(labels)
        # The one at hand replaces the one kept with its share of all that was seen.
        if weighted_choice([seen, sum(weights)], rng):
            kept = labels
        seen += sum(weights)
    assert kept is not None  # weights are positive
    weights = elimination.total(kept)
    drawn = elimination.sample(kept, weighted_choice(weights, rng), rng)
    return np.array([drawn[v] for v in range(n)], dtype=np.int64)
