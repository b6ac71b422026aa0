"""Bad input of linked tables, in clear words before the charge or in silence; odd combinations that have to work."""

from __future__ import annotations

import inspect
import pickle

import numpy as np
import pandas as pd
import pytest

from pgmpy_dp import Budget, BudgetExceeded, Date, Ledger, Number, Schema, learn, learn_linked
from pgmpy_dp.linked import LinkedModel, LinkedSchema, PrivateLinkedNetwork, PrivateLinkedTables, made_up_families
from pgmpy_dp.linked.operators import linked_tables
from pgmpy_dp.verbs import refit
from tests.linked.families import SCHEMA, frames, measure, tables

pytestmark = [
    pytest.mark.filterwarnings("ignore::pgmpy_dp.GuessedTypesWarning"),
    pytest.mark.filterwarnings("ignore::pgmpy_dp.private.noise.samplers.ReproducibleNoiseWarning"),
    pytest.mark.filterwarnings("ignore::pgmpy_dp.FewRecordsWarning"),
]

HOUSEHOLDS, PERSONS, FAMILIES = made_up_families(400, most=3, random_state=0)
SMALL = {"n_rounds": 2, "siblings": 1, "probe_share": 0.0, "random_state": 0, "max_clique_cells": 1_000}


class TestDroppedInSilence:
    """What a record says raises, warns and prints nothing, and the others are as they were."""

    PARENTS, CHILDREN = [("h", "n"), ("i", "s")], [("h", 3, "f"), ("h", 30, "m"), ("i", 70, "f")]

    @pytest.mark.parametrize(
        ("parents", "children"),
        [
            ([], [("orphan", 3, "f")] * 3),
            ([("twice", "n"), ("twice", "n")], [("twice", 3, "f")]),
            ([(None, "n")], [(None, 3, "f")]),
            ([("outside", "?")], [("outside", 3, "f")]),
            ([("", "?"), (b"\xff", None)], [(float("nan"), "?", "?")]),
        ],
    )
    def test_others_are_as_they_were(self, parents, children, capsys, recwarn):
        plain = measure(tables(*frames(self.PARENTS, self.CHILDREN)))
        more = measure(tables(*frames([*self.PARENTS, *parents], [*children, *self.CHILDREN])))
        assert more == plain
        assert capsys.readouterr() == ("", "") and {w.category.__name__ for w in recwarn} <= {"GuessedTypesWarning"}

    def test_ten_thousand_children_and_families_above_most(self):
        many = [("h", k % 99, "fm"[k % 2]) for k in range(10_000)]
        found = tables(*frames(self.PARENTS, [*many, ("i", 70, "f")]))
        names = found._declared.variables
        rows = found._records.codes()[found._records.rows().owner == 0]
        assert len(rows) <= 90 and set(rows[:, names.index("n")]) == {len(found._declared["n"]) - 1}


class TestRefusedBeforeTheCharge:
    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"key": ("household", "clinic")}, "no column for"),
            ({"key": ["household", "clinic"]}, "parents of two kinds"),
            ({"key": "region"}, "leave it out of the schema"),
            ({"child": {"region": ["n", "s"], "household": ["a", "b"]}}, "leave it out of the schema"),
            ({"counts": ["tenure = owns"]}, "a column of the parent table"),
            ({"most": 1_000}, "more than 64"),
        ],
    )
    def test_schemas(self, change, message):
        ledger = Ledger(Budget(rho=1.0), adjacency="add_remove")
        said = {"parent": FAMILIES.parent, "child": FAMILIES.child, "key": "household", "most": 3, **change}
        with pytest.raises((TypeError, ValueError), match=message):
            learn_linked(
                PrivateLinkedTables(HOUSEHOLDS, PERSONS, LinkedSchema(**said), ledger=ledger), None, Budget(rho=1)
            )
        assert not ledger.entries

    def test_a_rule_of_children_that_names_a_column_of_the_parents(self, tmp_path):
        text = FAMILIES.to_dict()
        text["child"]["impossible"] = ["tenure = owns -> age >= 16"]
        with pytest.raises(ValueError, match="rules of children are about one child, by its own columns"):
            LinkedSchema.from_dict(text)

    @pytest.mark.parametrize(
        ("parent", "said", "told"),
        [
            (None, {}, r"most=1: .*pass most=2 or more, .*or use learn\(\.\.\., unit='household', rows_per_unit=1\)"),
            (None, {"order": ["sex"]}, "most=1: .*pass most=2 or more"),
            ({"home": ["owns", "rents"]}, {"order": ["sex"], "least": 1}, "most=1: .*pass most=2 or more, least=0"),
            (None, {"most": 2, "least": 7}, "least=7; pass 0, or 1"),
            (None, {"most": 2, "size": "household"}, "key='household' is a count or the size too"),
            (None, {"most": 2, "key": "sex = f", "counts": ["sex = f"]}, "key='sex = f' is a count or the size too"),
        ],
    )
    def test_a_schema_that_no_model_can_have_is_not_made(self, parent, said, told):
        with pytest.raises(ValueError, match=told):
            LinkedSchema(parent, {"sex": ["f", "m"]}, **{"key": "household", "most": 1, **said})

    def test_a_file_that_was_edited_says_what_to_take_away(self, tmp_path):
        FAMILIES.to_json(tmp_path / "s.json")
        text = (tmp_path / "s.json").read_text()
        edited = text.replace('"most": 3', '"most": 4')
        (tmp_path / "s.json").write_text(edited)
        with pytest.raises(ValueError, match="if you edited it, take its last line 'digest' away"):
            LinkedSchema.from_json(tmp_path / "s.json")
        (tmp_path / "s.json").write_text(edited[: edited.rindex(",")] + "}")
        assert LinkedSchema.from_json(tmp_path / "s.json").most == 4

    @pytest.mark.parametrize("argument", ["workload", "target", "required_edges", "draws", "state_names"])
    def test_what_only_one_table_has_is_named(self, argument):
        ledger = Ledger(Budget(rho=1.0), adjacency="add_remove")
        private = PrivateLinkedTables(HOUSEHOLDS, PERSONS, FAMILIES, ledger=ledger)
        with pytest.raises(TypeError, match=argument):
            learn_linked(private, None, Budget(rho=1.0), **{argument: "age"})
        assert not ledger.entries

    def test_children_that_were_forgotten(self):
        with pytest.raises(ValueError, match=r"children=None, .*pass the table of person too"):
            learn_linked(HOUSEHOLDS, None, Budget(rho=1.0), FAMILIES)

    @pytest.mark.parametrize("argument", ["workload", "target"])
    def test_a_target_is_refused_with_what_to_do(self, argument):
        told = rf"{argument}='age': linked tables .* do not take.*rows_per_unit='shares', target="
        with pytest.raises(TypeError, match=told):
            learn(HOUSEHOLDS, Budget(rho=1.0), FAMILIES, children=PERSONS, **{argument: "age"})

    def test_no_bayesian_network_with_the_reason(self, learned):
        with pytest.raises(NotImplementedError, match="families have any number"):
            learned.model_.to_bayesian_network()


@pytest.fixture(scope="module")
def learned():
    return learn_linked(HOUSEHOLDS, PERSONS, Budget(rho=5.0), FAMILIES, **SMALL)


class TestTheEstimatorAsOthersAre:
    """`ESTIMATORS` has none of linked tables, since generic tests fit one table; these hold what they would."""

    def test_parameters_are_those_of_the_constructor_and_clones_are_unfitted(self, learned):
        again = learned.clone()
        assert again.get_params()["siblings"] == 1 and not hasattr(again, "model_")
        assert set(again.get_params()) == set(inspect.signature(PrivateLinkedNetwork).parameters)
        assert again.set_params(siblings=0).siblings == 0
        with pytest.raises(ValueError, match="nothing"):
            again.set_params(nothing=1)

    def test_nothing_fitted_holds_a_record(self, learned, tmp_path):
        needle = "needle-77aa"
        homes = HOUSEHOLDS.assign(household="k" + needle + HOUSEHOLDS["household"])
        persons = PERSONS.assign(household="k" + needle + PERSONS["household"])
        persons.loc[::50, "status"] = needle
        fit = learn_linked(homes, persons, Budget(rho=5.0), FAMILIES, **SMALL)
        fit.model_.save(tmp_path / "m.npz")
        fit.release_.save(tmp_path / "r.npz")
        for content in (
            pickle.dumps(fit),
            *((tmp_path / n).read_bytes() for n in ("m.npz", "r.npz")),
            repr(fit).encode(),
        ):
            assert needle.encode() not in content

    def test_a_fit_that_fails_after_the_charge_keeps_the_release_and_leaves_the_estimator(self, monkeypatch, tmp_path):
        def killed(*arguments, **options):
            raise KeyboardInterrupt

        ledger = Ledger.open(tmp_path / "ledger.json", Budget(rho=6.0), adjacency="add_remove")
        private = PrivateLinkedTables(HOUSEHOLDS, PERSONS, FAMILIES, ledger=ledger)
        estimator = PrivateLinkedNetwork(rho=5.0, **SMALL)
        with monkeypatch.context() as patched:
            patched.setattr("pgmpy_dp.linked.private_linked_network.collective_map", killed)
            with pytest.raises(KeyboardInterrupt) as caught:
                estimator.fit(private)
        assert not hasattr(estimator, "model_") and len(Ledger.load(tmp_path / "ledger.json").entries) == 1
        again = PrivateLinkedNetwork().fit_release(caught.value.release)
        assert set(again.model_.query("status").state_names["status"]) == set(FAMILIES.child["status"])
        with pytest.raises(BudgetExceeded):
            PrivateLinkedNetwork(rho=5.0, **SMALL).fit(private)
        assert len(ledger.entries) == 1

    def test_an_error_while_records_are_read_says_nothing_of_them(self, monkeypatch):
        monkeypatch.setattr(linked_tables, "unit_rows", lambda *arguments: [][0])
        with pytest.raises(IndexError) as caught:
            PrivateLinkedTables(HOUSEHOLDS, PERSONS, FAMILIES, ledger=Budget(rho=1.0))
        held, place = [], caught.value.__traceback__
        while place is not None:
            if place.tb_frame.f_code.co_name.startswith("_"):  # of the package, not of this test
                held += place.tb_frame.f_locals.values()
            place = place.tb_next
        assert not any(isinstance(value, pd.DataFrame | np.ndarray) for value in held)


class TestCombinations:
    @pytest.mark.parametrize("engine", ["folder", "polars", "duckdb"])
    def test_parents_of_an_engine_with_a_frame_of_children(self, engine, tmp_path):
        if engine == "folder":
            (tmp_path / "homes").mkdir()
            for k, places in enumerate(np.array_split(np.arange(len(HOUSEHOLDS)), 3)):
                HOUSEHOLDS.iloc[places].to_parquet(tmp_path / "homes" / f"{k}.parquet")
            parents = tmp_path / "homes"
        elif engine == "polars":
            parents = pytest.importorskip("polars").from_pandas(HOUSEHOLDS).lazy()
        else:
            parents = pytest.importorskip("duckdb").from_df(HOUSEHOLDS)
        found = measure(tables(parents, PERSONS, FAMILIES))
        assert found == measure(tables(HOUSEHOLDS, PERSONS, FAMILIES))

    def test_numbers_dates_rules_a_ledger_on_file_and_files_of_models(self, tmp_path):
        """All at once: undivided numbers and days of children and parents, rules, missing cells, save and load."""
        rng = np.random.default_rng(0)
        homes = HOUSEHOLDS.assign(rent=rng.gamma(4.0, 200.0, len(HOUSEHOLDS)).round())
        day = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 300, len(PERSONS)), unit="D")
        persons = PERSONS.assign(moved=day.where(rng.random(len(PERSONS)) < 0.8))
        child = Schema(
            {
                "age": Number(0, 99, resolution=1, missing="drop"),
                "status": FAMILIES.child["status"],
                "moved": Date("2020-01-01", "2020-12-31", missing="state"),
            },
            impossible=["age < 16 -> status = child", "age >= 16 -> status != child"],
        )
        parent = Schema({"rent": Number(0, 5_000), "tenure": ["owns", "rents"]})
        schema = LinkedSchema(parent, child, "household", 3, counts=["age >= 16"])
        ledger = Ledger.open(tmp_path / "l.json", Budget(rho=9.0), adjacency="add_remove")
        private = PrivateLinkedTables(homes, persons, schema, ledger=ledger)
        fit = learn_linked(private, None, Budget(rho=5.0), **SMALL | {"max_clique_cells": 4_000})
        states = fit.release_.schema.states
        assert states["a.age"] == states["b.age"] and states["a.moved"] == states["b.moved"]
        fit.model_.save(tmp_path / "m.npz")
        model = LinkedModel.load(tmp_path / "m.npz")
        new_homes, new_persons = model.sample(300, random_state=0)
        assert ((new_persons["age"] < 16) == (new_persons["status"] == "child")).all()
        assert new_homes["rent"].dropna().between(0, 5_000).all() and new_persons["moved"].dtype.kind == "M"
        adults = new_persons[new_persons["age"] >= 16].groupby("household").size().reindex(new_homes["household"])
        assert (adults.fillna(0).to_numpy() == new_homes["age >= 16"]).all()
        assert Ledger.load(tmp_path / "l.json").spent == ledger.spent

    def test_a_schema_with_one_column_each_and_no_child_at_all(self):
        schema = LinkedSchema({"tenure": ["owns", "rents"]}, {"sex": ["f", "m"]}, "household", 1)
        fit = learn_linked(HOUSEHOLDS, PERSONS[:0], Budget(rho=5.0), schema, **SMALL)
        homes, persons = fit.model_.sample(200, random_state=0)
        assert homes["n"].mean() < 0.1 and len(persons) == homes["n"].sum()
        with pytest.raises(ValueError, match="most=1: the model has no pairs of children"):
            fit.model_.explorer("nowhere.html")
        assert SCHEMA.most == 7


@pytest.fixture(scope="module", params=[(1930, 1960), ()], ids=["cuts", "no cuts"])
def free(request):
    """Learned without rules between numbers of two tables, with these cuts."""
    numbers, options = TestRulesThatCompareNumbers, SMALL | {"max_clique_cells": 5_000}
    return learn_linked(*numbers.frames(), Budget(rho=0.05), numbers.schema([], request.param), **options)


class TestRulesThatCompareNumbers:
    """Of a child and its parent, of two numbers of a child, and of two of a parent; by cells and within them."""

    RULES = ("built <= person.moved", "home.sold + 5 >= moved")

    @staticmethod
    def frames(n=400):
        rng = np.random.default_rng(0)
        built, size = rng.integers(1900, 1990, n), rng.integers(1, 4, n)
        owner = np.repeat(np.arange(n), size)
        homes = pd.DataFrame({"key": np.arange(n), "built": built, "sold": built + rng.integers(0, 20, n)})
        moved = built[owner] + rng.integers(0, 25, len(owner)).clip(max=(homes["sold"] - built)[owner] + 5)
        persons = pd.DataFrame({"key": owner, "moved": moved, "left": moved + rng.integers(0, 5, len(owner))})
        return homes, persons.astype("Int64").mask(np.arange(len(owner))[:, None] % 9 == [-1, -1, 0])

    @staticmethod
    def schema(impossible=RULES, cuts=(1930, 1960), **options):
        def year(**more):
            return Number(1900, 2020, resolution=1, cuts=cuts, **more)

        parent = Schema({"built": year(), "sold": year()}, impossible=["built <= sold"])
        child = Schema({"moved": year(), "left": year(missing="state")}, impossible=["moved <= left"])
        options = {"least": 1, "names": ("home", "person"), **options}
        return LinkedSchema(parent, child, "key", 3, impossible=impossible, **options)

    @staticmethod
    def broken(homes, persons):
        joined = persons.merge(homes, on="key")
        gaps = [
            joined["moved"] - joined["built"],
            joined["sold"] + 5 - joined["moved"],
            joined["left"] - joined["moved"],
        ]
        return [float((gap.dropna() < 0).mean()) for gap in (*gaps, homes["sold"] - homes["built"])]

    @pytest.mark.parametrize(("free", "cuts"), [((1930, 1960),) * 2, ((),) * 2], indirect=["free"])
    def test_families_that_are_drawn_obey_all_of_them(self, free, cuts):
        homes, persons = self.frames()
        assert self.broken(homes, persons) == [0.0] * 4
        with pytest.raises(ValueError, match="has >= between two variables"):
            self.schema()
        rules = ["built <= person.moved", "moved <= home.sold + 5"]
        fitted = learn_linked(
            homes, persons, Budget(rho=0.05), self.schema(rules, cuts), **(SMALL | {"max_clique_cells": 5_000})
        )
        made = fitted.model_.sample(500, random_state=0)
        assert self.broken(*made) == [0.0] * 4 and made[1]["left"].isna().any() and set(made[0]["n"]) == {1, 2, 3}
        if not cuts:
            return
        without = self.broken(*free.model_.sample(500, random_state=0))
        assert min(without[:2]) > 0.05 and without[2:] == [0.0] * 2
        model = fitted.model_
        early = model.query("person.moved", {"built": "[1960,2020]"}).values
        assert early[:2].max() == 0.0 and early[2] > 0.9  # else it is missing
        with pytest.raises(ValueError, match="probability"):
            model.query("sold", {"built": "[1960,2020]", "moved": "[1900,1930)"})

    @pytest.mark.parametrize("free", [(1930, 1960)], indirect=True)
    def test_a_release_is_learned_from_again_under_further_rules_as_if_they_had_been_declared(self, free, tmp_path):
        rules = ["built <= moved", "moved < home.sold + 6", "built < 1930 -> sold < 1960", "count(left >= 1960) <= 2"]
        again = refit(free.release_, impossible=rules)
        linked = again.model_.linked
        assert linked.impossible == ("built <= moved", "moved < `home.sold` + 6", rules[3])
        assert linked.parent.impossible == ("built <= sold", rules[2]) and free.model_.linked.impossible == ()
        made = again.model_.sample(300, random_state=0)
        assert self.broken(*made) == [0.0] * 4 and not ((made[0]["built"] < 1930) & (made[0]["sold"] >= 1960)).any()
        again.model_.save(tmp_path / "m.npz")
        again.release_.save(tmp_path / "r.npz")
        loaded = LinkedModel.load(tmp_path / "m.npz")
        assert loaded.linked == linked == LinkedSchema.from_dict(again.release_.public["linked"])
        assert self.broken(*loaded.sample(200, random_state=1)) == [0.0] * 4
        as_declared = PrivateLinkedNetwork(schema=linked).fit_release(free.release_).model_
        assert np.array_equal(as_declared._model.theta, again.model_._model.theta)

    @pytest.mark.parametrize(
        "rule", ["moved < 1940 -> left < 1960", "built < 1940 -> sold < 1960", "count(moved < 1940) = 1"]
    )
    def test_further_rules_that_divide_cells_are_refused(self, free, rule):
        with pytest.raises(TypeError, match=r"impossible=.*(1940|divide)"):
            refit(free.release_, impossible=[rule])

    @pytest.mark.parametrize(
        ("rule", "words"),
        [
            ("moved <= left", "of one table; write it into the Schema of that table"),
            ("built <= tenure", "nor compares a number of a child with one of its parent"),
            ("built <= moved + 0.5", "no multiple of the resolution"),
            ("built <= moved + 500", "forbids nothing"),
            ("moved + 200 <= built", "no numbers possible"),
            ("sold <= built", "of one table"),
        ],
    )
    def test_what_cannot_be_a_rule(self, rule, words):
        with pytest.raises(ValueError, match=words):
            self.schema([rule])

    def test_a_name_of_both_tables_needs_its_table(self):
        tables = ({"year": Number(0, 9)}, {"year": Number(0, 9)})
        rule = "child.year <= parent.year"
        assert LinkedSchema(*tables, "key", 3, impossible=[rule]).impossible == ("`child.year` <= `parent.year`",)
        with pytest.raises(ValueError, match="nor compares"):
            LinkedSchema(*tables, "key", 3, impossible=["year <= parent.year"])
