"""The script that holds refactorings to the bit: what it fits, that it repeats itself, and that it notices."""

import numpy as np
import pytest

from pgmpy_dp import list_estimators
from tests.seeded_fits import all_cases, changes, digest, hashes

CASES = dict(all_cases())
QUICK = [
    "NaiveMLE rho=0.3 adjacency=replace_one",
    "PrivateChowLiu epsilon=1.0 adjacency=add_remove method=tables prune=True",
    "PrivateMarkovChain rho=0.3 adjacency=add_remove method=naive",
    "PrivateGraphicalLasso rho=0.3 adjacency=add_remove row_norm=2.5 mechanism=goe",
    "PrivateLinearGaussian rho=0.3 adjacency=add_remove bounds=[(-3.0, 3.0), (-3.0, 3.0), (-3.0, 3.0)]",
    "check both add_remove",
]


def test_every_estimator_is_fitted_under_each_adjacency_and_kind_of_budget():
    for estimator in list_estimators():
        names = [name for name in CASES if name.startswith(f"{estimator.__name__} ")]
        for adjacency in set(estimator.get_class_tag("adjacency")) - {"edge"}:
            assert any(adjacency in name for name in names), (estimator, adjacency)
        for guarantee in estimator.get_class_tag("guarantees"):
            marks = {"pure": ("epsilon", "delta"), "approximate": ("delta", "rho"), "zcdp": ("rho", "epsilon")}
            has, has_not = marks[guarantee]
            assert any(has in name and has_not not in name for name in names), (estimator, guarantee)


@pytest.mark.parametrize("name", QUICK)
def test_a_case_repeats_itself_to_the_bit(name):
    found = hashes(CASES[name])
    assert "error" not in found and {"values", "noise", "price"} < set(found)
    assert hashes(CASES[name]) == found


def test_other_noise_is_noticed_wherever_it_comes_out(monkeypatch):
    name = QUICK[0]
    before = {name: hashes(CASES[name])}
    monkeypatch.setattr("tests.seeded_fits.SEED", 8)
    found = changes(before, {name: hashes(CASES[name])})
    assert {"values", "parameters_", "draws of records"} <= set(found[name])
    assert "noise" not in found[name] and "price" not in found[name]


def test_a_case_that_one_of_the_two_lacks_differs():
    assert changes({"a": {}, "b": {"values": "1"}}, {"b": {"values": "1"}}) == {"a": ["there"]}


def test_a_digest_is_of_content():
    assert digest({"a": np.arange(3)}) == digest({"a": np.arange(3)})
    values = [np.arange(3), np.arange(3.0), [0, 1, 2], [[0, 1], 2], "012", None, 0.1, 0.1 + 2**-56]
    assert len({digest(value) for value in values}) == len(values)
    with pytest.raises(TypeError, match="object has no digest"):
        digest(object())
