"""The script that `helm test` runs, against a real installation."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from chart.manifests import environment, named
from weir_chart.render import CHART, Object
from weir_local.testing import TestStack

SCRIPT = CHART / "files" / "check.py"


def run(
    folder: Path, ingest: str, dashboard: str, key: str, seconds: int = 120
) -> subprocess.CompletedProcess[str]:
    """Run the script as its pod does."""
    (folder / "key").write_text(key)
    told = {
        "WEIR_CHECK_SECONDS": str(seconds),
        "WEIR_INGEST_URL": ingest,
        "WEIR_DASHBOARD_URL": dashboard,
        "WEIR_API_KEY_FILE": str(folder / "key"),
    }
    return subprocess.run(  # noqa: S603  our own script
        [sys.executable, SCRIPT],
        env={**os.environ, **told},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.stack
def test_an_installation_that_counts_passes(stack: TestStack, tmp_path: Path) -> None:
    """Three events and one again are counted as 3 and 1 duplicate, also a second time."""
    for _ in range(2):
        done = run(tmp_path, stack.ingest_url, stack.dashboard_url, stack.key)

        assert done.returncode == 0, done.stdout + done.stderr
        assert "passed: 3 events counted, 1 duplicate told apart" in done.stdout


def test_an_installation_that_does_not_answer_fails(tmp_path: Path, free_port: int) -> None:
    """Without an answer in time it fails, and says what it waited for and what it saw."""
    nowhere = f"http://127.0.0.1:{free_port}"

    done = run(tmp_path, nowhere, nowhere, "wk_aaaaaaaa_b", seconds=0)

    assert done.returncode == 1
    assert "waited 0 s for the metric weir_check to be stored, last seen: no answer" in done.stderr


@pytest.mark.stack
def test_a_key_that_is_not_known_fails(stack: TestStack, tmp_path: Path) -> None:
    """With a wrong key it fails, and shows what the API said."""
    done = run(tmp_path, stack.ingest_url, stack.dashboard_url, "wk_aaaaaaaa_b", seconds=0)

    assert done.returncode == 1
    assert "unauthorized" in done.stderr


def test_the_pod_tells_the_script_what_it_asks_for(default: list[Object]) -> None:
    """The pod gives the variables that the script reads, and Services that there are."""
    pod = named(default, "Pod", "weir-check")
    (container,) = pod["spec"]["containers"]
    told = environment(container)

    assert set(told) == {"WEIR_INGEST_URL", "WEIR_DASHBOARD_URL", "WEIR_API_KEY_FILE"}
    for name, address in told.items():
        assert f'os.environ["{name}"]' in SCRIPT.read_text()
        if name.endswith("_URL"):
            host, _, port = address.removeprefix("http://").partition(":")
            service = named(default, "Service", host)
            assert int(port) in {one["port"] for one in service["spec"]["ports"]}
