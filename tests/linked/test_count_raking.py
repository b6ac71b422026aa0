"""Rules on counts of children: models obey them, so do draws, answers agree, and files keep them."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from pgmpy_dp import Budget, Number, learn_linked
from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.learning.structural_zeros import obeying
from pgmpy_dp.linked import LinkedModel, LinkedSchema, PrivateLinkedNetwork, count_raking, made_up_families
from pgmpy_dp.linked.count_raking import raked, under_rules
from pgmpy_dp.linked.operators.wide_table import wide_table
from pgmpy_dp.models.posterior.posterior_draws import Posterior
from pgmpy_dp.schema import Schema

pytestmark = [
    pytest.mark.filterwarnings("ignore::pgmpy_dp.GuessedTypesWarning"),
    pytest.mark.filterwarnings("ignore::pgmpy_dp.private.noise.samplers.ReproducibleNoiseWarning"),
]

ROLES = ["head", "spouse", "child"]
RULES = ["count(role = head) = 1", "count(role = spouse) <= 1", "count(age >= 16) >= 1"]
NAMES = ("household", "person")


def homes(n=800, random_state=0):
    """Households whose oldest person is the head, with the roles of the others, of a few of whom it is missing."""
    households, persons, schema = made_up_families(n, random_state=random_state)
    oldest = persons.groupby("household")["age"].rank(method="first", ascending=False) == 1
    role = np.where(oldest, "head", np.where(persons["age"] < 16, "child", "spouse")).astype(object)
    role[np.random.default_rng(random_state).random(len(role)) < 0.03] = None
    return households, persons.assign(role=role), schema


HOUSEHOLDS, PERSONS, FAMILIES = homes()


def schema_of(most, impossible=RULES, roles=(*ROLES, None), **options):
    age = Number(0, 99, cuts=[8, 16, 35, 50, 65], resolution=1, missing="drop")
    child = Schema(
        {"age": age, "sex": ["f", "m"], "role": list(roles)},
        impossible=["age < 16 -> role != head"],
    )
    return LinkedSchema(
        FAMILIES.parent, child, "household", most, least=1, names=NAMES, impossible=impossible, **options
    )


def fitted(schema, rho=0.05):
    """With so much noise that most families would break the rules without them."""
    return learn_linked(
        HOUSEHOLDS, PERSONS, Budget(rho=rho), schema, n_rounds=4, max_clique_cells=6_000, random_state=1
    )


@pytest.fixture(scope="module")
def learned():
    return fitted(schema_of(4, counts=["age >= 16"]))


def counted(persons, condition):
    return condition.groupby(persons["household"]).sum(), persons.groupby("household").size()


def least_and_most(persons, met, unknown):
    sure, n = counted(persons, met)
    return sure, sure + counted(persons, unknown)[0], n


class TestDraws:
    @pytest.mark.parametrize("seed", [0, 1, 2])
    def test_every_family_obeys_every_rule_and_there_are_families_of_all_kinds(self, learned, seed):
        _, persons = learned.model_.sample(800, random_state=seed)
        missing = persons["role"].isna()
        least, most, n = least_and_most(persons, persons["role"] == "head", missing)
        assert (least <= 1).all() and (most[n < 4] >= 1).all()
        spouses, _ = counted(persons, persons["role"] == "spouse")
        adults, _ = counted(persons, persons["age"] >= 16)
        assert (spouses <= 1).all() and (adults[n < 4] >= 1).all()
        assert not (persons.loc[persons["role"] == "head", "age"] < 16).any()
        assert set(n) == {1, 2, 3, 4} and missing.any()
        assert (least[n == 4] == 0).any()  # whose head may be among those who are not drawn

    def test_without_rules_they_break_them(self):
        _, persons = fitted(schema_of(4, impossible=[])).model_.sample(800, random_state=0)
        least, most, n = least_and_most(persons, persons["role"] == "head", persons["role"].isna())
        assert (least > 1).mean() > 0.005 and (most[n < 4] < 1).mean() > 0.005

    def test_heads_are_as_old_as_they_are(self, learned):
        _, persons = learned.model_.sample(2_000, random_state=0)
        means = [frame.loc[frame["role"] == "head", "age"].mean() for frame in (persons, PERSONS)]
        assert abs(means[0] - means[1]) < 4.0

    def test_of_numbers_beside_n(self):
        schema = schema_of(4, ["count(role = child) < n", "count(role in {head, spouse}) > 0"], roles=ROLES)
        _, persons = fitted(schema).model_.sample(400, random_state=0)
        counts = pd.crosstab(persons["household"], persons["role"])
        n = counts.sum(axis=1)
        assert (counts["child"] < n)[n < 4].all() and (n > 1).any()

    def test_of_children_who_have_an_order(self):
        child = Schema({"day": [0, 1, 2, 3, 4], "ill": ["first", "again", "no"]})
        rules = ["count(ill = first) = 1", "count(ill = again) <= 1"]
        schema = LinkedSchema(None, child, "patient", 5, order=["day"], impossible=rules)
        rng = np.random.default_rng(0)
        visits = pd.DataFrame({"patient": np.repeat(np.arange(300), rng.integers(1, 6, 300))})
        visits["day"] = visits.groupby("patient").cumcount()
        visits["ill"] = np.where(visits["day"] == 0, "first", rng.choice(["again", "no"], len(visits)))
        model = learn_linked(visits, None, Budget(rho=0.05), schema, n_rounds=4, random_state=1).model_
        _, drawn = model.sample(300, random_state=0)
        counts = pd.crosstab(drawn["patient"], drawn["ill"])
        assert (counts["first"] <= 1).all() and (counts["again"] <= 1).all()
        assert (counts["first"][counts.sum(axis=1) < 5] == 1).all()
        assert model.query("ill", {"n": 3}).values[0] == pytest.approx(1 / 3, abs=1e-4)

    def test_rules_that_contradict_others_are_obeyed_or_a_sample_says_so(self):
        """A head is male by the children's schema, and nobody is by the rules: no person can be one."""
        child = Schema({"sex": ["f", "m"], "role": ROLES}, impossible=["role = head -> sex = m"])
        rules = ["count(role = head) = 1", "count(sex = f) = n"]
        schema = LinkedSchema(None, child, "household", 4, names=NAMES, impossible=rules)
        model = learn_linked(PERSONS, None, Budget(rho=0.05), schema, n_rounds=2, random_state=1).model_
        with pytest.raises(ValueError, match=r"impossible=.*leave no family of n = \d"):
            model.sample(500, random_state=0)


class TestAnswers:
    def test_a_random_child_is_the_head_once_in_n(self, learned):
        model = learned.model_
        for n in (1, 2, 3):
            head, spouse, child, missing = model.query("role", {"n": n}).values
            assert head / (head + spouse + child) == pytest.approx(1 / n, abs=5e-3 if n == 2 else 1e-3) and missing > 0
            assert spouse / (head + spouse + child) <= 1 / n + 1e-4
        head = model.query("role", {"n": 4}).values[0]
        assert 0.1 < head <= 0.25 + 1e-4

    def test_two_heads_and_no_head_of_two_are_impossible(self, learned):
        pairs = learned.model_.query("role", of="pair").values
        assert pairs[0, 0] == 0.0 and pairs[1, 1] == 0.0 and pairs[0, 1] > 0.05
        of_two = learned.model_.query("role", {"n": 2}, of="pair").values
        assert (of_two[1:3, 1:3] == 0.0).all() and of_two[0, 3] > 0.0

    def test_intervals_obey_too(self, learned):
        model = LinkedModel.__new__(LinkedModel)
        model.__dict__.update(learned.model_.__dict__)
        model.posterior = learned.posterior(20, random_state=0)
        answer = model.ask("role", {"n": 3})
        ends = [answer.interval[end][0] / answer.shares[:3].sum() for end in ("lower", "upper")]
        assert ends[0] < 0.334 and ends[1] > 0.333 and ends[1] - ends[0] < 0.1
        for slot in "ab":
            known = model.posterior.draws.query(["n", f"{slot}.role"])[:, 3, :3]  # of three persons
            np.testing.assert_allclose(known[:, 0] / known.sum(axis=1), 1 / 3, atol=2e-3)

    def test_the_nearest_model_in_relative_entropy(self, monkeypatch):
        """Written out: of its logarithm, what was added is a function of n with one child or with the other."""
        monkeypatch.setattr(count_raking, "_CLOSE", 1e-12)
        monkeypatch.setattr(count_raking, "_SWEEPS", 500)
        schema = LinkedSchema(None, {"role": ["head", "other"]}, "home", 4, impossible=["count(role = head) = 1"])
        wide = wide_table(schema)
        names, rng = wide.schema.variables, np.random.default_rng(0)
        sizes = tuple(map(wide.schema.cardinality, names))
        joint = rng.random(sizes) + 0.2
        joint = joint + joint.transpose(0, 2, 1)
        scopes = (names,)
        flat = Cliques(names, sizes, scopes)
        before = obeying(LogLinearModel(flat, np.log(joint).ravel()), wide.schema.zeros)
        after = under_rules(schema, wide, before)
        p, q = before.marginal(names), after.marginal(names)
        for k, (n, present) in enumerate(wide.patterns):
            if n in (1, 3):
                head = q[k].sum(axis=1)[0] if 0 in present else q[k].sum(axis=0)[0]
                known = (q[k][:2].sum() if 0 in present else q[k][:, :2].sum()) + 0.0
                assert head / known == pytest.approx(1 / n, abs=1e-4)
            if n == 4:
                assert q[k].sum(axis=1)[0] / q[k][:2].sum() <= 0.25 + 1e-4
            if n > 1:
                assert q[k][0, 0] == 0.0
        with np.errstate(divide="ignore", invalid="ignore"):
            added = np.log(q[3] / p[3])  # n = 3
        both = added[:2, :2]
        assert both[0, 1] == pytest.approx(both[1, 0]) and both[0, 1] != pytest.approx(both[1, 1], abs=0.01)
        outside = 3
        assert added[0, outside] - added[1, outside] == pytest.approx(both[0, 1] - both[1, 1], abs=1e-6)
        draws = Posterior(before.cliques, before.theta[None], "", "", before.memory_limit)
        assert raked(LinkedSchema(None, {"role": ["head", "other"]}, "home", 4), wide, draws) is draws


class TestFiles:
    def test_schemas_and_models_and_releases_keep_the_rules(self, learned, tmp_path):
        linked = learned.model_.linked
        assert linked.impossible == tuple(RULES) and linked.to_dict()["version"] == 2
        linked.to_json(tmp_path / "s.json")
        assert LinkedSchema.from_json(tmp_path / "s.json") == linked
        learned.model_.save(tmp_path / "m.npz")
        again = LinkedModel.load(tmp_path / "m.npz")
        for one, other in zip(learned.model_.sample(50, 3), again.sample(50, 3), strict=True):
            pd.testing.assert_frame_equal(one, other)
        learned.release_.save(tmp_path / "r.npz")
        refitted = PrivateLinkedNetwork().fit_release(type(learned.release_).load(tmp_path / "r.npz")).model_
        assert refitted.linked == linked and np.array_equal(refitted._model.theta, learned.model_._model.theta)

    def test_a_schema_without_rules_is_as_before(self):
        content = schema_of(4, impossible=[]).to_dict()
        assert content["version"] == 1 and "impossible" not in content
        assert LinkedSchema.from_dict({**content, "impossible": RULES}).impossible == tuple(RULES)
        with pytest.raises(ValueError, match="version 3"):
            LinkedSchema.from_dict({**content, "version": 3})

    @pytest.mark.parametrize(
        ("rules", "words"),
        [
            (["age >= 16 -> role = head"], "not of the form count"),
            (["count(role = boss) = 1"], "impossible: the rule 'count.role = boss. = 1' has boss"),
            (["count(tenure = owns) = 1"], "names 'tenure', which is not a variable"),
            (["count(role = head) >= 0"], "forbids nothing"),
            (["count(role in {head, spouse, child}) = 1"], "every state meets"),
            (["count(role = head) = 1", "count(role in {head, spouse}) >= 2"], "no family of n = 1"),
            ("count(role = head) = 1", "pass a list"),
            ([1], "pass a text"),
        ],
    )
    def test_bad_rules_are_refused_with_what_to_do(self, rules, words):
        with pytest.raises((TypeError, ValueError), match=words):
            schema_of(4, rules, roles=ROLES)

    def test_a_file_by_hand(self, tmp_path):
        content = {"parent": None, "child": {"domain": {"role": ["head", "other"]}}, "key": "home", "most": 5}
        (tmp_path / "s.json").write_text(json.dumps({**content, "impossible": ["count(role=head) = 1"]}))
        assert LinkedSchema.from_json(tmp_path / "s.json").impossible == ("count(role = head) = 1",)
