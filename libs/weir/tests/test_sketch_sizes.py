"""Sketches of every size that a metric may ask for: merged, they estimate within their bounds.

Each trial has more texts or values than its size holds, and says so: a sketch that is still
exact proves nothing about a bound. Seeds are fixed; the thousand trials of the promise are
`bench/sketches.py`.
"""

from __future__ import annotations

import math
from collections import Counter

import datasketches as ds
import numpy as np
import pytest
from weir.definitions.sketch_sizes import MAX_KLL_K, SketchSizes
from weir.frequent import Texts, capacity, merge_top, texts_union, top_of
from weir.sets import Theta, merge_theta, only_left, opened, overlap, set_size
from weir.sketches import (
    Bounded,
    hll_estimate,
    kll_error,
    kll_k,
    kll_quantile,
    merge_hll,
    merge_kll,
)

PARTS = 20
SEEDS = range(3)


def holds(bounded: Bounded, exact: float) -> bool:
    """Tell whether the exact answer lies within bounds that are no single number."""
    return bounded.low < bounded.high and bounded.low <= exact <= bounded.high


def limits(name: str) -> tuple[int, int]:
    """Return the least and the greatest size that the schema takes."""
    field = SketchSizes.model_json_schema()["properties"][name]
    field = field.get("anyOf", [field])[0]
    return field["minimum"], field["maximum"]


class TestPercentiles:
    @pytest.mark.parametrize(
        ("k", "values", "asked"),
        [
            (8, 4_000, (0.5,)),
            (1_000, 40_000, (0.5, 0.99)),
            (kll_k([0.999]), 90_000, (0.001, 0.5, 0.999)),
            (MAX_KLL_K, 100_000, (0.5, 0.999)),
        ],
    )
    def test_bounds_hold(self, k: int, values: int, asked: tuple[float, ...]) -> None:
        """A percentile of merged parts lies within the ends, which are about as far as k says."""
        for seed in SEEDS:
            drawn = np.random.default_rng(seed).lognormal(3, 1, size=values)
            merged = merge_kll(kll(part, k) for part in np.array_split(drawn, PARTS)) or b""
            ordered = np.sort(drawn)
            assert ds.kll_doubles_sketch.deserialize(merged).is_estimation_mode()
            for q in asked:
                found = kll_quantile(merged, q)
                assert holds(found, ordered[math.ceil(q * values - 1e-9) - 1])
                ranks = np.searchsorted(ordered, (found.low, found.high)) / values
                assert ranks[1] - ranks[0] < 3 * kll_error(k)


class TestDistinct:
    @pytest.mark.parametrize(("lg_k", "width"), [(8, 0.5), (14, 0.06), (15, 0.05)])
    def test_bounds_hold(self, lg_k: int, width: float) -> None:
        """A count of merged parts that overlap lies within ends as near as the size says."""
        size = 2 << lg_k
        for seed in SEEDS:
            starts = [seed * 10**9 + part * size // (2 * PARTS) for part in range(PARTS)]
            merged = (
                merge_hll(hll(range(start, start + size // 2), lg_k) for start in starts) or b""
            )
            found = hll_estimate(merged)
            assert ds.hll_sketch.deserialize(merged).lg_config_k == lg_k
            assert holds(found, starts[-1] + size // 2 - starts[0])
            assert found.high - found.low < width * found.value


class TestSets:
    @pytest.mark.parametrize("lg_k", [8, 9, 14, 16])
    def test_bounds_hold(self, lg_k: int) -> None:
        """Of two sets beyond their size the parts in common and apart lie within the ends."""
        size = 2 << lg_k
        for seed in SEEDS:
            first = seed * 10**9
            one = theta(range(first, first + size), lg_k)
            other = theta(range(first + size // 2, first + size + size // 2), lg_k)
            assert (one.lg_k, opened(one).is_estimation_mode()) == (lg_k, True)
            assert holds(set_size(opened(one)), size)
            assert holds(set_size(overlap(opened(one), opened(other))), size // 2)
            assert holds(set_size(only_left(opened(one), opened(other))), size // 2)


class TestTop:
    @pytest.mark.parametrize("lg_k", [6, 7, 14])
    def test_bounds_hold(self, lg_k: int) -> None:
        """Of more texts than there are counters each listed one lies within, and so do the rest."""
        different = 3 * capacity(lg_k)
        for seed in SEEDS:
            drawn = np.random.default_rng(seed).zipf(1.3, size=6 * different) % different
            counts = Counter(map(str, drawn.tolist()))
            assert len(counts) > capacity(lg_k)
            merged = merge_top(top(part, lg_k) for part in np.array_split(drawn, PARTS))
            assert merged is not None
            found = top_of(texts_union([merged]), 10)
            assert len(found.items) == 10
            assert any(item.low < item.high for item in found.items)
            assert all(item.low <= counts.pop(item.text) <= item.high for item in found.items)
            assert max(counts.values()) <= found.unlisted


def test_the_sizes_are_those_of_the_schema() -> None:
    """The least and the greatest size that a definition may ask for are among the trials."""
    assert limits("kll_k") == (8, MAX_KLL_K)
    assert [limits(f"{name}_lg_k") for name in ("hll", "theta", "top")] == [
        (8, 15),
        (8, 16),
        (6, 14),
    ]


def kll(values: np.ndarray, k: int) -> bytes:
    """Return the serialised sketch of some values."""
    sketch = ds.kll_doubles_sketch(k)
    sketch.update(values)
    return bytes(sketch.serialize())


def hll(values: range, lg_k: int) -> bytes:
    """Return the serialised sketch of some values, as Spark writes it."""
    sketch = ds.hll_sketch(lg_k, ds.HLL_8)
    for value in values:
        sketch.update(value)
    return bytes(sketch.serialize_updatable())


def theta(values: range, lg_k: int) -> Theta:
    """Return the merge of sketches of parts of some values."""
    made = []
    for part in range(PARTS):
        sketch = ds.update_theta_sketch(lg_k)
        for value in values[part::PARTS]:
            sketch.update(value)
        made.append(Theta(lg_k, bytes(sketch.compact().serialize())))
    merged = merge_theta(made)
    assert merged is not None
    return merged


def top(values: np.ndarray, lg_k: int) -> Texts:
    """Return the sketch of some texts."""
    sketch = ds.frequent_strings_sketch(lg_k)
    for value in values.tolist():
        sketch.update(str(value))
    return Texts(len(values), bytes(sketch.serialize()))
