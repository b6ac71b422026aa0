"""Plans of what a budget will buy of one table, from public numbers: no record is read."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from math import isnan, nan, prod
from typing import Any

import pandas as pd

from pgmpy_dp.learning.display import Shown
from pgmpy_dp.learning.fine_grids import fine_grained, undivided
from pgmpy_dp.learning.options import settings_of
from pgmpy_dp.learning.privacy_record import Privacy
from pgmpy_dp.models.missing_at_random import driven_pairs
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.budget import Budget, unit_budget
from pgmpy_dp.private.data.table import PrivateTable
from pgmpy_dp.private.sensitive import Noise
from pgmpy_dp.schema import Schema
from pgmpy_dp.shown import quantity, shown
from pgmpy_dp.tables.networks import spanning_tree
from pgmpy_dp.tables.networks.budget_shares import network_shares
from pgmpy_dp.tables.networks.private_chow_liu import PrivateChowLiu
from pgmpy_dp.tables.networks.private_network import PrivateNetwork
from pgmpy_dp.tables.networks.search_size import network_size
from pgmpy_dp.tables.preview import preview

_SHOWN = 12
_MERGED = 4  # cells that a number has in tables of several variables, at least, where the budget is small

NoisyTable = tuple[str, int, Noise]
"""What a noisy table is of, its cells, and its noise."""


@dataclass(frozen=True, eq=False, repr=False)
class Plan(Shown):
    """A plan of what a budget will buy; ``str`` of it is a summary to read.

    Attributes
    ----------
    table : pandas.DataFrame
        A row for each noisy table, by what it is of: ``cells``; ``noise`` and ``scale`` of each cell;
        ``expected_error``, the total variation that noise alone adds, at most 1; and for a graph that was passed
        ``learned``, that of the model's table. Of scores a row for each: see :func:`pgmpy_dp.plan`.
    n : int
        The assumed number of records, or of parents.
    budget : Budget
        What is spent.
    facts : dict
        The facts for programs beside these: sizes, warnings, margins of a test, bounds of theory.
    text : str
        The summary for a person.
    details : Preview, LinkedPlan, NetworkSize or None
        The plan in full, in the class for what is learned.
    """

    table: pd.DataFrame
    n: int
    budget: Budget
    facts: dict[str, Any]
    text: str
    details: Any = None

    def to_dict(self) -> dict[str, Any]:
        """The facts for programs, as JSON can hold them."""
        return {"budget": self.budget.guarantee.to_dict(), "n": self.n, **self.facts}

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Plan({quantity(self.table, 'row')} under {self.budget}, n={self.n:,}; print it)"


def expected_errors(tables: Iterable[NoisyTable], n: int) -> pd.DataFrame:
    """A row for each noisy table of n records, as :class:`Plan` has them."""
    tables = list(tables)
    rows = [
        (cells, noise.distribution, noise.scale, min(1.0, cells * noise.mean_size / (2 * n)))
        for _, cells, noise in tables
    ]
    index = pd.Index([what for what, *_ in tables], name="table")
    return pd.DataFrame(rows, index=index, columns=["cells", "noise", "scale", "expected_error"])


def worst_first(table: pd.DataFrame, most: int | None = None) -> list[str]:
    """The tables with the largest errors, one in a line, under a heading."""
    learned = "learned" in table
    heading = f"{'cells':>9}  {'noise per cell':>14}  {'expected error':>14}" + f"  {'learned':>8}" * learned
    lines = ["", f"{heading}  table"]
    for what, row in table.sort_values("expected_error", ascending=False, kind="stable").iloc[:most].iterrows():
        told = f"  {'' if isnan(row.learned) else f'{row.learned:.4f}':>8}" if learned else ""
        lines.append(f"{row.cells:9,}  {row.scale:14.1f}  {row.expected_error:14.4f}{told}  {what}")
    if most is not None and len(table) > most:
        lines.append(
            f"... and {quantity(len(table) - most, 'table')} with smaller errors; .table and --json have them all"
        )
    return lines


_Expected = tuple[pd.DataFrame, list[str], dict[str, Any], Any]
"""What a fit is expected to measure, what a person and a program are told of it, and what it was made of."""


def plan_table(schema: Schema, spent: Budget, n: int, graph: Any, requested: Mapping[str, Any]) -> Plan:
    """Plan the learning of one table.

    Parameters
    ----------
    schema, graph
        As :func:`pgmpy_dp.plan` takes them.
    spent : Budget
    n : int
    requested : mapping
        Its other arguments, those that were passed.
    """
    rows_per_unit, criteria = requested.get("rows_per_unit", 1), requested.get("criteria")
    budget, declared = unit_budget(spent, rows_per_unit), schema
    adjacency = str(Adjacency.parse(requested.get("adjacency", "add_remove"), allowed=("add_remove", "replace_one")))
    merged, schema = [shown(name) for name in undivided(declared)], declared.fine()
    sizes = [schema.cardinality(name) for name in schema.variables]
    facts: dict[str, Any] = {"variables": len(sizes), "adjacency": adjacency}
    lines = [
        f"{quantity(sizes, 'variable')} with {min(sizes)} to {quantity(max(sizes), 'state')}; {budget} under "
        f"{adjacency}, n = {n:,}"
    ]
    if schema.discovered:
        whole = Privacy(budget.guarantee, Adjacency.parse(adjacency), "planned").with_schema_of(schema.discovered)
        facts["guarantee_with_schema"] = whole.told()["guarantee"]
        lines.append(f"with what discover cost, which the schema says: {whole}")
    if graph is not None:
        table, told, further, details = _of_graph(schema, graph, budget, adjacency, n, requested)
    elif requested.get("structure") == "chow-liu":
        declared.require_discrete(argument="schema")
        table, told, further, details = _of_tree(schema, budget, adjacency, n)
    else:
        table, told, further, details = _of_network(declared, budget, adjacency, n, merged, requested)
    lines += told
    if merged:
        lines.append(f"{', '.join(merged)}: cells of a fine grid, which are merged before larger tables are counted")
    if criteria is not None:
        from pgmpy_dp.tables.publishing.noisy_test import CHANCE
        from pgmpy_dp.tables.publishing.publish_if import preview_publish_if

        share = requested["test_share"]
        margins = preview_publish_if(criteria, n, spent, declared, test_share=share, rows_per_unit=rows_per_unit)
        facts["publish_if"] = margins.astype(object).where(margins.notna(), None).to_dict("records")
        lines.append(
            f"Published only if, by a test that takes {100 * share:g} % of the budget (wrong with a probability "
            f"below {CHANCE:g} where an error is further from its bound than the margin):"
        )
        unknown = "depends on the model: plan(model, budget, n, formula=...)"
        for row in margins.itertuples():
            lines.append(f"  {row.criterion}; margin {unknown if isnan(row.margin) else f'{row.margin:.3g}'}")
    table = table if "learned" in table else table.assign(learned=nan)
    rows = table.rename(columns={"learned": "expected_error_learned"}).reset_index().astype(object)
    facts |= further | {"tables": rows.where(rows.notna(), None).to_dict("records")}
    facts["theory"], bounds = _bounds(len(sizes), max(sizes), budget, n, requested)
    text = "\n".join([*lines, *worst_first(table, _SHOWN), *bounds])
    return Plan(table, n, spent, facts, text, details)


def _bounds(p: int, k: int, budget: Budget, n: int, requested: Mapping[str, Any]) -> tuple[list[dict], list[str]]:
    """The bounds of the theorems for p variables of up to k states, where what they depend on was passed."""
    limits = {name: requested[name] for name in ("width", "min_weight", "alpha") if name in requested}
    if not limits:
        return [], []
    from pgmpy_dp import theory

    if "width" not in limits:
        raise ValueError("width=None: min_weight and alpha need it: a public bound on the sum of weights at a variable")
    options = theory.plan(p, **limits, budget=budget, k=k)
    facts = [
        {
            "goal": option.goal,
            "learner": option.learner,
            "lower": option.lower.value,
            "upper": None if option.upper is None else option.upper.value,
            "verdict": option.verdict(n),
        }
        for option in options
    ]
    told = [f"{option}\n  {quantity(n, 'record')}: {option.verdict(n)}, with constant 1" for option in options]
    return facts, ["", *told]


def _named(scope: Iterable[Hashable]) -> str:
    return " - ".join(map(shown, scope))


def _of_graph(
    schema: Schema, graph: Any, budget: Budget, adjacency: str, n: int, requested: Mapping[str, Any]
) -> _Expected:
    """Plan parameters on a graph, or one-way tables, by fits to made-up records."""
    how: dict[str, Any] = {name: requested.get(name) for name in ("estimator", "model", "random_state")}
    how |= {"adjacency": adjacency, "n_simulations": requested.get("simulations", 5), "rows_per_unit": budget.rows}
    simulated = preview(schema, graph, budget, n, **how)
    rows = simulated.table
    tables = [
        (_named(scope), int(row.cells), Noise(row.noise, row.scale))
        for scope, row in zip(rows.index, rows.itertuples(), strict=True)
    ]
    frame = expected_errors(tables, n).assign(learned=rows["fitted"].to_numpy())
    inference = {"width": simulated.inference.width, "memory_bytes": simulated.inference.memory_bytes}
    return frame, str(simulated).splitlines(), {"inference": inference, "verdict": simulated.verdict}, simulated


def _of_tree(schema: Schema, budget: Budget, adjacency: str, n: int) -> _Expected:
    """Plan a tree: without records it is a random one, whose largest tables stand for pairs not known yet."""
    frame = pd.DataFrame({str(name): pd.Series([], dtype=object) for name in schema.variables})
    count = n if adjacency == "replace_one" else None
    empty = PrivateTable(frame, schema, adjacency=adjacency, ledger=budget, n_records=count)
    release: Any = spanning_tree.run(empty, settings_of(PrivateChowLiu()), budget)
    released = list(zip(release.scopes, release.values, release.noise, strict=True))
    tables = [(_named(scope), value.size, noise) for scope, value, noise in released if len(scope) == 1]
    sizes = sorted((schema.cardinality(name) for name in schema.variables), reverse=True)
    for noise in [noise for scope, _, noise in released if len(scope) > 1][:1]:
        tables.append(("a pair, at most", sizes[0] * sizes[1], noise))
        tables.append(("a pair, at least", sizes[-1] * sizes[-2], noise))
    told = f"A tree: tables of {quantity(sizes, 'variable')}, {quantity(len(sizes) - 1, 'pair')} chosen by noisy scores"
    return expected_errors(tables, n), [told], {}, None


def _of_network(
    schema: Schema, budget: Budget, adjacency: str, n: int, merged: list[str], requested: Mapping[str, Any]
) -> _Expected:
    """Plan a network: its one-way tables, those required, and the smallest and the largest pair."""
    options = {name: value for name, value in requested.items() if name in PrivateNetwork.__dataclass_fields__}
    learner = PrivateNetwork(**options)._as_checked()
    learner._check()
    schema = schema.with_differences()
    learner._check_names(schema)
    learner._check_schema(schema)
    settings, target = learner._options, learner.target
    pairs = driven_pairs(settings.missing_at_random or {})
    settings = settings.but(required_edges=(*(settings.required_edges or ()), *pairs))
    shares = network_shares(schema, Adjacency(adjacency), settings, budget)
    size, sizes, names = network_size(shares, n), shares.sizes, schema.variables
    tables = [
        (shown(name), states, noise) for name, states, noise in zip(names, sizes, shares.one_way_noise, strict=True)
    ]
    # Of a number that is not divided, cells are merged, nobody knows into how many.
    likely = [min(k, _MERGED) if shown(name) in merged else k for name, k in zip(names, sizes, strict=True)]
    for scope in shares.required:
        cells = prod(likely[i] for i in scope)
        tables.append((_named(names[i] for i in scope), cells, shares.noise(shares.each_required)))
    of_star = [likely[i] * likely[j] for i, j in shares.candidates]
    star = shares.first_star(n, of_star, shares.rounds)
    start = min(shares.start(n, likely), shares.allowance(shares.rounds)) if shares.first_round else shares.first_round
    few = bool(start) and shares.adaptive and shares.drowned(start, 1, min(of_star), n)
    if star:
        ordered, each = sorted(of_star), shares.noise(star, len(of_star))
        tables.append((f"a pair with {shown(target)}, at most", ordered[-1], each))
        tables.append((f"a pair with {shown(target)}, at least", ordered[0], each))
    if start:
        each = shares.noise(start * (1 - shares.selecting(start, n, size.candidates)))
        ordered = sorted(sizes[i] * sizes[j] for i, j in shares.candidates)
        tables += [("a pair, at most", ordered[-1], each), ("a pair, at least", ordered[0], each)]
    lines = [
        f"Graph and parameters: tables of {quantity(sizes, 'variable')}, then up to {quantity(size.rounds, 'table')} "
        f"of two or more, chosen in {quantity(size.fits, 'round')}; rounds get larger shares once they say nothing new",
        f"It takes {size}",
    ]
    if few:
        lines[0] = (
            f"A graph without an edge is expected: nearly all of the budget for the model would go to tables of "
            f"{quantity(sizes, 'variable')}, measured twice, since those of two would drown in noise. Where dependence "
            "matters, pass a workload with the sets of variables that it matters in, fewer variables or states, or "
            "more budget"
        )
    if star:
        lines[0] = (
            f"Graph and parameters, to predict {shown(target)}: tables of {quantity(sizes, 'variable')}, and of the "
            f"{quantity(of_star, 'pair')} with it, which get {float(star / shares.rounds):.0%} of what is left, "
            f"and more if that pays; then up to {quantity(size.rounds, 'table')} of sets with it are chosen"
        )
    if shares.numbers:
        twice = ", ".join(map(shown, fine_grained(schema)))
        lines.append(
            f"{float(shares.numbers):.0%} of the budget is for second tables of {twice}, in cells that follow what the "
            "first say"
        )
    if shares.means:
        listed = ", ".join(map(shown, settings.means))
        lines.append(f"{float(shares.means):.0%} of the budget is for the means of {listed}, by clipped sums")
    facts = {"rounds": size.rounds, "memory_bytes": size.memory_bytes, "seconds": size.seconds, "few_edges": few}
    return expected_errors(tables, n), lines, facts, size
