"""Bulk noise is exact: certain brackets of its quantiles, the stated law, and bits as many as a draw needs."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
import pytest

from pgmpy_dp.private.noise import bulk, samplers
from pgmpy_dp.private.sensitive import Noise
from tests.private.distribution import accepts

pytestmark = pytest.mark.real_noise

KINDS = ["discrete_laplace", "discrete_gaussian"]
SCALES = [1e-3, 0.3, 1.0, 7.9, 42.5]


def cumulative(kind: str, scale: float, reach: int) -> list[Decimal]:
    """F at -reach .. reach to some 50 digits, by decimal arithmetic of Python's own."""
    s = Decimal(scale)
    if kind == "discrete_laplace":
        weights = [(-abs(Decimal(z)) / s).exp() for z in range(-reach, reach + 1)]
        beyond = 2 * (-Decimal(reach + 1) / s).exp() / (1 - (-1 / s).exp())
    else:
        weights = [(-(Decimal(z) ** 2) / (2 * s * s)).exp() for z in range(-reach, reach + 1)]
        beyond = Decimal(0)  # below 1e-60 for the reach used
    total, below, result = sum(weights) + beyond, beyond / 2, []
    for weight in weights:
        below += weight
        result.append(below / total)
    return result


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("bits", [64, 128])
def test_brackets_hold_and_are_narrow(kind, scale, bits):
    with localcontext() as context:
        context.prec = 70
        first, brackets = bulk.cumulative_brackets(kind, scale, bits)
        extra = 30
        exact = cumulative(kind, scale, -first + extra)[extra:]
        for (low, high), value in zip(brackets, exact, strict=False):
            assert low <= value * 2**bits * (1 + Decimal("1e-65")) and value * 2**bits * (1 - Decimal("1e-65")) <= high
            assert high - low <= 2
        assert brackets == sorted(brackets) and (1 << bits) - brackets[-1][0] <= 2


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", SCALES)
def test_draws_have_the_law(kind, scale):
    assert accepts(bulk.bulk_noise(kind, scale, 60_000), kind, scale)


@pytest.mark.parametrize("kind", KINDS)
def test_the_test_rejects_a_third_more(kind):
    assert not accepts(bulk.bulk_noise(kind, 1.3 * 7.9, 60_000), kind, 7.9)


@pytest.mark.parametrize("kind", KINDS)
def test_words_decide_what_is_certain_and_nothing_else(kind, monkeypatch):
    _, brackets = bulk.cumulative_brackets(kind, 3.0, 64)
    finer_first, finer = bulk.cumulative_brackets(kind, 3.0, 128)
    words = sorted({min(max(0, low + move), 2**64 - 1) for low, _ in brackets for move in range(-2, 4)})
    undecided = 10**6
    monkeypatch.setattr(bulk.os, "urandom", lambda size: np.array(words, dtype="<u8").tobytes()[:size])
    monkeypatch.setattr(bulk, "_resolved", lambda *_: undecided)
    drawn = bulk.bulk_noise(kind, 3.0, len(words)).tolist()
    decided = [(word, z) for word, z in zip(words, drawn, strict=True) if z != undecided]
    assert 2 * len(decided) > len(words) > len(decided)
    for word, z in decided:
        assert (word + 1) << 64 <= finer[z - finer_first][0]
        if z > finer_first:
            assert finer[z - 1 - finer_first][1] <= word << 64


@pytest.mark.parametrize("kind", KINDS)
def test_what_64_bits_leave_open_is_decided_by_more(kind):
    first, brackets = bulk.cumulative_brackets(kind, 3.0, 64)
    for low, _ in brackets[::5]:
        # The word in which a quantile lies.
        for z in {bulk._resolved(kind, 3.0, low) for _ in range(10)}:
            if 0 < z - first < len(brackets):
                assert brackets[z - first][1] > low and brackets[z - first - 1][0] <= low
    # The quantile of 0 is not at an end of its word, so that both sides of it are drawn.
    assert len({bulk._resolved(kind, 3.0, brackets[-first][0]) for _ in range(200)}) == 2


def test_scales_out_of_range_are_refused():
    for scale in (0.0, -1.0, 1e5, float("nan")):
        with pytest.raises(ValueError, match="scale="):
            bulk.bulk_noise("discrete_laplace", scale, 3)


@pytest.mark.parametrize("noise", [Noise("discrete_laplace", 12.0), Noise("discrete_gaussian", 13.0)], ids=str)
def test_many_cells_have_the_noise_of_few(noise, monkeypatch):
    large, small = np.arange(bulk.BULK), np.zeros((3, 2), dtype=int)
    assert accepts(bulk.with_noise(large, noise) - large, noise.distribution, noise.scale)
    seeded = [bulk.with_noise(values, noise, np.random.default_rng(1)) for values in (small, small, large)]
    assert (seeded[0] == seeded[1]).all() and seeded[0].shape == (3, 2)
    assert (seeded[2] == getattr(samplers, noise.distribution)(large, noise.scale, rng=np.random.default_rng(1))).all()
    monkeypatch.setattr(bulk, "bulk_noise", None)  # it is not asked for few cells, or for a scale beyond its tables
    assert bulk.with_noise(small, noise).shape == (3, 2)
    assert bulk.with_noise(large, Noise(noise.distribution, 2.0**13)).shape == large.shape
