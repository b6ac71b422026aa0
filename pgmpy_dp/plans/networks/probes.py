"""Tables drawn at random and measured last: nothing chose them, so they tell how wrong a model is elsewhere."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence

import networkx as nx
import numpy as np

from pgmpy_dp.models.cliques import Cliques
from pgmpy_dp.models.inference.scope_marginals import Scope, admissible
from pgmpy_dp.models.posterior.discrepancy import MOST_PROBE_CELLS
from pgmpy_dp.plans.networks.candidates import Candidates
from pgmpy_dp.private.sensitive import Release

__all__ = ["N_PROBES", "chosen_tables", "draw_probes", "joined_probes", "probe_tables", "tables_within"]

N_PROBES = 16

_ENUMERATED = 20_000


def draw_probes(sets: Candidates, rng: np.random.Generator) -> list[Scope]:
    """Up to 16 sets of three variables, each as likely as any other; of two where none of three is permitted.

    Parameters
    ----------
    sets : Candidates
        Forbidden sets, and sets outside a workload, are not drawn.
    rng : numpy.random.Generator
        No privacy rests on it.

    Examples
    --------
    >>> len(draw_probes(Candidates((2,) * 9, 3, 10**4, (), {}), np.random.default_rng(0)))
    16
    >>> draw_probes(Candidates((2, 2, 2), 3, 10**4, (frozenset({0, 1}),), {}), np.random.default_rng(0))
    [(0, 2), (1, 2)]
    """
    most = min(sets.max_cells, MOST_PROBE_CELLS)

    def fits(scope: Scope) -> bool:
        return sets.cells(scope) <= most and sets.permits(scope)

    for order in (3, 2) if sets.max_order > 2 else (2,):
        if math.comb(len(sets.sizes), order) <= _ENUMERATED:
            found = [scope for scope in itertools.combinations(range(len(sets.sizes)), order) if fits(scope)]
            drawn = rng.permutation(len(found))[:N_PROBES]
            chosen = sorted(found[k] for k in drawn)
        else:
            tries = (tuple(sorted(rng.choice(len(sets.sizes), order, replace=False).tolist())) for _ in range(10_000))
            chosen = sorted(itertools.islice(dict.fromkeys(filter(fits, tries)), N_PROBES))
        if chosen:
            return chosen
    return []


def chosen_tables(release: Release) -> range:
    """Places of the tables that were required or chosen: after those of single variables, before probes."""
    first = next((c for c, scope in enumerate(release.scopes) if len(scope) > 1), len(release.scopes))
    return range(first, max(first, probe_tables(release).start))


def probe_tables(release: Release) -> range:
    """Places of a release's probes: its last tables, if it has any."""
    return range(len(release.values) - release.public.get("probes", 0), len(release.values))


def joined_probes(release: Release, cliques: Cliques) -> list[int]:
    """Places of the probes that a model with these tables can be given too, one after the other.

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


def tables_within(release: Release, graph: nx.Graph) -> list[int]:
    """Places of the tables that a model of a graph is learned from: all but probes that need further edges."""
    probes = probe_tables(release)
    return [c for c, scope in enumerate(release.scopes) if c not in probes or _is_clique(scope, graph)]


def _is_clique(scope: Sequence, graph: nx.Graph) -> bool:
    pairs: Iterable = itertools.combinations(scope, 2)
    return all(graph.has_edge(u, v) for u, v in pairs)
