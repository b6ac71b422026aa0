"""mbi (private-pgm) as a competitor: fit its Markov random field to our noisy tables.

mbi is called through its public estimators in float64 and nothing of it is changed. What it
learns comes back as log-potentials in our layout, so that one routine measures every method.

Install with ``pip install 'pgmpy_dp[bench]'``.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from pgmpy_dp.learning.noisy_marginals import NoisyMarginals

if TYPE_CHECKING:
    from mbi import Domain, LinearMeasurement, MarkovRandomField

__all__ = ["MbiFit", "clear_compiled", "fit_mbi", "import_mbi", "mbi_oracle"]


@dataclass(frozen=True)
class MbiFit:
    """What mbi learned.

    Attributes
    ----------
    theta : ndarray of shape (n_cells,)
        Log-potentials on the tables of the release.
    marginals : ndarray of shape (n_cells,)
        The probabilities mbi itself states for these tables, to check `theta` against.
    total : float
        The record count it used.
    seconds : float
        Time of the fit, until the marginals exist; with compilation where the shapes are new.
    """

    theta: np.ndarray
    marginals: np.ndarray
    total: float
    seconds: float


def import_mbi() -> Any:
    """Import mbi with JAX in float64 and without the compilation cache on disk it warns about."""
    import jax

    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_enable_compilation_cache", False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import mbi
    return mbi


def clear_compiled() -> None:
    """Forget what JAX compiled, so that the next fit is a first call again."""
    import jax

    jax.clear_caches()


def fit_mbi(
    noisy: NoisyMarginals,
    *,
    solver: Literal["mirror_descent", "lbfgs", "dual_averaging", "interior_gradient"] = "mirror_descent",
    loss: Literal["l1", "l2"] = "l2",
    iterations: int = 1000,
    weights: Literal["noise", "unit"] = "noise",
) -> MbiFit:
    """Fit mbi's Markov random field to noisy tables.

    Parameters
    ----------
    noisy : NoisyMarginals
        Released tables. Their public total is passed on; without one mbi estimates its own.
    solver : {"mirror_descent", "lbfgs", "dual_averaging", "interior_gradient"}
        One of the classes of ``mbi.estimation``; its authors recommend ``MirrorDescent``.
    loss : {"l1", "l2"}
        Loss between the model's tables and the noisy ones; l1 is the likelihood of Laplace noise.
    iterations : int
        Iterations of the solver, a multiple of 50 (mbi rounds up to one).
    weights : {"noise", "unit"}
        The standard deviation each measurement declares: that of its noise, or mbi's default of 1. With
        equal noise in all tables both have the same minimum, but the l1 loss takes other steps to it.

    Returns
    -------
    MbiFit
    """
    mbi = import_mbi()
    import jax

    # Everything from the noisy tables on is the fit, as it is for the other methods.
    start = time.perf_counter()
    domain, measurements = _problem(mbi, noisy, weights)
    loss_function = mbi.marginal_loss.from_linear_measurements(measurements, domain, norm=loss)
    total = noisy.total if noisy.total is not None else mbi.estimation.minimum_variance_unbiased_total(measurements)
    name = {"lbfgs": "LBFGS"}.get(solver, solver.title().replace("_", ""))
    fitted = getattr(mbi.estimation, name)().estimate(domain, loss_function, known_total=float(total), iters=iterations)
    jax.block_until_ready(fitted.marginals.tables)
    seconds = time.perf_counter() - start
    theta, marginals = _to_our_layout(noisy, fitted)
    return MbiFit(theta, marginals, float(total), seconds)


def mbi_oracle(noisy: NoisyMarginals) -> tuple[Any, Any]:
    """mbi's default marginal oracle for the tables, compiled on call, and zero potentials to call it with."""
    mbi = import_mbi()
    domain, measurements = _problem(mbi, noisy, "unit")
    cliques = [m.clique for m in measurements]
    oracle = mbi.marginal_oracles.default_oracle(cliques, domain, has_constraints=False)
    return oracle, mbi.CliqueVector.zeros(domain, cliques)


def _problem(mbi: Any, noisy: NoisyMarginals, weights: str) -> tuple[Domain, list[LinearMeasurement]]:
    cliques = noisy.cliques
    domain = mbi.Domain(_names(range(len(cliques.variables))), cliques.cardinalities)
    deviations = np.sqrt(noisy.table_variance) if weights == "noise" else np.ones(cliques.n_cliques)
    measurements = [
        mbi.LinearMeasurement(table.ravel(), _names(scope), stddev=float(deviation))
        for table, scope, deviation in zip(cliques.split(noisy.counts), cliques.indices, deviations, strict=True)
    ]
    return domain, measurements


def _to_our_layout(noisy: NoisyMarginals, fitted: MarkovRandomField) -> tuple[np.ndarray, np.ndarray]:
    """mbi keeps one potential per maximal clique: give it to the first of our tables with these variables."""
    cliques = noisy.cliques
    waiting = {frozenset(clique): clique for clique in fitted.potentials.cliques}
    potentials, marginals = [], []
    for scope, shape in zip(cliques.indices, cliques.shapes, strict=True):
        names = _names(scope)
        clique = waiting.pop(frozenset(names), None)
        if clique is None:
            potentials.append(np.zeros(shape))
        else:
            table = np.asarray(fitted.potentials[clique].values, dtype=np.float64)
            potentials.append(np.transpose(table, [clique.index(name) for name in names]))
        projected = fitted.project(names).transpose(names)
        marginals.append(np.asarray(projected.values, dtype=np.float64) / float(fitted.total))
    if waiting:
        raise RuntimeError(f"mbi has potentials on cliques that are no table of the release: {list(waiting.values())}")
    return cliques.join(potentials), cliques.join(marginals)


def _names(indices: Any) -> tuple[str, ...]:
    # Padded, so that any sorting by name inside mbi keeps the order of the variables.
    return tuple(f"v{i:04d}" for i in indices)
