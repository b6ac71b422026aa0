"""The tests' noise: the same for the same name, of the laws that users get, and of nobody but the package."""

from __future__ import annotations

import os

import numpy as np
import pytest

from pgmpy_dp.private.noise import bulk, samplers, subsampling
from tests.private.distribution import accepts
from tests.repeatable_noise import RepeatableNoise

ZEROS = np.zeros(4_000, dtype=np.int64)


@pytest.fixture
def noise(request) -> RepeatableNoise:
    plugin = request.config.pluginmanager.get_plugin("repeatable noise")
    if plugin is None:
        pytest.skip("NOISE=real")
    return plugin


def drawn() -> list[bytes]:
    """Of each source: OpenDP's four measurements and the system's bytes."""
    rows = [ZEROS[:50]] * 20
    return [
        samplers.discrete_laplace(ZEROS, 3.0).tobytes(),
        samplers.discrete_gaussian(ZEROS, 3.0).tobytes(),
        samplers.gumbel_argmax(rows, 2.0).tobytes(),
        samplers.exponential_argmax(rows, 2.0).tobytes(),
        bulk.bulk_noise("discrete_gaussian", 3.0, 500).tobytes(),
        subsampling.poisson_sample(500, 0.5).tobytes(),
    ]


def test_a_name_decides_it(noise):
    with noise.of("one"):
        first = drawn()
    with noise.of("one"):
        assert drawn() == first
    for other in ("another", None):  # None: real noise
        with noise.of(other):
            assert not set(drawn()) & set(first)


@pytest.mark.parametrize("name", ["discrete_laplace", "discrete_gaussian"])
def test_its_law_is_that_of_the_measurement(noise, name):
    assert accepts(getattr(samplers, name)(ZEROS, 2.5), name, 2.5)


def test_results_are_clamped_as_opendp_clamps_them(noise):
    limits = np.iinfo(np.int64)
    ends = np.array([limits.min, limits.max] * 20)
    assert set(samplers.discrete_laplace(ends, 50.0)) >= {limits.min, limits.max}


def test_other_callers_and_child_processes_get_real_bytes(noise):
    with noise.of("one"):
        asked = os.urandom(16)
    with noise.of("one"):
        assert os.urandom(16) != asked
        reader, writer = os.pipe()
        if (child := os.fork()) == 0:
            os.write(writer, bytes([noise.rng is None]))
            os._exit(0)
        os.waitpid(child, 0)
        assert os.read(reader, 1) == b"\1" and noise.rng is not None
