"""The page on adding an operator: in a copy of the repository its files are made, linted and tested."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.source_mutants import copied

PAGE = Path(__file__).parents[1] / "docs" / "adding-an-operator.md"
WHERE = r"^`([\w/]+\.py)`, (?:a new file|after `([^`\n]+)`):\n\n"
STEP = re.compile(WHERE + r"```(?:py|text)\n(.*?)```$", re.MULTILINE | re.DOTALL)
TESTS = ("private/test_units_inside.py", "private/test_operators.py", "auditing/test_scales_of_operators.py")
MUTANTS = ("auditing/test_replay_mutants.py",)


@pytest.mark.parametrize(("tests", "passed"), [(TESTS, 15), pytest.param(MUTANTS, 4, marks=pytest.mark.slow)])
def test_the_page_adds_an_operator_that_passes_every_generic_test(tests, passed):
    steps = STEP.findall(PAGE.read_text(encoding="utf-8"))
    assert len(steps) == PAGE.read_text(encoding="utf-8").count("```\n") == 11
    with copied() as copy:
        for name, anchor, text in steps:
            path = copy / name
            if anchor:
                before, found, after = path.read_text(encoding="utf-8").partition(f"{anchor}\n")
                assert found and anchor not in after, (name, anchor)
                path.write_text(before + found + text + after, encoding="utf-8")
            else:
                assert not path.exists()
                path.write_text(text, encoding="utf-8")
        changed = sorted({name for name, _, _ in steps})
        run(copy, "ruff", "check", *changed)
        run(copy, "ruff", "format", "--check", *changed)
        which = ("-k", "inside or every_operator or TestWhatLies", *(f"tests/{name}" for name in tests))
        said = run(copy, "pytest", "-q", "-p", "no:cacheprovider", *which)
        found = re.search(r"\b(\d+) passed", said)
        assert found and int(found[1]) >= passed, said


def run(copy: Path, *command: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(copy)}
    made = subprocess.run(
        [sys.executable, "-m", *command], cwd=copy, env=environment, capture_output=True, text=True, timeout=600
    )
    assert made.returncode == 0, made.stdout[-4000:] + made.stderr[-2000:]
    return made.stdout
