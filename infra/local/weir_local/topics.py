"""The topics of a one-node Weir: four partitions of events are plenty for a laptop."""

from __future__ import annotations

from weir.topics import Sizes, topics

TOPICS = topics(Sizes(events_partitions=4))
