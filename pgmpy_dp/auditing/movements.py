"""Replay's rules for each mechanism: how far statistics of neighbours are apart, and invented answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import singledispatch
from typing import Any

import numpy as np

from pgmpy_dp.communities.operators.graph_operators import CommunityChoice, RandomisedResponse
from pgmpy_dp.fields.operators.feature_matrices import MatrixSums
from pgmpy_dp.fields.operators.parities import JointNoise
from pgmpy_dp.fields.operators.vote_operators import StableMode
from pgmpy_dp.mixtures.operators.block_operators import StableCells
from pgmpy_dp.mixtures.operators.cluster_operators import WeightedNoise
from pgmpy_dp.private.curator.mechanism import AdditiveNoise, Mechanism, NoisyMax, SeveralNoisyMax
from pgmpy_dp.private.curator.observer import Request
from pgmpy_dp.private.data.columns import mark_row
from pgmpy_dp.private.guarantee import ZCDP
from pgmpy_dp.private.operators.column_operators import StableMarks
from pgmpy_dp.private.operators.solutions import SymmetricNoise

_TRACE = 2.0**30  # at most, of what one record or person adds to second moments


def selections_moved(mechanism: SeveralNoisyMax, other: Mechanism) -> float:
    """Sum over rows of what selections could cost, over the weight: of D for a pure cost, the root of that of D**2."""
    assert isinstance(other, SeveralNoisyMax)
    if [row.shape for row in mechanism.exact] != [row.shape for row in other.exact]:
        return np.inf
    moved = []
    for ours, theirs in zip(mechanism.exact, other.exact, strict=True):
        change = theirs.astype(object) - ours.astype(object)
        # The noise covers a score that rises as another falls.
        moved.append(max(abs(max(change)), abs(min(change)), (max(change) - min(change)) / 2) / mechanism.unit)
    if isinstance(mechanism.cost, ZCDP):
        return float(np.sqrt(sum(d * d for d in moved) / mechanism.weight))
    return float(sum(moved) / mechanism.weight)


def invented_positions(mechanism: SeveralNoisyMax, kind: str, rng: np.random.Generator) -> Any:
    """The first candidate of each row, for "last" the last one, for "random" any."""
    sizes = np.array([len(row) for row in mechanism.exact])
    if kind == "random":
        return rng.integers(sizes)
    return sizes - 1 if kind == "last" else np.zeros(len(sizes), dtype=np.int64)


def cells_moved(mechanism: StableCells, other: Mechanism) -> float:
    """The root of how many counts differ over 2k; infinite where one block could not have changed them.

    That is where a count differs by more than 1, where a cell of one side alone has more than one mark, or where one
    side has more than k such cells.
    """
    assert isinstance(other, StableCells)
    if (mechanism.n_marks, mechanism.histogram) != (other.n_marks, other.histogram):
        return np.inf
    ours, theirs = (dict(zip(map(tuple, m.cells.tolist()), m.counts.tolist(), strict=True)) for m in (mechanism, other))
    for one, another in ((ours, theirs), (theirs, ours)):
        alone = [count for cell, count in one.items() if cell not in another]
        if len(alone) > mechanism.n_marks or any(count != 1 for count in alone):
            return np.inf
    changes = [abs(ours.get(cell, 0) - theirs.get(cell, 0)) for cell in {*ours, *theirs}]
    return float(np.sqrt(sum(changes) / (2 * mechanism.n_marks))) if max(changes, default=0) <= 1 else np.inf


def invented_cells(mechanism: StableCells, kind: str, rng: np.random.Generator) -> Any:
    """No cell (zeros, negative); all that are marked (huge), and others than these (equal); the last k; random ones."""
    cells, k = mechanism.cells, mechanism.n_marks
    if kind in ("zeros", "negative"):
        cells = cells[:0]
    elif kind == "equal":
        cells = cells + 2  # of octaves, those two above
    elif kind == "last":
        cells = cells[-k:]
    elif kind == "random":
        cells = cells[rng.random(len(cells)) < 0.5]
    least = mechanism.histogram.threshold
    if kind == "random":
        return [cells, least + rng.integers(0, 100, size=len(cells))]
    return [cells, np.full(len(cells), least + (10**12 if kind == "huge" else 7), dtype=np.int64)]


def marks_moved(mechanism: StableMarks, other: Mechanism) -> float:
    """The root of how many counts differ over k or 2k; infinite where records of one change could not have done that.

    That is where a count differs by more than 1, where more counts of a column differ than records, where under
    add_remove some rise as others fall, and where a mark of one side alone has a count other than 1.
    """
    assert isinstance(other, StableMarks)
    declared = [(m.n_marks, m.changes, m.histogram, m.max_length) for m in (mechanism, other)]
    if declared[0] != declared[1]:
        return np.inf
    ours, theirs = (dict(zip(m.marks, m.counts.tolist(), strict=True)) for m in (mechanism, other))
    gaps = {mark: ours.get(mark, 0) - theirs.get(mark, 0) for mark in {*ours, *theirs}}
    for sign in (1, -1):
        columns = [mark[0] for mark, gap in gaps.items() if gap == sign]
        if len(columns) != len(set(columns)):
            return np.inf
    sizes = [abs(gap) for gap in gaps.values()]
    one_sided = mechanism.changes == 2 or len({gap for gap in gaps.values() if gap}) < 2
    alone = [c for one, two in ((ours, theirs), (theirs, ours)) for mark, c in one.items() if mark not in two]
    if max(sizes, default=0) > 1 or not one_sided or any(count != 1 for count in alone):
        return np.inf
    return float(np.sqrt(sum(sizes) / (mechanism.changes * mechanism.n_marks)))


def invented_marks(mechanism: StableMarks, kind: str, rng: np.random.Generator) -> Any:
    """No mark (zeros, negative), all that there are (huge), those that are hard to make states of (equal), or some."""
    marks = list(mechanism.marks)
    if kind in ("zeros", "negative"):
        marks = []
    elif kind == "equal":
        hard = [("missing",), ("number", -0.5), ("number", 1e300), *(("text", text) for text in _HARD)]
        hard = [key for key in hard if len(key) == 1 or len(str(key[1])) <= mechanism.max_length]
        marks = [(column, key) for column in range(mechanism.n_marks) for key in hard]
    elif kind == "last":
        marks = marks[-1:]
    elif kind == "random":
        marks = [mark for mark in marks if rng.random() < 0.5]
    rows = np.array([mark_row(mark, mechanism.max_length) for mark in marks], dtype=np.int64)
    counts = np.full(len(marks), mechanism.histogram.threshold + (10**12 if kind == "huge" else 7), dtype=np.int64)
    return [rows.reshape(len(marks), 2 + mechanism.max_length), counts]


_HARD = ("<5", "[5,9)", "[5, 9)", ">=9", "categories", "other", "None")
"""Categories that look like something else, in order."""


def arrays_moved(mechanism: WeightedNoise, other: Mechanism) -> float:
    """The root of the squared distance in units of the arrays, over its bound."""
    assert isinstance(other, WeightedNoise)
    if [m.shape for m in mechanism.exact] != [o.shape for o in other.exact] or mechanism.units != other.units:
        return np.inf
    squared = 0.0
    for ours, theirs, unit in zip(mechanism.exact, other.exact, mechanism.units, strict=True):
        gap = (ours.astype(object) - theirs.astype(object)).ravel()
        squared += float(sum(gap * gap) / unit**2)
    return float(np.sqrt(squared / float(mechanism.square)))


def responses_moved(mechanism: RandomisedResponse, other: Mechanism) -> float:
    """Pairs of vertices whose bits differ: one may. Infinite where the flips are others."""
    assert isinstance(other, RandomisedResponse)
    return np.inf if mechanism.rate != other.rate else _pairs_apart(mechanism.exact, other.exact)


def choices_moved(mechanism: CommunityChoice, other: Mechanism) -> float:
    """Pairs of vertices joined in one graph alone: one may be. Infinite where the public weights are others."""
    assert isinstance(other, CommunityChoice)
    return np.inf if mechanism.law != other.law else _pairs_apart(mechanism.exact, other.exact)


def _pairs_apart(matrix: Any, other: Any) -> float:
    if matrix.shape != other.shape:
        return np.inf
    gap = np.abs(matrix.toarray().astype(np.int64) - other.toarray())
    # Entries that are not 0 or 1, loops and directions would be more than one bit of a pair.
    return float(max(np.triu(gap).sum(), np.tril(gap).sum()))


def invented_graph(mechanism: RandomisedResponse, kind: str, rng: np.random.Generator) -> np.ndarray:
    """No pair joined, all of them ("huge", "equal"), the last two vertices alone, or any."""
    n = mechanism.exact.shape[0]
    upper = np.zeros((n, n), dtype=bool)
    if kind == "random":
        upper = np.triu(rng.integers(0, 2, (n, n)).astype(bool), 1)
    elif kind == "last":
        upper[n - 2, n - 1] = True
    elif kind in ("huge", "equal"):
        upper = np.triu(~upper, 1)
    return upper | upper.T


def invented_labels(mechanism: CommunityChoice, kind: str, rng: np.random.Generator) -> np.ndarray:
    """All vertices in one community, the last one alone, or any."""
    labels = np.zeros(mechanism.exact.shape[0], dtype=np.int64)
    if kind == "random":
        return rng.integers(0, 2, len(labels))
    labels[-1:] = kind == "last"
    return labels


def matrices_moved(mechanism: SymmetricNoise, other: Mechanism) -> float:
    """Movement in the norm of the noise's proof: nuclear (Wishart), l1 of the triangle (Laplace), else Frobenius.

    Second moments move by a positive semidefinite matrix of bounded trace under ``add_remove``, by the difference of
    two such matrices under ``replace_one``. The proof of one-sided noise is for a matrix of rank one. Infinite else.
    """
    assert isinstance(other, SymmetricNoise)
    exact, plan, d = mechanism.exact, mechanism.plan, mechanism.plan.n_columns
    if plan != other.plan or exact.value.shape != other.exact.value.shape:
        return np.inf
    change = np.zeros((d, d))
    change[np.triu_indices(d)] = exact.value - other.exact.value
    if "laplace" in plan.mechanism:
        return float(np.abs(change).sum() / exact.l1)
    change += np.triu(change, 1).T
    if "wishart" not in plan.mechanism:
        return float(np.linalg.norm(change) / exact.l2)
    values = np.linalg.eigvalsh(change)
    one = str(exact.adjacency) == "add_remove"
    beyond = 1e-9 * _TRACE
    if one and values[0] < -beyond and values[-1] > beyond:
        return np.inf
    if plan.mechanism == "one-sided-wishart" and np.sort(np.abs(values))[:-1].sum() > beyond:
        return np.inf
    return float(np.abs(values).sum() / (_TRACE if one or d == 1 else 2.0 * _TRACE))


def products_moved(mechanism: MatrixSums, other: Mechanism) -> float:
    """Trace of what was added, plus that of what was taken away, over the bound; under ``add_remove`` one of them is 0.

    Infinite where both are there that should not be, and where public numbers differ.
    """
    assert isinstance(other, MatrixSums)
    d = mechanism.features.d
    facts = [(m.features.d, m.features.trace, m.scale, m.fine, m.grid) for m in (mechanism, other)]
    if facts[0] != facts[1] or mechanism.exact.value.shape != other.exact.value.shape:
        return np.inf
    change = np.zeros((d, d))
    change[np.triu_indices(d)] = mechanism.exact.value.astype(object) - other.exact.value.astype(object)
    change += np.triu(change, 1).T
    values = np.linalg.eigvalsh(change)
    trace = float(mechanism.grid) * mechanism.features.trace
    one = str(mechanism.exact.adjacency) == "add_remove"
    if one and values[0] < -1e-9 * trace and values[-1] > 1e-9 * trace:
        return np.inf
    return float(np.abs(values).sum() / (trace if one else 2.0 * trace))


def invented_sums(mechanism: MatrixSums, kind: str, rng: np.random.Generator) -> list[np.ndarray]:
    """Invented arrays of the shapes that are read."""
    shapes = [array.shape for array in mechanism.features.read(mechanism.exact.value, mechanism.grid)]
    return invented_arrays(shapes, kind, rng)


def invented_arrays(shapes: Sequence[tuple[int, ...]], kind: str, rng: np.random.Generator) -> list[np.ndarray]:
    """Arrays of 0, of -1000, of 10**12, of 7, of positions, or random ones."""
    if kind == "random":
        return [rng.integers(-50, 200, size=shape) for shape in shapes]
    if kind == "last":
        return [np.arange(np.prod(shape, dtype=int)).reshape(shape) for shape in shapes]
    value = {"zeros": 0, "negative": -1000, "huge": 10**12, "equal": 7}[kind]
    return [np.full(shape, value, dtype=np.int64) for shape in shapes]


@singledispatch
def movement(mechanism: Mechanism, other: Mechanism) -> float:
    """Return how far the exact statistics of two requests are apart, over what scaled the noise; infinity for none.

    Parameters
    ----------
    mechanism, other : Mechanism
        Of the same class. Each class has its own rule, in the form that its proof uses.
    """
    raise NotImplementedError(f"replay has no rule for {type(mechanism).__name__}: register one with movement.register")


@movement.register
def _(mechanism: AdditiveNoise, other: Mechanism) -> float:
    """Laplace: the sum of l1 distances over scales, of its bound; Gaussian: the root of the same sum of squares."""
    assert isinstance(other, AdditiveNoise)
    if [m.value.shape for m in mechanism.exact] != [o.value.shape for o in other.exact]:
        return np.inf
    moved = bound = 0.0
    for ours, theirs, noise in zip(mechanism.exact, other.exact, mechanism.noise, strict=True):
        gap = np.abs(ours.value.astype(object) - theirs.value.astype(object)).ravel()
        if noise.distribution == "discrete_laplace":
            moved, bound = moved + float(sum(gap)) / noise.scale, bound + ours.l1 / noise.scale
        else:
            moved, bound = moved + float(sum(gap * gap)) / noise.scale**2, bound + (ours.l2 / noise.scale) ** 2
    ratio = moved / bound
    return ratio if mechanism.noise[0].distribution == "discrete_laplace" else float(np.sqrt(ratio))


@movement.register
def _(mechanism: JointNoise, other: Mechanism) -> float:
    """One array, wherever it is cut."""
    assert isinstance(other, JointNoise)
    whole = [AdditiveNoise((each.exact,), each.noise[:1]) for each in (mechanism, other)]
    return movement(*whole)


@movement.register
def _(mechanism: NoisyMax, other: Mechanism) -> float:
    """Half the range of the scores' changes over the bound of one: the noise covers one that rises as another falls."""
    assert isinstance(other, NoisyMax)
    if mechanism.exact.value.shape != other.exact.value.shape:
        return np.inf
    change = (other.exact.value.astype(object) - mechanism.exact.value.astype(object)).ravel()
    return float(max(abs(max(change)), abs(min(change)), (max(change) - min(change)) / 2)) / mechanism.exact.linf


@movement.register
def _(mechanism: StableMode, other: Mechanism) -> float:
    """Movement of the distances; infinite where modes differ although a distance is above 0, or tests differ."""
    assert isinstance(other, StableMode)
    if mechanism.test != other.test or mechanism.members.tobytes() != other.members.tobytes():
        return np.inf
    if mechanism.mode != other.mode and max(mechanism.distance, other.distance) > 0:
        return np.inf
    return float(abs(mechanism.distance - other.distance))


movement.register(SeveralNoisyMax, selections_moved)
movement.register(StableCells, cells_moved)
movement.register(StableMarks, marks_moved)
movement.register(WeightedNoise, arrays_moved)
movement.register(RandomisedResponse, responses_moved)
movement.register(CommunityChoice, choices_moved)
movement.register(SymmetricNoise, matrices_moved)
movement.register(MatrixSums, products_moved)

INVENTED = ("zeros", "negative", "huge", "equal", "last", "random")
"""Kinds of invented answers."""


def invented(kind: str, seed: int = 0) -> Callable[[Request], Any]:
    """Answers that data would hardly lead to: they reach branches and arguments off the likely course.

    Parameters
    ----------
    kind : {"zeros", "negative", "huge", "equal", "last", "random"}
        Of arrays: all 0, all -1000, all 10**12, all 7, the true shape's position, or random ones. Of choices: the first
        position, for "last" the last one, for "random" any.
    seed : int

    Returns
    -------
    callable
        For `answers` of ``replay``.

    Raises
    ------
    ValueError
        For another kind.

    Examples
    --------
    >>> import networkx as nx, pandas as pd
    >>> from pgmpy_dp.auditing.replay import replay
    >>> from pgmpy_dp.estimators import NaiveMLE
    >>> frame = pd.DataFrame({"a": [0, 1, 1]})
    >>> network = nx.empty_graph(["a"])
    >>> fit = lambda frame: NaiveMLE(epsilon=1.0, state_names={"a": [0, 1]}).fit(network, frame)
    >>> replay(fit, frame, frame[1:], answers=invented("negative")).holds
    True
    """
    if kind not in INVENTED:
        raise ValueError(f"kind={kind!r} is unknown; use one of {INVENTED}")
    rng = np.random.default_rng(seed)

    def answer(request: Request) -> Any:
        return invent(request.mechanism, kind, rng)

    return answer


@singledispatch
def invent(mechanism: Mechanism, kind: str, rng: np.random.Generator) -> Any:
    """An invented answer of a mechanism; what it draws where no rule is registered."""
    return mechanism.draw(None)


@invent.register
def _(mechanism: AdditiveNoise, kind: str, rng: np.random.Generator) -> list[np.ndarray]:
    return invented_arrays([item.value.shape for item in mechanism.exact], kind, rng)


@invent.register
def _(mechanism: WeightedNoise, kind: str, rng: np.random.Generator) -> list[np.ndarray]:
    return invented_arrays([array.shape for array in mechanism.exact], kind, rng)


@invent.register
def _(mechanism: SymmetricNoise, kind: str, rng: np.random.Generator) -> list[np.ndarray]:
    d = mechanism.plan.n_columns
    return invented_arrays([(d,), (d * (d - 1) // 2,)], kind, rng)


@invent.register
def _(mechanism: JointNoise, kind: str, rng: np.random.Generator) -> list[np.ndarray]:
    (whole,) = invent(AdditiveNoise((mechanism.exact,), mechanism.noise[:1]), kind, rng)
    return np.split(whole, np.cumsum(mechanism.sizes)[:-1])


@invent.register
def _(mechanism: NoisyMax, kind: str, rng: np.random.Generator) -> int:
    count = len(mechanism.exact.value)
    return count - 1 if kind == "last" else int(rng.integers(count)) if kind == "random" else 0


@invent.register
def _(mechanism: StableMode, kind: str, rng: np.random.Generator) -> list[np.ndarray]:
    """Tests that fail (zeros, negative), and pass: of no member, of some, of the last one alone."""
    count = len(mechanism.members)
    passed = {"huge": [], "equal": [0], "last": [count - 1], "random": np.flatnonzero(rng.integers(0, 2, count))}
    noisy = {"zeros": 0, "negative": -1000, "huge": 10**12}.get(kind, mechanism.test.threshold)
    return [np.array([noisy]), mechanism.members[np.array(passed.get(kind, []), dtype=np.intp)]]


invent.register(SeveralNoisyMax, invented_positions)
invent.register(MatrixSums, invented_sums)
invent.register(StableCells, invented_cells)
invent.register(StableMarks, invented_marks)
invent.register(RandomisedResponse, invented_graph)
invent.register(CommunityChoice, invented_labels)
