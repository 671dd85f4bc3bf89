"""Sends events with `posthog`, in the capture mode of the fourth word; says which it gave up."""

from __future__ import annotations

import json
import sys
from typing import Any

from posthog import Posthog

url, key, count, mode = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
gave_up: list[int] = []


def on_error(_error: Exception, batch: list[dict[str, Any]]) -> None:
    """Note what the client reports as not sent."""
    gave_up.extend(item["properties"]["n"] for item in batch)


client = Posthog(key, host=url, flush_at=10, on_error=on_error, capture_mode=mode)
for n in range(count):
    client.capture(f"posthog_{mode}", distinct_id=f"user-{n}", properties={"n": n})
client.shutdown()
sys.stdout.write(json.dumps({"sent": count, "gave_up": gave_up}))
