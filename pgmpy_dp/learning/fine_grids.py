"""Fine tables of numbers first, then larger tables in cells that these tables have merged.

What a plan releases of a variable whose :class:`~pgmpy_dp.Number` is not divided is a table of its fine grid. A
function of it says which cells become one (:mod:`pgmpy_dp.learning.merging`), and from there on the curator counts in
those. Within a merged cell the fine table says how the numbers lie, whatever the other variables are.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from pgmpy_dp.learning.merging import (
    MOST_BINS,
    Merging,
    in_groups,
    likely_proportions,
    merge_states,
    merged_cells,
    useful_bins,
)
from pgmpy_dp.models.decoding import Values
from pgmpy_dp.models.number_density import ClippedMean, Counts, NumberDensity, number_density
from pgmpy_dp.private.curator.table_curator import TableCurator
from pgmpy_dp.private.operators.model_errors import ModelErrors
from pgmpy_dp.private.operators.tables import Tables
from pgmpy_dp.private.sensitive import Release
from pgmpy_dp.schema import Number, Schema, decode_label, encode_label
from pgmpy_dp.schema.orders import Relation
from pgmpy_dp.schema.rules import Box

_FEW = 20  # values of a number, that are states rather than cells of a grid: what goes with one need not with the next
_SURE = 3.0  # standard deviations of a cell of later tables, below which a category is rare
_CLEAR = 3.0  # standard deviations of a group of fine cells, below which its table says nothing
_TAIL, _HALVES, _MIDDLE = 0.1, 8, 10  # the probability of both ends, how often they are halved, groups between them


def undivided(schema: Schema) -> list[Hashable]:
    """The numbers that a plan divides by what it releases."""
    return [name for name, number in schema.numbers.items() if not number.divided]


def fine_grained(schema: Schema) -> list[Hashable]:
    """The undivided numbers with so many values that a second table follows the first (`refine`)."""
    fine = schema.fine().numbers
    return [name for name in undivided(schema) if len(fine[name].cells) > _FEW]


def largest_sizes(schema: Schema) -> dict[Hashable, int]:
    """The largest number of states of each variable and level, once undivided numbers are divided and merged."""
    most, fine = set(undivided(schema)), schema.fine()
    # Beside the bins: missing and outside states, and cells that rules divide further.
    extra = {n: fine.cardinality(n) - len(fine.numbers[n].cells) + len(schema.rule_cuts(n)) for n in most}
    levels = {name: len(level.states) for name, level in schema.levels.items()}
    return {n: min(k, MOST_BINS + extra[n]) if n in most else k for n, k in fine.cardinalities.items()} | levels


def refine(curator: TableCurator, names: Sequence[Hashable], share: Fraction) -> None:
    """Release second tables of numbers, in cells that follow the first: a tree of counts of two levels.

    Parameters
    ----------
    curator : TableCurator
        It has released a table of the fine grid of each of these numbers.
    names : sequence of names
    share : Fraction
        Of the budget, for all of them.
    """
    release = curator.release("marginals", {})
    second = Tables.planned(len(names), curator.facts.adjacency, curator.cost, share).noise[0]
    merging = following(release.schema, densities(release, names), math.sqrt(second.variance))
    curator.merge(merging.schema, merging.places)
    curator.ask(Tables([(name,) for name in names]), share)


def following(
    schema: Schema,
    told: Mapping[Hashable, tuple[Number, NumberDensity]],
    deviation: float,
    cuts: Mapping[Hashable, Sequence[float]] | None = None,
) -> Merging:
    """Merge the fine cells of numbers into cells that follow their densities (`following_cells`).

    Parameters
    ----------
    schema : Schema
        With fine cells.
    told : mapping of name to (Number, NumberDensity)
        As `densities` gives them.
    deviation : float
        The standard deviation of the noise in a cell of the tables to come.
    cuts : mapping of name to sequence of float, optional
        As of :func:`~pgmpy_dp.learning.merging.merge_states`.
    """
    changed: dict[Hashable, Number] = {}
    places: dict[Hashable, tuple[int, ...]] = {}
    for name, (_, density) in told.items():
        least = _CLEAR * deviation / max(float(density.fine.values.sum()), 1.0)
        groups = following_cells(density, least, schema.numbers[name].centres)
        changed[name], places[name] = in_groups(schema, name, groups, (cuts or {}).get(name, ()))
    return Merging(schema.replaced(changed), places)


def measure_means(curator: TableCurator, names: Sequence[Hashable], share: Fraction) -> list[dict[str, Any]]:
    """Release the mean of each of some numbers, as a sum of what is left of them below a clip.

    The noise of the sum grows with the clip, and larger numbers are known from tables alone. The clip is where the
    squares of both sum to the least: of the noise, and of what the table lets expect of the mean above the clip. The
    sum is over records of the number that their cell has on average.

    Parameters
    ----------
    curator : TableCurator
        It has released a table of the fine grid of each of these numbers, and has merged no states.
    names : sequence of names
    share : Fraction
        Of the budget, for all of them.

    Returns
    -------
    list of dict
        Facts for the release, from which :func:`fine_states` takes them.
    """
    release = curator.release("marginals", {})
    schema, noise = release.schema, ModelErrors.noise_of(len(names), curator.cost, share)
    scopes, numbers, measures, facts = [], [], [], []
    for place, (name, (parts, density)) in enumerate(densities(release, names).items()):
        n, lower = max(float(density.fine.values.sum()), 1.0), parts.lower
        held, clips = np.bincount(density.cell, density.likely), np.unique(parts.ends)[1:]
        above = density.likely @ np.maximum(parts.centres[:, None] - clips, 0.0)
        clip = float(clips[np.argmin(above**2 + ((clips - lower) / n) ** 2 * noise.variance)])
        left = (np.minimum(parts.centres, clip) - lower) / (clip - lower)
        even = np.bincount(density.cell, left) / np.bincount(density.cell)
        of_cells = np.divide(np.bincount(density.cell, density.likely * left), held, out=even, where=held > 0)
        reference = float(np.clip(density.likely @ left, 0.0, 1.0))
        of_others = np.full(schema.cardinality(name) - len(held), reference)  # they count as nothing
        scopes.append((name,))
        numbers.append(np.clip(np.append(of_cells, of_others), 0.0, 1.0))
        measures.append(("sum", (place,), reference))
        unit, deviation = (clip - lower) / n, (clip - lower) / n * math.sqrt(noise.variance)
        facts.append({"variable": encode_label(name), "clip": clip, "value": lower + (clip - lower) * reference})
        facts[-1] |= {"unit": unit, "deviation": deviation}
    sums = curator.ask(ModelErrors(scopes, numbers, measures), share)
    return [
        fact | {"value": fact["value"] + fact.pop("unit") * float(one)} for fact, one in zip(facts, sums, strict=True)
    ]


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
        Numbers to divide. One of few values keeps them, where it would be divided into half as many cells or more.
    n_records, cell_noise : float
        About how many records there are, and the expected size of the noise in a cell of later tables.
    rare : sequence of names
        Categorical variables whose rare states become one.
    order : int
        Of the later tables.
    """
    release = curator.release("marginals", {})
    released = first_tables(release)
    tables = {name: released[(name,)] for name in rare}
    bins = useful_bins(n_records, cell_noise, order=order)
    told = {name: one for name, one in densities(release, names).items() if len(one[1].alone) > min(_FEW, 2 * bins)}
    tables |= likely_states(release, told, curator.facts.schema.cardinalities)
    if not tables:
        return
    merging = merge_states(curator.facts.schema, tables, bins, _SURE * cell_noise, rare)
    curator.merge(merging.schema, merging.places)


def likely_states(
    release: Release, told: Mapping[Hashable, tuple[Number, NumberDensity]], sizes: Mapping[Hashable, int]
) -> dict[Hashable, tuple[np.ndarray, float]]:
    """Proportions of the states that are counted now, by `densities`, each with 0 as no noise of them is known.

    Parameters
    ----------
    release : Release
    told : mapping of name to (Number, NumberDensity)
        As `densities` gives them.
    sizes : mapping of name to int
        How many states there are now. Those that are no cells get 0.
    """
    merged, tables = merged_places(release), {}
    for name, (_, density) in told.items():
        cells = len(density.alone)
        groups = merged.get(name, np.arange(cells))[:cells]
        likely = np.bincount(groups, np.bincount(density.cell, density.likely, cells))
        tables[name] = np.pad(likely, (0, sizes[name] - len(likely))), 0.0
    return tables


def following_cells(density: NumberDensity, least: float, centres: np.ndarray) -> np.ndarray:
    """Group fine cells: of about equal probability in the middle, halves of halves towards both ends, then ever wider.

    Beyond the last level each group reaches four times as far from the median as the one before: a few records in a
    long tail decide a mean, and the noise of one group hides fewer of them than that of all its fine cells.

    Parameters
    ----------
    density : NumberDensity
    least : float
        The probability below which a group says nothing: no end is shorter.
    centres : ndarray of shape (n_cells,)
        The middle number of each cell.

    Returns
    -------
    ndarray of int, shape (n_cells,)
        Ascending from 0. Spikes are groups of their own.
    """
    tails = [_TAIL / 2**k for k in range(_HALVES) if _TAIL / 2**k >= least] or [_TAIL]
    middle = min(max(int((1 - 2 * _TAIL) / max(least, 1e-12)), 2), _MIDDLE)
    levels = [*tails[::-1], *np.linspace(_TAIL, 1 - _TAIL, middle + 1)[1:-1], *(1 - tail for tail in tails)]
    cells = np.bincount(density.cell, density.likely, len(density.alone))
    middles = np.cumsum(cells) - cells / 2
    above = np.searchsorted(levels, middles)
    away = centres - centres[np.searchsorted(middles, 0.5).clip(max=len(cells) - 1)]
    change = np.diff(above) > 0
    for side, beyond in ((-away, above == 0), (away, above == len(levels))):
        if beyond.any() and (near := side[beyond].min()) > 0:
            wider = (np.log2(np.where(beyond, side, near)) - np.log2(near)) / 2
            change |= np.diff(wider.astype(int)) != 0
    change |= density.spikes[1:] | density.spikes[:-1]
    return np.concatenate([[0], np.cumsum(change)])


@dataclass(frozen=True)
class _Stage:
    """One merging of states.

    Attributes
    ----------
    schema : Schema
        The schema with the states before.
    tables : int
        The number of tables that were released by then, in these or finer states.
    places : dict of name to ndarray of int
        The place among the new states of each state before, for each variable that changed.
    """

    schema: Schema
    tables: int
    places: dict[Hashable, np.ndarray]


def _stages(release: Release) -> list[_Stage]:
    """The mergings of states of a release, the finest first."""
    stages, said = [], release.public.get("fine")
    while said is not None:
        places = {decode_label(name): np.array(to) for name, to in said["places"]}
        stages.append(_Stage(Schema.from_dict(said["schema"]), said["tables"], places))
        said = said.get("fine")
    return stages[::-1]


def merged_places(release: Release) -> dict[Hashable, np.ndarray]:
    """The last state of each fine one, of each variable of a release whose states were merged."""
    places: dict[Hashable, np.ndarray] = {}
    for stage in _stages(release):
        places |= {name: to[places[name]] if name in places else to for name, to in stage.places.items()}
    return places


def merged_values(release: Release) -> tuple[list[np.ndarray], list[np.ndarray] | None]:
    """Tables of a release in the states of its schema, and how many released cells each cell was added up from.

    The latter is None where nothing was merged.
    """
    stages = _stages(release)
    if not stages:
        return list(release.values), None
    values, cells = [], []
    for c, (scope, value) in enumerate(zip(release.scopes, release.values, strict=True)):
        ones = np.ones(value.shape)
        for stage in stages:
            if c < stage.tables:
                maps = [stage.places.get(name) for name in scope]
                value, ones = merged_cells(value, maps), merged_cells(ones, maps)
        values.append(value)
        cells.append(ones)
    return values, cells


def fine_states(release: Release) -> dict[Hashable, Values]:
    """The values within the states of each merged variable of a release; empty where nothing was merged.

    Of a number that is the density that its tables tell; of others the negative counts of the first table are removed
    with its total kept (`likely_proportions`).
    """
    stages = _stages(release)
    if not stages:
        return {}
    schema, tables = stages[0].schema, first_tables(release, stages[0].tables)
    merged = merged_places(release)
    told = densities(release, [name for name in schema.variables if name in merged and name in schema.numbers])
    values_within: dict[Hashable, Values] = {}
    for name, places in merged.items():
        if name in told:
            values_within[name] = values_of(*told[name], places)
        else:
            likely = likely_proportions(*tables[(name,)])
            counts, deviation = tables[(name,)]
            noise = deviation / max(float(counts.sum()), deviation)
            values_within[name] = Values(schema.states[name], places, likely, noise)
    return values_within


def zeros(release: Release) -> tuple[Box, ...]:
    """What the rules of a release's schema forbid, and how likely differences are where values lie as its tables say.

    Parameters
    ----------
    release : Release
    """
    boxes = release.schema.zeros
    if not release.schema.orders.differences:
        return tuple(boxes)
    within: dict[Hashable, Any] = {n: (v.declared, v.state, v.within) for n, v in fine_states(release).items()}
    return tuple(
        replace(box, within=within) if isinstance(box, Relation) and box.is_difference else box for box in boxes
    )


def values_of(parts: Number, density: NumberDensity, places: np.ndarray) -> Values:
    """The values within merged states of a number, by `densities` and `merged_places`."""
    others = places[len(density.alone) :]
    weights = np.append(density.likely, np.ones(len(others)))
    return Values(parts, np.append(places[density.cell], others), weights, density=density)


def densities(
    release: Release, names: Iterable[Hashable], numbers: Mapping[Hashable, Number] | None = None
) -> dict[Hashable, tuple[Number, NumberDensity]]:
    """The number in parts of its fine cells, and its density, of each number that has a table of its fine grid.

    Parameters
    ----------
    release : Release
    names : iterable of names
    numbers : mapping of name to Number, optional
        In fine cells, which come first in their tables. Default: the schema's.
    """
    stages = _stages(release)
    if numbers is None:
        numbers = (stages[0].schema if stages else release.schema).numbers
    ends = [0, *(stage.tables for stage in stages), len(release.values)]
    fine = first_tables(release, ends[1])
    told = {}
    means = {decode_label(said["variable"]): said for said in release.public.get("means", ())}
    for name in names:
        number, said = numbers[name], means.get(name)
        mean = None if said is None else ClippedMean(said["clip"], said["value"], said["deviation"])
        n = len(number.cells)
        counts, deviation = fine[(name,)]
        coarse = None
        if len(stages) > 1 and (name,) in (second := first_tables(release, ends[2], ends[1])):
            groups = stages[0].places[name][:n]
            values, noise = second[(name,)]
            coarse = Counts(groups, values[: groups[-1] + 1].astype(float), noise)
        first = Counts(np.arange(n), counts[:n].astype(float), deviation)
        told[name] = number_density(number, first, coarse, mean)
    return told


def first_tables(release: Release, end: int | None = None, start: int = 0) -> dict[tuple, tuple[np.ndarray, float]]:
    """Some tables of a release, each with the standard deviation of the noise in a cell; the first of each scope."""
    released = list(zip(release.scopes, release.values, release.noise, strict=False))[start:end]
    return {scope: (value, math.sqrt(noise.variance)) for scope, value, noise in released[::-1] if noise is not None}
