"""A tutorial as Markdown, with what it printed and drew, for who reads the repository on a code host.

``tutorials/pages/NAME.md`` is made from ``tutorials/NAME.py`` and one run of it. It is written again when the script
says something else, or where `make tutorials PAGES=1` asks for it. Noise is new in every run, and would hide
what else is new. What a run adds stands between two marks: a test can compare the rest.
"""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import TYPE_CHECKING

from repository import FENCE, LINK, is_tutorial

if TYPE_CHECKING:
    from nbformat import NotebookNode

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "tutorials" / "pages"
MARKED = re.compile(r"\n<!-- output -->\n.*?<!-- end -->\n", flags=re.DOTALL)
COLOURS = re.compile(r"\x1b\[[0-9;]*m")
FOLDED = {"hide-input": "Code", "hide-cell": "Answer"}


def cells_of(script: str) -> list[tuple[str, str]]:
    """Options and text of each cell of a script in the percent format; Markdown without its comment signs."""
    _, *parts = re.split(r"^# %%(.*)\n", script, flags=re.MULTILINE)
    cells = [(options.strip(), text.strip("\n")) for options, text in zip(parts[::2], parts[1::2], strict=True)]
    return [(o, re.sub(r"^# ?", "", t, flags=re.MULTILINE) if "[markdown]" in o else t) for o, t in cells]


def with_links(text: str) -> str:
    """Links of a file of tutorials/ as links of a page in tutorials/pages/; to another tutorial, to its page."""

    def moved(match: re.Match) -> str:
        target, mark, anchor = match[2].partition("#")
        if re.match(r"[a-z]+:", target) or not target:
            return match[0]
        if is_tutorial(Path("tutorials", target)):
            return match[1] + target.removesuffix(".py") + ".md" + mark + anchor + match[3]
        return match[1] + "../" + match[2] + match[3]

    parts = re.split(f"({FENCE.pattern})", text, flags=FENCE.flags)
    return "".join(part if FENCE.match(part) else LINK.sub(moved, part) for part in parts)


def page(name: str, cells: list[tuple[str, str]], outputs: list[str]) -> str:
    """The page of a tutorial; `outputs` has one text for each cell of code, "" for none."""
    waiting = iter(outputs)
    parts = [f"<!-- Made from tutorials/{name}.py by `make tutorials`. -->\n"]
    for options, text in cells:
        if "[markdown]" in options:
            parts.append(f"{with_links(text)}\n")
            continue
        said = next(waiting)
        code = f"```python\n{text}\n```\n"
        shown = f"\n<!-- output -->\n{said}<!-- end -->\n" if said else ""
        folded = [words for tag, words in FOLDED.items() if tag in options]
        if folded:
            inside = code + (shown if "hide-cell" in options else "")
            code = f"<details>\n<summary>{folded[0]}</summary>\n\n{inside}\n</details>\n"
            shown = "" if "hide-cell" in options else shown
        parts.append(code + shown)
    return "\n".join(parts)


def without_outputs(text: str) -> str:
    """A page as it would be if its tutorial printed and drew nothing."""
    return MARKED.sub("", text)


def names_a_drawing(output: NotebookNode) -> bool:
    """Whether an output is what a last line of drawing returns, and no picture."""
    data = output.get("data", {})
    text = data.get("text/plain", "").lstrip("[(")
    return "image/png" not in data and text.startswith(("Text(", "<Axes", "<matplotlib"))


def outputs_of(notebook: NotebookNode, name: str) -> tuple[list[str], dict[str, bytes]]:
    """What each cell of code printed and drew, as Markdown, and the pictures by the names of their files."""
    pictures: dict[str, bytes] = {}
    texts = []
    for cell in (one for one in notebook.cells if one.cell_type == "code"):
        parts, printed = [], ""
        for output in cell.outputs:
            data = output.get("data", {})
            if "image/png" in data:
                parts.append(fenced(printed))
                printed = ""
                picture = f"{name}-{len(pictures) + 1}.png"
                pictures[picture] = base64.b64decode(data["image/png"])
                parts.append(f"![What the code above drew]({picture})\n")
            elif "text/plain" in data and not names_a_drawing(output):
                printed += data["text/plain"] + "\n"
            else:
                printed += output.get("text", "")
        texts.append("\n".join(part for part in (*parts, fenced(printed)) if part))
    return texts, pictures


def fenced(printed: str) -> str:
    """What was printed as a block, without colours and folders of this machine; "" for nothing."""
    text = COLOURS.sub("", printed).replace(f"{ROOT}/", "").rstrip()
    return f"```text\n{text}\n```\n" if text else ""


def write_page(script: Path, notebook: NotebookNode, always: bool) -> bool:
    """Write the page of a tutorial that ran, with its pictures; not where nothing but noise would change."""
    cells = cells_of(script.read_text())
    target = PAGES / f"{script.stem}.md"
    nothing = [""] * sum("[markdown]" not in options for options, _ in cells)
    if not always and target.exists() and without_outputs(target.read_text()) == page(script.stem, cells, nothing):
        return False
    outputs, pictures = outputs_of(notebook, script.stem)
    PAGES.mkdir(exist_ok=True)
    for old in PAGES.glob(f"{script.stem}-*.png"):
        old.unlink()
    for name, picture in pictures.items():
        (PAGES / name).write_bytes(picture)
    target.write_text(page(script.stem, cells, outputs))
    return True
