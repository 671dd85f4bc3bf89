"""Prometheus' remote write 1.0 (INGEST 4.8).

One snappy block of protobuf a request. A request with samples that cannot be used is answered 400,
as the specification demands, although the others are stored: so senders log it and send none of
it again. Answers are plain text, which senders log, too.
"""

from __future__ import annotations

from typing import Any, ClassVar

from weir.mappings import prometheus
from weir.problems import MAX_ERRORS, ProblemError, Reason, echo

from weir_ingest import encodings, openapi
from weir_ingest.answers import Answer, problem_answer
from weir_ingest.head import Head
from weir_ingest.protocols.batch import Batch, BatchLimits
from weir_ingest.protocols.write_request import items_of
from weir_ingest.wire import Route, Stored, Wire

_MEDIA_TYPE, _MESSAGE = "application/x-protobuf", "prometheus.writerequest"
_CODING = "snappy"
_TEXT = b"text/plain; charset=utf-8"

_TEXTS = {
    **openapi.PROBLEMS,
    400: "The body cannot be read, and nothing of it is stored; or samples could not be used: "
    "they are in quarantine, the others stored.",
    415: "Not the message of 1.0, or not in snappy.",
}


class RemoteWrite(Wire):
    """The protocol."""

    document: ClassVar[dict[str, Any]] = {
        "summary": "Prometheus remote write 1.0",
        "requestBody": {
            "required": True,
            "content": {_MEDIA_TYPE: {"schema": {"type": "string", "format": "binary"}}},
        },
        "responses": {
            "204": {"description": "Stored."},
            **{
                str(status): {
                    "description": text,
                    "content": {"text/plain": {"schema": {"type": "string"}}},
                }
                for status, text in _TEXTS.items()
            },
        },
    }

    def decode(self, head: Head, body: bytes, limit: int) -> bytes:
        """Undo snappy, the one coding that there is; who names none means it.

        Raises:
            ProblemError: 415, if it is another message or coding; else as `encodings.unsnappy`.
        """
        _check_type(head.content_type.decode("latin-1"))
        coding = (head.text(b"content-encoding") or _CODING).strip().lower()
        if coding != _CODING:
            message = f'content-encoding must be snappy, in one block, got "{echo(coding)}"'
            raise ProblemError(415, Reason.UNSUPPORTED_ENCODING, message)
        return encodings.unsnappy(body, limit)

    def read(self, head: Head, body: bytes, limits: BatchLimits) -> Batch:  # noqa: ARG002 - all in the body
        """Cut a request into its samples.

        Raises:
            ProblemError: As `items_of`.
        """
        name = prometheus.PROTOCOL
        items = items_of(body, limits.max_events)
        return Batch(items, name, mapping=prometheus.mapping, mapped=name)

    def stored(self, stored: Stored) -> Answer:
        """Return no content, or 400 with what could not be used."""
        if not stored.items:
            return Answer(204, b"", [])
        told = "; ".join(
            f"sample {item.index}: {item.code}, {item.detail}" for item in stored.items[:MAX_ERRORS]
        )
        left = len(stored.items) - MAX_ERRORS
        more = f"; and {left} more" if left > 0 else ""
        return _text(
            400,
            f"{len(stored.items)} of {len(stored.judged)} samples cannot be used and are in "
            f"quarantine, the others are stored; send none of them again; {told}{more}",
        )

    def refused(self, head: Head, problem: ProblemError) -> Answer:  # noqa: ARG002 - the same for all
        """Return a problem as a line of text, with the header fields that belong to it."""
        answer = _text(problem.status, f"{problem.reason}: {problem.message}")
        for name, value in problem_answer(problem).headers[2:]:
            coding = name == b"accept-encoding"
            answer.headers.append((name, _CODING.encode() if coding else value))
        return answer


def _check_type(content_type: str) -> None:
    """Refuse another message, so that the sender may fall back to 1.0; no type means it."""
    media_type, *parameters = (part.strip() for part in content_type.split(";"))
    message = next((p[6:].strip('"') for p in parameters if p.startswith("proto=")), _MESSAGE)
    if media_type not in ("", _MEDIA_TYPE) or message != _MESSAGE:
        why = (
            f"content-type must be {_MEDIA_TYPE} with a prometheus.WriteRequest, of remote write "
            f'1.0, got "{echo(content_type)}"'
        )
        raise ProblemError(415, Reason.UNSUPPORTED_MEDIA_TYPE, why)


def _text(status: int, text: str) -> Answer:
    body = f"{text}\n".encode()
    length = str(len(body)).encode()
    return Answer(status, body, [(b"content-type", _TEXT), (b"content-length", length)])


ROUTES = (Route(("/api/v1/write",), RemoteWrite()),)
