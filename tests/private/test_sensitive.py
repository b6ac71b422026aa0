"""Exact values stay hidden; releases are frozen and survive files and pickles without losing a bit."""

from __future__ import annotations

import copy
import json
import math
import pickle

import numpy as np
import pandas as pd
import pytest

from pgmpy_dp import Budget, Number, PrivateTable
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.curator.table_curator import TableCurator
from pgmpy_dp.private.guarantee import ZCDP, ApproxDP, PureDP
from pgmpy_dp.private.named_values import Question, told
from pgmpy_dp.private.operators.tables import Tables
from pgmpy_dp.private.sensitive import Noise, Release, Sensitive
from pgmpy_dp.schema import Schema, encode_label

SCHEMA = Schema({"a": [0, 1], ("b", 1): [True, None, 0.5]}, other={"a": 1})
SCOPES = (("a", ("b", 1)), ("a",))


def release(**changes) -> Release:
    fields = {
        "kind": "marginals",
        "values": (np.array([[1, -2, 3], [4, 5, 2**60 + 1]]), np.array([7, 8])),
        "names": ("both", "a"),
        "noise": (Noise("discrete_laplace", 1 / 3), Noise("discrete_laplace", 2.5)),
        "public": {
            "schema": SCHEMA.to_dict(),
            "scopes": [[encode_label(v) for v in scope] for scope in SCOPES],
            "n_records": 12,
        },
        "facts": {"settings": {"weights": (1.0, 2.0)}},
        "adjacency": Adjacency.REPLACE_ONE,
        "guarantee": PureDP(0.1),
        "mechanism": "discrete_laplace",
    }
    return Release(**{**fields, **changes})


class TestSensitive:
    value = np.array([12345, 67890])
    sensitive = Sensitive(value, Adjacency.ADD_REMOVE, 1.0, 1.0, 1.0)

    def test_text_shows_no_value(self):
        for text in (repr(self.sensitive), str(self.sensitive), f"{self.sensitive}", repr([self.sensitive])):
            assert "12345" not in text and "67890" not in text and "hidden" in text

    @pytest.mark.parametrize("duplicate", [pickle.dumps, copy.copy, copy.deepcopy])
    def test_refuses_copies(self, duplicate):
        with pytest.raises(TypeError, match="cannot be copied or pickled"):
            duplicate(self.sensitive)
        with pytest.raises(TypeError):
            json.dumps(self.sensitive)

    def test_frozen(self):
        with pytest.raises(AttributeError):
            self.sensitive.l1 = 0.5


class TestNoise:
    @pytest.mark.parametrize("scale", [0, -1.0, math.inf, math.nan, "1"])
    def test_bad_scale(self, scale):
        with pytest.raises(ValueError, match="is not a positive finite number"):
            Noise("discrete_laplace", scale)

    def test_bad_distribution(self):
        with pytest.raises(ValueError, match=r"distribution='laplace' is unknown; use one of"):
            Noise("laplace", 1.0)

    def test_variance_of_tiny_scales(self):
        assert 0 < Noise("discrete_laplace", 1e-5).variance <= 1e-30  # a precision, its inverse, is finite
        assert Noise("discrete_laplace", 0.1).variance == pytest.approx(2 * math.exp(-10) / (1 - math.exp(-10)) ** 2)


class TestRelease:
    @pytest.mark.parametrize(
        "changes",
        [
            {},
            {"guarantee": ZCDP(0.25), "reproducible": True},
            {"guarantee": ApproxDP(1, 1e-9), "values": (), "noise": (), "names": ()},
            {"values": (np.zeros((0, 2)), np.array(5)), "adjacency": "edge"},
        ],
    )
    def test_round_trips(self, tmp_path, changes):
        original = release(**changes)
        original.save(tmp_path / "release.npz")
        for twin in (
            Release.load(tmp_path / "release.npz"),
            pickle.loads(pickle.dumps(original)),
            copy.deepcopy(original),
        ):
            assert twin == original and hash(twin) == hash(original)
            assert [v.dtype for v in twin.values] == [np.int64] * len(original.values)
            assert twin.noise == original.noise and twin.guarantee == original.guarantee
            assert dict(twin.public) == dict(original.public) and twin.reproducible is original.reproducible
            assert (twin.kind, twin.adjacency, twin.mechanism) == (
                *(original.kind, original.adjacency, original.mechanism),
            )
        assert [p.name for p in tmp_path.iterdir()] == ["release.npz"]

    def test_public_facts(self):
        assert release().schema == SCHEMA and release().scopes == SCOPES and release().n_records == 12
        json.dumps(dict(release().public))
        other = release(kind="histogram", public={})
        assert other.n_records is None
        for name in ("schema", "scopes"):
            with pytest.raises(ValueError, match=f"a release of kind 'histogram' has no {name}"):
                getattr(other, name)

    def test_equal_by_content(self):
        assert release() == release() and len({release(), release()}) == 1
        for changes in (
            {"values": (np.array([[1, -2, 3], [4, 5, 2**60]]), np.array([7, 8]))},
            {"names": ("both", "b")},
            {"facts": {"settings": {"weights": (2.0, 1.0)}}},
            {"noise": (Noise("discrete_laplace", 1 / 3), Noise("discrete_laplace", 2.25))},
            {"adjacency": "add_remove"},
            {"guarantee": PureDP(0.2)},
            {"public": {**release().public, "n_records": 13}},
            {"reproducible": True},
        ):
            assert release(**changes) != release()
        assert release() != 3

    def test_published_with_a_test_it_has_the_guarantee_of_both(self):
        of_both = release().published_with(PureDP(0.3), {"settings": {"weights": 1}, "published_if": {"attempt": 1}})
        assert of_both.guarantee == PureDP(0.3) and of_both.facts["published_if"] == {"attempt": 1}
        assert of_both == release(
            guarantee=PureDP(0.3), facts={"settings": {"weights": 1}, "published_if": {"attempt": 1}}
        )
        assert of_both.public["n_records"] == 12 and of_both.public["settings"] == {"weights": 1}
        for others in ({"n_records": 5}, {"model_discovered": []}):
            with pytest.raises(ValueError, match="facts has"):
                release().published_with(PureDP(0.3), others)
        for more in (PureDP(0.05), ZCDP(0.001)):
            with pytest.raises(ValueError, match=r"is not implied by 0\.1-DP"):
                release().published_with(more, {})

    def test_frozen_all_the_way(self):
        values = (np.zeros((2, 3), dtype=np.int64), np.zeros(2, dtype=np.int64))
        public = {"n_records": 1, "scopes": [["a"]]}
        subject = release(values=values, public=public)
        values[0][0, 0] = public["n_records"] = 9
        public["scopes"].append(["b"])
        assert subject.values[0][0, 0] == 0 and subject.n_records == 1 and subject.scopes == (("a",),)
        with pytest.raises(ValueError, match="read-only"):
            subject["both"].array[0, 0] = 1
        with pytest.raises(TypeError):
            subject["both"].arguments["scopes"] = ()
        with pytest.raises(AttributeError):
            subject.guarantee = PureDP(0)
        with pytest.raises(TypeError):
            subject.public["n_records"] = 2
        assert not pickle.loads(pickle.dumps(subject)).values[0].flags.writeable

    def test_one_noise_per_value(self):
        with pytest.raises(ValueError, match="noise has 1 entries for 2 values"):
            release(noise=(Noise("discrete_laplace", 1.0),))

    def test_public_must_be_json(self):
        with pytest.raises(TypeError):
            release(public={"table": np.zeros(3)})

    def test_repr_is_short_and_flags_seeds(self):
        assert repr(release()) == (
            "Release(kind='marginals', values=2, guarantee=0.1-DP, adjacency='replace_one', "
            "mechanism='discrete_laplace')"
        )
        assert "NOT PRIVATE" in repr(release(reproducible=True))

    def test_refuses_other_files(self, tmp_path):
        path = tmp_path / "other"
        for write in (
            lambda stream: stream.write(b"not an archive"),
            lambda stream: stream.write(b""),
            lambda stream: np.savez(stream, x=np.zeros(3)),
            lambda stream: np.savez(stream, header=np.frombuffer(b"{}", dtype=np.uint8)),
            lambda stream: np.savez(stream, header=np.frombuffer(b"[1]", dtype=np.uint8)),
            lambda stream: np.save(stream, np.zeros(3)),
            lambda stream: np.savez(stream, header=np.array([object()], dtype=object)),
        ):
            with path.open("wb") as stream:
                write(stream)
            with pytest.raises(ValueError, match=r"is not a release, or is damaged: .*; pass a file of Release\.save"):
                Release.load(path)
        with pytest.raises(FileNotFoundError):
            Release.load(tmp_path / "absent")


@pytest.mark.parametrize("scale", [1e-9, 1e-3, 1.1e-3, 1 / 900, 1.4e-3, 2e-3, 2.1e-3, 0.1])
def test_the_variance_of_hardly_any_noise_is_a_number(scale):
    assert 0 <= Noise("discrete_laplace", scale).variance < 0.001


class TestNames:
    def test_each_value_has_its_noise_and_what_was_asked(self):
        question = Question("tables", {"scopes": [["a"]]}, "1/2", "discrete_laplace")
        subject = release(questions=(question, None))
        both, single = subject["both"], subject["a"]
        assert (both.noise, both.operator, dict(both.arguments)) == (subject.noise[0], "tables", {"scopes": [["a"]]})
        assert both.array is subject.values[0] and single.operator is None and not single.arguments
        assert "both" in subject and "x" not in subject
        with pytest.raises(KeyError, match=r"'x' is no value of this release, which has \['both', 'a'\]"):
            subject["x"]

    def test_no_two_have_one(self):
        with pytest.raises(ValueError, match="has one twice"):
            release(names=("a", "a"))
        with pytest.raises(ValueError, match="names has 1 entries for 2 values"):
            release(names=("a",))

    def test_a_table_that_was_asked_twice_has_two(self):
        curator = self.curator()
        curator.ask(Tables([("a",), ("b",)]), 0.25)
        curator.ask(Tables([("b",)], weights=None), 0.5)
        made = curator.release("marginals", {})
        assert made.names == ("a", "b", "b (2)")
        assert made["b"].arguments["scopes"] == [["a"], ["b"]] and made["b (2)"].arguments["scopes"] == [["b"]]
        assert made["b"].noise.scale == 4 * made["b (2)"].noise.scale

    def test_a_plan_s_facts_replace_none_of_the_boundary_s(self):
        curator = self.curator()
        curator.ask(Tables([("a",)]), 1)
        facts = {"unit": "who", "schema": {}, "n_records": 7, "scopes": [], "interrupted": True, "mine": 1}
        made = curator.release("marginals", facts)
        assert made.unit is None and made.n_records is None and made.scopes == (("a",),)
        assert list(made.schema) == ["a", "b"]
        assert "unit" not in made.public and "interrupted" not in made.public and made.public["mine"] == 1
        assert dict(made.facts) == facts

    def curator(self):
        table = PrivateTable(
            pd.DataFrame({"a": [0, 1], "b": [1, 1]}), {"a": [0, 1], "b": [0, 1]}, ledger=Budget(epsilon=1)
        )
        return TableCurator(table, Budget(epsilon=1), what="tables")

    def test_arguments_are_told_as_they_were(self):
        point = np.array([1.5, np.nan])
        said = told({"point": point, "of": {3: "x"}, "number": Number(0, 1), "f": told, "wide": np.zeros(30_000)})
        point[0] = 7
        assert said["point"] == [1.5, "nan"] and said["of"] == [[3, "x"]] and said["number"] == Number(0, 1).to_dict()
        assert said["f"] == "told" and said["wide"]["shape"] == [30_000]
        assert set(told({"long": list(range(9_999))})["long"]) == {"sha256"}
