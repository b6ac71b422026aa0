"""Settings of a method for its tests: what an estimator hands to it."""

from __future__ import annotations

from typing import Any

__all__ = ["settings"]


def settings(estimator: type, /, *given: Any, **options: Any) -> Any:
    """The checked options of an estimator with these arguments."""
    taken = estimator(*given, **options)._as_checked()
    taken._check()
    return taken._options
