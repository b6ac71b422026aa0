"""Release how far a model is from the records that it was learned from, for a share of their budget."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from pgmpy_dp.learning.least_noise import least_noise
from pgmpy_dp.learning.options import Settings
from pgmpy_dp.learning.public_graph import encoded_graph
from pgmpy_dp.models.posterior.noisy_ratio import sampling_distance
from pgmpy_dp.models.scored_model import ModelTables
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.curator.table_curator import TableCurator
from pgmpy_dp.private.data.table import PrivateTable, require_table_and_budget
from pgmpy_dp.private.guarantee import ZCDP, PureDP
from pgmpy_dp.private.operators.distances import Distances
from pgmpy_dp.private.operators.record_count import RecordCount
from pgmpy_dp.private.operators.worst_fit import WorstFit
from pgmpy_dp.private.sensitive import Noise, Release
from pgmpy_dp.shown import quantity


def _shares(settings: Settings) -> dict[str, Fraction]:
    """Shares of the budget: for the number of records, means, every table, the choice of the worst one, its distance.

    The number of records only divides: its noise counts as much as the total variation is large.
    """
    parts = {"count": 1, "means": 7}
    parts |= {"each": 16} if settings.each else {}
    parts |= {"choice": 4, "worst": 4} if settings.worst else {}
    return {name: Fraction(part, sum(parts.values())) for name, part in parts.items()}


def planned_noise(
    n_means: int, n_tables: int, settings: Settings, budget: Budget, adjacency: Adjacency
) -> tuple[PureDP | ZCDP, dict[str, Noise]]:
    """The cost, and the noise of the number of records, of means, of each table and of the worst one.

    Raises
    ------
    ValueError
        Where noise would bury any count.
    """
    shares, sizes = _shares(settings), {"count": 1, "means": n_means, "each": n_tables, "worst": 1}
    parts = [name for name in sizes if name in shares]

    def noises(cost: PureDP | ZCDP) -> list[Noise]:
        if settings.worst:
            WorstFit.planned(adjacency, cost, shares["choice"])  # refuses what buries any score
        return [
            RecordCount.noise_of(cost, shares[name])
            if name == "count"
            else Distances.noise_of(sizes[name], cost, shares[name])
            for name in parts
        ]

    cost = least_noise(noises, [sizes[name] for name in parts], budget)
    return cost, dict(zip(parts, noises(cost), strict=True))


def run(table: PrivateTable, model: ModelTables, settings: Settings, budget: Budget) -> Release:
    """Release how far a model's tables are from those of the records: means, and as settings say each and the worst.

    Refuses what is no table or budget, and a budget too small for any count.

    Parameters
    ----------
    model : ModelTables
        Public, or released before.
    settings : Settings
        `worst`, `each` and `random_state` of :func:`~pgmpy_dp.score_model`.

    Returns
    -------
    Release
        ``kind="model_score"``: the number of records; means of distances; the distance of each table; that of the
        chosen one: as far as ``public["released"]`` says.

    Notes
    -----
    Privacy
        *Sensitivity.* k means of distances: k in l1 and sqrt(k) in l2 norm; the number of records inside the schema: 1;
        scores of the choice: 1 (add_remove), 2 (replace_one) in l-infinity.

        *Guarantee.* Shares of the budget that sum to 1: epsilon-DP with Laplace and exponential noise, rho-zCDP with
        Gaussian and Gumbel noise; an (epsilon, delta) budget takes whichever is smaller. Costs add up with what the
        model cost.

        *Source.* :class:`~pgmpy_dp.private.operators.distances.Distances`,
        :class:`~pgmpy_dp.private.operators.worst_fit.WorstFit`.
    """
    budget = require_table_and_budget(table, budget)
    cost, _ = planned_noise(len(model.means), len(model.scopes), settings, budget, table.adjacency)
    curator = TableCurator(
        table,
        budget,
        what=f"how far a model is from the records on {quantity(model.scopes, 'table')}",
        columns=table.schema.variables,
        pure=isinstance(cost, PureDP),
        random_state=settings.random_state,
        fine=True,
    )
    progress: dict[str, Any] = {"released": [], "sampling": None, "worst": None}

    def released() -> Release:
        public = {
            **{name: getattr(settings, name) for name in ("worst", "each")},
            **{"budget": budget.guarantee.to_dict(), "model": model.digest},
        }
        means = [[mean.name, sorted(mean.weights.items())] for mean in model.means]
        facts = {"settings": public, "tables": encoded_graph(model.scopes), "means": means, **progress}
        if model.discovered:
            facts["model_discovered"] = [dict(cost) for cost in model.discovered]
        return curator.release("model_score", facts, curator.called(*names))

    names = ["count", "means", *(["each"] if settings.each else []), *(["worst"] if settings.worst else [])]
    shares, scopes, tables = _shares(settings), list(model.scopes), list(model.tables)
    with curator.keeping(released):
        if model.merged is not None:
            curator.merge(*model.merged)
        n = max(float(curator.ask(RecordCount(), shares["count"])), 1.0)
        progress["sampling"] = [sampling_distance(each, n) for each in tables]
        progress["released"] = ["count"]
        curator.ask(Distances(scopes, tables, model.weights), shares["means"])
        progress["released"] = ["count", "means"]
        if settings.each:
            curator.ask(Distances(scopes, tables), shares["each"])
            progress["released"] = [*progress["released"], "each"]
        if settings.worst:
            place = curator.ask(
                WorstFit(scopes, np.concatenate([n * each.ravel() for each in tables])), shares["choice"]
            )
            progress["worst"] = place
            curator.ask(Distances([scopes[place]], [tables[place]]), shares["worst"])
            progress["released"] = [*progress["released"], "worst"]
    return released()
