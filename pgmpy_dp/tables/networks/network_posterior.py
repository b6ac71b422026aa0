"""Intervals of a network whose graph was chosen: a posterior given the graph, and how wrong the graph may be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import networkx as nx
import numpy as np

from pgmpy_dp.checks import checked_integer
from pgmpy_dp.learning.collective_base import Progress, progress_bar
from pgmpy_dp.learning.fine_grids import zeros
from pgmpy_dp.learning.maximum_a_posteriori import most_iterations
from pgmpy_dp.learning.maximum_likelihood import Fit
from pgmpy_dp.learning.noisy_marginals import NoisyMarginals
from pgmpy_dp.learning.noisy_tables import noisy_marginals
from pgmpy_dp.learning.prior_model import MOST_FITS_WITH_PRIOR
from pgmpy_dp.learning.probe_tables import probe_tables
from pgmpy_dp.models.markov_network import MarkovNetwork
from pgmpy_dp.models.posterior.discrepancy import Discrepancy, Drawn, Probe, learn_discrepancy
from pgmpy_dp.models.posterior.posterior_sampling import sample_posterior
from pgmpy_dp.models.posterior.posterior_view import ParameterPosterior
from pgmpy_dp.private.sensitive import Release
from pgmpy_dp.schema import decode_label
from pgmpy_dp.tables.networks.budget_shares import workload_positions
from pgmpy_dp.tables.networks.structure_base import tables_of

_DRAWS_OF_PROBES = 8
"""Draws for the variance of a residual, of which they are the smaller part."""


def network_posterior(
    release: Release,
    fit: Fit,
    noisy: NoisyMarginals,
    model: MarkovNetwork,
    learn: Callable[[Release, NoisyMarginals, Progress], tuple[Fit, NoisyMarginals]],
    n_draws: int,
    random_state: int | None,
) -> ParameterPosterior:
    """The posterior of a model that was learned from some tables of a release, with the discrepancy by its probes.

    Parameters
    ----------
    noisy : NoisyMarginals
        The tables that it was learned from.
    model : MarkovNetwork
        What the fit became.
    learn : callable
        How it was learned: from a release, some of its tables and what is called after each iteration to a fit and the
        tables that this has.
    random_state : int, optional
    """
    checked_integer("n_draws", n_draws, 2)  # intervals depend on the spread of the draws
    if (privacy := model.privacy) is None:
        raise ValueError("model_ was changed after it was learned; fit_release(release_) learns it again")
    rng = np.random.default_rng(random_state)
    draws = sample_posterior(noisy, fit, rng, n_draws=n_draws, dense_limit=0).obeying(zeros(release))
    graph = nx.Graph(model.edges)
    graph.add_nodes_from(model.nodes)
    # A probe's own table keeps its discrepancy: it is measured with a small share, and was not chosen for being wrong.
    discrepancy = probed_discrepancy(release, tables_of(release, range(probe_tables(release).start)), learn, rng)
    return ParameterPosterior(
        draws,
        release.schema,
        graph,
        privacy,
        noisy.n_records,
        noisy.n_records_sd,
        model.to_log_linear(),
        discrepancy,
        model.within,
        type(model),
    )


def probed_discrepancy(
    release: Release,
    measured: NoisyMarginals,
    learn: Callable[[Release, NoisyMarginals, Progress], tuple[Fit, NoisyMarginals]],
    rng: np.random.Generator,
) -> Discrepancy | None:
    """The discrepancy that probes show in a model that was learned from the other tables, `measured`."""
    probes = probe_tables(release)
    if not probes:
        return None
    names = release.schema.variables
    with progress_bar("without probes", most_iterations(n_fits=MOST_FITS_WITH_PRIOR)) as progress:
        fit, noisy = learn(release, measured, progress)
    draws = sample_posterior(noisy, fit, rng, n_draws=_DRAWS_OF_PROBES, dense_limit=0)
    scopes = [release.scopes[c] for c in probes]
    places = [tuple(measured.cliques.position[name] for name in scope) for scope in scopes]
    compared = []
    for c, place, expected, drawn in zip(
        probes, places, fit.model.marginals_of(scopes), draws.tables(places), strict=True
    ):
        probe, n = noisy_marginals(release, names, tables=[c]), noisy.n_records
        (shares,) = probe.cliques.split(probe.counts / n)
        (variance,) = probe.cliques.split(probe.cell_variance / n**2)
        compared.append(Probe(place, shares, variance, drawn, expected))
    # A table of a level says nothing about what differs within its states.
    at, levels = measured.cliques.position, measured.levels
    parts = (frozenset(at[name] for name in scope if name not in levels) for scope in measured.cliques.scopes)
    known = [part for part in parts if len(part) > 1]
    coarse = tuple(scope for scope in measured.cliques.scopes if not levels.keys().isdisjoint(scope))
    # The law that probes were drawn from.
    settings = release.public["settings"]
    wanted = [[*map(decode_label, labels)] for labels, _ in settings.get("workload", ())]
    within = tuple(map(frozenset, workload_positions(release.schema, wanted)))
    without = tuple(frozenset(names.index(decode_label(label)) for label in labels) for labels in settings["forbidden"])
    return replace(learn_discrepancy(compared, known, Drawn(max(map(len, scopes)), within, without)), levels=coarse)
