"""Rules about what cannot be: how they are read, written, refused; what they forbid, against a look at each record."""

from __future__ import annotations

import itertools
import operator
import pickle

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pgmpy_dp import Schema
from pgmpy_dp.schema import Date, Number, interval_states, match_key

TABLE = {
    "age": Number(0, 120, cuts=[15, 30], resolution=1, outside="state"),
    "income": interval_states([100, 5000]),
    "born": Date("1900-01-01", "2020-12-31", cuts=["2006-01-01"], missing="drop"),
    "children": [0, 1, 2, "3+"],
    "rooms": [1, 2, 3],
    "marital status": ["never", "married", None, "missing"],
    "a & b": ["<x", "y, z", 'say "no"', "it's"],
    ("part", 1): ["p", "q"],
}


def forbidden(*rules, table=None) -> set[tuple]:
    """Combinations of the states of the rules' variables that lie in a box, in states."""
    schema = Schema(table or TABLE, impossible=rules)
    names = [name for name in schema if any(name in box for box in schema.zeros)]
    found = set()
    for codes in itertools.product(*(range(schema.cardinality(name)) for name in names)):
        record = dict(zip(names, codes, strict=True))
        if any(all(record[name] in states for name, states in box.items()) for box in schema.zeros):
            found.add(tuple(schema.states[name][code] for name, code in record.items()))
    return found


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("age < 15 -> rooms = 1", {("[0,15)", 2), ("[0,15)", 3)}),
        ("age<=14->rooms<2", {("[0,15)", 2), ("[0,15)", 3)}),
        ("rooms == 3 -> age > 29", {("[0,15)", 3), ("[15,30)", 3)}),  # a missing age is not forbidden
        ("age = outside & rooms in {1,2}", {("outside", 1), ("outside", 2)}),
        ("age = missing & rooms = 3", {(None, 3)}),
        ("income >= 5000 & rooms != 3", {(">=5000", 1), (">=5000", 2)}),
        ('income in {<100, "[100,5000)"} & rooms = 3', {("<100", 3), ("[100,5000)", 3)}),
        ("born >= 2006-01-01 & rooms = 1", {("[2006-01-01,2020-12-31]", 1)}),
        ("children in {2, 3+} -> rooms > 2", {(2, 1), (2, 2), ("3+", 1), ("3+", 2)}),
        ("rooms = 1 -> marital status = never", {(1, "married"), (1, "missing")}),
        ("rooms = 1 & marital status = missing", {(1, None)}),
        ("rooms = 1 & `marital status` = 'missing'", {(1, "missing")}),
        ("rooms = 1 & marital status in {missing, never}", {(1, None), (1, "never")}),
        ("""`a & b` = "<x" & rooms = 1""", {(1, "<x")}),
        ("""`a & b` in {'y, z', "say ""no\"\"", it's} & rooms = 1""", {(1, "y, z"), (1, 'say "no"'), (1, "it's")}),
        ("`('part', 1)` = q -> rooms = 3", {(1, "q"), (2, "q")}),
        ("rooms = 1", {(1,)}),
        ("rooms = 1 & rooms < 3 -> children = 0 & age < 15", None),
        ({"rooms": 1, "marital status": [None, "missing"]}, {(1, None), (1, "missing")}),
        ({"income": "<100", "rooms": (2, "3")}, {("<100", 2), ("<100", 3)}),
    ],
)
def test_what_a_rule_forbids(rule, expected):
    found = forbidden(rule)
    if expected is None:  # an implication of two things is two implications
        assert {(a, r, c) for a, r, c in ((a, r, c) for a, c, r in found)} == {
            (a, 1, c)
            for a, c in itertools.product(("[0,15)", "[15,30)", "[30,120]", None, "outside"), (0, 1, 2, "3+"))
            if c != 0 or a in ("[15,30)", "[30,120]")
        }
    else:
        assert found == expected
    # What it is written as is read as the same.
    schema = Schema(TABLE, impossible=[rule])
    again = Schema(TABLE, impossible=schema.impossible)
    assert again == schema and again.zeros == schema.zeros and again.impossible == schema.impossible


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("foo = 1", "not a variable of the schema"),
        ("rooms", "has none of =, !=, <"),
        ("rooms = 9", "not a state of 'rooms'; it has"),
        ("rooms = 1 -> ", "cannot be read from"),
        ("rooms = 1 & & age < 15", "cannot be read from '& age < 15' on"),
        ("rooms = 1 -> age < 15 -> age < 30", "use -> once"),
        ("rooms in {1", "list that does not end"),
        ("income = <100", "quotation marks"),
        ("marital status < 3 & rooms = 1", "neither numbers nor intervals"),
        ("children < 2 -> rooms = 1", "its state '3\\+' is neither a number"),
        ("age < old & rooms = 1", "which is not a number"),
        ("born < 7 & rooms = 1", "which is not a number"),
        ("age < 20 & rooms = 1", "inside its state '\\[15,30\\)'; cut at 20$"),
        ("age <= 15 & rooms = 1", "cut at 16$"),
        ("age = 15 & rooms = 1", "one of the numbers of its state"),
        ("income <= 100 & rooms = 1", "intervals begin with their cut"),
        ("born < 2007-01-01 & rooms = 1", "2007-01-01, which is inside .*; cut at 2007-01-01$"),
        ("rooms = 1 & rooms = 2", "forbids nothing"),
        ("age > 200 -> rooms = 1", "forbids nothing"),
        ("rooms = 1 -> rooms < 3", "forbids nothing"),
        ({"rooms": 9}, "not states of 'rooms'"),
        ({"rooms": []}, "name at least one"),
        ({"foo": 1}, "not a variable of the schema"),
        ({}, "names no variable"),
        (3, "is neither a text nor a mapping"),
    ],
)
def test_what_cannot_be_meant_is_refused(rule, message):
    with pytest.raises((TypeError, ValueError), match=message) as refused:
        Schema(TABLE, impossible=[rule])
    assert str(refused.value).startswith("impossible: the rule")


def test_what_is_no_list_of_rules_is_refused():
    with pytest.raises(TypeError, match="not a list of rules"):
        Schema(TABLE, impossible="rooms = 1")
    with pytest.raises(TypeError, match="not a list of rules"):
        Schema(TABLE, impossible={"rooms": 1})


def test_rules_that_leave_nothing_are_refused():
    with pytest.raises(ValueError, match="leaves no record possible"):
        Schema(TABLE, impossible=["rooms < 3", "rooms = 3 -> children = 0", "rooms = 3 -> children = 1"])
    Schema(TABLE, impossible=["rooms < 3", "rooms = 3 -> children = 0", "rooms = 3 -> children in {0, 1}"])


def test_many_rules_that_leave_little_are_decided():
    # Each of 100 variables is that before it: two records of 2^100.
    names = [f"x{i}" for i in range(100)]
    table = {name: [0, 1] for name in names}
    equal = [f"{u} = {s} -> {v} = {s}" for u, v in itertools.pairwise(names) for s in (0, 1)]
    Schema(table, impossible=equal)
    with pytest.raises(ValueError, match="leaves no record possible"):
        Schema(table, impossible=[*equal, "x0 = 0 -> x99 = 1", "x0 = 1 -> x99 = 0"])


def test_rules_are_part_of_what_a_schema_is(tmp_path):
    rules = ["age < 15 -> marital status = never", {"rooms": 1, "children": [2, "3+"]}]
    schema = Schema(TABLE, impossible=rules)
    assert schema != Schema(TABLE)
    assert schema.impossible == ("age < 15 -> `marital status` = never", 'rooms = 1 & children in {2, "3+"}')
    assert "impossible=['age < 15" in repr(schema)
    schema.to_json(tmp_path / "schema.json")
    for same in (Schema.from_json(tmp_path / "schema.json"), pickle.loads(pickle.dumps(schema))):
        assert same == schema and same.zeros == schema.zeros
    assert schema.subset(["rooms", "children"]).impossible == ('rooms = 1 & children in {2, "3+"}',)
    assert schema.subset(["rooms", "age"]).impossible == ()
    domain = {"domain": {"a": [0, 1], "b": [0, 1]}, "impossible": ["a = 0 & b = 1"]}
    assert Schema.from_dict(domain).zeros == [{"a": {0}, "b": {1}}]


def test_numbers_that_are_not_divided_are_divided_where_rules_compare():
    table = {
        "age": Number(0, 120, resolution=1),
        "pay": Number(0, 1e5, resolution=1),
        "job": ["no", "yes"],
        "x": Number(0, 1),
    }
    rules = ["age < 14.5 -> job = no", "job = no -> pay in {missing, 0}", "x >= .7 & job = yes"]
    schema = Schema(table, impossible=rules)
    assert schema.zeros == []
    assert [schema.rule_cuts(name) for name in ("age", "pay", "x")] == [(15.0,), (1.0,), (0.7,)]
    fine = schema.fine()
    assert fine.impossible == schema.impossible and len(fine.zeros) == 3
    ages = {fine.states["age"][code] for code in fine.zeros[0]["age"]}
    assert ages == {f"[{k},{k + 1})" for k in range(15)}
    assert fine.states["pay"][0] == "[0,1)" and fine.zeros[1]["pay"] == set(range(1, len(fine.numbers["pay"].cells)))
    with pytest.raises(ValueError, match="inside its state"):
        schema.replaced({"age": Number(0, 120, cuts=[10])})
    with pytest.raises(ValueError, match="intervals begin with their cut"):
        Schema(table, impossible=["x <= .7 & job = yes"])
    with pytest.raises(ValueError, match="forbids nothing"):
        Schema(table, impossible=["age > 120 & job = yes"])


def test_a_grid_of_single_values_has_the_upper_bound_too():
    fine = Number(0, 120, resolution=1).fine()
    assert fine.cells[-2:] == ("[119,120)", "[120,120]")
    code = fine.coder()
    assert [code(match_key(cell)) for cell in (119.5, 120, 121, "[120,120]", None)] == [119, 120, 120, 120, 121]
    assert Number(0, 1, resolution=1).fine().cells == ("[0,1)", "[1,1]")
    assert Number(0, 120, cuts=[120], missing="drop").states == ("[0,120)", "[120,120]")  # of real numbers too


SIGNS = {"=": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
conditions = st.tuples(
    st.sampled_from("xyz"), st.sampled_from([*SIGNS, "in"]), st.lists(st.integers(0, 3), min_size=1, max_size=2)
)


@settings(max_examples=60, deadline=None)
@given(st.lists(conditions, min_size=1, max_size=3), st.lists(conditions, max_size=2), st.booleans())
def test_rules_over_numbers_say_what_python_says(given_, implied, blanks):
    table = {"x": [0, 1, 2, 3], "y": [3, 1, 2, 0], "z": Number(0, 3, bins=4, resolution=1, missing="drop")}

    def text(part) -> str:
        name, sign, numbers = part
        right = "{" + ",".join(map(str, numbers)) + "}" if sign == "in" else str(numbers[0])
        return (" " if blanks or sign == "in" else "").join([name, sign, right])

    def holds(part, record) -> bool:
        name, sign, numbers = part
        return record[name] in numbers if sign == "in" else SIGNS[sign](record[name], numbers[0])

    rule = " & ".join(map(text, given_)) + (" -> " + " & ".join(map(text, implied)) if implied else "")
    broken = set()
    for values in itertools.product(range(4), repeat=3):
        record = dict(zip("xyz", values, strict=True))
        if all(holds(part, record) for part in given_) and not (
            implied and all(holds(part, record) for part in implied)
        ):
            broken.add(values)
    if len(broken) in (0, 64):
        with pytest.raises(ValueError, match=r"forbids nothing|leaves no record possible"):
            Schema(table, impossible=[rule])
        return
    schema = Schema(table, impossible=[rule])
    position = {
        name: {value: code for code, value in enumerate(values)}
        for name, values in (("x", range(4)), ("y", (3, 1, 2, 0)), ("z", range(4)))
    }
    found = {
        values
        for values in itertools.product(range(4), repeat=3)
        if any(
            all(position[name][dict(zip("xyz", values, strict=True))[name]] in codes for name, codes in box.items())
            for box in schema.zeros
        )
    }
    assert found == broken
    assert Schema(table, impossible=schema.impossible).zeros == schema.zeros


labels = st.one_of(
    st.text(max_size=6), st.integers(-3, 3), st.booleans(), st.none(), st.tuples(st.text(max_size=2), st.integers(0, 1))
)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(labels, min_size=2, max_size=4, unique_by=match_key),
    st.lists(labels.filter(lambda x: x is not None), min_size=2, max_size=2, unique_by=str),
    st.data(),
)
def test_any_names_and_states_can_be_written(states, names, data):
    assume(len({*names}) == 2 and len({str(state) for state in states}) == len(states))
    chosen = data.draw(st.lists(st.sampled_from(states), min_size=1, max_size=len(states) - 1, unique_by=match_key))
    schema = Schema(dict.fromkeys(names, states), texts=names, impossible=[{names[0]: chosen, names[1]: states[:1]}])
    assert Schema(dict.fromkeys(names, states), texts=names, impossible=schema.impossible).zeros == schema.zeros


def test_cells_that_a_release_merges_have_no_names_in_rules():
    with pytest.raises(ValueError, match=r"has \[0,1\), which is not a number"):
        Schema({"x": Number(0, 9, resolution=1), "y": ["a", "b"]}, impossible=["x = [0,1) -> y = a"])
    for word in ("missing", "outside"):
        made = Schema({"x": Number(0, 9, outside="state"), "y": ["a", "b"]}, impossible=[f"x = {word} -> y = a"])
        assert len(made.fine().zeros) == 1
