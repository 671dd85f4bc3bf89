"""What the README tells a new user to type shows the numbers that it promises."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from weir_local.testing import TestStack

README = Path(__file__).resolve().parents[1] / "README.md"


def shell_blocks() -> list[str]:
    """Return the README's shell blocks that talk to a running stack, as they are written."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", README.read_text(), re.M | re.S)
    return [block for block in blocks if "WEIR_" in block or ".weir/env" in block]


def typed(blocks: list[str], folder: Path) -> str:
    """Type blocks into one shell; return what they print."""
    done = subprocess.run(  # noqa: S603
        ["/bin/sh", "-e", "-c", "\n".join(blocks)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return done.stdout


@pytest.mark.stack
def test_the_readme_from_top_to_bottom(stack: TestStack, tmp_path: Path) -> None:
    """Define, send, ask: each event is accepted, and the number is there with its bound."""
    (tmp_path / ".weir").symlink_to(stack.home.folder)
    source, define, wait, send, ask = shell_blocks()

    defined = json.loads(typed([source, define], tmp_path))
    typed([source, wait], tmp_path)
    sent = typed([source, send], tmp_path)
    assert defined["name"] == "order_value"
    assert sent.count('"accepted":1') == 30

    def answer() -> dict[str, Any] | None:
        (series,) = json.loads(typed([source, ask], tmp_path))["series"] or [None]
        return series if series and series["count"][-1] == 30 else None

    series = stack.wait_until(answer, "a number of all 30 events")
    assert series["by"] == {"country": "NZ"}
    assert series["low"][-1] <= 29 <= series["high"][-1]
    assert series["value"][-1] == 29
