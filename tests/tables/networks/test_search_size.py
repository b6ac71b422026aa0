"""What a search is expected to take, from public numbers."""

import pytest

from pgmpy_dp import Budget, Schema
from pgmpy_dp.estimators import PrivateNetwork
from pgmpy_dp.learning.options import settings_of
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.tables.networks import search_size
from pgmpy_dp.tables.networks.budget_shares import network_shares


@pytest.fixture(scope="module")
def shares():
    schema = Schema({f"v{i}": list(range(2 + 3 * (i % 6))) for i in range(60)})
    budget = Budget(epsilon=1.0, delta=1e-10)
    return network_shares(schema, Adjacency.ADD_REMOVE, settings_of(PrivateNetwork()), budget)


class TestManyRecords:
    """As benchmarks.census_size has them: minutes, and a few bytes for each cell."""

    def test_a_census_takes_minutes_and_gigabytes(self, shares, monkeypatch):
        monkeypatch.setattr(search_size, "MOST_KEPT", 1 << 32)
        size = search_size.network_size(shares, 55e6)
        assert 5 * 60 < size.seconds < 60 * 60 and 3.3 < size.memory_bytes / 1e9 < 13

    def test_what_is_not_kept_is_read_in_every_round(self, shares, monkeypatch):
        monkeypatch.setattr(search_size, "MOST_KEPT", 1 << 32)
        kept = search_size.network_size(shares, 55e6)
        monkeypatch.setattr(search_size, "MOST_KEPT", 1 << 30)
        again = search_size.network_size(shares, 55e6)
        reading = 55e6 * 60 * search_size._SECONDS_PER_CELL
        assert again.seconds - kept.seconds == pytest.approx((again.fits - 1) * reading)
        assert again.memory_bytes < kept.memory_bytes
