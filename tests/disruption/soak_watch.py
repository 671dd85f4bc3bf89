"""What a soak watches while it runs: frames, ages, and what every part uses."""

from __future__ import annotations

import contextlib
import json
import math
import os
import threading
import urllib.request
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from http.client import HTTPException
from typing import Any, NamedTuple, TypeVar

import psutil
import redis
from confluent_kafka import Consumer, KafkaException, TopicPartition
from disruption.rig import SERVICES, Rig
from disruption.scene import Scene
from disruption.soak_summary import Sample, messages
from load import Load
from recount import Api
from weir import names
from weir.alerts.records import Look
from weir.alerts.records import Reader as AlertReader
from weir.clock import SystemClock

T = TypeVar("T")
# The engine tells of each of its own; others are one process each.
OF_ENGINE = ("driver", "jvm", "workers")
LOOK_S = 0.1
STEP_MS = 10_000
QUERY = {
    "metric": "load",
    "aggregate": "count",
    "window": {"kind": "tumbling", "length": "10s"},
    "step": "10s",
    "by": [],
    "range": {"last": "3h"},
}
FLAT = {
    "dedup_entries": "weir_panes_dedup_entries_count",
    "dedup_bytes": "weir_panes_dedup_bytes",
    "checkpoint_files": "weir_panes_checkpoint_files_count",
    "panes_threads": "weir_panes_threads_count",
    "panes_files": "weir_panes_open_files_count",
}


class Span(NamedTuple):
    """A time in which something went on, by the wall clock in ms.

    Attributes:
        from_ms: When it began.
        to_ms: When all was well again; infinity while it lasts.
        what: Its name.
        is_fault: Whether something was broken: an edit, a burst and a comparison break nothing.
    """

    from_ms: float
    to_ms: float
    what: str
    is_fault: bool


@dataclass
class Spans:
    """What went on when.

    Attributes:
        found: In the order of their beginnings.
    """

    found: list[Span] = field(default_factory=list)

    def begin(self, what: str, *, is_fault: bool = False) -> None:
        """Note that something begins now."""
        self.found.append(Span(SystemClock().now_ms(), math.inf, what, is_fault))

    def end(self, settle_s: float = 0.0) -> None:
        """Note that all is well again from so many seconds after now."""
        self.found[-1] = self.found[-1]._replace(to_ms=SystemClock().now_ms() + settle_s * 1000)

    def covers(self, from_ms: float, to_ms: float, what: str = "") -> bool:
        """Return whether anything (of this name) went on within a time."""
        return any(
            one.from_ms <= to_ms and from_ms <= one.to_ms and what in ("", one.what)
            for one in self.found
        )

    def is_broken(self, at_ms: float) -> bool:
        """Return whether a fault explains what was said at a moment."""
        return any(one.is_fault and one.from_ms <= at_ms <= one.to_ms for one in self.found)


@dataclass
class Watch:
    """Something that is looked at by a thread of its own until it is stopped."""

    rig: Rig
    load: Load
    spans: Spans

    def __post_init__(self) -> None:
        self.stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopped.set()
        self._thread.join(30)

    def _run(self) -> None:
        raise NotImplementedError


@dataclass
class Revisions(Watch):
    """How long it takes until what was acknowledged is counted.

    Attributes:
        ages: When it was acknowledged, and how many seconds it took.
    """

    ages: list[tuple[float, float]] = field(default_factory=list)

    def calm_s(self) -> list[float]:
        """Return the ages while nothing was broken."""
        return [age for at, age in self.ages if not self.spans.covers(at, at + age * 1000)]

    def _run(self) -> None:
        api = Api(self.rig.dashboard_url, self.rig.key)
        clock = SystemClock()
        while not self.stopped.is_set():
            acknowledged_ms, through_ms = clock.now_ms(), 0
            while through_ms <= acknowledged_ms and not self.stopped.wait(LOOK_S):
                with contextlib.suppress(OSError, ValueError):
                    fresh = api.call("GET", "/status")["fresh"]
                    through_ms = fresh["processed_through_ms"] or 0
            if through_ms > acknowledged_ms:
                self.ages.append((acknowledged_ms, (clock.now_ms() - acknowledged_ms) / 1000))


@dataclass
class Frames(Watch):
    """A client of the live socket: how old its counts are, and how long it hears nothing.

    Attributes:
        ages: When it was acknowledged, and how many seconds it took to a frame that has it.
        gaps: Begin and end of the times without a frame, in ms, from two seconds on.
        count: How many frames came.
    """

    ages: list[tuple[float, float]] = field(default_factory=list)
    gaps: list[tuple[float, float]] = field(default_factory=list)
    count: int = 0

    def calm_s(self) -> list[float]:
        """Return the ages while nothing was broken."""
        return [age for at, age in self.ages if not self.spans.covers(at, at + age * 1000)]

    def gap_s(self) -> float:
        """Return the longest time without a frame while the dashboard was not broken."""
        found = [
            (end - begin) / 1000
            for begin, end in self.gaps
            if not self.spans.covers(begin, end, "kill dashboard")
        ]
        return max(found, default=0.0)

    def _run(self) -> None:
        from websockets.exceptions import WebSocketException

        self._counts: dict[int, int] = {}
        self._due: deque[tuple[float, int]] = deque(maxlen=100_000)
        self._last_ms = float(SystemClock().now_ms())
        while not self.stopped.is_set():
            try:
                self._follow()
            except (OSError, TimeoutError, WebSocketException):
                self.stopped.wait(0.5)
        # Silence that lasts to the end is one, too.
        self._note_gap(SystemClock().now_ms())

    def _note_gap(self, now_ms: float) -> None:
        if now_ms - self._last_ms > 2_000:
            self.gaps.append((self._last_ms, now_ms))

    def _follow(self) -> None:
        from websockets.sync.client import connect

        url = self.rig.dashboard_url.replace("http", "ws") + "/api/v1/live"
        with connect(
            url,
            subprotocols=["weir.v1"],  # type: ignore[list-item]
            open_timeout=5,
            close_timeout=1,
            max_size=None,
        ) as socket:
            socket.send(json.dumps({"op": "hello", "v": 1, "auth": self.rig.key}))
            socket.send(json.dumps({"op": "subscribe", "id": 1, "to": "query", "query": QUERY}))
            while not self.stopped.is_set():
                self._note_due()
                try:
                    text = socket.recv(timeout=0.25)
                except TimeoutError:
                    continue
                self._take(json.loads(text))

    def _note_due(self) -> None:
        now_ms, acknowledged = SystemClock().now_ms(), self.load.acknowledged
        if acknowledged and (not self._due or self._due[-1][1] < acknowledged):
            self._due.append((now_ms, acknowledged))

    def _take(self, frame: dict[str, Any]) -> None:
        now_ms = SystemClock().now_ms()
        self._note_gap(now_ms)
        self._last_ms = now_ms
        self.count += 1
        told = frame.get("answer") if frame.get("op") == "snapshot" else frame
        if frame.get("op") not in ("snapshot", "delta") or told is None:
            return
        for series in told.get("series", ()):
            for at_ms, count in zip(told["t_ms"], series["count"], strict=True):
                self._counts[at_ms] = count or 0
        total = sum(self._counts.values())
        while self._due and self._due[0][1] <= total:
            due_ms, _ = self._due.popleft()
            self.ages.append((due_ms, (now_ms - due_ms) / 1000))


def sample(rig: Rig, minute: float) -> Sample:
    """Return what every process uses now; what is down uses nothing."""
    told = metrics(rig, "panes")
    others = [name for name in (*SERVICES, "redis", "kafka") if name != "panes"]
    rss = {name: rig.part(name).memory_bytes() for name in others}
    rss |= {f"panes {one}": round(told.get(memory_of(one), 0)) for one in OF_ENGINE}
    flat: dict[str, float] = {}
    with contextlib.suppress(redis.RedisError):
        client = redis.Redis.from_url(rig.redis_url, socket_timeout=5)
        memory, keys = client.info("memory"), client.dbsize()
        client.close()
        flat["redis_bytes"], flat["redis_keys"] = float(memory["used_memory"]), float(keys)
        flat["bytes_per_key"] = flat["redis_bytes"] / max(1.0, flat["redis_keys"])
    flat |= {name: told[metric] for name, metric in FLAT.items() if metric in told}
    flat["sockets"], flat["threads"] = _sockets_and_threads(rig)
    return Sample(round(minute, 2), rss, flat)


def memory_of(process: str) -> str:
    """Return the metric that tells the memory of a process of the engine."""
    return f'weir_panes_resident_memory_bytes{{process="{process}"}}'


def _sockets_and_threads(rig: Rig) -> tuple[float, float]:
    sockets = threads = 0
    for name in SERVICES:
        pid = rig.part(name).pid()
        if pid is None:
            continue
        for process in _session(pid):
            with contextlib.suppress(psutil.Error):
                sockets += len(process.net_connections())
                threads += process.num_threads()
    return sockets, threads


def _session(leader: int) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(OSError):
            if os.getsid(process.pid) == leader:
                found.append(process)
    return found


def metrics(rig: Rig, part: str) -> dict[str, float]:
    """Return a part's own metrics by name and labels; none while it does not answer."""
    url = f"http://127.0.0.1:{rig.home.ports[f'{part} ops']}/metrics"
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            lines = answer.read().decode().splitlines()
    except OSError:
        return {}
    return figures_of(lines)


def figures_of(lines: Iterable[str]) -> dict[str, float]:
    """Return what Prometheus is told, by name and labels as they stand there."""
    found: dict[str, float] = {}
    for line in lines:
        name, _, value = line.rpartition(" ")
        if not name.startswith("#"):
            with contextlib.suppress(ValueError):
                found[name] = float(value)
    return found


def lag(rig: Rig) -> int:
    """Return how many records are not counted; -1 if the driver does not say, or not know."""
    found = metrics(rig, "panes").get("weir_panes_lag_records", math.nan)
    return -1 if math.isnan(found) else round(found)


def asked(question: Callable[[], T]) -> T | None:
    """Return an answer; None while who is asked is down or too slow to give it."""
    try:
        return question()
    except (OSError, HTTPException, KafkaException):
        return None


def batch_ms(rig: Rig) -> list[float]:
    """Return the times of all batches."""
    return [line["ms"] for line in rig.lines("panes", "batch")]


def verdict_lines(rig: Rig) -> list[dict[str, Any]]:
    """Return the log lines of all verdicts: of each start, and of what ended a life."""
    return [*rig.lines("panes", "reconciled"), *rig.lines("panes", "verdict")]


def verdicts(rig: Rig) -> dict[str, int]:
    """Return the verdicts by name."""
    return dict(Counter(line["verdict"] for line in verdict_lines(rig)))


def unexplained(lines: Iterable[Mapping[str, Any]], spans: Spans) -> list[str]:
    """Return the verdicts that are not ok and that no fault explains.

    Args:
        lines: Of all verdicts; the first start of all finds no mark, which is no fault.
        spans: What was broken when.
    """
    found = sorted(lines, key=lambda line: str(line["at"]))[1:]
    wrong = [line for line in found if line["verdict"] != "ok"]
    return [
        f"{line['at']} {line['verdict']}"
        for line in wrong
        if not spans.is_broken(instant_ms(line["at"]))
    ]


def messages_of(here: Scene) -> dict[str, Any]:
    """Return how many messages of the alarm were due and came."""
    pairs = zip(list(here.receiver.bodies), list(here.receiver.at_ms), strict=False)
    came = [(body["id"], at_ms) for body, at_ms in pairs]
    return messages(due_messages(here.rig.kafka_bootstrap, "alarm"), came)


def due_messages(bootstrap: str, channel: str) -> dict[str, int]:
    """Return the messages that `weir.alerts` says a channel must get, with when they were made."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "soak"})
    place = TopicPartition(names.ALERTS, 0, 0)
    _, end = consumer.get_watermark_offsets(place, timeout=10)
    consumer.assign([place])
    reader, found = AlertReader(), dict[str, int]()
    while reader.next_offset < end:
        message = consumer.poll(10)
        if message is None:
            break
        record = reader.take(message.offset() or 0, message.value() or b"")
        for one in record.messages if isinstance(record, Look) else ():
            if channel in one.channels:
                found.setdefault(one.notification.id, message.timestamp()[1])
    consumer.close()
    return found


def instant_ms(text: str) -> float:
    """Return the time of a log line, ms since the epoch."""
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1000
