"""Bodies of Prometheus' remote write: how they are read, and what is wrong with them."""

from __future__ import annotations

import base64
import json
import math
import time
from collections import Counter
from typing import Any

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st
from weir.problems import ProblemError, Reason
from weir_ingest.protocols.batch import BatchLimits
from weir_ingest.protocols.write_request import items_of

from .in_process import KEY, Request, ask
from .write_requests import (
    AT_MS,
    HEADERS,
    PATH,
    SERIES,
    WriteRequest,
    message,
    send,
    series,
    snappy,
    write,
)

MIB = 1 << 20
GOOD = series(SERIES, (1, AT_MS))


class TestRefused:
    @pytest.mark.parametrize(
        "content_type",
        [
            "application/x-protobuf",
            "Application/X-Protobuf; proto=prometheus.WriteRequest",
            'application/x-protobuf;charset=x; proto="prometheus.WriteRequest"',
            "",
        ],
    )
    def test_types_of_1_0(self, content_type: str) -> None:
        """No type, and one without `proto`, mean 1.0, as with Prometheus."""
        assert send(message(GOOD), headers={"Content-Type": content_type}).status == 204

    @pytest.mark.parametrize(
        "content_type",
        [
            "application/x-protobuf;proto=io.prometheus.write.v2.Request",
            "application/x-protobuf; proto=x.Y",
            "application/json",
            "text/plain",
        ],
    )
    def test_other_types(self, content_type: str) -> None:
        """2.0, and every other message, gets 415, so that the sender falls back to 1.0."""
        version = {"X-Prometheus-Remote-Write-Version": "2.0.0", "Content-Type": content_type}

        asked = send(message(GOOD), headers=version)

        assert (asked.status, asked.records) == (415, [])
        assert asked.headers["content-type"] == "text/plain; charset=utf-8"
        assert asked.body.decode() == (
            "unsupported_media_type: content-type must be application/x-protobuf with a "
            f'prometheus.WriteRequest, of remote write 1.0, got "{content_type.lower()}"\n'
        )

    def test_2_0_that_does_not_say_so(self) -> None:
        """A message of 2.0 under the type of 1.0 is not taken for one without samples."""
        asked = send(b"\x22\x00\x22\x08__name__\x2a\x00")

        assert (asked.status, asked.records) == (415, [])
        assert asked.body.endswith(b"of remote write 1.0, got a message of 2.0\n")

    @pytest.mark.parametrize("coding", ["snappy", " Snappy", ""])
    def test_snappy(self, coding: str) -> None:
        """The coding is snappy; who names none means it, as with Prometheus."""
        assert send(message(GOOD), headers={"Content-Encoding": coding}).status == 204

    @pytest.mark.parametrize("coding", ["gzip", "zstd", "identity", "snappy, gzip", "x"])
    def test_other_codings(self, coding: str) -> None:
        """Every other coding gets 415, with the one that there is."""
        asked = send(message(GOOD), headers={"Content-Encoding": coding})

        assert (asked.status, asked.headers["accept-encoding"]) == (415, "snappy")
        assert asked.body.decode() == (
            f'unsupported_encoding: content-encoding must be snappy, in one block, got "{coding}"\n'
        )

    def test_snappy_is_for_this_path_alone(self) -> None:
        """Elsewhere snappy is refused as before, with the codings that there are."""
        headers = {**HEADERS, "Content-Type": "application/json"}

        asked = ask(Request("/v1/events", snappy(b"{}"), headers=headers))

        assert (asked.status, asked.headers["accept-encoding"]) == (415, "gzip, zstd, deflate")

    @pytest.mark.parametrize(
        ("body", "why"),
        [
            (b"", "empty_body: body must hold events"),
            (snappy(message(GOOD))[:-1], "bad_encoding: body must be whole"),
            (b"\xff\xff\xff\xff\xff\xff", "bad_encoding: body must be whole"),
            (message(GOOD), "bad_encoding: body must be whole"),
            (
                bytes(cramjam.snappy.compress(message(GOOD))),
                "bad_encoding: body must be whole in its content-encoding; it is in Snappy's "
                "framed format, which must be one block",
            ),
        ],
    )
    def test_no_block(self, body: bytes, why: str) -> None:
        """What is not one whole block of snappy cannot be read."""
        asked = ask(Request(PATH, body, headers=HEADERS))

        assert (asked.status, asked.records) == (400, [])
        assert asked.body.decode().startswith(why)

    @pytest.mark.parametrize(
        ("body", "why"),
        [
            (message(GOOD)[:-1], "it ends early"),
            (b"\x0a\x05", "it ends early"),
            (b"\x0a", "it ends early"),
            (b"\x0a\x02\x0a\x05", "it ends early"),
            (b"\x80" * 11, "it has a number of more than 10 bytes"),
            (b"\x0b\x0c", "it has a field of kind 3"),
            (b'{"timeseries":[]}', "it has a field of kind 3"),
            (b"\x0a\x03\x12\x01\x09", "it ends early"),
            (b"\x0a\x05\x22\x03\x6a\x01\x00", "it ends early"),
        ],
    )
    def test_no_message(self, body: bytes, why: str) -> None:
        """What is no such message cannot be read, and nothing of it is stored."""
        asked = send(message(GOOD) + body)

        assert (asked.status, asked.records) == (400, [])
        assert asked.body.decode() == (
            f"request_invalid: body must be a prometheus.WriteRequest; {why}\n"
        )

    def test_size_is_checked_before_it_is_made(self) -> None:
        """The block's own word on its size is enough to refuse it."""
        asked = ask(Request(PATH, b"\xff\xff\xff\xff\x0f", headers=HEADERS))

        assert (asked.status, asked.records) == (413, [])
        assert asked.body.startswith(b"decompressed_too_large: body must be at most 20971520")

    def test_size_at_the_limit(self) -> None:
        """A body of the largest size is decoded, one byte more is refused."""
        body = message(GOOD)

        assert send(body, max_decoded_bytes=len(body)).status == 204
        assert send(body, max_decoded_bytes=len(body) - 1).status == 413

    def test_too_many_samples(self) -> None:
        """As many samples as a request may hold are stored; with one more none is."""
        limits = BatchLimits(max_events=3, max_batch_events=3)
        three = series(SERIES, (1, AT_MS), (2, AT_MS), (3, AT_MS))

        assert len(write(three, batch_limits=limits).events) == 3
        asked = write(three, GOOD, batch_limits=limits)
        assert (asked.status, asked.records) == (413, [])
        assert asked.body.startswith(b"too_many_events: a request must hold at most 3 events")

    @pytest.mark.parametrize(
        "headers",
        [
            {"Authorization": f"Bearer {KEY}"},
            {"Authorization": f"Basic {base64.b64encode(f'x:{KEY}'.encode()).decode()}"},
        ],
    )
    def test_keys(self, headers: dict[str, str]) -> None:
        """The key comes as Bearer or as a password, and is stored nowhere."""
        asked = send(message(GOOD), headers=headers)

        assert asked.status == 204
        assert KEY.encode() not in asked.records[0].value + asked.records[0].key

    @pytest.mark.parametrize("authorization", ["", "Bearer wrong"])
    def test_no_key(self, authorization: str) -> None:
        """Without a valid key nothing is stored."""
        asked = send(message(GOOD), headers={"Authorization": authorization})

        assert (asked.status, asked.records) == (401, [])
        assert asked.body.startswith(b"unauthorized: a request must carry a valid key")

    @pytest.mark.parametrize(
        ("status", "reason"),
        [
            (503, Reason.LOG_UNAVAILABLE),
            (429, Reason.RATE_LIMITED),
            (408, Reason.REQUEST_TIMEOUT),
            (403, Reason.SCOPE_MISSING),
        ],
    )
    def test_told_in_a_line(self, status: int, reason: Reason) -> None:
        """A refusal is its code and why, in plain text, with when to send it again."""
        failure = ProblemError(status, reason, "why", retry_after_s=2)

        asked = send(message(GOOD), failure=failure)

        assert (asked.status, asked.headers["retry-after"]) == (status, "2")
        assert asked.body == f"{reason}: why\n".encode()
        assert asked.headers["content-type"] == "text/plain; charset=utf-8"
        assert asked.headers["content-length"] == str(len(asked.body))

    def test_head(self) -> None:
        """A health check of the path is answered 200."""
        assert ask(Request(PATH, method="HEAD")).status == 200


def framed(field: int, body: bytes) -> bytes:
    """Return a field of bytes."""
    size, length = len(body), b""
    while size > 0x7F:
        length += bytes([size & 0x7F | 0x80])
        size >>= 7
    return bytes([field << 3 | 2]) + length + bytes([size]) + body


BIG = 4 * MIB
HOSTILE = {
    "empty series": b"\x0a\x00" * (BIG // 2),
    "empty metadata": b"\x1a\x00" * (BIG // 2),
    "empty labels": framed(1, b"\x0a\x00" * 400_000) * 5,
    "empty samples": framed(1, b"\x12\x00" * 400_000) * 5,
    "empty exemplars": framed(1, b"\x1a\x00" * 400_000) * 5,
    "empty histograms": framed(1, b"\x22\x00" * 400_000) * 5,
    "empty spans": framed(1, framed(4, b"\x5a\x00" * 400_000)) * 5,
    "deltas": framed(1, framed(4, framed(12, b"\x01" * 900_000))) * 5,
    "counts": framed(1, framed(4, framed(13, bytes(800_000)))) * 5,
    "a long label for many": framed(1, framed(1, framed(1, b"x" * 900_000)) + b"\x12\x00" * 9_000),
    "a label that grows": framed(1, framed(1, framed(1, b"\x01" * 900_000)) + b"\x12\x00") * 5,
    "a long series": framed(1, b"\x0a\x00" * 2_000_000),
    "numbers without end": b"\x80" * BIG,
    "long numbers": b"\x08" + b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01" * (BIG // 10),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_no_message_takes_long_to_read(name: str) -> None:
    """Each message of some megabytes is read, or refused, in time, and makes little of it."""
    start_s = time.process_time()

    try:
        items = items_of(HOSTILE[name], 10_000)
    except ProblemError:
        items = []

    assert time.process_time() - start_s < 2
    assert len(items) <= 10_000
    assert sum(map(len, items)) <= 20 * MIB


def test_what_is_too_large_is_not_read() -> None:
    """A series beyond the size of any event is an item as it came, refused for its size."""
    large = b"\x0a\x00" * 500_001

    assert items_of(framed(1, large), 10) == [large]


TEXTS = st.text('ab_é"\\\n', max_size=3)
SAMPLES = st.lists(st.tuples(st.floats(), st.integers(-(2**40), 2**40)), max_size=3)
MANY = st.lists(
    st.builds(lambda said, samples: series(said, *samples), st.dictionaries(TEXTS, TEXTS), SAMPLES),
    max_size=4,
)


def slowly(body: bytes) -> list[dict[str, Any]]:
    """Return what the samples of a request are, read by protobuf's runtime."""
    found = []
    for one in WriteRequest.FromString(body).timeseries:
        said = {label.name.decode(): label.value.decode() for label in one.labels}
        for sample in one.samples:
            value: Any = sample.value
            if not math.isfinite(value):
                value = "NaN" if math.isnan(value) else f"{value:+}".replace("inf", "Inf")
            found.append({"labels": said, "value": value, "timestamp": sample.timestamp})
    return found


@given(MANY, st.binary(max_size=4))
def test_read_as_by_the_runtime(found: list[dict[str, Any]], more: bytes) -> None:
    """Whatever a request says, it is read as protobuf's runtime reads it, unknown fields too."""
    body = message(*found) + framed(15, more) + b"\x75" + bytes(4) + b"\x71" + bytes(8)

    items = [json.loads(item) for item in items_of(body, 10_000)]

    seen: Counter[str] = Counter()
    for item, expected in zip(items, slowly(body), strict=True):
        text = json.dumps(expected, sort_keys=True)
        if seen[text]:
            expected["ordinal"] = seen[text]
        seen[text] += 1
        assert item == expected


@given(MANY)
def test_accepted_and_rejected_are_all(found: list[dict[str, Any]]) -> None:
    """Every sample is stored or quarantined, and the answer says 400 if any was not stored."""
    asked = write(*found)

    assert len(asked.records) == sum(len(one["samples"]) for one in found)
    assert asked.status == (400 if asked.refused else 204)
    assert len({event["weirid"] for event in asked.events}) == len(asked.events)


@given(st.binary(max_size=200))
def test_any_bytes(body: bytes) -> None:
    """Whatever a body holds, it is refused or stored."""
    assert send(body).status in (204, 400, 415)
