"""Linked tables: parents with their children, such as households and persons, protected and learned as one unit."""

from typing import TYPE_CHECKING

from pgmpy_dp.front_door import front_door

ESTIMATORS: dict[str, str] = {}
"""None that learns from one table: what this subject has takes two, and has a front door of its own."""

_HOME = {
    "LinkedModel": "pgmpy_dp.linked.linked_model",
    "LinkedSchema": "pgmpy_dp.linked.operators.linked_schema",
    "PrivateLinkedNetwork": "pgmpy_dp.linked.private_linked_network",
    "PrivateLinkedTables": "pgmpy_dp.linked.operators.linked_tables",
    "made_up_families": "pgmpy_dp.linked.made_up",
}

__all__ = [
    "LinkedModel",
    "LinkedSchema",
    "PrivateLinkedNetwork",
    "PrivateLinkedTables",
    "made_up_families",
]

if TYPE_CHECKING:
    from pgmpy_dp.linked.linked_model import LinkedModel
    from pgmpy_dp.linked.made_up import made_up_families
    from pgmpy_dp.linked.operators.linked_schema import LinkedSchema
    from pgmpy_dp.linked.operators.linked_tables import PrivateLinkedTables
    from pgmpy_dp.linked.private_linked_network import PrivateLinkedNetwork

__getattr__, __dir__ = front_door(__name__, _HOME)
