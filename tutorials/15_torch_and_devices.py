# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Torch, and the device that computes
#
# **Afterwards you can** choose the device that computes, say what it may change in a result, and find out whether it is
# faster. **Time:** 20 minutes with the exercises, half a minute of computing. **You need** the [eighth
# tutorial](08_communities_in_a_network.py), and torch: `pip install '.[torch]'`, or on a machine without a GPU the
# smaller one of [the installation](../docs/installation.md).
#
# Some learners solve large problems: a projection of a matrix with millions of entries, hundreds of semidefinite
# programs, counts of millions of records. They can do so on a device of torch, a GPU for example. This tutorial says
# how a device is chosen, what it may change in a result, and why privacy does not rest on it.
#
# It runs on a machine without a GPU too. Torch's CPU device stands in for one there, and the last step says how much
# faster or slower it is. Background: [devices](../docs/devices.md).

# %% tags=["hide-input"]
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

warnings.filterwarnings("ignore", message="`pgmpy", category=FutureWarning)
warnings.filterwarnings("ignore", message="IProgress not found")  # of notebooks without ipywidgets
import torch
from pgmpy import config

config.set_show_progress(False)

from pgmpy_dp import Budget, Ledger, PrivateGraph, Release
from pgmpy_dp.estimators import PrivateBlockModel, PrivateGaussianMixture

HERE = Path(__file__).resolve().parent if "__file__" in globals() else Path.cwd()
ROOT = next(folder for folder in (HERE, *HERE.parents) if (folder / "data" / "SOURCES.md").exists())
OUT = ROOT / "build" / "tutorials-output" / "15"
OUT.mkdir(parents=True, exist_ok=True)

# %% [markdown]
# ## 1. Declare: which device
#
# There are two ways to name one. An estimator takes `device=`. And pgmpy has a torch backend for the whole process,
# which counts wherever no `device=` is given. Without either, NumPy computes, or torch on the processor where that was
# measured to be faster.

# %%
device = "cuda" if torch.cuda.is_available() else "cpu"
print(f"device={device!r}:", torch.cuda.get_device_name() if device == "cuda" else "torch's CPU device stands in")

rng = np.random.default_rng(0)
truth = rng.permutation(np.arange(400) % 2)  # made up: two communities, a degree of 150, bias .9
joined = rng.random((400, 400)) < 150 / 400 * np.where(truth[:, np.newaxis] == truth, 1.9, 0.1)
above = np.triu(joined, 1)
graph = (above | above.T).astype(np.int8)
ledger = Ledger(Budget(epsilon=12.0, delta=1e-5))
people = PrivateGraph(graph, ledger=ledger)

# %% [markdown]
# A device is a public argument like any other. One that is not there is refused before anything is spent:

# %%
try:
    PrivateBlockModel(method="sdp", epsilon=6.0, delta=1e-6, device="cuda:99").fit(people)
except ValueError as error:
    print(error)
assert ledger.entries == ()

# %% [markdown]
# ## 2. Preview: the same problem on both
#
# Behind `method="sdp"` is a projection on correlation matrices. On a made-up graph we may fix the noise by a seed, and
# look at both answers. They need not be equal to the last bit: each is within a stated distance of the exact one.

# %%
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # the seed makes these releases NOT PRIVATE, which a made-up graph need not be
    settings = {"method": "sdp", "bias": 0.9, "epsilon": 6.0, "delta": 1e-6, "random_state": 1}
    answers = [PrivateBlockModel(**settings, device=name).fit(graph).predict_table() for name in (None, device)]
same = (answers[0]["label"] == answers[1]["label"]).mean()
apart = (answers[0]["margin"] - answers[1]["margin"]).abs().max()
print(f"{same:.1%} of the labels are the same; margins of up to {answers[0]['margin'].max():.0f} differ by {apart:.1e}")
assert same > 0.99

# %% [markdown]
# ## 3. Spend: nothing rests on the device
#
# Every GPU rounds in its own way, and solvers have faults. So whatever a device returns is a suggestion. It comes back
# to the processor, where a certificate bounds how far it is from the optimum, rounding included. What is not certified
# is not released: the next solver is asked, and nobody is told. The noise allows for the certified distance, whatever
# computed.
#
# ## 4. Fit: communities and clusters

# %%
found = PrivateBlockModel(method="sdp", bias=0.9, epsilon=6.0, delta=1e-6, device=device).fit(people)
differing = np.mean(np.array(list(found.labels_.values())) != truth)
wrong = min(differing, 1 - differing)  # which community is called 0 means nothing
print(found.privacy_)
print(f"{wrong:.1%} of the labels are wrong")

# %% [markdown]
# Mixtures cluster hundreds of blocks of records. k-means and the membership program take all blocks at once, with one
# matrix for each. A GPU is good at that.

# %%
centres = 1e4 + 12.0 * np.eye(3, 4)  # made up
records = centres[rng.integers(3, size=8000)] + rng.normal(size=(8000, 4))
public = {"separation": 12.0, "scale": 1.0, "adjacency": "replace_one", "n_records": 8000, "block_solver": "sdp"}
mixture = PrivateGaussianMixture(3, epsilon=2.0, delta=1e-6, device=device, **public).fit(records[:8000])
print(mixture.status_)

# %% [markdown]
# ## 5. Query: all of the process on torch
#
# With pgmpy's torch backend, counting, graphical lassos and gradients go to its device too. Estimators need no
# argument then.

# %%
config.set_backend("torch", device=device)
try:
    again = PrivateBlockModel(method="sdp", bias=0.9, epsilon=6.0, delta=1e-6).fit(people)
finally:
    config.set_backend("numpy")
print(again.predict_table().head())

# %% [markdown]
# ## 6. Check: how much faster
#
# Measure before you choose. On a small problem a GPU waits for its work most of the time. Torch's CPU device is slower
# than NumPy for these solvers, which is why it is not the default. `python -m benchmarks.gpu` measures large ones.

# %%
seconds, where = {}, {}
for name in (None, device):  # the device has been started by the fits above
    started = time.perf_counter()
    timed = PrivateGaussianMixture(3, epsilon=2.0, delta=1e-6, device=name, **public).fit(records)
    seconds[name or "NumPy"], where[name or "NumPy"] = time.perf_counter() - started, timed.status_
print(pd.DataFrame({"seconds for a mixture": seconds, "status": where}).round(2))
assert wrong < 0.2
assert mixture.means_ is not None

# %% [markdown]
# ## 7. Save: a release knows no device
#
# Nothing in a release depends on where it was computed. It is read on any machine, without torch.

# %%
found.release_.save(OUT / "communities.npz")
loaded = PrivateBlockModel().fit_release(Release.load(OUT / "communities.npz"))
assert loaded.labels_ == found.labels_
print(f"Wrote communities.npz to {OUT.relative_to(ROOT)}; left in the ledger: {ledger.left}")

# %% [markdown]
# ## Exercises
#
# Answers unfold. They ran with this page.
#
# **1.** Change the device to one that is not there, for the mixture. When is it refused?

# %% tags=["hide-cell"]
try:
    PrivateGaussianMixture(3, epsilon=2.0, delta=1e-6, device="cuda:99", **public).fit(records)
except ValueError as refused:
    print(refused)
print("Before anything is spent: a device is a public argument, and whether it is there depends on no record.")

# %% [markdown]
# **2.** Change the data, not the device: half as many records. Does the time tell something about them?

# %% tags=["hide-cell"]
for n in (4000, 8000):
    started = time.perf_counter()
    PrivateGaussianMixture(3, epsilon=2.0, delta=1e-6, **{**public, "n_records": n, "block_solver": "kmeans"}).fit(
        records[:n]
    )
    print(f"{n:,} records: {time.perf_counter() - started:.2f} s")
print("It can. Times depend on the records, on every device, and are not protected. Publish none of real data.")

# %% [markdown]
# **3.** Change the seed of the comparison in step 2, and keep the device. Which differs more: two devices or two seeds?

# %% tags=["hide-cell"]
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # as in step 2
    drawn = [PrivateBlockModel(**{**settings, "random_state": seed}).fit(graph).predict_table() for seed in (1, 2)]
moved = (drawn[0]["margin"].abs() - drawn[1]["margin"].abs()).abs().max()
print(f"two devices: {apart:.1e}, two seeds: {moved:.1e}")
print("Two seeds, by far. The noise is what protects, and it is never drawn on the device.")
assert moved > apart

# %% [markdown]
# ## What went wrong for others
#
# * **A proof for the optimum, a solver for the rest.** Privacy was proved for the exact optimum of a program (Chen et
#   al. 2023, Lemma 4.1), and no solver returns that, least of all in single precision. Here a certificate that trusts
#   nothing of the solver bounds the distance, and the noise allows for it.
# * **A failure paid for by delta.** A solver without coins fails on a given graph always or never. So its failures
#   cannot be part of delta: the last solver has to end on every graph ([papers and
#   corrections](../docs/papers-and-corrections.md)).
# * **Fast multiplication.** Proofs of rounding take matrix products to be sums of products in some order. That is true
#   of BLAS, and not of Strassen's method ([known limits](../docs/known-limits.md)).
