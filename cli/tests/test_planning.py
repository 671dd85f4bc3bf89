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


def test_a_run_waits_once_for_metrics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many rules name one that is not there: after one wait all of them are refused."""
    monkeypatch.setattr(apply_module, "METRIC_TIMEOUT_S", 0.6)
    monkeypatch.setattr(apply_module, "PAUSE_S", 0.05)

    def refuse(method: str, _path: str, _body: Any) -> Given:
        return (404, {"message": "none"}, {}) if method == "GET" else (404, UNKNOWN, {})

    rules = (f"kind: rule\nname: r{number}\nmetric: m\n" for number in range(10))
    (tmp_path / "rules.yaml").write_text("---\n".join(rules))
    with serving(by=refuse) as served:
        begun_s = time.monotonic()
        told = Command(tmp_path, served.url, "wk_key").run(code=1)
        took_s = time.monotonic() - begun_s
    assert told.count("refused   rule/r") == 10
    assert 0.6 <= took_s < 3
    tried = [path for method, path, _ in served.asked if method == "PUT"]
    assert tried.count("/api/v1/definitions/rule/r0") > 1
    assert tried.count("/api/v1/definitions/rule/r9") == 1


def test_a_refusal_of_apply_as_json(tmp_path: Path) -> None:
    """Code and places of the dashboard, beside its words."""
    problem = {"code": "unknown_field", "message": "no", "errors": [{"pointer": "/x"}]}
    (tmp_path / "a.yaml").write_text("kind: metric\nname: m\n")
    with serving((422, problem, {})) as served:
        told = json.loads(
            Command(tmp_path, served.url, "wk_key").run("-f", tmp_path, "--json", code=1)
        )
    assert (told["outcome"], told["error"]["code"]) == ("refused", "unknown_field")
    assert told["error"]["errors"] == [{"pointer": "/x"}]
