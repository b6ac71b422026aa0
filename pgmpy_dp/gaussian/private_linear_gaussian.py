"""PrivateLinearGaussian: a linear Gaussian Bayesian network from noisy second moments of clipped records."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from statistics import NormalDist
from typing import Any, ClassVar, Self

import networkx as nx
import numpy as np
import pandas as pd
from pgmpy.factors.continuous import LinearGaussianCPD
from pgmpy.models import DiscreteBayesianNetwork, LinearGaussianBayesianNetwork
from pgmpy.parameter_estimator import base

from pgmpy_dp.checks import checked_number
from pgmpy_dp.gaussian import noisy_moments
from pgmpy_dp.gaussian.moment_errors import mean_and_count_deviations, moment_errors, regression
from pgmpy_dp.gaussian.moments_base import BaseMomentsEstimator, checked_center
from pgmpy_dp.gaussian.noisy_moments import SCALINGS, checked_bounds, noisy_covariance
from pgmpy_dp.learning.options import by, column, one_of, option
from pgmpy_dp.learning.privacy_record import Privacy, kept_with, released
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.data.vectors import PrivateVectors
from pgmpy_dp.private.operators.vector_operators import MECHANISMS, checked_norm
from pgmpy_dp.private.sensitive import Release


class PrivateLinearGaussian(BaseMomentsEstimator, base.GaussianParameterEstimator):
    """Regressions of each variable on its parents in a directed graph, under differential privacy.

    What pgmpy's ``LinearGaussianMLE`` is without privacy. Second moments of clipped records are released once, with
    noise, as for :class:`~pgmpy_dp.estimators.PrivateGraphicalLasso`, and all regressions are computed from them: their
    number costs nothing.

    Parameters
    ----------
    epsilon, delta, rho
    row_norm : float
        Public: the l2 norm to which a record, less the centre, is shortened, see
        :class:`~pgmpy_dp.estimators.PrivateGraphicalLasso`. Required without `bounds`.
    mechanism : str
        Noise of the second moments: "auto", the best for the budget, or one that is named there.
    center : sequence of numbers or "private"
        What is subtracted from the records: public numbers, which are taken for the means, or a noisy mean.
    center_radius : float, optional
        For a private centre without `bounds`: public distance from zero within which the mean lies.
    bounds : mapping or sequence of (lower, upper), optional
        Public bounds of each column, in its own units, in the place of `row_norm`: ``{"height": (1.2, 2.2)}``, a pair
        for each column, or a schema of :class:`~pgmpy_dp.Number`. Values are clipped to them.
    scaling : {"private", "bounds"}
        Of `bounds`: whether a tenth of the budget finds the scale of each column, or the bounds say it.
    columns : sequence of hashable, optional
        Columns to read; default: those of the model. Of an array: names. Further ones only add noise.
    unit : hashable, optional
        Column of a dataframe that says whose record it is: then all records of a person are protected together.
    adjacency
    n_records : int, optional
        The number of records (of persons, with `unit`), if it is public. Required under "replace_one". Without it a
        small share of the budget pays for a noisy one.
    random_state

    Attributes
    ----------
    parameters_ : list of pgmpy.factors.continuous.LinearGaussianCPD
        One for each variable, in the order of the model. All deviations are above 0.
    model_ : pgmpy.models.LinearGaussianBayesianNetwork
        The same graph with them.
    standard_errors_ : dict of variable to ndarray of shape (1 + number of parents,)
        Of each CPD's ``beta``, by sampling and noise.
    n_raised_ : int
        How many eigenvalues of the noisy moments were raised to the noise's standard deviation, so that the matrix is
        positive definite. Where it is not 0, columns nearly repeat each other or noise hides them: coefficients are
        pulled toward 0, and intervals do not cover that.
    location_ : ndarray of shape (d,)
        The means: the public ones, or the noisy ones.
    scales_ : ndarray of shape (d,)
        What the columns were divided by: ones where no bounds were given.
    columns_ : tuple
    noise_sd_ : float
        Standard deviation of the noise in an entry off the diagonal of what was released, over the two columns'
        `scales_`.
    n_records_ : float
        The public number, or the noisy one.
    release_ : Release
        For :meth:`fit_release`, here and of ``PrivateGraphicalLasso``: other graphs cost nothing.
    privacy_, n_features_in_, feature_names_in_

    Notes
    -----
    Privacy: the only access to the records is one release of :mod:`pgmpy_dp.gaussian.noisy_moments`, which has the
    guarantee. Everything else is computed from it and public arguments.

    With S the covariance, a variable y with the parents p has the coefficients ``b = S_pp^-1 S_py``, the intercept
    ``m_y - b'm_p`` and the variance ``S_yy - b'S_py``. S is repaired first, and what shortening does to Gaussian
    records is taken back (:func:`~pgmpy_dp.gaussian.moment_errors.moment_errors`).

    References
    ----------
    .. [1] Wang, D., Huai, M. and Xu, J. (2018). Differentially private sparse inverse covariance estimation.

    Examples
    --------
    >>> from pgmpy.models import LinearGaussianBayesianNetwork
    >>> age = np.random.default_rng(0).normal(50.0, 10.0, size=50_000)
    >>> pressure = 90.0 + 0.6 * age + np.random.default_rng(1).normal(0.0, 8.0, size=50_000)
    >>> data = pd.DataFrame({"age": age, "pressure": pressure})
    >>> estimator = PrivateLinearGaussian(epsilon=1.0, bounds={"age": (0, 120), "pressure": (50, 250)})
    >>> model = LinearGaussianBayesianNetwork([("age", "pressure")]).fit(data, estimator=estimator)
    >>> bool(abs(model.get_cpds("pressure").beta[1] - 0.6) < 0.05)
    True
    >>> estimator.intervals().columns.tolist()
    ['coefficient', 'lower', 'upper']
    """

    _tags: ClassVar[dict[str, Any]] = {"task": "parameters", "model_kind": "directed"}
    _release_kinds: ClassVar[tuple[str, ...]] = ("covariance",)
    _examples = ({"bounds": [(-9.0, 9.0)] * 3, "epsilon": 1.0},)

    row_norm: float | None = option(None, by(checked_norm))
    mechanism: str = option("auto", one_of(MECHANISMS))
    center: Sequence[float] | str = option("private", by(checked_center))
    center_radius: float | None = option(None, by(checked_norm))
    bounds: Any = option(None, by(checked_bounds))
    scaling: str = option("private", one_of(SCALINGS))
    unit: Hashable | None = option(None, by(column))

    def fit(self, model: nx.DiGraph, data: Any, sample_weight: None = None) -> Self:  # type: ignore[override]
        """Release the moments under the budget, then learn the regressions from them.

        Parameters
        ----------
        model : LinearGaussianBayesianNetwork, or another directed graph without directed cycles
            Its nodes are columns of the data. It is not changed, see ``model.fit(data, estimator=...)`` of pgmpy and
            :func:`pgmpy_dp.fit_in_place`.
        data : dataframe, array of shape (n, d), path or PrivateVectors
            `PrivateVectors` are charged to their own ledger, which several fits can share.
        sample_weight : None
            Not supported: a record of weight w would need w times the noise.

        Returns
        -------
        self

        Raises
        ------
        TypeError, ValueError
            For a public argument that cannot be used, before anything is spent. Nothing is raised because of a record.
        BudgetExceeded
            If the ledger of private data does not allow the budget; nothing is spent.
        """
        if sample_weight is not None:
            raise ValueError("sample_weight was given, which private estimators do not support; pass None")
        graph = checked_dag(model)
        taken, private, budget = self._prepared(data, default=None if isinstance(data, np.ndarray) else tuple(graph))
        _require_columns(graph, private.columns)
        return self._take(taken, released(private, taken._run, budget), private, graph=graph)

    def fit_release(self, model: nx.DiGraph, release: Release) -> Self:  # type: ignore[override]
        """Learn again from moments that were released before; needs no records and costs nothing.

        Parameters
        ----------
        model : LinearGaussianBayesianNetwork, or another directed graph without directed cycles
            Its nodes are columns of the release.
        release : Release
            As in ``release_``, also of ``PrivateGraphicalLasso`` with a centre, or read by ``Release.load``.

        Returns
        -------
        self

        Raises
        ------
        TypeError, ValueError
            For a release of another kind, or of moments that are about no mean, and for variables that it lacks.
        """
        graph, taken = checked_dag(model), self._as_checked()
        taken._check_release(release)
        _require_columns(graph, noisy_covariance(release).columns)
        return self._take(taken, release, graph=graph)

    def intervals(self, level: float = 0.9) -> pd.DataFrame:
        """Intervals of all coefficients, from sampling and from the known law of the noise.

        To first order in both errors: where noise is as large as a parent's variance they are too narrow. They suppose
        that records are Gaussian about their mean, and that few are outside of the bounds. Of persons with several
        records they are too wide: those vary less than one record each.

        Parameters
        ----------
        level : float
            How often an interval holds its coefficient.

        Returns
        -------
        DataFrame
            Indexed by variable and parent ("(Intercept)" first); columns ``coefficient``, ``lower`` and ``upper``.

        Raises
        ------
        NotFittedError
            Before `fit` or `fit_release`.
        ValueError
            For a level that is not between 0 and 1.
        """
        self.check_is_fitted()
        reach = NormalDist().inv_cdf((1 + checked_number("level", level, positive=True, below_one=True)) / 2)
        index = [(cpd.variable, name) for cpd in self.parameters_ for name in ("(Intercept)", *cpd.evidence)]
        beta = np.concatenate([cpd.beta for cpd in self.parameters_])
        half = reach * np.concatenate([self.standard_errors_[cpd.variable] for cpd in self.parameters_])
        values = {"coefficient": beta, "lower": beta - half, "upper": beta + half}
        return pd.DataFrame(values, pd.MultiIndex.from_tuples(index, names=["variable", "parent"]))

    def _check(self) -> None:
        self._check_norm_or_bounds()
        self._check_center()

    def _check_release(self, release: Release) -> None:
        super()._check_release(release)
        if release.public["center"] is None:
            raise ValueError("release has center=None, and tells no mean: pass one with a public or private center")

    def _run(self, data: PrivateVectors, budget: Budget) -> Release:
        return noisy_moments.run(data, self._options, budget)

    def _learned(self, release: Release, privacy: Privacy, *, graph: nx.DiGraph) -> dict[str, Any]:
        noisy = noisy_covariance(release)
        errors = moment_errors(noisy, *mean_and_count_deviations(release, noisy))
        place = {name: k for k, name in enumerate(noisy.columns)}
        model, standard_errors = LinearGaussianBayesianNetwork(), {}
        model.add_nodes_from(graph.nodes)
        model.add_edges_from(graph.edges)
        for name in graph:
            parents = list(graph.predecessors(name))
            beta, sd, standard_errors[name] = regression(errors, place[name], [place[parent] for parent in parents])
            model.add_cpds(LinearGaussianCPD(name, beta, sd, parents))
        return {
            "parameters_": [cpd.copy() for cpd in model.cpds],
            "model_": kept_with(model, privacy),
            "standard_errors_": standard_errors,
            "n_raised_": errors.n_raised,
            "location_": noisy.location,
            "scales_": noisy.scales,
            "columns_": noisy.columns,
            "noise_sd_": noisy.sd,
            "n_records_": float(noisy.n_records),
        }


def checked_dag(model: Any) -> nx.DiGraph:
    """A directed graph without directed cycles, of numbers; TypeError or ValueError for anything else."""
    if not isinstance(model, nx.DiGraph) or isinstance(model, DiscreteBayesianNetwork) or model.is_multigraph():
        # No part of it is shown: arguments in the wrong order are records.
        raise TypeError(
            f"model is a {type(model).__name__}; pass fit(model, data), the model a LinearGaussianBayesianNetwork"
        )
    if not len(model) or not nx.is_directed_acyclic_graph(model) or getattr(model, "latents", None):
        raise ValueError("model has no nodes, directed cycles or latent variables; pass a graph of columns without")
    return model


def _require_columns(graph: nx.DiGraph, columns: Sequence[Hashable]) -> None:
    if absent := [name for name in graph if name not in columns]:
        raise ValueError(f"the model has the nodes {absent}, and the columns are {list(columns)}; remove them")
