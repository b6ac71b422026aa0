"""Fine tables of numbers first, then larger tables in cells that these tables have merged.

What a plan releases of a variable whose :class:`~pgmpy_dp.Number` is not divided is a table of its fine grid. A
function of it says which cells become one (:mod:`pgmpy_dp.learning.merging`), and from there on the curator counts in
those. Within a merged cell the fine table says how the numbers lie, whatever the other variables are.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

import numpy as np

from pgmpy_dp.learning.merging import MOST_BINS, likely_proportions, merge_states, useful_bins
from pgmpy_dp.models.decoding import Values
from pgmpy_dp.private.curator.table_curator import TableCurator
from pgmpy_dp.private.mathematics.merged_cells import merged_cells
from pgmpy_dp.private.sensitive import Release
from pgmpy_dp.schema import Schema, decode_label

__all__ = ["fine_states", "largest_sizes", "merge", "merged_values", "undivided"]

_SURE = 3.0  # standard deviations of a cell of later tables, below which a category is rare


def undivided(schema: Schema) -> list[Hashable]:
    """The numbers that a plan divides by what it releases."""
    return [name for name, number in schema.numbers.items() if not number.divided]


def largest_sizes(schema: Schema) -> dict[Hashable, int]:
    """How many states each variable has at most, once undivided numbers are divided and merged."""
    most, fine = set(undivided(schema)), schema.fine()
    # Beside the bins: missing and outside states, and cells that rules divide further.
    extra = {n: fine.cardinality(n) - len(fine.numbers[n].cells) + len(schema.rule_cuts(n)) for n in most}
    return {n: min(k, MOST_BINS + extra[n]) if n in most else k for n, k in fine.cardinalities.items()}


def merge(
    curator: TableCurator,
    names: Sequence[Hashable],
    n_records: float,
    cell_noise: float,
    rare: Sequence[Hashable] = (),
    order: int = 2,
) -> None:
    """Let a curator count in merged states from now on.

    Parameters
    ----------
    curator : TableCurator
        It has released a table of each variable whose states merge.
    names : sequence of names
        Numbers to divide.
    n_records, cell_noise : float
        About how many records there are, and the expected size of the noise in a cell of later tables.
    rare : sequence of names
        Categorical variables whose rare states become one.
    order : int
        Of the later tables.
    """
    released = _tables(curator.release("marginals", {}))
    tables = {name: released[(name,)] for name in (*names, *rare)}
    bins = useful_bins(n_records, cell_noise, order=order)
    merging = merge_states(curator.facts.schema, tables, bins, _SURE * cell_noise, rare)
    curator.merge(merging.schema, merging.places)


def merged_values(release: Release) -> tuple[list[np.ndarray], list[np.ndarray] | None]:
    """Tables of a release in the states of its schema, and how many released cells each cell was added up from.

    The latter is None where nothing was merged.
    """
    fine = release.public.get("fine")
    if fine is None:
        return list(release.values), None
    places = {decode_label(name): np.array(to) for name, to in fine["places"]}
    values, cells = [], []
    for c, (scope, value) in enumerate(zip(release.scopes, release.values, strict=True)):
        maps = [places.get(name) if c < fine["tables"] else None for name in scope]
        values.append(merged_cells(value, maps))
        cells.append(merged_cells(np.ones(value.shape), maps))
    return values, cells


def fine_states(release: Release) -> dict[Hashable, Values]:
    """For each merged variable of a release, what is within its states; empty where nothing was merged.

    Negative counts of the fine table are removed with its total kept (`likely_proportions`).
    """
    fine = release.public.get("fine")
    if fine is None:
        return {}
    schema = Schema.from_dict(fine["schema"])
    tables, found = _tables(release, fine["tables"]), {}
    for encoded, places in fine["places"]:
        name = decode_label(encoded)
        number = schema.numbers.get(name)
        likely = likely_proportions(*tables[(name,)], None if number is None else len(number.cells))
        counts, deviation = tables[(name,)]
        noise = deviation / max(float(counts.sum()), deviation)
        found[name] = Values(schema.states[name] if number is None else number, np.array(places), likely, noise)
    return found


def _tables(release: Release, count: int | None = None) -> dict[tuple, tuple[np.ndarray, float]]:
    """The first tables of a release, each with the standard deviation of the noise in a cell."""
    released = zip(release.scopes[:count], release.values, release.noise, strict=False)
    return {scope: (value, math.sqrt(noise.variance)) for scope, value, noise in released if noise is not None}
