"""All cases of replay: every estimator, method, adjacency and kind of budget that asks a curator."""

from __future__ import annotations

from tests.auditing.replay_cases import ReplayCase
from tests.auditing.replay_clusters import cluster_cases
from tests.auditing.replay_columns import column_cases
from tests.auditing.replay_gradients import gradient_cases
from tests.auditing.replay_graphs import graph_cases
from tests.auditing.replay_parities import parity_cases
from tests.auditing.replay_regressions import regression_cases
from tests.auditing.replay_sequences import departure_cases, sequence_cases
from tests.auditing.replay_tables import check_cases, group_cases, publish_cases, score_cases, table_cases
from tests.auditing.replay_units import unit_cases
from tests.auditing.replay_vectors import vector_cases
from tests.auditing.replay_votes import vote_cases

__all__ = ["replay_catalogue"]


def replay_catalogue() -> list[ReplayCase]:
    """The cases of all subjects.

    Returns
    -------
    list of ReplayCase
    """
    discrete = [
        *table_cases(),
        *check_cases(),
        *score_cases(),
        *publish_cases(),
        *column_cases(),
        *vote_cases(),
        *parity_cases(),
        *gradient_cases(),
        *sequence_cases(),
        *departure_cases(),
        *unit_cases(),
    ]
    return [*discrete, *vector_cases(), *graph_cases(), *cluster_cases(), *regression_cases(), *group_cases()]
