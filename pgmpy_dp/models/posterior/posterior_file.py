"""A posterior within a model's file: draws as float32, everything else in full."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.junction_tree import DEFAULT_MEMORY_LIMIT
from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.learning.privacy_record import Privacy
from pgmpy_dp.models.decoding import Values
from pgmpy_dp.models.posterior.discrepancy import Discrepancy, Drawn
from pgmpy_dp.models.posterior.posterior_draws import Posterior
from pgmpy_dp.models.posterior.posterior_view import ParameterPosterior
from pgmpy_dp.models.weighting import Weighting
from pgmpy_dp.schema import Schema, decode_label, encode_label

if TYPE_CHECKING:
    import networkx as nx

    from pgmpy_dp.models.markov_network import MarkovNetwork

_PREFIX = "posterior_"


def posterior_to_parts(posterior: ParameterPosterior) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The posterior's JSON-able part, and its arrays by name."""
    draws, discrepancy = posterior.draws, posterior.discrepancy
    header = {
        "variables": [encode_label(name) for name in draws.cliques.variables],
        "scopes": [list(scope) for scope in draws.cliques.indices],
        "method": draws.method,
        "status": draws.status,
        "n_records": posterior.n_records,
        "n_records_sd": posterior.n_records_sd,
        "measured": None if discrepancy is None else [sorted(known) for known in discrepancy.measured],
        "kinds": [] if discrepancy is None else list(discrepancy.weights),
    }
    arrays = {f"{_PREFIX}draws": draws.theta.astype(np.float32)}
    for name, values in posterior.within.items():
        if values.density is not None and name in draws.cliques.position:
            kept = values.density.same_draws(draws.n_draws)
            arrays[_within_name(draws.cliques, name)] = kept.astype(np.float32)
    if posterior.model is not None:
        place = draws.cliques.position  # the model may have its variables in another order
        header["model"] = [[place[name] for name in scope] for scope in posterior.model.cliques.scopes]
        arrays[f"{_PREFIX}model"] = posterior.model.theta
    if discrepancy is not None:
        drawn = discrepancy.drawn
        header["probes"] = {
            "order": drawn.order,
            "within": [sorted(wanted) for wanted in drawn.within],
            "without": [sorted(banned) for banned in drawn.without],
        }
        header["levels"] = [[*map(encode_label, scope)] for scope in discrepancy.levels]
        arrays |= {f"{_PREFIX}tau_{kind}": weights for kind, weights in discrepancy.weights.items()}
    return header, arrays


def _within_name(cliques: Cliques, name: Hashable) -> str:
    return f"{_PREFIX}within_{cliques.position[name]}"


def posterior_from_parts(
    header: Mapping[str, Any],
    arrays: Mapping[str, np.ndarray],
    schema: Schema,
    graph: Mapping[Hashable, Sequence[Hashable]] | nx.Graph,
    privacy: Privacy,
    within: Mapping[Hashable, Values],
    weighting: Weighting | None = None,
    network: type[MarkovNetwork] | None = None,
) -> ParameterPosterior:
    """The posterior of :func:`posterior_to_parts`, of a model with this schema and graph."""
    names = tuple(decode_label(name) for name in header["variables"])
    hidden = {} if weighting is None else {weighting.name: len(weighting.means)}
    sizes = tuple(hidden.get(name) or schema.cardinality(name) for name in names)

    def layout(scopes: list[list[int]]) -> Cliques:
        return Cliques(names, sizes, tuple(tuple(names[i] for i in scope) for scope in scopes))

    theta = np.asarray(arrays[f"{_PREFIX}draws"], dtype=np.float64)
    if np.isnan(theta).any():
        raise ValueError("the draws of its posterior are no numbers")
    if len(theta) > 1 and theta.size and (theta == theta[0]).all():
        raise ValueError("the draws of its posterior are all the same, so that no interval would have a width")
    draws = Posterior(layout(header["scopes"]), theta, header["method"], header["status"], DEFAULT_MEMORY_LIMIT)
    model = discrepancy = None
    if "model" in header:
        model = LogLinearModel(layout(header["model"]), np.asarray(arrays[f"{_PREFIX}model"]), DEFAULT_MEMORY_LIMIT)
    if header["measured"] is not None:
        weights = {kind: np.asarray(arrays[f"{_PREFIX}tau_{kind}"]) for kind in header["kinds"]}
        told = header.get("probes", {})  # files of before do not say: no workload, nothing forbidden
        sets = (tuple(map(frozenset, told.get(part, ()))) for part in ("within", "without"))
        drawn = Drawn(told.get("order", 3), *sets)
        levels = tuple(tuple(map(decode_label, scope)) for scope in header.get("levels", ()))
        discrepancy = Discrepancy(tuple(map(frozenset, header["measured"])), weights, drawn, levels)
    with_draws = dict(within)
    for name, values in within.items():
        if values.density is None or name not in draws.cliques.position:
            continue
        kept = arrays.get(_within_name(draws.cliques, name))
        if kept is not None:  # files of before have none
            with_draws[name] = replace(values, density=values.density.keeping(kept))
    n, sd = header["n_records"], header["n_records_sd"]
    return ParameterPosterior(draws, schema, graph, privacy, n, sd, model, discrepancy, with_draws, network, weighting)
