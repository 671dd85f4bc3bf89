"""The catalog: what `weir.definitions` says, folded, with what readers look up often.

It lives on the loop and is changed by the follower only, so that nobody needs a lock.
"""

from __future__ import annotations

from collections.abc import Callable

import structlog
from weir.definitions.fold import Definitions, Outcome
from weir.definitions.history import Activation, Definition

from weir_reading.follower import Record

log = structlog.get_logger()
Place = tuple[str, str, str]


class Catalog:
    """All definitions of all tenants, and which versions are counted.

    Attributes:
        folded: The fold itself.
        activated_ms: By version, when the log took the record of its activation.
    """

    def __init__(self) -> None:
        self.folded = Definitions()
        self.activated_ms: dict[int, int] = {}
        self._listeners: list[Callable[[set[Place]], None]] = []

    def listen(self, listener: Callable[[set[Place]], None]) -> None:
        """Call `listener` with the places that changed, after each change."""
        self._listeners.append(listener)

    @property
    def shards(self) -> int:
        """Return over how many shards the driver spreads series."""
        start = self.folded.start()
        return start.shards if start is not None else 1

    @property
    def incomplete_before_ms(self) -> int:
        """Return before which start panes are incomplete, as the driver says; 0: none."""
        start = self.folded.start()
        return start.incomplete_before_ms if start is not None else 0

    def activation(self, vid: int) -> Activation | None:
        """Return from where a version is counted; None while, or once, it is not."""
        found = self.folded.activations.get(vid)
        return found if found is not None and found.finish is None else None

    def take(self, records: list[Record]) -> None:
        """Fold records in."""
        changed: set[Place] = set()
        for record in records:
            change = self.folded.apply(record.offset, record.key, record.value)
            if change is None:
                continue
            if change.outcome is Outcome.UNREADABLE:
                log.error("definition_unreadable", offset=record.offset, note=change.note)
            if isinstance(change.what, Definition):
                found = change.what
                changed.add((found.tenant, found.kind, found.name))
                self._take_definition(found)
            elif isinstance(change.what, Activation):
                self.activated_ms.setdefault(change.what.vid, record.at_ms)
                changed.add((change.what.tenant, "metric", change.what.name))
        for listener in self._listeners:
            listener(changed)

    def _take_definition(self, found: Definition) -> None:
        """Take note of a version; a service that looks up more overrides this."""
