"""Taking who was erased out of the color slots, which pages give to series by their texts.

A slot is given once and kept without an end, so that a group is drawn alike for ever. The number
of slots given stays, so nobody else's color changes; a page that draws the series once more, as
after an event about somebody else, gives it another one.

A Redis whose users were set up for an earlier release may not let the engine at them. Names in
panes do not wait for that: it is told, and tried again.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
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
    # When to ask again for a tenant one of whose keys holds something else, and for all of them
    # (None) where Redis did not let.
    _again_s: dict[str | None, float] = field(default_factory=dict)
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
    def is_due(self) -> bool:
        """Whether some that could not be deleted are to be tried again."""
        return any(self._may_go(of) for of in self._again_s)

    def that_may_go(self, gone: Iterable[Erasure]) -> list[Erasure]:
        """Return those whose slots were not lately found to stay."""
        return [one for one in gone if self._may_go(one.tenant)]

    def forget(self, cycle: Cycle, gone: Iterable[Erasure]) -> Generator[bool, None, set[int]]:
        """Delete the slots of who was erased, where Redis lets; a step takes some milliseconds.

        Yields:
            That there may be more to do.

        Returns:
            The jobs of those of whom none is left.
        """
        fold, ask, done = cycle.stores.definitions.fold, cycle.stores.shards.ask, set[int]()
        for tenant, erased in _by_tenant(self.that_may_go(gone)).items():
            hashes = frozenset(one.hash for one in erased)
            subjects = Subjects(tenant, hashes, self.hash_key)
            try:
                foreign = yield from forget_colors(ask, fold, subjects)
            except NotPermittedError as error:
                self._try_again(None, error=str(error))
                break
            self._again_s.pop(None, None)
            if foreign:
                key, why = next(iter(foreign.items()))
                self._try_again(tenant, error=why, key=key, keys=len(foreign))
                continue
            self._again_s.pop(tenant, None)
            done.update(one.vid for one in erased)
        return done

    def _may_go(self, tenant: str | None) -> bool:
        now_s = self.clock.monotonic_s()
        return all(self._again_s.get(of, now_s) <= now_s for of in (None, tenant))

    def _try_again(self, tenant: str | None, **why: str | int) -> None:
        """Leave a tenant's for a while, or everybody's; told once, and again once it was mended."""
        if tenant not in self._again_s:
            LOG.warning("colors_not_deleted", **why)
        self._again_s[tenant] = self.clock.monotonic_s() + AGAIN_S


def _by_tenant(gone: Iterable[Erasure]) -> dict[str, list[Erasure]]:
    """Return who was erased, together by tenant."""
    found: dict[str, list[Erasure]] = {}
    for one in sorted(gone, key=lambda one: one.tenant):
        found.setdefault(one.tenant, []).append(one)
    return found


Ask = Callable[[Sequence[Command]], list[Any]]
"""Sends commands to Redis and returns their replies."""


def forget_colors(
    ask: Ask, fold: Definitions, subjects: Subjects
) -> Generator[bool, None, dict[str, str]]:
    """Delete the slots of series that name somebody; a step takes some milliseconds.

    Args:
        ask: Asks the Redis where they are.
        fold: The metrics that there are, and those that there were.
        subjects: Who was erased of a tenant.

    Yields:
        That there may be more to do.

    Returns:
        By key that somebody else has written there, what Redis said of it.

    Raises:
        NotPermittedError: If Redis does not let this user at them.
    """
    tenant, foreign = subjects.tenant, dict[str, str]()
    known = (*fold.current(tenant, "metric"), *fold.deleted(tenant, "metric"))
    for metric in sorted({one.name for one in known}):
        key = names.slots_key(tenant, metric)
        try:
            yield from _forget(ask, key, subjects)
        except WrongCommandError as error:
            foreign[key] = str(error)
    return foreign


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
