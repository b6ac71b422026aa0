"""PrivateBlockModel: communities of a graph whose edges are private."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from pgmpy_dp.communities import exponential_mechanism, noisy_power, randomised_response
from pgmpy_dp.communities.communities_base import communities
from pgmpy_dp.communities.operators.block_projection import ANALYSES
from pgmpy_dp.communities.operators.graph import PrivateGraph
from pgmpy_dp.learning.devices import checked_device
from pgmpy_dp.learning.options import Settings, by, flag, number, one_of, option, whole
from pgmpy_dp.learning.privacy_record import Privacy
from pgmpy_dp.learning.private_base import BasePrivateEstimator
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.sensitive import Release

METHODS = ("auto", "noisy-power", "randomized-response", "exponential", "sdp", "sdp-exact")


@dataclass(init=False)
class _Method:
    """The first options."""

    n_communities: int = option(2, whole(2))
    method: str = option("auto", one_of(METHODS))


class PrivateBlockModel(BasePrivateEstimator, _Method):
    """Communities of a stochastic block model, learned with differential privacy for the edges.

    Vertices are public; neighbours differ in one edge.

    Parameters
    ----------
    n_communities : int, default 2
    method : {"auto", "noisy-power", "randomized-response", "exponential", "sdp", "sdp-exact"}
        "noisy-power": power iteration on signs with noise in every round; for large graphs. "randomized-response":
        every pair of vertices answers, for up to 10,000 of them. "sdp", "sdp-exact": noisy projection on correlation
        matrices (Chen et al. 2023), on all edges or with a split of them; need torch and a delta or rho.
        "exponential": exact draws of two communities, for small sparse graphs. "auto" takes one of the
        first two by public numbers, and "exponential" for two communities of 12 to 22 vertices, where it takes no time.
    epsilon, delta, rho
    degree : float, optional
        A public average degree. Default: estimated inside the budget.
    bias : float, optional
        A public gamma in (0, 1] for "sdp" and "sdp-exact": edges inside of communities are 1 + (k-1) gamma times as
        likely as average, others 1 - gamma times. Default: 0.7.
    vote : bool, optional
        Whether part of the budget of "randomized-response" and "sdp" goes to a last noisy majority vote, which repairs
        most errors where a vertex has many neighbours, and harms where it has few. Default: with "sdp"; with answers,
        for two communities, where the average degree bears it. "noisy-power" is votes throughout, "sdp-exact"
        always has one, "exponential" never.
    device : str, optional
        A device of torch, e.g. "cuda", on which "sdp" and "sdp-exact" compute the projection. Default: that of pgmpy's
        torch backend, else the processor.
    analysis : {"tight", "published"}
        What the noise of the projection is for, with "sdp" and "sdp-exact": "tight", the smallest sensitivity that is
        proved, of the entries above the diagonal; "published", that of the paper, of the diagonal too, which is valid
        and takes at least 3.4 times the noise. With ``method="sdp"``, ``vote=False`` and a `degree` it is the paper's
        weak recovery.
    random_state

    Attributes
    ----------
    labels_ : dict of node to int
        From 0 to n_communities - 1; their order means nothing.
    scores_ : ndarray of shape (n, n_communities)
        In the order of `labels_`: how many (noisy, weighted) neighbours speak for each label.
    method_ : str
        The method that "auto" stands for.
    degree_ : float or None
        The average degree that was used.
    status_ : str
        Whether the labels may be chance, by the last noisy vote or the answers: post-processing of what was released.
    n_features_in_ : int
        The number of vertices; ``feature_names_in_`` has their names where all are text.
    release_, privacy_

    Notes
    -----
    Privacy: the only access to the edges is one release of :mod:`~pgmpy_dp.communities.noisy_power`,
    :mod:`~pgmpy_dp.communities.randomised_response`, :mod:`~pgmpy_dp.communities.published.noisy_projection` or
    :mod:`~pgmpy_dp.communities.exponential_mechanism`.
    Method: Chen, Cohen-Addad, d'Orsi, Epasto, Imola, Steurer and Tiegel 2023, and what beats it on their models; see
    ``docs/block-models.md``.
    Limits: labels are chance below thresholds. "auto" looks at n, k, the budget and `vote` alone; where vertices have
    few neighbours (karate: 5) only "exponential" is better than chance at epsilon 1. `scores_` and the margin of
    `predict_table` compare noisy sums and are no probabilities. The memory and rounds of "noisy-power" were chosen on
    the two-community models of its benchmark, and its start is random: under a pure epsilon, whose rounds are few, one
    run in ten near the threshold never finds the communities. Degrees are drawn towards their mean by how much of their
    variance chance explains; part of what unequal sizes of communities make of them is taken for unequal vertices, so
    pass `degree` where it is known. `status_` says nothing where there was no vote: exact draws of small graphs have
    none. "sdp" draws n(n - 1)/2 noisy numbers, which takes 6 s at 1,000 vertices and a minute and a half at 4,000, more
    than the projection.

    Examples
    --------
    >>> import numpy as np
    >>> from pgmpy_dp.communities.planted_graphs import error_rate, planted_labels, sample_block_model
    >>> rng = np.random.default_rng(0)
    >>> truth = planted_labels(1000, 2, rng)
    >>> graph = sample_block_model(truth, 100.0, 0.8, rng)
    >>> learner = PrivateBlockModel(epsilon=2.0, delta=1e-6).fit(graph)
    >>> error_rate(list(learner.labels_.values()), truth) < 0.01
    True
    >>> print(learner.privacy_)
    (2, 1e-06)-DP (by 0.088135-zCDP) under edge (noisy_power_gaussian)
    """

    _tags: ClassVar[dict[str, Any]] = {
        "task": "communities",
        "model_kind": "undirected",
        "data_kind": "graph",
        "adjacency": ("edge",),
    }
    _release_kinds: ClassVar[tuple[str, ...]] = ("communities",)
    _made_for = ("n_communities",)
    _examples = ({"epsilon": 1.0}, {"rho": 0.5, "n_communities": 3, "method": "noisy-power", "degree": 10.0})

    degree: float | None = option(None, number())
    bias: float | None = option(None, number(most=1))
    vote: bool | None = option(None, flag())
    device: str | None = option(None, by(checked_device))
    analysis: str = option("tight", one_of(ANALYSES))

    def fit(self, graph: Any, nodes: Iterable[Hashable] | None = None) -> PrivateBlockModel:
        """Find communities under the budget.

        Parameters
        ----------
        graph : networkx.Graph, pgmpy UndirectedGraph, matrix, dataframe, path of an edge list, or PrivateGraph
            See :class:`~pgmpy_dp.communities.operators.graph.PrivateGraph`, which is charged to its own ledger if it
            is passed.
        nodes : sequence of hashable, optional
            The public vertices; required for a dataframe or a file.

        Returns
        -------
        self

        Raises
        ------
        TypeError, ValueError
            For a public argument that cannot be used, before anything is spent.
        BudgetExceeded
            If the ledger of a `PrivateGraph` does not allow the budget; nothing is spent.
        ImportError
            If a method needs torch and it is not installed.
        """
        return self._fit(graph, nodes=nodes)

    def fit_predict(self, graph: Any, nodes: Iterable[Hashable] | None = None) -> np.ndarray:
        """Fit, then the labels alone; as private as the release.

        Parameters
        ----------
        graph, nodes
            See :meth:`fit`.

        Returns
        -------
        ndarray of int of shape (n,)
            In the order of `labels_`, which has them by vertex.
        """
        self.fit(graph, nodes)
        return np.array(list(self.labels_.values()))

    def predict_table(self) -> pd.DataFrame:
        """The vertices with their labels and scores, one row each.

        Returns
        -------
        pandas.DataFrame
            Columns "node", "label", "margin" (the score of the label over the next best, at least 0) and "score_0",
            "score_1", ...

        Raises
        ------
        NotFittedError
            Before `fit` or `fit_release`.
        """
        self.check_is_fitted()
        table = pd.DataFrame(
            {"node": pd.Series(list(self.labels_), dtype=object), "label": list(self.labels_.values())}
        )
        table["node"] = table["node"].infer_objects()
        best = self.scores_.copy()
        best.sort(axis=1)
        table["margin"] = best[:, -1] - best[:, -2]
        for label in range(self.scores_.shape[1]):
            table[f"score_{label}"] = self.scores_[:, label]
        return table

    def _private(self, X: Any, budget: Budget, nodes: Iterable[Hashable] | None = None) -> PrivateGraph:
        if not isinstance(X, PrivateGraph):
            return PrivateGraph(X, nodes, ledger=budget)
        if nodes is not None:
            raise ValueError("nodes was given beside a PrivateGraph, which has its own; pass nodes=None")
        return X

    def _check(self) -> None:
        for name in ("bias", "device"):
            if getattr(self, name) is not None and not self.method.startswith("sdp"):
                raise ValueError(
                    f"{name}={getattr(self, name)!r} is used by the methods 'sdp' and 'sdp-exact' only, not by "
                    f"{self.method!r}; pass {name}=None"
                )
        if self.analysis != "tight" and not self.method.startswith("sdp"):
            raise ValueError(
                f"analysis={self.analysis!r} is about the noise of the methods 'sdp' and 'sdp-exact', not of "
                f"{self.method!r}; leave it out"
            )
        if self.method == "exponential" and self.n_communities != 2:
            raise ValueError(
                f"n_communities={self.n_communities!r}: the exponential mechanism is drawn from exactly for two "
                "communities only; use method 'randomized-response' or 'noisy-power' for more"
            )

    def _run(self, data: PrivateGraph, budget: Budget) -> Release:
        settings, method = self._options, self.method
        if method == "auto":
            method = _automatic(data.n, settings, budget)
        if method == "noisy-power":
            return noisy_power.run(data, settings, budget)
        if method == "randomized-response":
            return randomised_response.run(data, settings, budget)
        if method == "exponential":
            return exponential_mechanism.run(data, settings, budget)
        # Imported where it is used: the solvers behind it need torch.
        from pgmpy_dp.communities.published import noisy_projection

        return noisy_projection.run(data, settings, budget)

    def _columns(self, release: Release) -> Sequence[Hashable]:
        return communities(release).nodes

    def _learned(self, release: Release, privacy: Privacy) -> dict[str, Any]:
        """Everything that a fit sets. Returned, not set: a fit that fails leaves this object as it was."""
        estimate = communities(release)
        return {
            "labels_": dict(zip(estimate.nodes, estimate.labels.tolist(), strict=True)),
            "scores_": estimate.scores,
            "method_": release.public["settings"]["method"],
            "degree_": estimate.degree,
            "status_": _STATUS[estimate.chance] + ("; interrupted" if "interrupted" in release.public else ""),
        }


_STATUS = {
    True: "labels may be chance: what was released agrees with them no more than noise, or a graph without groups, may",
    False: "labels agree with what was released beyond its noise",
    None: "labels were not voted on, or an earlier version kept nothing of it: nothing says whether they are chance",
}


_NO_TIME = range(12, 23)
"""Vertices for which exact draws list all labels, and are better than answers."""


def _automatic(n: int, settings: Settings, budget: Budget) -> str:
    """A method for n vertices, from public numbers alone: the one whose sums over neighbours have less noise."""
    if n > randomised_response.MAX_DENSE_VERTICES:
        return "noisy-power"
    k = settings.n_communities
    if k == 2 and n in _NO_TIME and not settings.vote:
        return "exponential"
    answers = randomised_response.answer_deviation(n, settings, budget)
    rounds = noisy_power.round_deviation(budget)
    # A round of power iteration needs less of it than answers do, where rounds are few (Laplace noise) much less. The
    # more communities, the more rounds it would take: then answers may have more noise. Factors are measured in
    # docs/block-models.md.
    factor = {2: 0.8, 3: 0.95}.get(k, 0.4 * k)
    pure = budget.rho is None and not budget.delta
    return "randomized-response" if answers < (2.5 if pure else 1.0) * factor * rounds else "noisy-power"
