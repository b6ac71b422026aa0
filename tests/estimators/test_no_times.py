"""No times leave: how long a release takes depends on the records, so a time in a model or a ledger tells of them."""

import base64
import datetime
import gzip
import json
import pickle
import re
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from pgmpy_dp import Budget, Ledger, MarkovNetwork
from pgmpy_dp.cli import app
from pgmpy_dp.private.entry import Entry
from pgmpy_dp.private.guarantee import PureDP
from tests.estimators.cases import CASES, ORDINARY
from tests.estimators.test_nothing_leaks import reachable

FILES = Path(__file__).parents[1] / "private" / "files"  # written before entries lost their times
FILES_OF_0_3 = Path(__file__).parent / "files_of_0_3"
OF_BEFORE = FILES / "ledger-with-times.json"
PICKLE_OF_BEFORE = base64.b64decode(
    "gASVLgEAAAAAAACMFnBnbXB5X2RwLnByaXZhdGUuZW50cnmUjAVFbnRyeZSTlCmBlH2UKIwEd2hhdJSMBGFnZXOUjAdjb2x1bW5zlIwDYWdllIWU"
    "jAltZWNoYW5pc22UjAdsYXBsYWNllIwEY29zdJSMGnBnbXB5X2RwLnByaXZhdGUuZ3VhcmFudGVllIwGUHVyZURQlJOUKYGUfZSMB2Vwc2lsb26U"
    "Rz/wAAAAAAAAc2KMCWFkamFjZW5jeZSMGnBnbXB5X2RwLnByaXZhdGUuYWRqYWNlbmN5lIwJQWRqYWNlbmN5lJOUjAphZGRfcmVtb3ZllIWUUpSM"
    "DHJlcHJvZHVjaWJsZZSJjAR0aW1llIwZMjAyNi0xMS0yMlQwNDoxNzoxOSswMDowMJSMBHVuaXSUTnViLg=="
)
WRITTEN = re.compile(rb"(19|20)\d\d-\d\d-\d\d|\d\d:\d\d:\d\d")
KINDS = {case.estimator: case for case in reversed(CASES)}.values()  # the first case of each estimator


def times(item, since: float = 1.7e9) -> list[str]:
    """What in an object looks like a time: a date, a text, or a number of (milli- or nano-) seconds since 1970."""
    found = []
    for part in reachable(item):
        text = part.encode("utf-8", "surrogateescape") if isinstance(part, str) else part
        if isinstance(part, datetime.date | datetime.time | np.datetime64):
            found.append(f"a {type(part).__name__}")
        elif isinstance(text, bytes) and (WRITTEN.search(text) or b'"time"' in text):
            found.append("a text")
        elif isinstance(part, int | float) and any(since - 1 <= part / scale <= time.time() for scale in (1, 1e3, 1e9)):
            found.append("a number")
    return found


def times_in_file(path: Path) -> list[str]:
    """The same in a file and the members of an archive, and when those were changed."""
    if path.suffix != ".npz":
        return ["a text"] if WRITTEN.search(path.read_bytes()) or b'"time"' in path.read_bytes() else []
    with zipfile.ZipFile(path) as archive:
        found = [f"when {m.filename} was made" for m in archive.infolist() if m.date_time != (1980, 1, 1, 0, 0, 0)]
        texts = [archive.read(name) for name in archive.namelist()]
    return found + ["a text" for text in texts if WRITTEN.search(text) or b'"time"' in text]


@pytest.mark.parametrize("case", KINDS, ids=lambda case: case.estimator.__name__)
def test_nothing_that_leaves_a_fit_has_a_time(case, tmp_path, capsys):
    since = time.time()
    ledger = Ledger.open(tmp_path / "ledger.json", case.budget)
    fitted = case.fit(case.make(), case.data(ORDINARY[case.kind], ledger))
    assert times([fitted, ledger.entries, fitted.release_], since) == []
    content = pickle.dumps(fitted)
    assert not WRITTEN.search(content)
    assert times(pickle.loads(content), since) == []
    fitted.release_.save(tmp_path / "release.npz")
    ledger.save(tmp_path / "copy.json")
    if isinstance(getattr(fitted, "model_", None), MarkovNetwork):
        fitted.model_.save(tmp_path / "model.npz")
    written = [path for path in tmp_path.iterdir() if path.suffix != ".lock"]
    assert len(written) >= 3 and all(times_in_file(path) == [] for path in written)
    print(ledger, fitted.privacy_, fitted.privacy_.entries)
    assert not WRITTEN.search(capsys.readouterr().out.encode())


def test_the_search_finds_what_it_looks_for(tmp_path):
    since = time.time()
    for secret in (
        datetime.datetime.now(),
        np.datetime64("now"),
        datetime.date.today().isoformat(),
        time.strftime("%X").encode(),
        time.time(),
        time.time_ns(),
        {"time": [int(1e3 * time.time())]},
    ):
        assert times([0, {"deep": secret}], since), secret
    assert times_in_file(OF_BEFORE) == ["a text"]
    with zipfile.ZipFile(tmp_path / "stamped.npz", "w") as archive:
        archive.writestr("header.npy", b"plain")  # zipfile's own default is now
    assert times_in_file(tmp_path / "stamped.npz") == ["when header.npy was made"]


def test_a_ledger_of_before_is_read_and_written_without_its_times(tmp_path):
    path = tmp_path / "ledger.json"
    path.write_bytes(OF_BEFORE.read_bytes())
    loaded, opened = Ledger.load(path), Ledger.open(path)
    for ledger in (loaded, opened):
        assert [entry.what for entry in ledger.entries] == ["ages", "1 marginal tables"]
        assert (ledger.spent, ledger.left) == (PureDP(2.0), PureDP(1.0))
        assert times(ledger.entries) == [] and not WRITTEN.search(ledger.summary().encode())
    loaded.save(tmp_path / "copy.json")
    assert times_in_file(tmp_path / "copy.json") == []
    opened.charge(PureDP(0.5), what="more", columns=("age",), mechanism="m", adjacency="add_remove")
    assert times_in_file(path) == [] and len(Ledger.load(path).entries) == 3


def test_a_pickle_of_before_is_read_without_its_time():
    entry = pickle.loads(PICKLE_OF_BEFORE)
    later = {"public_tables"}  # fields since then have their defaults
    assert WRITTEN.search(PICKLE_OF_BEFORE) and {*Entry.__annotations__} - {*vars(entry)} == later
    assert not WRITTEN.search(pickle.dumps(entry)) and not WRITTEN.search(repr(entry).encode())
    ledger = Ledger(Budget(epsilon=1.0))
    new = ledger.charge(PureDP(1.0), what="ages", columns=("age",), mechanism="laplace", adjacency="add_remove")
    assert entry == new


def test_the_commands_write_no_times(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("ledger.json").write_bytes(OF_BEFORE.read_bytes())
    model = FILES_OF_0_3 / "CollectiveMAP.model.npz"
    for command in (
        "ledger show ledger.json",
        "ledger show ledger.json --json",
        "ledger export ledger.json --out ledger.csv",
        f"info {model}",
        f"info {model} --json",
        f"sample {model} --n 5 --out synthetic.csv.gz",
    ):
        done = CliRunner().invoke(app, command.split())
        assert done.exit_code == 0, done.output
        assert not WRITTEN.search(done.output.encode()) and '"time"' not in done.output
    assert Path("ledger.csv").read_text().splitlines()[0].startswith("what,columns,mechanism")
    assert times_in_file(Path("ledger.csv")) == []
    compressed = Path("synthetic.csv.gz").read_bytes()
    assert compressed[4:8] == bytes(4) and len(gzip.decompress(compressed).splitlines()) == 6
    guarantee = json.loads(CliRunner().invoke(app, ["ledger", "show", "ledger.json", "--json"]).output)["guarantee"]
    assert guarantee == {"measure": "pure", "epsilon": 3.0}
