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
    classes = [
        cls
        for module in OPERATORS
        for cls in vars(import_module(module)).values()
        if isinstance(cls, type) and issubclass(cls, Operator) and cls.__module__ == module and not isabstract(cls)
    ]
    return {cls.name: cls for cls in classes}
