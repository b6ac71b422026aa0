"""Private stochastic gradient ascent on the likelihood of a log-linear model (Abadi et al. 2016).

Each step draws a Poisson sample of the records, clips their gradients in l2 norm, adds discrete Gaussian noise to the
sum, and moves the parameters. ``gradient.md`` beside this file proves the guarantee.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pgmpy_dp.models.belief_propagation import SumProduct
from pgmpy_dp.models.cliques import Cliques
from pgmpy_dp.models.junction_tree import DEFAULT_MEMORY_LIMIT
from pgmpy_dp.private import accounting
from pgmpy_dp.private.adjacency import changed_records
from pgmpy_dp.private.data.gradients import ClippingGrid, record_count, sampled_gradient_sum
from pgmpy_dp.private.data.table import PrivateTable
from pgmpy_dp.private.guarantee import ZCDP, ApproxDP, checked_number
from pgmpy_dp.private.learners.marginals import MarginalSettings, require_scopes
from pgmpy_dp.private.ledger import Budget
from pgmpy_dp.private.noise import samplers
from pgmpy_dp.private.noise.additive import gaussian_scales
from pgmpy_dp.private.noise.subsampling import rounded_rate
from pgmpy_dp.private.sensitive import Noise, Release
from pgmpy_dp.schema import encode_label

__all__ = ["GradientSettings", "parameters", "run"]

_LARGEST_SCALE = 2.0**48  # of the noise in grid units, see noise/additive.py
_LARGEST_PARAMETER = 50.0  # log-potentials stay within +-50: a ratio of exp(100) between two cells of a table
_PARAMETER_BITS = 32  # released parameters are multiples of 2**-32
# Chosen on the populations of benchmarks/populations.py with seeds 201 and 202, made up and public.
_LARGEST_STEP = 3.0  # more is never better; a tenth of what momentum lets steps without noise bear
_HORIZON = 0.8  # 0.4 to 1.2 cost up to a fifth of the divergence, either way depending on the signal


@dataclass(frozen=True)
class GradientSettings:
    """How to ascend, fixed before the records are looked at.

    Parameters
    ----------
    scopes : sequence of sequences of variable names
        The tables of the model, one vector of parameters.
    n_steps : int, default 200
    batch_rate : float, optional
        In (0, 1]: probability with which a record takes part in a step, rounded to a multiple of 2**-16. Default: 1/4,
        and 1 for a rho budget, where sampling does not save any.
    clip_norm : float, optional
        l2 norm that no record's gradient exceeds. Default: sqrt(number of tables), the norm of a record's indicator.
    learning_rate : float, optional
        Of a step, for the mean gradient of a record. Default: from the public noise level, see `run`.
    momentum : float, default 0.9
        In [0, 1): share of the last step's direction that the next one keeps.
    average_share : float, default 0.5
        In (0, 1]: the result is the mean of the parameters over this last part of the steps.
    count_share : float, default 0.05
        In (0, 1): part of the budget (of rho) for a noisy number of records, where no public one is known.
    memory_limit : int
        Bytes that exact inference may take.
    random_state : int, optional
        For tests and benchmarks only: repeatable samples and noise. The release is marked reproducible and **is not
        private**.

    Raises
    ------
    TypeError, ValueError
        For arguments that are wrong whatever the schema.
    """

    scopes: tuple[tuple, ...]
    n_steps: int = 200
    batch_rate: float | None = None
    clip_norm: float | None = None
    learning_rate: float | None = None
    momentum: float = 0.9
    average_share: float = 0.5
    count_share: float = 0.05
    memory_limit: int = DEFAULT_MEMORY_LIMIT
    random_state: int | None = None

    def __post_init__(self) -> None:
        # The scopes and the seed obey the same rules as those of the marginals.
        checked = MarginalSettings(self.scopes, random_state=self.random_state)
        object.__setattr__(self, "scopes", checked.scopes)
        object.__setattr__(self, "random_state", checked.random_state)
        if isinstance(self.n_steps, bool) or not isinstance(self.n_steps, int | np.integer):
            raise TypeError(f"n_steps={self.n_steps!r} is a {type(self.n_steps).__name__}; pass a whole number above 0")
        if not 1 <= self.n_steps <= 10**6:
            raise ValueError(f"n_steps={self.n_steps!r} is out of range; pass a whole number from 1 to 1000000")
        object.__setattr__(self, "n_steps", int(self.n_steps))
        for name in ("batch_rate", "clip_norm", "learning_rate"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, checked_number(name, getattr(self, name), positive=True))
        if self.batch_rate is not None and self.batch_rate > 1:
            raise ValueError(f"batch_rate={self.batch_rate!r} is above 1; it is a probability: pass a number in (0, 1]")
        for name in ("momentum", "count_share"):
            number = checked_number(name, getattr(self, name), positive=name == "count_share", below_one=True)
            object.__setattr__(self, name, number)
        share = checked_number("average_share", self.average_share, positive=True)
        if share > 1:
            raise ValueError(f"average_share={share!r} is above 1; pass the part of the steps to average, in (0, 1]")
        object.__setattr__(self, "average_share", share)


@dataclass(frozen=True)
class _Plan:
    """Everything that follows from public numbers."""

    cost: ApproxDP | ZCDP
    rate: float
    multiplier: float
    scale: float
    count_scale: float | None
    grid: ClippingGrid


def run(table: PrivateTable, settings: GradientSettings, budget: Budget) -> Release:
    """Ascend the likelihood by noisy clipped gradients and release the averaged parameters.

    Parameters
    ----------
    table : PrivateTable
    settings : GradientSettings
    budget : Budget
        ``epsilon`` with ``delta``, or ``rho``. It is charged to the table's ledger, whole, before the first noise.

    Returns
    -------
    Release
        ``kind="log_potentials"``; ``values[0]`` holds the parameters of all tables, flat, in units of
        ``public["unit"]`` (see :func:`parameters`); ``values[1]``, if the number of records was not public, a noisy
        count of them. ``public["path"]`` says how the parameters were found.

    Raises
    ------
    BudgetExceeded
        If the ledger does not have the budget left; it stays as it was.
    TypeError, ValueError
        For scopes that the schema does not know, or a budget that this method cannot use.
    InferenceTooLarge
        If exact inference would exceed ``settings.memory_limit``.
        All depend on public arguments only and come before the charge.

    Notes
    -----
    Privacy
        *Sensitivity.* A record's clipped gradient has l2 norm at most B, exactly, and depends on the record and on the
        current parameters, which are public, alone. Under ``add_remove`` the clipped sum moves by at most B, under
        ``replace_one`` by at most 2B (:func:`~pgmpy_dp.private.data.gradients.clipped_sum`).

        *Guarantee.* (epsilon, delta)-DP for such a budget: under ``add_remove`` by the Renyi divergences of the
        Poisson-subsampled Gaussian, composed over the steps and with the count; under ``replace_one``, a removal and an
        addition, by accounting for (epsilon/2, delta/(1 + exp(epsilon/2))) under ``add_remove``. rho-zCDP for a rho
        budget, with the noise of steps on all records, because the divergence of a sampled Gaussian of high order is
        no smaller.

        *Source.* Abadi, Chu, Goodfellow, McMahan, Mironov, Talwar and Zhang 2016; Mironov, Talwar and Zhang 2019;
        Canonne, Kamath and Steinke 2020. Proof for the discrete Gaussian: ``gradient.md``.

        *Side channels.* Sampling and noise use the operating system's randomness. A step on an empty sample, or on a
        table without records, is noise like any other. Running time depends on the number of records, and shows the
        sizes of the samples to who can measure it.

    Defaults
        The default learning rate is ``min(h, 0.8 sqrt(h k)) / n_steps``, and at most ``3 k / degree``: k is the mean
        number of cells of a table, degree the largest number of tables that share a variable, and h = 1/lambda* is
        where noise outweighs signal, lambda* = v k + 1/N being the penalty of
        :mod:`pgmpy_dp.models.maximum_likelihood` with v the variance of the mean of all steps' noises. It depends on
        public and noisy numbers alone.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"a": [0] * 900 + [1] * 100})
    >>> table = PrivateTable(frame, {"a": [0, 1]}, ledger=Budget(epsilon=1.0, delta=1e-3))
    >>> release = run(table, GradientSettings([("a",)]), Budget(epsilon=1.0, delta=1e-3))
    >>> theta = parameters(release)
    >>> round(float(1 / (1 + np.exp(theta[0] - theta[1]))), 1)
    0.1
    """
    if not isinstance(table, PrivateTable):
        raise TypeError(f"table is a {type(table).__name__}; pass a PrivateTable")
    if not isinstance(budget, Budget):
        raise TypeError(f"budget={budget!r} is a {type(budget).__name__}; pass a Budget, e.g. Budget(rho=0.1)")
    cliques = _cliques(table, settings)
    engine = SumProduct(cliques, memory_limit=settings.memory_limit)
    plan = _plan(table, settings, budget, cliques)
    seed = samplers.seeded_generator(settings.random_state)
    used = set(cliques.variables)
    table.ledger.charge(
        plan.cost,
        what=f"{settings.n_steps} gradient steps for {cliques.n_cliques} tables",
        columns=[name for name in table.schema.variables if name in used],
        mechanism="subsampled_discrete_gaussian",
        adjacency=table.adjacency,
        reproducible=seed is not None,
    )
    values, noise = [], []
    records = float(table.n_records or 0)
    if plan.count_scale is not None:
        values.append(samplers.discrete_gaussian(record_count(table).value, plan.count_scale, seed=seed))
        noise.append(Noise("discrete_gaussian", plan.count_scale))
        records = float(values[0][0])
    records = max(records, 1.0)
    learning_rate = settings.learning_rate or _default_learning_rate(plan, settings, cliques, records)
    theta = _ascend(table, settings, plan, engine, learning_rate, records, seed)
    return Release(
        kind="log_potentials",
        values=(np.rint(np.ldexp(theta, _PARAMETER_BITS)).astype(np.int64), *values),
        noise=(None, *noise),
        public={
            "schema": table.schema.to_dict(),
            "scopes": [[encode_label(name) for name in scope] for scope in settings.scopes],
            "n_records": table.n_records,
            "unit": math.ldexp(1.0, -_PARAMETER_BITS),
            "settings": {"budget": budget.guarantee.to_dict(), "count_share": settings.count_share},
            "path": {
                "n_steps": settings.n_steps,
                "batch_rate": plan.rate,
                "clip_norm": plan.grid.bound * plan.grid.unit,
                "noise_multiplier": plan.multiplier,
                "learning_rate": learning_rate,
                "momentum": settings.momentum,
                "average_share": settings.average_share,
            },
        },
        adjacency=table.adjacency,
        guarantee=plan.cost,
        mechanism="subsampled_discrete_gaussian",
        reproducible=seed is not None,
    )


def parameters(release: Release) -> np.ndarray:
    """Log-potentials of a release of this learner, shape (n_cells,)."""
    if release.kind != "log_potentials":
        raise ValueError(f"release has kind {release.kind!r}; pass one of kind 'log_potentials'")
    return release.values[0] * float(release.public["unit"])


def _ascend(
    table: PrivateTable,
    settings: GradientSettings,
    plan: _Plan,
    engine: SumProduct,
    learning_rate: float,
    records: float,
    seed: np.random.Generator | None,
) -> np.ndarray:
    """Averaged parameters. Between two noisy sums everything is post-processing."""
    theta = np.zeros(plan.grid.n_cells)
    direction, average = np.zeros_like(theta), np.zeros_like(theta)
    averaged = math.ceil(settings.average_share * settings.n_steps)
    to_mean = plan.grid.unit / (plan.rate * records)
    for step in range(settings.n_steps):
        mu = engine.calibrate(theta)[0]
        exact = sampled_gradient_sum(table, settings.scopes, mu, plan.grid, plan.rate, seed=seed)
        noisy = samplers.discrete_gaussian(exact.value, plan.scale, seed=seed)
        direction = settings.momentum * direction + (1.0 - settings.momentum) * (noisy * to_mean)
        theta = np.clip(theta + learning_rate * direction, -_LARGEST_PARAMETER, _LARGEST_PARAMETER)
        if step >= settings.n_steps - averaged:
            average += theta / averaged
    return average


def _default_learning_rate(plan: _Plan, settings: GradientSettings, cliques: Cliques, records: float) -> float:
    """See `run`."""
    degree = max(sum(name in scope for scope in cliques.scopes) for name in cliques.variables)
    k = cliques.n_cells / cliques.n_cliques
    variance = (plan.scale * plan.grid.unit / (plan.rate * records)) ** 2 / settings.n_steps
    h = 1.0 / (variance * k + 1.0 / records)
    return min(_LARGEST_STEP * k / degree, min(h, _HORIZON * math.sqrt(h * k)) / settings.n_steps)


def _cliques(table: PrivateTable, settings: GradientSettings) -> Cliques:
    schema = table.schema
    require_scopes(schema, settings.scopes)
    used = {name for scope in settings.scopes for name in scope}
    variables = [name for name in schema.variables if name in used]
    return Cliques(tuple(variables), tuple(schema.cardinality(name) for name in variables), settings.scopes)


def _plan(table: PrivateTable, settings: GradientSettings, budget: Budget, cliques: Cliques) -> _Plan:
    """Rates, scales and cost, from public numbers; refuses what cannot be done before anything is spent."""
    if budget.rho is None and not budget.delta:
        raise ValueError(
            f"delta=0 with epsilon={budget.epsilon!r}: gradients with Gaussian noise have no pure guarantee; "
            "pass a delta above 0 (at most 1/n_records), or rho"
        )
    clip_norm = math.sqrt(cliques.n_cliques) if settings.clip_norm is None else settings.clip_norm
    grid = ClippingGrid(clip_norm, cliques.n_cliques, cliques.n_cells)
    changed = changed_records(table.adjacency)
    cost: ApproxDP | ZCDP
    if budget.rho is not None:
        cost, total = ZCDP(budget.rho), budget.rho
    else:
        assert budget.epsilon is not None
        cost, total = ApproxDP(budget.epsilon, budget.delta), accounting.approx_to_zcdp(budget.epsilon, budget.delta)
    # Under replace_one the number of records is public.
    count_rho = settings.count_share * total if table.n_records is None else 0.0
    count_scale = gaussian_scales([1.0], count_rho)[0] if count_rho else None
    if isinstance(cost, ZCDP):
        rate = rounded_rate(settings.batch_rate or 1.0)
        multiplier = gaussian_scales([float(changed)] * settings.n_steps, total - count_rho)[0]
    else:
        rate = rounded_rate(settings.batch_rate or 0.25)
        epsilon, delta = cost.epsilon, cost.delta
        if changed == 2:
            epsilon, delta = epsilon / 2.0, delta / (1.0 + math.exp(epsilon / 2.0))
        multiplier = accounting.subsampled_gaussian_multiplier(epsilon, delta, rate, settings.n_steps, rho=count_rho)
    scale = math.nextafter(multiplier * grid.bound, math.inf)
    if scale > _LARGEST_SCALE:
        raise ValueError(
            f"{budget} needs noise of {multiplier:.3g} times the clip norm in each of n_steps={settings.n_steps}, "
            "which would bury any gradient; raise the budget, or take fewer steps"
        )
    return _Plan(cost, rate, multiplier, scale, count_scale, grid)
