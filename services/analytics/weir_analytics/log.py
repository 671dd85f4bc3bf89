"""Logs: one JSON line an event on stdout; an event name and fields, never payloads."""

from __future__ import annotations

import logging
import sys

import structlog


def configure() -> None:
    """Send every log line of this process to stdout as JSON."""
    structlog.configure(
        processors=[
            structlog.stdlib.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True, key="at"),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(sys.stdout),
        cache_logger_on_first_use=True,
    )
    # Py4J tells of each error of the JVM once more; the driver tells what it means.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
