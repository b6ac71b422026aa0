"""How many records match the states of each column, asked before a fit is paid for."""

from __future__ import annotations

from pgmpy_dp.learning.least_noise import least_noise
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.curator.table_curator import TableCurator
from pgmpy_dp.private.data.table import PrivateTable, require_table_and_budget
from pgmpy_dp.private.guarantee import PureDP
from pgmpy_dp.private.operators.operator_base import planned_noise
from pgmpy_dp.private.operators.record_matches import MatchedCounts
from pgmpy_dp.private.sensitive import Release


def run(table: PrivateTable, budget: Budget, random_state: int | None = None) -> Release:
    """Release how many records there are, and how many match in all columns and in each; how many lines are no record.

    Refuses other objects than a table and a budget, and a budget too small for any count.

    Parameters
    ----------
    random_state : int, optional
        For tests and benchmarks only: repeatable noise, **not private**.

    Returns
    -------
    Release
        ``kind="schema_check"``; one array, that of
        :class:`~pgmpy_dp.private.operators.record_matches.MatchedCounts`.

    Notes
    -----
    Privacy
        *Sensitivity.* m counts, each of records that meet a condition on their own cells: m in l1 and sqrt(m) in l2
        norm under ``add_remove`` and ``replace_one``. m is the number of columns and 1, and 1 more where the number of
        records is not public. Lines of text files that are no record are in a count of their own, which adds 1 to m
        under ``replace_one`` alone.

        *Guarantee.* Laplace noise of scale ``m/epsilon``, epsilon-DP, or Gaussian noise of scale ``sqrt(m/(2 rho))``,
        rho-zCDP; an (epsilon, delta) budget takes whichever is smaller.

        *Source.* Dwork, McSherry, Nissim and Smith 2006; Canonne, Kamath and Steinke 2020.

        *Side channels.* Arguments that are refused and all shapes depend on public arguments only. Running time depends
        on the number of records.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"sex": ["F", "M"] * 5000, "age": [30, 60] * 5000})
    >>> schema = {"sex": ["F", "M"], "age": ["30-59", "60-89"]}
    >>> table = PrivateTable(frame, schema, ledger=Budget(epsilon=1.0))
    >>> records, matching, sex, age = run(table, Budget(epsilon=0.1))["matched"].array
    >>> bool(sex > 8000), bool(age < 2000), str(table.ledger.left)
    (True, True, '0.9-DP')
    """
    budget = require_table_and_budget(table, budget)
    facts = table.facts()
    cost = least_noise(lambda cost: planned_noise(MatchedCounts(), facts, cost), [facts.most_matched], budget)
    curator = TableCurator(
        table,
        budget,
        what=f"how many records match the states of {len(table.schema)} columns",
        columns=table.schema.variables,
        pure=isinstance(cost, PureDP),
        random_state=random_state,
        fine=True,
    )
    matched = curator.ask(MatchedCounts(), share=1)
    return curator.release("schema_check", {"settings": {"budget": budget.guarantee.to_dict()}}, {"matched": matched})
