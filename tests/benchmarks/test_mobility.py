"""The mobility benchmark's own counting agrees with the boundary's, and a method on records finds its place."""

import numpy as np
import pytest

from benchmarks import mobility
from benchmarks.mobility import chain_maximum_likelihood
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.data.contributions import GRID
from pgmpy_dp.sequences.operators.sequences import PrivateSequences, chain_tables, read_sequences


@pytest.fixture
def few(monkeypatch):
    frame, schema = mobility.read_msnbc()
    monkeypatch.setattr(mobility, "read_msnbc", lambda: (frame.iloc[:1500], schema))
    return frame.iloc[:1500], schema


def test_shares_and_counts_are_those_of_the_boundary(few):
    frame, schema = few
    _, lengths, codes = read_sequences(frame, schema, unit="user")
    sequences = np.split(codes, np.cumsum(lengths)[:-1])
    data = PrivateSequences(frame, schema, ledger=Budget(epsilon=1.0))
    for table, exact in zip(mobility.shares(sequences, 17), chain_tables(data), strict=True):
        np.testing.assert_allclose(exact.value / GRID, table, atol=len(frame) / GRID)
    for table, exact in zip(mobility.counts(sequences, 17), chain_tables(data, 10**6, 1), strict=True):
        assert np.array_equal(exact.value, table)


@pytest.mark.slow  # a benchmark, whole
@pytest.mark.filterwarnings("ignore:random_state")
def test_every_method_gets_a_row_and_the_report_a_table(few, monkeypatch, tmp_path):
    seen = []

    def from_records(data, budget, seed):
        seen.append((data.n_users, budget, seed))
        return chain_maximum_likelihood(*(s.value for s in chain_tables(data)), 1.0)

    monkeypatch.setitem(mobility.FROM_RECORDS, "a method on records", from_records)
    monkeypatch.setattr(mobility, "EPSILONS", (0.1, 1.0))
    monkeypatch.setattr(mobility, "RULES", {"shares": {}, "1 segment of 6": mobility.RULES["1 segment of 6"]})
    mobility.main(["--out", str(tmp_path), "--splits", "2"])
    text = (tmp_path / "mobility.md").read_text()
    # Once to warm up, once to be timed.
    assert [budget.epsilon for _, budget, _ in seen] == [0.1, 0.1, 1.0, 1.0] * 2
    assert all(n > 1000 and budget.delta == 1 / n for n, budget, _ in seen)
    for method in (
        *mobility.FROM_TABLES,
        *mobility.BOTH_NOISES,
        "a method on records",
        "non-private, visits",
        "uniform",
    ):
        assert f"| {method} |" in text
    assert "nan" not in text
