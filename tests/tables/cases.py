"""How the generic tests fit estimators of discrete tables."""

from tests.estimators.case_base import APPROX, PURE, RHO, case

CASES = [
    case("NaiveMLE", **PURE),
    case("CollectiveMAP", **RHO),
    case("CollectiveEM", **PURE, published=True),
    case("CollectiveEM", **APPROX, published=True, e_step="nlbp", n_iter=5),
    case("CollectiveEM", **APPROX),
    case("PrivateSGD", **APPROX, n_steps=5),
    case("PrivateSGD", **RHO, n_steps=5),
    case("PrivateChowLiu", **PURE, method="selection"),
    case("PrivateChowLiu", **RHO, method="tables", prune=True),
    case("PrivateNetwork", **RHO),
    case("PrivateNetwork", **PURE),
]
