"""Recordings in the MCAP format. A full disk does not damage them, and messages that arrive too
fast do not fill the memory.
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
"""Maximum total size (bytes) of the messages that wait for the disk."""
INDEX_BYTES = 2**20
"""Bytes that are reserved for the end of the file. PER_CHUNK bytes are added for each chunk."""
PER_CHUNK = 1024
NOT_SUPPORTED = (errno.EOPNOTSUPP, errno.ENOSYS)


class WholeMcap(McapWriter):
    """An MCAP file that can be finished at any time. Before a chunk is written, disk space for the
    chunk and for the index is reserved; if that fails, OSError is raised and nothing is written.
    """

    def __init__(self, path: Path, compression: CompressionMode):
        super().__init__(path, compression)
        self._reserve(0)

    def close_chunk(self) -> None:
        """Write the chunk that is being collected."""
        messages = sum(map(len, self.chunk.msgs.values()))
        size = self.chunk.bio.tell()
        self._reserve(size + size // 128 + 16 * messages)  # in case it cannot be compressed
        super().close_chunk()

    def drop_chunk(self) -> dict[int, int]:
        """Discard the chunk that is being collected. Returns the number of its messages by
        connection.
        """
        lost = {number: len(messages) for number, messages in self.chunk.msgs.items()}
        for number, count in lost.items():
            self.channel_stats[number] -= count
        # the lists and the buffer become those of a new chunk
        self.chunk.msgs.clear()
        self.chunk.bio.seek(0)
        self.chunk.bio.truncate()
        return lost

    def close(self, version: int, metadata: str) -> None:
        """Finish the file, and release the reserved space."""
        file = os.dup(self.bio.fileno())  # the duplicate shares the position of the last byte
        try:
            super().close(version, metadata)
            os.ftruncate(file, os.lseek(file, 0, os.SEEK_CUR))
        finally:
            os.close(file)

    def _reserve(self, size: int) -> None:
        if not hasattr(os, "posix_fallocate"):
            return
        self.bio.flush()
        # every chunk and every channel in it has an entry in the index at the end
        per_chunk = PER_CHUNK + 32 * len(self.channels)
        size += INDEX_BYTES + per_chunk * (len(self.chunks) + 1)
        try:
            # posix_fallocate reserves blocks, so a full disk is noticed before anything is written
            os.posix_fallocate(self.bio.fileno(), self.bio.tell(), size)
        except OSError as error:
            if error.errno not in NOT_SUPPORTED:
                raise


class _Writer(Writer):
    STORAGE_PLUGINS = {StoragePlugin.MCAP: WholeMcap}


class BagWriter:
    """Writes messages to a new rosbag2 folder in a separate thread. New messages are lost if
    WAITING_BYTES of messages are waiting, or after an error. After an error, the thread calls
    `failed(error)`. `taken` and `lost` count messages by topic.

    Raises OSError, or rosbags' WriterError, if the folder cannot be created.
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
        # a daemon thread lets the process end if no node could be created and nobody closes the
        # writer
        self._thread = threading.Thread(target=self._work, name="recording", daemon=True)
        self._thread.start()

    def topic(self, name: str, type_name: str, latched: bool) -> Callable[[int, bytes], None]:
        """Return a function that writes a message on a topic with its time in ns. Call this method
        before the first message.
        """
        connection = self._writer.add_connection(
            name, type_name, typestore=self._store, offered_qos_profiles=[_offered(latched)]
        )
        self.taken[name] = 0

        def take(time_ns: int, data: bytes) -> None:
            with self._lock:
                # the caller must not wait for the disk: messages are lost instead
                if self.error is not None or self._bytes + len(data) > WAITING_BYTES:
                    self.lost[name] += 1
                    return
                self._bytes += len(data)
            self.taken[name] += 1
            self._waiting.put((connection, time_ns, data))

        return take

    def close(self) -> None:
        """Write the waiting messages as far as possible, and finish the recording."""
        # None ends the thread after all messages before it
        self._waiting.put(None)
        self._thread.join()
        storage = self._writer.storage
        if not isinstance(storage, WholeMcap):
            return  # it is already closed
        # write the last chunk here, where it can be dropped if the disk is full
        if self.error is None and storage.chunk.bio.tell():
            try:
                storage.close_chunk()
            except OSError as error:
                self.error = error
        if self.error is not None:
            self._forget(storage.drop_chunk())
        self._writer.close()

    def _work(self) -> None:
        """Write messages until None arrives."""
        while (entry := self._waiting.get()) is not None:
            connection, time_ns, data = entry
            try:
                if self.error is None:
                    self._writer.write(connection, time_ns, data)
                else:
                    self._count_lost(connection.topic, 1)
            except Exception as error:
                self._writer.counts[connection.id] += 1  # it is in the lost chunk (see _forget)
                self.error = error
                self._failed(error)
            with self._lock:
                self._bytes -= len(data)

    def _forget(self, lost: dict[int, int]) -> None:
        """Count the messages in a chunk that was not written, given by connection, as lost."""
        for connection in self._writer.connections:
            count = lost.get(connection.id, 0)
            self._writer.counts[connection.id] -= count
            self._count_lost(connection.topic, count)

    def _count_lost(self, topic: str, count: int) -> None:
        self.taken[topic] -= count
        self.lost[topic] += count


def _offered(latched: bool) -> Qos:
    """Return the quality of service that a player of the recording offers."""
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
