"""One core, one thread, and a line that says on what machine a number was measured."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from pathlib import Path

__all__ = ["describe_machine", "peak_rss", "reset_peak_rss", "resident", "single_thread"]

_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def single_thread(core: int | None = None, *, pinned: bool = True) -> None:
    """Hold this process, numpy's BLAS and JAX to one thread on one core.

    Call before numpy or jax is imported: both read their settings once.

    Parameters
    ----------
    core : int, optional
        The core to run on; default the last one this process may use.
    pinned : bool
        Without it, only the settings: for measures of processor time on a machine that others use too. Processes that
        this one starts inherit them.
    """
    for name in _THREAD_VARIABLES:
        os.environ[name] = "1"
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    os.environ["JAX_PLATFORMS"] = "cpu"
    # XLA keeps a thread pool of its own whatever its flags say; the affinity mask is what binds it.
    if pinned and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0)) if core is None else core})


def peak_rss() -> int:
    """Peak resident memory of this process in bytes, since `reset_peak_rss` or its start (Linux)."""
    return _status("VmHWM")


def resident() -> int:
    """Resident memory of this process now, in bytes (Linux)."""
    return _status("VmRSS")


def reset_peak_rss() -> None:
    """Let `peak_rss` count from the present size on (Linux)."""
    Path("/proc/self/clear_refs").write_text("5")


def describe_machine() -> str:
    """Processor, cores, Python and the versions of the libraries compared, on one line."""
    versions = []
    for package in ("numpy", "scipy", "pgmpy", "mbi", "jax"):
        try:
            versions.append(f"{package} {metadata.version(package)}")
        except metadata.PackageNotFoundError:
            versions.append(f"{package} absent")
    return f"{_processor()}, {os.cpu_count()} cores, Python {platform.python_version()}, {', '.join(versions)}"


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def _status(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    raise OSError(f"/proc/self/status has no field {field}")
