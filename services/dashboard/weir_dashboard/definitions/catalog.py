"""The catalog: what `weir.definitions` says, folded.

It lives on the loop and is changed by the follower only, so that nobody needs a lock.
A record whose `based_on` is not the current version of its key is ignored, and so is a
driver record whose fence is not the latest start record of its job.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import structlog
from weir.definitions.base import DefinitionModel
from weir.definitions.budget import Budget
from weir.definitions.check import check
from weir.definitions.metric import Metric

from weir_dashboard.auth.callers import KeyRecord
from weir_dashboard.definitions.follower import Record

# What is stored was affordable when it was written, whatever the budget is now.
STORED = Budget(memory_bytes=2**62, rows_a_batch=2**62)

log = structlog.get_logger()
Place = tuple[str, str, str]


@dataclass(frozen=True)
class Version:
    """One edit of a definition.

    Attributes:
        tenant: Whose it is.
        kind: One of the kinds, such as `metric`.
        name: Its name among those of its kind.
        version: Counts its edits from 1.
        op: `put` or `delete`.
        text: What was written; empty for `delete`.
        by: Who wrote it.
        at_ms: When, by the writer's clock.
        vid: The offset of its record.
    """

    tenant: str
    kind: str
    name: str
    version: int
    op: str
    text: str
    by: str
    at_ms: int
    vid: int


@dataclass(frozen=True)
class Activation:
    """From where the driver counts a metric's version.

    Attributes:
        vid: The version.
        after: The version that it took over from, or None.
        cut: By resolution in seconds, from which pane on it serves.
        from_start: No event of the log lies before it.
    """

    vid: int
    after: int | None
    cut: dict[int, int] | None
    from_start: bool


class Catalog:
    """All definitions of all tenants, and which versions are counted.

    Attributes:
        shards: Over how many shards the driver spreads series.
    """

    def __init__(self) -> None:
        self.shards = 1
        self._edits: dict[Place, list[Version]] = {}
        self._keys: dict[str, KeyRecord] = {}
        self._activations: dict[int, Activation] = {}
        self._fences: dict[str, int] = {}
        self._models: dict[int, DefinitionModel] = {}
        self._listeners: list[Callable[[set[Place]], None]] = []

    def listen(self, listener: Callable[[set[Place]], None]) -> None:
        """Call `listener` with the places that changed, after each change."""
        self._listeners.append(listener)

    # ── reading ─────────────────────────────────────────────────────────────

    def current(self, tenant: str, kind: str, name: str) -> Version | None:
        """Return the version in force, or None where there is none or it was deleted."""
        edits = self._edits.get((tenant, kind, name))
        return edits[-1] if edits and edits[-1].op == "put" else None

    def history(self, tenant: str, kind: str, name: str) -> list[Version]:
        """Return all edits, the newest first."""
        return self._edits.get((tenant, kind, name), [])[::-1]

    def current_of(self, tenant: str, kind: str | None = None) -> list[Version]:
        """Return the versions in force of a tenant, by kind and name."""
        found = [
            edits[-1]
            for place, edits in self._edits.items()
            if place[0] == tenant and kind in (None, place[1]) and edits[-1].op == "put"
        ]
        return sorted(found, key=lambda version: (version.kind, version.name))

    def model(self, version: Version) -> DefinitionModel:
        """Return what a stored text means; each is read once."""
        if version.vid not in self._models:
            self._models[version.vid] = check(None, None, version.text, budget=STORED).model
        return self._models[version.vid]

    def metric(self, version: Version) -> Metric:
        """Return the model of a version of kind `metric`."""
        return cast("Metric", self.model(version))

    def key(self, key_id: str) -> KeyRecord | None:
        """Return the record of an API key that is not revoked, or None."""
        return self._keys.get(key_id)

    def has_keys(self, tenant: str) -> bool:
        """Tell whether a tenant ever had a key, revoked ones included."""
        return any(place[:2] == (tenant, "key") for place in self._edits)

    def activation(self, vid: int) -> Activation | None:
        """Return from where a version is counted, or None while it is not."""
        return self._activations.get(vid)

    # ── folding ─────────────────────────────────────────────────────────────

    def take(self, records: list[Record]) -> None:
        """Fold records in."""
        changed: set[Place] = set()
        for record in records:
            try:
                place = self._take_one(record)
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                log.error("definition_unreadable", offset=record.offset, error=str(error))
                continue
            if place is not None:
                changed.add(place)
        for listener in self._listeners:
            listener(changed)

    def _take_one(self, record: Record) -> Place | None:
        body = json.loads(record.value)
        if record.key.startswith(b"_/"):
            return self._take_driver(record, body)
        place: Place = (body["tenant"], body["kind"], body["name"])
        edits = self._edits.get(place, [])
        if (body["based_on"] or 0) != (edits[-1].version if edits else 0):
            return None
        version = Version(
            *place,
            version=int(body["version"]),
            op=body["op"],
            text=body.get("text") or "",
            by=body.get("by", ""),
            at_ms=int(body["at_ms"]),
            vid=record.offset,
        )
        self._edits[place] = [*edits, version]
        if version.kind == "key":
            self._take_key(version)
        return place

    def _take_key(self, version: Version) -> None:
        if version.op == "delete":
            self._keys.pop(version.name, None)
            return
        body = json.loads(version.text)
        self._keys[version.name] = KeyRecord(
            key_id=version.name,
            tenant=version.tenant,
            hash=body["hash"],
            scopes=frozenset(body["scopes"]),
            label=body.get("label", ""),
        )

    def _take_driver(self, record: Record, body: dict[str, Any]) -> Place | None:
        job = body.get("job", "panes")
        if body["record"] == "start":
            self._fences[job] = record.offset
            self.shards = int(body["shards"]) if job == "panes" else self.shards
            return None
        if body["record"] != "activation" or body["fence"] != self._fences.get(job):
            return None
        vid = int(body["vid"])
        if body["op"] == "stop":
            self._activations.pop(vid, None)
        else:
            self._activations[vid] = Activation(
                vid=vid,
                after=body.get("after"),
                cut=_cut(body.get("cut")),
                from_start=bool(body.get("from_start")),
            )
        return (body["tenant"], "metric", body["name"])


def _cut(written: dict[str, int] | None) -> dict[int, int] | None:
    return None if written is None else {int(res): start for res, start in written.items()}
