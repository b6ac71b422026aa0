"""Which of several scores is the largest, privately: report noisy max."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from pgmpy_dp.private.noise import samplers

__all__ = ["MEASURES", "noisy_max"]

MEASURES = ("zcdp", "pure")


def noisy_max(scores: np.ndarray, scale: float, measure: str, seed: np.random.Generator | None = None) -> int:
    """Position of the largest score after adding independent noise to each.

    Parameters
    ----------
    scores : ndarray of int64, shape (m,)
    scale : float
        Positive, finite: of the noise.
    measure : {"zcdp", "pure"}
        Gumbel noise, which selects c with probability proportional to ``exp(scores[c]/scale)``, or exponential noise.
    seed : numpy.random.Generator, optional
        For tests and benchmarks only: draw from this generator in floating point, **not privately**.

    Returns
    -------
    int

    Raises
    ------
    ValueError
        If there are no scores, or for another measure.

    Notes
    -----
    Privacy
        *Sensitivity.* D: no score moves by more between neighbours, in either direction, and different scores may move
        in opposite ones.

        *Guarantee.* Gumbel noise: the exponential mechanism with epsilon = 2 D/scale, whose log-likelihood ratio has a
        range of epsilon, so ``(2 D/scale)**2/8 = D**2/(2 scale**2)``-zCDP: the formula of a Gaussian of scale `scale`.
        Exponential noise: (2 D/scale)-DP.

        *Source.* McSherry and Talwar 2007; Cesar and Rogers 2021, Lemma 3.4 of the bounded range; McKenna and Sheldon
        2020, for exponential noise, which is the permute-and-flip mechanism (Ding et al. 2021).

    Examples
    --------
    >>> noisy_max(np.array([0, 10**6, 3]), 1.0, "zcdp")
    1
    """
    scores = np.asarray(scores, dtype=np.int64)
    if measure not in MEASURES:
        raise ValueError(f"measure={measure!r} is not supported; use one of {MEASURES}")
    if scores.ndim != 1 or not scores.size:
        raise ValueError(f"scores has shape {scores.shape}; pass a vector of at least one score")
    if seed is not None:
        noise = seed.gumbel(size=scores.size) if measure == "zcdp" else seed.exponential(size=scores.size)
        return int(np.argmax(scores + scale * noise))
    return int(_measurement(float(scale), measure)(scores.tolist()))


@lru_cache(maxsize=16)
def _measurement(scale: float, measure: str) -> Any:
    return samplers.selection_measurement(scale, pure=measure == "pure")
