"""Categories and cuts that nobody has listed, for a part of a budget: a schema for the fits that spend the rest."""

from __future__ import annotations

import math
import warnings
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pgmpy_dp.learning.display import Shown
from pgmpy_dp.learning.few_records import FEW, FewRecordsWarning
from pgmpy_dp.learning.options import adjacencies, arguments_of, declares, whole
from pgmpy_dp.learning.privacy_record import Privacy, handed_over, released, require_release
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.atomic_file import write_atomically
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.data.columns import PrivateColumns, text_columns
from pgmpy_dp.private.data.data_base import PrivateData
from pgmpy_dp.private.guarantee import Guarantee
from pgmpy_dp.private.ledger import Ledger
from pgmpy_dp.private.sensitive import Release
from pgmpy_dp.schema import Schema, decode_label, encode_label
from pgmpy_dp.shown import quantity, shown
from pgmpy_dp.tables import category_search as plan

_TO_KEEP = "to keep such a column spend more, ask for fewer columns, or list its states"


@dataclass(frozen=True, eq=False)
class Discovery(Shown):
    """A discovered schema and its cost; ``str`` of it is a summary to read.

    Attributes
    ----------
    schema : Schema
        All columns but `left_out`. Categories are in a fixed order: numbers, texts, missing (None), and the other-state
        last.
    counts : dict of hashable to pandas.Series
        For each column that was looked at, about how many records each of its categories or cells has. Categories have
        noise of standard deviation `sd`, and are those that reached the threshold: the counts of the smallest are
        somewhat too large. Those of cells were computed from several noisy tables.
    sd, threshold : float
        The noise's deviation and the threshold of categories; NaN where none were looked for. A category of fewer
        records than ``threshold - 3 sd`` is almost never released, one of more than ``threshold + 3 sd`` nearly always.
    n_records, n_records_sd : float
        The public number of records (with 0), or its estimate and standard deviation.
    release_ : Release
    privacy_ : Privacy
    """

    schema: Schema
    counts: dict[Hashable, pd.Series]
    sd: float
    threshold: float
    n_records: float
    n_records_sd: float
    release_: Release
    privacy_: Privacy

    @classmethod
    def of(cls, release: Release, privacy: Privacy | None = None) -> Discovery:
        """Read a release that was kept; TypeError or ValueError for one of another kind.

        Parameters
        ----------
        release : Release
        privacy : Privacy, optional
            Default: what the release says.
        """
        require_release(release)
        if release.kind != "discovery":
            raise ValueError(f"release has kind {release.kind!r}, this needs one of kind 'discovery'")
        values = [release[name] for name in release.names]
        n, n_sd = float(release.n_records or 0), 0.0
        if release.n_records is None:
            count, *values = values
            assert count.noise is not None
            n, n_sd = float(count.array[0]), math.sqrt(count.noise.variance)
        counted = [
            (decode_label(name), [decode_label(s) for s in labels]) for name, labels in release.public["counted"]
        ]
        counts = {
            name: pd.Series(
                value.array, index=pd.Index(labels, dtype=object, name=name, tupleize_cols=False), name="records"
            )
            for (name, labels), value in zip(counted, values, strict=True)
        }
        deviations = (math.sqrt(value.noise.variance) for value in values if value.noise is not None)
        sd = release.public.get("sd") or next(deviations, math.nan)  # releases of 0.3 do not say it
        threshold = math.nan if release.public["threshold"] is None else float(release.public["threshold"])
        return cls(
            *(_without_poor(release.schema, counts), counts, sd, threshold),
            *(n, n_sd, release, Privacy.of(release) if privacy is None else privacy),
        )

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee, which is also the cost."""
        return self.release_.guarantee

    @property
    def few(self) -> bool:
        """Whether there are next to no records, or so much noise that it looks so."""
        return self.n_records < FEW * self.n_records_sd

    @property
    def poor(self) -> list:
        """The columns of categories in which no category is frequent enough."""
        return [name for name, counts in self.counts.items() if name not in self.schema.numbers and not len(counts)]

    def to_json(self, path: str | Path) -> None:
        """Write the schema to a JSON file that :meth:`~pgmpy_dp.Schema.from_json` reads, with what it cost.

        Parameters
        ----------
        path : str or Path
        """
        write_atomically(path, self.schema.to_text().encode())

    @property
    def failed(self) -> bool:
        """Whether next to no records were seen, or nothing was found in any column."""
        return bool(self.few or (self.poor and not self.left_out))

    @property
    def left_out(self) -> list:
        """The columns that are not in the schema, since all their cells would be in one state."""
        return [name for name in self.release_.schema if name not in self.schema]

    def columns(self) -> list[dict[str, Any]]:
        """The facts on each column that was looked at, for programs."""
        return [
            {"variable": encode_label(name), "labels": [encode_label(s) for s in part.index], "records": part.tolist()}
            for name, part in self.counts.items()
        ]

    def to_dict(self) -> dict[str, Any]:
        """The facts for programs, as JSON can hold them."""
        told = {"n_records": self.n_records, "n_records_sd": self.n_records_sd, "columns": self.columns()}
        told["left_out"] = [encode_label(name) for name in self.left_out]
        return {**told, "threshold": self.release_.public["threshold"], **self.privacy_.told()}

    def __str__(self) -> str:
        records = f"about {max(self.n_records, 0.0):,.0f} (sd {self.n_records_sd:,.0f})"
        lines = [f"Records: {records if self.n_records_sd else f'{self.n_records:,.0f}, as declared'}"]
        if self.few:
            lines[0] += ": next to nothing; there are few records, or the budget is too small"
        if not math.isnan(self.threshold):
            lines.append(f"Categories that about {quantity(self.threshold, 'record')} or more have (sd {self.sd:,.0f})")
        columns = self.release_.schema.variables
        width = max(len(shown(name)) for name in columns)
        lines += [f"  {shown(name):<{width}}  {self._told(name)}" for name in columns]
        lines.append(f"Spent {self.privacy_}")
        return "\n".join(lines)

    def _told(self, name: Hashable) -> str:
        number = self.release_.schema.numbers.get(name)
        if number is not None and not number.divided:
            return f"{number.kind}s {number.text(number.lower)} to {number.text(number.upper)}, which fits divide"
        if name not in self.counts:
            return f"as declared, {quantity(self.release_.schema.cardinality(name), 'state')}"
        if number is not None:
            cuts = [number.text(cut) for cut in number.edges[1:-1]]
            return _short(f"{quantity(number.cells, 'cell')}: ", cuts, "cut at ")
        counts = self.counts[name]
        rest = self.n_records - float(counts.sum())
        other = f"; about {max(rest, 0.0):,.0f} others"
        if self.release_.schema.other.get(name) is not None:
            other += f" are {self.release_.schema.other[name]!r}"
        elif self.release_.schema.states[name]:
            other += " do not count"
        if not len(counts):
            left = f"; left out of the schema: {_TO_KEEP}" if name in self.left_out else other
            return f"no category has so many records{left}"
        most = counts.sort_values(ascending=False, kind="stable")
        names = ["missing" if s is None else shown(s) for s in most.index]
        return _short(f"{quantity(counts, 'category')}: ", names) + other

    def __repr__(self) -> str:
        return f"Discovery({self.schema!r}; {self.privacy_})"


def discover_columns(
    df: Any, variables: Mapping[Any, Any], budget: Budget, ledger: Ledger | Budget | None, **options: Any
) -> Discovery:
    """Discover the columns of one table, for :func:`pgmpy_dp.discover`."""
    data, settings = columns_to_look_at(df, variables, budget, ledger, **options)
    discovery = look_at(data, settings, budget)
    with handed_over(discovery.release_):
        warn_of_few(discovery)
        return discovery


@declares(
    max_categories=whole(1),
    max_length=whole(1),
    bins=whole(2, 100),  # many more would make divisions of many thousand cells
    adjacency=adjacencies(),
    n_records=whole(0),
    random_state=whole(0),
)
def columns_to_look_at(
    df: Any,
    variables: Mapping[Any, Any],
    budget: Budget,
    ledger: Ledger | Budget | None,
    *,
    adjacency: str | None = None,
    n_records: int | None = None,
    random_state: int | None = None,
    unit: Hashable = None,
    missing: Any = (),
    strip: Any = False,
    casefold: Any = False,
    recode: Any = None,
    codes: bool | Iterable[Hashable] | None = None,
    impossible: Iterable[str | Mapping] = (),
    other: Hashable | None = "other",
    max_categories: int = 100,
    max_length: int = 100,
    bins: int | None = None,
) -> tuple[PrivateColumns, plan.DiscoverSettings]:
    """Check the options of `discover`, and read the columns that it looks at; nothing is spent yet."""
    if isinstance(df, PrivateData):
        raise TypeError(
            f"df is a {type(df).__name__}, whose columns are declared already; pass the records that it was made from, "
            "and its ledger as ledger="
        )
    function = columns_to_look_at
    known = arguments_of(function, adjacency=adjacency, n_records=n_records, random_state=random_state)
    limits = arguments_of(function, max_categories=max_categories, max_length=max_length, bins=bins)
    settings = plan.DiscoverSettings.of(
        variables,
        other=other,
        recode=recode,
        codes=_codes(df, variables, codes),
        impossible=impossible,
        reading={"missing": missing, "strip": strip, "casefold": casefold},
        **vars(limits),
        random_state=known.random_state,
    )
    plan.require_payable(settings, budget)  # before records are read
    charged = ledger.adjacency if isinstance(ledger, Ledger) else None
    data = PrivateColumns(
        df,
        settings.columns,
        adjacency=known.adjacency or str(charged or Adjacency.ADD_REMOVE),
        ledger=budget if ledger is None else ledger,
        n_records=known.n_records,
        unit=unit,
        random_state=known.random_state,
    )
    return data, settings


def _codes(df: Any, variables: Any, codes: bool | Iterable[Hashable] | None) -> list[Hashable]:
    """The columns of codes: those that are named, and categories that are texts unless it is said."""
    declared = variables if isinstance(variables, Mapping) else {}
    wanted = [name for name, said in declared.items() if isinstance(said, str) and said == plan.CATEGORIES]
    if isinstance(codes, bool):
        return wanted if codes else []
    if isinstance(codes, str | bytes) or not isinstance(codes, Iterable | None):
        raise TypeError(f"codes={codes!r} is not a list of names; pass codes=[name], or True or False")
    return list(dict.fromkeys([*(codes or ()), *(text_columns(df, wanted) if wanted else ())]))


def look_at(data: PrivateColumns, settings: plan.DiscoverSettings, budget: Budget) -> Discovery:
    """Spend a budget on the columns, and return the discovery."""
    release = released(data, plan.run, settings, budget)
    with handed_over(release):
        return Discovery.of(release, Privacy.of(release, data.ledger.entries))


def warn_of_few(discovery: Discovery) -> None:
    """Warn the caller's caller with a `FewRecordsWarning` where there is next to nothing."""
    if discovery.few or discovery.poor:
        warnings.warn(_few(discovery), FewRecordsWarning, stacklevel=3)


def _few(discovery: Discovery) -> str:
    if discovery.few:
        return (
            f"about {quantity(max(discovery.n_records, 0.0), 'record')} (standard deviation "
            f"{discovery.n_records_sd:,.0f}), which is next to nothing: what was found is noise. "
            "Either there are few records, or the budget is too small"
        )
    return (
        f"no category of {discovery.poor} has some {quantity(discovery.threshold, 'record')} or more, so that all of "
        f"them are one state{', and the schema leaves them out' if discovery.left_out else ''}; {_TO_KEEP}"
    )


def _without_poor(schema: Schema, counts: Mapping[Hashable, pd.Series]) -> Schema:
    """The schema without columns of categories in which all cells are one state; whole where nothing would be left."""

    def has_states(name: Hashable) -> bool:
        known = {None, plan.CATEGORIES, schema.other.get(name)}
        return name not in counts or name in schema.numbers or bool(set(schema.states[name]) - known)

    kept = [name for name in schema if has_states(name)]
    return schema.subset(kept) if kept and len(kept) < len(schema) else schema


def _short(start: str, parts: list[str], more: str = "", most: int = 60) -> str:
    """The first of some texts, as many as fit."""
    some = [
        part for part, length in zip(parts, np.cumsum([len(part) + 2 for part in parts]), strict=True) if length < most
    ]
    return start + more + ", ".join(some) + (", ..." if len(some) < len(parts) else "")
