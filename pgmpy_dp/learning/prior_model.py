"""CollectiveMAP with a prior model: last year's release, public records of the same sort, a guess.

The prior's log-potentials take the place of 0. The fit learns deviations from them, and each interaction and variable
deviates as far as the release speaks for (`collective_objective`). The release also decides whether the prior is used
at all. The fit with it must have clearly more evidence than the fit without it, and its deviations must be clearly
smaller than the interactions of the other; else the fit without it is returned. So a prior of something altogether
different costs time and hardly any accuracy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.exact_or_loopy import Inference, InferenceUnavailable
from pgmpy_dp.inference.junction_tree import DEFAULT_MEMORY_LIMIT, InferenceTooLarge
from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.learning.empty_cells import with_empty_cells
from pgmpy_dp.learning.interaction_split import free_share
from pgmpy_dp.learning.maximum_a_posteriori import collective_map
from pgmpy_dp.learning.maximum_likelihood import Fit, maximum_likelihood
from pgmpy_dp.learning.noise_likelihood import log_density
from pgmpy_dp.learning.noisy_marginals import NoisyMarginals

_DOUBT = 1e-5
"""Share of the uniform distribution in a prior: what it calls impossible is very unlikely instead."""

MOST_FITS_WITH_PRIOR = 3
"""Calls of `collective_map`: without the prior, with it, and once more where it is not used."""

_CONVINCING = 3.0
"""Nats of evidence by which the fit with a prior must be ahead of the one without: a wrong prior is taken for a right
one with a probability of at most exp(-3), as far as the evidence is exact."""


_NOTHING_KNOWN = 1e4
"""Noise of a table that was not measured, in numbers of records."""

_NEARER = 0.8
"""The largest ratio of the variance of deviations from the prior to that of interactions without it. Evidence
alone can prefer a prior of the right signs and twice the strength, with which strong data are fitted worse."""


def collective_map_with_prior(
    noisy: NoisyMarginals,
    tables: Sequence[np.ndarray] | None,
    *,
    memory_limit: int = DEFAULT_MEMORY_LIMIT,
    inference: Inference = "exact",
    margin_share: float = 0.5,
    callback: Callable[[], None] | None = None,
    unmeasured: Mapping[tuple, np.ndarray] | None = None,
    **options: Any,
) -> Fit:
    """Fit as `collective_map` does, with deviations counted from a prior model if the release speaks for that.

    Parameters
    ----------
    noisy : NoisyMarginals
        Released tables with their noise.
    tables : sequence of ndarray, or None
        The prior's table for each table of `noisy` (`tables_of_prior`): probabilities. None is no prior.
    memory_limit, inference, margin_share, callback
        See `collective_map`. `margin_share` is of the fit without the prior; with it the entropy term is the
        divergence from the prior.
    unmeasured : mapping of scope to ndarray, optional
        Tables of the prior that the release lacks: where the release says nothing, the model follows the prior. If the
        prior is used the model has these tables too, after those of `noisy`.
    **options
        Further ones of `collective_map`.

    Returns
    -------
    Fit
        ``details`` has "prior_gain", the evidence of the fit with the prior less that of the one without, in nats;
        "prior_scale", the variances of deviations over those of interactions without it, in geometric mean; and, where
        the prior was used, "base", its log-potentials.

    Examples
    --------
    >>> cliques = Cliques(("a", "b"), (2, 2), (("a", "b"),))
    >>> noisy = NoisyMarginals(cliques, np.array([690.0, 15, 25, 285]), "laplace", np.array([20.0]), total=1000)
    >>> fit = collective_map_with_prior(noisy, [np.array([[0.7, 0.01], [0.01, 0.28]])])
    >>> "base" in fit.details, fit.model.marginal(["a"]).round(2)
    (True, array([0.7, 0.3]))
    """
    how: dict[str, Any] = {"memory_limit": memory_limit, "inference": inference, "callback": callback, **options}
    if tables is None:
        return collective_map(noisy, margin_share=margin_share, **how)
    # Evidence compares models of the same numbers, in which no noise has been replaced.
    alone = collective_map(noisy, margin_share=margin_share, find_empty=False, **how)
    chosen = alone.details["inference"].method if inference == "auto" else inference
    grown, unsaid = with_unmeasured(noisy, unmeasured or {})
    base = prior_potentials(
        grown.cliques, [*tables, *(unmeasured or {}).values()], memory_limit=memory_limit, inference=chosen
    )
    with_prior = collective_map(grown, base=base, margin_share=0.0, **how)
    gain = with_prior.details["log_evidence"] - unsaid - alone.details["log_evidence"]
    cliques = noisy.cliques
    weights = [free_share(shape) * size for shape, size in zip(cliques.shapes, cliques.sizes, strict=True)]
    learned = with_prior.details["interaction_variances"][: cliques.n_cliques]
    shrunk = np.log(learned / alone.details["interaction_variances"])
    scale = math.exp(np.average(shrunk, weights=weights)) if any(weights) else 1.0
    trusted = gain > _CONVINCING and scale < _NEARER
    fit, said = (with_prior, "with the prior") if trusted else (alone, "without the prior")
    if not trusted and with_empty_cells(noisy)[1] is not None:
        fit = collective_map(noisy, margin_share=margin_share, **how)
    return replace(
        fit,
        status=f"{fit.status}; {said}, which gains {gain:+.1f} nats of evidence",
        n_iter=alone.n_iter + with_prior.n_iter,
        details=fit.details | {"prior_gain": gain, "prior_scale": scale},
    )


def with_unmeasured(noisy: NoisyMarginals, tables: Mapping[tuple, np.ndarray]) -> tuple[NoisyMarginals, float]:
    """Add tables of which nothing is known to noisy ones, so that a model has them.

    Parameters
    ----------
    noisy : NoisyMarginals
    tables : mapping of scope to ndarray
        Probabilities, which take the place of counts, with noise of `_NOTHING_KNOWN` times the number of records.

    Returns
    -------
    noisy : NoisyMarginals
        The further tables come last.
    log_density : float
        That of the further tables, whatever the model.
    """
    if not tables:
        return noisy, 0.0
    scale = _NOTHING_KNOWN * noisy.n_records
    grown = noisy.beside(tables, scale)
    one = log_density(np.zeros(1), np.full(1, 1e-4 * scale**2), noisy.noise, np.full(1, scale))
    return grown, (grown.cliques.n_cells - noisy.cliques.n_cells) * float(one[0])


def prior_potentials(
    cliques: Cliques,
    tables: Sequence[np.ndarray],
    *,
    memory_limit: int = DEFAULT_MEMORY_LIMIT,
    inference: Inference = "exact",
) -> np.ndarray:
    """Log-potentials of the model on some tables that is nearest to a prior: it has the prior's tables.

    Parameters
    ----------
    cliques : Cliques
    tables : sequence of ndarray
        Probabilities, one for each table of `cliques`.
    memory_limit, inference
        See `maximum_likelihood`.

    Returns
    -------
    ndarray of shape (n_cells,)
        Of the model that minimises KL(prior || model), but for one part in 100,000 of the uniform distribution.

    Examples
    --------
    >>> base = prior_potentials(Cliques(("a",), (2,), (("a",),)), [np.array([0.8, 0.2])])
    >>> bool(np.isclose(base[0] - base[1], np.log(4.0), atol=1e-3))
    True
    """
    doubted = [(1 - _DOUBT) * table / table.sum() + _DOUBT / table.size for table in tables]
    target = cliques.join(doubted)
    return maximum_likelihood(cliques, target, memory_limit=memory_limit, inference=inference).model.theta


def tables_of_prior(prior: LogLinearModel, scopes: Sequence[Sequence[Any]], sizes: dict[Any, int]) -> list[np.ndarray]:
    """The prior's tables of some sets of variables.

    Parameters
    ----------
    prior : LogLinearModel
        With other tables, in general; a variable that it lacks is uniform and independent of all others.
    scopes : sequence of tuples of variables
    sizes : dict of variable to int
        Numbers of states of the variables that it lacks.

    Returns
    -------
    list of ndarray
        Probabilities; axes in the order of each scope. Of a set that the prior's inference cannot give (too large, or
        loopy) the product of its variables' own.

    Examples
    --------
    >>> prior = LogLinearModel(Cliques(("a", "b"), (2, 2), (("a", "b"),)), np.log([0.1, 0.2, 0.3, 0.4]))
    >>> tables_of_prior(prior, [("b", "c")], {"c": 2})[0].round(2)
    array([[0.2, 0.2],
           [0.3, 0.3]])
    """
    known = [tuple(name for name in scope if name in prior.cliques.position) for scope in scopes]
    wanted = list(dict.fromkeys(scope for scope in known if scope))
    one_way = list(dict.fromkeys((name,) for scope in wanted for name in scope))
    try:
        marginals = dict(zip(wanted, prior.marginals_of(wanted), strict=True))
    except (InferenceTooLarge, InferenceUnavailable):
        margins = dict(zip(one_way, prior.marginals_of(one_way), strict=True))
        marginals = {}
        for some in wanted:
            try:
                marginals[some] = prior.marginal(some)
            except (InferenceTooLarge, InferenceUnavailable):
                table = np.ones(())
                for name in some:
                    table = np.multiply.outer(table, margins[(name,)])
                marginals[some] = table
    tables = []
    for scope, held in zip(scopes, known, strict=True):
        table = marginals[held] if held else np.ones(())
        absent = [name for name in scope if name not in held]
        for name in absent:
            table = np.multiply.outer(table, np.full(sizes[name], 1.0 / sizes[name]))
        order = [*held, *absent]
        tables.append(table.transpose([order.index(name) for name in scope]))
    return tables
