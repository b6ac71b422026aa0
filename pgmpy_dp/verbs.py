"""The verbs: discover, check, plan, learn, publish_if; of one table, or of parents with their children.

Each takes one table or linked ones. Tables are linked if a `LinkedSchema`, `PrivateLinkedTables`, `children` or a `key`
says so. An argument that is None was not passed; `FOR` says what each argument is for.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import chain, combinations
from typing import TYPE_CHECKING, Any

import networkx as nx

from pgmpy_dp.checks import ArgumentError, checked_integer, require_choice
from pgmpy_dp.learning.collective_base import BaseMarginalsEstimator
from pgmpy_dp.learning.graph_base import graph_on
from pgmpy_dp.learning.prior import prior_of
from pgmpy_dp.learning.privacy_record import handed_over
from pgmpy_dp.learning.probe_tables import probe_tables
from pgmpy_dp.linked.operators.linked_schema import LinkedSchema
from pgmpy_dp.linked.operators.linked_tables import PrivateLinkedTables
from pgmpy_dp.private.budget import Budget, require_budget
from pgmpy_dp.private.data.columns import in_their_order
from pgmpy_dp.private.data.table import PrivateTable
from pgmpy_dp.private.ledger import Ledger
from pgmpy_dp.private.sensitive import Release
from pgmpy_dp.schema import Schema
from pgmpy_dp.tables import discovery
from pgmpy_dp.tables.collective.collective_em import CollectiveEM
from pgmpy_dp.tables.collective.collective_map import CollectiveMAP
from pgmpy_dp.tables.collective.naive_mle import NaiveMLE
from pgmpy_dp.tables.discovery import Discovery
from pgmpy_dp.tables.networks.private_chow_liu import PrivateChowLiu
from pgmpy_dp.tables.networks.private_network import PrivateNetwork
from pgmpy_dp.tables.schema_check import SchemaCheck, check_schema
from pgmpy_dp.tables.table_plan import Plan, plan_table

if TYPE_CHECKING:
    from pgmpy_dp.linked.family_check import FamilyCheck
    from pgmpy_dp.linked.linked_discovery import LinkedDiscovery
    from pgmpy_dp.tables.publishing.publish_if import Decision

_PARAMETERS = {"collective-map": CollectiveMAP, "naive-mle": NaiveMLE, "collective-em": CollectiveEM}

LINKED, LEARNED, TREE, GIVEN, SCORED = "linked", "learned graph", "tree", "given graph", "scored model"
STRUCTURES = {"learn": LEARNED, "chow-liu": TREE, "independent": GIVEN}
ONE_TABLE = {LEARNED, TREE, GIVEN}
_SEARCH = (
    *("required_edges", "forbidden_edges", "merge_rare", "max_order", "number_share", "optimise", "target"),
    *("missing_at_random", "criteria", "means", "mean_share"),
)
_BOTH = ("max_clique_cells", "n_rounds", "one_way_share", "selection_share", "probe_share")
_A_SEARCH = "it is for a graph that learn is to find; leave it out"
_A_GRAPH = "it is for a graph that is given, or has no edges; leave it out"
_ONE = "it is for one table; leave it out"

FOR: Mapping[str, tuple[set[str], str]] = {
    **dict.fromkeys(("children", "key", "siblings"), ({LINKED}, "it is for linked tables; leave it out")),
    **dict.fromkeys(("graph", "structure", "prior", "simulations"), (ONE_TABLE, _ONE)),
    "impossible": ({*ONE_TABLE, LINKED}, _ONE),
    **dict.fromkeys(("width", "min_weight", "alpha"), (ONE_TABLE, _ONE)),
    **dict.fromkeys(("unit", "rows_per_unit"), ({*ONE_TABLE, SCORED}, _ONE)),
    **dict.fromkeys(_SEARCH, ({LEARNED}, _A_SEARCH)),
    **dict.fromkeys(_BOTH, ({LEARNED, LINKED}, _A_SEARCH)),
    **dict.fromkeys(("public", "public_from"), ({LEARNED, GIVEN}, "it is for a model of one table; leave it out")),
    "workload": ({LEARNED, SCORED}, _A_SEARCH),
    **dict.fromkeys(("estimator", "model"), ({GIVEN}, _A_GRAPH)),
    **dict.fromkeys(("formula", "family", "success", "scores", "rounds", "weight"), ({SCORED}, "it is for a model")),
    **dict.fromkeys(("worst", "each", "level"), ({SCORED}, "it is for the scores of a model; leave it out")),
}
"""The cases that each argument is for, and what is said where it is passed for something else."""

_BESIDE = (
    "linked tables are learned in one way, and do not take it: pairs of columns of a child and of two children are "
    "measured in any case, and rounds choose among all others alike. Drop it; for a target among columns of one table "
    "join both and learn(joined, ..., unit=key, rows_per_unit='shares', target=...)"
)
_OF_LINKED = {
    "target": _BESIDE,
    "workload": _BESIDE,
    "criteria": "models of linked tables are not tested; leave it out",
    "unit": "the schema of linked tables names the key; leave it out",
    "rows_per_unit": "all children of a parent count together; leave it out",
}


def require_for(case: str, passed: Mapping[str, Any]) -> None:
    """Refuse the first argument that is not for tables, or a model, of this kind.

    Raises
    ------
    ArgumentError
    """
    for name, value in passed.items():
        cases, remedy = FOR.get(name, ({case}, ""))
        if case in cases:
            continue
        if case == LINKED:
            remedy = _OF_LINKED.get(name, "linked tables are learned in one way; leave it out")
        raise ArgumentError(name, value, remedy)


def _passed(arguments: Mapping[str, Any], *without: str) -> dict[str, Any]:
    """Arguments that are not None, by name."""
    return {name: value for name, value in arguments.items() if value is not None and name not in without}


def case_of(tables: Any, schema: Any, passed: Mapping[str, Any]) -> str:
    """Tell linked tables from one table, and where the graph comes from; refuses arguments that are not for it."""
    structure = passed.get("structure")
    if (
        isinstance(tables, PrivateLinkedTables)
        or isinstance(schema, LinkedSchema)
        or passed.keys() & {"children", "key"}
    ):
        case = LINKED
    elif structure is None:
        case = LEARNED if passed.get("graph") is None else GIVEN
    else:
        require_choice("structure", structure, tuple(STRUCTURES))
        if "graph" in passed:
            raise ArgumentError("structure", structure, "the graph was passed too; pass one of them")
        case = STRUCTURES[structure]
    require_for(case, passed)
    return case


def check(
    df: Any,
    budget: Budget,
    schema: Any = None,
    *,
    children: Any = None,
    key: Hashable = None,
    adjacency: str | None = None,
    n_records: int | None = None,
    random_state: int | None = None,
    unit: Hashable = None,
    rows_per_unit: int | str | None = None,
) -> SchemaCheck | FamilyCheck:
    """Check how many records match a schema, or what linked tables hold, for a small share of a budget, before a fit.

    A fit silently leaves out whatever its schema does not declare, and spends its whole budget on the rest.

    Parameters
    ----------
    df, schema, children, key, unit, rows_per_unit
        As `learn` takes them.
    budget : Budget
        What the check spends, e.g. ``Budget(epsilon=0.05)``.
    adjacency, n_records, random_state
        As :class:`~pgmpy_dp.estimators.PrivateNetwork` takes them; of linked tables the public number of parents.

    Returns
    -------
    SchemaCheck or FamilyCheck

    Raises
    ------
    TypeError, ValueError
        For public arguments that cannot be used, before anything is spent.
    BudgetExceeded
        If the ledger does not have the budget left; nothing is spent.

    Notes
    -----
    Privacy: :func:`~pgmpy_dp.tables.schema_check.run` has the proof for one table, and
    :mod:`pgmpy_dp.linked.family_check` for linked ones.

    Examples
    --------
    >>> import pandas as pd
    >>> data = pd.DataFrame({"sex": ["F", "M"] * 10_000, "age": [30, 60] * 10_000})
    >>> result = check(data, Budget(epsilon=0.05), {"sex": ["F", "M"], "age": ["30-59", "60-89"]})
    >>> result.table["verdict"].to_dict(), result.poor
    ({'sex': 'all', 'age': 'nothing'}, ['age'])
    """
    passed = _passed(locals(), "df", "budget", "schema")
    if case_of(df, schema, passed) == LINKED:
        from pgmpy_dp.linked.family_check import check_linked

        return check_linked(df, passed.pop("children", None), budget, schema, **passed)
    return check_schema(df, budget, schema, **passed)


def discover(
    df: Any,
    variables: Mapping[Any, Any],
    budget: Budget,
    *,
    children: Any = None,
    ledger: Ledger | Budget | None = None,
    missing: Mapping[Any, Iterable] | Iterable = (),
    strip: bool | Iterable[Hashable] = False,
    casefold: bool | Iterable[Hashable] = False,
    recode: Mapping[Any, Mapping[Any, Any]] | None = None,
    codes: bool | Iterable[Hashable] | None = None,
    impossible: Iterable[str | Mapping] = (),
    other: Hashable | None = "other",
    max_categories: int = 100,
    max_length: int = 100,
    bins: int | None = None,
    adjacency: str | None = None,
    n_records: int | None = None,
    random_state: int | None = None,
    unit: Hashable = None,
) -> Discovery | LinkedDiscovery:
    """Discover a schema for columns whose values nobody has listed, for a share of a budget.

    Reading a list of categories off the records would tell of the one person who has a rare one. This finds the
    categories that many records have, and with `bins` cuts numbers where about equally many records lie between two.

    Parameters
    ----------
    df : dataframe, path or None
        As `learn` takes it: of linked tables the parents.
    variables : mapping of hashable to declaration
        All columns of the schema, in its order. ``"categories"`` declares a column whose categories are to be found. A
        :class:`~pgmpy_dp.Number` or Date without cuts and bins has its cuts found within its bounds, if `bins` is
        passed. Anything else, a list of states or a Number with cuts, goes to the schema as it is and costs nothing.
        For linked tables, the arguments of :class:`~pgmpy_dp.LinkedSchema` by name: ``{"parent": {...}, "child": {...},
        "key": "household", "most": 6}``, whose columns are declared in the same way.
    budget : Budget
        What this spends. For categories it needs a delta: ``Budget(epsilon=0.2, delta=1e-8)``. The count of each
        category has noise, and the threshold for categories grows with the number of columns.
    children : dataframe or path, optional
        The children of linked tables.
    ledger : Ledger or Budget, optional
        What everything together may spend on these records: pass the same Ledger to the
        :class:`~pgmpy_dp.PrivateTable` that is learned from. Default: a ledger of its own.
    missing, strip, casefold, recode
        How cells are read, as for :class:`~pgmpy_dp.Schema`, which keeps them. A category that `recode` names as
        a target is in the schema whether it is found or not. Of linked tables a column may have its table's name before
        it, ``"person.age"``.
    codes : bool or list of names, optional
        Columns of codes, as for :class:`~pgmpy_dp.Schema`: cells are compared, and categories listed, as they are
        written. Categories of text files, and of columns that are declared to hold texts (not of frames whose library
        guesses types), are codes by default; names are of further ones. False: none; True: all categories.
    impossible : iterable of str or mapping, optional
        Rules of the schema about columns that have states or cuts; of linked tables by table: ``{"person": [...]}``.
    other : hashable, optional
        State of every cell without a category: rare ones, missing ones where these are rare, and those whose texts are
        too long. A category of this name is the same state. None: records with such a cell do not count in fits.
    max_categories : int
        Of each column; the most frequent ones, by their noisy counts.
    max_length : int
        A longer text is no category; nor is one with signs that are not printable.
    bins : int, optional
        About how many cells a column of numbers gets. A single value that more than ``1/bins`` of the records have
        gets a cell of its own, where the resolution says what a value is. Default: numbers stay undivided and cost
        nothing here. `learn` and the learners of a given graph merge the cells of a fine grid themselves, which keeps
        more; cuts are for learners that cannot.
    adjacency : {"add_remove", "replace_one"}, optional
        Default: that of the Ledger, or "add_remove".
    n_records : int, optional
        The public number of records, or of parents, where there is one; "replace_one" needs it.
    random_state : int, optional
        Tests and benchmarks only: reproducible noise protects nobody.
    unit : hashable, optional
        Column of `df` that says whose record it is. Then persons are protected, each with all of its records, as by the
        `unit` of a fit with this schema. One record of each person counts, drawn at random, with the noise and the
        threshold of single records: the categories are those of many *persons*. Records without a person are dropped;
        `n_records` is the public number of persons. The unit of linked tables is the key, and so in each table.

    Returns
    -------
    Discovery or LinkedDiscovery

    Raises
    ------
    TypeError, ValueError
        For public arguments that cannot be used, a budget without a delta where categories are to be found among them,
        before anything is spent.
    BudgetExceeded
        If the ledger does not have the budget left; nothing is spent.

    Warns
    -----
    FewRecordsWarning
        Where the estimated number of records is next to nothing, or a column has no category that enough records have.

    Notes
    -----
    Privacy: the only access to the records is the release of :mod:`pgmpy_dp.tables.category_search`, which has the
    proof; linked tables have one for each, and both charge one ledger. Each spelling of a category counts by itself. Of
    those that reach the threshold and count as one (``"7"`` and ``"7.0"`` where they are no codes), the label is the
    one with the highest noisy count. Whatever is made of noisy counts, cuts included, is
    post-processing.

    The schema is no longer a public fact: whoever uses it owes its cost too. In one ledger both costs add up.

    Bias: cuts are at quantiles of noisy counts, so cells hold equally many records up to noise of about ``sd`` times
    the root of the number of fine cells in them. The count of a category that is barely found is too large
    (it is one that noise has lifted).

    Examples
    --------
    >>> import pandas as pd
    >>> from pgmpy_dp import Number
    >>> data = pd.DataFrame({"job": ["nurse", "baker "] * 9_999 + ["astronaut"] * 2, "age": [30, 60] * 10_000})
    >>> variables = {"job": "categories", "age": Number(0, 120, resolution=1)}
    >>> discovery = discover(data, variables, Budget(epsilon=0.5, delta=1e-8), strip=True)
    >>> discovery.schema["job"], discovery.schema.other["job"]
    (('baker', 'nurse', 'other'), 'other')
    """
    options = {name: value for name, value in locals().items() if name not in ("df", "variables", "budget", "children")}
    unit, ledger = options.pop("unit"), options.pop("ledger")
    if not isinstance(variables, Mapping) or not isinstance(variables.get("child"), Mapping):
        require_for(LEARNED, _passed({"children": children}))
        return discovery.discover_columns(df, variables, budget, ledger, **options, unit=unit)
    from pgmpy_dp.linked.linked_discovery import discover_linked

    require_for(LINKED, _passed({"unit": unit}))
    reading = {name: options.pop(name) for name in ("missing", "strip", "casefold", "recode", "codes", "impossible")}
    return discover_linked(df, children, budget, ledger, variables, reading, **options)


def plan(
    schema: Any,
    budget: Budget,
    n: int,
    *,
    key: Hashable = None,
    graph: Any = None,
    structure: str | None = None,
    estimator: str | BaseMarginalsEstimator | None = None,
    adjacency: str | None = None,
    rows_per_unit: int | str | None = None,
    required_edges: list[tuple] | None = None,
    forbidden_edges: list[tuple] | None = None,
    max_clique_cells: int | None = None,
    n_rounds: int | None = None,
    one_way_share: float | None = None,
    selection_share: float | None = None,
    probe_share: float | None = None,
    merge_rare: bool | None = None,
    max_order: int | None = None,
    workload: Any = None,
    prior: Any = None,
    target: Hashable = None,
    number_share: float | None = None,
    optimise: str | None = None,
    means: list | None = None,
    mean_share: float | None = None,
    missing_at_random: Any = None,
    siblings: int | str | None = None,
    criteria: Any = None,
    test_share: float = 0.1,
    model: Any = None,
    simulations: int | None = None,
    random_state: int | None = None,
    width: float | None = None,
    min_weight: float | None = None,
    alpha: float | None = None,
    worst: bool | None = None,
    each: bool | None = None,
    level: float | None = None,
    formula: str | Sequence[str] | None = None,
    family: str | None = None,
    success: Hashable = None,
    scores: Mapping[Hashable, Mapping[Hashable, float]] | None = None,
    rounds: int | None = None,
    weight: Hashable = None,
) -> Plan:
    """Plan what a budget will buy, from public numbers: sizes, noise and expected errors; no record is read.

    Parameters
    ----------
    schema : Schema, dict of variable to list of states, LinkedSchema, or a model
        Of the tables that `learn` would learn from. For a model (one of pgmpy's or of this package's, a fitted
        estimator, or the path of a model's file) the plan says how wide the intervals of
        :func:`pgmpy_dp.score_model` would be.
    budget : Budget
        What would be spent.
    n : int
        The assumed number of records, or of parents: a public guess.
    key, graph, structure, estimator, adjacency, rows_per_unit, required_edges, forbidden_edges, max_clique_cells, \
n_rounds, one_way_share, selection_share, probe_share, merge_rare, max_order, workload, prior, target, number_share, \
optimise, means, mean_share, missing_at_random, siblings
        As `learn` takes them; `workload` as `score_model` does, too.
    criteria, test_share
        As `publish_if` takes them: how sharp its test is.
    model : MarkovNetwork or LogLinearModel, optional
        *Public*: a model that the records might be like, for a fit on a given graph. Default: random models.
    simulations : int, optional
        How many fits to made-up records there are, on a given graph; default 5, 0 for noise alone.
    random_state : int, optional
        For repeatable simulations.
    width, min_weight, alpha : float, optional
        For bounds of theory: see :func:`pgmpy_dp.theory.plan`.
    worst, each, level
        As `score_model` takes them.
    formula, family, success, scores, rounds, weight
        As `MarkovNetwork.regress` takes them: then the plan for a model is how wide the intervals of coefficients
        would be.

    Returns
    -------
    Plan

    Raises
    ------
    TypeError, ValueError
        For what a fit would refuse.

    Notes
    -----
    It takes no records and no ledger. docs/preview.md has predictions against measurements.

    Examples
    --------
    >>> preview = plan({"sex": ["F", "M"], "ill": ["no", "yes"]}, Budget(epsilon=1.0, delta=1e-9), 20_000)
    >>> preview.table.loc["a pair, at most", "cells"], preview.facts["few_edges"]
    (np.int64(4), False)
    >>> preview = plan({"sex": ["F", "M"], "ill": ["no", "yes"]}, Budget(epsilon=1.0), 20_000, graph=[("sex", "ill")])
    >>> preview.table["scale"].round(3).tolist(), preview.details.method
    ([1.0], 'CollectiveMAP')
    """
    passed = _passed(locals(), "schema", "budget", "n", "test_share")
    require_budget(budget)
    n = checked_integer("n", n, 1)
    if not isinstance(schema, Schema | LinkedSchema | Mapping):
        from pgmpy_dp.models.model_score import ScoredModel, plan_score
        from pgmpy_dp.models.regression.declared_analyses import plan_regression

        require_for(SCORED, passed)
        passed.pop("random_state", None)
        planned, model = (plan_regression, ScoredModel.of(schema)) if "formula" in passed else (plan_score, schema)
        table, facts, text = planned(model, n, budget, **passed)
        return Plan(table, n, budget, facts, text)
    case = case_of(None, schema, passed)
    if case == LINKED:
        from pgmpy_dp.linked.linked_plan import plan_linked

        preview = plan_linked(schema, budget, n, **passed)
        return Plan(preview.table, n, budget, preview.facts(), str(preview), preview)
    assert not isinstance(schema, LinkedSchema)
    schema = Schema.coerce(schema, "schema")
    if case == GIVEN:
        graph = graph_on(schema.variables, ()) if graph is None else graph
        passed["estimator"] = _estimator(estimator, prior)
    elif case == TREE:
        _take_prior(PrivateChowLiu(), prior)
    return plan_table(schema, budget, n, graph, {**passed, "test_share": test_share})


def learn(
    df: Any,
    budget: Budget,
    schema: Any = None,
    *,
    children: Any = None,
    key: Hashable = None,
    graph: Any = None,
    structure: str | None = None,
    estimator: str | BaseMarginalsEstimator | None = None,
    adjacency: str | None = None,
    n_records: int | None = None,
    random_state: int | None = None,
    unit: Hashable = None,
    rows_per_unit: int | str | None = None,
    required_edges: list[tuple] | None = None,
    forbidden_edges: list[tuple] | None = None,
    max_clique_cells: int | None = None,
    n_rounds: int | None = None,
    one_way_share: float | None = None,
    selection_share: float | None = None,
    probe_share: float | None = None,
    merge_rare: bool | None = None,
    max_order: int | None = None,
    workload: Any = None,
    prior: Any = None,
    target: Hashable = None,
    number_share: float | None = None,
    optimise: str | None = None,
    means: list | None = None,
    mean_share: float | None = None,
    missing_at_random: Any = None,
    siblings: int | str | None = None,
    public: Mapping[Any, Any] | None = None,
    public_from: str | None = None,
    draws: int | None = None,
) -> Any:
    """Learn a model of a table, or of parents with their children, under one budget.

    Parameters
    ----------
    df : dataframe, path, PrivateTable, PrivateLinkedTables or None
        The records: anything with columns, or files. Of linked tables the parents; None where the schema has none.
        One file with several records of each person is passed alone, with `key`.
    budget : Budget
    schema : Schema, dict of variable to list of states, or LinkedSchema
        Public description of the data; required unless `df` is private data, which have one.
    children : dataframe or path, optional
        The children of linked tables.
    key : hashable, optional
        For one file, whose `schema` is that of its columns: the column that says whose record it is. Up to eight
        records of each value count together, and are learned as children without parents.
    graph : networkx.Graph, Bayesian network, or list of tuple of variables, optional
        A public graph, whose parameters alone are learned. Default: the graph is learned too.
    structure : {"learn", "chow-liu", "independent"}, optional
        Where the graph comes from if none is passed.
    estimator : {"collective-map", "naive-mle", "collective-em"}, or CollectiveMAP, CollectiveEM or NaiveMLE, optional
        How parameters of a given graph are learned. An estimator gives its options, apart from budget, states,
        adjacency and number of records.
    adjacency, n_records, random_state, required_edges, forbidden_edges, max_clique_cells, n_rounds, one_way_share, \
selection_share, probe_share, merge_rare, max_order, workload, prior, target, number_share, optimise, means, \
mean_share, missing_at_random
        As :class:`~pgmpy_dp.estimators.PrivateNetwork` takes them.
    unit, rows_per_unit
        Of persons with several records, as :meth:`~pgmpy_dp.estimators.PrivateNetwork.fit` takes them.
    siblings
        Of linked tables, as :class:`~pgmpy_dp.linked.PrivateLinkedNetwork` takes them.
    public, public_from
        Counts from elsewhere that the model shall have exactly, as :class:`~pgmpy_dp.estimators.CollectiveMAP` takes
        them.
    draws : int, optional
        Posterior draws that the model keeps, for intervals; for example 30.

    Returns
    -------
    PrivateNetwork, PrivateChowLiu, PrivateLinkedNetwork, or the estimator of a given graph
        Fitted: ``.model_``, ``.privacy_``, ``.release_``; ``str`` of it says what was learned.

    Raises
    ------
    TypeError, ValueError
        As the estimator's `fit`, before anything is spent.
    BudgetExceeded
        If the ledger of private data does not allow the budget; nothing is spent.

    Notes
    -----
    Privacy and method (McKenna, Mullins, Sheldon and Miklau 2022): see :class:`~pgmpy_dp.estimators.PrivateNetwork`.

    Examples
    --------
    >>> import pandas as pd
    >>> data = pd.DataFrame({"rain": ["no"] * 700 + ["yes"] * 300, "wet": ["no"] * 600 + ["yes"] * 400})
    >>> states = {"rain": ["no", "yes"], "wet": ["no", "yes"]}
    >>> learn(data, Budget(epsilon=1.0, delta=1e-6), states).graph_.number_of_edges()
    1
    """
    passed = _passed(locals(), "df", "budget", "schema", "children", "graph", "structure", "estimator", "draws")
    require_budget(budget)
    further = {"children": children, "graph": graph, "structure": structure, "estimator": estimator}
    case = case_of(df, schema, {**passed, **_passed(further)})
    if case == LINKED:
        from pgmpy_dp.linked.private_linked_network import PrivateLinkedNetwork, learn_linked

        _require_draws(PrivateLinkedNetwork, draws)
        return _drawn(learn_linked(df, children, budget, schema, **passed), draws)
    whose = {"unit": passed.pop("unit", None), "rows_per_unit": passed.pop("rows_per_unit", None)}
    if isinstance(df, PrivateTable):
        passed = {"adjacency": str(df.adjacency), **passed}
    passed |= {"epsilon": budget.epsilon, "delta": budget.delta, "rho": budget.rho, "state_names": schema}
    if case == LEARNED:
        _require_draws(PrivateNetwork, draws)
        return _drawn(PrivateNetwork(**passed).fit(df, **whose), draws)
    prior = passed.pop("prior", None)
    if case == TREE:
        learner: Any = PrivateChowLiu(**passed)
        _take_prior(learner, prior)
        _require_draws(learner, draws)
        return learner.fit(df, **whose)
    learner = _estimator(estimator, prior, **passed)
    _require_draws(learner, draws)
    known = df.schema if isinstance(df, PrivateTable) else Schema.coerce(schema, "schema")
    if not isinstance(graph, nx.Graph | None):
        learner.cliques = graph = [tuple(scope) for scope in graph]
    return _drawn(learner.fit(_graph(graph, known), df, **whose), draws)


def refit(
    release: Release,
    *,
    estimator: str | BaseMarginalsEstimator | None = None,
    prior: Any = None,
    missing_at_random: Any = None,
    impossible: Sequence[str | Mapping] | None = None,
    public: Mapping[Any, Any] | None = None,
    public_from: str | None = None,
    draws: int | None = None,
) -> Any:
    """Learn again from noisy tables, of one table or of linked ones, without the records and at no further cost.

    Parameters
    ----------
    release : Release
    estimator, prior, missing_at_random, public, public_from, draws
        As `learn` takes them. Without `estimator` a network that was found is learned as it was; otherwise the graph
        has an edge for each pair of variables that share a chosen table.
    impossible : sequence of str or mapping, optional
        Rules beside those of the schema; of linked tables texts.

    Returns
    -------
    PrivateNetwork, PrivateLinkedNetwork, or the estimator of a given graph

    Raises
    ------
    TypeError, ValueError
        For another release, and what it cannot be learned with.
    """
    from pgmpy_dp.linked.private_linked_network import PrivateLinkedNetwork, with_further_rules

    passed = _passed(locals(), "release", "draws", "PrivateLinkedNetwork", "with_further_rules")
    learner: Any = PrivateLinkedNetwork(adjacency=str(release.adjacency))
    arguments: tuple = (release,)
    tables = _passed({"public": public, "public_from": public_from})
    if impossible:
        try:
            release = with_further_rules(release, impossible)
        except ValueError as error:
            raise ArgumentError("impossible", list(impossible), str(error)) from None
        return refit(release, **{**passed, "impossible": None}, draws=draws)
    if "linked" in release.public:
        require_for(LINKED, passed)
    elif estimator is None and "rounds" in release.public:
        learner = PrivateNetwork(adjacency=str(release.adjacency), missing_at_random=missing_at_random, **tables)
    elif missing_at_random is not None:
        raise ArgumentError(
            "missing_at_random", missing_at_random, "it is for a network that learn found; leave it out"
        )
    else:
        learner = _estimator(estimator, **tables)
        arguments = _graph(release.scopes[: probe_tables(release).start], release.schema), release
    _take_prior(learner, prior)
    _require_draws(learner, draws)
    return _drawn(learner.fit_release(*arguments), draws)


def _graph(graph: Any, schema: Schema) -> nx.Graph:
    """The graph that was passed; of sets of variables, each with all its edges; of None, no edges on all variables."""
    if graph is None or isinstance(graph, nx.Graph):
        return graph_on(schema.variables, ()) if graph is None else graph
    named = set(chain.from_iterable(graph))
    pairs = [pair for scope in graph for pair in combinations(scope, 2)]
    return graph_on(tuple(name for name in schema.variables if name in named), pairs)


def _estimator(estimator: str | BaseMarginalsEstimator | None, prior: Any = None, **settings: Any) -> Any:
    """An estimator of a given graph's parameters, with these options, whose prior can be used."""
    if not isinstance(estimator, BaseMarginalsEstimator):
        require_choice("estimator", estimator or "collective-map", tuple(_PARAMETERS))
        estimator = _PARAMETERS[estimator or "collective-map"]()
    if "public" in settings and not hasattr(estimator, "public"):
        raise ArgumentError("public", "...", f"{type(estimator).__name__} takes no public tables; leave estimator out")
    learner: Any = type(estimator)(**{**estimator.get_params(deep=False), **settings})
    _take_prior(learner, prior)
    return learner


def _take_prior(learner: Any, prior: Any) -> None:
    if prior is None:
        return
    named = os.fspath(prior) if isinstance(prior, os.PathLike) else prior
    if "prior" not in learner.get_params():
        raise ArgumentError("prior", named, f"{type(learner).__name__} takes none; leave structure and estimator out")
    learner.prior = prior
    prior_of(learner)


def _require_draws(learner: Any, draws: int | None) -> None:
    """Refuse draws that a learner cannot make, before anything is spent."""
    if draws and (draws == 1 or not hasattr(learner, "posterior")):
        raise ArgumentError("draws", draws, "use 2 or more, with collective-map or the structure that learn finds")


def _drawn(learner: Any, draws: int | None) -> Any:
    """Give the model of a fitted estimator its draws."""
    if draws:
        with handed_over(learner.release_):
            learner.model_.posterior = learner.posterior(draws)
    return learner


def publish_if(
    df: Any,
    budget: Budget,
    criteria: Any,
    schema: Any = None,
    *,
    ledger: Ledger | str | os.PathLike | None = None,
    test_share: float = 0.1,
    again: bool = False,
    graph: Any = None,
    structure: str | None = None,
    estimator: Any = None,
    adjacency: str | None = None,
    n_records: int | None = None,
    random_state: int | None = None,
    unit: Hashable = None,
    rows_per_unit: int | str | None = None,
    required_edges: list[tuple] | None = None,
    forbidden_edges: list[tuple] | None = None,
    max_clique_cells: int | None = None,
    n_rounds: int | None = None,
    one_way_share: float | None = None,
    selection_share: float | None = None,
    probe_share: float | None = None,
    merge_rare: bool | None = None,
    max_order: int | None = None,
    workload: Any = None,
    prior: Any = None,
    target: Hashable = None,
    number_share: float | None = None,
    optimise: str | None = None,
    means: list | None = None,
    mean_share: float | None = None,
    missing_at_random: Any = None,
    draws: int | None = None,
) -> Decision:
    """Learn a model as `learn` does, test it with noise, and publish it only if it meets declared criteria.

    Parameters
    ----------
    df : dataframe, path or PrivateTable
        The records. A `PrivateTable` has a ledger of its own, which has to be in a file.
    budget : Budget
        Of the fit and the test together. It is charged whole, before anything is counted, whatever the answer.
    criteria : path, mapping or sequence of mappings
        What has to hold, as docs/publish-if.md says: of tables, cells, means, or what predicting loses.
    schema : Schema or dict of variable to list of states
        Required unless `df` is a `PrivateTable`.
    ledger : Ledger or path
        Of the records, in a file, which remembers the attempt. A new file has this budget.
    test_share : float in (0, 1)
        Of the budget, for the test: `plan` with these criteria says how sharp it is.
    again : bool
        Whether an attempt may follow another one in the same ledger. What is published then says which attempt it is.
    graph, structure, estimator, adjacency, n_records, random_state, unit, rows_per_unit, required_edges, \
forbidden_edges, max_clique_cells, n_rounds, one_way_share, selection_share, probe_share, merge_rare, max_order, \
workload, prior, target, number_share, optimise, means, mean_share, missing_at_random, draws
        As `learn` takes them. What is tested is a graph that is learned, without values that were filled in; other
        models, and those of linked tables, are refused.

    Returns
    -------
    Decision
        If the answer is "no" it says nothing else.

    Raises
    ------
    ArgumentError, TypeError, ValueError
        For arguments that cannot be used, and an attempt that follows another one; nothing is spent.
    BudgetExceeded
        If the ledger does not have the budget left; nothing is spent.
    RuntimeError
        Where the fit or the test ended without an answer; it says no more, and the budget is spent.

    Notes
    -----
    Privacy
        The noisy tables and the noisy numbers of the test are answers of two curators, whose costs add up to the
        budget, and are charged as one (``private/ledger.md``). Everything that leaves is a function of these answers
        and of public arguments: "no", or the model and the numbers. So it has the budget's guarantee, whatever the
        criteria are, and "no" tells less than a release would have. An (epsilon, delta) budget is spent as the rho that
        converts to it. A published model states the budget's guarantee, test included.

        The guarantee does not cover how long it takes, as with every fit (known limits). Nor does it cover a failure of
        the program: everybody sees that it ended without an answer. While it runs, this process logs nothing and warns
        of nothing; other attempts wait, and so does reading other records. Another thread that sets filters of warnings
        meanwhile could let a warning through: run it alone.

    Errors. `plan` says how near to a bound they happen. Each attempt may say "yes" to a bad model by chance: among
    several attempts, the published one was selected by its noise too.

    Examples
    --------
    >>> import tempfile, numpy as np, pandas as pd
    >>> data = pd.DataFrame(np.random.default_rng(0).integers(0, 2, (20_000, 3)), columns=list("abc"))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ledger = Ledger.open(folder + "/ledger.json", Budget(epsilon=1.0, delta=1e-9))
    ...     outcome = publish_if(
    ...         data, Budget(epsilon=1.0, delta=1e-9), [{"test": "distance", "at_most": 0.05}],
    ...         {name: [0, 1] for name in "abc"}, ledger=ledger,
    ...     )
    >>> outcome.published, str(outcome.learner.privacy_.requested)
    (True, '(1, 1e-09)-DP')
    """
    passed = _passed(locals(), "df", "budget", "criteria", "schema", "ledger", "test_share", "again", "draws")
    require_for(case_of(df, schema, passed), {"criteria": criteria})
    passed.pop("structure", None)
    if missing_at_random is not None:
        raise ArgumentError("missing_at_random", missing_at_random, "completed models are not tested; leave it out")
    _require_draws(PrivateNetwork, draws)
    from pgmpy_dp.tables.publishing import publish_if as publishing

    how = {"ledger": ledger, "test_share": test_share, "again": again, **passed}
    decision = publishing.publish_if(df, budget, criteria, schema, **how)
    _drawn(decision.learner, draws if decision else None)
    return decision


def in_order_of(data: Any, columns: Any) -> Any:
    """A schema, or a mapping of columns, in the order that the columns have in the data."""
    names = in_their_order(data, columns)
    return columns.subset(names) if isinstance(columns, Schema) else {name: columns[name] for name in names}
