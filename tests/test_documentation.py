"""What the documentation shows runs, and what it points to exists."""

import html
import importlib
import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from pgmpy_dp import Schema
from pgmpy_dp.cli import app
from pgmpy_dp.linked import made_up_families
from tests.code_lines import code_lines, in_folder

ROOT = Path(__file__).parents[1]
PATTERNS = ("*.md", "docs/*.md", "pgmpy_dp/**/*.md", "benchmarks/*.md", "data/*.md", "tutorials/*.md", "tests/*.md")
PAGES = sorted(page for pattern in PATTERNS for page in ROOT.glob(pattern))
RESULTS = sorted((ROOT / "benchmarks" / "results").glob("*.md"))
TARGETS = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(page: Path) -> str:
    """All Python of a page, in order: later blocks use names of earlier ones."""
    return "\n".join(re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL))


def commands(page: Path) -> str:
    """What a page shows as code."""
    return "\n".join(re.findall(r"```.*?```|`[^`\n]+`", page.read_text(), flags=re.DOTALL))


def links(page: Path) -> list[str]:
    """Targets inside the repository, with their anchors."""
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    return [link for link in re.findall(r"\]\(([^)\s]+)\)", text) if not re.match(r"[a-z]+:", link)]


def anchors(page: Path) -> set[str]:
    """Those of its headings, as code hosts and the site make them."""
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    headings = [
        re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", found) for found in re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE)
    ]
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.fixture(scope="module")
def fewer_records(tmp_path_factory) -> Path:
    """The folder data/ of a clone, but for fewer records of Adult and of visits."""
    folder = tmp_path_factory.mktemp("data")
    for path in (ROOT / "data").iterdir():
        if path.name in ("adult_disc.csv.gz", "msnbc_50k.csv.gz"):
            pd.read_csv(path, dtype=str, keep_default_na=False, nrows=5_000).to_csv(folder / path.name, index=False)
        else:
            (folder / path.name).symlink_to(path)
    return folder


@pytest.fixture
def few(tmp_path, fewer_records) -> Path:
    """A folder with data/."""
    (tmp_path / "data").symlink_to(fewer_records)
    return tmp_path


def test_all_kinds_of_pages_are_looked_at():
    assert {"README.md", "CHANGELOG.md", "docs/index.md", "docs/choosing.md", "pgmpy_dp/private/README.md"} <= {
        name(page) for page in PAGES
    }


# Of these what README has is in `make test`; CI runs them beside the tutorials.
LONG = {"docs/auditing.md", "docs/command-line.md", "docs/index.md", "docs/linked.md"}


def with_marks(pages: list[Path]) -> list:
    return [pytest.param(page, marks=pytest.mark.slow) if name(page) in LONG else page for page in pages]


@pytest.mark.parametrize("page", with_marks([p for p in PAGES if blocks(p)]), ids=name)
def test_the_code_of_a_page_runs(page, few, monkeypatch, capsys):
    """On the first 5,000 records of Adult and of visits; tests/test_quickstart.py learns from all of Adult."""
    monkeypatch.chdir(few)
    exec(compile(blocks(page), str(page), "exec"), {"__name__": "page"})
    assert re.search(r"DP( \+ \S+)?\)? under ", capsys.readouterr().out) or ".fit(" not in blocks(page)
    assert (few / "model.npz").exists() or "model.npz" not in blocks(page)


@pytest.mark.parametrize("page", [p for p in PAGES if '"data/' in blocks(p)], ids=name)
def test_code_that_reads_the_clone_s_data_says_so(page):
    """Before the first path: a relative one works in one folder only."""
    before = blocks(page).partition('"data/')[0]
    assert "# Run it in the folder of a clone" in before


@pytest.mark.parametrize("page", PAGES + RESULTS, ids=name)
def test_tables_have_a_head(page):
    """A blank line within a table makes text of the rows below it."""
    lines = ["", *re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL).splitlines(), ""]
    starts = [k for k, line in enumerate(lines) if line.startswith("| ") and not lines[k - 1].startswith("| ")]
    assert [lines[k] for k in starts if not re.fullmatch(r"\|( *:?-+:? *\|)+", lines[k + 1].strip())] == []


def program_lines(page: Path) -> str:
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


@pytest.fixture(scope="module")
def records(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("made-up") / "records.csv"
    made_up_records().to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def survey(tmp_path_factory) -> Path:
    """The messy file, made as in its tutorial."""
    folder = tmp_path_factory.mktemp("messy")
    (folder / "data").symlink_to(ROOT / "data")
    script = ROOT / "tutorials" / "12_from_a_messy_file_to_synthetic_numbers.py"
    making, found, _ = script.read_text().partition("# ## 1. Declare")
    assert found
    exec(compile(making, str(script), "exec"), {"__file__": str(folder / "page.py")})
    return folder / "build" / "messy" / "survey.csv"


@pytest.fixture(scope="module")
def families(tmp_path_factory) -> Path:
    """The files of docs/linked.md and README.md: households, persons and their schema, visits and theirs, patients."""
    folder = tmp_path_factory.mktemp("families")
    households, persons, schema = made_up_families(2_000, most=3, random_state=0)
    households.to_csv(folder / "households.csv", index=False)
    persons.to_csv(folder / "persons.csv", index=False)
    schema.to_json(folder / "linked.json")
    visits = persons[["household", "speaks"]].set_axis(["patient", "speaks"], axis=1)
    visits = visits.assign(day=persons["age"] * 3, diagnosis=persons["status"])
    visits.to_csv(folder / "visits.csv", index=False)
    patients = pd.DataFrame(
        {"patient": households["household"], "sex": households["tenure"].map({"owns": "f", "rents": "m"})}
    )
    patients.to_csv(folder / "patients.csv", index=False)
    Schema({"speaks": ["first", "second"]}).to_json(folder / "visits.json")
    return folder


@pytest.mark.parametrize("attacks", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("page", with_marks([p for p in PAGES if "pgmpy-dp" in program_lines(p)]), ids=name)
def test_the_commands_of_a_page_run(page, attacks, records, survey, families, tmp_path, monkeypatch):
    """One after the other in this process, which imports once; tests/test_cli.py has processes of their own.

    Audits are listed only: tests/auditing/test_all_cases.py makes the same ones. With `attacks` they are made too, and
    break a claim that holds with probability at most 1e-6.
    """
    (tmp_path / "records.csv").symlink_to(records)
    (tmp_path / "survey.csv").symlink_to(survey)
    for path in families.iterdir():
        (tmp_path / path.name).symlink_to(path)
    monkeypatch.chdir(tmp_path)
    printed = ""
    for line in program_lines(page).replace("\\\n", " ").splitlines():
        if words := shlex.split(line, comments=True):
            program, *arguments = words
            assert program == "pgmpy-dp", line
            if arguments[0] == "audit":
                arguments += ["--confidence", "0.999999"] if attacks else ["--list"]
            done = CliRunner().invoke(app, arguments)
            assert done.exit_code == 0, done.output + repr(done.exception)
            printed += done.stdout
    fits = "pgmpy-dp fit" in program_lines(page)
    assert (" under add_remove" in printed) == fits == (tmp_path / "model.npz").exists()


@pytest.mark.parametrize("page", PAGES + RESULTS, ids=name)
def test_links_lead_somewhere(page):
    assert [link for link in links(page) if not (page.parent / link.partition("#")[0]).exists()] == []


@pytest.mark.parametrize("page", PAGES + RESULTS, ids=name)
def test_anchors_are_headings(page):
    missing = []
    for link in links(page):
        target, mark, anchor = link.partition("#")
        path = page.parent / target if target else page
        if mark and path.suffix == ".md" and anchor not in anchors(path):
            missing.append(link)
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_commands_exist(page):
    wanted = re.findall(r"\bmake ([a-z][a-z-]*)", commands(page))
    assert set(wanted) <= TARGETS
    programs = re.findall(r"python -m (benchmarks(?:\.\w+)+)", commands(page))
    assert [program for program in programs if not (ROOT / program.replace(".", "/")).with_suffix(".py").exists()] == []


def test_every_page_can_be_reached_from_the_index():
    """By a link, which code hosts show too, and in the contents of the site."""
    text = (ROOT / "docs" / "index.md").read_text()
    contents = {
        line for tree in re.findall(r"```{toctree}\n(.*?)```", text, flags=re.DOTALL) for line in tree.split("\n")
    }
    pages = [page for page in PAGES if page.parent == ROOT / "docs" and page.name != "index.md"]
    assert [page.name for page in pages if f"({page.name})" not in text] == []
    assert [page.stem for page in pages if page.stem not in contents] == []


def test_no_merge_was_left_half_done():
    """No tool that reads the pages stumbles over them: one stood in the middle of a page for a session."""
    pages = [*(ROOT / "docs").glob("*.md"), *ROOT.glob("*.md"), *(ROOT / "benchmarks" / "results").glob("*.md")]
    marked = [page.name for page in pages if re.search(r"^(<{7}|>{7}) ", page.read_text(), flags=re.MULTILINE)]
    assert len(pages) > 100 and marked == []


def test_pages_are_short():
    """A page answers one question; tables come from results or code, proofs lie beside the code."""
    words = {page.name: len(page.read_text().split()) for page in (ROOT / "docs").glob("*.md")}
    assert {page: count for page, count in words.items() if count > 2_000} == {}
    assert sum(words.values()) <= 47_820  # 42,000 for all that version 0.3 did; pages that came since are new subjects


NUMBER = re.compile(r"-?(?:\d[\d,]*(?:\.\d+)?|\.\d+)(?:e[+-]\d+)?")
# Pages of results with rows that are no measurement of ours, or made by hand from others.
NOT_OURS = {"structure-adult-others.md"}
# Tables that say something of their own about the results that are cited before them, by how they begin.
DERIVED = ("| budget | s | settings |", "| n, d, gamma | epsilon | RR, told |")


def numbers(text: str) -> list[float]:
    return [float(found.replace(",", "")) for found in NUMBER.findall(text)]


def quoted_tables(page: Path) -> list[tuple[list[Path], list[list[str]]]]:
    """Tables of a page whose introduction, back to the heading or table before, links to results: (results, rows)."""
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    found = []
    for before, table in re.findall(r"((?:^(?!\|).*\n)*)((?:^\|.*\n)+)", text, flags=re.MULTILINE):
        introduction = re.split(r"^#+ ", before, flags=re.MULTILINE)[-1]
        cited = re.findall(r"\]\(((?:\.\./)?benchmarks/results/[^)#]+\.md)", introduction)
        if cited and not table.startswith(DERIVED):
            rows = [line.strip("|").split("|") for line in table.splitlines()[2:]]
            found.append(([page.parent / link for link in cited], rows))
    return found


def test_numbers_of_a_page_are_in_the_results_that_it_cites():
    """In tables after a link to results, every cell of numbers alone has numbers of these results, or rounds them."""
    checked, invented = dict.fromkeys(map(name, PAGES), 0), []
    for page in PAGES:
        for cited, rows in quoted_tables(page):
            known = np.array([number for path in cited for number in numbers(path.read_text())])
            for cell in (cell.replace("*", "").strip() for row in rows for cell in row):
                if not re.fullmatch(r"[\s\d,./-]*\d", cell):
                    continue
                checked[name(page)] += 1
                # "500, 200, 0.8" and "0.05 / 0.99" hold several numbers, "100,000" is one.
                for part in re.split(r", | / |/", cell):
                    half = 0.5001 * 10.0 ** -len(part.strip().partition(".")[2])
                    invented += [(name(page), cell) for one in numbers(part) if not (abs(known - one) <= half).any()]
    assert checked["docs/choosing.md"] > 30 and sum(checked.values()) > 200
    assert invented == []


def test_the_readme_s_comparison_is_that_of_the_results():
    """What is bold in an item with a link to results stands there."""
    page = ROOT / "README.md"
    rows = re.findall(r"^\* (.*\*\*.*)$", page.read_text(), flags=re.MULTILINE)
    assert len(rows) == 4
    for row in rows:
        (link,) = re.findall(r"\((benchmarks/results/[^)]+)\)", row)
        said = [one for bold in re.findall(r"\*\*(.+?)\*\*", row) for one in numbers(bold)]
        assert said and set(said) <= set(numbers((ROOT / link).read_text())), row


def test_results_are_tables_with_their_commands():
    """Single rows and pictures are made by the commands; two files have the rows of a table, one each, to add to it."""
    kept = {path.name for path in (ROOT / "benchmarks" / "results").iterdir() if path.suffix != ".md"}
    assert kept == {"audits.jsonl", "compare.json"}
    for path in RESULTS:
        programs = re.findall(r"python -m (benchmarks(?:\.\w+)+)", path.read_text())
        assert programs or path.name in NOT_OURS, path.name
        assert all((ROOT / program.replace(".", "/")).with_suffix(".py").exists() for program in programs)


def test_pictures_of_benchmarks_are_drawn_from_the_results(tmp_path, monkeypatch, capsys):
    """Each picture can be drawn from the results as they are, is in the repository, and is shown."""
    pytest.importorskip("matplotlib")
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    pictures = importlib.import_module("pictures")
    monkeypatch.setattr(pictures, "DOCS", ROOT / "docs")
    kept = ROOT / "docs" / "pictures"
    assert {path.stem for path in kept.iterdir()} == set(pictures.PICTURES)
    page = (ROOT / "docs" / "benchmarks.md").read_text()
    for stem, draw in pictures.PICTURES.items():
        assert f"(pictures/{stem}.svg)" in page
        figure = draw()
        shown = {text for ax in figure.axes for text in [ax.get_title(), ax.get_ylabel()]} - {""}
        shown |= {text.get_text() for legend in figure.legends for text in legend.get_texts()}
        svg = html.unescape((kept / f"{stem}.svg").read_text())
        assert {line for text in shown for line in text.split("\n") if line not in svg} == set()
        drawn = [len(one.get_xdata()) for ax in figure.axes for one in ax.get_lines()]
        assert drawn and min(drawn) > 1
        pictures.plt.close(figure)


def test_the_size_of_the_boundary_is_what_its_readme_says():
    """Code lines to 3 %, also of its parts; `python -m tests.code_lines` counts."""
    folder = ROOT / "pgmpy_dp" / "private"
    text = " ".join((folder / "README.md").read_text().split())
    said = re.search(
        r"(\d+) files, about ([\d,]+) lines of code .*?: ([\d,]+) of promises and ledgers, ([\d,]+) of curators, "
        r"([\d,]+) of mathematics, ([\d,]+) of noise, ([\d,]+) of reading, ([\d,]+) of data, ([\d,]+) of operators",
        text,
    )
    files, whole, *parts = (int(number.replace(",", "")) for number in said.groups())
    folders = ("curator", "mathematics", "noise", "reading", "data", "operators")
    counted = {name: in_folder(folder / name)[1] for name in folders}
    assert (files, whole) == (in_folder(folder)[0], pytest.approx(in_folder(folder)[1], rel=0.03))
    assert parts[1:] == [pytest.approx(lines, abs=0.03 * whole) for lines in counted.values()]
    assert sum(parts) == pytest.approx(whole, abs=0.03 * whole)


def test_code_lines_are_those_with_code():
    source = '''"""A docstring
of two lines."""
import os  # a comment

# another
def f(x,
      y):
    """One."""
    text = """a text
    with blanks

    in it"""
    return (x +

            y), text
'''
    assert code_lines(source) == 1 + 2 + 4 + 2


def test_shipped_data_name_their_source():
    sources = (ROOT / "data" / "SOURCES.md").read_text()
    files = [path.name for path in (ROOT / "data").iterdir() if path.name != "SOURCES.md"]
    assert files
    assert [name for name in files if f"`{name}`" not in sources] == []
