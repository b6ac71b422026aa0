"""Quickstart: a private Markov network of the Adult census data.

Run it with `make demo`, or `python tutorials/quickstart.py` where the package is installed with its
"plot" extra. It reads the census records that ship with the repository, spends a privacy budget of
epsilon = 1 on them once, and does everything else from that one release. Output goes to build/demo.
"""

import warnings
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
import pandas as pd
from pgmpy import config
from tqdm.auto import tqdm

# pgmpy.inference imports modules that pgmpy itself deprecates.
warnings.filterwarnings("ignore", message="`pgmpy", category=FutureWarning)
from pgmpy.inference import BeliefPropagation, VariableElimination

from pgmpy_dp import Budget, Ledger, MarkovNetwork, PrivateTable, Release, Schema
from pgmpy_dp.estimators import CollectiveEM, CollectiveMAP, NaiveMLE
from pgmpy_dp.models.cliques import Cliques
from pgmpy_dp.models.maximum_likelihood import maximum_likelihood
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

# The graph: which attributes interact directly. These 15 edges are common knowledge about people and
# work. Learning them from the records would have to be paid for.

graph = nx.Graph()
graph.add_nodes_from(schema)
graph.add_edges_from(
    [
        ("age", "marital-status"),
        ("age", "hours-per-week"),
        ("marital-status", "relationship"),
        ("relationship", "sex"),
        ("relationship", "race"),
        ("relationship", "income"),
        ("race", "native-country"),
        ("education", "occupation"),
        ("education", "income"),
        ("occupation", "workclass"),
        ("occupation", "sex"),
        ("occupation", "income"),
        ("sex", "hours-per-week"),
        ("capital-gain", "income"),
        ("capital-loss", "income"),
    ]
)


# 2. What is private
# ------------------
# The records. A fifth is held out, by a fixed and therefore public seed, to judge the models with; that
# judgement uses exact statistics, which is only right because the census data are in fact public.

records = pd.read_csv(ROOT / "data" / "adult_disc.csv.gz", dtype=str, keep_default_na=False)
held_out = np.random.default_rng(2024).random(len(records)) < 0.2
train, test = records[~held_out], records[held_out]

# A PrivateTable shows nothing of its rows, not even how many there are. Its ledger says what may be
# learned from them in total, and is asked before any noise is drawn.

table = PrivateTable(train, schema, ledger=Ledger(Budget(epsilon=1.0)))
print(table, "\n")


# 3. Spend the budget: one release
# --------------------------------
# The contingency table of each edge gets Laplace noise of scale 15: adding or removing one person changes
# each of the 15 tables by 1. CollectiveMAP then finds a model of which such noisy tables are likely.

best = CollectiveMAP(epsilon=1.0).fit(graph, table)
best.release_.save(OUT / "release.npz")
print(f"Released {len(best.release_.values)} noisy tables: {best.privacy_}")
print(f"Estimated number of records: {best.n_records_:,.0f} +- {best.n_records_sd_:,.0f}\n")

try:
    CollectiveMAP(epsilon=0.1).fit(graph, table)
except BudgetExceeded as refusal:
    print(f"Asking for more: {refusal}\n")

print(table.ledger, "\n")


# 4. Learn again from the same release
# ------------------------------------
# What was released may be used again, by other methods and without the records, at no further cost.

release = Release.load(OUT / "release.npz")
methods = [CollectiveMAP(), CollectiveEM(), NaiveMLE()]
models = {}
for method in tqdm(methods, desc="Fitting the release", disable=not config.get_show_progress()):
    models[type(method).__name__] = method.fit_release(graph, release).model_

# For reference only: the model that one could have learned without any privacy, from exact counts.

cliques = Cliques.from_graph(graph, schema.cardinalities)


def exact_table(frame: pd.DataFrame, scope: tuple) -> np.ndarray:
    """The contingency table of a pair of columns: not private."""
    row, column = scope
    counts = pd.crosstab(frame[row], frame[column])
    return counts.reindex(index=schema[row], columns=schema[column], fill_value=0).to_numpy()


exact = [exact_table(train, scope) for scope in cliques.scopes]
not_private = maximum_likelihood(cliques, cliques.join(exact)).model
models["not private"] = MarkovNetwork.from_log_linear(not_private, graph, schema)


# 5. Ask questions with pgmpy
# ---------------------------
# The result is a pgmpy model. BeliefPropagation answers with conditional probabilities; VariableElimination
# on undirected models leaves its answer to be normalised.

model = models["CollectiveMAP"]
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
# Total variation between each model's and the training records' distribution on the pairs of the fitted
# edges, from 0 (the same) to 1, and the log-likelihood of the held-out records. Not private, see above.

truth = [counts / counts.sum() for counts in exact]
fitted = {name: m.to_log_linear().marginals_of(cliques.scopes) for name, m in models.items()}
report = pd.DataFrame(
    {
        name: [0.5 * np.abs(ours - true).sum() for ours, true in zip(tables, truth, strict=True)]
        for name, tables in fitted.items()
    },
    index=[" - ".join(scope) for scope in cliques.scopes],
)
report.loc["MEAN TOTAL VARIATION"] = report.mean()
report.loc["HELD-OUT LOG-LIKELIHOOD PER RECORD"] = [m.log_likelihood(test, normalize=True) for m in models.values()]
print(f"Total variation on the fitted edges ({len(train):,} records to learn from, {len(test):,} held out)")
print(report.to_string(float_format="{:.4f}".format), "\n")
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
# Each dot is one cell of one edge's table: its share of the records against what the model says.

figure, axes = plt.subplots(1, 3, figsize=(12, 4.2), sharex=True, sharey=True, layout="constrained")
floor = 2e-6
for axis, name in zip(axes, ["CollectiveMAP", "CollectiveEM", "NaiveMLE"], strict=True):
    true = np.concatenate([t.ravel() for t in truth])
    private = np.concatenate([t.ravel() for t in fitted[name]])
    axis.plot([floor, 1], [floor, 1], color="0.6", linewidth=1, zorder=1)
    axis.scatter(np.maximum(true, floor), np.maximum(private, floor), s=9, alpha=0.5, linewidth=0, color="#1f5f8b")
    axis.set(xscale="log", yscale="log", xlim=(floor * 0.8, 1), ylim=(floor * 0.8, 1), title=name, aspect="equal")
    axis.set_xlabel("share of the training records")
    mean = report.loc["MEAN TOTAL VARIATION", name]
    axis.text(0.96, 0.05, f"mean total variation {mean:.4f}", transform=axis.transAxes, ha="right", fontsize=9)
axes[0].set_ylabel("private model, epsilon = 1")
figure.suptitle(f"Cells of the {cliques.n_cliques} edge marginals of Adult; those without a record are at the left")
figure.savefig(OUT / "edge_marginals.png", dpi=130)

print(f"Wrote {', '.join(sorted(path.name for path in OUT.iterdir()))} to {OUT.relative_to(ROOT)}")
