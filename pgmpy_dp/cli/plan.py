"""``pgmpy-dp plan``: what a budget will buy, from public numbers alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from pgmpy_dp.cli import option
from pgmpy_dp.cli.application import app, command, progress, show
from pgmpy_dp.cli.arguments import learn_arguments, parsed_rows, require_criteria
from pgmpy_dp.cli.files import holds_linked_schema, load_linked_schema, load_schema

if TYPE_CHECKING:
    from pgmpy_dp.schema import Schema


@dataclass(frozen=True)
class TheoryOptions:
    """The numbers that theory's bounds depend on."""

    width: Annotated[
        float | None, typer.Option("--width", help="For theory: bound on the sum of weights at a variable.")
    ] = None
    min_weight: Annotated[
        float | None, typer.Option("--min-weight", help="For theory: smallest weight of an edge to be found.")
    ] = None
    alpha: Annotated[float | None, typer.Option("--alpha", help="For theory: largest error of a weight.")] = None


@command(
    app,
    "plan",
    "sizes, noise and expected errors before a fit",
    "plan --schema schema.json --epsilon 1 --delta 1e-9 --n 20000",
    'plan --schema schema.json --edges "age-job,sex-job" --epsilon 1 --n 20000',
    "plan --schema schema.json --rho 0.1 --n 20000 --width 1 --min-weight 0.3 --alpha 0.01",
    "plan --schema linked.json --epsilon 1 --delta 1e-9 --n 20000",
    learns=True,
)
def plan(
    *,
    schema: option.SchemaFile,
    n: Annotated[int, typer.Option("--n", help="About how many records there are, from public knowledge.", min=1)],
    spent: option.BudgetOptions,
    learn: option.LearnOptions,
    adjacency: option.Adjacency = option.TableAdjacency.ADD_REMOVE,
    rows_per_unit: option.RowsPerUnit = "1",
    published: option.PublishOptions,
    theory: TheoryOptions,
    simulations: Annotated[
        int | None,
        typer.Option(
            "--simulations",
            help="Fits to made-up records, if the graph is given: 5, or so many; 0 for noise alone.",
            min=0,
        ),
    ] = None,
    quiet: option.Quiet = False,
    as_json: option.Json = False,
) -> None:
    """Show sizes, noise and expected errors of a fit before there is one. It reads no records and spends nothing.

    The error of a table is the total variation that noise alone adds to it: .01 means that a hundredth of the records
    would have to change cells. If the graph is given, "learned" is the error of the model's table, by simulation.

    With --width and --min-weight or --alpha it adds theory's bounds on the number of records. They are orders of
    magnitude.

    Of a schema of linked tables --n is the number of parents. It says what one child is promised, and with how many
    siblings a child is expected to be learned.
    """
    from pgmpy_dp.verbs import plan as planned

    of_one: Schema | None = None if holds_linked_schema(schema) else load_schema(schema)
    require_criteria(published, option.TEST_SHARE)
    with progress(quiet):
        result = planned(
            load_linked_schema(schema) if of_one is None else of_one,
            spent.budget(),
            n,
            adjacency=str(adjacency),
            rows_per_unit=None if rows_per_unit == "1" else parsed_rows(rows_per_unit),
            criteria=published.publish_if,
            test_share=published.test_share,
            simulations=simulations,
            **vars(theory),
            **learn_arguments(learn, of_one),
        )
    show(result.to_dict(), str(result), as_json)
