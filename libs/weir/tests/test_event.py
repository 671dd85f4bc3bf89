"""The record of an event: fixed places, identity, key."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weir import event

# tenant, source, id, MD5 in hex: computed once with hashlib by hand, for Spark and others.
VECTORS = [
    ("default", "urn:weir:src:web", "o-1", "bcbdbea62aace7c5a9083bb29bc3e553"),
    ("", "", "", "8dd6bb7329a71449b0a1b292b5999164"),
    ("acme", "/shop", "Ünï 🎈", "03ce70ab037b69949da21716aab9c18e"),
]


def slow_digest(*parts: str) -> bytes:
    """Compute an identity digest the obvious way."""
    raw = b"".join(len(p.encode()).to_bytes(4, "big") + p.encode() for p in parts)
    return hashlib.md5(raw, usedforsecurity=False).digest()


class TestIdentityDigest:
    @pytest.mark.parametrize(("tenant", "source", "event_id", "want"), VECTORS)
    def test_vectors(self, tenant: str, source: str, event_id: str, want: str) -> None:
        """The digest of a known identity is the one that was always written."""
        assert event.identity_digest(tenant, source, event_id).hex() == want

    @given(st.text(), st.text(), st.text())
    def test_equals_the_obvious_way(self, tenant: str, source: str, event_id: str) -> None:
        """The quick digest equals the slow one for any Unicode."""
        want = slow_digest(tenant, source, event_id)

        assert event.identity_digest(tenant, source, event_id) == want

    def test_parts_do_not_run_into_each_other(self) -> None:
        """Moving a character from one part to the next makes another identity."""
        assert event.identity_digest("a", "bc", "d") != event.identity_digest("ab", "c", "d")


class TestRecord:
    @given(st.binary(min_size=16, max_size=16), st.integers(-(10**14), 10**15 - 1))
    def test_fixed_places(self, digest: bytes, time_ms: int) -> None:
        """Digest and time stand where the engine reads them, at any sign."""
        value = event.encode_record(digest.hex(), time_ms, {"id": "1"}, ("data", b"{}"))

        assert event.placed(value) == (digest, time_ms)
        assert value[event.DIGEST_AT : event.DIGEST_END] == digest.hex().encode()
        assert int(value[event.TIME_AT : event.TIME_END]) == time_ms

    def test_data_is_last_and_untouched(self) -> None:
        """The client's bytes end the record as they came."""
        value = event.encode_record("0" * 32, 0, {"id": "1"}, ("data", b'{"a": 1.10}'))

        assert value.endswith(b',"data":{"a": 1.10}}')

    @pytest.mark.parametrize(
        "value",
        [
            b"",
            b'{"weirid":"',
            b'{"weirid":"' + b"x" * 90,
            b'{"weirid":"%s","weirms":"+000001700000000"' % (b" " * 32),
            b'{"weirid":"%s","weirms":"+000001700000000"' % (b"A" * 32),
            b'{"weirid":"%s","weirms":"+1_700000_000000"' % (b"a" * 32),
            b'{"weirid":"%s","weirms":" 000001700000000"' % (b"a" * 32),
            b'{"weirid":"%s","weirms":"+00000170000000 "' % (b"a" * 32),
            b'{"weirid":"%s","weirms": "+00001700000000"' % (b"a" * 32),
        ],
    )
    def test_no_fixed_places(self, value: bytes) -> None:
        """A value without the fixed places is refused, not read as garbage."""
        with pytest.raises(ValueError, match="at their fixed places"):
            event.placed(value)

    def test_read_event(self) -> None:
        """A reader gets the event without the two members that repeat it."""
        value = event.encode_record("0" * 32, 0, {"id": "é"}, ("data", b'{"a":1}'))

        assert event.read_event(value) == {"id": "é", "data": {"a": 1}}

    def test_read_event_refuses(self) -> None:
        """A value that is no object is refused with the reason."""
        with pytest.raises(ValueError, match="must be one JSON object"):
            event.read_event(b"[1]")


class TestPartitionKey:
    @pytest.mark.parametrize(
        ("partitionkey", "subject", "built", "want"),
        [
            ("p", "s", True, b"p"),
            (None, "s", True, b"s"),
            (None, "s", False, b"id"),
            (None, None, True, b"id"),
        ],
    )
    def test_order(
        self, partitionkey: str | None, subject: str | None, built: bool, want: bytes
    ) -> None:
        """The key is partitionkey, else of events we build the subject, else the id."""
        assert event.partition_key("id", partitionkey, subject, built=built) == want


def test_a_long_source_is_not_remembered() -> None:
    """A source is as long as its client likes; its identities are those of any other."""
    for length, known in ((512, 1), (513, 0)):
        before = event._known_prefix.cache_info().currsize
        source = "s" * length
        assert event.identity_digest("acme", source, "1") == slow_digest("acme", source, "1")
        assert event._known_prefix.cache_info().currsize == before + known
