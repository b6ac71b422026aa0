"""Pictures of docs/benchmarks.md, drawn from the committed results: ``make pictures`` writes docs/pictures.

Nothing is computed again: each function reads the tables of one page of benchmarks/results and draws what they say.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS.parent))

from pgmpy_dp.plotting.style import BLUE, COLOURS, GREEN, GREY, ORANGE, VERMILLION, styled_axes  # noqa: E402

RESULTS = DOCS.parent / "benchmarks" / "results"
PINK, SKY, BLACK = COLOURS[4:7]

# The same colour and marker for a method in all pictures; grey and dashed is what has no privacy or no records.
LOOKS = {
    "CollectiveMAP": (BLUE, "o", "-"),
    "NaiveMLE": (VERMILLION, "s", "-"),
    "CollectiveEM": (ORANGE, "^", "-"),
    "PrivateSGD": (PINK, "P", "-"),
    "mbi": (GREEN, "D", "-"),
    "not private": (GREY, "", "--"),
    "uniform": (GREY, "", ":"),
}


def table(name: str, heading: str = "") -> pd.DataFrame:
    """A table of a page of results, as text: the first under the heading that starts so, or the first of the page."""
    text = (RESULTS / f"{name}.md").read_text()
    if heading:
        text = re.split(rf"^#+ {re.escape(heading)}.*$", text, maxsplit=1, flags=re.MULTILINE)[1]
        text = re.split(r"^#", text, maxsplit=1, flags=re.MULTILINE)[0]
    lines = re.findall(r"(?:^\|.*\n)+", text, flags=re.MULTILINE)[0].splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return pd.DataFrame(cells[2:], columns=cells[0])


def value(cell: str) -> float:
    """The first number of a cell such as "**0.52** [0.49, 0.55]" or "1,024"; not a number where there is none."""
    found = re.match(r"-?[\d.]+(?:e[+-]\d+)?", cell.replace("*", "").replace(",", ""))
    return float(found.group()) if found and found.group() != "-" else np.nan


def by_epsilon(found: pd.DataFrame, method: str) -> pd.Series:
    """A row of a table with a column for each epsilon, "0.1" or "epsilon = 0.1"."""
    [row] = found[found.iloc[:, 0] == method].to_dict("records")
    cells = {name.removeprefix("epsilon = "): cell for name, cell in row.items()}
    return pd.Series({float(name): value(cell) for name, cell in cells.items() if re.fullmatch(r"[\d.]+", name)})


def panels(titles: list[str], size: tuple[float, float] = (3.4, 3.2)) -> tuple[Figure, list[Axes]]:
    """A row of axes that share their vertical one."""
    figure, axes = plt.subplots(
        1, len(titles), figsize=(size[0] * len(titles), size[1]), sharey=True, squeeze=False, layout="constrained"
    )
    for ax, title in zip(axes[0], titles, strict=True):
        styled_axes(ax).set_title(title)
    return figure, list(axes[0])


def line(ax: Axes, series: pd.Series, label: str, look: tuple[str, str, str]) -> None:
    """One method: its values against the index."""
    colour, marker, style = look
    series = series.dropna()
    if series.empty:
        return
    ax.plot(
        series.index, series, color=colour, marker=marker, linestyle=style, markersize=5, linewidth=1.4, label=label
    )


def finished(figure: Figure, axes: list[Axes], ylabel: str, columns: int = 4, **settings: str) -> Figure:
    """With labels, and one legend below all panels."""
    for ax in axes:
        ax.set(**settings)
        if ax.get_xscale() == "log":
            drawn = sorted({x for one in ax.get_lines() if one.get_marker() for x in one.get_xdata()})
            ax.set_xticks(drawn, labels=[f"{x:,.12g}" for x in drawn])
            ax.minorticks_off()
    axes[0].set_ylabel(ylabel)
    entries = {label: handle for ax in axes for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)}
    figure.legend(
        entries.values(), entries.keys(), loc="outside lower center", ncols=columns, fontsize=8.5, frameon=False
    )
    return figure


def synthetic() -> Figure:
    """Divergence from the truth on synthetic populations."""
    kinds = {"first-order chain": "first-order chain", "Erdos-Renyi p = .3": "Erdős–Rényi graph"}
    kinds |= {"third-order chain": "third-order chain"}
    methods = {
        "CollectiveMAP": "CollectiveMAP",
        "NaiveMLE (lambda*)": "NaiveMLE",
        "CollectiveEM": "CollectiveEM",
        "non-private MLE": "not private",
        "uniform model": "uniform",
    }
    labels = {"uniform": "uniform model"}
    figure, axes = panels(list(kinds.values()))
    for ax, kind in zip(axes, kinds, strict=True):
        found, variants = table("full", kind), table("full", "Each variant of mbi")
        found = found[found["N"] == "1e+05"]
        variants = variants[(variants["population"] == kind) & (variants["N"] == "1e+05")]
        for method, name in methods.items():
            line(ax, _against(found, "epsilon", method), labels.get(name, name), LOOKS[name])
        line(ax, _against(variants, "epsilon", "mbi L2, 1000 iterations"), "mbi, L2, 1000 iterations", LOOKS["mbi"])
    ylabel = "Kullback-Leibler divergence"
    return finished(figure, axes, ylabel, 3, xscale="log", yscale="log", xlabel="epsilon")


def _against(found: pd.DataFrame, by: str, column: str) -> pd.Series:
    """A column of a table of numbers against another."""
    return pd.Series([value(cell) for cell in found[column]], index=[value(cell) for cell in found[by]])


def adult() -> Figure:
    """Held-out records of the census data, given a graph."""
    methods = {
        "CollectiveMAP": "CollectiveMAP",
        "NaiveMLE (lambda*)": "NaiveMLE",
        "CollectiveEM as published (exact steps)": "CollectiveEM",
        "mbi L2, 1000 iterations": "mbi",
    }
    labels = {"mbi": "mbi, L2, 1000 iterations", "CollectiveEM": "CollectiveEM(published=True)"}
    figure, axes = panels(["Adult, 15 edges, pure epsilon"], (5.6, 3.6))
    for method, name in methods.items():
        loss = by_epsilon(table("adult"), method)
        line(axes[0], loss, labels.get(name, name), LOOKS[name])
    ylabel = "nats per held-out record\nabove the fit without noise"
    return finished(figure, axes, ylabel, 2, xscale="log", yscale="log", xlabel="epsilon")


def structures() -> Figure:
    """Graphs and parameters of the census data."""
    methods = {
        "learn, zCDP": ("learn, delta = 1e-9", (BLUE, "o", "-")),
        "learn, pure epsilon": ("learn, pure epsilon", (SKY, "v", "-")),
        "a hand-made graph of 15 edges, CollectiveMAP": ("hand-made graph, CollectiveMAP", (GREEN, "D", "-")),
        "PrivateChowLiu": ("PrivateChowLiu", (VERMILLION, "s", "-")),
        "not private: Chow-Liu tree": ("Chow-Liu tree, not private", (GREY, "", "--")),
        "not private: independent": ("independent, not private", (GREY, "", ":")),
    }
    figure, axes = panels(["Adult, 13 variables, 90 % of 48,842 records"], (5.6, 3.8))
    for method, (label, look) in methods.items():
        line(axes[0], by_epsilon(table("structure-adult"), method), label, look)
    finished(figure, axes, "mean total variation of 78 pairs", 2, xscale="log", yscale="log", xlabel="epsilon")
    axes[0].set_yticks([0.01, 0.02, 0.04, 0.08], labels=["0.01", "0.02", "0.04", "0.08"])
    return figure


def mobility() -> Figure:
    """Markov chains from users' page visits."""
    found = table("mobility", "Per visit: log p of all held-out sequences over their visits").drop(columns="guarantee")
    [best] = found.loc[found["epsilon"] == "non-private, shares", "0.003"]
    methods = {
        "CollectiveMAP": ('method="map"', LOOKS["CollectiveMAP"]),
        "NaiveMLE": ('method="naive"', LOOKS["NaiveMLE"]),
    }
    figure, axes = panels(["MSNBC, epsilon for all visits of a user"], (5.6, 3.6))
    for method, (label, look) in methods.items():
        line(axes[0], value(best) - by_epsilon(found, method), label, look)
    ylabel = "nats per held-out visit\nabove the chain without privacy"
    return finished(figure, axes, ylabel, 2, xscale="log", yscale="log", xlabel="epsilon")


def fields() -> Figure:
    """Weights of Ising models."""
    found = table("markov-random-fields", "Ising")
    methods = {
        'method="auto": noisy moments, l1, refit': ('method="auto": noisy moments', (BLUE, "o", "-")),
        'method="frank-wolfe"': ('method="frank-wolfe"', (ORANGE, "^", "-")),
        "Frank-Wolfe as published (Laplace noise, its T)": ("Frank-Wolfe as published", (VERMILLION, "s", "-")),
        "non-private l1 logistic regression (scikit-learn)": ("logistic regression, not private", (GREY, "", "--")),
    }
    sizes = [10, 20, 50]
    figure, axes = panels([f"{p} variables, rho = 0.1" for p in sizes])
    for ax, p in zip(axes, sizes, strict=True):
        chosen = found[(found["p"] == str(p)) & (found["rho"] == "0.1")]
        for method, (label, look) in methods.items():
            line(ax, _against(chosen, "n", method), label, look)
    return finished(figure, axes, "largest error of a weight", 3, xscale="log", yscale="log", xlabel="records")


def recovery() -> Figure:
    """Records that exact graphs take."""
    guarantee = "(1, 1e-6)"
    methods = {
        "StableStructure": ("StableStructure", (BLUE, "o", "-")),
        "EdgeVoting": ("EdgeVoting", (VERMILLION, "s", "-")),
        "PrivateIsing, moments": ("PrivateIsing, moments", (GREEN, "D", "-")),
        "PrivateChowLiu, selection": ("PrivateChowLiu", (ORANGE, "^", "-")),
    }
    kinds = {"tree": "trees", "regular": "3-regular graphs", "grid": "grids"}
    figure, axes = panels([f"{title}, {guarantee}" for title in kinds.values()])
    for ax, kind in zip(axes, kinds, strict=True):
        found = table("structure-recovery", f"{kind}, weights of {0.5 if kind == 'tree' else 0.4}")
        sizes = {int(name.removeprefix("p = ")): name for name in found if name.startswith("p = ")}
        # Learner and guarantee of a series, and what it is called and looks like.
        series = [((start, guarantee), shown) for start, shown in methods.items()]
        series.append((("", "none"), ("the blocks' learner, not private", LOOKS["not private"])))
        for (start, wanted), (label, look) in series:
            chosen = found[found["learner"].str.startswith(start) & (found["guarantee"] == wanted)]
            for row in chosen.to_dict("records"):
                line(ax, pd.Series({p: value(row[name]) for p, name in sizes.items()}), label, look)
    return finished(figure, axes, "records for 8 exact graphs of 10", 3, xscale="log", yscale="log", xlabel="variables")


def communities() -> Figure:
    """Communities of graphs whose edges are private."""
    weak = table("block-models", "Weak recovery: share of right labels")
    strength = pd.to_numeric(weak["gamma² d"])
    looks = {
        "NPM Gaussian": ("noisy power, Gaussian", (BLUE, "o", "-")),
        "NPM Laplace": ("noisy power, Laplace (pure)", (SKY, "v", "-")),
        "RR + vote": ("randomised response and a vote (pure)", (VERMILLION, "s", "-")),
        "RR": ("randomised response (pure)", (ORANGE, "^", "-")),
    }
    figure, axes = panels(["2,000 vertices of degree 60, epsilon = 1"], (5.6, 3.6))
    for column, (label, look) in looks.items():
        line(axes[0], pd.Series(pd.to_numeric(weak[column]).to_numpy(), index=strength), label, look)
    axes[0].axhline(0.5, color=GREY, linewidth=0.8, linestyle=":")
    return finished(figure, axes, "share of right labels", 2, xlabel="strength of the communities, gamma² d")


def gaussian() -> Figure:
    """Sparse inverse covariances under pure privacy."""
    found = table("gaussian", "Table 1: pure epsilon-DP")
    looks = {
        "**PrivateGraphicalLasso** (double Wishart)": ("PrivateGraphicalLasso", (BLUE, "o", "-")),
        "double Wishart, without refit": ("the same without refit", (SKY, "v", "-")),
        "Frobenius K-norm": ("K-norm noise", (GREEN, "D", "-")),
        "Laplace, tight": ("Laplace noise, tight", (VERMILLION, "s", "-")),
        "published Laplace, scale 2d": ("Laplace noise as published", (ORANGE, "^", "-")),
    }
    figure, axes = panels(["30 variables, 20,000 records, r = 1, pure epsilon"], (5.6, 3.8))
    for method, (label, look) in looks.items():
        chosen = found[found["method"] == method]
        error = [float(cell.partition(" / ")[0]) for cell in chosen["r = 1"]]
        line(axes[0], pd.Series(error, index=pd.to_numeric(chosen["epsilon"]).to_numpy()), label, look)
    return finished(figure, axes, "relative Frobenius error", 2, yscale="log", xlabel="epsilon")


PICTURES: dict[str, Callable[[], Figure]] = {
    draw.__name__: draw for draw in (synthetic, adult, structures, mobility, fields, recovery, communities, gaussian)
}


def main(folder: Path = DOCS / "pictures") -> None:
    """Draw all of them; the files depend on nothing but the results and the version of matplotlib."""
    folder.mkdir(exist_ok=True)
    with plt.rc_context({"svg.fonttype": "none", "svg.hashsalt": "pgmpy_dp", "font.family": "sans-serif"}):
        for name, draw in PICTURES.items():
            figure = draw()
            figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
            plt.close(figure)
            path = folder / f"{name}.svg"
            path.write_text(re.sub(r"[ \t]+$", "", path.read_text(), flags=re.MULTILINE))
            print(path.relative_to(DOCS.parent))


if __name__ == "__main__":
    main()
