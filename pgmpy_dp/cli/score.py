"""``pgmpy-dp score``: how far a model is from the records, for a part of their budget."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from pgmpy_dp.checks import checked_level
from pgmpy_dp.cli import option
from pgmpy_dp.cli.application import app, ask_for, command, note, note_reading, show
from pgmpy_dp.cli.arguments import as_written, parsed_workload, protection
from pgmpy_dp.cli.files import holds_linked_model, load_model, load_schema, require_writable
from pgmpy_dp.cli.ledger import kept, marked, note_uncounted, open_account, show_charged

DataArgument = Annotated[
    Path | None,
    typer.Argument(metavar="[DATA]", help="The private records. With --n in their place, how precise scores would be."),
]
AssumedOption = Annotated[
    int | None, typer.Option("--n", help="Without DATA, an assumed number of records.", min=1, max=10**15)
]
SchemaOption = Annotated[
    Path | None, typer.Option("--schema", help="How the records are read. Default: as the model's were.")
]
WorkloadOption = Annotated[
    str | None,
    typer.Option("--workload", help='What is compared, e.g. "age,job=2; age,sex"; default: pairs and triples.'),
]
ReleaseOption = Annotated[
    Path | None, typer.Option("--release", help="Keep the noisy scores too (.npz), for report --score.")
]


@command(
    app,
    "score",
    "how far a model is from the records, for a small budget",
    "score model.npz records.csv --epsilon 0.1 --ledger ledger.json",
    "score model.npz records.csv --epsilon 0.1 --ledger ledger.json --release score.npz",
    'score model.npz records.csv --epsilon 0.1 --workload "age,job=2; age,sex" --each',
    "score model.npz --epsilon 0.1 --n 20000",
    learns=True,
)
def score(
    *,
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Model that fit wrote.")],
    data: DataArgument = None,
    n: AssumedOption = None,
    schema: SchemaOption = None,
    workload: WorkloadOption = None,
    each: Annotated[bool, typer.Option("--each", help="Score every set of variables by itself too.")] = False,
    worst: Annotated[
        bool, typer.Option(help="Find the set of variables that is about the furthest off, and score it.")
    ] = True,
    level: Annotated[float, typer.Option("--level", help="Of intervals.")] = 0.9,
    spent: option.BudgetOptions,
    protected: option.ProtectionOptions,
    account: option.LedgerOptions,
    release: ReleaseOption = None,
    text: option.TextOptions,
    overwrite: option.Overwrite = False,
    quiet: option.Quiet = False,
    as_json: option.Json = False,
) -> None:
    """Say how far a model is from the records, in total variation, with noise and intervals.

    To compare a model with its records without noise gives away what the model's guarantee protects. So this spends its
    --epsilon, which adds up with what the fit spent. Pass the ledger of these records.

    The distance is to these records, which are one sample. "Sampling alone" is the distance of such a sample from the
    very model that it was drawn from. To be nearer than that is nothing to aim at.
    """
    from pgmpy_dp.models.model_score import score_model
    from pgmpy_dp.models.scored_model import schema_of_model
    from pgmpy_dp.private.data.table import PrivateTable
    from pgmpy_dp.verbs import in_order_of, plan

    budget = spent.budget()
    require_writable(overwrite, (model, data, schema, account.ledger), release=release)
    if holds_linked_model(model):
        why = "its rows are families, and scores compare single rows with records"
        ask_for("MODEL", str(model), f"{why}; fit or refit it with --draws, and query says how far answers may be off")
    network = load_model(model)
    compared: dict[str, Any] = {"workload": parsed_workload(network.nodes, workload, 1), "worst": worst, "each": each}
    checked_level(level)
    whose = protection(protected)
    if data is None:
        if n is None:
            ask_for("DATA", None, "pass the file of records; or --n 20000 to see what scores would tell of so many")
        how = {"level": level, "adjacency": str(protected.adjacency), "rows_per_unit": whose["rows_per_unit"]}
        planned = plan(network, budget, n, **compared, **how)
        show(planned.to_dict(), str(planned), as_json)
        return
    if n is not None:
        ask_for("--n", str(n), "it is for a preview, without DATA; pass --n-records where their number is public")
    public_schema = schema_of_model(network, None if schema is None else load_schema(schema))
    records = as_written(data, text)
    public_schema = in_order_of(records, public_schema)
    charged = open_account(account, budget, protected.adjacency, fit=False)
    table = PrivateTable(records, public_schema, ledger=charged, **whose)
    note_reading(quiet, data)
    with marked(table.ledger):
        with kept(release or model.with_suffix(".score.npz"), "pgmpy-dp report --score"):
            scores = score_model(network, table, budget, level=level, **compared)
            if release is not None:
                scores.release_.save(release)
        document = scores.to_dict() | {"release": None if release is None else str(release)}
        show_charged(document, str(scores), as_json, account.ledger, table.ledger)
        for warning in document["warnings"]:
            note(warning, quiet)
        if account.ledger is None:
            note_uncounted(quiet)
