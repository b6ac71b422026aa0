"""Options about columns: a schema that is described on the command line."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pgmpy_dp.cli.application import ask_for, note
from pgmpy_dp.cli.arguments import BLANK, parse_assignment, parse_states
from pgmpy_dp.cli.files import load_schema

if TYPE_CHECKING:
    from pgmpy_dp.schema import Number, Schema

SchemaOption = Annotated[
    Path | None,
    typer.Option("--schema", help="JSON file of the public schema, in place of the options after this one."),
]
VariableOption = Annotated[
    list[str] | None,
    typer.Option(
        "--variable",
        metavar="<str>",
        help='A column and all of its possible values: "sex=F,M"; the word blank for empty cells: "q=1,2,blank".',
    ),
]
CutsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--cuts",
        metavar="<str>",
        help='A column of numbers without bounds, and where to cut it: "age=25,45,65" has 4 states.',
    ),
]
NumberOption = Annotated[
    list[str] | None,
    typer.Option(
        "--number",
        metavar="<str>",
        help='A column of numbers within bounds: "age=0:120", or "age=0:120:1" for whole ones. Add where to cut it, '
        '"cuts 18,65" or "bins 12". "spikes 0,65" says which values many have. '
        'Add "missing drop", "outside drop" or "outside state" if you like. For "$10,300", '
        '8.90%, 1.500 or 5k in cells add "units $,%,k=1000", "thousands ,", "decimal ,".',
    ),
]
DateOption = Annotated[
    list[str] | None,
    typer.Option(
        "--date",
        metavar="<str>",
        help='A column of days, like --number: "admitted=2001-01-01:2020-12-31 bins 20 format %d.%m.%Y". Repeat format '
        "for several; %Y-%m reads months, as their first day.",
    ),
]
OtherOption = Annotated[
    list[str] | None, typer.Option("--other", metavar="<str>", help='State that takes all other values: "job=unknown".')
]
TextsOption = Annotated[
    list[str] | None,
    typer.Option("--texts", metavar="<str>", help="A column that was cut before and holds intervals as texts."),
]
MissingOption = Annotated[
    list[str] | None,
    typer.Option(
        "--missing",
        metavar="<str>",
        help='Cells that are read as missing, in all columns or in one: "?,NA", "age=-9,999", "age=" for empty texts. '
        "Empty fields of text files are missing in any case.",
    ),
]
StripOption = Annotated[bool, typer.Option("--strip", help="Blanks around values make no difference.")]
CasefoldOption = Annotated[bool, typer.Option("--casefold", help="Upper and lower case make no difference.")]
RecodeOption = Annotated[
    list[str] | None,
    typer.Option("--recode", metavar="<str>", help='Cells of a column that mean another value: "sex:Male=M,female=F".'),
]
CodesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--codes", metavar="<str>", help='Columns compared as they are written, where 02116 is not 2116: "zip".'
    ),
]
LevelsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--levels",
        metavar="<str>",
        help='A tree over the states of a column: "tract=tree.csv", a file of lines tract,county,state with names '
        'in the first; or how many first signs of a code say it: "icd=chapter:1,group:3".',
    ),
]
ImpossibleOption = Annotated[
    list[str] | None,
    typer.Option("--impossible", metavar="<str>", help='What cannot be: "age < 15 -> marital = never".'),
]


@dataclass(frozen=True)
class DeclarationOptions:
    """Columns and their possible values."""

    variable: VariableOption = None
    cuts: CutsOption = None
    number: NumberOption = None
    date: DateOption = None
    levels: LevelsOption = None


@dataclass(frozen=True)
class ReadingOptions:
    """Options of reading cells."""

    missing: MissingOption = None
    strip: StripOption = False
    casefold: CasefoldOption = False
    recode: RecodeOption = None
    codes: CodesOption = None


@dataclass(frozen=True)
class ColumnOptions:
    """A schema: a file of it, or all that it says."""

    schema: SchemaOption = None
    declared: DeclarationOptions = field(default_factory=DeclarationOptions)
    other: OtherOption = None
    texts: TextsOption = None
    reading: ReadingOptions = field(default_factory=ReadingOptions)
    impossible: ImpossibleOption = None


_WORDS_OF_BLANK = ("missing", "empty", "na", "n/a", "nan", "null", "none", "unknown")
_RANGE = re.compile(r"\s*[0-9.]+\s*(?:-|–|to)\s*[0-9.]+\s*")
_CELL = r'\s*(?:"(?P<{0}_marked>(?:[^"]|"")*)"|(?P<{0}>[^=,"]*?))\s*'
_PAIR = re.compile(f"{_CELL.format('cell')}={_CELL.format('state')}(?:,|$)")
_EXAMPLES = {"--number": '"age=0:120:1 cuts 18,65"', "--date": '"admitted=2001-01-01:2020-12-31 bins 20"'}


def described(passed: ColumnOptions, states: dict[str, Any] | None = None) -> Schema:
    """The schema of a file, or the one that options describe; `states` are those of a codebook."""
    from pgmpy_dp.schema import Levels, Number, Schema, almost_intervals, interval_cuts

    other, texts, impossible = passed.other or [], passed.texts or [], passed.impossible or []
    if passed.schema is not None:
        require_alone(passed, "a schema was passed too; write it into that file (pgmpy-dp schema)")
        return load_schema(passed.schema)
    columns = declarations(states or {}, passed.declared)
    if not columns:
        hint = (
            'describe columns by options, such as --variable "sex=F,M" --number "age=0:120:1 cuts 18,65", or by a file'
        )
        ask_for("--variable", None, hint)
    others = dict(parse_assignment(text, "--other") for text in other)
    for name, listed in columns.items():
        if isinstance(listed, Number | Levels) or name in texts:
            continue
        meant = almost_intervals(listed, others.get(name))
        if meant is not None:
            cuts = ",".join(f"{cut:.15g}" for cut in interval_cuts(meant) or ())
            cut = f'--number "{name}=LOWER:UPPER cuts {cuts}" or --cuts "{name}={cuts}"'
            what = f"intervals, but compared as texts; for a column of numbers write {cut}"
            ask_for(f"the list of states of {name}", listed, f"{what}; for one of such texts add --texts {name}")
        texts_of = [state for state in listed if state is not None]
        if ranges := [state for state in texts_of if _RANGE.fullmatch(state)]:
            note(f"{name}: {ranges[0]!r} is a text like any other, in which no number is counted; see --number")
        words = [state for state in texts_of if state.strip().casefold() in _WORDS_OF_BLANK]
        if words and len(texts_of) == len(listed):
            note(f"{name}: {words[0]!r} is a text like any other; empty cells are {BLANK}: {name}=...,{BLANK}")
    return Schema(columns, other=others, texts=texts, impossible=impossible, **reading_options(columns, passed.reading))


def require_alone(options: ColumnOptions, remedy: str) -> None:
    """Refuse options about columns beside a file of their schema."""
    rest = {name: getattr(options, name) for name in ("other", "texts", "impossible")}
    for name, value in (vars(options.declared) | rest | vars(options.reading)).items():
        if value:
            ask_for(f"--{name}", value, remedy)


def declarations(states: Mapping[str, Any], options: DeclarationOptions) -> dict[str, Any]:
    """The columns that options declare, by their names, after those of `states`."""
    from pgmpy_dp.schema import Levels, interval_states

    columns: dict[str, Any] = dict(states)
    for option, texts in ((f"--{name}", texts) for name, texts in vars(options).items()):
        for text in texts or []:
            declared: Any
            if option == "--levels":
                name, tree = parse_assignment(text, option)
                widths = {level: int(width) for level, width in re.findall(r"([^:,]+):(\d+)(?:,|$)", tree)}
                if widths and name not in columns:
                    ask_for(option, text, f'list the codes before, --variable "{name}=..."')
                try:
                    if widths:
                        columns[name] = Levels.from_prefix(columns[name], widths)
                    else:
                        columns[name] = Levels.from_csv(tree, columns.get(name))
                except (OSError, TypeError, ValueError) as error:
                    ask_for(option, text, str(error))
                continue
            name, declared = declared_number(text, option) if option in _EXAMPLES else parse_states(text, option)
            if name in columns:
                ask_for(option, text, f"{name} was described before; describe each variable once")
            columns[name] = interval_states(_numbers(option, text, declared)) if option == "--cuts" else declared
    return columns


def declared_number(text: str, option: str) -> tuple[str, Number]:
    """Name and declaration from --number or --date.

    Examples
    --------
    >>> declared_number("age=0:120:1 cuts 18,65 missing drop", "--number")[1].states
    ('[0,18)', '[18,65)', '[65,120]')
    """
    from pgmpy_dp.schema import Date, Number

    name, said = parse_assignment(text, option)
    is_date = option == "--date"
    try:
        first, *words = shlex.split(said) or [""]
    except ValueError:
        ask_for(option, text, f"a quotation mark is not closed; write {_EXAMPLES[option]}")
    bounds, more = first.split(":"), ["format"] if is_date else ["units", "thousands", "decimal"]
    allowed = ["cuts", "bins", "spikes", "missing", "outside", *more]
    if len(bounds) not in (2, 3):
        ask_for(option, text, f"write lower and upper bound with a colon between: {_EXAMPLES[option]}")
    options: dict[str, Any] = dict(zip(words[::2], words[1::2], strict=False))
    formats = [said for word, said in zip(words[::2], words[1::2], strict=False) if word == "format"]
    once = len(options) + max(len(formats) - 1, 0)
    if len(words) % 2 or set(words[::2]) - set(allowed) or 2 * once < len(words):
        what = f"after the bounds write each of {', '.join(allowed)} once at most, and behind it a blank and its value"
        ask_for(option, text, f"{what}, without blanks in it: {_EXAMPLES[option]}")
    ends: list[Any] = bounds[:2] if is_date else _numbers(option, text, bounds[:2])
    if len(bounds) == 3:
        [options["resolution"]] = _numbers(option, text, bounds[2:])
    for listed in {"cuts", "spikes"} & set(options):
        values = options[listed].split(",")
        options[listed] = values if is_date else _numbers(option, text, values)
    if "format" in options:
        options["format"] = formats if len(formats) > 1 else formats[0]
    if "units" in options:
        factors = dict(unit.partition("=")[::2] for unit in options["units"].split(","))
        options["units"] = {u: _numbers(option, text, [by])[0] if by else 1.0 for u, by in factors.items()}
    if "bins" in options:
        if not options["bins"].isdecimal():
            ask_for(option, text, "bins is not a whole number; write how many cells there are, such as bins 20")
        options["bins"] = int(options["bins"])
    try:
        return name, (Date if is_date else Number)(*ends, **options)
    except (TypeError, ValueError) as error:
        ask_for(option, text, str(error))


def reading_options(names: Iterable[str], options: ReadingOptions) -> dict[str, Any]:
    """The options of a schema that say how cells are read.

    Examples
    --------
    >>> options = ReadingOptions(["?", "age=-9,999"], strip=True, recode=["sex:Male=M"])
    >>> reading = reading_options(["age", "sex"], options)
    >>> reading["missing"], reading["recode"]
    ({'age': ['?', '-9', '999'], 'sex': ['?']}, {'sex': {'Male': 'M'}})
    """
    everywhere: list[str] = []
    named: dict[str, list[str]] = {}
    for text in options.missing or []:
        if not text.strip():
            what = f'empty cells are missing by "age=", and a state by --variable "age=...,{BLANK}"'
            ask_for("--missing", text, f"{what}; other cells that are read as missing are listed: ?,NA")
        if text.rstrip().endswith("=") and text.count("=") == 1:
            name, cells = text.strip()[:-1].strip(), [""]
        elif "=" in text:
            name, cells = parse_states(text, "--missing")
        else:
            everywhere += parse_states(f"all={text}", "--missing")[1]
            continue
        _known(name, names, "--missing", text)
        named.setdefault(name, []).extend(cells)
    recoded: dict[str, dict[str, str]] = {}
    for text in options.recode or []:
        name, sign, pairs = text.partition(":")
        if not sign:
            ask_for("--recode", text, 'write the column, a colon, and cell=state with commas between: "sex:Male=M"')
        _known(name.strip(), names, "--recode", text)
        recoded.setdefault(name.strip(), {}).update(_pairs(pairs, text))
    codes = names_of(options.codes)
    for name in codes:
        _known(name, names, "--codes", name)
    return {
        "codes": codes,
        "missing": {name: [*everywhere, *named.get(name, [])] for name in names} if named else everywhere,
        "strip": options.strip,
        "casefold": options.casefold,
        "recode": recoded,
    }


def names_of(texts: Iterable[str] | None) -> list[str]:
    """The names in options that list some with commas between.

    Examples
    --------
    >>> names_of(["zip, lot", "version"])
    ['zip', 'lot', 'version']
    """
    return [name.strip() for text in texts or () for name in text.split(",") if name.strip()]


def _pairs(pairs: str, text: str) -> dict[str, str]:
    recoded: dict[str, str] = {}
    place = 0
    while place < len(pairs) or pairs[place - 1 :] in ("", ","):
        match = _PAIR.match(pairs, place)
        if match is None or not (match["state"] or match["state_marked"]):
            ask_for(
                "--recode", text, 'write cell=state with commas between, marks around one that has a , or =: "x:a=b"'
            )
        cell, state = (
            match[part] if match[f"{part}_marked"] is None else match[f"{part}_marked"].replace('""', '"')
            for part in ("cell", "state")
        )
        if recoded.setdefault(cell, state) != state:
            ask_for("--recode", text, f"{cell!r} is there twice; write each cell once")
        place = match.end()
    return recoded


def _known(name: str, names: Iterable[str], option: str, text: str) -> None:
    if name not in names:
        ask_for(option, text, f"{name} is not a column that was described; these are {', '.join(names)}")


def _numbers(option: str, text: str, parts: Iterable[str]) -> list[float]:
    try:
        return [float(part.replace("_", "no number")) for part in parts]
    except ValueError:
        example = _EXAMPLES.get(option, 'ascending, with commas between: "age=25,45.5"')
        ask_for(option, text, f"write numbers with decimal points and no other signs, {example}")
