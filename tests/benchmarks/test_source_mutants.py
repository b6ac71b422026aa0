"""The list of broken lines is of lines that exist; what notices them runs in `make mutants`, and one of them here."""

from __future__ import annotations

import ast
import dataclasses
import functools
from pathlib import Path

import pytest

from benchmarks import source_mutants
from benchmarks.source_mutants import SOURCE_MUTANTS, SourceMutant, caught_by
from tests.code_lines import parsed

ROOT = Path(__file__).parents[2]


@functools.cache
def dumped(path: Path) -> str:
    """Of files that many mutants are of."""
    return ast.dump(parsed(path))


@pytest.mark.parametrize("mutant", SOURCE_MUTANTS, ids=lambda mutant: mutant.what)
def test_mutants_change_one_place_of_the_package(mutant):
    path, changed = mutant.found()
    assert ast.dump(ast.parse(changed)) != dumped(ROOT / path)
    assert mutant.test_paths()


def test_each_has_a_name_of_its_own():
    assert len({mutant.what for mutant in SOURCE_MUTANTS}) == len(SOURCE_MUTANTS) >= 87


class TestPlaces:
    """A place is found by name and content, wherever it lies and however it is laid out."""

    SOURCE = "LIMIT = 3\n\n\nclass Room:\n    def walk(self, n):\n        return self.far(n, 2) + n\n"

    def package(self, root, **files):
        for name, text in files.items():
            path = root / "pgmpy_dp" / name.replace("__", "/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.with_suffix(".py").write_text(text, encoding="utf-8")
        return root

    def mutant(self, **changes):
        given = {"what": "a line", "symbol": "room:Room.walk", "old": "self.far(n, 2)", "new": "n", "tests": ""}
        return SourceMutant(**{**given, **changes})

    @pytest.mark.parametrize("name", ["room", "private__deep__room", "another__name"])
    @pytest.mark.parametrize(
        "laid_out", ["self.far(n, 2)", "self.far(\n            n,  # of them\n            2\n        )"]
    )
    def test_a_line_that_moves(self, name, laid_out, tmp_path):
        text = self.SOURCE.replace("self.far(n, 2)", laid_out)
        root = self.package(tmp_path, **{name: text, "other": "def walk(n):\n    return self.far(n, 2)\n"})
        path, changed = self.mutant().found(root)
        assert path == Path("pgmpy_dp", name.replace("__", "/") + ".py")
        assert changed == text.replace(laid_out, "n")

    def test_a_constant_and_statements(self, tmp_path):
        root = self.package(tmp_path, room=self.SOURCE)
        assert self.mutant(symbol="room:LIMIT", old="3", new="4").found(root)[1].startswith("LIMIT = 4\n")
        changed = self.mutant(old="return self.far(n, 2) + n", new="if n:\n    n += 1\nreturn n").found(root)[1]
        assert changed.endswith("        if n:\n            n += 1\n        return n\n")

    @pytest.mark.parametrize(
        ("changes", "times"), [({"old": "nothing"}, 0), ({"symbol": "room:Room.run"}, 0), ({"old": "n"}, 3)]
    )
    def test_a_line_that_is_gone_or_there_twice_is_named(self, changes, times, tmp_path):
        root = self.package(tmp_path, room=self.SOURCE)
        with pytest.raises(ValueError, match=rf"a line: room:Room\.\w+ has {times} times .* mend the list"):
            self.mutant(**changes).found(root)

    def test_tests_that_are_gone_are_named(self):
        with pytest.raises(ValueError, match=r"a line: there is no tests/\*\*/test_nothing.py; mend the list"):
            self.mutant(tests="test_nothing.py").test_paths()


@pytest.mark.slow
def test_a_mutant_is_noticed_and_a_harmless_change_is_not():
    (mutant,) = [mutant for mutant in SOURCE_MUTANTS if mutant.what == "a threshold without its last vote"]
    with source_mutants.copied() as copy:
        assert caught_by(mutant, copy).startswith("tests/private/test_distance_test.py::")
        assert caught_by(dataclasses.replace(mutant, new=mutant.old), copy) == ""
