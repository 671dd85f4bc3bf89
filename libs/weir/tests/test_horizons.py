"""From where horizons hold: each record is counted by the same ones, whoever counts it again."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from weir.definitions.fold import Definitions
from weir.definitions.history import Horizons
from weir.definitions.records import DriverStart, NewRecord, horizons_record, start_record
from weir.horizons import horizons_at, horizons_of, horizons_within, longest_ms

LOG = "log"
PARTITIONS = (0, 1)
places = st.fixed_dictionaries(dict.fromkeys(PARTITIONS, st.integers(0, 8)))


@st.composite
def logs(draw: st.DrawFn) -> tuple[Horizons, ...]:
    """Draw horizons as drivers record them: each holds from where counting had come to."""
    at = dict.fromkeys(PARTITIONS, 0)
    found = [Horizons({}, draw(st.integers(1, 3)), 9, LOG)]
    for step in draw(st.lists(places, max_size=4)):
        at = {p: n + step[p] for p, n in at.items()}
        # A partition in which nothing was counted yet may be missing.
        begin = {p: n for p, n in at.items() if n or draw(st.booleans())}
        found.append(Horizons(begin, draw(st.integers(1, 3)), 9, LOG))
    return tuple(found)


@given(logs(), places, places)
def test_a_range_is_counted_as_each_of_its_records_is(
    known: tuple[Horizons, ...], start: dict[int, int], more: dict[int, int]
) -> None:
    """Wherever it begins and ends, on both sides of a change too; and nothing else is told."""
    end = {p: start[p] + n for p, n in more.items()}
    within = horizons_within(known, start, end)
    used = {
        id(horizons_at(known, p, n)): horizons_at(known, p, n)
        for p in PARTITIONS
        for n in range(start[p], end[p])
    }
    for p in PARTITIONS:
        for n in range(start[p], end[p]):
            assert horizons_at(within, p, n) is horizons_at(known, p, n)
    assert len(within) >= 1
    assert set(used) <= set(map(id, within))


@given(logs(), places)
def test_the_longest_covers_whatever_follows(
    known: tuple[Horizons, ...], start: dict[int, int]
) -> None:
    """No record from there on is compared with one that lies further back."""
    later = [horizons_at(known, p, n).horizon_ms for p in PARTITIONS for n in range(start[p], 99)]
    assert longest_ms(known, start) >= max(later)
    assert longest_ms(known) == max(one.horizon_ms for one in known)


class TestRecords:
    def _fold(self, *records: NewRecord) -> Definitions:
        fold = Definitions()
        for offset, record in enumerate(records):
            fold.apply(offset, record.key, record.value)
        return fold

    def test_what_a_driver_recorded_is_read_back(self) -> None:
        """With the offsets, by partition; a driver that was overtaken says nothing."""
        said = Horizons({0: 5, 1: 7}, 60_000, 90_000, LOG)
        fold = self._fold(
            start_record(DriverStart("a", 1, "start"), at_ms=0),
            horizons_record(said, fence=0, at_ms=0),
            start_record(DriverStart("b", 1, "start"), at_ms=0),
            horizons_record(Horizons({}, 1, 1, LOG), fence=0, at_ms=0),
        )
        assert list(fold.horizons) == [said]

    def test_another_log_begins_with_what_held_last(self) -> None:
        """Offsets of the log that was given up mean nothing there; later ones do."""
        old, last = Horizons({}, 1, 9, "old"), Horizons({0: 50}, 2, 9, "old")
        here = Horizons({0: 10}, 3, 9, LOG)
        start = start_record(DriverStart("a", 1, "start"), at_ms=0)
        records = [horizons_record(one, fence=0, at_ms=0) for one in (old, last, here)]

        assert horizons_of(self._fold(start, *records[:2]), "old") == (old, last)
        first = Horizons({}, 2, 9, LOG)
        assert horizons_of(self._fold(start, *records[:2]), LOG) == (first,)
        assert horizons_of(self._fold(start, *records), LOG) == (first, here)
        assert horizons_of(self._fold(start), LOG) == ()
