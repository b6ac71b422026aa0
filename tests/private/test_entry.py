"""How identifiers are compared belongs to the unit: costs for texts and for whole numbers are never added up."""

from __future__ import annotations

import json
import pickle
import shutil
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from pgmpy_dp import Budget, Ledger, LinkedSchema, PrivateTable, Release, Schema, check_linked, estimators, plan_linked
from pgmpy_dp.learning.privacy_record import Privacy
from pgmpy_dp.linked import PrivateLinkedNetwork, PrivateLinkedTables
from pgmpy_dp.linked.linked_model import LinkedModel
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.data.contributions import GRID
from pgmpy_dp.private.entry import Entry, Unit, decode_unit, encode_unit
from pgmpy_dp.private.filter import Filter
from pgmpy_dp.private.guarantee import ZCDP, PureDP
from pgmpy_dp.private.ledger_file import read_ledger
from pgmpy_dp.schema.stored import sealed
from tests.linked.test_linked_cli import run

pytestmark = [
    pytest.mark.filterwarnings("ignore::pgmpy_dp.GuessedTypesWarning"),
    pytest.mark.filterwarnings("ignore::pgmpy_dp.private.noise.samplers.ReproducibleNoiseWarning"),
]
FILES = Path(__file__).parent / "files"  # write_of_0_3.py there made them
Y = {"y": ["u", "v"]}
WHOLE = Unit("house", "integer")
OTHER = r'differs from the unit .*Keep to one: texts, .* key_kind="integer", by which "007" is 7'
SAY = r"Where version 0.3 left it open, say once which it was: Ledger.open\(path, key_kind=...\)"
FACTS = {"what": "w", "columns": ("y",), "mechanism": "m", "adjacency": "add_remove"}


def houses(keys) -> pd.DataFrame:
    return pd.DataFrame({"house": list(keys), "y": "u"}).astype("string[pyarrow]")


def linked(keys, ledger, key_kind: str | None = "integer") -> PrivateLinkedTables:
    """Visits alone, of whom a parent is a value of the key."""
    schema = LinkedSchema(None, Y, key="house", most=2, key_kind=key_kind)
    return PrivateLinkedTables(None, houses(keys), schema, ledger=ledger)


def table(keys, ledger) -> PrivateTable:
    return PrivateTable(houses(keys), Y, ledger=ledger, unit="house")


def check(tables: PrivateLinkedTables):
    return check_linked(tables, budget=Budget(epsilon=0.1))


def fitted(table: PrivateTable):
    return estimators.NaiveMLE(epsilon=0.1).fit(nx.Graph({"y": []}), table)


def old(name: str, folder: Path) -> Path:
    return Path(shutil.copy(FILES / f"{name}.ledger-0.3.json", folder / "ledger.json"))


class TestAttack:
    """Whoever is 7 in linked tables is "7" and "007" in a table."""

    def test_one_unit_of_whole_numbers_is_two_of_texts(self):
        free = Budget(epsilon=1.0)
        (before,), (after,) = (table(keys, free)._records.counts([(0,)]) for keys in (["8", "7", "007"], ["8"]))
        assert np.abs(before - after).sum() == 2  # where epsilon is for 1
        (before,), (after,) = (linked(k, free)._kinds.counts([(0,)]) for k in (["8", "7", "007"], ["8"]))
        assert np.abs(before - after).sum() == GRID  # which is 1

    @pytest.mark.parametrize("first", ["linked", "table"])
    def test_a_ledger_takes_one_of_them(self, first):
        """It said that twice .1 is spent where 7 has lost .1 and twice .1."""
        ledger = Ledger(Budget(epsilon=5.0))
        asked = [lambda: check(linked(["7", "007"], ledger)), lambda: fitted(table(["7", "007"], ledger))]
        before, after = asked if first == "linked" else asked[::-1]
        before()
        with pytest.raises(ValueError, match=OTHER):
            after()
        before()
        assert ledger.spent == PureDP(0.2) and len({entry.unit for entry in ledger.entries}) == 1

    def test_linked_tables_of_texts_and_tables_add_up(self):
        ledger = Ledger(Budget(epsilon=5.0))
        for key_kind in (None, "text"):
            check(linked(["7", "007"], ledger, key_kind))
        fitted(table(["7", "007"], ledger))
        assert {entry.unit for entry in ledger.entries} == {"house"}
        with pytest.raises(ValueError, match=OTHER):
            check(linked(["7", "007"], ledger))

    def test_what_is_set_aside_is_for_one_of_them(self):
        ledger = Ledger(Budget(epsilon=5.0))
        part = linked(["7"], ledger).set_aside(PureDP(1.0), what="both", mechanism="m")
        assert ledger.entries[0].unit == WHOLE
        with pytest.raises(ValueError, match=r"unit='house' differs from the unit house .compared as integer."):
            part.ledger.charge(PureDP(0.1), unit="house", **FACTS)
        part.ledger.charge(PureDP(0.1), unit=WHOLE, **FACTS)

    def test_a_schema_that_was_found_for_the_other(self):
        ledger = Ledger(Budget(epsilon=5.0))
        entry = ledger.charge(PureDP(1.0), unit=WHOLE, **FACTS)
        said = {"guarantee": entry.cost.to_dict(), "adjacency": "add_remove", "mechanism": "m", "reproducible": False}
        schema = Schema(Y).discovered_under([said | {"unit": encode_unit(WHOLE), "ledger": ledger.id}])
        assert Privacy.from_dict({"entries": [], **schema.discovered[0]}).unit == WHOLE
        for own in (ledger, Budget(epsilon=5.0)):
            with pytest.raises(ValueError, match=r"discovered under unit=house .compared as integer.*Keep to one"):
                PrivateTable(houses("7"), schema, ledger=own, unit="house")
        PrivateLinkedTables(
            *(None, houses("7")), LinkedSchema(None, schema, "house", 2, key_kind="integer"), ledger=ledger
        )


class TestWhatSaysIt:
    def test_releases_records_plans_and_models(self, tmp_path):
        ledger = Ledger.open(tmp_path / "ledger.json", Budget(epsilon=5.0))
        estimator = PrivateLinkedNetwork(epsilon=1.0, random_state=0).fit(linked(["7", "007", "8"] * 50, ledger))
        estimator.release_.save(tmp_path / "release.npz")
        assert Release.load(tmp_path / "release.npz").unit == WHOLE
        estimator.model_.save(tmp_path / "model.npz")
        for privacy in (estimator.privacy_, LinkedModel.load(tmp_path / "model.npz").privacy):
            assert privacy.unit == WHOLE and Privacy.from_dict(json.loads(json.dumps(privacy.to_dict()))) == privacy
            assert "of all rows of one house (compared as integer)" in str(privacy)
            assert pickle.loads(pickle.dumps(privacy)) == privacy
        assert plan_linked(estimator.model_.linked, Budget(epsilon=1.0), 100).privacy.unit == WHOLE
        assert "unit=house (compared as integer)" in repr(linked(["7"], ledger))
        assert Ledger.open(tmp_path / "ledger.json").entries == ledger.entries

    def test_priors_of_the_other_do_not_add_up(self):
        texts, whole = (Privacy(PureDP(1.0), Adjacency.ADD_REMOVE, "m", unit=unit) for unit in ("house", WHOLE))
        assert texts.depending_on(texts).total == PureDP(2.0) and texts.depending_on(whole).total is None

    def test_the_command_line(self, tmp_path):
        path = tmp_path / "ledger.json"
        check(linked(["7", "007"], Ledger.open(path, Budget(epsilon=5.0))))
        assert "adjacency add_remove, unit house (compared as integer)" in run(f"ledger show {path}").stdout
        assert json.loads(run(f"ledger show {path} --json").stdout)["entries"][0]["unit"] == encode_unit(WHOLE)
        assert "'kind': 'integer'" in run(f"ledger export {path} --out -").stdout
        houses(["7", "007"]).to_csv(tmp_path / "houses.csv", index=False)
        Schema(Y).to_json(tmp_path / "y.json")
        asked = f"--schema {tmp_path / 'y.json'} --unit house --epsilon 1 --ledger {path} --out {tmp_path / 'm.npz'}"
        refused = run(f"fit {tmp_path / 'houses.csv'} {asked}", code=2)
        assert "Keep to one: texts, as in tables" in " ".join(refused.stderr.split())
        assert len(Ledger.load(path).entries) == 1

    def test_units_are_read_back_exactly(self):
        for unit in (None, "house", 7, ("a", 1), WHOLE, Unit(("a", 1), "integer"), Unit("house", "text or integer")):
            assert decode_unit(json.loads(json.dumps(encode_unit(unit)))) == unit
        assert WHOLE != "house" and WHOLE != ("house", "integer") and Unit("house", "text or integer") != WHOLE
        assert str(Unit("a\x1b[1m", "integer")) == r"a\x1b[1m (compared as integer)"
        with pytest.raises(ValueError, match="kind='number' is none"):
            decode_unit({"column": "house", "kind": "number"})
        with pytest.raises(TypeError, match=r"cannot use house .compared as integer. "):
            PrivateTable(houses("7"), Y, ledger=Budget(epsilon=1.0), unit=WHOLE)

    def test_what_a_ledger_hands_out_changes_nothing_in_it(self):
        ledger = Ledger(Budget(epsilon=1.0))
        object.__setattr__(ledger.charge(PureDP(0.1), unit=WHOLE, **FACTS).unit, "kind", "text or integer")
        assert ledger.entries[0].unit == Unit("house", "integer")


class TestFilesOf03:
    """They say of no unit how identifiers were compared; 0.3 itself reads no version 3."""

    def test_persons_of_a_table_are_told_apart_as_texts(self, tmp_path):
        path = old("persons", tmp_path)
        fitted(table(["7"] * 5, Ledger.open(path)))
        assert [entry.unit for entry in Ledger.open(path).entries] == ["house", "house"]
        assert json.loads(path.read_text())["version"] == 3
        with pytest.raises(ValueError, match=OTHER):
            check(linked(["7"], Ledger.open(path)))

    @pytest.mark.parametrize("name", ["linked-integer", "linked-text"])
    def test_linked_tables_are_read_and_charged_when_it_is_said(self, name, tmp_path):
        path, key_kind = old(name, tmp_path), name.removeprefix("linked-")
        before, ledger = path.read_bytes(), Ledger.open(path)
        assert (
            len(ledger.entries) == 2 and str(ledger.left) and "unit house (compared as text or integer)" in f"{ledger}"
        )
        for charge in (
            lambda: check(linked(["7"], ledger, "integer")),
            lambda: check(linked(["7"], ledger, "text")),
            lambda: fitted(table(["7"], ledger)),
            lambda: ledger.check(PureDP(0.1), unit="house"),
        ):
            with pytest.raises(ValueError, match=SAY):
                charge()
        assert path.read_bytes() == before
        Ledger.load(path).save(tmp_path / "copy.json")  # of version 3, and it does not say it either
        for written in (path, tmp_path / "copy.json"):
            with pytest.raises(ValueError, match="key_kind='number'; pass 'text' or 'integer'"):
                Ledger.open(written, key_kind="number")
            said = Ledger.open(written, key_kind=key_kind)
            assert {entry.unit for entry in Ledger.open(written).entries} == {decode_unit("house", key_kind)}
            assert said.id == ledger.id and said.spent == Ledger.load(FILES / f"{name}.ledger-0.3.json").spent
            check(linked(["7"], Ledger.open(written), key_kind))
            with pytest.raises(ValueError, match=OTHER):
                check(linked(["7"], Ledger.open(written), {"text": "integer", "integer": "text"}[key_kind]))

    def test_the_first_charge_says_it_too(self, tmp_path):
        path = old("linked-integer", tmp_path)
        before, ledger = path.read_bytes(), Ledger.open(path, key_kind="integer", at_once=False)
        assert path.read_bytes() == before
        check(linked(["7"], ledger))
        assert {entry.unit for entry in Ledger.open(path).entries} == {WHOLE}

    def test_what_was_found_by_texts_was_never_of_whole_numbers(self, tmp_path):
        path = old("linked-text", tmp_path)
        before = path.read_bytes()
        with pytest.raises(ValueError, match=r"entry 1 of the ledger .* is of a table"):
            Ledger.open(path, key_kind="integer")
        assert path.read_bytes() == before

    def test_what_is_said_of_linked_tables_is_not_passed_over(self, tmp_path):
        """Of what estimators of one table asked of parents alone nothing shows that they were linked."""
        path = old("persons", tmp_path)
        before = path.read_bytes()
        with pytest.raises(ValueError, match=r"key_kind='integer', and entry 1 of the ledger .* is of a table"):
            Ledger.open(path, key_kind="integer")
        assert path.read_bytes() == before and Ledger.open(path, key_kind="text").entries[0].unit == "house"

    def test_a_schema_that_it_paid_for(self, tmp_path):
        ledger = Ledger.open(path := old("linked-text", tmp_path))
        entry = ledger.entries[0]
        said = {"guarantee": entry.cost.to_dict(), "adjacency": "add_remove", "mechanism": entry.mechanism}
        said |= {"reproducible": False, "unit": "house", "ledger": ledger.id}
        with pytest.raises(ValueError, match=SAY):
            PrivateTable(houses("7"), Schema(Y).discovered_under([said]), ledger=ledger, unit="house")
        ledger = Ledger.open(path, key_kind="text")
        made = PrivateTable(houses("7"), Schema(Y).discovered_under([said]), ledger=ledger, unit="house")
        learned = fitted(made)
        assert learned.privacy_.schema.guarantee == entry.cost

    def test_releases_and_models_say_it_in_their_schema(self):
        release = Release.load(FILES / "linked-integer.release-0.3.npz")
        assert release.unit == WHOLE and release.guarantee == ZCDP(0.01)
        assert PrivateLinkedNetwork(rho=0.01).fit_release(release).privacy_.unit == WHOLE
        assert LinkedModel.load(FILES / "linked-integer.model-0.3.npz").privacy.unit == WHOLE

    def test_every_entry_of_children_is_seen(self):
        """By their names for columns, "a.x" and "b.x"; a table's own that is called so is asked about, too."""
        for columns, unit, unknown in (
            (("y", "a.x"), "house", True),
            (("b.x",), "house", True),
            (("a.x", "b.x"), None, False),
            (("y", ("a", 1)), "house", False),
        ):
            entry = Entry("w", columns, "m", PureDP(0.1), Adjacency.ADD_REMOVE, False, unit)
            content = Filter(Budget(epsilon=1.0)).charged(entry).to_dict()
            text = json.dumps(sealed({"format": "pgmpy_dp.ledger", "version": 2, **content})).encode()
            kind = "text or integer" if unknown else "text"
            assert read_ledger(Path("old.json"), text).entries[0].unit == decode_unit(encode_unit(unit), kind)
