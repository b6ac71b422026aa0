"""Every reader counts cell by cell, whatever other cells are: exact counts of neighbours, and of the slow reader."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pgmpy_dp import Budget, Schema
from pgmpy_dp.private.data.contributions import GRID
from pgmpy_dp.private.data.sequences import PrivateSequences, chain_tables
from pgmpy_dp.private.data.table import PrivateTable, contingency_tables
from pgmpy_dp.private.data.vectors import PrivateVectors, vector_rows
from pgmpy_dp.schema import match_key
from tests.private.odd_cells import CASES, CUTS, Case, data_of, datasets, slowly

BUDGET = {"ledger": Budget(epsilon=1.0)}
OTHER = "other than these"


def counts(data, schema: Schema) -> list[list[int]]:
    tables = contingency_tables(PrivateTable(data, schema, **BUDGET), [[name] for name in schema])
    return [table.value.tolist() for table in tables]


def numbers(data) -> list[float]:
    return sorted(vector_rows(PrivateVectors(data, ["x0"], **BUDGET))[0][:, 0].tolist())


def users(data) -> float:
    private = PrivateSequences(data, {"y": ["u", "v"]}, unit="x0", order="t", **BUDGET)
    return chain_tables(private)[0].value.sum() / GRID


def schemas(case: Case) -> list[Schema]:
    """One that counts every record, and those in which records are dropped: intervals, and the first."""
    named = {f"x{k}": states for k, states in enumerate(case.states) if states != CUTS}
    complete = Schema({name: [*states, OTHER] for name, states in named.items()}, other=dict.fromkeys(named, OTHER))
    return [complete, *(Schema({f"x{k}": CUTS}) for k in range(len(case.states)) if case.states[k] == CUTS)]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_cell_decides_for_itself(case: Case, tmp_path, capfd):
    base: dict[str, list] = {}
    for number, cells in enumerate(datasets(case)):
        keys = [match_key(case.meant(cell)) for cell in cells]
        finite = sorted(key[1] for key in keys if key[0] == "number" and math.isfinite(key[1]))
        expected = [[slowly(case, cells, schema, name) for name in schema] for schema in schemas(case)]
        for reader, data in data_of(case, cells, tmp_path):
            capfd.readouterr()  # what was said while the data were made
            found = [counts(data, schema) for schema in schemas(case)]
            assert found == expected, reader
            assert numbers(data) == finite, reader
            assert users(data) == len(set(keys) - {match_key(None)}), reader
            assert capfd.readouterr() == ("", ""), reader
            if number == 0:
                base[reader] = found
            elif reader in base:
                tables = (pair for one in zip(base[reader], found, strict=True) for pair in zip(*one, strict=True))
                assert all(np.abs(np.subtract(*pair)).sum() <= 1 for pair in tables), reader
    assert base
