"""Receivers that do not let a call end: it fails in time, and its connection ends with it."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
import uvloop
from slow_receivers import FLOODS, HANGS, SlowReceiver, Way
from weir_analytics.alerts.channels import by_apprise
from weir_analytics.alerts.channels.answer import Answer
from weir_analytics.alerts.channels.apprise_process import MAX_MEMORY_BYTES
from weir_analytics.alerts.channels.webhook import MAX_ANSWER_BYTES, Caller

from .test_alerts_sender import NOTE

T = TypeVar("T")

TIMEOUT_S = 1.0
# A busy machine may hold up the loop; nothing that waits without end is done by then.
IN_TIME_S = 5.0
# What the kernel takes of an answer that nobody reads.
BUFFERED_BYTES = 16 * 2**20
# Of a service by Apprise: its process takes a second to begin.
PROCESS_S = 4.0


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run on the loop that the alerts job has: another one may close what this one does not."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)


async def until(holds: Callable[[], bool], what: str) -> None:
    """Return once something holds.

    Raises:
        TimeoutError: If it does not in time.
    """
    try:
        async with asyncio.timeout(IN_TIME_S):
            while not holds():  # noqa: ASYNC110  polled, as in every test
                await asyncio.sleep(0.02)
    except TimeoutError as error:
        msg = f"could not see {what} within {IN_TIME_S:g} s"
        raise TimeoutError(msg) from error


async def call(receiver: SlowReceiver) -> tuple[Answer, float]:
    """Call once; return the answer, and after how many seconds; the caller goes on living."""
    caller, begun_s = Caller(["127.0.0.1"], timeout_s=TIMEOUT_S), time.monotonic()
    try:
        async with asyncio.timeout(IN_TIME_S):
            answer = await caller.call(receiver.url, b"{}", {})
        took_s = time.monotonic() - begun_s
        # Not by the end of the caller, of the loop or of the process: that of a job never comes.
        await until(lambda: not receiver.held, "the end of the connection")
        return answer, took_s
    finally:
        await caller.close()


@pytest.mark.parametrize("way", HANGS.values(), ids=HANGS)
def test_a_call_that_does_not_end_is_ended(way: Way) -> None:
    """It has failed in time, is tried again and says why; no connection is left of it."""
    with SlowReceiver(way) as receiver:
        answer, took_s = run(call(receiver))

    assert (answer.status, answer.why) == (None, "no answer within 1 s")
    assert not answer.final
    assert TIMEOUT_S <= took_s < IN_TIME_S
    assert receiver.calls == 1


@pytest.mark.parametrize("way", FLOODS.values(), ids=FLOODS)
def test_an_answer_without_end_is_not_read_to_its_end(way: Way) -> None:
    """What it says is known by its head: it is delivered, and the rest is left unread."""
    with SlowReceiver(way) as receiver:
        answer, took_s = run(call(receiver))

    assert (answer.status, answer.delivered) == (200, True)
    assert took_s < TIMEOUT_S
    assert receiver.sent_bytes < MAX_ANSWER_BYTES + BUFFERED_BYTES


@pytest.mark.thorough
class TestByApprise:
    @pytest.fixture(autouse=True)
    def short(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        """Let a process have less time than it has; none is left of a test."""
        monkeypatch.setattr(by_apprise, "TIMEOUT_S", PROCESS_S)
        before, begun_s = children(), time.monotonic()
        yield
        assert time.monotonic() - begun_s < PROCESS_S + IN_TIME_S
        assert children() == before

    @pytest.mark.parametrize("way", HANGS.values(), ids=HANGS)
    def test_a_service_that_hangs_is_ended(self, way: Way) -> None:
        """When its time is up its process is gone with its connection, and it is told so."""
        with SlowReceiver(way) as receiver:
            answer = run(by_process(receiver))

        assert (answer.why, answer.final) == ("no answer within 4 s", False)
        assert receiver.calls == 1

    def test_an_answer_without_end_is_not_kept(self) -> None:
        """Apprise reads it whole: its process ends when its memory is full, or its time is up."""
        with SlowReceiver(FLOODS["without a length"]) as receiver:
            answer = run(by_process(receiver))

        assert (answer.delivered, answer.final) == (False, False)
        assert receiver.sent_bytes < MAX_MEMORY_BYTES + BUFFERED_BYTES


async def by_process(receiver: SlowReceiver) -> Answer:
    """Send a message by Apprise; return what came of it once its connection has ended."""
    # Apprise itself would give up sooner, where nothing at all comes.
    url = f"{receiver.url.replace('http', 'json', 1)}?rto=30&cto=30&verify=no"
    answer = await by_apprise.call(url, NOTE, ["127.0.0.1"])
    await until(lambda: not receiver.held, "the end of the connection")
    return answer


def children() -> set[str]:
    """Return the processes that this one has started."""
    listed = Path(f"/proc/{os.getpid()}/task").glob("*/children")
    return {pid for one in listed for pid in one.read_text().split()}
