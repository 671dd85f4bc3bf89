"""Sketches: distinct counts (HLL) and percentiles (KLL) that merge, with their bounds.

The engine makes them with the C++ library of DataSketches, or in the JVM (Spark's
`hll_sketch_agg(…, 12)` and `kll_sketch_agg_double(…, k)`), whose bytes are the same; here they
are merged and read. Every estimate comes with a
low and a high end that hold the exact answer in at least 99 of 100 trials, on any data
and however many parts were merged (`bench/sketches.py`).

An empty sketch says nothing and is never stored: it is `None` here.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable
from typing import Final, NamedTuple

import datasketches as ds

HLL_LG_K: Final = 12
# Bounds at three standard deviations hold in 99.7 % of trials, at two in only 95.4 %.
_HLL_DEVIATIONS: Final = 3
# Of the preamble of a serialised HLL sketch: byte 5 holds flags, among them "empty". The
# length tells nothing: Spark writes 40 bytes for none as for up to eight values. "Compact" is
# what has no room to grow already.
_HLL_FLAGS: Final = 5
_HLL_LG_K_AT: Final = 3
_HLL_EMPTY: Final = 4
_HLL_COMPACT: Final = 8
_KLL_EMPTY_BYTES: Final = 8

_RANK_SLACK: Final = 1e-12

# The last carries p99.9 and is no larger: with 12,800 a metric with the usual `keep` and
# `max_series` would be beyond the usual budget of a tenant.
KLL_SIZES: Final = (200, 400, 800, 1600, 3200, 6400, 8_500)
GREATEST_KLL_K: Final = 65_535
"""The largest size that the libraries know."""
# How much of the way from a percentile to its nearer end the error of rank may take:
# p99 by 0.35 lies between p98.65 and p99.35.
_KLL_SHARE: Final = 0.35


class Bounded(NamedTuple):
    """An estimate between the ends that hold the exact answer."""

    value: float
    low: float
    high: float


# ── making sketches small and merging them ──────────────────────────────────


def compact_hll(sketch: bytes | None) -> bytes | None:
    """Return what the engine made in its smallest form; None if it holds nothing.

    Spark writes sketches with room to grow: 40 bytes for one value instead of 12.
    """
    if not sketch or sketch[_HLL_FLAGS] & _HLL_EMPTY:
        return None
    if sketch[_HLL_FLAGS] & _HLL_COMPACT:
        return sketch
    return bytes(ds.hll_sketch.deserialize(sketch).serialize_compact())


def compact_kll(sketch: bytes | None) -> bytes | None:
    """Return what the engine made; None if it holds nothing."""
    return sketch if sketch and len(sketch) > _KLL_EMPTY_BYTES else None


def merge_hll(sketches: Iterable[bytes | None]) -> bytes | None:
    """Return one sketch of everything that some sketches have counted.

    HLL_8, as Spark makes it: 4.1 KB from some 500 values on. HLL_4 would say the same in
    half the bytes, but merging two takes 100 µs in place of 5.
    """
    present = [sketch for sketch in sketches if sketch]
    if len(present) < 2:
        return present[0] if present else None
    return bytes(hll_union(present).get_result(ds.HLL_8).serialize_compact())


def merge_kll(sketches: Iterable[bytes | None]) -> bytes | None:
    """Return one sketch of all values that some sketches have seen."""
    present = [sketch for sketch in sketches if sketch]
    if len(present) < 2:
        return present[0] if present else None
    return bytes(kll_union(present).serialize())


def hll_union(sketches: Iterable[bytes]) -> ds.hll_union:
    """Return the open union of at least one serialised sketch, for more to be merged into it.

    It is as fine as the finest of them; one that is coarser makes it as coarse.
    """
    sketches = list(sketches)
    union = ds.hll_union(max(sketch[_HLL_LG_K_AT] for sketch in sketches))
    for sketch in sketches:
        union.update(ds.hll_sketch.deserialize(sketch))
    return union


def kll_union(sketches: Iterable[bytes]) -> ds.kll_doubles_sketch:
    """Return the open union of at least one serialised sketch."""
    first, *rest = sketches
    # Deserialising is the cheapest copy (0.2 µs); a merge costs 0.3 to 18 µs.
    union = ds.kll_doubles_sketch.deserialize(first)
    for sketch in rest:
        union.merge(ds.kll_doubles_sketch.deserialize(sketch))
    return union


# ── distinct counts ─────────────────────────────────────────────────────────


def hll_estimate(sketch: bytes) -> Bounded:
    """Return how many different values a sketch has seen, in whole numbers."""
    return distinct_in(ds.hll_sketch.deserialize(sketch))


def distinct_in(sketch: ds.hll_sketch | ds.hll_union) -> Bounded:
    """Return how many different values an open sketch or union has seen.

    The exact answer is a whole number, so the ends are rounded inwards.
    """
    low = math.ceil(sketch.get_lower_bound(_HLL_DEVIATIONS) - 1e-6)
    high = math.floor(sketch.get_upper_bound(_HLL_DEVIATIONS))
    value = min(max(round(sketch.get_estimate()), low), high)
    return Bounded(float(value), float(low), float(high))


# ── percentiles ─────────────────────────────────────────────────────────────


def kll_quantile(sketch: bytes, q: float) -> Bounded:
    """Return a percentile by nearest rank: the value that `q` of all do not exceed.

    Args:
        sketch: A serialised sketch that is not empty.
        q: The rank, 0 to 1: 0.99 for p99.
    """
    return quantile_in(ds.kll_doubles_sketch.deserialize(sketch), q)


def quantile_in(sketch: ds.kll_doubles_sketch, q: float) -> Bounded:
    """Return a percentile of an open sketch, by nearest rank.

    The ends are the values at `q` less and plus the error of rank, which the library
    states for 99 of 100 sketches over all ranks at once. Up to about `k` values the
    sketch holds every one of them, and the answer is exact.
    """
    # Of 100 values p7 is the seventh, though 0.07 x 100 is 7.000000000000001 in doubles.
    q = max(0.0, q - _RANK_SLACK)
    if not sketch.is_estimation_mode():
        exact = float(sketch.get_quantile(q, True))
        return Bounded(exact, exact, exact)
    error = sketch.normalized_rank_error(False)
    ranks = [max(0.0, q - error), q, min(1.0, q + error)]
    low, value, high = sketch.get_quantiles(ranks, True)
    # Beyond the ends the sketch still knows the exact extremes.
    low = sketch.get_min_value() if ranks[0] == 0.0 else low
    high = sketch.get_max_value() if ranks[2] == 1.0 else high
    return Bounded(float(value), float(low), float(high))


def kll_error(k: int) -> float:
    """Return the error of rank of a sketch of size `k`, as a share of all values."""
    return float(ds.kll_doubles_sketch.get_normalized_rank_error(k, False))


def kll_k(percentiles: Iterable[float]) -> int:
    """Return the smallest size of a KLL sketch that carries all asked percentiles.

    Bytes grow with k: about 5 KB at 200 (up to p96), 18 KB at 800 (p99), 200 KB at 8,500
    (p99.9). What even the largest does not carry so well gets the largest.

    Args:
        percentiles: Ranks, 0 to 1: 0.99 for p99. At least one.
    """
    tail = min(min(q, 1 - q) for q in percentiles)
    return next((k for k in KLL_SIZES if _is_enough(k, tail)), KLL_SIZES[-1])


def least_kll_k(tail: float) -> int | None:
    """Return the least size of all that carries a percentile; None if none does.

    Args:
        tail: How far the percentile is from its nearer end: 0.001 for p99.9.
    """
    sizes = range(8, GREATEST_KLL_K + 1)
    at = bisect_left(sizes, True, key=lambda k: _is_enough(k, tail))
    return sizes[at] if at < len(sizes) else None


def _is_enough(k: int, tail: float) -> bool:
    return kll_error(k) <= _KLL_SHARE * tail * (1 + 1e-9)


def kll_promises(sketch: ds.kll_doubles_sketch, q: float) -> bool:
    """Tell whether an open sketch carries a percentile.

    Two things must hold. At least one value lies beyond the percentile on its nearer
    side: p99 asks for 100 values, p95 for 20; of fewer it is just the largest one. And
    the sketch's error of rank, of a union of two sizes that of the smaller, does not reach
    that end.
    """
    tail = min(q, 1 - q)
    exact = not sketch.is_estimation_mode()
    # 1 - 0.99 is a little more than 0.01, and 100 of them a little more than 1.
    enough = sketch.n * tail >= 1 - 1e-9
    return bool(enough and (exact or sketch.normalized_rank_error(False) < tail))
