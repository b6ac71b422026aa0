"""Numbers, dates and spellings: what is refused, what a cell is read as, what is drawn, and that files keep it."""

from __future__ import annotations

import datetime
import json
import math
import pickle
from bisect import bisect_right
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgmpy_dp.models.decoding import Values
from pgmpy_dp.schema import OUTSIDE, Date, Number, Schema, interval_states, match_key

finite = st.floats(-1e6, 1e6).map(lambda number: round(number, 3))
options = {"missing": st.sampled_from(["state", "drop"]), "outside": st.sampled_from(["clip", "drop", "state"])}
any_key = st.one_of(
    st.builds(match_key, st.one_of(st.text(), st.floats(), st.integers(), st.none(), st.dates(), st.datetimes())),
    st.sampled_from([("unreadable",), ("missing",), ("tuple",), ("tuple", ("text", "a")), ("text", "\ud800")]),
    st.builds(match_key, st.lists(st.text())),
)


@st.composite
def numbers(draw):
    """Undivided, by cuts, by bins; with a resolution and without."""
    chosen = {name: draw(values) for name, values in options.items()}
    if draw(st.booleans()):
        lower, upper, *cuts = draw(st.lists(finite, min_size=2, max_size=6, unique=True))
        lower, *cuts, upper = sorted([lower, upper, *cuts])
        kind = draw(st.sampled_from(["cuts", "bins", "none"]))
        return Number(
            lower,
            upper,
            cuts=cuts if kind == "cuts" else (),
            bins=draw(st.integers(2, 9)) if kind == "bins" else None,
            spikes=draw(st.sampled_from([None, [], [lower], [lower, round((lower + upper) / 2, 3), upper]])),
            **chosen,
        )
    step, lower = draw(st.sampled_from([0.1, 0.25, 1, 7, 1000])), draw(st.integers(-50, 50))
    n = draw(st.integers(1, 300))
    upper = float(Fraction(lower) + n * Fraction(repr(float(step))))
    bins = draw(st.none() | st.integers(2, n + 1))
    return Number(lower, upper, resolution=step, bins=bins, **chosen)


@st.composite
def dates(draw):
    lower, upper = sorted(draw(st.lists(st.dates(), min_size=2, max_size=2, unique=True)))
    return Date(
        lower,
        upper,
        bins=draw(st.none() | st.integers(2, min((upper - lower).days + 1, 20))),
        format=draw(st.sampled_from([None, "%d.%m.%Y", "%Y%m%d", "%d %b %y"])),
        **{name: draw(values) for name, values in options.items()},
    )


class TestSpikes:
    """A real number with a cell of its own: the next cell begins behind it, with the next float."""

    FEES = Number(-10, 100, spikes=[0, 65], missing="drop")

    def test_bounds_and_spikes_have_cells_and_nothing_else_is_in_them(self):
        fine = self.FEES.fine()
        assert [cell for cell, alone in zip(fine.cells, fine.points, strict=True) if alone] == [
            "[-10,-10]", "[0,0]", "[65,65]", "[100,100]",
        ]  # fmt: skip
        code = fine.coder()
        for spike in (-10.0, 0.0, 65.0, 100.0):
            place = fine.cells.index(f"[{spike:g},{spike:g}]")
            near = [math.nextafter(spike, -math.inf), spike, math.nextafter(spike, math.inf)]
            wanted = [max(place - 1, 0), place, min(place + 1, len(fine.cells) - 1)]
            assert [code(match_key(number)) for number in near] == wanted and fine.spans()[place] == (
                spike,
                spike,
                True,
            )
            assert (
                fine.centres[place] == spike and fine.within(np.array([0.0, 1.0]), np.array([place] * 2)).max() == spike
            )
        assert [number.text(end) for number in (fine,) for end in fine.ends].count("65") == 2

    def test_a_declared_division_keeps_its_spikes(self):
        number = Number(0, 100, cuts=[50], spikes=[0, 50], missing="drop")
        assert number.states == ("[0,0]", "(0,50)", "[50,50]", "(50,100]")
        assert Number(0, 100, bins=2, spikes=[0], missing="drop").states == ("[0,0]", "(0,50)", "[50,100]")
        assert number.with_cuts([50]).states == Number(0, 100, cuts=[50], missing="drop").states
        whole = Number(0, 1000, resolution=1, spikes=[365], missing="drop").fine()
        assert "[365,366)" in whole.cells and Number(0, 9, resolution=1, spikes=[5]).fine().cells[5] == "[5,6)"
        assert number.shares(0, 50).tolist() == [1, 1, 1, 0] and number.shares(0, 50, "neither").tolist() == [
            0,
            1,
            0,
            0,
        ]
        assert number.shares(50, 75, "right") == pytest.approx([0, 0, 0, 0.5])

    def test_a_file_without_a_word_of_spikes_means_what_it_meant(self):
        """Version 0.3 wrote undivided numbers without it, and their grids are made again where a release is read."""
        schema = Schema({"x": Number(0, 100), "y": Number(-1, 1)})
        content = schema.to_dict()
        for entry in content["variables"]:
            del entry["number"]["spikes"]
        old = Schema.from_dict(content)
        assert old != schema and not old.matches(schema) and not schema.matches(old.fine()) and not old.matches(old)
        assert len(old.fine().numbers["x"].cells) == 119 and old.fine()["y"] == Number(-1, 1, bins=64)
        assert Schema.from_dict(old.to_dict()) == old and Schema.from_dict(schema.to_dict()) == schema
        assert len(schema.fine().numbers["x"].cells) == 121 and schema.fine()["y"].points.sum() == 2

    def test_rules_may_compare_with_a_spike(self):
        rules = ["x > 0 -> y = a", "x = 65 -> y = a", "x < 100 -> y = a"]
        schema = Schema({"x": Number(0, 100, spikes=[65]), "y": ["a", "b"]}, impossible=rules)
        fine = schema.fine()
        assert all(fine["x"].edges.count(cut) for cut in schema.rule_cuts("x"))
        forbidden = set().union(*(box["x"] for box in fine.zeros))
        assert forbidden == {*range(len(fine["x"].cells))}
        assert 0 not in set().union(*(box["x"] for box in Schema(dict(schema), impossible=rules[:2]).fine().zeros))

    @pytest.mark.parametrize("spikes", [[101], [-10.5], [0.1 + 0.2], 5, "0", [math.nan], [True]], ids=str)
    def test_no_other_spikes_are_taken(self, spikes):
        with pytest.raises((TypeError, ValueError), match="spikes"):
            Number(-10, 100, spikes=spikes)
        with pytest.raises((TypeError, ValueError), match="spikes"):
            Number(-10, 100, resolution=1, spikes=spikes)


class TestRoundTrips:
    @given(numbers() | dates())
    def test_files_keep_all_that_was_declared(self, number):
        schema = Schema({"x": number, "y": ["a", "b"]})
        for twin in (Schema.from_dict(json.loads(json.dumps(schema.to_dict()))), pickle.loads(pickle.dumps(schema))):
            assert twin == schema and twin["x"] == number and type(twin["x"]) is type(number)
            assert twin["x"].edges == number.edges and twin.states == schema.states

    def test_files_keep_how_cells_are_read(self):
        schema = Schema(
            {"age": Number(0, 9, bins=2), ("a", 1): ["M", "F"], "z": ["x", "y"]},
            missing={"age": [-9, "?"], "z": [("t", 1)]},
            strip=True,
            casefold=["z"],
            recode={("a", 1): {"Male": "M", 1: "F", None: "F"}, "age": {"old": 9, "none": None}},
        )
        again = Schema.from_dict(json.loads(json.dumps(schema.to_dict())))
        assert again == schema and schema != Schema(dict(schema))
        assert all(again.reading(name) == schema.reading(name) for name in schema)
        part = schema.subset(["z", "age"])
        assert all(part.reading(name) == schema.reading(name) for name in part)
        replaced = schema.replaced({"age": Number(0, 9, bins=3)})
        assert replaced.cardinality("age") == 4 and replaced.reading("age") == schema.reading("age")

    def test_bounds_of_older_files_are_numbers(self):
        entry = {"format": "pgmpy_dp.schema", "version": 1, "variables": [{"name": "x", "bounds": [0, 2.5]}]}
        assert Schema.from_dict(entry)["x"] == Number(0, 2.5)

    def test_the_declaration_can_be_changed_afterwards(self):
        cells, recoded = ["?"], {"x": {"A": "a"}}
        schema = Schema({"x": ["a", "b"]}, missing=cells, recode=recoded)
        before = schema.to_dict()
        cells.append("b")
        recoded["x"]["B"] = "b"
        assert schema.to_dict() == before


class TestReading:
    @given(numbers() | dates(), any_key)
    def test_total(self, number, key):
        assert -1 <= number.coder()(key) < len(number.states)
        assert number.coder(-7)(key) in (-7, number.coder()(key))
        schema = Schema({"x": number.fine()}, missing=["a", 0], strip=True, casefold=True, recode={"x": {"b": None}})
        assert -1 <= schema.coder("x")(key) < schema.cardinality("x")

    @given(numbers(), st.floats(allow_nan=False))
    def test_numbers(self, number, cell):
        """As the declaration says, in other words than the code has."""
        code = number.coder()(match_key(cell))
        states = [*number.states, None]
        if number.lower <= cell <= number.upper:
            assert code == bisect_right(number.edges[1:-1], cell)
            assert states[code] == number.cells[code]
        elif number.outside == "clip":
            assert code == (0 if cell < number.lower else len(number.cells) - 1)
        else:
            assert code == (-1 if number.outside == "drop" else states.index(OUTSIDE))

    @given(numbers() | dates())
    def test_labels_missing_cells_and_what_is_no_number(self, number):
        code = number.coder()
        for place, label in enumerate(number.states):
            assert code(match_key(label)) == place
        missing = number.states.index(None) if number.missing == "state" else -1
        assert code(match_key(None)) == missing
        outside = {"clip": missing, "drop": -1, "state": len(number.states) - 1}[number.outside]
        for cell in ("old", (1,), b"\xff", datetime.timedelta(1), "[0,", "nane"):
            assert code(match_key(cell)) == outside

    @given(dates(), st.datetimes(), st.timezones() | st.none())
    def test_days(self, day, moment, zone):
        moment = moment.replace(tzinfo=zone)
        try:
            utc = moment if zone is None else moment.astimezone(datetime.UTC)
            [label] = match_key(moment)[1:]
        except (OverflowError, ValueError):
            return  # a moment outside the years 1 to 9999 has no text
        expected = utc.toordinal() - datetime.date(1970, 1, 1).toordinal()
        for cell in (moment, f" {moment.isoformat()}", label):
            assert day.reads(match_key(cell)) == expected
        if day.format in ("%d.%m.%Y", "%Y%m%d") and moment.year > 999:
            texts = (
                {f"{moment:%d.%m.%Y}"} if day.format == "%d.%m.%Y" else {f"{moment:%Y%m%d}", int(f"{moment:%Y%m%d}")}
            )
            naive = moment.toordinal() - datetime.date(1970, 1, 1).toordinal()
            assert all(day.reads(match_key(cell)) == naive for cell in texts)

    @pytest.mark.parametrize(
        ("format", "cell", "day"),
        [
            (None, "20000101", None),
            ("%Y%m%d", 20000101, "2000-01-01"),
            ("%Y%m%d", 20000101.5, None),
            ("%d%m%Y", "01022003", "2003-02-01"),
            ("%d%m%Y", 1022003, "2003-02-01"),
            ("%d%m%Y", "2003-02-01", "2003-02-01"),
            ("%Y%m%d", 1e400, None),
            ("%d.%m.%Y", 1022003, None),
            ("%m/%d/%Y", " 2/1/2003 ", "2003-02-01"),
            (None, "2003-W01-1", "2002-12-30"),
            (None, "2003-2-1", None),
        ],
    )
    def test_formats(self, format, cell, day):
        found = Date("1900-01-01", "2100-01-01", format=format).reads(match_key(cell))
        expected = math.nan if day is None else Date(day, "2101-01-01").lower
        assert found == expected or (math.isnan(found) and math.isnan(expected))

    def test_spellings(self):
        """In their order: blanks, case, missing, recode."""
        schema = Schema(
            {"sex": ["F", "M", "unknown"]},
            missing=["?"],
            strip=True,
            casefold=True,
            recode={"sex": {"Female": "F", 1: "M", None: "unknown"}},
        )
        code = schema.coder("sex")
        cells = ["F", " f ", "FEMALE", "M\u2003", 1, "1.0", "?", " ? ", None, "", "  ", "male", "\ud800"]
        assert [code(match_key(cell)) for cell in cells] == [0, 0, 0, 1, 1, 1, 2, 2, 2, 2, 2, -1, -1]
        kept = Schema({"x": ["", "a"]}, strip=True).coder("x")
        assert [kept(match_key(cell)) for cell in ("", " ", None, "a ")] == [0, 0, -1, 1]

    def test_sentinels_among_numbers_and_intervals(self):
        schema = Schema(
            {"age": Number(0, 120, cuts=[18, 65]), "old": interval_states([18, 65])},
            missing=[-9, 999],
            recode={"age": {"child": 5, 7: 70}, "old": {"child": 5, 30: "<18"}},
        )
        age, old = schema.coder("age"), schema.coder("old")
        assert [age(match_key(cell)) for cell in (-9, "999", 998, "child", 7, 7.5)] == [3, 3, 2, 0, 2, 0]
        assert [old(match_key(cell)) for cell in (-9, "999", 998, "child", 30)] == [-1, -1, 2, 0, 0]


def drawn_from(number, codes, seed):
    """Numbers for codes of states, uniform within each cell."""
    uniform = np.random.default_rng(seed).random(codes.size)
    return Values(number).numbers(codes.ravel(), uniform).reshape(codes.shape)


class TestDrawing:
    @given(numbers() | dates(), st.integers(0, 2**32 - 1))
    def test_in_its_cell_and_its_resolution(self, number, seed):
        codes = np.random.default_rng(seed).integers(len(number.states), size=(20, 2))
        drawn = drawn_from(number, codes, seed)
        assert drawn.shape == codes.shape and drawn.dtype == np.float64
        read = replace(number, format=None) if isinstance(number, Date) else number
        for code, value in zip(codes.ravel(), drawn.ravel(), strict=True):
            if code >= len(number.cells):
                assert math.isnan(value)
                continue
            assert number.lower <= value <= number.upper
            assert read.coder()(match_key(value if number.kind == "number" else number.text(value))) == code
            if number.resolution is not None:
                steps = (Fraction(repr(float(value))) - Fraction(repr(number.lower))) / Fraction(
                    repr(number.resolution)
                )
                assert steps.denominator == 1

    @pytest.mark.parametrize("number", [Number(0, 1, cuts=[0.3]), Number(-3, 3, resolution=0.5, cuts=[0])])
    def test_uniform(self, number):
        """The mean of n draws of a cell is within 6 standard deviations of its middle: missed by chance in 1e8 runs."""
        n = 4000
        for code in range(len(number.cells)):
            drawn = drawn_from(number, np.full(n, code), code)
            low, high = number.edges[code : code + 2]
            if number.resolution is not None and code < len(number.cells) - 1:
                high -= number.resolution
            sd = (high - low + (number.resolution or 0)) / math.sqrt(12 * n)
            assert abs(drawn.mean() - (low + high) / 2) < 6 * sd
            if number.resolution is not None:
                different, times = np.unique(drawn, return_counts=True)
                expected = n / len(different)
                assert np.abs(times - expected).max() < 6 * math.sqrt(expected)

    def test_rounding_stays_inside(self):
        number = Number(0, 5e-324 * 8, cuts=[5e-324 * 3])
        drawn = drawn_from(number, np.repeat([0, 1], 500), 0)
        assert drawn[:500].max() < number.edges[1] <= drawn[500:].min() and drawn.max() <= number.upper


class TestRefusals:
    @pytest.mark.parametrize(
        ("options", "error", "text"),
        [
            ({"upper": 10**400}, ValueError, "not finite"),
            ({"lower": -1.7e308, "upper": 1.7e308}, ValueError, "too wide"),
            ({"cuts": [5, 5]}, ValueError, "must ascend"),
            ({"cuts": [0]}, ValueError, "must ascend"),
            ({"cuts": [10.5]}, ValueError, "must ascend"),
            ({"cuts": "5"}, TypeError, "not a list of numbers"),
            ({"cuts": [0.3, 0.3 + 1.2e-16]}, ValueError, "so close to each other"),
            ({"cuts": [5], "bins": 2}, ValueError, "pass one of them"),
            ({"bins": 1}, ValueError, "from 2 to"),
            ({"bins": 2.0}, TypeError, "whole number"),
            ({"bins": 12, "resolution": 1}, ValueError, "from 2 to 11"),
            ({"cuts": [0.1, 0.2], "resolution": 1}, ValueError, "a cell without a value"),
            ({"resolution": 3}, ValueError, "whole number of steps"),
            ({"resolution": 0}, ValueError, "must be a positive number"),
            ({"resolution": "1"}, TypeError, "not a number"),
            ({"resolution": 1e-16}, ValueError, "too fine"),
            ({"missing": "clip"}, ValueError, "pass one of state, drop"),
            ({"outside": None}, ValueError, "pass one of clip, drop, state"),
        ],
    )
    def test_numbers(self, options, error, text):
        with pytest.raises(error, match=text):
            Number(**{"lower": 0, "upper": 10, **options})

    @pytest.mark.parametrize(
        ("options", "error", "text"),
        [
            ({"lower": "1.1.2000"}, ValueError, "write it as 2020-01-31"),
            ({"lower": 3}, TypeError, "pass a date or a text"),
            ({"upper": "1999-01-01"}, ValueError, "swap or widen"),
            ({"resolution": 0.5}, ValueError, "whole number of days"),
            ({"format": 3}, TypeError, "is not a text"),
            ({"format": ["%Y-%m", 3]}, TypeError, "is not a text"),
            ({"format": "%d %Y"}, ValueError, "not say a whole day"),
            ({"format": "%Y-W%W"}, ValueError, "not say a whole day"),
            ({"format": "%m"}, ValueError, "not say a whole day"),
            ({"units": "%"}, ValueError, "which are for a Number"),
            ({"format": "day"}, ValueError, "not say a whole day"),
            ({"format": "%Q"}, ValueError, "does not read a day"),
            ({"format": "%Y-%d-%m"}, ValueError, "as another day than ISO"),
        ],
    )
    def test_dates(self, options, error, text):
        with pytest.raises(error, match=text):
            Date(**{"lower": "2000-01-01", "upper": "2001-01-01", **options})

    @pytest.mark.parametrize(
        ("options", "error", "text"),
        [
            ({"missing": "?"}, TypeError, "not a list of cells"),
            ({"missing": {"z": ["?"]}}, ValueError, "not variables of the schema"),
            ({"missing": ["a"]}, ValueError, "missing or recode read as another"),
            ({"strip": "x"}, TypeError, "not a list of names"),
            ({"strip": ["z"]}, ValueError, "not variables of the schema"),
            ({"casefold": True}, ValueError, "make the same"),
            ({"recode": {"x": "a"}}, TypeError, "not a mapping of mappings"),
            ({"recode": {"z": {}}}, ValueError, "not variables of the schema"),
            ({"recode": {"x": {"c": "d"}}}, ValueError, "none of its states; recode to a state, or to None"),
            ({"recode": {"x": {"a": "b"}}}, ValueError, "missing or recode read as another"),
            ({"recode": {"x": {"1": "a", 1: "b"}}}, ValueError, "as two things"),
            ({"recode": {"age": {"old": "oldest"}}}, ValueError, "nor a number within its bounds"),
            ({"recode": {"age": {"old": 121}}}, ValueError, "nor a number within its bounds"),
        ],
    )
    def test_readings(self, options, error, text):
        with pytest.raises(error, match=text):
            Schema({"x": ["a", "A", "b"], "age": Number(0, 120)}, **options)


@pytest.mark.parametrize(
    "number",
    [
        Number(0, 1e5),
        Number(0, 1e-3),
        Number(1, 1e12),
        Number(0, 1e12, resolution=0.01),
        Number(0, 99_999, resolution=1),
        Number(17, 2_000, resolution=0.5),
        Number(1_900, 2_020),
    ],
    ids=repr,
)
def test_fine_cells_from_0_on_are_as_narrow_as_a_quarter_of_their_distance_from_the_bound(number):
    fine = number.fine()
    edges = np.array(fine.edges)
    assert len(fine.states) <= 256  # codes are bytes
    widths = np.diff(edges)[: -1 if number.resolution else None]
    assert widths.max() <= 1.05 * (number.upper - number.lower) / 64 + (number.resolution or 0)
    above = np.maximum(edges[: len(widths)] - number.lower, number.lower)
    assert (widths <= 0.35 * above + number._fine_near + (number.resolution or 0)).all()
    if number.resolution:
        assert fine.cells[0] == f"[{number.text(number.lower)},{number.text(number.lower + number.resolution)})"
        assert edges[-1] == edges[-2] == number.upper


def test_fine_cells_of_days_and_of_numbers_below_0_are_equally_wide():
    assert np.allclose(Number(-10, 10).fine().widths[1:-1], 20 / 64)
    days = np.diff(Date("2000-01-01", "2030-01-01").fine().edges)[1:-1]
    assert days.max() - days.min() <= 1
