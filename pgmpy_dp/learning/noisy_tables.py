"""Noisy contingency tables for a set of cliques: the sufficient statistics of a discrete undirected model."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from pgmpy_dp.checks import checked_number
from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.learning.fine_grids import largest_sizes, merge, merged_values, undivided
from pgmpy_dp.learning.least_noise import least_noise, noise_for_ledger
from pgmpy_dp.learning.level_plan import levels_in
from pgmpy_dp.learning.noisy_marginals import NoisyMarginals
from pgmpy_dp.learning.options import Settings
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.curator.table_curator import TableCurator
from pgmpy_dp.private.data.table import PrivateTable, require_table_and_budget
from pgmpy_dp.private.data.table_facts import TableFacts, require_scopes
from pgmpy_dp.private.guarantee import ZCDP, PureDP
from pgmpy_dp.private.named_values import distinct_names, scope_name
from pgmpy_dp.private.operators.tables import Tables, rehearsed_tables
from pgmpy_dp.private.sensitive import Noise, Release
from pgmpy_dp.schema import Schema, encode_label
from pgmpy_dp.shown import quantity

_CONTRADICTED = 5.0
"""A difference of so many standard deviations between a public number of records and the tables' sums is not noise."""


def run(table: PrivateTable, settings: Settings, budget: Budget) -> Release:
    """Release one noisy contingency table per scope.

    Refuses scopes that the schema does not know, tables that are too large, noise that does not fit the budget's
    measure.

    Parameters
    ----------
    settings : Settings
        `scopes`, one table for each, axes in its order (they may repeat or contain each other); `noise`, `weights` and
        `random_state` as of :class:`~pgmpy_dp.estimators.CollectiveMAP`. "auto" takes Laplace for a pure budget,
        Gaussian for rho, and for (epsilon, delta) whichever has the smaller total variance, which depends on public
        numbers alone; Gaussian in a ledger that counts zCDP already
        (:func:`~pgmpy_dp.learning.least_noise.noise_for_ledger`). What no estimator asks: `max_cells`, the largest
        number of cells of all tables together (10**8); `fine_share`, the share of the budget for fine tables of the
        numbers that are not divided, if there are any (0.1): the tables of `scopes` are then counted in cells that
        these merge.

    Returns
    -------
    Release
        ``kind="marginals"``; ``values[c]`` has the shape of the cardinalities of ``scopes[c]``; counts may be negative.

    Notes
    -----
    Privacy
        *Sensitivity.* A record adds 1 to one cell of each of the |C| tables, or to none if it is outside the schema.
        Under ``add_remove`` the tables together move by at most |C| in l1 and sqrt(|C|) in l2 norm. Under
        ``replace_one`` one record leaves and one enters: at most 2|C| in l1 and sqrt(2|C|) in l2 norm.

        *Guarantee.* Under the table's adjacency: Laplace noise, epsilon-DP with scale
        ``b_c = (1 or 2)/(share_c epsilon)``, that is |C|/epsilon or 2|C|/epsilon for equal shares. Gaussian noise,
        rho-zCDP with ``sigma_c = sqrt((1 or 2)/(2 share_c rho))``, that is sqrt(|C|/(2 rho)) or sqrt(|C|/rho). For an
        (epsilon, delta) budget Gaussian noise has the largest rho that dp-accounting converts to it.

        *Source.* Dwork, McSherry, Nissim and Smith 2006; Canonne, Kamath and Steinke 2020; the choice of statistics:
        Bernstein, McKenna, Sun, Sheldon, Hay and Miklau 2017.

        *Side channels.* Which arguments are refused, which noise is chosen and every shape depend on public arguments
        only. Running time depends on the number of records.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"a": [0, 1, 1], "b": ["x", "y", "y"]})
    >>> table = PrivateTable(frame, {"a": [0, 1], "b": ["x", "y"]}, ledger=Budget(epsilon=1.0))
    >>> from pgmpy_dp.learning.options import Settings
    >>> settings = Settings(scopes=(("a", "b"),), random_state=None)
    >>> release = run(table, settings, Budget(epsilon=0.5))
    >>> release["a, b"].array.shape, str(release.guarantee), release["a, b"].noise.scale, str(table.ledger.left)
    ((2, 2), '0.5-DP', 2.0, '0.5-DP')
    """
    budget = require_table_and_budget(table, budget)
    settings = _completed(settings)
    chosen = settings.but(noise=noise_for_ledger(settings.noise, budget, table))
    cost = _cost(table.schema, table.adjacency, chosen, budget)
    used = {name for scope in settings.scopes for name in table.schema.leaf_scope(scope)}
    curator = TableCurator(
        table,
        budget,
        what=quantity(settings.scopes, "marginal table") + settings.condition,
        columns=[name for name in table.schema.variables if name in used],
        pure=isinstance(cost, PureDP),
        random_state=settings.random_state,
        fine=True,
    )
    with curator.keeping():
        if fine := _fine(table.schema, settings):
            curator.ask(Tables([(name,) for name in fine]), settings.fine_share)
            n = noisy_marginals(curator.release("marginals", {}), table.schema.variables).n_records
            rest = 1 - Fraction(settings.fine_share)
            noises = Tables.planned(len(settings.scopes), table.adjacency, cost, rest, settings.weights).noise
            merge(curator, fine, n, max(noise.mean_size for noise in noises), order=max(map(len, settings.scopes)))
        curator.ask(Tables(settings.scopes, weights=settings.weights), share=curator.left)
    return curator.release("marginals", {"settings": _public(settings, budget)})


def planned_noise(
    schema: Schema, settings: Settings, budget: Budget, adjacency: str = "add_remove"
) -> tuple[PureDP | ZCDP, list[Noise]]:
    """The guarantee under which `run` would release, and the noise of each table: from public numbers alone.

    Raises
    ------
    TypeError, ValueError
        As `run` for its public arguments.

    Examples
    --------
    >>> from pgmpy_dp.learning.options import Settings
    >>> planned_noise(Schema({"a": [0, 1]}), Settings(scopes=(("a",),)), Budget(epsilon=0.5))
    (PureDP(epsilon=0.5), [Noise(distribution='discrete_laplace', scale=2.0)])
    """
    parsed, settings = Adjacency.parse(adjacency), _completed(settings)
    require_scopes(schema, settings.scopes)
    cost = _cost(schema, parsed, settings, budget)
    return cost, list(Tables.planned(len(settings.scopes), parsed, cost, Fraction(1), settings.weights).noise)


def rehearse(
    counts: Sequence[np.ndarray],
    schema: Schema,
    settings: Settings,
    budget: Budget,
    rng: np.random.Generator,
    *,
    adjacency: str = "add_remove",
    n_records: int | None = None,
) -> Release:
    """Rehearse `run` on tables that must be **made up**: the noise comes from `rng`.

    There are no records and no ledger, and nothing is protected: it is for finding out beforehand how much noise a
    budget buys. Arguments are checked as in `run`, by the same code.

    Parameters
    ----------
    counts : sequence of ndarray of int
        One for each scope, of the shape of its cardinalities.
    settings : Settings
        Its `random_state` is not used.
    n_records : int, optional
        If it would be public.

    Returns
    -------
    Release
        Marked reproducible. Its noise has the distributions and scales of `run`.

    Examples
    --------
    >>> from pgmpy_dp.learning.options import Settings
    >>> schema, settings = Schema({"a": [0, 1]}), Settings(scopes=(("a",),))
    >>> made_up = [np.array([60, 40])]
    >>> release = rehearse(made_up, schema, settings, Budget(epsilon=0.5), np.random.default_rng(0))
    >>> release["a"].noise.scale, release.reproducible
    (2.0, True)
    """
    parsed, settings = Adjacency.parse(adjacency), _completed(settings)
    require_scopes(schema, settings.scopes)
    cost = _cost(schema, parsed, settings, budget)
    tables, facts = Tables(settings.scopes, settings.weights), TableFacts(parsed, schema)
    values, noise = rehearsed_tables(counts, tables, facts, cost, rng)
    return Release(
        kind="marginals",
        values=tuple(values),
        names=distinct_names(map(scope_name, settings.scopes)),
        noise=tuple(noise),
        public={
            "schema": schema.to_dict(),
            "scopes": [[encode_label(name) for name in scope] for scope in settings.scopes],
            "n_records": n_records,
        },
        facts={"settings": _public(settings, budget)},
        adjacency=parsed,
        guarantee=cost,
        mechanism=noise[0].distribution,
        reproducible=True,
    )


def noisy_marginals(
    release: Release,
    variables: tuple[Hashable, ...],
    *,
    merge: bool = True,
    tables: Sequence[int] | None = None,
) -> NoisyMarginals:
    """The tables of a release as the learning functions take them.

    Parameters
    ----------
    release : Release
        Of kind "marginals", all tables with the same kind of noise.
    variables : tuple
        The order of the variables in the model.
    merge : bool, default True
        Whether repeated tables become one.
    tables : sequence of int, optional
        Places of the tables that are taken; default: all.

    Notes
    -----
    A public number of records counts those outside the schema too, whom no table has. Where the tables' sums contradict
    it, the number of those inside is estimated from them: with the public one, what is missing would be spread over all
    cells as if it were noise.
    """
    schema = release.schema
    chosen = range(len(release.values)) if tables is None else tables
    values, merged = merged_values(release)
    scopes = tuple(release.scopes[c] for c in chosen)
    levels = levels_in(schema, scopes)
    names = (*variables, *(name for name in levels if name not in variables))
    cliques = Cliques(names, tuple(schema.cardinality(name) for name in names), scopes)
    noises = [noise for c in chosen if (noise := release.noise[c]) is not None]  # every table of counts has its noise
    distributions = {noise.distribution for noise in noises}
    if len(distributions) != 1:
        raise ValueError(f"the release mixes the noise distributions {sorted(distributions)}; learn from one kind")
    made = NoisyMarginals(
        cliques,
        cliques.join([values[c] for c in chosen]),
        "laplace" if distributions == {"discrete_laplace"} else "gaussian",
        np.array([noise.scale for noise in noises]),
        merged_cells=None if merged is None else cliques.join([merged[c] for c in chosen]),
        levels=levels,
    )
    if release.n_records is not None:
        made = replace(made, total=agreed_total(release.n_records, made.n_records, made.n_records_sd))
    return made.merged() if merge else made


def agreed_total(public: float, estimate: float, sd: float) -> float | None:
    """The public number of records, or 1 if it is 0; None where the estimated number of those inside contradicts it."""
    total = max(float(public), 1.0)
    return total if abs(estimate - total) <= _CONTRADICTED * sd else None


def _completed(settings: Settings) -> Settings:
    return settings.filled(noise="auto", weights=None, max_cells=10**8, fine_share=0.1, condition="")


def _public(settings: Settings, budget: Budget) -> dict[str, Any]:
    return Settings.public(settings, budget, "noise", "weights")  # `public` of an instance may be an option


def _cost(schema: Schema, adjacency: Adjacency, settings: Settings, budget: Budget) -> PureDP | ZCDP:
    """The guarantee to release under, from public numbers; its type tells the noise. Refuses impossible scales."""
    sizes, fine = _table_sizes(schema, settings), _fine(schema, settings)
    weights = settings.weights
    if fine:
        table_weights = weights or [1.0] * len(sizes)
        each = settings.fine_share / (1 - settings.fine_share) * sum(table_weights) / len(fine)
        weights = (*[each] * len(fine), *table_weights)
    divided = schema.fine()
    cells = [*(divided.cardinality(name) for name in fine), *sizes]
    return least_noise(
        lambda cost: Tables.planned(len(cells), adjacency, cost, Fraction(1), weights).noise,
        cells,
        budget,
        settings.noise,
    )


def _fine(schema: Schema, settings: Settings) -> list[Hashable]:
    """The variables whose fine tables come first."""
    used = {name for scope in settings.scopes for name in schema.leaf_scope(scope)}
    return [name for name in undivided(schema) if name in used]


def _table_sizes(schema: Schema, settings: Settings) -> list[int]:
    """Cells of each table, at most; ValueError for unknown variables and for more cells than allowed."""
    require_scopes(schema.fine(), settings.scopes)
    most = largest_sizes(schema)
    sizes = [math.prod(most[name] for name in scope) for scope in settings.scopes]
    if sum(sizes) > settings.max_cells:
        largest = sizes.index(max(sizes))
        raise ValueError(
            f"the tables of scopes have {sum(sizes):,} cells together, more than {settings.max_cells}; the "
            f"largest is {settings.scopes[largest]} with {sizes[largest]}: use smaller cliques, or merge states"
        )
    return sizes


def checked_weights(weights: Sequence[float] | None, count: int) -> tuple[float, ...] | None:
    """One positive number for each of so many scopes, or None; TypeError or ValueError for anything else."""
    if weights is None:
        return None
    if isinstance(weights, str | bytes) or not isinstance(weights, Sequence | np.ndarray):
        raise TypeError(
            f"weights={weights!r} is a {type(weights).__name__}; pass one positive number per scope, or None"
        )
    if len(weights) != count:
        raise ValueError(f"weights has {len(weights)} entries for {count} scopes; pass one positive number per scope")
    return tuple(checked_number(f"weights[{k}]", weight, positive=True) for k, weight in enumerate(weights))
