"""Faults of the engine (RELIABILITY 3): each bites, each passes, each has a mutant that is red.

D2, D3, D4, D5, D9, D15: processes, fences, marks, checkpoints. The log's and the stores' own
faults are in `test_faults_of_stores.py`, what waits and floods in `test_catching_up.py`.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest
import redis
from disruption.alarm import await_evaluated, end_alarm, settle_alarm
from disruption.checkpoints import cut_newest, is_under_way, put_back
from disruption.faults import (
    SKIPPING,
    UNFENCED,
    MutantLivesError,
    NotBittenError,
    await_batches,
    bites,
    broken,
    judged,
    second_driver,
    stop_in_a_batch,
    wipe_and_recount,
    with_mutant,
)
from disruption.proxy import Conditions
from disruption.rig import INTERRUPTED, Rig
from disruption.scene import FIRST_RESULT_S, IMPACT_S, PATIENCE_S, Scene, await_new_result
from weir import names
from weir.clock import SystemClock
from weir_local.process import Part

pytestmark = [pytest.mark.stack, pytest.mark.disruption, pytest.mark.timeout(3600)]

# RELIABILITY 3: kills of each part, some two to ten minutes of each; and starts, some ten.
KILLS = int(os.environ.get("WEIR_KILLS") or 50)
STARTS = int(os.environ.get("WEIR_STARTS") or 20)
PARTS = ("ingest", "panes", "alerts", "dashboard", "redis", "kafka")


def test_nothing_is_broken(tmp_path: Path, seed: int) -> None:
    """The baseline, without a fault, at 500 events/s: what is wrong here is no fault's doing."""
    with broken(tmp_path, seed, "") as here:
        here.more(10_000)


@with_mutant("adds_without_mark")
def test_a_batch_comes_again(tmp_path: Path, seed: int, mutant: str) -> None:
    """D2: the driver dies between the shards and their record; what comes again counts once."""
    with broken(tmp_path, seed, mutant, errors=(INTERRUPTED,)) as here:
        rig = here.rig
        here.more(200)
        here.crash("panes", "C8:kill@3")
        lines = rig.lines("panes", "batch")
        unrecorded = stored_revision(rig)
        bites(unrecorded == lines[-1]["rev"] + 1, "a batch in all shards, and without a record")
        here.recover()
        later = [line["rev"] for line in rig.lines("panes", "batch")[len(lines) :]]
        bites(later[0] == unrecorded, "that batch, which came again")


def stored_revision(rig: Rig) -> int:
    """Return the revision of the batch that all shards have committed; the driver is dead."""
    client: Any = redis.Redis.from_url(rig.redis_url)
    marks = [json.loads(client.get(names.mark_key(shard))) for shard in range(2)]
    client.close()
    (batch,) = {mark["batch"] for mark in marks}
    return int(batch) + 1


@pytest.mark.parametrize("part", PARTS)
def test_a_process_dies_again_and_again(tmp_path: Path, seed: int, part: str) -> None:
    """D2: each part is killed so many times under load, each time at a moment of its own."""
    with broken(tmp_path, seed, "", errors=(INTERRUPTED,)) as here:
        broken_off = 0
        for _ in range(KILLS):
            here.more(here.rig.chance.randrange(20, 200))
            here.rig.kill(part)
            bites(here.rig.part(part).pid() is None, f"the end of {part}")
            if part == "panes":
                broken_off += is_under_way(here.rig.home.folder / part / "checkpoint")
            here.recover()
        bites(part != "panes" or broken_off, "a batch that was under way")


@with_mutant(UNFENCED)
def test_a_paused_driver_wakes_up(tmp_path: Path, seed: int, mutant: str) -> None:
    """D3: stopped between two shards, overtaken, and let go on: it writes nothing more."""
    with broken(tmp_path, seed, mutant) as here, second_driver(here.rig) as second:
        first = here.rig.part("panes")
        stop_between_shards(here)
        second.start()
        await_batches(here.rig, "panes2", 2)
        bites(first.pid(), "the first one, stopped")
        first.send(signal.SIGCONT)
        await_fenced(here.rig, "panes")
        assert second.pid() is not None, "the second must go on"


def stop_between_shards(here: Scene) -> None:
    """Stop the driver with one shard of a batch committed and the other not."""
    rig = here.rig
    rig.kill("panes")
    rig.arm("panes", "C6:sleep@1")
    rig.stack.launch("panes")
    rig.wait_until(lambda: rig.has_bitten("C6:sleep@1"), "the first shard", PATIENCE_S)
    rig.part("panes").send(signal.SIGSTOP)


@with_mutant("no_token")
def test_a_transaction_comes_late(tmp_path: Path, seed: int, mutant: str) -> None:
    """D3: decided and sent, held up on its way, and overtaken: it is not applied.

    The fence that was read allowed it: what has moved since refuses it.
    """
    with (
        broken(tmp_path, seed, mutant, links=("panes-redis",)) as here,
        second_driver(here.rig) as second,
    ):
        rig, link = here.rig, here.rig.links["panes-redis"]
        first = rig.part("panes")
        here.more(200)
        await_new_result(rig)
        link.now.held = b"EXEC"
        rig.wait_until(lambda: link.waiting, "a transaction on its way", PATIENCE_S)
        first.send(signal.SIGSTOP)
        second.start()
        await_batches(rig, "panes2", 2)
        bites(first.pid(), "the first one, stopped")
        bites(link.waiting, "a transaction that waits")
        link.heal()
        rig.wait_until(lambda: not link.waiting, "the transaction on its way again")
        first.send(signal.SIGCONT)
        await_fenced(rig, "panes")
        assert second.pid() is not None, "the second must go on"


@with_mutant("fence_in_redis_only")
def test_redis_is_emptied_under_a_paused_driver(tmp_path: Path, seed: int, mutant: str) -> None:
    """D4, D5: it wakes up beside a newer one, which alone goes on, whatever Redis has lost."""
    with (
        broken(tmp_path, seed, mutant, redis_goes_back=True, errors=(INTERRUPTED,)) as here,
        second_driver(here.rig) as second,
    ):
        rig, first = here.rig, here.rig.part("panes")
        stop_between_shards(here)
        here.wipe()
        second.start()
        await_batches(rig, "panes2", 2)
        bites(first.pid(), "the first one, stopped")
        first.send(signal.SIGCONT)
        rig.wait_until(
            lambda: first.pid() is None or second.pid() is None, "one driver left", PATIENCE_S
        )
        assert second.pid() is not None, "the newer driver must go on, and the older one end"
        await_fenced(rig, "panes")


@with_mutant("fenced_goes_on")
def test_two_drivers_start_at_once(tmp_path: Path, seed: int, mutant: str) -> None:
    """D4: one of the two ends, FENCED; the other counts."""
    with broken(tmp_path, seed, mutant) as here, second_driver(here.rig) as second:
        first = here.rig.part("panes")
        for _ in range(1 if mutant else STARTS):
            first.kill()
            second.kill()
            for one in here.rig.chance.sample((first, second), 2):
                one.start()
            survivor = await_one_left(here.rig, first, second)
            await_batches(here.rig, survivor.name, 2)


def await_one_left(rig: Rig, first: Part, second: Part) -> Part:
    """Return the driver that is left once the other was fenced."""
    before = len(fences(rig))

    def is_fenced() -> bool:
        return len(fences(rig)) > before and (first.pid() is None or second.pid() is None)

    try:
        rig.wait_until(is_fenced, "one of two drivers fenced", PATIENCE_S / 3)
    except TimeoutError as error:
        started = len(rig.lines("panes", "reconciled")) + len(rig.lines("panes2", "reconciled"))
        bites(started >= 2, "two starts")
        raise AssertionError(str(error)) from error
    left = [one for one in (first, second) if one.pid() is not None]
    assert len(left) == 1
    return left[0]


def fences(rig: Rig) -> list[str]:
    """Return the verdicts FENCED of both drivers."""
    lines = [*rig.lines("panes", "verdict"), *rig.lines("panes2", "verdict")]
    return [line["verdict"] for line in lines if line["verdict"] == "fenced"]


def await_fenced(rig: Rig, part: str) -> None:
    """Assert that a driver ends because a newer one has started."""
    try:
        rig.wait_until(lambda: rig.part(part).pid() is None, f"the end of {part}", PATIENCE_S / 3)
    except TimeoutError as error:
        told = [line["verdict"] for line in rig.lines(part, "verdict")]
        msg = f"{part} must end, fenced, got verdicts {told}"
        raise AssertionError(msg) from error
    assert rig.lines(part, "verdict")[-1]["verdict"] == "fenced"


@pytest.mark.parametrize(
    ("when", "mutant"),
    [("idle", ""), ("in a batch", ""), ("at any time", "missing_mark_starts_here")],
    ids=["weir, idle", "weir, in a batch", "missing_mark_starts_here"],
)
def test_redis_is_emptied(tmp_path: Path, seed: int, when: str, mutant: str) -> None:
    """D5: everything is counted again, unasked, and told to be; no alert comes of it."""
    with broken(tmp_path, seed, mutant, redis_goes_back=True, errors=(INTERRUPTED,)) as here:
        rig = here.rig
        if not mutant:
            here.define_alarm()
        here.load.batch, usual = 500, here.load.batch
        here.more(10_000)
        here.load.batch = usual
        await_new_result(rig)  # until then there is little to lose
        messages = 0 if mutant else end_alarm(here) if when == "idle" else settle_alarm(here)
        if when == "in a batch":
            stop_in_a_batch(here)
        wipe_and_recount(here)
        await_new_result(rig, FIRST_RESULT_S)
        if not mutant:
            await_evaluated(rig, SystemClock().now_ms())
            kinds = [body["kind"] for body in here.receiver.bodies[messages:]]
            assert kinds == [], f"no alert may come of what is counted again, got {kinds}"


@with_mutant("sent_again_unread")
def test_redis_is_slow_and_replies_are_lost(tmp_path: Path, seed: int, mutant: str) -> None:
    """D9: what was applied and not answered is not applied again."""
    links = ("panes-redis",)
    with broken(tmp_path, seed, mutant, links=links, errors=(INTERRUPTED,)) as here:
        link = here.rig.links["panes-redis"]
        link.now = Conditions(delay_s=0.15, jitter_s=0.1)
        here.more(100)
        for count in (1, 2, 3):
            link.now.lose_reply_to = b"EXEC"
            link.await_lost(count, PATIENCE_S)
            here.more(50)
        bites(link.lost >= 3, "three lost replies")


OLD_S = float(os.environ.get("WEIR_OLD_S") or 600)


@pytest.mark.parametrize(
    ("fault", "mutant"),
    [(fault, mutant) for mutant in ("", SKIPPING) for fault in ("lost", "truncated", "old")],
    ids=lambda told: told or "weir",
)
def test_the_checkpoint_is_not_what_it_was(
    tmp_path: Path, seed: int, fault: str, mutant: str
) -> None:
    """D15: gone, cut off, or of ten minutes ago: the marks say where to go on."""
    with broken(tmp_path, seed, mutant) as here:
        folder = here.rig.home.folder / "panes" / "checkpoint"
        kept = folder.with_name("kept")
        here.more(500)
        here.rig.kill("panes")
        if fault == "old":
            shutil.copytree(folder, kept)
            here.rig.restart("panes")
            # A copy that goes by numbers is wrong by an old one of any age.
            here.pass_time(SystemClock().monotonic_s() + (IMPACT_S if mutant else OLD_S))
            here.rig.kill("panes")
            put_back(folder, kept)
        elif fault == "truncated":
            cut_newest(folder / "offsets")
        else:
            shutil.rmtree(folder)
        before = len(here.rig.lines("panes", "reconciled"))
        here.rig.restart("panes")
        found = [line["verdict"] for line in here.rig.lines("panes", "reconciled")[before:]]
        bites(set(found) & {"rewind", "behind"}, "a driver without its checkpoint")
        here.more(500)


def test_what_has_not_bitten_is_not_passed() -> None:
    """Neither on Weir, nor on a mutant, where it would look like a red test."""
    with (
        pytest.raises(NotBittenError, match="unknown, not passed"),
        judged("adds_without_mark"),
    ):
        bites([], "a verdict")


@pytest.mark.parametrize("error", [AssertionError, TimeoutError])
def test_a_mutant_that_is_red_by_chance_is_not_caught(error: type[Exception]) -> None:
    """What it breaks must be what was found; a part that did not start proves nothing."""
    found, chance = "panes must equal the recount: one differs", "panes ended, and not at C8"
    with judged("adds_without_mark"):
        raise error(found)
    with pytest.raises(MutantLivesError, match=f"was by: {chance}"), judged("adds_without_mark"):
        raise error(chance)
    with pytest.raises(MutantLivesError, match="and passed"), judged("adds_without_mark"):
        pass
