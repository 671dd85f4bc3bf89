"""Sends structured events with `snowplow-tracker`, which never gives one up on its own."""

from __future__ import annotations

import json
import sys
import time
from urllib.parse import urlsplit

from snowplow_tracker import Emitter, StructuredEvent, Tracker

BATCH = 10
url, app_id, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
at = urlsplit(url)
emitter = Emitter(at.hostname, protocol="http", port=at.port, batch_size=BATCH)
tracker = Tracker("clients", emitters=emitter, app_id=app_id)
# It sends again by a timer of its own, and then all that has come meanwhile at once: who waits for
# it has as many requests as there are batches.
deadline = time.monotonic() + 150
for n in range(count):
    tracker.track(StructuredEvent("clients", "snowplow_python", label=str(n)))
    while emitter.event_store.size() >= BATCH and time.monotonic() < deadline:
        time.sleep(0.02)
tracker.flush()
while emitter.event_store.size() and time.monotonic() < deadline:
    time.sleep(0.1)
left = emitter.event_store.get_events_batch()
sys.stdout.write(json.dumps({"sent": count, "gave_up": [int(event["se_la"]) for event in left]}))
