"""One connected client: who it is, what it follows, how fast it may talk and read."""

from __future__ import annotations

from dataclasses import dataclass, field

from weir.live.messages import ClientMessage

from weir_dashboard.auth.callers import Caller
from weir_dashboard.live.socket import LiveSocket

MAX_SUBSCRIPTIONS = 64
MESSAGES_PER_S = 20
# Over the rate for this long closes the socket.
FLOOD_S = 5
MAX_UNSENT_BYTES = 262_144
UNDRAINED_S = 10.0
MAX_HZ = 4.0


@dataclass(slots=True, eq=False)
class Subscription:
    """What a client follows, and the one number that conflation needs.

    Attributes:
        client: Whose it is.
        id: The client's own number for it.
        key: The feed.
        last_sent_rev: Up to which revision the client was told; None: a snapshot is due.
        epoch: The epoch of that revision.
        life: The life of the track that it was told from; None if it was told elsewhere.
        sent_s: Loop time of the last frame.
    """

    client: Client
    id: int
    key: str
    last_sent_rev: int | None = None
    epoch: int = 0
    life: int | None = None
    sent_s: float = 0.0


@dataclass(slots=True, eq=False)
class Client:
    """A socket with its caller and its limits.

    Attributes:
        socket: The connection.
        opened_s: Loop time of the handshake.
        caller: Who it is; None before `hello`.
        hz: How often it wants updates at most; 0 is paused.
        subscriptions: By the client's own id.
        full_s: Since when more than the limit is unsent; None if it is not.
        waiting: Messages that came while the credentials were looked up.
    """

    socket: LiveSocket
    opened_s: float
    caller: Caller | None = None
    hz: float = MAX_HZ
    subscriptions: dict[int, Subscription] = field(default_factory=dict)
    full_s: float | None = None
    waiting: list[ClientMessage] | None = None
    _allowance: float = MESSAGES_PER_S * FLOOD_S
    _spoke_s: float = 0.0

    def may_speak(self, now_s: float) -> bool:
        """Count one message in; False once the client floods."""
        full = float(MESSAGES_PER_S * FLOOD_S)
        gained = (now_s - self._spoke_s) * MESSAGES_PER_S
        self._allowance = min(full, self._allowance + gained) - 1
        self._spoke_s = now_s
        return self._allowance >= 0

    def can_take(self, now_s: float) -> bool:
        """Tell whether a frame may be written: not while too much is unsent."""
        if self.socket.unsent_bytes <= MAX_UNSENT_BYTES:
            self.full_s = None
            return True
        if self.full_s is None:
            self.full_s = now_s
        return False

    def is_stuck(self, now_s: float) -> bool:
        """Tell whether the client has not drained for too long."""
        return not self.can_take(now_s) and now_s - (self.full_s or now_s) >= UNDRAINED_S

    def wants(self, subscription: Subscription, now_s: float) -> bool:
        """Tell whether the client's pace allows a frame now."""
        if not subscription.sent_s:
            return True
        if self.hz <= 0:
            return False
        # Half a tick of grace, else 4 Hz on a 250 ms grid becomes 2 Hz.
        return now_s - subscription.sent_s >= 1 / self.hz - 0.125
