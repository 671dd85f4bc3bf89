"""Rows of Tinybird's Events API (INGEST 4.6).

A row is all data, whatever its columns are called: `type`, `id` and `time` are columns like any
other. What it is called stands in the request, not in the row, and it has no id.
"""

from __future__ import annotations

import collections.abc

from weir.attributes import Attributes, Member

PROTOCOL = "tinybird"


def mapping(
    text: bytes,
    members: collections.abc.Mapping[str, Member],  # noqa: ARG001 - they are all columns
    arrived_ms: int,  # noqa: ARG001 - mappings are called alike
) -> Attributes:
    """Return what a row says of itself: that it is all data."""
    said = Attributes.bare(text)
    said.is_row = True
    return said
