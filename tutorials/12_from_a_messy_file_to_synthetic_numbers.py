# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # From a messy file to synthetic numbers
#
# **Afterwards you can** declare numbers, days, spellings and missing cells, find categories that nobody has listed, and
# turn a messy file into a synthetic one under one budget. **Time:** 35 minutes with the exercises, a minute of
# computing. **You need** the [first tutorial](01_first_private_network.py).
#
# People's files are messy. This one has numbers and days, blanks where something is missing, and `-9` for a refusal. It
# has several spellings of one answer, a rare category, and a text where a number should be. This page turns it into a
# synthetic file with the same columns, under one budget, and nobody writes a list of regions or jobs. At the end the
# same is done with the census file Adult, as it is found.
#
# [The command line](../docs/command-line.md#from-a-messy-file-to-synthetic-numbers) has the same without Python.

# %% tags=["hide-input"]
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

warnings.filterwarnings("ignore", message="`pgmpy", category=FutureWarning)
warnings.filterwarnings("ignore", message="IProgress not found")
from pgmpy import config

from pgmpy_dp import Budget, Date, Ledger, Number, PrivateTable, Schema, check, discover, learn

config.set_show_progress(False)
here = Path(globals().get("__file__", ".")).resolve()
ROOT = next(folder for folder in (here, *here.parents) if (folder / "data" / "SOURCES.md").exists())
OUT = ROOT / "build" / "messy"
OUT.mkdir(parents=True, exist_ok=True)

# %% [markdown]
# We make the file here, so that we know the truth and may look at it. If you have a file already, skip this cell.

# %%
rng = np.random.default_rng(2026)
n = 20_000
age = np.clip(np.rint(rng.gamma(5, 8.4, n)), 0, 104)
sex = rng.choice(["F", "M"], n, p=[0.52, 0.48])
region = rng.choice(["North", "South", "East", "West", "Lakes", "Rock"], n, p=[0.3, 0.3, 0.2, 0.15, 0.0497, 0.0003])
job = rng.choice(
    ["clerk", "nurse", "teacher", "engineer", "farmer", "diver"], n, p=[0.3, 0.25, 0.2, 0.15, 0.0995, 0.0005]
)
job[age < 15] = "none"
paid = {"none": 0.0, "clerk": 0.2, "nurse": 0.3, "teacher": 0.5, "engineer": 0.8, "farmer": 0.1, "diver": 1.2}
pay = 9.2 + 0.012 * np.minimum(age, 60) - 0.15 * (sex == "F") + 0.8 * np.array([paid[name] for name in job])
income = np.minimum(np.rint(np.exp(rng.normal(pay, 0.5))), 250_000)
admitted = pd.Timestamp("2015-01-01") + pd.to_timedelta(rng.integers(0, 3_650, n), unit="D")
spellings = {"F": ["F", "f", "Female", " F"], "M": ["M", "m", "Male", " M"]}
truth = pd.DataFrame({"admitted": admitted, "sex": sex, "age": age, "region": region, "job": job, "income": income})

raw = pd.DataFrame({"person": [f"P{k:05d}" for k in range(n)], "admitted": admitted.strftime("%d.%m.%Y")})
raw["sex"] = [spellings[name][k] for name, k in zip(sex, rng.choice(4, n, p=[0.7, 0.1, 0.15, 0.05]), strict=True)]
raw["age"] = np.where(rng.random(n) < 0.003, "unknown", age.astype(int).astype(str))
raw["region"] = np.where(rng.random(n) < 0.01, "?", region)
raw["job"] = job
raw["income"] = income.astype(int).astype(str)
for name, cell, share in (("admitted", "", 0.03), ("age", "", 0.02), ("income", "", 0.06), ("income", "-9", 0.04)):
    raw.loc[rng.random(n) < share, name] = cell
raw.loc[(age < 15) & (raw["age"] != "") & (raw["age"] != "unknown"), "income"] = ""
truth["income"] = pd.to_numeric(raw["income"], errors="coerce").where(lambda cell: cell != -9)
truth["age"] = pd.to_numeric(raw["age"], errors="coerce")
truth["admitted"] = pd.to_datetime(raw["admitted"], format="%d.%m.%Y", errors="coerce")
FILE = OUT / "survey.csv"
raw.to_csv(FILE, index=False)
print(raw.head(4).to_string())

# %% [markdown]
# ## 1. Declare what is public
#
# Public is what somebody could say who has never seen the file. That includes the names of its columns, and which ages
# and days are possible. It also includes how an answer may be spelled, and what stands for a missing one. A `Number`
# and a `Date` have bounds, not values. They need no cuts: the fit reads them on a fine grid, and noisy counts decide
# how finely it divides them.
#
# Take bounds from knowledge, and not too wide. A number outside them counts as the bound. An income of 250,000 or
# more is "250,000" here, which is a choice of ours and no fact about the people.

# %%
known = {
    "admitted": Date("2015-01-01", "2024-12-31", format="%d.%m.%Y"),
    "sex": ["F", "M"],
    "age": Number(0, 110, resolution=1),
    "income": Number(0, 250_000, resolution=1),
}
reading = {"missing": ["?"], "strip": True, "casefold": True}

# %% [markdown]
# The regions and jobs are not public. A list of categories that was read off the file would tell of the one person who
# has a rare one. The column `person` is not public either: what is not named is never read.
#
# ## 2. Preview the costs
#
# All that is ever spent on these people adds up in one *ledger*. We plan to spend:
#
# | for | epsilon | delta |
# | --- | --- | --- |
# | two checks whether the schema fits | .1 each | 0 |
# | the categories of region and job | .2 | 1e-9 |
# | the model | 1 | 1e-9 |

# %%
ledger = Ledger(Budget(epsilon=2.0, delta=1e-7))

# %% [markdown]
# ## 3. Spend a little: check, and discover
#
# Nobody is told when a cell cannot be read, because that depends on a record. `check` says about how many there
# are, with noise.

# %%
first = Schema(known, **reading)
checked = check(PrivateTable(FILE, first, ledger=ledger), Budget(epsilon=0.1))
print(checked)

# %% [markdown]
# A part of `sex` does not match. Blanks and capitals are taken care of, but on paper the answers were written out. Some
# incomes are no numbers from 0 to 250,000: in the codebook -9 is a refusal. As declared, it would have counted as an
# income of 0. We knew both and had forgotten them.

# %%
reading |= {"missing": ["?", "-9"], "recode": {"sex": {"Female": "F", "Male": "M"}}}
second = Schema(known, **reading)
checked = check(PrivateTable(FILE, second, ledger=ledger), Budget(epsilon=0.1))
print(checked)

# %% [markdown]
# Now everything matches but for noise, and for "unknown" in the column of ages. A cell that is no number counts as
# missing, so that these people are not lost.
#
# `discover` finds the categories that many people have. It needs a delta: a category that one person has is hardly
# ever listed, and delta is for that.

# %%
spelled = {"missing": ["?"], "strip": True}
found = discover(
    FILE, {"region": "categories", "job": "categories"}, Budget(epsilon=0.2, delta=1e-9), ledger=ledger, **spelled
)
print(found)

# %% [markdown]
# The divers and the people of the Rock, about ten each, are among the `other`, and so are the few who did not say where
# they live. That is how rare categories are protected, and it is a loss: no synthetic person will be a diver.
#
# The schema now has all columns, in the order of the file. It also says what the questionnaire says: nobody below 15 is
# asked about job and income.

# %%
listed = found.schema
schema = Schema(
    {
        **{name: known[name] for name in ("admitted", "sex", "age")},
        **{name: listed[name] for name in ("region", "job")},
        "income": known["income"],
    },
    other=listed.other,
    impossible=["age < 15 -> job = none", "age < 15 -> income = missing"],
    **reading,
)
print(schema)

# %% [markdown]
# ## 4. Fit

# %%
table = PrivateTable(FILE, schema, ledger=ledger)
network = learn(table, Budget(epsilon=1.0, delta=1e-9))
model = network.model_
print(f"About {network.n_records_:,.0f} records (standard deviation {network.n_records_sd_:,.0f})")
print(f"{network.graph_.number_of_edges()} edges: {network.privacy_}")
for name in schema.numbers:
    print(f"{name}: merged to {model.get_cardinality(name)} states, such as {model.states[name][:4]}")

# %% [markdown]
# Each number was counted once, on a grid of up to 128 cells. Neighbours that hold little more than noise are merged
# before pairs of columns are counted.
#
# ## 5. Query with ranges
#
# Ask as often as you like; it costs nothing. Evidence can be a number, a range with both ends, a day, or None for a
# missing one.

# %%
print("Income of women between 30 and 40")
print(model.ask("income", {"sex": "F", "age": (30, 40)}))
spring = model.probability({"income": (50_000, 250_000)}, {"admitted": ("2019-03-01", "2019-05-31")})
print(f"\nP(income of 50,000 or more | admitted in spring 2019) = {spring:.3f}")

# %% [markdown]
# ## 6. Check against the truth
#
# Synthetic people have whole numbers, days, and blanks where something is missing, in the order of the file. We made
# the file up, so we may compare. With people's data, do not: each exact number that is shown tells something.

# %%
synthetic = model.sample(n, random_state=0)
print(synthetic.head(4).to_string())


def summary(frame: pd.DataFrame) -> pd.Series:
    """Means, quantiles and shares of a file."""
    rows = {}
    for name in ("age", "income"):
        numbers = frame[name].dropna().astype(float)
        rows |= {f"{name}, mean": numbers.mean()}
        rows |= {f"{name}, {level:.0%}": numbers.quantile(level) for level in (0.1, 0.25, 0.5, 0.75, 0.9, 0.99)}
        rows |= {f"{name}, % missing": 100 * frame[name].isna().mean()}
    rows |= {"admitted before 2018, %": 100 * (frame["admitted"] < "2018-01-01").mean()}
    rows |= {f"{name}, %": 100 * (frame["job"] == name).mean() for name in ("clerk", "farmer", "none", "diver")}
    for name in ("F", "M"):
        rows |= {f"income of {name}, mean": frame.loc[frame["sex"] == name, "income"].astype(float).mean()}
    rows |= {"correlation of age and income": frame["age"].astype(float).corr(frame["income"].astype(float))}
    return pd.Series(rows)


compared = pd.DataFrame({"truth": summary(truth), "synthetic": summary(synthetic)})
print(compared.round(2).to_string())

# %% [markdown]
# This got lost:
#
# * Within a bin a number is independent of all other columns. Within a bin of age, income no longer rises with age, so
#   the whole correlation is smaller.
# * Few people have the largest incomes, so the last bin is wide, and the last percent is off.
# * The model joins the pairs of columns that matter most. What only three columns together show is not in it.
# * Rare categories are one `other`.

# %%
children = synthetic[(synthetic["age"] < 15).fillna(False)]
assert (children["job"] == "none").all(), "a rule is never broken"
assert children["income"].isna().all()
for name in ("age", "income"):
    assert abs(compared.loc[f"{name}, 50%", "synthetic"] / compared.loc[f"{name}, 50%", "truth"] - 1) < 0.15
assert abs(compared.loc["clerk, %", "synthetic"] - compared.loc["clerk, %", "truth"]) < 3
print("checked")

# %% [markdown]
# ## 7. Save

# %%
synthetic.to_csv(OUT / "synthetic.csv", index=False, date_format="%d.%m.%Y")
model.save(OUT / "model.npz")
print("\n".join((OUT / "synthetic.csv").read_text().splitlines()[:3]))
print(ledger)

# %% [markdown]
# The last line is the promise to the people in the file. Whatever anyone computes from the synthetic file falls
# under it. Less is spent than the 1.4 of step 2, since most costs add up to less in zCDP.
#
# ### Adult, as it is found
#
# The census file has a blank after each comma, `?` for a missing answer, and a point behind some incomes. It has nine
# columns of texts and six of numbers. We only say which is which, the bounds, and these spellings.

# %%
ADULT = ROOT / "data" / "adult_raw.csv.gz"
columns = pd.read_csv(ADULT, nrows=0).columns  # the names are public
numbers = {
    "age": Number(0, 120, resolution=1),
    "fnlwgt": Number(0, 2_000_000, resolution=1),
    "education-num": Number(1, 16, resolution=1),
    "capital-gain": Number(0, 99_999, resolution=1),
    "capital-loss": Number(0, 5_000, resolution=1),
    "hours-per-week": Number(0, 99, resolution=1),
}
spelled = {"missing": ["?"], "strip": True, "recode": {"income": {"<=50K.": "<=50K", ">50K.": ">50K"}}}

ledger = Ledger(Budget(epsilon=2.0, delta=1e-7))
declared = {name: numbers.get(name, "categories") for name in columns}
found = discover(ADULT, declared, Budget(epsilon=0.2, delta=1e-9), ledger=ledger, **spelled)
print(found)

network = learn(PrivateTable(ADULT, found.schema, ledger=ledger), Budget(epsilon=1.0, delta=1e-9))
synthetic = network.model_.sample(48_842, random_state=0)
synthetic.to_csv(OUT / "adult.csv", index=False, na_rep="?")
print(synthetic.head(3).T.to_string(header=False))

# %% [markdown]
# These records are [public](../data/SOURCES.md), so we compare once more. `distance` is Wasserstein's: how far a number
# of one file is from that of the same rank in the other, on average.

# %%
people = pd.read_csv(ADULT, skipinitialspace=True)
rows = {}
for name in numbers:
    true, ours = np.sort(people[name]), np.sort(synthetic[name].dropna().to_numpy(float))
    ranks = (np.arange(len(true)) + 0.5) / len(true)
    rows[name] = {
        "mean": true.mean(),
        "synthetic mean": ours.mean(),
        "median": np.median(true),
        "synthetic median": np.median(ours),
        "95 %": np.quantile(true, 0.95),
        "synthetic 95 %": np.quantile(ours, 0.95),
        "distance": np.abs(true - np.quantile(ours, ranks)).mean(),
    }
compared = pd.DataFrame(rows).T
print(compared.round(1).to_string())
rich = people["income"].str.startswith(">50K").mean(), (synthetic["income"] == ">50K").mean()
print(f"\nMore than 50,000 a year: {rich[0]:.1%}, synthetic {rich[1]:.1%}")
assert abs(rich[0] - rich[1]) < 0.02
assert abs(compared.loc["age", "mean"] - compared.loc["age", "synthetic mean"]) < 2
print(ledger)

# %% [markdown]
# ## Exercises
#
# Answers unfold. They ran with this page.
#
# **1.** Change the bounds: declare incomes from 0 to 50,000, though some people earn more. What do synthetic incomes
# look like?

# %% tags=["hide-cell"]
for most in (50_000, 250_000):
    two = Schema({"sex": ["F", "M"], "income": Number(0, most, resolution=1)}, **reading)
    bounded = learn(PrivateTable(FILE, two, ledger=Ledger(Budget(epsilon=1.0))), Budget(epsilon=1.0)).model_
    incomes = bounded.sample(n, random_state=0)["income"].dropna().astype(float)
    print(f"up to {most:7,}: mean {incomes.mean():6,.0f}, {(incomes > 0.98 * most).mean():.0%} at the upper bound")
print(f"The true mean is {truth['income'].mean():,.0f}. What is outside of the bounds counts as the bound, in silence:")
print("a message would tell of somebody's income. Too wide a bound costs little here, too narrow a one is not mended.")

# %% [markdown]
# **2.** Change the budget of `discover`: .2, .02 and .01. Which jobs are found?

# %% tags=["hide-cell"]
for epsilon in (0.2, 0.02, 0.01):
    sought = discover(
        FILE,
        {"job": "categories"},
        Budget(epsilon=epsilon, delta=1e-9),
        ledger=Ledger(Budget(epsilon=1.0, delta=1e-8)),
        strip=True,
    )
    print(f"epsilon = {epsilon:4}: {', '.join(map(str, sought.schema['job']))}")
print("A category is listed if its noisy count is above a threshold, which grows as epsilon and delta shrink.")

# %% [markdown]
# **3.** Ask what cannot be: the probability that a child of at most 14 years has an income. And ask about divers.

# %% tags=["hide-cell"]
print("a child has an income:", model.probability({"income": (0, 250_000)}, {"age": (0, 14)}))
try:
    model.probability({"job": "diver"})
except ValueError as refused:
    print(refused)
print("A rule holds exactly, in the model and in every sample of it. A category that was not found has no probability")
print("of its own: it is a part of the other state, and no question brings it back.")

# %% [markdown]
# **4.** The same people are in a second file. What is promised to them after the same plan for that file, with one
# ledger for both, and with a ledger for each?

# %% tags=["hide-cell"]
print("One ledger: (2, 1e-7), its budget. In zCDP the plan takes .0256 of .0736, as step 7 says, so it fits twice.")
print("For a third file the model would be refused. Two ledgers: each says (2, 1e-7), and together that is (4, 2e-7).")

# %% [markdown]
# ## What went wrong for others
#
# * **A schema that was read off the file.** Several packages take categories and bounds from the records by default,
#   and call the result private. The list tells of the one diver whatever noise the counts have.
# * **Guessed types.** A reader that guesses types lets one odd cell rewrite others (7 becomes "007" or 7.0). Then two
#   files that differ in a person differ in many cells. Give the path of the file: each cell is read by itself.
# * **A discovered schema taken for public.** Its states cost what `discover` cost, whoever uses them. Copied by hand
#   into another schema they no longer say so ([known limits](../docs/known-limits.md)).
#
# Next: [categories that nobody has listed](../docs/discover.md), [what cannot be](../docs/impossible.md), [fine
# grids](../docs/structure-options.md#numbers-without-cuts), [known limits](../docs/known-limits.md).
