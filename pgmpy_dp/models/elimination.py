"""pgmpy's variable elimination, with conditional answers of undirected models that sum to 1."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from pgmpy.factors.discrete import DiscreteFactor
from pgmpy.models import DiscreteMarkovNetwork

from pgmpy_dp.inference.conditioning import ImpossibleEvidence
from pgmpy_dp.models.answers import Answers

with warnings.catch_warnings():
    # pgmpy warns of its own modules, which are not used here.
    warnings.simplefilter("ignore", FutureWarning)
    from pgmpy.inference import VariableElimination as _VariableElimination


class VariableElimination(_VariableElimination):
    """pgmpy's ``VariableElimination``, with normalised answers and virtual evidence for all models.

    pgmpy divides by the probability of the evidence where the model is a Bayesian network, and leaves answers of a
    Markov network as they are: products that do not sum to 1. Of a Markov network it passes over virtual evidence. What
    is inherited is pgmpy's.

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
    >>> VariableElimination(model).map_query(["rain"], {"wet": {"no": 0.1, "yes": 0.9}}, show_progress=False)
    {'rain': 'yes'}
    """

    def query(
        self, variables: Sequence, evidence: Any = None, virtual_evidence: Any = None, *more: Any, **options: Any
    ) -> Any:
        """Compute the distribution of some variables given evidence about others.

        Parameters
        ----------
        variables : list of nodes
        evidence : dict of node to state, optional
            Of a `MarkovNetwork` all that its `query` takes: numbers and days, which count as the cell that they are in,
            ranges, sets of states, and likelihoods of them.
        virtual_evidence : list of TabularCPD or DiscreteFactor, optional
            Each of one variable: the likelihood of the evidence in each of its states. The query may ask about it too.
        *more, **options
            As of pgmpy's.

        Returns
        -------
        DiscreteFactor, or dict of them with ``joint=False``
            Each sums to 1.

        Raises
        ------
        ValueError
            As pgmpy's; for evidence that `MarkovNetwork.query` refuses.
        ImpossibleEvidence
            If the evidence has the probability 0; a ValueError.
        """
        known, likely = dict(evidence or {}), []
        if isinstance(self.model, Answers):
            counted = self.model.counted(known)
            hard = [name for name, one in counted.items() if np.count_nonzero(one.likely) == 1 and one.level is None]
            likely = [(name, one.likely) for name, one in counted.items() if name not in hard]
            known = {name: self.model.states[name][counted[name].likely.argmax()] for name in hard}
        if virtual_evidence and isinstance(self.model, DiscreteMarkovNetwork):
            self._check_virtual_evidence(virtual_evidence)
            likely += [(one.variables[0], self._in_order(one)) for one in virtual_evidence]
        model = self.model.copy() if likely else self.model
        for name, weights in likely:
            # Into a factor that has the variable: two equal factors may count once in pgmpy.
            factor = next(factor for factor in model.factors if name in factor.variables)
            names = {name: factor.state_names[name]}
            factor.product(DiscreteFactor([name], [len(weights)], weights, state_names=names))
        engine: Any = _VariableElimination(model) if likely else super()
        result = engine.query(variables, known, virtual_evidence, *more, **options)
        for factor in result.values() if isinstance(result, dict) else (result,):
            total = float(np.sum(factor.values))
            if not total > 0:
                raise ImpossibleEvidence(f"evidence={evidence!r} has the probability 0 in the model; leave some out")
            factor.values = factor.values / total
        return result

    def map_query(
        self, variables: Any = None, evidence: Any = None, virtual_evidence: Any = None, *order: Any, **options: Any
    ) -> dict[Hashable, Any]:
        """Find the most likely joint state of some variables given evidence about others.

        Parameters
        ----------
        variables, evidence, virtual_evidence
            As of `query`.
        *order, **options
            As of pgmpy's: ``elimination_order`` and ``show_progress``.

        Returns
        -------
        dict of node to state

        Raises
        ------
        ValueError
            As `query`.
        """
        distribution = self.query(variables or (), evidence, virtual_evidence, *order, joint=True, **options)
        return dict(distribution.assignment([int(np.argmax(distribution.values))])[0])

    def _in_order(self, likelihood: DiscreteFactor) -> np.ndarray:
        """Likelihoods in the order of the model's states, if they name these; else as they are."""
        (name,), weights = likelihood.variables, np.ravel(likelihood.values)
        if not (weights >= 0).all():
            raise ValueError(
                f"virtual_evidence has {weights.tolist()} of {name!r}; pass likelihoods that are not negative"
            )
        states, named = list(self.model.states[name]), list(likelihood.state_names[name])
        return weights[[named.index(state) for state in states]] if set(named) == set(states) else weights
