"""How the generic tests fit block models of graphs."""

from tests.estimators.case_base import APPROX, PURE, RHO, case

CASES = [
    case("PrivateBlockModel", "graph", **PURE, method="randomized-response"),
    case("PrivateBlockModel", "graph", **RHO, method="noisy-power"),
    case("PrivateBlockModel", "graph", **PURE, method="exponential"),
    case("PrivateBlockModel", "graph", **APPROX, method="sdp"),
    case("PrivateBlockModel", "graph", **APPROX, method="sdp-exact"),
    case("PrivateBlockModel", "graph", **APPROX, method="sdp", analysis="published", vote=False),
]
