"""Files of arrays with a JSON header: how releases and models are written, and read without believing them.

A file is a ``.npz`` archive, which NumPy reads too. Its header has a digest of everything. What an array says of its
size is compared with the bytes that there are, before any memory is taken.
"""

from __future__ import annotations

import io
import json
import math
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np

from pgmpy_dp.schema.stored import json_content, sealed, unsealed

_HEADER = "header"
_ALWAYS = 1 << 26  # bytes that a file of any size may inflate to
_RATIO = 20  # more than that: how many times as large as the file


def array_file(header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> bytes:
    """The content of a file with a JSON-able header and arrays of numbers."""
    arrays = {name: np.ascontiguousarray(array).reshape(np.shape(array)) for name, array in arrays.items()}
    text = json.dumps(sealed(header, *_described(arrays))).encode()
    parts = {_HEADER: np.frombuffer(text, dtype=np.uint8), **arrays}
    stream = io.BytesIO()
    np.savez_compressed(stream, **parts)  # type: ignore[arg-type]
    if sum(array.nbytes for array in parts.values()) > _most(stream.tell()) // 2:
        # What is read back does not inflate without bound: such a file is not compressed.
        stream = io.BytesIO()
        np.savez(stream, **parts)  # type: ignore[arg-type]
    return stream.getvalue()


def read_array_file(content: bytes, form: str, version: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """The header, without its digest, and the arrays of a file of :func:`array_file`.

    Parameters
    ----------
    content : bytes
    form : str
        Its header's ``format``.
    version : int
        The one that is read.

    Raises
    ------
    Exception
        Of any kind, for what is none: :func:`~pgmpy_dp.schema.stored.read_from` makes one of them.
    """
    parts = _unpacked(content)
    header = json_content(parts.pop(_HEADER).astype(np.uint8, casting="no").tobytes())
    if not isinstance(header, dict) or header.get("format") != form:
        raise ValueError(f"its header is not that of {form}")
    stored = header.get("version")
    if type(stored) is int and 0 < stored < version:
        raise ValueError(f"its version is {stored}, of pgmpy_dp 0.1 or 0.2: load it in version 0.3, and save it there")
    if type(stored) is not int or stored != version:
        raise ValueError(f"its version is {stored!r}, this package reads {version}; update pgmpy_dp")
    return unsealed(header, *_described(parts)), parts


def _described(arrays: Mapping[str, np.ndarray]) -> list[bytes]:
    """Names, types, shapes and content of arrays, for the digest."""
    return [
        part
        for name in sorted(arrays)
        for part in (repr((name, arrays[name].dtype.str, arrays[name].shape)).encode(), arrays[name].tobytes())
    ]


def _most(size: int) -> int:
    """Return the most bytes to which a file of this size may inflate."""
    return max(_ALWAYS, _RATIO * size)


def _unpacked(content: bytes) -> dict[str, np.ndarray]:
    """The arrays of an archive, of numbers and truth values alone."""
    arrays = {}
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = archive.infolist()
        # What stands before the first member or behind the list of them no digest counts.
        if min(member.header_offset for member in members) != 0 or not content[-22:].startswith(b"PK\5\6"):
            raise ValueError("it has bytes before its archive, or behind it")
        if sum(member.file_size for member in members) > _most(len(content)):
            raise ValueError(f"it inflates to more than {_most(len(content)):,} bytes")
        for member in members:
            name = member.filename.removesuffix(".npy")
            if name in arrays or name == member.filename:
                raise ValueError(f"its part {member.filename!r} is none that this package writes")
            arrays[name] = _array(archive.read(member))  # no more than its size, which was added up
    return arrays


def _array(part: bytes) -> np.ndarray:
    stream = io.BytesIO(part)
    version = np.lib.format.read_magic(stream)
    read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}[version]
    shape, by_column, kind = read(stream)
    if kind.kind not in "biuf" or math.prod(shape) * kind.itemsize != len(part) - stream.tell():
        raise ValueError(f"an array of {kind} has not the shape that it says")
    flat = np.frombuffer(part, dtype=kind, offset=stream.tell())
    return flat.reshape(shape, order="F" if by_column else "C").copy(order="K")
