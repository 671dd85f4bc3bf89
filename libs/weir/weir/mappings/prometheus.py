"""Samples of Prometheus' remote write (INGEST 4.8).

A sample, with the labels of its series, becomes an event of type `dev.weir.prom.sample` about its
metric; a native histogram `dev.weir.prom.histogram`, an exemplar `dev.weir.prom.exemplar`. Ids
and keys are digests: a sample sent again is the same event, and a series keeps its order.
"""

from __future__ import annotations

import collections.abc
import hashlib
from itertools import pairwise

import msgspec

from weir.attributes import Attributes, Member, read_text
from weir.event_time import TimeInvalidError, format_time
from weir.problems import Reason, echo
from weir.refusal import ItemRefusedError

PROTOCOL = "prom"
NAME = "__name__"

# What tells one from another; `ordinal` is the place among equal ones of a request.
_IDENTITY = ("labels", "exemplar", "histogram", "value", "timestamp", "ordinal")
_DIGITS = 32
_KEY_DIGITS = 16

_read_labels = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_read_pairs = msgspec.json.Decoder(list[tuple[str, str]]).decode
_read_timestamp = msgspec.json.Decoder(int).decode


def mapping(
    text: bytes,
    members: collections.abc.Mapping[str, Member],
    arrived_ms: int,  # noqa: ARG001 - mappings are called alike
) -> Attributes:
    """Return what a sample says of itself.

    Raises:
        ItemRefusedError: `not_an_event`, without labels or their `__name__`;
            `attribute_invalid`, `invalid_unicode` or `time_invalid`.
    """
    labels = members.get("labels", msgspec.Raw(b"null"))
    said = Attributes.bare(text)
    said.type = f"dev.weir.{PROTOCOL}.{_kind(members)}"
    said.subject = _name_in(labels)
    said.time_ms, said.time_text = _time_of(members.get("timestamp", msgspec.Raw(b"null")))
    said.id = _id_of(members)
    said.partition_key = hashlib.sha256(labels).hexdigest()[:_KEY_DIGITS]
    said.others["partitionkey"] = said.partition_key
    return said


def _kind(members: collections.abc.Mapping[str, Member]) -> str:
    return next((kind for kind in ("histogram", "exemplar") if kind in members), "sample")


def _name_in(labels: Member) -> str:
    """Return the metric's name, and check that no label's name is missing or there twice."""
    try:
        found = _read_labels(labels)
    except msgspec.MsgspecError:
        raise _not_labels(labels) from None
    if "" in found:
        message = "a label must have a name, got none"
        raise ItemRefusedError(Reason.ATTRIBUTE_INVALID, message)
    name = read_text(NAME, found[NAME]) if NAME in found else ""
    if not name:
        message = f"a series must have the label {NAME}, got none"
        raise ItemRefusedError(Reason.NOT_AN_EVENT, message)
    return name


def _not_labels(labels: Member) -> ItemRefusedError:
    """Return why labels are none: where a name is there twice, they come as pairs."""
    try:
        names = [name for name, _value in _read_pairs(labels)]
    except msgspec.MsgspecError:
        return ItemRefusedError(Reason.NOT_AN_EVENT, "a sample must have labels, got none")
    # They are sorted: a series may have tens of thousands.
    twice = next((name for name, after in pairwise(names) if name == after), "")
    message = f'a series must have each label once, got "{echo(twice)}" twice'
    return ItemRefusedError(Reason.ATTRIBUTE_INVALID, message)


def _time_of(raw: Member) -> tuple[int, str]:
    """Return a timestamp, which is in milliseconds whatever its size, and how it is written."""
    try:
        time_ms = _read_timestamp(raw)
        return time_ms, format_time(time_ms)
    except (msgspec.MsgspecError, OverflowError):
        got = bytes(raw)[:40].decode(errors="replace")
        message = f"timestamp must be milliseconds between the years 1 and 9999, got {echo(got)}"
        raise TimeInvalidError(message) from None


def _id_of(members: collections.abc.Mapping[str, Member]) -> str:
    digest = hashlib.sha256()
    for name in _IDENTITY:
        raw = bytes(members.get(name, b""))
        digest.update(len(raw).to_bytes(4, "big") + raw)
    return digest.hexdigest()[:_DIGITS]
