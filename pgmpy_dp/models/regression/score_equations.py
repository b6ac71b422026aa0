"""The score equations of a declared analysis under a released model, and the shape of noise that suits them.

Notation: x the columns of a cell's design, y its response, P the model's probability of the cell given that it has all
values, m the logistic function or the identity, w the weight of a record, 1 where there is none.
``psi = w x (y - m(x'b))`` is the score, ``H = E w x x' m'(x'b)`` the information, ``J = E psi psi'`` its variance, all
for one record.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit, softmax

from pgmpy_dp.inference.junction_tree import InferenceTooLarge
from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.models.regression.formula import Analysis, uniform_codes
from pgmpy_dp.private.operators.score_sums import COUNT, GRID, POINT, SHAPE, VALUE, ScoreSums

MOST_CELLS = 1 << 18
"""Of an analysis: up to it the model's table of all its variables is used, else records that are drawn from it."""

_DRAWN = 1 << 16
_CONSIDERED = 1 << 13  # cells that a shape is optimised for; it is scaled to all
_ITERATIONS = 60
_UNCUT = 0.99  # of the model's records, whose products are shortened by nothing
_TRUST = 100.0  # records that the model's own products count as much as


@dataclass(frozen=True, eq=False)
class ScoreEquations:
    """The cells of an analysis with their probabilities: all of them, or those of records that were drawn.

    Attributes
    ----------
    analysis : Analysis
    x : ndarray of shape (n_cells, d)
        Columns of the design as sums over records have them.
    y, weight : ndarray of shape (n_cells,)
    probability : ndarray of shape (n_cells,)
        Of sum 1.
    back : ndarray of shape (d, d)
        From coefficients of these columns to those of the columns as they were declared.
    complete : float
        The model's probability that a record has all values.
    """

    analysis: Analysis
    x: np.ndarray
    y: np.ndarray
    probability: np.ndarray
    back: np.ndarray
    complete: float
    weight: np.ndarray

    @classmethod
    def of(cls, analysis: Analysis, model: LogLinearModel) -> ScoreEquations:
        """The equations of an analysis in the states of a model."""
        table = _table(analysis, model)
        if table is not None:
            inside = np.nonzero(table)
            codes, weights = np.stack(inside, axis=1), table[inside]
        else:
            places = [model.cliques.position[name] for name in analysis.variables]
            codes = model.sample(_DRAWN, np.random.default_rng(0))[:, places].astype(np.int64)
            weights = np.full(len(codes), 1.0 / len(codes))
        masks = zip(analysis.complete.values(), codes.T, strict=True)
        kept = np.logical_and.reduce([mask[k] for mask, k in masks])
        codes, weights = codes[kept], weights[kept]
        complete = float(weights.sum())
        if not complete > 0:
            raise ValueError(
                "the model says that no record has a value of every variable of the formula; leave one out"
            )
        some = uniform_codes(analysis, 1 << 12)
        scaled, declared = (analysis.design(some, scaled=scaled) for scaled in (True, False))
        forth = np.linalg.lstsq(scaled, declared, rcond=None)[0]  # declared = scaled @ forth
        response = analysis.response[1][codes[:, 0]] / VALUE
        weight = np.ones(len(codes)) if analysis.weight is None else analysis.weight[1][codes[:, -1]] / VALUE
        # One of all cells that are the same to the analysis.
        cells, which = np.unique(
            np.column_stack([analysis.design(codes, scaled=True), response, weight]), axis=0, return_inverse=True
        )
        parts = np.bincount(which.ravel(), weights / complete), np.linalg.inv(forth), complete, cells[:, -1]
        return cls(analysis, cells[:, :-2], cells[:, -2], *parts)

    def mean(self, b: np.ndarray, x: np.ndarray | None = None) -> np.ndarray:
        """m(x'b) of each cell, or of rows x of the design."""
        predictor = (self.x if x is None else x) @ b
        return expit(predictor) if self.analysis.family == "logit" else predictor

    def information(self, b: np.ndarray) -> np.ndarray:
        """H, with as little more as makes it invertible."""
        mean = self.mean(b)
        slope = mean * (1.0 - mean) if self.analysis.family == "logit" else np.ones_like(mean)
        return (self.x * (self.probability * self.weight * slope)[:, None]).T @ self.x + 1e-9 * np.eye(self.x.shape[1])

    def variance(self, b: np.ndarray) -> np.ndarray:
        """J."""
        residual = self.weight * (self.y - self.mean(b))
        return (self.x * (self.probability * residual**2)[:, None]).T @ self.x

    def root(self, ridge: float) -> np.ndarray:
        """The solution of ``E psi = ridge b``, by Newton's method."""

        def step(b: np.ndarray) -> np.ndarray:
            score = self.x.T @ (self.probability * self.weight * (self.y - self.mean(b))) - ridge * b
            return np.linalg.solve(self.information(b) + ridge * np.eye(len(b)), score)

        return _newton(self.x, step)

    def largest_scores(self, b: np.ndarray) -> np.ndarray:
        """The score of each row of the design with the response and the weight that make it largest; (n_rows, d)."""
        rows = np.unique(self.x, axis=0)
        mean = self.mean(b, rows)
        residual = np.maximum(abs(self.y.max() - mean), abs(self.y.min() - mean))
        return rows * residual[:, None] * self.weight.max()

    def sampling(self, b: np.ndarray) -> np.ndarray:
        """The covariance of coefficients as declared, of one record: divided by n that of a sample of n."""
        inverse = np.linalg.inv(self.information(b))
        return self.back @ (inverse @ self.variance(b) @ inverse) @ self.back.T

    def shape(self, b: np.ndarray) -> tuple[np.ndarray, float]:
        """M with norms of at most 1 for the scores of all rows, for which noise adds least to variances, summed up.

        Returns
        -------
        m : ndarray of shape (d, d)
        l1 : float
            The largest l1 norm of a shaped score.

        Notes
        -----
        An A-optimal design by multiplicative updates: of ``A = M'M`` with ``u'A u <= 1`` for all scores u, the one
        with the least ``sum_j Var_j(noise)/Var_j(sampling)``. Every coefficient counts, so that A is not singular.
        """
        u = self.largest_scores(b)
        inverse = self.back @ np.linalg.inv(self.information(b))
        target = inverse.T @ np.diag(1.0 / np.maximum(np.diag(self.sampling(b)), 1e-300)) @ inverse
        some = u
        if len(u) > _CONSIDERED:
            leverage = np.einsum("ij,jk,ik->i", u, np.linalg.pinv(u.T @ u), u)
            some = u[np.argsort(-leverage)[:_CONSIDERED]]
        weights = np.full(len(some), 1.0 / len(some))
        for _ in range(_ITERATIONS):
            gram = (some * weights[:, None]).T @ some
            gram += 1e-12 * np.trace(gram) * np.eye(len(gram))
            half = _root(gram)
            inverse_half = np.linalg.inv(half)
            a = inverse_half @ _root(half @ target @ half) @ inverse_half
            weights = weights * ((some @ a) * some).sum(axis=1)
            weights = np.maximum(weights / weights.sum(), 1e-14)
        m = _root(a)
        m /= np.sqrt(((u @ m) ** 2).sum(axis=1).max())
        return m, float(np.abs(u @ m).sum(axis=1).max())

    def product_shape(self, v: np.ndarray) -> np.ndarray:
        """M for products ``-x (x'v)``: noise is alike in all directions, and few of the model's records are shortened.

        Far cells, which a noisy model has too many of, decide how columns go together; so few may be shortened.
        """
        moments = (self.x * (self.probability * self.weight)[:, None]).T @ self.x + 1e-9 * np.eye(len(v))
        white = np.linalg.inv(_root(moments))
        lengths = np.linalg.norm(self.x @ white, axis=1) * np.abs(self.x @ v) * self.weight
        typical = np.quantile(lengths, _UNCUT, weights=self.probability, method="inverted_cdf")
        return white / max(float(typical), 1e-9)

    def with_products(self, asked: ScoreSums, means: np.ndarray, variance: float) -> ScoreEquations:
        """The equations with the probabilities that agree with noisy means of products.

        Parameters
        ----------
        asked : ScoreSums
            The question for them.
        means : ndarray of shape (d,)
            Of what records add.
        variance : float
            Of the noise in each.

        Notes
        -----
        Of all P' the one with the least ``KL(P', P) + |E_P' f - means|^2/(2 t variance)``, f what a cell adds, t the
        number of records that the model's own products count as much as; by Newton's method for its dual. Cells are
        shortened as records are, so that shortening makes no bias.
        """
        f = -(self.weight * (self.x @ np.array(asked.point)) / POINT)[:, None] * (self.x @ asked.shape.T / SHAPE)
        f = f / np.maximum(np.sqrt((f**2).sum(axis=1) + (COUNT / GRID) ** 2), 1.0)[:, None]
        known, slack = np.log(self.probability), _TRUST * variance * np.eye(f.shape[1])

        def step(a: np.ndarray) -> np.ndarray:
            p = softmax(known + f @ a)
            curvature = (f * p[:, None]).T @ f - np.outer(p @ f, p @ f) + slack
            return np.linalg.solve(curvature, means - p @ f - slack @ a)

        return replace(self, probability=softmax(known + f @ _newton(f, step)))


def _table(analysis: Analysis, model: LogLinearModel) -> np.ndarray | None:
    """The model's table of all variables of an analysis; None where that is too large, or not known exactly."""
    if math.prod(map(len, analysis.complete.values())) <= MOST_CELLS and model.inference == "exact":
        with suppress(InferenceTooLarge):
            return np.maximum(model.marginal(analysis.variables), 0.0)
    return None


def _newton(rows: np.ndarray, step_at: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Where Newton's steps from 0 end; no step moves the product with a row by more than 2."""
    at = np.zeros(rows.shape[1])
    for _ in range(100):
        step = step_at(at)
        largest = float(np.abs(rows @ step).max())
        at = at + step * min(1.0, 2.0 / max(largest, 1e-300))
        if largest < 1e-10:
            break
    return at


def _root(matrix: np.ndarray) -> np.ndarray:
    """The square root of a symmetric matrix that is positive semidefinite."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return (vectors * np.sqrt(np.maximum(values, 1e-300))) @ vectors.T
