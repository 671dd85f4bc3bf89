"""Mappings by name: what a refusal says of how its item was read, for whoever reads it again.

A name stands in records of the log (header `weir-mapping`), so it is never given up. What only a
request said, such as when it was sent, is not known any more: the item counts by what it says of
itself.
"""

from __future__ import annotations

from typing import Final

from weir.mappings import Mapping, hec, otlp, posthog, prometheus, segment, snowplow, tinybird

NAMED: Final[dict[str, Mapping]] = {
    segment.PROTOCOL: segment.mapping(),
    **{f"{segment.PROTOCOL}.{call}": segment.mapping(call) for call in segment.CALLS},
    posthog.PROTOCOL: posthog.mapping(),
    posthog.ENGAGE: posthog.mapping(named=False),
    hec.PROTOCOL: hec.mapping,
    **{f"{otlp.PROTOCOL}.{signal}": otlp.mapping(signal) for signal in otlp.SIGNALS},
    prometheus.PROTOCOL: prometheus.mapping,
    snowplow.PROTOCOL: snowplow.mapping(),
    tinybird.PROTOCOL: tinybird.mapping,
}
