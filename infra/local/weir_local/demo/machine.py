"""This machine's own figures, once a second."""

from __future__ import annotations

from dataclasses import dataclass

import psutil


@dataclass(frozen=True)
class Counters:
    """What the system has counted since it was started, in bytes, and when it was read."""

    at_s: float
    disk_read: int
    disk_written: int
    received: int
    sent: int


def read_counters(at_s: float) -> Counters:
    """Read the counters of disks and network; 0 where the system keeps none."""
    disk = psutil.disk_io_counters()
    net = psutil.net_io_counters()
    return Counters(
        at_s,
        disk.read_bytes if disk else 0,
        disk.write_bytes if disk else 0,
        net.bytes_recv if net else 0,
        net.bytes_sent if net else 0,
    )


def rates(before: Counters, now: Counters) -> dict[str, float]:
    """Return bytes a second between two readings; a counter that went back counts as 0."""
    seconds = max(now.at_s - before.at_s, 1e-3)

    def rate(name: str) -> float:
        difference: int = getattr(now, name) - getattr(before, name)
        return round(max(0, difference) / seconds, 1)

    return {
        "disk_read_bytes_per_s": rate("disk_read"),
        "disk_written_bytes_per_s": rate("disk_written"),
        "received_bytes_per_s": rate("received"),
        "sent_bytes_per_s": rate("sent"),
    }


def gauges() -> dict[str, float]:
    """Return CPU since the last call (percent of all cores), memory and disk in use."""
    memory = psutil.virtual_memory()
    disk = psutil.disk_usage("/")
    return {
        "cpu_percent": psutil.cpu_percent(interval=None),
        "memory_used_bytes": memory.total - memory.available,
        "memory_percent": memory.percent,
        "disk_used_bytes": disk.used,
        "disk_percent": disk.percent,
    }
