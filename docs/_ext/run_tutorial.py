"""Run a tutorial and keep what it prints and draws: ``run_tutorial.py SCRIPT NOTEBOOK [always]``.

With "always" its page in ``tutorials/pages/`` is written again even if the script says what the page says.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import jupytext
from nbclient import NotebookClient
from nbformat import NotebookNode
from written_pages import names_a_drawing, write_page

ROOT = Path(__file__).parents[2]


def as_notebook(script: Path) -> NotebookNode:
    """The script's notebook, not yet run."""
    notebook = jupytext.read(script, fmt="py:percent")
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook.metadata["language_info"] = {"name": "python", "pygments_lexer": "ipython3"}
    return notebook


def main() -> None:
    """From the root of the repository, so that paths in tutorials are the ones that a reader types."""
    script, target = map(Path, sys.argv[1:3])
    notebook = as_notebook(script)
    os.environ.pop("MPLBACKEND", None)  # the kernel draws into the page; with another backend it would have no pictures
    started = time.monotonic()
    where = {"metadata": {"path": str(ROOT)}}
    NotebookClient(notebook, timeout=None, resources=where, extra_arguments=["--log-level=ERROR"]).execute()
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if not names_a_drawing(output)]
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(jupytext.writes(notebook, fmt="ipynb"))
    written = write_page(script, notebook, always=sys.argv[3:] == ["always"])
    print(f"{script}: {time.monotonic() - started:.0f} s{', page written' if written else ''}")


if __name__ == "__main__":
    main()
