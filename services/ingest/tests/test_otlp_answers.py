"""OTLP over HTTP: answers, refusals and limits, in what the request was in (INGEST 4.4)."""

from __future__ import annotations

import gzip
import json
import zlib

import pytest
from weir.problems import ProblemError, Reason
from weir_ingest.quota import Quota

from .in_process import KEY, Request, ask
from .otlp_requests import (
    JSON,
    PROTOBUF,
    answer,
    attributes,
    gauge,
    ids,
    log,
    logs,
    metrics,
    point,
    post,
    protobuf,
    send,
    span,
    status,
    traces,
)

BOTH = pytest.mark.parametrize("media_type", [JSON, PROTOBUF])
EMPTY = {JSON: b"{}", PROTOBUF: b""}
# One of each signal, and one that cannot be used.
MIXED = {
    "logs": logs(log(), log(attributes=attributes(a="x" * 1_000_000))),
    "metrics": metrics(gauge(point()), gauge(point(), name="")),
    "traces": traces(span(), span(spanId="")),
}
REJECTED = {
    "logs": ("rejectedLogRecords", "rejected_log_records"),
    "metrics": ("rejectedDataPoints", "rejected_data_points"),
    "traces": ("rejectedSpans", "rejected_spans"),
}
TOLD = {
    "logs": "1 of 2 log records cannot be used and are in quarantine, the others are stored; "
    "record 1: event_too_large, event must be at most 1000000 bytes with its key, got ",
    "metrics": "1 of 2 data points cannot be used and are in quarantine, the others are stored; "
    "record 1: not_an_event, a metric must have a name, got none",
    "traces": "1 of 2 spans cannot be used and are in quarantine, the others are stored; "
    "record 1: id_invalid, spanId of a span must be 16 hex digits, not all of them 0, got none",
}


class TestSuccess:
    @BOTH
    @pytest.mark.parametrize("path", ["logs", "metrics", "traces"])
    @pytest.mark.parametrize("slash", ["", "/"])
    def test_all_stored(self, media_type: str, path: str, slash: str) -> None:
        """What is stored is answered with an empty message of the request's type."""
        said = {"logs": logs(log()), "metrics": metrics(gauge(point())), "traces": traces(span())}
        body = json.dumps(said[path]).encode() if media_type == JSON else protobuf(said[path])

        asked = post(f"{path}{slash}", body, media_type)

        assert (asked.status, asked.body) == (200, EMPTY[media_type])
        assert asked.headers == {
            "content-type": media_type,
            "content-length": str(len(EMPTY[media_type])),
            "weir-position": "0:4711,3:4698",
        }
        assert len(asked.events) == 1

    @BOTH
    @pytest.mark.parametrize("path", ["logs", "metrics", "traces"])
    def test_an_empty_request(self, media_type: str, path: str) -> None:
        """A request without telemetry is a success."""
        asked = post(path, EMPTY[media_type], media_type)

        assert (asked.status, asked.body, asked.records) == (200, EMPTY[media_type], [])

    @pytest.mark.parametrize("coding", ["gzip", "deflate", "zstd", ""])
    def test_no_bytes_in_any_coding(self, coding: str) -> None:
        """A message without fields has no bytes, whatever coding is named."""
        asked = post("logs", b"", PROTOBUF, headers={"Content-Encoding": coding})

        assert (asked.status, asked.body) == (200, b"")

    @BOTH
    def test_no_length(self, media_type: str) -> None:
        """An empty body must declare its length: without one it may have been lost on its way."""
        asked = post("logs", b"", media_type, headers={"Content-Length": ""})

        assert asked.status == 400
        assert status(asked)[1].startswith("empty_body: body must hold events, got none")

    @pytest.mark.parametrize("body", [b"", b" \n"])
    def test_no_json(self, body: bytes) -> None:
        """An empty body is no JSON."""
        asked = post("logs", body, JSON)

        assert asked.status == 400
        assert status(asked) == (
            3,
            "empty_body: body must be a JSON object, got none; an empty request is {}",
        )

    @BOTH
    @pytest.mark.parametrize("coding", ["gzip", "deflate"])
    def test_codings(self, media_type: str, coding: str) -> None:
        """A body may be compressed, as Python's exporter does."""
        body = json.dumps(logs(log())).encode() if media_type == JSON else protobuf(logs(log()))
        packed = gzip.compress(body) if coding == "gzip" else zlib.compress(body)

        asked = post("logs", packed, media_type, headers={"Content-Encoding": coding})

        assert ids(asked) == ids(send(logs(log())))


class TestPartialSuccess:
    @pytest.mark.parametrize("path", ["logs", "metrics", "traces"])
    def test_json(self, path: str) -> None:
        """What cannot be used is counted as rejected, with the reason, and is in quarantine."""
        asked = send(MIXED[path])

        assert (asked.status, len(asked.events), len(asked.refused)) == (200, 1, 1)
        partial = asked.json["partialSuccess"]
        assert [*partial] == [REJECTED[path][0], "errorMessage"]
        assert partial[REJECTED[path][0]] == "1"
        assert partial["errorMessage"].startswith(TOLD[path])

    @pytest.mark.parametrize("path", ["logs", "metrics", "traces"])
    def test_protobuf(self, path: str) -> None:
        """So it is in protobuf."""
        asked = send(MIXED[path], PROTOBUF)

        assert (asked.status, len(asked.events), len(asked.refused)) == (200, 1, 1)
        partial = answer(asked, path).partial_success
        assert getattr(partial, REJECTED[path][1]) == 1
        assert partial.error_message.startswith(TOLD[path])

    @BOTH
    @pytest.mark.parametrize(("count", "left"), [(20, ""), (21, "; and 1 more"), (300, "0 more")])
    def test_many(self, media_type: str, count: int, left: str) -> None:
        """Twenty reasons are told, however many there are; all may be rejected."""
        asked = send(traces(*(span(spanId="0" * 16) for _ in range(count))), media_type)

        assert (asked.status, asked.events) == (200, [])
        if media_type == JSON:
            partial = asked.json["partialSuccess"]
            rejected, told = int(partial["rejectedSpans"]), partial["errorMessage"]
        else:
            found = answer(asked, "traces").partial_success
            rejected, told = found.rejected_spans, found.error_message
        assert rejected == count
        assert told.count("id_invalid") == 20
        assert told.endswith(left or "got none")


class TestRefusals:
    @BOTH
    @pytest.mark.parametrize(
        ("problem", "answered", "code"),
        [
            (ProblemError(503, Reason.LOG_UNAVAILABLE, "away", retry_after_s=3), 503, 14),
            (ProblemError(429, Reason.RATE_LIMITED, "slow", retry_after_s=2), 429, 8),
            (ProblemError(413, Reason.BODY_TOO_LARGE, "large"), 413, 3),
            (ProblemError(400, Reason.BODY_TRUNCATED, "cut"), 400, 3),
            (ProblemError(401, Reason.UNAUTHORIZED, "who"), 401, 16),
            (ProblemError(403, Reason.SCOPE_MISSING, "may not"), 403, 7),
        ],
    )
    def test_status(self, media_type: str, problem: ProblemError, answered: int, code: int) -> None:
        """A refusal is a google.rpc.Status in the request's type, with when to send again."""
        asked = send(logs(log()), media_type, failure=problem)

        assert asked.status == answered
        assert status(asked) == (code, f"{problem.reason}: {problem.message}")
        after = problem.retry_after_s
        assert asked.headers.get("retry-after") == (None if after is None else str(after))
        assert asked.headers["content-length"] == str(len(asked.body))

    @BOTH
    def test_a_body_that_stopped_coming(self, media_type: str) -> None:
        """It is answered 503: exporters send nothing again after 408."""
        problem = ProblemError(408, Reason.REQUEST_TIMEOUT, "body must arrive within 10 s")

        asked = send(logs(log()), media_type, failure=problem)

        assert asked.status == 503
        assert status(asked) == (14, "request_timeout: body must arrive within 10 s")
        assert (asked.headers["retry-after"], asked.headers["connection"]) == ("1", "close")

    @BOTH
    @pytest.mark.parametrize("authorization", ["", f"Bearer {KEY}x", f"Basic {KEY}"])
    def test_no_key(self, media_type: str, authorization: str) -> None:
        """Without a valid key nothing is read."""
        asked = send(logs(log()), media_type, headers={"Authorization": authorization})

        assert (asked.status, asked.records) == (401, [])
        assert status(asked) == (
            16,
            "unauthorized: a request must carry a valid key; send Authorization: Bearer wk_...",
        )

    @BOTH
    def test_over_the_quota(self, media_type: str) -> None:
        """What is over the quota is sent again later; the records of a request are its events."""
        quota = Quota(1)

        first = send(logs(*(log(str(n)) for n in range(10))), media_type, quota=quota)
        second = send(logs(log()), media_type, quota=quota)

        assert (first.status, second.status, second.records) == (200, 429, [])
        assert status(second)[0] == 8
        assert int(second.headers["retry-after"]) >= 1

    @pytest.mark.parametrize(
        "content_type", ["", "text/plain", "application/protobuf", "application/x-protobuf2"]
    )
    def test_other_types(self, content_type: str) -> None:
        """Any other type is refused, in JSON."""
        asked = post("logs", b"{}", content_type)

        assert (asked.status, asked.headers["content-type"]) == (415, JSON)
        assert status(asked) == (
            3,
            "unsupported_media_type: content-type must be application/x-protobuf or "
            f'application/json, got "{content_type}"; set the exporter\'s protocol to '
            "http/protobuf or http/json",
        )

    def test_type_of_an_empty_body(self) -> None:
        """The type is looked at first, also where there is nothing else."""
        assert post("logs", b"", "text/plain").status == 415

    @BOTH
    def test_codings(self, media_type: str) -> None:
        """A coding that is not known is refused with those that are; one that is broken, too."""
        unknown = send(logs(log()), media_type, headers={"Content-Encoding": "br"})
        broken = send(logs(log()), media_type, headers={"Content-Encoding": "gzip"})

        assert (unknown.status, unknown.headers["accept-encoding"]) == (415, "gzip, zstd, deflate")
        assert status(unknown)[1].startswith("unsupported_encoding: ")
        assert broken.status == 400
        assert status(broken)[1].startswith("bad_encoding: body must be whole")

    @BOTH
    def test_a_bomb(self, media_type: str) -> None:
        """A body is limited as it is decoded."""
        packed = gzip.compress(bytes(2_000_000))

        asked = post(
            "logs",
            packed,
            media_type,
            headers={"Content-Encoding": "gzip"},
            max_decoded_bytes=1_000_000,
        )

        assert asked.status == 413
        assert status(asked)[1].startswith("decompressed_too_large: ")

    def test_other_methods(self) -> None:
        """Telemetry is posted."""
        assert ask(Request("/v1/logs", method="GET")).status == 405
