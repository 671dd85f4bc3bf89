"""Asks what storing definitions would do, all of one call together."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from weir_cli.api import Answer, Api
from weir_cli.files import Written

# The dashboard judges 500 at once, in a body of 1,000,000 bytes.
MOST: Final = 400
MOST_BYTES: Final = 800_000


def planned(api: Api, definitions: Sequence[Written]) -> tuple[list[dict[str, Any]], Answer]:
    """Return what storing each would do, in their order, and the last answer.

    If that is a refusal, nothing was judged and the list is of no use.

    Raises:
        UnreachedError: If the dashboard did not answer in time.
    """
    found: dict[str, dict[str, Any]] = {}
    answer = Answer(200, {"items": []})
    for part in parts(definitions):
        texts = [{"kind": one.kind, "name": one.name, "text": one.text} for one in part]
        answer = api.call("POST", "/definitions/plan", {"definitions": texts})
        if not answer.is_ok:
            return [], answer
        for one, item in zip(part, answer.body["items"], strict=True):
            found.setdefault(one.title, item)
    return [found[one.title] for one in definitions], answer


def parts(definitions: Sequence[Written]) -> Iterator[list[Written]]:
    """Yield definitions as they are sent: few enough, each rule after the metric that it names.

    What metrics cost together is told of those that are sent together.
    """
    metrics = {one.name: one for one in definitions if one.kind == "metric"}
    part: dict[str, Written] = {}
    size = 0
    for one in definitions:
        named = metrics.get(one.metric) if one.kind == "rule" else None
        wanted = {w.title: w for w in (named, one) if w is not None}
        more = {title: w for title, w in wanted.items() if title not in part}
        if part and (len(part) + len(more) > MOST or size + _bytes(more) > MOST_BYTES):
            yield list(part.values())
            part, size, more = {}, 0, wanted
        part |= more
        size += _bytes(more)
    if part:
        yield list(part.values())


def _bytes(definitions: dict[str, Written]) -> int:
    return sum(len(json.dumps([w.kind, w.name, w.text])) + 50 for w in definitions.values())
