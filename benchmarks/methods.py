"""The methods that the benchmarks compare, each as one function of a noisy problem.

A method returns log-potentials and the seconds it took. Methods that look at the truth (an oracle
penalty, the best stop) say so in their name: nobody could run them, they show how much is left.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from benchmarks.divergence import kl_divergence
from benchmarks.mbi_adapter import fit_mbi
from benchmarks.private_sgd import fit_private_sgd
from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.learning.expectation_maximisation import collective_em
from pgmpy_dp.learning.maximum_a_posteriori import collective_map
from pgmpy_dp.learning.maximum_likelihood import maximum_likelihood, naive_mle, noise_aware_penalty
from pgmpy_dp.learning.noisy_marginals import NoisyMarginals
from pgmpy_dp.private.accounting import approx_to_zcdp
from pgmpy_dp.private.noise.additive import gaussian_scales
from pgmpy_dp.private.noise.samplers import discrete_gaussian
from pgmpy_dp.tables.collective.published.published_em import published_em

__all__ = [
    "LABELS",
    "MBI_ALL",
    "MBI_LBFGS",
    "MBI_MD",
    "MBI_MD_1000",
    "METHODS",
    "PAPER_METHODS",
    "SLOW",
    "Outcome",
    "Problem",
]


@dataclass(frozen=True)
class Problem:
    """One noisy draw of one population.

    Attributes
    ----------
    counts : ndarray of shape (n_cells,)
        Exact tables, for the non-private fit only.
    noisy : NoisyMarginals
        What every private method gets.
    loss : callable
        From log-potentials (n_cells,) to the score that is to be small; used by the oracle methods only.
    records : callable, optional
        Codes of the records that were counted, for methods that cannot learn from tables.
    """

    counts: np.ndarray
    noisy: NoisyMarginals
    loss: Callable[[np.ndarray], float]
    records: Callable[[], np.ndarray] | None = None

    @classmethod
    def with_truth(
        cls,
        truth: LogLinearModel,
        counts: np.ndarray,
        noisy: NoisyMarginals,
        records: Callable[[], np.ndarray] | None = None,
    ) -> Problem:
        """A problem scored by the exact Kullback-Leibler divergence from the true model."""

        def loss(theta: np.ndarray) -> float:
            # A diverged fit is a result of the method, not a failure of the benchmark.
            if np.isnan(theta).any() or np.isposinf(theta).any():
                return float("inf")
            return kl_divergence(truth, LogLinearModel(truth.cliques, theta))

        return cls(counts, noisy, loss, records)


@dataclass(frozen=True)
class Outcome:
    """What a method learned.

    Attributes
    ----------
    theta : ndarray of shape (n_cells,)
    seconds : float
    note : str
        How it ended, or what it chose.
    gap : float
        Largest difference between the marginals the method states and those of `theta`; 0 for ours.
    """

    theta: np.ndarray
    seconds: float
    note: str = ""
    gap: float = 0.0


Method = Callable[[Problem], Outcome]


def _uniform(problem: Problem) -> Outcome:
    return Outcome(np.zeros(problem.noisy.cliques.n_cells), 0.0)


def _random(problem: Problem) -> Outcome:
    """The paper's random estimator: marginals drawn at random, then potentials by maximum likelihood.

    It does not say how marginals are drawn. Here every table is a Dirichlet(1) draw, as the populations' potentials
    are; such tables contradict one another, so that only a penalty makes the maximum finite: NaiveMLE's of 1e-3.
    """
    cliques, rng = problem.noisy.cliques, np.random.default_rng(_seed(problem))
    tables = np.concatenate([rng.dirichlet(np.ones(size)) for size in cliques.sizes]) * problem.noisy.n_records
    drawn = NoisyMarginals(cliques, tables, "laplace", problem.noisy.scale, total=problem.noisy.total)
    return _timed(lambda: naive_mle(drawn, l2=1e-3))


def _non_private(problem: Problem) -> Outcome:
    return _timed(lambda: maximum_likelihood(problem.noisy.cliques, problem.counts))


def _naive(l2: float | None) -> Method:
    return lambda problem: _timed(lambda: naive_mle(problem.noisy, l2=l2))


def _naive_oracle(problem: Problem) -> Outcome:
    """NaiveMLE at the best of six penalties from lambda*/4 to 8 lambda*."""
    start = time.perf_counter()
    multiples = 2.0 ** np.arange(-2, 4)
    default = noise_aware_penalty(problem.noisy)
    thetas = [naive_mle(problem.noisy, l2=float(default * multiple)).model.theta for multiple in multiples]
    seconds = time.perf_counter() - start
    best = int(np.argmin([problem.loss(theta) for theta in thetas]))
    return Outcome(thetas[best], seconds, f"lambda* x {multiples[best]:g}")


def _em(problem: Problem) -> Outcome:
    return _timed(lambda: collective_em(problem.noisy))


def _em_best_stop(problem: Problem) -> Outcome:
    start = time.process_time()
    # Equal steps, small enough for the best of them to be near the best stop: 40 that reach 4 in log-potential.
    step = max(1.0, 0.1 * float(problem.noisy.scale.max()))
    fit = published_em(problem.noisy, stop=None, step=step, keep_path=True)
    seconds = time.process_time() - start
    losses = [problem.loss(theta) for theta in fit.details["path"]]
    best = int(np.argmin(losses))
    return Outcome(fit.details["path"][best], seconds, f"iteration {best} of {fit.n_iter}")


def _em_exact(problem: Problem) -> Outcome:
    return _timed(lambda: published_em(problem.noisy))


def _em_published(problem: Problem) -> Outcome:
    return _timed(lambda: published_em(problem.noisy, e_step="nlbp"))


def _collective_map(problem: Problem) -> Outcome:
    return _timed(lambda: collective_map(problem.noisy))


def _private_sgd(problem: Problem) -> Outcome:
    if problem.records is None:
        raise ValueError("PrivateSGD needs the records; leave it out of --methods")
    cliques, scale = problem.noisy.cliques, float(problem.noisy.scale[0])
    return Outcome(*fit_private_sgd(problem.records(), cliques, cliques.n_cliques / scale, _seed(problem)))


def _with_gaussian(fit: Callable) -> Method:
    """The same fit from tables of the same records with Gaussian noise, at the (epsilon, 1/N) that PrivateSGD gets."""

    def run(problem: Problem) -> Outcome:
        laplace, cliques = problem.noisy, problem.noisy.cliques
        epsilon, n = cliques.n_cliques / float(laplace.scale[0]), laplace.n_records
        (sigma,) = gaussian_scales([math.sqrt(cliques.n_cliques)], approx_to_zcdp(epsilon, 1.0 / n))
        noise = discrete_gaussian(np.zeros(cliques.n_cells), sigma, rng=np.random.default_rng(_seed(problem)))
        scale = np.full(cliques.n_cliques, sigma)
        gaussian = NoisyMarginals(cliques, problem.counts + noise, "gaussian", scale, total=laplace.total)
        return _timed(lambda: fit(gaussian))

    return run


def _seed(problem: Problem) -> int:
    """Another one for each draw, the same in every run."""
    return int(np.abs(problem.noisy.counts).sum())


def _mbi(**options) -> Method:
    def run(problem: Problem) -> Outcome:
        fit = fit_mbi(problem.noisy, **options)
        theta = fit.theta
        if not np.isfinite(theta).all():
            return Outcome(theta, fit.seconds, "log-potentials not finite", float("nan"))
        gap = np.abs(LogLinearModel(problem.noisy.cliques, theta).marginals() - fit.marginals).max()
        return Outcome(theta, fit.seconds, "", float(gap))

    return run


def _timed(fit: Callable) -> Outcome:
    start = time.process_time()  # one thread: the time of an idle core, whatever else the machine does
    result = fit()
    seconds = time.process_time() - start
    return Outcome(result.model.theta, seconds, f"{result.n_iter} iterations; {result.status}")


METHODS: Mapping[str, Method] = {
    "uniform": _uniform,
    "random": _random,
    "non_private": _non_private,
    "naive_1e-6": _naive(1e-6),
    "naive_1_n": lambda problem: _naive(1.0 / problem.noisy.n_records)(problem),
    "naive_1e-3": _naive(1e-3),
    "naive": _naive(None),
    "naive_oracle": _naive_oracle,
    "em": _em,
    "em_exact": _em_exact,
    "em_best_stop": _em_best_stop,
    "em_published": _em_published,
    "map": _collective_map,
    "naive_gaussian": _with_gaussian(naive_mle),
    "map_gaussian": _with_gaussian(collective_map),
    "sgd": _private_sgd,
    "mbi_l1_100": _mbi(loss="l1", iterations=100),
    "mbi_l1_1000": _mbi(loss="l1", iterations=1000),
    "mbi_l2_100": _mbi(loss="l2", iterations=100),
    "mbi_l2_1000": _mbi(loss="l2", iterations=1000),
    "mbi_l1_unit_100": _mbi(loss="l1", iterations=100, weights="unit"),
    "mbi_l1_unit_1000": _mbi(loss="l1", iterations=1000, weights="unit"),
    "mbi_lbfgs_l1": _mbi(solver="lbfgs", loss="l1", iterations=1000),
    "mbi_lbfgs_l2": _mbi(solver="lbfgs", loss="l2", iterations=1000),
}
"""Every method by name, in the order of the tables."""

LABELS: Mapping[str, str] = {
    "uniform": "uniform model",
    "random": "random marginals",
    "non_private": "non-private MLE",
    "naive_1e-6": "NaiveMLE, lambda = 1e-6",
    "naive_1_n": "NaiveMLE, lambda = 1/N",
    "naive_1e-3": "NaiveMLE, lambda = 1e-3",
    "naive": "NaiveMLE (lambda*)",
    "naive_oracle": "NaiveMLE, oracle lambda",
    "em": "CollectiveEM",
    "em_exact": "CollectiveEM as published (exact steps)",
    "em_best_stop": "CollectiveEM as published, best stop (oracle)",
    "em_published": "CollectiveEM as published (NLBP)",
    "map": "CollectiveMAP",
    "naive_gaussian": "NaiveMLE, Gaussian tables (delta = 1/N)",
    "map_gaussian": "CollectiveMAP, Gaussian tables (delta = 1/N)",
    "sgd": "PrivateSGD (delta = 1/N)",
    "mbi_l1_100": "mbi L1, 100 iterations",
    "mbi_l1_1000": "mbi L1, 1000 iterations",
    "mbi_l2_100": "mbi L2, 100 iterations",
    "mbi_l2_1000": "mbi L2, 1000 iterations",
    "mbi_l1_unit_100": "mbi L1, unit weights, 100 iterations",
    "mbi_l1_unit_1000": "mbi L1, unit weights, 1000 iterations",
    "mbi_lbfgs_l1": "mbi L-BFGS, L1",
    "mbi_lbfgs_l2": "mbi L-BFGS, L2",
}

MBI_MD = ("mbi_l1_100", "mbi_l1_1000", "mbi_l2_100", "mbi_l2_1000")
"""The four mirror-descent variants whose best, draw by draw, is "best mbi"."""

MBI_MD_1000 = ("mbi_l1_1000", "mbi_l2_1000")
MBI_LBFGS = ("mbi_lbfgs_l1", "mbi_lbfgs_l2")
MBI_ALL = (*MBI_MD, "mbi_l1_unit_100", "mbi_l1_unit_1000", *MBI_LBFGS)

PAPER_METHODS = (
    "uniform", "random", "non_private", "naive_1e-3", "naive", "em", "em_exact", "em_published", "map",
    "naive_gaussian", "map_gaussian", "sgd",
)  # fmt: skip
"""What the paper compares, and ours."""

SLOW = ("sgd", "em_published", "mbi_l1_unit_100", "mbi_l1_unit_1000", *MBI_LBFGS)
"""Methods that the full mode runs on the first draw of the first population of each setting only."""
