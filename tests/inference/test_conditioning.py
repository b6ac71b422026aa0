"""Conditioning against the joint table."""

import itertools

import numpy as np
import pytest

from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.conditioning import conditioned
from pgmpy_dp.inference.log_linear import LogLinearModel

CLIQUES = Cliques(("a", "b", "c", "d"), (2, 3, 2, 2), (("a", "b"), ("c", "b"), ("a",), ("d",)))
MODEL = LogLinearModel(CLIQUES, np.random.default_rng(0).normal(size=CLIQUES.n_cells))
JOINT = MODEL.marginal(["a", "b", "c", "d"])


@pytest.mark.parametrize("known", [("b",), ("a", "b"), ("d",), ("a", "c", "d"), ("c", "b")])
def test_it_is_the_slice_of_the_joint_table(known):
    names = CLIQUES.variables
    left = [name for name in names if name not in known]
    for states in itertools.product(*(range(CLIQUES.cardinalities[names.index(name)]) for name in known)):
        evidence = dict(zip(known, states, strict=True))
        expected = JOINT[tuple(evidence.get(name, slice(None)) for name in names)]
        found = conditioned(MODEL, evidence)
        assert found.cliques.variables == tuple(left)
        np.testing.assert_allclose(found.marginal(left), expected / expected.sum(), atol=1e-12)


def test_bad_evidence():
    with pytest.raises(ValueError, match="not a variable and state"):
        conditioned(MODEL, {"a": 2})
    with pytest.raises(ValueError, match="not a variable and state"):
        conditioned(MODEL, {"e": 0})
    with pytest.raises(ValueError, match="all variables"):
        conditioned(MODEL, dict.fromkeys(CLIQUES.variables, 0))
