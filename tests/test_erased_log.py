"""Who was erased is counted by no metric, whatever ends meanwhile: held against a recount."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import redis
from account import Account, Erased, account_for, read_log
from equality import is_filled
from recount import Api, MetricSpec, compare, compare_ledger, panes_of
from weblog import iso
from weir.clock import SystemClock
from weir_local.testing import TestStack

TYPE, TENANT, PANE_MS = "dev.visit", "default", 10_000
SPAN_MS = 30 * PANE_MS
USERS, GONE = 12, ("user-3", "user-7")
SPECS = (
    (
        MetricSpec("visits", TYPE, ("page",), value=lambda event: float(event["data"]["ms"])),
        ("count", "sum", "min", "max", "last"),
    ),
    (MetricSpec("visitors", TYPE, distinct=lambda event: event["subject"]), ("count", "distinct")),
    (MetricSpec("by_user", TYPE, ("user",)), ("count",)),
)
BODIES = {
    "visits": "by: [data.page]\nvalue: data.ms\naggregates: [count, sum, min, max, last]",
    "visitors": "aggregates: [count, distinct(subject)]",
    "by_user": "by: [data.user]",
}


class Visits:
    """Visits of the last five minutes, some of them sent twice; the same for a seed."""

    def __init__(self, stack: TestStack, seed: int) -> None:
        self._stack, self._chance = stack, random.Random(seed)  # noqa: S311
        self._sent: list[dict[str, Any]] = []
        # Whole panes, all of them over for as long as the test runs.
        self._end_ms = SystemClock().now_ms() // PANE_MS * PANE_MS

    def send(self, count: int) -> None:
        """Send visits of all users, and some of those that were sent before."""
        chance = self._chance
        fresh = [self._event(len(self._sent) + n) for n in range(count)]
        self._sent += fresh
        self._stack.post([*fresh, *chance.sample(self._sent, count // 10)])

    def _event(self, n: int) -> dict[str, Any]:
        chance, user = self._chance, f"user-{self._chance.randrange(USERS)}"
        at_ms = self._end_ms - chance.randrange(1, SPAN_MS)
        data = {"page": f"/{chance.randrange(3)}", "ms": chance.randrange(1_000), "user": user}
        return {
            "specversion": "1.0",
            "type": TYPE,
            "source": "site",
            "id": f"visit-{n}",
            "subject": user,
            "time": iso(at_ms),
            "data": data,
        }


def erase(stack: TestStack, user: str) -> subprocess.Popen[str]:
    """Ask for an erasure on the command line, which waits for its end."""
    words = ("-m", "weir_cli", "erase", user)
    known = {"WEIR_DASHBOARD_URL": stack.dashboard_url, "WEIR_API_KEY": stack.key}
    return subprocess.Popen(  # noqa: S603  the command is ours
        [sys.executable, *words], env={**os.environ, **known}, stderr=subprocess.PIPE, text=True
    )


def erasures(stack: TestStack) -> list[Mapping[int, int]]:
    """Return from where in the log each erasure holds, as the log of definitions says it."""
    found: dict[int, Mapping[int, int]] = {}
    for record in read_log(stack.kafka_bootstrap, "weir.definitions"):
        said = json.loads(record.value or b"{}")
        if said.get("record") == "job" and "offsets" in said["facts"]:
            found[said["vid"]] = {int(p): n for p, n in said["facts"]["offsets"].items()}
    return list(found.values())


def account_of(stack: TestStack) -> tuple[Account, Erased]:
    """Return the account of the log, and from where on the users were gone."""
    gone = zip([(TENANT, user) for user in GONE], erasures(stack), strict=True)
    erased = dict(gone)
    return account_for(read_log(stack.kafka_bootstrap), erased=erased), erased


@pytest.fixture
def stack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestStack]:
    """Return a stack of this test's own, where nobody waits a day for the next erasure."""
    monkeypatch.setenv("WEIR_ANALYTICS_ERASE_HOURS", "0")
    running = TestStack(tmp_path)
    try:
        running.start()
        yield running
    finally:
        running.stop()


@pytest.mark.stack
@pytest.mark.disruption  # two kills and a lost Redis, each held against the log: minutes
def test_who_was_erased_is_counted_by_nobody(stack: TestStack, seed: int) -> None:
    """Before and after a kill of the engine in the middle of it, and an emptied Redis."""
    visits = Visits(stack, seed)
    for name, body in BODIES.items():
        text = f"kind: metric\nname: {name}\nevents: {{type: {TYPE}}}\nresolution: 10s\n{body}\n"
        stack.define("metric", name, text)
    visits.send(800)
    stack.wait_until(lambda: all(is_filled(stack, name) for name in BODIES), "the metrics", 60)
    for user in GONE:
        asked = erase(stack, user)
        for _ in range(5):
            visits.send(100)
        stack.kill("panes")
        visits.send(100)
        stack.restart("panes")
        _, errors = asked.communicate(timeout=180)
        assert asked.returncode == 0, errors
    visits.send(300)
    erased = assert_equal(stack)

    redis.Redis.from_url(stack.redis_url).flushall()
    visits.send(100)
    assert assert_equal(stack) == erased


def assert_equal(stack: TestStack) -> Erased:
    """Hold every pane and the account against the log without them; return who they were."""
    api = Api(stack.dashboard_url, stack.key)
    found: list[str] = []

    def is_equal() -> bool:
        account, _ = account_of(stack)
        found[:] = compare_ledger(api, account).mismatches or differences(api, account)
        return not found and all(is_filled(stack, name) for name in BODIES)

    try:
        stack.wait_until(is_equal, "numbers equal to the log", 120)
    except TimeoutError as error:
        error.add_note("\n".join(found[:5]))
        raise
    account, erased = account_of(stack)
    # Of each of them some came before it held, and some after: or nothing is shown by this.
    assert all(any(place.values()) for place in erased.values())
    assert account.totals["erased"] > 20
    assert account.totals["duplicate"] > 50
    assert not {event["subject"] for event in account.counted} & set(GONE)
    return erased


def differences(api: Api, account: Account) -> list[str]:
    """Return the panes that are not what the log says."""
    events = [event for event in account.counted if event["type"] == TYPE]
    found: list[str] = []
    for spec, aggregates in SPECS:
        result = compare(api, panes_of(events, spec, PANE_MS), spec, aggregates, PANE_MS)
        assert result.points >= SPAN_MS // PANE_MS * len(aggregates)
        found += result.mismatches
    return found
