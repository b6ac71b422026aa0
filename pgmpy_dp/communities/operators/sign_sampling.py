"""Exact draws of signs for the vertices of a small graph, with a weight for each edge and for the number of signs.

A labelling x of the n vertices by 0 and 1 has the weight

    W(x) = f(c) B**k,        c = number of ones,        k = number of edges whose ends agree,

with positive numbers B and f(0), ..., f(n), each an integer times a power of two. A draw has probability exactly
``W(x) / sum of all W``: everything is done in integers of any size, and the random bits are the operating system's.
First c and k are drawn, each pair with the number of its labellings times their weight, whose powers of two are never
written out (:func:`~pgmpy_dp.communities.operators.choice.scaled_choice`); then one of these labellings, all alike.

Up to 22 vertices all labellings are listed. Larger graphs are summed by eliminating one vertex after another (Dechter
1999). An eliminated part leaves, for each labelling of its neighbours, a polynomial in two variables, whose
coefficient of the powers c and k is the number of labellings, written as one long integer. Where B is so small that
numbers become shorter by it, B is put in for the second variable, and c alone is drawn first. Vertices in excess of a
small elimination width are enumerated. So memory stays small, and time doubles for each of them. Whatever the width,
and whichever way sums are written, the law is the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product
from math import prod

import numpy as np

from pgmpy_dp.communities.operators.choice import Scaled, integer_below, scaled_choice, weighted_choice

ENUMERATED = 22
_WIDTH = 10

Edges = Sequence[tuple[int, int]]


@dataclass(frozen=True)
class SignLaw:
    """Weights of the law, each a number m 2**e as (m, e).

    Parameters
    ----------
    agree : (int, int)
        B, at least 1.
    sizes : tuple of (int, int)
        f(0), ..., f(n): positive and symmetric, f(c) = f(n - c).
    """

    agree: Scaled
    sizes: tuple[Scaled, ...]

    def __post_init__(self) -> None:
        m, e = self.agree
        if m < 1 or m.bit_length() + e < 1 or min(f for f, _ in self.sizes) < 1 or self.sizes != self.sizes[::-1]:
            raise ValueError("agree must be at least 1, and sizes positive and symmetric")

    def choose(self, numbers: Mapping[tuple[int, int], int], rng: np.random.Generator | None) -> tuple[int, int]:
        """A pair (c, k), drawn with the number of its labellings, which is positive, times f(c) B**k."""
        pairs, (m, e) = list(numbers), self.agree
        weights = [(numbers[c, k] * self.sizes[c][0] * m**k, self.sizes[c][1] + e * k) for c, k in pairs]
        return pairs[scaled_choice(weights, rng)]


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
    >>> law = SignLaw((1, 100), ((1, 0),) * 4)
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
    cell = (len(edges) - cut) * (n + 1) + np.bitwise_count(states)
    counts = np.bincount(cell).tolist()
    c, k = law.choose({(key % (n + 1), key // (n + 1)): count for key, count in enumerate(counts) if count}, rng)
    members = np.flatnonzero(cell == k * (n + 1) + c)
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
    """For each labelling of the scope the polynomial of this vertex and all below it."""


class _Elimination:
    """The labellings of some vertices, given labels of the others, counted by their ones and edges that agree; exact.

    A polynomial is an integer whose digit number ``c K + k``, in base ``2**bits``, is the coefficient of the powers c
    and k; K, here `powers`, is the number of edges and one. With B put in for the second variable, K is 1.
    """

    def __init__(self, n: int, edges: Edges, law: SignLaw, cutset: Sequence[int]) -> None:
        self._neighbours = _linked(n, edges)
        m, e = law.agree
        length = m.bit_length() + max(0, e)
        if length <= n + 1:
            # No coefficient exceeds the sum of all weights without f.
            self.powers, bits = 1, n + len(edges) * length + 1
            self._agree, self._disagree = m << max(0, e), 1 << max(0, -e)
        else:
            self.powers, bits = len(edges) + 1, n + 1
            self._agree = self._disagree = 1
        self._bytes = -(-bits // 8)
        self._roots, self._buckets = _buckets(self._neighbours, set(cutset))

    def total(self, labels: dict[int, int]) -> dict[int, int]:
        """Coefficients that are not 0, by their digits' numbers, of labellings that agree on the cutset."""
        for bucket in self._buckets:
            bucket.message = {
                assignment: sum(
                    self._message(bucket, b, {**labels, **dict(zip(bucket.scope, assignment, strict=True))})
                    for b in (0, 1)
                )
                for assignment in product((0, 1), repeat=len(bucket.scope))
            }
        shift, weight = self._cutset_term(labels)
        product_of_roots = prod((bucket.message[()] for bucket in self._roots), start=weight)
        return {shift + place: number for place, number in enumerate(self._digits(product_of_roots)) if number}

    def sample(self, labels: dict[int, int], place: int, rng: np.random.Generator | None) -> dict[int, int]:
        """Labels of all vertices given those, and given a digit's number; after `total` of the same labels."""
        labels = dict(labels)
        pending: list[tuple[list[_Bucket], int]] = [(self._roots, place - self._cutset_term(labels)[0])]
        while pending:
            group, left = pending.pop()
            for position, bucket in enumerate(group):
                here = self._digits(bucket.message[self._places(bucket, labels)])[: left + 1]
                rest = self._digits(prod(other.message[self._places(other, labels)] for other in group[position + 1 :]))
                rest += [0] * (left + 1 - len(rest))
                of_it = weighted_choice([number * rest[left - p] for p, number in enumerate(here)], rng)
                left -= of_it
                messages = [self._digits(self._message(bucket, b, labels)) for b in (0, 1)]
                b = weighted_choice([digits[of_it] if of_it < len(digits) else 0 for digits in messages], rng)
                pending.append((bucket.inner, of_it - self._term(b, bucket.linked, labels)[0]))
                labels[bucket.vertex] = b
        return labels

    def _term(self, b: int, neighbours: Sequence[int], labels: dict[int, int]) -> tuple[int, int]:
        """Return what label b of a vertex, and its edges with labelled neighbours, add to a digit's number; weight."""
        agreeing = sum(labels[u] == b for u in neighbours)
        if self.powers > 1:
            return self.powers * b + agreeing, 1
        return b, self._agree**agreeing * self._disagree ** (len(neighbours) - agreeing)

    def _cutset_term(self, labels: dict[int, int]) -> tuple[int, int]:
        """The same for the vertices of the cutset together."""
        linked = {v: [u for u in self._neighbours[v] if u < v and u in labels] for v in labels}
        terms = [self._term(b, linked[v], labels) for v, b in labels.items()]
        return sum(shift for shift, _ in terms), prod(weight for _, weight in terms)

    def _message(self, bucket: _Bucket, b: int, labels: dict[int, int]) -> int:
        """The polynomial of label b of a bucket's vertex, given labels of its scope and of the cutset."""
        known = {**labels, bucket.vertex: b}
        shift, weight = self._term(b, bucket.linked, labels)
        polynomial = prod((inner.message[self._places(inner, known)] for inner in bucket.inner), start=weight)
        return polynomial << (8 * self._bytes * shift)

    @staticmethod
    def _places(bucket: _Bucket, labels: dict[int, int]) -> tuple[int, ...]:
        return tuple(labels[u] for u in bucket.scope)

    def _digits(self, polynomial: int) -> list[int]:
        size = self._bytes
        raw = polynomial.to_bytes(-(-polynomial.bit_length() // 8), "little")
        return [int.from_bytes(raw[start : start + size], "little") for start in range(0, len(raw), size)]


def _linked(n: int, edges: Edges) -> list[set[int]]:
    """The neighbours of each vertex."""
    neighbours: list[set[int]] = [set() for _ in range(n)]
    for u, v in edges:
        neighbours[u].add(v)
        neighbours[v].add(u)
    return neighbours


def _min_fill(neighbours: list[set[int]], cutset: Iterable[int]) -> Iterator[tuple[int, dict[int, set[int]]]]:
    """Each vertex outside the cutset, in the order of elimination, with the graph that is left before it goes."""
    out = set(cutset)
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


def _buckets(neighbours: list[set[int]], cutset: set[int]) -> tuple[list[_Bucket], list[_Bucket]]:
    """The roots, and all buckets in the order of elimination, for the vertices outside the cutset."""
    waiting: list[_Bucket] = []
    order: list[_Bucket] = []
    for v, left in _min_fill(neighbours, cutset):
        scope = left[v]
        bucket = _Bucket(v, tuple(sorted(scope)), tuple(u for u in neighbours[v] if u in scope or u in cutset))
        bucket.inner = [other for other in waiting if v in other.scope]
        waiting = [other for other in waiting if v not in other.scope] + [bucket]
        order.append(bucket)
    return waiting, order


def _excess(neighbours: list[set[int]], width: int) -> list[int]:
    """Vertices without which an elimination by min-fill has at most this width: those of largest degree on the way."""
    cutset: list[int] = []
    while True:
        for v, left in _min_fill(neighbours, cutset):
            if len(left[v]) > width:
                cutset.append(max(left, key=lambda u: (len(left[u]), -u)))
                break
        else:
            return cutset


def _eliminate(edges: Edges, law: SignLaw, rng: np.random.Generator | None, width: int = _WIDTH) -> np.ndarray:
    """Draw by elimination, for each labelling of the vertices in excess of the width; one is drawn on the way."""
    n = len(law.sizes) - 1
    cutset = _excess(_linked(n, edges), width)
    elimination = _Elimination(n, edges, law, cutset)
    seen: Counter[int] = Counter()
    kept = {}
    for values in product((0, 1), repeat=len(cutset)):
        labels = dict(zip(cutset, values, strict=True))
        for place, number in elimination.total(labels).items():
            seen[place] += number
            # The labels at hand replace those kept with their share of all that was seen.
            if integer_below(seen[place], rng) < number:
                kept[place] = labels
    c, k = law.choose({divmod(place, elimination.powers): number for place, number in seen.items()}, rng)
    place = c * elimination.powers + k
    if kept[place] is not labels:
        elimination.total(kept[place])
    drawn = elimination.sample(kept[place], place, rng)
    return np.array([drawn[v] for v in range(n)], dtype=np.int64)
