"""The search for the smallest number of records, and each of its learners on a small graph."""

from __future__ import annotations

import functools
import json
import math

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from benchmarks import structure_recovery
from benchmarks.structure_recovery import BUDGETS, Learner, Population, grid, growth, learners, measure, smallest_index

LEARNERS = {
    f"{learner.name}, {learner.guarantee}, {kind}": (kind, learner)
    for kind in ("tree", "regular")
    for learner in learners(kind)
}


def test_the_search_finds_the_first_success_from_wherever_it_starts() -> None:
    for first in range(21):
        for start in range(-2, 25):
            asked = []

            def succeeds(index: int, first: int = first, asked: list[int] = asked) -> bool:
                asked.append(index)
                return index >= first

            assert smallest_index(succeeds, start, 19) == (first if first <= 19 else None)
            assert all(0 <= index <= 19 for index in asked)
            assert len(asked) == len(set(asked)) <= 10


def test_the_grid_is_of_powers_of_the_root_of_two() -> None:
    assert [grid(index) for index in range(5)] == [128, 182, 256, 363, 512]
    assert grid(structure_recovery.LAST) == 524_288


def test_growth_is_the_power() -> None:
    slope, error = growth([10, 20, 50], [round(7 * p**1.5) for p in (10, 20, 50)])
    assert slope == pytest.approx(1.5, abs=1e-3)
    assert 0.08 < error < 0.09  # that of rounding to the grid, over this range
    assert math.isnan(growth([10, 20], [10, 20])[1])


@pytest.mark.parametrize("kind", ["tree", "grid", "regular"])
def test_populations_are_repeatable_and_fewer_records_are_the_first_of_more(kind: str) -> None:
    population, again = Population(kind, 20, 3), Population(kind, 20, 3)
    more = population.codes(20_000)
    np.testing.assert_array_equal(again.codes(100), more[:100])
    np.testing.assert_array_equal(again.codes(20_000), more)
    assert population.edges == again.edges
    graph = nx.Graph(population.edges)
    assert {"tree": nx.is_tree(graph), "grid": graph.number_of_edges() == 31, "regular": nx.is_regular(graph)}[kind]
    assert len(population.edges) <= structure_recovery.MOST_EDGES[kind](20)
    signs = 2.0 * more - 1
    correlations = np.abs(signs.T @ signs) / len(signs)
    i, j = np.transpose(sorted(population.edges))
    # An edge's correlation is at least that of the pair alone, up to frustrated cycles.
    assert correlations[i, j].mean() > math.tanh(structure_recovery.WEIGHTS[kind]) - 0.05


def test_measuring_stops_when_the_outcome_is_sure() -> None:
    populations = [Population("tree", 4, seed) for seed in range(5)]
    asked: list[int] = []

    def find(population: Population, n: int) -> set[tuple[int, int]] | None:
        asked.append(n)
        if n >= 500:
            return population.edges
        return None if n < 200 else set()

    row = measure(Learner("made up", "none", find, 4), populations, 4, 0, 10)
    assert (row["smallest"], row["kind"], row["p"]) == (512, "tree", 4)
    assert row["tried"]["512"] | {"seconds": 0} == {"exact": 4, "wrong": 0, "none": 0, "seconds": 0}
    assert row["tried"]["363"]["wrong"] == row["tried"]["128"]["none"] == 2
    assert len(asked) == 4 * sum(int(n) >= 500 for n in row["tried"]) + 2 * sum(int(n) < 500 for n in row["tried"])
    never = measure(Learner("never", "none", lambda population, n: None, 4), populations, 4, 3, 5)
    assert (never["smallest"], never["largest"]) == (None, grid(5))


@functools.cache
def without_privacy(kind: str) -> dict:
    return measure(learners(kind)[0], [Population(kind, 6, seed) for seed in range(3)], 3, 4)


def again(name: str) -> bool:
    """Whether the same learner is tried on trees already."""
    return name.endswith(", regular") and name.removesuffix("regular") + "tree" in LEARNERS


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] * again(n)) for n in LEARNERS])
def test_each_learner_finds_small_graphs_from_enough_records(name: str) -> None:
    kind, learner = LEARNERS[name]
    populations = [Population(kind, 6, seed) for seed in range(3)]
    row = measure(learner, populations, 3, 13)
    plain = without_privacy(kind)
    assert row["smallest"] is not None
    assert plain["smallest"] <= row["smallest"] <= 60_000
    if learner.name.startswith("PrivateChowLiu"):
        # The noise of 15 tables is known: trees of six variables are easy.
        assert row["smallest"] <= (1500 if learner.guarantee == "epsilon = 1" else 1000)


def test_a_run_goes_on_where_it_ended_and_is_reported(monkeypatch, tmp_path) -> None:
    def find(population: Population, n: int) -> set[tuple[int, int]] | None:
        return population.edges if n >= 100 * population.p else set()

    made = [
        Learner("StableStructure, made up", "(1, 1e-6)", find, 12),
        Learner("PrivateIsing, moments", "rho = 0.1", lambda p, n: find(p, n // 4), 6),
    ]
    monkeypatch.setattr(structure_recovery, "learners", lambda kind: made)
    monkeypatch.setitem(structure_recovery.MODES, "quick", (("tree",), (4, 6, 12), 2, 2))
    arguments = ["--out", str(tmp_path)]
    structure_recovery.main(arguments)
    path = tmp_path / "structure-recovery-quick.jsonl"
    header, *rows = path.read_text().splitlines()
    assert [json.loads(row)["smallest"] for row in rows] == [512, 2048, 725, 2897, 1449]
    path.write_text("\n".join([header, *rows[:2]]) + "\n")
    structure_recovery.main([*arguments, "--resume"])
    again = [json.loads(row) for row in path.read_text().splitlines()[1:]]
    assert [row["smallest"] for row in again] == [512, 2048, 725, 2897, 1449]
    text = (tmp_path / "structure-recovery-quick.md").read_text()
    assert "| StableStructure, made up | (1, 1e-6) | 512 | 725 | 1,449 | 0.95 +- " in text
    assert "| PrivateIsing, moments | rho = 0.1 | 2,048 | 2,897 | - | - |" in text
    fits = sum(c["exact"] + c["wrong"] for r in again if r["learner"].startswith("Stable") for c in r["tried"].values())
    assert f" wrong graphs in {fits} fits" in text
    assert (tmp_path / "structure-recovery-quick.png").stat().st_size > 1000
    never = pd.DataFrame([{**again[0], "smallest": None}])
    assert "> 524,288" in structure_recovery.report(never)
    assert set(BUDGETS) >= {row["guarantee"] for row in again}
