"""Write synthetic records as text."""

from __future__ import annotations

import csv
import io
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pgmpy_dp.cli import option
from pgmpy_dp.cli.application import ask_for, note
from pgmpy_dp.shown import runs_in_spreadsheets, shown, spreadsheet_safe

if TYPE_CHECKING:
    import numpy as np

    from pgmpy_dp.models.answers import Drawn
    from pgmpy_dp.private.data.text_file import TextFile
    from pgmpy_dp.schema import Number


@dataclass(frozen=True)
class StyleOptions:
    """The format of text files that are written: by the options of reading, that of the file of the records."""

    delimiter: option.Delimiter = None
    encoding: option.Encoding = None
    decimal: option.Decimal = None
    thousands: option.Thousands = None
    safe: Annotated[
        bool, typer.Option("--spreadsheet-safe", help="Put a ' before texts that a spreadsheet would compute.")
    ] = False

    def written(self, out: Path, suffix: str) -> TextFile:
        """The options, checked, with what is usual for a kind of file; none of them is for Parquet."""
        from pgmpy_dp.private.data.text_file import TextFile

        passed = {name: value for name, value in vars(self).items() if value}
        if suffix == ".parquet":
            for name, value in passed.items():
                ask_for(
                    "--spreadsheet-safe" if name == "safe" else f"--{name}",
                    value,
                    "it is for files of text; write .csv or .tsv",
                )
        passed.pop("safe", None)
        if (sign := passed.get("delimiter", "\t" if suffix == ".tsv" else ",")) in ("tab", "\\t"):
            sign = "\t"
        return TextFile(out, **passed | {"delimiter": sign})


def text_of(columns: Mapping[Hashable, Drawn], written: TextFile, safe: bool, quiet: bool) -> bytes:
    """Records as the bytes of a text file.

    Parameters
    ----------
    columns : dict of name to Drawn
    written : TextFile
        How the file is written.
    safe : bool
        Whether a spreadsheet shall not compute any of it; else it is said if one might.
    quiet : bool
    """
    header = [str(name) for name in columns]
    texts = [_texts(*column, written) for column in columns.values()]
    odd = {
        text for text in {*header, *(text for column in texts for text in set(column))} if runs_in_spreadsheets(text)
    }
    if odd and safe:
        header = [spreadsheet_safe(name) for name in header]
        texts = [[spreadsheet_safe(text) if text in odd else text for text in column] for column in texts]
    elif odd:
        which = ", ".join(map(repr, sorted(odd)[:3])) + (f" and {len(odd) - 3} more" if len(odd) > 3 else "")
        note(f"a spreadsheet would compute {which}; --spreadsheet-safe writes a ' before such texts", quiet)
    stream = io.StringIO()
    rows = csv.writer(stream, delimiter=written.delimiter or ",", lineterminator="\n")
    rows.writerow(header)
    rows.writerows(zip(*texts, strict=True))
    try:
        return stream.getvalue().encode(written.encoding)
    except UnicodeEncodeError as error:
        sign = error.object[error.start]
        ask_for("--encoding", written.encoding, f"it has no sign for {shown(sign)!r}, which a name has; use utf-8")


def suffix_of(out: Path, option: str = "--out") -> str:
    """The format of a file by its name: .csv, .tsv or .parquet."""
    name = out.name.lower().removesuffix(".gz")
    for ending in (".csv", ".tsv"):
        if name.endswith(ending):
            return ending
    if name.endswith((".parquet", ".pq")) and not out.name.lower().endswith(".gz"):
        try:
            import pyarrow  # noqa: F401 - asked for before anything is drawn
        except ModuleNotFoundError:
            raise ModuleNotFoundError(
                f"{option}: Parquet files need pyarrow: pip install pyarrow, or write .csv"
            ) from None
        return ".parquet"
    ask_for(option, str(out), "use a name that ends in .csv, .tsv (or either with .gz) or .parquet")


def parquet_of(columns: Mapping[Hashable, Drawn]) -> bytes:
    """Records as the bytes of a Parquet file."""
    import pandas as pd

    from pgmpy_dp.models.decoded_columns import as_series

    stream = io.BytesIO()
    frame = pd.DataFrame({str(name): as_series(*column) for name, column in columns.items()})
    frame.to_parquet(stream, index=False)
    return stream.getvalue()


def _texts(declared: Number | Sequence, drawn: np.ndarray, written: TextFile) -> list[str]:
    """The texts of a column's cells; a missing one is empty."""
    from pgmpy_dp.schema import Date, Number

    def as_written(text: str) -> str:
        whole, point, fraction = text.partition(".")
        digits = whole.removeprefix("-")
        if written.thousands and digits.isdecimal():
            whole = whole[: -len(digits)] + f"{int(digits):,}".replace(",", written.thousands)
        return f"{whole}{written.decimal}{fraction}" if point else whole

    def text(value: Any) -> str:
        if value is None or value != value:
            return ""
        if isinstance(declared, Date):
            day = as_day(value)
            return day.strftime(declared.formats[0]) if declared.formats else day.isoformat()
        if isinstance(declared, Number) and declared.whole:
            return as_written(str(int(value)))
        return as_written(repr(value)) if isinstance(value, float) else str(value)

    if not isinstance(declared, Number):
        states = list(map(text, declared))
        return [states[code] for code in drawn.tolist()]
    return list(map(cache(text), drawn.tolist()))


def as_day(value: float) -> date:
    """The day of a number of days since 1970; a part of a day is left out."""
    return date(1970, 1, 1) + timedelta(int(value))
