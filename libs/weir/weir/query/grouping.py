"""Groups: which rows of a pane belong together, and which a filter leaves out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weir.query.conditions import Test, test_of
from weir.query.facts import Version
from weir.series import OTHER, decode_series, encode_series, fit, series_digest

# The values of the dimensions that are grouped by; None is the row `other` of a capped
# metric, whose values nobody knows.
Group = tuple[str | None, ...] | None
REST: Group = None
# Of a feed that is watched for days series come and go; to find one's group again is cheap.
MOST_KNOWN = 100_000
_K_TOTAL = 0
_K_OTHER = 1


class Grouping:
    """Gives each series text its group, for one version of a metric."""

    def __init__(self, version: Version, by: Sequence[str], where: Sequence[Any]) -> None:
        """Prepare for a version that has every dimension named here."""
        metric = version.metric
        self._size = len(metric.by)
        self._by = [_place(version, name) for name in by]
        self._tests: list[tuple[int, Test]] = [
            (_place(version, name), test_of(op, value)) for name, op, value in where
        ]
        self._known: dict[str, tuple[bool, Group]] = {}
        self.leaf = len(set(self._by)) == self._size
        """Whether a group is a single series, so that a row of its own is all of it."""

    def of(self, text: str) -> tuple[bool, Group]:
        """Return whether a series is asked for, and its group."""
        found = self._known.get(text)
        if found is None:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            found = self._known[text] = self._find(text)
        return found

    def _find(self, text: str) -> tuple[bool, Group]:
        if text == OTHER:
            # The total contains every series, known or not; a filter cannot judge it.
            return True, REST if self._by or self._tests else ()
        values = fit(decode_series(text), self._size)
        if not all(test(values[at]) for at, test in self._tests):
            return False, REST
        return True, tuple(values[at] for at in self._by)


def lacking(version: Version, names: Sequence[str]) -> list[str]:
    """Return the dimensions that a version does not have."""
    return [name for name in names if version.metric.dimension(name) is None]


def k_of(group: Group) -> int:
    """Return the number of a group, the same in every process and for ever.

    48 bits of the digest of its values, so that a client resumes on any replica; 0 is
    the total, 1 is `other`.
    """
    if group is None:
        return _K_OTHER
    if not group:
        return _K_TOTAL
    return int.from_bytes(series_digest(encode_series(group))[:6], "big")


def _place(version: Version, name: str) -> int:
    at = version.metric.dimension(name)
    if at is None:
        msg = f'version must have the dimension "{name}"; ask `lacking` first'
        raise ValueError(msg)
    return at
