"""Taking who was erased out of the color slots, which pages give to series by their texts.

A slot is given once and kept without an end, so that a group is drawn alike for ever. The number
of slots given stays, so nobody else's color changes; a page that draws the series once more, as
after an event about somebody else, gives it another one.

A Redis whose users were set up for an earlier release may not let the engine at them. Names in
panes do not wait for that: it is told, and tried again.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import structlog
from weir import names
from weir.clock import Clock
from weir.definitions.fold import Definitions
from weir.erasure import Erasure, Subjects

from weir_analytics.panes.cycle import Cycle
from weir_analytics.panes.shard_wire import Command, NotPermittedError, WrongCommandError

LOG = structlog.get_logger()
FIELDS_AT_ONCE: Final = 1_000
AGAIN_S: Final = 3_600.0
"""After so long a Redis is asked again that did not let the engine at them."""
READERS_S: Final = 10.0
"""After so long an answer is drawn that was begun before its reader heard of a change."""


@dataclass
class Colors:
    """The slots of all tenants, as one life of a driver may reach them.

    Attributes:
        clock: Says when to ask again.
        hash_key: The installation's key.
    """

    clock: Clock
    hash_key: bytes
    _again_s: float | None = None
    # Until when a page may draw a series that is in no pane any more, and give it a slot.
    _drawn_until_s: float = 0.0

    def note_drawn(self) -> None:
        """Take note that readers may not have heard yet that a series is gone from panes."""
        self._drawn_until_s = self.clock.monotonic_s() + READERS_S

    @property
    def are_drawn(self) -> bool:
        """Whether pages may still draw such a series; what they draw has a slot again."""
        return self.clock.monotonic_s() < self._drawn_until_s

    @property
    def is_refused(self) -> bool:
        """Whether Redis has lately not let the engine at them."""
        return self._again_s is not None and self.clock.monotonic_s() < self._again_s

    @property
    def is_due(self) -> bool:
        """Whether Redis did not let the engine at them, and is to be asked again."""
        return self._again_s is not None and not self.is_refused

    def forget(self, cycle: Cycle, gone: Iterable[Erasure]) -> Generator[bool, None, bool]:
        """Delete the slots of who was erased, where Redis lets; a step takes some milliseconds.

        Yields:
            That there may be more to do.

        Returns:
            Whether none of them is left.
        """
        if self.is_refused:
            return False
        fold, subjects = cycle.stores.definitions.fold, _by_tenant(gone, self.hash_key)
        try:
            yield from forget_colors(cycle.stores.shards.ask, fold, subjects)
        except (NotPermittedError, WrongCommandError) as error:
            if self._again_s is None:
                LOG.warning("colors_not_deleted", error=str(error))
            self._again_s = self.clock.monotonic_s() + AGAIN_S
            return False
        self._again_s = None
        return True


def _by_tenant(gone: Iterable[Erasure], hash_key: bytes) -> list[Subjects]:
    """Return who was erased, together by tenant."""
    hashes: dict[str, set[str]] = {}
    for one in gone:
        hashes.setdefault(one.tenant, set()).add(one.hash)
    return [Subjects(of, frozenset(hashes[of]), hash_key) for of in sorted(hashes)]


Ask = Callable[[Sequence[Command]], list[Any]]
"""Sends commands to Redis and returns their replies."""


def forget_colors(ask: Ask, fold: Definitions, gone: Iterable[Subjects]) -> Iterator[bool]:
    """Delete the slots of series that name somebody; a step takes some milliseconds.

    Args:
        ask: Asks the Redis where they are.
        fold: The metrics that there are, and those that there were.
        gone: Who was erased, by tenant.

    Yields:
        That there may be more to do.
    """
    for subjects in gone:
        tenant = subjects.tenant
        known = (*fold.current(tenant, "metric"), *fold.deleted(tenant, "metric"))
        for metric in sorted({one.name for one in known}):
            yield from _forget(ask, names.slots_key(tenant, metric), subjects)


def _forget(ask: Ask, key: str, subjects: Subjects) -> Iterator[bool]:
    cursor = b"0"
    while True:
        scan: Command = ("HSCAN", key, cursor, "COUNT", FIELDS_AT_ONCE)
        cursor, pairs = ask([scan])[0]
        named = [field for field in pairs[::2] if names_one(field.decode(), subjects)]
        if named:
            ask([("HDEL", key, *named)])
        yield True
        if int(cursor) == 0:
            return


def names_one(field: str, subjects: Subjects) -> bool:
    """Tell whether a slot's field, dimensions and `:` before the text of a series, names somebody.

    Dimensions may hold a `:` as well. So each that there is may be the one before the text:
    at worst a color is given anew for nothing.
    """
    ends = (at for at, sign in enumerate(field) if sign == ":")
    return any(subjects.are_named_by(field[at + 1 :]) for at in ends)
