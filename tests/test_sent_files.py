"""`weir send` on the whole stack: a file, a kill in the middle, and every line counted once."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from weblog import LOG, SPAN_MS
from weir.clock import SystemClock
from weir_local.testing import TestStack

METRIC = (
    "kind: metric\nname: sent_lines\nevents: {type: web.sent}\nby: [data.status_class]\n"
    "resolution: 10s\nkeep: {10s: 24h}\n"
)
TIME = re.compile(rb"\[([^\]]+)\]")
STATUS = re.compile(rb'" (\d)\d\d (?:\d+|-) "')


def lately(lines: list[bytes], end_ms: int) -> list[bytes]:
    """Return the lines of the log with times of the hour before an instant."""
    texts = [line.split(b"[")[1].split(b"]")[0].decode() for line in lines]
    found = [datetime.strptime(text, "%d/%b/%Y:%H:%M:%S %z") for text in texts]
    first, last = min(found), max(found)
    moved = []
    for line, at in zip(lines, found, strict=True):
        time_ms = end_ms - round((last - at) / (last - first) * SPAN_MS)
        text = datetime.fromtimestamp(time_ms / 1_000, UTC).strftime("%d/%b/%Y:%H:%M:%S +0000")
        moved.append(TIME.sub(b"[" + text.encode() + b"]", line, count=1))
    return moved


def weir(stack: TestStack, folder: Path, *words: str | Path) -> subprocess.Popen[str]:
    """Start the command."""
    known = {
        "WEIR_DASHBOARD_URL": stack.dashboard_url,
        "WEIR_INGEST_URL": stack.ingest_url,
        "WEIR_API_KEY": stack.key,
        "XDG_STATE_HOME": str(folder),
    }
    return subprocess.Popen(  # noqa: S603  the command is ours
        [sys.executable, "-m", "weir_cli", *words],
        env=os.environ | known,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def confirmed(folder: Path) -> int:
    """Return how many events a resume file says are confirmed."""
    files = list((folder / "weir").glob("send-*.json"))
    return sum(json.loads(path.read_text())["totals"]["accepted"] for path in files)


@pytest.mark.stack
def test_killed_in_the_middle_each_line_counts_once(stack: TestStack, tmp_path: Path) -> None:
    """A real access log, kill -9, and the same command again: the metric has each line once."""
    stack.define("metric", "sent_lines", METRIC)
    progress = "/definitions/metric/sent_lines/progress"
    stack.wait_until(lambda: stack.api("GET", progress).body["serving"], "the metric serving")
    lines = lately(gzip.decompress(LOG.read_bytes()).splitlines(), SystemClock().now_ms())
    # One line of the log breaks off within its last field.
    good = [line for line in lines if line.endswith(b'"')]
    assert len(lines) - len(good) == 1
    path = tmp_path / "access.log"
    path.write_bytes(b"\n".join(lines) + b"\n")
    words = ("send", path, "--type", "web.sent", "--batch", "100")

    process = weir(stack, tmp_path, *words, "--rate", "3000")
    try:
        stack.wait_until(lambda: confirmed(tmp_path) >= 2_000, "a part of it confirmed", 60)
    finally:
        process.kill()
        process.communicate(timeout=30)
    before = confirmed(tmp_path)
    assert 2_000 <= before < len(good)

    process = weir(stack, tmp_path, *words, "--json")
    written, errors = process.communicate(timeout=120)
    assert process.returncode == 8, errors
    told = json.loads(written)
    assert told["inputs"][0]["before"]["accepted"] == before
    assert told["accepted"] + before == len(good)
    assert told["unknown"] == told["quarantined"] == told["refused"] == 0
    assert "access.log, line 8,899: a line must match the pattern combined; not sent" in errors

    wanted = Counter(f"{STATUS.search(line)[1].decode()}xx" for line in good)  # type: ignore[index]
    assert counted(stack, tmp_path, told["position"]) == wanted
    # A third run has nothing to send, and changes nothing.
    process = weir(stack, tmp_path, *words, "--json")
    assert json.loads(process.communicate(timeout=120)[0])["sent"] == 0


def counted(stack: TestStack, folder: Path, position: str) -> Counter[str]:
    """Return the metric's count of the last hours by class, once a position is counted."""

    def answer() -> dict[str, Any] | None:
        words = ("query", "sent_lines", "count", "--last", "3h", "--step", "30m")
        asked = (*words, "--by", "status_class", "--after", position, "--json")
        process = weir(stack, folder, *asked)
        written, errors = process.communicate(timeout=120)
        assert process.returncode == 0 or "not counted within 10 s" in errors, errors
        found: dict[str, Any] | None = json.loads(written) if process.returncode == 0 else None
        return found

    told = stack.wait_until(answer, "an answer behind the position", 120)
    return Counter(
        {one["by"]["status_class"]: int(sum(filter(None, one["value"]))) for one in told["series"]}
    )
