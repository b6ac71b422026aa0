"""``pgmpy-dp plan``: what a budget will buy, from public numbers alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isnan, nan, pi, sqrt
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pgmpy_dp.cli import option
from pgmpy_dp.cli.application import app, ask_for, command, progress, show
from pgmpy_dp.cli.arguments import given_graph, given_rows, given_variable
from pgmpy_dp.cli.before_linked import plan_linked_tables
from pgmpy_dp.cli.files import holds_linked_schema, load_schema
from pgmpy_dp.cli.fit_published import margin_lines, require_asked_alone
from pgmpy_dp.shown import shown

if TYPE_CHECKING:
    from collections.abc import Hashable

    from pgmpy_dp.private.budget import Budget
    from pgmpy_dp.private.sensitive import Noise
    from pgmpy_dp.schema import Schema

_SHOWN = 12
_NEARLY_ALL = 0.9  # of the budget, for single variables: hardly an edge can be found
_MERGED = 4  # cells that a number has in tables of several variables, at least, where the budget is small


@dataclass(frozen=True)
class TheoryOptions:
    """What theory's bounds depend on."""

    width: Annotated[
        float | None, typer.Option("--width", help="For theory: bound on the sum of weights at a variable.")
    ] = None
    min_weight: Annotated[
        float | None, typer.Option("--min-weight", help="For theory: smallest weight of an edge to be found.")
    ] = None
    alpha: Annotated[float | None, typer.Option("--alpha", help="For theory: largest error of a weight.")] = None


@dataclass(frozen=True)
class _Table:
    """One noisy table: its variables (or what is known of them), cells, noise, and the error of what is learned."""

    what: str
    cells: int
    noise: Noise
    learned: float = nan

    def error(self, n: int) -> float:
        """Expected total variation between the noisy and the exact table of n records, at most 1."""
        mean = self.noise.scale * (sqrt(2 / pi) if self.noise.distribution == "discrete_gaussian" else 1.0)
        return min(1.0, self.cells * mean / (2 * n))

    def to_dict(self, n: int) -> dict[str, Any]:
        return {
            "table": self.what,
            "cells": self.cells,
            "noise": self.noise.distribution,
            "scale": self.noise.scale,
            "expected_error": self.error(n),
            "expected_error_learned": None if isnan(self.learned) else self.learned,
        }


@dataclass(frozen=True)
class _Expected:
    """What a fit is expected to measure, what a program is told of it, and what a person is told."""

    tables: list[_Table]
    lines: list[str]
    facts: dict[str, Any] = field(default_factory=dict)


@command(
    app,
    "plan",
    "sizes, noise and expected errors before a fit",
    "plan --schema schema.json --epsilon 1 --delta 1e-9 --n 20000",
    'plan --schema schema.json --edges "age-job,sex-job" --epsilon 1 --n 20000',
    "plan --schema schema.json --rho 0.1 --n 20000 --width 1 --min-weight 0.3 --alpha 0.01",
    "plan --schema linked.json --epsilon 1 --delta 1e-9 --n 20000",
)
def plan(
    *,
    schema: option.SchemaFile,
    n: Annotated[int, typer.Option("--n", help="About how many records there are, from public knowledge.", min=1)],
    spent: option.BudgetOptions,
    structure: Annotated[
        option.Structure | None, typer.Option("--structure", help="The --structure of the fit; default learn.")
    ] = None,
    target: Annotated[str | None, typer.Option("--target", help="The --target of the fit.")] = None,
    edges: option.Edges = None,
    edges_file: option.EdgesFile = None,
    adjacency: option.Adjacency = option.TableAdjacency.ADD_REMOVE,
    rows_per_unit: option.RowsPerUnit = "1",
    published: option.PublishOptions,
    theory: TheoryOptions,
    simulations: Annotated[
        int,
        typer.Option("--simulations", help="Fits to made-up records, if the graph is given; 0 for noise alone.", min=0),
    ] = 5,
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
    from pgmpy_dp.learning.fine_grids import undivided
    from pgmpy_dp.learning.privacy_record import Privacy
    from pgmpy_dp.private.adjacency import Adjacency
    from pgmpy_dp.private.budget import unit_budget

    if holds_linked_schema(schema):
        of_one_table: dict[str, Any] = {
            **{"--structure": structure, "--target": target, "--edges": edges, "--edges-file": edges_file},
            **{f"--{name.replace('_', '-')}": value for name, value in vars(theory).items()},
            "--rows-per-unit": None if rows_per_unit == "1" else rows_per_unit,
            "--publish-if": published.publish_if,
        }
        for name, value in of_one_table.items():
            if value is not None:
                ask_for(name, str(value), "the schema is of linked tables, which are learned in one way; leave it out")
        plan_linked_tables(schema, n, spent, adjacency, as_json)
        return
    budget = unit_budget(spent.budget(), given_rows(rows_per_unit))
    public_schema = load_schema(schema)
    graph = given_graph(public_schema, edges, edges_file)
    if graph is not None and structure is not None:
        ask_for("--structure", str(structure), "the graph was passed too; pass one of them")
    asked = given_variable("--target", public_schema.variables, target)
    if asked is not None and (graph is not None or structure not in (None, option.Structure.LEARN)):
        ask_for("--target", str(target), "it is for a graph that learn is to find")
    require_asked_alone(published)
    if published.publish_if is not None and (graph is not None or structure not in (None, option.Structure.LEARN)):
        ask_for("--publish-if", str(published.publish_if), "it is for a graph that learn is to find")
    merged = [shown(name) for name in undivided(public_schema)]
    if structure == option.Structure.CHOW_LIU:
        public_schema.require_discrete(argument="--schema")
    declared, public_schema = public_schema, public_schema.fine()
    sizes = [public_schema.cardinality(name) for name in public_schema.variables]
    document: dict[str, Any] = {
        "variables": len(sizes),
        "budget": budget.guarantee.to_dict(),
        "n": n,
        "adjacency": str(adjacency),
    }
    lines = [f"{len(sizes)} variables with {min(sizes)} to {max(sizes)} states; {budget} under {adjacency}, n = {n:,}"]
    if public_schema.discovered:
        own = Privacy(budget.guarantee, Adjacency.parse(adjacency), "planned")
        whole = own.with_schema_of(public_schema.discovered)
        document["guarantee_with_schema"] = whole.told()["guarantee"]
        lines.append(f"with what discover cost, which the schema says: {whole}")
    if graph is not None or structure == option.Structure.INDEPENDENT:
        scopes = [(name,) for name in public_schema.variables] if graph is None else graph
        with progress(quiet):
            expected = _of_graph(public_schema, scopes, budget, adjacency, n, simulations)
    elif structure == option.Structure.CHOW_LIU:
        expected = _of_tree(public_schema, budget, adjacency, n)
    else:
        expected = _of_network(declared, budget, adjacency, n, merged, asked)
    document |= expected.facts
    lines += expected.lines
    document["tables"] = [table.to_dict(n) for table in expected.tables]
    if merged:
        lines.append(f"{', '.join(merged)}: cells of a fine grid, which are merged before larger tables are counted")
    if published.publish_if is not None:
        document["publish_if"], told = margin_lines(published, declared, spent.budget(), n, given_rows(rows_per_unit))
        lines += told
    lines += _worst_first(expected.tables, n)
    bounds = _bounds(len(sizes), max(sizes), theory, budget, n)
    document["theory"] = [entry for entry, _ in bounds]
    lines += ["", *(text for _, text in bounds)] if bounds else []
    show(document, "\n".join(lines), as_json)


def _worst_first(tables: list[_Table], n: int) -> list[str]:
    """The tables with the largest errors, one in a line, under a heading."""
    lines = ["", f"{'cells':>9}  {'noise per cell':>14}  {'expected error':>14}  {'learned':>8}  table"]
    worst = sorted(tables, key=lambda table: -table.error(n))
    for t in worst[:_SHOWN]:
        learned = "" if isnan(t.learned) else f"{t.learned:.4f}"
        lines.append(f"{t.cells:9,}  {t.noise.scale:14.1f}  {t.error(n):14.4f}  {learned:>8}  {t.what}")
    if len(worst) > _SHOWN:
        lines.append(f"... and {len(worst) - _SHOWN} tables with smaller errors; --json has them all")
    return lines


def _empty(schema: Schema, budget: Budget, adjacency: option.TableAdjacency, n: int) -> Any:
    """A table without records: a mechanism run on it tells its noise and no more."""
    import pandas as pd

    from pgmpy_dp.private.data.table import PrivateTable

    frame = pd.DataFrame({str(name): pd.Series([], dtype=object) for name in schema.variables})
    count = n if adjacency == option.TableAdjacency.REPLACE_ONE else None
    return PrivateTable(frame, schema, adjacency=str(adjacency), ledger=budget, n_records=count)


def _tables(release: Any) -> list[_Table]:
    return [
        _Table(" - ".join(map(shown, scope)), value.size, noise)
        for scope, value, noise in zip(release.scopes, release.values, release.noise, strict=True)
    ]


def _of_graph(
    schema: Schema, graph: Any, budget: Budget, adjacency: option.TableAdjacency, n: int, simulations: int
) -> _Expected:
    """A given graph, or the tables of single variables: fits to made-up records."""
    from pgmpy_dp.private.sensitive import Noise
    from pgmpy_dp.tables.preview import preview

    found = preview(
        schema, graph, budget, n, adjacency=str(adjacency), n_simulations=simulations, rows_per_unit=budget.rows
    )
    tables = [
        _Table(" - ".join(map(shown, scope)), int(row.cells), Noise(row.noise, row.scale), float(row.fitted))
        for scope, row in zip(found.table.index, found.table.itertuples(), strict=True)
    ]
    inference = {"width": found.inference.width, "memory_bytes": found.inference.memory_bytes}
    return _Expected(tables, str(found).splitlines(), {"inference": inference, "verdict": found.verdict})


def _of_tree(schema: Schema, budget: Budget, adjacency: option.TableAdjacency, n: int) -> _Expected:
    """The tree of an empty table is a random one; its largest tables stand for those of pairs not known yet."""
    from pgmpy_dp.estimators import PrivateChowLiu
    from pgmpy_dp.learning.options import settings_of
    from pgmpy_dp.tables.networks import spanning_tree

    settings = settings_of(PrivateChowLiu())
    tables = _tables(spanning_tree.run(_empty(schema, budget, adjacency, n), settings, budget))
    sizes = sorted((schema.cardinality(name) for name in schema.variables), reverse=True)
    single = [table for table in tables if " - " not in table.what]
    pairs = [table for table in tables if " - " in table.what]
    if pairs:
        noise = pairs[0].noise
        single.append(_Table("a pair, at most", sizes[0] * sizes[1], noise))
        single.append(_Table("a pair, at least", sizes[-1] * sizes[-2], noise))
    told = f"A tree: tables of {len(sizes)} variables, and of {len(sizes) - 1} pairs chosen by their noisy scores"
    return _Expected(single, [told])


def _of_network(
    schema: Schema, budget: Budget, adjacency: option.TableAdjacency, n: int, merged: list[str], target: Hashable
) -> _Expected:
    """A graph that is to be found: tables of single variables, and the smallest and the largest pair."""
    from pgmpy_dp.estimators import PrivateNetwork
    from pgmpy_dp.learning.fine_grids import fine_grained
    from pgmpy_dp.learning.options import settings_of
    from pgmpy_dp.private.adjacency import Adjacency
    from pgmpy_dp.tables.networks.budget_shares import network_shares
    from pgmpy_dp.tables.networks.search_size import network_size

    shares = network_shares(schema, Adjacency(str(adjacency)), settings_of(PrivateNetwork(target=target)), budget)
    size = network_size(shares, n)
    sizes = shares.sizes
    tables = [
        _Table(shown(name), states, noise)
        for name, states, noise in zip(schema.variables, sizes, shares.one_way_noise, strict=True)
    ]
    # Of a number that is not divided, cells are merged, nobody knows into how many.
    likely = [min(k, _MERGED) if str(name) in merged else k for name, k in zip(schema.variables, sizes, strict=True)]
    single, both = shares.foreseen(n, likely), shares.one_way + shares.rounds
    few = bool(shares.first_round) and single > _NEARLY_ALL * both
    of_star = [likely[i] * likely[j] for i, j in shares.candidates]
    star = shares.star(n, of_star)
    if star:
        cells, each = sorted(of_star), shares.noise(star, len(of_star))
        tables.append(_Table(f"a pair with {shown(target)}, at most", cells[-1], each))
        tables.append(_Table(f"a pair with {shown(target)}, at least", cells[0], each))
    if shares.first_round and star < shares.rounds:
        start = shares.start(n)
        each = shares.noise(start * (1 - shares.selecting(start, n, size.candidates)))
        cells = sorted(sizes[i] * sizes[j] for i, j in shares.candidates)
        tables += [_Table("a pair, at most", cells[-1], each), _Table("a pair, at least", cells[0], each)]
    lines = [
        f"Graph and parameters: tables of {len(sizes)} variables, then up to {size.rounds} tables of "
        f"two or more that are chosen in {size.fits} rounds; rounds get larger shares once they say nothing new",
        f"It takes {size}",
    ]
    if few:
        lines[0] = (
            f"A graph with hardly an edge is expected: {float(single / both):.0%} of the budget for the model would go "
            f"to tables of {len(sizes)} variables, measured twice, since those of two would drown in noise. Where "
            "dependence matters, pass fit a --workload with the sets of variables that it matters in, fewer variables "
            "or states, or more budget"
        )
    if star:
        part = "all" if star == shares.rounds else f"{float(star / shares.rounds):.0%}"
        chosen = "" if star == shares.rounds else f"; then up to {size.rounds} tables of sets with it are chosen"
        lines[0] = (
            f"Graph and parameters, to predict {shown(target)}: tables of {len(sizes)} variables, and of the "
            f"{len(of_star)} pairs with it, which get {part} of what is left{chosen}"
        )
    if shares.numbers:
        twice = ", ".join(map(shown, fine_grained(schema)))
        lines.append(
            f"{float(shares.numbers):.0%} of the budget is for second tables of {twice}, in cells that follow what the "
            "first say"
        )
    facts = {"rounds": size.rounds, "memory_bytes": size.memory_bytes, "seconds": size.seconds}
    return _Expected(tables, lines, facts | {"few_edges": few})


def _bounds(p: int, k: int, given: TheoryOptions, budget: Budget, n: int) -> list[tuple[dict[str, Any], str]]:
    """The bounds of the theorems for p variables of up to k states, where what they depend on was passed."""
    if given == TheoryOptions():
        return []
    from pgmpy_dp import theory

    if given.width is None:
        ask_for("--width", None, "--min-weight and --alpha need it: a public bound on the sum of weights at a variable")
    options = theory.plan(p, **vars(given), budget=budget, k=k)
    return [
        (
            {
                "goal": option.goal,
                "learner": option.learner,
                "lower": option.lower.value,
                "upper": None if option.upper is None else option.upper.value,
                "verdict": option.verdict(n),
            },
            f"{option}\n  {n:,} records: {option.verdict(n)}, with constant 1",
        )
        for option in options
    ]
