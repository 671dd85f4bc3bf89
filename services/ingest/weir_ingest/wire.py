"""What a protocol is to this service. `routes.py` lists all of them.

A wire tells how clients say who they are, how a body is cut into items, and which answers are
understood. What becomes of an item is not its business.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from weir.admission import Admitted, Refused
from weir.problems import ProblemError

from weir_ingest import encodings
from weir_ingest.answers import Answer, Item, problem_answer
from weir_ingest.head import Head
from weir_ingest.keys import Keys, StoredKey
from weir_ingest.protocols.batch import Batch, BatchLimits


@dataclass(frozen=True, slots=True)
class Stored:
    """What became of a request that Kafka has.

    Attributes:
        sent: The items as they were judged, in order.
        judged: What each of them became.
        items: Those that could not be used.
        position: Where it stands in the log (`weir.position`).
        retry_safe: False if ids were made up, so that a second sending counts twice.
    """

    head: Head
    sent: Sequence[bytes]
    judged: Sequence[Admitted | Refused]
    items: list[Item]
    position: str
    retry_safe: bool

    @property
    def accepted(self) -> int:
        """How many items became events."""
        return len(self.judged) - len(self.items)


class Wire:
    """One protocol as it is spoken over HTTP. What it does not change is as for /v1/events.

    Attributes:
        query_keys: Parameters of the query that may carry the key, the first that is there.
        has_key_in_body: The body may carry the key.
        may_be_empty: A body of declared length 0, or none of a GET, is no fault.
        document: What the OpenAPI document says of it: `summary`, `requestBody`, `parameters`,
            `responses`.
    """

    query_keys: ClassVar[tuple[str, ...]] = ()
    has_key_in_body: ClassVar[bool] = False
    may_be_empty: ClassVar[bool] = False
    document: ClassVar[dict[str, Any]] = {}

    def decode(self, head: Head, body: bytes, limit: int) -> bytes:
        """Undo a body's Content-Encoding.

        Args:
            head: Of the request.
            body: As sent.
            limit: Largest output, bytes.

        Raises:
            ProblemError: As `encodings.decode`.
        """
        return encodings.decode(body, head.headers.get(b"content-encoding", b""), limit)

    def key_in(self, head: Head, body: bytes) -> bytes:  # noqa: ARG002 - for those that say it there
        """Return the key that the body carries; asked where neither header nor query does."""
        return b""

    def caller_in(self, head: Head, body: bytes, keys: Keys) -> StoredKey:
        """Return whom the body says it comes from.

        Raises:
            ProblemError: As `Keys.caller`.
        """
        return keys.caller(self.key_in(head, body))

    def read(self, head: Head, body: bytes, limits: BatchLimits) -> Batch:
        """Cut a decoded body into its items.

        Raises:
            ProblemError: If the body as a whole cannot be read.
        """
        raise NotImplementedError

    def stored(self, stored: Stored) -> Answer:
        """Return the answer to a request once Kafka has every record of it."""
        raise NotImplementedError

    def refused(self, head: Head, problem: ProblemError) -> Answer:  # noqa: ARG002 - some answer as asked
        """Return the answer to a request that is not stored, or not known to be."""
        return problem_answer(problem)


@dataclass(frozen=True, slots=True)
class Route:
    """Where a protocol is spoken.

    Attributes:
        paths: Without a slash at the end; each holds with one, too.
        wire: The protocol.
        methods: Those that carry events.
    """

    paths: tuple[str, ...]
    wire: Wire
    methods: tuple[str, ...] = ("POST",)


@dataclass(frozen=True, slots=True)
class Page:
    """What clients of a protocol ask for besides: nothing of it is stored.

    Attributes:
        path: With parameters in braces, which `answer` gets by name.
        answer: Returns the answer to a request.
    """

    path: str
    answer: Callable[..., Answer]
    methods: tuple[str, ...] = ("GET",)
