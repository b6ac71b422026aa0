"""The base of estimators that learn from vectors of numbers: their description, and agreement with the data."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import KW_ONLY
from typing import Any, ClassVar

from pgmpy_dp.learning.options import adjacencies, anything, option, whole
from pgmpy_dp.learning.privacy_record import require_agreement
from pgmpy_dp.learning.private_base import BasePrivateEstimator
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.data.vectors import PrivateVectors
from pgmpy_dp.private.sensitive import Release
from pgmpy_dp.schema import decode_label, encode_label


class BaseVectorsEstimator(BasePrivateEstimator):
    """Learns from vectors of numbers; abstract.

    As ``BasePrivateEstimator``, but private data are made here. One whose records may be persons' has an option `unit`.
    """

    _tags: ClassVar[dict[str, Any]] = {"data_kind": "continuous"}

    _: KW_ONLY
    columns: Sequence[Hashable] | None = option(None, anything())
    adjacency: str = option("add_remove", adjacencies())
    n_records: int | None = option(None, whole(0))

    def _columns(self, release: Release) -> Sequence[Hashable]:
        return tuple(map(decode_label, release.public["columns"]))

    def _private(self, X: Any, budget: Budget, default: Sequence[Hashable] | None = None) -> PrivateVectors:
        unit = getattr(self, "unit", None)
        if not isinstance(X, PrivateVectors):
            how = self._pick("adjacency", "n_records")
            read = default if self.columns is None else self.columns
            return PrivateVectors(X, read, ledger=budget, unit=unit, **how)
        columns = None if self.columns is None else tuple(decode_label(encode_label(name)) for name in self.columns)
        require_agreement(
            X,
            self.adjacency,
            columns=(columns, X.columns),
            n_records=(self.n_records, X.n_records),
            unit=(unit, X.unit),
        )
        return X
