"""The list of broken lines is of lines that exist; what notices them runs in `make mutants`, and one of them here."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from benchmarks import source_mutants
from benchmarks.source_mutants import SOURCE_MUTANTS, SourceMutant, caught_by

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("mutant", SOURCE_MUTANTS, ids=lambda mutant: mutant.what)
def test_mutants_change_one_place_of_the_boundary(mutant):
    assert ast.dump(ast.parse(mutant.source())) != ast.dump(ast.parse((ROOT / mutant.path).read_text()))
    assert all((ROOT / "tests" / "private" / name).is_file() for name in mutant.tests.split())


def test_a_line_that_is_gone_is_named():
    with pytest.raises(ValueError, match=r"a line: pgmpy_dp/private/atomic_file.py has 0 times 'nothing like it'"):
        SourceMutant("a line", "atomic_file.py", "nothing like it", "", "private/test_ledger.py").source()


@pytest.mark.slow
def test_a_mutant_is_noticed_and_a_harmless_change_is_not(tmp_path):
    (mutant,) = [mutant for mutant in SOURCE_MUTANTS if mutant.what == "a threshold without its last vote"]
    with source_mutants.copied() as copy:
        assert caught_by(mutant, copy).startswith("test_distance_test.py::")
        same = SourceMutant("nothing", mutant.file, mutant.old, mutant.old, mutant.tests)
        assert caught_by(same, copy) == ""
