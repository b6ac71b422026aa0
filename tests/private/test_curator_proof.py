"""Section 7 of proof.md, in fractions: an interactive (epsilon, delta) mechanism is one draw at the start."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

E = Fraction(3)  # e^epsilon
REQUESTS, ANSWERS, DEPTH = 2, 3, 3


def law(rng: np.random.Generator) -> list[Fraction]:
    weights = rng.choice([0, 0, 1, 2, 5, 40], ANSWERS).tolist()
    weights[int(rng.integers(ANSWERS))] += 1
    return [Fraction(weight, sum(weights)) for weight in weights]


def mechanism(rng: np.random.Generator, near: bool):
    """A tree: (p, q, answers of each request), p and q the products of probabilities on X and on X'."""

    def node(p: Fraction, q: Fraction, depth: int):
        requests = []
        for _ in range(REQUESTS if depth else 0):
            on, other = law(rng), law(rng)
            if near:
                other = [(9 * a + b) / 10 for a, b in zip(on, other, strict=True)]
            requests.append([node(p * a, q * b, depth - 1) for a, b in zip(on, other, strict=True)])
        return p, q, requests

    return node(Fraction(1), Fraction(1), DEPTH)


def excess(tree, first: int) -> Fraction:
    """The most that a strategy gets of max(0, p - e q)."""
    if not tree[2]:
        return max(Fraction(0), tree[first] - E * tree[1 - first])
    return max(sum(excess(child, first) for child in children) for children in tree[2])


def bounds(tree) -> tuple[Fraction, Fraction]:
    if not tree[2]:
        return min(tree[0], E * tree[1]), min(tree[1], E * tree[0])
    sums = [[sum(pair) for pair in zip(*map(bounds, children), strict=True)] for children in tree[2]]
    return min(u for u, _ in sums), min(v for _, v in sums)


def shares(u: Fraction, v: Fraction, children) -> list[tuple[Fraction, Fraction]]:
    """Points of the children's sets that add up to (u, v): the same mean of the same corners for each."""
    own = [bounds(child) for child in children]
    U, V = (sum(part) for part in zip(*own, strict=True))
    assert 0 <= u <= min(U, E * v) and 0 <= v <= min(V, E * u)
    if not U:
        return [(Fraction(0), Fraction(0))] * len(own)
    if v * U <= u * V:  # of (U, V) and (U, U/e)
        far = (v - u / E) / (V - U / E) if E * V > U else u / U
        return [(far * a + (u / U - far) * a, far * b + (u / U - far) * a / E) for a, b in own]
    far = (u - v / E) / (U - V / E) if E * U > V else v / V
    return [(far * a + (v / V - far) * b / E, far * b + (v / V - far) * b) for a, b in own]


def split(tree, u: Fraction, v: Fraction) -> int:
    """Number of complete histories, each of which has its part."""
    p, q, requests = tree
    assert 0 <= u <= p and 0 <= v <= q and u <= E * v and v <= E * u
    if not requests:
        return 1
    found = 0
    for children in requests:
        parts = shares(u, v, children)
        assert [sum(part) for part in zip(*parts, strict=True)] == [u, v]  # consistent
        found += sum(split(child, *part) for child, part in zip(children, parts, strict=True))
    return found


@pytest.mark.parametrize("seed", range(20))
def test_what_an_interactive_mechanism_answers_can_be_drawn_at_the_start(seed):
    tree = mechanism(np.random.default_rng(seed), near=seed % 2 == 0)
    delta = max(excess(tree, 0), excess(tree, 1))
    assert 0 < delta <= 1
    assert bounds(tree) == (1 - excess(tree, 0), 1 - excess(tree, 1))
    assert split(tree, 1 - delta, 1 - delta) == (REQUESTS * ANSWERS) ** DEPTH
    with pytest.raises(AssertionError):
        split(tree, 1 - delta * Fraction(99, 100), 1 - delta * Fraction(99, 100))
