"""Which rules are watched: every version in force that is not stopped, of every tenant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import structlog
from weir.alerts.fold import Fold
from weir.alerts.messages import Watched
from weir.alerts.silences import Spell, spells
from weir.alerts.step import Series, end
from weir.alerts.watch import Change, Watch
from weir.changed import ChangedPanes
from weir.definitions.channel import Channel
from weir.definitions.history import Definition
from weir.definitions.rule import Rule
from weir.query.grouping import Group
from weir_reading.catalog import Catalog
from weir_reading.served import Metrics

from weir_analytics.alerts.signal_watch import SignalWatch

log = structlog.get_logger()


@dataclass
class Watching:
    """One rule and its watch.

    Attributes:
        watched: What its messages need.
        watch: Its series.
        error: Why it cannot be watched at present; empty if it can.
        rests_to_s: Until when it is left alone after an error, by the monotonic clock.
        missed: What of its metric changed meanwhile.
    """

    watched: Watched
    watch: Watch
    error: str = ""
    rests_to_s: float = 0.0
    missed: ChangedPanes = field(default_factory=ChangedPanes)


@dataclass
class WatchingItself:
    """One rule on a signal of Weir itself.

    Attributes:
        watched: What its messages need.
        watch: Its series.
        error: Why it cannot be watched at present; empty if it can.
    """

    watched: Watched
    watch: SignalWatch
    error: str = ""

    @property
    def newest(self) -> list[tuple[Group, float | None]]:
        """The newest readings, by group."""
        return list(self.watch.newest.items())


class Rules:
    """The rules that are watched, kept as definitions say.

    Attributes:
        watching: Rules on metrics, by vid of the rule's version.
        itself: Rules on signals of Weir itself, likewise.
    """

    def __init__(self, catalog: Catalog, fold: Fold, link: str) -> None:
        self._catalog, self._fold, self._link = catalog, fold, link
        self.watching: dict[int, Watching] = {}
        self.itself: dict[int, WatchingItself] = {}
        self._besides: dict[str, tuple[frozenset[str], tuple[Spell, ...]]] = {}

    def all(self) -> dict[int, Watching | WatchingItself]:
        """Return all rules that are watched, by vid of the rule's version."""
        return {**self.watching, **self.itself}

    def metrics(self, tenant: str) -> Metrics:
        """Return the metrics of a tenant."""
        return Metrics(self._catalog, tenant)

    def is_counted(self, watched: Watched) -> bool:
        """Tell whether counting of a rule's metric has begun: before, nothing is known of it."""
        counted = self._catalog.folded.activations
        found = self.metrics(watched.tenant).get(watched.rule.metric)
        return found is None or any(version.vid in counted for version in found.versions)

    def update(self) -> None:
        """Begin to watch what is new, and stop watching what is gone."""
        self._besides.clear()
        current = {one.vid: one for one in self._in_force()}
        for kept in (self.watching, self.itself):
            for vid in kept.keys() - current.keys():
                del kept[vid]
        for vid, definition in current.items():
            watched = self._watched(definition)
            known = self.watching.get(vid) or self.itself.get(vid)
            if known is None:
                log.info("rule_watched", rule=definition.name, version=definition.version)
                self._begin(definition, watched)
            else:
                known.watched = watched
            if isinstance(known, Watching):
                # What it lacked may be defined now.
                known.rests_to_s = 0.0

    def ended(self, through_ms: int, *, itself: bool = False) -> list[tuple[Watched, list[Change]]]:
        """Return what is to be told of versions that are known and no longer watched.

        Args:
            through_ms: Now: processed-through, or the clock for rules on Weir itself.
            itself: Whether of those; else of rules on metrics.
        """
        found = []
        for tenant, vid in sorted(self._fold.versions()):
            definition = self._catalog.folded.by_vid(vid)
            if definition is not None and _is_on_signal(definition) != itself:
                continue
            if (
                vid in self.watching
                or vid in self.itself
                or definition is None
                or definition.readable is None
            ):
                continue
            reason = self._reason(definition)
            changes = [
                Change(group, None, told)
                for group, series in self._fold.series(tenant, vid).items()
                if (told := end(series, through_ms, reason))
            ]
            self._fold.forget(tenant, vid)
            if changes:
                found.append((self._watched(definition), changes))
        return found

    def _in_force(self) -> Iterator[Definition]:
        for one in self._catalog.folded.current(kind="rule"):
            if isinstance(one.readable, Rule) and one.readable.mode != "stopped":
                yield one

    def _watched(self, definition: Definition) -> Watched:
        rule = definition.readable
        if not isinstance(rule, Rule):
            msg = f"version {definition.vid} must be a rule that this release can read"
            raise ValueError(msg)
        followers, silences = self._beside(definition.tenant)
        if rule.signal is not None and not rule.route.channels:
            # Nobody has said who looks after Weir, so everybody is told.
            channels = tuple(one.name for one in self._channels(definition.tenant))
            route = rule.route.model_copy(update={"channels": channels})
            rule = rule.model_copy(update={"route": route})
        return Watched(
            tenant=definition.tenant,
            vid=definition.vid,
            version=definition.version,
            rule=rule,
            unit=self.metrics(definition.tenant).unit(rule.metric, rule.aggregate),
            followers=followers,
            silences=silences,
            link=f"{self._link}/alerts/" if self._link else "",
        )

    def _beside(self, tenant: str) -> tuple[frozenset[str], tuple[Spell, ...]]:
        """Return a tenant's channels that follow everything, and its silences.

        The same for all of its rules, and looked up once: there may be thousands of each.
        """
        found = self._besides.get(tenant)
        if found is None:
            folded = self._catalog.folded
            silences = [one.name for one in folded.current(tenant, "silence")]
            followers = {one.name for one in self._channels(tenant) if one.follow == "all"}
            histories = (folded.history(tenant, "silence", name) for name in silences)
            known = tuple(spell for versions in histories for spell in spells(versions))
            found = self._besides[tenant] = frozenset(followers), known
        return found

    def _channels(self, tenant: str) -> list[Channel]:
        found = (one.readable for one in self._catalog.folded.current(tenant, "channel"))
        return [one for one in found if isinstance(one, Channel)]

    def _begin(self, definition: Definition, watched: Watched) -> None:
        """Begin to watch a version; its watch goes on where the records end."""
        series = {
            group: replace(one, tail=())
            for group, one in self._fold.series(definition.tenant, definition.vid).items()
        }
        rule = watched.rule
        if rule.signal is not None:
            itself = WatchingItself(watched, SignalWatch(rule, series))
            self.itself[definition.vid] = itself
        else:
            watch = self._begun(definition, rule, series)
            self.watching[definition.vid] = Watching(watched, watch)

    def settled_ms(self, one: Watching) -> int:
        """Return up to where a rule is settled: no less than was said, wherever a watch began."""
        said = self._fold.settled_ms(one.watched.tenant, one.watched.vid)
        return max(one.watch.settled_ms, said or 0)

    def _begun(self, definition: Definition, rule: Rule, series: Mapping[Group, Series]) -> Watch:
        """Return a watch of a rule on a metric.

        A new version looks back as long as it takes to fire: what is beyond the limit when
        a rule is written, or edited, is told at once.
        """
        begun_ms = definition.at_ms - rule.hold
        settled_ms = self._fold.settled_ms(definition.tenant, definition.vid)
        if settled_ms is None:
            return Watch(rule, begun_ms, series)
        return Watch.again(rule, begun_ms, settled_ms, series)

    def _reason(self, definition: Definition) -> str:
        now = self._catalog.folded.get(definition.tenant, "rule", definition.name)
        if now is None:
            return "the rule was deleted"
        return "the rule was stopped" if now.vid == definition.vid else "the rule was changed"


def _is_on_signal(definition: Definition) -> bool:
    rule = definition.readable
    return isinstance(rule, Rule) and rule.signal is not None
