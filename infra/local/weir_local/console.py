"""What the commands write for people: plain lines, at once."""

from __future__ import annotations

import sys


def say(text: str = "") -> None:
    """Write one line to the terminal."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def complain(text: str) -> None:
    """Write one line to the error stream."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()
