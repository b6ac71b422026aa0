"""Published or not: on "no" nothing but "no" leaves, everything is charged before, and what is published says why."""

from __future__ import annotations

import gc
import json
import logging
import os
import pickle
import signal
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pgmpy import config
from scipy.stats import binom

from pgmpy_dp import (
    Budget,
    LargeDeltaWarning,
    Ledger,
    MarkovNetwork,
    Number,
    PrivateTable,
    Release,
    Schema,
    discover,
    learn,
    plan,
    publish_if,
    write_evidence,
)
from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.private.curator.charged_base import Answer
from pgmpy_dp.private.curator.table_curator import TableCurator
from pgmpy_dp.private.filter import BudgetExceeded
from pgmpy_dp.private.guarantee import ZCDP, ApproxDP
from pgmpy_dp.private.operators import tables as table_operator
from pgmpy_dp.private.reading.arrow_cells import quietly
from pgmpy_dp.reporting import report_page
from pgmpy_dp.tables.publishing import noisy_test
from pgmpy_dp.tables.publishing import publish_if as module
from pgmpy_dp.tables.publishing.criteria import Criteria
from pgmpy_dp.tables.publishing.publish_if import preview_publish_if
from tests.models.regression.test_declared_analyses import SCHEMA, network, records
from tests.test_cli import ROOT, folder, prepared_folder, run  # noqa: F401 - fixtures

BUDGET = Budget(epsilon=1.0, delta=1e-9)
STATES = {"a": ["x", "y"], "b": [0, 1, 2], "c": [False, True]}
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame({"a": RNG.choice(["x", "y"], 3000), "b": RNG.integers(0, 3, 3000), "c": RNG.random(3000) < 0.3})
YES = [{"test": "distance", "at_most": 0.5}]
NO = [{"test": "distance", "at_most": 1e-6}, {"test": "cells", "share": 1.0, "within": 1e-6}]
NO *= 20  # each is met with a probability of a half at most, so that "yes" has one below 1e-12


HOLDS = (Release, MarkovNetwork, LogLinearModel, Answer, TableCurator, module.PrivateNetwork)


@pytest.fixture(autouse=True, scope="module")
def what_was_there_before():
    """Each "no" collects garbage: not through all that the process has imported by now."""
    gc.freeze()


@pytest.fixture
def ledger(tmp_path):
    return Ledger.open(tmp_path / "ledger.json", Budget(epsilon=4.0, delta=1e-6))


def published(ledger, criteria=YES, frame=FRAME, budget=BUDGET, **options):
    return publish_if(frame, budget, criteria, STATES, ledger=ledger, **options)


class TestYes:
    def test_what_is_published_has_the_guarantee_of_fit_and_test(self, ledger, tmp_path):
        found = published(ledger)
        assert found and found.published and found.tests["met"].all()
        model, privacy = found.model_, found.learner.privacy_
        (entry,) = ledger.entries
        assert privacy.requested == ApproxDP(1.0, 1e-9) and privacy.guarantee == entry.cost == model.privacy.guarantee
        assert privacy.published_if["attempt"] == 1 and privacy.published_if["test_share"] == 0.1
        assert "a test included that it had to pass" in str(privacy)
        assert "1/p times" in privacy.conditional and learn(FRAME, BUDGET, STATES).privacy_.conditional is None
        model.posterior = found.learner.posterior(4)
        model.save(tmp_path / "model.npz")
        again = MarkovNetwork.load(tmp_path / "model.npz")
        assert again.privacy == privacy and again.posterior.privacy.conditional == privacy.conditional
        assert again.ask("a").worth.conditional == privacy.conditional
        assert privacy.conditional in report_page(again).replace("&#39;", "'")
        write_evidence(tmp_path / "evidence", again)
        assert "declared before were met" in Path(tmp_path, "evidence", "evidence.html").read_text()

    def test_what_is_learned_from_its_release_again_says_the_same(self, ledger, tmp_path):
        learner = published(ledger).learner
        learner.release_.save(tmp_path / "release.npz")
        again = type(learner)().fit_release(Release.load(tmp_path / "release.npz"))
        assert again.privacy_.guarantee == learner.privacy_.guarantee and again.privacy_.requested == BUDGET.guarantee
        assert again.privacy_.published_if == learner.privacy_.published_if
        assert str(again.model_.privacy) == str(learner.model_.privacy)

    @pytest.mark.parametrize("budget", [Budget(epsilon=1.0), Budget(rho=0.1)], ids=str)
    def test_every_kind_of_budget(self, budget, tmp_path):
        ledger = Ledger.open(tmp_path / "own.json", budget)
        found = published(ledger, budget=budget, adjacency="replace_one", n_records=3000)
        assert found and found.learner.privacy_.guarantee == ledger.entries[0].cost == budget.guarantee
        assert found.learner.privacy_.requested is None

    def test_a_plan_that_says_less_than_it_charged_publishes_nothing(self, ledger, monkeypatch):
        true = module.PrivateNetwork._run

        def twice(self, table, budget):
            halves = [true(self, table, Budget(rho=budget.rho / 2)) for _ in range(2)]
            return halves[1]

        monkeypatch.setattr(module.PrivateNetwork, "_run", twice)
        with pytest.raises(RuntimeError):
            published(ledger, budget=Budget(rho=0.1))

    def test_a_table_that_is_shared(self, ledger):
        table = PrivateTable(FRAME, STATES, ledger=ledger)
        assert publish_if(table, BUDGET, YES) and len(ledger.entries) == 1
        with pytest.raises(TypeError, match="pass ledger=None"):
            publish_if(table, BUDGET, YES, ledger=ledger)

    def test_persons(self, ledger):
        frame = FRAME.assign(who=np.arange(3000) // 3)
        found = published(ledger, frame=frame, unit="who", rows_per_unit=2)
        assert found and ledger.entries[0].unit == "who" and found.learner.privacy_.rows_per_unit == 2

    def test_a_schema_that_the_ledger_paid_for(self, ledger):
        frame = FRAME.assign(age=RNG.integers(0, 90, 3000))
        table = PrivateTable(frame, {"age": Number(0, 120, resolution=1)}, ledger=ledger)
        schema = discover(frame, {**STATES, "a": "categories"}, Budget(epsilon=1.0, delta=1e-9), ledger=ledger).schema
        del table
        found = publish_if(frame, BUDGET, YES, schema, ledger=ledger)
        assert found and len(ledger.entries) == 2
        assert found.learner.privacy_.schema.guarantee == ledger.entries[0].cost

    def test_merged_cells_are_paid_for_by_the_charge(self, ledger):
        """What is learned next with the states of a published model, on the same ledger, is not refused."""
        frame = FRAME.assign(age=np.clip(RNG.normal(40, 20, 3000), 0, 90))
        schema = {"age": Number(0, 90), **STATES}
        model = publish_if(frame, BUDGET, YES, schema, ledger=ledger).model_
        (cost,) = model.schema.discovered
        assert cost["guarantee"] == ledger.entries[0].cost.to_dict() and cost["ledger"] == ledger.id
        PrivateTable(frame, model.schema, ledger=ledger)

    def test_warnings_are_seen(self, tmp_path):
        with pytest.warns(LargeDeltaWarning, match="above 1/n"):
            assert published(tmp_path / "ledger.json", budget=Budget(epsilon=1.0, delta=1e-3))

    def test_seeds_are_said(self, ledger):
        found = published(ledger, random_state=1)
        assert not ledger.private and found.learner.privacy_.reproducible


def everything_left_behind(place):
    return {path.name: path.read_bytes() for path in Path(place).rglob("*") if path.is_file()}


class TestNo:
    def test_nothing_but_no_leaves(self, ledger, tmp_path, capfd, caplog, monkeypatch):
        """Nothing is printed, logged, warned of or written, and no object is left that has what was released."""
        monkeypatch.chdir(tmp_path)
        (tmp_path / "temporary").mkdir()
        monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
        caplog.set_level(logging.DEBUG)
        kept = {id(one) for one in gc.get_objects() if type(one) in HOLDS}
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = published(ledger, NO, FRAME.iloc[:40])
        assert vars(found) == {"published": False, "learner": None, "tests": None}
        assert not found and found.model_ is None and repr(found) == "Decision(no)"
        assert pickle.loads(pickle.dumps(found)).published is False
        assert caught == [] and capfd.readouterr() == ("", "")
        assert {record.name for record in caplog.records} <= {"filelock"}
        assert set(everything_left_behind(tmp_path)) == {"ledger.json", "ledger.json.lock"}
        assert not os.listdir(tmp_path / "temporary")
        gc.collect()
        left = [one for one in gc.get_objects() if type(one) in HOLDS and id(one) not in kept]
        assert left == []

    def test_two_runs_that_say_no_leave_the_same_files(self, tmp_path):
        """All that differs between ledgers is their random name."""
        texts = []
        for k in range(2):
            ledger = Ledger.open(tmp_path / f"{k}.json", Budget(epsilon=4.0, delta=1e-6))
            assert not published(ledger, NO, FRAME[k * 1000 :])
            content = json.loads((tmp_path / f"{k}.json").read_text())
            texts.append({name: content[name] for name in content if name not in ("id", "digest")})
        assert texts[0] == texts[1]

    def test_it_costs_as_much_as_yes(self, ledger):
        assert not published(ledger, NO)
        spent = ledger.entries[0].cost
        other = Ledger.open(ledger.path.with_name("other.json"), ledger.budget)
        assert published(other) and other.entries[0].cost == spent

    def test_a_published_model_does_not_stay_where_a_second_one_fails(self, ledger):
        learner = published(ledger).learner
        before = learner.release_
        assert not published(ledger, NO, again=True)
        assert learner.release_ is before


class TestWhatIsSilenced:
    """Each was found by an attack on an earlier version."""

    def test_no_is_silent_where_numpy_prints(self, ledger, capfd):
        with np.errstate(all="print"):
            assert not published(ledger, NO, FRAME, budget=Budget(epsilon=1.0))
        assert capfd.readouterr() == ("", "")

    def test_doubts_are_not_even_computed_into_a_warning(self, ledger, monkeypatch):
        """A thread that leaves a block of its own puts real warnings back in the middle of ours."""
        true = module._tested

        def put_back(*given):
            warnings.simplefilter("error")
            return true(*given)

        monkeypatch.setattr(module, "_tested", put_back)
        assert not published(ledger, NO, FRAME, budget=Budget(epsilon=1.0, delta=1e-3))
        assert "__warningregistry__" not in vars(module)

    def test_two_at_once_leave_the_process_as_it_was(self, tmp_path, monkeypatch):
        inside, true, seen = threading.Barrier(2), module._tested, []

        def tested(*given):
            seen.append(logging.root.manager.disable)
            return true(*given)

        monkeypatch.setattr(module, "_tested", tested)

        def work(k):
            inside.wait()
            published(tmp_path / f"{k}.json", NO)

        before = logging.root.manager.disable, config.get_show_progress(), list(warnings.filters)
        threads = [threading.Thread(target=work, args=(k,)) for k in range(2)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        assert before == (logging.root.manager.disable, config.get_show_progress(), list(warnings.filters))
        assert seen == [logging.CRITICAL] * 2

    def test_who_reads_beside_it_leaves_warnings_as_they_were(self, ledger, monkeypatch):
        """It found them off, and put them back when they were on again."""
        true, reads, ended = module._tested, threading.Event(), threading.Event()
        reader = threading.Thread(target=quietly, args=(lambda: (reads.set(), ended.wait()),), daemon=True)

        def tested(*given):
            reader.start()
            reads.wait(0.2)
            return true(*given)

        monkeypatch.setattr(module, "_tested", tested)
        before = list(warnings.filters)
        published(ledger, NO)
        ended.set()
        reader.join()
        assert list(warnings.filters) == before

    @pytest.mark.parametrize("budget", [Budget(epsilon=1e-4), Budget(rho=1e-8)], ids=str)
    def test_noise_larger_than_the_records_says_no(self, budget, tmp_path):
        criteria = [{"test": "log_loss", "target": "c", "given": ["a"], "clip": 2.0, "at_most": 1.9}]
        answers = [published(tmp_path / f"{k}.json", criteria, budget=budget).published for k in range(12)]
        assert not any(answers)
        assert (preview_publish_if(criteria, 3000, budget, STATES)["margin"] > 1.9).all()


class TestCharge:
    def test_it_is_on_the_disk_before_anything_is_counted(self, ledger, monkeypatch):
        true, seen = table_operator.contingency_tables, []

        def counted(*arguments):
            seen.append(tuple(Ledger.load(ledger.path).entries))
            return true(*arguments)

        monkeypatch.setattr(table_operator, "contingency_tables", counted)
        published(ledger)
        assert len(seen) > 2 and set(seen) == {ledger.entries}
        assert ledger.entries[0].cost == ZCDP(module.cost_of(BUDGET).rho)
        assert ledger.entries[0].what.startswith("publish only if 1 criterion is met (")

    def test_what_cannot_be_paid_is_refused_whole(self, tmp_path):
        ledger = Ledger.open(tmp_path / "small.json", Budget(epsilon=0.95, delta=1e-9))  # it could pay for the fit
        with pytest.raises(BudgetExceeded):
            published(ledger)
        assert ledger.entries == ()

    @pytest.mark.parametrize(
        ("options", "error", "told"),
        [
            ({"criteria": [{"test": "auc"}]}, ValueError, "there are distance"),
            ({"test_share": 0.0}, ValueError, "test_share=0.0"),
            ({"test_share": 1.0}, ValueError, "test_share=1.0"),
            ({"again": 1}, TypeError, "again=1"),
            ({"epsilon": 1.0}, TypeError, "epsilon"),
            ({"missing_at_random": {"a": ["b"]}}, TypeError, "missing_at_random"),
            ({"max_order": 0}, ValueError, "max_order"),
            ({"required_edges": [("a", "z")]}, ValueError, "'z'"),
            ({"budget": 1.0}, TypeError, "budget"),
            ({"budget": Budget(rho=1e-30)}, ValueError, "bury|noise"),
            ({"test_share": 1e-300}, ValueError, "bury|noise|rho"),
            ({"adjacency": "replace_one"}, ValueError, "n_records"),
            ({"frame": FRAME[["a"]]}, ValueError, "'b'"),
        ],
    )
    def test_what_is_wrong_is_told_before(self, options, error, told, ledger, monkeypatch):
        monkeypatch.setattr(table_operator, "contingency_tables", lambda *a: pytest.fail("counted"))
        with pytest.raises(error, match=told):
            published(ledger, **options)
        assert ledger.entries == ()

    @pytest.mark.parametrize("given", [None, 3, BUDGET])
    def test_a_ledger_is_needed(self, given):
        with pytest.raises(TypeError, match="pass the file of the records' ledger"):
            published(given)

    def test_one_in_memory_remembers_nothing(self):
        with pytest.raises(ValueError, match="the ledger is in memory"):
            published(Ledger(BUDGET))
        with pytest.raises(ValueError, match="the ledger is in memory"):
            publish_if(PrivateTable(FRAME, STATES, ledger=BUDGET), BUDGET, YES)

    def test_a_file_that_is_new_has_this_budget(self, tmp_path):
        assert published(tmp_path / "new.json") and Ledger.load(tmp_path / "new.json").budget == BUDGET


class TestNoRetry:
    def test_a_second_attempt_is_refused_whatever_it_asks(self, ledger):
        assert not published(ledger, NO)
        for criteria in (NO, YES):
            with pytest.raises(ValueError, match="has an attempt to publish already"):
                published(ledger, criteria)
        assert len(ledger.entries) == 1

    def test_one_that_is_meant_costs_as_much_again_and_says_so(self, ledger):
        assert not published(ledger, NO)
        found = published(ledger, again=True)
        assert len(ledger.entries) == 2 and ledger.entries[1].cost == ledger.entries[0].cost
        assert found.learner.privacy_.published_if["attempt"] == 2
        assert "at attempt 2 on these records" in found.model_.privacy.conditional

    def test_one_at_the_same_time_is_seen_after_the_charge(self, ledger, monkeypatch):
        true = module.PrivateNetwork._prepared

        def prepared(*arguments, **options):
            made = true(*arguments, **options)
            what = f"{module.MARK}another process was quicker"
            Ledger.open(ledger.path).charge(ZCDP(1e-4), what=what, columns=(), mechanism="m", adjacency="add_remove")
            return made

        counts = []
        monkeypatch.setattr(module.PrivateNetwork, "_prepared", prepared)
        monkeypatch.setattr(module, "_attempts", lambda given: counts.append(1) or (0 if len(counts) == 1 else 2))
        with pytest.raises(RuntimeError, match="another attempt was charged at the same time"):
            published(ledger)
        assert len(ledger.entries) == 2


class Stopped(Exception):
    """It has a release, as those of a fit have, and says something of it."""

    release = "what was released"


class TestWhatEndsEarly:
    @pytest.mark.parametrize("error", [Stopped("secret"), MemoryError("secret"), SystemExit(3), KeyboardInterrupt()])
    @pytest.mark.parametrize("where", ["fit", "learning", "test"])
    def test_an_error_has_nothing_of_what_was_released(self, error, where, ledger, monkeypatch):
        def stopped(*_, **__):
            raise error

        place = {
            "fit": (module.PrivateNetwork, "_run"),
            "learning": (module.PrivateNetwork, "_learned"),
            "test": (noisy_test.TableCurator, "merge"),
        }[where]
        if where == "test":  # after the fit has merged nothing: in the test's own question
            place = (noisy_test, "_of_tables")
        monkeypatch.setattr(*place, stopped)
        wanted = type(error) if isinstance(error, KeyboardInterrupt | SystemExit) else RuntimeError
        with pytest.raises(wanted, match="ended without an answer") as caught:
            published(ledger)
        found = caught.value
        assert type(found) is wanted and found.__cause__ is None and found.__context__ is None
        assert not hasattr(found, "release") and not hasattr(found, "__notes__") and "secret" not in str(found)
        frames, trace = [], found.__traceback__
        while trace is not None:
            frames.append(trace.tb_frame)
            trace = trace.tb_next
        inside = [value for frame in frames[1:] for value in frame.f_locals.values()]
        assert not any(
            isinstance(value, Release | MarkovNetwork | pd.DataFrame) for value in inside if value is not FRAME
        )
        assert not any(isinstance(value, module.PrivateNetwork | PrivateTable) for value in inside)
        assert len(ledger.entries) == 1  # it is paid for

    def test_an_interrupt_while_it_is_decided(self, ledger, monkeypatch):
        """As a signal's handler would, at the line after the last answer: the test has said no."""

        class Asked(pd.Series):
            def all(self, *_, **__):
                raise KeyboardInterrupt

        class Tests(dict):
            release = "of a no"

        monkeypatch.setattr(noisy_test, "run", lambda *_: Tests(met=Asked([False])))
        with pytest.raises(KeyboardInterrupt, match="ended without an answer") as caught:
            published(ledger)
        assert caught.value.__context__ is None

    def test_silence_ends_with_it(self, ledger, monkeypatch):
        monkeypatch.setattr(module.PrivateNetwork, "_run", lambda *_: 1 / 0)
        before = logging.root.manager.disable, config.get_show_progress(), list(warnings.filters)
        with pytest.raises(RuntimeError):
            published(ledger)
        assert before == (logging.root.manager.disable, config.get_show_progress(), list(warnings.filters))


class TestErrorRates:
    """With the shares, the noise and the margins as they are: counted, against what is stated."""

    @pytest.mark.parametrize(
        ("budget", "right"),
        [
            (Budget(epsilon=0.2), "yes"),
            (Budget(rho=0.005), "no"),
            pytest.param(Budget(rho=0.005), "yes", marks=pytest.mark.slow),
            pytest.param(Budget(epsilon=0.2), "no", marks=pytest.mark.slow),
        ],
        ids=str,
    )
    def test_a_wrong_answer_outside_the_margins_is_as_rare_as_is_stated(self, budget, right):
        """A right test fails this with a probability below 1e-6."""
        schema, chance, trials = Schema(STATES), 0.05, 300
        model = learn(FRAME, Budget(epsilon=3.0), STATES).model_
        table = PrivateTable(FRAME, STATES, ledger=Budget(rho=1e12))
        listed = [
            {"test": "distance", "tables": [["a", "b"], ["c"]], "at_most": 0.5},
            {"test": "log_loss", "target": "c", "given": ["a"], "clip": 2.0, "at_most": 1.0},
        ]
        exact = noisy_test.run(table, model, Criteria.of(listed, schema), Budget(rho=1e9))["found"]

        def rate(sign, which):
            moved = []
            for k, one in enumerate(listed):
                bound, off = exact[k], sign if k in which else 1.0
                for _ in range(30):  # the margin depends on the bound
                    moved_to = [*moved, one | {"at_most": max(bound, 1e-9)}, *listed[k + 1 :]]
                    margin = noisy_test.margins(Criteria.of(moved_to, schema), 3000, budget, chance)[k]
                    bound = max(exact[k] + off * margin, 2 * margin if off > 0 else 0.0)
                moved.append(one | {"at_most": bound})
            criteria = Criteria.of(moved, schema)
            return sum(noisy_test.run(table, model, criteria, budget)["met"].all() for _ in range(trials))

        most = binom.isf(1e-6 / 2, trials, chance)
        if right == "yes":
            assert trials - rate(1.0, {0, 1}) <= most
        else:
            assert rate(-1.0, {1}) <= most  # of a loss: there is a bound that is as much too low

    def test_the_preview_says_the_noise_that_is_added(self, ledger):
        criteria = [{"test": "distance", "at_most": 0.3}, {"test": "distance", "tables": [["a", "b"]], "at_most": 0.4}]
        seen = preview_publish_if(criteria, 3000, BUDGET, STATES)
        fit, test = module._budgets(module.cost_of(BUDGET), module.Fraction(0.1))
        own, _ = noisy_test.planned_noise(Criteria.of(criteria, Schema(STATES)), test)
        assert seen["sd"].tolist() == [own.variance**0.5] * 2 and (seen["margin"] > own.scale / 3000).all()
        assert (preview_publish_if(criteria, 3000, BUDGET, STATES, rows_per_unit=3)["sd"] > 2.9 * seen["sd"]).all()
        assert fit.rho + test.rho == pytest.approx(module.cost_of(BUDGET).rho)


class TestRegressions:
    """A model's own coefficients against those of the records, by one question."""

    FORMULA = {"test": "regression", "formula": "ill ~ age + job"}

    def seen(self, budget, bounds, n=20_000, of=("age",)):
        table = PrivateTable(records(n), SCHEMA, ledger=Budget(rho=1e12))
        listed = [self.FORMULA | {"of": list(of), "at_most": bound} for bound in bounds]
        return noisy_test.run(table, network(2.0), Criteria.of(listed, SCHEMA), budget)

    def test_it_says_how_far_a_regression_of_the_model_is_off(self):
        frame, model = records(20_000), network(2.0)
        theirs = model.regress("ill ~ age + job", frame, Budget(rho=1e9), rounds=4)
        off = np.abs(theirs.params - theirs.network_params)
        said = [self.seen(Budget(rho=1e9), [1.0], of=of)["found"][0] for of in (["age"], ["job[T.b]", "job[T.c]"], [])]
        assert said == pytest.approx([off.iloc[1], off.iloc[2:].max(), off.iloc[1:].max()], rel=0.15)  # by two steps

    @pytest.mark.parametrize("budget", [Budget(rho=0.02), Budget(epsilon=0.5)], ids=str)
    def test_wrong_answers_are_rare_outside_of_the_noise(self, budget):
        """The noise of the coefficient is about .0005."""
        exact = self.seen(Budget(rho=1e9), [1.0])["found"][0]
        answers = np.array([self.seen(budget, [exact + 0.004, exact - 0.004])["met"] for _ in range(20)])
        assert exact > 0.005 and answers.mean(axis=0).tolist() == [1.0, 0.0]
        assert not self.seen(Budget(rho=1e-6), [exact + 0.01])["met"].any()  # its noise is larger than the bound
        assert not self.seen(budget, [100.0], n=10)["met"].any()  # of too few records

    def test_a_model_whose_states_cannot_say_does_not_meet_it(self):
        table = PrivateTable(records(1000), SCHEMA, ledger=Budget(rho=1e12))
        model = network()
        model.factors[0].values = np.where(np.arange(3)[None, :, None] > 0, 0.0, model.factors[0].values)
        criteria = Criteria.of([self.FORMULA | {"of": ["job[T.b]"], "at_most": 5.0}], SCHEMA)
        assert not noisy_test.run(table, model, criteria, Budget(rho=1.0))["met"].any()

    def test_it_is_published_and_its_digest_is_of_the_formula(self, ledger):
        listed = [self.FORMULA | {"at_most": 5.0}, {"test": "distance", "at_most": 0.5}]
        decision = publish_if(records(20_000), BUDGET, listed, SCHEMA, ledger=ledger)
        assert decision and "each coefficient of ill ~ age + job is off by at most 5" in str(decision)
        changed = [listed[0] | {"formula": "ill ~ age"}, listed[1]]
        assert Criteria.of(changed, SCHEMA).digest != Criteria.of(listed, SCHEMA).digest
        margins = preview_publish_if(listed, 20_000, BUDGET, SCHEMA)["margin"]
        assert np.isnan(margins[0]) and 0 < margins[1] < 0.1
        assert (
            json.loads(json.dumps(plan(SCHEMA, BUDGET, 20_000, criteria=listed).to_dict()))["publish_if"][0]["margin"]
            is None
        )

    @pytest.mark.parametrize(
        ("change", "told"),
        [
            ({"formula": "ill ~ weight"}, "names 'weight'"),
            ({"formula": 3}, "pass a text"),
            ({"of": ["weight"]}, "there are age, job"),
            ({"of": "age"}, "no list of coefficients"),
            ({"family": "probit"}, "probit"),
            ({"at_most": 0}, "at_most"),
            ({"tables": []}, "it says formula"),
        ],
    )
    def test_what_is_wrong_is_told_before(self, change, told):
        with pytest.raises(ValueError, match=told):
            Criteria.of([self.FORMULA | {"at_most": 0.1} | change], SCHEMA)


@pytest.mark.parametrize("how", ["text", "json"])
def test_on_the_command_line(folder, how):  # noqa: F811
    flag = "--json" if how == "json" else ""
    Path("yes.json").write_text(json.dumps(YES))
    Path("no.json").write_text(json.dumps([{"test": "distance", "at_most": 1e-9}] * 40))
    plan = run("plan --schema schema.json --epsilon 2 --n 2000 --publish-if yes.json").stdout
    assert "Published only if, by a test that takes 10 % of the budget" in plan and "margin 0.0" in plan
    before = set(os.listdir())
    fit = "fit records.csv --schema schema.json --epsilon 2 --delta 1e-9 --out model.npz --release r.npz -q"
    no = run(f"{fit} --publish-if no.json --ledger no-ledger.json {flag}", code=1)
    assert set(os.listdir()) - before == {"no-ledger.json", "no-ledger.json.lock"}
    assert no.stdout == ('{\n "published": false\n}\n' if how == "json" else no.stdout) and no.stdout.count("\n") <= 3
    assert "is new, with a budget of" in no.stderr and no.stderr.count("\n") == 1
    assert "has an attempt" in run(f"{fit} --publish-if yes.json --ledger no-ledger.json", code=2).stderr
    yes = run(f"{fit} --publish-if yes.json --ledger yes-ledger.json --draws 3 {flag}").stdout
    assert json.loads(yes)["published"] if how == "json" else "Published because all criteria are met" in yes
    assert "published because a declared criterion was met" in run("info model.npz").stdout
    assert "Intervals are conditional" in run("query model.npz --variables job").stdout
    run("refit r.npz --out again.npz")
    assert "a test included" in run("info again.npz").stdout
    for wrong, told in (
        (f"{fit} --publish-if yes.json", "--ledger is missing"),
        (f"{fit} --again", "it is for --publish-if"),
        (f"{fit} --test-share 0.2", "it is for --publish-if"),
        (f"{fit} --publish-if yes.json --ledger l.json --structure chow-liu", "for a graph that learn is to find"),
        (f"{fit} --publish-if records.csv --ledger l.json", "is no JSON"),
    ):
        assert told in run(f"{wrong} --overwrite", code=2).stderr
    plan = "plan --schema schema.json --epsilon 2 --n 2000"
    assert "it is for --publish-if" in run(f"{plan} --again", code=2).stderr
    assert "for a graph that learn is to find" in run(f"{plan} --publish-if yes.json --edges age-job", code=2).stderr
    assert not Path("l.json").exists()


@pytest.mark.skipif(not hasattr(signal, "SIGTERM"), reason="no signals")
@pytest.mark.parametrize("alone", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_command_that_is_told_to_end_leaves_nothing(folder, alone, monkeypatch):  # noqa: F811
    """Between the charge and the answer: the exit code says that the budget is spent, and there is no file."""
    Path("yes.json").write_text(json.dumps(YES))
    code = (
        "import os, signal, sys\n"
        "from pgmpy_dp.tables.publishing import noisy_test\n"
        "def told(*_, **__): os.kill(os.getpid(), signal.SIGTERM); signal.pause()\n"
        "noisy_test.run = told\n"
        "from pgmpy_dp.cli import app\n"
        "app()\n"
    )
    fit = "fit records.csv --schema schema.json --epsilon 2 --delta 1e-9 --out model.npz --release r.npz -q"
    fit += " --publish-if yes.json --ledger ledger.json"
    before, env = set(os.listdir()), {**os.environ, "PYTHONPATH": str(ROOT)}
    if alone:
        command = [sys.executable, "-c", code, *fit.split()]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=120, env=env)
        assert ended.returncode == 4
    else:
        monkeypatch.setattr(noisy_test, "run", lambda *_, **__: os.kill(os.getpid(), signal.SIGTERM))
        ended = run(fit, code=4)
    assert ended.stdout == "" and "after the budget was spent" in ended.stderr
    assert set(os.listdir()) - before == {"ledger.json", "ledger.json.lock"}
    assert len(Ledger.load("ledger.json").entries) == 1
