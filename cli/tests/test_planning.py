"""What is asked of definitions in files, in few requests, and how long a run of `apply` waits."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from weir_cli.commands import apply as apply_module
from weir_cli.files import Written
from weir_cli.planning import MOST, MOST_BYTES, parts

from .conftest import Command
from .serving import Given, serving

UNKNOWN = {"code": "metric_unknown", "message": 'metric must be one that is served, got "m"'}


def written(title: str, metric: str = "", text: str = "x") -> Written:
    """Return a definition of a file."""
    kind, name = title.split("/")
    return Written(kind, name, text, "a.yaml", metric)


def titles(part: list[Written]) -> list[str]:
    """Return what is sent."""
    return [one.title for one in part]


class TestParts:
    def test_all_at_once(self) -> None:
        """In their order, while they are few."""
        one, two = written("metric/m"), written("rule/r", "m")
        assert list(parts([one, two])) == [[one, two]]
        assert list(parts([])) == []

    def test_a_rule_is_sent_after_its_metric(self) -> None:
        """Once more if the metric was sent before; a metric that no file holds is not."""
        metrics = [written(f"metric/m{number}") for number in range(MOST)]
        rules = [written("rule/a", "m3"), written("rule/b", "m3"), written("rule/c", "stored")]
        first, second = parts([*metrics, *rules])
        assert first == metrics
        assert titles(second) == ["metric/m3", "rule/a", "rule/b", "rule/c"]

    def test_large_ones(self) -> None:
        """A request holds no more than the dashboard takes, in the letters that are sent."""
        large = [written(f"metric/m{number}", text="ä" * (MOST_BYTES // 18)) for number in range(7)]
        sent = list(parts([*large, written("rule/r", "m0")]))
        assert [len(part) for part in sent] == [2, 2, 2, 3]
        for part in sent:
            assert len(json.dumps([one.text for one in part])) < MOST_BYTES


def test_each_is_answered_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a metric was sent with a rule again."""
    monkeypatch.setattr("weir_cli.planning.MOST", 2)

    def judge(_method: str, _path: str, body: Any) -> Given:
        items = [{"ok": True, "estimate": None} for _ in body["definitions"]]
        return 200, {"items": items}, {}

    for name in ("a", "b"):
        (tmp_path / f"{name}.yaml").write_text(
            f"kind: metric\nname: {name}\n---\nkind: rule\nname: {name}\nmetric: {name}\n"
        )
    with serving(by=judge) as served:
        told, _ = Command(tmp_path, served.url, "wk_key").do("check", "-f", tmp_path)
    assert told.split() == ["ok", "metric/a", "ok", "metric/b", "ok", "rule/a", "ok", "rule/b"]
    assert [len(body["definitions"]) for _, _, body in served.asked] == [2, 2, 2]


def written_files(folder: Path, *names: str) -> None:
    """Write a metric into a file of its own for each name."""
    for name in names:
        (folder / f"{name}.yaml").write_text(f"kind: metric\nname: {name}\n")


def good(number: int | None = None) -> dict[str, Any]:
    """Return what a plan says of a definition that may be stored."""
    return {"ok": True, "estimate": None, "code": None, "diff": {"old_version": number}}


class Dashboard:
    """Judges as it is told, and answers what is applied by a list of answers."""

    def __init__(self, *applied: Given, bad: dict[str, dict[str, Any]] | None = None) -> None:
        self.applied, self.bad = list(applied), bad or {}
        self.sent: list[list[Any]] = []

    def __call__(self, _method: str, path: str, body: Any) -> Given:
        """Answer a request."""
        definitions = body["definitions"]
        if path.endswith("/plan"):
            return 200, {"items": [self.bad.get(one["name"], good(3)) for one in definitions]}, {}
        assert path == "/api/v1/definitions/apply"
        self.sent.append([(one["name"], one["based_on"]) for one in definitions])
        if self.applied:
            return self.applied.pop(0)
        items = [{"outcome": "updated", "version": 4} for _ in definitions]
        return 200, {"items": items}, {}


def conflict(*at: int) -> Given:
    """Return the answer that definitions at some places are at another version."""
    place = {"required": "the current version: at version 9", "got": "3", "mend": "read it"}
    errors = [{"pointer": f"/definitions/{one}/based_on", **place} for one in at]
    return 409, {"code": "version_conflict", "message": "no", "errors": errors}, {}


class TestApply:
    @pytest.fixture(autouse=True)
    def hasty(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Pause shortly."""
        monkeypatch.setattr(apply_module, "PAUSE_S", 0.01)
        monkeypatch.setattr(apply_module, "METRIC_TIMEOUT_S", 0.3)

    def run(self, folder: Path, dashboard: Dashboard, code: int) -> list[str]:
        """Apply the files of a folder; return the lines."""
        with serving(by=dashboard) as served:
            return Command(folder, served.url, "wk_key").run(code=code).splitlines()

    def test_one_request_for_all_files(self, tmp_path: Path) -> None:
        """Each is based on the version that was seen."""
        written_files(tmp_path, "a", "b")
        dashboard = Dashboard()
        told = self.run(tmp_path, dashboard, 0)
        assert told == ["updated   metric/a version 4", "updated   metric/b version 4"]
        assert dashboard.sent == [[("a", 3), ("b", 3)]]

    def test_a_conflict_is_looked_at_again(self, tmp_path: Path) -> None:
        """Somebody else was faster; the next time nobody is."""
        written_files(tmp_path, "a")
        dashboard = Dashboard(conflict(0), conflict(0))
        assert self.run(tmp_path, dashboard, 0) == ["updated   metric/a version 4"]
        assert len(dashboard.sent) == 3

    def test_a_conflict_that_stays_names_its_file(self, tmp_path: Path) -> None:
        """The others are told, too: nothing is stored of them."""
        written_files(tmp_path, "a", "b")
        dashboard = Dashboard(*[conflict(1)] * 5)
        skipped, refused = self.run(tmp_path, dashboard, 1)
        assert skipped == "skipped   metric/a"
        assert refused == (
            f"refused   metric/b ({tmp_path / 'b.yaml'}): /based_on must be the current version: "
            "at version 9, got '3'; read it"
        )
        assert len(dashboard.sent) == 3

    def test_what_is_refused_is_not_sent(self, tmp_path: Path) -> None:
        """The dashboard's words by file; the others are skipped."""
        written_files(tmp_path, "a", "b")
        dashboard = Dashboard(bad={"a": {"ok": False, "code": "unknown_field", "message": "no"}})
        told = self.run(tmp_path, dashboard, 1)
        assert told == [f"refused   metric/a ({tmp_path / 'a.yaml'}): no", "skipped   metric/b"]
        assert dashboard.sent == []

    def test_another_refusal_is_told_whole(self, tmp_path: Path) -> None:
        """One that is about no definition, such as of the key, to standard error."""
        written_files(tmp_path, "a")
        dashboard = Dashboard((403, {"code": "scope_missing", "message": "not with this key"}, {}))
        assert self.run(tmp_path, dashboard, 1) == ["weir: not with this key"]

    def test_the_first_request_that_is_refused_is_the_last(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What was stored before stays; of the rest nothing is stored."""
        monkeypatch.setattr("weir_cli.planning.MOST", 1)
        written_files(tmp_path, "a", "b", "c")
        dashboard = Dashboard(bad={"b": {"ok": False, "code": "unknown_field", "message": "no"}})
        told = self.run(tmp_path, dashboard, 1)
        assert [line.split()[:2] for line in told] == [
            ["updated", "metric/a"],
            ["refused", "metric/b"],
            ["skipped", "metric/c"],
        ]
        assert dashboard.sent == [[("a", 3)]]

    def test_what_is_over_the_quota_is_stored_later(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Of several requests the one that was refused is sent again, and the next after it."""
        monkeypatch.setattr("weir_cli.planning.MOST", 1)
        written_files(tmp_path, "a", "b", "c")
        said = {"code": "rate_limited", "message": "too many"}
        fields = {"Retry-After": "0", "RateLimit-Policy": '"changes";q=1;w=3600'}
        stored: Given = (200, {"items": [{"outcome": "created", "version": 1}]}, {})
        dashboard = Dashboard(stored, (429, said, fields), (429, said, fields))
        with serving(by=dashboard) as served:
            told, errors = Command(tmp_path, served.url, "wk_key").do("apply", "-f", tmp_path)
        assert told.splitlines() == [
            "created   metric/a version 1",
            "updated   metric/b version 4",
            "updated   metric/c version 4",
        ]
        assert errors == "weir: too many; waiting to do so, an hour at most\n"
        assert dashboard.sent == [[("a", 3)], *[[("b", 3)]] * 3, [("c", 3)]]

    def test_a_metric_that_comes_twice_is_told_once(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A rule takes its metric along if that went with an earlier request."""
        monkeypatch.setattr("weir_cli.planning.MOST", 2)
        written_files(tmp_path, "a", "b")
        (tmp_path / "r.yaml").write_text("kind: rule\nname: r\nmetric: a\n")
        dashboard = Dashboard()
        told = self.run(tmp_path, dashboard, 0)
        assert [line.split()[1] for line in told] == ["metric/a", "metric/b", "rule/r"]
        assert [[name for name, _ in sent] for sent in dashboard.sent] == [["a", "b"], ["a", "r"]]

    def test_a_metric_that_comes_twice_and_is_refused_then_is_told_again(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It was stored, and somebody else changes it before its rule comes."""
        monkeypatch.setattr("weir_cli.planning.MOST", 2)
        written_files(tmp_path, "a", "b")
        (tmp_path / "r.yaml").write_text("kind: rule\nname: r\nmetric: a\n")
        items = [{"outcome": "updated", "version": 4}] * 2
        dashboard = Dashboard((200, {"items": items}, {}), *[conflict(0)] * 3)
        told = self.run(tmp_path, dashboard, 1)
        assert [line.split()[:2] for line in told] == [
            ["updated", "metric/a"],
            ["updated", "metric/b"],
            ["refused", "metric/a"],
            ["skipped", "rule/r"],
        ]

    def test_after_a_request_that_is_refused_whole_the_rest_is_told(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Something was stored by then: whoever reads on must know what was not."""
        monkeypatch.setattr("weir_cli.planning.MOST", 1)
        written_files(tmp_path, "a", "b", "c")
        items = [{"outcome": "updated", "version": 4}]
        refusal: Given = (403, {"code": "scope_missing", "message": "not with this key"}, {})
        dashboard = Dashboard((200, {"items": items}, {}), refusal)
        told = self.run(tmp_path, dashboard, 1)
        assert told[1:] == ["skipped   metric/b", "skipped   metric/c"]

    def test_a_run_waits_once_for_metrics(self, tmp_path: Path) -> None:
        """However many rules name one that is not there: after one wait all are refused."""
        rules = (f"kind: rule\nname: r{number}\nmetric: m\n" for number in range(10))
        (tmp_path / "rules.yaml").write_text("---\n".join(rules))
        unknown = {"ok": False, **UNKNOWN}
        dashboard = Dashboard(bad={f"r{number}": unknown for number in range(10)})
        begun_s = time.monotonic()
        told = self.run(tmp_path, dashboard, 1)
        assert 0.3 <= time.monotonic() - begun_s < 3
        assert [line.split()[0] for line in told] == ["refused"] * 10

    def test_a_refusal_as_json(self, tmp_path: Path) -> None:
        """Code and places of the dashboard, beside its words."""
        written_files(tmp_path, "a")
        bad = {"ok": False, "code": "unknown_field", "message": "no", "errors": [{"pointer": "/x"}]}
        with serving(by=Dashboard(bad={"a": bad})) as served:
            words = ("-f", tmp_path, "--json")
            told = json.loads(Command(tmp_path, served.url, "wk_key").run(*words, code=1))
        assert (told["outcome"], told["error"]["code"]) == ("refused", "unknown_field")
        assert told["error"]["errors"] == [{"pointer": "/x"}]
