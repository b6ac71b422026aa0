"""The base of files of this package: JSON that is read strictly, and a digest of the content.

The digest shows damage: a file in which anything else than the writer wrote is read is refused. It is no signature.
Who edits a file on purpose can compute it again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from os import PathLike, fspath
from typing import Any, NoReturn

DIGEST = "digest"
"""The entry of a file's content that has the digest of all others."""


def content_digest(content: Mapping[str, Any], *more: bytes) -> str:
    """SHA-256 of what is JSON-able, in one spelling, and of more bytes, in hexadecimal; a digest in it does not count.

    Examples
    --------
    >>> content_digest({"a": 1, "b": [0.5]}) == content_digest({"b": [0.5], "a": 1, "digest": "any"})
    True
    """
    counted = {name: value for name, value in content.items() if name != DIGEST}
    text = json.dumps(counted, sort_keys=True, separators=(",", ":"), allow_nan=False)
    digest = hashlib.sha256(text.encode())
    for part in more:
        digest.update(hashlib.sha256(part).digest())
    return digest.hexdigest()


def sealed(content: Mapping[str, Any], *more: bytes) -> dict[str, Any]:
    """The content with its digest."""
    return {**content, DIGEST: content_digest(content, *more)}


def unsealed(content: Mapping[str, Any], *more: bytes) -> dict[str, Any]:
    """The content without its digest; ValueError where it has another one, or none."""
    if content.get(DIGEST) != content_digest(content, *more):
        raise ValueError("its content is not what its digest says: it was damaged or edited since it was written")
    return {name: value for name, value in content.items() if name != DIGEST}


def json_content(text: bytes | str) -> Any:
    """Read JSON; ValueError for names that occur twice in one object, for NaN and infinities, and for no JSON.

    Examples
    --------
    >>> json_content(b'{"a": [1, 2]}')
    {'a': [1, 2]}
    """
    text = text.decode() if isinstance(text, bytes) else text
    try:
        return json.loads(text, object_pairs_hook=_once, parse_constant=_refused, parse_float=_finite)
    except RecursionError:
        raise ValueError("its brackets are nested without end") from None


@contextmanager
def read_from(path: str | PathLike, what: str, remedy: str) -> Iterator[None]:
    """Turn whatever is wrong with a file's content into a ValueError that names the file; full memory is not wrong.

    The file itself is read before: that it cannot be is an OSError.

    Parameters
    ----------
    path : str or path
    what : str
        What the file should be, "a release".
    remedy : str
        What to do.
    """
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:
        why = f"{error}" or type(error).__name__
        raise ValueError(f"{fspath(path)!r} is not {what}, or is damaged: {why}; {remedy}") from error


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) != len(pairs):
        raise ValueError("a name occurs twice in one object")
    return content


def _refused(constant: str) -> NoReturn:
    raise ValueError(f"it has {constant}, which is no number")


def _finite(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise ValueError(f"the number {text[:20]} is beyond all floats")
    return number
