"""Marginals of many small sets at once are those of the joint distribution; what is admissible keeps cliques small."""

from __future__ import annotations

import functools
import itertools

import numpy as np
import pytest

from pgmpy_dp.inference import scope_marginals
from pgmpy_dp.inference.belief_propagation import SumProduct
from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.inference.scope_marginals import ScopeMarginals, admissible, largest_clique


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


@pytest.mark.parametrize("few", [0, 50])
@pytest.mark.parametrize("seed", [pytest.param(k, marks=[pytest.mark.slow] * (k > 9)) for k in range(25)])
def test_sets_in_any_order_are_the_same_under_other_parameters_too(seed, few, monkeypatch):
    model = random_model(seed)
    monkeypatch.setattr(scope_marginals, "_FEW", few)
    p = len(model.cliques.variables)
    scopes = [scope for order in (1, 2, 3) for scope in itertools.permutations(range(p), order)][::3]
    found = ScopeMarginals(model.cliques, model.theta)
    found.tables(scopes)
    other = LogLinearModel(model.cliques, np.random.default_rng(seed).normal(size=model.cliques.n_cells))
    joint = other.marginal(range(p))
    for scope, table in zip(scopes, found.at(other.theta).tables(scopes), strict=True):
        rest = tuple(i for i in range(p) if i not in scope)
        own = joint.sum(axis=rest).transpose(np.argsort(np.argsort(scope)))
        np.testing.assert_allclose(table, own, rtol=0, atol=1e-12)


@functools.cache
def backwards(seed):
    """A model, its pairs and triples with their variables in reverse, and the tables of these."""
    model = random_model(seed)
    p = len(model.cliques.variables)
    scopes = [tuple(reversed(scope)) for order in (2, 3) for scope in itertools.combinations(range(p), order)]
    return model, scopes, [model.marginal(scope) for scope in scopes]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    "bounds",
    [
        {"_FEW": 0},
        {"_FEW": 1000},
        {"_FEW": 0, "_WHOLE": 1},
        {"_FEW": 1, "_NUMBERS": 30},
        {"_FEW": 1, "_NUMBERS": 1},
        {"_FEW": 0, "_CHUNK": 1, "_SPARSE": 0.0},
        {"_FEW": 0, "_CHUNK": 30, "_SPARSE": 0.0, "_WHOLE": 1},
        {"_FEW": 0, "_SPARSE": 2.0},
        {"_FEW": 0, "_SPARSE": 2.0, "_WHOLE": 1},
    ],
    ids=str,
)
def test_ranges_and_chunks_change_nothing(seed, bounds, monkeypatch):
    model, scopes, expected = backwards(seed)
    for name, value in bounds.items():
        monkeypatch.setattr(scope_marginals, name, value)
    found = ScopeMarginals(model.cliques, model.theta)
    for table, other in zip(found.tables(scopes), expected, strict=True):
        np.testing.assert_allclose(table, other, rtol=0, atol=1e-12)
    flat, sizes = found.flat(scopes)
    np.testing.assert_allclose(flat, np.concatenate([table.ravel() for table in expected]), rtol=0, atol=1e-12)
    assert sizes.tolist() == [table.size for table in expected]


def test_all_triples_of_a_long_chain_take_one_calibration(monkeypatch):
    names = tuple(range(30))
    chain = Cliques(names, (2,) * 30, tuple((i, i + 1) for i in range(29)))
    theta = np.random.default_rng(0).normal(size=chain.n_cells)
    engine, calls = SumProduct(chain), []
    true = engine.calibrate
    monkeypatch.setattr(engine, "calibrate", lambda theta: calls.append(1) or true(theta))
    scopes = list(itertools.combinations(names, 3))
    tables = dict(zip(scopes, ScopeMarginals(chain, theta, engine).tables(scopes), strict=True))
    assert len(calls) == 1
    model = LogLinearModel(chain, theta)
    for scope in ((0, 1, 2), (0, 14, 29), (3, 4, 20), (5, 6, 7), (27, 28, 29)):
        np.testing.assert_allclose(tables[scope], model.marginal(scope), rtol=0, atol=1e-12)


def test_only_what_the_sets_need_is_computed(monkeypatch):
    names = tuple(range(40))
    band = Cliques(names, (2,) * 40, tuple(tuple(range(i, i + 8)) for i in range(33)))
    theta = 0.3 * np.random.default_rng(0).normal(size=band.n_cells)
    near = [(i, i + 9) for i in range(31)] + [(i, i + 1, i + 9) for i in range(31)]
    monkeypatch.setattr(scope_marginals, "_FEW", len(near))
    alone = ScopeMarginals(band, theta).tables(near)
    made, true = [], scope_marginals._Rows

    def rows(*given):
        made.append(true(*given))
        return made[-1]

    for name, value in {"_Rows": rows, "_FEW": 0, "_WHOLE": 1}.items():
        monkeypatch.setattr(scope_marginals, name, value)
    for table, other in zip(ScopeMarginals(band, theta).tables(near), alone, strict=True):
        np.testing.assert_allclose(table, other, rtol=0, atol=1e-12)
    # For pairs and triples together: a variable of 2 states goes through 2 separators of 128 cells to meet the one 9
    # places on.
    assert sum(one.table.size for one in made) == 31 * 2 * 2 * 128


@pytest.mark.parametrize("numbers", [pytest.param(1 << 11, marks=pytest.mark.slow), 1 << 13])
def test_no_pass_holds_more_numbers_than_it_may(numbers, monkeypatch):
    names = tuple(range(24))
    band = Cliques(names, (2,) * 24, tuple(tuple(range(i, i + 6)) for i in range(19)))
    theta = 0.3 * np.random.default_rng(0).normal(size=band.n_cells)
    scopes = list(itertools.combinations(names, 2)) + list(itertools.combinations(names, 3))
    expected = ScopeMarginals(band, theta).tables(scopes)
    passes, true = [], scope_marginals._Pass.answer

    def answer(self, *given):
        passes.append(self._ways.cells @ (self._needs @ self._ways.sizes))
        true(self, *given)

    monkeypatch.setattr(scope_marginals._Pass, "answer", answer)
    monkeypatch.setattr(scope_marginals, "_NUMBERS", numbers)
    monkeypatch.setattr(scope_marginals, "_FEW", 5)
    for table, other in zip(ScopeMarginals(band, theta).tables(scopes), expected, strict=True):
        np.testing.assert_allclose(table, other, rtol=0, atol=1e-12)
    assert len(passes) > 2
    assert max(passes) <= numbers


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
