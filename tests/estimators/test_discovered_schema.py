"""What a discovered schema cost goes with it, into what is learned, and is refused where it cannot be added."""

from __future__ import annotations

import pickle

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from pgmpy_dp import Budget, Ledger, MarkovNetwork, Number, PrivateTable, Release, Schema, check_schema, discover, learn
from pgmpy_dp.estimators import NaiveMLE
from pgmpy_dp.learning.privacy_record import Privacy, composed
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.guarantee import ZCDP, ApproxDP, PureDP, ReservedZCDP
from pgmpy_dp.schema.stored import sealed
from pgmpy_dp.tables.discovery import Discovery

VARIABLES = {"ward": "categories", "sex": ["F", "M"]}
COST, REST = Budget(epsilon=0.5, delta=1e-9), Budget(epsilon=0.5, delta=1e-8)
WHOLE = Budget(epsilon=2.0, delta=1e-7)


def stays(n: int = 4_000) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    who = np.repeat(np.arange(n), 2)
    ward, sex = np.array(["north", "south"])[rng.integers(2, size=2 * n)], np.array(["F", "M"])[who % 2]
    return pd.DataFrame({"patient": who, "ward": ward, "sex": sex})


@pytest.fixture(scope="module")
def ledger() -> Ledger:
    return Ledger(WHOLE)


@pytest.fixture(scope="module")
def found(ledger) -> Discovery:
    return discover(stays(), VARIABLES, COST, ledger=ledger)


class TestSchema:
    def test_it_says_what_it_cost(self, found, ledger):
        (said,) = found.schema.discovered
        assert said["guarantee"] == found.guarantee.to_dict() == ledger.entries[0].cost.to_dict()
        assert said["unit"] is None and said["ledger"] == ledger.id and "discovered" in repr(found.schema)

    def test_files_copies_and_parts_say_it_too(self, found, tmp_path):
        schema = found.schema
        found.to_json(tmp_path / "one.json")
        schema.to_json(tmp_path / "two.json")
        for same in (
            *(Schema.from_json(tmp_path / name) for name in ("one.json", "two.json")),
            *(pickle.loads(pickle.dumps(schema)), Schema.from_dict(schema.to_dict()), Schema.coerce(schema)),
            *(schema.fine(), schema.subset(["sex"]), schema.replaced({"ward": ["a", "b"]})),
        ):
            assert same.discovered == schema.discovered

    def test_a_schema_that_is_made_from_it_says_it_too(self, found):
        other = Schema(found.schema, missing=["?"])
        assert other.discovered == found.schema.discovered and other != found.schema
        assert Schema(found.schema.as_public()).discovered == ()

    def test_it_has_no_part_in_what_is_declared(self, found):
        plain = found.schema.as_public()
        assert plain == found.schema and hash(plain) == hash(found.schema) and plain.discovered == ()
        assert not plain.matches(found.schema) and not found.schema.matches(plain)

    def test_a_kept_release_says_it(self, found, ledger, tmp_path):
        found.release_.save(tmp_path / "found.npz")
        release = Release.load(tmp_path / "found.npz")
        (said,) = release.schema.discovered
        assert said["guarantee"] == found.guarantee.to_dict() and said["ledger"] == ledger.id
        assert Discovery.of(release).schema.discovered == found.schema.discovered

    def test_an_edited_file_is_refused_with_what_to_do(self, found, tmp_path):
        path = tmp_path / "schema.json"
        found.to_json(path)
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace("north", "nord"), encoding="utf-8")
        with pytest.raises(
            ValueError, match=r"schema\.json' is not a schema, or is damaged.*take its line 'digest' away"
        ):
            Schema.from_json(path)
        lines = [line for line in text.replace("north", "nord").splitlines() if '"digest"' not in line]
        path.write_text("\n".join(lines).replace("},\n}", "}\n}").replace('},\n "dig', "}"), encoding="utf-8")
        path.write_text(path.read_text(encoding="utf-8").rstrip("}\n").rstrip(",") + "}", encoding="utf-8")
        for digit in (k for k, sign in enumerate(text) if sign.isdigit()):
            path.write_text(text[:digit] + str((int(text[digit]) + 1) % 10) + text[digit + 1 :], encoding="utf-8")
            with pytest.raises(ValueError, match="is damaged"):
                Schema.from_json(path)

    def test_a_part_of_another_name_is_no_schema_s(self, found, tmp_path):
        with pytest.raises(ValueError, match=r"the schema has \['discoverd'\]"):
            Schema.from_dict({**found.schema.as_public().to_dict(), "version": 3, "discoverd": {}})
        with pytest.raises(ValueError, match="not what discover writes"):
            Schema.from_dict({**found.schema.as_public().to_dict(), "version": 3, "discovered": 7})


class TestGuarantee:
    def test_a_fit_has_the_sum_in_its_first_line(self, found, ledger, tmp_path):
        table = PrivateTable(stays(), found.schema, ledger=ledger)
        fitted = NaiveMLE(epsilon=0.5, delta=1e-8, noise="gaussian").fit(nx.Graph([("ward", "sex")]), table)
        own, whole = fitted.release_.guarantee, fitted.privacy_.guarantee
        assert whole == composed(own, found.guarantee) and isinstance(whole, ReservedZCDP)
        asked = fitted.privacy_.requested
        assert asked.delta == pytest.approx(1.1e-8) and 0.5 < asked.epsilon < 1.0 and whole.implies(asked)
        assert str(fitted.privacy_).startswith(f"{asked} (by {whole}) under add_remove")
        assert "its schema included, which was found under (0.5, 1e-09)-DP" in str(fitted.privacy_)
        fitted.release_.save(tmp_path / "release.npz")
        fitted.model_.save(tmp_path / "model.npz")
        fitted.model_.report(tmp_path / "report.html", release=fitted.release_)
        assert str(Privacy.of(Release.load(tmp_path / "release.npz"))) == str(fitted.privacy_)
        model = MarkovNetwork.load(tmp_path / "model.npz")
        assert str(model.privacy) == str(fitted.privacy_) and model.schema.discovered == found.schema.discovered
        page = (tmp_path / "report.html").read_text(encoding="utf-8")
        assert f"{asked} (by {whole})" in page
        again = NaiveMLE().fit_release(nx.Graph([("ward", "sex")]), fitted.release_)
        assert again.privacy_.guarantee == whole

    def test_without_a_ledger_it_is_the_sum_too(self, found):
        model = learn(stays(), REST, found.schema)
        assert model.privacy_.schema.guarantee == found.guarantee
        assert model.privacy_.guarantee == composed(model.release_.guarantee, found.guarantee)
        check = check_schema(stays(), Budget(epsilon=0.1), found.schema)
        assert check.privacy_.guarantee != check.release_.guarantee

    @pytest.mark.parametrize(
        ("own", "asked", "other", "total", "words"),
        [
            (PureDP(1.0), None, PureDP(0.5), PureDP(1.5), None),
            (ZCDP(0.5), None, ZCDP(0.25), ZCDP(0.75), None),
            (PureDP(1.0), None, ReservedZCDP(0.001, 1e-10), ApproxDP(1.5, 1e-9), None),
            (ZCDP(0.5), None, ReservedZCDP(0.25, 1e-10), ReservedZCDP(0.75, 1e-10), None),
        ],
    )
    def test_sums(self, own, asked, other, total, words):
        first = Privacy(own, "add_remove", "m", requested=asked)
        said = {"guarantee": other.to_dict(), "adjacency": "add_remove", "mechanism": "m", "reproducible": False}
        said |= {"unit": None, "asked": ApproxDP(0.5, 1e-9).to_dict() if isinstance(other, ReservedZCDP) else None}
        made = first.with_schema_of([said])
        if isinstance(own, ZCDP):
            total = composed(own, other)
        assert (made.guarantee, made.requested) == (total, words)

    def test_seeds_show(self):
        seeded = discover(stays(), VARIABLES, COST, random_state=0)
        assert "NOT PRIVATE" in str(learn(stays(), REST, seeded.schema).privacy_)


class TestRefused:
    def test_another_unit(self, found, ledger):
        with pytest.raises(
            ValueError, match=r"discovered under unit=None, and unit='patient' was passed.*Discover with"
        ):
            PrivateTable(stays(), found.schema, ledger=ledger, unit="patient")
        with pytest.raises(ValueError, match="discovered under unit=None"):
            learn(stays(), REST, found.schema, unit="patient")

    def test_another_adjacency(self, found):
        with pytest.raises(ValueError, match="discovered under adjacency='add_remove'"):
            PrivateTable(stays(), found.schema, ledger=WHOLE, adjacency="replace_one", n_records=8_000)

    def test_a_ledger_that_did_not_pay(self, found, ledger, tmp_path):
        other = Ledger(WHOLE)
        with pytest.raises(ValueError, match=r"which this ledger did not pay.*schema\.as_public\(\)"):
            PrivateTable(stays(), found.schema, ledger=other)
        discover(stays(), VARIABLES, COST, ledger=other)  # a charge of the same kind, of other records perhaps
        with pytest.raises(ValueError, match="did not pay"):
            PrivateTable(stays(), found.schema, ledger=other)
        assert not other.entries[1:]
        ledger.save(tmp_path / "ledger.json")
        PrivateTable(stays(), found.schema, ledger=Ledger.load(tmp_path / "ledger.json"))
        PrivateTable(stays(), found.schema.as_public(), ledger=other)

    def test_what_the_file_says_of_the_discovery_is_read_or_refused(self, found):
        for odd in ({}, {"guarantee": 1}, {**found.schema.discovered[0], "adjacency": "none"}):
            with pytest.raises(ValueError, match="what discover does not write"):
                PrivateTable(stays(), found.schema.discovered_under([odd]), ledger=WHOLE)
        for part in ("mechanism", "reproducible", "unit"):  # a fit says these once it is paid for
            ledger, said = Ledger(WHOLE), dict(found.schema.discovered[0])
            del said[part], said["ledger"]
            with pytest.raises(ValueError, match="what discover does not write"):
                learn(PrivateTable(stays(), found.schema.discovered_under([said]), ledger=ledger), REST)
            assert ledger.entries == ()

    def test_words_that_the_cost_does_not_imply_are_not_believed(self, found):
        less = {"measure": "approximate", "epsilon": 1e-6, "delta": 1e-12}
        own = Privacy(ZCDP(0.01), Adjacency.ADD_REMOVE, "noise", requested=ApproxDP(1.0, 1e-8))
        told = own.with_schema_of([{**found.schema.discovered[0], "asked": less}])
        assert told.schema.requested is None and told.guarantee == composed(own.guarantee, found.guarantee)
        assert told.requested is None


def test_schemas_of_0_2_say_it_too(found, tmp_path):
    """They had the whole privacy record beside a schema of version 1 or 2."""
    path = tmp_path / "schema.json"
    content = {**found.schema.as_public().to_dict(), "discovered": found.privacy_.to_dict()}
    path.write_text(__import__("json").dumps(content), encoding="utf-8")
    schema = Schema.from_json(path)
    with pytest.raises(ValueError, match="unit=None"):
        PrivateTable(stays(), schema, ledger=WHOLE, unit="patient")
    assert learn(stays(), REST, schema).privacy_.schema.guarantee == found.guarantee
    assert sealed({"a": 1})["digest"] and Number(0, 1)
