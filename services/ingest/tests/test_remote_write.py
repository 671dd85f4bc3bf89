"""Prometheus' remote write 1.0 (INGEST 4.8)."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
from weir.admission import Admitted, Terms, admit
from weir.definitions.check import check
from weir.definitions.metric import Metric
from weir.event_time import format_time
from weir.expressions import NotMatched, Used, use
from weir.mappings.named import NAMED
from weir.names import HEADER_MAPPING

from .in_process import ARRIVED_MS, Asked, Request, ask
from .write_requests import (
    AT_MS,
    HEADERS,
    PATH,
    SERIES,
    STALE,
    labels,
    message,
    send,
    series,
    snappy,
    write,
)


def data(asked: Asked) -> list[Any]:
    """Return the data of each event."""
    return [event["data"] for event in asked.events]


class TestSamples:
    @pytest.mark.parametrize("path", [PATH, f"{PATH}/"])
    def test_a_sample_is_an_event(self, path: str) -> None:
        """A sample becomes an event about its metric at its time; the answer is empty."""
        body = snappy(message(series(SERIES, (3, AT_MS))))

        asked = ask(Request(path, body, headers=HEADERS))

        assert (asked.status, asked.body) == (204, b"")
        assert asked.headers == {"weir-position": "0:4711,3:4698"}
        (event,) = asked.events
        assert event["type"] == "dev.weir.prom.sample"
        assert (event["subject"], event["ingestproto"]) == ("orders_total", "prom")
        assert (event["time"], event["timesrc"]) == ("2026-03-01T10:00:00.000Z", "client")
        assert event["data"] == {"labels": SERIES, "value": 3, "timestamp": AT_MS}
        assert "clienttime" not in event

    def test_one_for_each_sample(self) -> None:
        """Samples of a series keep their order, and one key, so that Kafka keeps it, too."""
        asked = write(
            series(SERIES, (1, AT_MS), (2, AT_MS + 1), (1, AT_MS + 2)),
            series({**SERIES, "job": "web"}, (7, AT_MS)),
        )

        assert [found["value"] for found in data(asked)] == [1, 2, 1, 7]
        assert [event["requestpos"] for event in asked.events] == [0, 1, 2, 3]
        keys = [record.key.decode() for record in asked.records]
        assert keys == [event["partitionkey"] for event in asked.events]
        assert keys[0] == keys[1] == keys[2] != keys[3]

    @pytest.mark.parametrize(
        ("value", "written"),
        [
            (0.1, b'"value":0.1,'),
            (-0.0, b'"value":-0.0,'),
            (1e300, b'"value":1e+300,'),
            (5e-324, b'"value":5e-324,'),
            (2**53 + 2, b'"value":9007199254740994.0,'),
            (math.inf, b'"value":"+Inf",'),
            (-math.inf, b'"value":"-Inf",'),
            (math.nan, b'"value":"NaN",'),
            (STALE, b'"value":null,"stale":true,'),
        ],
    )
    def test_values(self, value: float, written: bytes) -> None:
        """A value is exact; what JSON does not have is Prometheus' word, a stale marker null."""
        asked = write(series(SERIES, (value, AT_MS)))

        assert asked.status == 204
        assert written in asked.records[0].value
        assert "nulled" not in asked.events[0]

    @pytest.mark.parametrize(
        ("at_ms", "expected"),
        [
            (0, "1970-01-01T00:00:00.000Z"),
            (5, "1970-01-01T00:00:00.005Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
            (99_999_999_999, "1973-03-03T09:46:39.999Z"),
            (-62_135_596_800_000, "0001-01-01T00:00:00.000Z"),
        ],
    )
    def test_time(self, at_ms: int, expected: str) -> None:
        """A timestamp is in milliseconds, whatever its size."""
        (event,) = write(series(SERIES, (1, at_ms))).events

        assert (event["time"], event["timesrc"]) == (expected, "client")

    def test_a_time_far_ahead(self) -> None:
        """A time of another year is clamped, as everywhere, and kept beside it."""
        (event,) = write(series(SERIES, (1, 253_402_300_799_999))).events

        assert (event["time"], event["timesrc"]) == (format_time(ARRIVED_MS), "clamped")
        assert event["clienttime"] == "9999-12-31T23:59:59.999Z"

    def test_labels_are_sorted(self) -> None:
        """Labels in another order are the same series, with the same ids and key."""
        one = write(series({"b": "2", "__name__": "m", "a": "1"}, (1, AT_MS)))
        two = write(series({"__name__": "m", "a": "1", "b": "2"}, (1, AT_MS)))

        assert list(data(one)[0]["labels"]) == ["__name__", "a", "b"]
        assert one.records[0].key == two.records[0].key
        assert one.events[0]["weirid"] == two.events[0]["weirid"]

    @pytest.mark.parametrize(
        "text", ['q"\\', "tab\tnewline\n\x1b", "é漢😀", "", "x" * 100_000, "\x00", "\x7f"]
    )
    def test_any_text_is_a_label(self, text: str) -> None:
        """A label may be any text, also one of a name that old servers do not know."""
        said = {"__name__": "http.server.duration", "k8s.pod": text}

        assert data(write(series(said, (1, AT_MS))))[0]["labels"] == said

    def test_nothing(self) -> None:
        """An empty request, and one with metadata or series without samples, stores nothing."""
        metadata = [{"type": 1, "metric_family_name": b"m", "help": b"h", "unit": b"s"}]
        for body in (b"", message(metadata=metadata), message(series(SERIES))):
            asked = send(body)
            assert (asked.status, asked.body, asked.records) == (204, b"", [])


class TestMore:
    def test_exemplars(self) -> None:
        """An exemplar is an event of its own, with the labels of its series."""
        exemplar = {"labels": labels({"trace_id": "t"}), "value": 0.5, "timestamp": AT_MS}

        asked = write(series(SERIES, (1, AT_MS), exemplars=[exemplar]))

        assert [event["type"].rpartition(".")[2] for event in asked.events] == [
            "sample",
            "exemplar",
        ]
        assert data(asked)[1] == {
            "labels": SERIES,
            "exemplar": {"trace_id": "t"},
            "value": 0.5,
            "timestamp": AT_MS,
        }
        assert asked.events[1]["time"] == format_time(AT_MS)

    def test_integer_histograms(self) -> None:
        """A native histogram is an event with what the sender says of it."""
        histogram = {
            "count_int": 2**64 - 1,
            "sum": 1.5,
            "schema": -4,
            "zero_threshold": 1e-9,
            "zero_count_int": 1,
            "positive_spans": [{"offset": -2, "length": 2}, {"offset": 3, "length": 1}],
            "positive_deltas": [1, -1, 2**62],
            "negative_spans": [{}],
            "negative_deltas": [5],
            "reset_hint": 2,
            "timestamp": AT_MS,
        }

        (event,) = write(series(SERIES, histograms=[histogram])).events

        assert (event["type"], event["time"]) == ("dev.weir.prom.histogram", format_time(AT_MS))
        assert event["data"] == {
            "labels": SERIES,
            "histogram": {
                "count": 2**64 - 1,
                "sum": 1.5,
                "schema": -4,
                "zero_threshold": 1e-9,
                "zero_count": 1,
                "negative_spans": [{"offset": 0, "length": 0}],
                "negative_deltas": [5],
                "positive_spans": [{"offset": -2, "length": 2}, {"offset": 3, "length": 1}],
                "positive_deltas": [1, -1, 2**62],
                "reset_hint": "no",
            },
            "timestamp": AT_MS,
        }

    def test_float_histograms(self) -> None:
        """Counts may be doubles, also those that JSON does not have."""
        histogram = {
            "count_float": 1.5,
            "sum": math.inf,
            "zero_count_float": 0.5,
            "positive_counts": [1.0, math.nan],
            "negative_counts": [0.5],
            "custom_values": [0.1, 1.0],
            "reset_hint": 9,
            "timestamp": AT_MS,
        }

        (found,) = data(write(series(SERIES, histograms=[histogram])))

        assert found["histogram"] == {
            "count": 1.5,
            "sum": "+Inf",
            "zero_count": 0.5,
            "negative_counts": [0.5],
            "positive_counts": [1.0, "NaN"],
            "reset_hint": 9,
            "custom_values": [0.1, 1.0],
        }

    def test_a_stale_histogram(self) -> None:
        """A histogram whose sum is the stale marker says so, as a sample does."""
        (found,) = data(write(series(SERIES, histograms=[{"sum": STALE, "timestamp": AT_MS}])))

        assert found == {
            "labels": SERIES,
            "histogram": {"sum": None},
            "stale": True,
            "timestamp": AT_MS,
        }


class TestSentAgain:
    def test_the_same_ids(self) -> None:
        """A request that is sent again has the same identities, whenever it comes."""
        exemplar = {"labels": labels({"trace_id": "t"}), "value": 0.5, "timestamp": AT_MS}
        body = message(
            series(SERIES, (1, AT_MS), (1, AT_MS), (STALE, AT_MS), exemplars=[exemplar]),
            series(SERIES, histograms=[{"count_int": 1, "timestamp": AT_MS}]),
        )

        first, second = send(body), send(body)

        ids = [event["weirid"] for event in first.events]
        assert ids == [event["weirid"] for event in second.events]
        assert len(set(ids)) == 5

    @pytest.mark.parametrize(
        ("said", "sample"),
        [
            ({**SERIES, "job": "web"}, (1, AT_MS)),
            ({**SERIES, "x": ""}, (1, AT_MS)),
            (SERIES, (2, AT_MS)),
            (SERIES, (1, AT_MS + 1)),
            (SERIES, (STALE, AT_MS)),
        ],
    )
    def test_what_tells_one_from_another(
        self, said: dict[str, str], sample: tuple[float, int]
    ) -> None:
        """Another label, value or time is another sample."""
        first, second = write(series(SERIES, (1, AT_MS)), series(said, sample)).events

        assert first["id"] != second["id"]

    def test_what_tells_one_histogram_from_another(self) -> None:
        """Another count of a histogram, and another label of an exemplar, is another event."""
        histograms = [{"count_int": count, "timestamp": AT_MS} for count in (1, 2)]
        exemplars = [{"labels": labels({"trace": trace}), "timestamp": AT_MS} for trace in "ab"]

        asked = write(series(SERIES, histograms=histograms, exemplars=exemplars))

        assert len({event["id"] for event in asked.events}) == 4
        assert not any("ordinal" in found for found in data(asked))

    def test_equal_ones_in_a_request(self) -> None:
        """Samples that are equal are told by their place among each other, wherever they stand."""
        asked = write(
            series(SERIES, (1, AT_MS), (1, AT_MS)),
            series({"__name__": "m"}, (1, AT_MS)),
            series(SERIES, (1, AT_MS)),
        )

        assert [found.get("ordinal") for found in data(asked)] == [None, 1, None, 2]
        assert len({event["id"] for event in asked.events}) == 4

    def test_an_equal_one_in_another_request(self) -> None:
        """One that came alone is the first of those that come together."""
        (alone,) = write(series(SERIES, (1, AT_MS))).events
        both = write(series(SERIES, (1, AT_MS), (1, AT_MS))).events

        assert [event["id"] == alone["id"] for event in both] == [True, False]


GOOD = series(SERIES, (1, AT_MS))


class TestInvalidSamples:
    @pytest.mark.parametrize(
        ("bad", "reason", "detail"),
        [
            (
                series({"job": "x"}, (1, AT_MS)),
                "not_an_event",
                "a series must have the label __name__, got none",
            ),
            (
                series({"__name__": ""}, (1, AT_MS)),
                "not_an_event",
                "a series must have the label __name__, got none",
            ),
            (
                series({}, (1, AT_MS)),
                "not_an_event",
                "a series must have the label __name__, got none",
            ),
            (
                series({**SERIES, "": "x"}, (1, AT_MS)),
                "attribute_invalid",
                "a label must have a name, got none",
            ),
            (
                {**GOOD, "labels": labels(SERIES) + labels({"job": "y"})},
                "attribute_invalid",
                'a series must have each label once, got "job" twice',
            ),
            (
                series({"__name__": "a\x00"}, (1, AT_MS)),
                "invalid_unicode",
                "attribute __name__ must not hold U+0000",
            ),
            (
                {**GOOD, "labels": [{"name": b"__name__", "value": b"\xff"}]},
                "invalid_utf8",
                "text must be UTF-8, got byte 0xff at 23",
            ),
            (
                series(SERIES, (1, 253_402_300_800_000)),
                "time_invalid",
                "timestamp must be milliseconds between the years 1 and 9999, got 253402300800000",
            ),
            (
                series(SERIES, (1, -(2**63))),
                "time_invalid",
                "timestamp must be milliseconds between the years 1 and 9999, "
                "got -9223372036854775808",
            ),
            (
                series({**SERIES, "big": "x" * 999_600}, (1, AT_MS)),
                "event_too_large",
                "event must be at most 1000000 bytes with its key, got 1000",
            ),
            (
                series({**SERIES, "big": "x" * 1_000_000}, (1, AT_MS)),
                "event_too_large",
                "event must be at most 1000000 bytes with its key, got 1000",
            ),
        ],
    )
    def test_the_others_are_stored(self, bad: dict[str, Any], reason: str, detail: str) -> None:
        """A sample that cannot be used is quarantined, the others stored, and the answer is 400."""
        asked = write(GOOD, bad, series({"__name__": "m"}, (2, AT_MS)))

        assert asked.status == 400
        assert asked.headers["content-type"] == "text/plain; charset=utf-8"
        assert asked.headers["weir-position"] == "0:4711,3:4698"
        assert asked.body.decode().startswith(
            "1 of 3 samples cannot be used and are in quarantine, the others are stored; send none "
            f"of them again; sample 1: {reason}, {detail}"
        )
        assert [event["subject"] for event in asked.events] == ["orders_total", "m"]
        assert [found for found, _ in asked.refused] == [reason]

    def test_all_of_them(self) -> None:
        """The answer tells the first twenty, and how many more there are."""
        asked = write(*[series({"n": str(n)}, (1, AT_MS)) for n in range(22)])

        assert (asked.status, asked.events, len(asked.refused)) == (400, [], 22)
        text = asked.body.decode()
        assert text.startswith("22 of 22 samples cannot be used")
        assert (text.count("; sample "), text.endswith("got none; and 2 more\n")) == (20, True)

    def test_only_samples_count(self) -> None:
        """A series that is none, without samples, is no invalid sample."""
        assert send(message(series({"job": "x"}), GOOD)).status == 204

    def test_twenty_of_them(self) -> None:
        """Twenty are all told."""
        asked = write(*[series({"n": str(n)}, (1, AT_MS)) for n in range(20)])

        assert asked.body.endswith(b"got none\n")

    def test_a_replay_reads_it_so(self) -> None:
        """What is refused says how it was read, and mended it becomes what it should have been."""
        (record,) = write(series({"__name__": "", "job": "x"}, (1, AT_MS))).records

        name = dict(record.headers)[HEADER_MAPPING]
        assert isinstance(name, bytes)
        mended = record.value.replace(b'"__name__":""', b'"__name__":"m"')
        found = admit(mended, 0, Terms("acme", "web", 0, "replay", mapping=NAMED[name.decode()]))
        (good,) = write(series({"__name__": "m", "job": "x"}, (1, AT_MS))).events

        assert isinstance(found, Admitted)
        assert json.loads(found.value)["weirid"] == good["weirid"]


PAGE = Path(__file__).parents[3] / "docs" / "clients" / "prometheus.md"


def test_the_page() -> None:
    """The metric on the page for users measures what it says, stale markers left out."""
    (block,) = re.findall(r"```yaml\n(kind: .*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    metric = check(None, None, block).model
    assert isinstance(metric, Metric)
    depth = {"__name__": "queue_depth", "job": "shop"}

    found = [
        use(metric, event)
        for event in write(
            series(depth, (7, AT_MS), (STALE, AT_MS)), series(SERIES, (1, AT_MS))
        ).events
    ]

    assert isinstance(found[0], Used)
    assert (found[0].value, "shop" in str(found[0].series)) == (7, True)
    assert [type(one) for one in found[1:]] == [NotMatched, NotMatched]
