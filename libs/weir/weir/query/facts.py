"""What the engine is told about the world: metrics, their versions, how far time has come.

All of it comes from outside, at one revision; nothing here is looked up. Two processes
with the same facts and the same panes give the same answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from weir.rows import Row

# Version id, pane length in seconds, pane start in seconds: as in the pane's Redis key.
PaneKey = tuple[int, int, int]
# The rows of one pane, shards together: series text -> row.
PaneRows = Mapping[str, Row]


class MetricShape(Protocol):
    """What the engine reads of a metric's definition (`weir.definitions`)."""

    @property
    def name(self) -> str:
        """Its name."""
        ...

    @property
    def unit(self) -> str:
        """Unit of its value; empty for none."""
        ...

    @property
    def by(self) -> tuple[str, ...]:
        """Paths of its dimensions, in the order of the series text."""
        ...

    @property
    def counted(self) -> object:
        """Which events are counted, and which value of them: equal if two count the same."""
        ...

    @property
    def dimension_names(self) -> tuple[str, ...]:
        """What the dimensions are called in answers."""
        ...

    @property
    def aggregates(self) -> tuple[str, ...]:
        """What was declared, as written: `avg`, `p99`, `distinct(subject)`."""
        ...

    @property
    def keep_ms(self) -> Mapping[int, int]:
        """Pane length -> how long its panes are kept, ms."""
        ...

    @property
    def lateness_ms(self) -> int:
        """How long after its end a pane is provisional."""
        ...

    def dimension(self, name: str) -> int | None:
        """Return the place of a dimension called by its name or its path."""
        ...


class Span(NamedTuple):
    """Panes being counted again: those that start from `from_ms` and before `to_ms`."""

    from_ms: int
    to_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """A version of a metric that serves some of its panes.

    Attributes:
        vid: What its panes are stored under.
        number: The version as people count it.
        metric: Its definition.
        cut: Pane length in seconds -> start in seconds of the first pane that is this
            version's; earlier ones belong to the version before. None for the first.
        complete_from_ms: Panes that start earlier are incomplete, because counting began
            in the middle of the log; 0 where none lies before the activation.
        rebuilding: Whether it has not taken over yet, so that nothing of it can be shown.
    """

    vid: int
    number: int
    metric: MetricShape
    cut: Mapping[int, int] | None = None
    complete_from_ms: int = 0
    rebuilding: bool = False


class Stretch(NamedTuple):
    """The panes of one length that one version serves.

    Attributes:
        version: Which.
        from_ms: Start of the first; None if it serves all earlier ones.
        to_ms: Those that start from here on are of a newer version; None of the newest.
    """

    version: Version
    from_ms: int | None
    to_ms: int | None


@dataclass(frozen=True, slots=True)
class Served:
    """A metric as it is served: its versions, oldest first, each from its cut on."""

    versions: tuple[Version, ...]

    @property
    def newest(self) -> Version:
        """Return the version that counts the present."""
        return self.versions[-1]

    def only(self, number: int) -> Served | None:
        """Return one version alone, with all its panes; None if it is not served."""
        found = [version for version in self.versions if version.number == number]
        return Served((_uncut(found[0]),)) if found else None

    def at(self, pane_s: int, start_s: int) -> Version | None:
        """Return the version that a pane belongs to; None if it lies before all their cuts.

        The one it was left to is not served any more, and those that are do not count it.
        """
        for version in reversed(self.versions):
            if version.cut is None or start_s >= version.cut.get(pane_s, start_s + 1):
                return version
        return None

    def stretches(self, pane_ms: int) -> Iterator[Stretch]:
        """Yield what each version serves of panes of a length, the newest first; see `at`."""
        to_ms: int | None = None
        for version in reversed(self.versions):
            if version.cut is None:
                yield Stretch(version, None, to_ms)
                return
            if pane_ms // 1000 not in version.cut:
                continue
            from_ms = version.cut[pane_ms // 1000] * 1000
            if to_ms is None or from_ms < to_ms:
                yield Stretch(version, from_ms, to_ms)
                to_ms = from_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """How far counting has come, at one revision.

    Attributes:
        epoch: The life of the state that the panes belong to.
        rev: The revision they were read at; they may be newer, never older.
        processed_through_ms: Received time up to which all events are counted; None if
            nothing is known yet.
        now_ms: The wall clock: where "the last hour" ends, and what is no longer kept.
        incomplete_before_ms: Panes that start earlier lost part of their log.
        status: Freshness: live, behind, stale, rebuilding.
        fresh: Further members of the answer's `fresh`.
        rebuilding: Panes that are being counted again.
    """

    epoch: int
    rev: int
    processed_through_ms: int | None
    now_ms: int
    incomplete_before_ms: int = 0
    status: str = "live"
    fresh: Mapping[str, Any] = field(default_factory=dict)
    rebuilding: tuple[Span, ...] = ()


def _uncut(version: Version) -> Version:
    return Version(
        vid=version.vid,
        number=version.number,
        metric=version.metric,
        complete_from_ms=version.complete_from_ms,
        rebuilding=version.rebuilding,
    )
