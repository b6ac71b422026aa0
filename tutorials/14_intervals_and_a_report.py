# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Intervals, and a report that people can read
#
# **Afterwards you can** give an interval with each answer, say when not to trust it, and hand over a report and a page
# that answers questions. **Time:** 30 minutes with the exercises, half a minute of computing. **You need** the [first
# tutorial](01_first_private_network.py) and to know what an interval is.
#
# A model from private records answers every question with a number. This page gives each of them an interval, and
# checks the intervals against records that the fit never saw. It ends with two pages of HTML: a report, and one that
# answers questions by itself. What follows from the release costs nothing; only the scores of step 6 ask the records
# again.
#
# Background: [where intervals hold](../docs/intervals.md), [the report](../docs/report.md), [known
# limits](../docs/known-limits.md).

# %% tags=["hide-input"]
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

warnings.filterwarnings("ignore", message="`pgmpy", category=FutureWarning)
warnings.filterwarnings("ignore", message="IProgress not found")
from pgmpy import config

from pgmpy_dp import (
    Budget,
    Ledger,
    MarkovNetwork,
    PrivateTable,
    Schema,
    combine_synthetic,
    learn,
    plan,
    score_model,
)

config.set_show_progress(False)
here = Path(globals().get("__file__", ".")).resolve()
ROOT = next(folder for folder in (here, *here.parents) if (folder / "data" / "SOURCES.md").exists())
OUT = ROOT / "build" / "intervals"
OUT.mkdir(parents=True, exist_ok=True)

# %% [markdown]
# ## 1. Declare what is public
#
# Eight variables of the census file Adult. 20,000 of its records are the private ones. The others stand in for the
# population, which intervals are about. Only step 6 looks at them.

# %%
variables = ["age", "sex", "race", "education", "marital-status", "relationship", "occupation", "income"]
schema = Schema.from_json(ROOT / "data" / "adult_disc.domain.json").subset(variables)
everybody = pd.read_csv(ROOT / "data" / "adult_disc.csv.gz", dtype=str, keep_default_na=False)[variables]
chosen = np.random.default_rng(14).permutation(len(everybody)) < 20_000
population, records = everybody[~chosen], everybody[chosen]
print(schema)

# %% [markdown]
# ## 2. Preview the costs
#
# This shows what noise would do to a table of two variables if all pairs with income were measured. `learn` will choose
# others.

# %%
budget = Budget(epsilon=1.0, delta=1e-9)
print(plan(schema, budget, 20_000, graph=[(name, "income") for name in variables[:-1]]).details)

# %% [markdown]
# ## 3. Spend
#
# `learn` chooses tables that its model gets wrong. It also keeps 8 % of the budget (`probe_share`) for the *probes*:
# tables of three variables that are drawn at random, not chosen. They say how wrong the model is where nothing was
# measured, and honest intervals rest on that.

# %%
table = PrivateTable(records, schema, ledger=Ledger(Budget(epsilon=1.2, delta=1e-8)))
network = learn(table, budget)
print(network.privacy_)
print(f"{network.n_records_:,.0f} records, sd {network.n_records_sd_:,.0f}")

# %% [markdown]
# ## 4. Fit the posterior
#
# Each draw is a model that could have led to the same release. Fifty draws are computed together, in about the
# time of the fit. A model that has its posterior keeps it in its file.

# %%
model = network.model_
model.posterior = network.posterior(50, random_state=0)
print(model.posterior)

# %% [markdown]
# ## 5. Query with intervals
#
# An answer has estimates and 90 % intervals of a conditional distribution, how many records that would be, and what the
# answer is worth. `to_frame` gives the numbers.

# %%
answer = model.ask("income", {"education": schema["education"][-1]}, counts=True)
print(answer)
assert (answer.interval["lower"] <= answer.shares).all()
assert (answer.shares <= answer.interval["upper"]).all()

# %% [markdown]
# Which pairs does the model know least about? `error` is an expected total variation. Most of the first ones have no
# measured table, or a table of many cells.

# %%
unsure = model.posterior.uncertain_pairs()
print(unsure.head(8).round(4).to_string(index=False))

# %% [markdown]
# A regression asks for what no table says, and intervals from synthetic records hold too seldom for it: .36 of the time
# from one set, .72 from twenty. `network.regress` asks the records for it. Other analyses have no function in this
# package, and are as good as the tables that were measured. Run them on several synthetic data sets, each from a draw
# of its own, and combine. Here it is the difference in income between women and men.

# %%
rich = schema["income"][-1]


def difference(frame: pd.DataFrame) -> tuple[float, float]:
    """Share of high incomes of the first sex less that of the second, and the usual variance of that."""
    parts = [frame.loc[frame["sex"] == sex, "income"] == rich for sex in schema["sex"]]
    shares = [part.mean() for part in parts]
    return shares[0] - shares[1], sum(p * (1 - p) / len(part) for p, part in zip(shares, parts, strict=True))


sets = model.posterior.sample(20_000, n_sets=20, random_state=0)
combined = combine_synthetic(*np.array([difference(frame) for frame in sets]).T)
print(f"{combined.estimate:.4f}, 90 % interval {combined.lower:.4f} to {combined.upper:.4f}")
single = difference(sets[0])
print(f"one synthetic data set as if it were real: {single[0]:.4f} ± {1.645 * single[1] ** 0.5:.4f}, too sure")
assert combined.lower < combined.estimate < combined.upper

# %% [markdown]
# ## 6. Check
#
# How often do intervals cover the shares of the held-out records? These are a sample too, so a 90 % interval is widened
# by their error. Cells in which next to nobody is expected are left out.

# %%
rng = np.random.default_rng(0)
hits: dict[str, list[bool]] = {"pairs": [], "triples": [], "given two others": []}
for _ in range(25):
    a, b, c = rng.choice(variables, 3, replace=False)
    for kind, names, given in (("pairs", [a, b], []), ("triples", [a, b, c], []), ("given two others", [a], [b, c])):
        evidence = dict(population[given].iloc[rng.integers(len(population))])
        frame = model.ask(names, evidence).to_frame()
        held = population[(population[given] == pd.Series(evidence, dtype=object)).all(axis=1)] if given else population
        shares = held[names].value_counts(normalize=True)
        truth = np.array([shares.get(tuple(cell), 0.0) for cell in frame[names].to_numpy()])
        error = 1.645 * np.sqrt(truth * (1 - truth) / len(held))
        half = np.hypot(frame["upper"] - frame["probability"], error)
        counted = frame["probability"] > 1e-3
        hits[kind] += list((np.abs(truth - frame["probability"]) <= half)[counted])
covered = pd.Series({kind: np.mean(found) for kind, found in hits.items()}, name="covered by 90 % intervals")
print(covered.round(2).to_string())
assert covered["pairs"] > 0.75

# %% [markdown]
# Intervals hold on average over questions, not for each. Where few records are expected they are as good as the prior.
# If one question needs a promise of its own, measure its table: `workload=` and `required_edges=` say what matters.
#
# ### How far from the records?
#
# That is a question about the records, so it costs something: here an epsilon of .1, from the ledger that paid for the
# model. `plan` says before, from public numbers, how precise the answer would be.

# %%
asked = Budget(epsilon=0.1)
print(plan(model, asked, 20_000).table.round(4).to_string())
score = score_model(model, table, asked)
print(score)
print("left:", table.ledger.account.left)
assert score.table.loc["pairs", "upper"] < 0.1

# %% [markdown]
# "Sampling alone" is the distance of so many records from the very model that they were drawn from. Below it the model
# follows these records more closely than the population that they stand for.
#
# ## 7. Save
#
# The model with its posterior, a report to hand over with it, and a page in which everybody can ask. Both pages are
# single files, which load nothing: open them in a browser. They show what was released, so they may go wherever the
# model may.

# %%
model.save(OUT / "model.npz")
assert MarkovNetwork.load(OUT / "model.npz").posterior is not None
model.report(OUT / "report.html", release=network.release_, score=score)
model.explorer(OUT / "explore.html")
less = learn(PrivateTable(records, schema, ledger=Budget(epsilon=0.1, delta=1e-9)), Budget(epsilon=0.1, delta=1e-9))
model.report(OUT / "budgets.html", compare=less.model_)
for page in sorted(OUT.glob("*.html")):
    print(f"{page.name}: {page.stat().st_size / 1e3:,.0f} kB")

# %% [markdown]
# ## Exercises
#
# Answers unfold. They ran with this page.
#
# **1.** Change the level: 50 %, 90 % and 99 % (`ask` takes `level=0.5`). How wide is the interval of a high income,
# for the last level of education?

# %% tags=["hide-cell"]
asked_about = {"education": schema["education"][-1]}
for level in (0.5, 0.9, 0.99):
    row = model.ask("income", asked_about, level=level).to_frame().set_index("income").loc[rich]
    print(f"{level:.0%}: {row.lower:.3f} to {row.upper:.3f}, width {row.upper - row.lower:.3f}")
print("Wider with the level. Fifty draws hold little of what lies outside of 99 %: take more of them for such claims.")

# %% [markdown]
# **2.** Change the evidence: ask about a level of education that many have, and about one that few have.

# %% tags=["hide-cell"]
for education in ("HS-grad", "Preschool"):
    row = model.ask("income", {"education": education}).to_frame().set_index("income").loc[rich]
    print(f"{education:9}: {row.probability:.3f}, {row.lower:.3f} to {row.upper:.3f}")
print("Where few records are expected the interval is wide, and is as good as the prior. Look at the counts first.")

# %% [markdown]
# **3.** Change the number of synthetic sets that are combined: 2, 5 and 20.

# %% tags=["hide-cell"]
for m in (2, 5, 20):
    joined = combine_synthetic(*np.array([difference(frame) for frame in sets[:m]]).T)
    print(f"{m:2} sets: {joined.estimate:.4f}, {joined.lower:.4f} to {joined.upper:.4f}")
print("With two sets the spread between them is hardly known, so the interval is wide. Take ten or more.")

# %% [markdown]
# **4.** What would a score of .01 tell instead of .1, and one of 1? It costs nothing to ask beforehand.

# %% tags=["hide-cell"]
for epsilon in (0.01, 0.1, 1.0):
    pairs = plan(model, Budget(epsilon=epsilon), 20_000).table.loc["pairs"]
    print(f"epsilon = {epsilon:4}: give or take {pairs.half_width:.4f}, sampling alone is {pairs.sampling:.4f}")
print("At .01 the answer is vaguer than what sampling does to it, and tells nothing. At 1 it has digits nobody needs.")

# %% [markdown]
# ## What went wrong for others
#
# * **Intervals that believe their graph.** An interval from the released tables alone covers too little where the graph
#   is wrong. `learn` pays for probes, tables drawn at random, and widens by what they show
#   ([intervals](../docs/intervals.md)).
# * **The most striking answer.** Whoever searches thousands of questions finds the one where the model is most wrong.
#   Intervals hold on average over questions, and not for the one that was picked.
# * **"Not joined" read as "independent".** A missing edge says that no table was bought. Our own reports once said
#   more, and do no longer ([changelog](../CHANGELOG.md)).
#
# On the command line the same is `pgmpy-dp fit ... --draws 50`, then `pgmpy-dp query --counts`, `pgmpy-dp score`,
# `pgmpy-dp report --score` and `pgmpy-dp explore`.
