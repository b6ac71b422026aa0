"""Sparse inverse covariance matrices (Wang, Huai and Xu 2018)."""

from typing import TYPE_CHECKING

from pgmpy_dp.front_door import front_door

ESTIMATORS = {
    "PrivateGraphicalLasso": "pgmpy_dp.gaussian.private_graphical_lasso",
}

if TYPE_CHECKING:
    from pgmpy_dp.gaussian.private_graphical_lasso import PrivateGraphicalLasso as PrivateGraphicalLasso

__getattr__, __dir__ = front_door(__name__, ESTIMATORS)
