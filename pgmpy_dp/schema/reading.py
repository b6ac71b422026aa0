"""How a cell is spelled before it meets the states of its variable."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

from pgmpy_dp.schema.cells import MISSING, match_key


@dataclass(frozen=True)
class Reading:
    """How a cell of one variable is spelled before it meets the states: a function of that cell alone.

    Attributes
    ----------
    strip, casefold : bool
        Whether blanks around a text, and its upper and lower case, make no difference.
    missing : frozenset of keys
        Cells that are read as missing.
    recode : mapping of key to key
        Cells that are read as another.

    Examples
    --------
    >>> from pgmpy_dp.schema import Schema
    >>> reading = Schema({"sex": ["F", "M"]}, strip=True, recode={"sex": {"female": "F"}}).reading("sex")
    >>> [reading(match_key(cell)) for cell in (" female ", "F", "f")]
    [('text', 'F'), ('text', 'F'), ('text', 'f')]
    """

    strip: bool = False
    casefold: bool = False
    missing: frozenset[tuple] = frozenset()
    recode: Mapping[tuple, tuple] = dataclasses.field(default_factory=dict)

    @property
    def changes(self) -> bool:
        """Whether this reading changes any cell."""
        return bool(self.strip or self.casefold or self.missing or self.recode)

    def spelled(self, key: tuple) -> tuple:
        """The key of a cell or a state in the spelling in which they are compared."""
        if key[0] != "text":
            return key
        text = key[1].strip() if self.strip else key[1]
        return match_key(text.casefold() if self.casefold else text)

    def __call__(self, key: tuple) -> tuple:
        """The spelled key that a cell is read as."""
        key = self.spelled(key)
        key = MISSING if key in self.missing else key
        return self.recode.get(key, key)
