"""`make test-kernel` runs what it says: a forced kernel is in use, and one that is not is noticed."""

import contextlib
import io
import json
import os
import platform

import pytest

from tests.kernels import ASK, KERNELS, VARIABLES, another, difference, forced, in_use

ENVIRONMENT = {name: value for name, value in os.environ.items() if name not in VARIABLES}


@pytest.fixture(scope="module")
def own():
    """Of this machine, whatever is forced on these tests."""
    if len(ENVIRONMENT) < len(os.environ):
        found = in_use(ENVIRONMENT)
    else:  # nothing is forced on these tests: this interpreter says the same
        with contextlib.redirect_stdout(io.StringIO()) as said:
            exec(ASK, {})
        found = json.loads(said.getvalue())
    if platform.machine().lower() not in ("x86_64", "amd64") or not set(found["blas"]) <= set(KERNELS):
        pytest.skip(f"no other kernel is known for {found['blas']}")
    return found


def test_another_kernel_is_forced_and_seen(own):
    kernel = another(own)
    assert kernel not in own["blas"]
    assert difference(kernel, in_use(forced(kernel, own, ENVIRONMENT))) == ""


def test_what_was_not_forced_is_noticed(own):
    found = difference("Sandybridge" if own["blas"] != ["Sandybridge"] else "Nehalem", own)
    assert own["blas"][0] in found.split(", ")
