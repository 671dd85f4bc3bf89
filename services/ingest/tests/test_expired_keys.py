"""Keys that expire: let in up to their instant, and from then on wrong ones as any other."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import pytest
from weir.clock import ManualClock
from weir.definitions.history import Definition
from weir.definitions.records import Edit, NewRecord, bundle_records, put_record
from weir.kafka import Kafka
from weir.problems import ProblemError
from weir_ingest.key_reader import KeyReader, stored_key
from weir_ingest.keys import Keys, StoredKey

from .in_process import ARRIVED_MS, CALLER, HASH_KEY, KEY, Request, ask

if TYPE_CHECKING:
    from confluent_kafka import Message as ReadMessage

END_MS = ARRIVED_MS
WRONG = f"wk_abcdefgh_{'x' * 32}".encode()


def keys_of(key: StoredKey, clock: ManualClock) -> Keys:
    """Return keys that are read to their end."""
    keys = Keys(HASH_KEY, clock)
    keys.replace([key])
    keys.ready = True
    return keys


def refusal(keys: Keys, token: bytes) -> ProblemError:
    """Return why a token is refused."""
    with pytest.raises(ProblemError) as refused:
        keys.caller(token)
    return refused.value


class TestKeys:
    @pytest.mark.parametrize("is_seen", [False, True])
    def test_let_in_up_to_its_instant(self, is_seen: bool) -> None:
        """A millisecond before it is let in, at it it is not, also if it was seen to be right."""
        clock = ManualClock(END_MS - 1)
        keys = keys_of(replace(CALLER, expires_ms=END_MS), clock)
        if is_seen:
            assert keys.caller(KEY.encode()).id == CALLER.id
        clock.advance(1)

        assert refusal(keys, KEY.encode()).status == 401
        clock.step(-1)
        assert keys.caller(KEY.encode()).id == CALLER.id

    def test_refused_as_a_wrong_one(self) -> None:
        """In the same words, before anybody asks for its scopes."""
        ended = replace(CALLER, expires_ms=END_MS, scopes=frozenset({"read"}))
        keys = keys_of(ended, ManualClock(END_MS))

        found = refusal(keys, KEY.encode())
        assert found.body() == refusal(keys, WRONG).body()
        assert found.message == (
            "a request must carry a valid key; send Authorization: Bearer wk_..."
        )

    def test_one_that_never_expires(self) -> None:
        """However late it is."""
        keys = keys_of(CALLER, ManualClock(253_402_300_799_999))

        assert keys.caller(KEY.encode()).id == CALLER.id

    def test_over_http(self) -> None:
        """Nothing is stored of what comes with an expired key."""
        clock = ManualClock(END_MS)
        keys = keys_of(replace(CALLER, expires_ms=END_MS), clock)
        sent = Request("/v1/events", b"{}", headers={"Authorization": f"Bearer {KEY}"})
        answer = ask(sent, keys=keys, clock=clock)

        assert (answer.status, answer.json["code"], answer.records) == (401, "unauthorized", [])


def test_a_stored_key_has_its_end_and_its_limits() -> None:
    """As its definition says; one without says none."""
    plain = {"kind": "key", "name": "a1b2c3d4", "hash": "0" * 64, "scopes": ["ingest"]}
    full = {"expires": "2027-01-15T08:00:00.5Z", "events_per_s": 5, "bytes_per_s": 7}

    def stored(members: Mapping[str, object]) -> StoredKey:
        text = json.dumps(members)
        return stored_key(Definition(1, "acme", "key", "a1b2c3d4", 1, None, "put", text, "", 0))

    old = StoredKey("a1b2c3d4", "acme", "0" * 64, frozenset({"ingest"}), "default")
    assert stored(plain) == old
    assert stored({**plain, **full}) == replace(
        old, expires_ms=1_800_000_000_500, events_per_s=5, bytes_per_s=7
    )


@dataclass(frozen=True)
class Message:
    """A record of `weir.definitions` as the consumer hands it over."""

    at: int
    record: NewRecord

    def offset(self) -> int:
        """Return where it stands."""
        return self.at

    def key(self) -> bytes:
        """Return its key."""
        return self.record.key

    def value(self) -> bytes:
        """Return its value."""
        return self.record.value


def test_a_rotation_is_taken_whole() -> None:
    """With its first record alone nothing has changed, with the second both keys are good."""
    reader = KeyReader(Kafka("127.0.0.1:1"), lambda *_: None)
    text = {"kind": "key", "hash": "0" * 64, "scopes": ["ingest"]}

    def edited(name: str, based_on: int | None, **more: object) -> tuple[Edit, str]:
        made = Edit("acme", "key", name, based_on, by="key:a", at_ms=1)
        return made, json.dumps({**text, "name": name, **more})

    def read(at: int, record: NewRecord) -> bool:
        return reader._fold(cast("ReadMessage", Message(at, record)))

    def ends() -> dict[str, int | None]:
        return {key.id: key.expires_ms for key in reader._known().keys}

    assert read(0, put_record(*edited("oldkey01", None)))
    new, old = edited("newkey01", None), edited("oldkey01", 1, expires="2027-01-15T08:00:00Z")
    first, second = bundle_records([new, old], "b")
    assert not read(1, first)
    assert ends() == {"oldkey01": None}
    assert read(2, second)
    assert ends() == {"oldkey01": 1_800_000_000_000, "newkey01": None}
