"""Query feeds: one evaluation and one serialised frame for all who ask the same.

A feed has no queue. Each tick it writes to every subscription what changed since the
revision that this subscription was last told; who could not take it is told more the
next time.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Protocol

import structlog
from redis.exceptions import RedisError
from weir.batches import BatchRecord
from weir.clock import Clock
from weir.live import Answer, Track, same
from weir.problems import ProblemError, Reason

from weir_dashboard import instruments
from weir_dashboard.live import frames
from weir_dashboard.live.client import MAX_HZ, Subscription

EVERY_S = 1 / MAX_HZ
# Evaluations at once; they share one interpreter with everything else.
AT_ONCE = 2

log = structlog.get_logger()


class Question(Protocol):
    """A canonical query of one tenant that can be answered again and again."""

    async def answer(self) -> Answer:
        """Return the answer at the newest revision."""
        ...

    def is_due(self, record: BatchRecord) -> bool:
        """Tell whether a batch can have changed the answer since the last one."""
        ...


@dataclass(eq=False)
class Feed:
    """One query with its subscribers.

    Attributes:
        key: Its name on the wire.
        question: What is asked.
        subscriptions: Who follows it.
        track: The answer and its history; None before the first evaluation.
        left_s: Since when nobody follows it; None while somebody does.
        withheld: Whether the newest answer says other things at a revision that was told already:
            definitions may be read after the batch that they came with. They are told with the
            next batch, whatever that changed.
    """

    key: str
    question: Question
    subscriptions: set[Subscription] = field(default_factory=set)
    track: Track | None = None
    left_s: float | None = None
    dirty: bool = True
    withheld: bool = False
    _task: asyncio.Task[None] | None = None
    _evaluated_s: float = -1.0
    _frames: dict[int | None, list[bytes]] = field(default_factory=dict)

    def frames_since(self, rev: int | None) -> list[bytes]:
        """Return the frames that lead from `rev` (None: from nothing) to the newest answer."""
        if self.track is None:
            return []
        found = self._frames.get(rev)
        if found is not None:
            return found
        return self._made(rev, self.track)

    def _made(self, rev: int | None, track: Track) -> list[bytes]:
        change = track.since(rev) if rev is not None else None
        if change is None:
            made = frames.snapshot(self.key, track.answer)
        else:
            made = [frames.delta(self.key, change)]
        self._frames[rev] = made
        return made

    def forget_frames(self) -> None:
        """Drop the serialised frames, since the answer has moved on."""
        self._frames.clear()


class Feeds:
    """All query feeds of this process.

    Attributes:
        evaluated_ms: When an evaluation last succeeded, by the clock; None before.
        overdue_s: Loop time since when an evaluation has been due, or None.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._feeds: dict[str, Feed] = {}
        self._gate = asyncio.Semaphore(AT_ONCE)
        self.evaluated_ms: int | None = None
        self.overdue_s: float | None = None

    def get(self, key: str) -> Feed | None:
        """Return a feed by its key."""
        return self._feeds.get(key)

    def open(self, key: str, question: Question) -> Feed:
        """Return the feed of a question, new or shared."""
        return self._feeds.setdefault(key, Feed(key, question))

    def all(self) -> list[Feed]:
        """Return all feeds."""
        return list(self._feeds.values())

    def join(self, feed: Feed, subscription: Subscription) -> None:
        """Let a subscription follow a feed."""
        feed.subscriptions.add(subscription)
        if feed.left_s is not None:
            feed.left_s, feed.dirty = None, True
        if feed.dirty:
            self.evaluate_soon(feed)
        else:
            self.send(feed)

    def leave(self, subscription: Subscription) -> None:
        """Let a subscription follow nothing any more; its feed lives on for resumes."""
        feed = self._feeds.get(subscription.key)
        if feed is None:
            return
        feed.subscriptions.discard(subscription)
        if not feed.subscriptions:
            feed.left_s = self._clock.monotonic_s()

    def drop_idle(self, older_than_s: float) -> None:
        """Forget feeds that nobody has followed for so long."""
        now = self._clock.monotonic_s()
        instruments.feeds.set(len(self._feeds))
        for key, feed in list(self._feeds.items()):
            if feed.left_s is not None and now - feed.left_s > older_than_s:
                del self._feeds[key]
        if not any(feed.subscriptions for feed in self._feeds.values()):
            self.overdue_s = None

    def on_batch(self, record: BatchRecord) -> None:
        """Evaluate what a batch can have changed."""
        for feed in self._feeds.values():
            # Asked in any case: it takes note of what the batch changed.
            is_due = feed.track is None or feed.question.is_due(record)
            if is_due or feed.withheld:
                feed.dirty = True
                if feed.subscriptions:
                    self.evaluate_soon(feed)

    def evaluate_all(self) -> None:
        """Evaluate every query anew, since definitions changed."""
        for feed in self._feeds.values():
            feed.dirty = True
            if feed.subscriptions:
                self.evaluate_soon(feed)

    def evaluate_soon(self, feed: Feed) -> None:
        """Evaluate a feed, at most four times a second."""
        if feed._task is None or feed._task.done():
            feed._task = asyncio.create_task(self._evaluate(feed))

    async def _evaluate(self, feed: Feed) -> None:
        loop = asyncio.get_running_loop()
        while feed.dirty:
            await asyncio.sleep(max(0.0, feed._evaluated_s + EVERY_S - loop.time()))
            async with self._gate:
                feed.dirty = False
                if not await self._take_answer(feed):
                    return
            feed._evaluated_s = loop.time()
            self.send(feed)

    async def _take_answer(self, feed: Feed) -> bool:
        if self.overdue_s is None:
            self.overdue_s = self._clock.monotonic_s()
        try:
            with instruments.evaluation_seconds.time():
                answer = await feed.question.answer()
        except ProblemError as problem:
            self._refuse(feed, problem)
            return False
        except (RedisError, OSError) as error:
            log.warning("evaluation_failed", feed=feed.key, error=type(error).__name__)
            feed.dirty = True  # the next batch tries again; the heartbeat says `stale`
            return False
        now_ms = self._clock.now_ms()
        if feed.track is None:
            feed.track = Track(answer, now_ms)
        elif feed.track.advance(answer, now_ms):
            feed.withheld = False
            feed.forget_frames()
        else:
            feed.withheld = not same(answer, feed.track.answer)
        self.evaluated_ms, self.overdue_s = now_ms, None
        return True

    def _refuse(self, feed: Feed, problem: ProblemError) -> None:
        self.overdue_s = None
        for subscription in list(feed.subscriptions):
            subscription.client.socket.write(frames.error(subscription.id, problem))
            subscription.client.subscriptions.pop(subscription.id, None)
        if problem.reason is not Reason.QUERY_TIMEOUT:
            self._feeds.pop(feed.key, None)
        feed.subscriptions.clear()

    def send(self, feed: Feed) -> None:
        """Write to every subscription what it has not been told, if it can take it now."""
        track = feed.track
        if track is None:
            return
        now_s = asyncio.get_running_loop().time()
        epoch, rev = track.answer["epoch"], track.rev
        # One loop over all clients, counted once: with 500 of them every call shows.
        written = {True: 0, False: 0}
        held_back = 0
        for subscription in feed.subscriptions:
            known = _known_rev(subscription, track)
            if known is not None and known >= rev:
                continue
            client = subscription.client
            if not client.can_take(now_s) or not client.wants(subscription, now_s):
                held_back += 1
                continue
            write = client.socket.write
            for one in feed.frames_since(known):
                write(one)
            written[known is None] += 1
            subscription.epoch, subscription.life, subscription.sent_s = epoch, track.life, now_s
            # A snapshot may say a later revision; a delta from before it is as good.
            subscription.last_sent_rev = rev
        if any(written.values()):
            self._note_age(track.answer)
        instruments.frames.labels("snapshot").inc(written[True])
        instruments.frames.labels("delta").inc(written[False])
        instruments.held_back.inc(held_back)

    def _note_age(self, answer: Answer) -> None:
        through_ms = answer.get("fresh", {}).get("processed_through_ms")
        if through_ms:
            age_ms = self._clock.now_ms() - through_ms
            instruments.frame_age_seconds.observe(max(0, age_ms) / 1000)


def _known_rev(subscription: Subscription, track: Track) -> int | None:
    """Return from which revision a delta can lead on; None if only a snapshot can."""
    if subscription.epoch != track.answer["epoch"]:
        return None
    return subscription.last_sent_rev if subscription.life in (None, track.life) else None
