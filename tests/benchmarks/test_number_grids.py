"""What the benchmark of means and quantiles of numbers takes for the law of sampling."""

import numpy as np

from benchmarks.number_grids import sampled, statistics


def test_the_law_of_sampling_is_that_of_samples():
    rng = np.random.default_rng(0)
    many, n = np.sort(rng.exponential(size=200_000)), 400
    law = sampled(many, n, rng)
    drawn = np.array([statistics(rng.choice(many, n)) for _ in range(1_000)])
    # Standard errors of 1,000 draws: .032 of a deviation in means, .022 to .03 in deviations; six of both are allowed.
    spread = drawn.std(axis=0)
    assert (np.abs(law.mean(axis=0) - drawn.mean(axis=0)) < 6 * np.sqrt(2 / 1_000) * spread).all()
    np.testing.assert_allclose(law.std(axis=0), spread, rtol=0.25)
