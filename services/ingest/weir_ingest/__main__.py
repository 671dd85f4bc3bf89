"""Run ingest: `python -m weir_ingest`. Settings come from the environment."""

from __future__ import annotations

import asyncio
import sys

import uvloop
from pydantic import ValidationError

from weir_ingest import logs
from weir_ingest.server import serve
from weir_ingest.settings import Settings


def main() -> int:
    """Start, serve, stop; return 2 if the settings are not usable."""
    logs.set_up()
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
