"""A map of the number of records against the number of variables: what is impossible, open, and enough.

All numbers are orders with constant 1, as everywhere in `theory`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from pgmpy_dp.theory.planning import BudgetLike, Option, plan


@dataclass(frozen=True)
class FeasibilityMap:
    """Orders of n against p for each goal: below `lower` impossible, from `upper` on enough, open between.

    Parameters
    ----------
    p : ndarray of shape (m,)
        Numbers of variables.
    lower, upper : dict of goal to ndarray of shape (m,)
        With constant 1; upper is inf where no learner is known.
    measure : str
        Kind of guarantee.

    Examples
    --------
    >>> from pgmpy_dp import Budget
    >>> graph = feasibility_map([10, 100], width=1.0, min_weight=0.5, budget=Budget(epsilon=1.0))
    >>> graph.measure, graph.upper["structure"].tolist()
    ('pure', [inf, inf])
    """

    p: np.ndarray
    lower: dict[str, np.ndarray]
    upper: dict[str, np.ndarray]
    measure: str


def feasibility_map(
    p: Iterable[int],
    *,
    width: float,
    budget: BudgetLike | None,
    min_weight: float | None = None,
    alpha: float | None = None,
    k: int = 2,
    t: int = 2,
) -> FeasibilityMap:
    """The bounds of `plan` over several p, with the learner that needs fewest records at each.

    `pgmpy_dp.plotting.plot_feasibility` draws it. Source: Zhang, Kamath, Kulkarni and Wu (2020).

    Parameters
    ----------
    p : iterable of int
        Increasing.
    width, budget, min_weight, alpha, k, t
        As in `plan`.

    Returns
    -------
    FeasibilityMap

    Raises
    ------
    TypeError, ValueError
        As `plan`; or if p is empty or does not increase.

    Examples
    --------
    >>> from pgmpy_dp import Budget
    >>> graph = feasibility_map([10, 100, 1000], width=1.0, min_weight=0.5, budget=Budget(rho=1.0))
    >>> graph.lower["structure"].round(1).tolist()
    [3.2, 10.0, 31.6]
    """
    sizes = list(p)
    if not sizes or any(a >= b for a, b in itertools.pairwise(sizes)):
        raise ValueError(f"p={sizes!r} must be an increasing, non-empty sequence")
    plans = [plan(q, width=width, budget=budget, min_weight=min_weight, alpha=alpha, k=k, t=t) for q in sizes]
    goals = list(dict.fromkeys(option.goal for option in plans[0]))
    bounds = {
        goal: np.array([
            (max(o.lower.value for o in one if o.goal == goal), min(_upper(o) for o in one if o.goal == goal))
            for one in plans
        ])
        for goal in goals
    }  # fmt: skip
    return FeasibilityMap(
        np.array(sizes),
        {goal: bounds[goal][:, 0] for goal in goals},
        {goal: bounds[goal][:, 1] for goal in goals},
        plans[0][0].measure,
    )


def _upper(option: Option) -> float:
    return math.inf if option.upper is None else option.upper.value
