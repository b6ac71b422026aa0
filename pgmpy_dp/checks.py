"""Checks of what users pass, and of what is installed; imports nothing of the package."""

from __future__ import annotations

import math
import numbers
import operator
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

_INSTALL = {
    # Without the index pip takes the build for NVIDIA's GPUs, of more than 2 GB.
    "torch": "pip install torch --index-url https://download.pytorch.org/whl/cpu (for a GPU: pip install torch)",
    "matplotlib": "pip install matplotlib",
}


class ArgumentError(TypeError):
    """An argument that is for something else, or cannot be used with what is there.

    Attributes
    ----------
    name : str
        Of the argument.
    remedy : str
    """

    def __init__(self, name: str, value: object, remedy: str) -> None:
        super().__init__(f"{name}={value!r}: {remedy}")
        self.name, self.remedy = name, remedy


def is_exactly(value: object, *types: type) -> bool:
    """Whether the class of a value is one of these, not a subclass of one."""
    return type(value) in types


def checked_number(
    name: str,
    value: object,
    *,
    positive: bool,
    below_one: bool = False,
    most: float = math.inf,
    infinite: bool = False,
) -> float:
    """`value` as a float: finite, not negative (nor zero if `positive`), at most `most`, below 1 if `below_one`.

    Raises
    ------
    TypeError
        For booleans, text and anything else that is not a real number.
    ValueError
        For NaN, infinities (but inf where `infinite`) and numbers outside the range.
    """
    limit = " below 1" if below_one else "" if math.isinf(most) else f" of at most {most:g}"
    what = f"a {'positive' if positive else 'non-negative'} {'' if infinite else 'finite '}number{limit}"
    checked = _real(name, value, what)
    inside = (checked > 0 if positive else checked >= 0) and checked <= most and not (below_one and checked >= 1)
    if not inside or (math.isinf(checked) and not infinite):
        raise ValueError(f"{name}={value!r} is out of range; pass {what}")
    return checked


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
    limit = "" if math.isinf(most) else f" and at most {most:g}"
    what = f"a {'finite ' * finite}number above {above:g}{limit}"
    checked = _real(name, value, what)
    if not above < checked <= most or (finite and math.isinf(checked)):
        raise ValueError(f"{name}={value!r} is out of range; pass {what}")
    return checked


def _real(name: str, value: object, what: str) -> float:
    """`value` as a float, infinite beyond what one holds; a TypeError for anything but a real number."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name}={value!r} is a {type(value).__name__}; pass {what}")
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
    what = "a number between 0 and 1, for example 0.9"
    number = _real("level", level, what)
    if not 0 < number < 1:
        raise ValueError(f"level={level!r} is out of range; pass {what}")
    return number


def checked_integer(name: str, value: object, least: int, most: int | None = None) -> int:
    """`value` as an int from `least` to `most`; TypeError or ValueError naming the argument otherwise."""
    what = f"a whole number of at least {least}" if most is None else f"a whole number from {least} to {most}"
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name}={value!r} is a {type(value).__name__}; pass {what}")
    checked = int(value)
    if checked < least or (most is not None and checked > most):
        raise ValueError(f"{name}={value!r} is out of range; pass {what}")
    return checked


def require_choice(name: str, value: object, allowed: Sequence[str]) -> None:
    """Raise a ValueError that names the argument if the value is not one of some texts."""
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(f"{name}={value!r} is not supported; pass one of {tuple(allowed)}")


def require_value(name: str, value: object, what: str) -> None:
    """Raise a ValueError if a public number was not passed; it says what the number is."""
    if value is None:
        raise ValueError(
            f"{name}=None: pass {what}, from what is publicly known; never one computed from the records, which would "
            "not be private"
        )


def require_flag(name: str, value: object) -> None:
    """Raise a TypeError that names the argument for anything but a truth value."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name}={value!r} is a {type(value).__name__}; pass True or False")


def exact_fraction(value: Any, name: str = "value") -> Fraction:
    """`value` as a Fraction of two of Python's integers; TypeError or ValueError naming the argument for what is none.

    A Fraction made of NumPy's integers keeps them, and their arithmetic goes round at 8 to 64 bits without an error:
    noise can come out at nothing, and shares that sum to more than 1.

    Examples
    --------
    >>> share = Fraction(1, np.int64(11))
    >>> type(share.denominator), type(exact_fraction(share).denominator)
    (<class 'numpy.int64'>, <class 'int'>)
    """
    if type(value) is not bool and isinstance(value, numbers.Rational):
        exact = Fraction(value)
    else:
        number = _real(name, value, what := "a finite number, such as 0.1 or Fraction(1, 10)")  # NumPy's too
        if not math.isfinite(number):
            raise ValueError(f"{name}={value!r} is not finite; pass {what}")
        exact = Fraction(number)
    return Fraction(int(exact.numerator), int(exact.denominator))


def exact_integer(value: Any) -> int:
    """`value` as one of Python's integers; TypeError for what is none.

    Examples
    --------
    >>> type(exact_integer(True)), exact_integer(np.int8(3))
    (<class 'int'>, 3)
    """
    return int(operator.index(value))


def fresh_copy(value: Any, dtype: Any = np.float64) -> np.ndarray:
    """`value` as an array that is nobody else's, to be checked and used: what is checked is then what is used.

    NumPy takes what an object's ``__array__`` returns for a new array, also where a copy was asked for. So it is copied
    once more.

    Parameters
    ----------
    value : array_like
    dtype : dtype, optional
        None for its own.

    Returns
    -------
    ndarray
        In C order, of no subclass.

    Examples
    --------
    >>> class Mine:
    ...     shared = np.zeros(2)
    ...     def __array__(self, dtype=None, copy=None):
    ...         return self.shared
    >>> np.array(Mine(), copy=True) is Mine.shared, fresh_copy(Mine()) is Mine.shared
    (True, False)
    """
    return np.array(np.asarray(value, dtype=dtype), order="C", copy=True)


def missing_package(package: str, what: str, instead: str = "") -> ImportError:
    """The error of `what` needs `package`: how to install it, or what to do instead.

    Examples
    --------
    >>> missing_package("matplotlib", "plots")
    ImportError('plots need matplotlib, which is not installed: pip install matplotlib')
    """
    verb = "need" if what.endswith("s") else "needs"
    return ImportError(f"{what} {verb} {package}, which is not installed: {_INSTALL[package]}{instead}")
