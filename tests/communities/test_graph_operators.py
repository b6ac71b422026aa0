"""What graphs are asked: what is refused before the debit, what each operator spends, and parts of the edges."""

from __future__ import annotations

from fractions import Fraction

import networkx as nx
import numpy as np
import pytest

from pgmpy_dp import Budget, PrivateGraph
from pgmpy_dp.communities.operators.graph import adjacency_matrix
from pgmpy_dp.communities.operators.graph_operators import CommunityLabels, EdgeAnswers, EdgeCount, NeighbourSums
from pgmpy_dp.communities.published.projection_solvers import projected, projection, solvers
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.curator.curator_base import Curator
from pgmpy_dp.private.filter import BudgetExceeded
from pgmpy_dp.private.guarantee import ZCDP, ApproxDP, PureDP
from pgmpy_dp.private.operators.solutions import Solution

KARATE = nx.karate_club_graph()
MARKS = np.where(np.arange(34) < 17, 1, -1)[:, np.newaxis]


def curator(budget=None, graph=KARATE, **options) -> Curator:
    budget = budget or Budget(epsilon=1.0)
    return Curator(PrivateGraph(graph, ledger=budget), budget, what="a test", **options)


REQUESTS = {
    "edge_count": lambda c, share=Fraction(1, 4), **_: c.ask(EdgeCount(), share),
    "neighbour_sums": lambda c, share=Fraction(1, 4), marks=MARKS: c.ask(NeighbourSums(marks), share),
    "randomised_response": lambda c, share=Fraction(1, 4), **_: c.ask(EdgeAnswers(), share),
    "community_choice": lambda c, share=Fraction(1, 4), degree=3.0: c.ask(CommunityLabels(degree), share),
}


@pytest.mark.parametrize("name", REQUESTS)
@pytest.mark.parametrize("budget", [Budget(epsilon=1.0), Budget(rho=0.5)], ids=str)
def test_each_operator_takes_its_share_and_no_more_than_is_left(name, budget):
    graph = nx.path_graph(34)  # narrow: an exact draw of labels takes no time
    asked = curator(budget, graph)
    REQUESTS[name](asked)
    assert asked.left == Fraction(3, 4) and str(asked._data.ledger.left) in ("0-DP", "0-zCDP")
    with pytest.raises(BudgetExceeded):
        REQUESTS[name](asked, share=Fraction(4, 5))
    for share in (0, -1, Fraction(0)):
        with pytest.raises(ValueError, match="not positive"):
            REQUESTS[name](asked, share=share)
    assert asked.left == Fraction(3, 4)
    # A number is kept for the release; sums, answers and labels take memory, and a plan makes of them what it releases.
    assert [answer.operator for answer in asked.answers] == (["edge_count"] if name == "edge_count" else [])


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("neighbour_sums", {"marks": np.ones((34, 2), dtype=int)}),
        ("neighbour_sums", {"marks": np.full((34, 1), -128, dtype=np.int8)}),  # its own absolute value
        ("neighbour_sums", {"marks": np.full((34, 1), np.nan)}),
        ("neighbour_sums", {"marks": np.ones((33, 1), dtype=int)}),
        ("neighbour_sums", {"marks": np.ones(34, dtype=int)}),
        ("community_choice", {"degree": float("nan")}),
        ("community_choice", {"degree": -1.0}),
        ("community_choice", {"degree": float("inf")}),
        ("edge_count", {"share": 1e-30}),
        ("neighbour_sums", {"share": 1e-30}),
    ],
)
def test_wrong_arguments_are_refused_before_the_debit(name, arguments, monkeypatch):
    asked = curator()
    monkeypatch.setattr(asked, "_answer_now", None)
    with pytest.raises(ValueError, match=r"marks of shape|out of range|bury"):
        REQUESTS[name](asked, **arguments)
    assert asked.left == 1


def test_what_is_exact_leaves_with_noise_alone():
    """With the smallest noise there is, which is 0 but for a chance of exp(-1000)."""
    asked, exact = curator(Budget(epsilon=1e7)), adjacency_matrix(PrivateGraph(KARATE, ledger=Budget(rho=1.0)))
    assert asked.ask(EdgeCount(), Fraction(1, 8)) == KARATE.number_of_edges()
    for k in (1, 2, 5):
        marks = (np.arange(34)[:, np.newaxis] % k == np.arange(k)).astype(np.int8)
        assert np.array_equal(asked.ask(NeighbourSums(marks), Fraction(1, 8)), exact @ marks)
    with pytest.warns(UserWarning, match="NOT private"):
        answers = curator(Budget(epsilon=1e7), random_state=0).ask(EdgeAnswers(), 1)
    assert answers.dtype == bool and (answers != exact.toarray()).sum() <= 2 * 3  # 561 coins of 2**-16


@pytest.mark.parametrize("cost", [PureDP(0.7), ZCDP(0.2)], ids=str)
def test_noise_from_public_numbers_is_that_of_the_operators(cost, monkeypatch):
    budget = Budget(epsilon=0.7) if isinstance(cost, PureDP) else Budget(rho=0.2)
    share, seen, true = Fraction(1, 3), [], Curator._answer_now

    def watched(self, operator, arguments, share, mechanism, eta=0, **options):
        seen.append(mechanism(self.cost, Fraction(share)))
        return true(self, operator, arguments, share, mechanism, eta, **options)

    monkeypatch.setattr(Curator, "_answer_now", watched)
    asked = Curator(PrivateGraph(KARATE, ledger=budget), budget, what="")
    asked.ask(EdgeCount(), share)
    asked.ask(NeighbourSums(MARKS), share)
    asked.ask(EdgeAnswers(), share)
    assert seen[0].noise == (EdgeCount.noise_of(cost, share),) and seen[1].noise == (
        NeighbourSums.noise_of(cost, share),
    )
    assert seen[2].rate == EdgeAnswers.rate(cost, share)


class TestParts:
    def test_each_has_what_is_left_and_the_largest_share_is_gone(self):
        asked = curator(Budget(rho=1.0))
        asked.ask(EdgeCount(), Fraction(1, 2))
        with asked.split(2) as (first, second):
            assert first.left == second.left == Fraction(1, 2) and first.facts.n == 34
            with pytest.raises(RuntimeError, match="with its parts"):
                asked.ask(EdgeCount(), Fraction(1, 8))
            first.ask(EdgeCount(), Fraction(1, 8))
            second.ask(NeighbourSums(MARKS), Fraction(1, 4))
        assert asked.left == Fraction(1, 4) and [a.operator for a in asked.answers] == ["edge_count"] * 2
        with pytest.raises(RuntimeError, match="`with` block has ended"):
            first.ask(EdgeCount(), Fraction(1, 8))

    def test_the_reserve_of_one_is_not_that_of_the_other(self):
        """A projection of one half takes all of delta and the rest of epsilon; a vote on the other all of epsilon."""
        budget = Budget(epsilon=2.0, delta=1e-4)
        asked = curator(budget, reserve=1e-4, pure=True)
        program = projection(34, 4.0, 0.7)
        with asked.split(2) as (first, second):
            first.ask(EdgeCount(), Fraction(1, 50))
            assert projected(first, program, Fraction(49, 50), 1e-4).shape == (34, 34)
            with pytest.raises(BudgetExceeded):
                first.ask(EdgeCount(), Fraction(1, 100))
            second.ask(NeighbourSums(MARKS), 1)
        assert asked.left == 0 and asked._reserve == 0
        assert asked.release("test", {}).guarantee == ApproxDP(2.0, 1e-4)

    def test_every_edge_is_in_one_part(self):
        asked, exact = curator(), adjacency_matrix(PrivateGraph(KARATE, ledger=Budget(rho=1.0)))
        with asked.split(3) as parts:
            matrices = [adjacency_matrix(part._data) for part in parts]
            assert all(part.adjacency == Adjacency.EDGE for part in parts)
        assert ((sum(m.toarray() for m in matrices)) == exact.toarray()).all()


class TestSolutions:
    def test_gaussian_noise_needs_rho_or_all_it_takes_of_delta(self):
        program = projection(34, 4.0, 0.7)
        for asked in (curator(), curator(Budget(epsilon=1.0, delta=1e-6), pure=True, reserve=1e-6)):
            with pytest.raises(ValueError, match="Gaussian noise has no pure guarantee"):
                asked.ask(Solution(program, solvers(program)), Fraction(1, 2))
            assert asked.left == 1
        asked = curator(Budget(epsilon=1.0, delta=1e-6), pure=True, reserve=1e-6)
        with pytest.raises(ValueError, match="reserve of"):
            asked.ask(Solution(program, solvers(program)), Fraction(1, 2), 1e-5)
        assert asked.left == 1

    def test_programs_of_other_graphs_are_refused(self):
        asked, program = curator(Budget(rho=1.0)), projection(12, 4.0, 0.7)
        with pytest.raises(ValueError, match="34 vertices, and the program was made for n=12"):
            asked.ask(Solution(program, solvers(program)), 1)
        assert asked.left == 1
