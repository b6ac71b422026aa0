"""Marginals of many small sets at once are those of the joint distribution; what is admissible keeps cliques small."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from pgmpy_dp.models.cliques import Cliques
from pgmpy_dp.models.log_linear import LogLinearModel
from pgmpy_dp.models.scope_marginals import ScopeMarginals, admissible, largest_clique


def random_model(seed):
    """Up to seven variables of 1 to 3 states with random tables of up to four variables, in several components too."""
    rng = np.random.default_rng(seed)
    p = int(rng.integers(3, 8))
    scopes = [(i,) for i in range(p)]
    for _ in range(int(rng.integers(0, 7))):
        chosen = rng.choice(p, int(rng.integers(2, min(4, p) + 1)), replace=False)
        scopes.append(tuple(int(i) for i in chosen))
    cliques = Cliques(tuple(range(p)), tuple(rng.integers(1, 4, p)), tuple(dict.fromkeys(scopes)))
    return LogLinearModel(cliques, 2 * rng.normal(size=cliques.n_cells))


@pytest.mark.parametrize("seed", range(25))
def test_tables_of_all_sets_are_those_of_the_joint_distribution(seed):
    model = random_model(seed)
    p = len(model.cliques.variables)
    joint = model.marginal(range(p))
    scopes = [scope for order in (1, 2, 3, 4) for scope in itertools.combinations(range(p), order)]
    for scope, table in zip(scopes, ScopeMarginals(model.cliques, model.theta).tables(scopes), strict=True):
        others = tuple(i for i in range(p) if i not in scope)
        np.testing.assert_allclose(table, joint.sum(axis=others), rtol=0, atol=1e-12)


def test_impossible_states_of_separators_do_no_harm():
    chain = Cliques(("a", "b", "c", "d"), (2, 3, 2, 2), (("a", "b"), ("b", "c"), ("b", "d")))
    theta = np.random.default_rng(0).normal(size=chain.n_cells)
    theta[[1, 4]] = -np.inf  # b is never in its second state
    model = LogLinearModel(chain, theta)
    scopes = [(0, 2, 3), (0, 1, 2)]
    for scope, table in zip(scopes, ScopeMarginals(chain, theta).tables(scopes), strict=True):
        np.testing.assert_allclose(table, model.marginal([chain.variables[i] for i in scope]), rtol=0, atol=1e-12)


def test_sets_that_would_make_a_clique_too_large_are_refused():
    names, sizes = tuple("abcde"), (3, 2, 4, 2, 1)
    grown = Cliques(names, sizes, (*((name,) for name in names), ("a", "b"), ("b", "c"), ("c", "d")))
    scopes = [scope for order in (2, 3) for scope in itertools.combinations(range(5), order)]
    assert largest_clique(grown) == 8
    for limit in (8, 12, 16, 24, 48):
        allowed = admissible(grown, scopes, limit)
        assert {(0, 1), (1, 2), (2, 3)} <= set(allowed)
        for scope in scopes:
            assert (scope in allowed) == (largest_clique(grown, [scope]) <= limit)
