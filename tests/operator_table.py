"""``python -m tests.operator_table`` writes the table of all operators, pgmpy_dp/private/operators/README.md.

From the boundary's list of operators and their docstrings, so nothing in the page is written by hand.
"""

from __future__ import annotations

import inspect
import os
import re
from pathlib import Path
from typing import get_args, get_type_hints

from pgmpy_dp.auditing.operator_list import every_operator

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "pgmpy_dp" / "private" / "operators" / "README.md"
COMMAND = "python -m tests.operator_table"
TEXT = f"""# What can be asked of private data

`Curator.ask` takes one of these {{count}} operators, and nothing else. Each has its sensitivity and its proof in its
docstring. The count and the steps of a gradient are no operators: [schedules](../curator/schedule.py) answer them, and
[regression_path](regression_path.py) the vertices of Frank and Wolfe's method. `{COMMAND}`
writes this page from the boundary's [list](../trusted_types.py) and the docstrings.

A subject's operators are trusted for that subject alone. "Data" says of what an operator can be asked. Where "units"
says yes, the proof is for a unit with all its records. Elsewhere it is for one record, user or edge, and the curator
pays for several. What may fail does so with a probability that a reserve of delta pays for.

| operator | subject | what leaves | data | noise | units | may fail |
| --- | --- | --- | --- | --- | --- | --- |
{{operators}}

## Kinds of noise

| noise | what leaves |
| --- | --- |
{{mechanisms}}
"""


def link(kind: type, name: str) -> str:
    """To the module of a class."""
    target = os.path.relpath(ROOT / (kind.__module__.replace(".", "/") + ".py"), PAGE.parent)
    return f"[`{name}`]({Path(target).as_posix()})"


def summary(kind: type) -> str:
    """The first sentence of a class's docstring, in one line of a table."""
    text = " ".join((inspect.getdoc(kind) or "").partition("\n\n")[0].split())
    return re.sub(r":\w+:`~?", "`", text).replace("|", r"\|")


def page() -> str:
    """What the page says now."""
    rows, mechanisms = [], {}
    for name, kind in every_operator().items():
        planned = get_type_hints(kind.mechanism)["return"]
        noise = {one.__name__: one for one in get_args(planned) or (planned,)}
        mechanisms |= noise
        folder = kind.__module__.split(".")[1]
        rows.append([
            link(kind, name),
            "all" if folder == "private" else folder,
            summary(kind),
            kind.asks.__name__.removesuffix("Facts").lower() or "any",
            " or ".join(f"`{one}`" for one in noise),
            "yes" if kind.of_units else "",
            "yes" if kind.can_fail else "",
        ])  # fmt: skip
    kinds = [[link(one, name), summary(one)] for name, one in mechanisms.items()]
    lines = [
        "\n".join("".join(f"| {cell} " if cell else "| " for cell in row) + "|" for row in table)
        for table in (rows, kinds)
    ]
    return TEXT.format(count=len(rows), operators=lines[0], mechanisms=lines[1])


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
