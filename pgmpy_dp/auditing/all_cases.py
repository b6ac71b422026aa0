"""An attack on every public estimator and mechanism of this package, small enough to be run by everybody.

The cases are in ``cases_*.py``; :mod:`pgmpy_dp.auditing.cases_base` says what one is.

Audits in one run: many canaries, each in the data or not, in places of their own.

It applies where a release has a place for each canary that the others leave alone: cells of a table, directions of a
covariance matrix. Where records share what is released (gradients, selections, votes), a guess for one canary is noise
about all others, and the many runs of the other cases say more.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
from tqdm.auto import tqdm

from pgmpy_dp.auditing.attack import AuditReport
from pgmpy_dp.auditing.cases_base import COSTS, AuditCase, OneRunCase, fitted, settings
from pgmpy_dp.auditing.one_run import OneRunReport
from pgmpy_dp.gaussian import noisy_moments
from pgmpy_dp.pgmpy_config import bars_shown
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


def catalogue() -> dict[str, AuditCase | OneRunCase]:
    """All cases by name, in the order of ``docs/guarantees.md``.

    Returns
    -------
    dict of str to AuditCase or OneRunCase

    Examples
    --------
    >>> [name for name in catalogue() if name.startswith("CollectiveEM")]
    ['CollectiveEM(epsilon, replace_one, n_iter=2)', 'CollectiveEM(rho, add_remove, n_iter=2)']
    """
    # Imported when asked for: the cases import all estimators.
    from pgmpy_dp.auditing import cases_discrete, cases_fields, cases_other

    cases: list[AuditCase | OneRunCase] = [*cases_discrete.CASES, *cases_fields.CASES, *cases_other.CASES]
    cases += CASES
    named = {case.name: case for case in cases}
    assert len(named) == len(cases)
    return named


def audit_catalogue(
    names: Iterable[str] | None = None,
    cost: str | int = "small",
    *,
    confidence: float = 0.99,
) -> list[AuditReport | OneRunReport]:
    """Attack every public estimator and mechanism, or some.

    Parameters
    ----------
    names : iterable of str, optional
        Of the cases, as :func:`catalogue` has them. Default: all.
    cost : {"small", "full"} or int
        "small" takes about three minutes of processor time for all cases and finds blunders, "full" about forty.
        A number: of releases on each dataset that are measured, whatever they cost.
    confidence : float
        Of all reports together: if all claims are true, none is called broken but with probability
        ``1 - confidence``. Each case gets its equal part of that (Bonferroni).

    Returns
    -------
    list of AuditReport or OneRunReport
        In the order of `names`; ``report.holds`` is False where a claim is broken.

    Raises
    ------
    ValueError
        For unknown names, an unknown cost, a confidence out of range.

    Examples
    --------
    >>> [report] = audit_catalogue(["distance_test"], confidence=1 - 1e-6)
    >>> report.holds, str(report.guarantee)
    (True, '(1, 0.01)-DP')
    """
    known = catalogue()
    chosen = list(known) if names is None else list(names)
    unknown = [name for name in chosen if name not in known]
    if unknown:
        raise ValueError(f"names={unknown!r} are not cases; see pgmpy_dp.auditing.catalogue()")
    if (not isinstance(cost, int) and cost not in COSTS) or not 0 < confidence < 1:
        raise ValueError(
            f"cost={cost!r}, confidence={confidence!r}: pass one of {COSTS} or a number of releases, and a confidence "
            "in (0, 1)"
        )
    each = family_wise(confidence, len(chosen))
    bar = tqdm(chosen, desc="audits", disable=not bars_shown())
    return [known[name].run(cost, each) for name in bar]


def family_wise(confidence: float, tests: int) -> float:
    """Confidence of each of several tests, for the confidence of all of them together (Bonferroni).

    Examples
    --------
    >>> family_wise(0.99, 10)
    0.999
    """
    return 1.0 - (1.0 - confidence) / max(tests, 1)
