"""Gaussian graphical models (Wang, Huai and Xu 2018) and Gaussian Bayesian networks."""

from typing import TYPE_CHECKING

from pgmpy_dp.front_door import front_door

ESTIMATORS = {
    "PrivateGraphicalLasso": "pgmpy_dp.gaussian.private_graphical_lasso",
    "PrivateLinearGaussian": "pgmpy_dp.gaussian.private_linear_gaussian",
}

if TYPE_CHECKING:
    from pgmpy_dp.gaussian.private_graphical_lasso import PrivateGraphicalLasso as PrivateGraphicalLasso
    from pgmpy_dp.gaussian.private_linear_gaussian import PrivateLinearGaussian as PrivateLinearGaussian

__getattr__, __dir__ = front_door(__name__, ESTIMATORS)
