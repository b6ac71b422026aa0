"""Exact statistics that must not leave the boundary, and the noisy ones that may."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn

import numpy as np

from pgmpy_dp.private.adjacency import Adjacency, Tables, agreement
from pgmpy_dp.private.array_file import array_file, read_array_file
from pgmpy_dp.private.atomic_file import write_atomically
from pgmpy_dp.private.entry import decode_unit, encode_unit
from pgmpy_dp.private.guarantee import Guarantee, fresh_guarantee, guarantee_from_dict
from pgmpy_dp.private.named_values import Question
from pgmpy_dp.schema import Schema, decode_label
from pgmpy_dp.schema.stored import read_from

_FORMAT, _VERSION = "pgmpy_dp.release", 2
_BOUNDARY = frozenset(
    {
        *("schema", "scopes", "n_records", "n_units", "n_users", "unit", "rows_per_unit"),
        *("linked", "fine", "vouched_for", "interrupted", "paid", "public_tables"),
    }
)
"""What a guarantee is about: a plan's fact of such a name is not among the public ones."""

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

        For matrix distributions it is scale**2, the variance of their cells before rounding to integers. The Laplace's
        is at least 1e-30: with hardly any noise it is below every float, and a precision has to be finite.
        """
        if self.distribution != "discrete_laplace":
            return self.scale**2
        return max(0.5 / math.sinh(0.5 / max(self.scale, 2e-3)) ** 2, 1e-30)


@dataclass(frozen=True, eq=False)
class Value:
    """One array of a release.

    Attributes
    ----------
    name : str
    array : ndarray of int64
        Read-only.
    noise : Noise or None
        None where it is not a statistic plus noise, but was computed from such.
    operator : str or None
        The curator's operator that released it; None where a plan computed it from what was released, and in releases
        of before 0.3.
    arguments : mapping
        The operator's public arguments; see :func:`~pgmpy_dp.private.named_values.told`.
    """

    name: str
    array: np.ndarray
    noise: Noise | None
    operator: str | None = None
    arguments: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, eq=False)
class Release:
    """The public, frozen outcome of one mechanism: enough to learn from without the records.

    Parameters
    ----------
    kind : str
        What `values` are; "marginals" for noisy contingency tables.
    values : tuple of ndarray of int64
        Of any shapes, read-only. For marginals, table c has shape ``(cardinality(v) for v in scopes[c])``.
    noise : tuple of Noise or None
        One per value; None where the value is not a statistic plus noise, but was computed from such.
    public : mapping
        JSON-able facts that the boundary states: ``schema``, ``scopes``, ``n_records``, ``unit``; ``paid``, the names
        of the ledger and of its charge, where noise is not repeatable.
    adjacency : Adjacency
    guarantee : Guarantee
        Of this release alone.
    mechanism : str
    reproducible : bool
        True when the noise came from a seed: then nothing is protected.
    facts : mapping
        JSON-able facts that the plan states: ``settings``, and what its values mean.
    questions : sequence of (Question or None)
        The question that each value answers; None where the plan computed it. Default: nothing is known.
    names : sequence of str
        Names of the values, all different; that of a table is its variables. Default: "value 0", "value 1", ...

    Attributes
    ----------
    public : mapping
        The facts of boundary and plan; the plan does not change those of the boundary.
    facts : mapping
        The facts of the plan alone.

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
    >>> release.names, release["rain, wet"].array.shape, str(release.guarantee)
    (('rain, wet',), (2, 2), '1-DP')
    >>> release["rain, wet"].operator, release["rain, wet"].noise.scale
    ('tables', 1.0)
    """

    kind: str
    values: tuple[np.ndarray, ...]
    noise: tuple[Noise | None, ...]
    public: Mapping[str, Any]
    adjacency: Adjacency
    guarantee: Guarantee
    mechanism: str
    reproducible: bool = False
    facts: Mapping[str, Any] = field(default_factory=dict)
    questions: tuple[Question | None, ...] = ()
    names: tuple[str, ...] = ()
    _header: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        values, noise = tuple(_read_only(value) for value in self.values), tuple(self.noise)
        names = tuple(self.names) or tuple(f"value {k}" for k in range(len(values)))
        copies = {id(question): question.copy() for question in self.questions if question is not None}
        questions = tuple(copies.get(id(question)) for question in self.questions) or (None,) * len(values)
        for name, entries in (("noise", noise), ("names", names), ("questions", questions)):
            if len(entries) != len(values):
                raise ValueError(f"{name} has {len(entries)} entries for {len(values)} values; pass one per value")
        if len(set(names)) != len(names):
            raise ValueError(f"names={names!r} has one twice; pass another for each value")
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "noise", noise)
        object.__setattr__(self, "questions", questions)
        object.__setattr__(self, "adjacency", Adjacency.parse(self.adjacency))
        different = {id(question): question for question in questions if question is not None}
        places = {one: place for place, one in enumerate(different)}
        said_by = [{name: said for name, said in vars(one).items() if name != "_text"} for one in different.values()]
        header = {
            "format": _FORMAT,
            "version": _VERSION,
            "kind": self.kind,
            "values": [
                {
                    "name": name,
                    "noise": None if law is None else [law.distribution, float(law.scale)],
                    "asked": None if question is None else places[id(question)],
                }
                for name, law, question in zip(names, noise, questions, strict=True)
            ],
            "asked": said_by,
            "public": dict(self.public),
            "facts": dict(self.facts),
            "adjacency": str(self.adjacency),
            "guarantee": self.guarantee.to_dict(),
            "mechanism": self.mechanism,
            "reproducible": bool(self.reproducible),
        }
        text = json.dumps(header, sort_keys=True)
        object.__setattr__(self, "_header", text)
        said = json.loads(text)
        plain = {name: fact for name, fact in said["facts"].items() if name not in _BOUNDARY}
        object.__setattr__(self, "facts", MappingProxyType(said["facts"]))
        object.__setattr__(self, "public", MappingProxyType(plain | said["public"]))

    def __getitem__(self, name: str) -> Value:
        """The value of this name; KeyError for another."""
        try:
            place = self._places[name]
        except (KeyError, TypeError):
            raise KeyError(f"{name!r} is no value of this release, which has {list(self.names)}") from None
        question = self.questions[place]
        request = () if question is None else (question.operator, MappingProxyType(dict(question.arguments)))
        return Value(name, self.values[place], self.noise[place], *request)

    def __contains__(self, name: object) -> bool:
        return name in self.names

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.names)}

    @cached_property
    def schema(self) -> Schema:
        """The schema of the records, or the one that was discovered; ValueError for a kind of release without one.

        Where states were discovered, or merged by what was released, it says what this release cost
        (`Schema.discovered`).
        """
        said = self._schema_without_cost
        if self.kind != "discovery" and "fine" not in self.public:
            return said
        budget, public = self.budget, {"paid": {}, **json.loads(self._header)["public"]}
        cost = {
            "guarantee": self.guarantee.to_dict(),
            "asked": None if budget == self.guarantee.to_dict() else budget,
            "adjacency": str(self.adjacency),
            "mechanism": self.mechanism,
            "reproducible": self.reproducible,
            "unit": encode_unit(self.unit),
            "ledger": public["paid"].get("ledger"),
            "charge": public["paid"].get("charge"),
            **{name: public[name] for name in ("public_tables",) if name in public},
        }
        return said.discovered_under([*said.discovered, cost])

    @cached_property
    def _schema_without_cost(self) -> Schema:
        in_facts = self.kind == "discovery" and "found" in self.facts
        said = Schema.from_dict(self.facts["found"] if in_facts else self._said("schema"))
        return said.discovered_under([*said.discovered, *self._of_the_model])

    @property
    def _of_the_model(self) -> Sequence[Mapping[str, Any]]:
        """The cost of a model's discovered states, in a release of scores: it is part of what the model cost."""
        return self.facts.get("model_discovered", ())

    @property
    def schema_costs(self) -> list[Mapping[str, Any]]:
        """The costs of discovering parts of the schema it was made with, beside its own cost and that of a model."""
        if self.kind != "discovery" and "schema" not in self.public:
            return []
        return [cost for cost in self._schema_without_cost.discovered if cost not in self._of_the_model]

    @property
    def budget(self) -> Any:
        """The budget that it was made for, as a guarantee's dict, as far as the plan says."""
        settings = self.public.get("settings")
        return settings.get("budget") if isinstance(settings, Mapping) else self.public.get("budget")

    @cached_property
    def scopes(self) -> tuple[tuple, ...]:
        """Variables of each table, in the order of its axes; ValueError for a kind of release without tables."""
        return tuple(tuple(decode_label(name) for name in scope) for scope in self._said("scopes"))

    @property
    def n_records(self) -> int | None:
        """The public number of records, if one was declared."""
        return json.loads(self._header)["public"].get("n_records")

    @property
    def public_tables(self) -> Tables:
        """The columns of tables of these records that its guarantee counts as known: neighbours agree on them."""
        said = json.loads(self._header)["public"].get("public_tables", ())
        return tuple(tuple(map(decode_label, scope)) for one in said for scope in one["tables"])

    @property
    def floating_point(self) -> bool:
        """Whether any of the noise is made in floating point (`Noise.floating_point`); a release says so when shown."""
        return any(noise is not None and noise.floating_point for noise in self.noise)

    @property
    def unit(self) -> Any:
        """The protected unit: None is a record; else the column (or `Unit`) of which each value, with all rows, is."""
        said = json.loads(self._header)["public"]
        # Of linked tables those of 0.3 had the kind in the schema alone.
        return decode_unit(said.get("unit"), said.get("linked", {}).get("key_kind"))

    def part(self, kind: str, names: Mapping[str, str], facts: Mapping[str, Any]) -> Release:
        """Some values under other names, as a release of another kind with the same guarantee.

        It is of a part of the records, whose number is not public.

        Parameters
        ----------
        kind : str
        names : mapping of str to str
            From the name of a value to the one that it gets.
        facts : mapping
            Of the part.

        Returns
        -------
        Release
        """
        places = [self._places[name] for name in names]
        return Release(
            kind,
            tuple(self.values[k] for k in places),
            tuple(self.noise[k] for k in places),
            json.loads(self._header)["public"] | {"n_records": None},
            self.adjacency,
            self.guarantee,
            self.mechanism,
            self.reproducible,
            facts,
            tuple(self.questions[k] for k in places),
            tuple(names.values()),
        )

    def published_with(self, guarantee: Guarantee, facts: Mapping[str, Any]) -> Release:
        """The same with the guarantee of everything that it was published with, or because of, which its own implies.

        Parameters
        ----------
        guarantee : PureDP, ZCDP, ReservedZCDP or ApproxDP
        facts : mapping
            Facts of the plan, beside those that it has or in their place.

        Returns
        -------
        Release

        Raises
        ------
        ValueError
            For a guarantee that its own does not imply, and for other facts, from which costs could be made up.
        """
        guarantee = fresh_guarantee(guarantee, "guarantee")
        if others := sorted(set(facts) - {"settings", "published_if"}):
            raise ValueError(f"facts has {others}; pass settings, and what it was published if")
        if not self.guarantee.implies(guarantee):
            raise ValueError(f"guarantee={guarantee} is not implied by {self.guarantee}, that of this release")
        boundary = json.loads(self._header)["public"]
        return Release(
            *(self.kind, self.values, self.noise, boundary, self.adjacency, guarantee, self.mechanism),
            *(self.reproducible, {**self.facts, **facts}, self.questions, self.names),
        )

    def with_rules(self, impossible: Sequence[str], linked: Mapping[str, Any] | None = None) -> Release:
        """Return the release with other rules about what is impossible, which models that are learned from it obey.

        Parameters
        ----------
        impossible : sequence of str
            In the place of those of its schema.
        linked : mapping, optional
            Of linked tables, what describes both with these rules.

        Returns
        -------
        Release

        Raises
        ------
        ValueError
            For rules that do not suit the states in which it counts.
        """
        boundary = json.loads(self._header)["public"]
        boundary["schema"] = Schema.from_dict(boundary["schema"]).replaced({}, impossible).to_dict()
        boundary |= {} if linked is None else {"linked": dict(linked)}
        return Release(
            *(self.kind, self.values, self.noise, boundary, self.adjacency, self.guarantee, self.mechanism),
            *(self.reproducible, self.facts, self.questions, self.names),
        )

    def _said(self, key: str) -> Any:
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
            f"Release(kind={self.kind!r}, values={len(self.values)}, guarantee={self.guarantee}"
            f"{agreement(self.public_tables)}, adjacency={str(self.adjacency)!r}, mechanism={self.mechanism!r}{flag})"
        )

    def __reduce__(self) -> tuple:
        return (_restore, (json.loads(self._header), self.values))

    def save(self, path: str | Path) -> None:
        """Write everything to one ``.npz`` file (arrays and a JSON header, no pickle), whole or not at all.

        A new file is its owner's alone: whoever decides to publish it says so.

        Parameters
        ----------
        path : str or Path
        """
        arrays = {f"value_{k}": value for k, value in enumerate(self.values)}
        write_atomically(path, array_file(json.loads(self._header), arrays), private=True)

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
            If the file is not a release, or is damaged.
        """
        content = Path(path).read_bytes()
        with read_from(path, "a release", "pass a file of Release.save"):
            header, arrays = read_array_file(content, _FORMAT, _VERSION)
            values = [arrays.pop(f"value_{k}") for k in range(len(arrays))]
            if any(value.dtype != np.int64 for value in values):
                raise ValueError("it has a value that is not made of integers")
            return _restore(header, values)


def _restore(header: Mapping[str, Any], values: Sequence[np.ndarray]) -> Release:
    listed = header["values"]
    noise = [None if item["noise"] is None else Noise(*item["noise"]) for item in listed]
    different = [Question.from_dict(question) for question in header["asked"]]
    questions = [None if item["asked"] is None else different[item["asked"]] for item in listed]
    texts = [header["kind"], header["mechanism"], *(item["name"] for item in listed)]
    if not all(isinstance(text, str) for text in texts) or type(header["reproducible"]) is not bool:
        raise ValueError("its header has a part of another type than a release has")
    count = header["public"].get("n_records")
    if count is not None and type(count) is not int:
        raise ValueError(f"its number of records is {count!r}")
    return Release(
        kind=header["kind"],
        values=tuple(values),
        noise=tuple(noise),
        public=header["public"],
        adjacency=header["adjacency"],
        guarantee=guarantee_from_dict(header["guarantee"]),
        mechanism=header["mechanism"],
        reproducible=header["reproducible"],
        facts=header["facts"],
        questions=tuple(questions),
        names=tuple(item["name"] for item in listed),
    )


def _read_only(value: np.ndarray) -> np.ndarray:
    array = np.array(value, dtype=np.int64, order="C", copy=True)
    array.setflags(write=False)
    return array
