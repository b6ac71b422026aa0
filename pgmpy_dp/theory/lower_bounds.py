"""Lower bounds on the number of records that every learner needs, one function per theorem.

Every function returns an :class:`~pgmpy_dp.theory.Order`: the expression inside the Omega(.), **with constant 1**. A
smaller n is not proved too small by it, since the constant is unknown; a smaller *order* is.

References
----------
.. [1] Zhang, H., Kamath, G., Kulkarni, J. and Wu, Z. S. (2020). Privately learning Markov random fields. ICML.
.. [2] Santhanam, N. P. and Wainwright, M. J. (2012). Information-theoretic limits of selecting binary graphical models
   in high dimensions. IEEE Transactions on Information Theory.
.. [3] Chen, H., Cohen-Addad, V., d'Orsi, T., Epasto, A., Imola, J., Steurer, D. and Tiegel, S. (2023). Private
   estimation algorithms for stochastic block models and mixture models. NeurIPS.
.. [4] Bun, M. and Steinke, T. (2016). Concentrated differential privacy: simplifications, extensions, and lower
   bounds. TCC.
"""

from __future__ import annotations

import math

from scipy.optimize import brentq

from pgmpy_dp.checks import checked_integer, checked_within
from pgmpy_dp.theory.order import Order, exp

MAX_ALPHA = 1 / 50
"""Theorem 5.1 is about errors of at most this."""


def not_private(p: int) -> Order:
    """log p: what structure, hence parameters, need without privacy (Santhanam and Wainwright 2012).

    With constant 1. Only the dependence on p, as in Table 1 of Zhang et al. (2020).

    Parameters
    ----------
    p : int
        Variables, 2 or more.

    Returns
    -------
    Order
    """
    value = math.log(checked_integer("p", p, least=2))
    return Order(value, "log(p)", "Santhanam and Wainwright 2012", "lower", "log p")


def ising_parameters(p: int, alpha: float, epsilon: float | None = None, rho: float | None = None) -> Order:
    """Theorem 5.1 (Theorem 1.6): all weights of an Ising model to within alpha in expectation.

    sqrt(p)/(alpha epsilon), with constant 1, under (epsilon, delta)-DP with delta at most 3/(64 n), the delta of the
    proof's Lemma 5.2; so under pure epsilon-DP too. A rho-zCDP learner is (epsilon, delta)-DP for epsilon = rho + 2
    sqrt(rho log(1/delta)) [4]_; the value is the n at which the bound with this epsilon and delta = 3/(64 n) meets n.

    Parameters
    ----------
    p : int
        Variables, 2 or more.
    alpha : float
        Largest error, at most 1/50.
    epsilon, rho : float
        One of them.

    Returns
    -------
    Order

    Raises
    ------
    TypeError, ValueError
        For what is not a number, or out of range; here and in every function below.

    Examples
    --------
    >>> print(ising_parameters(100, alpha=0.01, epsilon=0.5))
    n = Omega(sqrt(p)/(alpha epsilon)): 2000 with constant 1 (Zhang et al. 2020, Theorems 5.1 and 1.6)
    """
    p, alpha = checked_integer("p", p, least=2), checked_within("alpha", alpha, most=MAX_ALPHA)
    theorem = "Zhang et al. 2020, Theorems 5.1 and 1.6"
    formula = "sqrt(p)/(alpha epsilon)"
    if _is_pure(epsilon, rho):
        return Order(math.sqrt(p) / (alpha * checked_within("epsilon", epsilon)), formula, theorem, "lower", "sqrt(p)")
    rho = checked_within("rho", rho)

    def excess(log_n: float) -> float:  # increasing: a larger n has a smaller delta, hence a larger epsilon
        return log_n + math.log(alpha * (rho + 2 * math.sqrt(rho * max(log_n + math.log(64 / 3), 0)))) - math.log(p) / 2

    value = exp(brentq(excess, -1500.0, 1500.0))
    formula += ", epsilon = rho + 2 sqrt(rho log(64 n/3))"
    return Order(value, formula, theorem, "lower", "sqrt(p)")


def ising_structure(
    p: int, min_weight: float | None = None, epsilon: float | None = None, rho: float | None = None
) -> Order:
    """Theorem 7.1 (Theorem 1.7): the graph of an Ising model with smallest edge weight eta.

    With constant 1: sqrt(p)/(eta epsilon) + p/epsilon under pure epsilon-DP; sqrt(p/rho) under rho-zCDP. Holds for
    binary t-wise fields as well, of which Ising models are a special case.

    Parameters
    ----------
    p : int
        Variables, 2 or more.
    min_weight : float
        eta; not needed with `rho`.
    epsilon, rho : float
        One of them.

    Returns
    -------
    Order

    Examples
    --------
    >>> ising_structure(100, min_weight=0.5, epsilon=1.0).value, ising_structure(100, rho=0.25).value
    (120.0, 20.0)
    """
    return _structure(p, 1, min_weight, epsilon, rho, "Zhang et al. 2020, Theorems 7.1 and 1.7")


def pairwise_structure(
    p: int, k: int, min_weight: float | None = None, epsilon: float | None = None, rho: float | None = None
) -> Order:
    """Theorem 7.4 (Theorem 1.7): a pairwise model over k states with smallest edge weight eta.

    With constant 1: sqrt(p)/(eta epsilon) + k^2 p/epsilon under pure epsilon-DP; sqrt(k^2 p/rho) under rho-zCDP.

    Parameters
    ----------
    p, k : int
        Variables and states, 2 or more.
    min_weight : float
        eta; not needed with `rho`.
    epsilon, rho : float
        One of them.

    Returns
    -------
    Order

    Notes
    -----
    The theorem speaks of the structure, but the factor k^2 comes from models that share their graph: the proof counts
    2^(k(k+1)/2) tables for each pair of a matching, and all of them but the constant ones put an edge there. What the
    proof shows is the bound for learning the tables to within eta/2; for graphs alone it shows `ising_structure`'s.
    """
    k = checked_integer("k", k, least=2)
    return _structure(p, k, min_weight, epsilon, rho, "Zhang et al. 2020, Theorems 7.4 and 1.7")


def block_model_recovery(n: int, degree: float, gamma: float, error: float, failure: float) -> Order:
    """Theorem 5.22 of Chen et al. (2023): communities of a block model under pure epsilon-DP for edges.

    e^(2 epsilon) - 1 = Omega(log(1/zeta)/(gamma d) + log(1/beta)/(zeta n gamma d)), with constant 1, for a learner
    that errs on at most a share zeta of the vertices with probability 1 - beta, in two balanced communities x in
    {-1, 1}^n with an edge between i and j with probability (1 + gamma x_i x_j) d/n. A bound on epsilon, not on n: at
    constant 1 epsilon is ``log1p(value)/2``. The expression was derived again from the paper's packing argument, whose
    display was not legible in the copy at hand; compare it with the paper before you cite it.

    Parameters
    ----------
    n : int
        Vertices.
    degree : float
        d, the mean degree.
    gamma : float
        Bias, at most 1.
    error : float
        zeta, from 1/n, which is exact recovery, to 0.04.
    failure : float
        beta (the paper's eta), below 1.

    Returns
    -------
    Order

    Examples
    --------
    >>> print(block_model_recovery(1000, degree=20, gamma=0.5, error=1 / 1000, failure=1 / 1000))
    exp(2 epsilon) - 1 = Omega(log(1/zeta)/(gamma d) + log(1/beta)/(zeta n gamma d)): 1.382 with constant 1 (Chen et al.
    2023, Theorem 5.22)
    """
    n, d = checked_integer("n", n, least=25), checked_within("degree", degree)
    gamma, zeta = checked_within("gamma", gamma, most=1), checked_within("error", error, most=0.04)
    beta = checked_within("failure", failure, most=1)
    if zeta * n < 1 - 1e-9:
        raise ValueError(f"error={error!r} is below 1/n={1 / n:g}, which is exact recovery; pass 1/n or more")
    value = math.log(1 / zeta) / (gamma * d) + math.log(1 / beta) / (zeta * n * gamma * d)
    return Order(
        value,
        "log(1/zeta)/(gamma d) + log(1/beta)/(zeta n gamma d)",
        "Chen et al. 2023, Theorem 5.22",
        "lower",
        "log n" if zeta * n < 2 else "1",
        quantity="exp(2 epsilon) - 1",
    )


def _structure(
    p: int, k: int, min_weight: float | None, epsilon: float | None, rho: float | None, theorem: str
) -> Order:
    p, cells = checked_integer("p", p, least=2), "" if k == 1 else "k^2 "
    if _is_pure(epsilon, rho):
        if min_weight is None:
            raise ValueError("min_weight=None: the bound for pure DP depends on the smallest edge weight; pass it")
        eta, epsilon = checked_within("min_weight", min_weight), checked_within("epsilon", epsilon)
        value = math.sqrt(p) / (eta * epsilon) + k**2 * p / epsilon
        return Order(value, f"sqrt(p)/(eta epsilon) + {cells}p/epsilon", theorem, "lower", "p")
    value = math.sqrt(k**2 * p / checked_within("rho", rho))
    return Order(value, f"sqrt({cells}p/rho)", theorem, "lower", "sqrt(p)")


def _is_pure(epsilon: float | None, rho: float | None) -> bool:
    if (epsilon is None) == (rho is None):
        raise ValueError(f"epsilon={epsilon!r}, rho={rho!r}: pass one of them")
    return rho is None
