"""A picture of an attack: how far the releases on two neighbouring datasets lie apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pgmpy_dp.checks import missing_package
from pgmpy_dp.private.guarantee import ZCDP

if TYPE_CHECKING:
    from pgmpy_dp.auditing.attack import AuditReport

_BARS = 40


def plot_audit(report: AuditReport, ax: Any = None) -> Any:
    """The scores of the releases on two neighbouring datasets, with the event that was measured.

    Parameters
    ----------
    report : AuditReport
    ax : matplotlib.axes.Axes, optional
        Default: a new figure's.

    Returns
    -------
    matplotlib.axes.Axes
        Two histograms of as many releases each, over the same bars; the event is shaded. The title has the claim and
        the lower bound.

    Raises
    ------
    ImportError
        If matplotlib is not installed.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from pgmpy_dp.auditing import audit_catalogue
    >>> [report] = audit_catalogue(["distance_test"])
    >>> plot_audit(report).get_xlabel()
    'score: high where the first dataset is more likely'
    """
    if ax is None:
        try:
            from matplotlib import pyplot
        except ImportError as error:
            raise missing_package("matplotlib", "plots") from error
        ax = pyplot.subplots(figsize=(6.4, 4.0), layout="constrained")[1]
    both = np.concatenate(report.scores)
    # Rare scores far away would squeeze all others into one bar: they go to the last one.
    low, high = np.quantile(both, [0.002, 0.998])
    low, high = (low, high) if high > low else (low - 0.5, high + 0.5)
    edges = np.linspace(low, high, _BARS + 1)
    event = report.event
    for scores, colour, name in zip(report.scores, ("C0", "C1"), ("first dataset", "second dataset"), strict=True):
        ax.hist(np.clip(scores, low, high), edges, color=colour, alpha=0.55, label=name)
    threshold = float(np.clip(event.threshold, low, high))
    ax.axvspan(*((threshold, edges[-1]) if event.above else (edges[0], threshold)), color="0.6", alpha=0.25, lw=0)
    ax.axvline(threshold, color="0.2", linestyle="--", linewidth=1.0, label="event: this side, shaded")
    symbol = "ρ" if isinstance(report.guarantee, ZCDP) else "ε"
    verdict = "" if report.holds else ", BROKEN"
    name = f"{report.name}\n" if report.name else ""
    ax.set_title(
        f"{name}claim {report.guarantee}{verdict}: {symbol} ≥ {report.bound:.3g} "
        f"at {100 * report.confidence:.6g} % confidence",
        fontsize=10,
    )
    ax.set_xlabel("score: high where the first dataset is more likely")
    ax.set_ylabel(f"of {event.trials} releases each")
    ax.legend()
    return ax
