"""Sums of clipped per-user gradients of a time-homogeneous chain's log-likelihood, in exact integers.

A user u has shares: a_i of its beginnings in state i, and s_ij of its informative transitions from i to j, each table's
shares summing to at most a public total, w_0 and w_1 (its weight). Its log-likelihood at initial probabilities pi and
transition probabilities P is the mean over its beginnings and the mean over its transitions, weighted,

    l_u = sum_i a_i log pi_i + sum_ij s_ij log P_ij,

so that the sum over users is the log-likelihood of the tables that the other chain learners release by shares. With the
K + 1 distributions stacked (row 0 is pi) and each a softmax of its own logits, the gradient is

    g_u[r, j] = s_rj - t_r P_rj,      t_r = sum_j s_rj.

Normalising by the length is what makes clipping harmless: summed over its visits, a user of n visits has a gradient of
norm up to n, and clipping would turn every long user's mean into a unit vector, a bias that no budget removes. Here no
gradient is longer than ``sqrt(2 w_0**2 + 2 w_1**2)``, however many visits there are. No gradient is ever made::

    |g_u|**2 = sum s**2 - 2 sum_rj t_r s_rj P_rj + sum_r t_r**2 |P_r|**2
    sum_u c_u g_u[r, j] = sum_u c_u s_rj - (sum_u c_u t_r) P_rj,      c_u = min(1, B / |g_u|)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NoReturn

import numpy as np
from scipy import sparse

from pgmpy_dp.checks import checked_number
from pgmpy_dp.private.adjacency import changed_records
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.curator.schedule import SampledCurator
from pgmpy_dp.private.data.contributions import user_shares
from pgmpy_dp.private.data.data_base import require_data_and_budget
from pgmpy_dp.private.data.gradients import bounded_sum, exact_difference
from pgmpy_dp.private.sensitive import Sensitive
from pgmpy_dp.sequences.operators.sequences import PrivateSequences, chain_events, sequence_owners

_SHARE_BITS = 12
_PROBABILITY_BITS = 12
_WEIGHT_BITS = 10
_LARGEST_NORM = 2.0
_SMALLEST_NORM = (
    2.0**-6
)  # below it weights of 10 bits would clip a gradient of norm 2 to less than 7/8 of the clip norm
_MOST_STATES = 4096


@dataclass(frozen=True)
class ChainGrid:
    """The public fixed-point grid of users' clipped gradients.

    Shares and probabilities are multiples of 2**-12, clipping weights c of 2**-10, so that every clipped gradient is an
    integer vector times ``unit``.

    Parameters
    ----------
    clip_norm : float
        B, the l2 norm that no user's clipped gradient exceeds, from 2**-6 to 2; no gradient is longer than 2.
    n_states : int
        K, at most 4096.
    initial_share : float
        In (0, 1): share of the squared weights that the beginnings have.

    Raises
    ------
    ValueError
        For numbers outside these ranges.

    Examples
    --------
    >>> grid = ChainGrid(1.0, n_states=17, initial_share=0.25)
    >>> grid.bound * grid.unit, grid.totals
    (1.0, (2364, 4096))
    """

    clip_norm: float
    n_states: int
    initial_share: float

    def __post_init__(self) -> None:
        if not _SMALLEST_NORM <= self.clip_norm <= _LARGEST_NORM:
            raise ValueError(
                f"clip_norm={self.clip_norm!r} is out of range: a user's gradient has norm at most {_LARGEST_NORM:g}; "
                f"pass a number from {_SMALLEST_NORM} to {_LARGEST_NORM:g}"
            )
        if self.n_states > _MOST_STATES:
            raise ValueError(f"the schema has {self.n_states} states; gradient steps take at most {_MOST_STATES}")

    @cached_property
    def totals(self) -> tuple[int, int]:
        """What a user's shares of beginnings and of transitions sum to at most, in multiples of 2**-12.

        The larger weight is 1, and their squares are as `initial_share` to the rest: at the noise of one step the two
        tables are then measured as precisely as with these shares of a budget in rho.
        """
        largest = max(self.initial_share, 1.0 - self.initial_share)
        first, second = (
            max(1, math.floor(math.ldexp(math.sqrt(share / largest), _SHARE_BITS)))
            for share in (self.initial_share, 1.0 - self.initial_share)
        )
        return first, second

    @property
    def n_cells(self) -> int:
        """Length of a gradient: K logits for the beginnings, K for each state that is left."""
        return (self.n_states + 1) * self.n_states

    @property
    def radius(self) -> int:
        """The clip norm before weights, in multiples of 2**-24, rounded down."""
        return math.floor(math.ldexp(self.clip_norm, _SHARE_BITS + _PROBABILITY_BITS))

    @property
    def bound(self) -> int:
        """The clip norm in units, rounded down: the l2 norm of a user's integer vector never exceeds it."""
        return self.radius << _WEIGHT_BITS

    @property
    def unit(self) -> float:
        """What one unit of the integer vectors is, a power of two."""
        return math.ldexp(1.0, -(_SHARE_BITS + _PROBABILITY_BITS + _WEIGHT_BITS))

    def rounded_probabilities(self, logits: np.ndarray) -> np.ndarray:
        """Softmax of each row of the logits, flat or stacked, as integers in ``0 .. 2**12``, shape (K + 1, K).

        They are public, so rounding costs nothing.
        """
        rows = np.nan_to_num(np.asarray(logits, dtype=np.float64)).reshape(self.n_states + 1, self.n_states)
        rows = np.exp(rows - rows.max(axis=1, keepdims=True))
        return np.rint(np.ldexp(rows / rows.sum(axis=1, keepdims=True), _PROBABILITY_BITS)).astype(np.int64)


class UserShares:
    """Each user's shares of beginnings and transitions, laid out for many gradient sums. Records: never leaves.

    Parameters
    ----------
    data : PrivateSequences
    grid : ChainGrid

    Notes
    -----
    Privacy: row u depends on user u's sequences alone. Its integers are not negative, the first K sum to at most
    ``grid.totals[0]`` and the others to at most ``grid.totals[1]``. A user without a known visit has a row of zeros.
    """

    __slots__ = ("_adjacency", "_shares", "_squared_totals", "_squares", "_weighted")

    def __init__(self, data: PrivateSequences, grid: ChainGrid) -> None:
        users = np.unique(sequence_owners(data))
        k = grid.n_states
        parts = [
            user_shares(np.searchsorted(users, user), cell, counts, size, total)
            for (user, cell, counts), size, total in zip(chain_events(data), (k, k * k), grid.totals, strict=True)
        ]
        user = np.concatenate([part[0] for part in parts])
        cell = np.concatenate([parts[0][1], parts[1][1] + k])  # row 0 holds the beginnings
        share = np.concatenate([part[2] for part in parts])
        n = len(users)
        rows, of_row = np.unique(user * (k + 1) + cell // k, return_inverse=True)
        total, squares = np.zeros(len(rows), dtype=np.int64), np.zeros(n, dtype=np.int64)
        np.add.at(total, of_row, share)
        np.add.at(squares, user, share * share)
        place = (rows // (k + 1), rows % (k + 1))
        self._adjacency = data.adjacency
        self._shares = sparse.csr_array((share, (user, cell)), shape=(n, grid.n_cells))
        self._weighted = sparse.csr_array((share * total[of_row], (user, cell)), shape=(n, grid.n_cells))
        self._squares = squares
        self._squared_totals = sparse.csr_array((total * total, place), shape=(n, k + 1))

    def __len__(self) -> int:
        return self._shares.shape[0]

    def __repr__(self) -> str:
        return f"UserShares(hidden, adjacency={str(self._adjacency)!r})"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("UserShares cannot be copied or pickled: it holds private records")

    def rows(self) -> np.ndarray:
        """What each user is, for audits: shares of beginnings, then of transitions, shape (users, cells)."""
        return self._shares.toarray()

    def squared_norms(self, probabilities: np.ndarray) -> np.ndarray:
        """Squared norm of every user's gradient, in multiples of 2**-48; exact.

        A user's shares of a table sum to at most 2**12 and a row of probabilities to about 2**12, so no term exceeds
        2**49, and the norms are below 2**51.
        """
        rows = (probabilities * probabilities).sum(axis=1)
        cross = self._weighted @ probabilities.ravel()
        top = 1 << _PROBABILITY_BITS
        return self._squares * (top * top) - 2 * top * cross + self._squared_totals @ rows

    def weighted_sum(self, weights: np.ndarray, probabilities: np.ndarray) -> np.ndarray:
        """Sum over users of weight times gradient, in multiples of ``2**-24``, clamped to +-2**62."""
        counts = (self._shares.T @ weights).reshape(probabilities.shape)
        left = counts.sum(axis=1, keepdims=True)
        top = 1 << _PROBABILITY_BITS
        # A cell is a difference of numbers of at most 2**24 for each unit of weight.
        most = int(weights.sum()) << (_SHARE_BITS + _PROBABILITY_BITS)
        return exact_difference(counts, left, probabilities, top, most).ravel()


def clipping_weights(squared: np.ndarray, radius: int) -> np.ndarray:
    """Largest integers ``k <= 2**10`` with ``k**2 squared <= (2**10 radius)**2``, in integers.

    Parameters
    ----------
    squared : ndarray of int64
        Not negative, below 2**52.
    radius : int
        Positive, below 2**26.

    Notes
    -----
    Where ``squared > radius**2``, the quotient ``floor(4**10 radius**2 / squared)`` is below 2**20; it is found in two
    digits of ten bits, by long division, since the dividend may not fit 64 bits. Its square root in double precision is
    exact after flooring.

    Examples
    --------
    >>> clipping_weights(np.array([0, 100, 400]), 10).tolist()
    [1024, 1024, 512]
    """
    limit = radius * radius
    longer = squared > limit
    divisor = np.where(longer, squared, limit + 1)  # for the others any number that leaves no quotient
    high, rest = np.divmod(np.int64(limit << _WEIGHT_BITS), divisor)
    quotient = (high << _WEIGHT_BITS) + (rest << _WEIGHT_BITS) // divisor
    return np.where(longer, np.floor(np.sqrt(quotient)).astype(np.int64), 1 << _WEIGHT_BITS)


def sampled_user_gradient_sum(
    users: UserShares, logits: np.ndarray, grid: ChainGrid, sample: Callable[[UserShares], np.ndarray]
) -> Sensitive:
    """Clipped gradient sum over a Poisson sample of the users, with its sensitivities given the other coins.

    Parameters
    ----------
    users : UserShares
    logits : ndarray, shape (grid.n_cells,)
        Current parameters, public.
    grid : ChainGrid
    sample : callable
        From the users to the positions of those that take part, by a coin of each user's own
        (:func:`~pgmpy_dp.private.noise.subsampling.poisson_sample`).

    Returns
    -------
    Sensitive
        For fixed coins of the other users. ``add_remove``: l2 = bound, one user's vector, or nothing. ``replace_one``:
        l2 = 2 bound, one such vector leaves and another enters.

    Notes
    -----
    Privacy: in multiples of 2**-24 a user's gradient is the integer vector ``G[r, j] = 2**12 s_rj - t_r M_rj``, M the
    rounded probabilities, of squared norm Q. Its weight is the largest integer ``k <= 2**10`` with ``k**2 Q <=
    bound**2`` (:func:`clipping_weights`), so that its contribution ``k G`` has norm at most ``bound``, and depends on
    the user's own sequences and on public numbers alone. Clamping moves no two sums further apart.
    """
    probabilities = grid.rounded_probabilities(logits)
    chosen = sample(users)
    # Weights of all users, in the sample or not: time then tells nothing of the sample.
    weights = np.zeros(len(users), dtype=np.int64)
    weights[chosen] = clipping_weights(users.squared_norms(probabilities), grid.radius)[chosen]
    return bounded_sum(users.weighted_sum(weights, probabilities), users._adjacency, grid.bound)


def user_count(data: PrivateSequences) -> Sensitive:
    """The number of users, which moves by at most 1 under ``add_remove``; not for others."""
    if changed_records(data.adjacency) != 1:
        raise ValueError(f"adjacency={str(data.adjacency)!r} has a public number of users; use data.n_users")
    return Sensitive(np.array([len(np.unique(sequence_owners(data)))], dtype=np.int64), data.adjacency, 1.0, 1.0, 1.0)


class ChainGradientCurator(SampledCurator):
    """Users' sequences that answer noisy sums of clipped gradients of a chain, one for each user, as declared.

    The parameters of a step are the current logits, flat: of the first state (K), then of the next one for each state
    that is left (K * K).

    Parameters
    ----------
    data : PrivateSequences
    budget : Budget
        ``epsilon`` with ``delta``, or ``rho``.
    clip_norm : float
        l2 norm that no user's gradient exceeds, see :class:`~pgmpy_dp.sequences.operators.chain_gradients.ChainGrid`.
    initial_share : float
        In (0, 1): share of the beginnings in a user's squared weights.
    n_steps, batch_rate, count_share
        See :func:`~pgmpy_dp.private.curator.schedule.sampled_schedule`; units are users.
    random_state : int, optional
        For tests and benchmarks only: repeatable samples and noise. Nothing is protected then.

    Raises
    ------
    BudgetExceeded
        If the ledger does not have the budget left.
    TypeError, ValueError
        For numbers out of range, a ledger that protects another unit, and as `sampled_schedule`. All depend on public
        arguments only and come before the charge.

    Notes
    -----
    Privacy: protected is a user, all rows with one value of the column ``data.unit``. A user's clipped gradient has l2
    norm at most B, exactly, whatever the number of its visits, and depends on that user and on the logits alone
    (:func:`~pgmpy_dp.sequences.operators.chain_gradients.sampled_user_gradient_sum`). See ``step`` and ``gradient.md``.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"user": [1, 1, 2], "sequence": ["a b b", "a", "b a"]})
    >>> data = PrivateSequences(frame, {"page": ["a", "b"]}, ledger=Budget(rho=1.0))
    >>> ChainGradientCurator(data, Budget(rho=1.0), 0.6, 0.25, n_steps=2).step([0.0] * 6).shape
    (6,)
    """

    kind = PrivateSequences
    _data: PrivateSequences
    _grid: ChainGrid

    def __init__(
        self,
        data: PrivateSequences,
        budget: Budget,
        clip_norm: float,
        initial_share: float,
        **schedule: Any,
    ) -> None:
        require_data_and_budget(data, PrivateSequences, budget, example="a Budget, e.g. Budget(rho=0.1)")
        (variable,) = data.schema.variables
        norm = checked_number("clip_norm", clip_norm, positive=True)
        share = checked_number("initial_share", initial_share, positive=True, below_one=True)
        grid = ChainGrid(norm, data.schema.cardinality(variable), share)
        super().__init__(data, budget, data.n_users, grid, "a chain", [variable], **schedule)

    @cached_property
    def _users(self) -> UserShares:
        return UserShares(self._data, self._grid)

    def _exact_count(self, parts: int) -> Sensitive:
        return user_count(self._data)

    def _exact_sum(self, parameters: np.ndarray, parts: int) -> Sensitive:
        return sampled_user_gradient_sum(self._users, parameters, self._grid, self._taking_part)

    def _taking_part(self, users: UserShares) -> np.ndarray:
        return self._coins.sample(users.rows, len(users), self._schedule.rate)
