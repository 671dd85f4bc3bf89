"""The `weir` command from a definition in a file to a number, a report and an audit."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from weir_local.testing import TestStack

METRIC = (
    "kind: metric\nname: typed\nevents: {type: dev.typed}\nby: [data.country]\nresolution: 1s\n"
)


def weir(stack: TestStack, *words: str | Path) -> tuple[int, str, str]:
    """Run the command; return its exit code and what it wrote."""
    known = {"WEIR_DASHBOARD_URL": stack.dashboard_url, "WEIR_API_KEY": stack.key}
    done = subprocess.run(  # noqa: S603  the command is ours
        [sys.executable, "-m", "weir_cli", *words],
        env={**os.environ, **known},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.stack
def test_define_send_ask_watch_audit(stack: TestStack, tmp_path: Path) -> None:
    """Numbers are what was sent; an audit of them finds no difference."""
    (tmp_path / "typed.yaml").write_text(METRIC)
    assert weir(stack, "apply", "-f", tmp_path) == (0, "created   metric/typed version 1\n", "")
    stack.await_whole("typed", "10s")
    events: list[dict[str, Any]] = [
        {"specversion": "1.0", "type": "dev.typed", "source": "t", "id": f"typed-{n}",
         "data": {"country": "NZ" if n % 3 else "AU"}}
        for n in range(30)
    ]  # fmt: skip
    stack.post(events)

    asked = ("query", "typed", "count", "--last", "10m", "--step", "10m", "--by", "country")

    def counted() -> bool:
        _, written, _ = weir(stack, *asked, "--csv")
        totals: Counter[str] = Counter()
        for row in csv.DictReader(io.StringIO(written)):
            totals[row["country"]] += int(float(row["value"] or 0))
        return totals == {"NZ": 20, "AU": 10}

    stack.wait_until(counted, "the numbers of all 30 events", 60)

    code, written, errors = weir(stack, "top", "typed", "-n", "1", "--json")
    assert code == 0, errors
    report = json.loads(written)
    assert {"ingest", "panes", "dashboard"} <= {part["name"] for part in report["parts"]}
    assert report["metrics"][0]["metric"] == "typed"
    assert report["fresh"]["processed_through_ms"] > 0

    time_s = time.monotonic()
    code, written, errors = weir(stack, "audit", "typed", "--last", "5m", "--json")
    assert code == 0, written + errors
    told = json.loads(written)
    assert (told["state"], told["outcome"]["verified"]) == ("done", True)
    assert "audit" in errors
    code, written, errors = weir(stack, "replay", "--reason", "nothing_like_it", "--dry-run")
    assert code == 0, written + errors
    assert "would replay: 0" in written
    assert time.monotonic() - time_s < 300
