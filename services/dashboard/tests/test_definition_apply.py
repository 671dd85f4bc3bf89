"""Several definitions stored together, all or none: `POST /definitions/apply`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from weir.definitions.records import Edit, NewRecord, put_record
from weir_reading.appender import Appender

from .conftest import Running
from .test_definition_plan import metric, rule

pytestmark = [pytest.mark.kafka, pytest.mark.redis]
Sent = tuple[dict[str, str], int | None]


def apply(running: Running, *sent: Sent) -> httpx.Response:
    """Send definitions, each with the version that it is based on."""
    definitions = [{**one, "based_on": based_on} for one, based_on in sent]
    with running.client() as http:
        return http.post("/definitions/apply", json={"definitions": definitions})


def done(answer: httpx.Response) -> list[tuple[str, str, int]]:
    """Return what became of each definition."""
    assert answer.status_code == 200, answer.text
    return [(one["outcome"], one["name"], one["version"]) for one in answer.json()["items"]]


def versions(running: Running, kind: str, name: str) -> list[int]:
    """Return the numbers of all versions of a definition, the newest first."""
    with running.client() as http:
        answer = http.get(f"/definitions/{kind}/{name}/history")
    return [one["version"] for one in answer.json().get("items", [])]


def test_a_rule_may_come_with_its_metric(running: Running) -> None:
    """Each is a version of its own, with its own place in the log, its history and its way back."""
    sent = [(metric("together"), None), (rule("with_it", "together"), None)]
    answer = apply(running, *sent)
    assert done(answer) == [("created", "together", 1), ("created", "with_it", 1)]
    first, second = answer.json()["items"]
    assert second["vid"] == first["vid"] + 1
    edited = apply(running, (metric("together", "unit: ms\n"), 1), (sent[1][0], 1))
    assert done(edited) == [("updated", "together", 2), ("unchanged", "with_it", 1)]

    both = apply(running, (metric("together", "unit: s\n"), 2), (metric("together_too"), None))
    assert done(both) == [("updated", "together", 3), ("created", "together_too", 1)]
    with running.client() as http:
        place = "/definitions/metric/together"
        body = {"kind": "metric", "name": "together", "version": 3, "against": 1}
        difference = http.post("/definitions/diff", json=body).json()
        assert [one["new"] for one in difference["members"]] == ["s"]
        back = http.post(f"{place}/rollback", json={"version": 1}, headers={"if-match": '"3"'})
        assert (back.status_code, back.json()["version"]) == (200, 4)
        changes = http.get("/changes").json()["items"][:3]
    assert [(one["name"], one["version"]) for one in changes] == [
        ("together", 4),
        ("together_too", 1),
        ("together", 3),
    ]
    assert versions(running, "metric", "together") == [4, 3, 2, 1]
    assert versions(running, "rule", "with_it") == [1]


def test_what_means_the_same_makes_no_version(running: Running) -> None:
    """Another comment, or the whole request sent again: whatever it says that it is based on."""
    sent = [(metric("again"), None), (metric("again_too"), None)]
    assert [word for word, _, _ in done(apply(running, *sent))] == ["created", "created"]
    read = running.dashboard.follower.next_offset
    commented = {**metric("again_too"), "text": "# as before\n" + metric("again_too")["text"]}
    told = done(apply(running, sent[0], (commented, 7)))
    assert told == [("unchanged", "again", 1), ("unchanged", "again_too", 1)]
    assert running.dashboard.follower.next_offset == read


def test_a_conflict_names_each_and_stores_none(running: Running) -> None:
    """By its place in the request, with the version that is current."""
    made = [(metric("kept"), None), (metric("kept_too"), None)]
    done(apply(running, *made))
    read = running.dashboard.follower.next_offset
    answer = apply(
        running,
        (metric("fresh"), None),
        (metric("kept", "unit: ms\n"), None),
        (metric("kept_too", "unit: ms\n"), 3),
        (metric("nowhere"), 2),
    )
    told = answer.json()
    assert (answer.status_code, told["code"]) == (409, "version_conflict")
    assert [(one["pointer"], one["required"], one["got"]) for one in told["errors"]] == [
        ("/definitions/1/based_on", "the current version: at version 1", "none"),
        ("/definitions/2/based_on", "the current version: at version 1", "3"),
        ("/definitions/3/based_on", "the current version: not there", "2"),
    ]
    assert told["message"] == (
        "nothing is stored: each of 4 definitions must be based on the current version, "
        "metric/kept is at version 1, metric/kept_too is at version 1, metric/nowhere is not "
        "there; read what is there and try again"
    )
    assert running.dashboard.follower.next_offset == read


def test_one_that_is_refused_refuses_all(running: Running) -> None:
    """Each place is told as it stands in the request, and the first in the message."""
    answer = apply(
        running,
        (metric("fine"), None),
        (metric("faulty", "max_serieses: 5\n"), None),
        (rule("on_nothing", "not_there"), None),
    )
    told = answer.json()
    assert (answer.status_code, told["code"]) == (422, "unknown_field")
    start = "nothing is stored, since 2 of 3 definitions cannot be; metric/faulty: /max_serieses"
    assert told["message"].startswith(start)
    pointers = [one["pointer"] for one in told["errors"]]
    assert pointers[0] == "/definitions/1/max_serieses"
    assert pointers[1].startswith("/definitions/2")
    assert versions(running, "metric", "fine") == []
    alone = apply(running, (metric("fine"), None), (rule("on_nothing", "not_there"), None))
    assert (alone.status_code, alone.json()["code"]) == (404, "metric_unknown")


class Meddling:
    """Writes as the dashboard does, but that somebody else is always faster.

    Attributes:
        others: Called with how often was written before; returns what comes before, and
            what comes after the first record.
    """

    def __init__(
        self,
        real: Appender,
        others: Callable[[int], tuple[Sequence[NewRecord], Sequence[NewRecord]]],
    ) -> None:
        self._real, self._others, self.times = real, others, 0

    async def append_all(self, records: Sequence[NewRecord]) -> list[int]:
        """Append what others write, too; return the offsets of the records."""
        before, after = self._others(self.times)
        self.times += 1
        written = [*before, records[0], *after, *records[1:]]
        offsets = await self._real.append_all(written)
        own = [len(before), *range(len(before) + 1 + len(after), len(written))]
        return [offsets[at] for at in own]


@contextmanager
def meddled(
    running: Running, others: Callable[[int], tuple[Sequence[NewRecord], Sequence[NewRecord]]]
) -> Iterator[Meddling]:
    """Have somebody else write whenever the dashboard does."""
    writer: Any = running.dashboard.context.writer
    real = writer._appender
    writer._appender = Meddling(real, others)
    try:
        yield writer._appender
    finally:
        writer._appender = real


def by_another(name: str, based_on: int | None) -> NewRecord:
    """Return another writer's change of a metric."""
    edit = Edit("default", "metric", name, based_on, by="other", at_ms=1)
    return put_record(edit, metric(name, "unit: other\n")["text"])


def test_a_writer_that_is_faster_leaves_none(running: Running) -> None:
    """The fold decides, not only the look before it; what was written is told as passed over."""
    done(apply(running, (metric("outrun"), None)))
    with meddled(running, lambda _: ([by_another("outrun", 1)], [])) as meddling:
        answer = apply(running, (metric("beside_it"), None), (metric("outrun", "unit: ms\n"), 1))
    assert (answer.status_code, answer.json()["code"]) == (409, "version_conflict")
    assert [one["pointer"] for one in answer.json()["errors"]] == ["/definitions/1/based_on"]
    assert meddling.times == 1
    assert versions(running, "metric", "beside_it") == []
    assert versions(running, "metric", "outrun") == [2, 1]
    with running.client() as http:
        passed = http.get("/definitions/refused").json()["items"]
    found = [one for one in passed if one["name"] in ("beside_it", "outrun")]
    assert {(one["name"], one["code"]) for one in found} == {
        ("beside_it", "version_conflict"),
        ("outrun", "version_conflict"),
    }
    assert all("metric/outrun: the current version is 2" in one["message"] for one in found)


def test_what_comes_between_is_no_conflict(running: Running) -> None:
    """The definitions are written again, and stored once."""

    def once(times: int) -> tuple[Sequence[NewRecord], Sequence[NewRecord]]:
        return [], [by_another("between", None)] if times < 2 else []

    with meddled(running, once) as meddling:
        told = done(apply(running, (metric("split"), None), (metric("split_too"), None)))
    assert told == [("created", "split", 1), ("created", "split_too", 1)]
    assert meddling.times == 3
    assert versions(running, "metric", "between") == [1]


def test_others_that_never_stop_are_told(running: Running) -> None:
    """Nothing is stored, and the answer asks to come again."""
    always = [by_another("forever", None)]
    with meddled(running, lambda _: ([], always)):
        answer = apply(running, (metric("never"), None), (metric("never_too"), None))
    assert (answer.status_code, answer.json()["code"]) == (503, "log_unavailable")
    assert "nothing was stored" in answer.json()["message"]
    assert answer.headers["retry-after"] == "2"
    assert versions(running, "metric", "never") == []


@pytest.mark.parametrize(
    ("definitions", "words"),
    [
        ([], "definitions"),
        ([{**metric("a"), "based_on": None}] * 2, "must come once, got metric/a twice"),
        ([metric("a")], "based_on"),
        ([{**metric("a"), "based_on": 0}], "based_on"),
    ],
)
def test_what_cannot_be_applied(
    running: Running, definitions: list[dict[str, Any]], words: str
) -> None:
    """None, one twice, and one that does not say what it is based on."""
    with running.client() as http:
        answer = http.post("/definitions/apply", json={"definitions": definitions})
    assert answer.status_code == 422
    assert words in answer.json()["message"]


def test_who_may_not_define_may_not_apply(running: Running) -> None:
    """As with a single one."""
    with running.client(running.key_for("default", ["read"])) as http:
        body = {"definitions": [{**metric("a"), "based_on": None}]}
        assert http.post("/definitions/apply", json=body).status_code == 403
