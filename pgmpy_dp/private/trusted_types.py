"""The boundary's classes that are trusted: those that one of these modules has under their name."""

from __future__ import annotations

import sys

OPERATORS = (
    "pgmpy_dp.private.operators.distances",
    "pgmpy_dp.private.operators.model_errors",
    "pgmpy_dp.private.operators.record_count",
    "pgmpy_dp.private.operators.record_matches",
    "pgmpy_dp.private.operators.score_sums",
    "pgmpy_dp.private.operators.tables",
    "pgmpy_dp.private.operators.worst_fit",
    "pgmpy_dp.private.operators.column_operators",
    "pgmpy_dp.private.operators.solutions",
    "pgmpy_dp.private.operators.vector_operators",
    "pgmpy_dp.communities.operators.graph_operators",
    "pgmpy_dp.fields.operators.feature_matrices",
    "pgmpy_dp.fields.operators.interactions",
    "pgmpy_dp.fields.operators.parities",
    "pgmpy_dp.fields.operators.vote_operators",
    "pgmpy_dp.mixtures.operators.block_operators",
    "pgmpy_dp.mixtures.operators.cluster_operators",
    "pgmpy_dp.sequences.operators.sequence_operators",
)
"""The modules of the operators. No other class is ever asked, whoever has imported it."""

_OTHERS = (
    "pgmpy_dp.linked.operators.linked_schema",
    "pgmpy_dp.linked.operators.linked_tables",
    "pgmpy_dp.private.budget",
    "pgmpy_dp.private.guarantee",
    "pgmpy_dp.private.ledger",
    "pgmpy_dp.private.data.columns",
    "pgmpy_dp.private.data.data_base",
    "pgmpy_dp.communities.operators.graph",
    "pgmpy_dp.private.data.table",
    "pgmpy_dp.private.data.vectors",
    "pgmpy_dp.sequences.operators.sequences",
    "pgmpy_dp.communities.operators.block_projection",
    "pgmpy_dp.private.curator.charged_base",
    "pgmpy_dp.private.curator.curator_base",
    "pgmpy_dp.gaussian.operators.precision",
    "pgmpy_dp.private.curator.schedule",
    "pgmpy_dp.private.curator.table_curator",
)


def is_trusted(cls: type) -> bool:
    """Whether a class is defined in the boundary; no subclass of one.

    Examples
    --------
    >>> from pgmpy_dp.private.budget import Budget
    >>> is_trusted(Budget), is_trusted(type("Budget", (Budget,), {"__module__": Budget.__module__}))
    (True, False)
    """
    listed = cls.__module__ in (*OPERATORS, *_OTHERS)
    return listed and getattr(sys.modules[cls.__module__], cls.__qualname__, None) is cls


def require_trusted(what: str, value: object, instead: str) -> None:
    """Raise a TypeError, which says what to use, for an object of a class that is not the boundary's.

    Noise is made from these objects: from a cost, an adjacency, a number of rows. A subclass could return others than
    its base.
    """
    cls = type(value)
    if not is_trusted(cls):
        raise TypeError(f"{what} is a {cls.__qualname__}, which is not a class of the boundary; {instead}")
