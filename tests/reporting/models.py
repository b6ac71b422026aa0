"""One fit that several tests look at."""

from __future__ import annotations

import functools
import warnings

import numpy as np
import pandas as pd

from pgmpy_dp import Budget, MarkovNetwork, Number, Release, Schema, learn

SCRIPT = "<script>alert(1)</script>"


@functools.cache
def _learned() -> tuple[MarkovNetwork, Release]:
    rng = np.random.default_rng(0)
    n = 8000
    age = rng.integers(16, 91, n)
    ill = rng.random(n) < 1 / (1 + np.exp(-(age - 60) / 10))
    data = pd.DataFrame({
        "age": age,
        "ill": np.where(ill, "yes", "no"),
        "smoker": np.where(rng.random(n) < np.where(age < 45, 0.4, 0.15), "yes", "no"),
        "school": rng.choice(["primary", SCRIPT, "tertiary"], n, p=[0.3, 0.5, 0.2]),
        'pay & "so"': np.where(rng.random(n) < 0.3 + 0.3 * ill, "high", "low"),
        "region": rng.choice(list("NSEW"), n),
    })  # fmt: skip
    schema = Schema({
        "age": Number(16, 90, cuts=[30, 45, 60, 75], resolution=1),
        "ill": ["no", "yes"],
        "smoker": ["no", "yes"],
        "school": ["primary", SCRIPT, "tertiary"],
        'pay & "so"': ["low", "high"],
        "region": list("NSEW"),
    })  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = learn(data, Budget(epsilon=1.0, delta=1e-9), schema, random_state=1)
    model = found.model_
    model.posterior = found.posterior(20, random_state=0)
    return model, found.release_


def fitted() -> MarkovNetwork:
    """Learned with probes from made-up patients, with 20 draws; a copy."""
    return _learned()[0].copy()


def release() -> Release:
    """What it was learned from."""
    return _learned()[1]
