"""What the commands write for people: plain lines, at once."""

from __future__ import annotations

import errno
import sys


def say(text: str = "") -> None:
    """Write one line to the terminal."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def complain(text: str) -> None:
    """Write one line to the error stream."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def in_words(error: BaseException) -> str:
    """Return what an error says, and for a full disk what to do."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"the disk is full ({error}); free some space and try again: nothing is lost"
    return str(error)
