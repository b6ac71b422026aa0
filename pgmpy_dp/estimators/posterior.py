"""Intervals and synthetic data sets in the states' own names; a view of `pgmpy_dp.models.posterior`."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd

from pgmpy_dp.estimators.display import as_table, states_text
from pgmpy_dp.estimators.markov_network import MarkovNetwork
from pgmpy_dp.estimators.privacy import Privacy
from pgmpy_dp.models.evidence import state_of
from pgmpy_dp.models.posterior import Posterior
from pgmpy_dp.schema import Schema

__all__ = ["ParameterPosterior"]


@dataclass(frozen=True, eq=False, repr=False)
class ParameterPosterior:
    """What a release says about the population, with its uncertainty from sampling and from privacy noise.

    Made by :meth:`~pgmpy_dp.estimators.CollectiveMAP.posterior`; post-processing of one release, so under the same
    guarantee.

    Attributes
    ----------
    draws : Posterior
        The draws as arrays; see there for what an interval promises.
    schema : Schema
    graph : networkx.Graph
    privacy : Privacy
    """

    draws: Posterior
    schema: Schema
    graph: nx.Graph
    privacy: Privacy

    def __repr__(self) -> str:
        of = f"{self.draws.n_draws} draws of a model of {len(self.graph)} variables"
        return f"ParameterPosterior({of}; {self.privacy}; ask .interval, .sample or .models)"

    def _repr_html_(self) -> str:
        rows = [(name, states_text(self.schema.states[name])) for name in self.graph]
        return as_table(repr(self), ("variable", "states"), rows)

    def interval(
        self,
        variables: Sequence[Hashable],
        evidence: Mapping[Hashable, Any] | None = None,
        *,
        level: float = 0.9,
    ) -> pd.DataFrame:
        """Intervals for the probabilities of all joint states of some variables in the population.

        Parameters
        ----------
        variables : list of nodes
        evidence : dict of node to state, number or day, optional
            Condition on the states in which these count.
        level : float in (0, 1)
            Posterior probability of each interval by itself.

        Returns
        -------
        pandas.DataFrame
            One row for each joint state, C order: a column for each variable, then "estimate", "lower", "upper".

        Raises
        ------
        ValueError
            If a variable or a state is unknown, or the level needs more draws.
        """
        if isinstance(variables, str):
            raise ValueError(f"variables={variables!r} must be a list of variables; pass [{variables!r}]")
        names, given = list(variables), dict(evidence or {})
        unknown = [name for name in (*names, *given) if name not in self.graph]
        if unknown:
            raise ValueError(f"variables and evidence name {unknown}, which are not in the model {list(self.graph)}")
        codes = {name: state_of(self.schema, name, state) for name, state in given.items()}
        found = self.draws.interval(names, codes, level=level)
        cells = np.indices(found.estimate.shape).reshape(len(names), -1)
        columns = [
            pd.Series([self.schema.states[name][k] for k in row]) for name, row in zip(names, cells, strict=True)
        ]
        frame = pd.DataFrame(dict(enumerate(columns)))
        frame.columns = pd.Index(names, tupleize_cols=False)
        for part, values in zip(found._fields, found, strict=True):
            frame[part] = values.ravel()
        return frame

    def models(self, n: int) -> list[MarkovNetwork]:
        """The models of the first n draws (draws are independent)."""
        if not 1 <= n <= self.draws.n_draws:
            raise ValueError(f"n={n!r} must be from 1 to the number of draws, {self.draws.n_draws}")
        return [
            MarkovNetwork.from_log_linear(self.draws.model(k), self.graph, self.schema, self.privacy) for k in range(n)
        ]

    def sample(
        self, n: int, n_sets: int = 10, random_state: int | np.random.Generator | None = None, labels: bool = False
    ) -> list[pd.DataFrame]:
        """Several synthetic data sets of n records, each from a model of its own.

        The records of each are independent of each other, as the combining rules take them to be. Run the same analysis
        on each and combine with
        :func:`pgmpy_dp.models.multiple_imputation.combine_synthetic`: the combined variance accounts for the sampling
        of the original records and for the privacy noise, which an analysis of one data set cannot.

        Parameters
        ----------
        n : int
            Records in each; any number, the privacy does not depend on it.
        n_sets : int
            Data sets, at most the number of draws.
        random_state : int, numpy.random.Generator or None
        labels : bool, default False
            States instead of numbers and days.
        """
        if not 1 <= n_sets <= self.draws.n_draws:
            raise ValueError(f"n_sets={n_sets!r} must be from 1 to the number of draws, {self.draws.n_draws}")
        rng = np.random.default_rng(random_state)
        return [model.sample(n, rng, labels, method="independent") for model in self.models(n_sets)]
