"""A Wald test of independence of two variables, from one noisy table, with the noise in its covariance."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import chi2

from pgmpy_dp.learning.least_noise import least_noise, noise_for_ledger
from pgmpy_dp.learning.options import Settings
from pgmpy_dp.learning.privacy_record import Privacy, require_kind, require_release
from pgmpy_dp.models.regression.regression_fit import Kept
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.curator.table_curator import TableCurator
from pgmpy_dp.private.data.table import PrivateTable, require_table_and_budget
from pgmpy_dp.private.guarantee import PureDP
from pgmpy_dp.private.operators.tables import Tables
from pgmpy_dp.private.sensitive import Release
from pgmpy_dp.shown import quantity, shown


@dataclass(frozen=True, eq=False, repr=False)
class IndependenceTest(Kept):
    """The test whether two variables are independent among the records that have a value of both.

    Attributes
    ----------
    statistic : float
        Of Wald, chi-squared with `df` degrees of freedom where they are independent.
    df : int
    pvalue : float
    table : pandas.DataFrame
        The noisy table.
    nobs : float
        About how many records it is of.
    noise_sd : float
        Standard deviation of the noise of a cell.
    release_ : Release
    privacy : Privacy

    Notes
    -----
    With counts n_ij, shares r and c of rows and columns, and noise of variance s in each cell, the residuals ``n_ij - n
    r_i c_j`` have the covariance ``n (diag r - r r') x (diag c - c c')`` plus that of the noise, projected as the
    residuals are. The usual chi-squared test, which takes noise for a deviation, rejects nearly always.
    """

    statistic: float
    df: int
    pvalue: float
    table: pd.DataFrame
    nobs: float
    noise_sd: float

    @classmethod
    def of(cls, release: Release, privacy: Privacy | None = None) -> IndependenceTest:
        """Read the test from a release that was kept.

        Parameters
        ----------
        release : Release
        privacy : Privacy, optional
            Default: what the release says.

        Raises
        ------
        TypeError, ValueError
            For a release of another kind.
        """
        require_release(release)
        require_kind(release, "independence")
        said, value = release.public["test"], release["table"]
        assert value.noise is not None
        rows, columns = said["kept"]
        counts, variance = value.array[np.ix_(rows, columns)].astype(float), float(value.noise.variance)
        statistic, df = wald(counts, variance, int(said["rows"]))
        labels = [
            pd.Index([said["states"][k][place] for place in kept], name=said["variables"][k])
            for k, kept in enumerate((rows, columns))
        ]
        return cls(
            *(release, Privacy.of(release) if privacy is None else privacy),
            *(statistic, df, float(chi2.sf(statistic, df)), pd.DataFrame(counts.astype(int), *labels)),
            *(float(counts.sum()), math.sqrt(variance)),
        )

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form, for programs."""
        facts = {name: getattr(self, name) for name in ("statistic", "df", "pvalue", "nobs", "noise_sd")}
        return {**facts, "variables": list(self.release_.public["test"]["variables"]), **self.privacy.told()}

    def __repr__(self) -> str:
        return f"IndependenceTest(p-value {self.pvalue:.3g}; {self.privacy})"

    def __str__(self) -> str:
        first, second = map(shown, self.release_.public["test"]["variables"])
        return "\n".join([
            f"Are {first} and {second} independent? p-value {self.pvalue:.3g}",
            f"Wald statistic {self.statistic:.2f}, chi-squared with {quantity(self.df, 'degree')} of freedom if so",
            f"About {self.nobs:,.0f} records with a value of both; the noise of a cell has sd {self.noise_sd:,.1f}",
            f"Spent {self.privacy}",
        ])  # fmt: skip


def wald(counts: np.ndarray, variance: float, rows: int = 1) -> tuple[float, int]:
    """The statistic of a noisy table and its degrees of freedom.

    Parameters
    ----------
    counts : ndarray of shape (r, c)
    variance : float
        Of the noise of a cell.
    rows : int
        Records of a unit, which may all be alike.

    Examples
    --------
    >>> [round(value, 2) for value in wald(np.array([[30.0, 20.0], [20.0, 30.0]]), 0.0)]
    [4.0, 1]
    >>> round(wald(np.array([[30.0, 20.0], [20.0, 30.0]]), 9.0)[0], 2)
    2.94
    """
    n = max(float(counts.sum()), 1.0)
    shares = [np.maximum(counts.sum(axis=axis), 0.5) for axis in (1, 0)]
    r, c = (share / share.sum() for share in shares)
    residual = counts - counts.sum() * np.outer(r, c)
    first, second = (np.eye(len(share)) - np.outer(share, np.ones(len(share))) for share in (r, c))
    sampling = n * rows * np.kron(np.diag(r) - np.outer(r, r), np.diag(c) - np.outer(c, c))
    covariance = sampling + variance * np.kron(first @ first.T, second @ second.T)
    df = (len(r) - 1) * (len(c) - 1)
    values, vectors = np.linalg.eigh(covariance)
    along = vectors[:, -df:].T @ residual.ravel()
    return float((along**2 / values[-df:]).sum()), df


def run(
    table: PrivateTable,
    variables: tuple[Hashable, Hashable],
    kept: Sequence[list[int]],
    settings: Settings,
    budget: Budget,
    merged: tuple[Any, Mapping] | None,
    facts: Mapping[str, Any],
) -> Release:
    """Release the table of two variables, of which the states with a value are tested.

    Returns
    -------
    Release
        ``kind="independence"``.

    Notes
    -----
    Privacy: one table, :class:`~pgmpy_dp.private.operators.tables.Tables`, for the whole budget.
    """
    unit_budget = require_table_and_budget(table, budget)
    law = noise_for_ledger("auto", budget, table)
    cost = least_noise(lambda cost: [*Tables.planned(1, table.adjacency, cost, 1).noise], [1], unit_budget, law)  # type: ignore[arg-type]
    curator = TableCurator(
        table,
        unit_budget,
        what="a test of independence",
        columns=variables,
        pure=isinstance(cost, PureDP),
        random_state=settings.random_state,
        fine=True,
    )
    if merged is not None:
        curator.merge(*merged)
    curator.ask(Tables([variables]), 1)
    states = [[str(state) for state in curator.facts.schema.states[name]] for name in variables]
    test = {"variables": [*map(str, variables)], "states": states, "kept": kept, "rows": unit_budget.rows}
    return curator.release("independence", {**facts, "test": test}, curator.called("table"))
