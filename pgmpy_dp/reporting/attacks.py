"""A guarantee as the success that it leaves to an attacker: rates, guesses, and the curve as a picture."""

from __future__ import annotations

import decimal
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from pgmpy_dp.learning.privacy_record import Privacy
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.guarantee import Guarantee
from pgmpy_dp.theory.attack_rates import attack_success

FALSE_ALARMS = (0.001, 0.01, 0.05, 0.1, 0.5)
PRIORS = (2, 10, 100, 1000)
"""Values that are equally likely beforehand."""

SOURCES = (
    "Rates of attacks: Wasserman and Zhou (2010), JASA 105; Kairouz, Oh and Viswanath (2015), ICML. Of zCDP: Bun and "
    "Steinke (2016), TCC, and data processing of Rényi divergences, van Erven and Harremoës (2014).",
    "Guesses: Hayes, Mahloujifar and Balle (2023), NeurIPS.",
    "Derivations and tests: pgmpy_dp.theory.attack_rates. The curve is not that of Gaussian DP, which this noise does "
    "not have.",
)

ATTACKER = (
    "The attacker knows the method, its settings, all the model, and the data of everybody else. The rates hold for "
    "each one that is protected, over the random noise; they are bounds, which no attack exceeds."
)

_HARDLY = 0.5
_SIZE, _EDGE = 220.0, 40.0
_CURVE = np.concatenate([[0.0], np.geomspace(1e-3, 0.1, 13), np.linspace(0.15, 1.0, 18)])


@dataclass(frozen=True)
class AttackWords:
    """The words about attacks on a page.

    Attributes
    ----------
    sentence : str
        In plain words, at 1 % false alarms.
    rates : tuple of (str, str)
        False alarms, and the most that an attack succeeds.
    guesses : tuple of (str, str, str)
        What is known beforehand, how often a guess is right then, and with the model at most.
    question : str
        The question that the attack answers.
    picture : dict
        The values that the template of the curve needs.
    """

    sentence: str
    rates: tuple[tuple[str, str], ...]
    guesses: tuple[tuple[str, str, str], ...]
    question: str
    picture: dict[str, object]


def at_most(share: float) -> str:
    """A bound in percent, rounded up: one decimal, or two digits below 1 %.

    Examples
    --------
    >>> at_most(0.02711), at_most(0.000123), at_most(0.99991)
    ('2.8 %', '0.013 %', '100 %')
    """
    exact = decimal.Decimal(share) * 100
    if exact <= 0:
        return "0 %"
    digits = decimal.Decimal(10) ** max(exact.adjusted() - 1, -12) if exact < 1 else decimal.Decimal("0.1")
    rounded = min(exact.quantize(digits, rounding=decimal.ROUND_CEILING), decimal.Decimal(100))
    return f"{rounded:f} %" if rounded < 100 else "100 %"


def who_is_protected(privacy: Privacy) -> str:
    """The unit that is protected, as pages name it.

    Examples
    --------
    >>> from pgmpy_dp.private.guarantee import PureDP
    >>> who_is_protected(Privacy(PureDP(1.0), Adjacency.ADD_REMOVE, "noise", unit="patient"))
    "one 'patient' with all of its rows"
    """
    if privacy.adjacency == Adjacency.EDGE:
        return "one edge"
    return "one record" if privacy.unit is None else f"one {str(privacy.unit)!r} with all of its rows"


def attack_words(privacy: Privacy, guarantee: Guarantee | None = None, whom: str | None = None) -> AttackWords | None:
    """The words for attacks on a guarantee, its priors' included (`Privacy.total`); None where nothing is protected.

    Parameters
    ----------
    privacy : Privacy
    guarantee : PureDP, ZCDP, ReservedZCDP or ApproxDP, optional
        Another than the total, as of a child in linked tables.
    whom : str, optional
        Whom it protects, if not :func:`who_is_protected`.
    """
    guarantee, whom = guarantee or privacy.total, whom or who_is_protected(privacy)
    if guarantee is None:
        return None
    wanted = (*FALSE_ALARMS, *(1 / values for values in PRIORS), *map(float, _CURVE))
    success = dict(zip(wanted, map(float, attack_success(guarantee, wanted)), strict=True))
    said = at_most(success[0.01])
    alike = " with the same public tables" if privacy.agreed else ""
    known = "even an attack that knows everybody else's data, and"
    if privacy.adjacency == Adjacency.EDGE:
        question = "whether two vertices are joined"
        rest = f"takes 1 % of the pairs that are not joined for edges, finds at most {said} of the edges"
    elif privacy.adjacency == Adjacency.REPLACE_ONE:
        question = f"which of two possible values{alike} the data have"
        rest = (
            f"takes the first of two possible values{alike} for the second in 1 % of cases, finds the second in at "
            f"most {said}"
        )
    else:
        question = "whether it is in the data"
        rest = (
            f"raises a false alarm for 1 % of those who are not in the data, recognises at most {said} of those who are"
        )
    how = "hardly protected" if success[0.01] > _HARDLY else "protected"
    guesses = tuple(
        (f"one of {values:,} values{alike}, all equally likely", f"{100 / values:g} %", at_most(success[1 / values]))
        for values in (PRIORS[:1] if privacy.adjacency == Adjacency.EDGE else PRIORS)
    )
    return AttackWords(
        f"{whom[0].upper()}{whom[1:]} is {how}: {known} {rest}.",
        tuple((f"{100 * rate:g} %", at_most(success[rate])) for rate in FALSE_ALARMS),
        guesses,
        question,
        _picture(success, said),
    )


def _picture(success: Mapping[float, float], said: str) -> dict[str, object]:
    """The curve in a square, false alarms to the right and success upwards."""

    def at(x: float, y: float) -> str:
        return f"{_EDGE + _SIZE * x:.1f},{10 + _SIZE * (1 - y):.1f}"

    x, y = at(0.01, success[0.01]).split(",")
    return {
        "size": _SIZE,
        "edge": _EDGE,
        "curve": " ".join(at(a, success[a]) for a in map(float, _CURVE)),
        "guess": " ".join((at(0, 0), at(1, 1))),
        "x": x,
        "y": y,
        "said": said,
    }
