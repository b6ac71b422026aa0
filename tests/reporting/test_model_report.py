"""The report on a model and the comparison of two: what they say, of what, and that they load nothing."""

from __future__ import annotations

import csv
import html
import io
import json
import re
from dataclasses import replace
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from pgmpy.factors.discrete import DiscreteFactor

from pgmpy_dp import Budget, MarkovNetwork, Schema, score_model
from pgmpy_dp.estimators import NaiveMLE
from pgmpy_dp.learning.privacy_record import Privacy
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.guarantee import ZCDP, ApproxDP, PureDP, ReservedZCDP
from pgmpy_dp.reporting import comparison_page, explorer_page, report_page
from pgmpy_dp.reporting.attacks import at_most, attack_words
from pgmpy_dp.reporting.drawing import drawing, edge_rows
from pgmpy_dp.reporting.marginals import printing_list, variable_rows
from pgmpy_dp.reporting.words import CITATION, count_words, guarantee_words
from pgmpy_dp.theory.attack_rates import attack_success
from tests.models.test_answers_by_levels import made_up
from tests.reporting.models import fitted, release

ROOT = Path(__file__).parents[2]


def text_of(page: str) -> str:
    """What a reader reads, without marks and with single blanks."""
    body = re.sub(r"<(style|script|svg).*?</\1>", " ", page.partition("<body>")[2], flags=re.DOTALL)
    body = body.replace('</span><wbr><span class="whole">', "")  # where a line may break
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", body)).split())


def section(page: str, name: str) -> str:
    return text_of("<body>" + re.search(rf'<section id="{name}".*?</section>', page, flags=re.DOTALL)[0])


def test_a_report_says_what_it_should():
    network = fitted()
    network.privacy = replace(network.privacy, reproducible=False)  # as if its noise had come from no seed
    page = report_page(network, release(), title="Stays <2024>", about="# Who\n\nThe *clinic* of <b>X</b>.")
    assert "<h1>Stays &lt;2024&gt;</h1>" in page
    assert "<h3>Who</h3>\n<p>The <em>clinic</em> of &lt;b&gt;X&lt;/b&gt;.</p>" in page
    guarantee = section(page, "guarantee")
    assert f"{network.privacy.words} under add_remove" in guarantee
    # First a plain sentence with a number, then how many, and only then the measure.
    success = at_most(float(attack_success(network.privacy.guarantee, 0.01)))
    sentence = "One record is protected: even an attack that knows everybody else's data, and raises a false alarm for "
    sentence += f"1 % of those who are not in the data, recognises at most {success} of those who are."
    assert guarantee.startswith(f"The guarantee {sentence} Learned from about ")
    assert guarantee.index("Learned from about") < guarantee.index("What was proved")
    assert "(1, 1e-09)-DP" in guarantee
    size = network.posterior
    about, off = (
        float(found.replace(",", ""))
        for found in re.search("about ([0-9,]+) records, give or take ([0-9,]+)", guarantee).groups()
    )
    assert abs(about - size.n_records) < size.n_records_sd and off == pytest.approx(size.n_records_sd, rel=0.06)
    variables = section(page, "variables")
    for name in network:
        frame = network.ask([name]).to_frame()
        for state, p, low, high in frame.itertuples(index=False):
            state = "missing" if pd.isna(state) else state
            assert f"{state} {100 * p:.1f} % {100 * low:.1f} to {100 * high:.1f} %" in variables
    assert f"median {network.ask('age').numbers[0.5].value:.0f} " in variables and "Its 5 cells as a table" in variables
    assert re.search(r"mean (\S+) (\S+) to (\S+) ", variables)
    mean, low, high = map(float, re.search(r"mean (\S+) (\S+) to (\S+) ", variables).groups())
    assert low < mean < high
    graph = section(page, "graph")
    assert all(f"{u} – {v}" in graph or f"{v} – {u}" in graph for u, v in network.edges)
    pairs = network.posterior.uncertain_pairs()
    first = pairs.iloc[0]
    assert f"{first.variable} – {first.other} {100 * first.error:.2f} % {'yes' if first.measured else 'no'}" in section(
        page, "unsure"
    )
    measured = section(page, "measured")
    assert all(", ".join(scope) in measured for scope in release().scopes)
    assert "probes" in section(page, "trust")
    assert CITATION in section(page, "cite")


@pytest.mark.parametrize(
    ("adjacency", "unit", "words"),
    [
        (Adjacency.ADD_REMOVE, "patient", "One 'patient' with all of its rows is protected: even"),
        (Adjacency.REPLACE_ONE, None, "takes the first of two possible values for the second in 1 % of cases, finds"),
        (
            Adjacency.EDGE,
            None,
            "takes 1 % of the pairs that are not joined for edges, finds at most 2.8 % of the edges.",
        ),
    ],
)
def test_attacks_are_told_of_whoever_is_protected(adjacency, unit, words):
    found = attack_words(Privacy(PureDP(1.0), adjacency, "noise", unit=unit))
    assert words in found.sentence and "at most 2.8 %" in found.sentence
    assert found.rates[1] == ("1 %", "2.8 %") and found.guesses[0][1:] == ("50 %", "81.7 %")
    assert len(found.guesses) == (1 if adjacency == Adjacency.EDGE else 4)
    assert attack_words(Privacy(PureDP(1.0), adjacency, "noise", reproducible=True)) is None
    assert "hardly protected" in attack_words(Privacy(PureDP(6.0), adjacency, "noise")).sentence


def test_the_curve_is_drawn_where_it_is():
    picture = attack_words(Privacy(ZCDP(0.1), Adjacency.ADD_REMOVE, "noise")).picture
    points = np.array([tuple(map(float, point.split(","))) for point in picture["curve"].split()])
    rates, success = (points[:, 0] - picture["edge"]) / picture["size"], 1 - (points[:, 1] - 10) / picture["size"]
    assert success == pytest.approx(attack_success(ZCDP(0.1), rates.clip(0, 1)), abs=0.01)
    assert (rates[0], rates[-1], success[-1]) == pytest.approx((0, 1, 1), abs=1e-3)


def test_bounds_are_rounded_up():
    shares = np.concatenate([np.random.default_rng(0).random(500), 10.0 ** -np.arange(1, 9)])
    for share in map(float, shares):
        told = at_most(share)
        assert 100 * share <= float(told.removesuffix(" %")) <= 100 * max(1.1 * share + 1e-12, min(share + 0.001, 1))


@pytest.mark.parametrize(
    ("number", "deviation", "privacy", "words"),
    [
        (4253.2, 12.3, {"unit": "patient", "rows_per_unit": "shares"}, "about 4,250 patients, give or take 12"),
        (
            4253.2,
            12.3,
            {"unit": "patient", "rows_per_unit": 3},
            "records that count, of units which 'patient' tells apart",
        ),
        (
            4253.2,
            12.3,
            {"unit": "patient_id", "rows_per_unit": 1},
            "about 4,250 units, which 'patient_id' tells apart, give",
        ),
        (20312.4, 198.2, {}, "about 20,300 records, give or take 200"),
        (4253.2, 0.2, {}, "about 4,253 records, give or take 1:"),
        (-3.0, 40.0, {}, "about 0 records, give or take 40"),
        (4253.0, 0.0, {}, "Learned from 4,253 records, a public number."),
    ],
)
def test_numbers_of_records_are_estimates(number, deviation, privacy, words):
    assert words in count_words(number, deviation, Privacy(PureDP(1.0), Adjacency.ADD_REMOVE, "noise", **privacy))


def test_the_citation_is_that_of_the_repository():
    content = (ROOT / "CITATION.cff").read_text()
    title, version = re.search(r'^title: "(.*)"', content, re.M)[1], re.search(r"^version: (.*)", content, re.M)[1]
    assert f"The pgmpy_dp authors. {title}. Version {version}." == CITATION


def test_it_has_no_intervals_where_the_model_has_no_posterior():
    network = fitted()
    network.posterior = None
    page = report_page(network)
    assert "no posterior" in section(page, "variables")
    assert "interval</th>" not in page
    assert "does not say how many" in section(page, "guarantee")
    assert 'id="measured"' not in page


def test_where_the_graph_is_taken_for_the_truth_it_says_so():
    network = fitted()
    network.posterior = replace(network.posterior, discrepancy=None)
    page = report_page(network)
    assert "take the graph for the truth" in section(page, "trust")
    assert "graph is taken for the truth" in section(page, "unsure")
    pairs = network.posterior.uncertain_pairs()
    assert pairs["measured"].isna().all()
    assert (pairs["error"] <= fitted().posterior.uncertain_pairs()["error"].max()).all()


def test_uncertain_pairs_are_as_the_intervals_say():
    """Half the sum of E|error| of cells; a cell's interval at 68.3 % is about one standard deviation on each side."""
    posterior = fitted().posterior
    pairs = posterior.uncertain_pairs()
    assert (pairs["error"].diff().dropna() <= 0).all()
    for row in pairs.iloc[[0, 7, 14]].itertuples():
        frame = posterior.interval([row.variable, row.other], level=0.683)
        sd = frame["upper"] - frame["estimate"]
        assert row.error == pytest.approx(sd.sum() / np.sqrt(2 * np.pi), rel=0.2)


def test_pages_load_nothing_and_escape_labels(tmp_path):
    network, other = fitted(), fitted()
    network.report(tmp_path / "report.html", release=release())
    network.report(tmp_path / "both.html", compare=other)
    for file in ("report.html", "both.html"):
        page = (tmp_path / file).read_text()
        scripts = re.findall(r"<script[^>]*>(.*?)</script>", page, flags=re.DOTALL)
        assert [text.startswith('{"pairs"') for text in scripts] == (
            [True, False] if file == "report.html" else [False]
        )
        assert page.count("<script") == len(scripts) and scripts[-1].endswith("Page.start();")
        assert "&lt;script&gt;alert(1)" in page and "alert(" not in "".join(scripts)
        assert not re.search(r"(src|href)=\"(?!#)|@import|url\(|https?:", page)
        assert "default-src 'none'" in page
        assert '<html lang="en">' in page
        targets = re.findall(r'href="#([^"]+)"', page)
        assert all(f'id="{target}"' in page for target in targets)
        assert page.count("<h1>") == 1
        assert len(re.findall(r"<th(?: class=\"[^\"]*\")?>", page)) == 0, "every head of a row or column has a scope"


@pytest.mark.parametrize(
    ("guarantee", "words"),
    [
        (PureDP(1.0), "within a factor of about 2.72."),
        (ApproxDP(1.0, 1e-9), "within a factor of about 2.72, except for an event of probability 1e-09."),
        (ZCDP(0.1), "0.1-zCDP implies a factor for each delta, among them ("),
        (ReservedZCDP(0.1, 1e-7), "1e-06)-DP"),
    ],
)
def test_a_guarantee_is_told_in_words(guarantee, words):
    found = guarantee_words(Privacy(guarantee, Adjacency.REPLACE_ONE, "noise"))
    assert words in found.sentences[1]
    assert found.sentences[0].startswith("Neighbours differ in the values of one record")
    assert not found.warnings


def test_what_protects_nobody_is_a_warning():
    seeded = Privacy(PureDP(1.0), Adjacency.ADD_REMOVE, "noise", reproducible=True, unit="patient")
    assert "NOT PRIVATE" in guarantee_words(seeded).warnings[0]
    assert "'patient'" in guarantee_words(seeded).sentences[0]
    assert "set by hand" in guarantee_words(None).warnings[0]


def test_a_release_of_another_fit_is_refused():
    network = fitted()
    network.privacy = replace(network.privacy, guarantee=ZCDP(0.5))
    with pytest.raises(ValueError, match="pass its own"):
        report_page(network, release())
    with pytest.raises(ValueError, match="tells nothing of a release"):
        network.report("unused.html", compare=network, release=release())
    with pytest.raises(ValueError, match=r"level=2 is out of range; pass a number between 0 and 1"):
        fitted().report("unused.html", level=2)
    assert not Path("unused.html").exists()


class TestComparison:
    def other(self) -> MarkovNetwork:
        rng = np.random.default_rng(4)
        data = pd.DataFrame({"ill": rng.choice(["no", "yes"], 500), "smoker": rng.choice(["no", "yes"], 500)})
        data["region"], data["new"] = rng.choice(list("NSEX"), 500), "a"
        schema = Schema({"ill": ["no", "yes"], "smoker": ["no", "yes"], "region": list("NSEX"), "new": ["a", "b"]})
        graph = nx.Graph([("ill", "new")])
        graph.add_nodes_from(["smoker", "region"])
        return NaiveMLE(epsilon=2.0, state_names=schema).fit(graph, data).model_

    def test_it_tells_what_differs(self):
        network, other = fitted(), self.other()
        page = comparison_page(network, other, ("before", "after"))
        guarantees = section(page, "guarantee")
        assert str(network.privacy.guarantee) in guarantees
        assert str(other.privacy.guarantee) in guarantees
        only = section(page, "differences")
        assert 'Variables that only before has: age, school, pay & "so".' in only
        assert "Variables that only after has: new." in only
        assert "The states of region differ" in only
        assert "before alone has W; after alone has X" in only
        assert "ill – smoker" in only
        distance = (
            np.abs(network.marginal(["ill", "smoker"]).values - other.marginal(["ill", "smoker"]).values).sum() / 2
        )
        assert f"ill – smoker {100 * distance:.2f} %" in section(page, "pairs")
        shares = [100 * model.marginal(["ill"]).values[1] for model in (network, other)]
        assert f"yes {shares[0]:.1f} % {shares[1]:.1f} %" in section(page, "variables")
        assert "intervals, of before." in section(page, "variables")

    def test_a_model_is_no_different_from_itself(self):
        page = comparison_page(fitted(), fitted())
        assert "Nothing: they have the same" in section(page, "differences")
        assert "0.00 % on average" in section(page, "pairs")

    def test_states_in_another_order_are_the_same_states(self):
        values = np.array([[1, 2, 3], [4, 5, 6.0]])
        network, other = (MarkovNetwork([("a", "b")]) for _ in range(2))
        states = {"a": ["x", "y"], "b": [1, 2, 3]}
        network.add_factors(DiscreteFactor(["a", "b"], [2, 3], values, state_names=states))
        turned = {"a": ["y", "x"], "b": [3, 1, 2]}
        other.add_factors(DiscreteFactor(["a", "b"], [2, 3], values[::-1][:, [2, 0, 1]], state_names=turned))
        page = comparison_page(network, other)
        assert "a – b 0.00 %" in section(page, "pairs") and "they have the same" in section(page, "differences")
        assert "x 28.6 % 28.6 % y 71.4 % 71.4 %" in section(page, "variables")

    def test_models_with_nothing_in_common_are_refused(self):
        other = MarkovNetwork([("ill", "new")])
        other.add_factors(DiscreteFactor(["ill", "new"], [2, 2], np.ones(4)))
        with pytest.raises(ValueError, match="no variable with the same states in common"):
            comparison_page(fitted(), other)


def test_a_drawing_has_every_node_and_edge_within_its_frame():
    for network in (fitted(), TestComparison().other()):
        found = drawing(network, edge_rows(network))
        assert [node["name"] for node in found["nodes"]] == list(map(str, network))
        widths = [float(line["width"]) for line in found["strong"] + found["weak"]]
        assert len(widths) == network.number_of_edges() and widths == sorted(widths, reverse=True)
        assert all(
            0 < float(node["x"]) < found["width"] and 0 < float(node["y"]) < found["height"] for node in found["nodes"]
        )


def test_a_report_tells_of_scores_that_were_bought():
    states = {"a": [0, 1], "b": ["<&>", "y"]}
    network = MarkovNetwork([("a", "b")])
    network.add_factors(DiscreteFactor(["a", "b"], [2, 2], [4, 1, 1, 4], state_names=states))
    frame = pd.DataFrame({"a": [0, 1] * 500, "b": ["<&>", "y"] * 500})
    score = score_model(network, frame, Budget(epsilon=1.0), level=0.5, random_state=0)
    assert "Distance to the records" not in report_page(network)
    told = section(report_page(network, level=0.8, score=score.release_), "scored")
    row = score.at(0.8).table.loc["pairs"]
    numbers = [f"{100 * row[key]:.2f} %" for key in ("distance", "lower", "upper")]
    assert "mean over 1 pairs of variables {} {} to {}".format(*numbers) in told
    assert "worst that was found: a, b" in told and "80 % interval" in told
    assert "1-DP under add_remove" in told and "NOT PRIVATE" in told
    other = network.rescaled(0.5)
    with pytest.raises(ValueError, match="of another model"):
        report_page(other, score=score)
    with pytest.raises(ValueError, match="tells nothing of a score"):
        network.report("nowhere.html", compare=other, score=score)


def test_a_dense_graph_is_drawn_by_its_strongest_edges():
    network, rng = MarkovNetwork(nx.complete_graph(12)), np.random.default_rng(0)
    pairs = [DiscreteFactor(list(edge), [2, 2], np.exp(rng.normal(0, 0.3, 4))) for edge in network.edges]
    network.add_factors(*pairs)
    page = report_page(network)
    assert "Of 66 edges the 15 strongest are drawn." in section(page, "graph")
    assert "Draw the 51 weaker edges too" in section(page, "graph")
    assert len(re.findall("<line ", page.partition('<g class="weak">')[2].partition("</g>")[0])) == 51
    assert "weaker edges" not in report_page(fitted())


def test_what_depends_on_a_variable_is_known_of_all_pairs():
    network = fitted()
    page = report_page(network)
    moved = json.loads(re.search(r'id="moved">(.*?)</script>', page)[1])["pairs"]
    names = list(network)
    for a, one in enumerate(names):
        for b, other in enumerate(names):
            if a != b:
                table = network.marginal([one, other]).values
                after = table / table.sum(axis=1, keepdims=True)
                mean = table.sum(axis=1) @ np.abs(after - table.sum(axis=0)).sum(axis=1) / 2
                assert moved[a][b] == pytest.approx(mean, abs=1e-4)
    options = re.findall(r'<option value="(\d+)">(.*?)</option>', page)
    assert [(int(k), html.unescape(name)) for k, name in options] == list(enumerate(names))


def test_jargon_is_folded_under_a_plain_sentence():
    network = fitted()
    network.privacy = replace(network.privacy, reproducible=False)
    folded = re.compile(r"<details.*?</details>", flags=re.DOTALL)
    for page in (report_page(network), explorer_page(network), comparison_page(network, network)):
        told, open_text = text_of(page), text_of(folded.sub("", page))
        assert network.privacy.words in told and "What was proved, for experts" in told
        assert "One record is protected" in open_text
        assert not re.search(r"-DP|zCDP|add_remove|discrete_gaussian", open_text)


def test_blank_and_missing_states_are_named():
    network = MarkovNetwork([("a", "b")])
    states = {"a": ["", " ", "x"], "b": [None, 1]}
    network.add_factors(DiscreteFactor(["a", "b"], [3, 2], np.ones(6), state_names=states))
    for page in (report_page(network), explorer_page(network)):
        assert page.count('<th scope="row">(blank)</th>') == 2 and '<th scope="row">missing</th>' in page
        assert "nan" not in re.findall(r'<th scope="row">(.*?)</th>', page)


def test_pages_are_dark_where_the_reader_is_and_printed_whole():
    page = report_page(fitted())
    style = re.search("<style>(.*?)</style>", page, flags=re.DOTALL)[1]
    screen, printed = style.split("@media print")
    assert "prefers-color-scheme: dark" in screen and "details::details-content" in printed
    colours = re.findall(r"#[0-9a-f]{3,6}\b", screen.partition("* { box-sizing")[2] + re.sub("#moved.*", "", printed))
    assert not colours, "colours are variables, which the dark page has others of"
    assert not re.search(r'(fill|stroke)="#(?!767676)', page)


def test_the_coarsest_level_is_shown_and_opens_the_next():
    model = made_up()
    page = report_page(model)
    card = re.search(r"<article[^>]*><h3[^>]*>tract</h3>.*?</article>", page, flags=re.DOTALL)[0]
    parts = re.split(r"(?=<details>)", card)
    for name, heading, part in zip(
        ("state", "county", "tract"), ("By state", "By county: 6 states", "By tract: 13 states"), parts, strict=True
    ):
        told = text_of(f"<body>{part}")
        assert heading in told
        shares, states = model.query(name).values, model.levels[name].states if name != "tract" else model.states[name]
        assert all(f"{state} {100 * p:.1f} %" in told for state, p in zip(states, shares, strict=True))
    assert re.search(r"</table>\s*</details></details>\s*</article>$", card), "each opens the next, within itself"
    race = re.search(r"<article[^>]*><h3[^>]*>race</h3>.*?</article>", page, flags=re.DOTALL)[0]
    assert "<details" not in race and "By " not in race
    listed = csv.DictReader(io.StringIO(printing_list(variable_rows(model.marginal_answers()))))
    assert [row["value"] for row in listed if row["variable"] == "county"] == list(
        map(str, model.query("county").values)
    )
