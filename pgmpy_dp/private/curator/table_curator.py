"""A discrete table behind a budget."""

from __future__ import annotations

from typing import Any

from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.curator.curator_base import Curator
from pgmpy_dp.private.data.table import PrivateTable, require_table_and_budget


class TableCurator(Curator):
    """A discrete table behind a budget; see :class:`~pgmpy_dp.private.curator.curator_base.Curator` for the arguments.

    Parameters
    ----------
    fine : bool, default False
        Whether numbers that are not divided may be counted in their fine grids.
    """

    kind = PrivateTable
    _data: PrivateTable

    def __init__(self, data: PrivateTable, budget: Budget, *, fine: bool = False, **facts: Any) -> None:
        require_table_and_budget(data, budget)
        if not fine:
            data.schema.require_discrete(argument="schema")
        super().__init__(data, budget, **facts)
