"""PrivateGaussianMixture: centres and covariances of a mixture of Gaussians, wherever they are."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from pgmpy_dp.checks import require_value
from pgmpy_dp.learning.devices import checked_device
from pgmpy_dp.learning.options import by, one_of, option, whole
from pgmpy_dp.learning.privacy_record import Privacy
from pgmpy_dp.learning.vectors_base import BaseVectorsEstimator
from pgmpy_dp.mixtures import noisy_centres
from pgmpy_dp.mixtures.gaussian_mixture import log_density, responsibilities, sample_mixture
from pgmpy_dp.mixtures.mixture_covariances import covariance_roots
from pgmpy_dp.mixtures.mixture_shares import (
    AUTO,
    BLOCK_SOLVERS,
    MAX_COMPONENTS,
    checked_components,
    checked_covariances,
    checked_length,
)
from pgmpy_dp.mixtures.noisy_centres import MixtureEstimate, mixture_estimate
from pgmpy_dp.mixtures.operators.block_operators import MAX_BLOCKS
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.data.vectors import PrivateVectors
from pgmpy_dp.private.sensitive import Release
from pgmpy_dp.shown import quantity


@dataclass(init=False)
class _Components:
    """The first options."""

    n_components: int | str | None = option(None, by(checked_components))
    separation: float | None = option(None, by(checked_length))
    scale: float | None = option(None, by(checked_length))


class PrivateGaussianMixture(BaseVectorsEstimator, _Components):
    """Centres, weights and covariances of k Gaussians, with no bound on where the centres are.

    It has two outcomes: centres, or a `status_` that says why there are none (too few records, or a separation that is
    not there). Both cost the budget.

    Parameters
    ----------
    n_components : int or "auto"
        k. "auto" is the number of groups that the released cells show, at most `max_components`: it costs no budget of
        its own, but cells are released with the noise of `max_components` centres.
    separation : float, optional
        Public lower bound on the distance between two centres, in the data's units. From the user's question
        (groups nearer than this are the same to the user) or from other data; never from these records. Default: 8
        scales.
    scale : float, optional
        sigma, the standard deviation of each coordinate within a component, if it is public (an instrument's error, a
        standardisation by public numbers). With a `covariance_type` a rough one, better too large than too small:
        records are shortened to a multiple of it. Default: estimated privately, from a tenth of the budget.
    epsilon, delta : float
        The budget of one fit. delta is above 0: no method with a pure epsilon can do without a bound.
    adjacency, n_records
    columns : sequence of hashable, optional
        Of a dataframe: the columns to read. Default: all.
    n_blocks : int, optional
        Default: from the public or a noisy number of records and the noise.
    n_steps : int, default 3
        Noisy steps of Lloyd's algorithm on all records.
    block_solver : {"kmeans", "sdp"}
        How a block finds its centres; "sdp" is the paper's membership program, far slower, and takes a public scale.
    device : str, optional
        A device of torch for the blocks, e.g. "cuda". Default: NumPy.
    random_state
    max_components : int, optional
        For ``n_components="auto"`` alone: the largest k, public.
    covariance_type : {"spherical", "diag", "tied", "full"}, optional
        Covariances that are estimated when the centres are known, as scikit-learn's `GaussianMixture` has them: a scale
        of each component, variances of each component's columns, one matrix for all, a matrix of each. They take a
        tenth, two tenths, two tenths and three tenths of the budget. Default: spheres of one scale; a hundredth says
        whether that can be.

    Attributes
    ----------
    converged_ : bool
        Whether centres were found.
    status_ : str
        "found", or what was not found; then, where releases show more groups than centres, that `n_components` is too
        small.
    means_ : ndarray of shape (k, d) or None
        None where `converged_` is False.
    weights_ : ndarray of shape (k,) or None
        From the last noisy counts.
    covariances_ : ndarray or None
        As scikit-learn has them for the `covariance_type`: shape (k,), (k, d), (d, d) or (k, d, d); for none of them,
        (k,) times the squared scale.
    n_components_ : int
        k, or 0 where there are no centres.
    n_groups_ : int
        The number of groups that the releases show. If it is above `n_components_`, that is too small: blocks of
        records agree on places without a centre near them.
    wide_components_ : ndarray of bool, shape (k,), or None
        Components whose records spread wider than those of one group of the scale: two groups in one, or a larger
        scale. Without a `covariance_type` alone; None with one.
    counts_ : ndarray of int64, shape (k,), or None
        Those counts.
    scale_ : float or None
        The public scale, or its noisy estimate.
    n_blocks_ : int
    n_features_in_, feature_names_in_, release_, privacy_

    Notes
    -----
    Privacy: the only access to the records is one release of :mod:`pgmpy_dp.mixtures.noisy_centres`. `predict`,
    `predict_proba` and `score_samples` apply the released mixture to whatever records they get, without noise: on the
    private records their results are private too.

    References
    ----------
    Chen, Cohen-Addad, d'Orsi, Epasto, Imola, Steurer and Tiegel (2023), section 6, for the skeleton; see
    ``docs/mixtures.md``.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> centres = np.array([[500.0, 500.0], [510.0, 500.0], [500.0, 512.0]])
    >>> X = centres[rng.integers(3, size=20_000)] + rng.normal(size=(20_000, 2))
    >>> model = PrivateGaussianMixture(3, separation=10.0, scale=1.0, epsilon=1.0, delta=1e-6).fit(X)
    >>> model.status_
    'found'
    >>> bool(np.abs(np.sort(model.means_[:, 1]) - [500, 500, 512]).max() < 1)
    True
    """

    _tags: ClassVar[dict[str, Any]] = {
        "task": "clusters",
        "model_kind": "mixture",
        "guarantees": ("approximate",),
    }
    _release_kinds: ClassVar[tuple[str, ...]] = ("mixture",)
    _examples = (
        {"n_components": 2, "separation": 8.0, "scale": 1.0, "epsilon": 1.0, "delta": 1e-6},
        {"n_components": 2, "separation": 8.0, "epsilon": 1.0, "delta": 1e-6, "adjacency": "replace_one"}
        | {"n_records": 100},
    )

    rho: None = field(default=None, init=False)  # the guarantee has a delta
    n_blocks: int | None = option(None, whole(1, MAX_BLOCKS))
    n_steps: int = option(3, whole(2, 100))
    block_solver: str = option("kmeans", one_of(BLOCK_SOLVERS))
    device: str | None = option(None, by(checked_device))
    max_components: int | None = option(None, whole(1, MAX_COMPONENTS))
    covariance_type: str | None = option(None, by(checked_covariances))

    def fit_predict(self, X: Any) -> np.ndarray:
        """Fit, then the most probable component of each record; see :meth:`predict`.

        Parameters
        ----------
        X : array of shape (n, d), dataframe or PrivateVectors
            As `fit` takes it; a `PrivateVectors` does not hand its records out again.

        Returns
        -------
        ndarray of int of shape (n,)
            As private as the records: each label tells where its record is.

        Raises
        ------
        TypeError
            For a `PrivateVectors`, before anything is spent.
        ValueError
            As of `fit` and `predict`.
        """
        if isinstance(X, PrivateVectors):
            raise TypeError("X is a PrivateVectors, whose records stay inside; use fit(X), then predict(records)")
        self.fit(X)
        return self.predict(X)

    def predict(self, X: Any) -> np.ndarray:
        """The most probable component of each record.

        Parameters
        ----------
        X : array of shape (n, d)

        Returns
        -------
        ndarray of int of shape (n,)

        Raises
        ------
        NotFittedError, ValueError
            Before `fit`; where no centres were found; for records with other numbers of values, or values that are not
            finite.
        """
        return self.predict_proba(X).argmax(axis=1)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probability of each component given each record.

        Parameters
        ----------
        X : array of shape (n, d)

        Returns
        -------
        ndarray of shape (n, k)
            Rows sum to 1.

        Raises
        ------
        NotFittedError, ValueError
            As :meth:`predict`.
        """
        return responsibilities(self._points(X), self.means_, self.weights_, self._covariance_roots_)

    def score_samples(self, X: Any) -> np.ndarray:
        """Log-density of the mixture at each record, in nats; exact, so for public records.

        Parameters
        ----------
        X : array of shape (n, d)

        Returns
        -------
        ndarray of shape (n,)

        Raises
        ------
        NotFittedError, ValueError
            As :meth:`predict`.
        """
        return log_density(self._points(X), self.means_, self.weights_, self._covariance_roots_)

    def score(self, X: Any, y: None = None) -> float:
        """Mean log-density of records, in nats; exact, so for public records.

        Parameters
        ----------
        X : array of shape (n, d)
        y : None
            Ignored.

        Returns
        -------
        float

        Raises
        ------
        NotFittedError, ValueError
            As :meth:`predict`.
        """
        return float(self.score_samples(X).mean())

    def aic(self, X: Any) -> float:
        """Akaike's criterion of records, as scikit-learn has it: the lower the better; exact, so for public records.

        Parameters
        ----------
        X : array of shape (n, d)

        Returns
        -------
        float

        Raises
        ------
        NotFittedError, ValueError
            As :meth:`predict`.
        """
        return float(2.0 * self._n_parameters() - 2.0 * self.score_samples(X).sum())

    def bic(self, X: Any) -> float:
        """Schwarz's criterion of records, as scikit-learn has it: the lower the better; exact, so for public records.

        Parameters
        ----------
        X : array of shape (n, d)

        Returns
        -------
        float

        Raises
        ------
        NotFittedError, ValueError
            As :meth:`predict`.
        """
        logs = self.score_samples(X)
        return float(self._n_parameters() * math.log(len(logs)) - 2.0 * logs.sum())

    def sample(
        self, n_samples: int = 1, random_state: int | np.random.Generator | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Synthetic records and their components; as private as the release.

        Parameters
        ----------
        n_samples : int
        random_state : int, numpy.random.Generator or None
            Only for repeatable draws; it has no part in privacy.

        Returns
        -------
        records : ndarray of shape (n_samples, d)
        components : ndarray of int of shape (n_samples,)

        Raises
        ------
        NotFittedError, ValueError
            Before `fit`; where no centres were found.
        """
        self._require_centres()
        rng = np.random.default_rng(random_state)
        return sample_mixture(self.means_, self.weights_, self._covariance_roots_, n_samples, rng)

    def _check(self) -> None:
        require_value("n_components", self.n_components, "the number of components, at least 1")
        if self.separation is not None and self.scale is not None and not 1e-3 <= self.separation / self.scale <= 1e4:
            raise ValueError(
                f"separation={self.separation!r} with scale={self.scale!r}: their ratio must be between 0.001 and "
                "10000; a smaller separation is true too if centres are further apart than that"
            )
        if self.block_solver == "sdp" and self.scale is None:
            raise ValueError("scale=None with block_solver='sdp', which needs a public scale; pass one, or 'kmeans'")
        if (self.n_components == AUTO) != (self.max_components is not None):
            raise ValueError(
                f"n_components={self.n_components!r} with max_components={self.max_components!r}: 'auto' needs a "
                "public bound on the number of components, and a number of them needs none"
            )

    def _run(self, data: PrivateVectors, budget: Budget) -> Release:
        return noisy_centres.run(data, self._options, budget)

    def _learned(self, release: Release, privacy: Privacy) -> dict[str, Any]:
        fit = mixture_estimate(release)
        k = 0 if fit.means is None else len(fit.means)
        kind = fit.covariance_type or "spherical"
        return {
            "converged_": fit.means is not None,
            "status_": "; ".join([fit.status, *_too_few(fit)]),
            "means_": fit.means,
            "weights_": fit.weights,
            "counts_": None if fit.means is None else release["counts"].array.copy(),
            "scale_": fit.scale,
            "covariances_": fit.covariances,
            "n_components_": k,
            "n_groups_": fit.groups,
            "wide_components_": None if fit.covariance_type or not k else np.array(fit.wide, dtype=bool),
            "_covariance_roots_": None if fit.covariances is None else covariance_roots(fit.covariances, kind, k),
            "_covariance_type_": fit.covariance_type,
            "n_blocks_": release.public.get("n_blocks"),
        }

    def _n_parameters(self) -> int:
        """Free parameters, as scikit-learn counts them."""
        self._require_centres()
        k, d = self.means_.shape
        free = {None: 1, "spherical": k, "diag": k * d, "tied": d * (d + 1) // 2, "full": k * d * (d + 1) // 2}
        return free[self._covariance_type_] + k * d + k - 1

    def __str__(self) -> str:
        """The learned mixture in words, once there is one; from releases alone."""
        if not self.is_fitted:
            return super().__str__()
        lines = [f"{type(self).__name__}: {self.status_}", f"  {self.privacy_}"]
        if self.means_ is None:
            return "\n".join(lines)
        kind = f"covariance_type={self._covariance_type_!r}" if self._covariance_type_ else "spheres of one scale"
        components, columns = quantity(self.n_components_, "component"), quantity(self.n_features_in_, "column")
        lines.append(f"  {components} in {columns}, {kind}")
        lines.append(f"  groups that the releases show: {self.n_groups_}")
        for j, (weight, mean) in enumerate(zip(self.weights_, self.means_, strict=True)):
            wide = "  wider than one group" if self._covariance_type_ is None and self.wide_components_[j] else ""
            numbers = " ".join(f"{value:.6g}" for value in mean[:_SHOWN]) + (" ..." if len(mean) > _SHOWN else "")
            lines.append(f"  {j}: weight {weight:.3f}, mean [{numbers}]{wide}")
        return "\n".join(lines)

    def _require_centres(self) -> None:
        self.check_is_fitted()
        if self.means_ is None:
            raise ValueError(f"no centres were found ({self.status_}); fit with more records, epsilon or separation")

    def _points(self, X: Any) -> np.ndarray:
        self._require_centres()
        names = getattr(self, "feature_names_in_", None)
        if names is not None and hasattr(X, "columns"):
            X = X[list(names)]
        points = np.asarray(X, dtype=np.float64)
        if points.ndim != 2 or points.shape[1] != self.n_features_in_:
            raise ValueError(f"X has the shape {points.shape}; pass an array of shape (records, {self.n_features_in_})")
        if not np.isfinite(points).all():
            raise ValueError("X has values that are not finite; drop those records")
        return points


_SHOWN = 6  # numbers of a mean

_APART = "n_components looks too small: blocks of records agree on {} groups that have no centre near them"
_WIDE = (
    "n_components looks too small, or scale: {} of the components are wider than one group of the scale (groups taken "
    "together, or another scale: see covariance_type)"
)


def _too_few(estimate: MixtureEstimate) -> list[str]:
    """Signs of more groups than centres; of the releases alone."""
    if estimate.means is None:
        return []
    apart, wide = estimate.groups - len(estimate.means), sum(estimate.wide)
    return [_APART.format(apart)] * (apart > 0) + [_WIDE.format(wide)] * (wide > 0)
