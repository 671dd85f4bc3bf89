"""Faults of Redis, of the log and of links: each bites, passes, and has a mutant.

D1, D6, D7, D8, D12, D13, D17, D18 of RELIABILITY 3.
"""

from __future__ import annotations

import contextlib
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from account import records_of
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from disruption.brokers import grow, log_ends
from disruption.checker import RECOVERY_S, pane_counts
from disruption.faults import RED_S, bites, broken, judged, needs, recovery_s, root, with_mutant
from disruption.mixed import PANE_MS, SPEC, MixedLoad, Recount, compare_totals, recount
from disruption.network import await_sockets, sockets
from disruption.proxy import Conditions, Proxy
from disruption.rig import INTERRUPTED, PACE, SERVICES, Rig
from disruption.scene import PATIENCE_S, Scene, await_new_result, scene
from disruption.tenants import define_mixed, key_for
from recount import Api, compare_ledger
from weir import names
from weir.clock import SystemClock
from weir_local import ports
from weir_local.process import Part
from weir_local.redis import RedisServer
from weir_local.topics import TOPICS

pytestmark = [pytest.mark.stack, pytest.mark.disruption, pytest.mark.timeout(3600)]

# RELIABILITY 3: longer than any call of Weir waits; a mutant has shown itself long before.
SILENCE_S = 90.0
OF_A_MUTANT_S = 12.0
# I10, from when the fault was named on.
STALE_S = 10.0 * PACE
TENANTS = ("default", "acme")


# ── D1 ───────────────────────────────────────────────────────────────────────


@with_mutant("dedup_without_tenant")
def test_answers_of_ingest_are_lost(tmp_path: Path, seed: int, mutant: str) -> None:
    """D1: every twentieth answer; the same bytes again, also to another replica, count once."""
    with (
        scene(tmp_path, seed, mutants={"ingest": mutant}) as here,
        judged(mutant),
        second_ingest(here.rig) as second_port,
    ):
        here.load.pause()
        rig = here.rig
        links = [
            Proxy((ports.HOST, port), seed=seed) for port in (rig.home.ports["ingest"], second_port)
        ]
        urls = tuple(f"http://{ports.HOST}:{link.port}" for link in links)
        keys = {"default": rig.key, "acme": key_for(rig, "acme")}
        for key in keys.values():
            define_mixed(rig, key)
        for link in links:
            link.now.lose_share = 0.05
        loads = [
            MixedLoad(urls[0], keys[tenant], seed, tenant, 20_000, urls=urls, batch=100)
            for tenant in TENANTS
        ]
        for load in loads:
            load.start()
        rig.wait_until(lambda: all(load.is_done for load in loads), "all lines", PATIENCE_S)
        bites(all(link.lost for link in links), "lost answers of both replicas")
        bites(all(load.unanswered for load in loads), "lines that were sent again")
        for link in links:
            link.close()
        await_new_result(rig, RECOVERY_S)
        found = recount(records_of(rig.kafka_bootstrap))
        for load in loads:
            assert_counts_once(rig, load, found[load.tenant])


@contextlib.contextmanager
def second_ingest(rig: Rig) -> Iterator[int]:
    """Yield the port of another replica of ingest."""
    first, port, ops = rig.part("ingest"), ports.free_port(), ports.free_port()
    own = {"WEIR_INGEST_PORT": str(port), "WEIR_INGEST_OPS_PORT": str(ops)}
    part = Part("ingest2", first.argv, rig.home.run, {**first.env, **own})
    part.start()
    try:
        rig.wait_until(lambda: ports.answers(port), "another ingest", PATIENCE_S)
        yield port
    finally:
        part.kill()


def assert_counts_once(rig: Rig, load: MixedLoad, counted: Recount) -> None:
    """Assert that each of a tenant's events counts once, in the log and as served."""
    api = Api(rig.dashboard_url, load.key)
    assert counted.account.totals["duplicate"] >= load.kinds["again"]
    assert counted.seen[: load.events] == b"\x01" * load.events
    found = compare_ledger(api, counted.account).mismatches
    assert found == [], f"the ledger of {load.tenant} must equal the recount: {found[:3]}"
    panes = compare_totals(api, counted.panes, SPEC, PANE_MS)
    assert panes.mismatches == []


# ── D6, D7, D8: Redis ────────────────────────────────────────────────────────


@with_mutant("older_mark_accepted")
def test_redis_fails_over_to_a_replica_that_lags(tmp_path: Path, seed: int, mutant: str) -> None:
    """D6: the replica misses the last seconds; they are counted again from the log."""
    links = tuple(f"{part}-redis" for part in SERVICES)
    with (
        scene(tmp_path, seed, links=links, mutants={"panes": mutant}) as here,
        replica_of(here.rig) as (replica, stream),
        judged(mutant),
        here.watched(
            [INTERRUPTED], redis_goes_back=True, recovery_s=recovery_s(mutant, RECOVERY_S)
        ),
    ):
        fail_over(here, replica, stream)


def fail_over(here: Scene, replica: RedisServer, stream: Proxy) -> None:
    """Let the replica fall behind, kill the master, and have everybody ask the replica."""
    rig = here.rig
    here.more(200)
    stream.now.swallowed = frozenset({"down"})
    before = len(rig.lines("panes", "batch"))
    rig.wait_until(lambda: len(rig.lines("panes", "batch")) > before + 5, "batches", PATIENCE_S)
    told = len(verdicts(rig))
    rig.kill("redis")
    follow(replica, "NO", "ONE")
    for link in rig.links.values():
        link.target = (ports.HOST, replica.port)
        link.reset()
    rig.wait_until(lambda: verdicts(rig)[told:], "what the driver makes of it", RECOVERY_S)
    await_new_result(rig, RECOVERY_S)
    bites("behind" in verdicts(rig)[told:], "the verdict BEHIND")


def verdicts(rig: Rig) -> list[str]:
    """Return what the driver has found at its starts and in its batches so far."""
    found = [*rig.lines("panes", "reconciled"), *rig.lines("panes", "verdict")]
    return [line["verdict"] for line in sorted(found, key=lambda line: str(line["at"]))]


@contextlib.contextmanager
def replica_of(rig: Rig) -> Iterator[tuple[RedisServer, Proxy]]:
    """Yield a replica in step with the stack's Redis, and the proxy through which it follows."""
    stream = Proxy((ports.HOST, rig.home.ports["redis"]), seed=rig.seed)
    replica = RedisServer(rig.home.folder / "replica", durable=True)
    replica.start()
    client = redis.Redis.from_url(replica.url)
    try:
        follow(replica, ports.HOST, stream.port)
        rig.wait_until(
            lambda: client.info("replication")["master_link_status"] == "up", "the replica"
        )
        yield replica, stream
    finally:
        client.close()
        stream.close()
        replica.kill()


def follow(replica: RedisServer, *whom: object) -> None:
    """Tell a Redis whom to follow."""
    client: Any = redis.Redis.from_url(replica.url)
    client.execute_command("REPLICAOF", *whom)
    client.close()


@with_mutant("batch_error_swallowed")
def test_redis_is_out_of_memory(tmp_path: Path, seed: int, mutant: str) -> None:
    """D7: named, stale, events wait in Kafka; with more memory it goes on by itself."""
    with broken(tmp_path, seed, mutant, errors=(INTERRUPTED,)) as here:
        client = redis.Redis.from_url(here.rig.redis_url)
        here.more(200)
        # What is not counted yet cannot be refused: a first batch takes seconds.
        await_new_result(here.rig)
        client.config_set("maxmemory", max(1_000_000, client.info("memory")["used_memory"] // 2))
        # The client takes the code "OOM" off the text.
        await_refusal(here, "maxmemory", mutant)
        client.config_set("maxmemory", 0)
        await_new_result(here.rig, RECOVERY_S)
        if not mutant:
            refuses_to_evict(here, client)
        client.close()


def await_refusal(here: Scene, word: str, mutant: str) -> None:
    """Wait until Redis refuses to write, and the numbers say that they are stale."""
    rig, acknowledged = here.rig, here.load.acknowledged
    if not mutant:  # which says nothing
        rig.wait_until(
            lambda: any(
                word in line["error"] for line in rig.lines("panes", "counting_interrupted")
            ),
            f"{word} named",
            PATIENCE_S,
        )
    rig.wait_until(lambda: rig.fresh()["status"] == "stale", "stale", STALE_S)
    here.more(200)
    bites(here.load.acknowledged > acknowledged, "events that wait in Kafka")


def refuses_to_evict(here: Scene, client: Any) -> None:
    """Assert that a Redis that may evict keys is refused by name, until it may not."""
    rig = here.rig
    client.config_set("maxmemory-policy", "allkeys-lru")
    rig.kill("panes")
    rig.stack.launch("panes")
    rig.wait_until(lambda: "must have maxmemory-policy noeviction" in rig.log("panes"), "refusal")
    assert not rig.stack.is_ready("panes")
    client.config_set("maxmemory-policy", "noeviction")
    rig.wait_until(lambda: rig.stack.is_ready("panes"), "panes ready", PATIENCE_S)


@with_mutant("batch_error_swallowed")
def test_the_disk_of_redis_is_full(tmp_path: Path, seed: int, mutant: str) -> None:
    """D8: the same, of a disk; once there is room it goes on by itself."""
    needs(root_to_mount_a_small_disk=root)
    folder = tmp_path / "redis"
    with (
        small_disk(folder, "8m"),
        broken(tmp_path, seed, mutant, errors=(INTERRUPTED,)) as here,
    ):
        here.more(200)
        await_new_result(here.rig)
        filler = folder / "filler"
        filler.write_bytes(b"\0" * max(0, shutil.disk_usage(folder).free - 4_096))
        await_refusal(here, "MISCONF", mutant)
        filler.unlink()
        await_new_result(here.rig, RECOVERY_S)


@contextlib.contextmanager
def small_disk(folder: Path, size: str) -> Iterator[None]:
    """Mount a disk of memory on a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "weir-test", str(folder)]
    subprocess.run(mount, check=True)  # noqa: S603
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)  # noqa: S603, S607


# ── D12, D13: the log ────────────────────────────────────────────────────────


@with_mutant("lost_log_ignored")
def test_retention_ran_past_the_engine(tmp_path: Path, seed: int, mutant: str) -> None:
    """D12: what is gone is told as partition, offsets and count; it goes on once adopted."""
    with scene(tmp_path, seed, mutants={"panes": mutant}) as here, judged(mutant):
        rig = here.rig
        here.more(300)
        await_new_result(rig)
        rig.kill("panes")
        from_ms = int(rig.api("GET", "/status").body["now_ms"])
        here.more(500)
        here.load.pause()
        ends = log_ends(rig)
        cut_log(rig, ends)
        here.load.resume()
        rig.stack.launch("panes")
        assert_stops_as_foreign(rig, "are gone; go on only by a recorded adopt")
        gone = adopt(here)
        bites(sum(line["count"] for line in gone) > 0, "an offset hole")
        assert {line["partition"] for line in gone} <= set(ends)
        for line in gone:
            assert line["last"] == ends[line["partition"]] - 1
            assert line["count"] == line["last"] - line["first"] + 1
        assert_incomplete(rig, from_ms)
        assert_fresh_panes_equal(here)


def assert_incomplete(rig: Rig, at_ms: int) -> None:
    """Assert that the pane of an instant says of itself that a part of its log is gone."""
    start_ms = at_ms - at_ms % 10_000
    api = Api(rig.dashboard_url, rig.key)
    answer = api.call("POST", "/query", pane_counts((start_ms, start_ms + 10_000)))
    states = {state for series in answer["series"] for state in series["state"]}
    assert states == {"i"}, f"panes whose log is gone must be incomplete, got {states}"


def assert_stops_as_foreign(rig: Rig, words: str) -> None:
    """Assert that a driver ends, naming what it must not decide by itself."""
    try:
        rig.wait_until(lambda: rig.part("panes").pid() is None, "the end of panes", PATIENCE_S / 3)
    except TimeoutError as error:
        msg = "the driver must stop and name what is gone, and went on"
        raise AssertionError(msg) from error
    last = rig.lines("panes", "verdict")[-1]
    assert last["verdict"] == "foreign"
    assert words in last["reason"]


def adopt(here: Scene) -> list[dict[str, Any]]:
    """Record the decision to go on; return what was told to be lost."""
    rig = here.rig
    before = len(rig.lines("panes", "log_lost"))
    rig.api("POST", "/jobs", {"job": "adopt", "reason": "a test of what is lost"})
    rig.restart("panes")
    await_new_result(rig, RECOVERY_S)
    return rig.lines("panes", "log_lost")[before:]


def assert_fresh_panes_equal(here: Scene) -> None:
    """Assert that what came since is counted: whole panes, held against what the log has."""
    rig = here.rig
    first_ms = int(rig.api("GET", "/status").body["now_ms"])
    first_ms += 10_000 - first_ms % 10_000
    rig.wait_until(
        lambda: int(rig.fresh()["processed_through_ms"] or 0) > first_ms + 20_000,
        "two panes more",
        RECOVERY_S,
    )
    here.load.pause()
    await_new_result(rig, RECOVERY_S)
    found = recount_load(rig, first_ms)
    span = (first_ms, first_ms + 3_600_000)
    answer = Api(rig.dashboard_url, rig.key).call("POST", "/query", pane_counts(span))
    served = sum(sum(count or 0 for count in series["count"]) for series in answer["series"])
    assert served == found
    assert found > 0


def recount_load(rig: Rig, from_ms: int) -> int:
    """Return how many events of the load the log holds from an event time on, each once."""
    from account import dispositions
    from load import TYPE

    return sum(
        event["type"] == TYPE and event["_time_ms"] >= from_ms
        for _, disposition, event in dispositions(records_of(rig.kafka_bootstrap))
        if event is not None and disposition == "counted"
    )


def cut_log(rig: Rig, upto: dict[int, int]) -> None:
    """Delete the log up to offsets, as retention does."""
    admin = AdminClient({"bootstrap.servers": rig.kafka_bootstrap})
    places = [TopicPartition(names.EVENTS, p, offset) for p, offset in upto.items()]
    for done in admin.delete_records(places).values():
        done.result(30)


@with_mutant("new_partitions_start_late")
def test_partitions_are_added(tmp_path: Path, seed: int, mutant: str) -> None:
    """D13: four to eight while the driver is away: what is new is counted from its start."""
    with broken(tmp_path, seed, mutant) as here:
        rig = here.rig
        here.more(200)
        rig.kill("panes")
        # A batch that was not answered must not come again over other partitions.
        here.load.pause()
        grow(rig, 8)
        rig.kill("ingest")  # its producer looks for new partitions every five minutes
        rig.restart("ingest")
        here.load.resume()
        here.more(500)
        bites(sum(log_ends(rig).get(p, 0) for p in range(4, 8)), "events in new partitions")
        rig.stack.launch("panes")
        await_new_result(rig, recovery_s(mutant, PATIENCE_S))


def test_partitions_are_added_beside_a_driver(tmp_path: Path, seed: int) -> None:
    """D13: they are counted from their start, time goes on meanwhile, the dedup gap is told."""
    with broken(tmp_path, seed, "") as here:
        rig = here.rig
        here.more(200)
        here.load.pause()
        grow(rig, 8)
        await_new_result(rig, RECOVERY_S)  # ingest sends nothing there yet: by ticks alone
        rig.kill("ingest")
        rig.restart("ingest")
        here.load.resume()
        here.more(500)
        bites(sum(log_ends(rig).get(p, 0) for p in range(4, 8)), "events in new partitions")
        told = [line["partitions"] for line in rig.lines("panes", "partitions_added")]
        assert sorted(p for some in told for p in some) == [4, 5, 6, 7]


def test_the_topic_is_created_anew(tmp_path: Path, seed: int) -> None:
    """D13: another log under the same name is named; it goes on once adopted."""
    with scene(tmp_path, seed) as here:
        rig = here.rig
        here.more(200)
        await_new_result(rig)
        rig.kill("panes")
        create_anew(here)
        here.more(100)
        rig.stack.launch("panes")
        assert_stops_as_foreign(rig, "the topic was created anew")
        adopt(here)
        assert_fresh_panes_equal(here)


@with_mutant("another_log_read_on")
def test_the_topic_is_created_anew_beside_a_driver(tmp_path: Path, seed: int, mutant: str) -> None:
    """D13: one that slept until the new log had grown past its place counts nothing of it."""
    with scene(tmp_path, seed, mutants={"panes": mutant}) as here, judged(mutant):
        rig = here.rig
        here.more(200)
        await_new_result(rig)
        rig.part("panes").send(signal.SIGSTOP)
        stood = log_ends(rig)
        create_anew(here)
        rig.wait_until(
            lambda: all(end > stood[p] for p, end in log_ends(rig).items()),
            "a log that is longer than the old one",
            PATIENCE_S,
        )
        rig.part("panes").send(signal.SIGCONT)
        assert_stops_as_foreign(rig, "the topic was created anew")
        adopt(here)
        assert_fresh_panes_equal(here)


def create_anew(here: Scene) -> None:
    """Delete the topic of events and create it; ingest is started again, and the load flows."""
    rig = here.rig
    rig.kill("ingest")
    admin = AdminClient({"bootstrap.servers": rig.kafka_bootstrap})
    for done in admin.delete_topics([names.EVENTS]).values():
        done.result(30)
    rig.wait_until(lambda: names.EVENTS not in admin.list_topics(timeout=10).topics, "its end")
    rig.stack.broker.create_topics(TOPICS)
    rig.restart("ingest")


# ── D17, D18: links, restarts ────────────────────────────────────────────────

LINKS = (
    *("panes-redis", "dashboard-redis", "alerts-redis"),
    *("ingest-kafka", "panes-kafka", "dashboard-kafka", "alerts-kafka"),
)


@with_mutant("call_without_timeout")
def test_a_link_swallows_what_is_sent(tmp_path: Path, seed: int, mutant: str) -> None:
    """D17: both ways, one way, resets: every call times out, and sockets come back.

    A worker that waits without end is killed by Spark after a minute: what goes on only by
    that has not timed out itself, so Weir has no longer than its mutant.
    """
    recovers_s = RED_S
    links = ("panes-redis",) if mutant else LINKS
    with broken(tmp_path, seed, mutant, links=links, errors=(INTERRUPTED,)) as here:
        rig = here.rig
        here.more(200)
        await_new_result(rig)
        before = sockets(rig)
        silence_s = OF_A_MUTANT_S if mutant else SILENCE_S
        swallow(here, "panes-redis", frozenset({"down"}), silence_s)
        await_new_result(rig, recovers_s)
        for name in links:
            swallow(here, name, frozenset({"up", "down"}), silence_s)
            rig.revive()  # the alerts job ends where Kafka answers nothing, and is started again
            await_new_result(rig, recovers_s)
        for name in () if mutant else links:
            rig.links[name].now = Conditions(lose_share=0.2)
            here.more(50)
            rig.links[name].heal()
            rig.links[name].reset()
        await_new_result(rig, recovers_s)
        await_sockets(rig, before)


def swallow(here: Scene, name: str, ways: frozenset[str], silence_s: float) -> None:
    """Have a link lose all that is sent for some time; assert that something was."""
    link, clock = here.rig.links[name], SystemClock()
    lost, until_s = link.swallowed, clock.monotonic_s() + silence_s
    link.now = Conditions(swallowed=ways)
    here.rig.wait_until(
        lambda: clock.monotonic_s() > until_s, f"the end of the silence of {name}", 2 * silence_s
    )
    link.heal()
    bites(link.swallowed > lost, f"bytes lost on {name}")


def test_every_part_is_restarted_with_grace(tmp_path: Path, seed: int) -> None:
    """D18: told to end, each ends by itself in time; nothing is lost, nothing counts twice."""
    with broken(tmp_path, seed, "") as here:
        for name in SERVICES:
            here.more(100)
            part = here.rig.part(name)
            part.stop(timeout_s=60 * PACE)
            assert "SIGKILL" not in part.ending()
            here.rig.restart(name)
            await_new_result(here.rig, RECOVERY_S)


@with_mutant("format_version_ignored")
def test_a_newer_release_has_counted(tmp_path: Path, seed: int, mutant: str) -> None:
    """D18: a driver of an older one ends, says why, and writes nothing; the newer one goes on.

    There is no earlier release to go up from and back to yet; what the first one stores is
    read by `tests/test_formats.py`.
    """
    with broken(tmp_path, seed, mutant) as here:
        rig = here.rig
        here.more(200)
        await_new_result(rig)
        rig.kill("panes")
        client: Any = redis.Redis.from_url(rig.redis_url)
        mark, ours = client.get(names.mark_key(0)), tokens(client)
        client.set(names.mark_key(0), mark.replace(b'"v":1', b'"v":2'))
        bites(client.get(names.mark_key(0)) != mark, "a mark of a newer release")
        rig.stack.launch("panes")
        assert_stops_as_foreign(rig, "mark must be of format version 1 or below, got 2")
        assert tokens(client) == ours, "an older driver must write nothing"
        client.set(names.mark_key(0), mark)
        client.close()
        rig.restart("panes")
        await_new_result(rig, RECOVERY_S)


def tokens(client: Any) -> list[bytes | None]:
    """Return what each write to a shard changes, and its fence."""
    keys = [key(shard) for shard in (0, 1) for key in (names.fence_key, names.token_key)]
    found: list[bytes | None] = client.mget(keys)
    return found
