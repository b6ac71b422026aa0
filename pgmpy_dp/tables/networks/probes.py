"""Tables drawn at random and measured last: nothing chose them, so they tell how wrong a model is elsewhere."""

from __future__ import annotations

import itertools
import math

import numpy as np

from pgmpy_dp.inference.scope_marginals import Scope
from pgmpy_dp.models.posterior.discrepancy import MOST_PROBE_CELLS
from pgmpy_dp.tables.networks.candidates import Candidates

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
