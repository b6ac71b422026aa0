"""How the generic tests fit random fields and votes on graphs."""

from tests.estimators.case_base import APPROX, PURE, RHO, case

FIELD = {"width": 1.0, "n_iter": 5}
VOTES = {"width": 2.0, "min_edge_weight": 0.4, "n_blocks": 10}
CASES = [
    *[
        case(name, **budget, **FIELD, method=method)
        for name in ("PrivateIsing", "PrivatePairwise", "PrivateBinaryMRF")
        for method, budget in (("moments", PURE), ("frank-wolfe", PURE))
    ],
    case("PrivateBinaryMRF", **RHO, width=1.0, method="moments", queries="pmw"),
    case("PrivateBinaryMRF", **PURE, width=1.0, method="moments", queries="sepfem"),
    case("PrivateLogisticRegression", **PURE, target="c", radius=4.0, n_iter=100),
    case("PrivateLogisticRegression", **RHO, target="c", radius=4.0, n_iter=5, published=True),
    *[
        case(name, **APPROX, **VOTES, learner=learner)
        for name in ("StableStructure", "EdgeVoting")
        for learner in ("logistic", "inverse-covariance", "chow-liu")
    ],
]
