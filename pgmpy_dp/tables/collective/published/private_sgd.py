"""PrivateSGD: stochastic gradient ascent on the likelihood with clipped, noisy gradients."""

from __future__ import annotations

import math
from dataclasses import field
from typing import Any, ClassVar

import networkx as nx

from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.exact_or_loopy import Inference
from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.learning.collective_base import BaseMarginalsEstimator, on_graph
from pgmpy_dp.learning.maximum_likelihood import Fit
from pgmpy_dp.learning.noisy_marginals import NoisyMarginals
from pgmpy_dp.learning.options import Settings, number, option, whole
from pgmpy_dp.learning.privacy_record import Privacy, steps_taken
from pgmpy_dp.learning.private_base import TABLE_EXAMPLES
from pgmpy_dp.models.markov_network import MarkovNetwork
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.data.table import PrivateTable
from pgmpy_dp.private.sensitive import Release
from pgmpy_dp.tables.collective.published import gradient_ascent


class PrivateSGD(BaseMarginalsEstimator):
    """Private parameters by stochastic gradient ascent (Abadi et al. 2016), the general-purpose method.

    It needs a delta (or rho): there is no pure guarantee. Its release is a vector of parameters, not tables of counts:
    nothing else can be learned from it, and it takes hundreds of passes where :class:`CollectiveMAP` counts once.

    Parameters
    ----------
    epsilon, delta, rho : float
        The budget of one fit: ``epsilon`` with ``delta`` (at most 1 over the number of records), or ``rho`` alone.
    state_names
    adjacency : {"add_remove", "replace_one"}
        The accounting is for "add_remove". A replacement counts as a removal and an addition, at about half the
        epsilon each.
    n_records : int, optional
        The number of records, if it is public. Otherwise a twentieth of the budget pays for a noisy count.
    cliques : list of tuple of variables, optional
        Tables of parameters; default: the graph's edges and isolated nodes.
    n_steps : int
    batch_rate : float, optional
        Probability with which each record, independently, takes part in a step. Default: 1/4; 1 for a rho budget,
        which sampling does not stretch.
    clip_norm : float, optional
        Bound on the l2 norm of one record's gradient. Default: sqrt(number of tables).
    learning_rate : float, optional
        Of all steps. Default: as high as the public noise level allows, and never above what steps are stable at.
        One that you name is not checked.
    memory_limit : int
        Bytes that exact inference may take.
    random_state

    Attributes
    ----------
    parameters_, model_, privacy_, n_features_in_, feature_names_in_
    release_ : Release
        The averaged parameters: save it to learn again without the records and without further cost.
    n_records_, n_records_sd_ : float
        The public number of records, or its noisy count (at least 1) with the noise's standard deviation.
    converged_ : bool
        Always False: the number of steps is fixed beforehand, and nothing about the data may decide it.
    status_ : str
    n_iter_ : int
        Number of steps.
    objective_ : float
        NaN: the likelihood is not released.

    Notes
    -----
    Privacy: the only access to the records is :mod:`pgmpy_dp.tables.collective.published.gradient_ascent`, and
    ``private/curator/gradient.md`` has the proof; the rest is post-processing.
    Method: Abadi, Chu, Goodfellow, McMahan, Mironov, Talwar and Zhang (2016); compared with collective models by
    Bernstein, McKenna, Sun, Sheldon, Hay and Miklau (2017), section 4.
    Limits: at the default learning rate steps are stable around the likelihood's maximum, for every model and every
    noise. Tests show that steps from parameters 0 get there; no theorem says so. 200 steps do not always suffice: on
    the third-order chain of a million records at epsilon 1 the divergence is fourteen times that of
    :class:`CollectiveMAP` from Gaussian tables (``benchmarks/results/paper.md``). Where the signal is weak it can be
    worse than uniform. Renyi divergences state about a tenth more epsilon than privacy loss distributions do for
    continuous noise; those are no bound for noise of integers. An epsilon below about 0.001 may be refused.

    Examples
    --------
    >>> import pandas as pd
    >>> from pgmpy_dp import MarkovNetwork
    >>> data = pd.DataFrame({"rain": ["no"] * 700 + ["yes"] * 300, "wet": ["no"] * 600 + ["yes"] * 400})
    >>> states = {"rain": ["no", "yes"], "wet": ["no", "yes"]}
    >>> estimator = PrivateSGD(epsilon=1.0, delta=1e-3, state_names=states).fit(MarkovNetwork([("rain", "wet")]), data)
    >>> round(float(estimator.model_.marginal(["rain"]).values[0]), 1)
    0.7
    """

    _tags: ClassVar[dict[str, Any]] = {"guarantees": ("zcdp", "approximate")}
    _release_kinds: ClassVar[tuple[str, ...]] = ("log_potentials",)
    _examples = ({**TABLE_EXAMPLES[0], "delta": 1e-3}, {**TABLE_EXAMPLES[1], "n_steps": 20})

    n_steps: int = option(200, whole(1, 10**6))
    batch_rate: float | None = option(None, number(most=1))
    clip_norm: float | None = option(None, number())
    learning_rate: float | None = option(None, number())
    # Options of noisy tables, which this one does not have.
    noise: str = field(default="auto", init=False)
    weights: None = field(default=None, init=False)
    inference: Inference = field(default="exact", init=False)

    def _run(self, table: PrivateTable, settings: Settings, budget: Budget) -> Release:
        return gradient_ascent.run(table, settings, budget)

    def _rehearse(self) -> None:
        """Nothing to rehearse: the settings are checked, and after the release nothing is optimised."""

    def _learn(self, noisy: NoisyMarginals, progress: Any) -> Fit:
        raise NotImplementedError("PrivateSGD learns from no tables; see _learned")

    def _learned(self, release: Release, privacy: Privacy, *, graph: nx.Graph, passed: nx.Graph) -> dict[str, Any]:
        schema = release.schema
        variables = tuple(graph.nodes)
        cliques = Cliques(variables, tuple(schema.cardinality(name) for name in variables), release.scopes)
        learned = LogLinearModel(cliques, gradient_ascent.parameters(release), self.memory_limit)
        model = MarkovNetwork.from_log_linear(learned, graph, self._schema(release, graph), privacy)
        count = release["n_records"] if release.n_records is None else None
        n_steps = release.public["path"]["n_steps"]
        n_records, noise = (release.n_records, None) if count is None else (count.array[0], count.noise)
        return {
            **on_graph(model, passed, release),
            "n_records_": max(float(n_records or 0), 1.0),
            "n_records_sd_": math.sqrt(noise.variance) if noise else 0.0,
            "converged_": False,
            "status_": steps_taken(release, n_steps, "before the first"),
            "n_iter_": n_steps,
            "objective_": math.nan,
        }
