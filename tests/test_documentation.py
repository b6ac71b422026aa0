"""What the documentation shows runs, and what it points to exists."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page: Path) -> str:
    """All Python of a page, in order: later blocks use names of earlier ones."""
    return "\n".join(re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL))


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p)], ids=lambda page: page.name)
def test_the_code_of_a_page_runs(page, tmp_path, monkeypatch, capsys):
    (tmp_path / "data").symlink_to(ROOT / "data")
    monkeypatch.chdir(tmp_path)
    exec(compile(blocks(page), str(page), "exec"), {"__name__": "page"})
    assert "DP under " in capsys.readouterr().out
    assert (tmp_path / "model.npz").exists() or "model.npz" not in blocks(page)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    links = re.findall(r"\]\(([^)\s]+)\)", page.read_text())
    local = [link.split("#")[0] for link in links if not link.startswith(("http", "#"))]
    assert [link for link in local if not (page.parent / link).exists()] == []


def test_every_page_can_be_reached_from_the_index():
    index = (ROOT / "docs" / "index.md").read_text()
    assert [page.name for page in PAGES if page.parent.name == "docs" and page.name not in {"index.md"} and
            f"({page.name})" not in index] == []  # fmt: skip


def test_shipped_data_name_their_source():
    sources = (ROOT / "data" / "SOURCES.md").read_text()
    files = [path.name for path in (ROOT / "data").iterdir() if path.name != "SOURCES.md"]
    assert files
    assert [name for name in files if f"`{name}`" not in sources] == []
