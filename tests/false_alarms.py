"""How often tests and examples with real noise fail: each that draws any is run again and again, in one process.

    python -m tests.false_alarms pgmpy_dp --runs 1000                             # the examples in docstrings
    python -m tests.false_alarms pgmpy_dp --runs 300 --wide 3                     # with noise three times as wide
    python -m tests.false_alarms tests/private/test_tables_attacks.py --runs 20            # and what audits find

Noise without a `random_state` comes from OpenDP's measurements or from the system's random bytes; that of the former
can be made wider. A test is run until it ran often enough, or for `--seconds` of processor time. A line for each says
how often it failed, and what is excluded with 95 % confidence for one run with the noise as it is: if a share q fails
with noise w times as wide, q**w does without, for Laplace noise (README.md of this folder).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import wraps
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from _pytest.runner import runtestprotocol
from scipy.stats import beta

from pgmpy_dp.auditing import attack, bounds
from pgmpy_dp.private.noise import bulk, samplers
from tests.private import audit

MEASUREMENTS = ("laplace_measurement", "gaussian_measurement", "gumbel_measurement", "exponential_measurement")


class Again:
    """A plugin of pytest that repeats what draws noise, and keeps what was seen."""

    def __init__(self, runs: int, seconds: float, wide: float):
        self.runs, self.seconds, self.wide = runs, seconds, wide
        self.draws = 0
        self.bounds: list[tuple[float, float | None]] = []
        self.seen: list[dict] = []

    def patches(self) -> list:
        """Sources of noise that count and widen; audits that tell the bound, with the claim where they know it."""

        def wider(make: Callable) -> Callable:
            def measurement(scale: float):
                self.draws += 1
                return make(scale * self.wide)

            return measurement

        def bytes_for_noise(size: int, given: Callable = os.urandom) -> bytes:
            self.draws += sys._getframe(1).f_globals["__name__"].startswith("pgmpy_dp.private")
            return given(size)

        @wraps(bulk.bulk_noise)  # with its docstring, whose example is to be found
        def in_bulk(distribution: str, scale: float, size: int, given: Callable = bulk.bulk_noise) -> np.ndarray:
            return given(distribution, min(scale * self.wide, bulk.MAX_SCALE), size)

        @wraps(audit.audit)
        def told(*args, given: Callable = audit.audit, **kwargs) -> float:
            bound = given(*args, **kwargs)
            self.bounds.append((bound, None))
            return bound

        @wraps(attack.audit_scores)
        def reported(*args, given: Callable = attack.audit_scores, **kwargs) -> attack.AuditReport:
            report = given(*args, **kwargs)
            self.bounds.append((report.bound, bounds.claimed_value(report.guarantee)))
            return report

        return [
            *(mock.patch.object(samplers, name, wider(getattr(samplers, name))) for name in MEASUREMENTS),
            mock.patch.object(os, "urandom", bytes_for_noise),
            mock.patch.object(bulk, "bulk_noise", in_bulk),
            mock.patch.object(audit, "audit", told),
            mock.patch.object(attack, "audit_scores", reported),
        ]

    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        names = dict(item.dtest.globs) if hasattr(item, "dtest") else {}
        self.draws, self.bounds = 0, []
        failures, runs, messages, begin = 0, 0, set(), time.process_time()
        while True:
            if names:  # of a docstring, which the first run clears
                item.dtest.globs.update(names)
            item._initrequest()
            # As if another test of its module came next: fixtures of the module stay, its own are made again.
            reports = runtestprotocol(item, nextitem=item.parent, log=False)
            runs += 1
            if "matplotlib.pyplot" in sys.modules:  # which warns of many figures
                sys.modules["matplotlib.pyplot"].close("all")
            bad = [report for report in reports if report.failed]
            failures += bool(bad)
            messages |= {str(report.longrepr)[-600:] for report in bad[:1]} if len(messages) < 3 else set()
            spent = time.process_time() - begin
            if not self.draws or runs >= self.runs or spent > self.seconds:
                break
        item.session._setupstate.teardown_exact(nextitem)
        if self.draws:
            row = {"test": item.nodeid, "runs": runs, "failures": failures, "seconds": spent / runs}
            row |= {"bounds": self.bounds, "messages": sorted(messages)}
            self.seen.append(row)
            print(line(row, self.wide), flush=True)
        return True


def line(row: dict, wide: float) -> str:
    """Failures, what is excluded, and of audits the bounds."""
    runs, failures = row["runs"], row["failures"]
    excluded = beta.ppf(0.95, failures + 1, runs - failures) if failures < runs else 1.0
    told = f"{failures:5d} of {runs:5d}  below {excluded**wide:7.1e}  {row['seconds']:6.2f} s  {row['test']}"
    if row["bounds"]:
        values, claims = zip(*row["bounds"], strict=True)
        told += f"  bounds {np.mean(values):.4g} +- {np.std(values):.2g}, least {min(values):.4g}, claim {claims[0]}"
    return told


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paths", nargs="+")
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--seconds", type=float, default=20.0, help="of processor time for one test")
    parser.add_argument("--wide", type=float, default=1.0)
    parser.add_argument("--out", type=Path, help="file of JSON lines, one test each")
    options, more = parser.parse_known_args(arguments)
    os.environ["NOISE"] = "real"
    plugin = Again(options.runs, options.seconds, options.wide)
    with ExitStack() as stack:
        for patch in plugin.patches():
            stack.enter_context(patch)
        pytest.main(["-n", "0", "-p", "no:terminal", *options.paths, *more], plugins=[plugin])
    if options.out:
        options.out.write_text("".join(json.dumps(row) + "\n" for row in plugin.seen))
    failed = sum(row["failures"] for row in plugin.seen)
    print(f"{len(plugin.seen)} with real noise, {failed} failures in {sum(row['runs'] for row in plugin.seen)} runs")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
