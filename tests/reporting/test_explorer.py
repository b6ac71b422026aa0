"""The explorer's page: its JavaScript against exact inference in Python, its limits, and the page in a browser."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from pgmpy.factors.discrete import DiscreteFactor

import pgmpy_dp.reporting.explorer as explorer_module
from pgmpy_dp import MarkovNetwork, Schema
from pgmpy_dp.estimators import CollectiveMAP
from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.models.printing_rule import PrintingRule
from pgmpy_dp.reporting.explorer import explorer_data
from pgmpy_dp.reporting.marginals import variable_rows
from tests.reporting.models import fitted

HERE = Path(__file__).parent
SCRIPT = Path(explorer_module.__file__).parent / "templates" / "inference.js"
NODE, BROWSER = shutil.which("node"), shutil.which("chromium") or shutil.which("google-chrome")
needs_node = pytest.mark.skipif(NODE is None, reason="no node")


def answers(network: MarkovNetwork, asked: list[dict[int, list[int]]], level: float = 0.9) -> list[dict]:
    """Of the page's script, to evidence as states of variables by number."""
    sizes = [len(network.states[name]) for name in network]
    weights = [[(v, [float(k in kept) for k in range(sizes[v])]) for v, kept in known.items()] for known in asked]
    task = json.dumps({"data": explorer_data(network, None, level) | {"level": level}, "asked": weights})
    command = [NODE, str(HERE / "explorer_answers.cjs"), str(SCRIPT)]
    done = subprocess.run(command, input=task, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def random_model(seed: int) -> MarkovNetwork:
    """Two components, an isolated node, factors over thirty orders of magnitude, an impossible cell."""
    rng = np.random.default_rng(seed)
    graph = nx.Graph([*nx.cycle_graph(5).edges, (0, 2), ("a", "b")])
    graph.add_node("alone")
    sizes = {name: int(rng.integers(2, 5)) for name in graph}
    cliques = Cliques.from_graph(graph, sizes)
    theta = rng.normal(0, 12, cliques.n_cells)
    theta[rng.integers(0, cliques.n_cells)] = -np.inf
    states = {name: [f"{name}{k}" for k in range(sizes[name])] for name in graph}
    return MarkovNetwork.from_log_linear(LogLinearModel(cliques, theta), graph, states)


@needs_node
@pytest.mark.parametrize("seed", [0, 1])
def test_its_answers_are_those_of_exact_inference(seed):
    network = random_model(seed)
    names = list(network)
    asked = [{}, {0: [0]}, {1: [0, 1], 5: [1], 7: [0]}, {k: [1] for k in (0, 2, 3, 6)}]
    for known, found in zip(asked, answers(network, asked), strict=True):
        evidence = {names[v]: kept for v, kept in known.items()}
        model = network.to_log_linear()
        joint = model.marginal(list(evidence)) if evidence else None
        if joint is not None:
            chosen = joint[np.ix_(*evidence.values())]
            assert found["probability"] == pytest.approx(chosen.sum(), rel=1e-9, abs=1e-300)
            if not chosen.any():
                assert "marginals" not in found
                continue
        assert found["intervals"] is None
        for v, name in enumerate(names):
            if name not in evidence:
                table = model.marginal([name, *evidence])
                table = table[np.ix_(range(table.shape[0]), *evidence.values())].reshape(table.shape[0], -1).sum(axis=1)
                np.testing.assert_allclose(found["marginals"][v], table / table.sum(), atol=1e-12)


@needs_node
def test_its_intervals_are_those_of_the_posterior():
    network = fitted()
    names = list(network)
    known = [{}, {1: [1]}, {0: [1, 2]}, {0: [0], 1: [0], 2: [1]}, {0: [5], 1: [0], 2: [1], 3: [0], 4: [1]}]
    for asked, found in zip(known, answers(network, known), strict=True):
        evidence = {
            names[v]: network.states[names[v]][kept[0]] if len(kept) == 1 else (30, 59) for v, kept in asked.items()
        }
        for v, name in enumerate(names):
            if v not in asked:
                frame = network.ask(name, evidence).to_frame()
                np.testing.assert_allclose(found["marginals"][v], frame["probability"], atol=1e-12)
                np.testing.assert_allclose(found["intervals"][v], frame[["lower", "upper"]], atol=1e-6)
            else:
                assert found["intervals"][v] is None


@needs_node
def test_without_probes_intervals_are_quantiles_of_the_draws_and_rules_hold():
    rng = np.random.default_rng(2)
    data = pd.DataFrame({"a": rng.choice(["x", "y", "z"], 900), "b": rng.choice(["p", "q"], 900), "c": "no"})
    schema = Schema({"a": ["x", "y", "z"], "b": ["p", "q"], "c": ["no", "yes"]}, impossible=["a = x -> b = p"])
    estimator = CollectiveMAP(epsilon=2.0, state_names=schema).fit(nx.path_graph(["a", "b", "c"]), data)
    network = estimator.model_
    network.posterior = estimator.posterior(25, random_state=0)
    asked = [{0: [0]}, {0: [0], 1: [1]}, {2: [1]}]
    found = answers(network, asked, 0.8)
    assert found[1] == {"probability": 0}
    for known, answer in ((asked[0], found[0]), (asked[2], found[2])):
        evidence = {list(network)[v]: network.states[list(network)[v]][kept[0]] for v, kept in known.items()}
        for v, name in enumerate(network):
            if v not in known:
                frame = network.ask(name, evidence, level=0.8).to_frame()
                # The page has the draws as float32.
                np.testing.assert_allclose(answer["intervals"][v], frame[["lower", "upper"]], atol=2e-6)


def test_a_page_that_is_too_large_says_what_to_do(monkeypatch):
    network = fitted()
    cells = network.posterior.draws.cliques.n_cells
    monkeypatch.setattr(explorer_module, "MOST_BYTES", 4 * 12 * cells * 4 / 3 + 8 * 2000)
    with pytest.raises(ValueError, match=r"more than .*: n_draws=1\d would fit, or merge states"):
        network.explorer("unused.html")
    monkeypatch.setattr(explorer_module, "MOST_BYTES", 1000)
    with pytest.raises(ValueError, match="fewer draws, or merge states"):
        network.explorer("unused.html", n_draws=2)
    monkeypatch.setattr(explorer_module, "MOST_CELLS", 10)
    monkeypatch.setattr(explorer_module, "MOST_BYTES", 10**7)
    with pytest.raises(ValueError, match=r"cliques of .* cells, more than 10"):
        network.explorer("unused.html")
    assert not Path("unused.html").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_draws": 1}, "n_draws=1 must be from 2"),
        ({"n_draws": 99}, "from 2 to"),
        ({"level": 1.0}, "level=1.0 is out of range; pass a number between 0 and 1"),
    ],
)
def test_what_cannot_be_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        fitted().explorer("unused.html", **options)


def test_draws_are_asked_for_only_where_there_are_any():
    with pytest.raises(ValueError, match="the model has no posterior"):
        random_model(0).explorer("unused.html", n_draws=5)
    approximate = random_model(0)
    approximate.inference = "loopy"
    with pytest.raises(ValueError, match="pages need exact inference"):
        approximate.explorer("unused.html")
    with pytest.raises(ValueError, match="no factors"):
        MarkovNetwork([("a", "b")]).explorer("unused.html")


def test_labels_are_escaped_and_nothing_is_loaded(tmp_path):
    network = fitted()
    network.explorer(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert not re.search(r"(src|href)=\"(?!#)|@import|url\(|https?:", page)
    data = json.loads(re.search(r'id="model">(.*?)</script>', page, flags=re.DOTALL)[1])
    assert data["variables"][3]["states"][1] == "<script>alert(1)</script>"
    # Every control has a name, and answers are announced.
    for control in re.findall(r"<select [^>]*>", page):
        name = re.search(r' id="([^"]+)"', control)
        assert "aria-label=" in control or f'<label for="{name[1]}">' in page
    assert 'role="status" aria-live="polite"' in page


@needs_node
def test_the_page_shows_what_an_answer_is_worth(tmp_path):
    """Its own script, in a document of nothing else."""
    network = fitted()
    network.explorer(tmp_path / "page.html")
    data = re.search(r'id="model">(.*?)</script>', (tmp_path / "page.html").read_text(), flags=re.DOTALL)[1]
    command = [NODE, str(HERE / "explorer_page.cjs"), str(SCRIPT), str(SCRIPT.parent / "explore.js"), "#v1=1&v5=1"]
    shown = json.loads(subprocess.run(command, input=data, capture_output=True, text=True, check=True).stdout)
    known = {"ill": "yes", "region": "S"}
    answers = {name: network.ask(name, known) for name in network if name not in known}
    held = answers["age"].worth.held
    assert shown["done"] == "intervals"
    told = f"Known: ill = yes; region = S. {held} Probabilities have 90 % intervals."
    assert shown["status"] == f"{told} Means and quartiles have them while nothing is known."
    for name, card in zip(network, shown["cards"], strict=True):
        if name in known:
            assert not card["worth"] and {row[1] for row in card["rows"]} == {"known"}
            continue
        assert card["worth"] == " ".join(answers[name].worth.sentences)
        for row, (_, p) in zip(card["rows"], answers[name].rows, strict=True):
            ends = f"{100 * p['lower']:.1f} to {100 * p['upper']:.1f} %"
            assert row == [f"{100 * p['probability']:.1f} %", ends]
    assert any("not measured" in card["worth"] for card in shown["cards"])


@needs_node
@pytest.mark.parametrize(("rule", "known"), [("0.1", {}), ("0.02 absolute", {"ill": "yes"})])
def test_the_page_marks_what_may_be_printed(tmp_path, rule, known):
    network = fitted()
    network.explorer(tmp_path / "page.html", rule=rule)
    page = (tmp_path / "page.html").read_text()
    data = re.search(r'id="model">(.*?)</script>', page, flags=re.DOTALL)[1]
    address = "#v1=1" if known else ""
    command = [NODE, str(HERE / "explorer_page.cjs"), str(SCRIPT), str(SCRIPT.parent / "explore.js"), address]
    shown = json.loads(subprocess.run(command, input=data, capture_output=True, text=True, check=True).stdout)
    marks = []
    for name, card in zip(network, shown["cards"], strict=True):
        expected = [False] * len(card["rows"])
        if name not in known:
            expected, _ = PrintingRule.read(rule, network).of(network.ask(name, known))
        assert [row[0].startswith("✓ ") for row in card["rows"]] == expected
        marks += expected
        if name == "age" and not known:
            numbers = PrintingRule.read(rule, network).of(network.ask(name))[1]
            assert [value.startswith("✓ ") for value, _ in card["numbers"]] == list(numbers.values())
    assert 0 < sum(marks) < len(marks)
    assert "✓ may be printed by the rule: half of its 90 % interval is at most" in page


@needs_node
@pytest.mark.parametrize("known", [{}, {"ill": "yes", "region": "S"}])
def test_the_page_shows_numbers_and_what_depends_on_a_variable(tmp_path, known):
    """Histograms, means and quartiles as Python has them; the chosen variable first, then what it changes most."""
    network = fitted()
    network.explorer(tmp_path / "page.html")
    data = re.search(r'id="model">(.*?)</script>', (tmp_path / "page.html").read_text(), flags=re.DOTALL)[1]
    names = list(network)
    chosen = [f"v{names.index(name)}={network.states[name].index(state)}" for name, state in known.items()]
    hash_ = "#" + "&".join([*chosen, "first=2"])
    command = [NODE, str(HERE / "explorer_page.cjs"), str(SCRIPT), str(SCRIPT.parent / "explore.js"), hash_]
    shown = json.loads(subprocess.run(command, input=data, capture_output=True, text=True, check=True).stdout)
    assert shown["folded"], "a narrow screen shows answers before menus"
    answer, card = network.ask("age", known), shown["cards"][0]
    (row,) = variable_rows({"age": answer})  # as the report has it
    ends = [f"{one['lower']} to {one['upper']}" * (not known) for one in row["summary"]]
    assert card["numbers"] == [[one["value"], end] for one, end in zip(row["summary"], ends, strict=True)]
    assert len(ends) == 4 and shown["cards"][1]["numbers"] == []
    assert ("have them while nothing is known" in shown["status"]) == bool(known)
    widths = np.array([14, 15, 15, 15, 16])
    areas = np.array(card["heights"]) * widths
    np.testing.assert_allclose(areas / areas.sum(), answer.shares[:5] / answer.shares[:5].sum(), atol=1e-4)
    for (top, bottom), height, one in zip(card["ends"], card["heights"], answer.estimates, strict=False):
        ends = np.array([100 - bottom, 100 - top]) / height
        np.testing.assert_allclose(ends, np.array([one.lower, one.upper]) / one.value, atol=1e-3)
    assert shown["order"]["v"] == 2
    for other in names:
        if other != "smoker":
            table = network.marginal(["smoker", other]).values
            apart = np.abs(table - np.outer(table.sum(axis=1), table.sum(axis=0))).sum() / 2
            assert shown["order"]["moved"][names.index(other)] == pytest.approx(apart, abs=1e-9)


def in_browser(page: Path, folder: Path, hash_: str = "") -> str:
    """The document as a browser has it when its scripts are done."""
    options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}", "--virtual-time-budget=9000"]
    command = [BROWSER, *options, "--dump-dom", page.as_uri() + hash_]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout


@pytest.mark.skipif(BROWSER is None, reason="no Chromium")
def test_the_page_answers_in_a_browser(tmp_path):
    network = fitted()
    network.explorer(tmp_path / "page.html")
    shown = in_browser(tmp_path / "page.html", tmp_path, "#v1=1&v0=1&v0-to=2")
    assert 'data-done="intervals"' in shown
    status = re.search(r'id="status"[^>]*>(.*?)</p>', shown)[1]
    assert html.unescape(status).startswith("Known: age = [30,45) to [45,60); ill = yes. What is known holds for ")
    share = network.query("smoker", {"age": (30, 59), "ill": "yes"}).values[0]
    card = re.search(r'id="variable-2".*?</article>', shown, flags=re.DOTALL)[0]
    assert f'<td class="n p">{100 * share:.1f} %</td>' in card
    assert "alert(1)" in shown


@pytest.mark.skipif(BROWSER is None, reason="no Chromium")
@pytest.mark.parametrize("kind", ["report", "explorer"])
def test_long_lists_and_the_chosen_variable_in_a_browser(tmp_path, kind):
    """Ten of fifteen states, found and sorted; the chosen variable's card before that of what depends on it."""
    sizes, names = np.arange(1.0, 16.0), [f"place {k}" for k in range(15)]
    network = MarkovNetwork([("a", "place"), ("place", "b")])
    network.add_node("alone")
    of_b = np.stack([sizes, sizes[::-1]], axis=1)
    network.add_factors(
        DiscreteFactor(["place"], [15], sizes, state_names={"place": names}),
        DiscreteFactor(["place", "b"], [15, 2], of_b, state_names={"place": names, "b": ["x", "y"]}),
        DiscreteFactor(["a", "place"], [2, 15], np.ones((2, 15)), state_names={"a": ["x", "y"], "place": names}),
        DiscreteFactor(["alone"], [2], [1, 1], state_names={"alone": ["x", "y"]}),
    )
    getattr(network, kind)(tmp_path / "page.html")
    page, asked = (tmp_path / "page.html").read_text(), tmp_path / "asked.html"

    def states(does: str) -> list[str]:
        """The states that are shown after the reader did something."""
        script = f"<script>addEventListener('load', () => {{ {does} }});</script></body>"
        asked.write_text(page.replace("</body>", script))
        shown = in_browser(asked, tmp_path)
        rows = re.findall(r'<tr([^>]*)><th scope="row">(place \d+)</th>', shown)
        assert len(rows) == 15
        return [name for attributes, name in rows if "rest" not in attributes]

    does = "const one = document.querySelector('{0}'); one.value = '{1}'; one.dispatchEvent(new Event('{2}'));"
    assert states("") == names[:4:-1]
    assert states("document.querySelector('table + button').click();") == names[::-1]
    assert states(does.format("input[type=search]", "PLACE 1", "input")) == ["place 14", *names[13:9:-1], "place 1"]
    assert states(does.format(".tools select", 2, "change")) == names[5:]
    chosen = list(network).index("b")
    states(does.format("#first", chosen, "change"))
    shown = in_browser(asked, tmp_path)
    cards = re.findall(r"<article.*?</article>", shown, flags=re.DOTALL)
    order = [re.search(r"<h3[^>]*>(.*?)</h3>", card)[1] for card in cards]
    assert order[:2] == ["b", "place"] and "The variable that you chose." in cards[0]
    table = network.marginal(["b", "place"]).values
    moved = 100 * np.abs(table - np.outer(table.sum(axis=1), table.sum(axis=0))).sum() / 2
    assert f"Knowing b changes {moved:.1f} % of it, on average." in cards[1]
