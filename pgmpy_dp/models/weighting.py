"""Models that are weighted by one of their numbers, such as a survey's weight: of those whom the weights stand for."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.conditioning import conditioned
from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.models.decoding import Values
from pgmpy_dp.schema import decode_label, encode_label
from pgmpy_dp.shown import shown

if TYPE_CHECKING:
    from pgmpy_dp.models.markov_network import MarkovNetwork


@dataclass(frozen=True, eq=False)
class Weighting:
    """What a model was weighted by, from released numbers alone.

    Attributes
    ----------
    name : hashable
        The number, which the model is without.
    means : ndarray of shape (states,)
        The mean weight in each of its states, by its released density; 0 in states without a number.
    mean : float
        The mean weight of a record, those without one included.
    design_effect : float
        E[w^2]/E[w]^2 among records with a weight (Kish 1965): how many times as many records a share takes to be as
        sure as without weights, where it has nothing to do with the weights.
    scopes : tuple of tuple of hashable
        The tables of the model that was weighted.
    """

    name: Hashable
    means: np.ndarray
    mean: float
    design_effect: float
    scopes: tuple[tuple[Hashable, ...], ...] = ()

    @property
    def words(self) -> str:
        """A sentence on weighted answers.

        Examples
        --------
        >>> print(Weighting("w", np.array([2.0, 30.0]), 9.0, 1.6).words)
        Weighted by w. A record counts as the mean w of its cell, and a number of records is a sum of weights. Shares \
are about as sure as those of 62 % of the records would be without weights (design effect 1.6).
        """
        name, lacking = shown(self.name), "" if self.means.all() else " (one without it not at all)"
        return (
            f"Weighted by {name}. A record counts as the mean {name} of its cell{lacking}, and a number of records is "
            f"a sum of weights. Shares are about as sure as those of {100 / self.design_effect:.0f} % of the records "
            f"would be without weights (design effect {self.design_effect:.3g})."
        )

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form."""
        scopes = [[*map(encode_label, scope)] for scope in self.scopes]
        return vars(self) | {"name": encode_label(self.name), "means": self.means.tolist(), "scopes": scopes}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Weighting:
        """The inverse of :meth:`to_dict`."""
        scopes = tuple(tuple(map(decode_label, scope)) for scope in content["scopes"])
        told = {"name": decode_label(content["name"]), "means": np.array(content["means"]), "scopes": scopes}
        return cls(**{**content, **told})

    def applied(self, model: LogLinearModel) -> LogLinearModel:
        """The weighted distribution of the other variables: sum over w of p(x, w) E[w | state of w], normalised.

        The tables that have w become one, of all variables that share one with it.

        Examples
        --------
        >>> joint = LogLinearModel(Cliques(("ill", "w"), (2, 2), (("ill", "w"),)), np.log([0.3, 0.1, 0.2, 0.4]))
        >>> Weighting("w", np.array([1.0, 5.0]), 3.0, 1.4).applied(joint).marginal(["ill"]).round(3)
        array([0.267, 0.733])
        """
        size = dict(zip(model.cliques.variables, model.cliques.cardinalities, strict=True))
        parts = list(zip(model.cliques.scopes, model.cliques.split(model.theta), strict=True))

        def of(parts: list[tuple], names: tuple, inference: Any = model.inference) -> LogLinearModel:
            cliques = Cliques(names, tuple(map(size.__getitem__, names)), tuple(scope for scope, _ in parts))
            return LogLinearModel(cliques, cliques.join(table for _, table in parts), model.memory_limit, inference)

        star, left = ([part for part in parts if (self.name in part[0]) == there] for there in (True, False))
        others = tuple(name for name in size if name != self.name)
        if near := tuple(name for name in others if any(name in scope for scope, _ in star)):
            known = conditioned(of(star, (*near, self.name), "exact"), {self.name: self.means})
            with np.errstate(divide="ignore"):
                left.append((near, np.log(known.marginal(near))))
        return of(left, others)


def require_unweighted(model: Any, why: str) -> None:
    """Raise a ValueError for a model that is weighted."""
    if model.weighting is not None:
        raise ValueError(f"the model is weighted by {model.weighting.name!r}: {why}")


def reweighted(network: MarkovNetwork, weight: Hashable) -> MarkovNetwork:
    """The model that :meth:`~pgmpy_dp.MarkovNetwork.reweighted` returns."""
    import networkx as nx

    require_unweighted(network, "reweight the model that it was made from")
    there = [name for name, one in network.numbers.items() if one.kind == "number" and one.lower >= 0]
    if weight not in there or len(network) < 2:
        raise ValueError(
            f"weight={weight!r} must be one of the model's numbers from 0 on, beside other variables; these are "
            f"{there}. Declare weights as Number(lower, upper), with a lower bound of at least 0"
        )
    values, joint = network.within.get(weight) or Values(network.numbers[weight]), network.to_log_linear()
    table, means = joint.marginal([weight]), values.moments(1)
    effect = float(table @ values.moments(2) * values.share(table) / (table @ means) ** 2)
    weighting = Weighting(weight, means, float(table @ means), effect, joint.cliques.scopes)
    graph = nx.Graph(network)
    graph.add_edges_from(itertools.combinations(network.neighbors(weight), 2))
    graph.remove_node(weight)
    within = {name: one for name, one in network.within.items() if name != weight}
    schema, model = network._readable(), weighting.applied(joint)
    made = network.from_log_linear(model, graph, schema, network.privacy, within)
    made.latents, made.missing_at_random = set(network.latents) - {weight}, dict(network.missing_at_random)
    made.weighting = weighting
    if (posterior := network.posterior) is not None:
        # The draws keep the weight as a variable, so that an interval counts what was not measured of it; each has the
        # mean weights of its own density.
        draws, same = posterior.draws, posterior.within.get(weight, values).same_draws(posterior.draws.n_draws)
        drawn = np.array([one.moments(1) for one in same])
        ratios = np.log(np.divide(drawn, means, out=np.ones(drawn.shape), where=(drawn > 0) & (means > 0)))
        cliques = replace(draws.cliques, scopes=(*draws.cliques.scopes, (weight,)))
        draws = replace(draws, cliques=cliques, theta=np.hstack([draws.theta, ratios]))
        left = {name: one for name, one in posterior.within.items() if name != weight}
        told: dict[str, Any] = {"schema": made.schema, "graph": graph, "within": left}
        made.posterior = replace(posterior, draws=draws, weighting=weighting, **told)
    return made
