"""PrivateMarkovChain: a time-homogeneous chain from sequences of users, each protected with all of its visits."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import networkx as nx
import numpy as np
import pandas as pd
from scipy.special import log_softmax

from pgmpy_dp.inference.sampling import SamplingMethod
from pgmpy_dp.learning.collective_base import Progress, progress_bar
from pgmpy_dp.learning.least_noise import NOISES
from pgmpy_dp.learning.maximum_likelihood import naive_mle
from pgmpy_dp.learning.options import adjacencies, anything, by, column, flag, number, one_of, option, whole
from pgmpy_dp.learning.privacy_record import Privacy, released_parameters, require_agreement, steps_taken
from pgmpy_dp.learning.private_base import BasePrivateEstimator
from pgmpy_dp.models.decoded_columns import values_of
from pgmpy_dp.models.decoding import Values
from pgmpy_dp.models.markov_network import MarkovNetwork
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.sensitive import Release
from pgmpy_dp.schema import Number, Schema
from pgmpy_dp.sequences import chain_counts
from pgmpy_dp.sequences.chain_model import (
    ChainFit,
    MarkovChain,
    fit_chain,
    map_chain,
    noisy_chain_tables,
    noisy_triples,
    second_order,
    segment_units,
)
from pgmpy_dp.sequences.operators.sequences import PrivateSequences, checked_schema, read_sequences

_METHODS = ("map", "naive")


class PrivateMarkovChain(BasePrivateEstimator):
    """Time-homogeneous Markov chain of users' sequences, of first or second order, under user-level privacy.

    One table of initial states and one of transitions, summed over time, are released with noise; each user, however
    many sequences and visits it has, is counted as a share of 1 in each (or with a random choice of its segments). The
    chain is learned from the two tables; of second order from a table of triples of states too.

    Parameters
    ----------
    epsilon, delta, rho
    state_names : Schema or dict of one variable to its list of states
        Public description of the states, required unless the data come as `PrivateSequences`. A state None is null:
        pairs of two nulls say nothing and are not counted.
    adjacency : {"add_remove", "replace_one"}
        One user more or fewer, or the data of one user replaced.
    n_users : int, optional
        The number of users, if it is public. Required under "replace_one".
    unit : hashable
        Column that says whose row it is.
    sequence : hashable
        Column of sequences: lists, or texts of states separated by `separator`.
    order : hashable, optional
        Column of times; then each row is one visit, its state in the column that the schema names.
    separator : str, optional
        Default: white space.
    segment_length : int, optional
        Cut sequences into segments of this many visits. Default: no cuts.
    max_segments : int, optional
        Count at most this many segments of each user, chosen at random. Default: count users by shares.
    initial_share : float in (0, 1), optional
        Share of the budget of the initial table. Default: 0.25, and 0.1 for a `chain_order` other than 1.
    method : {"map", "naive"}
        How the tables are learned from: `pgmpy_dp.sequences.chain_model.map_chain`, or `naive_mle` of the paper.
    stay : bool
        With "map": shrink to a model that knows how often a state is kept. Ignored by the other.
    noise : {"auto", "laplace", "gaussian"}
        Of the tables.
    chain_order : {1, 2, "auto"}
        How many states the next one depends on. 2 pays for a table of triples. "auto" pays for a test, a twentieth of
        the budget, and decides by it whether triples are worth their noise (:mod:`pgmpy_dp.sequences.chain_counts`);
        not with segments.
    random_state

    Attributes
    ----------
    initial_ : ndarray of shape (K,)
        Probabilities of the first state.
    order_ : int
        1 or 2.
    transition_ : ndarray of shape (K, K)
        Probabilities of the next state, rows by the state that is left; of second order, of the second state.
    second_transition_ : ndarray of shape (K, K, K) or None
        Of second order: probabilities of the next state given the one before the last, and the last.
    states_ : tuple
        The K states, in order.
    chain_ : MarkovChain
    release_ : Release
        The noisy tables; see :meth:`fit_release`.
    privacy_, n_features_in_, feature_names_in_
    n_initial_, n_transition_ : float
        Estimated totals of the two tables, in users (by shares) or in largest contributions (by segments). They differ:
        a user with one visit has no transition. NaN of releases of logits, which version 0.3 made.
    converged_ : bool
    status_ : str
        With "auto" it begins with what the test found.

    Notes
    -----
    Privacy: the only access to the records is the release of :mod:`pgmpy_dp.sequences.chain_counts`, which has the
    sensitivities; the rest is post-processing. The guarantee is per value of the column `unit`.
    Method: Bernstein, McKenna, Sun, Sheldon, Hay and Miklau (2017), section 4.2. Counting by
    shares gives each user's average transition the same weight, so a user with many visits counts less per visit: where
    users of many visits behave differently, the chain describes the average user and not the average visit.

    Examples
    --------
    >>> data = pd.DataFrame({"user": range(10_000), "sequence": ["a a b", "b b b a"] * 5000})
    >>> estimator = PrivateMarkovChain(epsilon=1.0, state_names={"page": ["a", "b"]}).fit(data)
    >>> estimator.transition_.round(1)
    array([[0.5, 0.5],
           [0.3, 0.7]])
    >>> print(estimator.privacy_)
    1-DP under add_remove of all rows of one 'user' (discrete_laplace)
    >>> estimator.to_markov_network(3).sample(2, random_state=0).shape
    (2, 3)
    """

    _tags: ClassVar[dict[str, Any]] = {
        "task": "sequences",
        "model_kind": "chain",
        "data_kind": "sequences",
    }
    _release_kinds: ClassVar[tuple[str, ...]] = ("chain", "chain_logits")
    _examples = (
        {"epsilon": 1.0, "state_names": {"page": ["a", "b"]}},
        {"rho": 0.1, "state_names": {"page": ["a", "b"]}, "adjacency": "replace_one", "n_users": 9, "method": "naive"},
    )

    state_names: Schema | dict | None = option(None, anything())
    adjacency: str = option("add_remove", adjacencies())
    n_users: int | None = option(None, whole(0))
    unit: Hashable = option("user", by(column))
    sequence: Hashable = option("sequence", by(column))
    order: Hashable | None = option(None, by(column))
    separator: str | None = option(None, anything())
    segment_length: int | None = option(None, whole(2))
    max_segments: int | None = option(None, whole(1))
    initial_share: float | None = option(None, number(below_one=True))
    method: str = option("map", one_of(_METHODS))
    stay: bool = option(True, flag())
    noise: str = option("auto", one_of(NOISES))
    chain_order: int | str = option(1, by(chain_counts.checked_order))

    def to_markov_network(self, length: int) -> MarkovNetwork:
        """The chain's first `length` states as a pgmpy model, with nodes ``(variable, 0)``, ``(variable, 1)``, ...

        Its distribution over the first t nodes is the same for every length.

        Parameters
        ----------
        length : int
            At least 1.

        Returns
        -------
        MarkovNetwork

        Raises
        ------
        NotFittedError
            Before `fit` or `fit_release`.
        ValueError
            For another length.
        """
        self.check_is_fitted()
        if isinstance(length, bool) or not isinstance(length, int | np.integer) or length < 1:
            raise ValueError(f"length={length!r} must be a whole number of at least 1")
        (variable,) = self.release_.schema.variables
        model = self.chain_.unrolled(int(length), variable)
        names = model.cliques.variables
        graph = nx.Graph()
        graph.add_nodes_from(names)
        for scope in model.cliques.scopes:
            graph.add_edges_from(itertools.combinations(scope, 2))
        (declared,), codes = self.release_.schema.values(), bool(self.release_.schema.options["codes"])
        texts = () if isinstance(declared, Number) else names
        states = Schema(dict.fromkeys(names, declared), texts=texts, codes=codes)
        return MarkovNetwork.from_log_linear(model, graph, states, self.privacy_)

    def transition_probabilities(self) -> pd.DataFrame:
        """The matrix `transition_` with the states as labels; of second order, `second_transition_`.

        Returns
        -------
        pandas.DataFrame of shape (states, states), or (states**2, states)
            Rows are left, columns entered; rows sum to 1. Of second order rows have two levels: the state before the
            last, and the last.
        """
        self.check_is_fitted()
        labels = pd.Index(self.states_, tupleize_cols=False, dtype=object)
        if self.second_transition_ is None:
            return pd.DataFrame(self.transition_, index=labels, columns=labels)
        rows = pd.MultiIndex.from_product([labels, labels], names=["before", "last"])
        return pd.DataFrame(self.second_transition_.reshape(len(rows), -1), index=rows, columns=labels)

    def initial_probabilities(self) -> pd.Series:
        """The distribution `initial_` with the states as labels.

        Returns
        -------
        pandas.Series of shape (states,)
            Sums to 1.
        """
        self.check_is_fitted()
        return pd.Series(self.initial_, index=pd.Index(self.states_, tupleize_cols=False, dtype=object))

    def log_likelihood(self, X: Any) -> np.ndarray:
        """Log-probability of each sequence given its length. An exact statistic of X: for public or held-out records.

        Parameters
        ----------
        X : dataframe
            In the form that was fitted. Sequences are taken whole, not cut.

        Returns
        -------
        ndarray of shape (sequences,)
            In the order of the rows (wide form), or of the users' first rows (long form). nan where a sequence has a
            state outside the schema.
        """
        self.check_is_fitted()
        columns = self._pick("unit", "sequence", "order", "separator")
        _, lengths, codes = read_sequences(X, self.release_.schema, **columns)
        return self.chain_.log_probability(np.split(codes, np.cumsum(lengths)[:-1]) if len(lengths) else [])

    def sample(
        self,
        n: int,
        length: int,
        random_state: int | np.random.Generator | None = None,
        labels: bool = False,
        *,
        method: SamplingMethod = "stratified",
    ) -> pd.DataFrame:
        """Synthetic sequences; as private as the release.

        Parameters
        ----------
        n : int
            Number of sequences.
        length : int
            Number of states of each.
        random_state : int, numpy.random.Generator or None
            Only for repeatable draws; it has no part in privacy.
        labels : bool, default False
            States instead of numbers and days.
        method : {"stratified", "independent"}, default "stratified"
            Whether the sequences in a state are split by what the chain says of the next, rounded up or down at random,
            or each is drawn by itself; see :meth:`~pgmpy_dp.MarkovNetwork.sample`.

        Returns
        -------
        pandas.DataFrame of shape (n, length)
            One row for each; columns 0 .. length - 1 in order of time. Numbers and days as in `MarkovNetwork.sample`.
        """
        self.check_is_fitted()
        rng = np.random.default_rng(random_state)
        codes = self.chain_.sample(n, length, rng, method)
        (declared,) = self.release_.schema.values()
        if isinstance(declared, Number) and not labels:
            (stream,) = rng.spawn(1)
            columns = [values_of(Values(declared), drawn, stream, method) for drawn in codes.T]
            return pd.concat(columns, axis=1).set_axis(range(length), axis=1)
        states = np.empty(len(self.states_), dtype=object)
        states[:] = self.states_
        return pd.DataFrame(states[codes], columns=range(length)).infer_objects()

    def _check(self) -> None:
        if self.max_segments is not None and self.segment_length is None:
            raise ValueError(
                f"max_segments={self.max_segments!r} without segment_length: a segment of any length could hold "
                "any number of pairs; pass segment_length, or max_segments=None to count users by shares"
            )
        if self.chain_order == 2 and self.segment_length == 2:
            raise ValueError(
                "segment_length=2 with chain_order=2: a segment of two visits has no triple; pass 3 or more"
            )
        if self.chain_order == "auto" and self.segment_length is not None:
            raise ValueError(
                f"segment_length={self.segment_length!r} with chain_order='auto', whose test is of whole sequences by "
                "shares; leave segment_length=None, or pass chain_order=1 or 2"
            )

    def _private(self, X: Any, budget: Budget) -> PrivateSequences:
        if isinstance(X, PrivateSequences):
            self._check_agrees(X)
            return X
        schema = checked_schema(self.state_names, argument="state_names")
        columns = self._pick("unit", "sequence", "order", "separator")
        return PrivateSequences(X, schema, ledger=budget, **columns, **self._pick("adjacency", "n_users"))

    def _run(self, data: PrivateSequences, budget: Budget) -> Release:
        return chain_counts.run(data, self._options, budget)

    def _check_agrees(self, data: PrivateSequences) -> None:
        declared = None if self.state_names is None else checked_schema(self.state_names, argument="state_names")
        require_agreement(
            data, self.adjacency, state_names=(declared, data.schema), n_users=(self.n_users, data.n_users)
        )

    def _learn(self, release: Release, progress: Progress) -> ChainFit:
        noise, initial, pairs, triples = _tables(release)
        tables = noisy_chain_tables(
            initial.values, pairs.values, noise, (initial.scale, pairs.scale), (initial.unit, pairs.unit)
        )
        if self.method == "map":
            fit = map_chain(*tables, stay=bool(self.stay), callback=progress)
            learn = None
        else:
            learn = partial(naive_mle, callback=progress)
            fit = fit_chain(*tables, learn)
        if triples is None:
            return fit
        return second_order(fit, noisy_triples(triples.values, noise, triples.scale, triples.unit), learn, progress)

    def _learned(self, release: Release, privacy: Privacy) -> dict[str, Any]:
        if release.kind == "chain_logits":  # of gradient steps, which version 0.3 had
            logits = released_parameters(release, "chain_logits", "initial", "transitions")
            learned = MarkovChain(*(log_softmax(part, axis=-1) for part in logits))
            totals = [math.nan, math.nan]
            converged, status = False, steps_taken(release, release.public["path"]["n_steps"], "before the first")
        else:
            with progress_bar(type(self).__name__) as progress:
                fit = self._learn(release, progress)
            learned, converged, status = fit.chain, fit.converged, _tested(release) + fit.status
            tables = zip(("initial", "transitions"), release.public["units"], strict=False)
            totals = [max(float(release[name].array.sum()) / unit, 1.0) for name, unit in tables]
        (variable,) = release.schema.variables
        return {
            "order_": learned.order,
            "initial_": np.exp(learned.log_initial),
            "transition_": np.exp(learned.log_transition),
            "second_transition_": None if learned.log_second is None else np.exp(learned.log_second),
            "states_": release.schema.states[variable],
            "chain_": learned,
            "n_initial_": totals[0],
            "n_transition_": totals[1],
            "converged_": converged,
            "status_": status,
        }


@dataclass(frozen=True, eq=False)
class _Table:
    """A released table, the scale of its noise, and what is one record of it."""

    values: np.ndarray
    scale: float
    unit: float


def _tables(release: Release) -> tuple[str, _Table, _Table, _Table | None]:
    """Kind of noise, and tables of beginnings, of pairs and of triples; pairs that were asked twice are one table."""
    by_length: dict[int, list[_Table]] = {}
    kind = ""
    for name, unit, length in zip(release.names, release.public["units"], release.public["lengths"], strict=True):
        if length:
            value, noise = release[name].array, release[name].noise
            assert noise is not None
            kind = "gaussian" if noise.distribution == "discrete_gaussian" else "laplace"
            by_length.setdefault(length, []).append(_Table(value, noise.scale, unit))
    (initial,), pairs, triples = by_length[1], by_length[2][0], by_length.get(3, [None])[0]
    if len(by_length[2]) > 1:
        # The mean of two tables by their precisions has the least variance; as noise of one scale of that variance it
        # is nearly what it is.
        precision = np.array([one.scale**-2.0 for one in by_length[2]])
        mean = sum(p * one.values for p, one in zip(precision, by_length[2], strict=True)) / precision.sum()
        pairs = _Table(mean, float(precision.sum() ** -0.5), pairs.unit)
    if release.public["settings"]["max_segments"] is not None:

        def per_segment(table: _Table) -> _Table:
            """What an average segment has is one record."""
            return replace(table, unit=segment_units(initial.values, table.values, table.unit / initial.unit)[1])

        pairs, triples = per_segment(pairs), None if triples is None else per_segment(triples)
        initial = replace(initial, unit=1.0)
    return kind, initial, pairs, triples


def _tested(release: Release) -> str:
    """Return the outcome of the test of order in words; nothing where there was none."""
    if release.public["settings"].get("chain_order", 1) != "auto":
        return ""
    test = release.public["test"]
    if not test:
        return "first order: triples would be worth less than their noise, whatever they are; "
    words = {1: "first order", 2: "second order"}[test["order"]]
    return (
        f"{words}: {test['distance']:.0f} of the users' shares of triples are where a first-order chain has none, by "
        f"chance {test['expected']:.0f}; "
    )
