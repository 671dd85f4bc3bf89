"""What a recount remembers of the log, bounded: the panes that would not fit are left out. Pure.

Whether an event repeats another one hangs on the identities that came before it. Only those
are remembered of which some event would be counted in a pane of the sample, and of these as
many as there is room for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from typing import Final

from weir_analytics.jobs.sample import PaneAt

# Beyond what must go, so that it is not done for each event anew.
_SPARE: Final = 8


class Room:
    """How much is held for each pane; when it is too much in all, the largest ones have to go.

    Attributes:
        most: How much may be held in all.
        left_out: The panes for which nothing is held any more.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.left_out: set[PaneAt] = set()
        self._held: Counter[PaneAt] = Counter()
        self._in_all = 0

    def take(self, panes: Collection[PaneAt], size: int = 1) -> bool:
        """Hold one thing more for each of some panes; return whether any had to go.

        Args:
            panes: None of them was left out.
            size: For how much it counts.
        """
        for pane in panes:
            self._held[pane] += size
        self._in_all += size * len(panes)
        if self._in_all <= self.most:
            return False
        for pane, many in sorted(self._held.items(), key=lambda one: (-one[1], one[0])):
            if self._in_all <= self.most - self.most // _SPARE:
                break
            self.left_out.add(pane)
            self._in_all -= many
            del self._held[pane]
        return True

    def leave_out(self, panes: Iterable[PaneAt]) -> None:
        """Hold nothing more for some panes, whatever room there is."""
        for pane in panes:
            self.left_out.add(pane)
            self._in_all -= self._held.pop(pane, 0)


class Identities:
    """The identities of what lies in the panes of a sample, and when each was received last.

    First all that are wanted are told, then every record is asked about, in the order of its
    partition: only there can one repeat another.
    """

    def __init__(self, most: int) -> None:
        """Know none.

        Args:
            most: How many are remembered, each as often as it lies in panes.
        """
        self._room = Room(most)
        # Partition -> identity -> the panes for which it is remembered.
        self._wanted: dict[int, dict[bytes, frozenset[PaneAt]]] = {}
        self._latest: dict[int, dict[bytes, int | None]] = {}
        # Events of one time lie in the same panes: their set is held once.
        self._sets: dict[frozenset[PaneAt], frozenset[PaneAt]] = {}

    def __len__(self) -> int:
        """Return how many are remembered."""
        return sum(map(len, self._wanted.values())) + sum(map(len, self._latest.values()))

    @property
    def left_out(self) -> Collection[PaneAt]:
        """The panes for whose identities there is no room."""
        return self._room.left_out

    def want(self, partition: int, identity: bytes, panes: frozenset[PaneAt]) -> bool:
        """Remember an identity for some panes; return whether any had to go for that.

        Args:
            partition: Where an event of it stands.
            identity: Its digest.
            panes: Those in which the event would be counted; none of them was left out.
        """
        wanted = self._wanted.setdefault(partition, {})
        known = wanted.get(identity, frozenset())
        if panes <= known:
            return False
        both = panes | known
        wanted[identity] = self._sets.setdefault(both, both)
        if not self._room.take(panes - known):
            return False
        self._forget()
        return True

    def leave_out(self, panes: Iterable[PaneAt]) -> None:
        """Forget what is remembered for some panes only."""
        self._room.leave_out(panes)
        self._forget()

    def repeats(
        self, partition: int, identity: bytes, received_ms: int, horizon_ms: int
    ) -> bool | None:
        """Tell whether a record repeats one before it; None if nobody wants to know.

        Args:
            partition: Where it stands.
            identity: Its digest.
            received_ms: Its R.
            horizon_ms: How long after a record one of the same identity repeats it.
        """
        if partition not in self._latest:
            self._latest[partition] = dict.fromkeys(self._wanted.pop(partition, ()))
        latest = self._latest[partition]
        if identity not in latest:
            return None
        before, latest[identity] = latest[identity], received_ms
        return before is not None and received_ms - before <= horizon_ms

    def _forget(self) -> None:
        """Forget the identities that were remembered for panes that are left out only."""
        gone = self._room.left_out
        for partition, wanted in self._wanted.items():
            kept = {i: panes for i, panes in wanted.items() if not panes <= gone}
            self._wanted[partition] = kept
        self._sets = {panes: panes for panes in self._sets if not panes <= gone}
