"""``pgmpy-dp fit``, the only command that is given records, and those that learn without them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pgmpy_dp.cli import column_options, option
from pgmpy_dp.cli.application import CHECK_FAILED, app, ask_for, command, note, note_reading, progress, show
from pgmpy_dp.cli.arguments import learn_arguments, parsed_drivers, public_arguments, require_criteria
from pgmpy_dp.cli.files import load_release, load_schema, require_writable
from pgmpy_dp.cli.ledger import kept, marked, show_charged
from pgmpy_dp.cli.named_data import private_data
from pgmpy_dp.shown import aligned, quantity, shown

if TYPE_CHECKING:
    from pgmpy_dp.private.sensitive import Release

ReleaseOption = Annotated[
    Path | None, typer.Option("--release", help="Keep the noisy tables too (.npz), to learn from them again.")
]


@command(
    app,
    "fit",
    "learn a private model from a file of records",
    "fit records.csv --schema schema.json --epsilon 1 --delta 1e-9 --out model.npz",
    'fit records.csv --schema schema.json --edges "age-job,sex-job" --epsilon 1 --out model.npz',
    "fit survey.csv --delimiter ';' --encoding cp1252 --decimal , --schema schema.json --epsilon 1 --out model.npz",
    'fit records.csv --number "age=0:120 cuts 18,65" --variable "sex=F,M" --strip --epsilon 1 --out model.npz',
    "fit this_year.csv --schema schema.json --epsilon 0.1 --delta 1e-9 --prior last_year.npz --out model.npz",
    "fit records.parquet --schema schema.json --structure chow-liu --rho 0.1 --ledger ledger.json --out tree.npz",
    "fit records.csv --schema schema.json --rho 0.1 --publish-if criteria.json --ledger ledger.json --out model.npz",
    "fit records.csv --schema schema.json --rho 0.1 --public census.csv --public-from elsewhere --out model.npz",
    "fit --parents households.csv --children persons.csv --schema linked.json --epsilon 1 --delta 1e-9 --out model.npz",
    "fit --children visits.csv --unit patient --schema visits.json --epsilon 1 --delta 1e-9 --out model.npz",
    learns=True,
)
def fit(
    *,
    data: option.FitData = None,
    tables: option.LinkedOptions,
    out: Annotated[Path, typer.Option("--out", help="Model to write (.npz).")],
    described: column_options.ColumnOptions,
    spent: option.BudgetOptions,
    learn: option.LearnOptions,
    known: option.PublicOptions,
    protected: option.ProtectionOptions,
    account: option.LedgerOptions,
    release: ReleaseOption = None,
    draws: option.Draws = 0,
    published: option.PublishOptions,
    text: option.TextOptions,
    overwrite: option.Overwrite = False,
    quiet: option.Quiet = False,
    as_json: option.Json = False,
) -> None:
    """Learn a private model from a file of records, within a privacy budget.

    The first line of a text file names the columns; columns that the schema does not name are not read. Records with
    values outside the schema are left out or counted in an other-state. Nobody is told which or how many. Run pgmpy-dp
    check before, which says it with noise. Compare the estimated number of records with what you expect.

    Everything is checked before anything is spent. A fit that succeeds keeps the noisy tables only with --release. A
    fit that fails once it has them keeps them for refit, in that file or beside the model (model.release.npz). A fit
    that is killed, or fails between the charge and the tables, keeps nothing, and the budget is spent. Ctrl-C and
    SIGTERM keep what was released until then. The exit code is 1 if next to no record was inside the schema, by the
    released number; what was paid for is written all the same.

    --parents and --children are two tables with a column in common, in place of DATA: households and persons. Their
    schema is JSON of pgmpy_dp.linked.LinkedSchema, and a parent with all its children is protected. --children alone is
    one file with several rows a person, of --unit.

    --publish-if tests the model against declared criteria, with noise. Fit and test are charged as one before anything
    is counted. If it does not meet them, "no" is all that is told (exit code 1), nothing is written, and the budget is
    spent. pgmpy-dp plan --publish-if says how sharp the test is.
    """
    from pgmpy_dp import verbs
    from pgmpy_dp.private.data.table import PrivateTable

    budget = spent.budget()
    files = (data, tables.parents, tables.children, described.schema, learn.edges_file, account.ledger, learn.prior)
    files = (*files, *(known.public or ()))
    require_criteria(published, option.TEST_SHARE)
    if published.publish_if is not None and known.public:
        ask_for("--public", str(known.public[0]), "a model that is tested takes none; leave --publish-if out")
    require_writable(overwrite, (*files, published.publish_if), out=out, release=release)
    if published.publish_if is not None and account.ledger is None:
        ask_for("--ledger", None, "it remembers that a test was tried; pass a file, which is made if it is new")
    private = private_data(data, tables, described, budget, protected, account, text)
    schema = private.schema if isinstance(private, PrivateTable) else None
    how = learn_arguments(learn, schema) | public_arguments(known, schema) | {"draws": draws}
    note_reading(quiet, data, tables.parents, tables.children)
    with marked(private.ledger):
        with kept(release or out.with_suffix(".release.npz"), "pgmpy-dp refit") as bought, progress(quiet):
            if published.publish_if is None:
                outcome = learner = verbs.learn(private, budget, **how)
            else:
                test: dict[str, Any] = {"test_share": published.test_share, "again": published.again}
                outcome = verbs.publish_if(private, budget, published.publish_if, **test, **how)
                learner = outcome.learner
            if learner is not None:
                bought.append(learner)
                if release is not None:
                    learner.release_.save(release)
                learner.model_.save(out)
        if learner is not None:
            document = _written(learner, out, release) | outcome.to_dict() | {"budget": budget.guarantee.to_dict()}
            wrote = f"{outcome}\nWrote {out}" + ("" if release is None else f" and {release}")
            show_charged(document, wrote, as_json, account.ledger, private.ledger)
            for warning in document["warnings"]:
                note(warning, quiet)
            if account.ledger is None:
                note("costs of further fits to the same records add up; --ledger FILE keeps count", quiet)
    if learner is None:
        show(outcome.to_dict(), str(outcome), as_json)
    if learner is None or learner.failed:
        raise typer.Exit(CHECK_FAILED)


def _written(learner: Any, out: Path, release: Path | None) -> dict[str, Any]:
    """The document of a fit: released and public numbers alone, and the files that were written."""
    return {"model": str(out), "release": None if release is None else str(release), **learner.to_dict()}


@command(
    app,
    "refit",
    "learn again from noisy tables, for free",
    "refit model.release.npz --estimator naive-mle --out naive.npz",
    learns=True,
)
def refit(
    *,
    release: Annotated[Path, typer.Argument(metavar="RELEASE", help="Noisy tables that fit --release kept.")],
    out: Annotated[Path, typer.Option("--out", help="Model to write (.npz).")],
    estimator: option.Estimator = None,
    prior: option.Prior = None,
    missing_at_random: option.MissingAtRandom = None,
    known: option.PublicOptions,
    impossible: column_options.ImpossibleOption = None,
    draws: option.Draws = 0,
    overwrite: option.Overwrite = False,
    quiet: option.Quiet = False,
    as_json: option.Json = False,
) -> None:
    """Learn a model again from noisy tables, without the records and at no further cost.

    Without --estimator, a network that fit found is learned as fit does it. Otherwise the graph has an edge for each
    pair of variables that share a chosen table. Rules (--impossible) are obeyed beside those of the schema.
    """
    from pgmpy_dp.verbs import refit as learned_again

    require_writable(overwrite, (release, prior), out=out)
    tables = _noisy_tables(release)
    drivers: Any = missing_at_random
    if "linked" not in tables.public:
        drivers = parsed_drivers(tables.schema.variables, missing_at_random)
    with progress(quiet):
        learner = learned_again(
            tables,
            estimator=None if estimator is None else str(estimator),
            prior=prior,
            missing_at_random=drivers,
            impossible=impossible,
            draws=draws,
            **public_arguments(known, None if "linked" in tables.public else tables.schema),
        )
        learner.model_.save(out)
    document = _written(learner, out, None)
    show(document, f"{learner}\nWrote {out}", as_json)
    for warning in document["warnings"]:
        note(warning, quiet)


@command(
    app,
    "suggest",
    "rules about what is impossible, to confirm",
    "suggest model.release.npz",
)
def suggest(
    release: Annotated[Path, typer.Argument(metavar="RELEASE", help="Noisy tables that fit --release kept.")],
    level: Annotated[float, typer.Option("--level", help="Of the bound on the records that break a rule.")] = 0.95,
    as_json: option.Json = False,
) -> None:
    """List rules about what is impossible that noisy tables make probable, the strongest first, at no cost.

    Each is a guess. Pass it to refit --impossible, or put it into the schema, only if you know from public reasons that
    it holds.
    """
    from pgmpy_dp.learning.suggested_rules import suggested_rules

    tables = _noisy_tables(release)
    if "linked" in tables.public:
        ask_for("RELEASE", str(release), "it is of linked tables; rules are found in those of one table")
    if not 0 < level < 1:
        ask_for("--level", str(level), "pass a number between 0 and 1")
    rules = suggested_rules(tables, level)
    rows = [one.to_dict() for one in rules]
    texts = [
        [f"{x.probability:.3f}", quantity(x.at_most, "record"), f"{x.independent:,.0f}", shown(x.rule)] for x in rules
    ]
    text = aligned([["probability", f"at most ({100 * level:g} %)", "if independent", "rule"], *texts])
    guess = "Guesses from noisy tables: confirm a rule only if you know from public reasons that it holds."
    show({"level": level, "rules": rows}, f"{text}\n{guess}" if rows else "The tables make no rule probable.", as_json)


@command(
    app,
    "from-tables",
    "learn a model from noisy tables of others",
    'from-tables sex_age.csv age_job.csv --schema schema.json --noise laplace --stated "1-DP, by us" --out model.npz',
    learns=True,
)
def from_tables(
    tables: Annotated[list[Path], typer.Argument(metavar="TABLES", help="CSV or .parquet, one file a table.")],
    schema: option.SchemaFile,
    noise: Annotated[str, typer.Option("--noise", help="laplace (two-sided geometric noise too), or gaussian.")],
    stated: Annotated[str, typer.Option("--stated", help="What is known of their guarantee, and from where.")],
    out: Annotated[Path, typer.Option("--out", help="Model to write (.npz).")],
    total: Annotated[float | None, typer.Option("--total", help="The number of records, if it is public.")] = None,
    draws: option.Draws = 0,
    overwrite: option.Overwrite = False,
    quiet: option.Quiet = False,
    as_json: option.Json = False,
) -> None:
    """Learn a model from noisy tables that others released: with OpenDP, by a census office, by a query.

    A file is a table: a line for each cell, also where its count is 0 or below, with the columns count and variance (of
    the noise) and columns of variables of the schema, which has their states. The same table may come in several files.

    No records are read, nothing is charged and nothing is promised. What is known of the tables' guarantee is what
    --stated says: info and the report print it as stated by others, and evidence refuses the model.
    """
    from pgmpy_dp import from_noisy_tables

    require_writable(overwrite, (*tables, schema), out=out)
    with progress(quiet):
        model = from_noisy_tables(tables, load_schema(schema), noise=noise, stated=stated, total=total, draws=draws)
    model.save(out)
    show({"model": str(out), "guarantee": None, "stated_by_others": stated}, f"Learned {model}\nWrote {out}", as_json)


def _noisy_tables(release: Path) -> Release:
    """The tables in a file, of records or of linked ones."""
    tables = load_release(release)
    if tables.kind == "interrupted":
        ask_for("RELEASE", str(release), "the fit was interrupted before it had what a model is learned from")
    if tables.kind != "marginals":
        ask_for("RELEASE", str(release), f"it holds {tables.kind}, not noisy tables")
    return tables
