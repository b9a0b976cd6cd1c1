"""What is in a recording, also where the disk is full or too slow."""

import resource
import threading
from contextlib import contextmanager

import numpy as np
import pytest

rosbag2 = pytest.importorskip("rosbags.rosbag2", reason="needs the extra 'ros'")

from nh_control.runs import bag_writer  # noqa: E402
from nh_control.runs.bag_writer import BagWriter  # noqa: E402

TYPE = "std_msgs/msg/String"


@contextmanager
def files_of(size):
    """Files of so many bytes at most, as if the disk were full then."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def noise(count, size=50_000):
    """Messages that cannot be compressed."""
    rng = np.random.default_rng(0)
    return [rng.bytes(size) for _ in range(count)]


def read(path):
    """Time and data of all messages in a recording, in turn; its metadata must agree with it."""
    with rosbag2.Reader(path) as run:
        found = [(time, bytes(data)) for _, time, data in run.messages()]
        assert run.message_count == len(found)
        assert sum(connection.msgcount for connection in run.connections) == len(found)
    return found


@pytest.mark.parametrize("compressed", [True, False])
def test_what_is_written_is_read_and_takes_little_room_where_it_repeats(tmp_path, compressed):
    writer = BagWriter(tmp_path / "run", compressed, pytest.fail)
    take, messages = writer.topic("/a", TYPE, False), [b"again" * 2000] * 500
    for k, data in enumerate(messages):
        take(k, data)
    writer.close()
    assert read(tmp_path / "run") == list(enumerate(messages))
    assert (writer.taken, writer.lost, writer.error) == ({"/a": 500}, {}, None)
    size = (tmp_path / "run" / "run.mcap").stat().st_size
    assert (size < 100_000) is compressed
    assert (b"zstd" in (tmp_path / "run" / "run.mcap").read_bytes()) is compressed


def test_on_a_full_disk_what_was_written_is_read(tmp_path):
    told, messages = [], noise(100)
    with files_of(4_000_000):
        writer = BagWriter(tmp_path / "run", True, told.append)
        take = writer.topic("/a", TYPE, False)
        for k, data in enumerate(messages):
            take(k, data)
        writer.close()
    assert told == [writer.error] and isinstance(writer.error, OSError)
    found = read(tmp_path / "run")
    assert len(found) == writer.taken["/a"] and len(found) + writer.lost["/a"] == 100
    assert 20 < len(found) < 80 and found == list(enumerate(messages))[: len(found)]


def test_where_only_the_end_does_not_fit_the_rest_is_read(tmp_path):
    told, messages = [], noise(30)
    writer = BagWriter(tmp_path / "run", True, told.append)
    take = writer.topic("/a", TYPE, False)
    for k, data in enumerate(messages):
        take(k, data)
    while writer._bytes:  # until all are in chunks
        threading.Event().wait(1e-3)
    with files_of((tmp_path / "run" / "run.mcap").stat().st_size):
        writer.close()
    assert told == [] and isinstance(writer.error, OSError)
    found = read(tmp_path / "run")
    assert 0 < len(found) == writer.taken["/a"] < 30 and writer.lost["/a"] == 30 - len(found)
    assert found == list(enumerate(messages))[: len(found)]


def test_where_nothing_fits_nothing_is_left(tmp_path):
    with files_of(100_000), pytest.raises(OSError):
        BagWriter(tmp_path / "run", True, pytest.fail)
    assert not (tmp_path / "run").exists()


def test_what_comes_faster_than_it_is_written_is_lost_and_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(bag_writer, "WAITING_BYTES", 1000)
    writer, may_write = BagWriter(tmp_path / "run", True, pytest.fail), threading.Event()
    take, write = writer.topic("/a", TYPE, False), writer._writer.write

    def wait(*message):
        assert may_write.wait(30)
        write(*message)

    monkeypatch.setattr(writer._writer, "write", wait)
    for k in range(25):
        take(k, bytes(100))
    assert (writer.taken["/a"], writer.lost["/a"]) == (10, 15)
    may_write.set()
    while writer._bytes:
        threading.Event().wait(1e-3)
    take(25, bytes(1000))
    writer.close()
    assert [time for time, _ in read(tmp_path / "run")] == [*range(10), 25]
    assert (writer.taken["/a"], writer.lost["/a"]) == (11, 15)


def test_an_error_of_its_own_is_told(tmp_path, monkeypatch):
    told = []
    writer = BagWriter(tmp_path / "run", True, told.append)
    take = writer.topic("/a", TYPE, False)

    def mistaken(*_):
        raise ZeroDivisionError("a mistake")

    monkeypatch.setattr(writer._writer, "write", mistaken)
    take(0, b"1234")
    while not told:
        threading.Event().wait(1e-3)
    assert isinstance(told[0], ZeroDivisionError)
