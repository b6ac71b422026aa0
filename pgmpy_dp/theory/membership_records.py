"""Records that a private release of the membership program's centres would take (Chen et al. 2023, Algorithm 6.5).

The program says which records of a Gaussian mixture belong together
(:mod:`pgmpy_dp.mixtures.published.membership_program`), and each record's estimate of its cluster's centre is the mean
of those linked to it. The paper makes a private mechanism of
it: a test whether nearly all records are linked, then estimates of a random part of the records, noise on them, and
cells of a grid that hold many. Its constants, of the order of 10^10 k^300 in the paper, are worked out here at degree
2; where each comes from is in ``theory/membership_records.md``, whose letters are used:

======  ======================================================================================================
letter  meaning
======  ======================================================================================================
n       records
k, d    clusters and columns
alpha   how much more than its scale says a cluster may vary, `slack`
c       n/k, the records of a cluster
D       how far the optimum moves when a record changes, `moved`
S       of the test: what its noise is around, `centre`
S       of means: root of the largest variance, in any direction, of the records linked to one, `deviation`
L       up to so many unlinked records the test goes on, `limit`
h       a row of links that moves by x_i changes its mean's distribution by eta_i <= h x_i + 2/(beta c)
eta     the largest eta_i of a row that is not bad
m       rows that may move by more than D/sqrt(m), `far`
B       all bad rows, of which nothing is known, `rows`
b       bad rows among those that are drawn, at most
T       cells with so many of the rows that are drawn are released, `threshold`
======  ======================================================================================================
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

from scipy.stats import chi2, norm

from pgmpy_dp.checks import checked_integer, checked_within
from pgmpy_dp.private import accounting

# letter    in code     meaning
# n, k, d               records, clusters, columns
# c                     n/k, the records of one cluster
# alpha     slack       how much more than its scale says a cluster may vary
# beta      _FULL       a record counts as linked where its links add up to beta c
# kappa     _OVERLAP    how much two records overlap that are linked to a third one, inverted
# D         moved       how far one record moves the computed weights, in Frobenius norm
# S         deviation   standard deviation of the records that are linked to one, in scales
# h, eta                a row that moves by x has an eta of at most h x + 2/(beta c), in total variation
# m         far         rows that may move by more than D/sqrt(m)
# b                     bad rows, of which nothing is said, among those that are drawn: at most b

LOW, HIGH = 0.8, 0.9
"""Weights up to `LOW` count as no link, from `HIGH` on as a whole one; Chen et al. (2023), Definition 6.4."""

_SLOPE = 1.0 / (HIGH - LOW)
_FULL = 0.5  # beta: a record counts as linked where its links add up to this much of n/k
_OVERLAP = 1.0 / (2.0 * HIGH * HIGH - 1.0)  # kappa
_SOLVER = 0.05  # of the exact optimum's sensitivity, that a computed one may be away from it
_PROJECTED = 24  # largest dimension of the grid of cells; more columns are projected
_GRID = 2.0**-20  # of a scale: noise is added to integers
_BAD_ROWS = (1, 2, 4, 8, 20, 60, 200)
# Shares of epsilon; .02 are for a noisy number of records. The steps after the rows' noise have their delta multiplied
# by exp(epsilon of the rows). Ten parts of delta.
_TEST, _ROWS, _CELLS, _MEANS = 0.13, 0.3, 0.25, 0.3
_LARGEST_EPSILON, _SMALLEST_DELTA = 1e3, 1e-100  # so that these products are floats
_LARGEST_EXPONENT = 120
_HOPELESS = 1e-15  # an epsilon below it: noise on the cells' counts takes more rows than 2**120 records can give


def required_records(
    n_clusters: int,
    n_features: int,
    separation: float,
    epsilon: float,
    delta: float,
    *,
    slack: float = 0.5,
) -> float:
    """Number of records, about and from above, with which the membership program's centres outdo the noise.

    Parameters
    ----------
    n_clusters, n_features : int
        k, d.
    separation : float
        Smallest distance of two centres, in units of the scale of a cluster.
    epsilon, delta : float
        The budget, delta at least 1e-100. An epsilon above 1,000 counts as 1,000.
    slack : float
        alpha: how much more than its scale says a cluster may vary, at most 100.

    Returns
    -------
    float
        A whole number; infinity where 2**120 are not enough. The smallest n (within a thousandth) with which, for at
        least half of the offsets of the grid, every centre is so far from the walls of its cell that the noise keeps
        seven rows of ten in it. It supposes that the program links clusters of equal size fully, which takes a
        separation of about 16 to 32 scales; below it the test refuses wherever its limit is below n.

    Raises
    ------
    TypeError, ValueError
        For arguments out of range.

    Notes
    -----
    It is above 38,721 for all arguments, for below that no bound on how far an estimate moves is left
    (``theory/membership_records.md``); the program has n**2 unknowns. Source: Chen, Cohen-Addad, d'Orsi, Epasto, Imola,
    Steurer and Tiegel (2023), section 6, with constants of its own.

    Examples
    --------
    >>> 1e26 < required_records(3, 8, 32.0, 1.0, 1e-6) < 1e27
    True
    """
    release = _checked(1, n_clusters, n_features, separation, slack, epsilon, delta, 1.0)
    k, d = release.k, release.d
    if release.epsilon < _HOPELESS or max(k, d) >= 2**_LARGEST_EXPONENT:
        return math.inf

    def accurate(n: int) -> bool:
        noise = _proved_noise(release._replace(n=n)) if n >= k else None
        return noise is not None and _separates(noise.row_error, k, d, release.separation)

    exponent = next((e for e in range(1, _LARGEST_EXPONENT + 1) if accurate(2**e)), None)
    if exponent is None:
        return math.inf
    low, high = 2 ** (exponent - 1), 2**exponent
    while high - low > max(1, high // 1000):
        middle = (low + high) // 2
        low, high = (low, middle) if accurate(middle) else (middle, high)
    return float(high)


class ProgramNoise(NamedTuple):
    """The noise of each step of a release by the membership program, in scales of a cluster.

    Attributes
    ----------
    proved : bool
        Whether a bound holds at this number of records. Where none does, numbers are as if eta were 1/2 and one bad row
        were drawn: they protect nobody.
    test : NoisyTest
    eta : float
        The largest part of its links that a row which is not bad may change.
    bad : int
        b: rows among those drawn of which nothing is known.
    rate : float
        With which rows are drawn.
    row_error : float
        Deviation of the noise on each coordinate of a row that is drawn.
    dimension : int
        Of the grid of cells: rows of more columns are projected.
    width : float
        Of a cell.
    cell_scale : float
        Of the Laplace noise on the number of rows in a cell.
    threshold : int
        T: cells with noisy numbers below it are not used.
    mean_error : float
        Deviation of the noise on each coordinate of the mean of a cell's rows.
    """

    proved: bool
    test: NoisyTest
    eta: float
    bad: int
    rate: float
    row_error: float
    dimension: int
    width: float
    cell_scale: float
    threshold: int
    mean_error: float


class NoisyTest(NamedTuple):
    """Truncated Laplace noise on the number of records that are not linked, and from which number on it refuses.

    Attributes
    ----------
    moved : float
        D: how far one record moves the weights.
    sensitivity : float
        How far it moves the number of records that are not linked.
    scale : float
    centre : int
        S; the noise is in 0 .. 2 S.
    limit : int
        L: the release goes on where the noisy number is at most that.
    """

    moved: float
    sensitivity: float
    scale: float
    centre: int
    limit: int


class _Release(NamedTuple):
    """A release of k centres from n records in d columns, under a budget; `noise` is a factor on what it adds."""

    n: int
    k: int
    d: int
    separation: float
    slack: float
    epsilon: float
    delta: float
    noise: float = 1.0

    @property
    def part(self) -> float:
        """The part of delta for each of ten things that may fail."""
        return self.delta / 10.0


def _checked(
    n: int, k: int, d: int, separation: float, slack: float, epsilon: float, delta: float, noise: float
) -> _Release:
    k, d = checked_integer("n_clusters", k, least=1), checked_integer("n_features", d, least=1)
    separation = checked_within("separation", separation)
    slack = 0.0 if slack == 0 else checked_within("slack", slack, most=100.0)
    epsilon = min(checked_within("epsilon", epsilon), _LARGEST_EPSILON)
    delta = checked_within("delta", delta, most=1.0)
    if delta < _SMALLEST_DELTA:
        raise ValueError(f"delta={delta!r} is below {_SMALLEST_DELTA:g}; pass a larger one")
    return _Release(n, k, d, separation, slack, epsilon, delta, checked_within("noise", noise))


def program_noise(
    n_records: int,
    n_clusters: int,
    n_features: int,
    separation: float,
    epsilon: float,
    delta: float,
    *,
    slack: float = 0.5,
    noise: float = 1.0,
) -> ProgramNoise:
    """The noise of each step of a release from n records, or, where nothing is proved for so few, what stands for it.

    Parameters
    ----------
    n_records : int
        n, at least `n_clusters`.
    n_clusters, n_features, separation, epsilon, delta, slack
        As of :func:`required_records`.
    noise : float
        A factor on all of it, for a study: as if a record moved each step's statistic by so many times what it does.
        Only with 1, and where `proved`, is it the noise of a guarantee.

    Returns
    -------
    ProgramNoise

    Examples
    --------
    >>> few, many = (program_noise(n, 3, 8, 32.0, 1.0, 1e-6) for n in (300, 10**26))
    >>> few.proved, f"{few.row_error:.0e}", many.proved, f"{many.row_error:.1f}"
    (False, ..., True, ...)
    """
    release = _checked(n_records, n_clusters, n_features, separation, slack, epsilon, delta, noise)
    n = checked_integer("n_records", n_records, least=release.k)
    amount = _proved_noise(release) or _noise_with(release, _test(release), 1, None, 0.5, 0.5 * n)
    assert amount is not None  # where nothing is to be proved, nothing fails
    return amount


@lru_cache(maxsize=512)
def _proved_noise(release: _Release) -> ProgramNoise | None:
    """The noise of the choices with the least of it on the rows; None where no bound holds."""
    n, k, c = release.n, release.k, release.n / release.k
    test = _test(release)
    few = math.floor(test.limit / (1.0 - _FULL))  # rows that are linked by less than beta
    # How much of their links two neighbours' rows differ by: h x_i + 2/(beta c).
    h = _SLOPE * math.sqrt(2.0 / (LOW * c)) / _FULL
    total = h * math.sqrt(n) * test.moved + 2.0 * k / _FULL
    choices: list[ProgramNoise | None] = []
    far = few  # m: rows that may move by more than D/sqrt(m)
    while (rows := far + 2 * few + 1) < n:
        eta = h * test.moved / math.sqrt(far) + 2.0 / (_FULL * c)
        if eta <= 0.5:
            choices += [_noise_with(release, test, b, rows, eta, total) for b in _BAD_ROWS]
        far *= 16
    return min((choice for choice in choices if choice), key=lambda choice: choice.row_error, default=None)


def _test(release: _Release) -> NoisyTest:
    n, k, epsilon, part = release.n, release.k, release.epsilon, release.part
    moved = 2.0 * math.sqrt(2.0 * n / k) * (1.0 + 2.0 * _SOLVER)  # D
    unlinked = release.noise * math.ceil(_SLOPE * math.sqrt(2.0 * k / LOW) * moved + 1.0)
    scale, decay = unlinked / (_TEST * epsilon), math.exp(-_TEST * epsilon / unlinked)
    centre = math.ceil(scale * math.log((math.expm1(_TEST * epsilon) + 2.0 * part) / (part * (1.0 + decay))) - 1.0)
    centre = max(centre, math.ceil(unlinked))
    limit = 2 * centre + math.ceil(2.0 * math.sqrt(n * k))  # equal clusters of random sizes pass
    return NoisyTest(moved, unlinked, scale, centre, limit)


def _noise_with(
    release: _Release, test: NoisyTest, b: int, rows: int | None, eta: float, total: float
) -> ProgramNoise | None:
    """The noise where b of the rows that are drawn may be bad, of `rows` in all; None where b is too few.

    The eta of each row is at most `eta`, and of all together `total`. Where `rows` is None nothing is proved.
    """
    n, k, d, separation, slack, epsilon, _, noise = release
    part = release.part
    later = part * math.exp(-_ROWS * epsilon)
    mean_multiplier = noise / math.sqrt(2.0 * accounting.approx_to_zcdp(_MEANS * epsilon, later))
    cell_scale = noise * 2.0 * b / (_CELLS * epsilon)
    dimension = min(d, _PROJECTED)
    drawn, shrunk = 1.0, 1.0
    for _ in range(60):  # the threshold needs the number of rows drawn, which is made to suit the threshold
        most_rows = _above(1.01 * drawn, part)
        opened = math.ceil(cell_scale * math.log(2.0 * b / later))
        excess = math.ceil(cell_scale * math.log(max(most_rows, 1.0) / later))
        if d > _PROJECTED:
            shrunk = float(chi2.ppf(2.0 * later / (most_rows + b) ** 2, dimension)) / dimension
        diameter = 1.1 * _width(d, separation) * math.sqrt(dimension / shrunk)
        # Rows that a cell in use has in common with its neighbour, enough for noise of a quarter of the separation.
        common = math.ceil(2.0 * b * diameter * 4.0 * math.sqrt(d) / separation * mean_multiplier)
        threshold = max(b + opened, excess + b + max(common, b + 1))
        before, drawn = drawn, 2.0 * k * threshold
        if drawn <= 1.005 * before:
            break
    rate = min(drawn / n, 1.0)
    # More than b bad rows are b + 1 at least.
    if rows is not None and (_above(rows * rate, part) > b + 1 or _above(rate * n, part) > most_rows):
        return None
    most_rows = min(most_rows, n)
    changed = min(most_rows * eta, eta * _above(rate * total / eta, part))
    deviation = math.sqrt(_OVERLAP * (1.0 + slack) * k) / _FULL  # S
    l2 = 2.0 * deviation * math.sqrt(changed / (1.0 - eta)) + _GRID * math.sqrt(most_rows * d)
    row_error = noise * l2 / math.sqrt(2.0 * accounting.approx_to_zcdp(_ROWS * epsilon, part))
    mean_error = (2.0 * b * diameter / (threshold - excess - b) + _GRID * math.sqrt(k * d)) * mean_multiplier
    cells = (dimension, _width(d, separation), cell_scale, threshold)
    return ProgramNoise(rows is not None, test, eta, b, rate, row_error, *cells, mean_error)


def _width(d: int, separation: float) -> float:
    """The width of a cell, in scales."""
    return separation / math.sqrt(min(d, _PROJECTED)) / (1.0 if d <= _PROJECTED else 2.0)


def _separates(error: float, k: int, d: int, separation: float) -> bool:
    """Whether rows at the centres plus noise fill one cell for each centre, for half of the grid's offsets."""
    dimension = min(d, _PROJECTED)
    wall = 0.5 * _width(d, separation) * (1.0 - 0.5 ** (1.0 / (k * dimension)))
    inside = float(norm.cdf(wall / error) - norm.sf(wall / error)) ** dimension
    return inside >= 0.7


def _above(mean: float, probability: float) -> float:
    """A value that a sum of independent variables in [0, 1] of at most this mean reaches with at most this chance.

    Notes
    -----
    Chernoff: ``P(sum >= (1 + t) mean) <= exp(-mean ((1 + t) log(1 + t) - t))``.

    Examples
    --------
    >>> round(_above(100.0, 1e-6), 1)
    157.0
    """
    need = -math.log(probability)

    def exponent(t: float) -> float:
        return mean * ((1.0 + t) * math.log1p(t) - t)

    high = 1.0
    while exponent(high) < need:
        high *= 2.0
    low = 0.0
    for _ in range(100):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if exponent(middle) < need else (low, middle)
    return mean * (1.0 + high)
