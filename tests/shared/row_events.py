"""Events, the rows that they make, and what a row must be worth: for the laws of merging.

Sketches are far smaller than those of any metric, so that a few hundred events bring them
to where they estimate.
"""

from __future__ import annotations

import hashlib
import random
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import datasketches as ds
import pytest
from weir.frequent import Texts, texts_union, top_of
from weir.further import Further, Last
from weir.rows import Row
from weir.sets import Theta, merge_theta, opened, set_size
from weir.sketches import Bounded, hll_estimate, merge_hll

KLL_K, HLL_LG_K, THETA_LG_K, TOP_LG_K = 32, 8, 6, 4
LISTED = 3


@dataclass(frozen=True)
class Event:
    """One event of one series."""

    series: str
    at_ms: int
    value: float
    user: str

    @property
    def last(self) -> Last:
        """Return what a row of this event alone has as its last value."""
        digest = hashlib.md5(repr(self).encode(), usedforsecurity=False).digest()
        return Last(self.at_ms, digest, self.value)


def events_of(seed: int, most: int = 400, series: int = 1) -> list[Event]:
    """Return the events of a seed: a few or many, users unevenly often, whole values."""
    rng = random.Random(seed)  # noqa: S311
    return [
        Event(
            f"={rng.randint(1, series)}",
            rng.randint(0, 20),
            float(rng.randint(-1000, 1000)),
            f"u{min(rng.randint(0, 150), rng.randint(0, 150), rng.randint(0, 150))}",
        )
        for _ in range(rng.choice([1, 2, 30, most]))
    ]


def row_of(events: Sequence[Event]) -> Row:
    """Return the row that the engine makes of some events at once."""
    kll, hll = ds.kll_doubles_sketch(KLL_K), ds.hll_sketch(HLL_LG_K, ds.HLL_8)
    users, top = ds.update_theta_sketch(THETA_LG_K), ds.frequent_strings_sketch(TOP_LG_K)
    for event in events:
        kll.update(event.value)
        hll.update(event.user)
        users.update(event.user)
        top.update(event.user)
    values = [event.value for event in events]
    theta = Theta(THETA_LG_K, bytes(users.compact().serialize()))
    last = max(event.last for event in events)
    return Row(
        len(values),
        sum(values),
        min(values),
        max(values),
        bytes(hll.serialize_compact()),
        bytes(kll.serialize()),
        Further(
            statistics.pvariance(values) * len(values),
            last,
            Texts(len(values), bytes(top.serialize())),
            theta,
        ),
    )


def check(row: Row, events: Sequence[Event]) -> None:
    """Compare a row, however it was merged, with the events it is made of."""
    values = sorted(event.value for event in events)
    further = row.further
    assert further is not None
    assert (row.n, row.sum, row.min, row.max) == (len(values), sum(values), values[0], values[-1])
    assert further.spread == pytest.approx(statistics.pvariance(values) * len(values), abs=1e-6)
    assert further.last == max(event.last for event in events)
    _check_ranks(row, values)
    tally = Counter(event.user for event in events)
    users = hll_estimate(row.hll or b"")
    _check_distinct(users, len(tally))
    assert further.theta is not None
    members = set_size(opened(further.theta))
    _check_distinct(members, len(tally))
    assert further.top is not None
    top = top_of(texts_union([further.top]), LISTED)
    assert all(item.low <= tally.pop(item.text) <= item.high for item in top.items)
    assert max(tally.values(), default=0) <= top.unlisted


def exact(row: Row) -> Row:
    """Return what is equal to the last bit whatever the order: all but spread and sketches."""
    assert row.further is not None
    kept = replace(row.further, spread=None, top=None, theta=None)
    return replace(row, hll=None, kll=None, further=kept)


def settled(row: Row) -> tuple[object, ...]:
    """Return what of the sketches does not depend on the order of merging.

    A union of theta sketches is the same set and threshold in any order, and one of HLLs has the
    same registers. A sketch that only ever grew knows more than a union of its size, and loses
    that when it is merged: all are asked after that. Of values and of texts how many there are is
    exact, and a KLL's ends; the rest depends on coins and on which counters went first, and is
    within its bounds (`check`).
    """
    further = row.further
    assert further is not None
    assert further.top is not None
    union = merge_theta([further.theta, further.theta])
    assert union is not None
    users, kll = opened(union), ds.kll_doubles_sketch.deserialize(row.kll)
    return (
        hll_estimate(merge_hll([row.hll, row.hll]) or b""),
        users.theta64,
        sorted(users),
        (kll.n, kll.get_min_value(), kll.get_max_value()),
        further.top.events,
    )


def _check_distinct(found: Bounded, distinct: int) -> None:
    """Of thousands of drawn sets some lie beyond the bound that is told: beyond twice it, none."""
    slack = max(found.high - found.value, found.value - found.low)
    assert abs(found.value - distinct) <= 2 * slack + 1e-9, f"{found}, is {distinct}"


def _check_ranks(row: Row, values: Sequence[float]) -> None:
    """KLL tosses coins: beyond twice its error, which 99 of 100 are within, is no chance."""
    sketch = ds.kll_doubles_sketch.deserialize(row.kll)
    assert sketch.n == len(values)
    slack = 2 * sketch.normalized_rank_error(False) if sketch.is_estimation_mode() else 1e-9
    for q in (0.1, 0.5, 0.9):
        found = sketch.get_quantile(q, True)
        below = sum(value < found for value in values) / len(values)
        upto = sum(value <= found for value in values) / len(values)
        assert below - slack <= q <= upto + slack
