"""Values within states, and what is known of them, against enumeration."""

import itertools
import json
from datetime import date

import numpy as np
import pandas as pd
import pytest

from pgmpy_dp.models.decoding import Values
from pgmpy_dp.models.evidence import counted, state_of
from pgmpy_dp.schema import Date, Number, Schema

WHOLE = Number(0, 20, cuts=[3, 4, 11], resolution=1, outside="state")
SMALL = Number(0, 9, cuts=[3, 4], resolution=1)
EACH = Number(0, 6, resolution=1).fine()
TENTHS = Number(-0.3, 0.5, bins=3, resolution=0.1, missing="drop")
DAYS = Date("2019-12-30", "2020-01-09", cuts=["2020-01-01", "2020-01-07"])


def every_value(number):
    """The values of each cell of a variable with a resolution."""
    count = round((number.upper - number.lower) / number.resolution) + 1
    values = [round(number.lower + k * number.resolution, 9) + 0.0 for k in range(count)]
    code = number.coder()
    return [[v for v in values if code(("number", v)) == k] for k in range(len(number.cells))]


def days_of(number):
    return [list(range(int(a), int(b))) for a, b in itertools.pairwise((*number.edges[:-1], number.upper + 1))]


@pytest.mark.parametrize("number", [SMALL, EACH, TENTHS, DAYS], ids=["whole", "each", "tenths", "days"])
@pytest.mark.parametrize("closed", ["both", "left", "right", "neither"])
def test_shares_of_every_range_are_counts_of_values(number, closed):
    cells = days_of(number) if isinstance(number, Date) else every_value(number)
    values = sorted(set(itertools.chain.from_iterable(cells)))
    for low, high in itertools.combinations_with_replacement(
        [*values, *(v + number.resolution / 3 for v in values)], 2
    ):
        if low > high or high > number.upper:
            continue
        left = {"both": np.less_equal, "left": np.less_equal}.get(closed, np.less)
        right = {"both": np.less_equal, "right": np.less_equal}.get(closed, np.less)
        expected = [np.mean([left(low, v) and right(v, high) for v in cell]) for cell in cells]
        np.testing.assert_allclose(number.shares(low, high, closed), expected, atol=1e-12)


def test_shares_without_a_resolution_are_shares_of_the_width():
    np.testing.assert_allclose(Number(0, 10, cuts=[2, 6]).shares(1, 5), [0.5, 0.75, 0])
    np.testing.assert_allclose(Number(0, 10, cuts=[2, 6]).shares(None, 2), [1, 0, 0])
    np.testing.assert_allclose(Number(0, 10, cuts=[2, 6]).shares(6), [0, 0, 1])


@pytest.mark.parametrize("number", [WHOLE, EACH, TENTHS, DAYS], ids=["whole", "each", "tenths", "days"])
def test_mean_and_quantiles_are_those_of_the_values(number):
    cells = days_of(number) if isinstance(number, Date) else every_value(number)
    for seed in range(5):
        table = np.random.default_rng(seed).dirichlet(np.full(len(number.states), 0.5))
        weights = np.concatenate([np.full(len(c), p / len(c)) for c, p in zip(cells, table, strict=False)])
        values, weights = np.concatenate(cells), weights / weights.sum()
        assert Values(number).mean(table) == pytest.approx(values @ weights)
        levels = np.random.default_rng(seed).random(50)
        expected = [values[np.argmax(np.cumsum(weights) >= level)] for level in levels]
        np.testing.assert_array_equal(Values(number).quantiles(table, levels), expected)
        assert Values(number).quantiles(table, [1.0]) == number.upper


def test_quantiles_skip_cells_that_are_never_and_are_nan_where_all_is_missing():
    number = Number(0, 4, bins=4)
    never = np.array([0, 0.5, 0, 0, 0.5])
    assert Values(number).quantiles(never, [0, 0.5, 1]).tolist() == [1, 1.5, 2]
    gone = np.array([0, 0, 0, 0, 1.0])
    assert np.isnan([Values(number).mean(gone), *Values(number).quantiles(gone, [0.5])]).all()


def merged(weights):
    return Values(WHOLE, np.array([0, 0, 1, 1, 2, 2]), weights)


def test_merged_states_have_the_distribution_of_their_parts():
    weights = np.array([6.0, 2, 1, 0, 3, 0])
    np.testing.assert_allclose(merged(weights).shares(3, 20), [0.25, 1, 0])
    # Where all weights are 0, each of the 7 and 10 values is as likely as another.
    np.testing.assert_allclose(merged(np.zeros(6)).shares(11, 20), [0, 10 / 17, 0])
    np.testing.assert_allclose(merged(None).shares(0, 2), [3 / 4, 0, 0])
    assert merged(weights).mean(np.array([1.0, 0, 0])) == pytest.approx(0.75 * 1 + 0.25 * 3)
    drawn = merged(weights).numbers(np.repeat([0, 1, 2], 4000), np.random.default_rng(0).random(12_000))
    assert abs((drawn[:4000] == 3).mean() - 0.25) < 0.04  # 5 standard deviations
    assert set(drawn[4000:8000]) == {*range(4, 11)}
    assert np.isnan(drawn[8000:]).all()


def test_merged_states_of_texts():
    values = Values(("a", "b", "c"), np.array([0, 1, 1]), np.array([5.0, 1, 3]))
    drawn = values.refined(np.repeat([0, 1], 4000), np.random.default_rng(0).random(8000))
    assert set(drawn[:4000]) == {0}
    assert abs((drawn[4000:] == 2).mean() - 0.75) < 0.04
    with pytest.raises(TypeError, match="not numbers"):
        values.numbers(np.array([0]), np.zeros(1))


SCHEMA = Schema(
    {
        "age": Number(0, 40, cuts=[10, 20, 30], resolution=1),
        "income": Number(0, 40, cuts=[10, 20, 30], missing="drop", outside="state"),
        "day": Date("2020-01-01", "2020-01-30", cuts=["2020-01-11", "2020-01-21"], format="%d.%m.%Y"),
        "job": ["no", "yes", "else"],
        "old": ["<10", "[10,20)", ">=20"],
        "n": [0, 1, 2, 3, None],
        "odd": ["a|b", "a", "b|c", "c"],
    },
    other={"job": "else"},
    missing={"age": [-9]},
    strip=True,
    recode={"job": {"none": "no"}},
)


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("age", 37, [0, 0, 0, 1, 0]),
        ("age", "37", [0, 0, 0, 1, 0]),
        ("age", " [10,20) ", [0, 1, 0, 0, 0]),
        ("age", None, [0, 0, 0, 0, 1]),
        ("age", float("nan"), [0, 0, 0, 0, 1]),
        ("age", -9, [0, 0, 0, 0, 1]),
        ("age", (5, 24), [0.5, 1, 0.5, 0, 0]),
        ("age", [5, 24], [0.5, 1, 0.5, 0, 0]),
        ("age", "5 : 24", [0.5, 1, 0.5, 0, 0]),
        ("age", slice(30, None), [0, 0, 0, 1, 0]),
        ("age", ":4", [0.5, 0, 0, 0, 0]),
        ("age", (7, 7), [0.1, 0, 0, 0, 0]),
        ("age", pd.Interval(9, 20, closed="left"), [0.1, 1, 0, 0, 0]),
        ("age", pd.Interval(9, 20, closed="right"), [0, 1, 0.1, 0, 0]),
        ("income", 41, [0, 0, 0, 0, 1]),
        ("income", "outside", [0, 0, 0, 0, 1]),
        ("income", (5, 12.5), [0.5, 0.25, 0, 0, 0]),
        ("day", date(2020, 1, 11), [0, 1, 0, 0]),
        ("day", "11.01.2020", [0, 1, 0, 0]),
        ("day", "2020-01-06:2020-01-15", [0.5, 0.5, 0, 0]),
        ("day", ("2020-01-21", date(2020, 1, 25)), [0, 0, 0.5, 0]),
        ("day", slice(pd.Timestamp("2020-01-21"), None), [0, 0, 1, 0]),
        ("job", "none", [1, 0, 0]),
        ("job", "else", [0, 0, 1]),
        ("old", 12, [0, 1, 0]),
        ("old", ">=20", [0, 0, 1]),
        ("old", "10:20", [0, 1, 0]),
        ("old", (10.0, None), [0, 1, 1]),
        ("old", ":20", [1, 1, 0]),
        ("old", pd.Interval(10, 20, closed="left"), [0, 1, 0]),
        ("job", {"yes", "none"}, [1, 1, 0]),
        ("job", "yes|else", [0, 1, 1]),
        ("job", {"yes": 0.2, "no": 0.8}, [0.8, 0.2, 0]),
        ("job", {"yes": 2, "no": 8}, [1, 0.25, 0]),
        ("odd", "a|b", [1, 0, 0, 0]),  # the name of a state
        ("odd", "a|b|c", [1, 0, 0, 1]),  # longest names first
        ("odd", "c|b|c|a", [0, 1, 1, 1]),
        ("age", "5:24|37", [0.5, 1, 0.5, 1, 0]),
        ("age", "|5:14", [0.5, 0.5, 0, 0, 1]),  # or missing
        ("age", {(5, 9), (7, 12), "3:4"}, [0.7, 0.3, 0, 0, 0]),  # what ranges share counts once
        ("age", {"5:9": 0.5, "8:14": 1.0, None: 0.1}, [0.35, 0.5, 0, 0, 0.1]),  # the larger likelihood
        ("age", {(0, 4), (5, 9)}, [1, 0, 0, 0, 0]),
        ("income", {(5, 12.5), (2.5, 5)}, [0.75, 0.25, 0, 0, 0]),
        ("old", {"<10", "20:"}, [1, 0, 1]),
        ("n", "1:2", [0, 1, 1, 0, 0]),
        ("n", (2, None), [0, 0, 1, 1, 0]),
        ("n", pd.Interval(0, 2, closed="right"), [0, 1, 1, 0, 0]),
        ("n", "0|3", [1, 0, 0, 1, 0]),
    ],
)
def test_what_is_known_of_a_variable(name, given, expected):
    np.testing.assert_allclose(counted(SCHEMA, name, given).likely, expected, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("age", 41, "41, which is outside the bounds 0 to 40"),
        ("age", (30, 41), "beyond the bounds 0 to 40; leave an end out"),
        ("age", (30, 20), "ends before it begins"),
        ("age", (30.2, 30.8), "has no value"),
        ("age", pd.Interval(7, 7, closed="neither"), "has no value"),
        ("income", (7, 7), "has no value"),
        ("age", "old", "no number, range or state of it; use a number, a range low:high, or one of the states"),
        ("age", "old:older", "whose end 'old' is not a number"),
        ("age", "1:2:3", "no number, range or state"),
        ("age", slice(1, 9, 2), "no number, range or state"),
        ("income", None, "no state in the model"),
        ("day", "2019-12-31", "outside the bounds 2020-01-01 to 2020-01-30"),
        ("day", 7, "no date, range or state"),
        ("job", "plumber", "not a state of it; use one of the states no, yes, else"),
        ("job", None, "not a state of it"),
        (
            "old",
            "young",
            "not a state of it; use one of the states <10, [10,20), >=20, or a range from one cut to another",
        ),
        ("old", "10:15", "no range from one cut to a higher one; use low:high, low: or :high with ends of 10, 20"),
        ("old", "20:10", "no range from one cut to a higher one"),
        ("old", "10:none", "no range from one cut to a higher one"),
        ("job", "no:yes", "not a state of it; use one of the states no, yes, else"),
        ("job", "no|plumber", "'plumber', which is not a state of it"),
        ("job", set(), "no likelihood of states; pass numbers from 0 on, at least one above 0"),
        ("job", {"no": -1, "yes": 2}, "no likelihood of states"),
        ("job", {"no": float("nan")}, "no likelihood of states"),
        ("job", {"no": 0, "yes": 0}, "no likelihood of states"),
        ("age", {"5:9", "20:10"}, "'20:10', which is a range that ends before it begins"),
        ("n", "3:1", "has no state in it"),
        ("n", 4, "not a state of it; use one of the states 0, 1, 2, 3, None (missing), or a range of them, low:high"),
    ],
)
def test_what_is_no_value_is_refused(name, given, message):
    with pytest.raises(ValueError, match="variable '" + name) as caught:
        counted(SCHEMA, name, given)
    assert message in str(caught.value)


@pytest.mark.parametrize("merging", [None, [0, 0, 1, 1, 2]], ids=["cells", "merged"])
@pytest.mark.parametrize("seed", range(6))
def test_shares_and_their_ends_are_sums_over_values(merging, seed):
    """Of ranges, numbers and sets of them with likelihoods, in cells and in states of several cells with weights."""
    rng, number = np.random.default_rng(seed), Number(0, 40, cuts=[10, 15.5, 28], resolution=1)
    values = Values(number) if merging is None else Values(number, np.array(merging), rng.random(5))
    schema = Schema({"x": number if merging is None else number.with_cuts([15.5])})
    ranges = {tuple(sorted(rng.integers(0, 41, 2).tolist())): float(rng.choice([0.25, 0.5, 1.0])) for _ in range(3)}
    found = counted(schema, "x", ranges, values)
    known = np.array([max([w for (a, b), w in ranges.items() if a <= v <= b], default=0.0) for v in range(41)])
    cell = np.searchsorted([10, 16, 28], np.arange(41), side="right")
    state = cell if merging is None else np.array(merging)[cell]
    weight = values.within[cell] / np.bincount(cell)[cell]
    parts = [known[state == k] for k in range(state.max() + 1)]
    expected = [np.bincount(state, weight * known), [part.min() for part in parts], [part.max() for part in parts]]
    np.testing.assert_allclose(found.shares[:, :-1], expected, atol=1e-12)
    assert found.is_cut == any(part.min() < part.max() for part in parts)
    # What is drawn has the law of the values that are left.
    possible = np.flatnonzero(found.likely)
    codes = np.repeat(possible, 20_000)
    drawn = found.drawn(codes, np.tile((np.arange(20_000) + 0.5) / 20_000, len(possible)))[1].astype(int)
    for k in possible:
        law = np.where(state == k, weight * (known if parts[k].min() < parts[k].max() else 1.0), 0.0)
        times = np.bincount(drawn[codes == k], minlength=41)
        np.testing.assert_allclose(times / 20_000, law / law.sum(), atol=1e-4)


def test_whole_cells_count_to_the_bit_and_ends_next_to_a_cut_divide_nothing():
    found = counted(SCHEMA, "age", "10:29")
    assert found.shares.tolist() == [[0, 1, 1, 0, 0]] * 3 and not found.is_cut and str(found) == "[10,20), [20,30)"
    near = Number(0, 1, cuts=[0.3])
    assert counted(Schema({"x": near}), "x", (0.1 + 0.2, 1)).values.declared == near


def test_numbers_that_are_known_are_drawn_alone():
    uniform = np.tile(np.linspace(0, 0.99, 25), 2)
    found = counted(SCHEMA, "income", "12.25|13|31")
    assert found.likely.tolist() == [0, 1, 0, 1, 0]
    drawn = found.drawn(np.repeat([1, 3], 25), uniform)[1]
    assert set(drawn[:25]) == {12.25, 13.0} and set(drawn[25:]) == {31.0}
    between = counted(SCHEMA, "age", 12.5).drawn(np.full(25, 1), uniform[:25])[1]
    assert set(between) == {*range(10, 20)}  # no value of the resolution: any of its cell


def test_what_counts_is_said():
    found = counted(SCHEMA, "age", (5, 24))
    assert str(found) == "50% of [0,10), [10,20), 50% of [20,30)" and found.told == (5, 24)
    assert found.cells == {"[0,10)": 0.5, "[10,20)": 1.0, "[20,30)": 0.5}
    assert counted(SCHEMA, "age", 12).told == "[10,20)" and counted(SCHEMA, "job", "no|yes").told == "no|yes"
    ends = Schema({"x": Number(0, 59, bins=6, resolution=1, missing="drop")})
    assert str(counted(ends, "x", (5, 54))) == "50% of [0,10), [10,20), 3 more, 50% of [50,59]"


def test_in_an_event_a_number_is_itself():
    np.testing.assert_allclose(counted(SCHEMA, "age", 37, event=True).likely, [0, 0, 0, 1 / 11, 0])
    np.testing.assert_allclose(counted(SCHEMA, "age", "[30,40]", event=True).likely, [0, 0, 0, 1, 0])
    np.testing.assert_allclose(counted(SCHEMA, "age", None, event=True).likely, [0, 0, 0, 0, 1])
    with pytest.raises(ValueError, match="has no value"):
        counted(SCHEMA, "income", 12, event=True)


def test_the_position_of_a_state():
    assert state_of(SCHEMA, "age", 12) == 1
    assert state_of(SCHEMA, "job", " yes ") == 1
    with pytest.raises(ValueError, match="no number, range"):
        state_of(SCHEMA, "age", (1, 2))


@pytest.mark.parametrize("resolution", [None, 1], ids=["reals", "whole numbers"])
def test_ends_hold_wherever_the_values_of_a_cell_lie(resolution):
    """Quantiles always; means of a spike, which has neighbours of other densities."""
    number = Number(0, 100, cuts=range(10, 100, 10), resolution=resolution, missing="drop")
    rng = np.random.default_rng(0)
    levels = [0.05, 0.5, 0.95]
    for where in (0.0, 0.999, None):
        cells = rng.choice(10, 2000, p=[0.02, 0.6, 0.03, *[0.05] * 7])
        inside = rng.random(2000) if where is None else np.full(2000, where)
        values = 10 * cells + (np.floor(10 * inside) if resolution else 10 * inside)
        lower, upper = Values(number).ends(np.bincount(cells, minlength=10) / 2000, levels)
        true = np.quantile(values, levels, method="inverted_cdf")
        assert (lower[1:] <= true).all() and (true <= upper[1:]).all()
        spike = values[cells == 1].mean() - 15  # the others are not at their centres either
        assert lower[0] <= np.mean(10 * cells + 5) + 0.6 * spike <= upper[0]
        assert lower[0] < Values(number).mean(np.bincount(cells, minlength=10) / 2000) < upper[0]


def test_ends_are_values_where_cells_are_and_reach_through_states_as_far_as_weights_are_noise():
    ages = Number(0, 3, cuts=[1, 2, 3], resolution=1, missing="drop")
    lower, upper = Values(ages).ends(np.array([0.1, 0.4, 0.4, 0.1]), [0.05, 0.5])
    assert lower.tolist() == upper.tolist() == [pytest.approx(1.5), 0.0, 1.0]
    state, weights = np.array([0, 0, 0, 1]), np.array([0.5, 0.2, 0.1, 0.2])
    known, noisy, unknown = (
        Values(ages, state, weights, noise).ends(np.array([0.8, 0.2]), [0.5]) for noise in (0.0, 0.05, None)
    )
    assert known[0].tolist() == known[1].tolist() == [pytest.approx(1.0), 0.0]
    assert known[0][0] > noisy[0][0] > unknown[0][0] == pytest.approx(0.6)
    assert known[1][0] < noisy[1][0] < unknown[1][0] == pytest.approx(2.2)
    assert (unknown[0][1], unknown[1][1]) == (0.0, 2.0)
    assert np.isnan(Values(ages).ends(np.zeros(4), [0.5])).all()


def test_the_noise_of_weights_is_kept_in_a_file_and_files_without_it_are_read():
    number = Number(0, 2, cuts=[1], missing="drop")
    values = Values(number, np.array([0, 0]), np.array([0.5, 0.5]), 0.1)
    content = json.loads(json.dumps(values.to_dict()))
    assert Values.from_dict(number, content).noise == 0.1
    del content["noise"]
    assert Values.from_dict(number, content).noise is None


def test_ends_of_a_quantile_reach_cells_without_weight_that_noise_may_hide():
    """A state's last cells count as empty below the noise: a quantile near its end may still be in them."""
    visits = Number(0, 9, cuts=[1, 2, 4, 6, 8], resolution=1, missing="drop")
    state, weights = np.array([0, 1, 1, 1, 1, 1]), np.array([0.6, 0.2, 0.2, 0.0, 0.0, 0.0])
    lower, upper = Values(visits, state, weights, 0.02).ends(np.array([0.6, 0.4]), [0.5, 0.7, 0.95])
    assert lower[1:].tolist() == [0.0, 1.0, 2.0] and upper[1:].tolist() == [0.0, 3.0, 9.0]
