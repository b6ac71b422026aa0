"""What a fit needs is there before anything is spent: the samplers, and a source that can be read."""

from __future__ import annotations

import sys
from unittest.mock import Mock

import pandas as pd
import pytest

from pgmpy_dp import Budget, PrivateSequences, PrivateTable, PrivateVectors
from pgmpy_dp.estimators import PrivateNetwork
from pgmpy_dp.learning.private_base import _exercise_blas
from pgmpy_dp.private.curator.column_curator import ColumnCurator
from pgmpy_dp.private.curator.table_curator import TableCurator
from pgmpy_dp.private.curator.vector_curator import VectorCurator
from pgmpy_dp.private.data.columns import PrivateColumns
from pgmpy_dp.private.noise.samplers import exercised
from pgmpy_dp.private.operators.record_count import RecordCount
from pgmpy_dp.schema import Number, Schema
from pgmpy_dp.sequences.operators.sequence_curator import SequenceCurator

RHO = Budget(rho=1.0)
FRAME = pd.DataFrame({"a": ["x", "y"] * 50, "v": [1.0, 2.0] * 50, "user": range(100), "sequence": ["x y"] * 100})


@pytest.mark.parametrize("missing", ["opendp.measurements", "opendp.measures"])
def test_opendp_is_loaded_before_the_charge(monkeypatch, missing):
    """It takes memory: under a limit of it the charge was made, and the first answer failed."""
    table = PrivateTable(FRAME, {"a": ["x", "y"]}, ledger=RHO)
    exercised.cache_clear()
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, missing, None)
        with pytest.raises(ImportError, match=missing):
            TableCurator(table, RHO, what="test", columns=["a"])
    assert table.ledger.entries == ()
    TableCurator(table, RHO, what="test", columns=["a"])


def test_blas_takes_its_memory_before_the_charge(monkeypatch):
    """Under a limit of it OpenBLAS ends the process, and SciPy's own tries for ever, at its first use."""
    table = PrivateTable(FRAME, {"a": ["x", "y"]}, ledger=RHO)
    _exercise_blas.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr("scipy.linalg.cholesky", Mock(side_effect=MemoryError))
        with pytest.raises(MemoryError):
            PrivateNetwork(rho=1.0).fit(table)
    assert table.ledger.entries == ()
    PrivateNetwork(rho=1.0).fit(table)
    assert len(table.ledger.entries) == 1


class TestABusyConnection:
    """Of DuckDB: with a result that nobody fetched to its end, it runs no other query."""

    KINDS = {
        "table": (
            lambda r: PrivateTable(r, {"a": ["x", "y"]}, ledger=RHO),
            TableCurator,
            lambda c: c.ask(RecordCount(), 1),
        ),
        "units": (
            lambda r: PrivateTable(r, {"a": ["x", "y"]}, unit="user", ledger=RHO),
            TableCurator,
            lambda c: c.ask(RecordCount(), 1),
        ),
        "vectors": (
            lambda r: PrivateVectors(r, columns=["v"], ledger=RHO),
            VectorCurator,
            lambda c: c.unit_count(1),
        ),
        "columns": (
            lambda r: PrivateColumns(r, Schema({"v": Number(0, 4)}), ledger=RHO),
            ColumnCurator,
            lambda c: c.number_tables([("v", Number(0, 4, cuts=[2]))], 1),
        ),
        "sequences": (
            lambda r: PrivateSequences(r, {"page": ["x", "y"]}, ledger=RHO),
            SequenceCurator,
            lambda c: c.ngram_tables(1),
        ),
    }

    @pytest.fixture
    def connection(self):
        connection = pytest.importorskip("duckdb").connect()
        connection.register("records", FRAME)
        yield connection
        connection.close()

    @staticmethod
    def busy(connection):
        """Whether it is, with a result that is open: DuckDB of before 2.0 drops that for the next query."""
        connection.execute("SELECT a FROM records")
        connection.fetchone()
        try:
            connection.table("records").aggregate("count(*)").fetchall()
        except Exception:
            return True
        return False

    @pytest.mark.parametrize("kind", KINDS)
    def test_is_found_before_the_charge_and_is_no_matter_afterwards(self, connection, kind):
        make, opened, ask = self.KINDS[kind]
        relation = connection.table("records")
        if not self.busy(connection):
            pytest.skip("this version of DuckDB runs other queries beside an open result")
        with pytest.raises(OSError, match="has not been fetched to the end, fetch or close it") as caught:
            make(relation)
        assert caught.value.__context__ is None
        assert len(connection.fetchall()) == 99  # what was open is as it was
        curator = opened(make(relation), RHO, what="test", columns=[])
        assert self.busy(connection)
        ask(curator)
        assert curator.left == 0 and len(connection.fetchall()) == 99
