"""Run ingest: `python -m weir_ingest`. Settings come from the environment."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import sys

import uvloop
from weir_service import logs
from weir_service.settings import EXIT_SETTINGS, read

from weir_ingest.server import serve
from weir_ingest.settings import Settings

# glibc keeps freed memory up to twice the largest block it saw; a body of 20 MiB would
# stay for ever. With a fixed bound (option M_MMAP_THRESHOLD) large blocks go back.
_M_MMAP_THRESHOLD, _LARGE_BYTES = -3, 1 << 20


def main() -> int:
    """Start, serve, stop; return 2 if the settings are not usable."""
    logs.configure()
    with contextlib.suppress(AttributeError):  # a C library without it
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES)
    settings = read(Settings)
    if settings is None:
        return EXIT_SETTINGS
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(settings))
    return 0


if __name__ == "__main__":
    sys.exit(main())
