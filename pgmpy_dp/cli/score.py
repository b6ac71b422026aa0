"""``pgmpy-dp score``: how far a model is from the records, for a part of their budget."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from pgmpy_dp.cli import option
from pgmpy_dp.cli.application import app, ask_for, command, note, show
from pgmpy_dp.cli.arguments import as_written, given_workload, whose
from pgmpy_dp.cli.files import load_model, load_schema, require_writable
from pgmpy_dp.cli.ledger import kept, marked, open_account, show_charged

__all__ = ["score"]


@command(
    app,
    "score",
    "how far a model is from the records, for a small budget",
    "score model.npz records.csv --epsilon 0.1 --ledger ledger.json",
    "score model.npz records.csv --epsilon 0.1 --ledger ledger.json --release score.npz",
    'score model.npz records.csv --epsilon 0.1 --workload "age,job=2; age,sex" --each',
    "score model.npz --epsilon 0.1 --n 20000",
)
def score(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Model that fit wrote.")],
    data: Annotated[
        Path | None,
        typer.Argument(
            metavar="[DATA]", help="The private records. With --n in their place, how precise scores would be."
        ),
    ] = None,
    n: Annotated[
        int | None, typer.Option("--n", help="Without DATA, an assumed number of records.", min=1, max=10**15)
    ] = None,
    schema: Annotated[
        Path | None, typer.Option("--schema", help="How the records are read. Default: as the model's were.")
    ] = None,
    workload: Annotated[
        str | None,
        typer.Option("--workload", help='What is compared, e.g. "age,job=2; age,sex"; default: pairs and triples.'),
    ] = None,
    each: Annotated[bool, typer.Option("--each", help="Score every set of variables by itself too.")] = False,
    worst: Annotated[
        bool, typer.Option(help="Find the set of variables that is about the furthest off, and score it.")
    ] = True,
    level: Annotated[float, typer.Option("--level", help="Of intervals.")] = 0.9,
    epsilon: option.Epsilon = None,
    delta: option.Delta = 0.0,
    rho: option.Rho = None,
    adjacency: option.Adjacency = option.TableAdjacency.ADD_REMOVE,
    n_records: option.NRecords = None,
    unit: option.Unit = None,
    rows_per_unit: option.RowsPerUnit = "1",
    ledger: option.Ledger = None,
    budget_epsilon: option.BudgetEpsilon = None,
    budget_delta: option.BudgetDelta = 0.0,
    budget_rho: option.BudgetRho = None,
    release: Annotated[
        Path | None, typer.Option("--release", help="Keep the noisy scores too (.npz), for report --score.")
    ] = None,
    delimiter: option.Delimiter = None,
    encoding: option.Encoding = None,
    decimal: option.Decimal = None,
    thousands: option.Thousands = None,
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
    from pgmpy_dp.estimators.model_score import score_model
    from pgmpy_dp.estimators.scored_model import schema_of_model
    from pgmpy_dp.private.budget import Budget
    from pgmpy_dp.private.data.columns import in_their_order
    from pgmpy_dp.private.data.table import PrivateTable

    budget = Budget(epsilon=epsilon, delta=delta, rho=rho)
    require_writable(overwrite, (model, data, schema, ledger), release=release)
    network = load_model(model)
    asked: dict[str, Any] = {"workload": given_workload(network.nodes, workload, 1), "worst": worst, "each": each}
    if not 0 < level < 1:
        ask_for("--level", str(level), "write a number between 0 and 1, for example 0.9")
    who = whose(unit, rows_per_unit)
    if data is None:
        _preview(network, n, budget, level, asked, str(adjacency), who["rows_per_unit"], as_json)
        return
    if n is not None:
        ask_for("--n", str(n), "it is for a preview, without DATA; pass --n-records where their number is public")
    public_schema = load_schema(schema) if schema is not None else schema_of_model(network)
    records = as_written(data, delimiter, encoding, decimal, thousands)
    public_schema = public_schema.subset(in_their_order(records, public_schema))
    account = open_account(ledger, budget, (budget_epsilon, budget_delta, budget_rho), adjacency, fit=False)
    table = PrivateTable(records, public_schema, adjacency=adjacency, ledger=account, n_records=n_records, **who)
    with marked(table.ledger):
        with kept(release or model.with_suffix(".score.npz"), "pgmpy-dp report --score"):
            found = score_model(network, table, budget, level=level, **asked)
            if release is not None:
                found.release_.save(release)
        document = _document(found) | {"release": None if release is None else str(release)}
        show_charged(document, str(found), as_json, ledger, table.ledger)
        for warning in document["warnings"]:
            note(warning, quiet)
        if ledger is None:
            note("what this spent adds up with what fits to the same records spend; --ledger FILE keeps count", quiet)


def _document(found: Any) -> dict[str, Any]:
    from pgmpy_dp.estimators.few_records import few_records
    from pgmpy_dp.schema import encode_label

    few = few_records(found.n_records, found.n_records_sd, "pgmpy-dp check")
    each = [] if found.each is None else found.each.itertuples()
    return {
        "level": found.level,
        "scores": [{"score": name, **_row(row)} for name, row in found.table.iterrows()],
        "each": [
            {"variables": [encode_label(name) for name in row.Index], **_row(row._asdict(), "distance")} for row in each
        ],
        "worst": None if found.worst is None else [encode_label(name) for name in found.worst],
        "n_records": found.n_records,
        "n_records_sd": found.n_records_sd,
        "guarantee": found.privacy_.guarantee.to_dict(),
        "adjacency": str(found.privacy_.adjacency),
        "warnings": [] if few is None else [few],
    }


def _row(row: Any, *first: str) -> dict[str, Any]:
    names = first or ("tables", "distance")
    told = {name: row[name] for name in (*names, "lower", "upper", "sampling")}
    return {name: int(value) if name == "tables" else float(value) for name, value in told.items()}


def _preview(
    network: Any, n: int | None, budget: Any, level: float, asked: Any, adjacency: str, rows: Any, as_json: bool
) -> None:
    """What scores would tell of so many records."""
    from pgmpy_dp.estimators.model_score import preview_score

    if n is None:
        ask_for("DATA", None, "pass the file of records; or --n 20000 to see what scores would tell of so many")
    found = preview_score(network, n, budget, level=level, adjacency=adjacency, rows_per_unit=rows, **asked)
    rows = [{"score": name, **{k: float(v) for k, v in row.items()}} for name, row in found.iterrows()]
    lines = [f"{budget} under {adjacency}, {n:,} records assumed; {100 * level:g} % intervals"]
    lines += [
        f"  {row['score']:<10} {row['tables']:>7,.0f} tables   noise of sd {row['sd']:>8,.1f} records   "
        f"interval about +- {row['half_width']:.4f}   sampling alone {row['sampling']:.4f}"
        for row in rows
    ]
    show({"budget": budget.guarantee.to_dict(), "n": n, "level": level, "scores": rows}, "\n".join(lines), as_json)
