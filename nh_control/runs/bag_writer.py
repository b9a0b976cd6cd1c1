"""Recordings in MCAP. A full disk does not damage them, and messages that come too fast do not
fill the memory.
"""

from __future__ import annotations

import errno
import os
import shutil
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue

from rosbags.interfaces import (
    Connection,
    Qos,
    QosDurability,
    QosHistory,
    QosLiveliness,
    QosReliability,
    QosTime,
)
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer
from rosbags.rosbag2.storage_mcap import McapWriter
from rosbags.typesys import Stores, get_typestore

WAITING_BYTES = 256 * 2**20
"""Largest size of the messages that wait for the disk."""
ROOM = 2**20
"""Bytes that are reserved for the end of the file, and PER_CHUNK for every chunk."""
PER_CHUNK = 1024
NOT_SUPPORTED = (errno.EOPNOTSUPP, errno.ENOSYS)


class WholeMcap(McapWriter):
    """An MCAP file that can be ended at any time. Before a chunk is written, its room and the room
    of the index are reserved on the disk; if that fails, OSError is raised and nothing is written.
    """

    def __init__(self, path: Path, compression: CompressionMode):
        super().__init__(path, compression)
        self._take_room(0)

    def close_chunk(self) -> None:
        """Write the chunk that is being collected."""
        messages = sum(map(len, self.chunk.msgs.values()))
        size = self.chunk.bio.tell()
        self._take_room(size + size // 128 + 16 * messages)  # if it cannot be compressed
        super().close_chunk()

    def drop_chunk(self) -> dict[int, int]:
        """Forget the chunk that is being collected; returns its messages by connection."""
        lost = {number: len(messages) for number, messages in self.chunk.msgs.items()}
        for number, count in lost.items():
            self.channel_stats[number] -= count
        self.chunk.msgs.clear()
        self.chunk.bio.seek(0)
        self.chunk.bio.truncate()
        return lost

    def close(self, version: int, metadata: str) -> None:
        """End the file, and give back the room that was taken."""
        file = os.dup(self.bio.fileno())  # knows where the last byte was written
        try:
            super().close(version, metadata)
            os.ftruncate(file, os.lseek(file, 0, os.SEEK_CUR))
        finally:
            os.close(file)

    def _take_room(self, size: int) -> None:
        if not hasattr(os, "posix_fallocate"):
            return
        self.bio.flush()
        per_chunk = PER_CHUNK + 32 * len(self.channels)
        size += ROOM + per_chunk * (len(self.chunks) + 1)
        try:
            os.posix_fallocate(self.bio.fileno(), self.bio.tell(), size)
        except OSError as error:
            if error.errno not in NOT_SUPPORTED:
                raise


class _Writer(Writer):
    STORAGE_PLUGINS = {StoragePlugin.MCAP: WholeMcap}


class BagWriter:
    """Writes messages to a new rosbag2 folder, in a thread of its own. While WAITING_BYTES wait,
    and after an error, further messages are lost. `failed(error)` is called for an error, in that
    thread; `taken` and `lost` count messages by topic.

    Raises OSError, or rosbags' WriterError, if the folder cannot be made.
    """

    def __init__(self, path: Path, compressed: bool, failed: Callable[[Exception], None]):
        self.path, self._failed = path, failed
        self._writer = _Writer(path, version=9, storage_plugin=StoragePlugin.MCAP)
        if compressed:
            self._writer.set_compression(CompressionMode.STORAGE, CompressionFormat.ZSTD)
        try:
            self._writer.open()
        except OSError:
            shutil.rmtree(path, ignore_errors=True)
            raise
        self._store = get_typestore(Stores.LATEST)
        self.taken, self.lost = Counter[str](), Counter[str]()
        self.error: Exception | None = None
        self._waiting: SimpleQueue[tuple[Connection, int, bytes] | None] = SimpleQueue()
        self._bytes, self._lock = 0, threading.Lock()
        # a daemon: one that nobody closes, as no node could be made around it, keeps no process
        self._thread = threading.Thread(target=self._work, name="recording", daemon=True)
        self._thread.start()

    def topic(self, name: str, type_name: str, latched: bool) -> Callable[[int, bytes], None]:
        """The function that writes a message of a topic with its time in ns; to be called before
        the first message.
        """
        connection = self._writer.add_connection(
            name, type_name, typestore=self._store, offered_qos_profiles=[_offered(latched)]
        )
        self.taken[name] = 0

        def take(time_ns: int, data: bytes) -> None:
            with self._lock:
                if self.error is not None or self._bytes + len(data) > WAITING_BYTES:
                    self.lost[name] += 1
                    return
                self._bytes += len(data)
            self.taken[name] += 1
            self._waiting.put((connection, time_ns, data))

        return take

    def close(self) -> None:
        """Write the waiting messages, as far as possible, and end the recording."""
        self._waiting.put(None)
        self._thread.join()
        storage = self._writer.storage
        if not isinstance(storage, WholeMcap):
            return  # it is closed
        if self.error is None and storage.chunk.bio.tell():
            try:
                storage.close_chunk()
            except OSError as error:
                self.error = error
        if self.error is not None:
            self._forget(storage.drop_chunk())
        self._writer.close()

    def _work(self) -> None:
        """Write until None comes."""
        while (entry := self._waiting.get()) is not None:
            connection, time_ns, data = entry
            try:
                if self.error is None:
                    self._writer.write(connection, time_ns, data)
                else:
                    self._count_lost(connection.topic, 1)
            except Exception as error:
                self._writer.counts[connection.id] += 1  # it is in the chunk that was not written
                self.error = error
                self._failed(error)
            with self._lock:
                self._bytes -= len(data)

    def _forget(self, lost: dict[int, int]) -> None:
        """Messages of a chunk that was not written, by connection."""
        for connection in self._writer.connections:
            count = lost.get(connection.id, 0)
            self._writer.counts[connection.id] -= count
            self._count_lost(connection.topic, count)

    def _count_lost(self, topic: str, count: int) -> None:
        self.taken[topic] -= count
        self.lost[topic] += count


def _offered(latched: bool) -> Qos:
    """The quality of service that a player of the recording offers."""
    durability = QosDurability.TRANSIENT_LOCAL if latched else QosDurability.VOLATILE
    never = QosTime(2147483647, 4294967295)
    return Qos(
        QosHistory.KEEP_LAST,
        10,
        QosReliability.RELIABLE,
        durability,
        never,
        never,
        QosLiveliness.AUTOMATIC,
        never,
        False,
    )
