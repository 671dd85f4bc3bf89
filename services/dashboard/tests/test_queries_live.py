"""Queries over HTTP and the live socket: real panes, real deltas, no stand-ins."""

from __future__ import annotations

import json
import random
import socket
import time
from contextlib import ExitStack, closing
from typing import Any

import msgspec
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.frames import Frame, Opcode
from websockets.sync.client import connect
from websockets.typing import Subprotocol
from weir import names
from weir.live import apply, same
from weir.rows import Row
from weir_dashboard.live import client
from weir_local.waiting import wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.redis]

METRIC = """
kind: metric
name: {name}
events: {{type: web.request}}
by: [data.region]
aggregates: [count, rate]
resolution: 10s
keep: {{10s: 24h}}
allowed_lateness: 1m
"""


def ten_seconds_ago(steps: int = 0) -> int:
    """Return the start of a whole pane of 10 s, some panes back, in seconds."""
    return int(time.time()) // 10 * 10 - 10 * steps


@pytest.fixture
def metric(running: Any, request: pytest.FixtureRequest) -> tuple[str, int]:
    """Return a metric of this test's own, by name and vid."""
    name = "m" + "".join(c for c in request.node.name.lower() if c.isalnum())[-40:] + "x"
    return name, running.put("default", "metric", name, METRIC.format(name=name))


def asked(name: str, **members: Any) -> dict[str, Any]:
    """Return a query for the last ten minutes by region."""
    query = {
        "metric": name,
        "aggregate": "count",
        "by": ["region"],
        "window": {"kind": "tumbling", "length": "10s"},
        "step": "10s",
        "range": {"last": "5m"},
    }
    return {**query, **members}


class Watcher:
    """A client that follows one query and folds what it hears, as the browser does."""

    def __init__(self, running: Any, query: dict[str, Any]) -> None:
        self._running, self._query = running, query
        self.answer: dict[str, Any] | None = None
        self.deltas = 0
        self._parts: list[dict[str, Any]] = []
        self._stack = ExitStack()
        self.open()

    def close(self) -> None:
        """Cut the connection, if there is one."""
        self._stack.close()

    def open(self) -> None:
        """Connect, and resume from what is held."""
        self.close()
        self.socket = self._stack.enter_context(
            connect(self._running.live_url, subprotocols=[Subprotocol("weir.v1")], compression=None)
        )
        held = self.answer
        position = None if held is None else {"epoch": held["epoch"], "rev": held["rev"]}
        say = self.socket.send
        say(json.dumps({"op": "hello", "v": 1, "auth": self._running.key}))
        say(
            json.dumps(
                {"op": "subscribe", "id": 1, "to": "query", "query": self._query, "from": position}
            )
        )

    def listen(self, until: Any, timeout_s: float = 30) -> None:
        """Fold frames until a condition holds of the answer."""
        deadline = time.monotonic() + timeout_s
        while self.answer is None or not until(self.answer):
            left = deadline - time.monotonic()
            assert left > 0, f"the answer never came to it: {self.answer}"
            self.fold(json.loads(self.socket.recv(timeout=left)))

    def fold(self, frame: dict[str, Any]) -> None:
        """Fold one frame."""
        assert frame["op"] != "error", frame
        if frame["op"] == "snapshot":
            earlier = self._parts if frame["part"] > 1 else []
            self._parts = [*earlier, *frame["answer"]["series"]]
            if frame["part"] == frame["parts"]:
                self.answer = {**frame["answer"], "series": self._parts}
        elif frame["op"] == "delta":
            self.deltas += 1
            assert self.answer is not None
            self.answer = apply(self.answer, frame)  # type: ignore[arg-type]


def total(answer: dict[str, Any], region: str) -> int:
    """Return how many events of a region an answer counts."""
    found = [s for s in answer["series"] if s["by"].get("region") == region]
    return sum(count or 0 for s in found for count in s["count"])


class TestQuery:
    def test_it_counts_what_the_panes_hold(
        self, running: Any, engine: Any, metric: tuple[str, int]
    ) -> None:
        """The answer equals what was written, with its state and its slot."""
        name, vid = metric
        engine.commit({(vid, 10, ten_seconds_ago(3)): {"=eu": Row(5), "=us": Row(2)}})
        with running.client() as http:
            body = http.post("/query", json=asked(name)).json()
        assert [(total(body, r), r) for r in ("eu", "us")] == [(5, "eu"), (2, "us")]
        assert {s["slot"] for s in body["series"]} == {0, 1}
        assert (body["rev"], body["epoch"]) == (engine.rev, engine.epoch)

    def test_csv_escapes_what_a_spreadsheet_would_run(
        self, running: Any, engine: Any, metric: tuple[str, int]
    ) -> None:
        """A dimension that begins like a formula is text in CSV."""
        name, vid = metric
        engine.commit({(vid, 10, ten_seconds_ago(1)): {"==SUM(A1)": Row(1)}})
        with running.client() as http:
            answer = http.post("/query", json=asked(name), headers={"accept": "text/csv"})
        assert answer.headers["content-type"].startswith("text/csv")
        assert ",'=SUM(A1),1.0,1.0,1.0,1,p" in answer.text

    def test_ndjson_has_a_line_a_point(
        self, running: Any, engine: Any, metric: tuple[str, int]
    ) -> None:
        """NDJSON says the same, one object a window."""
        name, vid = metric
        engine.commit({(vid, 10, ten_seconds_ago(1)): {"=eu": Row(4)}})
        accept = {"accept": "application/x-ndjson"}
        with running.client() as http:
            lines = http.post("/query", json=asked(name), headers=accept).text.splitlines()
        assert sum(json.loads(line)["count"] or 0 for line in lines) == 4
        assert len(lines) == 30

    @pytest.mark.parametrize(
        ("wrong", "status", "code"),
        [
            ({"metric": "nothing_like_it"}, 404, "metric_unknown"),
            ({"aggregate": "p99"}, 422, "query_invalid"),
            ({"by": ["planet"]}, 422, "query_invalid"),
            ({"step": "7s"}, 422, "query_invalid"),
            ({"tenant": "other"}, 422, "unknown_field"),
            ({"range": {"last": "24h"}, "step": "1s"}, 422, "query_invalid"),
            ({"after": "x"}, 422, "query_invalid"),
        ],
    )
    def test_what_cannot_be_answered_is_refused_by_name(
        self, running: Any, metric: tuple[str, int], wrong: dict[str, Any], status: int, code: str
    ) -> None:
        """Each wrong query gets its status and code, and says what would do."""
        with running.client() as http:
            refused = http.post("/query", json=asked(metric[0], **wrong))
        assert (refused.status_code, refused.json()["code"]) == (status, code)

    def test_after_waits_until_it_is_counted(
        self, running: Any, engine: Any, metric: tuple[str, int]
    ) -> None:
        """A query after a position answers once that position is counted."""
        name, vid = metric
        engine.commit({(vid, 10, ten_seconds_ago(1)): {"=eu": Row(3)}}, received=3)
        with running.client() as http:
            body = http.post("/query", json=asked(name, after="0:2")).json()
        assert total(body, "eu") == 3

    def test_another_tenant_has_no_such_metric(self, running: Any, metric: tuple[str, int]) -> None:
        """Another tenant's metric is as unknown as one that does not exist."""
        key = running.key_for("elsewhere", ["read"])
        with running.client(key) as http:
            theirs = http.post("/query", json=asked(metric[0]))
            none = http.post("/query", json=asked("nothing_like_it"))
        assert theirs.status_code == none.status_code == 404
        assert theirs.json()["code"] == none.json()["code"] == "metric_unknown"


class TestWatching:
    def test_a_commit_reaches_the_client_as_a_delta(
        self, running: Any, engine: Any, metric: tuple[str, int]
    ) -> None:
        """What a batch adds is seen well within a second, as a small difference."""
        name, vid = metric
        pane = (vid, 10, ten_seconds_ago(2))
        engine.commit({pane: {"=eu": Row(1)}})
        watcher = Watcher(running, asked(name))
        watcher.listen(lambda answer: total(answer, "eu") == 1)
        begun = time.monotonic()
        engine.commit({pane: {"=eu": Row(2), "=us": Row(7)}})
        watcher.listen(lambda answer: (total(answer, "eu"), total(answer, "us")) == (3, 7))
        assert time.monotonic() - begun < 2
        assert watcher.deltas >= 1

    def test_time_alone_makes_deltas(
        self, running: Any, engine: Any, metric: tuple[str, int]
    ) -> None:
        """With nothing but ticks, windows become known, then final."""
        name, vid = metric
        start_s = ten_seconds_ago(2)
        now_ms = int(time.time() * 1000)
        engine.commit({(vid, 10, start_s): {"=eu": Row(1)}}, through_ms=start_s * 1000)
        watcher = Watcher(running, asked(name))
        watcher.listen(lambda answer: total(answer, "eu") == 1)
        assert watcher.answer is not None
        assert set(watcher.answer["series"][0]["state"]) <= {"p", "f"}
        engine.commit(ticks=1, through_ms=now_ms + 120_000)
        watcher.listen(lambda answer: set(answer["series"][0]["state"]) == {"f"})
        assert watcher.deltas >= 1

    def test_model_equals_snapshot_after_reconnects(
        self, running: Any, engine: Any, metric: tuple[str, int]
    ) -> None:
        """A client that is cut off again and again ends where a fresh one stands."""
        name, vid = metric
        seed = random.randrange(2**32)  # noqa: S311
        dice = random.Random(seed)  # noqa: S311
        engine.commit({(vid, 10, ten_seconds_ago(1)): {"=r0": Row(1)}})
        watcher = Watcher(running, asked(name))
        watcher.listen(lambda _: True)
        for _ in range(25):
            pane = (vid, 10, ten_seconds_ago(dice.randint(0, 5)))
            engine.commit({pane: {f"=r{dice.randint(0, 6)}": Row(dice.randint(1, 9))}})
            if dice.random() < 0.3:
                watcher.close()
                engine.commit({pane: {"=r0": Row(1)}})
                watcher.open()
            elif dice.random() < 0.5:
                self._hear_what_is_there(watcher)
        fresh = Watcher(running, asked(name))
        fresh.listen(lambda answer: answer["rev"] >= engine.rev)
        last = fresh.answer
        assert last is not None
        sums = {f"r{i}": total(last, f"r{i}") for i in range(7)}
        watcher.listen(lambda a: {f"r{i}": total(a, f"r{i}") for i in range(7)} == sums)
        wait_until(lambda: self._agree(watcher, fresh), timeout_s=10, what=f"equal, seed {seed}")

    def _agree(self, one: Watcher, other: Watcher) -> bool:
        self._hear_what_is_there(one)
        self._hear_what_is_there(other)
        assert one.answer is not None
        assert other.answer is not None
        return same(one.answer, other.answer)

    def _hear_a_heartbeat(self, watcher: Watcher, rev: int) -> None:
        """Fold what comes before the second heartbeat of a revision."""
        beats = 0
        while beats < 2:
            frame = json.loads(watcher.socket.recv(timeout=10))
            watcher.fold(frame)
            beats += frame["op"] == "heartbeat" and frame["rev"] == rev

    def _hear_what_is_there(self, watcher: Watcher) -> None:
        try:
            while True:
                watcher.fold(json.loads(watcher.socket.recv(timeout=0.05)))
        except (TimeoutError, ConnectionClosed):
            return

    def test_resume_brings_a_delta_not_a_snapshot(
        self, running: Any, engine: Any, metric: tuple[str, int]
    ) -> None:
        """A client that comes back with its position is told only what changed."""
        name, vid = metric
        pane = (vid, 10, ten_seconds_ago(1))
        engine.commit({pane: {"=eu": Row(1)}})
        watcher = Watcher(running, asked(name))
        watcher.listen(lambda answer: total(answer, "eu") == 1)
        engine.commit({pane: {"=eu": Row(1)}})
        watcher.listen(lambda answer: total(answer, "eu") == 2)
        watcher.close()
        engine.commit({pane: {"=eu": Row(1)}})
        watcher.open()
        watcher.deltas = 0
        watcher.listen(lambda answer: total(answer, "eu") == 3)
        assert watcher.deltas == 1

    def test_resume_at_the_first_revision_brings_a_snapshot(
        self, running: Any, engine: Any, metric: tuple[str, int]
    ) -> None:
        """What another replica read a batch ahead of its revision is corrected all the same."""
        name, vid = metric
        engine.commit({(vid, 10, ten_seconds_ago(1)): {"=eu": Row(1)}})
        watcher = Watcher(running, asked(name))
        watcher.listen(lambda answer: total(answer, "eu") == 1)
        assert watcher.answer is not None
        watcher.close()
        counts = watcher.answer["series"][0]["count"]
        counts[counts.index(1)] = 9
        watcher.open()
        watcher.listen(lambda answer: total(answer, "eu") == 1)
        assert watcher.answer["rev"] == engine.rev

    def test_a_new_epoch_brings_a_snapshot(
        self, running: Any, engine: Any, metric: tuple[str, int]
    ) -> None:
        """After a rebuild nothing of the old state counts."""
        name, vid = metric
        pane = (vid, 10, ten_seconds_ago(1))
        engine.commit({pane: {"=eu": Row(1)}})
        watcher = Watcher(running, asked(name))
        watcher.listen(lambda answer: total(answer, "eu") == 1)
        second = type(engine)(running)
        second.commit({pane: {"=eu": Row(1)}})
        watcher.listen(lambda answer: answer["epoch"] == second.epoch)
        assert watcher.deltas == 0

    def test_an_edit_reaches_open_boards_without_another_batch(
        self, running: Any, engine: Any, metric: tuple[str, int]
    ) -> None:
        """The new version comes as a snapshot at the revision at hand, and goes on from there."""
        name, vid = metric
        start_s = ten_seconds_ago(1)
        engine.commit({(vid, 10, start_s): {"=eu": Row(5)}})
        watcher = Watcher(running, asked(name))
        watcher.listen(lambda answer: total(answer, "eu") == 5)
        text = METRIC.format(name=name).replace("allowed_lateness: 1m", "allowed_lateness: 2m")
        path, condition = f"/definitions/metric/{name}", {"if-match": '"1"'}
        with running.client() as http:
            assert http.put(path, json={"text": text}, headers=condition).status_code == 200
        watcher.listen(lambda answer: answer["metric"]["version"] == 2)
        assert watcher.answer is not None
        assert (watcher.answer["rev"], watcher.answer["series"]) == (engine.rev, [])
        newer = running.dashboard.context.catalog.folded.get("default", "metric", name).vid
        engine.commit({(newer, 10, start_s): {"=eu": Row(7)}})
        watcher.listen(lambda answer: total(answer, "eu") == 7)

    def test_after_a_loss_nothing_is_said_until_all_is_counted_again(
        self, running: Any, engine: Any, metric: tuple[str, int]
    ) -> None:
        """While the log is counted again no window is a 0; at its end all is as before."""
        name, vid = metric
        pane = (vid, 10, ten_seconds_ago(1))
        through_ms = int(time.time() * 1000) + 120_000
        engine.commit({pane: {"=eu": Row(5)}}, through_ms=through_ms)
        watcher = Watcher(running, asked(name))
        watcher.listen(lambda answer: total(answer, "eu") == 5)
        lost = type(engine)(running, reason="lost")
        running.redis.delete(names.pane_key(0, *pane))
        lost.commit({pane: {"=eu": Row(2)}}, through_ms=through_ms - 3_600_000)
        lost.commit(ticks=1, through_ms=through_ms - 1_800_000)
        watcher.listen(lambda answer: answer["rev"] == 2)
        assert watcher.answer is not None
        observer = running.dashboard.context.observer
        beat = json.dumps({"at_ms": int(time.time() * 1000) + 5_000})
        running.redis.set(names.part_key("ingest", "test"), beat, ex=15)
        wait_until(lambda: observer.parts.named("ingest"), timeout_s=5, what="ingest's heartbeat")
        fresh = observer.fresh()
        assert (fresh.status, round(fresh.progress, 2)) == ("rebuilding", 0.5)
        for series in watcher.answer["series"]:
            assert set(series["state"]) == {"r"}
            assert set(series["count"]) == set(series["value"]) == {None}
        lost.commit({pane: {"=eu": Row(3)}}, through_ms=through_ms)
        watcher.listen(lambda answer: total(answer, "eu") == 5)
        assert set(watcher.answer["series"][0]["state"]) == {"f"}
        assert observer.fresh().status == "live"
        running.redis.delete(names.part_key("ingest", "test"))

    def test_a_lower_beginning_of_any_epoch_is_believed(
        self, running: Any, engine: Any, metric: tuple[str, int]
    ) -> None:
        """What was counted in another epoch says nothing of this one."""
        name, vid = metric
        now_ms = int(time.time() * 1000)
        engine.commit({(vid, 10, ten_seconds_ago(1)): {"=eu": Row(5)}}, through_ms=now_ms + 120_000)
        second = type(engine)(running, reason="behind")
        batches = running.dashboard.context.batches
        wait_until(lambda: batches.epoch == second.epoch, timeout_s=10, what="the epoch")
        assert (batches.processed_through_ms, batches.recount) == (None, None)
        second.commit(ticks=1, through_ms=now_ms - 3_600_000)
        with running.client() as http:
            body = http.post("/query", json=asked(name)).json()
        assert body["fresh"]["processed_through_ms"] == now_ms - 3_600_000
        assert set(body["series"][0]["state"]) == {"p"}

    def test_equal_questions_share_one_key(self, running: Any, metric: tuple[str, int]) -> None:
        """However they are spelled, equal queries of a tenant are one feed."""
        name, _ = metric
        one, other = Watcher(running, asked(name)), Watcher(running, asked(name, step="10s"))
        keys = {self._key(one), self._key(other)}
        assert len(keys) == 1

    def _key(self, watcher: Watcher) -> str:
        while True:
            frame = json.loads(watcher.socket.recv(timeout=5))
            if frame["op"] == "subscribed":
                return str(frame["key"])

    def test_paused_then_the_newest(
        self, running: Any, engine: Any, metric: tuple[str, int]
    ) -> None:
        """A paused client hears nothing; then one delta brings it to the newest state."""
        name, vid = metric
        pane = (vid, 10, ten_seconds_ago(1))
        engine.commit({pane: {"=eu": Row(1)}})
        watcher = Watcher(running, asked(name))
        watcher.listen(lambda answer: total(answer, "eu") == 1)
        watcher.socket.send(json.dumps({"op": "pace", "hz": 0}))
        for _ in range(3):
            engine.commit({pane: {"=eu": Row(1)}})
        self._hear_a_heartbeat(watcher, engine.rev)
        assert watcher.answer is not None
        assert total(watcher.answer, "eu") == 1
        watcher.socket.send(json.dumps({"op": "pace", "hz": 4}))
        watcher.listen(lambda answer: total(answer, "eu") == 4)
        assert watcher.deltas == 1


class TestQuestion:
    def test_a_record_missed_while_answering_is_made_up_for(
        self,
        running: Any,
        engine: Any,
        metric: tuple[str, int],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """If records were missed while panes were read, the next answer reads all again."""
        name, vid = metric
        key = (vid, 10, ten_seconds_ago(1))
        record = engine.commit({key: {"=eu": Row(1)}})
        queries = running.dashboard.context.queries
        question, _ = running.run(queries.ask("default", asked(name)))
        running.run(question.answer())
        read = queries.rows

        async def read_and_miss(keys: Any) -> Any:
            found = await read(keys)
            question.is_due(msgspec.structs.replace(record, rev=record.rev + 7, changed=[]))
            return found

        monkeypatch.setattr(queries, "rows", read_and_miss)
        running.run(question.answer())
        monkeypatch.undo()
        engine.add(vid, key[1:], {"=eu": Row(4)})
        queries.panes.clear()
        assert total(running.run(question.answer()), "eu") == 5


class TestSlowClients:
    def test_who_never_reads_is_closed_and_others_go_on(
        self,
        running: Any,
        engine: Any,
        metric: tuple[str, int],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """A client that reads nothing is cut off; meanwhile another gets every number."""
        monkeypatch.setattr(client, "UNDRAINED_S", 1.0)
        name, vid = metric
        pane = (vid, 10, ten_seconds_ago(1))
        engine.commit({pane: {f"=r{i:03}": Row(1) for i in range(150)}})
        query = asked(name, range={"last": "1h"})
        other = Watcher(running, query)
        other.listen(lambda answer: total(answer, "r000") == 1)
        with closing(self._open_and_never_read(running, query)):
            hub = running.dashboard.hub
            wait_until(lambda: self._stuck(hub), timeout_s=20, what="the slow one full")
            engine.commit({pane: {"=r000": Row(1)}})
            other.listen(lambda answer: total(answer, "r000") == 2)
            wait_until(lambda: not self._stuck(hub), timeout_s=20, what="the slow one closed")
            engine.commit({pane: {"=r000": Row(1)}})
            other.listen(lambda answer: total(answer, "r000") == 3)
        other.close()

    def _stuck(self, hub: Any) -> bool:
        return any(c.socket.unsent_bytes > client.MAX_UNSENT_BYTES for c in [*hub.clients.values()])

    def _open_and_never_read(self, running: Any, query: dict[str, Any]) -> socket.socket:
        host, port = running.url.removeprefix("http://").split(":")
        raw = socket.socket()
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        raw.connect((host, int(port)))
        raw.sendall(
            f"GET /api/v1/live HTTP/1.1\r\nHost: {host}:{port}\r\nUpgrade: websocket\r\n"
            "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
            "Sec-WebSocket-Protocol: weir.v1\r\n\r\n".encode()
        )
        assert raw.recv(4096).startswith(b"HTTP/1.1 101")
        for message in (
            {"op": "hello", "v": 1, "auth": running.key},
            {"op": "subscribe", "id": 1, "to": "query", "query": query},
        ):
            text = json.dumps(message).encode()
            raw.sendall(Frame(Opcode.TEXT, text).serialize(mask=True))
        return raw
