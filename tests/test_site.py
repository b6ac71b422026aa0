"""Links of pages become links of the site, and docstrings survive reStructuredText."""

import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture
def repository(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "_ext"))
    return importlib.import_module("repository")


@pytest.fixture
def modules(repository):
    return importlib.import_module("modules")


@pytest.mark.parametrize(
    ("link", "address"),
    [
        ("quickstart.md", "/quickstart.md"),
        ("block-models.md#how-accurate", "/block-models.md#how-accurate"),
        ("../CHANGELOG.md", "/repository/CHANGELOG.md"),
        ("../benchmarks/results/full.md", "/repository/benchmarks/results/full.md"),
        ("../benchmarks/results", "/repository/benchmarks/results/index.md"),
        ("../benchmarks/mixtures.py", "/repository/benchmarks/mixtures.py.md"),
        ("../tutorials/01_first.py", "/tutorials/01_first.ipynb"),
        ("../pgmpy_dp/learning/noisy_tables.py", "/internals/pgmpy_dp.learning.noisy_tables.rst"),
        ("../pgmpy_dp/theory/__init__.py", "/internals/pgmpy_dp.theory.rst"),
        ("../benchmarks/results/mixtures.png", "/repository/benchmarks/results/mixtures.png"),
        ("https://pgmpy.org", "https://pgmpy.org"),
        ("#below", "#below"),
    ],
)
def test_links_of_pages_become_addresses(repository, link, address):
    assert repository.with_addresses(f"see [it]({link}).", Path("docs/page.md")) == f"see [it]({address})."


def test_links_are_relative_to_their_file(repository):
    found = repository.with_addresses("[proof](../curator/gradient.md)", Path("pgmpy_dp/private/data/page.md"))
    assert found == "[proof](/repository/pgmpy_dp/private/curator/gradient.md)"


def test_code_is_left_alone(repository):
    text = "```python\nf[0](x.md)\n```\n"
    assert repository.with_addresses(text, Path("docs/page.md")) == text
    assert repository.local_links(text) == []


def test_all_that_is_linked_has_a_page(repository):
    found = repository.reachable()
    assert {Path("CHANGELOG.md"), Path("pgmpy_dp/private/README.md"), Path("benchmarks/results")} <= set(found)
    for target in found:
        if (ROOT / target).suffix == ".md":
            docname = repository.address(target)[1:].removesuffix(".md")
            assert repository.source_of(docname) == target
        assert len(repository.page_of(target)) > 20


def test_every_module_has_a_page_without_public_names(modules):
    public = modules.public_objects()
    names = modules.module_names()
    assert "pgmpy_dp.private.noise.samplers" in names
    assert "PrivateTable" in modules.page("pgmpy_dp.private.data.table", public)
    assert "Budget" in modules.elsewhere("pgmpy_dp.private.budget", public)
    assert modules.elsewhere("pgmpy_dp.private.noise.additive", public) == []


@pytest.mark.parametrize(
    ("line", "escaped"),
    [
        ("at most |x|_1 + theta_ij", r"at most \|x\|_1 + theta_ij"),
        ("the estimate model_ of it", r"the estimate model\_ of it"),
        ("code `model_` and ``|C|``", "code `model_` and ``|C|``"),
        (">>> model_ | other", ">>> model_ | other"),
        ("see docs/levels.md, ``docs/block-models.md``", "see :doc:`/levels`, :doc:`/block-models`"),
    ],
)
def test_signs_are_taken_literally_and_files_of_pages_are_links(modules, line, escaped):
    lines = [line]
    modules.escape(None, "function", "f", None, None, lines)
    assert lines == [escaped]


def test_literal_blocks_and_references_are_left_alone(modules):
    lines = ["The density is::", "", "    |e_+|", "", "of |e|, see [1]_.", "", ".. [1] Somebody (2020)."]
    modules.escape(None, "function", "f", None, None, lines)
    assert lines[2] == "    |e_+|"
    assert lines[4] == r"of \|e\|, see [1]_."
    lines = ["see [1]_"]
    modules.escape(None, "function", "f", None, None, lines)
    assert lines == ["see [1]"]
