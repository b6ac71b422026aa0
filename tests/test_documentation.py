"""What the documentation shows runs, and what it points to exists."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
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


def commands(page: Path) -> str:
    """All command lines of a page, in order."""
    return "\n".join(re.findall(r"```shell\n(.*?)```", page.read_text(), flags=re.DOTALL))


def made_up_records(n: int = 20_000) -> pd.DataFrame:
    """The people in the records.csv of docs/command-line.md: more smokers are young, more ill are old or smoke."""
    rng = np.random.default_rng(7)
    age = rng.integers(18, 95, n)
    smoker = rng.random(n) < np.where(age < 45, 0.35, 0.15)
    ill = rng.random(n) < 1 / (1 + np.exp(-(age - 65 + 8 * smoker) / 10))
    return pd.DataFrame({
        "patient": [f"p{k:05d}" for k in range(n)],
        "age": age,
        "sex": rng.choice(["female", "male"], n),
        "education": rng.choice(["primary", "secondary", "tertiary"], n, p=[0.2, 0.5, 0.3]),
        "smoker": np.where(smoker, "yes", "no"),
        "hypertension": np.where(ill, "yes", "no"),
    })  # fmt: skip


@pytest.mark.parametrize("page", [p for p in PAGES if "pgmpy-dp" in commands(p)], ids=lambda page: page.name)
def test_the_commands_of_a_page_run(page, tmp_path):
    made_up_records().to_csv(tmp_path / "records.csv", index=False)
    # The program as it is here, also where another version is installed.
    program = tmp_path / "bin" / "pgmpy-dp"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m pgmpy_dp "$@"\n')
    program.chmod(0o755)
    paths = {"PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", commands(page)],
        cwd=tmp_path,
        env={**os.environ, **paths},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "DP under add_remove" in done.stdout
    assert (tmp_path / "model.npz").exists()


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
