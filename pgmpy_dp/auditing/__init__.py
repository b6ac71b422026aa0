"""Attacks on privacy claims, on made-up neighbours: a lower bound on epsilon with a confidence statement.

An audit can refute a claim, never prove it: the proofs are in the docstrings of :mod:`pgmpy_dp.private`. It finds the
mistakes that proofs do not see: noise that was forgotten, halved or calibrated for another adjacency.
:func:`audit_catalogue` attacks every public estimator and mechanism of this package. ``replay`` finds, on one pair
of neighbours and without statistics, what an attack cannot: a statistic that moves too far, a way around the curator.
"""

from pgmpy_dp.auditing.all_cases import audit_catalogue, catalogue
from pgmpy_dp.auditing.attack import AuditReport, Event, audit, audit_scores, release_features
from pgmpy_dp.auditing.cases_base import AuditCase, OneRunCase
from pgmpy_dp.auditing.movements import invented
from pgmpy_dp.auditing.neighbours import (
    Neighbours,
    sequence_neighbours,
    table_neighbours,
    vector_neighbours,
)
from pgmpy_dp.auditing.one_run import OneRunReport, one_run_audit
from pgmpy_dp.auditing.picture import plot_audit
from pgmpy_dp.auditing.replay import ReplayReport, replay

__all__ = [
    "AuditCase",
    "AuditReport",
    "Event",
    "Neighbours",
    "OneRunCase",
    "OneRunReport",
    "ReplayReport",
    "audit",
    "audit_catalogue",
    "audit_scores",
    "catalogue",
    "invented",
    "one_run_audit",
    "plot_audit",
    "release_features",
    "replay",
    "sequence_neighbours",
    "table_neighbours",
    "vector_neighbours",
]
