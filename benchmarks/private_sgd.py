"""PrivateSGD as a method of the benchmarks: it learns from records, where the others learn from noisy tables.

Its release is made here, with seeded coins and noise since the records are made up: the learner inside the boundary is
run as it is, with its defaults. They were chosen on populations of seeds 201 to 204, and on others that no benchmark
has. As in Bernstein et al. (2017), delta = 1/N, which is more than its competitors get: their pure guarantee has none.
"""

from __future__ import annotations

import time
import warnings

import numpy as np
import pandas as pd

from pgmpy_dp.estimators import PrivateSGD
from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.learning.options import settings_of
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.data.table import PrivateTable
from pgmpy_dp.private.noise.samplers import ReproducibleNoiseWarning
from pgmpy_dp.tables.collective.published.gradient_ascent import parameters, run

__all__ = ["fit_private_sgd"]


def fit_private_sgd(codes: np.ndarray, cliques: Cliques, epsilon: float, seed: int) -> tuple[np.ndarray, float, str]:
    """Log-potentials at (epsilon, 1/N) under add_remove with the public N of the other methods, seconds, and a note.

    The seconds are of processor time.

    Parameters
    ----------
    codes : ndarray of shape (n, n_variables)
        Records, columns as ``cliques.variables``.
    cliques : Cliques
    epsilon : float
    seed : int
        Of the sampling and the noise.
    """
    states = {name: list(range(size)) for name, size in zip(cliques.variables, cliques.cardinalities, strict=True)}
    budget = Budget(epsilon=epsilon, delta=1.0 / len(codes))
    frame = pd.DataFrame(codes, columns=list(cliques.variables))
    table = PrivateTable(frame, states, ledger=budget, n_records=len(codes))
    settings = settings_of(PrivateSGD(random_state=seed)).but(scopes=cliques.scopes)
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReproducibleNoiseWarning)
        release = run(table, settings, budget)
    seconds = time.process_time() - start
    path = release.public["path"]
    return parameters(release), seconds, f"delta = 1/N, last learning rate {path['last_learning_rate']:.3g}"
