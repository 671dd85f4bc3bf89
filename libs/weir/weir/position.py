"""A position in the log, as clients carry it: opaque to them, offsets by partition to us.

Ingest answers with the highest offset it stored in each partition; a query's
`after` takes it and waits until those records are counted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_FORM = re.compile(r"(?:\d{1,6}:\d{1,18}(?:,(?=\d))?)*", re.ASCII)


def format_position(offsets: Mapping[int, int]) -> str:
    """Return a position's text: `partition:offset`, comma-separated, in order."""
    return ",".join(f"{partition}:{offset}" for partition, offset in sorted(offsets.items()))


def parse_position(text: str) -> dict[int, int]:
    """Return the highest offset by partition.

    Raises:
        ValueError: If it is not the text of a position.
    """
    if _FORM.fullmatch(text) is None:
        message = 'position must be the "position" of an answer of ingest, got something else'
        raise ValueError(message)
    pairs = (part.split(":") for part in text.split(",") if part)
    return {int(partition): int(offset) for partition, offset in pairs}
