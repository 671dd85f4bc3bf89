"""What the OpenAPI document says of paths that take events: bodies, parameters, answers."""

from __future__ import annotations

from typing import Any

_EVENT = {"type": "order.placed", "subject": "u42", "data": {"total": 12.5}}
_OBJECT = {"type": "object"}
_OBJECTS = {"type": "array", "items": _OBJECT}
_TEXT = {"type": "string"}

BODY: dict[str, Any] = {
    "required": True,
    "content": {
        "application/cloudevents+json": {"schema": _OBJECT},
        "application/cloudevents-batch+json": {"schema": _OBJECTS},
        "application/x-ndjson": {"schema": _TEXT},
        "application/json-seq": {"schema": _TEXT},
        "application/json": {"schema": {"oneOf": [_OBJECT, _OBJECTS]}, "example": _EVENT},
    },
}


def _parameter(name: str, place: str, description: str) -> dict[str, Any]:
    return {"name": name, "in": place, "description": description, "schema": _TEXT}


PARAMETERS = [
    _parameter("type", "query", "Type of items that have none."),
    _parameter("name", "query", "The same as type=dev.weir.ndjson.<name>."),
    _parameter("subject", "query", "Subject of items that have none."),
    _parameter("access_token", "query", "The key, where no header can be sent."),
    _parameter("Idempotency-Key", "header", "Makes the ids of items without one repeatable."),
    _parameter("Content-Encoding", "header", "gzip, zstd or deflate."),
]

ITEM = {
    "type": "object",
    "required": ["index", "status"],
    "properties": {
        "index": {"type": "integer"},
        "status": {"type": "string", "enum": ["quarantined"]},
        "code": _TEXT,
        "detail": _TEXT,
    },
}

ITEMS = {"type": "array", "items": ITEM, "description": "The quarantined ones."}

ACCEPTED = {
    "type": "object",
    "required": ["accepted", "quarantined", "position", "retry_safe"],
    "properties": {
        "accepted": {"type": "integer", "description": "Events stored."},
        "quarantined": {"type": "integer", "description": "Items stored with a reason."},
        "position": {"type": "string", "description": "What a query's `after` takes."},
        "retry_safe": {
            "type": "boolean",
            "description": "False if ids were made up, so that a second sending counts twice.",
        },
        "items": ITEMS,
    },
}

PROBLEMS = {
    400: "The body as a whole cannot be read; nothing of it is stored.",
    401: "No valid key.",
    403: "The key may not write.",
    408: "The body stopped coming.",
    413: "Too large, or too many events.",
    415: "Unknown media type or coding.",
    429: "Over the tenant's quota; nothing was stored. Carries Retry-After and RateLimit.",
    503: "Not confirmed as stored; send again, same ids. Carries Retry-After.",
}

_PROBLEM = {
    "type": "object",
    "required": ["type", "title", "status", "detail", "code", "message"],
    "properties": {
        **dict.fromkeys(("type", "title", "detail", "code", "message"), _TEXT),
        "status": {"type": "integer"},
    },
}


REFUSALS: dict[str, Any] = {
    str(status): {
        "description": text,
        "content": {"application/problem+json": {"schema": _PROBLEM}},
    }
    for status, text in PROBLEMS.items()
}
"""Every answer of a path that refuses by problems."""


def success(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the answer 200 of a path."""
    return {"description": "Stored.", "content": {"application/json": {"schema": schema}}}


EVENTS: dict[str, Any] = {
    "summary": "Store events; the answer names the items that could not be used.",
    "requestBody": BODY,
    "parameters": PARAMETERS,
    "responses": {"200": success(ACCEPTED), **REFUSALS},
}


def json_path(summary: str, answer: dict[str, Any]) -> dict[str, Any]:
    """Return what is said of a path that takes JSON and answers with an object of some members."""
    schema = {"type": "object", "required": [*answer][:1], "properties": answer}
    return {
        "summary": summary,
        "requestBody": {"required": True, "content": {"application/json": {"schema": _OBJECT}}},
        "responses": {"200": success(schema), **REFUSALS},
    }
