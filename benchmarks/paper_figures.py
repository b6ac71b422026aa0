"""Figures 1 and 3 of Bernstein et al. (2017) made again, and Laplace against Gaussian noise.

::

    python -m benchmarks.paper_figures --out benchmarks/results

Figure 1: (a) error of the learned marginals against N, with the two terms of Proposition 4; (b) what projecting
the noisy tables on the simplex does for NaiveMLE; (c) divergence against the penalty, with and without
privacy. Figure 3: true against learned edge marginals of one Erdos-Renyi graph with 20 states. Figure 2 is
``benchmarks.collective``. The last table compares the two noises at the same (epsilon, delta) as the number of
tables grows: the l1 sensitivity is that number, the l2 sensitivity its root.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.machine import describe_machine, single_thread

if __name__ == "__main__":
    single_thread()  # before numpy is imported

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from tqdm import tqdm

from benchmarks.collective import SEEDS
from benchmarks.divergence import kl_divergence
from benchmarks.folders import raw_folder
from benchmarks.populations import Population, make_population, noisy_tables, sample_counts
from benchmarks.report import markdown_table
from pgmpy_dp.learning.expectation_maximisation import collective_em
from pgmpy_dp.learning.maximum_a_posteriori import collective_map
from pgmpy_dp.learning.maximum_likelihood import maximum_likelihood, naive_mle
from pgmpy_dp.learning.noisy_marginals import NoisyMarginals
from pgmpy_dp.private.accounting import approx_to_zcdp

_BLUE, _ORANGE, _GREEN, _GREY = "#1f5f8b", "#d1661c", "#3a8f5d", "0.45"
_RECORDS = (1_000, 10_000, 100_000, 1_000_000)
_DELTA = 1e-6


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line; see ``--help``."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.paper_figures", description="Figures 1 and 3.")
    parser.add_argument("--out", default="benchmarks/results", help="folder of the results (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=SEEDS["full"], help="default: %(default)s")
    parser.add_argument("--populations", type=int, default=3, help="per point (default: %(default)s)")
    options = parser.parse_args(arguments)
    out = Path(options.out)
    figure, axes = plt.subplots(1, 3, figsize=(12.5, 3.9), layout="constrained")
    tables = [
        _marginal_error(axes[0], options.seed, options.populations),
        _projection(axes[1], options.seed, options.populations),
        _regularisation(axes[2], options.seed, options.populations),
    ]
    drawn = [raw_folder(out) / f"paper-figure-{number}.png" for number in (1, 3)]
    figure.savefig(drawn[0], dpi=130)
    _scatter(drawn[1], options.seed)
    tables.append(_noises(options.seed, options.populations))
    command = shlex.join(["python", "-m", "benchmarks.paper_figures", *(arguments or sys.argv[1:])])
    head = [
        "# Figures 1 and 3 of the paper, and Laplace against Gaussian noise",
        f"Made by `{command}`",
        f"on {describe_machine()}. Seed {options.seed}, means over {options.populations} populations of 10 nodes.",
        f"The command draws figure 1 as `{drawn[0]}` and figure 3 as `{drawn[1]}`.",
    ]
    (out / "paper-figures.md").write_text("\n\n".join([*head, *tables]) + "\n")
    print(f"wrote {out / 'paper-figures.md'}")


def _release(population: Population, n: int, epsilon: float) -> tuple[np.ndarray, NoisyMarginals]:
    counts = sample_counts(population.model, n, population.rng("records", n))
    rng = population.rng("noise", n, round(1e6 * epsilon), 0)
    return counts, noisy_tables(population.model.cliques, counts, epsilon, rng, total=n)


def _marginal_error(axis: plt.Axes, seed: int, populations: int) -> str:
    """Figure 1(a): mean squared error of a cell's marginal probability, first-order chain, epsilon = .1."""
    epsilon, names = 0.1, ("not private", "NaiveMLE", "CollectiveMAP")
    errors = np.zeros((len(names), len(_RECORDS)))
    sampling, noise = np.zeros(len(_RECORDS)), np.zeros(len(_RECORDS))
    for index in tqdm(range(populations), desc="figure 1(a)"):
        population = make_population("chain1", seed=seed, index=index)
        true = population.model.marginals()
        for k, n in enumerate(_RECORDS):
            counts, noisy = _release(population, n, epsilon)
            fits = (maximum_likelihood(noisy.cliques, counts), naive_mle(noisy), collective_map(noisy))
            errors[:, k] += [np.mean((fit.model.marginals() - true) ** 2) / populations for fit in fits]
            sampling[k] += np.mean(true * (1 - true)) / n / populations
            noise[k] += 2 * noisy.scale[0] ** 2 / n**2 / populations
    for name, row, colour in zip(names, errors, (_GREY, _BLUE, _ORANGE), strict=True):
        axis.loglog(_RECORDS, row, "o-", color=colour, label=name)
    axis.loglog(_RECORDS, sampling, ":", color="0.3", label="sampling term, 1/N")
    axis.loglog(_RECORDS, noise, "--", color="0.3", label="noise term, 1/N^2")
    axis.set(xlabel="N", ylabel="mean squared error of a marginal", title="(a) chain, epsilon = .1")
    axis.legend(fontsize=7)
    rows = [[name, *(f"{e:.3g}" for e in row)] for name, row in zip(names, errors, strict=True)]
    rows += [
        ["sampling term of Proposition 4", *(f"{e:.3g}" for e in sampling)],
        ["noise term of Proposition 4", *(f"{e:.3g}" for e in noise)],
    ]
    return "## (a) Mean squared error of marginals, first-order chain, epsilon = .1\n\n" + markdown_table(
        ["", *(f"N = {n:,}" for n in _RECORDS)], rows
    )


def _projection(axis: plt.Axes, seed: int, populations: int) -> str:
    """Figure 1(b): NaiveMLE with and without projection, Erdos-Renyi with 20 states, epsilon = .5."""
    variants = {"projected": {"project": True}, "not projected": {"project": False}}
    losses = {(name, l2): np.zeros(len(_RECORDS)) for name in variants for l2 in (None, 1e-3)}
    for index in tqdm(range(populations), desc="figure 1(b)"):
        population = make_population("er", seed=seed, index=index, n_states=20)
        for k, n in enumerate(_RECORDS):
            _, noisy = _release(population, n, 0.5)
            for name, options in variants.items():
                for l2 in (None, 1e-3):
                    fit = naive_mle(noisy, l2=l2, max_iter=400, **options)
                    losses[name, l2][k] += kl_divergence(population.model, fit.model) / populations
    rows = []
    for (name, l2), row in losses.items():
        label = f"{name}, lambda = {'lambda*' if l2 is None else l2}"
        colour, style = (_BLUE if name == "projected" else _ORANGE), ("o-" if l2 is None else "s--")
        axis.loglog(_RECORDS, row, style, color=colour, label=label)
        rows.append([label, *(f"{value:.4g}" for value in row)])
    axis.set(xlabel="N", ylabel="KL divergence", title="(b) Erdos-Renyi, 20 states, epsilon = .5")
    axis.legend(fontsize=7)
    return "## (b) NaiveMLE with and without projection, Erdos-Renyi, 20 states, epsilon = .5\n\n" + markdown_table(
        ["", *(f"N = {n:,}" for n in _RECORDS)], rows
    )


def _regularisation(axis: plt.Axes, seed: int, populations: int) -> str:
    """Figure 1(c): divergence against the penalty, first-order chain, N = 100,000, epsilon = .1."""
    n, penalties = 100_000, np.geomspace(1e-6, 1.0, 13)
    losses = np.zeros((2, len(penalties)))
    best = np.zeros(2)
    for index in tqdm(range(populations), desc="figure 1(c)"):
        population = make_population("chain1", seed=seed, index=index)
        counts, noisy = _release(population, n, 0.1)
        for k, l2 in enumerate(penalties):
            fits = (maximum_likelihood(noisy.cliques, counts, l2=l2), naive_mle(noisy, l2=l2))
            losses[:, k] += [kl_divergence(population.model, fit.model) / populations for fit in fits]
        fits = (naive_mle(noisy), collective_map(noisy))
        best += [kl_divergence(population.model, fit.model) / populations for fit in fits]
    axis.loglog(penalties, losses[0], "o-", color=_GREY, label="not private")
    axis.loglog(penalties, losses[1], "o-", color=_BLUE, label="NaiveMLE")
    axis.axhline(best[0], color=_BLUE, linestyle=":", label="NaiveMLE, lambda*")
    axis.axhline(best[1], color=_ORANGE, linestyle="--", label="CollectiveMAP (no tuning)")
    axis.set(xlabel="penalty lambda", ylabel="KL divergence", title="(c) chain, N = 100,000, epsilon = .1")
    axis.legend(fontsize=7)
    shown = range(0, len(penalties), 2)
    rows = [
        [name, *(f"{losses[j, k]:.4g}" for k in shown), extra]
        for j, (name, extra) in enumerate((("not private", "-"), ("NaiveMLE", f"{best[0]:.4g}")))
    ]
    return (
        "## (c) Divergence against the penalty, first-order chain, N = 100,000, epsilon = .1\n\n"
        + markdown_table(["", *(f"lambda = {penalties[k]:.0e}" for k in shown), "lambda*"], rows)
        + f"\n\nCollectiveMAP: {best[1]:.4g}."
    )


def _scatter(path: Path, seed: int) -> None:
    """Figure 3: every cell of every edge marginal of one model, Erdos-Renyi, 20 states, N = 100,000, epsilon = .5."""
    population = make_population("er", seed=seed, index=0, n_states=20)
    counts, noisy = _release(population, 100_000, 0.5)
    fits = {
        "not private": maximum_likelihood(noisy.cliques, counts),
        "NaiveMLE": naive_mle(noisy),
        "CollectiveEM": collective_em(noisy),
        "CollectiveMAP": collective_map(noisy),
    }
    true, floor = population.model.marginals(), 1e-7
    figure, axes = plt.subplots(1, 4, figsize=(13, 3.7), sharex=True, sharey=True, layout="constrained")
    for axis, (name, fit) in zip(axes, fits.items(), strict=True):
        axis.plot([floor, 1], [floor, 1], color="0.6", linewidth=1)
        axis.scatter(true, np.maximum(fit.model.marginals(), floor), s=4, alpha=0.3, linewidth=0, color=_BLUE)
        axis.set(xscale="log", yscale="log", xlim=(floor, 1), ylim=(floor, 1), title=name, xlabel="true marginal")
        divergence = kl_divergence(population.model, fit.model)
        axis.text(0.96, 0.05, f"KL {divergence:.3f}", transform=axis.transAxes, ha="right", fontsize=9)
    axes[0].set_ylabel("learned marginal")
    figure.suptitle("Edge marginals, Erdos-Renyi graph, 20 states, N = 100,000, epsilon = .5")
    figure.savefig(path, dpi=130)


def _noises(seed: int, populations: int) -> str:
    """CollectiveMAP under Laplace noise and under Gaussian noise of the same (epsilon, delta), by number of tables."""
    rows = []
    n, epsilon = 100_000, 0.5
    rho = approx_to_zcdp(epsilon, _DELTA)
    for kind, label in (("chain1", "first-order chain"), ("er", "Erdos-Renyi p = .3"), ("chain3", "third-order chain")):
        for n_states in (5, 10):
            losses, counted = np.zeros(2), []
            for index in tqdm(range(populations), desc=f"noises, {kind}, {n_states} states"):
                population = make_population(kind, seed=seed, index=index, n_states=n_states)
                cliques = population.model.cliques
                counts, laplace = _release(population, n, epsilon)
                sigma = np.sqrt(cliques.n_cliques / (2 * rho))
                noise = np.round(population.rng("gaussian", n).normal(scale=sigma, size=cliques.n_cells))
                gaussian = NoisyMarginals(
                    cliques, counts + noise, "gaussian", np.full(cliques.n_cliques, sigma), total=n
                )
                fits = [collective_map(noisy) for noisy in (laplace, gaussian)]
                losses += [kl_divergence(population.model, fit.model) / populations for fit in fits]
                counted.append(cliques.n_cliques)
            count = np.mean(counted)
            deviations = np.sqrt(2) * count / epsilon, np.sqrt(count / (2 * rho))
            rows.append(
                [
                    label,
                    str(n_states),
                    f"{count:.1f}",
                    *(f"{d:.1f}" for d in deviations),
                    *(f"{loss:.4g}" for loss in losses),
                    "Gaussian" if losses[1] < losses[0] else "Laplace",
                    "Gaussian" if deviations[1] < deviations[0] else "Laplace",
                ]
            )
    return (
        f"## Laplace (epsilon = {epsilon}) against Gaussian (epsilon = {epsilon}, delta = {_DELTA:g}), N = {n:,}\n\n"
        "CollectiveMAP on both. `noise='auto'` decides by the standard deviations, which are public.\n\n"
        + markdown_table(
            [
                "graph",
                "states",
                "tables",
                "sd of Laplace",
                "sd of Gaussian",
                "KL, Laplace",
                "KL, Gaussian",
                "better",
                "auto takes",
            ],
            rows,
        )
    )


if __name__ == "__main__":
    main()
