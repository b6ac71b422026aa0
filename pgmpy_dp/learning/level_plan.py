"""Which tables are measured where variables have levels, and with what shares of the budget."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence

import numpy as np

from pgmpy_dp.learning.level_engine import Levels, leaf_scope
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
    levels = levels_in(schema, [schema.levels])
    of = {variable for variable, _ in levels.values()}
    leaves = {name: None for scope in scopes for name in scope if name in of}
    if not leaves:
        return [tuple(scope) for scope in scopes], None
    weight: dict[tuple, float] = {}
    for scope in scopes:
        chain = _chain(scope, levels)
        for k, table in enumerate(chain, 1):
            weight[table] = weight.get(table, 0.0) + 2 * k / (len(chain) * (len(chain) + 1))
    each = _TOTALS / (1 - _TOTALS) * sum(weight.values()) / len(leaves)
    for name in leaves:
        weight[name,] = weight.get((name,), 0.0) + each
    return list(weight), list(weight.values())


def coarser_tables(scopes: Iterable[Sequence[Hashable]], levels: Levels) -> dict[tuple, int]:
    """The tables of several variables at coarser levels than the finest, of some scopes, and their weights in a share.

    From those without levels on these are 2, 3, 4: flatter than in :func:`at_every_level`, as finer tables were
    selected before. Tables that lie in others at the same levels are left out.

    Examples
    --------
    >>> levels = {"state": ("tract", np.array([0, 0, 1]))}
    >>> coarser_tables([("tract", "sex", "age"), ("state", "sex"), ("sex", "race")], levels)
    {('sex', 'age'): 2, ('state', 'sex', 'age'): 3}
    """
    leaves = {variable for variable, _ in levels.values()}
    chains = [_chain(scope, levels) for scope in scopes if leaves.intersection(leaf_scope(tuple(scope), levels))]
    order = {table: k for chain in chains for k, table in enumerate(chain, 2) if not leaves.intersection(table)}
    inside = {a for a in order for b in order if {*a} < {*b} and not levels.keys() & ({*b} - {*a})}
    return {table: k for table, k in order.items() if len(table) > 1 and table not in inside}


def _chain(scope: Sequence[Hashable], levels: Levels) -> list[tuple]:
    """The table of a scope without variables that have levels, then at these from the coarsest to its own."""
    of: dict[Hashable, list[Hashable]] = {}
    for name, (variable, _) in levels.items():  # from fine to coarse
        of.setdefault(variable, [variable]).append(name)
    above = {name: names[k:] for names in of.values() for k, name in enumerate(names)}
    depth = max(len(above.get(name, [name])) for name in scope)
    chain = [tuple(above.get(name, [name])[: k + 1][-1] for name in scope) for k in reversed(range(depth))]
    alone = tuple(name for name in scope if name not in above)
    return [alone, *chain] if 0 < len(alone) < len(scope) else chain
