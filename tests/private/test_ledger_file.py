"""Ledgers in files: on the disk before noise, one process at a time, and refusals for whatever is wrong with a file."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from filelock import FileLock

from pgmpy_dp import Budget, Ledger, PrivateTable
from pgmpy_dp.learning import noisy_tables
from pgmpy_dp.private.atomic_file import write_atomically
from pgmpy_dp.private.filter import BudgetExceeded
from pgmpy_dp.private.guarantee import ZCDP, ApproxDP, PureDP
from pgmpy_dp.private.noise import samplers
from pgmpy_dp.schema.stored import sealed
from tests.private.processes import everything, forked
from tests.settings import table_settings

ONE = Budget(epsilon=1.0)
ROOT = Path(__file__).parents[2]


def charge(ledger: Ledger, cost=PureDP(0.1), adjacency="add_remove", **changes):  # noqa: B008  # frozen
    return ledger.charge(cost, **{"what": "w", "columns": ("a",), "mechanism": "m", "adjacency": adjacency, **changes})


def state(ledger: Ledger) -> tuple:
    return (ledger.budget, ledger.entries, ledger.spent, ledger.left, ledger.adjacency, ledger.conversion_delta)


def n_calls(work) -> int:
    """Calls and resumptions of functions, Python's and C's, while `work` runs."""
    calls = []
    sys.setprofile(lambda _, event, __: calls.append(event))
    try:
        work()
    finally:
        sys.setprofile(None)
    return sum(event in ("call", "c_call") for event in calls)


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "ledger.json"


@pytest.fixture
def ledger(path) -> Ledger:
    return Ledger.open(path, ONE)


class TestOpening:
    def test_it_is_made_and_found_again(self, path):
        made = Ledger.open(path, Budget(epsilon=1.0, delta=1e-6), adjacency="replace_one", conversion_delta=5e-7)
        charge(made, ZCDP(0.001), adjacency="replace_one", columns=("a", 0, ("b", 1), None), what="täbles")
        charge(made, ApproxDP(0.1, 1e-7), adjacency="replace_one", reproducible=True)
        for found in (
            Ledger.open(path),
            Ledger.open(str(path), made.budget, adjacency="replace_one"),
            Ledger.load(path),
        ):
            assert state(found) == state(made)
            assert found.summary() == made.summary() and not found.private
        assert made.path == path and Ledger.load(path).path is None
        assert repr(made).endswith(f"entries=2, path={str(path)!r})")

    def test_a_budget_is_needed_to_make_one(self, path):
        with pytest.raises(ValueError, match=r"budget=None, and '.*ledger.json' does not exist; pass the Budget"):
            Ledger.open(path)
        with pytest.raises(TypeError, match=r"budget=1.0 is a float; pass a Budget"):
            Ledger.open(path, 1.0)
        assert list(path.parent.iterdir()) == []

    def test_the_folder_must_exist(self, tmp_path):
        with pytest.raises(FileNotFoundError, match=r"path='.*': the folder '.*none' does not exist; make it"):
            Ledger.open(tmp_path / "none" / "l.json", ONE)

    @pytest.mark.parametrize("timeout", [-1, float("nan"), float("inf")])
    def test_timeout(self, path, timeout):
        with pytest.raises(ValueError, match="timeout="):
            Ledger.open(path, ONE, timeout=timeout)

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"budget": Budget(epsilon=2.0)}, r"budget=2-DP differs from the 1-DP of the ledger '.*ledger.json'"),
            ({"budget": Budget(rho=1.0)}, r"budget=1-zCDP differs"),
            ({"budget": 1.0}, r"budget=1.0 differs"),
            ({"adjacency": "replace_one"}, r"adjacency='replace_one' differs from 'add_remove'"),
            ({"adjacency": "sideways"}, r"adjacency='sideways' is not supported"),
            ({"conversion_delta": 0.0}, r"conversion_delta='0.0' differs from 'None'"),
            ({"conversion_delta": 0.5}, r"conversion_delta=0.5 is more than the budget's delta"),
        ],
    )
    def test_arguments_that_differ_from_the_file(self, path, ledger, changes, message):
        charge(ledger)
        before = path.read_bytes()
        with pytest.raises(ValueError, match=message):
            Ledger.open(path, **changes)
        assert path.read_bytes() == before

    def test_what_the_file_leaves_open_can_be_fixed_while_nothing_is_charged(self, path):
        first = Ledger.open(path, Budget(epsilon=1.0, delta=1e-6))
        second = Ledger.open(path, adjacency="edge", conversion_delta=1e-7)
        assert (
            (first.adjacency, first.conversion_delta) == ("edge", 1e-7) == (second.adjacency, second.conversion_delta)
        )
        with pytest.raises(ValueError, match="adjacency='add_remove' differs"):
            charge(first)

    def test_a_saved_ledger_can_be_opened(self, path):
        kept = Ledger(ONE)
        charge(kept)
        kept.save(path)
        charge(Ledger.open(path))
        assert len(Ledger.load(path).entries) == 2

    def test_a_link_leads_to_the_same_ledger_and_lock(self, path, ledger):
        link = path.with_name("link.json")
        link.symlink_to(path)
        charge(Ledger.open(link))
        assert link.is_symlink() and len(ledger.entries) == 1

    def test_a_hard_link_would_be_a_second_budget(self, path, ledger):
        os.link(path, path.with_name("twin.json"))
        for attempt in (
            lambda: charge(ledger),
            lambda: Ledger.open(path),
            lambda: Ledger.open(path.with_name("twin.json")),
        ):
            with pytest.raises(ValueError, match=r"has a second name \(a hard link\)"):
                attempt()

    @pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[]", b"null", b'{"format": "pgmpy_dp.ledger"}'])
    def test_what_is_no_ledger(self, path, content):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"ledger.json' is not a ledger"):
            Ledger.open(path, ONE)
        assert path.read_bytes() == content

    def test_a_folder_is_no_ledger(self, tmp_path):
        with pytest.raises(OSError, match="directory"):
            Ledger.open(tmp_path, ONE)


class TestCharging:
    def test_a_charge_is_on_the_disk_when_it_returns(self, path, ledger):
        for k in range(1, 4):
            entry = charge(ledger, what=f"number {k}")
            assert Ledger.load(path).entries[-1] == entry
            assert len(json.loads(path.read_text())["entries"]) == k

    def test_one_budget_for_all_who_open_it(self, path, ledger):
        other = Ledger.open(path)
        charge(ledger, PureDP(0.6))
        assert other.left == PureDP(0.4) and other.spent == PureDP(0.6) and len(other.entries) == 1
        for attempt in (lambda: charge(other, PureDP(0.5)), lambda: other.check(PureDP(0.5))):
            with pytest.raises(BudgetExceeded, match=r"0.5-DP was asked, 0.6-DP of the budget 1-DP is spent"):
                attempt()
        charge(other, PureDP(0.4))
        assert ledger.left == PureDP(0.0)

    @pytest.mark.parametrize("changes", [{"columns": (object(),)}, {"adjacency": "nearby"}, {"cost": PureDP(2.0)}])
    def test_a_refusal_changes_nothing(self, path, ledger, changes):
        charge(ledger)
        before = path.read_bytes(), state(ledger)
        with pytest.raises((TypeError, ValueError)):
            charge(ledger, **changes)
        assert (path.read_bytes(), state(ledger)) == before

    def test_learners_charge_it(self, path, ledger):
        table = PrivateTable(pd.DataFrame({"a": [0, 1, 1]}), {"a": [0, 1]}, ledger=ledger)
        release = noisy_tables.run(table, table_settings((("a",),)), Budget(epsilon=0.75))
        assert [entry.cost for entry in Ledger.load(path).entries] == [release.guarantee]
        with pytest.raises(BudgetExceeded):
            noisy_tables.run(table, table_settings((("a",),)), Budget(epsilon=0.75))

    def test_a_lock_that_is_held_is_named(self, path):
        ledger = Ledger.open(path, ONE, timeout=0.05)
        with (
            FileLock(f"{path}.lock"),
            pytest.raises(TimeoutError, match=r"lock '.*json.lock'.* 0.05 s.*nothing"),
        ):
            charge(ledger)
        assert ledger.entries == ()
        charge(ledger)

    @pytest.mark.parametrize("step", ["os.replace", "os.fsync", "tempfile.mkstemp", "os.chmod"])
    def test_what_cannot_be_written_is_not_charged(self, path, ledger, step, monkeypatch):
        charge(ledger)
        before = path.read_bytes(), state(ledger)
        with monkeypatch.context() as patch:
            patch.setattr(step, lambda *_, **__: (_ for _ in ()).throw(OSError("disk full")))
            with pytest.raises(OSError, match="disk full") as caught:
                charge(ledger)
        assert "nothing was charged or released" in caught.value.__notes__[0]
        assert (path.read_bytes(), state(ledger)) == before
        assert sorted(p.name for p in path.parent.iterdir()) == ["ledger.json", "ledger.json.lock"]
        charge(ledger)

    def test_a_failure_after_the_move_wastes_budget_and_draws_nothing(self, path, ledger, monkeypatch):
        monkeypatch.setattr(
            "pgmpy_dp.private.atomic_file._flush_folder", lambda _: (_ for _ in ()).throw(OSError("pulled"))
        )
        with pytest.raises(OSError, match="pulled"):
            charge(ledger)
        assert len(ledger.entries) == 1 == len(Ledger.load(path).entries)

    def test_the_file_s_mode_is_kept(self, path, ledger):
        """A new ledger is its owner's alone, whatever the umask."""
        assert path.stat().st_mode & 0o777 == 0o600
        path.chmod(0o640)
        charge(ledger)
        assert path.stat().st_mode & 0o777 == 0o640


def test_a_file_for_others_has_the_user_s_mode_and_no_thread_another_s(tmp_path, monkeypatch):
    """The umask belongs to the process: who sets it to read it makes files of other threads private, or stay so."""
    before = os.umask(0o027)
    try:
        with monkeypatch.context() as patch:
            patch.setattr(os, "umask", lambda _: pytest.fail("the umask was set"))
            write_atomically(tmp_path / "page", b"x")
            write_atomically(tmp_path / "release", b"x", private=True)
    finally:
        os.umask(before)
    assert {one.name: one.stat().st_mode & 0o777 for one in tmp_path.iterdir()} == {"page": 0o640, "release": 0o600}


def edit_and_seal(path, old, new):
    """As someone does it who wants to."""
    path.write_text(json.dumps(sealed(json.loads(path.read_text().replace(old, new)))))


class TestEditedInBetween:
    @pytest.mark.parametrize(
        ("edit", "message"),
        [
            (lambda path: path.write_text("{"), "is not a ledger"),
            (lambda path: path.write_bytes(path.read_bytes()[:-40]), "is not a ledger"),
            (lambda path: path.unlink(), "is gone, and with it what was spent"),
            (lambda path: path.write_text(path.read_text().replace('"epsilon": 0.1', '"epsilon": 5')), "is damaged"),
            (lambda path: path.write_text(path.read_text().replace('"pure"', '"zcdp"')), "is damaged"),
            (lambda path: edit_and_seal(path, '"epsilon": 0.1', '"epsilon": 5'), "refused: 5-DP"),
            (lambda path: edit_and_seal(path, '"pure"', '"zcdp"'), "is damaged"),
            (lambda path: edit_and_seal(path, '"what": "w"', '"what": "v"'), "was edited"),
            (lambda path: edit_and_seal(path, '"epsilon": 1.0', '"epsilon": 9.0'), "was edited"),
            (lambda path: (path.unlink(), Ledger(ONE).save(path.with_name("new")), path.with_name("new").rename(path)),
             "an older copy"),
        ],
    )  # fmt: skip
    def test_a_damaged_or_older_file_is_refused(self, path, ledger, edit, message):
        charge(ledger)
        edit(path)
        for attempt in (lambda: charge(ledger), lambda: ledger.check(PureDP(0.1)), lambda: ledger.left, ledger.summary):
            with pytest.raises(ValueError, match=message):
                attempt()
        assert "entries=1" in repr(ledger)

    def test_restoring_the_file_heals_it(self, path, ledger):
        charge(ledger)
        content = path.read_bytes()
        path.write_bytes(b"")
        with pytest.raises(ValueError, match="not a ledger"):
            charge(ledger)
        path.write_bytes(content)
        charge(ledger)
        assert len(ledger.entries) == 2

    def test_no_copy_is_saved_over_a_shared_ledger(self, path, ledger):
        copy = Ledger.load(path)
        charge(ledger)
        with pytest.raises(ValueError, match=r"is a ledger that processes share.*would forget"):
            copy.save(path)
        ledger.save(path)  # itself: nothing to do
        ledger.save(path.with_name("copy.json"))
        assert state(Ledger.load(path.with_name("copy.json"))) == state(ledger) and len(ledger.entries) == 1

    def test_reading_many_entries_is_linear(self, path):
        kept, calls = Ledger(Budget(rho=1.0)), []
        entry = charge(kept, ZCDP(1e-5))
        for n in (1000, 2000):
            kept._filter = type(kept._filter)(kept.budget, entry.adjacency, None, (entry,) * n)
            kept.save(path)
            calls.append(n_calls(lambda: Ledger.load(path)))
            assert len(Ledger.load(path).entries) == n
        assert calls[1] < 2.1 * calls[0]


# -- threads and processes -----------------------------------------------------------------------

SPEND = """
import sys, contextlib
from pgmpy_dp import Ledger
from pgmpy_dp.private.guarantee import PureDP
from pgmpy_dp.private.ledger import BudgetExceeded
ledger, n = Ledger.open(sys.argv[1]), 0
for _ in range(60):
    with contextlib.suppress(BudgetExceeded):
        ledger.charge(PureDP(0.01), what="w", columns=("a",), mechanism="m", adjacency="add_remove")
        n += 1
print(n)
"""


class TestSharing:
    def test_threads_with_one_object_and_with_their_own(self, path, ledger):
        accepted, gate = [], threading.Barrier(8)

        def spend(k):
            own = ledger if k % 2 else Ledger.open(path)
            gate.wait()
            for _ in range(20):
                with contextlib.suppress(BudgetExceeded):
                    accepted.append(charge(own, PureDP(0.01)))

        threads = [threading.Thread(target=spend, args=(k,)) for k in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(accepted) == len(ledger.entries) == len(Ledger.load(path).entries) == 100

    def test_processes(self, path, ledger):
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        children = [
            subprocess.Popen([sys.executable, "-c", SPEND, str(path)], stdout=subprocess.PIPE, env=environment)
            for _ in range(3)
        ]
        accepted = [int(child.communicate()[0]) for child in children]
        assert sum(accepted) == len(ledger.entries) == 100
        assert len(Ledger.load(path).entries) == 100


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
class TestForks:
    def test_a_copy_in_memory_refuses_charges(self):
        ledger = Ledger(ONE)

        def spend(write):
            for attempt in (lambda: charge(ledger), lambda: ledger.check(PureDP(0.1))):
                try:
                    attempt()
                    write(b"spent")
                except RuntimeError as error:
                    write(str(error).encode())
            write(str(ledger.left).encode())

        with forked(spend) as (_, reading):
            said = everything(reading).decode()
        assert said.count("in the memory of another process") == 2 and said.endswith("1-DP") and "spent" not in said
        charge(ledger)

    def test_a_file_is_shared_even_if_the_lock_of_threads_was_held(self, path, ledger):
        with (
            ledger._turns.lock,
            forked(lambda write: write(charge(ledger, what="child").what.encode())) as (_, reading),
        ):
            assert everything(reading) == b"child"
        assert [entry.what for entry in ledger.entries] == ["child"]

    def test_killed_at_any_moment_everything_drawn_was_charged(self, path, ledger):
        """The child tells of each draw when it begins; it is killed in the middle of its work."""
        draw, rng = samplers.discrete_laplace, np.random.default_rng(0)
        frame = pd.DataFrame({"a": [0, 1, 1]})
        before = 0
        for _ in range(8):

            def release(write):
                def told(*arguments, **options):
                    write(b".")
                    return draw(*arguments, **options)

                samplers.discrete_laplace = told  # in the child only
                table = PrivateTable(frame, {"a": [0, 1]}, ledger=ledger)
                while True:
                    noisy_tables.run(table, table_settings((("a",),)), Budget(epsilon=1e-4))

            with forked(release) as (pid, reading):
                drawn = os.read(reading, 1) + os.read(reading, 1)  # it is at work
                time.sleep(0.1 * rng.random())
                os.kill(pid, signal.SIGKILL)
                drawn += everything(reading)
            charged = len(Ledger.load(path).entries) - before
            assert len(drawn) <= charged <= len(drawn) + 1
            before += charged
            charge(Ledger.open(path, timeout=1.0), PureDP(1e-4))  # the lock ended with the child
            before += 1
        others = {p.name for p in path.parent.iterdir()} - {"ledger.json", "ledger.json.lock"}
        assert all(name.endswith(".tmp") for name in others)
        assert before == len(ledger.entries) >= 8 * (2 + 1)


@pytest.mark.parametrize("version", [True, 1.0, 2.0, 3.0, "1", None, [1], 0, 4])
def test_versions_are_whole_numbers(version, tmp_path):
    path = tmp_path / "ledger.json"
    Ledger(ONE).save(path)
    content = json.loads(path.read_text(encoding="utf-8"))
    old = {name: part for name, part in content.items() if name not in ("digest", "id")}
    path.write_text(json.dumps({**old, "version": 1}), encoding="utf-8")
    assert Ledger.load(path).budget == ONE
    for edited in ({**old, "version": version}, sealed({**content, "version": version})):
        path.write_text(json.dumps(edited), encoding="utf-8")
        with pytest.raises(ValueError, match=r"its version is .*, this package reads 1 to 3"):
            Ledger.load(path)


class TestMadeByTheFirstCharge:
    def test_until_then_there_is_no_file(self, tmp_path):
        path = tmp_path / "ledger.json"
        ledger = Ledger.open(path, ONE, at_once=False)
        assert ledger.budget == ONE and ledger.entries == () and ledger.path == path
        ledger.check(PureDP(0.5))
        with pytest.raises(BudgetExceeded):
            charge(ledger, PureDP(2.0))
        assert not list(tmp_path.iterdir())
        charge(ledger)
        assert state(Ledger.open(path)) == state(ledger) and len(ledger.entries) == 1
        path.unlink()
        with pytest.raises(ValueError, match="is gone"):
            charge(ledger)

    def test_another_that_was_quicker_is_charged(self, tmp_path):
        path = tmp_path / "ledger.json"
        first, second, third = (Ledger.open(path, ONE, at_once=False) for _ in range(3))
        charge(first, PureDP(0.4))
        charge(second, PureDP(0.5))
        assert [entry.cost.epsilon for entry in Ledger.open(path).entries] == [0.4, 0.5]
        assert first.id == second.id and len(first.entries) == 2
        with pytest.raises(BudgetExceeded):
            charge(third, PureDP(0.5))

    def test_another_budget_that_was_quicker_is_refused(self, tmp_path):
        path = tmp_path / "ledger.json"
        first = Ledger.open(path, Budget(epsilon=9.0), at_once=False)
        charge(Ledger.open(path, ONE))
        with pytest.raises(ValueError, match="differs from the"):
            charge(first, PureDP(5.0))
        assert len(Ledger.open(path).entries) == 1
