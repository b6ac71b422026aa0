"""Intervals of linked tables: what they are around, what an image counts, what they refuse, and files."""

from __future__ import annotations

import copy
import json
import re
from dataclasses import replace

import numpy as np
import pytest

from pgmpy_dp import Budget, learn_linked
from pgmpy_dp.linked import LinkedModel, LinkedSchema, made_up_families
from pgmpy_dp.linked.slots import Slots
from pgmpy_dp.reporting.linked_report import linked_report_page
from pgmpy_dp.reporting.marginals import number_text

pytestmark = [
    pytest.mark.filterwarnings("ignore::pgmpy_dp.GuessedTypesWarning"),
    pytest.mark.filterwarnings("ignore::pgmpy_dp.private.noise.samplers.ReproducibleNoiseWarning"),
]

HOUSEHOLDS, PERSONS, FAMILIES = made_up_families(1_500, 4, random_state=0)
OPTIONS = {"random_state": 1, "n_rounds": 4, "max_clique_cells": 1_000}
SMALL = LinkedSchema(
    {"tenure": FAMILIES.parent["tenure"]},
    {"sex": FAMILIES.child["sex"], "speaks": FAMILIES.child["speaks"]},
    "household",
    2,
)


@pytest.fixture(scope="module")
def learned():
    return learn_linked(HOUSEHOLDS, PERSONS, Budget(rho=1.0), FAMILIES, siblings=1, **OPTIONS)


@pytest.fixture(scope="module")
def model(learned):
    model = learned.model_
    model.posterior = learned.posterior(12, random_state=0)
    return model


def bare(model):
    """The same model without draws."""
    found = copy.copy(model)
    found.posterior = None
    return found


class TestWhatAnImageCounts:
    def test_images_say_together_what_was_measured_once(self, learned):
        noisy, slots = learned._noisy, Slots(learned.model_._wide)
        factor = dict(zip(noisy.cliques.scopes, slots.once(noisy).scale / noisy.scale, strict=True))
        named = {frozenset(scope): value for scope, value in factor.items()}
        assert named[frozenset({"n"})] == 1.0 and named[frozenset({"a.age", "b.age"})] == 1.0
        assert named[frozenset({"n", "a.sex"})] == named[frozenset({"b.sex"})] == pytest.approx(2**0.5)

    def test_the_mean_over_images_has_the_noise_of_what_was_measured(self, learned):
        """Noise of the released table and of its image, drawn as the posterior draws it, and as it was."""
        noisy, slots = learned._noisy, Slots(learned.model_._wide)
        tables = dict(zip(noisy.cliques.scopes, noisy.cliques.split(slots.once(noisy).cell_variance), strict=True))
        released = dict(zip(noisy.cliques.scopes, noisy.cliques.split(noisy.cell_variance), strict=True))
        both = [tables[scope] for scope in tables if frozenset(scope) in ({"n", "a.sex"}, {"n", "b.sex"})]
        (own,) = [released[scope] for scope in released if frozenset(scope) == {"n", "a.sex"}]
        assert len(both) == 2 and both[0].sum() + both[1].sum() == pytest.approx(4 * own.sum())

    def test_a_table_whose_image_was_left_out_counts_as_it_is(self, learned):
        noisy, slots = learned._noisy, Slots(learned.model_._wide)
        kept = [c for c, scope in enumerate(noisy.cliques.scopes) if not any(str(x)[:2] == "b." for x in scope)]
        cliques = type(noisy.cliques)(
            noisy.cliques.variables, noisy.cliques.cardinalities, tuple(noisy.cliques.scopes[c] for c in kept)
        )
        some = type(noisy)(cliques, np.zeros(cliques.n_cells), noisy.noise, noisy.scale[kept])
        assert np.array_equal(slots.once(some).scale, some.scale)

    def test_an_answer_is_the_mean_over_arrangements_whose_tables_are_there(self, model):
        def arranged(view, names):
            question = view._question(names, {}, view.states)
            return [list(axes) for axes in (question.axes, *question.exchanged)]

        child, pair = model.view("child"), model.view("pair")
        assert arranged(child, ["person.speaks"]) == [["person.speaks", "n"], ["other person.speaks", "n"]]
        first, second = ["first.status", "second.status", "n"], ["second.status", "first.status", "n"]
        assert arranged(pair, ["first.status", "second.status"]) == [first, second]
        cliques = model.posterior.draws.cliques
        kept = [c for c, scope in enumerate(cliques.scopes) if frozenset(scope) != {"n", "b.speaks"}]
        fewer = replace(cliques, scopes=tuple(cliques.scopes[c] for c in kept))
        theta = fewer.join([cliques.split(model.posterior.draws.theta[0])[c] for c in kept])
        without = bare(model)
        without.posterior = replace(
            model.posterior, draws=replace(model.posterior.draws, cliques=fewer, theta=theta[None])
        )
        assert arranged(without.view("child"), ["person.speaks"]) == [["person.speaks", "n"]]
        assert len(arranged(without.view("child"), ["person.sex"])) == 2


class TestIntervals:
    @pytest.mark.parametrize(
        ("names", "evidence", "of"),
        [
            (["person.status"], {}, None),
            ("n", {"status": "retired"}, None),
            ("n", {}, None),
            (["age", "tenure"], {"n": (2, 3)}, "family"),
            ("speaks", {"age": "10:20"}, None),
            ("speaks", {}, "pair"),
            (["status"], {"sex": "f", "tenure": "owns"}, "family pair"),
            (["age >= 16", "n"], {}, None),
        ],
    )
    def test_they_are_around_what_the_model_answers(self, model, names, evidence, of):
        answer, found = model.ask(names, evidence, of=of), model.query(names, evidence, of=of)
        assert list(answer.states) == found.variables and answer.shares.sum() == pytest.approx(1)
        assert {name: list(states) for name, states in answer.states.items()} == found.state_names
        np.testing.assert_array_equal(answer.shares, found.values)
        np.testing.assert_array_equal(bare(model).ask(names, evidence, of=of).shares, found.values)
        lower, upper = answer.interval["lower"], answer.interval["upper"]
        assert (lower >= 0).all() and (upper <= 1).all() and (upper - lower).max() > 0
        assert (lower <= answer.shares).all() and (answer.shares <= upper).all()

    def test_they_are_as_wide_as_sampling_and_noise_ask_for(self, model):
        """Of a column that was measured with n: no less than sampling of families, and not many times more."""
        answer = model.ask("speaks", of="family")
        half, p = (answer.interval["upper"] - answer.interval["lower"]) / 2, answer.shares
        # Twelve draws: a standard deviation is known within a fifth, and the mean over siblings varies less.
        assert (half > 0.4 * 1.645 * np.sqrt(p * (1 - p) / 1_500)).all() and (half < 0.1).all()

    def test_a_higher_level_is_wider(self, model):
        wide, narrow = (model.ask("speaks", level=level).interval for level in (0.99, 0.5))
        assert (wide["upper"] - wide["lower"] > narrow["upper"] - narrow["lower"]).all()

    def test_what_nothing_vouches_for_is_said(self, model):
        assert model.ask(["speaks", "tenure"]).worth.outside is None
        said = model.ask(["speaks", "tenure", "region"]).worth.outside
        assert said == ("it is about 4 variables together, and probes have 3; the number of children is one of them")

    def test_two_children_have_none_where_they_were_learned_apart(self):
        learned = learn_linked(HOUSEHOLDS, PERSONS, Budget(rho=1.0), SMALL, siblings=0, **OPTIONS)
        apart = learned.model_
        apart.posterior = learned.posterior(3)
        assert len(apart.ask("speaks", level=0.5).interval["lower"]) == 2
        answer = apart.ask("speaks", of="pair")
        assert not answer.interval and "There are no intervals: no table of two children was measured" in str(answer)
        assert answer.worth.refusal in linked_report_page(apart, level=0.5)

    def test_a_range_that_cuts_a_cell_reaches_from_none_of_it_to_all(self, model):
        states = model._wide.child.states["age"]
        whole = model.ask("speaks", {"age": {*states[:2]}}).interval
        assert whole["upper"][0] - whole["lower"][0] < 0.3
        cut = model.ask("speaks", {"age": "0:1"})
        assert cut.evidence["age"].is_cut and "age=0:1 counts as " in str(cut)
        assert cut.interval["lower"][0] == 0.0 and cut.interval["upper"][0] == 1.0
        known = model.counted({"n": (2, None)})["n"]
        assert known.cells == {2: 1.0, 3: 1.0, 4: 1.0}
        answers = [model.query("speaks", {"n": given}).values for given in ((2, 4), "2:", {2, 3, 4}, "2|3|4")]
        assert all((answer == answers[0]).all() for answer in answers)

    @pytest.mark.parametrize(
        ("ask", "message"),
        [
            (lambda m: m.ask("speaks", {"speaks": "first"}), "both have"),
            (lambda m: m.ask("spoken"), "in neither table"),
            (lambda m: m.ask("n", {"age": 30, "person.age": 40}), "name a column twice"),
            (lambda m: m.ask(["speaks", "person.speaks"]), "name a column twice"),
            (lambda m: m.ask("speaks", {"n": 9}), "1 to 4"),
            (lambda m: m.ask("status", {"age": "0:5", "n": 1}, level=1.5), "level"),
            (lambda m: m.ask("age >= 18"), r"is known of those in LinkedSchema\(..., counts=\['age >= 16'\]"),
            (lambda m: m.ask("speaks", of="person"), "of='person'; pass one of 'child', 'family'"),
            (lambda m: m.view("child").ask("person.age", of="pair"), "of='pair' is for models of linked tables"),
            (lambda m: m.view("child").ask("person.age", counts=True), "does not say how many"),
        ],
    )
    def test_what_cannot_be_asked(self, model, ask, message):
        with pytest.raises(ValueError, match=message):
            ask(model)

    def test_without_probes_the_graph_is_the_truth(self):
        fitted = learn_linked(HOUSEHOLDS, PERSONS, Budget(rho=1.0), SMALL, probe_share=0.0, **OPTIONS)
        fitted.model_.posterior = fitted.posterior(6, random_state=0)
        answer = fitted.model_.ask("speaks", level=0.5)
        assert answer.worth.outside == "there were no probes, so the graph is taken for the truth"
        assert (answer.interval["lower"] <= answer.shares).all() and (answer.shares <= answer.interval["upper"]).all()

    def test_one_draw_is_refused(self, learned):
        with pytest.raises(ValueError, match="n_draws"):
            learned.posterior(1)


def test_files_and_pages_keep_them(model, tmp_path):
    model.save(tmp_path / "m.npz")
    again = LinkedModel.load(tmp_path / "m.npz")
    assert again.posterior is not None
    one, other = (m.ask("status", of="pair").interval for m in (model, again))
    assert np.allclose([one["lower"], one["upper"]], [other["lower"], other["upper"]], atol=1e-4)  # draws are float32
    page = linked_report_page(again)
    assert "about 90 % of the intervals are right" in page and '<th scope="col" class="n">90 % interval</th>' in page
    answer = again.ask("person.age", level=0.8)  # of twelve draws
    mean, told = answer.numbers["mean"], number_text(answer.number, answer.numbers["mean"].value, True)
    assert f'<th scope="row">mean</th><td class="n">{told}</td>' in page and mean.lower < mean.value < mean.upper


def test_the_report_tells_what_depends_on_a_variable(model):
    """Of columns of parents and children alike, in the order of the cards, as a random child has them."""
    page = linked_report_page(model)
    moved = json.loads(re.search(r'id="moved">(.*?)</script>', page)[1])["pairs"]
    cards = re.findall(r"<h3[^>]*>(.*?)</h3>", page)
    options = re.findall(r'<option value="\d+">(.*?)</option>', page)
    of_parents, of_children = model.columns
    names = [*of_parents, *(f"person.{name}" for name in of_children)]
    assert cards == options and len(cards) == len(names) == len(moved)
    view = model.view("child")
    for one, other in (("tenure", "person.age"), ("person.speaks", "person.age"), ("tenure", "n")):
        table = view.ask([one, other]).shares
        apart = np.abs(table - np.outer(table.sum(axis=1), table.sum(axis=0))).sum() / 2
        assert abs(moved[names.index(one)][names.index(other)] - apart) < 1e-4


class TestViews:
    def test_another_child_of_the_parent_is_beside(self, model):
        view = model.view("child")
        table = view.ask(["person.speaks", "other person.speaks"]).shares[:, :2]
        both = model.query("speaks", of="pair").values
        # Families of n persons count n times here, and n (n - 1) times among pairs.
        assert abs(table[0, 0] / table.sum() - both[0, 0]) < 0.1
        assert (table[0, 0] > table[0].sum() * table[:, 0].sum() / table.sum()) and table.sum() < 1
        alone = view.ask("other person.status", {"n": 1})
        assert alone.states["other person.status"][int(alone.shares.argmax())] == "absent"

    def test_all_variables_together_are_answered_as_each_alone(self, model):
        for of in ("child", "family", "pair"):
            view = model.view(of)
            for name, answer in view.marginal_answers(0.8).items():
                alone = view.ask(name, level=0.8)
                np.testing.assert_allclose(answer.shares, alone.shares, atol=1e-12)
                np.testing.assert_allclose(answer.interval["upper"], alone.interval["upper"], atol=1e-9)

    def test_for_how_many_what_is_known_holds(self, model):
        view = model.view("child")
        for known in ({"person.status": "retired"}, {"n": (2, 3)}, {"person.age": "20:40", "tenure": "owns"}):
            expected, before = 1.0, {}
            for name, given in known.items():
                likely = view.counted({name: given})[name].likely
                # Cells outside the schema are of nobody here: nearly the shares of answers.
                expected *= float(view.ask(name, before).shares @ likely)
                before[name] = given
            assert view.ask("region", known).worth.share == pytest.approx(expected, abs=0.005)

    def test_two_of_one_family_are_the_same_so_often_with_intervals(self, model):
        answer = model.ask("speaks", of="pair", level=0.8)
        same, more = answer.alike
        table = model.query("speaks", of="pair").values
        assert same.value == pytest.approx(np.trace(table))
        assert more.value == pytest.approx(np.trace(table) - table.sum(axis=1) @ table.sum(axis=0))
        assert 0.0 < more.lower < more.value < more.upper and same.lower < same.value < same.upper
        assert f"Both have the same in {100 * same.value:.1f} % (" in str(answer) and answer.worth.strangers is None
        assert answer.to_dict()["alike"]["same"] == list(same)
        page = linked_report_page(model, level=0.8)
        assert f"{100 * more.value:.1f} % ({100 * more.lower:.1f} to {100 * more.upper:.1f})" in page
        assert "cannot be told" not in page and model.ask("speaks", {"n": 2}, of="pair").alike is None

    def test_families_that_noise_hides_come_with_a_warning(self):
        """The number of families alone is left of them: no table of two children is measured."""
        schema = LinkedSchema(None, {"speaks": ["first", "second"]}, "household", 3, names=("household", "person"))
        hidden = learn_linked(PERSONS, None, Budget(rho=1e-4), schema, siblings=0, n_rounds=1, random_state=0)
        model = hidden.model_
        assert "hardly be told from two strangers" in str(model.ask("speaks", of="pair"))
        assert "can two of one household be told from two strangers" in linked_report_page(model)
        # and where one is measured, but says nothing
        hidden = learn_linked(PERSONS, None, Budget(rho=1e-4), schema, siblings=1, n_rounds=1, random_state=0)
        model = hidden.model_
        model.posterior = hidden.posterior(20, random_state=0)
        answer = model.ask("speaks", of="pair")
        assert answer.worth.strangers and (not answer.interval or answer.alike[1].lower < 0.0 < answer.alike[1].upper)

    def test_the_page_is_of_a_random_child(self, model, tmp_path):
        model.explorer(tmp_path / "x.html")
        page = (tmp_path / "x.html").read_text()
        assert "<title>Explore person" in page and "other person.speaks" in page


def test_draws_that_are_no_numbers_are_not_believed(model, tmp_path):
    draws, broken = model.posterior.draws, bare(model)
    broken.posterior = replace(model.posterior, draws=replace(draws, theta=np.full_like(draws.theta, np.nan)))
    broken.save(tmp_path / "broken.npz")
    with pytest.raises(ValueError, match="not a saved LinkedModel"):
        LinkedModel.load(tmp_path / "broken.npz")
