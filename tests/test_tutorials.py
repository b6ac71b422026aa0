"""Tutorials are scripts and notebooks at once: seven steps but for the primer, exercises, mistakes of others."""

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TUTORIALS = sorted((ROOT / "tutorials").glob("*.py"))
PRIMERS = [path for path in TUTORIALS if path.name.startswith("00_")]
DOORS = {
    "pgmpy_dp",
    *(f"pgmpy_dp.{name}" for name in ("auditing", "estimators", "linked", "metrics", "plotting", "theory")),
    "pgmpy_dp.mixtures.published.pipeline_study",  # a study that is not private: no front door offers it
}
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


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
class TestWhatTheyTeach:
    def test_the_first_cell_says_what_for_how_long_and_for_whom(self, path):
        (_, first), *_ = cells_of(path)
        words = " ".join(first.split())
        assert re.search(r"\*\*Afterwards you can\*\* .*\*\*Time:\*\* \d+ minutes.*\*\*You need\*\* ", words)
        code = "\n".join(text for kind, text in cells_of(path) if kind == "code")
        for module, extra in (("matplotlib", "plot"), ("torch", "torch"), ("duckdb", "duckdb")):
            if re.search(rf"^(?:import|from) {module}\b", code, flags=re.MULTILINE):
                assert re.search(rf"pip install '\.\[(\w+,)*{extra}(,\w+)*\]'", words), extra

    def test_exercises_have_answers_that_run(self, path):
        """Each in bold with a number, and below it a cell that unfolds."""
        prose, answers = path.read_text().split("# ## Exercises")[1], path.read_text().count('tags=["hide-cell"]')
        numbers = [int(number) for number in re.findall(r"^# \*\*(\d)\.\*\*", prose, flags=re.MULTILINE)]
        assert 3 <= answers <= 5 and numbers == list(range(1, answers + 1))

    def test_it_ends_with_true_mistakes(self, path):
        prose = "\n".join(text for kind, text in cells_of(path) if kind == "markdown")
        _, *sections = re.split(r"^## ", prose, flags=re.MULTILINE)
        assert sections[-2].startswith("Exercises") and sections[-1].startswith("What went wrong for others")
        assert 2 <= len(re.findall(r"^\* ", sections[-1], flags=re.MULTILINE)) <= 4

    def test_it_takes_public_names_only(self, path):
        code = "\n".join(text for kind, text in cells_of(path) if kind == "code")
        assert set(re.findall(r"^(?:import|from) (pgmpy_dp[\w.]*)", code, flags=re.MULTILINE)) <= DOORS


class TestPages:
    """What a reader of a code host sees: made by `make tutorials`, and to be committed with the script."""

    @pytest.fixture
    def written(self, monkeypatch):
        monkeypatch.syspath_prepend(str(ROOT / "docs" / "_ext"))
        return importlib.import_module("written_pages")

    @pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
    def test_a_page_says_what_its_script_says(self, path, written):
        cells = written.cells_of(path.read_text())
        nothing = [""] * sum("[markdown]" not in options for options, _ in cells)
        page = (written.PAGES / f"{path.stem}.md").read_text()
        assert written.without_outputs(page) == written.page(path.stem, cells, nothing), "run `make tutorials`"
        assert page.count("<!-- output -->") >= 3, "a page without what its tutorial printed"

    @pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
    def test_its_links_and_pictures_are_there(self, path, written):
        page = (written.PAGES / f"{path.stem}.md").read_text()
        targets = re.findall(r"\]\(([^)#\s]+)", re.sub(r"^```.*?^```", "", page, flags=re.MULTILINE | re.DOTALL))
        missing = [one for one in targets if not one.startswith("http") and not (written.PAGES / one).exists()]
        assert not missing
        drawn = {one.name for one in written.PAGES.glob(f"{path.stem}-*.png")}
        assert drawn == {one for one in targets if one.endswith(".png") and "/" not in one}

    def test_each_page_has_a_script(self, written):
        assert {page.stem for page in written.PAGES.glob("*.md")} == {path.stem for path in TUTORIALS}

    def test_outputs_are_found_again(self, written):
        cells = [
            ("[markdown]", "# T\n\n[a](../data/a.csv), [b](01_b.py), [c](https://c.org)"),
            ('tags=["hide-cell"]', "f()"),
        ]
        shown = written.page("t", cells, ["```text\n1\n```\n"])
        assert "](../../data/a.csv)" in shown and "](01_b.md)" in shown and "](https://c.org)" in shown
        assert "<summary>Answer</summary>" in shown and "```text\n1\n```" in shown
        assert written.without_outputs(shown) == written.page("t", cells, [""]) != shown
