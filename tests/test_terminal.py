"""The `weir` command from a definition in a file to a number, a report and an audit."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import redis
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from disruption.judge import given_up
from weir import names, rows
from weir_local.testing import TestStack
from weir_local.topics import TOPICS

METRIC = (
    "kind: metric\nname: typed\nevents: {type: dev.typed}\nby: [data.country]\nresolution: 1s\n"
)
# Ticks bring processed-through on once a second.
FRESH_MS = 5_000
# Windows of ten minutes begin with the clock's: in the newest one alone are no events of before.
LATELY = ("query", "typed", "count", "--last", "1h", "--step", "10m")


def weir(stack: TestStack, *words: str | Path) -> tuple[int, str, str]:
    """Run the command; return its exit code and what it wrote."""
    process = begin(stack, *words)
    written, errors = process.communicate(timeout=300)
    return process.returncode, written, errors


def begin(stack: TestStack, *words: str | Path) -> subprocess.Popen[str]:
    """Start the command."""
    known = {"WEIR_DASHBOARD_URL": stack.dashboard_url, "WEIR_API_KEY": stack.key}
    return subprocess.Popen(  # noqa: S603  the command is ours
        [sys.executable, "-m", "weir_cli", *words],
        env={**os.environ, **known},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.stack
def test_define_send_ask_watch_audit(stack: TestStack, tmp_path: Path) -> None:
    """Numbers are what was sent; an audit of them finds no difference."""
    (tmp_path / "typed.yaml").write_text(METRIC)
    assert weir(stack, "apply", "-f", tmp_path) == (0, "created   metric/typed version 1\n", "")
    stack.await_whole("typed", "10s")
    events: list[dict[str, Any]] = [
        {"specversion": "1.0", "type": "dev.typed", "source": "t", "id": f"typed-{n}",
         "data": {"country": "NZ" if n % 3 else "AU"}}
        for n in range(30)
    ]  # fmt: skip
    position = stack.post(events).body["position"]
    # All of them are in the first answer after the position: whoever wrote them reads them.
    asked = (*LATELY, "--by", "country", "--after", position)
    told = json.loads(answered(stack, *asked, "--json"))
    totals = {one["by"]["country"]: sum(filter(None, one["value"])) for one in told["series"]}
    assert totals == {"NZ": 20, "AU": 10}
    lines: Counter[str] = Counter()
    for row in csv.DictReader(io.StringIO(answered(stack, *asked, "--csv"))):
        lines[row["country"]] += int(float(row["value"] or 0))
    assert lines == totals

    code, written, errors = weir(stack, "top", "typed", "-n", "1", "--json")
    assert code == 0, errors
    report = json.loads(written)
    assert {"ingest", "panes", "dashboard"} <= {part["name"] for part in report["parts"]}
    assert report["metrics"][0]["metric"] == "typed"
    assert report["fresh"]["processed_through_ms"] > 0

    (tmp_path / "typed.yaml").write_text(METRIC + "where: data.country = 'NZ'\n")
    code, written, errors = weir(stack, "apply", "-f", tmp_path, "--follow")
    assert code == 0, errors
    assert written.endswith("serves    metric/typed version 2\n")
    back = ("rollback", "metric/typed", "--to", "1", "--follow")
    code, written, errors = weir(stack, *back, "--json")
    assert code == 0, errors
    ends = json.loads(written.splitlines()[-1])
    assert (ends["version"], ends["serving"]) == (3, True)

    time_s = time.monotonic()
    code, written, errors = weir(stack, "audit", "typed", "--last", "5m", "--json")
    assert code == 0, written + errors
    told = json.loads(written)
    assert (told["state"], told["outcome"]["verified"]) == ("done", True)
    assert "audit" in errors
    outcome = told["outcome"]
    assert outcome["to_ms"] - outcome["from_ms"] == 5 * 60_000
    wanted = {key: outcome[key] for key in ("from_ms", "to_ms")} | {"version": 3, "ok": True}
    stack.wait_until(lambda: is_verified(stack, wanted), f"the metric to say {wanted}")
    # The log has more records than one, and panes are drawn only where it need not go so far back.
    code, written, errors = weir(stack, "audit", "typed", "--most-records", "1")
    assert (code, "verified: null" in written) == (6, True), written + errors
    assert "weir: nothing of typed was compared: no pane of it was drawn from as much" in errors
    told = stack.api("GET", "/metrics/typed").body
    assert (told["verified"]["ok"], told["not_compared"]["audits"]) == (True, 1)
    none = ("replay", "--reason", "nothing_like_it", "--dry-run")
    code, written, errors = weir(stack, *none)
    assert code == 0, written + errors
    assert "would replay: 0" in written
    code, written, errors = weir(stack, *none, "--json")
    assert code == 0, written + errors
    told = json.loads(written)
    assert (told["job"], told["state"], told["outcome"]["would_replay"]) == ("replay", "done", 0)
    assert time.monotonic() - time_s < 300


@pytest.mark.stack
def test_replay_audit_mend_erase_adopt(own_stack: TestStack, tmp_path: Path) -> None:
    """Each job through the engine to its end: what it tells, its exit code, and the numbers."""
    stack = own_stack
    (tmp_path / "typed.yaml").write_text(METRIC)
    assert weir(stack, "apply", "-f", tmp_path)[0] == 0
    stack.await_whole("typed", "10s")
    check_lag_while_the_driver_is_paused(stack)
    stack.post([event(f"typed-{n}", subject=f"user-{n % 4}") for n in range(40)])
    refuse_formerly(stack, [event(f"mended-{n}", subject="user-0") for n in range(20)])
    await_count(stack, 40)
    stack.wait_until(lambda: quarantined_by_panes(stack) == 20, "the figures of Prometheus")

    replay = ("replay", "--reason", "time_invalid")
    for words, told in (
        ((*replay, "--dry-run"), ["would replay: 20", "already: 0", "dry run: true"]),
        (replay, ["replayed: 20", "already: 0", "dry run: false"]),
        (replay, ["replayed: 0", "already: 20", "dry run: false"]),
    ):
        code, written, errors = weir(stack, *words)
        assert code == 0, errors
        assert re.match(r"replay k_\w+ done\n", written)
        assert set(told) <= {line.strip() for line in written.splitlines()}, written
    await_count(stack, 60)

    start_s, before = spoil(stack), stack.figures("panes")
    audit = ("audit", "typed", "--last", "10m", "--sample", "200")
    code, written, errors = weir(stack, *audit)
    assert code == 4, written + errors
    assert "verified: false" in written
    assert f'"start_s": {start_s}' in written
    stack.wait_until(lambda: audits_told(stack, before), "the audit's figures of Prometheus")
    code, written, errors = weir(stack, *audit, "--mend", "--json")
    assert (code, json.loads(written)["outcome"]["mended"]) == (4, ["typed"]), errors
    await_serving(stack, version=2)
    await_count(stack, 60)
    code, written, errors = weir(stack, *audit)
    assert (code, "verified: true" in written) == (0, True), written + errors

    code, written, errors = weir(stack, "erase", "user-0")
    assert code == 0, written + errors
    assert re.match(r"erase k_\w+: .*\n", errors)
    await_count(stack, 30)
    code, written, _ = weir(stack, "jobs", "--json")
    assert "user-0" not in written
    # Nothing is foreign here, so there is nothing to go on from.
    code, written, errors = weir(stack, "adopt", "--reason", "a test", "--json")
    assert (code, json.loads(written)["state"]) == (1, "failed"), written + errors
    assert_adopts(stack)


def assert_adopts(stack: TestStack) -> None:
    """Make the log anew, and assert that the command tells what was given up, hole by hole."""
    stack.kill("panes")
    stack.kill("ingest")
    make_log_anew(stack)
    stack.restart("ingest")
    stack.post([event(f"anew-{n}", subject="user-1") for n in range(5)])
    stack.stack.launch("panes")
    panes = stack.stack.parts["panes"]
    stack.wait_until(lambda: panes.pid() is None, "the end of a driver of another log", 120)
    lost = given_up(marked(stack))
    assert lost, "something must have been counted of the old log"

    process = begin(stack, "adopt", "--reason", "the log was made anew")
    stack.restart("panes")
    written, errors = process.communicate(timeout=120)
    assert (process.returncode, "adopt k_" in errors) == (0, True), written + errors
    first, told = written.splitlines()
    assert re.fullmatch(r"adopt k_\w+ done", first)
    name, _, text = told.strip().partition(": ")
    outcome = json.loads(text)
    assert name == "given up"
    assert "the topic was created anew" in outcome["because"]
    found = sorted(outcome["gone"], key=lambda hole: (hole["partition"], hole["first"]))
    assert found == lost
    await_count(stack, 5)


def make_log_anew(stack: TestStack) -> None:
    """Delete the topic of events and create it."""
    admin = AdminClient({"bootstrap.servers": stack.kafka_bootstrap})
    for done in admin.delete_topics([names.EVENTS]).values():
        done.result(30)
    stack.wait_until(lambda: names.EVENTS not in admin.list_topics(timeout=10).topics, "its end")
    stack.stack.broker.create_topics(TOPICS)


def marked(stack: TestStack) -> list[dict[int, int]]:
    """Return up to where each shard has counted each partition; the driver is dead."""
    client: Any = redis.Redis.from_url(stack.redis_url)
    shards = json.loads(client.get(names.mark_key(0)))["shards"]
    marks = [json.loads(client.get(names.mark_key(shard))) for shard in range(shards)]
    client.close()
    return [{int(p): int(end) for p, end in mark["end"].items()} for mark in marks]


def is_verified(stack: TestStack, wanted: dict[str, Any]) -> bool:
    """Tell whether the metric says of its newest audit what is wanted, and of what it was."""
    told = stack.api("GET", "/metrics/typed").body["verified"]
    if told is None or told | wanted != told:
        return False
    return bool(told["panes"] > 0 and told["events"] > 0 and told["at_ms"] >= told["to_ms"])


def check_lag_while_the_driver_is_paused(stack: TestStack) -> None:
    """What waits is told and grows, with who is away; and nothing waits once it is back.

    Who asks for numbers after these events has no answer until then.
    """
    driver, waiting = stack.stack.parts["panes"], 25
    await_status(stack, is_at_the_present)
    driver.send(signal.SIGSTOP)
    try:
        # Of a type that no metric counts.
        others = [event(f"other-{n}", "nobody") | {"type": "dev.other"} for n in range(waiting)]
        position = stack.post(others).body["position"]
        stopped_ms = int(time.time() * 1_000)
        told = await_status(stack, lambda told: (told["lag"]["records"] or 0) >= waiting)
        words = "no panes driver has been heard for 6 s; events are kept in the log"
        assert told["holding"] == {"code": "driver_away", "message": words}
        # With them wait ticks of the seconds before, of which the driver has not told Kafka yet.
        assert waiting <= told["lag"]["records"] < 2 * waiting
        # A driver may have counted up to a second beyond the last that was heard of it.
        assert told["lag"]["ms"] >= told["now_ms"] - stopped_ms
        await_status(stack, lambda now: now["lag"]["ms"] > told["lag"]["ms"] + 1_000)
        code, written, errors = weir(stack, *LATELY, "--after", position, "--json")
        assert (code, "not counted within 10 s" in written) == (3, True), written + errors
    finally:
        driver.send(signal.SIGCONT)
    answered(stack, *LATELY, "--after", position)
    await_status(stack, is_at_the_present)


def await_status(stack: TestStack, claim: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """Return how the parts are and how fresh the numbers are once a claim of that holds."""
    seen: list[dict[str, Any]] = [{}]

    def holds() -> bool:
        seen.append(stack.api("GET", "/status").body)
        return claim(seen[-1])

    try:
        stack.wait_until(holds, "the status", 60)
    except TimeoutError as error:
        error.add_note(f"the last one was\n{seen[-1]}")
        raise
    return seen[-1]


def is_at_the_present(told: dict[str, Any]) -> bool:
    """Tell whether nothing waits, and nothing holds the numbers back."""
    lag = told["lag"]
    return bool(lag["records"] == 0 and 0 <= lag["ms"] < FRESH_MS and told["holding"] is None)


def quarantined_by_panes(stack: TestStack) -> float:
    """Return how many events the engine tells Prometheus that nobody could use."""
    return stack.figures("panes")['weir_panes_events_total{disposition="quarantined"}']


def audits_told(stack: TestStack, before: dict[str, float]) -> bool:
    """Tell whether the engine tells Prometheus of panes that were audited, and of one that differs.

    Args:
        stack: The stack.
        before: What it told before the audit.
    """
    now = stack.figures("panes")
    names = ("weir_panes_audited_total", "weir_panes_audit_mismatches_total")
    return all(now[name] >= before[name] + 1 for name in names)


def event(identity: str, subject: str) -> dict[str, Any]:
    """Return an event that the metric counts."""
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    fixed = {"specversion": "1.0", "type": "dev.typed", "source": "t", "time": now}
    return {**fixed, "id": identity, "subject": subject, "data": {"country": "NZ"}}


def refuse_formerly(stack: TestStack, events: list[dict[str, Any]]) -> None:
    """Put into the log what an older release refused and this one can read."""
    producer = Producer({"bootstrap.servers": stack.kafka_bootstrap})
    told = {
        names.HEADER_REASON: b"time_invalid",
        names.HEADER_TENANT: b"default",
        names.HEADER_SOURCE: b"http",
    }
    for one in events:
        producer.produce(names.EVENTS, json.dumps(one).encode(), headers=list(told.items()))
    assert producer.flush(10) == 0


def spoil(stack: TestStack) -> int:
    """Count one event too many in the newest pane of the finest resolution; return its start."""
    client: Any = redis.Redis.from_url(stack.redis_url)
    panes = [key for key in client.keys("*:p:*:1:*") if b":p:-" not in key]
    key = max(panes, key=lambda one: int(one.rpartition(b":")[2]))
    short, packed = next(iter(client.hgetall(key).items()))
    row = rows.decode(packed)
    row.n += 1
    client.hset(key, short, rows.encode(row))
    client.close()
    return int(key.rpartition(b":")[2])


def await_serving(stack: TestStack, version: int) -> None:
    """Return once a version of the metric is counted from the log, and has taken over."""
    path = "/definitions/metric/typed/progress"

    def serves() -> bool:
        told = stack.api("GET", path).body
        return bool(told["version"] == version and told["serving"])

    stack.wait_until(serves, f"version {version} serving", 120)


def answered(stack: TestStack, *words: str) -> str:
    """Return what a query with a position wrote; events that are not counted yet are waited for."""
    said = [""]

    def is_answered() -> bool:
        code, written, errors = weir(stack, *words)
        said.append(written if code == 0 else errors)
        assert code == 0 or "not counted within 10 s" in errors, errors
        return code == 0

    stack.wait_until(is_answered, "an answer after the position", 60)
    return said[-1]


def await_count(stack: TestStack, wanted: int) -> None:
    """Return once the command answers with so many events."""
    said = [""]

    def answered() -> bool:
        _, written, errors = weir(stack, *LATELY, "--csv")
        said.append(written + errors)
        found = csv.DictReader(io.StringIO(written))
        return sum(int(float(row["value"] or 0)) for row in found) == wanted

    try:
        stack.wait_until(answered, f"{wanted} events counted", 120)
    except TimeoutError as error:
        error.add_note(f"the last answer was\n{said[-1]}")
        raise
