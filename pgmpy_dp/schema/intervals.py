"""Intervals of numbers as states."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence

from pgmpy_dp.schema.labels import known_names, short

_CUT = r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
_INTERVAL = re.compile(rf"\s*(?:<\s*{_CUT}|\[\s*{_CUT}\s*,\s*{_CUT}\s*\)|>=\s*{_CUT})\s*")


def interval_states(cuts: Iterable[float]) -> list[str]:
    """Names of the intervals between some numbers, as states of a variable whose values are numbers.

    A :class:`~pgmpy_dp.Number` says more: bounds, what becomes of missing and outside cells, a resolution.

    Parameters
    ----------
    cuts : iterable of float
        Finite and ascending, at least one. Each is the first number of the interval above it.

    Returns
    -------
    list of str
        One more than cuts. They cover all numbers: "<a", "[a,b)", ..., ">=z".

    Raises
    ------
    ValueError
        If `cuts` is empty, or holds numbers that are not finite or do not ascend.

    Examples
    --------
    >>> interval_states([25, 45, 67.5])
    ['<25', '[25,45)', '[45,67.5)', '>=67.5']
    """
    numbers = [float(cut) for cut in cuts]
    finite = all(math.isfinite(number) for number in numbers)
    if not numbers or not finite or any(a >= b for a, b in itertools.pairwise(numbers)):
        raise ValueError(f"cuts={numbers!r} must be finite numbers in ascending order, at least one")
    texts = [f"{number:.15g}" for number in numbers]
    return [f"<{texts[0]}", *(f"[{a},{b})" for a, b in itertools.pairwise(texts)), f">={texts[-1]}"]


def interval_cuts(states: Sequence) -> list[float] | None:
    """The cuts of :func:`~pgmpy_dp.schema.interval_states` that give these states, in their order; None where none do.

    Examples
    --------
    >>> interval_cuts(["<25", "[25,45)", ">=45"]), interval_cuts(["no", "yes"])
    ([25.0, 45.0], None)
    """
    if len(states) < 2 or not all(isinstance(state, str) and len(state) > 1 for state in states):
        return None
    try:
        cuts = [float(states[0][1:]), *(float(state[:-1].split(",")[-1]) for state in states[1:-1])]
        return cuts if interval_states(cuts) == list(states) else None
    except ValueError:
        return None


def almost_intervals(states: Sequence, other: Hashable = None) -> list[str] | None:
    """Return what `interval_states` says for states in its notation that are not read so; else None.

    A state is in the notation if it is ``<a``, ``[a,b)`` or ``>=b`` but for blanks and how numbers are spelled.
    Somebody may expect that numbers are counted in such states, though they are compared as texts. These are states
    with a ``[a,b)`` among them, states that cover all numbers, and states with no others than None and `other`. The
    rest, such as ``<25, 25-34, >=35`` or ``(0, 30]``, are names of groups in a column that holds these names.

    Examples
    --------
    >>> almost_intervals(["<30", "[30, 60)", ">=60"]), almost_intervals(["<30", "[30,60)", ">=60"])
    (['<30', '[30,60)', '>=60'], None)
    >>> almost_intervals(["[18,30)", "unknown"]), almost_intervals(["<25", "25-34", ">=35"])
    (['<18', '[18,30)', '>=30'], None)
    """
    if interval_cuts(states) is not None:
        return None
    matches = [match for state in states if isinstance(state, str) and (match := _INTERVAL.fullmatch(state))]
    cuts = sorted(
        {number for match in matches for text in match.groups() if text and math.isfinite(number := float(text))}
    )
    if not cuts:
        return None
    meant = interval_states(cuts)
    named = [s for s in states if s is not None and s != other and not (isinstance(s, str) and _INTERVAL.fullmatch(s))]
    written = ["".join(match.group().split()) for match in matches]
    between = any(match.group(2) for match in matches)
    return meant if between or not named or written == meant else None


def refuse_almost_intervals(
    variables: Mapping[Hashable, tuple],
    other: Mapping[Hashable, Hashable],
    texts: Iterable[Hashable],
    passed: Collection[Hashable],
) -> None:
    """ValueError for states that look like intervals to a reader, and would be compared as texts.

    Variables that `texts` names, after a check of it, and those that are `passed` may have them.
    """
    texts = known_names("texts", texts, variables, "discrete variables")
    for name, states in variables.items():
        meant = None if name in texts or name in passed else almost_intervals(states, other.get(name))
        if meant is not None:
            raise ValueError(
                f"variable {name!r} has the states {short(states)}, which look like intervals but would be compared as "
                "texts, so that no number is counted in them; for a column of numbers declare "
                f"{name!r}: Number(lower, upper, cuts={interval_cuts(meant)}), which has states for missing and "
                f"outside numbers, or what interval_states gives, here {short(meant)}, and no other state; for a "
                f"column of such texts pass Schema(..., texts=[{name!r}])"
            )
