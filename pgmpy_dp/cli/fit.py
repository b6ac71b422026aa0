"""``pgmpy-dp fit``, the only command that is given records, and ``refit``, which learns again without them."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pgmpy_dp.cli import column_options, option
from pgmpy_dp.cli.application import aligned, app, ask_for, command, note, progress, show
from pgmpy_dp.cli.arguments import as_written, given_drivers, given_graph, given_variable, given_workload, protection
from pgmpy_dp.cli.files import load_release, require_posterior, require_writable, save_with_draws
from pgmpy_dp.cli.fit_linked import fit_linked, refit_linked
from pgmpy_dp.cli.fit_published import fit_if, require_asked_alone
from pgmpy_dp.cli.ledger import kept, marked, open_account, show_charged
from pgmpy_dp.shown import shown

if TYPE_CHECKING:
    import networkx as nx

    from pgmpy_dp.private.budget import Budget
    from pgmpy_dp.private.sensitive import Release
    from pgmpy_dp.schema import Schema


class Parameters(StrEnum):
    """How parameters are learned from noisy tables of a given graph."""

    COLLECTIVE_MAP = "collective-map"
    NAIVE_MLE = "naive-mle"
    COLLECTIVE_EM = "collective-em"


StructureOption = Annotated[
    option.Structure | None, typer.Option("--structure", help="How to find the graph if none is given; default learn.")
]
MaxOrderOption = Annotated[
    int | None,
    typer.Option("--max-order", help="Number of variables of the largest tables that are measured. Default: 3."),
]
WorkloadOption = Annotated[
    str | None, typer.Option("--workload", help='What the model will be asked, with weights: "age,job=2; age,sex".')
]
TargetOption = Annotated[str | None, typer.Option("--target", help="Variable that the model will predict from others.")]
MissingOption = Annotated[
    str | None,
    typer.Option(
        "--missing-at-random",
        help='Variables without missing values in the model, and what decides if they are missing: "income=age,job".',
    ),
]
OptimiseOption = Annotated[
    str | None,
    typer.Option("--optimise", help="What a weak budget is divided for: likelihood (of records; default) or pairs."),
]
EstimatorOption = Annotated[
    Parameters | None,
    typer.Option("--estimator", help="How parameters are learned if the graph is given. Default: collective-map."),
]
PriorOption = Annotated[
    Path | None,
    typer.Option("--prior", help="Model or noisy tables (.npz) to learn deviations from, public or of an earlier fit."),
]
ReleaseOption = Annotated[
    Path | None, typer.Option("--release", help="Keep the noisy tables too (.npz), to learn from them again.")
]

DrawsOption = Annotated[
    int,
    typer.Option(
        "--draws",
        help="Posterior draws that the model keeps, for intervals and sample --copies; for example 30.",
        min=0,
        max=100_000,
    ),
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
    "fit --parents households.csv --children persons.csv --schema linked.json --epsilon 1 --delta 1e-9 --out model.npz",
    "fit --children visits.csv --unit patient --schema visits.json --epsilon 1 --delta 1e-9 --out model.npz",
)
def fit(
    *,
    data: option.FitData = None,
    tables: option.LinkedOptions,
    out: Annotated[Path, typer.Option("--out", help="Model to write (.npz).")],
    described: column_options.ColumnOptions,
    spent: option.BudgetOptions,
    structure: StructureOption = None,
    max_order: MaxOrderOption = None,
    workload: WorkloadOption = None,
    target: TargetOption = None,
    missing_at_random: MissingOption = None,
    optimise: OptimiseOption = None,
    edges: option.Edges = None,
    edges_file: option.EdgesFile = None,
    estimator: EstimatorOption = None,
    prior: PriorOption = None,
    protected: option.ProtectionOptions,
    account: option.LedgerOptions,
    release: ReleaseOption = None,
    draws: DrawsOption = 0,
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
    SIGTERM keep what was released until then.

    --parents and --children are two tables with a column in common, in place of DATA: households and persons. Their
    schema is JSON of pgmpy_dp.linked.LinkedSchema, and a parent with all its children is protected. --children alone is
    one file with several rows a person, of --unit.

    --publish-if tests the model against declared criteria, with noise. Fit and test are charged as one before anything
    is counted. If it does not meet them, "no" is all that is told (exit code 1), nothing is written, and the budget is
    spent. pgmpy-dp plan --publish-if says how sharp the test is.
    """
    if tables.parents is not None or tables.children is not None:
        one_table: dict[str, Any] = {
            **{"DATA": data, "--structure": structure, "--max-order": max_order, "--workload": workload},
            **{"--target": target, "--edges": edges, "--edges-file": edges_file, "--estimator": estimator},
            **{"--prior": prior, "--missing-at-random": missing_at_random, "--publish-if": published.publish_if},
            "--optimise": optimise,
        }
        for name, value in one_table.items():
            if value is not None:
                ask_for(name, str(value), "it is for one table; linked tables (--parents, --children) take none")
        fit_linked(tables, described, spent, protected, account, text, out, release, draws, overwrite, quiet, as_json)
        return
    if data is None:
        ask_for("DATA", None, "pass the file of the records, or --parents and --children for two tables")
    from pgmpy_dp.private.data.columns import in_their_order
    from pgmpy_dp.private.data.table import PrivateTable

    budget = spent.budget()
    files = (data, described.schema, edges_file, account.ledger, prior, published.publish_if)
    require_asked_alone(published)
    require_writable(overwrite, files, out=out, release=release)
    public_schema = column_options.described(described)
    graph = _fixed_graph(public_schema, structure, given_graph(public_schema, edges, edges_file))
    search = _search(public_schema, structure, graph, max_order, workload, target, missing_at_random, optimise)
    if graph is None:
        learner = _learner(structure, budget, protected.adjacency, **search)
    else:
        learner = _estimator(estimator, budget, protected.adjacency)
    _take_prior(learner, prior)
    if graph is None and estimator is not None:
        ask_for("--estimator", str(estimator), "it is for a graph that is given (--edges, --structure independent)")
    require_posterior(learner, draws)
    if published.publish_if is not None and (graph is not None or structure == option.Structure.CHOW_LIU):
        ask_for("--publish-if", str(published.publish_if), "it is for a graph that learn is to find")
    records, whose = as_written(data, text), protection(protected)
    # Samples have the columns as the file has them.
    public_schema = public_schema.subset(in_their_order(records, public_schema))
    if published.publish_if is not None:
        how = whose | search | {"adjacency": str(protected.adjacency), "prior": prior}
        written = (out, release, draws, quiet, as_json)
        fit_if(records, public_schema, budget, published, account, _summary, how, *written)
        return
    charged = open_account(account, budget, protected.adjacency)
    table = PrivateTable(records, public_schema, ledger=charged, **whose)
    with marked(table.ledger):
        with kept(release or out.with_suffix(".release.npz"), "pgmpy-dp refit", learner), progress(quiet):
            learner.fit(table) if graph is None else learner.fit(graph, table)
            if release is not None:
                learner.release_.save(release)
            save_with_draws(learner, out, draws)
        document, found = _summary(learner, out, release)
        document["budget"] = budget.guarantee.to_dict()
        show_charged(document, found, as_json, account.ledger, table.ledger)
        for warning in document["warnings"]:
            note(warning, quiet)
        if account.ledger is None:
            note("costs of further fits to the same records add up; --ledger FILE keeps count", quiet)


@command(
    app,
    "refit",
    "learn again from noisy tables, for free",
    "refit model.release.npz --estimator naive-mle --out naive.npz",
)
def refit(
    release: Annotated[Path, typer.Argument(metavar="RELEASE", help="Noisy tables that fit --release kept.")],
    out: Annotated[Path, typer.Option("--out", help="Model to write (.npz).")],
    estimator: EstimatorOption = None,
    prior: PriorOption = None,
    missing_at_random: MissingOption = None,
    impossible: column_options.ImpossibleOption = None,
    draws: DrawsOption = 0,
    overwrite: option.Overwrite = False,
    quiet: option.Quiet = False,
    as_json: option.Json = False,
) -> None:
    """Learn a model again from noisy tables, without the records and at no further cost.

    Without --estimator, a network that fit found is learned as fit does it. Otherwise the graph has an edge for each
    pair of variables that share a chosen table. Rules (--impossible) are obeyed beside those of the schema.
    """
    import networkx as nx

    from pgmpy_dp.estimators import PrivateNetwork
    from pgmpy_dp.learning.probe_tables import probe_tables

    require_writable(overwrite, (release, prior), out=out)
    tables = _noisy_tables(release)
    if "linked" in tables.public:
        passed: dict[str, Any] = {"--estimator": estimator, "--prior": prior, "--missing-at-random": missing_at_random}
        passed |= {"--impossible": impossible and impossible[0]}
        for name, value in passed.items():
            if value is not None:
                ask_for(name, str(value), "RELEASE is of linked tables, which are learned in one way; leave it out")
        refit_linked(tables, out, draws, quiet, as_json)
        return
    if impossible:
        try:
            tables = tables.with_rules([*tables.schema.impossible, *impossible])
        except ValueError as error:
            ask_for("--impossible", impossible[0], str(error))
    adjacency = option.TableAdjacency(tables.adjacency)
    learner: Any
    arguments: tuple
    if estimator is None and "rounds" in tables.public:
        drivers = given_drivers(tables.schema.variables, missing_at_random)
        learner, arguments = PrivateNetwork(adjacency=str(adjacency), missing_at_random=drivers), (tables,)
    else:
        if missing_at_random is not None:
            ask_for("--missing-at-random", missing_at_random, "it is for a network that learn found; leave it out")
        scopes = tables.scopes[: probe_tables(tables).start]
        graph = nx.Graph()
        graph.add_nodes_from(name for name in tables.schema.variables if any(name in scope for scope in scopes))
        graph.add_edges_from((u, v) for scope in scopes for i, u in enumerate(scope) for v in scope[i + 1 :])
        learner, arguments = _estimator(estimator, None, adjacency), (graph, tables)
    _take_prior(learner, prior)
    require_posterior(learner, draws)
    with progress(quiet):
        learner.fit_release(*arguments)
        save_with_draws(learner, out, draws)
    document, text = _summary(learner, out, None)
    show(document, text, as_json)
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
    found = suggested_rules(tables, level)
    rows = [
        {"rule": x.rule, "probability": x.probability, "at_most": x.at_most, "independent": x.independent}
        for x in found
    ]
    texts = [
        [f"{x.probability:.3f}", f"{x.at_most:,.0f} records", f"{x.independent:,.0f}", shown(x.rule)] for x in found
    ]
    text = aligned([["probability", f"at most ({100 * level:g} %)", "if independent", "rule"], *texts])
    guess = "Guesses from noisy tables: confirm a rule only if you know from public reasons that it holds."
    show({"level": level, "rules": rows}, f"{text}\n{guess}" if rows else "The tables make no rule probable.", as_json)


def _noisy_tables(release: Path) -> Release:
    """The tables in a file, of records or of linked ones."""
    tables = load_release(release)
    if tables.kind == "interrupted":
        ask_for("RELEASE", str(release), "the fit was interrupted before it had what a model is learned from")
    if tables.kind != "marginals":
        ask_for("RELEASE", str(release), f"it holds {tables.kind}, not noisy tables")
    return tables


def _take_prior(learner: Any, prior: Path | None) -> None:
    """Refuse a prior that cannot be used, before anything is spent."""
    from pgmpy_dp.learning.prior import given_prior

    if prior is None:
        return
    if "prior" not in learner.get_params():
        ask_for("--prior", str(prior), f"{type(learner).__name__} takes none; leave --structure and --estimator out")
    learner.prior = prior
    try:
        given_prior(learner)
    except (ValueError, TypeError) as error:
        ask_for("--prior", str(prior), str(error))


def _fixed_graph(schema: Schema, structure: option.Structure | None, given: nx.Graph | None) -> nx.Graph | None:
    """The graph whose parameters are learned: the given one, or one without edges; None where it is to be found."""
    import networkx as nx

    if given is not None and structure is not None:
        ask_for("--structure", str(structure), "the graph was passed too; pass one of them")
    if given is not None or structure != option.Structure.INDEPENDENT:
        return given
    graph = nx.Graph()
    graph.add_nodes_from(schema.variables)
    return graph


def _search(
    schema: Schema,
    structure: option.Structure | None,
    graph: nx.Graph | None,
    max_order: int | None,
    workload: str | None,
    target: str | None,
    missing_at_random: str | None,
    optimise: str | None,
) -> dict[str, Any]:
    """How learn is to find a graph, as far as that was passed."""
    search = {
        "max_order": max_order,
        "workload": given_workload(schema.variables, workload),
        "target": given_variable("--target", schema.variables, target),
        "missing_at_random": given_drivers(schema.variables, missing_at_random),
        "optimise": optimise,
    }
    search = {name: value for name, value in search.items() if value is not None}
    if search and (graph is not None or structure not in (None, option.Structure.LEARN)):
        name = next(iter(search))
        ask_for(f"--{name.replace('_', '-')}", str(search[name]), "it is for a graph that learn is to find")
    return search


def _learner(
    structure: option.Structure | None, budget: Budget, adjacency: option.TableAdjacency, **search: Any
) -> Any:
    """An estimator of graph and parameters."""
    from pgmpy_dp.estimators import PrivateChowLiu, PrivateNetwork

    kind = PrivateChowLiu if structure == option.Structure.CHOW_LIU else PrivateNetwork
    return kind(budget.epsilon, budget.delta, budget.rho, adjacency=str(adjacency), **search)


def _estimator(which: Parameters | None, budget: Budget | None, adjacency: option.TableAdjacency) -> Any:
    """An estimator of a given graph's parameters."""
    from pgmpy_dp.estimators import CollectiveEM, CollectiveMAP, NaiveMLE

    kinds = {Parameters.NAIVE_MLE: NaiveMLE, Parameters.COLLECTIVE_EM: CollectiveEM}
    kind = kinds.get(which, CollectiveMAP) if which is not None else CollectiveMAP
    if budget is None:
        return kind()
    return kind(budget.epsilon, budget.delta, budget.rho, adjacency=str(adjacency))


def _edges(model: Any) -> str:
    count = model.number_of_edges()
    return "1 edge" if count == 1 else f"{count or 'no'} edges"


def _summary(learner: Any, out: Path, release: Path | None) -> tuple[dict[str, Any], str]:
    """What a fit tells, all of it released with noise or public."""
    from pgmpy_dp.estimators import PrivateNetwork
    from pgmpy_dp.learning.few_records import dropped_records, few_records, large_delta, no_edge
    from pgmpy_dp.schema import encode_label

    few = few_records(learner.n_records_, learner.n_records_sd_, "pgmpy-dp check")
    model, privacy = learner.model_, learner.privacy_
    unread = [model.mostly_missing(name) for name in model.numbers]
    large = large_delta(privacy.delta, learner.n_records_)
    declared = learner.release_.n_records
    dropped = dropped_records(declared or 0.0, learner.n_records_, learner.n_records_sd_)
    alone = None
    if isinstance(learner, PrivateNetwork):
        share = sum(record["share"] for record in learner.release_.public["rounds"])
        alone = no_edge(model.number_of_nodes(), learner.graph_.number_of_edges(), share, "--workload")
    document = {
        "model": str(out),
        "release": None if release is None else str(release),
        **privacy.told(),
        "mechanism": privacy.mechanism,
        "variables": [encode_label(name) for name in model.nodes],
        "edges": [[encode_label(u), encode_label(v)] for u, v in model.edges],
        "n_records": float(learner.n_records_),
        "n_records_sd": float(learner.n_records_sd_),
        "warnings": [said for said in (few or dropped, *unread, large, alone) if said is not None],
    }
    lines = [
        f"Learned {_edges(model)} between {model.number_of_nodes()} variables: {privacy}",
        f"Records inside the schema: about {learner.n_records_:,.0f} (standard deviation {learner.n_records_sd_:,.0f})"
        if learner.n_records_sd_
        else f"Records: {learner.n_records_:,.0f}, as declared",
        f"Wrote {out}" + ("" if release is None else f" and {release}"),
    ]
    return document, "\n".join(lines)
