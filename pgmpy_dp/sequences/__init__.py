"""Markov chains from sequences of visits (Bernstein et al. 2017)."""

from typing import TYPE_CHECKING

from pgmpy_dp.front_door import front_door

ESTIMATORS = {
    "PrivateMarkovChain": "pgmpy_dp.sequences.private_markov_chain",
}

if TYPE_CHECKING:
    from pgmpy_dp.sequences.private_markov_chain import PrivateMarkovChain as PrivateMarkovChain

__getattr__, __dir__ = front_door(__name__, ESTIMATORS)
