"""Writes the files beside it, with version 0.3.0 of the package (commit 40359e41).

git archive 40359e41 pgmpy_dp | tar x -C OLD
PYTHONPATH=OLD python tests/estimators/files_of_0_3/write.py
"""

import json
import sys
import warnings
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd

import pgmpy_dp
from pgmpy_dp import (
    Budget,
    Ledger,
    LinkedSchema,
    MarkovNetwork,
    Number,
    PrivateTable,
    Release,
    Schema,
    check_schema,
    discover,
    estimators,
    publish_if,
    score_model,
)
from pgmpy_dp.linked import LinkedModel, PrivateLinkedNetwork, check_linked, discover_linked

FOLDER = Path(__file__).parent
sys.path.insert(0, str(FOLDER.parent))

from how_they_are_read import answers, learned_again  # noqa: E402

NAMES = ["a", "b", "c", "d"]
STATES = {name: ["no", "yes"] for name in NAMES}
PATH = nx.path_graph(NAMES)
SEEDED = {"delta": 1e-6, "random_state": 1}
PLAIN = {"epsilon": 1.0, "state_names": STATES, **SEEDED}
TABLE = {**PLAIN, "epsilon": 2.0}
VOTES = {"width": 2.0, "min_edge_weight": 0.5, "n_workers": 1}
CHAINS = {"epsilon": 2.0, "state_names": {"page": ["x", "y"]}, **SEEDED}
LASSO = {"epsilon": 2.0, **SEEDED}
BLOCKS = {"epsilon": 4.0, "delta": 1e-4, "random_state": 1}
BOUNDS = [(-4.0, 6.0)] * 4
SDP = {"bias": 0.8, "degree": 12.0}


def binary_records(rng: np.random.Generator) -> pd.DataFrame:
    """Four variables, each the one before with a fifth of its values turned."""
    columns = [rng.random(3000) < 0.5]
    for _ in NAMES[1:]:
        columns.append(columns[-1] ^ (rng.random(3000) < 0.2))
    return pd.DataFrame({name: np.where(column, "yes", "no") for name, column in zip(NAMES, columns, strict=True)})


def write_models(records: pd.DataFrame, rng: np.random.Generator) -> None:
    """Of given graphs, with a prior and draws, and of learned ones with numbers, rules and persons."""
    for name, how in {
        "NaiveMLE": {},
        "CollectiveEM": {},
        "CollectiveEM-published": {"published": True, "n_iter": 5},
        "CollectiveMAP": {},
        "PrivateSGD": {"n_steps": 20},
    }.items():
        estimator = getattr(estimators, name.split("-")[0])(**PLAIN, **how).fit(PATH, records)
        estimator.model_.save(FOLDER / f"{name}.model.npz")
        estimator.release_.save(FOLDER / f"{name}.release.npz")
    after = estimators.CollectiveMAP(prior=estimators.CollectiveMAP(**PLAIN).fit(PATH, records).model_, **PLAIN)
    model = MarkovNetwork(PATH).fit(records, after)
    model.posterior = after.posterior(n_draws=20, random_state=1)
    model.save(FOLDER / "CollectiveMAP-posterior.model.npz")
    after.release_.save(FOLDER / "CollectiveMAP-posterior.release.npz")
    ages = records.assign(age=rng.integers(0, 100, len(records)), who=np.arange(len(records)) // 2)
    schema = Schema({**STATES, "age": Number(0, 100, cuts=[18, 65])}, impossible=["age < 18 -> a = no"])
    network = estimators.PrivateNetwork(probe_share=0.1, **{**PLAIN, "state_names": schema})
    network.fit(ages, unit="who", rows_per_unit="shares")
    aimed = estimators.PrivateNetwork(target="a", **PLAIN).fit(records)
    for name, fitted in {"PrivateNetwork": network, "PrivateNetwork-target": aimed}.items():
        fitted.model_.save(FOLDER / f"{name}.model.npz")
        fitted.release_.save(FOLDER / f"{name}.release.npz")


def write_releases(records: pd.DataFrame, rng: np.random.Generator) -> None:
    """One of each method of everything else."""
    groups = np.vstack([rng.normal(size=(8000, 2)) + 20, rng.normal(size=(8000, 2)) - 20])
    numbers = rng.normal(size=(3000, 4)) + 1.0
    two = nx.stochastic_block_model([40, 40], [[0.5, 0.05], [0.05, 0.5]], seed=1)
    visits = pd.DataFrame({"user": range(800), "sequence": [list(rng.choice(["x", "y"], 6)) for _ in range(800)]})
    for data, cases in (
        (records, {
            "PrivateChowLiu": TABLE,
            "PrivateIsing": {"width": 2.0, **TABLE},
            "PrivateIsing-frank-wolfe": {"width": 2.0, "method": "frank-wolfe", **TABLE},
            "PrivateIsing-gradient": {"width": 2.0, "method": "gradient", **TABLE},
            "PrivatePairwise": {"width": 2.0, **TABLE},
            "PrivatePairwise-frank-wolfe": {"width": 2.0, "method": "frank-wolfe", **TABLE},
            "PrivatePairwise-gradient": {"width": 2.0, "method": "gradient", **TABLE},
            "PrivateBinaryMRF": {"width": 2.0, **TABLE},
            "PrivateBinaryMRF-pmw": {"width": 2.0, "queries": "pmw", **TABLE},
            "PrivateBinaryMRF-sepfem": {"width": 2.0, "queries": "sepfem", **TABLE},
            "PrivateBinaryMRF-linf": {"width": 2.0, "objective": "linf", **TABLE},
            "PrivateBinaryMRF-gradient": {"width": 2.0, "method": "gradient", **TABLE},
            "StableStructure": {**VOTES, **TABLE},
            "EdgeVoting": {**VOTES, **TABLE},
        }),
        (numbers, {
            "PrivateGraphicalLasso": {"row_norm": 4.0, "penalty": 0.1, **LASSO},
            "PrivateGraphicalLasso-output": {"row_norm": 4.0, "penalty": 0.1, "perturb": "output", **LASSO}
            | {"n_records": 3000},
            "PrivateGraphicalLasso-pairs": {"perturb": "pairs", "bounds": BOUNDS, "center": "private", **LASSO},
            "PrivateGraphicalLasso-bounds": {"bounds": BOUNDS, "center": "private", "penalty": 0.1, **LASSO},
        }),
        (groups, {
            "PrivateGaussianMixture": {"n_components": 2, "epsilon": 2.0, **SEEDED},
            "PrivateGaussianMixture-full": {"n_components": "auto", "max_components": 3, "epsilon": 2.0, **SEEDED}
            | {"covariance_type": "full"},
        }),
        (two, {
            "PrivateBlockModel": {"method": "noisy-power", **BLOCKS},
            "PrivateBlockModel-response": {"method": "randomized-response", **BLOCKS},
            "PrivateBlockModel-sdp": {"method": "sdp", **SDP, **BLOCKS},
            "PrivateBlockModel-sdp-exact": {"method": "sdp-exact", **SDP, **BLOCKS},
        }),
        (nx.path_graph(20), {
            "PrivateBlockModel-exponential": {"method": "exponential", **BLOCKS},
            "PrivateBlockModel-exponential-exact": {"method": "exponential-exact", **BLOCKS},
        }),
        (visits, {
            "PrivateMarkovChain": CHAINS,
            "PrivateMarkovChain-auto": {"chain_order": "auto", **CHAINS},
            "PrivateMarkovChain-em": {"method": "em", **CHAINS},
            "PrivateMarkovChain-sgd": {"method": "sgd", "n_steps": 20, **CHAINS},
        }),
    ):  # fmt: skip
        for name, how in cases.items():
            getattr(estimators, name.split("-")[0])(**how).fit(data).release_.save(FOLDER / f"{name}.release.npz")


def write_what_comes_before_and_after(records: pd.DataFrame) -> None:
    """Schemas, a ledger, what was discovered, checked, scored and published."""
    Schema(
        {**STATES, "age": Number(0, 100, cuts=[18, 65], missing="state"), "day": ["2026-01-01", None]},
        missing=["?"], recode={"a": {"y": "yes"}}, impossible=["age < 18 -> a = no"],
    ).to_json(FOLDER / "schema.json")  # fmt: skip
    ledger = Ledger.open(FOLDER / "ledger.json", budget=Budget(epsilon=6.0, delta=1e-5))
    variables = {"a": "categories", "b": "categories", "c": ["no", "yes"], "d": ["no", "yes"]}
    found = discover(records, variables, Budget(epsilon=0.5, delta=1e-7), ledger=ledger)
    found.to_json(FOLDER / "discovered.json")
    found.release_.save(FOLDER / "discovered.one.npz")
    table = PrivateTable(records, found.schema, ledger=ledger)
    estimators.PrivateChowLiu(epsilon=1.0, delta=1e-7, random_state=1).fit(table)
    far = [{"test": "distance", "at_most": 0.3}]
    published = publish_if(table, Budget(epsilon=2.0, delta=1e-6), far)
    published.model_.save(FOLDER / "published.model.npz")
    published.learner.release_.save(FOLDER / "PrivateNetwork-published.release.npz")
    check = check_schema(records, Budget(epsilon=1.0), STATES, random_state=1)
    check.release_.save(FOLDER / "check.one.npz")
    score = score_model(published.model_, records, Budget(epsilon=1.0), each=True, random_state=1)
    score.release_.save(FOLDER / "score.one.npz")


def write_linked(rng: np.random.Generator) -> None:
    """Two tables: schema, ledger, what was discovered and checked, a release and a model."""
    houses = pd.DataFrame({"house": [f"h{k}" for k in range(1500)], "region": rng.choice(["n", "s"], 1500)})
    people = houses.loc[np.repeat(np.arange(1500), rng.integers(0, 4, 1500)), ["house"]]
    people = people.assign(age=rng.integers(0, 90, len(people)), sex=rng.choice(["f", "m"], len(people)))
    child = {"age": Number(0, 99, cuts=[18, 65]), "sex": ["f", "m"]}
    linked = LinkedSchema({"region": ["n", "s"]}, child, key="house", most=3, counts=["age >= 18"])
    linked.to_json(FOLDER / "linked-schema.json")
    ledger = Ledger.open(FOLDER / "linked-ledger.json", budget=Budget(epsilon=6.0, delta=1e-5))
    discovered = discover_linked(
        *(houses, people, Budget(epsilon=0.5, delta=1e-8)),
        parent={"region": "categories"}, child=child, key="house", most=3, ledger=ledger,
    )  # fmt: skip
    discovered.to_json(FOLDER / "linked-discovered.json")
    check = check_linked(houses, people, Budget(epsilon=1.0), linked, random_state=1)
    check.release_.save(FOLDER / "linked-check.one.npz")
    fitted = PrivateLinkedNetwork(epsilon=2.0, schema=linked, random_state=1).fit(houses, people)
    fitted.release_.save(FOLDER / "PrivateLinkedNetwork.linked.npz")
    fitted.model_.save(FOLDER / "PrivateLinkedNetwork.families.npz")


def write_what_they_say() -> None:
    """What 0.3.0 itself reads in them and learns from them, which later versions have to as well."""
    said = {}
    for path in sorted(FOLDER.glob("*.npz")):
        name, kind, _ = path.name.split(".")
        if kind == "model":
            model = MarkovNetwork.load(path)
            tables = {str(one): model.marginal([one]).values.ravel().tolist() for one in NAMES}
            said[path.name] = {"cost": model.privacy.guarantee.to_dict(), "tables": tables}
        elif kind == "families":
            model = LinkedModel.load(path)
            said[path.name] = {"cost": model.privacy.guarantee.to_dict()}
        else:
            release = Release.load(path)
            sums = [float(np.sum(value, dtype=float)) for value in release.values]
            said[path.name] = {"cost": release.guarantee.to_dict(), "mechanism": release.mechanism, "sums": sums}
            said[path.name]["names"] = list(release.names)
            if kind == "release":
                said[path.name]["answers"] = answers(name, learned_again(name, release))
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(facts)}" for name, facts in said.items())
    (FOLDER / "said.json").write_text(f"{{\n{lines}\n}}\n")


if __name__ == "__main__":
    if pgmpy_dp.__version__ != "0.3.0":
        sys.exit(f"this is {pgmpy_dp.__version__} from {pgmpy_dp.__file__}: pass PYTHONPATH with version 0.3.0")
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    binary = binary_records(rng)
    write_models(binary, rng)
    write_releases(binary, rng)
    write_what_comes_before_and_after(binary)
    write_linked(rng)
    write_what_they_say()
    for lock in FOLDER.glob("*.lock"):
        lock.unlink()
