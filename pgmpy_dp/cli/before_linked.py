"""What ``pgmpy-dp check``, ``plan`` and ``discover`` do with linked tables, before a model is learned from them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pgmpy_dp.cli import column_options, option
from pgmpy_dp.cli.application import show
from pgmpy_dp.cli.files import load_linked_schema
from pgmpy_dp.cli.fit_linked import private_tables
from pgmpy_dp.cli.ledger import marked, note_uncounted, show_charged

if TYPE_CHECKING:
    from pgmpy_dp.linked.family_check import FamilyCheck

__all__ = ["check_linked_tables", "plan_linked_tables"]


def check_linked_tables(
    tables: option.LinkedOptions,
    described: column_options.ColumnOptions,
    spent: option.BudgetOptions,
    protected: option.ProtectionOptions,
    account: option.LedgerOptions,
    text: option.TextOptions,
    quiet: bool,
    as_json: bool,
) -> bool:
    """Say what two tables hold and how much of it their schema declares; whether a fit would have hardly anything."""
    from pgmpy_dp.linked.family_check import check_linked

    budget = spent.budget()
    private = private_tables(tables, described, budget, protected, account, text, fit=False)
    with marked(private.ledger):
        found = check_linked(private, None, budget)
        show_charged(_checked(found), str(found), as_json, account.ledger, private.ledger)
        if account.ledger is None:
            note_uncounted(quiet)
    return found.failed


def plan_linked_tables(
    schema: Path, n: int, spent: option.BudgetOptions, adjacency: option.TableAdjacency, as_json: bool
) -> None:
    """Show what a budget buys of linked tables, whom it protects, and that large families are top-coded."""
    from pgmpy_dp.linked.linked_plan import plan_linked

    budget = spent.budget()
    found = plan_linked(load_linked_schema(schema), budget, n, adjacency=str(adjacency))
    document = {
        "budget": budget.guarantee.to_dict(),
        "guarantee": found.privacy.guarantee.to_dict(),
        "guarantee_of_a_child": found.guarantee_of_a_child.to_dict(),
        "adjacency": str(adjacency),
        "n": n,
        "most": found.linked.most,
        "siblings": found.siblings,
        "memory_bytes": found.size.memory_bytes,
        "seconds": found.size.seconds,
        "tables": found.table.reset_index().to_dict("records"),
    }
    show(document, str(found), as_json)


def _checked(found: FamilyCheck) -> dict[str, Any]:
    from pgmpy_dp.linked.linked_model import guarantee_of_a_child
    from pgmpy_dp.schema import encode_label

    return {
        "key": encode_label(found.linked.key),
        "kinds": {str(kind): float(count) for kind, count in found.kinds.items()},
        "sd": found.sd,
        "n_units": found.n_units,
        "n_matching": found.n_matching,
        "verdict": found.verdict,
        "columns": [
            {"table": table, "variable": encode_label(name), **dict(zip(found.table.columns, values, strict=True))}
            for (table, name), *values in found.table.itertuples()
        ],
        "failed": found.failed,
        "guarantee": found.privacy_.guarantee.to_dict(),
        "guarantee_of_a_child": guarantee_of_a_child(found.privacy_).to_dict(),
        "adjacency": str(found.privacy_.adjacency),
    }
