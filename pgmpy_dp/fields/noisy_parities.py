"""Noisy parities of binary variables, up to t of them: the moments of a binary t-wise Markov random field."""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from pgmpy_dp.fields.field_scopes import field_scopes
from pgmpy_dp.fields.operators.feature_matrices import ParityMatrixSums
from pgmpy_dp.fields.operators.parities import ParitySums, Subsets, WorstParity, family_size
from pgmpy_dp.fields.parity_features import MOST_FEATURES, ParityFeatures, parity_features
from pgmpy_dp.fields.parity_rounds import default_rounds, pmw_answers
from pgmpy_dp.learning.least_noise import least_noise, noise_for_ledger
from pgmpy_dp.learning.options import Settings
from pgmpy_dp.learning.privacy_record import require_kind
from pgmpy_dp.learning.public_graph import edge_positions, encoded_graph, released_edges
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.curator.curator_base import cost_of
from pgmpy_dp.private.curator.table_curator import TableCurator
from pgmpy_dp.private.data.table import PrivateTable, require_table_and_budget
from pgmpy_dp.private.guarantee import ZCDP, PureDP, share_of_cost
from pgmpy_dp.private.operators.record_count import RecordCount
from pgmpy_dp.private.sensitive import Noise, Release
from pgmpy_dp.schema import Schema
from pgmpy_dp.shown import quantity

Sums = tuple[list[np.ndarray], str]  # the arrays of a release, and the method that made them

METHODS = ("noise", "gaussian", "laplace", "wishart", "pmw", "sepfem", "auto")
_PMW_LIMIT = 20  # variables
# Noise of a mean from which PMW has the smaller largest error, measured by benchmarks/query_release.py. Pure budgets
# with Laplace noise have a smaller one, because the l1 sensitivity of all sums grows with their number, not with its
# square root; with Wishart noise it is larger, for the rounds of PMW have Laplace noise in any case.
# The noise is in root mean square, if all sums get it: sqrt(m/(2 rho))/N, or by Wishart noise about
# (p/2)**1.5/(epsilon N) for order 2, under add_remove. Below these numbers it is the most accurate, the fastest,
# unbiased and of known distribution. See benchmarks/results/query-release.md and query-release-pure.md.
_WEAK, _WEAK_PURE, _WEAK_MATRIX = 0.03, 0.003, 0.3


@dataclass(frozen=True)
class ParityPlan:
    """The plan of a release of parities, from public numbers alone.

    Attributes
    ----------
    family : int or tuple of tuples of int
        All parities of up to so many of the variables, or those of a public graph's cliques.
    features : ParityFeatures or None
        Of the matrix that gets Wishart noise; None where each sum gets its own.
    """

    n_variables: int
    order: int
    adjacency: Adjacency
    n_records: int | None
    method: str
    cost: PureDP | ZCDP
    n_rounds: int | None
    count_share: Fraction
    family: int | Subsets
    features: ParityFeatures | None = None

    @property
    def n_parities(self) -> int:
        """The number of all sets, or of the public family."""
        return family_size(self.family, self.n_variables)

    @property
    def rest(self) -> Fraction:
        """Share of what is not spent on a count before all else."""
        return Fraction(1) if self.n_records is not None else 1 - self.count_share

    @property
    def mechanism(self) -> str:
        """Name of what adds the noise, as far as it is known before the noisy count."""
        if self.method == "noise" and self.features is not None:
            return "discrete_wishart"
        if self.method == "noise":
            return "discrete_laplace" if isinstance(self.cost, PureDP) else "discrete_gaussian"
        return self.method


def run(table: PrivateTable, settings: Settings, budget: Budget) -> Release:
    """Release noisy sums of all parities of up to `order` variables, or of those of a public graph's cliques.

    Refuses variables that are not binary, a graph of other variables, an order above their number, too many parities,
    too many variables for pmw and sepfem, a method that does not fit the budget's measure.

    Parameters
    ----------
    table : PrivateTable
        All variables binary.
    settings : Settings
        `order`, `method`, `graph` and `random_state`. The method "noise" adds noise to all sums: for a pure budget
        Laplace, or Wishart to a matrix of products from which they are read; Gaussian for rho; for (epsilon, delta) any
        of these. It takes the one with the smallest variances in all, which public numbers decide, Gaussian in a ledger
        that counts zCDP already (:func:`~pgmpy_dp.learning.least_noise.noise_for_ledger`); "gaussian", "laplace" and
        "wishart" insist. "pmw" are private multiplicative weights over all 2**p records, for up to 20 variables;
        "sepfem" the perturbed leader, slower and rarely better. "auto" is "pmw" where noise on all sums would be large,
        else "noise". Only parities of cliques of a public graph are released, with less noise as they are fewer.

        No estimator has these as options: `n_rounds` of pmw and sepfem (default: from the public or noisy number of
        records, :func:`~pgmpy_dp.fields.parity_rounds.default_rounds`); `count_share`, the part of the budget that
        these and auto spend on a noisy number of records where no public one is known (default: 0.05; "noise" releases
        the count as one more parity); `max_parities`, the largest number of parities (default: 10**7).

    Returns
    -------
    Release
        ``kind="parities"``; ``values[0]`` the noisy sums over records of the products of z = 2 code - 1, shape (m,), in
        the order of :func:`released_subsets`; ``values[1]``, where the number of records
        is not public, a noisy count of them, shape (1,). ``noise[0]`` is None for pmw and sepfem, whose answers come
        from a distribution and are rounded to whole records; Wishart noise differs from sum to sum, and it is that of
        the noisiest (:func:`released_deviations`). ``public["method"]`` names the method.

    Notes
    -----
    Privacy
        *Sensitivity.* That of :class:`~pgmpy_dp.fields.operators.parities.ParitySums`,
        :class:`~pgmpy_dp.fields.operators.feature_matrices.ParityMatrixSums`, ``worst_parity`` and
        ``record_count``, which are all that see the records. A graph is public, so the list of sums tells
        nothing of them.

        *Guarantee.* Under the table's adjacency, noise: rho-zCDP with Gaussian, epsilon-DP with Laplace noise, one
        scale for all sums, or with Wishart noise on a matrix. pmw and sepfem: the count (its share) and the rounds
        (equal shares of the rest) compose adaptively. auto: the count comes first, and what is left is spent by one
        method, chosen by public numbers and this count. For an (epsilon, delta) budget zCDP methods have the largest
        rho that dp-accounting converts to it.

        *Source.* Canonne, Kamath and Steinke 2020; Hardt and Rothblum 2010; Hardt, Ligett and McSherry 2012; Vietri,
        Tian, Bun, Steinke and Wu 2020.

        *Side channels.* Refusals, shapes and the method depend on public and noisy numbers only. Running time depends
        on the number of records, and for sepfem on the released path.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"a": [0, 1, 1], "b": ["x", "y", "y"]})
    >>> table = PrivateTable(frame, {"a": [0, 1], "b": ["x", "y"]}, ledger=Budget(rho=1.0))
    >>> from pgmpy_dp.learning.options import Settings
    >>> settings = Settings(order=2, method="noise", graph=None, random_state=None)
    >>> release = run(table, settings, Budget(rho=0.5))
    >>> release["sums"].array.shape, release["sums"].noise.scale, str(table.ledger.left)
    ((3,), 2.0, '0.5-zCDP')
    """
    budget = require_table_and_budget(table, budget, "a Budget, e.g. Budget(rho=0.1)")
    settings = _completed(settings)
    noise = noise_for_ledger("auto", budget, table)
    plan = plan_parities(table.schema, table.adjacency, table.n_records, settings, budget, noise)
    curator = TableCurator(
        table,
        budget,
        what=f"parities of {'up to' if settings.graph is None else 'cliques of up to'} {plan.order} of "
        f"{quantity(plan.n_variables, 'variable')}",
        mechanism=plan.mechanism,
        pure=isinstance(plan.cost, PureDP),
        random_state=settings.random_state,
    )
    public = {
        "order": plan.order,
        "graph": encoded_graph(settings.graph),
        "weights": None if plan.features is None else list(plan.features.by_size),
        "settings": settings.public(budget, "method", "n_rounds", "count_share"),
    }

    def release(outcome: Sums) -> Release:
        values, method = outcome
        weights = public["weights"] if method == "noise" else None
        named = dict(zip(("sums", "n_records"), values, strict=False))
        return curator.release("parities", {**public, "weights": weights, "method": method}, named)

    return curator.following(_steps(curator, plan), release)


def plan_parities(
    schema: Schema,
    adjacency: Adjacency,
    n_records: int | None,
    settings: Settings,
    budget: Budget,
    noise: str = "auto",
) -> ParityPlan:
    """Check all arguments and plan the release; raises what `run` raises before its charge.

    With ``n_records=None`` a noisy count is released too, under either adjacency: the size of a random part of the
    records is private also where that of the whole is not. `noise` is "auto" or "gaussian", for methods without one.
    """
    settings = _completed(settings)
    schema.require_discrete(argument="schema")
    others = {name: schema.cardinality(name) for name in schema.variables if schema.cardinality(name) != 2}
    if others:
        raise ValueError(f"schema declares {others} states for these variables; parities are of variables with two")
    p, order = len(schema), settings.order
    if order > p:
        raise ValueError(f"order={order} is more than the {quantity(p, 'variable')} of the schema; pass at most {p}")
    family: int | Subsets = order
    if settings.graph is not None:
        family = field_scopes(p, order, edge_positions(schema, settings.graph), most=settings.max_parities)
    if family_size(family, p) > settings.max_parities:
        least = "" if settings.graph is None else "at least "
        raise ValueError(
            f"order={order} gives {least}{family_size(family, p):,} parities of {p} variables, more than "
            f"{settings.max_parities}; lower the order, or drop variables"
        )
    method = settings.method
    if method in ("gaussian", "laplace", "wishart"):
        method, noise = "noise", method
    if method == "auto" and p > _PMW_LIMIT:
        method = "noise"
    in_rounds = method in ("pmw", "sepfem")
    if in_rounds:
        _require_memory(method, p, settings.n_rounds or 100)
    if in_rounds and budget.delta:
        noise = "gaussian"  # rounds are of many small costs, which add up better as zCDP wherever a delta allows it
    with_count = n_records is None and not in_rounds
    features = None
    if noise in ("auto", "wishart") and not in_rounds and budget.epsilon is not None:
        features = parity_features(p, order, family)
    if noise == "wishart" and features is None:
        raise ValueError(_no_matrix(budget))
    cost, matrix = _least(family, features, p, adjacency, with_count, budget, noise)
    share = Fraction(settings.count_share)
    plan = ParityPlan(p, order, adjacency, n_records, method, cost, settings.n_rounds, share, family)
    plan = replace(plan, features=matrix)
    if method == "auto" and n_records is not None:
        plan = _chosen(plan, float(n_records))
    if plan.method != "noise":
        # Refuses here what the rounds would refuse later: no selection of any method gets a smaller share.
        RecordCount.noise_of(cost, share if n_records is None else Fraction(1))
        WorstParity.planned(adjacency, cost, plan.rest / (2 * (settings.n_rounds or 200)))
    return plan


def _completed(settings: Settings) -> Settings:
    return settings.filled(n_rounds=None, count_share=0.05, max_parities=10**7)


def _least(
    family: int | Subsets,
    features: ParityFeatures | None,
    p: int,
    adjacency: Adjacency,
    with_count: bool,
    budget: Budget,
    noise: str,
) -> tuple[PureDP | ZCDP, ParityFeatures | None]:
    """The cost, and the features if Wishart noise on their matrix is the smallest there is."""

    def additive(cost: PureDP | ZCDP) -> list[Noise]:
        return [ParitySums.planned(family, p, adjacency, with_count, cost, Fraction(1)).noise[0]]

    sums = family_size(family, p)
    if noise == "wishart":
        cost = cost_of(budget, pure=True)
    else:
        cost = least_noise(additive, [sums + with_count], budget, noise)
    if features is None:
        return cost, None
    pure = cost_of(budget, pure=True)
    assert isinstance(pure, PureDP)
    noises = features.noise(adjacency, with_count, pure, Fraction(1))
    total = noises[0].variance * float((features.deviations**2).sum()) + sum(one.variance for one in noises[1:])
    if noise == "wishart" or total < additive(cost)[0].variance * (sums + with_count):
        return pure, features
    return cost, None


def _no_matrix(budget: Budget) -> str:
    if budget.epsilon is None:
        return f"method='wishart' is for an epsilon, but the budget is {budget}; pass epsilon, or method='gaussian'"
    return (
        f"method='wishart' needs a matrix of more than {MOST_FEATURES} rows for so many parities; use method='laplace'"
    )


def released_deviations(release: Release) -> np.ndarray | None:
    """Standard deviation of the noise of each sum over that of ``noise[0]``; None where all have the same.

    ValueError for another kind of release.
    """
    require_kind(release, "parities")
    weights = release.public.get("weights")
    if weights is None:
        return None
    p, order = len(release.schema), release.public["order"]
    family = order if released_edges(release) is None else released_subsets(release)
    features = parity_features(p, order, family, tuple(weights))
    assert features is not None
    return features.deviations


def released_subsets(release: Release) -> Subsets:
    """The sets whose noisy sums are ``values[0]`` of a release of this learner: by size, each size lexicographic.

    All of up to `order` variables, or the cliques of the public graph it was made for. ValueError for another kind.
    """
    require_kind(release, "parities")
    return field_scopes(len(release.schema), release.public["order"], released_edges(release))


def _steps(curator: TableCurator, plan: ParityPlan) -> Generator[Sums, None, None]:
    """Yield the arrays that a release keeps, and the method that made them, after each round where there are any."""
    if plan.method == "noise":
        yield _sums(curator, plan, 1, plan.n_records is None), "noise"
        return
    count, records = [], max(1.0, float(plan.n_records or 0))
    if plan.n_records is None:
        records = max(1.0, float(curator.ask(RecordCount(), plan.count_share)))
        count = curator.answers[-1].values
    if plan.method == "auto":
        plan = _chosen(plan, records)
    if plan.method == "noise":
        yield [*_sums(curator, plan, plan.rest, False), *count], "noise"
        return
    rounds = plan.n_rounds
    if rounds is None:
        rounds = default_rounds(
            plan.method, plan.n_variables, plan.n_parities, share_of_cost(plan.cost, plan.rest), records
        )
    answers = pmw_answers
    if plan.method == "sepfem":
        from pgmpy_dp.fields.published.perturbed_leader import sepfem_answers as answers
    for means in answers(curator, plan.family, records, rounds, plan.rest):
        yield [np.rint(records * means).astype(np.int64), *count], plan.method


def _sums(curator: TableCurator, plan: ParityPlan, share: Fraction | int, with_count: bool) -> list[np.ndarray]:
    if plan.features is None:
        return curator.ask(ParitySums(plan.family, with_count=with_count), share)
    features = plan.features
    return curator.ask(ParityMatrixSums(features.sets, features.weights, plan.family, with_count=with_count), share)


def _chosen(plan: ParityPlan, records: float) -> ParityPlan:
    """The method that "auto" stands for, with this public or noisy number of records."""
    if plan.features is None:
        noise = ParitySums.planned(plan.family, plan.n_variables, plan.adjacency, False, plan.cost, plan.rest).noise[0]
        sd = math.sqrt(noise.variance)
    else:
        assert isinstance(plan.cost, PureDP)
        (noise,) = plan.features.noise(plan.adjacency, False, plan.cost, plan.rest)
        sd = math.sqrt(noise.variance * float((plan.features.deviations**2).mean()))
    threshold = _WEAK if not isinstance(plan.cost, PureDP) else _WEAK_PURE if plan.features is None else _WEAK_MATRIX
    weak = sd >= threshold * max(1.0, records)
    return replace(plan, method="pmw" if weak and plan.n_variables <= _PMW_LIMIT else "noise")


def _require_memory(method: str, n_variables: int, rounds: int) -> None:
    if n_variables > _PMW_LIMIT:
        gigabytes = 2.0**n_variables * (40 + rounds) / 2.0**30
        raise ValueError(
            f"method={method!r} keeps a number for each of the 2**{n_variables} possible records, which would take "
            f"{gigabytes:,.0f} GiB; it is for at most {_PMW_LIMIT} variables: use 'noise'"
        )
