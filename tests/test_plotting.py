"""Plots draw what they were given; without matplotlib they say what to install."""

from __future__ import annotations

import sys

import matplotlib as mpl
import networkx as nx
import numpy as np
import pytest

from pgmpy_dp import Budget
from pgmpy_dp.plotting import plot_communities, plot_feasibility, plot_partial_correlations
from pgmpy_dp.theory import feasibility_map

mpl.use("Agg")
import matplotlib.pyplot as plt

SIZES = [10, 100, 1000]


@pytest.fixture
def feasibility():
    return feasibility_map(SIZES, width=1.0, min_weight=0.5, alpha=0.02, budget=Budget(epsilon=1.0, delta=1e-6))


def test_the_map_is_drawn_on_the_given_axes(feasibility):
    figure, given = plt.subplots()
    ax = plot_feasibility(feasibility, given, n=12345)
    assert ax is given and ax.get_xscale() == ax.get_yscale() == "log"
    lines = {line.get_label(): line for line in ax.get_lines()}
    assert len(lines) == 5 and len(ax.collections) == 2
    for goal in ("structure", "parameters"):
        (dashed,) = [line for label, line in lines.items() if label.startswith(goal) and "lower" in label]
        (full,) = [line for label, line in lines.items() if label.startswith(goal) and "upper" in label]
        np.testing.assert_array_equal(dashed.get_xydata(), np.column_stack([SIZES, feasibility.lower[goal]]))
        np.testing.assert_array_equal(full.get_xydata(), np.column_stack([SIZES, feasibility.upper[goal]]))
    assert "n = 12,345" in lines
    figure.canvas.draw()
    plt.close(figure)


def test_a_new_figure_by_default_and_no_upper_bound_without_a_learner():
    pure = feasibility_map(SIZES, width=1.0, min_weight=0.5, budget=Budget(epsilon=1.0))
    before = plt.get_fignums()
    ax = plot_feasibility(pure)
    assert len(plt.get_fignums()) == len(before) + 1
    assert ["lower" in line.get_label() for line in ax.get_lines()] == [True]
    assert ax.get_title() == "ε-DP" and "constants taken as 1" in ax.get_ylabel()
    plt.close(ax.figure)


def test_without_matplotlib(feasibility, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install 'pgmpy_dp\[plot\]'"):
        plot_feasibility(feasibility)


def test_communities_are_drawn_apart_and_coloured():
    figure, given = plt.subplots()
    labels = {"a": 0, "b": 0, ("c", 1): 2}
    ax = plot_communities(labels, nx.Graph([("a", "b"), ("b", "unknown")]), given, scores=np.eye(3) * [1.0, 2.0, 4.0])
    assert ax is given and len(ax.get_lines()) == 1
    drawn = [points.get_offsets() for points in ax.collections]
    assert [len(points) for points in drawn] == [2, 1]
    assert np.linalg.norm(drawn[0].mean(axis=0) - drawn[1].mean(axis=0)) > 0.5
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        "community 0 (2 vertices)",
        "community 2 (1 vertices)",
    ]
    pale, certain = (points.get_alpha() for points in ax.collections)
    assert pale.max() < certain.max() == 1.0
    plt.close(figure)


def test_no_communities_are_an_empty_plot():
    ax = plot_communities({})
    assert not ax.collections and ax.get_legend() is None
    plt.close(ax.figure)


@pytest.mark.parametrize("columns", [1, 3, 41])
def test_partial_correlations_are_drawn(columns):
    precision = np.eye(columns) * 2.0
    precision[0, -1] = precision[-1, 0] = 2.0 if columns == 1 else -1.0
    figure, given = plt.subplots()
    names = [f"x{j}" for j in range(columns)]
    ax = plot_partial_correlations(precision, names, given)
    assert ax is given
    expected = np.full((columns, columns), 0.0)
    expected[0, -1] = expected[-1, 0] = 0.5
    np.fill_diagonal(expected, np.nan)
    np.testing.assert_allclose(ax.images[0].get_array().filled(np.nan), expected)
    assert ([label.get_text() for label in ax.get_xticklabels()] == names) == (columns <= 40)
    figure.canvas.draw()
    plt.close(figure)
    with pytest.raises(ValueError, match="names has 5 entries"):
        plot_partial_correlations(precision, list("abcde"))
