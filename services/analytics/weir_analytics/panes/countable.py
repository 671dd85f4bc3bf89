"""Which versions count a range of the log: each is made once for the definitions as they are.

Batches come some times a second, and no version is ever forgotten. Of all of them a range
concerns those that are counted still, and those that stopped behind where it begins; the others
are not looked at, and nothing is made of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from weir.definitions.fold import Definitions
from weir.definitions.history import Activation
from weir.definitions.serving import is_in_life

from weir_analytics.panes.activation import is_over, version_of
from weir_analytics.panes.batch import Offsets
from weir_analytics.panes.plan import Counted
from weir_analytics.panes.versions import Version


class Countable:
    """One look at the definitions; to be kept in a `FoldMemo`, and asked of it each time."""

    def __init__(self, definitions: Definitions, topic_id: str) -> None:
        """Make nothing yet: what is asked for is made, and kept.

        Args:
            definitions: The fold.
            topic_id: Kafka's id of the log.
        """
        self._definitions = definitions
        self._topic_id = topic_id
        self._on = sorted(definitions.activated.on)
        self._made: dict[int, Counted | None] = {}

    def counted(self, through_s: int, start: Offsets) -> list[Counted]:
        """Return the versions that may count something in some range of the log, in order.

        Args:
            through_s: Received time counted so far: a predecessor is done with once
                every pane before its cut is too old to be kept.
            start: Where the range begins, with the cuts that apply there.
        """
        stopped = self._definitions.activated.stopped_behind(self._topic_id, start)
        again = {vid for vid in stopped if not self._definitions.is_left_out(vid)}
        return self._not_over(
            sorted(again.union(self._on)) if again else self._on, through_s, start
        )

    def rebuilt(self, through_s: int, at: Offsets) -> list[Counted]:
        """Return the versions that are counted again after a loss: those that somebody reads.

        A cut applies wherever in the log, as soon as live counting has come to its takeover: what
        lies on its other side was counted in vain, and is not counted a second time.

        Args:
            through_s: Received time counted so far.
            at: Where live counting stands.
        """
        return self._not_over(self._on, through_s, at)

    def filling(self, vids: Iterable[int], at: Offsets) -> list[Counted]:
        """Return versions as a backfill counts them: wherever in the log, between their cuts.

        All panes of one that does not serve yet; of others, after a loss, those that are read.

        Args:
            vids: The versions.
            at: Where live counting stands: takeovers up to there have happened.
        """
        found = (one for one in map(self._of, vids) if one is not None)
        return [replace(one, version=one.version.at(at).within) for one in found]

    def ended(self, through_s: int) -> list[int]:
        """Return the versions that will never count an event again: deleted, or over.

        None that is left out, as long as it is read. One that this release cannot read may be
        counted by the next: `is_readable` is for who asks to look at, of those that matter to it.
        """
        activations = self._definitions.activations
        read = (vid for vid, one in activations.items() if self._is_read(one))
        mine = (one.version for one in map(self._of, (*self._on, *read)) if one is not None)
        on = {version.vid for version in mine if not _has_ended(version, through_s)}
        return sorted(activations.keys() - on)

    def is_readable(self, vid: int) -> bool:
        """Tell whether this release can count a version: its text is read for that."""
        definition = self._definitions.by_vid(vid)
        return definition is not None and definition.metric is not None

    def _not_over(self, vids: Iterable[int], through_s: int, start: Offsets) -> list[Counted]:
        """Return those that have panes which may change or be read."""
        found: list[Counted] = []
        for one in map(self._of, vids):
            if one is not None:
                version = one.version.at(start)
                if not _has_ended(version, through_s):
                    is_same = version is one.version
                    found.append(one if is_same else replace(one, version=version))
        return found

    def _of(self, vid: int) -> Counted | None:
        """Return what the engine has to know of a version; None if this release cannot read it."""
        if vid not in self._made:
            definition = self._definitions.by_vid(vid)
            metric = definition.metric if definition is not None else None
            activated = self._definitions.activated
            self._made[vid] = (
                None
                if metric is None
                else Counted(
                    version_of(
                        activated.all[vid], metric, self._topic_id, activated.followed.get(vid)
                    ),
                    metric,
                )
            )
        return self._made[vid]

    def _is_read(self, one: Activation) -> bool:
        """Tell whether a version that is left out serves all the same."""
        is_left_out = self._definitions.is_left_out(one.vid)
        return (
            is_left_out
            and one.serves
            and is_in_life(self._definitions, one.tenant, one.name, one.vid)
        )


def _has_ended(version: Version, through_s: int) -> bool:
    return bool(version.cut_until) and is_over(version, through_s)
