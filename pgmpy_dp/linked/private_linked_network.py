"""PrivateLinkedNetwork: a model of parents with their children under one budget, and its short form `learn_linked`."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from pgmpy_dp.checks import checked_integer
from pgmpy_dp.inference.growing_tree import GrowingTree
from pgmpy_dp.learning.collective_base import Progress, budget_bar, progress_bar
from pgmpy_dp.learning.display import ShowsFit
from pgmpy_dp.learning.fine_grids import densities, fine_grained, merged_places, values_of
from pgmpy_dp.learning.maximum_a_posteriori import collective_map, most_iterations
from pgmpy_dp.learning.maximum_likelihood import Fit
from pgmpy_dp.learning.noisy_marginals import NoisyMarginals
from pgmpy_dp.learning.noisy_tables import noisy_marginals
from pgmpy_dp.learning.options import Settings, adjacencies, anything, by, number, option, whole
from pgmpy_dp.learning.privacy_record import Privacy, require_agreement
from pgmpy_dp.learning.private_base import BasePrivateEstimator
from pgmpy_dp.learning.probe_tables import probe_tables, search_course
from pgmpy_dp.learning.structural_zeros import with_zeros
from pgmpy_dp.linked.count_raking import raked, under_rules
from pgmpy_dp.linked.linked_model import LinkedModel, told_of_a_child, words_of_a_child
from pgmpy_dp.linked.linked_search import LinkedSearch, largest_states, number_columns
from pgmpy_dp.linked.operators.linked_schema import LinkedSchema
from pgmpy_dp.linked.operators.linked_tables import PrivateLinkedTables
from pgmpy_dp.linked.operators.wide_table import RANK, WideTable, wide_table
from pgmpy_dp.linked.size_trend import SizeTrend
from pgmpy_dp.linked.slots import Slots
from pgmpy_dp.models.decoding import Values
from pgmpy_dp.models.posterior.posterior_sampling import sample_posterior
from pgmpy_dp.models.posterior.posterior_view import ParameterPosterior
from pgmpy_dp.private.budget import Budget, require_budget
from pgmpy_dp.private.sensitive import Release
from pgmpy_dp.schema import Schema, decode_label, encode_label
from pgmpy_dp.shown import quantity
from pgmpy_dp.tables.networks import adaptive_search
from pgmpy_dp.tables.networks.budget_shares import OPTIMISE
from pgmpy_dp.tables.networks.network_posterior import probed_discrepancy

SECOND = 0.05
"""Share of second tables of numbers, where there are any: with more, families are told from strangers less well."""


class PrivateLinkedNetwork(ShowsFit, BasePrivateEstimator):
    """Parents with their children, learned together under one budget: households and persons, patients and visits.

    A parent with all its children is rewritten as rows of one table, with up to two of the children in each, that
    count 1 together. A network of this table is learned as :class:`~pgmpy_dp.estimators.PrivateNetwork` does it.

    Parameters
    ----------
    epsilon, delta, rho
    schema : LinkedSchema, optional
        Public description of both tables; required unless the data come as `PrivateLinkedTables`.
    adjacency : {"add_remove", "replace_one"}
        Of parents with all their children.
    n_records : int, optional
        The number of parents, if it is public. Required under "replace_one".
    siblings : {"auto", 0, 1}
        How many siblings a child is learned together with: none (children are independent given the parent), or one.
        "auto" is one where the noise lets a fit learn about pairs. No matter where children have an order.
    max_clique_cells : int
        No clique of the junction tree has more cells: bounds time and memory.
    n_rounds : int, optional
    one_way_share, selection_share : float in (0, 1), optional
    probe_share : float in [0, 1)
        These four as of `PrivateNetwork`.
    random_state

    Attributes
    ----------
    model_ : LinkedModel
    report_ : pandas.DataFrame
        The course of the search: one row for each release of a table of several columns.
    release_ : Release
    privacy_ : Privacy
    n_features_in_ : int
        The number of the parents' columns.
    n_records_, n_records_sd_ : float
        The number of parents, public or estimated, and the standard deviation of the estimate.

    Notes
    -----
    Privacy: the only access to the records is the release of :mod:`pgmpy_dp.tables.networks.adaptive_search`, over rows
    of units that :mod:`pgmpy_dp.linked.operators.unit_rows` makes. The unit is a parent with all its children. One
    child among them may cost up to 4 rho, or 2 epsilon of a pure budget; up to 16 rho, or 4 epsilon, if it moves from
    one parent to another. Under ``replace_one`` it is rho and epsilon, and 4 rho and 2 epsilon.

    Examples
    --------
    >>> import warnings
    >>> from pgmpy_dp.linked.made_up import made_up_families
    >>> households, persons, schema = made_up_families(500, most=3, random_state=0)
    >>> with warnings.catch_warnings(action="ignore"):
    ...     estimator = PrivateLinkedNetwork(rho=1.0, schema=schema).fit(households, persons)
    >>> households, persons = estimator.model_.sample(100, random_state=0)
    >>> len(households), set(persons["household"]) <= set(households["household"])
    (100, True)
    """

    _release_kinds: ClassVar[tuple[str, ...]] = ("marginals",)
    _fits_one_table = False  # what `list_estimators` asks
    _tags: ClassVar[dict[str, Any]] = {
        "data_kind": "linked",
        "task": "parameters and graph",
        "model_kind": "undirected",
        "guarantees": ("pure", "zcdp", "approximate"),
        "adjacency": ("add_remove", "replace_one"),
    }

    schema: Any = option(None, anything())
    adjacency: str = option("add_remove", adjacencies())
    n_records: int | None = option(None, whole(0))
    siblings: Any = option("auto", by(lambda name, value: _checked_siblings(name, value)))
    max_clique_cells: int = option(50_000, whole(4))
    n_rounds: int | None = option(None, whole(1))
    one_way_share: float | None = option(None, number(below_one=True))
    selection_share: float | None = option(None, number(below_one=True))
    probe_share: float = option(0.08, number(positive=False, below_one=True))

    def fit(self, X: Any, y: Any = None) -> Self:
        """Release what is needed under the budget, then learn from it.

        Parameters
        ----------
        X : dataframe, path, PrivateLinkedTables or None
            The parents; None where the schema has none. `PrivateLinkedTables` are both tables, and are charged to their
            own ledger.
        y : dataframe or path
            The children.

        Returns
        -------
        self

        Raises
        ------
        TypeError, ValueError
            For a public argument that cannot be used, before anything is spent. Nothing is raised because of a record.
        BudgetExceeded
            If the ledger of private data does not allow the budget; nothing is spent.
        """
        return self._fit(X, children=y)

    def _check(self) -> None:
        if self.schema is not None:
            _checked_schema(self.schema)

    def _private(self, X: Any, budget: Budget, children: Any = None) -> PrivateLinkedTables:
        if isinstance(X, PrivateLinkedTables):
            if children is not None:
                raise ValueError("y was passed beside PrivateLinkedTables, which have the children already; drop it")
            schema = None if self.schema is None else _checked_schema(self.schema)
            pairs = {"schema": (schema, X.linked), "n_records": (self.n_records, X.n_units)}
            require_agreement(X, self.adjacency, **pairs)
            return X
        if self.schema is None:
            raise ValueError("schema=None: pass a LinkedSchema, which says what both tables may hold")
        return PrivateLinkedTables(
            X,
            children,
            _checked_schema(self.schema),
            adjacency=self.adjacency,
            ledger=budget,
            n_records=self.n_records,
            random_state=self.random_state,
        )

    def _run(self, data: PrivateLinkedTables, budget: Budget) -> Release:
        settings, among, siblings = self._search(data.linked)
        search_type = partial(LinkedSearch, data.linked, siblings)
        with budget_bar(type(self).__name__) as progress:
            how: dict[str, Any] = {"search_type": search_type, "among": among, "largest": largest_states(data.linked)}
            return adaptive_search.run(data, settings, budget, progress, **how)

    def _search(self, linked: LinkedSchema) -> tuple[Settings, Callable[[Any], bool], int | None]:
        """The search's settings, its test of candidates, and the number of siblings that a child is learned with."""
        wide = wide_table(linked)
        siblings = None if self.siblings == "auto" else int(self.siblings)
        among = partial(Slots(wide).allowed, most_slots=2 if siblings is None else 1 + siblings)
        settings = self._options.but(
            required_edges=_required(linked, wide),
            forbidden_edges=None,
            merge_rare=False,
            number_share=SECOND if any(map(fine_grained, linked.tables.values())) else 0.0,
            optimise=OPTIMISE[0],
            max_order=3,
            workload=None,
            target=None,
            means=None,
        )
        return settings, among, siblings

    def _check_release(self, release: Release) -> None:
        super()._check_release(release)
        if "linked" not in release.public:
            raise ValueError("release is not one of linked tables; learn from it with CollectiveMAP")

    def _under_rules(self, release: Release) -> Release:
        """The release under the rules of `schema`, if that was passed."""
        if self.schema is None or self.schema.to_dict() == release.public["linked"]:
            return release
        wide = _released_table(self.schema, release)
        if wide.schema.states != release.schema.states:
            raise ValueError(
                "schema has other columns or states than the release, or rules that divide its numbers at other "
                "values; pass that of the release, with further rules that compare whole cells"
            )
        self.schema.count_limits(wide.child)  # refused here where cells lie on both sides of a condition
        return release.with_rules(wide.schema.impossible, self.schema.to_dict())

    def _columns(self, release: Release) -> Sequence[Hashable]:
        return tuple(LinkedSchema.from_dict(release.public["linked"]).parent or ())

    def _learned(self, release: Release, privacy: Privacy) -> dict[str, Any]:
        linked = LinkedSchema.from_dict(release.public["linked"])
        wide = _released_table(linked, release)
        slots, measured = Slots(wide), range(probe_tables(release).start)
        noisy = _noisy(release, slots, [*measured, *_probes_that_fit(release, slots)])
        with progress_bar(type(self).__name__, most_iterations()) as progress:
            fit = collective_map(noisy, callback=progress)
        within = _within(linked, wide, release)
        trend = SizeTrend.of(release.public["settings"].get("halves"), wide, noisy.n_records)
        ruled = under_rules(linked, wide, fit.model, trend)
        model = LinkedModel(linked, wide, ruled, privacy, within, noisy.n_records, noisy.n_records_sd)
        return {
            "model_": model,
            "report_": search_course(release, noisy.n_records),
            "n_records_": noisy.n_records,
            "n_records_sd_": noisy.n_records_sd,
            "_last_fit": fit,
            "_noisy": noisy,
            "_trend": trend,
        }

    def _records(self) -> str:
        return f"Rows of {self.model_.linked.names[0]}"

    def _facts(self) -> dict[str, Any]:
        linked = self.model_.linked
        columns = zip(linked.names, self.model_.columns, strict=True)
        told = {name: list(map(encode_label, listed)) for name, listed in columns}
        return {**told_of_a_child(self.privacy_), "key": encode_label(linked.key), "columns": told}

    def _lines(self) -> list[str]:
        (parent, child), (of_parents, of_children) = self.model_.linked.names, self.model_.columns
        columns = quantity(of_children, "column")
        return [
            f"Learned {parent} with {len(of_parents)} and {child} with {columns}: {self.privacy_}",
            f"One {child} alone, added, removed or changed: {words_of_a_child(self.privacy_)}",
        ]

    def posterior(self, n_draws: int = 50, random_state: int | None = None) -> ParameterPosterior:
        """Draws from the posterior of the parameters, for intervals of what the model answers.

        Post-processing of the release: needs no records and costs nothing.

        Parameters
        ----------
        n_draws : int
            Independent draws.
        random_state : int, optional
            For repeatable draws; it has no part in privacy.

        Returns
        -------
        ParameterPosterior
            Of the table of families. As the `posterior` of ``model_`` it gives answers intervals, and goes into files.

        Raises
        ------
        NotFittedError
            Before `fit` or `fit_release`.
        ValueError
            If `n_draws` is below 2.
        """
        self.check_is_fitted()
        checked_integer("n_draws", n_draws, 2)
        release, slots, rng = self.release_, Slots(self.model_._wide), np.random.default_rng(random_state)

        def once(fit: Fit, noisy: NoisyMarginals) -> tuple[Fit, NoisyMarginals]:
            details = fit.details
            if "empty_cells" in details:
                tables, *others = details["empty_cells"]
                details = {**details, "empty_cells": (slots.once(tables), *others)}
            return replace(fit, details=details), slots.once(noisy)

        def learn(_: Release, noisy: NoisyMarginals, progress: Progress) -> tuple[Fit, NoisyMarginals]:
            return once(collective_map(noisy, callback=progress), noisy)

        fit, noisy = once(self._last_fit, self._noisy)
        draws = sample_posterior(noisy, fit, rng, n_draws=n_draws, dense_limit=0).obeying(release.schema.zeros)
        trend = self._trend and self._trend.drawn(n_draws, self.n_records_, rng)
        draws = raked(self.model_.linked, self.model_._wide, draws, trend)
        measured = _noisy(release, slots, list(range(probe_tables(release).start)))
        discrepancy = probed_discrepancy(release, measured, learn, rng)
        graph: dict[Hashable, list[Hashable]] = {name: [] for name in release.schema.variables}
        return ParameterPosterior(
            *(draws, self.model_._wide.schema, graph, self.privacy_, self.n_records_, self.n_records_sd_),
            model=self.model_._model,
            discrepancy=discrepancy,
        )


def learn_linked(
    parents: Any,
    children: Any = None,
    budget: Budget | None = None,
    schema: LinkedSchema | None = None,
    *,
    key: Hashable = None,
    **options: Any,
) -> PrivateLinkedNetwork:
    """Parents with their children, learned together: the short form of `PrivateLinkedNetwork`.

    Parameters
    ----------
    parents, children : dataframe or path
        Two tables with a key in common. Of one file with several rows a person pass it alone, and no columns of parents
        in the schema: ``learn_linked(visits, None, budget, schema)``.
    budget : Budget
    schema : LinkedSchema, or Schema or mapping with `key`
        With `key` the columns of one file, of which up to eight rows of each value of the key count together.
    key : hashable, optional
        Column that says whose row it is.
    **options
        Further arguments of `PrivateLinkedNetwork`.

    Returns
    -------
    PrivateLinkedNetwork
        Fitted: ``.model_`` is a :class:`~pgmpy_dp.LinkedModel`.

    Raises
    ------
    TypeError, ValueError
        As `PrivateLinkedNetwork.fit`.

    Examples
    --------
    >>> import pandas as pd
    >>> visits = pd.DataFrame({"patient": ["p1", "p1", "p2"] * 100, "ill": ["no", "yes", "no"] * 100})
    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     learned = learn_linked(visits, None, Budget(rho=1.0), {"ill": ["no", "yes"]}, key="patient")
    >>> learned.privacy_.unit
    'patient'
    """
    require_budget(budget)
    assert budget is not None
    if isinstance(parents, PrivateLinkedTables):
        options = {"adjacency": str(parents.adjacency), **options}
    else:
        parents, children, schema = as_two_tables(parents, children, schema, key)
    estimator = PrivateLinkedNetwork(budget.epsilon, budget.delta, budget.rho, schema, **options)
    return estimator.fit(parents, children)


def with_further_rules(release: Release, impossible: Sequence[Any]) -> Release:
    """A release, of one table or of linked ones, under rules beside those that it has; ValueError for bad ones."""
    if "linked" not in release.public:
        return release.with_rules([*release.schema.impossible, *impossible])
    linked = LinkedSchema.from_dict(release.public["linked"]).with_rules(impossible)
    return PrivateLinkedNetwork(schema=linked)._under_rules(release)


def as_two_tables(parents: Any, children: Any, schema: Any, key: Hashable) -> tuple[Any, Any, LinkedSchema]:
    """Parents, children and their linked schema, of two tables, or of one file alone and the column of its persons.

    Parameters
    ----------
    parents, children, schema, key
        As :func:`~pgmpy_dp.learn` takes them.

    Raises
    ------
    ValueError
        For a schema of one file without a key, and a key that is not the schema's.
    """
    if not isinstance(schema, LinkedSchema):
        if key is None:
            raise ValueError(
                f"schema is a {type(schema).__name__}, and key=None: pass a LinkedSchema, or a schema of one file with "
                "key=, the column that says whose row it is"
            )
        schema = schema_of_one_file(schema, key)
    elif key is not None and key != schema.key:
        raise ValueError(f"key={key!r} differs from the schema's {schema.key!r}; drop key")
    if schema.parent is None and children is None:
        parents, children = None, parents
    elif parents is not None and children is None:
        raise ValueError(
            f"children=None, and the schema has columns of {schema.names[0]} and of {schema.names[1]}: pass the table "
            f"of {schema.names[1]} too; of one file with several rows a person the schema's parent is None"
        )
    return parents, children, schema


def schema_of_one_file(schema: Any, key: Hashable) -> LinkedSchema:
    """The linked schema of one file with several rows a person, of which up to eight count.

    Parameters
    ----------
    schema : Schema or mapping
        Its columns.
    key : hashable
        The column that says whose row it is.
    """
    return LinkedSchema(None, Schema.coerce(schema, argument="schema"), key, _ROWS_OF_ONE_FILE)


_ROWS_OF_ONE_FILE = 8


def _checked_siblings(name: str, value: Any) -> Any:
    if isinstance(value, str) and value == "auto":
        return "auto"
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 0 <= value <= 1:
        raise ValueError(f"{name}={value!r}; pass 'auto', or how many siblings a child is learned with: 0 or 1")
    return int(value)


def _checked_schema(schema: Any) -> LinkedSchema:
    if type(schema) is not LinkedSchema:
        raise TypeError(
            f"schema is a {type(schema).__name__}; pass a LinkedSchema(parent, child, key=..., most=...), or read one "
            "by LinkedSchema.from_json"
        )
    return schema


def _required(linked: LinkedSchema, wide: WideTable) -> list[tuple[Hashable, ...]]:
    """Tables that are always measured: the number of children with each of a child's columns, and with each count."""
    needed: list[tuple[Hashable, ...]] = [(wide.size, name) for name in wide.slots[0]]
    needed += [(count, wide.size) for count in linked.counts]
    return [*needed, (wide.size, RANK)] if wide.ordered else needed


def _released_table(linked: LinkedSchema, release: Release) -> WideTable:
    """The wide table in the states that a release has: merged ones."""
    places = merged_places(release)
    if not places:
        return wide_table(linked)
    child, parent, fine = linked.fine_child, linked.parent, wide_table(linked)
    cells = fine.schema.fine().cardinalities
    if any(len(to) != cells.get(name) for name, to in places.items()):
        return fine  # which no table of the release is of

    def cut(number: Any, to: np.ndarray) -> Any:
        starts = np.flatnonzero(np.diff(to[: len(number.cells)])) + 1
        return number.with_cuts(number.edges[k] for k in starts)

    of_child = {n: cut(child.numbers[n], places[a]) for n, a in zip(child, fine.slots[0], strict=True) if a in places}
    merged = child.replaced(of_child)
    if parent is not None:
        parent = parent.fine()
        parent = parent.replaced({name: cut(parent.numbers[name], places[name]) for name in parent if name in places})
    return wide_table(linked, merged, parent)


def _noisy(release: Release, slots: Slots, tables: list[int]) -> NoisyMarginals:
    """Some tables of a release with all their images, and the rules that a model of them obeys."""
    names = release.schema.variables
    left_out = {
        tuple(names.index(decode_label(label)) for label in labels) for labels in release.public["settings"]["left_out"]
    }
    noisy = noisy_marginals(release, names, merge=False, tables=tables)
    return replace(slots.symmetric(noisy, left_out), impossible=tuple(release.schema.zeros))


def _probes_that_fit(release: Release, slots: Slots) -> list[int]:
    """Places of the probes whose images a model with the other tables has room for."""
    probes = probe_tables(release)
    if not probes:
        return []
    noisy = _noisy(release, slots, list(range(probes.start)))
    tree = GrowingTree(with_zeros(noisy.cliques, release.schema.zeros), release.public["settings"]["max_clique_cells"])
    names, fitting = release.schema.variables, []
    for c in probes:
        noise = release.noise[c]
        too_noisy = noise is not None and release.values[c].size * noise.mean_size > noisy.n_records
        images = slots.images(names.index(name) for name in release.scopes[c])
        if not too_noisy and tree.admits(images).all():
            for image in images:
                tree.join(image)
            fitting.append(c)
    return fitting


def _within(linked: LinkedSchema, wide: WideTable, release: Release) -> dict[tuple[str, Hashable], Values]:
    """The places of numbers within the states of parents and of children, by table and column."""
    places, columns = merged_places(release), number_columns(linked, wide)
    told = densities(release, [c for c in columns if c in places], {c: number for c, (*_, number) in columns.items()})
    return {
        (table, name): values_of(*told[c], places[c][: len(number.states)]) if c in told else Values(number)
        for c, (table, name, number) in columns.items()
    }
