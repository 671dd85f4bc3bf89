"""A second tenant of a stack: its key is stored as an installer would, past the API."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets

from alerts_job import append
from disruption.mixed import DEFINITION
from weir.clock import SystemClock
from weir.definitions.records import Edit, put_record
from weir_local.client import ApiClient, ApiError
from weir_local.testing import TestStack

SCOPES = ["ingest", "read", "define"]


def key_for(stack: TestStack, tenant: str) -> str:
    """Store a key of a tenant, and return it once ingest and the dashboard know it."""
    name = "".join(secrets.choice("abcdefgh12345678") for _ in range(8))
    key = f"wk_{name}_{secrets.token_urlsafe(32)}"
    hash_key = (stack.home.secrets / "hash_key").read_text().strip().encode()
    digest = hmac.new(hash_key, key.encode(), hashlib.sha256).hexdigest()
    text = {"kind": "key", "name": name, "hash": digest, "scopes": SCOPES, "source": "http"}
    edit = Edit(tenant, "key", name, based_on=None, by="test", at_ms=SystemClock().now_ms())
    append(stack.kafka_bootstrap, put_record(edit, json.dumps(text)))
    stack.wait_until(lambda: is_known(stack, key), f"the key of {tenant}")
    return key


def define_mixed(
    stack: TestStack, key: str, name: str = "mixed", definition: str = DEFINITION
) -> None:
    """Define a metric of a mixed log for a tenant, and return once it is counted."""
    client = ApiClient(stack.dashboard_url, key, patience_s=60)
    path = f"/api/v1/definitions/metric/{name}"
    client.call("PUT", path, {"text": definition}, {"If-None-Match": "*"})
    stack.wait_until(lambda: client.call("GET", f"{path}/progress").body["serving"], "the metric")
    client.close()


def is_known(stack: TestStack, key: str) -> bool:
    """Return whether both services take a key."""
    board, ingest = (
        ApiClient(url, key, patience_s=5) for url in (stack.dashboard_url, stack.ingest_url)
    )
    try:
        board.call("GET", "/api/v1/status")
        ingest.post_events([])
    except ApiError as error:
        if error.status == 401:
            return False
        raise
    finally:
        board.close()
        ingest.close()
    return True
