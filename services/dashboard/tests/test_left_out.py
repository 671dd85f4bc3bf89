"""How many events have no copy: added up over batches, each once, and said in words."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weir.definitions.history import Definition
from weir_dashboard.api.quarantine import says_left_out
from weir_dashboard.store.left_out import Copied, Place, Tally
from weir_dashboard.store.quarantine import Record

VERSION = Definition(7, "acme", "metric", "latency", 3, 2, "put", "", "jane", 0)
MOST = 3


def batch(vid: int, partition: int, first: int, n: int) -> list[tuple[bytes, Place, int]]:
    """Return what the engine copies of a batch of which a version can use nothing."""
    kept = min(n, MOST)
    place = Place(vid, partition)
    return [
        (b"log/%d/%d/%d" % (partition, first + at, vid), place, n - kept if at == kept - 1 else 0)
        for at in range(kept)
    ]


class TestTally:
    @given(
        sizes=st.lists(
            st.tuples(st.integers(1, 3), st.integers(0, 1), st.integers(1, 20)), max_size=8
        ),
        again=st.sets(st.integers(0, 7)),
        draw=st.randoms(use_true_random=False),
    )
    def test_copies_and_what_is_left_out_are_all(
        self, sizes: list[tuple[int, int, int]], again: set[int], draw: object
    ) -> None:
        """Over any batches, some of which ran again, in whatever order they are met."""
        met: list[tuple[tuple[bytes, Place, int], tuple[int, int]]] = []
        for at, (vid, partition, n) in enumerate(sizes):
            for time in range(2 if at in again else 1):
                met += [(one, (time, at)) for one in batch(vid, partition, 100 * at, n)]
        draw.shuffle(met)  # type: ignore[attr-defined]
        tally = Tally()
        for (key, place, left_out), order in met:
            tally.take(key, place, left_out, order=order)

        true: Counter[Place] = Counter()
        for vid, partition, n in sizes:
            true[Place(vid, partition)] += n
        found = tally.copied()
        assert {one.place: one.copies + one.left_out for one in found} == true
        assert [one.left_out for one in found] == sorted((o.left_out for o in found), reverse=True)

    @pytest.mark.parametrize("newest_first", [False, True])
    def test_the_newest_copy_of_a_key_counts(self, newest_first: bool) -> None:
        """A slice that began again at the same place, and was shorter, leaves less out."""
        slices = [(9, (1, 50)), (4, (2, 10))]
        tally = Tally()
        for left_out, order in slices[::-1] if newest_first else slices:
            tally.take(b"log/0/5/7", Place(7, 0), left_out, order=order)
        assert tally.copied() == [Copied(Place(7, 0), 1, 4)]

    def test_what_nobody_could_use_is_no_version(self) -> None:
        """Nor does it matter that a copy does not say where it stood."""
        tally = Tally()
        for at, place in enumerate((Place(None, 0), Place(None, None), Place(0, 0), Place(0, 0))):
            tally.take((0, at), place, 0, order=(0, at))
        assert [(one.place, one.copies) for one in tally.copied()] == [
            (Place(0, 0), 2),
            (Place(None, None), 1),
            (Place(None, 0), 1),
        ]


@pytest.mark.parametrize(
    ("origin", "partition"),
    [
        ("weir.events/Qx-_1/3/9000000000", 3),
        ("weir.events/0/17", 0),
        ("weir.events/Qx/3/", None),
        ("weir.events/Qx/x/3", None),
        ("3/4", None),
        (None, None),
    ],
)
def test_which_partition_a_copy_is_of(origin: str | None, partition: int | None) -> None:
    """As its origin says, of this release or an earlier one; another producer's says nothing."""
    record = Record(0, 0, b"k", 0, "acme", "too_deep", "web", origin, 7, 2)
    assert record.copy_of == Place(7, partition)


class TestWords:
    def test_of_a_version(self) -> None:
        """The metric, which version, where, how many, and who counts them."""
        assert says_left_out(Copied(Place(7, 2), 1_000, 12_345), VERSION) == (
            "up to 12,345 more events that version 3 of latency could not use in partition 2 are "
            "not kept as copies; the ledger counts all. The metric's next version counts all of "
            "them again from the log, as far as that reaches back"
        )
        said = says_left_out(Copied(Place(9, 2), 1_000, 1), None)
        assert said is not None
        assert said.startswith("up to 1 more events that the version with id 9 could not use")

    def test_of_nobody(self) -> None:
        """No version counts them: a replay takes copies only."""
        assert says_left_out(Copied(Place(None, None), 1_000, 5), None) == (
            "up to 5 more records like these are not kept as copies; the ledger counts all. A "
            "replay takes copies only: what has none must be sent again"
        )

    def test_nothing_is_missing(self) -> None:
        """Where everything has a copy nothing is said."""
        assert says_left_out(Copied(Place(7, 2), 1_000, 0), VERSION) is None
