"""The command line ``pgmpy-dp``: from a file of records to a private model, and what follows from it.

One module for each command. Nothing here opens records: a command hands a path to the boundary and takes a release out.
"""

from pgmpy_dp.cli import audit, check, discover, fit, ledger, model, plan, regress, report, schema, score, start
from pgmpy_dp.cli.application import app

__all__ = [
    "app",
    "audit",
    "check",
    "discover",
    "fit",
    "ledger",
    "model",
    "plan",
    "regress",
    "report",
    "schema",
    "score",
    "start",
]
