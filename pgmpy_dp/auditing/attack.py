"""Telling two datasets apart by the releases of a mechanism, and what that says about its privacy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from tqdm.auto import tqdm

from pgmpy_dp.auditing.bounds import (
    claimed_value,
    guarantee_bound,
    lower_limit,
    lower_limits,
    upper_limit,
    upper_limits,
)
from pgmpy_dp.auditing.neighbours import Neighbours
from pgmpy_dp.auditing.scores import Score, learned_scores
from pgmpy_dp.pgmpy_config import bar_options, bars_shown
from pgmpy_dp.private.guarantee import ZCDP, Guarantee
from pgmpy_dp.private.sensitive import Release

Mechanism = Callable[[Any], Any]


@dataclass(frozen=True)
class Event:
    """One event that was measured: the score is at least, or at most, a threshold.

    Attributes
    ----------
    threshold : float
    above : bool
        Whether the event is a score at or above the threshold, and its probability p that on the first dataset;
        otherwise at or below, on the second.
    hits : tuple of two int
        How often it occurred, on the dataset of p and on the other one.
    trials : int
        On each dataset.
    p, q : float
        Confidence limits: p from below, q from above.

    Examples
    --------
    >>> event = Event(threshold=0.5, above=True, hits=(90, 10), trials=100, p=0.8, q=0.2)
    >>> event.p > event.q  # it tells the datasets apart
    True
    """

    threshold: float
    above: bool
    hits: tuple[int, int]
    trials: int
    p: float
    q: float


@dataclass(frozen=True, eq=False)
class AuditReport:
    """The outcome of an audit.

    Attributes
    ----------
    guarantee : PureDP, ZCDP or ApproxDP
        The claim that was attacked.
    bound : float
        Lower bound on the epsilon (at the claim's delta) or the rho that the mechanism really has.
    confidence : float
        If the claim is true, `bound` exceeds it with probability at most ``1 - confidence``.
    event : Event
        Which event shows it.
    adjacency : str
    note : str
        The neighbours.
    scores : tuple of two ndarrays, shape (trials,)
        Of the measured releases on the first and the second dataset, for pictures.
    name : str
        Of a case of :func:`pgmpy_dp.auditing.catalogue`.

    Examples
    --------
    >>> import numpy as np
    >>> from pgmpy_dp.auditing import audit, table_neighbours
    >>> from pgmpy_dp.private.guarantee import PureDP
    >>> neighbours = table_neighbours({"a": [0, 1]})
    >>> report = audit(lambda frame: np.array([len(frame)]), neighbours, PureDP(1.0), trials=200)
    >>> report.holds, report.bound > 1
    (False, True)
    """

    guarantee: Guarantee
    bound: float
    confidence: float
    event: Event
    adjacency: str
    note: str
    scores: tuple[np.ndarray, np.ndarray]
    name: str = ""

    @property
    def holds(self) -> bool:
        """Whether the claim survived: the bound does not exceed it. It is no proof that the claim is true."""
        return self.bound <= claimed_value(self.guarantee)

    @property
    def tightness(self) -> float:
        """The bound as a share of the claim: how much of what is allowed the attack could show."""
        return self.bound / claimed_value(self.guarantee)

    def plot(self, ax: Any = None) -> Any:
        """The distributions of the two datasets' scores, and the event that was measured; see :func:`plot_audit`.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        matplotlib.axes.Axes
        """
        from pgmpy_dp.auditing.picture import plot_audit

        return plot_audit(self, ax)

    def __str__(self) -> str:
        symbol = "rho" if isinstance(self.guarantee, ZCDP) else "epsilon"
        verdict = "holds so far" if self.holds else "IS BROKEN"
        return (
            f"{self.guarantee} under {self.adjacency} {verdict}: {symbol} >= {self.bound:.3g} at {self.confidence:.4g} "
            f"confidence, {self.event.trials} releases on each of two {self.note or 'datasets'}"
        )


def audit(
    mechanism: Mechanism,
    neighbours: Neighbours,
    guarantee: Guarantee,
    *,
    trials: int = 1000,
    confidence: float = 0.99,
    n_events: int = 3,
    features: Callable[[Any], np.ndarray] | None = None,
    score: Score | None = None,
) -> AuditReport:
    """Attack a mechanism on two neighbouring datasets.

    Parameters
    ----------
    mechanism : callable
        Takes a dataset, returns what is released: a `Release`, a fitted estimator with a ``release_``, an array or a
        number. It must draw new randomness at each call, so without a `random_state`.
    neighbours : Neighbours
    guarantee : PureDP, ZCDP or ApproxDP
        The claim, under the neighbours' adjacency.
    trials : int
        Releases on each dataset for the measurement; half as many more choose what to measure.
    confidence : float
        In (0, 1).
    n_events : int
        How many of the most promising events are measured, at least 1.
    features : callable, optional
        From what `mechanism` returns to an array of one shape. Default: :func:`release_features`.
    score : callable, optional
        From features, shape (releases, n_features), to scores that are high where the first dataset is more likely. The
        log-likelihood ratio is best, where it is known. Default: learned on the releases that choose the event, linear
        discriminant and each single feature.

    Returns
    -------
    AuditReport

    Raises
    ------
    ValueError
        If the arguments are out of range, or the outputs have features of different shapes.

    Notes
    -----
    The events are chosen on other releases than they are measured on, so that their choice, among thousands, costs no
    confidence. Each of the two Clopper-Pearson limits of each of the `n_events` measured ones has
    ``(1 - confidence)/(2 n_events)`` of it (Bonferroni), and the largest of their bounds is reported.

    Examples
    --------
    >>> from pgmpy_dp.auditing import table_neighbours
    >>> from pgmpy_dp.private.guarantee import PureDP
    >>> rng = np.random.default_rng(0)
    >>> def mechanism(frame):  # the number of records with noise of 1-DP
    ...     return len(frame) + rng.laplace(scale=1.0)
    >>> report = audit(mechanism, table_neighbours({"a": [0, 1]}), PureDP(1.0), trials=500)
    >>> report.holds, report.bound > 0.3
    (True, True)
    """
    _check(trials, confidence, n_events)
    read = release_features if features is None else features
    total = 2 * (trials + trials // 2)
    with tqdm(total=total, desc="audit", disable=not bars_shown(), leave=False, **bar_options()) as progress:

        def draw(dataset: int, count: int) -> np.ndarray:
            results = []
            for _ in range(count):
                results.append(np.asarray(read(mechanism(neighbours[dataset])), dtype=np.float64).ravel())
                progress.update()
            if len({result.shape for result in results}) > 1:
                raise ValueError(
                    "features have different shapes in different releases; pass a function `features` whose result has "
                    "one shape, e.g. with zeros for tables that were not released"
                )
            return np.array(results)

        return audit_scores(draw, score, neighbours, guarantee, trials=trials, confidence=confidence, n_events=n_events)


def audit_scores(
    draw: Callable[[int, int], np.ndarray],
    score: Score | None,
    neighbours: Neighbours,
    guarantee: Guarantee,
    *,
    trials: int,
    confidence: float,
    n_events: int = 3,
) -> AuditReport:
    """The same as :func:`audit`, for mechanisms of which many releases can be drawn at once.

    Parameters
    ----------
    draw : callable
        ``draw(dataset, count)``: features of independent releases on dataset 0 or 1, shape (count, n_features).
    score, neighbours, guarantee, trials, confidence, n_events
        As there.

    Returns
    -------
    AuditReport

    Raises
    ------
    ValueError
        If the arguments are out of range.

    Examples
    --------
    >>> from pgmpy_dp.auditing import table_neighbours
    >>> from pgmpy_dp.private.guarantee import PureDP
    >>> rng = np.random.default_rng(0)
    >>> def draw(dataset, count):  # noisy numbers of records: 20, and 19 without one
    ...     return 20 - dataset + rng.laplace(scale=1.0, size=(count, 1))
    >>> audit_scores(draw, None, table_neighbours({"a": [0, 1]}), PureDP(1.0), trials=500, confidence=0.99).holds
    True
    """
    _check(trials, confidence, n_events)
    alarm = (1.0 - confidence) / n_events  # of each event
    rehearsal = [draw(dataset, max(trials // 2, 1)) for dataset in (0, 1)]
    candidates = [score] if score is not None else list(learned_scores(*rehearsal))
    promising = [
        (*_best_threshold([candidate(part) for part in rehearsal], above, guarantee, alarm), above, candidate)
        for candidate in candidates
        for above in (True, False)
    ]
    promising = sorted(promising, key=lambda item: -item[0])[:n_events]
    fresh = [draw(dataset, trials) for dataset in (0, 1)]
    best: AuditReport | None = None
    for _, threshold, above, chosen in promising:
        scores = [chosen(part) for part in fresh]
        event = _measured(scores, threshold, above, alarm)
        bound = guarantee_bound(guarantee, event.p, event.q)
        if best is None or bound > best.bound:
            told = (scores[0], scores[1])
            adjacency = str(neighbours.adjacency)
            best = AuditReport(guarantee, bound, confidence, event, adjacency, neighbours.note, told)
    assert best is not None
    return best


def release_features(output: Any) -> np.ndarray:
    """Everything that a release says in numbers, in one row.

    Parameters
    ----------
    output : Release, fitted estimator with a ``release_``, array of any shape, or number

    Returns
    -------
    ndarray of float64, one axis

    Examples
    --------
    >>> release_features(np.array([[3, 1], [0, 2]]))
    array([3., 1., 0., 2.])
    """
    release = getattr(output, "release_", output)
    values = release.values if isinstance(release, Release) else (release,)
    return np.concatenate([np.asarray(value, dtype=np.float64).ravel() for value in values])


def _check(trials: int, confidence: float, n_events: int) -> None:
    if trials < 2 or not 0 < confidence < 1 or n_events < 1:
        raise ValueError(
            f"trials={trials!r}, confidence={confidence!r}, n_events={n_events!r}: pass trials of at least 2, "
            "confidence in (0, 1), n_events of at least 1"
        )


def _best_threshold(scores: list[np.ndarray], above: bool, guarantee: Guarantee, alarm: float) -> tuple[float, float]:
    """The most that a threshold of these scores shows, and which one, among their percentiles."""
    thresholds = np.unique(np.quantile(np.concatenate(scores), np.linspace(0, 1, 101), method="nearest"))
    ordered = [np.sort(part) for part in (scores if above else scores[::-1])]
    trials = len(ordered[0])
    if above:
        hits = [trials - np.searchsorted(part, thresholds, side="left") for part in ordered]
    else:
        hits = [np.searchsorted(part, thresholds, side="right") for part in ordered]
    # Limits are computed for all at once: one at a time they would take longer than many a mechanism.
    pairs, first = np.unique(np.stack(hits), axis=1, return_index=True)
    p, q = lower_limits(pairs[0], trials, alarm / 2), upper_limits(pairs[1], trials, alarm / 2)
    bounds = [guarantee_bound(guarantee, *limits) for limits in zip(p.tolist(), q.tolist(), strict=True)]
    best = int(np.argmax(bounds))
    return bounds[best], float(thresholds[first[best]])


def _measured(scores: list[np.ndarray], threshold: float, above: bool, alarm: float) -> Event:
    """The event with its limits, which hold together except with probability `alarm`."""
    hits = [int((s >= threshold).sum() if above else (s <= threshold).sum()) for s in scores]
    if not above:
        hits.reverse()
    trials = len(scores[0])
    p, q = lower_limit(hits[0], trials, alarm / 2), upper_limit(hits[1], trials, alarm / 2)
    return Event(threshold, above, (hits[0], hits[1]), trials, p, q)
