"""One `up` or `down` at a time in a home."""

from __future__ import annotations

import fcntl
from contextlib import contextmanager
from typing import TYPE_CHECKING

from weir_local.process import PartError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from weir_local.home import Home


@contextmanager
def only_one(home: Home) -> Iterator[None]:
    """Hold the home while a command starts or stops parts; the system frees it at a crash.

    Raises:
        PartError: If another command holds it.
    """
    home.run.mkdir(parents=True, exist_ok=True)
    with (home.run / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            msg = f"another command starts or stops the stack in {home.folder}; wait for its end"
            raise PartError(msg) from error
        yield
