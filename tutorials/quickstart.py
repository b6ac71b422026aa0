"""Quickstart: a private Markov network of the Adult census data.

Run it with `make demo`, or `python tutorials/quickstart.py` where the package is installed with its
"plot" extra. It reads the census records that ship with the repository, spends a privacy budget of
epsilon = 1, delta = 1e-9 on them once, and does everything else from that one release. Output goes to
build/demo.
"""

import itertools
import warnings
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

# pgmpy.inference imports modules that pgmpy itself deprecates.
warnings.filterwarnings("ignore", message="`pgmpy", category=FutureWarning)
from pgmpy.inference import BeliefPropagation, VariableElimination

from pgmpy_dp import Budget, Ledger, MarkovNetwork, PrivateTable, Release, Schema, learn
from pgmpy_dp.estimators import NaiveMLE, PrivateNetwork
from pgmpy_dp.models.cliques import Cliques
from pgmpy_dp.models.maximum_likelihood import maximum_likelihood
from pgmpy_dp.plotting import plot_graph, plot_marginals
from pgmpy_dp.private.ledger import BudgetExceeded

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "build" / "demo"
OUT.mkdir(parents=True, exist_ok=True)


# 1. What is public
# -----------------
# The schema: the variables and all of their possible states, from the documentation of the data. It is
# never read from the records: that a rare state occurs at all can tell that someone is in the data.

schema = Schema.from_json(ROOT / "data" / "adult_disc.domain.json")
print(schema, "\n")


# 2. What is private
# ------------------
# The records. A fifth is held out, by a fixed and therefore public seed, to judge the models with; that
# judgement uses exact statistics, which is only right because the census data are in fact public.

records = pd.read_csv(ROOT / "data" / "adult_disc.csv.gz", dtype=str, keep_default_na=False)
held_out = np.random.default_rng(2024).random(len(records)) < 0.2
train, test = records[~held_out], records[held_out]

# A PrivateTable shows nothing of its rows, not even how many there are. Its ledger says what may be
# learned from them in total, and is asked before any noise is drawn.

budget = Budget(epsilon=1.0, delta=1e-9)
table = PrivateTable(train, schema, ledger=Ledger(budget))
print(table, "\n")


# 3. Spend the budget: a graph and its parameters
# -----------------------------------------------
# `learn` releases noisy tables of single variables, and then, round by round, the table of the pair of
# variables that the model so far gets most wrong. The pairs that it chose are the edges of the graph.

network = learn(table, budget)
network.release_.save(OUT / "release.npz")
print(f"Learned {network.graph_.number_of_edges()} edges: {network.privacy_}")
print(f"Estimated number of records: {network.n_records_:,.0f} +- {network.n_records_sd_:,.0f}\n")
print("What was measured when, and how wrong the model was about it before (total variation)")
print(network.report_[["first", "second", "noise_scale", "error_before"]].head(8).to_string(), "\n")
print("The pairs about which the model may be most wrong")
print(network.errors_.head(3).to_string(), "\n")

try:
    learn(table, Budget(epsilon=0.1))
except BudgetExceeded as refusal:
    print(f"Asking for more: {refusal}\n")

print(table.ledger, "\n")


# 4. Learn again from the same release
# ------------------------------------
# What was released may be used again, by other methods and without the records, at no further cost.

release = Release.load(OUT / "release.npz")
graph = network.graph_
again = PrivateNetwork().fit_release(release)
assert again.graph_.edges == graph.edges
models = {"learn": network.model_, "NaiveMLE": NaiveMLE().fit_release(graph, release).model_}

# For reference only: what one could have learned on the same graph without any privacy, from exact counts.

cliques = Cliques.from_graph(graph, schema.cardinalities)


def exact_table(frame: pd.DataFrame, scope: tuple) -> np.ndarray:
    """The contingency table of some columns: not private."""
    rows = [pd.Categorical(frame[name], categories=schema[name]).codes for name in scope]
    shape = tuple(schema.cardinality(name) for name in scope)
    return np.bincount(np.ravel_multi_index(rows, shape), minlength=int(np.prod(shape))).reshape(shape)


not_private = maximum_likelihood(cliques, cliques.join([exact_table(train, scope) for scope in cliques.scopes])).model
models["not private"] = MarkovNetwork.from_log_linear(not_private, graph, schema)


# 5. Ask questions with pgmpy
# ---------------------------
# The result is a pgmpy model. BeliefPropagation answers with conditional probabilities; VariableElimination
# on undirected models leaves its answer to be normalised.

model = network.model_
graduates = BeliefPropagation(model).query(
    ["income"], evidence={"education": "Masters", "sex": "Female"}, show_progress=False
)
print("P(income | education = Masters, sex = Female)")
print(graduates, "\n")

young = VariableElimination(model).query(["marital-status"], evidence={"age": "<25"}, show_progress=False)
young.normalize()
print("P(marital-status | age < 25)")
print(young, "\n")


# 6. Draw synthetic records
# -------------------------
# As many as one likes: they follow from the model, so they cost nothing either.

synthetic = model.sample(48_842, random_state=0)
synthetic.to_csv(OUT / "synthetic.csv.gz", index=False)
print(f"{len(synthetic):,} synthetic records, for example\n{synthetic.head(3).T.to_string(header=False)}\n")


# 7. How good is it?
# ------------------
# Total variation between each model's and the training records' distribution of each pair of variables,
# from 0 (the same) to 1, and the log-likelihood of the held-out records. Not private, see above.

pairs = list(itertools.combinations(schema, 2))
truth = [exact_table(train, pair) / len(train) for pair in pairs]
fitted = {name: m.to_log_linear().marginals_of(pairs) for name, m in models.items()}
report = pd.DataFrame(
    {
        name: [0.5 * np.abs(ours - true).sum() for ours, true in zip(tables, truth, strict=True)]
        for name, tables in fitted.items()
    },
    index=[" - ".join(pair) for pair in pairs],
)
worst = report["learn"].nlargest(3).index
summary = report.loc[worst]
report.loc["MEAN TOTAL VARIATION"] = report.mean()
report.loc["HELD-OUT LOG-LIKELIHOOD PER RECORD"] = [m.log_likelihood(test, normalize=True) for m in models.values()]
print(f"Total variation of all {len(pairs)} pairs ({len(train):,} records to learn from, {len(test):,} held out)")
print(pd.concat([summary, report.tail(2)]).to_string(float_format="{:.4f}".format), "\n")
report.to_csv(OUT / "report.csv")


# 8. Keep the model
# -----------------
# One file, bit for bit, with the guarantee under which it was learned.

model.save(OUT / "model.npz")
loaded = MarkovNetwork.load(OUT / "model.npz")
assert all((a.values == b.values).all() for a, b in zip(model.factors, loaded.factors, strict=True))
print(f"Saved and loaded a model with {len(loaded)} variables, learned with {loaded.privacy}\n")


# 9. See it
# ---------
# The graph, with thicker edges between variables that depend on each other more; and all cells of all
# pairs' tables: their share of the training records (for judging, as in 7) against what the model says.

figure, axes = plt.subplots(1, 2, figsize=(12, 5.2), layout="constrained")
plot_graph(graph, network.edge_scores_, axes[0], label="total variation from independence")
axes[0].set_title("learned graph")
plot_marginals(model, train, axes[1])
axes[1].set_title("cells of all pairs, epsilon = 1")
figure.savefig(OUT / "network.png", dpi=130)

print(f"Wrote {', '.join(sorted(path.name for path in OUT.iterdir()))} to {OUT.relative_to(ROOT)}")
