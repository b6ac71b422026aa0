"""Undirected probabilistic graphical models learned under differential privacy, for pgmpy.

The names below are the front door; nothing else at this level is promised. They are imported when first
used (PEP 562), because pgmpy and what it needs take two seconds to import.
"""

from typing import TYPE_CHECKING

from pgmpy_dp.front_door import front_door

__version__ = "0.4.0"

_HOME = {
    "ApproxDP": "pgmpy_dp.private.guarantee",
    "Budget": "pgmpy_dp.private.budget",
    "BudgetExceeded": "pgmpy_dp.private.filter",
    "ContradictedTablesWarning": "pgmpy_dp.learning.few_records",
    "Date": "pgmpy_dp.schema",
    "DroppedRecordsWarning": "pgmpy_dp.learning.few_records",
    "FewRecordsWarning": "pgmpy_dp.learning.few_records",
    "GuessedTypesWarning": "pgmpy_dp.private.reading.owners",
    "LargeDeltaWarning": "pgmpy_dp.learning.few_records",
    "NoEdgeWarning": "pgmpy_dp.learning.few_records",
    "PiledNumbersWarning": "pgmpy_dp.learning.few_records",
    "Ledger": "pgmpy_dp.private.ledger",
    "LinkedModel": "pgmpy_dp.linked.linked_model",
    "Levels": "pgmpy_dp.schema",
    "LinkedSchema": "pgmpy_dp.linked.operators.linked_schema",
    "MarkovNetwork": "pgmpy_dp.models.markov_network",
    "Number": "pgmpy_dp.schema",
    "PrivateGraph": "pgmpy_dp.communities.operators.graph",
    "PrivateLinkedTables": "pgmpy_dp.linked.operators.linked_tables",
    "PrivateSequences": "pgmpy_dp.sequences.operators.sequences",
    "PrivateTable": "pgmpy_dp.private.data.table",
    "PrivateVectors": "pgmpy_dp.private.data.vectors",
    "PureDP": "pgmpy_dp.private.guarantee",
    "Release": "pgmpy_dp.private.sensitive",
    "Schema": "pgmpy_dp.schema",
    "TextFile": "pgmpy_dp.private.data.text_file",
    "VariableElimination": "pgmpy_dp.models.elimination",
    "ZCDP": "pgmpy_dp.private.guarantee",
    "check": "pgmpy_dp.verbs",
    "combine_synthetic": "pgmpy_dp.models.posterior.multiple_imputation",
    "discover": "pgmpy_dp.verbs",
    "fit_in_place": "pgmpy_dp.learning.in_place",
    "from_noisy_tables": "pgmpy_dp.tables.collective.collective_map",
    "learn": "pgmpy_dp.verbs",
    "list_estimators": "pgmpy_dp.learning.registry",
    "list_metrics": "pgmpy_dp.metrics",
    "plan": "pgmpy_dp.verbs",
    "publish_if": "pgmpy_dp.verbs",
    "score_model": "pgmpy_dp.models.model_score",
    "write_evidence": "pgmpy_dp.reporting.written_evidence",
}

__all__ = [
    "ApproxDP",
    "Budget",
    "BudgetExceeded",
    "ContradictedTablesWarning",
    "Date",
    "DroppedRecordsWarning",
    "FewRecordsWarning",
    "GuessedTypesWarning",
    "LargeDeltaWarning",
    "NoEdgeWarning",
    "PiledNumbersWarning",
    "Ledger",
    "Levels",
    "LinkedModel",
    "LinkedSchema",
    "MarkovNetwork",
    "Number",
    "PrivateGraph",
    "PrivateLinkedTables",
    "PrivateSequences",
    "PrivateTable",
    "PrivateVectors",
    "PureDP",
    "Release",
    "Schema",
    "TextFile",
    "VariableElimination",
    "ZCDP",
    "__version__",
    "check",
    "combine_synthetic",
    "discover",
    "fit_in_place",
    "from_noisy_tables",
    "learn",
    "list_estimators",
    "list_metrics",
    "plan",
    "publish_if",
    "score_model",
    "write_evidence",
]

if TYPE_CHECKING:
    from pgmpy_dp.communities.operators.graph import PrivateGraph
    from pgmpy_dp.learning.few_records import (
        ContradictedTablesWarning,
        DroppedRecordsWarning,
        FewRecordsWarning,
        LargeDeltaWarning,
        NoEdgeWarning,
        PiledNumbersWarning,
    )
    from pgmpy_dp.learning.in_place import fit_in_place
    from pgmpy_dp.learning.registry import list_estimators
    from pgmpy_dp.linked.linked_model import LinkedModel
    from pgmpy_dp.linked.operators.linked_schema import LinkedSchema
    from pgmpy_dp.linked.operators.linked_tables import PrivateLinkedTables
    from pgmpy_dp.metrics import list_metrics
    from pgmpy_dp.models.elimination import VariableElimination
    from pgmpy_dp.models.markov_network import MarkovNetwork
    from pgmpy_dp.models.model_score import score_model
    from pgmpy_dp.models.posterior.multiple_imputation import combine_synthetic
    from pgmpy_dp.private.budget import Budget
    from pgmpy_dp.private.data.table import PrivateTable
    from pgmpy_dp.private.data.text_file import TextFile
    from pgmpy_dp.private.data.vectors import PrivateVectors
    from pgmpy_dp.private.filter import BudgetExceeded
    from pgmpy_dp.private.guarantee import ZCDP, ApproxDP, PureDP
    from pgmpy_dp.private.ledger import Ledger
    from pgmpy_dp.private.reading.owners import GuessedTypesWarning
    from pgmpy_dp.private.sensitive import Release
    from pgmpy_dp.reporting.written_evidence import write_evidence
    from pgmpy_dp.schema import Date, Levels, Number, Schema
    from pgmpy_dp.sequences.operators.sequences import PrivateSequences
    from pgmpy_dp.tables.collective.collective_map import from_noisy_tables
    from pgmpy_dp.verbs import check, discover, learn, plan, publish_if

_OLD = {
    "check_linked": "pgmpy_dp.linked.family_check",
    "check_schema": "pgmpy_dp.tables.schema_check",
    "learn_linked": "pgmpy_dp.linked.private_linked_network",
    "plan_linked": "pgmpy_dp.linked.linked_plan",
    "preview": "pgmpy_dp.tables.preview",
    "preview_score": "pgmpy_dp.models.model_score",
}
"""Names of 0.3 that stay until 0.5: docs/upgrading.md says what stands for each."""

__getattr__, __dir__ = front_door(__name__, _HOME | _OLD)
