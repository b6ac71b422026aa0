"""The distribution of a number from noisy counts of the fine cells of its range: a smooth density and spikes."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from pgmpy_dp.schema import Number

_PARTS = 4  # of a cell, at most: a density that is even within whole cells is too coarse
_BAND = 3  # of the curvature: parts of one cell, and second differences, are at most so far apart
_BENDS = 2.0 ** np.arange(1.0, -5.5, -1.0)  # standard deviations of the log-density's bend over one cell
_LEVEL = 100.0  # standard deviation of the log-density itself
_SPIKE, _HIGHER = 3.5, 2.0  # deviations, and the multiple, by which a spike stands out from both neighbours
_LATER = 0.1  # how much less likely the next of these is, where ends come early
_LOUD, _ENDS = 3.0, 8  # deviations of a sum to the last cell that is no noise; how many ends are tried
_UNLIKELY = 1e-3  # the probability of a choice from which on it is left out of the likely density
_WIDER = 1.25  # of the posterior's deviations: a true density bends alike over many cells, which the prior does not say
_STEPS, _HALVINGS, _LONGEST, _CLOSE = 60, 30, 2.0, 1e-4
_STEEP, _DRAWS = 50.0, 20  # of the tilt towards a mean; draws that say how well the counts know it

Choice = tuple[float, int, int]
"""The bend, the first cell with a density, and the one behind the last."""


@dataclass(frozen=True, eq=False)
class Counts:
    """Noisy counts of groups of neighbouring cells.

    Attributes
    ----------
    group : ndarray of int, shape (n_cells,)
        Of each cell, ascending by steps of 0 or 1.
    values : ndarray of shape (n_groups,)
    deviation : float
        Standard deviation of the noise in each.
    """

    group: np.ndarray
    values: np.ndarray
    deviation: float

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form."""
        return {"group": self.group.tolist(), "values": self.values.tolist(), "deviation": self.deviation}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Counts:
        """The inverse of :meth:`to_dict`."""
        return cls(np.array(content["group"]), np.array(content["values"], dtype=float), float(content["deviation"]))


@dataclass(frozen=True, eq=False)
class ClippedMean:
    """The noisy mean of numbers that were clipped, and what it is of each part.

    Attributes
    ----------
    clip : float
        What larger numbers count as.
    value, deviation : float
        The mean, and the standard deviation of its noise.
    """

    clip: float
    value: float
    deviation: float

    def moved(self, proportions: np.ndarray, values: np.ndarray, variance: float, noise: float = 0.0) -> np.ndarray:
        """Proportions moved as little as can be (in divergence) to the mean of both, that has `variance` without this.

        Where proportions are a draw and the noise is drawn too, so is what they are moved to.
        """
        from scipy.optimize import brentq

        far = float(values.max() - values.min()) or 1.0
        above, before = (values - values.min()) / far, float(proportions @ values)
        gain = variance / (variance + self.deviation**2)
        wanted = (before + gain * (self.value + noise - before) - values.min()) / far

        def tilted(slope: float) -> np.ndarray:
            weights = proportions * np.exp(slope * above - max(slope, 0.0))
            return weights / weights.sum()

        low, high = (float(tilted(slope) @ above) - wanted for slope in (-_STEEP, _STEEP))
        if low >= 0 or high <= 0:  # the noise is more than any numbers
            return tilted(_STEEP if high <= 0 else -_STEEP)
        return tilted(brentq(lambda slope: float(tilted(slope) @ above) - wanted, -_STEEP, _STEEP))


@dataclass(frozen=True, eq=False)
class NumberDensity:
    """A posterior of the distribution of a number over parts of its cells.

    Attributes
    ----------
    fine : Counts
        Each cell is a group.
    coarse : Counts or None
        Further counts, where there are any; spikes are groups of their own.
    cell : ndarray of int, shape (n_parts,)
        Of each part its cell, ascending.
    place, size : ndarray of shape (n_parts,)
        Middles and widths of the parts on a scale on which the density is smooth.
    alone : ndarray of bool, shape (n_cells,)
        Cells that count as spikes in any case, such as bounds to which numbers are clipped. Those of one real number
        have the width 0.
    ends_early : bool
        Whether each later end is less likely beforehand (`_LATER`): of differences, which are declared far too wide.
    kept : ndarray of shape (n_draws, n_parts), optional
        The first of the `same_draws`, from a file: making them takes longer than all else that a report does.
    mean : ClippedMean, optional
        What was released of the mean beside the counts.
    numbers : ndarray of shape (n_parts,), optional
        The number that each part has in this mean.

    Notes
    -----
    The log-density f on the scale is a random walk of the second order, ``f'' ~ white noise``, between two ends, behind
    which there is nothing. Standard deviations of the noise, and ends that leave out no more than sums below their
    noise, are weighed by Laplace's approximation of the evidence, each with the others at their most likely. A cell
    that stands out from both its neighbours is a spike with a count of its own. A cell that counts as a spike in any
    case has records at all with the probability that its count tells, if that is a half before, and all counts are as
    likely: else positive noise at a far bound would move a mean. Noisy counts are normal with the noise's variance and
    that of as many records. Draws are optima for perturbed counts and a perturbed prior (see
    :mod:`pgmpy_dp.models.posterior.posterior_draws`), with ends and a bend of their own. The perturbations are wider
    than the posterior by a factor that was chosen on made-up numbers (`_WIDER`).
    """

    fine: Counts
    coarse: Counts | None
    cell: np.ndarray
    place: np.ndarray
    size: np.ndarray
    alone: np.ndarray
    kept: np.ndarray | None = None
    mean: ClippedMean | None = None
    numbers: np.ndarray | None = None
    ends_early: bool = False

    @cached_property
    def cell_size(self) -> np.ndarray:
        """Widths of the cells on the scale."""
        return np.bincount(self.cell, self.size, len(self.alone))

    @property
    def piled(self) -> np.ndarray:
        """The cells of several values that are spikes, as booleans: their records may have one value, or many."""
        return self.spikes & (np.bincount(self.cell) > 1)

    @cached_property
    def spikes(self) -> np.ndarray:
        """The cells that are spikes, as booleans: they have counts of their own."""
        wide = np.flatnonzero(self.cell_size > 0)
        counts, size = self.fine.values[wide], self.cell_size[wide]
        beside = np.pad(counts / size, 1)
        nearby = np.maximum(np.maximum(beside[:-2], beside[2:]), 0.0) * size
        sd = np.sqrt(2 * self.fine.deviation**2 + np.maximum(counts, 0.0))
        spikes = self.alone.copy()
        spikes[wide] |= (counts - nearby > _SPIKE * sd) & (counts > _HIGHER * nearby)
        return spikes

    @cached_property
    def _observations(self) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """For the fine and the coarse counts: the group of each part, the counts, and their precisions, 0 of spikes."""
        observations = []
        for counts in (self.fine, self.coarse):
            if counts is None:
                continue
            apart = np.bincount(counts.group, self.spikes) > 0
            smoothed = _smoothed(np.where(apart, 0.0, counts.values))
            variance = counts.deviation**2 + np.maximum(smoothed if counts is self.fine else counts.values, 0.0)
            observations.append((counts.group[self.cell], counts.values, np.where(apart, 0.0, 1 / variance)))
        return observations

    @cached_property
    def _spike_counts(self) -> tuple[np.ndarray, np.ndarray]:
        """Counts of the cells that are spikes, and their variances."""
        values, variance = self.fine.values, np.full(len(self.alone), self.fine.deviation**2)
        if self.coarse is not None:
            single = np.bincount(self.coarse.group)[self.coarse.group] == 1
            more = np.where(single, self.coarse.deviation**-2.0, 0.0)
            values = (values / variance + more * self.coarse.values[self.coarse.group]) / (1 / variance + more)
            variance = 1 / (1 / variance + more)
        return values, variance + np.maximum(values, 0.0)

    @cached_property
    def _filled(self) -> np.ndarray:
        """The probability that a spike has records at all, and not noise alone; 1 of those that stand out."""
        from scipy.special import expit, log_ndtr

        values, variance = self._spike_counts
        # Of next to no numbers the sum is noise, and the noise of one cell would be many of them.
        every = max(float(self.fine.values.sum()), len(values) * self.fine.deviation, 1.0)
        off = values / np.sqrt(variance)
        odds = 0.5 * np.log(2 * np.pi * variance) - np.log(every) + log_ndtr(off) + off**2 / 2
        return np.where(self.alone, expit(odds), 1.0)

    @cached_property
    def _bend(self) -> np.ndarray:
        """Second differences over the square root of their distance, as coefficients of three neighbours."""
        gaps = np.diff(self.place)
        between = np.sqrt((gaps[1:] + gaps[:-1]) / 2)
        return np.stack([1 / gaps[:-1], -1 / gaps[:-1] - 1 / gaps[1:], 1 / gaps[1:]]) / between

    @cached_property
    def _stiff(self) -> np.ndarray:
        """The precision of bends of unit variance, in the upper form of banded matrices."""
        a, n = self._bend, len(self.place)
        band = np.zeros((_BAND + 1, n))
        for i in range(3):
            for j in range(i, 3):
                band[_BAND - (j - i), j : j + n - 2] += a[i] * a[j]
        return band

    @cached_property
    def _same_cell(self) -> np.ndarray:
        """The parts that share a cell with the part some places before, as diagonals of a banded matrix."""
        n, band = len(self.cell), np.zeros((_BAND + 1, len(self.cell)))
        for d in range(min(_BAND + 1, n)):
            band[_BAND - d, d:] = self.cell[d:] == self.cell[: n - d]
        return band

    def _fit(
        self,
        choice: Choice,
        start: np.ndarray,
        counts: Sequence[np.ndarray],
        bends: np.ndarray | float = 0.0,
        level: np.ndarray | float = 0.0,
    ) -> tuple[np.ndarray, float]:
        """The most likely log-density of the parts, and Laplace's log-evidence."""
        from scipy.linalg import cho_solve_banded  # whoever reads a model's file need not wait for SciPy

        (bend, *_), a, n = choice, self._bend, len(self.place)
        base = np.log(max(float(counts[0].sum()), 1.0) / self.size.sum()) + level
        weights = self._inside(choice) * ~self.spikes[self.cell]
        counted = [(group, counts[k], precision) for k, (group, _, precision) in enumerate(self._observations)]

        def at(f: np.ndarray) -> tuple[float, np.ndarray, list[np.ndarray], np.ndarray]:
            expected = np.exp(np.minimum(f, 50.0)) * weights
            away = [np.bincount(group, expected, len(seen)) - seen for group, seen, _ in counted]
            curve = a[0] * f[:-2] + a[1] * f[1:-1] + a[2] * f[2:] - bends
            value = sum(precision @ off**2 for (_, _, precision), off in zip(counted, away, strict=True))
            value += curve @ curve / bend**2 + ((f - base) ** 2).sum() / _LEVEL**2
            return 0.5 * float(value), expected, away, curve

        def curvature(expected: np.ndarray) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None]:
            """A Cholesky factor of what is banded; of the rest the columns and the matrix in the middle."""
            hessian = self._stiff / bend**2
            hessian[_BAND] += 1 / _LEVEL**2
            group, _, precision = counted[0]
            for d in range(min(_BAND + 1, n)):
                hessian[_BAND - d, d:] += (
                    self._same_cell[_BAND - d, d:] * expected[d:] * expected[: n - d] * precision[group[d:]]
                )
            factor = _factor(hessian)
            if len(counted) == 1:
                return factor, None, None
            group, seen, precision = counted[1]
            columns = np.zeros((n, len(seen)))
            columns[np.arange(n), group] = expected * np.sqrt(precision)[group]
            solved = cho_solve_banded((factor, False), columns, check_finite=False)
            return factor, solved, np.eye(len(seen)) + columns.T @ solved

        f, (value, expected, away, curve) = start, at(start)
        factor, solved, middle = curvature(expected)
        for _ in range(_STEPS):
            gradient = (f - base) / _LEVEL**2
            for i in range(3):
                gradient[i : i + len(curve)] += a[i] * curve / bend**2
            for (group, _, precision), off in zip(counted, away, strict=True):
                gradient += expected * (precision * off)[group]
            step = -cho_solve_banded((factor, False), gradient, check_finite=False)
            if solved is not None and middle is not None:
                group, _, precision = counted[1]
                inner = np.bincount(group, expected * np.sqrt(precision)[group] * step, len(precision))
                step -= solved @ np.linalg.solve(middle, inner)
            step *= min(1.0, _LONGEST / max(float(np.abs(step).max()), 1e-12))
            if -(gradient @ step) < _CLOSE:
                break
            for _ in range(_HALVINGS):
                after = at(f + step)
                if after[0] < value:
                    break
                step = step / 2
            else:
                break
            f, (value, expected, away, curve) = f + step, after
            factor, solved, middle = curvature(expected)
        evidence = -value - np.log(factor[_BAND]).sum() - len(curve) * np.log(bend)
        if middle is not None:
            evidence -= 0.5 * np.linalg.slogdet(middle)[1]
        return f, float(evidence)

    def _quiet(self, last: int) -> list[int]:
        """Cells where the density may end, upwards (1) or downwards (-1): all sums beyond are no more than noise."""
        counts = np.where(self.spikes, 0.0, self.fine.values)[::last]
        n, beyond = len(counts), np.cumsum(counts[::-1])[::-1]
        loud = np.flatnonzero(beyond > _LOUD * self.fine.deviation * np.sqrt(np.arange(n, 0, -1)))
        first = int(loud[-1]) + 1 if len(loud) else n // 2
        places = sorted({int(at) for at in np.linspace(first, n, _ENDS).round()})
        return places if last > 0 else [n - at for at in places]

    @cached_property
    def _fits(self) -> tuple[Choice, dict[Choice, np.ndarray], list[dict[Choice, float]]]:
        """The most likely choice, log-densities, and how likely choices are that differ from it in each of the three.

        Noise hides both ends, each apart from the other: only where the others are at their best does an end have its
        own evidence.
        """
        values = [seen for _, seen, _ in self._observations]
        smoothed = _smoothed(np.where(self.spikes, 0.0, self.fine.values))
        per_size = np.divide(smoothed, self.cell_size, out=np.zeros(len(smoothed)), where=self.cell_size > 0)
        start = np.log(np.maximum(per_size, 0.1 * self.fine.deviation))[self.cell]
        options: list[list[Any]] = [_BENDS.tolist(), self._quiet(-1), self._quiet(1)]
        later = {end: k * np.log(_LATER) if self.ends_early else 0.0 for k, end in enumerate(options[2])}
        fits: dict[Choice, tuple[np.ndarray, float]] = {}
        bend, lower, upper = (some[0] for some in options)
        best, before = (bend, lower, upper), None

        def beside(axis: int) -> list[Choice]:
            return [(*best[:axis], other, *best[axis + 1 :]) for other in options[axis]]

        while best != before:
            before = best
            for axis in range(len(options)):
                for choice in beside(axis):
                    if choice not in fits:
                        f, evidence = self._fit(choice, fits[best][0] if best in fits else start, values)
                        fits[choice] = f, evidence + later[choice[2]]
                best = max(fits, key=lambda one: fits[one][1])
        ways = []
        for axis in range(len(options)):
            weights = {choice: float(np.exp(fits[choice][1] - fits[best][1])) for choice in beside(axis)}
            ways.append({choice: weight / sum(weights.values()) for choice, weight in weights.items()})
        return best, {choice: f for choice, (f, _) in fits.items()}, ways

    def _inside(self, choice: Choice) -> np.ndarray:
        """Widths of the parts; 0 behind the ends."""
        return self.size * ((self.cell >= choice[1]) & (self.cell < choice[2]))

    def _parts(self, f: np.ndarray, choice: Choice, spikes: np.ndarray) -> np.ndarray:
        """Proportions of the parts from the smooth log-density and the counts of spikes."""
        smooth = np.exp(np.minimum(f, 50.0)) * self._inside(choice)
        each = np.bincount(self.cell)[self.cell]
        width = self.cell_size[self.cell]
        spiky = np.maximum(spikes, 0.0)[self.cell] * np.divide(self.size, width, out=1.0 / each, where=width > 0)
        proportions = np.where(self.spikes[self.cell], spiky, smooth)
        return proportions / proportions.sum() if proportions.sum() > 0 else self.size / self.size.sum()

    @cached_property
    def likely(self) -> np.ndarray:
        """The most likely proportions of the parts, averaged over how much the density may bend and where it ends."""
        (best, fits, ways), spikes = self._fits, self._spike_counts[0] * self._filled
        most = self._parts(fits[best], best, spikes)
        proportions = most.copy()
        for choice, weight in itertools.chain(*(way.items() for way in ways)):
            if weight > _UNLIKELY:
                proportions += weight * (self._parts(fits[choice], choice, spikes) - most)
        proportions = np.maximum(proportions, 0.0)  # what differs in two things has the sum of both differences
        proportions /= proportions.sum()
        if self.mean is None or self.numbers is None:
            return proportions
        return self.mean.moved(proportions, self.numbers, self._mean_variance)

    @cached_property
    def _mean_variance(self) -> float:
        """The variance of the mean by the counts alone."""
        return float((self._drawn(_DRAWS, np.random.default_rng(0)) @ self.numbers).var(ddof=1))

    def draws(self, n_draws: int, rng: np.random.Generator) -> np.ndarray:
        """Draws of the proportions of the parts, of shape (n_draws, n_parts)."""
        drawn = self._drawn(n_draws, rng)
        if self.mean is None or self.numbers is None:
            return drawn
        pairs = zip(drawn, self.mean.deviation * rng.normal(size=n_draws), strict=True)
        return np.array([self.mean.moved(one, self.numbers, self._mean_variance, noise) for one, noise in pairs])

    def _drawn(self, n_draws: int, rng: np.random.Generator) -> np.ndarray:
        """The draws by the counts alone."""
        (best, fits, ways), proportions = self._fits, np.empty((n_draws, len(self.place)))
        spikes, variance = self._spike_counts

        def noise(n: int) -> np.ndarray:
            return _WIDER * rng.normal(size=n)

        for k in range(n_draws):
            bend, lower, upper = (
                list(way)[int(rng.choice(len(way), p=list(way.values())))][axis] for axis, way in enumerate(ways)
            )
            seen = [
                values + np.sqrt(np.divide(1, p, out=np.zeros(len(p)), where=p > 0)) * noise(len(p))
                for _, values, p in self._observations
            ]
            bends, level = bend * noise(len(self.place) - 2), _LEVEL * noise(len(self.place))
            choice = (bend, int(lower), int(upper))
            there = rng.random(len(spikes)) < self._filled if (self._filled < 1).any() else 1.0
            f, _ = self._fit(choice, fits[best], seen, bends, level)
            proportions[k] = self._parts(f, choice, there * (spikes + np.sqrt(variance) * noise(len(spikes))))
        return proportions

    def same_draws(self, n_draws: int) -> np.ndarray:
        """A number of draws of the proportions of the parts, the same ones at each call."""
        if self.kept is not None and len(self.kept) >= n_draws:
            return self.kept[:n_draws]
        return self.draws(n_draws, np.random.default_rng(0))

    def keeping(self, draws: np.ndarray) -> NumberDensity:
        """The same density with its `same_draws`.

        Raises
        ------
        ValueError
            If they are no proportions of the parts.
        """
        kept = np.asarray(draws, dtype=np.float64)
        if kept.ndim != 2 or kept.shape[1] != len(self.cell) or not (kept >= 0).all() or not kept.any(axis=1).all():
            raise ValueError("the draws of a number are no proportions of the parts of its cells")
        return replace(self, kept=kept)

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form, without the number and the draws that are kept."""
        grids = {"fine": self.fine, "coarse": self.coarse}
        mean = {} if self.mean is None else {"mean": asdict(self.mean)}
        counts = {k: counts.to_dict() for k, counts in grids.items() if counts is not None}
        return {"cell": self.cell.tolist()} | counts | mean

    @classmethod
    def from_dict(cls, parts: Number, content: Mapping[str, Any]) -> NumberDensity:
        """The inverse of :meth:`to_dict`, of a number whose cells are the parts."""
        coarse = Counts.from_dict(content["coarse"]) if "coarse" in content else None
        mean = ClippedMean(**content["mean"]) if "mean" in content else None
        return _of_parts(parts, np.array(content["cell"]), Counts.from_dict(content["fine"]), coarse, mean)


def _smoothed(counts: np.ndarray) -> np.ndarray:
    """Means of five neighbouring cells, with nothing beyond the ends."""
    return np.convolve(np.pad(counts, 2), np.ones(5) / 5, mode="valid")


def _factor(hessian: np.ndarray) -> np.ndarray:
    """The Cholesky factor of a banded matrix; eigenvalues that are lost to rounding are raised."""
    from scipy.linalg import cholesky_banded

    raised = hessian
    for power in range(-14, 4, 2):
        try:
            return cholesky_banded(raised, check_finite=False)
        except np.linalg.LinAlgError:
            raised = hessian.copy()
            raised[_BAND] += 10.0**power * hessian[_BAND].max()
    raise FloatingPointError("the counts of a number have no likely density")  # its diagonal dominates by then


def _divided(number: Number) -> tuple[Number, np.ndarray]:
    """A number whose fine cells are divided into parts, and the cell of each part."""
    if number.resolution is None:
        edges = np.array(number.edges)
        inner = edges[:-1, None] + np.diff(edges)[:, None] * np.arange(_PARTS) / _PARTS
        apart = ~number.points[:, None] | (np.arange(_PARTS) == 0)  # a cell of one number is one part
        return number.with_cuts(inner[apart][1:].tolist()), np.nonzero(apart)[0]
    first = number.firsts
    starts = [np.unique(a + (b - a) * np.arange(_PARTS) // _PARTS) for a, b in itertools.pairwise(first)]
    cell = np.repeat(np.arange(len(starts)), [len(some) for some in starts])
    return number.with_cuts(number.values_at(np.concatenate(starts)[1:])), cell


def number_density(
    number: Number, fine: Counts, coarse: Counts | None = None, mean: ClippedMean | None = None
) -> tuple[Number, NumberDensity]:
    """The number with its fine cells divided into parts, and its density over these parts.

    Parameters
    ----------
    number : Number
        Divided into fine cells.
    fine, coarse : Counts
    mean : ClippedMean, optional
    """
    counts = [(c.group.tobytes(), c.values.tobytes(), c.deviation) for c in (fine, coarse) if c is not None]
    key = (number, *counts, None if mean is None else astuple(mean))
    if key not in _KNOWN:
        parts, cell = _divided(number)
        if len(_KNOWN) >= _MOST_KNOWN:
            _KNOWN.pop(next(iter(_KNOWN)))
        _KNOWN[key] = parts, _of_parts(parts, cell, fine, coarse, mean)
    return _KNOWN[key]


_KNOWN: dict[tuple, tuple[Number, NumberDensity]] = {}
"""A search, the models that are learned from it, and their intervals all need the density of the same counts."""
_MOST_KNOWN = 256


def _of_parts(
    parts: Number, cell: np.ndarray, fine: Counts, coarse: Counts | None, mean: ClippedMean | None
) -> NumberDensity:
    edges = np.array(parts.ends)
    alone = np.bincount(cell, parts.points) > 0
    if parts.resolution is not None:
        edges[-1] += parts.resolution
        single = np.bincount(cell, np.diff(parts.firsts)) == 1
        # Where all cells are of one value, neighbours of a bound tell as much about it as of any other.
        alone[[0, -1]] = single[[0, -1]] & (not single.all())
        alone[-1] &= not parts.of  # a difference ends where its numbers do, and is clipped to nothing
    scale = parts.fine_scale(edges)
    place, early = (scale[1:] + scale[:-1]) / 2, bool(parts.of)
    made = NumberDensity(fine, coarse, cell, place, np.diff(scale), alone, ends_early=early)
    return made if mean is None else replace(made, mean=mean, numbers=np.minimum(parts.centres, mean.clip))
