"""The privacy record that a fitted estimator and its model carry."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np

from pgmpy_dp.private.accounting import pure_to_zcdp, zcdp_to_approx
from pgmpy_dp.private.adjacency import Adjacency, Tables, agreement, exchange_words, named_tables
from pgmpy_dp.private.data.data_base import PrivateData
from pgmpy_dp.private.entry import Entry, decode_unit, encode_unit
from pgmpy_dp.private.guarantee import ZCDP, ApproxDP, Guarantee, PureDP, ReservedZCDP, guarantee_from_dict
from pgmpy_dp.private.sensitive import Release
from pgmpy_dp.schema import decode_label
from pgmpy_dp.schema.stored import content_digest
from pgmpy_dp.shown import quantity, shown

_PROMISES_NOTHING = 20
_OF_A_FILE = ("ledger", "learned_by")  # facts beside the guarantee


@dataclass(frozen=True)
class Privacy:
    """The record of the guarantee under which something was learned.

    Attributes
    ----------
    guarantee : PureDP, ZCDP or ApproxDP
        That of the release, together with those in which its schema was found, if there were any. Everything
        computed from them has the same guarantee.
    adjacency : Adjacency
        The relation of neighbouring datasets; the guarantee says nothing without it.
    mechanism : str
    reproducible : bool
        True where the noise came from a seed: then nothing is protected, whatever `guarantee` says.
    entries : tuple of Entry
        Everything charged to the ledger of the data up to and including this release; empty where
        the release came from a file.
    unit : hashable
        The unit that is protected: None is one record; else the column each of whose values is protected with
        all of its records, e.g. "user", or a `Unit`, which says how its cells are compared.
    prior : Privacy, optional
        Of an earlier release, on which the fit depends too through a prior model. It is not part of `guarantee`, which
        is of this release: see `total`. Whatever speaks of protection uses `together` and `unprotected`.
    schema : Privacy, optional
        Of the releases in which parts of the schema were found, together. It is part of `guarantee`.
    requested : ApproxDP or other guarantee, optional
        The budget that was passed, where it is another guarantee than `guarantee`, which implies it: (epsilon, delta)
        is spent as the zCDP that converts to it. None where it is the same, or the release does not say.
    rows_per_unit : int or "shares", optional
        How many records of a unit count at most; "shares": all count, and are 1 together. None without a unit, or where
        the release does not say.
    published_if : mapping, optional
        The criteria that it met to be published, in a noisy test (:func:`~pgmpy_dp.publish_if`): ``name``, texts
        of ``criteria``, their ``digest``, and which ``attempt`` it was. The test is part of `guarantee`.
    public_tables : tuple of mapping
        Tables of counts that the model agrees with and the guarantee counts as known: ``tables``, their variables;
        ``total``, the sum of each; ``from``, where they are from: "these records" (`agreed`), or "elsewhere" by what
        the caller says (`condition`).
    ledger : str, optional
        The random name (`Ledger.id`) of the ledger that paid; None where nothing says it.
    learned_by : str, optional
        The version of this package that learned the model; None where its file does not say.
    earned_by : tuple of model and str, optional
        A model of pgmpy's own class that has this record among its attributes, and the :func:`parameters_digest` that
        it was learned with: once it has another, the record is no longer printed as its guarantee.

    Examples
    --------
    >>> from pgmpy_dp.private.guarantee import ZCDP, ApproxDP, PureDP
    >>> print(Privacy(PureDP(1.0), Adjacency.ADD_REMOVE, "discrete Laplace"))
    1-DP under add_remove (discrete Laplace)
    >>> print(Privacy(ZCDP(0.0149), Adjacency.ADD_REMOVE, "discrete_gaussian", requested=ApproxDP(1.0, 1e-9)))
    (1, 1e-09)-DP (by 0.0149-zCDP) under add_remove (discrete_gaussian)
    """

    guarantee: Guarantee
    adjacency: Adjacency
    mechanism: str
    reproducible: bool = False
    entries: tuple[Entry, ...] = ()
    unit: Hashable = None
    prior: Privacy | None = None
    requested: Guarantee | None = None
    schema: Privacy | None = None
    rows_per_unit: int | str | None = None
    published_if: Mapping[str, Any] | None = None
    public_tables: tuple[Mapping[str, Any], ...] = ()
    ledger: str | None = field(default=None, compare=False)
    learned_by: str | None = field(default=None, compare=False)
    earned_by: tuple[Any, str] | None = field(default=None, compare=False, repr=False)

    @property
    def together(self) -> Privacy | None:
        """This release and those of its priors as one record, for someone whose records are in all of them.

        Someone whose records are in one of them has its guarantee. None where adjacency or unit differ, so that what
        the guarantees say cannot be added up, or where any of the noise is reproducible.
        """
        if self.reproducible or self._changed or self.prior is None:
            return None if self.reproducible or self._changed else self
        earlier = self.prior.together
        if earlier is None or (self.adjacency, self.unit) != (earlier.adjacency, earlier.unit):
            return None
        return replace(self._and(earlier), prior=None)

    @property
    def total(self) -> Guarantee | None:
        """The guarantee of `together`, None where that is."""
        return None if self.together is None else self.together.guarantee

    @property
    def paid(self) -> Privacy | None:
        """Everything that `entries` count, as one record, for whoever is in all of it: the sum of its costs.

        A prior and a schema that another ledger paid for, or that do not say which did, are added. Of costs in rho it
        says epsilon at the delta that was passed, or at that with what curators' reserves take, where they take more.
        None where no entries are recorded, and where nothing is promised.
        """
        whole, costs = self.together, [entry.cost for entry in self.entries]
        if whole is None or not costs or any(entry.reproducible for entry in self.entries):
            return None
        costs += [*self._paid_elsewhere(self.schema), *self._paid_elsewhere(self.prior)]
        total, delta = composed(*sorted(costs, key=lambda cost: isinstance(cost, ApproxDP))), self.delta
        said = whole.requested if total == whole.guarantee else None  # a conversion takes SciPy, a second to import
        if said is None and delta and isinstance(total, ZCDP | ReservedZCDP):
            eta = getattr(total, "eta", 0.0)
            delta = delta if eta < delta else _sum(delta, eta)
            said = ApproxDP(zcdp_to_approx(total.rho, math.nextafter(delta - eta, 0.0)), delta)
        return replace(whole, guarantee=total, requested=said)

    def _paid_elsewhere(self, earlier: Privacy | None) -> list[Guarantee]:
        """The guarantees of what this rests on and its ledger did not pay for."""
        if earlier is None:
            return []
        if earlier.ledger is None or earlier.ledger != self.ledger:
            assert earlier.together is not None  # else nothing is promised together
            return [earlier.together.guarantee]
        return [*self._paid_elsewhere(earlier.schema), *self._paid_elsewhere(earlier.prior)]

    @property
    def unprotected(self) -> str | None:
        """The reason why nothing is promised; None where something is (`total`).

        Examples
        --------
        >>> print(Privacy(PureDP(1.0), Adjacency.ADD_REMOVE, "", reproducible=True).unprotected)
        its noise came from a seed: it is NOT PRIVATE
        """
        if self._changed:
            return "the model was changed after it was learned"
        if self.reproducible:
            return "its noise came from a seed: it is NOT PRIVATE"
        if self.prior is None or self.together is not None:
            return None
        below = self.prior.unprotected or "its guarantee and that of its prior cannot be added up: NOT PRIVATE"
        return below.replace("its noise", "the noise of its prior")

    def told(self) -> dict[str, Any]:
        """The promise for programs: `total` as ``guarantee``, None where nothing is promised, and the ``adjacency``.

        Where there is one, the ``condition`` too.
        """
        whole = self.together
        known = ", ".join(filter(None, (agreement(whole.agreed).strip(), whole.condition))) if whole else ""
        said = {"guarantee": whole and whole.guarantee.to_dict(), "adjacency": str(self.adjacency)}
        return said | ({"condition": known} if known else {})

    @classmethod
    def of(cls, release: Release, entries: tuple[Entry, ...] = ()) -> Privacy:
        """The record of a release."""
        settings = release.public.get("settings")
        prior = settings.get("prior") if isinstance(settings, Mapping) else None
        record = cls(
            *(release.guarantee, release.adjacency, release.mechanism, release.reproducible, tuple(entries)),
            release.unit,
            None if prior is None else cls.from_dict(prior),
            requested=_requested(release),
            rows_per_unit=None if release.unit is None else release.public.get("rows_per_unit"),
            published_if=_published(release.public.get("published_if")),
            public_tables=tuple(map(dict, release.public.get("public_tables", ()))),
            ledger=release.public.get("paid", {}).get("ledger"),
        )
        return record.with_schema_of(release.schema_costs)

    def with_schema_of(self, costs: Iterable[Mapping[str, Any]]) -> Privacy:
        """This record with the costs of finding parts of the schema, as the schema says them (`Schema.discovered`)."""
        schemas = [Privacy.from_dict({"entries": [], **one}) for one in costs]
        if not schemas:
            return self
        believed = [s if s.guarantee.implies(s.said) else replace(s, requested=None) for s in schemas]
        schema = reduce(Privacy._and, believed)  # words that a cost does not imply are of a file that was edited
        if len({one.ledger for one in schemas}) > 1:
            schema = replace(schema, ledger=None)
        return replace(self._and(schema), schema=schema)

    def _and(self, other: Privacy) -> Privacy:
        guarantee, said = _together(self, other)
        seeded, tables = self.reproducible or other.reproducible, (*self.public_tables, *other.public_tables)
        return replace(self, guarantee=guarantee, requested=said, reproducible=seeded, public_tables=tables)

    @property
    def said(self) -> Guarantee:
        """The guarantee in the words of the budget."""
        return self.guarantee if self.requested is None else self.requested

    @property
    def words(self) -> str:
        """The guarantee as it was requested, with the one that it was made from beside it, and which neighbours."""
        said = f"{self.guarantee}" if self.requested is None else f"{self.requested} (by {self.guarantee})"
        return said + agreement(self.agreed)

    @property
    def agreed(self) -> Tables:
        """The columns of tables of the records that are public: neighbours agree on them."""
        known = (scope for entry in self.entries for scope in entry.public_tables)
        return tuple(dict.fromkeys((*_scopes(self.public_tables, "these records"), *known)))

    @property
    def exchange(self) -> str | None:
        """A sentence on what columns of public tables of the records still have; None where there are none."""
        return exchange_words(self.agreed, self.said, self.twice.said) if self.agreed else None

    @property
    def twice(self) -> Privacy:
        """This record of two datasets between which there is a third that is a neighbour of both.

        Group privacy. Pure: 2 epsilon. zCDP: 4 rho (Bun and Steinke 2016, Proposition 1.9), and (epsilon, delta)
        converted from that. (epsilon, delta) itself: P(S) <= e**epsilon (e**epsilon Q(S) + delta) + delta.
        """
        proved, said = self.guarantee, self.said
        if isinstance(proved, PureDP):
            return replace(self, guarantee=PureDP(2.0 * proved.epsilon), requested=None)
        if isinstance(proved, ZCDP):
            rho = 4.0 * proved.rho
            requested = ApproxDP(zcdp_to_approx(rho, said.delta), said.delta) if isinstance(said, ApproxDP) else None
            return replace(self, guarantee=ZCDP(rho), requested=requested)
        if isinstance(said, ReservedZCDP):
            said = ApproxDP(zcdp_to_approx(said.rho, said.eta), math.nextafter(2.0 * said.eta, 1.0))
        assert isinstance(said, ApproxDP)
        delta = min((1.0 + math.exp(said.epsilon)) * said.delta, 1.0 - 2**-53)
        return replace(self, guarantee=ApproxDP(2.0 * said.epsilon, delta), requested=None)

    @property
    def condition(self) -> str | None:
        """What the guarantee counts as known, in words that follow it; None where that is nothing.

        Examples
        --------
        >>> tables = {"from": "elsewhere", "tables": [["region"], ["sex", "age"]], "total": 9}
        >>> Privacy(PureDP(1.0), Adjacency.ADD_REMOVE, "", public_tables=(tables,)).condition
        'given tables of region; sex, age that the caller says were not computed from these records'
        """
        return condition_of(self.public_tables)

    @property
    def conditional(self) -> str | None:
        """A sentence about intervals of a model that had to pass a test to be published; None for any other."""
        if self.published_if is None:
            return None
        attempt = self.published_if["attempt"]
        tried = "" if attempt == 1 else f", at attempt {attempt} on these records"
        n = len(self.published_if["criteria"])
        met = "a declared criterion was" if n == 1 else f"{n} declared criteria were"
        return (
            f"It was published because {met} met, in a test with noise{tried}. Intervals are conditional on that: "
            "where the test is passed with probability p, they miss up to 1/p times as often as they say."
        )

    @property
    def delta(self) -> float:
        """The requested delta of everything together; else that of `guarantee`, and 0 where there is none."""
        said = (self.together or self).said
        return float(getattr(said, "delta", getattr(said, "eta", 0.0)))

    def depending_on(self, earlier: Privacy | None) -> Privacy:
        """This record with one more prior, unless it has that one already."""
        if earlier is None or earlier == self.prior:
            return self
        return replace(self, prior=earlier if self.prior is None else self.prior.depending_on(earlier))

    @property
    def promises_nothing(self) -> bool:
        """Whether epsilon is above 20, of a guarantee in rho at delta 1e-6: a factor of five hundred million or more.

        Examples
        --------
        >>> [Privacy(cost, Adjacency.ADD_REMOVE, "").promises_nothing for cost in (PureDP(20), PureDP(21), ZCDP(10))]
        [False, True, True]
        """
        said = self.said
        epsilon = zcdp_to_approx(said.rho, 1e-6) if isinstance(said, ZCDP | ReservedZCDP) else said.epsilon
        return epsilon > _PROMISES_NOTHING

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form; see :meth:`from_dict`."""
        return {
            "guarantee": self.guarantee.to_dict(),
            "adjacency": str(self.adjacency),
            "mechanism": self.mechanism,
            "reproducible": self.reproducible,
            "entries": [entry.to_dict() for entry in self.entries],
            "unit": encode_unit(self.unit),
            **({} if self.prior is None else {"prior": self.prior.to_dict(), "total": self.told()["guarantee"]}),
            "asked": None if self.requested is None else self.requested.to_dict(),
            **({} if self.schema is None else {"schema": self.schema.to_dict()}),
            **({} if self.rows_per_unit is None else {"rows_per_unit": self.rows_per_unit}),
            **({} if self.published_if is None else {"published_if": dict(self.published_if)}),
            **({"public_tables": list(map(dict, self.public_tables))} if self.public_tables else {}),
            **{name: said for name in _OF_A_FILE if (said := getattr(self, name)) is not None},
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Privacy:
        """The record from :meth:`to_dict`, lossless."""
        if "stated_by_others" in content:
            return StatedByOthers(statement=content["stated_by_others"])
        return cls(
            guarantee_from_dict(content["guarantee"]),
            Adjacency.parse(content["adjacency"]),
            content["mechanism"],
            content["reproducible"],
            tuple(Entry.from_dict(entry) for entry in content["entries"]),
            decode_unit(content.get("unit")),
            None if content.get("prior") is None else cls.from_dict(content["prior"]),
            None if content.get("asked") is None else guarantee_from_dict(content["asked"]),
            None if content.get("schema") is None else cls.from_dict(content["schema"]),
            content.get("rows_per_unit"),
            _published(content.get("published_if")),
            tuple(map(dict, content.get("public_tables", ()))),
            **{name: content.get(name) for name in _OF_A_FILE},
        )

    def __str__(self) -> str:
        if self._changed:
            return f"NO GUARANTEE: {self.unprotected} with {self._parts}"
        if self.prior is None:
            return self._parts
        if self.together is None:
            return f"{self.unprotected}; alone {self._parts}"
        return f"{self.together.words} together, for whoever is in both{self.together._flag}; alone {self._parts}"

    @property
    def _changed(self) -> bool:
        """Whether the model that earned it has other parameters now."""
        return self.earned_by is not None and self.earned_by[1] != parameters_digest(self.earned_by[0])

    @property
    def _flag(self) -> str:
        if self.reproducible:
            return " with reproducible noise: NOT PRIVATE"
        return f" with epsilon above {_PROMISES_NOTHING}: NOT PRIVATE" if self.promises_nothing else ""

    @property
    def _parts(self) -> str:
        """Text about this release alone, and then about its priors."""
        whose = "" if self.unit is None else f" of all rows of one {self.unit!r}"
        text = f"{self.words} under {self.adjacency}{whose} ({self.mechanism}){self._flag}"
        text += "" if self.condition is None else f", {self.condition}"
        if self.schema is not None:
            text += f", its schema included, which was found under {self.schema.words}"
        if self.published_if is not None:
            text += ", a test included that it had to pass to be published"
        return text if self.prior is None else f"{text}, with a prior that is {self.prior._parts}"


@dataclass(frozen=True)
class StatedByOthers(Privacy):
    """The record of a model whose noisy tables others released: their statement, and no guarantee of this package.

    Whatever asks for a guarantee gets None: nothing here saw the records, the noise or a ledger.

    Attributes
    ----------
    statement : str
        What the caller passed of it. Nothing has checked it.

    Examples
    --------
    >>> record = StatedByOthers(statement="0.5-DP for each person (the office's note of 2025)")
    >>> print(record)
    noisy tables, stated by others: 0.5-DP for each person (the office's note of 2025)
    >>> record.together, record.total
    (None, None)
    """

    guarantee: Any = None
    adjacency: Any = None
    mechanism: str = ""
    statement: str = ""
    together = None  # nothing is promised

    @property
    def unprotected(self) -> str | None:
        """The reason why nothing is promised, with the statement of others."""
        return super().unprotected if self._changed else f"nothing here vouches for its {self._parts}"

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form, with ``stated_by_others`` where a guarantee would be."""
        return {"guarantee": None, "stated_by_others": self.statement}

    @property
    def _parts(self) -> str:
        return f"noisy tables, stated by others: {shown(self.statement)}"


def parameters_digest(model: Any) -> str:
    """A digest of a pgmpy model's graph and tables with their states, in whatever order: numbers count bit by bit."""
    graph = sorted(repr(sorted(map(repr, item))) for item in (*model.edges, *((name,) for name in model)))
    tables = [*getattr(model, "factors", ()), *getattr(model, "cpds", ())]
    numbers = [np.append(t.beta, t.std) if hasattr(t, "beta") else np.asarray(t.values) for t in tables]
    states = [[getattr(t, "state_names", {}).get(name) for name in t.variables] for t in tables]
    said = [(t.variables, of.shape, named) for t, of, named in zip(tables, numbers, states, strict=True)]
    parts = [repr(what).encode() + of.tobytes() for what, of in zip(said, numbers, strict=True)]
    return content_digest({"graph": graph}, *sorted(parts))


def kept_with(model: Any, privacy: Privacy | None) -> Any:
    """The same pgmpy model, which has no attribute for its guarantee, with the record among what its graph has."""
    model.graph["privacy"] = privacy and replace(privacy, earned_by=(model, parameters_digest(model)))
    return model


def record_of(model: Any) -> Privacy | None:
    """The record of a model of pgmpy or of this package; ValueError where it has changed since it earned the record."""
    record, digest = vars(model).get("_privacy", (None, None))
    if isinstance(kept := model.graph.get("privacy"), Privacy) and kept.earned_by is not None:
        record, digest = replace(kept, earned_by=None), kept.earned_by[1]
    if record is not None and digest != parameters_digest(model):
        raise ValueError(f"the model was changed after it was learned with {record}; fit it again, or set its privacy")
    return record


def earned(name: str) -> Any:
    """A property of a pgmpy model that is None once its graph or tables are others than when it was set.

    A record of what was learned says nothing of other parameters: those may be exact statistics of the records.
    """

    def get(model: Any) -> Any:
        """The value that was set, while the model's graph and tables are as they were then; else None."""
        value, digest = vars(model).get(name, (None, ""))
        return None if value is None or digest != parameters_digest(model) else value

    def put(model: Any, value: Any) -> None:
        vars(model)[name] = value, parameters_digest(model)

    return property(get, put)


def composed(*parts: Guarantee) -> Guarantee:
    """The guarantee that releases have together, however later ones are chosen: basic composition.

    Sums are exact and rounded up once, so that no sum of sums is below, in whatever order a plan adds up. In rho where
    all convert to it; else in (epsilon, delta), to which rho converts at the other release's delta, one after another.

    Examples
    --------
    >>> from pgmpy_dp.private.guarantee import ApproxDP, PureDP, ZCDP
    >>> print(composed(PureDP(1.0), PureDP(0.5)), composed(PureDP(1.0), ZCDP(0.5)))
    1.5-DP 1-zCDP
    >>> print(composed(PureDP(1.0), ApproxDP(1.0, 1e-6)))
    (2, 1e-06)-DP
    """
    pure = [g.epsilon for g in parts if isinstance(g, PureDP)]
    concentrated = [g for g in parts if isinstance(g, ZCDP | ReservedZCDP)]
    if len(pure) == len(parts):
        return PureDP(_sum(*pure))
    if len(pure) + len(concentrated) == len(parts):
        converted = [math.nextafter(pure_to_zcdp(epsilon), math.inf) for epsilon in pure]
        rho = _sum(*converted, *(g.rho for g in concentrated))
        eta = _sum(*(g.eta for g in concentrated if isinstance(g, ReservedZCDP)))
        return ReservedZCDP(rho, eta) if eta else ZCDP(rho)
    if concentrated and len(parts) > 2:
        return reduce(composed, parts)
    (delta, *_) = [g.delta for g in parts if isinstance(g, ApproxDP)]
    split = [_approximate(g, delta) for g in parts]
    return ApproxDP(_sum(*(epsilon for epsilon, _ in split)), _sum(*(spent for _, spent in split)))


def _together(first: Privacy, second: Privacy) -> tuple[Guarantee, Guarantee | None]:
    """The guarantee that two releases have together, also in the words of their budgets where these have a delta."""
    total = composed(first.guarantee, second.guarantee)
    said = [first.said, second.said]
    if not any(isinstance(one, ApproxDP) for one in said) or any(isinstance(one, ZCDP | ReservedZCDP) for one in said):
        return total, None
    plain = composed(*said)
    assert isinstance(plain, ApproxDP)
    if isinstance(total, ZCDP | ReservedZCDP):
        converting = math.nextafter(plain.delta - getattr(total, "eta", 0.0), 0.0)
        tight = ApproxDP(zcdp_to_approx(total.rho, converting), plain.delta) if converting > 0 else plain
        if tight.epsilon <= plain.epsilon and total.implies(tight):
            return total, tight
    return plain, None


def _approximate(guarantee: Guarantee, delta: float) -> tuple[float, float]:
    """Epsilon and delta of a guarantee; of rho, at a delta on top of what it fails with anyhow."""
    if isinstance(guarantee, PureDP):
        return guarantee.epsilon, 0.0
    if isinstance(guarantee, ApproxDP):
        return guarantee.epsilon, guarantee.delta
    spent = _sum(delta, guarantee.eta) if isinstance(guarantee, ReservedZCDP) else delta
    return zcdp_to_approx(guarantee.rho, delta), spent


def _sum(*terms: float) -> float:
    """The sum, rounded up where it is rounded at all."""
    exact = sum(map(Fraction, terms), Fraction(0))
    return float(exact) if Fraction(float(exact)) >= exact else math.nextafter(float(exact), math.inf)


def _requested(release: Release) -> Guarantee | None:
    """The budget that a release says it was made for, if the release's guarantee differs from it and implies it."""
    if not isinstance(release.budget, Mapping):
        return None
    requested = guarantee_from_dict(release.budget)
    return requested if requested != release.guarantee and release.guarantee.implies(requested) else None


def _published(said: Any) -> Mapping[str, Any] | None:
    """The criteria under which a release or a file was published; ValueError for what this package does not write."""
    if said is None:
        return None
    right = isinstance(said, Mapping) and isinstance(said.get("criteria"), list)
    right = right and all(isinstance(text, str) for text in (said.get("name"), said.get("digest"), *said["criteria"]))
    if not right or type(said.get("attempt")) is not int or said["attempt"] < 1:
        raise ValueError("what it was published if is not what publish_if writes")
    return dict(said)


def condition_of(public_tables: Iterable[Mapping[str, Any]]) -> str | None:
    """The words of `Privacy.condition`."""
    named = named_tables(_scopes(public_tables, "elsewhere"))
    return f"given tables of {named} that the caller says were not computed from these records" if named else None


def _scopes(public_tables: Iterable[Mapping[str, Any]], origin: str) -> Tables:
    """The columns of the tables that are from there, each once."""
    scopes = (scope for said in public_tables if said["from"] == origin for scope in said["tables"])
    return tuple(dict.fromkeys(tuple(map(decode_label, scope)) for scope in scopes))


class UnderstatedGuarantee(RuntimeError):
    """A plan released under less than it charged: a mistake of its author, not of its user."""


def released(data: PrivateData, plan: Callable[..., Release], *arguments: Any) -> Release:
    """Run ``plan(data, *arguments)``, and hold its release against what the data's ledger was charged for it.

    Charges of others meanwhile are not the plan's. A release that an exception carries is held against them, too: where
    it says less, it has the guarantee of everything instead.

    Parameters
    ----------
    data : PrivateData
    plan : callable
        One that opens a single curator gives its release. One that opens several says what they cost together:
        ``release.published_with(composed(first, second), {})``.

    Returns
    -------
    Release

    Raises
    ------
    UnderstatedGuarantee
        For a release that says less than what was charged, or for which nothing was charged to these data. The
        exception has it, with the guarantee of everything, as its attribute ``release``.
    """
    charged: list[Guarantee] = []
    try:
        release = plan(data.for_a_plan(charged), *arguments)
    except BaseException as error:
        if isinstance(kept := getattr(error, "release", None), Release):
            error.release = _held(kept, charged)  # type: ignore[attr-defined]
        raise
    if charged and _held(release, charged) is release:
        return release
    with handed_over(_held(release, charged)):
        raise UnderstatedGuarantee(
            f"a plan released under {release.guarantee}, and its data were charged {charged}: ask one curator of these "
            "data, or return release.published_with(composed(...), {}), with what several cost together"
        )


def _held(release: Release, charged: Sequence[Guarantee]) -> Release:
    """The release, with the guarantee of all that was charged unless the charges imply the release's own."""
    guarantee = release.guarantee
    total = composed(*charged) if charged else guarantee
    stated = total if guarantee.implies(total) else composed(total, guarantee)
    return release if total.implies(guarantee) else release.published_with(stated, {})


@contextmanager
def handed_over(release: Release) -> Iterator[None]:
    """Give an exception in this block the paid release as its attribute ``release``."""
    try:
        yield
    except BaseException as error:
        error.release = release  # type: ignore[attr-defined]
        error.add_note("The release was made and paid for: pass this exception's .release to fit_release")
        raise


def require_release(release: object) -> None:
    """Raise a TypeError if this is not a release."""
    if not isinstance(release, Release):
        raise TypeError(f"release={release!r} is a {type(release).__name__}; pass a Release, see Release.load")


def require_kind(release: Release, kind: str) -> None:
    """Raise a ValueError for a release of another kind."""
    if release.kind != kind:
        raise ValueError(f"release has kind {release.kind!r}; pass one of kind {kind!r}")


def released_parameters(release: Release, kind: str, *names: str) -> list[np.ndarray]:
    """The parameters of these names of a release of this kind; ValueError for another kind."""
    require_kind(release, kind)
    return [release[name].array * float(release.public["parameter_unit"]) for name in names]


def steps_taken(release: Release, number: int, fixed: str) -> str:
    """The status of a method whose number of steps is fixed as `fixed` says, unless it was interrupted."""
    ended = "then interrupted" if "interrupted" in release.public else f"as fixed {fixed}"
    return f"{quantity(number, 'step')}, {ended}"


def require_agreement(data: PrivateData, adjacency: str, **arguments: tuple[Any, Any]) -> None:
    """Raise a ValueError if an estimator's arguments contradict the private data that were passed.

    Parameters
    ----------
    adjacency : str
        The estimator's.
    **arguments : tuple of (value, shared)
        The estimator's value, None for none, and that of the data.
    """
    holder = type(data).__name__
    whose = holder + ("'" if holder.endswith("s") else "'s")
    if adjacency != data.adjacency:
        raise ValueError(
            f"adjacency={str(adjacency)!r} differs from the {whose} {str(data.adjacency)!r}; "
            f"pass adjacency={str(data.adjacency)!r}"
        )
    for name, (value, shared) in arguments.items():
        if value is not None and value != shared:
            raise ValueError(f"{name}={value!r} differs from the {whose} {shared!r}; pass {name}=None")
        unsaid = [cost for cost in getattr(value, "discovered", ()) if cost not in getattr(shared, "discovered", ())]
        if unsaid:
            raise ValueError(
                f"{name} was found in records, at a cost of which the {whose} schema says nothing; make the {holder} "
                f"with it, or pass {name}=None if what its schema declares is known without records"
            )
