"""Declarations to be filled in: the names and types of a frame's columns, without a look at a value."""

from __future__ import annotations

from typing import Any

from pgmpy_dp.schema.date import Date
from pgmpy_dp.schema.number import Number


def declarations_like(frame: Any) -> dict[Any, Any]:
    """As :meth:`~pgmpy_dp.Schema.like` has them; TypeError for what is no frame."""
    import narwhals as nw

    try:
        types = nw.from_native(frame).collect_schema()
    except TypeError:
        raise TypeError(
            f"frame is a {type(frame).__name__}; pass a frame of pandas, polars or pyarrow, or for a file write "
            "pgmpy-dp schema --from-header FILE"
        ) from None
    declared: dict[Any, Any] = {}
    for name, dtype in types.items():
        declared[name] = Number if dtype.is_numeric() else [False, True] if dtype == nw.Boolean else []
        declared[name] = Date if dtype in (nw.Date, nw.Datetime) else declared[name]
    return declared
