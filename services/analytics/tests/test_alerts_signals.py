"""Rules on Weir itself, without servers: readings in, what changes out; and what is shipped."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from confluent_kafka import KafkaError, KafkaException
from prometheus_client import REGISTRY
from redis.exceptions import RedisError
from structlog.testing import capture_logs
from weir.alerts.fold import Fold
from weir.alerts.messages import Watched
from weir.alerts.step import Kind
from weir.alerts.watch import Change
from weir.batches import BatchRecord, LedgerRow
from weir.clock import Clock, ManualClock, SystemClock
from weir.definitions.check import check
from weir.definitions.fold import Definitions
from weir.definitions.records import Edit, delete_record, put_record
from weir.definitions.rule import Rule
from weir.definitions.signals import EVERY_MS, SIGNALS
from weir.kafka import Kafka
from weir.log_left import LogLeft
from weir.log_place import LogPlace
from weir_analytics.alerts import app  # noqa: F401  its gauges are asked for
from weir_analytics.alerts.itself import Itself, shipments, shipped
from weir_analytics.alerts.log_seen import LogSeen
from weir_analytics.alerts.rules import Rules, WatchingItself
from weir_analytics.alerts.signal_watch import LowerBound, SignalWatch
from weir_analytics.alerts.signals import Signals as ReadSignals
from weir_analytics.alerts.signals import closed, log_used, quarantined, quota_share
from weir_reading.catalog import Catalog
from weir_reading.parts import Part, read_part

if TYPE_CHECKING:
    from weir_analytics.alerts.recording import Recording
    from weir_analytics.alerts.signals import Signals

AT_MS = 1_800_000_000_000
MINUTE_MS = 60_000
KEY = f'{{kind: key, name: abcd1234, hash: "{"0" * 64}", scopes: [ingest], source: http}}'


def watch(**members: object) -> SignalWatch:
    """Return a watch of a rule above 60 s."""
    given = {"name": "r", "metric": "weir.lag", "above": 60, **members}
    return SignalWatch(Rule.model_validate(given), {})


def told(watch: SignalWatch, *values: float | None) -> list[list[Kind]]:
    """Return what each of some readings in a row changed, of a rule without groups."""
    return [
        [
            one.kind
            for change in watch.see({(): value}, AT_MS + n * EVERY_MS)
            for one in change.transitions
        ]
        for n, value in enumerate(values)
    ]


class Server:
    """A Redis that says what it uses, as long as it may be asked."""

    def __init__(self, keys: int | None) -> None:
        self.keys = keys

    async def info(self, _section: str) -> dict[str, int]:
        """Return what it uses."""
        return {"used_memory": 3_000, "maxmemory": 12_000}

    async def dbsize(self) -> int:
        """Return how many keys there are."""
        if self.keys is None:
            msg = "NOPERM"
            raise RedisError(msg)
        return self.keys


def signals_of(redis: Any, parts: Any, clock: Clock, seen: float | None = None) -> ReadSignals:
    """Return what reads signals where nothing is counted; `seen` of the log."""
    nothing: Any = SimpleNamespace(processed_through_ms=None, counted_ms=None)
    others = (nothing, nothing, nothing)
    return ReadSignals(redis, nothing, nothing, parts, *others, clock, lambda: None, lambda: seen)


def test_memory_and_keys_of_redis_are_told() -> None:
    """In bytes and as a share; who may not count keys still watches the memory."""
    parts: Any = SimpleNamespace(named=lambda _name: [])
    for keys, told_keys in ((40, 40.0), (None, 40.0)):
        redis = cast("Any", Server(keys))
        signals = signals_of(redis, parts, SystemClock())
        found = asyncio.run(signals.common())

        assert found["weir.memory"] == {(): 25.0}
        assert REGISTRY.get_sample_value("weir_alerts_redis_memory_ratio") == 0.25
        assert REGISTRY.get_sample_value("weir_alerts_redis_memory_bytes") == 3_000
        assert REGISTRY.get_sample_value("weir_alerts_redis_keys_count") == told_keys
    assert (REGISTRY.get_sample_value("weir_alerts_threads_count") or 0) >= 1


def part(name: str, **detail: object) -> Part:
    """Return a process that says something of itself."""
    found = read_part(
        f"weir:1:part:{name}:x".encode(), json.dumps({"at_ms": 1, "detail": detail}).encode()
    )
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("allowed", "capacity", "share"),
    [
        ((400, 200), 500, 1.2),
        ((400,), 500, 0.8),
        ((400, None), 500, 0.8),
        ((None,), 500, 0.0),
        ((None,), None, 0.0),
        ((400,), None, None),
        ((400,), "many", None),
        ((), 500, None),
    ],
)
def test_quotas_are_held_against_what_can_be_counted(
    allowed: tuple[int | None, ...], capacity: object, share: float | None
) -> None:
    """Each process of ingest has its own; without any there is nothing to warn of."""
    ingest = [part("ingest", allowed_per_s=one) for one in allowed]

    assert quota_share(ingest, [part("panes", capacity_per_s=capacity), part("panes")]) == share


@pytest.mark.parametrize(
    ("seen", "used"),
    [
        ([], None),
        ([{}], None),
        ([{"log_left_ms": None, "log_kept_ms": None}], 0.0),
        ([{"log_left_ms": 250, "log_kept_ms": 1_000}], 0.75),
        ([{"log_left_ms": 0, "log_kept_ms": 1_000}], 1.0),
        ([{"log_left_ms": 0, "log_kept_ms": 0}], 1.0),
        ([{"log_left_ms": 1_500, "log_kept_ms": 1_000}], 0.0),
        (
            [
                {},
                {"log_left_ms": 900, "log_kept_ms": 1_000},
                {"log_left_ms": 600, "log_kept_ms": 1_000},
            ],
            0.4,
        ),
        # A backfill that retention overtakes is told on the page Status, and to no channel.
        ([{"log_left_ms": 100, "log_left_needed_ms": 900, "log_kept_ms": 1_000}], 0.1),
    ],
)
def test_the_least_that_is_left_of_the_log_counts(
    seen: list[dict[str, object]], used: float | None
) -> None:
    """Who has not looked says nothing; what is kept for ever is never used up."""
    parts = [part("dashboard", **detail) for detail in seen]

    assert log_used(parts) == (None if used is None else pytest.approx(used))


@pytest.mark.parametrize(
    ("seen", "age_ms", "used"),
    [(None, 0, 90.0), (0.2, 0, 90.0), (0.95, 0, 95.0), (0.2, 15_000, 20.0), (None, 15_000, None)],
)
def test_what_this_job_sees_of_the_log_counts_and_what_others_have_just_seen(
    seen: float | None, age_ms: int, used: float | None
) -> None:
    """Driver or dashboard; an old word of theirs says nothing: Redis may be full, or away."""
    left = {"log_left_ms": 100, "log_kept_ms": 1_000}
    for name in ("panes", "dashboard"):
        beats = {name: [replace(part(name, **left), at_ms=AT_MS - age_ms)]}
        parts: Any = SimpleNamespace(named=lambda asked, beats=beats: beats.get(asked, []))
        redis, clock = cast("Any", Server(1)), ManualClock(AT_MS)
        signals = signals_of(redis, parts, clock, seen)
        assert asyncio.run(signals.common())["weir.log"] == {(): used}


class Log:
    """A log that says what is left of it, or does not answer."""

    def __init__(self) -> None:
        self.left_ms, self.is_away = 250, False

    def read(self) -> dict[int, LogPlace]:
        """Return how far counting is."""
        if self.is_away:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))
        return {0: LogPlace(5)}

    def left(self, _places: dict[int, LogPlace], /) -> LogLeft:
        """Return for how long the log holds the rest."""
        return LogLeft(0, self.left_ms, 1_000, needed_ms=self.left_ms)


def test_the_log_is_looked_at_with_neither_driver_nor_redis() -> None:
    """What was seen holds for a minute; that nobody can look is told once."""
    clock, kafka = ManualClock(AT_MS), Log()
    seen = LogSeen(kafka, kafka, clock)
    assert seen.used() is None
    seen.look()
    assert seen.used() == 0.75
    kafka.is_away = True
    with capture_logs() as logs:
        seen.look()
        seen.look()
    assert [line["event"] for line in logs] == ["log_not_watched"]
    clock.advance(60_000)
    assert seen.used() == 0.75
    clock.advance(1)
    assert seen.used() is None


class TestWatch:
    def test_a_reading_beyond_fires_and_one_within_resolves(self) -> None:
        """At once, confirmed: nothing is still to come that could change a reading."""
        found = watch()
        assert told(found, 10, 61, 62, 60) == [
            [],
            [Kind.FIRING],
            [],
            [Kind.RESOLVED],
        ]

    def test_what_cannot_be_read_changes_nothing(self) -> None:
        """A store that is away is no recovery, and counts for no `for`."""
        found = watch(**{"for": "20s"})
        assert told(found, 61, None, None, 61, 61)[-2:] == [[], [Kind.FIRING]]
        assert told(watch(), 61, None)[1:] == [[]]

    def test_at_least_so_long_is_no_recovery(self) -> None:
        """A job that knows nothing of before its start has seen no recovery."""
        found = watch()
        assert told(found, 61, LowerBound(5), LowerBound(50))[1:] == [[], []]
        assert told(watch(), LowerBound(61)) == [[Kind.FIRING]]

    def test_time_without_this_job_is_no_time_beyond(self) -> None:
        """A job that was away for an hour has not seen an hour of lag."""
        found = watch(**{"for": "1m"})
        found.see({(): 61.0}, AT_MS)
        assert found.see({(): 61.0}, AT_MS + 3_600_000) == []

    def test_a_channel_that_is_deleted_ends_its_alert(self) -> None:
        """Each channel is a group; the others go on."""
        found = watch(metric="weir.channel")
        fired = found.see({("a",): 90.0, ("b",): 0.0}, AT_MS)
        ended = found.see({("b",): 0.0}, AT_MS + EVERY_MS)
        assert [(one.group, [t.kind for t in one.transitions]) for one in (*fired, *ended)] == [
            (("a",), [Kind.FIRING]),
            (("a",), [Kind.ENDED]),
        ]
        assert list(found.series) == [("b",)]


def batch(minute: int, through: int, **counts: int) -> BatchRecord:
    """Return a batch whose events were received in one minute, by minutes since the start."""
    row = LedgerRow("default", "http", AT_MS + minute * MINUTE_MS, **counts)
    return BatchRecord(
        epoch=1,
        batch=0,
        rev=1,
        shards=1,
        from_offsets={0: 0},
        to_offsets={0: 0},
        processed_through_ms=AT_MS + through * MINUTE_MS,
        at_ms=AT_MS,
        ledger=[row],
    )


class TestQuarantine:
    def test_the_share_of_the_last_ten_closed_minutes(self) -> None:
        """Duplicates were received too; another tenant's events are not these."""
        first = batch(0, 1, quarantined=900)
        rest = [batch(n, n + 1, counted=8, duplicate=1, quarantined=1) for n in range(1, 11)]
        still_open = batch(11, 11, quarantined=500)
        assert quarantined([first, *rest, still_open], "default") == pytest.approx(0.1)
        assert quarantined([first, *rest], "other") == 0

    def test_few_events_say_nothing(self) -> None:
        """One bad event of three is no rate."""
        assert quarantined([batch(0, 1, counted=9, quarantined=10)], "default") == 0
        assert quarantined([batch(0, 1, counted=9, quarantined=11)], "default") == 0.55

    def test_before_a_minute_is_closed_nothing_is_known(self) -> None:
        """Not zero."""
        assert quarantined([batch(0, 0, quarantined=30)], "default") is None
        assert closed([]) == []


class TestShipped:
    def test_each_signal_has_a_rule(self) -> None:
        """All can be stored as they are, and none names a channel."""
        models = [check("rule", name, text).model for name, text in shipped().items()]
        rules = [one for one in models if isinstance(one, Rule)]
        assert {one.metric for one in rules} == set(SIGNALS)
        assert all(not one.route.channels and one.message for one in rules)

    def test_once_a_tenant(self) -> None:
        """Whoever deletes one has it no more; who has no key gets none."""
        folded = Definitions()
        assert shipments(folded, 0) == []
        folded.apply(0, *put_record(Edit("acme", "key", "abcd1234", None, "test", 0), KEY))
        due = shipments(folded, 0)
        for offset, record in enumerate(due, 1):
            change = folded.apply(offset, *record)
            assert change is not None
            assert change.applied
        assert (len(due), shipments(folded, 0)) == (len(SIGNALS), [])
        folded.apply(100, *delete_record(Edit("acme", "rule", "weir_lag", 1, "test", 0)))
        assert folded.get("acme", "rule", "weir_lag") is None
        assert shipments(folded, 0) == []


class Reading:
    """Signals of two tenants, one of which cannot be read."""

    async def common(self) -> dict[str, Any]:
        """Return what is all tenants'."""
        return {"weir.lag": {(): 61.0}}

    async def of_tenant(self, tenant: str) -> dict[str, Any]:
        """Return what is one tenant's own."""
        if tenant == "broken":
            raise ValueError(tenant)
        return {"weir.ledger": {(): 0.0}, "weir.channel": {}, "weir.rules": {(): 0.0}}


class Recorded:
    """Keeps what is recorded."""

    def __init__(self) -> None:
        self.kinds: list[tuple[str, str]] = []

    async def changes(self, watched: Watched, found: list[Change], _: int) -> None:
        """Keep it, but for one rule, whose change cannot be recorded."""
        if watched.rule.name == "bad":
            raise ValueError(watched.rule.name)
        kinds = [told.kind.value for change in found for told in change.transitions]
        self.kinds += [(watched.rule.name, kind) for kind in kinds]

    async def reminders(self, *_: object) -> None:
        """There are none."""


def test_one_bad_rule_stops_no_other() -> None:
    """Nor do the signals of one tenant those of another; each says what is wrong with it."""
    rules, recorded = Rules(Catalog(), Fold(), ""), Recorded()
    for vid, (tenant, name) in enumerate((("a", "bad"), ("broken", "lost"), ("a", "good"))):
        one = watch(name=name)
        rules.itself[vid] = WatchingItself(Watched(tenant, vid, 1, one.rule), one)
    signals, clock = cast("Signals", Reading()), SystemClock()
    itself = Itself(
        rules,
        Catalog(),
        signals,
        cast("Recording", recorded),
        clock,
        kafka=Kafka("nowhere:1"),
        ships=False,
    )
    asyncio.run(itself.look())
    assert recorded.kinds == [("good", "firing")]
    assert [bool(one.error) for one in rules.itself.values()] == [True, True, False]
    assert "signals could not be read" in rules.itself[1].error
    assert itself.looked_ms is not None


class TestClockThatIsPutBack:
    """By an hour, as a time server does; readings go on every ten seconds."""

    @staticmethod
    def seen(watch: SignalWatch, at_s: int, value: float) -> list[Kind]:
        """Return what is told of one reading."""
        return [t.kind for one in watch.see({(): value}, at_s * 1000) for t in one.transitions]

    def test_what_comes_then_is_told_at_once(self) -> None:
        """And not an hour later, when the clock has come again to where it was."""
        found = watch(above=60)
        assert self.seen(found, 7_200, 0.0) == []
        assert self.seen(found, 3_610, 100.0) == [Kind.FIRING]

    def test_what_fires_goes_on_and_ends(self) -> None:
        """It is one alert, which ends with the first reading that is back."""
        found = watch(above=60)
        assert self.seen(found, 7_200, 100.0) == [Kind.FIRING]
        before = found.series[()].told
        assert self.seen(found, 3_610, 100.0) == []
        assert [one.key_ms for one in found.series[()].told] == [one.key_ms for one in before]
        assert self.seen(found, 3_620, 0.0) == [Kind.RESOLVED]

    def test_time_that_has_passed_counts(self) -> None:
        """Of half a minute ten seconds had; twenty more are left."""
        found = watch(**{"above": 60, "for": "30s"})
        assert self.seen(found, 7_190, 100.0) == [Kind.PENDING]
        assert self.seen(found, 7_200, 100.0) == []
        assert self.seen(found, 3_600, 100.0) == []
        assert self.seen(found, 3_610, 100.0) == [Kind.FIRING]
