"""Score a model on the records for a share of their budget: what a quality report says, within the guarantee."""

from __future__ import annotations

import math
import warnings
from collections.abc import Hashable
from typing import Any

import numpy as np
import pandas as pd

from pgmpy_dp.learning.few_records import FewRecordsWarning, few_records
from pgmpy_dp.learning.opened_table import table_for
from pgmpy_dp.learning.options import adjacencies, arguments_of, declares, flag, number, whole
from pgmpy_dp.learning.privacy_record import Privacy, handed_over, released
from pgmpy_dp.models import model_distances as plan
from pgmpy_dp.models.posterior.noisy_ratio import difference_quantile, sampling_distance
from pgmpy_dp.models.score_reading import ModelScore
from pgmpy_dp.models.scored_model import ScoredModel
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.budget import Budget, require_budget, unit_budget
from pgmpy_dp.private.data.table import PrivateTable
from pgmpy_dp.private.sensitive import Noise
from pgmpy_dp.schema import Schema
from pgmpy_dp.shown import quantity


@declares(
    worst=flag(),
    each=flag(),
    level=number(below_one=True),
    adjacency=adjacencies(),
    n_records=whole(0),
    random_state=whole(0),
)
def score_model(
    model: Any,
    df: Any,
    budget: Budget,
    *,
    workload: Any = None,
    worst: bool = True,
    each: bool = False,
    level: float = 0.9,
    schema: Schema | dict | None = None,
    adjacency: str | None = None,
    n_records: int | None = None,
    random_state: int | None = None,
    unit: Hashable = None,
    rows_per_unit: int | str | None = None,
) -> ModelScore:
    """Score how far a released model is from the records, for a share of their budget.

    A report that compares a model with its records without noise reveals what the model's guarantee promised to hide.
    This spends a little, and says how sure it is.

    Parameters
    ----------
    model : MarkovNetwork, DiscreteMarkovNetwork, DiscreteBayesianNetwork, a fitted estimator, or path of a model's file
        Released under a guarantee, or public. It may lack columns of the records.
    df : dataframe, path or PrivateTable
        The records, as an estimator's `fit` takes them. A `PrivateTable` charges its own ledger.
    budget : Budget
        What the scores spend, e.g. ``Budget(epsilon=0.1)``. The noise of a mean has a standard deviation of
        about ``6.5/epsilon`` records, over their number: see `plan`.
    workload : mapping of sets of variables to positive numbers, or list of such sets, optional
        The sets of up to eight variables, or levels of them, that the mean is over, and their weights in it. Default:
        two means, over all pairs and over all triples, or over 500 of each that are drawn by a fixed rule; of a model
        under loopy inference over the tables that it has.
    worst : bool
        Whether to find a set of variables on which the model is about the furthest off, and to measure it.
    each : bool
        Whether to measure every set by itself: k of them have k times the noise, or sqrt(k) times under rho.
    level : float in (0, 1)
        The level of intervals; `ModelScore.at` gives others without further cost.
    schema : Schema or dict of variable to list of states, optional
        How the records are read. Default: that of the `PrivateTable`, or the one that the model was learned with. Its
        states are those of the model, in any order, or finer: cells of numbers of which the model's are made up.
    adjacency : {"add_remove", "replace_one"}, optional
        Default: that of the `PrivateTable`, or "add_remove".
    n_records : int, optional
        The number of records, where it is public; "replace_one" needs it.
    random_state : int, optional
        Tests and benchmarks only: reproducible noise protects nobody.
    unit, rows_per_unit
        Of persons with several records, as an estimator's `fit` takes them.

    Returns
    -------
    ModelScore

    Raises
    ------
    TypeError, ValueError
        For public arguments that cannot be used, before anything is spent.
    BudgetExceeded
        If the ledger does not have the budget left; nothing is spent.
    InferenceTooLarge, InferenceUnavailable
        If the model's inference cannot give a set's table; nothing is spent.

    Warns
    -----
    FewRecordsWarning
        Where the estimated number of records is next to nothing.

    Notes
    -----
    Privacy: the only access to the records is the release of :mod:`pgmpy_dp.models.model_distances`, which has the
    proof. A model that was learned from the same records has a guarantee of its own, and both costs add up: pass the
    `PrivateTable` that it was learned from, or its ledger. If the model's states were found in records, that cost is
    part of the model's cost, to the people in those records. Records of other people may have any ledger: only the
    scores tell of them. Whoever picks the better of two models by their scores owes what both scores cost.

    Examples
    --------
    >>> from pgmpy_dp import learn
    >>> rng = np.random.default_rng(0)
    >>> data = pd.DataFrame(rng.integers(0, 2, (20_000, 3)), columns=list("abc"))
    >>> table = PrivateTable(data, {name: [0, 1] for name in "abc"}, ledger=Budget(epsilon=1.1, delta=1e-6))
    >>> model = learn(table, Budget(epsilon=1.0, delta=1e-7)).model_
    >>> score = score_model(model, table, Budget(epsilon=0.1))
    >>> list(score.table.index), bool(score.table["upper"].max() < 0.1)
    (['pairs', 'triples', 'worst'], True)
    """
    require_budget(budget, "a Budget, e.g. Budget(epsilon=0.1)")
    records = {"adjacency": adjacency, "n_records": n_records, "random_state": random_state}
    settings = arguments_of(score_model, worst=worst, each=each, level=level, **records)
    scored = ScoredModel.of(model)
    if isinstance(df, PrivateTable):
        known, neighbours = df.schema, df.adjacency
    else:
        schema = known = scored.reading(schema)
        neighbours = Adjacency.parse(adjacency or Adjacency.ADD_REMOVE)
    tables = scored.tables(known, workload)
    plan.planned_noise(len(tables.means), len(tables.scopes), settings, budget, neighbours)
    table = table_for(df, schema, budget, settings, unit, rows_per_unit)
    release = released(table, plan.run, tables, settings, budget)
    with handed_over(release):
        score = ModelScore.of(release, settings.level, Privacy.of(release, table.ledger.entries))
        said = few_records(score.n_records, score.n_records_sd)
        if said is not None:
            warnings.warn(said, FewRecordsWarning, stacklevel=2)
        return score


@declares(n=whole(1), worst=flag(), each=flag(), level=number(below_one=True), adjacency=adjacencies())
def preview_score(
    model: Any,
    n: int,
    budget: Budget,
    *,
    workload: Any = None,
    worst: bool = True,
    each: bool = False,
    level: float = 0.9,
    adjacency: str = "add_remove",
    rows_per_unit: int | str = 1,
) -> pd.DataFrame:
    """Preview how wide the intervals of `score_model` would be, from public numbers: it reads no records.

    Parameters
    ----------
    model, workload, worst, each, level, adjacency, rows_per_unit
        As `score_model` takes them.
    n : int
        The assumed number of records: a public guess.
    budget : Budget

    Returns
    -------
    pandas.DataFrame
        One row for each score: ``tables``; ``sd``, the standard deviation of its noise, in records; ``half_width``,
        about how far an interval reaches to either side of a small distance; ``sampling``, see `ModelScore`. Of every
        set by itself the largest.

    Raises
    ------
    TypeError, ValueError
        For arguments that `score_model` would refuse, and an `n` below 1.

    Examples
    --------
    >>> from pgmpy_dp import MarkovNetwork
    >>> model = MarkovNetwork([("a", "b")])
    >>> from pgmpy.factors.discrete import DiscreteFactor
    >>> model.add_factors(DiscreteFactor(["a", "b"], [2, 2], [4, 1, 1, 4]))
    >>> preview_score(model, 20_000, Budget(epsilon=0.1)).loc["pairs", "half_width"].round(4)
    np.float64(0.0027)
    """
    require_budget(budget, "a Budget, e.g. Budget(epsilon=0.1)")
    settings = arguments_of(preview_score, n=n, worst=worst, each=each, level=level, adjacency=adjacency)
    n, level = settings.n, settings.level
    scored = ScoredModel.of(model)
    tables = scored.tables(None, workload)
    spent = unit_budget(budget, rows_per_unit)
    _, noise = plan.planned_noise(len(tables.means), len(tables.scopes), settings, spent, Adjacency.parse(adjacency))
    sampling = np.array([sampling_distance(one, n) for one in tables.tables])
    rows: dict[str, tuple[int, Noise, float]] = {}
    for mean in tables.means:
        expected = float(np.average(sampling[list(mean.weights)], weights=list(mean.weights.values())))
        rows[mean.name] = len(mean.weights), noise["means"], expected
    if settings.each:
        rows["each"] = len(sampling), noise["each"], float(sampling.max())
    if settings.worst:
        rows["worst"] = 1, noise["worst"], float(sampling.max())
    summary = [
        (count, math.sqrt(law.variance), _reach(law, noise["count"], expected, n, level), expected)
        for count, law, expected in rows.values()
    ]
    index = pd.Index(list(rows), name="score")
    return pd.DataFrame(summary, index=index, columns=["tables", "sd", "half_width", "sampling"])


def plan_score(model: Any, n: int, budget: Budget, **how: Any) -> tuple[pd.DataFrame, dict[str, Any], str]:
    """What `preview_score` says, as a table, JSON-able, and to read."""
    table, level = preview_score(model, n, budget, **how), how.get("level", 0.9)
    rows = table.reset_index().astype(object).to_dict("records")
    under = how.get("adjacency", "add_remove")
    head = f"{budget} under {under}, {quantity(n, 'record')} assumed; {100 * level:g} % intervals"
    lines = [
        f"  {row['score']:<10} {quantity(row['tables'], 'table'):>14}   noise of sd {row['sd']:>8,.1f} records   "
        f"interval about +- {row['half_width']:.4f}   sampling alone {row['sampling']:.4f}"
        for row in rows
    ]
    return table, {"level": level, "scores": rows}, "\n".join([head, *lines])


def _reach(noise: Noise, count: Noise, distance: float, n: int, level: float) -> float:
    reach = difference_quantile(noise.distribution, noise.scale, distance * count.scale, level) + 1.0
    return min(1.0, reach / n)
