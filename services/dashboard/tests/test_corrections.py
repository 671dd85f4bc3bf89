"""Corrections over HTTP and the live socket: whose, which, in what order, and how many."""

from __future__ import annotations

import asyncio
import itertools
import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import structlog
from confluent_kafka import Producer
from weir import names
from weir.clock import ManualClock, SystemClock
from weir.corrections import CorrectionRecord, Figures, encode, raw_texts
from weir.frequent import Moved
from weir.further import Last
from weir.kafka import Kafka
from weir.rows import Row
from weir.sketches import Bounded
from weir_dashboard.app import build
from weir_dashboard.live.client import Subscription
from weir_dashboard.live.corrections import CorrectionFeeds
from weir_dashboard.running import running as running_parts
from weir_dashboard.settings import Settings
from weir_dashboard.store import backwards, corrections, corrections_kept
from weir_dashboard.store.corrections import Corrections
from weir_dashboard.store.corrections_kept import Kept, KeptCorrections, finest
from weir_local.waiting import wait_until
from weir_reading.follower import Record

from .test_live_socket import Client, greeted
from .watching import Watcher, asked, ten_seconds_ago, total

if TYPE_CHECKING:
    from .conftest import Running

START_S = 1_800_000_000
_BATCHES = itertools.count(1)
LISTED = raw_texts([Moved(text, (1, 1, 1), (2, 2, 2)) for text in ("jane", "janet")])


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

    def test_one_tenant_pushes_out_no_other(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A metric has a bound, and what is too much in all goes from who has the most."""
        monkeypatch.setattr(corrections_kept, "MOST_OF_A_METRIC", 6)
        monkeypatch.setattr(corrections_kept, "MOST", 8)
        kept = Corrections(Kafka("127.0.0.1:1"), SystemClock())
        kept.take([told(n, correction(("quiet", 2))) for n in range(3)])
        loud = [told(n, correction(("loud", 3), tenant="other")) for n in range(3, 30)]
        many = [correction((f"m{n % 4}", 4), tenant="other") for n in range(30, 50)]
        kept.take([*loud, *(told(n, one) for n, one in enumerate(many, 30))])

        assert [one.seq for one in kept.newest("default")] == [2, 1, 0]
        assert len(kept.newest("other")) == 5
        assert len(kept._kept) == 8

    def test_older_ones_are_kept_where_there_is_room(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Not where newer ones of the metric went, and not for who has the most."""
        monkeypatch.setattr(corrections_kept, "MOST_OF_A_METRIC", 4)
        monkeypatch.setattr(corrections_kept, "MOST", 6)
        kept = KeptCorrections()

        def older(seq: int, tenant: str, metric: str) -> bool:
            return kept.add_older(Kept(seq, correction((metric, 1), tenant=tenant)))

        for seq, metric in enumerate(["a", "a", "a", "a", "a", "b", "b"], 20):
            kept.add(Kept(seq, correction((metric, 1), tenant="loud")))
        assert [one.seq for one in kept.newest("loud")] == [26, 25, 24, 23, 22, 21]

        assert not older(19, "loud", "c")
        assert [older(seq, "quiet", "m") for seq in (18, 17, 16, 15)] == [True, True, True, False]
        assert [one.seq for one in kept.newest("quiet")] == [18, 17, 16]
        assert [one.seq for one in kept.newest("loud")] == [26, 25, 24]
        monkeypatch.setattr(corrections_kept, "MOST", 99)
        assert [older(seq, "loud", metric) for seq, metric in ((14, "a"), (13, "c"))] == [
            False,
            True,
        ]
        assert [older(seq, "quiet", "m") for seq in (12, 11)] == [True, False]

    def test_an_older_copy_takes_the_place_of_a_later_one(self) -> None:
        """As if they had been read in the order in which they were published."""
        kept = KeptCorrections()
        first, between = correction(), correction()
        stands = [kept.stand("default", "m")]
        kept.add(Kept(9, correction(batch=first.batch, sources_known=False)))
        stands.append(kept.stand("default", "m"))
        for one in (Kept(5, between), Kept(4, first)):
            assert kept.add_older(one)
            stands.append(kept.stand("default", "m"))

        assert kept.newest("default") == [Kept(5, between), Kept(4, first)]
        assert kept.of_metric("default", "m") == (between, first)
        assert len(set(stands)) == 4, "answers would not be told"

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


class TestParts:
    """One batch's corrections are read in several parts, and the hub ticks in between."""

    @pytest.mark.parametrize("first", [10, 60])
    def test_nothing_is_told_twice(self, first: int) -> None:
        """Whichever of the two panes of one event comes first; what is whole is not held up."""
        clock = ManualClock(START_S * 1000)
        kept = Corrections(Kafka("127.0.0.1:1"), clock)
        written: list[dict[str, Any]] = []
        socket = SimpleNamespace(
            write=lambda frame: written.append(json.loads(frame[frame.index(b"{") :]))
        )
        client: Any = SimpleNamespace(socket=socket, can_take=lambda _: True, wants=lambda *_: True)
        subscription = Subscription(client, 1, "c1")
        tell: Any = lambda found: map(Told, found)  # noqa: E731
        feeds = CorrectionFeeds(kept, tell, lambda: True)
        kept.listen(feeds.on_corrections)
        feeds.join("default", subscription)

        def comes(seq: int, record: CorrectionRecord) -> None:
            kept.follower.next_offset = seq + 1
            kept.take([told(seq, record)])
            feeds.send(clock.monotonic_s())

        clock.advance(1_000)
        feeds.send(clock.monotonic_s())
        before = correction()
        comes(0, before)
        comes(1, correction(batch=(one := before.batch + 1), res_s=first))
        clock.advance(300)
        comes(2, correction(batch=one, res_s=70 - first))
        seen = [[item["res_s"] for item in frame["items"]] for frame in written]
        assert seen == [[], [10]]
        clock.advance(500)
        feeds.send(clock.monotonic_s())
        feeds.send(clock.monotonic_s() + 1)
        seen = [[(item["res_s"], frame["seq"]) for item in frame["items"]] for frame in written]
        assert seen == [[], [(10, 0)], [(10, 2)]]


class Told:
    """A correction as a subscriber is told of it."""

    def __init__(self, of: Kept) -> None:
        self._of = of

    def model_dump(self, *, mode: str) -> dict[str, Any]:
        """Return what the test looks at."""
        return {"mode": mode, "res_s": self._of.record.res_s}


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
    follower = running.dashboard.context.corrections.follower
    # Had records come before it saw that the topic is empty, this dashboard, too, would read
    # backwards and say so, just where a test hears what another one says.
    wait_until(follower.caught_up.is_set, timeout_s=30, what="an empty topic")
    return Panes(running)


@pytest.mark.kafka
class TestAfterARestart:
    def test_what_one_tenant_wrote_last_hides_nobody_elses(
        self, running: Running, panes: Panes, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It is read backwards, chunk by chunk, to the start of the topic; nobody is told."""
        quiet = correction(tenant="quiet")
        copy = correction(tenant="quiet", batch=quiet.batch, sources_known=False)
        panes.publish(quiet)
        panes.publish(*(correction(tenant="loud") for _ in range(30)))
        panes.publish(copy, correction())
        monkeypatch.setattr(corrections, "FOLLOWED_FROM", 5)
        monkeypatch.setattr(backwards, "CHUNK", 7)

        _, kept = asyncio.run(restarted(running.dashboard.context.settings))

        assert [one.record for one in kept.newest("quiet")] == [quiet]
        seqs = [one.seq for one in kept.newest("loud")]
        assert len(seqs) == 30
        assert seqs == sorted(seqs, reverse=True)

    def test_so_many_are_read_and_no_more(
        self, running: Running, panes: Panes, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A topic of months ends no search; the log says that it was given up."""
        panes.publish(*(correction(tenant="cut_short") for _ in range(30)))
        monkeypatch.setattr(corrections, "FOLLOWED_FROM", 5)
        monkeypatch.setattr(corrections, "MOST_READ_BACK", 14)
        monkeypatch.setattr(backwards, "CHUNK", 7)

        said, kept = asyncio.run(restarted(running.dashboard.context.settings))

        assert len(kept.newest("cut_short")) == 5 + 14
        assert said == {"event": "corrections_not_all_read", "records": 14, "log_level": "warning"}


async def restarted(settings: Settings) -> tuple[Any, Corrections]:
    """Start a dashboard more; return what it logs once it has read backwards, and what it knows."""
    last_words = ("corrections_read_back", "corrections_not_all_read")
    with structlog.testing.capture_logs() as said:

        def ends() -> list[Any]:
            return [line for line in said if line["event"] in last_words]

        dashboard = build(settings, SystemClock())
        async with running_parts(dashboard):
            await asyncio.to_thread(wait_until, ends, timeout_s=30, what="it read backwards")
    return ends()[0], dashboard.context.corrections


@pytest.mark.kafka
@pytest.mark.redis
class TestOverHttp:
    def test_a_correction_says_what_changed(
        self, running: Running, panes: Panes, metric: tuple[str, int]
    ) -> None:
        """Pane, dimensions, before, after, how late, and who sent what came late."""
        was = Figures(2, 3.0, 1.0, 2.0, estimates={"distinct": Bounded(2.0, 1.0, 3.0)})
        now = Figures(4, 12.0, 1.0, 5.0, 9.0, Last(0, b"", 5.0))
        texts = raw_texts([Moved("/a", (2, 2, 3), (4, 4, 5))])
        panes.publish(correction(metric, was=was, now=now, texts=texts))
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
            "sources_exact": False,
            "texts": [
                {
                    "text": "/a",
                    "was": {"value": 2, "low": 2, "high": 3},
                    "now": {"value": 4, "low": 4, "high": 5},
                }
            ],
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
        """Of versions that counted them; what a later version corrects is about somebody else.

        Nor is a text of a list told that does.
        """
        tenant = "forgets_late"
        after = running.erase(tenant, "jane") + 1
        members = {"tenant": tenant, "series": "=eu|=jane"}
        panes.publish(
            correction(("m", 1), **members),
            correction(("m", 1), tenant=tenant, series="=eu|=janet", texts=LISTED),
            correction(("m", after), **members, texts=LISTED),
        )
        with running.client(running.key_for(tenant, ["read"])) as http:
            items = http.get("/corrections").json()["items"]

        assert [[one["text"] for one in item["texts"]] for item in items] == [
            ["jane", "janet"],
            ["janet"],
        ]

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
            "is_low": 5.0,
            "is_high": 5.0,
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
            one = correction(metric).batch
            starts_s = (START_S + 10 * n for n in range(230))
            panes.publish(*(correction(metric, batch=one, start_s=at) for at in starts_s))
            client.say("pace", hz=4)
            frame = client.hear("correction")

        assert (frame["of"], len(frame["items"])) == (230, 200)
        assert frame["items"][0]["t_ms"] == (START_S + 2_300) * 1000
