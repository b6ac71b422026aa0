"""Private stochastic gradient ascent on the likelihood of a log-linear model (Abadi et al. 2016).

Each step asks for the noisy sum of the clipped gradients of a Poisson sample of the records, and moves the parameters.

How curved the log-likelihood of a log-linear model is at its parameters, and around them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

import numpy as np

from pgmpy_dp.inference.belief_propagation import SumProduct
from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.learning.options import Settings
from pgmpy_dp.learning.privacy_record import released_parameters
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.curator.schedule import GradientCurator
from pgmpy_dp.private.data.table import PrivateTable, require_table_and_budget
from pgmpy_dp.private.data.table_facts import require_scopes
from pgmpy_dp.private.sensitive import Release

_LARGEST_PARAMETER = 50.0  # log-potentials stay within +-50: a ratio of exp(100) between two cells of a table
_PARAMETER_BITS = 32
PARAMETER_UNIT = math.ldexp(1.0, -_PARAMETER_BITS)
"""Released parameters are multiples of it."""

KEPT = {"momentum": 0.9, "average_share": 0.5, "count_share": 0.05}
"""What no estimator asks: how much of a step's direction the next one keeps, over which last part of the steps the
parameters are averaged, and the part of the budget for a noisy number of units, where none is public."""

# Chosen on made-up, public records: of the populations of benchmarks/populations.py with seeds 201 to 204, and the last
# two also without noise on chains, stars, grids and complete graphs whose variables are almost equal.
_HORIZON = 0.8  # 0.4 to 1.2 cost up to a fifth of the divergence, either way depending on the signal
_STABLE = 0.85  # of the largest stable step; at .9 some models swing on, .8 costs an eighth where noise is smallest


def run(table: PrivateTable, settings: Settings, budget: Budget) -> Release:
    """Ascend the likelihood by noisy clipped gradients and release the averaged parameters.

    Parameters
    ----------
    settings : Settings
        `scopes`, the tables of the model, one vector of parameters; the rest of
        :class:`~pgmpy_dp.estimators.PrivateSGD`. Default `learning_rate`: from the noise and the curvature, see the
        comments.
    budget : Budget
        ``epsilon`` with ``delta``, or ``rho``.

    Returns
    -------
    Release
        ``kind="log_potentials"``; ``values[0]`` holds the parameters of all tables, flat, in units of
        ``public["parameter_unit"]`` (see :func:`parameters`); ``values[1]``, if the number of records was not public, a
        noisy count of them. ``public["path"]`` describes the ascent.

    Raises
    ------
    TypeError, ValueError
        For scopes that the schema does not know, or a budget that this method cannot use.
    InferenceTooLarge
        If exact inference would exceed ``settings.memory_limit``.

    Notes
    -----
    Privacy
        *Sensitivity.* That of :class:`~pgmpy_dp.private.curator.schedule.GradientCurator`: a record's clipped
        gradient has l2 norm at most B, exactly.

        *Guarantee.* (epsilon, delta)-DP for such a budget: under ``add_remove`` by the Renyi divergences of the
        Poisson-subsampled Gaussian, composed over the steps and with the count; under ``replace_one``, a removal and an
        addition, by accounting for (epsilon/2, delta/(1 + exp(epsilon/2))) under ``add_remove``. rho-zCDP for a rho
        budget, with the noise of steps on all records, because the divergence of a sampled Gaussian of high order is
        no smaller.

        *Source.* Abadi, Chu, Goodfellow, McMahan, Mironov, Talwar and Zhang 2016; Mironov, Talwar and Zhang 2019;
        Canonne, Kamath and Steinke 2020. Proof for the discrete Gaussian: ``private/curator/gradient.md``.

        *Side channels.* Sampling and noise use the operating system's randomness. A step on an empty sample, or on a
        table without records, is noise like any other. Running time depends on the number of records, and shows the
        sizes of the samples to who can measure it.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"a": [0] * 900 + [1] * 100})
    >>> table = PrivateTable(frame, {"a": [0, 1]}, ledger=Budget(epsilon=1.0, delta=1e-3))
    >>> from pgmpy_dp.estimators import PrivateSGD
    >>> from pgmpy_dp.learning.options import settings_of
    >>> settings = settings_of(PrivateSGD()).but(scopes=(("a",),))
    >>> release = run(table, settings, Budget(epsilon=1.0, delta=1e-3))
    >>> theta = parameters(release)
    >>> round(float(1 / (1 + np.exp(theta[0] - theta[1]))), 1)
    0.1
    """
    require_table_and_budget(table, budget, "a Budget, e.g. Budget(rho=0.1)")
    settings = settings.filled(**KEPT)
    cliques = _cliques(table, settings)
    engine = SumProduct(cliques, memory_limit=settings.memory_limit)
    curator = GradientCurator(
        table,
        budget,
        settings.scopes,
        settings.clip_norm,
        n_steps=settings.n_steps,
        batch_rate=settings.batch_rate,
        count_share=settings.count_share,
        random_state=settings.random_state,
    )
    # Steps with momentum m are unstable above `2 (1 + m)/((1 - m) L)` on a log-likelihood of curvature L
    # (`largest_stable_rate`). Whatever the parameters, L is at most half the number of tables, which tables that depend
    # on each other fully reach; most are far below it. So a rate above 0.85 times the limit for that largest L starts
    # there and is at most 0.85 times the limit for a bound on L at the current parameters (`CurvatureBound`). On the
    # way it grows by 8 % a step, and by 3 % once that bound has held it back: what uniform marginals bear would
    # overshoot. This is stability around the maximum, for every model and every noise, none included. That the steps
    # get there from parameters 0 is no theorem, since the log-likelihood is not quadratic; the tests try it on strong
    # models.
    #
    # All rates depend on public and noisy numbers alone: the parameters are public at each step. `public["path"]` has
    # the rate that noise allows, and the last one.
    steps = ascend(
        settings,
        curator,
        cliques.n_cells,
        public_count=table.n_records,
        gradient=lambda theta: curator.step(engine.calibrate(theta)[0]),
        default_rate=lambda records, variance: _default_learning_rate(settings, cliques, records, variance),
        stable_rate=StableRate(engine, _STABLE * largest_stable_rate(settings.momentum, 1.0)),
    )
    public_settings = settings.public(budget, "count_share")

    def release(ascent: Ascent) -> Release:
        public = {"parameter_unit": PARAMETER_UNIT, "settings": public_settings, "path": ascent.path}
        return curator.release(
            "log_potentials", public, {"parameters": ascent.parameters, **curator.called("n_records")}
        )

    return curator.following(steps, release)


def parameters(release: Release) -> np.ndarray:
    """Log-potentials of a release of this learner, shape (n_cells,)."""
    return released_parameters(release, "log_potentials", "parameters")[0]


def _default_learning_rate(settings: Settings, cliques: Cliques, records: float, variance: float) -> float:
    """The learning rate that the noise allows, whatever the curvature."""
    # The default learning rate is `min(h, 0.8 sqrt(h k)) / n_steps` where steps are stable at that rate: k is the mean
    # number of cells of a table, and h = 1/lambda* is where noise outweighs signal, lambda* = v k + 1/N being the
    # penalty of `maximum_likelihood` with v the variance of the mean of all steps' noises. The less noise, the higher
    # it is, so on its own it diverges where noise is small.
    k = cliques.n_cells / cliques.n_cliques
    h = 1.0 / (variance * k + 1.0 / records)
    return min(h, _HORIZON * math.sqrt(h * k)) / settings.n_steps


def _cliques(table: PrivateTable, settings: Settings) -> Cliques:
    schema = table.schema
    require_scopes(schema, settings.scopes)
    used = {name for scope in settings.scopes for name in scope}
    variables = [name for name in schema.variables if name in used]
    return Cliques(tuple(variables), tuple(schema.cardinality(name) for name in variables), settings.scopes)


@dataclass(frozen=True)
class Ascent:
    """The state of an ascent after some steps.

    Attributes
    ----------
    parameters : ndarray of int64
        Averaged, in units of `PARAMETER_UNIT`.
    path : dict
        The course of the ascent, public. Its ``n_steps`` are those that were taken.
    """

    parameters: np.ndarray
    path: dict[str, Any]


def ascend(
    settings: Settings,
    curator: GradientCurator,
    n_parameters: int,
    *,
    public_count: int | None,
    gradient: Callable[[np.ndarray], np.ndarray],
    default_rate: Callable[[float, float], float],
    stable_rate: Callable[[np.ndarray, float], float] | None = None,
) -> Generator[Ascent, None, None]:
    """Take the noisy steps from parameters 0; yield the state before the first and after each of them.

    Between two noisy sums everything is post-processing.

    Parameters
    ----------
    settings : Settings
        `n_steps`, `learning_rate` (of every step, for the mean gradient of a unit), and what `KEPT` has.
    curator : GradientCurator
        Opened for the steps of `settings`.
    public_count : int or None
        The number of units, if it is public.
    gradient : callable
        From parameters, shape (n_parameters,), to the noisy sum of the curator's next step.
    default_rate : callable
        From the number of units and the variance of the mean of all steps' noises to a learning rate.
    stable_rate : callable, optional
        From the parameters and the default learning rate to the one that the next step bears; called once a step.
        Without it steps have the default rate throughout. A rate that the settings name is taken as it is.
    """
    schedule = curator.schedule
    n = max(float(curator.count() if public_count is None else public_count), 1.0)
    to_mean = curator.unit_size / (schedule.rate * n)
    variance = (curator.scale * curator.unit_size / (schedule.rate * n)) ** 2 / settings.n_steps
    learning_rate = rate = settings.learning_rate or default_rate(n, variance)
    theta = np.zeros(n_parameters)
    direction, average = np.zeros_like(theta), np.zeros_like(theta)
    averaged = math.ceil(settings.average_share * settings.n_steps)

    def state_after(taken: int) -> Ascent:
        part = taken - (settings.n_steps - averaged)  # steps that are in the average; of fewer than all, their mean
        mean = theta if part <= 0 else average if part == averaged else average * (averaged / part)
        path = {
            "n_steps": taken,
            "batch_rate": schedule.rate,
            "clip_norm": curator.bound * curator.unit_size,
            "noise_multiplier": schedule.multiplier,
            "learning_rate": learning_rate,
            "last_learning_rate": rate,
            "momentum": settings.momentum,
            "average_share": settings.average_share,
        }
        return Ascent(parameter_integers(mean), path)

    yield state_after(0)
    for step in range(settings.n_steps):
        direction = settings.momentum * direction + (1.0 - settings.momentum) * (gradient(theta) * to_mean)
        if stable_rate is not None and settings.learning_rate is None:
            rate = stable_rate(theta, learning_rate)
        theta = np.clip(theta + rate * direction, -_LARGEST_PARAMETER, _LARGEST_PARAMETER)
        if step >= settings.n_steps - averaged:
            average += theta / averaged
        yield state_after(step + 1)


def parameter_integers(parameters: np.ndarray) -> np.ndarray:
    """Parameters as a release keeps them: in units of 2**-32."""
    return np.rint(np.ldexp(parameters, _PARAMETER_BITS)).astype(np.int64)


def largest_stable_rate(momentum: float, curvature: float) -> float:
    """Learning rate up to which steps with momentum are stable on a log-likelihood of this curvature.

    Parameters
    ----------
    momentum : float
        m, in [0, 1).
    curvature : float
        L > 0: no eigenvalue of the negative Hessian of a unit's mean log-likelihood is larger.

    Examples
    --------
    >>> round(largest_stable_rate(0.9, 0.5), 6)
    76.0
    """
    # Let H be the negative Hessian at the maximum. The mean of clipped gradients is there `-M H e` to first order in
    # the distance e, where M is symmetric with eigenvalues from 0 to 1: it is a mean over units, of
    # `B/|g| (1 - g g'/|g|^2)` for one whose gradient g is clipped and of 1 for any other one. The eigenvalues of M H
    # are those of the symmetric `H^(1/2) M H^(1/2)`: real, at least 0 and at most L. Along an eigenvector of eigenvalue
    # l, steps of rate r are
    #
    #     d' = m d - (1 - m) l e,    e' = e + r d',
    #
    # with the characteristic polynomial `z^2 - (1 + m - r (1 - m) l) z + m`. Its roots are inside the unit circle
    # exactly where `|1 + m - r (1 - m) l| < 1 + m`, that is where `0 < r l < 2 (1 + m)/(1 - m)`. Noise moves the
    # maximum that a step sees, not the Hessian, so the bound is the same whatever the noise.
    return 2.0 * (1.0 + momentum) / ((1.0 - momentum) * curvature)


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
