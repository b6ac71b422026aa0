"""The pages on adding an operator, a method and a subject: what they say is done in a copy of the repository.

There the files are linted and type-checked, and pass the generic tests that find them.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.source_mutants import copied
from tests.code_lines import code_lines
from tests.operator_table import COMMAND

ROOT = Path(__file__).parents[1]
STEP = re.compile(
    r"^`([\w/]+\.(?:py|rst|md))`, (?:a new file|after (`+)([^\n]+?)\2):\n\n```(?:py|text)\n(.*?)```$",
    re.MULTILINE | re.DOTALL,
)
# New files, lines of code in them, other files, lines in those: what each page costs, and says that it does.
PAGES = {"adding-an-operator": (2, 5), "adding-a-method": (2, 4), "adding-a-subject": (5, 1)}
GENERIC = (
    *("estimators/test_every_estimator.py", "estimators/test_conventions.py", "estimators/test_bad_input.py"),
    *("estimators/test_silence.py", "estimators/test_interruptions.py", "estimators/test_crashes.py"),
    *("estimators/test_fit_properties.py", "estimators/test_privacy_words.py"),
    *("learning/test_options.py", "test_docstrings.py", "test_imports.py", "test_seeded_fits.py"),
)
OF_OPERATORS = ("private/test_units_inside.py", "private/test_operators.py", "auditing/test_scales.py")
MUTANTS = ("auditing/test_replay_mutants.py",)
OWN = ("tables/test_private_naive_bayes.py", "averages/test_private_averages.py")
NAMES = "inside or every_operator or TestWhatLies or NaiveBayes or naive_bayes or Averages or averages or adding"
EVERY = "every_estimator_has or every_estimator_is or outside_the_boundary or who_learns or by_tag or every_public_name"


def steps(page: str) -> list[tuple[str, str, str]]:
    """File, the line after which to go on ("" for a new file), and the text."""
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    found = [(name, anchor, code) for name, _, anchor, code in STEP.findall(text)]
    assert len(found) == text.count("```\n"), page
    return found


@pytest.fixture(scope="module")
def copy():
    with copied() as folder:
        for name, anchor, text in [step for page in PAGES for step in steps(page)]:
            path = folder / name
            if not anchor:
                assert not path.exists()
                path.parent.mkdir(exist_ok=True)
                path.write_text(text, encoding="utf-8")
                continue
            lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
            at = [k for k, line in enumerate(lines, 1) if line.strip().startswith(anchor)]
            assert len(at) == 1, (name, anchor, at)
            path.write_text("".join([*lines[: at[0]], text, *lines[at[0] :]]), encoding="utf-8")
        assert COMMAND in (ROOT / "docs" / "adding-an-operator.md").read_text(encoding="utf-8")
        run(folder, *COMMAND.split()[2:])
        yield folder


def changed(suffix: str = ".py") -> list[str]:
    return sorted({name for page in PAGES for name, _, _ in steps(page) if name.endswith(suffix)})


@pytest.mark.parametrize("page", PAGES)
def test_a_page_says_what_it_costs(page):
    new = [(name, text) for name, anchor, text in steps(page) if not anchor]
    lines = [(name, text.count("\n")) for name, anchor, text in steps(page) if anchor]
    others = len({name for name, _ in lines})
    assert (len(new), others) == PAGES[page]
    code = sum(code_lines(text) for name, text in new if name.endswith(".py"))
    said = f"New files: {len(new)} (lines of code: {code}). Other files: {others} (lines: {sum(n for _, n in lines)})."
    told = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    assert said in told, f"docs/{page}.md should say: {said}"
    assert len(told.split()) <= 600


def test_files_are_as_ruff_wants_them(copy):
    run(copy, "ruff", "check", *changed())
    run(copy, "ruff", "format", "--check", *changed())


@pytest.mark.slow
def test_files_have_types(copy, tmp_path):
    """`make lint` leaves a cache, with which this takes seconds; a copy of it, as two that write one break it."""
    cache = Path(os.environ.get("MYPY_CACHE_DIR", ROOT / ".mypy_cache"))
    if cache.exists():
        shutil.copytree(cache, tmp_path / "cache")
    run(copy, "mypy", "--cache-dir", str(tmp_path / "cache"), *(name for name in changed() if name.startswith("pgmpy")))


@pytest.mark.slow
def test_every_generic_test_passes(copy):
    tests = [f"tests/{name}" for name in (*GENERIC, *OF_OPERATORS, *OWN)]
    modules = [name for name in changed() if name.startswith("pgmpy_dp/") and "__init__" not in name]
    said = run(copy, "pytest", "-q", "-p", "no:cacheprovider", "-k", f"{NAMES} or {EVERY}", *tests, *modules)
    found = re.search(r"\b(\d+) passed", said)
    assert found and int(found[1]) >= 100, said


@pytest.mark.slow
def test_replay_notices_the_operator_s_mutants(copy):
    """Half the norms, three times the statistic, twice the share."""
    said = run(copy, "pytest", "-q", "-p", "no:cacheprovider", "-k", "inside", *(f"tests/{name}" for name in MUTANTS))
    found = re.search(r"\b(\d+) passed", said)
    assert found and int(found[1]) >= 3, said


def run(folder: Path, *command: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    made = subprocess.run(
        [sys.executable, "-m", *command], cwd=folder, env=environment, capture_output=True, text=True, timeout=600
    )
    assert made.returncode == 0, made.stdout[-6000:] + made.stderr[-2000:]
    return made.stdout
