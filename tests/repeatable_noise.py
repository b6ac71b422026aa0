"""Noise without a `random_state` that is the same in every run: a plugin of pytest, registered by `tests/fixtures.py`.

Whoever runs the tests must not lose by how noise falls. So what the package takes from OpenDP's measurements and from
the system's random bytes comes from a generator here, which the name of the test (or of a wider fixture) seeds. The
laws are the same, and so is all that the package does with them. Child processes draw real noise, and so do tests
marked `real_noise`: those of the noise itself.

    NOISE=real make test        # as users draw it
    NOISE=7 make test           # other noise, to see what rests on how it falls
"""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock
from zlib import crc32

import numpy as np
import pytest

from pgmpy_dp.private.noise import samplers

Draw = Callable[[np.random.Generator, float, np.ndarray], Any]

_WIDEST = 2.0**40
"""Beyond such scales NumPy's draws may leave the range of int64, and nobody asserts where noise falls: it is real."""


def _added(values: np.ndarray, noise: np.ndarray) -> list[int]:
    """Clamped to the range of int64, as OpenDP does it."""
    limits = np.iinfo(np.int64)
    return [min(max(v + z, limits.min), limits.max) for v, z in zip(values.tolist(), noise.tolist(), strict=True)]


DRAWS: dict[str, Draw] = {
    "laplace_measurement": lambda rng, scale, x: _added(x, samplers._two_sided_geometric(rng, scale, x.size)),
    "gaussian_measurement": lambda rng, scale, x: _added(x, samplers._rejection_gaussian(rng, scale, x.size)),
    "gumbel_measurement": lambda rng, scale, x: int(np.argmax(x + rng.gumbel(0.0, scale, x.size))),
    "exponential_measurement": lambda rng, scale, x: int(np.argmax(x + rng.exponential(scale, x.size))),
}


class _Measurement:
    """One of OpenDP's, whose draws come from the test's generator."""

    def __init__(self, given: Any, draw: Draw, scale: float, noise: RepeatableNoise):
        self._given, self._draw, self._scale, self._noise = given, draw, scale, noise

    def __call__(self, values: list[int]) -> Any:
        if self._noise.rng is None or self._scale > _WIDEST:
            return self._given(values)
        return self._draw(self._noise.rng, self._scale, np.array(values, dtype=np.int64))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._given, name)


class RepeatableNoise:
    """The plugin. Another `run` is other noise."""

    def __init__(self, run: int):
        self.run = run
        self.rng: np.random.Generator | None = None
        samplers.exercised()  # it draws once a process: not in the test that happens to come first
        os.register_at_fork(after_in_child=lambda: setattr(self, "rng", None))  # or children would draw what others do
        for patch in self._patches():
            patch.start()

    def _patches(self) -> list[Any]:
        def made(make: Callable[[float], Any], draw: Draw) -> Callable[[float], Any]:
            return lambda scale: _Measurement(make(scale), draw, scale, self)

        def random_bytes(n: int, given: Callable[[int], bytes] = os.urandom) -> bytes:
            return self.rng.bytes(n) if self._asked_by_us() else given(n)

        def bits(n: int, given: Callable[[int], int] = secrets.randbits) -> int:
            return int.from_bytes(self.rng.bytes(n // 8), "little") if self._asked_by_us() else given(n)

        def generator(seed: Any = None, given: Callable = np.random.default_rng) -> np.random.Generator:
            return given(self.rng.integers(2**63) if seed is None and self._asked_by_us() else seed)

        return [
            *(mock.patch.object(samplers, name, made(getattr(samplers, name), draw)) for name, draw in DRAWS.items()),
            mock.patch.object(os, "urandom", random_bytes),
            mock.patch.object(secrets, "randbits", bits),
            mock.patch.object(np.random, "default_rng", generator),
        ]

    def _asked_by_us(self) -> bool:
        return self.rng is not None and sys._getframe(2).f_globals.get("__name__", "").startswith("pgmpy_dp.")

    @contextmanager
    def of(self, name: str | None) -> Iterator[None]:
        """Noise that `name` seeds, real noise for None."""
        before = self.rng
        self.rng = None if name is None else np.random.Generator(np.random.PCG64([self.run, crc32(name.encode())]))
        try:
            yield
        finally:
            self.rng = before

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        with self.of(None if item.get_closest_marker("real_noise") else item.nodeid):
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any, request: Any) -> Any:
        if fixturedef.scope == "function" or self.rng is None:
            return (yield)
        with self.of(f"{fixturedef.baseid} {fixturedef.argname} {getattr(request, 'param_index', 0)}"):
            return (yield)
