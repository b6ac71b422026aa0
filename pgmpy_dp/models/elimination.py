"""pgmpy's variable elimination, with conditional answers of undirected models that sum to 1."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from pgmpy.factors.discrete import DiscreteFactor

from pgmpy_dp.inference.conditioning import ImpossibleEvidence
from pgmpy_dp.models.answers import Answers

with warnings.catch_warnings():
    # pgmpy warns of its own modules, which are not used here.
    warnings.simplefilter("ignore", FutureWarning)
    from pgmpy.inference import VariableElimination as _VariableElimination


class VariableElimination(_VariableElimination):
    """pgmpy's ``VariableElimination``, whose `query` is normalised on undirected models too.

    pgmpy divides by the probability of the evidence where the model is a Bayesian network, and leaves answers of a
    Markov network as they are: products that do not sum to 1. What is inherited is pgmpy's.

    Parameters
    ----------
    model : MarkovNetwork, or any model that pgmpy's takes

    Examples
    --------
    >>> from pgmpy_dp import MarkovNetwork
    >>> model = MarkovNetwork([("rain", "wet")])
    >>> states = {"rain": ["no", "yes"], "wet": ["no", "yes"]}
    >>> model.add_factors(DiscreteFactor(["rain", "wet"], [2, 2], [6, 1, 1, 2], state_names=states))
    >>> VariableElimination(model).query(["rain"], {"wet": "yes"}, show_progress=False).values.round(3)
    array([0.333, 0.667])
    """

    def query(
        self,
        variables: Sequence[Hashable],
        evidence: Mapping[Hashable, Any] | None = None,
        *arguments: Any,
        **options: Any,
    ) -> DiscreteFactor | dict[Hashable, DiscreteFactor]:
        """Distribution of some variables given states of others.

        Parameters
        ----------
        variables : list of nodes
        evidence : dict of node to state, optional
            Of a `MarkovNetwork` with numbers and days also a value, which counts as the cell that it is in. (Ranges
            are for `MarkovNetwork.query`.)
        *arguments, **options
            As of pgmpy's.

        Returns
        -------
        DiscreteFactor, or dict of them with ``joint=False``
            Each sums to 1.

        Raises
        ------
        ValueError
            As pgmpy's; for evidence that `MarkovNetwork.query` refuses, and for a range.
        ImpossibleEvidence
            If the evidence has the probability 0; a ValueError.
        """
        known = dict(evidence or {})
        if isinstance(self.model, Answers):
            known = {name: self._state(name, given) for name, given in known.items()}
        found = super().query(variables, known, *arguments, **options)
        for factor in found.values() if isinstance(found, dict) else (found,):
            total = float(np.sum(factor.values))
            if not total > 0:
                raise ImpossibleEvidence(f"evidence={evidence!r} has the probability 0 in the model; leave some out")
            factor.values = factor.values / total
        return found

    def _state(self, name: Hashable, given: Any) -> Any:
        """The one state in which a value counts."""
        likely = self.model.likelihood(name, given)
        if np.count_nonzero(likely) != 1:
            raise ValueError(f"evidence has {name!r}: {given!r}, a range of several states; use MarkovNetwork.query")
        return self.model.states[name][int(likely.argmax())]
