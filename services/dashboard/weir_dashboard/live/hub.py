"""The hub: who is connected, what they say, and the pulse that all of them get.

Everything here runs on one loop without awaiting a client: writing to a socket never
waits, so nobody slow holds up the others.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Collection, Coroutine
from math import inf
from typing import Any

import structlog
from redis.exceptions import RedisError
from weir.batches import BatchRecord
from weir.live import Hello, UnknownOpError, read_message
from weir.live.messages import ClientMessage
from weir.problems import ProblemError

from weir_dashboard import instruments
from weir_dashboard.auth.callers import Caller
from weir_dashboard.definitions.catalog import Place
from weir_dashboard.live import frames
from weir_dashboard.live.alerts import AlertFeeds
from weir_dashboard.live.client import MAX_HZ, MAX_SUBSCRIPTIONS, MESSAGES_PER_S, Client
from weir_dashboard.live.conversation import Conversation
from weir_dashboard.live.corrections import CorrectionFeeds
from weir_dashboard.live.feeds import EVERY_S, Feeds
from weir_dashboard.live.pipeline import Pipelines, Warnings
from weir_dashboard.live.socket import MAX_FRAME_BYTES, LiveSocket
from weir_dashboard.live.tail import Tails
from weir_dashboard.observer import Observer

HEARTBEAT_S = 2.0
PING_S = 25.0
HELLO_S = 5.0
# Longer than Redis is given for an answer, and shorter than a client waits for one: who is not
# looked up by then is told that it is our fault, and does not take us for gone.
LOOKED_UP_S = 5.5
RECHECK_S = 20.0
HISTORY_S = 300.0
MAX_RESTART_MS = 3_000

log = structlog.get_logger()


class Hub:
    """Accepts sockets, hands their messages on, keeps them alive or closes them."""

    def __init__(
        self,
        *,
        observer: Observer,
        feeds: Feeds,
        tails: Tails,
        alerts: AlertFeeds,
        corrections: CorrectionFeeds,
        conversation: Conversation,
        max_sockets: int,
        newer: Callable[[], Collection[str]],
        warnings: Callable[[], Warnings],
    ) -> None:
        """Prepare.

        Args:
            observer: How fresh the numbers are.
            feeds: The feeds of queries.
            tails: Those of tails.
            alerts: Those of alerts.
            corrections: Those of corrections.
            conversation: What messages come to.
            max_sockets: Most sockets of this process.
            newer: Returns why each of what a newer release wrote cannot be read.
            warnings: Returns what is about to be deleted.
        """
        self._observer = observer
        self._feeds = feeds
        self._tails = tails
        self._alerts = alerts
        self._corrections = corrections
        self._conversation = conversation
        self._pipelines = Pipelines(observer, warnings)
        conversation.pipelines = self._pipelines
        self._max_sockets = max_sockets
        self._newer = newer
        self._met: frozenset[str] = frozenset()
        self._met_s = -inf
        self._tasks: set[asyncio.Task[None]] = set()
        self._told: tuple[str, str | None] = ("", None)
        self._beat_s = self._ping_s = self._recheck_s = 0.0
        self.clients: dict[LiveSocket, Client] = {}

    # ── what sockets tell ───────────────────────────────────────────────────

    def opened(self, socket: LiveSocket) -> None:
        """Take a socket whose handshake is done."""
        if len(self.clients) >= self._max_sockets:
            socket.close(4429, "too many sockets on this server")
            return
        self.clients[socket] = Client(socket, _now_s(), _spoke_s=_now_s())

    def received(self, socket: LiveSocket, text: str) -> None:
        """Take one message: order within a socket is kept up to the first await."""
        client = self.clients.get(socket)
        if client is None:
            return
        if not client.may_speak(_now_s()):
            socket.close(4429, f"more than {MESSAGES_PER_S} messages/s")
            return
        try:
            message = read_message(json.loads(text))
        except (UnknownOpError, ValueError, RecursionError) as error:
            reason = str(error) if isinstance(error, UnknownOpError) else "a frame must be JSON"
            socket.close(4400, _cut(reason))
            return
        except ProblemError as problem:
            socket.write(frames.error(_id_of(text), problem))
            return
        greeted = client.caller is not None or client.waiting is not None
        if greeted is isinstance(message, Hello):
            socket.close(4400, "the first message, and only that, must be hello")
        elif isinstance(message, Hello):
            client.waiting = []
            self._run(self._greet(client, message))
        elif client.waiting is not None:
            client.waiting.append(message)
        else:
            self._run(self._handle(client, message))

    def closed(self, socket: LiveSocket) -> None:
        """Forget a socket."""
        client = self.clients.pop(socket, None)
        if client is not None:
            self._conversation.drop_all(client)

    def goodbye(self, socket: LiveSocket) -> None:
        """Say good-bye because the server stops."""
        self._say_goodbye(socket, 1012, "restart")

    # ── what the rest of the service tells ──────────────────────────────────

    def on_batch(self, record: BatchRecord) -> None:
        """Pass a committed batch on to all who follow something."""
        self._feeds.on_batch(record)
        self._tails.on_batch(record)

    def on_definitions(self, changed: set[Place]) -> None:
        """Look again at credentials and queries that a changed definition concerns."""
        kinds = {kind for _, kind, _ in changed}
        if "key" in kinds:
            self._recheck_s = 0.0
        if "metric" in kinds:
            self._feeds.evaluate_all()
        self._alerts.on_silences({tenant for tenant, kind, _ in changed if kind == "silence"})

    async def run(self) -> None:
        """Keep the pulse until cancelled."""
        while True:
            now_s = _now_s()
            self._tick(now_s)
            self._beat(now_s)
            if now_s - self._recheck_s >= RECHECK_S:
                self._recheck_s = now_s
                self._run(self._recheck())
            await asyncio.sleep(EVERY_S)

    async def stop(self) -> None:
        """Stop what is under way."""
        await self._tails.stop()
        for task in self._tasks:
            task.cancel()

    # ── inside ──────────────────────────────────────────────────────────────

    def _say_goodbye(self, socket: LiveSocket, code: int, reason: str) -> None:
        """Close with a reason in full: clients come back spread over a few seconds."""
        after_ms = random.randint(0, MAX_RESTART_MS)  # noqa: S311  spreads load, hides nothing
        socket.write(frames.frame("goodbye", code=code, reason=reason, after_ms=after_ms))
        socket.close(code, _cut(reason))

    async def _greet(self, client: Client, hello: Hello) -> None:
        try:
            # Who is looked up is not silent, so nothing else closes them.
            async with asyncio.timeout(LOOKED_UP_S):
                client.caller = await self._conversation.identify(client, hello)
        except (ProblemError, RedisError, OSError) as error:
            denied = isinstance(error, ProblemError) and error.status < 500
            client.socket.close(4401 if denied else 1013, "credentials" if denied else "not ready")
            return
        except Exception:
            client.socket.close(1011, "hello failed")
            raise
        client.socket.write(self._welcome(client.caller))
        client.socket.write(self._heartbeat())
        waiting, client.waiting = client.waiting or [], None
        for message in waiting:
            await self._handle(client, message)

    def _welcome(self, caller: Caller) -> bytes:
        return frames.frame(
            "welcome",
            v=1,
            epoch=self._observer.batches.epoch,
            rev=self._observer.batches.rev,
            now_ms=self._observer.now_ms(),
            heartbeat_ms=int(HEARTBEAT_S * 1000),
            key_id=caller.key_id,
            scopes=sorted(caller.scopes),
            limits={
                "subscriptions": MAX_SUBSCRIPTIONS,
                "frame_bytes": MAX_FRAME_BYTES,
                "messages_per_s": MESSAGES_PER_S,
                "hz": MAX_HZ,
            },
        )

    async def _handle(self, client: Client, message: ClientMessage) -> None:
        if client.socket not in self.clients:
            return  # it has gone meanwhile, and nobody would end what it subscribes to
        try:
            await self._conversation.handle(client, message)
        except ProblemError as problem:
            client.socket.write(frames.error(getattr(message, "id", None), problem))

    def _tick(self, now_s: float) -> None:
        self._end_before_newer(now_s)
        for client in list(self.clients.values()):
            # Who has said it, and is still looked up, is kept waiting by us.
            is_silent = client.caller is None and client.waiting is None
            if is_silent and now_s - client.opened_s > HELLO_S:
                client.socket.close(4401, "no hello within 5 s")
            elif client.is_stuck(now_s) or now_s - client.socket.pong_s > 2 * PING_S + HELLO_S:
                client.socket.close(4408, "too slow")
        for feed in self._feeds.all():
            if feed.subscriptions and not feed.dirty:
                self._feeds.send(feed)
        self._feeds.drop_idle(HISTORY_S)
        self._alerts.send(now_s)
        self._corrections.send(now_s)

    def _end_before_newer(self, now_s: float) -> None:
        """End the sockets that began before something of a newer release was met.

        What they were told may no longer hold, and nothing would tell them. Who comes back is
        refused what cannot be known, with the same reason, and is given the rest. What was met
        may be forgotten and met again, as marks are while the other release begins: so after a
        change some seconds pass before the next one counts.
        """
        met = frozenset(self._newer())
        if met == self._met or now_s - self._met_s < RECHECK_S:
            return
        added, self._met, self._met_s = met - self._met, met, now_s
        for client in list(self.clients.values()) if added else ():
            if client.caller is not None:
                self._say_goodbye(client.socket, 1013, min(added))

    def _beat(self, now_s: float) -> None:
        """Send the heartbeat each 2 s, and at once when freshness changes."""
        fresh = self._observer.fresh()
        instruments.sockets.set(len(self.clients))
        instruments.processed_through.set((fresh.processed_through_ms or 0) / 1000)
        state = (fresh.status, fresh.part)
        if now_s - self._beat_s >= HEARTBEAT_S - EVERY_S / 2 or state != self._told:
            if self._beat_s:
                instruments.frame_gap_seconds.observe(now_s - self._beat_s)
            self._beat_s, self._told = now_s, state
            body = self._heartbeat()
            for client in self.clients.values():
                if client.caller is not None and client.can_take(now_s):
                    client.socket.write(body)
            self._pipelines.beat(now_s)
        if now_s - self._ping_s >= PING_S:
            self._ping_s = now_s
            for client in self.clients.values():
                client.socket.ping()

    def _heartbeat(self) -> bytes:
        return frames.frame(
            "heartbeat",
            now_ms=self._observer.now_ms(),
            epoch=self._observer.batches.epoch,
            rev=self._observer.batches.rev,
            fresh=self._observer.fresh().body(),
        )

    async def _recheck(self) -> None:
        for client in list(self.clients.values()):
            if client.caller and not await self._conversation.still_valid(client.caller):
                client.socket.close(4401, "credentials were revoked or have expired")

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("hub_task_failed", exc_info=task.exception())


def _now_s() -> float:
    return asyncio.get_running_loop().time()


def _cut(reason: str) -> str:
    """Return a reason as a close frame has room for it."""
    return reason.encode()[:120].decode(errors="ignore")


def _id_of(text: str) -> int | None:
    found = json.loads(text).get("id")
    return found if isinstance(found, int) else None
