"""Noisy contingency tables for a set of cliques: the sufficient statistics of a discrete undirected model."""

from __future__ import annotations

import math
import numbers
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from pgmpy_dp.private import accounting
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.data.contingency import table_sensitivity
from pgmpy_dp.private.data.subject import require_data_and_budget
from pgmpy_dp.private.data.table import PrivateTable, contingency_tables
from pgmpy_dp.private.guarantee import ZCDP, PureDP, checked_number
from pgmpy_dp.private.ledger import Budget
from pgmpy_dp.private.noise.additive import gaussian_release, gaussian_scales, laplace_release, laplace_scales
from pgmpy_dp.private.noise.samplers import seeded_generator
from pgmpy_dp.private.sensitive import Noise, Release, Sensitive
from pgmpy_dp.schema import Schema, encode_label

__all__ = [
    "NOISES",
    "MarginalSettings",
    "checked_integer",
    "noise_and_cost",
    "planned_noise",
    "rehearse",
    "require_scopes",
    "require_table_and_budget",
    "run",
]

NOISES = ("auto", "laplace", "gaussian")


@dataclass(frozen=True)
class MarginalSettings:
    """What to release, fixed before the records are looked at.

    Parameters
    ----------
    scopes : sequence of sequences of variable names
        One table per scope, axes in its order. Scopes may repeat or contain each other; each is a table of its own.
    noise : {"auto", "laplace", "gaussian"}, default "auto"
        "auto" takes Laplace for a pure budget, Gaussian for rho, and for (epsilon, delta) whichever has the smaller
        total variance, which depends on public numbers alone.
    weights : sequence of float, optional
        Positive, one per scope: its share of the budget (of epsilon or rho) is ``weights[c] / sum(weights)``. Default:
        equal shares.
    random_state : int, optional
        For tests and benchmarks only: repeatable noise. The release is marked reproducible, **is not private**, and a
        `ReproducibleNoiseWarning` says so.
    max_cells : int, default 10**8
        Largest number of cells of all tables together.

    Raises
    ------
    TypeError, ValueError
        For arguments that are wrong whatever the schema.
    """

    scopes: tuple[tuple, ...]
    noise: str = "auto"
    weights: tuple[float, ...] | None = None
    random_state: int | None = None
    max_cells: int = 10**8

    def __post_init__(self) -> None:
        object.__setattr__(self, "scopes", _checked_scopes(self.scopes))
        if self.noise not in NOISES:
            raise ValueError(f"noise={self.noise!r} is not supported; use one of {NOISES}")
        if self.weights is not None:
            object.__setattr__(self, "weights", _checked_weights(self.weights, len(self.scopes)))
        if self.random_state is not None:
            object.__setattr__(self, "random_state", checked_integer("random_state", self.random_state, 0))
        object.__setattr__(self, "max_cells", checked_integer("max_cells", self.max_cells, 1))


def run(table: PrivateTable, settings: MarginalSettings, budget: Budget) -> Release:
    """Release one noisy contingency table per scope.

    Parameters
    ----------
    table : PrivateTable
    settings : MarginalSettings
    budget : Budget
        What this release spends. It is charged to the table's ledger before anything is counted.

    Returns
    -------
    Release
        ``kind="marginals"``; ``values[c]`` has the shape of the cardinalities of ``scopes[c]``; counts may be negative.

    Raises
    ------
    BudgetExceeded
        If the ledger does not have the budget left; it stays as it was.
    TypeError, ValueError
        For scopes that the schema does not know, tables that are too large, noise that does not fit the budget's
        measure. All depend on public arguments only and come before the charge.

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
    >>> release = run(table, MarginalSettings([("a", "b")]), Budget(epsilon=0.5))
    >>> release.values[0].shape, str(release.guarantee), release.noise[0].scale, str(table.ledger.left)
    ((2, 2), '0.5-DP', 2.0, '0.5-DP')
    """
    require_table_and_budget(table, budget)
    sizes = _table_sizes(table.schema, settings)
    cost = _cost(table.adjacency, settings, budget, sizes)
    mechanism = "discrete_laplace" if isinstance(cost, PureDP) else "discrete_gaussian"
    seed = seeded_generator(settings.random_state)
    used = {name for scope in settings.scopes for name in scope}
    table.ledger.charge(
        cost,
        what=f"{len(sizes)} marginal tables",
        columns=[name for name in table.schema.variables if name in used],
        mechanism=mechanism,
        adjacency=table.adjacency,
        reproducible=seed is not None,
    )
    exact = contingency_tables(table, settings.scopes)
    return _release(exact, cost, table.schema, table.n_records, settings, budget, seed)


def planned_noise(
    schema: Schema, settings: MarginalSettings, budget: Budget, adjacency: str = "add_remove"
) -> tuple[PureDP | ZCDP, list[Noise]]:
    """The guarantee under which `run` would release, and the noise of each table: from public numbers alone.

    Raises
    ------
    TypeError, ValueError
        As `run` for its public arguments.

    Examples
    --------
    >>> planned_noise(Schema({"a": [0, 1]}), MarginalSettings([("a",)]), Budget(epsilon=0.5))
    (PureDP(epsilon=0.5), [Noise(distribution='discrete_laplace', scale=2.0)])
    """
    parsed, sizes = Adjacency.parse(adjacency), _table_sizes(schema, settings)
    cost = _cost(parsed, settings, budget, sizes)
    l1, l2, _ = table_sensitivity(parsed)
    if isinstance(cost, PureDP):
        scales = laplace_scales([l1] * len(sizes), cost.epsilon, settings.weights)
        return cost, [Noise("discrete_laplace", scale) for scale in scales]
    scales = gaussian_scales([l2] * len(sizes), cost.rho, settings.weights)
    return cost, [Noise("discrete_gaussian", scale) for scale in scales]


def rehearse(
    counts: Sequence[np.ndarray],
    schema: Schema,
    settings: MarginalSettings,
    budget: Budget,
    rng: np.random.Generator,
    *,
    adjacency: str = "add_remove",
    n_records: int | None = None,
) -> Release:
    """What `run` would release if the tables were these, which must be **made up**: its noise comes from `rng`.

    There are no records and no ledger, and nothing is protected: it is for finding out beforehand how much noise a
    budget buys. Arguments are checked as in `run`, by the same code.

    Parameters
    ----------
    counts : sequence of ndarray of int
        One for each scope, of the shape of its cardinalities.
    schema : Schema
    settings : MarginalSettings
        Its `random_state` is not used.
    budget : Budget
    rng : numpy.random.Generator
    adjacency : str
    n_records : int, optional
        If it would be public.

    Returns
    -------
    Release
        Marked reproducible. Its noise has the distributions and scales of `run`.

    Examples
    --------
    >>> schema, settings = Schema({"a": [0, 1]}), MarginalSettings([("a",)])
    >>> made_up = [np.array([60, 40])]
    >>> release = rehearse(made_up, schema, settings, Budget(epsilon=0.5), np.random.default_rng(0))
    >>> release.noise[0].scale, release.reproducible
    (2.0, True)
    """
    parsed = Adjacency.parse(adjacency)
    cost = _cost(parsed, settings, budget, _table_sizes(schema, settings))
    exact = [Sensitive(np.asarray(table, dtype=np.int64), parsed, *table_sensitivity(parsed)) for table in counts]
    return _release(exact, cost, schema, n_records, settings, budget, rng)


def _release(
    exact: Sequence[Sensitive],
    cost: PureDP | ZCDP,
    schema: Schema,
    n_records: int | None,
    settings: MarginalSettings,
    budget: Budget,
    seed: np.random.Generator | None,
) -> Release:
    """The noisy tables; charged, if there is anybody to charge, before this is called."""
    values: list[np.ndarray]
    noise: list[Noise]
    if isinstance(cost, PureDP):
        values, noise = laplace_release(exact, cost.epsilon, settings.weights, seed)
    else:
        values, noise = gaussian_release(exact, cost.rho, settings.weights, seed)
    return Release(
        kind="marginals",
        values=tuple(values),
        noise=tuple(noise),
        public={
            "schema": schema.to_dict(),
            "scopes": [[encode_label(name) for name in scope] for scope in settings.scopes],
            "n_records": n_records,
            "settings": {"noise": settings.noise, "weights": settings.weights, "budget": budget.guarantee.to_dict()},
        },
        adjacency=exact[0].adjacency,
        guarantee=cost,
        mechanism="discrete_laplace" if isinstance(cost, PureDP) else "discrete_gaussian",
        reproducible=seed is not None,
    )


def _cost(adjacency: Adjacency, settings: MarginalSettings, budget: Budget, sizes: Sequence[int]) -> PureDP | ZCDP:
    """The guarantee to release under, from public numbers; its type tells the noise. Refuses impossible scales."""
    l1, l2, _ = table_sensitivity(adjacency)
    count = len(sizes)
    return noise_and_cost([l1] * count, [l2] * count, sizes, settings.noise, settings.weights, budget)


def noise_and_cost(
    l1: Sequence[float],
    l2: Sequence[float],
    sizes: Sequence[int],
    noise: str,
    weights: Sequence[float] | None,
    budget: Budget,
) -> PureDP | ZCDP:
    """The guarantee under which to release tables of these sensitivities and numbers of cells, which tells the noise.

    Laplace for `PureDP`, Gaussian for `ZCDP`; where `budget` allows both and `noise` is "auto", the one of smaller
    total variance. Public numbers alone decide. ValueError for noise that cannot give the budget, and for impossible
    scales.
    """
    if noise == "gaussian" and budget.rho is None and not budget.delta:
        raise ValueError(
            f"noise='gaussian' cannot give {budget}: Gaussian noise has no pure guarantee; "
            "pass rho, or a delta above 0, or noise='laplace'"
        )
    if noise == "laplace" and budget.rho is not None:
        raise ValueError(
            f"noise='laplace' is for an epsilon, but the budget is {budget}; pass epsilon, or noise='gaussian', "
            "which is more accurate for any rho"
        )
    costs: list[tuple[float, PureDP | ZCDP]] = []
    if budget.epsilon is not None and noise != "gaussian":
        scales = laplace_scales(l1, budget.epsilon, weights)
        variance = math.fsum(
            size * Noise("discrete_laplace", b).variance for size, b in zip(sizes, scales, strict=True)
        )
        costs.append((variance, PureDP(budget.epsilon)))
    if noise != "laplace" and (budget.rho is not None or budget.delta):
        rho = budget.rho
        if rho is None:
            assert budget.epsilon is not None
            rho = accounting.approx_to_zcdp(budget.epsilon, budget.delta)
        scales = gaussian_scales(l2, rho, weights)
        variance = math.fsum(
            size * Noise("discrete_gaussian", s).variance for size, s in zip(sizes, scales, strict=True)
        )
        costs.append((variance, ZCDP(rho)))
    return min(costs, key=lambda item: item[0])[1]


def require_table_and_budget(
    table: object, budget: object, example: str = "a Budget, e.g. Budget(epsilon=1.0)"
) -> None:
    """TypeError for a table or a budget that is none; `example` is what the message tells to pass as the budget."""
    require_data_and_budget(table, PrivateTable, budget, name="table", example=example)


def require_scopes(schema: Schema, scopes: Sequence[Sequence[Hashable]]) -> None:
    """ValueError for scopes with variables that `schema` does not declare, or declares as numeric."""
    unknown = sorted({repr(name) for scope in scopes for name in scope if name not in schema.variables})
    if unknown:
        raise ValueError(
            f"scopes use the unknown variables {', '.join(unknown)}; the schema declares {list(schema.variables)}: "
            "add them to the schema (with their states), or remove them from the scopes"
        )
    for scope in scopes:
        schema.require_discrete(scope, argument="schema")


def _table_sizes(schema: Schema, settings: MarginalSettings) -> list[int]:
    """Cells of each table; ValueError for unknown or numeric variables and for more cells than allowed."""
    require_scopes(schema, settings.scopes)
    sizes = [math.prod(schema.cardinality(name) for name in scope) for scope in settings.scopes]
    if sum(sizes) > settings.max_cells:
        largest = sizes.index(max(sizes))
        raise ValueError(
            f"the tables of scopes have {sum(sizes)} cells together, more than max_cells={settings.max_cells}; the "
            f"largest is {settings.scopes[largest]} with {sizes[largest]}: use smaller cliques, merge states, or raise "
            f"max_cells (8 bytes a cell)"
        )
    return sizes


def _checked_scopes(scopes: Sequence[Sequence[Hashable]]) -> tuple[tuple, ...]:
    if isinstance(scopes, str | bytes) or not isinstance(scopes, Sequence | set | frozenset | np.ndarray):
        raise TypeError(f"scopes={scopes!r} is a {type(scopes).__name__}; pass a list of tuples of variable names")
    if len(scopes) == 0:
        raise ValueError("scopes is empty; pass at least one tuple of variable names")
    checked = []
    for scope in scopes:
        if isinstance(scope, str | bytes) or not isinstance(scope, Sequence | np.ndarray):
            raise TypeError(
                f"scopes holds {scope!r}, a {type(scope).__name__}; pass tuples of variable names, "
                "for a single variable ('name',)"
            )
        names = tuple(scope)
        if not names or len(set(names)) != len(names):
            raise ValueError(f"scopes holds {names!r}; a scope names at least one variable, and none of them twice")
        checked.append(names)
    return tuple(checked)


def _checked_weights(weights: Sequence[float], count: int) -> tuple[float, ...]:
    if isinstance(weights, str | bytes) or not isinstance(weights, Sequence | np.ndarray):
        raise TypeError(
            f"weights={weights!r} is a {type(weights).__name__}; pass one positive number per scope, or None"
        )
    if len(weights) != count:
        raise ValueError(f"weights has {len(weights)} entries for {count} scopes; pass one positive number per scope")
    return tuple(checked_number(f"weights[{k}]", weight, positive=True) for k, weight in enumerate(weights))


def checked_integer(name: str, value: object, least: int) -> int:
    """`value` as an int of at least `least`; TypeError or ValueError naming the argument otherwise."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name}={value!r} is a {type(value).__name__}; pass a whole number of at least {least}")
    if value < least:
        raise ValueError(f"{name}={value!r} is too small; pass a whole number of at least {least}")
    return int(value)
