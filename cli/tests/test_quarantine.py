"""`weir quarantine` as it is told: a list never looks whole that is not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from .conftest import Command
from .serving import serving

MESSAGE = "4,300 more events that version 1 of latency could not use"
MISSING: dict[str, Any] = {
    "version": 7,
    "metric": "latency",
    "metric_version": 1,
    "partition": 3,
    "copies": 1_000,
    "left_out": 4_300,
    "message": MESSAGE,
}
WHOLE: dict[str, Any] = {
    "version": None,
    "metric": None,
    "metric_version": None,
    "partition": None,
    "copies": 2,
    "left_out": 0,
    "message": None,
}
RECORD: dict[str, Any] = {
    "id": "0-12",
    "at_ms": 1_800_000_000_000,
    "reason": "value_missing",
    "source": "http",
    "version": 7,
    "metric": "latency",
    "metric_version": 1,
    "bytes": 1_234,
}


def told(tmp_path: Path, body: dict[str, Any], *words: str) -> tuple[str, str, str]:
    """Return what the command writes of an answer, what it complains of, and what it asked for."""
    with serving((200, body, {})) as served:
        written, errors = Command(tmp_path, served.url, "key").do("quarantine", *words)
    return written, errors, served.asked[0][1]


def test_a_list_says_what_has_no_copy(tmp_path: Path) -> None:
    """Beside the records; and that there may be older ones."""
    others = [
        RECORD | {"id": "0-11", "metric": None},
        RECORD | {"id": "0-9", "version": None, "metric": None, "reason": "too_deep"},
    ]
    body = {"items": [RECORD, *others], "left_out": [MISSING], "whole": False}
    written, errors, asked = told(tmp_path, body, "-n", "3", "--reason", "a b")

    assert asked == "/api/v1/quarantine?limit=3&reason=a+b"
    assert written == (
        "id    copied                reason         of                 source  bytes\n"
        "0-12  2027-01-15 08:00:00Z  value_missing  latency version 1  http    1,234\n"
        "0-11  2027-01-15 08:00:00Z  value_missing  version with id 7  http    1,234\n"
        "0-9   2027-01-15 08:00:00Z  too_deep       all                http    1,234\n"
    )
    first, second = errors.splitlines()
    assert first == f"weir: {MESSAGE}"
    assert second.startswith("weir: there may be older ones")


def test_of_everything_a_sum(tmp_path: Path) -> None:
    """By version and partition, with what to do in words."""
    body = {"items": [MISSING, WHOLE], "copies": 1_002, "left_out": 4_300, "whole": True}
    written, errors, asked = told(tmp_path, body, "--summary", "--metric", "latency")

    assert asked == "/api/v1/quarantine/summary?metric=latency"
    assert written == (
        "of                 partition  copies  left out\n"
        "latency version 1  3          1,000   4,300\n"
        "all                ?          2       0\n"
    )
    assert errors == f"weir: {MESSAGE}\n"
    bounded = told(tmp_path, body | {"whole": False}, "--summary")
    assert bounded[1].splitlines()[1].startswith("weir: older ones were not read")
    assert bounded[2] == "/api/v1/quarantine/summary"


def test_for_programs_it_is_the_answer(tmp_path: Path) -> None:
    """With what has no copy beside the records, so that a program sees it too."""
    body = {"items": [], "left_out": [MISSING], "whole": True}
    written, errors, _ = told(tmp_path, body, "--json")
    assert (json.loads(written), errors) == (body, "")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("-n", "0"), "--limit must be between 1 and 500, got 0"),
        (("--metric", "m"), "--metric must come with --summary"),
        (("--summary", "--reason", "x"), "--reason must be left out with --summary"),
    ],
)
def test_options_that_do_not_go_together(tmp_path: Path, words: tuple[str, ...], why: str) -> None:
    """Nothing is asked then."""
    _, errors = Command(tmp_path, "http://127.0.0.1:1", "key").do("quarantine", *words, code=2)
    assert why in errors


def test_a_replay_says_what_it_cannot_put_back(tmp_path: Path) -> None:
    """What has no copy is not put back; who reads the outcome is told what to do."""
    outcome = {"replayed": 5, "already": 0, "still": {}, "not_copied": 4_345, "dry_run": False}
    job = {"id": "k_1", "job": "replay", "state": "done", "outcome": outcome}
    with serving((200, job, {})) as served:
        written, errors = Command(tmp_path, served.url, "key").do("jobs", "k_1", "--detach")
    assert "  not copied: 4345\n" in written
    assert errors == (
        "weir: 4,345 more records that nobody could use have no copy, and a replay takes copies "
        "only; the ledger counts all, and their sender has to send them again\n"
    )
    with serving((200, job | {"outcome": outcome | {"not_copied": 0}}, {})) as served:
        assert Command(tmp_path, served.url, "key").do("jobs", "k_1", "--detach")[1] == ""
