"""The history of a load: a line for each request, with what is known of it."""

from __future__ import annotations

import email.message
import io
import json
import urllib.error
from pathlib import Path
from types import SimpleNamespace

import pytest
import weblog
from disruption.scene import history_in, history_of
from load import Load, outcome_of
from weir_local.waiting import wait_until


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        *((200, "ok"), (202, "ok"), (299, "ok"), (400, "fail"), (429, "fail"), (499, "fail")),
        *((0, "unknown"), (500, "unknown"), (503, "unknown"), (302, "unknown")),
    ],
)
def test_what_is_known_by_an_answer(status: int, outcome: str) -> None:
    """I1: without an answer, or with a 5xx, an event is neither lost nor stored."""
    assert outcome_of(status) == outcome


def test_each_request_has_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one that is sent again: of the same events, each time with what became of it."""
    answers = [_refused(503), TimeoutError(), _refused(429), None, None]

    def post(*_: object) -> None:
        error = answers.pop(0)
        if error is not None:
            raise error

    monkeypatch.setattr(weblog, "post", post)
    path = tmp_path / "history.jsonl"
    with Load("http://nowhere", "key", "7", batch=2, bad=1, at_most=4, history=path) as load:
        wait_until(lambda: load.acknowledged == 4, timeout_s=20, what="two batches")
    found = [json.loads(line) for line in path.read_text().splitlines()]
    told = [(line["first"], line["items"], line["status"], line["outcome"]) for line in found]
    assert told == [
        (0, 3, 503, "unknown"),
        (0, 3, 0, "unknown"),
        (0, 3, 429, "fail"),
        (0, 3, 200, "ok"),
        (2, 3, 200, "ok"),
    ]
    assert all(line["at_ms"] > 0 and line["took_ms"] >= 0 for line in found)
    # A batch is acknowledged by the answer to its last request, and not before that was sent.
    asked_ms = [line["at_ms"] for line in found if line["outcome"] == "ok"]
    assert len(load.answered_ms) == len(load.batches) == 2
    assert all(sent <= at for sent, at in zip(asked_ms, load.answered_ms, strict=True))


def _refused(status: int) -> urllib.error.HTTPError:
    return urllib.error.HTTPError("", status, "", email.message.Message(), io.BytesIO())


def test_a_failure_names_the_history_of_its_own_load(tmp_path: Path) -> None:
    """That of its folder, or of the scene that it shares; a test without a load has none."""
    path = history_in(tmp_path)
    assert [history_of({}), history_of({"tmp_path": tmp_path})] == [None, None]
    path.parent.mkdir()
    path.touch()
    assert history_of({"tmp_path": tmp_path}) == path
    shared = SimpleNamespace(load=SimpleNamespace(history=tmp_path / "elsewhere"))
    assert history_of({"here": shared, "tmp_path": tmp_path}) == tmp_path / "elsewhere"
