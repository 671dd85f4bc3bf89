"""Corrections over HTTP and the live socket: whose, which, in what order, and how many."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer
from weir import names
from weir.clock import SystemClock
from weir.corrections import CorrectionRecord, Figures, encode
from weir.further import Last
from weir.kafka import Kafka
from weir.rows import Row
from weir.sketches import Bounded
from weir_dashboard.store import corrections as store
from weir_dashboard.store.corrections import Corrections, Kept, finest
from weir_local.waiting import wait_until
from weir_reading.follower import Record

from .test_live_socket import Client, greeted
from .watching import Watcher, asked, ten_seconds_ago, total

if TYPE_CHECKING:
    from .conftest import Running

START_S = 1_800_000_000
_BATCHES = itertools.count(1)


def correction(metric: tuple[str, int] = ("m", 1), **changes: Any) -> CorrectionRecord:
    """Return what a batch of its own changed in one pane."""
    members: dict[str, Any] = {
        "epoch": 4,
        "batch": next(_BATCHES),
        "tenant": "default",
        "metric": metric[0],
        "version": 1,
        "vid": metric[1],
        "res_s": 10,
        "start_s": START_S,
        "series": "=eu",
        "was": Figures(2),
        "now": Figures(5),
        "received_ms": (START_S + 130) * 1000,
        "final_ms": (START_S + 70) * 1000,
        "sources": [("http", 3)],
    }
    return CorrectionRecord(**members | changes)


class TestKept:
    def test_of_copies_the_first_is_kept(self) -> None:
        """A batch that is replayed sends its corrections again, and knows less of them."""
        kept = Corrections(Kafka("127.0.0.1:1"), SystemClock())
        one = correction()
        kept.take([told(0, one), told(1, correction(batch=one.batch, sources_known=False))])
        assert [found.record for found in kept.newest("default")] == [one]

    def test_one_metric_pushes_out_no_other(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Each has a bound, and what is too much in all goes where the most is."""
        monkeypatch.setattr(store, "MOST_OF_A_METRIC", 6)
        monkeypatch.setattr(store, "MOST", 8)
        kept = Corrections(Kafka("127.0.0.1:1"), SystemClock())
        kept.take([told(0, correction(("quiet", 2)))])
        loud = [told(n, correction(("loud", 3), tenant="other")) for n in range(1, 30)]
        kept.take([*loud, *(told(n, correction(("third", 4))) for n in range(30, 34))])

        assert [one.seq for one in kept.newest("other")] == [29, 28, 27]
        assert [one.seq for one in kept.newest("default")] == [33, 32, 31, 30, 0]
        assert len(kept._keys) == 8

    def test_those_of_a_metric_are_made_once_and_anew_when_they_change(self) -> None:
        """Also when the oldest goes for another metric's; the newest first."""
        kept = Corrections(Kafka("127.0.0.1:1"), SystemClock())
        assert kept.of_metric("default", "m") == ()
        one, two = correction(), correction()
        kept.take([told(0, one), told(1, correction(("other", 2)))])
        first = kept.of_metric("default", "m")
        assert first == (one,)
        assert kept.of_metric("default", "m") is first
        kept.take([told(2, two)])
        assert kept.of_metric("default", "m") == (two, one)
        kept._drop(kept._kept["default", "m"])
        assert kept.of_metric("default", "m") == (two,)

    def test_what_cannot_be_read_is_passed_over(self) -> None:
        """One bad record hides no other."""
        kept = Corrections(Kafka("127.0.0.1:1"), SystemClock())
        kept.take([Record(0, b"", b"{", 0), told(1, correction())])
        assert [one.seq for one in kept.newest("default")] == [1]

    def test_the_shortest_pane_tells_for_the_longer_ones(self) -> None:
        """Unless it is not kept any more: then the next longer one tells."""
        both = [correction(batch=900, res_s=res_s, start_s=START_S) for res_s in (10, 60, 3600)]
        other = correction(batch=900, res_s=60, start_s=START_S - 60)
        again = correction(batch=901, res_s=60)
        kept = [Kept(n, one) for n, one in enumerate([*both, other, again])]

        assert [one.seq for one in finest(kept)] == [0, 3, 4]

    def test_rows_of_others_are_one_row(self) -> None:
        """Each shard has one of a pane; readers see one, with the place of the newest."""
        rows = [
            correction(series="*", batch=900, was=None, now=Figures(3, 6.0, 1.0, 4.0)),
            correction(batch=900),
            correction(series="*", batch=900, shard=1, now=Figures(5, 9.0, -2.0, 3.0)),
            correction(series="*", batch=901),
        ]
        kept = Corrections(Kafka("127.0.0.1:1"), SystemClock())
        kept.take([told(seq, record) for seq, record in enumerate(rows)])
        found = kept.newest("default")

        assert [one.seq for one in found] == [3, 2, 1]
        both = found[1].record
        assert (both.now, both.events) == (
            Figures(8, 15.0, -2.0, 4.0),
            rows[0].events + rows[2].events,
        )
        assert both.was == rows[2].was


def told(seq: int, record: CorrectionRecord) -> Record:
    """Return a record of the topic."""
    return Record(seq, record.key.encode(), encode(record), 0)


class Panes:
    """Publishes corrections as the panes job does."""

    def __init__(self, running: Running) -> None:
        self._running = running
        kafka = running.dashboard.context.settings.kafka_bootstrap
        self._producer = Producer({"bootstrap.servers": kafka})

    def publish(self, *records: CorrectionRecord) -> None:
        """Store some, and wait until the dashboard has read them."""
        ends: list[int] = []
        for record in records:
            self._producer.produce(
                names.CORRECTIONS,
                encode(record),
                record.key.encode(),
                on_delivery=lambda _error, message: ends.append(message.offset() or 0),
            )
        assert self._producer.flush(10) == 0
        follower = self._running.dashboard.context.corrections.follower
        wait_until(lambda: follower.next_offset > max(ends), timeout_s=10, what="them read")


@pytest.fixture
def panes(running: Running) -> Panes:
    """Return what publishes corrections."""
    return Panes(running)


@pytest.mark.kafka
@pytest.mark.redis
class TestOverHttp:
    def test_a_correction_says_what_changed(
        self, running: Running, panes: Panes, metric: tuple[str, int]
    ) -> None:
        """Pane, dimensions, before, after, how late, and who sent what came late."""
        was = Figures(2, 3.0, 1.0, 2.0, estimates={"distinct": Bounded(2.0, 1.0, 3.0)})
        now = Figures(4, 12.0, 1.0, 5.0, 9.0, Last(0, b"", 5.0))
        panes.publish(correction(metric, was=was, now=now))
        with running.client() as http:
            (found,) = http.get("/corrections", params={"metric": metric[0]}).json()["items"]
        del found["seq"]

        assert found == {
            "metric": metric[0],
            "version": 1,
            "t_ms": (START_S + 10) * 1000,
            "resolution_ms": 10_000,
            "by": {"region": "eu"},
            "other": False,
            "was": {
                **{"count": 2, "sum": 3.0, "min": 1.0, "max": 2.0, "stddev": None, "last": None},
                "estimates": {"distinct": {"value": 2.0, "low": 1.0, "high": 3.0}},
            },
            "now": {
                **{"count": 4, "sum": 12.0, "min": 1.0, "max": 5.0, "stddev": 1.5, "last": 5.0},
                "estimates": {},
            },
            "events": 2,
            "late_ms": 120_000,
            "received_ms": (START_S + 130) * 1000,
            "final_ms": (START_S + 70) * 1000,
            "sources": [{"source": "http", "events": 3}],
            "sources_known": True,
        }

    def test_they_are_chosen_by_source_lateness_and_resolution(
        self, running: Running, panes: Panes, metric: tuple[str, int]
    ) -> None:
        """The newest first; the row of all beyond max_series, and one that is gone."""
        panes.publish(
            correction(metric, batch=7_000, start_s=START_S + 10),
            correction(metric, batch=7_000, res_s=60),
            correction(metric, sources=[("app", 1)], received_ms=(START_S + 15) * 1000),
            correction(metric, series="*", was=None),
            correction(metric, now=None),
        )

        def events(**params: Any) -> list[int]:
            with running.client() as http:
                answer = http.get("/corrections", params={"metric": metric[0], **params})
            assert answer.status_code == 200, answer.text
            return [item["events"] for item in answer.json()["items"]]

        assert events() == [-2, 5, 3, 3]
        assert events(limit=2) == [-2, 5]
        assert events(source="app") == [3]
        assert events(late_ms=60_000) == [-2, 5, 3]
        assert events(resolution_ms=60_000) == [3]

    def test_a_series_that_names_who_was_erased_is_left_out(
        self, running: Running, panes: Panes
    ) -> None:
        """Of versions that counted them; what a later version corrects is about somebody else."""
        tenant = "forgets_late"
        after = running.erase(tenant, "jane") + 1
        members = {"tenant": tenant, "series": "=eu|=jane"}
        panes.publish(
            correction(("m", 1), **members),
            correction(("m", 1), tenant=tenant, series="=eu|=janet"),
            correction(("m", after), **members),
        )
        with running.client(running.key_for(tenant, ["read"])) as http:
            items = http.get("/corrections").json()["items"]

        assert len(items) == 2

    def test_nobody_sees_another_tenants(
        self, running: Running, panes: Panes, metric: tuple[str, int]
    ) -> None:
        """By no filter."""
        panes.publish(correction(metric, tenant="elsewhere"))
        key = running.key_for("elsewhere", ["read"])
        with running.client() as mine, running.client(key) as theirs:
            assert mine.get("/corrections", params={"metric": metric[0]}).json()["items"] == []
            assert len(theirs.get("/corrections").json()["items"]) == 1


def following(client: Client, seq: int | None = None, number: int = 1) -> dict[str, Any]:
    """Subscribe; return the first frame, which says where it stands."""
    members: dict[str, Any] = {} if seq is None else {"from": {"seq": seq}}
    client.say("subscribe", id=number, to="corrections", **members)
    client.hear("subscribed")
    return client.hear("correction")


@pytest.mark.kafka
@pytest.mark.redis
class TestInAnswers:
    def test_a_chart_is_told_what_late_events_changed_in_it(
        self, running: Running, panes: Panes, engine: Any, metric: tuple[str, int]
    ) -> None:
        """What it showed before, and what is now: live, and whoever asks afterwards.

        Also where the correction is read after the record of its batch.
        """
        name, vid = metric
        start_s = ten_seconds_ago(20)
        pane = (vid, 10, start_s)
        engine.commit({pane: {"=eu": Row(2)}}, through_ms=(start_s + 190) * 1000)
        watcher = Watcher(running, asked(name))
        watcher.listen(lambda answer: total(answer, "eu") == 2)
        assert watcher.answer is not None
        assert watcher.answer["corrections"] == []

        engine.commit({pane: {"=eu": Row(3)}})
        watcher.listen(lambda answer: total(answer, "eu") == 5)
        received_ms = (start_s + 190) * 1000
        late = correction(metric, start_s=start_s, received_ms=received_ms, final_ms=received_ms)
        panes.publish(late)
        engine.commit(ticks=1)
        watcher.listen(lambda answer: len(answer["corrections"]) == 1)
        with running.client() as http:
            told = http.post("/query", json=asked(name)).json()["corrections"]

        (one,) = told
        assert one == {
            "t_ms": (start_s + 10) * 1000,
            "k": watcher.answer["series"][0]["k"],
            "was": 2.0,
            "was_low": 2.0,
            "was_high": 2.0,
            "is": 5.0,
            "events": 3,
            "late_ms": 180_000,
        }
        assert watcher.answer["corrections"] == told


@pytest.mark.kafka
@pytest.mark.redis
class TestLive:
    def test_from_now_on_each_is_told_once(
        self, running: Running, panes: Panes, metric: tuple[str, int]
    ) -> None:
        """As the API tells it; what was there before is read over HTTP."""
        panes.publish(correction(metric))
        with greeted(running) as client, running.client() as http:
            first = following(client)
            assert (first["items"], first["of"]) == ([], 0)
            panes.publish(correction(metric, start_s=START_S + 20))
            frame = client.hear("correction")
            newest = http.get("/corrections", params={"metric": metric[0]}).json()["items"][0]

        assert frame["items"] == [newest]
        assert frame["seq"] == newest["seq"] > first["seq"]

    def test_who_resumes_is_told_what_it_missed(
        self, running: Running, panes: Panes, metric: tuple[str, int]
    ) -> None:
        """From its seq on; of another log, from now on."""
        with greeted(running) as client:
            seq = following(client)["seq"]
        panes.publish(correction(metric), correction(metric, tenant="elsewhere"))
        with greeted(running) as client:
            missed = following(client, seq)
            assert [one["metric"] for one in missed["items"]] == [metric[0]]
            assert following(client, 10**9, 2)["items"] == []

    def test_a_paused_client_gets_it_later(
        self, running: Running, panes: Panes, metric: tuple[str, int]
    ) -> None:
        """All that came meanwhile, in one frame, of which the newest 200 are told."""
        with greeted(running) as client:
            following(client)
            client.say("pace", hz=0)
            client.say("subscribe", id=9, to="pipeline")
            client.hear("subscribed")  # so the pace before it is known
            panes.publish(*(correction(metric, start_s=START_S + 10 * n) for n in range(230)))
            client.say("pace", hz=4)
            frame = client.hear("correction")

        assert (frame["of"], len(frame["items"])) == (230, 200)
        assert frame["items"][0]["t_ms"] == (START_S + 2_300) * 1000
