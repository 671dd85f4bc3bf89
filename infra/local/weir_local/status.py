"""How the stack is: one row a part, as `make status` prints it.

What a process says of itself comes from its heartbeat in Redis, as everything else
that shows health takes it from there.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import redis
from weir import names
from weir.clock import SystemClock

if TYPE_CHECKING:
    from weir_local.stack import Stack

HEADER = ("part", "running", "ready", "lag", "fresh", "memory", "log")


@dataclass(frozen=True)
class Row:
    """What is known of one part, ready to be printed."""

    part: str
    running: str
    ready: str
    lag: str
    fresh: str
    memory: str
    log: str

    @property
    def cells(self) -> tuple[str, ...]:
        """Return the columns in the order of `HEADER`."""
        return tuple(getattr(self, name) for name in HEADER)


def rows(stack: Stack) -> list[Row]:
    """Return one row for each part of the stack."""
    beats = heartbeats(stack)
    now_ms = SystemClock().now_ms()
    return [_row(stack, name, beats.get(name), now_ms) for name in stack.parts]


def heartbeats(stack: Stack) -> dict[str, dict[str, Any]]:
    """Return the latest heartbeat of each part by name; none while Redis is away."""
    client = redis.Redis(port=stack.redis.port, socket_timeout=2, socket_connect_timeout=2)
    beats: dict[str, dict[str, Any]] = {}
    try:
        for key in client.scan_iter(match=names.part_key("*", "*"), count=1000):
            value = client.get(key)
            name = key.decode().removeprefix(names.PREFIX).split(":")[1]
            beat = json.loads(value) if value else {}
            if beat.get("at_ms", 0) >= beats.get(name, {}).get("at_ms", 0):
                beats[name] = beat
    except redis.RedisError:
        return {}
    finally:
        client.close()
    return beats


def table(found: list[Row]) -> str:
    """Return the rows as aligned text with a header."""
    lines = [HEADER, *(row.cells for row in found)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(HEADER))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def _row(stack: Stack, name: str, beat: dict[str, Any] | None, now_ms: int) -> Row:
    part = stack.parts[name]
    pid = part.pid()
    detail = (beat or {}).get("detail") or {}
    lag = detail.get("lag_records")
    through_ms = detail.get("processed_through_ms")
    return Row(
        part=name,
        running=f"pid {pid}" if pid else "no",
        ready=("yes" if stack.is_ready(name) else "not yet") if pid else "no",
        lag="-" if lag is None else f"{lag} records",
        fresh="-" if not through_ms else f"{max(0, now_ms - through_ms) / 1000:.1f} s ago",
        memory=f"{part.memory_bytes() / 1e6:.0f} MB" if pid else "-",
        log=str(part.log_path),
    )
