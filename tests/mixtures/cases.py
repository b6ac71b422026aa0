"""How the generic tests fit Gaussian mixtures."""

from tests.estimators.case_base import case

MIXTURE = {"n_components": 2, "separation": 8.0, "scale": 1.0, "epsilon": 1.0, "delta": 1e-6}
CASES = [
    case("PrivateGaussianMixture", "vectors", **MIXTURE, n_blocks=20),
    case("PrivateGaussianMixture", "vectors", **{**MIXTURE, "scale": None}, n_blocks=20),
]
