"""A line of an access log as an event, by a pattern that has a name or is the caller's own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from weir_cli.exits import UsageError
from weir_cli.sending.entries import Cutter, Entry, LineCutter, Point
from weir_cli.sending.fields import NotUnderstoodError, Shape, event_of

TYPE: Final = "web.request"
TIME: Final = "time"
_QUOTED: Final = r'"(?P<{}>(?:[^"\\]|\\.)*)"'
_COMMON: Final = (
    r"(?P<client>\S+) \S+ (?P<user>\S+(?: \S+)*?) \[(?P<time>[^\]]+)\] "
    rf"{_QUOTED.format('request')} (?P<status>\d{{3}}) (?P<bytes>\d+|-)"
)
_COMBINED: Final = f"{_COMMON} {_QUOTED.format('referrer')} {_QUOTED.format('agent')}"
PATTERNS: Final = {
    "combined": _COMBINED,
    "common": _COMMON,
    # That which nginx has in the configuration it comes with names proxies behind it.
    "nginx": f"{_COMBINED}(?: {_QUOTED.format('forwarded')})?",
}
"""Name -> the pattern of a whole line."""
_REQUEST: Final = re.compile(r"([A-Z][A-Z-]*) (\S+)(?: \S+)?")
_NUMBERS: Final = frozenset({"status", "bytes"})
# What a server writes where there is nothing.
_NOTHING: Final = "-"


class AccessLog:
    """An access log: a line is an event, its groups are fields of `data`."""

    word = "access-log"

    def __init__(self, pattern: str, shape: Shape) -> None:
        """Take a pattern.

        Args:
            pattern: The name of one, or a regular expression with named groups.
            shape: What the caller chose.

        Raises:
            UsageError: If the pattern cannot be used, or has no group that an option names.
        """
        self._name = pattern if pattern in PATTERNS else ""
        self._pattern = compiled(pattern)
        groups = self._pattern.groupindex
        for option, group in (*shape.chosen.items(), *(("--text", one) for one in shape.texts)):
            if group not in groups:
                msg = f'{option} must name a group of the pattern, got "{group}"; {_listed(groups)}'
                raise UsageError(msg)
        if not shape.time and TIME in groups:
            shape = replace(shape, time=TIME, apart=frozenset({TIME}))
        if self._name:
            shape = replace(shape, texts=frozenset(groups) - _NUMBERS)
        self._shape = shape

    def told(self) -> str:
        """Return what it is read as, in words."""
        return f"an access log by the pattern {self._name or self._pattern.pattern}"

    def cutter(self, at: Point) -> Cutter:
        """Return what cuts an input from a point on."""
        return LineCutter(at)

    def event(self, entry: Entry) -> bytes:
        """Return a line as it is sent.

        Raises:
            NotUnderstoodError: If it does not match, has no time where one is asked for, or no
                end: servers end each line, so one without is still being written.
        """
        if entry.is_cut:
            msg = "the last line must end with a line feed"
            raise NotUnderstoodError(msg)
        # Servers write what was asked for byte by byte, in whatever encoding that is.
        text = entry.raw.decode("utf-8", "backslashreplace").strip()
        found = self._pattern.fullmatch(text)
        if found is None:
            msg = f"a line must match the pattern {self._name}".rstrip()
            raise NotUnderstoodError(msg)
        groups = {
            name: value for name, value in found.groupdict().items() if value and value != _NOTHING
        }
        fields = _parts(groups) if self._name else groups
        return event_of(entry, fields, self._shape, TYPE)


def compiled(pattern: str) -> re.Pattern[str]:
    """Return a pattern by its name, or as it is written.

    Raises:
        UsageError: If it is no regular expression with named groups.
    """
    try:
        found = re.compile(PATTERNS.get(pattern, pattern))
    except (re.error, OverflowError) as error:
        msg = f"--pattern must be {_names()} or a regular expression, got {pattern!r}; {error}"
        raise UsageError(msg) from None
    if not found.groupindex:
        msg = (
            f"--pattern must be {_names()} or have named groups, such as (?P<path>\\S+), got"
            f" {pattern!r}; each group becomes a field"
        )
        raise UsageError(msg)
    return found


def _parts(groups: Mapping[str, str]) -> dict[str, str]:
    """Return the fields of a line: method and path where a request has them, and its class.

    A request that is none, as of a scanner, stays whole: the server has answered it.
    """
    fields = dict(groups)
    found = _REQUEST.fullmatch(groups.get("request", ""))
    if found is not None:
        del fields["request"]
        fields["method"], fields["path"] = found.groups()
    fields["status_class"] = f"{groups['status'][0]}xx"
    return fields


def _names() -> str:
    return ", ".join(PATTERNS)


def _listed(groups: Mapping[str, int]) -> str:
    return f"it has {', '.join(groups)}"
