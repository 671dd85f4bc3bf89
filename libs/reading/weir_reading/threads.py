"""Work on threads: what would hold up the loop, and with it every heartbeat."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


async def in_thread(
    pool: Executor | None, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs
) -> T:
    """Run work on a thread and return what it returns.

    A thread cannot be stopped: if the caller is cancelled, this ends only when the work
    does, so that whoever counts what is under way counts right.

    Args:
        pool: Whose thread; None for the one that everything shares.
        work: What to run; not on the loop, so nothing of the loop may be touched.
        args: What it is given.
        kwargs: The same by name.
    """
    loop = asyncio.get_running_loop()
    running = loop.run_in_executor(pool, partial(work, *args, **kwargs))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait({running})
        if not running.cancelled():
            running.exception()  # nobody is left to be told
        raise
