"""The application: it declares commands, and ends each of them."""

from __future__ import annotations

import functools
import inspect
import itertools
import json
import os
import re
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import is_dataclass
from pathlib import Path
from typing import Annotated, Any, NoReturn, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperGroup

from pgmpy_dp.cli import option
from pgmpy_dp.pgmpy_config import bars, bars_shown
from pgmpy_dp.shown import shown
from pgmpy_dp.signals import INTERRUPTED, ending_once, no_more

CHECK_FAILED = 1
USAGE = 2
REFUSED = 3
CRASHED = 4

_PACKAGE = Path(__file__).parents[1]
_TRACEBACK = "PGMPY_DP_TRACEBACK"


class _InOrder(TyperGroup):
    """Commands in the order in which they are used; a mistake in a command line is one line, as all others are."""

    order = (
        *("start", "schema", "discover", "plan", "check", "fit", "refit", "suggest", "from-tables"),
        *("info", "query", "sample", "score", "regress", "report", "explore", "evidence", "ledger", "audit"),
    )

    def list_commands(self, ctx: Any) -> list[str]:
        return sorted(super().list_commands(ctx), key=self.order.index)

    def main(self, args: Any = None, *arguments: Any, **options: Any) -> Any:
        words = sys.argv[1:] if args is None else list(args)
        try:
            status = super().main(words, *arguments, **options | {"standalone_mode": False})
        except Exception as error:
            # Typer raises Click's exceptions, or those of its own copy of Click, which nobody else may import.
            if not hasattr(error, "format_message"):
                raise
            _refuse(error, words)
        sys.exit(status if isinstance(status, int) else 0)


def _refuse(error: Any, words: list[str]) -> NoReturn:
    """Say what is wrong with a command line, in one line, and exit; of a group without a command, its help."""
    context = getattr(error, "ctx", None)
    told = error.format_message().replace(" (env var: 'None')", "")  # Click 8.2 says so where there is none
    if context is not None and told == context.get_help():
        typer.echo(told)
        sys.exit(USAGE)
    names = getattr(getattr(error, "param", None), "opts", ())
    pairs = [*itertools.pairwise(words), *(word.split("=", 1) for word in words if "=" in word)]
    for name, value in pairs:
        if name in names and error.message in told:
            told = f"{name} is {value!r}: {error.message}"
    where = "" if context is None else f"; see {context.command_path} -h"
    say(f"{told.rstrip('.')}{where}")
    sys.exit(USAGE)


app = typer.Typer(
    name="pgmpy-dp",
    cls=_InOrder,
    help="Learn a graphical model from private records: write a schema, plan, fit, then query and sample the model.",
    epilog=f"""\b
A first session, with your own records.csv (pgmpy-dp start records.csv asks, and writes the lines for you):
  pgmpy-dp schema --variable "sex=F,M" --cuts "age=25,45,65" --out schema.json
  pgmpy-dp plan --schema schema.json --epsilon 1 --n 20000
  pgmpy-dp check records.csv --schema schema.json --epsilon 0.05
  pgmpy-dp fit records.csv --schema schema.json --epsilon 1 --delta 1e-9 --out model.npz
  pgmpy-dp query model.npz --variables sex --evidence "age=<25"
  pgmpy-dp sample model.npz --n 10000 --out synthetic.csv
  pgmpy-dp report model.npz --out report.html

\b
Exit codes:
  0  done
  1  a check failed: an audit refuted a claim, or a column's states match next to nothing, or none were found, or a
     fit counted next to no record (it is written), or a model did not meet what --publish-if asks (its budget is spent)
  2  an argument cannot be used, or the file is damaged; nothing was spent, and no output was written
  3  the budget does not allow it; nothing was spent
  4  something unforeseen failed, or anything failed after the budget was spent; noisy tables that were bought are kept
     ({_TRACEBACK}=1 shows more, which may quote records)
  130, 143  Ctrl-C, or told to end (SIGTERM), before anything was spent
  141  nobody reads standard output any more (pgmpy-dp ... | head)

Nothing that is printed depends on a record, except through releases with noise.""",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)


_called: dict[str, str] = {}
"""The options of the command that runs, by argument: ``{"max_order": "--max-order"}``, which ``say`` puts in."""

_ALIASES = {"state_names": "schema", "criteria": "publish_if", "df": "data", "n_simulations": "simulations"}


_QUIET = inspect.Parameter("quiet", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=option.Quiet)


@app.callback(invoke_without_command=True)
def _version(version: bool = typer.Option(False, "--version", help="Show the version and exit.")) -> None:
    if version:
        from pgmpy_dp import __version__

        typer.echo(f"pgmpy-dp {__version__}")
        raise typer.Exit


def command(
    parent: typer.Typer, name: str, summary: str, *examples: str, learns: bool = False
) -> Callable[[Callable], Callable]:
    """Declare a command whose errors are one line on standard error and an exit code.

    Parameters
    ----------
    parent : Typer
    name, summary : str
    *examples : str
        Command lines, without ``pgmpy-dp``, for its help.
    learns : bool
        Whether it needs pgmpy, which is loaded for seconds: it says so before.

    Notes
    -----
    A parameter that is annotated with a dataclass (`option.BudgetOptions`, for one) stands for options of the names
    of its fields.
    """
    lines = "\n".join(f"  pgmpy-dp {example}" for example in examples)

    def declare(function: Callable) -> Callable:
        @functools.wraps(function)
        def guarded(**options: Any) -> None:
            with ending_once(), warnings.catch_warnings():
                # Libraries warn about what they deprecate, and might about a record.
                warnings.simplefilter("ignore")
                _called.clear()
                _called.update(called)
                if options.get("edges_file") is not None:
                    _called["graph"] = "--edges-file"
                try:
                    if learns and "pgmpy" not in sys.modules:
                        note("loading what learns and draws; that takes some seconds", options["quiet"])
                    call_with_groups(function, options)
                except typer.Exit:
                    raise
                except (Exception, KeyboardInterrupt) as error:
                    _end(error, options)

        # What typer reads: the options of groups too, each by itself. Scripts pass -q to whatever they run.
        listed = options_of(function)
        if all(option.name != "quiet" for option in listed):
            listed.append(_QUIET)
        called = {option.name: _written(option) for option in listed}
        called |= {name: called[option] for name, option in _ALIASES.items() if option in called}
        called |= {"graph": "--edges"} if "edges" in called else {}
        guarded.__signature__ = inspect.Signature(listed)  # type: ignore[attr-defined]
        guarded.__annotations__ = {option.name: option.annotation for option in listed}
        parent.command(name, short_help=summary, epilog=f"\b\nExamples:\n{lines}")(guarded)
        return function

    return declare


def _written(option: inspect.Parameter) -> str:
    """An argument as a command line writes it."""
    how = get_args(option.annotation)[1] if get_origin(option.annotation) is Annotated else option.default
    if isinstance(how, typer.models.ArgumentInfo):
        return (how.metavar or option.name.upper()).strip("[]")
    return next((name for name in how.param_decls or () if name.startswith("--")), f"--{option.name.replace('_', '-')}")


def in_options(text: str) -> str:
    """Translate what the library says of its arguments into the options of the command that runs.

    Examples
    --------
    >>> _called.clear()
    >>> _called.update(again="--again", max_order="--max-order")
    >>> in_options("max_order=9 is out of range; pass again=True, or other=1")
    '--max-order=9 is out of range; pass --again, or other=1'
    >>> _called.clear()
    """
    if _called:
        names = "|".join(sorted(_called, key=len, reverse=True))
        written = rf"(^|\b(?:pass|or) )({names})=(True\b|(?=\s))?"
        text = re.sub(written, lambda match: match[1] + _called[match[2]] + "=" * (match[3] is None), text)
    return text.replace("pgmpy_dp.check ", "pgmpy-dp check ")


def _end(error: Exception | KeyboardInterrupt, options: Mapping[str, Any]) -> NoReturn:
    """Say what was wrong, and exit.

    Only texts that this package wrote are shown, which are about arguments and public facts: those of exceptions that
    one of its lines raises itself. One by a library (from deep inside pandas, or ``float(text)``) may quote a record.
    """
    no_more()
    from pgmpy_dp.checks import ArgumentError
    from pgmpy_dp.private.filter import BudgetExceeded

    if os.environ.get(_TRACEBACK):
        traceback.print_exception(error)
    frames = traceback.extract_tb(error.__traceback__)
    inside = [frame for frame in frames if _PACKAGE in Path(frame.filename).parents]
    written_here = bool(inside) and frames[-1] is inside[-1] and (inside[-1].line or "").startswith("raise ")
    if getattr(error, "release", None) is not None or getattr(error, "spent", False):
        # Whatever it is: the other codes say that nothing was spent.
        _fail(f"{_named(error)} after the budget was spent; {_TRACEBACK}=1 shows more", CRASHED)
    if isinstance(error, BrokenPipeError):
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - Python empties it once more when it ends
        raise typer.Exit(INTERRUPTED + 13)
    if isinstance(error, KeyboardInterrupt):
        number = getattr(error, "number", signal.SIGINT)
        _fail("interrupted; nothing was spent", INTERRUPTED + number)
    if isinstance(error, BudgetExceeded):
        _fail(str(error), REFUSED)
    if isinstance(error, OSError) and error.strerror is not None:
        _fail(_named(error), USAGE)
    if isinstance(error, MemoryError):
        _fail("there is not enough memory for this; ask for less at once", USAGE)
    if isinstance(error, ArgumentError) and error.name in _called:
        passed = {_called.get(name): value for name, value in options.items()}.get(_called[error.name])
        _fail(f"{_called[error.name]} is {str(passed)!r}: {error.remedy}", USAGE)
    if isinstance(error, ValueError | TypeError | KeyError | OSError | ModuleNotFoundError) and written_here:
        _fail(str(error), USAGE)
    place = f"{Path(inside[-1].filename).name}, line {inside[-1].lineno}" if inside else "an unknown place"
    _fail(f"{type(error).__name__} in {place}: this is a mistake in the program; {_TRACEBACK}=1 shows more", CRASHED)


def _named(error: BaseException) -> str:
    """The type of an error; for one of the operating system the file and what is wrong with it, if it says that."""
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    if not isinstance(error, OSError) or error.strerror is None:
        return type(error).__name__
    return error.strerror if error.filename is None else f"{os.fspath(error.filename)!r}: {error.strerror}"


def _fail(message: str, code: int) -> NoReturn:
    say(message)
    raise typer.Exit(code)


def ask_for(option: str, value: object, remedy: str) -> NoReturn:
    """Raise a ValueError that names an option, its value (None: it was left out), and what to do."""
    raise ValueError(f"{option} {'is missing' if value is None else f'is {value!r}'}: {remedy}")


def show(document: dict[str, Any], text: str, as_json: bool) -> None:
    """Print the result of a command, for a program or for a person."""
    _print(as_document(document) if as_json else "\n".join(map(shown, text.split("\n"))))


def as_document(document: Any) -> str:
    r"""JSON for people and programs, in which nothing controls a terminal.

    Examples
    --------
    >>> print(as_document(["Käse", "\x1b[31m\u202e\U000e0001"]))
    [
     "Käse",
     "\u001b[31m\u202e\udb40\udc01"
    ]
    """
    text = json.dumps(document, indent=1, ensure_ascii=False)
    return "".join(sign if sign == "\n" or shown(sign) == sign else json.dumps(sign)[1:-1] for sign in text)


def note(message: str, quiet: bool = False) -> None:
    """Print something worth knowing that is no result, on standard error."""
    if not quiet:
        say(message)


def note_reading(quiet: bool, *files: Path | None) -> None:
    """Say which files are read, before the first is: how long that takes is nobody's to tell."""
    note(f"reading {' and '.join(str(file) for file in files if file is not None)}", quiet)


def say(message: str) -> None:
    """Print one line on standard error."""
    _print(f"pgmpy-dp: {shown(in_options(' '.join(message.split())))}", err=True)


def _print(text: str, err: bool = False) -> None:
    """Print a text in signs that the stream has: a name is not worth an exception after a charge."""
    encoding = getattr(sys.stderr if err else sys.stdout, "encoding", None) or "utf-8"
    typer.echo(text.encode(encoding, "backslashreplace").decode(encoding), err=err)


@contextmanager
def progress(quiet: bool) -> Iterator[None]:
    """Progress bars on standard error, by pgmpy's own switch; where that is no terminal, a line every 10 seconds."""
    with bars(bars_shown() and not quiet, in_lines=not sys.stderr.isatty()):
        yield


def options_of(function: Callable) -> list[inspect.Parameter]:
    """The parameters of a function, with the fields of a dataclass in the place of one that is annotated with it.

    So options that stand together are one frozen dataclass for a command, and the command line has each by itself.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Size:
    ...     width: int = 1
    ...     height: int = 2
    >>> def draw(*, size: Size, title: str) -> None:
    ...     print(title, size.width * size.height)
    >>> [parameter.name for parameter in options_of(draw)]
    ['width', 'height', 'title']
    >>> call_with_groups(draw, {"width": 3, "height": 4, "title": "of"})
    of 12
    """
    parameters: list[inspect.Parameter] = []
    hints = get_type_hints(function, include_extras=True)
    for name, parameter in inspect.signature(function).parameters.items():
        if is_dataclass(hints[name]):
            parameters += options_of(hints[name])
        else:
            # By keyword, for one without a default may follow one that has it.
            parameters.append(parameter.replace(annotation=hints[name], kind=inspect.Parameter.KEYWORD_ONLY))
    return parameters


def call_with_groups(function: Callable, values: Mapping[str, Any]) -> Any:
    """Call a function with the values of `options_of` it, gathered as it takes them."""
    hints = get_type_hints(function, include_extras=True)
    names = inspect.signature(function).parameters
    return function(
        **{name: call_with_groups(hints[name], values) if is_dataclass(hints[name]) else values[name] for name in names}
    )
