# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Auditing a learner: attack a privacy claim yourself
#
# **Afterwards you can** attack a privacy claim, read what the attack shows, and say what it cannot show. **Time:** 40
# minutes with the exercises, half a minute of computing. **You need** the [primer](00_what_the_promise_means.py) and to
# know what a confidence interval is. The pictures need matplotlib: `pip install '.[plot]'`.
#
# A learner says "1-DP". Why believe it? The proof is in its documentation, but code can differ from the proof. If noise
# is forgotten, halved, or calibrated for another adjacency, the output looks the same. `pgmpy_dp.auditing` attacks the
# claim. It runs the learner many times on two datasets that differ in one record, and tries to tell them apart.
#
# An audit can **refute** a claim, never prove it. We attack `NaiveMLE` (which stands), a copy with half the noise
# (which falls), and a published mechanism (which falls, whatever the epsilon). Background:
# [guarantees](../docs/guarantees.md), [papers and corrections](../docs/papers-and-corrections.md).

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
from scipy.stats import binomtest

config.set_show_progress(False)
warnings.filterwarnings("ignore", message="about .* inside the schema")  # five records are few, on purpose

from pgmpy_dp import ApproxDP, PureDP
from pgmpy_dp.auditing import (
    AuditReport,
    Neighbours,
    audit,
    audit_catalogue,
    audit_scores,
    catalogue,
    one_run_audit,
    table_neighbours,
)
from pgmpy_dp.estimators import NaiveMLE, PrivateGraphicalLasso

HERE = Path(__file__).resolve().parent if "__file__" in globals() else Path.cwd()
ROOT = next(folder for folder in (HERE, *HERE.parents) if (folder / "data" / "SOURCES.md").exists())
OUT = ROOT / "build" / "tutorials-output" / "10"
OUT.mkdir(parents=True, exist_ok=True)

# %% [markdown]
# ## 1. Declare: the claim, the unit, the neighbours
#
# epsilon-DP is a statement about two neighbouring datasets and any event. If the event has the probability p on one and
# q on the other, then p <= exp(epsilon) q. So an event that is much more likely on one of them refutes the claim.
#
# The datasets are made up; an audit needs no real records. For an attack, take those that one record changes most: five
# identical records, and the same without one of them. The unit is a record (`add_remove`).

# %%
states = {"rain": ["no", "yes"], "wet": ["no", "yes"]}
graph = nx.Graph([("rain", "wet")])
neighbours = table_neighbours(states, n=5)
print(neighbours.note, "-", neighbours.adjacency)
print(neighbours.first.value_counts(), neighbours.second.value_counts(), sep="\n")

# %% [markdown]
# ## 2. Preview: what can so many trials show?
#
# Probabilities are estimated from repeated runs. So an audit reports a *lower bound* on epsilon, which is wrong with a
# probability of at most 1 %, say. Take a learner without any noise, whose event occurs always on one dataset and never
# on the other. Even for it, n trials cannot show more than this:


# %%
def limits(hits: tuple[int, int], trials: int, alarm: float) -> tuple[float, float]:
    """Clopper and Pearson's: p is above the first and q below the second, each except with probability `alarm`."""
    one = binomtest(hits[0], trials, alternative="greater").proportion_ci(1 - alarm)
    other = binomtest(hits[1], trials, alternative="less").proportion_ci(1 - alarm)
    return float(one.low), float(other.high)


for trials in (100, 500, 1000, 10_000):
    p, q = limits((trials, 0), trials, 0.005)
    best = math.log(p / q)
    print(f"{trials:6,} trials on each dataset: at most epsilon >= {best:.1f}")

# %% [markdown]
# To catch a learner that claims 1 and has 2, some hundred trials are enough. For one that claims 1 and has 1.1, many
# thousands are not.
#
# ## 3. Spend: nothing
#
# There are no private records, so there is no budget. An audit spends time: each trial is a fit of its own, with fresh
# noise. So the estimator must have no `random_state`.
#
# ## 4. Fit, many hundred times, and attack
#
# The attacker may look at everything that is released. We tell it where to look, namely at the noisy count of the
# cell that the missing record was in. Half as many further runs choose the event; without `score` they would have to
# learn where to look, too.


# %%
def first_count(releases: np.ndarray) -> np.ndarray:
    """The noisy count of rain = no, wet = no, the cell that the record in question is in."""
    return releases[:, 0]


honest = NaiveMLE(epsilon=1.0, state_names=states)
report = audit(lambda records: honest.fit(graph, records), neighbours, PureDP(1.0), trials=400, score=first_count)
print(report)

# %% [markdown]
# ## 5. Query: read the report
#
# The picture has the scores of all measured releases on both datasets, and the event that told them apart best.

# %%
ax = report.plot()

# %% [markdown]
# The two distributions have the same shape, shifted by one record, and overlap: almost every value may come from either
# dataset. That *is* the privacy. The next lines say how often the event occurred. By the limits of Clopper and Pearson
# its probability is at least p on one dataset and at most q on the other. The logarithm of their ratio is the bound.

# %%
event = report.event
print(f"event: the score is {'at least' if event.above else 'at most'} {event.threshold:g}")
print(f"it occurred {event.hits[0]} and {event.hits[1]} times in {event.trials} trials each")
print(f"so p >= {event.p:.3f} and q <= {event.q:.3f}")
print(f"epsilon >= log(p/q) = {math.log(event.p / event.q):.3f} with {report.confidence:.0%} confidence")
print(f"holds: {report.holds}; tightness {report.tightness:.2f}")

# %% [markdown]
# `tightness` is the bound as a share of the claim. Well above 0 means that the attack has teeth, below 1 that the claim
# survived. "Holds so far" is no proof: an attack that looks in the wrong place finds nothing wrong with anything. It is
# worth something because the *same* attack catches a learner that is broken.
#
# ## 6. Check: would it have caught a mistake?
#
# **Half the noise.** This learner claims epsilon = 1 and draws its noise for epsilon = 2. That happens if one forgets
# that two tables share a budget. Its output looks fine:

# %%
careless = NaiveMLE(epsilon=2.0, state_names=states)  # and says that it is 1-DP
caught = audit(lambda records: careless.fit(graph, records), neighbours, PureDP(1.0), trials=400, score=first_count)
print(caught)

figure, axes = plt.subplots(1, 2, figsize=(11, 3.8), sharex=True, sharey=True, layout="constrained")
report.plot(axes[0])
caught.plot(axes[1]).get_legend().remove()  # the same as on the left

# %% [markdown]
# **Noise only where somebody is.** This is a favourite with sparse data: why put noise on the thousands of cells that
# are empty? Because otherwise a cell shows up, however noisy, only if there is a record in it. That event is certain
# for one dataset and impossible for its neighbour. So no epsilon is right, and the bound is what the trials allow:

# %%
rng = np.random.default_rng()


def sparse(frame: pd.DataFrame) -> np.ndarray:
    """Noisy counts of the nonempty cells, nothing for the others: claimed to be 1-DP."""
    table = pd.crosstab(frame["rain"], frame["wet"]).reindex(index=["no", "yes"], columns=["no", "yes"], fill_value=0)
    exact = table.to_numpy(dtype=float)
    return np.where(exact > 0, exact + rng.laplace(scale=1.0, size=exact.shape), 0.0)


single = neighbours.first.iloc[:1]
one_person = Neighbours(single, single.iloc[:0], "add_remove", "datasets, one record and none")
print(audit(sparse, one_person, PureDP(1.0), trials=200))

# %% [markdown]
# **A published mechanism.** For covariance matrices Wang, Huai and Xu (2018) add a random Wishart matrix to the second
# moments of records of length at most 1. They claim epsilon-DP. With d columns, and not divided by the number of
# records, the release is G + W. W has a Wishart distribution of d + 1 degrees of freedom and scale 3/(2 epsilon).
#
# But W has no negative eigenvalue: this noise has one *side*. If a record x is present, then the release less x x' is
# always positive semidefinite. If it is absent, the release less x x' has a negative eigenvalue with probability 1 -
# exp(-epsilon/3), for every d. So the score is that smallest eigenvalue.

# %%
d, epsilon = 3, 1.0
record = np.eye(d)[0]  # any vector of length 1
with_record = Neighbours(record[None], np.zeros((0, d)), "add_remove", "datasets, one record of length 1 and none")


def wishart(scale: float, count: int) -> np.ndarray:
    """Wishart matrices with d + 1 degrees of freedom, shape (count, d, d)."""
    factors = rng.normal(size=(count, d, d + 1))
    return scale * factors @ factors.transpose(0, 2, 1)


def published(dataset: int, count: int) -> np.ndarray:
    """Releases of the published mechanism on the dataset with the record (0) or without (1)."""
    moments = with_record[dataset].T @ with_record[dataset]
    return (moments + wishart(1.5 / epsilon, count)).reshape(count, -1)


def two_sided(dataset: int, count: int) -> np.ndarray:
    """The same with a difference of two Wishart matrices, for which there is a proof."""
    moments = with_record[dataset].T @ with_record[dataset]
    return (moments + wishart(0.5 / epsilon, count) - wishart(0.5 / epsilon, count)).reshape(count, -1)


def smallest_eigenvalue(releases: np.ndarray) -> np.ndarray:
    """Of each release less the record's own moments."""
    return np.linalg.eigvalsh(releases.reshape(-1, d, d) - np.outer(record, record))[:, 0]


broken = audit_scores(published, smallest_eigenvalue, with_record, PureDP(epsilon), trials=10_000, confidence=0.99)
repaired = audit_scores(two_sided, smallest_eigenvalue, with_record, PureDP(epsilon), trials=10_000, confidence=0.99)
print(broken, repaired, sep="\n")

figure, axes = plt.subplots(1, 2, figsize=(11, 3.8), layout="constrained")
broken.plot(axes[0])
_ = repaired.plot(axes[1])

# %% [markdown]
# On the left, everything below zero was released *without* the record, without exception. More trials would push the
# bound up without end, because no epsilon is right. How large a delta would repair the claim? It would have to be at
# least p - exp(epsilon) q:

# %%
needed = broken.event.p - math.exp(epsilon) * broken.event.q
theory = 1 - math.exp(-epsilon / 3)
print(f"delta >= {needed:.3f} at epsilon = {epsilon:g}; in theory 1 - exp(-epsilon/3) = {theory:.3f}")
large = audit_scores(published, smallest_eigenvalue, with_record, ApproxDP(1.0, 0.2), trials=10_000, confidence=0.99)
print(large)

# %% [markdown]
# A delta above a quarter means: with that probability, anything may happen. The package therefore refuses the
# published mechanism under a pure epsilon, and takes the two-sided noise instead
# ([proof](../pgmpy_dp/private/noise/matrix.py)):

# %%
try:
    PrivateGraphicalLasso(row_norm=1.0, epsilon=1.0, mechanism="one-sided-wishart").fit(np.zeros((4, 3)))
except ValueError as refusal:
    print(refusal)

# %% [markdown]
# **One run instead of a thousand.** If a fit takes an hour, nobody runs it a thousand times. Put many made-up
# *canaries* into one dataset, each by the toss of a coin. Run the learner once, and guess for the clearest of them
# whether they were in. Under epsilon-DP at most a share 1/(1 + exp(-epsilon)) of the guesses can be right, up to chance
# (Steinke, Nasr and Jagielski 2023). Here every canary has a cell of its own in one large table.

# %%
n_canaries = 2000
names = {"canary": list(range(n_canaries))}
lonely = nx.Graph()
lonely.add_node("canary")
included = rng.random(n_canaries) < 0.5
canaries = pd.DataFrame({"canary": np.flatnonzero(included)})
for name, true_epsilon in (("honest", 1.0), ("half the noise", 2.0)):
    learner = NaiveMLE(epsilon=true_epsilon, state_names=names).fit(lonely, canaries)
    counts = learner.release_.values[0].astype(float)
    one = one_run_audit(included, counts, n_guesses=1000)
    print(
        f"{name:15} {one.n_correct} of {one.n_guesses} guesses right (1-DP allows about "
        f"{one.n_guesses / (1 + math.exp(-1)):.0f}, give or take 14); epsilon >= {one.epsilon_bound:.2f}"
    )
one_run_bound = one.epsilon_bound

# %% [markdown]
# One run catches half the noise. The price is a weaker statement per guess, and it needs a learner that holds canaries
# apart.
#
# **All of them.** The package comes with such an attack on every one of its estimators and mechanisms; here are
# three. `audit_catalogue()` runs them all, in some minutes ([guarantees](../docs/guarantees.md)).

# %%
print(f"{len(catalogue())} attacks in the catalogue, for example")
for found in audit_catalogue(["NaiveMLE(epsilon, add_remove, one run)", "noisy_argmax(2-DP)", "distance_test"]):
    verdict = "holds so far" if found.holds else "BROKEN"
    print(f"{found.name:40} claim {found.guarantee!s:12} epsilon >= {found.bound:.2f}, {verdict}")

# %% [markdown]
# Which of the statements above could fail by bad luck? An honest learner is called "broken" at 99 % confidence in up to
# one audit of a hundred. So the checks below ask for more. Honest learners must not be refuted at an error of one in
# ten million. What is broken is caught with a probability far above 1 - 10^-6.


# %%
def refuted_beyond_doubt(found: AuditReport) -> bool:
    """Whether the event refutes the claimed epsilon with a probability of error below 1e-7."""
    p, q = limits(found.event.hits, found.event.trials, 3e-9)
    return p > math.exp(found.guarantee.epsilon) * q


assert not refuted_beyond_doubt(report)
assert not refuted_beyond_doubt(repaired)
assert not caught.holds
assert not broken.holds
assert needed > 0.15
assert one_run_bound > 1.0

# %% [markdown]
# ## 7. Save: the reports
#
# A report is worth keeping beside the release it is about: what was claimed, attacked and measured.

# %%
reports = {
    "NaiveMLE": report,
    "NaiveMLE with half the noise": caught,
    "one-sided Wishart, as published": broken,
    "double Wishart": repaired,
}
measured = pd.DataFrame(
    {
        "claim": [str(found.guarantee) for found in reports.values()],
        "adjacency": [found.adjacency for found in reports.values()],
        "epsilon at least": [round(found.bound, 3) for found in reports.values()],
        "confidence": [found.confidence for found in reports.values()],
        "trials": [found.event.trials for found in reports.values()],
        "holds so far": [found.holds for found in reports.values()],
    },
    index=pd.Index(reports, name="learner"),
)
measured.to_csv(OUT / "audits.csv")
print(measured.drop(columns=["adjacency", "confidence"]))
print(f"Wrote {', '.join(sorted(path.name for path in OUT.iterdir()))} to {OUT.relative_to(ROOT)}")

# %% [markdown]
# ## Exercises
#
# Answers unfold. They ran with this page.
#
# **1.** Change the number of trials. A learner claims epsilon = 1 and has 1.3. How many trials catch it? Draw its noise
# by NumPy, since fits would take long.


# %% tags=["hide-cell"]
def one_cell(true_epsilon: float):
    """Noisy count of the cell with five records (dataset 0) or four (dataset 1), in doubles: for attacks only."""
    return lambda dataset, count: 5.0 - dataset + rng.laplace(scale=1 / true_epsilon, size=(count, 1))


for trials in (300, 1_000, 10_000, 100_000):
    found = audit_scores(
        one_cell(1.3), lambda releases: releases[:, 0], neighbours, PureDP(1.0), trials=trials, confidence=0.99
    )
    print(f"{trials:7,} trials: epsilon >= {found.bound:.2f}, {'holds so far' if found.holds else 'caught'}")
print("The nearer the lie is to the truth, the more trials it takes: four times as many for half the difference.")

# %% [markdown]
# **2.** Change the adjacency. Noise for epsilon = 1 under `add_remove` is attacked by a replaced record, under a claim
# of 1. (`table_neighbours` takes `adjacency="replace_one"`. Draw the noise by NumPy again, for many trials.)

# %% tags=["hide-cell"]
replaced = table_neighbours(states, n=5, adjacency="replace_one")


def two_cells(dataset: int, count: int) -> np.ndarray:
    """Both cells that a replacement changes, each with noise of scale 1."""
    exact = np.array([5.0, 0.0]) + dataset * np.array([-1.0, 1.0])
    return exact + rng.laplace(size=(count, 2))


found = audit_scores(
    two_cells, lambda releases: releases @ [1.0, -1.0], replaced, PureDP(1.0), trials=20_000, confidence=0.99
)
print(f"epsilon >= {found.bound:.2f}: {'holds so far' if found.holds else 'broken'}")
print("A replacement moves two cells. Noise for one of them gives 2, so the claim of 1 falls.")
assert not found.holds

# %% [markdown]
# **3.** Look in the wrong place: attack half the noise by the count of a cell that no record is in.


# %% tags=["hide-cell"]
def elsewhere(dataset: int, count: int) -> np.ndarray:
    """The cell in question with half its noise, and an empty one."""
    return np.array([5.0 - dataset, 0.0]) + rng.laplace(scale=0.5, size=(count, 2))


for name, cell in (("the right cell", 0), ("the empty cell", 1)):
    found = audit_scores(
        elsewhere, lambda releases, at=cell: releases[:, at], neighbours, PureDP(1.0), trials=20_000, confidence=0.99
    )
    print(f"{name}: epsilon >= {found.bound:.2f}, {'holds so far' if found.holds else 'broken'}")
print("The same mechanism passes an attack that looks elsewhere. Say with each audit what the attacker looked at.")

# %% [markdown]
# **4.** Change the number of guesses of the one-run audit: 100, 500, 1,000 and all 2,000. Which bound may you report?

# %% tags=["hide-cell"]
for guesses in (100, 500, 1000, 2000):
    one = one_run_audit(included, counts, n_guesses=guesses)
    print(f"{guesses:5,} guesses: {one.n_correct / guesses:.0%} right, epsilon >= {one.epsilon_bound:.2f}")
print("The one whose number was fixed beforehand: to take the best one is to try until it looks right. With discrete")
print("Laplace noise all guesses are equally sure, and more of them show more. With Gaussian noise the clearest are")
print("the surest, and the last ones are hardly better than a coin.")

# %% [markdown]
# ## What went wrong for others
#
# * **A broken sampler in a good library.** OpenDP before 0.14.2 drew discrete Laplace and Gaussian noise whose variance
#   is 1 to 3 % too large. No attack on epsilon sees that; a test of the law does.
# * **Doubles.** Laplace noise in floating point shows in its last bits what it was added to (Mironov 2012). An attack
#   on counts passes it. `tests/auditing` has one on the bits.
# * **A rule that holds by every run.** "Accept if either of two sums fits" was our own first ledger. No attack found
#   that it overspends: exact sums did. An audit cannot replace a proof ([auditing](../docs/auditing.md)).
