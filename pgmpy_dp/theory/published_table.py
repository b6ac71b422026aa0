"""Table 1 of Zhang et al. (2020), regenerated from the bounds: as orders in p, and in numbers.

References
----------
.. [1] Zhang, H., Kamath, G., Kulkarni, J. and Wu, Z. S. (2020). Privately learning Markov random fields. ICML.
"""

from __future__ import annotations

from dataclasses import dataclass

from pgmpy_dp.theory.planning import Option, plan


def table_1_options(
    p: int, *, width: float, min_weight: float, alpha: float, epsilon: float, delta: float, rho: float
) -> dict[tuple[str, str], Option]:
    """Table 1 of Zhang et al. (2020) in numbers: for each goal and kind of guarantee, the best option for Ising models.

    Parameters
    ----------
    p : int
    width, min_weight, alpha : float
        lambda, eta (structure) and the largest error (parameters; at most 1/50 for the table's bounds to apply).
    epsilon, delta, rho : float
        The budget of each kind: (epsilon, delta), rho, and epsilon alone.

    Returns
    -------
    dict of (goal, measure) to Option

    Examples
    --------
    >>> rows = table_1_options(50, width=1, min_weight=0.5, alpha=0.02, epsilon=1, delta=1e-6, rho=0.5)
    >>> [f"{rows['structure', m].lower.value:.1f}" for m in ("none", "approximate", "zcdp", "pure")]
    ['3.9', '3.9', '10.0', '64.1']
    """
    budgets = {
        "none": None,
        "approximate": _Budget(epsilon, delta),
        "zcdp": _Budget(rho=rho),
        "pure": _Budget(epsilon),
    }
    table: dict[tuple[str, str], Option] = {}
    for measure, budget in budgets.items():
        for option in plan(p, width=width, min_weight=min_weight, alpha=alpha, budget=budget):
            table.setdefault((option.goal, measure), option)
    return table


def table_1() -> dict[tuple[str, str], str]:
    """Table 1 of Zhang et al. (2020): the order in p of learning an Ising model, for each goal and kind of guarantee.

    Up to logarithmic factors where it is polynomial, and regenerated from the bounds: Theta where the best learner's
    order is that of the lower bound.

    Returns
    -------
    dict of (goal, measure) to str

    Examples
    --------
    >>> for (goal, measure), order in sorted(table_1().items()):
    ...     print(f"{goal:10} {measure:11} {order}")
    parameters approximate Theta(sqrt(p))
    parameters none        Theta(log p)
    parameters pure        Omega(p)
    parameters zcdp        Theta(sqrt(p))
    structure  approximate Theta(log p)
    structure  none        Theta(log p)
    structure  pure        Omega(p)
    structure  zcdp        Theta(sqrt(p))
    """
    # The orders in p are the same at all numbers.
    numbers = table_1_options(100, width=1, min_weight=1, alpha=0.02, epsilon=1, delta=1e-6, rho=1)
    return {cell: option.growth for cell, option in numbers.items()}


@dataclass(frozen=True)
class _Budget:
    epsilon: float | None = None
    delta: float = 0.0
    rho: float | None = None
