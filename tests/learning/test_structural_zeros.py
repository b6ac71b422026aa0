"""Models that obey boxes, against the joint table with these cells set to 0."""

from __future__ import annotations

import dataclasses
import itertools

import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pgmpy.inference import BeliefPropagation, VariableElimination

from pgmpy_dp import MarkovNetwork
from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.conditioning import ImpossibleEvidence, conditioned
from pgmpy_dp.inference.junction_tree import InferenceTooLarge
from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.inference.loopy_belief_propagation import LoopySettings
from pgmpy_dp.learning.maximum_likelihood import naive_mle
from pgmpy_dp.learning.noisy_marginals import NoisyMarginals
from pgmpy_dp.learning.structural_zeros import engine_within, obeying, with_zeros

NAMES, SIZES = ("a", "b", "c", "d"), (2, 3, 2, 4)


def mask(boxes) -> np.ndarray:
    """1 where a record is possible, by looking at each."""
    possible = np.ones(SIZES)
    for record in itertools.product(*map(range, SIZES)):
        state = dict(zip(NAMES, record, strict=True))
        if any(all(state[name] in codes for name, codes in box.items()) for box in boxes):
            possible[record] = 0
    return possible


@st.composite
def cases(draw):
    """A model and boxes that leave something."""
    scopes = draw(st.lists(st.sampled_from([*itertools.combinations(NAMES, 2), ("b", "c", "d")]), max_size=4))
    cliques = Cliques(NAMES, SIZES, (*scopes, *((name,) for name in NAMES)))
    scale = draw(st.sampled_from([0.5, 5.0, 300.0]))
    theta = np.random.default_rng(draw(st.integers(0, 99))).normal(scale=scale, size=cliques.n_cells)
    states = [st.frozensets(st.integers(0, size - 1), min_size=1) for size in SIZES]
    parts = st.lists(st.sampled_from(range(4)), min_size=1, max_size=3, unique=True)
    boxes = draw(
        st.lists(parts.flatmap(lambda axes: st.fixed_dictionaries({NAMES[i]: states[i] for i in axes})), max_size=4)
    )
    assume(mask(boxes).any())
    return LogLinearModel(cliques, theta), boxes


def expected(model, boxes) -> np.ndarray:
    logs = np.zeros(SIZES)
    for scope, table in zip(model.cliques.indices, model.cliques.split(model.theta), strict=True):
        order = np.argsort(scope)
        logs = logs + table.transpose(order).reshape([SIZES[i] if i in scope else 1 for i in range(4)])
    logs = np.where(mask(boxes) > 0, logs, -np.inf)
    joint = np.exp(logs - logs.max())
    return joint / joint.sum()


@settings(max_examples=25, deadline=None)
@given(cases())
def test_it_is_the_joint_table_with_zeros_normalised(case):
    model, boxes = case
    joint, found = expected(model, boxes), obeying(model, boxes)
    np.testing.assert_allclose(found.marginal(NAMES), joint, atol=1e-11)
    for scope in [*itertools.combinations(NAMES, 2), *((name,) for name in NAMES)]:
        table = joint.sum(axis=tuple(i for i in range(4) if NAMES[i] not in scope))
        assert not found.marginal(scope)[
            mask(boxes).sum(axis=tuple(i for i in range(4) if NAMES[i] not in scope)) == 0
        ].any()
        np.testing.assert_allclose(found.marginal(scope), table, atol=1e-11)
    codes = found.sample(200, np.random.default_rng(0))
    assert mask(boxes)[tuple(codes.T)].all()


@settings(max_examples=20, deadline=None)
@given(cases())
def test_the_exported_network_has_the_same_zeros(case):
    model, boxes = case
    states = {name: list(range(size)) for name, size in zip(NAMES, SIZES, strict=True)}
    graph = nx.Graph()
    graph.add_nodes_from(NAMES)
    found = obeying(model, boxes)
    for scope in found.cliques.scopes:
        graph.add_edges_from(itertools.combinations(scope, 2))
    network = MarkovNetwork.from_log_linear(found, graph, states)
    joint = expected(model, boxes)
    assert network.check_model()
    np.testing.assert_allclose(network.marginal(list(NAMES)).values, joint, atol=1e-7)
    assert not network.marginal(list(NAMES)).values[mask(boxes) == 0].any()
    asked = VariableElimination(network).query(["a", "d"], show_progress=False)
    table = asked.values if asked.variables == ["a", "d"] else asked.values.T
    np.testing.assert_allclose(table, joint.sum(axis=(1, 2)), atol=1e-7)
    with np.errstate(invalid="ignore"):  # pgmpy divides 0 by 0 there, and takes it for 0
        belief = BeliefPropagation(network).query(["b"], show_progress=False)
    np.testing.assert_allclose(belief.values, joint.sum(axis=(0, 2, 3)), atol=1e-7)


@settings(max_examples=40, deadline=None)
@given(cases(), st.integers(0, 3), st.integers(0, 3))
def test_evidence_is_conditioned_on_or_refused(case, axis, state):
    model, boxes = case
    state %= SIZES[axis]
    joint = expected(model, boxes).take(state, axis=axis)
    if not mask(boxes).take(state, axis=axis).any():
        with pytest.raises(ImpossibleEvidence, match="probability 0"):
            conditioned(obeying(model, boxes), {NAMES[axis]: state})
    elif joint.sum() > 1e-300:
        left = [name for name in NAMES if name != NAMES[axis]]
        table = conditioned(obeying(model, boxes), {NAMES[axis]: state}).marginal(left)
        np.testing.assert_allclose(table, joint / joint.sum(), atol=1e-9)


def test_zeros_of_the_model_that_leave_nothing_possible_are_a_limit():
    cliques = Cliques(("a", "b"), (2, 2), (("a",), ("b",)))
    model = LogLinearModel(cliques, np.log([1e-300, 1.0, 0.25, 0.75]) + [-np.inf, 0, 0, 0])
    zero = obeying(model, [{"a": {0}, "b": {1}}])
    np.testing.assert_allclose(zero.marginal(["a", "b"]), [[0, 0], [0.25, 0.75]])
    # What is possible has a = 0, which the model gives 0: it gets all, and the rest is as the model has it.
    assert obeying(model, [{"a": {1}}]).marginal(["a", "b"]).round(9).tolist() == [[0.25, 0.75], [0.0, 0.0]]
    both = LogLinearModel(cliques, np.array([-np.inf, 0.0, -np.inf, 0.0]))
    fewest = obeying(both, [{"a": {1}, "b": {1}}])  # (0, 0) has two zeros, (0, 1) and (1, 0) one
    assert fewest.marginal(["a", "b"]).round(9).tolist() == [[0.0, 0.5], [0.5, 0.0]]


def test_loopy_inference_gives_zeros_in_the_rules_own_tables():
    cliques = Cliques(NAMES, SIZES, tuple(itertools.combinations(NAMES, 2)))
    theta = np.random.default_rng(0).normal(size=cliques.n_cells)
    model = LogLinearModel(cliques, theta, inference=LoopySettings())
    boxes = [{"a": {0}, "b": {1, 2}}, {"b": {0}, "c": {1}, "d": {0, 3}}]
    found = obeying(model, boxes)
    assert found.inference_status.converged
    assert found.marginal(["a", "b"])[0, 1:].tolist() == [0.0, 0.0]
    assert not found.marginal(["b", "c", "d"])[0, 1, [0, 3]].any()
    np.testing.assert_allclose(found.marginal(["a", "b"]), expected(model, boxes).sum(axis=(2, 3)), atol=0.05)
    exact = dataclasses.replace(found, inference="exact")
    np.testing.assert_allclose(exact.marginal(NAMES), expected(model, boxes), atol=1e-12)


def test_tables_that_are_too_large_are_refused_before_they_are_made():
    names = tuple(f"x{i}" for i in range(12))
    cliques = Cliques(names, (10,) * 12, tuple((name,) for name in names))
    model = LogLinearModel(cliques, np.zeros(cliques.n_cells))
    with pytest.raises(InferenceTooLarge, match="memory_limit"):
        obeying(model, [{name: {0} for name in names}])


def test_boxes_share_tables():
    cliques = Cliques(NAMES, SIZES, (("a", "b"), ("c",), ("d",)))
    boxes = [{"a": {0}}, {"b": {0}, "c": {1}}, {"c": {0}, "b": {1}}, {"d": {1}, "c": {1}, "b": {2}}]
    assert with_zeros(cliques, boxes).scopes == (("a", "b"), ("c",), ("d",), ("b", "c", "d"))
    assert with_zeros(cliques, []) is cliques


def test_the_engine_of_fits_under_rules_is_the_model_conditioned():
    """Marginals and their derivative, of what rules forbid and of what they imply: c = 0 has no record."""
    cliques = Cliques(("a", "b", "c"), (2, 3, 2), (("a", "b"), ("c",), ("b",)))
    boxes = [
        {"a": frozenset({0}), "c": frozenset({0})},
        {"a": frozenset({1}), "c": frozenset({0}), "b": frozenset({0, 1, 2})},
    ]
    rng = np.random.default_rng(0)
    theta, direction = rng.normal(size=(2, cliques.n_cells))
    engine = engine_within(cliques, boxes)
    marginals, log_partition = engine.calibrate(theta)
    found = obeying(LogLinearModel(cliques, theta), boxes)
    np.testing.assert_allclose(marginals, found.marginals()[: cliques.n_cells], atol=1e-12)
    assert log_partition == pytest.approx(found.log_partition)
    assert marginals[6] == 0.0
    slope = engine.derivative(direction)
    step = 1e-5
    difference = engine.calibrate(theta + step * direction)[0] - engine.calibrate(theta - step * direction)[0]
    np.testing.assert_allclose(slope, difference / (2 * step), atol=1e-8)
    apart = Cliques(("a", "b", "c"), (2, 3, 2), (("a", "b"), ("c",)))
    noisy = NoisyMarginals(apart, rng.normal(100, 5, apart.n_cells), "laplace", np.ones(2), impossible=tuple(boxes))
    fit = naive_mle(noisy, l2=0.0)
    assert fit.converged and fit.model.marginal(["c"]).tolist() == [0.0, 1.0]
    np.testing.assert_allclose(fit.model.marginals()[:6], noisy.projected_proportions()[:6], atol=1e-4)
    assert engine_within(cliques, []).cliques is cliques


def test_released_cells_that_are_impossible_are_noise():
    cliques, boxes = Cliques(("a", "b"), (2, 2), (("a", "b"), ("a",))), ({"a": frozenset({0}), "b": frozenset({1})},)
    noisy = NoisyMarginals(cliques, np.array([30.0, 7, 50, 20, 32, 68]), "gaussian", np.ones(2), impossible=boxes)
    assert noisy.counts.tolist() == [30, 0, 50, 20, 32, 68]
    assert noisy.sum_variance.tolist() == [3, 2] and noisy.n_records == 100
    projected = noisy.projected_proportions()
    assert projected[1] == 0.0 and projected[:4].sum() == pytest.approx(1.0)
    assert noisy.merged().impossible == boxes
