"""The fold of `weir.definitions`: the same records in the same order, the same state.

Every process reads the topic from its start, without a group, and folds it here.
A record is decided by those before it alone:

- A change counts if the version that it was made from is the current one. So of
  two writers one wins, and each learns which by reading its own record back.
- Changes that are written together count all or not at all (`bundles.py`).
- A driver's record counts if its fence is the latest start of its job; a start is no more than a
  fence if its driver had not read the start before it (`Start.behind`).
- A version whose text cannot be used keeps its number and is not in force (`in_force.py`).

What cannot be read is passed over and told, never raised: anybody may write to the topic.
Of records of ours that a newer release wrote `newer` tells: whoever would count or answer
by the fold checks it first.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, Final

from weir import names
from weir.definitions.activated import Activated
from weir.definitions.bundles import BROKEN, BrokenError, Held, read_place
from weir.definitions.cut_short import CutShort
from weir.definitions.history import (
    Activation,
    ActiveMetric,
    Definition,
    Horizons,
    Lane,
    Spread,
    Start,
)
from weir.definitions.in_force import in_force
from weir.definitions.jobs import JobReport, read_report
from weir.definitions.outcomes import Change, Lost, Outcome
from weir.definitions.reading import (
    number,
    numbers,
    read_activation,
    read_change,
    read_horizons,
    read_lane,
    read_spread,
    read_start,
    read_takeover,
    text,
)
from weir.definitions.records import DRIVER_PREFIX
from weir.formats import Newer, refusal

_Place = tuple[str, str, str]


class Definitions:
    """All definitions of all tenants, and what the drivers said about them.

    Attributes:
        newer: What a newer release wrote.
    """

    def __init__(self) -> None:
        self.newer = Newer()
        self._versions: dict[_Place, list[Definition]] = {}
        self._by_vid: dict[int, Definition] = {}
        self._starts: dict[str, Start] = {}
        self._deletions: dict[_Place, int] = {}
        self._activated = Activated()
        self._log_since = 0
        self._cuts: list[CutShort] = []
        self._lanes: dict[int, Lane] = {}
        self._jobs: dict[int, JobReport] = {}
        self._aside: dict[int, str] = {}
        self._horizons: list[Horizons] = []
        self._spreads: list[Spread] = []
        self._held = Held()
        self._next_offset = 0

    # ── reading ─────────────────────────────────────────────────────────────

    @property
    def next_offset(self) -> int:
        """The offset after the last record folded."""
        return self._next_offset

    @property
    def activations(self) -> Mapping[int, Activation]:
        """Version -> from where to where it is counted, stopped ones included."""
        return self._activated.all

    @property
    def activated(self) -> Activated:
        """The same, by what is asked of all of them often."""
        return self._activated

    @property
    def lanes(self) -> Mapping[int, Lane]:
        """Offset of its record -> a backfill or rebuild, also one that is done."""
        return self._lanes

    @property
    def jobs(self) -> Mapping[int, JobReport]:
        """Job's vid -> what a driver said last of it."""
        return self._jobs

    @property
    def horizons(self) -> Sequence[Horizons]:
        """By what logs are counted, in the order of the records; see `weir.horizons`."""
        return self._horizons

    @property
    def spreads(self) -> Sequence[Spread]:
        """Over how many partitions logs are spread, in the order of the records."""
        return self._spreads

    def set_aside(self, vid: int) -> str | None:
        """Return why the engine does not count a version: it cannot; None if it may."""
        return self._aside.get(vid)

    def is_left_out(self, vid: int) -> bool:
        """Tell whether a version was counted until it could not be any more.

        What it has is kept. It is counted no further, so that its successor, or the same text
        as a new version, is filled from the log.
        """
        begun = self.activations.get(vid)
        return vid in self._aside and begun is not None and begun.finish is not None

    def left_out(self) -> list[Definition]:
        """Return the newest versions of metrics that are left out, oldest first.

        Not one that was edited since by a newer release: nothing can be based on it.
        """
        found = (one for one in self.current(kind="metric") if self.is_left_out(one.vid))
        newest = (one for one in found if one.metric and self.version(*one.place) == one.version)
        return sorted(newest, key=lambda definition: definition.vid)

    def get(self, tenant: str, kind: str, name: str) -> Definition | None:
        """Return the version in force; None if there is none or it is deleted."""
        return in_force(self._versions.get((tenant, kind, name), ()))

    def version(self, tenant: str, kind: str, name: str) -> int | None:
        """Return the number that a change must be based on, None if there never was one.

        Of a deleted definition that is the number of its deletion.
        """
        versions = self._versions.get((tenant, kind, name))
        return versions[-1].version if versions else None

    def current(self, tenant: str | None = None, kind: str | None = None) -> list[Definition]:
        """Return the versions in force, by tenant, kind and name.

        Args:
            tenant: Only of this one.
            kind: Only of this one.
        """
        places = sorted(
            place
            for place in self._versions
            if tenant in (None, place[0]) and kind in (None, place[1])
        )
        known = (in_force(self._versions[place]) for place in places)
        return [found for found in known if found is not None]

    def history(self, tenant: str, kind: str, name: str) -> list[Definition]:
        """Return all versions, deletions included, the newest first."""
        return self._versions.get((tenant, kind, name), [])[::-1]

    def deleted(self, tenant: str, kind: str) -> list[Definition]:
        """Return the deletions of what is no longer there, by name; `history` says what it was."""
        places = sorted(place for place in self._deletions if place[:2] == (tenant, kind))
        newest = (self._versions[place][-1] for place in places)
        return [one for one in newest if one.deleted]

    def last_deletion(self, tenant: str, kind: str, name: str) -> int | None:
        """Return the offset of a definition's last deletion, whatever came after; None: none."""
        return self._deletions.get((tenant, kind, name))

    def by_vid(self, vid: int) -> Definition | None:
        """Return the version whose record has an offset."""
        return self._by_vid.get(vid)

    def start(self, job: str = "panes") -> Start | None:
        """Return the latest start of a job."""
        return self._starts.get(job)

    def fence(self, job: str = "panes") -> int | None:
        """Return the offset of the latest start record of a job."""
        start = self._starts.get(job)
        return start.fence if start else None

    def epoch(self, job: str = "panes") -> int | None:
        """Return the epoch that the latest start of a job goes on with or begins."""
        start = self._starts.get(job)
        return start.epoch if start else None

    @property
    def log_since(self) -> int:
        """The epoch that began to count the log as it is now: before, there was another or more."""
        return self._log_since

    def cuts(self, topic_id: str) -> list[CutShort]:
        """Return where a log ended each time that it had lost its end, in order."""
        return [one for one in self._cuts if one.topic_id == topic_id]

    def metrics_active(self) -> list[ActiveMetric]:
        """Return the versions that are being counted, oldest first.

        One that this release cannot read is left out: `Definition.model` says why.
        """
        found = []
        for vid, activation in sorted(self._activated.on.items()):
            definition = self._by_vid.get(vid)
            if definition and definition.metric:
                found.append(ActiveMetric(definition, activation, definition.metric))
        return found

    def metrics_to_start(self) -> list[Definition]:
        """Return the current versions that nobody has begun to count, oldest first."""
        waiting = (d for d in self.current(kind="metric") if d.vid not in self.activations)
        return sorted((d for d in waiting if d.metric), key=lambda definition: definition.vid)

    # ── folding ─────────────────────────────────────────────────────────────

    def fork(self) -> Definitions:
        """Return another fold that knows the same; what it is given this one never sees.

        To ask what would follow from a driver's records before they are written. The part of a
        bundle whose end was not read yet is in neither.
        """
        twin = Definitions()
        vars(twin).update({name: copy(known) for name, known in vars(self).items()})
        twin._versions = {place: [*versions] for place, versions in self._versions.items()}
        twin._held = Held()
        return twin

    def apply(
        self, offset: int, key: bytes | str, value: bytes | Mapping[str, Any] | None
    ) -> Change | None:
        """Fold one record in.

        Args:
            offset: Where it stands in the topic.
            key: As it was read.
            value: As it was read, or already decoded.

        Returns:
            What became of it; None if a record at or behind `offset` was folded before,
            as when a reader begins again.
        """
        if offset < self._next_offset:
            return None
        self._next_offset = offset + 1
        change = self._read(offset, key, value)
        broken = tuple(Lost(one, BROKEN) for one in self._held.left(offset))
        return replace(change, lost=broken + change.lost) if broken else change

    def _read(
        self, offset: int, key: bytes | str, value: bytes | Mapping[str, Any] | None
    ) -> Change:
        try:
            written_key = key.decode() if isinstance(key, bytes) else key
            record = json.loads(value) if isinstance(value, bytes) else value
            if not isinstance(record, Mapping):
                return Change(offset, Outcome.UNREADABLE, note="not a JSON object")
            reader = READERS.get(record.get("v", 0))
            if reader is None:
                if _is_ours(written_key, record):
                    what = f"record {offset} of {names.DEFINITIONS}"
                    self.newer.meet(refusal(what, number(record["v"]), max(READERS)))
                return Change(offset, Outcome.UNKNOWN, note=f"format version {record.get('v')!r}")
            return reader(self, offset, written_key, record)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            return Change(offset, Outcome.UNREADABLE, note=repr(error)[:200])

    def _read_v1(self, offset: int, key: str, record: Mapping[str, Any]) -> Change:
        if not key.startswith(DRIVER_PREFIX):
            return self._read_change(offset, key, record)
        if record["record"] == "start":
            return self._read_start(offset, record)
        fence = self.fence(record["job"])
        if fence is None or record["fence"] != fence:
            return Change(offset, Outcome.FENCED, note=f"the fence is {fence}")
        reader = _DRIVER_READERS.get(record["record"])
        if reader is not None:
            return reader(self, offset, record)
        return Change(offset, Outcome.UNKNOWN, note=f"driver record {record['record']!r}")

    def _read_change(self, offset: int, key: str, record: Mapping[str, Any]) -> Change:
        definition = read_change(offset, key, record)
        why = self._conflict(definition)
        if why is not None:
            return Change(offset, Outcome.CONFLICT, note=why)
        self._take(definition)
        return Change(offset, Outcome.APPLIED, (definition,))

    def _read_v2(self, offset: int, key: str, record: Mapping[str, Any]) -> Change:
        """Read a change of a bundle: nothing else is written in this version."""
        definition = read_change(offset, key, record)
        try:
            whole = self._held.take(definition, read_place(record["bundle"]))
        except BrokenError:
            stray = (Lost(definition, BROKEN),)
            return Change(offset, Outcome.CONFLICT, note=BROKEN, lost=stray)
        if whole is None:
            return Change(offset, Outcome.HELD)
        whys = [f"{one.kind}/{one.name}: {why}" for one in whole if (why := self._conflict(one))]
        if len({one.place for one in whole}) < len(whole):
            whys.append("a definition is in the bundle twice")
        if whys:
            note = f"of a bundle all or none: {'; '.join(whys)}"
            lost = tuple(Lost(one, note) for one in whole)
            return Change(offset, Outcome.CONFLICT, note=note, lost=lost)
        for one in whole:
            self._take(one)
        return Change(offset, Outcome.APPLIED, whole)

    def _conflict(self, definition: Definition) -> str | None:
        """Return why a change does not follow on the current version; None if it does."""
        # A writer may say 0 or null for "there was none".
        current = self.version(*definition.place) or 0
        if (definition.based_on or 0) != current or definition.version != current + 1:
            return f"the current version is {current}"
        return None

    def _take(self, definition: Definition) -> None:
        self._versions.setdefault(definition.place, []).append(definition)
        self._by_vid[definition.vid] = definition
        if definition.deleted:
            self._deletions[definition.place] = definition.vid

    def _read_start(self, offset: int, record: Mapping[str, Any]) -> Change:
        read = read_start(offset, record)
        before = self._starts.get(read.job)
        start = read.behind(before)
        known = before.events_id if before is not None else None
        if start.events_id is not None and known not in (None, start.events_id):
            self._log_since = start.epoch
        if start.events_id is not None and start.cut_short is not None:
            self._cut(CutShort(start.epoch, start.events_id, start.cut_short))
        self._starts[start.job] = start
        return Change(offset, Outcome.APPLIED)

    def _cut(self, cut: CutShort) -> None:
        """Let all that was said of places that the log has lost stand at its end."""
        activated = Activated()
        for one in self.activations.values():
            activated.note(cut.activation(one))
        lanes = {n: cut.lane(one) for n, one in self._lanes.items()}
        horizons = [cut.horizons(one) for one in self._horizons]
        self._jobs = {n: cut.report(one) for n, one in self._jobs.items()}
        self._activated, self._lanes, self._horizons = activated, lanes, horizons
        self._cuts.append(cut)
        self._log_since = cut.epoch

    def _read_activation(self, offset: int, record: Mapping[str, Any]) -> Change:
        if record["op"] == "stop":
            vid = number(record["vid"])
            begun = self.activations.get(vid)
            if begun is None:
                return Change(offset, Outcome.UNREADABLE, note=f"{vid} was never started")
            activation = replace(begun, finish=numbers(record["offsets"]))
        else:
            activation = read_activation(offset, record)
        self._activated.note(activation)
        return Change(offset, Outcome.APPLIED, activation=activation)

    def _read_lane(self, offset: int, record: Mapping[str, Any]) -> Change:
        if record["kind"] not in ("backfill", "rebuild"):
            return Change(offset, Outcome.UNKNOWN, note=f"lane of kind {record['kind']!r}")
        self._lanes[offset] = read_lane(offset, record)
        return Change(offset, Outcome.APPLIED)

    def _read_job(self, offset: int, record: Mapping[str, Any]) -> Change:
        report = read_report(record)
        self._jobs[report.vid] = report
        return Change(offset, Outcome.APPLIED)

    def _read_aside(self, offset: int, record: Mapping[str, Any]) -> Change:
        vid, why = number(record["vid"]), record["why"]
        if why is None:
            self._aside.pop(vid, None)
        else:
            self._aside[vid] = text(why)
        return Change(offset, Outcome.APPLIED)

    def _read_horizons(self, offset: int, record: Mapping[str, Any]) -> Change:
        self._horizons.append(read_horizons(record))
        return Change(offset, Outcome.APPLIED)

    def _read_spread(self, offset: int, record: Mapping[str, Any]) -> Change:
        self._spreads.append(read_spread(record))
        return Change(offset, Outcome.APPLIED)

    def _read_takeover(self, offset: int, record: Mapping[str, Any]) -> Change:
        vid = number(record["vid"])
        begun = self.activations.get(vid)
        if begun is None or begun.takeover is not None:
            note = "was never started" if begun is None else "has taken over before"
            return Change(offset, Outcome.UNREADABLE, note=f"{vid} {note}")
        self._activated.note(activation := read_takeover(begun, offset, record))
        return Change(offset, Outcome.APPLIED, activation=activation)


_Reader = Callable[[Definitions, int, str, Mapping[str, Any]], Change]
READERS: Final[dict[int, _Reader]] = {1: Definitions._read_v1, 2: Definitions._read_v2}
"""A reader for every format version ever written; none is ever taken away."""

_DRIVER_READERS: Final[dict[str, Callable[[Definitions, int, Mapping[str, Any]], Change]]] = {
    "activation": Definitions._read_activation,
    "lane": Definitions._read_lane,
    "job": Definitions._read_job,
    "takeover": Definitions._read_takeover,
    "aside": Definitions._read_aside,
    "horizons": Definitions._read_horizons,
    "spread": Definitions._read_spread,
}


def _is_ours(key: str, record: Mapping[str, Any]) -> bool:
    """Tell whether a record names the place that its key does: so do those of every version."""
    if key.startswith(DRIVER_PREFIX):
        return key == f"{DRIVER_PREFIX}{record.get('record')}"
    return key == "/".join(str(record.get(member)) for member in ("tenant", "kind", "name"))
