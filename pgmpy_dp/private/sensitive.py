"""Exact statistics that must not leave the boundary, and the noisy ones that may."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn

import numpy as np

from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.atomic_file import write_atomically
from pgmpy_dp.private.guarantee import Guarantee, guarantee_from_dict
from pgmpy_dp.schema import Schema, decode_label

__all__ = ["Noise", "Release", "Sensitive"]

_DISTRIBUTIONS = ("discrete_laplace", "discrete_gaussian")
_EXACT_MATRIX_DISTRIBUTIONS = ("discrete_wishart",)
_MATRIX_DISTRIBUTIONS = ("double_wishart", "one_sided_wishart", "frobenius")


@dataclass(frozen=True, eq=False, repr=False)
class Sensitive:
    """An exact statistic of the records, with how far one change of the records can move it.

    It exists only between counting and noise: it shows nothing of its value and refuses to be copied or pickled.

    Parameters
    ----------
    value : ndarray of int64
    adjacency : Adjacency
    l1, l2, linf : float
        Upper bounds on the norms of the difference of `value` between any two datasets that are neighbours under
        `adjacency`. As floats they must be rounded up, never to nearest.
    """

    value: np.ndarray
    adjacency: Adjacency
    l1: float
    l2: float
    linf: float

    def __repr__(self) -> str:
        return (
            f"Sensitive(hidden, shape={self.value.shape}, adjacency={str(self.adjacency)!r}, "
            f"l1={self.l1:g}, l2={self.l2:g}, linf={self.linf:g})"
        )

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a Sensitive value cannot be copied or pickled: it holds exact statistics of private records")


@dataclass(frozen=True)
class Noise:
    """Distribution of the integer noise in every cell of one released array.

    Parameters
    ----------
    distribution : str
        "discrete_laplace", "discrete_gaussian": P(z) proportional to exp(-abs(z)/scale), or to exp(-z**2/(2 scale**2)),
        on the integers, independent between cells. "discrete_wishart", "one_sided_wishart", "frobenius": the cells of
        one symmetric random matrix, or linear functions of them, uncorrelated but not independent, see
        :mod:`pgmpy_dp.private.noise.matrix`; "double_wishart" in releases of before 2027, made in floating point.
    scale : float
        Positive, in counts; of a matrix distribution the standard deviation of one cell.
    """

    distribution: str
    scale: float

    def __post_init__(self) -> None:
        known = _DISTRIBUTIONS + _EXACT_MATRIX_DISTRIBUTIONS + _MATRIX_DISTRIBUTIONS
        if self.distribution not in known:
            raise ValueError(f"distribution={self.distribution!r} is unknown; use one of {known}")
        if not (isinstance(self.scale, int | float) and math.isfinite(self.scale) and self.scale > 0):
            raise ValueError(f"scale={self.scale!r} is not a positive finite number")

    @property
    def floating_point(self) -> bool:
        """Whether the noise is made in floating point: its guarantee is then one of real numbers, not of what is run.

        True for the matrix distributions but the discrete Wishart; the others are exact integer noise.
        """
        return self.distribution in _MATRIX_DISTRIBUTIONS

    @property
    def mean_size(self) -> float:
        """Expected absolute value of one cell's noise (of its continuous counterpart)."""
        return self.scale if self.distribution == "discrete_laplace" else self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self) -> float:
        """Variance of one cell's noise: exact for the Laplace; for the Gaussian, scale**2, which bounds it above.

        For matrix distributions scale**2, their cells' variance before rounding to integers.
        """
        if self.distribution != "discrete_laplace":
            return self.scale**2
        return 0.5 / math.sinh(0.5 / self.scale) ** 2 if self.scale > 2e-3 else 0.0


@dataclass(frozen=True, eq=False)
class Release:
    """What one mechanism let out: public, frozen, and enough to learn from without the records.

    Parameters
    ----------
    kind : str
        What `values` are; "marginals" for noisy contingency tables.
    values : tuple of ndarray of int64
        Read-only. For marginals, table c has shape ``(cardinality(v) for v in scopes[c])``.
    noise : tuple of Noise or None
        One per value; None where the value is not a statistic plus noise, but was computed from such.
    public : mapping
        JSON-able public facts. For marginals: ``schema``, ``scopes``, ``n_records`` and ``settings``.
    adjacency : Adjacency
    guarantee : Guarantee
        Of this release alone.
    mechanism : str
    reproducible : bool
        True when the noise came from a seed: then nothing is protected.

    Notes
    -----
    Everything computed from a release is post-processing and costs nothing. Two releases are equal when their contents
    are.

    Examples
    --------
    >>> from pgmpy_dp import PrivateTable, Schema
    >>> from pgmpy_dp.estimators import NaiveMLE
    >>> import networkx as nx, pandas as pd
    >>> data = pd.DataFrame({"rain": ["no"] * 700 + ["yes"] * 300, "wet": ["no"] * 600 + ["yes"] * 400})
    >>> states = {"rain": ["no", "yes"], "wet": ["no", "yes"]}
    >>> release = NaiveMLE(epsilon=1.0, state_names=states).fit(nx.Graph([("rain", "wet")]), data).release_
    >>> release.scopes, release.values[0].shape, str(release.guarantee)
    ((('rain', 'wet'),), (2, 2), '1-DP')
    """

    kind: str
    values: tuple[np.ndarray, ...]
    noise: tuple[Noise | None, ...]
    public: Mapping[str, Any]
    adjacency: Adjacency
    guarantee: Guarantee
    mechanism: str
    reproducible: bool = False
    _header: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        values = tuple(_read_only(value) for value in self.values)
        noise = tuple(self.noise)
        if len(noise) != len(values):
            raise ValueError(f"noise has {len(noise)} entries for {len(values)} values; pass one per value")
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "noise", noise)
        object.__setattr__(self, "adjacency", Adjacency.parse(self.adjacency))
        header = {
            "format": "pgmpy_dp.release",
            "version": 1,
            "kind": self.kind,
            "noise": [None if item is None else [item.distribution, float(item.scale)] for item in noise],
            "public": dict(self.public),
            "adjacency": str(self.adjacency),
            "guarantee": self.guarantee.to_dict(),
            "mechanism": self.mechanism,
            "reproducible": bool(self.reproducible),
        }
        text = json.dumps(header, sort_keys=True)
        object.__setattr__(self, "_header", text)
        object.__setattr__(self, "public", MappingProxyType(json.loads(text)["public"]))

    @cached_property
    def schema(self) -> Schema:
        """Schema of the records; ValueError for a kind of release without one."""
        return Schema.from_dict(self._public("schema"))

    @cached_property
    def scopes(self) -> tuple[tuple, ...]:
        """Variables of each table, in the order of its axes; ValueError for a kind of release without tables."""
        return tuple(tuple(decode_label(name) for name in scope) for scope in self._public("scopes"))

    @property
    def n_records(self) -> int | None:
        """The public number of records, if one was declared."""
        return json.loads(self._header)["public"].get("n_records")

    @property
    def floating_point(self) -> bool:
        """Whether any of the noise is made in floating point (`Noise.floating_point`); a release says so when shown."""
        return any(noise is not None and noise.floating_point for noise in self.noise)

    @property
    def unit(self) -> Any:
        """What is protected: None is one record; else the column whose values are, each with all its rows."""
        return decode_label(json.loads(self._header)["public"].get("unit"))

    def _public(self, key: str) -> Any:
        # From the header, an immutable text; `public` is a copy of it for reading.
        public = json.loads(self._header)["public"]
        if key not in public:
            raise ValueError(f"a release of kind {self.kind!r} has no {key}")
        return public[key]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Release):
            return NotImplemented
        same = self._header == other._header and len(self.values) == len(other.values)
        return same and all(np.array_equal(a, b) for a, b in zip(self.values, other.values, strict=True))

    def __hash__(self) -> int:
        return hash((self._header, *(value.tobytes() for value in self.values)))

    def __repr__(self) -> str:
        flag = ", floating_point=True" if self.floating_point else ""
        flag += ", reproducible=True (NOT PRIVATE)" if self.reproducible else ""
        return (
            f"Release(kind={self.kind!r}, values={len(self.values)}, guarantee={self.guarantee}, "
            f"adjacency={str(self.adjacency)!r}, mechanism={self.mechanism!r}{flag})"
        )

    def __reduce__(self) -> tuple:
        return (_restore, (self._header, self.values))

    def save(self, path: str | Path) -> None:
        """Write everything to one ``.npz`` file (arrays and a JSON header, no pickle), whole or not at all.

        Parameters
        ----------
        path : str or Path
        """
        stream = io.BytesIO()
        arrays: dict[str, Any] = {f"value_{k}": value for k, value in enumerate(self.values)}
        np.savez_compressed(stream, header=np.frombuffer(self._header.encode(), dtype=np.uint8), **arrays)
        write_atomically(path, stream.getvalue())

    @classmethod
    def load(cls, path: str | Path) -> Release:
        """Read a file of :meth:`save`. Nothing in the file is executed.

        Parameters
        ----------
        path : str or Path

        Returns
        -------
        Release

        Raises
        ------
        ValueError
            If the file is not a release.
        """
        try:
            with np.load(Path(path), allow_pickle=False) as stored:
                header = stored["header"].tobytes().decode()
                values = tuple(stored[f"value_{k}"] for k in range(len(stored.files) - 1))
            return _restore(header, values)
        except (OSError, MemoryError):
            raise
        except Exception as error:  # whatever numpy, zip and JSON find wrong with a file of another kind
            raise ValueError(f"{str(path)!r} is not a release; pass a file of Release.save") from error


def _restore(header: str, values: Iterable[np.ndarray]) -> Release:
    content = json.loads(header)
    if not isinstance(content, dict) or content.get("format") != "pgmpy_dp.release" or content.get("version") != 1:
        raise ValueError("its header is not that of a release of version 1")
    return Release(
        kind=content["kind"],
        values=tuple(values),
        noise=tuple(None if item is None else Noise(*item) for item in content["noise"]),
        public=content["public"],
        adjacency=content["adjacency"],
        guarantee=guarantee_from_dict(content["guarantee"]),
        mechanism=content["mechanism"],
        reproducible=content["reproducible"],
    )


def _read_only(value: np.ndarray) -> np.ndarray:
    array = np.array(value, dtype=np.int64, order="C", copy=True)
    array.setflags(write=False)
    return array
