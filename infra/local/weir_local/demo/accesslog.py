"""Read a web server's access log in the combined format."""

from __future__ import annotations

import gzip
import re
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

LINE = re.compile(
    r"(?P<client>\S+) \S+ \S+ \[(?P<time>[^\]]+)\] "
    r'"(?P<method>\S+) (?P<path>\S+)(?: [^"]*)?" '
    r"(?P<status>\d{3}) (?P<bytes>\d+|-)"
    r'(?: "(?P<referrer>(?:[^"\\]|\\.)*)" "(?P<agent>(?:[^"\\]|\\.)*)"?)?'
)


@dataclass(frozen=True)
class Request:
    """One line of the log.

    Attributes:
        time_ms: When it was, epoch milliseconds; the log has whole seconds.
        data: The event's data; what the log writes as `-` is left out.
    """

    time_ms: int
    data: dict[str, str | int]


def parse_line(line: str) -> Request:
    """Return the request of one line.

    Raises:
        ValueError: If the line is not in the combined format; says which line.
    """
    found = LINE.match(line)
    if found is None:
        msg = f"a line must be in the combined log format, got {line[:100]!r}"
        raise ValueError(msg)
    at = datetime.strptime(found["time"], "%d/%b/%Y:%H:%M:%S %z")
    data: dict[str, str | int] = {
        "client": found["client"],
        "method": found["method"],
        "path": found["path"],
        "status": int(found["status"]),
        "status_class": f"{found['status'][0]}xx",
    }
    if found["bytes"] != "-":
        data["bytes"] = int(found["bytes"])
    for name in ("referrer", "agent"):
        if found[name] not in (None, "-", ""):
            data[name] = found[name]
    return Request(int(at.timestamp() * 1000), data)


def read_log(path: Path) -> list[Request]:
    """Return every request of a gzipped log, oldest first; lines of one second keep their order."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return sorted((parse_line(line) for line in lines), key=lambda request: request.time_ms)
