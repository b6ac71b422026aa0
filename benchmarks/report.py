"""From the rows of a benchmark run to its Markdown tables."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.figures import draw_figures
from benchmarks.methods import LABELS, MBI_ALL, MBI_LBFGS, MBI_MD, MBI_MD_1000
from benchmarks.populations import KINDS, MAIN_KINDS

__all__ = ["DERIVED", "geometric_mean", "markdown_table", "read_rows", "wide_table", "write_report"]

DERIVED = {
    "mbi_1000": "mbi, 1000 iterations (best of L1, L2)",
    "mbi_best": "mbi, best of four per draw (oracle)",
    "mbi_every": "mbi, best of all eight per draw (oracle)",
}
"""Columns made from several methods: the smallest divergence on each draw."""

_POINT = ["kind", "n_records", "epsilon"]
_DRAW = [*_POINT, "population", "draw"]
_RIVALS = {
    "mbi_best": "best mbi (per-draw oracle of L1/L2 x 100/1000)",
    "mbi_every": "best mbi of eight (L-BFGS and unit-weight L1 added), where L-BFGS was run",
    "mbi_1000": "mbi at 1000 iterations (better of L1, L2)",
    "naive": "NaiveMLE (lambda*)",
    "naive_oracle": "NaiveMLE with oracle lambda",
    "em": "CollectiveEM",
    "em_exact": "CollectiveEM as published (exact steps)",
    "em_best_stop": "the same at its unobservable best stop",
    "em_published": "CollectiveEM as published (NLBP)",
    "sgd": "PrivateSGD (delta = 1/N)",
    "uniform": "uniform model",
}
_KL_COLUMNS = (
    "uniform", "random", "non_private", "naive_1e-3", "naive", "naive_oracle", "em_published", "em_exact",
    "em_best_stop", "em", "map", "naive_gaussian", "map_gaussian", "sgd", "mbi_1000", "mbi_best", "mbi_every",
)  # fmt: skip


def read_rows(path: Path) -> tuple[dict, pd.DataFrame]:
    """The header of a run and its fits, one row each."""
    header, *rows = (json.loads(line) for line in path.read_text().splitlines())
    return header, pd.DataFrame(rows)


def wide_table(rows: pd.DataFrame, value: str = "kl") -> pd.DataFrame:
    """One row per draw and one column per method, with the `DERIVED` columns added to divergences."""
    wide = rows.pivot_table(index=_DRAW, columns="method", values=value, aggfunc="last", sort=False, dropna=False)
    wide = wide.loc[wide.notna().any(axis=1)].reset_index()
    if value == "kl":
        for name, members in (("mbi_1000", MBI_MD_1000), ("mbi_best", MBI_MD), ("mbi_every", MBI_ALL)):
            present = [m for m in members if m in wide]
            if present and (name != "mbi_every" or set(MBI_LBFGS) <= set(present)):
                wide[name] = wide[present].min(axis=1)
                if name == "mbi_every":  # only where every one of them was run
                    wide[name] = wide[name].where(wide[present].notna().all(axis=1))
    wide["order"] = wide["kind"].map(list(KINDS).index)
    return wide.sort_values(["order", "n_records", "epsilon", "population", "draw"]).drop(columns="order")


def geometric_mean(values: pd.Series | Sequence[float]) -> float:
    """exp of the mean logarithm, over what is not missing."""
    values = np.asarray(values, dtype=float)
    values = values[~np.isnan(values)]
    return float(np.exp(np.mean(np.log(values)))) if len(values) else float("nan")


def write_report(rows_path: Path, path: Path) -> Path:
    """Write the Markdown report of a run, and its figures beside the rows.

    Parameters
    ----------
    rows_path : Path
        JSON lines of the run.
    path : Path
        The Markdown file to write.
    """
    header, rows = read_rows(rows_path)
    wide = wide_table(rows)
    per_point = wide.groupby(_POINT).size()
    figures = draw_figures(wide, rows_path.parent, path.stem)
    parts = [
        f"# Collective models on synthetic populations ({path.stem})",
        f"Made by `{header['command']}`",
        f"on {header['machine']}; one thread on one core. Seed {header['run']['seed']}, "
        f"K = {header['run']['n_states']} states, 10 nodes, {len(per_point)} settings, "
        f"{per_point.min()} to {per_point.max()} draws per setting "
        f"({wide['population'].nunique()} populations x {wide['draw'].nunique()} noise draws). "
        f"Each draw goes through all methods: same noisy tables, public N.{_run_less(wide)}",
        "Kullback-Leibler divergences are exact, from the true model to the fitted one, in nats. "
        "`mbi` is private-pgm's mirror descent in float64. A method called oracle chose with the truth in hand.",
        f"## Against the targets\n\n{_scope(len(per_point))}" + _targets(wide, rows),
        "## Ratios\n\nCollectiveMAP's divergence over another method's: geometric mean over draws, then over "
        "settings. Below 1 CollectiveMAP is better.\n\n" + _ratios(wide),
        *(["## CollectiveEM against NaiveMLE\n\n" + _em_over_naive(wide)] if {"em", "naive"} <= set(wide) else []),
        "## In which order\n\n" + _order(wide),
        *(["## Where CollectiveMAP is weakest against the best mbi\n\n" + _worst(wide)] if "mbi_best" in wide else []),
        "## Time in this run\n\n" + _times(rows),
        "## Divergence per setting\n\nGeometric mean over draws; in brackets the smallest and the largest."
        + _apart(wide)
        + "\n\n"
        + "\n\n".join(_divergences(wide, kind) for kind in KINDS if kind in set(wide["kind"])),
        *(["## Each variant of mbi\n\nGeometric mean over draws.\n\n" + _variants(wide)] if "mbi_best" in wide else []),
        "## Figures\n\nThe command draws divergence against N as in the paper's figure 2; bars span the draws: "
        + ", ".join(f"`{rows_path.parent / name}`" for name in figures.values())
        + ".",
    ]
    path.write_text("\n\n".join(parts) + "\n")
    return path


def markdown_table(head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """A Markdown table from strings."""
    lines = ["| " + " | ".join(cells) + " |" for cells in (head, ["---"] * len(head), *body)]
    return "\n".join(lines)


def _setting_ratios(wide: pd.DataFrame, rival: str, method: str = "map") -> pd.DataFrame:
    """Per setting: geometric mean, smallest and largest of method / rival over its draws."""
    if rival not in wide or method not in wide:
        return pd.DataFrame(columns=["mean", "low", "high"])
    ratio = (wide[method] / wide[rival]).rename("ratio")
    # A draw on which a rival diverged to infinity has no finite ratio; it is left out, to the rival's favour.
    frame = pd.concat([wide[_POINT], ratio], axis=1).replace([np.inf, 0.0], np.nan).dropna()
    return frame.groupby(_POINT, sort=False)["ratio"].agg([("mean", geometric_mean), ("low", "min"), ("high", "max")])


def _ratios(wide: pd.DataFrame) -> str:
    kinds = [kind for kind in KINDS if kind in set(wide["kind"])]
    head = ["against", *kinds, "three main graphs", "all", "by population", "settings above 1 / 1.03 / 1.10", "worst"]
    body = []
    for rival, label in _RIVALS.items():
        ratios = _setting_ratios(wide, rival)
        if ratios.empty:
            continue
        kind_of = ratios.index.get_level_values("kind")
        means = [geometric_mean(ratios["mean"][kind_of == kind]) for kind in kinds]
        main = geometric_mean(ratios["mean"][kind_of.isin(MAIN_KINDS)])
        by_population = [
            geometric_mean(_setting_ratios(draws, rival)["mean"]) for _, draws in wide.groupby("population")
        ]
        by_population = [value for value in by_population if not np.isnan(value)]
        above = " / ".join(str(int((ratios["mean"] > level).sum())) for level in (1.0, 1.03, 1.10))
        body.append(
            [label, *("-" if np.isnan(m) else f"{m:.3f}" for m in means), f"{main:.3f}",
             f"**{geometric_mean(ratios['mean']):.3f}**",
             f"{min(by_population):.3f} to {max(by_population):.3f}",
             f"{above} of {len(ratios)}", f"{ratios['mean'].max():.3f}"]
        )  # fmt: skip
    return markdown_table(head, body)


def _em_over_naive(wide: pd.DataFrame, n: int = 5) -> str:
    """The worst settings of EM, then how it, the paper's and CollectiveMAP compare with NaiveMLE in all."""
    worst = _setting_ratios(wide, "naive", "em").sort_values("mean", ascending=False).head(n)
    body = [
        [
            KINDS[kind],
            f"{n_records:.0e}",
            f"{epsilon:g}",
            f"{row['mean']:.3f}",
            f"{row['low']:.3f} to {row['high']:.3f}",
        ]
        for (kind, n_records, epsilon), row in worst.iterrows()
    ]
    parts = ["Divergence over NaiveMLE's (lambda*). The settings where CollectiveEM is worst:"]
    parts.append(markdown_table(["population", "N", "epsilon", "ratio", "over draws"], body))
    body = []
    for method in (m for m in ("em", "em_exact", "em_published", "map") if m in wide):
        ratios = _setting_ratios(wide, "naive", method)["mean"]
        draws = (wide[method] / wide["naive"]).dropna()
        wins = [f"{(found < 1).sum()} of {len(found)}" for found in (ratios, draws)]
        body.append(
            [LABELS[method], f"{geometric_mean(ratios):.3f}", *wins, f"{ratios.max():.3f}", f"{draws.max():.3f}"]
        )
    head = ["over NaiveMLE", "geometric mean", "settings below 1", "draws below 1", "worst setting", "worst draw"]
    parts.append(markdown_table(head, body))
    naive = [m for m in ("naive_1e-6", "naive_1_n", "naive_1e-3", "naive") if m in wide]
    papers = [geometric_mean(_setting_ratios(wide, penalty, "em_exact")["mean"]) for penalty in naive]
    parts.append("What the paper's EM (exact steps) is worth beside NaiveMLE depends on the latter's penalty:")
    parts.append(markdown_table(["over", *(LABELS[m] for m in naive)], [["", *(f"{ratio:.3f}" for ratio in papers)]]))
    return "\n\n".join(parts)


def _order(wide: pd.DataFrame) -> str:
    """On how many draws the methods stand as in the paper: CollectiveMAP, CollectiveEM, NaiveMLE, PrivateSGD."""
    orders = (("map", "em", "naive", "em_exact", "naive_1e-3", "sgd"), ("map_gaussian", "naive_gaussian", "sgd"))
    pairs = [pair for order in orders for pair in itertools.combinations([m for m in order if m in wide], 2)]
    body, epsilons = [], sorted(wide["epsilon"].unique())
    for better, worse in dict.fromkeys(pairs):
        both = wide[wide[better].notna() & wide[worse].notna()]
        below = (both[better] < both[worse]).groupby(both["epsilon"]).agg(["sum", "count"])
        cells = [f"{below['sum'].get(e, 0)} of {below['count'].get(e, 0)}" for e in epsilons]
        body.append([f"{LABELS[better]} below {LABELS[worse]}", *cells])
    note = (
        "PrivateSGD is (epsilon, 1/N)-DP. The tables of CollectiveMAP, CollectiveEM and NaiveMLE are epsilon-DP unless "
        "named Gaussian: with Gaussian noise they get the same (epsilon, 1/N), and only those rows compare fairly."
        "\n\n"
        if "sgd" in wide
        else ""
    )
    return note + markdown_table(["draws with a smaller divergence", *(f"epsilon = {e:g}" for e in epsilons)], body)


def _targets(wide: pd.DataFrame, rows: pd.DataFrame) -> str:
    best, thousand = _setting_ratios(wide, "mbi_best"), _setting_ratios(wide, "mbi_1000")
    uniform = _setting_ratios(wide, "uniform")
    body = []

    def check(what: str, limit: float, value: float) -> None:
        verdict = "not measured" if np.isnan(value) else "met" if value <= limit else "**not met**"
        body.append([what, f"{limit:g}", f"{value:.3f}", verdict])

    check("geometric mean over best mbi, per-draw oracle of four", 0.75, geometric_mean(best["mean"]))
    check("geometric mean over mbi at 1000 iterations", 0.65, geometric_mean(thousand["mean"]))
    check("worst setting over best mbi", 1.10, best["mean"].max())
    check("... the goal", 1.03, best["mean"].max())
    check("worst setting over the uniform model", 1.02, uniform["mean"].max())
    for kind in (k for k in KINDS if k in set(wide["kind"])):
        for rival in ("naive", "em_exact"):
            of_kind = _setting_ratios(wide[wide["kind"] == kind], rival)["mean"]
            check(f"geometric mean over {LABELS[rival]}: {KINDS[kind]}", 1.0, geometric_mean(of_kind))
    seconds = _warm_seconds(rows)
    for rival, limit, what in (("naive", 2.5, "time over NaiveMLE"), ("mbi_l2_1000", 1.0, "time over mbi L2, 1000")):
        if {rival, "map"} <= set(seconds):
            ratio = (seconds["map"] / seconds[rival]).groupby([seconds[c] for c in _POINT]).median()
            check(f"{what}, median setting", limit, ratio.median())
            check(f"{what}, worst setting ({(ratio > limit).sum()} of {len(ratio)} above)", limit, ratio.max())
    return markdown_table(["target", "at most", "measured", ""], body)


def _scope(n_settings: int) -> str:
    return (
        "" if n_settings >= 90 else "They are set for the 90 settings of the full mode; this is a smaller sample.\n\n"
    )


def _run_less(wide: pd.DataFrame) -> str:
    """Names the methods that were run on fewer draws than CollectiveMAP, and on how many."""
    present = [m for m in LABELS if m in wide and "map" in wide]
    fewer = [m for m in present if wide[m].count() < wide["map"].count()]
    named = [f"{LABELS[m]} ({wide[m].count()} of {wide['map'].count()})" for m in fewer]
    return f" On fewer draws only: {', '.join(named)}." if named else ""


def _apart(wide: pd.DataFrame) -> str:
    """What the columns of methods with fewer draws are not to be compared by."""
    if not _run_less(wide):
        return ""
    return " Columns of methods with fewer draws are of these alone: the ratios and counts above compare draw by draw."


def _worst(wide: pd.DataFrame, n: int = 12) -> str:
    ratios = _setting_ratios(wide, "mbi_best").sort_values("mean", ascending=False).head(n)
    body = []
    for (kind, n_records, epsilon), row in ratios.iterrows():
        draws = wide[(wide["kind"] == kind) & (wide["n_records"] == n_records) & (wide["epsilon"] == epsilon)]
        values = [f"{geometric_mean(draws[m]):.4g}" for m in ("map", "mbi_best", "naive", "uniform") if m in draws]
        body.append([KINDS[kind], f"{n_records:.0e}", f"{epsilon:g}", f"{row['mean']:.3f}",
                     f"{row['low']:.3f} to {row['high']:.3f}", *values])  # fmt: skip
    head = ["population", "N", "epsilon", "ratio", "over draws", "CollectiveMAP", "best mbi", "NaiveMLE", "uniform"]
    return markdown_table(head, body)


def _divergences(wide: pd.DataFrame, kind: str) -> str:
    of_kind = wide[wide["kind"] == kind]
    columns = [c for c in _KL_COLUMNS if c in of_kind and of_kind[c].notna().any()]
    body = []
    for (n_records, epsilon), draws in of_kind.groupby(["n_records", "epsilon"], sort=False):
        cells = []
        for column in columns:
            values = draws[column].dropna()
            mean = f"{geometric_mean(values):.3g}" if len(values) else "-"
            spread = f" [{values.min():.3g}, {values.max():.3g}]" if len(values) > 1 else ""
            cells.append(f"**{mean}**{spread}" if column == "map" else mean + spread)
        body.append([f"{n_records:.0e}", f"{epsilon:g}", *cells])
    labels = {**LABELS, **DERIVED}
    return f"### {KINDS[kind]}\n\n" + markdown_table(["N", "epsilon", *(labels[c] for c in columns)], body)


def _variants(wide: pd.DataFrame) -> str:
    columns = [c for c in ("map", *MBI_ALL) if c in wide]
    body = []
    for (kind, n_records, epsilon), draws in wide.groupby(_POINT, sort=False):
        cells = [f"{geometric_mean(draws[c]):.3g}" if draws[c].notna().any() else "-" for c in columns]
        body.append([KINDS[kind], f"{n_records:.0e}", f"{epsilon:g}", *cells])
    return markdown_table(["population", "N", "epsilon", *(LABELS[c] for c in columns)], body)


def _warm_seconds(rows: pd.DataFrame) -> pd.DataFrame:
    """Seconds per draw and method, without the fits that had to compile."""
    return wide_table(rows[~rows["first_call"].astype(bool)], "seconds")


def _times(rows: pd.DataFrame) -> str:
    seconds = _warm_seconds(rows)
    body = []
    for method in (m for m in LABELS if m in seconds and m != "uniform"):
        medians = [seconds[seconds["kind"] == kind][method].median() for kind in KINDS if kind in set(rows["kind"])]
        compiled = rows[(rows["method"] == method) & rows["first_call"].astype(bool)]["seconds"]
        first = f"{compiled.median():.2f}" if len(compiled) else "-"
        body.append([LABELS[method], *("-" if np.isnan(m) else f"{m:.3g}" for m in medians), first])
    head = [
        "median seconds a fit",
        *(KINDS[k] for k in KINDS if k in set(rows["kind"])),
        "first call, with compilation",
    ]
    note = (
        "Fits that had to compile are in the last column alone. The oracle rows count all the fits they chose from. "
        "How CollectiveMAP's time compares on one setting after another is under the targets above; "
        "see timing.md for repeated, interleaved runs and memory.\n\n"
    )
    return note + markdown_table(head, body) + _time_ratios(seconds)


def _time_ratios(seconds: pd.DataFrame) -> str:
    """CollectiveMAP's time over NaiveMLE's by N and epsilon."""
    if not {"map", "naive"} <= set(seconds):
        return ""
    ratio = (seconds["map"] / seconds["naive"]).groupby([seconds["n_records"], seconds["epsilon"]]).median().unstack()
    body = [[f"{n:.0e}", *("-" if np.isnan(v) else f"{v:.2f}" for v in row)] for n, row in ratio.iterrows()]
    return (
        "\n\nCollectiveMAP's time over NaiveMLE's, median over draws of all kinds. It is large where noise dominates: "
        "NaiveMLE's penalty is then so strong that it converges in a few iterations.\n\n"
        + markdown_table(["N", *(f"epsilon = {epsilon:g}" for epsilon in ratio.columns)], body)
    )
