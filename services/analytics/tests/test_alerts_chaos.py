"""Fifty flapping rules while everything around the alerts job fails: due is delivered.

What must be told is worked out from the values alone, by a loop that shares nothing with
the evaluator.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest
from alerts_job import AlertsJob, Receiver, define
from redis import Redis
from weir.rows import Row
from weir_local.kafka import Broker
from weir_local.testing import running_broker
from weir_local.waiting import wait_until
from written import PaneKey, Writer

RULES = 50
LIMIT, LOW, HIGH = 10, 3, 12
FLIP = 0.04
START_MS = 1_800_000_000_000
MINUTE_MS = 60_000
# A minute of events for each of these, so that changes come about as fast as they are told.
STEP_S = 0.5
RECOUNT_S = 0.2
PAUSE_S = (3.0, 12.0)
RECEIVER_DOWN_S = 60.0
SETTLED_S = 180.0
METRIC = {
    "events": {"type": "t"},
    "by": ["data.k"],
    "aggregates": ["count"],
    "resolution": "1m",
    "keep": {"1m": "7d"},
    "allowed_lateness": "10m",
}


class Told(NamedTuple):
    """One message, as far as it is due.

    Attributes:
        kind: `firing` or `resolved`.
        rule: Which rule.
        at_ms: End of the minute that made it.
    """

    kind: str
    rule: str
    at_ms: int


class Flapping:
    """The rules' values, minute after minute, in a store that may be lost."""

    def __init__(self, bootstrap: str, redis: Redis, hook: Receiver, dice: random.Random) -> None:
        self._redis, self._dice = redis, dice
        webhook = {"url": hook.url, "secret": "secret://hook"}
        define(bootstrap, "channel", "hook", {"webhook": webhook}, START_MS - 1)
        self._vid = define(bootstrap, "metric", "m", METRIC, START_MS - 1)
        for n in range(RULES):
            body = {
                "metric": "m",
                "aggregate": "count",
                "window": "1m",
                "where": f"k = 'k{n}'",
                "above": LIMIT,
                "route": {"channels": ["hook"], "repeat": "0s"},
            }
            define(bootstrap, "rule", f"r{n}", body, START_MS - 1)
        self._values: list[list[int]] = []
        self._writer = Writer(redis, epoch=1)

    @property
    def through_ms(self) -> int:
        """Return processed-through after the last minute."""
        return START_MS + len(self._values) * MINUTE_MS

    def step(self) -> None:
        """Count one minute more: each rule goes on as it is, or flips."""
        before = self._values[-1] if self._values else [LOW] * RULES
        flipped = {LOW: HIGH, HIGH: LOW}
        self._values.append([flipped[v] if self._dice.random() < FLIP else v for v in before])
        self._writer.commit(self._panes(len(self._values) - 1), self.through_ms)

    def lose_store(self) -> None:
        """Empty Redis; then all is counted again from the log's beginning, in some batches."""
        self._redis.flushall()
        self._writer = Writer(self._redis, epoch=self._writer.epoch + 1, reason="lost")
        count = len(self._values)
        places = [0, min(1, count), count // 2, count]
        for first, last in pairwise(places):
            time.sleep(RECOUNT_S)  # the pace of a recount, not a wait
            panes = {key: row for n in range(first, last) for key, row in self._panes(n).items()}
            self._writer.commit(panes, START_MS + last * MINUTE_MS)

    def due(self) -> set[Told]:
        """Return what must have been told by now."""
        found = set()
        for n in range(RULES):
            high = False
            for minute, values in enumerate(self._values):
                if (values[n] > LIMIT) != high:
                    high = not high
                    kind = "firing" if high else "resolved"
                    found.add(Told(kind, f"r{n}", START_MS + (minute + 1) * MINUTE_MS))
        return found

    def _panes(self, minute: int) -> dict[PaneKey, dict[str, Row]]:
        rows = {f"=k{n}": Row(value) for n, value in enumerate(self._values[minute])}
        return {(self._vid, 60, START_MS // 1000 + minute * 60): rows}


class Chaos:
    """Everything that fails, one thing or more at a time."""

    def __init__(self, broker: Broker, job: AlertsJob, hook: Receiver, flapping: Flapping) -> None:
        self._broker, self._job, self._hook, self._flapping = broker, job, hook, flapping
        self._mends: list[tuple[float, str]] = []
        self.happened: list[str] = []

    def fail(self, what: str, lasts_s: float) -> None:
        """Break something; what is broken already stays so."""
        if any(name == what for _, name in self._mends):
            return
        self.happened.append(what)
        if what == "store":
            self._flapping.lose_store()
            return
        if what == "job":
            self._job.kill()
        elif what == "kafka":
            self._broker.kill()
        else:
            self._hook.is_down = True
        self._mends.append((time.monotonic() + lasts_s, what))

    def mend(self, *, everything: bool = False) -> None:
        """Bring back what has been away for long enough, and a job that has ended by itself."""
        now_s = time.monotonic()
        over = [one for one in self._mends if everything or one[0] <= now_s]
        self._mends = [one for one in self._mends if one not in over]
        for _, what in over:
            if what == "kafka":
                self._broker.start()
            elif what == "receiver":
                self._hook.is_down = False
        killed = any(what == "job" for _, what in self._mends)
        if self._job.exit_code is not None and not killed:
            self._job.launch()


@pytest.fixture
def hook() -> Iterator[Receiver]:
    """Return a receiver on loopback."""
    receiver = Receiver()
    yield receiver
    receiver.close()


@pytest.mark.kafka
@pytest.mark.redis
@pytest.mark.parametrize(
    "seconds",
    [pytest.param(30), pytest.param(300, marks=pytest.mark.disruption)],
)
def test_what_is_due_is_delivered(
    tmp_path: Path, redis_url: str, hook: Receiver, seconds: int
) -> None:
    """Kills, outages and losses at random: each firing and each resolve is told, nothing else."""
    seed = int(os.environ.get("WEIR_SEED") or random.randrange(2**32))  # noqa: S311
    dice = random.Random(seed)  # noqa: S311
    with running_broker(tmp_path / "kafka") as broker, Redis.from_url(redis_url) as redis:
        redis.flushall()
        flapping = Flapping(broker.bootstrap, redis, hook, dice)
        job = AlertsJob(broker.bootstrap, redis_url, tmp_path)
        chaos = Chaos(broker, job, hook, flapping)
        try:
            job.start()
            shake(chaos, flapping, dice, seconds)
            chaos.mend(everything=True)

            def is_settled() -> bool:
                chaos.mend()
                return flapping.due() <= told(hook).keys()

            wait_until(
                is_settled,
                timeout_s=SETTLED_S,
                what=f"everything told, WEIR_SEED={seed}, after {chaos.happened}",
                every_s=0.5,
            )
        finally:
            job.kill()
    keys = told(hook)
    extra = sorted(keys.keys() - flapping.due())
    assert extra == [], f"WEIR_SEED={seed}: {story(hook, extra[0].rule)}"
    assert {"job", "kafka", "store", "receiver"} <= set(chaos.happened)
    assert hook.forged == 0
    assert_pairs(keys, f"WEIR_SEED={seed}")


def shake(chaos: Chaos, flapping: Flapping, dice: random.Random, seconds: int) -> None:
    """Go on counting while one thing after the other fails; each of the four fails."""
    wanted = ["receiver", "job", "kafka", "store"]
    end_s = time.monotonic() + seconds
    fail_s = time.monotonic() + 2
    # A broker that is slow to come back may take what time there was for the last of them.
    while wanted or time.monotonic() < end_s:
        flapping.step()
        if time.monotonic() >= fail_s:
            what = wanted.pop(0) if wanted else dice.choice(["job", "kafka", "store", "job"])
            lasts_s = dice.uniform(0, 6)
            if what == "receiver":
                lasts_s = min(RECEIVER_DOWN_S, seconds / 2)
            chaos.fail(what, lasts_s)
            fail_s = time.monotonic() + dice.uniform(*PAUSE_S) * min(1, seconds / 100)
        chaos.mend()
        time.sleep(STEP_S)  # the pace of the load, not a wait


def told(hook: Receiver) -> dict[Told, tuple[str, int]]:
    """Return what was told, each with its dedup key and its place in the order of arrival."""
    found: dict[Told, tuple[str, int]] = {}
    for place, body in enumerate(hook.bodies):
        message = Told(body["kind"], body["rule"], body["at_ms"])
        found.setdefault(message, (body["dedup_key"], place))
    return found


def story(hook: Receiver, rule: str) -> list[tuple[object, ...]]:
    """Return all that was told of a rule, for whoever has to find what went wrong."""
    return [
        (place, body["kind"], body["at_ms"], body["since_ms"], body["value"], body["dedup_key"][:6])
        for place, body in enumerate(hook.bodies)
        if body["rule"] == rule
    ]


def assert_pairs(told: dict[Told, tuple[str, int]], seed: str) -> None:
    """Assert that each resolve has its firing's key and came after it."""
    for n in range(RULES):
        mine = sorted((one for one in told if one.rule == f"r{n}"), key=lambda one: one.at_ms)
        for fired, resolved in zip(mine[::2], mine[1::2], strict=False):
            assert (fired.kind, resolved.kind) == ("firing", "resolved"), seed
            assert told[fired][0] == told[resolved][0], seed
            assert told[fired][1] < told[resolved][1], seed
