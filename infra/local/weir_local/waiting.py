"""Wait for something to become true: by looking again, with a deadline, never blindly."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


def wait_until(
    look: Callable[[], T | None], *, timeout_s: float, what: str, every_s: float = 0.05
) -> T:
    """Call `look` until it returns something true, and return that.

    Args:
        look: What to try; false or None means "not yet". Exceptions pass through.
        timeout_s: How long to go on.
        what: What is waited for, as in "could not see `what` within 5 s".
        every_s: Pause between two looks.

    Raises:
        TimeoutError: If the deadline passed; says what was waited for.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        seen = look()
        if seen:
            return seen
        if time.monotonic() >= deadline:
            msg = f"could not see {what} within {timeout_s:g} s"
            raise TimeoutError(msg)
        time.sleep(every_s)
