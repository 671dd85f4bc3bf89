"""Trials of sketches: data are drawn, cut into parts, sketched, merged, and asked.

What is asked is compared with an answer that no sketch had a part in: all values sorted, or
counted one by one. Parts are sketched by the C++ library, the same code on the same bytes as
the engine's in Java; everything from the stored bytes of a part on is the product's.
"""

from __future__ import annotations

import math
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import datasketches as ds
import numpy as np
from harness import percentile
from weir.frequent import TOP_LG_K, Texts, merge_top, texts_of, texts_union, top_of
from weir.sets import THETA_LG_K, Theta, merge_theta, only_left, opened, overlap, set_size
from weir.sketches import (
    HLL_LG_K,
    Bounded,
    compact_hll,
    hll_estimate,
    kll_k,
    kll_quantile,
    merge_hll,
    merge_kll,
)

PERCENTILES = (0.001, 0.5, 0.95, 0.99, 0.999)
LISTED = 10
OTHERS = ("distinct", "theta", "overlap", "only_left", "top")
ERROR = "99 of 100 trials"
Values = np.ndarray
Stored = TypeVar("Stored")
Sample = Callable[[np.random.Generator, int], Values]

SHAPES: dict[str, tuple[Sample, float]] = {
    "uniform": (lambda rng, n: rng.uniform(size=n), 10_000),
    "lognormal": (lambda rng, n: rng.lognormal(3, 1, size=n), 100),
    "zipf": (lambda rng, n: rng.zipf(1.5, size=n).astype(float), 1),
    "sorted": (lambda rng, n: np.sort(rng.uniform(size=n)), 10_000),
    "constant": (lambda _, n: np.full(n, 7.0), 1),
}
"""By name: how values are drawn, and of which part of one a text is made, so that texts repeat."""
SETS = ("theta", "overlap", "only_left")
# As many values of a Zipf law have more different ones than a theta sketch holds one by one.
ENOUGH_OF_ZIPF = 1_000_000
# What kinds of sketch there are, and which answers are read from each.
KINDS: dict[str, tuple[str, ...]] = {
    "p50": ("p50", "p95"),
    "p99": ("p99",),
    "p99.9": ("p0.1", "p99.9"),
    "distinct": ("distinct",),
    "sets": SETS,
    "top": ("top",),
}
KIND_OF = {name: kind for kind, names in KINDS.items() for name in names}


class Way(NamedTuple):
    """How many sketches are merged, and how.

    Attributes:
        parts: How many.
        chained: Whether what is merged is written and read again after each of them, as a pane is
            with each commit. Else all go into one union that stays open, as where many panes are
            read as one window.
    """

    parts: int
    chained: bool = False

    def __str__(self) -> str:
        """Return it as results and pages tell it."""
        if self.parts == 1:
            return "1 part"
        return f"{self.parts:,} parts, {'one after another' if self.chained else 'into one union'}"

    def merge(
        self,
        merged: Callable[[Iterable[Stored | None]], Stored | None],
        parts: Iterable[Stored | None],
    ) -> Stored | None:
        """Return what sketches are merged into.

        Args:
            merged: The product's own merge of stored bytes.
            parts: As they are stored.
        """
        if not self.chained:
            return merged(parts)
        found: Stored | None = None
        for part in parts:
            found = merged((found, part))
        return found

    def timed(
        self,
        merged: Callable[[Iterable[Stored | None]], Stored | None],
        parts: Sequence[Stored | None],
    ) -> tuple[Stored | None, float]:
        """Return the same, and how many seconds of a core each part took."""
        began_s = time.thread_time()
        found = self.merge(merged, parts)
        return found, (time.thread_time() - began_s) / len(parts)


@dataclass(frozen=True)
class Cut:
    """How many values each part of a sketch gets: some parts are large, the others small.

    A large one has so many that its own sketch estimates. Small ones hold theirs one by one;
    where they are none, all parts are large.

    Attributes:
        large: How many parts are large; they come first.
        of: Of how many values each.
        small: How many parts are small.
        of_small: Of how many values each.
    """

    large: int
    of: int
    small: int = 0
    of_small: int = 0

    @property
    def values(self) -> int:
        """How many values all parts have together."""
        return self.large * self.of + self.small * self.of_small

    def parts(self, values: Values) -> list[Values]:
        """Return the first values, cut; there must be enough of them."""
        sizes = [self.of] * self.large + [self.of_small] * self.small
        return np.split(values[: self.values], np.cumsum(sizes)[:-1])


def is_exact(shape: str, name: str, values: int) -> bool:
    """Tell whether an answer cannot but be exact: the data have too few different values.

    KLL keeps one of many equal values, too, and estimates; its ends are that value.
    """
    if shape == "constant":
        return name in OTHERS
    return shape == "zipf" and name in SETS and values < ENOUGH_OF_ZIPF


def part_is_exact(shape: str, name: str) -> bool:
    """Tell whether a large part may hold everything one by one: so few of its values differ.

    Neighbours of sorted values are few texts.
    """
    if shape == "sorted":
        return name == "top"
    return shape in ("constant", "zipf") and name in OTHERS


@dataclass(frozen=True)
class Sizes:
    """How large the sketches of a run are.

    Attributes:
        kll_k: Of every percentile; None: the size that a metric asking for it gets.
        distinct, theta, top: Base-2 logarithms, as in a metric's `sketches`.
    """

    kll_k: int | None = None
    distinct: int = HLL_LG_K
    theta: int = THETA_LG_K
    top: int = TOP_LG_K

    def kll(self, q: float) -> int:
        """Return the size of the sketch that a percentile is read from."""
        return self.kll_k or kll_k([q])


@dataclass(frozen=True)
class Trial:
    """Trials of one shape and one way to merge.

    Attributes:
        shape: One of `SHAPES`.
        way: How many sketches are merged, and how.
        cuts: What the parts of each of `KINDS` are; of a set those of either side.
        seeds: One trial each.
        sizes: Of the sketches.
    """

    shape: str
    way: Way
    cuts: Mapping[str, Cut]
    seeds: Sequence[int]
    sizes: Sizes

    @property
    def values(self) -> int:
        """How many values are drawn: enough for each kind, three halves of a side for sets."""
        most = max(cut.values for cut in self.cuts.values())
        return max(most, -(-3 * self.cuts["sets"].values // 2))


@dataclass
class Tally:
    """What trials of one shape and one way to merge came to, by what was asked.

    Attributes:
        trials: How many there were.
        held: Of how many the exact answer was within the bounds.
        estimated: Of how many the merged sketch did not hold everything.
        parts_estimated: Of how many that is so of a large part already.
        bytes: The largest merged sketch.
        merge_s: Of each trial the seconds of a core that merging one part took.
        errors: Of percentiles, how far each was off its true value, as a share of it.
    """

    trials: Counter[str] = field(default_factory=Counter)
    held: Counter[str] = field(default_factory=Counter)
    estimated: Counter[str] = field(default_factory=Counter)
    parts_estimated: Counter[str] = field(default_factory=Counter)
    bytes: Counter[str] = field(default_factory=Counter)
    merge_s: dict[str, list[float]] = field(default_factory=dict)
    errors: dict[str, list[float]] = field(default_factory=dict)

    def note(
        self, name: str, *, held: bool, size: int, merge_s: float, estimated: bool, part: bool
    ) -> None:
        """Count one trial."""
        self.trials[name] += 1
        self.held[name] += held
        self.estimated[name] += estimated
        self.parts_estimated[name] += part
        self.bytes[name] = max(self.bytes[name], size)
        self.merge_s.setdefault(name, []).append(merge_s)

    def add(self, other: Tally) -> None:
        """Take in what other trials came to."""
        for name in ("trials", "held", "estimated", "parts_estimated"):
            getattr(self, name).update(getattr(other, name))
        self.bytes |= other.bytes
        for mine, others in ((self.merge_s, other.merge_s), (self.errors, other.errors)):
            for name, found in others.items():
                mine.setdefault(name, []).extend(found)

    def worst_error(self, name: str) -> float:
        """Return how far an estimate is off at most, in 99 of 100 trials."""
        return percentile(self.errors[name], 0.99)

    def to_dict(self) -> dict[str, Any]:
        """Return shares of the trials, largest sketch, time of a merge, by what was asked."""
        return {name: self._one(name, of) for name, of in self.trials.items()}

    def _one(self, name: str, of: int) -> dict[str, Any]:
        found = {
            "trials": of,
            "within": round(self.held[name] / of, 4),
            "estimated": round(self.estimated[name] / of, 4),
            "parts_estimated": round(self.parts_estimated[name] / of, 4),
            "bytes": self.bytes[name],
            "merge_us_a_part": round(1e6 * percentile(self.merge_s[name], 0.5), 2),
        }
        if name in self.errors:
            found["off_its_value"] = round(self.worst_error(name), 5)
        return found


def of_trials(task: Trial) -> Tally:
    """Return what some trials came to."""
    tally, (sample, _scale) = Tally(), SHAPES[task.shape]
    for seed in task.seeds:
        values = sample(np.random.default_rng([seed, task.way.parts]), task.values)
        try_percentiles(values, task, tally)
        try_distinct(values, task, tally)
        try_sets(values, task, tally)
        try_top(values, task, tally)
    return tally


def try_percentiles(values: Values, task: Trial, tally: Tally) -> None:
    """Compare each percentile with the nearest rank of all values."""
    for kind in ("p50", "p99", "p99.9"):
        cut, asked = task.cuts[kind], [q for q in PERCENTILES if named(q) in KINDS[kind]]
        exact = nearest_ranks(values[: cut.values], asked)
        k = task.sizes.kll(asked[0])
        made = [kll_of(chunk, k) for chunk in cut.parts(values)]
        stored, merge_s = task.way.timed(merge_kll, made)
        merged = stored or b""
        modes = {"estimated": _kll_estimates(merged), "part": _kll_estimates(made[0])}
        size = len(merged)
        for q, truth in zip(asked, exact, strict=True):
            name, found = named(q), kll_quantile(merged, q)
            held = holds(found, truth)
            tally.note(name, held=held, size=size, merge_s=merge_s, **modes)
            tally.errors.setdefault(name, []).append(abs(found.value - truth) / truth)


def named(q: float) -> str:
    """Return what a percentile is called."""
    return f"p{100 * q:g}"


def nearest_ranks(values: Values, asked: Sequence[float]) -> list[float]:
    """Return percentiles by nearest rank; without sorting what is not asked for."""
    places = [math.ceil(q * len(values) - 1e-9) - 1 for q in asked]
    ordered = np.partition(values, places)
    return [float(ordered[place]) for place in places]


def try_distinct(values: Values, task: Trial, tally: Tally) -> None:
    """Compare the distinct count with how many different values there are."""
    cut = task.cuts["distinct"]
    made = [hll_of(chunk, task.sizes.distinct) for chunk in cut.parts(values)]
    stored, merge_s = task.way.timed(merge_hll, made)
    merged = stored or b""
    found = hll_estimate(merged)
    tally.note(
        "distinct",
        held=holds(found, len(np.unique(values[: cut.values]))),
        size=len(merged),
        merge_s=merge_s,
        estimated=_hll_estimates(merged),
        part=_hll_estimates(made[0] or b""),
    )


def try_sets(values: Values, task: Trial, tally: Tally) -> None:
    """Compare a set, and what two of which half is common have in common, with the truth."""
    cut, lg_k = task.cuts["sets"], task.sizes.theta
    width = cut.values
    halves = values[:width], values[width // 2 :][:width]
    made = [list(thetas_of(cut.parts(half), lg_k)) for half in halves]
    both_sides = [task.way.timed(merge_theta, side) for side in made]
    merged = [theta for theta, _ in both_sides if theta is not None]
    merge_s = sum(took_s for _, took_s in both_sides) / len(both_sides)
    one, other = map(opened, merged)
    left, right = (np.unique(half) for half in halves)
    both = len(np.intersect1d(left, right, assume_unique=True))
    asked = {
        "theta": (one, len(left)),
        "overlap": (overlap(one, other), both),
        "only_left": (only_left(one, other), len(left) - both),
    }
    size = max(len(theta.sketch) for theta in merged)
    part = opened(made[0][0]).is_estimation_mode()
    for name, (found, exact) in asked.items():
        is_estimate = found.is_estimation_mode()
        tally.note(
            name,
            held=holds(set_size(found), exact),
            size=size,
            merge_s=merge_s,
            estimated=is_estimate,
            part=part,
        )


def try_top(values: Values, task: Trial, tally: Tally) -> None:
    """Compare every listed text, and the most frequent one that is not, with a plain count."""
    cut, scale = task.cuts["top"], SHAPES[task.shape][1]
    whole = np.floor(values[: cut.values] * scale).astype(np.int64)
    counts = {str(n): c for n, c in zip(*_counted(whole), strict=True)}
    made = [top_of_part(chunk, task.sizes.top) for chunk in cut.parts(whole)]
    stored, merge_s = task.way.timed(merge_top, made)
    merged = stored or Texts(0, b"")
    union = texts_union([merged])
    top = top_of(union, LISTED)
    held = all(item.low <= counts.pop(item.text) <= item.high for item in top.items)
    held = held and max(counts.values(), default=0) <= top.unlisted
    tally.note(
        "top",
        held=held,
        size=len(merged.sketch),
        merge_s=merge_s,
        estimated=_top_estimates(merged),
        part=made[0] is not None and _top_estimates(made[0]),
    )


# ── parts, as the engine makes them ─────────────────────────────────────────


def kll_of(values: Values, k: int) -> bytes:
    """Return the percentile sketch of a part."""
    sketch = ds.kll_doubles_sketch(k)
    sketch.update(values)
    return bytes(sketch.serialize())


def hll_of(values: Values, lg_k: int) -> bytes | None:
    """Return the distinct sketch of a part."""
    sketch = ds.hll_sketch(lg_k, ds.HLL_8)
    _feed(sketch.update, values.tolist())
    return compact_hll(bytes(sketch.serialize_compact()))


def thetas_of(chunks: Iterable[Values], lg_k: int) -> Iterator[Theta]:
    """Yield the set of each part."""
    for chunk in chunks:
        sketch = ds.update_theta_sketch(lg_k)
        _feed(sketch.update, chunk.tolist())
        yield Theta(lg_k, bytes(sketch.compact().serialize()))


def top_of_part(values: Values, lg_k: int) -> Texts | None:
    """Return the frequent texts of a part; numbers are the texts."""
    sketch = ds.frequent_strings_sketch(lg_k)
    for number, count in zip(*_counted(values), strict=True):
        sketch.update(str(number), count)
    return texts_of(len(values), bytes(sketch.serialize()))


def _feed(update: Callable[[float], None], values: Iterable[float]) -> None:
    # The fastest loop that Python has: half a second for ten million values.
    deque(map(update, values), maxlen=0)


def _counted(values: Values) -> tuple[list[int], list[int]]:
    numbers, counts = np.unique(values, return_counts=True)
    return numbers.tolist(), counts.tolist()


def holds(bounded: Bounded, exact: float) -> bool:
    """Tell whether the exact answer lies within the bounds."""
    return bool(bounded.low <= exact <= bounded.high)


# ── whether a sketch holds everything one by one ────────────────────────────


def _kll_estimates(sketch: bytes) -> bool:
    return bool(ds.kll_doubles_sketch.deserialize(sketch).is_estimation_mode())


def _hll_estimates(sketch: bytes) -> bool:
    # Of few values the library keeps a list of hashes, which is as good as exact.
    return len(sketch) >= 1 << int(ds.hll_sketch.deserialize(sketch).lg_config_k)


def _top_estimates(texts: Texts) -> bool:
    if not texts.sketch:
        return True
    sketch = ds.frequent_strings_sketch.deserialize(texts.sketch)
    return bool(sketch.get_upper_bound("\0") > 0 or sketch.total_weight < texts.events)
