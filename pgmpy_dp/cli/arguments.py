"""Read the texts of options that several commands share."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Hashable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pgmpy_dp.cli.application import ask_for
from pgmpy_dp.shown import quantity

if TYPE_CHECKING:
    import networkx as nx

    from pgmpy_dp.cli import option
    from pgmpy_dp.private.data.text_file import TextFile
    from pgmpy_dp.schema import Schema

_QUOTED = re.compile('"(?:[^"]|"")*"')
_STATE = re.compile(rf"(?:^|,)((?:\s*{_QUOTED.pattern}|[(\[][^()\[\]\"]*[)\]]|[^,])*)")
_EXAMPLE = 'write commas between states, and marks around a state that has a comma, a bracket or marks: a,"b, c"'


def variable_named(text: str, names: Iterable[Hashable], option: str) -> Any:
    """The variable that is written `text`."""
    matches = [name for name in names if str(name) == text.strip()]
    if len(matches) != 1:
        ask_for(option, text, f"name one of the variables {', '.join(map(str, names))}")
    return matches[0]


def parse_assignment(text: str, option: str, empty: bool = False) -> tuple[str, str]:
    """The two sides of ``name=value``; `empty` allows a value to be."""
    name, sign, value = text.partition("=")
    if not sign or not name.strip() or not (value or empty):
        ask_for(option, text, 'write name=value, in quotation marks where it has blanks, < or >: "age=<25"')
    return name.strip(), value


BLANK = "blank"
"""The word for the state of empty cells; the text is written in quotation marks."""


def parse_states(text: str, option: str) -> tuple[str, list[Any]]:
    """Both sides of ``name=state,state``, in which quotation marks and brackets keep a comma inside a state.

    For --variable the word blank without marks is the state None, of cells that are empty or read as missing.

    Examples
    --------
    >>> parse_states('age=<18,[18,65),"65, or more"', "--variable")
    ('age', ['<18', '[18,65)', '65, or more'])
    >>> parse_states('q=1,blank,"blank"', "--variable")
    ('q', ['1', None, 'blank'])
    """
    name, values = parse_assignment(text, option)
    if name[0] in "\"'":
        ask_for(option, text, f'{name} begins with a quotation mark; put marks around the whole: "sex=F,M"')
    parts = [part[1].strip() for part in _STATE.finditer(values)]
    states: list[Any] = [part[1:-1].replace('""', '"') if _QUOTED.fullmatch(part) else part for part in parts]
    if option == "--variable":
        states = [None if part == BLANK else state for part, state in zip(parts, states, strict=True)]
    for part in parts:
        if _QUOTED.fullmatch(part):
            continue
        if '"' in part or (len(part) > 1 and part[0] == part[-1] == "'"):
            ask_for(
                option, text, f"{part} has quotation marks that are not double ones around a whole state; {_EXAMPLE}"
            )
        if sum(map(part.count, "[(")) > sum(map(part.count, "])")):
            ask_for(option, text, f"{part} has a bracket that is not closed; {_EXAMPLE}")
        if len(parts) == 1 and ";" in part:
            ask_for(option, text, f"{part} is one state; write commas between states, not semicolons")
    return name, states


def parsed_rows(text: str) -> int | str:
    """The number of records of a person that count, or the word for all in part."""
    return int(text) if text.isdecimal() else text


def protection(options: option.ProtectionOptions) -> dict[str, Any]:
    """The arguments of a private table that say what is protected."""
    return vars(options) | {"rows_per_unit": parsed_rows(options.rows_per_unit)}


def learn_arguments(options: option.LearnOptions, schema: Schema | None) -> dict[str, Any]:
    """The arguments of `learn` and `plan`; without a schema of one table they stay as they were passed."""
    passed = {name: value for name, value in vars(options).items() if value is not None}
    passed |= {name: str(passed[name]) for name in ("structure", "estimator") if name in passed}
    edges, edges_file = passed.pop("edges", None), passed.pop("edges_file", None)
    if schema is None:
        return passed | ({} if edges is edges_file is None else {"graph": edges or edges_file})
    means = [name.strip() for name in (options.means or "").split(",") if name]
    read = {
        "graph": parsed_graph(schema, edges, edges_file),
        "workload": parsed_workload(schema.variables, options.workload),
        "target": parsed_variable("--target", schema.variables, options.target),
        "means": [parsed_variable("--means", schema.variables, name) for name in means] or None,
        "missing_at_random": parsed_drivers(schema.variables, options.missing_at_random),
    }
    return passed | {name: value for name, value in read.items() if value is not None}


def public_arguments(options: option.PublicOptions, schema: Schema | None) -> dict[str, Any]:
    """The arguments of `learn` on public tables. Messages quote no cell: the file might be that of the records."""
    import pandas as pd

    known = () if schema is None else (*schema, *schema.levels)
    names, tables = {str(name): name for name in known}, dict[tuple[Hashable, ...], pd.DataFrame]()
    for path in options.public or ():
        with open(path, encoding="utf-8-sig", errors="replace", newline="") as lines:
            header, *rows = [[field.strip() for field in row] for row in csv.reader(lines) if row] or [[]]
        scope = tuple(names[name] for name in header[:-1] if name in names)
        if not 0 < len(scope) == len(header) - 1 or header[-1] in names or scope in tables:
            what = "write the names of variables into its first line, others than in other files"
            ask_for("--public", str(path), f"{what}, and one for counts last; the schema has {', '.join(names)}")
        if any(len(row) != len(header) for row in rows):
            ask_for("--public", str(path), f"each line needs {quantity(header, 'field')}, as the first has")
        tables[scope] = pd.DataFrame(rows, columns=pd.Index([*scope, header[-1]], tupleize_cols=False))
    return {name: value for name, value in (("public", tables or None), ("public_from", options.public_from)) if value}


def are_linked(tables: option.LinkedOptions, data: Path | None) -> bool:
    """Whether two tables were passed and not `data`; refuses both, neither, and parents without their children."""
    if tables.parents is None and tables.children is None:
        if data is None:
            ask_for("DATA", None, "pass the file of the records, or --parents and --children for two tables")
        if tables.key_kind is not None:
            ask_for("--key-kind", str(tables.key_kind), "it is for linked tables; leave it out")
        return False
    if data is not None:
        ask_for("DATA", str(data), "--parents and --children are the data; leave it out")
    if tables.children is None:
        ask_for("--children", None, "--parents was passed; pass the table of their children too")
    return True


def require_criteria(published: option.PublishOptions, usual_share: float) -> None:
    """Refuse options of a test where there is none."""
    if published.publish_if is None and (published.again or published.test_share != usual_share):
        name, value = ("--again", "yes") if published.again else ("--test-share", str(published.test_share))
        ask_for(name, value, "it is for --publish-if")


def as_written(path: Path, text: option.TextOptions, argument: str = "DATA") -> Path | TextFile:
    """The records of a file, with the options of text that were passed; ValueError where there is no file."""
    from pgmpy_dp.private.data.text_file import TextFile

    if path.is_dir():
        ask_for(argument, str(path), "that is a folder; pass a file in it")
    if not path.is_file():
        ask_for(argument, str(path), "that is no regular file" if path.exists() else "there is no such file")
    passed = {name: value for name, value in vars(text).items() if value is not None}
    if text.delimiter in ("tab", "\\t"):
        passed["delimiter"] = "\t"
    if text.columns is not None:
        passed["columns"] = [name.strip() for name in next(csv.reader([text.columns]), [])]
    return TextFile(path, **passed) if passed else path


def tables_as_written(tables: option.LinkedOptions, text: option.TextOptions) -> list[Path | TextFile | None]:
    """The records of parents, None without them, and those of children."""
    files = {"--parents": tables.parents, "--children": tables.children}
    return [None if file is None else as_written(file, text, way) for way, file in files.items()]


def parsed_graph(schema: Schema, edges: str | None, edges_file: Path | None) -> nx.Graph | None:
    """The graph of --edges or --edges-file on all variables of the schema; None where neither was passed."""
    import networkx as nx

    if edges is not None and edges_file is not None:
        ask_for("--edges-file", str(edges_file), "--edges was passed too; pass one of them")
    if edges is not None:
        pairs = [_joined(text, schema) for text in edges.split(",") if text.strip()]
    elif edges_file is not None:
        pairs = _read_edges(edges_file, schema)
    else:
        return None
    graph = nx.Graph()
    graph.add_nodes_from(schema.variables)
    graph.add_edges_from(pairs)
    return graph


def parsed_variable(option: str, variables: Iterable[Hashable], text: str | None) -> Hashable:
    """The variable of this name; None where none was passed."""
    names = {str(name): name for name in variables}
    if text is not None and text not in names:
        ask_for(option, text, f"write the name of a variable; the schema has {', '.join(names)}")
    return None if text is None else names[text]


def parsed_workload(
    variables: Iterable[Hashable], text: str | None, least: int = 2
) -> dict[tuple[Hashable, ...], float] | None:
    """Sets of variables, at least so many in each, with weights, of --workload; None where it was not passed."""
    if text is None:
        return None
    names = {str(name): name for name in variables}
    workload: dict[tuple[Hashable, ...], float] = {}
    for item in filter(str.strip, text.split(";")):
        chosen, sign, weight = item.rpartition("=")
        if not sign:
            chosen, weight = item, "1"
        fields = [field.strip() for field in chosen.split(",")]
        try:
            value = float(weight)
        except ValueError:
            value = 0.0
        if (
            not set(fields) <= set(names)
            or len(set(fields)) != len(fields)
            or len(fields) < least
            or not 0 < value < math.inf
        ):
            many = "two variables or more" if least > 1 else "variables"
            what = f"write {many} with commas between and, if you like, = and a positive weight"
            ask_for("--workload", item.strip(), f"{what}; the schema has {', '.join(names)}")
        scope = tuple(names[field] for field in fields)
        workload[scope] = workload.get(scope, 0.0) + value
    if not workload:
        ask_for("--workload", text, "it names nothing; leave it out, or write sets of variables: age,job; age,sex")
    return workload


def parsed_drivers(variables: Iterable[Hashable], text: str | None) -> dict[Hashable, tuple[Hashable, ...]] | None:
    """Drivers of variables that are missing at random, of --missing-at-random; None where it was not passed."""
    if text is None:
        return None
    from pgmpy_dp.models.missing_at_random import checked_drivers

    names = {str(name): name for name in variables}
    drivers_of: dict[Hashable, tuple[Hashable, ...]] = {}
    for item in filter(str.strip, text.split(";")):
        variable, _, drivers = (part.strip() for part in item.partition("="))
        fields = [field.strip() for field in drivers.split(",")]
        if not {variable, *fields} <= set(names) or names[variable] in drivers_of:
            ask_for(
                "--missing-at-random",
                item.strip(),
                f"write variable=driver,driver; variable=driver, each variable once; the schema has {', '.join(names)}",
            )
        drivers_of[names[variable]] = tuple(names[field] for field in fields)
    try:
        return checked_drivers("it", drivers_of)
    except ValueError as error:
        ask_for("--missing-at-random", text, str(error))


def _joined(text: str, schema: Schema) -> tuple[Hashable, Hashable]:
    """Two variables joined by a dash; names may have dashes too."""
    names = {str(name): name for name in schema.variables}
    parts = text.split("-")
    splits = [("-".join(parts[:k]).strip(), "-".join(parts[k:]).strip()) for k in range(1, len(parts))]
    ways = [(names[u], names[v]) for u, v in splits if u in names and v in names and u != v]
    if len(ways) != 1:
        problem = "that can be read in several ways; use --edges-file" if ways else "write two variables, first-second"
        ask_for("--edges", text.strip(), f"{problem}; the schema has {', '.join(names)}")
    return ways[0]


def _read_edges(path: Path, schema: Schema) -> list[tuple[Hashable, Hashable]]:
    """Read edges from a file. Messages name lines and do not quote them: the path might be that of the records."""
    names = {str(name): name for name in schema.variables}
    pairs = []
    with open(path, encoding="utf-8-sig", errors="replace", newline="") as lines:
        for number, row in enumerate(csv.reader(lines), 1):
            fields = [field.strip() for field in row]
            if not any(fields) or (number == 1 and not set(fields) & set(names)):
                continue  # a blank line, or a header
            if len(fields) != 2 or fields[0] not in names or fields[1] not in names or fields[0] == fields[1]:
                what = f"line {number} is not two different variables with a comma between"
                ask_for("--edges-file", str(path), f"{what}; the schema has {', '.join(names)}")
            pairs.append((names[fields[0]], names[fields[1]]))
    return pairs
