"""Scheduled curators and operators of fields: what is declared, what is refused, and that refusals count nothing."""

from __future__ import annotations

import copy
import math
import pickle
import threading
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from pgmpy_dp.fields.published.regression_layout import RegressionLayout, regression_layout
from pgmpy_dp.private import accounting
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.curator import schedule as curators
from pgmpy_dp.private.curator.curator_base import Curator
from pgmpy_dp.private.curator.schedule import GradientCurator, sampled_schedule
from pgmpy_dp.private.curator.table_curator import TableCurator
from pgmpy_dp.private.data.table import PrivateTable
from pgmpy_dp.private.filter import BudgetExceeded
from pgmpy_dp.private.guarantee import ZCDP, ApproxDP
from pgmpy_dp.private.operators import regression_path
from pgmpy_dp.private.operators.record_count import RecordCount
from pgmpy_dp.private.operators.regression_path import RegressionPath
from pgmpy_dp.private.operators.tables import Tables
from pgmpy_dp.sequences.operators.sequence_operators import NgramTables, OrderDeparture
from pgmpy_dp.sequences.operators.sequences import PrivateSequences
from tests.private.processes import everything, forked

STATES = {"a": [0, 1], "b": [0, 1]}
DELTA, RHO = Budget(epsilon=1.0, delta=1e-3), Budget(rho=0.5)
FLAT = np.full(2, 0.5)


def table(ledger=DELTA, adjacency="add_remove", n_records=None) -> PrivateTable:
    frame = pd.DataFrame({"a": [0, 1, 1, 0], "b": [0, 1, 1, 1]})
    return PrivateTable(frame, STATES, adjacency=adjacency, ledger=ledger, n_records=n_records)


def opened(budget=DELTA, data=None, **options) -> GradientCurator:
    return GradientCurator(table(budget) if data is None else data, budget, [("a",)], **{"n_steps": 3, **options})


def fail(*_args, **_kwargs):
    raise AssertionError("records were counted")


class TestSchedule:
    def test_everything_together_costs_the_budget(self):
        schedule = sampled_schedule(DELTA, Adjacency.ADD_REMOVE, None, 40, 0.1, 0.2)
        rho = 0.2 * accounting.approx_to_zcdp(1.0, 1e-3)
        spent = accounting.subsampled_gaussian_epsilon(schedule.multiplier, schedule.rate, 40, 1e-3, rho=rho)
        assert schedule.cost == ApproxDP(1.0, 1e-3) and 0.98 < spent <= 1.0
        assert schedule.count_scale == pytest.approx(math.sqrt(1 / (2 * rho)))
        assert schedule.requests == {"step": 40, "count": 1}
        # Sampling pays where the sum of what each step costs does not see it.
        each = math.sqrt(40 / (2 * (1 - 0.2) * accounting.approx_to_zcdp(1.0, 1e-3)))
        assert schedule.multiplier < each / 3

    @pytest.mark.parametrize("adjacency", [Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE])
    def test_steps_on_all_units_and_a_count_cost_the_rho_in_exact_numbers(self, adjacency):
        """B, or 2 B where a unit is replaced, in each of 7 steps, and 1 in a count, over squared scales."""
        changed = 2 if adjacency == Adjacency.REPLACE_ONE else 1
        schedule = sampled_schedule(Budget(rho=0.3), adjacency, 100 if changed == 2 else None, 7, None, 0.2)
        spent = 7 * changed**2 / (2 * Fraction(schedule.multiplier) ** 2)
        if changed == 1:
            spent += 1 / (2 * Fraction(schedule.count_scale) ** 2)
        assert spent <= Fraction(0.3) <= spent * (1 + Fraction(1, 10**12))

    def test_a_replacement_of_a_sample_is_a_removal_and_an_addition(self):
        schedule = sampled_schedule(Budget(epsilon=1.0, delta=1e-3), Adjacency.REPLACE_ONE, 100, 40, 0.1)
        delta = 1e-3 / (1 + math.exp(0.5))
        spent = accounting.subsampled_gaussian_epsilon(schedule.multiplier, schedule.rate, 40, delta)
        assert 0.49 < spent <= 0.5

    @pytest.mark.parametrize("budget", [RHO, DELTA])
    def test_the_noise_of_a_step_is_its_multiplier_times_the_bound(self, budget):
        curator = opened(budget)
        scale = Fraction(curator.schedule.multiplier) * curator.bound
        assert scale <= Fraction(curator.scale) <= scale * (1 + Fraction(1, 10**12))

    def test_a_public_number_is_not_counted(self):
        schedule = sampled_schedule(RHO, Adjacency.REPLACE_ONE, 100, 16)
        assert (schedule.cost, schedule.multiplier, schedule.count_scale) == (ZCDP(0.5), 8.0, None)
        assert schedule.requests == {"step": 16}

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"n_steps": 0}, "n_steps=0"),
            ({"n_steps": 10**7}, "n_steps=10000000"),
            ({"n_steps": 2.5}, "n_steps=2.5"),
            ({"batch_rate": 1.5}, "batch_rate=1.5"),
            ({"count_share": 1.0}, "count_share=1.0"),
            ({"adjacency": Adjacency.REPLACE_ONE}, "replace_one"),
            ({"budget": Budget(epsilon=1.0)}, "no pure guarantee"),
        ],
    )
    def test_refusals(self, arguments, message):
        given = {"budget": DELTA, "adjacency": Adjacency.ADD_REMOVE, "public_count": None, "n_steps": 3, **arguments}
        with pytest.raises((TypeError, ValueError), match=message):
            sampled_schedule(**given)


class TestScheduledCurators:
    def test_opening_charges_everything_once_and_counts_nothing(self, monkeypatch):
        for name in ("sampled_gradient_sum", "record_count"):
            monkeypatch.setattr(curators, name, fail)
        data = table()
        curator = opened(data=data)
        (entry,) = data.ledger.entries
        assert entry.cost == curator.cost == ApproxDP(1.0, 1e-3) and curator.left == 1
        assert entry.mechanism == "subsampled_discrete_gaussian" and entry.columns == ("a",)

    def test_what_is_declared_is_answered_in_any_order_and_nothing_else(self, monkeypatch):
        curator = opened()
        curator.step(FLAT)
        assert isinstance(curator.count(), int) and curator.left == Fraction(1, 2)
        curator.step([0.1, 0.9])
        curator.step(FLAT)
        assert curator.left == 0
        monkeypatch.setattr(curators, "sampled_gradient_sum", fail)
        monkeypatch.setattr(curators, "record_count", fail)
        for more in (lambda: curator.step(FLAT), curator.count):
            with pytest.raises(BudgetExceeded, match="not on the schedule"):
                more()
        assert not hasattr(curator, "tables")

    def test_shares_of_requests_buy_no_other_answers(self):
        """After the step, which costs nearly all, half of the requests are left: not half of the budget."""
        curator = opened(budget=Budget(rho=1.0), n_steps=1)
        curator.step(FLAT)
        assert curator.left == Fraction(1, 2)
        assert not isinstance(curator, Curator)
        assert not any(hasattr(curator, name) for name in ("ask", "noise", "merge", "split", "_planned", "_child"))
        layout = regression_layout("ising", [2, 2])
        with pytest.raises(TypeError, match="curator is a GradientCurator; pass a TableCurator, whose shares pay"):
            RegressionPath(curator, layout, 9)
        assert curator.left == Fraction(1, 2)

    def test_norms_that_can_be_changed_later_are_refused(self):
        """The noise is fixed with the norm at opening; one that doubles afterwards doubles the sensitivity."""
        data = table()
        with pytest.raises(TypeError, match="clip_norm"):
            opened(data=data, clip_norm=np.array(0.25))
        assert data.ledger.entries == ()

    def test_a_public_number_is_not_on_the_schedule(self):
        curator = opened(data=table(n_records=4))
        with pytest.raises(BudgetExceeded, match="request 1 of 'count' is not on the schedule, which has 0"):
            curator.count()
        assert curator.left == 1

    @pytest.mark.parametrize("parameters", [[0.5], [0.5, math.nan], [math.inf, 0.0], [[0.5, 0.5]], [0.2, 0.3, 0.5]])
    def test_other_parameters_count_nothing_and_take_no_step(self, parameters, monkeypatch):
        curator = opened()
        monkeypatch.setattr(curators, "sampled_gradient_sum", fail)
        with pytest.raises(ValueError, match=r"pass \(2,\) finite numbers"):
            curator.step(parameters)
        assert curator.left == 1

    def test_a_step_that_is_interrupted_is_spent(self, monkeypatch):
        curator = opened(data=table(n_records=4))
        with monkeypatch.context() as patch:
            patch.setattr(curators, "sampled_gradient_sum", fail)
            with pytest.raises(AssertionError, match="counted"):
                curator.step(FLAT)
        assert curator.left == Fraction(2, 3)
        curator.step(FLAT)
        curator.step(FLAT)
        with pytest.raises(BudgetExceeded):
            curator.step(FLAT)

    def test_threads_together_take_no_more_than_declared(self):
        curator = opened(data=table(n_records=4), n_steps=20)
        taken = []

        def ask():
            for _ in range(10):
                try:
                    taken.append(curator.step(FLAT))
                except BudgetExceeded:
                    return

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(taken) == 20 and curator.left == 0

    def test_copies_and_forks_are_refused(self):
        curator = opened()
        for copied in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match="cannot be copied or pickled"):
                copied(curator)

        def ask(write):
            try:
                curator.step(FLAT)
                write(b"answered")
            except RuntimeError as refusal:
                write(str(refusal).encode())

        with forked(ask) as (_, reading):
            assert b"copy in another process" in everything(reading)

    def test_answers_come_between_those_of_other_curators_of_the_same_data(self):
        data = table(Budget(epsilon=2.0, delta=1e-2))
        steps = opened(Budget(epsilon=1.0, delta=1e-3), data)
        others = TableCurator(data, Budget(epsilon=0.5), what="tables", columns=["a"])
        steps.step(FLAT)
        others.ask(Tables([("a",)]), Fraction(1, 2))
        steps.step(FLAT)
        assert len(data.ledger.entries) == 2 and steps.left == others.left == Fraction(1, 2)


class TestPairTables:
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"max_segments": 2}, "without segment_length"),
            ({"segment_length": 1}, "segment_length=1"),
            ({"segment_length": 3, "max_segments": 0}, "max_segments=0"),
            ({"weights": (1.0, -1.0)}, "weights"),
            ({"weights": (1.0,)}, "weights"),
            ({"share": 0}, "share=0"),
            ({"share": 2}, "a share of 2"),
            ({"lengths": ()}, "lengths has no table"),
            ({"lengths": (0,)}, "lengths=0"),
            ({"lengths": (25,)}, "a table of 33,554,432 cells"),
            ({"lengths": (3,), "segment_length": 2}, "segment_length=2"),
        ],
    )
    def test_refusals_spend_and_count_nothing(self, arguments, message, monkeypatch):
        frame = pd.DataFrame({"user": [1], "sequence": ["a b b"]})
        data = PrivateSequences(frame, {"page": ["a", "b"]}, ledger=RHO)
        curator = Curator(data, RHO, what="tables", columns=["page"])
        monkeypatch.setattr("pgmpy_dp.sequences.operators.sequence_operators.chain_tables", fail)
        arguments = dict(arguments)
        share = arguments.pop("share", 1)
        with pytest.raises(ValueError, match=message):
            curator.ask(NgramTables(**arguments), share)
        assert curator.left == 1

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"probabilities": np.eye(3)}, "shape"),
            ({"probabilities": np.ones((2, 2))}, "sum"),
            ({"segment_length": 2}, "segment_length=2"),
            ({"share": 2}, "a share of 2"),
        ],
    )
    def test_refusals_of_the_test_of_order_too(self, arguments, message, monkeypatch):
        data = PrivateSequences(pd.DataFrame({"user": [1], "sequence": ["a b b"]}), {"page": ["a", "b"]}, ledger=RHO)
        curator = Curator(data, RHO, what="tables", columns=["page"])
        monkeypatch.setattr("pgmpy_dp.sequences.operators.sequence_operators.order_departure", fail)
        arguments = dict(arguments)
        share = arguments.pop("share", 1)
        with pytest.raises(ValueError, match=message):
            curator.ask(OrderDeparture(**{"probabilities": np.eye(2), **arguments}), share)
        assert curator.left == 1


def fields_of(budget=RHO, **arguments) -> TableCurator:
    return TableCurator(table(budget, **arguments), budget, what="a field", columns=["a", "b"])


class TestRegressionPath:
    LAYOUT = regression_layout("ising", [2, 2])

    def changed(self, **changes) -> RegressionLayout:
        return RegressionLayout(**{**vars(self.LAYOUT), **changes})

    @pytest.mark.parametrize(
        "changes",
        [
            {"cardinalities": (2, 3)},
            {"family": "gaussian"},
            {"features": ((0,), (1,), (0, 1))},
            {"nodes": np.array([0, 2])},
            {"nodes": np.array([0])},
            {"nodes": np.array([1, 1]), "pairs": np.array([[1, 0], [1, 0]])},  # its cost would be counted once
            {"pairs": np.array([[0, 1], [1, 0]])},
            {"columns": np.array([[2, 1], [0, 3]])},
            {"columns": np.array([[2, 1], [-1, -1]])},
            {"columns": np.array([2, 1])},
        ],
        ids=str,
    )
    def test_layouts_that_are_none_of_the_table_are_refused(self, changes):
        curator = fields_of()
        with pytest.raises(ValueError, match="layout"):
            RegressionPath(curator, self.changed(**changes), 3)
        assert curator.left == 1

    def test_a_regression_of_a_feature_alone_is_not_taken_for_one_of_the_constant(self):
        """It knows more of a record than its label, so it costs what any other one does."""
        alone = self.changed(columns=np.array([[-1, 1], [-1, 2]]))
        assert regression_path.selection_weight(alone, Adjacency.REPLACE_ONE, ZCDP(1.0)) == 4 + 1

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"rows": [0, 1]}, "features that their regressions do not have"),
            ({"rows": [-1, 0]}, "features"),
            ({"rows": [2, 3]}, "features"),
            ({"rows": [2.0, 2.0]}, "integers"),
            ({"rows": [2]}, "2 integers"),
            ({"moves": [4, 1]}, "reach of 3"),
            ({"moves": [-(2**63), 1]}, "reach of 3"),
            ({"slope": math.nan}, "slope=nan"),
            ({"slope": 0.0}, "slope=0"),
            ({"share": 0}, "share=0"),
            ({"share": 1e-40}, "needs noise of scale"),
            ({"share": 2}, "a share of 2"),
        ],
    )
    def test_other_requests_spend_and_count_nothing(self, changes, message, monkeypatch):
        monkeypatch.setattr(regression_path, "GradientSums", fail)
        curator = fields_of()
        path = RegressionPath(curator, self.LAYOUT, 3)
        asked = {"rows": [2, 2], "moves": [1, -1], "slope": 1.0, "share": Fraction(1, 2), **changes}
        with pytest.raises(ValueError, match=message):
            path.vertices(np.array(asked.pop("rows")), np.array(asked.pop("moves")), **asked)
        assert curator.left == 1

    def test_a_walk_stays_within_its_reach(self):
        curator = fields_of()
        path = RegressionPath(curator, self.LAYOUT, 3)
        for _ in range(3):
            path.vertices(np.array([1, 0]), np.array([1, -1]), 1.0, Fraction(1, 8))
        with pytest.raises(ValueError, match="reach"):
            path.vertices(np.array([1, 0]), np.array([0, 1]), 1.0, Fraction(1, 8))
        assert curator.left == Fraction(5, 8)

    def test_two_threads_do_not_pass_the_reach_together(self, monkeypatch):
        """Beyond it logits are read from the part of the table for another label, and sensitivities are false."""
        curator, refused = fields_of(), []
        path, scale, asked = RegressionPath(curator, self.LAYOUT, 3), regression_path.vertex_scale, threading.Event()

        def ask():
            try:
                path.vertices(np.array([1, 0]), np.array([2, 2]), 1.0, Fraction(1, 8))
            except ValueError as error:
                refused.append(str(error))

        second = threading.Thread(target=ask)

        def between_check_and_move(*arguments):
            if not asked.is_set():
                asked.set()
                second.start()
                second.join(0.2)  # it may finish here only if nothing keeps it out
            return scale(*arguments)

        monkeypatch.setattr(regression_path, "vertex_scale", between_check_and_move)
        ask()
        second.join()
        assert len(refused) == 1 and "reach" in refused[0]
        assert path._moved.tolist() == [2, 2] and curator.left == Fraction(7, 8)

    def test_a_path_that_was_interrupted_while_it_moved_answers_no_more(self, monkeypatch):
        """Some blocks of records have moved then and others not: one record more shifts all later ones by a place."""
        curator = fields_of()
        path = RegressionPath(curator, self.LAYOUT, 3)
        request = np.array([1, 0]), np.array([1, -1]), 1.0, Fraction(1, 8)
        path.vertices(*request)

        def interrupt(*_arguments):
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(regression_path.GradientSums, "after", interrupt)
            with pytest.raises(KeyboardInterrupt):
                path.vertices(*request)
        assert curator.left == Fraction(3, 4)
        with pytest.raises(RuntimeError, match="make a new one"):
            path.vertices(*request)
        assert curator.left == Fraction(3, 4)
        RegressionPath(curator, self.LAYOUT, 3).vertices(*request)

    def test_reaches(self):
        for reach in (-1, 2**40 + 1, 1.5):
            with pytest.raises((TypeError, ValueError), match="reach"):
                RegressionPath(fields_of(), self.LAYOUT, reach)


class TestRecordCount:
    def test_where_the_number_of_all_records_is_public(self):
        """How many of them are inside the schema is not."""
        curator = fields_of(Budget(epsilon=1e4), adjacency="replace_one", n_records=40)
        assert curator.ask(RecordCount(), 1) == 4 and curator.left == 0

    def test_of_a_part(self):
        curator = fields_of(Budget(epsilon=1e4))
        with curator.split(2) as halves:
            assert sum(half.ask(RecordCount(), 1) for half in halves) == 4
        assert curator.left == 0
