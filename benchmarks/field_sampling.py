"""Independent records from a random field: by junction tree, by coupling from the past, or by Gibbs sampling.

References
----------
.. [1] Propp, J. G. and Wilson, D. B. (1996). Exact sampling with coupled Markov chains and applications to statistical
   mechanics. Random Structures and Algorithms 9.
.. [2] Huber, M. (2004). Perfect sampling using bounding chains. Annals of Applied Probability 14.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from benchmarks.glauber import BinaryGlauber, PairwiseGlauber, as_polynomial, half_logistic
from benchmarks.mixing import gibbs_burn_in
from pgmpy_dp.fields.random_fields import Pairwise, RandomField
from pgmpy_dp.inference.junction_tree import InferenceTooLarge

__all__ = ["DoesNotCouple", "sample_field"]

CHAINS = 1024
"""Chains that run together: their state stays in the cache."""
MAX_SWEEPS = 512
"""How far into the past perfect sampling goes before it gives up."""


class DoesNotCouple(ValueError):
    """Perfect sampling did not end: the variables depend too strongly on each other."""


def sample_field(
    field: RandomField,
    n: int,
    rng: np.random.Generator,
    method: str = "auto",
    burn_in: int | None = None,
    memory_limit: int = 2**28,
) -> np.ndarray:
    """Draw n independent records.

    Parameters
    ----------
    field : Ising, Pairwise or BinaryField
    n : int
        Number of records.
    rng : numpy.random.Generator
        Source of randomness; no privacy rests on it.
    method : {"auto", "exact", "perfect", "gibbs"}
        * "exact": forward sampling from a junction tree that fits into `memory_limit`.
        * "perfect": coupling from the past ([1]_, with the bounding chains of [2]_), binary variables only. Draws are
          exact (up to 24-bit uniform numbers), whenever it ends; it ends quickly where variables depend weakly on each
          other, or all attract each other and are above the critical temperature.
        * "gibbs": n parallel chains, `burn_in` sweeps each from a uniform start, the last state of each: independent
          draws from an approximation of the model.
        * "auto": "exact" where the tree fits; else "gibbs" where `burn_in` is given; else "perfect" where it ends;
          else "gibbs".
    burn_in : int, optional
        Sweeps of "gibbs"; by default :func:`~benchmarks.mixing.gibbs_burn_in`, which says what it guarantees.
    memory_limit : int
        Bytes that the junction tree may take.

    Returns
    -------
    ndarray of shape (n, p), uint8
        State numbers (uint16 where a variable has more than 256 states).

    Raises
    ------
    InferenceTooLarge
        If method is "exact" and the tree does not fit.
    DoesNotCouple
        If method is "perfect" and it does not end within 512 sweeps.
    ValueError
        If an argument is bad, "perfect" is asked for variables that are not binary, or "gibbs" has no default burn-in
        for this field.

    Examples
    --------
    >>> from pgmpy_dp.fields.random_fields import Ising
    >>> field = Ising(np.array([[0.0, 0.5], [0.5, 0.0]]), np.zeros(2))
    >>> codes = sample_field(field, 10_000, np.random.default_rng(0))
    >>> float((codes[:, 0] == codes[:, 1]).mean().round(2)), round(1 / (1 + np.exp(-1)), 2)
    (0.73, np.float64(0.73))
    """
    if method not in ("auto", "exact", "perfect", "gibbs"):
        raise ValueError(f'method={method!r} must be "auto", "exact", "perfect" or "gibbs"')
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 0:
        raise ValueError(f"n={n!r} must be a whole number of records, 0 or more")
    if burn_in is not None and (isinstance(burn_in, bool) or not isinstance(burn_in, int | np.integer) or burn_in < 1):
        raise ValueError(f"burn_in={burn_in!r} must be a whole number of sweeps, 1 or more")
    dtype = np.min_scalar_type(max(field.cardinalities, default=1) - 1)
    if method in ("auto", "exact"):
        try:
            return dataclasses.replace(field.to_log_linear(), memory_limit=memory_limit).sample(n, rng).astype(dtype)
        except InferenceTooLarge:
            if method == "exact":
                raise
    polynomial = as_polynomial(field)
    if method == "perfect" and polynomial is None:
        raise ValueError('method="perfect" needs binary variables; use method="exact" or "gibbs"')
    if polynomial is not None and (method == "perfect" or (method == "auto" and burn_in is None)):
        try:
            return _perfect(BinaryGlauber(polynomial), n, rng)
        except DoesNotCouple:
            if method == "perfect":
                raise
    sweeps = gibbs_burn_in(field) if burn_in is None else int(burn_in)
    if polynomial is not None:
        return _binary_gibbs(BinaryGlauber(polynomial), n, sweeps, rng)
    assert isinstance(field, Pairwise)
    return _pairwise_gibbs(PairwiseGlauber(field), n, sweeps, rng).astype(dtype)


def _chunks(n: int) -> list[tuple[int, int]]:
    return [(start, min(start + CHAINS, n)) for start in range(0, n, CHAINS)]


def _binary_gibbs(glauber: BinaryGlauber, n: int, sweeps: int, rng: np.random.Generator) -> np.ndarray:
    codes = np.empty((n, glauber.n_variables), dtype=np.uint8)
    for start, stop in _chunks(n):
        shape = (glauber.n_variables, stop - start)
        state = glauber.start(stop - start, rng)
        for _ in range(sweeps):
            glauber.sweep(state, half_logistic(shape, rng), bounded=False)
        codes[start:stop] = state[:-1].T > 0
    return codes


def _pairwise_gibbs(glauber: PairwiseGlauber, n: int, sweeps: int, rng: np.random.Generator) -> np.ndarray:
    codes = np.empty((n, len(glauber.cardinalities)), dtype=np.int64)
    for start, stop in _chunks(n):
        state = glauber.start(stop - start, rng)
        for _ in range(sweeps):
            glauber.sweep(state, rng.random((len(glauber.cardinalities), stop - start), dtype=np.float32))
        codes[start:stop] = glauber.codes(state).T
    return codes


def _perfect(glauber: BinaryGlauber, n: int, rng: np.random.Generator) -> np.ndarray:
    """Coupling from the past: from time -T with nothing known, T doubled until everything is known at time 0."""
    codes = np.empty((n, glauber.n_variables), dtype=np.uint8)
    past = 4  # kept from batch to batch: it may be anything that does not depend on the batch's own thresholds
    for start, stop in _chunks(n):
        key = int(rng.integers(2**63))
        state = _from_the_past(glauber, stop - start, key, past)
        while not state.all():
            past *= 2
            if past > MAX_SWEEPS:
                raise DoesNotCouple(
                    f"perfect sampling did not end within {MAX_SWEEPS} sweeps: the variables depend too strongly on "
                    'each other. Use method="exact" with a larger memory_limit, or method="gibbs"'
                )
            state = _from_the_past(glauber, stop - start, key, past)
        codes[start:stop] = state[:-1].T > 0
    return codes


def _from_the_past(glauber: BinaryGlauber, n: int, key: int, past: int) -> np.ndarray:
    """What is known at time 0 of n chains of which nothing is known at time -past.

    The thresholds of a time depend on it and on the key alone. So what is known from some past stays what it is from an
    earlier one: whatever a chain starts from then, it passes through *some* state at the later time.
    """
    state, known = glauber.unknown(n), False
    for time in range(past, 0, -1):
        threshold = half_logistic((glauber.n_variables, n), np.random.default_rng([key, time]))
        glauber.sweep(state, threshold, bounded=not known)
        known = known or bool(state.all())
    return state
