"""Which pairs of columns of children a search measures, on large households whose law is known."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from benchmarks.linked_law import large_families, of_two
from pgmpy_dp import Budget, Number, Schema, learn_linked
from pgmpy_dp.learning.merging import MOST_BINS
from pgmpy_dp.linked import LinkedModel, LinkedSchema
from pgmpy_dp.linked.linked_plan import plan_linked
from pgmpy_dp.linked.linked_search import largest_states, strongest
from pgmpy_dp.linked.operators.wide_table import wide_table
from pgmpy_dp.schema import decode_label

pytestmark = [
    pytest.mark.filterwarnings("ignore::pgmpy_dp.GuessedTypesWarning"),
    pytest.mark.filterwarnings("ignore::pgmpy_dp.private.noise.samplers.ReproducibleNoiseWarning"),
]

HOMES, PERSONS, SCHEMA = large_families(2_000, 0)


def learned(epsilon, **options):
    budget = Budget(epsilon=epsilon, delta=1e-9)
    return learn_linked(HOMES, PERSONS, budget, SCHEMA, siblings=1, random_state=0, **options)


@pytest.fixture(scope="module")
def fit():
    return learned(5.0, n_rounds=4, probe_share=0.0, max_clique_cells=20_000)


@pytest.fixture(scope="module")
def model(fit):
    return fit.model_


@pytest.fixture(scope="module")
def drawn(model):
    return model.sample(2_000, random_state=0)[1]


def first_tables(epsilon):
    fit = learned(epsilon, n_rounds=1, probe_share=0.0)
    scopes = fit.report_["variables"][fit.report_["round"] == 0]
    return {scope for scope in scopes if "n" not in scope}


class TestPairsBeforeRounds:
    def test_a_table_whose_noise_is_most_of_the_records_is_measured_where_it_may_say_something(self):
        """Of roles of two persons: the noise of its 100 cells is more than there are households."""
        assert ("a.role", "b.role") in first_tables(1.0)

    def test_where_noise_hides_any_dependence_nothing_is(self):
        assert first_tables(0.01) == set()

    def test_ages_without_cuts_of_two_persons_are_measured(self):
        assert {("a.age", "b.age"), ("a.role", "a.age")} <= first_tables(2.0)


class TestTheStrongestDependence:
    @pytest.mark.parametrize("seed", range(20))
    def test_no_table_has_more(self, seed):
        rng = np.random.default_rng(seed)
        joint = rng.dirichlet(np.full(12, 0.2)).reshape(3, 4)
        x, y = joint.sum(axis=1), joint.sum(axis=0)
        assert ((joint - np.outer(x, y)) ** 2).sum() <= strongest(7 * x, y) * (1 + 1e-12)

    @pytest.mark.parametrize("x", [np.array([0.5, 0.3, 0.2]), np.full(8, 1 / 8), np.array([1.0, 0.0])])
    def test_a_column_that_says_the_other_has_as_much(self, x):
        assert ((np.diag(x) - np.outer(x, x)) ** 2).sum() == pytest.approx(strongest(x, x), abs=1e-15)


class TestNumbersWithoutCuts:
    def test_they_have_as_many_states_as_merging_leaves_at_most(self):
        child = {"age": Number(0, 110, resolution=1, missing="drop"), "pay": Number(0, 9, cuts=[5])}
        linked = LinkedSchema(None, child, "home", 4, counts=["age >= 16"])
        most = largest_states(linked)
        assert set(most) == {"a.age", "b.age"} and set(most.values()) == {MOST_BINS + 1 + 2}  # a cut, absent, outside
        assert wide_table(linked).schema.cardinality("a.age") > 100

    def test_ages_of_one_household_go_together(self, model):
        """They were those of strangers, for the table of two ages was too large before their cells were merged."""
        cells = Schema({"age": Number(0, 110, cuts=[15, 30, 45, 60], missing="drop")})
        shuffled = PERSONS.assign(age=np.random.default_rng(0).permutation(PERSONS["age"]))
        drawn = model.sample(12_000, random_state=0)[1]  # of fewer, chance is half of what is wrong
        real, made, strangers = (
            of_two(persons, cells, "household")["age", "age"] for persons in (PERSONS, drawn, shuffled)
        )
        assert np.abs(made - real).sum() < 0.6 * np.abs(strangers - real).sum()

    def test_a_second_table_is_in_cells_that_follow_the_first(self, fit):
        """What both say of these cells differs by their noise, and the density is of both."""
        release = fit.release_
        places = {decode_label(name): to for name, to in release.public["fine"]["fine"]["places"]}
        (at, again), every = [c for c, scope in enumerate(release.scopes) if scope == ("a.age",)], len(release.scopes)
        assert places["a.age"] == places["b.age"] and ("b.age",) not in release.scopes and again < every - 1
        first, second = np.bincount(places["a.age"], release.values[at]), release.values[again]
        deviations = [release.noise[c].variance ** 0.5 for c in (at, again)]
        joined = np.bincount(places["a.age"])
        assert len(second) == len(first) < 60 < len(release.values[at])
        scaled = (first - second) / np.hypot(deviations[0] * joined**0.5, deviations[1])
        assert 0.3 < np.sqrt(np.mean(scaled**2)) < 2
        assert fit.model_._within["person", "age"].density.coarse is not None

    def test_the_plan_says_so(self):
        assert "5% of the budget is for second tables of age, in cells" in str(
            plan_linked(SCHEMA, Budget(rho=1.0), 2_000)
        )

    def test_ages_reach_as_far_as_real_ones(self, drawn):
        assert 90 <= drawn["age"].max() <= 110
        real, made = (np.quantile(persons["age"], [0.01, 0.5, 0.9, 0.99]) for persons in (PERSONS, drawn))
        np.testing.assert_allclose(made, real, atol=8)

    def test_within_a_cell_they_have_the_density_of_the_first_table_also_in_files(self, model, drawn, tmp_path):
        model.save(tmp_path / "m.npz")
        again = LinkedModel.load(tmp_path / "m.npz")
        np.testing.assert_array_equal(again.sample(50, random_state=0)[1], model.sample(50, random_state=0)[1])
        values = again._within["person", "age"]
        assert values.density is not None and len(model._wide.child.states["age"]) < 35


def test_columns_of_one_state_are_never_said_to_tell():
    assert strongest(np.array([3.0]), np.array([1.0, 2.0])) == 0.0
    assert all(strongest(*pair) > 0 for pair in itertools.product([np.ones(2), np.ones(5)], repeat=2))
