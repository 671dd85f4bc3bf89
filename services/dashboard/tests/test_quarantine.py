"""The quarantine as its owner sees it, however much of others lies above."""

from __future__ import annotations

import asyncio
import tracemalloc
from typing import Any

import pytest
from confluent_kafka import Producer
from weir import names
from weir.clock import ManualClock
from weir_dashboard.settings import Settings
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

    def batch(self, tenant: str, vid: int, partition: int, n: int, *, left_out: int) -> None:
        """Put what a version could not use of a batch: the last copy says how many more it was."""
        for at in range(n):
            self._copies += 1
            origin = f"weir.events/{id(self)}/{partition}/{self._copies}"
            headers: dict[str, str | bytes | None] = {
                names.HEADER_REASON: "value_missing" if at else "value_range",
                names.HEADER_TENANT: tenant,
                names.HEADER_SOURCE: "http",
                names.HEADER_ORIGIN: origin,
                names.HEADER_VERSION: str(vid),
            }
            if at == n - 1:
                headers[names.HEADER_LEFT_OUT] = str(left_out)
            key = f"{origin}/{vid}".encode()
            self._producer.produce(names.QUARANTINE, b"{}", key, partition=0, headers=headers)

    def note(self, tenant: str, origin: str) -> None:
        """Say that a record was put back, as a replay does."""
        headers: dict[str, str | bytes | None] = {
            names.HEADER_REPLAYED: "7",
            names.HEADER_TENANT: tenant,
            names.HEADER_ORIGIN: origin,
        }
        self._producer.produce(
            names.QUARANTINE, None, origin.encode(), partition=0, headers=headers
        )

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

    def test_what_was_put_back_says_so(self, running: Any, topic: Quarantined) -> None:
        """The note of a replay is told with the copy, and is no record by itself."""
        kept = topic.put("replayed", b"a")
        back = topic.put("replayed", b"b")
        topic.note("replayed", back)
        topic.flush()
        with running.client(running.key_for("replayed", ["read", "tail"])) as http:
            items = http.get("/quarantine").json()["items"]
            partition, _, offset = items[0]["id"].partition("-")
            note = http.get(f"/quarantine/{partition}-{int(offset) + 1}")
        assert [(i["origin"], i["replayed_ms"] is not None) for i in items] == [
            (back, True),
            (kept, False),
        ]
        assert items[0]["replayed_ms"] >= items[0]["at_ms"]
        assert note.status_code == 404

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
        assert (len(found.records), found.whole) == (quarantine.FIRST_STRETCH, False)
        assert peak < 12 * 2**20


class TestLeftOut:
    def test_a_list_says_of_what_there_is_no_copy(
        self, running: Any, topic: Quarantined, metric: tuple[str, int]
    ) -> None:
        """Over all batches that it read, by version and partition, whatever the reason asked for.

        What is not copied has no reason that anybody knows.
        """
        name, vid = metric
        for left_out in (4_000, 300):
            topic.batch("default", vid, 1, 3, left_out=left_out)
        topic.batch("default", vid, 0, 2, left_out=0)
        topic.batch("elsewhere", vid, 1, 1, left_out=9)
        topic.flush()
        with running.client() as http:
            found = http.get("/quarantine", params={"limit": 500}).json()
            some = http.get("/quarantine", params={"reason": "value_range"}).json()
        own = [one for one in found["items"] if one["version"] == vid]

        assert found["whole"] is True
        assert [(one["metric"], one["metric_version"]) for one in own] == [(name, 1)] * 8
        assert sorted(one["left_out"] for one in own) == [0] * 6 + [300, 4_000]
        (missing,) = (one for one in found["left_out"] if one["version"] == vid)
        assert missing in some["left_out"]
        assert (missing["metric"], missing["metric_version"]) == (name, 1)
        assert (missing["partition"], missing["copies"], missing["left_out"]) == (1, 6, 4_300)
        assert missing["message"].startswith(
            f"up to 4,300 more events that version 1 of {name} could not use in partition 1 are not"
        )

    def test_the_summary_has_what_a_short_list_does_not_reach(
        self, running: Any, topic: Quarantined, metric: tuple[str, int]
    ) -> None:
        """The number is right over everything, also where the list ends long before."""
        name, vid = metric
        topic.batch("summed", vid, 0, 1, left_out=2_000)
        topic.put("summed", b"x", times=1_000)
        # Of the tenant `default` alone it has a name.
        topic.batch("default", vid, 2, 2, left_out=7)
        topic.flush()
        with running.client(running.key_for("summed", ["read"])) as http:
            few = http.get("/quarantine", params={"limit": 1}).json()
            all_ = http.get("/quarantine/summary").json()
            of_metric = http.get("/quarantine/summary", params={"metric": name}).json()
        with running.client() as http:
            own = http.get("/quarantine/summary", params={"metric": name}).json()

        assert (few["left_out"], few["whole"]) == ([], False)
        assert (all_["copies"], all_["left_out"], all_["whole"]) == (1_001, 2_000, True)
        told = [(one["version"], one["copies"], one["left_out"]) for one in all_["items"]]
        assert told == [(vid, 1, 2_000), (None, 1_000, 0)]
        assert [one["metric"] for one in all_["items"]] == [None, None]
        assert (of_metric["items"], of_metric["left_out"]) == ([], 0)
        assert [(one["metric"], one["partition"]) for one in own["items"]] == [(name, 2)]
        assert (own["copies"], own["left_out"]) == (2, 7)

    def test_a_list_that_is_cut_is_not_whole(
        self, running: Any, topic: Quarantined, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Also where all of the topic was read: what was left out of the list is older."""
        monkeypatch.setattr(quarantine, "FIRST_STRETCH", 1_000_000)
        for _ in range(3):
            topic.put("cut", b"x", times=1)
        topic.flush()
        with running.client(running.key_for("cut", ["read"])) as http:
            lists = [http.get("/quarantine", params={"limit": n}).json() for n in (2, 3, 4)]
        found = [(len(one["items"]), one["whole"]) for one in lists]
        assert found == [(2, False), (3, True), (3, True)]

    def test_sums_are_told_again_for_a_while(
        self, settings: Settings, topic: Quarantined, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """One reading goes as far as it may, and all others wait for it."""
        clock, readings = ManualClock(), list[str]()
        read = quarantine.Quarantine._newest

        def counted(self: Any, tenant: str, *asked: Any) -> Any:
            readings.append(tenant)
            return read(self, tenant, *asked)

        monkeypatch.setattr(quarantine.Quarantine, "_newest", counted)
        store = quarantine.Quarantine(settings.kafka, clock)
        topic.put("told", b"x", times=1)
        topic.flush()

        async def sums() -> list[int]:
            found = [await store.sums(tenant) for tenant in ("told", "told", "another")]
            return [sum(one.copies for one in of.copied) for of in found]

        assert asyncio.run(sums()) == [1, 1, 0]
        assert readings == ["told", "another"]
        clock.advance(int(1_000 * quarantine.SUMS_S))
        assert asyncio.run(sums()) == [1, 1, 0]
        assert readings == ["told", "another"] * 2

    def test_who_may_read_it(self, running: Any) -> None:
        """The scope `read`, as for the list."""
        with running.client(running.key_for("summed", ["tail"])) as http:
            refused = http.get("/quarantine/summary")
        assert (refused.status_code, refused.json()["code"]) == (403, "scope_missing")


@pytest.mark.parametrize(
    ("value", "subjects"),
    [
        (b'{"subject": "jane"}', {"jane"}),
        (b'[{"subject":"jane"},{"subject": "joe"}]', {"jane", "joe"}),
        (b'{"subject":"jane","subject":"joe"}', {"jane", "joe"}),
        (b'{"\\u0073ubject":"ja\\u006ee"}', {"jane"}),
        (b'{"id":1,"subject" : "ja\\"ne","data":{"x":', {'ja"ne'}),
        (b'\xff{"subject":"jane"', {"jane"}),
        (b'{"subject":17,"data":"subject"}', set()),
        (b'{"subject":"\\ud800"}', {"\ud800"}),
        (b'{"subject":"jane","data":"' + b"x" * 100_000 + b'"}', {"jane"}),
        (b"[" * 100_000, set()),
        (b"", set()),
    ],
)
def test_whom_bytes_are_about(value: bytes, subjects: set[str]) -> None:
    """Whole or cut, a list, a name twice, escaped, broken: as far as anybody can read it."""
    assert quarantine.subjects_of(value) == subjects


def test_what_names_somebody_who_was_erased_is_not_served(running: Any, topic: Quarantined) -> None:
    """The list says that there is something, and nothing opens it; others stay as they are."""
    tenant = "forgetful"
    for who in ("jane", "joe"):
        topic.put(tenant, b'{"subject": "%s", "id": 1}' % who.encode())
    topic.flush()
    running.erase(tenant, "jane")
    with running.client(running.key_for(tenant, ["read", "tail"])) as http:
        items = http.get("/quarantine").json()["items"]
        opened = [http.get(f"/quarantine/{item['id']}") for item in items]

    assert len(items) == 2
    told = {answer.status_code: answer.text for answer in opened}
    assert set(told) == {200, 404}
    assert "joe" in told[200]
