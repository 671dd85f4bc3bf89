"""The job's own state as others see it, and the checkpoint as the driver reads it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np
import psutil
import pytest
import redis
from weir import names
from weir.clock import ManualClock
from weir.commit_found import Planned
from weir.log_left import LogLeft
from weir_analytics.panes.checkpoint import last_planned, set_aside, starting_offsets
from weir_analytics.panes.heartbeat import Heartbeat
from weir_analytics.panes.ops import Figures, OpsServer, answer
from weir_analytics.panes.own import Own, Process, measure
from weir_analytics.panes.runs import NEVER, Identities, Run, write_run
from weir_analytics.panes.ticks import LogEnds
from weir_analytics.panes.vitals import BEHIND_MS, LARGE, Vitals

from .conftest import settings_for

# A process with children, and what it measures of them and itself.
MEASURED = """
import json, subprocess, sys
from pathlib import Path
from types import SimpleNamespace
from weir_analytics.panes.own import measure
folder, *programs = sys.argv[1:]
folders = SimpleNamespace(dedup_dir=Path(folder), checkpoint_dir=Path(folder))
started = [subprocess.Popen([program, "60"]) for program in programs]
try:
    print(json.dumps(dict(measure(folders).resident)))
finally:
    for child in started:
        child.kill()
        child.wait()
"""


class TestVitals:
    def test_what_can_be_counted_is_the_best_of_lately(self) -> None:
        """A small batch says nothing of it, a slow one little; what stays slow is believed."""
        vitals = Vitals()
        vitals.measure(LARGE - 1, 0.1)
        assert vitals.capacity_per_s is None
        vitals.measure(LARGE, 1.0)
        vitals.measure(2 * LARGE, 1.0)
        assert vitals.capacity_per_s == 2 * LARGE
        vitals.measure(LARGE, 1.0)
        assert vitals.capacity_per_s == 1.9 * LARGE
        for _ in range(60):
            vitals.measure(LARGE, 1.0)
        assert vitals.capacity_per_s == pytest.approx(LARGE, rel=0.01)

    @pytest.mark.parametrize(
        ("now_s", "now_ms", "status"),
        [
            (1.0, BEHIND_MS, "ok"),
            (1.0, BEHIND_MS + 1, "behind"),
            (10.0, 0, "ok"),
            (10.1, 0, "stalled"),
        ],
    )
    def test_status_by_age(self, now_s: float, now_ms: int, status: str) -> None:
        """Numbers too old are behind; no batch at all, not even of ticks, is a stall."""
        vitals = Vitals(ready=True, last_batch_s=0.0)

        assert vitals.status(now_s, now_ms, 10_000) == status

    def test_before_the_first_batch_it_starts(self) -> None:
        """Warming up is neither behind nor stalled."""
        assert Vitals().status(99, 99, 1) == "starting"


def told(vitals: Vitals, figures: Figures) -> dict[str, str]:
    """Return what `/metrics` says, by the name of the series."""
    lines = answer("/metrics", vitals, figures)[2].decode().splitlines()
    return dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))


class TestOps:
    def test_ready_only_after_the_first_batch(self) -> None:
        """Readiness says what the job is at; a dead thread ends liveness."""
        vitals, figures = Vitals(doing="warming up"), Figures()

        assert answer("/readyz", vitals, figures)[::2] == (503, b"warming up\n")
        assert answer("/livez", vitals, figures)[0] == 200
        vitals.ready, vitals.failed = True, "ticks"
        assert answer("/readyz", vitals, figures)[0] == 200
        assert answer("/livez", vitals, figures)[0] == 503

    def test_lag_grows_while_no_batch_ends(self) -> None:
        """It is where the log ends less what is counted: a driver that hangs hides nothing."""
        vitals, figures = Vitals(), Figures()
        figures.watch(vitals)
        assert told(vitals, figures)["weir_panes_lag_records"] == "NaN"
        vitals.see(LogEnds({0: 10, 1: 20}, {0: 10, 1: 18}))
        assert told(vitals, figures)["weir_panes_lag_records"] == "NaN"
        vitals.take({0: 10, 1: 18}, {})
        assert told(vitals, figures)["weir_panes_lag_records"] == "0.0"
        grown = {0: 110, 1: 25, 2: 7}, {0: 110, 1: 23, 2: 7}
        vitals.see(LogEnds(*grown))
        assert told(vitals, figures)["weir_panes_lag_records"] == "112.0"
        # Of ticks among them nobody waits; what it answers is what the ticker may forget.
        assert vitals.see(LogEnds(*grown, ticks={0: (4, 10, 50), 1: (23, 24)})) == {0: 10, 1: 18}
        assert told(vitals, figures)["weir_panes_lag_records"] == "110.0"
        vitals.take({0: 200, 1: 23, 2: 0}, {})
        assert told(vitals, figures)["weir_panes_lag_records"] == "7.0"

    def test_how_many_identities_the_dedup_runs_hold(self, tmp_path: Path) -> None:
        """Of whole runs, to the one; what is half written takes room and holds none."""
        settings = settings_for(tmp_path)
        assert measure(settings).dedup_entries == 0
        folder = settings.dedup_dir / "partition"
        for start, count in ((0, 3), (10, 1), (20, 0)):
            ids = np.arange(count, dtype=np.uint64)
            identities = Identities.of_ordered(ids, ids, np.full(count, 990, np.int64))
            write_run(folder, Run(start, start + 5, NEVER, 1_000, identities), 60_000)
        (folder / f".{Run(5, 9, 0, 0, Identities.empty()).name}.host-1").write_bytes(b"\0" * 500)

        own = measure(settings)

        assert own.dedup_entries == 4
        assert own.dedup_bytes == sum(path.stat().st_size for path in folder.iterdir())
        assert own.dedup_bytes == 3 * 56 + 4 * 24 + 500
        figures = Figures()
        figures.watch(vitals := Vitals(own=own))
        assert told(vitals, figures)["weir_panes_dedup_entries_count"] == "4.0"
        assert told(vitals, figures)["weir_panes_dedup_bytes"] == "764.0"

    def test_memory_is_told_by_process(self, tmp_path: Path) -> None:
        """The driver's, its JVM's and its workers' are told apart, of all that it has started.

        In a process of its own: the one of the tests may have started servers.
        """
        sleep = str(shutil.which("sleep"))
        java = shutil.copy(sleep, tmp_path / "java")
        done = subprocess.run(  # noqa: S603  our own interpreter
            [sys.executable, "-c", MEASURED, str(tmp_path / "state"), java, sleep, sleep],
            capture_output=True,
            text=True,
            check=True,
        )
        own = Own(resident={Process(kind): n for kind, n in json.loads(done.stdout).items()})
        figures = Figures()
        figures.watch(Vitals(own=own))
        name = "weir_panes_resident_memory_bytes"
        found = {
            kind: float(told(Vitals(), figures)[f'{name}{{process="{kind}"}}'])
            for kind in ("driver", "jvm", "workers")
        }
        assert found["driver"] > found["workers"] > found["jvm"] > 0
        assert sum(found.values()) == own.rss_bytes

    def test_it_answers_on_its_port(self) -> None:
        """The server serves, and says what it serves where it does not."""
        import threading

        server = OpsServer(("127.0.0.1", 0), Vitals(), Figures())
        threading.Thread(target=server.run, daemon=True).start()
        base = f"http://127.0.0.1:{server.port}"
        with urllib.request.urlopen(base + "/livez", timeout=5) as found:  # noqa: S310
            assert found.read() == b"ok\n"
        with pytest.raises(urllib.error.HTTPError, match="404") as refused:
            urllib.request.urlopen(base + "/x", timeout=5)  # noqa: S310
        refused.value.close()
        server.close()


@pytest.mark.redis
def test_heartbeat_tells_the_state(redis_url: str, tmp_path: Path) -> None:
    """The heartbeat has the members of the contract and expires by itself."""
    import threading

    stop = threading.Event()
    vitals = Vitals(ready=True, last_batch_s=0.0, epoch=3, rev=4, processed_through_ms=900)
    vitals.counted, vitals.log = {0: 4}, LogEnds({0: 9}, {0: 9})
    settings = settings_for(tmp_path, redis_url=redis_url).model_copy(update={"instance": "i1"})
    beat = Heartbeat(settings, ManualClock(1_000))
    client = redis.Redis.from_url(redis_url)
    body = json.loads(beat.text(vitals))
    assert body["status"] == "ok"
    assert (body["lag_ms"], body["detail"]["epoch"], body["detail"]["rev"]) == (100, 3, 4)
    assert body["detail"]["lag_records"] == 5
    assert body["detail"]["rss_bytes"] >= psutil.Process().memory_info().rss // 2
    assert "log_left_ms" not in body["detail"], "nobody has looked yet"
    assert body["detail"]["capacity_per_s"] is None, "no batch was large enough"
    vitals.measure(LARGE, 2.0)
    assert json.loads(beat.text(vitals))["detail"]["capacity_per_s"] == LARGE // 2
    vitals.log_left = LogLeft(0, 7, 9)
    assert json.loads(beat.text(vitals))["detail"]["log_left_ms"] == 7
    thread = threading.Thread(target=lambda: beat.run(vitals, stop))
    thread.start()
    key = names.part_key("panes", "i1")
    while client.ttl(key) <= 0:
        stop.wait(0.01)
    stop.set()
    thread.join(5)

    assert client.get(key) is None
    client.close()


class TestCheckpoint:
    def _write(self, folder: Path, batch: int, offsets: dict[str, int], topic: str = "t") -> None:
        (folder / "offsets").mkdir(parents=True, exist_ok=True)
        text = f'v1\n{{"batchWatermarkMs":0}}\n{json.dumps({topic: offsets})}'
        (folder / "offsets" / str(batch)).write_text(text.replace(": ", ":"))

    def _begin(self, folder: Path) -> None:
        (folder / "sources" / "0").mkdir(parents=True)
        (folder / "sources" / "0" / "0").write_bytes(b'\x00v1\n{"t":{"0":3}}')

    def test_the_first_batch_begins_where_the_source_began(self, tmp_path: Path) -> None:
        """Batch 0 has no batch before it; its start is the source's."""
        self._begin(tmp_path)
        self._write(tmp_path, 0, {"0": 7})

        assert last_planned(tmp_path, "t") == Planned(0, {0: 3}, {0: 7}, committed=False)

    def test_a_batch_begins_where_the_last_ended(self, tmp_path: Path) -> None:
        """The range of batch N lies between the files N-1 and N."""
        self._begin(tmp_path)
        for batch, offset in enumerate((7, 9, 12)):
            self._write(tmp_path, batch, {"0": offset})
        (tmp_path / "commits").mkdir()
        (tmp_path / "commits" / "2").write_text("v1")

        assert last_planned(tmp_path, "t") == Planned(2, {0: 9}, {0: 12}, committed=True)

    @pytest.mark.parametrize("text", ["", "v1\n", 'v1\n{"t":{"0":'])
    def test_a_cut_file_is_no_checkpoint(self, tmp_path: Path, text: str) -> None:
        """A file that was cut off by a full disk is not guessed at."""
        self._begin(tmp_path)
        self._write(tmp_path, 0, {"0": 7})
        (tmp_path / "offsets" / "0").write_text(text)

        assert last_planned(tmp_path, "t") is None

    def test_set_aside_keeps_a_few(self, tmp_path: Path) -> None:
        """Old checkpoints are kept for people, the oldest ones go."""
        for name in range(6):
            self._begin(tmp_path / "checkpoint")
            set_aside(tmp_path / "checkpoint", str(name))

        assert len(list(tmp_path.iterdir())) == 3
        assert starting_offsets("t", {1: 2, 0: 5}) == '{"t": {"0": 5, "1": 2}}'
