"""Questions about a table that the moments of a random field answer: sums of parities, and of centred interactions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import partial

import numpy as np

from pgmpy_dp.private.adjacency import Adjacency, changed_records
from pgmpy_dp.private.curator.curator_base import Curator, checked_share
from pgmpy_dp.private.curator.mechanism import JointNoise, NoisyMax, additive_scales
from pgmpy_dp.private.data.interactions import (
    InteractionUnits,
    Pairs,
    checked_pairs,
    field_sensitivity,
    interaction_sums,
    pair_sensitivity,
)
from pgmpy_dp.private.data.parities import (
    Subsets,
    checked_family,
    family_size,
    parity_misfits,
    parity_sensitivity,
    parity_sums_and_count,
)
from pgmpy_dp.private.data.table import PrivateTable, share_grid, shared_codes
from pgmpy_dp.private.guarantee import ZCDP, PureDP
from pgmpy_dp.private.noise.selection import selection_scale
from pgmpy_dp.private.sensitive import Noise, Sensitive

__all__ = [
    "FieldMomentCurator",
    "Subsets",
    "family_size",
    "interaction_multipliers",
    "interaction_noise",
    "parity_noise",
    "worst_parity_scale",
]

_SHARED_BITS = 38  # of what a unit adds to a sum of products, so that sums of 2**25 units fit 64 bits


def parity_noise(
    family: int | Subsets,
    n_variables: int,
    adjacency: Adjacency,
    with_count: bool,
    cost: PureDP | ZCDP,
    share: Fraction,
) -> Noise:
    """The noise that :meth:`FieldMomentCurator.parity_sums` would add: from public numbers, without records.

    Raises
    ------
    ValueError
        Where it would bury any sum.

    Examples
    --------
    >>> parity_noise(2, 2, Adjacency.ADD_REMOVE, True, PureDP(1.0), Fraction(1, 2))
    Noise(distribution='discrete_laplace', scale=8.0)
    """
    l1, l2, _ = parity_sensitivity(n_variables, family, adjacency, with_count)
    return additive_scales([(l1, l2)], cost, share)[0]


def worst_parity_scale(adjacency: Adjacency, cost: PureDP | ZCDP, share: Fraction) -> float:
    """Scale of the noise of :meth:`FieldMomentCurator.worst_parity`; ValueError where it buries any score.

    Examples
    --------
    >>> worst_parity_scale(Adjacency.REPLACE_ONE, PureDP(1.0), Fraction(1, 2))
    8.0
    """
    return selection_scale(float(changed_records(adjacency)), cost, share)


def interaction_multipliers(cardinalities: Sequence[int]) -> tuple[int, ...]:
    """The c_i of :meth:`FieldMomentCurator.interaction_sums` for variables of these numbers of states.

    Examples
    --------
    >>> interaction_multipliers([2, 3, 4])
    (6, 4, 3)
    """
    return InteractionUnits(tuple(cardinalities)).multipliers


def interaction_noise(
    cardinalities: Sequence[int],
    adjacency: Adjacency,
    pairs: Pairs | None,
    with_count: bool,
    cost: PureDP | ZCDP,
    share: Fraction | float,
) -> list[Noise]:
    """The noise of :meth:`FieldMomentCurator.interaction_sums`, from public numbers; ValueError if it buries any sum.

    Examples
    --------
    >>> [noise.scale for noise in interaction_noise([2, 2], Adjacency.ADD_REMOVE, None, False, PureDP(1.0), 1)]
    [6.0, 12.0]
    """
    sizes = tuple(cardinalities)
    norms = _interaction_sensitivities(sizes, adjacency, pairs, with_count)
    return additive_scales(norms, cost, checked_share(share), _interaction_weights(len(sizes), pairs, with_count))


class FieldMomentCurator(Curator):
    """What a table answers about the moments of random fields; abstract, see the class of tables below it."""

    kind = PrivateTable
    _data: PrivateTable

    def parity_sums(
        self, family: int | Sequence[Sequence[int]], share: Fraction | float, *, with_count: bool = False
    ) -> list[np.ndarray]:
        """Noisy sums over records of products of z = 2 code - 1, which is -1 or 1, of sets of binary variables.

        Parameters
        ----------
        family : int or sequence of sequences of int
            t: all sets of 1 to t variables, by size, each size in lexicographic order. Or the public sets: increasing
            positions in the schema, none twice.
        share : Fraction or float
            Of the curator's cost, for all of them.
        with_count : bool
            Whether the number of records, which is the parity of no variable, comes with them.

        Returns
        -------
        list of ndarray of int64
            The sums, shape (m,); with the count, that too, shape (1,).

        Raises
        ------
        BudgetExceeded
            If less than the share is left; nothing is spent.
        TypeError, ValueError
            For variables that are not binary, sets that are none, and noise that would bury any sum; nothing is spent.

        Notes
        -----
        Privacy
            *Sensitivity.* Of M sums, the count included. ``add_remove``: a record inside the schema adds -1 or 1 to
            each, so M in l1 and sqrt(M) in l2 norm. ``replace_one``: at most F of them flip and move by 2, or, if one
            of the two records is outside, all move by 1: max(2 F, M) and sqrt(max(4 F, M)). F is the largest number of
            sets that hold an odd number of the variables that change
            (:func:`~pgmpy_dp.private.data.parities.parity_sensitivity` and what it calls have the proofs).

            *Guarantee.* The share s of the cost: in all sums, Laplace noise of scale ``l1/(s epsilon)`` or Gaussian
            noise of scale ``l2/sqrt(2 s rho)``.

            *Source.* Dwork, McSherry, Nissim and Smith 2006; Canonne, Kamath and Steinke 2020.
        """
        checked = self._family(family)
        with_count = bool(with_count)
        p = len(self._data.schema)
        noise = parity_noise(checked, p, self.adjacency, with_count, self.cost, checked_share(share))
        grid = share_grid(self._data, noise.scale)

        def mechanism(cost: PureDP | ZCDP, s: Fraction) -> JointNoise:
            codes, weights = shared_codes(self._data, grid)
            exact = parity_sums_and_count(codes, checked, self.adjacency, with_count, weights, grid)
            return JointNoise.of(exact, [family_size(checked, p), 1][: 1 + with_count], cost, s, grid)

        return self._answer("parity_sums", {"family": checked, "with_count": with_count}, share, mechanism)

    def worst_parity(
        self,
        family: int | Sequence[Sequence[int]],
        expected: np.ndarray,
        share: Fraction | float,
        *,
        signed: bool = False,
    ) -> int:
        """Position of the parity whose sum is about the furthest from what a model expects.

        Parameters
        ----------
        family : int or sequence of sequences of int
            As in :meth:`parity_sums`. The exact sums are kept, so that asking again about one family is quick.
        expected : ndarray, shape (m,)
            Sums that the model expects: functions of what was released. They are rounded to integers; NaN counts as 0.
        share : Fraction or float
        signed : bool
            Whether the m parities that are the furthest above what is expected are told from those below.

        Returns
        -------
        int
            Below m; if `signed`, position k + m is parity k below what is expected.

        Raises
        ------
        BudgetExceeded
            If less than the share is left; nothing is spent.
        TypeError, ValueError
            For variables that are not binary, sets that are none, sums of another shape, and noise that would bury any
            score; nothing is spent.

        Notes
        -----
        Privacy
            *Sensitivity.* The score ``abs(S(I) - round(m(I)))``, or the difference and its negative, moves by at most 1
            under ``add_remove``, 2 under ``replace_one``, as S(I) does; the number of records is nowhere in it
            (:func:`~pgmpy_dp.private.data.parities.parity_misfits`).

            *Guarantee.* The share s of the cost: Gumbel noise of scale ``D/sqrt(2 s rho)``, or exponential noise of
            scale ``2 D/(s epsilon)``, D being 1 or 2 (:mod:`pgmpy_dp.private.noise.selection`).

            *Source.* Hardt, Ligett and McSherry 2012; Cesar and Rogers 2021 for the cost of a selection.
        """
        checked, assumed = self._family(family), np.array(expected, dtype=np.float64)
        wanted = (family_size(checked, len(self._data.schema)),)
        if assumed.shape != wanted:
            raise ValueError(f"expected has shape {assumed.shape}; pass {wanted[0]} numbers, one per parity")
        grid = share_grid(self._data, worst_parity_scale(self.adjacency, self.cost, checked_share(share)))
        signed = bool(signed)

        def mechanism(cost: PureDP | ZCDP, s: Fraction) -> NoisyMax:
            memory = self._data._memory
            if memory.get("parities", [None])[0] != (checked, grid):
                codes, weights = shared_codes(self._data, grid)
                exact = parity_sums_and_count(codes, checked, self.adjacency, weights=weights, grid=grid)
                memory["parities"] = (checked, grid), exact
            return NoisyMax.of(parity_misfits(memory["parities"][1], grid * assumed, signed=signed), cost, s)

        arguments = {"family": checked, "expected": assumed, "signed": signed}
        return self._answer("worst_parity", arguments, share, mechanism)

    def interaction_sums(
        self,
        share: Fraction | float,
        pairs: Sequence[Sequence[int]] | None = None,
        *,
        with_count: bool = False,
    ) -> list[np.ndarray]:
        """Noisy sums over records of centred indicators u_i = c_i (k_i e_a - 1) of states a, and of their products.

        Parameters
        ----------
        share : Fraction or float
            Of the curator's cost. The p fields, the pairs and the count get parts in proportion to their number.
        pairs : sequence of (i, j), optional
            Public: i < j, positions in the schema, in lexicographic order. Default: all pairs.
        with_count : bool
            Whether the number of records comes with them.

        Returns
        -------
        list of ndarray of int64
            The sums of all u_i, flat; of u_i u_j^T of the pairs, each in C order, flat; with the count, that too, shape
            (1,). :func:`interaction_multipliers` has the c_i, which bring variables to one scale.

        Raises
        ------
        BudgetExceeded
            If less than the share is left; nothing is spent.
        TypeError, ValueError
            For pairs that are none, and noise that would bury any sum; nothing is spent.

        Notes
        -----
        Privacy
            *Sensitivity.* :func:`~pgmpy_dp.private.data.interactions.field_sensitivity` and
            :func:`~pgmpy_dp.private.data.interactions.pair_sensitivity` prove it for each adjacency. With A_i = 1 -
            1/k_i and L the largest c_i k_i, ``add_remove``: fields L 2 sum A in l1, L sqrt(sum A) in l2 norm, pairs L^2
            4 sum A_i A_j and L^2 sqrt(sum A_i A_j). ``replace_one``: fields 2 q L and sqrt(2 q) L for q variables with
            two states or more, pairs as there. The count: 1 under both.

            *Guarantee.* The share s of the cost: array c gets the part w_c, in proportion to the number of its tables
            (of no pairs, 1), with Laplace noise of scale ``l1_c/(w_c s epsilon)`` or Gaussian noise of scale
            ``l2_c/sqrt(2 w_c s rho)``.

            *Source.* Dwork, McSherry, Nissim and Smith 2006; Canonne, Kamath and Steinke 2020.
        """
        schema = self._data.schema
        sizes = tuple(schema.cardinality(name) for name in schema.variables)
        chosen = None if pairs is None else checked_pairs(pairs, len(sizes))
        with_count = bool(with_count)
        weights = _interaction_weights(len(sizes), chosen, with_count)
        norms = _interaction_sensitivities(sizes, self.adjacency, chosen, with_count)

        units = InteractionUnits(sizes)

        def exact(grid: int) -> Sequence[Sensitive]:
            codes, parts = shared_codes(self._data, grid)
            return interaction_sums(codes, units, self.adjacency, chosen, parts, grid)[: len(weights)]

        arguments = {"pairs": chosen, "with_count": with_count}
        most = 1 << max(0, min(20, _SHARED_BITS - 2 * units.largest.bit_length()))
        grid = partial(share_grid, self._data, most=most)
        return self._additive("interaction_sums", arguments, share, norms, exact, weights, grid=grid)

    def _family(self, family: int | Sequence[Sequence[int]]) -> int | Subsets:
        schema = self._data.schema
        others = {name: schema.cardinality(name) for name in schema.variables if schema.cardinality(name) != 2}
        if others:
            raise ValueError(f"schema declares {others} states for these variables; parities are of variables with two")
        return checked_family(family, len(schema))


def _interaction_sensitivities(
    sizes: tuple[int, ...], adjacency: Adjacency, pairs: Pairs | None, with_count: bool
) -> list[tuple[float, float]]:
    units = InteractionUnits(sizes)
    together = (field_sensitivity(units, adjacency), pair_sensitivity(units, adjacency, pairs), (1.0, 1.0, 1.0))
    return [(l1, l2) for l1, l2, _ in together[: 2 + with_count]]


def _interaction_weights(p: int, pairs: Pairs | None, with_count: bool) -> tuple[float, ...]:
    # Weights are positive: a graph without edges leaves that of one pair unspent.
    n_pairs = math.comb(p, 2) if pairs is None else len(pairs)
    return (float(p), float(max(1, n_pairs)), 1.0)[: 2 + with_count]
