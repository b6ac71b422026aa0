"""The result of a private regression: estimates with standard errors, named and printed as statsmodels' are."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import norm

from pgmpy_dp.checks import checked_number
from pgmpy_dp.learning.display import Shown
from pgmpy_dp.learning.privacy_record import Privacy, require_kind, require_release
from pgmpy_dp.private.sensitive import Release
from pgmpy_dp.shown import aligned, shown

STATUS = {
    "good": "good: intervals hold as they say",
    "weak": "weak: the noise is most of what is uncertain, and intervals may hold somewhat less often than they say; "
    "more budget would narrow them",
    "far": "refused: the model is too far from the records for intervals; ask for more rounds, or learn a better one",
    "few": "refused: too few records have a value of every variable for intervals, or the budget is too small",
}
"""What each status says."""


@dataclass(frozen=True, eq=False, repr=False)
class Kept(Shown):
    """A result that is read from a release, and kept as one.

    Attributes
    ----------
    release_ : Release
    privacy : Privacy
    """

    release_: Release
    privacy: Privacy

    def save(self, path: str | os.PathLike) -> None:
        """Write the release, from which `load` reads the result.

        Parameters
        ----------
        path : str or path
            By custom ``.npz``.
        """
        self.release_.save(os.fspath(path))

    @classmethod
    def load(cls, path: str | os.PathLike, *analysis: int) -> Any:
        """Read a file of :meth:`save`. Nothing in it is executed.

        Parameters
        ----------
        path : str or path
        analysis : int, optional
            Of a regression: which, of several in one release.
        """
        return cls.of(Release.load(os.fspath(path)), *analysis)  # type: ignore[attr-defined]


@dataclass(frozen=True, eq=False, repr=False)
class Regression(Kept):
    """A regression with privacy; ``str`` of it is the table that its users know, with one column more.

    Attributes
    ----------
    formula, family : str
    modelled : str
        What is modelled, in words.
    params : pandas.Series
        Estimates of the coefficients.
    bse : pandas.Series
        Standard errors for the population that the records were drawn from: of sampling and of privacy together. NaN
        where there is no interval: see `status`; and of a logit for a coefficient whose noise alone is above 1, as for
        rare cells and separation.
    bse_noise : pandas.Series
        The part of them that is privacy.
    network_params : pandas.Series
        What the model says without asking again: points, without intervals.
    nobs, nobs_sd : float
        About how many records, or persons whose records count by shares, had a value of every variable, with the
        deviation of the noise.
    status : str
        "good", "weak", "far" or "few": see `STATUS`.
    of_whom : str
        The people that the estimates speak of.
    release_ : Release
    privacy : Privacy
        Of the regression, with the model as its prior.

    Notes
    -----
    Method: one-step estimates around a released model (Le Cam; Newton's step for the records' own score), twice. In
    between, noisy means of products of covariates along the first step correct the model, whose tables blur how they go
    together (:meth:`~pgmpy_dp.models.regression.score_equations.ScoreEquations.with_products`). The covariance is
    ``H^-1 J H^-1/n``, with information and variance of the score under the corrected model, and that of the noise. A
    number counts as the mean of its cell, by what was released of the model's cells; as its middle where they were
    declared; or as declared scores. Coefficients are those of a regression on these.
    """

    formula: str
    family: str
    modelled: str
    params: pd.Series
    bse: pd.Series
    bse_noise: pd.Series
    network_params: pd.Series
    nobs: float
    nobs_sd: float
    status: str
    of_whom: str
    _covariances: tuple[np.ndarray, np.ndarray]

    @classmethod
    def of(cls, release: Release, analysis: int = 0, privacy: Privacy | None = None) -> Regression:
        """Read a regression from a release that was kept.

        Parameters
        ----------
        release : Release
        analysis : int
            Which, of several in one release.
        privacy : Privacy, optional
            Default: what the release says.

        Raises
        ------
        TypeError, ValueError
            For a release of another kind, or one that was interrupted before there was this analysis.
        """
        require_release(release)
        require_kind(release, "regression")
        every = list(release.public["analyses"])
        if not 0 <= analysis < len(every):
            raise ValueError(f"analysis={analysis!r}: the release has {len(every)}; pass a number below that")
        said = every[analysis]
        names = pd.Index(said["names"])
        sampling, noise = np.array(said["cov_sampling"]), np.array(said["cov_noise"])
        none = np.array(said["no_interval"], dtype=bool) | (said["status"] in ("far", "few"))
        error = np.sqrt(np.diag(sampling) + np.diag(noise))
        whose = "a random record of a random unit" if release.public.get("rows_per_unit") == "shares" else "records"
        return cls(
            *(release, Privacy.of(release) if privacy is None else privacy),
            *(said["formula"], said["family"], said["modelled"]),
            pd.Series(said["params"], names),
            pd.Series(np.where(none, np.nan, error), names),
            pd.Series(np.sqrt(np.diag(noise)), names),
            pd.Series(said["network_params"], names),
            *(float(said["n"]), float(said["n_sd"])),
            said["status"],
            f"{whose} with a value of each of {', '.join(map(shown, said['variables']))}",
            (sampling, noise),
        )

    @classmethod
    def every(cls, release: Release, privacy: Privacy | None = None) -> list[Regression]:
        """All analyses of a release; TypeError or ValueError for one of another kind."""
        require_release(release)
        require_kind(release, "regression")
        return [cls.of(release, place, privacy) for place in range(len(release.public["analyses"]))]

    @property
    def tvalues(self) -> pd.Series:
        """Estimates over their standard errors."""
        return self.params / self.bse

    @property
    def pvalues(self) -> pd.Series:
        """Two-sided p-values of the hypothesis that a coefficient is 0, by the normal distribution."""
        return pd.Series(2.0 * norm.sf(np.abs(self.tvalues)), self.params.index)

    def cov_params(self, *, noise: bool = True) -> pd.DataFrame:
        """Covariance of the estimates.

        Parameters
        ----------
        noise : bool
            Whether privacy is in it, and not sampling alone.
        """
        sampling, of_noise = self._covariances
        return pd.DataFrame(sampling + of_noise if noise else sampling, self.params.index, self.params.index)

    def conf_int(self, alpha: float = 0.05, *, of_records: bool = False) -> pd.DataFrame:
        """Intervals of level ``1 - alpha``: the columns 0 and 1 are their ends.

        Parameters
        ----------
        alpha : float in (0, 1)
        of_records : bool
            Whether they are for the records themselves, as of a census: of noise alone. What the model's error leaves
            is not in them, so that they hold less often where there is little noise.
        """
        alpha = checked_number("alpha", alpha, positive=True, below_one=True)
        error = self.bse_noise.where(self.bse.notna()) if of_records else self.bse
        reach = float(norm.isf(alpha / 2)) * error
        return pd.DataFrame({0: self.params - reach, 1: self.params + reach})

    def summary(self, alpha: float = 0.05) -> str:
        """The table of coefficients as text, with what it is of, its status and its guarantee.

        Parameters
        ----------
        alpha : float in (0, 1)
        """
        ends, t, p = self.conf_int(alpha), self.tvalues, self.pvalues
        low, high = f"[{alpha / 2:g}", f"{1 - alpha / 2:g}]"
        weak = self.status != "good"
        head = ["", "coef", "std err", "privacy", "z", "P>|z|", low, high, *(["model"] if weak else [])]
        numbers = [(self.params, 4), (self.bse, 4), (self.bse_noise, 4), (t, 3), (p, 3), (ends[0], 3), (ends[1], 3)]
        numbers += [(self.network_params, 4)] if weak else []
        rows = [head, *([shown(name)] for name in self.params.index)]
        for series, digits in numbers:
            for row, number in zip(rows[1:], series, strict=True):
                row.append(f"{number:.{digits}f}" if math.isfinite(number) else "-")
        what = "Logistic" if self.family == "logit" else "Linear"
        lines = [
            f"{what} regression of {self.modelled}: {shown(self.formula)}",
            f"About {self.nobs:,.0f} of {self.of_whom} (sd of the noise {self.nobs_sd:,.0f})",
            aligned(rows),
            "privacy: the part of the standard error that is noise, not sampling",
            f"Status {STATUS[self.status]}",
        ]
        lines += ["model: what the model says by itself, without an interval"] if weak else []
        if self.status in ("good", "weak") and self.bse.isna().any():
            lines.append(
                "-: noise of more than 1 on the scale of log-odds; a rare cell, or one that decides the response"
            )
        return "\n".join([*lines, f"Spent {self.privacy}"])

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form, for programs."""
        numbers = {"coef": self.params, "bse": self.bse, "bse_noise": self.bse_noise, "model": self.network_params}
        table = pd.DataFrame(numbers).rename_axis("name").astype(object)
        rows = table.where(table.notna(), None).reset_index().to_dict("records")
        facts = {name: getattr(self, name) for name in ("formula", "family", "modelled", "of_whom", "status")}
        told = {"nobs": self.nobs, "nobs_sd": self.nobs_sd, "status_words": STATUS[self.status], **self.privacy.told()}
        return {**facts, **told, "model": self.release_.public["settings"]["model"], "coefficients": rows}

    def __repr__(self) -> str:
        return f"Regression({self.formula!r}, {self.status}; {self.privacy})"

    def __str__(self) -> str:
        return self.summary()
