"""The examples in docstrings of made-up models, which are no part of the package's doctests."""

from __future__ import annotations

import doctest

import pytest

from benchmarks import field_sampling, glauber, hard_instances, mixing, random_graphs


@pytest.mark.parametrize("module", [field_sampling, glauber, hard_instances, mixing, random_graphs])
def test_examples_give_what_they_say(module):
    found = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    assert not found.failed
    assert found.attempted or module is glauber
