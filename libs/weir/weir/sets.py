"""Sets: theta sketches, which count different texts and can be compared with each other.

An HLL sketch is smaller, but two of them can only be united. Of two theta sketches it can
also be told what they have in common and what only one of them has: who is new, who came
back, how far two metrics overlap. The engine makes them with the C++ library,
or in the JVM (Spark's `theta_sketch_agg`), whose bytes are the same.

Bounds are at three standard deviations, as for HLL: they hold in 99 of 100 trials at
least (`bench/sketches.py`). Up to 2^lgK different texts everything is exact.

Dasgupta, Lang, Rhodes and Thaler (2016), "A framework for estimating stream expression
cardinalities".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

import datasketches as ds

from weir.sketches import Bounded

THETA_LG_K: Final = 12
_DEVIATIONS: Final = 3
# Of the preamble of a serialised theta sketch: byte 5 holds flags, among them "empty".
_FLAGS: Final = 5
_EMPTY: Final = 4


class Theta(NamedTuple):
    """A stored sketch with the size it was made for, which its own bytes do not tell.

    Attributes:
        lg_k: Base-2 logarithm of how many texts it remembers.
        sketch: The serialised compact sketch.
    """

    lg_k: int
    sketch: bytes


def compact_theta(sketch: bytes | None) -> bytes | None:
    """Return what the engine made; None if it holds nothing."""
    return sketch if sketch and not sketch[_FLAGS] & _EMPTY else None


def merge_theta(sketches: Iterable[Theta | None]) -> Theta | None:
    """Return one sketch of everything that some sketches hold."""
    present = [sketch for sketch in sketches if sketch is not None]
    if len(present) < 2:
        return present[0] if present else None
    lg_k = min(theta.lg_k for theta in present)
    united = set_union((opened(theta) for theta in present), lg_k)
    return Theta(lg_k, bytes(united.serialize()))


def opened(theta: Theta) -> ds.compact_theta_sketch:
    """Return a stored sketch, open."""
    return ds.compact_theta_sketch.deserialize(theta.sketch)


def set_union(sets: Iterable[ds.compact_theta_sketch], lg_k: int) -> ds.compact_theta_sketch:
    """Return what is in any of some sets."""
    union = ds.theta_union(lg_k)
    for one in sets:
        union.update(one)
    return union.get_result()


def nothing() -> ds.compact_theta_sketch:
    """Return the empty set."""
    return ds.update_theta_sketch(5).compact()


def set_size(one: ds.compact_theta_sketch) -> Bounded:
    """Return how many different texts a set has, in whole numbers.

    The exact answer is a whole number, so the ends are rounded inwards.
    """
    low = math.ceil(one.get_lower_bound(_DEVIATIONS) - 1e-6)
    high = max(low, math.floor(one.get_upper_bound(_DEVIATIONS) + 1e-6))
    value = min(max(round(one.get_estimate()), low), high)
    return Bounded(float(value), float(low), float(high))


# ── two sets ────────────────────────────────────────────────────────────────


def overlap(
    one: ds.compact_theta_sketch, other: ds.compact_theta_sketch
) -> ds.compact_theta_sketch:
    """Return what two sets have in common."""
    both = ds.theta_intersection()
    both.update(one)
    both.update(other)
    return both.get_result()


def only_left(
    one: ds.compact_theta_sketch, other: ds.compact_theta_sketch
) -> ds.compact_theta_sketch:
    """Return what is in the first of two sets and not in the other."""
    return ds.theta_a_not_b().compute(one, other)


def union(one: ds.compact_theta_sketch, other: ds.compact_theta_sketch) -> ds.compact_theta_sketch:
    """Return what is in either of two sets.

    As fine as the coarser of the two: each keeps what lies below its own threshold.
    """
    return set_union((one, other), _MAX_LG_K)


_MAX_LG_K: Final = 20
OPERATIONS: Final[
    dict[str, Callable[[ds.compact_theta_sketch, ds.compact_theta_sketch], ds.compact_theta_sketch]]
] = {
    "overlap": overlap,
    "only_left": only_left,
    "union": union,
}
"""What can be asked of two sets, by its word in a query."""
