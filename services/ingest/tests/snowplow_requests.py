"""Requests of Snowplow's trackers, as tests send them."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st
from weir.clock import ManualClock
from weir_ingest.keys import Keys

from .in_process import ARRIVED_MS, CALLER, HASH_KEY, KEY, Asked, Request, ask

TP2 = "/com.snowplowanalytics.snowplow/tp2"
BEARER = {"Authorization": f"Bearer {KEY}"}
CREATED_MS = ARRIVED_MS - 3_600_000
EVENT: dict[str, Any] = {
    "e": "se",
    "eid": "6f1c0f5e-0000-4000-8000-000000000001",
    "p": "web",
    "aid": "shop",
    "tv": "js-4.0.0",
    "uid": "u42",
    "dtm": str(CREATED_MS),
    "stm": str(ARRIVED_MS),
    "se_va": "3",
}
ORDER = {"schema": "iglu:com.acme/order/jsonschema/1-0-0", "data": {"amount": 12.5, "note": "n>é?"}}
UNSTRUCT = {
    "schema": "iglu:com.snowplowanalytics.snowplow/unstruct_event/jsonschema/1-0-0",
    "data": ORDER,
}
CONTEXTS = {"schema": "iglu:com.snowplowanalytics.snowplow/contexts/jsonschema/1-0-1", "data": []}
UE: dict[str, Any] = {**EVENT, "e": "ue"}
TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
FIELDS = st.dictionaries(st.sampled_from(["page", "url", "se_ca", "tna", "fé"]), TEXT)


def in_base64(value: Any, *, padded: bool = True) -> str:
    """Return JSON as trackers encode it."""
    text = value if isinstance(value, bytes) else json.dumps(value, ensure_ascii=False).encode()
    encoded = base64.urlsafe_b64encode(text).decode()
    return encoded if padded else encoded.rstrip("=")


def payload(*events: Any) -> bytes:
    """Return a body as trackers send it."""
    schema = "iglu:com.snowplowanalytics.snowplow/payload_data/jsonschema/1-0-4"
    return json.dumps({"schema": schema, "data": events}).encode()


def post(*events: Any, **changes: Any) -> Asked:
    """Return what becomes of events that come with a key."""
    return ask(Request(TP2, payload(*events), headers=BEARER), **changes)


def get(query: str, headers: dict[str, str] = BEARER, **changes: Any) -> Asked:
    """Return what becomes of a query."""
    return ask(Request(f"/i?{query}", method="GET", headers=headers), **changes)


def apps(*, ready: bool = True) -> Keys:
    """Return who may send: the key, and the apps `shop` and `7` of other sources."""
    keys = Keys(HASH_KEY, ManualClock(ARRIVED_MS))
    listed = {
        "shop": replace(CALLER, id="", tenant="zeta", source="tracker"),
        "7": replace(CALLER, id="", tenant="eta", source="number"),
    }
    keys.replace([CALLER], listed)
    keys.ready = ready
    return keys


def code_of(asked: Asked) -> tuple[int, str]:
    """Return status and code of a refusal; nothing of it is stored."""
    assert asked.records == []
    return asked.status, asked.json["code"]
