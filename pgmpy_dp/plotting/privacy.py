"""Plots of privacy: a ledger's charges against its budget, and guarantees as curves delta(epsilon)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from pgmpy_dp.plotting.style import BLUE, COLOURS, PALE, VERMILLION, legend, styled_axes
from pgmpy_dp.private.accounting import zcdp_to_approx
from pgmpy_dp.private.adjacency import agreement
from pgmpy_dp.private.guarantee import ApproxDP, Guarantee, PureDP, privacy_profile
from pgmpy_dp.private.ledger import Ledger

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LINES = ("-", "--", "-.", ":")


def plot_ledger(ledger: Ledger, ax: Axes | None = None) -> Axes:
    """Plot the charges of a ledger against its budget: oldest at the top, each begins where the one before ended.

    Parameters
    ----------
    ledger : Ledger
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes
        One numbered bar for each charge, and a pale one for what is left. The axis is rho for a budget of rho, else
        epsilon. For an (epsilon, delta) budget a bar ends at the epsilon of ``ledger.spent`` as it was after that
        charge: zCDP costs are converted together, so the first are long and the later ones short, and the last end is
        the sum of all costs. The guarantee is the budget's, the black line, wherever the bars end.

    Raises
    ------
    ImportError
        If matplotlib is not installed.

    Examples
    --------
    >>> from pgmpy_dp import Budget, Ledger
    >>> ledger = Ledger(Budget(epsilon=1.0))
    >>> _ = ledger.charge(PureDP(0.4), what="ages", columns=("age",), mechanism="laplace", adjacency="add_remove")
    >>> plot_ledger(ledger)
    <Axes: ...>
    """
    budget, entries = ledger.budget, ledger.entries
    limit = budget.rho if budget.rho is not None else budget.epsilon
    assert limit is not None
    ends = _running_totals(ledger)
    starts = [0.0, *ends][: len(ends)]
    ax = styled_axes(ax, (7.2, 1.5 + 0.34 * max(2, len(entries) + 1)))
    bars = ax.barh(range(len(entries)), np.subtract(ends, starts), left=starts, height=0.62, color=BLUE, zorder=2)
    for bar, entry in zip(bars, entries, strict=True):
        if entry.reproducible:
            bar.set(facecolor=VERMILLION, edgecolor="white", hatch="///")
    spent = ends[-1] if ends else 0.0
    ax.barh(len(entries), max(limit - spent, 0.0), left=spent, height=0.62, color=PALE, zorder=2)
    for row, (entry, start, end) in enumerate(zip(entries, starts, ends, strict=True)):
        # On the side with more room, so that no text leaves the picture.
        right = limit - end > start
        ax.annotate(str(entry.cost), (end if right else start, row), (4 if right else -4, 0), va="center", fontsize=8,
                    textcoords="offset points", ha="left" if right else "right")  # fmt: skip
    ax.axvline(limit, color="black", linewidth=1.2, zorder=3)
    names = [f"{number}  {entry.what}" for number, entry in enumerate(entries, 1)]
    step = 1 + len(entries) // 40  # more names than that cannot be read
    shown = [*range(0, len(entries), step), len(entries)]
    ax.set_yticks(shown, [[*names, "left"][row] for row in shown], fontsize=8.5)
    ax.set(xlim=(0.0, 1.02 * max(limit, spent)), ylim=(len(entries) + 0.6, -0.6))
    ax.set_xlabel("rho (zCDP)" if budget.rho is not None else "epsilon")
    warning = agreement(ledger.public_tables) + ("" if ledger.private else "; NOT PRIVATE: seeded noise")
    ax.set_title(f"costs add up to {ledger.spent}; guarantee {budget.guarantee}{warning}", loc="left", fontsize=10)
    ax.grid(False, axis="y")
    return ax


def plot_privacy_profile(
    guarantees: Guarantee | Ledger | Sequence[Guarantee | Ledger] | Mapping[str, Guarantee | Ledger],
    ax: Axes | None = None,
    epsilons: np.ndarray | None = None,
) -> Axes:
    """Plot the delta for which each guarantee is (epsilon, delta)-DP, against epsilon.

    Parameters
    ----------
    guarantees : PureDP, ZCDP, ApproxDP or Ledger, or a sequence or mapping of label to those
        Of a `Ledger`, ``ledger.budget.guarantee``, which all of its charges together have, also if their costs were
        chosen by earlier results. ``ledger.spent`` is a sum of costs and no guarantee.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.
    epsilons : ndarray of float of shape (m,), optional
        Non-negative. Default: 200 values from 0 to twice the largest epsilon among the guarantees; of a zCDP one, the
        epsilon it has at delta 1e-6.

    Returns
    -------
    matplotlib.axes.Axes
        One line for each guarantee. Delta is on a logarithmic axis down to 1e-12; where it is 0, a line has left it.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    TypeError, ValueError
        If something else is passed, or negative epsilons.

    Notes
    -----
    Formulas and sources: `pgmpy_dp.private.guarantee.privacy_profile`. Pure and approximate guarantees have the
    profile of the worst mechanism that satisfies them (Kairouz, Oh and Viswanath 2015), which is what is left of them
    when nothing else about the mechanism is known; the conversion of zCDP is the tightest known (Canonne, Kamath and
    Steinke 2020).

    Examples
    --------
    >>> plot_privacy_profile([PureDP(1.0), ApproxDP(0.5, 1e-6)])
    <Axes: ...>
    """
    if isinstance(guarantees, Guarantee | Ledger):
        guarantees = [guarantees]
    labelled = guarantees.items() if isinstance(guarantees, Mapping) else ((None, item) for item in guarantees)
    curves = [(label, *_guarantee(item)) for label, item in labelled]
    if epsilons is None:
        ends = [
            guarantee.epsilon if isinstance(guarantee, PureDP | ApproxDP) else zcdp_to_approx(guarantee.rho, 1e-6)
            for *_, guarantee in curves
        ]
        epsilons = np.linspace(0.0, 2.0 * max([*ends, 1e-3]), 200)
    epsilons = np.asarray(epsilons, dtype=float)
    if (epsilons < 0).any() or not np.isfinite(epsilons).all():
        raise ValueError("epsilons has negative or infinite entries; pass non-negative numbers")
    ax = styled_axes(ax)
    for k, (label, name, guarantee) in enumerate(curves):
        deltas = np.array([privacy_profile(guarantee, float(epsilon)) for epsilon in epsilons])
        ax.plot(epsilons, np.maximum(deltas, 1e-300), color=COLOURS[k % len(COLOURS)],
                linestyle=_LINES[k % len(_LINES)], linewidth=1.8, label=label or name)  # fmt: skip
    ax.set(yscale="log", ylim=(1e-12, 2.0), xlabel="epsilon", ylabel="delta")
    legend(ax)
    return ax


def _running_totals(ledger: Ledger) -> list[float]:
    """Epsilon or rho of the first charge, of the first two, and so on: from a second ledger, charged again."""
    again = Ledger(ledger.budget, adjacency=ledger.adjacency, conversion_delta=ledger.conversion_delta)
    totals = []
    for entry in ledger.entries:
        again.charge(entry.cost, what=entry.what, columns=entry.columns, mechanism=entry.mechanism,
                     adjacency=str(entry.adjacency), reproducible=entry.reproducible, unit=entry.unit)  # fmt: skip
        spent = again.spent
        totals.append(spent.epsilon if isinstance(spent, PureDP | ApproxDP) else spent.rho)
    return totals


def _guarantee(item: object) -> tuple[str, Guarantee]:
    if isinstance(item, Ledger):
        guarantee = item.budget.guarantee
        return f"ledger: {guarantee}{agreement(item.public_tables)}", guarantee
    if not isinstance(item, Guarantee):
        raise TypeError(f"guarantees has a {type(item).__name__}; pass a guarantee or a Ledger")
    return str(item), item
