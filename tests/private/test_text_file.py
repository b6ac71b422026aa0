"""Text files as people have them: what fields mean by their options, line by line, and what is said of first lines."""

from __future__ import annotations

import csv
import gzip
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgmpy_dp import Budget, PrivateSequences, PrivateTable, PrivateVectors, Schema, TextFile, learn
from pgmpy_dp.private.data.contributions import GRID
from pgmpy_dp.private.data.header import named_columns
from pgmpy_dp.private.data.table import contingency_tables, shared_codes
from pgmpy_dp.private.data.text_file import UNREADABLE, cell_reader
from pgmpy_dp.private.data.vectors import vector_rows
from pgmpy_dp.private.reading.owners import GuessedTypesWarning
from pgmpy_dp.schema import interval_states, match_key
from pgmpy_dp.sequences.operators.sequences import chain_tables

BUDGET = {"ledger": Budget(epsilon=1.0)}
OPTIONS = [
    {},
    {"delimiter": ";"},
    {"delimiter": "\t", "encoding": "cp1252"},
    {"delimiter": ";", "encoding": "cp1252", "decimal": ",", "thousands": "."},
    {"delimiter": ";", "decimal": ","},
    {"delimiter": "|", "thousands": ","},
    {"decimal": ",", "thousands": " ", "encoding": "latin-1"},
    {"delimiter": ";", "decimal": ",", "thousands": "'", "encoding": "utf-8-sig"},
    {"delimiter": ";", "encoding": "cp932"},
    {"delimiter": ",", "encoding": "gb18030", "decimal": ","},
    {"delimiter": ";", "encoding": "ascii", "thousands": "_"},
]
NOTHING: frozenset[str] = frozenset()
SIGNS = {None: "", " ": " \xa0\u202f", "'": "'\u2019"}


def meaning(field: bytes, spelled=(), *, encoding="utf-8", decimal=".", thousands=None, delimiter=None) -> object:
    """What a field is, by the documentation of TextFile and without its expressions."""
    try:
        text = field.decode("utf-8" if encoding == "utf-8-sig" else encoding)
    except UnicodeError:
        return UNREADABLE
    if text in spelled:
        return text
    signs = SIGNS.get(thousands, thousands)
    value = as_number(text.strip(), decimal, signs)
    if value is None and decimal == "," and "." not in signs and as_number(text.strip(), ",", ".") is not None:
        return UNREADABLE
    return text if value is None else value


def as_number(text: str, decimal: str, signs: str) -> float | None:
    body, sign = (text[1:], -1.0 if text[0] == "-" else 1.0) if text[:1] in ("+", "-") else (text, 1.0)
    mantissa, e, exponent = body.replace("E", "e").partition("e")
    whole, _, fraction = mantissa.partition(decimal)
    unsigned = exponent[1:] if exponent[:1] in ("+", "-") else exponent
    for part in signs:
        whole = whole.replace(part, "\0")
    groups = whole.split("\0")
    if len(groups) > 1 and not (1 <= len(groups[0]) <= 3 and all(len(group) == 3 for group in groups[1:])):
        return None
    digits = "".join(groups)
    wanted = [part for part in (digits, fraction, *([unsigned] if e else [])) if part]
    if not digits + fraction or (e and not unsigned) or not all(part.isascii() and part.isdigit() for part in wanted):
        return None
    return sign * float(f"{digits or 0}.{fraction or 0}{'e' + exponent if e else ''}")


ODD = [
    *(
        b"1,5",
        b"1.5",
        b"1.500",
        b"1,500",
        b"1.500,25",
        b"1,500.25",
        b"12.34.567",
        b"1234.567",
        b"-.5",
        b"+,5",
        b",",
        b".",
    ),
    *(
        b"",
        b" ",
        b" 1,5 ",
        b"1 500",
        b"1\xa0500",
        b"1\xe2\x80\xaf500",
        b"1'500",
        "1\u2019500,5".encode(),
        b"1_500",
        b"_1",
    ),
    *(
        b"1e3",
        b"1,5e3",
        b"1.5e3",
        b"1e",
        b"e1",
        b"1,5,",
        b"1..5",
        b"--1",
        b"0x1",
        b"nan",
        b"inf",
        b"True",
        b"1.500.",
        b".500",
    ),
    *(
        b"1.500e2",
        b"0.000",
        b"1.23",
        b"47.11",
        b"01.02.2020",
        b"1,500,00",
        b"999.999.999.999",
        b"1" * 400,
        b"1.111" * 90,
    ),
    *(
        "groß".encode(),
        "groß".encode("cp1252"),
        b"gro\x81",
        b"\xff\xfe",
        b"\x81\x30",
        b"\x83\x5c",
        b"\x8f",
        b"\0",
        b"\xef\xbb\xbf1",
    ),
    *("1٫5".encode(), "１".encode(), "−1".encode(), b"1,5\r", b"1\r", b"\xc2", b"\xdf", b"1.500\x81"),
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_field_means_what_is_said(options):
    read = cell_reader(TextFile("a.csv", **options)) or (lambda field, _: field)
    for field in ODD:
        for spelled in (NOTHING, frozenset({"1,5", "1.500", "1\u202f500", "groß", " "})):
            assert match_key(read(field, spelled)) == match_key(meaning(field, spelled, **options)), field


@given(st.sampled_from(OPTIONS), st.text(alphabet="0123456789.,'_+-eE \xa0\u202fß\u2019", max_size=12))
def test_any_field_means_what_is_said(options, text):
    read = cell_reader(TextFile("a.csv", **options)) or (lambda field, _: field)
    for field in (text.encode(), text.encode("cp1252", "replace")):
        assert match_key(read(field, NOTHING)) == match_key(meaning(field, **options))


def test_a_state_is_what_is_spelled_like_it(tmp_path):
    """States are copied from the file, also where they look like its numbers."""
    (tmp_path / "a.csv").write_bytes(b"dose;code\n0,5;47.112\n1,5;47.11\n0,50;1.500\n;47112\n")
    schema = Schema(
        {"dose": ["0,5", "1,5", "", "?"], "code": ["47.112", "1.500", "47.11", "?"]}, other={"dose": "?", "code": "?"}
    )
    for thousands in (".", None):
        told = TextFile(tmp_path / "a.csv", delimiter=";", decimal=",", thousands=thousands)
        assert shared_codes(PrivateTable(told, schema, **BUDGET))[0].tolist() == [[0, 0], [1, 2], [3, 1], [2, 3]]


def test_numbers_of_the_world():
    german = {"decimal": ",", "thousands": "."}
    assert meaning(b"-1.234.567,5", **german) == -1234567.5
    assert [meaning(b"1.500", decimal=","), meaning(b"1.500", **german), meaning(b"1.500")] == [UNREADABLE, 1500.0, 1.5]
    assert meaning("1\u202f500,5".encode(), decimal=",", thousands=" ") == 1500.5


STATES = ["groß", 1.5, 1500, "47.11", None, "?"]
SCHEMA = Schema({"x": STATES, "y": ["u", "v"]}, other={"x": "?"})
CUTS = Schema({"x": interval_states([1, 2, 1000]), "y": ["u", "v"]})


def written(folder, lines: list[bytes], **options) -> TextFile:
    path = Path(folder) / "a.csv"
    sign = (options.get("delimiter") or ",").encode()
    path.write_bytes(b"\n".join([sign.join([b"x", b"y", b"t"]), *lines]))
    return TextFile(path, **options)


def fields_of(line: bytes, sign: str) -> list[bytes] | None:
    """Fields of one line by the csv module; None where it is no record."""
    text = line.rstrip(b"\r\n").decode("latin-1")
    try:
        row = next(csv.reader([text], delimiter=sign)) if '"' in text else text.split(sign)
    except csv.Error:  # a carriage return within a line with quotation marks
        return None
    return [field.encode("latin-1") for field in row] if text and len(row) == 3 else None


def frame_of(lines: list[bytes], options: dict) -> pd.DataFrame:
    """Records as the documentation says, of a schema without texts that look like numbers."""
    rows = [row for line in lines if (row := fields_of(line, options.get("delimiter") or ",")) is not None]
    cells = [[meaning(field, **options) if field else None for field in row] for row in rows]
    return pd.DataFrame(cells, columns=["x", "y", "t"], dtype=object)


def readings(data) -> list:
    """Tables by two schemas, numbers and visits: everything that files of text are read for."""
    tables = [
        contingency_tables(PrivateTable(data, schema, **BUDGET), [["x"], ["x", "y"]]) for schema in (SCHEMA, CUTS)
    ]
    rows = vector_rows(PrivateVectors(data, ["x"], **BUDGET))[0]
    own = vector_rows(PrivateVectors(data, ["x"], unit="y", **BUDGET))[0]
    visits = PrivateSequences(data, {"x": [1.5, 1500, "groß"]}, unit="y", order="t", **BUDGET)
    counted = [table.value.tolist() for pair in tables for table in pair]
    return [*counted, sorted(rows[:, 0]), sorted(own[:, 0]), chain_tables(visits)[0].value.tolist()]


@pytest.mark.parametrize("lines_of", ["in turns", pytest.param("both", marks=pytest.mark.slow)])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_one_record_more_moves_a_count_by_one(tmp_path, options, lines_of, recwarn, capfd):
    """Every third odd field in a record, or as a whole line, another one in each dialect; or all as both."""
    sign = (options.get("delimiter") or ",").encode()
    alike = [sign.join([b'"1,5"', b"u", b"%d" % k]) for k in range(20)] + [sign.join([b"1500", b"v", b"1"])] * 20
    base = readings(written(tmp_path, alike, **options))
    assert base == readings(frame_of(alike, options))
    fields = [*ODD, b'"1,5', b'"', b'"1;5"', b'"1""5"', b"x" * 200_000, b";;;", b"\t", b'"a\r"']
    for number, field in enumerate(fields, OPTIONS.index(options)):
        if lines_of == "in turns" and number // 2 % 3:
            continue
        forms = sign.join([field, b"u", b"3"]), field
        for line in forms if lines_of == "both" else forms[number % 2 :][:1]:
            lines = [*alike[:7], line, *alike[7:]]
            found = readings(written(tmp_path, lines, **options))
            assert found == readings(frame_of(lines, options)), line
            assert all(np.abs(np.subtract(a, b)).sum() <= 1 for a, b in zip(base[:4], found[:4], strict=True)), line
            assert len(found[4]) - len(base[4]) in (0, 1)
            assert sum(found[6]) <= 2 * GRID
    assert not [each for each in recwarn if each.category is not GuessedTypesWarning]
    assert capfd.readouterr() == ("", "")


parts = st.lists(
    st.sampled_from(
        [b"1", b"500", b",", b".", b";", b"\n", b"\n", b'"', b"\r", b"\xff", b"\x81", b"\0", b" ", b"\xa0", b"u;1\n"]
    )
)


@given(
    st.sampled_from([{"delimiter": ";", **o} for o in ({"encoding": "cp1252", "decimal": ","}, {"encoding": "cp932"})]),
    parts,
    st.integers(0, 40),
)
def test_any_bytes_are_read_line_by_line(tmp_path_factory, options, parts, left_out):
    folder = tmp_path_factory.mktemp("bytes")
    lines = b"".join(parts).split(b"\n")

    def records(lines):
        table = PrivateTable(written(folder, lines, **options), Schema({"x": STATES}), **BUDGET)
        return shared_codes(table)[0].tolist()

    whole, k = records(lines), left_out % len(lines)
    assert whole == shared_codes(PrivateTable(frame_of(lines, options), Schema({"x": STATES}), **BUDGET))[0].tolist()
    assert whole == records(lines[:k]) + records(lines[k : k + 1]) + records(lines[k + 1 :])


GERMAN = "Nr;age;größe;einkommen\r\n1;29;klein;1.000,4\r\n2;30;groß;1.000,6\r\n3;40;groß;900,0\r\n"
PEOPLE = Schema({"age": ["<30", ">=30"], "größe": ["klein", "groß"], "einkommen": ["<1000.5", ">=1000.5"]})
EXCEL = {"delimiter": ";", "encoding": "cp1252", "decimal": ",", "thousands": "."}


@pytest.mark.parametrize("name", ["a.csv", "a.txt", "a.tsv", "a.dat.gz", "a"])
def test_a_file_from_excel(tmp_path, name):
    content = GERMAN.encode("cp1252")
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    told = TextFile(tmp_path / name, **EXCEL)
    for data in (told, TextFile(str(tmp_path / name), **EXCEL), TextFile([tmp_path / name], **EXCEL)):
        assert shared_codes(PrivateTable(data, PEOPLE, **BUDGET))[0].tolist() == [[0, 0, 0], [1, 1, 1], [1, 1, 0]]
    twice = TextFile([tmp_path / name] * 2, **EXCEL)
    assert len(shared_codes(PrivateTable(twice, PEOPLE, **BUDGET))[0]) == 6
    assert set(learn(told, Budget(epsilon=100.0), PEOPLE).model_.nodes) == set(PEOPLE)


def message(tmp_path, content: bytes, names, name: str = "survey.csv", **options) -> str:
    """What is said of a file, by tables, numbers and sequences alike."""
    path = tmp_path / name
    path.write_bytes(content)
    data = TextFile(path, **options) if options else path
    schema = names if isinstance(names, Schema) else Schema({name: ["a", "b"] for name in names})
    with pytest.raises(ValueError, match=re.escape(name)) as caught:
        PrivateTable(data, schema, **BUDGET)
    with pytest.raises(ValueError, match=re.escape(name)) as again:
        PrivateVectors(data, list(schema), **BUDGET)
    assert str(again.value) == str(caught.value)
    assert caught.value.__cause__ is None
    return str(caught.value).replace(f"{tmp_path}/", "")


def test_a_header_with_semicolons(tmp_path):
    told = message(tmp_path, GERMAN.encode(), PEOPLE)
    assert told == (
        "the header of 'survey.csv' is one column ('Nr;age;größe;einkommen') by the delimiter ',', and has 3 "
        "semicolons. Pass TextFile('survey.csv', delimiter=';'), or --delimiter ';' on the command line "
        "(decimal=',' or --decimal , too, if its numbers are written 1,5)"
    )
    assert message(tmp_path, b"\xef\xbb\xbf" + GERMAN.encode(), PEOPLE) == told
    tabs = message(tmp_path, GERMAN.replace(";", "\t").encode(), PEOPLE)
    assert r"delimiter='\t'), or --delimiter tab on" in tabs
    commas = message(tmp_path, GERMAN.replace(";", ",").encode(), PEOPLE, delimiter=";")
    assert "is one column ('Nr,age,größe,einkommen') by the delimiter ';', and has 3 commas" in commas
    several = message(tmp_path, b"age;income, net;sex\n", ["age", "sex"])
    assert "is 2 columns ('age;income', ' net;sex') by the delimiter ',', and has 2 semicolons" in several
    assert "2 vertical bars" in message(tmp_path, b"age|income|sex\n", ["age", "sex"], name="survey.tsv")


def test_a_header_with_semicolons_is_seen_where_all_columns_are_read(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"height;weight\n1,80;75,5\n")
    with pytest.raises(ValueError, match="1 semicolons"):
        PrivateVectors(tmp_path / "a.csv", **BUDGET)
    found = PrivateVectors(TextFile(tmp_path / "a.csv", delimiter=";", decimal=","), **BUDGET)
    assert (found.columns, vector_rows(found)[0].tolist()) == (("height", "weight"), [[1.8, 75.5]])
    (tmp_path / "a.csv").write_bytes(b"a;b\nx\n")
    table = PrivateTable(TextFile(tmp_path / "a.csv", delimiter=","), Schema({"a;b": ["x", "y"]}), **BUDGET)
    assert shared_codes(table)[0].tolist() == [[0]]


def test_a_header_that_is_not_in_the_encoding(tmp_path):
    told = message(tmp_path, GERMAN.encode("cp1252"), PEOPLE)
    assert "the first line of 'survey.csv' is not utf-8 at its byte 10." in told
    assert "TextFile('survey.csv', delimiter=';', encoding='cp1252'), or --encoding 'cp1252' --delimiter ';' on" in told
    assert "encoding='...'" in message(tmp_path, b"age,\x81,gr\xf6\xdfe\n", ["age"])
    assert "encoding='utf-8'" in message(tmp_path, "age,größe\n".encode(), ["age"], encoding="ascii")
    assert "leave out encoding='cp1252'" in message(
        tmp_path, "age,größe\n".encode(), ["age", "größe"], encoding="cp1252"
    )
    marked = message(tmp_path, b"\xef\xbb\xbfage,x\n", ["age"], encoding="cp1252")
    assert "begins with the mark of UTF-8: leave out encoding='cp1252'" in marked


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (GERMAN.encode("utf-16"), "is UTF-16"),
        (b"\xfe\xff" + GERMAN.encode("utf-16-be"), "is UTF-16"),
        (GERMAN.encode("utf-16-le"), "has zero bytes"),
        (GERMAN.encode("utf-32"), "is UTF-32"),
        (b"PK\x03\x04 needle", "is a workbook"),
        (gzip.compress(GERMAN.encode()), "is packed by gzip"),
        (b"age,sex\r1,needle\r2,needle", "carriage returns"),
        (b'"age\n(years)",sex\n', "ends inside quotation marks"),
        (b"sep=;\r\nage;sex\r\n", "tells Excel 'sep=;' and has no names: remove that line"),
        (b"\n\nage,sex\n", "has no names"),
        (b"", "has no names"),
        (b'"' + b"needle" * 50_000 + b'",age,sex\n', "too long"),
        (b"age,sex,age\n", "several columns named ['age']"),
        (b"sex, age ,age  \n", "has no column for the variables ['age']"),
    ],
    ids=range(14),
)  # fmt: skip
def test_first_lines_that_are_no_header(tmp_path, content, told):
    found = message(tmp_path, content, ["age", "sex"])
    assert told in found
    assert "needle" not in found


def test_records_after_a_header_that_a_carriage_return_ends_decide_nothing(tmp_path):
    records = [b"", b"1,a\r", b"1,\0\r", b"\xff,b\r", b'"\r\r', b"\r", b"1,a\n2,b\r"]
    for head in (b"age,sex\r", b"age,\xff\r", b"\r", b"age,\0\r"):
        assert len({message(tmp_path, head + record, ["age", "sex"]) for record in records}) == 1


def test_names_that_are_nearly_there(tmp_path):
    told = message(tmp_path, b'id,Age, "sex",job\n', ["age", "sex", "job", "income"])
    assert "no column for the variables ['age', 'sex', 'income']" in told
    assert "'age' may be 'Age' there" in told
    assert "'sex' may be ' \"sex\"' there" in told
    assert "'income' may be" not in told
    assert "the header is 'id', 'Age', ' \"sex\"', 'job'" in told
    assert " and 970 more" in message(tmp_path, b"age," + b",".join([b"x" * 99] * 999), ["age", "sex"])


def test_a_record_in_the_first_line_is_not_quoted(tmp_path):
    for content in (b"needle,1,0\n", b"needle;1;0\n", b"needle\t1\t0\n", b"needle;0;sex\n", b"\nneedle"):
        for names in (["age", "sex", "job"], ["0", "1", "2"]):
            assert "needle" not in message(tmp_path, content, names)
    assert "has 3 fields, not quoted here in case it is a record" in message(tmp_path, b"needle,1,0\n", ["0", "1", "2"])
    assert "if it is a record, put a line of names before it" in message(tmp_path, b"needle;1;0\n", ["age", "sex"])


@pytest.mark.parametrize(
    ("content", "options"),
    [
        (b"34.5,1207\n35,1300\n", {}),
        (b"34.5,34.5\n", {}),
        (b"34.5,\n", {"encoding": "utf-8-sig"}),
        (b"bob;34,5\n", {"delimiter": ";", "decimal": ","}),
        (b"bob;1 207\n", {"delimiter": ";", "thousands": " ", "encoding": "utf-8-sig"}),
    ],
)
def test_a_record_in_the_first_line_is_no_names_of_all_columns(tmp_path, content, options):
    (tmp_path / "a.csv").write_bytes(content)
    with pytest.raises(ValueError, match="has numbers for names, not quoted here") as caught:
        PrivateVectors(TextFile(tmp_path / "a.csv", **options), **BUDGET)
    assert not re.search("34|bob|207", str(caught.value).replace(str(tmp_path), ""))
    (tmp_path / "a.csv").write_bytes(b",0,1\n7,3,4\n")
    assert PrivateVectors(tmp_path / "a.csv", **BUDGET).columns == ("", "0", "1")
    (tmp_path / "a.csv").write_bytes(b"2019,2020\n3,4\n")
    assert PrivateVectors(tmp_path / "a.csv", ["2019", "2020"], **BUDGET).columns == ("2019", "2020")


def test_blanks_around_names_are_no_part_of_them(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"age , sex,\tjob\n1,a,x\n")
    schema = Schema({"sex": ["a", "b"], "age": [0, 1], "job": ["x", "y"]})
    assert shared_codes(PrivateTable(tmp_path / "a.csv", schema, **BUDGET))[0].tolist() == [[0, 1, 0]]
    asked = Schema({" sex": ["a", "b"], "age ": [0, 1]})
    assert shared_codes(PrivateTable(tmp_path / "a.csv", asked, **BUDGET))[0].tolist() == [[0, 1]]
    assert named_columns(["a", " a", "b ", " b", "c "], ["a", "b", "c", "c "]) == ["a", "b", "c", "c "]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"delimiter": ";;"}, "delimiter=';;'"),
        ({"delimiter": '"'}, "delimiter"),
        ({"delimiter": "5"}, "delimiter"),
        ({"delimiter": "§"}, "delimiter"),
        ({"delimiter": ""}, "delimiter"),
        ({"decimal": ";"}, "decimal=';' is none of the signs"),
        ({"decimal": ""}, "decimal=''"),
        ({"thousands": ".."}, "thousands='..' is none of the signs"),
        ({"thousands": "."}, "thousands='.' is decimal too"),
        ({"decimal": ",", "thousands": ","}, "thousands=',' is decimal too"),
        ({"encoding": "klingon"}, "encoding='klingon' is not a text encoding"),
        ({"encoding": "rot13"}, "encoding='rot13' is not a text encoding"),
        ({"encoding": "utf-8\0"}, "is not a text encoding"),
        *(
            ({"encoding": name}, "cannot be read by lines")
            for name in ("utf-16", "utf-32-le", "utf-7", "hz", "iso2022_jp", "cp037", "idna", "raw_unicode_escape")
        ),
        ({"encoding": "cp932", "delimiter": "|"}, "cannot be read by lines"),
    ],
    ids=str,
)
def test_options_that_cannot_be_used(options, told):
    with pytest.raises(ValueError, match=re.escape(told)):
        TextFile("nothing.csv", **options)


def test_arguments_of_other_types():
    for options in ({"delimiter": 5}, {"encoding": None}, {"decimal": 1.5}, {"thousands": b"."}):
        with pytest.raises(TypeError, match=next(iter(options))):
            TextFile("nothing.csv", **options)
    for path in (None, [], 7, [7]):
        with pytest.raises(TypeError, match="path"):
            TextFile(path)


def test_files_that_have_no_such_options(tmp_path):
    with pytest.raises(ValueError, match="a Parquet file has no delimiter"):
        PrivateTable(TextFile(tmp_path / "a.parquet", delimiter=";"), PEOPLE, **BUDGET)
    with pytest.raises(ValueError, match=r"pass TextFile\(.*delimiter=\.\.\.\), or --delimiter"):
        PrivateTable(TextFile(tmp_path / "a.txt", encoding="cp1252"), PEOPLE, **BUDGET)
    with pytest.raises(FileNotFoundError, match=r"a\.txt"):
        PrivateTable(TextFile(tmp_path / "a.txt", delimiter=";"), PEOPLE, **BUDGET)
