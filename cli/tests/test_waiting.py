"""How long a dashboard is waited for: each request anew, and longer for what is followed."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from weir.clock import ManualClock
from weir_cli import api as api_module
from weir_cli import serving as following
from weir_cli.api import Api, UnreachedError

from .conftest import Command
from .serving import Given, serving
from .test_following import METRIC, answering, progress

AWAY: Given = (503, {"code": "store_unavailable", "message": "it restarts"}, {})
BUSY: Given = (429, {"message": "too many requests"}, {"Retry-After": "0"})
RUNNING = {"id": "j_1", "job": "audit", "state": "running"}
DONE = {**RUNNING, "state": "done", "outcome": {"verified": True}}
GOES_ON = "weir: the job goes on; `weir jobs j_1` follows it\n"


def nothing(_: str) -> None:
    """Note nothing."""


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> ManualClock:
    """Let time go on by pauses and by hand alone."""
    clock = ManualClock()
    hands = SimpleNamespace(
        monotonic=clock.monotonic_s, sleep=lambda seconds: clock.advance(round(seconds * 1000))
    )
    monkeypatch.setattr(api_module, "time", hands)
    return clock


class TestEachRequest:
    def test_time_that_passed_before_it_is_not_waited(self, clock: ManualClock) -> None:
        """An outage that begins later than `--wait` is as long is waited out as well."""
        found: Given = (200, {"items": []}, {})
        with serving(found, AWAY, found) as served:
            api = Api(served.url, "wk_key", wait_s=5, note=nothing)
            api.call("GET", "/jobs")
            clock.advance(3_600_000)
            assert api.call("GET", "/jobs").is_ok

    def test_as_long_as_is_said(self, clock: ManualClock) -> None:
        """The error tells how long it was tried, and so long it was."""
        with serving((200, {}, {}), AWAY) as served:
            api = Api(served.url, "wk_key", wait_s=5, note=nothing)
            api.call("GET", "/jobs")
            clock.advance(3_600_000)
            with pytest.raises(UnreachedError, match="answered 503 for 5 s: it restarts; --wait w"):
                api.call("GET", "/jobs")
        assert clock.monotonic_s() == 3_605


class TestAJob:
    @pytest.mark.parametrize("away", [(AWAY, AWAY), (BUSY,)])
    def test_a_restart_does_not_end_it(self, tmp_path: Path, away: tuple[Given, ...]) -> None:
        """Nor being told once to come later; no `--wait` is needed."""
        given: tuple[Given, ...] = ((202, RUNNING, {}), *away, (200, DONE, {}))
        with serving(*given) as served:
            written, _ = Command(tmp_path, served.url, "wk_key").do("audit")
        assert written.startswith("audit j_1 done\n")
        assert len(served.asked) == len(given)

    @pytest.mark.parametrize("words", [("audit",), ("jobs", "j_1")])
    def test_how_to_go_on_is_told(
        self, tmp_path: Path, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Where the dashboard stays away: by the job's id, for programs too."""
        monkeypatch.setattr(api_module, "FOLLOWED_S", 0.4)
        with serving((202, RUNNING, {}), AWAY) as served:
            written, errors = Command(tmp_path, served.url, "wk_key").do(*words, "--json", code=3)
        told = json.loads(written)["error"]
        assert (told["job"], told["code"]) == ("j_1", "store_unavailable")
        assert told["message"].endswith("answered 503 for 0.4 s: it restarts; --wait waits longer")
        assert errors == f"audit j_1: running\nweir: {told['message']}\n{GOES_ON}"

    def test_wait_waits_longer(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """What is asked for goes before, where it is more."""
        monkeypatch.setattr(api_module, "FOLLOWED_S", 0.0)
        with serving((202, RUNNING, {}), AWAY, AWAY, (200, DONE, {})) as served:
            Command(tmp_path, served.url, "wk_key").do("audit", "--wait", "20")
        with serving((202, RUNNING, {}), AWAY, (200, DONE, {})) as served:
            Command(tmp_path, served.url, "wk_key").do("audit", code=3)

    def test_one_that_may_not_be_read_any_more(self, tmp_path: Path) -> None:
        """A key that was revoked meanwhile is refused at once; the job is named likewise."""
        with serving((202, RUNNING, {}), (403, {"message": "no"}, {})) as served:
            written, errors = Command(tmp_path, served.url, "wk_key").do("audit", "--json", code=1)
        assert json.loads(written)["error"]["job"] == "j_1"
        assert errors == f"audit j_1: running\nweir: no\n{GOES_ON}"

    def test_only_what_is_followed(self, tmp_path: Path) -> None:
        """What is asked once ends at once, as before."""
        with serving(AWAY) as served:
            written, _ = Command(tmp_path, served.url, "wk_key").do(
                "jobs", "j_1", "--detach", "--json", code=3
            )
        assert len(served.asked) == 1
        assert "job" not in json.loads(written)["error"]


class TestAVersion:
    def at(self, folder: Path, url: str) -> Command:
        """Return the command with a metric to apply."""
        (folder / "a.yaml").write_text(METRIC.format("a"))
        return Command(folder, url, "wk_key")

    def polled(self, *polls: Given) -> Callable[[str, str, Any], Given]:
        """Return what answers as a dashboard where progress is answered so, the last for ever."""
        left, others = list(polls), answering(progress())

        def answer(method: str, path: str, body: Any) -> Given:
            if not path.endswith("/progress"):
                given: Given = others(method, path, body)
                return given
            return left.pop(0) if len(left) > 1 else left[0]

        return answer

    @pytest.mark.parametrize("begun", [(), ((200, progress(at=600), {}),)])
    def test_a_restart_does_not_end_it(self, tmp_path: Path, begun: tuple[Given, ...]) -> None:
        """Whether it comes while it is counted or before."""
        polls = self.polled(*begun, AWAY, BUSY, (200, progress(serving=True), {}))
        with serving(by=polls) as served:
            written, _ = self.at(tmp_path, served.url).do("apply", "-f", tmp_path, "--follow")
        assert written.endswith("serves    metric/a version 2\n")

    def test_timeout_goes_before(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """It is how long somebody wants to wait in all; how to go on is told."""
        monkeypatch.setattr(following, "FIRST_PAUSE_S", 0.1)
        begun_s = time.monotonic()
        with serving(by=self.polled((200, progress(at=600), {}), AWAY)) as served:
            words = ("apply", "-f", tmp_path, "--follow", "--timeout", "1")
            _, errors = self.at(tmp_path, served.url).do(*words, code=3)
        assert time.monotonic() - begun_s < 10
        *_, error, hint = errors.splitlines()
        assert error.endswith(" s: it restarts; --timeout waits longer")
        assert hint == "weir: it is counted all the same; `weir get metric/a` says how far"
