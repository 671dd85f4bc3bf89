"""Taking who was erased out of the color slots, which pages give to series by their texts.

A slot is given once and kept without an end, so that a group is drawn alike for ever. The number
of slots given stays, so nobody else's color changes; a page that draws the series once more, as
after an event about somebody else, gives it another one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from weir import names
from weir.definitions.fold import Definitions
from weir.erasure import Subjects

from weir_analytics.panes.shard_wire import Command

FIELDS_AT_ONCE: Final = 1_000


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
