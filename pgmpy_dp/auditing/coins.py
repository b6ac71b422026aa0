"""Coins of replay: who is in a sample, and which parts of a user are counted, by what a unit is and not by its place.

A coin is a hash of a unit's content, of its number among equal ones and of the number of the draw. So a unit has the
same coins in both runs, whatever else is in the data. Units that only one of the two datasets has are in every sample:
else a step that they are not in would show nothing of them.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable

import numpy as np

Key = tuple[bytes, int]


class Coins:
    """Samples and random numbers of one run.

    Parameters
    ----------
    others : set of keys, optional
        The units of the other dataset. None where it is not known yet: then nothing may be sampled.
    """

    def __init__(self, others: set[Key] | None) -> None:
        self.others = others
        self.units: set[Key] | None = None
        self._draws = 0

    def sample(self, units: Callable[[], np.ndarray], rate: float) -> np.ndarray:
        """Positions of the units that take part, increasing."""
        found = identities(np.ascontiguousarray(row).tobytes() for row in units())
        self.units = set(found)
        assert self.others is not None
        self._draws += 1
        most = rate * 2.0**64
        heads = [key not in self.others or hashed(key, self._draws) < most for key in found]
        return np.flatnonzero(np.array(heads, dtype=bool))

    def keys(self, units: Callable[[], list[bytes]]) -> np.ndarray:
        """A number for each part of a user."""
        self._draws += 1
        return np.array([hashed(key, self._draws) for key in identities(units())], dtype=np.uint64)


def identities(contents: Iterable[bytes]) -> list[Key]:
    """What each unit is: its content, and its number among the units of the same content.

    Examples
    --------
    >>> identities([b"a", b"b", b"a"])
    [(b'a', 0), (b'b', 0), (b'a', 1)]
    """
    seen: Counter[bytes] = Counter()
    found = []
    for content in contents:
        found.append((content, seen[content]))
        seen[content] += 1
    return found


def hashed(key: Key, draw: int) -> int:
    """64 bits for a unit and a draw."""
    content, number = key
    text = content + number.to_bytes(8, "little") + draw.to_bytes(8, "little")
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")
