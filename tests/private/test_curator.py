"""Curators: what is debited, when, and that nothing is counted, drawn or kept otherwise."""

from __future__ import annotations

import ast
import contextlib
import copy
import pickle
import threading
import traceback
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgmpy_dp import Budget, PrivateGraph, PrivateSequences, PrivateTable, PrivateVectors, Schema
from pgmpy_dp.linked.operators.linked_schema import LinkedSchema
from pgmpy_dp.linked.operators.linked_tables import PrivateLinkedTables
from pgmpy_dp.private.accounting import approx_to_zcdp
from pgmpy_dp.private.curator import curator_base
from pgmpy_dp.private.curator.charged_base import ChargedCurator
from pgmpy_dp.private.curator.curator_base import cost_of
from pgmpy_dp.private.curator.mechanism import AdditiveNoise, Mechanism
from pgmpy_dp.private.curator.observer import Coins, Observer, Request, observed
from pgmpy_dp.private.curator.table_curator import TableCurator
from pgmpy_dp.private.data.columns import PrivateColumns
from pgmpy_dp.private.data.data_base import PrivateData
from pgmpy_dp.private.data.table import contingency_tables
from pgmpy_dp.private.filter import BudgetExceeded
from pgmpy_dp.private.guarantee import ZCDP, ApproxDP, PureDP, ReservedZCDP
from pgmpy_dp.private.noise import samplers
from pgmpy_dp.private.operators import tables as table_operator
from pgmpy_dp.private.operators.tables import Tables
from pgmpy_dp.private.operators.worst_fit import WorstFit
from pgmpy_dp.private.reading import producers
from pgmpy_dp.private.sensitive import Release, Sensitive
from pgmpy_dp.private.trusted_types import is_trusted
from tests.code_lines import parsed
from tests.private.mechanisms import with_noise
from tests.private.processes import everything, forked

STATES = {"a": [0, 1], "b": [0, 1, 2]}
FRAME = pd.DataFrame({"a": [0, 1, 1, 0], "b": [0, 1, 2, 2]})


def table(budget=None, **arguments):
    return PrivateTable(FRAME, STATES, ledger=budget or Budget(rho=1.0), **arguments)


def opened(budget=None, data=None, **facts):
    budget = budget or Budget(rho=1.0)
    return TableCurator(table(budget) if data is None else data, budget, what="test", columns=["a"], **facts)


class TestOpening:
    @pytest.mark.parametrize(
        ("budget", "reserve", "cost"),
        [
            (Budget(epsilon=0.7), 0.0, PureDP(0.7)),
            (Budget(rho=0.3), 0.0, ZCDP(0.3)),
            (Budget(epsilon=1.0, delta=1e-6), 0.0, ZCDP(approx_to_zcdp(1.0, 1e-6))),
        ],
        ids=str,
    )
    def test_charges_the_whole_budget_before_anything_is_counted(self, budget, reserve, cost, monkeypatch):
        monkeypatch.setattr(table_operator, "contingency_tables", None)
        data = table(budget)
        curator = opened(budget, data, reserve=reserve)
        (entry,) = data.ledger.entries
        assert entry.cost == curator.cost == cost
        assert curator.left == 1 and curator.answers == ()

    def test_with_a_reserve_the_ledger_has_both_numbers(self):
        budget = Budget(epsilon=1.0, delta=1e-6)
        data = table(budget)
        curator = opened(budget, data, reserve=2e-7)
        (entry,) = data.ledger.entries
        assert entry.cost == ReservedZCDP(curator.cost.rho, 2e-7)
        assert curator.cost.rho == pytest.approx(approx_to_zcdp(1.0, 8e-7), rel=1e-9)
        assert entry.cost.implies(ApproxDP(1.0, 1e-6))
        assert curator.release("marginals", {}).guarantee == entry.cost

    @pytest.mark.parametrize("budget", [Budget(epsilon=1.0), Budget(rho=1.0), Budget(epsilon=1.0, delta=1e-9)], ids=str)
    def test_a_reserve_is_part_of_a_delta(self, budget):
        data = table(budget)
        with pytest.raises(ValueError, match="reserve=1e-09 is too much for the delta"):
            opened(budget, data, reserve=1e-9)
        assert data.ledger.entries == ()

    def test_epsilon_can_be_spent_in_pure_shares_beside_a_reserve(self):
        budget = Budget(epsilon=1.0, delta=1e-6)
        data = table(Budget(epsilon=2.0, delta=1e-6))
        curator = opened(budget, data, reserve=1e-6, pure=True)
        assert (curator.cost, data.ledger.entries[0].cost) == (PureDP(1.0), ApproxDP(1.0, 1e-6))
        assert opened(budget, data, pure=True).release("marginals", {}).guarantee == PureDP(1.0)
        with pytest.raises(ValueError, match="has no epsilon"):
            opened(Budget(rho=1.0), pure=True)

    def test_is_refused_by_a_ledger_that_lacks_the_budget(self):
        data = table(Budget(rho=0.5))
        with pytest.raises(BudgetExceeded):
            TableCurator(data, Budget(rho=0.6), what="test", columns=[])
        assert data.ledger.entries == ()

    def test_one_that_was_refused_answers_nothing(self):
        """Also to whoever keeps the object that the constructor did not return."""
        data, curator = table(Budget(rho=0.5)), TableCurator.__new__(TableCurator)
        with pytest.raises(BudgetExceeded):
            curator.__init__(data, Budget(rho=100.0), what="test", columns=[])
        with pytest.raises(BudgetExceeded, match="0 is left"):
            curator.ask(Tables([("a",)]), Fraction(1, 100))
        assert data.ledger.entries == ()

    def test_takes_its_own_kind_of_data(self):
        with pytest.raises(TypeError, match="PrivateTable"):
            TableCurator(FRAME, Budget(rho=1.0), what="test", columns=[])


class TestShares:
    def test_a_share_is_debited_before_counting(self, monkeypatch):
        curator = opened()
        seen = []
        count = table_operator.contingency_tables
        monkeypatch.setattr(table_operator, "contingency_tables", lambda *a: seen.append(curator.left) or count(*a))
        curator.ask(Tables([("a",)]), Fraction(1, 4))
        curator.ask(WorstFit([("a",), ("b",)], [np.zeros(2), np.zeros(3)]), Fraction(1, 4))
        assert seen == [Fraction(3, 4), Fraction(1, 2)]

    def test_too_little_left_is_an_error_before_counting(self, monkeypatch):
        curator = opened()
        curator.ask(Tables([("a",)]), Fraction(2, 3))
        monkeypatch.setattr(table_operator, "contingency_tables", None)
        for ask in (
            lambda: curator.ask(Tables([("a",)]), Fraction(1, 2)),
            lambda: curator.ask(WorstFit([("a",)], [np.zeros(2)]), 0.5),
        ):
            with pytest.raises(BudgetExceeded, match=r"a share of 0\.5 of 1-zCDP was asked, 0\.333333 is left"):
                ask()
        assert curator.left == Fraction(1, 3) and len(curator.answers) == 1

    @pytest.mark.parametrize("share", [0, -0.5, Fraction(-1, 3)])
    def test_shares_are_positive(self, share):
        curator = opened()
        with pytest.raises(ValueError, match="not positive"):
            curator.ask(Tables([("a",)]), share)
        with pytest.raises(ValueError, match="not positive"):
            curator.ask(WorstFit([("a",)], [np.zeros(2)]), share)
        assert curator.left == 1

    @pytest.mark.parametrize(
        "share", [np.float32(0.1), np.float64(0.1), np.longdouble(0.1), np.float16(0.1), np.int8(1)]
    )
    def test_shares_are_numbers_of_any_kind(self, share):
        curator = opened()
        curator.ask(Tables([("a",)]), share)
        assert curator.left == 1 - Fraction(float(share))

    @pytest.mark.parametrize(
        "share",
        ["0.1", None, True, np.True_, [0.1], 1j, float("nan"), float("inf"), np.float32("inf"), np.float32("nan")],
    )
    def test_a_share_that_is_none_is_named(self, share):
        curator = opened()
        with pytest.raises((TypeError, ValueError), match=r"^share=.*pass a finite number"):
            curator.ask(Tables([("a",)]), share)
        assert curator.left == 1

    @pytest.mark.parametrize("kind", [np.uint8, np.int16, np.int32, np.int64])
    def test_shares_and_weights_of_numpy_integers_are_exact(self, kind):
        """A Fraction of them keeps them, and their products go round: these had noise of scale .001, none at all."""
        curator = opened(Budget(epsilon=1e-3))
        for n in (3, 5, 7, 11, 13, 17):
            curator.ask(Tables([("a",)]), Fraction(1, kind(n)))
            assert curator.answers[-1].noise[0].scale == pytest.approx(1e3 * n)
        assert curator.left == 1 - sum(Fraction(1, n) for n in (3, 5, 7, 11, 13, 17))
        curator = opened(Budget(epsilon=1e-3))
        weights = np.array([120, 7], dtype=kind)
        curator.ask(Tables([("a",), ("b",)], weights), kind(1))
        weights[:] = 1
        assert [noise.scale for noise in curator.answers[0].noise] == pytest.approx([127e3 / 120, 127e3 / 7])
        assert curator.left == 0 and curator.answers[0].arguments["weights"] == (120, 7)

    def test_what_can_be_read_once_is_read_once(self):
        curator = opened()
        curator.ask(Tables([("a",), ("b",)], iter([1.0, 3.0])), 1)
        assert len(curator.answers) == 1

    @given(st.lists(st.floats(1e-6, 0.7), max_size=12))
    def test_what_was_answered_never_costs_more_than_what_was_charged(self, shares):
        curator = opened()
        for share in shares:
            left = curator.left
            try:
                curator.ask(Tables([("a",), ("b",)], [1.0, 3.0]), share)
            except BudgetExceeded:
                assert Fraction(share) > left == curator.left
        spent = sum(Fraction(1) / (2 * Fraction(noise.scale) ** 2) for a in curator.answers for noise in a.noise)
        assert spent <= Fraction(curator.cost.rho) * (1 - curator.left) <= 1

    def test_an_interrupted_answer_is_paid_for_and_what_came_before_is_kept(self, monkeypatch):
        curator = opened()
        first = curator.ask(Tables([("a",)]), Fraction(1, 4))

        def interrupt(self, rng):
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(AdditiveNoise, "draw", interrupt)
            with pytest.raises(KeyboardInterrupt):
                curator.ask(Tables([("b",)]), Fraction(1, 4))
        assert curator.left == Fraction(1, 2)
        release = curator.release("marginals", {"settings": {}})
        assert release.scopes == (("a",),)
        np.testing.assert_array_equal(release.values[0], first[0])

    @pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
    @pytest.mark.parametrize("where", [(samplers, "discrete_gaussian"), (table_operator, "contingency_tables")])
    def test_an_error_in_an_answer_leads_to_no_record(self, error, where, monkeypatch):
        """Notebooks in verbose mode and trackers of errors print the variables of every frame."""

        def fail(*arguments, **_more):
            rows = FRAME.to_numpy()
            try:
                raise OSError
            except OSError:
                raise error(len(rows)) from None

        curator = opened()
        monkeypatch.setattr(*where, fail)
        with pytest.raises(error) as caught:
            curator.ask(Tables([("a",)]), Fraction(1, 4))
        below = False
        for frame, _ in traceback.walk_tb(caught.value.__traceback__):
            if below := below or frame.f_code.co_name == "ask":
                held = [value for name, value in frame.f_locals.items() if name != "self"]
                hidden = [value for value in held if not isinstance(value, Mechanism) or value.exact]
                assert not any(isinstance(value, np.ndarray | Sensitive | Mechanism | Request) for value in hidden)
        assert below and curator.left == Fraction(3, 4)
        # What was raised on the way is emptied too.
        assert all(not frame.f_locals for frame, _ in traceback.walk_tb(caught.value.__context__.__traceback__))

    @pytest.mark.parametrize("when", ["draw", "turn"])
    def test_nor_does_full_memory_or_an_interrupt_at_the_very_end(self, when, monkeypatch):
        def full(self, rng):
            raise MemoryError

        @contextlib.contextmanager
        def interrupted(self, turn=ChargedCurator._turn):
            with turn(self):
                yield
            raise KeyboardInterrupt

        curator = opened()
        changed = (AdditiveNoise, "draw", full) if when == "draw" else (ChargedCurator, "_turn", interrupted)
        monkeypatch.setattr(*changed)
        with pytest.raises((MemoryError, KeyboardInterrupt)) as caught:
            curator.ask(Tables([("a",)]), Fraction(1, 4))
        assert caught.type is (MemoryError if when == "draw" else KeyboardInterrupt)
        frames = [frame for frame, _ in traceback.walk_tb(caught.value.__traceback__)]
        assert "ask" in {frame.f_code.co_name for frame in frames}
        held = [value for frame in frames for value in frame.f_locals.values()]
        assert not any(isinstance(value, Request) or (isinstance(value, Mechanism) and value.exact) for value in held)
        assert curator.left == Fraction(3, 4)

    def test_running_out_of_memory_tells_no_number_of_records(self, monkeypatch):
        curator = opened()
        monkeypatch.setattr(table_operator, "contingency_tables", lambda *_arguments: np.empty(1 << 50))
        with pytest.raises(MemoryError, match=r"^memory ran out .* the share is spent$") as caught:
            curator.ask(Tables([("a",)]), Fraction(1, 4))
        assert caught.value.__context__ is None and curator.left == Fraction(3, 4)

    def test_nor_does_it_before_the_charge(self, monkeypatch):
        """Whoever made data of more records than memory holds read their number in NumPy's words."""
        kinds = PrivateData.__subclasses__()
        kinds = [k for k in [*kinds, *(each for kind in kinds for each in kind.__subclasses__())] if is_trusted(k)]
        assert len(kinds) == 6

        def full(self, names, spelled=()):
            raise MemoryError("Unable to allocate an array with shape (27000000,)")

        monkeypatch.setattr(producers._PandasSource, "batches", full)
        budget, states = Budget(rho=1.0), {"a": [0, 1]}
        frame = pd.DataFrame({"a": [0.0], "user": [1], "sequence": ["x"]})
        making = {
            PrivateTable: lambda: PrivateTable(frame, states, ledger=budget),
            PrivateVectors: lambda: PrivateVectors(frame, ["a"], ledger=budget),
            PrivateSequences: lambda: PrivateSequences(frame, {"x": ["x", "y"]}, ledger=budget),
            PrivateGraph: lambda: PrivateGraph(frame[["a", "user"]], [0, 1], ledger=budget),
            PrivateColumns: lambda: PrivateColumns(frame, Schema(states), ledger=budget),
            PrivateLinkedTables: lambda: PrivateLinkedTables(
                None, frame, LinkedSchema(None, states, key="user", most=3), ledger=budget
            ),
        }
        assert set(making) == set(kinds)
        for make in making.values():
            with pytest.raises(
                MemoryError, match=r"^memory ran out while records were read: nothing was spent$"
            ) as found:
                make()
            assert found.value.__context__ is None

    def test_two_threads_cannot_spend_a_share_twice(self):
        curator, refused = opened(), []

        def ask():
            for _ in range(20):
                try:
                    curator.ask(Tables([("a",)]), Fraction(1, 25))
                except BudgetExceeded:
                    refused.append(1)

        threads = [threading.Thread(target=ask) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (len(curator.answers), len(refused), curator.left) == (25, 35, 0)

    def test_another_thread_waits_until_an_answer_is_given(self, monkeypatch):
        """The second asks while the first counts; it is answered after it, and not refused."""
        curator, done, second, log = opened(), threading.Event(), [], []
        true = table_operator.contingency_tables

        def ask():
            try:
                log.append(("second", len(curator.ask(Tables([("a",)]), Fraction(1, 4)))))
            except RuntimeError as error:
                log.append(("refused", str(error)))
            done.set()

        def counted(table, scopes, grid):
            if not second:
                second.append(threading.Thread(target=ask))
                second[0].start()
                done.wait(0.5)  # as long as it is made to wait: it cannot be done before this returns
                log.append(("first", 1))
            return true(table, scopes, grid)

        monkeypatch.setattr(table_operator, "contingency_tables", counted)
        curator.ask(Tables([("a",)]), Fraction(1, 4))
        second[0].join()
        assert log == [("first", 1), ("second", 1)] and curator.left == Fraction(1, 2)

    def test_etas_come_out_of_the_reserve(self, monkeypatch):
        with pytest.raises(ValueError, match="tables, which cannot fail"):
            opened(Budget(epsilon=1.0, delta=1e-6), reserve=1e-7).ask(Tables([("a",)]), 1, 1e-8)
        monkeypatch.setattr(Tables, "can_fail", True)
        curator = opened(Budget(epsilon=1.0, delta=1e-6), reserve=1e-7)

        def ask(eta):
            return curator.ask(Tables([("a",)]), Fraction(1, 10), eta)

        ask(6e-8)
        with pytest.raises(ValueError, match=r"eta=6e-08 was asked of a reserve of 4e-08"):
            ask(6e-8)
        ask(4e-8)
        assert curator.left == Fraction(4, 5)
        with pytest.raises(ValueError, match=r"larger reserve"):
            opened(Budget(rho=1.0)).ask(Tables([("a",)]), Fraction(1, 2), 1e-12)


class TestAnswers:
    def test_a_plan_cannot_change_what_the_release_says(self):
        curator = opened()
        (noisy,) = curator.ask(Tables([["a"]]), 1)
        with pytest.raises(ValueError, match="read-only"):
            noisy += 1
        assert np.array_equal(noisy, curator.release("test", {}).values[0])

    def test_releases_say_what_was_answered(self, tmp_path):
        curator = opened()
        noisy = curator.ask(Tables([("a",), ("b", "a")], [1.0, 3.0]), Fraction(1, 2))
        assert curator.ask(WorstFit([("a",), ("b",)], [np.zeros(2), np.full(3, 1e6)]), Fraction(1, 4)) == 1
        more = curator.ask(Tables([("b",)]), Fraction(1, 4))
        release = curator.release("marginals", {"settings": {"mine": 1}})
        assert release.scopes == (("a",), ("b", "a"), ("b",))
        for value, released in zip([*noisy, *more], release.values, strict=True):
            np.testing.assert_array_equal(value, released)
        scales = [noise.scale for noise in release.noise]
        assert scales == pytest.approx([2.0, 2 / np.sqrt(3), np.sqrt(2)], rel=1e-15)
        assert (release.guarantee, release.public["settings"]) == (ZCDP(1.0), {"mine": 1})
        release.save(tmp_path / "release.npz")
        assert Release.load(tmp_path / "release.npz") == release

    @pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf, 1e300, -1e300])
    def test_an_odd_expectation_does_no_harm(self, odd):
        curator = opened()
        assert curator.ask(WorstFit([("a",), ("b",)], [np.full(2, odd), np.zeros(3)]), Fraction(1, 2)) in (0, 1)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (([("zzz",)], [np.zeros(2)], 0.5), "unknown variables 'zzz'"),
            (([("a",)], [np.zeros(3)], 0.5), r"expected has tables of the shapes \[\(3,\)\]"),
            (([("a",)], [np.zeros(2)], 0.5, [np.nan]), "offsets"),
            (([("a", "a")], [np.zeros((2, 2))], 0.5), "none of them twice"),
            (([], [], 0.5), "scopes is empty"),
            (([("a",)], [np.zeros(2)], Fraction(1, 10**40)), "beyond"),
        ],
    )
    def test_bad_public_arguments_cost_nothing(self, arguments, message):
        curator = opened()
        with pytest.raises(ValueError, match=message):
            curator.ask(WorstFit(*arguments[:2], *arguments[3:]), arguments[2])
        assert curator.left == 1

    def test_seeded_noise_is_marked(self):
        with pytest.warns(samplers.ReproducibleNoiseWarning):
            curator = opened(random_state=1)
        curator.ask(Tables([("a",)]), 1)
        assert curator.release("marginals", {}).reproducible


class TestParts:
    @pytest.mark.parametrize("error", [MemoryError, ValueError])
    def test_an_error_while_records_are_parted_leads_to_no_record(self, error, monkeypatch):
        def full(curator, units, count, n_parts):
            records = units()
            raise error(f"of {len(records)} records")

        monkeypatch.setattr(Coins, "parts", full)
        curator = opened()
        with pytest.raises(error) as raised, curator.split(2):
            pass
        assert "4 records" not in str(raised.value) or error is ValueError  # only what memory lacks says a number
        walked = [frame for frame, _ in traceback.walk_tb(raised.value.__traceback__)]
        assert not any("codes" in frame.f_locals or "records" in frame.f_locals for frame in walked)
        assert raised.value.__context__ is None and curator.left == 1

    def test_parts_have_all_that_is_left_and_cost_what_the_most_expensive_one_used(self):
        curator = opened()
        curator.ask(Tables([("a",)]), Fraction(1, 4))
        with curator.split(3) as parts:
            assert [part.left for part in parts] == [Fraction(3, 4)] * 3
            parts[0].ask(Tables([("a",)]), Fraction(1, 8))
            parts[2].ask(Tables([("a",)]), Fraction(1, 2))
            assert {part.facts.n_records for part in parts} == {None}
            with pytest.raises(RuntimeError, match="with its parts"):
                curator.ask(Tables([("a",)]), Fraction(1, 100))
            with pytest.raises(BudgetExceeded):
                parts[2].ask(Tables([("a",)]), Fraction(1, 3))
        assert curator.left == Fraction(1, 4)
        assert len(curator.answers) == 3
        with pytest.raises(RuntimeError, match="block has ended"):
            parts[1].ask(Tables([("a",)]), Fraction(1, 100))
        curator.ask(Tables([("a",)]), Fraction(1, 4))

    def test_a_reserve_comes_back_without_what_a_part_used_of_it_most(self, monkeypatch):
        monkeypatch.setattr(Tables, "can_fail", True)
        curator = opened(Budget(epsilon=1.0, delta=1e-6), reserve=1e-7)
        with curator.split(3) as parts:
            for part, eta in zip(parts, (Fraction(1, 10**8), Fraction(6, 10**8), Fraction(2, 10**8)), strict=True):
                part.ask(Tables([("a",)]), Fraction(1, 10), eta)
            with parts[2].split(2) as quarters:
                quarters[1].ask(Tables([("a",)]), Fraction(1, 10), Fraction(5, 10**8))
        with pytest.raises(ValueError, match="eta=5e-08 was asked of a reserve of 3e-08"):
            curator.ask(Tables([("a",)]), Fraction(1, 10), Fraction(5, 10**8))
        curator.ask(Tables([("a",)]), Fraction(1, 10), Fraction(3, 10**8) - Fraction(1, 10**20))

    def test_the_size_of_a_part_is_private_where_that_of_the_table_is_public(self):
        curator = opened(data=table(adjacency="replace_one", n_records=4))
        with curator.split(2) as parts:
            assert (curator.facts.n_records, {part.facts.n_records for part in parts}) == (4, {None})

    def test_every_record_is_in_one_part(self):
        class Exact(Observer):
            def answer(self, request, draw):
                return [item.value for item in request.mechanism.exact]

        with observed(Exact()):
            curator = opened()
            with curator.split(2) as parts:
                counts = [part.ask(Tables([("a", "b")]), 1)[0] for part in parts]
        expected = np.zeros((2, 3), dtype=int)
        np.add.at(expected, (FRAME["a"], FRAME["b"]), 1)
        np.testing.assert_array_equal(sum(counts), expected)

    def test_an_error_in_the_block_ends_the_parts_too(self):
        curator = opened()
        with contextlib.suppress(ZeroDivisionError), curator.split(2) as parts:
            parts[0].ask(Tables([("a",)]), Fraction(1, 2))
            raise ZeroDivisionError
        assert curator.left == Fraction(1, 2)
        curator.ask(Tables([("a",)]), Fraction(1, 2))

    def test_blocks_that_end_out_of_order_spend_nothing_twice(self):
        """A generator that keeps the inner block open: the outer one closes what is in it, and counts it."""

        def halves(curator):
            with curator.split(2) as parts:
                yield from parts

        curator = opened()
        with curator.split(2) as parts:
            inner = halves(parts[0])
            first = next(inner)
            first.ask(Tables([("a",)]), 1)
        assert curator.left == 0
        second = next(inner)
        for closed in (first, second, parts[0], parts[1]):
            with pytest.raises(RuntimeError, match="block has ended"):
                closed.ask(Tables([("a",)]), Fraction(1, 100))
        inner.close()
        with pytest.raises(RuntimeError, match="block has ended"):
            parts[0].ask(Tables([("a",)]), Fraction(1, 100))
        with pytest.raises(BudgetExceeded):
            curator.ask(Tables([("a",)]), Fraction(1, 100))
        assert len(curator.answers) == 1

    def test_the_outer_block_before_the_inner_one(self):
        curator = opened()
        outer = curator.split(2)
        parts = outer.__enter__()
        inner = parts[0].split(2)
        inner.__enter__()[1].ask(Tables([("a",)]), Fraction(1, 2))
        outer.__exit__(None, None, None)
        assert curator.left == Fraction(1, 2)
        inner.__exit__(None, None, None)
        with pytest.raises(RuntimeError, match="block has ended"):
            parts[0].ask(Tables([("a",)]), Fraction(1, 4))
        assert curator.left == Fraction(1, 2)

    def test_a_block_that_ends_in_the_middle_of_an_answer_of_its_part_takes_nothing_back(self, monkeypatch):
        """The answer would be of a part that is closed, and in no release."""
        curator = opened()
        block = curator.split(2)
        (part, _), count = block.__enter__(), table_operator.contingency_tables

        def ended(*arguments):
            with pytest.raises(RuntimeError, match="is answering a question"):
                block.__exit__(None, None, None)
            return count(*arguments)

        monkeypatch.setattr(table_operator, "contingency_tables", ended)
        part.ask(Tables([("a",)]), Fraction(1, 4))
        assert len(part.answers) == 1 and part.left == Fraction(3, 4)

    def test_parts_of_parts(self):
        curator = opened()
        with curator.split(2) as parts, parts[0].split(2) as quarters:
            quarters[1].ask(Tables([("a",)]), Fraction(1, 4))
        assert curator.left == Fraction(3, 4)


class TestOneAtATime:
    def test_nothing_is_answered_while_outside_code_sees_the_records(self):
        data = table(Budget(rho=3.0))
        first, second = opened(data=data), opened(data=data)
        with second.split(2) as parts, data._handed_out():
            for curator in (first, parts[0]):
                with pytest.raises(RuntimeError, match="sees these records now"):
                    curator.ask(Tables([("a",)]), Fraction(1, 2))
            with pytest.raises(RuntimeError, match="sees these records now"):
                opened(data=data)
        assert len(data.ledger.entries) == 2
        first.ask(Tables([("a",)]), 1)

    def test_nothing_is_asked_in_the_middle_of_an_answer(self, monkeypatch):
        """A signal's handler that asks the same curator between its check and its debit, say."""
        curator, true = opened(), table_operator.contingency_tables

        def interrupted(*arguments):
            with pytest.raises(RuntimeError, match="is answering"):
                curator.ask(Tables([("b",)]), Fraction(1, 2))
            return true(*arguments)

        monkeypatch.setattr(table_operator, "contingency_tables", interrupted)
        curator.ask(Tables([("a",)]), Fraction(1, 2))
        assert curator.left == Fraction(1, 2) and len(curator.answers) == 1

    def test_refuses_to_be_copied_or_pickled(self):
        curator = opened()
        for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match="could be spent twice"):
                attempt(curator)
        mechanism = with_noise(contingency_tables(curator._data, [("a",)]), curator.cost, Fraction(1))
        for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match="exact statistics"):
                attempt(mechanism)
        assert repr(mechanism) == "AdditiveNoise(hidden)"
        assert repr(curator) == "TableCurator(cost=1-zCDP, left=1, answers=0)"

    def test_refuses_calls_in_a_fork(self):
        curator = opened()

        def ask(write):
            try:
                curator.ask(Tables([("a",)]), 1)
            except RuntimeError as error:
                write(str(error).encode())

        with forked(ask) as (_, reading):
            assert b"in another process (a fork)" in everything(reading)
        curator.ask(Tables([("a",)]), 1)


def test_all_operators_answer_through_the_one_door():
    """`draw` is called in `_answer_now`, of made-up tables in `rehearsed_tables`, and by a `draw` itself."""
    calls = {
        (
            path.name,
            *(scope.name for scope in ast.walk(tree) if isinstance(scope, ast.FunctionDef) and call in ast.walk(scope)),
        )
        for path in Path(curator_base.__file__).parents[2].rglob("*.py")
        if {"private", "operators"} & set(path.parts)
        for tree in [parsed(path)]
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and getattr(call.func, "attr", "") == "draw"
    }
    assert calls == {
        ("charged_base.py", "_answer_now"),
        ("tables.py", "rehearsed_tables"),
        ("parities.py", "draw"),
    }


def test_costs_of_budgets():
    assert cost_of(Budget(epsilon=2.0)) == PureDP(2.0)
    with pytest.raises(ValueError, match="reserve"):
        cost_of(Budget(epsilon=2.0), 0.1)
