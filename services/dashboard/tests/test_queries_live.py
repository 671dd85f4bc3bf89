"""Queries over the live socket: real panes, real deltas, no stand-ins."""

from __future__ import annotations

import json
import random
import socket
import time
from contextlib import closing
from typing import Any

import datasketches as ds
import msgspec
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.frames import Frame, Opcode
from weir import names, rows
from weir.batches import LaneProgress
from weir.frequent import Texts, without
from weir.further import Further
from weir.live import same
from weir.rows import Row
from weir_dashboard.live import client
from weir_local.waiting import wait_until
from written import short_id

from .watching import METRIC, Watcher, asked, ten_seconds_ago, total

pytestmark = [pytest.mark.kafka, pytest.mark.redis]


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

        def is_soon(eu: int, us: int) -> bool:
            begun = time.monotonic()
            engine.commit({pane: {"=eu": Row(2), "=us": Row(7)}})
            watcher.listen(lambda answer: (total(answer, "eu"), total(answer, "us")) == (eu, us))
            return time.monotonic() - begun < 2

        # A machine that others use may hold any one of them up.
        assert any(is_soon(1 + 2 * n, 7 * n) for n in range(1, 5))
        assert watcher.deltas >= 1

    @pytest.mark.parametrize("panes", [1, 2, 30])
    def test_what_spans_say_reaches_the_client(
        self, running: Any, engine: Any, metric: tuple[str, int], panes: int
    ) -> None:
        """A batch that changed too many panes to be listed says between which they lie."""
        name, vid = metric
        every = [(vid, 10, ten_seconds_ago(2 + n)) for n in range(panes)]
        query = asked(name, range={"last": "1h"})
        engine.commit({pane: {"=eu": Row(1)} for pane in every})
        watcher = Watcher(running, query)
        watcher.listen(lambda answer: total(answer, "eu") == panes)

        for more in (2, 3):
            record = engine.commit({pane: {"=eu": Row(1)} for pane in every}, most_listed=0)
            assert (record.changed, len(record.spans)) == ([], 1)
            watcher.listen(lambda answer, n=more * panes: total(answer, "eu") == n)
        with running.client() as http:
            assert total(http.post("/query", json=query).json(), "eu") == 3 * panes

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
        # One, or the one that it has already and then the other: the answer may be in the making.
        assert (watcher.deltas in (1, 2), watcher.snapshots) == (True, 1)

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

    def test_a_name_that_was_erased_leaves_open_boards(
        self, running: Any, engine: Any, request: pytest.FixtureRequest
    ) -> None:
        """A list that is rewritten is told although it counts as many events as before."""
        name = "m" + request.node.name[:40]
        text = METRIC.format(name=name).replace("[count,", "['top(data.user, 3)', count,")
        vid = running.put("default", "metric", name, text)
        pane = (vid, 10, ten_seconds_ago(2))
        users = ds.frequent_strings_sketch(10)
        for user, events in {"jane": 3, "ann": 1}.items():
            users.update(user, events)
        top = Texts(4, bytes(users.serialize()))
        engine.commit({pane: {"=eu": Row(4, further=Further(top=top))}})
        watcher = Watcher(running, asked(name, aggregate="top"))
        watcher.listen(lambda answer: '"jane"' in json.dumps(answer))
        rewritten = Row(4, further=Further(top=without(top, lambda one: one == "jane")))
        short = short_id(running.redis, vid, "=eu")
        running.redis.hset(names.pane_key(0, *pane), short, rows.encode(rewritten))
        engine.commit({pane: {}})

        watcher.listen(lambda answer: '"jane"' not in json.dumps(answer), timeout_s=10)
        assert '"ann"' in json.dumps(watcher.answer)
        assert watcher.deltas >= 1

    def test_after_a_loss_nothing_is_said_until_all_is_counted_again(
        self, running: Any, engine: Any, metric: tuple[str, int]
    ) -> None:
        """While lanes count the log again no window is a 0; after them all is as before."""
        name, vid = metric
        pane = (vid, 10, ten_seconds_ago(1))
        through_ms = int(time.time() * 1000) + 120_000
        engine.commit({pane: {"=eu": Row(5)}}, through_ms=through_ms)
        watcher = Watcher(running, asked(name))
        watcher.listen(lambda answer: total(answer, "eu") == 5)
        lost = type(engine)(running, reason="lost")
        running.redis.delete(names.pane_key(0, *pane))
        lane = LaneProgress(lane=7, kind="rebuild", vid=None, shard=None, at=0, of=100)
        lane = msgspec.structs.replace(lane, until_ms=through_ms)
        lost.commit({pane: {"=eu": Row(2)}}, through_ms=through_ms, lanes=[lane])
        half = msgspec.structs.replace(lane, at=50)
        lost.commit(ticks=1, through_ms=through_ms, lanes=[half])
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
        # It goes on: what stands still for six seconds is stale, however slow this test is.
        lost.commit({pane: {"=eu": Row(3)}}, through_ms=through_ms + 1)
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

    def test_too_large_is_refused_and_the_socket_stays(
        self, running: Any, metric: tuple[str, int]
    ) -> None:
        """What would need more than memory is refused by name, before anything is listed."""
        window = {"kind": "sliding", "length": "36500d10s"}
        watcher = Watcher(running, asked(metric[0], window=window, step="1d"))
        frame: dict[str, Any] = {"op": ""}
        while frame["op"] != "error":
            frame = json.loads(watcher.socket.recv(timeout=5))
        assert frame["problem"]["code"] == "query_too_large"
        watcher.socket.send(json.dumps({"op": "pace", "hz": 1}))
        assert json.loads(watcher.socket.recv(timeout=5))["op"] == "heartbeat"

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
        """A paused client hears nothing; then what it missed comes together."""
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
        # Not one for each batch; two where the newest answer is still in the making.
        assert watcher.deltas in (1, 2)


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

        async def read_and_miss(keys: Any, *pool: Any) -> Any:
            found = await read(keys, *pool)
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
