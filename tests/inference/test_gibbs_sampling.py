"""Records from a model that runs on loopy inference."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.inference.sampling import gibbs_sample


def test_frequencies_are_those_of_the_model():
    rng = np.random.default_rng(0)
    scopes = [("a",), ("a", "b"), ("b", "c", "d"), ("d", "a"), ("c", "e")]
    cliques = Cliques(tuple("abcdef"), (2, 3, 2, 4, 1, 2), tuple(scopes))
    model = LogLinearModel(cliques, rng.normal(size=cliques.n_cells), inference="loopy")
    exact = replace(model, inference="exact")
    drawn = model.sample(20_000, rng)
    for scope in (("a", "b"), ("b", "c", "d"), ("a", "c"), ("e", "f")):
        places = [cliques.variables.index(name) for name in scope]
        expected = exact.marginal(scope)
        found = np.zeros(expected.shape)
        np.add.at(found, tuple(drawn[:, place] for place in places), 1 / len(drawn))
        # Six standard deviations of each of some 40 cells: a false alarm in 10 million.
        assert (np.abs(found - expected) < 6 * np.sqrt(expected / len(drawn)) + 1e-3).all()


def test_what_is_impossible_is_not_drawn():
    cliques = Cliques(("a", "b", "c"), (2, 3, 2), (("a", "b"), ("b", "c")))
    theta = np.zeros(cliques.n_cells)
    theta[[0, 1, 9]] = -np.inf
    model = LogLinearModel(cliques, theta, inference="loopy")
    drawn = model.sample(2_000, np.random.default_rng(1))
    assert not ((drawn[:, 0] == 0) & (drawn[:, 1] < 2)).any()
    assert not ((drawn[:, 1] == 1) & (drawn[:, 2] == 1)).any()
    assert len(np.unique(drawn, axis=0)) == 7  # all that is possible


def test_a_seed_repeats_and_no_records_are_none():
    pair = Cliques(("a", "b"), (2, 2), (("a", "b"),))
    half = [np.array([0.5, 0.5])] * 2
    first, again = (gibbs_sample(pair, np.arange(4.0), half, 50, np.random.default_rng(3)) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert gibbs_sample(pair, np.arange(4.0), half, 0, np.random.default_rng(3)).shape == (0, 2)
