"""Rules about what is impossible that released tables make probable, for a person to confirm from public reasons."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from pgmpy_dp.checks import checked_level
from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.learning.empty_cells import PairTable, pair_tables
from pgmpy_dp.learning.noisy_tables import noisy_marginals
from pgmpy_dp.learning.structural_zeros import forbidden_cells
from pgmpy_dp.private.sensitive import Release
from pgmpy_dp.schema import Schema
from pgmpy_dp.schema.orders import OrderRule, Orders, read_order
from pgmpy_dp.schema.rules import Column, Rule, conditions

if TYPE_CHECKING:
    import pandas as pd

_SURE = 0.95
"""Least probability, on average over the cells of a rule, that nobody is in one."""
_TOLD = ["rule", "probability", "at_most", "independent"]
_MANY = 3  # A state that goes with so many others, or fewer, and not with most, is said to imply them.


@dataclass(frozen=True)
class SuggestedRule:
    """A rule that a release makes probable.

    Attributes
    ----------
    rule : str
        As `Schema` takes it.
    probability : float
        That nobody is in a cell that it forbids, on average over these: 1 less their local false discovery rate.
    at_most : float
        Records that break it: an upper bound from the noise alone.
    independent : float
        Records that would break it if the two variables were independent.
    cells : frozenset of (int, int)
    """

    rule: str
    probability: float
    at_most: float
    independent: float
    cells: frozenset[int]

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form, for programs."""
        return {name: getattr(self, name) for name in _TOLD}


def suggested_rules(release: Release, level: float = 0.95) -> list[SuggestedRule]:
    """The rules that a release's tables make probable, the strongest first.

    A rule is about two variables that a table has, and is not among those of the schema. A state that goes with few
    states of the other variable implies them. Otherwise cells are listed that nobody seems to be in. Of implications
    from either side those are kept that together forbid all that is believed in the fewest rules.

    Parameters
    ----------
    release : Release
        Of tables with noise.
    level : float in (0, 1)
        Of `SuggestedRule.at_most`, of each rule by itself.

    Returns
    -------
    list of SuggestedRule
        By probability, in steps of .01, then by how many times `at_most` is below what independence would give.
    """
    if release.kind != "marginals":
        raise ValueError(f"release has kind {release.kind!r}, without tables that could make a rule probable")
    schema = release.schema
    noisy = replace(noisy_marginals(release, schema.variables), impossible=tuple(schema.zeros))
    rules = [
        one
        for table in pair_tables(noisy, some=0.0)
        for one in _of_pair(table, schema, level, noisy.noise == "laplace")
    ]
    return sorted(rules, key=lambda one: (-round(one.probability, 2), one.at_most / one.independent))


class SuggestsRules:
    """An estimator that learns from released tables; a mixin."""

    release_: Release
    model_: Any
    check_is_fitted: Callable[[], None]

    def suggest_impossible(self, level: float = 0.95) -> pd.DataFrame:
        """Suggest rules about what is impossible that the release makes probable, for you to confirm or to refuse.

        Post-processing of the release: costs nothing, and changes nothing. Each rule is a guess from noisy tables. Put
        one into ``Schema(impossible=[...])`` only if you know from public reasons, a definition or the questionnaire,
        that it holds; then learn again by ``fit_release``, without further cost.

        Parameters
        ----------
        level : float in (0, 1)
            Of the bound "at_most", of each rule by itself.

        Returns
        -------
        pandas.DataFrame
            One row for each rule, the strongest first. "rule" is as `Schema` takes it. "probability", .95 or more, is
            the mean probability that a forbidden cell is empty or nearly so: that it holds less than a 32nd of the
            records that independence of its two variables would give. "at_most" is the number of records that the
            noise may hide in all forbidden cells, and "independent" the number that independence would give.

        Raises
        ------
        NotFittedError
            Before `fit` or `fit_release`.
        ValueError
            For a release without tables, and a level that is not between 0 and 1.

        Notes
        -----
        Each cell of each pair of variables that a released table has is tested against the law of its noise
        (:mod:`pgmpy_dp.learning.empty_cells`). One less its probability is its local false discovery rate (Efron 2008),
        which holds however many cells are tested: of the cells that the rules of a table forbid, about one in twenty at
        most is expected to be none. Rare states, which the noise hides, get no rule.

        Examples
        --------
        >>> import pandas as pd
        >>> from pgmpy_dp import Budget, learn
        >>> frame = pd.DataFrame({"sex": ["F", "M"] * 2000, "pregnant": ["yes", "no", "no", "no"] * 1000})
        >>> learned = learn(frame, Budget(rho=0.1), {"sex": ["F", "M"], "pregnant": ["yes", "no"]})
        >>> learned.suggest_impossible()["rule"].tolist()
        ['sex = M & pregnant = yes']
        """
        import pandas as pd

        self.check_is_fitted()
        known = self.model_.schema.impossible  # of a given graph, the release may not have them
        suggestions = suggested_rules(self.release_, checked_level(level))
        return pd.DataFrame([one.to_dict() for one in suggestions if one.rule not in known], columns=_TOLD)


def _of_pair(table: PairTable, schema: Schema, level: float, laplace: bool) -> list[SuggestedRule]:
    names = [schema.variables[i] for i in table.scope]
    columns = [schema.column(name) for name in names]
    possible = table.variance > 0
    # Of Laplace noise a sum has lighter tails than one cell.
    deviations = max(NormalDist().inv_cdf(level), -math.log(2 * (1 - level)) / math.sqrt(2) if laplace else 0.0)
    candidates = []
    cliques = Cliques(tuple(names), possible.shape, (tuple(names),))
    numbers = {name: schema.numbers[name] for name in names if name in schema.numbers}
    rules: list[Rule | OrderRule] = [*_orders(columns), *_rules(columns, np.where(possible, table.empty, 1.0))]
    for rule in rules:
        boxes = [*rule.boxes(dict(zip(names, columns, strict=True))), *Orders([rule], numbers).relations()]
        forbidden = forbidden_cells(cliques, boxes).reshape(possible.shape) & possible
        if not forbidden.any() or table.empty[forbidden].mean() < _SURE:
            continue
        noise = deviations * math.sqrt(table.variance[forbidden].sum())
        candidates.append(
            SuggestedRule(
                str(rule),
                float(table.empty[forbidden].mean()),
                max(float(table.counts[forbidden].sum()), 0.0) + noise,
                float(table.independent[forbidden].sum()),
                frozenset(np.flatnonzero(forbidden).tolist()),
            )
        )
    kept = []
    left = frozenset().union(*(one.cells for one in candidates))
    while left:
        kept.append(max(candidates, key=lambda one: (len(one.cells & left), one.probability)))
        left -= kept[-1].cells
    return kept


def _orders(columns: Sequence[Column]) -> list[OrderRule]:
    """The rules that either of two numbers is at most the other, where these can be compared."""
    known = {column.name: column for column in columns}
    rules = list[OrderRule]()
    for low, high in itertools.permutations(known, 2):
        with suppress(ValueError):
            rules += filter(None, [read_order(str(OrderRule(low, high)), known)])
    return rules


def _rules(columns: Sequence[Column], empty: np.ndarray) -> Iterator[Rule]:
    """Rules of what each state of either variable implies or excludes; none leaves a state without a partner."""
    for (column, other), table in ((columns, empty), (columns[::-1], empty.T)):
        alone = (table > 0.5).all(axis=0)  # states of the other variable that are not seen at all
        for code, row in enumerate(table):
            premise, allowed = conditions(column, {code}), np.flatnonzero(row <= 0.5)
            if not premise or not len(allowed):
                continue
            if other.declared is not None:
                allowed = np.arange(allowed[0], allowed[-1] + 1)
            implied = conditions(other, allowed.tolist())
            if implied and len(allowed) <= _MANY and 2 * len(allowed) < len(row):
                yield Rule(premise, implied)
            sure = np.flatnonzero((row >= _SURE) & ~alone)
            runs = np.split(sure, np.flatnonzero(np.diff(sure) > 1) + 1) if other.declared is not None else [sure]
            for run in runs:
                if len(run) and (excluded := conditions(other, run.tolist())):
                    yield Rule((*premise, *excluded))
