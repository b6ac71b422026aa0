"""One command a paper: what it says beside what comes out here, row by row, and why they differ.

::

    python -m benchmarks.paper gaussian            # or: make paper-gaussian; cgm, mrf, blocks, mixtures
    python -m benchmarks.paper gaussian --quick    # below two minutes of processor time

A run of ``cgm`` or ``mrf`` that was stopped goes on when it is started again.
The numbers come from the benchmarks of this folder, run on smaller settings with ``--quick``. Everything goes to
``build/papers``, one page a paper; tracked results stay as they are. Where a paper has numbers, they stand in the rows.
Where it has figures or theorems alone, the row has what these claim.
"""

from __future__ import annotations

import argparse
import math
import shlex
import sys
import warnings
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

from benchmarks.folders import KEPT
from benchmarks.machine import describe_machine, single_thread

if __name__ == "__main__":
    single_thread()  # before numpy is imported

import numpy as np
import pandas as pd

from benchmarks import block_models, collective, gaussian, markov_random_fields, membership_program, mobility
from benchmarks.report import geometric_mean, markdown_table
from benchmarks.settings import Mode, paper_settings
from pgmpy_dp import GuessedTypesWarning
from pgmpy_dp.communities.operators.block_projection import BlockProjection
from pgmpy_dp.estimators import PrivateGaussianMixture
from pgmpy_dp.mixtures.gaussian_mixture import matching_error, random_centres, sample_mixture
from pgmpy_dp.private.accounting import gaussian_multiplier
from pgmpy_dp.private.noise.samplers import ReproducibleNoiseWarning
from pgmpy_dp.theory import required_records

__all__ = ["PAPERS", "main"]

FIGURE_3 = ("CollectiveEM, as published (exact steps)", "NaiveMLE, lambda = 1e-3", "CollectiveMAP")  # rows of mobility
HEAD = ["setting", "the paper", "its method here", "ours", "why they differ"]
Row = list[str]

# Wang, Huai and Xu (2018), tables 1 and 2: relative errors by epsilon and method.
COLUMNS = ("r = 0.5", "r = 1", "r = 1.5", "Colon", "Parkinson's")
PUBLISHED = {
    ("pure", 0.5, "Wishart"): (0.993, 0.9918, 0.9914, 0.995, 0.9140),
    ("pure", 0.5, "Laplace"): (101.4, 52.85, 35.42, 190.57, 9.950),
    ("pure", 1.0, "Wishart"): (0.986, 0.9863, 0.9856, 0.993, 0.8899),
    ("pure", 1.0, "Laplace"): (49.44, 25.41, 16.83, 95.01, 4.690),
    ("pure", 1.5, "Wishart"): (0.9817, 0.9815, 0.9806, 0.9907, 0.8796),
    ("pure", 1.5, "Laplace"): (32.30, 16.41, 10.76, 63.67, 3.913),
    ("delta", 0.5, "Wishart"): (0.9999, 0.9997, 0.9993, 1.636, 1.00),
    ("delta", 0.5, "Gaussian"): (0.1285, 0.1607, 0.1759, 0.3039, 0.1527),
    ("delta", 1.0, "Wishart"): (0.9982, 0.9947, 0.9906, 1.1155, 0.990),
    ("delta", 1.0, "Gaussian"): (0.1254, 0.1605, 0.1737, 0.1081, 0.1514),
    ("delta", 1.5, "Wishart"): (0.9954, 0.9895, 0.9837, 1.0474, 0.9992),
    ("delta", 1.5, "Gaussian"): (0.1242, 0.1585, 0.1701, 0.0833, 0.1474),
}
GAUSSIAN_METHODS = {
    ("pure", "Wishart"): (
        "published one-sided Wishart, **not private**",
        "its noise is not private; ours is the double one",
    ),
    ("pure", "Laplace"): ("published Laplace, scale 2d", "4d/(d + 1) times the noise that a record needs"),
    ("delta", "Wishart"): ("published Wishart, d + 14 ln(4/delta)/epsilon^2", "its mean is not taken off"),
    ("delta", "Gaussian"): ("published Gaussian", "twice the variance that is needed off the diagonal"),
}
OURS = {"pure": "**PrivateGraphicalLasso** (double Wishart)", "delta": "**PrivateGraphicalLasso** (auto)"}


def paper_gaussian(quick: bool, out: Path) -> list[str]:
    """Tables 1 and 2 of Wang, Huai and Xu (2018)."""
    cases = [gaussian.synthetic(r, 30, 20_000) for r in ((1.0,) if quick else (0.5, 1.0, 1.5))]
    notes, repeats = [], 1 if quick else gaussian.REPEATS
    for make in [] if quick else [gaussian.colon, lambda: gaussian.parkinsons(by_person=False)]:
        try:
            cases.append(make())
        except FileNotFoundError as error:
            notes.append(f"A data set is left out: {error}")
    rows: list[Row] = []
    for case in cases:
        best = {
            (kind, epsilon): gaussian.mean_score(_methods(kind)[name], case, epsilon, repeats)
            for kind, name in OURS.items()
            for epsilon in gaussian.EPSILONS
        }
        for (kind, epsilon, name), said in PUBLISHED.items():
            method, why = GAUSSIAN_METHODS[kind, name]
            here = gaussian.mean_score(_methods(kind)[method], case, epsilon, repeats)
            setting = f"{case.name}, n = {len(case.rows):,}, d = {case.rows.shape[1]}, epsilon = {epsilon:g}, "
            setting += f"{name}, {'pure' if kind == 'pure' else f'delta = {gaussian.DELTA:g}'}"
            number = f"{said[COLUMNS.index(case.name)]:g}"
            rows.append([setting, number, *(f"{e:.3g} / {f1:.2f}" for e, f1 in (here, best[kind, epsilon])), why])
    return [
        "Wang, Huai and Xu (2018), tables 1 and 2: relative Frobenius error of the precision matrix, here with the F1 "
        f"of its edges, means of {repeats} draws. The slides give neither n, d nor the penalty of their synthetic "
        "data, nor what r is: ours have r d edges. Their rows are clipped to norm 1, which must be made true "
        "by a public bound.",
        markdown_table(HEAD, rows),
        *notes,
    ]


def _methods(kind: str) -> dict:
    return gaussian.PURE if kind == "pure" else gaussian.APPROXIMATE


def paper_cgm(quick: bool, out: Path) -> list[str]:
    """Figures 1 to 3 of Bernstein, McKenna, Sun, Sheldon, Hay and Miklau (2017)."""
    settings = [s for s in paper_settings() if not quick or (s.n_records, s.epsilon) in ((10_000, 0.5), (100_000, 0.1))]
    methods = ["naive_1e-3", "naive", "em_exact", "map", *(() if quick else ("sgd",))]
    rows_path = _unfinished("cgm", quick, out)
    mode = Mode(tuple(settings), 1 if quick else 2, 1)
    collective.run(mode, methods, rows_path, seed=collective.SEEDS["paper"], slow_on="populations")
    found = pd.read_json(rows_path, lines=True).iloc[1:]
    kinds = {"chain3": "third-order chain", "er": "Erdos-Renyi, p = .3"}
    rows: list[Row] = []
    for (kind, epsilon), part in found.groupby(["kind", "epsilon"]):
        wide = part.pivot_table(index=["n_records", "population"], columns="method", values="kl")
        n = ", ".join(f"{int(value):,}" for value in sorted(part["n_records"].unique()))
        ratios = {base: geometric_mean(wide["em_exact"] / wide[base]) for base in ("naive_1e-3", "naive")}
        rows.append([
            f"figure 2, {kinds[kind]}, 10 nodes of 10 states, epsilon = {epsilon:g}, n = {n}",
            "EM below naive MLE everywhere",
            f"{ratios['naive_1e-3']:.2f} times with lambda = 1e-3, {ratios['naive']:.2f} with the noise's lambda",
            f"`CollectiveMAP`: {geometric_mean(wide['map'] / wide['naive']):.2f} times naive with the noise's lambda",
            "naive MLE depends on its penalty, which the paper does not state",
        ])  # fmt: skip
    for kind, said in {"chain3": (4, 27), "er": (8, 40)}.items():
        times = found[found["kind"] == kind].groupby("method")["seconds"].median()
        sgd = f", PSGD {times['sgd'] / times['naive']:.1f} times" if "sgd" in times else ""
        rows.append([
            f"time beside naive MLE, {kinds[kind]}",
            f"EM {said[0]} times, PSGD {said[1]} times",
            f"EM {times['em_exact'] / times['naive']:.1f} times{sgd}",
            f"`CollectiveMAP` {times['map'] / times['naive']:.1f} times",
            "exact inference and exact steps instead of message passing",
        ])  # fmt: skip
    visits = pd.DataFrame(mobility.run_split(20261121, 0))
    shown = visits[visits["rule"].isin(["shares", "-"])].pivot_table(
        index="method", columns="epsilon", values="per_visit"
    )
    for epsilon in mobility.EPSILONS:
        em, naive, ours = (f"{shown.loc[method, epsilon]:.3f}" for method in FIGURE_3)
        rows.append([
            f"figure 3, chains of users, epsilon = {epsilon:g}: log-likelihood a visit",
            "EM above naive MLE, both above PSGD",
            f"EM {em}, naive {naive}",
            f"`method=\"map\"` {ours}",
            "page visits of msnbc.com for wifi data that were not at hand; PSGD of chains was removed: "
            "`benchmarks/results/mobility.md` has version 0.3's",
        ])  # fmt: skip
    if quick:
        pictures = "Figures 1 and 3 take longer: leave QUICK out."
    elif find_spec("matplotlib"):
        from benchmarks import paper_figures

        paper_figures.main(["--out", str(out)])
        pictures = "Figures 1 and 3 are in `paper-figures.md` of this folder."
    else:
        pictures = "matplotlib is not installed, so figures 1 and 3 were not drawn: `pip install matplotlib`."
    return [
        "Bernstein, McKenna, Sun, Sheldon, Hay and Miklau (2017), section 4: the paper has figures and no "
        "tables. Ratios "
        "are geometric means of Kullback-Leibler divergences from the truth; below 1 is better. Laplace "
        f"noise, add_remove. {mode.populations} populations, with one draw of the noise for each setting.",
        markdown_table(HEAD, rows),
        pictures,
    ]


def paper_mrf(quick: bool, out: Path) -> list[str]:
    """Table 1 and the theorems of Zhang, Kamath, Kulkarni and Wu (2020) about Ising models."""
    wanted = [c for c in markov_random_fields.cases() if c.family == "ising" and c.p <= (10 if quick else 50)]
    wanted = [c for c in wanted if not quick or (c.graph == "3-regular" and c.n <= 10_000)]
    rows_path = _unfinished("mrf", quick, out)
    markov_random_fields.run(wanted, markov_random_fields.SEED, rows_path, "benchmarks.paper mrf")
    found = pd.read_json(rows_path, lines=True).iloc[1:].reset_index(drop=True)
    found = found.join(pd.json_normalize(found["case"].tolist()).set_index(found.index))
    errors = found.pivot_table(index=["p", "n", "rho"], columns="method", values="error")
    rows: list[Row] = [
        [
            f"largest error of a weight, p = {p}, n = {n:,}, rho = {rho:g}",
            "no experiments",
            f"Frank-Wolfe with its noise {at[_PAPER_NOISE]:.3f}",
            f"Frank-Wolfe {at['frank-wolfe']:.3f}; moments {at['moments']:.3f}",
            "its noise makes a choice up to 2 epsilon-DP, not epsilon; moments are sufficient statistics",
        ]
        for (p, n, rho), at in errors.iterrows()
        if np.isfinite(rho)
    ]
    risk = found[found["method"] == "frank-wolfe"].groupby(["n", "rho"])["excess_risk"].mean()
    slope = np.polyfit([math.log(n * math.sqrt(rho)) for n, rho in risk.index], np.log(risk), 1)[0]
    rows.append([
        "Theorem 1.3: power of n sqrt(rho) by which the excess risk falls",
        f"{-2 / 3:.2f} or faster", "-", f"{slope:.2f}",
        "the theorem is an upper bound for the worst data",
    ])  # fmt: skip
    if not quick:
        largest = errors.xs((100_000, 0.1), level=("n", "rho"))
        for method in ("frank-wolfe", "moments"):
            power = np.polyfit(np.log(largest.index), np.log(largest[method]), 1)[0]
            rows.append([
                f"Table 1: power of p by which the error grows at n = 100,000, rho = .1, {method}",
                "1/6 (n like sqrt(p) alpha^-3)", "-", f"{power:.2f}", "three sizes; noise on all pairs for moments",
            ])  # fmt: skip
    return [
        "Zhang, Kamath, Kulkarni and Wu (2020): the paper has theorems and no experiments, so the second column has "
        "what a theorem says. Models have 3-regular graphs, grids and stars, width 1.2 to 1.8. Errors are means over "
        "these three, with one set of records each; the number of records is public.",
        markdown_table(HEAD, rows),
    ]


_PAPER_NOISE = "paper's noise"


def paper_blocks(quick: bool, out: Path) -> list[str]:
    """Sections 4 and 5 of Chen, Cohen-Addad, d'Orsi, Epasto, Imola, Steurer and Tiegel (2023)."""
    cases = [(500, 200, 0.8, 0.25), (300, 140, 0.9, 4.0), (1000, 40, 0.8, 2.0), (1000, 100, 0.8, 0.5)]
    cases = cases[: 2 if quick else 4]
    graphs, rows = (1 if quick else 5), []
    for n, degree, bias, epsilon in cases:
        make = block_models.planted(n, degree, bias)
        names = ("W published", "W tight", "NPM Gaussian", "RR + vote")
        shares = [row[0] for row in block_models.right(names, epsilon, graphs, make, bias=bias)]
        needed = 24 * gaussian_multiplier(epsilon, block_models.DELTA) ** 2 / bias
        program = BlockProjection(n, degree=degree, bias=bias)
        wide = BlockProjection(n, degree=degree, bias=bias, analysis="published")
        setting = f"n = {n}, d = {degree}, gamma = {bias}, epsilon = {epsilon:g}, delta = {block_models.DELTA:g}"
        rows.append([
            f"Theorem 5.3, share of right labels, {setting}",
            "weak recovery from its threshold on, constants open",
            f"{shares[0]:.3f} (chance .5)",
            f"tight noise {shares[1]:.3f}, power iteration {shares[2]:.3f}, answers and vote {shares[3]:.3f}",
            f"its noise hides the labels below a degree of {needed:,.0f}",
        ])  # fmt: skip
        rows.append([
            f"Lemma 4.1, sensitivity, {setting}",
            "sqrt(24 s/n)", f"{wide.sensitivity:.3g}", f"{program.sensitivity:.3g}",
            "a projection is firmly nonexpansive, and the diagonal is public",
        ])  # fmt: skip
    return [
        "Chen, Cohen-Addad, d'Orsi, Epasto, Imola, Steurer and Tiegel (2023): the paper has theorems and no "
        f"experiments. Means of {graphs} graphs; one edge is protected.",
        markdown_table(HEAD, rows),
    ]


def paper_mixtures(quick: bool, out: Path) -> list[str]:
    """Section 6 of Chen, Cohen-Addad, d'Orsi, Epasto, Imola, Steurer and Tiegel (2023)."""
    rows, runs = [], 5 if quick else 20
    for k, d, separation in ((3, 8, 32.0), (3, 8, 100.0)):
        found = 0
        for seed in range(runs):
            rng = np.random.default_rng(seed)
            centres = random_centres(k, d, separation, rng, shift=1e4)
            records, _ = sample_mixture(centres, np.full(k, 1 / k), 1.0, 3000, rng)
            # A smaller separation than the true one is true, too, and has less noise.
            public = {"separation": 32.0, "scale": 1.0, "epsilon": 1.0, "delta": 1e-6, "random_state": seed}
            found += matching_error(PrivateGaussianMixture(k, **public).fit(records).means_, centres) < 1.0
        rows.append([
            f"Theorem 6.3, {k} centres in {d} columns, {separation:g} scales apart, epsilon = 1, delta = 1e-6: records",
            "polynomial, constants open", f"{required_records(k, d, separation, 1.0, 1e-6):.1e}",
            f"`PrivateGaussianMixture`: of 3,000 records within one scale in {found} of {runs} runs",
            "constants computed; blocks vote instead of one program over all records",
        ])  # fmt: skip
    factors = (1.0, 1e-3, 1e-6) if quick else (1.0, 0.1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
    return [
        "Chen, Cohen-Addad, d'Orsi, Epasto, Imola, Steurer and Tiegel (2023), section 6: the paper has theorems and no "
        "experiments.",
        markdown_table(HEAD, rows),
        "## Algorithm 6.5, a study",
        "Its steps on made-up records, with their noise times a factor; nothing of it is private. With the factor 1 "
        "it has the noise of epsilon = 1 and delta = 1e-6, as far as anything is proved: so few records have no bound, "
        "and get the noise as if each row could change half of its links. The test refuses where the number of records "
        "that are not linked is above its limit; else cells that hold enough of the rows are looked for.",
        markdown_table(membership_program.FACTOR_HEAD, membership_program.factor_rows(factors, runs=runs)),
        "Where the number of records comes from: no program runs on so many, so rows are put at their centres, as they "
        "are where every record is linked. A cell is 11.3 scales wide.",
        markdown_table(membership_program.SIZE_HEAD, membership_program.size_rows(runs)),
    ]


def _unfinished(paper: str, quick: bool, out: Path) -> Path:
    """Fits of a whole run, kept until its page is written, so that a run that was stopped goes on."""
    path = out / f"{paper}{'-quick' * quick}-unfinished.jsonl"
    if quick:
        path.unlink(missing_ok=True)
    return path


PAPERS: dict[str, Callable[[bool, Path], list[str]]] = {
    "cgm": paper_cgm,
    "mrf": paper_mrf,
    "blocks": paper_blocks,
    "mixtures": paper_mixtures,
    "gaussian": paper_gaussian,
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line; see ``--help``."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.paper", description=__doc__.splitlines()[0])
    parser.add_argument("paper", choices=tuple(PAPERS))
    parser.add_argument("--quick", action="store_true", help="smaller settings, below two minutes of processor time")
    parser.add_argument("--out", type=Path, default=Path("build/papers"), help="folder (default: %(default)s)")
    options = parser.parse_args(arguments)
    if options.out.resolve() == KEPT.resolve():
        parser.error(f"--out={options.out} has tracked results; pass another folder, such as build/papers")
    options.out.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore", ReproducibleNoiseWarning)
    warnings.simplefilter("ignore", GuessedTypesWarning)  # of the users' numbers, which frames of ours have
    parts = PAPERS[options.paper](options.quick, options.out)
    command = shlex.join(["python", "-m", "benchmarks.paper", *(sys.argv[1:] if arguments is None else arguments)])
    head = [f"# {options.paper}: the paper against us, row by row", f"Made by `{command}`, on {describe_machine()}."]
    path = options.out / f"{options.paper}{'-quick' * options.quick}.md"
    path.write_text("\n\n".join([*head, *parts]) + "\n", encoding="utf-8")
    unfinished = path.with_name(f"{path.stem}-unfinished.jsonl")
    if unfinished.exists():
        unfinished.replace(path.with_suffix(".jsonl"))
    print(f"wrote {path}")


if __name__ == "__main__":
    main()
