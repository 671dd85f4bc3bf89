"""OTLP: the same telemetry in either encoding is the same events, whatever it is (INGEST 4.4)."""

from __future__ import annotations

import base64
import re
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from .in_process import Asked
from .otlp_requests import JSON, PROTOBUF, ids, send

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
INTEGERS = st.integers(-(2**63), 2**63 - 1)
UNSIGNED = st.integers(0, 2**64 - 1)
COUNTS = st.integers(0, 2**32 - 1)
DOUBLES = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from(
    ["NaN", "Infinity", "-Infinity", 3, "1.5"]
)
HEX_OF_16 = st.binary(min_size=16, max_size=16).map(bytes.hex) | st.just("0" * 32)
HEX_OF_8 = st.binary(min_size=8, max_size=8).map(lambda found: found.hex().upper())


def maybe_text(numbers: st.SearchStrategy[int]) -> st.SearchStrategy[Any]:
    """Return integers as JSON may have them."""
    return numbers | numbers.map(str)


def pairs(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return attributes."""
    keys = TEXTS | st.sampled_from(["service.name", "service.instance.id", "a"])
    return st.lists(st.fixed_dictionaries({"key": keys}, optional={"value": values}), max_size=3)


def some(**optional: Any) -> st.SearchStrategy[dict[str, Any]]:
    """Return messages with any of some fields."""
    return st.fixed_dictionaries({}, optional=optional)


VALUES = st.recursive(
    st.just({})
    | st.fixed_dictionaries({"stringValue": TEXTS})
    | st.fixed_dictionaries({"boolValue": st.booleans()})
    | st.fixed_dictionaries({"intValue": maybe_text(INTEGERS)})
    | st.fixed_dictionaries({"doubleValue": DOUBLES})
    | st.fixed_dictionaries(
        {"bytesValue": st.binary(max_size=5).map(lambda found: base64.b64encode(found).decode())}
    ),
    lambda inner: (
        st.fixed_dictionaries({"arrayValue": some(values=st.lists(inner, max_size=3))})
        | st.fixed_dictionaries({"kvlistValue": some(values=pairs(inner))})
    ),
    max_leaves=6,
)
PAIRS = pairs(VALUES)
RESOURCES = some(attributes=PAIRS, droppedAttributesCount=COUNTS)
SCOPES = some(name=TEXTS, version=TEXTS, attributes=PAIRS)
LOGS = some(
    timeUnixNano=maybe_text(UNSIGNED),
    observedTimeUnixNano=maybe_text(UNSIGNED),
    severityNumber=st.integers(0, 30),
    severityText=TEXTS,
    eventName=TEXTS,
    body=VALUES,
    attributes=PAIRS,
    droppedAttributesCount=COUNTS,
    flags=COUNTS,
    traceId=HEX_OF_16,
    spanId=HEX_OF_8,
)
SPANS = some(
    traceId=HEX_OF_16,
    spanId=HEX_OF_8,
    parentSpanId=HEX_OF_8,
    traceState=TEXTS,
    flags=COUNTS,
    name=TEXTS,
    kind=st.integers(-1, 7),
    startTimeUnixNano=maybe_text(UNSIGNED),
    endTimeUnixNano=maybe_text(UNSIGNED),
    attributes=PAIRS,
    events=st.lists(some(timeUnixNano=UNSIGNED, name=TEXTS, attributes=PAIRS), max_size=2),
    links=st.lists(some(traceId=HEX_OF_16, spanId=HEX_OF_8, attributes=PAIRS), max_size=2),
    status=some(code=st.integers(-1, 4), message=TEXTS),
)
EXEMPLARS = st.lists(
    some(timeUnixNano=UNSIGNED, asDouble=DOUBLES, filteredAttributes=PAIRS, traceId=HEX_OF_16)
    | some(asInt=maybe_text(INTEGERS), spanId=HEX_OF_8),
    max_size=2,
)
POINT = {
    "attributes": PAIRS,
    "startTimeUnixNano": maybe_text(UNSIGNED),
    "timeUnixNano": maybe_text(UNSIGNED),
    "flags": COUNTS,
}
COUNTED = {
    **POINT,
    "exemplars": EXEMPLARS,
    "count": maybe_text(UNSIGNED),
    "sum": DOUBLES,
    "min": DOUBLES,
    "max": DOUBLES,
}
BUCKETS = st.lists(maybe_text(UNSIGNED), max_size=3)
SIDE = some(offset=st.integers(-5, 5), bucketCounts=BUCKETS)
NUMBERS = some(**POINT, exemplars=EXEMPLARS, asDouble=DOUBLES) | some(
    **POINT, asInt=maybe_text(INTEGERS)
)
TEMPORALITY = st.integers(-1, 4)


def data_of(points: st.SearchStrategy[Any], **more: Any) -> st.SearchStrategy[dict[str, Any]]:
    """Return the data of a metric."""
    return some(dataPoints=st.lists(points, max_size=3), **more)


SAID = {"name": TEXTS, "description": TEXTS, "unit": TEXTS, "metadata": PAIRS}
METRICS = st.one_of(
    some(**SAID, gauge=data_of(NUMBERS)),
    some(
        **SAID,
        sum=data_of(NUMBERS, aggregationTemporality=TEMPORALITY, isMonotonic=st.booleans()),
    ),
    some(
        **SAID,
        histogram=data_of(
            some(**COUNTED, bucketCounts=BUCKETS, explicitBounds=st.lists(DOUBLES, max_size=3)),
            aggregationTemporality=TEMPORALITY,
        ),
    ),
    some(
        **SAID,
        exponentialHistogram=data_of(
            some(
                **COUNTED,
                scale=st.integers(-10, 20),
                zeroCount=maybe_text(UNSIGNED),
                zeroThreshold=DOUBLES,
                positive=SIDE,
                negative=SIDE,
            ),
            aggregationTemporality=TEMPORALITY,
        ),
    ),
    some(
        **SAID,
        summary=data_of(
            some(
                **POINT,
                count=maybe_text(UNSIGNED),
                sum=DOUBLES,
                quantileValues=st.lists(some(quantile=DOUBLES, value=DOUBLES), max_size=2),
            )
        ),
    ),
)


def requests_of(
    groups: str, scopes: str, records: str, found: st.SearchStrategy[Any]
) -> st.SearchStrategy[dict[str, Any]]:
    """Return requests of some records, or parts of ones."""
    scope = some(scope=SCOPES, schemaUrl=TEXTS, **{records: st.lists(found, max_size=3)})
    resource = some(resource=RESOURCES, schemaUrl=TEXTS, **{scopes: st.lists(scope, max_size=2)})
    return st.fixed_dictionaries({groups: st.lists(resource, max_size=2)})


REQUESTS = st.one_of(
    requests_of("resourceLogs", "scopeLogs", "logRecords", LOGS),
    requests_of("resourceSpans", "scopeSpans", "spans", SPANS),
    requests_of("resourceMetrics", "scopeMetrics", "metrics", METRICS),
)


# What differs each time; an id where there is none in what is said.
REQUEST_ID = re.compile(rb'"requestid":"[^"]*"')
MADE_UP = re.compile(rb'"weirid":"[^"]*"|"id":"[^"]*"')


def told(asked: Asked) -> Any:
    """Return all that became of a request, byte for byte, but what is made up."""
    values = []
    for record in asked.records:
        value, key = REQUEST_ID.sub(b"", record.value), record.key
        if b'"timesrc":"arrived"' in value and b'"type":"dev.weir.otlp.span"' not in value:
            value, key = MADE_UP.sub(b"", value), b""
        values.append((value, key, record.headers))
    return asked.status, values


@given(REQUESTS)
@settings(max_examples=150, deadline=None)
def test_both_encodings_are_the_same_events(said: dict[str, Any]) -> None:
    """Telemetry as JSON and the same as protobuf gives the same events and identities.

    The protobuf is made by protobuf's own runtime from the JSON.
    """
    one, two = send(said, JSON), send(said, PROTOBUF)

    assert told(one) == told(two)
    assert one.status == 200


@given(REQUESTS)
@settings(max_examples=50, deadline=None)
def test_sent_again_it_is_the_same(said: dict[str, Any]) -> None:
    """A request sent again gives the same identities, and of its records none gets another's.

    Spans are told by ids that the request gives.
    """
    one, two = send(said), send(said)

    assert told(one) == told(two)
    if "resourceSpans" not in said:
        assert len({*ids(one)}) == len(one.events)
