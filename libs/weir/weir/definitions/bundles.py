"""Bundles: changes of several definitions that are written together, all taken or none.

Each change is a record of its own, whose offset is the `vid` of its version, and says to
which bundle it belongs and at which place. The records of a bundle stand one directly
behind the other in the log. Readers hold them until the last one has come; then all are
judged, and taken together or not at all (`fold.py`).

A bundle that has anything between its records, or no end, is none. So only one is held
at a time, and nothing happens between its first record and its last: what its changes
were made from, and whatever else is there, is the same for all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from weir.definitions.history import Definition
from weir.definitions.reading import number, text

MOST: Final = 500
"""Changes in one bundle. Part of format 2 of the records: another number would make readers of two
releases take different bundles for whole."""

BROKEN: Final = "of a bundle all or none: its records must stand one directly behind the other"


class BrokenError(Exception):
    """Something stands between the records of a bundle."""


@dataclass(frozen=True, slots=True)
class Place:
    """Which part of which bundle a record is.

    Attributes:
        id: The bundle; its writer draws it, so that no two bundles are taken for one.
        at: The record's place in it, from 0.
        of: How many records it has.
    """

    id: str
    at: int
    of: int


def read_place(told: Mapping[str, Any]) -> Place:
    """Return what a record says of its bundle.

    Raises:
        ValueError: If there is no such place, or the bundle is too large or none.
        KeyError: If a member is missing.
        TypeError: If a member is of another type.
    """
    found = Place(text(told["id"]), number(told["at"]), number(told["of"]))
    if not 2 <= found.of <= MOST or not 0 <= found.at < found.of:
        msg = f"a bundle must have 2 to {MOST} records, got place {found.at} of {found.of}"
        raise ValueError(msg)
    return found


class Held:
    """The changes of the bundle that is being read, in the order of the log."""

    def __init__(self) -> None:
        self._versions: list[Definition] = []
        self._next = Place("", 0, 0)
        self._left: list[Definition] = []

    def take(self, version: Definition, place: Place) -> tuple[Definition, ...] | None:
        """Hold a change; return all of its bundle if it is the last one, None before.

        Raises:
            BrokenError: If the record before it is not the one before it in the bundle.
        """
        if place.at == 0:
            self._leave()
        elif not self._versions or place != self._next or version.vid != self._end:
            raise BrokenError(BROKEN)
        self._versions.append(version)
        self._next = Place(place.id, place.at + 1, place.of)
        if place.at + 1 < place.of:
            return None
        whole, self._versions = tuple(self._versions), []
        return whole

    def left(self, offset: int) -> tuple[Definition, ...]:
        """Return the changes of a bundle that has no end, once, with the record that tells so.

        Args:
            offset: The record that was read last.
        """
        if self._versions and self._end != offset + 1:
            self._leave()
        left, self._left = tuple(self._left), []
        return left

    @property
    def _end(self) -> int:
        """The offset at which the next record must stand."""
        return self._versions[-1].vid + 1

    def _leave(self) -> None:
        self._left += self._versions
        self._versions = []
