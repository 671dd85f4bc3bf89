"""JSON log lines on stdout: an event name and fields. No payloads, no keys."""

from __future__ import annotations

import logging
import sys

import structlog


def set_up() -> None:
    """Make every log line of the process one JSON object."""
    shared: list[structlog.typing.Processor] = [
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    structlog.configure(
        processors=[*shared, structlog.processors.JSONRenderer()],
        logger_factory=structlog.PrintLoggerFactory(sys.stdout),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            processor=structlog.processors.JSONRenderer(), foreign_pre_chain=shared
        )
    )
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    # It warns of each Upgrade header and each malformed request: clients' doing.
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
