"""Replay of what finds categories and cuts: right ones hold, and each way in which a record could show is found."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from pgmpy_dp.auditing.movements import INVENTED, invented, invented_marks, marks_moved
from pgmpy_dp.auditing.replay import replay
from pgmpy_dp.learning.few_records import FewRecordsWarning
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.curator import curator_base
from pgmpy_dp.private.data import columns as data_columns
from pgmpy_dp.private.guarantee import ZCDP
from pgmpy_dp.private.noise.histogram import StabilityHistogram
from pgmpy_dp.private.operators import column_operators
from pgmpy_dp.private.operators.column_operators import StableMarks, category_histogram
from pgmpy_dp.private.sensitive import Sensitive
from pgmpy_dp.tables import category_search as plan
from pgmpy_dp.verbs import discover
from tests.auditing.replay_cases import one_adjacency_each, run_replays
from tests.auditing.replay_columns import BUDGET, column_cases, column_pairs

CATEGORIES = {"job": "categories", "town": "categories"}


def pairs(adjacency="add_remove", count=8):
    return list(itertools.islice(column_pairs(np.random.default_rng(0), adjacency), count))


def find(frame):
    found = discover(frame, CATEGORIES, BUDGET)
    return found.release_, str(found)


def problems(fit=find, data=None) -> str:
    return "; ".join(problem for pair in (data or pairs()) for problem in replay(fit, *pair).problems)


@pytest.mark.parametrize(("some", "turns"), [(one_adjacency_each, 3), pytest.param(list, 1, marks=pytest.mark.slow)])
def test_the_catalogue_holds_and_attains_every_bound(some, turns):
    best: dict[tuple, float] = {}
    for item in run_replays(some(column_cases()), turns=turns):
        assert item.report.holds, (item.case, item.pair, item.answers, item.report)
        for operator, ratio in item.report.movement.items():
            key = operator, "replace_one" if "replace_one" in item.case else "add_remove"
            best[key] = max(best.get(key, 0.0), ratio)
    assert set(best) == {(o, a) for o in ("stable_categories", "number_tables") for a in ("add_remove", "replace_one")}
    assert min(best.values()) >= 0.99


@pytest.mark.parametrize("kind", INVENTED)
def test_invented_answers_hold(kind):
    """Marks that are labels of something else too, none, and more than anybody asked for."""
    for case in column_cases()[::2]:
        pair = next(case.pairs(np.random.default_rng(1)))
        assert replay(case.fit, *pair, answers=invented(kind)).holds


def test_ten_thousand_different_cells():
    """Of which each record has its own: one more of them moves one count a column, and none is told."""
    frame = pd.DataFrame({"job": [f"job {k}" for k in range(10_001)]})

    def fit(frame):
        found = discover(frame, {"job": "categories"}, BUDGET)
        return found.release_, len(found.counts["job"])

    assert replay(fit, frame[:-1], frame).holds
    with pytest.warns(FewRecordsWarning):
        assert not fit(frame)[1]


class TestMutantsOfTheBoundary:
    def test_half_of_the_noise(self, monkeypatch):
        true = column_operators.stability_histogram
        monkeypatch.setattr(column_operators, "stability_histogram", lambda k, rho, *a: true(k, 4 * rho, *a))
        assert "stable_categories: noise of scale" in problems()

    def test_noise_of_a_record_more_where_one_is_replaced(self, monkeypatch):
        true = column_operators.stability_histogram
        monkeypatch.setattr(column_operators, "stability_histogram", lambda k, rho, eta, changes: true(k, rho, eta, 1))
        fit = lambda frame: discover(frame, CATEGORIES, BUDGET, adjacency="replace_one", n_records=41).release_  # noqa: E731
        assert "stable_categories: noise of scale" in problems(fit, pairs("replace_one")[:1])

    def test_a_threshold_that_is_too_low(self, monkeypatch):
        true = column_operators.stability_histogram
        monkeypatch.setattr(
            column_operators,
            "stability_histogram",
            lambda *a: StabilityHistogram(true(*a).scale, true(*a).threshold - 1),
        )
        assert "stable_categories: noise of scale" in problems()

    def test_an_eta_that_is_not_debited(self, monkeypatch):
        true = curator_base.Curator._answer_now
        monkeypatch.setattr(
            curator_base.Curator, "_answer_now", lambda s, o, a, share, m, eta=0, **_: true(s, o, a, share, m)
        )
        assert "stable_categories: noise of scale" in problems()

    def test_a_cell_that_marks_twice(self, monkeypatch):
        true = column_operators.column_marks

        def twice(data, names, length):
            marks, counts = true(data, names, length)
            return [*marks, *((place, ("text", f"{key} again")) for place, key in marks)], np.tile(counts, 2)

        monkeypatch.setattr(column_operators, "column_marks", twice)
        assert "stable_categories: exact statistics moved by inf" in problems()

    def test_marks_that_other_records_decide(self, monkeypatch):
        """The case of the first spelling that is seen is the column's."""
        true = column_operators.column_marks

        def first(data, names, length):
            marks, counts = true(data, names, length)
            lower = bool(marks) and str(marks[0][1][-1]).islower()
            changed = [(p, (key[0], key[1].upper()) if lower and key[0] == "text" else key) for p, key in marks]
            return changed, counts

        frame = pd.DataFrame({"job": ["nurse"] * 9, "town": ["Ulm"] * 9})
        one = pd.concat([pd.DataFrame({"job": ["BAKER"], "town": ["Ulm"]}), frame], ignore_index=True)
        assert not problems(data=[(frame, one)])
        monkeypatch.setattr(column_operators, "column_marks", first)
        assert "stable_categories: exact statistics moved by inf" in problems(data=[(frame, one)])

    def test_a_table_that_counts_a_record_twice(self, monkeypatch):
        true = column_operators.number_counts
        monkeypatch.setattr(column_operators, "number_counts", lambda *a: 2 * true(*a))
        case = next(case for case in column_cases() if case.name.startswith("discover, numbers, add_remove"))
        assert "number_tables: exact statistics moved by" in problems(case.fit)

    def test_a_halved_sensitivity(self, monkeypatch):
        true = Sensitive.__init__
        monkeypatch.setattr(Sensitive, "__init__", lambda self, v, a, *norms: true(self, v, a, *(x / 2 for x in norms)))
        case = next(case for case in column_cases() if case.name.startswith("discover, numbers, add_remove"))
        assert "number_tables: exact statistics moved by 2" in problems(case.fit)

    def test_a_cell_that_makes_reading_fail(self, monkeypatch):
        """A column that holds an odd cell is told apart by an error."""
        true = data_columns._has_label

        def strict(key, length):
            if key[0] == "unreadable":
                raise ValueError("unreadable")
            return true(key, length)

        monkeypatch.setattr(data_columns, "_has_label", strict)
        frame = pd.DataFrame({"job": ["nurse"] * 9, "town": ["Ulm"] * 9}, dtype=object)
        odd = pd.concat([frame, pd.DataFrame({"job": [b"\xff"], "town": ["Ulm"]}, dtype=object)], ignore_index=True)
        assert "error differs" in problems(data=[(frame, odd)])


class TestMutantsOfPlans:
    def test_one_that_counts_the_records(self, monkeypatch):
        def counting(curator, operator, *rest, true=curator_base.Curator.ask):
            if isinstance(operator, column_operators.StableCategories):
                n = sum(curator._data._counted[0].values())
                operator = replace(operator, max_length=operator.max_length + n % 2)
            return true(curator, operator, *rest)

        monkeypatch.setattr(curator_base.Curator, "ask", counting)
        assert "stable_categories: its arguments differ" in problems()

    def test_one_that_lists_what_it_sees(self, monkeypatch):
        true = plan._categories

        def seeing(curator, settings, shares):
            found = true(curator, settings, shares)
            seen = f"{len(curator._data._counted[0])} in all"
            return {name: ([*labels, seen], np.append(n, 0)) for name, (labels, n) in found.items()}

        monkeypatch.setattr(plan, "_categories", seeing)
        assert "result differs" in problems()


class TestRules:
    HISTOGRAM = category_histogram(2, Adjacency.ADD_REMOVE, ZCDP(0.1), Fraction(1), 1e-7)

    def made(self, counts: dict, changes=1, k=2) -> StableMarks:
        marks = sorted(counts)
        values = np.array([counts[mark] for mark in marks], dtype=np.int64)
        return StableMarks(marks, values, k, changes, self.HISTOGRAM, 8)

    def test_what_one_record_can_do(self):
        before = {(0, ("text", "a")): 3, (1, ("text", "b")): 3}
        after = {(0, ("text", "a")): 4, (1, ("text", "b")): 3, (1, ("text", "new")): 1}
        assert marks_moved(self.made(before), self.made(after)) == 1.0
        assert marks_moved(self.made(after), self.made(before)) == 1.0
        swapped = {(0, ("text", "a")): 2, (0, ("text", "c")): 1, (1, ("text", "b")): 3}
        assert marks_moved(self.made(before, 2), self.made(swapped, 2)) == np.sqrt(0.5)
        assert marks_moved(self.made(before), self.made(swapped)) == np.inf  # a record more does not take one away

    @pytest.mark.parametrize(
        "after",
        [
            {(0, ("text", "a")): 5, (1, ("text", "b")): 3},
            {(0, ("text", "a")): 3, (1, ("text", "b")): 3, (1, ("text", "new")): 2},
            {(0, ("text", "a")): 4, (1, ("text", "b")): 3, (0, ("text", "new")): 1},
        ],
    )
    def test_what_one_record_cannot_do(self, after):
        before = {(0, ("text", "a")): 3, (1, ("text", "b")): 3}
        for changes in (1, 2):
            assert marks_moved(self.made(before, changes), self.made(after, changes)) == np.inf

    def test_other_public_facts(self):
        assert marks_moved(self.made({}), self.made({}, k=3)) == np.inf

    def test_invented_marks(self):
        mechanism = self.made({(0, ("text", "a")): 3, (1, ("missing",)): 3})
        rng = np.random.default_rng(0)
        sizes = {kind: len(invented_marks(mechanism, kind, rng)[0]) for kind in ("zeros", "huge", "last")}
        assert sizes == {"zeros": 0, "huge": 2, "last": 1}
        rows, counts = invented_marks(mechanism, "equal", rng)
        assert rows.shape == (len(counts), 10)
        assert (counts >= self.HISTOGRAM.threshold).all()
