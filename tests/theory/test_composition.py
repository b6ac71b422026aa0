"""Delta of compositions and advanced composition, against randomised responses."""

from __future__ import annotations

import itertools
import math

import pytest

from pgmpy_dp.theory import composition


def test_delta_of_a_composition_is_that_of_randomised_responses():
    epsilon, steps = 0.7, 4
    likely = 1.0 / (1.0 + math.exp(-epsilon))
    for total in (0.3, 1.0, 2.0):
        delta = sum(
            max(p - math.exp(total) * q, 0.0)
            for outcome in itertools.product((0, 1), repeat=steps)
            for p, q in [(likely ** sum(outcome) * (1 - likely) ** (steps - sum(outcome)),
                          (1 - likely) ** sum(outcome) * likely ** (steps - sum(outcome)))]
        )  # fmt: skip
        assert composition.composed_delta(total, epsilon, steps) == pytest.approx(delta, abs=1e-12)
    assert composition.composed_delta(steps * epsilon, epsilon, steps) == 0.0


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.5, 2.0, 5.0])
def test_advanced_composition_holds_and_the_notes_where_it_says(epsilon):
    refused = 0
    for steps, slack in itertools.product((1, 10, 100, 1000), (1e-9, 1e-3, 0.3)):
        safe = composition.advanced_composition(epsilon, steps, slack)
        assert composition.composed_delta(safe, epsilon, steps) <= slack * (1 + 1e-9)
        try:
            noted = composition.noted_composition(epsilon, steps, slack)
        except ValueError:
            refused += 1
            continue
        assert noted >= safe * (1 - 1e-12)
    assert (refused > 0) == (epsilon >= 0.1)


def test_the_notes_composition_is_false_for_large_epsilon():
    noted = 2.0 * math.sqrt(6 * 100 * math.log(100))
    assert composition.composed_delta(noted, 2.0, 100) > 0.99
    with pytest.raises(ValueError, match="not proved there"):
        composition.noted_composition(2.0, 100, 0.01)
