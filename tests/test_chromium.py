"""The Chromium that tests start does not die of its own start."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from browser import chromium_path


def test_what_chromium_sets_itself_is_set_before() -> None:
    """Else it is set beside threads that read, and one launch of some thousands dies of it."""
    starter = Path(chromium_path())
    if starter.parent.parent.name != ".cache":
        pytest.skip(f"{starter} is not what e2e/chromium.mjs unpacks")
    # The browser wipes what /proc tells of its environment, so a program in its place tells it.
    before, start, _ = starter.read_text().partition('exec "')
    assert start
    script = f"{before}exec env\n"
    told = subprocess.run(  # noqa: S603
        ["sh", "-c", script],  # noqa: S607
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=True,
    )
    assert {"DBUS_SESSION_BUS_ADDRESS=disabled:", "FC_FONTATIONS=1"} <= set(told.stdout.split())
