"""A producer for header names that Python's client does not let through: any bytes at all."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path

import confluent_kafka

# From librdkafka's header: the tags of `rd_kafka_producev`, and its producer type.
_END, _TOPIC, _PARTITION, _VALUE, _HEADERS = 0, 1, 3, 4, 10
_PRODUCER = 0


class RawProducer:
    """One producer over the library that Python's client brings along."""

    def __init__(self, bootstrap: str) -> None:
        """Open it."""
        folder = Path(confluent_kafka.__file__).parent.parent / "confluent_kafka.libs"
        (path,) = folder.glob("librdkafka-*")
        self._lib = lib = ctypes.CDLL(str(path))
        for name in ("rd_kafka_conf_new", "rd_kafka_new", "rd_kafka_headers_new"):
            getattr(lib, name).restype = ctypes.c_void_p
        conf = ctypes.c_void_p(lib.rd_kafka_conf_new())
        said = ctypes.create_string_buffer(512)
        lib.rd_kafka_conf_set(conf, b"bootstrap.servers", bootstrap.encode(), said, 512)
        self._handle = ctypes.c_void_p(lib.rd_kafka_new(_PRODUCER, conf, said, 512))
        assert self._handle.value, said.value

    def send(
        self,
        topic: str,
        partition: int,
        value: bytes | None,
        headers: Sequence[tuple[bytes, bytes]],
    ) -> None:
        """Produce one record and wait until the broker has it."""
        lib = self._lib
        given = ctypes.c_void_p(lib.rd_kafka_headers_new(ctypes.c_size_t(8)))
        for name, content in headers:
            lib.rd_kafka_header_add(
                given, name, ctypes.c_ssize_t(len(name)), content, ctypes.c_ssize_t(len(content))
            )
        error = lib.rd_kafka_producev(
            self._handle,
            *(_TOPIC, topic.encode()),
            *(_PARTITION, ctypes.c_int32(partition)),
            *(_VALUE, value, ctypes.c_size_t(len(value or b""))),
            *(_HEADERS, given),
            _END,
        )
        assert error == 0
        assert lib.rd_kafka_flush(self._handle, 10_000) == 0

    def close(self) -> None:
        """Close it."""
        self._lib.rd_kafka_destroy(self._handle)
