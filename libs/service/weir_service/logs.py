"""Logs: one JSON line an event on stdout; an event name and fields, never payloads.

The libraries' own loggers go the same way. Nothing that a client sent is logged but
codes, methods and route templates, so no secret can get there.
"""

from __future__ import annotations

import logging
import sys

import structlog


def configure() -> None:
    """Send every log line of this process to stdout as JSON."""
    shared: list[structlog.typing.Processor] = [
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="at"),
        structlog.processors.format_exc_info,
    ]
    structlog.configure(
        processors=[*shared, structlog.processors.JSONRenderer()],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(sys.stdout),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.JSONRenderer(),
            ],
        )
    )
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    # It warns of each Upgrade header and each malformed request: clients' doing.
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
