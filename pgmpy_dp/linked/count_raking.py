"""Models of families that obey rules on counts: the share of children who meet a condition, and pairs that cannot be.

Of n children of whom m meet a condition, a random one meets it with probability m/n. Where m is known, the model is the
nearest one of which that is true, in relative entropy (iterative proportional fitting; Deming and Stephan 1940), given
that no two children break a rule. Children of whom it is unknown whether they meet it are left as they are.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from pgmpy_dp.inference.batch import SumProductBatch
from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.linked.operators.linked_schema import LinkedSchema
from pgmpy_dp.linked.operators.wide_table import WideTable
from pgmpy_dp.linked.size_trend import SizeTrend
from pgmpy_dp.models.posterior.posterior_draws import Posterior
from pgmpy_dp.schema.count_rules import CountLimits

_SWEEPS, _CLOSE = 25, 1e-4  # at most; how far off shares are at which they end


def under_rules(
    linked: LinkedSchema, wide: WideTable, model: LogLinearModel, trend: SizeTrend | None = None
) -> LogLinearModel:
    """One model, as `raked` has several."""
    one = raked(linked, wide, Posterior(model.cliques, model.theta[None], "", "", model.memory_limit), trend)
    return replace(model, cliques=one.cliques, theta=one.theta[0])


def raked(linked: LinkedSchema, wide: WideTable, draws: Posterior, trend: SizeTrend | None = None) -> Posterior:
    """Models that obey the rules on counts and have a trend, each near to one of `draws`; post-processing of them.

    Parameters
    ----------
    linked : LinkedSchema
    wide : WideTable
        In the states that the models have.
    draws : Posterior
        Models of rows of families.
    trend : SizeTrend, optional
        That columns without rules are to have: one for all, or one for each.

    Returns
    -------
    Posterior
        Of the same number of models, over a few more tables; the same object where there is nothing to do.
    """
    limits, steps, trends = linked.count_limits(wide.child), list[tuple[Any, partial]](), list[tuple[Any, partial]]()
    for name, slot in itertools.product(wide.child, range(1 if wide.ordered else 2)):
        scope = (wide.size, wide.slots[slot][list(wide.child).index(name)])
        if name in limits:
            rules = range(len(limits[name].met) - 1)
            steps += [(scope, partial(_change, wide, slot, limits[name], rule)) for rule in rules]
        elif trend is not None:
            trends.append((scope, partial(trend.step, wide, slot, name)))
    if not steps and not trends:
        return draws
    draws = draws.obeying([box for name, one in limits.items() for box in _boxes(wide, name, one)])
    scopes = list(dict.fromkeys(scope for scope, _ in [*steps, *trends]))
    cliques = replace(draws.cliques, scopes=(*draws.cliques.scopes, *scopes))
    theta = np.pad(draws.theta, ((0, 0), (0, cliques.n_cells - draws.cliques.n_cells)))
    engine = SumProductBatch(cliques, len(theta), (), draws.memory_limit)
    parts = dict(zip(scopes, cliques.slices[len(draws.cliques.scopes) :], strict=True))

    def table(scope: Any) -> np.ndarray:
        return engine.marginals(theta)[:, parts[scope]].reshape(len(theta), len(wide.patterns), -1)

    steps += [(scope, step(table(scope))) for scope, step in trends]
    for _ in range(_SWEEPS):
        furthest = 0.0
        for scope, step in steps:
            change, off = step(table(scope))
            theta[:, parts[scope]] += change.reshape(len(theta), -1)
            furthest = max(furthest, off)
        if furthest < _CLOSE:
            break
    return replace(draws, cliques=cliques, theta=theta)


def _change(wide: WideTable, slot: int, one: CountLimits, rule: int, table: np.ndarray) -> tuple[np.ndarray, float]:
    """What is added to log-potentials of n with a child's column; and how far off the share was."""
    n = np.array([n if _there(wide, n, present, (slot,)) else 0 for n, present in wide.patterns])
    met, unmet = (states[: table.shape[2]] for states in (one.met[rule], ~one.met[rule] & ~one.unknown[rule]))
    of_met = table[:, :, met].sum(axis=2)
    share = of_met / np.maximum(of_met + table[:, :, unmet].sum(axis=2), 1e-300)
    wanted = np.clip(share, *(ends[rule, n] / np.maximum(n, 1) for ends in (one.low, one.high)))
    with np.errstate(divide="ignore", invalid="ignore"):
        odds = np.log(wanted / share * (1.0 - share) / (1.0 - wanted))  # of the unknown nothing is fixed
        change = met * ((1.0 - wanted) * odds)[:, :, None] - unmet * (wanted * odds)[:, :, None]
    return np.where(np.isfinite(change), change, 0.0), float(np.abs(wanted - share)[of_met > 0].max(initial=0.0))


def _boxes(wide: WideTable, name: Hashable, one: CountLimits) -> Iterator[dict[Hashable, frozenset[int]]]:
    """What the rules on a column forbid one child, and two of one family."""
    columns = [slot[list(wide.child).index(name)] for slot in wide.slots]
    for met, unknown, low, high in zip(one.met[:-1], one.unknown, one.low, one.high, strict=False):
        n = np.arange(len(low))
        for states, never, once in ((met, high == 0, high <= 1), (~met & ~unknown, low == n, low >= n - 1)):
            cells = frozenset(np.flatnonzero(states).tolist())
            for slots, forbidden in (((0,), never), ((1,), never), ((0, 1), once)):
                there = {p for p, (k, present) in enumerate(wide.patterns) if _there(wide, k, present, slots)}
                sizes = frozenset(p for p in there if forbidden[wide.patterns[p][0]])
                box: dict[Hashable, frozenset[int]] = dict.fromkeys([columns[slot] for slot in slots], cells)
                if cells and sizes:
                    yield box if sizes == there and len(slots) == 2 else {wide.size: sizes, **box}


def _there(wide: WideTable, n: int, present: tuple[int, ...], slots: tuple[int, ...]) -> bool:
    return n > max(slots) if wide.ordered else set(slots) <= set(present)
