"""Records whose tables of some variables are whole counts that are known: stratified draws with exact margins.

One table is drawn as it is. A table that shares variables with what is drawn is a matrix for each state of these, the
cells that are drawn as rows and its further variables as columns. Of that the expected counts are known, and the sums
of rows and columns are whole: dependent rounding makes the counts whole, each up or down with the probability of its
fraction. The other variables are drawn given these, stratified.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from pgmpy_dp.inference.belief_propagation import SumProduct
from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.inference.sampling import forward_sample
from pgmpy_dp.inference.sum_product import inference_size

_WHOLE = 1e-7
"""A count so near to a whole one is that, but for rounding."""

_MOST_SWEEPS = 500

Counts = Mapping[tuple[Hashable, ...], np.ndarray]


def sample_with_margins(model: LogLinearModel, counts: Counts, rng: np.random.Generator) -> tuple[np.ndarray, Counts]:
    """Draw records that have these tables, in random order.

    Parameters
    ----------
    model : LogLinearModel
        With exact inference. Its margins are the tables as proportions.
    counts : mapping of tuple of variables to ndarray of whole numbers
        Tables that agree with one another.
    rng : numpy.random.Generator

    Returns
    -------
    codes : ndarray of shape (n, n_variables), int64
    off : mapping of tuple of variables to ndarray
        By how much the sample's table differs, for each where it does.

    Notes
    -----
    Exact are tables that make a tree: each shares variables with those before it that one of them has all of. Of others
    (three in a circle) the first ones are. Those are not either whose cells together would not fit in memory with the
    model. With up to two exact tables each record has the law of the model. With more, later expected counts are fitted
    to what was drawn before, and are near the model's.

    Sources: Gandhi, Khuller, Parthasarathy and Srinivasan (2006) for the rounding; Cox (1987) for tables.

    Examples
    --------
    >>> pair = Cliques(("a", "b"), (2, 2), (("a", "b"),))
    >>> model = LogLinearModel(pair, np.log([0.25, 0.25, 0.25, 0.25]))
    >>> tables = {("a",): np.array([5, 5]), ("b",): np.array([5, 5])}
    >>> codes, off = sample_with_margins(model, tables, np.random.default_rng(0))
    >>> codes.sum(axis=0), off
    (array([5, 5]), {})
    """
    names, size = model.cliques.variables, dict(zip(model.cliques.variables, model.cliques.cardinalities, strict=True))

    def layout(union: Sequence[Hashable]) -> Cliques:
        """The model and a table of the union, whose variables come first: so it is in the root of the junction tree."""
        order = tuple(dict.fromkeys((*union, *names)))
        return Cliques(order, tuple(map(size.__getitem__, order)), (*model.cliques.scopes, tuple(union)))

    exact, union = [next(iter(counts))], list(next(iter(counts)))
    while True:
        shared = {scope: {*scope} & {*union} for scope in counts if not {*scope} <= {*union}}
        fits = [scope for scope, some in shared.items() if any(some <= {*one} for one in exact)]
        sizes = {s: inference_size(layout(list(dict.fromkeys((*union, *s))))).memory_bytes for s in fits}
        if not (fits := [scope for scope in fits if sizes[scope] <= model.memory_limit]):
            break
        exact.append(max(fits, key=lambda scope: len(shared[scope])))
        union = list(dict.fromkeys((*union, *exact[-1])))
    cliques = layout(union)
    engine = SumProduct(cliques, memory_limit=model.memory_limit)
    engine.calibrate(np.pad(model.theta, (0, cliques.n_cells - model.cliques.n_cells)))
    joint = engine.conditionals()[0][2].reshape((*map(size.__getitem__, union), -1)).sum(axis=-1)
    drawn, whole = list(exact[0]), counts[exact[0]].astype(np.int64)

    def matrices(array: np.ndarray, axes: Sequence[Hashable], *parts: Sequence[Hashable]) -> np.ndarray:
        moved = np.einsum(array, range(len(axes)), [axes.index(name) for part in parts for name in part])
        return moved.reshape([math.prod(map(size.__getitem__, part)) for part in parts])

    for scope in exact[1:]:
        both, new = [name for name in drawn if name in scope], [name for name in scope if name not in drawn]
        left = [name for name in drawn if name not in scope]
        rows, columns = matrices(whole, drawn, both, left), matrices(counts[scope], scope, both, new)
        expected = matrices(joint, union, both, left, new)
        for _ in range(_MOST_SWEEPS):
            expected *= _ratio(columns, expected.sum(axis=1))[:, None]
            expected *= _ratio(rows, expected.sum(axis=2))[:, :, None]
            if close := np.abs(expected.sum(axis=1) - columns).max() < _WHOLE:
                break
        if not close:
            break
        drawn, rounded = [*both, *left, *new], np.stack([dependent_rounding(matrix, rng) for matrix in expected])
        whole = rounded.reshape([size[name] for name in drawn])
    whole = np.transpose(whole, [drawn.index(name) for name in union[: len(drawn)]])
    cells = rng.permutation(np.repeat(np.arange(whole.size), whole.ravel()))
    codes = forward_sample(
        engine, len(cells), rng, "stratified", np.stack(np.unravel_index(cells, whole.shape), axis=1)
    )[:, [cliques.position[name] for name in names]]
    off: dict[tuple[Hashable, ...], np.ndarray] = {}
    for scope, table in counts.items():
        place = np.ravel_multi_index(tuple(codes[:, names.index(name)] for name in scope), table.shape)
        difference = np.bincount(place, minlength=table.size).reshape(table.shape) - table
        off |= {scope: difference} if difference.any() else {}
    return codes, off


def with_functions(model: LogLinearModel, functions: Mapping[Hashable, tuple[Hashable, np.ndarray]]) -> LogLinearModel:
    """The model with more variables, each of which is a function of one that it has.

    Parameters
    ----------
    model : LogLinearModel
    functions : mapping of name to (variable, ndarray of int)
        Of each new variable: what it depends on, and for each state of that its state.

    Returns
    -------
    LogLinearModel

    Examples
    --------
    >>> tracts = LogLinearModel(Cliques(("tract",), (3,), (("tract",),)), np.log([0.5, 0.3, 0.2]))
    >>> with_functions(tracts, {"state": ("tract", np.array([0, 0, 1]))}).marginal(["state"]).round(2)
    array([0.8, 0.2])
    """
    for name, (variable, places) in functions.items():
        old, size = model.cliques, int(places.max()) + 1
        cliques = Cliques((*old.variables, name), (*old.cardinalities, size), (*old.scopes, (variable, name)))
        allowed = np.where(places[:, None] == np.arange(size), 0.0, -np.inf)
        model = replace(model, cliques=cliques, theta=np.append(model.theta, allowed))
    return model


def _ratio(wanted: np.ndarray, now: np.ndarray) -> np.ndarray:
    return np.divide(wanted, now, out=np.zeros(now.shape), where=now > 0)


def dependent_rounding(matrix: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Round a matrix whose rows and columns have whole sums, so that these stay and each entry's expectation too.

    Parameters
    ----------
    matrix : ndarray of shape (n, m)
        Not negative.
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of int64
        Each entry is that of the matrix, rounded up or down.

    Notes
    -----
    Entries that are not whole are the edges of a bipartite graph in which no vertex has one alone: there is a circle.
    Along it entries rise and fall in turn until one is whole, in one direction or the other, with the probabilities
    that leave expectations as they are.

    Examples
    --------
    >>> dependent_rounding(np.array([[0.5, 0.5], [0.5, 0.5]]), np.random.default_rng(0)).sum(axis=0)
    array([1, 1])
    """
    count, floor = len(matrix), np.floor(matrix)
    part = matrix - floor
    beside: list[dict[int, None]] = [{} for _ in range(sum(matrix.shape))]
    for row, column in np.argwhere((part > _WHOLE) & (part < 1 - _WHOLE)).tolist():
        beside[row][count + column] = beside[count + column][row] = None
    for start in range(count):
        path, place = [start], {start: 0}
        while beside[start]:
            back = path[-2] if len(path) > 1 else None
            following = next((vertex for vertex in beside[path[-1]] if vertex != back), None)
            if following is None:  # an entry alone in its row or column is whole but for rounding
                del place[path[-1]]
                settled = [(path[-2], path.pop())]
            elif following not in place:
                place[following] = len(path)
                path.append(following)
                continue
            else:
                circle = path[place[following] :]
                edges = list(zip(circle, [*circle[1:], following], strict=True))
                at = tuple(np.array([(min(edge), max(edge) - count) for edge in edges]).T)
                sign = np.resize([1, -1], len(edges))
                up, down = (np.where(way > 0, 1 - part[at], part[at]).min() for way in (sign, -sign))
                part[at] += sign * (up if rng.random() * (up + down) < down else -down)
                settled = [edge for edge, p in zip(edges, part[at], strict=True) if not _WHOLE < p < 1 - _WHOLE]
                for vertex in circle[1:]:
                    del place[vertex]
                del path[place[following] + 1 :]
            for one, other in settled:
                del beside[one][other], beside[other][one]
    return np.rint(floor + part).astype(np.int64)
