"""Audits of the estimators of random fields: moments, regressions, rounds of selection."""

from __future__ import annotations

from functools import partial
from typing import Any

from pgmpy_dp.auditing.cases_base import PAIR, AuditCase, declared, fit_case, said
from pgmpy_dp.auditing.neighbours import table_neighbours

N = 2
MIXED = {"a": [0, 1], "b": [0, 1, 2]}


def _field_case(
    name: str, budget: str, adjacency: str, trials: tuple[int, int] = (100, 1600), **arguments: Any
) -> AuditCase:
    states = MIXED if name == "PrivatePairwise" else PAIR
    fixed = {"width": 1.0, "state_names": states, **declared(adjacency, N)}
    if name == "PrivateBinaryMRF":
        fixed["order"] = 2
    neighbours = partial(table_neighbours, states, adjacency, N)
    return fit_case(name, budget, [adjacency, *said(arguments)], neighbours, {**fixed, **arguments}, trials=trials)


def _cases() -> list[AuditCase]:
    fields = ("PrivateIsing", "PrivateBinaryMRF", "PrivatePairwise")
    cases = [
        _field_case(name, budget, adjacency, method="moments")
        for name in fields
        for budget, adjacency in (("epsilon", "replace_one"), ("rho", "add_remove"))
    ]
    cases += [
        _field_case(name, budget, adjacency, trials=(100, 1200), method="frank-wolfe", n_iter=3)
        for name in fields
        for budget, adjacency in (("epsilon", "add_remove"), ("rho", "replace_one"))
    ]
    cases += [
        _field_case("PrivateBinaryMRF", budget, adjacency, (100, 1000), queries=queries)
        for queries in ("pmw", "sepfem")
        for budget, adjacency in (("epsilon", "add_remove"), ("rho", "replace_one"))
    ]
    return cases


CASES = _cases()
