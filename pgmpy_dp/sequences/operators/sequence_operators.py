"""What users' sequences are asked: tables of beginnings and of runs of successive states, and of a chain's order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from pgmpy_dp.checks import checked_integer, fresh_copy
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.curator.mechanism import AdditiveNoise
from pgmpy_dp.private.curator.observer import Coins
from pgmpy_dp.private.data.contributions import contribution_sensitivity
from pgmpy_dp.private.data.table_distances import whole_parts
from pgmpy_dp.private.guarantee import ZCDP, PureDP
from pgmpy_dp.private.operators.operator_base import Operator, SumOperator, python_numbers
from pgmpy_dp.private.sensitive import Sensitive
from pgmpy_dp.sequences.operators.sequences import (
    PrivateSequences,
    SequenceFacts,
    chain_tables,
    departure_sensitivity,
    order_departure,
    segment_identities,
    user_additions,
)

LARGEST_TABLE = 1 << 24
"""Cells of a table at most: triples of up to 256 states."""


@dataclass(frozen=True, slots=True, eq=False)
class NgramTables(Operator[list[np.ndarray]]):
    """Noisy tables of beginnings and of n-grams, runs of n successive states, summed over time.

    Parameters
    ----------
    weights : sequence of float, optional
        Positive, one for each table: how the share is divided between them. Default: equally.
    segment_length : int, optional
        Visits in a segment, at least 2, and no less than the longest n-gram. Default: each sequence is one segment.
    max_segments : int, optional
        Count at most this many segments of each user, chosen at random anew for each request; needs `segment_length`.
        Default: each user counts as a share of one, split over what it did.
    lengths : sequence of int, default (1, 2)
        1 for the table of beginnings, n for that of n-grams; a table has at most `LARGEST_TABLE` cells.

    Returns
    -------
    list of ndarrays of int64, of shapes (K,), (K, K), (K, K, K), ...
        One for each of `lengths`, states in order of time. One user adds what
        :func:`~pgmpy_dp.sequences.operators.sequences.user_additions` has at most. Counts may be negative.

    Raises
    ------
    TypeError, ValueError
        For bad arguments, and noise that would bury any count.

    Notes
    -----
    Privacy
        *Unit.* A user: all rows with one value of the column ``data.unit``.

        *Sensitivity.* By :func:`~pgmpy_dp.sequences.operators.sequences.chain_tables` a user adds to table c
        non-negative integers that sum to at most M_c. So table c alone has l1 sensitivity M_c and l2 sensitivity M_c
        under ``add_remove``, 2 M_c and sqrt(2) M_c under ``replace_one``; in units of M_c t tables together have l1
        sensitivity t or 2 t. Users of any number of visits are covered, informative or not.

        *Guarantee.* The share s of the cost: with weights w_c of sum 1 Laplace noise of scale
        ``(1 or 2) M_c/(s w_c epsilon)``, or Gaussian noise of scale ``M_c sqrt((1 or 2)/(2 s w_c rho))``.

        *Random choice of segments.* Given the choices of all other users, the exact tables of neighbours differ by one
        user's choice, whatever it was, so the guarantee holds for every such choice. The choices of others have the
        same distribution under both neighbours, and averaging over it keeps the guarantee (DP and zCDP are jointly
        quasi-convex).

        *Source.* Dwork, McSherry, Nissim and Smith 2006; Canonne, Kamath and Steinke 2020.

    Examples
    --------
    >>> import pandas as pd
    >>> from pgmpy_dp import Budget
    >>> from pgmpy_dp.private.curator.curator_base import Curator
    >>> frame = pd.DataFrame({"user": [1, 1, 2], "sequence": ["a b b", "a", "b a"]})
    >>> data = PrivateSequences(frame, {"page": ["a", "b"]}, ledger=Budget(epsilon=1.0))
    >>> curator = Curator(data, Budget(epsilon=1.0), what="two tables", columns=["page"])
    >>> [table.shape for table in curator.ask(NgramTables(), share=1)], str(data.ledger.left)
    ([(2,), (2, 2)], '0-DP')
    """

    weights: Sequence[float | Fraction] | None = None
    segment_length: int | None = None
    max_segments: int | None = None
    lengths: Sequence[int] = (1, 2)

    name = "ngram_tables"
    asks = SequenceFacts

    def checked(self, facts: SequenceFacts) -> NgramTables:
        lengths = tuple([checked_integer("lengths", n, 1) for n in self.lengths])
        if not lengths:
            raise ValueError("lengths has no table; pass 1 for beginnings, 2 for pairs, e.g. lengths=(1, 2)")
        n_states, length, segments = facts.n_states, self.segment_length, self.max_segments
        if n_states ** max(lengths) > LARGEST_TABLE:
            raise ValueError(
                f"lengths={lengths} of {n_states} states would make a table of {n_states ** max(lengths):,} cells, "
                f"more than {LARGEST_TABLE:,}; count shorter runs, or put states together"
            )
        if length is not None:
            length = checked_integer("segment_length", length, max(2, *lengths))
        if segments is not None:
            segments = checked_integer("max_segments", segments, 1)
            if length is None:
                raise ValueError(
                    f"max_segments={segments!r} without segment_length: a segment of any length could hold any number "
                    "of pairs; pass segment_length, or max_segments=None to count users by shares"
                )
        return NgramTables(python_numbers(self.weights), length, segments, lengths)

    def mechanism(self, facts: SequenceFacts, cost: PureDP | ZCDP, share: Fraction, eta: Fraction) -> AdditiveNoise:
        additions = user_additions(self.segment_length, self.max_segments, self.lengths)
        return self.planned(additions, facts.adjacency, cost, share, self.weights)

    def _exact(
        self, data: PrivateSequences, facts: SequenceFacts, mechanism: AdditiveNoise, coins: Coins
    ) -> list[Sensitive]:
        def keys(owner: np.ndarray) -> np.ndarray:
            return coins.keys(lambda: segment_identities(data, owner), len(owner))

        return chain_tables(data, self.segment_length, self.max_segments, None, keys, self.lengths)

    @staticmethod
    def planned(
        additions: Sequence[int],
        adjacency: Adjacency,
        cost: PureDP | ZCDP,
        share: Fraction | float,
        weights: Sequence[float | Fraction] | None = None,
    ) -> AdditiveNoise:
        """The noise of each table, from public numbers; ValueError where it buries any count.

        Examples
        --------
        >>> [noise.scale for noise in NgramTables.planned((2, 8), Adjacency.ADD_REMOVE, PureDP(1.0), 1).noise]
        [4.0, 16.0]
        """
        norms = [contribution_sensitivity(adjacency, most) for most in additions]
        return AdditiveNoise.planned(norms, cost, Fraction(share), weights)


@dataclass(frozen=True, slots=True, eq=False)
class OrderDeparture(SumOperator[np.ndarray]):
    """The noisy distance of triples of states from a first-order chain's, their number, and that of independent ones.

    Parameters
    ----------
    probabilities : ndarray of shape (K, K)
        The chain's, rows by the state that is left: functions of what was released. Rounded to multiples of 2**-30.
    segment_length : int, optional
        As in :class:`NgramTables`, at least 3.

    Returns
    -------
    ndarray of int64, shape (3,)
        In users times 2**20, each with noise. The distance: how much of the table of triples by shares lies in other
        cells than where the chain puts each row (i, j), of the row's own total. The total of that table. The sum over
        users of 1 over the number of their triples: the chance part of the table is that of as many independent ones.

    Raises
    ------
    TypeError, ValueError
        For bad arguments, and noise that would bury any of them.

    Notes
    -----
    Privacy
        *Unit.* A user, as for :class:`NgramTables`.

        *Sensitivity.* By :func:`~pgmpy_dp.sequences.operators.sequences.order_departure`, with M = 2**20, the three
        move together by 3 M in l1 norm under ``add_remove`` and ``replace_one``, and by sqrt(3) M and sqrt(5) M in l2
        norm, whatever the probabilities are.

        *Guarantee.* The share s of the cost: Laplace noise of scale ``3 M/(s epsilon)`` or Gaussian noise of scale ``M
        sqrt((3 or 5)/(2 s rho))`` in each.

        *Source.* Dwork, McSherry, Nissim and Smith 2006; Canonne, Kamath and Steinke 2020.

    Examples
    --------
    >>> OrderDeparture.noise_of(Adjacency.ADD_REMOVE, PureDP(1.0), 0.05).scale / 2**20
    60.0
    """

    probabilities: np.ndarray
    segment_length: int | None = None

    name = "order_departure"
    asks = SequenceFacts
    moved = staticmethod(departure_sensitivity)

    def checked(self, facts: SequenceFacts) -> OrderDeparture:
        n_states, length, rows = facts.n_states, self.segment_length, fresh_copy(self.probabilities)
        if rows.shape != (n_states, n_states):
            raise ValueError(f"probabilities has the shape {rows.shape}; pass {(n_states, n_states)}, a row per state")
        if n_states**3 > LARGEST_TABLE:
            raise ValueError(
                f"{n_states} states have {n_states**3:,} triples, more than {LARGEST_TABLE:,}; put states together"
            )
        if length is not None:
            length = checked_integer("segment_length", length, 3)
        return OrderDeparture(np.stack([whole_parts(row) for row in rows]), length)

    def _numbers(self, facts: SequenceFacts) -> tuple[Adjacency]:
        return (facts.adjacency,)

    def _exact(
        self, data: PrivateSequences, facts: SequenceFacts, mechanism: AdditiveNoise, coins: Coins
    ) -> list[Sensitive]:
        return [order_departure(data, self.probabilities, self.segment_length)]
