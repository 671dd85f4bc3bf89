"""What the live tail shows of a stored event."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

from weir.admission import Admitted, Terms, admit
from weir.expressions.paths import TEXT_ATTRIBUTES, TIME, Path
from weir_ingest.tail import entry_of

if TYPE_CHECKING:
    from confluent_kafka import Message

ARRIVED_MS = 1_772_359_200_500
TERMS = Terms("acme", "web", ARRIVED_MS, "cloudevents", strict=True, request_id="r-1")
EVENT: dict[str, Any] = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t"}


class Stored:
    """A message as Kafka acknowledged it."""

    def __init__(self, value: bytes) -> None:
        self._value = value

    def value(self) -> bytes:
        """Return the record."""
        return self._value

    def timestamp(self) -> tuple[int, int]:
        """Return when it was appended."""
        return 1, ARRIVED_MS + 7

    def partition(self) -> int:
        """Return where it is."""
        return 3

    def offset(self) -> int:
        """Return its place."""
        return 9


def shown(**members: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the entry of an event, and the event."""
    found = admit(json.dumps({**EVENT, **members}).encode(), 0, TERMS)
    assert isinstance(found, Admitted)
    return entry_of(cast("Message", Stored(found.value))), json.loads(found.value)


def test_an_entry_has_what_expressions_read() -> None:
    """Each attribute that an expression may read is in the entry, with the record's value."""
    entry, record = shown(
        **{"subject": "s", "partitionkey": "k", "time": "2026-03-01T11:00:00+01:00"},
        **{"sentat": "2026-03-01T10:00:00Z", "dataschema": "urn:x", "data": 1},
    )

    told = {**entry, **entry["attributes"]}
    assert {name: told[name] for name in TEXT_ATTRIBUTES} == {
        name: record[name] for name in TEXT_ATTRIBUTES
    }
    assert entry["time_ms"] == Path((TIME,)).read(record)
    assert not entry["attributes"].keys() & (entry.keys() - {"attributes"})
    assert "base64" not in entry


def test_what_an_event_lacks_is_not_there() -> None:
    """An attribute without a value has no member."""
    entry, _ = shown()

    ours = ["arrivedat", "ingestproto", "requestid", "requestpos", "timesrc"]
    assert sorted(entry["attributes"]) == ours


def test_extensions_are_shown_as_they_are_stored() -> None:
    """Extension attributes are in the entry with their JSON types, a few KB of them."""
    entry, record = shown(traceparent="00-4b-01", sequence=7, sampled=False, iodebeziumtxId="9")

    names = ("traceparent", "sequence", "sampled", "iodebeziumtxid")
    told = [entry["attributes"][name] for name in names]
    assert told == [Path(("extension", name)).read(record) for name in names]
    assert told == ["00-4b-01", 7, False, "9"]
    assert "specversion" not in entry["attributes"]
    many, _ = shown(**{f"x{at:03}": "y" * 100 for at in range(999)}, a="z" * 9_000)
    assert len(json.dumps(many)) < 12_000


def test_binary_data_is_told_apart() -> None:
    """Base64 is marked as such, and cut like any other data."""
    entry, _ = shown(data_base64="QUJD")
    long, _ = shown(data_base64="QUJD" * 5_000)

    assert (entry["base64"], entry["data"], entry["cut"]) == (True, '"QUJD"', False)
    assert (len(long["data"]), long["cut"]) == (8_192, True)


def test_an_entry_is_small() -> None:
    """No attribute of a client makes an entry large."""
    text = "x" * 150_000

    entry, _ = shown(subject=text, source=text, type=text, partitionkey=text, dataschema=text)

    assert len(json.dumps(entry)) < 30_000
    assert "partitionkey" not in entry["attributes"]
