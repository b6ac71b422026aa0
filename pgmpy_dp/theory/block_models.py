"""Communities with private edges: rates and thresholds of Chen et al. (2023), derived again.

The model: n vertices, two communities of equal size, labels x in {-1, 1}^n, an edge between i and j with probability (1
+ gamma x_i x_j) d/n. d is the degree, gamma the bias; epsilon and delta protect an edge. The copy of the paper at hand
has lost its formulas, so each function has a proof, or its sketch, and says which theorem it is of. Three kinds:

* *bounds*, true at every n, with their constants: `projection_distance`, `exponential_error`, `vote_failure`;
* *limits* of large n, which say where a method begins to see anything: `response_accuracy`, `projection_accuracy`, and
  the thresholds without privacy;
* *orders*, with constant 1: `weak_recovery`, `exact_recovery`.

References
----------
.. [1] Chen, H., Cohen-Addad, V., d'Orsi, T., Epasto, A., Imola, J., Steurer, D. and Tiegel, S. (2023). Private
   estimation algorithms for stochastic block models and mixture models. NeurIPS.
.. [2] Guédon, O. and Vershynin, R. (2016). Community detection in sparse networks via Grothendieck's inequality.
   Probability Theory and Related Fields.
.. [3] Mossel, E., Neeman, J. and Sly, A. (2018). A proof of the block model threshold conjecture. Combinatorica.
.. [4] Abbe, E., Bandeira, A. S. and Hall, G. (2016). Exact recovery in the stochastic block model. IEEE Transactions on
   Information Theory.
.. [5] Benaych-Georges, F. and Nadakuditi, R. R. (2011). The eigenvalues and eigenvectors of finite, low rank
   perturbations of large random matrices. Advances in Mathematics.
"""

from __future__ import annotations

import math

from scipy.optimize import minimize_scalar
from scipy.stats import norm

from pgmpy_dp.checks import checked_integer, checked_within
from pgmpy_dp.private.accounting import gaussian_multiplier
from pgmpy_dp.theory.order import Order

_GROTHENDIECK = math.pi / (2.0 * math.log(1.0 + math.sqrt(2.0)))  # Krivine's bound on the constant, 1.782


def weak_recovery_degree(gamma: float) -> float:
    """1/gamma^2: the degree above which labels better than chance can be had without privacy (Mossel et al. 2018).

    Parameters
    ----------
    gamma : float
        Bias, at most 1.

    Returns
    -------
    float

    Raises
    ------
    TypeError, ValueError
        For what is not a number, or out of range; here and in every function below.

    Examples
    --------
    >>> weak_recovery_degree(0.5)
    4.0
    """
    return 1.0 / checked_within("gamma", gamma, most=1.0) ** 2


def exact_recovery_degree(n: int, gamma: float) -> float:
    """The degree above which all labels can be had without privacy: log(n)/(1 - sqrt(1 - gamma^2)).

    (Abbe, Bandeira and Hall 2016: (sqrt(a) - sqrt(b))^2 > 2 with probabilities a log(n)/n and b log(n)/n.)

    Parameters
    ----------
    n : int
        Vertices.
    gamma : float
        Bias, at most 1.

    Returns
    -------
    float

    Examples
    --------
    >>> round(exact_recovery_degree(1000, 0.8), 1)
    17.3
    """
    n, gamma = checked_integer("n", n, least=2), checked_within("gamma", gamma, most=1.0)
    return math.log(n) / (1.0 - math.sqrt(1.0 - gamma**2))


def cut_deviation(n: int, degree: float, failure: float) -> float:
    """Bound on max over signs s, t of s'(A - EA)t, A the adjacency matrix: Fact D.2, with its constants.

    Parameters
    ----------
    n : int
        Vertices.
    degree : float
        d.
    failure : float
        Probability that it fails.

    Returns
    -------
    float
        2 L/3 + sqrt((2 L/3)^2 + 4 d n L), where L = n log 4 + log(1/failure).

    Notes
    -----
    Proof. For fixed signs the sum over i < j has terms of at most 2 and of variance at most 4 p_ij, and the p_ij sum to
    at most d n/2 for communities of equal size. Bernstein's inequality at t has the exponent t^2/(4 d n + 4 t/3), which
    is L at this t; there are 4^n pairs of signs.

    Examples
    --------
    >>> round(cut_deviation(1000, 40.0, 0.01) / 1000, 2)
    15.87
    """
    n, degree, failure = (
        checked_integer("n", n, least=2),
        checked_within("degree", degree),
        _probability("failure", failure),
    )
    exponent = n * math.log(4.0) + math.log(1.0 / failure)
    return 2.0 * exponent / 3.0 + math.sqrt((2.0 * exponent / 3.0) ** 2 + 4.0 * degree * n * exponent)


def projection_distance(n: int, degree: float, gamma: float, failure: float) -> float:
    """Lemma 5.9, derived again: squared Frobenius distance of the projection (Algorithm 5.4, step 1) from x x'/n.

    Parameters
    ----------
    n, degree, gamma
        Of the model.
    failure : float
        Probability that it fails.

    Returns
    -------
    float
        (1 + K) t/(n gamma d), t the `cut_deviation` and K = 1.782: about 6.6/(gamma sqrt(d)), where the paper has 800.
        At most 2 is said by the set alone, so it says something from gamma sqrt(d) of 4 or so on.

    Notes
    -----
    Proof. Let Y = (A - d/n J)/(gamma d), X its projection on {X >= 0, X_ii = 1/n}, X* = x x'/n, W = (A - EA)/(gamma d).
    As X is a projection, norm(X - X*)^2 <= <Y - X*, X - X*>, and Y - X* is W but for a diagonal, on which X and X*
    agree. By Grothendieck's inequality abs <W, X> <= K c/n, and abs <W, X*> <= c/n, where c is the cut of W, at most
    t/(gamma d).

    Examples
    --------
    >>> round(projection_distance(1000, 400.0, 0.8, 0.01), 3)
    0.418
    """
    gamma = checked_within("gamma", gamma, most=1.0)
    return (1.0 + _GROTHENDIECK) * cut_deviation(n, degree, failure) / (n * gamma * degree)


def projection_accuracy(
    degree: float,
    gamma: float,
    epsilon: float,
    delta: float,
    *,
    analysis: str = "published",
    theta: float | None = None,
) -> float:
    """Share of right labels of Algorithm 5.4 if the projection were x x'/n itself, for large n; 1/2: chance.

    What the noise alone allows: the algorithm's threshold. With v = n sigma^2 it is Phi(sqrt(1/v - 1)) for v < 1.

    Parameters
    ----------
    degree, gamma
        Of the model.
    epsilon, delta : float
        Of the release, by the exact Gaussian mechanism.
    analysis : {"published", "tight"}
        Whose sensitivity: sqrt(24 s/n), or sqrt(2 s/n) of the package, s = theta/(gamma d).
    theta : float, optional
        Scale of Y; 1 as published, 1.5 in the package.

    Returns
    -------
    float

    Notes
    -----
    Proof. A symmetric Gaussian matrix of deviation sigma added to a rank one matrix of eigenvalue 1 leaves its leading
    eigenvector an overlap with x/sqrt(n) whose square tends to 1 - v for v < 1, and to 0 else; given it, the rest of
    the vector is uniform (Benaych-Georges and Nadakuditi 2011). The eigenvalue of the projection is at most 1. The
    threshold is gamma d = 24 m^2 as published and 3 m^2 in the package, m the noise multiplier of (epsilon, delta).

    Examples
    --------
    >>> projection_accuracy(40.0, 0.8, 2.0, 1e-6), round(projection_accuracy(40.0, 0.8, 2.0, 1e-6, analysis="tight"), 2)
    (0.5, 0.86)
    """
    degree, gamma = checked_within("degree", degree), checked_within("gamma", gamma, most=1.0)
    if analysis not in ("published", "tight"):
        raise ValueError(f'analysis={analysis!r} must be "published" or "tight"')
    times, scale = (24.0, 1.0) if analysis == "published" else (2.0, 1.5)
    scale = scale if theta is None else checked_within("theta", theta)
    multiplier = gaussian_multiplier(checked_within("epsilon", epsilon), _probability("delta", delta))
    return _share(times * scale / (gamma * degree) * multiplier**2)


def response_accuracy(n: int, degree: float, gamma: float, epsilon: float) -> float:
    """Share of right labels that the leading eigenvector of randomised response has, in the limit; 1/2: chance.

    Phi(sqrt(1/v - 1)), v = n p (1 - p)/((1 - 2 q) gamma d)^2 where each pair is flipped with probability q = 1/(1 +
    e^epsilon) and p = q + (1 - 2 q) d/n is how often it is an edge then. The threshold is v = 1, a degree of the order
    of sqrt(n) e^(-epsilon/2)/gamma for large epsilon; chance below it for the eigenvector, not for every learner.

    Parameters
    ----------
    n, degree, gamma
        Of the model.
    epsilon : float
        Pure, for one edge.

    Returns
    -------
    float

    Notes
    -----
    Proof. As for `projection_accuracy`: the released pairs less their mean are a rank one matrix of eigenvalue (1 - 2
    q) gamma d and independent entries of variance p (1 - p), up to terms of relative size gamma d/(n p).

    Examples
    --------
    >>> round(response_accuracy(500, 200.0, 0.8, 0.25), 3), response_accuracy(4000, 100.0, 0.5, 1.0)
    (0.93, 0.5)
    """
    n, degree, gamma = _model(n, degree, gamma)
    flipped = 1.0 / (1.0 + math.exp(min(checked_within("epsilon", epsilon), 700.0)))
    edge = flipped + (1.0 - 2.0 * flipped) * degree / n
    return _share(n * edge * (1.0 - edge) / ((1.0 - 2.0 * flipped) * gamma * degree) ** 2)


def exponential_error(n: int, degree: float, gamma: float, epsilon: float, failure: float) -> float:
    """Theorem 5.18, second part: share of wrong labels of the exponential mechanism (Algorithm 5.19, step 2).

    (t + (2/epsilon)(n log 2 + log(1/failure)))/(n gamma d), t the `cut_deviation`: of the order 1/(gamma sqrt(d)) +
    1/(epsilon gamma d). It fails with probability at most 2 failure; above 1/2 it says nothing.

    Parameters
    ----------
    n, degree, gamma
        Of the model.
    epsilon : float
        Of the step, pure; weights exp(epsilon/2 sum_{i<j} (A_ij - d/n) x_i x_j).
    failure : float
        See above.

    Returns
    -------
    float

    Notes
    -----
    Proof. Labels that are wrong for a share h <= 1/2 have an expected score lower by 2 gamma d n h (1 - h) >= gamma d n
    h, and the actual difference is at most t away from it, for all labels at once. So labels with h > zeta have at most
    2^n exp(-(epsilon/2)(gamma d n zeta - t)) of the weight of the true ones, which is the failure at this zeta.

    Examples
    --------
    >>> round(exponential_error(1000, 400.0, 0.8, 1.0, 0.01), 3)
    0.155
    """
    n, degree, gamma = _model(n, degree, gamma)
    privacy = (
        2.0
        / checked_within("epsilon", epsilon)
        * (n * math.log(2.0) + math.log(1.0 / _probability("failure", failure)))
    )
    return (cut_deviation(n, degree, failure) + privacy) / (n * gamma * degree)


def vote_failure(n: int, degree: float, gamma: float, epsilon: float, rough_error: float = 0.0) -> float:
    """Lemma 5.16, derived again: expected number of vertices that the private vote (Algorithm 5.13) labels wrong.

    Parameters
    ----------
    n, degree, gamma
        Of the model; of a split, of the half that votes.
    epsilon : float
        Of the vote, pure: Laplace noise of scale 2/epsilon on each vertex's difference.
    rough_error : float
        Share of wrong rough labels, in both communities; these must not depend on the edges that vote.

    Returns
    -------
    float
        A bound; below 1 it bounds the probability that any label is wrong.

    Notes
    -----
    Proof. Of the n/2 vertices on each side a share r is wrong, so a vertex's difference is the sum of n (1 - r)/2 - 1
    indicators (one vertex is itself) of p+ = (1 + gamma) d/n and n r/2 of p- less as many with the roles changed. P(sum
    + Z <= 0) is at most the minimum over l of the product of their moments exp(-l .) and of 1/(1 - 4 l^2/epsilon^2),
    and n of them add up. So the order of the exponent is min(gamma^2 d, epsilon gamma d), and of the degree that log n
    asks for `exact_recovery`.

    Examples
    --------
    >>> vote_failure(1000, 145.0, 0.9, epsilon=1.0) < 1e-9, vote_failure(1000, 40.0, 0.9, epsilon=0.25) > 1
    (True, True)
    """
    n, degree, gamma = _model(n, degree, gamma)
    scale = 2.0 / checked_within("epsilon", epsilon)
    r = checked_within("rough_error", rough_error, above=-1.0, most=0.5)
    if r < 0:
        raise ValueError(f"rough_error={rough_error!r} is negative; pass a share from 0 to 0.5")
    more, fewer = (min((1.0 + sign * gamma) * degree / n, 1.0) for sign in (1.0, -1.0))

    def exponent(share: float) -> float:  # of l = share/scale
        down, up = math.expm1(-share / scale), math.expm1(share / scale)
        ours = (n * (1.0 - r) / 2.0 - 1.0) * math.log1p(more * down) + n * r / 2.0 * math.log1p(fewer * down)
        theirs = (1.0 - r) * math.log1p(fewer * up) + r * math.log1p(more * up)
        return ours + n / 2.0 * theirs - math.log1p(-(share**2))

    minimum = minimize_scalar(exponent, bounds=(0.0, 1.0 - 1e-9), method="bounded")
    return n * math.exp(min(float(minimum.fun), 0.0))


def weak_recovery(degree: float, gamma: float, epsilon: float, delta: float) -> Order:
    """Theorem 5.3: share of wrong labels of Algorithm 5.4: 1/(gamma sqrt(d)) + log(1/delta)/(gamma d epsilon^2).

    Parameters
    ----------
    degree, gamma
        Of the model.
    epsilon, delta : float
        Of the release, epsilon at most 1.

    Returns
    -------
    Order

    Notes
    -----
    Derived again. A sign that differs between x and the eigenvector v costs 1/n of norm(v - x/sqrt(n))^2, which Davis
    and Kahan's theorem bounds by a multiple of norm(X - X*)^2 + norm(N)^2: the first is `projection_distance`, the
    second 4 n sigma^2 with n sigma^2 = 48 log(1.25/delta)/(gamma d epsilon^2). What it needs in practice is
    `projection_accuracy`'s.

    Examples
    --------
    >>> print(weak_recovery(100.0, 0.8, 1.0, 1e-6))
    error = O(1/(gamma sqrt(d)) + log(1/delta)/(gamma d epsilon^2)): 0.2977 with constant 1 (Chen et al. 2023, Theorem
    5.3)
    """
    degree, gamma = checked_within("degree", degree), checked_within("gamma", gamma, most=1.0)
    noise = math.log(1.0 / _probability("delta", delta)) / (gamma * degree * checked_within("epsilon", epsilon) ** 2)
    formula = "1/(gamma sqrt(d)) + log(1/delta)/(gamma d epsilon^2)"
    value = 1.0 / (gamma * math.sqrt(degree)) + noise
    return Order(value, formula, "Chen et al. 2023, Theorem 5.3", "upper", "1", quantity="error")


def exact_recovery(n: int, gamma: float, epsilon: float, delta: float) -> Order:
    """Theorem 5.10: the degree for all labels by projection, split and vote (Algorithm 5.12).

    log(n)/gamma^2 + log(n)/(gamma epsilon) + log(1/delta)/(gamma epsilon^2), with constant 1.

    Parameters
    ----------
    n, gamma
        Of the model.
    epsilon, delta : float
        Of the release, epsilon at most 1.

    Returns
    -------
    Order

    Notes
    -----
    Derived again: the first two terms make `vote_failure` small, and with the third `weak_recovery` is a small
    constant.

    Examples
    --------
    >>> round(exact_recovery(1000, 0.9, 1.0, 1e-6).value, 1)
    31.6
    """
    n, gamma = checked_integer("n", n, least=2), checked_within("gamma", gamma, most=1.0)
    epsilon, logarithm = checked_within("epsilon", epsilon), math.log(n)
    value = logarithm / gamma**2 + logarithm / (gamma * epsilon)
    value += math.log(1.0 / _probability("delta", delta)) / (gamma * epsilon**2)
    formula = "log(n)/gamma^2 + log(n)/(gamma epsilon) + log(1/delta)/(gamma epsilon^2)"
    return Order(value, formula, "Chen et al. 2023, Theorem 5.10", "upper", "log n", quantity="degree")


def _share(v: float) -> float:
    return float(norm.cdf(math.sqrt(1.0 / v - 1.0))) if v < 1.0 else 0.5


def _model(n: int, degree: float, gamma: float) -> tuple[int, float, float]:
    n, degree, gamma = (
        checked_integer("n", n, least=2),
        checked_within("degree", degree),
        checked_within("gamma", gamma, most=1.0),
    )
    if (1.0 + gamma) * degree > n:
        raise ValueError(f"degree={degree!r} and gamma={gamma!r} give edges a probability above 1 at n={n!r}")
    return n, degree, gamma


def _probability(name: str, value: float) -> float:
    value = checked_within(name, value)
    if value >= 1.0:
        raise ValueError(f"{name}={value!r} must be below 1")
    return value
