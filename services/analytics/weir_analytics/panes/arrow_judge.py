"""The fates that need what an event says, and what is known of every record besides.

What `records.judge` says of columns; pure.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from weir.erasure import subject_hash
from weir.event import DEFAULT_TENANT, FOREIGN_SOURCE, owner
from weir.problems import Reason

from weir_analytics.panes.arrow_account import NOT_LATE, Codes, Judged, Words
from weir_analytics.panes.arrow_decode import ENVELOPE
from weir_analytics.panes.arrow_events import Events
from weir_analytics.panes.arrow_groups import Longs
from weir_analytics.panes.arrow_members import values_in
from weir_analytics.panes.arrow_metrics import Mask, offsets_of
from weir_analytics.panes.arrow_plan import Told
from weir_analytics.panes.erased import SUBJECT
from weir_analytics.panes.kinds import Fate
from weir_analytics.panes.versions import LatePanes, late_panes

_NEVER_MS: Final = np.iinfo(np.int64).min


@dataclass(frozen=True)
class Records:
    """What the dispose step says of some records.

    Attributes:
        numbers: Partition, offset, kind, fate, R and `seen` of each, one array after the other.
        words: Tenant, source and reason of those that are told of them, by place.
    """

    numbers: tuple[npt.NDArray[Any], ...]
    words: dict[str, dict[int, str]] = field(
        default_factory=lambda: {"tenant": {}, "source": {}, "reason": {}}
    )


def judge(
    told: Told, events: Events, records: Records, final_through_ms: int | None
) -> tuple[Judged, Mask]:
    """Return what became of each record, and whether it is hidden from all metrics.

    A value that begins like an event but is none was forged by another producer: it is
    quarantined like any other junk. An event is beyond the horizon by R minus its time.

    Args:
        told: What is counted.
        events: The content of all records.
        records: What is known of them.
        final_through_ms: See `Batch`.
    """
    partition, offset, kind, fate, received_ms, seen = records.numbers
    types, own, source = map(events.members.words, ENVELOPE)
    forged = (fate <= Fate.DUPLICATE) & ((types.codes < 0) | (own.codes < 0))
    old = received_ms - events.times_ms > _beyond_ms(told, partition, offset)
    # The first event of an identity: its repetitions are duplicates, as ever.
    gone, unseen = _gone(told, events, fate == Fate.COUNTED, own)
    fate = fate.copy()
    fate[forged] = Fate.QUARANTINED
    fate[(fate == Fate.COUNTED) & old] = Fate.BEYOND_HORIZON
    fate[gone] = Fate.ERASED
    tenant = or_else(own, records.words["tenant"], DEFAULT_TENANT)
    judged = Judged(
        partition=partition,
        offset=offset,
        kind=kind,
        fate=fate,
        received_ms=received_ms,
        seen=seen,
        time_ms=events.times_ms,
        tenant=tenant,
        source=or_else(source, records.words["source"], FOREIGN_SOURCE),
        type=types,
        reason=_reasons(records.words["reason"], forged),
        forged=forged,
        late=_late(told, final_through_ms, events.times_ms, fate == Fate.COUNTED, tenant),
    )
    return judged, (fate != Fate.COUNTED) | unseen


def _beyond_ms(told: Told, partition: npt.NDArray[np.int32], offset: Longs) -> Longs:
    """Return from which age on each record is beyond."""
    (_begin, first_ms), *later = told.beyond
    found = np.full(len(offset), first_ms, np.int64)
    for begin, beyond_ms in later:
        found[offset >= offsets_of(begin, partition)] = beyond_ms
    return found


def _gone(told: Told, events: Events, is_first: Mask, tenant: Words) -> tuple[Mask, Mask]:
    """Return which events are about somebody erased, and which are unseen by all metrics.

    Args:
        told: What is counted.
        events: The content of all records.
        is_first: Which are to be looked at.
        tenant: Whose each is, as it says itself.
    """
    gone, unseen = np.zeros(len(is_first), bool), np.zeros(len(is_first), bool)
    erased = told.erased
    if erased is None:
        return gone, unseen
    tenants = {one for one, _hash in (*erased.subjects, *erased.later)}
    of_them = np.array([text in tenants for text in tenant.texts] + [False], bool)
    places = np.flatnonzero(is_first & of_them[tenant.codes])
    subjects = values_in(events.members.taken(SUBJECT[0]).at(places))
    hashed: dict[tuple[str, str], tuple[str, str]] = {}
    for at, subject in zip(places.tolist(), subjects, strict=True):
        owner = tenant.of(at)
        if not isinstance(subject, str) or owner is None:
            continue
        known = hashed.get((owner, subject))
        if known is None:
            known = owner, subject_hash(erased.hash_key, owner, subject)
            hashed[owner, subject] = known
        gone[at] = known in erased.subjects
        unseen[at] = known in erased.later
    return gone, unseen


def _late(
    told: Told, final_through_ms: int | None, times_ms: Longs, counted: Mask, tenant: Words
) -> Longs | None:
    """Return where the panes of late events start, see `Judged.late`; None: there is no such event.

    An ordinary batch costs one comparison an event.
    """
    late = late_panes((one.version for one in told.counted), final_through_ms)
    if not late:
        return None
    newest_ms = max(one.before_ms for one in late.values())
    at = np.flatnonzero(counted & (times_ms < newest_ms))
    if not len(at):
        return None
    # Of a tenant without metrics nothing is late.
    panes = [late.get(owner(text, "")[0], LatePanes(1, _NEVER_MS)) for text in tenant.texts]
    finest_s, before_ms = np.array(panes, np.int64).T
    at = at[times_ms[at] < before_ms[tenant.codes[at]]]
    start_s, finest_s = times_ms[at] // 1000, finest_s[tenant.codes[at]]
    found = np.full(len(times_ms), NOT_LATE, np.int64)
    found[at] = start_s // finest_s * finest_s
    return found


def or_else(own: Words, told: dict[int, str], default: str) -> Words:
    """Return what records say of themselves, else what is known of them, else a default."""
    places = {text: at for at, text in enumerate(own.texts)}
    otherwise = places.setdefault(default, len(places))
    codes: Codes = np.where(own.codes < 0, otherwise, own.codes).astype(np.int32)
    for at, text in told.items():
        if own.codes[at] < 0:
            codes[at] = places.setdefault(text, len(places))
    return Words(codes, list(places))


def _reasons(told: dict[int, str], forged: npt.NDArray[np.bool_]) -> Words:
    """Return why records are quarantined."""
    places = {Reason.NOT_AN_EVENT.value: 0}
    codes: Codes = np.where(forged, 0, -1).astype(np.int32)
    for at, text in told.items():
        if codes[at] < 0:
            codes[at] = places.setdefault(text, len(places))
    return Words(codes, list(places))
