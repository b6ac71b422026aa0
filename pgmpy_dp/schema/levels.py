"""Levels of a variable: a public tree over its states, such as tracts in counties, or codes by their prefixes.

Records have a leaf of the tree. A level is a function of the leaf, so whoever knows a leaf knows its place in every
level, and a table by a level is that by the leaf, added up. A level is no variable: no column of it is read.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

import numpy as np

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

    @property
    def told(self) -> np.ndarray:
        """1 where a state of the variable is part of one of the level, shape (n_states, states of the variable)."""
        return np.eye(len(self.states))[:, self.places]


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
    parents : mapping of name to tuple of states
        For each leaf the state of each level that it is part of.
    rests : mapping of int to (mapping of cell to leaf)
        Cells that are no leaf and count in the rest of a known state, under 0. Of codes by prefixes those that begin
        so, under the number of signs, from many to few.
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
    >>> tracts = Levels(["t1", "t2", "t3"], county={"t1": "Kern", "t2": "Kern", "t3": "Clark", "t4": "Clark"})
    >>> list(tracts), tracts.parents["county"]
    (['t1', 't2', 't3', 'rest of Clark'], ('Kern', 'Kern', 'Clark', 'Clark'))
    """

    parents: Mapping[Hashable, tuple]
    rests: Mapping[int, Mapping[Hashable, Hashable]] = MappingProxyType({})
    codes: bool = False
    discovered: Costs = ()

    def __new__(cls, leaves: Iterable, /, **levels: Mapping) -> Self:
        maps = {_label(name): _labels(name, of) for name, of in levels.items()}
        plain = [_label(leaf) for leaf in leaves]
        first: dict = next(iter(maps.values()), {})
        cells = list(dict.fromkeys([*plain, *first]))
        parents, steps = dict[Hashable, dict](), dict(zip(cells, cells, strict=True))
        for name, of in maps.items():
            before = steps if any(state in of for state in steps.values()) else dict(zip(cells, cells, strict=True))
            steps = parents[name] = {cell: _parent(name, of, before[cell]) for cell in cells}
        unlisted, rests, taken = {}, {}, set(cells)
        for cell in cells[len(dict.fromkeys(plain)) :]:
            parent = first[cell]
            if parent not in rests:
                rests[parent] = _unlike(f"rest of {parent}", taken)
                for states in parents.values():
                    states[rests[parent]] = states[cell]
            unlisted[cell] = rests[parent]
        every = [*plain, *rests.values()]
        of_every = {name: [states[leaf] for leaf in every] for name, states in parents.items()}
        return cls._made(every, of_every, rests={0: unlisted}, discovered=costs_of(leaves))._declared()

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
        >>> icd.parents["chapter"], icd.parents["group"]
        (('E', 'E', 'E', 'I'), ('E11', 'E11', 'E65', 'I10'))
        """
        if not isinstance(widths, Mapping) or not all(type(width) is int and width > 0 for width in widths.values()):
            raise TypeError(f"widths={short(widths)}; pass how many first signs each level has, {{'chapter': 1}}")
        order = dict(sorted(widths.items(), key=lambda pair: -pair[1]))
        plain = [code if code is None else str(_label(code)) for code in codes]
        parents = {name: [code and code[:width] for code in plain] for name, width in order.items()}
        every, taken, rests = list[Any](plain), set(plain), dict[int, dict]()
        for k, width in enumerate(order.values() if rest else ()):
            begins = dict.fromkeys(code[:width] for code in plain if code is not None)
            rests[width] = {begin: _unlike(f"rest of {begin}", taken) for begin in begins}
            for begin, leaf in rests[width].items():
                every.append(leaf)
                for j, name in enumerate(order):
                    parents[name].append(leaf if j < k else begin[: order[name]])
        return cls._made(every, parents, rests=rests, codes=True, discovered=costs_of(codes))._declared()

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
    def _made(cls, leaves: Sequence, parents: Mapping, **facts: Any) -> Self:
        """A tree from the parent of each leaf at each level; ValueError for what is none."""
        made, finer = super().__new__(cls, leaves), leaves
        for name, of in parents.items():
            above: dict[Hashable, Hashable] = {}
            for state, parent in zip(finer, of, strict=True):
                if above.setdefault(state, parent) != parent:
                    raise ValueError(
                        f"the level {name!r} has {above[state]!r} and {parent!r} above {state!r}; a state is part of "
                        "one of the next level: give states that only share a name different ones"
                    )
            finer = of
        made.__dict__.update(facts, parents=MappingProxyType({name: tuple(of) for name, of in parents.items()}))
        return made

    def _as(self, leaves: Sequence | None = None, **facts: Any) -> Self:
        return self._made(self if leaves is None else leaves, **{**vars(self), **facts})

    def _declared(self) -> Self:
        """The tree; ValueError where a person would not mean it."""
        sizes = [len(self), *(len(set(of)) for of in self.parents.values())]
        if len(sizes) == 1:
            raise ValueError("Levels has no level; pass the maps of some, county={leaf: county}, from fine to coarse")
        for name, before, size in zip(self.parents, sizes, sizes[1:], strict=False):
            if not 1 < size < before:
                what = "at least two states, and fewer than there are before it"
                raise ValueError(f"the level {name!r} has {size} states where {before} are before it; it has {what}")
        return self

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
        widths = {name: width for name, width in zip(self.parents, self.rests, strict=False) if width}
        if widths and leaf in self and any(of[self.index(leaf)] != leaf for of in self.parents.values()):
            rests = {rest for of in self.rests.values() for rest in of.values()}  # without those of the unknown leaf
            return self.from_prefix([code for code in self if code not in rests | {leaf}], widths).with_unknown(leaf)
        every = list(dict.fromkeys([*self, leaf]))
        place = every.index(leaf)
        parents = {name: [*of[:place], leaf, *of[place + 1 :]] for name, of in self.parents.items()}
        if name := next((name for name, of in parents.items() if of.count(leaf) > 1), None):
            raise ValueError(f"other={leaf!r} is a state of the level {name!r} too; pass another one")
        return self._as(every, parents=parents)

    def with_rare(self, rare: Sequence[bool]) -> tuple[Self, tuple[int, ...]]:
        """The tree in which the rare leaves of a state become one, its rest, where there are several.

        Parameters
        ----------
        rare : sequence of bool
            Of each leaf.

        Returns
        -------
        Levels
        places : tuple of int
            The new place of each leaf.
        """
        parents = next(iter(self.parents.values()))
        several = Counter(compress(parents, rare))
        kept = {leaf for leaf, of, is_rare in zip(self, parents, rare, strict=True) if not is_rare or several[of] < 2}
        taken = set(kept)
        names = {of: _unlike(f"rest of {of}", taken) for of, count in several.items() if count > 1}
        became = {leaf: leaf if leaf in kept else names[of] for leaf, of in zip(self, parents, strict=True)}
        place = {leaf: k for k, leaf in enumerate(dict.fromkeys(became.values()))}
        first = np.unique([place[leaf] for leaf in became.values()], return_index=True)[1].tolist()
        states = {name: [of[k] for k in first] for name, of in self.parents.items()}
        rests = {width: {begin: became[leaf] for begin, leaf in of.items()} for width, of in self.rests.items()}
        return self._as(list(place), parents=states, rests=rests), tuple(place[leaf] for leaf in became.values())

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form, without the leaves.

        Returns
        -------
        dict
        """
        levels = [{"name": encode_label(name), "of": [*map(encode_label, of)]} for name, of in self.parents.items()]
        rests = [[width, [[*map(encode_label, pair)] for pair in of.items()]] for width, of in self.rests.items()]
        return {"levels": levels, **({"rests": rests} if rests else {})}

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
        parents = {decode_label(of["name"]): [*map(decode_label, of["of"])] for of in content["levels"]}
        listed = content.get("rests", ())
        rests = {width: {decode_label(k): decode_label(leaf) for k, leaf in of} for width, of in listed}
        known = {leaf for of in rests.values() for leaf in of.values()} <= set(leaves)
        if not known or not parents or any(len(of) != len(leaves) for of in parents.values()):
            raise ValueError("a tree has a state of each level for each leaf, and counts other cells in its leaves")
        return cls._made(leaves, parents, rests=rests, codes=codes)

    def __reduce__(self) -> tuple:
        return (type(self).from_dict, (tuple(self), self.to_dict(), self.codes), {"discovered": self.discovered})


def levels_of(states: Mapping[Hashable, tuple], taken: set) -> dict[Hashable, Level]:
    """The levels of variables; ValueError for one that is named like a variable, or like another level."""
    levels: dict[Hashable, Level] = {}
    for variable, tree in states.items():
        for name, of in tree.parents.items() if isinstance(tree, Levels) else ():
            if name in taken or name in levels:
                raise ValueError(
                    f"the level {name!r} of {variable!r} is named like a variable or another level; if it is a column "
                    "of the records leave that out of the schema, for the leaf says all of it, or give it another name"
                )
            position = {state: place for place, state in enumerate(dict.fromkeys(of))}
            levels[name] = Level(variable, tuple(position), tuple(position[state] for state in of))
    return levels


def leaf_scope(levels: Mapping[Hashable, Level], names: Iterable, argument: str) -> dict[Hashable, Level | None]:
    """As :meth:`~pgmpy_dp.Schema.leaf_scope`."""
    scope: dict[Hashable, Level | None] = {}
    for name in names:
        level = levels.get(name)
        variable = name if level is None else level.variable
        if variable in scope:
            raise ValueError(
                f"{argument} has {variable!r} twice, by itself or by levels, of which the finest says all of the "
                f"others: {short(list(names))}; name one of them"
            )
        scope[variable] = level
    return scope


def with_other(name: Hashable, tree: Levels, other: Any) -> Levels:
    """The tree with the other-state of its variable, if there is one, as a state of its own at every level."""
    named = {_label(key): state for key, state in other.items()} if isinstance(other, Mapping) else {}
    return tree.with_unknown(named[name]) if name in named else tree


def _label(label: object) -> Any:
    return decode_label(encode_label(label))


def _labels(name: Hashable, listed: Any) -> dict:
    if not isinstance(listed, Mapping):
        raise TypeError(f"{name}={short(listed)} is not a mapping; pass {{state of the level before: state}}")
    return {_label(state): _label(parent) for state, parent in listed.items()}


def _parent(name: Hashable, mapping: Mapping, state: Hashable) -> Hashable:
    parent = mapping.get(state)
    if parent is None and state is not None:
        raise ValueError(
            f"the level {name!r} has no state for {state!r}; add it to the map. A state for all that is not known is "
            "not a leaf: leave it out, the schema's other={name: state} adds it"
        )
    return parent


def _unlike(name: str, taken: set) -> str:
    """A name that is not taken, which is taken then."""
    while name in taken:
        name += "_"
    taken.add(name)
    return name
