"""How the generic tests fit Markov chains."""

from tests.estimators.case_base import PURE, RHO, case

CASES = [
    case("PrivateMarkovChain", "sequences", **PURE, method="map"),
    case("PrivateMarkovChain", "sequences", **RHO, method="naive", segment_length=3, max_segments=1),
    case("PrivateMarkovChain", "sequences", **PURE, method="naive"),
]
