"""Faults of Redis, lost answers, restarts: each bites, passes, and has a mutant.

D1, D6, D7, D8, D18 of RELIABILITY 3.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from account import records_of
from disruption.checker import RECOVERY_S
from disruption.faults import (
    assert_stops_as_foreign,
    bites,
    broken,
    judged,
    needs,
    root,
    with_mutant,
)
from disruption.mixed import MixedLoad
from disruption.mixed_recount import PANE_MS, SPEC, Recount, compare_totals, recount
from disruption.proxy import Proxy
from disruption.rig import INTERRUPTED, PACE, SERVICES, Rig, promised_s
from disruption.scene import PATIENCE_S, Scene, await_new_result, scene
from disruption.small_disk import fill, small_disk
from disruption.tenants import define_mixed, key_for
from recount import Api, compare_ledger
from weir import names
from weir_local import ports
from weir_local.process import Part
from weir_local.redis import RedisServer

pytestmark = [pytest.mark.stack, pytest.mark.disruption, pytest.mark.timeout(3600)]

# I10, from when the fault was named on.
STALE_S = promised_s(10.0)
TENANTS = ("default", "acme")


# ── D1 ───────────────────────────────────────────────────────────────────────


@with_mutant("dedup_without_tenant")
def test_answers_of_ingest_are_lost(tmp_path: Path, seed: int, mutant: str) -> None:
    """D1: every twentieth answer; the same bytes again, also to another replica, count once."""
    with (
        scene(tmp_path, seed, mutants={"ingest": mutant}) as here,
        judged(mutant),
        second_ingest(here.rig) as second_port,
        here.watched(),
    ):
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
        here.load.pause()  # what is in flight is in the log and not yet in the ledger
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
    assert found == [], f"ledger and log must agree, of {load.tenant}: {found[:3]}"
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
        here.watched([INTERRUPTED], redis_goes_back=True),
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
    healed = here.now()
    rig.wait_until(lambda: verdicts(rig)[told:], "what the driver makes of it", RECOVERY_S)
    await_new_result(rig, RECOVERY_S, since=healed)
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
        await_refusal(here, "maxmemory")
        client.config_set("maxmemory", 0)
        await_new_result(here.rig, RECOVERY_S)
        if not mutant:
            refuses_to_evict(here, client)
        client.close()


def await_refusal(here: Scene, word: str) -> None:
    """Wait until Redis refuses to write, and the numbers say that they are stale."""
    rig, acknowledged = here.rig, here.load.acknowledged
    # What tells Weir from a copy that swallows the error: the marks bring both to the same numbers.
    rig.wait_until(
        lambda: any(word in line["error"] for line in rig.lines("panes", "counting_interrupted")),
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
        small_disk(folder, "64m"),
        broken(tmp_path, seed, mutant, errors=(INTERRUPTED,)) as here,
    ):
        here.more(200)
        await_new_result(here.rig)
        filler = fill(folder)
        await_refusal(here, "MISCONF")
        filler.unlink()
        await_new_result(here.rig, RECOVERY_S)


# ── D18: restarts ────────────────────────────────────────────────────────────


@with_mutant("term_ignored")
def test_every_part_is_restarted_with_grace(tmp_path: Path, seed: int, mutant: str) -> None:
    """D18: told to end, each ends by itself in time; nothing is lost, nothing counts twice."""
    with broken(tmp_path, seed, mutant) as here:
        for name in SERVICES:
            here.more(100)
            part = here.rig.part(name)
            bites(part.pid(), f"{name}, at work when it is told to end")
            part.stop(timeout_s=60 * PACE)
            bites(part.pid() is None, f"the end of {name}")
            assert "SIGKILL" not in part.ending(), f"{name} must end by itself, {part.ending()}"
            if name == "panes":
                here.more(500)  # what waits for the next driver
            healed = here.now()
            here.rig.restart(name)
            await_new_result(here.rig, RECOVERY_S, since=healed)


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
        healed = here.now()
        rig.restart("panes")
        await_new_result(rig, RECOVERY_S, since=healed)


def tokens(client: Any) -> list[bytes | None]:
    """Return what each write to a shard changes, and its fence."""
    keys = [key(shard) for shard in (0, 1) for key in (names.fence_key, names.token_key)]
    found: list[bytes | None] = client.mget(keys)
    return found
