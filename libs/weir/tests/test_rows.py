"""Rows: packed without loss, merged in any order and any grouping."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import datasketches as ds
import pytest
from hypothesis import given
from hypothesis import strategies as st
from weir.rows import Row, decode, encode, merge, merge_all, merge_packed, part

# Written by the release before rows had further members.
_HLL = bytes.fromhex("0201070c030802082f823b040aff8004")
_KLL = bytes.fromhex(
    "05010f00c80008000200000000000000c8000100c6000000000000000000f83f"
    "00000000000000400000000000000040000000000000f83f"
)
WRITTEN = [
    ("4007", Row(7)),
    ("6070110100", Row(70_000)),
    ("48800105", Row(1, 5.0, 5.0, 5.0)),
    ("484809c20132", Row(9, 450.0, 50.0, 50.0)),
    ("481128c8af00002c01d007", Row(40, 45_000.0, 300.0, 2000.0)),
    ("481b284fc30000010000000b270000", Row(40, 499.99, 0.01, 99.95)),
    (
        "783600000000020000009c7500883ce437feb0f79939fd1c03fe0000000000000440",
        Row(2**33, -1e300, -1e299, 2.5),
    ),
    ("44021000" + _HLL.hex(), Row(2, hll=_HLL)),
    ("4a1b025e01000096000000c8000000" + _KLL.hex(), Row(2, 3.5, 1.5, 2.0, kll=_KLL)),
    (
        "4e1b025e01000096000000c80000001000" + _HLL.hex() + _KLL.hex(),
        Row(2, 3.5, 1.5, 2.0, _HLL, _KLL),
    ),
]

whole = st.integers(-(2**40), 2**40).map(float)
decimals = st.integers(-(10**9), 10**9).map(lambda cents: cents / 100)
doubles = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e300, max_value=1e300)
numbers = whole | decimals | doubles | st.floats(width=32, allow_nan=False, allow_infinity=False)


@st.composite
def rows(draw: st.DrawFn, values: st.SearchStrategy[float] = numbers) -> Row:
    """Draw the row of some events, or a bare count."""
    n = draw(st.integers(1, 2**40))
    if draw(st.booleans()):
        return Row(n)
    drawn = draw(st.lists(values, min_size=1, max_size=5))
    return Row(n, math.fsum(drawn), min(drawn), max(drawn))


def row_of(values: list[float]) -> Row:
    """Return the row of events with these values, sketches included."""
    hll, kll = ds.hll_sketch(12), ds.kll_doubles_sketch(200)
    for value in values:
        hll.update(value)
        kll.update(value)
    n = len(values)
    return part(
        n, (sum(values), min(values), max(values)), hll.serialize_updatable(), kll.serialize()
    )


class TestPacked:
    @given(rows())
    def test_reads_back(self, row: Row) -> None:
        """Decoding gives the row that was encoded, to the last bit."""
        assert decode(encode(row)) == row

    @pytest.mark.parametrize("n", [1, 255, 256, 65_535, 65_536, 2**32 - 1, 2**32, 2**63])
    def test_counts_at_each_width(self, n: int) -> None:
        """Counts on both sides of each width of n read back."""
        assert decode(encode(Row(n))) == Row(n)

    @pytest.mark.parametrize(
        ("row", "size"),
        [
            (Row(7), 2),
            (Row(1, 5.0, 5.0, 5.0), 4),
            (Row(1, 0.25, 0.25, 0.25), 7),
            (Row(9, 450.0, 50.0, 50.0), 6),
            (Row(40, 45_000.0, 300.0, 2000.0), 11),
            (Row(40, 499.99, 0.01, 99.95), 15),
            (Row(40, 1 / 3, 1 / 7, 1 / 5), 27),
        ],
    )
    def test_size(self, row: Row, size: int) -> None:
        """Rows of usual values are small; P7 rests on these sizes."""
        assert len(encode(row)) == size
        assert decode(encode(row)) == row

    @pytest.mark.parametrize(
        "edge", [127.0, 128.0, -128.0, -129.0, 32_767.0, 32_768.0, 2.0**31, -(2.0**31), 2.0**53]
    )
    def test_whole_numbers_at_each_width(self, edge: float) -> None:
        """Whole numbers on both sides of each width read back."""
        row = Row(3, 3 * edge, edge, edge + 1)
        assert decode(encode(row)) == row

    @pytest.mark.parametrize("edge", [21_474_836.0, 21_474_836.47, 2147.0, 2147.483648, 3e38, 1e39])
    def test_fractions_at_each_width(self, edge: float) -> None:
        """Fractions on both sides of what hundredths, millionths, singles hold read back."""
        for number in (edge, -edge, math.nextafter(edge, math.inf)):
            row = Row(2, number, number - 0.25, number)
            assert decode(encode(row)) == row

    def test_sketches_read_back(self) -> None:
        """Both sketches come back byte for byte, with and without the other."""
        full = row_of([1.5, 2.5, 9.0])
        for row in (full, Row(3, hll=full.hll), Row(3, 13.0, 1.5, 9.0, kll=full.kll)):
            assert decode(encode(row)) == row

    @pytest.mark.parametrize("packed", [b"", b"\x00\x01"])
    def test_refuses_what_has_no_version(self, packed: bytes) -> None:
        """Bytes that nobody wrote as a row are refused by name."""
        with pytest.raises(ValueError, match="packed row must be of version 1, got flags"):
            decode(packed)

    @pytest.mark.parametrize(("packed", "row"), WRITTEN)
    def test_rows_written_before_further_members(self, packed: str, row: Row) -> None:
        """What releases without further members wrote is read, and is written the same."""
        assert decode(bytes.fromhex(packed)) == row
        assert encode(row).hex() == packed

    def test_refuses_an_unknown_layout(self) -> None:
        """A layout byte that stands for nothing is refused."""
        with pytest.raises(ValueError, match="must have a layout of version 1, got 7"):
            decode(b"\x48\x07\x01\x01\x01\x01")

    @pytest.mark.parametrize("cut", [1, 2, 5, 10])
    def test_refuses_a_cut_row(self, cut: int) -> None:
        """A row that lost its end is refused, not read as another one."""
        whole = encode(Row(40, 45_000.0, 300.0, 2000.0))
        with pytest.raises(ValueError, match="must be whole, got"):
            decode(whole[:cut])


class TestMerge:
    @given(rows(whole), rows(whole), rows(whole))
    def test_any_order_and_grouping(self, one: Row, two: Row, three: Row) -> None:
        """Whole numbers merge to the same row however they are ordered and grouped."""
        assert merge(one, two) == merge(two, one)
        assert merge(merge(one, two), three) == merge(one, merge(two, three))
        assert merge_all([one, two, three]) == merge(merge(one, two), three)
        assert merge_all([one, two]) == merge_all([one, Row(0), two]) == merge(one, two)

    @given(st.lists(doubles, min_size=1, max_size=30), st.randoms(use_true_random=False))
    def test_float_sums_in_any_order(self, values: list[float], order: random.Random) -> None:
        """Sums of doubles differ by at most 1e-9 of the sum of magnitudes."""
        order.shuffle(values)
        merged = Row(0)
        for value in values:
            merged = merge(merged, Row(1, value, value, value))
        exact = sum(Fraction(value) for value in values)
        scale = sum(abs(Fraction(value)) for value in values)
        assert merged.sum is not None
        assert abs(Fraction(merged.sum) - exact) <= Fraction(1, 10**9) * scale

    def test_a_bare_count_adds_nothing_but_its_count(self) -> None:
        """A row without a value leaves sum, min and max of the other as they are."""
        assert merge(Row(2), Row(1, 5.0, 5.0, 5.0)) == Row(3, 5.0, 5.0, 5.0)
        assert merge(Row(1, 5.0, 5.0, 5.0), Row(2)) == Row(3, 5.0, 5.0, 5.0)

    def test_sketches_merge(self) -> None:
        """A merged row has sketches of both: every value counted once a sketch."""
        both = merge(row_of([1.0, 2.0]), row_of([2.0, 3.0]))
        assert both.hll is not None
        assert both.kll is not None
        assert round(ds.hll_sketch.deserialize(both.hll).get_estimate()) == 3
        assert ds.kll_doubles_sketch.deserialize(both.kll).n == 4

    def test_packed(self) -> None:
        """The writer's step is merge between decode and encode; nothing stored is zero."""
        stored, added = Row(2, 9.0, 4.0, 5.0), Row(1, 2.0, 2.0, 2.0)
        assert decode(merge_packed(encode(stored), added)) == merge(stored, added)
        assert merge_packed(None, added) == encode(added)


class TestPart:
    def test_empty_sketches_become_none(self) -> None:
        """What Spark writes for a group of nulls only is not kept."""
        empty_hll = ds.hll_sketch(12).serialize_updatable()
        assert len(empty_hll) == 40
        assert part(
            1, (None, None, None), empty_hll, ds.kll_doubles_sketch(200).serialize()
        ) == Row(1)

    def test_a_sketch_of_one_value_stays(self) -> None:
        """One value takes 40 bytes as well, and must not be taken for none."""
        one = ds.hll_sketch(12)
        one.update("u1")
        row = part(1, (None, None, None), one.serialize_updatable(), None)
        assert row.hll is not None
        assert len(row.hll) == 12
