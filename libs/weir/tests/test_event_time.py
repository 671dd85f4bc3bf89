"""When an event happened: reading times, correcting clocks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weir.event_time import (
    Clocks,
    TimeInvalidError,
    TimeSource,
    correct,
    format_time,
    parse_time,
)

NOON = 1_772_359_200_000  # 2026-03-01T10:00:00Z


class TestParse:
    @pytest.mark.parametrize(
        ("said", "want_ms"),
        [
            ("2026-03-01T10:00:00Z", NOON),
            ("2026-03-01t10:00:00z", NOON),
            ("2026-03-01 10:00:00", NOON),
            ("2026-03-01T10:00:00.123456789Z", NOON + 123),
            ("2026-03-01T10:00:00,5Z", NOON + 500),
            ("2026-03-01T11:30:00+01:30", NOON),
            ("2026-03-01T08:00:00-0200", NOON),
            ("2026-03-01T10:00Z", NOON),
            ("2026-03-01", NOON - 36_000_000),
            ("2016-12-31T23:59:60Z", 1_483_228_800_000),
            ("1969-12-31T23:59:59.999Z", -1),
            (1_772_359_200, NOON),
            (1_772_359_200.5, NOON + 500),
            (NOON, NOON),
            (NOON * 1000, NOON),
            (NOON * 1_000_000, NOON),
            (f"{NOON}", NOON),
            (99_999_999_999, 99_999_999_999_000),
            (100_000_000_000, 100_000_000_000),
        ],
    )
    def test_reads(self, said: str | float, want_ms: int) -> None:
        """Texts in RFC 3339 and numbers of any unit are read, each by its own form."""
        assert parse_time(said) == want_ms

    @pytest.mark.parametrize(
        "said",
        [
            "",
            "yesterday",
            "2026-02-30T00:00:00Z",
            "2026-01-01T00:00:00+99:00",
            "2026-01-01T24:00:00Z",
            "0000-01-01T00:00:00Z",
            "2026-W01-1",
            1e20,
            float("nan"),
            float("inf"),
            -62_135_596_801,
        ],
    )
    def test_refuses(self, said: str | float) -> None:
        """What is no instant of the calendar is refused."""
        with pytest.raises(TimeInvalidError, match="time must"):
            parse_time(said)

    @given(st.integers(-62_135_596_800_000, 253_402_300_799_999))
    def test_reads_what_it_writes(self, time_ms: int) -> None:
        """Every instant from year 1 to 9999 is read back as it was written."""
        assert parse_time(format_time(time_ms)) == time_ms


HOUR = 3_600_000


class TestCorrect:
    @pytest.mark.parametrize(
        ("clocks", "want_ms", "source"),
        [
            (Clocks(None, None, NOON), NOON, TimeSource.ARRIVED),
            (Clocks(NOON - 5, None, NOON), NOON - 5, TimeSource.CLIENT),
            (Clocks(NOON - 9, NOON + 2_000, NOON), NOON - 9, TimeSource.CLIENT),
            (Clocks(NOON - 9, NOON + 2_001, NOON), NOON - 2_010, TimeSource.SKEW),
            (Clocks(NOON - 9_000, NOON - 2_000, NOON), NOON - 9_000, TimeSource.CLIENT),
            (Clocks(NOON - 9_000, NOON - 2_001, NOON), NOON - 6_999, TimeSource.SKEW),
            (
                Clocks(NOON - 9_000, NOON - 2_001, NOON, server=True),
                NOON - 9_000,
                TimeSource.CLIENT,
            ),
            (Clocks(NOON + 5_000, None, NOON), NOON, TimeSource.CLIENT),
            (Clocks(NOON + 5_001, None, NOON), NOON + 5_001, TimeSource.CLIENT),
            (Clocks(NOON + 23 * HOUR, None, NOON), NOON + 23 * HOUR, TimeSource.CLIENT),
            (Clocks(NOON + 23 * HOUR + 1, None, NOON), NOON, TimeSource.CLAMPED),
        ],
    )
    def test_rules(self, clocks: Clocks, want_ms: int, source: TimeSource) -> None:
        """Each rule of the clock correction holds up to its edge and not beyond."""
        assert correct(clocks) == (want_ms, source)
