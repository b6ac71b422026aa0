"""pgmpy's own tests of what undirected models are in, with `MarkovNetwork` under the name of `DiscreteMarkovNetwork`.

    python -m pip download --no-deps --no-binary :all: pgmpy==1.1.2 && tar xzf pgmpy-1.1.2.tar.gz
    python -m benchmarks.pgmpy_suites pgmpy-1.1.2

The folder is pgmpy's source distribution, unpacked; nothing is fetched. Its tests run twice on its own package, in a
process each: as they are, and with our class under the name of theirs in all modules of pgmpy, from which the tests
import it. What fails in the second run alone is ours to explain.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import unittest.mock
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.machine import describe_machine

RESULTS = Path(__file__).parent / "results" / "pgmpy-suites.md"
SUITES = (
    "test_models/test_DiscreteMarkovNetwork.py",
    "test_models/test_FactorGraph.py",
    "test_models/test_JunctionTree.py",
    "test_models/test_DiscreteBayesianNetwork.py",
    "test_models/test_DynamicBayesianNetwork.py",
    "test_inference/test_Inference.py",
    "test_inference/test_ExactInference.py",
    "test_inference/test_mplp.py",
    "test_sampling/test_GibbsSampling.py",
    "test_sampling/test_BayesianModelSampling.py",
    "test_estimators/test_MarginalEstimator.py",
    "test_estimators/test_MirrorDescentEstimator.py",
    "test_factors/test_discrete/test_Factor.py",
    "test_readwrite/test_UAI.py",
)
REASONS = {
    "test_junction_tree_single_clique": "order: the variables of a clique are in another order",
    "test_partition_function": "rounding: the sum is made of logarithms, 22.000000000000004 for 22",
    "test_marginal_loss": "zeros: a factor of zeros alone is kept by pgmpy's junction tree; ours is a distribution",
    "test_torch_marginal_loss": "zeros: the same on torch",
}
"""Why a case fails with our class and not with theirs; a word first."""

_CLASS, _FILE = "PGMPY_SUITES_CLASS", "PGMPY_SUITES_FILE"
_ended: dict[str, str] = {}


def pytest_configure(config: Any) -> None:
    """pytest takes this module as a plug-in: our class gets the name of theirs before tests are collected."""
    sys.modules.setdefault("mock", unittest.mock)  # by its older name, which pgmpy's tests import
    if os.environ.get(_CLASS) == "ours":
        from pgmpy.models import DiscreteMarkovNetwork as theirs

        from pgmpy_dp import MarkovNetwork, estimators

        assert estimators.CollectiveMAP is not None  # with all that it imports of pgmpy
        for name, module in list(sys.modules.items()):
            if name.split(".")[0] == "pgmpy" and getattr(module, theirs.__name__, None) is theirs:
                setattr(module, theirs.__name__, MarkovNetwork)


def pytest_runtest_logreport(report: Any) -> None:
    """How a case ended: "passed", "skipped", or what was raised."""
    if report.failed:
        crash = getattr(report.longrepr, "reprcrash", None)
        _ended[report.nodeid] = (crash.message if crash else "error").splitlines()[0]
    elif report.skipped or report.when == "call":
        _ended.setdefault(report.nodeid, report.outcome)


def pytest_sessionfinish(session: Any) -> None:
    """The other process reads it."""
    Path(os.environ[_FILE]).write_text(json.dumps(_ended), encoding="utf-8")


def outcomes(source: Path, whose: str) -> dict[str, str]:
    """How each case of the suites ended, with "theirs" or "ours"."""
    with tempfile.TemporaryDirectory() as folder:
        file, here = Path(folder) / "ended.json", Path(__file__).parents[1]
        paths = {"PYTHONPATH": os.pathsep.join(map(str, (source, here))), _CLASS: whose, _FILE: str(file)}
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "benchmarks.pgmpy_suites"]
        command += ["-W", "ignore", "--tb=line", *(f"pgmpy/tests/{suite}" for suite in SUITES)]
        subprocess.run(command, cwd=source, env={**os.environ, **paths, "HF_HUB_OFFLINE": "1"}, check=False)
        return json.loads(file.read_text(encoding="utf-8"))


def page(theirs: dict[str, str], ours: dict[str, str], source: str) -> str:
    """The counts, and each case that ended otherwise."""
    counts = [
        Counter(end if end in ("passed", "skipped") else "failed" for end in run.values()) for run in (theirs, ours)
    ]
    rows = "\n".join(
        f"| {kind} | {' | '.join(str(n[kind]) for n in counts)} |" for kind in ("passed", "failed", "skipped")
    )
    failed = [case for case in theirs if not {theirs[case], ours.get(case)} & {"passed", "skipped"}]
    common = Counter(theirs[case].split(":")[0].replace("assert ", "AssertionError ").split(" ")[0] for case in failed)
    other = [case for case in ours if (theirs.get(case) == "passed") != (ours[case] == "passed")]
    told = "\n".join(f"* `{case.split('/')[-1]}`: {REASONS.get(case.split('::')[-1], ours[case])}" for case in other)
    return f"""# pgmpy's own suites, with our class in the place of theirs

`python -m benchmarks.pgmpy_suites {source}`, {describe_machine()}

{len(ours)} cases of {len(SUITES)} files:

| | pgmpy's DiscreteMarkovNetwork | pgmpy_dp.MarkovNetwork |
| --- | ---: | ---: |
{rows}

These end otherwise:

{told}

What fails with both: {", ".join(f"{name} {count}" for name, count in common.most_common())}. These read files that the
source distribution lacks, or that a hub would be asked for, or round numbers of torch.
"""


def main() -> None:
    """Run both, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path, help="pgmpy's source distribution, unpacked")
    parser.add_argument("--out", type=Path, default=RESULTS)
    chosen = parser.parse_args()
    if not (chosen.source / "pgmpy" / "tests" / "test_models").is_dir():
        parser.error(f"{chosen.source} has no pgmpy/tests: pass the unpacked source distribution, which has the tests")
    theirs, ours = (outcomes(chosen.source.resolve(), whose) for whose in ("theirs", "ours"))
    chosen.out.write_text(page(theirs, ours, chosen.source.name), encoding="utf-8")
    print(chosen.out.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
