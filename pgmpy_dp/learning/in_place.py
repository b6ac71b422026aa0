"""Learning a pgmpy model in place: the user's own object gets the graph and the factors that an estimator learned."""

from __future__ import annotations

from typing import Any, TypeVar

import networkx as nx
from pgmpy.models import DiscreteBayesianNetwork, DiscreteMarkovNetwork, LinearGaussianBayesianNetwork
from pgmpy.parameter_estimator import base

from pgmpy_dp.learning.privacy_record import kept_with

Model = TypeVar("Model", DiscreteMarkovNetwork, DiscreteBayesianNetwork, LinearGaussianBayesianNetwork)


def fit_in_place(model: Model, data: Any, estimator: Any, sample_weight: Any = None, **whose: Any) -> Model:
    """Learn pgmpy's `DiscreteMarkovNetwork`, or a Bayesian network of states or of numbers, in place from private data.

    What ``MarkovNetwork.fit`` does, for pgmpy's own classes: the one has no ``fit`` in pgmpy 1.1.2, and that of the
    other takes estimators of pgmpy alone.

    Parameters
    ----------
    model : pgmpy.models.DiscreteMarkovNetwork, DiscreteBayesianNetwork or LinearGaussianBayesianNetwork
        Or one derived from them. An estimator of a given graph's parameters learns those of this graph. One that finds
        the edges gives a Markov network the graph of its own ``model_``, over all variables of the schema.
    data : dataframe, PrivateTable or PrivateVectors
        The records; see the estimator.
    estimator : instance of an estimator of this package
        One whose ``model_`` is a `MarkovNetwork`: of the tasks "parameters" and "parameters and graph" all,
        `PrivateNetwork`, and `PrivateChowLiu` with its parameters. Of a `LinearGaussianBayesianNetwork`:
        `PrivateLinearGaussian`.
    sample_weight : None
        Not supported by private estimators.
    **whose
        ``unit`` and ``rows_per_unit``, of persons with several records; see the estimator.

    Returns
    -------
    DiscreteMarkovNetwork, DiscreteBayesianNetwork or LinearGaussianBayesianNetwork
        The same object: a Markov network with the edges of the estimator's ``model_`` and copies of its factors, a
        Bayesian network with its own edges and new CPDs. pgmpy's own classes have no attribute for a guarantee:
        ``model.graph["privacy"]`` has it, and says when printed whether the model was changed since. If the fit fails
        the model is left as it was.

    Raises
    ------
    TypeError, ValueError
        For a model, an estimator or nodes that do not go together, before anything is spent; as `estimator.fit` else.

    Notes
    -----
    Privacy: post-processing of ``estimator.fit``. The guarantee is the estimator's ``privacy_``.
    pgmpy's own inference is what pgmpy's own class gets: `pgmpy_dp.MarkovNetwork` has exact inference in log space,
    values within states and lossless files (docs/pgmpy.md). Factors of a fit by loopy inference
    multiply to an approximately normalised model.

    Examples
    --------
    >>> import pandas as pd
    >>> from pgmpy.models import DiscreteMarkovNetwork
    >>> from pgmpy_dp.estimators import CollectiveMAP
    >>> data = pd.DataFrame({"rain": ["no"] * 700 + ["yes"] * 300, "wet": ["no"] * 600 + ["yes"] * 400})
    >>> states = {"rain": ["no", "yes"], "wet": ["no", "yes"]}
    >>> model = DiscreteMarkovNetwork([("rain", "wet")])
    >>> fit_in_place(model, data, CollectiveMAP(epsilon=1.0, state_names=states)) is model
    True
    >>> [factor.variables for factor in model.get_factors()], str(model.graph["privacy"].guarantee)
    ([['rain', 'wet']], '1-DP')
    """
    if not isinstance(model, DiscreteMarkovNetwork | DiscreteBayesianNetwork | LinearGaussianBayesianNetwork):
        raise TypeError(
            f"model is a {type(model).__name__}, which has no factors; pass a DiscreteMarkovNetwork of pgmpy or of "
            "this package, such as DiscreteMarkovNetwork(graph.edges), a DiscreteBayesianNetwork or a "
            "LinearGaussianBayesianNetwork"
        )
    if isinstance(estimator, type) or not hasattr(estimator, "fit"):
        raise TypeError(
            f"estimator={estimator!r} must be an instance, for example CollectiveMAP(epsilon=1.0, state_names=...)"
        )
    if isinstance(model, LinearGaussianBayesianNetwork) != isinstance(estimator, base.GaussianParameterEstimator):
        raise TypeError(
            f"{type(estimator).__name__} learns no {type(model).__name__}; of numbers PrivateLinearGaussian does"
        )
    if not _finds_graph(estimator):
        estimator.fit(model, data, sample_weight=sample_weight, **whose)
        _assign(model, estimator)
        return model
    if isinstance(model, DiscreteBayesianNetwork):
        raise TypeError(
            f"estimator is a {type(estimator).__name__}, which finds an undirected graph, and the model is directed; "
            "use an estimator of a given graph's parameters, or estimator.fit(data).model_.to_bayesian_network()"
        )
    if not estimator._learns_parameters():
        raise TypeError(
            f"estimator is a {type(estimator).__name__} that learns no parameters of a Markov network; use its fit(X), "
            "or an estimator that has a model_ of that kind"
        )
    if sample_weight is not None:
        raise ValueError("sample_weight was given, which private estimators do not support; pass sample_weight=None")
    _require_room(model, estimator, estimator._schema_of(data, **whose))
    estimator.fit(data, **whose)
    _assign(model, estimator)
    return model


def _finds_graph(estimator: Any) -> bool:
    """Whether an estimator finds a graph; others learn a given graph's. An attribute tells: models import none."""
    return hasattr(estimator, "_learns_parameters") and not isinstance(estimator, base.BaseParameterEstimator)


def _require_room(model: nx.Graph, estimator: Any, variables: Any) -> None:
    """Refuse to lose what the user put into the graph without a word."""
    unknown = [name for name in model if name not in variables]
    if unknown:
        raise ValueError(f"the model has the nodes {unknown}, which the schema does not declare; remove them")
    told = getattr(estimator, "graph", None)
    told = getattr(estimator, "required_edges", None) if told is None else told
    sets = [set(item) for item in (told.edges if isinstance(told, nx.Graph) else told or ())]
    lost = [edge for edge in model.edges if not any(set(edge) <= one for one in sets)]
    if lost:
        raise ValueError(
            f"the model has the edges {lost[:5]}, and {type(estimator).__name__} finds the edges itself; remove them "
            "(model.remove_edges_from(list(model.edges))), tell the estimator of them (graph= or required_edges=, "
            "where it has one), or use an estimator of a given graph's parameters"
        )


def _assign(model: Any, estimator: Any) -> None:
    """Give the model what was learned; nothing here can fail halfway."""
    learned: Any = getattr(estimator, "model_", None)
    if isinstance(model, DiscreteBayesianNetwork | LinearGaussianBayesianNetwork):
        model.cpds = [cpd.copy() for cpd in estimator.parameters_]
    else:
        copies = [factor.copy() for factor in (estimator.parameters_ if learned is None else learned.factors)]
        if _finds_graph(estimator):
            model.remove_edges_from([edge for edge in model.edges if not learned.has_edge(*edge)])
            model.add_nodes_from(learned.nodes)
        model.add_edges_from(getattr(learned, "edges", ()))  # of given graphs: those that rules need
        model.factors = copies
    privacy = getattr(estimator, "privacy_", None)
    if hasattr(model, "_take_over"):  # this package's own
        model._take_over(learned, privacy)
    else:
        kept_with(model, privacy)
