"""D17 of RELIABILITY 3: a link that is silent or resets, a network that loses packets."""

from __future__ import annotations

import http.client
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import redis
from disruption.alarm import beats_of, end_alarm, settle_alarm
from disruption.checker import RECOVERY_S
from disruption.faults import bites, broken, needs, root, with_mutant
from disruption.network import (
    Sockets,
    await_sockets,
    ip_tool,
    iptables,
    losing,
    own_network,
    sockets,
)
from disruption.proxy import Conditions
from disruption.receivers import begin_pair, lose_replies, silence, tear, two_receivers
from disruption.rig import INTERRUPTED, PACE, Rig
from disruption.scene import PATIENCE_S, Scene, await_new_result, processed_through_ms
from disruption.soak_load import MOST_OF_A_BATCH
from load import Load
from weir import names
from weir.clock import SystemClock
from weir_analytics.panes.task_watch import SILENT_S
from weir_local.client import ApiError

pytestmark = [pytest.mark.stack, pytest.mark.disruption, pytest.mark.timeout(3600)]

# RELIABILITY 3: longer than any call of Weir waits; a mutant has shown itself long before.
SILENCE_S = float(os.environ.get("WEIR_SILENCE_S") or 90)
OF_A_MUTANT_S = 12.0
# One way at a time: longer than the longest call of Weir waits, and there are fourteen of them.
ONE_WAY_S = min(SILENCE_S, 30.0)
# The longest that a client of Kafka waits for an answer (`socket.timeout.ms`), and connects anew.
GIVEN_UP_S = 90.0
# What a mutant has by the end of its silence is saved by that no sooner, with a new worker.
RECOVERS_S = SILENT_S - OF_A_MUTANT_S - 10.0
# After a silence ingest's heartbeat and live tail are back by then.
TOLD_S = 45.0 * PACE
# Events have an answer by then, while Redis is silent.
ANSWERED_S = 5.0 * PACE
# More records than one task counts of a batch (`small_batch`).
WAITING = 40_000
# The audit that nobody asked for begins ten minutes after a start, with readers of its own.
QUIET = {"panes": {"WEIR_ANALYTICS_AUDIT_HOURS": "0"}}
LINKS = (
    *("panes-redis", "dashboard-redis", "alerts-redis"),
    *("ingest-kafka", "panes-kafka", "dashboard-kafka", "alerts-kafka"),
)


@with_mutant("call_without_timeout")
def test_a_link_swallows_what_is_sent(tmp_path: Path, seed: int, mutant: str) -> None:
    """D17: both ways, one way, resets: every call times out, and sockets come back.

    A worker that waits without end ends itself after a minute: what goes on only by
    that has not timed out itself, so Weir has no longer than its mutant, at any pace.
    """
    links = ("panes-redis",) if mutant else LINKS
    with broken(tmp_path, seed, mutant, links=links, settings=QUIET, errors=(INTERRUPTED,)) as here:
        rig = here.rig
        before = begin_to_measure(here)
        silence_s = OF_A_MUTANT_S if mutant else SILENCE_S
        swallow(here, "panes-redis", frozenset({"down"}), silence_s)
        await_new_result(rig, RECOVERS_S)
        for name in links:
            fall_silent(here, name, silence_s)
        for name in () if mutant else links:
            rig.links[name].now = Conditions(lose_share=0.2)
            here.more(50)
            rig.links[name].heal()
            rig.links[name].reset()
        await_new_result(rig, RECOVERS_S)
        await_sockets(rig, before)


@with_mutant("call_without_timeout")
def test_a_link_is_lost_one_way(tmp_path: Path, seed: int, mutant: str) -> None:
    """D17: requests alone or answers alone vanish, on each link in turn; sockets come back."""
    links = ("panes-redis",) if mutant else LINKS
    silence_s = OF_A_MUTANT_S if mutant else ONE_WAY_S
    with broken(tmp_path, seed, mutant, links=links, settings=QUIET, errors=(INTERRUPTED,)) as here:
        rig = here.rig
        before = begin_to_measure(here)
        swallow(here, "panes-redis", frozenset({"down"}), silence_s)
        await_new_result(rig, RECOVERS_S)
        for name in links:
            for way in ("up", "down"):
                fall_silent(here, name, silence_s, frozenset({way}))
        await_sockets(rig, before)


def begin_to_measure(here: Scene) -> Sockets:
    """Return the connections of each service before anything has fallen silent; an alarm fires.

    What waits after a silence is counted by more of Spark's workers than a quiet start has. So
    the driver is stopped once, until more waits than one task counts, and goes on.
    """
    rig, panes = here.rig, here.rig.part("panes")
    here.define_alarm()
    here.more(200)
    await_new_result(rig)
    before = len(rig.lines("panes", "batch"))
    panes.send(signal.SIGSTOP)
    here.load.batch, usual = MOST_OF_A_BATCH, here.load.batch
    here.more(WAITING)
    here.load.batch = usual
    panes.send(signal.SIGCONT)
    await_new_result(rig)
    bites(
        any(not line["small"] for line in rig.lines("panes", "batch")[before:]),
        "a batch that several workers have counted",
    )
    settle_alarm(here)
    return sockets(rig)


@pytest.mark.parametrize(
    "mutant",
    ["", "tail_without_timeout", "answer_waits_for_tail"],
    ids=["weir", "tail_without_timeout", "answer_waits_for_tail"],
)
def test_redis_is_silent_to_ingest(tmp_path: Path, seed: int, mutant: str) -> None:
    """D17: events do not wait for the live tail, which comes back as the heartbeat does."""
    told: dict[str, Any] = {"part": "ingest", "links": ("ingest-redis",), "errors": (INTERRUPTED,)}
    with broken(tmp_path, seed, mutant, **told) as here:
        here.more(200)
        await_told_again(here, TOLD_S)
        before = sockets(here.rig)
        silence_s = PACE * OF_A_MUTANT_S if mutant else SILENCE_S
        for ways in ({"down"}, {"up", "down"}, {"up"}):
            here.rig.links["ingest-redis"].reset()  # what is lost is of a connection that lives
            answers = Answers(here.load)
            swallow(here, "ingest-redis", frozenset(ways), silence_s, answers.look)
            waited = f"events must be answered while Redis is silent, waited {answers.longest_s} s"
            assert answers.longest_s < ANSWERED_S, waited
            await_told_again(here, TOLD_S)
        await_sockets(here.rig, before)


@dataclass
class Answers:
    """How long events had to wait for an answer at most, seen from look to look."""

    load: Load
    longest_s: float = 0.0

    def __post_init__(self) -> None:
        self._stored, self._at_s = self.load.acknowledged, SystemClock().monotonic_s()

    def look(self) -> None:
        """Note how long nothing has been acknowledged."""
        now_s = SystemClock().monotonic_s()
        self.longest_s = max(self.longest_s, now_s - self._at_s)
        if self.load.acknowledged > self._stored:
            self._stored, self._at_s = self.load.acknowledged, now_s


def await_told_again(here: Scene, timeout_s: float) -> None:
    """Return once what is received is counted, and ingest tells Redis of itself and of events."""
    now_ms = SystemClock().now_ms()
    await_new_result(here.rig, timeout_s)
    here.rig.wait_until(
        lambda: has_told(here.rig, now_ms), "a new heartbeat and live tail of ingest", timeout_s
    )


def fall_silent(
    here: Scene, name: str, silence_s: float, ways: frozenset[str] = frozenset({"up", "down"})
) -> None:
    """Have a link lose all for some time; assert that both who had it and counting go on."""
    swallow(here, name, ways, silence_s)
    here.rig.revive()  # the alerts job ends where Kafka answers nothing, and is started again
    await_new_result(here.rig, RECOVERS_S)
    assert_works(here, name)
    print(f"after {name} {sorted(ways)}: sockets {sockets(here.rig)}")  # noqa: T201


def assert_works(here: Scene, name: str) -> None:
    """Assert that who was cut off does its own work: numbers move on without most of it.

    The engine counts, which is seen of each link. Ingest takes an event, which is counted; an
    alert ends, and its receiver is told; the dashboard has the log keep a definition.
    """
    if name == "ingest-kafka":
        here.recover(RECOVERY_S)
    elif name in ("alerts-redis", "alerts-kafka"):
        end_alarm(here)
        here.load.resume()
    elif name == "dashboard-kafka":
        clock = SystemClock()
        began_s, board = clock.monotonic_s(), f"after_{clock.now_ms()}"
        keep_board(here.rig, board)
        took_s = clock.monotonic_s() - began_s
        assert took_s < RECOVERY_S, f"a definition must be kept in time, took {took_s:.1f} s"


def keep_board(rig: Rig, name: str) -> None:
    """Define a board, and assert that it is kept.

    One that the log did not confirm in time may be there all the same: sent again, it is refused.
    """
    try:
        rig.define("board", name, f"kind: board\nname: {name}\n")
    except ApiError as error:
        if error.status not in (http.client.CONFLICT, http.client.PRECONDITION_FAILED):
            raise
    assert rig.api("GET", f"/definitions/board/{name}").body["version"] == 1


def has_told(rig: Rig, since_ms: int) -> bool:
    """Return whether ingest has written its heartbeat and the live tail since a moment."""
    client: Any = redis.Redis.from_url(rig.redis_url, decode_responses=True)
    newest = [client.xrevrange(key, count=1) for key in client.keys(names.tail_key("*"))]
    client.close()
    shown_ms = [int(name.partition("-")[0]) for entries in newest for name, _fields in entries]
    beats_ms = [beat["at_ms"] for beat in beats_of(rig, "ingest")]
    return max(shown_ms, default=0) > since_ms and max(beats_ms, default=0) > since_ms


def swallow(
    here: Scene,
    name: str,
    ways: frozenset[str],
    silence_s: float,
    look: Callable[[], object] = lambda: None,
) -> None:
    """Have a link lose all that is sent for some time, looking; assert that something was.

    Who still waits for an answer of before sends nothing that could be lost: until it has given
    up, the silence goes on.
    """
    link, clock = here.rig.links[name], SystemClock()
    lost, until_s = link.swallowed, clock.monotonic_s() + silence_s

    def is_over() -> bool:
        look()
        now_s = clock.monotonic_s()
        return now_s > until_s and (link.swallowed > lost or now_s > until_s + GIVEN_UP_S)

    link.now = Conditions(swallowed=ways)
    here.rig.wait_until(is_over, f"the end of the silence of {name}", 2 * silence_s + GIVEN_UP_S)
    link.heal()
    bites(link.swallowed > lost, f"bytes lost on {name}")


SHARE, IMPACT_S = 0.2, 60.0
# TCP sends again what was lost: fewer were not a lossy network.
LEAST_LOST = 500


@with_mutant("no_time_to_send_again")
def test_every_fifth_packet_is_lost(tmp_path: Path, seed: int, mutant: str) -> None:
    """D17: events are taken and counted meanwhile, if slowly; afterwards all is as before."""
    needs(root_to_make_a_network=root, iptables=iptables, ip=ip_tool)
    with own_network(), broken(tmp_path, seed, mutant, errors=(INTERRUPTED,)) as here:
        rig, clock = here.rig, SystemClock()
        here.more(200)
        await_new_result(rig)
        before, until_s = sockets(rig), clock.monotonic_s() + IMPACT_S
        acknowledged = here.load.acknowledged
        with losing(SHARE) as dropped:
            rig.wait_until(lambda: clock.monotonic_s() > until_s, "the loss", 2 * IMPACT_S)
            bites(here.load.acknowledged > acknowledged, "events that were taken meanwhile")
            begin_ms, what = clock.now_ms(), "a new result while packets are lost"
            rig.wait_until(lambda: processed_through_ms(rig) > begin_ms, what, PATIENCE_S)
            lost = dropped()
        bites(lost > LEAST_LOST, "lost packets")
        print(f"{lost} packets were lost")  # noqa: T201
        rig.revive()
        await_new_result(rig)
        await_sockets(rig, before)


@pytest.mark.parametrize(
    "mutant",
    ["", "message_without_timeout", "channels_in_turn"],
    ids=["weir", "message_without_timeout", "channels_in_turn"],
)
def test_a_receiver_of_messages_is_cut_off(tmp_path: Path, seed: int, mutant: str) -> None:
    """D17: silence, both ways and one way, lost replies, resets: no other channel waits.

    Rules go on, what is wrong is told, every message is delivered in the end, and the sockets
    of the alerts job come back.
    """
    silence_s = OF_A_MUTANT_S if mutant else SILENCE_S
    told: dict[str, Any] = {"part": "alerts", "settings": QUIET}
    with two_receivers() as both, broken(tmp_path, seed, mutant, **told) as here:
        pair = begin_pair(here, *both)
        before = {"alerts": sockets(here.rig)["alerts"]}
        silence(pair, frozenset({"up", "down"}), silence_s)
        for way in ("up", "down"):
            silence(pair, frozenset({way}), min(silence_s, ONE_WAY_S))
        lose_replies(pair, SHARE)
        await_sockets(here.rig, before)  # a reset would end those that were forgotten
        tear(pair)
        await_sockets(here.rig, before)
