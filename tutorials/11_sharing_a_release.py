# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Sharing a release: what may leave the room, and what others can do with it
#
# **Afterwards you can** say which files may be handed over, keep a ledger in a file, and work with somebody else's
# release: fit, ask with intervals, sample, and combine. **Time:** 40 minutes with the exercises, half a minute of
# computing. **You need** the [first tutorial](01_first_private_network.py). The pictures need matplotlib:
# `pip install '.[plot]'`.
#
# Somebody who holds private records (the *curator*) pays for one release. After that nobody needs the records any more.
# Whoever has the release (a *reader*) can fit models, compute intervals and draw synthetic records, as often as they
# like, at no further cost. This tutorial plays both roles, and says which files may be handed over and which may not.
#
# Background: [guarantees](../docs/guarantees.md), [known limits](../docs/known-limits.md).

# %% tags=["hide-input"]
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

# pgmpy.inference and pgmpy.readwrite import modules that pgmpy itself deprecates.
warnings.filterwarnings("ignore", message="`pgmpy", category=FutureWarning)
warnings.filterwarnings("ignore", message="IProgress not found")  # of notebooks without ipywidgets
from pgmpy import config
from pgmpy.inference import BeliefPropagation
from pgmpy.readwrite import UAIReader, UAIWriter

config.set_show_progress(False)

from pgmpy_dp import (
    Budget,
    BudgetExceeded,
    Ledger,
    MarkovNetwork,
    PrivateTable,
    Release,
    Schema,
    combine_synthetic,
    plan,
)
from pgmpy_dp.estimators import CollectiveEM, CollectiveMAP, NaiveMLE
from pgmpy_dp.plotting import plot_ledger, plot_marginals

HERE = Path(__file__).resolve().parent if "__file__" in globals() else Path.cwd()
ROOT = next(folder for folder in (HERE, *HERE.parents) if (folder / "data" / "SOURCES.md").exists())
OUT = ROOT / "build" / "tutorials-output" / "11"
ROOM, PUBLIC = OUT / "curators-room", OUT / "published"
for folder in (ROOM, PUBLIC):
    folder.mkdir(parents=True, exist_ok=True)
    for file in folder.iterdir():  # of an earlier run of this tutorial
        file.unlink()

# %% [markdown]
# ## 1. Declare the schema, the unit and the graph
#
# The curator has census records, one for each person; a record is what is protected. Schema and graph are public and
# written down without a look at the records. To keep the picture interesting the curator has only 10,000 of the
# records. The rest stands in for the population, for the check at the end.

# %%
graph = MarkovNetwork(
    [
        ("age", "marital-status"),
        ("sex", "marital-status"),
        ("education", "occupation"),
        ("education", "income"),
        ("occupation", "income"),
        ("marital-status", "income"),
        ("sex", "income"),
    ]
)
schema = Schema.from_json(ROOT / "data" / "adult_disc.domain.json").subset(graph.nodes)
print(schema)

records = pd.read_csv(ROOT / "data" / "adult_disc.csv.gz", dtype=str, keep_default_na=False)
chosen = np.random.default_rng(1994).permutation(len(records)) < 10_000
population, records = records[~chosen], records[chosen]

# %% [markdown]
# ## 2. Preview what epsilon buys
#
# `plan` knows the schema, the graph, the budget and a rough number of records. It makes up records and never sees
# a real one, so it may be run as often as one likes.

# %%
print(plan(schema, Budget(epsilon=0.4), 10_000, graph=graph, simulations=3).details)

# %% [markdown]
# ## 3. Spend, with a ledger that outlives the process
#
# A ledger in memory forgets what was spent when the program ends. `Ledger.open` keeps it in a file: every charge is
# on the disk, under a lock between processes, *before* noise is drawn. If the machine dies in between, the charge was
# in vain, but it is never forgotten. (This tutorial starts a new file at each run, which nobody should do with real
# records.)

# %%
table = PrivateTable(records, schema, ledger=Ledger.open(ROOM / "ledger.json", Budget(epsilon=1.0)))
estimator = CollectiveMAP(epsilon=0.4).fit(graph, table)
print(estimator.privacy_)
print(f"estimated number of records: {estimator.n_records_:,.0f} ± {estimator.n_records_sd_:,.0f}")

# %% [markdown]
# Another program, on another day, opens the same file and finds what is left. It cannot overspend:

# %%
another_day = Ledger.open(ROOM / "ledger.json")
print("left:", another_day.account.left)
try:
    NaiveMLE(epsilon=0.7).fit(graph, PrivateTable(records, schema, ledger=another_day))
except BudgetExceeded as refusal:
    print(refusal)
assert len(Ledger.open(ROOM / "ledger.json").entries) == 1
ax = plot_ledger(another_day)

# %% [markdown]
# The curator now writes three files. The release is what was paid for: one noisy table for each edge, with the public
# facts around it. The model was learned from it. The ledger says what was spent on these records in all.

# %%
estimator.release_.save(PUBLIC / "release.npz")
estimator.model_.save(PUBLIC / "model.npz")
another_day.save(PUBLIC / "ledger.json")
with np.load(PUBLIC / "release.npz") as content:
    print({name: content[name].shape for name in content.files if name != "header"})
print(estimator.release_.values[0][:2])

# %% [markdown]
# These are noisy counts: whole numbers, some of them below zero. No records are among them. From here on we are the
# reader: the table is gone. (The records themselves are kept, for the check in step 6 only.)

# %%
del table, estimator

# %% [markdown]
# ## 4. Fit again, by other methods, at no cost
#
# A release is a measurement. What is computed from it is post-processing, which no privacy guarantee has to fear. So
# the reader may compare estimators, change priors, or apply a method that will be invented next year.

# %%
release = Release.load(PUBLIC / "release.npz")
print(release.guarantee, "under", release.adjacency, "by", release.mechanism)
estimators = {
    "NaiveMLE": NaiveMLE(),
    "CollectiveEM": CollectiveEM(),
    "CollectiveMAP": CollectiveMAP(),
    "CollectiveMAP, normal prior": CollectiveMAP(prior_tail=float("inf")),
}
for name, again in estimators.items():
    again.fit_release(graph, release)
    rich = again.model_.marginal(["income"]).get_value(income=">50K")
    print(f"{name:28} P(income > 50K) = {rich:.4f}")

# %% [markdown]
# ## 5. Query: probabilities, intervals, synthetic records
#
# The published model is a pgmpy model with its privacy record attached. It answers like any other.

# %%
model = MarkovNetwork.load(PUBLIC / "model.npz")
print(model.privacy, "\n")
evidence = {"education": "Doctorate"}
print(BeliefPropagation(model).query(["income"], evidence=evidence, show_progress=False))

# %% [markdown]
# How sure is that? `CollectiveMAP.posterior` draws models that the release does not contradict. Their spread accounts
# for both sources of error: the sampling of the records from the population, and the privacy noise. It [takes the
# graph for the truth](../docs/intervals.md): intervals hold for the tables that were released, and elsewhere as far as
# the graph is right.

# %%
model.posterior = posterior = estimators["CollectiveMAP"].posterior(100, random_state=0)
levels = ("Bachelors", "Doctorate", "Preschool")
for education in levels:
    found = model.ask("income", {"education": education}).to_frame().set_index("income").loc[">50K"]
    print(
        f"P(income > 50K | {education}): {found.probability:.2f}, 90 % interval {found.lower:.2f} to {found.upper:.2f}"
    )

# %% [markdown]
# Few people stopped at preschool, so noise and chance leave that interval wide. A number without its interval would
# have looked as good as the others. (The `random_state` here repeats the *draws*, not the privacy noise, which is in
# the release already. It hides nothing and reveals nothing.)
#
# Synthetic records are for tools that want a table. One file is convenient, but too sure of itself. An analyst who
# treats it as real records sees neither the privacy noise nor the model's uncertainty. Ten files, each from a model of
# its own, show both. `combine_synthetic` joins ten analyses into one interval.
# It holds for what the release measured, such as this share. It does not hold for coefficients of a regression: of
# level .9 such intervals cover .72 of the time. `network.regress` asks the records for these.

# %%
synthetic = model.sample(10_000, random_state=0)
synthetic.to_csv(PUBLIC / "synthetic.csv.gz", index=False)

# Read like any real file: as text, with no word taken for a missing value.
read_back = pd.read_csv(PUBLIC / "synthetic.csv.gz", dtype=str, keep_default_na=False)
assert read_back.equals(synthetic.astype(str))


def share_of_rich(rows: pd.DataFrame) -> tuple[float, float]:
    """The analysis: the share of people with a doctorate who earn more than 50K, and its usual variance."""
    rich = rows.loc[rows["education"] == "Doctorate", "income"] == ">50K"
    return rich.mean(), rich.mean() * (1 - rich.mean()) / len(rich)


one, variance = share_of_rich(synthetic)
several = [share_of_rich(rows) for rows in posterior.sample(10_000, n_sets=10, random_state=0)]
combined = combine_synthetic([share for share, _ in several], [usual for _, usual in several])
print(f"one file:  {one:.3f} ± {1.645 * variance**0.5:.3f}")
print(f"ten files: {combined.estimate:.3f}, 90 % interval {combined.lower:.3f} to {combined.upper:.3f}")

# %% [markdown]
# Other programs read other formats. UAI is the format of inference competitions. It has no names for variables and
# states. pgmpy orders the variables by their number of states, as text, and then by name. So publish a key along with
# it. `rescaled()` avoids exponents, at which pgmpy's own reader stops.

# %%
writer = UAIWriter(model.rescaled())
writer.write(PUBLIC / "model.uai")
order = sorted(writer.get_domain().items(), key=lambda item: (item[1], item[0]))
key = pd.DataFrame(
    [(f"var_{k}", name, "|".join(model.states[name])) for k, (name, _) in enumerate(order)],
    columns=["uai", "variable", "states"],
)
key.to_csv(PUBLIC / "model.uai.key.csv", index=False)

foreign = BeliefPropagation(UAIReader(PUBLIC / "model.uai").get_model())
for uai, name in zip(key["uai"], key["variable"], strict=True):
    answer = foreign.query([uai], show_progress=False).values
    assert np.allclose(answer, model.marginal([name]).values, atol=1e-6)
print(key.to_string(index=False, max_colwidth=60))

# %% [markdown]
# ## 6. Check: against the records, and what a seed would give away
#
# The following uses exact statistics, which is right **only because the census data are public**. On the left is each
# cell of the released tables against the other 38,842 records. The right says whether the 90 % intervals hold what they
# promise.

# %%
pairs = [tuple(scope) for scope in release.scopes]
figure, axes = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained")
plot_marginals(model, population, axes[0], scopes=pairs)

cells = []
for pair in pairs:
    interval = model.ask(list(pair)).to_frame()
    truth = population.groupby(list(pair)).size() / len(population)
    exact = [truth.get(states, 0.0) for states in interval[list(pair)].itertuples(index=False, name=None)]
    cells.append(interval.assign(exact=exact)[["lower", "upper", "exact"]])
cells = pd.concat(cells).sort_values("exact", ignore_index=True)
covered = (cells["lower"] <= cells["exact"]) & (cells["exact"] <= cells["upper"])
for inside, colour, text in ((True, "#0072B2", "holds the share"), (False, "#D55E00", "misses it")):
    part = cells[covered == inside]
    axes[1].vlines(part.index, part["lower"].clip(lower=1e-6), part["upper"], color=colour, label=text)
axes[1].plot(cells.index, cells["exact"].clip(lower=1e-6), ".", color="black", markersize=3, label="other records")
axes[1].set(yscale="log", xlabel="cells, by size (at the left: nobody)", ylabel="share (0 is at 1e-6)")
axes[1].set_title("90 % intervals")
axes[1].legend(fontsize="small")
somebody = cells["exact"] > 0
print(
    f"{covered[somebody].mean():.0%} of the intervals of {somebody.sum()} cells hold the share among the other records;"
)
print(f"in {(~somebody).sum()} cells there is nobody, and {covered[~somebody].sum()} of their intervals hold 0")
assert covered.mean() > 0.5

# %% [markdown]
# About nine in ten intervals hold, as they promise, also where the share is a fraction of a permille. Where noise
# hides whether there is anybody, as with preschool and technical support, an interval begins at zero. And the three
# questions of step 5?

# %%
for education in levels:
    there = population[population["education"] == education]
    found = model.ask("income", {"education": education}).to_frame().set_index("income").loc[">50K"]
    print(
        f"{education:10} {found.lower:.2f} to {found.upper:.2f}, other records {(there['income'] == '>50K').mean():.3f}"
    )

# %% [markdown]
# The estimate for preschool is usually far off, and only its interval says so. A handful of people says next to nothing
# against noise of about 25 in each cell. There an interval is only as good as the prior behind it ([known
# limits](../docs/known-limits.md)). Intervals hold on average, not each by itself.
#
# What about the things that do *not* leave the room? One of them looks harmless: the seed of the noise. Suppose a
# curator sets `random_state`, "for reproducibility", and the seed becomes known. The reader runs the same mechanism
# with the same seed on an **empty** table, which gives the noise alone, and subtracts:

# %%
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # the package warns that this is NOT private; it is right
    published = NaiveMLE(epsilon=0.4, state_names=schema, random_state=7).fit(graph, records).release_
    noise = NaiveMLE(epsilon=0.4, state_names=schema, random_state=7).fit(graph, records.iloc[:0]).release_
which = next(k for k, names in enumerate(published.scopes) if set(names) == {"income", "sex"})
names = published.scopes[which]
recovered = published.values[which] - noise.values[which]
counts = records.groupby(list(names)).size()
exact = counts.reindex(pd.MultiIndex.from_product([schema[name] for name in names]), fill_value=0)
print(published)
print(f"{names}: recovered {recovered.ravel()}, exact {exact.to_numpy()}")
assert np.array_equal(recovered.ravel(), exact)

# %% [markdown]
# That gives every count, exactly, whatever epsilon says. So such releases, their ledger and their models are marked
# `NOT PRIVATE` for good.
#
# ## 7. Save: what may be published, and what may not
#
# May be published:
#
# * **the release**: it is what was paid for;
# * **models, intervals, synthetic records**, any number of them: post-processing of the release;
# * **schema, graph, budget, adjacency and all other arguments**: public from the beginning, provided that nobody
#   chose them by looking at the records;
# * **the ledger**: its charges depend on public arguments only, and readers should know the total.
#
# Must stay in the room:
#
# * **the records**, and a `PrivateTable`, which refuses to be copied or pickled for that reason;
# * **exact statistics**: counts, likelihoods on the records, comparisons like the one in step 6. No noise was added;
# * **seeds** that privacy noise was drawn from;
# * **how long a fit took**, and how much memory: they depend on the records and are not protected;
# * **choices made by looking at the records**, such as the better of two models by an exact score. A choice is a
#   statistic, too.
#
# The ledger in the curator's room is the one that counts: `published/ledger.json` is a copy for reading. Whoever fits
# from a copy spends the same budget twice, and nothing can notice.

# %%
for folder in (ROOM, PUBLIC):
    print(f"{folder.relative_to(ROOT)}: {', '.join(sorted(path.name for path in folder.iterdir()))}")
loaded = MarkovNetwork.load(PUBLIC / "model.npz")
assert all(np.array_equal(a.values, b.values) for a, b in zip(model.factors, loaded.factors, strict=True))
assert Release.load(PUBLIC / "release.npz") == release

# %% [markdown]
# ## Exercises
#
# Answers unfold. They ran with this page.
#
# **1.** The curator keeps the seed secret, but it is a small number, "so that we remember it". Find it from the release
# alone. A hint: without noise, all tables have the same total.

# %% tags=["hide-cell"]
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # as above
    for seed in range(20):
        guess = NaiveMLE(epsilon=0.4, state_names=schema, random_state=seed).fit(graph, records.iloc[:0]).release_
        totals = {int((noisy - drawn).sum()) for noisy, drawn in zip(published.values, guess.values, strict=True)}
        if len(totals) == 1:
            print(f"seed {seed}: without its noise all {len(guess.values)} tables have the total {totals.pop():,}")
            break
print("A wrong seed leaves as many totals as tables. Millions of seeds take hours. The system's source has no seed.")
assert seed == 7

# %% [markdown]
# **2.** Change the question: how does the model do on a pair that has a table, and on one that has none?

# %% tags=["hide-cell"]
for pair in (["education", "income"], ["age", "education"]):
    says = model.marginal(pair).values
    counted = population.groupby(pair).size().reindex(pd.MultiIndex.from_product([schema[name] for name in pair]))
    share = counted.fillna(0).to_numpy().reshape(says.shape) / len(population)
    measured = "measured" if graph.has_edge(*pair) else "not measured"
    print(f"{' - '.join(pair)}, {measured}: total variation {0.5 * np.abs(says - share).sum():.3f}")
print("Where no table was bought the model says what its graph implies, which is a guess. Hand the graph over, too.")

# %% [markdown]
# **3.** Change the number of synthetic files that are combined: 2, 5, 10. What happens to the interval?

# %% tags=["hide-cell"]
for m in (2, 5, 10):
    shares, variances = np.array(several[:m]).T
    joined = combine_synthetic(shares, variances)
    print(f"{m:2} files: {joined.estimate:.3f}, {joined.lower:.3f} to {joined.upper:.3f}")
print("Two files say where the answer is, and hardly how sure it is: their spread is one number. Take ten or more.")

# %% [markdown]
# **4.** A reader fits ten more models to the release. What do the people in the data lose by it, and what does the
# ledger say?

# %% tags=["hide-cell"]
print(f"Nothing. Entries in the ledger: {len(Ledger.open(ROOM / 'ledger.json').entries)}, as before.")
print("What a release says about anybody is in it already.")

# %% [markdown]
# ## What went wrong for others
#
# * **A seed for reproducibility.** With `random_state` the noise can be drawn again and taken off. What should be
#   reproducible is the *release*: save it, and every later step repeats from it.
# * **A copy that forgets.** A ledger that is restored from a backup, or copied with the data to a second machine,
#   spends the same budget twice. Nothing here can notice ([known limits](../docs/known-limits.md)).
# * **Times of files.** How long a fit took depends on the records, and so do the times at which files were made.
#   Nothing that this package writes has a time in it. The file system has: copy files without theirs before you publish
#   them.
# * **One synthetic file as if it were the people.** Its standard errors count neither noise nor the model.
