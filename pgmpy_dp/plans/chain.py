"""Noisy initial and transition counts of users' sequences: the sufficient statistics of a time-homogeneous chain."""

from __future__ import annotations

from dataclasses import dataclass, field

from pgmpy_dp.plans.least_noise import NOISES, least_noise
from pgmpy_dp.plans.settings import SeededSettings, one_of, share, whole
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.curator.sequences import SequenceCurator, pair_table_noise, user_additions
from pgmpy_dp.private.data.sequences import PrivateSequences
from pgmpy_dp.private.data.subject import require_data_and_budget
from pgmpy_dp.private.guarantee import PureDP
from pgmpy_dp.private.sensitive import Release

__all__ = ["ChainSettings", "run"]


@dataclass(frozen=True)
class ChainSettings(SeededSettings):
    """What to release, fixed before the records are looked at.

    Parameters
    ----------
    segment_length : int, optional
        Visits in a segment, at least 2. Default: each sequence is one segment.
    max_segments : int, optional
        Count at most this many segments of each user, chosen at random; needs `segment_length`. Default: each user is
        counted as a share of 1 in each table, split over what it did.
    initial_share : float in (0, 1), default 0.25
        Share of the budget (of epsilon or rho) that the table of initial states gets. It has K cells where the
        transitions have K**2, so the transitions need more.
    noise : {"auto", "laplace", "gaussian"}, default "auto"
        As in :class:`~pgmpy_dp.plans.marginals.MarginalSettings`.

    Raises
    ------
    TypeError, ValueError
        For arguments that are wrong whatever the data.
    """

    segment_length: int | None = field(default=None, metadata=whole(2))
    max_segments: int | None = field(default=None, metadata=whole(1))
    initial_share: float = field(default=0.25, metadata=share())
    noise: str = field(default="auto", metadata=one_of(NOISES))

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_segments is not None and self.segment_length is None:
            raise ValueError(
                f"max_segments={self.max_segments!r} without segment_length: a segment of any length could hold "
                "any number of pairs; pass segment_length, or max_segments=None to count users by shares"
            )

    @property
    def units(self) -> tuple[int, int]:
        """The most that one user adds to each table, in the integers of the release."""
        return user_additions(self.segment_length, self.max_segments)


def run(data: PrivateSequences, settings: ChainSettings, budget: Budget) -> Release:
    """Release noisy counts of initial states and of transitions.

    Parameters
    ----------
    data : PrivateSequences
    settings : ChainSettings
    budget : Budget
        What this release spends. It is charged to the ledger of `data` before anything is counted.

    Returns
    -------
    Release
        ``kind="chain"``; ``values`` are the initial table, shape (K,), and the transitions (from, to), shape (K, K).
        ``public["units"]`` has what one user adds to each at most: dividing by it gives tables in users.

    Raises
    ------
    BudgetExceeded
        If the ledger does not have the budget left; it stays as it was.
    TypeError, ValueError
        For arguments that cannot be used, and a ledger that protects another unit; before the charge.

    Notes
    -----
    Privacy
        *Unit.* A user: all rows with one value of the column ``data.unit``.

        *Guarantee.* The budget goes to one request for both tables,
        :meth:`~pgmpy_dp.private.curator.sequences.SequenceCurator.pair_tables`, which has their sensitivities. With
        M_c the most that a user adds to table c (`ChainSettings.units`) and s_1 + s_2 = 1: Laplace noise of scale
        ``(1 or 2) M_c/(s_c epsilon)``, epsilon-DP, or Gaussian noise of scale ``M_c sqrt((1 or 2)/(2 s_c rho))``,
        rho-zCDP.

        *Source.* Dwork, McSherry, Nissim and Smith 2006; Canonne, Kamath and Steinke 2020; the shares: Bernstein et al.
        2017, section 4.2, after He et al. 2015.

        *Side channels.* Refusals, shapes and the kind of noise depend on public arguments only. Running time depends on
        the number of visits.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"user": [1, 1, 2], "sequence": ["a b b", "a", "b a"]})
    >>> data = PrivateSequences(frame, {"page": ["a", "b"]}, ledger=Budget(epsilon=1.0))
    >>> release = run(data, ChainSettings(), Budget(epsilon=0.5))
    >>> [value.shape for value in release.values], str(release.guarantee), str(data.ledger.left)
    ([(2,), (2, 2)], '0.5-DP', '0.5-DP')
    """
    require_data_and_budget(data, PrivateSequences, budget)
    (variable,) = data.schema.variables
    weights = (settings.initial_share, 1.0 - settings.initial_share)
    k = data.schema.cardinality(variable)
    cost = least_noise(
        lambda cost: pair_table_noise(settings.units, data.adjacency, cost, 1, weights),
        [k, k * k],
        budget,
        settings.noise,
    )
    curator = SequenceCurator(
        data,
        Budget(epsilon=cost.epsilon) if isinstance(cost, PureDP) else budget,
        what="initial and transition tables",
        random_state=settings.random_state,
    )
    curator.pair_tables(1, weights, settings.segment_length, settings.max_segments)
    return curator.release(
        "chain",
        {
            "units": list(settings.units),
            "settings": settings.public(budget, "segment_length", "max_segments", "initial_share", "noise"),
        },
    )
