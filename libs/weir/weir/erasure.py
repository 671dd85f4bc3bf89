"""Erasure: whose events count no more, known by a keyed hash of whom they are about.

A subject is the attribute `subject` of an event. What is stored is its HMAC-SHA256 (RFC 2104)
with the installation's `hash_key`, over the tenant and the subject: who reads the log of
definitions cannot try subjects without the key. An erasure holds for events at or after its
offsets, chosen like those of an activation; and, wherever in the log, for the versions of
metrics that are counted anew because of it.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from weir.borders import Borders
from weir.commit import Offsets, not_after
from weir.definitions.fold import Definitions
from weir.definitions.fold_memo import FoldMemo
from weir.definitions.history import Definition
from weir.definitions.job import Erase, Job
from weir.definitions.serving import serving
from weir.series import decode_series

PREFIX: Final = b"weir-erase\0"
"""What is hashed before tenant and subject: a hash for this is none for anything else."""

BLOCK: Final = 64
"""Length of a block of SHA-256 in bytes."""

_OFFSETS: Final = "offsets"
# Lanes side by side stand before other erasures, and go on by turns.
_KEPT: Final = 16


def subject_hash(hash_key: bytes, tenant: str, subject: str) -> str:
    """Return what an erasure is known by, in 64 lower-case hexadecimal digits."""
    message = PREFIX + tenant.encode() + b"\0" + subject.encode()
    return hmac.digest(hash_key, message, "sha256").hex()


def pads(hash_key: bytes) -> tuple[bytes, bytes]:
    """Return the inner and the outer pad of HMAC, for whoever computes it from hashes alone."""
    key = hashlib.sha256(hash_key).digest() if len(hash_key) > BLOCK else hash_key
    whole = key.ljust(BLOCK, b"\0")
    return bytes(b ^ 0x36 for b in whole), bytes(b ^ 0x5C for b in whole)


@dataclass(frozen=True)
class Erasure:
    """One subject of a tenant.

    Attributes:
        vid: The job that asked for it: the offset of its record.
        tenant: Whose.
        hash: What `subject_hash` returned.
        offsets: Partition -> offset: from there on it holds for everything.
        topic_id: Kafka's id of the log that the offsets are of.
    """

    vid: int
    tenant: str
    hash: str
    offsets: Mapping[int, int]
    topic_id: str

    def holds(self, end: Offsets, topic_id: str) -> bool:
        """Tell whether it holds for a range that ends somewhere.

        A range that lies on both sides is counted without the subject: no part of it may be
        counted with it. In another log it holds everywhere.
        """
        return self.topic_id != topic_id or not not_after(end, self.offsets)

    def within(self, topic_id: str) -> Erasure:
        """Return it with the offsets that it has in a log: in another one it holds everywhere."""
        return self if self.topic_id == topic_id else replace(self, offsets={}, topic_id=topic_id)


def erasures(definitions: Definitions) -> list[Erasure]:
    """Return the erasures that hold from somewhere on, by the jobs that asked for them.

    For ever, whatever became of the job: a batch that is run again must leave out the same.
    """
    found: list[Erasure] = []
    for vid, report in definitions.jobs.items():
        definition = definitions.by_vid(vid)
        model = definition.readable if definition is not None else None
        if definition is None or not isinstance(model, Job) or not isinstance(model.do, Erase):
            continue
        if _OFFSETS in report.facts:
            found.append(_erasure(vid, definition.tenant, model.do, report.facts))
    return found


def _erasure(vid: int, tenant: str, wanted: Erase, facts: Mapping[str, Any]) -> Erasure:
    offsets = {int(p): int(n) for p, n in facts[_OFFSETS].items()}
    return Erasure(vid, tenant, wanted.subject_hash, offsets, str(facts["topic_id"]))


class Erasures:
    """Those that hold somewhere in a log, found by where: most hold for all that comes.

    Attributes:
        subjects: (tenant, hash) of everybody.
        newest: By tenant, the vid of the newest.
        borders: The places from which they hold.
    """

    def __init__(self, found: Iterable[Erasure], topic_id: str) -> None:
        """Put erasures in the order in which they hold.

        Args:
            found: The erasures.
            topic_id: Kafka's id of the log; those of another one hold everywhere.
        """
        known = list(found)
        here = (one for one in known if one.topic_id == topic_id)
        self._here = sorted(here, key=lambda one: sum(one.offsets.values()))
        self._everywhere = _subjects(one for one in known if one.topic_id != topic_id)
        self._topic_id = topic_id
        self._upto: dict[int, frozenset[tuple[str, str]]] = {}
        self.subjects = _subjects(known)
        self.newest: dict[str, int] = {}
        for one in known:
            self.newest[one.tenant] = max(one.vid, self.newest.get(one.tenant, one.vid))
        self.borders = Borders(one.offsets for one in self._here)

    def within(self, end: Offsets) -> frozenset[tuple[str, str]]:
        """Return (tenant, hash) of those without whom a range is counted, by where it ends.

        The same object where the same erasures hold: each batch looks its plan up by it.
        """
        surely, at_most = self.borders.passed(end)
        if surely not in self._upto:
            if len(self._upto) >= _KEPT:
                self._upto.clear()
            self._upto[surely] = self._everywhere | _subjects(self._here[:surely])
        maybe = (one for one in self._here[surely:at_most] if one.holds(end, self._topic_id))
        also, found = _subjects(maybe), self._upto[surely]
        return found | also if also else found


class ErasuresMemo:
    """The erasures of a log by the definitions as they are: put in order where one more was said.

    Like any `FoldMemo` it is not to be shared between threads. Most records say nothing of
    erasures, and there may be tens of thousands.
    """

    def __init__(self, topic_id: str) -> None:
        self._topic_id = topic_id
        self._said: list[tuple[Definition | None, Mapping[str, Any]]] = []
        self._found = Erasures((), topic_id)
        self._memo = FoldMemo(self._look)

    def of(self, definitions: Definitions) -> Erasures:
        """Return the erasures that hold somewhere in the log."""
        return self._memo.of(definitions)

    def _look(self, definitions: Definitions) -> Erasures:
        reports = definitions.jobs.items()
        said = [(definitions.by_vid(v), r.facts) for v, r in reports if _OFFSETS in r.facts]
        if said != self._said:
            self._said, self._found = said, Erasures(erasures(definitions), self._topic_id)
        return self._found


def _subjects(found: Iterable[Erasure]) -> frozenset[tuple[str, str]]:
    return frozenset((one.tenant, one.hash) for one in found)


def serving_now(definitions: Definitions, tenant: str) -> dict[str, int]:
    """Return the vid of the newest version that serves, by metric; of those that are served."""
    counted = sorted(definitions.activated.names.get(tenant, ()))
    chains = ((name, serving(definitions, tenant, name)) for name in counted)
    return {name: chain[0].vid for name, chain in chains if chain}


def served_without(definitions: Definitions) -> list[Erasure]:
    """Return the erasures without which everything is served that the log can still tell.

    What older versions hold of their subjects is served then only where the log is too short
    to count it again.
    """
    by_tenant: dict[str, list[Erasure]] = {}
    for one in erasures(definitions):
        by_tenant.setdefault(one.tenant, []).append(one)
    found: list[Erasure] = []
    for tenant, asked in by_tenant.items():
        oldest = min(serving_now(definitions, tenant).values(), default=None)
        found += [one for one in asked if oldest is None or one.vid < oldest]
    return found


@dataclass(frozen=True)
class Subjects:
    """Who of a tenant was erased, to be found in what was counted before.

    Attributes:
        tenant: Whose.
        hashes: What `subject_hash` returned.
        hash_key: The installation's key; in no text of this.
    """

    tenant: str
    hashes: frozenset[str]
    hash_key: bytes = field(repr=False)

    def is_one(self, text: str) -> bool:
        """Tell whether a text is the subject of one of them, whole and letter by letter."""
        try:
            return subject_hash(self.hash_key, self.tenant, text) in self.hashes
        except UnicodeEncodeError:
            return False  # half of a surrogate pair: no subject that was accepted has one

    def are_named_by(self, series: str) -> bool:
        """Tell whether one of the values of a series is.

        Of a series text that was cut for its length only what is left of it is looked at.
        """
        try:
            values = decode_series(series)
        except ValueError:
            return False
        return any(value is not None and self.is_one(value) for value in values)
