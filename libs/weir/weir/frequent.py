"""Frequent texts: which came most often, each with the ends its count lies between.

The sketch keeps counters for as many texts as it has room for. When it is full the least
of them go, and by how much that may have lowered any count is known: the bounds always
hold, on any data and however often it was merged. Where all counters go at once, both
libraries forget what they knew: how many texts there were is kept beside the sketch, and
what it does not account for is added to every upper end. Up to three quarters of 2^lgK different
texts all counts are exact. The engine makes it with the C++ library, or
in the JVM (Spark's `approx_top_k_accumulate`), whose bytes are the same.

Anderson, Bevin, Lang, Liberty, Rhodes and Thaler (2017), "A high-performance algorithm
for identifying frequent items in data streams".
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

import datasketches as ds

TOP_LG_K: Final = 10
# How full the table of counters may be, in both libraries.
_LOAD: Final = 0.75
# Of the preamble of a serialised sketch: an empty one has a single long, any other more.
_LONGS: Final = 0x3F
# Longer than the engine lets any text be.
_NEVER_COUNTED: Final = "\0" * 300
# What stands in place of all texts that were taken out of a sketch.
_TAKEN_OUT: Final = "\1" * 300


class Texts(NamedTuple):
    """A stored sketch.

    Attributes:
        events: How many texts were counted, exactly.
        sketch: The serialised sketch; empty where no counter is left.
    """

    events: int
    sketch: bytes


class OpenTexts(NamedTuple):
    """The same, open; shared between caches, so never changed."""

    events: int
    sketch: ds.frequent_strings_sketch | None


class Counted(NamedTuple):
    """One frequent text; `low` and `high` hold the exact number of events, for certain."""

    text: str
    events: int
    low: int
    high: int


class Moved(NamedTuple):
    """One text before and after more were counted: (events, low, high) of each."""

    text: str
    was: tuple[int, int, int]
    now: tuple[int, int, int]


class Top(NamedTuple):
    """The most frequent texts.

    Attributes:
        items: By count, the largest first; of equal counts by text.
        unlisted: How often any text that is not listed came at most; 0: there is none.
    """

    items: tuple[Counted, ...]
    unlisted: int


def capacity(lg_k: int) -> int:
    """Return how many different texts a sketch counts exactly."""
    return int(_LOAD * (1 << lg_k))


def texts_of(events: int, sketch: bytes | None) -> Texts | None:
    """Return what the engine made; None if there was no text."""
    if not events:
        return None
    return Texts(events, sketch if sketch and sketch[0] & _LONGS > 1 else b"")


def merge_top(sketches: Iterable[Texts | None]) -> Texts | None:
    """Return one sketch of all texts that some sketches have counted."""
    present = [texts for texts in sketches if texts is not None]
    if len(present) < 2:
        return present[0] if present else None
    union = texts_union(present)
    return texts_of(union.events, None if union.sketch is None else bytes(union.sketch.serialize()))


def texts_union(sketches: Iterable[Texts]) -> OpenTexts:
    """Return the open union of stored sketches."""
    sketches = list(sketches)
    union = None
    for texts in sketches:
        if texts.sketch:
            opened = ds.frequent_strings_sketch.deserialize(texts.sketch)
            if union is None:
                union = opened  # nobody else has it, so it needs no copy
            else:
                union.merge(opened)
    return OpenTexts(sum(texts.events for texts in sketches), union)


def joined_texts(one: OpenTexts, other: OpenTexts) -> OpenTexts:
    """Return the union of two open sketches; neither is changed."""
    copy = None if one.sketch is None else one.sketch.__copy__()
    merged = copy if other.sketch is None else _merged(copy, other.sketch)
    return OpenTexts(one.events + other.events, merged)


def _merged(union: Any, added: Any) -> Any:
    """Return `added` put into an open sketch; of nothing a copy of it."""
    if union is None:
        return added.__copy__()
    union.merge(added)
    return union


# A serialised sketch that is not empty: preamble of 32 bytes, counters, then as many texts.
_COUNTERS: Final = 8
_PREAMBLE: Final = 32
_ITEMS: Final = struct.Struct("<I")


def without(texts: Texts, is_gone: Callable[[str], bool]) -> Texts:
    """Return a sketch that names some texts no more.

    How many texts there were stays, and so do the bounds of all others. One counter without a
    name has what those that are gone had together, so that what is not listed is told to have
    come as often. The libraries take
    no text out; the serialised form, which is theirs (`frequent_items_sketch`, version 1 of
    its format, with strings as lengths and UTF-8), is a list of counters and one of texts.

    Args:
        texts: A stored sketch.
        is_gone: Whether a text is to be left out.

    Returns:
        The same object, if it names none of them.
    """
    if not texts.sketch:
        return texts
    (number,) = _ITEMS.unpack_from(texts.sketch, _COUNTERS)
    counters = struct.unpack_from(f"<{number}Q", texts.sketch, _PREAMBLE)
    kept: list[tuple[int, bytes]] = []
    nameless, was_nameless = 0, 0
    at = _PREAMBLE + 8 * number
    for counter in counters:
        (length,) = _ITEMS.unpack_from(texts.sketch, at)
        begin, at = at, at + _ITEMS.size + length
        text = texts.sketch[begin + _ITEMS.size : at].decode(errors="replace")
        if text == _TAKEN_OUT:
            was_nameless = counter
        elif is_gone(text):
            nameless += counter
        else:
            kept.append((counter, texts.sketch[begin:at]))
    if not nameless:
        return texts
    told = _TAKEN_OUT.encode()
    kept.append((nameless + was_nameless, _ITEMS.pack(len(told)) + told))
    head = bytearray(texts.sketch[:_PREAMBLE])
    _ITEMS.pack_into(head, _COUNTERS, len(kept))
    numbers = struct.pack(f"<{len(kept)}Q", *(counter for counter, _text in kept))
    return Texts(texts.events, bytes(head) + numbers + b"".join(text for _n, text in kept))


def moved(before: Texts | None, added: Texts | None, after: Texts | None, most: int) -> list[Moved]:
    """Return how often the texts that came most often of late came before, and come now.

    A sketch that is full forgets, and may know less of a text than before. But a count only
    grows, and by what came: so the ends in each of the three narrow those in the others. Of a
    text that was taken out of a sketch (`without`) the ends say nothing.

    Args:
        before: What was counted before; None: no text.
        added: What came; None: no text.
        after: Both.
        most: How many texts are returned at most; the one that came most often first.
    """
    was, came, now = (texts_union([] if one is None else [one]) for one in (before, added, after))
    return [_moved(item.text, was, came, now) for item in top_of(came, most).items]


def _moved(text: str, was: OpenTexts, came: OpenTexts, now: OpenTexts) -> Moved:
    then, then_low, then_high = _ends(was, text)
    _, more_low, more_high = _ends(came, text)
    count, low, high = _ends(now, text)
    low, high = max(low, then_low + more_low), min(high, then_high + more_high)
    then_low, then_high = max(then_low, low - more_high), min(then_high, high - more_low)
    # What is told of both differs by what may have come, and of now it is what the list says.
    count = min(max(count, low), high)
    then = min(max(then, then_low, count - more_high), then_high)
    count = max(count, then + more_low)
    return Moved(text, (then, then_low, then_high), (count, low, high))


def _ends(texts: OpenTexts, text: str) -> tuple[int, int, int]:
    """Return how often a text came, with the ends of that."""
    sketch = texts.sketch
    if sketch is None:
        return 0, 0, texts.events
    lost = texts.events - sketch.total_weight
    return (
        sketch.get_estimate(text),
        sketch.get_lower_bound(text),
        sketch.get_upper_bound(text) + lost,
    )


def top_of(texts: OpenTexts, n: int) -> Top:
    """Return the `n` most frequent texts."""
    sketch = texts.sketch
    if sketch is None:
        return Top((), texts.events)
    lost = texts.events - sketch.total_weight
    found = sketch.get_frequent_items(ds.frequent_items_error_type.NO_FALSE_NEGATIVES, 0)
    counted = [Counted(text, events, low, high + lost) for text, events, low, high in found]
    named = (item for item in counted if item.text != _TAKEN_OUT)
    items = sorted(named, key=lambda item: (-item.events, item.text))
    # What a text came at most that has no counter.
    error = sketch.get_upper_bound(_NEVER_COUNTED) + lost
    unnamed = (item.high for item in counted if item.text == _TAKEN_OUT)
    next_high = max((*unnamed, *(item.high for item in items[n:])), default=0)
    return Top(tuple(items[:n]), max(error, next_high))
