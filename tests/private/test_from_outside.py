"""What decides noise cannot be set from outside, and no change of what keeps a budget begins in the middle of another.

Whoever tries it here is a plan that is wrong, a library that pokes around, a signal's handler or a finaliser: code that
does not name what begins with an underscore.
"""

from __future__ import annotations

import contextlib
import copy
import gc
import itertools
import pickle
import signal
import sys
from collections import Counter
from fractions import Fraction

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from pgmpy_dp import Budget, Ledger, Number, PrivateTable, Schema
from pgmpy_dp.checks import fresh_copy
from pgmpy_dp.communities.operators.graph import PrivateGraph
from pgmpy_dp.communities.operators.graph_operators import NeighbourSums
from pgmpy_dp.fields.operators.vote_operators import EdgeVotes
from pgmpy_dp.mixtures.operators.cluster_operators import ClusterSums
from pgmpy_dp.private import accounting, ledger_file, turns
from pgmpy_dp.private import ledger as ledger_module
from pgmpy_dp.private.curator import charged_base, curator_base, schedule
from pgmpy_dp.private.curator.charged_base import Answer, ChargedCurator
from pgmpy_dp.private.curator.curator_base import Curator
from pgmpy_dp.private.curator.observer import Observer, observed
from pgmpy_dp.private.curator.outside_functions import outside_function
from pgmpy_dp.private.curator.schedule import GradientCurator
from pgmpy_dp.private.curator.table_curator import TableCurator
from pgmpy_dp.private.data.columns import PrivateColumns
from pgmpy_dp.private.data.data_base import PrivateData
from pgmpy_dp.private.data.table import PrivateTable as OwnTable
from pgmpy_dp.private.data.vectors import PrivateVectors
from pgmpy_dp.private.filter import BudgetExceeded, Filter
from pgmpy_dp.private.guarantee import ZCDP, ApproxDP, PureDP, ReservedZCDP
from pgmpy_dp.private.mathematics import certificates
from pgmpy_dp.private.operators import tables as table_operator
from pgmpy_dp.private.operators.distances import Distances
from pgmpy_dp.private.operators.model_errors import ModelErrors
from pgmpy_dp.private.operators.tables import Tables
from pgmpy_dp.private.operators.worst_fit import WorstFit
from pgmpy_dp.private.trusted_types import is_trusted

STATES = {"a": [0, 1], "b": [0, 1, 2]}
FRAME = pd.DataFrame({"a": [0, 1, 1, 0] * 25, "b": [0, 1, 2, 2] * 25})
RHO = Budget(rho=1.0)
HUGE = PureDP(1000.0)


MUCH = Budget(rho=1e6)
TABLE = PrivateTable(FRAME, STATES, ledger=MUCH, n_records=100)


def opened(budget=RHO, ledger=None, **facts):
    data = PrivateTable(FRAME, STATES, ledger=ledger or budget)
    return TableCurator(data, budget, what="test", columns=["a"], **facts)


def sampled():
    return GradientCurator(PrivateTable(FRAME, STATES, ledger=RHO, n_records=100), RHO, [("a",)], None, n_steps=3)


def charge(ledger, cost=PureDP(0.1), **changes):  # noqa: B008  # frozen
    facts = {"what": "test", "columns": ("a",), "mechanism": "laplace", "adjacency": "add_remove"}
    return ledger.charge(cost, **{**facts, **changes})


def scale(curator, share=Fraction(1, 8)):
    curator.ask(Tables([("a",)]), share)
    return curator.answers[-1].noise[0].scale


@outside_function
def no_edges(codes, rng):
    return ()


class Loud(PureDP):
    """A cost that is large whenever noise is made of it, and small in a ledger."""

    asked = 0

    @property
    def epsilon(self):
        Loud.asked += 1
        return 1e-9 if Loud.asked < 3 else 1e3

    @epsilon.setter
    def epsilon(self, value):
        pass

    def __init__(self):
        pass


class TestWhatDecidesNoise:
    @pytest.mark.parametrize("name", ["cost", "unit_cost", "left", "answers", "adjacency", "unit", "arrays", "facts"])
    def test_of_a_curator_cannot_be_assigned(self, name):
        curator = opened()
        before = scale(curator)
        with pytest.raises(AttributeError):
            setattr(curator, name, HUGE)
        with pytest.raises(AttributeError):
            delattr(curator, name)
        vars(curator)[name] = HUGE  # a property is asked first
        assert scale(curator) == before and curator.left == Fraction(3, 4)
        assert str(curator.release("marginals", {}).guarantee) == "1-zCDP"

    @pytest.mark.parametrize("name", ["schedule", "scale", "bound", "unit_size", "scopes", "cost", "unit_cost"])
    def test_of_a_schedule_cannot_be_assigned(self, name):
        curator = sampled()
        before = curator.schedule, curator.scale, curator.bound
        with pytest.raises(AttributeError):
            setattr(curator, name, 1e-3)
        vars(curator)[name] = 1e-3
        assert (curator.schedule, curator.scale, curator.bound) == before
        curator.step(np.zeros(2))

    @pytest.mark.parametrize("how", ["__dict__", "__setattr__"])
    def test_what_is_handed_out_is_a_copy(self, how):
        def change(value, name, new):
            vars(value).update({name: new}) if how == "__dict__" else object.__setattr__(value, name, new)

        budget = Budget(rho=1.0)
        curator = opened(budget, Ledger(budget))
        ledger, before = curator._data.ledger, scale(curator)
        change(budget, "rho", 1e6)
        change(curator.cost, "rho", 1e6)
        change(curator.unit_cost, "rho", 1e6)
        change(ledger.budget, "rho", 1e6)
        change(ledger.account.budget, "rho", 1e6)
        change(ledger.entries[0], "cost", ZCDP(0.0))
        change(ledger.entries[0].cost, "rho", 0.0)
        change(curator.answers[0], "arguments", {"scopes": ()})
        steps = sampled()
        change(steps.schedule, "multiplier", 1e-9)
        change(steps.schedule, "n_steps", 10**6)
        assert scale(curator) == before
        assert str(ledger.budget) == "1-zCDP" and str(ledger.spent) == "1-zCDP" and str(ledger.left) == "0-zCDP"
        assert curator.release("marginals", {}).scopes == (("a",), ("a",))
        assert steps.schedule.n_steps == 3 and steps.scale == sampled().scale
        entry = charge(own := Ledger(Budget(epsilon=1.0)), cost := PureDP(0.4))
        change(cost, "epsilon", 0.0)
        change(entry, "cost", PureDP(0.0))
        change(own.entries[0].cost, "epsilon", 0.0)
        assert str(own.left) == "0.6-DP"

    def test_costs_and_budgets_are_exactly_what_they_say(self):
        class Budgets(Budget):
            @property
            def guarantee(self):
                return PureDP(1e-9)

        class Free(Ledger):
            def charge(self, cost, **facts):
                return None

        ledger = Ledger(Budget(epsilon=1.0))
        with pytest.raises(TypeError, match="pass a PureDP, ZCDP"):
            charge(ledger, Loud())
        with pytest.raises(TypeError, match="pass a PureDP, ZCDP"):
            ledger.check(Loud())
        with pytest.raises(TypeError, match="is a Budgets; pass"):
            Ledger(Budgets(epsilon=1.0))
        with pytest.raises(TypeError, match="is a Budgets; pass"):
            opened(Budgets(epsilon=1.0), ledger)
        with pytest.raises(TypeError, match=r"ledger is a .*Free, which is not a class of the boundary"):
            PrivateTable(FRAME, STATES, ledger=Free(RHO))
        assert ledger.entries == ()

    def test_subclasses_are_not_opened(self):
        class Cheap(TableCurator):
            cost = HUGE
            _cost = HUGE

        class Fewer(OwnTable):
            __slots__ = ()
            adjacency = "edge"

        fake = type("TableCurator", (TableCurator,), {"cost": HUGE, "__module__": TableCurator.__module__})
        # None of the methods that a subclass could have of its own decides whether it is opened.
        private = [name for name in dir(TableCurator) if name.startswith("_") and not name.startswith("__")]
        lax = type("Lax", (TableCurator,), {name: lambda *_, **__: None for name in private})
        data = PrivateTable(FRAME, STATES, ledger=RHO)
        for kind in (Cheap, fake, lax):
            with pytest.raises(TypeError, match="not a class of the boundary; write a plan"):
                kind(data, RHO, what="test", columns=[])
        with pytest.raises(TypeError, match=r"data is a .*Fewer, which is not a class of the boundary"):
            TableCurator(Fewer(FRAME, STATES, ledger=RHO), RHO, what="test", columns=[])
        assert data.ledger.entries == ()

    def test_every_curator_and_kind_of_data_is_the_boundary_s_own(self):
        found = {
            kind
            for name, module in list(sys.modules.items())
            if name.startswith("pgmpy_dp.private.")
            for kind in vars(module).values()
            if isinstance(kind, type) and issubclass(kind, ChargedCurator | PrivateData)
        }
        assert {Curator, PrivateData, PrivateTable} < found and [kind for kind in found if not is_trusted(kind)] == []

    @pytest.mark.parametrize("kind", [PureDP, ZCDP, ReservedZCDP, ApproxDP])
    def test_guarantees_are_their_own(self, kind):
        assert is_trusted(kind) and not is_trusted(type(kind.__name__, (kind,), {"__module__": kind.__module__}))

    def test_neither_curators_nor_ledgers_begin_again(self):
        curator = opened()
        with pytest.raises(RuntimeError, match="opened once"):
            curator.__init__(curator._data, Budget(rho=100.0), what="test", columns=[])
        steps = sampled()
        before = steps.scale, steps.schedule, steps.scopes, steps.unit_size
        with pytest.raises(RuntimeError, match="opened once"):
            steps.__init__(steps._data, Budget(rho=100.0), [("a",), ("b",)], n_steps=100)
        assert before == (steps.scale, steps.schedule, steps.scopes, steps.unit_size)
        ledger = Ledger(RHO)
        charge(ledger, ZCDP(1.0))
        with pytest.raises(RuntimeError, match="make another one"):
            ledger.__init__(Budget(rho=100.0))
        assert str(ledger.left) == "0-zCDP"

    @pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps, lambda item: item.__reduce_ex__(2)])
    def test_neither_is_copied(self, copied):
        for item in (opened(), sampled(), Ledger(RHO), opened()._data):
            with pytest.raises(TypeError, match="cannot be copied or pickled"):
                copied(item)

    def test_a_charge_cannot_be_assigned(self):
        ledger = Ledger(RHO)
        with pytest.raises(AttributeError):
            ledger.charge = lambda *cost, **facts: None
        with pytest.raises(AttributeError):
            ledger.anything = 1
        opened(RHO, ledger)
        assert str(ledger.spent) == "1-zCDP"

    def test_declarations_are_exactly_what_they_say(self):
        """Others could read a record's cell by what they have seen of others, and see all of them before a charge."""
        seen = []

        class Watching(Number):
            def coder(self, dropped=-1):
                own = super().coder(dropped)
                return lambda key: seen.append(key) or own(key)

        class Watched(Schema):
            __slots__ = ()

            def coder(self, name, dropped=-1):
                own = super().coder(name, dropped)
                return lambda key: seen.append(key) or own(key)

        for make in (lambda: {**STATES, "a": Watching(0, 2, cuts=[1])}, lambda: Watched(STATES)):
            with pytest.raises(TypeError, match="which is made from one of this package's; pass a"):
                PrivateTable(FRAME, make(), ledger=RHO)
        assert seen == []

    def test_arrays_are_checked_as_they_are_used(self):
        """NumPy takes what ``__array__`` returns for a copy: nobody else has the arrays that curators check."""
        theirs = []

        class Shared:
            def __init__(self, array):
                theirs.append(array)

            def __array__(self, dtype=None, copy=None):
                return theirs[-1]

        class Seen(Observer):
            def answer(self, request, draw):
                asked.extend(each for each in request.arguments.values() if isinstance(each, np.ndarray))
                return draw()

        asked = []
        vectors = PrivateVectors(pd.DataFrame({"x": [0.5]}), columns=["x"], ledger=RHO)
        with observed(Seen()):
            sampled().step(Shared(np.zeros(2)))
            Curator(vectors, RHO, what="test").ask(ClusterSums(Shared(np.zeros((1, 1))), 1.0), Fraction(1, 2))
            edges = PrivateGraph(nx.path_graph(2), ledger=RHO)
            Curator(edges, RHO, what="test").ask(NeighbourSums(Shared(np.ones((2, 1), np.int8))), Fraction(1, 2))
        assert len(asked) >= len(theirs) == 3
        assert not any(np.shares_memory(own, other) for own in asked for other in theirs)
        for numbers in ([1.0, 2.0], [[1.0, 2.0]]):
            given = Shared(np.array(numbers))
            assert not np.shares_memory(fresh_copy(given), theirs[-1])
            assert not np.shares_memory(certificates._copied(given, np.shape(numbers)), theirs[-1])


class TestAnswers:
    def test_arguments_do_not_change(self):
        curator = opened()
        curator.ask(Tables([("a",)], [2.0]), Fraction(1, 4))
        (answer,) = curator.answers
        with pytest.raises(TypeError, match="does not support item assignment"):
            answer.arguments["scopes"] = (("b",),)
        with pytest.raises(AttributeError):
            answer.arguments = {}
        assert isinstance(answer, Answer) and curator.release("marginals", {}).scopes == (("a",),)

    def test_nor_what_is_in_them(self):
        said = {"array": np.zeros(2), "list": [np.ones(1)], "more": {"list": [1]}}
        kept = charged_base._kept_as_it_is(said)
        said["array"][0], said["list"][0][0], said["more"]["list"][0] = 5, 5, 5
        assert kept["array"].tolist() == [0, 0] and kept["list"][0].tolist() == [1] and kept["more"]["list"] == (1,)
        with pytest.raises(ValueError, match="read-only"):
            kept["array"][0] = 1

    def test_a_plan_that_changes_the_list_it_was_given(self):
        curator = opened()
        tables = curator.ask(Tables([("a",), ("b",)]), Fraction(1, 4))
        released = curator.release("marginals", {})
        tables[0] = tables[0] + 1
        tables.pop()
        assert curator.release("marginals", {}) == released

    def test_a_plan_that_changes_what_was_answered(self):
        """Arrays that are made writeable again, and lists in what an answer, a release or a question says."""
        curator = opened()
        (table,) = curator.ask(Tables([("a",)]), Fraction(1, 4))
        part = curator.picked(table, np.array([1]))
        released = curator.release("marginals", {}), curator.release("part", {}, {"part": part})
        for array in (table, part, table[:1], *curator.arrays, *curator.answers[0].values, *curator.named.values()):
            with pytest.raises(ValueError, match="WRITEABLE"):
                array.flags.writeable = True
            with pytest.raises(ValueError, match="read-only"):
                array[:] = 7
        (answer,) = curator.answers
        with pytest.raises(TypeError, match="does not support item assignment"):
            answer.public["schema"] = {}
        with pytest.raises(AttributeError):
            answer.public["scopes"].append(["lie"])
        for question in (answer.question, *curator.release("marginals", {}).questions):
            question.arguments["scopes"][0].append("lie")
            question.arguments["weights"] = [1]
            object.__setattr__(question, "operator", "lie")
        assert (curator.release("marginals", {}), curator.release("part", {}, {"part": part})) == released
        lies = dict.fromkeys(["linked", "fine", "paid", "schema", "unit"], "lie")
        assert "lie" not in curator.release("marginals", lies).public.values()

    def test_who_was_vouched_for_stays_in_the_release(self):
        curator = opened()

        def mine(codes, rng):
            return ()

        with curator.split(2) as parts:
            parts[1].ask(EdgeVotes(mine, {}, 4, 1, vouched_for=True), Fraction(1, 4))
            parts[0].ask(EdgeVotes(f"{__name__}.no_edges", {}, 4, 1), Fraction(1, 4))
            assert "mine" in str(curator.release("votes", {}).public["vouched_for"])
        for answer in curator.answers:
            with contextlib.suppress(TypeError):
                answer.arguments["vouched_for"] = False
            vars(answer)["arguments"] = {}
        (name,) = curator.release("votes", {"vouched_for": []}).public["vouched_for"]
        assert name.endswith("mine")


EVERY_FIFTH = pytest.mark.parametrize("step", [5, pytest.param(1, marks=pytest.mark.slow)])


def attacked(files, work, hostile, first=1, step=1):
    """Run `work()` again and again, each time with `hostile()` at the next place where a signal could be handled.

    In the same thread, where code of these files enters a function, or comes back from one of C: there Python calls the
    handlers of signals, and in allocations before it finalisers. Yields after each run.
    """

    def called(frame, event, _):
        nonlocal places
        if event in ("call", "c_return") and frame.f_code.co_filename in files:
            places += 1
            if places == number:
                hostile()

    for number in itertools.count(first, step):
        places, before = 0, sys.getprofile()
        sys.setprofile(called)
        try:
            with contextlib.suppress(KeyboardInterrupt):
                work()
        finally:
            sys.setprofile(before)
        yield
        if places < number:
            assert number > 10
            return


LEDGERS = {module.__file__ for module in (ledger_module, ledger_file, turns)}
CURATORS = {module.__file__ for module in (charged_base, curator_base, schedule, turns)}
REFUSED = (RuntimeError, BudgetExceeded)


def interrupt():
    raise KeyboardInterrupt


class TestChargesInTheMiddleOfACharge:
    """Each of these had one charge forgotten: 1-DP was spent and 1e-9 recorded."""

    @pytest.fixture(params=["memory", "file"])
    def ledger(self, request, tmp_path):
        budget = Budget(epsilon=1.0, delta=1e-6)
        return Ledger(budget) if request.param == "memory" else Ledger.open(tmp_path / "ledger.json", budget)

    def test_by_arguments_that_are_read(self, ledger):
        """They are read before the ledger is: all of them count."""

        class Text:
            def __str__(self):
                charge(ledger, PureDP(0.125))
                return "text"

        def columns():
            charge(ledger, PureDP(0.125))
            yield "a"

        charge(ledger, PureDP(0.5), what=Text(), mechanism=Text(), columns=columns())
        assert [entry.cost.epsilon for entry in ledger.entries] == [0.125, 0.125, 0.125, 0.5]

    def test_by_a_signal_during_a_conversion(self, ledger, monkeypatch):
        true, told = accounting.approx_to_zcdp, []

        def converted(*arguments):
            signal.raise_signal(signal.SIGINT)
            return true(*arguments)

        def handler(*_):
            others = [ledger] if ledger.path is None else [ledger, Ledger.open(ledger.path)]
            for one in others:
                with pytest.raises(RuntimeError, match=r"is charging (this|the) ledger"):
                    charge(one, PureDP(0.5))
                told.append(one.entries)  # reading is no change

        before = signal.signal(signal.SIGINT, handler)
        try:
            with monkeypatch.context() as patch:
                patch.setattr(accounting, "approx_to_zcdp", converted)
                charge(ledger, ZCDP(0.01))
        finally:
            signal.signal(signal.SIGINT, before)
        assert told and set(told) == {()}
        assert [entry.cost for entry in ledger.entries] == [ZCDP(0.01)]

    def test_by_a_finaliser(self, ledger, monkeypatch):
        true, told = Filter.charged, []

        class Last:
            def __del__(self):
                with pytest.raises(RuntimeError, match="is charging"):
                    charge(ledger, PureDP(0.5))
                told.append(1)

        def charged(self, entry):
            content = true(self, entry)
            last = Last()
            last.itself = last
            del last
            gc.collect()
            return content

        monkeypatch.setattr(Filter, "charged", charged)
        charge(ledger, PureDP(0.4))
        assert told and len(ledger.entries) == 1

    def test_whatever_is_written_in_between_is_not_forgotten(self, monkeypatch):
        """If all else fails: what was read is compared before it is replaced."""
        ledger, true = Ledger(Budget(epsilon=1.0)), Filter.charged
        other = true(ledger._filter, charge(Ledger(Budget(epsilon=1.0)), PureDP(1.0)))

        def charged(self, entry):
            ledger._filter = other
            return true(self, entry)

        monkeypatch.setattr(Filter, "charged", charged)
        with pytest.raises(RuntimeError, match="is charging this ledger already"):
            charge(ledger, PureDP(1e-9))
        assert str(ledger.left) == "0-DP"

    def test_at_every_place(self, ledger):
        made = []

        def small(epsilon=1e-4):
            with contextlib.suppress(*REFUSED):
                made.append(charge(ledger, PureDP(epsilon)))

        for _ in attacked(LEDGERS, lambda: small(2e-4), small):
            assert sum(entry.cost.epsilon for entry in ledger.entries) == sum(entry.cost.epsilon for entry in made)
        small()
        assert sorted(map(str, ledger.entries)) == sorted(map(str, made))

    def test_an_interrupt_at_every_place_forgets_nothing_and_locks_nobody_out(self, ledger):
        made = []
        for _ in attacked(LEDGERS, lambda: made.append(charge(ledger, PureDP(1e-4))), interrupt):
            before = len(ledger.entries)
            assert before >= len(made)  # one that was interrupted may have been charged
            made.append(charge(ledger, PureDP(2e-4)))
            assert len(ledger.entries) == before + 1


class TestQuestionsInTheMiddleOfAnAnswer:
    """Parts that were lent the whole share beside one whose parent spent half of it, and the like."""

    @pytest.fixture
    def spent(self, monkeypatch):
        """What each curator was asked: a sum for each, of which no chain from a whole to its part may exceed 1."""
        spent, parents, numbers = Counter(), {}, itertools.count()

        class Watching(Observer):
            def answer(self, request, draw):
                spent[request.curator] += request.share
                return [np.array([next(numbers)])]  # each answer another; real noise takes its time

            def lent(self, curator, parts):
                parents.update(dict.fromkeys(parts, curator))

        def largest():
            chains = [(spent[one], one) for one in {*spent, *parents}]
            for place, (total, one) in enumerate(chains):
                while one in parents:
                    one = parents[one]
                    total += spent[one]
                chains[place] = total, one
            return max((total for total, _ in chains), default=0)

        with observed(Watching()):
            yield lambda: (largest(), spent.clear(), parents.clear())[0]

    @staticmethod
    def ask(one, share):
        with contextlib.suppress(*REFUSED):
            one.ask(Tables([("a",)]), share)

    @staticmethod
    def whole():
        return TableCurator(TABLE, Budget(epsilon=1e-3), what="test", columns=["a"])

    def plan(self, ask, known):
        known[:] = [self.whole()]
        with contextlib.suppress(*REFUSED):
            ask(known[0], Fraction(1, 8))
            with known[0].split(2) as parts:
                known += parts
                ask(parts[0], Fraction(1, 4))
                with parts[1].split(2) as inner:
                    known += inner
                    ask(inner[1], Fraction(1, 2))
                    ask(parts[0], Fraction(1, 8))
                ask(parts[1], Fraction(1, 8))
            ask(known[0], Fraction(1, 8))

    def greedy(self, known):
        for one in known:
            self.ask(one, one.left or 1)
            self.ask(one, Fraction(1, 8))

    @EVERY_FIFTH
    def test_spend_nothing_twice_at_any_place(self, spent, step):
        known = []
        for _ in attacked(CURATORS, lambda: self.plan(self.ask, known), lambda: self.greedy(known), 1, step):
            self.greedy(known)
            assert spent() <= 1

    @EVERY_FIFTH
    def test_by_a_block_that_is_ended_at_any_place(self, spent, step):
        """What a generator keeps open ends when the generator is collected, wherever the thread is then."""
        known, blocks = [], []

        def work():
            known[:], blocks[:] = [self.whole()], []

            def block(one):
                with contextlib.suppress(*REFUSED), one.split(2) as parts:
                    known.extend(parts)
                    yield parts

            for one in (0, -1):
                blocks.append(block(known[one]))
                next(blocks[-1], None)
            for one in known:
                self.ask(one, Fraction(1, 4))
            self.end(blocks)
            self.greedy(known)

        for _ in attacked(CURATORS, work, lambda: self.end(blocks), min(2, step), step):
            self.end(blocks)
            self.greedy(known)
            assert spent() <= 1

    @staticmethod
    def end(blocks):
        for one in blocks:
            with contextlib.suppress(*REFUSED, ValueError):  # a generator that runs is not ended
                one.close()

    @EVERY_FIFTH
    def test_an_interrupt_at_any_place_keeps_what_was_answered(self, spent, step):
        known, told = [], []

        def ask(one, share):
            told.extend(one.ask(Tables([("a",)]), share))

        def work():
            told.clear()
            self.plan(ask, known)

        for _ in attacked(CURATORS, work, interrupt, step, step):
            kept = known[0].release("marginals", {}).values if known else ()
            assert len(kept) >= len(told)
            for array in told:
                assert any(np.array_equal(array, value) for value in kept)
            self.greedy(known)
            assert spent() <= 1

    def test_a_schedule_has_no_more_steps(self):
        known, made = [], []

        def step():
            with contextlib.suppress(*REFUSED):
                made.append(known[0].step(np.zeros(2)))

        def work():
            made.clear()
            known[:] = [GradientCurator(TABLE, Budget(rho=1e-3), [("a",)], None, n_steps=2)]
            for _ in range(3):
                step()

        for _ in attacked(CURATORS, work, lambda: [step() for _one in known * 3]):
            assert len(made) <= 2

    def test_states_that_are_merged_between_the_checks_and_the_count(self, monkeypatch):
        """The sizes by which tables are told apart would be those of others."""
        schema, true = PrivateTable(FRAME, {"a": [0, 1], "b": [0, 1]}, ledger=RHO).schema, curator_base.checked_share
        asks = {
            "tables": lambda c: c.ask(Tables([("b",)]), Fraction(1, 4)),
            "worst_fit": lambda c: c.ask(WorstFit([("b",), ("a",)], [np.zeros(3), np.zeros(2)]), Fraction(1, 4)),
            "distances": lambda c: c.ask(Distances([("b",)], [np.full(3, 1 / 3)]), Fraction(1, 4)),
            "model_errors": lambda c: c.ask(
                ModelErrors([("b",)], [np.full(3, 1 / 3)], [("ranked", (0,), 3)]), Fraction(1, 4)
            ),
        }
        for ask in asks.values():
            curator = opened()

            def read(share, curator=curator):
                with contextlib.suppress(ValueError):  # once only
                    curator.merge(schema, {"b": [0, 1, 1]})
                return true(share)

            with monkeypatch.context() as patch:
                patch.setattr(curator_base, "checked_share", read)
                with pytest.raises(RuntimeError, match="states were merged while"):
                    ask(curator)
            assert curator.answers == ()
            curator.ask(Tables([("b",)]), Fraction(1, 4))

    def test_by_a_signal_is_refused_and_the_answer_is_given(self, monkeypatch):
        curator, true, told = opened(), table_operator.contingency_tables, []

        def handler(*_):
            for ask in (
                lambda: curator.ask(Tables([("a",)]), 0.5),
                lambda: curator.split(2).__enter__(),
                curator.generator,
            ):
                with pytest.raises(RuntimeError, match="is answering a question"):
                    ask()
                told.append(1)

        def counted(*arguments):
            signal.raise_signal(signal.SIGINT)
            return true(*arguments)

        before = signal.signal(signal.SIGINT, handler)
        try:
            monkeypatch.setattr(table_operator, "contingency_tables", counted)
            curator.ask(Tables([("a",)]), Fraction(1, 2))
        finally:
            signal.signal(signal.SIGINT, before)
        assert len(told) == 3 and curator.left == Fraction(1, 2) and len(curator.answers) == 1


class TestSubclasses:
    """They are not the boundary's own: a method of theirs could answer otherwise."""

    def test_of_an_operator(self):
        assert is_trusted(Tables) and not is_trusted(type("Tables", (Tables,), {"__module__": Tables.__module__}))

    def test_a_schema_of_columns_is_the_boundary_s(self):
        lying = type("Lying", (Schema,), {})
        with pytest.raises(TypeError, match="schema is a Lying"):
            PrivateColumns(pd.DataFrame({"x": [1.0]}), lying({"x": Number(0, 10)}), ledger=Budget(epsilon=1.0))
