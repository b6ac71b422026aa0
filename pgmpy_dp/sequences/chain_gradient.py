"""Private stochastic gradient ascent on the likelihood of a time-homogeneous chain of users' sequences.

Each step asks for the noisy sum of the clipped gradients of a Poisson sample of the users, and moves the logits.
"""

from __future__ import annotations

import math

import numpy as np

from pgmpy_dp.learning.ascent import (
    KEPT,
    PARAMETER_UNIT,
    Ascent,
    ascend,
    largest_stable_rate,
    released_parameters,
)
from pgmpy_dp.learning.options import Settings
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.data.data_base import require_data_and_budget
from pgmpy_dp.private.sensitive import Release
from pgmpy_dp.sequences.operators.chain_gradients import ChainGradientCurator
from pgmpy_dp.sequences.operators.sequences import PrivateSequences

# Chosen on made-up chains of 3 to 40 states and 2,000 to 40,000 users, epsilon from .03 to 100, delta = 1/users.
_CLIP_NORM = 0.6  # .5 to .7 are as good; 1.0 is worse wherever noise matters
_HORIZON = 0.8  # half and twice of it cost a seventh to a third of the divergence
_FIRST = 0.25  # of a user's squared weights, for the beginnings
_CURVATURE = 0.5  # a user's weights are at most 1, and the covariance of one draw's indicators has no eigenvalue above
_STABLE = 0.8  # of the largest stable step; 1.05 and more fail on short chains, .5 costs a seventh at epsilon of 10


def run(data: PrivateSequences, settings: Settings, budget: Budget) -> Release:
    """Ascend the likelihood by noisy clipped gradients of users and release the averaged logits.

    Refuses a budget or numbers that this method cannot use, and a ledger that protects another unit.

    Parameters
    ----------
    settings : Settings
        Of :class:`~pgmpy_dp.estimators.PrivateMarkovChain`; units are users. `initial_share` is that of the beginnings
        in a user's squared weights, by default 0.25; the transitions have the rest. The likelihood has the same maximum
        whatever it is: pi and P share no parameter. Default `clip_norm`: 0.6; no gradient is longer than 2. Default
        `learning_rate`: from the noise.
    budget : Budget
        ``epsilon`` with ``delta``, or ``rho``.

    Returns
    -------
    Release
        ``kind="chain_logits"``; ``values`` are the logits of the first state, shape (K,), and of the next one, shape
        (K, K), rows by the state that is left, in units of ``public["parameter_unit"]`` (see :func:`parameters`), then,
        if the number of users was not public, a noisy count of them. ``public["path"]`` says how they were found.

    Notes
    -----
    Privacy
        *Unit.* A user: all rows with one value of the column ``data.unit``.

        *Sensitivity.* That of :class:`~pgmpy_dp.sequences.operators.chain_gradients.ChainGradientCurator`: a user's
        clipped gradient has l2 norm at most B, exactly, whatever the number of its visits.

        *Guarantee.* (epsilon, delta)-DP, or rho-zCDP, as
        :func:`~pgmpy_dp.private.curator.schedule.sampled_schedule` derives it, with users for records.

        *Source.* Abadi, Chu, Goodfellow, McMahan, Mironov, Talwar and Zhang 2016; Mironov, Talwar and Zhang 2019;
        Canonne, Kamath and Steinke 2020. Proof for the discrete Gaussian: ``private/curator/gradient.md``. Shares:
        Bernstein, McKenna, Sun, Sheldon, Hay and Miklau 2017, section 4.2, after He et al. 2015.

        *Side channels.* Sampling and noise use the operating system's randomness. A step on an empty sample, or
        without users, is noise like any other. Running time depends on the number of users and of their visits.

    Examples
    --------
    >>> import pandas as pd
    >>> from pgmpy_dp.estimators import PrivateMarkovChain
    >>> from pgmpy_dp.learning.options import settings_of
    >>> frame = pd.DataFrame({"user": range(2000), "sequence": ["a a b", "b b b a"] * 1000})
    >>> data = PrivateSequences(frame, {"page": ["a", "b"]}, ledger=Budget(epsilon=1.0, delta=1e-4))
    >>> settings = settings_of(PrivateMarkovChain(method="sgd"))
    >>> initial, transition = parameters(run(data, settings, Budget(epsilon=1.0, delta=1e-4)))
    >>> (np.exp(transition) / np.exp(transition).sum(axis=1, keepdims=True)).round(1)
    array([[0.5, 0.5],
           [0.3, 0.7]])
    """
    require_data_and_budget(data, PrivateSequences, budget, example="a Budget, e.g. Budget(rho=0.1)")
    settings = settings.filled(**KEPT)
    if settings.initial_share is None:
        settings = settings.but(initial_share=_FIRST)
    (variable,) = data.schema.variables
    k = data.schema.cardinality(variable)
    curator = ChainGradientCurator(
        data,
        budget,
        _CLIP_NORM if settings.clip_norm is None else settings.clip_norm,
        settings.initial_share,
        n_steps=settings.n_steps,
        batch_rate=settings.batch_rate,
        count_share=settings.count_share,
        random_state=settings.random_state,
    )
    steps = ascend(
        settings,
        curator,
        curator.n_cells,
        public_count=data.n_users,
        gradient=curator.step,
        default_rate=lambda _, variance: _default_learning_rate(settings, k, variance),
    )
    asked = settings.public(budget, "initial_share", "count_share")

    def release(found: Ascent) -> Release:
        public = {"parameter_unit": PARAMETER_UNIT, "settings": asked, "path": found.path}
        logits = {"initial": found.parameters[:k], "transitions": found.parameters[k:].reshape(k, k)}
        return curator.release("chain_logits", public, logits | curator.called("n_users"))

    return curator.following(steps, release)


def parameters(release: Release) -> tuple[np.ndarray, np.ndarray]:
    """Logits of a release of this learner: of the first state, shape (K,), and of the next one, shape (K, K)."""
    initial, transition = released_parameters(release, "chain_logits", "initial", "transitions")
    return initial, transition


def _default_learning_rate(settings: Settings, n_states: int, variance: float) -> float:
    """As far as the noise lets the logits go, and as steps stay stable."""
    # The default learning rate is `min(h, 0.8 sqrt(h K**2)) / n_steps` with h = 1/(v K**2) and v the variance of the
    # mean of all steps' noises: as far as the noise lets the logits go. It is at most 0.8 times `4 (1 + m)/(1 - m)`,
    # from where on steps with momentum m are unstable on a log-likelihood of the largest possible curvature, 1/2
    # (`largest_stable_rate`). It depends on public and noisy numbers alone.
    k = n_states * n_states
    h = 1.0 / (variance * k)
    stable = largest_stable_rate(settings.momentum, _CURVATURE)
    return min(_STABLE * stable, min(h, _HORIZON * math.sqrt(h * k)) / settings.n_steps)
