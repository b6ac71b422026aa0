"""The public description of a table: its variables, the values they may take, and how a cell is read."""

from pgmpy_dp.schema.cells import INTERRUPTS, MISSING, clock_text, duration_nanoseconds, match_key, moment_text
from pgmpy_dp.schema.date import Date
from pgmpy_dp.schema.intervals import almost_intervals, interval_cuts, interval_states
from pgmpy_dp.schema.labels import decode_label, encode_label
from pgmpy_dp.schema.levels import Level, Levels
from pgmpy_dp.schema.number import OUTSIDE, Number, key_number
from pgmpy_dp.schema.reading import Reading
from pgmpy_dp.schema.table_schema import Schema

__all__ = [
    "INTERRUPTS",
    "MISSING",
    "OUTSIDE",
    "Date",
    "Level",
    "Levels",
    "Number",
    "Reading",
    "Schema",
    "almost_intervals",
    "clock_text",
    "decode_label",
    "duration_nanoseconds",
    "encode_label",
    "interval_cuts",
    "interval_states",
    "key_number",
    "match_key",
    "moment_text",
]
