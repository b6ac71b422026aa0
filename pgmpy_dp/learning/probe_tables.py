"""Tell a release's required and chosen tables from its probes, which are drawn at random and measured last."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence

import networkx as nx
import pandas as pd

from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.scope_marginals import admissible
from pgmpy_dp.private.sensitive import Release


def chosen_tables(release: Release) -> list[int]:
    """Places of the tables that were required or chosen: those of several variables, before probes."""
    return [c for c in range(probe_tables(release).start) if len(release.scopes[c]) > 1]


def probe_tables(release: Release) -> range:
    """Places of a release's probes: its last tables, if it has any."""
    return range(len(release.values) - release.public.get("probes", 0), len(release.values))


def joined_probes(release: Release, cliques: Cliques) -> list[int]:
    """Places of the probes that can be added to a model with these tables, one after the other.

    Parameters
    ----------
    cliques : Cliques
        The tables other than probes, and what rules about impossible records add.
    """
    joined = []
    for c in probe_tables(release):
        scope = tuple(sorted(cliques.position[name] for name in release.scopes[c]))
        if admissible(cliques, [scope], release.public["settings"]["max_clique_cells"]):
            joined.append(c)
            cliques = Cliques(cliques.variables, cliques.cardinalities, (*cliques.scopes, release.scopes[c]))
    return joined


def search_course(release: Release, n_records: float) -> pd.DataFrame:
    """The course of a search: a row for each table that was required or chosen."""
    places = chosen_tables(release)
    measured = [release.scopes[c] for c in places]
    rows = [
        {
            "round": record["round"],
            "variables": scope,
            "share": record["share"],
            "noise_scale": math.nan if (noise := release.noise[c]) is None else noise.scale,
            "candidates": record["candidates"],
            "error_before": max(record["misfit"] - record["offset"], 0.0) / (2.0 * n_records),
            "change": record["change"] / (2.0 * n_records),
            "repeated": scope in measured[:k],
        }
        for k, (c, scope, record) in enumerate(zip(places, measured, release.public["rounds"], strict=True))
    ]
    columns = ["round", "variables", "share", "noise_scale", "candidates", "error_before", "change", "repeated"]
    return pd.DataFrame(rows, columns=columns)


def tables_within(release: Release, graph: nx.Graph) -> list[int]:
    """Places of the tables that a model of a graph is learned from: all but probes that need further edges."""
    probes = probe_tables(release)
    return [c for c, scope in enumerate(release.scopes) if c not in probes or _is_clique(scope, graph)]


def _is_clique(scope: Sequence, graph: nx.Graph) -> bool:
    pairs: Iterable = itertools.combinations(scope, 2)
    return all(graph.has_edge(u, v) for u, v in pairs)
