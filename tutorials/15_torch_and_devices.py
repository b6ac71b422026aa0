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
from pgmpy_dp.communities.correlation_projection import project_correlation
from pgmpy_dp.communities.operators.sparse_minus_constant import SparseMinusConstant
from pgmpy_dp.communities.planted_graphs import error_rate, planted_labels, sample_block_model
from pgmpy_dp.estimators import PrivateBlockModel, PrivateGaussianMixture
from pgmpy_dp.mixtures.membership_clusters import block_centres

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
truth = planted_labels(400, 2, rng)  # made up
graph = sample_block_model(truth, degree=150, bias=0.9, rng=rng)
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
# The projection of a block model's matrix on correlation matrices is the relaxation behind `method="sdp"`. On public,
# made-up matrices we can look at both answers. They are not equal to the last bit, and need not be: each is within a
# stated distance of the exact projection.

# %%
scale = 1.5 / (0.9 * 150)
target = SparseMinusConstant(graph, scale, scale * 150 / 400)
tolerance = 1e-6
by_numpy = project_correlation(target, tolerance=tolerance)
by_torch = project_correlation(target, tolerance=tolerance, device=device)
apart = float(np.linalg.norm(by_numpy.matrix - by_torch.matrix))
print(f"{by_numpy.status}; {by_torch.status}; they are {apart:.1e} apart")
assert apart <= 2 * tolerance

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
wrong = error_rate(np.array(list(found.labels_.values())), truth)
print(found.privacy_)
print(f"{wrong:.1%} of the labels are wrong")

# %% [markdown]
# Mixtures cluster hundreds of blocks of records. k-means and the membership program take all blocks at once, with one
# matrix for each. A GPU is good at that.

# %%
centres = 1e4 + 12.0 * np.eye(3, 4)  # made up
records = centres[rng.integers(3, size=8000)] + rng.normal(size=(8000, 4))
public = {"separation": 12.0, "scale": 1.0, "adjacency": "replace_one", "n_records": 8000}
mixture = PrivateGaussianMixture(3, epsilon=2.0, delta=1e-6, block_solver="sdp", device=device, **public).fit(records)
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
blocks = np.stack([centres[rng.integers(3, size=24)] + rng.normal(size=(24, 4)) for _ in range(100)])
used = np.ones(blocks.shape[:2])
rows = {}
for name in (None, device):
    block_centres(blocks, used, 3, 1.0, device=name)  # the first call starts the device
    started = time.perf_counter()
    rows[name or "NumPy"] = (block_centres(blocks, used, 3, 1.0, device=name), time.perf_counter() - started)
print(pd.DataFrame({"seconds for 100 programs": {name: seconds for name, (_, seconds) in rows.items()}}).round(2))
first, second = (where for where, _ in rows.values())
assert np.abs(first - second).max() < 1e-6
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
