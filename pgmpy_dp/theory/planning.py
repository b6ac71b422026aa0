"""The learners that a budget allows, and the bounds that apply to a goal.

All numbers are orders with constant 1, as everywhere in `theory`.

References
----------
.. [1] Zhang, H., Kamath, G., Kulkarni, J. and Wu, Z. S. (2020). Privately learning Markov random fields. ICML.
.. [2] Bun, M. and Steinke, T. (2016). Concentrated differential privacy: simplifications, extensions, and lower
   bounds. TCC.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from pgmpy_dp.checks import checked_integer, checked_within
from pgmpy_dp.theory import lower_bounds, sample_complexity
from pgmpy_dp.theory.order import Order, checked_weight

GROWTHS = ("log p", "sqrt(p)", "p")  # of lower bounds, ascending

REGRESSIONS = "private Frank-Wolfe regressions"
THRESHOLD = "private Frank-Wolfe regressions, cut off at eta/2"
STABLE = "stable mode of the graphs of blocks"
NOT_PRIVATE = "the learner without privacy"


class BudgetLike(Protocol):
    """An object with `epsilon`, `delta` and `rho` as :class:`pgmpy_dp.Budget` has them."""

    @property
    def epsilon(self) -> float | None: ...
    @property
    def delta(self) -> float: ...
    @property
    def rho(self) -> float | None: ...


@dataclass(frozen=True)
class Option:
    """One learner for one goal under one kind of guarantee, and the bounds on the records it needs.

    Parameters
    ----------
    goal : {"structure", "parameters"}
    measure : {"none", "approximate", "zcdp", "pure"}
        Kind of guarantee.
    learner : str or None
        None where no learner with this guarantee is in the paper.
    upper : Order or None
        What the learner needs.
    lowers : tuple of Order
        What every learner with this guarantee needs: all bounds that apply.

    Examples
    --------
    >>> from pgmpy_dp import Budget
    >>> (option,) = plan(100, width=1.0, min_weight=0.5, budget=Budget(rho=1.0))
    >>> option.growth, option.verdict(5)
    ('Theta(sqrt(p))', 'impossible')
    """

    goal: str
    measure: str
    learner: str | None
    upper: Order | None
    lowers: tuple[Order, ...]

    @property
    def lower(self) -> Order:
        """The largest of `lowers`, at this p."""
        return max(self.lowers, key=lambda bound: bound.value)

    @property
    def growth(self) -> str:
        """The order in p up to logarithmic factors, as Table 1 has it: Theta where upper and lower bound agree."""
        lower = max((bound.growth for bound in self.lowers), key=GROWTHS.index)
        if self.upper is None:
            return f"Omega({lower})"
        return f"Theta({lower})" if self.upper.growth == lower else f"Omega({lower}), O({self.upper.growth})"

    def verdict(self, n: int) -> str:
        """The verdict on n records by the bounds, each with constant 1.

        Parameters
        ----------
        n : int
            At least 1.

        Returns
        -------
        {"impossible", "open", "enough"}
            "impossible": below the order of the lower bound. "enough": at or above that of the upper bound.
        """
        if checked_integer("n", n, least=1) < self.lower.value:
            return "impossible"
        return "enough" if self.upper is not None and n >= self.upper.value else "open"

    def __str__(self) -> str:
        upper = "no learner known" if self.upper is None else f"{self.learner}, {self.upper}"
        return f"{self.goal} ({self.measure}): {upper}; every learner, {self.lower}"


def plan(
    p: int,
    *,
    width: float,
    budget: BudgetLike | None,
    min_weight: float | None = None,
    alpha: float | None = None,
    k: int = 2,
    t: int = 2,
) -> list[Option]:
    """The learners of the paper that a budget allows, with the orders of what they need and of what nobody can beat.

    The structure is a goal where `min_weight` is passed, the parameters where `alpha` is. Without a learner for pure
    differential privacy, the paper leaves only lower bounds, so that `upper` is None there. An (epsilon, delta) budget
    is also spent by the rho-zCDP learners, at the largest rho with rho + 2 sqrt(rho log(1/delta)) <= epsilon [2]_. The
    lower bound on parameters under approximate privacy is proved for delta up to 3/(64 n). Source: Zhang, Kamath,
    Kulkarni and Wu (2020), Table 1 and its theorems.

    Parameters
    ----------
    p : int
        Variables, 2 or more.
    width : float
        lambda, the public bound on the model's width.
    budget : Budget or None
        Anything with `epsilon`, `delta` and `rho`; None: not private.
    min_weight : float, optional
        eta, smallest edge weight of a graph to recover exactly.
    alpha : float, optional
        Largest error of a parameter.
    k, t : int
        States of the variables, and order of the interactions. k > 2: pairwise models. t > 2: binary t-wise fields.

    Returns
    -------
    list of Option
        By goal, the lowest order in p first.

    Raises
    ------
    TypeError, ValueError
        For arguments out of range; if neither `min_weight` nor `alpha` is passed; if both k and t exceed 2.

    Examples
    --------
    >>> from pgmpy_dp import Budget
    >>> options = plan(100, width=1.0, min_weight=0.5, alpha=0.01, budget=Budget(epsilon=1.0, delta=1e-6))
    >>> for option in options:
    ...     print(option.goal, "|", option.learner, "|", option.growth)
    structure | stable mode of the graphs of blocks | Theta(log p)
    structure | private Frank-Wolfe regressions, cut off at eta/2 | Omega(log p), O(sqrt(p))
    parameters | private Frank-Wolfe regressions | Theta(sqrt(p))
    >>> f"{options[0].upper.value:.1e}", options[0].verdict(10**9), options[2].verdict(100)
    ('2.3e+10', 'open', 'impossible')
    """
    p, k, t = checked_integer("p", p, least=2), checked_integer("k", k, least=2), checked_integer("t", t, least=2)
    if k > 2 and t > 2:
        raise ValueError(f"k={k}, t={t}: the theorems are about pairwise models (t = 2) or binary variables (k = 2)")
    if min_weight is None and alpha is None:
        raise ValueError("min_weight=None, alpha=None: no goal; pass min_weight (structure) or alpha (parameters)")
    checked_within("width", width)
    measure, epsilon, delta, rho = _spent(budget)
    options = []
    if min_weight is not None:
        eta, _ = checked_weight(min_weight, width)
        lowers: tuple[Order, ...] = (_structure_bound(p, k, eta, measure, epsilon, rho),)
        uppers = []
        if measure in ("none", "approximate"):
            graphs = sample_complexity.pairwise_structure if t == 2 else sample_complexity.binary_structure
            name = STABLE if measure == "approximate" else NOT_PRIVATE
            uppers.append((name, graphs(p, k if t == 2 else t, width, eta, epsilon, delta)))
        if measure in ("approximate", "zcdp"):
            uppers.append((THRESHOLD, _regressions(p, k, t, width, eta / 2, rho)))
        options += _options("structure", measure, uppers, lowers)
    if alpha is not None:
        alpha = checked_within("alpha", alpha)
        lowers = _parameter_bounds(p, k, alpha, measure, epsilon, rho)
        name = NOT_PRIVATE if measure == "none" else REGRESSIONS
        uppers = [] if measure == "pure" else [(name, _regressions(p, k, t, width, alpha, rho))]
        options += _options("parameters", measure, uppers, lowers)
    return options


def _spent(budget: BudgetLike | None) -> tuple[str, float | None, float | None, float]:
    """(measure, epsilon, delta, rho), with the rho that an (epsilon, delta) budget allows, and inf without privacy."""
    if budget is None:
        return "none", None, None, math.inf
    if budget.rho is not None:
        if budget.epsilon is not None:
            raise ValueError(f"budget={budget!r} has both rho and epsilon; it must have one of them")
        return "zcdp", None, None, checked_within("rho", budget.rho)
    epsilon = checked_within("epsilon", budget.epsilon)
    if not budget.delta:
        return "pure", epsilon, None, math.nan  # no learner spends it
    log_delta = math.log(1 / checked_within("delta", budget.delta, most=1))
    return "approximate", epsilon, budget.delta, (math.sqrt(epsilon + log_delta) - math.sqrt(log_delta)) ** 2


def _regressions(p: int, k: int, t: int, width: float, alpha: float, rho: float) -> Order:
    if t > 2:
        return sample_complexity.binary_parameters(p, t, width, alpha, rho)
    if k > 2:
        return sample_complexity.pairwise_parameters(p, k, width, alpha, rho)
    return sample_complexity.ising_parameters(p, width, alpha, rho)


def _structure_bound(p: int, k: int, eta: float, measure: str, epsilon: float | None, rho: float) -> Order:
    if measure in ("none", "approximate"):
        return lower_bounds.not_private(p)
    spent = {"epsilon": epsilon} if measure == "pure" else {"rho": rho}
    if k > 2:
        return lower_bounds.pairwise_structure(p, k, eta, **spent)
    return lower_bounds.ising_structure(p, eta, **spent)


def _parameter_bounds(
    p: int, k: int, alpha: float, measure: str, epsilon: float | None, rho: float
) -> tuple[Order, ...]:
    bounds = [lower_bounds.not_private(p)]
    if measure != "none" and alpha <= lower_bounds.MAX_ALPHA:
        spent = {"rho": rho} if measure == "zcdp" else {"epsilon": epsilon}
        bounds.append(lower_bounds.ising_parameters(p, alpha, **spent))
    if measure in ("zcdp", "pure"):
        # Parameters to within alpha give the structure of any model whose edges weigh more than 2 alpha.
        bounds.append(_structure_bound(p, k, 2 * alpha, measure, epsilon, rho))
    return tuple(bounds)


def _options(goal: str, measure: str, uppers: list[tuple[str, Order]], lowers: tuple[Order, ...]) -> list[Option]:
    if not uppers:
        return [Option(goal, measure, None, None, lowers)]
    return [Option(goal, measure, learner, upper, lowers) for learner, upper in uppers]
