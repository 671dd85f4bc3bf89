"""Ingest in this process, with a log that acknowledges at once: all but Kafka is the real thing."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from prometheus_client import CollectorRegistry
from weir.clock import Clock, ManualClock
from weir_ingest.accept import Accept, Parts
from weir_ingest.api import build_api
from weir_ingest.body import BodyLimits, Budget
from weir_ingest.instruments import Instruments
from weir_ingest.keys import Keys, StoredKey
from weir_ingest.protocols.batch import BatchLimits
from weir_ingest.quota import Quota
from weir_ingest.routes import wire_of
from weir_ingest.settings import Settings
from weir_ingest.tail import Sampler, Tail
from weir_service.last_used import LastUsed

if TYPE_CHECKING:
    from redis.asyncio import Redis
    from weir.problems import ProblemError
    from weir_ingest.event_log import EventLog, Record

ARRIVED_MS = 1_772_400_000_000
HASH_KEY = b"0123456789abcdef"
KEY = f"wk_abcdefgh_{'s' * 32}"
CALLER = StoredKey(
    "abcdefgh",
    "acme",
    hmac.new(HASH_KEY, KEY.encode(), hashlib.sha256).hexdigest(),
    frozenset({"ingest"}),
    "web",
)
LIMITS = BatchLimits(10_000, 1_000)


class Log:
    """The log's place: takes records, and acknowledges them as docs/ingest.md shows, or fails."""

    def __init__(self, failure: ProblemError | None = None) -> None:
        self.records: list[Record] = []
        self._failure = failure

    async def append(self, records: Sequence[Record]) -> dict[int, int]:
        """Take records; return where they are."""
        if self._failure is not None:
            raise self._failure
        self.records += records
        return {0: 4711, 3: 4698} if records else {}


@dataclass(frozen=True)
class Request:
    """A request as a client sends it.

    Attributes:
        target: Path and query.
        headers: Names as they are written in HTTP.
    """

    target: str
    body: bytes = b""
    method: str = "POST"
    headers: dict[str, str] = field(default_factory=dict)

    def scope(self) -> dict[str, Any]:
        """Return it as ASGI has it."""
        path, _, query = self.target.partition("?")
        named = [(n.lower().encode(), v.encode("latin-1")) for n, v in self.headers.items()]
        return {
            "type": "http",
            "http_version": "1.1",
            "scheme": "http",
            "root_path": "",
            "method": self.method,
            "path": path,
            "headers": named,
            "query_string": query.encode(),
        }


@dataclass(frozen=True)
class Asked:
    """An answer, and what was stored for it."""

    status: int
    headers: dict[str, str]
    body: bytes
    records: list[Record]

    @property
    def json(self) -> Any:
        """The body's JSON."""
        return json.loads(self.body)

    @property
    def events(self) -> list[dict[str, Any]]:
        """The events among the records."""
        return [json.loads(r.value) for r in self.records if r.headers[-1][0] == "content-type"]

    @property
    def refused(self) -> list[tuple[str, bytes]]:
        """Reason and bytes of what could not be used."""
        return [
            (cast("bytes", r.headers[0][1]).decode(), r.value)
            for r in self.records
            if r.headers[0][0] == "weir-reason"
        ]


def ask(request: Request, *, failure: ProblemError | None = None, **changes: Any) -> Asked:
    """Return the answer to a request; `changes` are of the parts that it is answered with."""
    log, sent = Log(failure), []
    wire = wire_of(request.target.partition("?")[0], request.method)

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": request.body}

    async def send(message: Any) -> None:
        sent.append(message)

    async def run() -> None:
        accept = Accept(_parts(log, changes))
        if wire is None:
            await build_api(accept)(request.scope(), receive, send)
        else:
            await accept(wire, request.scope(), receive, send)

    asyncio.run(run())
    headers = {name.decode(): value.decode("latin-1") for name, value in sent[0]["headers"]}
    body = b"".join(message.get("body", b"") for message in sent[1:])
    return Asked(sent[0]["status"], headers, body, log.records)


def _parts(log: Log, changes: dict[str, Any]) -> Parts:
    settings = Settings.model_construct()
    clock: Clock = changes.get("clock", ManualClock(ARRIVED_MS))
    keys, instruments = Keys(HASH_KEY, clock), Instruments(CollectorRegistry())
    keys.replace([CALLER])
    keys.ready = True
    parts: dict[str, Any] = {
        "keys": keys,
        "log": cast("EventLog", log),
        "tail": Tail(cast("Redis", None), Sampler(50), instruments),
        "clock": clock,
        "instruments": instruments,
        "budget": Budget(settings.max_in_flight_bytes, settings.max_decoded_bytes),
        "body_limits": BodyLimits(settings.max_body_bytes, settings.body_timeout_s),
        "batch_limits": LIMITS,
        "max_decoded_bytes": settings.max_decoded_bytes,
        "quota": Quota(settings.quota_events_per_s),
        "last_used": LastUsed(cast("Redis", None), clock),
    }
    return Parts(**{**parts, **changes})
