"""Curators where it is easy to spend a share twice or to wait for ever.

Reserves in parts, several at once, processes that are copied or die, threads, ledgers on disk, engines.
"""

from __future__ import annotations

import gc
import os
import threading
from collections import Counter
from fractions import Fraction
from unittest import mock

import numpy as np
import pandas as pd
import pytest

from pgmpy_dp import Budget, Ledger, PrivateSequences, PrivateTable
from pgmpy_dp.private.curator.curator_base import Curator
from pgmpy_dp.private.curator.schedule import GradientCurator
from pgmpy_dp.private.curator.table_curator import TableCurator
from pgmpy_dp.private.filter import BudgetExceeded
from pgmpy_dp.private.guarantee import ZCDP, ApproxDP, ReservedZCDP
from pgmpy_dp.private.noise.samplers import ReproducibleNoiseWarning
from pgmpy_dp.private.operators import tables as table_operator
from pgmpy_dp.private.operators.tables import Tables
from pgmpy_dp.private.reading import records as reading_records
from pgmpy_dp.private.reading.sources import open_source
from pgmpy_dp.sequences.operators.sequence_operators import NgramTables
from tests.private.processes import everything, forked

RHO, DELTA = Budget(rho=1.0), Budget(epsilon=1.0, delta=1e-6)
STATES = {"a": [0, 1], "b": [0, 1, 2]}
FRAME = pd.DataFrame({"a": [0, 1, 1, 0] * 25, "b": [0, 1, 2, 2] * 25})


def opened(data=None, budget=RHO, ledger=None, **facts):
    data = PrivateTable(FRAME, STATES, ledger=ledger or budget) if data is None else data
    return TableCurator(data, budget, what="test", columns=["a"], **facts)


def sampled(n_steps=3):
    table = PrivateTable(FRAME, STATES, ledger=RHO, n_records=100)
    return GradientCurator(table, RHO, [("a",)], None, n_steps=n_steps)


def failing(curator, eta, share=Fraction(1, 10)):
    """A request that debits from the reserve."""
    with mock.patch.object(Tables, "can_fail", True):
        return curator.ask(Tables([("a",)]), share, eta)


class TestReserves:
    def test_parts_have_the_whole_reserve_and_the_largest_use_is_lost(self):
        curator = opened(budget=DELTA, reserve=4e-7)
        failing(curator, 1e-7)
        with curator.split(3) as parts:
            failing(parts[0], 2e-7)
            failing(parts[1], 1e-7)
            with pytest.raises(ValueError, match=r"eta=2e-07 was asked of a reserve of 1e-07"):
                failing(parts[0], 2e-7)
        assert curator._reserve == Fraction(4e-7) - Fraction(1e-7) - Fraction(2e-7)
        assert curator.left == 1 - 2 * Fraction(1, 10)

    def test_what_is_refused_takes_neither_a_share_nor_an_eta(self):
        curator = opened(budget=DELTA, reserve=1e-7)
        for share, eta, error in ((2, 1e-8, BudgetExceeded), (0.5, 2e-7, ValueError), (0.5, -1e-9, ValueError)):
            with pytest.raises(error):
                failing(curator, eta, share)
        assert (curator.left, curator._reserve) == (1, Fraction(1e-7))

    def test_two_reserves_in_one_ledger_add_up(self):
        """Nine tenths of delta convert; the etas of all curators fit in the rest, or the next one is refused."""
        ledger = Ledger(Budget(epsilon=1.0, delta=1e-6))
        data = PrivateTable(FRAME, STATES, ledger=ledger)
        part = Budget(epsilon=0.4, delta=1e-6)
        first = opened(data, part, reserve=6e-8)
        with pytest.raises(BudgetExceeded):
            opened(data, part, reserve=6e-8)
        second = opened(data, part, reserve=3e-8)
        assert [entry.cost for entry in ledger.entries] == [
            ReservedZCDP(first.cost.rho, 6e-8),
            ReservedZCDP(second.cost.rho, 3e-8),
        ]
        assert ledger.spent.delta <= 1e-6

    def test_a_schedule_has_no_reserve(self):
        table = PrivateTable(FRAME, STATES, ledger=DELTA)
        for wrong in ({"reserve": 1e-7}, {"pure": True}):
            with pytest.raises((TypeError, ValueError), match=r"reserve|pure"):
                GradientCurator(table, DELTA, [("a",)], None, n_steps=3, **wrong)
        assert table.ledger.entries == ()


class TestSeveralAtOnce:
    def test_parts_of_one_while_another_is_open(self):
        data = PrivateTable(FRAME, STATES, ledger=Budget(rho=2.0))
        first, second = opened(data), opened(data)
        with first.split(2) as parts:
            second.ask(Tables([("a",)]), Fraction(1, 2))
            with second.split(2) as others:
                parts[0].ask(Tables([("a",)]), Fraction(1, 4))
                others[1].ask(Tables([("a",)]), Fraction(1, 8))
                with pytest.raises(RuntimeError, match="with its parts"):
                    second.ask(Tables([("a",)]), Fraction(1, 8))
            second.ask(Tables([("a",)]), Fraction(1, 8))
        assert (first.left, second.left) == (Fraction(3, 4), Fraction(1, 4))
        assert [entry.cost for entry in data.ledger.entries] == [ZCDP(1.0)] * 2
        assert len(first.answers) == 1 and len(second.answers) == 3

    def test_parts_that_threads_ask_spend_what_the_greediest_did(self):
        curator = opened()
        with curator.split(4) as parts:
            work = [
                threading.Thread(target=lambda p=p, k=k: [p.ask(Tables([("a",)]), Fraction(1, 40)) for _ in range(k)])
                for k, p in enumerate(parts, start=5)
            ]
            for thread in work:
                thread.start()
            for thread in work:
                thread.join()
        assert curator.left == 1 - 8 * Fraction(1, 40) and len(curator.answers) == 5 + 6 + 7 + 8

    def test_a_block_that_ends_waits_for_the_answer_that_a_thread_is_getting(self, monkeypatch):
        """Its share counts, and nothing is asked of the part afterwards."""
        curator, counting, go = opened(), threading.Event(), threading.Event()
        true = table_operator.contingency_tables

        def slow(*arguments):
            counting.set()
            assert go.wait(60)
            return true(*arguments)

        monkeypatch.setattr(table_operator, "contingency_tables", slow)
        with curator.split(2) as parts:
            asking = threading.Thread(target=parts[0].ask, args=(Tables([("a",)]), Fraction(1, 2)))
            asking.start()
            assert counting.wait(60)
            threading.Timer(0.05, go.set).start()
        asking.join(60)
        assert curator.left == Fraction(1, 2) and len(curator.answers) == 1

    def test_an_audit_that_fails_when_parts_are_lent_closes_them(self, monkeypatch):
        curator = opened()

        def fail(*_):
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr("pgmpy_dp.private.curator.observer._observer.lent", fail, raising=False)
            with pytest.raises(KeyboardInterrupt), curator.split(2):
                pass
        curator.ask(Tables([("a",)]), 1)


class TestPersons:
    def test_costs_are_of_a_person_with_all_rows(self):
        frame = pd.DataFrame({"user": [1, 1, 2], "sequence": ["x y", "y", "x x"]})
        ledger = Ledger(Budget(rho=3.0))
        users = PrivateSequences(frame, {"page": ["x", "y"]}, ledger=ledger)
        curator = Curator(users, RHO, what="test", columns=["page"])
        curator.ask(NgramTables((0.5, 0.5)), 1)
        assert curator.unit == curator.release("chain", {}).unit == ledger.entries[0].unit == "user"
        # Costs of a record and of a person are no sum of anything: one ledger has one unit.
        with pytest.raises(ValueError, match="unit"):
            opened(PrivateTable(FRAME, STATES, ledger=ledger))
        assert len(ledger.entries) == 1


class TestProcesses:
    @pytest.mark.parametrize(
        ("curator", "ask"),
        [
            (opened, lambda c: c.ask(Tables([("a",)]), 1)),
            (opened, lambda c: c.generator()),
            (opened, lambda c: c.split(2).__enter__()),
            (sampled, lambda c: c.step([0.5, 0.5])),
        ],
        ids=["tables", "generator", "split", "step"],
    )
    def test_a_fork_in_the_middle_of_an_answer_is_refused_and_does_not_wait(self, curator, ask):
        """A thread of the parent holds the lock, which nobody in the child will ever give back."""
        held, go, curator = threading.Event(), threading.Event(), curator()

        def hold():
            with curator._turns.lock:
                held.set()
                go.wait(60)

        thread = threading.Thread(target=hold)
        thread.start()
        assert held.wait(60)

        def work(write):
            try:
                ask(curator)
            except RuntimeError as error:
                write(str(error).encode())

        with forked(work) as (_, reading):
            assert b"in another process (a fork)" in everything(reading)
        go.set()
        thread.join()
        ask(curator)

    def test_a_fork_that_an_operator_makes_itself(self, monkeypatch):
        curator, told = opened(), []
        true = table_operator.contingency_tables

        def forking(*arguments):
            def work(write):
                for ask in (lambda: curator.ask(Tables([("a",)]), 0.5), lambda: opened(curator._data)):
                    try:
                        ask()
                    except (RuntimeError, ValueError) as error:
                        write(type(error).__name__.encode() + b";")

            with forked(work) as (_, reading):
                told.append(everything(reading))
            return true(*arguments)

        monkeypatch.setattr(table_operator, "contingency_tables", forking)
        curator.ask(Tables([("a",)]), Fraction(1, 2))
        assert told == [b"RuntimeError;RuntimeError;"]
        assert curator.left == Fraction(1, 2) and len(curator.answers) == 1


class TestLedgersOnDisk:
    def test_a_curator_is_one_charge_however_much_it_is_asked(self, tmp_path):
        ledger = Ledger.open(tmp_path / "ledger.json", Budget(rho=2.0))
        curator = opened(ledger=ledger)
        before = (tmp_path / "ledger.json").read_bytes()
        for _ in range(3):
            curator.ask(Tables([("a",)]), Fraction(1, 4))
        with curator.split(2) as parts:
            parts[0].ask(Tables([("a",)]), Fraction(1, 4))
        assert (tmp_path / "ledger.json").read_bytes() == before
        (entry,) = Ledger.open(tmp_path / "ledger.json").entries
        assert entry.cost == ZCDP(1.0)

    def test_a_refused_opening_leaves_the_file_as_it_was(self, tmp_path):
        ledger = Ledger.open(tmp_path / "ledger.json", Budget(rho=0.5))
        before = (tmp_path / "ledger.json").read_bytes()
        with pytest.raises(BudgetExceeded):
            opened(ledger=ledger)
        assert (tmp_path / "ledger.json").read_bytes() == before

    @pytest.mark.parametrize("when", ["after the charge", "while it counts"])
    def test_a_process_that_dies_before_its_first_answer_has_paid(self, tmp_path, monkeypatch, when):
        path = tmp_path / "ledger.json"
        Ledger.open(path, Budget(rho=2.0))

        def work(write):
            def stop(*_):
                write(b"here")
                threading.Event().wait()

            if when == "while it counts":
                monkeypatch.setattr(table_operator, "contingency_tables", stop)
            curator = opened(ledger=Ledger.open(path))
            if when == "after the charge":
                stop()
            curator.ask(Tables([("a",)]), 1)

        with forked(work) as (_, reading):  # killed where the block ends
            assert os.read(reading, 4) == b"here"
        ledger = Ledger.open(path, timeout=5)
        assert [entry.cost for entry in ledger.entries] == [ZCDP(1.0)]
        second = opened(ledger=ledger)  # the lock is free, and the rest is there
        second.ask(Tables([("a",)]), 1)
        with pytest.raises(BudgetExceeded):
            opened(ledger=Ledger.open(path))

    def test_two_processes_cannot_open_more_than_there_is(self, tmp_path):
        path = tmp_path / "ledger.json"
        mine = Ledger.open(path, Budget(rho=1.5))

        def work(write):
            curator = opened(ledger=Ledger.open(path))
            write(str(curator.left).encode())

        with forked(work) as (_, reading):
            assert everything(reading) == b"1"
        with pytest.raises(BudgetExceeded):
            opened(ledger=mine)


class TestInterruptions:
    def test_a_debit_that_is_interrupted_leaves_a_curator_that_answers(self, monkeypatch):
        curator = opened()

        def interrupt(self, operator, share, eta):
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(Curator, "_debit", interrupt)
            with pytest.raises(KeyboardInterrupt):
                curator.ask(Tables([("a",)]), Fraction(1, 2))
        assert curator.left == 1
        curator.ask(Tables([("a",)]), 1)

    def test_steps_that_are_interrupted_end_their_blocks_before_the_release(self):
        """A part is asked in a plan's steps: its answers are in the release, and its share is counted."""
        curator = opened()

        def steps():
            with curator.split(2) as parts:
                parts[0].ask(Tables([("a",)]), Fraction(1, 4))
                yield "half"
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt) as caught:
            curator.following(steps(), lambda found: curator.release("marginals", {"found": found}))
        assert caught.value.release.public["found"] == "half" and len(caught.value.release.values) == 1
        assert curator.left == Fraction(3, 4)

    def test_what_parts_have_answered_is_released_after_their_block_too(self):
        curator = opened()

        def steps():
            with curator.split(2) as parts:
                parts[0].ask(Tables([("a",)]), Fraction(1, 4))
            raise KeyboardInterrupt
            yield

        with pytest.raises(KeyboardInterrupt) as caught:
            curator.following(steps(), lambda _: curator.release("marginals", {}))
        assert caught.value.release.kind == "interrupted" and len(caught.value.release.values) == 1

    def test_nothing_answered_is_no_release(self):
        curator = opened()
        with pytest.raises(KeyboardInterrupt) as caught, curator.keeping(lambda: curator.release("marginals", {})):
            raise KeyboardInterrupt
        assert not hasattr(caught.value, "release")


class TestEngines:
    """Parts of what is behind an engine: their codes are fetched, once, and no part says how many it has."""

    @pytest.fixture(params=["csv", "duckdb"])
    def data(self, request, tmp_path):
        if request.param == "csv":
            FRAME.to_csv(tmp_path / "records.csv", index=False)
            yield tmp_path / "records.csv"
            return
        connection = pytest.importorskip("duckdb").connect()
        connection.register("records", FRAME)
        yield connection.table("records")
        connection.close()  # not before: it takes a relation of DuckDB 1.2 with it

    def test_are_as_in_memory(self, data, monkeypatch):
        answers, sizes = [], []
        for source in (FRAME, data):
            table = PrivateTable(source, STATES, ledger=Budget(rho=2.0), n_records=100, adjacency="replace_one")
            with pytest.warns(ReproducibleNoiseWarning):
                curator = opened(table, random_state=3)
            with curator.split(3) as parts:
                answers.append([part.ask(Tables([("a", "b")]), 1)[0] for part in parts])
                sizes.append([len(part._data._codes) for part in parts])
                assert {part.facts.n_records for part in parts} == {None}
        np.testing.assert_array_equal(*answers)
        assert sizes[0] == sizes[1] and sum(sizes[0]) == 100

    def test_codes_are_fetched_once_at_a_byte_a_cell(self, data, monkeypatch):
        """When private data are made, whoever asks after that."""
        fetched = self.fetches(data, monkeypatch)
        table = PrivateTable(data, STATES, ledger=Budget(rho=2.0))
        assert fetched == [["a", "b"]] and table._codes.nbytes == 200
        self.split_twice(table)
        assert fetched == [["a", "b"]] and table._codes.nbytes == 200

    def test_codes_of_large_files_are_fetched_once_more(self, tmp_path, monkeypatch):
        """They are not kept when private data are made, but by the first curator that parts them."""
        FRAME.to_csv(tmp_path / "records.csv", index=False)
        fetched = self.fetches(tmp_path / "records.csv", monkeypatch)
        monkeypatch.setattr(reading_records, "MOST_KEPT", 199)
        table = PrivateTable(tmp_path / "records.csv", STATES, ledger=Budget(rho=2.0))
        assert fetched == [["a", "b"]] and table._records._codes is None
        self.split_twice(table)
        assert fetched == [["a", "b"]] * 2 and table._codes.nbytes == 200

    def fetches(self, data, monkeypatch):
        """The columns of each pass over data of this kind from now on."""
        source = type(open_source(data))
        true, fetched = source.batches, []

        def counted(self, names, spelled=()):
            fetched.append(list(names))
            yield from true(self, names, spelled)

        monkeypatch.setattr(source, "batches", counted)
        return fetched

    def split_twice(self, table):
        curator = opened(table)
        for _ in range(2):
            with curator.split(2) as parts:
                assert sum(part._data._codes.nbytes for part in parts) == 200


def test_no_curator_outlives_its_plan():
    """Curators hold records: what a finished block leaves behind can be collected."""

    def alive():
        gc.collect()
        kinds = [*map(type, gc.get_objects())]
        number = Counter(map(id, kinds))  # a class of another test may have no hash
        return sum(
            number[id(kind)] for kind in {id(kind): kind for kind in kinds}.values() if issubclass(kind, Curator)
        )

    before = alive()
    curator = opened(budget=DELTA)
    with curator.split(2) as parts:
        parts[0].ask(Tables([("a",)]), 1)
    assert curator.release("marginals", {}).guarantee.implies(ApproxDP(1.0, 1e-6))
    del curator, parts
    assert alive() == before
