"""PrivateGraphicalLasso: a Gaussian graphical model from noisy second moments of clipped records."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from pgmpy.models import LinearGaussianBayesianNetwork

from pgmpy_dp.checks import checked_number
from pgmpy_dp.gaussian import noisy_moments, pair_correlations
from pgmpy_dp.gaussian.gaussian_distribution import gaussian_log_likelihood
from pgmpy_dp.gaussian.graphical_models import linear_gaussian_network, partial_correlations, precision_graph
from pgmpy_dp.gaussian.moments_base import BaseMomentsEstimator, checked_center
from pgmpy_dp.gaussian.noisy_moments import SCALINGS, checked_bounds, noisy_covariance
from pgmpy_dp.gaussian.pair_correlations import noisy_pairs
from pgmpy_dp.gaussian.precision_fits import fit_covariance, fit_pairs
from pgmpy_dp.learning.options import by, column, flag, number, one_of, option
from pgmpy_dp.learning.privacy_record import Privacy
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.data.vectors import PrivateVectors
from pgmpy_dp.private.operators.vector_operators import MECHANISMS, checked_norm
from pgmpy_dp.private.reading.frames import read_numbers
from pgmpy_dp.private.sensitive import Release

_PERTURB = ("covariance", "pairs", "output")


def _checked_penalty(name: str, value: Any) -> float | str:
    if isinstance(value, str):
        if value != "noise-aware":
            raise ValueError(f"{name}={value!r} is not supported; pass 'noise-aware' or a number")
        return value
    return checked_number(name, value, positive=False)


_OUTPUT_MECHANISMS = ("auto", "frobenius", "goe")


@dataclass(init=False)
class _Norm:
    """The first option."""

    row_norm: float | None = option(None, by(checked_norm))


class PrivateGraphicalLasso(BaseMomentsEstimator, _Norm):
    """Sparse inverse covariance under differential privacy (Wang, Huai and Xu 2018, with corrected mechanisms).

    Records are shortened to a public norm, and their second moments are released with noise. A graphical lasso is
    fitted to these, with a penalty that knows the noise.

    Parameters
    ----------
    row_norm : float
        Public: the l2 norm to which a record (less the centre) is shortened. Noise grows with its square. About the
        root of the sum of the variances is good: what shortening does to a Gaussian about its mean is taken back. Take
        it from what the quantities are, never from the records, and scale columns to comparable variances with public
        factors first. Required without `bounds`.
    epsilon, delta, rho
    mechanism : str
        Noise. Of the second moments: "auto", the best for the budget: "double-wishart" for a pure one, "goe" for rho,
        the better of the two for (epsilon, delta), and "analytic-goe", with some 7 % less noise, where one release
        takes all that a ledger allows. Others for comparison: "laplace", "frobenius", "gaussian", "published-laplace",
        "one-sided-wishart", see :mod:`pgmpy_dp.private.noise.matrix`. Of the output: "auto",
        "frobenius", "goe".
    perturb : {"covariance", "pairs", "output"}
        Where the noise goes: to all second moments, or to those of pairs of columns that are chosen first, of which
        there is an answer with hundreds of columns where the others drown. "pairs" reads the signs of the records less
        the centre, supposes that columns are jointly normal, and takes no `row_norm`, `penalty` or `mechanism`; without
        `bounds` it learns correlations alone. "output" is there to compare with the paper; its noise is far larger.
    penalty : float or "noise-aware"
        Of the absolute entries off the diagonal; 0 is allowed. "noise-aware" takes it from the size of sampling error
        and noise. For "output" a positive number, of all entries.
    refit : bool
        Whether the precision is fitted again by maximum likelihood on those pairs of the lasso's support that differ
        from zero by more than sampling error and noise explain. It costs nothing, and takes the lasso's shrinkage and
        most of its false edges away. False with a penalty of 0 gives the plain inverse.
    center : None, sequence of numbers, or "private"
        The point subtracted from the records: public numbers, or a noisy mean that takes a fifth of the budget.
        Without one the result is of second moments about zero, or about the middle of the bounds, and is called so
        (`centered_` is False, `second_moments_` in the place of `covariance_`): of a column of mean m and variance v
        they have m^2 + v in the place of v, and two such columns look correlated. Pass zeros where the columns are
        known to vary about zero.
    center_radius : float, optional
        For a private centre: public distance from zero within which the mean lies; subtract a public guess from the
        columns first if it is far. Not with `bounds`, which say where it lies.
    bounds : mapping or sequence of (lower, upper), optional
        Public bounds of each column, in its own units, in the place of `row_norm`: ``{"height": (1.2, 2.2)}``, a pair
        for each column of an array, or a schema of :class:`~pgmpy_dp.Number`. Values are clipped to them, and columns
        scaled, so that the noise is the same for each column in units of its scale.
    scaling : {"private", "bounds"}
        Of `bounds`. "private" spends a tenth of the budget on the scale of each column, so that bounds may be wide.
        "bounds" scales by them: no record is shortened, and noise grows with the square of their width.
    max_eigenvalue : float, optional
        For "output": cap on the eigenvalues of the precision matrix. Default: 1/penalty.
    columns : sequence of hashable, optional
        Columns to read; default: all but `unit`. Of an array: names.
    unit : hashable, optional
        Column of a dataframe that says whose record it is: then all records of a person are protected together.
    adjacency
    n_records : int, optional
        The number of records (of persons, with `unit`), if it is public. Required under "replace_one". Without it a
        small share of the budget pays for a noisy one.
    random_state

    Attributes
    ----------
    precision_ : ndarray of shape (d, d)
        Positive definite, with exact zeros.
    covariance_ : ndarray of shape (d, d)
        Its inverse; without a centre it is called `second_moments_`.
    second_moments_ : ndarray of shape (d, d)
        About `location_`, with or without a centre.
    location_ : ndarray of shape (d,)
        The point subtracted from the records: zeros, the middle of the bounds, the public centre, or the noisy mean.
    centered_ : bool
        Whether a centre was set. If not, there is no `covariance_`: `second_moments_` and `precision_` are the second
        moments about `location_` and their inverse, which are a covariance only where that is the mean.
    scales_ : ndarray of shape (d,)
        The scales that the columns were divided by: ones without bounds.
    graph_ : pgmpy.base.UndirectedGraph
        Pairs with a nonzero entry; weights are partial correlations.
    columns_ : tuple
    penalty_ : float
    noise_sd_ : float
        Standard deviation of the noise in an entry off the diagonal of what was released, over the two columns'
        `scales_`.
    n_records_ : float
        The public number, or the noisy one.
    n_iter_ : int
    converged_ : bool
    release_ : Release
        For :meth:`fit_release`: other penalties cost nothing.
    privacy_, n_features_in_, feature_names_in_

    Notes
    -----
    Privacy: the only access to the records is one release of :mod:`pgmpy_dp.gaussian.noisy_moments` or
    :mod:`pgmpy_dp.gaussian.published.output_perturbation`, which have the guarantees. Records with a value that is not
    a finite number are dropped. The noises "one-sided-wishart" and "frobenius" are made in floating point and rounded,
    so that their guarantee is one of real numbers (``release_.floating_point``); the others are drawn exactly.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> a = rng.normal(size=200_000)
    >>> b, c = (a + rng.normal(size=200_000) for _ in range(2))
    >>> model = PrivateGraphicalLasso(row_norm=3.0, center=[0.0, 0.0, 0.0], epsilon=1.0, columns=["b", "a", "c"])
    >>> model = model.fit(np.stack([b, a, c], axis=1))
    >>> model.graph_.has_edge("a", "b"), model.graph_.has_edge("a", "c")
    (True, True)
    """

    _tags: ClassVar[dict[str, Any]] = {
        "task": "covariance",
        "model_kind": "undirected",
    }
    _release_kinds: ClassVar[tuple[str, ...]] = ("covariance", "pairs", "precision")
    _examples = (
        {"row_norm": 2.0, "epsilon": 1.0},
        {"row_norm": 2.0, "rho": 0.1, "adjacency": "replace_one", "n_records": 100, "penalty": 0.1},
        {"row_norm": 2.0, "epsilon": 1.0, "perturb": "output", "penalty": 0.2, "n_records": 100},
        {"perturb": "pairs", "center": [0.0, 0.0, 0.0], "rho": 0.1},
        {"bounds": [(-9.0, 9.0)] * 3, "center": "private", "epsilon": 1.0},
    )

    mechanism: str = option("auto", one_of(MECHANISMS))
    perturb: str = option("covariance", one_of(_PERTURB))
    penalty: float | str = option("noise-aware", by(_checked_penalty))
    refit: bool = option(True, flag())
    center: Sequence[float] | str | None = option(None, by(checked_center))
    center_radius: float | None = option(None, by(checked_norm))
    bounds: Any = option(None, by(checked_bounds))
    scaling: str = option("private", one_of(SCALINGS))
    max_eigenvalue: float | None = option(None, number())
    unit: Hashable | None = option(None, by(column))

    def __getattr__(self, name: str) -> Any:
        if name == "covariance_" and "second_moments_" in self.__dict__:
            raise AttributeError(
                "there is no covariance_: no center was given, and what was learned are second moments about "
                "location_, in second_moments_. They are a covariance where location_ is the mean: pass "
                "center=[0.0, ...] to say so, other public numbers, or 'private'"
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def partial_correlations(self) -> np.ndarray:
        """Correlation of each pair of columns given all others.

        Returns
        -------
        ndarray of shape (d, d)
            Symmetric, 1 on the diagonal.

        Raises
        ------
        NotFittedError
            Before `fit` or `fit_release`.
        """
        self.check_is_fitted()
        return partial_correlations(self.precision_)

    def score(self, X: Any, y: None = None) -> float:
        """Mean log-density of *public* records, in nats.

        The result is an exact statistic of `X`: it is for records that need no protection, such as a public hold-out
        set. No budget is charged and no noise is added.

        Parameters
        ----------
        X : array of shape (n, d) or dataframe
            With the columns of the fit.
        y : None
            Ignored.

        Returns
        -------
        float
            NaN for no records, or where one has a value that is not a finite number.
        """
        self.check_is_fitted()
        rows = read_numbers(X, self.columns_)
        if not len(rows) or not np.isfinite(rows).all():
            return float("nan")
        return float(gaussian_log_likelihood(rows, self.location_, self.precision_).mean())

    def to_pgmpy(self) -> LinearGaussianBayesianNetwork:
        """The same distribution as a pgmpy model.

        See :func:`pgmpy_dp.gaussian.graphical_models.linear_gaussian_network`.

        Returns
        -------
        pgmpy.models.LinearGaussianBayesianNetwork

        Raises
        ------
        NotFittedError
            Before `fit` or `fit_release`.
        """
        self.check_is_fitted()
        return linear_gaussian_network(self.location_, self.precision_, self.columns_)

    def _check(self) -> None:
        unused = {
            "covariance": ("max_eigenvalue",),
            "pairs": (
                *("row_norm", "mechanism", "penalty", "refit"),
                *("center_radius", "max_eigenvalue", "scaling"),
            ),
            "output": ("center_radius", "bounds", "scaling"),
        }
        for name in unused[self.perturb]:
            if getattr(self, name) != getattr(type(self), name):
                raise ValueError(f"{name}={getattr(self, name)!r} is not for perturb={self.perturb!r}; drop it")
        if self.perturb == "pairs":
            self._check_center_of_signs()
        elif self.perturb == "covariance":
            self._check_norm_or_bounds()
            self._check_center()
        else:
            self._check_output()

    def _check_center_of_signs(self) -> None:
        if self.center is None:
            raise ValueError(
                "center=None: signs are about a centre; pass a public number near each column's median (zeros where "
                "columns vary about zero), or 'private' with bounds"
            )
        if self.center == "private" and self.bounds is None:
            raise ValueError("center='private' with bounds=None: pass numbers, or bounds")

    def _check_output(self) -> None:
        checked_norm("row_norm", self.row_norm)
        self._require_penalty("precision")
        if self.mechanism not in _OUTPUT_MECHANISMS:
            raise ValueError(
                f"mechanism={self.mechanism!r} is not supported for noise on the output; pass one of "
                f"{_OUTPUT_MECHANISMS}"
            )
        if self.center == "private":
            raise ValueError("center='private': noise on the output takes a public center only, or None")

    def _require_penalty(self, kind: str) -> None:
        if kind == "precision" and (isinstance(self.penalty, str) or not self.penalty):
            raise ValueError(f"penalty={self.penalty!r} is not supported for perturb='output'; pass a positive number")

    def _run(self, data: PrivateVectors, budget: Budget) -> Release:
        if self.perturb == "output":
            from pgmpy_dp.gaussian.published import output_perturbation

            return output_perturbation.run(data, self._options, budget)
        return (pair_correlations if self.perturb == "pairs" else noisy_moments).run(data, self._options, budget)

    def _check_release(self, release: Release) -> None:
        super()._check_release(release)
        if release.kind != "pairs":
            self._require_penalty(release.kind)

    def _learned(self, release: Release, privacy: Privacy) -> dict[str, Any]:
        centered = release.public["center"] is not None
        if release.kind == "covariance":
            noisy = noisy_covariance(release)
            fit = fit_covariance(noisy, self.penalty, self.refit, centered)
        elif release.kind == "pairs":
            noisy = noisy_pairs(release)  # type: ignore[assignment]
            fit = fit_pairs(noisy)  # type: ignore[arg-type]
        else:
            from pgmpy_dp.gaussian.published.output_perturbation import fit_precision, noisy_precision

            noisy = noisy_precision(release)  # type: ignore[assignment]
            fit = fit_precision(noisy, release.public["penalty"])  # type: ignore[arg-type]
        return {
            "precision_": fit.precision,
            **({"covariance_": fit.covariance} if centered else {}),
            "second_moments_": fit.covariance,
            "location_": noisy.location,
            "centered_": centered,
            "scales_": getattr(noisy, "scales", np.ones(len(noisy.columns))),
            "graph_": precision_graph(fit.precision, noisy.columns),
            "columns_": noisy.columns,
            "penalty_": fit.penalty,
            "noise_sd_": noisy.noise_sd if release.kind == "pairs" else noisy.sd,  # type: ignore[attr-defined]
            "n_records_": float(noisy.n_records),
            "n_iter_": fit.n_iter,
            "converged_": fit.converged,
        }
