"""What a privacy record says: the guarantee that was asked for, and what it was made from."""

from __future__ import annotations

import warnings

import pytest

from pgmpy_dp import LargeDeltaWarning
from pgmpy_dp.estimators import NaiveMLE
from pgmpy_dp.learning.privacy_record import Privacy
from pgmpy_dp.private.guarantee import ZCDP, ApproxDP, PureDP
from pgmpy_dp.private.sensitive import Release
from pgmpy_dp.reporting.words import guarantee_words
from tests.estimators.cases import CASES, GRAPH, STATES, rows
from tests.estimators.test_every_estimator import fitted_case


def test_the_words_that_were_asked_for():
    privacy = NaiveMLE(epsilon=1.0, delta=1e-9, noise="gaussian", state_names=STATES).fit(GRAPH, rows(50)).privacy_
    assert privacy.requested == ApproxDP(1.0, 1e-9) and isinstance(privacy.guarantee, ZCDP)
    assert str(privacy).startswith("(1, 1e-09)-DP (by 0.0149705-zCDP) under add_remove")
    read = Privacy.from_dict(privacy.to_dict())
    assert read == privacy
    old = {name: value for name, value in privacy.to_dict().items() if name != "asked"}
    assert str(Privacy.from_dict(old)).startswith("0.0149705-zCDP under add_remove")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_release_says_what_was_asked_for(case):
    estimator = fitted_case(case)
    asked = case.budget.guarantee
    assert estimator.privacy_.requested in (None, asked)
    assert (estimator.privacy_.requested or estimator.privacy_.guarantee) == asked
    assert str(estimator.privacy_).startswith(str(asked))


def release(public: dict, guarantee) -> Release:
    return Release("x", (), (), public, "add_remove", guarantee, "m")


def test_only_what_the_guarantee_implies_is_said():
    better = ApproxDP(1.0, 1e-9).to_dict()
    for cost in (ZCDP(0.1), PureDP(1.5)):
        assert Privacy.of(release({"settings": {"budget": better}}, cost)).requested is None
    assert Privacy.of(release({"settings": {"budget": better}}, ZCDP(0.0149))).requested == ApproxDP(1.0, 1e-9)
    assert Privacy.of(release({"budget": better}, ZCDP(0.0149))).requested == ApproxDP(1.0, 1e-9)
    for public in ({}, {"settings": None}, {"settings": {"budget": 3}}):
        assert Privacy.of(release(public, ZCDP(0.0149))).requested is None


def test_a_delta_above_one_over_n_is_warned_of():
    graph = {"epsilon": 1.0, "noise": "gaussian", "state_names": STATES}
    with pytest.warns(LargeDeltaWarning, match=r"delta=0\.5 is above 1/n, for about 80 records"):
        fitted = NaiveMLE(**graph, delta=0.5, n_records=80).fit(GRAPH, rows(80))
    with pytest.warns(LargeDeltaWarning):
        NaiveMLE(state_names=STATES).fit_release(GRAPH, fitted.release_)
    with warnings.catch_warnings():
        warnings.simplefilter("error", LargeDeltaWarning)
        NaiveMLE(**graph, delta=1e-9, n_records=80).fit(GRAPH, rows(80))
        NaiveMLE(epsilon=1.0, state_names=STATES, n_records=80).fit(GRAPH, rows(80))
        with pytest.raises(LargeDeltaWarning) as caught:
            NaiveMLE(**graph, delta=0.5, n_records=80).fit(GRAPH, rows(80))
    assert isinstance(caught.value.release, Release)


def test_the_number_in_the_warning_is_the_released_one():
    """Nothing of the records: the same release, the same words."""
    with warnings.catch_warnings(record=True, action="always") as told:
        fitted = NaiveMLE(epsilon=50.0, delta=0.5, state_names=STATES).fit(GRAPH, rows(80))
    (message,) = [str(item.message) for item in told if item.category is LargeDeltaWarning]
    assert f"for about {fitted.n_records_:,.0f} records" in message


@pytest.mark.parametrize("said", [{"epsilon": 21.0}, {"epsilon": 21.0, "delta": 1e-9}, {"rho": 10.0}])
def test_what_promises_nothing_is_called_so(said):
    """Models made with next to no noise are for comparison; none of them is to be taken for a private one."""
    noise = "laplace" if list(said) == ["epsilon"] else "gaussian"
    much = NaiveMLE(**said, noise=noise, state_names=STATES).fit(GRAPH, rows(50)).privacy_
    assert str(much).endswith("NOT PRIVATE") and "NOT PRIVATE" in guarantee_words(much).warnings[0]
    less = said | {name: said[name] / 20 for name in said if name != "delta"}
    little = NaiveMLE(**less, noise=noise, state_names=STATES).fit(GRAPH, rows(50)).privacy_
    assert "NOT PRIVATE" not in str(little) and not guarantee_words(little).warnings
