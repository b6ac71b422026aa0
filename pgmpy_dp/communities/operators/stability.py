"""How far the optimum of a strongly convex program moves: three bounds, of public numbers."""

from __future__ import annotations

import math

_UP = 1.0 + 2.0**-50  # more than the rounding of a few operations


def stable_set_sensitivity(alpha: float, kappa: float) -> float:
    """Bound on how far the optima x, x' of two programs are apart: ``||x - x'||^2 <= 12 alpha/kappa``.

    Parameters
    ----------
    alpha : float
        For neighbours with objectives f, f' and feasible sets K, K': every z in K has a z' in K', and every z' in K' a
        z in K, with ``abs(f(z) - f'(z')) <= alpha`` and ``||z - z'||^2 <= 4 alpha/kappa``.
    kappa : float
        Both objectives are kappa-strongly convex.

    Notes
    -----
    Chen et al. 2023, Lemma 4.1. With optima x of f and x' of f', let f'(x') <= f(x) (else exchange the two), and take
    the z in K for x'. Then ``kappa/2 ||z - x||^2 <= f(z) - f(x) <= f'(x') + alpha - f(x) <= alpha``, and
    ``||x - x'||^2 <= 2 ||x - z||^2 + 2 ||z - x'||^2 <= 4 alpha/kappa + 8 alpha/kappa``.

    Examples
    --------
    >>> stable_set_sensitivity(1.0, 12.0)
    1.0000000000000009
    """
    return math.sqrt(12.0 * alpha / kappa) * _UP


def stable_objective_sensitivity(gradient: float, kappa: float) -> float:
    """Bound ``gradient/kappa`` on the distance of the optima of two objectives on one convex feasible set.

    Parameters
    ----------
    gradient : float
        ``||grad f - grad f'||`` is at most this at every feasible point, in l2 norm.
    kappa : float
        One of the two objectives, at least, is kappa-strongly convex.

    Notes
    -----
    With optima x of f and x' of f', strong convexity of f gives
    ``kappa ||x - x'||^2 <= <grad f(x') - grad f(x), x' - x>``; optimality gives ``<grad f(x), x' - x> >= 0`` and
    ``<grad f'(x'), x - x'> >= 0``. Added up: ``kappa ||x - x'||^2 <= <grad f(x') - grad f'(x'), x' - x>``
    (Chaudhuri, Monteleoni and Sarwate 2011, Lemma 7).

    Examples
    --------
    >>> stable_objective_sensitivity(1.0, 2.0)
    0.5000000000000004
    """
    return gradient / kappa * _UP


def projection_sensitivity(moved: float, along: float | None = None) -> float:
    """Bound on how far the projections x, x' of two points y, y' on one closed convex set are apart.

    Parameters
    ----------
    moved : float
        ``||y - y'||`` is at most this.
    along : float, optional
        ``<x - x', y - y'>`` is at most this, for any x, x' in the set.

    Notes
    -----
    Projections are firmly nonexpansive: ``||x - x'||^2 <= <x - x', y - y'>``, hence ``||x - x'|| <= min(moved,
    sqrt(along))`` (Moreau 1965; Bauschke and Combettes 2017, Proposition 4.16).

    Examples
    --------
    >>> projection_sensitivity(1.0, along=0.25)
    0.5000000000000004
    """
    return (moved if along is None else min(moved, math.sqrt(along))) * _UP
