"""Rules that order two numbers: their text, what they leave of cells, what is refused."""

import itertools

import numpy as np
import pytest

from pgmpy_dp import Date, Number, Schema
from pgmpy_dp.schema.orders import Relation

TEN = Number(0, 9, cuts=[3, 6], resolution=1)
OTHER = Number(0, 9, cuts=[2, 5, 8], resolution=1, missing="drop")


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("a <= b", "a <= b"),
        ("a<b", "a < b"),
        ("a <= b + 0", "a <= b"),
        ("a + 2 < b", "a < b - 2"),
        ("b <= a + 3", "b <= a + 3"),
        ("`a` + 1 <= 'b'", "a <= b - 1"),
    ],
)
def test_text_is_read_back_as_the_same_rule(written, kept):
    schema = Schema({"a": TEN, "b": OTHER}, impossible=[written])
    assert schema.impossible == (kept,)
    assert Schema({"a": TEN, "b": OTHER}, impossible=[kept]) == schema == Schema.from_dict(schema.to_dict())


def test_a_name_with_signs_is_a_name():
    schema = Schema({"a - 1": TEN, "b c": OTHER}, impossible=["a - 1 <= `b c`"])
    assert schema.impossible == ("`a - 1` <= `b c`",) == Schema.from_dict(schema.to_dict()).impossible


@pytest.mark.parametrize("rule", ["a <= b", "a < b", "a <= b - 4", "b <= a + 2"])
def test_a_pair_of_cells_is_forbidden_if_no_values_in_it_obey(rule):
    schema = Schema({"a": TEN, "b": OTHER}, impossible=[rule])
    (relation,) = schema.zeros
    low, sign, high, *shift = rule.split()
    shift = int("".join(shift) or 0)
    cells = {
        "a": [range(3), range(3, 6), range(6, 10), [None]],
        "b": [range(2), range(2, 5), range(5, 8), range(8, 10)],
    }

    def obeys(values):
        x, y = values[low], values[high]
        return x is None or y is None or (x < y + shift if sign == "<" else x <= y + shift)

    wanted = [
        [any(obeys({"a": x, "b": y}) for x, y in itertools.product(a, b)) for b in cells["b"]] for a in cells["a"]
    ]
    possible = np.exp(relation.log_weights_in(("a", "b"))) > 0
    assert (possible == wanted).all()
    assert (np.exp(relation.log_weights_in(("b", "a"))) > 0).tolist() == np.array(wanted).T.tolist()


def test_rules_add_up_along_a_path_where_all_are_known():
    schema = Schema({"a": TEN, "b": Number(0, 9, bins=2, resolution=1), "c": TEN}, impossible=["a < b", "b < c"])
    path = next(one for one in schema.zeros if len(one) == 3)
    weights = path.log_weights_in(("a", "b", "c"))
    assert np.isneginf(weights[1, :2, 0]).all()  # a from 3 on, c below 3
    assert (weights[1, 2] == 0).all()  # b is missing
    assert (weights[0] == 0).all()  # from 0 to 2 there is room for two


@pytest.mark.parametrize(
    ("variables", "rules", "said"),
    [
        ({"a": TEN, "b": Date("2024-01-01", "2024-02-01")}, ["a <= b"], "compare like with like"),
        ({"a": TEN, "b": Number(0, 9, bins=3)}, ["a <= b"], "resolutions are 1.0 and None"),
        ({"a": TEN, "b": Number(0.5, 9.5, bins=3, resolution=1)}, ["a <= b"], "lower bounds 0.5"),
        ({"a": TEN, "b": OTHER}, ["a <= b + 0.5"], "constant 0.5"),
        ({"a": TEN, "b": ["x", "y"]}, ["a <= b"], "'b' has no numbers"),
        ({"a": TEN, "b": OTHER}, ["a < a"], "with itself"),
        ({"a": TEN, "b": OTHER}, ["a < b", "b < a"], "leave no numbers possible"),
        ({"a": TEN, "b": OTHER}, ["a + 10 <= b"], "leave no numbers possible"),
        ({"a": TEN, "b": OTHER}, ["a > b"], "write what holds with < or <=: a <= b where"),
        ({"a": TEN, "b": OTHER}, ["a >= b"], "write what holds with < or <=: a < b where"),
        ({"a": TEN, "b": OTHER}, ["a <= b + 9"], "forbids nothing"),
        ({"a": TEN, "b": OTHER}, ["a <= c"], "not a number"),
    ],
)
def test_refused(variables, rules, said):
    with pytest.raises(ValueError, match=said):
        Schema(variables, impossible=rules)


def test_a_ring_of_rules_that_leaves_something_is_obeyed():
    schema = Schema({"a": TEN, "b": TEN}, impossible=["a <= b", "b <= a"])
    possible = np.all([np.exp(one.log_weights_in(("a", "b"))) > 0 for one in schema.zeros], axis=0)
    assert (possible[:3, :3] == np.eye(3)).all()


def test_differences_of_undivided_numbers_have_the_bounds_that_rules_leave():
    day = Date("2024-01-01", "2024-12-31")
    schema = Schema({"a": day, "b": day, "c": day}, impossible=["a < b", "b <= a + 30", "b <= c"]).with_differences()
    assert {name: (n.lower, n.upper) for name, n in schema.numbers.items() if n.of} == {
        "b - a": (1, 30),
        "c - b": (0, 365),
    }
    assert schema.with_differences() is schema
    assert Schema.from_dict(schema.to_dict()) == schema
    assert schema.subset(["a", "b"]).variables == ("a", "b")


@pytest.mark.parametrize("resolution", [1, None])
def test_weights_of_a_difference_are_those_of_values_even_within_cells(resolution):
    how = {"resolution": resolution, "missing": "state"}
    first, second = Number(0, 24, cuts=[5, 11], **how), Number(2, 26, cuts=[9], **how)
    apart = Number(0, 26, cuts=[1, 4], outside="state", of=("b", "a"), **how)
    schema = Schema({"a": first, "b": second, "d": apart})
    (relation,) = [one for one in schema.zeros if isinstance(one, Relation) and one.is_difference]
    weights = np.exp(relation.log_weights)
    rng = np.random.default_rng(0)
    for i, (low, high) in enumerate(itertools.pairwise([0, 5, 11, 24 + bool(resolution)])):
        for k, (least, most) in enumerate(itertools.pairwise([0, 1, 4, 26 + bool(resolution)])):
            x, d = rng.uniform(low, high, 200_000), rng.uniform(least, most, 200_000)
            y = np.floor(x) + np.floor(d) if resolution else x + d
            share = [((y >= 2) & (y < 9)).mean(), ((y >= 9) & (y < 26 + bool(resolution))).mean()]
            np.testing.assert_allclose(weights[i, :2, k], share, atol=0.006)
    assert (weights[:, :, 4] == 0).all()  # outside: the record breaks a rule
    assert (weights[:3, :2, 3] == 0).all()
    assert (weights[3, :, 3] == 1).all() and (weights[:, 2, 3] == 1).all()
    assert (weights[3, :, :3] == 0).all() and (weights[:, 2, :3] == 0).all()
