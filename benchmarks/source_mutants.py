"""One line of the boundary is broken in a copy of the repository, and the tests of its module are to notice.

    python -m benchmarks.source_mutants            # all, about five minutes of one core; make mutants
    python -m benchmarks.source_mutants --only eta

Prints a table with the test that noticed first, and ends with 1 if a mutant was noticed by none. What these lines guard
is seen by no attack, and mostly not by replay: locks, forks, pickles, the order of debit and count, the last bit of a
scale. (Mutants that are patched in place: benchmarks/mutants.py for attacks, tests/auditing/test_replay_mutants.py.)
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

__all__ = ["SOURCE_MUTANTS", "SourceMutant", "caught_by", "copied"]

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class SourceMutant:
    """A change of one place in a file.

    Attributes
    ----------
    what : str
    file : str
        Below ``pgmpy_dp/private``.
    old, new : str
        `old` stands in the file once.
    tests : str
        Files of tests of the module, below ``tests/private``.
    """

    what: str
    file: str
    old: str
    new: str
    tests: str

    @property
    def path(self) -> Path:
        return Path("pgmpy_dp", "private", self.file)

    def source(self, root: Path = ROOT) -> str:
        """The file with the change."""
        before = (root / self.path).read_text(encoding="utf-8")
        if before.count(self.old) != 1:
            raise ValueError(f"{self.what}: {self.path} has {before.count(self.old)} times {self.old!r}; mend the list")
        return before.replace(self.old, self.new)


_CURATOR = "curator/curator_base.py", "test_curator.py"
_DEBIT = "            self._debit(share, eta)\n"
_COUNT = "            exact = mechanism(self._unit_cost if of_units else self._cost, share)\n"
_CHARGE = "        data.ledger.charge(charged, unit=self.unit, **facts)\n"
_OPEN = """        # Only now is there anything to spend: an object whose opening was refused answers nothing.
        self._left, self._reserve = Fraction(1), Fraction(float(reserve))
"""
_TURN = """        with self._turns.taken():
            self._require_open()
            yield
"""


def _of_curator(what: str, old: str, new: str) -> SourceMutant:
    return SourceMutant(what, _CURATOR[0], old, new, _CURATOR[1])


SOURCE_MUTANTS = [
    _of_curator("debit after count", _DEBIT + _COUNT, _COUNT + _DEBIT),
    _of_curator("share not debited", "        self._left -= share\n", ""),
    _of_curator("eta not debited", "        self._reserve -= eta\n", ""),
    _of_curator("a share a little above what is left", "if share > self._left:", "if share > self._left * 9 / 8:"),
    _of_curator("the last share refused", "if share > self._left:", "if share >= self._left:"),
    _of_curator("open before the ledger was charged", _CHARGE + _OPEN, _OPEN + _CHARGE),
    _of_curator("answers while outside code sees records", "if self._data._in_other_hands:", "if False:"),
    _of_curator("answers without the lock", _TURN, _TURN.replace("with self._turns.taken()", "if True")),
    SourceMutant(
        "changes in the middle of a change", "turns.py", "if self._taken:", "if False:", "test_from_outside.py"
    ),
    _of_curator("answers in a fork", "if self._turns.process != os.getpid():", "if False:"),
    SourceMutant(
        "subclasses from elsewhere",
        "own_types.py",
        "getattr(module, kind.__qualname__, None) is kind",
        "module is not None",
        "test_from_outside.py",
    ),
    _of_curator("copies of a curator", "def __reduce_ex__", "def _reduce"),
    _of_curator("reserve not subtracted from delta", "budget.delta - reserve, 0.0", "budget.delta, 0.0"),
    _of_curator(
        "parts cost what the cheapest one used",
        "left, reserve = min([part._left for part in parts])",
        "left, reserve = max([part._left for part in parts])",
    ),
    _of_curator("parts stay open", "                part._closed = True\n", ""),
    SourceMutant(
        "a request beyond the schedule",
        "curator/schedule.py",
        "if self._asked[operator] >= most:",
        "if self._asked[operator] > most:",
        "test_schedule.py",
    ),
    SourceMutant(
        "a block function gets a view",
        "curator/outside_functions.py",
        'np.array(blocks[k], order="C")',
        "blocks[k]",
        "test_outside_functions.py",
    ),
    SourceMutant(
        "one generator for all blocks",
        "curator/outside_functions.py",
        "np.random.default_rng(seeds[k])",
        "np.random.default_rng(seeds[0])",
        "test_outside_functions.py",
    ),
    SourceMutant(
        "scales rounded to nearest",
        "noise/additive.py",
        "return rounded if Fraction(rounded) >= exact else math.nextafter(rounded, math.inf)",
        "return rounded",
        "test_noise.py",
    ),
    SourceMutant(
        "a threshold without its last vote",
        "noise/distance_test.py",
        "(1.0 + 1e-12)) + 1)",
        "(1.0 + 1e-12)))",
        "test_distance_test.py",
    ),
    SourceMutant(
        "a selection's noise in one direction",
        "noise/selection.py",
        "round_up(2 * moved",
        "round_up(moved",
        "test_selection.py",
    ),
    SourceMutant(
        "parts of a table with a public size",
        "data/table.py",
        "part._n_records, part._n_units, part._matched = None,",
        "part._n_records, part._n_units, part._matched = self._n_records,",
        "test_curator.py",
    ),
    SourceMutant(
        "delta that converts is spent again",
        "filter.py",
        "_within(sums.delta, budget.delta - conversion_delta)",
        "_within(sums.delta, budget.delta)",
        "test_ledger.py",
    ),
    SourceMutant(
        "charges of another unit",
        "filter.py",
        "if self.entries and unit != self.entries[0].unit:",
        "if False:",
        "test_ledger.py",
    ),
    SourceMutant(
        "a charge that is not written",
        "ledger.py",
        "                self._file.write(content)\n",
        "                pass\n",
        "test_ledger_file.py",
    ),
    SourceMutant(
        "marks that a record takes away are not covered",
        "curator/column_curator.py",
        "float(eta), changed_records(adjacency))",
        "float(eta), 1)",
        "test_columns.py",
    ),
    SourceMutant(
        "marks of two columns that are one",
        "data/columns.py",
        "found[place, key] += times",
        "found[0, key] += times",
        "test_columns.py",
    ),
    SourceMutant(
        "labels of any length",
        "data/columns.py",
        "if len(key[1]) > max_length:",
        "if False:",
        "test_columns.py",
    ),
    SourceMutant(
        "divisions that somebody else has made",
        "curator/column_curator.py",
        "type(number) not in (Number, Date)",
        "not isinstance(number, Number)",
        "test_columns.py",
    ),
    SourceMutant(
        "every threshold one lower",
        "noise/histogram.py",
        "StabilityHistogram(scale, 1 + tail_quantile(scale, eta / moved))",
        "StabilityHistogram(scale, tail_quantile(scale, eta / moved))",
        "test_columns.py",
    ),
    SourceMutant("statistics that pickle", "sensitive.py", "def __reduce_ex__", "def _reduce", "test_sensitive.py"),
]


@contextmanager
def copied() -> Iterator[Path]:
    """The package and its tests, without anything compiled, so that no old one is run."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for name in ("pgmpy_dp", "tests", "benchmarks"):
            shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__", "results"))
        for name in ("pyproject.toml", "README.md"):
            shutil.copy(ROOT / name, copy / name)
        yield copy


def caught_by(mutant: SourceMutant, copy: Path) -> str:
    """The test that failed first, "" if none did; `copy` is as it was afterwards."""
    path, before = copy / mutant.path, (copy / mutant.path).read_text(encoding="utf-8")
    path.write_text(mutant.source(copy), encoding="utf-8")
    paths = [os.path.join("tests", "private", name) for name in mutant.tests.split()]
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", "-p", "no:cacheprovider", *paths]
    try:
        run = subprocess.run(  # one that hangs is noticed too
            command,
            cwd=copy,
            env={**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            timeout=600,
        )
    except subprocess.TimeoutExpired:
        return "it never ends"
    finally:
        path.write_text(before, encoding="utf-8")
    found = re.search(r"^FAILED tests/private/(\S+)", run.stdout, re.MULTILINE)
    if run.returncode not in (0, 1) or (run.returncode == 1 and found is None):
        raise RuntimeError(
            f"{mutant.what}: pytest ended with {run.returncode}\n{run.stdout[-2000:]}{run.stderr[-2000:]}"
        )
    return found[1] if found else ""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="mutants whose description contains this text")
    options = parser.parse_args(arguments)
    chosen = [mutant for mutant in SOURCE_MUTANTS if options.only in mutant.what]
    print("| mutant | file | the first test that failed |\n| --- | --- | --- |", flush=True)
    survived = 0
    with copied() as copy:
        for mutant in chosen:
            test = caught_by(mutant, copy)
            survived += not test
            print(f"| {mutant.what} | `{mutant.file}` | {f'`{test}`' if test else '**none**'} |", flush=True)
    print(f"\n{len(chosen)} mutants, {survived} not caught")
    return int(survived > 0)


if __name__ == "__main__":
    sys.exit(main())
