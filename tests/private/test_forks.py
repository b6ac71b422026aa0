"""No sampler keeps random bits in memory, where a fork would copy them."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest

from pgmpy_dp.communities.operators import choice
from pgmpy_dp.communities.operators.sign_sampling import SignLaw, sample_signs
from pgmpy_dp.private.noise import bulk, matrix, samplers, subsampling
from tests.private.processes import everything, forked

pytestmark = pytest.mark.real_noise


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_forked_processes_draw_different_noise():
    """A generator in memory, copied by a fork, would give parent and children the same noise."""
    law = SignLaw((1, 0), ((1, 0),) * 21)
    zeros, ties = np.zeros(32, dtype=np.int64), [np.zeros(1000, dtype=np.int64)] * 8
    samplers_by_name = {
        "discrete_laplace": lambda: samplers.discrete_laplace(zeros, 1e6),
        "discrete_gaussian": lambda: samplers.discrete_gaussian(zeros, 1e6),
        "gumbel_argmax": lambda: samplers.gumbel_argmax(ties, 1.0),
        "exponential_argmax": lambda: samplers.exponential_argmax(ties, 1.0),
        "bulk_noise": lambda: bulk.bulk_noise("discrete_gaussian", 1000.0, 32),
        "integer_below": lambda: choice.integer_below(10**60),
        "poisson_sample": lambda: subsampling.poisson_sample(500, 0.5),
        "uniform_parts": lambda: subsampling.uniform_parts(100, 1000),
        "standard_normals": lambda: matrix.standard_normals(20),
        "sample_signs": lambda: [sample_signs([], law) for _ in range(8)],
    }

    def draws() -> dict[str, str]:
        return {name: str(np.asarray(draw()).tolist()) for name, draw in samplers_by_name.items()}

    drawn = [draws()]  # also warms up whatever is kept between draws
    for _ in range(2):
        with forked(lambda write: write(json.dumps(draws()).encode())) as (_, reading):
            drawn.append(json.loads(everything(reading)))
    drawn.append(draws())
    for name in samplers_by_name:
        assert len({each[name] for each in drawn}) == 4, name
