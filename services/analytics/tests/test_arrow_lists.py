"""Columns as lists: of every kind the values that Arrow itself gives, and of their types."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from weir_analytics.panes.arrow_lists import values_of

DRAWN = {
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.int32(): st.integers(-(2**31), 2**31 - 1),
    pa.int8(): st.integers(-128, 127),
    pa.float64(): st.floats(allow_nan=False),
    pa.string(): st.text(st.characters(exclude_categories=["Cs"])),
    pa.binary(): st.binary(),
    pa.bool_(): st.booleans(),
    pa.struct([("time_ms", pa.int64()), ("value", pa.float64())]): st.fixed_dictionaries(
        {"time_ms": st.none() | st.integers(0, 2**53), "value": st.none() | st.floats(0, 1)}
    ),
}
KINDS = pytest.mark.parametrize("kind", DRAWN, ids=str)


@KINDS
@given(drawn=st.data())
def test_a_column_is_what_arrow_says(kind: pa.DataType, drawn: st.DataObject) -> None:
    """Whatever is in it, nulls among it."""
    given_values = drawn.draw(st.lists(st.none() | DRAWN[kind]))

    found = values_of(pa.array(given_values, kind))

    assert found == given_values
    assert list(map(type, found)) == list(map(type, given_values))


@KINDS
@given(drawn=st.data())
def test_a_part_of_a_column(kind: pa.DataType, drawn: st.DataObject) -> None:
    """Its values begin and end within those of another."""
    given_values = drawn.draw(st.lists(st.none() | DRAWN[kind], min_size=3))

    assert values_of(pa.array(given_values, kind)[1:-1]) == given_values[1:-1]


def test_what_is_no_number_stays() -> None:
    """A null beside it is none of it."""
    found = values_of(pa.array([math.nan, None, -0.0, math.inf]))

    assert math.isnan(found[0])
    assert found[1] is None
    assert math.copysign(1, found[2]) == -1
    assert found[3] == math.inf
