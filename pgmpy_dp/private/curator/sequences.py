"""Questions about users' sequences: tables of beginnings and of pairs of successive states."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from pgmpy_dp.checks import checked_integer
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.curator.base import Curator, checked_share
from pgmpy_dp.private.curator.mechanism import additive_scales
from pgmpy_dp.private.data.contributions import GRID, contribution_sensitivity, segment_keys
from pgmpy_dp.private.data.sequences import PrivateSequences, chain_tables, segment_identities
from pgmpy_dp.private.data.subject import require_data_and_budget
from pgmpy_dp.private.guarantee import ZCDP, PureDP
from pgmpy_dp.private.sensitive import Noise
from pgmpy_dp.schema import Schema

__all__ = ["SequenceCurator", "pair_table_noise", "user_additions"]


def user_additions(segment_length: int | None = None, max_segments: int | None = None) -> tuple[int, int]:
    """The most that one user adds to the table of beginnings and to that of pairs, in the integers of the tables.

    Examples
    --------
    >>> user_additions(5, 2), user_additions()
    ((2, 8), (1048576, 1048576))
    """
    if max_segments is None or segment_length is None:
        return GRID, GRID
    return max_segments, max_segments * (segment_length - 1)


def pair_table_noise(
    additions: Sequence[int],
    adjacency: Adjacency,
    cost: PureDP | ZCDP,
    share: Fraction | float,
    weights: Sequence[float] | None = None,
) -> list[Noise]:
    """The noise of :meth:`SequenceCurator.pair_tables`, from public numbers; ValueError where it buries any count.

    Examples
    --------
    >>> [noise.scale for noise in pair_table_noise(user_additions(5, 2), Adjacency.ADD_REMOVE, PureDP(1.0), 1)]
    [4.0, 16.0]
    """
    norms = [contribution_sensitivity(adjacency, most)[:2] for most in additions]
    return additive_scales(norms, cost, checked_share(share), weights)


class SequenceCurator(Curator):
    """Users' sequences behind a budget; see :class:`~pgmpy_dp.private.curator.base.Curator` for the arguments.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"user": [1, 1, 2], "sequence": ["a b b", "a", "b a"]})
    >>> data = PrivateSequences(frame, {"page": ["a", "b"]}, ledger=Budget(epsilon=1.0))
    >>> curator = SequenceCurator(data, Budget(epsilon=1.0), what="two tables", columns=["page"])
    >>> [table.shape for table in curator.pair_tables(share=1)], str(data.ledger.left)
    ([(2,), (2, 2)], '0-DP')
    """

    kind = PrivateSequences
    _data: PrivateSequences

    def __init__(self, data: PrivateSequences, budget: Budget, **facts: Any) -> None:
        require_data_and_budget(data, PrivateSequences, budget)
        super().__init__(data, budget, **facts)

    @property
    def schema(self) -> Schema:
        """Public description of the states."""
        return self._data.schema

    @property
    def n_users(self) -> int | None:
        """The public number of users; None where it is private."""
        return self._data.n_users

    def pair_tables(
        self,
        share: Fraction | float,
        weights: Sequence[float] | None = None,
        segment_length: int | None = None,
        max_segments: int | None = None,
    ) -> list[np.ndarray]:
        """Noisy tables of beginnings and of pairs of successive states, summed over time.

        Parameters
        ----------
        share : Fraction or float
            Of the curator's cost, for both.
        weights : sequence of two floats, optional
            Positive: how the share is divided between them. Default: equally.
        segment_length : int, optional
            Visits in a segment, at least 2. Default: each sequence is one segment.
        max_segments : int, optional
            Count at most this many segments of each user, chosen at random anew for each request; needs
            `segment_length`. Default: each user counts as a share of one, split over what it did.

        Returns
        -------
        list of two ndarrays of int64, shapes (K,) and (K, K)
            Pairs (from, to). One user adds what :func:`user_additions` has at most. Counts may be negative.

        Raises
        ------
        BudgetExceeded
            If less than the share is left; nothing is spent.
        TypeError, ValueError
            For bad arguments, and noise that would bury any count; nothing is spent.

        Notes
        -----
        Privacy
            *Unit.* A user: all rows with one value of the column ``data.unit``.

            *Sensitivity.* By :func:`~pgmpy_dp.private.data.sequences.chain_tables` a user adds to table c non-negative
            integers that sum to at most M_c. So table c alone has l1 sensitivity M_c and l2 sensitivity M_c under
            ``add_remove``, 2 M_c and sqrt(2) M_c under ``replace_one``; in units of M_c the two tables together have
            l1 sensitivity 2 or 4. Users of any number of visits are covered, informative or not.

            *Guarantee.* The share s of the cost: with weights w_c of sum 1 Laplace noise of scale
            ``(1 or 2) M_c/(s w_c epsilon)``, or Gaussian noise of scale ``M_c sqrt((1 or 2)/(2 s w_c rho))``.

            *Random choice of segments.* Given the choices of all other users, the exact tables of neighbours differ by
            one user's choice, whatever it was, so the guarantee holds for every such choice. The choices of others have
            the same distribution under both neighbours, and averaging over it keeps the guarantee (DP and zCDP are
            jointly quasi-convex).

            *Source.* Dwork, McSherry, Nissim and Smith 2006; Canonne, Kamath and Steinke 2020.
        """
        if segment_length is not None:
            segment_length = checked_integer("segment_length", segment_length, 2)
        if max_segments is not None:
            max_segments = checked_integer("max_segments", max_segments, 1)
            if segment_length is None:
                raise ValueError(
                    f"max_segments={max_segments!r} without segment_length: a segment of any length could hold any "
                    "number of pairs; pass segment_length, or max_segments=None to count users by shares"
                )
        weights = None if weights is None else tuple(weights)
        additions = user_additions(segment_length, max_segments)
        norms = [contribution_sensitivity(self.adjacency, most) for most in additions]
        arguments = {"weights": weights, "segment_length": segment_length, "max_segments": max_segments}
        return self._additive(
            "pair_tables",
            arguments,
            share,
            norms,
            lambda: chain_tables(self._data, segment_length, max_segments, keys=self._segment_keys),
            weights,
        )

    def _segment_keys(self, owner: np.ndarray) -> np.ndarray:
        return self._random_keys(
            lambda: segment_identities(self._data, owner), lambda: segment_keys(len(owner), self._seed)
        )
