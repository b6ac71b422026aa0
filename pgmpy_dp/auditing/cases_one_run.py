"""Audits in one run: many canaries, each in the data or not, in places of their own.

It applies where a release has a place for each canary that the others leave alone: cells of a table, directions of a
covariance matrix. Where records share what is released (gradients, selections, votes), a guess for one canary is noise
about all others, and the many runs of the other cases say more.
"""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pandas as pd

from pgmpy_dp.auditing.cases_base import OneRunCase, fitted, settings
from pgmpy_dp.gaussian import noisy_moments
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.data.vectors import PrivateVectors
from pgmpy_dp.private.guarantee import ApproxDP, PureDP

_CELLS = 1000


def _canary_table(included: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame({"place": np.flatnonzero(included).astype(object)})


def noisy_cells(frame: Any) -> np.ndarray:
    """The noisy count of each canary's cell, from a fit of one table."""
    model = nx.Graph()
    model.add_node("place")
    arguments = {"epsilon": 2.0, "state_names": {"place": list(range(_CELLS))}}
    return fitted("NaiveMLE", arguments, model, frame).release_["place"].array.astype(float)


def _canary_vectors(included: np.ndarray) -> np.ndarray:
    return 3.0 * np.eye(len(included))[included]


def noisy_diagonal(rows: Any) -> np.ndarray:
    """The noisy second moment along each canary's axis, from the learner alone: the lasso after it takes long."""
    budget = Budget(epsilon=2.0, delta=1e-12)
    data = PrivateVectors(rows, ledger=budget)
    return noisy_moments.run(data, settings("PrivateGraphicalLasso", row_norm=1.0), budget).values[0].astype(float)


CASES = [
    OneRunCase(
        "NaiveMLE(epsilon, add_remove, one run)",
        "NaiveMLE",
        PureDP(2.0),
        _canary_table,
        noisy_cells,
        (_CELLS, _CELLS),
    ),
    OneRunCase(
        "covariance(delta, add_remove, one run)",
        "covariance",
        ApproxDP(2.0, 1e-12),
        _canary_vectors,
        noisy_diagonal,
        (400, 800),
    ),
]
