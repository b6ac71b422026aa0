"""Small families for tests: frames of parents and children with cells of any kind."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from pgmpy_dp import Budget, Number
from pgmpy_dp.linked.made_up import made_up_families
from pgmpy_dp.linked.operators.linked_schema import LinkedSchema
from pgmpy_dp.linked.operators.linked_tables import PrivateLinkedTables
from pgmpy_dp.private.data.contributions import GRID
from pgmpy_dp.private.data.units import fixed_key

KEY = bytes(range(16))
PARENT = {"region": ["n", "s"]}
CHILD = {"age": Number(0, 99, cuts=[18, 65], missing="drop"), "sex": ["f", "m"]}
SCHEMA = LinkedSchema(PARENT, CHILD, key="house", most=7, counts=["age >= 18"])

# More families, as they are made up for users, and a budget whose noise is of less than a family.
HOUSEHOLDS, PERSONS, FAMILIES = made_up_families(3_000, random_state=0)
PART = LinkedSchema(FAMILIES.parent, FAMILIES.child, "household", 3, names=FAMILIES.names)
RICH = Budget(epsilon=50.0)

Parents = Sequence[tuple[Any, Any]]
Children = Sequence[tuple[Any, Any, Any]]


def frames(parents: Parents, children: Children) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Rows of (house, region) and of (house, age, sex) as frames of objects."""
    return (
        pd.DataFrame(list(parents), columns=["house", "region"], dtype=object),
        pd.DataFrame(list(children), columns=["house", "age", "sex"], dtype=object),
    )


def tables(parents: Any, children: Any, schema: LinkedSchema = SCHEMA, **options: Any) -> PrivateLinkedTables:
    """Private tables that draw by one key."""
    with fixed_key(KEY):
        return PrivateLinkedTables(parents, children, schema, **{"ledger": Budget(epsilon=1.0), **options})


def measure(private: PrivateLinkedTables) -> Mapping[tuple[int, ...], int]:
    """What all rows count together, by their whole content, in 1/GRID."""
    records = private._records
    found: defaultdict[tuple[int, ...], int] = defaultdict(int)
    for row, weight in zip(records.codes().tolist(), records.weights().tolist(), strict=True):
        found[tuple(row)] += weight
    return found


def naive_rows(region: int, children: Sequence[tuple[int, int]], most: int, adults: int) -> Mapping[tuple, float]:
    """A family of at most six children as its rows, by the definition: all pairs, or all placements in two slots.

    States are (region, adults, number of children, then age and sex of each slot), 0-based as the schema has them.
    """
    n = len(children)
    if n >= 2:
        rows = list(itertools.permutations(children, 2))
    else:
        chosen = set(itertools.permutations([*range(n), *[None] * (2 - n)]))
        rows = [tuple((3, 2) if k is None else children[k] for k in places) for places in chosen]
    found: defaultdict[tuple, float] = defaultdict(float)
    for row in rows:
        present = [slot for slot, cell in enumerate(row) if cell != (3, 2)]
        pattern = 1 + present[0] if n == 1 else n + (n > 1)
        found[(region, min(adults, most), pattern, *itertools.chain(*row))] += GRID // len(rows)
    return found
