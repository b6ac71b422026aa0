"""The noise that every operator plans is that of the formulas that are written down a second time, by hand."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from pgmpy_dp import Budget, PrivateTable
from pgmpy_dp.auditing.operator_list import every_operator
from pgmpy_dp.auditing.scales import stated_scales
from pgmpy_dp.fields.operators.feature_matrices import InteractionMatrixSums, ParityMatrixSums
from pgmpy_dp.fields.operators.interactions import InteractionSums
from pgmpy_dp.fields.operators.parities import ParitySums, WorstParity
from pgmpy_dp.private.curator.curator_base import Request
from pgmpy_dp.private.curator.table_curator import TableCurator
from pgmpy_dp.private.operators.distances import Distances
from pgmpy_dp.private.operators.record_count import RecordCount
from pgmpy_dp.private.operators.record_matches import MatchedCounts
from pgmpy_dp.private.operators.tables import Tables
from pgmpy_dp.private.operators.worst_fit import WorstFit

STATES = {"a": [0, 1], "b": [0, 1, 2], "c": [0, 1]}
FRAME = pd.DataFrame({"a": [0, 1, 1, 0], "b": [0, 1, 2, 2], "c": [0, 0, 1, 1], "who": ["u", "u", "v", "w"]})
BITS = {"a": [0, 1], "c": [0, 1]}
BUDGETS = (Budget(epsilon=0.7), Budget(rho=0.1), Budget(epsilon=1.0, delta=1e-6))


def of_tables(budget, adjacency, rows, states=STATES, pure=False):
    """A curator of a table whose records count singly, in units of several, or by shares."""
    unit = {} if rows is None else {"unit": "who", "rows_per_unit": rows}
    public = 4 if adjacency == "replace_one" else None
    table = PrivateTable(FRAME, states, ledger=budget, adjacency=adjacency, n_records=public, **unit)
    return TableCurator(table, budget, what="scales", pure=pure and budget.rho is None)


TABLES = [
    (of_tables, adjacency, rows)
    for adjacency, rows in itertools.product(("add_remove", "replace_one"), (None, 3, "shares"))
]
OF_BITS = [(*how, BITS) for how in TABLES]
PURE_BITS, PURE = [(*how, True) for how in OF_BITS], [(*how, STATES, True) for how in TABLES]
EVEN = np.zeros(3)
THIRDS = np.full(3, 1 / 3)

# Of each operator: who can be asked, and questions.
ASKED = {
    "tables": (TABLES, [Tables([("a",)]), Tables([("a", "b"), ("c",)], [1, 2.5])]),
    "record_count": (TABLES, [RecordCount()]),
    "matched_counts": (TABLES, [MatchedCounts()]),
    "distances": (
        TABLES,
        [Distances([("b",), ("a",)], [THIRDS, THIRDS[:2] * 1.5]), Distances([("b",)] * 3, [THIRDS] * 3, [[1, 0, 2]])],
    ),
    "parity_sums": (OF_BITS, [ParitySums(2), ParitySums([(0,), (0, 1)], with_count=True)]),
    "worst_parity": (OF_BITS, [WorstParity(2, EVEN), WorstParity(2, EVEN, signed=True)]),
    "interaction_sums": (TABLES, [InteractionSums(), InteractionSums([(0, 2)], with_count=True)]),
    "parity_matrix": (PURE_BITS, [ParityMatrixSums([(), (0,), (1,)], [2, 1, 1], 2, with_count=True)]),
    "interaction_matrix": (PURE, [InteractionMatrixSums(), InteractionMatrixSums([(0, 2)], with_count=True)]),
    "worst_fit": (TABLES, [WorstFit([("a",), ("b",)], np.zeros(5), weights=[1.0, 0.2])]),
}


def test_every_operator_is_asked():
    assert set(ASKED) == set(every_operator())
    assert all(type(asked) is every_operator()[name] for name, (_, questions) in ASKED.items() for asked in questions)


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize("name", ASKED)
def test_noise_is_that_of_the_formulas(name, budget):
    openings, questions = ASKED[name]
    for (opened, *how), asked in itertools.product(openings, questions):
        curator = opened(budget, *how)
        if "matrix" in name and budget.rho is not None:
            with pytest.raises(ValueError, match="Wishart noise is for a pure cost"):
                curator.noise(asked)
            continue
        request, facts, planned, share, eta = curator._planned(asked, Fraction(1, 3), 0)
        rows = 1 if request.of_units else curator._data._rows_of_unit
        made = Request(curator, name, request.arguments(facts), share, eta, curator.unit_cost, planned, rows)
        assert stated_scales(made) == [], (how, asked)
        assert curator.left == 1
