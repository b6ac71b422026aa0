"""The order of work of sum-product on a junction tree, decided before any table exists.

For each clique two lists are planned: *additions*, which build its log table from the
potentials at home in it and the messages of its children, pair by pair, so that the full
table is touched as rarely as possible; and *marginalisations*, which take its belief down
to its children's separators and to the requested scopes through shared smaller tables.
The memory that inference needs is read off the plan.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.junction_tree import InferenceSize, JunctionTree, build_junction_tree

Axes = tuple[int, ...]
Term = tuple[str, int]
"""("potential", scope), ("message", child clique) or ("sum", index of an earlier addition)."""


@dataclass(frozen=True)
class Addition:
    """One broadcast sum of two terms over the union `axes`; `in_place` adds into the left term."""

    left: Term
    right: Term
    axes: Axes
    in_place: bool


@dataclass(frozen=True)
class Marginalisation:
    """Sum a contiguous run of axes out of a table (-1: the belief) into the next table."""

    source: int
    source_axes: Axes
    axes: Axes


@dataclass(frozen=True)
class CliquePlan:
    """The work at one clique; see the module's text.

    Attributes
    ----------
    axes : tuple of int
        Variables of the clique, residual first.
    separator : tuple of int
        Variables shared with the parent.
    additions : tuple of Addition
        Build the log table; the last term in `total` is broadcast into it.
    total : Term or None
        Where the sum of all terms ends; None where there is nothing to add.
    marginalisations : tuple of Marginalisation
        Tables made from the belief, in order.
    separators : tuple of (child, table)
        Which table is which child's separator (-1: the belief itself).
    scopes : tuple of (scope, table)
        Which table holds which requested scope, axes in the order of the clique.
    """

    axes: Axes
    separator: Axes
    additions: tuple[Addition, ...]
    total: Term | None
    marginalisations: tuple[Marginalisation, ...]
    separators: tuple[tuple[int, int], ...]
    scopes: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Plan:
    """A junction tree with the work at each of its cliques, children before parents."""

    tree: JunctionTree
    cliques: tuple[CliquePlan, ...]
    scopes: tuple[Axes, ...]

    @property
    def memory_bytes(self) -> int:
        """Bytes of the arrays of one calibration and of one directional derivative."""
        size = self.tree.n_cells
        # Two passes, each with input and output, and the copy that is returned; the derivative's work array;
        # then per clique and pass its table, five arrays over its separator, and the planned intermediates.
        cells = 5 * sum(size(scope) for scope in self.scopes) + max(size(clique.axes) for clique in self.cliques)
        for clique in self.cliques:
            cells += 2 * size(clique.axes) + 10 * size(clique.separator)
            cells += 2 * sum(size(a.axes) for a in clique.additions if not a.in_place and a.axes != clique.axes)
            cells += 2 * sum(size(m.axes) for m in clique.marginalisations)
        return 8 * cells


def make_plan(cliques: Cliques, extra: Sequence[Sequence[int]] = (), tree: JunctionTree | None = None) -> Plan:
    """Plan sum-product for the tables of `cliques` and the marginals of `extra` index sets, on a tree that has them."""
    scopes = [*cliques.indices, *(tuple(scope) for scope in extra)]
    tree = build_junction_tree(cliques, extra) if tree is None else tree.with_homes(scopes)
    children: list[list[int]] = [[] for _ in tree.cliques]
    at_home: list[list[int]] = [[] for _ in tree.cliques]
    for child, parent in enumerate(tree.parents):
        if parent >= 0:
            children[parent].append(child)
    for scope, home in enumerate(tree.homes):
        at_home[home].append(scope)
    plans = []
    for k, axes in enumerate(tree.cliques):
        place = {i: position for position, i in enumerate(axes)}

        def ordered(some: Iterable[int], place: dict[int, int] = place) -> Axes:
            return tuple(sorted(some, key=place.__getitem__))

        terms: list[tuple[Term, Axes]] = [(("message", child), tree.separator(child)) for child in children[k]]
        terms += [(("potential", c), ordered(scopes[c])) for c in at_home[k] if c < cliques.n_cliques]
        additions, total = _plan_additions(terms, ordered, tree)
        targets = [tree.separator(child) for child in children[k]] + [ordered(scopes[c]) for c in at_home[k]]
        steps: list[Marginalisation] = []
        made: dict[Axes, int] = {axes: -1}
        _plan_marginalisations(axes, sorted(set(targets) - {axes}), tree, steps, made)
        plans.append(
            CliquePlan(
                axes,
                tree.separator(k),
                tuple(additions),
                total,
                tuple(steps),
                tuple((child, made[tree.separator(child)]) for child in children[k]),
                tuple((c, made[ordered(scopes[c])]) for c in at_home[k]),
            )
        )
    return Plan(tree, tuple(plans), tuple(scopes))


def _plan_additions(
    terms: Sequence[tuple[Term, Axes]], ordered: Callable[[Iterable[int]], Axes], tree: JunctionTree
) -> tuple[list[Addition], Term | None]:
    """Add the pair with the smallest union first."""
    waiting = [(term, axes, frozenset(axes)) for term, axes in terms]
    additions: list[Addition] = []
    cells = cache(tree.n_cells)  # the same unions come again and again

    def together(pair: tuple[int, int]) -> int:
        return cells(waiting[pair[0]][2] | waiting[pair[1]][2])

    while len(waiting) > 1:
        # Quadratic in the number of terms of one clique, which is small except at hubs of stars: there
        # all terms have the hub's axis, and adding neighbours in the list is as good as any pair.
        pairs = itertools.combinations(range(min(len(waiting), 24)), 2)
        i, j = min(pairs, key=together)
        (left, left_axes, left_set), (right, right_axes, right_set) = waiting[i], waiting[j]
        if len(right_axes) > len(left_axes):
            (left, left_axes), (right, right_axes) = (right, right_axes), (left, left_axes)
        both = left_set | right_set
        union = ordered(both)
        additions.append(Addition(left, right, union, left[0] == "sum" and left_axes == union))
        del waiting[j], waiting[i]
        waiting.insert(0, (("sum", len(additions) - 1), union, both))
    return additions, waiting[0][0] if waiting else None


def _plan_marginalisations(
    source: Axes,
    targets: list[Axes],
    tree: JunctionTree,
    steps: list[Marginalisation],
    made: dict[Axes, int],
) -> None:
    """Sum out first what no target needs, then the axis that most targets lack, and recurse."""
    targets = [target for target in targets if target not in made]
    if not targets:
        return
    unneeded = set(source).difference(*targets)
    if unneeded:
        run = max(_runs(source, unneeded), key=tree.n_cells)
        rest = tuple(i for i in source if i not in run)
        if rest not in made:
            steps.append(Marginalisation(made[source], source, rest))
            made[rest] = len(steps) - 1
        _plan_marginalisations(rest, targets, tree, steps, made)
        return
    lacking = {i: [target for target in targets if i not in target] for i in source}
    axis = max(source, key=lambda i: (len(lacking[i]), tree.cardinalities[i]))
    _plan_marginalisations(source, lacking[axis], tree, steps, made)
    _plan_marginalisations(source, [t for t in targets if axis in t], tree, steps, made)


def _runs(source: Axes, some: set[int]) -> list[Axes]:
    """Maximal contiguous runs of `some` axes in `source`."""
    groups = itertools.groupby(source, key=some.__contains__)
    return [tuple(group) for inside, group in groups if inside]


def inference_size(cliques: Cliques, extra: Sequence[Sequence[int]] = ()) -> InferenceSize:
    """Exact cost of inference, without allocating any table.

    Parameters
    ----------
    cliques : Cliques
        The model.
    extra : sequence of sequence of int
        Further sets of variable indices whose marginals are wanted.

    Examples
    --------
    >>> chain = Cliques(("a", "b", "c"), (2, 2, 2), (("a", "b"), ("b", "c")))
    >>> inference_size(chain).width, inference_size(chain).cells
    (1, 8)
    """
    return size_of_plan(cliques, make_plan(cliques, extra))


def size_of_plan(cliques: Cliques, plan: Plan) -> InferenceSize:
    """Exact cost of a plan that was made for `cliques`."""
    tree = plan.tree
    largest = max(tree.cliques, key=tree.n_cells)
    return InferenceSize(
        width=max(len(clique) for clique in tree.cliques) - 1,
        n_cliques=len(tree.cliques),
        largest_clique=tuple(cliques.variables[i] for i in largest),
        cells=tree.cells,
        memory_bytes=plan.memory_bytes,
    )
