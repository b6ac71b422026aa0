"""Figures of the benchmark: divergence against N, one panel per epsilon."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from benchmarks.populations import KINDS

__all__ = ["draw_figures"]

# Okabe and Ito's palette, told apart by colour-blind readers; markers differ as well.
_SERIES = {
    "uniform": ("uniform model", "#000000", "", ":"),
    "random": ("random marginals", "#999999", "", ":"),
    "non_private": ("non-private MLE", "#000000", "", "--"),
    "naive": ("NaiveMLE", "#0072B2", "s", "-"),
    "em": ("CollectiveEM", "#E69F00", "^", "-"),
    "em_exact": ("CollectiveEM as published, exact steps", "#F0E442", "<", "--"),
    "em_published": ("CollectiveEM as published", "#F0E442", "v", "-"),
    "mbi_1000": ("mbi, 1000 iterations", "#56B4E9", "D", "-"),
    "mbi_best": ("mbi, best of four (oracle)", "#009E73", "P", "-"),
    "sgd": ("PrivateSGD (delta = 1/N)", "#CC79A7", "X", "-"),
    "map_gaussian": ("CollectiveMAP, Gaussian tables (delta = 1/N)", "#D55E00", "", "-."),
    "map": ("CollectiveMAP", "#D55E00", "o", "-"),
}


def draw_figures(wide: pd.DataFrame, folder: Path, stem: str) -> dict[str, str]:
    """Draw one figure per kind of population that has at least two values of N.

    Parameters
    ----------
    wide : DataFrame
        One row per draw, from `benchmarks.report.wide_table`.
    folder : Path
        Where the files go.
    stem : str
        Start of their names.

    Returns
    -------
    dict
        Kind to file name.
    """
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    names = {}
    for kind in (k for k in KINDS if k in set(wide["kind"])):
        of_kind = wide[wide["kind"] == kind]
        if of_kind["n_records"].nunique() < 2:
            continue
        epsilons = sorted(of_kind["epsilon"].unique())
        figure, axes = plt.subplots(
            1, len(epsilons), figsize=(max(3.1 * len(epsilons), 9.0), 3.4), sharey=True, squeeze=False
        )
        for axis, epsilon in zip(axes[0], epsilons, strict=True):
            _panel(axis, of_kind[of_kind["epsilon"] == epsilon])
            axis.set_title(f"epsilon = {epsilon:g}", fontsize=10)
            axis.set_xlabel("records N")
        axes[0][0].set_ylabel("KL(true || learned), nats")
        handles, labels = axes[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="lower center", ncol=4, fontsize=8, frameon=False)
        figure.suptitle(KINDS[kind], fontsize=11)
        figure.tight_layout(rect=(0, 0.13, 1, 1))
        names[kind] = f"{stem}-{kind}.png"
        figure.savefig(folder / names[kind], dpi=130)
        plt.close(figure)
    return names


def _panel(axis, draws: pd.DataFrame) -> None:
    for column, (label, colour, marker, line) in _SERIES.items():
        if column not in draws:
            continue
        by_n = draws.groupby("n_records")[column]
        middle, low, high = by_n.median(), by_n.min(), by_n.max()
        axis.errorbar(
            middle.index,
            middle,
            yerr=[middle - low, high - middle],
            label=label,
            color=colour,
            marker=marker or None,
            markersize=5,
            markeredgecolor="black" if marker else None,
            markeredgewidth=0.4,
            linestyle=line,
            linewidth=2.2 if column == "map" else 1.2,
            elinewidth=0.8,
            zorder=3 if column == "map" else 2,
        )
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlim(draws["n_records"].min() / 2, draws["n_records"].max() * 2)
    axis.grid(alpha=0.3, which="major")
