"""The operators of the boundary's list, for audits, tests and pages."""

from __future__ import annotations

from importlib import import_module
from inspect import isabstract
from typing import Any

from pgmpy_dp.private.operators.operator_base import Operator
from pgmpy_dp.private.trusted_types import OPERATORS


def every_operator() -> dict[str, type[Operator[Any]]]:
    """The operators by name, in the order of the boundary's list of modules.

    Examples
    --------
    >>> every_operator()["tables"].__name__
    'Tables'
    """
    kinds = [
        kind
        for module in OPERATORS
        for kind in vars(import_module(module)).values()
        if isinstance(kind, type) and issubclass(kind, Operator) and kind.__module__ == module and not isabstract(kind)
    ]
    return {kind.name: kind for kind in kinds}
