"""The shares of the budget that learning a network spends, from public numbers alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from pgmpy_dp.checks import checked_weight
from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.scope_marginals import Scope, admissible, largest_clique
from pgmpy_dp.learning.fine_grids import fine_grained, largest_sizes, undivided
from pgmpy_dp.learning.options import Settings
from pgmpy_dp.learning.public_graph import checked_graph, encoded_graph, set_positions
from pgmpy_dp.learning.structural_zeros import with_zeros
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.curator.curator_base import cost_of
from pgmpy_dp.private.guarantee import ZCDP, PureDP
from pgmpy_dp.private.operators.model_errors import ModelErrors
from pgmpy_dp.private.operators.tables import Tables
from pgmpy_dp.private.operators.worst_fit import WorstFit
from pgmpy_dp.private.sensitive import Noise
from pgmpy_dp.schema import Schema, decode_label, encode_label
from pgmpy_dp.tables.networks.candidates import MOST_SET_CELLS, MOST_SETS, N_PROBES, Candidates

OPTIMISE = ("likelihood", "pairs")
"""What the budget is divided for, where it is weak."""
Edges = tuple[tuple[Hashable, ...], ...]
Workload = tuple[tuple[tuple[Hashable, ...], float], ...]

_MOST_CELLS = 10**8  # of all tables of pairs together, 8 bytes each
MOST_IN_A_SET = 8

_LEAST_SELECTION, _MOST_SELECTION = Fraction(1, 10), Fraction(7, 20)
_CLOSE = 0.37  # of the records: how far from the best a choice may be
_PRECISE = 5_000.0  # of `NetworkShares.strength`, above which there are more rounds
_MOST_ROUNDS = 8  # times the usual ones
_VARIABLES_A_TABLE, _MANY_VARIABLES = 16, 512
_CROWDED = 5  # variables for each table of a round that has more than usual; with fewer, they tell of the same

_ONE_WAY = 0.1
_DROWNED = Fraction(1, 4)  # of their share: what probes keep that drown in noise
_SMALL, _SEEN = 0.25, 0.5
"""Of :meth:`NetworkShares.start`: the quantile of pairs' cells that is a small table, and its noise."""
WORSE, WORSE_STAR, WORSE_PAIRS = Fraction(21, 20), Fraction(11, 10), Fraction(6, 5)
"""Times the error of single variables: what rounds that find nothing may cost, what a star may, and how much worse
tables of all pairs may be expected to become in favour of the likelihood."""
_CLEAR = 0.05  # the total variation that noise may add to tables with the target, on average


_SHARES = ("one_way_share", "number_share", "selection_share", "probe_share")
_PUBLIC = ("max_clique_cells", "n_rounds", *_SHARES, "merge_rare", "max_order", "optimise")


def public_of(settings: Settings, budget: Budget) -> dict[str, Any]:
    """The budget and the options of a search, as its release has them."""
    sets = {name: encoded_graph(getattr(settings, f"{name}_edges") or ()) for name in ("required", "forbidden")}
    means: dict[str, Any] = {}
    if settings.means:  # releases without are as those of version 0.3
        means = {"means": [encode_label(name) for name in settings.means], "mean_share": settings.mean_share}
    workload = [[[encode_label(name) for name in wanted], weight] for wanted, weight in settings.workload or ()]
    target = None if settings.target is None else encode_label(settings.target)
    return Settings.public(settings, budget, *_PUBLIC) | sets | means | {"workload": workload, "target": target}


@dataclass(frozen=True)
class NetworkShares:
    """Shares of the budget, exact fractions that sum to at most 1; made by :func:`network_shares`.

    Attributes
    ----------
    cost : PureDP or ZCDP
        The cost of everything together; its type decides the noise.
    sizes : tuple of int
        States of each variable in its table: of a number that is not divided, cells of its fine grid.
    sets : Candidates
        The sets that can be measured at all.
    required, candidates : tuple of tuple of int
        Positions of the sets measured first, and of the pairs that rounds select from, beside larger sets.
    one_way : Fraction
        Share of all first one-way tables.
    numbers : Fraction
        Share of second tables of numbers that are not divided, in cells that follow the first; 0 without such.
    means : Fraction
        Share of clipped sums of numbers, for their means; 0 where none are wanted.
    each_required : Fraction
        Share of each required table.
    probes : Fraction
        Share of all probes.
    first_round : Fraction
        Least share of each table of the first round, 0 if there is nothing to select from.
    adaptive : bool
        Whether rounds leave to single variables what is worth more there
        (:class:`~pgmpy_dp.tables.networks.search_policy.Spending`). Else they get all that is left: where single
        variables have a share by option, and where there is a workload.
    n_rounds : int or None
        As the option has it.
    selection : Fraction
        Part of a round's share that selects, at most.
    fixed : bool
        Whether it is always that part.
    """

    adjacency: Adjacency
    cost: PureDP | ZCDP
    sizes: tuple[int, ...]
    sets: Candidates
    required: tuple[Scope, ...]
    candidates: tuple[Scope, ...]
    one_way: Fraction
    numbers: Fraction
    means: Fraction
    each_required: Fraction
    probes: Fraction
    first_round: Fraction
    adaptive: bool
    n_rounds: int | None
    selection: Fraction
    fixed: bool

    @property
    def rounds(self) -> Fraction:
        """The share of all rounds together."""
        if not self.candidates:
            return Fraction(0)
        return 1 - self.one_way - self.numbers - self.means - self.probes - len(self.required) * self.each_required

    def in_a_round(self, n_records: float) -> int:
        """The number of tables that a round selects before it measures and fits: one for each 16 variables, at least 1.

        With p > 512 variables one for each 8192/p: a round scores p^2/2 pairs, so there are p/512 times fewer rounds.
        Many records that are known precisely allow more tables, and each round selects as many times more: the rounds
        stay as few, but with few variables, since a round measures at most one table for each five of them.
        """
        p = len(self.sizes)
        usual = max(p // _VARIABLES_A_TABLE, p * p // (_VARIABLES_A_TABLE * _MANY_VARIABLES), 1)
        return max(usual, min(usual * int(self._more(n_records)), p // _CROWDED))

    def start(self, n_records: float, sizes: Sequence[int] | None = None) -> Fraction:
        """Share of each table of the first round, of variables with so many states in tables of pairs."""
        if self.n_rounds is not None or not self.first_round:
            return self.first_round
        # As `n_rounds` says; else as for 4 tables a variable (2 of a pure budget), and for more tables where so many
        # records are known precisely: then a smaller share tells as much, and more tables find more. A table of pairs
        # that drowns says nothing: fewer of them where records are known badly.
        usual = self.rounds / math.floor(_usual_rounds(self.cost, len(self.sizes)) * self._more(n_records))
        cells = [math.prod((sizes or self.sizes)[i] for i in pair) for pair in self.candidates]
        noise = float(np.quantile(cells, _SMALL)) / (2 * max(self.strength(n_records), 1e-9))
        return max(usual, self._for_noise(noise, _SEEN))

    def _for_noise(self, if_all: float, noise: float) -> Fraction:
        """The part of the rounds' share with which noise is `noise`, if it is `if_all` with all of that share."""
        power = 2.0 if isinstance(self.cost, ZCDP) else 1.0  # the share that a noise needs falls with it
        return Fraction(round(1000 * min((if_all / noise) ** power, 1.0)), 1000) * self.rounds

    def _more(self, n_records: float) -> float:
        """The number of tables over the usual number."""
        if self.n_rounds is not None:
            return 1.0
        return min(max((self.strength(n_records) / _PRECISE) ** 0.5, 1.0), _MOST_ROUNDS)

    def knowing(self, n_records: float, sizes: Sequence[int]) -> NetworkShares:
        """The same shares for about so many records, of variables with so many states in tables of pairs.

        Probes that drown get a quarter of their share: they would say next to nothing, and the rest is worth something
        elsewhere.
        """
        if not self.probes:
            return self
        cells = float(np.mean(np.asarray(sizes, dtype=float))) ** min(self.sets.max_order, 3)
        drowns = self.drowned(self.probes, N_PROBES, cells, n_records / 2)
        return replace(self, probes=self.probes * _DROWNED) if drowns else self

    def star(self, n_records: float, cells: Sequence[int]) -> Fraction:
        """The share of the star: of the tables of all pairs with the target, which are measured before the rounds.

        Parameters
        ----------
        n_records : float
            About how many records there are.
        cells : sequence of int
            Of these tables.

        Returns
        -------
        Fraction
            As much as makes their noise 5 % of the records on average, in total variation; 0 without a target.
        """
        if self.sets.target is None or not cells:
            return Fraction(0)
        if_all = self.expected_noise(self.rounds, len(cells)) * float(np.mean(cells)) / (2 * max(n_records, 1.0))
        return max(self._for_noise(if_all, _CLEAR), self.first_round * len(cells))

    def first_star(self, n_records: float, cells: Sequence[int], left: Fraction) -> Fraction:
        """The share that the star begins with, of what is left; 0 where noise would hide its tables."""
        share = min(self.star(n_records, cells), self.allowance(left))
        hidden = share and self.drowned(share, len(cells), sum(cells) / len(cells), n_records)
        return Fraction(0) if hidden else share

    def drowned(self, share: Fraction, n_tables: int, cells: float, n_records: float) -> bool:
        """Whether noise is expected to move tables further, in total variation, than any records could."""
        return self.expected_noise(share, n_tables) * cells > 2 * n_records

    def lost(self, worse: Fraction, left: Fraction) -> Fraction:
        """The share of what is left without which the error of single variables is so many times as large."""
        return (1 - 1 / worse ** (2 if isinstance(self.cost, ZCDP) else 1)) * left

    def allowance(self, left: Fraction) -> Fraction:
        """The share that rounds, or the star, may lose of what is left."""
        return self.lost(WORSE if self.sets.target is None else WORSE_STAR, left) if self.adaptive else left

    def strength(self, n_records: float) -> float:
        """The number of records over the noise of a cell in a table that gets the whole budget."""
        return n_records / self.expected_noise(Fraction(1))

    def selecting(self, share: Fraction, n_records: float, n_candidates: int) -> Fraction:
        """The part of a round's share that selects, with about so many records and so many candidates."""
        if self.fixed:
            return self.selection
        # As the option says; else as much as keeps the expected distance of the choice from the best, `s log K` with
        # the noise's scale s, at a fixed part of the records: it grows with the logarithm of the candidates, falls with
        # the budget times the squared records, and stays between 10 and 35 %.
        if_all = math.log(n_candidates + 1) * WorstFit.planned(self.adjacency, self.cost, share).scale / n_records
        wanted = (if_all / _CLOSE) ** (2 if isinstance(self.cost, ZCDP) else 1)
        return min(max(Fraction(round(1000 * min(wanted, 1.0)), 1000), _LEAST_SELECTION), self.selection)

    @property
    def pair_noise(self) -> float:
        """Expected absolute value of the noise in a cell of tables of pairs; 1 where there are none."""
        n_rounds = self.n_rounds or _usual_rounds(self.cost, len(self.sizes))
        share = self.rounds / n_rounds * (1 - _LEAST_SELECTION) or self.each_required
        return self.expected_noise(share) if share else 1.0

    @property
    def one_way_noise(self) -> list[Noise]:
        """The noise of the one-way tables."""
        weights = one_way_weights(self.sizes, self.cost)
        return list(self.noises(self.one_way, len(self.sizes), weights))

    def noise(self, share: Fraction, n_tables: int = 1) -> Noise:
        """The noise of each of some tables that get this share of the budget together."""
        return self.noises(share, n_tables)[0]

    def noises(self, share: Fraction, n_tables: int, weights: Sequence[float] | None = None) -> Sequence[Noise]:
        """The noise of each, where weights divide the share."""
        return Tables.planned(n_tables, self.adjacency, self.cost, share, weights).noise

    def expected_noise(self, share: Fraction, n_tables: int = 1) -> float:
        """Expected absolute value of that noise in one cell (of its continuous counterpart)."""
        return self.noise(share, n_tables).mean_size


def network_shares(
    schema: Schema,
    adjacency: Adjacency,
    settings: Settings,
    budget: Budget,
    among: Callable[[Collection[int]], bool] | None = None,
    largest: Mapping[Hashable, int] | None = None,
) -> NetworkShares:
    """Check public arguments, and divide the budget.

    `among` says which sets are candidates (`Candidates`), `largest` how many states some variables have at most in
    tables of several (of others :func:`~pgmpy_dp.learning.fine_grids.largest_sizes`): the search itself divides
    them, and `number_share` is for them too.

    Raises
    ------
    ValueError
        For sets of unknown variables, required tables whose junction tree is too large, more cells than fit
        in memory, and a budget too small for any selection.
    """
    required, sets, candidates = _tables_to_choose(schema, settings, among, largest or {})
    cost, n_variables = cost_of(budget), len(schema.variables)
    n_rounds = settings.n_rounds or _MOST_ROUNDS * _usual_rounds(cost, n_variables)
    numbers = Fraction(settings.number_share) if fine_grained(schema) or largest else Fraction(0)
    means = Fraction(settings.mean_share) if settings.means else Fraction(0)
    one_way = Fraction(settings.one_way_share or _ONE_WAY) if candidates else 1 - numbers - means
    rest, what = 1 - one_way - numbers - means, "to find dependence with" if candidates else "for single variables"
    if (rest if candidates else one_way) <= 0:
        taken = {"one_way": one_way if candidates else 0, "number": numbers, "mean": means}
        named = " and ".join(f"{name}_share={float(share):g}" for name, share in taken.items() if share)
        raise ValueError(f"{named} leave nothing {what}; their sum must be below 1")
    probes = Fraction(settings.probe_share) * rest
    if set(candidates) <= set(required):  # a public graph: nothing to look for
        each, first, candidates, probes = rest / max(len(required), 1), Fraction(0), (), Fraction(0)
    else:
        rest -= probes
        # Required tables get what a round has, but leave half of the budget to look for others.
        usual = settings.n_rounds or _usual_rounds(cost, n_variables)
        each = min(rest / usual, rest / (2 * len(required))) if required else Fraction(0)
        first = (rest - len(required) * each) / n_rounds
    fine = schema.fine()
    made = NetworkShares(
        adjacency=adjacency,
        cost=cost,
        sizes=tuple(fine.cardinality(name) for name in schema.variables),
        sets=sets,
        required=required,
        candidates=candidates,
        one_way=one_way,
        numbers=numbers,
        means=means,
        each_required=each,
        probes=probes,
        first_round=first,
        adaptive=settings.one_way_share is None and not settings.workload,
        n_rounds=settings.n_rounds,
        selection=Fraction(settings.selection_share or _MOST_SELECTION),
        fixed=settings.selection_share is not None,
    )
    # Refuses here, before anything is spent, where a table would drown in noise: later rounds have no smaller shares.
    # One at a coarser of k levels has at least the part 2.4/((k + 1)(k + 4)) of a round's, see `coarser_tables`.
    least = first * (1 - made.selection) / (2 * len(schema.levels) + 1) ** 2
    _ = made.one_way_noise, [made.noise(share) for share in (each, least) if share]
    _ = made.noise(probes, N_PROBES) if probes else None
    _ = made.noise(numbers, len({*fine_grained(schema), *(largest or ())})) if numbers else None
    _ = ModelErrors.noise_of(len(settings.means), cost, means) if means else None
    if first:
        WorstFit.planned(adjacency, cost, first * (made.selection if made.fixed else _LEAST_SELECTION))
    return made


def _tables_to_choose(
    schema: Schema,
    settings: Settings,
    among: Callable[[Collection[int]], bool] | None,
    largest: Mapping[Hashable, int],
) -> tuple[tuple[Scope, ...], Candidates, tuple[Scope, ...]]:
    """Tables that are required, sets that may be chosen, and the pairs among these."""
    required = _positions(schema, "required_edges", settings.required_edges or ())
    forbidden = _positions(schema, "forbidden_edges", settings.forbidden_edges or ())
    workload = settings.workload or ()
    wanted = workload_positions(schema, [names for names, _ in workload])
    target = None if settings.target is None else _positions(schema, "target", [(settings.target,)])[0][0]
    reserved = settings.filled(reserved=()).reserved
    most, zeros = {**largest_sizes(schema), **largest}, [*schema.fine().zeros, *reserved]
    merged = {*(schema.variables if settings.merge_rare else undivided(schema)), *largest}  # into whatever few states
    least = [1 if name in merged else most[name] for name in schema.variables]
    _require_measurable(workload, [math.prod(least[i] for i in scope) for scope in wanted], settings)
    sizes = tuple(most[name] for name in schema.variables)
    cliques = with_zeros(Cliques(schema.variables, sizes, tuple((name,) for name in schema.variables)), zeros)
    cells = largest_clique(cliques, required)
    if cells > settings.max_clique_cells and (required or zeros):
        asking = (
            ("required_edges", required),
            ("the schema's rules (impossible)", zeros[: len(zeros) - len(reserved)]),
            ("public", reserved),
        )
        raise ValueError(
            f"{' and '.join(name for name, scopes in asking if scopes)} need a clique of {cells} cells in the junction "
            f"tree, more than max_clique_cells={settings.max_clique_cells}; require fewer edges, leave out rules, or "
            "raise max_clique_cells"
        )
    # Of two numbers whose difference is a variable, it says what goes with what, with less noise than their table.
    for difference, ends in schema.orders.differences.items():
        (pair,), place = _positions(schema, "impossible", [ends]), schema.variables.index(difference)
        forbidden += [] if any(set(pair) <= set(scope) for scope in required) else [pair]
        wanted = [(*scope, place) if set(pair) <= set(scope) else scope for scope in wanted]
    sets = Candidates(
        sizes,
        settings.max_order,
        settings.max_clique_cells,
        tuple(map(frozenset, forbidden)),
        _weights(wanted, [weight for _, weight in workload]),
        target,
        among,
    )
    candidates = sets.pairs
    if zeros:
        candidates = tuple(admissible(cliques, candidates, settings.max_clique_cells))
    if target is not None and not candidates:
        raise ValueError(
            f"target={settings.target!r} has no table with another variable that is neither forbidden nor above "
            f"max_clique_cells={settings.max_clique_cells} cells; pass another target, forbid fewer edges, or raise "
            "max_clique_cells"
        )
    require_room(sum(map(sets.cells, candidates)), ", a smaller max_clique_cells, or forbidden_edges")
    return tuple(required), sets, candidates


def require_room(cells: int, more: str = "") -> None:
    """Raise a ValueError where the tables of all pairs have too many cells, with what `more` may help."""
    if cells > _MOST_CELLS:
        raise ValueError(
            f"the tables of all pairs have {cells:,} cells together, more than {_MOST_CELLS:,}; use fewer variables or "
            f"states{more}"
        )


def _require_measurable(workload: Workload, cells: Sequence[int], settings: Settings) -> None:
    """Raise a ValueError where a search would silently pass over sets of the workload; each has at least `cells`."""
    order, most = settings.max_order, settings.max_clique_cells
    for (names, _), size in zip(workload, cells, strict=True):
        if len(names) > order or size > most:
            raise ValueError(
                f"workload has {names!r}, a table of {size} cells, and there is none of more than max_order={order} "
                f"variables or max_clique_cells={most} cells; raise that, or pass the parts of the set that matter"
            )
    for many in range(3, order + 1):
        sizes = [size for (names, _), size in zip(workload, cells, strict=True) if len(names) == many]
        if len(sizes) > MOST_SETS or sum(sizes) > MOST_SET_CELLS:
            raise ValueError(
                f"workload has {len(sizes)} sets of {many} variables with {sum(sizes)} cells together, and a search "
                f"scores at most {MOST_SETS} sets and {MOST_SET_CELLS} cells of so many variables; pass fewer sets"
            )


def _usual_rounds(cost: PureDP | ZCDP, n_variables: int) -> int:
    return (4 if isinstance(cost, ZCDP) else 2) * n_variables


def one_way_weights(sizes: Iterable[int], cost: PureDP | ZCDP) -> list[float]:
    """Shares of the one-way tables, up to a factor, that make the sum of their expected l1 errors least.

    A table of k cells has the error ``k/sqrt(share)`` under zCDP and ``k/share`` under pure DP.
    """
    return [float(k) ** (2 / 3 if isinstance(cost, ZCDP) else 1 / 2) for k in sizes]


def select_and_measure(cost: PureDP | ZCDP) -> str:
    """Name of a mechanism that selects tables and then measures them."""
    if isinstance(cost, ZCDP):
        return "gumbel_noisy_max+discrete_gaussian"
    return "exponential_noisy_max+discrete_laplace"


def checked_sets(argument: str, sets: Any) -> Edges:
    """Check sets of two to eight names, each once; TypeError or ValueError naming the argument otherwise."""
    distinct: dict[frozenset, tuple] = {}
    for names in checked_graph(() if sets is None else sets, argument, sizes=tuple(range(2, MOST_IN_A_SET + 1))):
        distinct.setdefault(frozenset(names), names)
    return tuple(distinct.values())


def checked_means(argument: str, names: Any) -> tuple[Hashable, ...]:
    """Check a name or a list of names, each once; TypeError naming the argument otherwise."""
    listed = [names] if isinstance(names, str) or not isinstance(names, Iterable) else names
    if isinstance(listed, Mapping) or any(isinstance(name, tuple) or not isinstance(name, Hashable) for name in listed):
        raise TypeError(f"{argument}={names!r} is not a list of columns; pass {argument}=[column, ...]")
    return tuple(dict.fromkeys(listed))


def checked_workload(argument: str, sets: Any) -> Workload:
    """Check sets of names with a positive weight each, 1 by default."""
    weights = list(sets.values()) if isinstance(sets, Mapping) else None
    named = checked_graph(() if sets is None else sets, argument, sizes=tuple(range(2, MOST_IN_A_SET + 1)))
    weighted: dict[frozenset, tuple[tuple, float]] = {}
    for k, names in enumerate(named):
        weight = 1.0 if weights is None else checked_weight(f"{argument}[{names!r}]", weights[k])
        _, before = weighted.get(frozenset(names), (names, 0.0))
        weighted[frozenset(names)] = names, before + weight
    return tuple(weighted.values())


def workload_weights(schema: Schema, settings: Mapping[str, Any]) -> Callable[[Iterable[Hashable]], float]:
    """The weight of a set of names under the workload, or the target, of a release's settings."""
    encoded = settings.get("workload", ())
    released = [(tuple(decode_label(name) for name in wanted), float(weight)) for wanted, weight in encoded]
    scopes = workload_positions(schema, [names for names, _ in released])
    label = settings.get("target")
    target = None if label is None else schema.variables.index(decode_label(label))
    sets = Candidates((), 2, 0, (), _weights(scopes, [weight for _, weight in released]), target)
    return lambda names: sets.weight([schema.variables.index(name) for name in names])


def workload_positions(schema: Schema, sets: Iterable[Iterable[Hashable]]) -> list[Scope]:
    """The variables of the sets of a workload, which may name levels of them."""
    return _positions(schema, "workload", [tuple(schema.leaf_scope(names, "workload")) for names in sets])


def _weights(scopes: Iterable[Scope], weights: Iterable[float]) -> dict[frozenset[int], float]:
    """The weight of each set of variables: the sum over the levels that name it."""
    total: dict[frozenset[int], float] = {}
    for scope, weight in zip(scopes, weights, strict=True):
        total[frozenset(scope)] = total.get(frozenset(scope), 0.0) + weight
    return total


def _positions(schema: Schema, argument: str, sets: Iterable[tuple[Hashable, ...]]) -> list[Scope]:
    return [tuple(sorted(places)) for places in set_positions(schema, sets, argument)]
