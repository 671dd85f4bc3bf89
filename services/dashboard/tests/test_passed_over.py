"""Records of other producers in `weir.definitions`: what cannot be used changes nothing.

The records are written to the broker by a plain producer, past the API and its check.
"""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
import structlog
from confluent_kafka import Producer
from weir import names
from weir.definitions.records import Edit, put_record
from weir_local.waiting import wait_until

from .conftest import Running

pytestmark = [pytest.mark.kafka, pytest.mark.redis]
METRIC = "kind: metric\nname: {name}\nevents: {{type: order.placed}}\n"


class Other:
    """Another producer of the topic."""

    def __init__(self, running: Running, bootstrap: str) -> None:
        self._running = running
        self._producer = Producer({"bootstrap.servers": bootstrap, "acks": "all"})

    def write(self, key: bytes, value: bytes | None) -> int:
        """Append a record and return its offset, once the dashboard has read it."""
        told: list[int] = []
        self._producer.produce(
            names.DEFINITIONS, value, key, on_delivery=lambda _, m: told.append(m.offset() or 0)
        )
        self._producer.flush(30)
        self._running.run(self._running.dashboard.follower.reach(told[0]))
        return told[0]

    def put(self, kind: str, name: str, based_on: int | None, text: str) -> int:
        """Append a change as the API would, with a text that nobody has checked."""
        edit = Edit("default", kind, name, based_on, by="other", at_ms=int(time.time() * 1000))
        return self.write(*put_record(edit, text))


@pytest.fixture
def other(running: Running, kafka: str) -> Other:
    """Return another producer."""
    return Other(running, kafka)


def refused(running: Running, name: str) -> list[dict[str, Any]]:
    """Return what the API says was passed over of a name."""
    with running.client() as http:
        items = http.get("/definitions/refused").json()["items"]
    return [one for one in items if one["name"] == name]


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("kind: metric\nname: m\nevents: {type: t}\nagregates: [count]\n", "unknown_field", "mean"),
        ("kind: [metric]\n", "definition_invalid", "/kind must be"),
        ("kind: metric\nname: other\n", "definition_invalid", "/name must be"),
        ("not: [yaml", "definition_invalid", "must be YAML or JSON"),
        ("", "definition_invalid", "must be"),
        ('{"kind": "metric", "max_series": ' + "1" * 5_000 + "}", "definition_invalid", "digits"),
    ],
)
def test_a_text_that_cannot_be_used_leaves_what_is_there(
    running: Running, other: Other, text: str, code: str, words: str, request: Any
) -> None:
    """The version before stays in force, every list goes on, and the reason is told."""
    name = f"kept_{abs(hash(request.node.name)) % 10**8}"
    running.put("default", "metric", name, METRIC.format(name=name))
    with structlog.testing.capture_logs() as said:
        vid = other.put("metric", name, 1, text.replace("name: m\n", f"name: {name}\n"))
    told = [one for one in said if one["event"] == "definition_passed_over"]
    assert [(one["name"], one["offset"], one["code"]) for one in told] == [(name, vid, code)]

    with running.client() as http:
        found = http.get(f"/definitions/metric/{name}").json()
        assert (found["version"], found["text"]) == (1, METRIC.format(name=name))
        assert (found["refused"]["version"], found["refused"]["code"]) == (2, code)
        assert words in found["refused"]["message"]
        listed = {one["name"] for one in http.get("/definitions").json()["items"]}
        assert name in listed
        assert name in {one["name"] for one in http.get("/metrics").json()["items"]}
        newest, first = http.get(f"/definitions/metric/{name}/history").json()["items"]
        assert (first["refused"], newest["by"]) == (None, "other")
        assert words in newest["refused"]
    (one,) = refused(running, name)
    assert (one["offset"], one["version"], one["by"]) == (vid, 2, "other")


def test_it_is_mended_by_the_next_change(running: Running, other: Other) -> None:
    """A client changes the version that it sees in force; the number goes on after the refused."""
    running.put("default", "metric", "mended", METRIC.format(name="mended"))
    other.put("metric", "mended", 1, "kind: metric\n")
    text = METRIC.format(name="mended") + "unit: ms\n"
    with running.client() as http:
        path = "/definitions/metric/mended"
        assert http.put(path, json={"text": text}, headers={"if-match": '"2"'}).status_code == 412
        done = http.put(path, json={"text": text}, headers={"if-match": '"1"'})
        assert (done.status_code, done.headers["etag"]) == (200, '"3"')
        assert http.get(path).json()["refused"] is None


@pytest.mark.parametrize("kind", ["board", "rule", "silence", "channel", "source", "key"])
def test_no_list_breaks_by_one_that_cannot_be_used(
    running: Running, other: Other, kind: str
) -> None:
    """A name whose only version cannot be used is not there; the lists of its kind are."""
    name = f"only_{kind}" if kind != "key" else "onlyakey"
    other.put(kind, name, None, f"kind: {kind}\nname: {name}\nshape: of a later release\n")
    with running.client() as http:
        for path in ("definitions", "boards", "rules", "silences", "channels", "keys", "metrics"):
            answer = http.get(f"/{path}")
            assert answer.status_code == 200, answer.text
            assert name not in [one.get("name") for one in answer.json()["items"]]
        assert http.get(f"/definitions/{kind}/{name}").status_code == 404
    assert [one["kind"] for one in refused(running, name)] == [kind]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "JSONDecodeError"),
        (b"\xff\x00", "JSONDecodeError"),
        (b"[]", "not a JSON object"),
        (b'{"v":1}', "KeyError"),
        (b'{"v":99}', "format version 99"),
        (b"[" * 100_000, "Recursion"),
    ],
)
def test_a_record_that_is_none_of_ours(
    running: Running, other: Other, value: bytes | None, words: str
) -> None:
    """It takes no number; its key says whose it would have been."""
    offset = other.write(b"default/metric/junk", value)
    found = next(one for one in refused(running, "junk") if one["offset"] == offset)
    assert found["version"] is None
    assert words in found["message"]
    with running.client() as http:
        assert http.get("/definitions/metric/junk").status_code == 404


def test_nobody_sees_what_others_were_refused(running: Running, other: Other) -> None:
    """Another tenant's records are not listed, nor those whose key names no tenant."""
    other.put("metric", "hidden", None, "kind: metric\n")
    before = len(refused(running, ""))
    other.write(b"no key of ours", b"{}")
    other.write(b"\xff/metric/x", b"{}")
    with running.client(running.key_for("somebodyelse", ["read"])) as http:
        assert http.get("/definitions/refused").json()["items"] == []
    assert len(refused(running, "")) == before


def test_a_change_that_came_too_late_is_told(running: Running, other: Other) -> None:
    """Another producer's change of an older version is no change, and stands in the list."""
    running.put("default", "metric", "late", METRIC.format(name="late"))
    other.put("metric", "late", None, METRIC.format(name="late") + "unit: ms\n")
    (one,) = refused(running, "late")
    assert one["code"] == "version_conflict"
    with running.client() as http:
        assert http.get("/definitions/metric/late").json()["version"] == 1


def test_a_foreign_key_opens_nothing(running: Running, other: Other) -> None:
    """A key over a key that cannot be used leaves the old one as it was."""
    key = running.key_for("default", ["read"])
    key_id = key.split("_")[1]
    other.put("key", key_id, 1, json.dumps({"kind": "key", "name": key_id, "hash": key}))
    with running.client(key) as http:
        assert http.get("/metrics").status_code == 200
    (one,) = refused(running, key_id)
    assert key not in json.dumps(one)
    wait_until(lambda: running.dashboard.not_ready() is None, timeout_s=10, what="it serves")
