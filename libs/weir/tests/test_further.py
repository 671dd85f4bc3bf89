"""Further members of rows: packed without loss, absent where nobody asks, merged in any order."""

from __future__ import annotations

from fractions import Fraction

import datasketches as ds
import pytest
from hypothesis import given
from hypothesis import strategies as st
from weir.formats import NewerFormatError
from weir.frequent import Texts
from weir.further import Further, Last, Moments, merge_moments
from weir.rows import Row, decode, encode, merge, merge_all
from weir.sets import Theta

doubles = st.floats(min_value=-1e100, max_value=1e100)
newest = st.builds(Last, st.integers(-(2**47), 2**47), st.binary(min_size=16, max_size=16), doubles)


def top(*texts: str) -> Texts:
    """Return a sketch of frequent texts."""
    sketch = ds.frequent_strings_sketch(10)
    for text in texts:
        sketch.update(text)
    return Texts(len(texts), bytes(sketch.serialize()))


def theta(*texts: str) -> Theta:
    """Return a sketch of a set."""
    sketch = ds.update_theta_sketch(12)
    for text in texts:
        sketch.update(text)
    return Theta(12, bytes(sketch.compact().serialize()))


further = st.builds(
    Further,
    st.none() | st.floats(0, 1e200),
    st.none() | newest,
    st.none() | st.builds(top, st.text(min_size=1, max_size=9)),
    st.none() | st.builds(theta, st.text(min_size=1, max_size=9)),
)


def row_of(values: list[float]) -> Row:
    """Return the row of events with these values, one made of each event's own row."""
    return merge_all(Row(1, x, x, x, further=Further(spread=0.0)) for x in values)


def spread_of(values: list[float]) -> Fraction:
    """Return the sum of the squared distances from the mean, exactly."""
    exact = [Fraction(value) for value in values]
    mean = sum(exact, Fraction(0)) / len(exact)
    return sum(((value - mean) ** 2 for value in exact), Fraction(0))


class TestPacked:
    @given(further, st.booleans())
    def test_reads_back(self, members: Further, valued: bool) -> None:
        """Every set of members comes back, beside the sketches that follow it."""
        total, low, high = (6.0, 1.0, 5.0) if valued else (None, None, None)
        row = Row(2, total, low, high, b"hll!", b"kll", members)
        assert decode(encode(row)) == row

    @pytest.mark.parametrize(
        ("members", "size"),
        [
            (Further(spread=1.0), 9),
            (Further(last=Last(0, bytes(16), 1.0)), 33),
            (Further(spread=1.0, last=Last(0, bytes(16), 1.0)), 41),
        ],
    )
    def test_size(self, members: Further, size: int) -> None:
        """A spread takes 9 bytes of a row that asks for it, a last value 33; others nothing."""
        plain = Row(40, 45_000.0, 300.0, 2000.0)
        packed = encode(Row(40, 45_000.0, 300.0, 2000.0, further=members))
        assert len(packed) == len(encode(plain)) + size

    def test_refuses_members_of_a_later_release(self) -> None:
        """A member that this release does not know is refused, not passed over."""
        words = "must be known, got 0x11; read it with the release"
        with pytest.raises(NewerFormatError, match=words):
            decode(b"\x41\x01\x11")

    def test_refuses_a_cut_row(self) -> None:
        """A row that lost its end within a member is refused."""
        members = Further(1.0, Last(5, bytes(16), 2.0), top("a"), theta("b"))
        whole = encode(Row(2, 3.0, 1.0, 2.0, further=members))
        for size in range(8, len(whole)):
            with pytest.raises(ValueError, match="must be whole, got"):
                decode(whole[:size])


class TestSpread:
    @given(st.lists(doubles, min_size=1, max_size=20), st.lists(doubles, max_size=20), st.randoms())
    def test_is_that_of_all_values(self, one: list[float], other: list[float], random) -> None:  # type: ignore[no-untyped-def]
        """Merged in any order and grouping it is the exact sum of squared distances."""
        values = one + other
        exact, scale = spread_of(values), max(map(abs, values)) ** 2 * len(values)
        random.shuffle(values)
        middle = random.randint(0, len(values))
        halves = [row_of(part) for part in (values[:middle], values[middle:]) if part]
        found = merge_all(halves)
        assert found.further is not None
        assert found.further.spread == pytest.approx(float(exact), rel=1e-9, abs=1e-12 * scale)

    def test_a_small_spread_around_a_large_mean(self) -> None:
        """Nine digits of offset leave the spread as it is: no large squares are subtracted."""
        values = [1e9 + x for x in (4.0, 7.0, 13.0, 16.0)]
        found = merge(row_of(values[:1]), row_of(values[1:]))
        assert found.further is not None
        assert found.further.spread == pytest.approx(90.0, rel=1e-12)

    @given(st.lists(doubles, min_size=1, max_size=9), st.lists(doubles, min_size=1, max_size=9))
    def test_two_rows_in_either_order(self, one: list[float], other: list[float]) -> None:
        """Merging is commutative to the last bit."""
        left, right = row_of(one), row_of(other)
        assert merge(left, right) == merge(right, left)

    def test_of_values_without_one_is_not_known(self) -> None:
        """Values whose spread nobody kept make that of all unknown; a bare count does not."""
        known = row_of([1.0, 3.0])
        assert merge(known, Row(2, 5.0, 2.0, 3.0)).further == Further()
        assert merge(known, Row(2)).further == known.further

    def test_chan(self) -> None:
        """The example by hand: 1, 3 and 5, 7 have spreads of 2 and 2, together 20."""
        assert merge_moments([Moments(2, 4.0, 2.0), Moments(2, 12.0, 2.0)]) == (4, 16.0, 20.0)


class TestLast:
    @given(st.lists(newest, min_size=1, max_size=8), st.randoms())
    def test_the_greatest_time_and_identity_wins(self, found: list[Last], random) -> None:  # type: ignore[no-untyped-def]
        """In any order the newest stays; of one time the greater identity."""
        want = max(found)
        random.shuffle(found)
        row = Row(0)
        for last in found:
            row = merge(row, Row(1, last.value, last.value, last.value, further=Further(last=last)))
        assert row.further is not None
        assert row.further.last == want

    def test_identity_decides_at_one_time(self) -> None:
        """Of two events at one millisecond the value of the greater digest is the last."""
        low, high = Last(7, b"\x01" + bytes(15), 9.0), Last(7, b"\x02" + bytes(15), 1.0)
        rows = [Row(1, x.value, x.value, x.value, further=Further(last=x)) for x in (high, low)]
        assert merge(*rows).further == Further(last=high)
