"""For how long the log still holds what is not counted: looked at here, driver or no driver.

That matters most while nobody counts, so it needs neither the driver nor Redis: how far
counting is was left in Kafka, and everything else is the log's own. Only where this process
may not look there, or cannot read what was left, is the driver's heartbeat believed instead;
and where there is none, what was seen last, less the time since then.
"""

from __future__ import annotations

import math
import threading
from dataclasses import replace
from enum import IntEnum
from typing import Protocol

import structlog
from weir.clock import Clock
from weir.log_left import LogLeft, log_told, read_log_told
from weir_reading.log_look import GroupPlaces, LogLook
from weir_reading.log_sight import LOOK_S, LogSight
from weir_reading.parts import Part

from weir_dashboard import instruments
from weir_dashboard.holding import LogHeld, log_held, newest_of

log = structlog.get_logger()


class Heartbeats(Protocol):
    """The newest heartbeats of the parts."""

    def named(self, name: str) -> list[Part]:
        """Return those of one name, the newest first."""
        ...


class Store(Protocol):
    """What Redis holds of counting."""

    @property
    def is_emptied(self) -> bool:
        """Whether it answers and holds nothing."""
        ...


class _Urgency(IntEnum):
    SOON = 1
    LOST = 2


class LogKept:
    """Looks every 15 s, on a thread of its own, and logs when time begins to run out."""

    def __init__(
        self, look: LogLook, places: GroupPlaces, parts: Heartbeats, store: Store, clock: Clock
    ) -> None:
        self._look, self._places = look, places
        self._parts, self._store, self._clock = parts, store, clock
        self._stopping = threading.Event()
        self._sight = LogSight(self._looked, clock)
        self._was_emptied = False
        # Where the log began when an empty store was first seen: nothing of it is counted.
        self._start: dict[int, int] = {}
        # The worst that was logged of lanes and of live counting, since each was well.
        self._logged: dict[bool, _Urgency] = {}

    def held(self) -> LogHeld:
        """Return for how long the log holds what is not counted, and the warning if it is soon."""
        return log_held(self._left())

    def waiting(self) -> int | None:
        """Return how many records were not counted when last looked at; None: not known."""
        seen = self._sight.now()
        return None if seen is None else seen.waiting

    def told(self) -> dict[str, int | bool | None]:
        """Return what this process's heartbeat says of the log: what it saw itself."""
        return log_told(self._sight.now())

    def start(self) -> None:
        """Begin to look."""
        threading.Thread(target=self._run, name="log-kept", daemon=True).start()

    def stop(self) -> None:
        """Look no more. A look that is under way is not waited for: it changes nothing."""
        self._stopping.set()

    def look(self) -> None:
        """Look once, and tell of it."""
        self._sight.once()
        self._tell()

    def _run(self) -> None:
        while not self._stopping.is_set():
            self.look()
            self._stopping.wait(LOOK_S)

    def _looked(self) -> LogLeft | None:
        places = self._places.read()
        if places is None:
            return None
        # A driver that is there finds an empty store within a second or two, and opens lanes.
        emptied = self._store.is_emptied
        if emptied and self._was_emptied:
            self._start = self._look.start(places) | self._start
            places = {
                p: replace(one, lane=self._start[p], lane_ms=None, again=True, rest=None)
                for p, one in places.items()
            }
        if not emptied:
            self._start = {}
        self._was_emptied = emptied
        return self._look.left(places)

    def _left(self) -> LogLeft | None:
        if seen := self._sight.now():
            return seen
        panes = newest_of(self._parts.named("panes"), self._clock.now_ms())
        return read_log_told(panes.detail if panes is not None else None) or self._sight.last()

    def _tell(self) -> None:
        left = self._left()
        instruments.log_left.set(_seconds(left.ms) if left is not None else math.nan)
        instruments.log_kept.set(_seconds(left.kept_ms) if left is not None else math.nan)
        if left is None:
            return  # that nobody can tell is no all-clear
        held = log_held(left)
        if held.warning is None:
            if self._logged:
                log.info("log_lasts", partition=held.partition, left_ms=held.left_ms)
            self._logged = {}
            return
        if not left.are_both_short:
            self._logged.pop(not left.is_lane, None)
        urgency = _Urgency.LOST if left.is_gone else _Urgency.SOON
        if urgency <= self._logged.get(left.is_lane, 0):
            return
        self._logged[left.is_lane] = urgency
        log.error(
            "log_running_out",
            why=held.warning,
            partition=held.partition,
            left_ms=held.left_ms,
            kept_ms=held.kept_ms,
        )


def _seconds(ms: int | None) -> float:
    return math.inf if ms is None else ms / 1000
