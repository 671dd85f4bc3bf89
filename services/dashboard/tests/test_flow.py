"""The flow over HTTP: ledger, types, parts, preview."""

from __future__ import annotations

import json
import time
from typing import Any

import httpx
import pytest
from msgspec import structs
from weir import names
from weir.batches import BatchRecord, LedgerRow
from weir.definitions.history import Horizons, Spread
from weir.definitions.records import DriverStart, horizons_record, spread_record, start_record
from weir.rows import Row
from weir.series import OTHER, encode_series
from weir_dashboard.api.ledger import check
from weir_local.waiting import wait_until
from weir_reading.ledger import covered

pytestmark = [pytest.mark.kafka, pytest.mark.redis]

METRIC = "kind: metric\nname: {name}\nevents: {{type: order.placed}}\n{rest}"


MINUTE_MS = 60_000


def record_of(start: int, minute_ms: int, through_ms: int, ticks: int = 0) -> BatchRecord:
    """Return a batch record that begins at an offset and received one event in a minute."""
    return BatchRecord(
        epoch=1,
        batch=0,
        rev=1,
        shards=1,
        from_offsets={0: 0, 1: start},
        to_offsets={0: 0, 1: start + 1 + ticks},
        ticks=ticks,
        processed_through_ms=through_ms,
        at_ms=through_ms,
        ledger=[LedgerRow("default", "http", minute_ms, counted=1)],
    )


class TestCovered:
    def test_the_first_minute_of_the_records_may_have_begun_before_them(self) -> None:
        """Only from the next minute on is every event of a minute in the records."""
        records = [record_of(7, 3 * MINUTE_MS, 3 * MINUTE_MS + 5), record_of(8, 0, 5 * MINUTE_MS)]

        assert list(covered(records)) == [4 * MINUTE_MS, 5 * MINUTE_MS]
        assert list(covered([])) == []

    @pytest.mark.parametrize(
        ("minute", "told"),
        [
            (3, {"received_to_ms": 4 * MINUTE_MS + 500}),
            # Records of a release before it was told.
            (3, {"at_ms": 4 * MINUTE_MS + 500}),
            (4, {}),
        ],
    )
    def test_a_partition_that_is_ahead(self, minute: int, told: dict[str, int]) -> None:
        """One of two had come to the fourth minute by the first record, the other one had not."""
        first = record_of(7, minute * MINUTE_MS, 4 * MINUTE_MS - 1)
        records = [structs.replace(first, **told), record_of(8, 0, 6 * MINUTE_MS)]

        assert list(covered(records)) == [5 * MINUTE_MS, 6 * MINUTE_MS]

    def test_where_the_log_begins_so_does_the_account(self) -> None:
        """Records that begin with the log hold its first minute whole."""
        records = [record_of(0, 2 * MINUTE_MS, 3 * MINUTE_MS + 5), record_of(1, 0, 3 * MINUTE_MS)]
        records[1].ledger.clear()

        assert list(covered(records)) == [2 * MINUTE_MS, 3 * MINUTE_MS]


class TestCheck:
    def test_events_and_ticks_make_up_what_was_read(self) -> None:
        """The engine's own clock ticks are told apart from events; what is left is a fault."""
        records = [record_of(7, 0, 5), record_of(8, 0, 6, ticks=3)]
        told = check(records)
        assert (told.records, told.events, told.ticks, told.difference) == (5, 2, 3, 0)
        records[0].ledger.clear()
        assert check(records).difference == 1


class TestFlow:
    def test_the_ledger_adds_up_and_shows_what_does_not(self, running: Any, engine: Any) -> None:
        """Difference 0 where panes and batch records agree; else by how much they do not."""
        minute_s = int(time.time()) // 60 * 60 - 60
        texts = {d: encode_series(["default", "http", d]) for d in ("counted", "duplicate")}
        engine.commit(through_ms=(minute_s - 60) * 1000)
        row = LedgerRow("default", "http", minute_s * 1000, counted=5, duplicate=2)
        rows = {(-1, 60, minute_s): {texts["counted"]: Row(5), texts["duplicate"]: Row(2)}}
        engine.commit(rows, ledger=[row], received=7, through_ms=(minute_s + 60) * 1000)
        with running.client() as http:
            minute = self._minute(http, minute_s)
            assert (minute["counted"], minute["duplicate"], minute["received"]) == (5, 2, 7)
            assert (minute["difference"], minute["open"]) == (0, False)
            engine.commit(
                {(-1, 60, minute_s): {texts["counted"]: Row(3)}}, through_ms=(minute_s + 61) * 1000
            )
            assert self._minute(http, minute_s)["difference"] == -3

    def _minute(self, http: httpx.Client, minute_s: int) -> dict[str, Any]:
        items = http.get("/ledger").json()["items"]
        return next(dict(item) for item in items if item["minute_ms"] == minute_s * 1000)

    def test_types_are_discovered(self, running: Any, engine: Any) -> None:
        """What was received in the last hour is listed, a tenant's own only."""
        minute_s = int(time.time()) // 60 * 60
        mine = encode_series(["default", "http", "order.placed"])
        other = encode_series(["elsewhere", "http", "their.type"])
        engine.commit({(-2, 60, minute_s): {mine: Row(9), other: Row(1)}})
        with running.client() as http:
            items = http.get("/discovery/types").json()["items"]
        assert [(seen["type"], seen["count"]) for seen in items] == [("order.placed", 9)]

    def test_a_metric_with_series_beyond_its_most_is_capped(
        self, running: Any, engine: Any, metric: tuple[str, int]
    ) -> None:
        """Where some pane has a row of all others, the metric says so; that row is no series."""
        name, vid = metric
        minute_s = int(time.time()) // 60 * 60

        def told() -> tuple[int, bool]:
            with running.client() as http:
                found = http.get(f"/metrics/{name}").json()
                listed = next(m for m in http.get("/metrics").json()["items"] if m["name"] == name)
            assert listed["capped"] is found["capped"]
            return found["series"], found["capped"]

        engine.commit({(vid, 60, minute_s): {"=eu": Row(2)}})
        assert told() == (1, False)
        engine.commit({(vid, 60, minute_s): {OTHER: Row(7)}})
        assert told() == (1, True)
        with running.client() as http:
            series = http.get("/series", params={"metric": name}).json()["items"]
        assert [one["other"] for one in series] == [True, False]

    def test_status_lists_the_parts(self, running: Any) -> None:
        """Every heartbeat is shown; the dashboard's own says its memory."""
        with running.client() as http:
            parts = http.get("/status").json()["parts"]
        own = next(part for part in parts if part["name"] == "dashboard")
        assert own["running"] is True
        assert own["rss_bytes"] > 10_000_000

    def test_status_lists_kafka_and_redis_by_their_answers(self, running: Any) -> None:
        """They write no heartbeat: the dashboard tells when it last heard them, and no more."""
        with running.client() as http:
            body = http.get("/status").json()
        told = {part["name"]: part for part in body["parts"]}
        for name in ("kafka", "redis"):
            part = told[name]
            assert (part["running"], part["rss_bytes"], part["busy"]) == (True, None, None)
            assert 0 <= body["now_ms"] - part["at_ms"] < 6_000

    def test_status_tells_what_quarantine_is_about_to_lose(self, running: Any) -> None:
        """By the driver's heartbeat; of one that has not read it, and without one, nothing."""
        key, hour_ms = names.part_key("panes", "quarantine"), 3_600_000
        told = {"quarantine_left_ms": hour_ms, "quarantine_kept_ms": 24 * hour_ms}
        beat = {"status": "ok", "version": "0", "detail": told}

        def held() -> dict[str, Any] | None:
            now_ms = time.time_ns() // 1_000_000
            running.redis.set(key, json.dumps(beat | {"at_ms": now_ms}), px=8_000)
            body: dict[str, Any] = http.get("/status").json()["quarantine"]
            return body if body["warning"] else None

        with running.client() as http:
            nothing = {"left_ms": None, "kept_ms": None, "warning": None}
            assert http.get("/status").json()["quarantine"] == nothing
            try:
                body = wait_until(held, timeout_s=20, what="the warning")
                sent = running.dashboard.hub._pipelines._frame()
            finally:
                running.redis.delete(key)
        frame = json.loads(sent[sent.index(b'{"') :])
        assert frame["quarantine_warning"] == body["warning"], "`weir top` says it, too"
        assert (body["left_ms"], body["kept_ms"]) == (hour_ms, 24 * hour_ms)
        assert "no replay has looked into are deleted in 60 min" in body["warning"]

    def test_status_tells_of_partitions_that_were_added(self, running: Any) -> None:
        """Until when an event that is sent again may count once more; then no longer."""
        log, now_ms = f"log-{time.monotonic_ns()}", int(time.time() * 1000)
        with running.client() as http:
            assert http.get("/status").json()["dedup_gap"] is None
            fence = running.record(start_record(DriverStart("a", 1, "start"), at_ms=0))
            horizons = Horizons({}, 60_000, 90_000, log)
            running.record(horizons_record(horizons, fence=fence, at_ms=0))
            for count, at_ms in ((4, 0), (8, now_ms)):
                running.record(spread_record(Spread(count, log, at_ms), fence=fence))
            told = http.get("/status").json()["dedup_gap"]
            running.record(spread_record(Spread(9, log, now_ms - 60_000), fence=fence))
            assert http.get("/status").json()["dedup_gap"] is None
        assert told == {
            "partitions_before": 4,
            "partitions": 8,
            "since_ms": now_ms,
            "until_ms": now_ms + 60_000,
        }

    def test_preview_says_what_a_draft_makes_of_each_event(self, running: Any) -> None:
        """Matched or not, value, series, or the reason: by the reference evaluator."""
        rows = [
            ("a", "order.placed", {"total": 12.5, "region": "eu"}),
            ("b", "order.placed", {"total": "n/a", "region": "eu"}),
            ("c", "page.seen", {"total": 1}),
            ("d", "order.placed", {"region": "us"}),
        ]
        events = [{"id": i, "type": t, "data": json.dumps(d), "at": [0, 1]} for i, t, d in rows]
        running.redis.delete(names.tail_key("default"))
        running.redis.xadd(names.tail_key("default"), {"e": json.dumps(events), "of": "4"})
        text = METRIC.format(name="draft", rest="value: data.total\nby: [data.region]")
        with running.client() as http:
            body = http.post("/preview", json={"text": text}).json()
        told = {event["id"]: event for event in body["events"]}
        assert (told["a"]["value"], told["a"]["series"]) == (12.5, {"region": "eu"})
        assert told["b"]["reason"] == "value_invalid"
        assert (told["c"]["matched"], told["c"]["reason"]) == (False, None)
        assert told["d"]["reason"] == "value_missing"
        assert (body["seen"], body["matched"], body["refused"]) == (4, 3, 2)

    def test_preview_reads_every_attribute_that_an_expression_may(self, running: Any) -> None:
        """Attributes and the event's time are given to the reference; bytes are no data."""
        at_ms = 1_795_181_526_123
        attributes = {
            "partitionkey": "p1",
            "timesrc": "client",
            "clienttime": "2026-11-20T14:12:06Z",
            "sentat": "2026-11-20T14:12:07Z",
            "arrivedat": "2026-11-20T14:12:08Z",
            "ingestproto": "http",
            "requestid": "r1",
            "datacontenttype": "application/json",
            "dataschema": "https://example.org/1",
            "time": "2026-11-20T14:12:06.123Z",
        }
        common = {"type": "order.placed", "source": "/s", "time_ms": at_ms, "at": [0, 1]}
        events = [
            {**common, "id": "a", "data": "{}", "attributes": attributes},
            {**common, "id": "b", "data": "{}"},
            {**common, "id": "c", "data": '"AAEC"', "base64": True, "attributes": attributes},
        ]
        running.redis.delete(names.tail_key("default"))
        running.redis.xadd(names.tail_key("default"), {"e": json.dumps(events), "of": "3"})
        texts = [name for name in attributes if name not in {"time", "requestid"}]
        where = "requestid = 'r1' or id = 'b'"
        rest = f"value: time\nwhere: {where}\nby: [{', '.join(texts)}]"
        with running.client() as http:
            body = http.post("/preview", json={"text": METRIC.format(name="draft", rest=rest)})
        told = {event["id"]: event for event in body.json()["events"]}
        assert {event["value"] for event in told.values()} == {at_ms}
        wanted = {name: attributes[name] for name in texts}
        assert told["a"]["series"] == told["c"]["series"] == wanted
        assert set(told["b"]["series"].values()) == {None}
