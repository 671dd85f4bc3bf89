"""What late events changed: from the outboxes, with who sent them, to `weir.corrections`."""

from __future__ import annotations

import json
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from hypothesis import given
from hypothesis import strategies as st
from weir import names
from weir.corrections import CorrectionRecord, Figures, decode
from weir.definitions.fold import Definitions
from weir.definitions.records import Edit, put_record
from weir.kafka import Kafka
from weir.series import OTHER, series_digest, shard_of
from weir_analytics.panes.commit_job import Correction, OutboxEntry
from weir_analytics.panes.corrections import (
    Arrival,
    CorrectionWriter,
    publish,
    records_of,
)
from weir_analytics.panes.inbox import LateGroup, LateRow

METRIC = {
    "kind": "metric",
    "name": "orders",
    "events": {"type": ["order", "shop.*"], "source": ["web", "app"]},
    "aggregates": ["count"],
    "keep": {"10s": "1h", "1m": "1d"},
    "allowed_lateness": "30s",
}
START_S = 1_800_000_000
MINUTE_S = START_S + 300
LATE: list[LateGroup] = [
    ("acme", "web", "order", START_S, START_S + 120, 1),
    ("acme", "web", "order", START_S, MINUTE_S - 60, 1),
    ("acme", "app", "shop.basket", START_S, START_S + 60, 3),
    ("acme", "web", "order", START_S + 10, MINUTE_S, 5),
    # None of these is of the metric, or of the pane.
    ("acme", "other", "order", START_S, MINUTE_S, 100),
    ("acme", "web", "refund", START_S, MINUTE_S, 100),
    ("rival", "web", "order", START_S, MINUTE_S, 100),
    ("acme", "web", "order", START_S + 60, MINUTE_S, 100),
]


def definitions() -> Definitions:
    """Return a fold with the metric as version 1, under vid 0."""
    fold = Definitions()
    record = put_record(Edit("acme", "metric", "orders", None, "test", 0), json.dumps(METRIC))
    fold.apply(0, record.key, record.value)
    return fold


def correction(res_s: int = 10, start_s: int = START_S, **changes: Any) -> Correction:
    """Return a correction of the metric."""
    members: dict[str, Any] = {
        "vid": 0,
        "series": "",
        "was": Figures(1, None, None, None),
    } | changes
    return Correction(res_s=res_s, start_s=start_s, now=Figures(3, None, None, None), **members)


def others(was: int, gained: int) -> Correction:
    """Return a correction of the row of all series beyond `max_series`."""
    return Correction(0, 10, START_S, OTHER, Figures(was), Figures(was + gained))


def outbox(
    *corrections: Correction, epoch: int = 4, batch: int = 9
) -> dict[int, list[OutboxEntry]]:
    """Return the outbox of one shard with one entry."""
    return {0: [OutboxEntry(1, epoch, batch, [], list(corrections))]}


def arrival(**changes: Any) -> Arrival:
    """Return what batch 9 of epoch 4 told."""
    received_ms = (START_S + 300) * 1000
    members: dict[str, Any] = {"epoch": 4, "batch": 9, "received_ms": received_ms, "late": LATE}
    return Arrival(**members | changes)


class TestRecords:
    def test_a_correction_says_what_changed_and_how_late(self) -> None:
        """Pane, before, after; the pane was final 30 s after its end."""
        (found,) = records_of(definitions(), outbox(correction()), arrival())

        assert (found.tenant, found.metric, found.version, found.vid) == ("acme", "orders", 1, 0)
        assert (found.was, found.now) == (Figures(1), Figures(3))
        assert found.final_ms == (START_S + 40) * 1000
        assert found.late_ms == 289_999

    def test_how_late_is_of_the_pane_and_not_of_the_batch(self) -> None:
        """Of a batch of hours, the last received minute that has an event of the pane."""
        caught_up = (START_S + 7200) * 1000
        ten_s = (correction(), correction(start_s=START_S + 10))
        found = records_of(definitions(), outbox(*ten_s), arrival(received_ms=caught_up))
        assert [one.received_ms for one in found] == [
            MINUTE_S * 1000 - 1,
            (MINUTE_S + 60) * 1000 - 1,
        ]
        # Not where some of its events are not known, nor later than the batch itself.
        cut = arrival(received_ms=caught_up, late_cut={"acme"})
        for box, arrived, received_ms in (
            (outbox(correction()), cut, caught_up),
            (outbox(correction(), batch=8), arrival(received_ms=caught_up), caught_up),
            (outbox(correction()), arrival(received_ms=MINUTE_S * 1000 - 9), MINUTE_S * 1000 - 9),
        ):
            (one,) = records_of(definitions(), box, arrived)
            assert one.received_ms == received_ms

    @pytest.mark.parametrize(
        ("res_s", "start_s", "sources"),
        [
            (10, START_S, [("app", 3), ("web", 2)]),
            (10, START_S + 10, [("web", 5)]),
            (60, START_S, [("web", 7), ("app", 3)]),
            (10, START_S + 20, []),
        ],
    )
    def test_its_sources_are_those_of_the_metric_in_the_pane(
        self, res_s: int, start_s: int, sources: list[tuple[str, int]]
    ) -> None:
        """By tenant, type and source of the metric, and by the pane's span of time."""
        (found,) = records_of(definitions(), outbox(correction(res_s, start_s)), arrival())

        assert found.sources == sources
        assert found.sources_known

    @pytest.mark.parametrize(
        ("one", "sources", "exact"),
        [
            ({"series": "=a"}, [("app", 2)], True),
            ({"series": "=b"}, [("web", 4), ("app", 1)], True),
            ({"series": "=a", "res_s": 60}, [("app", 2)], True),
            # Beyond `max_series`: what has no row of its own.
            ({"series": OTHER}, [("web", 15)], True),
            # It became part of `*`, or nothing of it came late: whoever it may have been.
            ({"series": "=d"}, [("app", 3), ("web", 2)], False),
        ],
    )
    def test_of_what_was_counted_its_sources_are_its_own(
        self, one: dict[str, Any], sources: list[tuple[str, int]], exact: bool
    ) -> None:
        """By version, pane and series: not who sent what does not match, or another series."""
        rows: list[LateRow] = [
            ("acme", 0, "app", "=a", START_S, START_S + 60, 2),
            ("acme", 0, "web", "=b", START_S, START_S + 60, 4),
            ("acme", 0, "app", "=b", START_S, START_S + 60, 1),
            ("acme", 0, "web", "=c", START_S, START_S + 60, 8),
            ("acme", 0, "web", f"{OTHER}0", START_S, START_S + 60, 7),
            ("acme", 7, "web", "=a", START_S, START_S + 60, 100),
            ("acme", 0, "web", "=a", START_S + 60, START_S + 60, 100),
        ]
        place = {"res_s": 10} | one
        own = [correction(series=s, res_s=place["res_s"]) for s in ("=a", "=b", OTHER)]
        gone = [Correction(0, 10, START_S, "=d", Figures(1), None)]
        found = records_of(definitions(), outbox(*own, *gone), arrival(rows=rows))
        (told,) = [record for record in found if record.series == place["series"]]

        assert (told.sources, told.sources_exact, told.sources_known) == (sources, exact, True)
        cut = arrival(rows=rows, rows_cut={"acme"})
        for record in records_of(definitions(), outbox(*own, *gone), cut):
            assert not record.sources_exact
            assert ("app", 3) in record.sources

    def test_what_a_shard_does_not_tell_is_nobodys_source(self) -> None:
        """One that is counted again tells no row of a pane: its senders sent nothing into `*`."""
        texts = [f"=k{n}" for n in range(9)]
        (here, there) = (
            next(text for text in texts if shard_of(series_digest(text), 2) == shard)
            for shard in (0, 1)
        )
        rows: list[LateRow] = [
            ("acme", 0, "app", here, START_S, START_S + 60, 2),
            ("acme", 0, "app", f"{OTHER}0", START_S, START_S + 60, 1),
            ("acme", 0, "web", there, START_S, MINUTE_S, 4),
            ("acme", 0, "web", f"{OTHER}1", START_S, MINUTE_S, 8),
        ]
        arrived, first = arrival(rows=rows, shards=2), outbox(others(1, 3))
        (alone,) = records_of(definitions(), first, arrived)
        assert (alone.sources, alone.sources_exact) == ([("app", 3)], True)
        assert alone.received_ms == (START_S + 120) * 1000 - 1

        second = outbox(correction(series=there), others(0, 8))
        found = records_of(definitions(), {0: first[0], 1: second[0]}, arrived)
        assert {(one.shard, one.series): one.sources for one in found} == {
            (0, OTHER): [("web", 8), ("app", 3)],
            (1, there): [("web", 4)],
            (1, OTHER): [("web", 8), ("app", 3)],
        }
        assert all(one.sources_exact for one in found)

    def test_who_came_too_late_for_a_pane_is_no_source_of_it(self) -> None:
        """Ten seconds are kept for an hour, by the received minute: then minutes alone gain."""
        rows: list[LateRow] = [
            ("acme", 0, "app", "=a", START_S, START_S + 3_600, 2),
            ("acme", 0, "app", "=b", START_S, START_S + 3_600, 1),
            ("acme", 0, "web", "=a", START_S, START_S + 3_660, 4),
            ("acme", 0, "web", "=b", START_S, START_S + 3_660, 8),
        ]
        told = [correction(res_s, series=s) for res_s in (10, 60) for s in ("=a", OTHER)]
        found = records_of(definitions(), outbox(*told), arrival(rows=rows))
        assert {(one.res_s, one.series): one.sources for one in found} == {
            (10, "=a"): [("app", 2)],
            (10, OTHER): [("app", 1)],
            (60, "=a"): [("web", 4), ("app", 2)],
            (60, OTHER): [("web", 8), ("app", 1)],
        }

    def test_what_an_earlier_batch_left_has_no_known_source(self) -> None:
        """Its events are not among those of the batch at hand; its key is its own."""
        left = outbox(correction(), epoch=3, batch=70)
        (found,) = records_of(definitions(), left, arrival())

        assert (found.epoch, found.batch) == (3, 70)
        assert (found.sources, found.sources_known) == ([], False)

    def test_sources_that_are_cut_short_say_so(self) -> None:
        """Of a tenant whose groups were left out; another tenant's lists stay whole."""
        for cut, known in (({"acme"}, False), ({"other"}, True)):
            arrived = arrival(late_cut=cut)
            (found,) = records_of(definitions(), outbox(correction()), arrived)
            assert found.sources_known is known

    @given(
        shards=st.dictionaries(
            st.integers(0, 3),
            st.lists(st.tuples(st.integers(0, 9), st.integers(1, 9)), min_size=1, max_size=3),
            min_size=1,
        ),
        trimmed=st.dictionaries(st.integers(0, 3), st.integers(0, 3)),
    )
    def test_corrections_of_others_add_up_over_shards(
        self, shards: dict[int, list[tuple[int, int]]], trimmed: dict[int, int]
    ) -> None:
        """All events are in the sum of what is kept, also if some outboxes are sent again."""
        boxes = {
            shard: [
                OutboxEntry(n, 4, n, [], [others(was, gained)])
                for n, (was, gained) in enumerate(changes)
            ]
            for shard, changes in shards.items()
        }
        again = {shard: box[trimmed.get(shard, 0) :] for shard, box in boxes.items()}
        sent = [
            *records_of(definitions(), boxes, arrival()),
            *records_of(definitions(), again, arrival()),
        ]
        kept: dict[str, CorrectionRecord] = {}
        for record in sent:
            kept.setdefault(record.key, record)

        assert sum(one.events for one in kept.values()) == sum(
            gained for changes in shards.values() for _was, gained in changes
        )

    def test_a_version_that_nobody_can_read_has_no_name_to_tell(self) -> None:
        """A version that is not in the log of definitions makes no record."""
        assert records_of(definitions(), outbox(correction(vid=5)), arrival()) == []


def stored(kafka: str) -> list[CorrectionRecord]:
    """Return all records of the topic."""
    consumer = Consumer({"bootstrap.servers": kafka, "group.id": "test"})
    end = consumer.get_watermark_offsets(TopicPartition(names.CORRECTIONS, 0), timeout=10)[1]
    consumer.assign([TopicPartition(names.CORRECTIONS, 0, 0)])
    found = consumer.consume(end, timeout=10) if end else []
    consumer.close()
    assert {m.key() for m in found} == {decode(m.value() or b"").key.encode() for m in found}
    return [decode(message.value() or b"") for message in found]


@pytest.mark.kafka
class TestWriter:
    def test_published_means_stored(self, kafka: str) -> None:
        """When `publish` returns, the topic has the records, each under its key."""
        before = len(stored(kafka))
        sent = publish(Kafka(kafka), definitions(), outbox(correction(), correction(60)), arrival())

        assert sent == 2
        assert [one.res_s for one in stored(kafka)[before:]] == [10, 60]

    def test_nothing_to_tell_asks_nobody(self) -> None:
        """Without corrections no broker is needed."""
        assert publish(Kafka("127.0.0.1:1"), definitions(), outbox(), arrival()) == 0

    def test_what_is_not_stored_ends_the_batch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """With no broker there is no acknowledgement, so the batch must not be recorded."""
        monkeypatch.setattr("weir_analytics.panes.corrections.FLUSH_S", 0.5)
        records = records_of(definitions(), outbox(correction()), arrival())

        with pytest.raises(TimeoutError, match="must be stored in"):
            CorrectionWriter(Kafka("127.0.0.1:1")).send(records)
