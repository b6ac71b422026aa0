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
    "check_linked": "pgmpy_dp.linked.family_check",
    "discover_linked": "pgmpy_dp.linked.linked_discovery",
    "learn_linked": "pgmpy_dp.linked.private_linked_network",
    "made_up_families": "pgmpy_dp.linked.made_up",
    "plan_linked": "pgmpy_dp.linked.linked_plan",
}

__all__ = [
    "LinkedModel",
    "LinkedSchema",
    "PrivateLinkedNetwork",
    "PrivateLinkedTables",
    "check_linked",
    "discover_linked",
    "learn_linked",
    "made_up_families",
    "plan_linked",
]

if TYPE_CHECKING:
    from pgmpy_dp.linked.family_check import check_linked
    from pgmpy_dp.linked.linked_discovery import discover_linked
    from pgmpy_dp.linked.linked_model import LinkedModel
    from pgmpy_dp.linked.linked_plan import plan_linked
    from pgmpy_dp.linked.made_up import made_up_families
    from pgmpy_dp.linked.operators.linked_schema import LinkedSchema
    from pgmpy_dp.linked.operators.linked_tables import PrivateLinkedTables
    from pgmpy_dp.linked.private_linked_network import PrivateLinkedNetwork, learn_linked

__getattr__, __dir__ = front_door(__name__, _HOME)
