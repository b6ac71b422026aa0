"""Adaptive structure learning: measure the variables whose table the model so far gets most wrong, and refit.

The scheme of McKenna, Mullins, Sheldon and Miklau (2022, "AIM"), with candidates, shares and a fit of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from pgmpy_dp.models.network_estimate import NetworkEstimate, estimate_network
from pgmpy_dp.models.noisy_marginals import NoisyMarginals
from pgmpy_dp.models.scope_marginals import Scope, admissible
from pgmpy_dp.models.structural_zeros import with_zeros
from pgmpy_dp.plans.fine_grids import merge, undivided
from pgmpy_dp.plans.marginals import noisy_marginals
from pgmpy_dp.plans.network_shares import NetworkSettings, NetworkShares, network_shares, select_and_measure
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.curator.tables import TableCurator, misfit_scale
from pgmpy_dp.private.data.table import PrivateTable, require_table_and_budget
from pgmpy_dp.private.sensitive import Release
from pgmpy_dp.schema import encode_label

__all__ = ["NetworkSettings", "run"]

Refit = Callable[[NoisyMarginals, NetworkEstimate | None], NetworkEstimate]


def run(
    table: PrivateTable,
    settings: NetworkSettings,
    budget: Budget,
    progress: Callable[[], None] | None = None,
    refit: Refit = estimate_network,
) -> Release:
    """Release noisy tables of all variables and of small sets of them, chosen one after the other.

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
        in which they were made; a set may be measured again. ``public["rounds"]`` has an entry for each of the latter,
        all of it computed from released and public numbers: ``round`` (0 for a required set), ``share`` of the budget,
        ``selection_scale``, ``candidates`` (how many), ``weight`` of the set and of the ``heaviest``, ``misfit``
        and ``change`` (l1 distances in records between what the model before expected and the measured, and the
        refitted, table) and ``offset`` (the expected l1 norm of the table's noise).
        ``public["unavailable"]`` has the pairs that are permitted and could not be selected to the end, as they would
        have made a clique too large, each with the number of the last round that could (0: none).

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
        score of a set e of the weight w_e, ``w_e (norm1(n_e - round(N mu_e)) - k_e E|noise|)``, moves by at most 1 or 2
        times the largest weight, which counts as 1: given what was released before, everything in it but n_e is public,
        and it is computed in integers (:func:`~pgmpy_dp.private.data.pair_scores.misfit_scores`). No exact number of
        records is used: N is the public one or the mean of the noisy tables' sums. Which sets are candidates is a
        function of public arguments and of releases (:mod:`pgmpy_dp.plans.network_candidates`), and is decided before
        any of them is scored.

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
        A round selects one set, or one for each 16 variables, no two of them with a pair in common, and then measures
        them. For each it starts with ``(1 - one_way_share)/n_rounds`` of the budget, n_rounds following the number of
        records over the noise (:meth:`~pgmpy_dp.plans.network_shares.NetworkShares.start`), and so does the part of it
        that selects (`selecting`). Once measurements have changed the model's tables by no more than noise alone would
        (``norm1(N mu_new - N mu_old) <= k E|noise|``, summed), rounds get twice as much, and if less than two rounds'
        budget is left, the next takes it all. The score subtracts what measuring would add in noise, so that large
        tables are measured only for much; sets of three and more whose noise would be expected to exceed the number of
        records are no candidates.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"a": [0, 1] * 500, "b": [0, 1] * 500, "c": [0, 0, 1, 1] * 250})
    >>> table = PrivateTable(frame, {name: [0, 1] for name in "abc"}, ledger=Budget(rho=1.0))
    >>> release = run(table, NetworkSettings(n_rounds=3), Budget(rho=1.0))
    >>> release.scopes[:3], str(release.guarantee), str(table.ledger.left)
    ((('a',), ('b',), ('c',)), '1-zCDP', '0-zCDP')
    """
    budget = require_table_and_budget(table, budget, by_shares=True)
    shares = network_shares(table.schema, table.adjacency, settings, budget)
    curator = TableCurator(
        table,
        budget,
        what=f"tables of {len(table.schema)} variables and of pairs chosen among {len(shares.candidates)}",
        mechanism=select_and_measure(shares.cost),
        random_state=settings.random_state,
        fine=True,
    )
    search = _Search(curator, shares, settings.public(budget), refit)
    with curator.keeping(search.release):
        search.measure_variables(settings.merge_rare)
        search.measure_required()
        share, number = shares.start(search.n_records), 0  # of one table
        while curator.left > 0:
            number += 1
            spent = share * shares.in_a_round
            if not search.measure_worst(number, curator.left if curator.left < 2 * spent else spent):
                share *= 2  # the measurements said nothing new
            if progress is not None:
                progress()
    return search.release()


class _Search:
    """The course of a search: what was released, the fit to it, and which sets are left to choose from."""

    fit: NetworkEstimate

    def __init__(self, curator: TableCurator, shares: NetworkShares, asked: dict[str, Any], refit: Refit) -> None:
        self.curator, self.shares, self.asked, self.refit = curator, shares, asked, refit
        self.names, self.pairs = curator.schema.variables, list(shares.candidates)
        # Pairs that cannot be selected any more, and the last round that could.
        self.unavailable = dict.fromkeys(set(shares.sets.allowed) - set(shares.candidates), 0)
        self.rounds: list[dict[str, Any]] = []
        self.verdicts: dict[Scope, bool] = {}  # whether the model, as it is, can be given a table

    @property
    def n_records(self) -> float:
        """The public number of records, or what the tables so far say."""
        return self.fit.noisy.n_records

    def measure_variables(self, merge_rare: bool) -> None:
        """One table of each variable; of what is fine in them, larger tables have merged cells."""
        self.curator.tables([(name,) for name in self.names], self.shares.one_way, self.shares.one_way_weights)
        fine = undivided(self.curator.declared)
        rare = [name for name in self.names if name not in self.curator.schema.numbers] if merge_rare else []
        if fine or rare:
            merge(self.curator, fine, self._released().n_records, self.shares.pair_noise, rare)
        self.fit = self.refit(self._released(), None)
        sizes = tuple(self.curator.schema.cardinality(name) for name in self.names)
        self.sets = replace(self.shares.sets, sizes=sizes)

    def measure_required(self) -> None:
        """The required tables, all at once."""
        if scopes := self.shares.required:
            share, n = self.shares.each_required, len(self.shares.required)
            facts = {"round": 0, "share": float(share), "selection_scale": None, "candidates": n}
            self._measure(scopes, share * n, [facts | {"weight": self.sets.weight(scope)} for scope in scopes])

    def measure_worst(self, number: int, spent: Fraction) -> bool:
        """One round: select sets, measure them, refit. Whether that changed their tables by more than noise would."""
        chosen: list[Scope] = []
        facts: list[dict[str, Any]] = []
        shares, share = self.shares, spent / self.shares.in_a_round
        allowed = self._candidates(number, share)
        selecting = share * shares.selecting(share, self.n_records, len(allowed))
        noise, scale = shares.expected_noise(share - selecting), misfit_scale(shares.adjacency, shares.cost, selecting)
        expected = dict(zip(allowed, self.fit.expected_tables(allowed), strict=True))
        while allowed and len(chosen) < shares.in_a_round:
            tables, weights = [expected[scope] for scope in allowed], [self.sets.weight(scope) for scope in allowed]
            offsets = [table.size * noise for table in tables]
            place = self.curator.worst_fit(self._named(allowed), tables, selecting, offsets, weights)
            weight = {"weight": weights[place], "heaviest": max(weights)}
            facts.append({"round": number, "selection_scale": scale, "candidates": len(allowed), **weight})
            chosen.append(allowed[place])
            # What shares a pair with a set that is measured anyway waits for the next round, which knows more.
            allowed = [scope for scope in allowed if len(set(scope).intersection(chosen[-1])) < 2]
        measuring = spent - selecting * len(chosen)
        self._measure(chosen, measuring, [{"share": float(spent / len(chosen)), **known} for known in facts])
        made = self.rounds[-len(chosen) :]
        return sum(record["change"] for record in made) > sum(record["offset"] for record in made)

    def _candidates(self, number: int, share: Fraction) -> list[Scope]:
        """What a round can choose from: what keeps the junction tree small."""
        # Noise that is expected to exceed the number of records hides whatever the table says.
        most = self.n_records / self.shares.expected_noise(share)
        larger = self.sets.larger(self.fit.noisy.cliques.indices, most)
        unknown = [scope for scope in (*self.pairs, *larger) if scope not in self.verdicts]
        grown = with_zeros(self.fit.noisy.cliques, self.curator.schema.zeros)
        self.verdicts |= dict.fromkeys(unknown, False)
        self.verdicts |= dict.fromkeys(admissible(grown, unknown, self.asked["max_clique_cells"]), True)
        # They fit with the most states that numbers can merge into; with fewer, trees might be found that are larger.
        pairs = [pair for pair in self.pairs if self.verdicts[pair]] or self.pairs
        self.unavailable |= dict.fromkeys(set(self.pairs) - set(pairs), number - 1)
        self.pairs = pairs
        return [*pairs, *(scope for scope in larger if self.verdicts[scope])]

    def _measure(self, scopes: Sequence[Scope], spent: Fraction, facts: Sequence[dict[str, Any]]) -> None:
        """Release the tables of some sets, note what they say, refit, note what that changed."""
        before, offset = self.fit, self.shares.expected_noise(spent, len(scopes))
        expected = before.expected_tables(scopes)
        # Noted before and filled in after, so that a release has an entry for each table wherever it is interrupted.
        self.rounds += [
            {**known, "misfit": 2 * float(table.sum()), "change": 0.0, "offset": table.size * offset}
            for known, table in zip(facts, expected, strict=True)
        ]
        values, records = self.curator.tables(self._named(scopes), spent), self.rounds[-len(scopes) :]
        for value, table, record in zip(values, expected, records, strict=True):
            record["misfit"] = float(np.abs(value - table).sum())
        self.fit = self.refit(self._released(), before)
        if len(self.fit.noisy.cliques.scopes) > len(before.noisy.cliques.scopes):
            # What was too large once stays so: the model only grows.
            self.verdicts = {scope: False for scope, fits in self.verdicts.items() if not fits}
        for table, after, record in zip(expected, self.fit.expected_tables(scopes), records, strict=True):
            record["change"] = float(np.abs(after - table).sum())

    def _released(self) -> NoisyMarginals:
        return noisy_marginals(self.curator.release("marginals", {}), self.names, merge=False)

    def _named(self, scopes: Sequence[Scope]) -> list[tuple]:
        return [tuple(self.names[i] for i in scope) for scope in scopes]

    def release(self) -> Release:
        """All tables so far, and what there is to say about the search."""
        last = sorted(self.unavailable.items())
        public = {
            "rounds": self.rounds[: len(self.curator.arrays) - len(self.names)],
            "unavailable": [[*(encode_label(self.names[i]) for i in pair), number] for pair, number in last],
            "settings": self.asked,
        }
        return self.curator.release("marginals", public)
