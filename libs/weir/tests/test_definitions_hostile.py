"""Texts that another producer may have written: each is a definition or is refused in words.

Every process checks what it reads in `weir.definitions`. An error of any other type would
end the process, and again at each start, since the record stays in the log.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weir.definitions.check import check
from weir.definitions.kinds import KINDS
from weir.problems import ProblemError

GOOD: dict[str, dict[str, Any]] = {
    "metric": {
        "events": {"type": "shop.order", "source": "web"},
        "where": "data.total > 1",
        "value": "data.total",
        "unit": "€",
        "by": ["data.country"],
        "aggregates": ["count", "p95", "distinct(subject)"],
        "resolution": "10s",
        "keep": {"10s": "24h"},
        "allowed_lateness": "1m",
        "max_series": 10,
    },
    "rule": {
        "metric": "orders",
        "aggregate": "p95",
        "window": {"length": "5m", "step": "10s"},
        "by": ["country"],
        "where": [["country", "=", "NZ"]],
        "above": 4,
        "for": "1m",
        "recover": 3,
        "no_data": {"then": "keep", "tell_after": "1m"},
        "message": "{value}",
        "labels": {"team": "shop"},
        "route": {"channels": ["oncall"], "repeat": "1h"},
    },
    "channel": {"webhook": {"url": "https://a.example", "secret": "secret://a"}, "heartbeat": "1m"},
    "silence": {"rule": "few", "until": "2027-01-31T18:00:00Z", "where": [["a", "=", "b"]]},
    "board": {
        "title": "Shop",
        "tiles": [{"type": "chart", "metric": "orders", "aggregates": ["p50"], "window": "5m"}],
    },
    "source": {"title": "Web", "owner": "shop@example.com"},
    "key": {"name": "a1b2c3d4", "hash": "0" * 64, "scopes": ["read"], "source": "web"},
    "job": {"do": {"job": "audit", "metrics": ["orders"], "last": "1h", "sample": 5, "seed": 1}},
}
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=6,
)


def is_told(kind: str | None, name: str | None, given: Any) -> bool:
    """Return whether it was refused in words; an accepted one must be sendable as JSON."""
    try:
        found = check(kind, name, given)
    except ProblemError as problem:
        # A refusal that says nothing would be no answer; one that is no JSON, a fault of ours.
        return bool(problem.message and json.dumps(problem.body(), allow_nan=False))
    json.dumps(found.model.canonical(), allow_nan=False)
    return False


def members(kind: str) -> dict[str, Any]:
    """Return the members of a definition that is accepted."""
    return {"kind": kind, "name": "some_name", **GOOD[kind]}


def test_each_kind_is_tried() -> None:
    """What is spoilt below is accepted as it stands."""
    assert set(GOOD) == set(KINDS)
    for kind in GOOD:
        assert not is_told(kind, None, members(kind))


@given(st.data())
def test_any_value_of_any_member(data: st.DataObject) -> None:
    """Whatever JSON stands for one member, below it too, it is taken or refused in words."""
    spoilt = members(data.draw(st.sampled_from(sorted(GOOD))))
    at: Any = spoilt
    name = data.draw(st.sampled_from(sorted(spoilt)))
    while isinstance(at[name], dict | list) and at[name] and data.draw(st.booleans()):
        at[name] = at[name].copy()
        at = at[name]
        name = data.draw(st.sampled_from(list(at) if isinstance(at, dict) else range(len(at))))
    at[name] = data.draw(JSON)
    is_told(None, None, spoilt)


@given(st.text(max_size=80))
def test_any_text(text: str) -> None:
    """Whatever stands as the text, or as what a condition says, raises nothing else."""
    is_told("metric", "m", text)
    is_told(None, None, f"kind: metric\nname: m\nevents: {{type: t}}\nwhere: {json.dumps(text)}\n")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\x00",
        "kind: [metric]\nname: m\n",
        "kind: {a: 1}\nname: m\n",
        '{"kind": "metric", "max_series": ' + "1" * 5_000 + "}",
        "kind: metric\nname: m\nmax_series: " + "1" * 5_000,
        "kind: metric\nname: m\nevents: {type: t}\nmax_series: 1e999\n",
        "kind: silence\nname: m\nrule: r\nuntil: 0001-01-01T00:00:00+23:59\n",
        "kind: silence\nname: m\nrule: r\nuntil: 9999-12-31T23:59:59-23:59\n",
        "kind: metric\nname: m\nevents: {type: t}\nkeep: {[1]: 1h}\n",
        'kind: metric\nname: m\nevents: {type: t}\nwhere: "\\ud83d\\ude00"\n',
        "[" * 3_000,
        "a: " * 3_000,
        "- " * 3_000,
        "? " * 3_000,
        "kind: metric\nname: m\nevents: {type: t}\nwhere: '" + "not " * 3_000 + "data.a'\n",
        "kind: metric\nname: m\nevents: {type: t}\nwhere: '" + "-" * 3_000 + "1 > 0'\n",
    ],
)
def test_texts_that_were_meant_ill(text: str) -> None:
    """Each is refused in words."""
    assert is_told(None, None, text)
