"""Upper bounds on the number of records that the learners of Zhang et al. (2020) need, one function per theorem.

Every function returns an :class:`~pgmpy_dp.theory.Order`: the expression inside the O(.), **with constant 1**. Where
the paper has O(.) in an exponent too, such as e^O(lambda), the argument `exponent` stands in its place; its default
of 1 says nothing about the true one. lambda is the width of the model, eta its smallest edge weight, alpha the
largest error of a parameter; each holds with probability 2/3.

References
----------
.. [1] Zhang, H., Kamath, G., Kulkarni, J. and Wu, Z. S. (2020). Privately learning Markov random fields. ICML.
.. [2] Wu, S., Sanghavi, S. and Dimakis, A. G. (2019). Sparse logistic regression learns all discrete pairwise
   graphical models. NeurIPS.
.. [3] Klivans, A. and Meka, R. (2017). Learning graphical models using multiplicative weights. FOCS.
"""

from __future__ import annotations

import math

from pgmpy_dp.checks import checked_integer, checked_within
from pgmpy_dp.theory.order import Order, checked_weight, exp


def sparse_logistic_regression(n: int, p: int, radius: float, rho: float, beta: float = 1 / 3) -> Order:
    """Theorem 1.3 (Corollary 3.4): excess empirical risk of private Frank-Wolfe, not a number of records.

    lambda^(4/3) log(n p/beta) / (n sqrt(rho))^(2/3), with constant 1, for weights of l1 norm at most lambda and
    features of at most 1, with probability 1 - beta.

    Parameters
    ----------
    n, p : int
        Records and features.
    radius : float
        lambda of the theorem: of the l1 ball. In the learners twice the model's width.
    rho : float
        Of zCDP.
    beta : float
        Probability of failure, below 1.

    Returns
    -------
    Order

    Examples
    --------
    >>> round(sparse_logistic_regression(10**6, 20, radius=2.0, rho=1.0).value, 4)
    0.0045
    """
    n, p = checked_integer("n", n, least=1), checked_integer("p", p, least=1)
    lam, rho, beta = checked_within("radius", radius), checked_within("rho", rho), checked_within("beta", beta, most=1)
    value = lam ** (4 / 3) * math.log(n * p / beta) / (n * math.sqrt(rho)) ** (2 / 3)
    formula = "lambda^(4/3) log(n p/beta)/(n sqrt(rho))^(2/3)"
    return Order(value, formula, "Zhang et al. 2020, Theorem 1.3", "upper", "log p", quantity="excess risk")


def ising_parameters(p: int, width: float, alpha: float, rho: float) -> Order:
    """Theorem 3.8: all weights of an Ising model to within alpha, under rho-zCDP.

    lambda^2 log(p) e^(12 lambda)/alpha^4 + sqrt(p) lambda^2 log^2(p) e^(9 lambda)/(sqrt(rho) alpha^3), with constant 1.

    Parameters
    ----------
    p : int
        Variables, 2 or more.
    width, alpha : float
        lambda, and the largest error.
    rho : float
        inf: not private, and the second term is 0.

    Returns
    -------
    Order

    Raises
    ------
    TypeError, ValueError
        For what is not a number, or out of range; here and in every function below.

    Examples
    --------
    >>> print(ising_parameters(100, width=1.0, alpha=0.1, rho=1.0))
    n = O(lambda^2 log(p) e^(12 lambda)/alpha^4 + sqrt(p) lambda^2 log^2(p) e^(9 lambda)/(sqrt(rho) alpha^3)): 9.214e+09
    with constant 1 (Zhang et al. 2020, Theorem 3.8)
    """
    p, (lam, alpha, rho) = checked_integer("p", p, least=2), _accuracy(width, alpha, rho)
    value = exp([2 * math.log(lam), math.log(math.log(p)), 12 * lam, -4 * math.log(alpha)])
    value += exp(
        [0.5 * math.log(p / rho), 2 * math.log(lam), 2 * math.log(math.log(p)), 9 * lam, -3 * math.log(alpha)]
        if math.isfinite(rho)
        else -math.inf
    )
    formula = "lambda^2 log(p) e^(12 lambda)/alpha^4 + sqrt(p) lambda^2 log^2(p) e^(9 lambda)/(sqrt(rho) alpha^3)"
    return Order(value, formula, "Zhang et al. 2020, Theorem 3.8", "upper", _growth(rho))


def pairwise_parameters(p: int, k: int, width: float, alpha: float, rho: float, *, exponent: float = 1.0) -> Order:
    """Theorem 3.11 (Theorem 1.2): all tables of a pairwise model over k states to within alpha, under rho-zCDP.

    lambda^2 k^5 log(pk) e^(c lambda)/alpha^4 + sqrt(p) lambda^2 k^5.5 log^2(pk) e^(c lambda)/(sqrt(rho) alpha^3), with
    constant 1, and c for the O(.) in e^O(lambda).

    Parameters
    ----------
    p, k : int
        Variables and states, 2 or more.
    width, alpha, rho : float
        As in `ising_parameters`.
    exponent : float
        c. At k = 2, Theorem 3.8 has 12 and 9.

    Returns
    -------
    Order
    """
    p, k = checked_integer("p", p, least=2), checked_integer("k", k, least=2)
    (lam, alpha, rho), c = _accuracy(width, alpha, rho), checked_within("exponent", exponent)
    logs = math.log(math.log(p * k))
    value = exp([2 * math.log(lam), 5 * math.log(k), logs, c * lam, -4 * math.log(alpha)])
    value += exp(
        [0.5 * math.log(p / rho), 2 * math.log(lam), 5.5 * math.log(k), 2 * logs, c * lam, -3 * math.log(alpha)]
        if math.isfinite(rho)
        else -math.inf
    )
    formula = (
        f"lambda^2 k^5 log(pk) e^({c:g} lambda)/alpha^4"
        f" + sqrt(p) lambda^2 k^5.5 log^2(pk) e^({c:g} lambda)/(sqrt(rho) alpha^3)"
    )
    return Order(value, formula, "Zhang et al. 2020, Theorems 3.11 and 1.2", "upper", _growth(rho))


def binary_polynomial(p: int, t: int, width: float, alpha: float, rho: float, *, exponent: float = 1.0) -> Order:
    """Theorem 4.2: the polynomial of a binary t-wise field to within alpha in l1 norm, under rho-zCDP.

    (2t)^(c t) e^(c lambda t) (p^(4t) log(p)/alpha^4 + p^(3t + 1/2) log^2(p)/(sqrt(rho) alpha^3)), with constant 1, and
    c for both O(.) in exponents.

    Parameters
    ----------
    p, t : int
        Variables, and the largest order of an interaction; 2 or more.
    width, alpha : float
        lambda, and the error sum_I |h(I) - u(I)|.
    rho : float
        inf: not private.
    exponent : float
        c.

    Returns
    -------
    Order
    """
    p, t = checked_integer("p", p, least=2), checked_integer("t", t, least=2)
    (lam, alpha, rho), c = _accuracy(width, alpha, rho), checked_within("exponent", exponent)
    common = c * t * math.log(2 * t) + c * lam * t
    value = exp([common, 4 * t * math.log(p), math.log(math.log(p)), -4 * math.log(alpha)])
    value += exp(
        [common, (3 * t + 0.5) * math.log(p), 2 * math.log(math.log(p)), -0.5 * math.log(rho), -3 * math.log(alpha)]
        if math.isfinite(rho)
        else -math.inf
    )
    formula = f"(2t)^({c:g} t) e^({c:g} lambda t) (p^(4t) log(p)/alpha^4 + p^(3t + 1/2) log^2(p)/(sqrt(rho) alpha^3))"
    return Order(value, formula, "Zhang et al. 2020, Theorem 4.2", "upper", f"p^{4 * t}")


def binary_parameters(p: int, t: int, width: float, alpha: float, rho: float, *, release: str = "pmw") -> Order:
    """Theorem 4.7 (Theorem 1.4): each maximal monomial of a binary t-wise field to within alpha, under rho-zCDP.

    e^(5 lambda t) sqrt(p) log^2(p)/(sqrt(rho) alpha^(9/2)) + t lambda^2 sqrt(p) log(p)/(sqrt(rho) alpha^2)
    + e^(6 lambda t) log(p)/alpha^6, with constant 1.

    Parameters
    ----------
    p, t : int
        Variables, and the largest order of an interaction; 2 or more.
    width, alpha, rho : float
        As in `ising_parameters`.
    release : {"pmw", "sepfem"}
        How the parities are released. "sepfem": p^(5/4) in place of sqrt(p) in the middle term, which the paper states
        up to logarithmic factors; polynomial time given an optimisation oracle.

    Returns
    -------
    Order
    """
    p, t = checked_integer("p", p, least=2), checked_integer("t", t, least=2)
    lam, alpha, rho = _accuracy(width, alpha, rho)
    if release not in ("pmw", "sepfem"):
        raise ValueError(f'release={release!r} must be "pmw" or "sepfem"')
    power, text = (0.5, "sqrt(p)") if release == "pmw" else (1.25, "p^(5/4)")
    logs = math.log(math.log(p))
    value = exp([6 * lam * t, logs, -6 * math.log(alpha)])
    if math.isfinite(rho):
        value += exp([5 * lam * t, 0.5 * math.log(p / rho), 2 * logs, -4.5 * math.log(alpha)])
        value += exp([math.log(t * lam**2), power * math.log(p), logs, -0.5 * math.log(rho), -2 * math.log(alpha)])
    formula = (
        "e^(5 lambda t) sqrt(p) log^2(p)/(sqrt(rho) alpha^(9/2))"
        f" + t lambda^2 {text} log(p)/(sqrt(rho) alpha^2) + e^(6 lambda t) log(p)/alpha^6"
    )
    return Order(value, formula, "Zhang et al. 2020, Theorems 4.7 and 1.4", "upper", _growth(rho, text))


def pairwise_structure(
    p: int, k: int, width: float, min_weight: float, epsilon: float | None = None, delta: float | None = None
) -> Order:
    """Corollary 6.3 (Theorem 1.5): the graph of a pairwise model over k states, under (epsilon, delta)-DP.

    lambda^2 k^4 e^(14 lambda) log(pk) log(1/delta)/(epsilon eta^4), with constant 1.

    Parameters
    ----------
    p, k : int
        Variables and states, 2 or more; an Ising model has k = 2.
    width, min_weight : float
        lambda and eta.
    epsilon, delta : float, optional
        Neither: not private, Theorem 6.2 (Wu et al. 2019), without the factor log(1/delta)/epsilon.

    Returns
    -------
    Order

    Examples
    --------
    >>> pairwise_structure(100, 2, width=1.0, min_weight=0.5, epsilon=1.0, delta=1e-6).growth
    'log p'
    """
    p, k = checked_integer("p", p, least=2), checked_integer("k", k, least=2)
    eta, lam = checked_weight(min_weight, width)
    factor, text = _stability(epsilon, delta)
    logs = [2 * math.log(lam), 4 * math.log(k), 14 * lam, math.log(math.log(p * k)), -4 * math.log(eta)]
    formula = f"lambda^2 k^4 e^(14 lambda) log(pk){text}/{'(epsilon eta^4)' if text else 'eta^4'}"
    theorem = "Corollary 6.3 and Theorem 1.5" if text else "Theorem 6.2"
    return Order(exp(logs) * factor, formula, f"Zhang et al. 2020, {theorem}", "upper", "log p")


def binary_structure(
    p: int,
    t: int,
    width: float,
    min_weight: float,
    epsilon: float | None = None,
    delta: float | None = None,
    *,
    exponent: float = 1.0,
) -> Order:
    """Corollary 6.5: the graph of a binary t-wise field, under (epsilon, delta)-DP.

    e^(c lambda t) log(p/eta) log(1/delta)/(epsilon eta^4), with constant 1, and c for the O(.) in the exponent.

    Parameters
    ----------
    p, t : int
        Variables, and the largest order of an interaction; 2 or more.
    width, min_weight : float
        lambda and eta.
    epsilon, delta : float, optional
        Neither: not private, Theorem 6.4 (Klivans and Meka 2017).
    exponent : float
        c.

    Returns
    -------
    Order
    """
    p, t = checked_integer("p", p, least=2), checked_integer("t", t, least=2)
    (eta, lam), c = checked_weight(min_weight, width), checked_within("exponent", exponent)
    if eta >= p:
        raise ValueError(f"min_weight={min_weight!r} must be below p={p}: the theorem's log(p/eta) is not positive")
    factor, text = _stability(epsilon, delta)
    logs = [c * lam * t, math.log(math.log(p / eta)), -4 * math.log(eta)]
    formula = f"e^({c:g} lambda t) log(p/eta){text}/{'(epsilon eta^4)' if text else 'eta^4'}"
    theorem = "Corollary 6.5" if text else "Theorem 6.4"
    return Order(exp(logs) * factor, formula, f"Zhang et al. 2020, {theorem}", "upper", "log p")


def _accuracy(width: float, alpha: float, rho: float) -> tuple[float, float, float]:
    return checked_within("width", width), checked_within("alpha", alpha), checked_within("rho", rho, finite=False)


def _growth(rho: float, private: str = "sqrt(p)") -> str:
    return private if math.isfinite(rho) else "log p"


def _stability(epsilon: float | None, delta: float | None) -> tuple[float, str]:
    """log(1/delta)/epsilon of Lemma 6.1, and how it reads in the numerator; 1 where there is no privacy."""
    if epsilon is None and delta is None:
        return 1.0, ""
    if epsilon is None or delta is None:
        raise ValueError(f"epsilon={epsilon!r}, delta={delta!r}: pass both (approximate DP) or neither (not private)")
    epsilon, delta = checked_within("epsilon", epsilon), checked_within("delta", delta, most=1)
    return math.log(1 / delta) / epsilon, " log(1/delta)"
