"""Who may import what: the walls of the boundary, read from the source.

What a name is that the boundary gives out, and where it was defined, is seen by importing it.
"""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
import types
from importlib import import_module
from pathlib import Path

import pytest

from pgmpy_dp.private.curator.charged_base import ChargedCurator
from pgmpy_dp.private.curator.mechanism import Mechanism
from pgmpy_dp.private.data.data_base import Facts, PrivateData
from pgmpy_dp.private.operators.operator_base import Operator
from pgmpy_dp.private.operators.solutions import CheckedProgram, Program
from tests.code_lines import LEARN, by_kind, code_lines, cycles, parsed, reached

PACKAGE = Path(__file__).parents[1] / "pgmpy_dp"
MODULES = {".".join(p.relative_to(PACKAGE.parent).with_suffix("").parts): p for p in PACKAGE.rglob("*.py")}
SHARED = {"auditing", "cli", "estimators", "inference", "learning", "models"}
SHARED |= {"plotting", "private", "reporting", "schema", "theory"}
READERS = ("narwhals", "pandas", "polars", "pyarrow", "duckdb", "dask", "ibis", "pyspark")


@functools.cache
def imports(name: str) -> frozenset[str]:
    """Absolute names that a module imports anywhere in it, also inside functions and for type checking.

    A table from names to modules is a front door's, which imports them when they are used.
    """
    path = MODULES[name]
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    package = package[:-1] if package[-1] == "__init__" else package
    found = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
            found |= {alias.name.split(".")[0] for alias in node.names if alias.asname is None}  # what it is called by
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            found |= {f"{module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in (
            "import_module",
            "__import__",
        ):
            called = node.args[0].value if isinstance(node.args[0], ast.Constant) else "."
            found |= {"<computed>" if called.startswith(".") else called}
        elif isinstance(node, ast.Dict):
            pairs = zip(node.keys, node.values, strict=True)
            said = [[getattr(part, "value", None) for part in pair] for pair in pairs]
            found |= {f"{home}.{key}" for key, home in said if isinstance(home, str) and is_module(home)}
    return frozenset(found)


def within(name: str, *prefixes: str) -> bool:
    return any(name == prefix or name.startswith(prefix + ".") for prefix in prefixes)


def offenders(modules, forbidden) -> dict[str, list[str]]:
    bad = {name: sorted(i for i in imports(name) if forbidden(i)) for name in modules}
    return {name: found for name, found in bad.items() if found}


ANYBODY = (
    "shown",
    "pgmpy_config",
)  # may show a name, and ask whether pgmpy's backend is torch: they import nothing of ours


def part(*names: str) -> list[str]:
    return [m for m in MODULES if within(m, *(f"pgmpy_dp.{name}" for name in names))]


def own(name: str, *allowed: str) -> bool:
    """Whether an imported name is of this package and outside the allowed parts."""
    return within(name, "pgmpy_dp") and not within(name, *(f"pgmpy_dp.{a}" for a in (*allowed, *ANYBODY)))


def test_schema_imports_nothing_of_the_rest_of_the_package():
    assert not offenders(part("schema"), lambda i: own(i, "schema"))


MATHEMATICS = "private.mathematics"

# What of a subject is trusted lies in its own folder: its kind of data, read and made into records inside the boundary.
OPERATORS = sorted(
    {".".join(m.split(".")[1:3]) for m in MODULES if m.split(".")[2:3] == ["operators"]} - {"private.operators"}
)
TRUSTED = part("private", *OPERATORS)


def test_the_mathematics_of_the_boundary_know_checks_alone_of_the_rest():
    assert not offenders(part(MATHEMATICS), lambda i: own(i, "checks", MATHEMATICS))


THEORY = ("schema", "checks", "front_door", "theory", "private.accounting", "private.guarantee")


def test_theory_imports_only_the_schema_checks_guarantees_with_their_conversions_and_itself():
    assert not offenders(part("theory"), lambda i: own(i, *THEORY))


@pytest.mark.parametrize("module", ["checks", *ANYBODY])
def test_what_everybody_may_import_imports_nothing_of_the_package(module):
    assert part(module) and not offenders(part(module), lambda i: within(i, "pgmpy_dp"))


CORE = ("schema", "private", "inference", "learning", "models")
SUBJECTS = sorted({m.split(".")[1] for m, path in MODULES.items() if path.parent.parent == PACKAGE} - SHARED)


def test_inference_knows_neither_records_nor_noise():
    assert not offenders(part("inference"), lambda i: own(i, "schema", "checks", MATHEMATICS, "inference"))


def test_no_core_module_imports_a_subject():
    subjects = [f"pgmpy_dp.{name}" for name in SUBJECTS]
    assert len(subjects) > 5
    assert not offenders(part(*CORE, "reporting"), lambda i: within(i, *subjects))
    # The front door of pictures has names of subjects, too, which it imports when they are used.
    assert not offenders(set(part("plotting")) - {"pgmpy_dp.plotting.__init__"}, lambda i: within(i, *subjects))


@pytest.mark.parametrize("subject", SUBJECTS)
def test_no_subject_imports_another(subject):
    allowed = (*CORE, "checks", "metrics", "front_door", subject)
    allowed += ("theory", "plotting.style")  # what public numbers say, and the look of pictures
    # Linked tables are one table of units to those who learn: they take its search, and add what slots are.
    allowed += ("tables",) if subject == "linked" else ()
    assert not offenders(part(subject), lambda i: own(i, *allowed))


def test_only_who_learns_asks_curators():
    allowed = part("private", "learning", "models", *SUBJECTS, "auditing")
    assert not offenders([m for m in MODULES if m not in allowed], lambda i: within(i, "pgmpy_dp.private.curator"))


def test_the_boundary_takes_nothing_from_outside():
    """Solvers and block functions are registered from there, and called by name."""
    found = offenders(part("private"), lambda i: own(i, "schema", "checks", "private"))
    for room in OPERATORS:
        found |= offenders(part(room), lambda i, room=room: own(i, "schema", "checks", "private", room))
    # Which version a worker of Spark has is asked there, of what it has of this package.
    assert found == {"pgmpy_dp.private.reading.spark_source": ["pgmpy_dp"]}


def test_auditing_sees_what_a_stranger_sees():
    allowed = ("schema", "checks", "learning", "private", "auditing", "estimators", *SUBJECTS)
    assert not offenders(part("auditing"), lambda i: own(i, *allowed))


def test_pages_are_made_of_released_models():
    allowed = ("schema", "checks", "inference", "models", "plotting", "reporting", "__version__")
    allowed += ("learning.privacy_record", "private.atomic_file", "theory.attack_rates")
    allowed += (
        "private.sensitive.Release",
        "private.adjacency",
        "private.guarantee",
        "private.accounting",
    )  # what the guarantee says in words
    assert not offenders(part("reporting"), lambda i: own(i, *allowed) or within(i, *READERS))
    others = [m for m in MODULES if m not in part("reporting", "cli")]
    assert set(offenders(others, lambda i: within(i, "pgmpy_dp.reporting"))) == {
        "pgmpy_dp.models.markov_network",
        "pgmpy_dp.__init__",
    }


def test_the_command_line_opens_no_data():
    readers = {*("encode", "open_source", "read_edge_list", "read_keys", "read_numbers"), "shared_codes", "vector_rows"}
    modules = part("cli", "__main__")
    assert modules
    assert not offenders(modules, lambda i: i.split(".")[-1] in readers or within(i, "narwhals", "polars", "duckdb"))
    # pandas writes synthetic records there, and makes tables without any.
    assert [
        name for name in modules if "pd.read_" in MODULES[name].read_text() or "np.load" in MODULES[name].read_text()
    ] == []


def test_nothing_imports_the_command_line():
    others = [m for m in MODULES if m not in part("cli", "__main__")]
    assert not offenders(others, lambda i: within(i, "pgmpy_dp.cli"))


@pytest.mark.parametrize(
    ("library", "module"),
    [("opendp", "pgmpy_dp.private.noise.samplers"), ("dp_accounting", "pgmpy_dp.private.accounting")],
)
def test_one_door_to_each_privacy_library(library, module):
    assert [m for m in MODULES if any(within(i, library) for i in imports(m))] == [module]


def test_only_these_modules_of_the_boundary_open_data():
    allowed = part("private.reading")
    assert not offenders([m for m in TRUSTED if m not in allowed], lambda i: within(i, *READERS))


# What is counted, read or drawn there: its rooms give out what is on the lists below, and nothing else, to all others.
ROOMS = tuple(f"pgmpy_dp.{room}" for room in ("private.data", "private.reading", "private.noise", "private.operators"))
ROOMS += tuple(f"pgmpy_dp.{room}" for room in OPERATORS)
OUTSIDE = [m for m in MODULES if m not in TRUSTED]

# Questions, data, what is public of them, and who answers: they hand out nothing but answers.
KINDS = (Operator, PrivateData, Facts, Program, CheckedProgram, ChargedCurator, Warning)

GIVEN_OUT = {
    "what is declared or planned: values of public numbers": (
        *("private.data.boxes.Box", "private.data.text_file.TextFile", "private.noise.matrix.MatrixNoise"),
        "fields.operators.interactions.InteractionUnits",
        *("mixtures.operators.block_operators.BlockClusters", "linked.operators.linked_schema.LinkedSchema"),
        *("linked.operators.wide_table.WideTable", "linked.operators.wide_table.wide_table"),
        "communities.operators.sparse_minus_constant.SparseMinusConstant",
    ),
    "conversations with a curator, which pays for each of their answers": (
        "private.operators.regression_path.RegressionPath",
        "linked.operators.linked_tables.table_of_kinds",
    ),
    "checks of arguments": (
        *("private.data.data_base.require_data_and_budget", "private.data.table.require_table_and_budget"),
        *(f"private.data.table_facts.{name}" for name in ("checked_scopes", "require_scopes")),
        *(f"private.operators.vector_operators.checked_{name}" for name in ("box", "norm", "point")),
        *("mixtures.operators.block_operators.require_clusters", "sequences.operators.sequences.checked_schema"),
    ),
    "noise, scales and sizes of what may be asked, from public numbers": (
        *(f"private.operators.solutions.{name}" for name in ("matrix_plan", "noise_plan", "part_of")),
        *("private.operators.operator_base.planned_noise", "private.operators.tables.rehearsed_tables"),
        "private.operators.column_operators.category_histogram",
        "private.operators.regression_path.vertex_scale",
        *("private.operators.regressions.selection_weight", "fields.operators.vote_operators.agreement_test"),
        *("fields.operators.parities.family_size", "sequences.operators.sequences.user_additions"),
        "mixtures.operators.block_operators.stable_histogram",
        *(f"mixtures.operators.cluster_operators.{name}" for name in ("cluster_noise", "moment_noise", "moment_unit")),
        "mixtures.operators.cluster_operators.power_of_two",
    ),
    "functions of what was released, or of a block that its vote is for": (
        "private.operators.column_operators.category_labels",
        *(f"gaussian.operators.log_determinant.{name}" for name in ("duality_gap", "into_cap")),
        "private.operators.regressions.feature_rows",
        "mixtures.operators.batched_membership.batched_membership",
        "mixtures.operators.kmeans.batched_kmeans",
    ),
    "names of columns and what they are declared to hold, which is public": (
        *(f"private.data.columns.{name}" for name in ("in_their_order", "text_columns")),
        "private.reading.frames.column_names",
    ),
}
LISTED = {f"pgmpy_dp.{name}" for names in GIVEN_OUT.values() for name in names}

# Who applies what was released to further records, which are public, reads these.
OF_PUBLIC_RECORDS = {
    "private.reading.frames.encode": "plotting.errors",
    "private.reading.frames.encode_and_match": "models.markov_network",
    "private.reading.frames.n_rows": "models.prediction",
    "private.reading.frames.read_keys": "models.prediction",
    "private.reading.frames.read_numbers": "gaussian.private_graphical_lasso",
    "sequences.operators.sequences.read_sequences": "sequences.private_markov_chain",
}
# An audit puts its own numbers in the place of exact ones, and of noise.
OF_AUDITS = {f"pgmpy_dp.private.data.{name}" for name in ("columns.mark_row", "units.fixed_key")}
SEEN_BY_AUDITS = tuple(f"pgmpy_dp.private.curator.{name}" for name in ("mechanism", "observer"))

IMPORTED_WHOLE = {("pgmpy_dp.estimators.__init__", "pgmpy_dp")}  # to list what is there
IMPORTING_LATE = {"pgmpy_dp.front_door", "pgmpy_dp.estimators.__init__", "pgmpy_dp.auditing.operator_list"}


def is_module(name: str) -> bool:
    return name in MODULES or f"{name}.__init__" in MODULES


@functools.cache
def meant(name: str) -> tuple[str, object]:
    """What an imported name of the package is, and by which it was defined: a module may have imported it itself."""
    module, _, own = name.rpartition(".")
    if is_module(name) or not is_module(module) or not within(name, "pgmpy_dp"):
        return name, None
    value = getattr(import_module(module.removesuffix(".__init__")), own, None)
    if isinstance(value, types.ModuleType):
        return value.__name__, None
    defined = isinstance(value, type | types.FunctionType)
    return f"{value.__module__}.{value.__qualname__}" if defined else name, value


def is_public_fact(value: object) -> bool:
    """A number or a text, or a tuple of them: constants; and the types of arguments."""
    if isinstance(value, tuple):
        return all(map(is_public_fact, value))
    return isinstance(value, int | float | str | types.GenericAlias)


def gives_out(importer: str, name: str) -> bool:
    """Whether the boundary gives a name to a module outside."""
    home, value = meant(name)
    if home in ("<computed>", "importlib", "importlib.import_module"):
        return importer in IMPORTING_LATE
    if is_module(home):  # with all that it has imported; those of conversions of costs have no records
        whole = any(within(room, home) for room in ROOMS) or home in TRUSTED or f"{home}.__init__" in TRUSTED
        return not whole or home == "pgmpy_dp.private.accounting" or (importer, home) in IMPORTED_WHOLE
    if home.endswith(".*"):
        return home[:-2] not in TRUSTED
    audits = within(importer, "pgmpy_dp.auditing")
    if not within(home, *ROOMS):
        return home != "pgmpy_dp.private.sensitive.Sensitive" and (audits or not within(home, *SEEN_BY_AUDITS))
    if inspect.isclass(value) and {*KINDS, *([Mechanism] if audits else [])} & set(value.__mro__):
        return True
    given = home in LISTED or (audits and home in OF_AUDITS) or is_public_fact(value)
    return given or importer == f"pgmpy_dp.{OF_PUBLIC_RECORDS.get(home.removeprefix('pgmpy_dp.'))}"


def reaching_in(modules) -> dict[str, list[str]]:
    bad = {m: sorted(i for i in imports(m) if not gives_out(m, i)) for m in modules}
    return {name: found for name, found in bad.items() if found}


def test_files_outside_the_boundary_import_what_it_gives_out_and_nothing_else():
    assert len(OUTSIDE) > 250
    assert reaching_in(OUTSIDE) == {}


def test_the_lists_have_nothing_that_nobody_imports():
    imported = {meant(i)[0] for m in OUTSIDE for i in imports(m)}
    needed = LISTED | OF_AUDITS | {f"pgmpy_dp.{name}" for name in OF_PUBLIC_RECORDS}
    assert needed <= imported
    values = [meant(home)[1] for home in needed]
    assert not [value for value in values if isinstance(value, type) and set(KINDS) & set(value.__mro__)]
    assert not [value for value in values if is_public_fact(value)]


COUNT = itertools.count()


def made_up(source: str, folder: Path, monkeypatch, part: str = "models") -> dict[str, list[str]]:
    """What a module of this text, somewhere in the package, would be refused."""
    name = f"pgmpy_dp.{part}.made_up_{next(COUNT)}"
    path = folder / f"{name}.py"
    path.write_text(source, encoding="utf-8")
    monkeypatch.setitem(MODULES, name, path)
    return reaching_in([name]).get(name, [])


# Most of them were forbidden by name; those of the last two lines were not, and gave exact counts away.
EXACT = (
    *("Sensitive", "contingency_tables", "chain_tables", "chain_events"),
    *("shared_codes", "interaction_sums", "pair_counts"),
    *("parity_sums", "parity_sums_and_count"),
    *("adjacency_matrix", "edge_count", "neighbour_sums"),
    *("certified_solution", "certificates", "on_grid", "with_noise"),
    *("vector_rows", "unit_rows", "second_moments", "centered_sums", "unit_count"),
    *("vector_blocks", "clipped_cluster_sums", "marked_cells"),
    *("column_marks", "number_counts", "record_count"),
    *("open_source", "source_of", "TextSource", "ParquetSource", "CodedRecords", "read_records"),
    *("UnitRecords", "Owners", "table_units"),
    *("producers", "records", "sources", "text_source", "owners", "arrow_cells"),
    *("samplers", "additive", "bulk", "sign_sampling", "contingency", "contributions", "matrix", "moments"),
    *("matched_records", "joined_tables", "misfit_scores", "cell_counts", "mean_distances", "measured_errors"),
    *("drawn_counts", "magnitudes"),
)


def defined(name: str) -> list[str]:
    """Every place of the boundary that has a module, a function or a class of this name."""
    places = [m for m in TRUSTED if m.split(".")[-1] == name]
    for module in TRUSTED:
        here = [getattr(node, "name", None) for node in parsed(MODULES[module]).body]
        places += [f"{module}.{name}"] if name in here else []
    return places


@pytest.mark.parametrize("name", EXACT)
def test_what_gives_exact_numbers_is_refused(name, tmp_path, monkeypatch):
    places = defined(name)
    assert places
    for place in places:
        module = place.rpartition(".")[0]
        assert made_up(f"from {module} import {name}", tmp_path, monkeypatch) == [place]
        assert made_up(f"def f():\n    from {module} import {name} as g", tmp_path, monkeypatch, "tables") == [place]


MATCHED = "pgmpy_dp.private.operators.record_matches"


@pytest.mark.parametrize(
    ("source", "refused"),
    [
        ("from pgmpy_dp.private.data import table\ntable.contingency_tables", "pgmpy_dp.private.data.table"),
        ("import pgmpy_dp.private.data.table as t", "pgmpy_dp.private.data.table"),
        ("from ..private.data import table", "pgmpy_dp.private.data.table"),
        ("from pgmpy_dp.private import data", "pgmpy_dp.private.data"),
        ("from pgmpy_dp import private", "pgmpy_dp.private"),
        ("import pgmpy_dp\npgmpy_dp.private.data.table.joined_tables", "pgmpy_dp"),
        ("import pgmpy_dp.learning.options", "pgmpy_dp"),
        ("from pgmpy_dp import mixtures", "pgmpy_dp.mixtures"),
        ("from pgmpy_dp.mixtures import operators", "pgmpy_dp.mixtures.operators"),
        # What a module of the boundary has imported itself is what it was.
        ("from pgmpy_dp.private.curator.observer import samplers", "pgmpy_dp.private.curator.observer.samplers"),
        ("from pgmpy_dp.private.curator import observer", "pgmpy_dp.private.curator.observer"),
        ("from pgmpy_dp.private.curator.observer import observed", "pgmpy_dp.private.curator.observer.observed"),
        (f"from {MATCHED} import matched_records", f"{MATCHED}.matched_records"),
        (f"from {MATCHED} import *", f"{MATCHED}.*"),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from pgmpy_dp.private.noise import bulk",)
        + ("pgmpy_dp.private.noise.bulk",),
        ("from importlib import import_module as f", "importlib.import_module"),
        ("import importlib", "importlib"),
        (f"import_module('{MATCHED}')", MATCHED),
        ("__import__('.contingency', 'pgmpy_dp.private.data')", "<computed>"),
        (f"_HOME = {{'matched_records': '{MATCHED}'}}", f"{MATCHED}.matched_records"),
        ("from pgmpy_dp.private.reading.frames import encode", "pgmpy_dp.private.reading.frames.encode"),
    ],
)
def test_no_way_around(source, refused, tmp_path, monkeypatch):
    assert refused in made_up(source, tmp_path, monkeypatch)


def test_what_is_given_out(tmp_path, monkeypatch):
    source = (
        "from pgmpy_dp import Budget, PrivateTable, Schema\nfrom pgmpy_dp.private.operators.tables import Tables\n"
        "from pgmpy_dp.private.curator.table_curator import TableCurator\nfrom pgmpy_dp.private import accounting\n"
        "from pgmpy_dp.private.data.moments import GRID\nfrom pgmpy_dp.learning import options\n"
        "from importlib.metadata import version\nHOME = {'Tables': 'pgmpy_dp.private.operators.tables'}\n"
    )
    assert made_up(source, tmp_path, monkeypatch) == []


def test_no_guarantee_rests_on_an_assertion():
    """`python -O` leaves them out. What is left tells the type checker that something is not None."""
    for name in TRUSTED:
        for node in ast.walk(parsed(MODULES[name])):
            if isinstance(node, ast.Assert):
                told = isinstance(node.test, ast.Compare) and isinstance(node.test.ops[0], ast.IsNot)
                assert told and ast.unparse(node.test.comparators[0]) == "None", f"{name}: {ast.unparse(node)}"


def test_no_pickle_and_no_computed_imports_in_the_boundary():
    assert not offenders(TRUSTED, lambda i: within(i, "pickle", "dill", "joblib", "<computed>"))


def test_init_files_of_the_boundary_have_no_logic():
    for name in TRUSTED:
        if MODULES[name].name == "__init__.py":
            body = parsed(MODULES[name]).body
            assert all(isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) for node in body)


def test_the_walk_sees_every_form_of_import(tmp_path, monkeypatch):
    source = tmp_path / "module.py"
    source.write_text(
        "import a.b\nfrom c import d\nfrom ..schema import e\nfrom . import f\n"
        "def g():\n    import h\n    __import__('i')\n    importlib.import_module('j')\n    __import__(k)\n"
    )
    monkeypatch.setitem(MODULES, "pgmpy_dp.models.module", source)
    assert imports("pgmpy_dp.models.module") == {
        *("a", "a.b", "c.d", "pgmpy_dp.schema.e", "pgmpy_dp.models.f", "h", "i", "j", "<computed>")
    }


def test_the_name_of_a_module_says_which_one_it_is():
    """One name, one module; commands alone have the names that their users type."""
    paths = [path for path in MODULES.values() if path.name != "__init__.py"]
    twins = {path.relative_to(PACKAGE) for path in paths if [p.name for p in paths].count(path.name) > 1}
    assert {path for path in twins if path.parts[0] == "cli"} == {Path("cli", "ledger.py")}
    assert len(twins) == 2 and Path("private", "ledger.py") in twins


def test_checks_and_budgets_are_imported_from_where_they_are_defined():
    homes = {"checked_integer": "checks", "checked_number": "checks", "Budget": "private.budget"}
    assert not offenders(
        MODULES,
        lambda i: (
            i.split(".")[-1] in homes
            and i.startswith("pgmpy_dp.")
            and i.count(".") > 1
            and i != f"pgmpy_dp.{homes[i.split('.')[-1]]}.{i.split('.')[-1]}"
        ),
    )


def test_no_modules_import_each_other():
    assert cycles() == [] and cycles(late=True) == []


def test_modules_are_short():
    texts = {name: path.read_text(encoding="utf-8") for name, path in MODULES.items()}
    assert [name for name, text in texts.items() if text.count("\n") > 400 and code_lines(text) > 400] == []


def test_who_learns_a_network_takes_no_other_subject():
    found = {name.split(".")[1] for name in reached() if "." in name}
    assert LEARN in reached() and not found & ({*SUBJECTS, "auditing", "cli", "estimators"} - {"tables"})


def test_lines_are_counted_once_each_by_what_they_are_for():
    source = (
        '"""Text."""\nimport a\n__all__ = ["f"]\n\n\n@d\ndef f(\n    x,\n):\n    """Text."""\n    if x:\n'
        "        raise ValueError\n    return 1\n\n\nclass C:\n    x: int = 1\n"
    )
    kinds = {"imports": 2, "signatures": 4, "checks": 2, "declarations": 2, "algorithm": 1}
    assert by_kind(source) == kinds and sum(kinds.values()) == code_lines(source)


def test_lists_of_exports_are_for_packages():
    """What a module exports is what it defines without an underscore; `metrics` is a front door."""
    listed = {name for name, path in MODULES.items() if "__all__ = " in path.read_text(encoding="utf-8")}
    assert {name for name in listed if MODULES[name].name != "__init__.py"} == {"pgmpy_dp.metrics"}
