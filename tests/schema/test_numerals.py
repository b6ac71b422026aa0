"""Numbers with units and other signs: a function of each text alone, in linear time, held to a slow second reading."""

from __future__ import annotations

import json
import math
import re
from fractions import Fraction
from itertools import pairwise, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgmpy_dp import Number, Schema
from pgmpy_dp.schema import match_key
from pgmpy_dp.schema.numerals import checked_units, word_number, written_number

UNITS = (("%", 0.01), ("$", 1.0), ("k", 1000.0), ("mi.", 1.0))


def slowly(text: str, decimal: str, thousands: str | None) -> float | None:
    """Sign, unit, sign, digits and unit peeled off one by one."""
    rest, factor, signs = text.strip(), Fraction(1), []
    for place in range(3):
        if place == 1:
            for unit, by in UNITS:
                if rest.startswith(unit):
                    rest, factor = rest[len(unit) :].lstrip(), factor * Fraction(repr(by))
                    break
        elif rest[:1] in ("+", "-"):
            signs.append(rest[0])
            rest = rest[1:].lstrip() if place == 0 else rest[1:]
    for unit, by in UNITS:
        if rest.endswith(unit):
            rest, factor = rest[: -len(unit)].rstrip(), factor * Fraction(repr(by))
            break
    whole, _, fraction = rest.partition(decimal)
    groups = whole.split(thousands) if thousands and thousands in whole else [whole]
    if len(groups) > 1 and not (1 <= len(groups[0]) <= 3 and all(len(group) == 3 for group in groups[1:])):
        return None
    digits = "".join(groups)
    if (
        not re.fullmatch("[0-9]*", digits + fraction)
        or not digits + fraction
        or len(signs) > 1
        or len(groups[0]) < 1 < len(groups)
    ):
        return None
    return float(Fraction(f"{''.join(signs)}{digits or '0'}.{fraction or '0'}") * factor)


PARTS = st.lists(
    st.sampled_from(["$", "%", "k", "mi.", "-", "+", " ", "1", "12", "345", "000", ".", ",", "x"]), max_size=8
)


@given(PARTS, st.sampled_from([(".", None), (".", ","), (",", "."), (",", None)]))
def test_a_text_is_read_as_slowly(parts, signs):
    text = "".join(parts)
    assert written_number(text, UNITS, *signs) == slowly(text, *signs)


def test_factors_round_once():
    assert written_number("29%", UNITS, ".", None) == 0.29 and 29 * 0.01 == 0.29 and 57 * 0.01 != 0.57
    assert written_number("57%", UNITS, ".", None) == 0.57


@pytest.mark.parametrize(
    "text", [" " * 10**5 + "x", "-" + " " * 10**5 + "x", "1" * 10**5 + "x", "1" + ",111" * 10**5 + "x"]
)
def test_long_texts_are_nothing(text):
    assert written_number(text, UNITS, ".", ",") is None


def test_words_of_numbers_are_the_same_in_any_case():
    words = ["inf", "INF", "Infinity", "+inf", " infinity "]
    assert {word_number(word) for word in words} == {math.inf} and word_number("-INFINITY") == -math.inf
    assert word_number("NaN") is None and math.isnan(word_number("infinite"))
    code = Number(0, 9, cuts=[5]).coder()
    assert {code(match_key(word)) for word in (*words, math.inf, "inf")} == {1}
    assert {code(match_key(word)) for word in ("nan", "NAN", None, math.nan)} == {2}


@pytest.mark.parametrize(
    ("units", "error"),
    [
        ("5", ValueError),
        (["a1"], ValueError),
        ("", ValueError),
        ("-", ValueError),
        ([3], TypeError),
        ({"%": 0}, ValueError),
        ({"%": True}, TypeError),
    ],
)
def test_units_that_could_be_part_of_a_number_are_refused(units, error):
    with pytest.raises(error, match="units"):
        checked_units("Number", units)


def test_signs_that_are_none_are_refused():
    for options in ({"thousands": "x"}, {"decimal": ";"}, {"thousands": ",", "decimal": ","}, {"thousands": ""}):
        with pytest.raises(ValueError, match=r"pass (one|two)"):
            Number(0, 9, **options)


def test_options_are_kept_in_files_and_in_identity():
    dressed = Number(0, 9, units={"k": 1000, "%": 1}, thousands=".", decimal=",")
    schema = Schema({"a": dressed, "b": Number(0, 9)})
    again = Schema.from_dict(json.loads(json.dumps(schema.to_dict())))
    assert (
        again == schema and again["a"] == dressed != Number(0, 9) and again["a"].with_cuts([5]).units == dressed.units
    )


def test_missing_and_recode_meet_the_number():
    schema = Schema(
        {"a": Number(0, 99, cuts=[50], units="$")}, missing={"a": [-9]}, recode={"a": {"low": "$3"}}, strip=True
    )
    reading, code = schema.reading("a"), schema.coder("a")
    assert [code(reading.key(cell)) for cell in ("$-9", -9, "low", " $60 ", "60", 60, "x")] == [2, 2, 0, 1, 1, 1, 2]


def test_under_a_decimal_comma_a_point_is_no_number():
    comma = Schema({"a": Number(0, 9_999, cuts=[10], decimal=",")}, strip=True)
    points = Schema({"a": Number(0, 9_999, cuts=[10], decimal=",", thousands=".")})
    for schema, wanted in ((comma, [2, 0, 0, 2]), (points, [1, 0, 0, 2])):
        key, code = schema.reading("a").key, schema.coder("a")
        assert [code(key(cell)) for cell in ("1.500", "1,5", 1.5, "1.5")] == wanted


@given(st.one_of(st.text(), st.binary(), st.floats(), st.integers(), st.none()))
def test_a_key_never_raises(cell):
    for number in (Number(0, 9, units="$"), Number(0, 9, decimal=",", thousands=".")):
        assert isinstance(hash(number.key(cell)), int)


def test_numbers_ascend_as_texts_do():
    texts = [f"${k:,}.{c:02d}" for k, c in product((1, 999, 1000, 10_300), (0, 50))]
    read = [written_number(text, UNITS, ".", ",") for text in texts]
    assert all(a < b for a, b in pairwise(read))
