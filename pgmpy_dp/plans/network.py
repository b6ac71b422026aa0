"""Adaptive structure learning: measure the pair of variables that the model so far gets most wrong, and refit.

The scheme of McKenna, Mullins, Sheldon and Miklau (2022, "AIM") for pairs of variables, with a fit of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from pgmpy_dp.models.cliques import Cliques
from pgmpy_dp.models.network_estimate import NetworkEstimate, Pair, admissible_pairs, estimate_network
from pgmpy_dp.models.noisy_marginals import NoisyMarginals
from pgmpy_dp.plans.network_shares import (
    NetworkSettings,
    NetworkShares,
    expected_noise,
    network_shares,
    noise_scale,
    one_way_weights,
)
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.curator.tables import TableCurator, misfit_scale
from pgmpy_dp.private.data.table import PrivateTable, require_table_and_budget
from pgmpy_dp.private.guarantee import ZCDP, PureDP
from pgmpy_dp.private.sensitive import Release
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
        As :func:`~pgmpy_dp.plans.network_shares.network_shares`. All depend on public arguments only and come
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
    shares = network_shares(table.schema, table.adjacency, settings, budget)
    gaussian = isinstance(shares.cost, ZCDP)
    names = table.schema.variables
    curator = TableCurator(
        table,
        budget,
        what=f"tables of {len(names)} variables and of pairs chosen among {len(shares.candidates)}",
        columns=names,
        mechanism="gumbel_noisy_max+discrete_gaussian" if gaussian else "exponential_noisy_max+discrete_laplace",
        random_state=settings.random_state,
    )
    search = _Search(curator, shares, refit, settings, budget)
    with curator.keeping(search.release):
        search.measure_variables()
        search.measure_required()
        share, number = shares.first_round, 0
        while curator.left > 0:
            number += 1
            spent = curator.left if curator.left < 2 * share else share
            if not search.measure_worst(number, spent):
                share *= _GROWTH[gaussian]
            if progress is not None:
                progress()
    return search.release()


class _Search:
    """The course of a search: what was released, the fit to it, and which pairs are left to choose from."""

    def __init__(
        self, curator: TableCurator, shares: NetworkShares, refit: Refit, settings: NetworkSettings, budget: Budget
    ) -> None:
        self.curator, self.shares, self.refit = curator, shares, refit
        self.settings, self.budget = settings, budget
        self.names = curator.schema.variables
        self.sizes = tuple(curator.schema.cardinality(name) for name in self.names)
        self.candidates = list(shares.candidates)
        # Pairs that cannot be selected any more, and the last round that could.
        self.unavailable = dict.fromkeys(set(shares.allowed) - set(shares.candidates), 0)
        self.rounds: list[dict[str, Any]] = []
        self.estimate: NetworkEstimate | None = None

    def measure_variables(self) -> None:
        """One table of each variable."""
        weights = one_way_weights(self.sizes, self.cost)
        self.curator.tables([(name,) for name in self.names], self.shares.one_way, weights)
        self.estimate = self.refit(released_tables(self.curator), None)

    def measure_required(self) -> None:
        """The required tables, all at once."""
        if required := self.shares.required:
            each = self.shares.each_required
            facts = {"round": 0, "share": float(each), "selection_scale": None, "candidates": len(required)}
            self._measure(list(required), each * len(required), facts)

    def measure_worst(self, number: int, share: Fraction) -> bool:
        """One round: select a pair, measure it, refit. Whether that changed its table by more than noise would."""
        shares, fit = self.shares, self._fit
        # What was too large once stays so: the model only grows.
        allowed = set(admissible_pairs(fit.noisy.cliques, self.candidates, self.settings.max_clique_cells))
        self.unavailable |= {pair: number - 1 for pair in self.candidates if pair not in allowed}
        self.candidates = [pair for pair in self.candidates if pair in allowed]
        measuring, selecting = share * (1 - shares.selection), share * shares.selection
        noise = expected_noise(self.cost, noise_scale(self.cost, self.curator.adjacency, measuring))
        best = self.curator.worst_fit(
            self._named(self.candidates),
            [fit.expected_counts(pair) for pair in self.candidates],
            selecting,
            [self._cells(pair) * noise for pair in self.candidates],
        )
        facts = {
            "round": number,
            "share": float(share),
            "selection_scale": misfit_scale(self.curator.adjacency, self.cost, selecting),
            "candidates": len(self.candidates),
        }
        self._measure([self.candidates[best]], measuring, facts)
        return self.rounds[-1]["change"] > self.rounds[-1]["offset"]

    @property
    def cost(self) -> PureDP | ZCDP:
        return self.curator.cost

    @property
    def _fit(self) -> NetworkEstimate:
        assert self.estimate is not None
        return self.estimate

    def _named(self, scopes: Sequence[tuple[int, ...]]) -> list[tuple[Hashable, ...]]:
        return [tuple(self.names[i] for i in scope) for scope in scopes]

    def _cells(self, pair: Pair) -> int:
        return self.sizes[pair[0]] * self.sizes[pair[1]]

    def _measure(self, pairs: list[Pair], share: Fraction, facts: dict[str, Any]) -> None:
        """Release the tables of pairs, note what they say, refit, note what that changed."""
        before = self._fit
        expected = [before.expected_counts(pair) for pair in pairs]
        # Noted before and filled in after, so that a release has an entry for each table wherever it is interrupted.
        self.rounds += [{**facts, "misfit": 2.0 * before.noisy.n_records, "change": 0.0, "offset": 0.0} for _ in pairs]
        values = self.curator.tables(self._named(pairs), share)
        noisy, records = released_tables(self.curator), self.rounds[-len(pairs) :]
        offset = expected_noise(self.cost, float(noisy.scale[-1]))  # all tables of a call have the same noise
        for pair, value, model, record in zip(pairs, values, expected, records, strict=True):
            record |= {"misfit": float(np.abs(value - model).sum()), "offset": self._cells(pair) * offset}
        self.estimate = self.refit(noisy, before)
        for pair, model, record in zip(pairs, expected, records, strict=True):
            record["change"] = float(np.abs(self.estimate.expected_counts(pair) - model).sum())

    def release(self) -> Release:
        """All tables so far, and what there is to say about the search."""
        unavailable = sorted(self.unavailable.items())
        tables = sum(len(a.arguments["scopes"]) for a in self.curator.answers if a.operator == "tables")
        public = {
            "rounds": self.rounds[: tables - len(self.names)],
            "unavailable": [
                [*(encode_label(name) for name in self._named([pair])[0]), last] for pair, last in unavailable
            ],
            "settings": {
                "required": [[encode_label(name) for name in pair] for pair in self.settings.required],
                "forbidden": [[encode_label(name) for name in pair] for pair in self.settings.forbidden],
                "max_clique_cells": self.settings.max_clique_cells,
                "n_rounds": self.settings.n_rounds,
                "one_way_share": self.settings.one_way_share,
                "selection_share": self.settings.selection_share,
                "budget": self.budget.guarantee.to_dict(),
            },
        }
        return self.curator.release("marginals", public)


def released_tables(curator: TableCurator) -> NoisyMarginals:
    """All tables that a curator has released, as the learning functions take them."""
    answers = [answer for answer in curator.answers if answer.operator == "tables"]
    names, schema, total = curator.schema.variables, curator.schema, curator.n_records
    scopes = tuple(scope for answer in answers for scope in answer.arguments["scopes"])
    cliques = Cliques(names, tuple(schema.cardinality(name) for name in names), scopes)
    return NoisyMarginals(
        cliques,
        cliques.join([value for answer in answers for value in answer.values]),
        "gaussian" if isinstance(curator.cost, ZCDP) else "laplace",
        np.array([noise.scale for answer in answers for noise in answer.noise if noise is not None]),
        None if total is None else max(float(total), 1.0),
    )
