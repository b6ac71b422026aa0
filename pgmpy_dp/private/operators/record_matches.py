"""The numbers of records of a discrete table that match its schema."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pgmpy_dp.private.curator.mechanism import AdditiveNoise
from pgmpy_dp.private.curator.observer import Coins
from pgmpy_dp.private.data.contingency import match_sensitivity
from pgmpy_dp.private.data.table import PrivateTable, matched_records
from pgmpy_dp.private.data.table_facts import TableFacts
from pgmpy_dp.private.operators.operator_base import SumOperator
from pgmpy_dp.private.sensitive import Sensitive


@dataclass(frozen=True, slots=True)
class MatchedCounts(SumOperator[np.ndarray]):
    """Noisy numbers of records: all, those that match the schema in all columns, and those that match in each column.

    A record matches in a column if its cell has one of the declared states; a cell that an other-state takes does not.
    It matches in all columns if it is not dropped: there an other-state does.

    Returns
    -------
    ndarray of int64, shape (2 + n_variables,), or (1 + n_variables,) where the number of records is public
        The number of records, unless it is public; of those that match in all columns; in each column, in the order of
        the schema. Of text files without units one more: the number of lines that are no record. They may be negative.

    Raises
    ------
    ValueError
        For a random part of the records and for rows made of linked tables, of which none does not match, and noise
        that would bury any count.

    Notes
    -----
    Privacy
        *Sensitivity.* A record adds 0 or 1 to each of the m counts of records, so they move by at most m in l1 and
        sqrt(m) in l2 norm under ``add_remove`` and ``replace_one``
        (:func:`~pgmpy_dp.private.data.contingency.match_sensitivity`). A line that is no record is in the last count
        and in none of these. Added or removed it moves one count by 1, where m is at least 2. In the place of a record,
        or a record in its place, it moves one count more: m + 1 under ``replace_one`` for text files
        (:attr:`~pgmpy_dp.private.data.table_facts.TableFacts.most_matched`).

        *Guarantee.* The share s of the cost: Laplace noise of scale ``m/(s epsilon)`` or Gaussian noise of scale
        ``sqrt(m/(2 s rho))`` in each count.

        *Source.* Dwork, McSherry, Nissim and Smith 2006; Canonne, Kamath and Steinke 2020.
    """

    name = "matched_counts"
    asks = TableFacts
    moved = staticmethod(match_sensitivity)

    def checked(self, facts: TableFacts) -> MatchedCounts:
        if facts.is_part:
            raise ValueError(
                "a random part, and rows made of linked tables, have none outside the schema; ask before the table is "
                "split, or ask check_linked"
            )
        return MatchedCounts()

    def _numbers(self, facts: TableFacts) -> tuple[int]:
        return (facts.most_matched,)

    def _exact(self, data: PrivateTable, facts: TableFacts, mechanism: AdditiveNoise, coins: Coins) -> list[Sensitive]:
        return [matched_records(data, mechanism.grid)]
