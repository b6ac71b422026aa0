"""Files that commands write and read: never over another one, whole or not at all."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pgmpy_dp.cli.application import ask_for
from pgmpy_dp.cli.arguments import variable_named

if TYPE_CHECKING:
    from pgmpy_dp.linked import LinkedModel, LinkedSchema
    from pgmpy_dp.models.answers import Answers, SavedModel
    from pgmpy_dp.models.markov_network import MarkovNetwork
    from pgmpy_dp.models.model_file import ModelFile
    from pgmpy_dp.private.sensitive import Release
    from pgmpy_dp.schema import Schema

_Found = TypeVar("_Found")
_TRIAL = 1 << 16  # bytes: more than most models take
_BEGINNING = 1 << 10  # bytes of a file's header, which begins with what the file is


STANDARD_OUTPUT = Path("-")


def require_writable(
    overwrite: bool, inputs: Iterable[Path | None] = (), *, printed: bool = False, **outputs: Path | None
) -> None:
    """Refuse outputs that exist, coincide, or lie in a folder that cannot be written, before anything is spent.

    Parameters
    ----------
    overwrite : bool
    inputs : iterable of Path or None
        Files that the command reads: no output may be one of them, whatever `overwrite` says.
    printed : bool
        Whether the outputs are text, for which ``-`` is standard output.
    **outputs : Path or None
        By the name of their option.

    Raises
    ------
    ValueError
    """
    taken = {_place(path): "an input" for path in inputs if path is not None}
    for name, path in outputs.items():
        if path is None:
            continue
        option = name if name.isupper() else f"--{name.replace('_', '-')}"
        if path == STANDARD_OUTPUT:
            if printed:
                continue
            ask_for(option, "-", "standard output is not for this, or --json takes it; pass the name of a file")
        place = _place(path)
        folder = place.parent
        if path.is_dir():
            ask_for(option, str(path), "that is a folder; pass the name of a file in it")
        if path.exists() and not path.is_file():
            ask_for(option, str(path), "that is a device or a pipe, and no regular file; pass the name of a file")
        if place in taken:
            ask_for(option, str(path), f"{taken[place]} is the same file; pass another name")
        if path.exists() and not overwrite:
            ask_for(option, str(path), "the file exists; pass another name, or --overwrite")
        if not folder.is_dir():
            ask_for(option, str(path), f"there is no folder {str(folder)!r}; make it first")
        if not os.access(folder, os.W_OK):
            ask_for(option, str(path), f"the folder {str(folder)!r} cannot be written; pass another one")
        try:
            with tempfile.TemporaryFile(dir=folder) as trial:
                trial.write(bytes(_TRIAL))
                trial.flush()
        except OSError as error:
            why = f"nothing can be written in the folder {str(folder)!r} ({error.strerror})"
            ask_for(option, str(path), f"{why}; make room, or pass another one")
        taken[place] = option


def _place(path: Path) -> Path:
    """The place where a file is, or would be, whatever links lead there."""
    return Path(os.path.realpath(path))


def write_output(path: Path, content: bytes) -> None:
    """Write a file whole or not at all; print its content where the path is ``-``."""
    from pgmpy_dp.private.atomic_file import write_atomically

    if path != STANDARD_OUTPUT:
        write_atomically(path, content)
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()


def free_name(path: Path) -> Path:
    """`path`, or the first of its numbered siblings that does not exist."""
    number, free = 1, path
    while free.exists():
        free = path.with_name(f"{path.stem}-{number}{path.suffix}")
        number += 1
    return free


def load_schema(path: Path, option: str = "--schema") -> Schema:
    """The schema of a JSON file; ValueError naming the file and its option otherwise.

    A file that is no schema is not quoted: it might hold records.
    """
    from pgmpy_dp.schema import Schema

    content = _content(path)
    if content is not None and content.keys() >= {"child", "key", "most"}:
        what = "that is a schema of linked tables; fit and check take it with --parents and --children"
        ask_for(option, str(path), what)
    if content is None or ("domain" not in content and content.get("format") != "pgmpy_dp.schema"):
        ask_for(option, str(path), "that is not a schema; pgmpy-dp schema --help shows how to write one")
    try:
        return Schema.from_text(json.dumps(content))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        ask_for(option, str(path), f"{error}")


def holds_linked_schema(path: Path) -> bool:
    """Whether a file says that it is a schema of linked tables."""
    with suppress(OSError):
        return (_content(path) or {}).keys() >= {"child", "key", "most"}
    return False


def _content(path: Path) -> dict[str, Any] | None:
    """The content of a JSON file, if it is an object."""
    from pgmpy_dp.schema.stored import json_content

    with suppress(ValueError):  # no UTF-8, no JSON, or brackets without end
        content = json_content(path.read_bytes())
        return content if isinstance(content, dict) else None
    return None


def load_linked_schema(path: Path) -> LinkedSchema:
    """The schema of linked tables of a JSON file; ValueError as `load_schema`."""
    from pgmpy_dp.linked import LinkedSchema

    content = _content(path)
    if content is None or "child" not in content:
        what = "that is not a schema of linked tables, which has parent, child, key and most"
        ask_for("--schema", str(path), f"{what}; for one file with several rows a person, pass --unit too")
    try:
        return LinkedSchema.from_dict(content)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        ask_for("--schema", str(path), f"{error}")


def holds_linked_model(path: Path) -> bool:
    """Whether a file says that it is a model of linked tables."""
    with suppress(Exception), zipfile.ZipFile(path) as parts, parts.open("header.npy") as stream:
        return b'"format": "pgmpy_dp.LinkedModel"' in stream.read(_BEGINNING)
    return False


def load_linked_model(path: Path) -> LinkedModel:
    """A saved model of linked tables; ValueError for another file, or one that is damaged."""
    from pgmpy_dp.linked import LinkedModel

    return LinkedModel.load(path)


def load_model(path: Path) -> MarkovNetwork:
    """A saved model; ValueError for another file."""
    from pgmpy_dp.models.markov_network import MarkovNetwork

    return _read(path, MarkovNetwork.load)


def load_saved_model(path: Path, draws: bool = False, weight: str | None = None) -> Answers:
    """A saved model, to be asked without pgmpy, with draws if it has them; ValueError for another file.

    Where a weight is named it is pgmpy's, reweighted.
    """
    if weight is not None:
        network = load_model(path)
        return network.reweighted(variable_named(weight, network.nodes, "--weight"))
    from pgmpy_dp.models.answers import SavedModel
    from pgmpy_dp.models.model_file import read_model_file

    def read(place: Path) -> SavedModel:
        model = SavedModel(read_model_file(place))
        if draws:
            model.posterior  # noqa: B018 - read here, where a damaged file is told
        return model

    return _read(path, read)


def load_model_file(path: Path) -> ModelFile:
    """The content of a saved model's file, without pgmpy; ValueError for another file."""
    from pgmpy_dp.models.model_file import read_model_file

    return _read(path, read_model_file)


def _read(path: Path, load: Callable[[Path], _Found]) -> _Found:
    try:
        return load(path)
    except OSError:
        raise
    except Exception:  # whatever else numpy, zip and JSON find wrong with a file of another kind
        what = "which is not a saved model; pass a file that fit wrote"
        if holds_linked_model(path):
            what = "which is a model of linked tables; only info, query, sample, report, explore and evidence take one"
        with suppress(Exception):
            from pgmpy_dp.private.sensitive import Release

            Release.load(path)
            what = "which holds noisy tables and no model; pgmpy-dp refit learns one from them"
        raise ValueError(f"MODEL is {str(path)!r}, {what}") from None


def load_release(path: Path) -> Release:
    """Noisy tables; ValueError for another file."""
    from pgmpy_dp.models.markov_network import MarkovNetwork
    from pgmpy_dp.private.sensitive import Release

    try:
        return Release.load(path)
    except ValueError:
        what = "it is damaged, or holds no noisy tables; pass a file that fit --release wrote"
        with suppress(Exception):
            if not holds_linked_model(path):
                MarkovNetwork.load(path)
            what = "it is a model, without the noisy tables; pass a file that fit --release wrote"
    ask_for("RELEASE", str(path), what)
