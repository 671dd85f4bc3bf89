"""Who waits how long on a live socket: an answer comes before somebody gives up waiting for it."""

from __future__ import annotations

import re
from pathlib import Path

from weir_cli.live import SILENT_S
from weir_dashboard.live.hub import LOOKED_UP_S
from weir_service.redis import TIMEOUT_S

LINK = Path(__file__).parents[1] / "services" / "dashboard" / "web" / "src" / "live" / "link.ts"


def test_a_greeting_ends_before_a_client_takes_the_server_for_gone() -> None:
    """Who cannot be looked up is told so, with 1013; and Redis has had its time by then."""
    waits = re.findall(r"(?:SILENCE|CONNECT_TIMEOUT)_MS = ([\d_]+);", LINK.read_text("utf-8"))
    assert len(waits) == 2, "the page must say how long it waits"
    assert TIMEOUT_S < LOOKED_UP_S < min(SILENT_S, *(int(wait) / 1000 for wait in waits))
