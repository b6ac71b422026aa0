"""Broken copies of this package, each our code but for one line, and the attack that is to catch it.

A mutant is a case of :func:`pgmpy_dp.auditing.catalogue` run with a patch. The kinds are the mistakes that have been
made in published mechanisms and libraries: half the noise, the sensitivity of the other adjacency, rows that are not
clipped, a domain taken from the records, a threshold that was forgotten, noise from a seed, one-sided Wishart noise,
Laplace noise of the published scale in a noisy maximum, and spending more than is charged.
"""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd

from pgmpy_dp.auditing import AuditReport, Neighbours, audit, catalogue, release_features
from pgmpy_dp.fields.operators import vote_operators
from pgmpy_dp.learning import collective_base
from pgmpy_dp.mixtures.operators import block_operators
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.curator import charged_base as curator
from pgmpy_dp.private.curator import mechanism
from pgmpy_dp.private.data import contingency, moments, table
from pgmpy_dp.private.guarantee import Guarantee, PureDP
from pgmpy_dp.private.ledger import Ledger
from pgmpy_dp.private.noise import additive, distance_test, histogram, matrix, samplers
from pgmpy_dp.private.operators import tables
from pgmpy_dp.schema import Schema

__all__ = ["KINDS", "MUTANTS", "Mutant"]

Patch = Callable[[], Any]  # a context manager

KINDS = (
    "half the noise",
    "sensitivity of the other adjacency",
    "unclipped rows",
    "inferred domain",
    "forgotten threshold",
    "seeded noise",
    "one-sided Wishart",
    "Laplace noisy maximum at the published scale",
    "spends more than it charges",
)


@dataclass(frozen=True, eq=False)
class Mutant:
    """One broken copy.

    Parameters
    ----------
    kind : str
        One of `KINDS`.
    case : str
        Of the catalogue: what is broken, and the attack.
    patch : callable
        Without arguments: a context manager in which the package is broken.
    trials : int
        Enough to catch it but with a probability below 1e-6, see ``benchmarks/results/audits.md``.
    neighbours : callable, optional
        Others than the case's, for mistakes that those do not show.
    features : callable, optional
    what : str
        Which line is broken.
    """

    kind: str
    case: str
    patch: Patch
    trials: int
    what: str
    neighbours: Callable[[], Neighbours] | None = None
    features: Callable[[Any], np.ndarray] | None = None

    @property
    def name(self) -> str:
        return f"{self.kind}: {self.case}"

    def run(self, confidence: float = 0.99, broken: bool = True) -> AuditReport:
        """The attack on the broken copy, or on the whole one with the same trials.

        The claim is what the ledger was charged in a release of its own, or the case's where there is no ledger.
        """
        case = catalogue()[self.case]
        neighbours = (self.neighbours or case.neighbours)()
        with warnings.catch_warnings(), self.patch() if broken else ExitStack():
            warnings.simplefilter("ignore", samplers.ReproducibleNoiseWarning)
            claim = _charged(case.mechanism(neighbours.first), case.claim)
            report = audit(
                case.mechanism,
                neighbours,
                claim,
                trials=self.trials,
                confidence=confidence,
                features=self.features or case.features,
            )
        return dataclasses.replace(report, name=self.name)


def _charged(output: Any, claim: Guarantee) -> Guarantee:
    privacy = getattr(output, "privacy_", None)
    return claim if privacy is None else privacy.entries[-1].cost


def _replaced(module: Any, **changes: Any) -> Patch:
    """A patch of names of a module."""
    return partial(mock.patch.multiple, module, **changes)


# -- half the noise ---------------------------------------------------------------------------------------------------


def _halved(function: Callable) -> Callable:
    return lambda *args, **kwargs: tuple(scale / 2 for scale in function(*args, **kwargs))


# -- the other adjacency ----------------------------------------------------------------------------------------------


def _other_table_sensitivity(adjacency: Adjacency, true: Callable = contingency.table_sensitivity) -> tuple:
    return true(Adjacency.ADD_REMOVE)


@contextmanager
def _other_adjacency() -> Iterator[None]:
    """Where the noise is planned, and in what the exact tables say of themselves."""
    with (
        mock.patch.object(tables, "table_sensitivity", _other_table_sensitivity),
        mock.patch.object(table, "table_sensitivity", _other_table_sensitivity),
    ):
        yield


# -- unclipped rows ---------------------------------------------------------------------------------------------------


def _unclipped(rows: np.ndarray, center: np.ndarray, bound: float, share: Any = 1.0) -> np.ndarray:
    return np.trunc((rows - center) / bound * moments.GRID * share)


# -- a domain taken from the records ----------------------------------------------------------------------------------


def _inferred(estimator: Any, data: Any, *_whose: Any) -> tuple[Schema, None]:
    return Schema.coerce({name: sorted(set(data[name])) for name in data.columns}), None


def _a_state_of_its_own() -> Neighbours:
    """One record is the only one with its state."""
    first, second = (pd.DataFrame({"a": a, "b": [0, 1, 1]}).astype(object) for a in ([0, 1, 1], [0, 1, 2]))
    return Neighbours(first, second, "replace_one", "tables of 3 records, one with a state of its own")


def first_cells(estimator: Any) -> np.ndarray:
    """How many cells were released, and the first four of them."""
    cells = release_features(estimator)
    return np.concatenate([[len(cells)], cells[:4], np.zeros(max(0, 4 - len(cells)))])


# -- thresholds, seeds, selections, charges ---------------------------------------------------------------------------


def _without_threshold(*args: Any, true: Callable = histogram.stability_histogram) -> Any:
    return dataclasses.replace(true(*args), threshold=-(10**9))


def _always_released(
    mode: Any, distance: int, test: Any, rng: Any, true: Callable = distance_test.released_mode
) -> tuple[int, Any]:
    return true(mode, distance, test, rng)[0], mode


def _seed_of_zero(random_state: Any) -> np.random.Generator:
    return np.random.default_rng(0)


def _one_sided(noise: Any, rng: Any) -> np.ndarray:
    d = noise.n_columns
    factor = matrix.standard_normals(d * (d + 1), rng).reshape(d, d + 1)
    return noise.scale * (factor @ factor.T)


def _published_scale(linf: float, cost: PureDP, share: Fraction) -> float:
    return linf / (float(share) * cost.epsilon)


def _laplace_argmax(rows: Any, scale: float, *, rng: Any = None) -> np.ndarray:
    fresh = np.random.default_rng()
    return np.array([np.argmax(row + fresh.laplace(scale=scale, size=len(row))) for row in rows])


@contextmanager
def _published_noisy_maximum() -> Iterator[None]:
    with (
        mock.patch.object(mechanism, "selection_scale", _published_scale),
        mock.patch.object(samplers, "exponential_argmax", _laplace_argmax),
    ):
        yield


@contextmanager
def _no_clipping() -> Iterator[None]:
    """The comparison of the norms in integers is left out too: it would count such a record as none."""
    with mock.patch.object(moments, "clipped_integers", _unclipped), mock.patch.object(moments, "TRACE", math.inf):
        yield


def _whole_shares(count: int, weights: Any) -> list[Fraction]:
    return [Fraction(1)] * count


@contextmanager
def _quarter_charged() -> Iterator[None]:
    true = Ledger.charge

    def charge(self: Ledger, cost: PureDP, **entry: Any) -> Any:
        return true(self, PureDP(cost.epsilon / 4), **entry)

    with mock.patch.object(Ledger, "charge", charge):
        yield


MUTANTS = [
    Mutant(
        KINDS[0],
        "NaiveMLE(epsilon, replace_one)",
        _replaced(additive, laplace_scales=_halved(additive.laplace_scales)),
        800,
        "Laplace scales, noise/additive.py",
    ),
    Mutant(
        KINDS[0],
        "NaiveMLE(rho, add_remove)",
        _replaced(additive, gaussian_scales=_halved(additive.gaussian_scales)),
        400,
        "Gaussian scales, noise/additive.py",
    ),
    Mutant(
        KINDS[1],
        "NaiveMLE(epsilon, replace_one)",
        _other_adjacency,
        800,
        "sensitivity of a table, data/contingency.py",
    ),
    Mutant(
        KINDS[2],
        "PrivateGraphicalLasso(epsilon, add_remove, d=2)",
        _no_clipping,
        100,
        "clipping of records, data/moments.py",
    ),
    Mutant(
        KINDS[3],
        "NaiveMLE(epsilon, replace_one)",
        _replaced(collective_base, schema_and_table=_inferred),
        100,
        "states from the records, learning/collective_base.py",
        _a_state_of_its_own,
        first_cells,
    ),
    Mutant(
        KINDS[4],
        "StableStructure(delta, add_remove)",
        _replaced(vote_operators, released_mode=_always_released),
        100,
        "distance test, noise/distance_test.py",
    ),
    Mutant(
        KINDS[4],
        "stability_histogram",
        _replaced(block_operators, stability_histogram=_without_threshold),
        100,
        "threshold of cells, noise/histogram.py",
    ),
    Mutant(
        KINDS[5],
        "NaiveMLE(rho, replace_one)",
        _replaced(curator, seeded_generator=_seed_of_zero),
        100,
        "a seed of 0, noise/samplers.py",
    ),
    Mutant(
        KINDS[6],
        "PrivateGraphicalLasso(epsilon, add_remove, d=1)",
        partial(mock.patch.dict, matrix._MATRICES, {"double-wishart": _one_sided}),
        800,
        "second Wishart matrix, noise/matrix.py",
    ),
    Mutant(KINDS[7], "noisy_argmax(2-DP)", _published_noisy_maximum, 5000, "noisy maximum, curator/mechanism.py"),
    Mutant(
        KINDS[8],
        "NaiveMLE(epsilon, add_remove, two tables)",
        _replaced(additive, _shares=_whole_shares),
        800,
        "every table takes all of epsilon, noise/additive.py",
    ),
    Mutant(
        KINDS[8],
        "NaiveMLE(epsilon, add_remove)",
        _quarter_charged,
        800,
        "a quarter is charged, ledger.py",
    ),
]
