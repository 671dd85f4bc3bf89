"""Groups of events, and what is added up of each: against plain Python, value by value."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import datasketches as ds
import numpy as np
import numpy.typing as npt
import pytest
from weir.series import cut_text
from weir.sets import Theta, compact_theta, merge_theta, opened
from weir.sketches import merge_hll
from weir_analytics.panes.arrow_groups import (
    Groups,
    groups_by,
    hlls_of,
    klls_of,
    narrow,
    newest_of,
    numbers_of,
    thetas_of,
    tops_of,
    variances_of,
)
from weir_analytics.panes.compile import EMPTY_MEMBER

Longs = npt.NDArray[np.int64]
Draw = Callable[[Random], int]

LEAST, MOST = -(2**63), 2**63 - 1
# How the numbers of a column may lie.
SPANS: dict[str, Draw] = {
    "one": lambda _random: 7,
    "few": lambda random: random.randrange(-1, 4),
    "minutes": lambda random: 1_800_000_000 + 60 * random.randrange(5),
    "just_narrow": lambda random: random.choice((-5, 0, 2**20 - 6)),
    "just_not_narrow": lambda random: random.choice((-5, 0, 2**20 - 5)),
    "wide": lambda random: random.choice((0, random.randrange(2**40))),
    "ends": lambda random: random.choice((LEAST, MOST, 0, -1)),
    "all": lambda random: random.randrange(LEAST, MOST),
}
# The least, so that some thousand texts are estimated and some dozen are not.
LG_K = 8
TEXTS = ("", "a", "b", "é😀", "~", "null", "x" * 300, "x" * 301, "é" * 200)


def grouped(random: Random, count: int, groups: int) -> tuple[Groups, list[list[int]]]:
    """Return events in drawn groups, and the events of each group."""
    keys = [random.randrange(groups) for _ in range(count)]
    found = groups_by(np.array(keys, np.int64))
    own: dict[int, list[int]] = {}
    for at, key in enumerate(keys):
        own.setdefault(key, []).append(at)
    return found, list(own.values())


def of_each(
    groups: Groups, own: list[list[int]], random: Random, texts: Sequence[str | None]
) -> tuple[npt.NDArray[np.int32], list[list[str | None]]]:
    """Return a drawn text of each event as its place in `texts`, and the texts of each group."""
    codes = [random.randrange(len(texts)) for _ in groups.codes]
    return np.array(codes, np.int32), [[texts[codes[at]] for at in of] for of in own]


class TestGroups:
    @pytest.mark.parametrize("span", SPANS.values(), ids=SPANS)
    @pytest.mark.parametrize("kind", [np.int64, np.int32, np.int8])
    def test_narrow_codes_tell_apart_what_is_apart(self, seed: int, span: Draw, kind: Any) -> None:
        """Codes begin at 0 or more, are the same for the same number, and not many more of them."""
        random = Random(seed)  # noqa: S311 - cases, no secrets
        bits = 8 * np.dtype(kind).itemsize - 1
        for size in (0, 1, 2, 300):
            numbers = [max(-(2**bits), min(span(random), 2**bits - 1)) for _ in range(size)]
            codes = narrow(np.array(numbers, kind))
            pairs = set(zip(numbers, codes.tolist(), strict=True))

            assert codes.dtype == np.int64
            assert len(pairs) == len(set(numbers)) == len(set(codes.tolist()))
            assert size == 0 or 0 <= codes.min() <= codes.max() < max(2**20, size)

    def test_groups_are_those_of_a_dict(self, seed: int) -> None:
        """Drawn columns: equal keys are one group, whose first event is its first."""
        for turn in range(300):
            random = Random(f"{seed}/{turn}")  # noqa: S311
            spans = [random.choice(list(SPANS.values())) for _ in range(random.randrange(1, 9))]
            count = random.choice((0, 1, 2, 10, 200))
            rows = [[span(random) for span in spans] for _ in range(count)]
            rows = [random.choice(rows) for _ in rows] if random.random() < 0.5 else rows
            columns = [np.array([row[at] for row in rows], np.int64) for at in range(len(spans))]
            found = groups_by(*columns)
            wanted: dict[tuple[int, ...], list[int]] = {}
            for at, row in enumerate(rows):
                wanted.setdefault(tuple(row), []).append(at)

            assert len(found) == len(wanted), (seed, turn)
            assert found.first.tolist() == [own[0] for own in wanted.values()]
            assert found.sizes.tolist() == [len(own) for own in wanted.values()]
            slices = [of.tolist() for of in found.slices(np.arange(count))] if count else []
            assert slices == list(wanted.values())

    @pytest.mark.parametrize("columns", [2, 3, 4, 9])
    def test_products_of_wide_columns_do_not_overflow(self, columns: int) -> None:
        """Columns each as wide as may stay as they are: together far beyond 62 bits."""
        top = 2**20 - 1
        rows = [[top * (n >> at & 1) for at in range(columns)] for n in range(2**columns)] * 2
        found = groups_by(*np.array(rows, np.int64).T)

        assert len(found) == 2**columns
        assert found.sizes.tolist() == [2] * 2**columns
        assert found.first.tolist() == list(range(2**columns))


class TestNumbers:
    def test_sums_ends_and_variances(self, seed: int) -> None:
        """Of whole numbers and quarters exact, of any within a billionth of the group's size."""
        for turn in range(60):
            random = Random(f"{seed}/{turn}")  # noqa: S311
            is_exact = turn % 2 == 0
            groups, own = grouped(random, random.choice((0, 1, 5, 300)), random.choice((1, 4, 90)))
            values = np.array(
                [
                    random.randint(-4_000, 4_000) / 4
                    if is_exact
                    else random.uniform(-1, 1) * 10.0 ** random.randint(-9, 9)
                    for _ in groups.codes
                ]
            )
            found, variances = numbers_of(groups, values), variances_of(groups, values)
            of = [[float(values[at]) for at in group] for group in own]

            assert found["min"].tolist() == [min(group) for group in of]
            assert found["max"].tolist() == [max(group) for group in of]
            for at, group in enumerate(of):
                size = max(map(abs, group))
                assert is_exact <= (found["sum"][at] == sum(group)), (seed, turn)
                assert found["sum"][at] == pytest.approx(sum(group), rel=0, abs=1e-9 * size)
                wanted = statistics.pvariance(group)
                assert variances[at] == pytest.approx(wanted, rel=1e-9, abs=1e-12 * size**2)
            assert len(of) == len(variances) == len(found["sum"])

    def test_a_variance_far_from_nought_keeps_its_digits(self) -> None:
        """As the mean of squares less the square of the mean it would be nothing but rounding."""
        groups = groups_by(np.array([0, 1, 0, 1, 0], np.int64))
        values = np.array([1e9 + 1, 5.0, 1e9 + 2, 5.0, 1e9 + 3])

        assert variances_of(groups, values).tolist() == [pytest.approx(2 / 3), 0.0]

    def test_the_newest_event_of_each_group(self, seed: int) -> None:
        """The latest; of one instant that of the greatest identity, as its bytes compare."""
        for turn in range(60):
            random = Random(f"{seed}/{turn}")  # noqa: S311
            groups, own = grouped(random, random.choice((0, 1, 5, 300)), random.choice((1, 4, 90)))
            halves = (0, 1, 2**63 - 1, 2**63, 2**64 - 1)
            times_ms = [random.choice((-1, 0, 5, 5, random.randrange(10))) for _ in groups.codes]
            # An identity is counted once, so no two are of the same.
            pairs = list(
                dict.fromkeys(
                    (random.choice((*halves, n)), random.choice((*halves, n)) if n % 3 else n)
                    for n in range(2_000)
                )
            )
            found = random.sample(pairs, len(times_ms))
            identities = np.array(found, np.uint64).reshape(-1, 2)
            values = np.array([random.uniform(-1, 1) for _ in times_ms])
            newest = newest_of(groups, np.array(times_ms, np.int64), identities, values)

            assert newest.tolist() == [
                max(group, key=lambda at: (times_ms[at], found[at])) for group in own
            ], (seed, turn)


class TestSketches:
    @pytest.mark.parametrize("k", [20, 200])
    def test_quantiles(self, seed: int, k: int) -> None:
        """Below k all values are there; above it each rank is within the bound of the sketch."""
        random = Random(f"{seed}/{k}")  # noqa: S311
        groups, own = grouped(random, 5_000, 3)
        few, few_own = grouped(random, 15, 4)
        values = np.array([random.lognormvariate(3, 1) for _ in range(5_000)])

        for made, of in zip(klls_of(few, values[:15], k), few_own, strict=True):
            fed = ds.kll_doubles_sketch(k)
            for at in of:
                fed.update(values[at])
            assert made == fed.serialize()
        for made, of in zip(klls_of(groups, values, k), own, strict=True):
            sketch = ds.kll_doubles_sketch.deserialize(made)
            inside = np.sort(values[of])
            assert (sketch.n, sketch.k) == (len(of), k)
            assert (sketch.get_min_value(), sketch.get_max_value()) == (inside[0], inside[-1])
            # Its error holds with 99 %: three times that always.
            allowed = 3 * sketch.normalized_rank_error(False)
            for share in (0.1, 0.5, 0.9):
                rank = np.searchsorted(inside, sketch.get_quantile(share)) / len(inside)
                assert abs(rank - share) < allowed + 1 / len(inside), (seed, k)

    @pytest.mark.parametrize("made_by", [hlls_of, thetas_of])
    def test_distinct_texts(self, seed: int, made_by: Any) -> None:
        """Whatever was repeated, each group's sketch is that of its texts fed one by one."""
        random = Random(f"{seed}/{made_by.__name__}")  # noqa: S311
        texts: list[str | None] = [None, *TEXTS, *(f"u{n}" for n in range(2_000))]
        # The last group has nothing but null, the one before it the empty text and null.
        groups, own = grouped(random, 4_000, 5)
        codes, _of = of_each(groups, own, random, texts)
        codes[own[-1]] = 0
        codes[own[-2]] = np.array([n % 2 for n in range(len(own[-2]))], np.int32)
        of = [[texts[codes[at]] for at in group] for group in own]

        made = made_by(groups, codes, texts, LG_K)
        for sketch, group in zip(made, of, strict=True):
            is_there = [text for text in group if text is not None]
            if not is_there:
                assert sketch is None
                continue
            alone = fed_one_by_one(is_there, made_by)
            assert counted_in(sketch, made_by) == counted_in(alone, made_by)
        assert made[-1] is None
        assert counted_in(made[-2], made_by) == pytest.approx(1)

    @pytest.mark.parametrize("made_by", [hlls_of, thetas_of])
    def test_few_distinct_texts_are_counted_exactly(self, seed: int, made_by: Any) -> None:
        """Groups of some texts, null among them: as many as a set has."""
        random = Random(f"{seed}/few/{made_by.__name__}")  # noqa: S311
        texts: list[str | None] = [*TEXTS, None, "unused"]
        for count in (1, 2, 30, 100):
            groups, own = grouped(random, count, 20)
            codes, of = of_each(groups, own, random, texts[:-1])
            made = made_by(groups, codes, texts, LG_K)
            found = [0 if one is None else round(counted_in(one, made_by)) for one in made]
            assert found == [len(set(group) - {None}) for group in of], seed

    def test_frequent_texts(self, seed: int) -> None:
        """Each text as often as the group has it, a long one cut as a series is; null is none."""
        random = Random(f"{seed}/top")  # noqa: S311
        # Cut it is the text before it: both are one.
        texts: list[str | None] = [*TEXTS, cut_text(TEXTS[-1]), None, "unused"]
        for count in (1, 2, 30, 500):
            groups, own = grouped(random, count, 7)
            codes, of = of_each(groups, own, random, texts[:-1])
            sketches, events = tops_of(groups, codes, texts, 6)
            for sketch, n, group in zip(sketches, events, of, strict=True):
                tally = Counter(cut_text(text) for text in group if text is not None)
                assert n == tally.total()
                if not tally:
                    assert sketch is None
                    continue
                assert sketch is not None
                assert told(sketch) == {text: (m, m) for text, m in tally.items()}, seed

    def test_more_frequent_texts_than_a_sketch_holds(self, seed: int) -> None:
        """Each text that it still has lies within its bounds, and those are as of one fed alone."""
        random = Random(f"{seed}/many")  # noqa: S311
        texts: list[str | None] = [f"t{n}" for n in range(400)]
        groups, own = grouped(random, 6_000, 2)
        codes = np.array([min(random.randrange(400), random.randrange(400)) for _ in range(6_000)])
        sketches, events = tops_of(groups, codes.astype(np.int32), texts, 6)
        for sketch, n, group in zip(sketches, events, own, strict=True):
            tally = Counter(texts[codes[at]] for at in group)
            assert n == len(group)
            assert sketch is not None
            found = told(sketch)
            assert 0 < len(found) <= 48
            assert all(low <= tally[text] <= high for text, (low, high) in found.items()), seed

    @pytest.mark.parametrize("made_by", [hlls_of, thetas_of])
    def test_no_events(self, made_by: Any) -> None:
        """Of none there are no groups, and so no sketch."""
        nobody = groups_by(np.empty(0, np.int64))

        assert made_by(nobody, np.empty(0, np.int32), [], LG_K) == []

    def test_no_groups_have_no_slices(self) -> None:
        """Of no events there is no slice, and so no sketch that is made of one."""
        nobody = groups_by(np.empty(0, np.int64))

        assert list(nobody.slices(np.empty(0))) == []
        assert klls_of(nobody, np.empty(0), 20) == []
        assert tops_of(nobody, np.empty(0, np.int32), [], LG_K) == ([], [])


def fed_one_by_one(texts: Sequence[str], made_by: Any) -> bytes:
    """Return the sketch of texts that was given one after the other."""
    if made_by is hlls_of:
        hll = ds.hll_sketch(LG_K, ds.HLL_8)
        for text in texts:
            hll.update(text or EMPTY_MEMBER)
        return bytes(hll.serialize_compact())
    theta = ds.update_theta_sketch(LG_K)
    for text in texts:
        theta.update(text or EMPTY_MEMBER)
    return bytes(theta.compact().serialize())


def counted_in(sketch: bytes, made_by: Any) -> float:
    """Return how many texts a sketch has, by what does not depend on their order.

    That is what is left when it is merged, as in `row_events.settled`.
    """
    if made_by is hlls_of:
        merged = merge_hll([sketch, sketch])
        assert merged is not None
        return float(ds.hll_sketch.deserialize(merged).get_estimate())
    one = Theta(LG_K, compact_theta(sketch) or b"")
    united = merge_theta([one, one])
    assert united is not None
    return float(opened(united).get_estimate())


def told(sketch: bytes) -> dict[str, tuple[int, int]]:
    """Return of each text that a sketch of frequent ones has the bounds of how often."""
    opened = ds.frequent_strings_sketch.deserialize(sketch)
    items = opened.get_frequent_items(ds.frequent_items_error_type.NO_FALSE_NEGATIVES, 0)
    return {text: (low, high) for text, _estimate, low, high in items}
