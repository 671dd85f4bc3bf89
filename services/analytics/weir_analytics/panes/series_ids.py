"""Short ids: two bytes that stand for a series in every pane of a version.

`ids:<vid>` maps the series' digest to its id; its field of zero bytes holds the last
id given, as 4 bytes big-endian. `names:<vid>` maps the id back to the series' text.
Ids are given inside the commit that first needs them. `other` has an id of its own, and a
name only where some pane has such a row: by that readers know that a metric is capped.

Of a version that lists them, `listed:<vid>:<owner>` has the ids of one owner's series. A series is
put there by each process that looks it up, so that a list that lacks some is made whole again; one
that it knows from a capped pane alone, when the process first counts it.

What a process has looked up stays true as long as nobody else has committed to the
shard, which the shard's token tells: another token empties the cache.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any, Final

from weir import names
from weir.series import OTHER, OTHER_ID, first_value, series_digest

from weir_analytics.panes.shard_wire import Argument, Command

LAST_FIELD: Final = b""
MAX_CACHED: Final = 500_000
_SHORT_IDS: Final = 0xFFFF


def short_id(number: int) -> bytes:
    """Return the id of a number from 1 on: 2 bytes big-endian, 4 beyond 65,535."""
    return number.to_bytes(2 if number <= _SHORT_IDS else 4, "big")


class SeriesIds:
    """The ids of one shard's series, as far as this process has needed them."""

    def __init__(self, shard: int) -> None:
        self._shard = shard
        self._token: str | None = None
        self._ids: dict[int, dict[str, bytes]] = {}
        self._series: dict[int, dict[bytes, str]] = {}
        self._last: dict[int, int] = {}
        self._new: dict[int, list[str]] = {}
        self._unlisted: dict[int, set[str]] = {}
        # Of versions that list series, those that are known from capped panes alone.
        self._met: dict[int, set[str]] = {}
        self._others: set[int] = set()
        self._new_others: set[int] = set()

    def drop(self) -> None:
        """Forget everything."""
        self._token = None
        self._ids, self._series, self._last, self._new = {}, {}, {}, {}
        self._unlisted, self._met = {}, {}
        self._others, self._new_others = set(), set()

    def hold(self, token: str | None) -> None:
        """Say that everything cached is true of the shard that has this token."""
        self._token = token
        self._new, self._new_others = {}, set()

    def stored(self, token: str) -> None:
        """Say that what was given since the last commit is stored, under this token."""
        self._others |= self._new_others
        self._unlisted = {}
        self.hold(token)

    def trim(self) -> None:
        """Forget everything if it is too much to keep in a worker."""
        if sum(map(len, self._ids.values())) > MAX_CACHED:
            self.drop()

    def is_current(self, token: str | None) -> bool:
        """Return whether what is cached is true of a shard with this token."""
        return token == self._token or not (self._last or self._others)

    def of(self, vid: int) -> Mapping[str, bytes]:
        """Return the ids of a version's series that were looked up and have one."""
        return self._ids.get(vid, {})

    # ── looking up ──────────────────────────────────────────────────────────
    def unknown(self, wanted: Mapping[int, Iterable[str]]) -> dict[int, list[str]]:
        """Return the series that have to be looked up, by version."""
        found: dict[int, list[str]] = {}
        for vid, texts in wanted.items():
            known = self._ids.get(vid)
            missing = [s for s in texts if known is None or s not in known]
            if missing:
                found[vid] = missing
        return found

    def lookups(self, unknown: Mapping[int, Sequence[str]]) -> list[Command]:
        """Return the commands that look series up; `learn` takes their replies."""
        return [
            ("HMGET", names.ids_key(self._shard, vid), LAST_FIELD, *map(series_digest, texts))
            for vid, texts in unknown.items()
        ]

    def learn(
        self,
        unknown: Mapping[int, Sequence[str]],
        replies: Sequence[Any],
        listed: Container[int] = (),
    ) -> None:
        """Take in what the look-ups found; of the versions that list series, to be listed."""
        for (vid, texts), (last, *ids) in zip(unknown.items(), replies, strict=True):
            self._last[vid] = int.from_bytes(last or b"", "big")
            known = self._ids.setdefault(vid, {})
            known.update((s, i) for s, i in zip(texts, ids, strict=True) if i is not None)
            if vid in listed:
                self._unlisted.setdefault(vid, set()).update(texts)

    @property
    def has_met(self) -> bool:
        """Whether there are series to be listed that are known from capped panes alone."""
        return bool(self._met)

    def note_counted(self, vid: int, texts: Iterable[str]) -> None:
        """Take in that series are counted, so that those of them that were only met are listed."""
        if met := self._met.get(vid):
            counted = met.intersection(texts)
            self._unlisted.setdefault(vid, set()).update(counted)
            met -= counted
            if not met:
                del self._met[vid]

    # ── giving ──────────────────────────────────────────────────────────────
    def give(self, vid: int, series: str) -> bytes:
        """Return the id of a series that was looked up, a new one if it has none."""
        found = self._ids[vid].get(series)
        if found is None:
            self._last[vid] += 1
            found = self._ids[vid][series] = short_id(self._last[vid])
            self._new.setdefault(vid, []).append(series)
        return found

    def give_other(self, vid: int) -> bytes:
        """Return the id of `other`, which is to have a name from now on."""
        if vid not in self._others:
            self._new_others.add(vid)
        return OTHER_ID

    def writes(self) -> list[Command]:
        """Return the commands that store the ids given since the last commit."""
        commands: list[Command] = [
            ("HSET", names.names_key(self._shard, vid), OTHER_ID, OTHER)
            for vid in sorted(self._new_others)
        ]
        for vid, texts in self._new.items():
            ids: list[Argument] = [LAST_FIELD, self._last[vid].to_bytes(4, "big")]
            back: list[Argument] = []
            for series in texts:
                number = self._ids[vid][series]
                ids += (series_digest(series), number)
                back += (number, series)
            commands.append(("HSET", names.ids_key(self._shard, vid), *ids))
            commands.append(("HSET", names.names_key(self._shard, vid), *back))
        return [*commands, *self._listings()]

    def _listings(self) -> list[Command]:
        """Return the commands that list the series that were looked up and have an id."""
        found: dict[str, list[Argument]] = {}
        for vid, texts in self._unlisted.items():
            for series in sorted(texts & self._ids[vid].keys()):
                key = names.listed_key(self._shard, vid, first_value(series))
                found.setdefault(key, []).append(self._ids[vid][series])
        return [("SADD", key, *ids) for key, ids in found.items()]

    # ── the way back, for capped panes ──────────────────────────────────────
    def unnamed(self, vid: int, ids: Iterable[bytes]) -> list[bytes]:
        """Return the ids whose series has to be looked up."""
        back = self._series.setdefault(vid, {})
        return [number for number in ids if number not in back]

    def learn_names(
        self, vid: int, ids: Sequence[bytes], texts: Sequence[bytes], listed: Container[int] = ()
    ) -> None:
        """Take in the series of ids; of versions that list series, to be listed once counted."""
        known, back = self._ids.setdefault(vid, {}), self._series[vid]
        for number, text in zip(ids, texts, strict=True):
            series = back[number] = text.decode()
            if vid in listed and series not in known:
                self._met.setdefault(vid, set()).add(series)
            known[series] = number

    def series(self, vid: int, number: bytes) -> str:
        """Return the series of an id that is known."""
        return self._series[vid][number]
