"""Tinybird's Events API: rows as NDJSON, counted in the answer (INGEST 4.6)."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weir.admission import Admitted, Terms, admit
from weir.clock import ManualClock
from weir.event import MAX_RECORD_BYTES
from weir.event_time import format_time
from weir.mappings.named import NAMED
from weir.problems import ProblemError, Reason
from weir_ingest.body import BodyLimits
from weir_ingest.keys import Keys
from weir_ingest.protocols.batch import BatchLimits

from .drawn import JSON
from .in_process import ARRIVED_MS, CALLER, HASH_KEY, KEY, Asked, Request, ask

PATH = "/v0/events?name=orders"
BEARER = {"Authorization": f"Bearer {KEY}"}
TWO = b'{"ts":"2026-03-01T10:00:00Z","sku":"a"}\n{"ts":"2026-03-01T10:00:01Z","sku":"b"}\n'


def send(body: bytes, target: str = PATH, **changes: Any) -> Asked:
    """Return what becomes of rows."""
    return ask(Request(target, body, headers=BEARER), **changes)


def counts(asked: Asked) -> tuple[int, int]:
    """Return how many rows the answer says were taken, and how many were not."""
    return asked.json["successful_rows"], asked.json["quarantined_rows"]


class TestRows:
    @pytest.mark.parametrize(
        "content_type",
        [
            "application/x-ndjson",
            "application/json",
            "text/plain",
            "application/octet-stream",
            None,
        ],
    )
    @pytest.mark.parametrize("path", ["/v0/events", "/v0/events/"])
    def test_ndjson_whatever_it_says(self, path: str, content_type: str | None) -> None:
        """Each line is a row of the source in the query, whatever the Content-Type is."""
        headers = {**BEARER, **({"Content-Type": content_type} if content_type else {})}

        asked = ask(Request(f"{path}?name=orders", TWO, headers=headers))

        assert (asked.status, asked.body) == (202, b'{"successful_rows":2,"quarantined_rows":0}')
        assert asked.headers["content-type"] == "application/json"
        assert asked.headers["weir-position"] == "0:4711,3:4698"
        assert [one["type"] for one in asked.events] == ["dev.weir.ndjson.orders"] * 2
        assert [one["data"] for one in asked.events] == [
            json.loads(row) for row in TWO.splitlines()
        ]
        assert {one["ingestproto"] for one in asked.events} == {"tinybird"}

    @pytest.mark.parametrize(
        ("wait", "status"),
        [
            ("", 202),
            ("&wait=false", 202),
            ("&wait=", 202),
            ("&wait=true", 200),
            ("&wait=True", 200),
        ],
    )
    def test_waiting(self, wait: str, status: int) -> None:
        """`wait=true` chooses the number of the success; the rows are stored with either."""
        asked = send(TWO, f"{PATH}{wait}")

        assert (asked.status, counts(asked), len(asked.records)) == (status, (2, 0), 2)

    @pytest.mark.parametrize(
        "row",
        [
            {"type": "click", "data": {"a": 1}},
            {"id": "1", "type": "click", "data": {"a": 1}},
            {"type": "click", "data": "x", "user_id": 7},
            {"specversion": "1.0", "id": "1"},
            {"id": 7, "type": "click", "time": "2020-01-01", "subject": "s"},
        ],
    )
    def test_columns_are_columns(self, row: dict[str, Any]) -> None:
        """A row is data, also where its columns are called as attributes of an event are."""
        (found,) = send(json.dumps(row).encode()).events

        assert (found["type"], found["data"]) == ("dev.weir.ndjson.orders", row)
        assert "subject" not in found

    @pytest.mark.parametrize(
        ("row", "time", "source"),
        [
            ('{"timestamp":"2020-04-05 00:05:38"}', "2020-04-05T00:05:38.000Z", "client"),
            ('{"timestamp":null,"date":"2020-04-05"}', "2020-04-05T00:00:00.000Z", "client"),
            ('{"date":1,"timestamp":1772359200}', "2026-03-01T10:00:00.000Z", "client"),
            ('{"ts":"2020-04-05 00:05:38"}', format_time(ARRIVED_MS), "arrived"),
        ],
    )
    def test_when_it_happened(self, row: str, time: str, source: str) -> None:
        """`timestamp`, else `date`, says when; without them it is the arrival."""
        (found,) = send(row.encode()).events

        assert (found["time"], found["timesrc"]) == (time, source)

    @pytest.mark.parametrize(
        "body",
        [
            b'{"a":1}\r\n{"a":2}\r\n',
            b'\xef\xbb\xbf{"a":1}\n{"a":2}',
            b'\n\n{"a":1}\n  \n{"a":2}\n\n',
            b'[{"a":1},{"a":2}]',
            b'\n[\n {"a":1},\n {"a":2}\n]\n',
        ],
    )
    def test_how_rows_are_parted(self, body: bytes) -> None:
        """Line ends of any kind, blank lines, a mark at the start; an array is its rows, too."""
        assert [one["data"] for one in send(body).events] == [{"a": 1}, {"a": 2}]

    def test_one_object_over_several_lines(self) -> None:
        """A body that is one object is one row, as people write it for curl."""
        asked = send(b'{\n  "a": 1,\n  "b": "\xc3\xa9"\n}\n')

        assert (counts(asked), asked.events[0]["data"]) == ((1, 0), {"a": 1, "b": "é"})

    @pytest.mark.parametrize(
        ("row", "reason"),
        [
            (b"{", "invalid_json"),
            (b"1", "not_an_event"),
            (b'[{"a":1}]', "not_an_event"),
            (b"[", "not_an_event"),
            (b'"a"', "not_an_event"),
            (b'{"a":"\xff"}', "invalid_utf8"),
            (rb'{"a":"\ud800"}', "invalid_unicode"),
            (b'{"a":111111111111111111111}', "number_range"),
            (b'{"timestamp":"yesterday"}', "time_invalid"),
            (b'{"timestamp":{}}', "time_invalid"),
            (b'{"a":' + b"[" * 32 + b"]" * 32 + b"}", "too_deep"),
            (b'{"a":' * 1_100 + b"1" + b"}" * 1_100, "too_deep"),
            (b"[" * 100_000, "too_deep"),
            (b'{"a":"' + b"x" * MAX_RECORD_BYTES + b'"}', "event_too_large"),
        ],
    )
    def test_a_bad_row_harms_no_other(self, row: bytes, reason: str) -> None:
        """It is kept with its reason wherever it stands, counted, and the request succeeds."""
        for at, body in (0, row + b'\n{"a":1}'), (1, b'{"a":1}\n' + row):
            asked = send(body)

            assert (asked.status, counts(asked)) == (202, (1, 1))
            assert [one["data"] for one in asked.events] == [{"a": 1}]
            ((told, text),) = asked.refused
            assert (told, text) == (reason, row[:65_536] if reason == "event_too_large" else row)
            (item,) = asked.json["items"]
            assert (item["index"], item["status"], item["code"]) == (at, "quarantined", reason)

    def test_where_the_source_says(self) -> None:
        """What a source calls the column of the time goes first, also in a row like an event."""
        row = b'{"ts":"2020-04-05 00:05:38","timestamp":"2020-01-01","type":"t","data":1}'
        keys = Keys(HASH_KEY, ManualClock(ARRIVED_MS))
        keys.replace([replace(CALLER, time_field="ts")])
        keys.ready = True

        (found,) = send(row, keys=keys).events

        assert found["time"] == "2020-04-05T00:05:38.000Z"

    def test_as_deep_as_any_data(self) -> None:
        """A row of 32 levels is taken."""
        assert counts(send(b'{"a":' + b"[" * 31 + b"]" * 31 + b"}")) == (1, 0)

    def test_nan(self) -> None:
        """NaN becomes null and is named; numbers stay as they are written."""
        (record,) = send(b'{"a":NaN,"b":1.50}').records

        assert b'"data":{"a":null,"b":1.50}' in record.value
        assert b'"nulled":"a"' in record.value

    def test_no_rows(self) -> None:
        """A body of blank lines, or an empty array, is a success without rows."""
        for body in b"\n\r\n", b"[]":
            asked = send(body)

            assert (asked.status, counts(asked), asked.records) == (202, (0, 0), [])

    def test_gzip(self) -> None:
        """Rows may be compressed, and need not say so."""
        for more in {"Content-Encoding": "gzip"}, {}:
            asked = ask(Request(PATH, gzip.compress(TWO), headers={**BEARER, **more}))

            assert counts(asked) == (2, 0)

    def test_how_it_was_read_is_told(self) -> None:
        """What is refused says by which mapping it was read, and that mapping is known."""
        (record,) = send(b'{"timestamp":"yesterday"}').records

        assert dict(record.headers)["weir-mapping"] == b"tinybird"
        assert "tinybird" in NAMED

    def test_sent_again(self) -> None:
        """A row has no id: sent again it is another, unless an Idempotency-Key makes its id."""
        for more, same in ({}, False), ({"Idempotency-Key": '"k"'}, True):
            request = Request(PATH, TWO, headers={**BEARER, **more})
            first, second = ([one["weirid"] for one in ask(request).events] for _ in "ab")

            assert (first == second) is same
            assert len({*first}) == 2


class TestNames:
    @pytest.mark.parametrize("target", ["/v0/events", "/v0/events?name=", "/v0/events?wait=true"])
    def test_no_name(self, target: str) -> None:
        """Without a name rows go nowhere: 400, nothing is stored."""
        asked = send(TWO, target)

        assert (asked.status, asked.json["code"], asked.records) == (400, "request_invalid", [])
        assert asked.json["error"] == (
            "query must have name, a data source, got none; send to /v0/events?name=..."
        )

    @pytest.mark.parametrize(
        ("name", "status"),
        [("a" * 128, 202), ("a" * 129, 400), ("Orders_2.x-1", 202), ("a/b", 400), ("a%20b", 400)],
    )
    def test_which_names(self, name: str, status: int) -> None:
        """A name is part of the type of events: letters, digits and few signs."""
        asked = send(TWO, f"/v0/events?name={name}")

        assert asked.status == status
        assert {one["type"] for one in asked.events} <= {f"dev.weir.ndjson.{name}"}
        if status == 400:
            assert asked.json["error"].startswith("name must be 1 to 128 of A-Z a-z 0-9 _ . -, got")


class TestRefusals:
    @pytest.mark.parametrize(
        ("status", "reason", "answered"),
        [
            (400, Reason.BAD_ENCODING, 400),
            (401, Reason.UNAUTHORIZED, 403),
            (403, Reason.SCOPE_MISSING, 403),
            (413, Reason.BODY_TOO_LARGE, 413),
            (429, Reason.RATE_LIMITED, 429),
            (503, Reason.LOG_UNAVAILABLE, 503),
        ],
    )
    def test_status_and_body(self, status: int, reason: Reason, answered: int) -> None:
        """A refusal has `error`, which clients read, beside what problems have; 401 is 403."""
        asked = send(TWO, failure=ProblemError(status, reason, "no; why", retry_after_s=2))

        assert (asked.status, asked.json["status"]) == (answered, answered)
        assert asked.headers["content-type"] == "application/problem+json"
        assert asked.headers["content-length"] == str(len(asked.body))
        assert asked.headers["retry-after"] == "2"
        assert {asked.json[name] for name in ("error", "message", "detail")} == {"no; why"}
        assert asked.json["code"] == reason.value

    def test_too_many_rows(self) -> None:
        """As many rows as allowed are taken, one more is refused, by lines or in an array."""
        limits = BatchLimits(2, 2)
        for two, three in (
            (b"{}\n{}", b"{}\n{}\n{}"),
            (b"[{},{}]", b"[{},{},{}]"),
        ):
            assert counts(send(two, batch_limits=limits)) == (2, 0)
            asked = send(three, batch_limits=limits)
            assert (asked.status, asked.json["code"]) == (413, "too_many_events")
            assert asked.records == []

    def test_a_body_too_large(self) -> None:
        """A body as large as allowed is taken, a larger one is 413."""
        assert send(TWO, body_limits=BodyLimits(len(TWO), 10)).status == 202
        asked = send(TWO, body_limits=BodyLimits(len(TWO) - 1, 10))
        assert (asked.status, asked.json["code"]) == (413, "body_too_large")

    def test_nothing_at_all(self) -> None:
        """A request without a body is a fault: it may have been lost on its way."""
        asked = send(b"")

        assert (asked.status, asked.json["code"]) == (400, "empty_body")


class TestTokens:
    def test_in_the_query(self) -> None:
        """The token may stand in the query, where pages have it, and is stored nowhere."""
        asked = ask(Request(f"{PATH}&token={KEY}", TWO))

        assert counts(asked) == (2, 0)
        assert not any(KEY.encode() in one.value for one in asked.records)

    @pytest.mark.parametrize(
        ("target", "headers"),
        [
            (PATH, {}),
            (f"{PATH}&token=wrong", {}),
            (f"{PATH}&access_token={KEY}", {}),
            (PATH, {"Authorization": "Bearer wrong"}),
            (f"{PATH}&token={KEY}", {"Authorization": "Bearer wrong"}),
        ],
    )
    def test_a_bad_token(self, target: str, headers: dict[str, str]) -> None:
        """None, or a wrong one, is 403, not 401, and nothing is stored; a header goes first."""
        asked = ask(Request(target, TWO, headers=headers))

        assert (asked.status, asked.json["code"], asked.records) == (403, "unauthorized", [])
        assert asked.json["error"].startswith("a request must carry a valid key")

    @pytest.mark.parametrize(
        ("scopes", "ready", "status"),
        [({"ingest"}, True, 202), ({"read"}, True, 403), ({"ingest"}, False, 503)],
    )
    def test_what_a_key_may(self, scopes: set[str], ready: bool, status: int) -> None:
        """A key that may not write is 403; before keys are known it is 503."""
        keys = Keys(HASH_KEY, ManualClock(ARRIVED_MS))
        keys.replace([replace(CALLER, scopes=frozenset(scopes))])
        keys.ready = ready

        assert send(TWO, keys=keys).status == status

    def test_a_time_field_of_its_source(self) -> None:
        """Where the source of the key says where rows have their time, it is read there first."""
        keys = Keys(HASH_KEY, ManualClock(ARRIVED_MS))
        keys.replace([replace(CALLER, time_field="ts")])
        keys.ready = True
        body = b'{"ts":"2026-03-01T09:00:00Z","timestamp":"2020-01-01"}'

        (event,) = send(body, keys=keys).events

        assert event["time"] == "2026-03-01T09:00:00.000Z"

    @pytest.mark.parametrize("path", ["/v0/events", "/v0/events/"])
    def test_a_health_check(self, path: str) -> None:
        """HEAD is 200 without a token."""
        assert ask(Request(path, method="HEAD")).status == 200


ROW = st.dictionaries(st.sampled_from(["type", "data", "id", "specversion", "sku"]), JSON)


@given(st.lists(ROW, min_size=1, max_size=4), st.booleans())
def test_rows_are_the_clients(rows: list[dict[str, Any]], array: bool) -> None:
    """Whatever rows have, and however they are parted, each is an event's data, in order."""
    lines = [json.dumps(row, ensure_ascii=False) for row in rows]
    body = f"[{','.join(lines)}]" if array else "\n".join(lines)

    asked = send(body.encode())

    assert [one["data"] for one in asked.events] == rows
    assert counts(asked) == (len(rows), 0)


TIMES = st.dictionaries(
    st.sampled_from(["timestamp", "date", "ts"]),
    st.sampled_from(["2026-03-01", 1_772_000_000, None]),
)


@given(ROW, TIMES)
def test_a_replay_reads_it_so(row: dict[str, Any], times: dict[str, Any]) -> None:
    """Whoever reads a row again by its mapping gets what ingest made of it, but for its name."""
    row = {**row, **times}
    terms = Terms("acme", "web", ARRIVED_MS, "tinybird", mapping=NAMED["tinybird"])

    (found,) = send(json.dumps(row).encode()).events
    again = admit(json.dumps(row).encode(), 0, terms)

    assert isinstance(again, Admitted)
    members = ("time", "timesrc", "clienttime", "source", "data", "datacontenttype", "subject")
    read_again = json.loads(again.value)
    assert [read_again.get(one) for one in members] == [found.get(one) for one in members]


@given(st.lists(st.binary(min_size=1, max_size=12) | st.sampled_from([b'{"a":1}', b"{", b"[1"])))
def test_all_rows_are_counted(lines: list[bytes]) -> None:
    """Whatever lines are sent, accepted and kept ones are all that came, and no request fails."""
    body = b"\n".join([b'{"a":1}', *lines, b'{"z":1}'])

    asked = send(body)

    assert (asked.status, sum(counts(asked))) == (202, len(asked.records))
    assert sum(counts(asked)) == sum(bool(line.strip()) for line in body.split(b"\n"))
