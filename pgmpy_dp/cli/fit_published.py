"""``pgmpy-dp fit --publish-if``: a model that is written only if it meets declared criteria."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from pgmpy_dp.cli import option
from pgmpy_dp.cli.application import CHECK_FAILED, ask_for, note, progress, show
from pgmpy_dp.cli.files import save_with_draws
from pgmpy_dp.cli.ledger import kept, marked, open_account, show_charged

if TYPE_CHECKING:
    from pgmpy_dp.private.budget import Budget
    from pgmpy_dp.schema import Schema

NO = "No: the criteria are not met, in a test with noise. Nothing is published, and nothing else is told."


def require_asked_alone(asked: option.PublishOptions) -> None:
    """Refuse options of a test where there is none."""
    if asked.publish_if is None and (asked.again or asked.test_share != option.TEST_SHARE):
        name, given = ("--again", "yes") if asked.again else ("--test-share", str(asked.test_share))
        ask_for(name, given, "it is for --publish-if")


def fit_if(
    records: Any,
    schema: Schema,
    budget: Budget,
    asked: option.PublishOptions,
    account: option.LedgerOptions,
    summary: Callable[[Any, Path, Path | None], tuple[dict[str, Any], str]],
    options: dict[str, Any],
    out: Path,
    release: Path | None,
    draws: int,
    quiet: bool,
    as_json: bool,
) -> None:
    """Learn, test, and write what a fit writes, or say "no" and exit with 1."""
    from pgmpy_dp.tables.publishing.publish_if import publish_if

    if account.ledger is None:
        ask_for("--ledger", None, "it remembers that a test was tried; pass a file, which is made if it is new")
    charged: Any = open_account(account, budget, options["adjacency"])
    with marked(charged):
        decision = publish_if(
            *(records, budget, asked.publish_if, schema),
            ledger=charged,
            test_share=asked.test_share,
            again=asked.again,
            **options,
        )
        if decision:
            learner: Any = decision.learner
            with kept(release or out.with_suffix(".release.npz"), "pgmpy-dp refit", learner), progress(quiet):
                if release is not None:
                    learner.release_.save(release)
                save_with_draws(learner, out, draws)
            document, found = summary(learner, out, release)
            document |= {"budget": budget.guarantee.to_dict(), "published": True, "tests": _rows(decision.tests)}
            lines = [f"  {row['criterion']}: {row['found']:.4g}, with noise" for row in document["tests"]]
            found = "\n".join([found, "Published because all criteria are met:", *lines])
            show_charged(document, found, as_json, account.ledger, charged)
            for warning in document["warnings"]:
                note(warning, quiet)
            return
    show({"published": False}, NO, as_json)
    raise typer.Exit(CHECK_FAILED)


def _rows(tests: Any) -> list[dict[str, Any]]:
    return [
        {"criterion": row.criterion, "bound": float(row.bound), "found": float(row.found)} for row in tests.itertuples()
    ]


def margin_lines(
    asked: option.PublishOptions, schema: Schema, budget: Budget, n: int, rows_per_unit: int | str
) -> tuple[list[dict[str, Any]], list[str]]:
    """What a plan says of how sharp the test is."""
    from pgmpy_dp.tables.publishing.noisy_test import CHANCE
    from pgmpy_dp.tables.publishing.publish_if import preview_publish_if

    found = preview_publish_if(
        asked.publish_if, n, budget, schema, test_share=asked.test_share, rows_per_unit=rows_per_unit
    )
    rows = [{name: getattr(row, name) for name in found.columns} for row in found.itertuples()]
    lines = [
        f"Published only if, by a test that takes {100 * asked.test_share:g} % of the budget (wrong with a probability "
        f"below {CHANCE:g} where an error is further from its bound than the margin):",
        *(f"  {row['criterion']}; margin {row['margin']:.3g}" for row in rows),
    ]
    return rows, lines
