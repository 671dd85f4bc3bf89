"""The quarantine as its owner sees it, however much of others lies above."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest
from confluent_kafka import Producer
from weir import names
from weir_dashboard.store import quarantine

pytestmark = [pytest.mark.kafka, pytest.mark.redis]


class Quarantined:
    """Puts records into the topic as the engine does."""

    def __init__(self, bootstrap: str) -> None:
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
        self._copies = 0

    def put(
        self, tenant: str, value: bytes, *, reason: str = "invalid_json", times: int = 1
    ) -> str:
        """Put different records into one partition and return the last one's origin."""
        origin = ""
        for _ in range(times):
            self._copies += 1
            origin = f"weir.events/0/{id(self)}{self._copies}"
            self.again(tenant, value, origin, reason)
        return origin

    def again(self, tenant: str, value: bytes, origin: str, reason: str) -> None:
        """Put a record of an origin, perhaps once more."""
        headers: dict[str, str | bytes | None] = {
            names.HEADER_REASON: reason,
            names.HEADER_TENANT: tenant,
            names.HEADER_SOURCE: "http",
            names.HEADER_ORIGIN: origin,
        }
        self._producer.produce(
            names.QUARANTINE, value, origin.encode(), partition=0, headers=headers
        )
        self._producer.poll(0)

    def flush(self) -> None:
        """Wait until the log has all."""
        assert self._producer.flush(30) == 0


@pytest.fixture
def topic(kafka: str) -> Quarantined:
    """Return what puts records into the quarantine."""
    return Quarantined(kafka)


class TestList:
    def test_a_flood_of_another_tenant_hides_nothing(
        self, running: Any, topic: Quarantined
    ) -> None:
        """One's own record is found under thousands of somebody else's."""
        origin = topic.put("mine", b"{broken", reason="too_deep")
        topic.put("flood", b"x" * 100, times=3_000)
        topic.flush()
        with running.client(running.key_for("mine", ["read", "tail"])) as http:
            items = http.get("/quarantine").json()["items"]
            assert [(i["origin"], i["reason"], i["bytes"]) for i in items] == [
                (origin, "too_deep", 7)
            ]
            assert items[0]["text"] is None
            opened = http.get(f"/quarantine/{items[0]['id']}").json()
            assert opened["text"] == "{broken"
        with running.client(running.key_for("flood", ["read", "tail"])) as http:
            assert len(http.get("/quarantine", params={"limit": 500}).json()["items"]) == 500
            assert http.get(f"/quarantine/{items[0]['id']}").status_code == 404

    def test_by_reason_and_newest_first(self, running: Any, topic: Quarantined) -> None:
        """The limit counts what was asked for, and a copy is not told twice."""
        topic.put("sorted", b"a", reason="too_deep")
        last = topic.put("sorted", b"b", reason="too_deep")
        topic.put("sorted", b"c", times=200)
        topic.again("sorted", b"b", last, "too_deep")
        topic.flush()
        with running.client(running.key_for("sorted", ["read"])) as http:
            query = {"reason": "too_deep", "limit": 2}
            items = http.get("/quarantine", params=query).json()["items"]
        assert [item["reason"] for item in items] == ["too_deep"] * 2
        assert items[0]["origin"] == last != items[1]["origin"]

    def test_it_holds_no_bytes_of_what_it_goes_through(
        self, running: Any, topic: Quarantined, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A list over megabytes takes the room of a list, and stops at the bound."""
        topic.put("large", b"x" * 500_000, times=60)
        topic.flush()
        monkeypatch.setattr(quarantine, "MAX_BYTES", 10 * 2**20)
        reader = running.dashboard.context.quarantine
        tracemalloc.start()
        try:
            found = running.run(reader.newest("large", 500, None))
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert len(found) == quarantine.FIRST_STRETCH
        assert peak < 12 * 2**20
