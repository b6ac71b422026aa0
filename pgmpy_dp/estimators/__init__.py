"""The pgmpy-facing estimators: they join the privacy boundary to the models and keep no records.

They are imported when first used, as the front door is: what reads a model's file needs none of them.
"""

from typing import TYPE_CHECKING

from pgmpy_dp.front_door import front_door

_HOME = {
    "CollectiveEM": "pgmpy_dp.estimators.collective.collective_em",
    "CollectiveMAP": "pgmpy_dp.estimators.collective.collective_map",
    "EdgeVoting": "pgmpy_dp.estimators.votes.edge_voting",
    "PrivateMarkovChain": "pgmpy_dp.estimators.chains.private_markov_chain",
    "NaiveMLE": "pgmpy_dp.estimators.collective.naive_mle",
    "PrivateBinaryMRF": "pgmpy_dp.estimators.fields.private_binary_mrf",
    "PrivateBlockModel": "pgmpy_dp.estimators.communities.private_block_model",
    "PrivateChowLiu": "pgmpy_dp.estimators.networks.private_chow_liu",
    "PrivateGaussianMixture": "pgmpy_dp.estimators.mixtures.private_gaussian_mixture",
    "PrivateGraphicalLasso": "pgmpy_dp.estimators.gaussian.private_graphical_lasso",
    "PrivateIsing": "pgmpy_dp.estimators.fields.private_ising",
    "PrivateNetwork": "pgmpy_dp.estimators.networks.private_network",
    "PrivatePairwise": "pgmpy_dp.estimators.fields.private_pairwise",
    "PrivateSGD": "pgmpy_dp.estimators.collective.private_sgd",
    "StableStructure": "pgmpy_dp.estimators.votes.stable_structure",
}

__all__ = [
    "CollectiveEM",
    "CollectiveMAP",
    "EdgeVoting",
    "NaiveMLE",
    "PrivateBinaryMRF",
    "PrivateBlockModel",
    "PrivateChowLiu",
    "PrivateGraphicalLasso",
    "PrivateGaussianMixture",
    "PrivateIsing",
    "PrivateMarkovChain",
    "PrivateNetwork",
    "PrivatePairwise",
    "PrivateSGD",
    "StableStructure",
]

if TYPE_CHECKING:
    from pgmpy_dp.estimators.chains.private_markov_chain import PrivateMarkovChain
    from pgmpy_dp.estimators.collective.collective_em import CollectiveEM
    from pgmpy_dp.estimators.collective.collective_map import CollectiveMAP
    from pgmpy_dp.estimators.collective.naive_mle import NaiveMLE
    from pgmpy_dp.estimators.collective.private_sgd import PrivateSGD
    from pgmpy_dp.estimators.communities.private_block_model import PrivateBlockModel
    from pgmpy_dp.estimators.fields.private_binary_mrf import PrivateBinaryMRF
    from pgmpy_dp.estimators.fields.private_ising import PrivateIsing
    from pgmpy_dp.estimators.fields.private_pairwise import PrivatePairwise
    from pgmpy_dp.estimators.gaussian.private_graphical_lasso import PrivateGraphicalLasso
    from pgmpy_dp.estimators.mixtures.private_gaussian_mixture import PrivateGaussianMixture
    from pgmpy_dp.estimators.networks.private_chow_liu import PrivateChowLiu
    from pgmpy_dp.estimators.networks.private_network import PrivateNetwork
    from pgmpy_dp.estimators.votes.edge_voting import EdgeVoting
    from pgmpy_dp.estimators.votes.stable_structure import StableStructure

__getattr__, __dir__ = front_door(__name__, _HOME)
