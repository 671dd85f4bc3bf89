"""Lists of frequent texts: counts with ends that always hold, also when counters are gone."""

from __future__ import annotations

from collections import Counter

import datasketches as ds
import pytest
from hypothesis import given
from hypothesis import strategies as st
from weir.frequent import (
    Moved,
    Texts,
    capacity,
    merge_top,
    moved,
    texts_of,
    texts_union,
    top_of,
    without,
)

# Room for 12 texts.
LG_K = 4


def counted(tally: dict[str, int]) -> Texts:
    """Return the stored sketch of some texts, as the engine makes it."""
    sketch = ds.frequent_strings_sketch(LG_K)
    for text, count in tally.items():
        sketch.update(text, count)
    found = texts_of(sum(tally.values()), bytes(sketch.serialize()))
    assert found is not None
    return found


def test_nothing_is_none() -> None:
    """Of no text there is no sketch, and merging none gives none."""
    empty = bytes(ds.frequent_strings_sketch(LG_K).serialize())
    assert texts_of(0, empty) is texts_of(0, None) is merge_top([None]) is None


def test_as_many_as_fit_are_exact() -> None:
    """Up to its capacity every count is itself, ties in the order of the texts."""
    tally = {f"t{at:02}": 1 + at // 2 for at in range(capacity(LG_K))}
    top = top_of(texts_union([counted(tally)]), 3)
    assert top.items == (("t10", 6, 6, 6), ("t11", 6, 6, 6), ("t08", 5, 5, 5))
    assert top.unlisted == 5


def test_all_counters_gone_at_once() -> None:
    """One text too many, each once: the sketch forgets all, and the answer says that it may."""
    texts = counted({f"t{at}": 1 for at in range(capacity(LG_K) + 1)})
    assert texts == (13, b"")
    assert top_of(texts_union([texts]), 3) == ((), 13)


@pytest.mark.parametrize("lost_first", [True, False])
def test_what_was_forgotten_widens_every_upper_end(lost_first: bool) -> None:
    """Merged with others in either order, what nobody counted any more may belong to any."""
    lost, kept = counted({f"t{at}": 1 for at in range(13)}), counted({"t1": 40, "x": 9})
    pair = [lost, kept] if lost_first else [kept, lost]
    merged = merge_top(pair)
    assert merged is not None
    for opened in (texts_union(pair), texts_union([merged])):
        top = top_of(opened, 1)
        assert top.items == (("t1", 40, 40, 53),)
        assert top.unlisted == 22


def test_bounds_hold_however_parts_are_cut() -> None:
    """Of 300 texts in room for 12 each count lies within its ends after 40 merges."""
    tally = Counter({f"t{at}": 1 + 600 // (at + 1) for at in range(300)})
    stream = [text for text, count in tally.items() for _ in range(count)]
    merged = None
    for at in range(40):
        merged = merge_top([merged, counted(Counter(stream[at::40]))])
    assert merged is not None
    top = top_of(texts_union([merged]), 3)
    assert all(item.low <= tally[item.text] <= item.high for item in top.items)
    assert max(n for t, n in tally.items() if t not in {i.text for i in top.items}) <= top.unlisted


class TestWithout:
    @given(
        st.dictionaries(st.text(max_size=6), st.integers(1, 1_000), max_size=40),
        st.sets(st.integers(0, 39)),
    )
    def test_all_others_stay_as_they_were(self, tally: dict[str, int], chosen: set[int]) -> None:
        """Texts in any script, with counters lost or not: counts and bounds of others, and n."""
        before = counted(tally) if tally else Texts(0, b"")
        gone = {text for at, text in enumerate(tally) if at in chosen}
        after = without(before, gone.__contains__)

        listed = top_of(texts_union([before]), 99).items
        kept = [item for item in listed if item.text not in gone]
        found = top_of(texts_union([after]), 99)
        assert after.events == before.events
        assert list(found.items) == kept
        assert (after is before) == (len(kept) == len(listed))
        assert found.unlisted >= max((tally[text] for text in gone), default=0)

    def test_it_can_be_merged_on(self) -> None:
        """What is counted later is added to what was left."""
        left = without(counted({"a": 5, "b": 3, "c": 1}), {"b"}.__contains__)
        both = merge_top([left, counted({"a": 2, "d": 4})])

        assert both is not None
        assert both.events == 15
        found = top_of(texts_union([both]), 9)
        assert [(i.text, i.events) for i in found.items] == [("a", 7), ("d", 4), ("c", 1)]
        assert found.unlisted == 3

    def test_what_is_taken_out_is_told_as_not_listed(self) -> None:
        """That nothing else came would be wrong; one after another and together it is one sum."""
        before = counted({"anna": 500, "b": 60, "c": 40, "d": 30})
        one = without(without(before, {"anna"}.__contains__), {"c"}.__contains__)
        both = without(before, {"anna", "c"}.__contains__)
        listed = (("b", 60, 60, 60), ("d", 30, 30, 30))
        for left in (one, both):
            assert top_of(texts_union([left]), 9) == (listed, 540)
            assert b"anna" not in left.sketch
        assert without(both, {"anna", "c"}.__contains__) is both
        merged = merge_top([one, both])
        assert merged is not None
        assert top_of(texts_union([merged]), 1) == ((("b", 120, 120, 120),), 1_080)
        nothing = without(counted({"anna": 5}), {"anna"}.__contains__)
        assert top_of(texts_union([nothing]), 9) == ((), 5)


class TestMoved:
    def test_what_came_is_told_before_and_now(self) -> None:
        """The one that came most often first, and no more than are asked for; no other text."""
        was, came = {"a": 9, "b": 5, "c": 4}, {"d": 7, "b": 1}
        now = merge_top([counted(was), counted(came)])
        told = [Moved("d", (0, 0, 0), (7, 7, 7)), Moved("b", (5, 5, 5), (6, 6, 6))]
        assert moved(counted(was), counted(came), now, 10) == told
        assert moved(counted(was), counted(came), now, 1) == told[:1]

    def test_of_no_texts(self) -> None:
        """A row that was not there had none of each; where no text came none is told."""
        one = counted({"a": 2})
        assert moved(None, one, one, 10) == [Moved("a", (0, 0, 0), (2, 2, 2))]
        assert moved(one, None, one, 10) == []

    def test_what_the_sketch_forgets_was_known_before(self) -> None:
        """One text too many, and no counter is left: it is told as one more all the same."""
        was, came = counted({f"t{at}": 1 for at in range(capacity(LG_K))}), counted({"new": 1})
        now = merge_top([was, came])
        assert now == (13, b"")
        assert moved(was, came, now, 10) == [Moved("new", (0, 0, 0), (1, 1, 1))]
        assert moved(was, counted({"t3": 2}), Texts(14, b""), 10) == [
            Moved("t3", (1, 1, 1), (3, 3, 3))
        ]

    def test_one_that_came_is_told_as_one_more(self) -> None:
        """Where the sketch is full a counter begins with all that a text may have had before."""
        full = ds.frequent_strings_sketch(LG_K)
        for at in range(40):
            full.update(f"t{at}", 5)
        was = texts_of(200, bytes(full.serialize()))
        came = counted({"new": 1})
        ((_text, then, now),) = moved(was, came, merge_top([was, came]), 10)
        assert then[2] > 1, "it may have come before"
        assert now == (then[0] + 1, then[1] + 1, then[2] + 1)

    @given(st.lists(st.integers(0, 30), max_size=200), st.lists(st.integers(0, 30), max_size=60))
    def test_both_counts_lie_within_their_ends(self, first: list[int], late: list[int]) -> None:
        """Of more texts than there is room for, too; and none is told to have become less."""
        before, added = (Counter(f"t{n}" for n in drawn) for drawn in (first, late))
        was = counted(before) if before else None
        came = counted(added) if added else None
        for text, then, now in moved(was, came, merge_top([was, came]), 10):
            assert then[1] <= before[text] <= then[2]
            assert now[1] <= before[text] + added[text] <= now[2]
            assert then[1] <= then[0] <= then[2]
            assert now[1] <= now[0] <= now[2]
            assert now[1] >= then[1]
            assert came is not None
            least, most = next(m.now[1:] for m in moved(None, came, came, 100) if m.text == text)
            assert then[0] + least <= now[0] <= then[0] + most
