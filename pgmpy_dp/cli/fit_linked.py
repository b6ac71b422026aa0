"""``pgmpy-dp fit --parents --children``: two tables that belong together, or one with several rows a person."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pgmpy_dp.cli import column_options, option
from pgmpy_dp.cli.application import ask_for, note, progress, show
from pgmpy_dp.cli.arguments import as_written
from pgmpy_dp.cli.files import load_linked_schema, require_posterior, require_writable, save_with_draws
from pgmpy_dp.cli.ledger import kept, marked, open_account, show_charged

if TYPE_CHECKING:
    from pgmpy_dp.linked import LinkedSchema, PrivateLinkedTables
    from pgmpy_dp.private.budget import Budget
    from pgmpy_dp.private.sensitive import Release


def fit_linked(
    tables: option.LinkedOptions,
    described: column_options.ColumnOptions,
    spent: option.BudgetOptions,
    protected: option.ProtectionOptions,
    account: option.LedgerOptions,
    text: option.TextOptions,
    out: Path,
    release: Path | None,
    draws: int,
    overwrite: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Learn a model of linked tables; everything is checked before anything is spent, as `fit` does."""
    from pgmpy_dp.linked import PrivateLinkedNetwork

    budget = spent.budget()
    files = (tables.parents, tables.children, described.schema, account.ledger)
    require_writable(overwrite, files, out=out, release=release)
    learner = PrivateLinkedNetwork(budget.epsilon, budget.delta, budget.rho, adjacency=str(protected.adjacency))
    require_posterior(learner, draws)
    private = private_tables(tables, described, budget, protected, account, text)
    with marked(private.ledger):
        with kept(release or out.with_suffix(".release.npz"), "pgmpy-dp refit", learner), progress(quiet):
            learner.fit(private)
            if release is not None:
                learner.release_.save(release)
            save_with_draws(learner, out, draws)
        document, found = _summary(learner, out, release)
        document["budget"] = budget.guarantee.to_dict()
        show_charged(document, found, as_json, account.ledger, private.ledger)
        for warning in document["warnings"]:
            note(warning, quiet)
        if account.ledger is None:
            note("costs of further fits to the same records add up; --ledger FILE keeps count", quiet)


def private_tables(
    tables: option.LinkedOptions,
    described: column_options.ColumnOptions,
    budget: Budget,
    protected: option.ProtectionOptions,
    account: option.LedgerOptions,
    text: option.TextOptions,
    *,
    fit: bool = True,
) -> PrivateLinkedTables:
    """Both tables behind the ledger that options name; `fit` as `open_account` takes it."""
    from pgmpy_dp.linked import PrivateLinkedTables

    if tables.children is None:
        ask_for("--children", None, "--parents was passed; pass the table of their children too")
    if protected.rows_per_unit != "1":
        ask_for("--rows-per-unit", protected.rows_per_unit, "all children of a parent count together; leave it out")
    schema = _schema(tables, described, protected.unit)
    parents = None if tables.parents is None else as_written(tables.parents, text, "--parents")
    children = as_written(tables.children, text, "--children")
    charged = open_account(account, budget, protected.adjacency, fit=fit)
    return PrivateLinkedTables(
        parents, children, schema, adjacency=str(protected.adjacency), ledger=charged, n_records=protected.n_records
    )


def refit_linked(tables: Release, out: Path, draws: int, quiet: bool, as_json: bool) -> None:
    """Learn a model of linked tables again from their noisy tables."""
    from pgmpy_dp.linked import PrivateLinkedNetwork

    learner = PrivateLinkedNetwork(adjacency=str(tables.adjacency))
    require_posterior(learner, draws)
    with progress(quiet):
        learner.fit_release(tables)
        save_with_draws(learner, out, draws)
    document, text = _summary(learner, out, None)
    show(document, text, as_json)
    for warning in document["warnings"]:
        note(warning, quiet)


def _schema(tables: option.LinkedOptions, described: column_options.ColumnOptions, unit: str | None) -> LinkedSchema:
    """A file of a linked schema; or, of one file and its unit, a schema of its columns."""
    from pgmpy_dp.linked.private_linked_network import schema_of_one_file

    if unit is not None:
        if tables.parents is not None:
            ask_for("--unit", unit, "the schema of linked tables names the key; leave it out")
        return schema_of_one_file(column_options.described(described), unit)
    if described.schema is None:
        ask_for("--schema", None, "pass JSON of a LinkedSchema; for one file with several rows a person --unit too")
    for name, value in {**vars(described.declared), **vars(described.reading)}.items():
        if value:
            ask_for(f"--{name}", value, "a schema was passed too; write it into that file")
    for name in ("other", "texts", "impossible"):
        if getattr(described, name):
            ask_for(f"--{name}", getattr(described, name), "a schema was passed too; write it into that file")
    schema = load_linked_schema(described.schema)
    if schema.parent is None and tables.parents is not None:
        ask_for("--parents", str(tables.parents), "the schema has no columns of parents; leave it out")
    if schema.parent is not None and tables.parents is None:
        ask_for("--parents", None, "the schema has columns of parents; pass their table")
    return schema


def _summary(learner: Any, out: Path, release: Path | None) -> tuple[dict[str, Any], str]:
    """What a fit tells, all of it released with noise or public."""
    from pgmpy_dp.learning.few_records import dropped_records, few_records, large_delta
    from pgmpy_dp.linked.linked_model import told_of_a_child, words_of_a_child
    from pgmpy_dp.schema import encode_label

    model, privacy = learner.model_, learner.privacy_
    number, deviation = float(learner.n_records_), float(learner.n_records_sd_)
    few = few_records(number, deviation)
    dropped = dropped_records(learner.release_.n_records or 0.0, number, deviation)
    (parent, child), (of_parents, of_children) = model.linked.names, model.columns
    document = {
        "model": str(out),
        "release": None if release is None else str(release),
        **told_of_a_child(privacy),
        "mechanism": privacy.mechanism,
        "key": encode_label(model.linked.key),
        "columns": {parent: list(map(encode_label, of_parents)), child: list(map(encode_label, of_children))},
        "n_records": number,
        "n_records_sd": deviation,
        "warnings": [said for said in (few or dropped, large_delta(privacy.delta, number)) if said is not None],
    }
    lines = [
        f"Learned {parent} with {len(of_parents)} and {child} with {len(of_children)} columns: {privacy}",
        f"One {child} alone, added, removed or changed: {words_of_a_child(privacy)}",
        f"Rows of {parent} inside the schema: about {number:,.0f} (standard deviation {deviation:,.0f})"
        if deviation
        else f"Rows of {parent}: {number:,.0f}, as declared",
        f"Wrote {out}" + ("" if release is None else f" and {release}"),
    ]
    return document, "\n".join(lines)
