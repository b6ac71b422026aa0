"""Ising, pairwise and binary t-wise Markov random fields, parameters and structure (Zhang et al. 2020)."""

from typing import TYPE_CHECKING

from pgmpy_dp.front_door import front_door

ESTIMATORS = {
    "EdgeVoting": "pgmpy_dp.fields.votes.edge_voting",
    "PrivateBinaryMRF": "pgmpy_dp.fields.private_binary_mrf",
    "PrivateIsing": "pgmpy_dp.fields.private_ising",
    "PrivateLogisticRegression": "pgmpy_dp.fields.private_logistic_regression",
    "PrivatePairwise": "pgmpy_dp.fields.private_pairwise",
    "StableStructure": "pgmpy_dp.fields.votes.stable_structure",
}

if TYPE_CHECKING:
    from pgmpy_dp.fields.private_binary_mrf import PrivateBinaryMRF as PrivateBinaryMRF
    from pgmpy_dp.fields.private_ising import PrivateIsing as PrivateIsing
    from pgmpy_dp.fields.private_logistic_regression import PrivateLogisticRegression as PrivateLogisticRegression
    from pgmpy_dp.fields.private_pairwise import PrivatePairwise as PrivatePairwise
    from pgmpy_dp.fields.votes.edge_voting import EdgeVoting as EdgeVoting
    from pgmpy_dp.fields.votes.stable_structure import StableStructure as StableStructure

__getattr__, __dir__ = front_door(__name__, ESTIMATORS)
