"""Errors of private sparse precision matrices: the bounds of Wang, Huai and Xu (2018), with their constants.

Rows have norm at most 1, S = X'X/n, and Theta minimises -log det Theta + <S, Theta> + penalty(Theta). "Covariance
perturbation" solves the same with S + N in place of S. All their bounds follow from one inequality between the two
solutions (`solution_error`) and the size of the noise (`noise_norm`), both without an unknown constant.

References
----------
.. [1] Wang, D., Huai, M. and Xu, J. (2018). Differentially private sparse inverse covariance estimation. GlobalSIP;
   the slides.
"""

from __future__ import annotations

import math

from pgmpy_dp.checks import checked_integer, checked_within
from pgmpy_dp.theory.order import Order

_MECHANISMS = ("laplace", "wishart", "wishart-approximate", "gaussian")
_FORMULAS = {
    "laplace": "d^2/(n epsilon)",
    "wishart": "log(d/beta) d^(3/2)/(n epsilon)",
    "wishart-approximate": "log(1/delta) log(1/beta) d^(3/2)/(n epsilon^2)",
    "gaussian": "d sqrt(log(1/delta))/(n epsilon)",
}


def solution_error(noise: float, largest_eigenvalue: float) -> float:
    """Frobenius distance that the two solutions can have: M^2 norm(N), exact and for every dataset.

    Parameters
    ----------
    noise : float
        Frobenius norm of N.
    largest_eigenvalue : float
        M: at least that of both solutions.

    Returns
    -------
    float

    Raises
    ------
    TypeError, ValueError
        For what is not a number, or out of range; here and in every function below.

    Notes
    -----
    Proof, in Frobenius norm and for any convex penalty, whose subgradients are G and G'. The optima satisfy S + G =
    Theta^-1 and S + N + G' = Theta'^-1. With D = Theta' - Theta, monotony of subgradients gives <G' - G, D> >= 0, so
    <Theta^-1 - Theta'^-1, D> <= -<N, D> <= norm(N) norm(D). The left side is the integral, over the segment between the
    solutions, of tr(A D A D) with A the inverse of its points, so at least norm(D)^2/M^2. A solution with noise exists
    only where S + N plus the penalty is positive enough; noise can break this, and the bound says nothing then.

    Examples
    --------
    >>> solution_error(0.01, 3.0)
    0.09
    """
    return checked_within("largest_eigenvalue", largest_eigenvalue) ** 2 * checked_within("noise", noise)


def noise_norm(mechanism: str, d: int, n: int, epsilon: float, delta: float | None = None) -> float:
    """Root mean square of the Frobenius norm of the published noise, exact.

    With probability 1 - beta the norm is below this/sqrt(beta).

    Parameters
    ----------
    mechanism : {"laplace", "wishart", "wishart-approximate", "gaussian"}
        "laplace": symmetric entries of scale 2 d/(n epsilon). "wishart": W(d + 1, 3/(2 n epsilon) I), which is *not*
        private. "wishart-approximate": W(d + k, I/n), k = 14 log(4/delta)/epsilon^2. "gaussian": symmetric entries of
        deviation sqrt(2 log(1.25/delta))/(n epsilon), private for epsilon up to 1. See the corrections to the papers.
    d, n : int
        Columns and records.
    epsilon, delta : float
        As published; delta for the last two.

    Returns
    -------
    float
        In units of S, whose trace is at most 1.

    Notes
    -----
    Proof. A symmetric matrix with independent entries of variance v on and above the diagonal has E norm(N)^2 = d^2 v.
    For W ~ W(m, c I), E tr W^2 = c^2 m d (m + d + 1).

    Examples
    --------
    >>> [round(noise_norm(kind, 20, 10_000, 1.0, 1e-6), 4) for kind in ("laplace", "wishart", "gaussian")]
    [0.1131, 0.0199, 0.0106]
    """
    d, n, epsilon = (
        checked_integer("d", d, least=1),
        checked_integer("n", n, least=1),
        checked_within("epsilon", epsilon),
    )
    if mechanism not in _MECHANISMS:
        raise ValueError(f"mechanism={mechanism!r} is not supported; use one of {_MECHANISMS}")
    if mechanism == "laplace":
        return d * math.sqrt(2.0) * 2.0 * d / (n * epsilon)
    if mechanism == "wishart":
        return 1.5 / (n * epsilon) * math.sqrt(d * (d + 1.0) * (2.0 * d + 2.0))
    delta = _delta(delta)
    if mechanism == "gaussian":
        return d * math.sqrt(2.0 * math.log(1.25 / delta)) / (n * epsilon)
    m = d + 14.0 * math.log(4.0 / delta) / epsilon**2
    return math.sqrt(m * d * (m + d + 1.0)) / n


def covariance_perturbation(
    mechanism: str, d: int, n: int, epsilon: float, delta: float | None = None, beta: float = 0.5
) -> Order:
    """The published bounds on norm(Theta' - Theta)/M^2, M as in `solution_error`, as orders with constant 1.

    Parameters
    ----------
    mechanism, d, n, epsilon, delta
        As in `noise_norm`.
    beta : float
        Probability that it fails.

    Returns
    -------
    Order

    Notes
    -----
    They follow from `solution_error` and `noise_norm`: for "laplace" and "gaussian" without beta at constant 2 sqrt(2)
    and sqrt(2), on root mean square; for "wishart" the logarithm is not needed. The bound of "wishart-approximate" is
    false for epsilon far above 1: its noise has the mean m I/n, m >= d, whatever epsilon, while the bound falls like
    1/epsilon^2. It is returned as stated for epsilon up to sqrt(log(1/delta)), where it follows, and refused above.

    Examples
    --------
    >>> print(covariance_perturbation("gaussian", 20, 10_000, 1.0, 1e-6))
    relative error = O(d sqrt(log(1/delta))/(n epsilon)): 0.007434 with constant 1 (Wang, Huai and Xu 2018, Algorithm 2)
    """
    noise_norm(mechanism, d, n, epsilon, delta)  # checks the arguments
    beta = checked_within("beta", beta, most=1.0)
    if mechanism == "laplace":
        value = d**2 / (n * epsilon)
    elif mechanism == "wishart":
        value = math.log(d / beta) * d**1.5 / (n * epsilon)
    else:
        logarithm = math.log(1.0 / _delta(delta))
        if mechanism == "gaussian":
            value = d * math.sqrt(logarithm) / (n * epsilon)
        elif epsilon**2 > logarithm:
            raise ValueError(
                f"epsilon={epsilon!r} is above sqrt(log(1/delta))={math.sqrt(logarithm):.3g}, where the published "
                "bound is false; noise_norm has the size of this noise"
            )
        else:
            value = logarithm * math.log(1.0 / beta) * d**1.5 / (n * epsilon**2)
    source = "Wang, Huai and Xu 2018, Algorithm 2"
    return Order(value, _FORMULAS[mechanism], source, "upper", "", quantity="relative error")


def output_perturbation(d: int, n: int, epsilon: float, penalty: float) -> float:
    """Root mean square of norm(Theta' - Theta) of Algorithm 1: W(d + 1, d^(5/2)/(n epsilon penalty^2) I) is added.

    sqrt(2) d^3 (d + 1)/(n epsilon penalty^2): exact, of the published order d^4 log(d/beta)/(n epsilon penalty^2). That
    noise is *not* private.

    Parameters
    ----------
    d, n, epsilon
        As in `noise_norm`.
    penalty : float
        lambda of the program; the paper's rho.

    Returns
    -------
    float

    Examples
    --------
    >>> round(output_perturbation(5, 1000, 1.0, 0.1), 1)
    106.1
    """
    d, n, epsilon = (
        checked_integer("d", d, least=1),
        checked_integer("n", n, least=1),
        checked_within("epsilon", epsilon),
    )
    return math.sqrt(2.0) * d**3 * (d + 1.0) / (n * epsilon * checked_within("penalty", penalty) ** 2)


def _delta(delta: float | None) -> float:
    if delta is None:
        raise ValueError("delta=None: this mechanism is for (epsilon, delta); pass delta")
    delta = checked_within("delta", delta)
    if delta >= 1.0:
        raise ValueError(f"delta={delta!r} must be below 1")
    return delta
