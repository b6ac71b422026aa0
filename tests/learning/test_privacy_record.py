"""What a plan releases says what the plan charged: less is an error of who wrote it, and what was paid for is kept."""

from __future__ import annotations

import threading
from fractions import Fraction
from functools import reduce
from itertools import permutations

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from pgmpy_dp import Budget, Ledger, PrivateTable, check_linked, check_schema, discover, score_model
from pgmpy_dp.estimators import NaiveMLE, PrivateNetwork
from pgmpy_dp.learning.privacy_record import UnderstatedGuarantee, composed, released
from pgmpy_dp.linked import LinkedSchema, PrivateLinkedNetwork, PrivateLinkedTables, family_check
from pgmpy_dp.models import model_score
from pgmpy_dp.private.curator.table_curator import TableCurator
from pgmpy_dp.private.guarantee import ZCDP, ApproxDP, PureDP
from pgmpy_dp.private.operators.tables import Tables
from pgmpy_dp.tables import discovery, schema_check
from pgmpy_dp.tables.networks import adaptive_search

HALF = Budget(epsilon=0.5)
STATES = {"a": [0, 1], "b": [0, 1]}
FRAME = pd.DataFrame({"a": [0, 1] * 50, "b": [1, 1, 0, 0] * 25, "who": np.arange(100) // 2})
TWICE = r"released under 0.5-DP, and its data were charged \[PureDP\(epsilon=0.5\), PureDP\(epsilon=0.5\)\]: ask one"


def table(epsilon=3.0, **options) -> PrivateTable:
    return PrivateTable(FRAME, STATES, ledger=Budget(epsilon=epsilon), **options)


def asked(data, budget=HALF, name="a") -> TableCurator:
    curator = TableCurator(data, budget, what=name)
    curator.ask(Tables([(name,)]), 1)
    return curator


def twice(data):
    asked(data)
    return asked(data, name="b").release("marginals", {})


def test_one_curator_says_what_it_costs():
    assert released(table(), lambda data: asked(data).release("marginals", {})).guarantee == PureDP(0.5)


@pytest.mark.parametrize(
    "options", [{}, {"unit": "who", "rows_per_unit": 2}, {"unit": "who", "rows_per_unit": "shares"}]
)
def test_two_curators_that_say_what_one_costs(options):
    data = table(**options)
    with pytest.raises(UnderstatedGuarantee, match=TWICE) as caught:
        released(data, twice)
    assert caught.value.release.guarantee == PureDP(1.0) and caught.value.release.names
    assert data.ledger.spent == PureDP(1.0)


def test_two_curators_that_say_what_both_cost():
    def plan(data):
        return twice(data).published_with(composed(PureDP(0.5), PureDP(0.5)), {})

    assert released(table(), plan).guarantee == PureDP(1.0)


@pytest.mark.parametrize("measure", ["epsilon", "rho"])
@pytest.mark.parametrize("spent", [(1.1, 0.1, 0.2), (0.9, 0.5, 0.4), (0.3, 0.8, 0.9), (1e-9, 1.0, 1.7)])
def test_several_curators_that_are_added_up_in_any_order(spent, measure):
    """Sums of floats depend on it, and each of the orders is a guarantee: none is refused after the charge."""
    for order in permutations(range(3)):

        def plan(data, order=order):
            made = [asked(data, Budget(**{measure: cost})).release("marginals", {}) for cost in spent]
            first, second, third = (made[k].guarantee for k in order)
            return made[-1].published_with(composed(composed(first, second), third), {})

        data = PrivateTable(FRAME, STATES, ledger=Budget(**{measure: 9.0}))
        said = released(data, plan).guarantee
        assert composed(*(entry.cost for entry in data.ledger.entries)).implies(said)


def test_several_of_several_measures():
    costs = PureDP(0.3), ZCDP(0.1), PureDP(0.7), ZCDP(0.2)
    for order in permutations(costs):
        assert composed(*costs).implies(reduce(composed, order))
    costs = ApproxDP(0.3, 1e-6), PureDP(0.1), ApproxDP(0.7, 3e-6)
    for order in permutations(costs):
        assert composed(*costs).implies(reduce(composed, order))
    mixed = ApproxDP(0.3, 1e-6), ZCDP(0.1), ZCDP(0.2)
    assert composed(*mixed) == composed(composed(*mixed[:2]), mixed[2])


def test_a_guarantee_of_another_measure_is_held_against_what_was_charged():
    def plan(data):
        asked(data, Budget(epsilon=0.5, delta=1e-6))
        return asked(data, name="b").release("marginals", {})

    data = PrivateTable(FRAME, STATES, ledger=Budget(epsilon=3.0, delta=1e-5))
    with pytest.raises(UnderstatedGuarantee) as caught:
        released(data, plan)
    first, second = (entry.cost for entry in data.ledger.entries)
    assert caught.value.release.guarantee == composed(first, second)


@pytest.mark.parametrize(
    "also",
    [
        lambda data: asked(data.set_aside(PureDP(0.5), what="a part", mechanism="laplace")),
        lambda data: NaiveMLE(epsilon=0.5, state_names=STATES).fit(nx.Graph([("a", "b")]), data),
        lambda data: released(data, lambda own: asked(own).release("marginals", {})),
    ],
    ids=["set aside", "a fit in the plan", "a plan in the plan"],
)
def test_whatever_way_it_was_charged(also):
    def plan(data):
        also(data)
        return asked(data).release("marginals", {})

    with pytest.raises(UnderstatedGuarantee, match=TWICE) as caught:
        released(table(), plan)
    assert caught.value.release.guarantee == PureDP(1.0)


def test_a_part_that_was_set_aside_is_held_against_what_is_charged_to_it():
    part = table().set_aside(PureDP(2.0), what="a part", mechanism="laplace")
    assert released(part, lambda data: asked(data).release("marginals", {})).guarantee == PureDP(0.5)
    with pytest.raises(UnderstatedGuarantee, match=TWICE):
        released(part, twice)


def test_what_others_charge_meanwhile_is_not_the_plan_s():
    shared = table(10.0)

    def plan(data):
        curator = asked(data)
        others = [threading.Thread(target=released, args=(shared, lambda o: asked(o).release("marginals", {})))]
        others += [threading.Thread(target=asked, args=(shared,))]
        for other in others:
            other.start()
        for other in others:
            other.join()
        return curator.release("marginals", {})

    assert released(shared, plan).guarantee == PureDP(0.5)
    assert len(shared.ledger.entries) == 3
    assert released(shared, lambda data: asked(data).release("marginals", {})).guarantee == PureDP(0.5)


def test_what_an_interruption_carries_says_what_was_charged():
    def plan(data):
        first = asked(data)
        second = TableCurator(data, HALF, what="b")
        with second.keeping(lambda: second.release("marginals", {"first": first.arrays[0].tolist()})):
            second.ask(Tables([("b",)]), Fraction(1, 2))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        released(table(), plan)
    assert caught.value.release.guarantee == PureDP(1.0) and caught.value.release.public["interrupted"]


def test_a_release_of_other_data_than_the_plan_was_given():
    with pytest.raises(UnderstatedGuarantee, match=r"charged \[\]"):
        released(table(), lambda _: asked(table()).release("marginals", {}))


def doubled(monkeypatch, place, name) -> None:
    """A plan that asks for everything once more before, of another curator, and forgets that."""
    true = getattr(place, name)

    def run(*arguments, **options):
        true(*arguments, **options)
        return true(*arguments, **options)

    monkeypatch.setattr(place, name, run)


RHO = Budget(rho=0.5)
HOMES = pd.DataFrame({"house": ["h1", "h2"], "region": ["n", "s"]})
PEOPLE = pd.DataFrame({"house": ["h1", "h1", "h2"], "sex": ["f", "m", "f"]})
HOUSES = LinkedSchema({"region": ["n", "s"]}, {"sex": ["f", "m"]}, key="house", most=2)


def checked(ledger):
    return check_schema(PrivateTable(FRAME, STATES, ledger=ledger), RHO)


def discovered(ledger):
    return discover(FRAME, {"a": "categories"}, Budget(epsilon=0.5, delta=1e-3), ledger=ledger)


def scored(ledger):
    model = PrivateNetwork(rho=0.5, state_names=STATES, random_state=0).fit(FRAME).model_
    return score_model(model, PrivateTable(FRAME, STATES, ledger=ledger), RHO)


def checked_families(ledger):
    return check_linked(PrivateLinkedTables(HOMES, PEOPLE, HOUSES, ledger=ledger), budget=RHO)


def learned_families(ledger):
    return PrivateLinkedNetwork(rho=0.5).fit(PrivateLinkedTables(HOMES, PEOPLE, HOUSES, ledger=ledger))


PLANS = {
    "check_schema": (schema_check, "run", checked),
    "discover": (discovery.plan, "run", discovered),
    "score_model": (model_score.plan, "run", scored),
    "check_linked": (family_check, "_run", checked_families),
    "learn_linked": (adaptive_search, "run", learned_families),
}


@pytest.mark.filterwarnings("ignore::pgmpy_dp.FewRecordsWarning", "ignore::UserWarning")
@pytest.mark.parametrize("name", PLANS)
def test_every_function_that_runs_a_plan(name, monkeypatch):
    """Estimators: `tests/estimators/test_every_estimator.py`; publish_if: its own tests."""
    place, plan, ask = PLANS[name]
    ledger = Ledger(Budget(epsilon=10.0, delta=1e-2))
    ask(ledger)
    (paid,) = ledger.entries
    doubled(monkeypatch, place, plan)
    with pytest.raises(UnderstatedGuarantee) as caught:
        ask(ledger)
    assert caught.value.release.guarantee == composed(paid.cost, paid.cost)
