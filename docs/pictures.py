"""Pictures of docs/benchmarks.md, drawn from the committed results: ``make pictures`` writes docs/pictures.

Nothing is computed again: each function reads one file of benchmarks/results and draws what its tables say.
"""

from __future__ import annotations

import json
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


def rows(name: str) -> pd.DataFrame:
    """The measurements of a JSON-lines file, without its first line where that says how they were made."""
    with (RESULTS / f"{name}.jsonl").open() as lines:
        found = [json.loads(line) for line in lines]
    return pd.json_normalize([row for row in found if "command" not in row])


def table(name: str, heading: str) -> pd.DataFrame:
    """The table under a heading of a Markdown file, as text."""
    lines = (RESULTS / f"{name}.md").read_text().split(f"## {heading}", 1)[1].partition("\n## ")[0].splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    return pd.DataFrame(cells[2:], columns=cells[0])


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


def geometric(values: pd.Series) -> float:
    """Geometric mean."""
    return float(np.exp(np.log(values).mean()))


def synthetic() -> Figure:
    """Divergence from the truth on synthetic populations."""
    found = rows("full")
    found = found[found["n_records"] == 100_000]
    kinds = {"chain1": "first-order chain", "er": "Erdős–Rényi graph", "chain3": "third-order chain"}
    methods = {
        "map": "CollectiveMAP",
        "naive": "NaiveMLE",
        "em": "CollectiveEM",
        "mbi_l2_1000": "mbi",
        "non_private": "not private",
        "uniform": "uniform",
    }
    figure, axes = panels(list(kinds.values()))
    for ax, kind in zip(axes, kinds, strict=True):
        for method, name in methods.items():
            chosen = found[(found["kind"] == kind) & (found["method"] == method)]
            label = {"mbi": "mbi, L2, 1000 iterations", "uniform": "uniform model"}.get(name, name)
            line(ax, chosen.groupby("epsilon")["kl"].agg(geometric), label, LOOKS[name])
    ylabel = "Kullback-Leibler divergence"
    return finished(figure, axes, ylabel, 3, xscale="log", yscale="log", xlabel="epsilon")


def adult() -> Figure:
    """Held-out records of the census data, given a graph."""
    found = rows("adult")
    found["loss"] = found["nll"] - found["reference"]
    methods = {"map": "CollectiveMAP", "naive": "NaiveMLE", "em": "CollectiveEM", "mbi_l2_1000": "mbi"}
    figure, axes = panels(["Adult, 15 edges, pure epsilon"], (5.6, 3.6))
    for method, name in methods.items():
        loss = found[found["method"] == method].groupby("epsilon")["loss"].mean()
        line(axes[0], loss, "mbi, L2, 1000 iterations" if name == "mbi" else name, LOOKS[name])
    ylabel = "nats per held-out record\nabove the fit without noise"
    return finished(figure, axes, ylabel, 2, xscale="log", yscale="log", xlabel="epsilon")


def structures() -> Figure:
    """Graphs and parameters of the census data."""
    found = rows("structure-adult")
    methods = {
        "learn": ("learn, delta = 1e-9", (BLUE, "o", "-")),
        "learn_pure": ("learn, pure epsilon", (SKY, "v", "-")),
        "expert": ("hand-made graph, CollectiveMAP", (GREEN, "D", "-")),
        "chow_liu": ("PrivateChowLiu", (VERMILLION, "s", "-")),
        "exact_tree": ("Chow-Liu tree, not private", (GREY, "", "--")),
        "independent": ("independent, not private", (GREY, "", ":")),
    }
    figure, axes = panels(["Adult, 13 variables, 90 % of 48,842 records"], (5.6, 3.8))
    for method, (label, look) in methods.items():
        mean = found[found["method"] == method].groupby("epsilon", dropna=False)["mean_tv"].mean()
        if mean.index.isna().all():  # not private: the same at every epsilon
            mean = pd.Series(float(mean.iloc[0]), index=sorted(found["epsilon"].dropna().unique()))
        line(axes[0], mean, label, look)
    finished(figure, axes, "mean total variation of 78 pairs", 2, xscale="log", yscale="log", xlabel="epsilon")
    axes[0].set_yticks([0.01, 0.02, 0.04, 0.08], labels=["0.01", "0.02", "0.04", "0.08"])
    return figure


def mobility() -> Figure:
    """Markov chains from users' page visits."""
    found = rows("mobility")
    best = float(-found[found["method"] == "non-private, shares"]["per_visit"].mean())
    methods = {
        "CollectiveMAP": ('method="map"', LOOKS["CollectiveMAP"]),
        "NaiveMLE": ('method="naive"', LOOKS["NaiveMLE"]),
        "CollectiveEM": ('method="em"', LOOKS["CollectiveEM"]),
        "PrivateSGD": ('method="sgd", with a delta', LOOKS["PrivateSGD"]),
    }
    figure, axes = panels(["MSNBC, epsilon for all visits of a user"], (5.6, 3.6))
    for method, (label, look) in methods.items():
        chosen = found[(found["method"] == method) & found["rule"].isin(["shares", "-"])]
        chosen = chosen[(chosen["epsilon"] > 0) & np.isfinite(chosen["epsilon"])]
        line(axes[0], -chosen.groupby("epsilon")["per_visit"].mean() - best, label, look)
    ylabel = "nats per held-out visit\nabove the chain without privacy"
    return finished(figure, axes, ylabel, 2, xscale="log", yscale="log", xlabel="epsilon")


def fields() -> Figure:
    """Weights of Ising models."""
    found = rows("markov-random-fields")
    found = found[found["case.family"] == "ising"]
    methods = {
        "moments": ('method="auto": noisy moments', (BLUE, "o", "-"), 0.1),
        "gradient": ('method="gradient"', (PINK, "P", "-"), 0.1),
        "frank-wolfe": ('method="frank-wolfe"', (ORANGE, "^", "-"), 0.1),
        "paper's noise": ("Frank-Wolfe as published", (VERMILLION, "s", "-"), 0.1),
        "logistic regression": ("logistic regression, not private", (GREY, "", "--"), np.inf),
    }
    sizes = [10, 20, 50]
    figure, axes = panels([f"{p} variables, rho = 0.1" for p in sizes])
    for ax, p in zip(axes, sizes, strict=True):
        for method, (label, look, rho) in methods.items():
            chosen = found[(found["case.p"] == p) & (found["method"] == method) & (found["rho"] == rho)]
            line(ax, chosen.groupby("case.n")["error"].mean(), label, look)
    return finished(figure, axes, "largest error of a weight", 3, xscale="log", yscale="log", xlabel="records")


def recovery() -> Figure:
    """Records that exact graphs take."""
    found = rows("structure-recovery")
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
        of_kind = found[found["kind"] == kind]
        for start, (label, look) in methods.items():
            chosen = of_kind[of_kind["learner"].str.startswith(start) & (of_kind["guarantee"] == guarantee)]
            line(ax, chosen.set_index("p")["smallest"], label, look)
        plain = of_kind[of_kind["guarantee"] == "none"]
        line(ax, plain.set_index("p")["smallest"], "the blocks' learner, not private", LOOKS["not private"])
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
