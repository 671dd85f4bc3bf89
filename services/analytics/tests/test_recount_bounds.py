"""What a recount holds of the log: no more than it may, and still it counts by the rules."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import datasketches as ds
import pytest
import redis
from weir import names, rows
from weir.batches import FIELD, BatchRecord, encode
from weir.definitions.check import check
from weir.definitions.history import Horizons
from weir.definitions.metric import Metric
from weir.erasure import Erasure, subject_hash
from weir.event import TIME_END, placed
from weir.frequent import Texts
from weir.further import Further
from weir.series import cut_text
from weir.sets import Theta
from weir_analytics.jobs import was_served
from weir_analytics.jobs.compare import compare
from weir_analytics.jobs.identities import Identities, Room
from weir_analytics.jobs.log_records import Passage
from weir_analytics.jobs.recount import Part, Recount, Terms
from weir_analytics.jobs.sample import Audited, PaneAt
from weir_analytics.jobs.was_served import Reader

from .conftest import settings_for
from .log_frames import EVENT, NOW_MS, event

HORIZON_MS = 3_600_000
HOUR_S = NOW_MS // HORIZON_MS * 3_600
HOUR_MS = 1_000 * HOUR_S
TEXT = """
kind: metric
name: amount
events: {type: t}
where: data.x >= 0
value: data.x
by: [data.k]
aggregates: [count, sum, "distinct(data.k)"]
keep: {10s: 1d, 1h: 7d}
"""
FIRST, HOUR = PaneAt(5, 10, HOUR_S), PaneAt(5, 3_600, HOUR_S)
TERMS = Terms((Horizons({}, HORIZON_MS, 400 * 86_400_000),))


@dataclass
class Stored:
    """A record of the log, as the client library gives it."""

    kept: bytes
    place: tuple[int, int]
    at_ms: int

    def value(self) -> bytes:
        """Return its value."""
        return self.kept

    def headers(self) -> list[tuple[str, bytes]]:
        """Return what ingest writes."""
        return EVENT

    def topic(self) -> str:
        """Return its topic."""
        return names.EVENTS

    def partition(self) -> int:
        """Return its partition."""
        return self.place[0]

    def offset(self) -> int:
        """Return its offset."""
        return self.place[1]

    def timestamp(self) -> tuple[int, int]:
        """Return when it was appended."""
        return 1, self.at_ms


def log_of(values: Iterable[tuple[bytes, int]], partitions: int = 1) -> list[Any]:
    """Return a log of values with the instants at which they were received."""
    ends = [0] * partitions
    found = []
    for at, (value, at_ms) in enumerate(values):
        partition = at % partitions
        found.append(Stored(value, (partition, ends[partition]), at_ms))
        ends[partition] += 1
    return found


def part(*panes: PaneAt, text: str = TEXT, vid: int = 5) -> Part:
    """Return panes of a metric of the tenant acme."""
    model = check("metric", "amount", text).model
    assert isinstance(model, Metric)
    version = Audited(vid, "acme", "amount", 1, model, {}, None, {})
    return Part(version, {pane: {0: 10**9, 1: 10**9} for pane in panes})


def recounted(
    log: Sequence[Any], parts: Sequence[Part], most: int = 10**6, terms: Terms = TERMS
) -> Recount:
    """Go through a log twice, as an audit does."""
    again = Recount(parts, terms, most)
    for record in Passage().records(log):
        again.look_for([record])
        assert again.held <= most
    again.count(Passage().records(log))
    return again


def of_others() -> list[tuple[bytes, int]]:
    """Return a thousand events of the hour, none of which the metric counts."""
    others = [event(f"b{i}", HOUR_MS + i, tenant="big", x=1, k="k") for i in range(400)]
    others += [event(f"o{i}", HOUR_MS + i, "other", x=1, k="k") for i in range(400)]
    others += [event(f"n{i}", HOUR_MS + i, x=-1, k="k") for i in range(200)]
    return [(value, HOUR_MS) for value in others]


@pytest.mark.parametrize(("late_ms", "counted"), [(59_999, 1), (60_000, 0)])
def test_what_came_when_its_pane_was_too_old_is_not_counted(late_ms: int, counted: int) -> None:
    """By its own received minute, as live counting goes; the hour takes it in all the same."""
    over_ms = HOUR_MS + 10_000 + 86_400_000
    received_ms = over_ms // 60_000 * 60_000 + late_ms
    log = log_of([(event("m", HOUR_MS, x=1, k="k"), received_ms)])
    panes = recounted(log, [part(FIRST, HOUR)]).panes
    found = {pane: sum(row.n for row in rows.values()) for pane, rows in panes.items()}
    assert (found.get(FIRST, 0), found[HOUR]) == (counted, 1)


class TestWhatIsHeld:
    def test_of_others_nothing_is_held(self) -> None:
        """Neither of other tenants, nor of other types, nor of what the condition leaves out."""
        mine = [(event(f"m{i}", HOUR_MS + i, x=i, k="k"), HOUR_MS) for i in range(20)]
        again = recounted(log_of(of_others() + mine), [part(FIRST, HOUR)])

        assert again.held == 20
        assert {pane: found["=k"].n for pane, found in again.panes.items()} == {FIRST: 20, HOUR: 20}

    def test_the_largest_panes_are_left_out(self) -> None:
        """An hour that does not fit leaves its ten seconds exact; with room it is exact, too."""
        values = [(event(f"m{i}", HOUR_MS + 100 * i, x=1, k="k"), HOUR_MS) for i in range(500)]
        log = log_of(values)
        again = recounted(log, [part(FIRST, HOUR)], most=300)

        assert {pane: found["=k"].n for pane, found in again.panes.items()} == {FIRST: 100}
        assert again.held == 100
        whole = recounted(log, [part(FIRST, HOUR)], most=600)
        assert {pane: found["=k"].n for pane, found in whole.panes.items()} == {
            FIRST: 100,
            HOUR: 500,
        }

    def test_a_pane_that_is_overtaken_leaves_room(self) -> None:
        """For what is found of others in the rest of the log."""
        log = log_of([(event(f"m{i}", HOUR_MS + i, x=1, k="k"), HOUR_MS) for i in range(250)])
        again = Recount([part(FIRST, HOUR)], TERMS, most=300)
        again.look_for(Passage().records(log[:100]))
        again.leave_out([HOUR])
        again.look_for(Passage().records(log))
        again.count(Passage().records(log))
        assert {pane: found["=k"].n for pane, found in again.panes.items()} == {FIRST: 250}

    def test_what_is_counted_again_and_again_takes_room_each_time(self) -> None:
        """One identity, more than a horizon apart each time, is one identity and many values."""
        log = log_of([(event("m", HOUR_MS, x=1, k="k"), HOUR_MS + i * 4_000_000) for i in range(9)])

        assert recounted(log, [part(HOUR)], most=9).panes[HOUR]["=k"].n == 9
        assert recounted(log, [part(HOUR)], most=8).panes == {}

    def test_long_texts_take_more_room(self) -> None:
        """A client chooses them: a hundred of the longest are as much as thousands of events."""
        log = log_of(
            [(event(f"m{i}", HOUR_MS, x=1, k="k" * 100_000 + str(i)), HOUR_MS) for i in range(20)]
        )

        assert recounted(log, [part(HOUR)], most=1_000).panes == {}
        assert len(recounted(log, [part(HOUR)], most=10_000).panes[HOUR]) == 20

    def test_a_metric_that_does_not_fit_leaves_another_its_panes(self) -> None:
        """What is left out is the pane that takes most, whosever it is."""
        rare = TEXT.replace("data.x >= 0", "data.x = 7")
        values = [(event(f"m{i}", HOUR_MS + i, x=i % 100, k="k"), HOUR_MS) for i in range(1_000)]
        parts = [part(HOUR), part(PaneAt(6, 3_600, HOUR_S), text=rare, vid=6)]
        again = recounted(log_of(values), parts, most=500)

        assert {pane.vid: found["=k"].n for pane, found in again.panes.items()} == {6: 10}


class TestRules:
    def test_it_counts_as_a_loop_that_holds_everything(self, seed: int) -> None:
        """Repeats of another type, another tenant or another value, within a horizon and beyond."""
        chance = random.Random(seed)  # noqa: S311
        values = []
        for i in range(4_000):
            said: dict[str, Any] = {"x": chance.randrange(-3, 9), "k": f"k{chance.randrange(3)}"}
            kind, tenant = chance.choice("ttts"), chance.choice(["acme", "acme", "big"])
            at_ms = HOUR_MS + chance.choice([chance.randrange(20_000), -5_000, 4_000_000])
            value = event(f"e{chance.randrange(900)}", at_ms, kind, tenant, **said)
            values.append((value, HOUR_MS + i * 3_000 + chance.randrange(-9_000, 9_000)))
        log = log_of(values, partitions=2)
        again = recounted(log, [part(FIRST, HOUR)])

        found = {p: Counter({s: e.n for s, e in c.items()}) for p, c in again.panes.items()}
        expected, repeats = everything(log)
        assert found == expected
        assert repeats > 500
        assert 0 < again.held < 900 * 2

    def test_each_pane_is_counted_up_to_where_it_was_looked_at(self) -> None:
        """What came between two slices is in the one that was looked at after it."""
        log = log_of([(event(f"m{i}", HOUR_MS + i, x=1, k="k"), HOUR_MS) for i in range(10)])
        one = replace(part(), panes={FIRST: {0: 4}, HOUR: {0: 7}})
        found = recounted(log, [one]).panes

        assert {pane: counted["=k"].n for pane, counted in found.items()} == {FIRST: 4, HOUR: 7}

    def test_a_long_text_is_counted_as_it_is_listed(self) -> None:
        """A list holds it cut, since the engine does; a set counts it whole."""
        texts = ["é" * 200 + "a", "é" * 200 + "b", "é" * 128, "é" * 128]
        values = [
            (event(f"m{i}", HOUR_MS, x=1, k="k", p=text), HOUR_MS) for i, text in enumerate(texts)
        ]
        wanted = '"top(data.p, 2)", "theta(data.p)"]'
        one = part(HOUR, text=TEXT.replace('"distinct(data.k)"]', wanted))
        counted = recounted(log_of(values), [one]).panes[HOUR]
        listed, seen = ds.frequent_strings_sketch(10), ds.update_theta_sketch(12)
        for text in texts:
            listed.update(cut_text(text))
            seen.update(text)
        top = Texts(4, bytes(listed.serialize()))
        further = Further(top=top, theta=Theta(12, bytes(seen.compact().serialize())))
        served = [{"=k": rows.Row(4, 4.0, 1.0, 1.0, further=further)}]

        assert list(compare(one.version.metric, 1, HOUR, served, counted)) == []
        assert sorted(map(len, counted["=k"].texts)) == [97, 97, 128]
        assert counted["=k"].in_set == set(texts)


class TestForged:
    """Records with ingest's header and places, of which another producer wrote some part."""

    def test_what_cannot_be_read_is_null(self) -> None:
        """As for the engine: the event counts wherever the metric does not need that member."""
        head = event("z", HOUR_MS, k="k", x=1)
        forged = [
            head.replace(b'"x": 1', rest)
            for rest in (b'"x":1,"o":1e400', b'"x":1e400', b'"x":1,"o":"\xff"', b'"x":NaN')
        ]
        deep = [b'"x":1,"o":' + b"[" * n + b"]" * n for n in (510, 511)]
        forged += [head.replace(b'"x": 1', rest) for rest in deep]
        assert head not in forged
        values = [
            (event(f"m{n}", HOUR_MS)[:TIME_END] + v[TIME_END:], HOUR_MS)
            for n, v in enumerate(forged)
        ]

        counted = recounted(log_of(values), [part(HOUR)]).panes[HOUR]

        assert {series: one.n for series, one in counted.items()} == {"=k": 3}

    @pytest.mark.parametrize(
        "data", [b"[" * 5_000 + b"]" * 5_000, b'"\xff"', b"{"], ids=["deep", "no UTF-8", "no JSON"]
    )
    def test_an_audit_reads_past_it(self, data: bytes) -> None:
        """No audit may end at a record that has nothing to count."""
        value = event("z", HOUR_MS)[:TIME_END] + b'","type":"t","weirtenant":"acme","data":' + data
        counted = recounted(log_of([(value + b"}", HOUR_MS)]), [part(HOUR)]).panes[HOUR]
        assert counted == {}


class TestErased:
    def test_whether_an_older_version_has_them_is_not_known(self) -> None:
        """Before the erasure they count, unless a loss had it counted again; after it they do not.

        A version that is newer than the erasure never has them.
        """
        key, of_newer = b"key", PaneAt(8, 3_600, HOUR_S)
        one = Erasure(7, "acme", subject_hash(key, "acme", "gone"), {0: 4}, "log")
        about = ["gone", "stays", "gone", "stays", "gone", "stays"]
        values = [
            (event(f"m{i}", HOUR_MS + i, subject=who, x=1, k="k"), HOUR_MS)
            for i, who in enumerate(about)
        ]
        terms = replace(TERMS, erasures=(one,), hash_key=key)
        parts = [part(HOUR), part(of_newer, vid=8)]
        panes = recounted(log_of(values), parts, terms=terms).panes

        assert {pane: (e["=k"].n, e["=k"].unsure) for pane, e in panes.items()} == {
            HOUR: (3, 2),
            of_newer: (3, 0),
        }
        model = parts[0].version.metric
        served = [[{"=k": rows.Row(n, n, 1.0, 1.0)}] for n in range(2, 7)]
        wrong = [list(compare(model, 1, HOUR, of, panes[HOUR])) for of in served]
        assert [bool(found) for found in wrong] == [True, False, False, False, True]

    def test_in_another_log_they_do_not_count_at_all(self) -> None:
        """As the engine counts a log that was made anew: its offsets say nothing of when."""
        key = b"key"
        one = Erasure(7, "acme", subject_hash(key, "acme", "gone"), {0: 4}, "log")
        log = log_of([(event("m", HOUR_MS, subject="gone", x=1, k="k"), HOUR_MS)])
        found = [
            recounted(
                log,
                [part(HOUR)],
                terms=replace(TERMS, erasures=(one.within(topic),), hash_key=key),
            )
            for topic in ("log", "anew")
        ]

        assert [again.panes[HOUR].keys() for again in found] == [{"=k"}, set()]
        for topic in ("log", "anew"):
            assert one.within(topic).holds({0: 1}, topic) is one.holds({0: 1}, topic)


def everything(log: Sequence[Stored]) -> tuple[dict[PaneAt, Counter[str]], int]:
    """Return what must be counted by pane and series, and how many records were repeats."""
    latest: dict[tuple[int, bytes], int] = {}
    received: Counter[int] = Counter()
    expected: dict[PaneAt, Counter[str]] = {FIRST: Counter(), HOUR: Counter()}
    repeats = 0
    for record in log:
        p = record.partition()
        received[p] = max(received[p], record.at_ms)
        key = (p, placed(record.kept).digest)
        before, latest[key] = latest.get(key), received[p]
        if before is not None and received[p] - before <= HORIZON_MS:
            repeats += 1
            continue
        said = was_said(record.kept)
        if (said["weirtenant"], said["type"]) == ("acme", "t") and said["data"]["x"] >= 0:
            at_s = placed(record.kept).time_ms // 1_000
            for pane in (FIRST, HOUR):
                if pane.start_s <= at_s < pane.start_s + pane.res_s:
                    expected[pane][f"={said['data']['k']}"] += 1
    return expected, repeats


def was_said(value: bytes) -> dict[str, Any]:
    """Return an event."""
    return dict(json.loads(value))


class TestRoom:
    def test_an_eighth_more_goes_than_must(self) -> None:
        """So it is not done for each event; what takes least stays."""
        panes = [PaneAt(1, 10, 10 * i) for i in range(4)]
        room = Room(80)
        told = [room.take([panes[i % 4 if i < 8 else 3]]) for i in range(80)]
        assert not any(told)
        assert room.take([panes[0]])
        assert room.left_out == {panes[3]}

    def test_who_is_remembered_for_a_pane_that_stays_is_not_forgotten(self) -> None:
        """Also if the other pane in which it lies had to go; and it is asked about all the same."""
        known = Identities(4)
        assert not known.want(0, b"both", frozenset({FIRST, HOUR}))
        assert not known.want(0, b"both", frozenset({HOUR}))
        assert not known.want(0, b"hour", frozenset({HOUR}))
        assert known.want(1, b"more", frozenset({HOUR, FIRST}))
        assert known.left_out == {HOUR}
        assert len(known) == 2
        asked = [known.repeats(0, name, 7, HORIZON_MS) for name in (b"both", b"hour", b"both")]
        assert asked == [False, None, True]
        assert known.repeats(1, b"both", 7, HORIZON_MS) is None
        assert known.repeats(0, b"both", 8 + HORIZON_MS, HORIZON_MS) is False


@pytest.mark.redis
def test_metrics_of_an_audit_share_the_room(
    redis_url: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that has much leaves another its share, and gets what the others did not take."""
    monkeypatch.setattr(was_served, "MAX_EVENTS", 100)
    settings = settings_for(tmp_path, redis_url=redis_url)
    store: Any = redis.Redis.from_url(redis_url)
    panes = [PaneAt(vid, 10, 10 * i) for vid in (5, 6) for i in range(4)]
    for pane in panes:
        key = names.pane_key(0, pane.vid, pane.res_s, pane.start_s)
        store.hset(key, b"a", rows.encode(rows.Row(20)))
    record = BatchRecord(
        epoch=3,
        batch=0,
        rev=1,
        shards=1,
        from_offsets={},
        to_offsets={0: 9},
        processed_through_ms=0,
        at_ms=0,
    )
    store.xadd(names.BATCHES, {FIELD: encode(record)})
    shards = SimpleNamespace(read_marks=lambda: [SimpleNamespace(end={0: 9})])
    cycle: Any = SimpleNamespace(
        footing=SimpleNamespace(epoch=3), stores=SimpleNamespace(shards=shards)
    )

    def look(reader: Reader, vid: int, left: int, many: int = 4) -> tuple[int, int]:
        wanted = tuple(pane for pane in panes if pane.vid == vid)[:many]
        seen = reader.begin("amount", (), left)
        assert reader.look(cycle, seen, wanted)
        return len(seen.panes), len(seen.left_out)

    reader, other, half = Reader(settings), Reader(settings), Reader(settings, 0.5)
    try:
        assert [look(reader, 5, 2), look(reader, 6, 1)] == [(2, 2), (3, 1)]
        assert [look(other, 5, 2, many=1), look(other, 6, 1)] == [(1, 0), (4, 0)]
        assert [look(half, 5, 2), look(half, 6, 1)] == [(1, 3), (1, 3)]
    finally:
        reader.close()
        other.close()
        half.close()
        store.close()
