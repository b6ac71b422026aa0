"""Noisy counts of users' sequences: the sufficient statistics of a time-homogeneous chain, and a test of its order.

The test says whether a chain of second order would say more than one of first order, before its table is paid for.

A first-order chain leaves j with the probabilities P_jk, whatever was before j. What is asked of the records is how far
their triples are from that: the distance D of :func:`~pgmpy_dp.sequences.operators.sequences.order_departure`. Chance
makes it positive for a first-order chain too, in two ways: triples are few, and P was learned from a noisy table. Noisy
numbers tell how much, and so give the threshold. What a second order would gain depends on what the noise leaves of the
table of triples, and is compared with what the same budget does for the pairs.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
from scipy.special import softmax

from pgmpy_dp.learning.least_noise import least_noise, noise_for_ledger
from pgmpy_dp.learning.options import Settings
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.curator.curator_base import Curator
from pgmpy_dp.private.data.data_base import require_data_and_budget
from pgmpy_dp.private.guarantee import ZCDP, PureDP
from pgmpy_dp.private.named_values import distinct_names
from pgmpy_dp.private.sensitive import Noise, Release
from pgmpy_dp.sequences.chain_model import map_chain, noisy_chain_tables
from pgmpy_dp.sequences.operators.sequence_operators import LARGEST_TABLE, NgramTables, OrderDeparture, user_additions
from pgmpy_dp.sequences.operators.sequences import PrivateSequences

ORDERS = (1, 2, "auto")

_NAMES = {1: "initial", 2: "transitions", 3: "triples", 0: "departure"}  # by length; 0 is the test of order
_TEST = 0.05  # of the budget, with "auto"
_PAIRS = 0.25
_FIRST = 0.25  # of the beginnings where the order is fixed at 1
_OTHER = 0.1  # and elsewhere, where triples need more
(_SHARE,) = user_additions(lengths=(3,))


def checked_order(name: str, value: object) -> int | str:
    """An order of chains; ValueError for anything else."""
    if isinstance(value, bool) or not isinstance(value, str | numbers.Integral) or value not in ORDERS:
        raise ValueError(f"{name}={value!r} is no order of a chain; pass one of {ORDERS}")
    return value if isinstance(value, str) else int(value)


def run(data: PrivateSequences, settings: Settings, budget: Budget) -> Release:
    """Release noisy counts of initial states and of transitions, and of triples where the order asks for them.

    Refuses arguments that cannot be used, and a ledger that protects another unit.

    Parameters
    ----------
    settings : Settings
        Of :class:`~pgmpy_dp.estimators.PrivateMarkovChain`. Where `initial_share` is None the beginnings have 0.25 of
        the budget, and 0.1 for a `chain_order` other than 1: they have K cells where the transitions have K**2. Of
        second order triples have half of what the beginnings leave. With "auto"
        :mod:`pgmpy_dp.sequences.chain_counts` decides, after the pairs are known, by a twentieth of the budget
        whether the rest goes to triples or to the pairs again.

    Returns
    -------
    Release
        ``kind="chain"``; ``values`` are the initial table, shape (K,), and the transitions (from, to), shape (K, K); of
        second order then the triples, shape (K, K, K). With "auto" after the transitions come the three numbers of
        :class:`~pgmpy_dp.sequences.operators.sequence_operators.OrderDeparture`, and the triples, or the
        transitions once more. ``public["units"]`` has what one user adds to each at most: dividing by it gives tables
        in users; ``public["lengths"]`` what each is: 1, 2 or 3 for a table, 0 for the three numbers. ``public["test"]``
        has what "auto" found, an :class:`~pgmpy_dp.sequences.chain_counts.OrderTest`; empty where it did not ask.

    Notes
    -----
    Privacy
        *Unit.* A user: all rows with one value of the column ``data.unit``.

        *Guarantee.* The budget goes to one request for all tables,
        :class:`~pgmpy_dp.sequences.operators.sequence_operators.NgramTables`, which has their
        sensitivities. With M_c the most that a user adds to table c and shares s_c of sum 1: Laplace noise of scale
        ``(1 or 2) M_c/(s_c epsilon)``, epsilon-DP, or Gaussian noise of scale ``M_c sqrt((1 or 2)/(2 s_c rho))``,
        rho-zCDP. With "auto" to three requests one after the other, each with its share, of which the second is
        :class:`~pgmpy_dp.sequences.operators.sequence_operators.OrderDeparture`. What is asked last is
        decided by noisy answers alone.

        *Source.* Dwork, McSherry, Nissim and Smith 2006; Canonne, Kamath and Steinke 2020; the shares: Bernstein et al.
        2017, section 4.2, after He et al. 2015.

        *Side channels.* Refusals, shapes and the kind of noise depend on public arguments only. Running time depends on
        the number of visits.

    Examples
    --------
    >>> import pandas as pd
    >>> from pgmpy_dp.estimators import PrivateMarkovChain
    >>> from pgmpy_dp.learning.options import settings_of
    >>> frame = pd.DataFrame({"user": [1, 1, 2], "sequence": ["a b b", "a", "b a"]})
    >>> data = PrivateSequences(frame, {"page": ["a", "b"]}, ledger=Budget(epsilon=1.0))
    >>> release = run(data, settings_of(PrivateMarkovChain()), Budget(epsilon=0.5))
    >>> release.names, str(release.guarantee), str(data.ledger.left)
    (('initial', 'transitions'), '0.5-DP', '0.5-DP')
    """
    require_data_and_budget(data, PrivateSequences, budget)
    settings = _completed(settings)
    (variable,) = data.schema.variables
    k = data.schema.cardinality(variable)
    if settings.chain_order == 2 and k**3 > LARGEST_TABLE:
        raise ValueError(
            f"chain_order=2 of {k} states has {k**3:,} triples, more than {LARGEST_TABLE:,}; pass chain_order=1, or "
            "put states together"
        )
    tests = settings.chain_order == "auto" and k**3 <= LARGEST_TABLE
    sizes = [k**n for n in settings.lengths] + ([3, k**3] if tests else [])

    def noises(cost: PureDP | ZCDP) -> list[Noise]:
        return _noises(settings, data.adjacency, cost, tests)

    cost = least_noise(noises, sizes, budget, noise_for_ledger(settings.noise, budget, data))
    curator = Curator(
        data,
        Budget(epsilon=cost.epsilon) if isinstance(cost, PureDP) else budget,
        what="initial and transition tables",
        random_state=settings.random_state,
    )
    units, lengths, test = list(settings.units), list(settings.lengths), {}
    options = settings.public(budget, "segment_length", "max_segments", "initial_share", "noise", "chain_order")
    if tests:
        first = sum(settings.weights)
        tables = curator.ask(NgramTables(settings.weights), first)
        outcome = _tested(curator, tables, 1.0 - first - _TEST)
        units, lengths = [*units, *[_SHARE] * (2 if outcome else 1)], [*lengths, *[0] * bool(outcome)]
        lengths.append(outcome.order + 1 if outcome else 2)
        test = outcome.to_dict() if outcome else {}
        curator.ask(NgramTables(lengths=lengths[-1:]), curator.left)
    else:
        how = settings.weights, settings.segment_length, settings.max_segments, settings.lengths
        curator.ask(NgramTables(*how), 1)
    facts = {"units": units, "lengths": lengths, "test": test, "settings": options}
    names = distinct_names(_NAMES[length] for length in lengths)
    return curator.release("chain", facts, curator.called(*names))


def _completed(settings: Settings) -> Settings:
    """Return the settings with the share of the beginnings, and what is counted at once: lengths, units, shares."""
    order, first = settings.chain_order, settings.initial_share
    if first is None:
        first = _FIRST if order == 1 else _OTHER
    left, lengths = 1.0 - first, (1, 2, 3) if order == 2 else (1, 2)
    rest = {1: (left,), 2: (left / 2, left / 2), "auto": (_PAIRS * left / (1.0 - _OTHER),)}
    units = user_additions(settings.segment_length, settings.max_segments, lengths)
    return settings.but(initial_share=first, lengths=lengths, units=units, weights=(first, *rest[order]))


def _noises(settings: Settings, adjacency: Adjacency, cost: PureDP | ZCDP, tests: bool) -> list[Noise]:
    """Return the noise of all requests at most, from public numbers."""
    first = sum(settings.weights) if tests else 1
    tables = NgramTables.planned(settings.units, adjacency, cost, first, settings.weights).noise
    if not tests:
        return [*tables]
    rest = NgramTables.planned([_SHARE], adjacency, cost, 1.0 - first - _TEST).noise
    return [*tables, OrderDeparture.noise_of(adjacency, cost, _TEST), *rest]


def _tested(curator: Curator, tables: Sequence[np.ndarray], rest: float) -> OrderTest | None:
    """Ask how far triples are from a first-order chain; None where no distance could make triples worth their noise."""
    of_tables = [noise for noise in curator.answers[-1].noise if noise is not None]
    kind = "laplace" if of_tables[0].distribution == "discrete_laplace" else "gaussian"
    fit = map_chain(*noisy_chain_tables(tables[0], tables[1], kind, [n.scale for n in of_tables], (_SHARE, _SHARE)))
    n_pairs = max(float(tables[1].sum()) / _SHARE, 1.0)
    pairs = n_pairs * softmax(fit.transition.model.theta).reshape(tables[1].shape)
    (of_rest,) = NgramTables.planned([_SHARE], curator.adjacency, curator.cost, rest).noise
    transition = np.exp(fit.chain.log_transition)
    known = transition, pairs, of_tables[1].variance / _SHARE**2, of_rest.variance / _SHARE**2
    most = order_test(*known, n_pairs, n_pairs, 1.0, 0.0)  # all triples elsewhere, and no chance
    if most.gain <= most.cost:
        return None
    distance, total, effective = (curator.ask(OrderDeparture(transition), _TEST) / _SHARE).tolist()
    of_distance = OrderDeparture.noise_of(curator.adjacency, curator.cost, _TEST)
    return order_test(*known, distance, total, effective, of_distance.variance / _SHARE**2)


_CERTAIN = 3.0
"""Standard deviations of the distance that it has to be above what chance makes."""


@dataclass(frozen=True)
class OrderTest:
    """The outcome of the test of order, in users.

    Attributes
    ----------
    order : int
        1 or 2.
    distance : float
        Noisy: users' shares of triples in other cells than a first-order chain has them.
    expected : float
        What chance makes of it, if the chain is of first order.
    deviation : float
        Standard deviation of the distance, with its noise.
    gain, cost : float
        Nats in all that the table of triples is expected to give, and that a second table of pairs would.
    """

    order: int
    distance: float
    expected: float
    deviation: float
    gain: float
    cost: float

    def to_dict(self) -> dict[str, float]:
        """The attributes as a dict."""
        return asdict(self)


def order_test(
    transition: np.ndarray,
    pairs: np.ndarray,
    pair_variance: float,
    rest_variance: float,
    distance: float,
    total: float,
    effective: float,
    distance_variance: float,
) -> OrderTest:
    """Compare a measured departure from the first order with what chance makes of it.

    Parameters
    ----------
    transition : ndarray of shape (K, K)
        P, the learned transition probabilities.
    pairs : ndarray of shape (K, K)
        Expected numbers of pairs by the learned model, in users, positive.
    pair_variance, rest_variance : float
        Of the noise in a cell of the table of pairs, and in one of what would be measured next.
    distance, total, effective : float
        D, the number of triples, and how many independent ones have their chance, in users, noisy.
    distance_variance : float
        Of the noise in D.

    Returns
    -------
    OrderTest

    Notes
    -----
    *Expected.* With m_ijk = N q_ij P_jk, N the total and q the share of the pairs (i, j), a cell's deviation has the
    variance of ``effective q_ij P_jk (1 - P_jk)`` independent triples and that of the error of P_jk, times the row's
    total squared. The latter is of a table of pairs with noise of variance v, whose cells are shrunk to a model that is
    wrong by as much as they are large: ``m**2 (v + m)/(m**2 + v + m)``. D is half the sum of absolute deviations, and
    normal ones have mean sqrt(2/pi) deviations.

    *Deviation.* One of the effective triples moves D by at most 1, hence the variance is at most a quarter of their
    number (Efron and Stein 1981), and that of the noise. Laplace noise alone is above three of its deviations in .7 %
    of tests, Gaussian noise in .13 %: so often at most is a first-order chain taken for one of second order where the
    expected distance is right.

    *Gain.* What of D is above chance is spread over the cells as they are large, so that a cell deviates by ``r m`` for
    a known r. A measured table of triples, shrunk by that, explains ``(r m)**4/((r m)**2 + noise)/(2 m)`` nats.

    Examples
    --------
    >>> P = np.array([[0.9, 0.1], [0.2, 0.8]])
    >>> pairs = np.array([[6000.0, 700.0], [600.0, 2700.0]])
    >>> order_test(P, pairs, 50.0, 50.0, 100.0, 8000.0, 4000.0, 900.0).order
    1
    >>> order_test(P, pairs, 50.0, 50.0, 900.0, 8000.0, 4000.0, 900.0).order
    2
    """
    total = max(total, 1.0)
    effective = min(max(effective, 1.0), total)
    row = pairs.sum(axis=1, keepdims=True)
    shares = pairs / pairs.sum()
    error = _shrunk(pairs, pair_variance + pairs) / row**2
    chance = effective * shares[:, :, None] * (transition * (1.0 - transition))[None]
    wrong = (total * shares[:, :, None]) ** 2 * error[None]
    expected = 0.5 * math.sqrt(2.0 / math.pi) * float(np.sqrt(chance + wrong).sum())
    deviation = math.sqrt(effective / 4.0 + distance_variance)
    expected_triples = total * shares[:, :, None] * transition[None]
    above = math.sqrt(max(distance**2 - expected**2, 0.0)) if distance > 0 else 0.0
    spread = (2.0 * above / total * expected_triples) ** 2 * (math.pi / 2.0)
    noise = rest_variance + effective / total * expected_triples
    gain = 0.5 * float((spread / expected_triples * (spread / (spread + noise))).sum())
    both = 1.0 / (1.0 / pair_variance + 1.0 / rest_variance)
    cost = 0.5 * float(((_shrunk(pairs, pair_variance) - _shrunk(pairs, both)) / pairs).sum())
    second = distance - _CERTAIN * deviation > expected and gain > cost
    return OrderTest(2 if second else 1, float(distance), expected, deviation, gain, cost)


def _shrunk(size: np.ndarray, variance: np.ndarray | float) -> np.ndarray:
    """Error variance of cells that are shrunk to what may be wrong by their size."""
    return size**2 * variance / (size**2 + variance)
