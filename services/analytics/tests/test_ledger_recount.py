"""Minutes of the ledger by the rules, and beside what is served."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from weir.definitions.history import Horizons
from weir.erasure import Erasure, subject_hash
from weir.rows import Row
from weir.series import OTHER
from weir_analytics.jobs.ledger_recount import (
    LedgerRecount,
    RowDifference,
    compare_rows,
    counted_in,
)
from weir_analytics.jobs.log_records import Passage
from weir_analytics.jobs.recount import Terms
from weir_analytics.jobs.sample import PaneAt, minutes_of

from .log_frames import EVENT, NOW_MS, TICK, event

DAY_MS = 86_400_000
HORIZON_MS = 600_000
MINUTE_MS = NOW_MS - NOW_MS % 60_000
MINUTE = PaneAt(-1, 60, MINUTE_MS // 1000)
KEY = b"a key of the installation"
GONE = Erasure(9, "acme", subject_hash(KEY, "acme", "jane"), {0: 3}, "log")
TERMS = Terms((Horizons({}, HORIZON_MS, 400 * DAY_MS),), (), KEY)
REFUSED = [("weir-reason", b"not_json"), ("weir-tenant", b"acme"), ("weir-source", b"web")]


@dataclass
class Stored:
    """A record of the log, as the client library gives it."""

    kept: bytes | None
    at_ms: int = MINUTE_MS
    kept_headers: Sequence[tuple[str, bytes]] = tuple(EVENT)
    place: int = 0
    where: int = 0

    def value(self) -> bytes | None:
        """Return its value."""
        return self.kept

    def headers(self) -> list[tuple[str, bytes]]:
        """Return its headers."""
        return list(self.kept_headers)

    def topic(self) -> str:
        """Return its topic."""
        return "weir.events"

    def partition(self) -> int:
        """Return its partition."""
        return self.where

    def offset(self) -> int:
        """Return its offset."""
        return self.place

    def timestamp(self) -> tuple[int, int]:
        """Return when it was appended."""
        return 1, self.at_ms


def recounted(
    *log: Stored, terms: Terms = TERMS, most: int = 1_000, ends: Mapping[int, int] = {0: 1_000}
) -> LedgerRecount:
    """Go through a log twice, as an audit does: one partition, unless it is said."""
    again = LedgerRecount("acme", {MINUTE: ends}, terms, most)
    places = Counter[int]()
    for record in log:
        record.place = places[record.where]
        places[record.where] += 1
    messages: list[Any] = list(log)
    again.look_for(Passage().records(messages))
    again.count(Passage().records(messages))
    return again


def counts(again: LedgerRecount) -> dict[str, int]:
    """Return what became of the records of the one minute, by source and disposition."""
    return {text.removeprefix("=acme|="): n for text, n in again.minutes[MINUTE].items()}


class TestTheRules:
    def test_every_record_of_the_minute_has_one_disposition(self) -> None:
        """By R; ticks are none, and other tenants' are not this one's."""
        log = [
            Stored(event("before"), MINUTE_MS - 1),
            Stored(event("a")),
            Stored(event("a")),
            Stored(event("before")),
            Stored(event("old", MINUTE_MS - 401 * DAY_MS)),
            Stored(event("b", tenant="big")),
            Stored(b"{", kept_headers=REFUSED),
            Stored(b"junk", kept_headers=()),
            Stored(None, kept_headers=TICK),
            Stored(event("c"), MINUTE_MS + 59_999),
            Stored(event("d"), MINUTE_MS + 60_000),
            Stored(event("stepped back"), MINUTE_MS),
        ]
        assert counts(recounted(*log)) == {
            "web|=counted": 2,
            "web|=duplicate": 2,
            "web|=beyond_horizon": 1,
            "web|=quarantined": 1,
        }

    @pytest.mark.parametrize(("back_ms", "fate"), [(0, "duplicate"), (1, "counted")])
    def test_edge_of_the_horizon(self, back_ms: int, fate: str) -> None:
        """A repetition is one up to the horizon, and none beyond it."""
        first = Stored(event("a"), MINUTE_MS - HORIZON_MS - back_ms)
        assert counts(recounted(first, Stored(event("a")))) == {f"web|={fate}": 1}

    def test_who_was_erased(self) -> None:
        """From there on; where it may have been counted again nobody knows, so the minute goes."""
        terms = Terms(TERMS.horizons, (GONE,), KEY)
        jane = [Stored(event(f"{n}", subject="jane")) for n in range(2)]
        later = (Stored(event("x")), Stored(event("y")), Stored(event("z")), *jane)
        assert counts(recounted(*later, terms=terms)) == {"web|=counted": 3, "web|=erased": 2}
        assert recounted(*jane, terms=terms).minutes == {}

    def test_a_forged_record_takes_its_minute_along(self) -> None:
        """One that begins like an event: only the engine's own readers know whose it is."""
        forged = Stored(event("a").replace(b'"type":"t"', b'"type":7'))
        assert forged.kept != event("a")
        assert recounted(Stored(event("b")), forged).minutes == {}

    def test_what_does_not_fit_is_left_out(self) -> None:
        """It counts as not compared."""
        assert recounted(*(Stored(event(str(n))) for n in range(9)), most=8).minutes == {}

    def test_only_what_was_counted_when_the_minute_was_looked_at(self) -> None:
        """Others were looked at later, or are: nothing behind the place of one is its own."""
        log = [
            Stored(event("a")),
            Stored(event("a")),
            Stored(event("b")),
            Stored(b"{", kept_headers=REFUSED),
            Stored(event("c"), where=1),
            Stored(event("d"), where=1),
            Stored(event("e"), where=2),
        ]
        told = [counts(recounted(*log, ends=ends)) for ends in ({0: 2, 1: 1}, {0: 3}, {0: 4, 2: 1})]
        assert told == [
            {"web|=counted": 2, "web|=duplicate": 1},
            {"web|=counted": 2, "web|=duplicate": 1},
            {"web|=counted": 3, "web|=duplicate": 1, "web|=quarantined": 1},
        ]

    def test_a_minute_that_is_overtaken_is_counted_no_further(self) -> None:
        """What it held leaves room for others."""
        other = PaneAt(-1, 60, MINUTE.start_s + 60)
        again = LedgerRecount("acme", {MINUTE: {0: 99}, other: {0: 99}}, TERMS, 8)
        messages: list[Any] = [Stored(event(str(n)), place=n) for n in range(4)]
        again.look_for(Passage().records(messages))
        again.leave_out([MINUTE])
        later: list[Any] = [Stored(event(str(n)), MINUTE_MS + 60_000, place=n) for n in range(8)]
        again.look_for(Passage().records(later))
        again.count(Passage().records([*messages, *later]))
        assert {pane: rows.total() for pane, rows in again.minutes.items()} == {other: 8}

    def test_drawn_logs(self) -> None:
        """Any log of repetitions, against the obvious rule over all records."""
        rng = random.Random(11)  # noqa: S311  not for secrets
        for _ in range(50):
            log: list[Stored] = []
            told: Counter[str] = Counter()
            latest: dict[str, int] = {}
            at_ms = MINUTE_MS - 2 * HORIZON_MS
            while at_ms < MINUTE_MS + 60_000:
                name = str(rng.randrange(12))
                is_again = at_ms - latest.get(name, -HORIZON_MS * 9) <= HORIZON_MS
                latest[name] = at_ms
                log.append(Stored(event(name), at_ms))
                if at_ms >= MINUTE_MS:
                    told["web|=duplicate" if is_again else "web|=counted"] += 1
                at_ms += rng.randrange(1, HORIZON_MS // 9)
            assert counts(recounted(*log)) == dict(told)


def test_rows_differ_both_ways_round() -> None:
    """What is served and is not, and the other way; others' rows are theirs to compare."""
    served = [
        {"=acme|=web|=counted": Row(5), "=big|=web|=counted": Row(9), OTHER: Row(1)},
        {"=acme|=web|=duplicate": Row(2)},
    ]
    counted = {"=acme|=web|=counted": 6, "=acme|=kafka|=quarantined": 1}
    assert list(compare_rows("acme", MINUTE, served, counted)) == [
        RowDifference(MINUTE_MS, "kafka", "quarantined", 0, 1),
        RowDifference(MINUTE_MS, "web", "counted", 5, 6),
        RowDifference(MINUTE_MS, "web", "duplicate", 2, 0),
    ]
    assert list(compare_rows("big", MINUTE, served, {"=big|=web|=counted": 9})) == []


def test_how_many_events_were_counted() -> None:
    """Others in the minute repeat one, or are no events: they need no identity of their own."""
    served = [
        {"=acme|=web|=counted": Row(5), "=acme|=web|=duplicate": Row(90)},
        {"=acme|=app|=counted": Row(2), "=acme|=web|=quarantined": Row(70)},
    ]
    assert counted_in(served) == 7


def test_which_minutes_are_looked_at() -> None:
    """Those that are over, that the log has whole, and that are kept; each once, in turn."""
    through_ms = MINUTE_MS + 60_000
    drawn = [MINUTE_MS + 5, MINUTE_MS - 1, MINUTE_MS + 59_999, through_ms, MINUTE_MS - 8 * DAY_MS]
    starts = [MINUTE_MS // 1000, MINUTE_MS // 1000 - 60]
    for since_ms, many in ((0, 2), (MINUTE_MS, 1), (MINUTE_MS + 1, 0)):
        at = {"since_ms": since_ms, "over_ms": through_ms, "through_ms": through_ms}
        found = minutes_of(drawn, **at)
        assert found == [PaneAt(-1, 60, start_s) for start_s in starts[:many]]
        # What is over meanwhile may hold series of which nobody knew when it was drawn.
        later = at | {"over_ms": through_ms - 1, "through_ms": through_ms + 60_000}
        assert minutes_of(drawn[:1], **later) == []
