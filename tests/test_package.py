"""The front door: what importing the package promises."""

import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
import tomllib
from importlib.metadata import requires, version
from pathlib import Path

import pytest
import yaml

import pgmpy_dp

ROOT = Path(__file__).parents[1]


def run(code: str) -> str:
    """Standard output of a new interpreter in which every warning is an error."""
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_version_has_one_source():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert project["project"]["dynamic"] == ["version"]
    assert version("pgmpy_dp") == pgmpy_dp.__version__
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == pgmpy_dp.__version__
    assert f"## {pgmpy_dp.__version__} ({citation['date-released']})" in (ROOT / "CHANGELOG.md").read_text()


def test_the_citation_file_is_whole():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert {"cff-version", "message", "title", "authors"} <= set(citation)  # what the format requires
    assert citation["cff-version"] == "1.2.0"
    for reference in citation["references"]:
        assert {"type", "title", "authors"} <= set(reference)
        assert all({"family-names", "given-names"} == set(author) for author in reference["authors"])


def test_importing_the_package_is_quick_and_silent():
    heavy = run("import sys, pgmpy_dp; print([m for m in ('numpy', 'pandas', 'pgmpy', 'opendp') if m in sys.modules])")
    assert heavy.strip() == "[]"


def test_no_module_warns_or_needs_an_extra_when_imported():
    names = [name for _, name, _ in pkgutil.walk_packages(pgmpy_dp.__path__, "pgmpy_dp.")]
    assert "pgmpy_dp.tables.collective.collective_map" in names
    # As if they were not installed; pgmpy, and what it imports, take torch where they find it.
    absent = """
import importlib, sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("torch", "duckdb", "matplotlib"):
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Absent())
"""
    assert run(absent + f"[importlib.import_module(n) for n in {names!r}]").strip() == ""


@pytest.mark.parametrize("name", pgmpy_dp.__all__)
def test_every_public_name_resolves(name):
    value = getattr(pgmpy_dp, name)
    assert name in dir(pgmpy_dp)
    if name != "__version__":
        assert value.__name__ == name
        assert getattr(importlib.import_module(value.__module__), name) is value
        assert value.__doc__


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        pgmpy_dp.nonsense  # noqa: B018


def test_the_package_is_typed_and_depends_on_what_it_imports():
    assert (ROOT / "pgmpy_dp" / "py.typed").exists()
    declared = {re.split(r"[^A-Za-z0-9_-]", text)[0].lower() for text in requires("pgmpy_dp") if "extra ==" not in text}
    distribution = {"dp_accounting": "dp-accounting", "skbase": "scikit-base", "sklearn": "scikit-learn"}
    imported = set()
    for path in (ROOT / "pgmpy_dp").rglob("*.py"):
        for line in path.read_text().splitlines():
            if match := re.match(r"(?:from|import) (\w+)", line):
                imported.add(match[1])
    third_party = imported - set(sys.stdlib_module_names) - {"pgmpy_dp"}
    assert {distribution.get(name, name) for name in third_party} <= declared


def test_every_public_class_and_function_has_a_docstring():
    missing = []
    for _, name, _ in pkgutil.walk_packages(pgmpy_dp.__path__, "pgmpy_dp."):
        module = importlib.import_module(name)
        if not module.__doc__:
            missing.append(name)
        for public, value in vars(module).items():
            own = getattr(value, "__module__", None) == name and not public.startswith("_")
            if own and (inspect.isroutine(value) or inspect.isclass(value)) and not value.__doc__:
                missing.append(f"{name}.{public}")
    assert missing == []


FITTED_BY_DEFAULT = """
import sys, warnings
import networkx as nx, numpy as np, pandas as pd
warnings.simplefilter("ignore")
import pgmpy_dp
from pgmpy_dp.estimators import CollectiveMAP, PrivateBinaryMRF, PrivateBlockModel, PrivateGaussianMixture
from pgmpy_dp.estimators import PrivateGraphicalLasso, PrivateIsing, PrivatePairwise
rng = np.random.default_rng(0)
table = pd.DataFrame({name: rng.integers(0, 2, 60) for name in "abcd"})
states = {name: [0, 1] for name in "abcd"}
rows, both = {"state_names": states, "random_state": 0}, {"epsilon": 1.0, "delta": 1e-4}
pgmpy_dp.learn(table, pgmpy_dp.Budget(epsilon=1.0), schema=states, random_state=0)
for budget in ({"epsilon": 1.0}, both, {"rho": 0.5}):
    for learner in (PrivateIsing, PrivatePairwise, PrivateBinaryMRF):
        learner(width=2.0, **budget, **rows).fit(table)
    PrivateGraphicalLasso(1.0, **budget, random_state=0).fit(rng.uniform(-0.5, 0.5, (60, 3)))
    PrivateBlockModel(**budget, random_state=0).fit(nx.complete_graph(12))
    CollectiveMAP(**budget, **rows).fit(nx.path_graph("abcd"), table)
PrivateGaussianMixture(2, separation=9.0, scale=1.0, **both, random_state=0).fit(rng.normal(size=(3000, 2)))
print(sorted(name for name in sys.modules if "published" in name.split(".")[:-1]))
"""


def test_what_is_dominated_is_not_imported_until_it_is_asked_for():
    folders = {path.parent.parent.name for path in (ROOT / "pgmpy_dp").rglob("published/__init__.py")}
    assert folders == {"collective", "communities", "fields", "gaussian", "mixtures"}
    assert run(FITTED_BY_DEFAULT).strip() == "[]"
