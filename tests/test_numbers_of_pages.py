"""Numbers that pages quote are those of the result files that they link to; what is no measurement is listed here.

A number counts as quoted from the results that its own paragraph, item or row links to; else from those of its section,
and, where it links to another section of the page, from those of that one. It has to be in one of them, as it stands or
rounded to the digits that the page has. What is not in them is listed below by its section: settings, versions, numbers
of other people, and what was computed from several results. A number that is listed and stands in the results after
all has to leave the list, so that the list stays as short as it can be.
"""

from __future__ import annotations

import itertools
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
PROOFS = ("pgmpy_dp/tables/collective/published/published_em.md", "pgmpy_dp/learning/maximum_a_posteriori.md")
SUBJECTS = (
    "block-models",
    "choosing",
    "gaussian",
    "mixtures",
    "random-fields",
    "sequences",
    "stable-structure",
    "structure",
    "structure-options",
)
PAGES = (
    "docs/benchmarks.md",
    *(f"docs/{page}.md" for page in SUBJECTS),
    "README.md",
    "docs/papers-and-corrections.md",
    "docs/published.md",
    "docs/where-it-loses.md",
    *PROOFS,
)

NUMBER = re.compile(r"(?<![\w.^-])-?(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d+|(?<=\d))(?:e[+-]?\d+)?(?![\w^]|\.\d)")
LINK = re.compile(r"\]\(((?:\.\./)*benchmarks/results/[^)#]+\.md)")
ANCHOR = re.compile(r"\]\(#([^)]+)\)")

# By page and section: numbers that are in no result file that is cited there.
NOT_QUOTED: dict[str, dict[str, str]] = {
    "docs/benchmarks.md": {
        "Synthetic populations (the paper's section 4.1)": ".90 800 753 763",
        "Adult": "14",
        "`learn` beside other packages": "989,818 111",
        "Intervals": "17",
        "Markov random fields": "8",
        "Graphs": "2020",
        "Answering all parities": "33 35",
        "Sparse inverse covariance": "2018",
    },
    "docs/block-models.md": {"How accurate": ".03"},
    "docs/choosing.md": {},
    "docs/gaussian.md": {"Hundreds of columns": "2017"},
    "docs/where-it-loses.md": {},
    "docs/published.md": {"Published methods": "2020 2020 2017 2016 2018 2023 2023 3,000"},
    "docs/mixtures.md": {},
    "docs/random-fields.md": {"Which method": "2020"},
    "docs/sequences.md": {"First or second order": "45"},
    "docs/stable-structure.md": {},
    "docs/structure.md": {},
    "docs/structure-options.md": {"Which tables": "5,000", "Numbers without cuts": "128 64"},
    "README.md": {},
    "docs/papers-and-corrections.md": {
        # Numbers of theorems, and years.
        "The sources, result by result": "2017 3.3 3.8 4.5 4.6 1.5 2018 2023 4.1 5.3 1.3 5.12 1.4 5.19 1.6",
        "Users, sequences and the order of the methods": "2017",
    },
    "pgmpy_dp/tables/collective/published/published_em.md": {
        "Collective EM (Bernstein et al. 2017, section 3.2)": "-1 2000",
    },
    "pgmpy_dp/learning/maximum_a_posteriori.md": {
        "CollectiveMAP": "192 60 2.5 1e-5 5.9 5,800 24",
    },
}


def numbers(text: str) -> list[str]:
    return [found[0] for found in NUMBER.finditer(text)]


def sections(page: str) -> dict[str, str]:
    """Text by heading, without code."""
    text = re.sub(r"```.*?```", "", (ROOT / page).read_text(), flags=re.DOTALL)
    parts = re.split(r"^(#+ .*)$", text, flags=re.MULTILINE)
    return dict(zip((head.lstrip("# ") for head in parts[1::2]), parts[2::2], strict=True))


def anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def blocks(text: str) -> list[str]:
    """Rows of tables, and paragraphs or items."""
    return [block for block in re.split(r"\n(?=\|)|\n\s*\n|\n(?=\s*[*-] )", text) if block.strip()]


def results_of(page: str, text: str) -> set[Path]:
    """Result files that are linked to; of links that lead nowhere another test tells."""
    return {path for link in LINK.findall(text) if (path := ((ROOT / page).parent / link).resolve()).exists()}


def quoted(page: str) -> list[tuple[str, str, frozenset[Path]]]:
    """(section, number, files) of every number outside code, links and names."""
    found, whole = [], sections(page)
    by_anchor = {anchor(heading): text for heading, text in whole.items()}
    for heading, text in whole.items():
        for block in blocks(text):
            files = results_of(page, block) or results_of(page, text)
            for link in ANCHOR.findall(block):
                files = files | results_of(page, by_anchor.get(link, ""))
            plain = re.sub(r"`[^`]*`|\]\([^)]*\)", " ", block)
            found += [(heading, number, frozenset(files)) for number in numbers(plain)]
    return found


def value(number: str) -> float:
    return float(number.replace(",", ""))


@cache
def known(files: frozenset[Path]) -> np.ndarray:
    return np.array([value(number) for file in sorted(files) for number in numbers(file.read_text())])


def digits(number: str) -> int:
    """Of the places behind the point."""
    return len(number.partition("e")[0].partition(".")[2]) - int(number.partition("e")[2] or 0)


def is_in(number: str, files: frozenset[Path]) -> bool:
    """Whether results have the number, or one that is rounded to it."""
    return bool((abs(known(files) - value(number)) <= 0.5001 * 10.0 ** -digits(number)).any())


def not_in_results(page: str) -> dict[str, list[str]]:
    missing: dict[str, list[str]] = {}
    for heading, number, files in quoted(page):
        if files and not is_in(number, files):
            missing.setdefault(heading, []).append(number)
    return missing


@pytest.mark.parametrize("page", PAGES)
def test_numbers_are_those_of_the_results_or_listed(page):
    assert not_in_results(page) == {heading: said.split() for heading, said in NOT_QUOTED[page].items()}


def test_most_numbers_of_the_pages_are_looked_at():
    checked = {page: sum(bool(files) for _, _, files in quoted(page)) for page in PAGES}
    assert checked["docs/benchmarks.md"] > 200 and checked["docs/where-it-loses.md"] > 50
    assert sum(checked[f"docs/{page}.md"] for page in SUBJECTS) > 450
    assert sum(checked[page] for page in ("docs/papers-and-corrections.md", *PROOFS)) > 70


def test_tables_that_are_the_results_have_their_rows():
    """Where the head of a table stands in the results, so does each of its rows, cell for cell."""
    number = 0
    for page in PAGES:
        for text in sections(page).values():
            rows = {one_blank(line) for file in results_of(page, text) for line in file.read_text().splitlines()}
            for table in re.findall(r"(?:^\|.*\n)+", text, flags=re.MULTILINE):
                head, _, *own = map(one_blank, table.splitlines())
                if head in rows and sum(row in rows for row in own) * 2 > len(own):
                    assert set(own) <= rows, (page, set(own) - rows)
                    number += len(own)
    assert number >= 6


def one_blank(line: str) -> str:
    return re.sub(r"\s+", " ", line).strip()


def test_a_number_that_differs_is_noticed():
    """One more or less in the last of three digits or more is missed only where that stands in the same results."""
    noticed = []
    for _, number, files in itertools.chain.from_iterable(map(quoted, PAGES)):
        if files and len(re.sub(r"e.*|\D", "", number).strip("0")) >= 3 and "e" not in number:
            for step in (1, -1):
                other = value(number) + step * 10.0 ** -digits(number)
                noticed.append(not is_in(f"{other:.{digits(number)}f}", files))
    assert len(noticed) > 350 and np.mean(noticed) > 0.7


# Draws, of all with the same epsilon, on which the one method has the smaller divergence than the other.
COUNTED = {
    ("paper-25-draws.md", "CollectiveMAP below CollectiveEM as published (exact steps)"): 753,
    ("paper-25-draws.md", "CollectiveMAP below NaiveMLE (lambda*)"): 763,
    ("paper-25-draws.md", "CollectiveMAP below NaiveMLE, lambda = 1e-3"): 800,
    ("paper-25-draws.md", "CollectiveEM as published (exact steps) below NaiveMLE, lambda = 1e-3"): 691,
    ("paper-25-draws.md", "CollectiveEM as published (exact steps) below NaiveMLE (lambda*)"): 241,
    ("paper.md", "CollectiveMAP, Gaussian tables (delta = 1/N) below PrivateSGD (delta = 1/N)"): 27,
    ("paper.md", "NaiveMLE, Gaussian tables (delta = 1/N) below PrivateSGD (delta = 1/N)"): 14,
    ("paper.md", "CollectiveMAP below PrivateSGD (delta = 1/N)"): 32 - 27,
    ("paper.md", "NaiveMLE (lambda*) below PrivateSGD (delta = 1/N)"): 3,
}


@pytest.mark.parametrize(("file", "row"), COUNTED)
def test_draws_are_counted_right(file, row):
    text = (ROOT / "benchmarks" / "results" / file).read_text()
    (cells,) = re.findall(rf"^\| {re.escape(row)} \|(.*)\|$", text, flags=re.MULTILINE)
    assert sum(int(cell.split(" of ")[0]) for cell in cells.split("|")) == COUNTED[file, row]
