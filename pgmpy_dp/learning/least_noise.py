"""Choose between Laplace and Gaussian noise, where a budget leaves the choice: the smaller one."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.curator.curator_base import cost_of
from pgmpy_dp.private.data.data_base import PrivateData
from pgmpy_dp.private.guarantee import ZCDP, PureDP, ReservedZCDP
from pgmpy_dp.private.sensitive import Noise

NOISES = ("auto", "laplace", "gaussian")


def least_noise(
    noises: Callable[[PureDP | ZCDP], Sequence[Noise]], sizes: Sequence[int], budget: Budget, noise: str = "auto"
) -> PureDP | ZCDP:
    """The cost under which an operator's arrays have the least noise: pure for Laplace, zCDP for Gaussian.

    Parameters
    ----------
    noises : callable
        A function from a cost to the noise of each array, by the operator's formula; ValueError where it would bury any
        count.
    sizes : sequence of int
        Entries of each array.
    budget : Budget
        Of (epsilon, delta): Laplace noise of that epsilon, or Gaussian noise of the rho that converts to both. Of units
        of several records (:class:`~pgmpy_dp.private.budget.UnitBudget`): the cost is one record's.
    noise : {"auto", "laplace", "gaussian"}
        "auto" takes the smaller total variance; see `noise_for_ledger` for what it costs a ledger that is shared.

    Raises
    ------
    ValueError
        For noise that cannot give the budget, and what `noises` refuses.

    Examples
    --------
    >>> least_noise(lambda cost: [Noise("discrete_laplace", 2.0)], [2], Budget(epsilon=1.0))
    PureDP(epsilon=1.0)
    """
    if noise == "gaussian" and budget.rho is None and not budget.delta:
        raise ValueError(
            f"noise='gaussian' cannot give {budget}: Gaussian noise has no pure guarantee; "
            "pass rho, or a delta above 0, or noise='laplace'"
        )
    if noise == "laplace" and budget.rho is not None:
        raise ValueError(
            f"noise='laplace' is for an epsilon, but the budget is {budget}; pass epsilon, or noise='gaussian', "
            "which is more accurate for any rho"
        )
    costs: list[PureDP | ZCDP] = []
    if budget.epsilon is not None and noise != "gaussian":
        costs.append(cost_of(budget, pure=True))
    if noise != "laplace" and (budget.rho is not None or budget.delta):
        costs.append(cost_of(budget))

    def variance(cost: PureDP | ZCDP) -> float:
        return math.fsum(size * one.variance for size, one in zip(sizes, noises(cost), strict=True))

    return min(costs, key=variance)


def noise_for_ledger(noise: str, budget: Budget, data: PrivateData) -> str:
    """The meaning of "auto" where costs are added up as zCDP: "gaussian" for an (epsilon, delta) budget.

    Parameters
    ----------
    budget : Budget
        Of the fit.
    data : PrivateData
        The data with the ledger; its charges are public, and nothing else is read.

    Examples
    --------
    >>> import pandas as pd
    >>> from pgmpy_dp import PrivateTable
    >>> of_rho = PrivateTable(pd.DataFrame({"a": [0, 1]}), {"a": [0, 1]}, ledger=Budget(rho=1.0))
    >>> noise_for_ledger("auto", Budget(epsilon=1.0, delta=1e-6), of_rho)
    'gaussian'
    """
    if noise != "auto" or not budget.delta:
        return noise
    ledger = data.ledger
    as_zcdp = ledger.budget.rho is not None or any(
        isinstance(entry.cost, ZCDP | ReservedZCDP) for entry in ledger.entries
    )
    # A ledger adds up pure costs by their epsilon only as long as there are no others, and only if its budget has an
    # epsilon. Otherwise an epsilon counts epsilon**2/2: 0.5 for 1, of the 0.185 that a ledger of (3, 1e-6) has in all,
    # where Gaussian noise of (1, 1e-6) counts 0.024. So what is the smaller noise of a budget that one fit has to
    # itself is refused there, or takes what twenty Gaussian fits would. In a ledger of which nothing is spent yet, or
    # pure costs only, "auto" stays what it is, the smallest noise: three fits of (1, 1e-6) in (3, 1e-6) are best with
    # Laplace noise where tables are few. What comes after it has to be pure then; pass `noise="gaussian"` to the first
    # fit where a later one will be Gaussian.
    return "gaussian" if as_zcdp else noise
