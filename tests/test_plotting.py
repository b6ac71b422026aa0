"""Plots draw what they were given, in one look; without matplotlib they say what to install."""

from __future__ import annotations

import inspect
import sys

import matplotlib as mpl
import networkx as nx
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex

from pgmpy_dp import Budget, Ledger, MarkovNetwork, PrivateTable, plotting
from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.learning.noisy_tables import run as release_marginals
from pgmpy_dp.plotting import (
    plot_communities,
    plot_error,
    plot_feasibility,
    plot_graph,
    plot_ledger,
    plot_marginals,
    plot_partial_correlations,
    plot_privacy_profile,
)
from pgmpy_dp.plotting.style import COLOURS, VERMILLION
from pgmpy_dp.private.accounting import zcdp_to_approx
from pgmpy_dp.private.guarantee import ZCDP, ApproxDP, PureDP
from pgmpy_dp.theory import feasibility_map

mpl.use("Agg")
import matplotlib.pyplot as plt

from tests.settings import table_settings

SIZES = [10, 100, 1000]


@pytest.fixture(autouse=True)
def _no_figure_is_left():
    yield
    plt.close("all")


@pytest.fixture
def feasibility():
    return feasibility_map(SIZES, width=1.0, min_weight=0.5, alpha=0.02, budget=Budget(epsilon=1.0, delta=1e-6))


@pytest.fixture
def network():
    """a - b - c, b of three states; a and b depend on each other more than b and c."""
    cliques = Cliques(("a", "b", "c"), (2, 3, 2), (("a", "b"), ("b", "c")))
    theta = np.concatenate([np.log([[6.0, 1, 1], [1, 1, 6]]).ravel(), np.log([[2.0, 1], [1, 1], [1, 2]]).ravel()])
    states = {"a": ["0", "1"], "b": ["x", "y", "z"], "c": ["0", "1"]}
    return MarkovNetwork.from_log_linear(LogLinearModel(cliques, theta), nx.path_graph(["a", "b", "c"]), states)


def calls(feasibility, network):
    """One call of every function."""
    ledger = Ledger(Budget(epsilon=1.0))
    ledger.charge(PureDP(0.5), what="w", columns=("a",), mechanism="m", adjacency="add_remove")
    return {
        "plot_communities": ({"a": 0, "b": 1},),
        "plot_error": (pd.DataFrame({"one": [0.5, 0.1]}, index=[0.1, 1.0]),),
        "plot_feasibility": (feasibility,),
        "plot_graph": (network,),
        "plot_ledger": (ledger,),
        "plot_marginals": (network, network),
        "plot_partial_correlations": (np.eye(2),),
        "plot_privacy_profile": (PureDP(1.0),),
    }


@pytest.mark.parametrize("name", plotting.__all__)
def test_all_draw_on_the_given_axes_or_new_ones_and_leave_the_settings_alone(name, feasibility, network):
    function, arguments = getattr(plotting, name), calls(feasibility, network)[name]
    before = dict(mpl.rcParams)
    figure, (given, other) = plt.subplots(1, 2)
    untouched = other.spines["top"].get_visible(), len(other.get_children())
    assert function(*arguments, ax=given) is given
    assert (other.spines["top"].get_visible(), len(other.get_children())) == untouched
    new = function(*arguments)
    assert new.figure is not figure and new.figure.get_constrained_layout()
    assert not given.spines["top"].get_visible() or name == "plot_partial_correlations"
    new.figure.canvas.draw()
    figure.canvas.draw()
    assert dict(mpl.rcParams) == before
    assert inspect.signature(function).parameters["ax"].default is None


@pytest.mark.parametrize("name", plotting.__all__)
def test_without_matplotlib(name, feasibility, network, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match="pip install matplotlib"):
        getattr(plotting, name)(*calls(feasibility, network)[name])


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


def test_no_upper_bound_without_a_learner():
    pure = feasibility_map(SIZES, width=1.0, min_weight=0.5, budget=Budget(epsilon=1.0))
    ax = plot_feasibility(pure)
    assert ["lower" in line.get_label() for line in ax.get_lines()] == [True]
    assert ax.get_title() == "ε-DP" and "constants taken as 1" in ax.get_ylabel()


# -- graphs --------------------------------------------------------------------------------------


def test_stronger_edges_are_thicker_and_negative_ones_marked():
    graph = nx.Graph([("a", "b"), ("b", "c"), ("c", "a"), ("c", "c")])
    graph.add_node("alone")
    ax = plot_graph(graph, {("b", "a"): 0.1, ("b", "c"): -0.9, ("a", "c"): 0.4, ("a", "alone"): 5.0})
    (edges,) = [drawn for drawn in ax.collections if isinstance(drawn, mpl.collections.LineCollection)]
    names = {text.get_text(): text.xy for text in ax.texts}
    assert set(names) == {"a", "b", "c", "alone"}
    ends = {frozenset(map(tuple, segment)): k for k, segment in enumerate(edges.get_segments())}
    at = [ends[frozenset({names[u], names[v]})] for u, v in ("ab", "ac", "bc")]
    widths = np.asarray(edges.get_linewidths())[at]
    assert widths[0] < widths[1] < widths[2] and len(ends) == 3
    np.testing.assert_allclose((widths - 0.8) / (widths[2] - 0.8), [0.1 / 0.9, 0.4 / 0.9, 1.0])
    colours = [to_hex(edges.get_colors()[k]) for k in at]
    assert colours[0] == colours[1] != colours[2] == VERMILLION.lower()
    assert edges.get_linestyles()[at[2]] != edges.get_linestyles()[at[0]]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["0.4", "0.1", "-0.9"]
    (points,) = [drawn for drawn in ax.collections if drawn is not edges]
    np.testing.assert_allclose(points.get_offsets(), [names[node] for node in graph])


def test_a_models_edges_are_as_thick_as_their_mutual_information(network):
    ax = plot_graph(network)
    (edges,) = [drawn for drawn in ax.collections if isinstance(drawn, mpl.collections.LineCollection)]

    def information(pair):
        table = network.marginal(pair).values
        return (table * np.log(table / np.outer(table.sum(axis=1), table.sum(axis=0)))).sum()

    expected = np.array([information(edge) for edge in network.edges])
    np.testing.assert_allclose(edges.get_linewidths(), 0.8 + 6.2 * expected / expected.max())
    assert ax.get_legend().get_title().get_text() == "mutual information (nats)"


def test_layouts():
    places = {0: (0.0, 0.0), 1: (2.0, 1.0)}
    ax = plot_graph(nx.Graph([(0, 1)]), layout=places)
    np.testing.assert_array_equal(ax.collections[0].get_segments()[0], [places[0], places[1]])
    assert ax.get_legend() is None
    # Around the circle, what is tied strongly follows each other: here the path 0 - 2 - 1 - 3.
    ax = plot_graph(
        nx.Graph([(0, 1), (0, 2), (1, 2), (1, 3), (0, 3)]),
        dict.fromkeys([(0, 2), (1, 2), (1, 3)], 1.0) | {(0, 1): 0.1, (0, 3): 0.1},
    )
    angles = {text.get_text(): np.arctan2(*text.xy) % (2 * np.pi) for text in ax.texts}
    assert sorted(angles, key=angles.get) in (list("0213"), list("0312"))
    large = nx.random_labeled_tree(50, seed=1)
    again = [plot_graph(large).collections[1].get_offsets() for _ in range(2)]
    np.testing.assert_array_equal(*again)
    assert not plot_graph(large).texts and not plot_graph(nx.Graph()).texts


def test_graphs_that_cannot_be_drawn():
    graph = nx.path_graph(3)
    with pytest.raises(ValueError, match=r"strengths has no finite number for the edges \[\(1, 2\)\]"):
        plot_graph(graph, {(0, 1): 1.0, (2, 1): np.nan})
    with pytest.raises(ValueError, match=r"layout has no place for the nodes \[2\]"):
        plot_graph(graph, layout={0: (0, 0), 1: (1, 1)})


@pytest.mark.parametrize("columns", [1, 3, 41])
def test_partial_correlations_are_drawn(columns):
    precision = np.eye(columns) * 2.0
    precision[0, -1] = precision[-1, 0] = 2.0 if columns == 1 else -1.0
    names = [f"x{j}" for j in range(columns)]
    ax = plot_partial_correlations(precision, names)
    expected = np.full((columns, columns), 0.0)
    expected[0, -1] = expected[-1, 0] = 0.5
    np.fill_diagonal(expected, np.nan)
    np.testing.assert_allclose(ax.images[0].get_array().filled(np.nan), expected)
    assert ([label.get_text() for label in ax.get_xticklabels()] == names) == (columns <= 40)
    with pytest.raises(ValueError, match="names has 5 entries"):
        plot_partial_correlations(precision, list("abcde"))


# -- communities ---------------------------------------------------------------------------------


def test_communities_are_drawn_apart_and_coloured():
    labels = {"a": 0, "b": 0, ("c", 1): 2}
    ax = plot_communities(labels, nx.Graph([("a", "b"), ("b", "unknown")]), scores=np.eye(3) * [1.0, 2.0, 4.0])
    assert len(ax.get_lines()) == 1
    drawn = [points.get_offsets() for points in ax.collections]
    assert [len(points) for points in drawn] == [2, 1]
    assert np.linalg.norm(drawn[0].mean(axis=0) - drawn[1].mean(axis=0)) > 0.5
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        "community 0 (2 vertices)",
        "community 2 (1 vertex)",
    ]
    pale, certain = (points.get_alpha() for points in ax.collections)
    assert pale.max() < certain.max() == 1.0
    first, second = ax.collections
    assert to_hex(first.get_facecolor()[0]) == COLOURS[0].lower() != to_hex(second.get_facecolor()[0])
    assert len(first.get_paths()[0].vertices) != len(second.get_paths()[0].vertices)  # another marker


def test_certain_vertices_are_in_the_middle_and_markers_of_many_do_not_overlap():
    n = 2000
    margin = np.random.default_rng(0).permutation(n) + 1.0
    scores = np.zeros((n, 2))
    scores[np.arange(n), np.arange(n) % 2] = margin
    figure, ax = plt.subplots(figsize=(5, 4))
    plot_communities(dict(enumerate((np.arange(n) % 2).tolist())), ax=ax, scores=scores)
    figure.canvas.draw()
    for points in ax.collections:
        middle = points.get_offsets()[0]
        away = np.linalg.norm(points.get_offsets() - middle, axis=1)
        alpha = points.get_alpha()
        assert np.corrcoef(away, alpha)[0, 1] < -0.9 and alpha[0] == alpha.max() and alpha.min() < 0.2
        pixels = ax.transData.transform(points.get_offsets())
        nearest = np.sort(np.linalg.norm(pixels - pixels[len(pixels) // 2], axis=1))[1]
        across = np.sqrt(points.get_sizes()[0]) * figure.dpi / 72
        assert 0.4 * nearest < across < nearest
    few = plot_communities({"a": 0, "b": 1})
    assert few.collections[0].get_sizes()[0] == 25.0


def test_wrong_communities_are_marked_under_the_best_renaming():
    labels = {0: 5, 1: 5, 2: 5, 3: 9, 4: 9}
    truth = {0: "x", 1: "y", 2: "y", 3: "x", 4: "x", "other": "z"}
    ax = plot_communities(labels, truth=truth)
    cross, places = ax.collections[-1].get_offsets(), ax.collections[0].get_offsets()
    np.testing.assert_array_equal(cross, places[:1])
    assert ax.get_title() == "1 of 5 vertices differ from the truth"
    assert len(plot_communities(labels, truth=labels).collections) == 2
    with pytest.raises(ValueError, match=r"truth has no community for the vertices \[4\]"):
        plot_communities(labels, truth=dict.fromkeys(range(4), 0))


def test_the_matrix_is_ordered_by_community():
    graph = nx.Graph([("a", "c"), ("b", "d"), ("a", "b"), ("a", "far")])
    ax = plot_communities({"a": 1, "b": 0, "c": 1, "d": 0}, graph, truth={"a": 0, "b": 0, "c": 1, "d": 0}, matrix=True)
    order = ["b", "d", "a", "c"]
    np.testing.assert_array_equal(ax.images[0].get_array(), nx.to_numpy_array(graph, order))
    assert [label.get_text() for label in ax.get_xticklabels()] == ["0", "1"]
    *between, wrong = ax.get_lines()
    assert [line.get_ydata()[0] for line in between[:1]] == [1.5] and list(wrong.get_ydata()) == [2]
    with pytest.raises(ValueError, match="matrix=True draws the adjacency matrix of graph, which is None"):
        plot_communities({"a": 0}, matrix=True)


def test_no_communities_are_an_empty_plot():
    ax = plot_communities({})
    assert not ax.collections and ax.get_legend() is None


# -- marginals and errors ------------------------------------------------------------------------


def test_points_are_the_cells_of_all_pairs(network):
    records = network.sample(500, random_state=0)
    ax = plot_marginals(network, records)
    points = ax.collections[0].get_offsets()
    pairs = [("a", "b"), ("a", "c"), ("b", "c")]
    ours = [network.marginal(pair).values for pair in pairs]
    theirs = [pd.crosstab(records[u], records[v]).to_numpy() / 500 for u, v in pairs]
    floor = min(table[table > 0].min() for table in theirs) / 2
    expected = np.column_stack(
        [np.maximum(np.concatenate([t.ravel() for t in tables]), floor) for tables in (theirs, ours)]
    )
    np.testing.assert_allclose(points, expected)
    distance = np.mean([np.abs(a - b).sum() / 2 for a, b in zip(ours, theirs, strict=True)])
    assert ax.texts[0].get_text() == f"3 tables, 16 cells\nmean total variation {distance:.4f}"
    assert ax.get_xscale() == ax.get_yscale() == "log"


def test_a_release_is_drawn_with_its_noise(network):
    records = network.sample(300, random_state=0)
    table = PrivateTable(records, network.states, ledger=Budget(epsilon=0.5))
    settings = table_settings(scopes=(("a", "b"), ("c",)), random_state=0)
    release = release_marginals(table, settings, Budget(epsilon=0.5))
    ax = plot_marginals(release, network.to_log_linear(), floor=1e-3)
    noisy = release.values[release.scopes.index(("a", "b"))]
    total = np.mean([value.sum() for value in release.values])
    x, y = ax.collections[0].get_offsets().T
    np.testing.assert_allclose(y, np.maximum(noisy.ravel() / total, 1e-3))
    np.testing.assert_allclose(x, network.marginal(["a", "b"]).values.ravel())


def test_marginals_that_cannot_be_compared(network):
    with pytest.raises(TypeError, match="model is a dict"):
        plot_marginals({}, network)
    with pytest.raises(ValueError, match=r"scopes has \['z'\]"):
        plot_marginals(network, network, scopes=[("a", "z")])
    alone = MarkovNetwork.from_log_linear(
        LogLinearModel(Cliques(("a",), (2,), (("a",),)), np.zeros(2)), nx.empty_graph(["a"]), {"a": ["0", "1"]}
    )
    with pytest.raises(ValueError, match="no pair of variables"):
        plot_marginals(alone, network)
    with pytest.raises(ValueError, match="reference has not the model's states"):
        plot_marginals(network, alone)


def test_errors_are_medians_in_bands():
    index = pd.Index([1.0, 0.1, 0.1, 0.1], name="rho")
    errors = pd.DataFrame(
        {"one": [0.1, 0.5, 0.2, 0.9], "two": [0.3, 0.4, np.nan, 0.8], "lone": [0.2, 0.4, np.nan, np.nan]}, index=index
    )
    ax = plot_error(errors, ylabel="distance")
    one, two, lone = (line.get_xydata().tolist() for line in ax.get_lines())
    assert one == [[0.1, 0.5], [1.0, 0.1]] and lone == [[0.1, 0.4], [1.0, 0.2]]
    np.testing.assert_allclose(two, [[0.1, 0.6], [1.0, 0.3]])
    bands = [set(map(tuple, band.get_paths()[0].vertices.tolist())) for band in ax.collections]
    assert [{y for x, y in band if x == 0.1} for band in bands] == [{0.2, 0.9}, {0.4, 0.8}]
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_xscale(), ax.get_yscale()) == ("rho", "distance", "log", "log")
    assert (
        len({line.get_color() for line in ax.get_lines()}) == len({line.get_marker() for line in ax.get_lines()}) == 3
    )
    for wrong in (pd.DataFrame({"a": [0.0]}, index=[1.0]), pd.DataFrame({"a": [1.0]}, index=[0.0])):
        with pytest.raises(ValueError, match="must be positive"):
            plot_error(wrong)
    with pytest.raises(TypeError, match="errors is a dict"):
        plot_error({})


# -- what was spent ------------------------------------------------------------------------------


def charged(budget, *costs, seeded=False):
    ledger = Ledger(budget)
    for number, cost in enumerate(costs):
        ledger.charge(
            cost, what=f"release {number}", columns=("a",), mechanism="m", adjacency="add_remove", reproducible=seeded
        )
    return ledger


@pytest.mark.parametrize(
    ("budget", "costs", "ends", "limit"),
    [
        (Budget(epsilon=1.0), [PureDP(0.25), PureDP(0.5)], [0.25, 0.75], 1.0),
        (Budget(rho=0.5), [ZCDP(0.125), PureDP(0.5)], [0.125, 0.25], 0.5),
        (Budget(epsilon=2.0, delta=1e-6), [ApproxDP(0.5, 1e-7), ApproxDP(0.25, 1e-7)], [0.5, 0.75], 2.0),
        (
            Budget(epsilon=2.0, delta=1e-6),
            [ZCDP(0.01), ZCDP(0.02)],
            [zcdp_to_approx(0.01, 0.9e-6), zcdp_to_approx(0.03, 0.9e-6)],  # nine tenths of delta convert
            2.0,
        ),
    ],
)
def test_charges_follow_each_other_up_to_the_budget(budget, costs, ends, limit):
    ledger = charged(budget, *costs)
    ax = plot_ledger(ledger)
    bars = [(bar.get_x(), bar.get_x() + bar.get_width()) for bar in ax.patches]
    np.testing.assert_allclose(bars, [(0.0, ends[0]), (ends[0], ends[1]), (ends[1], limit)], atol=1e-12)
    assert [text.get_text() for text in ax.texts] == [str(cost) for cost in costs]
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert labels == ["1  release 0", "2  release 1", "left"]  # numbers and no times
    assert [line.get_xdata()[0] for line in ax.get_lines()] == [limit]
    assert ax.get_xlabel() == ("rho (zCDP)" if budget.rho else "epsilon")
    assert ax.get_title(loc="left") == f"costs add up to {ledger.spent}; guarantee {budget.guarantee}"
    assert len(ledger.entries) == 2


def test_an_empty_ledger_and_one_with_seeded_noise():
    ax = plot_ledger(Ledger(Budget(epsilon=3.0)))
    assert [bar.get_width() for bar in ax.patches] == [3.0]
    ax = plot_ledger(charged(Budget(epsilon=3.0), PureDP(1.0), seeded=True))
    assert "NOT PRIVATE" in ax.get_title(loc="left")
    assert ax.patches[0].get_hatch() and to_hex(ax.patches[0].get_facecolor()) == VERMILLION.lower()


def test_profiles_are_the_closed_forms():
    epsilons = np.array([0.0, 0.3, 0.999, 1.5])
    ax = plot_privacy_profile(
        {"pure": PureDP(1.0), "approximate": ApproxDP(1.0, 1e-3), "zcdp": ZCDP(0.1)}, epsilons=epsilons
    )
    pure, approximate, zcdp = ax.get_lines()
    exact = np.maximum(0.0, (np.e - np.exp(epsilons)) / (np.e + 1))
    np.testing.assert_allclose(pure.get_ydata(), np.maximum(exact, 1e-300), rtol=1e-12)
    np.testing.assert_allclose(approximate.get_ydata(), 1e-3 + 0.999 * exact, rtol=1e-12)
    back = [zcdp_to_approx(0.1, delta) for delta in zcdp.get_ydata()[1:]]
    np.testing.assert_allclose(back, epsilons[1:], rtol=1e-9)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["pure", "approximate", "zcdp"]
    assert ax.get_yscale() == "log"


@pytest.mark.parametrize(
    ("budget", "costs"),
    [
        (Budget(epsilon=2.0, delta=1e-6), [ZCDP(0.01), PureDP(0.2)]),
        (Budget(epsilon=2.0, delta=1e-6), [ApproxDP(0.5, 1e-7)]),
        (Budget(epsilon=2.0), [PureDP(0.5), PureDP(0.25)]),
        (Budget(rho=0.5), [ZCDP(0.125), PureDP(0.5)]),
        (Budget(epsilon=1.0), []),
    ],
)
def test_the_profile_of_a_ledger_is_that_of_its_budget(budget, costs):
    """A sum of costs that were chosen by results is no guarantee (see test_ledger.py); the budget's is one."""
    ledger = charged(budget, *costs)
    ax = plot_privacy_profile([ledger, budget.guarantee])
    of_ledger, of_budget = (line.get_ydata() for line in ax.get_lines())
    np.testing.assert_array_equal(of_ledger, of_budget)
    assert ax.get_legend().get_texts()[0].get_text() == f"ledger: {budget.guarantee}"
    smaller = plot_privacy_profile([ledger.spent], epsilons=ax.get_lines()[0].get_xdata()).get_lines()[0].get_ydata()
    assert not np.array_equal(of_ledger, smaller)


def test_what_has_no_profile():
    with pytest.raises(TypeError, match="guarantees has a Budget"):
        plot_privacy_profile([Budget(epsilon=1.0)])
    with pytest.raises(ValueError, match="epsilons has negative"):
        plot_privacy_profile(PureDP(1.0), epsilons=np.array([-1.0]))
