"""Samplers of random fields against the exact distribution, and what their burn-in rests on."""

from __future__ import annotations

import itertools

import networkx as nx
import numpy as np
import pytest
from scipy.stats import chi2

from benchmarks.field_sampling import DoesNotCouple, _from_the_past, sample_field
from benchmarks.glauber import BinaryGlauber, PairwiseGlauber, half_logistic
from benchmarks.mixing import dobrushin_burn_in, gibbs_burn_in, influences
from benchmarks.random_graphs import (
    named_graph,
    random_binary_field,
    random_hyperedges,
    random_ising,
    random_pairwise,
)
from pgmpy_dp.fields.random_fields import BinaryField, Ising, Pairwise
from pgmpy_dp.inference.junction_tree import InferenceTooLarge
from tests.fields.test_random_fields import all_codes, joint

FALSE_ALARM = 1e-6
"""Of each test of samples against a distribution."""


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


FIELDS = {
    "ising grid": random_ising(named_graph("grid", 6, rng(1)), rng(1), width=1.5, field=0.3),
    "attractive star": random_ising(named_graph("star", 6, rng(2)), rng(2), width=1.5, field=0.3, attractive=True),
    "complete": random_ising(nx.complete_graph(6), rng(3), width=1.2, field=0.2),
    "isolated nodes": Ising(np.zeros((4, 4)), np.array([-1.0, 0.0, 0.5, 2.0])),
    "t-wise": random_binary_field(
        6, [(0, 1), (3, 5), *random_hyperedges(6, 3, 4, rng(4))], rng(4), width=1.2, field=0.3
    ),
    "order 4": BinaryField(5, {(0, 1, 2, 3): 0.4, (1, 4): -0.3, (2,): 0.2}),
    "pairwise binary": random_pairwise(nx.cycle_graph(5), 2, rng(5), width=1.3, field=0.3),
    "pairwise": random_pairwise(nx.cycle_graph(4), [3, 2, 4, 3], rng(6), width=1.3, field=0.3),
    "pairwise, isolated node": random_pairwise(nx.star_graph(2), [3, 3, 3], rng(7), width=1.0, field=0.5),
}
BINARY = [name for name in FIELDS if name not in ("pairwise", "pairwise, isolated node")]


def pearson(field, codes: np.ndarray) -> tuple[float, float]:
    """Pearson's statistic over all records, cells that expect less than 5 pooled, and its 1 - FALSE_ALARM quantile."""
    expected = joint(field) * len(codes)
    observed = np.bincount(np.ravel_multi_index(codes.T, field.cardinalities), minlength=expected.size)
    rare = expected < 5
    if rare.any():
        expected, observed = (np.append(counts[~rare], counts[rare].sum()) for counts in (expected, observed))
    return float(np.sum((observed - expected) ** 2 / expected)), float(chi2.ppf(1 - FALSE_ALARM, len(expected) - 1))


@pytest.mark.parametrize(
    ("name", "method"),
    [
        (name, method)
        for name in FIELDS
        for method in ("exact", "perfect", "gibbs")
        if name in BINARY or method != "perfect"
    ],
)
def test_samples_follow_the_distribution(name, method):
    field = FIELDS[name]
    codes = sample_field(field, 40_000, rng(8), method=method)
    assert codes.shape == (40_000, field.n_variables) and codes.dtype == np.uint8
    statistic, bound = pearson(field, codes)
    assert statistic < bound


@pytest.mark.parametrize("name", ["ising grid", "t-wise", "pairwise"])
def test_the_statistic_can_fail(name):
    """Gibbs sampling that stops after one sweep is told from the model."""
    field = FIELDS[name]
    statistic, bound = pearson(field, sample_field(field, 40_000, rng(9), method="gibbs", burn_in=1))
    assert statistic > bound


def test_perfect_sampling_where_no_burn_in_is_proved():
    """A cycle whose influences have spectral radius 2 tanh(.7) = 1.2."""
    field = random_ising(nx.cycle_graph(7), rng(10), weight=0.7, attractive=True)
    assert dobrushin_burn_in(field) is None
    statistic, bound = pearson(field, sample_field(field, 40_000, rng(11), method="perfect"))
    assert statistic < bound
    statistic, bound = pearson(field, sample_field(field, 40_000, rng(11), method="gibbs"))
    assert statistic < bound


@pytest.mark.slow  # laws of small fields are exact above
def test_a_larger_field_agrees_with_its_junction_tree():
    """75 pair moments of 40 variables, n = 8,000; a normal bound of 5.6 deviations for each: false alarm 4e-6."""
    field = random_ising(named_graph("regular", 40, rng(12)), rng(12), width=1.3, field=0.2)
    n = 8_000
    model = field.to_log_linear()
    signs = np.array([[1.0, -1.0], [-1.0, 1.0]])
    # Pairs at a distance one by one: together they would make one large clique.
    pairs = [*field.edges(), *((i, i + 20) for i in range(15))]
    exact = np.array([(model.marginal(pair) * signs).sum() for pair in pairs])
    for method in ("perfect", "gibbs"):
        z = 2.0 * sample_field(field, n, rng(13), method=method) - 1
        moments = (z.T @ z / n)[tuple(np.array(pairs).T)]
        assert np.abs((moments - exact) / np.sqrt((1 - exact**2) / n)).max() < 5.6


def test_bounds_of_partly_known_states_hold():
    """Every completion of a state with unknown variables moves inside what the bounded sweep says."""
    field = FIELDS["t-wise"]
    glauber = BinaryGlauber(field)
    known = np.random.default_rng(14).choice([-1.0, 0.0, 1.0], size=(6, 200)).astype(np.float32)
    thresholds = half_logistic((6, 200), rng(15))
    bounded = np.vstack([known, np.ones((1, 200), dtype=np.float32)])
    glauber.sweep(bounded, thresholds, bounded=True)
    assert (bounded[:-1] == 0).any() and (np.abs(bounded[:-1]) == 1).any()
    for completion in itertools.product([-1.0, 1.0], repeat=6):
        state = np.where(known == 0, np.array(completion)[:, None], known).astype(np.float32)
        state = np.vstack([state, np.ones((1, 200), dtype=np.float32)])
        glauber.sweep(state, thresholds, bounded=False)
        assert ((bounded == 0) | (bounded == state)).all()


def test_what_is_known_from_the_past_stays_known():
    """What makes coupling from the past exact, and coupling to the future not."""
    glauber = BinaryGlauber(FIELDS["t-wise"])
    later = _from_the_past(glauber, 500, 7, 2)
    known = later != 0
    assert 0.1 < known[:-1].mean() < 0.9
    for past in (3, 4, 8, 32):
        earlier = _from_the_past(glauber, 500, 7, past)
        np.testing.assert_array_equal(earlier[known], later[known])
        assert (earlier != 0).sum() > known.sum()
        later, known = earlier, earlier != 0
        if known.all():
            break
    assert known.all()


@pytest.mark.parametrize("name", list(FIELDS))
def test_a_sweep_keeps_the_distribution(name):
    """Started from exact draws, one sweep leaves them exact: the conditionals are those of the model."""
    field = FIELDS[name]
    codes = sample_field(field, 40_000, rng(16), method="exact")
    if name in BINARY:
        binary = (
            field
            if isinstance(field, BinaryField)
            else (field.to_ising() if isinstance(field, Pairwise) else field).to_binary_field()
        )
        state = np.vstack([2.0 * codes.T - 1, np.ones((1, len(codes)))]).astype(np.float32)
        BinaryGlauber(binary).sweep(state, half_logistic(codes.T.shape, rng(17)), bounded=False)
        after = (state[:-1].T > 0).astype(int)
    else:
        glauber = PairwiseGlauber(field)
        state = np.concatenate([np.eye(k, dtype=np.float32)[codes[:, i]].T for i, k in enumerate(field.cardinalities)])
        glauber.sweep(state, rng(17).random(codes.T.shape, dtype=np.float32))
        assert (state.sum(axis=0) == field.n_variables).all()
        after = glauber.codes(state).T
    assert (after != codes).any()
    statistic, bound = pearson(field, after)
    assert statistic < bound


@pytest.mark.parametrize("name", list(FIELDS))
def test_influences_bound_conditional_distances(name):
    """Against the largest total variation distance by enumeration; for Ising without fields they are attained."""
    field = FIELDS[name]
    p, table = field.n_variables, joint(field).reshape(field.cardinalities)
    bound = influences(field)
    for i, j in itertools.permutations(range(p), 2):
        moved = np.moveaxis(table, (i, j), (0, 1)).reshape(field.cardinalities[i], field.cardinalities[j], -1)
        conditional = moved / moved.sum(axis=0)
        distance = 0.5 * np.abs(conditional[:, :, None] - conditional[:, None]).sum(axis=0).max()
        assert distance <= bound[i, j] + 1e-12
    free = Ising(np.array([[0, 0.6], [0.6, 0]]), np.zeros(2))
    assert influences(free)[0, 1] == pytest.approx(np.tanh(0.6))


def one_sweep_matrix(field: Ising) -> np.ndarray:
    """Transition matrix of a sweep in the order of the sampler's colour classes, which for a path is even, odd."""
    z = 2 * all_codes(field.cardinalities) - 1
    order = np.concatenate([block.nodes for block in BinaryGlauber(field.to_binary_field())._blocks])
    size = len(z)
    total = np.eye(size)
    for i in order:
        step = np.zeros((size, size))
        up = 1 / (1 + np.exp(-2 * (z @ field.weights[i] + field.fields[i])))
        codes = all_codes(field.cardinalities)
        for value, probability in ((1, up), (0, 1 - up)):
            target = codes.copy()
            target[:, i] = value
            step[np.arange(size), np.ravel_multi_index(target.T, field.cardinalities)] += probability
        total = total @ step
    return total


@pytest.mark.parametrize("name", ["ising grid", "attractive star", "complete"])
def test_the_proved_burn_in_keeps_its_promise(name):
    """The exact distribution after that many sweeps from any start, from the transition matrix."""
    field = FIELDS[name]
    if dobrushin_burn_in(field) is None:
        field = Ising(field.weights * 0.6, field.fields)
    for distance in (1e-1, 1e-4):
        sweeps = dobrushin_burn_in(field, distance)
        after = np.linalg.matrix_power(one_sweep_matrix(field), sweeps)
        worst = 0.5 * np.abs(after - joint(field)).sum(axis=1).max()
        assert worst <= distance
    assert 0.5 * np.abs(one_sweep_matrix(field) - joint(field)).sum(axis=1).max() > 1e-2  # one sweep is not enough


def test_automatic_choices(monkeypatch):
    """Exact where the tree fits; else perfect; else Gibbs with a measured burn-in; an error where nothing is known."""
    weak = random_ising(nx.complete_graph(30), rng(18), width=0.9)
    with pytest.raises(InferenceTooLarge):
        sample_field(weak, 10, rng(19), method="exact", memory_limit=2**20)
    auto = sample_field(weak, 2000, rng(19), memory_limit=2**20)
    np.testing.assert_array_equal(auto, sample_field(weak, 2000, rng(19), method="perfect"))
    gibbs = sample_field(weak, 100, rng(19), burn_in=5, memory_limit=2**20)
    np.testing.assert_array_equal(gibbs, sample_field(weak, 100, rng(19), method="gibbs", burn_in=5))
    small = FIELDS["ising grid"]
    np.testing.assert_array_equal(sample_field(small, 9, rng(20)), sample_field(small, 9, rng(20), method="exact"))
    # Bounding chains of strong mixed signs do not meet; the chains themselves do.
    mixed = random_ising(named_graph("regular", 40, rng(21)), rng(21), weight=0.7)
    monkeypatch.setattr("benchmarks.field_sampling.MAX_SWEEPS", 64)
    with pytest.raises(DoesNotCouple, match="within 64 sweeps"):
        sample_field(mixed, 10, rng(22), method="perfect")
    assert sample_field(mixed, 10, rng(22), memory_limit=2**10).shape == (10, 40)
    # Far below the critical temperature pairs end in opposite phases.
    frozen = random_ising(nx.complete_graph(30), rng(23), weight=0.5, attractive=True)
    monkeypatch.setattr("benchmarks.mixing.LONGEST", 50)
    with pytest.raises(ValueError, match="no default burn_in"):
        sample_field(frozen, 10, rng(24), memory_limit=2**10)
    with pytest.raises(ValueError, match="no default burn_in"):
        gibbs_burn_in(frozen)


def test_draws_repeat_and_edge_cases_work():
    for name, method in (("pairwise", "gibbs"), ("t-wise", "perfect"), ("ising grid", "gibbs")):
        first, second = (sample_field(FIELDS[name], 50, rng(25), method=method) for _ in range(2))
        np.testing.assert_array_equal(first, second)
        assert sample_field(FIELDS[name], 0, rng(25), method=method).shape == (0, FIELDS[name].n_variables)
    wide = Pairwise([np.linspace(0, 1, 300)], {})
    assert sample_field(wide, 10, rng(26)).dtype == np.uint16
    # Chains beyond one batch are all drawn.
    codes = sample_field(FIELDS["isolated nodes"], 2500, rng(27), method="perfect")
    assert abs(codes[2048:, 3].mean() - 1 / (1 + np.exp(-4))) < 0.05


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"method": "mcmc"}, "method='mcmc'"),
        ({"n": -1}, "n=-1"),
        ({"n": 2.5}, r"n=2\.5"),
        ({"burn_in": 0}, "burn_in=0"),
        ({"method": "perfect"}, "needs binary variables"),
    ],
)
def test_bad_arguments_are_named(settings, message):
    arguments = {"n": 10, "rng": rng()} | settings
    with pytest.raises(ValueError, match=message):
        sample_field(FIELDS["pairwise"], **arguments)
