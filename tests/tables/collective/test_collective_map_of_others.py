"""Models from noisy tables that others released: the same fit as of a release, and no word of a guarantee of ours."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pgmpy_dp import Budget, MarkovNetwork, Schema, from_noisy_tables, learn, write_evidence
from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.learning.maximum_a_posteriori import collective_map
from pgmpy_dp.learning.noisy_marginals import NoisyMarginals
from pgmpy_dp.learning.privacy_record import Privacy, StatedByOthers
from pgmpy_dp.reporting.comparison import comparison_page
from pgmpy_dp.reporting.model_report import report_page
from tests.test_cli import run

STATES = {"age": ["<40", ">=40"], "sex": ["F", "M"], "ill": ["no", "yes", "unknown"]}
AGE_ILL = np.array([[403.1, 96.4, -2.0], [291.0, 210.9, 8.3]])
SEX_AGE = np.array([[260.2, 251.9], [242.0, 252.5]])
SAID = "0.5-DP (the clinic's note of 2025)"
TOLD = f"noisy tables, stated by others: {SAID}"


def model_of(*tables, schema=STATES, noise="laplace", **options):
    return from_noisy_tables(tables, schema, noise=noise, stated=SAID, **options)


def two(variance=8.0):
    return (("age", "ill"), AGE_ILL, variance), (("sex", "age"), SEX_AGE, 2.0)


def long(scope, counts, variance, states=STATES):
    cells = pd.MultiIndex.from_product([states[name] for name in scope], names=scope).to_frame(index=False)
    return cells.assign(count=np.ravel(counts), variance=np.broadcast_to(variance, np.shape(counts)).ravel())


@pytest.mark.parametrize(("noise", "scale"), [("laplace", [2.0, 1.0]), ("gaussian", [8**0.5, 2**0.5])])
def test_it_is_the_fit_of_a_release_with_that_noise(noise, scale):
    cliques = Cliques(("age", "sex", "ill"), (2, 2, 3), (("age", "ill"), ("age", "sex")))
    noisy = NoisyMarginals(cliques, cliques.join([AGE_ILL, SEX_AGE.T]), noise, np.array(scale))
    expected = collective_map(noisy).model.marginals_of([("age", "sex", "ill")])[0]
    model = model_of(*two(), noise=noise)
    np.testing.assert_allclose(model.marginal(["age", "sex", "ill"]).values, expected, rtol=1e-6)
    assert set(map(frozenset, model.edges)) == {frozenset({"age", "ill"}), frozenset({"age", "sex"})}


def test_arrays_frames_and_files_are_the_same_tables_in_whatever_order(tmp_path):
    wanted = model_of(*two()).marginal(["age", "sex", "ill"]).values
    (one, other), file = two(), tmp_path / "sex_age.csv"
    long(*other).sample(frac=1, random_state=0).to_csv(file, index=False)
    transposed = (["ill", "age"], AGE_ILL.T.tolist(), np.full((3, 2), 8))
    for tables in ((transposed, other), (long(*one), str(file)), (long(*one).sample(frac=1, random_state=1), file)):
        np.testing.assert_allclose(model_of(*tables).marginal(["age", "sex", "ill"]).values, wanted, rtol=1e-6)


def test_a_table_that_comes_again_counts_by_its_precision():
    (scope, counts, _), other = two()
    again = (("ill", "age"), (counts + 12.0).T, 24.0)
    joined = (scope, counts + 3.0, 6.0)  # 12 times the share (1/24) / (1/8 + 1/24)
    wanted = model_of(joined, other).marginal(["age", "ill"]).values
    np.testing.assert_allclose(model_of(two()[0], other, again).marginal(["age", "ill"]).values, wanted, rtol=1e-6)


def test_a_cell_of_large_variance_is_believed_less():
    one, other = np.array([500.0, 500.0]), np.array([800.0, 500.0])
    sure = model_of((("age",), one, 4.0), (("age",), other, 4.0)).marginal(["age"]).values[0]
    unsure = model_of((("age",), one, 4.0), (("age",), other, [4e6, 4.0])).marginal(["age"]).values[0]
    assert sure == pytest.approx(650 / 1150, abs=0.01) and unsure == pytest.approx(0.5, abs=0.01)


def test_rules_of_the_schema_are_obeyed():
    schema = Schema(STATES, impossible=['age = "<40" & ill = unknown', "sex = F & ill = unknown"])
    model = model_of(*two(), schema=schema, draws=20)
    joint = model.marginal(["age", "sex", "ill"]).values
    assert (joint[0, :, 2] == 0).all() and (joint[:, 0, 2] == 0).all() and joint[1, 1, 2] > 0
    assert model.has_edge("sex", "ill") and model.posterior.interval(["age", "ill"])["upper"][0, 2] == 0


def test_intervals_are_wider_where_there_is_more_noise_and_synthetic_copies_follow():
    widths = []
    for variance in (8.0, 8000.0):
        model = model_of(*two(variance), draws=60)
        ends = model.posterior.interval(["ill"])
        widths.append(float((ends["upper"] - ends["lower"])[1]))
        assert ends["lower"][1] < 0.31 < ends["upper"][1]
    assert widths[1] > 2 * widths[0]
    assert model.posterior.n_records == pytest.approx(1006.6, abs=5) and model.posterior.n_records_sd > 1
    assert [str(one.privacy) for one in model.posterior.models(2)] == [TOLD, TOLD]
    assert model_of(*two(), draws=2, total=1007).posterior.n_records_sd == 0


@pytest.mark.parametrize(
    ("tables", "options", "message"),
    [
        ((), {}, "tables is empty"),
        (((("age",), [1, 2], 0.0),), {}, r"tables\[0\] has count 1 with variance 0.0 for the cell \['<40'\].* public"),
        (((("age",), [1, np.nan], 1.0),), {}, r"count nan .* \['>=40'\]"),
        (((("age",), [1, 2], [1.0, -1.0]),), {}, r"variance -1.0 for the cell \['>=40'\]"),
        (
            (two()[0], (("age",), [1, 2, 3], 1.0)),
            {},
            r"tables\[1\] has counts \(int64\) of shape \(3,\).* shape \(2,\)",
        ),
        (((("age",), ["a", "b"], 1.0),), {}, r"tables\[0\] has counts \(<U1\)"),
        (((("age",), [1, 2], [1.0, 2.0, 3.0]),), {}, r"variances \(float64\) of \(3,\)"),
        (((("age", "age"), np.ones((2, 2)), 1.0),), {}, r"tables\[0\] is of the variables \['age', 'age'\]"),
        (((("age", "pay"), np.ones((2, 2)), 1.0),), {}, "'pay'.* pass some of"),
        ((((), 5.0, 1.0),), {}, r"tables\[0\] is of the variables \[\]"),
        ((long(*two()[0]).iloc[1:],), {}, r"count nan .* \['<40', 'no'\]"),
        ((long(*two()[0]).iloc[[0, *range(6)]],), {}, r"tables\[0\] has a line without a state, or several of one"),
        ((long(*two()[0]).replace("<40", None),), {}, r"tables\[0\] has a line without a state"),
        ((long(*two()[0]).replace("<40", "<50"),), {}, r"tables\[0\] has '<50' in the column 'age'"),
        ((long(*two()[0]).drop(columns="variance"),), {}, "no column for .'variance'"),
        ((5,), {}, "data is a int, not a dataframe"),
        (two(), {"noise": "none"}, "noise='none' is not supported"),
        (two(), {"total": 5000}, "total=5000.0 is not what the tables sum to, about 1,00"),
        (two(), {"total": -1}, "total=-1 is out of range"),
        (two(), {"schema": {"age": ["<40"]}}, "age"),
    ],
)
def test_what_cannot_be_used_is_named(tables, options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        model_of(*tables, **options)


@pytest.mark.parametrize("stated", ["", " \n", None, 3])
def test_what_is_known_of_the_guarantee_has_to_be_said(stated):
    with pytest.raises(TypeError, match=r"stated=.*pass what is known of the tables' guarantee"):
        from_noisy_tables(two(), STATES, noise="laplace", stated=stated)


def test_the_cost_of_a_discovered_schema_is_not_lost():
    cost = {"guarantee": {"measure": "pure", "epsilon": 1.0}, "adjacency": "add_remove", "mechanism": "noise"}
    schema = Schema(STATES).discovered_under([{**cost, "reproducible": False, "unit": None}])
    with pytest.raises(TypeError, match=r"schema=.*as_public\(\), and say so in stated"):
        model_of(*two(), schema=schema)
    assert model_of(*two(), schema=schema.as_public()).privacy.statement == SAID


def test_the_statement_is_printed_as_that_of_others_and_nothing_is_promised(tmp_path):
    model = model_of(*two(), draws=20)
    assert repr(model) == f"MarkovNetwork(3 nodes, 2 edges; {TOLD})" and TOLD in repr(model.posterior)
    record = model.privacy
    assert (record.total, record.together, record.paid, record.guarantee, record.entries) == (
        None,
        None,
        None,
        None,
        (),
    )
    assert Privacy.from_dict(json.loads(json.dumps(record.to_dict()))) == record
    model.save(tmp_path / "model.npz")
    loaded = MarkovNetwork.load(tmp_path / "model.npz")
    assert loaded.privacy == record and loaded.posterior.privacy == record
    page = report_page(loaded)
    assert f"Nothing is promised for this model: nothing here vouches for its {TOLD.replace(chr(39), '&#39;')}" in page
    assert "Neighbours" not in page and "same guarantee" not in page and "private records" not in page
    assert "costs add up" not in comparison_page(loaded, model)
    with pytest.raises(ValueError, match="no guarantee to show: nothing here vouches for its noisy tables, stated by"):
        write_evidence(tmp_path / "evidence", model)
    assert not (tmp_path / "evidence").exists()
    model.factors[0].values[0] += 1.0
    assert model.privacy is None and "stated" not in repr(model)


def test_a_statement_controls_no_terminal_and_no_page():
    record = from_noisy_tables(two(), STATES, noise="laplace", stated="\x1b[31m1-DP\nunder <b>us</b>").privacy
    assert str(record) == r"noisy tables, stated by others: \x1b[31m1-DP\nunder <b>us</b>"
    model = MarkovNetwork(model_of(*two()))
    model.factors, model.privacy = model_of(*two()).factors, record
    assert "<b>us" not in report_page(model)


def records(n=400):
    rng = np.random.default_rng(0)
    return pd.DataFrame({name: rng.choice(states, n) for name, states in STATES.items()})


@pytest.mark.filterwarnings("ignore::pgmpy_dp.NoEdgeWarning")
def test_what_needs_our_guarantee_says_that_there_is_none():
    model = model_of(*two(), draws=20)
    with pytest.raises(ValueError, match=f"learned under {TOLD.split('(')[0]}.* do not add up.*others=True"):
        model.regress("ill ~ age", records(), Budget(epsilon=1.0), success="yes")
    fit = learn(records(), Budget(epsilon=1.0), STATES, prior=model)
    assert fit.privacy_.total is None and fit.privacy_.prior == model.privacy
    assert str(fit.privacy_).startswith("nothing here vouches for its noisy tables, stated by others: ")
    assert str(fit.privacy_).count("stated by others") == 2 and "alone 1-DP under add_remove" in str(fit.privacy_)
    assert fit.release_.public["settings"]["prior"]["stated_by_others"] == SAID


def test_on_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Schema(STATES).to_json("s.json")
    for k, table in enumerate(two()):
        long(*table).to_csv(f"t{k}.csv", index=False)
    line = (
        f"from-tables t0.csv t1.csv --schema s.json --noise laplace --out m.npz --stated '{SAID.replace(chr(39), '')}'"
    )
    told = TOLD.replace("'", "")
    printed = run(f"{line} --draws 20 --total 1007").stdout
    assert printed == f"Learned MarkovNetwork(3 nodes, 2 edges; {told})\nWrote m.npz\n"
    assert told in run("info m.npz").stdout and "interval" in run("query m.npz --variables ill").stdout
    document = json.loads(run(f"{line} --overwrite --json").stdout)
    assert document["stated_by_others"] == SAID.replace("'", "") and document["guarantee"] is None
    assert "stated by others" in run("evidence m.npz --out evidence", 2).stderr and not Path("evidence").exists()
    long(*two()[0]).iloc[1:].to_csv("short.csv", index=False)
    wrong = run("from-tables t1.csv short.csv --schema s.json --noise laplace --stated x --out n.npz", 2)
    assert "['<40', 'no']" in wrong.stderr and not Path("n.npz").exists()


def test_the_record_has_the_parts_that_others_have():
    record = StatedByOthers(statement="x")
    assert (record.said, record.delta, record.conditional, record.unit, record.prior) == (None, 0.0, None, None, None)
