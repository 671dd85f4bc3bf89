"""Groups of events with the same key, and what is added up of each.

Keys are small whole numbers, combined into one; a group's own words are looked up once it is
known. Sorted by group, the values of each lie together: sums, least and greatest are of slices,
and so are sketches, which DataSketches makes here as Spark's functions do in the JVM.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import datasketches as ds
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from weir.series import cut_text

from weir_analytics.panes.compile import EMPTY_MEMBER

Longs = npt.NDArray[np.int64]
Doubles = npt.NDArray[np.float64]
# Below it a number less the least one is a code as good as any.
_NARROW: Final = 1 << 20
_MOST: Final = 1 << 62


@dataclass(frozen=True)
class Groups:
    """Events by group.

    Attributes:
        codes: The group of each event, from 0 on.
        first: Of each group its first event.
    """

    codes: Longs
    first: Longs

    def __len__(self) -> int:
        """Return how many groups there are."""
        return len(self.first)

    @property
    def nbytes(self) -> int:
        """How many bytes it takes once it is sorted."""
        return 2 * self.codes.nbytes + 3 * self.first.nbytes

    @cached_property
    def order(self) -> Longs:
        """The events sorted by group, each group's in their order."""
        return np.argsort(self.codes, kind="stable")

    @cached_property
    def sizes(self) -> Longs:
        """How many events each group has."""
        return np.bincount(self.codes, minlength=len(self.first))

    @cached_property
    def starts(self) -> Longs:
        """Where each group begins in `order`."""
        return np.cumsum(self.sizes) - self.sizes

    def slices(self, values: npt.NDArray[Any]) -> Iterator[npt.NDArray[Any]]:
        """Yield the values of each group."""
        # What is empty numpy splits into one part.
        return iter(np.split(values[self.order], self.starts[1:]) if len(self) else ())


def narrow(numbers: npt.NDArray[np.integer[Any]]) -> Longs:
    """Return codes from 0 on: the same for the same number, and not much more of them."""
    if not len(numbers):
        return np.empty(0, np.int64)
    least, most = int(numbers.min()), int(numbers.max())
    if most - least < _NARROW:
        return numbers.astype(np.int64) - least
    return _dense(numbers)


def _dense(numbers: npt.NDArray[np.integer[Any]]) -> Longs:
    """Return codes from 0 on, none left out, in the order of their first numbers."""
    codes: Longs = pa.array(numbers).dictionary_encode().indices.to_numpy().astype(np.int64)
    return codes


def groups_by(*columns: npt.NDArray[np.integer[Any]]) -> Groups:
    """Return the events grouped by some columns."""
    key, size = narrow(columns[0]), 0
    for column in columns[1:]:
        codes = narrow(column)
        size = int(codes.max(initial=0)) + 1
        if int(key.max(initial=0)) + 1 > _MOST // size:
            key = _dense(key)
        key = key * size + codes
    codes = _dense(key)
    count = int(codes.max(initial=-1)) + 1
    first = np.empty(count, np.int64)
    # Of several written to one place the last one stays: backwards, that is the first event.
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    return Groups(codes, first)


# ── numbers ─────────────────────────────────────────────────────────────────


def numbers_of(groups: Groups, values: Doubles) -> dict[str, Doubles]:
    """Return sum, least and greatest value of each group."""
    if not len(groups):
        empty = np.empty(0)
        return {"sum": empty, "min": empty, "max": empty}
    sorted_values = values[groups.order]
    return {
        "sum": np.add.reduceat(sorted_values, groups.starts),
        "min": np.minimum.reduceat(sorted_values, groups.starts),
        "max": np.maximum.reduceat(sorted_values, groups.starts),
    }


def variances_of(groups: Groups, values: Doubles) -> Doubles:
    """Return the variance of each group, as of a whole population."""
    if not len(groups):
        return np.empty(0)
    mean = np.add.reduceat(values[groups.order], groups.starts) / groups.sizes
    apart = (values - mean[groups.codes]) ** 2
    return np.add.reduceat(apart[groups.order], groups.starts) / groups.sizes


def newest_of(
    groups: Groups, times_ms: Longs, identities: npt.NDArray[np.uint64], values: Doubles
) -> Longs:
    """Return of each group the newest event: of one instant that of the greatest identity."""
    order = np.lexsort((values, identities[:, 1], identities[:, 0], times_ms, groups.codes))
    newest: Longs = order[groups.starts + groups.sizes - 1]
    return newest


# ── sketches ────────────────────────────────────────────────────────────────


def klls_of(groups: Groups, values: Doubles, k: int) -> list[bytes]:
    """Return the KLL sketch of each group's values."""
    found = []
    for own in groups.slices(values):
        sketch = ds.kll_doubles_sketch(k)
        sketch.update(own)
        found.append(sketch.serialize())
    return found


def hlls_of(
    groups: Groups, codes: npt.NDArray[np.int32], texts: Sequence[str | None], lg_k: int
) -> list[bytes | None]:
    """Return the HLL sketch of each group's texts; None where there is none."""
    found: list[bytes | None] = []
    for own in _texts_of(groups, codes, texts):
        sketch = ds.hll_sketch(lg_k, ds.HLL_8)
        for text in own:
            sketch.update(text or EMPTY_MEMBER)
        found.append(sketch.serialize_compact() if own else None)
    return found


def thetas_of(
    groups: Groups, codes: npt.NDArray[np.int32], texts: Sequence[str | None], lg_k: int
) -> list[bytes | None]:
    """Return the theta sketch of each group's texts; None where there is none."""
    found: list[bytes | None] = []
    for own in _texts_of(groups, codes, texts):
        sketch = ds.update_theta_sketch(lg_k)
        for text in own:
            sketch.update(text or EMPTY_MEMBER)
        found.append(sketch.compact().serialize() if own else None)
    return found


def tops_of(
    groups: Groups, codes: npt.NDArray[np.int32], texts: Sequence[str | None], lg_k: int
) -> tuple[list[bytes | None], list[int]]:
    """Return the sketch of each group's most frequent texts, and how many texts it has."""
    cut: dict[int, str] = {}
    sketches: list[bytes | None] = []
    events: list[int] = []
    for own in groups.slices(codes):
        places, counts = np.unique(own, return_counts=True)
        counted = []
        for at, count in zip(places.tolist(), counts.tolist(), strict=True):
            text = texts[at]
            if text is not None:
                counted.append((cut.get(at) or cut.setdefault(at, cut_text(text)), count))
        sketch = ds.frequent_strings_sketch(lg_k)
        for text, count in counted:
            sketch.update(text, count)
        sketches.append(bytes(sketch.serialize()) if counted else None)
        events.append(sum(count for _text, count in counted))
    return sketches, events


def _texts_of(
    groups: Groups, codes: npt.NDArray[np.int32], texts: Sequence[str | None]
) -> Iterator[list[str]]:
    """Yield the different texts of each group."""
    if not len(groups):
        return
    pairs = np.sort(pa.array(groups.codes * len(texts) + codes).unique().to_numpy())
    edges = np.searchsorted(pairs, np.arange(1, len(groups)) * len(texts))
    for own in np.split(pairs % len(texts), edges):
        yield [text for at in own.tolist() if (text := texts[at]) is not None]
