"""A log-linear family around a base measure: exp(theta . n + base . n), with all fits free to pull theta to 0."""

from __future__ import annotations

from typing import Any

import numpy as np


class TiltedEngine:
    """An inference engine whose theta is counted from `base` instead of from the uniform model.

    Parameters
    ----------
    engine : SumProduct
        Or any engine with ``calibrate`` and ``derivative``; everything else is looked up in it.
    base : ndarray of shape (n_cells,)
        Log-potentials of the model that theta = 0 stands for. Penalties and priors on theta then shrink towards it.

    Examples
    --------
    >>> from pgmpy_dp.inference.belief_propagation import SumProduct
    >>> from pgmpy_dp.inference.cliques import Cliques
    >>> engine = TiltedEngine(SumProduct(Cliques(("a",), (2,), (("a",),))), np.log([0.8, 0.2]))
    >>> engine.calibrate(np.zeros(2))[0].round(3)
    array([0.8, 0.2])
    """

    def __init__(self, engine: Any, base: np.ndarray) -> None:
        self.engine, self.base = engine, base

    def calibrate(self, theta: np.ndarray) -> tuple[np.ndarray, float]:
        """Marginals and log-partition function of theta + base."""
        return self.engine.calibrate(theta + self.base)

    def derivative(self, direction: np.ndarray) -> np.ndarray:
        """Directional derivative of the marginals at the last calibration."""
        return self.engine.derivative(direction)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)
