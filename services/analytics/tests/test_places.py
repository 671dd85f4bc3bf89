"""What a record is, told of many at once: as the reference tells of one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from weir import names
from weir.event import TIME_AT, TIME_END, VALUE_PREFIX, placed
from weir_analytics.panes.arrow_count import own_part
from weir_analytics.panes.kinds import Kind
from weir_analytics.panes.places import places_of, times_ms_of
from weir_analytics.panes.states import EVENT_HEADERS, kind_of, kinds_of

from .log_frames import batch_of, event
from .test_dispose import PLACES

VALUE = event("1", x=1)
FIRSTS = (
    *(names.HEADER_CONTENT_TYPE, names.HEADER_TAIL, names.HEADER_TICK, names.HEADER_REASON),
    *(None, "", "Content-Type", "content-type ", "weir-tick2", "x"),
)


def assert_as_reference(firsts: Sequence[str | None], values: Sequence[bytes | None]) -> None:
    """Assert that kinds and identities of records are those that one alone would have."""
    may_be = [first in EVENT_HEADERS for first in firsts]
    found, identity, times_ms = places_of(values, None if all(may_be) else may_be)
    kinds = kinds_of(firsts, values, found)
    headers = [[] if first is None else [(first, b"1"), ("x", b"y")] for first in firsts]
    wanted = [kind_of(one, value) for one, value in zip(headers, values, strict=True)]
    digests = [
        placed(value or b"").digest if kind <= Kind.SAMPLED else None
        for kind, value in zip(wanted, values, strict=True)
    ]

    assert [Kind(kind) for kind in kinds.tolist()] == wanted
    assert found.tolist() == [kind <= Kind.SAMPLED for kind in wanted]
    assert identity.to_pylist() == digests
    times = [
        placed(value or b"").time_ms for value, is_one in zip(values, found, strict=True) if is_one
    ]
    assert times_ms[found].tolist() == times


def changed(random: Random) -> list[bytes | None]:
    """Return a good value with each byte of its fixed places changed, and cut anywhere."""
    found: list[bytes | None] = []
    for at in range(TIME_END):
        others = {random.randrange(256) for _ in range(8)} | set(b'0aAgF+- "_:}\x00\xff')
        found += [VALUE[:at] + bytes([other]) + VALUE[at + 1 :] for other in sorted(others)]
        found += [VALUE[:at] + VALUE[at + 1 :], VALUE[:at] + b"0" + VALUE[at:]]
    found += [VALUE[:at] for at in range(len(VALUE))]
    found += [VALUE[:at] + b"}" for at in range(len(VALUE))]
    found += [VALUE + bytes([other]) for other in range(256)]
    return [*found, None, b"", b"}", VALUE_PREFIX, VALUE]


class TestPlaces:
    @pytest.mark.parametrize("first", FIRSTS)
    def test_each_fixed_place(self, first: str | None) -> None:
        """Under each first header, on what only one of two readers might take for an event."""
        values = [value for value, _kind in PLACES]
        assert_as_reference([first] * len(values), values)
        for value in values:
            assert_as_reference([first], [value])

    def test_the_places_tell_events_apart(self) -> None:
        """By the list of `test_dispose.py`, which holds the columns to the same."""
        found, _identity, _times = places_of(
            [value for value, _kind in PLACES], [True] * len(PLACES)
        )
        assert found.tolist() == [kind is Kind.EVENT for _value, kind in PLACES]

    @pytest.mark.parametrize("first", FIRSTS)
    def test_a_good_value_changed_anywhere(self, seed: int, first: str | None) -> None:
        """Each byte of the fixed places another, one too many or too few, cut anywhere."""
        values = changed(Random(seed))  # noqa: S311 - cases, no secrets
        assert_as_reference([first] * len(values), values)

    def test_records_of_all_kinds_among_each_other(self, seed: int) -> None:
        """Drawn first headers on drawn values: none is told by another's."""
        random = Random(f"{seed}/mixed")  # noqa: S311
        good = [event(str(n), random.randrange(2**40), x=n) for n in range(20)]
        values = [*changed(random), *(value for value, _kind in PLACES)]
        for size in (1, 2, 3, 500, 500):
            drawn = [
                random.choice((random.choice(good), random.choice(values), None))
                for _ in range(size)
            ]
            assert_as_reference([random.choice(FIRSTS) for _ in drawn], drawn)

    def test_drawn_names_of_headers(self, seed: int) -> None:
        """A name that is nearly one of ours is none."""
        random = Random(f"{seed}/names")  # noqa: S311
        firsts: list[str | None] = []
        for name in FIRSTS[:4]:
            assert name is not None
            for at in range(len(name)):
                firsts += [name[:at], name[:at] + random.choice("aA-\x00é ") + name[at + 1 :]]
            firsts += [name, name.upper(), name + "\x00"]
        for value in (VALUE, b"{", None):
            assert_as_reference(firsts, [value] * len(firsts))

    def test_no_records(self) -> None:
        """Of none there is nothing to say."""
        assert_as_reference([], [])
        assert times_ms_of([]).tolist() == []


class TestTimes:
    def test_times_are_those_at_their_place(self, seed: int) -> None:
        """Drawn times of 15 digits before and after 1970, in values of different lengths."""
        random = Random(f"{seed}/times")  # noqa: S311
        times = [0, 1, -1, 10**15 - 1, -(10**15) + 1]
        times += [random.randrange(-(10 ** (n % 15 + 1)), 10 ** (n % 15 + 1)) for n in range(500)]
        values = [
            VALUE[:TIME_AT] + f"{ms:+016d}".encode() + VALUE[TIME_END : TIME_END + n] + b"}"
            for n, ms in enumerate(times)
        ]
        values.append(VALUE[:TIME_AT] + b"-000000000000000" + VALUE[TIME_END:])

        assert times_ms_of(values).tolist() == [placed(value).time_ms for value in values]
        assert times_ms_of(values).tolist() == [*times, 0]


class TestOwnPart:
    @pytest.mark.parametrize("tasks", [1, 2, 3, 7, 64])
    def test_every_partition_is_one_tasks(self, seed: int, tmp_path: Path, tasks: int) -> None:
        """All parts together are the batch, none has what another has, and loads are even."""
        random = Random(f"{seed}/{tasks}")  # noqa: S311
        for _turn in range(30):
            partitions = random.sample(range(1_000), random.randrange(1, 40))
            start = {p: random.choice((0, random.randrange(10**12))) for p in partitions}
            sizes = {p: random.choice((0, 1, 5, 5, random.randrange(10**5))) for p in partitions}
            batch = replace(
                batch_of(tmp_path), start=start, end={p: start[p] + sizes[p] for p in partitions}
            )
            parts = [own_part(batch, task, tasks) for task in range(tasks)]

            assert sorted(p for part in parts for p in part.end) == sorted(partitions), seed
            for name in ("start", "end"):
                joined = [pair for part in parts for pair in getattr(part, name).items()]
                assert sorted(joined) == sorted(getattr(batch, name).items()), seed
            loads = [sum(sizes[p] for p in part.end) for part in parts]
            assert max(loads) - min(loads) <= max(sizes.values()), seed
            # Nothing but the range changes; and a task that runs again reads the same.
            again = replace(
                batch,
                start=dict(sorted(batch.start.items(), reverse=True)),
                end=dict(sorted(batch.end.items(), reverse=True)),
            )
            for task, part in enumerate(parts):
                assert own_part(again, task, tasks) == part, seed
                assert replace(part, start=batch.start, end=batch.end) == batch

    def test_a_partition_without_a_start_begins_at_nought(self, tmp_path: Path) -> None:
        """It is as large as its end says, and stays without a start."""
        batch = replace(batch_of(tmp_path), start={0: 90}, end={0: 100, 1: 50, 2: 45})
        parts = [own_part(batch, task, 2) for task in range(2)]

        assert [(part.start, part.end) for part in parts] == [
            ({}, {1: 50}),
            ({0: 90}, {0: 100, 2: 45}),
        ]
