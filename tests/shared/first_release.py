"""What the first release has stored of a small installation, byte for byte.

Never written anew: what it holds is read for ever. A release that changes a format adds a
file of its own.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Value = bytes | dict[bytes, bytes]

_STATE: dict[str, Any] = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
# Of these hashes fields and values are no texts, and stand there in hex.
_BINARY = (":p:", ":ids:")

TOPICS: dict[str, list[tuple[bytes, bytes]]] = {
    topic: [(key.encode(), value.encode()) for key, value in records]
    for topic, records in _STATE["topics"].items()
}
"""Topic -> key and value of its records."""

FILES: dict[str, bytes] = {name: bytes.fromhex(text) for name, text in _STATE["files"].items()}
"""Name -> content of the runs of dedup."""


def redis_state() -> dict[str, Value]:
    """Return what Redis holds by key: a text, or a hash; of a stream, texts by id."""
    return {key: _value(key, told) for key, told in _STATE["redis"].items()}


def newer(text: bytes, **members: Any) -> bytes:
    """Return a JSON text as a newer release would have written it."""
    return json.dumps(json.loads(text) | {"v": 3} | members).encode()


def _value(key: str, told: Any) -> Value:
    if isinstance(told, str):
        return told.encode()
    if any(part in key for part in _BINARY):
        return {bytes.fromhex(field): bytes.fromhex(value) for field, value in told.items()}
    if ":names:" in key:
        return {bytes.fromhex(field): value.encode() for field, value in told.items()}
    return {field.encode(): value.encode() for field, value in told.items()}
