# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Communities in a network whose edges are private
#
# **Afterwards you can** find communities in a graph whose edges are private, say what an edge's guarantee is worth to a
# person, and rehearse whether a budget is enough. **Time:** 35 minutes with the exercises, half a minute of computing.
# **You need** the [primer](00_what_the_promise_means.py) and to know what a graph is. The pictures need matplotlib:
# `pip install '.[plot]'`.
#
# Who is a member of a club, a company or a platform is often no secret. Who talks to whom is. `PrivateBlockModel` finds
# the communities of a graph and protects its edges. The vertices are public, and the result says almost the same
# whether or not any two of them are joined.
#
# This page has two graphs. One is the karate club of Zachary, with 34 members, where only one mechanism works. The
# other is a made-up network of 3,000 people, where privacy is nearly free, until it suddenly is not. Background: [block
# models](../docs/block-models.md).

# %% tags=["hide-input"]
import math
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
import pandas as pd

warnings.filterwarnings("ignore", message="`pgmpy", category=FutureWarning)
warnings.filterwarnings("ignore", message="IProgress not found")  # of notebooks without ipywidgets
from pgmpy import config
from scipy.sparse import csr_array
from scipy.sparse.linalg import eigsh

config.set_show_progress(False)

from pgmpy_dp import Budget, Ledger, PrivateGraph, Release
from pgmpy_dp.estimators import PrivateBlockModel
from pgmpy_dp.plotting import plot_communities
from pgmpy_dp.theory import block_models

HERE = Path(__file__).resolve().parent if "__file__" in globals() else Path.cwd()
ROOT = next(folder for folder in (HERE, *HERE.parents) if (folder / "data" / "SOURCES.md").exists())
OUT = ROOT / "build" / "tutorials-output" / "08"
OUT.mkdir(parents=True, exist_ok=True)

# %% [markdown]
# ## 1. Declare: the vertices and the unit
#
# A graph has no schema. In its place the vertices have to be public, and the number of communities to look for. The
# unit of protection is one edge: neighbouring datasets are graphs on the same vertices that differ in one edge.
#
# `PrivateGraph` holds a graph, tells nobody its edges, and charges what is learned from them to a ledger.

# %%
karate = nx.karate_club_graph()  # public, and shipped with networkx; it stands in for a private graph
members = list(karate)
club = PrivateGraph(karate, ledger=Ledger(Budget(epsilon=3.0)))
print(club)

# %% [markdown]
# What does it mean that an edge is protected? Somebody who knows *all other* edges, and thinks that two members are
# friends with probability 1/2, sees the released communities. With pure epsilon-DP their belief can move to at most
# 1/(1 + exp(-epsilon)). But a person is not one edge. Beliefs about *everything* that one member does, k edges at
# once, may move k times as far:

# %%
beliefs = pd.DataFrame(
    {
        f"{k} edge{'s' if k > 1 else ''}": [1.0 / (1.0 + np.exp(-k * epsilon)) for epsilon in (0.1, 0.5, 1.0, 2.0)]
        for k in (1, 2, 5, 17)
    },
    index=pd.Index([0.1, 0.5, 1.0, 2.0], name="epsilon"),
)
print(beliefs.round(3))

# %% [markdown]
# So epsilon = 1 hides a friendship fairly well (0.73). It promises nothing about whether the busiest member, with 17
# friends, was socially active at all (1.000). If that is the secret, edge privacy is not enough and this estimator is
# the wrong tool. Time and memory are not protected either: they grow with the number of edges.
#
# ## 2. Preview: rehearse on made-up graphs
#
# Nothing can be looked up in a private graph beforehand, but made-up graphs of the expected size cost nothing. A
# stochastic block model has two groups of equal size, and a vertex has `degree` neighbours on average. It is joined to
# its own group (1 + bias)/(1 - bias) times as often as to the other. With bias .8 that is 9 times.
#
# The method for large graphs is noisy power iteration. Each vertex starts with a random sign, and in each of 20 rounds
# hears the sum of its neighbours' signs, with noise. At the true communities that sum is about degree x bias in size.
# The noise in a sum depends on epsilon alone: 20 rounds share 93 % of the budget ([guarantees](../docs/guarantees.md)).
# So the comparison can be made on paper:

# %%
degree, bias, delta = 80.0, 0.8, 1e-6
epsilons = [0.25, 0.35, 0.5, 0.7, 1.0]


def made_up(n: int, seed: int, degree: float = degree) -> tuple[csr_array, np.ndarray]:
    """A graph of n vertices with two planted communities, and the communities; the seed is public."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.arange(n) % 2)
    chance = degree / n * np.where(labels[:, np.newaxis] == labels, 1 + bias, 1 - bias)
    above = np.triu(rng.random((n, n)) < chance, 1)
    return csr_array(above | above.T, dtype=np.int8), labels


def error_rate(labels: np.ndarray, true: np.ndarray) -> float:
    """Share of wrong labels. Which community is called 0 means nothing, so the better of both namings counts."""
    return float(min(np.mean(labels != true), np.mean(labels == true)))


errors, noise = {}, {}
for epsilon in epsilons:
    errors[epsilon] = []
    for seed in range(6):
        graph, labels = made_up(1000, seed)
        fit = PrivateBlockModel(2, "noisy-power", epsilon=epsilon, delta=delta).fit(graph)
        errors[epsilon].append(error_rate(np.array(list(fit.labels_.values())), labels))
    noise[epsilon] = np.sqrt(20 / (0.93 * fit.privacy_.guarantee.rho))

wrong = pd.Series(errors).map(np.mean)
preview = pd.DataFrame({"noise in a sum": noise, "signal": degree * bias, "wrong labels": wrong})
print(preview.rename_axis("epsilon").round(3))


# %%
def plot_runs(runs: dict, ax: plt.Axes, **labels: str) -> None:
    """Every run as a dot, and a line through the means: shares of wrong labels against epsilon."""
    ax.axhline(0.5, color="0.5", linestyle=":")
    for epsilon, shares in runs.items():
        ax.plot([epsilon] * len(shares), shares, "o", color="C0", alpha=0.4, markersize=5)
    ax.plot(list(runs), [np.mean(shares) for shares in runs.values()], "-", color="C0")
    ax.set(xscale="log", xlabel="epsilon", ylabel="share of wrong labels", ylim=(-0.02, 0.54), **labels)
    ax.set_xticks(list(runs), [f"{epsilon:g}" for epsilon in runs])
    ax.set_xticks([], minor=True)


figure, ax = plt.subplots(figsize=(6.5, 3.8), layout="constrained")
plot_runs(errors, ax, title="noisy power iteration, 1,000 made-up vertices of degree 80")

# %% [markdown]
# Each dot is a run. The error does not shrink smoothly: there is a threshold. Below it the labels are no better than a
# coin, and above it nearly all are right. At it some runs find the communities and others do not.
# **Nothing in the result says for sure on which side it is**, because that would need a look at the private graph. So
# rehearse: choose epsilon well above the threshold of a made-up graph like yours, or do not fit at all.
#
# The karate club has no such rehearsal: its members have 5 friends on average, against noise of about 30. There is a
# mechanism for small sparse graphs, though. `method="exponential"` draws a whole division into two communities. Each
# edge more inside than across makes a division up to exp(epsilon) times as likely. It draws exactly, by integer
# arithmetic, and is exactly epsilon-DP.
#
# ## 3. Spend
#
# One fit is one charge, made before any randomness is drawn.

# %%
division = PrivateBlockModel(2, method="exponential", epsilon=2.0).fit(club)
print(division.privacy_)
print(club.ledger)

# %% [markdown]
# For the large network of 3,000 people, epsilon = 1 is comfortably above its threshold:

# %%
graph, groups = made_up(3000, seed=42)
people = PrivateGraph(graph, ledger=Ledger(Budget(epsilon=1.0, delta=delta)))
network = PrivateBlockModel(2, method="noisy-power", epsilon=1.0, delta=delta).fit(people)
print(network.privacy_)
print(f"estimated average degree {network.degree_:.1f}")

# %% [markdown]
# The privacy record is in rho-zCDP, the measure in which Gaussian noise adds up; this rho implies the (1, 1e-6)-DP
# that was asked for.
#
# ## 4. Fit
#
# There is no separate fit: the labels *are* the release. Reading it again gives the same ones, at no cost and without
# the graph.

# %%
again = PrivateBlockModel(2).fit_release(network.release_)
assert again.labels_ == network.labels_
print(network.release_)

# %% [markdown]
# ## 5. Query: who belongs together?
#
# `labels_` maps each vertex to a community; which one is called 0 means nothing. `predict_table` adds by how much the
# noisy neighbours of a vertex prefer its label. It is a margin, not a probability. The exponential mechanism has
# none: it draws whole divisions, and all its margins are equal.

# %%
table = network.predict_table()
print(table.head(4).round(1).to_string(index=False))
print(f"\ncommunities of {np.bincount(table['label'])} vertices; the least certain vertices:")
print(table.nsmallest(3, "margin").round(2).to_string(index=False))

# %% [markdown]
# A picture of communities may show vertices and labels. It may show edges **only if the graph is public**: drawing a
# private edge publishes it. The karate club is public, so its edges are drawn here. The large network is drawn as its
# readers would see it. People whose margin is large are in the middle of their community; towards the rim margins
# shrink, and dots get paler. Where a dot lies says nothing else.

# %%
figure, axes = plt.subplots(1, 2, figsize=(11, 4.8), layout="constrained")
plot_communities(division.labels_, karate, ax=axes[0])
plot_communities(network.labels_, ax=axes[1], scores=network.scores_)
axes[0].set_title("karate club, exponential mechanism, epsilon = 2")
_ = axes[1].set_title("3,000 people, noisy power iteration, epsilon = 1")

# %% [markdown]
# ## 6. Check: against the truth and without privacy
#
# Both truths are public. The club split up, and the book says who went where. The large network is made up. Comparing
# private labels with a truth computed from *private* edges would leak them.

# %%
sides = np.array([int(karate.nodes[member]["club"] != "Mr. Hi") for member in members])
karate_error = error_rate(np.array([division.labels_[member] for member in members]), sides)
without_privacy = nx.community.kernighan_lin_bisection(karate, seed=1)
karate_exact = error_rate(np.array([int(member in without_privacy[0]) for member in members]), sides)
print(f"karate club: {karate_error:.0%} wrong labels; without privacy {karate_exact:.0%}")

network_error = error_rate(np.array(list(network.labels_.values())), groups)
_, vectors = eigsh(graph.astype(float), k=2, which="LA")
exact_error = min(error_rate((vector > 0).astype(int), groups) for vector in vectors.T)
print(f"3,000 people: {network_error:.2%} wrong labels; without privacy {exact_error:.2%}")

# %% [markdown]
# One draw from the exponential mechanism says little about the mechanism. The club is public, so we may run it again
# and again. On a private graph each run would cost the budget:

# %%
karate_epsilons = [0.25, 0.5, 1.0, 2.0, 4.0]
karate_errors = {epsilon: [] for epsilon in karate_epsilons}
for epsilon in karate_epsilons:
    for _ in range(10):
        fit = PrivateBlockModel(2, method="exponential", epsilon=epsilon).fit(karate)
        karate_errors[epsilon].append(error_rate(np.array([fit.labels_[member] for member in members]), sides))

figure, axes = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
plot_communities(division.labels_, karate, ax=axes[0], truth=dict(zip(members, sides.tolist(), strict=True)))
plot_runs(karate_errors, axes[1], title="karate club, exponential mechanism")

# %% [markdown]
# At epsilon = 1 a draw can be nearly right or useless; from 2 on most are right, and now and then one is not. (34
# labels that are pure chance are about 43 % wrong, not 50 %, because the two names may be swapped.) Seventy-eight
# edges cannot pay for much more privacy.

# %%
assert np.mean(karate_errors[4.0]) < 0.3  # fails less than once in a million runs
assert np.min(errors[1.0]) < 0.2  # the best of six runs
assert exact_error < 0.01

# %% [markdown]
# ## 7. Save: labels and release
#
# The release holds labels, margins and the noisy number of edges; no edge is in it. It may be published, and so may
# everything computed from it.

# %%
network.release_.save(OUT / "communities.npz")
network.predict_table().to_csv(OUT / "communities.csv", index=False)
people.ledger.save(OUT / "ledger.json")
loaded = PrivateBlockModel(2).fit_release(Release.load(OUT / "communities.npz"))
assert loaded.labels_ == network.labels_
print(f"Wrote {', '.join(sorted(path.name for path in OUT.iterdir()))} to {OUT.relative_to(ROOT)}")

# %% [markdown]
# ## Exercises
#
# Answers unfold. They ran with this page.
#
# **1.** Change the graph: rehearse at epsilon = 1 with a degree of 20 instead of 80. Is the budget still enough?

# %% tags=["hide-cell"]
for fewer in (20.0, 80.0):
    shares = []
    for seed in range(3):
        sparse, planted = made_up(1000, seed, fewer)
        fit = PrivateBlockModel(2, "noisy-power", epsilon=1.0, delta=delta).fit(sparse)
        shares.append(error_rate(np.array(list(fit.labels_.values())), planted))
    print(f"degree {fewer:.0f}: {np.mean(shares):.1%} wrong labels, signal {fewer * bias:.0f}, noise {noise[1.0]:.0f}")
print("The noise in a sum does not know the degree, the signal is in proportion to it. Sparse graphs need more budget.")

# %% [markdown]
# **2.** Change the unit: a member has 5 friends, and all of these edges together are the secret. Which epsilon keeps a
# belief of 50 % below 73 %?

# %% tags=["hide-cell"]
print(f"1/5 of it: with epsilon = 0.2 the belief is at most {1 / (1 + math.exp(-5 * 0.2)):.2f}. With epsilon = 1 it is")
print(f"{1 / (1 + math.exp(-5)):.3f}. On the karate club not even .25 finds the sides: look at its picture.")

# %% [markdown]
# **3.** What numbers are in the release of the 3,000 people? A reader bets that two people of one community are
# friends. How often is that right, and does it break the promise?

# %% tags=["hide-cell"]
release = network.release_
scores = release["scores"].array * release.public["score_unit"]
print("labels:", release["labels"].array[:4], "... of", release["labels"].array.size)
print("scores:", scores[:2].round(1).tolist(), "... of", len(scores))
print("number of edges, noisy:", release["edge_count"].array)
same = groups[:, np.newaxis] == groups
for words, pairs in (("of one community", same), ("of different ones", ~same)):
    print(f"two people {words} are friends in {graph.toarray()[np.triu(pairs, 1)].mean():.1%} of the pairs")
print("So the bet is lost 19 times in 20. It is better than one on other pairs, because that is what communities are,")
print("and they were the question. No single edge decides it: had these two never met, the release would have been as")
print("likely, up to the factor e of epsilon = 1, and delta.")

# %% [markdown]
# **4.** Fit the karate club ten times and keep the division that the book confirms best. What was spent?

# %% tags=["hide-cell"]
best = min(karate_errors[1.0])
print(f"The best of ten at epsilon = 1 has {best:.0%} wrong labels, the mean {np.mean(karate_errors[1.0]):.0%}.")
print("It cost 10, and the book was needed to choose: on a private graph there is none.")

# %% [markdown]
# ## What went wrong for others
#
# * **A threshold that the noise moves.** Theorem 5.3 of Chen et al. (2023) speaks of recovery from its threshold on.
#   The published noise, added to labels *known without an error*, hides them until far larger degrees: 149 at epsilon =
#   2, bias .8. The table below has what that noise leaves, in theory. The first three settings are of our choice, below
#   that degree, and at chance when we [ran](../benchmarks/results/block-models.md) the published algorithm. In the last
#   one, of 300 vertices, it had .90 of the labels right, and .94 where it was told the degree.
# * **Privacy of an optimum that nobody has.** It was proved for the exact solution of a program. Solvers return
#   something near it. Here a certificate bounds how near, and the noise allows for that ([papers and
#   corrections](../docs/papers-and-corrections.md)).
# * **Labels of chance taken for communities.** Below the threshold a fit returns labels all the same ([known
#   limits](../docs/known-limits.md)).

# %%
settings = [(200.0, 0.8, 0.25), (40.0, 0.8, 2.0), (100.0, 0.8, 0.5), (140.0, 0.9, 4.0)]
published = pd.DataFrame(settings, columns=["degree", "bias", "epsilon"])
published["right labels"] = [block_models.projection_accuracy(*setting, delta) for setting in settings]
print(published.round(3).to_string(index=False))
