"""Levels of a variable: a public tree over its states, such as tracts in counties, or codes by their prefixes.

Records have a leaf of the tree. A level is a function of the leaf, so whoever knows a leaf knows its place in every
level, and a table by a level is that by the leaf, added up. A level is no variable: no column of it is read.
"""

from __future__ import annotations

import csv
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

from pgmpy_dp.schema.labels import decode_label, encode_label, short
from pgmpy_dp.schema.provenance import Costs, costs_of


@dataclass(frozen=True)
class Level:
    """One level of a variable, as tables are counted by it.

    Attributes
    ----------
    variable : hashable
        Whose level it is.
    states : tuple
    places : tuple of int
        For each state of the variable its place in `states`.
    """

    variable: Hashable
    states: tuple
    places: tuple[int, ...]


class Levels(tuple):
    """The states of a variable with a public tree over them: a declaration of a :class:`~pgmpy_dp.Schema`.

    Parameters
    ----------
    leaves : sequence of states
        The states that records have, as of any variable.
    **levels
        By the name of each level, from fine to coarse: from each state of the level before it, or from each leaf, to
        the state that it is part of. The first one may know more leaves than are listed. These count in a leaf of
        their own for each state, ``"rest of Orange"``.

    Attributes
    ----------
    levels : mapping of name to (tuple of states, tuple of int)
        The states of each level, and for each leaf the place of its state among them.
    unlisted : mapping of cell to leaf
        Cells that are no leaf and count in the rest of a known state.
    prefixes : mapping of int to (mapping of str to leaf)
        The same for codes that begin like others: by the number of signs, from many to few, and the beginning.
    codes : bool
        Whether cells are compared as they are written, see :class:`~pgmpy_dp.Schema`.

    Raises
    ------
    TypeError, ValueError
        Without a level, for what is no mapping, for a leaf without a parent or with two, and for a level that has one
        state, or not fewer states than the level before it.

    Notes
    -----
    All of it is public. Cells that are neither leaves nor known to the tree are dropped with their records, or count in
    the state that the schema's `other` names. That is a state of its own at every level: what cannot be read is not
    guessed. So is a leaf None, of missing values. If records have a column of a level too, it is not read. Where it
    contradicts the leaf, the leaf counts.

    Examples
    --------
    >>> places = Levels(["t1", "t2", "t3"], county={"t1": "Kern", "t2": "Kern", "t3": "Clark", "t4": "Clark"})
    >>> list(places), places.levels["county"]
    (['t1', 't2', 't3', 'rest of Clark'], (('Kern', 'Clark'), (0, 0, 1, 1)))
    """

    discovered: Costs = ()
    levels: Mapping[Hashable, tuple[tuple, tuple[int, ...]]]
    unlisted: Mapping[Hashable, Hashable]
    prefixes: Mapping[int, Mapping[str, Hashable]]
    codes: bool

    def __new__(cls, leaves: Iterable, /, **levels: Mapping) -> Self:
        if not levels:
            raise ValueError("Levels has no level; pass the maps of some, county={leaf: county}, from fine to coarse")
        parents: dict[Hashable, dict] = {}
        for name, listed in levels.items():
            if not isinstance(listed, Mapping):
                raise TypeError(f"{name}={short(listed)} is not a mapping; pass {{state of the level before: state}}")
            mapping = {_label(state): _label(parent) for state, parent in listed.items()}
            if not parents:
                plain = [_label(leaf) for leaf in leaves]
                cells = dict.fromkeys([*plain, *mapping])
                parents[name] = {leaf: _parent(name, mapping, leaf) for leaf in cells}
                continue
            before = next(reversed(parents.values()))
            steps = before if any(state in mapping for state in before.values()) else {leaf: leaf for leaf in cells}
            parents[name] = {leaf: _parent(name, mapping, steps[leaf]) for leaf in cells}
        first, known = parents[next(iter(parents))], set(plain)
        rests = {}
        for cell in cells:
            if cell not in known and first[cell] not in rests:
                rests[first[cell]] = rest = _unlike(f"rest of {first[cell]}", cells.keys() | rests.values())
                for of in parents.values():
                    of[rest] = of[cell]
        every = [*plain, *rests.values()]
        unlisted = {cell: rests[first[cell]] for cell in cells if cell not in known}
        return cls._made(every, {name: [of[leaf] for leaf in every] for name, of in parents.items()}, unlisted)._as(
            discovered=costs_of(leaves)
        )

    @classmethod
    def from_prefix(cls, codes: Sequence, widths: Mapping[Hashable, int], rest: bool = True) -> Self:
        """Levels of codes by their first signs, such as diagnoses, occupations, products and days.

        Parameters
        ----------
        codes : sequence of str or int
            Also discovered ones.
        widths : mapping of name to int
            How many first signs the state of each level has.
        rest : bool, default True
            Whether each state of each level has a leaf for the codes that begin like it and are not listed. Without
            one their records are dropped, or count in the schema's `other`.

        Returns
        -------
        Levels

        Raises
        ------
        TypeError
            For widths that are not whole numbers from 1 on.

        Examples
        --------
        >>> icd = Levels.from_prefix(["E119", "E110", "E65", "I10"], {"chapter": 1, "group": 3}, rest=False)
        >>> icd.levels["chapter"], icd.levels["group"]
        ((('E', 'I'), (0, 0, 0, 1)), (('E11', 'E65', 'I10'), (0, 0, 1, 2)))
        """
        if not isinstance(widths, Mapping) or not widths or any(type(w) is not int or w < 1 for w in widths.values()):
            raise TypeError(f"widths={short(widths)}; pass how many first signs each level has, {{'chapter': 1}}")
        order = sorted(widths, key=lambda name: -widths[name])
        plain = [code if code is None else str(_label(code)) for code in codes]
        every, prefixes = list[Any](plain), dict[int, Mapping[str, Hashable]]()
        parents = {name: [code and code[: widths[name]] for code in plain] for name in order}
        for k, name in enumerate(order if rest else ()):
            rests: dict[str, Hashable] = {}
            for begin in dict.fromkeys(code[: widths[name]] for code in plain if code is not None):
                rests[begin] = leaf = _unlike(f"rest of {begin}", {*every, *rests.values()})
                for j, other in enumerate(order):
                    parents[other].append(leaf if j < k else begin[: widths[other]])
            every += rests.values()
            prefixes[widths[name]] = rests
        return cls._made(every, parents, {}, prefixes, True)._as(discovered=costs_of(codes))

    @classmethod
    def from_csv(cls, path: str | Path, leaves: Sequence | None = None) -> Self:
        """Levels of codes from a file of the tree: a line for each leaf, with its state at each level behind it.

        Parameters
        ----------
        path : str or path
            Of commas, in UTF-8. The first line has the names of the columns: of the leaf, then of the levels from fine
            to coarse.
        leaves : sequence of str, optional
            The leaves that are listed, such as discovered ones; default: all of the file.

        Returns
        -------
        Levels

        Raises
        ------
        ValueError
            For a file that is no such table, and for a leaf with two states at a level.
        """
        with open(path, newline="", encoding="utf-8-sig") as lines:
            (_, *names), *rows = [row for row in csv.reader(lines) if row] or [[""]]
        if not names or any(len(row) != len(names) + 1 for row in rows):
            raise ValueError(f"{str(path)!r} is no tree; write a leaf and its state at each level in every line")
        maps: dict[str, dict] = {name: {} for name in names}
        for leaf, *states in rows:
            for name, state in zip(names, states, strict=True):
                if maps[name].setdefault(leaf, state or None) != (state or None):
                    raise ValueError(f"{str(path)!r} has two states of {name!r} for the leaf {leaf!r}; leave one out")
        return cls(maps[names[0]] if leaves is None else leaves, **maps)._as(codes=True)

    @classmethod
    def _made(
        cls,
        leaves: Sequence,
        parents: Mapping[Hashable, Sequence],
        unlisted: Mapping[Hashable, Hashable],
        prefixes: Mapping[int, Mapping[str, Hashable]] = MappingProxyType({}),
        codes: bool = False,
    ) -> Self:
        """A tree, checked, from the parent of each leaf at each level."""
        made = super().__new__(cls, leaves)
        levels, finer, size = {}, list(leaves), len(set(leaves))
        if size < len(leaves):
            raise ValueError(f"the leaves {short([leaf for leaf in made if made.count(leaf) > 1])} are there twice")
        for name, of in parents.items():
            states = tuple(dict.fromkeys(of))
            if not 1 < len(states) < size:
                what = "at least two states, and fewer than the level before it"
                raise ValueError(
                    f"the level {name!r} has {len(states)} states where {size} are before it; it has {what}"
                )
            above: dict[Hashable, Hashable] = {}
            for state, parent in zip(finer, of, strict=True):
                if above.setdefault(state, parent) != parent:
                    raise ValueError(
                        f"the level {name!r} has {above[state]!r} and {parent!r} above {state!r}; a state is part of "
                        "one of the next level: give states that only share a name different ones"
                    )
            position = {state: place for place, state in enumerate(states)}
            levels[_label(name)] = (states, tuple(position[parent] for parent in of))
            finer, size = list(of), len(states)
        return made._as(
            levels=MappingProxyType(levels),
            unlisted=MappingProxyType(dict(unlisted)),
            prefixes=MappingProxyType(dict(prefixes)),
            codes=codes,
        )

    def _as(self, **attributes: Any) -> Self:
        made = tuple.__new__(type(self), self)
        made.__dict__.update(self.__dict__ | attributes)
        return made

    @property
    def parents(self) -> dict[Hashable, list]:
        """The state of each leaf at each level."""
        return {name: [states[place] for place in places] for name, (states, places) in self.levels.items()}

    def marked(self, costs: Costs) -> Self:
        """The same tree, which says what it cost to find the leaves.

        Parameters
        ----------
        costs : tuple of str

        Returns
        -------
        Levels
        """
        return self._as(discovered=costs)

    def with_unknown(self, leaf: Hashable) -> Self:
        """The tree in which a leaf, added if need be, is a state of its own at every level.

        Parameters
        ----------
        leaf : hashable

        Returns
        -------
        Levels

        Raises
        ------
        ValueError
            If the leaf is the name of another state.
        """
        leaf = _label(leaf)
        if self.prefixes and any(of[self.index(leaf)] != leaf for of in self.parents.values() if leaf in self):
            rests = {rest for of in self.prefixes.values() for rest in of.values()}  # without those of the unknown leaf
            codes = [code for code in self if code not in rests and code != leaf]
            return self.from_prefix(codes, dict(zip(self.levels, self.prefixes, strict=True))).with_unknown(leaf)
        every = list(dict.fromkeys([*self, leaf]))
        parents = {name: [*of, leaf][: len(every)] for name, of in self.parents.items()}
        for name, of in parents.items():
            of[every.index(leaf)] = leaf
            if of.count(leaf) > 1:
                raise ValueError(f"other={leaf!r} is a state of the level {name!r} too; pass another one")
        return self._made(every, parents, self.unlisted, self.prefixes, self.codes).marked(self.discovered)

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form, without the leaves.

        Returns
        -------
        dict
        """
        levels = [
            {"name": encode_label(name), "states": [*map(encode_label, states)], "places": list(places)}
            for name, (states, places) in self.levels.items()
        ]
        rests = {"unlisted": _pairs(self.unlisted)} if self.unlisted else {}
        begins = [[width, _pairs(rest)] for width, rest in self.prefixes.items()]
        return {"levels": levels, **rests, **({"prefixes": begins} if begins else {})}

    @classmethod
    def from_dict(cls, leaves: Sequence, content: Mapping, codes: bool = False) -> Self:
        """The tree that :meth:`to_dict` wrote.

        Parameters
        ----------
        leaves : sequence of states
        content : mapping
        codes : bool, default False
            Whether cells are compared as they are written.

        Returns
        -------
        Levels

        Raises
        ------
        ValueError
            For what no tree can be.
        """
        parents = {}
        for level in content["levels"]:
            states = [decode_label(state) for state in level["states"]]
            if len(level["places"]) != len(leaves) or not all(0 <= place < len(states) for place in level["places"]):
                raise ValueError(f"the level {level['name']!r} has not one of its states for each leaf")
            parents[decode_label(level["name"])] = [states[place] for place in level["places"]]
        unlisted = {decode_label(cell): decode_label(leaf) for cell, leaf in content.get("unlisted", ())}
        begins = {width: {begin: decode_label(leaf) for begin, leaf in of} for width, of in content.get("prefixes", ())}
        if not set(leaves) >= {*unlisted.values(), *(leaf for of in begins.values() for leaf in of.values())}:
            raise ValueError("the tree counts cells in a leaf that it lacks")
        return cls._made(leaves, parents, unlisted, begins, codes)

    def __reduce__(self) -> tuple:
        return (_read_again, (tuple(self), self.to_dict(), self.codes, self.discovered))


def levels_of(states: Mapping[Hashable, tuple], taken: set) -> dict[Hashable, Level]:
    """The levels of variables; ValueError for one that is named like a variable, or like another level."""
    levels: dict[Hashable, Level] = {}
    for variable, tree in states.items():
        for name, (listed, places) in tree.levels.items() if isinstance(tree, Levels) else ():
            if name in taken or name in levels:
                raise ValueError(
                    f"the level {name!r} of {variable!r} is named like a variable or another level; if it is a column "
                    "of the records leave that out of the schema, for the leaf says all of it, or give it another name"
                )
            levels[name] = Level(variable, listed, places)
    return levels


def leaf_scope(levels: Mapping[Hashable, Level], names: Iterable, argument: str) -> dict[Hashable, Level | None]:
    """As :meth:`~pgmpy_dp.Schema.leaf_scope`."""
    scope: dict[Hashable, Level | None] = {}
    for name in names:
        level = levels.get(name)
        variable = name if level is None else level.variable
        if variable in scope and (level is not None or scope[variable] is not None):
            raise ValueError(
                f"{argument} has {name!r} and another level of {variable!r}, of which one says all of the other; name "
                "the finer one alone"
            )
        scope[variable] = level
    return scope


def with_other(name: Hashable, tree: Levels, other: Any) -> Levels:
    """The tree with the other-state of its variable, if there is one, as a state of its own at every level."""
    named = {_label(key): state for key, state in other.items()} if isinstance(other, Mapping) else {}
    return tree.with_unknown(named[name]) if name in named else tree


def _read_again(leaves: tuple, content: Mapping, codes: bool, costs: Costs) -> Levels:
    return Levels.from_dict(leaves, content, codes).marked(costs)


def _label(label: object) -> Any:
    return decode_label(encode_label(label))


def _parent(name: Hashable, mapping: Mapping, state: Hashable) -> Hashable:
    parent = mapping.get(state)
    if parent is None and state is not None:
        raise ValueError(
            f"the level {name!r} has no state for {state!r}; add it to the map. A state for all that is not known is "
            "not a leaf: leave it out, the schema's other={name: state} adds it"
        )
    return parent


def _unlike(name: str, taken: Iterable) -> str:
    while name in taken:
        name += "_"
    return name


def _pairs(mapping: Mapping) -> list[list]:
    return [[encode_label(key), encode_label(value)] for key, value in mapping.items()]
