"""What is built installs without extras and works there: ``make package`` runs this in an environment of its own.

    python tests/packaging/check_package.py dist

The interpreter must be that of an environment that holds the wheel and what it needs, and nothing else.
"""

import importlib.util
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXTRAS = ("torch", "duckdb", "matplotlib", "polars", "ibis", "dask", "pyspark", "pytest", "mbi", "cvxpy")

OUTSIDE = """
import sys
before = set(sys.modules)
import pgmpy_dp
print({name.split(".")[0] for name in set(sys.modules) - before} - sys.stdlib_module_names - {"pgmpy_dp"} or "")
"""

LEARN = """
import pandas as pd, networkx as nx
from pgmpy_dp import Budget, MarkovNetwork, learn
from pgmpy_dp.estimators import CollectiveMAP
frame = pd.DataFrame({"rain": ["no"] * 700 + ["yes"] * 300, "wet": ["no"] * 600 + ["yes"] * 400})
states = {"rain": ["no", "yes"], "wet": ["no", "yes"]}
frame.to_parquet("records.parquet")
network = learn("records.parquet", Budget(epsilon=1.0, delta=1e-6), states)
assert network.sample(10).shape == (10, 2)
graph = nx.Graph([("rain", "wet")])
model = MarkovNetwork(graph).fit(frame, estimator=CollectiveMAP(epsilon=1.0, state_names=states))
model.save("model.npz")
assert MarkovNetwork.load("model.npz").privacy == model.privacy
"""

NEEDS = {  # what is asked for without an extra, and what the message has to say
    "by Newton's method needs torch, which is not installed: pip install torch --index-url": """
import networkx as nx
from pgmpy_dp.estimators import PrivateBlockModel
PrivateBlockModel(method="sdp", rho=5.0).fit(nx.path_graph(40))
""",
    "device='cpu' needs torch, which is not installed: pip install torch --index-url": """
import numpy as np
from pgmpy_dp.estimators import PrivateGaussianMixture
PrivateGaussianMixture(n_components=2, epsilon=1.0, delta=1e-6, n_records=100, device="cpu").fit(np.zeros((100, 2)))
""",
    "plots need matplotlib, which is not installed: pip install matplotlib": """
import networkx as nx
from pgmpy_dp.plotting import plot_graph
plot_graph(nx.path_graph(3))
""",
}

SESSION = (
    "--version",
    "--help",
    'schema --variable "rain=no,yes" --cuts "mm=1,5" --out schema.json',
    "plan --schema schema.json --epsilon 1 --n 1000",
    "fit records.csv --schema schema.json --epsilon 1 --ledger ledger.json --out own.npz",
    "query own.npz --variables rain --evidence mm=3",
    "sample own.npz --n 10 --out synthetic.csv",
    "report own.npz --out report.html",
    "explore own.npz --out explore.html",
    "ledger show ledger.json",
    "audit --estimator NaiveMLE --quiet",
)


def python(code: str, folder: str, *options: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-I", *options, "-c", code]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def check(ok: bool, what: str, detail: str = "") -> None:
    print(f"{'ok    ' if ok else 'FAILED'} {what}")
    if not ok:
        sys.exit(detail or what)


def check_contents(dist: Path) -> None:
    (wheel,), (source,) = dist.glob("*.whl"), dist.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as archive:
        inside = {name for name in archive.namelist() if ".dist-info/" not in name}
    package = ROOT / "pgmpy_dp"
    wanted = {
        str(path.relative_to(ROOT))
        for path in package.rglob("*")
        if path.is_file() and path.suffix in (".py", ".md", ".typed", ".html", ".css", ".js", ".yaml")
    }
    special = {"pgmpy_dp/py.typed", "pgmpy_dp/private/ledger.md", "pgmpy_dp/reporting/templates/inference.js"}
    check(special <= wanted, "types, proofs and templates are in the source")
    check(inside == wanted, "the wheel has the whole package and nothing else", f"differs in {sorted(inside ^ wanted)}")
    with tarfile.open(source) as archive:
        kept = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    needed = wanted | {
        "pyproject.toml",
        "README.md",
        "LICENSE",
        "CHANGELOG.md",
        "CITATION.cff",
        "tests/test_package.py",
        "benchmarks/results/audits.md",
    }
    check(needed <= kept, "the source distribution has package, tests and papers", f"lacks {sorted(needed - kept)}")


def check_imports(folder: str) -> None:
    here = [name for name in EXTRAS if importlib.util.find_spec(name)]
    check(not here, "no extra is installed", f"{here} are installed: use a clean environment")
    done = python(OUTSIDE, folder, "-W", "error")
    check(done.returncode == 0 and not done.stderr, "python -W error -c 'import pgmpy_dp'", done.stderr)
    outside = done.stdout.strip()
    check(not outside, "it imports nothing but the standard library, so it takes no time", f"it imports {outside}")
    done = python("import pgmpy_dp, sys; sys.exit('site-packages' not in pgmpy_dp.__file__)", folder)
    check(done.returncode == 0, "it is the installed one", done.stderr)


def check_work(folder: str) -> None:
    done = python(LEARN, folder)
    check(done.returncode == 0, "learn, fit, save and load", done.stderr)
    for message, code in NEEDS.items():
        done = python(code, folder)
        told = done.stderr.splitlines()[-1] if done.stderr else ""
        check("Error" in told and message in told, f"without the extra: {message}", done.stderr or "no error at all")


def check_commands(folder: str) -> None:
    lines = "".join(f"{'yes' if k % 3 else 'no'},{k % 7}.5\n" for k in range(1000))
    Path(folder, "records.csv").write_text("rain,mm\n" + lines)
    program = Path(sys.executable).with_name("pgmpy-dp")
    for words in SESSION:
        done = subprocess.run(f'"{program}" {words}', shell=True, cwd=folder, capture_output=True, text=True)
        check(done.returncode == 0, f"pgmpy-dp {words}", done.stderr)


if __name__ == "__main__":
    check_contents(Path(sys.argv[1]))
    with tempfile.TemporaryDirectory() as clean:
        check_imports(clean)
        check_work(clean)
        check_commands(clean)
