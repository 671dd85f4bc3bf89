"""Run ingest: `python -m weir_ingest`. Settings come from the environment."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import sys

import uvloop
from pydantic import ValidationError

from weir_ingest import logs
from weir_ingest.server import serve
from weir_ingest.settings import Settings

# glibc keeps freed memory up to twice the largest block it saw; a body of 20 MiB would
# stay for ever. With a fixed bound (option M_MMAP_THRESHOLD) large blocks go back.
_M_MMAP_THRESHOLD, _LARGE_BYTES = -3, 1 << 20


def main() -> int:
    """Start, serve, stop; return 2 if the settings are not usable."""
    logs.set_up()
    with contextlib.suppress(AttributeError):  # a C library without it
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES)
    try:
        settings = Settings()  # type: ignore[call-arg]  # from the environment
    except ValidationError as error:
        for fault in error.errors():
            name = "_".join(str(part) for part in fault["loc"]).upper()
            sys.stderr.write(f"WEIR_INGEST_{name}: {fault['msg']}\n")
        return 2
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(settings))
    return 0


if __name__ == "__main__":
    sys.exit(main())
