"""What a client says and what comes of it: hello, subscribe, unsubscribe, pace."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable
from typing import Any

from redis.exceptions import RedisError
from weir.live import Hello, Pace, Subscribe, Unsubscribe
from weir.live.messages import After, ClientMessage, Position
from weir.problems import ProblemError, Reason

from weir_dashboard.auth.callers import Caller, KeyRing, unauthorized
from weir_dashboard.auth.guard import not_ready, store_unavailable
from weir_dashboard.auth.sessions import Sessions, cookie_of
from weir_dashboard.live import frames
from weir_dashboard.live.alerts import AlertFeeds
from weir_dashboard.live.client import MAX_SUBSCRIPTIONS, Client, Subscription
from weir_dashboard.live.corrections import CorrectionFeeds
from weir_dashboard.live.feeds import Feeds, Question
from weir_dashboard.live.pipeline import KEY, Pipelines
from weir_dashboard.live.tail import Tails
from weir_dashboard.live.tail_filter import Filter

# Returns a question and its canonical query for a tenant's raw query.
Asks = Callable[[str, dict[str, Any]], Awaitable[tuple[Question, dict[str, Any]]]]


class Conversation:
    """Turns messages into subscriptions."""

    def __init__(
        self,
        *,
        keys: KeyRing,
        sessions: Sessions,
        ask: Asks,
        feeds: Feeds,
        tails: Tails,
        alerts: AlertFeeds,
        corrections: CorrectionFeeds,
        is_ready: Callable[[], bool],
    ) -> None:
        self._is_ready = is_ready
        self._keys = keys
        self._sessions = sessions
        self._ask = ask
        self._feeds = feeds
        self._tails = tails
        self._alerts = alerts
        self._corrections = corrections
        self.pipelines: Pipelines | None = None

    async def identify(self, client: Client, hello: Hello) -> Caller:
        """Return who says hello.

        Raises:
            ProblemError: 401 without valid credentials, 403 without the scope `read`, 503
                while nobody's can be known.
        """
        if not self._is_ready():
            raise not_ready()
        cookie = cookie_of({"cookie": client.socket.cookie_header})
        if hello.auth is not None:
            caller = self._keys.check(hello.auth, client.socket.address)
        elif cookie is not None:
            caller = await self._sessions.find(cookie)
        else:
            raise unauthorized()
        caller.require("read")
        return caller

    async def still_valid(self, caller: Caller) -> bool:
        """Tell whether a caller's key and session still stand."""
        if not self._keys.still_valid(caller.key_id):
            return False
        if caller.session is None:
            return True
        try:
            await self._sessions.find_digest(caller.session)
        except ProblemError:
            return False
        except (RedisError, OSError):
            return True  # unknown is not revoked; asked again in 20 s
        return True

    async def handle(self, client: Client, message: ClientMessage) -> None:
        """Act on a message after hello.

        Raises:
            ProblemError: What is refused; the socket stays open.
        """
        if isinstance(message, Subscribe):
            await self._subscribe(client, message)
        elif isinstance(message, Unsubscribe):
            self.drop(client, message.id)
        elif isinstance(message, Pace):
            client.hz = message.hz

    def drop(self, client: Client, subscription_id: int) -> None:
        """End a subscription; one that is not there is no error."""
        subscription = client.subscriptions.pop(subscription_id, None)
        if subscription is None:
            return
        self._feeds.leave(subscription)
        self._tails.leave(subscription)
        self._alerts.leave(subscription)
        self._corrections.leave(subscription)
        if self.pipelines is not None:
            self.pipelines.leave(subscription)

    def drop_all(self, client: Client) -> None:
        """End everything that a client follows."""
        for subscription_id in list(client.subscriptions):
            self.drop(client, subscription_id)

    async def _subscribe(self, client: Client, message: Subscribe) -> None:
        self.drop(client, message.id)
        if len(client.subscriptions) >= MAX_SUBSCRIPTIONS:
            client.socket.close(4413, f"at most {MAX_SUBSCRIPTIONS} subscriptions a socket")
            return
        if message.to == "query":
            await self._to_query(client, message)
        elif message.to == "tail":
            await self._to_tail(client, message)
        elif message.to == "alerts":
            self._to_alerts(client, message)
        elif message.to == "pipeline":
            self._to_pipeline(client, message)
        else:
            self._to_corrections(client, message)

    async def _to_query(self, client: Client, message: Subscribe) -> None:
        if message.query is None:
            msg = 'a subscription to "query" needs the member "query"'
            raise ProblemError(422, Reason.QUERY_INVALID, msg)
        caller = _caller(client)
        # Taken before awaiting: the limit counts what is under way, and an
        # unsubscribe that overtakes is seen.
        subscription = Subscription(client, message.id, key="")
        client.subscriptions[message.id] = subscription
        try:
            question, canonical = await self._ask(caller.tenant, message.query)
        except ProblemError:
            client.subscriptions.pop(message.id, None)
            raise
        except (RedisError, OSError):
            client.subscriptions.pop(message.id, None)
            raise store_unavailable() from None
        if client.subscriptions.get(message.id) is not subscription:
            return
        subscription.key = _key("q", caller.tenant, canonical)
        _resume(subscription, message.position)
        feed = self._feeds.open(subscription.key, question)
        client.socket.write(
            frames.frame("subscribed", id=message.id, key=feed.key, query=canonical)
        )
        self._feeds.join(feed, subscription)

    async def _to_tail(self, client: Client, message: Subscribe) -> None:
        caller = _caller(client)
        caller.require("tail")
        wanted = message.filter.model_dump(mode="json") if message.filter else {}
        tail_filter = Filter(message.filter)
        subscription = Subscription(client, message.id, _key("t", caller.tenant, wanted))
        client.subscriptions[message.id] = subscription
        await self._tails.open(caller.tenant)
        if client.subscriptions.get(message.id) is not subscription:
            return
        client.socket.write(
            frames.frame("subscribed", id=message.id, key=subscription.key, filter=wanted)
        )
        self._tails.join(subscription.key, tail_filter, subscription, caller.tenant)

    def _to_alerts(self, client: Client, message: Subscribe) -> None:
        tenant = _caller(client).tenant
        subscription = Subscription(client, message.id, _key("a", tenant, {}))
        if isinstance(message.position, After):
            subscription.last_sent_rev = message.position.seq
        self._alerts.join(tenant, subscription)
        client.subscriptions[message.id] = subscription
        client.socket.write(frames.frame("subscribed", id=message.id, key=subscription.key))

    def _to_corrections(self, client: Client, message: Subscribe) -> None:
        tenant = _caller(client).tenant
        subscription = Subscription(client, message.id, _key("c", tenant, {}))
        if isinstance(message.position, After):
            subscription.last_sent_rev = message.position.seq
        self._corrections.join(tenant, subscription)
        client.subscriptions[message.id] = subscription
        client.socket.write(frames.frame("subscribed", id=message.id, key=subscription.key))

    def _to_pipeline(self, client: Client, message: Subscribe) -> None:
        subscription = Subscription(client, message.id, KEY)
        client.subscriptions[message.id] = subscription
        client.socket.write(frames.frame("subscribed", id=message.id, key=KEY))
        if self.pipelines is not None:
            self.pipelines.join(subscription)


def _caller(client: Client) -> Caller:
    if client.caller is None:
        raise unauthorized()
    return client.caller


def _key(letter: str, tenant: str, wanted: dict[str, Any]) -> str:
    """Return a feed's name: the same on every replica for equal questions of a tenant."""
    text = json.dumps([tenant, wanted], sort_keys=True)
    return letter + hashlib.sha256(text.encode()).hexdigest()[:16]


def _resume(subscription: Subscription, position: Position | After | None) -> None:
    """Go on from what the client holds, one revision earlier.

    Another replica may have read panes one batch ahead of the revision that it named,
    and told its history so.
    """
    if isinstance(position, Position):
        subscription.epoch = position.epoch
        subscription.last_sent_rev = max(0, position.rev - 1)
