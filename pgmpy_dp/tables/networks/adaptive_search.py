"""Adaptive structure learning: measure the variables whose table the model so far gets most wrong, and refit.

The scheme of McKenna, Mullins, Sheldon and Miklau (2022, "AIM"), with candidates, shares and a fit of its own.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from pgmpy_dp.inference.growing_tree import GrowingTree, by_order
from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.inference.scope_marginals import Scope
from pgmpy_dp.learning.fine_grids import fine_grained, merge, refine, undivided
from pgmpy_dp.learning.noisy_marginals import NoisyMarginals
from pgmpy_dp.learning.noisy_tables import noisy_marginals
from pgmpy_dp.learning.options import Settings
from pgmpy_dp.learning.structural_zeros import with_zeros
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.curator.table_curator import TableCurator
from pgmpy_dp.private.data.table import PrivateTable, require_table_and_budget
from pgmpy_dp.private.operators.tables import Tables
from pgmpy_dp.private.operators.worst_fit import WorstFit
from pgmpy_dp.private.sensitive import Release
from pgmpy_dp.schema import encode_label
from pgmpy_dp.tables.networks.budget_shares import (
    STAR,
    NetworkShares,
    asked_of,
    network_shares,
    one_way_weights,
    select_and_measure,
)
from pgmpy_dp.tables.networks.candidates import draw_probes
from pgmpy_dp.tables.networks.network_estimate import NetworkEstimate, estimate_network

_FIRST_LOOK = Fraction(5, 6)  # of what rounds have: what is left when single variables are looked at again
_TELLING = 1.3  # times its noise: a table that differs so much from the model says something, whatever is learned of it
_MOST_SCORES = 1_000_000  # that the selections of a round may have noise drawn for; each has a part of them beyond
_LEAST_WEIGHT = 1 / 1024  # of the largest: what a selection counts smaller ones as

Refit = Callable[..., NetworkEstimate]


def run(
    table: PrivateTable,
    settings: Settings,
    budget: Budget,
    progress: Callable[[float], None] | None = None,
    refit: Refit = estimate_network,
    around: Callable[[Release], LogLinearModel] | None = None,
    rests_on: Mapping[str, Any] | None = None,
    kind: Callable[..., Search] | None = None,
    among: Callable[[Collection[int]], bool] | None = None,
) -> Release:
    """Release noisy tables of all variables and of small sets of them, chosen one after the other.

    Refuses what :func:`~pgmpy_dp.tables.networks.budget_shares.network_shares` refuses.

    Parameters
    ----------
    settings : Settings
        Of :class:`~pgmpy_dp.estimators.PrivateNetwork`. Defaults that depend on the noise are those of
        :meth:`~pgmpy_dp.tables.networks.budget_shares.NetworkShares.start`, `singles` and `selecting`.
    progress : callable, optional
        Called after each fit with the share of the budget that is spent.
    refit : callable
        From noisy tables, the fit before and the junction tree to a fit: a function of nothing else, hence
        post-processing.
    around : callable, optional
        From the release of single variables to a prior model in its states, which `refit` then gets as ``base``: a
        function of that release and of what is public or was released before.
    rests_on : mapping, optional
        The privacy record of what `around` was learned from, as JSON: the release says it, as
        ``public["settings"]["prior"]``, for what was selected rests on that too.

    Returns
    -------
    Release
        ``kind="marginals"``: one table per variable, in the order of the schema, then one per number that the schema
        does not divide, in cells that follow its first table (:func:`~pgmpy_dp.learning.fine_grids.refine`), then one
        per measurement, in the order in which they were made; a set may be measured again, and single variables too.
        ``public["rounds"]`` has an entry for each table of several variables that is no probe, all of it computed from
        released and public numbers: ``round`` (0 for a required set and for the star on a target), ``share`` of the
        budget, ``selection_scale``, ``candidates`` (how many), ``weight`` of the set and of the ``heaviest``,
        ``misfit`` and ``change`` (l1 distances in records between what
        the model before expected and the measured, and the refitted, table) and ``offset`` (the expected l1 norm of the
        table's noise); where candidates are so many that each selection of a round has a part of them, ``parts``.
        ``public["unavailable"]`` has the pairs that are permitted and could not be selected in the last round, as they
        would have made a clique too large, each with the number of the last round that could (0: none).
        ``public["probes"]`` says how many of the last tables were drawn at random.

    Notes
    -----
    Privacy
        *Sensitivity.* One table: 1 in l1 and l2 norm under ``add_remove``; 2 and sqrt(2) under ``replace_one``. The
        score of a set e of the weight w_e, ``w_e norm1(n_e - round(N mu_e)) - k_e E|noise|``, moves by at most 1 or 2
        times the largest weight, which counts as 1: given what was released before, everything in it but n_e is public,
        and it is computed in integers (:func:`~pgmpy_dp.private.operators.worst_fit.misfit_scores`). No exact number of
        records is used: N is the public one or the mean of the noisy tables' sums. Which sets are candidates is a
        function of public arguments and of releases (:mod:`pgmpy_dp.tables.networks.candidates`), and is decided before
        any of them is scored.

        *Guarantee.* Under the table's adjacency: rho-zCDP, or epsilon-DP for a pure budget; an (epsilon, delta) budget
        has the largest rho that dp-accounting converts to it. The one-way tables, first and later ones, the second ones
        of numbers, the required tables, the star on a target, and in each round a selection and a measurement get exact
        rational shares of the budget. The shares of later one-way tables, of the star and of a round are functions of
        earlier releases, are fixed before their tables are counted, and never exceed what is left; so the shares of any
        course of events sum to at most 1, and a sum of rho (of epsilon) that never exceeds the budget is a valid filter
        for mechanisms, costs and a number of rounds that are chosen adaptively (Whitehouse, Ramdas, Rogers and Wu 2023,
        Theorem 1; Rogers, Roth, Ullman and Vadhan 2016 for epsilon). The fit between rounds is post-processing.

        A selection with the share s costs ``s rho`` with Gumbel noise of scale ``D/sqrt(2 s rho)`` and ``s epsilon``
        with exponential noise of scale ``2 D/(s epsilon)``, D being 1 or 2 (:mod:`pgmpy_dp.private.noise.selection`).

        *Source.* McKenna, Mullins, Sheldon and Miklau 2022; Cesar and Rogers 2021 for the cost of a selection.

        *Side channels.* Which arguments are refused depends on public arguments only; the number of rounds, of tables
        and of calls of `progress`, on released values too. Running time depends on the number of records. An empty
        table, and one whose records are all outside the schema, are learned from like any other.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"a": [0, 1] * 500, "b": [0, 1] * 500, "c": [0, 0, 1, 1] * 250})
    >>> table = PrivateTable(frame, {name: [0, 1] for name in "abc"}, ledger=Budget(rho=1.0))
    >>> from pgmpy_dp.estimators import PrivateNetwork
    >>> from pgmpy_dp.learning.options import settings_of
    >>> release = run(table, settings_of(PrivateNetwork(n_rounds=3)), Budget(rho=1.0))
    >>> release.scopes[:3], str(release.guarantee), str(table.ledger.left)
    ((('a',), ('b',), ('c',)), '1-zCDP', '0-zCDP')
    """
    budget = require_table_and_budget(table, budget)
    shares = network_shares(table.schema, table.adjacency, settings, budget, among)
    curator = TableCurator(
        table,
        budget,
        what=f"tables of {len(table.schema)} variables and of pairs chosen among {len(shares.candidates)}",
        mechanism=select_and_measure(shares.cost),
        random_state=settings.random_state,
        fine=True,
    )
    asked = asked_of(settings, budget) | ({} if rests_on is None else {"prior": dict(rests_on)})
    search = (kind or Search)(curator, shares, asked, refit, around, settings.random_state)
    with curator.keeping(search.release):
        search.measure_variables(settings.merge_rare)
        search.measure_required()
        search.measure_star()
        # A round selects one set, or one for each 16 variables (more of them above 512 variables, and where records are
        # known precisely, as first releases say), no two with a pair in common, and then measures them. For each it
        # starts with `(1 - one_way_share)/n_rounds` of the budget, n_rounds following the number of records over the
        # noise (`start`), and so does the part of it that selects (`selecting`). Once measurements have changed the
        # model's tables by no more than noise alone would (`norm1(N mu_new - N mu_old) <= k E|noise|`, summed), rounds
        # get twice as much, and if less than two rounds' budget is left, the next takes it all. (What differs from the
        # model by 1.3 times its noise says something, though so noisy a table changes little.) After a sixth of what
        # rounds have, what they have found says whether single variables should have more of the budget. The score
        # subtracts what measuring would add in noise, so that large tables are measured only for much; sets of three
        # and more whose noise would be expected to exceed the number of records are no candidates.
        shares, before = search.shares, curator.left
        share, number = min(search.first_share(), before), 0
        search.together = shares.in_a_round(search.n_records)
        while (left := curator.left - search.kept) > 0:
            number += 1
            spent = share * search.together
            # Where less than two rounds' budget is left, the next one takes it all.
            if not search.measure_worst(number, left if left < 2 * spent else spent):
                # They say nothing new, so rounds get more.
                share *= 2
            if before and curator.left - search.kept <= _FIRST_LOOK * (before - search.kept):
                before = Fraction(0)
                search.look_again()
            if progress is not None:
                progress(float(1 - curator.left))
        search.measure_probes()
    return search.release()


class Search:
    """The course of a search: what was released, the fit to it, and which sets are left to choose from."""

    fit: NetworkEstimate
    together: int  # how many sets a round selects

    def __init__(
        self,
        curator: TableCurator,
        shares: NetworkShares,
        asked: dict[str, Any],
        refit: Refit,
        around: Callable[[Release], LogLinearModel] | None,
        seed: int | None,
    ) -> None:
        self.curator, self.shares, self.asked, self.refit, self.around = curator, shares, asked, refit, around
        self.seed, self.probes = seed, list[Scope]()
        self.names, self.pairs = curator.facts.schema.variables, list(shares.candidates)
        self.named_pairs = self._named(self.pairs)
        self.places = np.array(self.pairs, dtype=np.int64).reshape(-1, 2)
        # Of each pair, the last round that could select it.
        self.last = np.zeros(len(self.pairs), dtype=np.int64)
        self.number = 0  # of the last round
        self.rounds: list[dict[str, Any]] = []

    @property
    def n_records(self) -> float:
        """The public number of records, or what the tables so far say."""
        return self.fit.noisy.n_records

    def measure_variables(self, merge_rare: bool) -> None:
        """One table of each variable; of what is fine in them, larger tables have merged cells."""
        self.curator.ask(
            Tables([(name,) for name in self.asked_about], self._weights(self.asked_about)), self.shares.one_way
        )
        self._merge(merge_rare)
        released = self._released()
        self.spread, sizes = _spread(released), released.cliques.cardinalities
        self.shares = self.shares.knowing(released.n_records, sizes)
        self.of_singles = self.shares.one_way
        self._measure_singles(self.shares.singles(released.n_records, sizes, self.spread))
        if self.around is not None:
            self.refit = partial(self.refit, base=self.around(self.curator.release("marginals", {})))
        noisy = self._released()
        self.tree = GrowingTree(
            with_zeros(noisy.cliques, self.curator.facts.schema.zeros), self.asked["max_clique_cells"]
        )
        self.fit = self.refit(noisy, None, self.tree)
        self.sets = replace(self.shares.sets, sizes=noisy.cliques.cardinalities)
        self._narrow()
        rng = np.random.default_rng(None if self.seed is None else [self.seed, len(self.names)])
        # Also of sets without the target: they tell how wrong the model is where nothing is measured.
        self.probes = draw_probes(replace(self.sets, target=None), rng) if self.shares.probes else []

    def _measure_singles(self, wanted: Fraction) -> bool:
        """Tables of single variables once more, if they are to have so much; whether there are any."""
        kept = self.curator.facts.declared.fine().cardinalities
        # What was merged from a fine grid is not asked for again.
        names = [name for name in self.asked_about if self.curator.facts.schema.cardinality(name) == kept[name]]
        more = min(wanted - self.of_singles, self.curator.left - self.kept)
        if not names or more < self.of_singles * self.shares.again:  # too little to tell anything beside what is known
            return False
        self.of_singles += more
        part = Fraction(sum(self._weights(names)) / sum(self._weights(self.asked_about)))
        self.curator.ask(Tables([(name,) for name in names], self._weights(names)), more * min(part, Fraction(1)))
        return True

    def first_share(self) -> Fraction:
        """Of each table of the first round."""
        return self.shares.start(self.n_records, self.fit.noisy.cliques.cardinalities, self.spread)

    def look_again(self) -> None:
        """Give single variables more where the first rounds have found little to measure."""
        known = [record for record in self.rounds if record["round"]]
        # Squares of dependence and of noise add up.
        n, sizes = self.n_records, self.fit.noisy.cliques.cardinalities
        left = float(np.mean([record["misfit"] ** 2 - record["offset"] ** 2 for record in known]))
        ratio = self.shares.found(max(left, 0.0) ** 0.5 / (2 * n), len(known), self.spread)
        if self._measure_singles(self.shares.singles(n, sizes, self.spread, ratio)):
            self.fit = self.refit(self._released(), self.fit, self.tree)

    @property
    def asked_about(self) -> Sequence[Hashable]:
        """The variables that have a first table."""
        return self.names

    def _weights(self, names: Sequence[Hashable]) -> list[float]:
        """Shares of the first tables of some variables, up to a factor."""
        kept = self.curator.facts.declared.fine().cardinalities
        return one_way_weights((kept[name] for name in names), self.shares.cost)

    def _merge(self, merge_rare: bool) -> None:
        """Count in merged states from now on, where the first tables say so."""
        fine = undivided(self.curator.facts.declared)
        rare = [name for name in self.names if name not in self.curator.facts.schema.numbers] if merge_rare else []
        if fine and self.shares.numbers:
            refine(self.curator, fine_grained(self.curator.facts.declared), self.shares.numbers)
        if fine or rare:
            merge(self.curator, fine, self._released().n_records, self.shares.pair_noise, rare)

    def _narrow(self) -> None:
        """Choose among fewer sets, where the first tables say so."""

    def measure_required(self) -> None:
        """The required tables, all at once."""
        if scopes := self.shares.required:
            share, n = self.shares.each_required, len(self.shares.required)
            facts = {"round": 0, "share": float(share), "selection_scale": None, "candidates": n}
            self._measure(scopes, share * n, [facts | {"weight": self.sets.weight(scope)} for scope in scopes])

    def measure_star(self) -> None:
        """Tables of all pairs with the target, as far as no clique becomes too large, at once; drowned, again."""
        if self.sets.target is None:
            return
        scopes: list[Scope] = []
        for pair in self.pairs:
            if not any(set(pair) <= set(wanted) for wanted in self.shares.required) and self.tree.admits([pair])[0]:
                self.tree.join(pair)
                scopes.append(pair)
        cells, spent, n = [self.sets.cells(scope) for scope in scopes], Fraction(0), len(scopes)
        half = STAR * self.shares.rounds
        # Before it may get more than half, its own tables say better how many records there are.
        for most in (half, self.shares.rounds):
            share = min(self.shares.star(self.n_records, cells), most) - spent
            if share > 0 and spent in (0, half):
                facts = {"round": 0, "share": float(share / n), "selection_scale": None, "candidates": n, "weight": 1.0}
                self._measure(scopes, share, [facts] * n)
                spent += share

    def measure_worst(self, number: int, spent: Fraction) -> bool:
        """One round: select sets, measure them, refit. Whether that changed their tables by more than noise would."""
        shares, together = self.shares, self.together
        chosen: list[Scope] = []
        facts: list[dict[str, Any]] = []
        self.number = number
        allowed, named = self._candidates(number, spent / together)
        share = spent / together
        n_parts = together if len(allowed) * together > _MOST_SCORES else 1
        selecting = share * shares.selecting(share, self.n_records, len(allowed) // n_parts)
        noise = shares.expected_noise(share - selecting)
        scale = WorstFit.planned(shares.adjacency, shares.cost, selecting).scale
        expected, sizes = self.fit.expected_cells(allowed)
        ends, weights = np.cumsum(sizes), np.ones(len(allowed))
        if self.sets.workload:
            weights[:] = [self.sets.weight(scope) for scope in allowed]
        orders, part = list(by_order(allowed)), np.empty(len(allowed), dtype=np.int64)
        for own, scopes in orders:
            part[own] = (scopes.sum(axis=1) + number) % n_parts
        for turn in range(together):
            places = np.flatnonzero(part == turn % n_parts)
            if chosen:
                places = places[self._apart(orders, places, chosen)]
            if len(places) == 0:
                continue  # the tables that are measured get its part
            some, own = [named[place] for place in places.tolist()], weights[places]
            own_ends = np.cumsum(sizes[places])
            cells = expected[np.repeat(ends[places] - own_ends, sizes[places]) + np.arange(own_ends[-1])]
            # The score subtracts what measuring would add in noise, so that large tables are measured only for much.
            # Weights do not count there: what is below its noise would be chosen for mattering less.
            floors = sizes[places] * noise / np.maximum(own / own.max(), _LEAST_WEIGHT)
            at = self.curator.ask(WorstFit(some, cells, floors, own), selecting)
            weight = {"weight": float(own[at]), "heaviest": float(own.max())}
            known = {"round": number, "selection_scale": scale, "candidates": len(some), **weight}
            facts.append(known | ({"parts": n_parts} if n_parts > 1 else {}))
            chosen.append(allowed[places[at]])
            self._join(chosen[-1])
        measuring = spent - selecting * len(chosen)
        self._measure(chosen, measuring, [{"share": float(spent / len(chosen)), **known} for known in facts])
        made = self.rounds[-len(chosen) :]
        # Summed: the last of several sets often says nothing while the first says much, and doubling for it costs more
        # than it saves.
        change, misfit, noise = (sum(record[of] for record in made) for of in ("change", "misfit", "offset"))
        return change > noise or misfit > _TELLING * noise

    def _join(self, scope: Scope) -> None:
        """Make room in the junction tree for a table."""
        self.tree.join(scope)

    def _apart(
        self, orders: Sequence[tuple[np.ndarray, np.ndarray]], places: np.ndarray, chosen: Sequence[Scope]
    ) -> np.ndarray:
        """Which of some candidates, in ascending order, can be measured beside what was chosen since the last fit.

        What shares a pair with a set that is measured anyway waits for the next round, which knows more.
        """
        together = np.zeros((len(self.names), len(self.names)), dtype=bool)
        for one in chosen:
            together[np.ix_(one, one)] = True
        free = np.zeros(len(places), dtype=bool)
        for all_of_it, sets in orders:
            here = np.searchsorted(places, all_of_it)
            asked = here < len(places)
            asked[asked] = places[here[asked]] == all_of_it[asked]
            here, scopes = here[asked], sets[asked]
            apart = np.ones(len(scopes), dtype=bool)
            for i, j in itertools.combinations(range(scopes.shape[1]), 2):
                apart &= ~together[scopes[:, i], scopes[:, j]]
            if apart.any():
                free[here[apart]] = self.tree.admissible(scopes[apart], 0)
        return free

    @property
    def kept(self) -> Fraction:
        """What is left for the probes when all rounds are done."""
        return self.shares.probes if self.probes else Fraction(0)

    def measure_probes(self) -> None:
        """Tables drawn at random: no round has looked at them."""
        if self.probes:
            self.curator.ask(Tables(self._named(self.probes)), self.curator.left)

    def _candidates(self, number: int, share: Fraction) -> tuple[list[Scope], list[tuple]]:
        """What a round can choose from: what keeps the junction tree small. Positions, and names."""
        # Noise that is expected to exceed the number of records hides whatever the table says.
        most = self.n_records / self.shares.expected_noise(share)
        larger = self.sets.larger(self.fit.noisy.cliques.indices, most)
        fitting = np.flatnonzero(self.tree.admissible(self.places)) if self.pairs else np.empty(0, dtype=np.int64)
        self.last[fitting] = number
        pairs = fitting.tolist()
        more = [scope for scope, fit in zip(larger, self.tree.admits(larger), strict=True) if fit]
        # They fit with the most states that numbers can merge into; with fewer, trees might be found that are larger.
        if not pairs and not more:
            return self.pairs, self.named_pairs
        return [*(self.pairs[k] for k in pairs), *more], [*(self.named_pairs[k] for k in pairs), *self._named(more)]

    def _measure(self, scopes: Sequence[Scope], spent: Fraction, facts: Sequence[dict[str, Any]]) -> None:
        """Release the tables of some sets, note what they say, refit, note what that changed."""
        before, offset = self.fit, self.shares.expected_noise(spent, len(scopes))
        expected = before.expected_tables(scopes)
        # Noted before and filled in after, so that a release has an entry for each table wherever it is interrupted.
        self.rounds += [
            {**known, "misfit": 2 * float(table.sum()), "change": 0.0, "offset": table.size * offset}
            for known, table in zip(facts, expected, strict=True)
        ]
        values, records = self.curator.ask(Tables(self._named(scopes)), spent), self.rounds[-len(scopes) :]
        for value, table, record in zip(values, expected, records, strict=True):
            record["misfit"] = float(np.abs(value - table).sum())
        self.fit = self.refit(self._released(), before, self.tree)
        for table, after, record in zip(expected, self.fit.expected_tables(scopes), records, strict=True):
            record["change"] = float(np.abs(after - table).sum())

    def _released(self) -> NoisyMarginals:
        release = self.curator.release("marginals", {})
        noisy = noisy_marginals(release, self.names, merge=False)
        return replace(noisy, impossible=tuple(release.schema.zeros)) if release.schema.zeros else noisy

    def _named(self, scopes: Sequence[Scope]) -> list[tuple]:
        return [tuple(self.names[i] for i in scope) for scope in scopes]

    def release(self) -> Release:
        """All tables so far, and what there is to say about the search."""
        last = dict.fromkeys(self.shares.sets.allowed, 0) | dict(zip(self.pairs, self.last.tolist(), strict=True))
        gone = sorted(item for item in last.items() if item[1] < self.number)
        # Of a search that was interrupted, the last records may be of tables that were not released.
        measured = sum(len(scope) > 1 for scope in self.curator.release("marginals", {}).scopes)
        public = {
            "rounds": self.rounds[:measured],
            "probes": max(measured - len(self.rounds), 0),
            "unavailable": [[*(encode_label(self.names[i]) for i in pair), number] for pair, number in gone],
            "settings": self.asked,
        }
        return self.curator.release("marginals", public)


def _spread(noisy: NoisyMarginals) -> list[float]:
    """``1 - sum(p^2)`` of each variable, as its first table says, without the noise's own part."""
    tables = {scope[0]: (table, variance) for scope, table, variance in reversed(_tables(noisy))}
    sizes, n = noisy.cliques.cardinalities, noisy.n_records
    squares = [float((tables[i][0] ** 2 - tables[i][1] / n**2).sum()) for i in range(len(sizes))]
    return [min(max(1 - square, 0.0), 1 - 1 / size) for square, size in zip(squares, sizes, strict=True)]


def _tables(noisy: NoisyMarginals) -> list[tuple[Scope, np.ndarray, np.ndarray]]:
    """Of each table its variables, its proportions and the variance of its counts."""
    cliques = noisy.cliques
    split = zip(cliques.indices, cliques.split(noisy.proportions), cliques.split(noisy.cell_variance), strict=True)
    return list(split)
