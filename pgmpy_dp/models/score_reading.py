"""Read the score of a model from its release, without the records."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pgmpy_dp.checks import checked_number
from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.learning.display import Shown
from pgmpy_dp.learning.few_records import few_records
from pgmpy_dp.learning.privacy_record import Privacy, require_release
from pgmpy_dp.models.posterior.noisy_ratio import ratio_interval
from pgmpy_dp.private.guarantee import Guarantee
from pgmpy_dp.private.sensitive import Release
from pgmpy_dp.schema import decode_label, encode_label
from pgmpy_dp.shown import quantity, shown


def digest_of(states: Mapping[Hashable, Iterable[Hashable]], model: LogLinearModel) -> str:
    """A digest of a model's tables and parameters with these states, in its own order: it tells models apart."""
    named = [[encode_label(v), [encode_label(s) for s in listed]] for v, listed in states.items()]
    scopes = [[encode_label(v) for v in scope] for scope in model.cliques.scopes]
    made = hashlib.blake2b(json.dumps([named, scopes]).encode(), digest_size=16)
    made.update(np.ascontiguousarray(model.theta, dtype="<f8").tobytes())
    return made.hexdigest()


@dataclass(frozen=True, eq=False, repr=False)
class ModelScore(Shown):
    """The distance between a model and the records, with noise; ``str`` of it is a summary to read.

    Attributes
    ----------
    table : pandas.DataFrame
        One row for each score: "pairs" and "triples", or "workload"; and "worst", if it was requested, the set of
        variables that was chosen as about the furthest off. ``tables`` is the number of tables in the mean.
        ``distance`` is the estimated total variation between the model's tables and those of the records; ``lower``
        and ``upper`` are its interval, of `level`. ``sampling`` is the distance that as many records would have from
        the very model that they were drawn from, in expectation: no model needs to be nearer.
    each : pandas.DataFrame or None
        The same columns for every set by itself, where that was requested.
    worst : tuple of variables or None
    level : float
    n_records, n_records_sd : float
        Estimated number of records inside the schema, and its standard deviation.
    release_ : Release
    privacy_ : Privacy
        Of the scores alone: what the model cost adds up with that.

    Notes
    -----
    The distance is to these records, not to the population that they were drawn from, and noise is all that is
    uncertain in it: the exact distance is computed inside the boundary, where noise of a known law is added. So
    estimates have no bias but for being clipped to [0, 1], and intervals hold for every table and every model
    (:func:`~pgmpy_dp.models.posterior.noisy_ratio.ratio_interval`). They hold one by one: of a hundred intervals ten
    miss at .9. A model's probabilities are rounded to multiples of 2**-30, which moves the distance of a table of k
    cells by at most k 2**-31.
    """

    table: pd.DataFrame
    each: pd.DataFrame | None
    worst: tuple[Hashable, ...] | None
    level: float
    n_records: float
    n_records_sd: float
    release_: Release
    privacy_: Privacy

    @classmethod
    def of(cls, release: Release, level: float = 0.9, privacy: Privacy | None = None) -> ModelScore:
        """Read the score from a release that was kept.

        Parameters
        ----------
        release : Release
        level : float in (0, 1)
            The level of intervals.
        privacy : Privacy, optional
            Default: what the release says.

        Raises
        ------
        TypeError, ValueError
            For a release of another kind, or one that was interrupted before there was a score.
        """
        require_release(release)
        level = checked_number("level", level, positive=True, below_one=True)
        if release.kind != "model_score":
            raise ValueError(f"release has kind {release.kind!r}, this needs one of kind 'model_score'")
        parts = list(release.public["released"])
        if "means" not in parts:
            raise ValueError("release was interrupted before there was a score; release.values has what there was")
        n, n_noise = float(release["count"].array[0]), release["count"].noise
        sampling = np.array(release.public["sampling"])
        scopes = [tuple(decode_label(name) for name in scope) for scope in release.public["tables"]]
        assert n_noise is not None

        def row(part: str, place: int, tables: int, expected: float) -> tuple[int, float, float, float, float]:
            distance, noise = float(release[part].array[place]), release[part].noise
            assert noise is not None
            lower, upper = ratio_interval(distance, n, noise.distribution, (noise.scale, n_noise.scale), level)
            estimate = min(max(distance / n, 0.0), 1.0) if n > 0 else math.nan
            return tables, estimate, lower, upper, expected

        means = [(name, dict(weights)) for name, weights in release.public["means"]]
        rows = {
            name: row("means", k, len(of), float(np.average(sampling[list(of)], weights=list(of.values()))))
            for k, (name, of) in enumerate(means)
        }
        worst = None
        if "worst" in parts:
            place = release.public["worst"]
            worst = scopes[place]
            rows["worst"] = row("worst", 0, 1, float(sampling[place]))
        columns = ["tables", "distance", "lower", "upper", "sampling"]
        each = None
        if "each" in parts:
            every = [row("each", k, 1, float(sampling[k])) for k in range(len(scopes))]
            index = pd.Index(scopes, name="variables", tupleize_cols=False)
            each = pd.DataFrame(every, index=index, columns=columns).drop(columns="tables")
        return cls(
            pd.DataFrame(rows.values(), index=pd.Index(list(rows), name="score"), columns=columns),
            *(each, worst, level, n, math.sqrt(n_noise.variance)),
            *(release, Privacy.of(release) if privacy is None else privacy),
        )

    def at(self, level: float) -> ModelScore:
        """The same score with intervals of another level."""
        return type(self).of(self.release_, level, self.privacy_)

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form, for programs."""
        few = few_records(self.n_records, self.n_records_sd)
        scores = self.table.reset_index().astype(object).to_dict("records")
        each = [] if self.each is None else self.each.reset_index().to_dict("records")
        return {
            "level": self.level,
            "scores": scores,
            "each": [{**row, "variables": [encode_label(name) for name in row["variables"]]} for row in each],
            "worst": None if self.worst is None else [encode_label(name) for name in self.worst],
            "n_records": self.n_records,
            "n_records_sd": self.n_records_sd,
            **self.privacy_.told(),
            "warnings": [] if few is None else [few],
        }

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of the score itself: what it cost."""
        return self.release_.guarantee

    @property
    def model(self) -> str:
        """The digest of the model that was scored; see `digest_of`."""
        return str(self.release_.public["settings"]["model"])

    def __repr__(self) -> str:
        told = ", ".join(f"{name} {row.distance:.4f}" for name, row in self.table.iterrows())
        return f"ModelScore({told}; {self.privacy_})"

    def __str__(self) -> str:
        lines = [
            f"Total variation between the model's tables and the records' own ({100 * self.level:g} % intervals)",
            *(f"  {_told(name, row, self.worst)}" for name, row in self.table.iterrows()),
            f"Records inside the schema: about {max(self.n_records, 0.0):,.0f} (sd {self.n_records_sd:,.0f})",
            f"Spent {self.privacy_}, beside what the model cost",
        ]
        return "\n".join(lines)


def _told(name: Hashable, row: Any, worst: tuple[Hashable, ...] | None) -> str:
    said = ", ".join(map(shown, worst or ())) if name == "worst" else quantity(row.tables, "table")
    what = f"{name}: {said}" if name == "worst" else f"{name}, {said}"
    sampled = f"sampling alone {row.sampling:.4f}"
    return f"{what:<28}  {row.distance:.4f}  ({row.lower:.4f} to {row.upper:.4f}; {sampled})"
