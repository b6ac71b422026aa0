"""The cases of the catalogue: a case is one attack, small enough to be run by everybody.

A case is a pair of made-up neighbours, a claim and what is attacked: the public ``fit`` of an estimator, or a learner's
``run``, never a copy. The datasets are tiny (a few records, cells, vertices), so that a release takes milliseconds; one
record matters most there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from pgmpy_dp.auditing.attack import AuditReport, Mechanism, audit
from pgmpy_dp.auditing.neighbours import Neighbours
from pgmpy_dp.auditing.one_run import OneRunReport, one_run_audit
from pgmpy_dp.auditing.scores import Score
from pgmpy_dp.learning.options import Settings, settings_of
from pgmpy_dp.private.guarantee import ZCDP, ApproxDP, Guarantee, PureDP

COSTS = ("small", "full")
PAIR = {"a": [0, 1], "b": [0, 1]}
"""Two binary variables, as most cases have."""
CLAIMS: dict[str, tuple[dict[str, float], Guarantee]] = {
    "epsilon": ({"epsilon": 1.0}, PureDP(1.0)),
    "rho": ({"rho": 0.5}, ZCDP(0.5)),
    "delta": ({"epsilon": 1.0, "delta": 0.01}, ApproxDP(1.0, 0.01)),
}


@dataclass(frozen=True, eq=False)
class AuditCase:
    """One attack.

    Parameters
    ----------
    name : str
        Unique.
    subject : str
        The estimator or mechanism under attack.
    claim : PureDP, ZCDP or ApproxDP
        What it says of itself; that an estimator's ``privacy_`` says so is tested.
    neighbours : callable
        Without arguments: the two datasets.
    mechanism : callable
        From a dataset to what is released, as :func:`pgmpy_dp.auditing.audit` takes it; picklable.
    features, score : callable, optional
        As there.
    trials : tuple of two int
        At small and at full cost.
    floating_point : bool
        Whether the noise is made in floating point, so that the guarantee is one of real numbers.

    Examples
    --------
    >>> from pgmpy_dp.auditing import catalogue
    >>> case = catalogue()["NaiveMLE(epsilon, add_remove)"]
    >>> isinstance(case, AuditCase), case.name == "NaiveMLE(epsilon, add_remove)"
    (True, True)
    """

    name: str
    subject: str
    claim: Guarantee
    neighbours: Callable[[], Neighbours]
    mechanism: Mechanism
    features: Callable[[Any], np.ndarray] | None = None
    score: Score | None = None
    trials: tuple[int, int] = (100, 2000)
    floating_point: bool = False

    def run(self, cost: str | int = "small", confidence: float = 0.99) -> AuditReport:
        """The attack, in this process; see :func:`~pgmpy_dp.auditing.audit_catalogue`.

        Parameters
        ----------
        cost : {"small", "full"} or int
            As in :func:`~pgmpy_dp.auditing.audit_catalogue`.
        confidence : float
            In (0, 1).

        Returns
        -------
        AuditReport
        """
        report = audit(
            self.mechanism,
            self.neighbours(),
            self.claim,
            trials=cost if isinstance(cost, int) else self.trials[COSTS.index(cost)],
            confidence=confidence,
            features=self.features,
            score=self.score,
        )
        return replace(report, name=self.name)


@dataclass(frozen=True, eq=False)
class OneRunCase:
    """One attack in one run, for mechanisms that hold many records apart (Steinke, Nasr and Jagielski 2023).

    Parameters
    ----------
    name, subject, claim, floating_point
        As in :class:`AuditCase`; the claim is one of epsilon or (epsilon, delta), under add_remove.
    data : callable
        From ``included``, bool of shape (n_canaries,), to a dataset with those canaries in it.
    mechanism : callable
        From a dataset to a score for each canary, shape (n_canaries,), high where it seems to be in.
    canaries : tuple of two int
        At small and at full cost.

    Examples
    --------
    >>> from pgmpy_dp.auditing import catalogue
    >>> case = catalogue()["NaiveMLE(epsilon, add_remove, one run)"]
    >>> isinstance(case, OneRunCase), case.name == "NaiveMLE(epsilon, add_remove, one run)"
    (True, True)
    """

    name: str
    subject: str
    claim: PureDP | ApproxDP
    data: Callable[[np.ndarray], Any]
    mechanism: Callable[[Any], np.ndarray]
    canaries: tuple[int, int] = (200, 1000)
    floating_point: bool = False

    def run(self, cost: str | int = "small", confidence: float = 0.99) -> OneRunReport:
        """The attack, in this process. Guesses are made for the half of the canaries that are clearest.

        Parameters
        ----------
        cost : {"small", "full"} or int
            As in :func:`~pgmpy_dp.auditing.audit_catalogue`.
        confidence : float
            In (0, 1).

        Returns
        -------
        OneRunReport
        """
        n = self.canaries[COSTS.index(cost) if isinstance(cost, str) else 0]
        included = np.random.default_rng().random(n) < 0.5
        report = one_run_audit(
            included,
            self.mechanism(self.data(included)),
            delta=getattr(self.claim, "delta", 0.0),
            confidence=confidence,
            n_guesses=n // 4 * 2,
        )
        return replace(report, name=self.name, guarantee=self.claim, adjacency="add_remove")


def fitted(name: str, arguments: dict[str, Any], model: Any, data: Any) -> Any:
    """An estimator of this package, fitted: what the cases attack.

    Parameters
    ----------
    name : str
        Of the class.
    arguments : dict
        Of its constructor.
    model : networkx.Graph or None
        For the estimators that take a graph.
    data : Any
    """
    from pgmpy_dp import estimators

    estimator = getattr(estimators, name)(**arguments)
    return estimator.fit(data) if model is None else estimator.fit(model, data)


def settings(name: str, **arguments: Any) -> Settings:
    """Return the settings that the estimator of this name hands to its method."""
    from pgmpy_dp import estimators

    return settings_of(getattr(estimators, name)(**arguments))


def fit_case(
    subject: str,
    budget: str,
    label: Iterable[str],
    neighbours: Callable[[], Neighbours],
    arguments: dict[str, Any],
    model: Any = None,
    **options: Any,
) -> AuditCase:
    """An attack on one fit of an estimator with one of `CLAIMS`; `options` are further fields of the case."""
    budget_options, claim = CLAIMS[budget]
    mechanism = partial(fitted, subject, {**budget_options, **arguments}, model)
    return AuditCase(f"{subject}({', '.join([budget, *label])})", subject, claim, neighbours, mechanism, **options)


def declared(adjacency: str, n: int, name: str = "n_records") -> dict[str, Any]:
    """The adjacency, and under replace_one the public number of records, or what `name` says it counts."""
    return {"adjacency": adjacency} | ({name: n} if adjacency == "replace_one" else {})


def said(arguments: dict[str, Any]) -> list[str]:
    """Arguments as the name of a case tells them."""
    return [f"{key}={value}" for key, value in arguments.items()]
