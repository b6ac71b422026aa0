"""One look for all pictures, set on the axes alone: the user's matplotlib settings are neither read nor changed.

Colours are those of Okabe and Ito (2008), which people with any of the usual colour blindnesses tell apart, in an order
that begins with the ones that are dark enough for lines on white; markers and line styles say the same again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

from pgmpy_dp.checks import missing_package

BLUE, VERMILLION, GREEN, ORANGE = "#0072B2", "#D55E00", "#009E73", "#E69F00"
COLOURS = (BLUE, VERMILLION, GREEN, ORANGE, "#CC79A7", "#56B4E9", "#000000")
"""For the first seven of anything; then they begin again, with other markers."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
GREY, PALE = "#555555", "#D9D9D9"


def styled_axes(ax: Axes | None, size: tuple[float, float] = (6.4, 4.4)) -> Axes:
    """`ax`, or the axes of a new figure of `size` inches, with the look of all pictures.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    """
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise missing_package("matplotlib", "plots") from error
    if ax is None:
        ax = plt.subplots(figsize=size, layout="constrained")[1]
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(GREY)
    ax.tick_params(which="both", color=GREY, labelsize=9)
    ax.tick_params(which="minor", length=2)
    ax.grid(True, which="major", color=PALE, linewidth=0.6)
    ax.set_axisbelow(True)
    for text in (ax.title, ax.xaxis.label, ax.yaxis.label):
        text.set_fontsize(10)
    return ax


def bare_axes(ax: Axes | None, size: tuple[float, float] = (5.6, 5.2)) -> Axes:
    """The same as `styled_axes`, without axis lines, ticks and grid: for pictures whose coordinates mean nothing."""
    ax = styled_axes(ax, size)
    ax.grid(False)
    ax.set_axis_off()
    return ax


def legend(ax: Axes, **options: object) -> None:
    """Legend of what is labelled, small and without a box around it; none if nothing is labelled."""
    if "handles" in options or ax.get_legend_handles_labels()[0]:
        ax.legend(**({"fontsize": 8.5, "frameon": True, "edgecolor": "none", "framealpha": 0.85} | options))
