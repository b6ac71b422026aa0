# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Mixtures without a radius: groups that may be anywhere
#
# **Afterwards you can** learn the centres of groups without a bound on where they are, read a status, and say how many
# records that takes. **Time:** 30 minutes with the exercises, half a minute of computing. **You need** the
# [primer](00_what_the_promise_means.py) and to know what k-means does. The pictures need matplotlib:
# `pip install '.[plot]'`.
#
# Private clustering usually begins with a promise: "all records lie within this radius". The noise is proportional to
# the radius, so a generous promise ruins the answer. A tight one can only come from looking at the records, which is
# not private. `PrivateGaussianMixture` needs no radius. It learns the centres of k round groups wherever they are, or
# reports, with a status, that it found none.
#
# All records here are made up. Background: [Gaussian mixtures](../docs/mixtures.md).

# %% tags=["hide-input"]
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

warnings.filterwarnings("ignore", message="`pgmpy", category=FutureWarning)
warnings.filterwarnings("ignore", message="IProgress not found")  # of notebooks without ipywidgets
from pgmpy import config
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans

config.set_show_progress(False)

from pgmpy_dp import Budget, Ledger, PrivateVectors, Release
from pgmpy_dp.estimators import PrivateGaussianMixture
from pgmpy_dp.mixtures.published.pipeline_study import study_pipeline
from pgmpy_dp.plotting import plot_error
from pgmpy_dp.theory import program_noise, required_records

HERE = Path(__file__).resolve().parent if "__file__" in globals() else Path.cwd()
ROOT = next(folder for folder in (HERE, *HERE.parents) if (folder / "data" / "SOURCES.md").exists())
OUT = ROOT / "build" / "tutorials-output" / "09"
OUT.mkdir(parents=True, exist_ok=True)

# %% [markdown]
# ## 1. Declare: k, separation, scale and the unit
#
# Records of numbers have no list of states. What is public instead are three numbers:
#
# * `n_components`, the number of groups;
# * `separation`, the least distance between two centres *that matters to you*. Take it from the question ("machines
#   that differ by less than this are the same to us"). A number below the true distance is right too, but asks for more
#   records;
# * `scale`, the standard deviation of a column within a group, if it is known, say from the instrument. If it is not,
#   leave it out: it is then estimated for a tenth of the budget.
#
# There is no bound on where the centres are, and no centring. Our records are readings of four sensors, one record
# for each owner of a machine. Each sensor has a standard error of 1, which its maker states, and an offset which
# nobody knows. The unit of protection is a record, so an owner of several machines would have to hand in one record,
# such as the mean.

# %%
k, d, separation, scale = 3, 4, 8.0, 1.0
budget = Budget(epsilon=1.0, delta=1e-6)
arguments = {"separation": separation, "scale": scale, "epsilon": budget.epsilon, "delta": budget.delta}

rng = np.random.default_rng(2026)  # public: everything is made up


def made_up_centres(shift: float = 0.0) -> np.ndarray:
    """Three centres that are `separation` apart, moved by `shift` in a random direction, shape (k, d)."""
    turn, direction = np.linalg.qr(rng.normal(size=(d, d)))[0], rng.normal(size=d)
    return separation / 2**0.5 * np.eye(k, d) @ turn + shift * direction / np.linalg.norm(direction)


def made_up_records(centres: np.ndarray, shares: list[float], n: int) -> np.ndarray:
    """Records around centres, shape (n, d)."""
    return centres[rng.choice(len(centres), n, p=shares)] + scale * rng.normal(size=(n, d))


def matching_error(means: np.ndarray | None, true: np.ndarray) -> float:
    """Distance of the worst mean from the true centre that it is matched with; infinite where there are no means."""
    if means is None or np.shape(means) != np.shape(true):
        return float("inf")
    distances = cdist(means, true)
    return float(distances[linear_sum_assignment(distances)].max())


equal = [1 / k] * k
centres = made_up_centres(shift=1e4)
records = made_up_records(centres, [0.5, 0.3, 0.2], 20_000)
sensors = ["A", "B", "C", "D"]
table = pd.DataFrame(records, columns=sensors)
print(pd.DataFrame(centres, columns=sensors).round(1).to_string(index=False))

# %% [markdown]
# A delta above 0 is needed. Under a pure epsilon no method works without a bound: it would have to leave some
# probability everywhere, and there are infinitely many places. Asking for it is refused before anything is spent.

# %%
try:
    PrivateGaussianMixture(k, separation=separation, scale=scale, epsilon=1.0).fit(table)
except ValueError as refusal:
    print(refusal)

# %% [markdown]
# ## 2. Preview: how many records does it take?
#
# What would a promise of a radius have cost? A noisy mean of m records in a ball of radius R has noise of about
# R/(epsilon x m) in each column, or more. On paper, for a group of 1,000 records and epsilon = 1:

# %%
radii = pd.Series([10.0, 100.0, 1e4, 1e6], name="radius")
print(pd.DataFrame({"radius": radii, "noise of a centre, in scales": radii / 1000}).to_string(index=False))

# %% [markdown]
# With a ball that surely holds readings of 10,000 or so, the noise is ten times as large as the groups: the centres
# are lost. Without a radius the place does not matter, so we can rehearse on made-up records *around zero* and learn
# what will happen around 10,000. How often are centres found, and how far is the worst one from the truth (1 is one
# scale)?

# %%
sizes = [300, 500, 700, 1000, 2000, 5000, 20_000]
runs = []
for n in sizes:
    for _ in range(8):
        where = made_up_centres()
        rows = made_up_records(where, equal, n)
        fit = PrivateGaussianMixture(k, **arguments).fit(rows)
        exact = KMeans(k, n_init=4, random_state=0).fit(rows).cluster_centers_
        runs.append((n, fit.status_, matching_error(fit.means_, where), matching_error(exact, where)))
runs = pd.DataFrame(runs, columns=["records", "status", "private", "k-means without privacy"])
with_centres = runs["status"] == "found"
print(with_centres.groupby(runs["records"]).mean().rename("share of runs with centres"))
print("\nwhat the others said\n" + runs.loc[~with_centres, "status"].value_counts().to_string())

# %%
errors = runs.set_index("records")[["private", "k-means without privacy"]].replace(np.inf, np.nan)
ax = plot_error(errors, ylabel="distance of the worst centre, in scales")
_ = ax.set_title("epsilon = 1, delta = 1e-6, 3 groups, 4 columns (runs that found centres)")

# %% [markdown]
# Below a few hundred records there is no answer, and the fit says so. Around the threshold it depends on the run. Above
# it privacy's part of the error falls like 1/n. In the end only the sampling error is left, which falls like 1/sqrt(n).
# We have 20,000.
#
# ## 3. Spend
#
# One fit is one charge of (epsilon, delta). A rho converts to epsilon and nine tenths of delta. The last tenth pays for
# the thresholds above which parts of the space are released.

# %%
private = PrivateVectors(table, sensors, ledger=Ledger(budget))
mixture = PrivateGaussianMixture(k, **arguments).fit(private)
print(mixture.privacy_)
print("status:", mixture.status_)
print(private.ledger)

# %% [markdown]
# ## 4. Fit: what a status means
#
# `status_` is "found", or says what was not there. Either way it is an *answer*, is just as private, and costs the
# same: "not found" tells something about the records, too. `means_` is then None, and `predict` refuses.
#
# Here is the same fit with too few records, with one group instead of three, with groups declared further apart than
# they are, and with other declarations:

# %%
one_group = centres[0] + rng.normal(size=(5000, d))
cases = {
    "as above": (records, {}),
    "20 records": (records[:20], {}),
    "one group only": (one_group, {}),
    "separation 20 instead of 8": (records, {"separation": 20.0}),
    "four groups declared": (records, {"n_components": 4}),
    "two groups declared": (records, {"n_components": 2}),
    "at most six, by the cells": (records, {"n_components": "auto", "max_components": 6}),
    "scale left out": (records, {"scale": None}),
}
statuses = {}
for name, (rows, changed) in cases.items():
    fit = PrivateGaussianMixture(**{"n_components": k, **arguments, **changed}).fit(rows)
    statuses[name] = fit.status_
    print(f"{name:27} {fit.status_}" + (f", scale {fit.scale_:.2f}" if changed.get("scale", 1) is None else ""))

# %% [markdown]
# Read the table with care. Declaring more groups than there are, or a greater distance, usually ends in "not found".
# Declaring *fewer* does not: two centres are found where there are three groups. The status adds that one of
# them is wider than one group can be. If you do not know k, `n_components="auto"` takes as many as the released cells
# show, up to a public bound.
#
# All of it follows from what was released, and can be read again from the release, at no cost:

# %%
again = PrivateGaussianMixture(k).fit_release(mixture.release_)
assert again.status_ == mixture.status_
print(again)

# %% [markdown]
# ## 5. Query: centres, groups of new records, synthetic records

# %%
print(pd.DataFrame(mixture.means_, columns=sensors).assign(weight=mixture.weights_).round(2).to_string(index=False))

# %% [markdown]
# `predict` and `score_samples` apply the released mixture to whatever they are given, without noise. For records that
# are public or your own that is fine; their results on private records are private themselves.

# %%
newcomer = pd.DataFrame([centres[0] + 0.5], columns=sensors)
probabilities = mixture.predict_proba(newcomer)[0]
print("a new machine belongs to group", mixture.predict(newcomer)[0], "- probabilities", probabilities.round(3))

synthetic, _ = mixture.sample(1500, random_state=0)
first, second = np.linalg.svd(mixture.means_ - mixture.means_.mean(axis=0))[2][:2]  # the plane of the centres
origin = mixture.means_.mean(axis=0)


def in_plane(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates of points in the plane of the released centres."""
    return (points - origin) @ first, (points - origin) @ second


figure, ax = plt.subplots(figsize=(6, 5), layout="constrained")
ax.scatter(*in_plane(synthetic), s=5, color="0.7", label="synthetic records, from the released mixture")
ax.scatter(*in_plane(centres), s=130, marker="o", facecolor="none", edgecolor="black", label="true centres (made up)")
ax.scatter(*in_plane(mixture.means_), s=60, marker="x", color="#D55E00", label="released centres")
ax.set_aspect("equal")
ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), fontsize="small")
_ = ax.set(title="in the plane of the released centres", xlabel="scales", ylabel="scales")

# %% [markdown]
# ## 6. Check: against the truth, and further out
#
# The truth is known because the records are made up; k-means without privacy is run on them for the same reason.

# %%
exact = KMeans(k, n_init=4, random_state=0).fit(records).cluster_centers_
print(f"worst centre: private {matching_error(mixture.means_, centres):.3f} scales from the truth, ", end="")
print(f"without privacy {matching_error(exact, centres):.3f}")

# %% [markdown]
# How far is far? We move the same groups away from zero:

# %%
moved = {}
for shift in (0.0, 1e4, 1e6, 1e9, 1e12):
    there = made_up_centres(shift)
    rows = made_up_records(there, equal, 5000)
    fit = PrivateGaussianMixture(k, **arguments).fit(rows)
    moved[shift] = matching_error(fit.means_, there)
    print(f"shift {shift:.0e}: {fit.status_}, worst centre {moved[shift]:.3f}")

# %% [markdown]
# Up to a billion scales the distance from zero makes no difference. At 10^12 nothing may be found any more, because of
# arithmetic and not of privacy. A double has 16 digits. Squared distances between such numbers keep hardly any of them,
# and k-means inside the blocks suffers from that.
#
# The checks below fail with a probability far below one in a million. Each asks for the best of several runs, or for
# noise within many standard deviations.

# %%
large = runs[runs["records"] >= 5000]
assert large["private"].min() < 0.5
assert min(moved[shift] for shift in (0.0, 1e4, 1e6)) < 0.5
assert statuses["20 records"] != "found"
assert "looks too small" in statuses["two groups declared"]

# %% [markdown]
# ## 7. Save: the release
#
# The release has the centres, the noisy numbers of records in each group, the status and all public arguments. It
# needs no records to be read.

# %%
mixture.release_.save(OUT / "mixture.npz")
private.ledger.save(OUT / "ledger.json")
pd.DataFrame(synthetic, columns=sensors).to_csv(OUT / "synthetic.csv", index=False)
loaded = PrivateGaussianMixture(k).fit_release(Release.load(OUT / "mixture.npz"))
assert loaded.means_ is None or np.array_equal(loaded.means_, mixture.means_)
print(f"Wrote {', '.join(sorted(path.name for path in OUT.iterdir()))} to {OUT.relative_to(ROOT)}")

# %% [markdown]
# ## Beside it: the published algorithm, step by step
#
# `PrivateGaussianMixture` divides records into blocks, and blocks vote. Algorithm 6.5 of Chen et al. (2023) has no
# blocks: it looks at all records together. Here it is on made-up records, with its noise times a factor of our choice.
# **It is a study and not private**: it takes exact statistics, and noise whose seed is public.
#
# 1. A convex program links records that belong together. One record cannot change the links by much.
# 2. A test counts the records without links, with noise. Where that is above a limit, nothing else is released.
# 3. The mean of the records that a record is linked to estimates its centre. Some of these estimates are drawn, and get
#    noise.
# 4. They are projected to a low dimension, where they have more than 24 columns.
# 5. Space is cut into cells, at random places. Cells that hold many of the noisy estimates are kept.
# 6. The noisy means of the three fullest are the centres.
#
# Ninety records in two columns, their three centres 32 scales apart (below 16 or so the program links too weakly):

# %%
apart, few = 32.0, 90
corners = apart * np.array([[0.0, 0.0], [1.0, 0.0], [0.5, 0.75**0.5]])
made_up_few = corners[np.arange(few) % 3] + rng.normal(size=(few, 2))
links = study_pipeline(made_up_few, 3, 1.0, apart, 1.0, 1e-6, rng).weights
same = np.arange(few)[:, np.newaxis] % 3 == np.arange(few) % 3
print(f"step 1: links within a group {links[same].min():.2f} to 1, across {links[~same].max():.2f} at most")

studies, rows = {}, []
for noise in (1.0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-6):
    repeated = [
        study_pipeline(made_up_few, 3, 1.0, apart, 1.0, 1e-6, np.random.default_rng(seed), noise=noise, weights=links)
        for seed in range(20)
    ]
    right = [study for study in repeated if matching_error(study.means, corners) < 2]
    studies[noise], amount = (right or repeated)[0], repeated[0].noise
    rows.append((noise, amount.test.limit, amount.row_error, amount.threshold, f"{len(right)} of 20"))
columns = ["noise times", "limit of the test", "noise of an estimate", "estimates a cell needs", "centres found"]
print(pd.DataFrame(rows, columns=columns).to_string(index=False, float_format="{:g}".format))

# %% [markdown]
# With the whole noise of epsilon = 1 the test cannot refuse, as its limit is far above 90. The noise of an estimate is
# more than a thousand scales, and no cell can hold what it needs. A thousandth of the noise is near the threshold.
#
# The picture has the noisy estimates as grey dots, and the true centres as circles. Grey lines are the walls of cells,
# where they can be told apart, and crosses the centres that come out.

# %%
figure, axes = plt.subplots(1, 3, figsize=(12, 4), layout="constrained")
for ax, noise in zip(axes, (1.0, 1e-2, 1e-6), strict=True):
    cells, width = studies[noise].cells, studies[noise].noise.width
    moved_by = cells.places[0] - cells.rows[0]  # the shift of the grid
    drawn = np.vstack([cells.rows, corners])
    middle, reach = (drawn.max(axis=0) + drawn.min(axis=0)) / 2, np.ptp(drawn, axis=0).max() / 2 + width / 2
    ax.scatter(*cells.rows.T, s=8, color="0.5")
    ax.scatter(*corners.T, s=130, marker="o", facecolor="none", edgecolor="black")
    if studies[noise].means is not None:
        ax.scatter(*studies[noise].means.T, s=60, marker="x", color="#D55E00")
    for wall in width * np.arange(-20, 20) if reach < 10 * width else ():
        ax.axvline(wall - moved_by[0], color="0.85", linewidth=1, zorder=0)
        ax.axhline(wall - moved_by[1], color="0.85", linewidth=1, zorder=0)
    ax.set(xlim=(middle[0] - reach, middle[0] + reach), ylim=(middle[1] - reach, middle[1] + reach), aspect="equal")
    ax.set_title(f"noise times {noise:g}: " + ("no centres" if studies[noise].means is None else "centres"))
    ax.set_xlabel("scales")
axes[0].set_ylabel("scales")

# %% [markdown]
# Where does the number of records come from? The more there are, the less does one of them change what another is
# linked to. Below some 10^17 nothing is proved, and the whole noise stands for links of which one record could change
# half. Above, the noise of an estimate falls slowly, like 1 over the fourth root of n, until it fits between the walls
# of a cell.

# %%
enough = required_records(3, 2, apart, 1.0, 1e-6)
sizes_of = [90, 10**10, 10**20, int(enough)]
amounts = [program_noise(n, 3, 2, apart, 1.0, 1e-6) for n in sizes_of]
table = {
    "records": [f"{n:.0e}" for n in sizes_of],
    "proved": [amount.proved for amount in amounts],
    "noise of an estimate": [amount.row_error for amount in amounts],
    "width of a cell": [amount.width for amount in amounts],
}
print(pd.DataFrame(table).to_string(index=False, float_format="{:.3g}".format))
print(f"three centres in two columns need {enough:.0e} records; blocks had them in 2,000, in section 2")
assert studies[1.0].means is None
assert studies[1e-6].means is not None

# %% [markdown]
# Blocks need no such proof: a record is in one block and changes one vote, wherever it is ([the
# program](../docs/mixture-program.md), [blocks](../docs/mixtures.md)).

# %% [markdown]
# ## Exercises
#
# Answers unfold. They ran with this page.
#
# **1.** Change the separation that you declare to 4, and to 2. The true one is 8. Is an answer still found, in 1,000,
# 3,000 and 20,000 records?

# %% tags=["hide-cell"]
for declared in (2.0, 4.0, 8.0):
    for n in (1000, 3000, 20_000):
        fit = PrivateGaussianMixture(k, **{**arguments, "separation": declared}).fit(records[:n])
        print(f"declared {declared:.0f}, {n:6,} records: {fit.status_}")
print("A smaller separation is a right statement too, and asks for finer cells, with fewer records in each.")

# %% [markdown]
# **2.** Change the budget: epsilon = .3 instead of 1. About how many records are then worth 1,000 at epsilon = 1?

# %% tags=["hide-cell"]
for epsilon, n in ((1.0, 1000), (0.3, 1000), (0.3, 3400)):
    fits = [PrivateGaussianMixture(k, **{**arguments, "epsilon": epsilon}).fit(records[:n]) for _ in range(4)]
    print(f"epsilon = {epsilon}, {n:5,} records: found in {sum(fit.status_ == 'found' for fit in fits)} of 4 runs")
print("1,000/.3, about 3,400: what counts is again the product of epsilon and n.")

# %% [markdown]
# **3.** Change the scale: declare 2, or .5, where it is 1.

# %% tags=["hide-cell"]
for declared in (0.5, 1.0, 2.0):
    fit = PrivateGaussianMixture(k, **{**arguments, "scale": declared}).fit(records)
    print(f"scale {declared}: {fit.status_}, worst centre {matching_error(fit.means_, centres):.3f}")
print("The scale decides what is called one group and how far records count. Leave it out where nobody knows it.")

# %% [markdown]
# **4.** An owner hands in three records, one for each machine. What is promised to the owner?

# %% tags=["hide-cell"]
print(f"epsilon = {3 * budget.epsilon:.0f}, and a delta more than three times as large: this estimator takes no unit.")
print("One record for each owner, such as the mean of the machines, keeps the promise.")

# %% [markdown]
# ## What went wrong for others
#
# * **A radius from the records.** The noise of a ball is in proportion to its radius, so a tight one is tempting. Taken
#   from the records it publishes the outermost of them.
# * **Theorems that need more records than there are.** With every constant of Chen et al. (2023, Theorem 6.3) computed,
#   its release is accurate from some 10^20 to 10^28 records on. The section before the exercises shows why.
# * **Cubes for cells.** Our own first design cut space into cubes. A small cloud at a corner of theirs falls into 2^d
#   cells; at a corner of the lattice that is used now, into d + 1. With 32 columns cubes found 6 mixtures of 10, the
#   lattice 10.
# * **Too small a k.** Two centres can be "found" where there are three groups: read the whole status.
