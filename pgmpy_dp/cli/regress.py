"""``pgmpy-dp regress``: a regression of private records around a released model, for a part of their budget."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from pgmpy_dp.cli import option
from pgmpy_dp.cli.application import app, ask_for, command, note_reading, show
from pgmpy_dp.cli.arguments import as_written, protection
from pgmpy_dp.cli.files import load_model, load_schema, require_writable
from pgmpy_dp.cli.ledger import kept, marked, note_uncounted, open_account, show_charged


class Family(StrEnum):
    """The families of regressions."""

    LOGIT = "logit"
    LINEAR = "linear"


@command(
    app,
    "regress",
    "a regression around a model, with intervals",
    'regress model.npz records.csv --formula "ill ~ age + job" --rho 0.002 --ledger ledger.json --out fit.npz',
    'regress model.npz records.csv --formula "wage ~ age*sex" --family linear --epsilon 0.2 --ledger ledger.json',
    'regress model.npz --formula "ill ~ age + job" --rho 0.002 --n 20000',
    learns=True,
)
def regress(
    *,
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Model that fit wrote.")],
    data: Annotated[
        Path | None, typer.Argument(metavar="[DATA]", help="The private records. With --n in their place, a forecast.")
    ] = None,
    formula: Annotated[
        list[str],
        typer.Option("--formula", help='Such as "ill ~ age + C(job)*sex". May be repeated: they share a budget.'),
    ],
    family: Annotated[Family, typer.Option("--family", help="Of the regression.")] = Family.LOGIT,
    success: Annotated[
        str | None, typer.Option("--success", help="State of the response that a logit models; default: the second.")
    ] = None,
    rounds: Annotated[int, typer.Option("--rounds", help="How often the records are asked.", min=1, max=8)] = 2,
    weight: option.Weight = None,
    others: Annotated[bool, typer.Option("--others", help="The model was learned from other people.")] = False,
    n: Annotated[int | None, typer.Option("--n", help="Without DATA, an assumed number of records.", min=1)] = None,
    schema: Annotated[
        Path | None, typer.Option("--schema", help="How the records are read. Default: as the model's were.")
    ] = None,
    spent: option.BudgetOptions,
    protected: option.ProtectionOptions,
    account: option.LedgerOptions,
    out: Annotated[Path | None, typer.Option("--out", help="File of the result (.npz), for Regression.load.")] = None,
    text: option.TextOptions,
    overwrite: option.Overwrite = False,
    quiet: option.Quiet = False,
    as_json: option.Json = False,
) -> None:
    """Estimate regressions of private records, with standard errors and intervals that hold for their population.

    Coefficients from synthetic records are off by more than their standard errors say. This asks the records again,
    around MODEL, and spends its budget beside what the model cost. Pass the ledger of these records.

    The table has one column more than others: "privacy" is the part of the standard error that is noise.
    """
    from pgmpy_dp.models.scored_model import schema_of_model
    from pgmpy_dp.private.data.table import PrivateTable
    from pgmpy_dp.verbs import in_order_of, plan

    budget = spent.budget()
    require_writable(overwrite, (model, data, schema, account.ledger), out=out)
    network, whose = load_model(model), protection(protected)
    how: dict[str, Any] = {"family": str(family), "success": success, "rounds": rounds, "weight": weight}
    if data is None:
        if n is None:
            ask_for("DATA", None, "pass the file of records; or --n 20000 to see how wide intervals would be")
        planned = plan(
            network, budget, n, formula=formula, adjacency=str(protected.adjacency), **how,
            rows_per_unit=whose["rows_per_unit"],
        )  # fmt: skip
        show(planned.to_dict(), str(planned), as_json)
        return
    if n is not None:
        ask_for("--n", str(n), "it is for a forecast, without DATA; pass --n-records where their number is public")
    plan(network, budget, 1, formula=formula, **how)  # a formula is wrong before records are read
    records = as_written(data, text)
    public_schema = in_order_of(records, schema_of_model(network, None if schema is None else load_schema(schema)))
    charged = open_account(account, budget, protected.adjacency, fit=False)
    table = PrivateTable(records, public_schema, ledger=charged, **whose)
    note_reading(quiet, data)
    with marked(table.ledger):
        with kept(out or model.with_suffix(".regression.npz"), "Regression.of(Release.load(...))"):
            fits = network.regress(formula, table, budget, others=others, **how)
            if out is not None:
                fits[0].save(out)
        document = {"regressions": [fit.to_dict() for fit in fits], "out": None if out is None else str(out)}
        show_charged(document, "\n\n".join(map(str, fits)), as_json, account.ledger, table.ledger)
        if account.ledger is None:
            note_uncounted(quiet)
