"""Public description of a table: its variables and what values they may take.

A :class:`Schema` is written down by a person who has not looked at the records. States that were read from the records
would be a release of their own. A state that one dataset has and its neighbour lacks tells them apart with certainty.
So nothing in this package ever infers states.
"""

from __future__ import annotations

import dataclasses
import json
from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

from pgmpy_dp.schema.cells import MISSING
from pgmpy_dp.schema.date import Date
from pgmpy_dp.schema.entries import entries_of, read_entries
from pgmpy_dp.schema.intervals import interval_cuts, refuse_almost_intervals
from pgmpy_dp.schema.labels import checked_states, decode_label, encode_label, is_constant, short
from pgmpy_dp.schema.levels import Level, Levels, leaf_scope, levels_of, with_other
from pgmpy_dp.schema.number import Number
from pgmpy_dp.schema.orders import OrderRule, Orders
from pgmpy_dp.schema.provenance import Costs, cost_texts, costs_of, marked
from pgmpy_dp.schema.reading import OPTIONS as READING
from pgmpy_dp.schema.reading import Reading, decoded, encoded, others_of, readings_of, said_of
from pgmpy_dp.schema.rules import Box, Column, Rule, leave_something, read_rule
from pgmpy_dp.schema.stored import DIGEST, json_content, read_from, sealed, unsealed
from pgmpy_dp.schema.template import declarations_like
from pgmpy_dp.shown import quantity


class Schema(Mapping):
    """Ordered, immutable map from each variable to its states, or to the :class:`~pgmpy_dp.Number` it is.

    Parameters
    ----------
    variables : mapping of hashable to (sequence of states, Levels, Number or Date)
        At least two states for each variable without numbers; one with a single state is among the `constants`. Every
        table, factor and code of this package uses their order. Names and states are text, integers, booleans, finite
        floats or tuples of these. A state may also be None, which stands for missing values. Of a Schema its
        declarations are taken, all or some, and what these cost (`discovered`); its options are not.
    other : mapping of hashable to state, optional
        For a discrete variable, the state that counts every value outside the declared ones (missing values too).
        Without such a state, a record with an outside value is dropped, in silence, inside the boundary.
    texts : iterable of hashable, optional
        Discrete variables whose states look like intervals but are texts, as in a column that pandas or R has cut
        already: ``"[18, 30)"``. The schema is not refused for them; cells are read as always.
    missing : list of cells, or mapping of name to a list, optional
        Cells that are read as missing, in all variables or in named ones: ``["?", "NA"]``, ``{"age": [-9, 999]}``.
    strip, casefold : bool or list of names, default False
        Variables in which blanks around a text, or upper and lower case, make no difference. With `strip`, a text of
        blanks alone is missing, unless the empty text is a state or recoded.
    recode : mapping of name to {cell: state}, optional
        Cells that are read as another: ``{"sex": {"Male": "M", "1": "M"}}``. A state None, declared or not, is missing.
        Each cell goes through strip, casefold, missing and recode, in this order, and then meets the states.
    codes : bool or list of names, default False
        Discrete variables whose cells are compared as they are written: ``"02116"``, ``"3.10"`` and ``"3.1"`` are texts
        and no numbers, whole numbers are their digits, and a float is no code; see :mod:`pgmpy_dp.schema.cells`.
    impossible : iterable of str or mapping, optional
        Rules about what cannot be, from public knowledge: ``"age < 15 -> marital = never"``. Or states that cannot
        occur together, ``{"sex": ["M"], "pregnant": ["yes"]}``; see :mod:`pgmpy_dp.schema.rules`. Models obey them.
        Records that break one are counted as always.

    Attributes
    ----------
    variables : tuple
        All names, in order.
    constants : mapping of name to state
        Columns that were declared with one state. They are no variables: they are not read, nothing is learned of them
        nor spent on them, and samples of one table have them.
    states : mapping of name to tuple
        Discrete variables only: those with states, and numbers that are divided (:attr:`Number.states`).
    numbers : mapping of name to Number
        Numbers and dates, divided or not.
    other : mapping of name to state
    impossible : tuple of str
    levels : mapping of name to Level
        Levels of variables that were declared with :class:`~pgmpy_dp.Levels`. A scope, a query or a rule may name one
        in the place of its variable; they are no variables.
    orders : Orders
        The bounds that rules set to differences of numbers.
    zeros : list of mapping of name to frozenset of int
        What the rules forbid: positions of states that cannot be together.
    cardinalities : mapping of name to int
        Discrete variables only.
    discovered : tuple of mapping
        Of a schema with parts that were found in private records: for each release in which some were found, what that
        cost, under which unit, and the ledger that paid. Files keep it, everything that is learned with the schema,
        and schemas that are made with variables of this one. It has no part in whether two are equal. Whoever writes
        states or cuts out by hand says that they are public.

    Raises
    ------
    TypeError, ValueError
        For an empty schema, a variable without states, states that cannot be told apart, or an other-state
        that is not among the states. For states that look like intervals of numbers but are not read as such
        (`almost_intervals`), since no number would be counted in them. For rules that cannot be read, name what is not
        in the schema, compare with a number inside a cell, forbid nothing, or leave no record possible.

    Examples
    --------
    >>> schema = Schema({"smoker": ["no", "yes"], "age": Number(0, 120, cuts=[18, 65])}, missing=["?"], strip=True)
    >>> schema["smoker"], schema.cardinality("age")
    (('no', 'yes'), 4)
    >>> Schema({"sex": ["F", "M"], "pregnant": [0, 1]}, impossible=["sex = M -> pregnant != 1"]).zeros
    [{'sex': frozenset({1}), 'pregnant': frozenset({1})}]
    """

    __slots__ = (
        "_constants",
        "_discovered",
        "_identity",
        "_levels",
        "_numbers",
        "_other",
        "_readings",
        "_rules",
        "_said",
        "_states",
        "_variables",
        "_zeros",
        "orders",
    )

    def __init__(
        self,
        variables: Mapping[Any, Sequence | Number],
        *,
        other: Mapping[Any, Any] | None = None,
        texts: Iterable[Hashable] = (),
        missing: Mapping[Any, Iterable] | Iterable = (),
        strip: bool | Iterable[Hashable] = False,
        casefold: bool | Iterable[Hashable] = False,
        recode: Mapping[Any, Mapping[Any, Any]] | None = None,
        codes: bool | Iterable[Hashable] = False,
        impossible: Iterable[str | Mapping] = (),
    ) -> None:
        if not isinstance(variables, Mapping):
            raise TypeError(
                f"variables={short(variables)} is not a mapping; pass {{name: [state, state, ...]}} or "
                "{name: Number(lower, upper)}"
            )
        alone: dict[Any, Any] = {n: next(iter(cast(list, of))) for n, of in variables.items() if is_constant(of)}
        variables = {name: declared for name, declared in variables.items() if not is_constant(declared)}
        if not variables:
            raise ValueError(
                f"variables={short(alone)} is empty, or has columns of one state alone; declare at least one variable "
                "of two states, or a Number"
            )
        self._constants = {decode_label(encode_label(n)): decode_label(encode_label(s)) for n, s in alone.items()}
        self._variables = tuple(decode_label(encode_label(name)) for name in variables)
        if codes is True:
            codes = [name for name, declared in variables.items() if not isinstance(declared, Number)]
        self._said = said_of(self._variables, missing, strip, casefold, recode, codes or ())
        pairs = zip(self._variables, variables.values(), strict=True)
        written = [name for name, declared in pairs if getattr(declared, "codes", False)]
        self._said["codes"] += [name for name in written if name not in self._said["codes"]]
        self._states: dict[Hashable, tuple] = {}
        self._numbers: dict[Hashable, Number] = {}
        costs: dict[str, None] = {}
        for label, declared in variables.items():
            costs |= dict.fromkeys(costs_of(declared))
            name = decode_label(encode_label(label))
            if name is None:
                raise ValueError("None cannot name a variable (it cannot be a node of a graph); use text")
            if isinstance(declared, Number):
                _require_exactly(f"variables[{name!r}]", declared, (Number, Date))
                self._numbers[name] = declared
                if name in self._said["codes"]:
                    raise ValueError(f"codes names {name!r}, a variable of numbers; list its states, or remove it")
            if not isinstance(declared, Number) or declared.divided:
                listed = declared.states if isinstance(declared, Number) else declared
                self._states[name] = checked_states(name, listed, name in self._said["codes"])
                if isinstance(listed, Levels):
                    _require_exactly(f"variables[{name!r}]", listed, (Levels,))
                    self._states[name] = with_other(name, listed, other)
        self._levels = levels_of(self._states, {*self._variables, *self._constants})
        self._readings = readings_of(self._variables, self._states, self._numbers, self._said)
        self._other = others_of(self._variables, self._states, self._numbers, self._readings, other)
        refuse_almost_intervals(self._states, self._other, texts, {*self._numbers, *self._said["codes"]})
        self._rules, self._zeros = self._checked_rules(impossible)
        # Type-strict identity: 1, 1.0 and True are equal in Python but not the same label.
        self._discovered: Costs = ()
        self._identity = json.dumps(self.to_dict())
        self._mark(tuple(costs))

    def _mark(self, costs: Costs) -> None:
        """Say what it cost to find this, with each variable too: one alone is taken out of a schema."""
        self._discovered = costs
        self._states = {name: marked(states, costs) for name, states in self._states.items()}
        self._numbers = {
            name: number if costs_of(number) == costs else dataclasses.replace(number, discovered=costs)
            for name, number in self._numbers.items()
        }

    def _checked_rules(self, impossible: Iterable[str | Mapping]) -> tuple[tuple[Rule | OrderRule, ...], list[Box]]:
        if isinstance(impossible, str | bytes | Mapping) or not isinstance(impossible, Iterable):
            raise TypeError(f"impossible={short(impossible)} is not a list of rules; pass impossible=[rule]")
        listed, rules, zeros = list(impossible), list[Rule | OrderRule](), list[Box]()
        columns = {name: self.column(name) for name in (*self._variables, *self._levels)} if listed else {}
        for rule in listed:
            try:
                rules.append(read_rule(rule, columns))
                zeros += [self._of_leaves(box) for box in rules[-1].boxes(columns)]
            except (TypeError, ValueError) as error:
                raise type(error)(f"impossible: the rule {short(rule)} {error}") from None
        if zeros and not leave_something(zeros, columns):
            raise ValueError(f"impossible={short(listed)} leaves no record possible; correct or remove a rule")
        self.orders = Orders(rules, self._numbers)
        return tuple(rules), [*zeros, *self.orders.relations()]

    def _of_leaves(self, box: Box) -> Box:
        """What a rule forbids, by the states of variables in the place of levels."""
        leaves = zip(self.leaf_scope(box), box.values(), self.leaf_scope(box).values(), strict=True)
        return {
            name: codes if level is None else frozenset(k for k, place in enumerate(level.places) if place in codes)
            for name, codes, level in leaves
        }

    def leaf_scope(self, names: Iterable[Hashable], argument: str = "scope") -> dict[Hashable, Level | None]:
        """The variables that names stand for, which may be those of levels, each with its level; None for itself.

        Parameters
        ----------
        names : iterable of hashable
            Names that the schema does not know stand for themselves.
        argument : str
            What the message calls them.

        Returns
        -------
        dict of hashable to Level or None

        Raises
        ------
        ValueError
            For two levels of one variable, or a level and its variable.

        Examples
        --------
        >>> tracts = Levels(["a", "b", "c"], state={"a": "CA", "b": "CA", "c": "NV"})
        >>> schema = Schema({"tract": tracts, "sex": ["F", "M"]})
        >>> schema.leaf_scope(["state", "sex"])
        {'tract': Level(variable='tract', states=('CA', 'NV'), places=(0, 0, 1)), 'sex': None}
        """
        return leaf_scope(self._levels, names, argument)

    @property
    def levels(self) -> Mapping[Any, Level]:
        """The levels of variables that were declared with :class:`~pgmpy_dp.Levels`, by their names."""
        return MappingProxyType(self._levels)

    def column(self, name: Hashable) -> Column:
        """Return a variable, or a level, as rules know it.

        Parameters
        ----------
        name : hashable

        Returns
        -------
        Column
        """
        if name in self._levels:
            return Column(name, self._levels[name].states, codes=self.reading(self._levels[name].variable).codes)
        codes = self.reading(name).codes
        return Column(name, self._states.get(name), self._numbers.get(name), self._other.get(name), codes)

    @property
    def variables(self) -> tuple:
        """Names of all variables, in order."""
        return self._variables

    @property
    def states(self) -> Mapping[Any, tuple]:
        """States of each discrete variable."""
        return MappingProxyType(self._states)

    @property
    def constants(self) -> Mapping[Any, Any]:
        """The state of each column that has one alone."""
        return MappingProxyType(self._constants)

    @property
    def numbers(self) -> Mapping[Any, Number]:
        """Each variable of numbers or dates, divided or not."""
        return MappingProxyType(self._numbers)

    @property
    def options(self) -> Mapping[str, Any]:
        """The options of reading cells: `missing`, `strip`, `casefold`, `recode` and `codes` as a schema takes them."""
        return MappingProxyType(self._said)

    def reading(self, name: Hashable) -> Reading:
        """Return how cells of a variable are compared, and spelled before they meet its states.

        Parameters
        ----------
        name : hashable

        Returns
        -------
        Reading
        """
        return self._readings.get(name, Reading())

    def interval_cuts(self, name: Hashable) -> list[float] | None:
        """Return the cuts of a discrete variable whose states are intervals of numbers, else None.

        Parameters
        ----------
        name : hashable

        Returns
        -------
        list of float, or None
        """
        return None if self.reading(name).codes else interval_cuts(self._states[name])

    def coder(self, name: Hashable, dropped: int = -1) -> Callable[[tuple], int]:
        """The state that a cell of a discrete variable counts as, by its key (`Reading.key`): the rule of every reader.

        Parameters
        ----------
        name : hashable
        dropped : int
            Code of a cell whose record does not count.

        Returns
        -------
        callable
            From a :func:`~pgmpy_dp.schema.cells.match_key` to a position in the states. It is total: it never raises.

        Examples
        --------
        >>> from pgmpy_dp.schema import match_key
        >>> code = Schema({"age": ["<25", "[25,45)", ">=45"]}).coder("age")
        >>> [code(match_key(cell)) for cell in (24.9, "25", 1e300, "[25,45)", "25 years", None)]
        [0, 1, 2, 1, -1, -1]
        """
        reading, states = self.reading(name), self._states[name]
        if name in self._numbers:
            of_number = self._numbers[name].coder(dropped)
            return (lambda key: of_number(reading(key))) if reading.changes else of_number
        positions = {reading.spelled(reading.key(state)): code for code, state in enumerate(states)}
        outside = states.index(self._other[name]) if name in self._other else dropped
        cuts = self.interval_cuts(name)
        if not cuts:
            return lambda key: positions.get(reading(key) if reading.changes else key, outside)

        # No state is a number here, so no number is in `positions`.
        def interval(key: tuple) -> int:
            key = reading(key)
            return bisect_right(cuts, key[1]) if key[0] == "number" else positions.get(key, outside)

        return interval

    def pieces(self, name: Hashable, dropped: int = -1) -> tuple[tuple[float, ...], tuple[int, ...]] | None:
        """Like :meth:`Number.pieces`, also for interval states; None where cells that are numbers are not in intervals.

        Cells that :meth:`reading` reads as others are not minded.

        Parameters
        ----------
        name : hashable
        dropped : int
            As for :meth:`coder`.

        Returns
        -------
        tuple of (tuple of float, tuple of int), or None
        """
        number = self._numbers.get(name)
        if number is not None:
            return number.pieces(dropped) if number.kind == "number" else None
        cuts = self.interval_cuts(name)
        return None if cuts is None else (tuple(cuts), tuple(range(len(cuts) + 1)))

    def fine(self) -> Schema:
        """The schema in which undivided numbers are divided finely (:meth:`Number.fine`), and where rules compare.

        Returns
        -------
        Schema
        """
        fine = {n: one.fine(cuts=self.rule_cuts(n)) for n, one in self._numbers.items() if not one.divided}
        return self.replaced(fine) if fine else self

    def matches(self, released: Schema, names: Iterable[Hashable] | None = None) -> list:
        """Variables that `released` declares in another way; an undivided number agrees with one that is divided.

        Parameters
        ----------
        released : Schema
        names : iterable of hashable, optional
            Which to compare; default all.

        Returns
        -------
        list of hashable
        """
        declared = self.fine()

        def differs(name: Hashable) -> bool:
            mine, theirs = self._numbers.get(name), released.numbers.get(name)
            if mine is not None and not mine.divided and theirs is not None:
                return mine.whole_range != theirs.whole_range
            return name not in released or declared.subset([name]) != released.subset([name])

        return [name for name in (self._variables if names is None else names) if differs(name)]

    def replaced(
        self,
        variables: Mapping[Any, Sequence | Number],
        impossible: Iterable[str] | None = None,
        others: Mapping[Any, Any] | None = None,
    ) -> Schema:
        """The schema with other declarations for some variables, cells read as before; or other rules, other-states.

        Parameters
        ----------
        variables : mapping of hashable to (sequence of states, or Number)
        impossible : iterable of str, optional
            Rules; default its own.
        others : mapping of hashable to hashable, optional
            Other-states; default its own.

        Returns
        -------
        Schema

        Raises
        ------
        ValueError
            If the rules do not suit the declarations.
        """
        rules = self.impossible if impossible is None else tuple(impossible)
        content = {**{name: self[name] for name in self._variables}, **variables}
        content |= {name: [state] for name, state in self._constants.items()}
        listed = {n: states for n, states in variables.items() if not isinstance(states, Number)}
        left = {n: self._left(n, states) for n, states in listed.items()}
        trees = [n for n, states in listed.items() if isinstance(states, Levels)]  # which take it as one more leaf
        other = {n: state for n, state in self._other.items() if n in trees or state in listed.get(n, (state,))}
        other |= dict(others or {})
        recode = {
            name: {cell: state for cell, state in recoded.items() if name not in left or left[name](state)}
            for name, recoded in self._said["recode"].items()
        }
        texts = [name for name in self._variables if not isinstance(content[name], Number)]
        made = Schema(content, other=other, texts=texts, impossible=rules, **{**self._said, "recode": recode})
        made._mark(tuple(dict.fromkeys((*self._discovered, *made._discovered))))  # of what is replaced too
        return made

    def _left(self, name: Hashable, states: Sequence) -> Callable[[Any], bool]:
        """Whether what a cell was read as is among other states of a variable, or missing."""
        reading = self.reading(name)
        keys = {MISSING, *(reading.spelled(reading.key(state)) for state in states)}
        numbers = not reading.codes and interval_cuts(states) is not None
        return lambda state: (key := reading.spelled(reading.key(state))) in keys or (numbers and key[0] == "number")

    @property
    def other(self) -> Mapping[Any, Any]:
        """State that takes outside values, for the variables that have one."""
        return MappingProxyType(self._other)

    @property
    def impossible(self) -> tuple[str, ...]:
        """Rules about what cannot be, as texts."""
        return tuple(map(str, self._rules))

    @property
    def zeros(self) -> list[Box]:
        """The combinations that the rules forbid: of some variables, positions of states they cannot have at once."""
        return list(self._zeros)

    def with_differences(self) -> Schema:
        """The schema with a number for each difference of two undivided numbers that a rule orders, named ``b - a``.

        Returns
        -------
        Schema
            This one, where there is none to add.

        Examples
        --------
        >>> day = Date("2024-01-01", "2024-12-31")
        >>> schema = Schema({"checkin": day, "checkout": day}, impossible=["checkin <= checkout"])
        >>> schema.with_differences().variables
        ('checkin', 'checkout', 'checkout - checkin')
        """
        return self.replaced(new) if (new := self.orders.new_differences()) else self

    @property
    def ruled(self) -> frozenset:
        """Variables that rules about what is impossible name."""
        return frozenset(name for rule in self._rules for name in self.leaf_scope(rule.names))

    def rule_cuts(self, name: Hashable) -> tuple[float, ...]:
        """Return where the rules divide a variable of numbers: cells that are merged across these cannot obey them.

        Parameters
        ----------
        name : hashable

        Returns
        -------
        tuple of float
            Ascending, inside the bounds.

        Examples
        --------
        >>> Schema({"age": Number(0, 120, resolution=1), "job": ["no", "yes"]},
        ...     impossible=["age <= 14 -> job = no"]).rule_cuts("age")
        (15.0,)
        """
        if not self._rules:
            return ()
        number, column = self._numbers[name], self.column(name)
        return tuple(sorted({cut for rule in self._rules for cut in rule.cuts(column) if number.divides(cut)}))

    @property
    def cardinalities(self) -> dict[Any, int]:
        """Number of states of each discrete variable."""
        return {name: len(states) for name, states in self._states.items()}

    def cardinality(self, name: Hashable) -> int:
        """Number of states of one discrete variable, or of a level.

        Parameters
        ----------
        name : hashable

        Returns
        -------
        int

        Raises
        ------
        ValueError
            If the variable is numeric.
        KeyError
            If it is unknown.
        """
        self.require_discrete([name], "the schema")
        return len(self._levels[name].states if name in self._levels else self._states[name])

    def subset(self, names: Iterable[Hashable]) -> Schema:
        """Schema of some of the variables.

        Parameters
        ----------
        names : iterable of hashable

        Returns
        -------
        Schema
            In the order given. A rule that names a variable which is left out is left out too.

        Raises
        ------
        KeyError
            For an unknown name.
        """
        names = tuple(names)
        said: dict[str, Any] = {
            option: {name: value[name] for name in names if name in value}
            if isinstance(value, Mapping)
            else [name for name in value if name in names]
            if option != "missing" and not isinstance(value, bool)
            else value
            for option, value in self._said.items()
        }
        return Schema(
            {name: self[name] for name in names} | {name: [state] for name, state in self._constants.items()},
            other={n: self._other[n] for n in names if n in self._other},
            texts=[name for name in names if name in self._states],
            impossible=[str(rule) for rule in self._rules if {*self.leaf_scope(rule.names)} <= set(names)],
            **said,
        )

    @property
    def discovered(self) -> tuple[Mapping[str, Any], ...]:
        """The costs of discovering parts of this schema in private records; empty if it was written down."""
        return tuple(MappingProxyType(json.loads(cost)) for cost in self._discovered)

    def discovered_under(self, facts: Iterable[Mapping[str, Any]]) -> Schema:
        """The same schema, which says that it cost this; a `Release` in which parts were found makes such.

        Parameters
        ----------
        facts : iterable of mapping
            JSON-able, one for each release.

        Returns
        -------
        Schema
        """
        made = object.__new__(Schema)
        for name in Schema.__slots__:
            setattr(made, name, getattr(self, name))
        made._mark(cost_texts(facts))
        return made

    def as_public(self) -> Schema:
        """The same schema as a public fact: for records of other people than those whom it was found in.

        Returns
        -------
        Schema
            Without `discovered`. What is learned with it promises nothing to the people whom it was found in.
        """
        return self.discovered_under(())

    def require_discrete(self, names: Iterable[Hashable] | None = None, argument: str = "state_names") -> None:
        """Refuse numeric variables.

        Parameters
        ----------
        names : iterable of hashable, optional
            Which have to be discrete; by default all.
        argument : str
            What the message calls the schema.

        Raises
        ------
        ValueError
            If some of the variables are numeric; it names them.
        KeyError
            For an unknown name.
        """
        wanted = self._variables if names is None else [name for name in names if name not in self._levels]
        for name in wanted:
            self[name]
        numeric = [name for name in wanted if name not in self._states]
        if numeric:
            raise ValueError(
                f"{argument} declares bounds for {numeric}, but contingency tables need states; divide these numbers "
                "by cuts= or bins= of Number, or declare states, or leave them out"
            )

    def __getitem__(self, name: Any) -> tuple | Number:
        try:
            return self._numbers[name] if name in self._numbers else self._states[name]
        except (KeyError, TypeError):
            raise KeyError(f"{name!r} is not a variable of the schema; it has {short(self._variables)}") from None

    def __iter__(self) -> Iterator:
        return iter(self._variables)

    def __len__(self) -> int:
        return len(self._variables)

    def __eq__(self, value: object) -> bool:
        return self._identity == value._identity if isinstance(value, Schema) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._identity)

    def __repr__(self) -> str:
        rules = f", impossible={short(list(self.impossible))}" if self._rules else ""
        discovered = ", discovered" if self._discovered else ""
        levels = f", levels={short(list(self._levels))}" if self._levels else ""
        return f"Schema({quantity(self, 'variable')}: {short(self._variables)}{levels}{rules}{discovered})"

    def _repr_html_(self) -> str:
        rows = []
        for name, states in self.states.items():
            kind = f"{self.numbers[name].kind}s" if name in self.numbers else "states"
            rows.append((str(name), kind, short(list(states))))
        for name, level in self._levels.items():
            rows.append((str(name), f"a level of {level.variable}", short(list(level.states))))
        header = "<tr><th>variable</th><th>of</th><th>states</th></tr>"
        table = "".join(f"<tr>{''.join(f'<td>{escape(text)}</td>' for text in row)}</tr>" for row in rows)
        rules = "".join(f"<li>{escape(rule)}</li>" for rule in self.impossible)
        return f"<p>{escape(repr(self))}</p><table>{header}{table}</table>" + (f"<ul>{rules}</ul>" if rules else "")

    def __reduce__(self) -> tuple:
        return (Schema.from_dict, (self.to_dict(),))

    def to_dict(self) -> dict:
        """JSON-able form, read back exactly by :meth:`from_dict`.

        Returns
        -------
        dict
        """
        said = {option: encoded(self._said[option]) for option in READING}
        reading = {option: value for option, value in said.items() if value not in (False, [], {"pairs": []})}
        rules = {"impossible": list(self.impossible)} if self._rules else {}
        costs = {"discovered": [dict(cost) for cost in self.discovered]} if self._discovered else {}
        # Readers of before 0.3 would leave out what it cost: they refuse version 3. Those of 0.3 would compare codes by
        # what they mean: they refuse version 4.
        # Those of 0.4 would not know the rest of a state: they refuse version 5.
        version = 4 if self._said["codes"] else 3 if costs else 2 if reading or rules or self._numbers else 1
        version, entries = 5 if self._levels else version, entries_of(self)
        return {"format": "pgmpy_dp.schema", "version": version, "variables": entries, **reading, **rules, **costs}

    @classmethod
    def from_dict(cls, content: Mapping) -> Schema:
        """Schema from :meth:`to_dict`'s form, or from ``{"domain": {name: [states]}, "other": {name: state}}``.

        Texts that look like intervals are not refused here: a schema that was made is read.

        Parameters
        ----------
        content : mapping

        Returns
        -------
        Schema

        Raises
        ------
        ValueError
            For a mapping of neither form, or a later version.
        """
        if isinstance(content, Mapping) and isinstance(content.get("domain"), Mapping):
            states = {name: [decode_label(s) for s in listed] for name, listed in content["domain"].items()}
            states |= {name: Levels(states[name], **maps) for name, maps in content.get("levels", {}).items()}
            said = {name: content[name] for name in ("other", "codes", "impossible") if name in content}
            return cls(states, texts=[name for name in states if len(states[name]) > 1], **said)
        version = content.get("version") if isinstance(content, Mapping) else None
        if not isinstance(content, Mapping) or content.get("format") != "pgmpy_dp.schema":
            raise ValueError(
                f"{short(content)} is not a schema; expected what Schema.to_dict() returns, or a mapping with a "
                "'domain' of {name: [states]}"
            )
        if type(version) is not int or version not in (1, 2, 3, 4, 5):
            raise ValueError(f"schema version {version!r} is unknown; this release reads 1 to 5")
        if DIGEST in content:
            if version < 3:
                raise ValueError(f"schemas of version {version} have no digest, and it has one")
            try:
                content = unsealed(content)
            except ValueError as error:
                raise ValueError(f"{error}; if you edited it, take its line 'digest' away") from None
        unknown = content.keys() - {"format", "version", "variables", "discovered", "impossible", *READING}
        if unknown and version >= 3:
            raise ValueError(f"the schema has {sorted(unknown)}, which this release does not know; update pgmpy_dp")
        if not isinstance(content.get("variables"), list):
            raise ValueError(f"{short(content)} is not a schema: it has no list of variables")
        reading = {option: decoded(content[option]) for option in READING if option in content}
        rules = content.get("impossible", ())
        made = cls(**read_entries(content["variables"]), impossible=rules, **reading)
        costs = content.get("discovered", [])
        costs = [costs] if isinstance(costs, Mapping) else costs  # files of 0.2 have one
        if not isinstance(costs, list) or not all(isinstance(cost, Mapping) for cost in costs):
            raise ValueError(f"what it says of its discovery is {short(costs)}, and not what discover writes")
        return made.discovered_under(costs)

    def to_json(self, path: str | Path) -> None:
        """Write the schema to a JSON file, losslessly, with a digest that shows damage.

        Parameters
        ----------
        path : str or Path
        """
        Path(path).write_text(self.to_text(), encoding="utf-8")

    def to_text(self) -> str:
        """Return the text that :meth:`to_json` writes.

        Returns
        -------
        str
        """
        content = self.to_dict()
        content = sealed({**content, "version": max(3, content["version"])})
        return json.dumps(content, indent=1, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, path: str | Path) -> Schema:
        """Read a file written by :meth:`to_json`, or one that holds a ``"domain"`` (see :meth:`from_dict`).

        Parameters
        ----------
        path : str or Path

        Returns
        -------
        Schema

        Raises
        ------
        ValueError
            If the file holds no schema, or was damaged or edited since :meth:`to_json` wrote it. One that people write
            needs no ``"digest"``: whoever has edited a file takes that line away.
        """
        content = Path(path).read_bytes()
        with read_from(path, "a schema", "pass a file of Schema.to_json, or one with a 'domain' of {name: [states]}"):
            return cls.from_text(content)

    @classmethod
    def from_text(cls, text: bytes | str) -> Schema:
        """Schema from the content of such a file, as :meth:`to_text` gives it.

        Parameters
        ----------
        text : bytes or str

        Returns
        -------
        Schema

        Raises
        ------
        ValueError
            For other content; a TypeError or KeyError for some of it.
        """
        return cls.from_dict(json_content(text))

    @classmethod
    def like(cls, frame: Any) -> dict[Any, Any]:
        """The names and types of a frame's columns, as declarations to be filled in; no value is looked at.

        Parameters
        ----------
        frame : frame of pandas, polars, pyarrow or another that narwhals takes

        Returns
        -------
        dict
            By name: the class :class:`~pgmpy_dp.Number` or :class:`~pgmpy_dp.Date`, in whose place one with bounds has
            to be put; the two truth values; or an empty list, to be filled with the states. A library may have chosen a
            type by what the cells are (one odd cell makes texts of numbers), so that a type is as private as they are.

        Examples
        --------
        >>> import pandas as pd
        >>> columns = Schema.like(pd.DataFrame({"sex": ["F"], "age": [30], "smokes": [True]}))
        >>> columns
        {'sex': [], 'age': <class 'pgmpy_dp.schema.number.Number'>, 'smokes': [False, True]}
        >>> Schema(columns | {"sex": ["F", "M"], "age": Number(0, 120)}).variables
        ('sex', 'age', 'smokes')
        """
        return declarations_like(frame)

    @classmethod
    def coerce(cls, value: Schema | Mapping | None, argument: str = "state_names") -> Schema:
        """A Schema from what users pass for one.

        Parameters
        ----------
        value : Schema, mapping of name to states, or None
        argument : str
            What the message calls it.

        Returns
        -------
        Schema

        Raises
        ------
        ValueError
            For None: states are never read from records.
        TypeError
            For what is neither.
        """
        if isinstance(value, Schema):
            _require_exactly(argument, value, (Schema,))
            return value
        if value is None:
            raise ValueError(
                f"{argument}=None: pass a Schema, or a dict from each variable to all of its possible states. They are "
                "never read from the records: whether a rare state occurs would reveal whether someone is in the data"
            )
        if not isinstance(value, Mapping):
            raise TypeError(f"{argument}={short(value)} is not a Schema nor a mapping; pass {{name: [states]}}")
        return cls(value)


def _require_exactly(what: str, value: object, classes: tuple[type, ...]) -> None:
    """TypeError for an object of a subclass, which could read a cell by what it has seen of other records."""
    if not any(type(value) is cls for cls in classes):  # a metaclass may call classes equal
        names = " or a ".join(cls.__name__ for cls in classes)
        raise TypeError(
            f"{what} is a {type(value).__qualname__}, which is made from one of this package's; pass a {names}"
        )
