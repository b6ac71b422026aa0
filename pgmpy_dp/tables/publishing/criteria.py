"""The criteria that a model has to meet to be published, read from a file and checked before any charge."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pgmpy_dp.checks import checked_number, require_choice
from pgmpy_dp.models.regression.formula import States, analysis_of
from pgmpy_dp.private.operators.score_sums import FAMILIES
from pgmpy_dp.schema import Number, Schema, encode_label
from pgmpy_dp.schema.stored import content_digest, json_content
from pgmpy_dp.shown import shown

TESTS: dict[str, dict[str, bool]] = {
    # what each says, and whether it has to
    "distance": {"tables": False, "at_most": True},
    "cells": {"tables": False, "share": True, "within": True},
    "mean": {"of": True, "at_most": True},
    "log_loss": {"target": True, "given": True, "clip": True, "at_most": True},
    "regression": {"formula": True, "family": False, "success": False, "of": False, "at_most": True},
}
_MOST, _MOST_VARIABLES = 100, 8
_CELLS_OF_ONE, _CELLS_OF_ALL = 1_000_000, 20_000_000
_EXAMPLE = '{"test": "distance", "at_most": 0.03}'

Scope = tuple[Hashable, ...]


@dataclass(frozen=True)
class Criterion:
    """One condition on a model and the records.

    Attributes
    ----------
    test : str
        "distance": no table is further from the model's, in total variation, than the bound. "cells": this share of the
        cells of tables is off by no more than the bound, in parts of all records. "mean": of a number, clipped to its
        declared range; missing ones count as the model's mean. "log_loss": of the model's prediction of a target by
        given variables, in nats, each record's clipped. "regression": no coefficient of the model's is off by more.
    bound : float
        As it was declared.
    tables : tuple of scopes
        Of a mean its variable; of a loss the target, then what is given.
    share : float
        Of cells.
    unit : float
        The scale of the bound: the width of the range of a mean, the clip of a loss.
    analysis : dict
        Of a regression its formula, family and success, and the names of the coefficients, none for all but the first.
    """

    test: str
    bound: float
    tables: tuple[Scope, ...]
    share: float = 1.0
    unit: float = 1.0
    analysis: dict[str, Any] = field(default_factory=dict)

    @property
    def part(self) -> float:
        """The bound in parts of the number of records; 0 of a regression, which is not about them."""
        return 0.0 if self.analysis else self.bound / self.unit

    def __str__(self) -> str:
        if self.analysis:
            which = ", ".join(map(shown, self.analysis["of"])) or "each coefficient"
            return f"{which} of {shown(self.analysis['formula'])} is off by at most {self.bound:.12g}"
        named = "; ".join(", ".join(map(shown, scope)) for scope in self.tables[:4])
        named += f"; and {len(self.tables) - 4} more" if len(self.tables) > 4 else ""
        if self.test == "mean":
            return f"the mean of {named} is off by at most {self.bound:.12g}"
        if self.test == "log_loss":
            (target, *predictors), *_ = self.tables
            by = ", ".join(map(shown, predictors))
            return f"log-loss of {shown(target)} given {by}, clipped at {self.unit:g}, is at most {self.bound:.12g}"
        if self.test == "cells":
            return f"{100 * self.share:g} % of the cells of {named} are off by at most {self.bound:.12g}"
        whose = "the table" if len(self.tables) == 1 else f"none of {len(self.tables)} tables"
        return f"{whose} of {named} is off by more than {self.bound:.12g}, in total variation"


@dataclass(frozen=True)
class Criteria:
    """All criteria, as they were declared, and in the terms of a schema.

    Attributes
    ----------
    name : str
    each : tuple of Criterion
    digest : str
        Of what was declared, in hexadecimal: another bound has another one.
    declared : list
        What the digest is of, whole: test, bound, share, unit and tables of each.
    """

    name: str
    each: tuple[Criterion, ...]
    digest: str
    declared: list[Any] = field(repr=False)

    @classmethod
    def of(cls, criteria: Any, schema: Schema) -> Criteria:
        """Criteria from a file, or as a file has them; TypeError or ValueError, naming what is wrong with them.

        Parameters
        ----------
        criteria : path, mapping or sequence of mappings
        schema : Schema
            Of the records.

        Examples
        --------
        >>> schema = Schema({"age": Number(0, 100, cuts=[18, 65]), "sex": ["F", "M"]})
        >>> criteria = Criteria.of([{"test": "mean", "of": "age", "at_most": 1}], schema)
        >>> print(criteria.each[0])
        the mean of age is off by at most 1
        """
        if isinstance(criteria, str | os.PathLike):
            criteria = _read(criteria)
        if not isinstance(criteria, Mapping):
            criteria = {"criteria": criteria}
        if unknown := sorted(set(criteria) - {"name", "criteria"}):
            raise ValueError(f"criteria has {unknown}; it has a name, if you like, and a list of criteria")
        name, listed = criteria.get("name", "criteria"), criteria.get("criteria")
        if not isinstance(name, str) or not name.strip():
            raise ValueError(f"criteria has the name {name!r}; pass a text, or leave it out")
        if not isinstance(listed, Sequence) or isinstance(listed, str) or not 1 <= len(listed) <= _MOST:
            raise ValueError(f"criteria is no list of 1 to {_MOST} criteria; write each as {_EXAMPLE}")
        each = tuple(_criterion(k, one, schema) for k, one in enumerate(listed, 1))
        cells = sum(_cells(scope, schema) for one in each for scope in one.tables)
        if cells > _CELLS_OF_ALL:
            raise ValueError(f"criteria has tables of {cells:,} cells; ask for at most {_CELLS_OF_ALL:,} in all")
        said = [
            [one.test, one.bound, one.share, one.unit, [[encode_label(v) for v in scope] for scope in one.tables]]
            + [{name: encode_label(said) for name, said in one.analysis.items()}] * bool(one.analysis)
            for one in each
        ]
        return cls(name, each, content_digest({"criteria": said}), said)

    def __len__(self) -> int:
        return len(self.each)


def _read(path: str | os.PathLike) -> Any:
    """Read a file; errors do not quote it, as it might hold records."""
    content = Path(path).read_bytes()
    try:
        return json_content(content)
    except ValueError:
        what = f"is no JSON; write a list of criteria, each {_EXAMPLE}"
        raise ValueError(f"criteria={os.fspath(path)!r} {what}") from None


def _criterion(number: int, entry: Any, schema: Schema) -> Criterion:
    where = f"criterion {number}"
    if not isinstance(entry, Mapping):
        raise TypeError(f"{where} is a {type(entry).__name__}; write it as {_EXAMPLE}")
    test = entry.get("test")
    if not isinstance(test, str) or test not in TESTS:
        raise ValueError(f"{where} has the test {test!r}; there are {', '.join(TESTS)}")
    where, says = f"criterion {number} ({test})", TESTS[test]
    if unknown := sorted(set(map(str, entry)) - {"test", *says}):
        raise ValueError(f"{where} has {unknown}; it says {', '.join(says)}")
    if missing := [name for name, needed in says.items() if needed and name not in entry]:
        raise ValueError(f"{where} lacks {', '.join(missing)}")

    def positive(name: str, **limits: Any) -> float:
        return checked_number(f"{where}: {name}", entry[name], positive=True, **limits)

    if test == "regression":
        return Criterion(test, positive("at_most"), (), analysis=_analysis(where, entry, schema))
    if test == "mean":
        variable = _variable(where, entry["of"], schema)
        width = _range(where, variable, schema)
        return Criterion(test, _below(where, "at_most", positive("at_most"), width), ((variable,),), unit=width)
    if test == "log_loss":
        target, clip = _variable(where, entry["target"], schema), positive("clip", most=100.0)
        scope = (target, *_variables(where, entry["given"], schema))
        if len(set(scope)) < len(scope):
            raise ValueError(f"{where} names a variable twice; name the target and each given variable once")
        _require_size(where, scope, schema)
        return Criterion(test, _below(where, "at_most", positive("at_most"), clip), (scope,), unit=clip)
    tables: tuple[Scope, ...] = tuple((name,) for name in schema.variables)
    if "tables" in entry:
        listed = entry["tables"]
        if not isinstance(listed, Sequence) or isinstance(listed, str) or not listed:
            raise ValueError(f'{where}: tables is no list of sets of variables; write [["age", "job"], ["sex"]]')
        tables = tuple(_variables(where, scope, schema) for scope in listed)
        if len(set(map(frozenset, tables))) < len(tables):
            raise ValueError(f"{where}: tables has a set of variables twice")
    for scope in tables:
        _require_size(where, scope, schema)
    if test == "cells":
        share = positive("share", most=1.0)
        return Criterion(test, _below(where, "within", positive("within"), 1.0), tables, share)
    return Criterion(test, _below(where, "at_most", positive("at_most"), 1.0), tables)


def _analysis(where: str, entry: Mapping[str, Any], schema: Schema) -> dict[str, Any]:
    """A regression, read by the finest states that there are, as those of the model are not known before."""
    family, fine = entry.get("family", "logit"), schema.fine()
    require_choice(f"{where}: family", family, FAMILIES)
    states = States(fine.states, {name: one.centres for name, one in fine.numbers.items()}, fine.other, {})
    said = {"formula": entry["formula"], "family": family, "success": entry.get("success")}
    try:
        columns = analysis_of(**said, states=states).columns[1:]
    except (TypeError, ValueError) as error:
        raise ValueError(f"{where}: {error}") from None
    names, wanted = [one.name for one in columns], entry.get("of", ())
    if isinstance(wanted, str) or not isinstance(wanted, Sequence) or not set(wanted) <= set(names):
        raise ValueError(f"{where}: of={wanted!r} is no list of coefficients; there are {', '.join(names)}")
    return {**said, "of": tuple(wanted)}


def _below(where: str, name: str, bound: float, most: float) -> float:
    if bound >= most:
        raise ValueError(f"{where}: {name}={bound:g} is always met, as nothing is off by more than {most:g}")
    return bound


def _variable(where: str, name: Any, schema: Schema) -> Hashable:
    """A variable, or a level of one, by its name, or by the text of it, as files have to write it."""
    named = [*schema.variables, *schema.levels]
    matches = [variable for variable in named if variable == name or str(variable) == name]
    if len(matches) != 1:
        raise ValueError(f"{where} names {name!r}; the schema has {', '.join(map(str, named))}")
    return matches[0]


def _variables(where: str, names: Any, schema: Schema) -> Scope:
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise ValueError(f'{where} has the variables {names!r}; write a list of names, ["age", "job"]')
    scope = tuple(_variable(where, name, schema) for name in names)
    if not 1 <= len(scope) <= _MOST_VARIABLES or len(set(scope)) < len(scope):
        raise ValueError(f"{where} has a table of {len(scope)} variables; name 1 to {_MOST_VARIABLES}, each once")
    return scope


def _range(where: str, variable: Hashable, schema: Schema) -> float:
    declared = schema.get(variable)  # a level is no number
    if isinstance(declared, Number):
        return float(declared.upper - declared.lower)
    raise ValueError(f"{where} is of {shown(variable)}, which is no number of the schema; test its distance")


def _cells(scope: Scope, schema: Schema) -> int:
    return math.prod(map(schema.fine().cardinality, scope))


def _require_size(where: str, scope: Scope, schema: Schema) -> None:
    schema.leaf_scope(scope, where)  # of each variable one level
    cells = _cells(scope, schema)
    if cells > _CELLS_OF_ONE:
        raise ValueError(f"{where} has a table of {cells:,} cells; ask for at most {_CELLS_OF_ONE:,} in one")


def every_scope(criteria: Criteria) -> list[Scope]:
    """All tables that criteria compare with a model's, each once, whatever the order of its variables."""
    listed = itertools.chain.from_iterable(one.tables for one in criteria.each)
    return list({frozenset(scope): scope for scope in listed}.values())
