"""The 10,000 requests of the demo's log as events, read without any code of Weir."""

from __future__ import annotations

import gzip
import json
import re
import urllib.request
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

LOG = Path(__file__).parent.parent / "data" / "web-access.log.gz"
LINE = re.compile(
    r'^(\S+) \S+ \S+ \[([^\]]+)\] "(\S+) (\S+)[^"]*" (\d{3}) (\d+|-)',
)
SPAN_MS = 3_600_000


def events_ending_at(end_ms: int, *, type_: str, prefix: str) -> list[dict[str, Any]]:
    """Return one CloudEvent a line, the last at `end_ms`, the gaps shortened to an hour in all.

    Args:
        end_ms: Event time of the last request, epoch milliseconds.
        type_: The events' type.
        prefix: What their ids begin with; the line's number follows.
    """
    with gzip.open(LOG, "rt", encoding="utf-8") as file:
        found = [match for line in file if (match := LINE.match(line))]
    times = [datetime.strptime(m[2], "%d/%b/%Y:%H:%M:%S %z").timestamp() for m in found]
    first, last = min(times), max(times)
    events = []
    for number, (match, at) in enumerate(zip(found, times, strict=True)):
        time_ms = end_ms - round((last - at) / (last - first) * SPAN_MS)
        data = {
            "client": match[1],
            "method": match[3],
            "path": match[4],
            "status_class": match[5][0] + "xx",
            "bytes": None if match[6] == "-" else int(match[6]),
        }
        events.append(
            {
                "specversion": "1.0",
                "id": f"{prefix}-{number}",
                "source": "/web-access.log",
                "type": type_,
                "time": iso(time_ms),
                "data": data,
            }
        )
    return events


def iso(time_ms: int) -> str:
    """Return an RFC 3339 time with milliseconds."""
    at = datetime.fromtimestamp(time_ms / 1000, UTC)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def post(url: str, key: str, events: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Post events as one batch; return the answer's JSON.

    Raises:
        urllib.error.HTTPError: If the answer is not 2xx.
    """
    request = urllib.request.Request(  # noqa: S310 - the address is given by the caller
        url + "/v1/events",
        data=json.dumps(list(events)).encode(),
        headers={
            "Authorization": f"Bearer {key}",
            "Content-Type": "application/cloudevents-batch+json",
        },
    )
    with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
        body: dict[str, Any] = json.loads(answer.read())
        return body
