"""Data that do not ship: where they are looked for, and what is said where they are absent."""

from __future__ import annotations

import gzip
import hashlib

import numpy as np
import pytest

from benchmarks import block_models, data, gaussian


@pytest.fixture
def folders(tmp_path, monkeypatch):
    found = (tmp_path / "data", tmp_path / "shared")
    for folder in found:
        folder.mkdir()
    monkeypatch.setattr(data, "FOLDERS", found)
    return found


def test_all_files_of_a_set_are_in_one_folder(folders):
    (folders[0] / "a").touch()
    with pytest.raises(FileNotFoundError, match=r"a and b not in .*benchmarks\.data says what to put there"):
        data.find("a", "b")
    for name in "ab":
        (folders[1] / name).touch()
    assert data.find("a", "b") == folders[1] and data.find("a") == folders[0]


def test_what_is_missing_is_named_with_its_place(folders, capsys):
    data.main()
    told = capsys.readouterr().out
    for name, absent in data.NOT_SHIPPED.items():
        assert f"{name}: missing. `{absent.used_by}`" in told
        assert all(f"Put into {folders[0] / file}: " in told for file in absent.contents)
        assert set(absent.contents) == set(absent.sha256)


def test_what_is_there_is_compared_with_what_the_results_are_of(folders, capsys, monkeypatch):
    text = b"class,X1\nt,5.0\n"
    (folders[0] / "colon_alon.csv.gz").write_bytes(gzip.compress(text))
    data.main()
    assert f"Colon: {folders[0]}, not byte for byte" in capsys.readouterr().out
    monkeypatch.setitem(data.NOT_SHIPPED["Colon"].sha256, "colon_alon.csv.gz", hashlib.sha256(text).hexdigest())
    data.main()
    assert f"Colon: {folders[0]}, byte for byte" in capsys.readouterr().out


def test_they_are_never_committed_and_their_source_is_named():
    root = data.FOLDERS[0].parent
    ignored = [line.removeprefix("data/") for line in (root / ".gitignore").read_text().splitlines()]
    sources = (root / "data" / "SOURCES.md").read_text()
    for absent in data.NOT_SHIPPED.values():
        for file in absent.contents:
            assert any(file.startswith(line.rstrip("*")) for line in ignored if line.endswith("*")), file
            assert f"`{file}`" in sources


def test_benchmarks_leave_out_what_is_absent_and_say_so(folders, monkeypatch):
    with pytest.raises(FileNotFoundError, match="colon_alon"):
        gaussian.colon()
    monkeypatch.setattr(block_models, "right", lambda methods, *_: [(0.5, 0.4, 0.6)] * len(methods))
    text = block_models.real_graphs(None)
    assert text.count("| karate (34 vertices") == 3 and "| polblogs" not in text
    assert "polblogs is left out: polblogs_nodes.csv and polblogs_edges.csv not in" in text
    assert "email_eu_core is left out: email_eu_core_nodes.csv" in text


def test_benchmarks_find_them_in_the_clone_s_data(folders, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)  # not the clone
    rng = np.random.default_rng(0)
    head = ",".join(["class", *(f"X{k}" for k in range(1, 13))])
    lines = [",".join(["t", *map(str, rng.uniform(1e3, 1e4, 12))]) for _ in range(62)]
    (folders[0] / "colon_alon.csv.gz").write_bytes(gzip.compress("\n".join([head, *lines]).encode()))
    assert gaussian.colon().rows.shape == (62, 10)
    for name, label in (("polblogs", "leaning"), ("email_eu_core", "department")):
        (folders[0] / f"{name}_nodes.csv").write_text(f"id,{label}\n1,0\n2,1\n3,1\n")
        (folders[0] / f"{name}_edges.csv").write_text("source,target\n1,2\n2,3\n")
    monkeypatch.setattr(block_models, "right", lambda methods, *_: [(0.5, 0.4, 0.6)] * len(methods))
    text = block_models.real_graphs(None)
    assert text.count("polblogs (3 vertices, 2 edges, k = 2)") == 3 and "left out" not in text
