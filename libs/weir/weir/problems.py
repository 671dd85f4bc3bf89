"""Why something was refused: one list of codes, one shape of an answer.

A code serves as the `code` of an HTTP problem, as the label of a counter and as
the `weir-reason` of a quarantined record, so that all three can be joined.
Problems follow RFC 9457; `message` is there because some clients read it
(INGEST 1.4).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Reason(StrEnum):
    """Everything that Weir refuses, by name."""

    # a whole request cannot be read
    INVALID_JSON = "invalid_json"
    INVALID_UTF8 = "invalid_utf8"
    EMPTY_BODY = "empty_body"
    BODY_TRUNCATED = "body_truncated"
    BODY_TOO_LARGE = "body_too_large"
    DECOMPRESSED_TOO_LARGE = "decompressed_too_large"
    BAD_ENCODING = "bad_encoding"
    UNSUPPORTED_ENCODING = "unsupported_encoding"
    UNSUPPORTED_MEDIA_TYPE = "unsupported_media_type"
    TOO_MANY_EVENTS = "too_many_events"
    REQUEST_TIMEOUT = "request_timeout"
    UNAUTHORIZED = "unauthorized"
    SCOPE_MISSING = "scope_missing"
    ORIGIN_REFUSED = "origin_refused"
    REQUEST_INVALID = "request_invalid"
    NOT_FOUND = "not_found"
    METHOD_NOT_ALLOWED = "method_not_allowed"
    RATE_LIMITED = "rate_limited"
    LOG_UNAVAILABLE = "log_unavailable"
    STORE_UNAVAILABLE = "store_unavailable"
    INTERNAL = "internal"
    NOT_AVAILABLE = "not_available"

    # one item of a request, or one record, cannot be used
    TOO_DEEP = "too_deep"
    NOT_AN_EVENT = "not_an_event"
    INVALID_UNICODE = "invalid_unicode"
    NUMBER_RANGE = "number_range"
    EVENT_TOO_LARGE = "event_too_large"
    TIME_INVALID = "time_invalid"
    ID_INVALID = "id_invalid"
    ATTRIBUTE_INVALID = "attribute_invalid"

    # one metric cannot use an event
    VALUE_MISSING = "value_missing"
    VALUE_INVALID = "value_invalid"
    VALUE_RANGE = "value_range"

    # a definition or a query
    DEFINITION_INVALID = "definition_invalid"
    UNKNOWN_FIELD = "unknown_field"
    FUNCTION_NOT_ALLOWED = "function_not_allowed"
    EXPRESSION_INVALID = "expression_invalid"
    EXPRESSION_TOO_LARGE = "expression_too_large"
    NAME_AMBIGUOUS = "name_ambiguous"
    BUDGET_EXCEEDED = "budget_exceeded"
    PRECONDITION_REQUIRED = "precondition_required"
    VERSION_CONFLICT = "version_conflict"
    METRIC_UNKNOWN = "metric_unknown"
    QUERY_INVALID = "query_invalid"
    QUERY_TOO_LARGE = "query_too_large"
    QUERY_TIMEOUT = "query_timeout"
    NOT_COUNTED_YET = "not_counted_yet"

    # something that is done about alerts
    ALREADY_ENDED = "already_ended"
    URL_NOT_ALLOWED = "url_not_allowed"


MAX_ERRORS = 20
MAX_ECHO = 64


def echo(text: str) -> str:
    """Return what a client sent, short and printable enough to say it back."""
    shown = "".join(c if c.isprintable() else "�" for c in text[: MAX_ECHO + 1])
    return shown if len(shown) <= MAX_ECHO else shown[: MAX_ECHO - 1] + "…"


@dataclass(eq=False)
class ProblemError(Exception):
    """A refusal: what was required, what came, and what to do.

    Attributes:
        status: HTTP status.
        reason: The code.
        message: One sentence, lower-case first letter, no full stop.
        errors: Up to 20 places, each with `pointer`, `required`, `got`, `mend`.
        retry_after_s: Set where sending again later may help.
    """

    status: int
    reason: Reason
    message: str
    errors: tuple[dict[str, Any], ...] = field(default=())
    retry_after_s: int | None = None

    def body(self) -> dict[str, Any]:
        """Return the members of the problem's JSON."""
        body: dict[str, Any] = {
            "type": f"https://weir.dev/problems/{self.reason.replace('_', '-')}",
            "title": self.reason.replace("_", " ").capitalize(),
            "status": self.status,
            "detail": self.message,
            "code": self.reason.value,
            "message": self.message,
        }
        if self.errors:
            body["errors"] = list(self.errors[:MAX_ERRORS])
        return body
