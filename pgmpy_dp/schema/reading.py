"""The spelling of a cell before it meets the states of its variable."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pgmpy_dp.schema.cells import MISSING, match_key
from pgmpy_dp.schema.intervals import interval_cuts
from pgmpy_dp.schema.labels import NO_CODE, decode_label, encode_label, known_names, short
from pgmpy_dp.schema.number import OUTSIDE, Number

OPTIONS = ("missing", "strip", "casefold", "recode")
_UNREADABLE = match_key(b"\xff")


@dataclass(frozen=True)
class Reading:
    """The spelling of one variable's cells before they meet the states: a function of each cell alone.

    Attributes
    ----------
    strip, casefold : bool
        Whether blanks around a text, and its upper and lower case, make no difference.
    missing : frozenset of keys
        Cells that are read as missing.
    recode : mapping of key to key
        Cells that are read as another.
    codes : bool
        Whether cells are compared as they are written, and not by what they mean.
    dressed : Number, optional
        The variable, if its texts have units or other signs, by which its cells have keys.
    rests : tuple of (int, mapping of key to key)
        Of codes with levels: what those are read as that are no states and begin with so many signs like some that are.
    known : frozenset of keys
        The states of such codes.

    Examples
    --------
    >>> from pgmpy_dp.schema import Schema
    >>> reading = Schema({"sex": ["F", "M"]}, strip=True, recode={"sex": {"female": "F"}}).reading("sex")
    >>> [reading(reading.key(cell)) for cell in (" female ", "F", "f")]
    [('text', 'F'), ('text', 'F'), ('text', 'f')]
    """

    strip: bool = False
    casefold: bool = False
    missing: frozenset[tuple] = frozenset()
    recode: Mapping[tuple, tuple] = dataclasses.field(default_factory=dict)
    codes: bool = False
    dressed: Number | None = None
    rests: tuple[tuple[int, Mapping[tuple, tuple]], ...] = ()
    known: frozenset[tuple] = frozenset()

    @property
    def changes(self) -> bool:
        """Whether this reading changes the key of any cell."""
        return bool(self.strip or self.casefold or self.missing or self.recode or self.rests)

    @property
    def as_written(self) -> bool:
        """Whether fields of a text file are read as they are written, whatever its signs of numbers are."""
        return self.codes or self.dressed is not None

    def key(self, cell: object) -> tuple:
        """The key by which a cell, or a state, is compared in this variable; it never raises."""
        if self.dressed is not None:
            return self.dressed.key(cell)
        return match_key(cell, "code" if self.codes else "meaning")

    def spelled(self, key: tuple) -> tuple:
        """The key of a cell or a state in the spelling in which they are compared."""
        if key[0] != "text":
            return key
        text = key[1].strip() if self.strip else key[1]
        return self.key(text.casefold() if self.casefold else text)

    def __call__(self, key: tuple) -> tuple:
        """The spelled key that a cell is read as."""
        key = self.spelled(key)
        key = MISSING if key in self.missing else key
        key = self.recode.get(key, key)
        if self.rests and key[0] == "text" and key not in self.known:
            begun = (rest.get(("text", key[1][:width])) for width, rest in self.rests)
            return next(filter(None, begun), key)
        return key

    def listed(self, key: tuple) -> tuple:
        """The key under which `discover` lists a cell: a text as it is spelled, blanks aside with `strip`.

        What is missing or recoded is listed as what it is read as.

        Examples
        --------
        >>> reading = Reading(casefold=True, missing=frozenset([("text", "na")]))
        >>> [reading.listed(("text", text)) for text in ("Nurse", "NA")]
        [('text', 'Nurse'), ('missing',)]
        """
        read = self(key)
        if key[0] != "text" or read != self.spelled(key):
            return read
        return ("text", key[1].strip()) if self.strip else key


def said_of(
    variables: Sequence[Hashable], missing: Any, strip: Any, casefold: Any, recode: Any, codes: Any
) -> dict[str, Any]:
    """The options of a schema that say how cells are read, checked, as they are written down."""
    said: dict[str, Any] = {"missing": missing, "strip": strip, "casefold": casefold, "codes": codes}
    for option in ("strip", "casefold", "codes"):
        if not isinstance(said[option], bool):
            said[option] = known_names(option, said[option], variables)
    if isinstance(missing, Mapping):
        names = known_names("missing", missing, variables)
        said["missing"] = {name: _cells("missing", missing[name]) for name in names}
    else:
        said["missing"] = _cells("missing", missing)
    recode = {} if recode is None else recode
    if not isinstance(recode, Mapping) or not all(isinstance(pairs, Mapping) for pairs in recode.values()):
        raise TypeError(f"recode={short(recode)} is not a mapping of mappings; pass recode={{name: {{cell: state}}}}")
    said["recode"] = {
        name: dict(zip(_cells("recode", recode[name]), _cells("recode", recode[name].values()), strict=True))
        for name in known_names("recode", recode, variables)
    }
    return said


def readings_of(
    variables: Sequence[Hashable],
    states: Mapping[Hashable, tuple],
    numbers: Mapping[Hashable, Number],
    said: Mapping[str, Any],
) -> dict[Hashable, Reading]:
    """Return how each variable is read whose cells are not simply themselves; `said` is from :func:`said_of`."""
    readings = {}
    for name in variables:
        strip, casefold = (v if isinstance(v, bool) else name in v for v in (said["strip"], said["casefold"]))
        number = numbers.get(name)
        dressed = number if number is not None and number.dressed else None
        plain = Reading(strip, casefold, codes=name in said["codes"], dressed=dressed)
        of_name = isinstance(said["missing"], Mapping)
        cells = said["missing"].get(name, ()) if of_name else said["missing"]
        keys = {plain.spelled(plain.key(cell)): cell for cell in cells}
        if _UNREADABLE in keys and of_name:
            raise ValueError(f"missing[{name!r}] has {keys[_UNREADABLE]!r}, and {NO_CODE}")
        tree = states.get(name, ())
        rests = dict(getattr(tree, "rests", {}))
        made = dataclasses.replace(
            plain,
            missing=frozenset(keys.keys() - {_UNREADABLE}),
            recode=_recoded(name, {**rests.pop(0, {}), **said["recode"].get(name, {})}, plain),
            rests=tuple((width, _recoded(name, of, plain)) for width, of in rests.items()),
            known=frozenset(plain.spelled(plain.key(state)) for state in (tree if rests else ())),
        )
        if made.changes or made.codes or made.dressed:
            readings[name] = _checked(name, made, tree, number)
    return readings


def others_of(
    variables: Sequence[Hashable],
    states: Mapping[Hashable, tuple],
    numbers: Mapping[Hashable, Number],
    readings: Mapping[Hashable, Reading],
    other: Any,
) -> dict[Hashable, Any]:
    """The other-states of variables, in the order of these, each as it is among the states."""
    if other is not None and not isinstance(other, Mapping):
        raise TypeError(f"other={short(other)} is not a mapping; pass {{name: state}}")
    checked = {}
    for label, state in (other or {}).items():
        name = decode_label(encode_label(label))
        if name in numbers:
            raise ValueError(f"other names {name!r}, a variable of numbers; use missing= and outside= of its Number")
        if name not in states:
            raise ValueError(f"other names {name!r}, which is not a discrete variable of the schema; remove it")
        key = readings.get(name, Reading()).key
        keys = {key(s): s for s in states[name]}
        if key(state) not in keys:
            raise ValueError(f"other[{name!r}]={state!r} is not among the states {short(states[name])}; add it to them")
        checked[name] = keys[key(state)]
    return {name: checked[name] for name in variables if name in checked}


def _checked(name: Hashable, reading: Reading, states: tuple, number: Number | None) -> Reading:
    """The reading of one variable, with blank cells; ValueError where it would lose or confuse a state."""
    spelled: dict[tuple, Any] = {}
    for state in states:
        key = reading.spelled(reading.key(state))
        if key in spelled:
            raise ValueError(
                f"variable {name!r} has the states {spelled[key]!r} and {state!r}, which strip or casefold make "
                "the same; remove one, or leave this variable out of these options"
            )
        spelled[key] = state
    blank = ("text", "")
    if reading.strip and blank not in spelled and blank not in reading.recode:
        reading = dataclasses.replace(reading, missing=reading.missing | {blank})
    # A cell of numbers need not be read by its label: which labels merged cells will have is not known.
    cells = () if number is None else number.cells
    taken = [
        state
        for key, state in spelled.items()
        if state not in cells and (key in reading.missing or reading.recode.get(key, key) != key)
    ]
    if taken:
        raise ValueError(
            f"variable {name!r} has the states {taken}, which missing or recode read as another; remove them, or "
            "name the variables in missing: {name: [cells]}"
        )
    if number is not None:
        code = dataclasses.replace(number, missing="drop", outside="drop").coder()
        known = {key for key in reading.recode.values() if code(key) >= 0 or key == ("text", OUTSIDE)}
    else:  # among interval states a number is read too
        of_intervals = not reading.codes and interval_cuts(states)
        known = {key for key in reading.recode.values() if key[0] == "number" and of_intervals}
    known |= {*spelled, MISSING}
    bad = [key for key in reading.recode.values() if key not in known]
    if bad:
        raise ValueError(
            f"recode[{name!r}] reads cells as {bad[0][-1]!r}, which is none of its states"
            f"{' nor a number within its bounds' if number else ''}; recode to a state, or to None for missing"
        )
    return reading


def _cells(option: str, cells: Any) -> list:
    """A list of cells as labels."""
    if isinstance(cells, str | bytes) or not isinstance(cells, Iterable):
        raise TypeError(
            f"{option}={short(cells)} is not a list of cells; pass {option}=['?', 'NA'] or {{name: [cell]}}"
        )
    return [decode_label(encode_label(cell)) for cell in cells]


def _recoded(name: Hashable, recoded: Mapping, plain: Reading) -> dict[tuple, tuple]:
    """Keys of cells and of what they are read as; ValueError where one cell would be two things."""
    read_as: dict[tuple, tuple] = {}
    for cell, state in recoded.items():
        key, other = (plain.spelled(plain.key(value)) for value in (cell, state))
        if _UNREADABLE in (key, other):
            raise ValueError(f"recode[{name!r}] reads {cell!r} as {state!r}, and {NO_CODE}")
        if read_as.setdefault(key, other) != other:
            raise ValueError(f"recode[{name!r}] reads {cell!r} as two things, for its cells are compared as the same")
    return read_as


def encoded(said: Any) -> Any:
    """JSON form of an option of reading: a truth value, a label or a list of labels, or pairs of a label and such."""
    if isinstance(said, Mapping):
        return {"pairs": [[encode_label(label), encoded(value)] for label, value in said.items()]}
    return [encode_label(label) for label in said] if isinstance(said, list) else encode_label(said)


def decoded(said: Any) -> Any:
    """Return the option of reading that :func:`encoded` wrote."""
    if isinstance(said, dict) and "pairs" in said:
        return {decode_label(label): decoded(value) for label, value in said["pairs"]}
    return [decode_label(label) for label in said] if isinstance(said, list) else decode_label(said)
