"""Families of a known law, and what two persons have in common in those that a model of them draws."""

from __future__ import annotations

import pytest

from benchmarks.linked_law import alike, correlations
from pgmpy_dp import Budget, learn_linked

pytestmark = [
    pytest.mark.filterwarnings("ignore::pgmpy_dp.GuessedTypesWarning"),
    pytest.mark.filterwarnings("ignore::pgmpy_dp.private.noise.samplers.ReproducibleNoiseWarning"),
]


@pytest.fixture(scope="module")
def families():
    return alike(2_500, [1, 2, 20], [0.2, 0.5, 0.3], seed=0)


def test_the_law_is_what_it_says(families):
    found = correlations(families[1], "family")
    for (name, _), value in found.items():
        assert abs(value - {"strong": 0.64, "weak": 0.25}[name]) < 0.07


@pytest.mark.slow
def test_small_families_do_not_make_up_for_large_ones(families):
    """Drawn were .33 in families of two and .18 in those of twenty, while all sizes had one table in the choice."""
    homes, persons, schema = families
    model = learn_linked(homes, persons, Budget(rho=0.136), schema, siblings=1, n_rounds=1, random_state=0).model_
    found = correlations(model.sample(5_000, random_state=1)[1], "family")
    assert abs(found["weak", 2] - 0.25) < 0.06 and abs(found["weak", 20] - 0.25) < 0.05
