"""Sends track calls with `segment-analytics-python`; says which it gave up."""

from __future__ import annotations

import json
import sys
from typing import Any

from segment.analytics import Client

url, key, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
gave_up: list[int] = []


def on_error(_error: Exception, items: list[dict[str, Any]]) -> None:
    """Note what the client reports as not sent."""
    gave_up.extend(item["properties"]["n"] for item in items)


client = Client(key, host=url, gzip=True, upload_size=10, on_error=on_error)
for n in range(count):
    client.track(f"user-{n}", "segment_python", {"n": n})
client.shutdown()
sys.stdout.write(json.dumps({"sent": count, "gave_up": gave_up}))
