"""The list of mutants that replay has to catch, which is what makes its silence mean something.

Every operator of every curator is broken in two ways, on the data of the catalogue; a new operator that is not in
`ASKED_BY` is named by a test. Then comes the bookkeeping. Mutants of one subject alone (its clipping, its blocks, its
plans) are in that subject's tests, those of readers in test_replay_readers.py; README.md here has the table of all.
"""

from __future__ import annotations

import ast
import itertools
import logging
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

import pgmpy_dp
from pgmpy_dp.auditing.operator_list import every_operator
from pgmpy_dp.auditing.replay import replay
from pgmpy_dp.communities.operators import graph_operators
from pgmpy_dp.fields.operators import feature_matrices
from pgmpy_dp.fields.operators import vote_operators as votes
from pgmpy_dp.gaussian.operators.precision import PrecisionProgram
from pgmpy_dp.mixtures.operators import block_operators, cluster_operators
from pgmpy_dp.private.curator.charged_base import ChargedCurator
from pgmpy_dp.private.curator.curator_base import Curator
from pgmpy_dp.private.curator.mechanism import AdditiveNoise, NoisyMax
from pgmpy_dp.private.data import moments
from pgmpy_dp.private.guarantee import ZCDP, PureDP
from pgmpy_dp.private.ledger import Ledger
from pgmpy_dp.private.noise import matrix
from pgmpy_dp.private.operators import column_operators, regression_path, vector_operators
from pgmpy_dp.private.sensitive import Sensitive
from tests.auditing import test_replay_clusters
from tests.auditing.replay_cases import ReplayCase, run_replays
from tests.auditing.replay_catalogue import replay_catalogue
from tests.auditing.test_replay_clusters import asking as every_question
from tests.code_lines import parsed

# For each operator: how the names of cases begin that ask it.
ASKED_BY = {
    "tables": "NaiveMLE",
    "worst_fit": "PrivateNetwork, ",
    "matched_counts": "check_schema, in memory",
    "distances": "score_model, worst",
    "score_sums": "score sums, ",
    "parity_sums": "parities, ",
    "parity_matrix": "parity matrix, ",
    "interaction_matrix": "interaction matrix, ",
    "worst_parity": "pmw, ",
    "interaction_sums": "interactions, ",
    "record_count": "halves by pmw",
    "vertices": "walk, ising, ",
    "edge_votes": "EdgeVoting",
    "model_errors": "publish_if, test alone",
    "agreed_graph": "StableStructure",
    "ngram_tables": "PrivateMarkovChain, shares",
    "order_departure": "order departure, ",
    "step": "one table, ",
    "count": "sgd, add_remove",
    "unit_count": "PrivateGraphicalLasso, private, 1.0, add_remove",
    "clipped_sum": "PrivateGraphicalLasso, private, 1.0",
    "second_moments": "PrivateGraphicalLasso, double-wishart",
    "magnitudes": "PrivateGraphicalLasso, None, [(-3.0, 3.0), (-3.0, 3.0)], private",
    "strongest_pairs": "PrivateGraphicalLasso, None, pairs, (0.0, 0.0)",
    "pair_signs": "PrivateGraphicalLasso, None, pairs, (0.0, 0.0)",
    "solution": "PrivateGraphicalLasso, output",
    "edge_count": "PrivateBlockModel, noisy-power, 1-DP",
    "neighbour_sums": "PrivateBlockModel, noisy-power, 1-DP",
    "randomised_response": "PrivateBlockModel, randomized-response, 1-DP",
    "community_choice": "PrivateBlockModel, exponential, 1-DP",
    "stable_cells": "blocks of records",
    "stable_scales": "blocks of records",
    "mean_log_scale": "blocks of records",
    "cluster_sums": "blocks of records",
    "cluster_moments": "blocks of records",
    "stable_categories": "discover, categories",
    "number_tables": "discover, numbers",
    "grouped_tables": "grouped tables, ",
}


ADJACENCIES = ("replace_one", "add_remove")
ASKING = ("_answer", "_answer_now", "_additive", "_scheduled")


def operators() -> set[str]:
    """Names of the operators, and those under which the classes of curators answer, read from their source."""
    found = set(every_operator())
    package = Path(pgmpy_dp.__file__).parent
    for path in [*package.glob("private/curator/*.py"), *package.glob("*/operators/*.py")]:
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in ASKING:
                name = node.args[0]
                if isinstance(name, ast.Constant):
                    found.add(name.value)
                else:  # the two places that hand on what they were given
                    assert (path.name, ast.unparse(name)) in {
                        ("schedule.py", "operator"),
                        ("charged_base.py", "operator"),
                        ("curator_base.py", "request.name"),
                    }
    return found


def test_every_operator_is_in_the_list():
    assert operators() == set(ASKED_BY)


@cache
def catalogue() -> tuple[ReplayCase, ...]:
    tight = np.array([[0.0, 0.0], [1e-3, 0.0], [1e9, 0.0]])
    pairs = [(tight[:2], tight), *test_replay_clusters.pairs(count=3)]
    return (*replay_catalogue(), ReplayCase("blocks of records", every_question(), lambda rng: iter(pairs), len(pairs)))


def asking(operator: str) -> list[ReplayCase]:
    """A case for each adjacency."""
    cases = [case for case in catalogue() if case.name.startswith(ASKED_BY[operator])]
    return list({next((a for a in ADJACENCIES if a in case.name), "edge"): case for case in cases}.values())


def found(case: ReplayCase, about: str, most: int | None = None) -> list[str]:
    """What replay finds on the first pair of the corpus on which it finds something about an operator."""
    for data, neighbour in itertools.islice(case.pairs(np.random.default_rng(0)), most or case.corpus):
        problems = [text for text in replay(case.fit, data, neighbour).problems if text.startswith(f"{about}:")]
        if problems:
            return problems
    return []


@contextmanager
def statistics_of(operator: str, change: Callable[[Sensitive], dict]) -> Iterator[None]:
    """Every exact statistic that an operator makes, between the debit and the noise, is made otherwise."""
    true_answer, true_init = ChargedCurator._answer_now, Sensitive.__init__
    counting = False

    def made(self, *arguments, **options):
        true_init(self, *arguments, **options)
        for name, value in (change(self) if counting else {}).items():
            object.__setattr__(self, name, value)

    def answer(self, name, arguments, share, mechanism, *rest, **options):
        def counted(cost, part):
            nonlocal counting
            counting = name == operator
            try:
                return mechanism(cost, part)
            finally:
                counting = False

        return true_answer(self, name, arguments, share, counted, *rest, **options)

    with mock.patch.object(Sensitive, "__init__", made), mock.patch.object(ChargedCurator, "_answer_now", answer):
        yield


def halved(exact: Sensitive) -> dict:
    return {"l1": exact.l1 / 2, "l2": exact.l2 / 2, "linf": exact.linf / 2}


def tripled(exact: Sensitive) -> dict:
    return {"value": 3 * exact.value}


def thrice_as_far(true: Callable) -> Callable:
    return lambda votes: (true(votes)[0], 3 * true(votes)[1])


def instead(module, **names) -> Callable:
    """A patch: each name of a module is what a function makes of what it was."""
    return lambda: mock.patch.multiple(module, **{name: make(getattr(module, name)) for name, make in names.items()})


def by(factor: float) -> Callable:
    """From a function of one number to that function of a multiple of it."""
    return lambda true: lambda number: true(factor * number)


def thrice_the_edges(true: Callable) -> Callable:
    return lambda graph: 3 * true(graph)


@contextmanager
def half_a_trace(true: Callable = moments.trace_sensitivity) -> Iterator[None]:
    def half(*arguments):
        bounds = true(*arguments)
        return replace(bounds, **{name: getattr(bounds, name) / 2 for name in ("l1", "frobenius", "nuclear")})

    with mock.patch.object(matrix, "trace_sensitivity", half), mock.patch.object(moments, "trace_sensitivity", half):
        yield


def twice_the_rho(true: Callable) -> Callable:
    return lambda k, rho, *rest: true(k, 2 * rho, *rest)


def thrice_each(true: Callable) -> Callable:
    return lambda *arguments: [3 * array for array in true(*arguments)]


# Operators whose noise is not scaled by the sensitivities of a `Sensitive`, or whose statistic is none.
OTHERWISE = {
    ("vertices", halved): instead(regression_path, selection_weight=lambda true: lambda *a: max(1, true(*a) // 2)),
    ("agreed_graph", halved): instead(votes, distance_test=lambda true: lambda e, eta: true(2 * e, eta)),
    ("agreed_graph", tripled): instead(votes, mode_and_distance=thrice_as_far),
    ("randomised_response", halved): instead(graph_operators, flip_rate=by(2)),
    ("randomised_response", tripled): instead(graph_operators, adjacency_matrix=thrice_the_edges),
    ("community_choice", halved): instead(graph_operators, exponential_below=by(2)),
    ("community_choice", tripled): instead(graph_operators, adjacency_matrix=thrice_the_edges),
    ("second_moments", halved): half_a_trace,
    ("solution", halved): instead(PrecisionProgram, sensitivity=lambda true: property(lambda p: true.fget(p) / 2)),
    ("stable_cells", halved): instead(block_operators, stability_histogram=twice_the_rho),
    ("stable_cells", tripled): instead(
        block_operators, marked_cells=lambda true: lambda *a: (true(*a)[0], 3 * true(*a)[1])
    ),
    ("cluster_sums", halved): instead(
        cluster_operators, _step_units=lambda true: lambda *a: (true(*a)[0], true(*a)[1] / 4)
    ),
    ("cluster_sums", tripled): instead(cluster_operators, clipped_cluster_sums=thrice_each),
    ("cluster_moments", halved): instead(
        cluster_operators, _moment_units=lambda true: lambda *a: (true(*a)[0], true(*a)[1] / 4)
    ),
    ("cluster_moments", tripled): instead(cluster_operators, clipped_cluster_moments=thrice_each),
}
OTHERWISE |= {
    ("strongest_pairs", halved): instead(
        vector_operators, changed_records=lambda true: lambda adjacency: true(adjacency) / 2
    ),
    ("strongest_pairs", tripled): instead(vector_operators, sign_products=lambda true: lambda *a: 3 * true(*a)),
}
OTHERWISE |= {
    ("stable_categories", halved): instead(column_operators, stability_histogram=twice_the_rho),
    ("stable_categories", tripled): instead(
        column_operators, column_marks=lambda t: lambda *a: (t(*a)[0], 3 * t(*a)[1])
    ),
}
OTHERWISE |= {
    (operator, halved): instead(feature_matrices, changed_records=lambda true: lambda adjacency: true(adjacency) / 2)
    for operator in ("parity_matrix", "interaction_matrix")
}
OTHERWISE |= {("stable_scales", change): OTHERWISE["stable_cells", change] for change in (halved, tripled)}


@cache
def is_right(operator: str) -> bool:
    return not any(found(case, operator, 2) for case in asking(operator))


@pytest.mark.parametrize("change", [halved, tripled])
@pytest.mark.parametrize("operator", sorted(ASKED_BY))
def test_an_operator_that_is_broken(operator, change):
    """Half of the sensitivity scales the noise; the statistic moves three times as far as what scales it."""
    cases = asking(operator)
    assert cases and is_right(operator)
    with OTHERWISE.get((operator, change), lambda: statistics_of(operator, change))():
        for case in cases:
            assert re.search("exact statistics moved by|noise of scale", "; ".join(found(case, operator)))


@pytest.mark.parametrize("operator", sorted(every_operator()))
def test_an_operator_that_plans_its_noise_for_twice_the_share(operator):
    kind = every_operator()[operator]

    def planned(self, facts, cost, share, eta, true=kind.mechanism):
        return true(self, facts, cost, 2 * share, eta)

    with mock.patch.object(kind, "mechanism", planned):
        for case in asking(operator):
            assert re.search("noise of scale", "; ".join(found(case, operator)))


# -- bookkeeping ------------------------------------------------------------------------------------------------------


def debited(share: int, eta: int) -> Callable:
    """A debit of so many times the share, and of the reserve."""

    def debit(self, operator, asked, failing, true=Curator._debit):
        left, reserve = self._left, self._reserve
        self._left, self._reserve = Fraction(10), Fraction(10)
        true(self, operator, asked, failing)
        self._left, self._reserve = left - share * asked, reserve - eta * failing

    return debit


def parts_that_cost_nothing(self, true=Curator._reclaim):
    for part in self._parts:
        part._left = self._left
    true(self)


def charged_a_quarter(self, cost, true=Ledger.charge, **entry):
    return true(self, PureDP(cost.epsilon / 4) if isinstance(cost, PureDP) else ZCDP(cost.rho / 4), **entry)


def planned_for_twice(self, operator, share, eta, true=Curator._planned):
    request, facts, _, checked, eta = true(self, operator, share, eta)
    return request, facts, request.mechanism(facts, self.cost, 2 * checked, eta), checked, eta


NO_WHOLE_SHARE = "NaiveMLE, add_remove, 0.1-zCDP"
WITH_A_RESERVE = "StableStructure, chow-liu, add_remove"
IN_PARTS = "halves, add_remove, 0.1-zCDP"


@pytest.mark.parametrize(
    ("patched", "name", "wrong", "case", "says"),
    [
        (Curator, "_debit", debited(0, 1), NO_WHOLE_SHARE, "tables: 1 is left where 0 should be"),
        (Curator, "_debit", debited(2, 1), NO_WHOLE_SHARE, "tables: -1 is left where 0 should be"),
        (Curator, "_debit", debited(1, 0), WITH_A_RESERVE, "agreed_graph: 0 (and 0.01 of the reserve) is left where 0"),
        (Curator, "_debit", debited(1, 2), WITH_A_RESERVE, "agreed_graph: 0 (and -0.01 of the reserve) is left where"),
        (Curator, "_reclaim", parts_that_cost_nothing, IN_PARTS, "parts: 1 is left where 0 should be"),
        (Curator, "_planned", planned_for_twice, NO_WHOLE_SHARE, "tables: noise of scale"),
        (Ledger, "charge", charged_a_quarter, NO_WHOLE_SHARE, "the ledger was charged 0.025-zCDP for a curator of 0.1"),
    ],
)
def test_a_budget_that_is_kept_wrongly(patched, name, wrong, case, says, monkeypatch):
    (chosen,) = [each for each in catalogue() if each.name.startswith(case)]
    data, neighbour = next(chosen.pairs(np.random.default_rng(0)))
    assert replay(chosen.fit, data, neighbour).holds
    monkeypatch.setattr(patched, name, wrong)
    assert says in "; ".join(replay(chosen.fit, data, neighbour).problems)


# -- what is between the exact statistics and the answer ---------------------------------------------------------------


def exact_beside_the_noise(self, rng, true=AdditiveNoise.draw):
    return [array + item.value for array, item in zip(true(self, rng), self.exact, strict=True)]


def half_the_noise_that_is_stated(self, rng, true=AdditiveNoise.draw):
    return true(replace(self, noise=tuple(replace(noise, scale=noise.scale / 2) for noise in self.noise)), rng)


def place_by_exact_scores(self, rng, true=NoisyMax.draw):
    true(self, rng)
    return int(np.abs(self.exact.value).sum()) % len(self.exact.value)


def best_without_noise(self, rng):
    return int(np.argmax(self.exact.value))


@pytest.mark.parametrize(
    ("mechanism", "draw", "operator", "says"),
    [
        (AdditiveNoise, exact_beside_the_noise, "tables", "the same noisy numbers make another answer"),
        (AdditiveNoise, half_the_noise_that_is_stated, "tables", "noise of scale .* was drawn where"),
        (NoisyMax, best_without_noise, "worst_fit", "noise was drawn for 0 numbers"),
        (NoisyMax, place_by_exact_scores, "worst_fit", "the same noisy numbers make another answer"),
    ],
)
def test_a_draw_that_does_more_than_it_says(mechanism, draw, operator, says, monkeypatch):
    """Between a request and its answer: neither the statistics nor the scale that is stated are wrong."""
    monkeypatch.setattr(mechanism, "draw", draw)
    for case in asking(operator):
        assert re.search(says, "; ".join(found(case, operator)))


def test_a_mode_that_passes_every_test(monkeypatch):
    true = votes.released_mode
    monkeypatch.setattr(votes, "released_mode", lambda mode, *rest: (true(mode, *rest)[0], mode))
    assert any(
        "the same noisy numbers make another" in text
        for c in asking("agreed_graph")
        for text in found(c, "agreed_graph")
    )


def test_a_case_that_asks_for_nothing():
    """An option that is gone, say: both runs fail alike, and nothing was tried."""

    def fit(data):
        raise TypeError("no such option")

    case = ReplayCase("gone", fit, lambda rng: iter([(1, 2)]), 1)
    (item,) = run_replays([case])
    assert item.report.problems == ("nothing was asked of a curator",)


# -- an operator that says something of a record ----------------------------------------------------------------------


class Early(Exception):
    """Of a record."""


def stop(n: int) -> None:
    if n % 2:
        raise Early(f"{n} records")


@pytest.mark.parametrize(
    ("tell", "says"),
    [
        (stop, "error differs"),
        (lambda n: warnings.warn(f"{n}", stacklevel=1), "warned differs"),
        (lambda n: print(n), "printed differs"),
        (lambda n: logging.getLogger("pgmpy_dp").debug("%d", n), "logged differs"),
    ],
)
@pytest.mark.parametrize("operator", ["tables", "worst_parity", "vertices", "edge_votes", "step"])
def test_an_operator_that_tells_of_a_record(operator, tell, says):
    """While it counts: after the debit, where an error says what was spent for nothing."""
    case = next(case for case in asking(operator) if "add_remove" in case.name)

    def answer(self, name, arguments, share, mechanism, *rest, true=ChargedCurator._answer_now, **options):
        def counted(cost, part):
            tell(len(self._data._codes)) if name == operator else None
            return mechanism(cost, part)

        return true(self, name, arguments, share, counted, *rest, **options)

    data, neighbour = next(itertools.islice(case.pairs(np.random.default_rng(0)), 1, None))
    with mock.patch.object(ChargedCurator, "_answer_now", answer):
        assert says in "; ".join(replay(case.fit, data, neighbour).problems)


def test_the_table_of_mistakes_names_tests_that_exist():
    page, root = Path(__file__).with_name("README.md"), Path(__file__).parents[2]
    named = re.findall(r"`(tests/\S+?\.py)::(\w+)`", page.read_text(encoding="utf-8"))
    assert len(named) > 10
    for path, name in named:
        assert f"def {name}(" in (root / path).read_text(encoding="utf-8"), (path, name)
