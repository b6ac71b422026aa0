"""Combining rules: from one analysis of each of several synthetic data sets to one interval."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student_t


@dataclass(frozen=True)
class Combined:
    """A combined estimate.

    Attributes
    ----------
    estimate, variance, degrees_of_freedom, lower, upper : ndarray
        Of the shape of one estimate.
    """

    estimate: np.ndarray
    variance: np.ndarray
    degrees_of_freedom: np.ndarray
    lower: np.ndarray
    upper: np.ndarray


def combine_synthetic(
    estimates: np.ndarray, variances: np.ndarray, *, level: float = 0.9, records_ratio: float = 1.0
) -> Combined:
    """Combine the same analysis of m fully synthetic data sets, each drawn from its own posterior draw.

    With q_l and u_l the estimate and its usual variance in data set l (the latter as if its records were a simple
    random sample), b the variance of the q_l over the data sets and bars for means,

        Q = q_bar,   T = (1 + 1/m) b - u_bar,   nu = (m - 1) (1 - u_bar / ((1 + 1/m) b))^2

    and the interval is Q +- t_nu sqrt(T). The data sets vary around their posterior draws with variance u_bar and
    these with the posterior variance V of the quantity, so b is about V + u_bar, and Q has the variance V + b/m:
    that is T. Because V is that of a posterior given noisy tables, T accounts for sampling and for privacy noise. The
    rules for missing data (u_bar + (1 + 1/m) b) and for partially synthetic data (u_bar + b/m) do not apply.

    T can be negative where m is small or the synthetic data sets are. It is replaced there by
    ``records_ratio * u_bar``, which is what sampling alone would give and so too small where the privacy noise is
    large; more data sets, or larger ones, avoid the case. nu is floored at 1 (m - 1 is reached for large data sets).

    It covers what the release measured. What the graph leaves out is in no data set: of coefficients of regressions
    intervals of level .9 held .72 of the time over 20 sets. :meth:`pgmpy_dp.MarkovNetwork.regress` asks for these.

    Parameters
    ----------
    estimates, variances : array_like of shape (m, ...)
        One row for each data set, m at least 2.
    level : float in (0, 1)
        Of the interval.
    records_ratio : float
        Records in one synthetic data set over records behind the release; only used where T is not positive.

    Returns
    -------
    Combined

    Raises
    ------
    ValueError
        If the shapes differ, m < 2, a variance is negative or not finite, or an argument is out of range.

    References
    ----------
    Raghunathan, Reiter and Rubin (2003), Multiple imputation for statistical disclosure limitation, Journal of Official
    Statistics 19, 1-16. Reiter (2002), Satisfying disclosure restrictions with synthetic data sets, ibid. 18, 531-543
    (the replacement of a negative T).

    Examples
    --------
    >>> import numpy as np
    >>> combined = combine_synthetic(np.array([0.48, 0.52, 0.50]), np.array([1e-4, 1e-4, 1e-4]))
    >>> round(float(combined.estimate), 3), round(float(combined.variance), 6)
    (0.5, 0.000433)
    """
    q, u = np.asarray(estimates, dtype=np.float64), np.asarray(variances, dtype=np.float64)
    if q.ndim == 0 or q.shape != u.shape or len(q) < 2:
        raise ValueError(
            f"estimates and variances must have one shape (m, ...) with m >= 2 data sets, got {q.shape} and {u.shape}"
        )
    if not (np.isfinite(q).all() and np.isfinite(u).all() and np.all(u >= 0)):
        raise ValueError("estimates must be finite, and variances finite and not negative")
    if not 0 < level < 1:
        raise ValueError(f"level must be between 0 and 1, got {level!r}")
    if not (np.isfinite(records_ratio) and records_ratio > 0):
        raise ValueError(f"records_ratio must be positive and finite, got {records_ratio!r}")
    m = len(q)
    between, within = (1 + 1 / m) * q.var(axis=0, ddof=1), u.mean(axis=0)
    usable = between > within
    variance = np.where(usable, between - within, records_ratio * within)
    share = np.divide(within, between, out=np.zeros_like(between), where=usable)
    freedom = np.where(usable, np.maximum((m - 1) * (1 - share) ** 2, 1.0), m - 1.0)
    estimate = q.mean(axis=0)
    half = student_t.ppf(0.5 + level / 2, freedom) * np.sqrt(variance)
    return Combined(estimate, variance, freedom, estimate - half, estimate + half)
