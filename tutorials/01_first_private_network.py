# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # A first private network
#
# **Afterwards you can** learn a model from private records with one call, say what it cost, and ask it, sample from it
# and save it. **Time:** 30 minutes with the exercises, half a minute of computing. **You need** the
# [primer](00_what_the_promise_means.py) and some pandas. The pictures need matplotlib: `pip install '.[plot]'`.
#
# This page goes from 39,000 records of the 1994 US census to a graphical model that may be published. The model says
# which attributes depend on each other, and how. The budget is epsilon = 1, delta = 1e-9, spent once. Everything else
# follows from that one release and costs nothing more: several models, queries, synthetic records and pictures.
#
# `make demo` runs this page as a script. Its files are in `build/demo`.

# %% tags=["hide-input"]
import itertools
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
import pandas as pd

# pgmpy.inference imports modules that pgmpy itself deprecates.
warnings.filterwarnings("ignore", message="`pgmpy", category=FutureWarning)
warnings.filterwarnings("ignore", message="IProgress not found")  # of notebooks without ipywidgets
from pgmpy import config
from pgmpy.inference import BeliefPropagation

from pgmpy_dp import (
    Budget,
    BudgetExceeded,
    Ledger,
    MarkovNetwork,
    PrivateTable,
    Release,
    Schema,
    VariableElimination,
    learn,
    plan,
)
from pgmpy_dp.estimators import NaiveMLE, PrivateNetwork
from pgmpy_dp.plotting import plot_graph, plot_marginals

config.set_show_progress(False)
here = Path(globals().get("__file__", ".")).resolve()
ROOT = next(folder for folder in (here, *here.parents) if (folder / "data" / "SOURCES.md").exists())
OUT = ROOT / "build" / "demo"
OUT.mkdir(parents=True, exist_ok=True)

# %% [markdown]
# ## 1. Declare the schema and the unit
#
# The *schema* is public: the variables and all of their possible states, from the documentation of the data. It is
# never read from the records, because a rare state that occurs at all can tell that someone is in the data.

# %%
schema = Schema.from_json(ROOT / "data" / "adult_disc.domain.json")
print(schema)

# %% [markdown]
# The *records* are private, one for each person, and one record is what is protected. With epsilon = 1, whatever anyone
# learns from the model, they would have learned almost as surely if any one person had not been asked.
#
# A fifth is held out, by a fixed and therefore public seed, to judge the models with. That judgement uses exact
# statistics, which is only right because the census data are in fact [public](../data/SOURCES.md).

# %%
records = pd.read_csv(ROOT / "data" / "adult_disc.csv.gz", dtype=str, keep_default_na=False)
held_out = np.random.default_rng(2024).random(len(records)) < 0.2
train, test = records[~held_out], records[held_out]

# %% [markdown]
# ## 2. Preview the size and the error
#
# What will this budget buy? `plan` answers from public numbers alone. It makes up about as many records, releases
# and learns as a fit would, and looks at the error. We do not know the graph yet. A dozen pairs that should matter by
# common sense give the size of things.

# %%
budget = Budget(epsilon=1.0, delta=1e-9)
guess = [("income", other) for other in ("education", "age", "sex", "marital-status", "occupation", "hours-per-week")]
guess += [("marital-status", other) for other in ("relationship", "age", "sex")]
guess += [("occupation", other) for other in ("education", "workclass", "sex")]
print(plan(schema, budget, 40_000, graph=guess, simulations=3).details)

# %% [markdown]
# Total variation goes from 0, for equal tables, to 1. At .01 no probability in the table is off by more than a
# percentage point, and no sum of them either. These tables would come out well. `learn` also has to find the pairs, and
# measures more of them, so expect two or three times that error. Nothing has been spent.
#
# ## 3. Spend the budget
#
# A `PrivateTable` shows nothing of its rows, not even how many there are. Its ledger says what may be learned from
# them in total, and is asked before any noise is drawn.

# %%
table = PrivateTable(train, schema, ledger=Ledger(budget))
print(table)

# %% [markdown]
# `learn` first releases noisy tables of single variables. Then, round by round, it releases the table that the model so
# far gets most wrong, of two or three variables. The pairs in these tables are the edges of the graph.

# %%
network = learn(table, budget)
print(f"Learned {network.graph_.number_of_edges()} edges: {network.privacy_}")
print(f"Estimated number of records: {network.n_records_:,.0f} +- {network.n_records_sd_:,.0f}")
print("\nWhat was measured when, and how wrong the model was about it before (total variation)")
print(network.report_[["variables", "noise_scale", "error_before"]].head(8).to_string())
print("\nThe pairs about which the model may be most wrong")
print(network.errors_.head(3).to_string())

# %% [markdown]
# The budget is spent. Asking for more is refused, before anything happens.

# %%
try:
    learn(table, Budget(epsilon=0.1))
except BudgetExceeded as refusal:
    print(f"Asking for more: {refusal}\n")
print(table.ledger)

# %% [markdown]
# ## 4. Fit again, from the same release
#
# What was released may be used again, by other methods and without the records, at no further cost.

# %%
network.release_.save(OUT / "release.npz")
release = Release.load(OUT / "release.npz")
graph = network.graph_
again = PrivateNetwork().fit_release(release)
assert again.graph_.edges == graph.edges
models = {"learn": network.model_, "NaiveMLE": NaiveMLE().fit_release(graph, release).model_}

# %% [markdown]
# For reference only: what one could have learned on the same graph without any privacy. With an epsilon of a million
# the noise rounds to nothing.

# %%
models["not private"] = NaiveMLE(epsilon=1e6, l2=0.0, state_names=schema).fit(graph, train).model_


def exact_table(frame: pd.DataFrame, scope: tuple) -> np.ndarray:
    """The contingency table of some columns: not private."""
    rows = [pd.Categorical(frame[name], categories=schema[name]).codes for name in scope]
    shape = tuple(schema.cardinality(name) for name in scope)
    return np.bincount(np.ravel_multi_index(rows, shape), minlength=int(np.prod(shape))).reshape(shape)


# %% [markdown]
# ## 5. Query the model with pgmpy
#
# The result is a pgmpy model. pgmpy's `BeliefPropagation` answers with conditional probabilities. The
# `VariableElimination` of this package is pgmpy's own, which forgets to divide on undirected models, and divides.

# %%
model = network.model_
graduates = BeliefPropagation(model).query(
    ["income"], evidence={"education": "Masters", "sex": "Female"}, show_progress=False
)
print("P(income | education = Masters, sex = Female)")
print(graduates)

young = VariableElimination(model).query(["marital-status"], evidence={"age": "<25"}, show_progress=False)
print("\nP(marital-status | age < 25)")
print(young)

# %% [markdown]
# Draw as many synthetic records as you like. They follow from the model, so they cost nothing either.

# %%
synthetic = model.sample(48_842, random_state=0)
print(f"{len(synthetic):,} synthetic records, for example\n{synthetic.head(3).T.to_string(header=False)}")

# %% [markdown]
# ## 6. Check how good it is
#
# The table compares each model with the training records, by the total variation of each pair's table. It also has the
# log-likelihood of the held-out records. These checks are not private, see above.

# %%
pairs = list(itertools.combinations(schema, 2))
truth = [exact_table(train, pair) / len(train) for pair in pairs]
fitted = {name: [m.marginal(list(pair)).values for pair in pairs] for name, m in models.items()}
report = pd.DataFrame(
    {
        name: [0.5 * np.abs(ours - true).sum() for ours, true in zip(tables, truth, strict=True)]
        for name, tables in fitted.items()
    },
    index=[" - ".join(pair) for pair in pairs],
)
summary = report.loc[report["learn"].nlargest(3).index]
report.loc["MEAN TOTAL VARIATION"] = report.mean()
report.loc["HELD-OUT LOG-LIKELIHOOD PER RECORD"] = [m.log_likelihood(test, normalize=True) for m in models.values()]
print(f"Total variation of all {len(pairs)} pairs ({len(train):,} records to learn from, {len(test):,} held out)")
print(pd.concat([summary, report.tail(2)]).to_string(float_format="{:.4f}".format))

# %% [markdown]
# On the same graph privacy about doubles the error of a pair's table, and costs a tenth of a nat for each held-out
# record. `NaiveMLE`, which takes the noisy tables for exact ones, loses more. It takes what the noise pushed to nothing
# as nearly impossible.
#
# Now the pictures. The first is the graph, with thicker edges between variables that depend on each other more. The
# second has each cell of each pair's table: its share of the records against what the model says. Rare cells are off by
# more, relatively, because their noise is as large as that of the others.

# %%
figure, axes = plt.subplots(1, 2, figsize=(12.5, 5.6), layout="constrained")
plot_graph(graph, network.edge_scores_, axes[0], label="distance from independence (total variation)")
plot_marginals(model, train, axes[1])
figure.suptitle("Adult, learned with epsilon = 1, delta = 1e-9")
figure.savefig(OUT / "network.png", dpi=130)

# %% [markdown]
# The assertions are loose: the noise is real, so each run differs.

# %%
error, likelihood = report.loc["MEAN TOTAL VARIATION"], report.loc["HELD-OUT LOG-LIKELIHOOD PER RECORD"]
assert error["not private"] < error["learn"] < 0.03
assert likelihood["not private"] - 0.3 < likelihood["learn"] < likelihood["not private"]
print("checked")

# %% [markdown]
# ## 7. Save the model, and a page for others
#
# The model goes into one file, bit for bit, with the guarantee under which it was learned. The report is one HTML
# page for people who do not program.

# %%
report.to_csv(OUT / "report.csv")
synthetic.to_csv(OUT / "synthetic.csv.gz", index=False)
model.save(OUT / "model.npz")
model.report(OUT / "report.html")
loaded = MarkovNetwork.load(OUT / "model.npz")
assert all((a.values == b.values).all() for a, b in zip(model.factors, loaded.factors, strict=True))
print(f"Saved and loaded a model with {len(loaded)} variables, learned with {loaded.privacy}")
print(f"Wrote {', '.join(sorted(path.name for path in OUT.iterdir()))} to {OUT.relative_to(ROOT)}")

# %% [markdown]
# ## Exercises
#
# Answers unfold. They ran with this page.
#
# **1.** `plan` costs nothing, so change the budget. What does epsilon = .1 buy for the table of sex and income, and
# what epsilon = 1 from 4,000 people instead of 40,000?

# %% tags=["hide-cell"]
few = schema.subset(["sex", "income"])
for epsilon, n in ((1.0, 40_000), (0.1, 40_000), (1.0, 4_000)):
    found = plan(few, Budget(epsilon=epsilon), n, graph=[("sex", "income")], simulations=5).details
    print(f"epsilon = {epsilon}, {n:6,} people: total variation {found.expected_total_variation:.5f}")
print("The last two are about equal. The noise is the same number of people whoever is asked, so what counts is")
print("epsilon times the number of people: ten times as many people are worth ten times the budget.")

# %% [markdown]
# **2.** Forget a state: leave "HS-grad" out of the levels of education, and release the table. Who says that something
# is wrong?

# %% tags=["hide-cell"]
forgetful = Schema({"education": [level for level in schema["education"] if level != "HS-grad"]})
alone = nx.Graph()
alone.add_node("education")
lost = NaiveMLE(epsilon=1.0).fit(alone, PrivateTable(train, forgetful, ledger=Ledger(Budget(epsilon=1.0))))
print(f"Nobody. About {lost.n_records_:,.0f} records were counted, of about {network.n_records_:,.0f}.")
print("An error or a warning would depend on a record. check estimates, for a small budget, how many are lost.")
assert lost.n_records_ < 0.8 * network.n_records_

# %% [markdown]
# **3.** Draw 1,000, 10,000 and 100,000 synthetic people. Do you know more about the real ones with each step?

# %% tags=["hide-cell"]
rich = (train["income"] == ">50K").mean()
for n in (1_000, 10_000, 100_000):
    share = (model.sample(n, random_state=1)["income"] == ">50K").mean()
    print(f"{n:7,} synthetic people: {share:.4f} earn more than 50K, off by {abs(share - rich):.4f}")
stated = float(model.marginal(["income"]).get_value(income=">50K"))
print(f"No. They come nearer to what the model says, {stated:.4f}, which is off by {abs(stated - rich):.4f} for good.")

# %% [markdown]
# **4.** Ask the model for the income of men and women who have a Bachelors. What is left in the ledger afterwards?

# %% tags=["hide-cell"]
entries = table.ledger.entries
for sex in schema["sex"]:
    answer = model.query(["income"], {"education": "Bachelors", "sex": sex})
    print(f"{sex}: {answer.get_value(income='>50K'):.3f}")
assert table.ledger.entries == entries
print("As much as before: questions to a model are post-processing. Only what reads the records is charged.")

# %% [markdown]
# ## What went wrong for others
#
# * **Edges taken for dependence.** The edges of `learn` are those that help the model most. A pair without an edge may
#   only have been too dear to measure, and is not "independent" for that ([known limits](../docs/known-limits.md)).
# * **Two ledgers for the same people.** They know nothing of each other, and what people lose adds up all the same.
#   Pass one `PrivateTable` to every fit, or open one file by `Ledger.open`.
# * **Weights for probabilities.** pgmpy's own `VariableElimination` (1.1.2) returns conditional answers of undirected
#   models undivided: they do not add up to 1, and look like probabilities.
#
# Next: [choosing a budget and a learner](02_choosing_a_budget_and_a_learner.py), [how `learn` finds the
# graph](../docs/structure.md), [what exactly is guaranteed](../docs/guarantees.md), and [what is
# not](../docs/known-limits.md).
