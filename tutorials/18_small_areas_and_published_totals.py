# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Small areas and published totals
#
# **Afterwards you can** make private tables by tract, county and state that agree with each other, say which of their
# numbers may be printed, draw persons whose counts are those that a census has published, and say what is promised.
# **Time:** 30 minutes with the exercises, half a minute of computing. **You need** `pip install '.[plot]'` and the
# [first tutorial](01_first_private_network.py).
#
# A health fund knows who of its members has asthma, and where they live. It wants to publish tables by small area. Two
# things go wrong in the usual way. Tables that got their noise separately do not add up: the tracts of a county sum to
# another number than the county has. And the county's own number drowns in the noise of all its tracts, where it is
# made from them. This page makes up a country, so that the truth can be shown beside what is published.
#
# Background: [levels](../docs/levels.md), [counts that are public](../docs/priors.md#counts-that-are-public).

# %% tags=["hide-input"]
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
import pandas as pd

warnings.filterwarnings("ignore", message="`pgmpy", category=FutureWarning)
warnings.filterwarnings("ignore", message="IProgress not found")
from pgmpy import config

from pgmpy_dp import (
    Budget,
    ContradictedTablesWarning,
    Ledger,
    Levels,
    MarkovNetwork,
    PrivateTable,
    Schema,
    check,
    learn,
    plan,
)
from pgmpy_dp.estimators import CollectiveMAP

config.set_show_progress(False)
here = Path(globals().get("__file__", ".")).resolve()
ROOT = next(folder for folder in (here, *here.parents) if (folder / "data" / "SOURCES.md").exists())
OUT = ROOT / "build" / "areas"
OUT.mkdir(parents=True, exist_ok=True)

# %% [markdown]
# The country has 320 tracts in 32 counties in 4 states, and 120,000 people. Its census has published how many live in
# each tract, and how many of each age in each county. The fund has a third of the people as members. These files are
# what the rest of the page starts from. (With your files, skip the next cell.)

# %% tags=["hide-input"]
rng = np.random.default_rng(2026)
ages = ["0-17", "18-39", "40-64", "65+"]
codes = [f"{s}{c}{t:02d}" for s in range(1, 5) for c in range(1, 9) for t in range(1, 11)]
tree = pd.DataFrame({"tract": codes, "county": [f"C{t[:2]}" for t in codes], "state": [f"S{t[0]}" for t in codes]})
state, county = np.repeat(np.arange(4), 80), np.repeat(np.arange(32), 10)
size = rng.lognormal(0.0, 0.6, 320)
of_age = np.array([rng.dirichlet(60 * q) for q in rng.dirichlet([8, 12, 12, 8], 32)[county]])
odds = np.exp(rng.normal(-2.0, 0.4, 4)[state] + rng.normal(0, 0.4, 32)[county] + rng.normal(0, 0.2, 320))
home = rng.choice(320, 120_000, p=size / size.sum())
age = (rng.random(len(home))[:, None] > of_age[home].cumsum(axis=1)[:, :-1]).sum(axis=1)
ill = rng.random(len(home)) < odds[home] / (1 + odds[home]) * np.array([1.3, 1.0, 0.8, 1.1])[age]
people = pd.DataFrame(
    {
        "tract": np.array(codes)[home],
        "age": np.array(ages)[age],
        "asthma": np.where(ill, "yes", "no"),
        "county": tree["county"].to_numpy()[home],
        "state": tree["state"].to_numpy()[home],
    }
)
tree.to_csv(OUT / "tree.csv", index=False)
people.groupby("tract").size().rename("people").reset_index().to_csv(OUT / "census_tracts.csv", index=False)
people.groupby(["county", "age"]).size().rename("people").reset_index().to_csv(OUT / "census_ages.csv", index=False)
members = people.sample(40_000, random_state=0)[["tract", "age", "asthma"]]
members.loc[members.index[:200], "tract"] = "?"  # nobody could read these
members.to_csv(OUT / "members.csv", index=False)

# %% [markdown]
# ## 1. Declare what is public
#
# The tree of areas is public, and a file of it has a line for each tract. With `Levels`, a tract's county and state are
# no columns of their own: they follow from the tract. Every table, question and rule may name them all the same.

# %%
print((OUT / "tree.csv").read_text()[:60])
schema = Schema({"tract": Levels.from_csv(OUT / "tree.csv"), "age": ages, "asthma": ["no", "yes"]})
print({name: schema.cardinality(name) for name in ("state", "county", "tract")})

# %% [markdown]
# ## 2. Preview
#
# The whole budget is an epsilon of 1.1. Of this 0.1 is for a look at whether the file fits the schema: cells without a
# state are counted with noise. Their records are left out.

# %%
budget = Budget(epsilon=1.0, delta=1e-9)
table = PrivateTable(OUT / "members.csv", schema, ledger=Ledger(Budget(epsilon=1.1, delta=2e-9)))
print(check(table, Budget(epsilon=0.1)))

# %% [markdown]
# The graph joins tract, age and asthma, each with each, so its tables are those of pairs. Since `tract` has levels, the
# pairs are measured at every one of them, and each table has a part of the budget. `plan` says how much noise each will
# have, for about 40,000 members. It reads no records.

# %%
graph = nx.complete_graph(list(schema))
print(plan(schema, budget, 40_000, graph=graph))

# %% [markdown]
# "Expected error" is what noise does to a table, and "learned" how far a model was off in simulations, both as shares
# of all records. Noise matters in tables of tracts, and hardly in those of states. A model is better than its tables,
# for each of them says something of the next.
#
# ## 3. Spend
#
# `draws` keeps what intervals need.

# %%
learned = learn(table, budget, graph=graph, draws=60)
model = learned.model_
print(learned)
print(table.ledger.summary())

# %% [markdown]
# ## 4. Fit, and what it has done
#
# The noisy tables do not add up. The model is one distribution of tract, age and asthma, so everything that it answers
# does. A tract of which the noise says little is like its county, and a county like its state.

# %%
of_tracts, of_counties, of_states = (model.query([area, "asthma"]).values for area in ("tract", "county", "state"))
place = dict(zip(schema.levels["county"].states, range(32), strict=True))
at = [place[name] for name in tree["county"]]
summed = np.zeros((32, 2))
np.add.at(summed, at, of_tracts)
print("sum of its tracts = county, largest difference:", f"{np.abs(summed - of_counties).max():.1e}")
assert np.allclose(summed, of_counties)
assert np.allclose(of_states.sum(axis=0), of_counties.sum(axis=0))

# %% [markdown]
# ## 5. Query: the office's table
#
# A rule of many offices says: print a number if half of its interval is at most a fifth of it. Here is the table of
# counties by that rule. All of it is computed from what was released, so printing costs nothing.


# %%
def office_table(network: MarkovNetwork, area: str) -> pd.DataFrame:
    """Members with asthma in each area, with a 90 % interval, and whether the rule lets the number be printed."""
    told = network.ask([area, "asthma"], counts=True).to_frame().query("asthma == 'yes'").set_index(area)
    told = told[["count", "count_lower", "count_upper"]]
    half = (told["count_upper"] - told["count_lower"]) / 2
    return told.round(0).astype(int).assign(printed=np.where(half <= 0.2 * told["count"], "yes", "no"))


areas = ["state", "county", "tract"]
by_county = office_table(model, "county")
print(by_county.head(8).to_string())
print(pd.Series({a: (office_table(model, a)["printed"] == "yes").mean() for a in areas}, name="printed").round(2))

# %% [markdown]
# An answer that is printed says what to think of its intervals.

# %%
print(model.ask(["state", "asthma"], counts=True))

# %% [markdown]
# The last line is to be taken seriously. The graph was given, and nothing has measured how wrong it is. Here it has all
# edges, so the tables of pairs are as good as their intervals say. What nobody has measured is whether asthma goes with
# age otherwise in one tract than in the next.
#
# ## 6. Check against the truth
#
# We made the country up, so we may look. What the interval is for is the population that the members are a sample of.
# So the truth is the share of ill people in it, times the number of members.

# %%
truth = people.groupby(["county", "asthma"]).size().unstack()["yes"] / len(people) * learned.n_records_
beside = by_county.assign(true=truth.round(0).astype(int))
print(beside.head(8).to_string())
inside = (beside["count_lower"] <= truth) & (truth <= beside["count_upper"])
print(f"{inside.sum()} of 32 intervals of 90 % have the truth inside")
assert inside.mean() > 0.6
for area in areas:
    real = people.groupby([area, "asthma"]).size().unstack(fill_value=0)["yes"] / len(people) * learned.n_records_
    off = (office_table(model, area)["count"] - real).abs().mean()
    print(f"{area:6}: {real.mean():8.1f} ill members on average, off by {off:.1f}")

figure, axis = plt.subplots(figsize=(9, 3.2))
order = truth.sort_values().index
low, high = beside.loc[order, "count_lower"], beside.loc[order, "count_upper"]
axis.vlines(range(32), low, high, lw=4, alpha=0.5, label="90 % interval")
axis.plot(range(32), truth[order], "k.", label="true")
axis.set(xticks=range(32), xlabel="county", ylabel="members with asthma", title="Intervals, and the truth")
axis.set_xticklabels(order, rotation=90)
axis.legend()
figure.tight_layout()
figure.savefig(OUT / "counties.png")

# %% [markdown]
# ### Published totals
#
# Everybody knows from the census how many people live in each tract, and how old they are in each county. A published
# file of persons that contradicts this looks wrong, and is. `public` gives the model these tables. The release is the
# same: this is computed from it and costs nothing. `public_from` has no default. It is a promise of *yours*: that the
# tables were not computed from these records. The census counted its own forms. Whether one member more or less is in
# the fund's file changes nothing in its tables.

# %%
census = {
    "tract": pd.read_csv(OUT / "census_tracts.csv", dtype={"tract": str}),
    ("county", "age"): pd.read_csv(OUT / "census_ages.csv"),
}
again = CollectiveMAP(state_names=schema, public=census, public_from="elsewhere")
agreed = again.fit_release(model, learned.release_).model_
agreed.posterior = again.posterior(60)
drawn = agreed.sample(120_000, method="agreeing", random_state=0)
print(drawn.head(4).to_string())
assert (drawn.groupby("tract").size() == census["tract"].set_index("tract")["people"]).all()
assert (drawn.groupby(["county", "age"]).size() == census["county", "age"].set_index(["county", "age"])["people"]).all()
print("320 tracts and 128 cells of county and age: each has exactly as many persons as the census says")

# %% [markdown]
# What the census knows helps with what it does not: with the ill of each tract.

# %%
real = people.groupby(["tract", "asthma"]).size().unstack(fill_value=0)["yes"]
errors = {}
for name, network in {"without": model, "with the census": agreed}.items():
    estimate = network.query(["tract", "asthma"]).values[:, 1] * len(people)
    errors[name] = float(np.abs(estimate - real.reindex(codes).to_numpy()).mean())
print({name: f"off by {error:.1f} ill people a tract" for name, error in errors.items()}, f"of {real.mean():.1f}")
assert errors["with the census"] < errors["without"]

# %% [markdown]
# ### What is promised, word for word

# %%
print(f"the model:\n  {model.privacy}")
print(f"the model that agrees with the census:\n  {agreed.privacy}")

# %% [markdown]
# The second sentence is longer by what you said. It goes along into files, reports and evidence, and is to be printed
# as it stands: without its end it would leave out what it rests on. Nothing compares the census with the records. Where
# the *released* tables contradict it, a `ContradictedTablesWarning` says so, as in the second exercise.
#
# **What may be printed?** The model, all tables of it, the drawn persons, and both sentences. By the office's own rule
# numbers marked "no" are left out because they are vague, not because they are secret. **What may not be printed** is
# the column "true", and with a file of real people not even a look at it is free.
#
# ## 7. Save

# %%
agreed.save(OUT / "model.npz")
drawn.to_csv(OUT / "synthetic.csv", index=False)
by_county.to_csv(OUT / "counties.csv")
agreed.report(OUT / "report.html", rule="0.2")
print(*sorted(path.name for path in OUT.iterdir()), sep="\n")
assert str(MarkovNetwork.load(OUT / "model.npz").privacy) == str(agreed.privacy)

# %% [markdown]
# **On the command line** the same is the following, in the folder of the files. A public table is a CSV whose last
# column has the counts.
#
# ```shell
# pgmpy-dp schema --levels tract=tree.csv --variable "age=0-17,18-39,40-64,65+" --variable "asthma=no,yes" \
#   --out schema.json
# pgmpy-dp fit members.csv --schema schema.json --edges tract-age,tract-asthma,age-asthma --epsilon 1 --delta 1e-9 \
#   --public census_tracts.csv --public census_ages.csv --public-from elsewhere --draws 60 --out areas.npz
# pgmpy-dp query areas.npz --variables county,asthma
# pgmpy-dp sample areas.npz --method agreeing --n 120000 --out persons.csv
# ```
#
# ## Exercises
#
# Answers unfold. They ran with this page. They take the members anew, with ledgers of their own: an exercise may.
#
# **1.** Leave the levels out: learn with tracts as plain states, with the same graph and budget, and add up the states.
# How far are they off, and how far were they above?

# %% tags=["hide-cell"]
plain = Schema({"tract": codes, "age": ages, "asthma": ["no", "yes"]})
flat = learn(OUT / "members.csv", budget, plain, graph=nx.complete_graph(list(plain))).model_
by_state = people.groupby(["state", "asthma"]).size().unstack()["yes"] / len(people)
alone = flat.query(["tract", "asthma"]).values[:, 1].reshape(4, 80).sum(axis=1)
for name, found in {"added up": alone, "with levels": of_states[:, 1]}.items():
    print(f"{name:11}: off by {40_000 * np.abs(found - by_state.to_numpy()).mean():.0f} of 40,000 members")
print("A sum of 80 tracts has the noise, and what the prior drew towards the mean, of all 80.")

# %% [markdown]
# **2.** Somebody gives you the census by county as an array of 32 counts, in another order. What happens?

# %% tags=["hide-cell"]
counts = people.groupby("county").size()
with warnings.catch_warnings(record=True, action="always") as caught:
    turned = CollectiveMAP(state_names=schema, public={"county": counts.to_numpy()[::-1]}, public_from="elsewhere")
    turned.fit_release(model, learned.release_)
print(*(warning.message for warning in caught if warning.category is ContradictedTablesWarning))
print("An array is in the order of schema.levels['county'].states. Name the counties, and no order can be wrong.")

# %% [markdown]
# **3.** What if you pass the members' own counts by tract, to make the tables right, and say so by
# `public_from="these records"`?

# %% tags=["hide-cell"]
try:
    own = {"tract": dict.fromkeys(codes, 125)}
    CollectiveMAP(state_names=schema, public=own, public_from="these records").fit_release(model, learned.release_)
except ValueError as error:
    print(error)
print("Exact counts of the records have no noise: whoever knows all members but one reads off where that one lives.")
print('With "elsewhere" they would be taken, and the sentence that is printed would be false.')

# %% [markdown]
# **4.** What share of the children in county C11 have asthma, by the model that knows the census?

# %% tags=["hide-cell"]
print(agreed.ask("asthma", {"county": "C11", "age": "0-17"}))
children = people.query("county == 'C11' and age == '0-17'")
print(f"true: {(children['asthma'] == 'yes').mean():.3f}")

# %% [markdown]
# ## What went wrong for others
#
# * **County and state as columns of their own.** A model that has to find out that a county follows from its tract pays
#   for it, and puts tracts into two counties. Declare the tree.
# * **Tables that were made to agree by hand.** Whoever scales noisy tracts to the census, one table after the other,
#   loses the first table at the third, and the intervals with it. Here each draw agrees, so the intervals know it.
# * **"Public" tables from the same file.** Last week's exact dashboard of the same members is not from elsewhere. It is
#   a release without noise, and no sentence about epsilon repairs it ([known limits](../docs/known-limits.md)).
