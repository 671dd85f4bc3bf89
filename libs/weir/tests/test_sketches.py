"""Sketches: merged cheaply, read with bounds that hold the exact answer."""

from __future__ import annotations

import math
from collections.abc import Callable

import datasketches as ds
import numpy as np
import pytest
from weir.sketches import (
    KLL_SIZES,
    Bounded,
    compact_hll,
    compact_kll,
    hll_estimate,
    kll_error,
    kll_k,
    kll_promises,
    kll_quantile,
    least_kll_k,
    merge_hll,
    merge_kll,
)

Sample = Callable[[np.random.Generator, int], np.ndarray]

SAMPLES: dict[str, Sample] = {
    "uniform": lambda rng, n: rng.uniform(size=n),
    "lognormal": lambda rng, n: rng.lognormal(3, 1, size=n),
    "zipf": lambda rng, n: rng.zipf(1.5, size=n).astype(float),
    "sorted": lambda rng, n: np.sort(rng.uniform(size=n)),
    "constant": lambda _, n: np.full(n, 7.0),
}


def kll(values: np.ndarray, k: int = 200) -> bytes:
    """Return the serialised sketch of some values."""
    sketch = ds.kll_doubles_sketch(k)
    sketch.update(values)
    return bytes(sketch.serialize())


def promises(n: int, k: int, q: float) -> bool:
    """Tell whether a sketch of this size that has seen so many values carries a percentile."""
    return kll_promises(ds.kll_doubles_sketch.deserialize(kll(np.arange(n, dtype=float), k)), q)


def hll(values: range | list[int]) -> bytes:
    """Return the serialised sketch of some values, as Spark writes it."""
    sketch = ds.hll_sketch(12, ds.HLL_8)
    for value in values:
        sketch.update(value)
    return bytes(sketch.serialize_updatable())


def nearest_rank(values: np.ndarray, q: float) -> float:
    """Return the exact percentile: the slow, obvious way."""
    return float(np.sort(values)[max(0, math.ceil(q * len(values) - 1e-9) - 1)])


def holds(bounded: Bounded, exact: float) -> bool:
    """Tell whether an estimate and the exact answer lie within the bounds."""
    return bounded.low <= exact <= bounded.high and bounded.low <= bounded.value <= bounded.high


class TestQuantile:
    @pytest.mark.parametrize("q", [0.0, 0.01, 0.07, 0.5, 0.95, 0.99, 1.0])
    @pytest.mark.parametrize("n", [1, 2, 20, 100, 199])
    def test_few_values_are_exact(self, n: int, q: float) -> None:
        """Until the sketch must forget values its answer is the nearest rank itself."""
        values = np.random.default_rng(n).uniform(size=n)
        exact = nearest_rank(values, q)
        assert kll_quantile(kll(values), q) == (exact, exact, exact)

    @pytest.mark.parametrize("parts", [1, 100])
    @pytest.mark.parametrize("sample", SAMPLES)
    def test_bounds_hold(self, sample: str, parts: int) -> None:
        """In 20 seeded trials the exact percentiles lie within the bounds, merged or not.

        The thousand trials of the promise are `bench/sketches.py`.
        """
        for seed in range(20):
            values = SAMPLES[sample](np.random.default_rng(seed), 5000)
            merged = merge_kll(kll(chunk, 800) for chunk in np.array_split(values, parts))
            assert merged is not None
            for q in (0.5, 0.95, 0.99):
                assert holds(kll_quantile(merged, q), nearest_rank(values, q))

    def test_bounds_are_not_everything(self) -> None:
        """The band of a p99 at its size is a small part of the range of values."""
        values = np.arange(100_000, dtype=float)
        band = kll_quantile(kll(values, kll_k([0.99])), 0.99)
        assert 98_000 < band.low < 99_000 < band.high < 100_000

    def test_the_ends_are_exact(self) -> None:
        """A rank within its error of an end reaches to the smallest or largest value."""
        values = np.arange(10_000, dtype=float)
        assert kll_quantile(kll(values), 0.999).high == 9999.0
        assert kll_quantile(kll(values), 0.001).low == 0.0


class TestDistinct:
    @pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 30, 300])
    def test_few_values_are_exact(self, n: int) -> None:
        """Small counts come out whole, with both ends on them."""
        value, low, high = hll_estimate(hll(range(n)))
        assert value == low == high == n

    @pytest.mark.parametrize("parts", [1, 100])
    def test_bounds_hold(self, parts: int) -> None:
        """In 20 seeded trials the exact count lies within the bounds, merged or not."""
        for seed in range(20):
            start = seed * 1_000_003
            size = 200
            overlapping = [hll(range(start + i * 50, start + i * 50 + size)) for i in range(parts)]
            merged = merge_hll(overlapping)
            assert merged is not None
            assert holds(hll_estimate(merged), (parts - 1) * 50 + size)

    def test_bounds_are_not_everything(self) -> None:
        """At lgK 12 the band is about 5 % to either side."""
        value, low, high = hll_estimate(hll(range(20_000)))
        assert low > 0.94 * value
        assert high < 1.06 * value


class TestMerge:
    def test_of_nothing_is_none(self) -> None:
        """Merging no sketch gives no sketch, and one comes back as it is."""
        assert merge_hll([None, None]) is None
        assert merge_kll([]) is None
        assert merge_kll([None, kll(np.array([1.0]))]) == kll(np.array([1.0]))

    def test_every_value_counts(self) -> None:
        """The number of values in a merged sketch is exact."""
        merged = merge_kll(kll(np.arange(i, dtype=float)) for i in range(1, 60))
        assert merged is not None
        assert ds.kll_doubles_sketch.deserialize(merged).n == sum(range(1, 60))

    def test_a_union_is_of_sparks_type(self) -> None:
        """A large union stays HLL_8: no merge pays for turning one type into the other."""
        merged = merge_hll([hll(range(5000)), hll(range(4000, 9000))])
        assert merged is not None
        assert len(merged) == len(hll(range(5000))) == 4136

    def test_the_union_of_a_sketch_with_itself(self) -> None:
        """Merging a sketch twice changes a distinct count by nothing."""
        one = hll(range(300))
        assert hll_estimate(merge_hll([one, one]) or b"").value == 300


class TestCompact:
    def test_empty_becomes_none(self) -> None:
        """Sketches of nothing become None, whatever length they have."""
        assert compact_hll(hll([])) is None
        assert compact_hll(None) is None
        assert compact_kll(kll(np.array([]))) is None

    def test_seven_values_are_as_long_as_none(self) -> None:
        """Length does not tell an empty sketch from a small one, so it is not asked."""
        assert len(hll(range(7))) == len(hll([])) == 40
        assert hll_estimate(compact_hll(hll(range(7))) or b"").value == 7

    @pytest.mark.parametrize("n", [1, 7, 100, 2_000])
    def test_what_is_small_already_stays(self, n: int) -> None:
        """A list, a set and a table of values: what has room becomes the same bytes once."""
        small = compact_hll(hll(range(n)))
        assert small == bytes(ds.hll_sketch.deserialize(hll(range(n))).serialize_compact())
        assert compact_hll(small) is small


class TestSize:
    @pytest.mark.parametrize(
        ("percentiles", "k"),
        [([0.5], 200), ([0.95], 200), ([0.5, 0.99], 800), ([0.01], 800), ([0.999], 8_500)],
    )
    def test_k_carries_the_percentile(self, percentiles: list[float], k: int) -> None:
        """The size follows from the percentile that lies nearest to an end."""
        assert kll_k(percentiles) == k
        assert all(promises(200_000, k, q) for q in percentiles)

    def test_each_percentile_that_may_be_asked_is_carried(self) -> None:
        """From p0.1 to p99.9 the error of rank takes at most 0.35 of the way to the nearer end."""
        for tenths in range(1, 1_000):
            q = tenths / 1_000
            assert kll_error(kll_k([q])) <= 0.35 * min(q, 1 - q) * (1 + 1e-9), q

    @pytest.mark.parametrize(("tail", "least"), [(0.01, 790), (0.001, 8427), (0.00001, None)])
    def test_the_least_size(self, tail: float, least: int | None) -> None:
        """The least of all sizes that carries a percentile, and none where none does."""
        assert least_kll_k(tail) == least
        if least is not None:
            assert kll_error(least) <= 0.35 * tail < kll_error(least - 1)

    def test_sizes_grow(self) -> None:
        """Each size halves the error of rank, about."""
        errors = [kll_error(k) for k in KLL_SIZES]
        assert errors == sorted(errors, reverse=True)

    @pytest.mark.parametrize(
        ("n", "q", "carried"),
        [(99, 0.99, False), (100, 0.99, True), (19, 0.95, False), (20, 0.95, True)],
    )
    def test_few_values_carry_nothing(self, n: int, q: float, carried: bool) -> None:
        """A p99 takes 100 values, a p95 takes 20: below, it is only the largest one."""
        assert promises(n, 800, q) is carried

    def test_a_small_sketch_does_not_carry_p99(self) -> None:
        """At k = 200 the error of rank reaches past the end: p99 is not promised."""
        assert not promises(100_000, 200, 0.99)
        assert promises(200, 200, 0.99)

    def test_a_union_promises_what_its_smaller_part_does(self) -> None:
        """A sketch of k 800 that took in one of k 200 carries no p99 any more."""
        merged = merge_kll([kll(np.arange(9_000.0), 800), kll(np.arange(9_000.0), 200)])
        assert promises(9_000, 800, 0.99)
        assert not kll_promises(ds.kll_doubles_sketch.deserialize(merged or b""), 0.99)
