"""A few hundred seeded fits, hashed part by part: what a change that should change no result is held against.

python -m tests.seeded_fits FILE                     # fit all cases, write their hashes
python -m tests.seeded_fits FILE --compare BASELINE  # the same, then say what differs, and exit with 1 if anything does
    --package FOLDER    the checkout whose `pgmpy_dp` is fitted; default: the current folder
    --only TEXT         cases whose name holds this

Hashes are equal to the bit on one machine with one set of libraries: make the baseline where the change is tried, by
`--package` from a checkout of the state before. Each case has the values of its release, their noise and price, every
fitted attribute and draws; names of modules and classes are in none of them. Facts beside the values are hashed too, as
"facts": they may be named otherwise after a change, so `--compare` says where they differ, and does not fail.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import itertools
import json
import math
import struct
import sys
import time
import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from enum import Enum
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

__all__ = ["all_cases", "changes", "digest", "hashes"]

Case = tuple[str, Callable[[], Any]]
SEED = 7
PURE: dict[str, float] = {"epsilon": 1.0}
BOTH: dict[str, float] = {"epsilon": 1.0, "delta": 1e-4}
RHO: dict[str, float] = {"rho": 0.3}
BUDGETS = {"pure": PURE, "both": BOTH, "rho": RHO}
ADJACENCIES = ("add_remove", "replace_one")
WITHOUT_A_MEANING = ("release_", "privacy_")  # hashed as values, noise and price


# ---- hashes


def digest(value: Any) -> str:
    """A hash of public content, the same for equal content whatever the names of its classes."""
    made = hashlib.blake2b(digest_size=8)
    for part in _parts(value, 0):
        made.update(part)
        made.update(b"\0")
    return made.hexdigest()


def _parts(value: Any, depth: int) -> Iterator[bytes]:
    if depth > 12:
        raise RecursionError("a fitted attribute holds itself")
    inner = depth + 1
    if isinstance(value, Enum):
        yield from _parts(value.value, inner)
    elif value is None or isinstance(value, bool | np.bool_ | str | bytes | Path):
        yield repr(value).encode("utf-8", "replace")
    elif isinstance(value, int | np.integer):
        yield str(int(value)).encode()
    elif isinstance(value, float | np.floating):
        yield struct.pack("<d", float(value))
    elif isinstance(value, Fraction):
        yield str(value).encode()
    elif isinstance(value, np.ndarray):
        if value.dtype == object:
            yield from _parts(value.tolist(), inner)
        else:
            yield f"{value.dtype.str}{value.shape}".encode()
            yield np.ascontiguousarray(value).tobytes()
    elif isinstance(value, pd.DataFrame | pd.Series | pd.Index):
        yield from _parts(value.to_dict("split") if isinstance(value, pd.DataFrame) else value.tolist(), inner)
    elif isinstance(value, set | frozenset):
        yield from sorted(digest(item).encode() for item in value)
    elif isinstance(value, nx.Graph):
        yield from _parts([list(value.nodes(data=True)), list(value.edges(data=True))], inner)
        yield from _parts([[factor.variables, factor.values] for factor in getattr(value, "factors", ())], inner)
    elif hasattr(value, "to_dict"):
        yield from _parts(value.to_dict(), inner)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _parts(key, inner)
            yield from _parts(item, inner)
    elif isinstance(value, Iterable):
        yield b"("
        for item in value:
            yield from _parts(item, inner)
        yield b")"
    elif dataclasses.is_dataclass(value):
        yield from _parts([getattr(value, field.name) for field in dataclasses.fields(value)], inner)
    elif hasattr(value, "get_values") or hasattr(value, "state_names"):  # a CPD or a factor of pgmpy
        yield from _parts([list(value.variables), value.values, value.state_names], inner)
    elif hasattr(value, "beta"):  # a linear Gaussian CPD of pgmpy
        yield from _parts([value.variables, value.beta, value.std], inner)
    else:
        raise TypeError(f"{type(value).__name__} has no digest: say in tests/seeded_fits.py what of it is a result")


def hashes(fit: Callable[[], Any]) -> dict[str, str]:
    """The parts of one fit, each as a hash; what it raised, if it did."""
    found: dict[str, str] = {}
    # Sums over several threads are taken in another order.
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        try:
            fitted = fit()
            found |= _of_release(fitted.release_)
            found["price"] = digest([str(fitted.privacy_.guarantee), [e.to_dict() for e in fitted.privacy_.entries]])
            found |= {name: digest(value) for name, value in _learned(fitted)}
            found |= {f"draws of {name}": digest(draw()) for name, draw in _draws(fitted)}
        except Exception as error:  # a refusal is a result too
            found["error"] = f"{type(error).__name__}: {error}"
    return found


def _of_release(release: Any) -> Iterator[tuple[str, str]]:
    values = release.values.values() if isinstance(release.values, Mapping) else release.values
    noise = release.noise.values() if isinstance(release.noise, Mapping) else release.noise
    yield "values", digest(list(values))
    yield "noise", digest([None if one is None else [one.distribution, one.scale] for one in noise])
    yield "facts", digest(json.loads(json.dumps(dict(release.public), default=str, sort_keys=True)))


def _learned(fitted: Any) -> Iterator[tuple[str, Any]]:
    names = vars(fitted) if not dataclasses.is_dataclass(fitted) else {f.name for f in dataclasses.fields(fitted)}
    public = sorted(n for n in {*names, *vars(fitted)} if n.endswith("_") and not n.startswith("_"))
    for name in public:
        if name not in WITHOUT_A_MEANING and (value := getattr(fitted, name)) is not None:
            yield name, _of_a_model(value)
    for name in ("report", "schema", "counts", "tables", "pairs", "scores"):
        if not name.endswith("_") and not callable(value := getattr(fitted, name, None)) and value is not None:
            yield name, value
    if not public:
        yield "text", str(fitted)


def _of_a_model(value: Any) -> Any:
    if hasattr(value, "cpds") and hasattr(value, "edges"):  # a Bayesian network
        return [sorted(map(repr, value.edges)), [str(cpd) for cpd in value.cpds]]
    return value


def _draws(fitted: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    model = getattr(fitted, "model_", None)
    if hasattr(model, "sample"):
        yield "records", lambda: model.sample(20, random_state=SEED)
    elif hasattr(fitted, "sample") and hasattr(fitted, "transition_"):
        yield "sequences", lambda: fitted.sample(20, 5, random_state=SEED)
    elif hasattr(fitted, "sample") and hasattr(fitted, "means_"):
        yield "records", lambda: fitted.sample(20, random_state=SEED)
    if hasattr(fitted, "posterior") and len(getattr(fitted, "model_", ())) <= 3:
        yield "posterior", lambda: _interval(fitted)


def _interval(fitted: Any) -> pd.DataFrame:
    name = next(iter(fitted.model_.nodes))
    columns = fitted.posterior(3, random_state=SEED).interval([name], level=0.3)
    return pd.DataFrame({name: fitted.model_.states[name], **columns})


# ---- data

STATES: dict[Hashable, list] = {"a": ["x", "y"], "b": [0, 1, 2], "c": [False, True]}
BITS: dict[Hashable, list] = {name: [0, 1] for name in "pqrs"}
CHAIN = nx.Graph([("a", "b"), ("b", "c")])
LOOP = nx.Graph([("p", "q"), ("q", "r"), ("r", "s"), ("s", "p")])


def table(states: Mapping[Hashable, list], n: int) -> pd.DataFrame:
    """Records of a chain: each variable copies the one before it half of the time."""
    rng = np.random.default_rng(1)
    columns, before = {}, rng.integers(0, 6, n)
    for name, names in states.items():
        before = np.where(rng.random(n) < 0.5, before, rng.integers(0, 6, n))
        columns[name] = np.array(names, dtype=object)[before % len(names)]
    return pd.DataFrame(columns)


def persons(frame: pd.DataFrame, rows: int = 3) -> pd.DataFrame:
    return frame.assign(who=[f"p{k // rows}" for k in range(len(frame))])


def numbers(n: int, d: int = 3) -> np.ndarray:
    rng = np.random.default_rng(2)
    first = rng.normal(size=(n, 1))
    return np.hstack([first, *(0.6 * first + 0.8 * rng.normal(size=(n, 1)) for _ in range(d - 1))])


def groups(n: int) -> np.ndarray:
    rng = np.random.default_rng(3)
    return 20.0 * rng.integers(0, 2, size=(n, 1)) * [1.0, 0.5] + rng.normal(size=(n, 2))


def visits(n: int) -> pd.DataFrame:
    rng = np.random.default_rng(4)
    texts = [" ".join(rng.choice(["front", "news", "sport"], rng.integers(1, 9))) for _ in range(n)]
    return pd.DataFrame({"user": [f"u{k}" for k in range(n)], "sequence": texts})


def blocks(n: int, k: int = 2) -> nx.Graph:
    return nx.stochastic_block_model([n // k] * k, (0.5 * np.eye(k) + 0.1).tolist(), seed=5)


# ---- cases


def all_cases() -> list[Case]:
    """Name and fit of every case."""
    cases = [*_given_graphs(), *_networks(), *_fields(), *_votes(), *_chains(), *_gaussian(), *_mixtures()]
    cases += [*_communities(), *_in_persons(), *_functions()]
    cases += _of_others({name.split(" ")[0] for name, _ in cases})
    assert len({name for name, _ in cases}) == len(cases)
    return cases


def _of_others(named: set[str]) -> Iterator[Case]:
    """Of estimators without a list here: as the generic tests fit them, by each kind of budget that they take."""
    from tests.estimators.cases import CASES, ORDINARY

    taken, seen = {"pure": PURE, "approximate": BOTH, "zcdp": RHO}, set[str]()
    for found in CASES:
        tags, raw = found.estimator.get_class_tags(), ORDINARY[found.kind]
        public = {"epsilon", "delta", "rho", "n_records"}
        how = {key: value for key, value in found.options.items() if key not in public}
        if found.estimator.__name__ not in named:
            for guarantee, adjacency in itertools.product(tags["guarantees"], tags["adjacency"]):
                whose = {"adjacency": adjacency} | ({"n_records": len(raw)} if adjacency == "replace_one" else {})
                words = [f"{key}={_word(value)}" for key, value in {**taken[guarantee], **whose, **how}.items()]
                made = partial(found.estimator, **how, **taken[guarantee], **whose, random_state=SEED)
                name = " ".join([found.estimator.__name__, *words])
                if name not in seen:
                    seen.add(name)
                    yield name, partial(_own_fit, found, made, raw, taken[guarantee], whose)


def _own_fit(found: Any, made: Callable[[], Any], raw: Any, budget: dict[str, float], public: dict[str, Any]) -> Any:
    from pgmpy_dp import Budget

    return found.fit(made(), found.data(raw, Budget(**budget), **public))


def _case(name: str, data: Any, *first: Any, kind: str = "n_records", count: int | None = None, **given: Any) -> Case:
    """A fit of the estimator of this name, in words made of its options; the number is public where it must be."""
    options = {key: value for key, value in given.items() if key != "whose"}
    if options.get("adjacency") == "replace_one":
        options.setdefault(kind, len(data) if count is None else count)

    def fit() -> Any:
        from pgmpy_dp import estimators

        made = getattr(estimators, name)(**options, random_state=SEED)
        return made.fit(*first, data, **given.get("whose", {}))

    words = [f"{key}={_word(value)}" for key, value in given.items() if key not in ("state_names", kind)]
    return " ".join([name, *words]), fit


def _word(value: Any) -> str:
    if isinstance(value, nx.Graph):
        return str(list(value.edges))
    return str(value) if len(str(value)) < 80 else digest(value)


def _crossed(budgets: Iterable[str] = BUDGETS) -> Iterator[dict[str, Any]]:
    for budget, adjacency in itertools.product(budgets, ADJACENCIES):
        yield {**BUDGETS[budget], "adjacency": adjacency}


def _given_graphs() -> Iterator[Case]:
    data = table(STATES, 400)
    ways: list[tuple[str, dict[str, Any]]] = [
        ("NaiveMLE", {}),
        ("NaiveMLE", {"l2": 0.5, "max_iter": 20, "tol": 1e-3}),
        ("CollectiveMAP", {}),
        ("CollectiveMAP", {"entropy_share": 0.0, "margin_share": 1.0, "n_rounds": 2, "max_iter": 30, "tol": 1e-4}),
        ("CollectiveMAP", {"prior_tail": math.inf, "variance_shape": 1.0}),
        ("CollectiveEM", {}),
        ("CollectiveEM", {"published": True, "n_iter": 5, "step": 2.0, "stop": None}),
        ("CollectiveEM", {"published": True, "e_step": "nlbp", "n_iter": 4, "damping": 0.05, "n_propagations": 20}),
    ]
    for (name, how), options in itertools.product(ways, _crossed()):
        yield _case(name, data, CHAIN, state_names=STATES, **options, **how)
    for options in _crossed(("both", "rho")):
        yield _case("PrivateSGD", data, CHAIN, state_names=STATES, **options, n_steps=20)
    how = {"batch_rate": 0.5, "clip_norm": 1.0, "learning_rate": 2.0}
    yield _case("PrivateSGD", data, CHAIN, state_names=STATES, **BOTH, n_steps=10, **how)
    more: list[dict[str, Any]] = [
        {"cliques": [("a", "b"), ("b", "c"), ("b",)], "weights": [1.0, 2.0, 0.5]},
        *({"noise": noise} for noise in ("laplace", "gaussian")),
        {"inference": "loopy"},
        {"n_records": 400},
    ]
    for how in more:
        yield _case("CollectiveMAP", data, CHAIN, state_names=STATES, **BOTH, **how)
    for inference in ("loopy", "auto"):
        yield _case("NaiveMLE", table(BITS, 300), LOOP, state_names=BITS, **RHO, inference=inference)


def _networks() -> Iterator[Case]:
    data, bits = table(STATES, 600), table(BITS, 600)
    for options in _crossed():
        yield _case("PrivateNetwork", data, state_names=STATES, **options)
        for method, prune in (("selection", False), ("tables", True)):
            yield _case("PrivateChowLiu", data, state_names=STATES, **options, method=method, prune=prune)
    ways: list[dict[str, Any]] = [
        {"required_edges": [("p", "q")], "forbidden_edges": [("r", "s")]},
        {"required_edges": [("p", "q", "r")], "max_clique_cells": 8},
        {"n_rounds": 3, "one_way_share": 0.2, "selection_share": 0.3},
        {"max_order": 2, "probe_share": 0.0},
        {"workload": {("p", "q"): 2.0, ("r", "s"): 1.0}},
        {"workload": [("p", "q", "r")], "probe_share": 0.2},
        {"merge_rare": True},
        {"target": "q"},
    ]
    for how in ways:
        yield _case("PrivateNetwork", bits, state_names=BITS, **BOTH, **how)
    shares = {"one_way_share": 0.3, "selection_share": 0.4}
    yield _case("PrivateChowLiu", bits, state_names=BITS, **RHO, n_edges=2, fit_parameters=False, **shares)
    yield _case("PrivateChowLiu", bits, state_names=BITS, **PURE, method="tables", one_way_share=0.3)


def _fields() -> Iterator[Case]:
    bits = table(BITS, 500)
    for name, options in itertools.product(("PrivateIsing", "PrivateBinaryMRF"), _crossed()):
        yield _case(name, bits, state_names=BITS, **options, width=2.0)
        yield _case(name, bits, state_names=BITS, **options, width=1.0, method="frank-wolfe", n_iter=6)
    for options in _crossed(("pure", "rho")):
        yield _case("PrivatePairwise", table(STATES, 500), state_names=STATES, **options, width=2.0)
        how = {"width": 1.0, "method": "frank-wolfe", "n_iter": 4}
        yield _case("PrivatePairwise", table(STATES, 500), state_names=STATES, **options, **how)
    for queries, order in itertools.product(("gaussian", "pmw", "sepfem", "auto"), (2, 3)):
        how = {"width": 1.0, "order": order, "queries": queries, "method": "moments"}
        yield _case("PrivateBinaryMRF", bits, state_names=BITS, **PURE, **how)
        yield _case("PrivateBinaryMRF", bits, state_names=BITS, **RHO, **how)
    how = {"width": 1.0, "method": "frank-wolfe", "n_iter": 3}
    yield _case("PrivateBinaryMRF", bits, state_names=BITS, **RHO, **how, graph=LOOP)
    for name in ("PrivateIsing", "PrivatePairwise"):
        yield _case(name, bits, state_names=BITS, **BOTH, width=1.5, graph=LOOP)
        yield _case(name, bits, state_names=BITS, **BOTH, width=1.5, sparse=False)
        yield _case(name, bits, state_names=BITS, **BOTH, width=1.5, min_edge_weight=0.1, inference="loopy")


def _votes() -> Iterator[Case]:
    data = table(BITS, 900)
    how = {"width": 2.0, "min_edge_weight": 0.4, "n_blocks": 8, "n_workers": 1}
    for learner, adjacency in itertools.product(("logistic", "inverse-covariance", "chow-liu"), ADJACENCIES):
        for name in ("StableStructure", "EdgeVoting"):
            options = {**BOTH, "adjacency": adjacency, "learner": learner}
            yield _case(name, data, state_names=BITS, **options, **how)
    for options, noise in itertools.product(_crossed(("pure", "rho")), ("auto",)):
        yield _case("EdgeVoting", data, state_names=BITS, **options, **how, max_edges=3, noise=noise)
    yield _case("EdgeVoting", data, state_names=BITS, **BOTH, **how, noise="laplace")
    yield _case("StableStructure", data, state_names=BITS, **BOTH, width=1.0, min_edge_weight=0.4, n_workers=1)


def _chains() -> Iterator[Case]:
    data, pages = visits(200), {"page": ["front", "news", "sport"]}
    for method, options in itertools.product(("map", "naive"), _crossed()):
        yield _case("PrivateMarkovChain", data, kind="n_users", state_names=pages, **options, method=method)
    ways: list[dict[str, Any]] = [
        {"segment_length": 3, "max_segments": 2},
        {"segment_length": 4, "max_segments": 1, "initial_share": 0.3},
        {"stay": False, "noise": "gaussian"},
        {"noise": "laplace", "separator": " "},
        *({"chain_order": order} for order in (2, "auto")),
    ]
    for how in ways:
        yield _case("PrivateMarkovChain", data, kind="n_users", state_names=pages, **BOTH, **how)


def _gaussian() -> Iterator[Case]:
    data = numbers(400)
    mechanisms = {
        "pure": ("auto", "double-wishart", "laplace", "published-laplace", "frobenius"),
        "both": ("auto", "goe", "analytic-goe", "one-sided-wishart"),
        "rho": ("auto", "goe", "gaussian"),
    }
    for budget, adjacency in itertools.product(BUDGETS, ADJACENCIES):
        options = {**BUDGETS[budget], "adjacency": adjacency}
        for mechanism in mechanisms[budget]:
            if mechanism != "one-sided-wishart" or adjacency == "add_remove":
                yield _case("PrivateGraphicalLasso", data, **options, row_norm=2.5, mechanism=mechanism)
        ways: list[dict[str, Any]] = [
            {"row_norm": 2.5, "center": "private", "center_radius": 1.0},
            {"bounds": [(-3.0, 3.0)] * 3, "center": "private"},
            {"perturb": "pairs", "center": (0.0, 0.0, 0.0)},
            {"perturb": "pairs", "center": "private", "bounds": [(-3.0, 3.0)] * 3},
            {"perturb": "output", "row_norm": 2.5, "penalty": 0.3, "n_records": 400},
        ]
        for how in ways:
            yield _case("PrivateGraphicalLasso", data, **options, **how)
    more: list[dict[str, Any]] = [
        {"row_norm": 2.5, "penalty": 0.1, "refit": False, "center": (0.1, 0.0, 0.0)},
        {"row_norm": 2.5, "penalty": 0.0, "refit": False},
        {"bounds": [(-3.0, 3.0)] * 3, "scaling": "bounds", "columns": ["u", "v", "w"]},
        {"perturb": "output", "row_norm": 2.5, "penalty": 0.3, "max_eigenvalue": 4.0, "n_records": 400},
    ]
    for how in more:
        yield _case("PrivateGraphicalLasso", data, **RHO, **how)
    dag = nx.DiGraph([(0, 1), (0, 2), (1, 2)])
    for options in _crossed():
        yield _case("PrivateLinearGaussian", data, dag, **options, bounds=[(-3.0, 3.0)] * 3)
    yield _case("PrivateLinearGaussian", data, dag, **RHO, row_norm=2.5, center=(0.0, 0.0, 0.0))
    people = pd.DataFrame(data, columns=["u", "v", "w"]).assign(who=[f"p{k // 2}" for k in range(len(data))])
    for how in ({"row_norm": 3.0}, {"perturb": "pairs", "center": (0.0, 0.0, 0.0)}):
        for options in _crossed():
            yield _case("PrivateGraphicalLasso", people, count=200, **options, unit="who", **how)


def _mixtures() -> Iterator[Case]:
    data = groups(2000)
    how = {"n_components": 2, "epsilon": 4.0, "delta": 1e-3, "n_blocks": 40}
    for solver, scale in (("kmeans", 1.0), ("kmeans", None), ("sdp", 1.0)):
        for adjacency in ADJACENCIES:
            known = {"scale": scale, "separation": None if scale is None else 12.0, "adjacency": adjacency}
            yield _case("PrivateGaussianMixture", data, **how, **known, block_solver=solver)
    for kind, k in itertools.product((None, "full", "tied", "diag", "spherical"), (2, "auto")):
        most = {"max_components": 3} if k == "auto" else {}
        known = {**how, "n_components": k, "scale": 1.0, "separation": 12.0, "covariance_type": kind}
        yield _case("PrivateGaussianMixture", data, **known, **most, n_steps=2)
    known = {"n_components": 2, "epsilon": 4.0, "delta": 1e-3, "scale": 1.0, "separation": 12.0}
    yield _case("PrivateGaussianMixture", data, **known, n_records=2000, columns=["u", "v"])


def _communities() -> Iterator[Case]:
    for method, budget in itertools.product(("auto", "noisy-power", "randomized-response"), BUDGETS):
        for how in ({}, {"n_communities": 3, "degree": 12.0}, {"vote": True}, {"vote": False}):
            if not (method == "noisy-power" and "vote" in how):
                graph = blocks(60, how.get("n_communities", 2))
                yield _case("PrivateBlockModel", graph, **BUDGETS[budget], method=method, **how)
    for method, budget in itertools.product(("exponential",), BUDGETS):
        yield _case("PrivateBlockModel", blocks(10), **BUDGETS[budget], method=method)
    for method, budget in itertools.product(("sdp", "sdp-exact"), ("both", "rho")):
        for how in ({}, {"degree": 9.0, "bias": 0.4}):
            yield _case("PrivateBlockModel", blocks(16), **BUDGETS[budget], method=method, **how)


def _in_persons() -> Iterator[Case]:
    """Tables of persons with several records: by so many of each, or by shares."""
    data, bits = table(STATES, 600), table(BITS, 600)
    ways: list[tuple[str, pd.DataFrame, tuple, dict[str, Any]]] = [
        ("NaiveMLE", data, (CHAIN,), {"state_names": STATES}),
        ("CollectiveMAP", data, (CHAIN,), {"state_names": STATES}),
        ("PrivateSGD", data, (CHAIN,), {"state_names": STATES, "n_steps": 5}),
        ("PrivateNetwork", data, (), {"state_names": STATES}),
        ("PrivateIsing", bits, (), {"state_names": BITS, "width": 1.5}),
        ("PrivateIsing", bits, (), {"state_names": BITS, "width": 1.5, "method": "frank-wolfe", "n_iter": 4}),
        ("EdgeVoting", bits, (), {"state_names": BITS, "width": 2.0, "min_edge_weight": 0.4, "n_workers": 1}),
    ]
    for (name, frame, first, how), rows, adjacency in itertools.product(ways, (1, 2, "shares"), ADJACENCIES):
        public = {"n_records": 200} if adjacency == "replace_one" else {}
        states = how["state_names"]
        yield _of_persons(name, persons(frame), first, rows, states, {**BOTH, "adjacency": adjacency, **how, **public})


def _of_persons(name: str, frame: pd.DataFrame, first: tuple, rows: int | str, states: Any, given: dict) -> Case:
    def fit() -> Any:
        from pgmpy_dp import Budget, PrivateTable, estimators

        # The order of a person's records is a seeded coin as well.
        data = PrivateTable(
            frame,
            states,
            adjacency=given["adjacency"],
            ledger=Budget(epsilon=given["epsilon"], delta=given["delta"]),
            n_records=given.get("n_records"),
            unit="who",
            rows_per_unit=rows,
            random_state=SEED,
        )
        return getattr(estimators, name)(**given, random_state=SEED).fit(*first, data)

    words = [f"{key}={_word(value)}" for key, value in given.items() if key not in ("state_names", "n_records")]
    return " ".join([name, "persons", f"rows={rows}", *words]), fit


def _functions() -> Iterator[Case]:
    for budget, adjacency in itertools.product(BUDGETS, ADJACENCIES):
        for what in ("learn", "learn numbers", "learn with rules", "learn with a prior", "discover", "check", "score"):
            yield f"{what} {budget} {adjacency}", partial(_called, what, BUDGETS[budget], adjacency)


def _called(what: str, cost: dict[str, float], adjacency: str) -> Any:
    """A public function on records with numbers, rules or a public model."""
    import pgmpy_dp as dp

    budget, data = dp.Budget(**cost), table(STATES, 500)
    public = {"adjacency": adjacency, "n_records": len(data) if adjacency == "replace_one" else None}
    seeded = {**public, "random_state": SEED}
    ages = np.random.default_rng(6).gamma(4.0, 10.0, len(data))
    with_ages = data.assign(age=ages)
    if what == "learn numbers":
        return dp.learn(with_ages, budget, dp.Schema({**STATES, "age": dp.Number(0, 100, resolution=1)}), **seeded)
    if what == "learn with rules":
        states = {**STATES, "age": dp.Number(0, 100, bins=4)}
        return dp.learn(with_ages, budget, dp.Schema(states, impossible=["a = x -> b = 0"]), **seeded)
    if what == "discover":
        found: Any = {"a": "categories", "age": dp.Number(0, 100, resolution=1)}
        if not cost.get("delta"):
            del found["a"]  # categories that nobody has listed take a delta
        return dp.discover(with_ages, found, budget, bins=4, **seeded)
    if what == "check":
        schema = dp.Schema({**STATES, "c": [False, "other"]}, other={"c": "other"})
        return dp.check_schema(data, budget, schema, **seeded)
    uniform = nx.Graph(CHAIN)
    model = dp.estimators.CollectiveMAP(rho=1.0, state_names=STATES, random_state=1).fit(uniform, data).model_
    if what == "score":
        return dp.score_model(model, data, budget, schema=STATES, each=not cost.get("delta"), **seeded)
    return dp.learn(data, budget, STATES, **seeded, **({"prior": model} if "prior" in what else {}))


# ---- command


def changes(before: Mapping[str, Mapping[str, str]], after: Mapping[str, Mapping[str, str]]) -> dict[str, list[str]]:
    """What differs in each case that both have; cases that one of them lacks, as differing in being there."""
    found = {name: ["there"] for name in before.keys() ^ after.keys()}
    for name in before.keys() & after.keys():
        one, two = before[name], after[name]
        if parts := sorted(part for part in {*one, *two} if one.get(part) != two.get(part)):
            found[name] = parts
    return dict(sorted(found.items()))


def _main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--compare", type=Path)
    parser.add_argument("--package", type=Path, default=Path())
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    sys.path.insert(0, str(given.package.resolve()))
    from pgmpy.global_vars import config

    import pgmpy_dp

    config.set_show_progress(False)
    print(f"fitting {Path(pgmpy_dp.__file__).parent}")
    start, found = time.perf_counter(), {}
    for name, fit in all_cases():
        if given.only in name:
            before = time.perf_counter()
            found[name] = hashes(fit)
            if "error" in found[name] or (took := time.perf_counter() - before) > 5:
                print(f"  {name}: {found[name].get('error') or f'{took:.0f} s'}")
    print(f"{len(found)} cases in {time.perf_counter() - start:.0f} s")
    given.file.write_text(json.dumps(found, indent=0, sort_keys=True) + "\n", encoding="utf-8")
    if given.compare is None:
        return 0
    baseline = json.loads(given.compare.read_text(encoding="utf-8"))
    differ = changes({name: baseline[name] for name in baseline if given.only in name}, found)
    for name, parts in differ.items():
        print(f"DIFFERS {name}: {', '.join(parts)}")
    serious = sum(parts != ["facts"] for parts in differ.values())
    print(f"{len(found) - len(differ)} cases equal, {serious} with other results, {len(differ) - serious} other facts")
    return serious > 0


if __name__ == "__main__":
    sys.exit(_main())
