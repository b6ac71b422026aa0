"""Noisy counts of users' sequences: the sufficient statistics of a time-homogeneous chain, and a test of its order."""

from __future__ import annotations

import numbers
from collections.abc import Sequence

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
from pgmpy_dp.sequences.chain_order import OrderTest, order_test
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
        :mod:`pgmpy_dp.sequences.chain_order` decides, after the pairs are known, by a twentieth of the budget
        whether the rest goes to triples or to the pairs again.

    Returns
    -------
    Release
        ``kind="chain"``; ``values`` are the initial table, shape (K,), and the transitions (from, to), shape (K, K); of
        second order then the triples, shape (K, K, K). With "auto" after the transitions come the three numbers of
        :class:`~pgmpy_dp.sequences.operators.sequence_operators.OrderDeparture`, and the triples, or the
        transitions once more. ``public["units"]`` has what one user adds to each at most: dividing by it gives tables
        in users; ``public["lengths"]`` what each is: 1, 2 or 3 for a table, 0 for the three numbers. ``public["test"]``
        has what "auto" found, an :class:`~pgmpy_dp.sequences.chain_order.OrderTest`; empty where it did not ask.

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
    asked = settings.public(budget, "segment_length", "max_segments", "initial_share", "noise", "chain_order")
    if tests:
        first = sum(settings.weights)
        tables = curator.ask(NgramTables(settings.weights), first)
        found = _tested(curator, tables, 1.0 - first - _TEST)
        units, lengths = [*units, *[_SHARE] * (2 if found else 1)], [*lengths, *[0] * bool(found)]
        lengths.append(found.order + 1 if found else 2)
        test = found.to_dict() if found else {}
        curator.ask(NgramTables(lengths=lengths[-1:]), curator.left)
    else:
        how = settings.weights, settings.segment_length, settings.max_segments, settings.lengths
        curator.ask(NgramTables(*how), 1)
    facts = {"units": units, "lengths": lengths, "test": test, "settings": asked}
    names = distinct_names(_NAMES[length] for length in lengths)
    return curator.release("chain", facts, curator.called(*names))


def _completed(settings: Settings) -> Settings:
    """With the share of the beginnings, and what is counted at once: lengths of n-grams, units of users, shares."""
    order, first = settings.chain_order, settings.initial_share
    if first is None:
        first = _FIRST if order == 1 else _OTHER
    left, lengths = 1.0 - first, (1, 2, 3) if order == 2 else (1, 2)
    rest = {1: (left,), 2: (left / 2, left / 2), "auto": (_PAIRS * left / (1.0 - _OTHER),)}
    units = user_additions(settings.segment_length, settings.max_segments, lengths)
    return settings.but(initial_share=first, lengths=lengths, units=units, weights=(first, *rest[order]))


def _noises(settings: Settings, adjacency: Adjacency, cost: PureDP | ZCDP, tests: bool) -> list[Noise]:
    """Of everything that is asked at most, from public numbers."""
    first = sum(settings.weights) if tests else 1
    tables = NgramTables.noise_of(settings.units, adjacency, cost, first, settings.weights)
    if not tests:
        return [*tables]
    rest = NgramTables.noise_of([_SHARE], adjacency, cost, 1.0 - first - _TEST)
    return [*tables, OrderDeparture.noise_of(adjacency, cost, _TEST), *rest]


def _tested(curator: Curator, tables: Sequence[np.ndarray], rest: float) -> OrderTest | None:
    """Ask how far triples are from a first-order chain; None where no distance could make triples worth their noise."""
    of_tables = [noise for noise in curator.answers[-1].noise if noise is not None]
    kind = "laplace" if of_tables[0].distribution == "discrete_laplace" else "gaussian"
    fit = map_chain(*noisy_chain_tables(tables[0], tables[1], kind, [n.scale for n in of_tables], (_SHARE, _SHARE)))
    n_pairs = max(float(tables[1].sum()) / _SHARE, 1.0)
    pairs = n_pairs * softmax(fit.transition.model.theta).reshape(tables[1].shape)
    (of_rest,) = NgramTables.noise_of([_SHARE], curator.adjacency, curator.cost, rest)
    transition = np.exp(fit.chain.log_transition)
    known = transition, pairs, of_tables[1].variance / _SHARE**2, of_rest.variance / _SHARE**2
    most = order_test(*known, n_pairs, n_pairs, 1.0, 0.0)  # all triples elsewhere, and no chance
    if most.gain <= most.cost:
        return None
    distance, total, effective = (curator.ask(OrderDeparture(transition), _TEST) / _SHARE).tolist()
    of_distance = OrderDeparture.noise_of(curator.adjacency, curator.cost, _TEST)
    return order_test(*known, distance, total, effective, of_distance.variance / _SHARE**2)
