"""Learning linked tables: which tables are measured, what families are drawn, what can be asked, and files."""

from __future__ import annotations

import copy
import itertools
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from pgmpy_dp import Budget, Date, Number, learn_linked
from pgmpy_dp.auditing.replay import replay
from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.learning.privacy_record import Privacy
from pgmpy_dp.linked import (
    LinkedModel,
    LinkedSchema,
    PrivateLinkedNetwork,
    PrivateLinkedTables,
    made_up_families,
)
from pgmpy_dp.linked.family_draws import FamilyChoice
from pgmpy_dp.linked.linked_model import guarantee_of_a_child
from pgmpy_dp.linked.operators.wide_table import wide_table
from pgmpy_dp.linked.slot_draws import SlotDraws
from pgmpy_dp.linked.slots import Slots
from pgmpy_dp.private.accounting import approx_to_zcdp
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.guarantee import ZCDP, ApproxDP, PureDP, ReservedZCDP
from tests.linked.families import SCHEMA, frames

pytestmark = [
    pytest.mark.filterwarnings("ignore::pgmpy_dp.GuessedTypesWarning"),
    pytest.mark.filterwarnings("ignore::pgmpy_dp.private.noise.samplers.ReproducibleNoiseWarning"),
]

HOUSEHOLDS, PERSONS, FAMILIES = made_up_families(4_000, random_state=0)
QUICK = {"random_state": 1, "max_clique_cells": 6_000}  # fits to the default of it take five times as long


@pytest.fixture(scope="module")
def learned():
    return learn_linked(HOUSEHOLDS, PERSONS, Budget(rho=2.0), FAMILIES, n_rounds=16, **QUICK)


@pytest.fixture(scope="module")
def drawn(learned):
    return learned.model_.sample(4_000, random_state=0)


def shares(values, states):
    return np.array([(values == state).mean() for state in states])


class TestWhatIsMeasured:
    def test_n_is_measured_with_every_column_of_a_child_and_with_counts(self, learned):
        scopes = set(map(frozenset, learned.release_.scopes))
        assert {frozenset({"n", f"a.{x}"}) for x in FAMILIES.child} <= scopes
        assert frozenset({"n", "age >= 16"}) in scopes

    def test_each_column_of_two_children_is_measured_before_rounds_fill_the_tree(self, learned):
        scopes = [r["round"] == 0 for r in learned.release_.public["rounds"]]
        first = set(map(frozenset, learned.report_["variables"][scopes]))
        assert {frozenset({f"a.{x}", f"b.{x}"}) for x in FAMILIES.child} <= first

    @pytest.mark.parametrize("siblings", [0, 1])
    def test_one_arrangement_of_children_stands_for_all(self, siblings, learned):
        found = learned
        if not siblings:
            found = learn_linked(HOUSEHOLDS, PERSONS, Budget(rho=0.2), FAMILIES, siblings=0, n_rounds=8, **QUICK)
        slots = Slots(wide_table(FAMILIES))
        names = found.release_.schema.variables
        for scope in found.release_.scopes:
            places = tuple(sorted(names.index(name) for name in scope))
            assert slots.first(places) == places and slots.count(places) <= 1 + siblings
        assert found.release_.public["settings"]["siblings"] == siblings

    @pytest.mark.parametrize(("rho", "siblings"), [(1e-7, 0), (1e-3, 1), (2.0, 1)])
    def test_auto_takes_as_many_siblings_as_the_noise_lets_one_learn_about(self, rho, siblings, learned):
        found = learned  # with a rho of 2
        if rho != 2.0:
            found = learn_linked(HOUSEHOLDS, PERSONS, Budget(rho=rho), FAMILIES, n_rounds=1, **QUICK)
        assert found.release_.public["settings"]["siblings"] == siblings

    def test_images_of_a_set_are_its_permutations(self):
        slots = Slots(wide_table(SCHEMA))
        names = slots.wide.schema.variables
        scope = [names.index(name) for name in ("a.age", "b.sex")]
        images = {frozenset(names[i] for i in image) for image in slots.images(scope)}
        assert images == {frozenset({f"{x}.age", f"{y}.sex"}) for x, y in itertools.permutations("ab", 2)}
        assert slots.first([names.index("b.age")]) == (names.index("a.age"),)

    def test_a_release_is_learned_from_again_without_the_tables(self, learned, tmp_path):
        learned.release_.save(tmp_path / "r.npz")
        again = PrivateLinkedNetwork().fit_release(type(learned.release_).load(tmp_path / "r.npz"))
        assert np.array_equal(again.model_._model.theta, learned.model_._model.theta)

    def test_it_holds_in_replay(self):
        households, persons, schema = made_up_families(60, random_state=3)
        one = persons["household"] != "h7"

        def fit(data):
            return PrivateLinkedNetwork(rho=0.1, schema=schema, n_rounds=3, probe_share=0.0).fit(*data).release_.values

        report = replay(fit, (households, persons), (households[households["household"] != "h7"], persons[one]))
        assert report.holds and report.movement["tables"] > 0.3, report


class TestFamilies:
    def test_keys_match_and_numbers_and_counts_agree_with_the_children(self, drawn):
        households, persons = drawn
        assert households["household"].tolist() == list(range(4_000))
        size = persons.groupby("household").size().reindex(households["household"], fill_value=0)
        adults = persons[persons["age"] >= 16].groupby("household").size().reindex(size.index, fill_value=0)
        assert (size.to_numpy() == households["n"]).all() and (adults.to_numpy() == households["age >= 16"]).all()

    def test_rules_are_obeyed_exactly(self, drawn):
        _, persons = drawn
        assert ((persons["age"] < 16) == (persons["status"] == "child")).all()
        assert set(persons["sex"]) == {"f", "m"} and persons["age"].between(0, 99).all()

    def test_they_are_like_the_families_that_were_learned(self, drawn):
        """Total variation of what one person, one household and two persons are; .01 to .03 measured, one seed."""
        households, persons = drawn
        for made, true, column in (
            *((persons, PERSONS, x) for x in ("sex", "status", "speaks")),
            (households, HOUSEHOLDS, "region"),
        ):
            states = sorted(set(true[column]))
            assert 0.5 * np.abs(shares(made[column], states) - shares(true[column], states)).sum() < 0.04
        alike = []
        for people in (PERSONS, persons):
            second = (people["speaks"] == "second").groupby(people["household"]).mean()
            alike.append(second.var())
        assert abs(alike[0] - alike[1]) < 0.25 * alike[0]

    def test_families_of_all_sizes_together_agree_with_the_model(self, learned, drawn):
        """Total variation from the model's own tables of two persons, each household of weight 1."""
        persons = drawn[1]
        home, place = persons["household"].to_numpy(), persons.groupby("household").cumcount().to_numpy()
        size = np.bincount(home)[home]
        for x in ("sex", "status", "speaks"):
            states = list(FAMILIES.child[x])
            made, codes = np.zeros((len(states),) * 2), pd.Categorical(persons[x], states).codes
            for shift in range(1, 6):
                far = np.flatnonzero(size > shift)
                other = far - place[far] + (place[far] + shift) % size[far]
                np.add.at(made, (codes[far], codes[other]), 1 / (size[far] * (size[far] - 1)))
            model = learned.model_.query(x, of="family pair").values
            assert 0.5 * np.abs(made / made.sum() - model).sum() < 0.03

    def test_draws_are_repeatable_and_any_number(self, learned):
        one, two = (learned.model_.sample(50, random_state=5) for _ in range(2))
        assert one[0].equals(two[0]) and one[1].equals(two[1])
        nobody = learned.model_.sample(0)
        assert len(nobody[0]) == len(nobody[1]) == 0 and next(iter(nobody[1])) == "household"

    def test_cells_outside_the_schema_are_not_drawn(self):
        persons = PERSONS.assign(speaks=PERSONS["speaks"].where(np.arange(len(PERSONS)) % 10 > 0, "?"))
        found = learn_linked(
            HOUSEHOLDS, persons, Budget(rho=2.0), FAMILIES, n_rounds=1, random_state=1, max_clique_cells=1_000
        )
        _, made = found.model_.sample(2_000, 0)
        assert set(made["speaks"]) == {"first", "second"}
        assert abs(found.n_records_ - 4_000) < 60
        true = PERSONS.groupby("household").size().clip(upper=6).value_counts(normalize=True).sort_index()
        assert np.abs(found.model_.query("n").values - true.to_numpy()).sum() < 0.05

    def test_a_slot_is_drawn_from_its_conditional(self):
        rng = np.random.default_rng(0)
        cliques = Cliques(tuple("pqrs"), (2, 3, 2, 2), (("p", "q"), ("q", "r"), ("r", "s"), ("p", "q", "s")))
        model = LogLinearModel(cliques, rng.normal(size=cliques.n_cells))
        joint = model.marginal(list("pqrs"))
        codes = np.zeros((60_000, 4), dtype=int)
        codes[:, 0] = np.arange(len(codes)) % 2
        made = SlotDraws(model, [1, 2, 3]).draw(codes, rng)
        for p in (0, 1):
            own = made[codes[:, 0] == p]
            found = np.bincount(own @ [4, 2, 1], minlength=12) / len(own)
            wanted = (joint[p] / joint[p].sum()).ravel()
            # Five standard deviations of a cell.
            assert np.abs(found - wanted).max() < 5 * 0.5 / np.sqrt(len(own))
        allowed = [np.tile([False, True, True], (500, 1)), None, np.tile([True, False], (500, 1))]
        made = SlotDraws(model, [1, 2, 3]).draw(codes[:500], rng, allowed)
        assert made[:, 0].min() == 1 and made[:, 2].max() == 0

    @pytest.mark.parametrize("weight", [[0.4, 0.4, 0.0], [0.5, 0.5, 0.5]])
    def test_a_slot_beside_several_siblings_is_drawn_by_the_weighted_mean_of_their_potentials(self, weight):
        """Written out for every cell: of each table with siblings, each for its weight, and an unknown one's rest."""
        rng, shares = np.random.default_rng(0), np.array(weight)
        scopes = (("n", "a.x"), ("a.x", "a.y"), ("a.x", "b.x"), ("a.y", "b.x", "n"), ("a.x", "a.y", "b.y"), ("b.y",))
        cliques = Cliques(("n", "a.x", "a.y", "b.x", "b.y"), (2, 4, 3, 4, 3), scopes)
        theta = rng.normal(size=cliques.n_cells)
        theta[cliques.slices[2]][:4] = -np.inf  # of a child in its first state no sibling can be in any
        model = LogLinearModel(cliques, theta)
        siblings, n, states = np.array([[0, 2], [3, 1], [1, 0]]), 1, (3, 2)
        potentials = np.zeros(states)
        for scope, table in zip(cliques.scopes, cliques.split(model.theta), strict=True):
            if scope == ("b.y",):
                continue
            theirs = [name for name in scope if name[0] == "b"]
            likely = model.marginal(["n", *theirs])[n]
            for x, y in itertools.product(*map(range, states)):
                cell = {"n": n, "a.x": x, "a.y": y}

                def value(of, cell=cell, scope=scope, table=table):
                    return table[tuple({**cell, **of}[name] for name in scope)]

                if not theirs:
                    potentials[x, y] += value({})
                    continue
                total = 0.0
                for one, share in zip(siblings.tolist(), weight, strict=True):
                    total += max(value({"b.x": one[0], "b.y": one[1]}), -1e9) * share
                every = [dict(zip(theirs, k, strict=True)) for k in np.ndindex(likely.shape)]
                mean = sum(value(of) * share for of, share in zip(every, likely.ravel(), strict=True)) / likely.sum()
                potentials[x, y] += total + max(mean, -1e9) * (1 - shares.sum())
        wanted = np.exp(potentials - potentials.max())
        codes = np.tile([n, 0, 0, 0, 0], (60_000, 1))
        draws = SlotDraws(model, [1, 2], [3, 4], 0, states)
        made = draws.draw(codes, rng, None, np.tile(siblings, (60_000, 1, 1)), np.tile(shares, (60_000, 1)))
        found = np.bincount(made @ [2, 1], minlength=6) / len(made)
        assert wanted[0].sum() == 0.0 and wanted.min(axis=1).max() > 0.0
        assert np.abs(found - (wanted / wanted.sum()).ravel()).max() < 5 * 0.5 / np.sqrt(len(made))
        first = [np.tile([True, False, False], (500, 1)), None]
        made = draws.draw(codes[:500], rng, first, np.tile(siblings, (500, 1, 1)), np.tile(shares, (500, 1)))
        assert (made == states).all()  # the first state alone is allowed, which is impossible


class TestQuestions:
    def test_a_random_child_is_not_a_random_family_s(self, learned):
        """At no noise to speak of: persons count by the number of their household, or households once."""
        status = FAMILIES.child["status"]
        of_persons = shares(PERSONS["status"], status)
        each = pd.get_dummies(PERSONS["status"])[list(status)].groupby(PERSONS["household"]).mean().mean().to_numpy()
        assert 0.5 * np.abs(of_persons - each).sum() > 0.08
        assert np.abs(learned.model_.query("status").values - of_persons).sum() < 0.05
        assert np.abs(learned.model_.query("status", of="family").values - each).sum() < 0.05

    def test_under_evidence_and_with_names_of_tables(self, learned):
        model = learned.model_
        found = model.query(["person.status"], {"household.tenure": "owns", "n": 2})
        size = PERSONS.groupby("household").size()
        homes = HOUSEHOLDS.set_index("household")
        own = (homes.reindex(PERSONS["household"])["tenure"] == "owns").to_numpy()
        chosen = PERSONS[own & (size.reindex(PERSONS["household"]) == 2).to_numpy()]
        assert np.abs(found.values - shares(chosen["status"], FAMILIES.child["status"])).sum() < 0.12
        assert model.query("age >= 16", {"n": (2, 3)}).values[4:].sum() == 0
        assert model.query("sex", {"age": "20:30"}).values.sum() == pytest.approx(1)

    def test_pairs_are_of_two_children_of_one_family(self, learned):
        found = learned.model_.query("speaks", of="family pair")
        assert found.variables == ["first.speaks", "second.speaks"]
        counts = np.zeros((2, 2))
        families = (PERSONS["speaks"] == "second").groupby(PERSONS["household"]).agg(["sum", "size"])
        for second, n in families.to_numpy().tolist():
            if n > 1:
                mixed = second * (n - second) / (n * (n - 1))
                counts += [
                    [(n - second) * (n - second - 1) / (n * (n - 1)), mixed],
                    [mixed, second * (second - 1) / (n * (n - 1))],
                ]
        assert np.abs(found.values - counts / counts.sum()).sum() < 0.06
        assert learned.model_.query("speaks", of="pair").values.sum() == pytest.approx(1)

    def test_declared_counts(self, learned):
        adults = PERSONS[PERSONS["age"] >= 16].groupby("household").size().to_numpy()
        found = learned.model_.query("age >= 16").values
        assert np.abs(found - np.bincount(adults, minlength=len(found)) / 4_000).sum() < 0.05
        assert learned.model_.query(["age >= 16", "region"]).values.shape == (7, 3)

    @pytest.mark.parametrize(
        ("ask", "message"),
        [
            (lambda m: m.query("height"), "'height' is in neither table"),
            (lambda m: m.query("sex", {"n": 9}), "one of the states 1 to 6"),
            (lambda m: m.query("sex", {"sex": "f"}), "both have"),
            (lambda m: m.query("sex", of="person"), "of='person'"),
            (lambda m: m.query("region", of="pair"), "not columns of children"),
            (lambda m: m.query("sex = f"), "is known of those in LinkedSchema"),
            (lambda m: m.sample(-1), "n_parents=-1"),
        ],
    )
    def test_what_cannot_be_asked(self, learned, ask, message):
        with pytest.raises(ValueError, match=message):
            ask(learned.model_)

    @pytest.mark.parametrize(
        ("guarantee", "asked", "adjacency", "of_a_child"),
        [
            (ZCDP(0.1), None, "add_remove", "0.4-zCDP"),
            (PureDP(1.0), None, "add_remove", "2-DP"),
            (ZCDP(0.1), None, "replace_one", "0.1-zCDP"),
        ],
    )
    def test_what_one_child_is_promised(self, guarantee, asked, adjacency, of_a_child):
        privacy = Privacy(guarantee, Adjacency.parse(adjacency), "noise", requested=asked)
        assert str(guarantee_of_a_child(privacy)) == of_a_child

    def test_what_one_child_is_promised_is_printed(self, learned):
        assert "one person alone: nothing is promised" in repr(learned.model_)  # its noise is from a seed
        promising = copy.copy(learned.model_)
        promising.privacy = replace(promising.privacy, reproducible=False)
        assert "one person alone: 8-zCDP" in repr(promising)
        rho = approx_to_zcdp(3.2, 1e-9)
        privacy = Privacy(ZCDP(rho), Adjacency.ADD_REMOVE, "noise", requested=ApproxDP(3.2, 1e-9))
        assert guarantee_of_a_child(privacy).epsilon == pytest.approx(6.78, abs=0.01)
        reserved = Privacy(ReservedZCDP(1e-3, 1e-10), Adjacency.ADD_REMOVE, "noise", requested=ApproxDP(1.0, 1e-9))
        assert guarantee_of_a_child(reserved) == ApproxDP(2.0, (1 + math.exp(1.0)) * 1e-9)
        assert guarantee_of_a_child(replace(reserved, requested=None)).delta > 2e-10

    def test_it_is_no_bayesian_network(self, learned):
        with pytest.raises(NotImplementedError, match="slots"):
            learned.model_.to_bayesian_network()

    def test_a_file_has_the_choice_among_families(self, learned, tmp_path, monkeypatch):
        learned.model_.save(tmp_path / "m.npz")

        def learned_again(*_):
            raise AssertionError("the choice was learned again")

        monkeypatch.setattr(FamilyChoice, "_learned", learned_again)
        again = LinkedModel.load(tmp_path / "m.npz")
        for one, two in zip(again.sample(40, 1), learned.model_.sample(40, 1), strict=True):
            pd.testing.assert_frame_equal(one, two)
        with pytest.raises(ValueError, match="weights of the choice"):
            FamilyChoice(again, again._choice.weights[1:])

    def test_files_are_lossless_and_show_damage(self, learned, tmp_path):
        learned.model_.save(tmp_path / "m.npz")
        again = LinkedModel.load(tmp_path / "m.npz")
        assert np.array_equal(again._model.theta, learned.model_._model.theta) and str(again) == str(learned.model_)
        for one, two in zip(again.sample(40, 1), learned.model_.sample(40, 1), strict=True):
            pd.testing.assert_frame_equal(one, two)
        content = bytearray((tmp_path / "m.npz").read_bytes())
        content[len(content) // 2] ^= 1
        (tmp_path / "m.npz").write_bytes(bytes(content))
        with pytest.raises(ValueError, match="saved LinkedModel"):
            LinkedModel.load(tmp_path / "m.npz")


class TestNumbersDatesAndOrder:
    def visits(self, n=1_500):
        rng = np.random.default_rng(0)
        times = rng.integers(1, 6, n)
        owner = np.repeat(np.arange(n), times)
        day = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 700, len(owner)), unit="D")
        visits = pd.DataFrame(
            {"patient": [f"p{k}" for k in owner], "day": day, "weight": rng.normal(70, 9, len(owner))}
        )
        visits = visits.sort_values(["patient", "day"])
        ill = np.zeros(len(visits), dtype=bool)
        first = ~visits["patient"].duplicated().to_numpy()
        for k in range(len(visits)):
            ill[k] = rng.random() < (0.3 if first[k] else 0.85 if ill[k - 1] else 0.1)
        visits["ill"] = np.where(ill, "yes", "no")
        return visits.sample(frac=1.0, random_state=0)

    SCHEMA = {"day": Date("2020-01-01", "2021-12-31"), "weight": Number(30, 150), "ill": ["no", "yes"]}

    def test_numbers_and_dates_of_children_have_one_grid_in_all_slots(self):
        schema = LinkedSchema(None, self.SCHEMA, "patient", 4)
        found = learn_linked(None, self.visits(), Budget(rho=1.0), schema, n_rounds=6, **QUICK)
        states = found.release_.schema.states
        assert states["a.weight"] == states["b.weight"] and 4 < len(states["a.weight"]) < 40
        patients, visits = found.model_.sample(500, 0)
        assert list(patients) == ["patient", "n"] and visits["day"].dtype.kind == "M"
        assert visits["weight"].dropna().between(30, 150).all() and abs(visits["weight"].mean() - 70) < 4

    def test_visits_in_their_order_are_chains(self):
        schema = LinkedSchema(None, self.SCHEMA, "patient", 4, order=["day"])
        found = learn_linked(None, self.visits(), Budget(rho=2.0), schema, n_rounds=12, **QUICK)
        after = found.model_.query("ill", of="pair").values
        assert after[1, 1] / after[1].sum() > 0.7 > 0.3 > after[0, 1] / after[0].sum()
        _, visits = found.model_.sample(1_000, 0)
        ill = (visits["ill"] == "yes").to_numpy()
        same = visits["patient"].to_numpy()[1:] == visits["patient"].to_numpy()[:-1]
        assert ill[1:][same & ill[:-1]].mean() > 0.65 and ill[1:][same & ~ill[:-1]].mean() < 0.3

    def test_one_file_with_several_rows_a_person(self):
        found = learn_linked(self.visits(), None, Budget(rho=1.0), {"ill": ["no", "yes"]}, key="patient", n_rounds=4)
        assert found.privacy_.unit == "patient" and "all rows of one 'patient'" in str(found.privacy_)


class TestWhatIsRefusedBeforeTheCharge:
    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"schema": {"sex": ["f", "m"]}}, "key=None"),
            ({"schema": FAMILIES, "key": "house"}, "key='house' differs"),
            ({"siblings": 2}, "siblings=2"),
            ({"siblings": "many"}, "siblings='many'"),
            ({"epsilon": 1.0}, "multiple values for argument 'epsilon'"),
            ({"adjacency": "replace_one"}, "n_records"),
        ],
    )
    def test_arguments(self, change, message):
        arguments = {"schema": FAMILIES, **change}
        with pytest.raises((TypeError, ValueError), match=message):
            learn_linked(HOUSEHOLDS, PERSONS, Budget(rho=1.0), **arguments)

    def test_tables_that_are_passed_must_agree(self):
        parents, children = frames([("h", "n")] * 1, [("h", 3, "f")])
        private = PrivateLinkedTables(parents, children, SCHEMA, ledger=Budget(rho=1.0))
        with pytest.raises(ValueError, match="differs"):
            PrivateLinkedNetwork(rho=0.5, schema=FAMILIES).fit(private)
        with pytest.raises(ValueError, match="drop it"):
            PrivateLinkedNetwork(rho=0.5).fit(private, children)
        assert len(private.ledger.entries) == 0
