"""Mappings: how calls of clients that know nothing of Weir become events. One file for each.

A mapping reads one item of a client's request (a call of Segment's, an event of PostHog's, a
sample of Prometheus') and says what the event is called, who it is about and when it happened;
the item itself, unchanged, is the event's `data`. It decides nothing else: `weir.admission`
judges what comes of it like every other event. Ingest uses mappings for what arrives, a replay
for what is in quarantine: so they are here, without a word of HTTP.
"""

from __future__ import annotations

import collections.abc
from collections.abc import Callable

from weir.attributes import Attributes, Member

Mapping = Callable[[bytes, collections.abc.Mapping[str, Member], int], Attributes]
"""Takes an item's JSON, its members, and when its request arrived (epoch ms); returns what the
event says of itself. Raises `ItemRefusedError` where the item is none of the client's."""
