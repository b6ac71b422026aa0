"""What the estimators that learn from noisy second moments share: which options go together."""

from __future__ import annotations

from typing import Any

from pgmpy_dp.learning.vectors_base import BaseVectorsEstimator
from pgmpy_dp.private.operators.vector_operators import checked_norm, checked_point


def checked_center(name: str, value: Any) -> tuple[float, ...] | str:
    """A public vector, or "private"; TypeError or ValueError for anything else."""
    if value is None or (isinstance(value, str) and value != "private"):
        raise ValueError(f"{name}={value!r} is not supported; pass 'private' or public means, perhaps zeros")
    return value if isinstance(value, str) else checked_point(name, value)


class BaseMomentsEstimator(BaseVectorsEstimator):
    """Learns from a release of :mod:`pgmpy_dp.gaussian.noisy_moments`; abstract.

    A subclass declares the options `row_norm`, `center`, `center_radius`, `bounds` and `scaling`.
    """

    def _check_norm_or_bounds(self: Any) -> None:
        if self.bounds is None:
            checked_norm("row_norm", self.row_norm)
            if self.scaling != "private":
                raise ValueError(f"scaling={self.scaling!r} is for bounds, and there are none; pass bounds, or drop it")
        elif self.row_norm is not None or self.center_radius is not None:
            raise ValueError(
                f"row_norm={self.row_norm!r} and center_radius={self.center_radius!r} follow from bounds; drop them, "
                "or bounds"
            )

    def _check_center(self: Any) -> None:
        private = self.center == "private"
        if private and self.center_radius is None and self.bounds is None:
            raise ValueError(
                "center='private' needs center_radius, a public distance from zero within which the mean lies and "
                "to which records are clipped for it; pass it, or bounds, or a public center"
            )
        if not private and self.center_radius is not None:
            raise ValueError(
                f"center_radius={self.center_radius!r} is for center='private', and center={self.center!r}; drop it"
            )
