"""Draws of families: each is one of several candidates, taken so that all together agree with the model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from pgmpy_dp.inference.lbfgs import minimize_lbfgs
from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.linked.operators.wide_table import RANK

if TYPE_CHECKING:
    from pgmpy_dp.linked.linked_model import LinkedModel

_TOGETHER = 2  # children that are drawn at once; others one by one
_LIKENESS = 0.5
"""Correlation of siblings for which a child given all others is right; the choice among families mends others."""
_AMONG, _FAMILIES = 6, 5_000  # drawn, of which one is taken; for which the choice is learned
_CAUTION = 50.0  # times the variance of shares in so many families, of which targets are known no better
_SHIFTS = 5  # of children put in a circle: pairs that a large family is judged by
_ENTRIES = 20_000_000  # of the matrix that the choice is learned from, about
_AT_ONCE = 10_000  # families


class Families:
    """Families as codes: what a model draws.

    Parameters
    ----------
    model : LinkedModel
    n : int
    rng : numpy.random.Generator

    Attributes
    ----------
    codes : ndarray, shape (n, n_variables)
        Of the parents; their slots do not matter.
    size : ndarray, shape (n,)
    children : ndarray, shape (n, most, columns)
    counted : ndarray, shape (n, counts)
    """

    def __init__(self, model: LinkedModel, n: int, rng: np.random.Generator) -> None:
        wide = model._wide
        drawn = [_drawn(model, min(_AT_ONCE, n - start), rng) for start in range(0, n, _AT_ONCE)]
        nothing = Completed(model, np.empty((0, len(wide.schema)), dtype=np.int64), rng)
        self.codes, self.size, self.children, self.counted = (
            np.concatenate([getattr(part, name) for part in [nothing, *drawn]])
            for name in ("codes", "size", "children", "counted")
        )


def _drawn(model: LinkedModel, n: int, rng: np.random.Generator) -> Completed:
    if model._wide.ordered:
        drawn, taken = model._in_first_slots.sample(n, rng, "stratified").astype(np.int64), np.arange(n)
        candidates = Completed(model, drawn, rng)
    else:
        candidates = Completed(model, _candidates(model, model._in_first_slots, n, rng), rng)
        taken = model._choice.chosen(candidates, rng)
    broken = candidates.broken()
    for k in np.flatnonzero(broken[taken]):  # rules about columns of a child left it none that it could be
        like = np.flatnonzero(~broken & (candidates.size == (size := candidates.size[taken[k]])))
        if not len(like):
            raise ValueError(
                f"impossible={list(model.linked.impossible)} and other rules leave no family of n = {size}"
            )
        taken[k] = rng.choice(like)
    return candidates.part(taken)


def _candidates(model: LinkedModel, distribution: LogLinearModel, n: int, rng: np.random.Generator) -> np.ndarray:
    """Parents, `_AMONG` for each of n families, who have the same number of children and are as alike as may be."""
    codes = distribution.sample(n * _AMONG, rng, "stratified").astype(np.int64)
    columns = [model._place(name) for name in (*(model.linked.parent or ()), model._wide.size)]
    return codes[np.lexsort((rng.random(len(codes)), *codes[:, columns].T))]


class Completed:
    """Children for parents whose columns and number of children were drawn. Attributes as of `Families`."""

    def __init__(self, model: LinkedModel, codes: np.ndarray, rng: np.random.Generator) -> None:
        self._model, self._wide, self._rng, self.codes = model, model._wide, rng, codes
        self._most = model.linked.most
        wide = self._wide
        names = wide.schema.variables
        self._slots = [[names.index(name) for name in slot] for slot in wide.slots]
        self._ranks = names.index(RANK) if wide.ordered else None
        self.size = np.array([k for k, _ in wide.patterns])[codes[:, model._place(wide.size)]]
        self.children = np.zeros((len(codes), self._most, len(wide.child)), dtype=np.int64)
        self._states = np.array([len(wide.child.states[name]) for name in wide.child])
        self._limits = {[*wide.child].index(x): one for x, one in model.linked.count_limits(wide.child).items()}
        if not wide.ordered:
            self._take_slots()
        for k in range(0 if wide.ordered else _TOGETHER, self.size.max(initial=0)):
            self._draw(np.flatnonzero(self.size > k), k, k)
        there = np.arange(self._most) < self.size[:, None]
        met = model.linked.conditions_met(self.children, wide.child)
        self.counted = (there[:, :, None] & met).sum(axis=1)

    def part(self, rows: np.ndarray) -> Completed:
        """Some of the families."""
        self.codes, self.size = self.codes[rows], self.size[rows]
        self.children, self.counted = self.children[rows], self.counted[rows]
        return self

    def _take_slots(self) -> None:
        """The children that the model drew together; cells outside the schema are drawn again."""
        wide = self._wide
        pattern = self.codes[:, self._model._place(wide.size)]
        for state, (_, present) in enumerate(wide.patterns):
            rows = np.flatnonzero(pattern == state)
            for k, slot in enumerate(present[:_TOGETHER]):
                self.children[rows, k] = self.codes[rows][:, self._slots[slot]]
        for k in range(min(_TOGETHER, self._most)):
            rows = np.flatnonzero((self.children[:, k] >= self._states).any(axis=1) & (self.size > k))
            self._draw(rows, k, _TOGETHER)

    def _draw(self, rows: np.ndarray, k: int, known: int) -> None:
        """Draw the k-th child of some families, given all others, or the one before it.

        Parameters
        ----------
        rows : ndarray of int
            Families.
        k : int
        known : int
            So many children of a family were drawn before, if it has as many.
        """
        if not len(rows):
            return
        codes, children, size = self.codes[rows], self.children[rows], self.size[rows]
        every, masks = np.arange(self._most), list[np.ndarray | None]([None] * len(self._states))
        others = (every < np.minimum(size, known)[:, None]) & (every != k)
        for j, one in self._limits.items():
            masks[j] = one.allowed(children[:, :, j], others, size, not self._wide.ordered and k == known)
        beside: tuple[np.ndarray, ...] = ()
        if self._wide.ordered:
            codes[:, self._ranks] = k + 1 - self._model.linked.least
            codes[:, self._slots[1]] = children[:, k - 1] if k else np.array(self._wide.absent)
        else:
            weight = others * (1 + _LIKENESS) / (1 + _LIKENESS * others.sum(axis=1, keepdims=True))
            beside = children[:, :known], weight[:, :known]
        self.children[rows, k] = self._model._draws.draw(codes, self._rng, masks, *beside)

    def broken(self) -> np.ndarray:
        """Families that break a rule on counts, or have a child whom rules left nothing."""
        there = np.arange(self._most) < self.size[:, None]
        broken = (there & (self.children >= self._states).any(axis=2)).any(axis=1)
        for j, one in self._limits.items():
            low, high = one.left(self.children[:, :, j], there, self.size)
            broken |= ((low > 0) | (high < 0)).any(axis=0)
        return broken


def _classes(most: int) -> list[tuple[int, int]]:
    """Numbers of children, from three on, of which tables of two children are made: twice as many in each."""
    ends = [(2**k + 1, min(2 ** (k + 1), most)) for k in range(1, most.bit_length())]
    return [(low, high) for low, high in ends if low <= high]


class FamilyChoice:
    """The choice among families with like parents that makes tables of their children agree with the model's.

    Parameters
    ----------
    model : LinkedModel
    weights : ndarray, optional
        Those of a choice that was learned before, from the model's file.

    Notes
    -----
    Of K families drawn for a parent one is taken with a probability in proportion to ``exp(lambda . s)``. s has, for
    each of the model's tables, the shares of a family's children, and of its ordered pairs of children, in its cells;
    of tables with counts, those without children, and the counts are of the children drawn. Tables of two children are
    of families of three and four, of five to eight, and so on: two children are drawn as the model has them, and would
    make up for what is wrong in larger families if all sizes had one table. With lambda, the mean of s over the
    families taken is the model's marginals, as nearly as v allows: lambda is the minimum of ``mean_f
    logsumexp_k(lambda . s_fk) - lambda . target + (1/2) sum_c v_c lambda_c^2``, of a conditional logit. It is learned
    from families drawn for it, so it is a function of the model alone.
    """

    def __init__(self, model: LinkedModel, weights: np.ndarray | None = None) -> None:
        wide = model._wide
        names = wide.schema.variables
        slots_of = list(enumerate(wide.slots))
        slot_of: dict[Any, Any] = {name: (k, j) for k, columns in slots_of for j, name in enumerate(columns)}
        self._parents = {name: k for k, name in enumerate(names) if name not in slot_of}
        self._counts = {name: k for k, name in enumerate(model.linked.counts)}
        wanted: dict[tuple, None] = dict.fromkeys(zip(*wide.slots[:2], strict=True))
        for scope in model._model.cliques.scopes:
            present = {slot_of[name][0] for name in scope if name in slot_of}
            counted = bool(present) and not self._counts.keys().isdisjoint(scope)
            if present in (set(), {0}, {0, 1}) and not counted and scope != (wide.size,):
                wanted[tuple(scope)] = None
        every, self._scopes = (0, model.linked.most), list[Any]()
        for scope in wanted:
            slots, shape = [slot_of.get(name) for name in scope], tuple(map(wide.schema.cardinality, scope))
            pairs = {place[0] for place in slots if place is not None} == {0, 1}
            among = _classes(model.linked.most) if pairs else []
            self._scopes += [(scope, slots, shape, sizes) for sizes in among or [every]]
        self._sizes = [int(np.prod(shape)) for _, _, shape, _ in self._scopes]
        if weights is not None and not (weights.shape == (sum(self._sizes),) and np.isfinite(weights).all()):
            raise ValueError("the weights of the choice among families are not those of the model's tables")
        self.weights = self._learned(model, np.random.default_rng(0)) if weights is None else weights

    def _learned(self, model: LinkedModel, rng: np.random.Generator) -> np.ndarray:
        distribution = model._in_first_slots
        usual = Completed(model, _candidates(model, distribution, 100, rng), rng)
        entries = sum(shares.nnz for shares in self._shares(usual)) / 100  # of the candidates for a family
        n = int(np.clip(_ENTRIES / entries, 200, _FAMILIES))
        candidates = Completed(model, _candidates(model, distribution, n, rng), rng)
        tables = [shares.copy() for shares in self._shares(candidates)]
        for shares in tables:
            shares.sum_duplicates()
        matrix = sparse.hstack(tables, "csr")
        target = np.concatenate(self._targets(model, candidates.size))
        variance = _CAUTION * (target + 1e-3) / n
        unit = (target + 1e-3) ** -0.5
        of_like = self._of_like(candidates)

        def objective(step: np.ndarray) -> tuple[float, np.ndarray]:
            x = unit * step
            scores = (matrix @ x + of_like).reshape(-1, _AMONG)
            most = scores.max(axis=1, keepdims=True)
            likely = np.exp(scores - most)
            total = likely.sum(axis=1, keepdims=True)
            gradient = matrix.T @ (likely / total).ravel() / n - target + variance * x
            value = (most + np.log(total)).mean() - x @ target + 0.5 * (x * variance) @ x
            return float(value), unit * gradient

        return unit * minimize_lbfgs(objective, np.zeros(len(target)), max_iter=100, gradient_tol=1e-4).x

    def _targets(self, model: LinkedModel, drawn: np.ndarray) -> list[np.ndarray]:
        """The model's table in the place of each, times the part of families that have one."""
        wide, sizes = model._wide, np.array([n for n, _ in model._wide.patterns])
        inside = [len(wide.child.states[name]) for name in wide.child]
        parts: list[Any] = [None] * len(self._scopes)
        for low, high in {among for *_, among in self._scopes}:
            places = [k for k, (*_, among) in enumerate(self._scopes) if among == (low, high)]
            distribution = model._of_size((sizes >= low) & (sizes <= high))
            tables = None if distribution is None else distribution.marginals_of([self._scopes[k][0] for k in places])
            for j, k in enumerate(places):
                _, slots, shape, _ = self._scopes[k]
                table = np.zeros(shape) if tables is None else tables[j]
                for axis, place in enumerate(slots):
                    if place is not None:
                        table[(slice(None),) * axis + (slice(inside[place[1]], None),)] = 0.0
                children = len({place[0] for place in slots if place is not None})
                share = np.mean((drawn >= max(low, children)) & (drawn <= high))
                parts[k] = (table * (share / max(table.sum(), 1e-300))).ravel()
        return parts

    @staticmethod
    def _of_like(candidates: Completed) -> np.ndarray:
        """0 for families of as many children as the first one of their group has, -inf for others."""
        size = candidates.size.reshape(-1, _AMONG)
        return np.where(size == size[:, :1], 0.0, -np.inf).ravel()

    def _shares(self, candidates: Completed) -> Iterator[sparse.csr_array]:
        """Yield for each table the shares of each family in its cells; one cell may be several entries of a family."""
        size, every = candidates.size, np.arange(len(candidates.size))
        family, child = np.nonzero(np.arange(candidates.children.shape[1])[None, :] < size[:, None])
        n, first, each = size[family], (np.cumsum(size) - size)[family], np.arange(len(family))
        shifts = np.minimum(n - 1, _SHIFTS)
        one = np.repeat(each, shifts)
        shift = 1 + np.arange(len(one)) - np.repeat(np.cumsum(shifts) - shifts, shifts)
        other = first[one] + (child[one] + shift) % n[one]
        ways: dict[Any, Any] = {0: (every, every, every, np.ones(len(size))), 1: (family, each, each, 1.0 / n)}
        for sizes in {sizes for *_, sizes in self._scopes}:
            rows = (sizes[0] <= n[one]) & (n[one] <= sizes[1])
            ways[sizes] = family[one[rows]], one[rows], other[rows], 1.0 / (n * shifts)[one[rows]]
        upto = np.arange(len(size) + 1)
        ends = {way: np.searchsorted(whose, upto).astype(np.int32) for way, (whose, *_) in ways.items()}
        columns = np.ascontiguousarray(candidates.children[family, child].T, dtype=np.int32)
        for scope, slots, shape, sizes in self._scopes:
            about = {slot[0] for slot in slots if slot is not None}
            way = sizes if len(about) == 2 else len(about)
            whose, *of, share = ways[way]
            cells = np.zeros(len(whose), dtype=np.int32)
            for name, slot, states in zip(scope, slots, shape, strict=True):
                cells *= np.int32(states)
                if slot is not None:
                    cells += columns[slot[1]][of[slot[0]]]
                elif name in self._counts:
                    cells += candidates.counted[:, self._counts[name]].astype(np.int32)[whose]
                else:
                    cells += candidates.codes[:, self._parents[name]].astype(np.int32)[whose]
            yield sparse.csr_array((share, cells, ends[way]), (len(size), int(np.prod(shape))))

    def chosen(self, candidates: Completed, rng: np.random.Generator) -> np.ndarray:
        """Rows of the families that are taken, one of each `_AMONG`."""
        scores = np.where(candidates.broken(), -1e9, 0.0) + self._of_like(candidates)
        weights = np.split(self.weights, np.cumsum(self._sizes)[:-1])
        for shares, of_table in zip(self._shares(candidates), weights, strict=True):
            scores += shares @ of_table
        best = (scores + rng.gumbel(size=len(scores))).reshape(-1, _AMONG).argmax(axis=1)
        return np.arange(len(best)) * _AMONG + best
