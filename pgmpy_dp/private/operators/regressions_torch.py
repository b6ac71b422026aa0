"""The gradient sums of `regressions` on pgmpy's torch backend: the same integers, on a GPU if that is its device."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from pgmpy import config

_BATCH = 1 << 16
_KEPT_BYTES = 1 << 31  # features stay on the device up to this size; beyond it they are made again for each pass


class TorchSums:
    """Passes over batches of records on ``pgmpy.config.get_device()``.

    Products are in double precision. Single precision would be exact as well in small batches, were it not for a switch
    (``torch.set_float32_matmul_precision``) that lets anybody in the process lower it to ten bits: then one record
    could move a sum by more than its residual.

    Parameters
    ----------
    feature_rows : callable
        From the start and the end of a batch of records to their features, int8, shape (n_features, batch).
    logits : ndarray of int, shape (n_regressions, n)
        Positions in the residual table.
    repeats : ndarray, shape (n,), optional
    """

    def __init__(
        self, feature_rows: Callable[[int, int], np.ndarray], logits: np.ndarray, repeats: np.ndarray | None
    ) -> None:
        self._feature_rows, self._n = feature_rows, logits.shape[1]
        self._logits = self._on_device(logits)
        self._repeats = None if repeats is None else self._on_device(repeats)
        self._kept: list[Any] | None = None
        if len(feature_rows(0, 0)) * self._n <= _KEPT_BYTES:
            self._kept = [self._on_device(feature_rows(*ends)) for ends in self._batches()]

    def _batches(self) -> Iterator[tuple[int, int]]:
        """Ends of the batches; one empty batch if there are no records."""
        return ((start, min(start + _BATCH, self._n)) for start in range(0, max(self._n, 1), _BATCH))

    @staticmethod
    def _on_device(array: np.ndarray) -> Any:
        import torch  # here, so that the package can be imported without it

        return torch.as_tensor(np.ascontiguousarray(array), device=config.get_device())

    def after(self, rows: np.ndarray, steps: np.ndarray, table: np.ndarray) -> np.ndarray:
        """As ``_BatchSums.after``."""
        moved, moves = self._on_device(rows), self._on_device(steps).to(self._logits.dtype)[:, None]
        residual = self._on_device(table).double()
        total = 0  # of integers: a batch's sum is exact in double precision, that of all perhaps not
        for k, (start, end) in enumerate(self._batches()):
            kept = self._kept
            features = self._on_device(self._feature_rows(start, end)) if kept is None else kept[k]
            logits = self._logits[:, start:end]  # a view: the next line moves what is kept
            logits += features[moved] * moves
            residuals = residual[logits.long()]
            if self._repeats is not None:
                residuals *= self._repeats[start:end]
            total = total + (residuals @ features.double().T).long()
        return total.cpu().numpy()  # type: ignore[attr-defined]  # a tensor after the first batch
