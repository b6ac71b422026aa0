"""Ctrl-C in the middle of a plan: what was released is paid for and can be taken, and nothing else has changed."""

from __future__ import annotations

import numpy as np
import pytest

from pgmpy_dp import Budget, PrivateTable
from pgmpy_dp.learning.options import Settings
from pgmpy_dp.private.curator.charged_base import ChargedCurator
from pgmpy_dp.private.curator.schedule import GradientCurator
from pgmpy_dp.tables.collective.published.gradient_ascent import PARAMETER_UNIT, ascend
from tests.estimators.cases import CASES, ORDINARY, STATES
from tests.estimators.test_every_estimator import OF_EACH, fit, fit_release, public


def interrupt(monkeypatch, number: int) -> list[int]:
    """Every curator's requests together are counted; in the place of the `number`-th comes Ctrl-C."""
    asked: list[int] = []
    true = ChargedCurator._answer_now

    def answer(self, *arguments, **options):
        asked.append(1)
        if len(asked) == number:
            raise KeyboardInterrupt
        return true(self, *arguments, **options)

    monkeypatch.setattr(ChargedCurator, "_answer_now", answer)
    return asked


@pytest.mark.filterwarnings("ignore:the graph has:pgmpy_dp.NoEdgeWarning")  # as before its first table of two
@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, marks=[pytest.mark.slow] * (k % 2 and case not in OF_EACH), id=case.name)
        for k, case in enumerate(CASES)
    ],
)
def test_what_was_released_can_be_taken(case, monkeypatch):
    estimator = case.make()
    with monkeypatch.context() as patch:
        asked = interrupt(patch, 0)
        fit(case, estimator)
        requests = len(asked)
    assert requests  # each answer is counted, whichever way it is asked for
    before = dict(vars(estimator))
    for number in range(1, min(requests, 3) + 1):  # later ones may not come: how many do, noise decides
        data = case.data(ORDINARY[case.kind], **public(case))
        with monkeypatch.context() as patch:
            interrupt(patch, number)
            with pytest.raises(KeyboardInterrupt) as caught:
                case.fit(estimator, data)
        assert vars(estimator).keys() == before.keys()
        assert all(vars(estimator)[name] is value for name, value in before.items())
        (entry,) = data.ledger.entries
        assert entry.cost == estimator.release_.guarantee
        assert not data._in_other_hands
        release = getattr(caught.value, "release", None)
        assert (release is None) == (number == 1)
        if release is None:
            continue
        assert release.public["interrupted"] and release.guarantee == entry.cost
        assert "paid for" in caught.value.__notes__[0]
        if release.kind == "interrupted":
            with pytest.raises(ValueError, match="was interrupted before it had what this estimator learns from"):
                fit_release(case, case.make(), release)
            continue
        learned = fit_release(case, case.make(), release)
        assert vars(learned).keys() == before.keys()
        assert "interrupted" in getattr(learned, "status_", "interrupted") or learned.converged_ is not None


def test_an_ascent_that_is_interrupted_has_the_mean_of_the_steps_that_count():
    """All 10 steps are taken; after each, what would be kept is the last parameters, from step 6 on their mean."""
    table = PrivateTable(ORDINARY["table"], STATES, ledger=Budget(rho=1.0), n_records=80)
    curator = GradientCurator(table, Budget(rho=1.0), [("a",), ("b",)], None, n_steps=10)
    before = []  # parameters before each step
    found = list(
        ascend(
            Settings(n_steps=10, learning_rate=0.1, momentum=0.9, average_share=0.5),
            curator,
            4,
            public_count=80,
            gradient=lambda theta: before.append(theta) or curator.step(theta),
            default_rate=lambda *_: 0.1,
        )
    )
    assert [item.path["n_steps"] for item in found] == list(range(11))
    for taken in range(10):
        expected = before[taken] if taken <= 5 else np.mean(before[6 : taken + 1], axis=0)
        np.testing.assert_allclose(found[taken].parameters * PARAMETER_UNIT, expected, atol=1e-8)
    assert np.ptp([item.parameters for item in found[5:]], axis=0).min() > 0
