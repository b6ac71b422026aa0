"""Engines of tables of levels: brute force on small trees, ragged ones and two at a time."""

from __future__ import annotations

import numpy as np
import pytest

from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.learning.expectation_maximisation import collective_em
from pgmpy_dp.learning.level_engine import LevelEngine, leaf_tables
from pgmpy_dp.learning.maximum_a_posteriori import collective_map
from pgmpy_dp.learning.maximum_likelihood import naive_mle
from pgmpy_dp.learning.noisy_marginals import NoisyMarginals
from pgmpy_dp.learning.objective import CollectiveObjective
from pgmpy_dp.learning.structural_zeros import engine_within

RAGGED = {
    "county": ("tract", np.array([0, 0, 0, 1, 2, 2, 3])),  # one county of a single tract
    "state": ("tract", np.array([0, 0, 0, 0, 1, 1, 1])),
    "chapter": ("code", np.array([0, 1, 1, 1])),
}
NAMES, SIZES = ("state", "tract", "sex", "county", "code", "chapter"), (2, 7, 2, 4, 4, 2)
ONE = (("sex",), ("state", "sex"), ("sex", "county"), ("tract", "sex"), ("tract",))
TWO = (("state", "chapter"), ("county", "chapter"), ("code", "county"), ("tract", "chapter"), ("sex", "tract"))
LOOP = (("tract", "sex"), ("county", "code"), ("sex", "chapter"), ("state", "code"))


def brute_force(cliques: Cliques, levels: dict, theta: np.ndarray) -> tuple[np.ndarray, float]:
    """Marginals and log Z by a sum over all records, each with its levels' states."""
    leaves = [name for name in cliques.variables if name not in levels]
    sizes = [cliques.cardinalities[cliques.position[name]] for name in leaves]
    records = []
    for codes in np.ndindex(*sizes):
        record = dict(zip(leaves, codes, strict=True))
        records.append(record | {name: int(places[record[leaf]]) for name, (leaf, places) in levels.items()})
    cells = np.array(
        [
            [
                part.start + np.ravel_multi_index([record[name] for name in scope], shape)
                for scope, part, shape in zip(cliques.scopes, cliques.slices, cliques.shapes, strict=True)
            ]
            for record in records
        ]
    )
    weights = np.exp(theta[cells].sum(axis=1))
    each = np.repeat(weights / weights.sum(), cells.shape[1])
    return np.bincount(cells.ravel(), each, cliques.n_cells), float(np.log(weights.sum()))


@pytest.mark.parametrize("scopes", [ONE, TWO, LOOP])
def test_marginals_and_their_derivative_are_those_of_all_records(scopes: tuple) -> None:
    cliques, rng = Cliques(NAMES, SIZES, scopes), np.random.default_rng(0)
    engine = engine_within(cliques, (), levels=RAGGED)
    theta, direction = rng.normal(size=(2, cliques.n_cells))
    expected, log_partition = brute_force(cliques, RAGGED, theta)
    marginals, value = engine.calibrate(theta)
    np.testing.assert_allclose(marginals, expected, atol=1e-12)
    assert value == pytest.approx(log_partition)
    ahead, behind = (brute_force(cliques, RAGGED, theta + step * direction)[0] for step in (1e-5, -1e-5))
    np.testing.assert_allclose(engine.derivative(direction), (ahead - behind) / 2e-5, atol=1e-8)


def test_the_model_has_the_variables_alone_and_the_same_distribution() -> None:
    cliques = Cliques(NAMES, SIZES, TWO)
    engine = engine_within(cliques, [{"sex": {0}, "code": {1}}], levels=RAGGED)
    assert isinstance(engine, LevelEngine)
    theta = np.random.default_rng(1).normal(size=cliques.n_cells)
    model = engine.model(theta, 2**30)
    assert isinstance(model, LogLinearModel)
    assert set(model.cliques.variables) == {"tract", "sex", "code"}
    assert model.marginal(["sex", "code"])[0, 1] == 0
    tracts = model.marginal(["tract", "sex"])
    by_table = dict(zip(cliques.scopes, cliques.split(engine.calibrate(theta)[0]), strict=True))
    np.testing.assert_allclose(tracts.T, by_table["sex", "tract"], atol=1e-12)


def test_a_variable_that_only_its_levels_are_measured_of_is_one_of_the_models() -> None:
    cliques = Cliques(("county", "sex"), (4, 2), (("county", "sex"),))
    levels = {"county": RAGGED["county"]}
    leaves = leaf_tables(cliques, levels)
    assert (leaves.variables, leaves.cardinalities) == (("tract", "sex"), (7, 2))
    marginals, _ = engine_within(cliques, (), levels=levels).calibrate(np.zeros(8))
    np.testing.assert_allclose(marginals, np.repeat([3, 1, 2, 1], 2) / 14)


@pytest.mark.parametrize("scopes", [ONE, TWO])
def test_the_objective_of_levels_has_the_gradient_that_differences_give(scopes: tuple) -> None:
    cliques, rng = Cliques(NAMES, SIZES, scopes), np.random.default_rng(2)
    noisy = NoisyMarginals(cliques, rng.uniform(0, 90, cliques.n_cells), "gaussian", np.full(5, 4.0), levels=RAGGED)
    problem = CollectiveObjective(noisy, 0.3, 0.5, 2**30)
    theta, direction = 0.3 * rng.normal(size=(2, cliques.n_cells))
    problem.start(None)
    problem.adapt(theta)
    slope = problem.value_and_gradient(theta)[1] @ direction
    ahead, behind = (problem.value_and_gradient(theta + step * direction)[0] for step in (1e-5, -1e-5))
    assert (ahead - behind) / 2e-5 == pytest.approx(slope, rel=1e-6)


@pytest.mark.parametrize("fit", [collective_map, naive_mle, collective_em])
@pytest.mark.parametrize("inference", ["exact", "loopy"])
def test_fits_of_well_known_tables_give_them_back(fit: object, inference: str) -> None:
    cliques, rng = Cliques(NAMES, SIZES, LOOP), np.random.default_rng(3)
    truth = engine_within(cliques, (), levels=RAGGED)
    expected = truth.calibrate(0.5 * rng.normal(size=cliques.n_cells))[0]
    counts = 1e5 * expected + rng.normal(0, 20, cliques.n_cells)
    noisy = NoisyMarginals(cliques, counts, "gaussian", np.full(4, 20.0), levels=RAGGED)
    result = fit(noisy, inference=inference)
    assert result.details["inference"].method == inference
    for scope in LOOP[:1]:
        fitted = result.model.marginal(list(scope))
        np.testing.assert_allclose(fitted, cliques.split(expected)[0], atol=0.005)
    assert result.model.cliques.scopes == leaf_tables(cliques, RAGGED).scopes


@pytest.mark.parametrize(
    ("levels", "scopes", "message"),
    [
        ({"state": ("tract", np.array([0, 1]))}, (("state",), ("tract",)), "for each of the 3 states of 'tract'"),
        ({"state": ("tract", np.array([0, 1, 2]))}, (("state",), ("tract",)), "one of the states 0 to 1"),
        ({"region": ("tract", np.array([0, 1, 1]))}, (("state",),), "must be one of cliques.variables"),
        ({"state": ("tract", np.array([0, 1, 1]))}, (("state", "tract"),), "at two levels"),
    ],
)
def test_levels_that_cannot_be_are_refused(levels: dict, scopes: tuple, message: str) -> None:
    cliques = Cliques(("state", "tract"), (2, 3), scopes)
    with pytest.raises(ValueError, match=message):
        NoisyMarginals(cliques, np.zeros(cliques.n_cells), "gaussian", np.ones(len(scopes)), levels=levels)
