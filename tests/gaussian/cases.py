"""How the generic tests fit Gaussian models."""

from tests.estimators.case_base import APPROX, PURE, RHO, case

LASSO = {"row_norm": 2.0}
MECHANISMS = {
    "double-wishart": PURE,
    "laplace": PURE,
    "frobenius": PURE,
    "goe": RHO,
    "one-sided-wishart": APPROX,
    "auto": APPROX,
}
CASES = [
    *[case("PrivateGraphicalLasso", "vectors", **LASSO, **how, mechanism=name) for name, how in MECHANISMS.items()],
    case("PrivateGraphicalLasso", "vectors", **LASSO, **RHO, center="private", center_radius=3.0),
    case("PrivateGraphicalLasso", "vectors", **LASSO, **PURE, perturb="output", penalty=0.2, n_records=50),
    case("PrivateLinearGaussian", "vectors", **LASSO, **RHO, center_radius=3.0),
    *[case("PrivateLinearGaussian", "vectors", **how, bounds=[(-4.0, 4.0)] * 2) for how in (PURE, APPROX)],
]
