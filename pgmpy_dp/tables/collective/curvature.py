"""How curved the log-likelihood of a log-linear model is at its parameters, and around them."""

from __future__ import annotations

import math

import numpy as np

from pgmpy_dp.inference.belief_propagation import SumProduct

_FIRST_ITERATIONS = 20
_ITERATIONS = 2  # of each call: the parameters have moved a step, and so has the vector
_SMALLEST_PROBABILITY = 1e-9  # of a cell, in divisions
# Growth of a rate in a step, before and after the curvature has held it back once. Slower costs up to three fifths
# where noise is small, faster sets some models swinging.
_GROWTH = (1.08, 1.03)


class CurvatureBound:
    """Bound on the largest eigenvalue of the covariance of the sufficient statistics, followed along a path.

    The Hessian of the log-likelihood of one record is ``-Sigma``, with Sigma the covariance of the indicators of all
    cells under the model. The bound takes each table's own variance at the most that its largest cell allows, and the
    correlations between tables as they are.

    Parameters
    ----------
    engine : SumProduct
        Calibrated at the parameters in question before each call.

    Notes
    -----
    Let ``s_C**2 = min(1/2, largest cell of table C)`` and let ``L`` be the largest value of

        Var(sum_C s_C a_C(x_C)) / sum_C E[a_C(x_C)**2]

    over functions ``a_C`` on the cells of the tables. Then no eigenvalue of Sigma exceeds L: for any vector w, with
    ``f_C = w_C - E[w_C]`` and ``a_C = f_C / s_C``, ``w.Sigma.w = Var(sum_C s_C a_C) <= L sum_C Var(w_C) / s_C**2``, and
    ``Var(w_C) <= s_C**2 |w_C|**2``, because a variance is at most the second moment, hence the largest probability
    times ``|w_C|**2``, and at most a quarter of the squared range, hence ``|w_C|**2 / 2``. By the Cauchy-Schwarz
    inequality L is at most ``sum_C s_C**2``, hence at most half the number of tables, which fully dependent tables
    reach.

    Near a corner of the marginal polytope, where every table has one cell of probability 1, Sigma is almost zero while
    a short step away it may be as large as it gets. There L is large: neither s_C nor a correlation vanishes.

    L is found by power iteration, two products with Sigma a call. That approaches L from below, so leave a margin.

    Examples
    --------
    >>> from pgmpy_dp.inference.cliques import Cliques
    >>> engine = SumProduct(Cliques(("a", "b"), (2, 2), (("a",), ("b",), ("a", "b"))))
    >>> marginals, _ = engine.calibrate(np.zeros(8))
    >>> round(CurvatureBound(engine)(marginals), 3)  # no eigenvalue exceeds it, and here one reaches it
    0.75
    """

    def __init__(self, engine: SumProduct) -> None:
        self._engine = engine
        # Any vector that is not orthogonal to the first eigenvector.
        self._start = np.random.default_rng(0).normal(size=engine.cliques.n_cells)
        self._vector: np.ndarray | None = None

    def __call__(self, marginals: np.ndarray) -> float:
        """L at the parameters at which the engine was last calibrated.

        Parameters
        ----------
        marginals : ndarray, shape (n_cells,)
            What the engine returned there.
        """
        cliques = self._engine.cliques
        variances = np.array([min(0.5, float(table.max())) for table in cliques.split(marginals)])
        scales = np.repeat(np.sqrt(variances), cliques.sizes)
        probabilities = np.maximum(marginals, _SMALLEST_PROBABILITY)
        vector = self._start if self._vector is None else self._vector
        largest = 0.0
        for _ in range(_FIRST_ITERATIONS if self._vector is None else _ITERATIONS):
            length = math.sqrt(float(probabilities @ (vector * vector)))
            if not 0.0 < length < math.inf:  # nothing varies: start again where something does
                self._vector = None
                return float(variances.sum())
            vector = scales * vector / length
            product = self._engine.derivative(vector)
            largest = float(vector @ product)
            vector = scales * product / probabilities
        self._vector = vector
        return largest if largest > 0.0 else float(variances.sum())


class StableRate:
    """The learning rate that the next step of an ascent of the log-likelihood bears.

    It follows :class:`CurvatureBound` along the path, and grows slowly where that falls.

    Parameters
    ----------
    engine : SumProduct
    limit : float
        Of rate times curvature.
    """

    def __init__(self, engine: SumProduct, limit: float) -> None:
        self._engine, self._limit = engine, limit
        self._curvature = CurvatureBound(engine)
        self._anywhere = limit / (0.5 * engine.cliques.n_cliques)
        self._last, self._growth = 0.0, _GROWTH[0]

    def __call__(self, theta: np.ndarray, allowed: float) -> float:
        """The bound at these parameters; at most `allowed`."""
        if allowed <= self._anywhere:
            return allowed
        here = max(self._anywhere, self._limit / self._curvature(self._engine.calibrate(theta)[0]))
        grown = max(self._anywhere, self._growth * self._last)
        if here < grown:
            self._growth = _GROWTH[1]
        self._last = min(grown, here)
        return min(allowed, self._last)
