# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Tables of three, a workload, and what is known from last year
#
# **Afterwards you can** tell `learn` which questions matter and what is known already, and say what a prior does to the
# guarantee. **Time:** 30 minutes with the exercises, half a minute of computing. **You need** the [first
# tutorial](01_first_private_network.py). The picture needs matplotlib: `pip install '.[plot]'`.
#
# `learn` chooses by itself which tables to pay for. You can tell it more than the records do. Three variables may
# depend on one another in a way that no pair shows. You may know which questions the model will be asked. And last
# year's release or a public model may say much already. This tutorial has two years of a census. For the first we have
# a model that was paid for. For the second we have fewer records and a small budget.
#
# Background: [structure learning](../docs/structure.md), [priors](../docs/priors.md).

# %% tags=["hide-input"]
import itertools
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

warnings.filterwarnings("ignore", message="`pgmpy", category=FutureWarning)
warnings.filterwarnings("ignore", message="IProgress not found")
from pgmpy import config

config.set_show_progress(False)

from pgmpy_dp import Budget, Ledger, MarkovNetwork, PrivateTable, Schema, learn, plan
from pgmpy_dp.estimators import PrivateNetwork

here = Path(globals().get("__file__", ".")).resolve()
ROOT = next(folder for folder in (here, *here.parents) if (folder / "data" / "SOURCES.md").exists())
OUT = ROOT / "build" / "tutorials-output" / "13"
OUT.mkdir(parents=True, exist_ok=True)

# %% [markdown]
# ## 1. Declare the variables, and the questions
#
# A *workload* says which sets of variables the model will be asked about, and how much each matters. Here somebody
# studies income: by education and occupation, which counts three times, and by sex and marital status. The other
# variables are of interest in pairs with income.
#
# A workload is public: it must not be chosen by looking at the records.

# %%
names = ["age", "sex", "race", "education", "marital-status", "relationship", "occupation", "income"]
schema = Schema.from_json(ROOT / "data" / "adult_disc.domain.json").subset(names)
workload = {
    ("education", "occupation", "income"): 3.0,
    ("sex", "marital-status", "income"): 2.0,
    ("age", "income"): 1.0,
    ("race", "income"): 1.0,
    ("relationship", "income"): 1.0,
}
records = pd.read_csv(ROOT / "data" / "adult_disc.csv.gz", dtype=str, keep_default_na=False)[list(schema)]
mixed = np.random.default_rng(2026).permutation(len(records))
last_year, this_year = records.iloc[mixed[:25_000]], records.iloc[mixed[25_000:35_000]]
print(f"{len(last_year):,} records last year, {len(this_year):,} this year; nobody is in both")

# %% [markdown]
# ## 2. Preview what a table of three costs
#
# A table of education, occupation and income has 480 cells, and one of education and income 32. Each cell has the same
# noise. So the larger table is worth its price only if the three depend on one another in a way that pairs do not tell.
# The search weighs that: from a table's misfit it subtracts the noise that measuring would add. Below, `sd` is the
# noise of a cell, `released` the total variation of the noisy table from the records, and `fitted` that of the model.

# %%
tables = [("education", "income"), ("occupation", "income"), ("education", "occupation", "income")]
budget = Budget(epsilon=0.3, delta=1e-9)
print(plan(schema, budget, 10_000, graph=tables, simulations=3).details.table[["cells", "sd", "released", "fitted"]])

# %% [markdown]
# ## 3. Spend: last year
#
# Last year's model has epsilon = 1, and tables of up to three variables (the default).

# %%
ledger = Ledger(Budget(epsilon=1.0, delta=1e-9))
last = learn(PrivateTable(last_year, schema, ledger=ledger), Budget(epsilon=1.0, delta=1e-9))
last.model_.save(OUT / "last-year.npz")
sizes = last.report_["variables"].map(len).value_counts()
print(f"{sizes.get(2, 0)} measurements of pairs, {sizes.get(3, 0)} of triples")
print(last.report_[["round", "variables", "share", "error_before"]].head(5).to_string(index=False))

# %% [markdown]
# ## 4. Fit this year's model, with and without what is known
#
# This year's budget is less than a third of that. Here are four ways to spend it on the same records. In practice there
# would be only one (every line here has a ledger of its own).
#
# The *prior* is last year's file. The search starts from that model, so that it pays only for what has changed. The
# last fit learns deviations from it, as large as the new tables suggest. If these speak against the prior, it is
# dropped.

# %%
ways = {
    "pairs": {"max_order": 2},
    "triples": {},
    "workload": {"workload": workload},
    "prior": {"prior": OUT / "last-year.npz"},
}
fitted = {name: learn(this_year, budget, schema, **how) for name, how in ways.items()}
print(fitted["prior"].privacy_)

# %% [markdown]
# This year's release has the guarantee of this year's budget, for everybody whose record is in it. Last year's records
# have last year's guarantee. Whoever is in both has the sum, which `privacy_.total` says and the model's file keeps. A
# model without a privacy record is taken for public.

# %%
print("this year:", fitted["prior"].privacy_.guarantee)
print("last year:", fitted["prior"].privacy_.prior.guarantee)
print("in both:  ", fitted["prior"].privacy_.total)

# %% [markdown]
# ## 5. Query the model
#
# The study asks this:

# %%
rich = {}
for name, estimator in fitted.items():
    table = estimator.model_.query(["income"], {"education": "Bachelors", "occupation": "Exec-managerial"})
    rich[name] = table.get_value(income=">50K")
asked = this_year[(this_year["education"] == "Bachelors") & (this_year["occupation"] == "Exec-managerial")]
print(pd.Series(rich, name="P(> 50K | Bachelors, Exec-managerial)").round(3).to_string())
print(f"records: {(asked['income'] == '>50K').mean():.3f}")

# %% [markdown]
# ## 6. Check against the records
#
# We may look, because these records are published. The table has the total variation between model and records, over
# all pairs and over the tables of the workload:


# %%
def distance(model, scope):
    states = model.states
    codes = [pd.Categorical(this_year[name], categories=[str(state) for state in states[name]]).codes for name in scope]
    shape = [len(states[name]) for name in scope]
    share = np.bincount(np.ravel_multi_index(codes, shape), minlength=np.prod(shape)) / len(this_year)
    return 0.5 * np.abs(share - model.marginal(list(scope)).values.ravel()).sum()


pairs = list(itertools.combinations(names, 2))
weights = np.array(list(workload.values()))
errors = pd.DataFrame(
    {
        name: {
            "all pairs": np.mean([distance(estimator.model_, scope) for scope in pairs]),
            "workload": np.average([distance(estimator.model_, scope) for scope in workload], weights=weights),
        }
        for name, estimator in {**fitted, "last year's model": last}.items()
    }
).T
print(errors.round(4))
_, ax = plt.subplots(figsize=(7, 3.6))
errors.plot.barh(color=["0.6", "C0"], ax=ax)
ax.set_xlabel("total variation from this year's records")
ax.figure.tight_layout()

assert errors.loc["prior", "all pairs"] < 0.7 * errors.loc["triples", "all pairs"]
assert errors.loc["workload", "workload"] < 1.25 * errors.loc["triples", "workload"]

# %% [markdown]
# Tables of three gain little or nothing at this budget. A workload moves errors to where nobody asks. Both years are of
# one census, so last year's model is still right, and over all pairs the fit that starts from it is the nearest of the
# four.
#
# A prior that is wrong is found out. This one swaps the meaning of every state of last year's variables:

# %%
swapped = MarkovNetwork(last.model_.edges)
for factor in last.model_.factors:
    mirrored = factor.copy()
    mirrored.values = mirrored.values[tuple(slice(None, None, -1) for _ in mirrored.variables)]
    swapped.add_factors(mirrored)
wrong = learn(this_year, budget, schema, prior=swapped)
found = np.mean([distance(wrong.model_, scope) for scope in pairs])
print(f"with a wrong prior {found:.4f}, without one {errors.loc['triples', 'all pairs']:.4f}")
assert found < 1.5 * errors.loc["triples", "all pairs"]

# %% [markdown]
# ## 7. Save
#
# Keep the model for next year. Keep the release too: other priors can be tried on it at no cost.

# %%
fitted["prior"].model_.save(OUT / "this-year.npz")
fitted["prior"].release_.save(OUT / "this-year.release.npz")
again = PrivateNetwork(prior=OUT / "last-year.npz").fit_release(fitted["prior"].release_)
kept = MarkovNetwork.load(OUT / "this-year.npz")
assert np.allclose(kept.marginal(["income"]).values, again.model_.marginal(["income"]).values)
assert kept.privacy.prior.guarantee == last.privacy_.guarantee
print(kept.privacy)

# %% [markdown]
# ## Exercises
#
# Answers unfold. They ran with this page.
#
# **1.** Change the number of records in the preview to 100,000. How do the released errors of the table of three and of
# the pairs change?

# %% tags=["hide-cell"]
for n in (10_000, 100_000):
    rehearsed = plan(schema, budget, n, graph=tables, simulations=2).details.table
    print(f"{n:7,} records: " + ", ".join(f"{row.cells} cells {row.released:.4f}" for row in rehearsed.itertuples()))
print("All fall to about a tenth. The large table stays far worse than a pair, but with 100,000 records it is good")
print("enough to show what no pair shows. Tables of three pay where there are many records.")

# %% [markdown]
# **2.** Take the prior away, without paying again: fit this year's release alone. How much of the gain came from it?

# %% tags=["hide-cell"]
alone = PrivateNetwork().fit_release(fitted["prior"].release_).model_
found = np.mean([distance(alone, scope) for scope in pairs])
print(f"all pairs: with the prior {errors.loc['prior', 'all pairs']:.4f}, the same release without it {found:.4f},")
print(f"a release that was made without one {errors.loc['triples', 'all pairs']:.4f}")
print("All of it. This release is even worse alone than one that was made without a prior: its tables were chosen for")
print("where last year's model was wrong.")

# %% [markdown]
# **3.** Somebody was asked in both years, and the next one too, at .3 with this model as the prior. What is promised to
# them?

# %% tags=["hide-cell"]
third = learn(this_year, budget, schema, prior=OUT / "this-year.npz")  # as if these were the records of the next year
print("after two years:  ", fitted["prior"].privacy_.total)
print("after three years:", third.privacy_.total)
print(third.privacy_)
print("To use the prior again costs nothing. New records of the same people cost.")

# %% [markdown]
# **4.** Change the weights: a workload that names one pair only. What happens to the other pairs?

# %% tags=["hide-cell"]
single = learn(this_year, budget, schema, workload={("race", "income"): 1.0})
others = np.mean([distance(single.model_, scope) for scope in pairs])
print(f"race - income {distance(single.model_, ('race', 'income')):.4f}, all pairs {others:.4f} ", end="")
print(f"(without a workload {errors.loc['triples', 'all pairs']:.4f})")
print("Nothing is paid for them, so the model says what little it knows. Name all that will be asked.")

# %% [markdown]
# ## What went wrong for others
#
# * **A prior taken for free.** Last year's model costs nothing to use, but the same people lose both budgets.
#   `privacy_.total` says so where the prior's file says what it cost. A prior without a record of privacy is believed
#   to be public: whoever strips it breaks the sum in silence.
# * **A workload from the records.** Questions chosen because they looked interesting in these records are an answer of
#   the records. Take them from last year, or from those who will ask.
# * **Weights of any size.** Our own search once overflowed on weights beyond 1e9, after the charge. They are refused
#   now before it (the [changelog](../CHANGELOG.md)).
