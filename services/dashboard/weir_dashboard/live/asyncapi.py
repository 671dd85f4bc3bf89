"""The AsyncAPI description of the live socket, made from the models that the hub uses."""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter
from weir.live import PROTOCOL
from weir.live.messages import Hello, Pace, Subscribe, Unsubscribe

import weir_dashboard
from weir_dashboard.live.messages import SENT

RECEIVED = {"hello": Hello, "subscribe": Subscribe, "unsubscribe": Unsubscribe, "pace": Pace}
PLACE = "#/components/schemas/{model}"


def asyncapi() -> dict[str, Any]:
    """Return the description."""
    schemas: dict[str, Any] = {}
    messages: dict[str, Any] = {}
    for name, model in {**RECEIVED, **SENT}.items():
        schema = TypeAdapter(model).json_schema(ref_template=PLACE)
        schemas.update(schema.pop("$defs", {}))
        schemas[model.__name__] = schema
        reference = {"$ref": PLACE.format(model=model.__name__)}
        messages[name] = {"name": name, "payload": reference}
    return {
        "asyncapi": "3.0.0",
        "info": {"title": "Weir live", "version": weir_dashboard.__version__},
        "channels": {
            "live": {
                "address": "/api/v1/live",
                "description": f"Websocket, subprotocol {PROTOCOL}, JSON text frames.",
                "messages": {name: {"$ref": f"#/components/messages/{name}"} for name in messages},
            }
        },
        "operations": {
            "client": _operation("receive", list(RECEIVED)),
            "server": _operation("send", list(SENT)),
        },
        "components": {"messages": messages, "schemas": dict(sorted(schemas.items()))},
    }


def _operation(action: str, names: list[str]) -> dict[str, Any]:
    return {
        "action": action,
        "channel": {"$ref": "#/channels/live"},
        "messages": [{"$ref": f"#/channels/live/messages/{name}"} for name in names],
    }
