"""Files of arrays: what was written is read, and nothing else is."""

from __future__ import annotations

import io
import json
import tracemalloc
import zipfile

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from pgmpy_dp import Budget, MarkovNetwork, Release
from pgmpy_dp.estimators import CollectiveMAP
from pgmpy_dp.private.array_file import array_file, read_array_file
from pgmpy_dp.schema.stored import sealed

HEADER = {"format": "test", "version": 2, "about": ["é", None, 0.1]}
ARRAYS = {
    "x": np.arange(6.0).reshape(2, 3),
    "none": np.zeros((0, 4), dtype=np.int64),
    "one": np.array(7),
    "f": np.asfortranarray(np.arange(4, dtype=np.float32).reshape(2, 2)),
    "flags": np.array([True, False]),
}
READ = 2


def parts(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(members: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, part in members.items():
            archive.writestr(name, part)
    return stream.getvalue()


def as_array(array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def as_header(header: dict) -> bytes:
    return as_array(np.frombuffer(json.dumps(header).encode(), dtype=np.uint8))


def header_of(content: bytes) -> dict:
    return json.loads(np.load(io.BytesIO(parts(content)["header.npy"])).tobytes())


class TestReading:
    def test_what_was_written(self):
        header, arrays = read_array_file(array_file(HEADER, ARRAYS), "test", READ)
        assert header == HEADER and arrays.keys() == ARRAYS.keys()
        for name, array in ARRAYS.items():
            assert arrays[name].dtype == array.dtype
            np.testing.assert_array_equal(arrays[name], array)
            assert arrays[name].flags.owndata

    def test_numpy_reads_it_too(self):
        with np.load(io.BytesIO(array_file(HEADER, ARRAYS)), allow_pickle=False) as stored:
            np.testing.assert_array_equal(stored["x"], ARRAYS["x"])

    @pytest.mark.parametrize(
        "change",
        [
            {"x.npy": as_array(np.arange(6.0).reshape(3, 2))},
            {"x.npy": as_array(np.arange(6).reshape(2, 3))},
            {"x.npy": as_array(np.zeros((2, 3)))},
            {"y.npy": as_array(np.zeros(2))},
            {"x.npy": as_array(np.arange(6.0).reshape(2, 3))[:-8]},
            {"x.npy": as_array(np.array([None]))},
            {"x": b""},
            {"header.npy": as_header(HEADER)},
            {"header.npy": as_header(sealed({**HEADER, "version": 1}))},
            {"header.npy": as_header(sealed({**HEADER, "version": 3}))},
            {"header.npy": as_header(sealed({**HEADER, "version": True}))},
            {"header.npy": as_header(sealed({**HEADER, "format": "another"}))},
            {"header.npy": as_array(np.frombuffer(b'{"format": "test", "version": 2, "n": NaN}', dtype=np.uint8))},
            {"header.npy": as_array(np.frombuffer(b'{"format": "x", "format": "test"}', dtype=np.uint8))},
            {"header.npy": as_array(np.frombuffer(b"[" * 100_000, dtype=np.uint8))},
        ],
    )
    def test_anything_else_is_refused(self, change):
        with pytest.raises((ValueError, KeyError)):
            read_array_file(packed(parts(array_file(HEADER, ARRAYS)) | change), "test", READ)

    def test_files_of_0_2_say_who_reads_them(self):
        with pytest.raises(ValueError, match="and save it there"):
            read_array_file(packed({"header.npy": as_header({**HEADER, "version": 1})}), "test", READ)

    def test_no_shape_takes_memory_that_the_file_has_not(self):
        stream = io.BytesIO()
        np.lib.format.write_array_header_1_0(stream, {"descr": "<f8", "fortran_order": False, "shape": (1 << 40,)})
        with pytest.raises(ValueError, match="not the shape"):
            read_array_file(packed(parts(array_file(HEADER, {})) | {"x.npy": stream.getvalue()}), "test", READ)

    def test_what_inflates_without_bound_is_refused_before_it_does(self):
        large = packed(parts(array_file(HEADER, {})) | {"x.npy": as_array(np.zeros(1 << 24))})
        assert len(large) < 1 << 20
        tracemalloc.start()
        with pytest.raises(ValueError, match="inflates to more than"):
            read_array_file(large, "test", READ)
        assert tracemalloc.get_traced_memory()[1] < 1 << 22
        tracemalloc.stop()

    def test_what_is_written_is_read_however_well_it_packs(self):
        zeros = {"x": np.zeros(1 << 24, dtype=np.uint8), "y": np.zeros((1 << 20, 60), dtype=np.uint8)}
        _, arrays = read_array_file(array_file(HEADER, zeros), "test", READ)
        assert arrays["y"].shape == (1 << 20, 60)


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> dict:
    folder = tmp_path_factory.mktemp("files")
    graph = nx.path_graph(["a", "b", "c"])
    records = pd.DataFrame({name: ["no", "yes"] * 500 for name in graph})
    learner = CollectiveMAP(epsilon=1.0, state_names={name: ["no", "yes"] for name in graph}, random_state=0)
    model = MarkovNetwork(graph).fit(records, learner)
    model.posterior = learner.posterior(n_draws=20, random_state=0)
    model.save(folder / "model.npz")
    learner.release_.save(folder / "release.npz")
    return {MarkovNetwork.load: folder / "model.npz", Release.load: folder / "release.npz"}


@pytest.mark.parametrize("load", [MarkovNetwork.load, Release.load])
class TestCorruptions:
    """Each is a ValueError that names the file: what is promised."""

    def test_bytes(self, load, files, tmp_path):
        content, rng = files[load].read_bytes(), np.random.default_rng(0)
        for _ in range(100):
            damaged = bytearray(content)
            for place in rng.integers(len(content), size=rng.integers(1, 4)):
                damaged[place] ^= 1 << int(rng.integers(8))
            self.refused(load, bytes(damaged), tmp_path, unless=content)
        for end in rng.integers(len(content), size=20):
            self.refused(load, content[:end], tmp_path)

    def test_parts_of_the_header(self, load, files, tmp_path):
        """Also where somebody has made the digest fit."""
        content = files[load].read_bytes()
        header, arrays = read_array_file(content, header_of(content)["format"], header_of(content)["version"])
        before, members = header_of(content), parts(content)
        for name in header:
            for odd in (None, 3, "text", [None], [[1, 2]], {"a": 1}, True):
                self.refused(load, array_file({**header, name: odd}, arrays), tmp_path, raises=False)
                if odd != header[name]:
                    self.refused(load, packed(members | {"header.npy": as_header({**before, name: odd})}), tmp_path)

    def test_arrays(self, load, files, tmp_path):
        """A digest that fits, and arrays that do not."""
        content = files[load].read_bytes()
        header, arrays = read_array_file(content, header_of(content)["format"], header_of(content)["version"])
        for name in arrays:
            self.refused(load, array_file(header, {k: v for k, v in arrays.items() if k != name}), tmp_path)
            odd = [arrays[name].astype(complex), np.full(arrays[name].shape, np.nan)]
            for array in odd:
                self.refused(load, array_file(header, {**arrays, name: array}), tmp_path)

    def refused(self, load, content, folder, unless=None, raises=True):
        path = folder / "damaged.npz"
        path.write_bytes(content)
        try:
            found = load(path)
        except ValueError as error:
            assert "damaged.npz" in str(error)  # noqa: PT017  # others are none
        else:
            # Some bytes of an archive say nothing, dates for example; some parts may be another.
            assert not raises or unless is not None
            if unless is not None:
                path.write_bytes(unless)
                assert repr(found) == repr(load(path))


def test_draws_that_are_all_the_same_have_no_intervals(files, tmp_path):
    content = files[MarkovNetwork.load].read_bytes()
    header, arrays = read_array_file(content, "pgmpy_dp.MarkovNetwork", 4)
    arrays["posterior_draws"] = np.zeros_like(arrays["posterior_draws"])
    path = tmp_path / "model.npz"
    path.write_bytes(array_file(header, arrays))
    with pytest.raises(ValueError, match="no interval would have a width"):
        MarkovNetwork.load(path)


def test_budgets_of_files_are_checked(files, tmp_path):
    content = files[Release.load].read_bytes()
    header, arrays = read_array_file(content, "pgmpy_dp.release", 2)
    path = tmp_path / "release.npz"
    for change in ({"guarantee": {"measure": "pure", "epsilon": -1}}, {"guarantee": {"measure": "none"}}):
        path.write_bytes(array_file({**header, **change}, arrays))
        with pytest.raises(ValueError, match="is damaged"):
            Release.load(path)
    assert Budget(epsilon=1.0).guarantee.to_dict() == header["guarantee"]


@pytest.mark.parametrize("load", [Release.load, MarkovNetwork.load])
def test_bytes_before_and_behind_the_archive_are_refused(files, load, tmp_path):
    content, path = files[load].read_bytes(), tmp_path / "longer.npz"
    for longer in (b"x" + content, content + b"x", b"PK" + content, content + content, content + bytes(30)):
        path.write_bytes(longer)
        with pytest.raises(ValueError, match=r"longer\.npz.*is damaged"):
            load(path)
