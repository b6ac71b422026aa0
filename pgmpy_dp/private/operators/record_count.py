"""The number of records that a discrete table has inside its schema."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pgmpy_dp.private.curator.mechanism import AdditiveNoise
from pgmpy_dp.private.curator.observer import Coins
from pgmpy_dp.private.data.gradients import record_count
from pgmpy_dp.private.data.table import PrivateTable
from pgmpy_dp.private.data.table_facts import TableFacts
from pgmpy_dp.private.operators.operator_base import SumOperator
from pgmpy_dp.private.sensitive import Sensitive


@dataclass(frozen=True, slots=True)
class RecordCount(SumOperator[int]):
    """A noisy number of records inside the schema, which is private also where that of all records is public.

    Returns
    -------
    int

    Notes
    -----
    Privacy: the number moves by at most 1 under ``add_remove``, and by at most 1 under ``replace_one``, where a record
    that is replaced can enter or leave the schema, or a random part. Laplace noise of scale ``1/(s epsilon)`` or
    Gaussian noise of scale ``sqrt(1/(2 s rho))`` costs the share s.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from pgmpy_dp.private.guarantee import PureDP
    >>> RecordCount.noise_of(PureDP(1.0), Fraction(1, 2))
    Noise(distribution='discrete_laplace', scale=2.0)
    """

    name = "record_count"
    asks = TableFacts
    moved = staticmethod(lambda: (1.0, 1.0))

    def checked(self, facts: TableFacts) -> RecordCount:
        return RecordCount()

    def _exact(self, data: PrivateTable, facts: TableFacts, mechanism: AdditiveNoise, coins: Coins) -> list[Sensitive]:
        return [record_count(data, grid=mechanism.grid)]

    def answered(self, drawn: list[np.ndarray]) -> int:
        return int(drawn[0][0])
