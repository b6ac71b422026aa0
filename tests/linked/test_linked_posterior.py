"""Intervals of linked tables: what they are around, what an image counts, what they refuse, and files."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from pgmpy_dp import Budget, learn_linked
from pgmpy_dp.linked import LinkedModel, LinkedSchema, made_up_families
from pgmpy_dp.linked.as_one_table import of_a_random_child
from pgmpy_dp.linked.slots import Slots
from pgmpy_dp.reporting.linked_report import linked_report_page

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
def posterior(learned):
    return learned.posterior(12, random_state=0)


@pytest.fixture(scope="module")
def network(posterior):
    posterior.model.posterior = posterior
    return of_a_random_child(posterior.model)


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

    def test_an_answer_is_the_mean_over_arrangements_whose_tables_are_there(self, posterior):
        found = {}
        for names in (["a.speaks", "n"], ["a.speaks", "tenure"], ["a.status", "b.status", "n"]):
            found[names[0], names[1]] = [columns for columns, _ in posterior._arrangements(names)]
        assert found["a.speaks", "n"] == [["a.speaks", "n"], ["b.speaks", "n"]]
        assert found["a.status", "b.status"] == [["a.status", "b.status", "n"], ["b.status", "a.status", "n"]]
        cliques = posterior.wide.draws.cliques
        kept = [c for c, scope in enumerate(cliques.scopes) if frozenset(scope) != {"n", "b.speaks"}]
        fewer = replace(cliques, scopes=tuple(cliques.scopes[c] for c in kept))
        theta = fewer.join([cliques.split(posterior.wide.draws.theta[0])[c] for c in kept])
        draws = replace(posterior.wide.draws, cliques=fewer, theta=theta[None])
        without = replace(posterior, wide=replace(posterior.wide, draws=draws))
        assert [columns for columns, _ in without._arrangements(["a.speaks", "n"])] == [["a.speaks", "n"]]
        assert len(without._arrangements(["a.sex", "n"])) == 2


class TestIntervals:
    @pytest.mark.parametrize(
        ("ask", "answer"),
        [
            (lambda p: p.interval(["person.status"]), lambda m: m.query("person.status")),
            (lambda p: p.interval("n", {"status": "retired"}), lambda m: m.query("n", {"status": "retired"})),
            (lambda p: p.interval("n"), lambda m: m.query("n")),
            (
                lambda p: p.interval(["age", "tenure"], {"n": (2, 3)}, weight="family"),
                lambda m: m.query(["age", "tenure"], {"n": (2, 3)}, weight="family"),
            ),
            (lambda p: p.interval("speaks", {"age": "10:20"}), lambda m: m.query("speaks", {"age": "10:20"})),
            (lambda p: p.interval_pairs("speaks"), lambda m: m.query_pairs("speaks")),
            (
                lambda p: p.interval_pairs(["status"], {"sex": "f", "tenure": "owns"}, weight="family"),
                lambda m: m.query_pairs(["status"], {"sex": "f", "tenure": "owns"}, weight="family"),
            ),
            (lambda p: p.interval_counts("age >= 16", ["n"]), lambda m: m.counts("age >= 16", ["n"])),
        ],
    )
    def test_they_are_around_what_the_model_answers(self, posterior, ask, answer):
        frame, found = ask(posterior), answer(posterior.model)
        states = [found.state_names[name] for name in found.variables]
        assert list(frame.columns[:-3]) == list(found.variables)
        assert [frame[name].tolist() for name in found.variables] == [
            list(column) for column in pd.MultiIndex.from_product(states).to_frame(index=False).T.to_numpy()
        ]
        assert np.allclose(frame["estimate"], found.values.ravel())
        assert (frame["lower"] >= 0).all() and (frame["upper"] <= 1).all()
        assert (frame["lower"] <= frame["estimate"]).all() and (frame["estimate"] <= frame["upper"]).all()
        assert (frame["upper"] - frame["lower"]).max() > 0

    def test_they_are_as_wide_as_sampling_and_noise_ask_for(self, learned, posterior):
        """Of a column that was measured with n: no less than sampling of families, and not many times more."""
        frame = posterior.interval("speaks", weight="family")
        half, p = (frame["upper"] - frame["lower"]).to_numpy() / 2, frame["estimate"].to_numpy()
        # Twelve draws: a standard deviation is known within a fifth, and the mean over siblings varies less.
        assert (half > 0.4 * 1.645 * np.sqrt(p * (1 - p) / 1_500)).all() and (half < 0.1).all()

    def test_a_higher_level_is_wider(self, posterior):
        wide, narrow = (posterior.interval("speaks", level=level) for level in (0.99, 0.5))
        assert (wide["upper"] - wide["lower"] > narrow["upper"] - narrow["lower"]).all()

    def test_what_nothing_vouches_for_is_said(self, posterior):
        assert posterior.interval(["speaks", "tenure"]).attrs["outside"] is None
        said = posterior.interval(["speaks", "tenure", "region"]).attrs["outside"]
        assert said == ("it is about 4 variables together, and probes have 3; the number of children is one of them")

    def test_two_children_have_none_where_they_were_learned_apart(self):
        apart = learn_linked(HOUSEHOLDS, PERSONS, Budget(rho=1.0), SMALL, siblings=0, **OPTIONS).posterior(3)
        assert len(apart.interval("speaks", level=0.5)) == 2
        with pytest.raises(ValueError, match=r"no interval for two children of one parent: .*siblings=0"):
            apart.interval_pairs("speaks")

    def test_a_range_that_cuts_a_cell_reaches_from_none_of_it_to_all(self, posterior):
        model, states = posterior.model, posterior.model._wide.child.states["age"]
        whole = posterior.interval("speaks", {"age": {*states[:2]}})
        assert whole["upper"][0] - whole["lower"][0] < 0.3
        cut = posterior.interval("speaks", {"age": "0:1"})
        assert model.counted({"age": "0:1"})["age"].is_cut
        assert cut["lower"][0] == 0.0 and cut["upper"][0] == 1.0
        known = model.counted({"n": (2, None)})["n"]
        assert known.cells == {2: 1.0, 3: 1.0, 4: 1.0}
        answers = [model.query("speaks", {"n": given}).values for given in ((2, 4), "2:", {2, 3, 4}, "2|3|4")]
        assert all((answer == answers[0]).all() for answer in answers)

    @pytest.mark.parametrize(
        ("ask", "message"),
        [
            (lambda p: p.interval("speaks", {"speaks": "first"}), "both have"),
            (lambda p: p.interval("spoken"), "in neither table"),
            (lambda p: p.interval("speaks", {"n": 9}), "1 to 4"),
            (lambda p: p.interval("status", {"age": "0:5", "n": 1}, level=1.5), "level"),
            (lambda p: p.interval_counts("age >= 18"), "not declared"),
        ],
    )
    def test_what_cannot_be_asked(self, posterior, ask, message):
        with pytest.raises(ValueError, match=message):
            ask(posterior)

    def test_without_probes_the_graph_is_the_truth(self):
        fitted = learn_linked(HOUSEHOLDS, PERSONS, Budget(rho=1.0), SMALL, probe_share=0.0, **OPTIONS)
        frame = fitted.posterior(6, random_state=0).interval("speaks", level=0.5)
        assert frame.attrs["outside"] == "there were no probes, so the graph is taken for the truth"
        assert (frame["lower"] <= frame["estimate"]).all() and (frame["estimate"] <= frame["upper"]).all()

    def test_one_draw_is_refused(self, learned):
        with pytest.raises(ValueError, match="n_draws"):
            learned.posterior(1)


def test_files_and_pages_keep_them(posterior, tmp_path):
    model = posterior.model
    model.posterior = posterior
    model.save(tmp_path / "m.npz")
    again = LinkedModel.load(tmp_path / "m.npz")
    assert again.posterior is not None
    one, other = (p.interval_pairs("status") for p in (posterior, again.posterior))
    assert np.allclose(one[["lower", "upper"]], other[["lower", "upper"]], atol=1e-4)  # draws are float32
    page = linked_report_page(again)
    assert "Intervals (90 %) are for the population" in page and '<th scope="col" class="n">interval</th>' in page
    assert repr(again.posterior).startswith("LinkedPosterior(12 draws; ")


class TestAPageToAsk:
    @pytest.mark.parametrize(
        ("names", "evidence"),
        [("status", {}), ("status", {"tenure": "owns"}), ("n", {"age": "20:40"}), ("region", {"speaks": "first"})],
    )
    def test_it_is_of_a_random_child(self, posterior, network, names, evidence):
        """What the model answers, within what cells outside the schema, which the page leaves out, weigh."""
        found = posterior.model.query(names, evidence, weight="child").values
        own = {f"person.{name}" if name in FAMILIES.child else name: given for name, given in evidence.items()}
        asked = f"person.{names}" if names in FAMILIES.child else names
        assert np.allclose(network.query([asked], own).values, found, atol=0.01)

    def test_another_child_of_the_parent_is_beside(self, posterior, network):
        table = network.query(["person.speaks", "other person.speaks"]).values[:, :2]
        both = posterior.model.query_pairs("speaks").values
        # Families of n persons count n times here, and n (n - 1) times among pairs.
        assert abs(table[0, 0] / table.sum() - both[0, 0]) < 0.1
        assert (table[0, 0] > table[0].sum() * table[:, 0].sum() / table.sum()) and table.sum() < 1
        alone = network.query(["other person.status"], {"n": "1"})
        assert alone.state_names["other person.status"][int(alone.values.argmax())] == "absent"

    def test_intervals_and_the_page(self, posterior, network, tmp_path):
        frame = network.posterior.interval(["person.speaks"])
        own = posterior.interval("person.speaks")
        assert np.allclose(frame["estimate"], own["estimate"], atol=0.01)
        assert ((frame["upper"] - frame["lower"]) > 0.5 * (own["upper"] - own["lower"])).all()
        posterior.model.explorer(tmp_path / "x.html")
        page = (tmp_path / "x.html").read_text()
        assert "<title>Explore person" in page and "other person.speaks" in page


def test_draws_that_are_no_numbers_are_not_believed(posterior, tmp_path):
    model, wide = posterior.model, posterior.wide
    broken = replace(wide.draws, theta=np.full_like(wide.draws.theta, np.nan))
    model.posterior = replace(posterior, wide=replace(wide, draws=broken))
    model.save(tmp_path / "broken.npz")
    model.posterior = posterior
    with pytest.raises(ValueError, match="not a saved LinkedModel"):
        LinkedModel.load(tmp_path / "broken.npz")
