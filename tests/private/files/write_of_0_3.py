"""Writes the files of version 0.3.0 beside it (commit 40359e41), in which no ledger says how keys are compared.

git archive 40359e41 pgmpy_dp | tar x -C OLD
PYTHONPATH=OLD python tests/private/files/write_of_0_3.py
"""

from pathlib import Path

import networkx as nx
import pandas as pd

from pgmpy_dp import Budget, Ledger, LinkedSchema, PrivateTable
from pgmpy_dp.estimators import NaiveMLE
from pgmpy_dp.linked import PrivateLinkedNetwork, PrivateLinkedTables, check_linked, discover_linked

FOLDER = Path(__file__).parent
HOUSES = pd.DataFrame({"house": [f"{k}" for k in range(400)], "y": ["u", "v"] * 200}).astype("string[pyarrow]")
PEOPLE = pd.concat([HOUSES, HOUSES]).rename(columns={"y": "x"})


def ledger(name: str) -> Ledger:
    path = FOLDER / f"{name}.ledger-0.3.json"
    path.unlink(missing_ok=True)
    return Ledger.open(path, Budget(epsilon=3.0, delta=1e-6))


def linked(key_kind: str | None) -> LinkedSchema:
    return LinkedSchema({"y": ["u", "v"]}, {"x": ["u", "v"]}, key="house", most=2, key_kind=key_kind)


if __name__ == "__main__":
    table = PrivateTable(HOUSES, {"y": ["u", "v"]}, ledger=ledger("persons"), unit="house")
    NaiveMLE(rho=0.01).fit(nx.Graph({"y": []}), table)
    whole = PrivateLinkedTables(HOUSES, PEOPLE, linked("integer"), ledger=ledger("linked-integer"))
    check_linked(whole, budget=Budget(epsilon=0.1))
    fitted = PrivateLinkedNetwork(rho=0.01).fit(whole)
    fitted.model_.save(FOLDER / "linked-integer.model-0.3.npz")
    fitted.release_.save(FOLDER / "linked-integer.release-0.3.npz")
    of_all = ledger("linked-text")
    discover_linked(
        *(HOUSES, PEOPLE, Budget(epsilon=0.5, delta=1e-8)),
        parent={"y": "categories"}, child={"x": ["u", "v"]}, key="house", most=2, ledger=of_all,
    )  # fmt: skip
    PrivateLinkedNetwork(rho=0.01).fit(PrivateLinkedTables(HOUSES, PEOPLE, linked(None), ledger=of_all))
    for lock in FOLDER.glob("*.lock"):
        lock.unlink()
