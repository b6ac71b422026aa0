"""Tutorials are scripts and notebooks at once, in seven steps but for the primer; `make tutorials` runs them."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TUTORIALS = sorted((ROOT / "tutorials").glob("*.py"))
PRIMERS = [path for path in TUTORIALS if path.name.startswith("00_")]
STEPS = ("declare", "preview", "spend", "fit", "query", "check", "save")


def cells_of(path: Path) -> list[tuple[str, str]]:
    """Kind, "markdown" or "code", and text of each cell; markdown without its comment signs."""
    _, *parts = re.split(r"^# %%(.*)\n", path.read_text(), flags=re.MULTILINE)
    cells = []
    for options, text in zip(parts[::2], parts[1::2], strict=True):
        if "[markdown]" in options:
            lines = text.rstrip("\n").split("\n")
            wrong = [line for line in lines if line != "#" and not line.startswith("# ")]
            assert not wrong, f"not a comment in a markdown cell of {path.name}: {wrong[:3]}"
            text = "\n".join(line[2:] for line in lines)
        cells.append(("markdown" if "[markdown]" in options else "code", text))
    return cells


def test_they_are_numbered_from_the_primer():
    assert all(re.fullmatch(r"\d\d_[a-z0-9_]+", path.stem) for path in TUTORIALS)
    numbers = [int(path.name[:2]) for path in TUTORIALS]
    assert numbers == sorted(set(numbers)) and numbers[0] == 0


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
class TestEach:
    def test_it_has_a_kernel_a_title_and_words_before_code(self, path):
        header = path.read_text().split("# %%")[0]
        assert header.startswith("# ---\n# jupyter:\n") and "name: python3" in header
        assert all(line.startswith("#") or not line for line in header.splitlines())
        (kind, text), *_ = cells_of(path)
        assert kind == "markdown" and re.match(r"# \w", text)

    def test_its_steps_are_in_order(self, path):
        if path in PRIMERS:
            pytest.skip("it fits nothing for its own sake")
        prose = "\n".join(text for kind, text in cells_of(path) if kind == "markdown")
        headings = re.findall(r"^## (\d)\. (\w+)", prose, flags=re.MULTILINE)
        assert [(int(number), word.lower()) for number, word in headings] == list(enumerate(STEPS, 1))
        assert len(re.findall(r"^# ", prose, flags=re.MULTILINE)) == 1

    def test_it_checks_and_saves(self, path):
        code = "\n".join(text for kind, text in cells_of(path) if kind == "code")
        assert len(re.findall(r"^ *assert ", code, flags=re.MULTILINE)) >= 2
        assert ".save(" in code or "to_csv(" in code or "savez" in code

    def test_it_runs_as_a_script_and_as_a_notebook(self, path):
        code = "\n".join(text for kind, text in cells_of(path) if kind == "code")
        compile(code, path.name, "exec")
        assert not re.search(r"^[%!]", code, flags=re.MULTILINE), "only notebooks know magics"
        assert "plt.show(" not in code and "matplotlib.use(" not in code, "a window blocks, a backend hides pictures"
        assert not re.search(r"/(home|tmp|work|root)/", path.read_text())

    def test_its_links_lead_somewhere(self, path):
        prose = "\n".join(text for kind, text in cells_of(path) if kind == "markdown")
        for target in re.findall(r"\]\(([^)#]+)", prose):
            if not target.startswith("http"):
                assert (path.parent / target).exists(), target

    def test_it_is_the_same_after_a_round_trip_through_a_notebook(self, path):
        jupytext = pytest.importorskip("jupytext")
        notebook = jupytext.read(path, fmt="py:percent")
        again = jupytext.reads(jupytext.writes(notebook, fmt="ipynb"), fmt="ipynb")
        assert [(c.cell_type, c.source) for c in again.cells] == [(c.cell_type, c.source) for c in notebook.cells]
        ours = [(kind, text.strip("\n")) for kind, text in cells_of(path)]
        assert [(c.cell_type, c.source) for c in notebook.cells] == ours


@pytest.mark.parametrize("path", PRIMERS, ids=lambda path: path.stem)
def test_exercises_have_answers_that_run(path):
    """Each in bold with a number, and below it a cell that unfolds."""
    prose, answers = path.read_text().split("# ## Exercises")[1], path.read_text().count('tags=["hide-cell"]')
    assert 3 <= len(re.findall(r"^# \*\*\d\.\*\*", prose, flags=re.MULTILINE)) == answers <= 5
