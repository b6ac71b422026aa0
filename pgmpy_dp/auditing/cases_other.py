"""Audits of the learners of graphs and of records of numbers, and of mechanisms that are released alone."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd

from pgmpy_dp.auditing.cases_base import AuditCase, fit_case, said
from pgmpy_dp.auditing.neighbours import Neighbours, vector_neighbours
from pgmpy_dp.communities.operators.graph import PrivateGraph
from pgmpy_dp.private.accounting import approx_to_zcdp
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.curator.mechanism import SeveralNoisyMax
from pgmpy_dp.private.guarantee import ZCDP, ApproxDP, Guarantee, PureDP

# -- graphs: two vertices, joined or not ------------------------------------------------------------------------------


def _joined() -> Neighbours:
    return Neighbours(nx.path_graph(2), nx.empty_graph(2), "edge", "graphs of two vertices, joined or not")


def community_features(estimator: Any) -> np.ndarray:
    """Whether two vertices have one label and how strongly: what does not depend on the labels' names."""
    labels, scores = (estimator.release_[name].array for name in ("labels", "scores"))
    strength = np.min(np.abs(scores[:, 0].astype(float)))
    return np.array([(1.0 if labels[0] == labels[1] else -1.0) * (1.0 + strength)])


def _block_model_case(budget: str, trials: tuple[int, int], **arguments: Any) -> AuditCase:
    options: dict[str, Any] = {"features": community_features, "trials": trials}
    return fit_case("PrivateBlockModel", budget, said(arguments), _joined, {"degree": 1.0, **arguments}, **options)


def released_projection(graph: Any) -> Any:
    """The projection of the block model on correlation matrices, released alone."""
    from pgmpy_dp.communities.published import projection_solvers

    budget = Budget(rho=0.5)
    program = projection_solvers.projection(2, 1.0, 1.0)
    return projection_solvers.release(program, PrivateGraph(graph, ledger=budget), budget)


# -- records of numbers -----------------------------------------------------------------------------------------------


def _vector_case(budget: str, adjacency: str, d: int = 2, floating_point: bool = False, **arguments: Any) -> AuditCase:
    declared: dict[str, Any] = {"adjacency": adjacency}
    if adjacency == "replace_one" or arguments.get("perturb") == "output":
        declared["n_records"] = 2
    label, neighbours = [adjacency, f"d={d}", *said(arguments)], partial(vector_neighbours, d, 1.0, adjacency, 2)
    fixed = {} if arguments.get("perturb") == "pairs" else {"row_norm": 1.0, "penalty": 0.5}
    fit_options = {**fixed, **declared, **arguments}
    return fit_case("PrivateGraphicalLasso", budget, label, neighbours, fit_options, floating_point=floating_point)


def _person_neighbours() -> Neighbours:
    """Two people with two records each, one of whom is missing; their records are long, and must be shortened."""
    frame = pd.DataFrame({"who": ["p", "p", "q", "q"], "x": [0.0, 0.0, 10.0, 10.0], "y": [0.0, 0.0, 10.0, 10.0]})
    return Neighbours(frame, frame[:2], "add_remove", "records of two people", unit="who")


def _person_case() -> AuditCase:
    fit_options = {"row_norm": 1.0, "penalty": 0.5, "unit": "who"}
    options: dict[str, Any] = {"trials": (100, 1600)}
    label = ["add_remove", "unit"]
    return fit_case("PrivateGraphicalLasso", "epsilon", label, _person_neighbours, fit_options, **options)


def _far_records(adjacency: str, n: int) -> Neighbours:
    """One record far from all others, or not: the block that it is in looks elsewhere, and sums clip it."""
    rows = np.zeros((n, 1))
    rows[-1] = 1000.0
    other = rows[:-1] if adjacency == "add_remove" else np.zeros((n, 1))
    return Neighbours(rows, other, adjacency, f"{n} records, all the same but one far away")


def mixture_features(output: Any) -> np.ndarray:
    """Return a mixture's release as numbers, always as many: outcome, counts, cells far away."""
    release = getattr(output, "release_", output)
    values = dict(zip(release.names, release.values, strict=True))
    features = [float(values["status"][0])]
    for name in ("n_records", "means", "counts", "cells", "cell_counts", "agreeing_blocks"):
        value = np.asarray(values.get(name, ()), dtype=float).ravel()
        features += [float(value.size), float(value.max(initial=0.0)), float(value.sum())]
    return np.array(features)


def _mixture_case(adjacency: str, **arguments: Any) -> AuditCase:
    n, blocks = 60, 20
    declared: dict[str, Any] = {"adjacency": adjacency, "n_records": n} if adjacency == "replace_one" else {}
    fixed = {"n_components": 1, "separation": 4.0, "scale": 1.0, "n_blocks": blocks, "n_steps": 2}
    label, neighbours = [adjacency, "blocks", *said(arguments)], partial(_far_records, adjacency, n)
    fit_options = {**fixed, **declared, **arguments}
    return fit_case("PrivateGaussianMixture", "delta", label, neighbours, fit_options, features=mixture_features)


# -- mechanisms that decide what is released, on their own -------------------------------------------------------------


def selected(scores: np.ndarray, cost: Guarantee) -> np.ndarray:
    """A noisy maximum of scores that one record moves by at most 1."""
    assert isinstance(cost, PureDP | ZCDP)
    return SeveralNoisyMax.planned(1.0, 1, cost, Fraction(1)).over((scores,)).draw(None)


def tested_distance(votes: list) -> np.ndarray:
    """The mode of votes, if far enough from changing, and the noisy distance."""
    from pgmpy_dp.fields.operators.vote_operators import StableMode, agreement_test

    test = StableMode(None, 0, agreement_test(PureDP(1.0), 1, 0.01), np.array([1.0, -1.0]))
    noisy, mode = test.over([(("a", "b").index(vote),) for vote in votes]).draw(None)
    return np.array([float(noisy[0]), *(mode if len(mode) else [0.0])])


def lone_cell(marks: list) -> np.ndarray:
    """Cells of a histogram that reach the threshold: (block, cell) marks, of at most one cell a block.

    A delta of .005 for the threshold and as much to convert the noise's zCDP.
    """
    from pgmpy_dp.mixtures.operators.block_operators import StableCells, stable_histogram

    plan = stable_histogram(1, ZCDP(approx_to_zcdp(1.0, 0.005)), 1, 0.005)
    exact = np.unique([[cell] for _, cell in marks], axis=0, return_counts=True)
    cells, counts = StableCells.planned(1, plan).over(exact).draw(None)
    noisy = dict(zip(cells[:, 0].tolist(), counts.tolist(), strict=True))
    return np.array([float(noisy.get(cell, -100.0)) for cell in (0, 1)])  # far from any count: not released


def _changed_marks() -> Neighbours:
    marks = [(block, 0) for block in range(6)]
    return Neighbours([*marks, (6, 1)], marks, "add_remove", "marks of seven blocks, one of them in a cell of its own")


def _changed_votes() -> Neighbours:
    # One change apart around the threshold, 5, of the distance.
    return Neighbours(["a"] * 11, ["a"] * 10 + ["b"], "replace_one", "votes, one of them another")


def _changed_scores() -> Neighbours:
    return Neighbours(np.array([0, 0]), np.array([1, -1]), "replace_one", "scores that move in opposite directions")


def _cases() -> list[AuditCase]:
    quick = (200, 10_000)
    cases = [
        _block_model_case("epsilon", (100, 1600), method="noisy-power"),
        _block_model_case("rho", (100, 1600), method="noisy-power"),
        _block_model_case("epsilon", (100, 2000), method="randomized-response"),
        _block_model_case("epsilon", (100, 2000), method="exponential"),
        _block_model_case("rho", (100, 1600), method="sdp"),
        _block_model_case("delta", (100, 1600), method="sdp-exact"),
        AuditCase(
            "BlockProjection(rho)", "BlockProjection", ZCDP(0.5), _joined, released_projection, trials=(100, 2400)
        ),
    ]
    cases += [
        _vector_case("epsilon", "add_remove"),
        _vector_case("epsilon", "add_remove", d=1),
        _vector_case("epsilon", "replace_one"),
        _vector_case("rho", "add_remove"),
        _vector_case("rho", "replace_one"),
        _vector_case("epsilon", "replace_one", mechanism="laplace"),
        _vector_case("epsilon", "replace_one", mechanism="published-laplace"),
        _vector_case("epsilon", "add_remove", mechanism="frobenius", floating_point=True),
        _vector_case("rho", "add_remove", mechanism="gaussian"),
        _vector_case("delta", "add_remove", mechanism="one-sided-wishart", floating_point=True),
        _vector_case("delta", "add_remove", mechanism="analytic-goe"),
        _vector_case("rho", "add_remove", center="private", center_radius=1.0),
        _vector_case("rho", "replace_one", center="private", row_norm=None, bounds=((-1.0, 1.0), (-1.0, 1.0))),
        _vector_case("epsilon", "add_remove", perturb="pairs", center=(-0.5, -0.5)),
        _vector_case("epsilon", "replace_one", perturb="output", floating_point=True),
        _vector_case("rho", "add_remove", perturb="output"),
        _person_case(),
        _mixture_case("add_remove"),
        _mixture_case("replace_one"),
        _mixture_case("add_remove", scale=None),
    ]
    for cost in (PureDP(2.0), ZCDP(0.5)):
        mechanism = partial(selected, cost=cost)
        cases.append(AuditCase(f"noisy_argmax({cost})", "noisy_argmax", cost, _changed_scores, mechanism, trials=quick))
    approximate = ApproxDP(1.0, 0.01)
    cases += [
        AuditCase("distance_test", "distance_test", approximate, _changed_votes, tested_distance, trials=quick),
        AuditCase("stability_histogram", "stability_histogram", approximate, _changed_marks, lone_cell, trials=quick),
    ]
    return cases


CASES = _cases()
