"""A fit that is cut off at a charge: what was charged stays, nothing else changes, and no noise was drawn unpaid."""

from __future__ import annotations

import os
import pickle
import threading

import pytest

from pgmpy_dp import Budget, Ledger, MarkovNetwork, PrivateTable, Release
from pgmpy_dp.estimators import NaiveMLE
from pgmpy_dp.private.filter import BudgetExceeded
from pgmpy_dp.private.noise import samplers
from tests.estimators.cases import CASES, GRAPH, ORDINARY, STATES, rows
from tests.estimators.test_every_estimator import OF_EACH

MEASUREMENTS = ("laplace_measurement", "gaussian_measurement", "gumbel_measurement", "exponential_measurement")


class Crash(BaseException):
    """Nothing that a learner could catch by mistake."""


@pytest.fixture
def events(monkeypatch) -> list[str]:
    """Charges and draws, in order. All noise comes from OpenDP's measurements or from the system's random bytes."""
    samplers.exercised()  # once a process, on made-up numbers
    seen: list[str] = []

    def recorded(name, function):
        def wrapper(*arguments, **options):
            seen.append(name)
            return function(*arguments, **options)

        return wrapper

    monkeypatch.setattr(Ledger, "charge", recorded("charge", Ledger.charge))
    monkeypatch.setattr(os, "urandom", recorded("draw", os.urandom))
    for name in MEASUREMENTS:
        monkeypatch.setattr(samplers, name, recorded("draw", getattr(samplers, name)))
    return seen


def crashing(events: list[str], number: int, recorded: bool):
    """A charge that crashes the `number`-th time, right before or right after it is recorded."""
    charge = Ledger.charge  # that tells the events

    def crash(self, *arguments, **options):
        before = events.count("charge")
        entry = charge(self, *arguments, **options) if recorded or before + 1 < number else None
        if before + 1 < number:
            return entry
        events.append("crash")
        raise Crash

    return crash


def public(case) -> dict:
    return {"n_records": case.options["n_records"]} if "n_records" in case.options else {}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_cut_off_at_every_charge(case, events, monkeypatch, tmp_path):
    case.fit(case.make(), case.data(ORDINARY[case.kind], **public(case)))
    assert events[0] == "charge" and "draw" in events, events[:3]
    n_charges = events.count("charge")
    for number in range(1, n_charges + 1):
        for recorded in (False, True):
            events.clear()
            path = tmp_path / f"{number}-{recorded}.json"
            ledger = Ledger.open(path, case.budget)
            data = case.data(ORDINARY[case.kind], ledger, **public(case))
            estimator = case.make()
            before = dict(vars(estimator))
            with monkeypatch.context() as patch:
                patch.setattr(Ledger, "charge", crashing(events, number, recorded))
                with pytest.raises(Crash):
                    case.fit(estimator, data)
            assert vars(estimator) == before and not estimator.is_fitted
            assert events[-1] == "crash" and events[0] in ("charge", "crash")
            kept = number if recorded else number - 1
            assert len(ledger.entries) == len(Ledger.load(path).entries) == kept
    # The last of these ledgers holds all that one fit costs: there is nothing for another one.
    events.clear()
    with pytest.raises(BudgetExceeded):
        case.fit(case.make(), data)
    assert "draw" not in events


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=[pytest.mark.slow] * (case not in OF_EACH), id=case.name) for case in CASES],
)
def test_a_ledger_that_cannot_be_written_stops_a_fit_before_its_noise(case, events, monkeypatch, tmp_path):
    path = tmp_path / "ledger.json"
    data = case.data(ORDINARY[case.kind], Ledger.open(path, case.budget), **public(case))
    estimator, before = case.make(), path.read_bytes()
    events.clear()
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError("disk full")))
        with pytest.raises(OSError, match="disk full"):
            case.fit(estimator, data)
    assert events == ["charge"] and not estimator.is_fitted
    assert path.read_bytes() == before and len(list(tmp_path.iterdir())) == 2
    assert case.fit(estimator, data).is_fitted


class TestHalfWrittenFiles:
    def saved(self) -> dict:
        fitted = NaiveMLE(epsilon=1.0, state_names=STATES).fit(GRAPH, rows(50))
        ledger = Ledger(Budget(epsilon=1.0))
        return {"model": fitted.model_, "release": fitted.release_, "ledger": ledger}

    @pytest.mark.parametrize("what", ["model", "release", "ledger"])
    @pytest.mark.parametrize("step", ["os.replace", "os.fsync", "tempfile.mkstemp", "os.chmod", "write"])
    def test_the_old_file_stays(self, what, step, tmp_path, monkeypatch):
        item, path = self.saved()[what], tmp_path / "file"
        item.save(path)
        before = path.read_bytes()
        other = self.saved()[what]
        with monkeypatch.context() as patch:
            if step == "write":
                fdopen = os.fdopen
                patch.setattr(os, "fdopen", lambda *a, **o: _Stuck(fdopen(*a, **o)))
            else:
                patch.setattr(step, lambda *_, **__: (_ for _ in ()).throw(OSError("disk full")))
            with pytest.raises(OSError, match="disk full"):
                other.save(path)
        assert path.read_bytes() == before and [p.name for p in tmp_path.iterdir()] == ["file"]
        other.save(path)
        if what == "release":
            assert Release.load(path) == other
        if what == "model":
            assert pickle.dumps(MarkovNetwork.load(path).get_cardinality()) == pickle.dumps(other.get_cardinality())


class _Stuck:
    """A file on a disk that is full after a few bytes."""

    def __init__(self, stream):
        self.stream = stream

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stream.close()

    def __getattr__(self, name):
        return getattr(self.stream, name)

    def write(self, content):
        self.stream.write(content[:10])
        raise OSError("disk full")


@pytest.mark.parametrize("stored", [False, True], ids=["in memory", "in a file"])
def test_fits_in_threads_share_one_table(stored, tmp_path):
    budget = Budget(epsilon=1.0)
    ledger = Ledger.open(tmp_path / "ledger.json", budget) if stored else Ledger(budget)
    table = PrivateTable(rows(50), STATES, ledger=ledger)
    accepted, refused, gate = [], [], threading.Barrier(8)

    def fit():
        gate.wait()
        for _ in range(4):
            try:
                accepted.append(NaiveMLE(epsilon=0.1).fit(GRAPH, table))
            except BudgetExceeded as error:
                refused.append(error)

    threads = [threading.Thread(target=fit) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(accepted), len(refused), len(ledger.entries)) == (10, 22, 10)
    assert len({estimator.release_.values[0].tobytes() for estimator in accepted}) > 1
