"""What one edge changes, on every small graph, and the exact law of the exponential mechanism."""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter
from decimal import MAX_EMAX, MIN_EMIN, Decimal, localcontext
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
from scipy.stats import binom

from pgmpy_dp import Budget, PrivateGraph
from pgmpy_dp.communities.community_labels import marks_of
from pgmpy_dp.communities.operators import choice, graph_operators, sign_sampling
from pgmpy_dp.communities.operators.graph import adjacency_matrix, edge_count, neighbour_sums
from pgmpy_dp.communities.operators.graph_operators import RandomisedResponse, community_law
from pgmpy_dp.communities.operators.sign_sampling import SignLaw, sample_signs
from pgmpy_dp.private.guarantee import ZCDP, PureDP

N = 4
PAIRS = list(itertools.combinations(range(N), 2))


def matrix(edges, n=N):
    graph = nx.empty_graph(n)
    graph.add_edges_from(edges)
    return adjacency_matrix(PrivateGraph(graph, ledger=Budget(epsilon=1.0)))


def neighbours():
    """All graphs on four vertices with one of their edges, as (with it, without it)."""
    for size in range(1, len(PAIRS) + 1):
        for edges in itertools.combinations(PAIRS, size):
            for edge in edges:
                yield list(edges), [other for other in edges if other != edge]


@pytest.mark.parametrize("k", [2, 3])
def test_sums_over_neighbours(k):
    all_marks = [marks_of(np.array(labels), k) for labels in itertools.product(range(k), repeat=N)]
    largest = np.zeros(3)

    @functools.cache
    def sums(*edges):
        of = matrix(edges)
        return np.array([neighbour_sums(of, marks).value for marks in all_marks]).reshape(len(all_marks), -1)

    for first, second in neighbours():
        moved = np.abs(sums(*first) - sums(*second))
        norms = moved.sum(axis=1), np.sqrt((moved**2).sum(axis=1)), moved.max(axis=1)
        largest = np.maximum(largest, [norm.max() for norm in norms])
    claimed = neighbour_sums(matrix([]), all_marks[0])
    assert (claimed.l1, claimed.l2, claimed.linf) == (2.0, math.nextafter(math.sqrt(2.0), 0), 1.0) or (
        claimed.l2 >= math.sqrt(2.0) and claimed.l2 < 1.4142136
    )
    # Bounds, and attained: no smaller sensitivity would do.
    assert largest.tolist() == [2.0, math.sqrt(2.0), 1.0]


def test_marks_of_another_kind_are_refused():
    for marks in (np.ones((4, 2), dtype=int), np.full((4, 1), 2), np.ones((3, 1), dtype=int), np.ones((4, 1))):
        with pytest.raises(ValueError, match="at most one 1"):
            neighbour_sums(matrix([]), marks)


def test_number_of_edges():
    moved = {int(edge_count(matrix(a)).value[0] - edge_count(matrix(b)).value[0]) for a, b in neighbours()}
    assert moved == {1} and edge_count(matrix([])).l1 == 1.0


class TestFlips:
    @pytest.mark.parametrize("epsilon", [1e-6, 0.1, 0.75, 1.0, 3.0, 8.0, 30.0])
    def test_the_rate_is_rounded_up_against_exact_arithmetic(self, epsilon):
        rate = Fraction(choice.flip_rate(epsilon))
        # exp(epsilon) from below, by another series than the one in use: exp(x) = exp(x/2**20)**(2**20) >= (1 + y)**...
        lower = math.exp(epsilon) * (1 - 1e-12)
        assert (1 - rate) / rate <= Fraction(lower) or rate == Fraction(1, 2)
        assert rate <= Fraction(1, 2) and rate - Fraction(1, 2**16) <= 1 / (1 + Fraction(math.exp(epsilon)))

    @pytest.mark.parametrize("epsilon", [0.0, 1e-9, 0.3, 1.0, 10.0, 39.9, 1000.0, 12345.678, 1e15])
    def test_the_exponential_is_below_and_near_at_any_epsilon(self, epsilon):
        m, e = choice.exponential_below(epsilon)
        with localcontext(prec=60, Emax=MAX_EMAX, Emin=MIN_EMIN):  # another way: decimal's own, correctly rounded
            above = Decimal(m) * (Decimal(e) * Decimal(2).ln() - Decimal(epsilon)).exp() - 1
        assert -(2.0**-60) < above <= 1e-40 and m.bit_length() + e >= 1

    def test_every_pair_answers_by_a_coin_of_its_own(self):
        edges = [(0, 1), (2, 3)]
        rng = np.random.default_rng(5)
        rate = 0.25
        response, upper = RandomisedResponse(matrix(edges), rate), np.triu_indices(N, 1)
        answers = np.array([response.draw(rng)[upper] for _ in range(4000)])
        truth = np.array([pair in edges for pair in PAIRS])
        flips = answers != truth
        # Each rate, and each pair's rate given another's flip, within 5 standard deviations; the draws are seeded.
        assert np.abs(flips.mean(axis=0) - rate).max() < 5 * math.sqrt(rate * (1 - rate) / 4000)
        assert np.abs(np.corrcoef(flips.T) - np.eye(len(PAIRS))).max() < 5 / math.sqrt(4000)

    def test_answers_are_symmetric_whatever_the_blocks(self, monkeypatch):
        monkeypatch.setattr(graph_operators, "_BATCH", 7)
        answers = RandomisedResponse(matrix([(0, 3)]), 2.0**-16).draw(np.random.default_rng(0))
        assert (answers == answers.T).all() and np.argwhere(np.triu(answers)).tolist() == [[0, 3]]


def number(scaled) -> Fraction:
    return scaled[0] * Fraction(2) ** scaled[1]


def scaled(*weights: int) -> tuple:
    return tuple((f, 0) for f in weights)


def weight(law: SignLaw, edges, labels) -> Fraction:
    """By the definition."""
    return number(law.sizes[sum(labels)]) * number(law.agree) ** sum(labels[u] == labels[v] for u, v in edges)


def law_of(law: SignLaw, edges) -> dict[tuple, Fraction]:
    n = len(law.sizes) - 1
    weights = {labels: weight(law, edges, labels) for labels in itertools.product((0, 1), repeat=n)}
    total = sum(weights.values())
    return {labels: w / total for labels, w in weights.items()}


class TestExponential:
    @pytest.mark.parametrize("epsilon", [Fraction(1, 3), Fraction(1), Fraction(5), Fraction(41), Fraction(1000)])
    def test_no_probability_changes_by_more_than_epsilon_on_any_pair_of_graphs(self, epsilon):
        law = community_law(N, 1.7, PureDP(float(epsilon)), 1)
        ratio, (m, e) = number(law.agree), choice.exponential_below(float(epsilon))
        assert (1 - Fraction(1, 2**20)) * number((m, e)) < ratio <= number((m, e))
        worst = max(
            max(p / q, q / p)
            for first, second in neighbours()
            for p, q in zip(law_of(law, first).values(), law_of(law, second).values(), strict=True)
        )
        # The bound B is approached, not just kept: the noise is not twice what is needed.
        assert worst <= ratio and worst**2 > ratio

    def test_a_weight_of_exp_epsilon_for_agreement_and_its_inverse_is_caught(self):
        law = community_law(N, 1.7, PureDP(2.0), Fraction(1, 2))
        assert law == community_law(N, 1.7, ZCDP(0.25), 0.5)  # sqrt(8 s rho)
        m, e = law.agree
        doubled = SignLaw((m**2, 2 * e), law.sizes)  # exp(epsilon score): forgets the 2
        ratios = [
            max(p / q, q / p)
            for first, second in neighbours()
            for p, q in zip(law_of(doubled, first).values(), law_of(doubled, second).values(), strict=True)
        ]
        assert math.log(max(ratios)) > 1.0

    @pytest.mark.parametrize("epsilon", [0.2, 1.4, 30.0, 200.0, 5000.0])
    def test_the_law_is_that_of_the_score(self, epsilon):
        """At any epsilon: of the weights, balance's among them, none is cut off."""
        edges, n, d = [(0, 1), (1, 2), (3, 4)], 5, 2.3
        centred = np.full((n, n), -d / n)
        for u, v in edges:
            centred[u, v] += 1.0
        law = community_law(n, d, PureDP(epsilon), 1)
        signs = {labels: 1 - 2 * np.array(labels) for labels in itertools.product((0, 1), repeat=n)}
        score = {labels: float(x @ np.triu(centred, 1) @ x) for labels, x in signs.items()}
        weights = {labels: weight(law, edges, labels) for labels in signs}
        first = next(iter(signs))
        for labels, w in weights.items():
            ratio = w / weights[first]  # of weights too far apart for floats
            log = math.log(ratio.numerator) - math.log(ratio.denominator)
            assert log == pytest.approx(epsilon * (score[labels] - score[first]) / 2, abs=1e-5, rel=1e-12)

    @pytest.mark.parametrize("seed", range(5))
    @pytest.mark.parametrize("width", [10, 1, 0])
    @pytest.mark.parametrize("agree", [(7, -1), (5, 40)], ids=["put in", "counted"])
    def test_eliminated_sums_are_those_of_all_labellings(self, seed, width, agree):
        n = 2 + seed
        edges = list(nx.gnp_random_graph(n, 0.6, seed=seed).edges())
        linked = [{v for edge in edges for v in edge if u in edge and v != u} for u in range(n)]
        given = sign_sampling._excess(linked, width)
        elimination = sign_sampling._Elimination(n, edges, SignLaw(agree, ((1, 0),) * (n + 1)), given)
        assert elimination.powers == (1 if agree == (7, -1) else len(edges) + 1)
        for values in itertools.product((0, 1), repeat=len(given)):
            labels = dict(zip(given, values, strict=True))
            expected = Counter()
            for each in itertools.product((0, 1), repeat=n):
                k = sum(each[u] == each[v] for u, v in edges)
                if all(each[v] == b for v, b in labels.items()):
                    if elimination.powers == 1:
                        expected[sum(each)] += 7**k * 2 ** (len(edges) - k)
                    else:
                        expected[sum(each) * elimination.powers + k] += 1
            assert elimination.total(labels) == expected

    @pytest.mark.parametrize(
        "draw",
        [
            sign_sampling._enumerate,
            pytest.param(sign_sampling._eliminate, marks=pytest.mark.slow),
            lambda *a: sign_sampling._eliminate(*a, width=1),
            pytest.param(lambda *a: sign_sampling._eliminate(*a, width=0), marks=pytest.mark.slow),
        ],
        ids=["listed", "eliminated", "width 1", "width 0"],
    )
    @pytest.mark.parametrize("agree", [(5, -1), (1, 6)], ids=["put in", "counted"])
    def test_draws_follow_the_law(self, draw, agree):
        n, edges = 4, [(0, 1), (1, 2), (2, 0), (2, 3)]
        law = SignLaw(agree, scaled(1, 2, 6, 2, 1))
        expected, draws = law_of(law, edges), 4000
        rng = np.random.default_rng(11)
        seen = Counter(tuple(draw(edges, law, rng).tolist()) for _ in range(draws))
        assert set(seen) <= set(expected) and n == 4
        for labels, p in expected.items():
            # Two-sided, 16 labellings, 8 samplers: a true law fails with probability below 1e-6.
            tails = binom.cdf(seen[labels], draws, float(p)), binom.sf(seen[labels] - 1, draws, float(p))
            assert min(tails) > 1e-6 / (2 * 16 * 8)

    def test_the_test_of_draws_rejects_another_law(self):
        edges, law, draws = [(0, 1), (1, 2), (2, 0), (2, 3)], SignLaw((5, -1), scaled(1, 2, 6, 2, 1)), 4000
        rng = np.random.default_rng(11)
        other = SignLaw((3, -1), law.sizes)
        seen = Counter(tuple(sign_sampling._enumerate(edges, other, rng).tolist()) for _ in range(draws))
        p_values = [binom.cdf(seen[x], draws, float(p)) for x, p in law_of(law, edges).items()]
        assert min(p_values) < 1e-9

    def test_sizes_decide_the_sampler_and_nothing_else(self):
        for n, e in itertools.product((2, 22, 23, 30), (133, 10**15)):
            drawn = sample_signs([(0, 1)], SignLaw((1, e), ((1, 0),) * (n + 1)))
            assert drawn.shape == (n,) and drawn[0] == drawn[1] and set(drawn.tolist()) <= {0, 1}

    def test_near_infinite_epsilon_the_best_labelling_is_drawn(self):
        """Of all scores, by brute force; a split of two cliques is enumerated, counted, and too large for neither."""
        for n in (8, 24):
            edges = list(nx.disjoint_union(nx.complete_graph(n // 2), nx.complete_graph(n // 2)).edges())
            for epsilon in (20.0, 200.0, 2e4, 1e15):
                labels = sample_signs(
                    edges, community_law(n, n / 2 - 1.0, PureDP(epsilon), 1), np.random.default_rng(1)
                )
                assert sorted([labels[: n // 2].sum(), labels[n // 2 :].sum()]) == [0, n // 2]

    def test_laws_that_are_none_are_refused(self):
        for wrong in (((3, -2), scaled(1, 1)), ((0, 9), scaled(1, 1)), ((1, 0), scaled(1, 2)), ((1, 0), scaled(0, 0))):
            with pytest.raises(ValueError, match="at least 1, and sizes positive and symmetric"):
                SignLaw(*wrong)


class TestChoice:
    def test_weights_of_any_size(self):
        rng = np.random.default_rng(3)
        seen = Counter(choice.weighted_choice([10**50, 0, 3 * 10**50], rng) for _ in range(4000))
        assert set(seen) == {0, 2} and abs(seen[0] - 1000) < 5 * math.sqrt(4000 * 3 / 16)

    def test_scaled_weights_are_those_that_they_stand_for(self):
        """Against the choice with integers written out: from the same bits where one reading decides."""
        rng = np.random.default_rng(3)
        weights = [(3, 0), (5, -2), (1, 1), (7, -900)]
        draws, shares = 4000, np.array([3, 1.25, 2]) / 6.25
        seen = Counter(choice.scaled_choice(weights, rng) for _ in range(draws))
        assert set(seen) == {0, 1, 2}
        for k, share in enumerate(shares):
            assert abs(seen[k] - draws * share) < 5 * math.sqrt(draws * share * (1 - share))

    def test_integers_are_uniform_and_below(self):
        rng = np.random.default_rng(3)
        seen = Counter(choice.integer_below(5, rng) for _ in range(5000))
        assert set(seen) == set(range(5)) and max(abs(c - 1000) for c in seen.values()) < 5 * math.sqrt(800)
        assert choice.integer_below(1) == 0 and choice.integer_below(2**70) < 2**70
        with pytest.raises(ValueError, match="at least 1"):
            choice.integer_below(0)
