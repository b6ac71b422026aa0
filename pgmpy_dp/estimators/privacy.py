"""The privacy record that a fitted estimator and its model carry."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.data.subject import PrivateData
from pgmpy_dp.private.entry import Entry
from pgmpy_dp.private.guarantee import Guarantee, guarantee_from_dict
from pgmpy_dp.private.sensitive import Release
from pgmpy_dp.schema import decode_label, encode_label

__all__ = ["Privacy", "handed_over", "require_agreement", "require_release", "steps_taken"]


@dataclass(frozen=True)
class Privacy:
    """Under which guarantee something was learned.

    Attributes
    ----------
    guarantee : PureDP, ZCDP or ApproxDP
        Of the release that was learned from. Everything computed from it has the same guarantee.
    adjacency : Adjacency
        Which datasets count as neighbours; the guarantee says nothing without it.
    mechanism : str
    reproducible : bool
        True where the noise came from a seed: then nothing is protected, whatever `guarantee` says.
    entries : tuple of Entry
        Everything charged to the ledger of the data up to and including this release; empty where
        the release came from a file.
    unit : hashable
        What may differ between neighbours: None is one record; else the column each of whose values is protected with
        all of its rows, e.g. "user".
    asked : ApproxDP or other guarantee, optional
        The budget that was passed, where it is another guarantee than `guarantee`, which implies it: (epsilon, delta)
        is spent as the zCDP that converts to it. None where it is the same, or the release does not say.

    Examples
    --------
    >>> from pgmpy_dp.private.guarantee import ZCDP, ApproxDP, PureDP
    >>> print(Privacy(PureDP(1.0), Adjacency.ADD_REMOVE, "discrete Laplace"))
    1-DP under add_remove (discrete Laplace)
    >>> print(Privacy(ZCDP(0.0149), Adjacency.ADD_REMOVE, "discrete_gaussian", asked=ApproxDP(1.0, 1e-9)))
    (1, 1e-09)-DP (by 0.0149-zCDP) under add_remove (discrete_gaussian)
    """

    guarantee: Guarantee
    adjacency: Adjacency
    mechanism: str
    reproducible: bool = False
    entries: tuple[Entry, ...] = ()
    unit: Hashable = None
    asked: Guarantee | None = None

    @classmethod
    def of(cls, release: Release, entries: tuple[Entry, ...] = ()) -> Privacy:
        """The record of a release."""
        return cls(
            *(release.guarantee, release.adjacency, release.mechanism, release.reproducible, tuple(entries)),
            *(release.unit, _asked(release)),
        )

    @property
    def words(self) -> str:
        """The guarantee as it was asked for, with what it was made from beside it."""
        return f"{self.guarantee}" if self.asked is None else f"{self.asked} (by {self.guarantee})"

    @property
    def delta(self) -> float:
        """Of what was asked for; else of `guarantee`. 0 where it has none."""
        said = self.guarantee if self.asked is None else self.asked
        return float(getattr(said, "delta", getattr(said, "eta", 0.0)))

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form; see :meth:`from_dict`."""
        return {
            "guarantee": self.guarantee.to_dict(),
            "adjacency": str(self.adjacency),
            "mechanism": self.mechanism,
            "reproducible": self.reproducible,
            "entries": [entry.to_dict() for entry in self.entries],
            "unit": encode_label(self.unit),
            "asked": None if self.asked is None else self.asked.to_dict(),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Privacy:
        """The record from :meth:`to_dict`, lossless."""
        return cls(
            guarantee_from_dict(content["guarantee"]),
            Adjacency.parse(content["adjacency"]),
            content["mechanism"],
            content["reproducible"],
            tuple(Entry.from_dict(entry) for entry in content["entries"]),
            decode_label(content.get("unit")),
            None if content.get("asked") is None else guarantee_from_dict(content["asked"]),
        )

    def __str__(self) -> str:
        whose = "" if self.unit is None else f" of all rows of one {self.unit!r}"
        text = f"{self.words} under {self.adjacency}{whose} ({self.mechanism})"
        return text + " with reproducible noise: NOT PRIVATE" if self.reproducible else text


def _asked(release: Release) -> Guarantee | None:
    """The budget that a release says it was made for, if that is another guarantee, and implied by its own."""
    public = release.public
    settings = public.get("settings")
    budget = (settings if isinstance(settings, Mapping) else {}).get("budget", public.get("budget"))
    if not isinstance(budget, Mapping):
        return None
    asked = guarantee_from_dict(budget)
    return asked if asked != release.guarantee and release.guarantee.implies(asked) else None


@contextmanager
def handed_over(release: Release) -> Iterator[None]:
    """Learning from a release that is paid for: an exception has it as its attribute ``release``."""
    try:
        yield
    except BaseException as error:
        error.release = release  # type: ignore[attr-defined]
        error.add_note("The release was made and paid for: pass this exception's .release to fit_release")
        raise


def require_release(release: object) -> None:
    """TypeError for what is no release."""
    if not isinstance(release, Release):
        raise TypeError(f"release={release!r} is a {type(release).__name__}; pass a Release, see Release.load")


def steps_taken(release: Release, number: int, fixed: str) -> str:
    """The status of a method whose number of steps is fixed as `fixed` says, unless it was interrupted."""
    return (
        f"{number} steps, then interrupted" if "interrupted" in release.public else f"{number} steps, as fixed {fixed}"
    )


def require_agreement(data: PrivateData, adjacency: str, **arguments: tuple[Any, Any]) -> None:
    """ValueError where an estimator's own arguments say something else than the private data that it is given.

    Parameters
    ----------
    data : PrivateData
    adjacency : str
        The estimator's.
    **arguments : tuple of (own, shared)
        What the estimator was told, None for nothing, and what the data say.
    """
    kind = type(data).__name__
    whose = kind + ("'" if kind.endswith("s") else "'s")
    if adjacency != data.adjacency:
        raise ValueError(
            f"adjacency={str(adjacency)!r} differs from the {whose} {str(data.adjacency)!r}; "
            f"pass adjacency={str(data.adjacency)!r}"
        )
    for name, (own, shared) in arguments.items():
        if own is not None and own != shared:
            raise ValueError(f"{name}={own!r} differs from the {whose} {shared!r}; pass {name}=None")
