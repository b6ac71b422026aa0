"""Communities from released numbers: pure functions of noisy sums over neighbours, or of a noisy matrix.

Labels are written as *marks*, shape (n, 1) with signs +1 and -1 for two communities, or (n, k) with one 1 in each row
for more. A row has l1 norm 1 in both forms.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse.linalg
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from pgmpy_dp.private.silence import silence


def random_labels(n: int, k: int, rng: np.random.Generator) -> np.ndarray:
    """Independent uniform labels, shape (n,)."""
    return rng.integers(k, size=n)


def marks_of(labels: np.ndarray, k: int) -> np.ndarray:
    """Marks of labels in 0 .. k-1, int32: label 0 is +1 where there are two.

    Examples
    --------
    >>> marks_of(np.array([0, 1, 1]), 2).ravel().tolist(), marks_of(np.array([2, 0]), 3).tolist()
    ([1, -1, -1], [[0, 0, 1], [1, 0, 0]])
    """
    labels = np.asarray(labels)
    if k == 2:
        return (1 - 2 * labels).astype(np.int32)[:, None]
    return (labels[:, None] == np.arange(k)).astype(np.int32)


def labels_of(sums: np.ndarray) -> np.ndarray:
    """The label that the sums of each row favour; ties go to the smaller one.

    Examples
    --------
    >>> labels_of(np.array([[0.5], [-2.0], [0.0]])).tolist(), labels_of(np.array([[0.0, 2.0, 1.0]])).tolist()
    ([0, 1, 0], [1])
    """
    return (sums[:, 0] < 0).astype(np.int64) if sums.shape[1] == 1 else sums.argmax(axis=1)


def community_scores(sums: np.ndarray) -> np.ndarray:
    """The scores of each label, shape (n, k): for two communities, half the sum and its negative."""
    return np.hstack([sums, -sums]) / 2.0 if sums.shape[1] == 1 else np.asarray(sums, dtype=float)


def expected_degrees(noisy: np.ndarray, variance: float, mean: float) -> np.ndarray:
    """Degrees from noisy ones, drawn towards their mean by as much of their variance as chance explains.

    Parameters
    ----------
    noisy : ndarray, shape (n,)
        Degrees plus noise.
    variance : float
        Of the noise of each.
    mean : float
        Average degree.

    Returns
    -------
    ndarray, shape (n,)
        All equal where the noisy degrees vary as those of a homogeneous graph (whose variance is about their mean) with
        noise do. At least a tenth of the mean.

    Examples
    --------
    >>> expected_degrees(np.array([3.0, 5.0, 4.0]), 1.0, 4.0).tolist()
    [4.0, 4.0, 4.0]
    """
    total = float(np.var(noisy))
    kept = max(0.0, total - variance - mean) / total if total > 0.0 else 0.0
    return np.maximum(mean + kept * (noisy - np.mean(noisy)), 0.1 * mean)


def balanced(sums: np.ndarray, marks: np.ndarray, degrees: float | np.ndarray) -> np.ndarray:
    """Sums over neighbours less what a graph of these degrees, without communities, has of them.

    Parameters
    ----------
    sums : ndarray, shape (n, columns)
        ``A U`` plus noise.
    marks : ndarray, shape (n, columns)
        U.
    degrees : float or ndarray of shape (n,)
        w: the pair i, j has an edge with probability ``w_i w_j/(sum of w)``, d/n where all are d.
    """
    w = np.broadcast_to(np.asarray(degrees, dtype=float), (len(marks),))[:, None]
    total = float(w.sum())
    return sums - w * ((w * marks).sum(axis=0) - w * marks) / total if total > 0.0 else np.asarray(sums, dtype=float)


def centred_answers(answers: np.ndarray, rate: float, degree: float | None) -> tuple[np.ndarray, np.ndarray]:
    """Answers of all pairs, unbiased, less those of a graph without communities; and the degrees of that graph.

    Parameters
    ----------
    answers : ndarray of bool, shape (n, n)
        Symmetric bits, of which each was flipped with probability `rate`.
    rate : float
        At most 1/2.
    degree : float or None
        Of all vertices; None: those of the answers (:func:`expected_degrees`).

    Returns
    -------
    matrix : ndarray of float32, shape (n, n)
        ``(B - p)/(1 - 2p) - w w'/(sum of w)``, with a diagonal of 0.
    degrees : ndarray, shape (n,)
        w.
    """
    n = len(answers)
    told = max(1.0 - 2.0 * rate, 1e-9)  # at rate 1/2 the answers say nothing
    matrix = answers.astype(np.float32)
    matrix -= np.float32(rate)
    matrix /= np.float32(told)
    np.fill_diagonal(matrix, 0.0)
    if degree is None:
        noisy = matrix.sum(axis=1, dtype=np.float64)
        mean = float(np.clip(noisy.mean(), 0.0, n - 1.0))
        degrees = expected_degrees(noisy, n * rate * (1.0 - rate) / told**2, mean)
    else:
        degrees = np.full(n, degree)
    scaled = (degrees / np.sqrt(max(degrees.sum(), 1e-9))).astype(np.float32)
    for start in range(0, n, 1000):  # not all n**2 products at once
        matrix[start : start + 1000] -= scaled[start : start + 1000, None] * scaled
    np.fill_diagonal(matrix, 0.0)
    return matrix, degrees


def combined(marks: Sequence[np.ndarray], sums: Sequence[np.ndarray], labels: np.ndarray, k: int) -> np.ndarray:
    """All rounds of a noisy power iteration as one: each weighted by how much its marks agree with the outcome.

    Round t has the sums ``y_t = A u_t + noise``, with equal noise in all rounds. If x is the truth, y_t is about
    ``gamma d m_t x`` with ``m_t = u_t x/n``, so that the weights m_t are those of least squares (for more communities a
    matrix, the covariance of marks). x is not known: `labels` stand in for it, and are replaced by the outcome, thrice.

    Parameters
    ----------
    marks, sums : sequence of ndarray, shape (n, columns)
        Of each round; sums balanced (:func:`balanced`).
    labels : ndarray of int, shape (n,)
        A first outcome.
    k : int

    Returns
    -------
    ndarray, shape (n, columns)
    """
    total = np.zeros(marks[0].shape)
    for _ in range(3):
        outcome = marks_of(labels, k).astype(np.float64)
        total[:] = 0.0
        for u, y in zip(marks, sums, strict=True):
            agreement = u.T @ outcome / len(outcome) - np.outer(u.mean(axis=0), outcome.mean(axis=0))
            total += y @ agreement
        labels = labels_of(total)
    return total


def power_communities(matrix: np.ndarray, labels: np.ndarray, k: int, n_iter: int = 30) -> np.ndarray:
    """Generalised power method: each vertex takes the label of the largest sum, until nothing changes.

    Parameters
    ----------
    matrix : ndarray, shape (n, n)
        Symmetric, of mean about 0, positive for pairs that speak for one community.
    labels : ndarray of int, shape (n,)
        The start.
    k, n_iter : int

    Returns
    -------
    ndarray of int, shape (n,)

    Notes
    -----
    For two communities ``x <- sign(M x)`` (Boumal 2016; Wang, Zhou and So 2020).
    """
    for _ in range(n_iter):
        following = labels_of(matrix @ marks_of(labels, k).astype(matrix.dtype))
        if np.array_equal(following, labels):
            break
        labels = following
    return labels


def spectral_labels(matrix: np.ndarray, k: int) -> np.ndarray:
    """Labels by the leading eigenvectors of a symmetric matrix: the sign of one, or k-means on k - 1.

    Parameters
    ----------
    matrix : ndarray, shape (n, n)
        As in :func:`power_communities`.
    k : int
        At most n.

    Returns
    -------
    ndarray of int, shape (n,)
    """
    vectors = _leading(matrix, k - 1)
    if k == 2:
        return labels_of(vectors)
    with silence(ConvergenceWarning):  # fewer different rows than communities: some stay empty
        return KMeans(k, n_init=10, random_state=0).fit(vectors).labels_.astype(np.int64)


def _leading(matrix: np.ndarray, count: int) -> np.ndarray:
    n = len(matrix)
    if n > 500:
        start = np.random.default_rng(0).standard_normal(n)  # a fixed start: the same matrix has the same labels
        try:
            return scipy.sparse.linalg.eigsh(matrix, count, which="LA", v0=start, tol=1e-3)[1]
        except scipy.sparse.linalg.ArpackError:
            pass
    return np.linalg.eigh(matrix.astype(np.float64))[1][:, -count:]
