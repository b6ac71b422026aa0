"""Writes the files beside it, with version 0.2.0 of the package (commit 37541c3e).

git archive 37541c3e pgmpy_dp | tar x -C OLD
PYTHONPATH=OLD python tests/estimators/files_of_0_2/write.py
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd

import pgmpy_dp
from pgmpy_dp import (
    Budget,
    Ledger,
    MarkovNetwork,
    Number,
    PrivateTable,
    Schema,
    check_schema,
    discover,
    estimators,
    score_model,
)

FOLDER = Path(__file__).parent
sys.path.insert(0, str(FOLDER.parent))

from files_of_0_1 import write as earlier  # noqa: E402

earlier.FOLDER = FOLDER
SEEDED = earlier.SEEDED


def write_what_is_new(records: pd.DataFrame, rng: np.random.Generator) -> None:
    """What 0.1 did not have: models with priors, posteriors and numbers; more kinds of releases."""
    plain = {"epsilon": 1.0, "state_names": earlier.STATES, **SEEDED}
    before = estimators.CollectiveMAP(**plain)
    MarkovNetwork(earlier.PATH).fit(records, before)
    after = estimators.CollectiveMAP(prior=before.model_, **plain)
    model = MarkovNetwork(earlier.PATH).fit(records, after)
    model.posterior = after.posterior(n_draws=20, random_state=1)
    model.save(FOLDER / "CollectiveMAP-posterior.model.npz")
    after.release_.save(FOLDER / "CollectiveMAP-posterior.release.npz")
    ages = records.assign(age=rng.integers(0, 100, len(records)), who=np.arange(len(records)) // 2)
    schema = Schema({**earlier.STATES, "age": Number(0, 100, cuts=[18, 65])}, impossible=["age < 18 -> a = no"])
    network = estimators.PrivateNetwork(probe_share=0.1, **{**plain, "state_names": schema})
    network.fit(ages, unit="who", rows_per_unit="shares")
    network.model_.save(FOLDER / "PrivateNetwork-persons.model.npz")
    network.release_.save(FOLDER / "PrivateNetwork-persons.release.npz")
    numbers = rng.normal(size=(3000, 4)) + 1.0
    bounds = [(-4.0, 6.0)] * 4
    visits = pd.DataFrame({"user": np.repeat(np.arange(800), 6), "sequence": 0, "page": rng.choice(["x", "y"], 4800)})
    visits = visits.groupby(["user", "sequence"])["page"].agg(list).reset_index()
    chains = {"epsilon": 2.0, "state_names": {"page": ["x", "y"]}, "chain_order": "auto", **SEEDED}
    for name, estimator, data in (
        ("PrivateGraphicalLasso-pairs", estimators.PrivateGraphicalLasso(
            perturb="pairs", bounds=bounds, center="private", epsilon=2.0, **SEEDED), numbers),
        ("PrivateGraphicalLasso-bounds", estimators.PrivateGraphicalLasso(
            bounds=bounds, center="private", scaling="private", penalty=0.1, epsilon=2.0, **SEEDED), numbers),
        ("PrivateMarkovChain-auto", estimators.PrivateMarkovChain(**chains), visits),
    ):  # fmt: skip
        estimator.fit(data).release_.save(FOLDER / f"{name}.release.npz")
    check = check_schema(records, Budget(epsilon=1.0), earlier.STATES, random_state=1)
    check.release_.save(FOLDER / "check.one.npz")
    score = score_model(model, records, Budget(epsilon=1.0), each=True, random_state=1)
    score.release_.save(FOLDER / "score.one.npz")


def write_schemas_and_ledger(records: pd.DataFrame) -> None:
    Schema(earlier.STATES).to_json(FOLDER / "schema.json")
    Schema({**earlier.STATES, "age": Number(0, 100)}, missing=["?"]).to_json(FOLDER / "schema-with-numbers.json")
    ledger = Ledger.open(FOLDER / "ledger.json", budget=Budget(epsilon=3.0, delta=1e-6))
    variables = {"a": "categories", "b": "categories", "c": ["no", "yes"], "d": ["no", "yes"]}
    found = discover(records, variables, Budget(epsilon=0.5, delta=1e-9), ledger=ledger)
    found.to_json(FOLDER / "discovered.json")
    found.release_.save(FOLDER / "discovered.one.npz")
    table = PrivateTable(records, found.schema, ledger=ledger)
    estimators.PrivateChowLiu(epsilon=1.0, delta=1e-7, random_state=1).fit(table)
    FOLDER.joinpath("ledger.json.lock").unlink(missing_ok=True)


if __name__ == "__main__":
    if pgmpy_dp.__version__ != "0.2.0":
        sys.exit(f"this is {pgmpy_dp.__version__} from {pgmpy_dp.__file__}: pass PYTHONPATH with version 0.2.0")
    rng = np.random.default_rng(0)
    binary = earlier.binary_records(rng)
    earlier.write_networks(binary)
    earlier.write_structures(binary)
    earlier.write_others(rng)
    write_what_is_new(binary, rng)
    write_schemas_and_ledger(binary)
    earlier.write_what_they_say()
