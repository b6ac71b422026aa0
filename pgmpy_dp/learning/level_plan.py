"""Which tables are measured where variables have levels, and with what shares of the budget."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence

import numpy as np

from pgmpy_dp.learning.level_engine import Levels
from pgmpy_dp.schema import Schema

_TOTALS = 0.1
"""Share of the budget for the tables of leaves alone: numbers of records that no sum of many cells tells as well."""


def levels_in(schema: Schema, scopes: Iterable[Iterable[Hashable]]) -> Levels:
    """The levels that scopes name, as `NoisyMarginals` takes them.

    Examples
    --------
    >>> from pgmpy_dp import Levels
    >>> schema = Schema({"tract": Levels(["a", "b", "c"], state={"a": "CA", "b": "CA", "c": "NV"}), "sex": ["F", "M"]})
    >>> levels_in(schema, [("state", "sex")])
    {'state': ('tract', array([0, 0, 1]))}
    """
    levels = {name: schema.levels[name] for scope in scopes for name in scope if name in schema.levels}
    return {name: (level.variable, np.array(level.places)) for name, level in levels.items()}


def within_workload(scope: Iterable[Hashable], workload: Iterable[Iterable[Hashable]], schema: Schema) -> bool:
    """Whether a table tells about some set of a workload alone: no name of it is finer than the set's.

    Examples
    --------
    >>> from pgmpy_dp import Levels
    >>> schema = Schema({"tract": Levels(["a", "b", "c"], state={"a": "CA", "b": "CA", "c": "NV"}), "sex": ["F", "M"]})
    >>> within_workload(("state", "sex"), [("tract", "sex")], schema), within_workload(("tract",), [("state",)], schema)
    (True, False)
    """
    depth = {name: k for k, name in enumerate(schema.levels)}  # from fine to coarse

    def covers(wanted: Iterable[Hashable]) -> bool:
        known = {next(iter(schema.leaf_scope([name]))): depth.get(name, -1) for name in wanted}
        return all(known.get(next(iter(schema.leaf_scope([n]))), math.inf) <= depth.get(n, -1) for n in scope)

    return any(map(covers, workload))


def at_every_level(scopes: Sequence[Sequence[Hashable]], schema: Schema) -> tuple[list[tuple], list[float] | None]:
    """The tables of scopes at all levels of their variables, and their weights in the budget.

    Of each scope the table without the variables that have levels comes first, then those of their coarsest levels and
    so on, with shares as 1 to 2 to 3: finer tables have more cells that are small. A tenth of the budget is for the
    variables' own tables. Where no variable has levels, the scopes are as they were.

    Examples
    --------
    >>> from pgmpy_dp import Levels
    >>> schema = Schema({"tract": Levels(["a", "b", "c"], state={"a": "CA", "b": "CA", "c": "NV"}), "sex": ["F", "M"]})
    >>> at_every_level([("sex", "tract")], schema)[0]
    [('sex',), ('sex', 'state'), ('sex', 'tract'), ('tract',)]
    """
    of: dict[Hashable, list[Hashable]] = {}
    for name, level in schema.levels.items():  # from fine to coarse
        of.setdefault(level.variable, [level.variable]).append(name)
    leaves = {name: None for scope in scopes for name in scope if name in of}
    if not leaves:
        return [tuple(scope) for scope in scopes], None
    weight: dict[tuple, float] = {}
    for scope in scopes:
        depth = max(len(of.get(name, [name])) for name in scope)
        chain = [tuple(of.get(name, [name] * depth)[: k + 1][-1] for name in scope) for k in reversed(range(depth))]
        alone = tuple(name for name in scope if name not in of)
        chain = ([alone] if alone and depth > 1 else []) + chain
        for k, table in enumerate(chain, 1):
            weight[table] = weight.get(table, 0.0) + 2 * k / (len(chain) * (len(chain) + 1))
    each = _TOTALS / (1 - _TOTALS) * sum(weight.values()) / len(leaves)
    for name in leaves:
        weight[name,] = weight.get((name,), 0.0) + each
    return list(weight), list(weight.values())
