"""`learn` beside other packages' methods, on real tables: errors, likelihood, use for a classifier, time and memory.

::

    make compare                                 # or: python -m benchmarks.compare
    python -m benchmarks.compare --full          # three seeds, 30 minutes a run
    python -m benchmarks.compare --report-only   # the pages of what was run so far
    python -m benchmarks.compare --quick         # the board (`benchmarks.compare_board`)

Every run is a process of its own with a limit of processor time and of memory. What does not end within it is listed
as unfinished, and is not tried at a larger epsilon or with another seed. Each run is one line in
``build/compare/runs.jsonl``, so the same command goes on where it was stopped; lines of this package's methods count
only for the package as it is now. Other packages are in environments of their own in ``build/peers``, made from the
package index. Of those that are not there an environment variable has to name a folder with their source (`PEERS`).
What is missing is left out and said.

Every method gets the same records (a tenth is held out), and (epsilon, delta = 1e-9); those that take zCDP get the rho
that it is. Scores: mean total variation over all pairs and over 300 random triples of variables, of the model and of as
many synthetic records, each against the records learned from; mean log-likelihood of a held-out record; counting
queries of three or four conditions; area under the ROC curve (macro mean) of gradient boosting, logistic regression and
a forest that predict the table's target: they learn from the synthetic records, and are scored on the held-out ones.
Means of earlier runs stay in ``compare.json`` until the same is run again.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.machine import describe_machine, single_thread

if __name__ == "__main__":
    single_thread(pinned=False)  # before numpy is imported

import numpy as np

from benchmarks import compare_report
from benchmarks.compare_methods import METHODS, REFERENCES
from benchmarks.compare_scores import (
    CLASSIFIERS,
    classifier_auc,
    counting_error,
    mixture_scores,
    model_of,
    model_scores,
    mutual_scopes,
    record_scores,
    workload_error,
)
from benchmarks.compare_tables import TABLES, Table, held_out
from pgmpy_dp.inference.junction_tree import InferenceTooLarge
from pgmpy_dp.private import accounting

__all__ = ["DELTA", "EPSILONS", "PEERS", "Job", "Peer", "jobs", "main", "pending", "run_process"]

EPSILONS = (1.0, 0.1, 10.0)
DELTA = 1e-9
_CLONE = Path(__file__).resolve().parent.parent
_WORK = _CLONE / "build" / "compare"


@dataclass(frozen=True)
class Peer:
    """Another package: what its environment needs.

    Attributes
    ----------
    requirements : tuple of str
        From the package index.
    variable : str, optional
        Environment variable that names a folder with its source, where the index does not have it.
    paths : tuple of str
        What of that folder goes on Python's path.
    python : tuple of int
        The oldest Python that it takes.
    """

    requirements: tuple[str, ...]
    variable: str | None = None
    paths: tuple[str, ...] = ()
    python: tuple[int, int] = (3, 11)


PEERS = {
    "private-pgm": Peer(
        ("attrs", "numpy", "scipy", "pandas<3", "networkx", "jax==0.7.0", "chex", "optax", "matplotlib"),
        "PRIVATE_PGM",
        ("src", "mechanisms"),
    ),
    "mbi": Peer(("mbi==2.0.0",)),
    "opendp": Peer(("opendp[mbi,polars]==0.16.0", "pandas")),
    "dpmm": Peer(("dpmm==0.1.9",)),
    "dpsynth": Peer(
        (
            *("mbi==2.0.0", "jax[cpu]==0.11.0", "absl-py", "attrs", "numpy", "pandas", "pydantic>=2", "pyyaml"),
            *("dp-accounting", "more-itertools", "networkx", "scipy", "tqdm", "etils[epath]"),
        ),
        "DPSYNTH",
        ("",),
        (3, 12),
    ),
    "tab-pe": Peer(
        ("torch", "numpy", "pandas", "scipy", "scikit-learn", "omegaconf==2.3.0", "generalimport", "requests", "tqdm"),
        "TAB_PE",
        ("",),
    ),
    "margnet": Peer(("torch", "numpy", "pandas", "scipy", "networkx", "tqdm", "tomli", "matplotlib"), "MARGNET", ("",)),
}
PEER_METHODS = {
    "mst": "private-pgm",
    "mbi": "mbi",
    "opendp-mst": "opendp",
    "privbayes": "dpmm",
    "aim-pairs": "private-pgm",
    "aim-triples": "private-pgm",
    "swift": "dpsynth",
    "aim-small": "private-pgm",
    "swift-small": "dpsynth",
    "margnet": "margnet",
    "tab-pe": "tab-pe",
    "opendp-aim": "opendp",
}


@dataclass(frozen=True)
class Job:
    """One run: a method on a table, at an epsilon (None for what uses none), with a seed."""

    table: str
    method: str
    epsilon: float | None
    seed: int

    @property
    def own(self) -> bool:
        return self.method not in PEER_METHODS


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line; see ``--help``."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compare", description=__doc__.split("\n")[0])
    methods = [*METHODS, *REFERENCES, *PEER_METHODS]
    parser.add_argument("--full", action="store_true", help="three seeds and 30 minutes a run (default: one, and 10)")
    parser.add_argument("--seeds", type=int, help="that many seeds")
    parser.add_argument("--minutes", type=float, help="of processor time, for each run")
    parser.add_argument("--gigabytes", type=float, default=8.0, help="of memory, for each run (default: %(default)g)")
    parser.add_argument("--tables", nargs="+", choices=list(TABLES), default=list(TABLES), metavar="TABLE")
    parser.add_argument("--methods", nargs="+", choices=methods, default=methods, metavar="METHOD")
    parser.add_argument("--epsilons", nargs="+", type=float, default=list(EPSILONS), metavar="EPSILON")
    parser.add_argument("--work", type=Path, default=_WORK, help="single runs, kept (default: build/compare)")
    parser.add_argument("--out", type=Path, default=_CLONE / "benchmarks" / "results", help="folder of the results")
    parser.add_argument("--keep", action="store_true", help="count this package's runs of other versions too")
    parser.add_argument("--quick", action="store_true", help="the board: this package's methods, two seeds")
    parser.add_argument("--report-only", action="store_true", help="run nothing")
    parser.add_argument("--docs", action="store_true", help="write the table of the documentation, too")
    options = parser.parse_args(arguments)
    if options.quick:
        from benchmarks import compare_board

        return compare_board.main(options)
    options.seeds = options.seeds or (3 if options.full else 1)
    options.minutes = options.minutes or (30.0 if options.full else 10.0)
    options.work = options.work.resolve()  # runs start in folders of their own
    options.work.mkdir(parents=True, exist_ok=True)
    lines = options.work / "runs.jsonl"
    if not options.report_only:
        asked = jobs(options.tables, options.methods, options.epsilons, options.seeds)
        for number, job in enumerate(asked, 1):
            if not pending(job, read(lines), version(), options.keep, options.minutes):
                continue
            name = f"{number}/{len(asked)} {job.table}, {job.method}, epsilon {job.epsilon}, seed {job.seed}"
            try:
                row = run(job, options.work, options.minutes, options.gigabytes)
            except KeyboardInterrupt:
                parser.exit(130, f"{name}: stopped; the same command goes on here\n")
            print(f"{name}: {row['status']}", flush=True)
            with lines.open("a") as stream:
                stream.write(json.dumps(row) + "\n")
    compare_report.write(read(lines), options.out, describe_machine())
    print(f"wrote {options.out / 'compare.md'}")
    if options.docs:
        compare_report.write_docs(options.out, _CLONE / "docs")


def jobs(tables: Iterable[str], methods: Sequence[str], epsilons: Sequence[float], seeds: int) -> list[Job]:
    """All runs that were asked for: those from which most can be seen first."""
    found = []
    for seed in range(seeds):
        for part in ([m for m in methods if m not in PEER_METHODS], [m for m in PEER_METHODS if m in methods]):
            for epsilon, table, method in itertools.product(epsilons, tables, part):
                job = Job(table, method, None if method in REFERENCES else epsilon, seed)
                if job not in found:
                    found.append(job)
    return found


def pending(job: Job, rows: list[dict], current: str, keep: bool = False, minutes: float = 0.0) -> bool:
    """Whether a run is still to be made.

    It is not if there is a row of it (of this package's methods: by the source as it is now, unless `keep`), nor if it
    is of a peer that did not finish on the same table at an epsilon that is not larger: nothing would be learned.
    What ran out of time before counts only if it had as many `minutes` as there are now.
    """
    for row in rows:
        if (row["table"], row["method"]) != (job.table, job.method):
            continue
        if row["status"] == "time" and row["minutes"] < minutes:
            continue
        if not job.own and row["status"] != "done" and row["epsilon"] <= job.epsilon:
            return False
        counts = row["version"] in (None, current) or keep
        if counts and (row["epsilon"], row["seed"]) == (job.epsilon, job.seed):
            return False
    return True


def read(lines: Path) -> list[dict]:
    """All runs so far."""
    return [json.loads(line) for line in lines.read_text().splitlines()] if lines.exists() else []


@cache
def version() -> str:
    """Changes with every change of the package's source."""
    digest = hashlib.sha256()
    for path in sorted((_CLONE / "pgmpy_dp").rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


@cache
def load(name: str) -> Table | str:
    """A table, or why it is not there."""
    try:
        return TABLES[name].read()
    except FileNotFoundError as error:
        return str(error)


@cache
def environment(name: str) -> dict[str, str] | str:
    """Python and its path for a peer, in an environment that is made if it is absent; or why there is none."""
    peer = PEERS[name]
    source = os.environ.get(peer.variable) if peer.variable else None
    if peer.variable and not (source and Path(source).is_dir()):
        return f"not in the package index, and {peer.variable} names no folder with its source"
    python = _CLONE / "build" / "peers" / name / "bin" / "python"
    if not (python.parent.parent / ".installed").exists():
        base = sys.executable
        if sys.version_info[:2] < peer.python:
            base = os.environ.get("PYTHON_NEW", f"python{peer.python[0]}.{peer.python[1]}")
        for command in (
            [base, "-m", "venv", str(python.parent.parent)],
            [str(python), "-m", "pip", "install", "--quiet", *peer.requirements],
        ):
            try:
                subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            except (OSError, subprocess.CalledProcessError) as error:
                return f"could not be installed: {error}"
        (python.parent.parent / ".installed").touch()
    paths = [str(Path(source) / path) for path in peer.paths] if source else []
    return {"python": str(python), "PYTHONPATH": os.pathsep.join(paths)}


def run(job: Job, work: Path, minutes: float, gigabytes: float) -> dict:
    """One run and its scores, as a row of ``runs.jsonl``."""
    row: dict[str, Any] = {
        "table": job.table,
        "method": job.method,
        "epsilon": job.epsilon,
        "seed": job.seed,
        "version": version() if job.own or job.method == "mbi" else None,  # which is fitted to what `learn` released
        "minutes": minutes,
        "made": datetime.now(UTC).date().isoformat(),
        "machine": describe_machine().split(",")[0],
        "status": "absent",
    }
    table = load(job.table)
    if isinstance(table, str):
        return row | {"why": table}
    found = {} if job.own else environment(PEER_METHODS[job.method])
    if isinstance(found, str):
        return row | {"why": found}
    unseen = held_out(table, job.seed)
    row |= {"records": int((~unseen).sum())}
    tables_of_learn = work / f"{job.table}-{job.epsilon}-{job.seed}-release.npz"
    with tempfile.TemporaryDirectory(dir=work) as folder:
        source, result = Path(folder) / "input.npz", Path(folder) / "output.npz"
        given = what_is_given(job, table, unseen)
        if job.method == "mbi":
            if not tables_of_learn.exists():
                return row | {"status": "failed", "why": "learn has released no tables for it"}
            given |= np.load(tables_of_learn)
        np.savez(source, **given)
        if job.own:
            command = [sys.executable, "-m", "benchmarks.compare_methods"]
        else:
            command = [found["python"], str(_CLONE / "benchmarks" / "compare_peers.py")]
        paths = str(_CLONE) if job.own else found["PYTHONPATH"]
        command += [job.method, str(source), str(result)]
        settings = {"PYTHONPATH": paths, "PYTHONHASHSEED": "0"}  # AIM and SWIFT draw in the order of a set
        row |= run_process(command, settings, minutes * 60, gigabytes * 2**30, Path(folder))
        if row["status"] != "done":
            return row
        with np.load(result) as arrays:
            output = dict(arrays)
    if job.method == "learn":
        np.savez(tables_of_learn, **{name: array for name, array in output.items() if name.startswith("release_")})
    return row | scores(output, table, unseen)


def what_is_given(job: Job, table: Table, unseen: np.ndarray) -> dict[str, Any]:
    """What a method gets."""
    return {
        "codes": table.codes[~unseen],
        "cardinalities": np.array(table.cardinalities),
        "epsilon": job.epsilon or 0.0,
        "delta": DELTA,
        "rho": accounting.approx_to_zcdp(job.epsilon, DELTA) if job.epsilon else 0.0,
        "seed": 1000 + job.seed,
        "target": table.names.index(table.target),
    }


def scores(output: dict, table: Table, unseen: np.ndarray, classifiers: Sequence[str] = CLASSIFIERS) -> dict:
    """What a run is worth, from what it wrote."""
    learned, cards = table.codes[~unseen], table.cardinalities
    scopes = mutual_scopes(cards)
    if (output["synthetic"] < 0).any() or (output["synthetic"] >= cards).any():
        return {"status": "failed", "why": "its records have states that the schema does not have"}
    found: dict[str, Any] = {name: float(output[name]) for name in ("seconds", "sampling_seconds") if name in output}
    found |= record_scores(output["synthetic"], learned, cards, scopes)
    if table is load("adult-aim"):
        found |= {"workload": workload_error(output["synthetic"], learned, cards)}
    found |= {"counts": counting_error(output["synthetic"], learned, 0)}
    for name, kind in zip(("auc", "auc_logistic", "auc_forest"), classifiers, strict=False):
        found[name] = classifier_auc(output["synthetic"], table.codes[unseen], table, kind=kind)
    if "mixture" in output:
        found |= mixture_scores(output["mixture"], cards, learned, table.codes[unseen], scopes)
    if "theta" in output:
        try:
            model = model_of(cards, json.loads(str(output["scopes"])), output["theta"])
            found |= model_scores(model, learned, table.codes[unseen], scopes)
        except InferenceTooLarge as error:
            found |= {"why": f"the model's tables are not computed: {error}"}
    return found


def run_process(command: list[str], settings: dict[str, str], seconds: float, memory: float, folder: Path) -> dict:
    """Run a command to its end or to a limit, alone in its session.

    Returns
    -------
    dict
        "status": "done", "time" (processor time, of all its threads, is used up), "memory" or "failed"; with "why",
        "megabytes" (peak resident size, imports included) and "process_seconds".
    """

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds) + 5))

    log = folder / "log"
    with log.open("w") as stream:
        process = subprocess.Popen(
            command, env={**os.environ, **settings}, stdout=stream, stderr=stream, preexec_fn=limited, cwd=folder
        )
        status = ended = None
        try:
            while True:
                ended, code, usage = os.wait4(process.pid, os.WNOHANG)
                if ended:
                    break
                if _resident(process.pid) > memory:
                    status = "memory"
                    process.kill()
                time.sleep(0.05)
        finally:
            if not ended:  # Ctrl-C
                process.kill()
                process.wait()
        process.returncode = os.waitstatus_to_exitcode(code)
    used = usage.ru_utime + usage.ru_stime
    if status is None:
        status = {0: "done", -signal.SIGXCPU: "time", -signal.SIGKILL: "time"}.get(process.returncode, "failed")
    row = {"status": status, "process_seconds": round(used, 2), "megabytes": round(usage.ru_maxrss / 1024)}
    if status == "failed":
        row["why"] = " ".join(log.read_text(errors="replace").split())[-500:]
    return row


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()
    except (OSError, IndexError):
        return 0


if __name__ == "__main__":
    main()
