"""Tables counted on a device are those counted here; how far they move is tested in test_contingency_sensitivity.py."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from pgmpy import config

from pgmpy_dp import Budget
from pgmpy_dp.private.data import contingency
from pgmpy_dp.private.data.contingency import count, count_all
from pgmpy_dp.private.data.table import PrivateTable, contingency_tables
from tests.torch_device import DEVICE

pytest.importorskip("torch")


@pytest.fixture
def torch_backend():
    config.set_backend("torch", device=DEVICE)
    yield
    config.set_backend("numpy")


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32, np.int64])
@pytest.mark.parametrize("n", [0, 1, 1000])
@pytest.mark.parametrize("columns", [(0,), (2, 0), (1, 2, 0)])
@pytest.mark.parametrize("order", ["C", "F"])
# The second table has more cells than a byte can number: a byte stays one beside a tensor without dimensions.
@pytest.mark.parametrize("sizes", [[2, 5, 3], [20, 40, 250]])
def test_equal_to_counting_here(dtype, n, columns, order, sizes, monkeypatch, request):
    monkeypatch.setattr(contingency, "_ROWS_ON_DEVICE", 300)
    codes = np.asarray(np.random.default_rng(n).integers(0, sizes, (n, 3)), dtype=dtype, order=order)
    codes.flags.writeable = False
    here = count(codes, sizes, columns)
    request.getfixturevalue("torch_backend")
    there = count(codes, sizes, columns)
    assert there.dtype == here.dtype == np.int64 and there.shape == here.shape
    assert np.array_equal(here, there) and here.sum() == n


def test_of_private_data(torch_backend, monkeypatch):
    used = []
    on_device = contingency._count_on_device
    monkeypatch.setattr(contingency, "_count_on_device", lambda *a: used.append(1) or on_device(*a))
    frame = pd.DataFrame({"a": [0, 1, 1, 7], "b": ["x", "y", "y", "x"]})
    table = PrivateTable(frame, {"a": [0, 1], "b": ["x", "y"]}, ledger=Budget(epsilon=1.0))
    [counts] = contingency_tables(table, [["b", "a"]])
    assert counts.value.tolist() == [[1, 0], [0, 2]] and used


@pytest.mark.parametrize("n", [0, 1, 63, 64, 65, 300])
def test_many_tables_at_once_are_those_counted_one_by_one(n, monkeypatch):
    monkeypatch.setattr(contingency, "_BITS_AT_ONCE", 1)
    sizes = [2, 3, 1, 2, 5, 300]
    codes = np.random.default_rng(n).integers(0, sizes, (n, len(sizes))).astype(np.uint16)
    scopes = [scope for order in (1, 2, 3) for scope in itertools.permutations(range(len(sizes)), order)]
    for scope, table in zip(scopes, count_all(codes, sizes, scopes), strict=True):
        expected = count(codes, sizes, scope)
        assert table.dtype == np.int64
        assert table.shape == expected.shape
        np.testing.assert_array_equal(table, expected)
