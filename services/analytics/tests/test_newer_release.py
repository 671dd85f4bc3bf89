"""What a newer release has left stops the panes job and the alerts job before they write."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import MagicMock

import pytest
from first_release import TOPICS, Value, newer, redis_state
from structlog.testing import capture_logs
from weir import names
from weir.batches import VERSION
from weir.clock import SystemClock
from weir.commit import Fence, Verdict
from weir.definitions.fold import Definitions
from weir.formats import NewerFormatError
from weir.rows import Row
from weir_analytics.alerts import __main__ as alerts_main
from weir_analytics.alerts.app import Alerts
from weir_analytics.alerts.settings import Settings as AlertsSettings
from weir_analytics.panes import cycle as cycle_module
from weir_analytics.panes.commit_job import CommitJob, Committed, Limits, Part
from weir_analytics.panes.cycle import Cycle
from weir_analytics.panes.definitions_log import DefinitionsLog
from weir_analytics.panes.driver import EXIT_FOREIGN, Driver
from weir_analytics.panes.life import Life
from weir_analytics.panes.ops import Figures
from weir_analytics.panes.passing import StreamEndedError
from weir_analytics.panes.plans import Plans
from weir_analytics.panes.recovery import Shards, VerdictError
from weir_analytics.panes.series_ids import short_id
from weir_analytics.panes.shard_wire import Argument, Command, ShardWire
from weir_analytics.panes.start import Footing, Stores, check_formats
from weir_analytics.panes.store import ShardStore
from weir_analytics.panes.stream import BatchStream
from weir_analytics.panes.vitals import Vitals
from weir_analytics.panes.writer import Report
from weir_reading.follower import Record
from weir_reading.passed_over import PassedOver

from .conftest import settings_for
from .log_frames import HORIZONS

NOWHERE = "redis://127.0.0.1:1/0"
START_S = 1_800_000_000
EVENTS_ID = "K2n0dV5bT1mJ8q0pQ3u6Yw"
PANE = names.pane_key(0, 3, 10, START_S)


class Left(ShardWire):
    """Answers reads from what a release has left in Redis, and notes everything else."""

    def __init__(self) -> None:
        super().__init__(NOWHERE)
        self.state = redis_state()
        self.written: list[Command] = []

    def make_newer(self, key: str, field: bytes | None = None) -> None:
        """Have a newer release write what stands at a key, or in a field of it."""
        if field is None:
            self.state[key] = newer(cast("bytes", self.state[key]))
        else:
            held = self.hash(key)
            held[field] = newer(held[field])

    def hash(self, key: Argument) -> dict[bytes, bytes]:
        """Return a hash; one that is not there is empty."""
        return cast("dict[bytes, bytes]", self.state.get(str(key), {}))

    def ask(
        self, commands: Sequence[Command], *, sent: Callable[[], None] | None = None
    ) -> list[Any]:
        """Answer commands in order."""
        del sent
        return [self._answer(str(name), arguments) for name, *arguments in commands]

    def _answer(self, name: str, arguments: list[Argument]) -> Any:
        key, fields = str(arguments[0]) if arguments else "", arguments[1:]
        match name:
            case "WATCH" | "UNWATCH":
                return b"OK"
            case "GET":
                return self.state.get(key)
            case "MGET":
                return [self.state.get(str(one)) for one in arguments]
            case "HVALS":
                return list(self.hash(key).values())
            case "HKEYS":
                return list(self.hash(key))
            case "HLEN":
                return len(self.hash(key))
            case "HMGET":
                return [self.hash(key).get(cast("bytes", field)) for field in fields]
            case "XREVRANGE":
                return [[place, [b"r", text]] for place, text in self.hash(key).items()][-1:]
        self.written.append((name, *arguments))
        return b"OK"

    def close(self) -> None:
        """Do nothing: nothing is open."""


class LeftDefinitions(DefinitionsLog):
    """The definitions that a release has left; what is appended is noted."""

    def __init__(self, records: list[tuple[bytes, bytes]]) -> None:
        self.fold, self._passed_over = Definitions(), PassedOver()
        self._records = records
        self.appended: list[Any] = []
        self.writes = 0

    def end(self) -> int:
        """Return how many there are."""
        return len(self._records)

    def read_to(self, end: int) -> None:
        """Fold them."""
        self._take([cast("Any", _Message(at, *self._records[at])) for at in range(end)])

    def append(self, record: Any) -> int:
        """Note a record."""
        self.appended.append(record)
        return len(self._records)

    def close(self) -> None:
        """Do nothing: nothing is open."""


class _Message:
    """A record as the client library gives it."""

    def __init__(self, offset: int, key: bytes, value: bytes) -> None:
        self.error, self.offset = (lambda: None), (lambda: offset)
        self.key, self.value, self.timestamp = (lambda: key), (lambda: value), (lambda: (0, 0))


def stores_of(wire: Left, definitions: DefinitionsLog) -> Stores:
    """Return the stores of a driver on what was left."""
    shards, stream = Shards(NOWHERE, 1), BatchStream(NOWHERE)
    shards._wire = stream._wire = wire
    return Stores(definitions, shards, stream)


def driver_on(stores: Stores, folder: Path) -> Driver:
    """Return a driver without Spark, whose stores are these."""
    nothing: Any = None
    settings = settings_for(folder).model_copy(update={"shards": 1})
    found = Driver(settings, nothing, Vitals(), Figures(), nothing, SystemClock())
    vars(found)["_open"] = lambda: stores
    return found


IN_REDIS = [
    pytest.param(names.fence_key(0), None, "fence", id="fence"),
    pytest.param(names.mark_key(0), None, "mark", id="mark"),
    pytest.param(names.outbox_key(0), b"9", "outbox entry", id="outbox"),
    pytest.param(names.BATCHES, b"1-5", "batch record", id="batch record"),
]


class TestDriver:
    @pytest.mark.parametrize(("key", "field", "what"), IN_REDIS)
    def test_a_newer_store_stops_it(
        self, tmp_path: Path, key: str, field: bytes | None, what: str
    ) -> None:
        """It ends as with another's log, says why, and has written nothing anywhere."""
        wire, definitions = Left(), LeftDefinitions(TOPICS[names.DEFINITIONS])
        wire.make_newer(key, field)
        with capture_logs() as logs:
            code = driver_on(stores_of(wire, definitions), tmp_path).run()

        assert code == EXIT_FOREIGN == 4
        (line,) = [log for log in logs if log["event"] == "verdict"]
        assert line["verdict"] == "foreign"
        newest = VERSION if what == "batch record" else 1
        words = f"{what} must be of format version {newest} or below, got 3: a newer"
        assert line["reason"].startswith(words)
        assert (wire.written, definitions.appended) == ([], [])

    @pytest.mark.parametrize("offset", range(len(TOPICS[names.DEFINITIONS])))
    def test_newer_definitions_stop_it(self, tmp_path: Path, offset: int) -> None:
        """Whatever record of ours is newer: metrics, starts, lanes, takeovers, jobs."""
        records = list(TOPICS[names.DEFINITIONS])
        records[offset] = (records[offset][0], newer(records[offset][1]))
        wire, definitions = Left(), LeftDefinitions(records)
        with capture_logs() as logs:
            code = driver_on(stores_of(wire, definitions), tmp_path).run()

        assert code == EXIT_FOREIGN
        (line,) = [log for log in logs if log["event"] == "verdict"]
        assert line["reason"].startswith(f"record {offset} of weir.definitions must be of format")
        assert (wire.written, definitions.appended) == ([], [])

    def test_what_this_release_wrote_stops_nothing(self) -> None:
        """Nor what somebody else put into the topic."""
        junk = (b"shop/metric/junk", b'{"v":99}')
        definitions = LeftDefinitions([*TOPICS[names.DEFINITIONS], junk])
        stores = stores_of(Left(), definitions)
        definitions.read_to(definitions.end())

        check_formats(stores)
        assert [mark.batch for mark in stores.shards.read_marks() if mark] == [4]

    def test_one_that_comes_while_it_counts_ends_its_life(self, tmp_path: Path) -> None:
        """It is not taken for an error that may pass."""
        stores = stores_of(Left(), LeftDefinitions([]))
        driver = driver_on(stores, tmp_path)

        class Told:
            """A life of which a batch meets what is newer."""

            def on_batch(self, *_: object) -> None:
                """Meet it."""
                msg = "mark must be older"
                raise NewerFormatError(msg)

        life = Life(cast("Any", Told))
        with pytest.raises(StreamEndedError):
            driver._on_batch(life, cast("Any", None), 1)
        assert isinstance(life.failure, NewerFormatError)


class TestCommit:
    @pytest.fixture
    def wire(self) -> Left:
        """Return a shard."""
        return Left()

    @pytest.fixture
    def shard(self, wire: Left) -> Iterator[ShardStore]:
        """Return a worker's access to it."""
        found = ShardStore(NOWHERE, 0)
        found._wire = found._reader._wire = wire
        yield found
        found.close()

    def commit(self, shard: ShardStore) -> Any:
        """Commit one event of a series that is there."""
        job = CommitJob(
            shard=0,
            shards=1,
            fence=Fence(1, "xQ0bOZ1QRRyHzJt9Jm9m3g"),
            epoch=1,
            batch=5,
            topic_id=EVENTS_ID,
            from_offsets={0: 52, 1: 12},
            to_offsets={0: 60, 1: 12},
            limits={3: Limits({10: 3_600})},
        )
        return shard.commit(job, [Part(3, 10, START_S, "=at", Row(1, 1.0, 1.0, 1.0))])

    def test_what_the_first_release_left_is_counted_on(self, wire: Left, shard: ShardStore) -> None:
        """The row of its series is merged with what came."""
        assert self.commit(shard).verdict is Verdict.OK
        (write,) = [one for one in wire.written if one[0] == "HSET" and one[1] == PANE]
        assert write[2] == short_id(2)

    @pytest.mark.parametrize(("key", "field", "what"), IN_REDIS[:2])
    def test_a_newer_shard_is_foreign(
        self, wire: Left, shard: ShardStore, key: str, field: bytes | None, what: str
    ) -> None:
        """The reason travels with the verdict; nothing is written."""
        wire.make_newer(key, field)
        done = self.commit(shard)

        assert (done.verdict, wire.written) == (Verdict.FOREIGN, [])
        assert done.why.startswith(f"{what} must be of format version 1 or below, got 3")

    def test_a_newer_row_is_foreign(self, wire: Left, shard: ShardStore) -> None:
        """Rows are looked at when something is to be merged into them."""
        wire.hash(PANE)[short_id(2)] = b"\x81" + wire.hash(PANE)[short_id(2)][1:]
        done = self.commit(shard)

        assert (done.verdict, wire.written) == (Verdict.FOREIGN, [])
        assert done.why.startswith("packed row must be of format version 1 or below, got 2")


def test_the_driver_says_what_a_task_has_met(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not that shards do not stand where they should."""
    nothing: Any = None
    footing = Footing(
        fence=Fence(1, "d"),
        epoch=1,
        events_id=EVENTS_ID,
        target={},
        levels=(),
        copies=False,
        empty=True,
        through_ms=0,
        may_activate_from={},
    )
    settings = settings_for(tmp_path).model_copy(update={"shards": 1})
    stores: Any = SimpleNamespace(shards=None)
    plans = Plans(Definitions(), EVENTS_ID, HORIZONS, nothing)
    cycle = Cycle(nothing, settings, stores, footing, plans, nothing, SystemClock())
    monkeypatch.setattr(cycle, "_same_log", MagicMock())
    report = Report()
    report.note(0, Committed(Verdict.FOREIGN, why="mark must be of format version 1"))
    monkeypatch.setattr(cycle_module, "run", lambda *_: [report.to_json()])
    plan: Any = SimpleNamespace(versions=[])

    with pytest.raises(VerdictError, match="mark must be of format version 1") as caught:
        cycle.evaluate(None, cycle.range_of({0: 0}, {0: 5}, 0), plan)
    assert caught.value.verdict is Verdict.FOREIGN


class TestAlerts:
    @pytest.fixture
    def job(self) -> Alerts:
        """Return the job, which reaches nobody."""
        return Alerts(self.settings(), SystemClock())

    def settings(self) -> AlertsSettings:
        """Return settings that lead nowhere."""
        return AlertsSettings(kafka_bootstrap="127.0.0.1:1", redis_url=NOWHERE, ops_port=0)

    @pytest.mark.parametrize("topic", [names.DEFINITIONS, names.ALERTS])
    def test_newer_records_stop_it_before_it_starts(self, job: Alerts, topic: str) -> None:
        """No start record: whoever wrote the newer ones is not fenced off."""
        key, value = TOPICS[topic][0]
        take = job._catalog.take if topic == names.DEFINITIONS else job._journal._take
        take([Record(0, key, newer(value), 0)])
        job._definitions.caught_up.set()
        job._journal.follower.caught_up.set()

        with pytest.raises(NewerFormatError, match=f"{topic} must be of format version . or below"):
            asyncio.run(job._begin())
        assert job._fence == 0

    def test_a_newer_batch_record_is_told(self, job: Alerts) -> None:
        """It goes on, and says in words why no rule is evaluated."""
        job.ready.set()
        assert job.not_ready() is None
        job._batches._take(newer(_stream(redis_state())[b"1-5"]), (1, 5))

        words = f"batch record must be of format version {VERSION} or below, got 3"
        assert (job.not_ready() or "").startswith(words)
        assert job._told()["trouble"] == job.not_ready()

    def test_it_ends_with_a_code_and_a_line_of_its_own(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """As the panes job does."""

        async def run(_: Alerts) -> None:
            msg = "record 7 must be older"
            raise NewerFormatError(msg)

        monkeypatch.setattr(Alerts, "run", run)
        with capture_logs() as logs:
            assert asyncio.run(alerts_main._run(self.settings())) == 4
        assert {
            "event": "newer_release",
            "why": "record 7 must be older",
            "log_level": "error",
        } in logs


def _stream(state: dict[str, Value]) -> dict[bytes, bytes]:
    return cast("dict[bytes, bytes]", state[names.BATCHES])
