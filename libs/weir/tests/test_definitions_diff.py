"""How versions differ: in letters, and in meaning."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from weir.definitions.check import check
from weir.definitions.diff import Difference, differences, text_diff

METRIC = "kind: metric\nname: m\nevents: {type: t}\nkeep: {10s: 24h, 1m: 7d}\n"
BOARD = "kind: board\nname: b\ntiles:\n- {type: note, text: one}\n"
NAMES = st.text(alphabet="ab/~", min_size=1, max_size=3)
VALUES = st.recursive(
    st.integers(0, 3) | st.booleans(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)


def meaning(text: str) -> dict[str, Any]:
    """Return a definition with its defaults."""
    return check(None, None, text).model.canonical()


def test_only_what_differs_is_named() -> None:
    """The place of each, with what was and what is; what is gone or new on one side."""
    changed = METRIC.replace("24h", "48h").replace("1m: 7d", "1h: 90d") + "unit: ms\n"
    found = {
        one.pointer: (one.old, one.new) for one in differences(*map(meaning, (METRIC, changed)))
    }
    assert found == {
        "/unit": ("", "ms"),
        "/keep/10s": ("1d", "2d"),
        "/keep/1m": ("7d", None),
        "/keep/1h": (None, "90d"),
    }


def test_a_comment_means_nothing() -> None:
    """Comments, order and spelled-out defaults change the text alone."""
    lines = METRIC.splitlines()
    same = "\n".join(["# why", lines[1], lines[0], *lines[2:], "max_series: 1000"])
    assert differences(meaning(METRIC), meaning(same)) == []
    assert "+# why" in text_diff(METRIC, same, old_name="a", new_name="b").splitlines()


def test_a_list_of_objects_is_gone_through() -> None:
    """Of a tile the member that differs is named; one that was added is whole."""
    more = BOARD.replace("one", "two") + "- {type: note, text: three}\n"
    found = differences(meaning(BOARD), meaning(more))
    assert found[0] == Difference("/tiles/0/text", "one", "two")
    assert (found[1].pointer, found[1].old, found[1].new["text"]) == ("/tiles/1", None, "three")


def test_texts() -> None:
    """A unified diff with both names; nothing where not a letter differs."""
    told = text_diff("a\nb\n", "a\nc\n", old_name="version 1", new_name="m.yaml")
    assert told.splitlines() == ["--- version 1", "+++ m.yaml", "@@ -1,2 +1,2 @@", " a", "-b", "+c"]
    assert text_diff("a\n", "a", old_name="x", new_name="y") == ""


@given(st.dictionaries(NAMES, VALUES, max_size=3), st.dictionaries(NAMES, VALUES, max_size=3))
def test_each_place_leads_to_what_it_says(old: dict[str, Any], new: dict[str, Any]) -> None:
    """Following a pointer by RFC 6901 gives the two values, and putting them in mends the old."""
    found = differences(old, new)
    mended = copy.deepcopy(old)
    for one in found:
        *way, last = (p.replace("~1", "/").replace("~0", "~") for p in one.pointer.split("/")[1:])
        at: Any = mended
        for part in way:
            at = at[int(part) if isinstance(at, list) else part]
        _put(at, last, one.new)
    assert _stripped(mended) == _stripped(new)


def _put(at: Any, last: str, value: Any) -> None:
    if not isinstance(at, list):
        at[last] = value
    elif int(last) < len(at):
        at[int(last)] = value
    else:
        at.append(value)


def _stripped(value: Any) -> Any:
    """Return a value without what is None: nothing that is there is None in these examples."""
    if isinstance(value, dict):
        return {name: _stripped(one) for name, one in value.items() if one is not None}
    if isinstance(value, list):
        return [_stripped(one) for one in value if one is not None]
    return value
