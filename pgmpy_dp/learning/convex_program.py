"""The optimum of a strongly convex program with Gaussian noise: a program of the boundary's, or one of your own."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np

from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.curator.curator_base import Curator
from pgmpy_dp.private.data.data_base import PrivateData
from pgmpy_dp.private.operators.solutions import (
    CheckedProgram,
    Program,
    Solution,
    Solver,
    StableProgram,
    noise_plan,
)
from pgmpy_dp.private.sensitive import Release
from pgmpy_dp.shown import quantity


def release(
    program: Program,
    records: PrivateData,
    budget: Budget,
    *,
    solvers: Sequence[Solver] = (),
    columns: Iterable[Hashable] = (),
    random_state: int | None = None,
) -> Release:
    """Release the optimum of a stable program with Gaussian noise.

    Parameters
    ----------
    program : StableProgram or CheckedProgram
        Who passes a program that is not part of the boundary vouches for it: the release says so
        (``public["vouched_for"]``).
    records : PrivateData
        Of the kind that the program reads; their ledger pays.
    budget : Budget
        What this release spends: rho, or epsilon with a delta. Charged before the records are looked at.
    solvers : sequence of (str, mapping), optional
        Of a checked program, see :class:`~pgmpy_dp.private.operators.solutions.Solution`.
    columns : iterable, optional
        Names for the ledger's entry.
    random_state : int, optional
        For tests and benchmarks only: repeatable noise. The release **is not private**.

    Returns
    -------
    Release
        ``kind=program.name``: ``values[0]`` holds m integers; :func:`released_solution` reads them.

    Raises
    ------
    TypeError, ValueError
        For a budget that Gaussian noise cannot spend, and programs or data that do not suit.
    UncertifiedSolution
        If no solver certified its solution: nothing is released, and the budget is spent.

    Notes
    -----
    Privacy: the budget's, by one request for a solution
    (:class:`~pgmpy_dp.private.operators.solutions.Solution`): for ``program.adjacency``, if the program's
    attributes are true.
    """
    if not isinstance(program, CheckedProgram | StableProgram):
        raise TypeError(f"program is a {type(program).__name__}; pass a StableProgram: see its attributes and methods")
    if not isinstance(records, PrivateData):
        raise TypeError(f"records is a {type(records).__name__}; pass private data, e.g. a PrivateGraph")
    if records.adjacency != program.adjacency:
        raise ValueError(
            f"the program's sensitivity is for adjacency={str(program.adjacency)!r}, and the records have "
            f"{str(records.adjacency)!r}; pass others, or derive it for theirs"
        )
    program.check(records.facts())
    plan = noise_plan(program, budget)
    if not solvers and not isinstance(program, StableProgram):
        raise ValueError(f"solvers={solvers!r} for a {type(program).__name__}, which has none of its own; name some")
    curator = Curator(
        records,
        budget,
        what=f"the optimum of a convex program ({program.name}, {quantity(plan.size, 'number')})",
        columns=columns,
        mechanism="discrete_gaussian",
        reserve=budget.delta,
        pure=budget.rho is None,
        random_state=random_state,
    )
    curator.ask(Solution(program, solvers, vouched_for=True), 1, budget.delta)
    return curator.release(
        program.name,
        {
            **program.public(),
            "grid_exponent": plan.exponent,
            "sensitivity": program.sensitivity,
            "distance": program.distance,
            "budget": budget.guarantee.to_dict(),
        },
        curator.called("solution"),
    )


def released_solution(release: Release) -> np.ndarray:
    """The noisy optimum, shape (m,), of a release of a program; ValueError for another kind. Post-processing."""
    if "grid_exponent" not in release.public:
        raise ValueError(f"release has kind {release.kind!r}; pass one of a convex program")
    integers: Any = release["solution"].array
    return np.ldexp(integers.astype(float), int(release.public["grid_exponent"]))
