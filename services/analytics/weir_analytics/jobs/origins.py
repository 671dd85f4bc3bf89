"""What became of the origins that a replay asks for: a share of them at a time. Pure.

There may be as many as a month has bad records. Where they are more than may be held, those
of one half are let go, and have their turn later. In which half one is, its text alone says:
so every copy of it and every note on it is met in the same turn, wherever in the log it stands.
"""

from __future__ import annotations

import zlib
from enum import Enum
from typing import NamedTuple


class Share(NamedTuple):
    """One of `of` equal parts of all origins."""

    at: int
    of: int

    def has(self, origin: str) -> bool:
        """Tell whether an origin is of it."""
        return zlib.crc32(origin.encode()) % self.of == self.at

    def halves(self) -> tuple[Share, Share]:
        """Return two that are this one together."""
        return Share(self.at, 2 * self.of), Share(self.at + self.of, 2 * self.of)


class Found(Enum):
    """What is known of an origin.

    Attributes:
        ASKED: It is asked for.
        BACK: It was put back before.
        JUDGED: It has had its turn: further copies of it are passed over.
    """

    ASKED = 1
    BACK = 2
    JUDGED = 3


class Origins:
    """The origins of one share after the other."""

    def __init__(self, most: int) -> None:
        """Begin with all of them as one share.

        Args:
            most: How many are held at most.
        """
        self._most = most
        self._share, self._later = Share(0, 1), list[Share]()
        self._found: dict[str, Found] = {}

    def __len__(self) -> int:
        """Return how many are held."""
        return len(self._found)

    @property
    def later(self) -> int:
        """How many shares have their turn after this one, as far as is known."""
        return len(self._later)

    def ask(self, origin: str) -> None:
        """Take an origin that is asked for, if it is of this share."""
        if not self._share.has(origin):
            return
        self._found.setdefault(origin, Found.ASKED)
        while len(self._found) > self._most:
            self._share, later = self._share.halves()
            self._later.append(later)
            self._found = {o: found for o, found in self._found.items() if self._share.has(o)}

    def put_back(self, origin: str) -> None:
        """Take that an origin was put back; nothing of one that nobody asks for."""
        if origin in self._found:
            self._found[origin] = Found.BACK

    def judge(self, origin: str) -> Found | None:
        """Return what is known of an origin, None if it is not of this share; once."""
        found = self._found.get(origin)
        if found is not None:
            self._found[origin] = Found.JUDGED
        return found

    def next_share(self) -> bool:
        """Go on with the next share; False if there is none."""
        self._found = {}
        if not self._later:
            return False
        self._share = self._later.pop()
        return True
