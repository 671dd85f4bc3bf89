"""The catalog: what `weir.definitions` says, folded, with what readers look up often.

It lives on the loop and is changed by the follower only, so that nobody needs a lock.
"""

from __future__ import annotations

from collections.abc import Callable

from weir.batches import BatchRecord
from weir.commit import Offsets, furthest
from weir.definitions.fold import Definitions
from weir.definitions.history import Activation, Definition

from weir_reading.follower import Record
from weir_reading.passed_over import PassedOver

Place = tuple[str, str, str]


class Catalog:
    """All definitions of all tenants, and which versions are counted.

    Attributes:
        folded: The fold itself.
        activated_ms: By version, when the log took the record of its activation.
        filling: Versions that are being filled from the log, as the newest batch record says.
        reached: Offsets of the log as it is now that counting has come to, as batch records say;
            None before the first.
        passed_over: The records that changed nothing, and why.
    """

    def __init__(self) -> None:
        self.folded = Definitions()
        self.activated_ms: dict[int, int] = {}
        self.filling: frozenset[int] = frozenset()
        self.reached: Offsets | None = None
        self._ends: dict[int, Offsets] = {}
        self.passed_over = PassedOver()
        self._listeners: list[Callable[[set[Place]], None]] = []

    def listen(self, listener: Callable[[set[Place]], None]) -> None:
        """Call `listener` with the places that changed, after each change."""
        self._listeners.append(listener)

    @property
    def shards(self) -> int:
        """Return over how many shards the driver spreads series.

        Raises:
            NewerFormatError: If a newer release wrote definitions: it may have said otherwise.
        """
        self.folded.newer.check()
        start = self.folded.start()
        return start.shards if start is not None else 1

    @property
    def incomplete_before_ms(self) -> int:
        """Return before which start panes are incomplete, as the driver says; 0: none."""
        start = self.folded.start()
        return start.incomplete_before_ms if start is not None else 0

    def follow(self, record: BatchRecord) -> None:
        """Take note of a batch: versions take over with the batch that reaches their takeover."""
        before, self.filling = self.filling, filled_of(record)
        before_it = self._ends.get(record.epoch, {})
        self._ends[record.epoch] = furthest([before_it, record.to_offsets])
        self._reach()
        other = (before ^ self.filling) | set(record.takeovers)
        found = [one for vid in other if (one := self.folded.by_vid(vid)) is not None]
        if found:
            self._tell({one.place for one in found})

    def _reach(self) -> None:
        """Say how far counting has come in the log as it is now.

        Offsets of one that was given up are larger than any of this one for long. Which log an
        epoch counts stands in its start record, which may be read after its batches.
        """
        since, known = self.folded.log_since, self.folded.epoch() or 0
        here = {epoch: end for epoch, end in self._ends.items() if epoch >= since}
        if settled := [epoch for epoch in here if epoch <= known]:
            here[max(settled)] = furthest([here.pop(epoch) for epoch in settled])
        self._ends, self.reached = here, furthest(list(here.values())) if here else None

    def _tell(self, changed: set[Place]) -> None:
        for listener in self._listeners:
            listener(changed)

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
            self.passed_over.take(record, change)
            for found in change.versions:
                changed.add(found.place)
                self._take_definition(found)
            if (activation := change.activation) is not None:
                self.activated_ms.setdefault(activation.vid, record.at_ms)
                changed.add((activation.tenant, "metric", activation.name))
        self._reach()
        self._tell(changed)

    def _take_definition(self, found: Definition) -> None:
        """Take note of a version; a service that looks up more overrides this."""


def filled_of(record: BatchRecord) -> frozenset[int]:
    """Return the versions that are being filled from the log."""
    return frozenset(vid for lane in record.lanes for vid in lane.filled())
