"""Communities of block models and of real graphs: errors of every private method, thresholds, speed.

::

    python -m benchmarks.block_models --out benchmarks/results            # eight minutes on a busy machine of two cores
    python -m benchmarks.block_models --part scaling                      # one part: its rows, without a report

Shares of vertices with the right label, up to the names of the communities, on average over graphs. Noise comes from
seeds: nothing here is private. Degrees are estimated inside the budgets; the bias is told to the projections.
Real graphs but karate are read from a folder (``--data``) and left out where it has none.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path

from benchmarks.machine import describe_machine, peak_rss, single_thread

if __name__ == "__main__":
    single_thread()  # before numpy is imported

import networkx as nx
import numpy as np
import scipy.sparse as sp

from benchmarks.data import find
from benchmarks.folders import raw_folder
from benchmarks.report import markdown_table
from pgmpy_dp import Budget, PrivateGraph
from pgmpy_dp.communities import exponential_mechanism, noisy_power, randomised_response
from pgmpy_dp.communities.communities_base import communities
from pgmpy_dp.communities.planted_graphs import error_rate, planted_labels, sample_block_model
from pgmpy_dp.communities.published import noisy_projection
from pgmpy_dp.estimators import PrivateBlockModel
from pgmpy_dp.learning.options import settings_of
from pgmpy_dp.private.noise.samplers import ReproducibleNoiseWarning
from pgmpy_dp.theory.block_models import projection_accuracy

DELTA = 1e-6
Method = Callable[[sp.csr_array, int, float, float, int], np.ndarray]
"""Adjacency matrix, communities, epsilon, bias and seed to labels."""


def degree_weights(n: int, rng: np.random.Generator, spread: float = 0.5, largest: float = 4.0) -> np.ndarray:
    """Log-normal weights of mean 1 for a degree-corrected block model, shape (n,); none above about `largest`."""
    weights = np.minimum(rng.lognormal(sigma=spread, size=n), largest)
    return weights / weights.mean()


def learner(
    run: Callable,
    delta: float = DELTA,
    method: str = "auto",
    vote: bool | None = None,
    analysis: str = "tight",
    **options: str,
) -> Method:
    """A method of the table: a learner with options of its own, and those of the estimator."""

    def labels(graph: sp.csr_array, k: int, epsilon: float, bias: float, seed: int) -> np.ndarray:
        budget = Budget(epsilon=epsilon, delta=delta)
        given = {"bias": bias, "analysis": analysis} if method.startswith("sdp") else {}
        chosen = settings_of(PrivateBlockModel(k, method, vote=vote, random_state=seed, **given))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ReproducibleNoiseWarning)
            return communities(run(PrivateGraph(graph, ledger=budget), chosen, budget, **options)).labels

    return labels


def automatic(graph: sp.csr_array, k: int, epsilon: float, bias: float, seed: int) -> np.ndarray:
    """What the estimator takes by itself."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReproducibleNoiseWarning)
        found = PrivateBlockModel(k, epsilon=epsilon, delta=DELTA, random_state=seed).fit(graph)
    return np.array([found.labels_[node] for node in sorted(found.labels_)])


METHODS: dict[str, Method] = {
    "auto": automatic,
    "RR": learner(randomised_response.run, 0.0, vote=False),
    "RR + vote": learner(randomised_response.run, 0.0, vote=True),
    "W published": learner(noisy_projection.run, method="sdp", vote=False, analysis="published"),
    "W tight": learner(noisy_projection.run, method="sdp", vote=False),
    "W + vote": learner(noisy_projection.run, method="sdp"),
    "E (split)": learner(noisy_projection.run, method="sdp-exact"),
    "NPM Gaussian": learner(noisy_power.run, noise="gaussian"),
    "NPM Laplace": learner(noisy_power.run, 0.0, noise="laplace"),
    "exponential": learner(exponential_mechanism.run, 0.0),
}
PROJECTIONS = ("W published", "W tight", "W + vote", "E (split)")
FAST = ("RR", "RR + vote", "NPM Gaussian", "NPM Laplace")


def right(
    methods: Sequence[str], epsilon: float, graphs: int, make: Callable, k: int = 2, bias: float = 0.8, first: int = 0
) -> list:
    """Shares of right labels of each method on graphs with seeds from `first`: mean, least, share without an error."""
    rows = []
    for name in methods:
        count = min(graphs, 3) if name in PROJECTIONS else graphs
        shares = []
        for seed in range(first, first + count):
            labels, graph = make(np.random.default_rng([seed, 77]))
            shares.append(1.0 - error_rate(METHODS[name](graph, k, epsilon, bias, seed), labels))
        rows.append((float(np.mean(shares)), min(shares), float(np.mean(np.array(shares) == 1.0))))
    return rows


def planted(n: int, degree: float, bias: float, k: int | list = 2, spread: float = 0.0) -> Callable:
    """A maker of labels and graphs."""

    def make(rng: np.random.Generator) -> tuple[np.ndarray, sp.csr_array]:
        labels = planted_labels(n, k, rng)
        weights = degree_weights(n, rng, spread) if spread else None
        return labels, sample_block_model(labels, degree, bias, rng, weights)

    return make


def table(head: list[str], rows: list[list]) -> str:
    """Markdown, with numbers of three digits."""
    return markdown_table(head, [[f"{x:.3f}" if isinstance(x, float) else str(x) for x in row] for row in rows])


def accuracy(_: Path | None) -> str:
    """The models of the design, one row each."""
    cases = [
        (500, 200, 0.8, 0.25),
        (1000, 40, 0.8, 2.0),
        (1000, 100, 0.8, 0.5),
        (2000, 100, 0.8, 0.5),
        (4000, 100, 0.5, 1.0),
        (300, 140, 0.9, 4.0),  # above the threshold that the published noise leaves
    ]
    methods, body = (*FAST[:2], "W published", "W tight", "W + vote", *FAST[2:]), []
    for n, d, bias, epsilon in cases:
        used = [m for m in methods if m not in PROJECTIONS or n <= 1000]
        found = dict(zip(used, right(used, epsilon, 10, planted(n, d, bias), bias=bias), strict=True))
        theory = projection_accuracy(d, bias, epsilon, DELTA)
        body.append([f"{n}, {d}, {bias}", epsilon, *(found[m][0] if m in found else "-" for m in methods), theory])
        print(body[-1], flush=True)
    head = ["n, d, gamma", "epsilon", *methods, "W published, in theory"]
    return "## Two communities of equal size\n\n" + table(head, body)


def other_models(_: Path | None) -> str:
    """More communities, unequal sizes, unequal degrees."""
    cases = {
        "600 vertices, k = 3, d = 120, gamma = .4": (planted(600, 120, 0.4, 3), 3, 0.4, (1.0, 2.0, 4.0)),
        "1000, sizes 3 : 1, d = 100, gamma = .7": (planted(1000, 100, 0.7, [3, 1]), 2, 0.7, (1.0,)),
        "1000, degree-corrected (log-normal .5), d = 100, gamma = .7": (
            planted(1000, 100, 0.7, 2, 0.5),
            2,
            0.7,
            (1.0,),
        ),
        "2000, k = 5, d = 200, gamma = .2": (planted(2000, 200, 0.2, 5), 5, 0.2, (1.0, 4.0)),
    }
    methods, body = (*FAST, "W + vote"), []
    for name, (make, k, bias, epsilons) in cases.items():
        for epsilon in epsilons:
            used = [m for m in methods if m not in PROJECTIONS or name.startswith("600")]
            found = dict(zip(used, right(used, epsilon, 5, make, k, bias), strict=True))
            body.append([name, epsilon, *(found[m][0] if m in found else "-" for m in methods)])
            print(body[-1], flush=True)
    return "## Other models\n\n" + table(["model", "epsilon", *methods], body)


def choice(_: Path | None) -> str:
    """What "auto" takes, by the number of communities, beside the two methods that it chooses from."""
    cases = [
        (300, 8, 40, 0.3, 2.0),
        (600, 3, 40, 0.8, 1.0),
        (1500, 3, 100, 0.3, 2.0),
        (1500, 8, 200, 0.3, 1.0),
        (2000, 2, 60, 0.6, 1.0),
        (3000, 5, 200, 0.3, 1.0),
        (3000, 20, 60, 0.8, 2.0),
    ]
    methods, body = ("RR", "RR + vote", "NPM Gaussian", "auto"), []
    for n, k, degree, bias, epsilon in cases:
        found = right(methods, epsilon, 3, planted(n, degree, bias, k), k, bias, first=1000)
        body.append([f"{n}, {k}, {degree}, {bias}, {epsilon:g}", *(row[0] for row in found)])
        print(body[-1], flush=True)
    return "## What auto takes, on seeds from 1000\n\n" + table(["n, k, d, gamma, epsilon", *methods], body)


@lru_cache(maxsize=1)
def weak_recovery() -> list[tuple[float, list[float]]]:
    """Share of right labels of each fast method, by bias."""
    found = []
    for bias in (0.2, 0.3, 0.4, 0.5, 0.6, 0.8):
        found.append((bias, [row[0] for row in right(FAST, 1.0, 5, planted(2000, 60, bias), bias=bias)]))
        print(found[-1], flush=True)
    return found


def thresholds(_: Path | None) -> str:
    """Weak recovery against the bias, exact recovery against (a, b)."""
    weak = [[f"{60 * bias:.0f}", f"{bias**2 * 60:.1f}", *shares] for bias, shares in weak_recovery()]
    exact = []
    n = 1000
    for a, b in [(15, 2), (20, 2), (30, 2), (40, 2)]:
        for epsilon in (1.0, 2.0):
            degree = (a + b) / 2 * np.log(n)
            bias = (a - b) / (a + b)
            used = [*FAST[1:], *(("W + vote", "E (split)") if (a, epsilon) in ((40, 1.0), (40, 2.0)) else ())]
            found = dict(zip(used, right(used, epsilon, 8, planted(n, degree, bias), bias=bias), strict=True))
            shown = [found[m][2] if m in found else "-" for m in (*FAST[1:], "W + vote", "E (split)")]
            exact.append([f"{a}, {b}", epsilon, *shown])
            print(exact[-1], flush=True)
    return (
        "## Weak recovery: share of right labels, n = 2000, d = 60, epsilon = 1\n\n"
        + table(["gamma d", "gamma² d", *FAST], weak)
        + "\n\n## Exact recovery: share of graphs without an error, n = 1000, p = a log n/n, q = b log n/n\n\n"
        + table(["a, b", "epsilon", *FAST[1:], "W + vote", "E (split)"], exact)
    )


def real_graphs(data: Path | None) -> str:
    """Karate, polblogs, email-Eu-core."""
    karate = nx.karate_club_graph()
    clubs = np.array([karate.nodes[v]["club"] != "Mr. Hi" for v in karate]).astype(int)
    graphs = {"karate": (nx.to_scipy_sparse_array(karate, weight=None), clubs)}
    notes = []
    for name, label, kept in (("polblogs", "leaning", None), ("email_eu_core", "department", 5)):
        try:
            graphs[name.replace("_", "-")] = read_graph(data, name, label, kept)
        except FileNotFoundError as error:
            notes.append(f"{name} is left out: {error.filename or error}")
    body = []
    for name, (graph, labels) in graphs.items():
        k = int(labels.max()) + 1
        methods = [*FAST, *(["exponential"] if name == "karate" else [])]
        for epsilon in (1.0, 2.0, 4.0):
            found = dict(
                zip(
                    methods,
                    right(methods, epsilon, 50 if name == "karate" else 5, lambda _, g=graph, x=labels: (x, g), k),
                    strict=True,
                )
            )
            shown = [found[m][0] if m in found else "-" for m in (*FAST, "exponential")]
            body.append([f"{name} ({len(labels)} vertices, {graph.nnz // 2} edges, k = {k})", epsilon, *shown])
            print(body[-1], flush=True)
    text = "## Real graphs\n\n" + table(["graph", "epsilon", *FAST, "exponential"], body)
    return "\n\n".join([text, *notes])


def read_graph(data: Path | None, name: str, label: str, kept: int | None) -> tuple[sp.csr_array, np.ndarray]:
    """Largest component of the vertices with the `kept` most frequent labels (default: all labels)."""
    data = find(f"{name}_nodes.csv", f"{name}_edges.csv") if data is None else data
    with open(data / f"{name}_nodes.csv", newline="", encoding="utf-8") as lines:
        labels = {row["id"]: row[label] for row in csv.DictReader(lines)}
    names, counts = np.unique(list(labels.values()), return_counts=True)
    chosen = set(names[np.argsort(-counts, kind="stable")][:kept].tolist())
    graph = nx.Graph()
    with open(data / f"{name}_edges.csv", newline="", encoding="utf-8") as lines:
        ends = [(row["source"], row["target"]) for row in csv.DictReader(lines)]
    graph.add_edges_from((u, v) for u, v in ends if u != v and labels[u] in chosen and labels[v] in chosen)
    part = graph.subgraph(max(nx.connected_components(graph), key=len))
    nodes = sorted(part)
    _, codes = np.unique([labels[v] for v in nodes], return_inverse=True)
    return nx.to_scipy_sparse_array(part, nodelist=nodes, weight=None), codes


def scaling(_: Path | None) -> str:
    """Noisy power iteration on large graphs, each in a process of its own, with the operating system's noise."""
    body = []
    for n in (10_000, 100_000, 1_000_000):
        command = [sys.executable, "-m", "benchmarks.block_models", "--size", str(n)]
        row = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1])
        body.append(
            [
                f"{n:,}",
                f"{row['edges']:,}",
                *(f"{row[x]:.1f}" for x in ("read", "fit", "cpu")),
                f"{row['gigabytes']:.2f}",
                row["right"],
            ]
        )
        print(body[-1], flush=True)
    head = ["vertices", "edges", "reading the matrix, s", "fit, s", "fit, s of processor", "peak memory, GB", "right"]
    return (
        "## Noisy power iteration on large graphs\n\nd = 20, gamma = .9, epsilon = 4, delta = 1e-6, 20 rounds, "
        "noise of the operating system.\n\n" + table(head, body)
    )


def large(n: int) -> dict:
    """One large graph."""
    rng = np.random.default_rng(n)
    labels = planted_labels(n, 2, rng)
    graph = sample_block_model(labels, 20.0, 0.9, rng)
    budget = Budget(epsilon=4.0, delta=DELTA)
    start = time.perf_counter()
    private = PrivateGraph(graph, ledger=budget)
    read = time.perf_counter() - start
    start, cpu = time.perf_counter(), time.process_time()
    found = communities(noisy_power.run(private, settings_of(PrivateBlockModel()), budget)).labels
    return {
        "edges": int(graph.nnz // 2),
        "read": read,
        "fit": time.perf_counter() - start,
        "cpu": time.process_time() - cpu,
        "gigabytes": peak_rss() / 1e9,
        "right": 1.0 - error_rate(found, labels),
    }


def figure(path: Path) -> None:
    """Weak recovery by bias, and communities of the karate club."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    from pgmpy_dp.estimators import PrivateBlockModel
    from pgmpy_dp.plotting import plot_communities

    drawn, (left, right_side) = plt.subplots(1, 2, figsize=(11, 4.5), layout="constrained")
    biases = [bias for bias, _ in weak_recovery()]
    for place, name in enumerate(FAST):
        left.plot([60 * b for b in biases], [shares[place] for _, shares in weak_recovery()], "o-", label=name)
    left.axhline(0.5, color="0.6", linewidth=1, linestyle=":")
    left.set(xlabel="gamma d", ylabel="right labels", title="n = 2000, d = 60, epsilon = 1")
    left.legend(fontsize="small")
    karate = nx.karate_club_graph()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReproducibleNoiseWarning)
        found = PrivateBlockModel(method="exponential", epsilon=2.0, random_state=1).fit(karate)
    plot_communities(found.labels_, karate, right_side).set_title("karate club, exponential mechanism, epsilon = 2")
    drawn.savefig(path, dpi=110)
    plt.close(drawn)


PARTS = {
    "accuracy": accuracy,
    "models": other_models,
    "choice": choice,
    "thresholds": thresholds,
    "real": real_graphs,
    "scaling": scaling,
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line; see ``--help``."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.block_models", description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="benchmarks/results", help="folder of the results (default: %(default)s)")
    parser.add_argument("--data", type=Path, help="folder of the real graphs (default: see python -m benchmarks.data)")
    parser.add_argument("--part", choices=tuple(PARTS), help="print one part, without writing the report")
    parser.add_argument("--size", type=int, help="run one large graph here, and print it as JSON")
    options = parser.parse_args(arguments)
    if options.size:
        print(json.dumps(large(options.size)))
        return
    if options.part:
        print(PARTS[options.part](options.data))
        return
    start = time.perf_counter()
    parts = [part(options.data) for part in PARTS.values()]
    out = Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    lines = [
        "# Communities with private edges",
        "Made by `python -m benchmarks.block_models`",
        f"on {describe_machine()}, in {time.perf_counter() - start:.0f} s. Shares of right labels, up to names, on "
        "average over 10 graphs (accuracy) or 5; W and E over 3, karate over 50 draws. RR: randomised response; W: "
        "noisy projection; E: W on half of the edges and a vote on the other half; NPM: noisy power iteration. delta = "
        "1e-6 for W, E and NPM Gaussian; the others are pure.",
        "The command draws weak recovery and the karate club as `block-models.png` in build/results.",
        *parts,
    ]
    figure(raw_folder(out) / "block-models.png")
    (out / "block-models.md").write_text("\n\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
