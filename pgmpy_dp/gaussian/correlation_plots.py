"""Pictures of precision matrices."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from pgmpy_dp.gaussian.graphical_models import partial_correlations
from pgmpy_dp.plotting.style import styled_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_partial_correlations(
    precision: np.ndarray, names: Sequence[Hashable] | None = None, ax: Axes | None = None
) -> Axes:
    """Plot partial correlations of a Gaussian graphical model as a coloured matrix; pairs without an edge are white.

    Parameters
    ----------
    precision : ndarray of shape (d, d)
        Positive definite, such as ``PrivateGraphicalLasso.precision_``.
    names : sequence of hashable, optional
        Of the columns; shown for up to 40, more cannot be read. Default: their numbers.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    ValueError
        If `precision` is not positive definite, or `names` are not as many as its columns.

    Examples
    --------
    >>> plot_partial_correlations(np.array([[2.0, -1.0], [-1.0, 2.0]]), ["rain", "wet"])
    <Axes: ...>
    """
    shown = partial_correlations(precision)
    d = len(shown)
    labels = [str(name) for name in (range(d) if names is None else names)]
    if len(labels) != d:
        raise ValueError(f"names has {len(labels)} entries for {d} columns; pass one for each")
    np.fill_diagonal(shown, np.nan)
    ax = styled_axes(ax, (5.6, 4.6))
    ax.grid(False)
    largest = float(np.nanmax(np.abs(shown), initial=0.1))
    image = ax.imshow(shown, cmap="RdBu_r", vmin=-largest, vmax=largest)
    ax.figure.colorbar(image, ax=ax, label="partial correlation").outline.set_visible(False)
    if d <= 40:
        ax.set_xticks(range(d), labels, rotation=90, fontsize="small")
        ax.set_yticks(range(d), labels, fontsize="small")
    return ax
