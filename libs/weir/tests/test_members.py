"""Members of a record that are read one by one."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weir import members
from weir.members import DEEPEST, MemberReader, is_too_deep


class TestRead:
    def test_each_member_by_itself(self) -> None:
        """What cannot be read is null, and so is what is not there; all else is as it is."""
        reader = MemberReader(("type", "subject", "odd name"), ("x", "y", "z"))
        value = b'{"type":"t","odd name":1e400,"more":"\xff","data":{"x":1e400,"y":[1],"w":1e400}}'

        assert reader.read(value) == {
            "type": "t",
            "subject": None,
            "odd name": None,
            "data": {"x": None, "y": [1], "z": None},
        }

    @pytest.mark.parametrize(
        ("data", "x"),
        [
            *((b"5", None), (b"[1e400]", None), (b'"\xff"', None), (b"null", None), (b"{}", None)),
            *((b'{"x":1e400,"x":2}', 2), (b'{"x":2,"x":1e400}', None), (b'{"\xff":1,"x":3}', 3)),
            (b'{"x":1},"data":{"y":2}', None),
            (b'1e400,"data":{"x":4}', 4),
        ],
    )
    def test_of_two_members_of_one_name_the_last_counts(self, data: bytes, x: int | None) -> None:
        """Also if one of them cannot be read; data that is no object has no members."""
        found = MemberReader((), ("x",)).read(b'{"data":' + data + b"}")
        assert found == {"data": {"x": x}}

    @pytest.mark.parametrize(
        "value", [b"", b"{", b"[1]", b'{"x":NaN}', b'{"x":01}', b'{"x":"\\ud800"}', b"{}}", b"null"]
    )
    def test_what_is_no_object_has_none(self, value: bytes) -> None:
        """A grammar that does not hold is that of no event, whatever is read of it."""
        assert MemberReader(("x",), ()).read(value) is None
        assert MemberReader((), ()).read(value) is None


def test_deepest_is_counted_outside_strings() -> None:
    """At the limit a record is read, and a level more is too deep; brackets in texts are none."""
    held = [b'{"x":%s%s}' % (b"[" * n, b"]" * n) for n in (DEEPEST - 1, DEEPEST)]

    assert [is_too_deep(value) for value in held] == [False, True]
    assert MemberReader(("x",), ()).read(held[0]) is not None
    assert MemberReader(("x",), ()).read(held[1]) is None
    assert not is_too_deep(b'{"x":"%s"}' % (b"[" * 5_000))
    assert not is_too_deep(b"[%s1]" % (b"[]," * 5_000))


TEXTS = st.text(st.sampled_from('ab"\\[]{},:'), max_size=6)
NESTED = st.recursive(
    st.none() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=30,
)


@given(NESTED, TEXTS, st.integers(1, 6), st.sampled_from("[{"))
def test_how_deep_is_told_whatever_texts_hold(
    value: object, text: str, layers: int, kind: str
) -> None:
    """An event as ingest takes it is told at once, and a level too many is found around it."""
    assert members._is_shallow(json.dumps(value).encode())

    name = json.dumps(text).encode()
    begin, end = (b"[" + name + b",", b"]") if kind == "[" else (b"{" + name + b":", b"}")
    for deep in (DEEPEST, DEEPEST + layers):
        assert is_too_deep(begin * deep + name + end * deep) is (deep > DEEPEST)
