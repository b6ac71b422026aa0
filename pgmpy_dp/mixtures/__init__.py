"""Centres and covariances of Gaussian mixtures (Chen et al. 2023)."""

from typing import TYPE_CHECKING

from pgmpy_dp.front_door import front_door

ESTIMATORS = {
    "PrivateGaussianMixture": "pgmpy_dp.mixtures.private_gaussian_mixture",
}

if TYPE_CHECKING:
    from pgmpy_dp.mixtures.private_gaussian_mixture import PrivateGaussianMixture as PrivateGaussianMixture

__getattr__, __dir__ = front_door(__name__, ESTIMATORS)
