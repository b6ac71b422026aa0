"""A log-linear model as a value: its tables, its parameters and everything exact about them."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from pgmpy_dp.models.belief_propagation import SumProduct
from pgmpy_dp.models.cliques import Cliques
from pgmpy_dp.models.junction_tree import DEFAULT_MEMORY_LIMIT
from pgmpy_dp.models.sampling import forward_sample

__all__ = ["LogLinearModel"]


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
        Bytes that exact inference may allocate.

    Raises
    ------
    ValueError
        If theta has the wrong shape, or holds NaN or +inf.
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
    _lock: threading.RLock = field(default_factory=threading.RLock, init=False, repr=False)

    def __post_init__(self) -> None:
        theta = np.array(self.theta, dtype=np.float64)
        if theta.shape != (self.cliques.n_cells,):
            raise ValueError(f"theta must have shape ({self.cliques.n_cells},), got {theta.shape}")
        if np.isnan(theta).any() or np.isposinf(theta).any():
            raise ValueError("theta must hold numbers below infinity (-inf marks a structural zero), got NaN or inf")
        theta.flags.writeable = False
        object.__setattr__(self, "theta", theta)

    def __getstate__(self) -> dict:
        # The inference engine is rebuilt where it is needed: it is large and follows from the rest.
        return {"cliques": self.cliques, "theta": self.theta, "memory_limit": self.memory_limit}

    def __setstate__(self, state: dict) -> None:
        for name, value in state.items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "_lock", threading.RLock())

    @cached_property
    def _engine(self) -> SumProduct:
        return SumProduct(self.cliques, memory_limit=self.memory_limit)

    @cached_property
    def _calibrated(self) -> tuple[np.ndarray, float]:
        marginals, log_partition = self._engine.calibrate(self.theta)
        marginals.flags.writeable = False
        return marginals, log_partition

    @property
    def log_partition(self) -> float:
        """A(theta), the logarithm of the partition function."""
        with self._lock:
            return self._calibrated[1]

    def marginals(self) -> np.ndarray:
        """Marginal probabilities of all tables, shape (n_cells,)."""
        with self._lock:
            return self._calibrated[0]

    def marginals_of(self, scopes: Sequence[Sequence[Hashable]]) -> list[np.ndarray]:
        """Exact marginal tables of any sets of variables, each with its axes in the order given.

        One junction tree is built that covers the model and all the sets together.

        Raises
        ------
        ValueError
            If a variable is unknown or repeated in a set.
        InferenceTooLarge
            If the joint tree would exceed `memory_limit`.
        """
        wanted = Cliques(self.cliques.variables, self.cliques.cardinalities, tuple(tuple(s) for s in scopes))
        engine = SumProduct(self.cliques, extra=wanted.indices, memory_limit=self.memory_limit)
        marginals, _ = engine.calibrate(self.theta)
        return wanted.split(marginals[self.cliques.n_cells :])

    def marginal(self, variables: Sequence[Hashable]) -> np.ndarray:
        """Exact marginal table of some variables, axes in the order given."""
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
        codes = np.asarray(codes)
        total = np.full(len(codes), -self.log_partition)
        for table, scope in zip(self.cliques.split(self.theta), self.cliques.indices, strict=True):
            total += table[tuple(codes[:, i] for i in scope)]
        return total

    def sample(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Draw n independent records; shape (n, n_variables), columns as ``cliques.variables``."""
        with self._lock:
            self._calibrated  # noqa: B018 - the engine keeps the beliefs of its last calibration, which is this one
            return forward_sample(self._engine, n, rng)
