"""What learning a network spends on what: settings, and everything that follows from public numbers alone."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from pgmpy_dp.models.cliques import Cliques
from pgmpy_dp.models.network_estimate import Pair, admissible_pairs, largest_clique
from pgmpy_dp.models.structural_zeros import with_zeros
from pgmpy_dp.plans.fine_grids import largest_sizes
from pgmpy_dp.plans.public_graph import checked_graph, edge_positions, encoded_graph
from pgmpy_dp.plans.settings import SeededSettings, by, share, whole
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.curator.base import cost_of
from pgmpy_dp.private.curator.tables import misfit_scale, table_noise
from pgmpy_dp.private.guarantee import ZCDP, PureDP
from pgmpy_dp.private.sensitive import Noise
from pgmpy_dp.schema import Schema

__all__ = [
    "NetworkShares",
    "NetworkSettings",
    "checked_pairs",
    "network_shares",
    "one_way_weights",
    "select_and_measure",
]

Edges = tuple[tuple[Hashable, Hashable], ...]

_MOST_CELLS = 10**8  # of all tables of pairs together, 8 bytes each


@dataclass(frozen=True)
class NetworkSettings(SeededSettings):
    """How to look for a structure, fixed before the records are looked at.

    Parameters
    ----------
    required : sequence of pairs of variable names
        Tables that are measured whatever the records say.
    forbidden : sequence of pairs of variable names
        Tables that are never measured.
    max_clique_cells : int, default 50,000
        No clique of the junction tree of all measured tables has more cells.
    n_rounds : int, optional
        In how many rounds the budget would be spent if no round were larger than the first. Default: 4 times the number
        of variables for zCDP, 2 times for a pure budget.
    one_way_share : float in (0, 1), default 0.1
        Share of the budget for the tables of single variables.
    selection_share : float in (0, 1), default 0.1
        Share of each round for selecting its pair; the rest measures it.
    merge_rare : bool, default False
        Whether the states of a categorical variable whose noisy counts are small become one in tables of pairs.
    """

    required: Edges = field(default=(), metadata=by(lambda name, pairs: checked_pairs(f"{name}_edges", pairs)))
    forbidden: Edges = field(default=(), metadata=by(lambda name, pairs: checked_pairs(f"{name}_edges", pairs)))
    max_clique_cells: int = field(default=50_000, metadata=whole(4))
    n_rounds: int | None = field(default=None, metadata=whole(1))
    one_way_share: float = field(default=0.1, metadata=share())
    selection_share: float = field(default=0.1, metadata=share())
    merge_rare: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        both = {frozenset(pair) for pair in self.required} & {frozenset(pair) for pair in self.forbidden}
        if both:
            raise ValueError(f"required_edges and forbidden_edges both have {sorted(map(tuple, both), key=repr)}")

    def public(self, budget: Budget, *names: str) -> dict[str, Any]:
        """What a release says of the budget and of all that was asked."""
        names = names or ("max_clique_cells", "n_rounds", "one_way_share", "selection_share", "merge_rare")
        pairs = {"required": encoded_graph(self.required), "forbidden": encoded_graph(self.forbidden)}
        return super().public(budget, *names) | pairs


@dataclass(frozen=True)
class NetworkShares:
    """Shares of the budget, exact fractions that sum to at most 1; made by :func:`network_shares`.

    Attributes
    ----------
    cost : PureDP or ZCDP
        What everything together costs; its type decides the noise.
    sizes : tuple of int
        States of each variable in its table: of a number that is not divided, cells of its fine grid.
    required, candidates, allowed : tuple of pair of int
        Positions of the pairs measured first, of those that rounds select from, and of all that are not forbidden.
    one_way : Fraction
        For all tables of single variables.
    each_required : Fraction
        For each required table.
    first_round : Fraction
        For the first round, 0 if there is nothing to select from. The rounds get all that is left.
    selection : Fraction
        Part of a round's share.
    """

    adjacency: Adjacency
    cost: PureDP | ZCDP
    sizes: tuple[int, ...]
    required: tuple[Pair, ...]
    candidates: tuple[Pair, ...]
    allowed: tuple[Pair, ...]
    one_way: Fraction
    each_required: Fraction
    first_round: Fraction
    selection: Fraction

    @property
    def rounds(self) -> Fraction:
        """What the rounds have together."""
        return 1 - self.one_way - len(self.required) * self.each_required if self.candidates else Fraction(0)

    @property
    def pair_noise(self) -> float:
        """Expected absolute value of the noise in a cell of the first tables of pairs; 1 where there are none."""
        share = self.first_round * (1 - self.selection) or self.each_required
        return self.expected_noise(share) if share else 1.0

    @property
    def one_way_noise(self) -> list[Noise]:
        """Of the tables of single variables."""
        return table_noise(len(self.sizes), self.adjacency, self.cost, self.one_way, self.one_way_weights)

    @property
    def one_way_weights(self) -> list[float]:
        """Shares of these tables, up to a factor."""
        return one_way_weights(self.sizes, self.cost)

    def noise(self, share: Fraction, n_tables: int = 1) -> Noise:
        """Of each of some tables that get this share of the budget together."""
        return table_noise(n_tables, self.adjacency, self.cost, share)[0]

    def expected_noise(self, share: Fraction, n_tables: int = 1) -> float:
        """Expected absolute value of that noise in one cell (of its continuous counterpart)."""
        return self.noise(share, n_tables).mean_size


def network_shares(schema: Schema, adjacency: Adjacency, settings: NetworkSettings, budget: Budget) -> NetworkShares:
    """Check public arguments, and divide the budget.

    Raises
    ------
    ValueError
        For edges between unknown variables, required tables whose junction tree is too large, more cells than fit
        in memory, and a budget too small for any selection.
    """
    required = _positions(schema, "required_edges", settings.required)
    forbidden = set(_positions(schema, "forbidden_edges", settings.forbidden))
    fine, most = schema.fine(), largest_sizes(schema)
    sizes, zeros = [most[name] for name in schema.variables], fine.zeros
    single = Cliques(schema.variables, tuple(sizes), tuple((name,) for name in schema.variables))
    cliques = with_zeros(single, zeros)
    cells = largest_clique(cliques, required)
    if cells > settings.max_clique_cells and (required or zeros):
        asking = (("required_edges", required), ("the schema's rules (impossible)", zeros))
        raise ValueError(
            f"{' and '.join(name for name, given in asking if given)} need a clique of {cells} cells in the junction "
            f"tree, more than max_clique_cells={settings.max_clique_cells}; require fewer edges, leave out rules, or "
            "raise max_clique_cells"
        )
    pairs = [pair for pair in itertools.combinations(range(len(sizes)), 2) if pair not in forbidden]
    candidates = tuple(pair for pair in pairs if sizes[pair[0]] * sizes[pair[1]] <= settings.max_clique_cells)
    if zeros:
        candidates = tuple(admissible_pairs(cliques, candidates, settings.max_clique_cells))
    total = sum(sizes[i] * sizes[j] for i, j in candidates)
    if total > _MOST_CELLS:
        raise ValueError(
            f"the tables of all {len(candidates)} pairs have {total} cells together, more than {_MOST_CELLS}; use "
            "fewer variables or states, a smaller max_clique_cells, or forbidden_edges"
        )
    cost = cost_of(budget)
    n_rounds = settings.n_rounds or (4 if isinstance(cost, ZCDP) else 2) * len(sizes)
    one_way = Fraction(settings.one_way_share) if candidates else Fraction(1)
    rest = 1 - one_way
    if set(candidates) <= set(required):  # a public graph: nothing to look for
        each, first, candidates = rest / max(len(required), 1), Fraction(0), ()
    else:
        # Required tables get what a round has, but leave half of the budget to look for others.
        each = min(rest / n_rounds, rest / (2 * len(required))) if required else Fraction(0)
        first = (rest - len(required) * each) / n_rounds
    selection = Fraction(settings.selection_share)
    made = NetworkShares(
        adjacency,
        cost,
        tuple(fine.cardinality(name) for name in schema.variables),
        tuple(required),
        candidates,
        tuple(pairs),
        one_way,
        each,
        first,
        selection,
    )
    # Refuses here, before anything is spent, where a table would drown in noise: later rounds have no smaller shares.
    _ = made.one_way_noise, [made.noise(share) for share in (each, first * (1 - selection)) if share]
    if first:
        misfit_scale(adjacency, cost, first * selection)
    return made


def one_way_weights(sizes: Iterable[int], cost: PureDP | ZCDP) -> list[float]:
    """Shares of the tables of single variables, up to a factor, that make the sum of their expected l1 errors least.

    A table of k cells has the error ``k/sqrt(share)`` under zCDP and ``k/share`` under pure DP.
    """
    return [float(k) ** (2 / 3 if isinstance(cost, ZCDP) else 1 / 2) for k in sizes]


def select_and_measure(cost: PureDP | ZCDP) -> str:
    """Name of a mechanism that selects tables and then measures them."""
    if isinstance(cost, ZCDP):
        return "gumbel_noisy_max+discrete_gaussian"
    return "exponential_noisy_max+discrete_laplace"


def checked_pairs(argument: str, pairs: Any) -> Edges:
    """Edges as pairs of different names, each once; TypeError or ValueError naming the argument otherwise."""
    found: dict[frozenset, tuple] = {}
    for pair in checked_graph(() if pairs is None else pairs, argument, sizes=(2,)):
        found.setdefault(frozenset(pair), pair)
    return tuple(found.values())


def _positions(schema: Schema, argument: str, pairs: Edges) -> list[Pair]:
    return [(min(pair), max(pair)) for pair in edge_positions(schema, pairs, argument)]
