# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # What the promise means: a primer
#
# **Afterwards you can** say what epsilon and delta promise and to whom, add up several releases, tell what may be done
# with a release and what must never be done with records, and choose a budget that you can defend. **Time:** 40 minutes
# with the exercises, one minute of computing. **You need** to know what a table of counts is, and some Python. No other
# tutorial comes before this one. The pictures need matplotlib: `pip install '.[plot]'`.
#
# Everything here is done on made-up records, so that we may look at what is otherwise hidden.

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

from pgmpy_dp import Budget, Ledger, PrivateTable, Schema
from pgmpy_dp.estimators import NaiveMLE

config.set_show_progress(False)
warnings.filterwarnings("ignore", message="random_state=")  # seeds are for this page: see below what they break
warnings.filterwarnings("ignore", message="about .* inside the schema")  # small data are for this page, too
warnings.filterwarnings("ignore", message="unit=")  # these frames were never read from a file
here = Path(globals().get("__file__", ".")).resolve()
ROOT = next(folder for folder in (here, *here.parents) if (folder / "data" / "SOURCES.md").exists())
OUT = ROOT / "build" / "tutorials-output" / "00"
OUT.mkdir(parents=True, exist_ok=True)

# %% [markdown]
# ## 1. Neighbours: with Ada and without her
#
# A village is asked whether people smoke. Ada, the hundredth, does. Two datasets that differ in one person are called
# **neighbours**. Here one has Ada's record and the other has not (`add_remove`). With `replace_one`, the other has
# somebody else in her place.

# %%
schema = Schema({"smokes": ["no", "yes"]})
without_ada = pd.DataFrame({"smokes": ["no"] * 60 + ["yes"] * 39})
with_ada = pd.concat([without_ada, pd.DataFrame({"smokes": ["yes"]})], ignore_index=True)
for name, records in (("without Ada", without_ada), ("with Ada", with_ada)):
    print(f"{name}: {(records['smokes'] == 'yes').sum()} smokers")

# %% [markdown]
# Suppose the exact count is published, and somebody knows all others: the doctor, a neighbour, or a list from last
# year. Then the count tells what Ada does. She did not appear in the publication, and is exposed by it all the same.
# "Only totals are published" protects nobody by itself.
#
# The promise of **differential privacy** is about the publication, not about what the reader knows:
#
# > whatever is published, it would have been published with nearly the same probability without you.
#
# Nothing is published here that depends on Ada alone. What depends on everybody (that smoking harms, say) may still be
# learned, and may be learned *about* Ada. The promise is that her own record adds nearly nothing to it.

# %% [markdown]
# ## 2. Epsilon: how much the odds may change
#
# The count gets noise. Here is the law of the noisy count on both neighbours. It is that of the simplest learner here,
# `NaiveMLE`. It releases two counts, of "no" and of "yes". A person is in one of them, so each gets discrete Laplace
# noise of scale 1/epsilon.

# %%
epsilon = 0.5
values = np.arange(20, 60)


def law(count: int, epsilon: float) -> np.ndarray:
    """Probability of each noisy count: discrete Laplace noise of scale 1/epsilon."""
    return np.tanh(epsilon / 2) * np.exp(-epsilon * np.abs(values - count))


figure, axes = plt.subplots(1, 2, figsize=(11, 3.6), layout="constrained")
axes[0].step(values, law(39, epsilon), where="mid", label="without Ada")
axes[0].step(values, law(40, epsilon), where="mid", label="with Ada")
axes[0].set(xlabel="noisy number of smokers", ylabel="probability", title="Two laws that overlap")
axes[0].legend()
axes[1].step(values, law(40, epsilon) / law(39, epsilon), where="mid", color="C2")
for bound in (math.exp(epsilon), math.exp(-epsilon)):
    axes[1].axhline(bound, linestyle="--", color="grey")
axes[1].set(
    xlabel="noisy number of smokers", ylabel="with Ada / without Ada", title="Their ratio stays within exp(±epsilon)"
)

# %% [markdown]
# Whatever number comes out, it is at most exp(epsilon) times as likely with Ada as without her. That *is* epsilon-DP.
# Read it as **odds**. Somebody thinks it as likely as not that Ada's record is there. After the release the odds are at
# most exp(epsilon) to 1:

# %%
odds = pd.DataFrame({"epsilon": [0.01, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0]})
odds["odds at most"] = np.exp(odds["epsilon"]).round(2)
odds["a belief of 50 % becomes at most"] = (100 / (1 + np.exp(-odds["epsilon"]))).round(1)
odds["a belief of 1 % becomes at most"] = (100 / (1 + 99 * np.exp(-odds["epsilon"]))).round(1)
print(odds.to_string(index=False))

# %% [markdown]
# Who knows that Ada was asked compares her "yes" with her "no". From one to the other is two steps: a record out, and
# another in. So the odds of an answer are at most exp(2 epsilon) to 1, or exp(epsilon) if neighbours are by
# `replace_one`.
#
# At .1 nobody learns much about anybody. At 1 a suspicion grows, and is no certainty. At 10 the *promise* excludes
# little any more. (A mechanism may leak less than it promises; who relies on that relies on a guess about attackers.)
#
# The same two laws, not computed but drawn, by the learner itself. A release is drawn many times here, which in life
# would be paid for each time:

# %%
graph = nx.Graph()
graph.add_node("smokes")


def noisy_count(records: pd.DataFrame, **options) -> float:
    """The released number of smokers."""
    learner = NaiveMLE(epsilon=epsilon, state_names=dict(schema), **options)
    return float(learner.fit(graph, records).release_.values[0][1])


drawn = np.array([noisy_count(with_ada) for _ in range(400)])
near = np.mean(np.abs(drawn - 40) <= 2)
expected = law(40, epsilon)[np.abs(values - 40) <= 2].sum()
print(f"within 2 of the true count: {near:.2f} of 400 releases; the law says {expected:.2f}")

# %% [markdown]
# ## 3. Delta: how often the promise may fail
#
# (epsilon, delta)-DP lets the bound fail with a probability of about delta. Gaussian noise needs that: its laws have
# thin tails, where the ratio grows without a bound. But the definition permits worse. This "mechanism" publishes each
# person's record in full with probability delta, and says nothing else. It is (0, delta)-DP:

# %%
rng = np.random.default_rng(1)
n = 100_000
for delta in (1e-3, 1e-5, 1e-7):
    exposed = rng.binomial(n, delta, size=1000)
    print(f"delta = {delta:g}: {exposed.mean():8.3f} people of {n:,} are published in full, on average")

# %% [markdown]
# So **delta must be far below 1/n**. The package warns where it is not. With a delta of 1e-7 and a million people, the
# worst reading of the promise is one chance in ten that one person is exposed. Pure epsilon-DP has no delta.
#
# ## 4. Composition: budgets add up
#
# Ask once with epsilon = .5, and Ada is protected at .5. Ask again, and both answers together protect her at 1: who
# averages them has less noise. Twenty answers protect at 10.

# %%
averages = {k: float(np.std([drawn[rng.integers(400, size=k)].mean() for _ in range(2000)])) for k in (1, 4, 20, 100)}
for k, error in averages.items():
    print(f"{k:3} answers at .5 each: epsilon = {0.5 * k:4}, the average is off by {error:.2f}")

# %% [markdown]
# Noise that is drawn anew each time averages out. That is why a **ledger** counts what was spent, and refuses:

# %%
ledger = Ledger(Budget(epsilon=1.0))
table = PrivateTable(with_ada, schema, ledger=ledger)
for attempt in (1, 2, 3):
    try:
        NaiveMLE(epsilon=0.5).fit(graph, table)
        print(f"fit {attempt}: done, {ledger.spent} spent")
    except Exception as refused:
        print(f"fit {attempt}: {refused}")

# %% [markdown]
# One ledger belongs to one dataset of people, not to one analyst or one script. Keep it in a file (`Ledger.open`),
# since the people do not care in which session their budget was spent. Costs in *zCDP* (rho) add up as well, and many
# small ones add up to less epsilon: that is what `Budget(epsilon, delta)` uses where it has Gaussian noise.
#
# ## 5. Post-processing is free
#
# What is computed from a release alone costs nothing: rounding, a model, a picture, a million synthetic records, a
# second model from them. No computation brings back what the noise hides.

# %%
fit = NaiveMLE(epsilon=0.5).fit(graph, PrivateTable(with_ada, schema, ledger=Ledger(Budget(epsilon=0.5))))
released = fit.release_.values[0]
print("released counts:", released, "  shares:", (np.maximum(released, 0) / np.maximum(released, 0).sum()).round(3))
print("synthetic:", fit.model_.sample(5, random_state=0)["smokes"].tolist())

# %% [markdown]
# The rule ends where the **records are looked at again**: to choose among models, to "correct" a count, to check a
# result against the truth and try once more. Each look has to be paid for.
#
# ## 6. One person, several rows
#
# A patient has 20 stays, one row each. A guarantee "for a record" at epsilon = .5 protects that patient at 20 times .5:

# %%
stays = pd.DataFrame({"patient": [1] * 20 + list(range(2, 82)), "smokes": ["yes"] * 20 + ["no"] * 80})
print(f"odds for a patient with 20 rows, if rows are protected at .5: {math.exp(20 * 0.5):,.0f} to 1")
persons = NaiveMLE(epsilon=0.5, state_names=dict(schema)).fit(graph, stays, unit="patient", rows_per_unit="shares")
print("by person:", persons.privacy_)

# %% [markdown]
# `unit=` says who is protected, with all rows. Say it wherever a person can have more than one row
# ([persons](../docs/persons.md)). Households are persons together: [linked tables](../docs/linked.md) are about them.
#
# ## 7. What must never be done
#
# Each of these was done by somebody who had noise of the right size.
#
# **States read from the records.** A category shows up because somebody has it:

# %%
village = pd.concat([with_ada, pd.DataFrame({"smokes": ["pipe, since the war"]})])
print("states in the data:", sorted(village["smokes"].unique()), "- one person smokes a pipe, and everybody knows who")

# %% [markdown]
# The noise on that count is beside the point: without that person the *name* would not be there. Here states come from
# a schema, from public knowledge. Where there is none, `discover` finds them for a price.
#
# **Bounds read from the records.** "Between 0 and the largest salary" publishes the largest salary:

# %%
salaries = np.append(rng.lognormal(10.5, 0.4, 999), 1_250_000)
print(f"range in the data: 0 to {salaries.max():,.0f}. There is one person who earns that much")

# %% [markdown]
# **The exact number of records.** `n = 100` with Ada and 99 without her. `n_records=` is for numbers that are public
# anyway.
#
# **Trying until it looks right.** Fit ten times, keep the fit that is nearest to the records: the choice is an answer
# of the records, and ten budgets were spent.

# %%
tries = np.sort(np.abs(rng.choice(drawn, size=(2000, 10)) - 40), axis=1)
print(f"off by {np.abs(drawn - 40).mean():.2f} if fitted once, by {tries[:, 0].mean():.2f} if the best of ten is kept")

# %% [markdown]
# Less noise than was promised is less privacy than was promised.
#
# **Publishing the seed.** With it anybody draws the same noise, and takes it off again:

# %%
published = noisy_count(with_ada, random_state=7)
same_noise = noisy_count(without_ada, random_state=7) - 39
print(f"released {published:g}, minus the noise of seed 7: {published - same_noise:g} smokers, exactly")

# %% [markdown]
# Seeds are for tests. Without `random_state` the noise comes from the operating system's secure source.
#
# **Outputs of checks, logs, errors, times.** "3 cells of row 17 could not be read" is about row 17.
# `print(records.describe())` in a notebook that is handed on publishes what it prints. The package says nothing that
# depends on a record without paying; `check` estimates with noise how many records a schema leaves out.
#
# ## 8. Choosing epsilon and delta for a real release
#
# No theorem says which epsilon is right. What a decision can rest on:
#
# | release | unit | budget | source |
# | --- | --- | --- | --- |
# | US census 2020, redistricting | person | epsilon 17.14, housing 2.47; delta 1e-10 | Census Bureau, 9 June 2021 |
# | Israel, register of live births of 2014 | birth | epsilon 9.98 | Hod and Canetti, arXiv 2405.00267 |
# | Google, mobility reports 2020 | person and day | epsilon 2.64, anew each day | Aktay et al., arXiv 2004.04145 |
#
# These are large. They were chosen after measuring what users need, for populations where much is public already, and
# under the eyes of many. Three questions help more than a number from somebody else:
#
# 1. *What may be learned about one person?* Read the table of odds above with the people concerned.
# 2. *What do users need?* `plan` says beforehand, from public numbers, which error a budget buys.
# 3. *What comes later?* The next release, a correction, a request: keep a part of the ledger for it.
#
# A habit that stands up to questions: epsilon about 1 in all for people who expect secrecy, delta at most 1/(10 n), a
# ledger in a file before the first look, and a page that says all of it. Each report of this package prints the
# guarantee first.

# %% [markdown]
# ## Exercises
#
# Answers unfold. They ran with this page.
#
# **1.** Two analysts each release a table of the same people, one at epsilon = .3 and one at .4. Neither knows of the
# other. How is a person in the data protected?

# %% tags=["hide-cell"]
together = 0.3 + 0.4
print(
    f"At {together:.1f}: budgets add up whether or not somebody knows. One ledger for one dataset would have told them."
)

# %% [markdown]
# **2.** A count is released at epsilon = 1. By how much may a suspicion of 20 % that somebody was counted grow?

# %% tags=["hide-cell"]
before = 0.2
after = math.e * before / (math.e * before + 1 - before)
print(f"To at most {after:.0%}: the odds of 1 to 4 become at most e to 4.")
assert 0.40 < after < 0.41

# %% [markdown]
# **3.** 55 million records, delta = 1e-6. Is that a good delta?

# %% tags=["hide-cell"]
print(
    f"No: {55e6 * 1e-6:.0f} people could be published in full by a mechanism with this promise. 1e-9 is well below 1/n."
)

# %% [markdown]
# **4.** A release is at epsilon = 1 per record, and a household has up to six members. What is promised to a household?

# %% tags=["hide-cell"]
print(f"epsilon = 6: odds of {math.exp(6):.0f} to 1. Protect households by unit='household', or say who is protected.")

# %% [markdown]
# **5.** You fitted at epsilon = .5 and compare the model with the records, which you may see. It is poor, so you fit
# again with other options and publish the second model alone. What do you write on the page?

# %% tags=["hide-cell"]
print(
    "At least 1: both fits were paid for, published or not. And nobody paid for the comparison, a look at the records"
)
print("on which the choice depends. Use score_model, which compares with noise and charges the ledger, or options")
print("chosen beforehand on public or made-up data.")

# %% [markdown]
# ## What went wrong for others
#
# * **A budget without a total.** Apple's phones reported at epsilon 1 to 2 a datum, up to 16 a day, and anew each day
#   (Tang et al., arXiv 1709.02753). A budget that is renewed is no budget: say the total, or the period.
# * **Noise in floating point.** The gaps between doubles show which value the noise was added to (Mironov 2012). Here
#   noise is whole numbers, from OpenDP's exact samplers.
# * **Sensitivity of sums of real numbers.** Sums in floating point move by more than one summand (Casacuberta et al.,
#   arXiv 2207.10635). Here sums are of integers.
# * **Domains read from the data.** Several libraries for synthetic data do so by default, and call it private. See
#   section 7.
#
# Next: [a first private network](01_first_private_network.py), on census data.

# %%
assert law(40, epsilon).sum() > 0.99
assert abs(published - same_noise - 40) < 1e-9  # the seed gave the count away
odds.to_csv(OUT / "odds.csv", index=False)
