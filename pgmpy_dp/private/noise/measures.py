"""The epsilon or the rho that noise may cost: a class each. Whoever makes noise calls :func:`noise_budget` alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from pgmpy_dp.checks import exact_fraction
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.guarantee import ZCDP, PureDP
from pgmpy_dp.private.noise import additive, samplers

Norms = Sequence[tuple[float, float]]
Weights = Sequence[float | Fraction] | None


@dataclass(frozen=True)
class OfEpsilon:
    """Laplace noise by sensitivities in l1, and exponential noise for selections.

    What is pure costs its epsilon.
    """

    amount: Fraction

    distribution: ClassVar[str] = "discrete_laplace"
    selection: ClassVar[str] = "exponential_noisy_max"

    def scales(self, norms: Norms, weights: Weights = None) -> tuple[float, ...]:
        """Return scales for statistics that are released together, by what each moves in l1 and in l2."""
        return additive.laplace_scales([l1 for l1, _ in norms], self.amount, weights)

    def selection_scale(self, moved: Fraction) -> float:
        """Return the scale of one selection among scores of which none moves further (``noise/selection.py``)."""
        return additive.round_up(2 * moved / self.amount)

    def argmax(self, rows: Sequence[np.ndarray], scale: float, rng: np.random.Generator | None) -> np.ndarray:
        """The position of the noisily largest score of each row."""
        return samplers.exponential_argmax(rows, scale, rng=rng)

    def pure(self, per_rho: int) -> Fraction:
        """The epsilon that something pure may have."""
        return self.amount

    def budget(self, eta: Fraction) -> Budget:
        """The same, with eta as its delta, as a budget, rounded down."""
        return Budget(epsilon=additive.round_down(self.amount), delta=additive.round_down(eta))


@dataclass(frozen=True)
class OfRho:
    """Gaussian noise by sensitivities in l2, and Gumbel noise for selections.

    What is epsilon-DP costs epsilon**2/2 (Bun and Steinke 2016), or less where that is known.
    """

    amount: Fraction

    distribution: ClassVar[str] = "discrete_gaussian"
    selection: ClassVar[str] = "gumbel_noisy_max"

    def scales(self, norms: Norms, weights: Weights = None) -> tuple[float, ...]:
        """Return scales as :meth:`OfEpsilon.scales` does."""
        return additive.gaussian_scales([l2 for _, l2 in norms], self.amount, weights)

    def selection_scale(self, moved: Fraction) -> float:
        """Return the scale that :meth:`OfEpsilon.selection_scale` says."""
        return additive.root_up(moved**2 / (2 * self.amount))

    def argmax(self, rows: Sequence[np.ndarray], scale: float, rng: np.random.Generator | None) -> np.ndarray:
        """Return positions as :meth:`OfEpsilon.argmax` does."""
        return samplers.gumbel_argmax(rows, scale, rng=rng)

    def pure(self, per_rho: int) -> Fraction:
        """The epsilon that something pure may have: ``sqrt(per_rho rho)``, rounded down."""
        return Fraction(additive.root_down(per_rho * self.amount))

    def budget(self, eta: Fraction) -> Budget:
        """The same as a budget, rounded down; ValueError for an eta."""
        if eta:
            raise ValueError(f"eta={float(eta)!r} is for a curator of epsilon; with rho Gaussian noise needs no delta")
        return Budget(rho=additive.round_down(self.amount))


def noise_budget(cost: PureDP | ZCDP, share: Fraction | float = 1) -> OfEpsilon | OfRho:
    """Return the epsilon, or the rho, that noise of a share of a cost may cost.

    Examples
    --------
    >>> noise_budget(ZCDP(0.5), Fraction(1, 2)).scales([(2.0, 1.0)]), noise_budget(PureDP(0.5)).scales([(2.0, 1.0)])
    ((1.4142135623730951,), (4.0,))
    """
    part = exact_fraction(share)
    return (OfRho if isinstance(cost, ZCDP) else OfEpsilon)(part * cost.amount)


def amount_of(
    measure: type[OfEpsilon] | type[OfRho], cost: PureDP | ZCDP, share: Fraction | float, refusal: str
) -> Fraction:
    """The epsilon, or the rho, of a share, for noise of one kind; ValueError, which says what to do, for the other."""
    budget = noise_budget(cost, share)
    if not isinstance(budget, measure):
        raise ValueError(refusal)
    return budget.amount


def pure_epsilon(cost: PureDP | ZCDP, share: Fraction, per_rho: int = 2) -> Fraction:
    """The epsilon with which a pure operator costs a share: of rho ``sqrt(per_rho share rho)``, rounded down.

    epsilon-DP is epsilon**2/2-zCDP (Bun and Steinke 2016), hence 2; operators with a better conversion have their own.

    Examples
    --------
    >>> pure_epsilon(ZCDP(0.5), Fraction(1)), pure_epsilon(PureDP(1.0), Fraction(1, 2))
    (Fraction(1, 1), Fraction(1, 2))
    """
    return noise_budget(cost, share).pure(per_rho)
