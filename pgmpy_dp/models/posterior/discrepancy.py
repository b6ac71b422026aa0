"""The error that a model may have in tables that were not measured, learned from tables that were held back.

A posterior of the parameters takes the graph for the truth. A model of selected tables leaves out interactions, so its
other tables are wrong by more than noise. Some tables drawn at random, the *probes*, are measured and kept from the
fit; how far they are from it says how far tables of their kind are.

For a table T of shares m under the model, what is left out is taken as

    e ~ Normal(0, tau^2 S),    S = D - D A' (A D A')^+ A D,    D = diag(m),

with A the indicators of the margins that were measured: all of single variables, and those of larger sets within T. So
e does not change what is known, and a missing interaction moves the cells of a table together. S is computed as
``D^.5 (I - P) D^.5``, P the projector on the rows of ``A D^.5``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

Scope = tuple[int, ...]

MOST_PROBE_CELLS = 1_000
"""Cells of a probe: its covariance is a matrix of so many rows."""

TAU_GRID = np.concatenate([[0.0], np.geomspace(1e-4, 3.0, 120)])
"""Values of tau that have a posterior probability."""

_PRIOR_SCALE = 0.05
_TIED_PROBES = 16
"""Probes from which triples with two or more measured pairs get a tau of their own."""

_MOST_RESIDUALS = 192  # cells of a probe, its likeliest ones, that tell tau: the time grows with their third power
_RANK = 1e-9
_NO_WEIGHT = 1e-18  # values of tau with less of the probability are left out
_NO_WIDTH = 1e-150  # stands for 0, of which there is no reciprocal
_MOST_STEPS = 500
_FEW = 50  # cells up to which the error function one by one is quicker than importing SciPy


MISSES = {
    "order": "it is about {n} variables together, and probes have {order}",
    "without": "it is about variables whose table was forbidden",
    "within": "it is about variables that no set of the workload has together",
    "cells": "its table has {cells} cells, and probes have at most {most}",
    "none": "there were no probes, so the graph is taken for the truth",
}
"""The reasons why probes do not vouch for a table."""


@dataclass(frozen=True, eq=False)
class Probe:
    """A noisy table that a model which was fitted without it is compared with.

    Attributes
    ----------
    scope : tuple of int
        Positions of its variables.
    shares : ndarray
        The noisy table over the number of records, axes in the order of the scope.
    noise_variance : ndarray
        Of each share, of the same shape.
    draws : ndarray of shape (n_draws, ...)
        The table under draws of the model's posterior.
    expected : ndarray
        The table under the model itself.
    """

    scope: Scope
    shares: np.ndarray
    noise_variance: np.ndarray
    draws: np.ndarray
    expected: np.ndarray


@dataclass(frozen=True)
class Drawn:
    """The tables that could have been probes: probes vouch for these and for their margins.

    Attributes
    ----------
    order : int
        Variables of a probe.
    within : tuple of frozenset of int
        A probe is within one of these sets, if there are any.
    without : tuple of frozenset of int
        A probe holds none of these sets.
    """

    order: int = 3
    within: tuple[frozenset[int], ...] = ()
    without: tuple[frozenset[int], ...] = ()

    def misses(self, scope: Scope, cells: int) -> str | None:
        """The reason why probes do not vouch for a table with so many cells; None where they do.

        Examples
        --------
        >>> Drawn().misses((0, 1, 2), 8) is None, Drawn().misses((0, 1, 2, 3), 16)
        (True, 'it is about 4 variables together, and probes have 3')
        """
        variables = frozenset(scope)
        if len(variables) > self.order:
            return MISSES["order"].format(n=len(variables), order=self.order)
        if any(banned <= variables for banned in self.without):
            return MISSES["without"]
        if len(variables) > 1 and self.within and not any(variables <= wanted for wanted in self.within):
            return MISSES["within"]
        if cells > MOST_PROBE_CELLS:
            return MISSES["cells"].format(cells=cells, most=MOST_PROBE_CELLS)
        return None


@dataclass(frozen=True, eq=False)
class Discrepancy:
    """Posteriors of tau, on one grid, for each kind of table.

    Attributes
    ----------
    measured : tuple of frozenset of int
        Sets of two or more variables whose tables the model was fitted to.
    weights : mapping of name to ndarray of shape (121,)
        Posterior probabilities of the values of the grid; names are those of :func:`tau_name`.
    drawn : Drawn
        The tables that probes vouch for.
    levels : tuple of tuple of hashable
        Measured tables that name levels of variables, which say nothing of what differs within a state of these.
    """

    measured: tuple[frozenset[int], ...]
    weights: Mapping[str, np.ndarray]
    drawn: Drawn = Drawn()
    levels: tuple[tuple[Hashable, ...], ...] = ()

    def half_widths(
        self,
        scope: Scope,
        shares: Sequence[np.ndarray],
        gradients: Sequence[np.ndarray],
        variances: np.ndarray,
        level: float,
    ) -> np.ndarray:
        """Half the widths of intervals for functions of a table's cells.

        Parameters
        ----------
        scope : tuple of int
            Positions of the table's variables.
        shares : sequence of n ndarray
            The table under the model. Axes may be coarser than the variables, differently for each function: cells
            that a function does not tell apart can be added up.
        gradients : sequence of n ndarray
            Of each function, of the shape of its shares.
        variances : ndarray of shape (n,)
            Of each function under the posterior of the parameters.
        level : float in (0, 1)

        Returns
        -------
        ndarray of shape (n,)
            c with ``sum_tau p(tau) P(|Normal(0, variance + tau^2 g'Sg)| <= c) = level``.
        """
        margins = measured_margins(scope, self.measured)
        if len(margins[0]) == len(scope):  # the table itself was measured
            return np.sqrt(variances) * NormalDist().inv_cdf(0.5 + level / 2)
        slopes = [gradient.ravel() for gradient in gradients]
        per_tau = [
            slope @ unmeasured_covariance(table, margins) @ slope for slope, table in zip(slopes, shares, strict=True)
        ]
        name = tau_name(scope, self.measured, self.weights)
        return _half_widths(np.asarray(variances), np.maximum(per_tau, 0.0), self.weights[name], level)

    def expected_variation(self, scope: Scope, shares: np.ndarray, variances: np.ndarray) -> float:
        """The expected total variation between a table and the population's.

        Parameters
        ----------
        scope : tuple of int
            Positions of the table's variables.
        shares, variances : ndarray
            The table under the model, and the variance of each cell under the posterior of the parameters.

        Returns
        -------
        float
            Half the sum over cells of ``sum_tau p(tau) E|Normal(0, variance + tau^2 S)|``.
        """
        root, basis = _known_directions(shares, measured_margins(scope, self.measured))
        free = root**2 * np.maximum(1.0 - (basis**2).sum(axis=1), 0.0)
        weights = self.weights[tau_name(scope, self.measured, self.weights)]
        scale = np.sqrt(variances.ravel()[:, None] + np.multiply.outer(free, TAU_GRID**2))
        return float((scale @ weights).sum() / math.sqrt(2.0 * math.pi))


def measured_margins(scope: Scope, measured: Iterable[frozenset[int]]) -> list[tuple[int, ...]]:
    """Axes of the margins of a table that were measured: each variable's, and what measured sets share with it."""
    within = {frozenset(scope) & known for known in measured}
    largest = [part for part in within if len(part) > 1 and not any(part < other for other in within)]
    covered = set().union(*largest) if largest else set()
    margins = [tuple(sorted(scope.index(i) for i in part)) for part in largest]
    return sorted(margins) + [(axis,) for axis, i in enumerate(scope) if i not in covered]


def tau_name(scope: Scope, measured: Iterable[frozenset[int]], names: Iterable[str]) -> str:
    """The name of a table's tau: "pair", "triple", or, if there is one, "tied" for two or more measured pairs.

    Larger tables have that of triples, which no probe vouches for.
    """
    if len(scope) <= 2:
        return "pair"
    pairs = sum(any(set(pair) <= known for known in measured) for pair in itertools.combinations(scope, 2))
    return "tied" if pairs >= 2 and "tied" in names else "triple"


def unmeasured_covariance(shares: np.ndarray, margins: Sequence[tuple[int, ...]]) -> np.ndarray:
    """S: the covariance, up to tau^2, of the unknown part of a table whose margins are known.

    Parameters
    ----------
    shares : ndarray
        The table, not negative.
    margins : sequence of tuple of int
        Axes of each known margin.

    Returns
    -------
    ndarray of shape (cells, cells)

    Examples
    --------
    >>> unmeasured_covariance(np.full((2, 2), 0.25), [(0,), (1,)]).round(4)
    array([[ 0.0625, -0.0625, -0.0625,  0.0625],
           [-0.0625,  0.0625,  0.0625, -0.0625],
           [-0.0625,  0.0625,  0.0625, -0.0625],
           [ 0.0625, -0.0625, -0.0625,  0.0625]])
    """
    root, basis = _known_directions(shares, margins)
    return root[:, None] * (np.eye(len(root)) - basis @ basis.T) * root


def _known_directions(shares: np.ndarray, margins: Sequence[tuple[int, ...]]) -> tuple[np.ndarray, np.ndarray]:
    """D^.5, and an orthonormal basis of the rows of ``A D^.5``, in columns."""
    root = np.sqrt(np.maximum(shares, 0.0)).ravel()
    cells = np.indices(shares.shape).reshape(shares.ndim, -1)
    rows = []
    for axes in margins:
        label = np.ravel_multi_index(cells[list(axes)], [shares.shape[a] for a in axes])
        block = np.zeros((int(label.max()) + 1, len(root)))
        block[label, np.arange(len(root))] = root
        rows.append(block)
    known, size, _ = np.linalg.svd(np.concatenate(rows).T, full_matrices=False)
    return root, known[:, size > _RANK * max(size[0], np.finfo(float).tiny)]


def learn_discrepancy(
    probes: Sequence[Probe], measured: Iterable[frozenset[int]], drawn: Drawn = Drawn()
) -> Discrepancy:
    """Learn tau for pairs and for triples from probes of three variables.

    Parameters
    ----------
    probes : sequence of Probe
    measured : iterable of frozenset of int
        The sets whose tables the model was fitted to: the probes are not among them.
    drawn : Drawn
        The tables that the probes were drawn from.

    Notes
    -----
    Along an eigenvector u of S with eigenvalue l > 0 the residual of a probe is ``Normal(0, u'Wu + v_u + tau^2 l)``, W
    the noise and v_u the variance of the posterior. tau has a half-Cauchy(.05) prior. Margins of a probe serve pairs.
    """
    known = tuple(measured)
    seen: dict[str, list[tuple[np.ndarray, ...]]] = {"pair": [], "triple": []}
    if sum(len(probe.scope) > 2 for probe in probes) >= _TIED_PROBES:
        seen["tied"] = []
    for probe in probes:
        whole = tuple(range(len(probe.scope)))
        for axes in dict.fromkeys([*itertools.combinations(whole, 2), whole]):
            margin = _margin(probe, axes)
            residuals = _residuals(margin, measured_margins(margin.scope, known))
            if residuals is not None:
                seen[tau_name(margin.scope, known, seen)].append(residuals)
    everything = [part for parts in seen.values() for part in parts]
    return Discrepancy(known, {kind: _posterior(parts or everything) for kind, parts in seen.items()}, drawn)


def _margin(probe: Probe, axes: tuple[int, ...]) -> Probe:
    others = tuple(a for a in range(len(probe.scope)) if a not in axes)
    if not others:
        return probe
    shifted = tuple(a + 1 for a in others)
    return Probe(
        tuple(probe.scope[a] for a in axes),
        probe.shares.sum(axis=others),
        probe.noise_variance.sum(axis=others),
        probe.draws.sum(axis=shifted),
        probe.expected.sum(axis=others),
    )


def _residuals(probe: Probe, margins: Sequence[tuple[int, ...]]) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Residuals along eigenvectors, what noise and posterior explain of their variance, and eigenvalues."""
    most = np.argsort(-probe.expected, axis=None, kind="stable")[:_MOST_RESIDUALS]
    values, vectors = np.linalg.eigh(unmeasured_covariance(probe.expected, margins)[np.ix_(most, most)])
    kept = values > _RANK * max(float(values[-1]), np.finfo(float).tiny)
    if not kept.any() or values[-1] < 1e-12:
        return None
    u = vectors[:, kept]
    explained = (u**2).T @ probe.noise_variance.ravel()[most]
    explained = explained + (probe.draws.reshape(len(probe.draws), -1)[:, most] @ u).var(axis=0, ddof=1)
    return u.T @ (probe.shares - probe.expected).ravel()[most], explained, values[kept]


def _posterior(parts: Sequence[tuple[np.ndarray, ...]]) -> np.ndarray:
    """Posterior of tau on the grid; the prior where nothing was seen."""
    width = np.gradient(TAU_GRID)
    log_p = np.log(width) - np.log1p((TAU_GRID / _PRIOR_SCALE) ** 2)
    for residual, explained, size in parts:
        variance = explained + np.multiply.outer(TAU_GRID**2, size)
        log_p = log_p - 0.5 * (residual**2 / variance + np.log(variance)).sum(axis=1)
    p = np.exp(log_p - log_p.max())
    return p / p.sum()


def _half_widths(variances: np.ndarray, per_tau: np.ndarray, weights: np.ndarray, level: float) -> np.ndarray:
    """Half widths by Newton's method from 0: the probability is concave, so that no step goes too far."""
    kept = weights > _NO_WEIGHT
    scale = np.sqrt(variances[:, None] + np.multiply.outer(per_tau, TAU_GRID[kept] ** 2))
    safe, weight = np.maximum(scale, _NO_WIDTH), weights[kept] / weights[kept].sum()
    half, within = np.zeros(len(scale)), _within(len(scale))
    for _ in range(_MOST_STEPS):
        x = half[:, None] / safe
        slope = (np.exp(-0.5 * np.minimum(x, 30.0) ** 2) / safe) @ weight * math.sqrt(2.0 / math.pi)
        step = (level - within(x) @ weight) / slope
        half = np.maximum(half + step, 0.0)
        if (np.abs(step) <= 1e-14 * half + _NO_WIDTH).all():
            break
    return half


def _within(n: int) -> Callable[[np.ndarray], np.ndarray]:
    """The probability that a normal variable is within x standard deviations; for few x, without importing SciPy."""
    if n <= _FEW:
        one_by_one = np.frompyfunc(lambda x: math.erf(x / math.sqrt(2.0)), 1, 1)
        return lambda x: one_by_one(x).astype(float)
    from scipy.special import ndtr

    return lambda x: 2.0 * ndtr(x) - 1.0
