"""Adaptive structure learning: measure the variables whose table the model so far gets most wrong, and refit.

The scheme of McKenna, Mullins, Sheldon and Miklau (2022, "AIM"), with candidates, shares and a fit of its own.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from pgmpy_dp.inference.growing_tree import GrowingTree, by_order
from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.inference.scope_marginals import Scope
from pgmpy_dp.learning.fine_grids import fine_grained, measure_means, merge, refine, undivided, zeros
from pgmpy_dp.learning.level_engine import Levels, at_levels, leaf_scope
from pgmpy_dp.learning.level_plan import coarser_tables, levels_in, within_workload
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
from pgmpy_dp.schema.rules import Box
from pgmpy_dp.shown import quantity, shown
from pgmpy_dp.tables.networks.budget_shares import (
    NetworkShares,
    network_shares,
    one_way_weights,
    public_of,
    select_and_measure,
)
from pgmpy_dp.tables.networks.candidates import draw_probes
from pgmpy_dp.tables.networks.network_estimate import NetworkEstimate, estimate_network
from pgmpy_dp.tables.networks.search_policy import Measurement, Spending, gain, losses, measurements

_TELLING = 1.3  # times its noise: a table that differs so much from the model says something, whatever is learned of it
_MOST_SCORES = 1_000_000  # that the selections of a round may have noise drawn for; each has a part of them beyond
_FLOOR = 1 / 2  # of the noise that measuring would add, which a score subtracts
_COARSER = Fraction(11, 20)  # of what a table with levels would get, as in `at_every_level`: for coarser ones, last
_LEAST_WEIGHT = 1 / 1024  # of the largest: what a selection counts smaller ones as

Refit = Callable[..., NetworkEstimate]


def run(
    table: PrivateTable,
    settings: Settings,
    budget: Budget,
    progress: Callable[[float], None] | None = None,
    refit: Refit = estimate_network,
    base_of: Callable[[Release], LogLinearModel] | None = None,
    prior_privacy: Mapping[str, Any] | None = None,
    search_type: Callable[..., Search] | None = None,
    among: Callable[[Collection[int]], bool] | None = None,
    largest: Mapping[Hashable, int] | None = None,
) -> Release:
    """Release noisy tables of all variables and of small sets of them, chosen one after the other.

    Refuses what :func:`~pgmpy_dp.tables.networks.budget_shares.network_shares` refuses.

    Parameters
    ----------
    settings : Settings
        Of :class:`~pgmpy_dp.estimators.PrivateNetwork`. Defaults that depend on the noise are those of
        :meth:`~pgmpy_dp.tables.networks.budget_shares.NetworkShares.start` and `selecting`.
    progress : callable, optional
        Called after each measurement with the share of the budget that is spent.
    refit : callable
        A function from noisy tables, the last fit and the junction tree to a fit, and of nothing else: hence
        post-processing.
    base_of : callable, optional
        A function from the release of single variables to a prior model in its states, which `refit` then gets as
        ``base``. It depends on that release, and on what is public or was released before.
    prior_privacy : mapping, optional
        The privacy record of what `base_of` was learned from, as JSON: the release says it, as
        ``public["settings"]["prior"]``, for what was selected depends on that too.

    Returns
    -------
    Release
        ``kind="marginals"``: one table per variable, in the order of the schema, then one per number that the schema
        does not divide, in cells that follow its first table (:func:`~pgmpy_dp.learning.fine_grids.refine`), then one
        per measurement, in the order in which they were made; a set may be measured again, and single variables too.
        ``public["rounds"]`` has an entry for each table of several variables that is no probe, all of it computed from
        released and public numbers: ``round`` (0 for what no round selected: required sets, the star on a target, and
        last the tables at coarser levels of what was selected), ``share`` of the budget, ``selection_scale``,
        ``candidates`` (how many), ``weight`` of the set and of the ``heaviest``, ``misfit`` and ``change`` (l1
        distances in records between what the model before expected and the measured, and the refitted, table) and
        ``offset`` (the expected l1 norm of the table's noise); where candidates are so many that each selection of a
        round has a part of them, ``parts``.
        ``public["unavailable"]`` has the pairs that are permitted and could not be selected in the last round, as they
        would have made a clique too large, each with the number of the last round that could (0: none).
        ``public["means"]`` has the means of numbers that were wanted: what larger numbers count as, the mean, and the
        standard deviation of its noise (:func:`~pgmpy_dp.learning.fine_grids.measure_means`).
        ``public["probes"]`` says how many of the last tables were drawn at random.

    Notes
    -----
    Privacy
        *Sensitivity.* One table: 1 in l1 and l2 norm under ``add_remove``; 2 and sqrt(2) under ``replace_one``. A
        clipped sum of values in [0, 1]: 1 under both (``model_errors``). The
        score of a set e of the weight w_e, ``w_e norm1(n_e - round(N mu_e)) - k_e E|noise|/2``, moves by at most 1 or 2
        times the largest weight, which counts as 1: given what was released before, everything in it but n_e is public,
        and it is computed in integers (:func:`~pgmpy_dp.private.operators.worst_fit.misfit_scores`). No exact number of
        records is used: N is the public one or the mean of the noisy tables' sums. Which sets are candidates is a
        function of public arguments and of releases (:mod:`pgmpy_dp.tables.networks.candidates`), and is decided before
        any of them is scored.

        *Guarantee.* Under the table's adjacency: rho-zCDP, or epsilon-DP for a pure budget; an (epsilon, delta) budget
        has the largest rho that dp-accounting converts to it. The one-way tables, first and later ones, the second ones
        of numbers, clipped sums, the required tables, the star on a target, in each round a selection and a
        measurement, and last the tables at coarser levels, which follow from the selected ones, get exact rational
        shares of the budget. The shares of later one-way tables, of the star, of a round and of coarser levels, for
        which each round leaves a part of its own, are functions of earlier releases, are fixed before their tables are
        counted, and never exceed what is left; so the shares of any course of events sum to at most 1, and a sum of rho
        (of epsilon) that never exceeds the budget is a valid filter for mechanisms, costs and a number of rounds that
        are chosen adaptively (Whitehouse, Ramdas, Rogers and Wu 2023, Theorem 1; Rogers, Roth, Ullman and Vadhan 2016
        for epsilon). The fit between rounds is post-processing.

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
    budget, settings = require_table_and_budget(table, budget), settings.filled(reserved=(), condition="")
    shares = network_shares(table.schema, table.adjacency, settings, budget, among, largest)
    means = f", means of {', '.join(map(shown, settings.means))}" if settings.means else ""
    singles = quantity(table.schema, "variable") + means
    curator = TableCurator(
        table,
        budget,
        what=f"tables of {singles} and of pairs chosen among {len(shares.candidates)}{settings.condition}",
        mechanism=select_and_measure(shares.cost),
        random_state=settings.random_state,
        fine=True,
    )
    public_settings = public_of(settings, budget) | ({} if prior_privacy is None else {"prior": dict(prior_privacy)})
    search = (search_type or Search)(curator, shares, public_settings, refit, base_of, settings)
    with curator.keeping(search.release):
        for measurement in measurements(search):
            search.measure(measurement)
            if progress is not None:
                progress(float(1 - curator.left))
    return search.release()


class Search:
    """The state of a search: its releases, the fit to them, and the sets that are left to choose from."""

    fit: NetworkEstimate
    _zeros: tuple[Box, ...] = ()  # of merged states, which no later table changes: their weights take long

    def __init__(
        self,
        curator: TableCurator,
        shares: NetworkShares,
        public_settings: dict[str, Any],
        refit: Refit,
        base_of: Callable[[Release], LogLinearModel] | None,
        settings: Settings,
    ) -> None:
        self.curator, self.shares, self.refit, self.base_of = curator, shares, refit, base_of
        self.settings, self.public_settings, self.probes = settings, public_settings, list[Scope]()
        self.names, self.pairs = curator.facts.schema.variables, list(shares.candidates)
        self._place = {name: place for place, name in enumerate(self.names)}
        self.named_pairs = self._named(self.pairs)
        self.places = np.array(self.pairs, dtype=np.int64).reshape(-1, 2)
        # Of each pair, the last round that could select it.
        self.last = np.zeros(len(self.pairs), dtype=np.int64)
        self.number = 0  # of the last round
        self.told = True  # whether it said more than noise would
        self.gained = np.zeros(2)
        self._added: dict[Fraction, list[float]] = {}  # precisions by share: each is asked for in several rounds
        self.rounds: list[dict[str, Any]] = []
        self.means: list[dict[str, Any]] = []
        self.kept = Fraction(0)  # for tables at coarser levels than chosen ones

    @property
    def n_records(self) -> float:
        """The public number of records, or what the tables so far say."""
        return self.fit.noisy.n_records

    @property
    def left(self) -> Fraction:
        """The share of the budget that is left, without that of the probes and of coarser levels."""
        return self.curator.left - self.kept - (self.shares.probes if self.probes else 0)

    def measure(self, measurement: Measurement) -> None:
        """Release the tables that the policy names, and refit."""
        match measurement.of:
            case "variables":
                self._measure_variables(measurement.share)
            case "tables":
                self._measure_at_once(dict.fromkeys(self._named(measurement.scopes), 1), measurement.share)
            case "coarser":
                scopes, self.kept = self.curator.release("marginals", {}).scopes, Fraction(0)
                self._measure_at_once(coarser_tables(scopes, self._levels), measurement.share)
            case "round":
                self._measure_worst(measurement.share, measurement.tables)
            case "again":
                if names := self._again:
                    self.curator.ask(Tables([(name,) for name in names], self._weights(names)), measurement.share)
            case "probes" if self.probes:
                self.curator.ask(Tables(self._named(self.probes)), self.curator.left)

    def _measure_variables(self, share: Fraction) -> None:
        """Measure one table of each variable; in larger tables its fine cells are merged."""
        self.curator.ask(Tables([(name,) for name in self.one_way_names], self._weights(self.one_way_names)), share)
        if self.settings.means:
            self.means = measure_means(self.curator, self.settings.means, self.shares.means)
        self._merge(self.settings.merge_rare)
        self._zeros = zeros(self.curator.release("marginals", {}))
        released = self._released()
        self.shares = self.shares.knowing(released.n_records, released.cliques.cardinalities)
        if self.base_of is not None:
            self.refit = partial(self.refit, base=self.base_of(self.curator.release("marginals", {})))
        noisy = self._released()
        self.tree = GrowingTree(
            with_zeros(noisy.cliques, [*self.curator.facts.schema.zeros, *self.settings.reserved]),
            self.public_settings["max_clique_cells"],
        )
        self.fit = self.refit(noisy, None, self.tree)
        self.sets = replace(self.shares.sets, sizes=noisy.cliques.cardinalities)
        self._narrow()
        seed = self.settings.random_state
        rng = np.random.default_rng(None if seed is None else [seed, len(self.names)])
        # Also of sets without the target: they tell how wrong the model is where nothing is measured.
        self.probes = draw_probes(replace(self.sets, target=None), rng) if self.shares.probes else []

    def _measure_at_once(self, weights: Mapping[tuple, int], share: Fraction) -> None:
        """Measure tables that no round selected, with shares by their weights."""
        each = [float(share * weight / sum(weights.values())) for weight in weights.values()]
        both = zip(each, map(self.sets.weight, self._places(weights)), strict=True)
        new = [{"round": 0, "share": s, "selection_scale": None, "candidates": len(each), "weight": w} for s, w in both]
        self._measure([*weights], share, new, [*weights.values()])

    @property
    def _again(self) -> list[Hashable]:
        """Variables that can be measured again: what was merged from a fine grid cannot."""
        kept = self.curator.facts.declared.fine().cardinalities
        return [name for name in self.one_way_names if self.curator.facts.schema.cardinality(name) == kept[name]]

    @property
    def precision(self) -> np.ndarray:
        """The precision of each variable's table: 1 over the variance of a cell, by all tables that hold it."""
        cliques, precisions = self.fit.noisy.cliques, np.zeros(len(self.fit.noisy.cliques.variables))
        for scope, cells, variance in zip(cliques.indices, cliques.sizes, self.fit.noisy.table_variance, strict=True):
            for i in scope:  # as a sum over the cells of the others
                precisions[i] += cliques.cardinalities[i] / (variance * cells)
        return precisions[: len(self.names)]  # without levels'

    def loss(self, share: Fraction, precision: np.ndarray) -> np.ndarray:
        """The loss by noise in one-way tables of this precision that get this share more."""
        names, precision = self._again, precision.copy()
        if share > 0 and names:
            if share not in self._added:
                planned = self.shares.noises(share, len(names), self._weights(names))
                self._added[share] = [1 / noise.variance for noise in planned]
            precision[[self._place[name] for name in names]] += self._added[share]
        return losses(self.fit.one_way, precision**-0.5 / self.n_records)

    @property
    def one_way_names(self) -> Sequence[Hashable]:
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

    def before_rounds(self, spending: Spending) -> Iterator[Measurement]:
        """Tables of all pairs with the target, as far as no clique becomes too large, at once; again if they pay."""
        scopes: list[Scope] = []
        for pair in self.pairs if self.sets.target is not None else ():
            if not any(set(pair) <= set(wanted) for wanted in self.shares.required) and self.tree.admits([pair])[0]:
                self.tree.join(pair)
                scopes.append(pair)
        cells = [self.sets.cells(scope) for scope in scopes]
        whole = self.shares.star(self.n_records, cells)
        share = self.shares.first_star(self.n_records, cells, self.left)
        while share > 0 and spending.affords(share):
            yield from spending.measured(Measurement("tables", share, scopes))
            whole -= share
            share = min(2 * share, whole, self.left)

    def _measure_worst(self, spent: Fraction, together: int) -> None:
        """One round: select sets, measure them, refit."""
        shares = self.shares
        self.number = number = self.number + 1
        chosen, chosen_names = list[Scope](), list[tuple]()
        facts: list[dict[str, Any]] = []
        allowed, named = self._candidates(number, spent / together)
        share = spent / together
        n_parts = together if len(allowed) * together > _MOST_SCORES else 1
        selecting = share * shares.selecting(share, self.n_records, len(allowed) // n_parts)
        noise = shares.expected_noise(share - selecting)
        scale = WorstFit.planned(shares.adjacency, shares.cost, selecting).scale
        if self._levels:
            tables = [table.ravel() for table in self._expected(self.fit, named)]
            expected, sizes = np.concatenate(tables), np.array([*map(len, tables)])
        else:
            expected, sizes = self.fit.expected_cells(allowed)
        ends, weights = np.cumsum(sizes), np.ones(len(allowed))
        if self.sets.workload:
            weights[:] = [self.sets.weight(scope) for scope in allowed]
        orders, part = list(by_order(allowed)), np.empty(len(allowed), dtype=np.int64)
        for positions, scopes in orders:
            part[positions] = (scopes.sum(axis=1) + number) % n_parts
        for turn in range(together):
            places = np.flatnonzero(part == turn % n_parts)
            if chosen:
                places = places[self._apart(orders, places, chosen)]
            if len(places) == 0:
                continue  # the tables that are measured get its part
            some, some_weights = [named[place] for place in places.tolist()], weights[places]
            some_ends = np.cumsum(sizes[places])
            cells = expected[np.repeat(ends[places] - some_ends, sizes[places]) + np.arange(some_ends[-1])]
            # A fit that shrinks gains about D^4/(D^2 + o^2) by a table with the misfit D and the noise o, in l1. It
            # gains as much if D grows by oD/(D^2 + 2 o^2) of what o does, at most .35; half of it keeps smaller tables
            # before larger ones where noise is little. Weights do not count there: what is below its noise would be
            # chosen for mattering less.
            floors = _FLOOR * sizes[places] * noise / np.maximum(some_weights / some_weights.max(), _LEAST_WEIGHT)
            at = self.curator.ask(WorstFit(some, cells, floors, some_weights), selecting)
            weight = {"weight": float(some_weights[at]), "heaviest": float(some_weights.max())}
            known = {"round": number, "selection_scale": scale, "candidates": len(some), **weight}
            facts.append(known | ({"parts": n_parts} if n_parts > 1 else {}))
            chosen.append(allowed[places[at]])
            chosen_names.append(some[at])
            self._join(chosen[-1])
        measuring = spent - selecting * len(chosen)
        finer = sum(bool(coarser_tables([names], self._levels)) for names in chosen_names)
        self.kept += (kept := _COARSER * measuring * Fraction(finer, len(chosen)))
        each = {"share": float(spent / len(chosen))}
        self._measure(chosen_names, measuring - kept, [each | known for known in facts])
        made = self.rounds[-len(chosen) :]
        # Summed: the last of several sets often says nothing while the first says much, and doubling for it costs more
        # than it saves.
        change, misfit, noise = (sum(record[of] for record in made) for of in ("change", "misfit", "offset"))
        self.told = change > noise or misfit > _TELLING * noise

    def _join(self, scope: Scope) -> None:
        """Make room in the junction tree for a table."""
        self.tree.join(scope)

    def _apart(
        self, orders: Sequence[tuple[np.ndarray, np.ndarray]], places: np.ndarray, chosen: Sequence[Scope]
    ) -> np.ndarray:
        """A mask of the candidates, in ascending order, that can be measured beside those chosen since the last fit.

        A set that shares a pair with one that is measured anyway waits for the next round, which knows more.
        """
        together = np.zeros((len(self.names), len(self.names)), dtype=bool)
        for one in chosen:
            together[np.ix_(one, one)] = True
        free = np.zeros(len(places), dtype=bool)
        for all_of_it, sets in orders:
            here = np.searchsorted(places, all_of_it)
            present = here < len(places)
            present[present] = places[here[present]] == all_of_it[present]
            here, scopes = here[present], sets[present]
            apart = np.ones(len(scopes), dtype=bool)
            for i, j in itertools.combinations(range(scopes.shape[1]), 2):
                apart &= ~together[scopes[:, i], scopes[:, j]]
            if apart.any():
                free[here[apart]] = self.tree.admissible(scopes[apart], 0)
        return free

    def _candidates(self, number: int, share: Fraction) -> tuple[list[Scope], list[tuple]]:
        """The sets that a round can choose from, as they keep the junction tree small: positions, and names."""
        # Noise that is expected to exceed the number of records hides whatever the table says.
        most = self.n_records / self.shares.expected_noise(share)
        cliques, levels = self.fit.noisy.cliques, self._levels
        measured = [[cliques.position[name] for name in leaf_scope(scope, levels)] for scope in cliques.scopes]
        larger = self.sets.larger(measured, math.inf if levels else most)
        fitting = np.flatnonzero(self.tree.admissible(self.places)) if self.pairs else np.empty(0, dtype=np.int64)
        self.last[fitting] = number
        pairs = fitting.tolist()
        more = [scope for scope, fit in zip(larger, self.tree.admits(larger), strict=True) if fit]
        # They fit with the most states that numbers can merge into; with fewer, trees might be found that are larger.
        if not pairs and not more:
            return self.pairs, self.named_pairs
        scopes = [*(self.pairs[k] for k in pairs), *more]
        named = [*(self.named_pairs[k] for k in pairs), *self._named(more)]
        if not levels:
            return scopes, named
        schema, wanted = self.curator.facts.schema, [names for names, _ in self.settings.workload or ()]
        of = {name: [name, *(k for k, (variable, _) in levels.items() if variable == name)] for name in self.names}
        every = [
            (scope, names)
            for scope, variables in zip(scopes, named, strict=True)
            for names in itertools.product(*(of[name] for name in variables))
            if len(names) == 2 or math.prod(map(schema.cardinality, names)) <= most
            if not wanted or within_workload(names, wanted, schema)
        ]
        return ([scope for scope, _ in every], [names for _, names in every]) if every else (scopes, named)

    @property
    def _levels(self) -> Levels:
        """The levels that rounds choose from beside variables: not of a target, nor with a prior, which knows none."""
        levels = self.curator.facts.schema.levels if self.base_of is None else {}
        others = [name for name, level in levels.items() if level.variable != self.settings.target]
        return levels_in(self.curator.facts.schema, [others])

    def _measure(self, scopes: Sequence[tuple], spent: Fraction, facts: Sequence[dict], weights: Any = None) -> None:
        """Release the tables of some sets, note what they say, refit, note what that changed."""
        before, noises = self.fit, self.shares.noises(spent, len(scopes), weights)
        expected = self._expected(before, scopes)
        # Noted before and filled in after, so that a release has an entry for each table wherever it is interrupted.
        self.rounds += [
            {**known, "misfit": 2 * float(table.sum()), "change": 0.0, "offset": table.size * noise.mean_size}
            for known, table, noise in zip(facts, expected, noises, strict=True)
        ]
        values, records = self.curator.ask(Tables(scopes, weights), spent), self.rounds[-len(scopes) :]
        for value, table, record in zip(values, expected, records, strict=True):
            record["misfit"] = float(np.abs(value - table).sum())
        self.fit = self.refit(self._released(), before, self.tree)
        n, self.gained = before.noisy.n_records, np.zeros(2)
        for value, table, after, noise, record in zip(
            values, expected, self._expected(self.fit, scopes), noises, records, strict=True
        ):
            record["change"] = float(np.abs(after - table).sum())
            self.gained += gain(value, table / n, after / self.n_records, n, noise.variance)
        self.gained = np.maximum(self.gained, 0.0)

    def _released(self) -> NoisyMarginals:
        release = self.curator.release("marginals", {})
        noisy = noisy_marginals(release, self.names, merge=False)
        return replace(noisy, impossible=self._zeros)

    def _expected(self, fit: NetworkEstimate, scopes: Sequence[tuple]) -> list[np.ndarray]:
        """Expected records of tables, whose scopes may name levels."""
        return at_levels(fit.expected_tables(self._places(scopes)), scopes, self._levels)

    def _places(self, scopes: Iterable[tuple]) -> list[Scope]:
        levels = self._levels
        return [tuple(self._place[name] for name in leaf_scope(scope, levels)) for scope in scopes]

    def _named(self, scopes: Sequence[Scope]) -> list[tuple]:
        return [tuple(self.names[i] for i in scope) for scope in scopes]

    def release(self) -> Release:
        """Return the release: all tables so far, and the course of the search."""
        last = dict.fromkeys(self.shares.sets.allowed, 0) | dict(zip(self.pairs, self.last.tolist(), strict=True))
        gone = sorted(item for item in last.items() if item[1] < self.number)
        # Of a search that was interrupted, the last records may be of tables that were not released.
        measured = sum(len(scope) > 1 for scope in self.curator.release("marginals", {}).scopes)
        public = {
            "rounds": self.rounds[:measured],
            "probes": max(measured - len(self.rounds), 0),
            "unavailable": [[*(encode_label(self.names[i]) for i in pair), number] for pair, number in gone],
            "settings": self.public_settings,
        } | ({"means": self.means} if self.means else {})
        return self.curator.release("marginals", public)
