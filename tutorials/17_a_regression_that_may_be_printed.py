# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # A regression that may be printed
#
# **Afterwards you can** estimate a regression of private records, with intervals that hold, say which of its numbers
# may be printed, and forecast their width before anything is spent. **Time:** 30 minutes with the exercises, half a
# minute of computing. **You need** the [first tutorial](01_first_private_network.py) and to know what a logistic
# regression is.
#
# In 1974 a magazine asked its readers, among them 6,366 married women, about their marriages and their affairs. Ray
# Fair's paper about them (*Journal of Political Economy*, 1978) became an example in textbooks and in statsmodels. The
# records come with statsmodels, by permission of the author. Here they are treated as what they once were: nobody's
# business.
#
# Background: [regressions and tests](../docs/regressions.md), [intervals](../docs/intervals.md),
# [guarantees](../docs/guarantees.md).

# %% tags=["hide-input"]
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import statsmodels.api as sm
import statsmodels.formula.api as smf

warnings.filterwarnings("ignore", message="`pgmpy", category=FutureWarning)
warnings.filterwarnings("ignore", message="IProgress not found")
from pgmpy import config

from pgmpy_dp import Budget, Ledger, MarkovNetwork, PrivateTable, Schema, learn, plan, write_evidence

config.set_show_progress(False)
here = Path(globals().get("__file__", ".")).resolve()
ROOT = next(folder for folder in (here, *here.parents) if (folder / "data" / "SOURCES.md").exists())
OUT = ROOT / "build" / "regression"
OUT.mkdir(parents=True, exist_ok=True)

# %% [markdown]
# ## 1. Declare what is public
#
# The questionnaire is public, and it says which answers there were. Each answer has a number: a woman of 20 to 24 years
# counts as 22. These numbers are the *scores* of the regression. The formula is declared now, before anybody has seen a
# result. It is the one of the textbooks.

# %%
answers = {
    "rate_marriage": [1, 2, 3, 4, 5],
    "age": [17.5, 22, 27, 32, 37, 42],
    "yrs_married": [0.5, 2.5, 6, 9, 13, 16.5, 23],
    "children": [0, 1, 2, 3, 4, 5.5],
    "religious": [1, 2, 3, 4],
    "educ": [9, 12, 14, 16, 17, 20],
    "occupation": [1, 2, 3, 4, 5, 6],
    "occupation_husb": [1, 2, 3, 4, 5, 6],
}
schema = Schema({**answers, "affair": ["no", "yes"]})
scores = {name: {answer: answer for answer in listed} for name, listed in answers.items()}
formula = "affair ~ occupation + educ + occupation_husb + rate_marriage + age + yrs_married + children + religious"

survey = sm.datasets.fair.load_pandas().data
records = survey[list(answers)].assign(affair=np.where(survey["affairs"] > 0, "yes", "no"))
print(schema)

# %% [markdown]
# ## 2. Preview the costs
#
# Three fifths of the budget are for a model of all nine variables, and two fifths for the regression. Budgets are in
# rho, which adds up: half of the rho is half of the budget. How well would the model know its tables?

# %%
whole = Ledger(Budget(epsilon=3.0, delta=1e-6))
rho = 0.18  # what (3, 1e-6) is in zCDP, rounded down
for_model, for_regression = Budget(rho=0.6 * rho), Budget(rho=0.4 * rho)
print(plan(schema, for_model, 6_000))

# %% [markdown]
# ## 3. Spend
#
# The model comes first. It says where the regression has to ask.

# %%
table = PrivateTable(records, schema, ledger=whole)
network = learn(table, for_model).model_
print(network.privacy)

# %% [markdown]
# With a model, the widths of the intervals can be foretold. `width` is how much wider than without privacy an interval
# will be. It is a forecast from the model and an assumed number of records. No record is read.

# %%
forecast = plan(network, for_regression, 6_000, formula=formula, scores=scores)
print(forecast)
assert (forecast.table["width"] < 3).all()

# %% [markdown]
# ## 4. Fit the regression
#
# The records are asked twice, for a noisy sum of their scores. The first answer says where to ask the second time. In
# between they are asked how covariates go together, which a model of noisy tables mistakes most. The printed table is
# that of statsmodels with one column more: *privacy* is the part of the standard error that is noise.

# %%
fit = network.regress(formula, table, for_regression, scores=scores)
print(fit)
assert fit.status == "good"

# %% [markdown]
# ## 5. Query the result
#
# All of this is computed from what was released, and costs nothing. The intervals are for women like those who
# answered, also where the logistic law is not quite true. An odds ratio is the exponential of a coefficient.

# %%
odds = np.exp(pd.concat([fit.params.rename("odds ratio"), fit.conf_int(0.1)], axis=1).iloc[1:])
print(odds.rename(columns={0: "5 %", 1: "95 %"}).round(3).to_string())
print("\np-values below .05:", ", ".join(fit.pvalues.index[fit.pvalues < 0.05]))

# %% [markdown]
# **What may be printed?** The whole table, with the number of women, the status and the p-values. So may the model, all
# that is drawn from it, and the ledger, which says that there was one regression and not twenty.
#
# ## 6. Check
#
# **What may not be printed** is the next table. It has the coefficients of the records themselves, without noise. We
# can look because these records are public by now. With private ones, not even a look is free: whoever prefers one of
# two private results because it is nearer to the right column has told something of the records that no guarantee
# covers.

# %%
real = smf.logit(
    formula.replace("affair ~", "has_affair ~"), records.assign(has_affair=(records["affair"] == "yes") * 1)
)
real = real.fit(disp=0)
beside = pd.DataFrame({
    "private": fit.params, "std err": fit.bse, "of privacy": fit.bse_noise,
    "real": real.params, "real std err": real.bse,
})  # fmt: skip
beside["apart"] = (fit.params - real.params) / fit.bse
print(beside.round(3).to_string())
assert (beside["apart"].abs() < 5).all()
assert (fit.bse / real.bse).median() < 2
assert np.sign(fit.params["rate_marriage"]) == np.sign(real.params["rate_marriage"]) == -1

# %% [markdown]
# `apart` is the distance in standard errors. Both are of the same women, so that it is smaller than between two
# surveys. Who rates her marriage well, or is religious, had an affair less often: both columns say so.
#
# Age and years of marriage are the ones to look at twice. They go together so closely that the records hardly tell
# their effects apart, and the model does so even less: it is off by several standard errors, in opposite directions.
# Asked again, both are off by what their intervals say. What both say together is surer than what one says alone.
#
# ### Not from synthetic records
#
# It would have been simpler to draw records from the model, and to run statsmodels on these. The coefficients would
# have been those of the model, which are off by more than their standard errors say. `network_params` are these.

# %%
off = pd.DataFrame({
    "model alone": ((fit.network_params - real.params) / real.bse).abs(),
    "asked again": ((fit.params - real.params) / real.bse).abs(),
})  # fmt: skip
print(off.round(1).to_string(), "\n\nin standard errors of the real regression")

# %% [markdown]
# ## 7. Save
#
# The result is one file. The report of the model has a table of the declared analyses, and the evidence for an auditor
# says what was asked, of whom, and at what cost.

# %%
fit.save(OUT / "fit.npz")
network.save(OUT / "model.npz")
network.report(OUT / "report.html", regressions=[fit])
write_evidence(OUT / "evidence", network, regressions=[fit])
print(*sorted(path.name for path in OUT.iterdir()), sep="\n")
print(fit.privacy)

# %% [markdown]
# ## Exercises
#
# Answers unfold. They ran with this page.
#
# **1.** How wide would the intervals be for a tenth of the budget, and for ten times as much? Forecasts cost nothing.

# %% tags=["hide-cell"]
again = MarkovNetwork.load(OUT / "model.npz")
for factor in (0.1, 1.0, 10.0):
    widths = plan(again, Budget(rho=0.4 * rho * factor), 6_000, formula=formula, scores=scores).table["width"]
    print(f"{factor:4} times the budget: {widths.min():.2f} to {widths.max():.2f} times as wide as without privacy")
print(
    "Where noise is most of the width, twice the rho narrows it by the root of 2. Later there is little left to gain."
)

# %% [markdown]
# **2.** What would two formulas in one release cost: the one above, and one without the husbands' occupation?
# (`formula` takes a list.)

# %% tags=["hide-cell"]
shorter = formula.replace(" + occupation_husb", "")
both = plan(again, for_regression, 6_000, formula=[formula, shorter], scores=scores).table
print(both.groupby("formula", sort=False)["width"].median().round(2).to_string())
print("They share the budget, so that each has half of it. Declare the ones that you need, and no more.")

# %% [markdown]
# **3.** Does an affair depend on what the husband does? `network.independence(one, other, table, budget)` tests two
# variables as `regress` asks its formula. Test it, on the records of this page, with a ledger of its own.

# %% tags=["hide-cell"]
other = PrivateTable(records, schema, ledger=Ledger(Budget(rho=0.02)))
print(network.independence("occupation_husb", "affair", other, Budget(rho=0.02)))
print("The test is of these two alone. The regression compares women who are alike in all else, and finds little.")
print("The cost has that of the model in it, which is of the same women. The new ledger does not know of it: that is")
print("what an exercise may do, and a release not.")

# %% [markdown]
# ## What went wrong for others
#
# * **Stars from synthetic records.** Regressions of synthetic records have the usual standard errors, which know
#   nothing of the noise. Their intervals hold far too seldom ([measured](../benchmarks/results/regressions.md)).
# * **The usual test of a noisy table.** A chi-squared test takes noise for a dependence and rejects nearly always.
#   `independence` has the noise in its covariance.
# * **Formulas until one has a star.** Each of them was a release and is in the ledger, and one in twenty of those
#   without any effect has a star. Declare first.
#
# On the command line the same is `pgmpy-dp fit`, then `pgmpy-dp regress model.npz --formula ... --n 6000` for the
# forecast, and `pgmpy-dp regress model.npz records.csv --formula ... --ledger ledger.json` for the regression.
