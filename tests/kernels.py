"""Run pytest on other arithmetic kernels than the machine's own: ``make test-kernel`` does.

    python tests/kernels.py [--kernel Haswell] [arguments of pytest]

OpenBLAS and NumPy choose kernels by the processor, and each rounds in an order of its own. So a test that holds on one
machine by its last bits alone fails on another. A kernel that the processor can run is forced here on OpenBLAS (NumPy's
and SciPy's), on NumPy's own loops and on torch's, and what they say of themselves is checked before any test is run.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from typing import Any

# By name of OpenBLAS's kernels: the dispatched features that NumPy keeps, and torch's own name. torch's products are by
# MKL, which chooses by the processor and is not forced.
KERNELS = {
    "Nehalem": ("", "default"),
    "Sandybridge": ("AVX F16C", "default"),
    "Haswell": ("AVX F16C FMA3 AVX2 X86_V3", "avx2"),
    "Zen": ("AVX F16C FMA3 AVX2 X86_V3", "avx2"),
    "SkylakeX": ("AVX F16C FMA3 AVX2 X86_V3 AVX512F AVX512CD AVX512_SKX X86_V4", "avx512"),
}
SAME = {"Zen": "Haswell"}
"""What the OpenBLAS of the wheels takes where it was built without a kernel."""

VARIABLES = ("OPENBLAS_CORETYPE", "NPY_DISABLE_CPU_FEATURES", "ATEN_CPU_CAPABILITY")

ASK = """
import json, numpy, scipy.linalg, threadpoolctl
from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__
blas = [library.get("architecture") for library in threadpoolctl.threadpool_info() if library["user_api"] == "blas"]
try:
    import torch
    capability = torch.backends.cpu.get_cpu_capability().lower()
except ModuleNotFoundError:
    capability = None
print(json.dumps({"blas": sorted({str(name) for name in blas}), "dispatched": list(__cpu_dispatch__),
                  "features": [name for name, there in __cpu_features__.items() if there], "torch": capability}))
"""


def in_use(environment: dict[str, str]) -> dict[str, Any]:
    """What a new interpreter says of its kernels."""
    done = subprocess.run([sys.executable, "-c", ASK], env=environment, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"the kernels cannot be asked for:\n{done.stderr}")
    return json.loads(done.stdout)


def another(own: dict[str, Any]) -> str:
    """The most common kernel of other machines that this processor can run too."""
    return "Haswell" if "AVX2" in own["features"] and own["blas"] != ["Haswell"] else "Nehalem"


def forced(kernel: str, own: dict[str, Any], environment: dict[str, str]) -> dict[str, str]:
    """An environment in which OpenBLAS, NumPy and torch take a kernel."""
    kept, torch = KERNELS[kernel]
    dropped = [name for name in own["dispatched"] if name in own["features"] and name not in kept.split()]
    forced = {"OPENBLAS_CORETYPE": kernel, "ATEN_CPU_CAPABILITY": torch}
    return environment | forced | ({"NPY_DISABLE_CPU_FEATURES": " ".join(dropped)} if dropped else {})


def difference(kernel: str, now: dict[str, Any]) -> str:
    """How what is in use differs from what was forced; empty where it does not."""
    kept, torch = KERNELS[kernel]
    wrong = [name for name in now["blas"] if name not in (kernel, SAME.get(kernel))]
    wrong += [name for name in now["dispatched"] if name in now["features"] and name not in kept.split()]
    wrong += [now["torch"]] if now["torch"] not in (None, torch) else []
    return ", ".join(wrong)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernel", choices=KERNELS, help="by default one that is not this machine's own")
    chosen, arguments = parser.parse_known_args()
    environment = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    own = in_use(environment)
    if platform.machine().lower() not in ("x86_64", "amd64") or "None" in own["blas"] or not own["blas"]:
        print(f"no other kernel is known for {platform.machine()} with {own['blas'] or 'no BLAS'}: nothing was run")
        return
    kernel = chosen.kernel or another(own)
    environment = forced(kernel, own, environment)
    now = in_use(environment)
    if wrong := difference(kernel, now):
        sys.exit(f"{kernel} was asked for, but {wrong} is in use; the machine's own: {own}")
    without = environment.get("NPY_DISABLE_CPU_FEATURES", "nothing")
    print(f"kernels of {kernel} in place of {', '.join(own['blas'])}: OpenBLAS {', '.join(now['blas'])}, ", end="")
    print(f"NumPy without {without}, torch {now['torch']}", flush=True)
    sys.exit(subprocess.run([sys.executable, "-m", "pytest", *arguments], env=environment).returncode)


if __name__ == "__main__":
    main()
