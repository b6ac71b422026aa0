"""Time-homogeneous Markov chains from counts of initial states, of transitions and of triples, exact or noisy.

The chain ``p(x) = pi(x_1) prod_t P(x_t, x_{t+1})`` has the same parameters at every step and for every length. Its
log-likelihood is ``sum_i n_i log pi_i + sum_ij n_ij log P_ij`` with n_i the sequences that begin in i and n_ij the
transitions from i to j *summed over time and sequences*, so two tables suffice, and they separate: pi and the rows of P
share no parameter. The transition table, as one distribution over pairs (i, j), is a log-linear model with one clique,

    n_ij ~ N_2 mu_ij,   P_ij = mu_ij / sum_j mu_ij,

whose row sums (how often a state is left) are free: they depend on the lengths of sequences and on how users are
weighted, which the chain does not model. Hence each of the two tables is learned by the functions that learn any
clique's table, with its own noise and *its own total*: N_1 counts beginnings, N_2 transitions, and averaging them would
be wrong. P is read off theta as a softmax of its rows, so that no row is ever 0 / 0.

A chain of second order has ``P(x_{t+2} | x_t, x_{t+1})`` after its first step, from a table of triples (i, j, k), and
the first-order P for the first step. With K**3 cells most of that table is noise, so that "map" shrinks it to what the
first-order chain makes of the pairs (i, j): where nothing is known of a triple, the chain stays of first order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy.special import logsumexp

from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.inference.sampling import SamplingMethod, check_method, inverted, uniforms
from pgmpy_dp.learning.maximum_a_posteriori import collective_map
from pgmpy_dp.learning.maximum_likelihood import Fit
from pgmpy_dp.learning.noisy_marginals import NoisyMarginals


@dataclass(frozen=True, eq=False)
class MarkovChain:
    """A time-homogeneous chain as a value.

    Parameters
    ----------
    log_initial : ndarray of shape (K,)
        Log-probabilities of the first state; -inf where impossible.
    log_transition : ndarray of shape (K, K)
        Log-probabilities of the next state, rows by the state that is left.
    log_second : ndarray of shape (K, K, K), optional
        Of a chain of second order: of the next state, rows by the state before the one that is left, and by that one.
        Then `log_transition` is for the second state alone.

    Raises
    ------
    ValueError
        If the shapes do not fit or probabilities do not sum to 1 (to 1e-8).

    Examples
    --------
    >>> chain = MarkovChain(np.log([0.5, 0.5]), np.log([[0.9, 0.1], [0.2, 0.8]]))
    >>> chain.log_probability([np.array([0, 0, 1])]).round(4)  # log(0.5 * 0.9 * 0.1)
    array([-3.1011])
    """

    log_initial: np.ndarray
    log_transition: np.ndarray
    log_second: np.ndarray | None = None

    def __post_init__(self) -> None:
        initial = np.array(self.log_initial, dtype=np.float64)
        transition = np.array(self.log_transition, dtype=np.float64)
        if initial.ndim != 1 or transition.shape != (len(initial), len(initial)):
            raise ValueError(
                f"log_initial must have shape (K,) and log_transition (K, K), got {initial.shape}, {transition.shape}"
            )
        tables = {"log_initial": initial, "log_transition": transition}
        if self.log_second is not None:
            tables["log_second"] = np.array(self.log_second, dtype=np.float64)
            if tables["log_second"].shape != (len(initial),) * 3:
                raise ValueError(f"log_second must have shape {(len(initial),) * 3}, got {tables['log_second'].shape}")
        for name, table in tables.items():
            total = np.exp(table).sum(axis=-1)
            if not np.all(np.abs(total - 1) <= 1e-8):
                raise ValueError(f"{name} must hold log-probabilities that sum to 1, got the sums {total}")
            table.flags.writeable = False
            object.__setattr__(self, name, table)

    @property
    def order(self) -> int:
        """The number of states that the next one depends on: 1 or 2."""
        return 1 if self.log_second is None else 2

    @property
    def n_states(self) -> int:
        """K."""
        return len(self.log_initial)

    def log_probability(self, sequences: Sequence[np.ndarray]) -> np.ndarray:
        """log p of each sequence of state numbers given its length; 0 for an empty one, nan with an unknown state (-1).

        Returns
        -------
        ndarray of shape (len(sequences),)
        """
        lengths = np.array([len(sequence) for sequence in sequences], dtype=np.int64)
        codes = np.concatenate([np.empty(0, np.int64), *(np.asarray(s, dtype=np.int64) for s in sequences)])
        if len(codes) and (codes.min() < -1 or codes.max() >= self.n_states):
            raise ValueError(f"sequences must hold state numbers from 0 to {self.n_states - 1} (or -1 for unknown)")
        first = np.zeros(len(codes), dtype=bool)
        first[(np.cumsum(lengths) - lengths)[lengths > 0]] = True
        terms = np.empty(len(codes))
        terms[first] = self.log_initial[codes[first]]
        later = np.flatnonzero(~first)
        terms[later] = self.log_transition[codes[later - 1], codes[later]]
        if self.log_second is not None:
            later = later[~first[later - 1]]
            terms[later] = self.log_second[codes[later - 2], codes[later - 1], codes[later]]
        # Indexing with -1 took some row or column; whatever touches an unknown state becomes nan instead.
        terms[codes < 0] = np.nan
        return np.bincount(np.repeat(np.arange(len(lengths)), lengths), terms, len(lengths))

    def unrolled(self, length: int, variable: str = "x") -> LogLinearModel:
        """The joint distribution of the first `length` states, variables ``(variable, 0)``, ``(variable, 1)``, ...

        The potentials are pi on the first edge's rows and P on every edge, so the log-partition function is 0. A model
        of length 1 has the one table pi. Of second order there is a table for every three successive states.
        """
        if length < 1:
            raise ValueError(f"length must be at least 1, got {length!r}")
        names = tuple((variable, t) for t in range(length))
        size = min(length, self.order + 1)
        scopes = tuple(names[t : t + size] for t in range(length - size + 1))
        cliques = Cliques(names, (self.n_states,) * length, scopes)
        if length == 1:
            return LogLinearModel(cliques, self.log_initial)
        step, first = self.log_transition, self.log_initial[:, None] + self.log_transition
        if self.log_second is not None and length > 2:
            step, first = self.log_second, first[:, :, None] + self.log_second
        tables = [first, *[step] * (len(scopes) - 1)]
        return LogLinearModel(cliques, np.concatenate([table.ravel() for table in tables]))

    def sample(
        self, n: int, length: int, rng: np.random.Generator, method: SamplingMethod = "independent"
    ) -> np.ndarray:
        """Draw n sequences of `length` states; shape (n, length).

        They are independent, or "stratified" as `pgmpy_dp.inference.sampling` describes: at each time, of the
        sequences in a state (of second order: in two states, one after the other). Each has the chain's law.
        """
        if n < 0 or length < 1:
            raise ValueError(f"n must be at least 0 and length at least 1, got {n!r} and {length!r}")
        check_method(method)
        initial = np.exp(self.log_initial).cumsum()[:, None]
        transition = np.ascontiguousarray(np.exp(self.log_transition).cumsum(axis=1).T)
        codes = np.zeros((n, length), dtype=np.int64)
        everyone = np.zeros(n, dtype=np.int64)
        codes[:, 0] = inverted(initial, everyone, uniforms(everyone, rng, method))
        second = None
        if self.log_second is not None:
            second = np.ascontiguousarray(np.exp(self.log_second).reshape(-1, self.n_states).cumsum(axis=1).T)
        for t in range(1, length):
            before, below = codes[:, t - 1], transition
            if second is not None and t > 1:
                before, below = codes[:, t - 2] * self.n_states + before, second
            codes[:, t] = inverted(below, before, uniforms(before, rng, method))
        return codes


@dataclass(frozen=True)
class ChainFit:
    """A fitted chain and how the fits of its tables ended.

    Attributes
    ----------
    chain : MarkovChain
    initial, transition : Fit
    second : Fit or None
        Of the triples, of a chain of second order.
    """

    chain: MarkovChain
    initial: Fit
    transition: Fit
    second: Fit | None = None

    @property
    def converged(self) -> bool:
        """Whether all fits did."""
        return all(fit.converged for fit in (self.initial, self.transition, self.second) if fit is not None)

    @property
    def status(self) -> str:
        """The endings of the fits, in words."""
        triples = "" if self.second is None else f"; triples: {self.second.status}"
        return f"initial: {self.initial.status}; transitions: {self.transition.status}{triples}"


def noisy_chain_tables(
    initial: np.ndarray, transition: np.ndarray, noise: str, scales: Sequence[float], units: Sequence[float] = (1, 1)
) -> tuple[NoisyMarginals, NoisyMarginals]:
    """The two released tables as the learning functions take them, each in users and with a total of its own.

    Parameters
    ----------
    initial : ndarray of shape (K,)
    transition : ndarray of shape (K, K)
        From, to.
    noise : {"laplace", "gaussian", "none"}
    scales : sequence of two float
        Of the noise, in the units of the tables.
    units : sequence of two float
        What counts as one record of each table. Tables and scales are divided by it. In units of the most that one
        user adds, a user's cell is in [0, 1] and its table sums to at most 1, so the variance of a cell over users is
        at most N mu, as of a count of N records: what the collective methods take for the sampling error is an upper
        bound of it. Where few users add nearly as much, it is far too large; see `segment_units`.

    Returns
    -------
    tuple of two NoisyMarginals
    """
    initial, transition = np.asarray(initial, dtype=np.float64), np.asarray(transition, dtype=np.float64)
    k = len(initial)
    if initial.shape != (k,) or transition.shape != (k, k):
        raise ValueError(f"initial must have shape (K,) and transition (K, K), got {initial.shape}, {transition.shape}")
    first = Cliques(("state",), (k,), (("state",),))
    pair = Cliques(("from", "to"), (k, k), (("from", "to"),))
    return (
        NoisyMarginals(first, initial / units[0], noise, np.array([scales[0] / units[0]])),  # type: ignore[arg-type]
        NoisyMarginals(pair, transition.ravel() / units[1], noise, np.array([scales[1] / units[1]])),  # type: ignore[arg-type]
    )


def noisy_triples(triples: np.ndarray, noise: str, scale: float, unit: float = 1) -> NoisyMarginals:
    """The released table of triples, in users; arguments as for `noisy_chain_tables`."""
    triples = np.asarray(triples, dtype=np.float64)
    names = ("before", "from", "to")
    scaled = np.array([scale / unit])
    return NoisyMarginals(Cliques(names, triples.shape, (names,)), triples.ravel() / unit, noise, scaled)  # type: ignore[arg-type]


def segment_units(initial: np.ndarray, transition: np.ndarray, longest: float) -> tuple[float, float]:
    """Return what is one record where users are bounded by segments: a segment, and an average one's transitions.

    A cap on segments is chosen for the longest users and says nothing about the others. Were its transitions one
    record, the sampling error would be taken to be larger than it is by the cap over the average, and tables with next
    to no noise shrunk as if they were of few records: with segments of up to 260 visits of 20,000 of MSNBC's users, who
    make 3.6 transitions on average, and epsilon = 1000, log-likelihood -1.618 per visit instead of -1.536.

    Parameters
    ----------
    initial, transition : ndarray
        The noisy tables: each segment begins once.
    longest : float
        Transitions of a segment at most.

    Returns
    -------
    tuple of two float

    Examples
    --------
    >>> segment_units(np.array([60.0, 40.0]), np.array([[200.0, 20.0], [30.0, 50.0]]), 259.0)
    (1.0, 3.0)
    """
    average = float(np.sum(transition)) / max(float(np.sum(initial)), 1.0)
    return 1.0, min(max(average, 1.0), float(longest))


def fit_chain(
    initial: NoisyMarginals,
    transition: NoisyMarginals,
    learn: Callable[[NoisyMarginals], Fit],
    learn_transition: Callable[[NoisyMarginals], Fit] | None = None,
) -> ChainFit:
    """Learn a chain from its two noisy tables, each on its own.

    Parameters
    ----------
    initial, transition : NoisyMarginals
        As from `noisy_chain_tables`.
    learn : callable
        One of `naive_mle`, `collective_em`, `collective_map`, with its options bound.
    learn_transition : callable, optional
        Another one for the transitions.

    Returns
    -------
    ChainFit

    Examples
    --------
    >>> from pgmpy_dp.learning.maximum_likelihood import naive_mle
    >>> tables = noisy_chain_tables(np.array([52.0, 47]), np.array([[91.0, 8], [19, 83]]), "laplace", (2.0, 2.0))
    >>> np.exp(fit_chain(*tables, naive_mle).chain.log_transition).round(1)
    array([[0.9, 0.1],
           [0.2, 0.8]])
    """
    fits = learn(initial), (learn_transition or learn)(transition)
    k = initial.cliques.cardinalities[0]
    theta, pairs = fits[0].model.theta, fits[1].model.theta.reshape(k, k)
    chain = MarkovChain(theta - logsumexp(theta), pairs - logsumexp(pairs, axis=1, keepdims=True))
    return ChainFit(chain, *fits)


def map_chain(
    initial: NoisyMarginals,
    transition: NoisyMarginals,
    *,
    stay: bool = True,
    callback: Callable[[], None] | None = None,
) -> ChainFit:
    """Learn a chain by `collective_map`, with a prior that knows that staying is not like moving.

    Parameters
    ----------
    initial, transition : NoisyMarginals
        As from `noisy_chain_tables`.
    stay : bool
        Shrink to the model in which every state is kept with one probability, and otherwise left for any other alike,
        instead of to the uniform one. That probability comes from the release (`staying_log_odds`): the sum of K cells
        against the sum of all, known long before any single cell is.
    callback
        As for `collective_map`.

    Returns
    -------
    ChainFit
        ``transition.details["stay"]`` is the log-odds that was used, 0 without `stay`.

    Notes
    -----
    `collective_map`'s entropy term is left out (``entropy_share=0``): it guards interactions, whose size a table of one
    variable does not tell, so it would pull the initial distribution to the uniform one with arbitrary strength.

    Examples
    --------
    >>> tables = noisy_chain_tables(np.array([520.0, 470]), np.array([[910.0, 80], [190, 830]]), "laplace", (2.0, 2.0))
    >>> np.exp(map_chain(*tables).chain.log_transition).round(1)
    array([[0.9, 0.1],
           [0.2, 0.8]])
    """
    learn = partial(collective_map, entropy_share=0.0, callback=callback)
    strength = staying_log_odds(transition) if stay else 0.0
    base = strength * np.eye(transition.cliques.cardinalities[0]).ravel()
    fit = fit_chain(initial, transition, learn, partial(learn, base=base))
    return replace(fit, transition=replace(fit.transition, details=fit.transition.details | {"stay": strength}))


def second_order(
    fit: ChainFit,
    triples: NoisyMarginals,
    learn: Callable[..., Fit] | None = None,
    callback: Callable[[], None] | None = None,
) -> ChainFit:
    """Learn how a chain goes on from its last two states.

    Parameters
    ----------
    fit : ChainFit
        Of first order.
    triples : NoisyMarginals
        As from `noisy_triples`.
    learn : callable, optional
        As for `fit_chain`, of the table alone. Default: `collective_map`, which shrinks it to ``q_ij P_jk``, q the
        pairs and P the transitions of `fit`: a triple of which the table says nothing is as the first order has it.
    callback
        As for `collective_map`.

    Returns
    -------
    ChainFit

    Examples
    --------
    >>> tables = noisy_chain_tables(np.array([500.0, 500]), np.array([[450.0, 550], [550, 450]]), "laplace", (2.0, 2.0))
    >>> counts = np.array([[[20.0, 430], [530, 20]], [[30, 520], [420, 30]]])  # nobody stays three times
    >>> fitted = second_order(map_chain(*tables), noisy_triples(counts, "laplace", 2.0))
    >>> np.exp(fitted.chain.log_second).round(1).tolist()
    [[[0.0, 1.0], [1.0, 0.0]], [[0.1, 0.9], [0.9, 0.1]]]
    """
    if learn is None:
        pairs = fit.transition.model.theta.reshape(fit.chain.log_transition.shape)
        base = (pairs[:, :, None] - logsumexp(pairs)) + fit.chain.log_transition
        second = collective_map(triples, entropy_share=0.0, base=base.ravel(), callback=callback)
    else:
        second = learn(triples)
    theta = second.model.theta.reshape((fit.chain.n_states,) * 3)
    log_second = theta - logsumexp(theta, axis=2, keepdims=True)
    return replace(fit, chain=replace(fit.chain, log_second=log_second), second=second)


def staying_log_odds(transition: NoisyMarginals) -> float:
    """Log-potential s of the diagonal at which the model ``exp(s [i = j])`` stays as often as the release says.

    ``s = log(d (K - 1)/(1 - d))`` with d the share of the table that lies on its diagonal. Its noise has a known
    variance V, and d is shrunk to 1/K, at which s = 0, by the factor ``1/(1 + V/0.3**2)``: 0.3 is about the standard
    deviation of a uniform share.
    """
    (table,) = transition.cliques.split(transition.counts)
    k, n = len(table), transition.n_records
    raw = float(np.trace(table)) / n
    # Var(trace - raw sum): K cells with weight 1 - raw, the others with weight -raw.
    variance = float(transition.cell_variance[0]) * k * ((1 - raw) ** 2 + (k - 1) * raw**2) / n**2
    d = 1 / k + (raw - 1 / k) / (1 + variance / 0.3**2)
    d = min(max(d, 0.5 / k), 1 - 0.5 / k)
    return float(np.log(d * (k - 1) / (1 - d)))
