"""The votes of blocks of records: a graph that most agree on, and how many have each edge."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from pgmpy_dp.checks import checked_integer
from pgmpy_dp.private.curator.curator_base import checked_eta, checked_share
from pgmpy_dp.private.curator.mechanism import AdditiveNoise, Mechanism
from pgmpy_dp.private.curator.observer import Coins
from pgmpy_dp.private.curator.outside_functions import named_function, plain_arguments, run_blocks
from pgmpy_dp.private.data.contributions import GRID
from pgmpy_dp.private.data.data_base import Facts
from pgmpy_dp.private.data.table import PrivateTable, shared_codes, table_units
from pgmpy_dp.private.data.table_facts import TableFacts
from pgmpy_dp.private.guarantee import ZCDP, PureDP
from pgmpy_dp.private.noise.additive import root_up, round_down
from pgmpy_dp.private.noise.distance_test import DistanceTest, distance_test, mode_and_distance, released_mode
from pgmpy_dp.private.noise.measures import pure_epsilon
from pgmpy_dp.private.operators.operator_base import Operator, SumOperator
from pgmpy_dp.private.sensitive import Noise, Sensitive

MAX_BLOCKS = 1 << 16
"""More would take minutes and memory for little: it is 4 ln(1/delta)/epsilon at delta = 1e-6 and epsilon = .0008."""

Vote = tuple[int, ...] | None


def vote_sensitivity(n_pairs: int, max_edges: int) -> tuple[float, float, float]:
    """Return the l1, l2 and l-infinity sensitivities of the counts of all edges, under either adjacency.

    Parameters
    ----------
    n_pairs : int
        p(p-1)/2.
    max_edges : int
        s: no block's graph has more.

    Notes
    -----
    Privacy: under add_remove and under replace_one the records of one block change, since the draws that make the
    blocks do not look at them (:class:`EdgeVotes`). That block's graph G becomes G', a null vote being a
    graph without edges here, and the counts move by the difference of their indicators: by 1 on the symmetric
    difference, which has at most min(2s, n_pairs) pairs. Hence l1 is this number and l2 its root, rounded up. Where
    draws of parts looked at content, a replacement would change two graphs, and both sensitivities would be larger.

    Examples
    --------
    >>> vote_sensitivity(45, 8)
    (16.0, 4.0, 1.0)
    """
    changed = min(2 * int(max_edges), int(n_pairs))  # twice one of NumPy's 8-bit integers goes round
    return float(changed), root_up(Fraction(changed)), 1.0


def agreement_test(cost: PureDP | ZCDP, share: Fraction | float, eta: Fraction | float) -> DistanceTest:
    """Noise and threshold of :class:`AgreedGraph`: from public numbers, without records.

    Parameters
    ----------
    cost : PureDP or ZCDP
    share : Fraction or float
        Of epsilon, or of rho: the test is then pure with epsilon ``sqrt(2 share rho)``.
    eta : Fraction or float
        In (0, 1): the probability with which it may fail.

    Raises
    ------
    ValueError
        For a share or eta outside of its range, and noise that would bury any number of votes.

    Examples
    --------
    >>> agreement_test(PureDP(1.0), 1, 1e-6), agreement_test(ZCDP(0.5), 1, 1e-6)
    (DistanceTest(scale=1.0, threshold=14), DistanceTest(scale=1.0, threshold=14))
    """
    epsilon = pure_epsilon(cost, checked_share(share))
    return distance_test(epsilon, round_down(checked_eta(eta)))


@dataclass(frozen=True, slots=True, eq=False)
class BlockVotes:
    """The question to blocks of records; :class:`EdgeVotes` has the parameters."""

    function: str | Callable[..., Any]
    arguments_of: Mapping[str, Any]
    n_blocks: int
    max_edges: int
    n_workers: int | None = None
    vouched_for: bool = False
    _called: Callable[..., Any] | None = field(default=None, repr=False)  # set by `checked` alone

    def _checked_fields(self, facts: TableFacts) -> tuple[Any, ...]:
        """Return the fields, checked, with the function."""
        p, function = len(facts.schema), self.function
        if p < 2:
            raise ValueError(f"the schema declares {p} variables; a graph needs at least two")
        max_edges = checked_integer("max_edges", self.max_edges, 1)
        n_blocks = checked_integer("n_blocks", self.n_blocks, 1)
        if n_blocks > MAX_BLOCKS:
            raise ValueError(f"n_blocks={n_blocks!r} asks for more than {MAX_BLOCKS} blocks; pass fewer")
        workers = None if self.n_workers is None else checked_integer("n_workers", self.n_workers, 1)
        if self.vouched_for and callable(function):
            called: Callable[..., Any] = function
            name = f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', type(function).__name__)}"
        else:
            called, name = named_function(function), str(function)  # type: ignore[arg-type]
        arguments = plain_arguments(self.arguments_of)
        if facts.by_shares and ("weights" in arguments or not _takes_weights(called)):
            raise ValueError(
                f"function={name!r} takes no 'weights', by which records count here, as rows_per_unit='shares' has it; "
                "pass rows_per_unit=m, where votes pay nothing for more rows of a person: all of them go to one block"
            )
        return name, arguments, n_blocks, max_edges, workers, called is function, called

    def arguments(self, facts: Facts) -> dict[str, Any]:
        """Return the question, as answers and releases tell it: without what the answer does not depend on."""
        question = {name: getattr(self, name) for name in ("function", "n_blocks", "max_edges", "vouched_for")}
        return {"arguments": self.arguments_of, **question, **facts.arguments}

    def _graphs(self, data: PrivateTable, facts: TableFacts, coins: Coins) -> list[Vote]:
        """The graph of each block, exact: **to be noised**."""
        n_pairs, called = math.comb(len(facts.schema), 2), self._called
        assert called is not None
        codes, shares = shared_codes(data)
        units, count, owner = table_units(data)
        part = coins.parts(units, count, self.n_blocks)[owner]
        blocks, weights = _sorted_blocks(codes, shares, part, self.n_blocks)
        seeds = coins.block_seeds(self.n_blocks)
        with data._handed_out():
            return run_blocks(
                called,
                blocks,
                seeds,
                self.arguments_of,
                lambda a: _checked_graph(a, self.max_edges, n_pairs),
                self.n_workers,
                weights,
            )


@dataclass(frozen=True, slots=True, eq=False)
class EdgeVotes(BlockVotes, SumOperator[np.ndarray]):
    """The noisy number of random blocks of records whose graph has an edge, for each edge.

    Parameters
    ----------
    function : str
        Name of a registered block function (:func:`~pgmpy_dp.private.curator.outside_functions.outside_function`),
        which is called as ``function(codes, rng, **arguments_of)`` and returns the block's graph: a tuple of at most
        `max_edges` pair numbers, Python's integers, no two the same. Pair e is that of the positions
        ``np.triu_indices(p, 1)`` at e. Any other answer, and an `Exception`, is a null vote: no edges. Where units
        count by shares it also gets ``weights``, shape (n,): for how much of a record each counts.
    arguments_of : mapping
        Public arguments of the function, of plain immutable values.
    n_blocks : int
        At most 65536. Blocks may be empty.
    max_edges : int
        s: no block's graph has more.
    n_workers : int, optional
        Threads; default: up to 4. The result does not depend on it.
    vouched_for : bool, default False
        Whether `function` may be a callable that is not registered. Its caller then vouches that what it answers on a
        block depends on that block alone, and the release says so (``public["vouched_for"]``).

    Returns
    -------
    ndarray of int64, shape (p(p - 1)/2,)
        Counts; they may be negative.

    Raises
    ------
    MemoryError
        If a block function runs out of memory. As after an interrupt, nothing is released, and the share is spent.
    TypeError, ValueError
        For public arguments that are wrong.

    Notes
    -----
    Privacy
        *Sensitivity.* Each record goes to a block by a uniform draw of its own. Give neighbours the same draws (an
        added record brings its own, a replaced one keeps its draw): under ``add_remove`` and ``replace_one`` one
        block's records differ. A unit of several records has one draw for all of them, so that this is true of units,
        and the guarantee is that of a whole unit; how much its records count, by shares, is a function of that unit
        too. A block's graph is a function of its records and of its own random bits, so one vote changes, null
        included:
        :func:`vote_sensitivity`, m = min(2s, p(p - 1)/2) in l1 and sqrt(m) in l2.

        *Guarantee.* The share s of the cost given the draws, hence on average over them: Laplace noise of scale
        ``m/(s epsilon)`` or Gaussian noise of scale ``sqrt(m/(2 s rho))``.

        *Source.* Dwork, McSherry, Nissim and Smith 2006; Canonne, Kamath and Steinke 2020.

        *Side channels.* While block functions run, no curator of the same data answers. Running time and memory depend
        on the records.

    Examples
    --------
    >>> EdgeVotes.noise_of(10, 8, PureDP(1.0), 1)
    Noise(distribution='discrete_laplace', scale=16.0)
    """

    name = "edge_votes"
    asks = TableFacts
    of_units = True
    moved = staticmethod(lambda p, most: vote_sensitivity(math.comb(p, 2), most))

    def checked(self, facts: TableFacts) -> EdgeVotes:
        return EdgeVotes(*self._checked_fields(facts))

    def _numbers(self, facts: Any) -> tuple[Any, ...]:
        return len(facts.schema), self.max_edges

    def _exact(self, data: PrivateTable, facts: TableFacts, mechanism: AdditiveNoise, coins: Coins) -> list[Sensitive]:
        n_pairs = math.comb(len(facts.schema), 2)
        edges = [edge for vote in self._graphs(data, facts, coins) for edge in vote or ()]
        counts = np.bincount(np.array(edges, dtype=np.intp), minlength=n_pairs).astype(np.int64)
        return [Sensitive(counts, facts.adjacency, *vote_sensitivity(n_pairs, self.max_edges))]


@dataclass(frozen=True, eq=False, repr=False)
class StableMode(Mechanism):
    """The set that most votes are for, if it is far from changing, and how far, with noise.

    Attributes
    ----------
    mode : tuple of int or None
        Positions in `members`; None where all votes are null.
    distance : int
        Votes that have to change before the mode can, exact.
    test : DistanceTest
    members : ndarray
        What the positions stand for, public; one row each.

    Notes
    -----
    Privacy: :mod:`pgmpy_dp.private.noise.distance_test` has the proof, for one changed vote. With a test that was made
    for s epsilon and eta, `draw` costs the share s and eta of the reserve (``proof.md``, section 3).
    """

    mode: tuple[int, ...] | None
    distance: int
    test: DistanceTest
    members: np.ndarray

    name = "distance_test"

    def over(self, exact: Sequence[tuple[int, ...] | None]) -> StableMode:
        """Return a copy with the mode of exact votes."""
        return StableMode(*mode_and_distance(exact), self.test, self.members)

    @property
    def noise(self) -> tuple[Noise | None, ...]:  # type: ignore[override]
        """The noise of the distance; the mode has none."""
        return self.test.noise, None

    def draw(self, rng: np.random.Generator | None) -> list[np.ndarray]:
        """The noisy distance, shape (1,), and the rows of the mode's members: none where it did not pass the test."""
        noisy, mode = released_mode(self.mode, self.distance, self.test, rng)
        return [np.array([noisy]), self.members[list(mode or ())]]


@dataclass(frozen=True, slots=True, eq=False)
class AgreedGraph(BlockVotes, Operator[tuple[int, np.ndarray]]):
    """The graph that most random blocks of records have, if one vote more or less is far from changing it.

    Parameters
    ----------
    function, arguments_of, n_blocks, max_edges, n_workers, vouched_for
        As in :class:`EdgeVotes`; a null vote is for no graph, not even for the one without edges.

    Returns
    -------
    noisy_distance : int
        About how many votes would have to change before the graph can.
    edges : ndarray of int, shape (n_edges, 2)
        Positions of variables; none where `noisy_distance` is below the threshold of :func:`agreement_test`.

    Raises
    ------
    MemoryError, TypeError, ValueError
        As in :class:`EdgeVotes`; ValueError for an eta that is not in (0, 1) or that the reserve does not have.

    Notes
    -----
    Privacy
        *Sensitivity.* As in :class:`EdgeVotes` one vote changes, null included, so the distance moves by at most 1, and
        the graph differs only where it is at most 0 on both sides.

        *Guarantee.* The share of the cost and eta of the reserve, whether or not a graph is released
        (:mod:`pgmpy_dp.private.noise.distance_test`, ``proof.md``, section 3): discrete Laplace noise of scale
        1/epsilon', with epsilon' = s epsilon or sqrt(2 s rho), and a threshold above ln(1/eta)/epsilon'. With pure
        shares it is (s epsilon, eta)-DP.

        *Source.* Dwork and Lei 2009; Vadhan 2017, Proposition 3.4; Zhang, Kamath, Kulkarni and Wu 2020, Lemma 6.1.
    """

    name = "agreed_graph"
    asks = TableFacts
    of_units = True
    can_fail = True

    def checked(self, facts: TableFacts) -> AgreedGraph:
        return AgreedGraph(*self._checked_fields(facts))

    def mechanism(self, facts: TableFacts, cost: PureDP | ZCDP, share: Fraction, eta: Fraction) -> StableMode:
        pairs = np.transpose(np.triu_indices(len(facts.schema), 1))
        return StableMode(None, 0, agreement_test(cost, share, eta), pairs)

    def _exact(self, data: PrivateTable, facts: TableFacts, mechanism: StableMode, coins: Coins) -> list[Vote]:
        return self._graphs(data, facts, coins)

    def answered(self, drawn: list[np.ndarray]) -> tuple[int, np.ndarray]:
        return int(drawn[0][0]), drawn[1]


def _takes_weights(function: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False
    return "weights" in parameters or any(one.kind is one.VAR_KEYWORD for one in parameters.values())


def _sorted_blocks(
    codes: np.ndarray, shares: np.ndarray | None, part: np.ndarray, n_blocks: int
) -> tuple[list[np.ndarray], list[np.ndarray] | None]:
    """The records of each block, in an order that depends on nothing but what they are, and for how much each counts.

    Sums in floating point depend on the order, and that in which an engine hands out its rows may change with one more.
    """
    rows = np.ascontiguousarray(codes)
    order = part
    if len(rows):
        # By part, then by how much a record counts, then by content.
        order = np.argsort(rows.view(f"S{rows.itemsize * rows.shape[1]}").ravel())
        for key in (part,) if shares is None else (shares, part):
            order = order[np.argsort(key[order], kind="stable")]
    ends = np.cumsum(np.bincount(part, minlength=n_blocks))[:-1]
    weights = None if shares is None else np.split(shares[order] / GRID, ends)
    return np.split(rows[order], ends), weights


def _checked_graph(answer: object, most: int, n_pairs: int) -> Vote:
    """A graph as increasing pair numbers; None for anything else than a tuple of so many of Python's integers."""
    if type(answer) is not tuple or len(answer) > most:
        return None
    if any(type(edge) is not int or not 0 <= edge < n_pairs for edge in answer) or len(set(answer)) < len(answer):
        return None
    return tuple(sorted(answer))
