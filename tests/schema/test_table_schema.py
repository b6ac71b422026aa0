"""Schema: what it accepts, what it refuses and in which words, and that it survives every round trip."""

from __future__ import annotations

import copy
import datetime
import decimal
import fractions
import json
import math
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pgmpy_dp.schema import (
    Number,
    Schema,
    almost_intervals,
    decode_label,
    encode_label,
    interval_cuts,
    interval_states,
    match_key,
)

settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")

scalars = st.one_of(
    st.text(max_size=5), st.integers(), st.booleans(), st.floats(allow_nan=False, allow_infinity=False), st.none()
)
labels = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=4)


@st.composite
def schemas(draw):
    names = draw(st.lists(labels.filter(lambda name: name is not None), min_size=1, max_size=4, unique=True))
    variables, other = {}, {}
    for name in names:
        if draw(st.integers(0, 4)) == 0:
            variables[name] = Number(draw(st.integers(-5, 0)), draw(st.integers(1, 5)))
            continue
        states = draw(st.lists(labels, min_size=2, max_size=5, unique_by=match_key))
        variables[name] = states
        if draw(st.booleans()):
            other[name] = draw(st.sampled_from(states))
    return Schema(variables, other=other)


def exact(value):
    """`value` with its types, since 1 == 1.0 == True."""
    return tuple(map(exact, value)) if isinstance(value, tuple) else (type(value), value)


def contents(schema):
    return [(exact(n), exact(schema[n]), exact(schema.other.get(n, ()))) for n in schema]


class TestRoundTrips:
    @given(schemas())
    def test_dict_json_pickle_and_copy_are_lossless(self, schema):
        through_text = Schema.from_dict(json.loads(json.dumps(schema.to_dict())))
        for twin in (through_text, pickle.loads(pickle.dumps(schema)), copy.deepcopy(schema)):
            assert contents(twin) == contents(schema)
            assert twin == schema
            assert hash(twin) == hash(schema)

    @given(labels)
    def test_labels(self, label):
        assert exact(decode_label(json.loads(json.dumps(encode_label(label))))) == exact(label)

    def test_json_file(self, tmp_path):
        schema = Schema({0: [True, False], ("a", 1): [None, "x", ("y", 2)], "âge": Number(0, 1)}, other={0: False})
        schema.to_json(tmp_path / "schema.json")
        assert contents(Schema.from_json(tmp_path / "schema.json")) == contents(schema)

    def test_reads_a_domain_file(self, tmp_path):
        content = {"domain": {"a": ["x", "y"], "b": [0, 1, 2]}, "other": {"b": 2}, "labels": {"a": {"x": "an x"}}}
        (tmp_path / "domain.json").write_text(json.dumps(content))
        schema = Schema.from_json(tmp_path / "domain.json")
        assert schema == Schema({"a": ["x", "y"], "b": [0, 1, 2]}, other={"b": 2})

    @pytest.mark.parametrize(
        "content",
        [
            {},
            [],
            {"format": "else"},
            {"format": "pgmpy_dp.schema", "version": 4},
            {"format": "pgmpy_dp.schema", "version": 3},
        ],
    )
    def test_refuses_other_content(self, content):
        with pytest.raises(ValueError, match=r"is not a schema|version 4 is unknown"):
            Schema.from_dict(content)

    @pytest.mark.parametrize("label", [object(), b"x", math.nan, math.inf, [1], {"a"}, 1j, datetime.date(2020, 1, 1)])
    def test_labels_of_other_types_are_refused(self, label):
        with pytest.raises(TypeError, match="use text, an integer"):
            encode_label(label)

    @pytest.mark.parametrize("encoded", [[1], {"list": []}, {"tuple": 1}])
    def test_decoding_something_else_is_refused(self, encoded):
        with pytest.raises(ValueError, match="is not an encoded name or state"):
            decode_label(encoded)


class TestMapping:
    schema = Schema({"b": ["x", "y", "z"], "a": [0, 1], "c": Number(-1, 2.5)}, other={"b": "z"})

    def test_access(self):
        assert self.schema.variables == tuple(self.schema) == ("b", "a", "c")
        assert self.schema["b"] == ("x", "y", "z") and self.schema["c"] == Number(-1.0, 2.5)
        assert dict(self.schema.states) == {"b": ("x", "y", "z"), "a": (0, 1)}
        assert dict(self.schema.numbers) == {"c": Number(-1, 2.5)}
        assert self.schema.cardinalities == {"b": 3, "a": 2} and self.schema.cardinality("b") == 3
        assert len(self.schema) == 3 and "c" in self.schema and "d" not in self.schema

    def test_subset_keeps_states_order_and_other(self):
        assert self.schema.subset(["a", "b"]) == Schema({"a": [0, 1], "b": ["x", "y", "z"]}, other={"b": "z"})

    def test_equality_minds_order_types_and_other(self):
        base = Schema({"a": [0, 1], "b": [0, 1]})
        assert base == Schema({"a": (0, 1), "b": np.array([0, 1])})
        for different in (
            Schema({"b": [0, 1], "a": [0, 1]}),
            Schema({"a": [1, 0], "b": [0, 1]}),
            Schema({"a": [False, True], "b": [0, 1]}),
            Schema({"a": [0.0, 1.0], "b": [0, 1]}),
            Schema({"a": [0, 1], "b": [0, 1]}, other={"a": 1}),
        ):
            assert base != different
        assert base != {"a": (0, 1), "b": (0, 1)}

    def test_cannot_be_changed(self):
        for change in (
            lambda s: setattr(s, "variables", ()),
            lambda s: s.states.__setitem__("a", (1, 2)),
            lambda s: s.__setitem__("a", (1, 2)),
        ):
            with pytest.raises((AttributeError, TypeError)):
                change(self.schema)
        self.schema.cardinalities["a"] = 7
        assert self.schema.cardinality("a") == 2

    def test_unknown_and_numeric_names(self):
        with pytest.raises(KeyError, match="'d' is not a variable of the schema"):
            self.schema["d"]
        with pytest.raises(KeyError, match="is not a variable"):
            self.schema[["unhashable"]]
        with pytest.raises(ValueError, match=r"declares bounds for \['c'\]"):
            self.schema.cardinality("c")
        with pytest.raises(ValueError, match=r"state_names declares bounds for \['c'\].*divide these numbers"):
            self.schema.require_discrete()
        self.schema.require_discrete(["a", "b"])

    def test_numpy_scalars_become_python_scalars(self):
        schema = Schema({np.str_("a"): np.array([3, 4]), np.int64(1): [np.bool_(True), np.float64(0.5)]})
        assert contents(schema) == contents(Schema({"a": [3, 4], 1: [True, 0.5]}))


class TestRefusals:
    @pytest.mark.parametrize(
        ("variables", "error", "text"),
        [
            ({}, ValueError, "declare at least one variable of two"),
            ([("a", [0, 1])], TypeError, "is not a mapping"),
            ({"age": ["old"]}, ValueError, "has columns of one state alone"),
            ({"age": []}, ValueError, r"variable 'age' has 0 state\(s\)"),
            ({"age": "old"}, TypeError, "states of variable 'age' are 'old', a str; pass a list"),
            ({"age": 3}, TypeError, "states of variable 'age' are 3, a int; pass a list"),
            ({"age": {1, 2}}, TypeError, "a set; pass a list of states in a fixed order"),
            ({"age": None}, TypeError, "a NoneType; pass a list"),
            ({"age": ["x", "y", "x"]}, ValueError, "states 'x' and 'x', which are counted as the same"),
            ({"age": [1, "1"]}, ValueError, "states 1 and '1', which are counted as the same value; remove or rename"),
            ({"age": [1, 2, True]}, ValueError, "counted as the same"),
            ({"age": ["1.0", "1"]}, ValueError, "counted as the same"),
            ({"age": [2**53, 2**53 + 1]}, ValueError, "counted as the same"),
            ({"age": [0.0, -0.0]}, ValueError, "counted as the same"),
            ({"age": [math.nan, 1.0]}, TypeError, "cannot use nan"),
            ({"age": [object(), 1]}, TypeError, "as the name of a variable or of a state"),
            ({None: [0, 1]}, ValueError, "None cannot name a variable"),
        ],
    )
    def test_variables(self, variables, error, text):
        with pytest.raises(error, match=text):
            Schema(variables)

    @pytest.mark.parametrize(
        ("other", "error", "text"),
        [
            ({"b": 0}, ValueError, "other names 'b', which is not a discrete variable"),
            ({"c": 0}, ValueError, "other names 'c', a variable of numbers"),
            ({"a": 7}, ValueError, r"other\['a'\]=7 is not among the states \(0, 1\)"),
            (["a"], TypeError, "is not a mapping"),
        ],
    )
    def test_other(self, other, error, text):
        with pytest.raises(error, match=text):
            Schema({"a": [0, 1], "c": Number(0, 1)}, other=other)

    @pytest.mark.parametrize(
        ("lower", "upper", "error"),
        [
            (1, 1, ValueError),
            (2, 1, ValueError),
            (0, math.inf, ValueError),
            (math.nan, 1, ValueError),
            ("0", 1, TypeError),
            (False, 1, TypeError),
            (None, 1, TypeError),
        ],
    )
    def test_bounds(self, lower, upper, error):
        with pytest.raises(error, match=r"lower|upper"):
            Number(lower, upper)

    def test_coerce(self):
        schema = Schema({"a": [0, 1]})
        assert Schema.coerce(schema) is schema
        assert Schema.coerce({"a": [0, 1]}) == schema
        with pytest.raises(ValueError, match=r"state_names=None: pass a Schema.*never read from the records"):
            Schema.coerce(None)
        with pytest.raises(TypeError, match=r"schema=3 is not a Schema"):
            Schema.coerce(3, argument="schema")


class Hostile:
    """A value on which everything fails."""

    def __str__(self):
        raise RuntimeError("a secret")

    __repr__ = __eq__ = __hash__ = __bool__ = __float__ = __str__


class TestMatchKey:
    @pytest.mark.parametrize(
        "same",
        [
            [1, 1.0, True, "1", "1.0", " 1 ", "+1", "1e0", "01", "True", "true", b"1", complex(1, 0), np.array(1)],
            [1, np.int8(1), np.float32(1), np.bool_(True), np.str_("1"), decimal.Decimal("1.0"), fractions.Fraction(1)],
            [0, -0.0, False, "0", "-0.0", "FALSE", "0e5"],
            [
                None,
                math.nan,
                np.float64("nan"),
                pd.NA,
                pd.NaT,
                np.datetime64("NaT", "s"),
                decimal.Decimal("nan"),
                "nan",
                "NaN",
            ],
            [0.5, "0.5", ".5", "5e-1", decimal.Decimal("0.5"), np.float16(0.5)],
            [2**53, 2**53 + 1, float(2**53), str(2**53 + 1)],
            [10**400, "1" + "0" * 400, math.inf, "inf", " inf ", repr(-math.inf)[1:]],
            [("a", 1), ["a", True], np.array(["a", 1], dtype=object)],
            [datetime.date(2020, 1, 2), datetime.datetime(2020, 1, 2), pd.Timestamp("2020-01-02"), "2020-01-02"],
            ["a", np.str_("a"), b"a"],
        ],
    )
    def test_same(self, same):
        assert len({match_key(value) for value in same}) == 1

    def test_different(self):
        values = [
            "a",
            "A",
            " a",
            "",
            1,
            2,
            0.1,
            "0,1",
            "1_000",
            1000,
            None,
            "None",
            "Nan",
            "Inf",
            "infinity",
            "-1",
            (),
            (1,),
            ((1,),),
        ]
        values += ["²", 1j, "0x10", 16, datetime.datetime(2020, 1, 2, 3), datetime.date(2020, 1, 2), Hostile()]
        assert len({match_key(value) for value in values}) == len(values)

    @given(st.one_of(labels, st.floats(), st.binary(), st.decimals(), st.complex_numbers(), st.dates(), st.datetimes()))
    def test_total_and_consistent_with_equality(self, value):
        # Two values that Python holds to be equal may be merged before they are matched.
        for twin in (float, int, complex, decimal.Decimal, fractions.Fraction):
            try:
                converted = twin(value)
                equal = converted == value and hash(converted) == hash(value)
            except Exception:
                continue
            assert not equal or match_key(converted) == match_key(value)

    def test_a_long_text_is_read_in_one_pass(self):
        """An ambiguous pattern would take hours for the first two, and this test would not end."""
        for text in ("1" * 10**6 + "x", "1." * 10**5, " " * 10**6 + "x"):
            assert match_key(text) == ("text", text)
        assert match_key("1e" + "9" * 10**6) == match_key(float("inf"))

    def test_odd_objects_do_not_raise(self):
        endless: list = []
        endless.append(endless)
        for value in (Hostile(), endless, decimal.Decimal("sNaN"), {}, {1}, object, 10**10000, np.array([[1], [2]])):
            hash(match_key(value))


class TestAlmostIntervals:
    """States in which somebody expects numbers to be counted, and none would be."""

    ALMOST = (
        (["<30", "[30, 60)", ">=60"], [30, 60]),
        (["[18,30)", "unknown"], [18, 30]),
        (["[18,30)", "[30,60)"], [18, 30, 60]),
        (["< 25", ">= 25"], [25]),
        (["<25", "[25.0,45.0)", ">=45"], [25, 45]),
        (["<25", ">=45"], [25, 45]),
        ([">=65", "<18"], [18, 65]),
        ([">=65", None], [65]),
        (["<25", "[25,45)", ">=45", "missing"], [25, 45]),
        (["<25", ">=25", "unknown"], [25]),
        ([" [-1e3 , +.5)", "x"], [-1000, 0.5]),
    )
    TEXTS = (
        ["30-59", "60-89"],
        ["<25", "25-34", "35-44", ">=45"],
        ["0", "1-4999", "5000-9999", ">=10000"],
        ["NO", "<30", ">30"],
        ["Norm", ">7", ">8"],
        ["<=50K", ">50K"],
        ["(0, 30]", "(30, 60]"],
        ["[0-10)", "[10-20)"],
        ["<", ">="],
        ["<1e999", ">=1e999"],
        [1, 2],
        ["no", "yes"],
    )

    @pytest.mark.parametrize(("states", "cuts"), ALMOST)
    def test_they_are_refused_with_what_is_meant(self, states, cuts):
        assert interval_cuts(states) is None
        assert almost_intervals(states) == interval_states(cuts)
        with pytest.raises(ValueError, match="look like intervals") as caught:
            Schema({"years": states, "sex": ["F", "M"]})
        for part in ("'years'", repr(states[0]), repr(interval_states(cuts)), "texts=['years']"):
            assert part in str(caught.value)

    @pytest.mark.parametrize("states", TEXTS)
    def test_names_of_groups_are_not(self, states):
        assert almost_intervals(states) is None
        assert Schema({"x": states})["x"] == tuple(states)

    def test_an_other_state_beside_intervals_is_no_name_of_a_group(self):
        states = ["<25", ">=30", "missing"]
        assert almost_intervals(states, "missing") == ["<25", "[25,30)", ">=30"]
        assert almost_intervals(states) is None
        with pytest.raises(ValueError, match="look like intervals"):
            Schema({"x": states}, other={"x": "missing"})

    def test_intervals_are_read_as_such(self):
        assert almost_intervals(interval_states([1, 2.5])) is None
        assert Schema({"x": interval_states([1, 2.5])}, texts=["x"])["x"] == ("<1", "[1,2.5)", ">=2.5")

    @pytest.mark.parametrize(("states", "cuts"), ALMOST)
    def test_texts_can_be_said_to_be_texts(self, states, cuts):
        schema = Schema({"years": states, "n": Number(0, 1)}, texts=iter(["years"]))
        again = (Schema.from_dict(schema.to_dict()), schema.subset(["n", "years"]), pickle.loads(pickle.dumps(schema)))
        for other in (schema, *again, Schema.from_dict({"domain": {"years": states}})):
            assert other["years"] == tuple(states)

    @pytest.mark.parametrize(
        ("texts", "error", "words"),
        [
            ("x", TypeError, "not a list of names"),
            (5, TypeError, "not a list"),
            (["y", "z"], ValueError, r"texts names \['z'\]"),
        ],
    )
    def test_texts_that_are_none(self, texts, error, words):
        with pytest.raises(error, match=words):
            Schema({"x": ["a", "b"], "y": ["c", "d"]}, texts=texts)
