"""Which sampled events a tail shows: type, fields of the data, text. Pure."""

from __future__ import annotations

import fnmatch
import json
import operator
import re
from collections.abc import Callable
from typing import Any

from weir.live.messages import TailFilter
from weir.problems import ProblemError, Reason, echo

_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_PATH = re.compile(r"data(\.[^.\s]{1,128}){1,32}")
Event = dict[str, Any]


class Filter:
    """A compiled filter."""

    def __init__(self, wanted: TailFilter | None) -> None:
        """Compile a filter.

        Raises:
            ProblemError: 422 if a condition names no field of the data.
        """
        wanted = wanted or TailFilter()
        self._type = re.compile(fnmatch.translate(wanted.type)) if wanted.type else None
        self._text = wanted.text.lower() if wanted.text else None
        self._where = [_condition(*row) for row in wanted.where]

    def matches(self, event: Event) -> bool:
        """Tell whether an event is shown."""
        if self._type is not None and not self._type.match(str(event.get("type", ""))):
            return False
        if self._text is not None and not self._has_text(event, self._text):
            return False
        if not self._where:
            return True
        data = _parsed(event)
        return all(condition(data) for condition in self._where)

    def _has_text(self, event: Event, text: str) -> bool:
        places = (event.get(name) for name in ("data", "type", "id", "subject", "source"))
        return any(text in place.lower() for place in places if isinstance(place, str))


def _condition(path: str, op: str, wanted: Any) -> Callable[[Any], bool]:
    if not _PATH.fullmatch(path):
        msg = f'a condition must name a field such as "data.total", got "{echo(path)}"'
        raise ProblemError(422, Reason.QUERY_INVALID, msg)
    steps = path.split(".")[1:]

    def holds(data: Any) -> bool:
        found = data
        for step in steps:
            if not isinstance(found, dict) or step not in found:
                return False
            found = found[step]
        return _compare(found, op, wanted)

    return holds


def _compare(found: Any, op: str, wanted: Any) -> bool:
    """Compare two JSON values; different types are never equal and have no order."""
    alike = _kind(found) == _kind(wanted)
    if op == "=":
        return alike and bool(found == wanted)
    if op == "!=":
        return not (alike and found == wanted)
    ordered = alike and _kind(found) in {"number", "text"}
    return ordered and _COMPARE[op](found, wanted)


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "truth"
    if isinstance(value, int | float):
        return "number"
    return "text" if isinstance(value, str) else type(value).__name__


def _parsed(event: Event) -> Any:
    """Return the event's data, or None where it was cut or is not JSON."""
    if event.get("cut"):
        return None
    try:
        return json.loads(event.get("data") or "null")
    except (ValueError, RecursionError):
        return None
