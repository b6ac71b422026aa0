"""The main job: tables of discrete records learned, discovered, checked and previewed."""

from typing import TYPE_CHECKING

from pgmpy_dp.front_door import front_door

ESTIMATORS = {
    "CollectiveEM": "pgmpy_dp.tables.collective.collective_em",
    "CollectiveMAP": "pgmpy_dp.tables.collective.collective_map",
    "NaiveMLE": "pgmpy_dp.tables.collective.naive_mle",
    "PrivateChowLiu": "pgmpy_dp.tables.networks.private_chow_liu",
    "PrivateNetwork": "pgmpy_dp.tables.networks.private_network",
    "PrivateNetworkClassifier": "pgmpy_dp.tables.networks.private_network_classifier",
    "PrivateSGD": "pgmpy_dp.tables.collective.published.private_sgd",
}

if TYPE_CHECKING:
    from pgmpy_dp.tables.collective.collective_em import CollectiveEM as CollectiveEM
    from pgmpy_dp.tables.collective.collective_map import CollectiveMAP as CollectiveMAP
    from pgmpy_dp.tables.collective.naive_mle import NaiveMLE as NaiveMLE
    from pgmpy_dp.tables.collective.published.private_sgd import PrivateSGD as PrivateSGD
    from pgmpy_dp.tables.networks.private_chow_liu import PrivateChowLiu as PrivateChowLiu
    from pgmpy_dp.tables.networks.private_network import PrivateNetwork as PrivateNetwork
    from pgmpy_dp.tables.networks.private_network_classifier import PrivateNetworkClassifier as PrivateNetworkClassifier

__getattr__, __dir__ = front_door(__name__, ESTIMATORS)
