"""The models whose far tables are timed are as wide as they are said to be, and what is timed is right."""

import math

import pytest

from benchmarks import far_tables
from pgmpy_dp.inference.sum_product import inference_size


@pytest.mark.parametrize("kind", far_tables.KINDS)
def test_cliques_are_as_large_as_stated_and_tables_sum_to_one(kind, monkeypatch):
    monkeypatch.setattr(far_tables, "MOST_CELLS", 500)
    model = far_tables.made_up(kind, 40, 0)
    size = inference_size(model.cliques)
    largest = [model.cliques.cardinalities[v] for v in size.largest_clique]
    assert 100 < math.prod(largest) <= 500
    found = far_tables.measure(kind, 40, 3, 20)
    assert found["cells"] == size.cells
    assert found["off"] < 1e-12
