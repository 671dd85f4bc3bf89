"""`--follow` of `weir apply` and `weir rollback`, and how far `weir get` says a metric is.

What is followed is told by a server that says what the test says; through an engine it is in
tests/test_terminal.py.
"""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path
from typing import Any

import pytest
from weir_cli import serving as following
from weir_cli.serving import line_of

from .conftest import Command, finish
from .serving import Given, Served, serving

METRIC = "kind: metric\nname: {}\nevents: {{type: dev.followed}}\n"


def progress(version: int = 2, at: int | None = None, **changes: Any) -> dict[str, Any]:
    """Return how far a version is, as the dashboard tells it; `at` of two lanes together."""
    lanes = [] if at is None else [{"lane": 7, "at": at - 500, "of": 2_000}]
    lanes += [] if at is None else [{"lane": 8, "at": 500, "of": 1_000}]
    told = {"kind": "metric", "name": "a", "version": version, "active": at is not None}
    fixed = {"serving": False, "from_start": False, "lanes": lanes, "waits_for": None}
    return {**told, **fixed, "refused": None, **changes}


def answering(*told: dict[str, Any] | int) -> Any:
    """Return what answers as a dashboard where applying works and progress is as told."""
    left = list(told)

    def answer(_method: str, path: str, body: Any) -> Given:
        if path.endswith("/progress"):
            one = left.pop(0) if len(left) > 1 else left[0]
            if isinstance(one, int):
                return one, {"code": "not_found", "message": "there is no such definition"}, {}
            name = path.split("/")[-2]
            return 200, {**one, "name": name}, {}
        if path.endswith("/rollback"):
            return 200, {"version": 2, "refused": None}, {}
        if path.endswith("/plan"):
            items = [{"ok": True, "diff": {"old_version": 1}, "estimate": None}]
            return 200, {"items": items * len(body["definitions"])}, {}
        if path.endswith("/apply"):
            count = len(body["definitions"])
            return 200, {"items": [{"outcome": "updated", "version": 2}] * count}, {}
        return 200, {"version": 1, "text": METRIC.format("a"), "state": "starting"}, {}

    return answer


def at(served: Served, folder: Path, *names: str) -> Command:
    """Return the command at a server, with files of metrics in its folder."""
    for name in names:
        (folder / f"{name}.yaml").write_text(METRIC.format(name))
    return Command(folder, served.url, "wk_test")


class TestApply:
    def test_it_ends_once_all_serve(self, tmp_path: Path) -> None:
        """How far each is goes to standard error, a line a change."""
        told = (progress(), progress(at=600), progress(at=1_500), progress(serving=True))
        with serving(by=answering(*told)) as served:
            weir = at(served, tmp_path, "a", "b")
            written, errors = weir.do("apply", "-f", tmp_path, "--follow")

        assert written.splitlines() == [
            "updated   metric/a version 2",
            "updated   metric/b version 2",
            "serves    metric/a version 2",
            "serves    metric/b version 2",
        ]
        assert errors.splitlines() == [
            "metric/a version 2: not begun",
            f"metric/a version 2: counted back {'█' * 6}{'░' * 24} 20%, 600 of 3,000 records",
            f"metric/a version 2: counted back {'█' * 15}{'░' * 15} 50%, 1,500 of 3,000 records",
            "metric/a version 2: serves",
            "metric/b version 2: serves",
        ]

    def test_for_programs_it_is_told_as_the_dashboard_does(self, tmp_path: Path) -> None:
        """An object a line: the outcome of each, then each as it is at the end."""
        with serving(by=answering(progress(at=600), progress(serving=True))) as served:
            weir = at(served, tmp_path, "a")
            written, errors = weir.do("apply", "-f", tmp_path, "--follow", "--json")

        outcome, last = map(json.loads, written.splitlines())
        assert (outcome["outcome"], outcome["version"]) == ("updated", 2)
        assert last == progress(serving=True)
        assert "600 of 3,000 records" in errors

    def test_it_ends_in_time_with_a_code_of_its_own(self, tmp_path: Path) -> None:
        """Each metric that does not serve then is named, and what it waits for was told."""
        held = progress(at=600, waits_for="the driver is away")
        with serving(by=answering(held)) as served:
            weir = at(served, tmp_path, "a", "b")
            words = ("apply", "-f", tmp_path, "--follow", "--timeout", "0.3")
            _, errors = weir.do(*words, code=5)

        assert "600 of 3,000 records, the driver is away\n" in errors
        for name in "ab":
            late = (
                f"weir: metric/{name} version 2 does not serve in time; it is counted all the same"
            )
            assert late in errors

    def test_a_version_that_is_read_later_is_waited_for(self, tmp_path: Path) -> None:
        """By a replica that knows the one before, which serves, or none at all."""
        before = progress(version=1, serving=True)
        with serving(by=answering(404, before, progress(serving=True))) as served:
            weir = at(served, tmp_path, "a")
            written, errors = weir.do("apply", "-f", tmp_path, "--follow")

        assert written.endswith("serves    metric/a version 2\n")
        assert errors == "metric/a version 2: not read yet\nmetric/a version 2: serves\n"

    def test_one_that_is_replaced_never_serves(self, tmp_path: Path) -> None:
        """Somebody stored a newer one meanwhile: what was asked for is not in force."""
        with serving(by=answering(progress(at=600), progress(version=3))) as served:
            weir = at(served, tmp_path, "a")
            _, errors = weir.do("apply", "-f", tmp_path, "--follow", code=1)

        assert errors.endswith("weir: metric/a version 2: version 3 has taken its place\n")

    def test_one_that_is_deleted_is_told(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """In the dashboard's words, at once if it was seen before."""
        monkeypatch.setattr(following, "UNREAD_S", 0.3)
        for told in ((404,), (progress(at=600), 404)):
            with serving(by=answering(*told)) as served:
                weir = at(served, tmp_path, "a")
                _, errors = weir.do("apply", "-f", tmp_path, "--follow", code=1)
            assert "weir: there is no such definition" in errors

    def test_ctrl_c_stops_the_following_alone(self, tmp_path: Path) -> None:
        """It is told that the version is counted all the same, and how to see how far."""
        with serving(by=answering(progress(at=600))) as served:
            process = at(served, tmp_path, "a").start("-f", tmp_path, "--follow")
            assert process.stderr is not None
            assert "600 of 3,000" in process.stderr.readline()
            process.send_signal(signal.SIGINT)
            _, errors = finish(process, 130)

        assert errors == "weir: it is counted all the same; `weir get metric/a` says how far\n"

    @pytest.mark.parametrize("seconds", ["0", "-1", "86401", "nan", "soon"])
    def test_how_long_is_bounded(self, tmp_path: Path, seconds: str) -> None:
        """A day at most."""
        with serving(by=answering(progress())) as served:
            weir = at(served, tmp_path, "a")
            _, errors = weir.do("apply", "-f", tmp_path, "--follow", f"--timeout={seconds}", code=2)

        assert f'seconds must be more than 0 and at most 86400, got "{seconds}"' in errors
        assert served.asked == []


class TestRollback:
    def test_it_ends_once_the_metric_serves(self, tmp_path: Path) -> None:
        """By the version that it made; late, with the code for that."""
        words = ("rollback", "metric/a", "--to", "1", "--follow", "--timeout")
        with serving(by=answering(progress(at=600), progress(serving=True))) as served:
            written, _ = at(served, tmp_path).do(*words, "60")
        assert written == (
            "metric/a version 2 has the text of version 1\nserves    metric/a version 2\n"
        )
        with serving(by=answering(progress(at=600))) as served:
            at(served, tmp_path).do(*words, "0.4", code=5)

    def test_other_definitions_are_in_force_at_once(self, tmp_path: Path) -> None:
        """Nothing more is asked."""
        with serving(by=answering(404)) as served:
            at(served, tmp_path).do("rollback", "rule/a", "--to", "1", "--follow")

        assert not any(path.endswith("/progress") for _, path, _ in served.asked)


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (progress(at=1_500), "counted back 50%, 1,500 of 3,000 records"),
        (progress(waits_for="the driver is away"), "the driver is away"),
        (
            progress(at=1_500, waits_for="the driver is away"),
            "counted back 50%, 1,500 of 3,000 records; the driver is away",
        ),
    ],
)
def test_get_says_how_far_a_metric_is(tmp_path: Path, told: dict[str, Any], said: str) -> None:
    """Beside its text, to standard error; nothing where nobody knows."""
    with serving(by=answering(told)) as served:
        written, errors = at(served, tmp_path).do("get", "metric/a")
    assert written == METRIC.format("a")
    assert errors == f"weir: version 2 does not serve yet: {said}\n"
    with serving(by=answering(progress())) as served:
        assert at(served, tmp_path).do("get", "metric/a")[1] == ""


def test_no_sign_steers_a_terminal() -> None:
    """What a version waits for has words of definitions in it."""
    told = progress(waits_for="a\x1b[2Jb")
    assert re.search(r"not begun, a�\[2Jb$", line_of(told, 2))
