"""Checks of what users pass, and of what is installed; imports nothing of the package."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

__all__ = [
    "checked_integer",
    "checked_level",
    "checked_number",
    "checked_weight",
    "checked_within",
    "exact_fraction",
    "missing_package",
    "require_choice",
    "require_flag",
    "require_given",
]


_INSTALL = {
    # Without the index pip takes the build for NVIDIA's GPUs, of more than 2 GB.
    "torch": "pip install torch --index-url https://download.pytorch.org/whl/cpu (for a GPU: pip install torch)",
    "matplotlib": "pip install matplotlib",
}


def checked_number(name: str, value: object, *, positive: bool, below_one: bool = False) -> float:
    """`value` as a float, if it is finite, not negative (not zero if `positive`) and below 1 if `below_one`.

    Raises
    ------
    TypeError
        For booleans, text and anything else that is not a real number.
    ValueError
        For NaN, infinities and numbers outside the range.
    """
    remedy = f"pass {'a positive' if positive else 'a non-negative'} finite number{' below 1' if below_one else ''}"
    number = _real(name, value, f", not a number; {remedy}")
    too_large = below_one and number >= 1
    if not math.isfinite(number) or number < 0 or (positive and number == 0) or too_large:
        raise ValueError(f"{name}={value!r} is out of range; {remedy}")
    return number


def checked_within(
    name: str, value: object, *, above: float = 0.0, most: float = math.inf, finite: bool = True
) -> float:
    """`value` as a float in (above, most].

    Raises
    ------
    TypeError
        If it is not a real number.
    ValueError
        If it is outside the range, NaN, or infinite where `finite`.
    """
    number = _real(name, value, "; pass a number")
    if not above < number <= most or (finite and math.isinf(number)):
        limit = "" if math.isinf(most) else f" and at most {most:g}"
        raise ValueError(f"{name}={value!r} is out of range; pass a {'finite ' * finite}number above {above:g}{limit}")
    return number


def _real(name: str, value: object, ending: str) -> float:
    """`value` as a float, infinite beyond what one holds; a TypeError that ends so for anything but a real number."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name}={value!r} is a {type(value).__name__}{ending}")
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf  # type: ignore[operator]  # every real number has an order


def checked_weight(name: str, value: object) -> float:
    """`value` as a positive float among others, in bounds within which sums and products of weights stay exact enough.

    Without them a sum is infinite, or a weight counts as nothing, where records are already paid for.
    """
    weight = checked_number(name, value, positive=True)
    if not 1e-9 <= weight <= 1e9:
        raise ValueError(f"{name}={value!r} is out of range; weights count beside each other, pass 1e-09 to 1e+09")
    return weight


def checked_level(level: object) -> float:
    """The level of an interval as a float in (0, 1); TypeError or ValueError naming it otherwise."""
    number = _real("level", level, ", not a number; pass one between 0 and 1, for example 0.9")
    if not 0 < number < 1:
        raise ValueError(f"level={level!r} must be between 0 and 1, for example 0.9")
    return number


def checked_integer(name: str, value: object, least: int) -> int:
    """`value` as an int of at least `least`; TypeError or ValueError naming the argument otherwise."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name}={value!r} is a {type(value).__name__}; pass a whole number of at least {least}")
    if value < least:
        raise ValueError(f"{name}={value!r} is too small; pass a whole number of at least {least}")
    return int(value)


def require_choice(name: str, value: object, allowed: Sequence[str]) -> None:
    """Raise a ValueError that names the argument if the value is not one of some texts."""
    if value not in allowed:
        raise ValueError(f"{name}={value!r} is not supported; use one of {tuple(allowed)}")


def require_given(name: str, value: object, what: str) -> None:
    """Raise a ValueError if a public number was not given; it says what the number is."""
    if value is None:
        raise ValueError(
            f"{name}=None: pass {what}, from what is publicly known; never one computed from the records, which would "
            "not be private"
        )


def require_flag(name: str, value: object) -> None:
    """Raise a TypeError that names the argument for anything but a truth value."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name}={value!r} is a {type(value).__name__}; pass True or False")


def exact_fraction(value: Any) -> Fraction:
    """`value` as a Fraction of two of Python's integers; the errors of Fraction for what is none.

    A Fraction made of NumPy's integers keeps them, and their arithmetic goes round at 8 to 64 bits without an error:
    noise can come out at nothing, and shares that sum to more than 1.

    Examples
    --------
    >>> share = Fraction(1, np.int64(11))
    >>> type(share.denominator), type(exact_fraction(share).denominator)
    (<class 'numpy.int64'>, <class 'int'>)
    """
    exact = Fraction(value)
    return Fraction(int(exact.numerator), int(exact.denominator))


def missing_package(package: str, what: str, instead: str = "") -> ImportError:
    """The error of `what` needs `package`: how to install it, or what to do instead.

    Examples
    --------
    >>> missing_package("matplotlib", "plots")
    ImportError('plots need matplotlib, which is not installed: pip install matplotlib')
    """
    verb = "need" if what.endswith("s") else "needs"
    return ImportError(f"{what} {verb} {package}, which is not installed: {_INSTALL[package]}{instead}")
