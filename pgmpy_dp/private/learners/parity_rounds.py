"""Parities by rounds of private selection: multiplicative weights (PMW) and a perturbed leader (sepFEM).

Both keep a public guess of the data, and each round select, by report noisy max, a parity that the guess answers badly.
What a round adds to the transcript is the selected position (and, for PMW, one noisy sum): the records are seen nowhere
else, so everything else is post-processing and each function's guarantee is that of its rounds together.

Privacy of the rounds
---------------------
Sums S(I) of parities over records move by at most D between neighbours, D = 1 under ``add_remove`` and 2 under
``replace_one`` (:func:`~pgmpy_dp.private.data.parities.parity_sensitivity`). The guess is compared with them as
``S(I) - rint(N q(I))``, where q is the guess and N the public, or noisy, number of records: an integer that is fixed
before the round subtracted from S(I), so that scores, also their absolute values and their negatives, have the
sensitivity D. The number of records itself enters nowhere, in particular not as a divisor.

With a budget of rho for k steps, each gets rho/k: noisy max with Gumbel noise of scale b is D**2/(2 b**2)-zCDP, a sum
with discrete Gaussian noise of scale sigma is D**2/(2 sigma**2)-zCDP, so both scales are D sqrt(k/(2 rho)). With
epsilon, noisy max with exponential noise of scale b is (2 D/b)-DP, a sum with discrete Laplace noise of scale b is
(D/b)-DP. Steps may depend on earlier outputs; their budgets do not: adaptive composition (Bun and Steinke 2016, Lemma
2.3; Dwork, McSherry, Nissim and Smith 2006). The number of rounds depends on public numbers and on the noisy count,
which is paid for before.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from pgmpy_dp.models.multiplicative_weights import MultiplicativeWeights
from pgmpy_dp.private.data.parities import Subsets, family_sums, parity_sums
from pgmpy_dp.private.guarantee import ZCDP, PureDP
from pgmpy_dp.private.mathematics.field_design import field_scopes
from pgmpy_dp.private.mathematics.walsh_hadamard import linear_values, masks_of
from pgmpy_dp.private.noise import samplers
from pgmpy_dp.private.noise.selection import noisy_argmax, selection_scale
from pgmpy_dp.private.sensitive import Sensitive
from pgmpy_dp.solvers.parity_maximum import TRANSFORM_LIMIT, maximise_by_milp

__all__ = ["default_rounds", "measurement_scale", "pmw_answers", "sepfem_answers"]

_ROUNDS = {"pmw": (1.0, 100), "sepfem": (4.0, 200)}  # factor and most, see `default_rounds`
_MOST_RECORDS = 2.0**60  # differences of sums of so many fit 64 bits
_STEPS = 10  # of the update after each round; more, and repeated ones, are no better
_POINTS = 20  # of the perturbed leader per round
_PERTURBATION = (
    0.2  # scale of its Laplace noise is this times the square root of the number of rounds; .1 to .3 are near
)


def default_rounds(method: str, n_variables: int, n_parities: int, cost: PureDP | ZCDP, records: float) -> int:
    """Rounds that balance the error of stopping early, sqrt(p/T), against that of the noise.

    With rho the noise is about sqrt(T/rho) log(m)/N, so ``T = N sqrt(rho p log 2)/log(2 m)``; with epsilon it is about
    T log(m)/(N epsilon), so ``T = (N epsilon sqrt(p log 2)/log(2 m))**(2/3)``. At most 100 for pmw. sepfem, whose
    rounds say less and need no measurement, takes four times as many, at most 200. The constants are measured.
    """
    log_domain, log_parities = n_variables * math.log(2.0), math.log(2.0 * n_parities)
    if isinstance(cost, PureDP):
        rounds = (records * cost.epsilon * math.sqrt(log_domain) / log_parities) ** (2.0 / 3.0)
    else:
        rounds = records * math.sqrt(cost.rho * log_domain) / log_parities
    factor, most = _ROUNDS[method]
    return max(1, min(most, round(factor * rounds)))


def measurement_scale(sensitivity: float, cost: PureDP | ZCDP, steps: int) -> float:
    """Scale of the noise of a measurement that may spend 1/steps of `cost`, rounded up.

    ValueError where it would bury any count, as :func:`~pgmpy_dp.private.noise.selection.selection_scale`, whose scale
    for the same share is never smaller.
    """
    share = Fraction(1, steps)
    if isinstance(cost, PureDP):
        return selection_scale(sensitivity, cost, 2 * share)  # 2 D/(2 share epsilon)
    return selection_scale(sensitivity, cost, share)  # the same formula, D/sqrt(2 share rho)


def pmw_answers(
    exact: Sensitive,
    n_variables: int,
    order: int,
    cost: PureDP | ZCDP,
    records: float,
    rounds: int,
    seed: np.random.Generator | None = None,
    subsets: Subsets | None = None,
) -> np.ndarray:
    """Means of all parities by private multiplicative weights over all 2**p records.

    The offline form of Hardt and Rothblum 2010, MWEM (Hardt, Ligett and McSherry 2012): each round selects the parity
    with the largest error by noisy max, measures it with noise, and updates the weights on all measurements so far.

    Parameters
    ----------
    exact : Sensitive
        Sums of all parities, or of those of `subsets`; only its ``linf`` counts here.
    n_variables, order : int
    cost : PureDP or ZCDP
        What all rounds together satisfy.
    records : float
        Public or noisy number of records, at least 1.
    rounds : int
    seed : numpy.random.Generator, optional
        For tests and benchmarks only.
    subsets : tuple of tuples of int, optional
        The public family of parities. Default: all.

    Returns
    -------
    ndarray of float, shape (m,)
        In [-1, 1], the answers of one distribution.

    Notes
    -----
    Privacy: 2 T steps of cost/(2 T) each, see the module.
    """
    select_scale = selection_scale(exact.linf, cost, Fraction(1, 2 * rounds))
    measure_scale = measurement_scale(exact.linf, cost, 2 * rounds)
    draw = samplers.discrete_laplace if isinstance(cost, PureDP) else samplers.discrete_gaussian
    weights = MultiplicativeWeights(n_variables, masks_of(subsets or field_scopes(n_variables, order)))
    for _ in range(rounds):
        error = np.abs(exact.value - _counted(weights.answers(), records))
        chosen = int(noisy_argmax([error], select_scale, cost, seed)[0])
        noisy = draw(exact.value[chosen : chosen + 1], measure_scale, seed=seed)
        weights.measure(chosen, float(noisy[0]) / records)
        weights.update(_STEPS)
    return weights.answers()


def sepfem_answers(
    exact: Sensitive,
    n_variables: int,
    order: int,
    cost: PureDP | ZCDP,
    records: float,
    rounds: int,
    seed: np.random.Generator | None = None,
    oracle: str = "auto",
    subsets: Subsets | None = None,
) -> np.ndarray:
    """Means of all parities on synthetic records, found with an optimisation oracle instead of 2**p weights.

    Algorithm sepFEM of Vietri, Tian, Bun, Steinke and Wu 2020. Each round, the data player draws points by following
    the perturbed leader: with Laplace noise sigma on the p single variables, which separate any two points (Syrgkanis,
    Krishnamurthy and Schapire 2016),

        ``argmax_z  sum_{s < t} v_s prod_{j in I_s} z_j + sum_j sigma_j z_j``;

    the query player selects a signed parity (I_t, v_t) that these points answer too low, by noisy max over all 2 m. The
    answers are the means over the points of all rounds.

    Parameters
    ----------
    exact, n_variables, order, cost, records, rounds, seed, subsets
        As in :func:`pmw_answers`.
    oracle : {"auto", "transform", "milp"}
        How the maximum is found: all 2**p values while they fit, else an integer program, which gives its best point
        after 10 seconds.

    Returns
    -------
    ndarray of float, shape (m,)

    Notes
    -----
    Privacy: T selections of cost/T each, see the module. The perturbation sigma needs no privacy: it is independent of
    the records, and what it perturbs was released, so floating-point noise from NumPy's generator (seeded by the
    operating system) serves. Nor does privacy rest on the oracle, whose input is public: a bad maximum costs accuracy.
    """
    select_scale = selection_scale(exact.linf, cost, Fraction(1, rounds))
    rng = np.random.default_rng() if seed is None else seed
    family = field_scopes(n_variables, order) if subsets is None else subsets
    m = len(family)
    by_transform = oracle == "transform" or (oracle == "auto" and n_variables <= TRANSFORM_LIMIT)
    objective = _Transform(n_variables) if by_transform else _Program(n_variables)
    total = np.zeros(m)
    for _ in range(rounds):
        noise = rng.laplace(scale=_PERTURBATION * math.sqrt(rounds), size=(_POINTS, n_variables))
        points = np.array([objective.leader(row) for row in noise])
        answers = (parity_sums(points, order) if subsets is None else family_sums(points, family)) / _POINTS
        total += answers
        error = exact.value - _counted(answers, records)
        position = int(noisy_argmax([np.concatenate([error, -error])], select_scale, cost, seed)[0])
        objective.add(family[position % m], 1.0 if position < m else -1.0)
    return total / rounds


class _Transform:
    """The objective of the perturbed leader at all 2**p points."""

    def __init__(self, n_variables: int) -> None:
        self._half = n_variables // 2
        self._shape = (1 << (n_variables - self._half), 1 << self._half)
        self._cells = np.arange(1 << n_variables).reshape(self._shape)
        self._values = np.zeros(self._shape)

    def add(self, subset: tuple[int, ...], sign: float) -> None:
        mask = sum(1 << j for j in subset)
        self._values += sign * (1.0 - 2.0 * (np.bitwise_count(~self._cells & mask) & 1))

    def leader(self, noise: np.ndarray) -> np.ndarray:
        perturbed = self._values + linear_values(noise[self._half :])[:, None]
        perturbed += linear_values(noise[: self._half])
        return ((int(np.argmax(perturbed)) >> np.arange(noise.size)) & 1).astype(np.uint8)


class _Program:
    """The same objective as an integer program."""

    def __init__(self, n_variables: int) -> None:
        self._single = [(j,) for j in range(n_variables)]
        self._subsets: list[tuple[int, ...]] = []
        self._signs: list[float] = []

    def add(self, subset: tuple[int, ...], sign: float) -> None:
        self._subsets.append(subset)
        self._signs.append(sign)

    def leader(self, noise: np.ndarray) -> np.ndarray:
        weights = np.concatenate([self._signs, noise])
        found = maximise_by_milp([*self._subsets, *self._single], weights, noise.size, seconds=10.0)
        return (found.z > 0).astype(np.uint8)


def _counted(answers: np.ndarray, records: float) -> np.ndarray:
    """Public answers as sums over records, whole numbers: of any answers, so that differences fit 64 bits."""
    return np.rint(np.clip(np.nan_to_num(answers), -1.0, 1.0) * min(records, _MOST_RECORDS)).astype(np.int64)
