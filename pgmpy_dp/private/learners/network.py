"""Adaptive structure learning: measure the pair of variables that the model so far gets most wrong, and refit.

The scheme of McKenna, Mullins, Sheldon and Miklau (2022, "AIM") for pairs of variables, with a fit of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from pgmpy_dp.models.cliques import Cliques
from pgmpy_dp.models.network_estimate import NetworkEstimate, Pair, admissible_pairs, estimate_network
from pgmpy_dp.models.noisy_marginals import NoisyMarginals
from pgmpy_dp.private.data.pair_scores import misfit_scores
from pgmpy_dp.private.data.table import PrivateTable, contingency_tables
from pgmpy_dp.private.guarantee import ZCDP
from pgmpy_dp.private.learners.marginals import require_table_and_budget
from pgmpy_dp.private.learners.network_plan import (
    NetworkPlan,
    NetworkSettings,
    expected_noise,
    network_plan,
    noise_scale,
    one_way_weights,
)
from pgmpy_dp.private.ledger import Budget
from pgmpy_dp.private.noise.additive import additive_release
from pgmpy_dp.private.noise.samplers import seeded_generator
from pgmpy_dp.private.noise.selection import noisy_argmax, selection_scale
from pgmpy_dp.private.sensitive import Noise, Release, Sensitive
from pgmpy_dp.schema import encode_label

__all__ = ["NetworkSettings", "run"]

Refit = Callable[[NoisyMarginals, NetworkEstimate | None], NetworkEstimate]

_GROWTH = {True: 4, False: 2}  # of a round's budget once a measurement says nothing new: zCDP, pure


def run(
    table: PrivateTable,
    settings: NetworkSettings,
    budget: Budget,
    progress: Callable[[], None] | None = None,
    refit: Refit = estimate_network,
) -> Release:
    """Release noisy tables of all variables and of pairs chosen one after the other.

    Parameters
    ----------
    table : PrivateTable
    settings : NetworkSettings
    budget : Budget
        What this release spends. It is charged to the table's ledger, whole, before anything is counted.
    progress : callable, optional
        Called without arguments after each round.
    refit : callable
        From noisy tables and the fit before to a fit: a function of nothing else, hence post-processing.

    Returns
    -------
    Release
        ``kind="marginals"``: one table per variable, in the order of the schema, then one per measurement, in the order
        in which they were made; a pair may be measured again. ``public["rounds"]`` has an entry for each of the latter,
        all of it computed from released and public numbers: ``round`` (0 for a required pair), ``share`` of the budget,
        ``selection_scale``, ``candidates`` (how many), ``misfit`` and ``change`` (l1 distances in records between what
        the model before expected and the measured, and the refitted, table) and ``offset`` (the expected l1 norm of the
        table's noise). ``public["unavailable"]`` has the pairs that are not forbidden and could not be
        selected to the end, as they would have made a clique too large, each with the number of the last round that
        could (0: none).

    Raises
    ------
    BudgetExceeded
        If the ledger does not have the budget left; it stays as it was.
    TypeError, ValueError
        As :func:`~pgmpy_dp.private.learners.network_plan.network_plan`. All depend on public arguments only and come
        before the charge.

    Notes
    -----
    Privacy
        *Sensitivity.* One table: 1 in l1 and l2 norm under ``add_remove``; 2 and sqrt(2) under ``replace_one``. The
        score of a pair e, ``norm1(n_e - round(N mu_e)) - floor(k_e E|noise|)``, moves by at most 1 or 2: given what was
        released before, everything in it but n_e is public, and it is computed in integers
        (:func:`~pgmpy_dp.private.data.pair_scores.misfit_scores`). No exact number of records is used: N is the public
        one or the mean of the noisy tables' sums.

        *Guarantee.* Under the table's adjacency: rho-zCDP, or epsilon-DP for a pure budget; an (epsilon, delta) budget
        has the largest rho that dp-accounting converts to it. The one-way tables, the required tables, and in each
        round a selection and a measurement get exact rational shares of the budget. A round's share is a function of
        earlier releases, is fixed before the round, and never exceeds what is left; so the shares of any course of
        events sum to at most 1, and a sum of rho (of epsilon) that never exceeds the budget is a valid filter for
        mechanisms, costs and a number of rounds that are chosen adaptively (Whitehouse, Ramdas, Rogers and Wu 2023,
        Theorem 1; Rogers, Roth, Ullman and Vadhan 2016 for epsilon). The fit between rounds is post-processing.

        A selection with the share s costs ``s rho`` with Gumbel noise of scale ``D/sqrt(2 s rho)`` and ``s epsilon``
        with exponential noise of scale ``2 D/(s epsilon)``, D being 1 or 2 (:mod:`pgmpy_dp.private.noise.selection`).

        *Source.* McKenna, Mullins, Sheldon and Miklau 2022; Cesar and Rogers 2021 for the cost of a selection.

        *Side channels.* Which arguments are refused depends on public arguments only; the number of rounds, of tables
        and of calls of `progress`, on released values too. Running time depends on the number of records. An empty
        table, and one whose records are all outside the schema, are learned from like any other.

    The rounds
        A round starts with ``(1 - one_way_share)/n_rounds`` of the budget. Once a measurement has changed the model's
        table by no more than noise alone would (``norm1(N mu_new - N mu_old) <= k E|noise|``), rounds get 4 times as
        much (2 times for a pure budget), and if less than two rounds' budget is left, the next takes it all. The score
        subtracts what measuring would add in noise, so that large tables are measured only for much.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"a": [0, 1] * 500, "b": [0, 1] * 500, "c": [0, 0, 1, 1] * 250})
    >>> table = PrivateTable(frame, {name: [0, 1] for name in "abc"}, ledger=Budget(rho=1.0))
    >>> release = run(table, NetworkSettings(n_rounds=3), Budget(rho=1.0))
    >>> release.scopes[:4], str(release.guarantee), str(table.ledger.left)
    ((('a',), ('b',), ('c',), ('a', 'b')), '1-zCDP', '0-zCDP')
    """
    require_table_and_budget(table, budget)
    plan = network_plan(table.schema, table.adjacency, settings, budget)
    gaussian = isinstance(plan.cost, ZCDP)
    mechanism = "gumbel_noisy_max+discrete_gaussian" if gaussian else "exponential_noisy_max+discrete_laplace"
    seed = seeded_generator(settings.random_state)
    names = table.schema.variables
    table.ledger.charge(
        plan.cost,
        what=f"tables of {len(names)} variables and of pairs chosen among {len(plan.candidates)}",
        columns=list(names),
        mechanism=mechanism,
        adjacency=table.adjacency,
        reproducible=seed is not None,
    )
    found = _Measurements(table, plan, refit, seed)
    found.measure_variables()
    found.measure_required()
    left, share, number = plan.rounds, plan.first_round, 0
    while left > 0:
        spent = left if left < 2 * share else share
        left -= spent
        number += 1
        informative = found.measure_best(number, spent, settings.max_clique_cells)
        if not informative:
            share *= _GROWTH[gaussian]
        if progress is not None:
            progress()
    return Release(
        kind="marginals",
        values=tuple(found.values),
        noise=tuple(found.noise),
        public={
            "schema": table.schema.to_dict(),
            "scopes": [[encode_label(names[i]) for i in scope] for scope in found.scopes],
            "n_records": table.n_records,
            "rounds": found.rounds,
            "unavailable": [
                [*(encode_label(names[i]) for i in pair), last] for pair, last in sorted(found.unavailable.items())
            ],
            "settings": {
                "required": [[encode_label(name) for name in pair] for pair in settings.required],
                "forbidden": [[encode_label(name) for name in pair] for pair in settings.forbidden],
                "max_clique_cells": settings.max_clique_cells,
                "n_rounds": settings.n_rounds,
                "one_way_share": settings.one_way_share,
                "selection_share": settings.selection_share,
                "budget": budget.guarantee.to_dict(),
            },
        },
        adjacency=table.adjacency,
        guarantee=plan.cost,
        mechanism=mechanism,
        reproducible=seed is not None,
    )


class _Measurements:
    """The state of a run: exact tables, which never leave it, and what was released of them."""

    def __init__(self, table: PrivateTable, plan: NetworkPlan, refit: Refit, seed: np.random.Generator | None) -> None:
        self.table, self.plan, self.refit, self.seed = table, plan, refit, seed
        names = table.schema.variables
        self.sizes = [table.schema.cardinality(name) for name in names]
        pairs = sorted({*plan.candidates, *plan.required})
        self.candidates = list(plan.candidates)
        # Pairs that cannot be selected any more, and the last round that could.
        self.unavailable = dict.fromkeys(set(plan.allowed) - set(plan.candidates), 0)
        self.exact: dict[Pair, Sensitive] = dict(
            zip(pairs, contingency_tables(table, [(names[i], names[j]) for i, j in pairs]), strict=True)
        )
        self.scopes: list[tuple[int, ...]] = []
        self.values: list[np.ndarray] = []
        self.noise: list[Noise] = []
        self.rounds: list[dict[str, Any]] = []
        self.estimate: NetworkEstimate | None = None

    def measure_variables(self) -> None:
        """One table of each variable."""
        scopes = [(i,) for i in range(len(self.sizes))]
        exact = contingency_tables(self.table, [(name,) for name in self.table.schema.variables])
        self._release(scopes, exact, self.plan.one_way, one_way_weights(self.sizes, self.plan.cost))
        self._refit()

    def measure_required(self) -> None:
        """The required tables, all at once."""
        if not (required := self.plan.required):
            return
        share = self.plan.each_required
        self._release(list(required), [self.exact[pair] for pair in required], share * len(required))
        before = self._refit()
        for pair, value in zip(required, self.values[-len(required) :], strict=True):
            self._record(0, pair, share, None, len(required), value, before)

    def measure_best(self, number: int, share: Fraction, max_cells: int) -> bool:
        """One round: select a pair, measure it, refit. Whether that changed its table by more than noise would."""
        plan, estimate = self.plan, self.estimate
        assert estimate is not None
        # What was too large once stays so: the model only grows.
        allowed = set(admissible_pairs(estimate.noisy.cliques, self.candidates, max_cells))
        self.unavailable |= {pair: number - 1 for pair in self.candidates if pair not in allowed}
        self.candidates = [pair for pair in self.candidates if pair in allowed]
        measuring = share * (1 - plan.selection)
        noise = expected_noise(plan.cost, noise_scale(plan.cost, self.table.adjacency, measuring))
        scores = misfit_scores(
            [self.exact[pair] for pair in self.candidates],
            [estimate.expected_counts(pair) for pair in self.candidates],
            [self._cells(pair) * noise for pair in self.candidates],
        )
        scale = selection_scale(scores.linf, plan.cost, share * plan.selection)
        pair = self.candidates[int(noisy_argmax([scores.value], scale, plan.cost, self.seed)[0])]
        self._release([pair], [self.exact[pair]], measuring)
        before = self._refit()
        record = self._record(number, pair, share, scale, len(self.candidates), self.values[-1], before)
        return record["change"] > record["offset"]

    def _cells(self, pair: Pair) -> int:
        return self.sizes[pair[0]] * self.sizes[pair[1]]

    def _release(
        self,
        scopes: Sequence[tuple[int, ...]],
        exact: list[Sensitive],
        share: Fraction,
        weights: list[float] | None = None,
    ) -> None:
        values, noise = additive_release(exact, self.plan.cost, share, weights, self.seed)
        self.scopes += scopes
        self.values += values
        self.noise += noise

    def _refit(self) -> NetworkEstimate | None:
        """Fit to all that was released; the fit before is returned."""
        before, schema, total = self.estimate, self.table.schema, self.table.n_records
        names = schema.variables
        scopes = tuple(tuple(names[i] for i in scope) for scope in self.scopes)
        cliques = Cliques(names, tuple(self.sizes), scopes)
        noisy = NoisyMarginals(
            cliques,
            cliques.join(self.values),
            "gaussian" if isinstance(self.plan.cost, ZCDP) else "laplace",
            np.array([noise.scale for noise in self.noise]),
            None if total is None else max(float(total), 1.0),
        )
        self.estimate = self.refit(noisy, before)
        return before

    def _record(
        self,
        number: int,
        pair: Pair,
        share: Fraction,
        scale: float | None,
        candidates: int,
        value: np.ndarray,
        before: NetworkEstimate | None,
    ) -> dict[str, Any]:
        assert before is not None
        assert self.estimate is not None
        old, new = before.expected_counts(pair), self.estimate.expected_counts(pair)
        noise = self.noise[-1]  # of the last table; required ones all have the same
        record = {
            "round": number,
            "share": float(share),
            "selection_scale": scale,
            "candidates": candidates,
            "misfit": float(np.abs(value - old).sum()),
            "change": float(np.abs(new - old).sum()),
            "offset": self._cells(pair) * expected_noise(self.plan.cost, noise.scale),
        }
        self.rounds.append(record)
        return record
