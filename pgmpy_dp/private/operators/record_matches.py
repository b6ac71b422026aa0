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
    """Noisy numbers of records: all, those that match the schema in all columns, and in each column; and blank cells.

    A record matches in a column if its cell has one of the declared states and is not blank; a cell that an other-state
    takes does not match. A record matches in all columns if it is not dropped: there an other-state does, and a blank
    cell where None is a state. A cell is blank if it is read as missing.

    Returns
    -------
    ndarray of int64, shape (2 + 2 n_variables,), or (1 + 2 n_variables,) where the number of records is public
        The number of records, unless it is public; of those that match in all columns; in each column, in the order of
        the schema; of blank cells in each column. Of text files without units two more: the numbers of lines that are
        no record, with one field too many and of all others. They may be negative.

    Raises
    ------
    ValueError
        For a random part of the records and for rows made of linked tables, of which none does not match, and noise
        that would bury any count.

    Notes
    -----
    Privacy
        *Sensitivity.* A record adds 0 or 1 to each count, and moves at most m of them: by at most m in l1 and sqrt(m)
        in l2 norm (:func:`~pgmpy_dp.private.data.contingency.match_sensitivity`). Of a column a cell is in one of both
        counts, or in neither. So m is 2 + n_variables under ``add_remove``, and 1 + 2 n_variables under
        ``replace_one``, where the number of records is public; lines that are no record move no more
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
