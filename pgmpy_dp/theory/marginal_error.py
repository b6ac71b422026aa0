"""The error of noisy marginals: Proposition 4 of Bernstein et al. (2017), exactly.

References
----------
.. [1] Bernstein, G., McKenna, R., Sun, T., Sheldon, D., Hay, M. and Miklau, G. (2017). Differentially private learning
   of undirected graphical models using collective graphical models. ICML.
"""

from __future__ import annotations

import math

from pgmpy_dp.checks import checked_integer, checked_within


def marginal_error(probability: float, n: int, epsilon: float, tables: int, *, noise: str = "laplace") -> float:
    """Proposition 4: mean squared error of one cell of the noisy tables over n, as an estimate of its probability.

    mu (1 - mu)/n + 2 C^2/(n epsilon)^2. No constant is left open.

    Parameters
    ----------
    probability : float
        mu, of the cell in the population.
    n : int
        Records, drawn independently.
    epsilon : float
        Pure guarantee under add_remove, in nats. Under replace_one the noise has twice the scale: pass epsilon/2.
    tables : int
        C, how many are released at once.
    noise : {"laplace", "discrete"}
        The paper's, or the discrete Laplace noise of the package, of variance 2 a/(1 - a)^2 with a = exp(-epsilon/C):
        smaller, by at most 1/6.

    Returns
    -------
    float

    Raises
    ------
    TypeError, ValueError
        For what is not a number, or out of range.

    Notes
    -----
    Proof. The count is binomial, and the noise is independent of it and has mean 0: the estimate is unbiased, and the
    variances add up. What the proposition says beyond this, that maximising theta . y - n A(theta) converges, is not
    so: see the corrections to the papers. It is about n -> infinity, while cells of probability below about C/(n
    epsilon) are noise.

    Examples
    --------
    >>> marginal_error(0.5, 1000, epsilon=1.0, tables=10)
    0.00045
    """
    mu = checked_within("probability", probability, above=-1.0, most=1.0)
    if mu < 0:
        raise ValueError(f"probability={probability!r} is negative; pass one from 0 to 1")
    n, tables = checked_integer("n", n, least=1), checked_integer("tables", tables, least=1)
    scale = tables / checked_within("epsilon", epsilon)
    if noise not in ("laplace", "discrete"):
        raise ValueError(f'noise={noise!r} must be "laplace" or "discrete"')
    variance = 2.0 * scale**2 if noise == "laplace" else 0.5 / math.sinh(min(0.5 / scale, 350.0)) ** 2
    return mu * (1.0 - mu) / n + variance / n**2
