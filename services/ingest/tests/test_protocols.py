"""How bodies are cut into items: the same items as the plain way, and an end at the limit."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weir.problems import ProblemError
from weir_ingest.protocols.batch import cut
from weir_ingest.protocols.json_text import join_object, split_array, split_object

PIECES = st.lists(st.sampled_from([b"\n", b"\x1e", b" ", b"\r", b"\t", b"a", b'{"b":1}', b"\x0b"]))


@given(PIECES, st.sampled_from([b"\n", b"\x1e"]))
def test_cut_equals_split(pieces: list[bytes], separator: bytes) -> None:
    """Cutting gives what splitting gives, without the blank texts."""
    body = b"".join(pieces)

    found = cut(body, separator, 1_000)

    assert found == [text for text in body.split(separator) if text and not text.isspace()]


VALUES = st.recursive(
    st.one_of(st.integers(-9, 9), st.sampled_from(["", ",", "]", 'q"', "\\", "\ud83d", "é\\u"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.just("a,"), inner),
)


@given(st.lists(st.one_of(VALUES, st.just(float("nan"))), max_size=6), st.integers(6, 9))
def test_elements_are_the_clients_bytes(values: list[Any], limit: int) -> None:
    """Each element comes out as it was written, whatever a strict parser thinks of it."""
    texts = [json.dumps(value).encode() for value in values]

    assert split_array(b"[" + b" , ".join(texts) + b"]", limit) == texts


NAMES = st.sampled_from(["a", "b", 'q"', "\\", "é", "\U0001f600"])
NUMBERS = st.sampled_from(["1", "12", "1.5", "-1e3", "NaN", "-Infinity", "[1]", "[1,NaN]"])


@given(
    st.lists(st.tuples(NAMES, st.one_of(VALUES.map(json.dumps), NUMBERS)), max_size=6),
    st.sampled_from(["", " ", "\n\t"]),
)
def test_members_are_the_clients_bytes(members: list[tuple[str, str]], space: str) -> None:
    """Each member's value comes out as it was written; of a name twice the last counts."""
    inner = f"{space},{space}".join(f"{json.dumps(n)}{space}:{space}{v}" for n, v in members)
    body = f"{space}{{{space}{inner}{space}}}{space}".encode()

    found = split_object(body)

    assert found == {name: value.encode() for name, value in members}
    assert split_object(join_object(found)) == found


@pytest.mark.parametrize("limit", [3, 1_000])
def test_the_limit_from_both_sides(limit: int) -> None:
    """As many items as allowed are cut, one more is refused, in every form."""
    items = [b"[1,2]"] * limit

    assert split_array(b"[" + b",".join(items) + b"]", limit) == items
    assert cut(b"\n".join(items), b"\n", limit) == items
    message = f"at most {limit} events, got more; send them in parts"
    with pytest.raises(ProblemError, match=message):
        split_array(b" [" + b",".join([*items, b"1"]) + b"]", limit)
    with pytest.raises(ProblemError, match=message):
        cut(b"\n".join([*items, b"1"]), b"\n", limit)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"[1,2,3,4,5", "got more"),
        (b"[1,2", "body must be JSON; Input data was truncated"),
        (b"{}", "body must be JSON; Expected `array`, got `object`"),
        (b'{"a":[1,2,3,4,5]}', "body must be JSON; Expected `array`, got `object`"),
        (b"[1 2]", "body must be JSON; JSON is malformed"),
        (b"[" * 2_000, "data must nest at most 32 deep"),
    ],
)
def test_no_array(body: bytes, message: str) -> None:
    """What is no array within its limit is refused as what it is."""
    with pytest.raises(ProblemError, match=message):
        split_array(body, 3)


@pytest.mark.parametrize("unit", [b"1", b"{}", b"[]", b"NaN"])
def test_a_million_elements_take_no_memory(unit: bytes) -> None:
    """An array or lines far beyond the limit are refused before they are objects."""
    array = b"[" + (unit + b",") * 1_000_000 + b"1]"
    lines = (unit + b"\n") * 1_000_000
    with pytest.raises(ProblemError):
        split_array(array, 1_000)  # makes the type, once
    tracemalloc.start()
    try:
        with pytest.raises(ProblemError, match="got more"):
            split_array(array, 1_000)
        with pytest.raises(ProblemError, match="got more"):
            cut(lines, b"\n", 1_000)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert most < 3 * len(array) + 1_000_000


@pytest.mark.parametrize(("members", "refused"), [(100_000, False), (100_001, True)])
def test_an_object_that_is_read_by_hand_is_bounded(members: int, refused: bool) -> None:
    """With a number that JSON does not have, an object of far too many members is refused."""
    body = b'{"n":NaN,' + b",".join(b'"k":1' for _ in range(members - 1)) + b"}"

    if refused:
        with pytest.raises(ProblemError, match="at most 100000 members"):
            split_object(body)
    else:
        assert split_object(body) == {"n": b"NaN", "k": b"1"}
