"""CollectiveMAP: penalised, smoothed marginal likelihood of noisy tables.

The released tables are y = n + noise with n the unknown exact tables, so the likelihood of the
parameters is p(y; theta) = sum_n p(n; theta) p(y | n). Here n is approximated by independent normals
around N mu(theta), the parameters get heavy-tailed priors whose variances are learned from the release
itself (one per interaction and one per variable), and an entropy term guards models that the release
says little about. Why each part is there is told, with measurements, in maximum_a_posteriori.md.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from pgmpy_dp.inference.exact_or_loopy import Inference, InferenceEngine
from pgmpy_dp.inference.junction_tree import DEFAULT_MEMORY_LIMIT
from pgmpy_dp.inference.lbfgs import Solution, minimize_lbfgs
from pgmpy_dp.learning.empty_cells import with_empty_cells
from pgmpy_dp.learning.heavy_tailed_prior import PRIOR_TAIL, VARIANCE_SHAPE
from pgmpy_dp.learning.maximum_likelihood import Fit, finished_fit, first_sound_fit
from pgmpy_dp.learning.noisy_marginals import NoisyMarginals
from pgmpy_dp.learning.objective import ENTROPY_SHARE, MARGIN_SHARE, MOST_TO_START, CollectiveObjective
from pgmpy_dp.learning.tilted_family import TiltedEngine
from pgmpy_dp.shown import quantity

_CERTAIN = 20.0
"""Nats of evidence above the uniform model from which on a fit needs no second opinion."""

_CEILINGS = (1.0, 0.3)
"""Ceilings of the variances that are tried otherwise, as shares of what the uniform model's evidence speaks for."""

_PARSIMONY = 2.0
"""Nats by which a variance e times as large must be better: too large costs more than too small."""

STALLED_ROUND = 5.0
"""Preconditioned gradient with which no round should end: about 12 nats could still be gained along it."""


def collective_map(
    noisy: NoisyMarginals,
    *,
    entropy_share: float = ENTROPY_SHARE,
    margin_share: float = MARGIN_SHARE,
    n_rounds: int = 3,
    max_iter: int = 100,
    tol: float = 1e-5,
    memory_limit: int = DEFAULT_MEMORY_LIMIT,
    inference: Inference = "exact",
    base: np.ndarray | None = None,
    prior_tail: float = PRIOR_TAIL,
    variance_shape: float = VARIANCE_SHAPE,
    find_empty: bool = True,
    callback: Callable[[], None] | None = None,
) -> Fit:
    """Fit a log-linear model to noisy tables by maximum a posteriori.

    Parameters
    ----------
    noisy : NoisyMarginals
        Released tables with their noise.
    entropy_share : float in [0, 1)
        q: how much of the prior on interactions is replaced by the entropy term.
    margin_share : float in [0, 1]
        w: with 1 the entropy term pulls to the product of the margins, with 0 to the uniform model.
    n_rounds : int
        Alternations between estimating the prior variances and fitting the parameters.
    max_iter : int
        Iterations of L-BFGS in each round at most; where a fit starts takes up to 330 more.
    tol : float
        A round ends when an iteration lowers the objective by less than this share of it.
    memory_limit : int
        Bytes that inference may allocate.
    inference : {"exact", "loopy", "auto"} or LoopySettings
        Loopy belief propagation replaces the marginals, their derivative and the entropy by approximations; "auto"
        takes it where exact inference does not fit in `memory_limit`.
    base : ndarray of shape (n_cells,), optional
        Log-potentials that the priors shrink to. With an `entropy_share` above 0 the entropy term is then the
        divergence from the base model, which goes with ``margin_share=0`` only. Default: 0, the uniform model, but in
        tables of pairs with cells that are believed empty quasi-independence
        (:mod:`pgmpy_dp.learning.empty_cells`).
    prior_tail : float
        Tail parameter a > 0 of the pseudo-Huber prior: an effect of prior variance s is shrunk as by a normal prior
        below about sqrt(a s), and as by a Laplace prior above. At a given s, larger shrinks strong effects more
        (``inf`` is the normal prior) and smaller less; s is then learned. Main effects have a tenth of it.
    variance_shape : float
        Shape of the Gamma(shape, rate 1) prior of the prior variances, positive. Larger expects stronger effects;
        smaller stays nearer the uniform model where the release says little.
    find_empty : bool
        Whether the prior is centred on quasi-independence where cells are believed empty; not with a `base`, nor with
        levels, whose empty cells would count once at each.
    callback : callable, optional
        Called after each iteration.

    Returns
    -------
    Fit
        ``details`` holds "interaction_variances" (n_cliques,), "node_variances" (n_nodes,), "log_evidence" (an
        approximation of log p(y), in nats), and the arguments "prior_tail", "variance_shape" and "base", if one was
        passed, which the posterior needs. If cells are believed empty "empty_cells" has the tables without their noise,
        the centre of the priors, and the records that noise may hide.

    Raises
    ------
    ValueError
        If an argument is out of range or the tables carry no noise (see `maximum_likelihood` then).

    Examples
    --------
    >>> import numpy as np
    >>> from pgmpy_dp.inference.cliques import Cliques
    >>> cliques = Cliques(("a", "b"), (2, 2), (("a", "b"),))
    >>> noisy = NoisyMarginals(cliques, np.array([400.0, 110.0, 95.0, 405.0]), "laplace", np.array([5.0]), total=1000)
    >>> collective_map(noisy).model.marginal(["a"]).round(1)
    array([0.5, 0.5])
    """
    if noisy.noise == "none":
        raise ValueError('noisy must carry noise, got noise="none": use maximum_likelihood for exact tables')
    _require_prior(entropy_share, margin_share, prior_tail, variance_shape, tol)
    if n_rounds < 1 or max_iter < 1:
        raise ValueError(f"n_rounds and max_iter must be at least 1, got {n_rounds!r} and {max_iter!r}")
    centre: np.ndarray | None = None
    details: dict[str, Any] = {}
    if base is not None:
        if entropy_share > 0 and margin_share > 0:
            raise ValueError(
                f"base needs entropy_share=0 or margin_share=0, got {entropy_share!r} and {margin_share!r}"
            )
        base = _checked_base(base, noisy.cliques.n_cells)
        details = {"base": base}
    elif find_empty and not noisy.levels:
        noisy, centre, floors = with_empty_cells(noisy)
        base, details = centre, {} if centre is None else {"empty_cells": (noisy, centre, floors)}

    def fit(engine: InferenceEngine) -> Fit:
        tilted = engine if base is None else TiltedEngine(engine, base)
        problem = CollectiveObjective(
            noisy, entropy_share, margin_share, memory_limit, tilted, prior_tail, variance_shape, centre
        )
        solutions = fit_rounds(problem, n_rounds, max_iter=max_iter, tol=tol, callback=callback)
        solution, n_iter = solutions[-1], sum(solution.n_iter for solution in solutions)
        return finished_fit(
            engine,
            solution.x if base is None else solution.x + base,
            memory_limit,
            converged=solution.converged,
            status=f"{quantity(solutions, 'round')}, {quantity(n_iter, 'iteration')}; "
            f"the last round: {solution.status}",
            n_iter=n_iter,
            objective=solution.objective,
            details={
                "interaction_variances": problem.interaction_variances,
                "node_variances": problem.node_variances,
                "prior_tail": prior_tail,
                "variance_shape": variance_shape,
                "gradient_norm": solution.gradient_norm,
                "log_evidence": problem.log_evidence(solution.x),
            }
            | details,
            stalled=solution.n_iter < max_iter and solution.gradient_norm > STALLED_ROUND,
        )

    return first_sound_fit(noisy.cliques, inference, memory_limit, fit, noisy.impossible, noisy.levels)


def _require_prior(
    entropy_share: float, margin_share: float, prior_tail: float, variance_shape: float, tol: float
) -> None:
    if not 0 <= entropy_share < 1:
        raise ValueError(f"entropy_share must be in [0, 1), got {entropy_share!r}")
    if not 0 <= margin_share <= 1:
        raise ValueError(f"margin_share must be in [0, 1], got {margin_share!r}")
    if not 0 <= tol < 1:
        raise ValueError(f"tol must be in [0, 1), got {tol!r}")
    if not prior_tail > 0:
        raise ValueError(f"prior_tail must be positive (inf for a normal prior), got {prior_tail!r}")
    if not 0 < variance_shape < np.inf:
        raise ValueError(f"variance_shape must be positive and finite, got {variance_shape!r}")


def _checked_base(base: np.ndarray, n_cells: int) -> np.ndarray:
    base = np.asarray(base, dtype=np.float64)
    if base.shape != (n_cells,) or not np.isfinite(base).all():
        raise ValueError(f"base must be {quantity(n_cells, 'finite number')}, got shape {base.shape}")
    return base


def most_iterations(n_rounds: int = 3, max_iter: int = 100, n_fits: int = 1) -> int:
    """The limit of so many calls of `collective_map` together, for who shows how far they are.

    Examples
    --------
    >>> most_iterations(), most_iterations(n_fits=3)
    (830, 2490)
    """
    return n_fits * (MOST_TO_START + (n_rounds + len(_CEILINGS)) * max_iter)


def fit_rounds(
    problem: CollectiveObjective,
    n_rounds: int = 3,
    *,
    max_iter: int,
    tol: float,
    callback: Callable[[], None] | None = None,
) -> list[Solution]:
    """Learn prior variances and parameters in turn, and say how each round ended; arguments as for `collective_map`."""
    fit_round = partial(_fit_round, problem, max_iter=max_iter, decrease_tol=tol, callback=callback)
    solutions = [_first_round(problem, fit_round, problem.start(callback))]
    while len(solutions) < n_rounds and solutions[-1].n_iter > 0:  # without a step the next would be the same
        solutions.append(fit_round(solutions[-1].x))
    return solutions


def _fit_round(problem: CollectiveObjective, start: np.ndarray, **options: Any) -> Solution:
    """Learn prior variances at the present parameters, then the parameters under these."""
    problem.adapt(start)
    return minimize_lbfgs(
        problem.value_and_gradient,
        start,
        gradient_tol=1e-8,
        expect_decrease=True,
        memory=20,
        scale=problem.preconditioner,
        **options,
    )


def _first_round(
    problem: CollectiveObjective,
    fit_round: Callable[[np.ndarray], Solution],
    start: np.ndarray,
) -> Solution:
    """The first round, which also settles how large the prior variances of interactions may become.

    A fit makes the cells that the noise happened to raise more sensitive than the others, so the evidence at a
    fitted point is for too large variances, and where the signal is weak the rounds would drive one another up:
    on one of 300 weak releases, to six times the divergence of the uniform model. Where the fit does not have
    far more evidence than the uniform model, it is compared with fits under a ceiling: the variance that the
    evidence at the uniform model speaks for, or a fraction of it.
    """
    solution = fit_round(start)
    if problem.log_evidence(solution.x) > problem.uniform_evidence + _CERTAIN:
        return solution
    candidates = []
    for share in (np.inf, *_CEILINGS):
        problem.ceiling = share * problem.uniform_variance
        if share < np.inf and problem.ceiling_binds(start):  # otherwise it would be the fit without a ceiling
            solution = fit_round(start)
        size = float(np.log(problem.interaction_variances).mean())
        candidates.append((problem.log_evidence(solution.x) - _PARSIMONY * size, problem.ceiling, solution))
    _, problem.ceiling, solution = max(candidates, key=lambda candidate: candidate[0])
    return solution
