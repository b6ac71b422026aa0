"""A log-linear model as a value: its tables, its parameters and everything exact about them."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from pgmpy_dp.inference.belief_propagation import LOG_ZERO, SumProduct
from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.exact_or_loopy import (
    Inference,
    InferenceStatus,
    InferenceUnavailable,
    choose_inference,
    engine_status,
    make_engine,
)
from pgmpy_dp.inference.junction_tree import DEFAULT_MEMORY_LIMIT, InferenceTooLarge
from pgmpy_dp.inference.loopy_belief_propagation import LoopyBeliefPropagation
from pgmpy_dp.inference.sampling import SamplingMethod, forward_sample, gibbs_sample
from pgmpy_dp.inference.scope_marginals import ScopeMarginals

_JOINT_BYTES = 2**24, 2**28
"""A junction tree of a model and of queries may take four times what the model's own takes, but at least and at most
this; where it would be larger, the model's own answers the queries."""


@dataclass(frozen=True, eq=False)
class LogLinearModel:
    """p(x) = exp(sum_C theta_C(x_C) - A(theta)) over discrete variables.

    Parameters
    ----------
    cliques : Cliques
        Variables and tables.
    theta : ndarray of shape (n_cells,)
        Log-potentials; -inf marks a structural zero.
    memory_limit : int
        Bytes that inference may allocate.
    inference : {"exact", "loopy", "auto"} or LoopySettings
        What `marginals` and `marginals_of` are computed by; see `pgmpy_dp.inference.exact_or_loopy`. Under loopy
        inference they are approximate, `sample` too, and what only exact inference gives raises `InferenceUnavailable`:
        `log_partition`, `log_probability` and marginals of sets of variables that are in no table together.
        ``dataclasses.replace(model, inference="exact")`` is the same model with exact inference.

    Raises
    ------
    ValueError
        If theta has the wrong shape, or holds NaN or +inf, or `inference` is unknown.
    InferenceTooLarge
        At the first use of inference, if it would exceed `memory_limit`.

    Examples
    --------
    >>> import numpy as np
    >>> cliques = Cliques(("a", "b"), (2, 2), (("a", "b"),))
    >>> model = LogLinearModel(cliques, np.log([0.1, 0.2, 0.3, 0.4]))
    >>> model.marginal(["b"]).round(12)
    array([0.4, 0.6])
    """

    cliques: Cliques
    theta: np.ndarray
    memory_limit: int = DEFAULT_MEMORY_LIMIT
    inference: Inference = "exact"
    _lock: threading.RLock = field(default_factory=threading.RLock, init=False, repr=False)

    def __post_init__(self) -> None:
        theta = np.array(self.theta, dtype=np.float64)
        if theta.shape != (self.cliques.n_cells,):
            raise ValueError(f"theta must have shape ({self.cliques.n_cells},), got {theta.shape}")
        if np.isnan(theta).any() or np.isposinf(theta).any():
            raise ValueError("theta must hold numbers below infinity (-inf marks a structural zero), got NaN or inf")
        theta.flags.writeable = False
        object.__setattr__(self, "theta", theta)
        # Settled here: "auto" is not asked again for each use, and a pickled model stays what it was.
        object.__setattr__(self, "inference", choose_inference(self.cliques, self.inference, self.memory_limit))

    def __getstate__(self) -> dict:
        # The inference engine is rebuilt where it is needed: it is large and follows from the rest.
        return {
            "cliques": self.cliques,
            "theta": self.theta,
            "memory_limit": self.memory_limit,
            "inference": self.inference,
        }

    def __setstate__(self, state: dict) -> None:
        for name, value in state.items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "_lock", threading.RLock())

    @cached_property
    def _engine(self) -> SumProduct | LoopyBeliefPropagation:
        return make_engine(self.cliques, self.inference, self.memory_limit)

    @cached_property
    def _calibrated(self) -> tuple[np.ndarray, float]:
        marginals, log_partition = self._engine.calibrate(self.theta)
        marginals.flags.writeable = False
        return marginals, log_partition

    @property
    def log_partition(self) -> float:
        """A(theta), the logarithm of the partition function; never an approximation of it."""
        self._require_exact("log_partition", "approximate_log_partition is loopy inference's estimate")
        with self._lock:
            return self._calibrated[1]

    @property
    def is_possible(self) -> bool:
        """Whether structural zeros leave any record possible; by exact inference."""
        return not np.isneginf(self.theta).any() or self.log_partition > LOG_ZERO / 2

    @property
    def approximate_log_partition(self) -> float:
        """A(theta) by the model's inference: exact, Bethe's estimate, or an upper bound ("trw")."""
        with self._lock:
            return self._calibrated[1]

    @property
    def inference_status(self) -> InferenceStatus:
        """The inference that `marginals` depends on, and how it ended."""
        if self.inference == "exact":
            return InferenceStatus("exact")
        with self._lock:
            self._calibrated  # noqa: B018 - the status is that of the last calibration, which is this one
            return engine_status(self._engine)

    def marginals(self) -> np.ndarray:
        """Marginal probabilities of all tables, shape (n_cells,); approximate under loopy inference."""
        with self._lock:
            return self._calibrated[0]

    def marginals_of(self, scopes: Sequence[Sequence[Hashable]]) -> list[np.ndarray]:
        """Marginal tables of any sets of variables, each with its axes in the order of the set.

        Exact inference builds one junction tree that covers the model and all the sets together where that is small.
        Else it takes the model's own (:mod:`pgmpy_dp.inference.scope_marginals`), in memory that does not depend
        on how far apart the variables of a set are. Loopy inference has the marginals of single variables and of sets
        within one table.

        Raises
        ------
        ValueError
            If a variable is unknown or repeated in a set.
        InferenceTooLarge
            If inference on the model, or the tables asked for, would exceed `memory_limit`.
        InferenceUnavailable
            Under loopy inference, for a set that is in no table.
        """
        wanted = Cliques(self.cliques.variables, self.cliques.cardinalities, tuple(tuple(s) for s in scopes))
        if self.inference != "exact":
            return [self._within_a_table(scope) for scope in wanted.indices]
        if 8 * wanted.n_cells > self.memory_limit:
            raise InferenceTooLarge(
                f"the tables asked for have {8 * wanted.n_cells:,} bytes, over memory_limit={self.memory_limit:,}; ask "
                "for fewer sets of variables or for smaller ones, or pass a larger memory_limit"
            )
        tables = self._in_one_tree(wanted)
        if tables is None:
            with self._lock:
                assert isinstance(self._engine, SumProduct)
                tables = ScopeMarginals(self.cliques, self.theta, self._engine).tables(wanted.indices)
        return tables

    def _in_one_tree(self, wanted: Cliques) -> list[np.ndarray] | None:
        """Marginals by a junction tree that covers them, None where it is large."""
        with self._lock:
            assert isinstance(self._engine, SumProduct)
            engine_bytes = self._engine.size.memory_bytes
        least, most = _JOINT_BYTES
        if engine_bytes > most:
            return None
        try:
            limit = min(max(least, min(4 * engine_bytes, most)), self.memory_limit)
            engine = SumProduct(self.cliques, extra=wanted.indices, memory_limit=limit)
        except InferenceTooLarge:
            return None
        marginals, _ = engine.calibrate(self.theta)
        return wanted.split(marginals[self.cliques.n_cells :])

    def marginal(self, variables: Sequence[Hashable]) -> np.ndarray:
        """Marginal table of some variables, axes in their order; see `marginals_of`."""
        return self.marginals_of([variables])[0]

    def log_probability(self, codes: np.ndarray) -> np.ndarray:
        """log p(x) of each record.

        Parameters
        ----------
        codes : ndarray of shape (n, n_variables)
            State numbers, columns in the order of ``cliques.variables``.

        Returns
        -------
        ndarray of shape (n,)
        """
        self._require_exact("log_probability")
        codes = np.asarray(codes)
        total = np.full(len(codes), -self.log_partition)
        for table, scope in zip(self.cliques.split(self.theta), self.cliques.indices, strict=True):
            total += table[tuple(codes[:, i] for i in scope)]
        return total

    def sample(self, n: int, rng: np.random.Generator, method: SamplingMethod = "independent") -> np.ndarray:
        """Draw n records; shape (n, n_variables), columns as ``cliques.variables``.

        They are independent, or "stratified" as `pgmpy_dp.inference.sampling` describes; each has the model's
        law. Under loopy inference they are independent, and approximate
        (:func:`~pgmpy_dp.inference.sampling.gibbs_sample`).
        """
        with self._lock:
            if self.inference != "exact":
                margins = [self._within_a_table((i,)) for i in range(len(self.cliques.variables))]
                return gibbs_sample(self.cliques, self.theta, margins, n, rng)
            self._calibrated  # noqa: B018 - the engine keeps the beliefs of its last calibration, which is this one
            assert isinstance(self._engine, SumProduct)
            return forward_sample(self._engine, n, rng, method)

    def conditionals(self) -> list[tuple[tuple[Hashable, ...], tuple[Hashable, ...], np.ndarray]]:
        """The distribution as a product of conditional ones, of some variables given earlier ones, by junction tree.

        Returns
        -------
        list of (variables, given variables, table)
            Axes of a table are the variables, then the given ones. It sums to 1 over the former, to 0 where the given
            states have the probability 0. Each variable comes once, and the given ones came before.
        """
        self._require_exact("conditionals")
        names, sizes = self.cliques.variables, self.cliques.cardinalities
        with self._lock:
            self._calibrated  # noqa: B018 - the engine keeps the beliefs of its last calibration, which is this one
            assert isinstance(self._engine, SumProduct)
            factors = self._engine.conditionals()
        return [
            (
                tuple(names[i] for i in residual),
                tuple(names[i] for i in separator),
                table.reshape([sizes[i] for i in (*residual, *separator)]),
            )
            for residual, separator, table in factors
        ]

    def _require_exact(self, what: str, instead: str = "") -> None:
        if self.inference != "exact":
            raise InferenceUnavailable(
                f"{what} needs exact inference, and this model has inference={self.inference!r}; "
                + (f"{instead}, or " if instead else "")
                + 'use dataclasses.replace(model, inference="exact", memory_limit=...) where a junction tree fits'
            )

    def _within_a_table(self, scope: tuple[int, ...]) -> np.ndarray:
        """Loopy marginal of variables that some table has all of; of several tables, the first."""
        marginals = self.cliques.split(self.marginals())
        for axes, table in zip(self.cliques.indices, marginals, strict=True):
            if set(scope) <= set(axes):
                kept = [i for i in axes if i in scope]
                summed = table.sum(axis=tuple(axis for axis, i in enumerate(axes) if i not in scope))
                return summed.transpose([kept.index(i) for i in scope])
        if len(scope) == 1:  # in no table at all
            return np.full(self.cliques.cardinalities[scope[0]], 1.0 / self.cliques.cardinalities[scope[0]])
        names = [self.cliques.variables[i] for i in scope]
        raise InferenceUnavailable(
            f"the marginal of {names} needs exact inference, for no table of the model has all of them, and this model "
            f'has inference={self.inference!r}; use dataclasses.replace(model, inference="exact", memory_limit=...) '
            "where a junction tree fits"
        )
