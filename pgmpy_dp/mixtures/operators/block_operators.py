"""The agreement of blocks of records of numbers: cells with centres, octaves of scales, and the scales' mean."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from pgmpy_dp.checks import checked_integer, checked_number
from pgmpy_dp.mixtures.operators.batched_membership import batched_membership
from pgmpy_dp.mixtures.operators.kmeans import batched_kmeans
from pgmpy_dp.mixtures.operators.lattice import lattice_basis, nearest_lattice_points
from pgmpy_dp.mixtures.operators.vector_sums import (
    LARGEST_DIMENSION,
    require_single_records,
    vector_blocks,
)
from pgmpy_dp.private.curator.curator_base import checked_eta, checked_share
from pgmpy_dp.private.curator.mechanism import AdditiveNoise, Mechanism
from pgmpy_dp.private.curator.observer import Coins
from pgmpy_dp.private.curator.outside_functions import named_function, plain_arguments, run_blocks
from pgmpy_dp.private.data.vectors import PrivateVectors, VectorFacts, vector_rows
from pgmpy_dp.private.guarantee import ZCDP, PureDP
from pgmpy_dp.private.noise.histogram import StabilityHistogram, marked_cells, released_cells, stability_histogram
from pgmpy_dp.private.noise.measures import OfRho, amount_of
from pgmpy_dp.private.operators.operator_base import Operator, SumOperator, fresh_array
from pgmpy_dp.private.sensitive import Noise, Sensitive

MAX_BLOCKS = 1 << 16
_RESTARTS = 5
_LARGEST_CELL = 2.0**36  # positions, in widths of a cell, are clamped to it
_LARGEST_LOG = 199.0  # of a scale, to base 2: scales are within 1e-60 and 1e60
_LOG_BITS = 16  # log-scales are summed in units of 2**-16
_LOG_MOVED = 2.0 ** (_LOG_BITS + 1)  # what their sum moves by: from -1 to 1
_LARGEST_LENGTH = 2.0**500  # squares of the grid's units are not out of the doubles' range


@dataclass(frozen=True)
class BlockClusters:
    """The way in which each block of records finds its centres, from public numbers.

    Parameters
    ----------
    n_components : int
        k: a block has k centres, or none.
    n_blocks : int
        At most 65536. Blocks may be empty.
    block_size : int
        A block looks at so many of its records at most.
    function : str, optional
        Name of a registered block function (:func:`~pgmpy_dp.private.curator.outside_functions.outside_function`),
        which is called as ``function(records, rng, **arguments)`` and returns an array of float64 of shape (k, d). Any
        other answer, and an `Exception`, is no centres. Default: k-means, or the membership program where there is a
        `scale`.
    arguments : mapping
        Of the function; of plain immutable values.
    scale : float, optional
        A public scale of a component in each direction: centres are those of the membership program
        (:func:`~pgmpy_dp.mixtures.operators.batched_membership.batched_membership`) instead of k-means.
    device : str, optional
        A device of torch for k-means and the program, e.g. "cuda". Default: NumPy.

    Raises
    ------
    TypeError, ValueError
        For arguments that are wrong whatever the data.

    Notes
    -----
    Privacy: give each record a block and a place in it, by uniform draws of its own, the same for neighbours (an added
    record brings its own, a replaced one keeps its draws). Under ``add_remove`` and ``replace_one`` the records of one
    block differ. A block's centres and scale are a function of its own records, of bits that were drawn for it, and of
    public shapes, so those of one block change, whatever the records hold: ``proof.md``, section 5.

    Examples
    --------
    >>> BlockClusters(3, 400, 96).function is None
    True
    """

    n_components: int
    n_blocks: int
    block_size: int
    function: str | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    scale: float | None = None
    device: str | None = None

    def __post_init__(self) -> None:
        for name, most in (("n_components", 1000), ("n_blocks", MAX_BLOCKS), ("block_size", 1 << 20)):
            number = checked_integer(name, getattr(self, name), 1)
            if number > most:
                raise ValueError(f"{name}={number!r} is too large; pass at most {most}")
            object.__setattr__(self, name, number)
        if self.scale is not None:
            object.__setattr__(self, "scale", checked_length("scale", self.scale))
        if self.function is not None:
            named_function(self.function)
            if self.scale is not None:
                raise ValueError(f"scale={self.scale!r} beside function={self.function!r}; pass one of the two")
        object.__setattr__(self, "arguments", plain_arguments(self.arguments))


def require_clusters(data: PrivateVectors | VectorFacts) -> None:
    """Raise ValueError for data without operators here: data of whole units, or of too many columns."""
    require_single_records(data)
    if len(data.columns) > LARGEST_DIMENSION:
        raise ValueError(f"data has {len(data.columns)} columns, more than {LARGEST_DIMENSION}; pass fewer columns")


def stable_histogram(
    n_marks: int, cost: PureDP | ZCDP, share: Fraction | float, eta: Fraction | float
) -> StabilityHistogram:
    """Noise and threshold of :class:`BlockCells`: from public numbers, without records.

    Parameters
    ----------
    n_marks : int
        k; 1 for :class:`BlockScales`.
    cost : ZCDP
    share : Fraction or float
    eta : Fraction or float
        In (0, 1): what it takes of the reserve.

    Raises
    ------
    ValueError
        For a pure cost, a share or eta outside of its range, and noise that would bury any number of blocks.

    Examples
    --------
    >>> stable_histogram(1, ZCDP(0.5), 1, 1e-6)
    StabilityHistogram(scale=1.4142135623730951, threshold=9)
    """
    failing = float(checked_eta(eta))
    # The threshold's own margin is above what rounding eta to a float can add.
    return stability_histogram(n_marks, gaussian_rho(cost, share), failing)


@dataclass(frozen=True, eq=False, repr=False)
class StableCells(Mechanism):
    """Cells of an unbounded grid that many blocks have marked, and by how many each, with noise.

    Attributes
    ----------
    cells : ndarray of int64, shape (m, q)
    counts : ndarray of int64, shape (m,)
        By how many blocks each is marked, exact.
    n_marks : int
        k: no block marks more cells.
    histogram : StabilityHistogram

    Notes
    -----
    Privacy: :mod:`pgmpy_dp.private.noise.histogram` has the proof, for one block that changes. With noise and a
    threshold that were made for k marks, s rho and eta, `draw` costs the share s and eta of the reserve (``proof.md``,
    section 3).
    """

    cells: np.ndarray
    counts: np.ndarray
    n_marks: int
    histogram: StabilityHistogram

    name = "stability_histogram"

    @classmethod
    def planned(cls, n_marks: int, histogram: StabilityHistogram) -> StableCells:
        """Return the noise for so many marks; no cells are there yet."""
        return cls(np.zeros((0, 1), dtype=np.int64), np.zeros(0, dtype=np.int64), n_marks, histogram)

    def over(self, exact: tuple[np.ndarray, np.ndarray]) -> StableCells:
        """Return a copy with exact cells and counts."""
        return replace(self, cells=exact[0], counts=exact[1])

    @property
    def noise(self) -> tuple[Noise | None, ...]:  # type: ignore[override]
        """The noise of the counts; the cells have none."""
        return None, self.histogram.noise

    def draw(self, rng: np.random.Generator | None) -> list[np.ndarray]:
        """The cells that reach the threshold, in the order of their numbers, and their noisy counts."""
        return list(released_cells(self.cells, self.counts, self.histogram, rng))


class StableBlocks(Operator[tuple[np.ndarray, np.ndarray]]):
    """Cells that many blocks mark, and how many blocks; abstract. :class:`BlockCells` has the proof."""

    __slots__ = ()

    asks = VectorFacts
    can_fail = True

    @property
    def n_marks(self) -> int:
        """k: a block marks at most so many cells."""
        return 1

    def mechanism(self, facts: VectorFacts, cost: PureDP | ZCDP, share: Fraction, eta: Fraction) -> StableCells:
        return StableCells.planned(self.n_marks, stable_histogram(self.n_marks, cost, share, eta))


@dataclass(frozen=True, slots=True, eq=False)
class BlockCells(StableBlocks):
    """Cells of a lattice that many blocks have centres in, and how many blocks, with noise.

    Parameters
    ----------
    blocks : BlockClusters
    width : float
        Cells have the volume of cubes of this width.
    rotation : ndarray, shape (d, d)
        By which the lattice, A_d*, is turned; public, e.g. random (:meth:`turned`).
    shift : ndarray, shape (d,)
        By which it is shifted, in widths.

    Returns
    -------
    middles : ndarray, shape (m, d)
        Of the cells that reach the threshold of :func:`stable_histogram`, in the order of their numbers.
    counts : ndarray of int64, shape (m,)

    Raises
    ------
    MemoryError
        If a block function runs out of memory. As after an interrupt, nothing is released, and the share is spent.
    TypeError, ValueError
        For public arguments that are wrong, an eta that is not in (0, 1) or that the reserve does not have, a curator
        of a pure epsilon, data of whole units.

    Notes
    -----
    Privacy
        *Sensitivity.* Under both adjacencies one block changes, which marks at most k cells: 2k counts move, each by 1,
        and a cell that one of the neighbours has alone has a count of 1. The lattice is public.

        *Guarantee.* The share s of rho and eta of the reserve (:mod:`pgmpy_dp.private.noise.histogram`; ``proof.md``,
        section 3): Gaussian noise of scale ``sqrt(k/(s rho))``, and a threshold T with ``2 k P(Z >= T - 1) <= eta``.

        *Source.* Korolova, Kenthapadi, Mishra and Ntoulas 2009; Bun, Nissim and Stemmer 2016.

        *Side channels.* Running time and memory depend on the records.

    Examples
    --------
    >>> from pgmpy_dp.private.budget import Budget
    >>> from pgmpy_dp.private.curator.curator_base import Curator
    >>> rows = np.repeat([[1000.0, 0.0], [1010.0, 0.0]], 5000, axis=0)
    >>> data = PrivateVectors(rows, ledger=Budget(epsilon=1.0, delta=1e-6))
    >>> curator = Curator(data, Budget(epsilon=1.0, delta=1e-6), what="centres", reserve=1e-7)
    >>> asked = BlockCells.turned(BlockClusters(2, 1000, 96), 7.0, 2, np.random.default_rng(0))
    >>> centres, _ = curator.ask(asked, share=0.5, eta=1e-7)
    >>> len(centres), bool(abs(centres[:, 0].mean() - 1005) < 7)
    (2, True)
    """

    blocks: BlockClusters
    width: float
    rotation: np.ndarray
    shift: np.ndarray

    name = "stable_cells"

    @classmethod
    def turned(cls, blocks: BlockClusters, width: float, n_columns: int, rng: np.random.Generator) -> BlockCells:
        """Return the cells of a lattice that is turned and shifted by random numbers, which no record decides."""
        rotation = np.linalg.qr(rng.normal(size=(n_columns, n_columns)))[0]
        return cls(blocks, width, rotation, 1000.0 * rng.random(n_columns))

    def checked(self, facts: VectorFacts) -> BlockCells:
        require_clusters(facts)
        d = len(facts.columns)
        rotation = fresh_array("rotation", self.rotation, (d, d), "finite numbers")
        shift = fresh_array("shift", self.shift, (d,), "finite numbers")
        if not (np.abs(shift) < _LARGEST_CELL).all():
            raise ValueError(f"shift={shift!r} is more than {_LARGEST_CELL:g} widths; pass numbers near 0")
        return BlockCells(_checked_blocks(self.blocks), checked_length("width", self.width), rotation, shift)

    @property
    def n_marks(self) -> int:
        return self.blocks.n_components

    def _exact(
        self, data: PrivateVectors, facts: VectorFacts, mechanism: StableCells, coins: Coins
    ) -> tuple[np.ndarray, np.ndarray]:
        centres, k = _clustered(data, self.blocks, coins)[0], self.blocks.n_components
        basis = lattice_basis(len(self.shift))
        with np.errstate(all="ignore"):
            # Products block by block, as in k-means: a centre's cell is a function of its block alone.
            places = np.stack([centres[:, j, np.newaxis, :] @ self.rotation for j in range(k)], axis=1) / self.width
            places = np.clip(np.nan_to_num(places), -_LARGEST_CELL, _LARGEST_CELL) + self.shift
            keys = nearest_lattice_points((places @ basis.T).reshape(-1, len(basis))).astype(np.int64)
        there = np.isfinite(centres).all(axis=2).ravel()
        owner = np.repeat(np.arange(len(centres)), k)
        return marked_cells(keys[there], owner[there])

    def answered(self, drawn: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        (cells, counts), basis = drawn, lattice_basis(len(self.shift))
        middles = cells @ basis / (basis**2).sum(axis=0) - self.shift
        return middles * self.width @ self.rotation.T, counts


@dataclass(frozen=True, slots=True, eq=False)
class BlockScales(StableBlocks):
    """Octaves that many blocks' scales lie in, and how many blocks, with noise.

    A block's scale is the standard deviation of a coordinate about its centres, ``sqrt(cost/(d (b - k)))`` for the cost
    of k-means on b records: each of k means takes one record's worth of freedom.

    Parameters
    ----------
    blocks : BlockClusters
        Of k-means.
    offset : float
        Where octaves start; public, e.g. random.

    Returns
    -------
    middles : ndarray, shape (m,)
        Of the octaves that reach the threshold, log2 of a scale, increasing.
    counts : ndarray of int64, shape (m,)

    Raises
    ------
    TypeError, ValueError
        As :class:`BlockCells`.

    Notes
    -----
    Privacy: :class:`BlockCells`, where a block marks one cell, its octave, or none: k = 1.
    """

    blocks: BlockClusters
    offset: float

    name = "stable_scales"

    def checked(self, facts: VectorFacts) -> BlockScales:
        offset = _checked_log("offset", self.offset)
        return BlockScales(_checked_kmeans(self.blocks, facts), offset)

    def _exact(
        self, data: PrivateVectors, facts: VectorFacts, mechanism: StableCells, coins: Coins
    ) -> tuple[np.ndarray, np.ndarray]:
        logs = _clustered(data, self.blocks, coins)[1]
        there = np.flatnonzero(np.isfinite(logs))
        return marked_cells(np.floor(logs[there] - self.offset).astype(np.int64)[:, np.newaxis], there)

    def answered(self, drawn: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        return drawn[0][:, 0] + self.offset + 0.5, drawn[1]


@dataclass(frozen=True, slots=True, eq=False)
class MeanLogScale(SumOperator[float]):
    """The mean over blocks of log2 of their scales, within an octave about `middle`, with noise.

    Parameters
    ----------
    blocks : BlockClusters
        Of k-means.
    middle : float
        Public, e.g. of a stable octave (:class:`BlockScales`).

    Returns
    -------
    float
        Between middle - 1 and middle + 1.

    Raises
    ------
    TypeError, ValueError
        As :class:`BlockCells`.

    Notes
    -----
    Privacy: a block adds its log-scale less the middle, clamped to +-1 and truncated to units of 2**-16, or 0 where it
    has none. Under both adjacencies one block changes, so the sum moves by at most 2**17 units; the number of blocks is
    public. Gaussian noise of scale ``2**17/sqrt(2 s rho)``, Laplace noise of scale ``2**17/(s epsilon)``.

    Examples
    --------
    >>> MeanLogScale.noise_of(ZCDP(0.5), Fraction(1))
    Noise(distribution='discrete_gaussian', scale=131072.0)
    """

    blocks: BlockClusters
    middle: float

    name = "mean_log_scale"
    asks = VectorFacts
    moved = staticmethod(lambda: (_LOG_MOVED, _LOG_MOVED))

    def checked(self, facts: VectorFacts) -> MeanLogScale:
        return MeanLogScale(_checked_kmeans(self.blocks, facts), _checked_log("middle", self.middle))

    def _exact(
        self, data: PrivateVectors, facts: VectorFacts, mechanism: AdditiveNoise, coins: Coins
    ) -> list[Sensitive]:
        apart = np.clip(np.nan_to_num(_clustered(data, self.blocks, coins)[1] - self.middle), -1.0, 1.0)
        total = np.trunc(np.ldexp(apart, _LOG_BITS)).astype(np.int64).sum(keepdims=True)
        return [Sensitive(total, facts.adjacency, _LOG_MOVED, _LOG_MOVED, _LOG_MOVED)]

    def answered(self, drawn: list[np.ndarray]) -> float:
        mean = math.ldexp(float(drawn[0][0]), -_LOG_BITS) / self.blocks.n_blocks
        return self.middle + min(max(mean, -1.0), 1.0)


def _checked_kmeans(blocks: BlockClusters, facts: VectorFacts) -> BlockClusters:
    require_clusters(facts)
    blocks = _checked_blocks(blocks)
    if blocks.function is not None or blocks.scale is not None:
        raise ValueError(
            f"function={blocks.function!r} with scale={blocks.scale!r} answers centres alone; blocks have scales by "
            "k-means"
        )
    return blocks


def _checked_log(name: str, value: float) -> float:
    number = float(value)
    if not abs(number) < math.inf:
        raise ValueError(f"{name}={number!r} is not a number; pass log2 of a public scale")
    return number


def _clustered(data: PrivateVectors, blocks: BlockClusters, coins: Coins) -> tuple[np.ndarray, np.ndarray]:
    """Centres of each block, shape (m, k, d), and log2 of its scale, NaN where it has none: **to be noised**.

    They are computed for the first question, and kept for later ones that name the same blocks.
    """
    kept = data._memory.get("clusters")
    if kept is None or kept[0] != blocks:
        kept = data._memory["clusters"] = (blocks, *_computed(data, blocks, coins))
    return kept[1:]


def _computed(data: PrivateVectors, blocks: BlockClusters, coins: Coins) -> tuple[np.ndarray, np.ndarray]:
    rows = vector_rows(data)[0]
    m, k, d = blocks.n_blocks, blocks.n_components, rows.shape[1]
    part, places = (coins.parts(lambda: rows, len(rows), parts) for parts in (m, 1 << 32))
    points, used = vector_blocks(rows, part, places, m, blocks.block_size)
    sizes = used.sum(axis=1)
    if blocks.scale is not None:
        centres = batched_membership(points, used, k, blocks.scale, device=blocks.device)
        return centres, np.full(m, np.nan)
    if blocks.function is None:
        # All of it drawn at once: no block's randomness depends on another's records.
        uniforms = coins.generator().random((_RESTARTS, m, k))
        centres, cost = batched_kmeans(points, used, uniforms, device=blocks.device)
        with np.errstate(all="ignore"):
            logs = 0.5 * np.log2(cost / (d * (sizes - float(k))))
        return centres, np.where((sizes > k) & (np.abs(logs) < _LARGEST_LOG), logs, np.nan)

    def checked(answer: object) -> np.ndarray | None:
        right = type(answer) is np.ndarray and answer.dtype == np.float64 and answer.shape == (k, d)
        return np.array(answer) if right else None

    with data._handed_out():
        each = [block[:size] for block, size in zip(points, sizes, strict=True)]
        function = named_function(blocks.function)
        answers = run_blocks(function, each, coins.block_seeds(m), blocks.arguments, checked, None)
    return np.array([np.full((k, d), np.nan) if a is None else a for a in answers]), np.full(m, np.nan)


def _checked_blocks(blocks: BlockClusters) -> BlockClusters:
    """A copy that is checked again: the dict of arguments can have been changed since it was made."""
    if not isinstance(blocks, BlockClusters):
        raise TypeError(f"blocks={blocks!r} is a {type(blocks).__name__}; pass BlockClusters")
    return BlockClusters(**{name: getattr(blocks, name) for name in BlockClusters.__dataclass_fields__})


def gaussian_rho(cost: PureDP | ZCDP, share: Fraction | float) -> Fraction:
    """The rho of a share; ValueError for a pure cost."""
    refusal = f"this takes Gaussian noise, and a curator of {cost} has none; open it with a delta or a rho"
    return amount_of(OfRho, cost, checked_share(share), refusal)


def checked_length(name: str, value: float) -> float:
    """A length whose squares are floats; TypeError or ValueError for another."""
    length = checked_number(name, value, positive=True)
    if not 1.0 / _LARGEST_LENGTH <= length <= _LARGEST_LENGTH:
        raise ValueError(f"{name}={length!r} is out of range; use units in which it is near 1")
    return length
