"""Tables of variables that lie far apart are those of the joint distribution, in memory that is known beforehand."""

from __future__ import annotations

import itertools
import tracemalloc

import numpy as np
import pytest

from pgmpy_dp.inference import far_sets
from pgmpy_dp.inference.belief_propagation import SumProduct
from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.far_sets import FarSets
from pgmpy_dp.inference.junction_tree import InferenceTooLarge
from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.inference.scope_marginals import ScopeMarginals


def random_model(seed):
    """Up to eight variables of 1 to 3 states, in several components too, with impossible cells."""
    rng = np.random.default_rng(seed)
    p = int(rng.integers(1, 9))
    scopes = [
        tuple(rng.choice(p, int(rng.integers(1, min(4, p) + 1)), replace=False).tolist())
        for _ in range(int(rng.integers(0, 9)))
    ]
    cliques = Cliques(tuple(range(p)), tuple(rng.integers(1, 4, p).tolist()), tuple(dict.fromkeys(scopes)))
    theta = 2 * rng.normal(size=cliques.n_cells)
    theta[rng.random(len(theta)) < 0.1] = -np.inf
    return LogLinearModel(cliques, theta), rng


def band(n, states, width, seed=0):
    """Each variable in one clique with the next ones, and no separator narrow."""
    scopes = tuple(tuple(range(i, i + width)) for i in range(n - width + 1))
    cliques = Cliques(tuple(range(n)), (states,) * n, scopes)
    return LogLinearModel(cliques, 0.5 * np.random.default_rng(seed).normal(size=cliques.n_cells))


def far_sets_of(model, **bound):
    engine = SumProduct(model.cliques)
    engine.calibrate(model.theta)
    return FarSets(engine.plan.tree, engine.beliefs(), **bound)


@pytest.mark.parametrize("seed", [pytest.param(k, marks=[pytest.mark.slow] * (k > 6)) for k in range(15)])
def test_tables_of_sets_of_all_sizes_and_in_any_order_are_those_of_the_joint_distribution(seed):
    model, rng = random_model(seed)
    if not model.is_possible:
        pytest.skip("no record is possible")
    p = len(model.cliques.variables)
    joint = model.marginal(range(p))
    bounds = [far_sets_of(model), far_sets_of(model, largest=12), far_sets_of(model, largest=1)]
    for order in range(1, p + 1):
        scopes = list(itertools.combinations(range(p), order))
        for place in rng.choice(len(scopes), min(len(scopes), 6), replace=False):
            asked = rng.permutation(scopes[place]).tolist()
            expected = np.einsum(joint, range(p), asked)
            for found in bounds:
                np.testing.assert_allclose(found.table(asked), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("largest", [1 << 10, 1 << 12])
def test_no_array_is_larger_than_planned_and_the_plan_is_within_the_bound(largest, monkeypatch):
    model = band(24, 4, 5)  # cliques of 1,024 cells
    asked = (1, 5, 9, 13, 17, 21)
    whole, bounded = far_sets_of(model), far_sets_of(model, largest=largest)
    (most, once), (planned, passes) = whole.planned(asked), bounded.planned(asked)
    assert once == 1
    assert planned <= largest < most
    assert passes >= most / largest / 4  # halves of states: less than a quarter of the bound is never planned
    made = []
    true = far_sets.joined
    monkeypatch.setattr(far_sets, "joined", lambda *given: made.append(true(*given)) or made[-1])
    expected = whole.table(asked)
    assert max(part.size for part in made) <= most
    made.clear()
    found = bounded.table(asked)
    assert max(part.size for part in made) <= planned
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-15)


def test_a_clique_above_the_bound_is_worked_on_one_state_at_a_time():
    model = band(8, 4, 4)
    found = far_sets_of(model, largest=10)
    assert found.planned((0, 7)) == (4**4, 4)
    np.testing.assert_allclose(found.table((0, 7)), far_sets_of(model).table((0, 7)), rtol=0, atol=1e-15)


def peak(function):
    """What a call returns, and the bytes that it had at once."""
    tracemalloc.start()
    try:
        return function(), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_few_far_sets_of_a_wide_tree_take_little_memory():
    """The conditional matrices of all variables have 10**8 numbers. Parts of them took 1,010 MiB."""
    model = band(60, 8, 5)
    found = ScopeMarginals(model.cliques, model.theta)
    pairs, triples = [(0, 40), (5, 59)], [(0, 30, 59), (3, 20, 50)]
    tables, bytes_ = peak(lambda: found.tables(pairs + triples))
    assert bytes_ < 2**26
    for scope, table in zip(pairs + triples, tables, strict=True):
        assert table.shape == (8,) * len(scope)
        np.testing.assert_allclose(table.sum(), 1.0, atol=1e-12)
    np.testing.assert_allclose(tables[2].sum(axis=1), found.tables([(0, 59)])[0], rtol=0, atol=1e-14)


def test_a_model_answers_far_sets_without_a_tree_that_joins_them():
    """Beside a clique of 32,768 cells four far variables made one of 16 million cells: 275 MiB."""
    model = band(30, 8, 5)
    table, bytes_ = peak(lambda: model.marginal((28, 1, 10, 20)))
    assert bytes_ < 2 * model._engine.size.memory_bytes
    np.testing.assert_allclose(table.sum(axis=(0, 2)), model.marginal((1, 20)), rtol=0, atol=1e-13)


def test_tables_above_the_memory_limit_are_refused_before_they_are_made():
    model = LogLinearModel(Cliques(tuple(range(30)), (2,) * 30, ((0, 1),)), np.zeros(4), memory_limit=10**6)
    with pytest.raises(InferenceTooLarge, match=r"the tables asked for have 8,388,608 bytes, over memory_limit=1,000"):
        model.marginal(range(20))
