"""What an office's rule lets be printed: in Python, on pages, and in the list."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from pgmpy_dp import Budget, Date, Levels, MarkovNetwork, Number, Schema, learn
from pgmpy_dp.models.answer import Estimate, Worth
from pgmpy_dp.models.printing_rule import PrintingRule, nothing_vouches
from pgmpy_dp.reporting.marginals import QUANTILES, printing_list, variable_rows
from tests.reporting.models import fitted


def test_half_of_the_interval_is_compared_with_the_number_or_with_the_rule():
    relative, absolute = PrintingRule(0.25), PrintingRule(0.25, absolute=True)
    assert relative.lets(Estimate(0.5, 0.375, 0.625)) and not relative.lets(Estimate(0.5, 0.375, 0.6251))
    assert relative.lets(Estimate(-8.0, -10.0, -6.0), 100.0) and not relative.lets(Estimate(-8.0, -10.1, -6.0), 100.0)
    assert absolute.lets(Estimate(0.1, 0.0, 0.5)) and not absolute.lets(Estimate(0.1, 0.0, 0.51))
    assert absolute.lets(Estimate(0.0, -25.0, 25.0), 100.0) and not absolute.lets(Estimate(0.0, -25.0, 26.0), 100.0)
    assert not relative.lets(Estimate(0.5)) and not relative.lets(Estimate(float("nan"), float("nan"), float("nan")))
    assert relative.lets(Estimate(0.0, 0.0, 0.0)) and not relative.lets(Estimate(0.0, 0.0, 1e-9))


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("0.1", PrintingRule(0.1)),
        (".1 relative", PrintingRule(0.1)),
        ("1e-2 absolute", PrintingRule(0.01, True)),
        (None, None),
        *((text, ValueError) for text in ("-0.1", "nan", "inf", "0.1 of it", "absolute", "", "0.1 0.2")),
    ],
)
def test_its_text(text, rule):
    if rule is ValueError:
        with pytest.raises(ValueError, match="for a tenth of the number"):
            PrintingRule.read(text, fitted())
    else:
        assert PrintingRule.read(text, fitted()) == rule


def test_a_model_without_draws_is_refused():
    network = fitted()
    network.posterior = None
    with pytest.raises(ValueError, match="the model has no posterior"):
        network.report("unused.html", rule="0.1")


def test_pages_mark_and_the_list_says_the_same(tmp_path):
    network, rule = fitted(), PrintingRule(0.1)
    answers = network.marginal_answers(0.9, QUANTILES)
    rows = variable_rows(answers, rule)
    listed = list(csv.DictReader(io.StringIO(printing_list(rows))))
    # Once more, from the answers alone.
    expected = []
    for name, answer in answers.items():
        frame = answer.to_frame()
        expected += [
            ((high - low) / 2 <= 0.1 * p) for p, low, high in frame[["probability", "lower", "upper"]].to_numpy()
        ]
        if name == "age":
            assert set(answer.numbers) and all(one.lower is not None for one in answer.numbers.values())
            expected += [(one.upper - one.lower) / 2 <= 0.1 * one.value for one in answer.numbers.values()]
    assert [row["may_be_printed"] for row in listed] == ["yes" if let else "no" for let in expected]
    reasons = {("yes", ""), ("no", "the interval is too wide")}
    assert {(row["may_be_printed"], row["why_not"]) for row in listed} == reasons
    shares = [row for row in listed if row["number"] == "share" and row["variable"] == "ill"]
    assert [float(row["value"]) for row in shares] == answers["ill"].to_frame()["probability"].tolist()
    network.report(tmp_path / "marked.html", rule="0.1")
    network.report(tmp_path / "plain.html")
    marked, plain = ((tmp_path / name).read_text() for name in ("marked.html", "plain.html"))
    assert marked.count('class="printed"') == sum(expected) and "✓" not in plain
    assert "half of its 90 % interval is at most 10 % of the number." in marked


def test_nothing_is_marked_where_nothing_vouches():
    answer = fitted().ask("ill")
    assert all(PrintingRule(10.0).of(answer)[0])
    for worth in (Worth(refusal=None, outside="it is wide"), Worth(refusal="there are no draws")):
        assert not any(PrintingRule(10.0).of(replace(answer, worth=worth))[0])


def test_a_model_without_probes_says_why_nothing_is_marked(tmp_path):
    """On both pages and in the list; a model with probes says nothing of the kind."""
    network, rule = fitted(), PrintingRule(10.0)
    assert nothing_vouches(network) is None and "without probes" not in rule.words("90 %", network)
    network.posterior = replace(network.posterior, discrepancy=None)
    why = nothing_vouches(network)
    assert why.startswith("No number is marked for printing. The model was fitted without probes")
    network.report(tmp_path / "report.html", rule="10")
    network.explorer(tmp_path / "explorer.html", rule="10")
    for page in ("report.html", "explorer.html"):
        assert f'<p class="rule">{why}</p>' in (tmp_path / page).read_text()
    listed = list(csv.DictReader(io.StringIO(printing_list(variable_rows(network.marginal_answers(), rule)))))
    assert {row["may_be_printed"] for row in listed} == {"no"}
    assert {row["why_not"] for row in listed} == {"there were no probes, so the graph is taken for the truth"}


def test_a_graph_cannot_be_wrong_where_one_table_has_all_variables(tmp_path):
    """A rule of all variables, or a table by a level, has one in the model too, which nobody measured."""
    names = {"a": [0, 1], "b": [0, 1], "c": [0, 1]}
    frame = pd.DataFrame(np.random.default_rng(0).integers(2, size=(4000, 3)), columns=list(names))
    graphs = {"whole": [tuple(names)], "chain": [("a", "b"), ("b", "c")]}
    ruled = Schema(names, impossible=["a = 0 & b = 0 -> c = 0"])
    areas = Schema({"a": Levels([0, 1, 2], of={0: "x", 1: "x", 2: "y"}), "b": [0, 1], "c": [0, 1]})
    said = {}
    for name, schema in (("whole", names), ("chain", names), ("ruled", ruled), ("areas", areas)):
        graph, how = graphs["whole" if name in ("whole", "areas") else "chain"], {"random_state": 0}
        network = learn(frame, Budget(rho=0.5), schema, graph=graph, draws=30, **how).model_
        answer = network.ask(["a", "b"])
        network.explorer(tmp_path / "page.html", rule="10")
        marked = [all(PrintingRule(10.0).of(answer)[0]), nothing_vouches(network) is None, answer.worth.outside is None]
        marked.append("there were no probes" not in (tmp_path / "page.html").read_text())
        said[name] = marked
    assert said == {"whole": [True] * 4, "chain": [False] * 4, "ruled": [False] * 4, "areas": [False] * 4}


def test_days_count_against_their_range():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"day": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 60, 4000), "D")})
    frame["pay"] = rng.integers(0, 100, 4000)
    schema = {"day": Date("2020-01-01", "2020-03-01", bins=6), "pay": Number(0, 100, bins=5)}
    fit = learn(frame, Budget(rho=0.5), schema, random_state=0)
    network: MarkovNetwork = fit.model_
    network.posterior = fit.posterior(20, random_state=0)
    answers = network.marginal_answers()
    day, half = answers["day"], {k: (one.upper - one.lower) / 2 for k, one in answers["day"].numbers.items()}
    rule = PrintingRule(float(np.median(list(half.values()))) / 60)
    # Beside 18,000 days since 1970 all of these are narrow: only the range tells them apart.
    assert rule.of(day)[1] == {k: value <= rule.most * 60 for k, value in half.items()}
    assert len(set(rule.of(day)[1].values())) == 2
