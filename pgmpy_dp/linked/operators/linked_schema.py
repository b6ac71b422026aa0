"""Public description of two tables that belong together: parents, their children, and the key that joins them."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from pgmpy_dp.checks import checked_integer
from pgmpy_dp.private.entry import decode_unit
from pgmpy_dp.schema import Schema, decode_label, encode_label
from pgmpy_dp.schema.count_rules import CountLimits, CountRule, read_count, table_of_rule
from pgmpy_dp.schema.orders import OrderRule, Orders, read_order
from pgmpy_dp.schema.rules import Column, Rule, read_rule
from pgmpy_dp.schema.stored import DIGEST, json_content, read_from, sealed, unsealed

FORMAT, VERSION = "pgmpy_dp.linked_schema", 2
MOST_CHILDREN = 64
KEY_KINDS = ("text", "integer")


class LinkedSchema:
    """Parents with their children: two schemas, the key that joins them, and how children are counted.

    Parameters
    ----------
    parent : Schema or mapping, or None
        Columns of the parents. None: there is one table alone, of children, and a parent is a value of its key that
        occurs: one file of visits with several rows a patient.
    child : Schema or mapping
        Columns of the children.
    key : hashable
        Column of both tables that says which parent a child has. It is what is protected: a parent with all its
        children.
    most : int
        Children of a parent that count: the number of children is known up to this, "so many or more" beyond, and of
        the children of larger families so many are drawn at random, or are first in `order`. At most 64.
    least : int, default 0
        Children that every parent has, 0 or 1; parents with fewer are outside the schema. Without parents it is 1.
    counts : list of str, optional
        Conditions on a child, as rules have them: ``["age >= 16"]``. How many children of a parent meet each becomes a
        column of the parents, so that a model knows who lives together.
    order : list of names, optional
        Columns of the children that say their order: then a child is learned given the one before it (visits by date).
        By default children of a parent have no order.
    size : str, default "n"
        Name of the number of children.
    names : pair of str, default ("parent", "child")
        What the tables are called. A column may be named with its table: ``"person.age"``.
    key_kind : {"text", "integer"}, optional
        How cells of the key are compared. "text": as texts, whole numbers by their digits: 7 is ``"7"``, and ``"007"``
        is another. "integer": as whole numbers, so that ``"007"`` is 7; a cell that is none is nobody's. Default: as
        "text", but if one table's Parquet files declare integers and the other's texts, they are refused. The types of
        a frame's columns do not matter, as one odd cell can decide which type a library chooses.
    impossible : list of str, optional
        Rules that compare a number or day of a child with one of its parent, ``["birth <= moved_in"]``, as rules of one
        table do, a name that both tables have after that of its table: ``"person.year"``. And rules on how many
        children of a parent meet a condition on one of their columns: ``["count(role = head) = 1"]``, by =, <, <=, > or
        >=, with a number, or with n. A parent without children breaks none, and one whose children
        lack a value only if it does whatever that is. Of a parent with `most` children or more only what is true of
        these is obeyed: there "= 1" means at most one.

    Attributes
    ----------
    parent, child, key, most, least, counts, order, size, names, key_kind, impossible
    tables : dict of str to Schema
        The schemas of parents, if they have one, and of children, by the names of the tables.
    family_rules : tuple of CountRule or OrderRule
        The rules of `impossible`, read; a name of `named` is on both sides of the latter.
    unit : hashable
        What is protected: the key, or a `Unit` of it, which says that its cells are compared as integers.

    Raises
    ------
    TypeError, ValueError
        For a key among the columns, for columns that a model could not tell apart, counts that cannot be read or name a
        column of the parents, orders of unknown columns, and one child that counts of every parent in one table or in
        an order.

    Notes
    -----
    A parent with a cell outside its schema does not count, unless the column has an other-state. A child with one does
    count: its column has one more state for such cells in the model, which is never drawn in samples.

    Examples
    --------
    >>> from pgmpy_dp.schema import Number
    >>> schema = LinkedSchema(
    ...     {"region": ["north", "south"]},
    ...     {"age": Number(0, 99, resolution=1, missing="drop"), "sex": ["f", "m"]},
    ...     key="household", most=5, counts=["age >= 18"],
    ... )
    >>> schema
    LinkedSchema(parent ['region'], child ['age', 'sex'], key='household', most=5, counts=['age >= 18'])
    >>> LinkedSchema.from_dict(schema.to_dict()) == schema
    True
    """

    def __init__(
        self,
        parent: Schema | Mapping | None,
        child: Schema | Mapping,
        key: Hashable,
        most: int,
        *,
        least: int = 0,
        counts: Iterable[str] = (),
        order: Iterable[Hashable] = (),
        size: str = "n",
        names: Iterable[str] = ("parent", "child"),
        key_kind: str | None = None,
        impossible: Iterable[str] = (),
    ) -> None:
        self.parent = None if parent is None else Schema.coerce(parent, argument="parent")
        self.child = Schema.coerce(child, argument="child")
        self.names = tuple(_text("names", name) for name in _listed("names", names))
        if len(set(self.names)) != 2:
            raise ValueError(f"names={self.names!r} must be two different texts, for parents and children")
        both = dict(zip(self.names, (self.parent, self.child), strict=True))
        self.tables: dict[str, Schema] = {name: schema for name, schema in both.items() if schema is not None}
        if isinstance(key, list | set | Mapping):
            raise TypeError(
                f"key={key!r} is not one column: a child that has parents of two kinds belongs to the units of both, "
                "and what protects one does not protect the other. Link one of them, and leave the other out"
            )
        self.key = decode_label(encode_label(key))
        if self.key is None:
            raise ValueError("key=None: pass the name of the column that both tables have, which joins them")
        self.most = checked_integer("most", most, 1)
        if self.most > MOST_CHILDREN:
            raise ValueError(
                f"most={most!r} is more than {MOST_CHILDREN}; pass fewer: more children are counted as 'so many or "
                "more', and so many of them are drawn"
            )
        if checked_integer("least", least, 0) > 1:
            raise ValueError(f"least={least!r}; pass 0, or 1 where every parent has a child")
        self.least = 1 if parent is None else int(least)
        self.size, self.key_kind = _text("size", size), key_kind
        if key_kind is not None and key_kind not in KEY_KINDS:
            raise ValueError(f"key_kind={key_kind!r}; pass one of {', '.join(map(repr, KEY_KINDS))}, or None")
        self.unit = decode_unit(encode_label(self.key), key_kind)
        self.counts = tuple(_text("counts", count) for count in _listed("counts", counts))
        self.order = tuple(decode_label(encode_label(name)) for name in _listed("order", order))
        if self.least == self.most and (parent is None or self.order):
            raise ValueError(
                f"most={most!r}: of every parent one child counts, and their number says nothing; pass most=2 or more, "
                f"least=0 with a table of parents, or use learn(..., unit={self.key!r}, rows_per_unit=1)"
            )
        self._check_columns()
        self.family_rules = tuple(self._read(text) for text in _listed("impossible", impossible))
        self.impossible = tuple(map(str, self.family_rules))
        self._check_counts()
        _ = self.count_limits(), self.orders()  # refused here where they leave nothing
        if unknown := [name for name in self.order if name not in self.child]:
            raise ValueError(f"order names {unknown}, which are not columns of the children {list(self.child)}")

    def _check_columns(self) -> None:
        for table, schema in self.tables.items():
            if schema.levels:
                raise ValueError(f"{table} has {list(schema.levels)}, levels, which are for one table; list the states")
            if self.key in schema:
                raise ValueError(
                    f"key={self.key!r} is a column of the schema of {table} too; leave it out of the schema: a key "
                    "says who belongs together, and nothing is learned of it"
                )
        if self.key in (*self.counts, self.size):
            raise ValueError(f"key={self.key!r} is a count or the size too, which are columns of samples; rename one")
        unit_columns = [*(self.parent or ()), *self.counts, self.size]
        slots = [f"{slot}.{name}" for slot in "ab" for name in self.child]
        everything = [*map(str, unit_columns), *slots, "rank"]
        if twice := sorted({name for name in everything if everything.count(name) > 1}):
            raise ValueError(
                f"the columns {twice} could not be told apart in a model: those of parents, counts={list(self.counts)}"
                f", size={self.size!r}, 'rank', and a., b., c. with a child's column; rename one, or pass another size"
            )

    def _check_counts(self) -> None:
        for count in self.counts:
            try:
                rule = read_rule(count, self._columns(self.child))
                if not isinstance(rule, Rule) or rule.implied:
                    raise ValueError(
                        "is an implication, or compares two columns; write a condition on one child: age >= 16"
                    )
                _truth(rule, self._columns(self.fine_child))
            except (TypeError, ValueError) as error:
                if table_of_rule(count, {"parent": self.parent or (), "child": self.child}) == "parent":
                    raise ValueError(
                        f"counts: {count!r} names a column of the {self.names[0]} table; counts are of children, by "
                        f"their own columns {list(self.child)}"
                    ) from None
                raise ValueError(f"counts: {count!r} {error}") from None

    def _read(self, text: Any) -> CountRule | OrderRule:
        """The rule that is written so."""
        try:
            rule = read_count(_text("impossible", text), self._columns(self.child), self.size)
            if rule is None and (order := read_order(text, self.named)):
                if self.named[order.low].name[0] == self.named[order.high].name[0]:
                    raise ValueError("compares two columns of one table; write it into the Schema of that table")
                return order
            if rule is None:
                raise ValueError(
                    "is not of the form count(role = head) = 1, nor compares a number of a child with one of its "
                    "parent: birth <= moved_in; what else cannot be is said in a Schema"
                )
            fine = self.child.column(rule.name).divided(rule.cuts(self.child.column(rule.name)))
            limits = rule.limits(self.most)
            if not {True, False} <= set(rule.truth(fine)) or not (limits[1] - limits[0] < range(self.most + 1)).any():
                raise ValueError("forbids nothing, or every state meets its condition, or none; correct it")
        except (TypeError, ValueError) as error:
            raise type(error)(f"impossible: the rule {text!r} {error}") from None
        return rule

    @cached_property
    def named(self) -> dict[Any, Any]:
        """The columns that rules on both tables may name, with their table before them or alone, by (table, column)."""
        columns = [(t, str(n), replace(one.column(n), name=(t, n))) for t, one in self.tables.items() for n in one]
        alone = [name for _, name, _ in columns]
        words = {f"{table}.{name}": column for table, name, column in columns}
        return words | {name: column for _, name, column in columns if alone.count(name) == 1}

    @cached_property
    def order_rules(self) -> list[OrderRule]:
        """Rules that compare two numbers, of parents, of a child, or of both, by (table, column)."""
        texts = [(text, self.named) for text in self.impossible]
        for table, schema in self.tables.items():
            columns = {str(name): self.named[f"{table}.{name}"] for name in schema}
            texts += [(text, columns) for text in schema.impossible]
        read = [(rule, columns) for text, columns in texts if (rule := read_order(text, columns))]
        return [replace(rule, low=of[rule.low].name, high=of[rule.high].name) for rule, of in read]

    def orders(self, child: Schema | None = None, parent: Schema | None = None) -> Orders:
        """What rules say of the numbers of a parent and one child, by (table, column).

        Parameters
        ----------
        child, parent : Schema, optional
            With their numbers divided in another way.

        Returns
        -------
        Orders

        Raises
        ------
        ValueError
            If no numbers fulfil all rules.
        """
        schemas = zip(self.names, (parent or self.parent, child or self.child), strict=True)
        numbers: dict[Any, Any] = {(t, n): one.numbers[n] for t, one in schemas if one for n in one.numbers}
        return Orders(self.order_rules, numbers)

    def count_limits(self, child: Schema | None = None) -> dict[Hashable, CountLimits]:
        """The limits of rules on counts, by the column that they are about.

        Parameters
        ----------
        child : Schema, optional
            As `count_flags` takes it.

        Returns
        -------
        dict of name to CountLimits

        Raises
        ------
        ValueError
            For rules that overlap, or leave no family of some number of children possible.
        """
        child, rules = self.fine_child if child is None else child, dict[Hashable, list[CountRule]]()
        for rule in self.family_rules:
            if isinstance(rule, CountRule):
                rules.setdefault(rule.name, []).append(rule)
        try:
            return {name: CountLimits(of_it, child.column(name), self.most) for name, of_it in rules.items()}
        except ValueError as error:
            raise ValueError(f"impossible={list(self.impossible)} {error}") from None

    def with_rules(self, impossible: Iterable[Any]) -> LinkedSchema:
        """The schema with further rules, of one table, of both, or on counts.

        Parameters
        ----------
        impossible : iterable of str

        Returns
        -------
        LinkedSchema

        Raises
        ------
        ValueError
            For rules that its columns cannot have.
        """
        content = self.to_dict()
        for rule in impossible:
            table = table_of_rule(rule, {"parent": self.parent or (), "child": self.child})
            place = content if table is None else content[table]
            place["impossible"] = [*place.get("impossible", ()), rule]
        return LinkedSchema.from_dict(content)

    @property
    def rules(self) -> list[str]:
        """All rules on what is impossible: of parents, of children, on both, and on counts."""
        return [*(rule for one in self.tables.values() for rule in one.impossible), *self.impossible]

    @staticmethod
    def _columns(schema: Schema) -> dict[Hashable, Column]:
        return {name: schema.column(name) for name in schema}

    @cached_property
    def count_cuts(self) -> dict[Hashable, list[float]]:
        """The cuts at which counts divide the numbers of children."""
        columns = self._columns(self.child)
        rules = [read_rule(count, columns) for count in self.counts]
        cuts = {
            name: [cut for rule in rules if name in rule.names for cut in rule.cuts(columns[name])]
            for name in self.child.numbers
        }
        for rule in self.family_rules:
            if isinstance(rule, CountRule) and rule.name in cuts:
                cuts[rule.name] += rule.cuts(columns[rule.name])
        return cuts

    @cached_property
    def fine_child(self) -> Schema:
        """The children's schema with all numbers divided: finely where they are not, and where counts compare."""
        undivided = {name: number for name, number in self.child.numbers.items() if not number.divided}
        return self.child.replaced(
            {
                name: number.fine(cuts=[*self.child.rule_cuts(name), *self.count_cuts[name]])
                for name, number in undivided.items()
            }
        )

    def count_flags(self, child: Schema | None = None) -> list[list[tuple[Hashable, list[bool]]]]:
        """The conditions of each count: a column of the children, and for each of its states whether it is met.

        Parameters
        ----------
        child : Schema, optional
            The children's, with all numbers divided where counts compare. Default: `fine_child`.

        Returns
        -------
        list of list of (name, list of bool)
        """
        child = self.fine_child if child is None else child
        columns = self._columns(child)
        rules = (read_rule(count, columns) for count in self.counts)
        return [_truth(rule, columns) for rule in rules if isinstance(rule, Rule)]

    def conditions_met(self, codes: np.ndarray, child: Schema | None = None) -> np.ndarray:
        """Which children meet the conditions of each count.

        Parameters
        ----------
        codes : ndarray of int, shape (..., columns)
            States of the children's columns. Neither an absent child nor a cell outside the schema meets anything.
        child : Schema, optional
            As `count_flags` takes it.

        Returns
        -------
        ndarray of bool, shape (..., counts)
        """
        met = np.ones((*codes.shape[:-1], len(self.counts)), dtype=bool)
        for k, conditions in enumerate(self.count_flags(child)):
            for name, states in conditions:
                met[..., k] &= np.array([*states, False, False])[codes[..., self.child.variables.index(name)]]
        return met

    def __eq__(self, value: object) -> bool:
        return self._identity == value._identity if isinstance(value, LinkedSchema) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._identity)

    @cached_property
    def _identity(self) -> str:
        return json.dumps(self.to_dict(), sort_keys=True)

    def __repr__(self) -> str:
        parts = [
            f"{self.names[0]} {[] if self.parent is None else list(self.parent)}",
            f"{self.names[1]} {list(self.child)}",
            f"key={self.key!r}, most={self.most}",
            *([f"counts={list(self.counts)}"] if self.counts else []),
            *([f"order={list(self.order)}"] if self.order else []),
            *([f"impossible={list(self.impossible)}"] if self.impossible else []),
        ]
        return f"LinkedSchema({', '.join(parts)})"

    def __reduce__(self) -> tuple:
        return (LinkedSchema.from_dict, (self.to_dict(),))

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form, read back exactly by :meth:`from_dict`.

        Returns
        -------
        dict
        """
        return {
            "format": FORMAT,
            "version": VERSION if self.impossible else 1,  # versions before 2 have no rules
            "parent": None if self.parent is None else self.parent.to_dict(),
            "child": self.child.to_dict(),
            "key": encode_label(self.key),
            "most": self.most,
            "least": self.least,
            "counts": list(self.counts),
            "order": [encode_label(name) for name in self.order],
            "size": self.size,
            "names": list(self.names),
            "key_kind": self.key_kind,
            **({"impossible": list(self.impossible)} if self.impossible else {}),
        }

    @classmethod
    def from_dict(cls, content: Mapping) -> LinkedSchema:
        """The inverse of :meth:`to_dict`; schemas may have all forms that :meth:`~pgmpy_dp.Schema.from_dict` reads.

        Parameters
        ----------
        content : mapping

        Returns
        -------
        LinkedSchema

        Raises
        ------
        ValueError
            For other content: what is missing, or not known, is named.
        """
        if not isinstance(content, Mapping) or not {"child", "key", "most"} <= content.keys():
            raise ValueError(
                "it is not a linked schema, which has 'parent', 'child', 'key' and 'most': two schemas, the column "
                "that joins the tables, and the number of children that count"
            )
        if content.get("format", FORMAT) != FORMAT or content.get("version", 1) not in (1, VERSION):
            raise ValueError(f"it is {content.get('format')!r} of version {content.get('version')!r}; update pgmpy_dp")
        if DIGEST in content:
            try:
                content = unsealed(content)
            except ValueError as error:
                raise ValueError(f"{error}; if you edited it, take its last line 'digest' away") from None
        known = {
            *("least", "counts", "order", "size", "names", "key_kind", "impossible"),
            *("parent", "child", "key", "most"),
        }
        if unknown := content.keys() - known - {"format", "version"}:
            raise ValueError(f"it has {sorted(unknown)}, which is none of {sorted(known)}")
        parent = None if content.get("parent") is None else Schema.from_dict(content["parent"])
        try:
            child = Schema.from_dict(content["child"])
        except ValueError as error:
            rules = content["child"].get("impossible", ()) if isinstance(content["child"], Mapping) else ()
            theirs = [name for name in parent or () if any(str(name) in str(rule) for rule in rules)]
            if not theirs:
                raise
            raise ValueError(
                f"{error}. {theirs[0]!r} is a column of the parents: rules of children are about one child, by its own "
                "columns; what depends on the parent too is learned, or declared by counts"
            ) from None
        options = {name: content[name] for name in known & content.keys() - {"parent", "child", "key", "most"}}
        if "order" in options:
            options["order"] = [decode_label(name) for name in options["order"]]
        key: Any = content["key"]
        key = key if isinstance(key, list) else decode_label(key)
        return cls(parent, child, key, content["most"], **options)

    def to_json(self, path: str | Path) -> None:
        """Write the schema to a JSON file, losslessly, with a digest that shows damage.

        Parameters
        ----------
        path : str or Path
        """
        Path(path).write_text(json.dumps(sealed(self.to_dict()), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

    @classmethod
    def from_json(cls, path: str | Path) -> LinkedSchema:
        """Read a file of :meth:`to_json`, or one that was written by hand: see :meth:`from_dict`.

        Parameters
        ----------
        path : str or Path

        Returns
        -------
        LinkedSchema

        Raises
        ------
        ValueError
            If the file holds no linked schema, or was edited since it was written (take its "digest" away).
        """
        content = Path(path).read_bytes()
        with read_from(path, "a linked schema", "pass a file of LinkedSchema.to_json"):
            return cls.from_dict(json_content(content))


def _truth(rule: Rule, columns: Mapping[Hashable, Column]) -> list[tuple[Hashable, list[bool]]]:
    return [(part.name, [met is True for met in part.truth(columns[part.name])]) for part in rule.premise]


def _text(argument: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise TypeError(f"{argument} has {value!r}, a {type(value).__name__}; pass a text")
    return str.__str__(value)


def _listed(argument: str, values: Any) -> list:
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise TypeError(f"{argument}={values!r} is a {type(values).__name__}; pass a list: [{values!r}]")
    return list(values)
