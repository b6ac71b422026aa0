"""Settings of a method for its tests: what an estimator hands to it."""

from __future__ import annotations

from typing import Any

__all__ = ["settings"]


def settings(estimator: type, /, **options: Any) -> Any:
    """The checked options of an estimator with these arguments."""
    taken = estimator(**options)._as_checked()
    taken._check()
    return taken._options
